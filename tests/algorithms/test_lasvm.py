"""LASVM: against an oracle written from the paper, a batch solver, and its own definition."""
import warnings

import numpy as np
import pytest
from cases import each
from reference import kernel_value
from test_oracle import describe

import onlinekernels as ok

KERNELS = [ok.Gaussian(1.1), ok.Polynomial(2, 0.5, 1.0), ok.Linear() + ok.Gaussian(1.0), ok.Laplacian(0.7),
           ok.Gaussian(2.0) + ok.Noise(0.1)]


class ReferenceLASVM:
    """Bordes, Ertekin, Weston and Bottou (2005), section 3.2, with S a list of numbers of examples.

    PROCESS bails out before it adds k to S, not after, unless S has nobody to make a pair with and fewer than five
    members. Gradients are computed anew whenever they are looked at. Of gradients that are equal up to rounding, the
    one that has been in S for longest counts.
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
    np.testing.assert_array_equal(model.support_vectors_,
                                  np.array([oracle.x[s] for s in terms]).reshape(len(terms), len(points[0])))
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


def kkt_gap(model, X, y, penalty, kernel):
    """By how much the conditions of the optimum over all rows are missed: max of g_i - g_j, where a_i may grow and a_j
    shrink.

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


def test_a_row_enters_if_it_violates_by_more_than_the_tolerance():
    """f(x) = x after the first two rows, whose gradients y - f(x) are 0; those of the next are 0.1 and -0.1."""
    for row, label in ((0.9, 1), (-0.9, -1)):
        for tolerance in (0.5, 0.2, 0.05):
            model = ok.LASVM("linear", penalty=10.0, tolerance=tolerance).partial_fit([[1.0], [-1.0]], [1, -1]).finish()
            np.testing.assert_allclose(model.decision_function([[1.0], [-1.0]]), [1.0, -1.0], atol=1e-12)
            assert (row in model.partial_fit([[row]], [label]).support_vectors_) == (tolerance < 0.1)
            assert tolerance < 0.1 or model._state.function.dictionary.held == 2  # nor does it wait among the terms
