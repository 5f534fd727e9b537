"""LASVM: against an oracle written from the paper, a batch solver, and its own definition."""
import pickle
import threading
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from cases import each
from reference import kernel_value
from test_oracle import describe

import onlinekernels as ok
from onlinekernels.algorithms import lasvm

KERNELS = [
    ok.Gaussian(1.1), ok.Polynomial(2, 0.5, 1.0), ok.Linear() + ok.Gaussian(1.0), ok.Laplacian(0.7), ok.Gaussian(2.0) + ok.Noise(0.1)
]
SIZES = st.integers(2, 60)


class ReferenceLASVM:
    """Bordes, Ertekin, Weston and Bottou (2005), section 3.2, with S a list of numbers of examples.

    PROCESS bails out before it adds k to S, not after, unless S has nobody to make a pair with and fewer than five
    members. Gradients are computed anew whenever they are looked at. Of gradients that are equal up to rounding, the one
    that has been in S for longest counts.
    """

    def __init__(self, kernel, penalty=1.0, tau=1e-3):
        self.kernel, self.penalty, self.tau = kernel, penalty, tau
        self.x, self.y, self.C = [], [], []
        self.S, self.alpha, self.b, self.values = [], {}, 0.0, {}

    def k(self, i, j):
        if (i, j) not in self.values:
            self.values[i, j] = kernel_value(self.kernel, self.x[i], self.x[j], same=i == j)
        return self.values[i, j]

    def f(self, x):
        """Without the offset."""
        return sum(self.alpha[s] * kernel_value(self.kernel, self.x[s], x) for s in self.S)

    def gradients(self):
        return {s: self.y[s] - sum(self.alpha[r] * self.k(r, s) for r in self.S) for s in self.S}

    def A(self, s):
        return min(0.0, self.C[s] * self.y[s])

    def B(self, s):
        return max(0.0, self.C[s] * self.y[s])

    def extremes(self, g):
        """(argmax g_s with alpha_s < B_s, argmin g_s with alpha_s > A_s), None where there is nobody."""
        growing = [s for s in self.S if self.alpha[s] < self.B(s)]
        shrinking = [s for s in self.S if self.alpha[s] > self.A(s)]
        largest, smallest = max((g[s] for s in growing), default=0.0), min((g[s] for s in shrinking), default=0.0)
        i = next((s for s in growing if g[s] >= largest - 1e-10 * (1 + abs(largest))), None)
        j = next((s for s in shrinking if g[s] <= smallest + 1e-10 * (1 + abs(smallest))), None)
        return i, j

    def search(self, i, j, g):
        """Direction search along (i, j), if it is a tau-violating pair."""
        if i is None or j is None or g[i] - g[j] <= self.tau:
            return False
        curvature = self.k(i, i) + self.k(j, j) - 2 * self.k(i, j)
        step = min(self.B(i) - self.alpha[i], self.alpha[j] - self.A(j))
        if curvature > 0:
            step = min(step, (g[i] - g[j]) / curvature)
        for s, change in ((i, step), (j, -step)):
            share = (self.alpha[s] + change) / (self.y[s] * self.C[s])
            share = 0.0 if share < 1e-12 else 1.0 if share > 1 - 1e-12 else share
            self.alpha[s] = share * self.y[s] * self.C[s]
        return True

    def process(self, k):
        g = self.gradients()
        i, j = self.extremes(g)
        g[k] = self.y[k] - self.f(self.x[k])
        partner = j if self.y[k] > 0 else i
        pair = (k, partner) if self.y[k] > 0 else (partner, k)
        if partner is None and len(self.S) >= 5 or partner is not None and g[pair[0]] - g[pair[1]] <= self.tau:
            return
        self.alpha[k] = 0.0
        self.S.append(k)
        self.search(*pair, g)

    def reprocess(self):
        g = self.gradients()
        i, j = self.extremes(g)
        moved = self.search(i, j, g)
        if moved:
            g = self.gradients()
            i, j = self.extremes(g)
        if i is None or j is None:
            self.b = next((g[s] for s in (i, j) if s is not None), self.b)
            return moved
        self.b = (g[i] + g[j]) / 2
        if moved:
            low, high = g[j] + 1e-10 * (1 + abs(g[j])), g[i] - 1e-10 * (1 + abs(g[i]))
            idle = [s for s in self.S if self.alpha[s] == 0 and (g[s] <= low if self.y[s] > 0 else g[s] >= high)]
            self.S = [s for s in self.S if s not in idle]
        return moved

    def learn(self, x, y, weight=1.0, k=None):
        """The score before it; k is the number of an example that comes again."""
        score = self.f(x) + self.b
        if k is None:
            k = len(self.x)
            self.x.append(x), self.y.append(y), self.C.append(self.penalty * weight)
        if k not in self.S and self.C[k] > 0:
            self.process(k)
        self.reprocess()
        return score

    def finish(self):
        while self.reprocess():
            pass


def stream(seed, n=50, d=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.where(X[:, 0] * X[:, 1] + 0.4 * rng.normal(size=n) > 0, 1, -1), rng


def agrees(model, oracle, points):
    expected = [oracle.f(x) + oracle.b for x in points]
    np.testing.assert_allclose(model.decision_function(points), expected, rtol=1e-8, atol=1e-8)
    terms = [s for s in oracle.S if oracle.alpha[s] != 0]
    np.testing.assert_array_equal(model.support_vectors_, np.array([oracle.x[s] for s in terms]).reshape(len(terms), len(points[0])))
    np.testing.assert_allclose(model.dual_coef_[0], [oracle.alpha[s] for s in terms], rtol=1e-8, atol=1e-10)
    assert model._state.function.dictionary.held == len(oracle.S)
    model._state.engine._check()


@each("kernel", KERNELS, ids=repr)
@each("penalty", [0.3, 2.0, 50.0])
def test_it_is_the_algorithm_of_the_paper(kernel, penalty):
    X, y, rng = stream(int(10 * penalty), 30)
    weights = rng.choice([0.0, 0.5, 1.0, 3.0], 30)
    model, oracle = ok.LASVM(kernel, penalty=penalty), ReferenceLASVM(describe(kernel), penalty)
    expected = [oracle.learn(x, label, weight) for x, label, weight in zip(X, y, weights)]
    scores = model.progressive(X, y, [-1, 1], weights)
    np.testing.assert_allclose(scores, expected, rtol=1e-8, atol=1e-8)
    agrees(model, oracle, X[::3] + 0.1)
    model.finish()
    oracle.finish()
    agrees(model, oracle, X[::3] + 0.1)
    assert model.t_ == 30


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), n=SIZES, penalty=st.sampled_from([0.1, 1.0, 20.0]), cuts=st.lists(SIZES, max_size=4),
       finish=st.booleans())
def test_any_chunks_agree_with_the_paper(seed, n, penalty, cuts, finish):
    X, y, _ = stream(seed, n)
    kernel = ok.Gaussian(0.8)
    model, oracle = ok.LASVM(kernel, penalty=penalty), ReferenceLASVM(describe(kernel), penalty)
    places = [0, *sorted(min(cut, n) for cut in cuts), n]
    for first, last in zip(places, places[1:]):
        expected = [oracle.learn(x, label) for x, label in zip(X[first:last], y[first:last])]
        if last > first:
            scores = model.progressive(X[first:last], y[first:last], [-1, 1])
            np.testing.assert_allclose(scores, expected, rtol=1e-7, atol=1e-7)
        if finish and model._state is not None:
            model.finish()
            oracle.finish()
    agrees(model, oracle, X + 0.2)


def kkt_gap(model, X, y, penalty, kernel):
    """By how much the conditions of the optimum over all rows are missed: max of g_i - g_j, where a_i may grow and a_j shrink.

    Rows that are terms are found by their points.
    """
    a = np.zeros(len(X))
    for point, alpha in zip(model.support_vectors_, model.dual_coef_[0]):
        a[np.flatnonzero((X == point).all(axis=1))[0]] += alpha
    g = y - a @ kernel(X)
    up, down = a < np.maximum(0, y * penalty) * (1 - 1e-12), a > np.minimum(0, y * penalty) * (1 - 1e-12)
    return g[up].max() - g[down].min()


@pytest.mark.parametrize("penalty", [0.3, 2.0, 50.0])
@pytest.mark.parametrize("tolerance", [1e-1, 1e-3, 1e-6])
def test_fit_ends_where_no_pair_of_all_rows_is_worth_a_step(penalty, tolerance):
    """Whatever the order of the rows; sorted by class, one pass would forget the first class."""
    kernel = ok.Gaussian(0.8)
    for seed in range(6):
        X, y, _ = stream(seed, 80)
        order = np.argsort(y, kind="stable") if seed % 2 else np.arange(80)
        X, y = X[order], y[order]
        model = ok.LASVM(kernel, penalty=penalty, tolerance=tolerance, random_state=seed).fit(X, y)
        assert model.gap_ <= tolerance
        assert abs(max(0.0, kkt_gap(model, X, y, penalty, kernel)) - model.gap_) < 1e-9
        assert len(np.unique(model.support_vectors_, axis=0)) == model.n_terms_
        model._state.engine._check()
        if tolerance > 1e-6:
            continue
        again = ok.LASVM(kernel, penalty=penalty, tolerance=tolerance, random_state=None).fit(X[::-1], y[::-1])
        np.testing.assert_allclose(again.decision_function(X), model.decision_function(X), rtol=0, atol=1e-4)


def test_the_first_pass_of_fit_is_the_algorithm_of_the_paper_in_random_order():
    X, y, _ = stream(9, 40)
    kernel = ok.Gaussian(0.8)
    for seed in range(2):
        order = np.random.default_rng(seed).permutation(40)
        oracle = ReferenceLASVM(describe(kernel), 2.0)
        for k in order:
            oracle.learn(X[k], y[k])
        oracle.finish()
        model = ok.LASVM(kernel, penalty=2.0, epochs=1, random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ok.LearningWarning)
            agrees(model.fit(X, y), oracle, X)
        assert model.t_ == 40
        # Beside the terms there are the rows that are none.
        g = {s: y[k] - oracle.f(X[k]) for s, k in enumerate(order) if s not in oracle.S} | oracle.gradients()
        alpha = dict.fromkeys(g, 0.0) | {s: oracle.alpha[s] for s in oracle.S}
        up, down = [g[s] for s in g if alpha[s] < oracle.B(s)], [g[s] for s in g if alpha[s] > oracle.A(s)]
        assert np.isclose(model.gap_, max(0.0, max(up) - min(down)), rtol=1e-8, atol=1e-8)


def test_fit_says_when_it_stops_too_early():
    X, y, _ = stream(1, 200)
    with pytest.warns(ok.LearningWarning, match="stops after 1 passes with gap_ = .* more epochs") as caught:
        model = ok.LASVM(ok.Gaussian(0.8), penalty=50.0, epochs=1).fit(X, y)
    assert caught[0].filename == __file__ and model.gap_ > model.tolerance
    twin = pickle.loads(pickle.dumps(model))
    assert twin.gap_ == model.gap_
    streamed = ok.LASVM(ok.Gaussian(0.8), penalty=50.0).partial_fit(X, y).finish()      # of its terms
    assert 0.0 < streamed.gap_ <= streamed.tolerance
    assert model.learn_one(X[0] + 5.0, 1).gap_ != twin.gap_


def test_classes_one_after_the_other_are_learned():
    datasets, svm = pytest.importorskip("sklearn.datasets"), pytest.importorskip("sklearn.svm")
    X, species = datasets.load_iris(return_X_y=True)
    for label in range(3):
        y = np.where(species == label, 1, -1)
        batch = svm.SVC(gamma=0.5).fit(X, y).score(X, y)
        assert abs(ok.LASVM(ok.Gaussian(1.0)).fit(X, y).score(X, y) - batch) < 0.01


@pytest.mark.parametrize("kind", ["dense", "single", "sparse"])
def test_fit_scales_by_all_rows(kind):
    """Behind its scaler the model is that of rows that were scaled before, and the scaler goes on."""
    X, y, _ = stream(3, 150, 3)
    X = np.where(np.abs(X) > 0.5, X, 0.0) * [1.0, 100.0, 0.01] + (0.0 if kind == "sparse" else [0.0, 1e3, 5.0])
    if kind == "single":
        X = X.astype(np.float32)
    points = pytest.importorskip("scipy.sparse").csr_matrix(X) if kind == "sparse" else X
    order = np.argsort(y, kind="stable")
    points, y = points[order], y[order]
    before = ok.RunningScaler().fit(points)
    kernel, scaled = ok.Gaussian(1.0), before.transform(points).astype(points.dtype)
    model = ok.LASVM(kernel, penalty=5.0, scale=True).fit(points, y)
    plain = ok.LASVM(kernel, penalty=5.0).fit(scaled, y)
    np.testing.assert_allclose(model.decision_function(points), plain.decision_function(scaled), rtol=0, atol=1e-5)
    assert model.n_terms_ == plain.n_terms_ and model.gap_ <= model.tolerance
    assert model._state.scaler.count == 150
    model.partial_fit(points[:7], y[:7])
    assert model._state.scaler.count == 157


def test_rows_that_cannot_enter_do_not_keep_fit_from_ending():
    """Of the linear kernel a row of zeros has k(x, x) = 0; others have weight 0."""
    X, y, _ = stream(3, 100)
    X[::5] = 0.0
    for weights in (None, {1: 0.0}):
        assert ok.LASVM("linear", class_weight=weights).fit(X, y).gap_ <= 1e-3
    assert ok.LASVM("linear").fit(X, np.ones(100), classes=[-1, 1]).gap_ == 0.0


def test_an_error_of_fit_names_the_row_of_x():
    X, y, _ = stream(3, 100)
    X[71] = 1e100
    with pytest.raises(FloatingPointError, match="Row 71 of X"):
        ok.LASVM("linear").fit(X, y)
    for bad in (-1, 1.5, "0", True):
        with pytest.raises(ValueError, match="'random_state' parameter of LASVM"):
            ok.LASVM(random_state=bad).fit(X[:9], y[:9])


@each("penalty", [0.2, 1.0, 30.0])
@each("seed", range(3))
def test_after_passes_it_is_the_support_vector_machine(penalty, seed):
    svm = pytest.importorskip("sklearn.svm")
    X, y, _ = stream(seed, 120, 3)
    batch = svm.SVC(C=penalty, gamma=0.5, tol=1e-6).fit(X, y)
    model = ok.LASVM(ok.Gaussian(1.0), penalty=penalty, tolerance=1e-6).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), batch.decision_function(X), rtol=1e-4, atol=1e-4)
    assert np.isclose(model.dual_coef_.sum(), 0.0, atol=1e-9)
    balanced = ok.LASVM(ok.Gaussian(1.0), penalty=penalty, tolerance=1e-6, class_weight={1: 3.0}).fit(X, y)
    batch = svm.SVC(C=penalty, gamma=0.5, tol=1e-6, class_weight={1: 3.0}).fit(X, y)
    np.testing.assert_allclose(balanced.decision_function(X), batch.decision_function(X), rtol=1e-4, atol=1e-4)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), n=SIZES, penalty=st.sampled_from([0.1, 1.0, 1e3]), tolerance=st.sampled_from([1e-1, 1e-3, 1e-8]),
       copies=st.booleans())
def test_after_finish_no_pair_violates(seed, n, penalty, tolerance, copies):
    """The definition: no tau-violating pair among the terms, and the offset between them."""
    X, y, rng = stream(seed, n)
    if copies:
        X, y = X[rng.integers(0, max(1, n // 3), n)], np.array(y)
    kernel = ok.Gaussian(0.7)
    model = ok.LASVM(kernel, penalty=penalty, tolerance=tolerance).partial_fit(X, y, [-1, 1]).finish()
    a, points = model.dual_coef_[0], model.support_vectors_
    if not len(a):
        assert len(set(y)) == 1
        return
    assert np.isclose(a.sum(), 0.0, atol=1e-9 * penalty * n)
    assert (np.abs(a) <= penalty).all()
    g = np.sign(a) - a @ kernel(points)
    up, down = g[(a > 0) & (a < penalty) | (a < 0)], g[(a < 0) & (a > -penalty) | (a > 0)]
    assert up.max() - down.min() <= tolerance + 1e-8
    free = g[np.abs(a) < penalty]                       # their scores are y
    assert np.abs(free - model.intercept_[0]).max(initial=0.0) <= tolerance + 1e-8
    steady = pickle.dumps(model)
    assert pickle.dumps(model.finish()) == steady


def test_the_first_examples_wait_for_the_other_class():
    model = ok.LASVM("linear").partial_fit(np.arange(1.0, 9.0)[:, None], np.ones(8), [-1, 1])
    assert model._state.function.dictionary.held == 5 and model.n_terms_ == 0
    np.testing.assert_array_equal(model.decision_function([[3.0]]), [1.0])
    twin = pickle.loads(pickle.dumps(model))
    for one in (model, twin):
        one.partial_fit([[-1.0]], [-1]).finish()
    assert model.predict([[2.0], [-2.0]]).tolist() == [1, -1]
    np.testing.assert_array_equal(twin.decision_function([[3.0]]), model.decision_function([[3.0]]))


def test_examples_far_from_the_margin_do_not_stay():
    X, _, rng = stream(3, 2000)
    y = np.where(X[:, 0] > 0, 1, -1)
    model = ok.LASVM("linear", penalty=10.0).partial_fit(X, y)
    assert model._state.function.dictionary.held < 200
    assert model.score(X, y) > 0.99


def near(x, z):
    return float(np.exp(-np.sum((np.asarray(x) - np.asarray(z)) ** 2)))


def test_all_kinds_of_points_agree():
    sparse = pytest.importorskip("scipy.sparse")
    X, y, _ = stream(4, 120, 3)
    X = np.where(np.abs(X) > 0.3, X, 0.0)
    gaussian = ok.Gaussian(np.sqrt(0.5))
    dense = ok.LASVM(gaussian).fit(X, y)
    for kernel, points in ((gaussian, sparse.csr_matrix(X)), (near, list(X)), (ok.Precomputed(gaussian(X)), np.arange(120)[:, None])):
        model = ok.LASVM(kernel).fit(points, y)
        np.testing.assert_allclose(model.decision_function(points), dense.decision_function(X), rtol=1e-7, atol=1e-7)
        assert model.n_terms_ == dense.n_terms_


def test_a_file_with_coefficients_out_of_bounds_is_refused():
    X, y, _ = stream(4, 60)
    model = ok.LASVM(ok.Gaussian(), penalty=0.5).partial_fit(X, y)
    learned = model.__getstate__()
    for name, value in (("bounds", -0.5), ("bounds", 0.0), ("coefficients", 3.0), ("gradients", np.nan)):
        state = pickle.loads(pickle.dumps(learned))
        state["_state"]["learned"][name][..., 3] = value
        with pytest.raises(ValueError):
            ok.LASVM().__setstate__(state)


def test_a_new_penalty_is_for_examples_that_come():
    X, y, _ = stream(6, 80)
    model = ok.LASVM(ok.Gaussian(0.5), penalty=0.1).partial_fit(X[:40], y[:40])
    assert np.abs(model.dual_coef_).max() <= 0.1
    model.set_params(penalty=2.0).partial_fit(X[40:], y[40:]).finish()
    old = np.isin(model.support_vectors_[:, 0], X[:40, 0])
    assert np.abs(model.dual_coef_[0, old]).max() <= 0.1 < np.abs(model.dual_coef_[0, ~old]).max() <= 2.0
    with pytest.raises(ValueError, match="'tolerance' parameter changed after fitting, from 0.001 to 0.5"):
        model.set_params(tolerance=0.5).partial_fit(X, y)


def test_it_gives_up_with_a_warning(monkeypatch):
    X, y, _ = stream(6, 200)
    monkeypatch.setattr(lasvm, "MOST", 1)
    monkeypatch.setattr(lasvm, "STEPS", 1)
    model = ok.LASVM(ok.Gaussian(), penalty=100.0).partial_fit(X, y)
    with pytest.warns(ok.LearningWarning, match="gives up"):
        model.finish()


def test_predictions_while_it_finishes_belong_to_one_state():
    X, y, _ = stream(2, 400, 3)
    model = ok.LASVM(ok.Gaussian(0.8), penalty=50.0, tolerance=1e-7).partial_fit(X, y)
    before, seen = model.decision_function(X[:50]), []
    thread = threading.Thread(target=lambda: seen.extend(model.decision_function(X[:50]) for _ in range(30)))
    thread.start()
    model.finish()
    thread.join()
    after = model.decision_function(X[:50])
    assert not np.array_equal(before, after)
    assert all(np.array_equal(scores, before) or np.array_equal(scores, after) for scores in seen)


def test_a_row_enters_if_it_violates_by_more_than_the_tolerance():
    """f(x) = x after the first two rows, whose gradients y - f(x) are 0; those of the next are 0.1 and -0.1."""
    for row, label in ((0.9, 1), (-0.9, -1)):
        for tolerance in (0.5, 0.2, 0.05):
            model = ok.LASVM("linear", penalty=10.0, tolerance=tolerance).partial_fit([[1.0], [-1.0]], [1, -1]).finish()
            np.testing.assert_allclose(model.decision_function([[1.0], [-1.0]]), [1.0, -1.0], atol=1e-12)
            assert (row in model.partial_fit([[row]], [label]).support_vectors_) == (tolerance < 0.1)
            assert tolerance < 0.1 or model._state.function.dictionary.held == 2  # nor does it wait among the terms
