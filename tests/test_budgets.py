"""Budgets that look at the kernel, against plain NumPy written from the papers."""
import pickle

import numpy as np
import pytest

import onlinekernels as ok
from cases import covering, each
import reference_budgets as reference
from reference_outputs import ReferenceSVMD
from small_models import same_state
from test_oracle import describe

RNG = np.random.default_rng(11)
X = RNG.normal(size=(110, 3))
SIGNS = np.where(X[:, 0] * X[:, 1] + 0.3 * RNG.normal(size=len(X)) > 0, 1, -1)
NUMBERS = np.sin(2 * X[:, 0]) + X[:, 1]
MANY = np.argmax(np.stack([X[:, 0], X[:, 1] ** 2, X[:, 2] + 0.5], axis=1), axis=1)
CHUNKS = [1, 7, 110]


def progressive(model, X, y, chunk, **others):
    """Scores in chunks; every invariant holds after each."""
    scores = []
    for start in range(0, len(X), chunk):
        part = slice(start, start + chunk)
        scores.append(model.progressive(X[part], y[part], **others))
        if chunk > 1 or start % 50 == 0:
            model._state.engine._check()
    return np.concatenate(scores)


# ---- Rules, as the oracle takes them ------------------------------------------------------------------------------


def gradient(step, regularization, derivative):
    return lambda t, scores, y, k: (1 - step * regularization, [-step * derivative(scores[0], y)])


def hinge(score, y):
    return -y if y * score <= 1 else 0.0


def passive_aggressive(penalty):
    return lambda t, scores, y, k: (1.0, [y * min(penalty, max(0.0, 1 - y * scores[0]) / k)])


def crammer_singer(step, regularization):
    """A gradient step of the multiclass hinge."""

    def rule(t, scores, y, k):
        wrong = np.where(np.arange(len(scores)) == y, -np.inf, scores)
        best, row = int(wrong.argmax()), np.zeros(len(scores))
        if 1 + scores[best] - scores[y] > 0:
            row[y], row[best] = step, -step
        return 1 - step * regularization, row

    return rule


def softmax(step, regularization):
    def rule(t, scores, y, k):
        p = np.exp(scores - scores.max())
        return 1 - step * regularization, -step * (p / p.sum() - np.eye(len(scores))[y])

    return rule


# name: (model of a kernel and a budget, y, the oracle's rule, outputs)
LEARNERS = {
    "hinge": (lambda k, b: ok.NORMA("hinge", k, step=0.3, regularization=0.05, budget=b), SIGNS, gradient(0.3, 0.05, hinge), 1),
    "squared": (lambda k, b: ok.NORMA("squared", k, step=0.3, regularization=0.02, budget=b), NUMBERS,
                gradient(0.3, 0.02, lambda score, y: score - y), 1),
    "passive-aggressive": (lambda k, b: ok.PassiveAggressive("hinge", k, penalty=0.4, budget=b), SIGNS, passive_aggressive(0.4), 1),
    "many": (lambda k, b: ok.NORMA("multiclass_hinge", k, step=0.3, regularization=0.05, budget=b), MANY,
             crammer_singer(0.3, 0.05), 3),
    "logistic": (lambda k, b: ok.NORMA("multiclass_logistic", k, step=0.3, regularization=0.05, budget=b), MANY,
                 softmax(0.3, 0.05), 3),
}
KERNELS = {
    "gaussian": ok.Gaussian(1.0),
    "sum": ok.Gaussian(1.5) + 0.3 * ok.Linear() + 0.1,
    "polynomial": ok.Polynomial(3, scale=0.3),
    "laplacian": ok.Laplacian(0.7),
    "additive": ok.AdditiveMatern(1.0),
}


def many_classes(y):
    return {"classes": range(3)} if y is MANY else {}


# ---- Projecting ---------------------------------------------------------------------------------------------------


@covering(2)
@each("chunk", CHUNKS)
@each("size, tolerance", [(1, 0.0), (12, 0.0), (30, 0.1)])
@each("learner", LEARNERS)
def test_projecting(learner, size, tolerance, chunk):
    make, y, rule, outputs = LEARNERS[learner]
    model = make(ok.Gaussian(1.0), ok.Projecting(size, tolerance))
    scores = progressive(model, X, y, chunk, **many_classes(y))
    expected, naive = reference.learn(X, y, rule, reference.projecting(size, tolerance), ok.Gaussian(1.0), outputs)
    np.testing.assert_allclose(scores.reshape(len(X), -1), expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(model.support_vectors_, naive.X)
    np.testing.assert_allclose(model.dual_coef_, naive.A.T, rtol=1e-7, atol=1e-8)
    assert model.n_terms_ == size or tolerance


@each("kernel", KERNELS)
def test_projecting_works_with_every_kernel(kernel):
    make, y, rule, outputs = LEARNERS["passive-aggressive"]
    scores = progressive(make(KERNELS[kernel], ok.Projecting(15)), X, y, 50)
    expected, _ = reference.learn(X, y, rule, reference.projecting(15), KERNELS[kernel], outputs)
    np.testing.assert_allclose(scores[:, None], expected, rtol=1e-7, atol=1e-7)


def test_projecting_works_on_objects_and_sparse_rows():
    scipy = pytest.importorskip("scipy.sparse")
    make, y, *_ = LEARNERS["squared"]
    expected = make(ok.Gaussian(1.0), ok.Projecting(10)).progressive(X, y)
    on_objects = make(lambda x, z: float(np.exp(-np.sum((x - z) ** 2) / 2)), ok.Projecting(10))
    np.testing.assert_allclose(progressive(on_objects, list(X), y, 60), expected, rtol=1e-8, atol=1e-9)
    on_sparse = make(ok.Gaussian(1.0), ok.Projecting(10))
    np.testing.assert_allclose(on_sparse.progressive(scipy.csr_matrix(X), y), expected, rtol=1e-8, atol=1e-9)


def test_a_linear_kernel_needs_as_many_terms_as_dimensions():
    model = ok.PassiveAggressive("hinge", "linear", budget=ok.Projecting(50))
    scores = model.progressive(X, SIGNS)
    np.testing.assert_allclose(scores, ok.PassiveAggressive("hinge", "linear").progressive(X, SIGNS), rtol=1e-7, atol=1e-9)
    assert model.n_terms_ == 3


@each("spread", [0.0, 1e-12, 1e-7, 1e-4])
@each("dtype", [np.float64, np.float32])
def test_projecting_bears_duplicates_and_points_that_nearly_coincide(spread, dtype):
    rng = np.random.default_rng(4)
    centres = rng.normal(size=(8, 2))
    points = (centres[rng.integers(0, 8, 600)] + spread * rng.normal(size=(600, 2))).astype(dtype)
    y = np.sin(3 * points[:, 0]) + rng.normal(size=600)
    model = ok.NORMA("squared", ok.Gaussian(1.0), step=0.2, regularization=0.0, budget=ok.Projecting(20))
    scores = progressive(model, points, y, 100)
    exact = ok.NORMA("squared", ok.Gaussian(1.0), step=0.2, regularization=0.0).progressive(points, y)
    assert np.isfinite(model.dual_coef_).all()
    np.testing.assert_allclose(scores, exact, atol=2e-2 if dtype == np.float32 or spread == 1e-4 else 1e-4)


@each("seed", range(6))
def test_a_projection_loses_least_and_never_more_than_a_drop(seed):
    """After each example: how far f is from what it would be without a budget, and from dropping the same term."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(120, 2)).round(rng.choice([1, 3]))
    y = np.where(points[:, 0] > points[:, 1] ** 2, 1, -1)
    kernel = [ok.Gaussian(0.8), ok.Polynomial(2), ok.Laplacian(1.0)][seed % 3]
    model = ok.PassiveAggressive("hinge", kernel, penalty=rng.choice([0.1, 1.0]), budget=ok.Projecting(int(rng.integers(1, 12))))
    before = reference.Model(kernel)
    for x, label in zip(points, y):
        score = model.progressive(x[None], [label], classes=[-1, 1])[0]
        full = before.copy()
        alpha = label * min(model.penalty, max(0.0, 1 - label * score) / kernel(x[None])[0, 0])
        full.X.append(x)
        full.A = np.vstack([full.A, [[alpha]]])
        after = reference.Model(kernel)
        after.X, after.A = list(model.support_vectors_), model.dual_coef_.T
        gone = [i for i, point in enumerate(full.X) if not any(np.array_equal(point, other) for other in after.X)]
        for i in gone:
            assert after.distance(full) <= full.without(i).distance(full) + 1e-10
        before = after


@each("chunk", [1, 110])
@each("make", [
    lambda **o: ok.ROMMA(ok.Gaussian(1.0), **o),
    lambda **o: ok.ALMA(ok.Gaussian(1.0), **o),
    lambda **o: ok.Projection("hinge", ok.Gaussian(1.0), radius=2.0, **o),
    lambda **o: ok.Projection("multiclass_hinge", ok.Gaussian(1.0), radius=2.0, **o),
    lambda **o: ok.Projection("graph_hinge", ok.Gaussian(1.0), radius=2.0, labels=ok.Taxonomy({0: 3, 1: 3, 2: 4, 3: 4}), **o),
    lambda **o: ok.SVMD("hinge", ok.Gaussian(1.0), exact_norms=True, **o),
])
def test_norms_stay_exact(make, chunk):
    model = make(budget=ok.Projecting(9))
    y = MANY if model._current_loss().task == "multiclass" else SIGNS
    progressive(model, X, y, chunk, classes=range(3) if y is MANY else None)
    kernel, A = model._state.kernel, model.dual_coef_
    kappa = np.array([[3.0, 2, 1], [2, 3, 1], [1, 1, 2]]) if model.labels is not None else np.eye(len(A))
    square = np.einsum("li,ij,mj,lm->", A, kernel(model.support_vectors_), A, kappa)
    np.testing.assert_allclose(model.norm_, np.sqrt(square), rtol=1e-8)
    np.testing.assert_allclose(model._state.hypothesis.norms()[1], square, rtol=1e-8)


def test_projections_of_many_zeros_do_not_wear_out():
    """The diagonal of the inverse is kept by sums and differences, which cancel when terms nearly depend on each other."""
    rng = np.random.default_rng(48)
    rows = rng.normal(size=(900, 4)) * (rng.random((900, 4)) > 0.8)
    y = np.where(rows[:, 0] * rows[:, 1] + 0.3 * rng.normal(size=900) > 0, 1, -1)
    model = ok.Perceptron(ok.Polynomial(3), budget=ok.Projecting(30))
    for start in range(0, 900, 50):
        model.partial_fit(rows[start : start + 50], y[start : start + 50])
        span = model._state.function.terms.budget.span
        factor, state = np.zeros((span.n, span.n)), span.state()
        factor[np.triu_indices(span.n)] = state["factor"]
        exact = (np.linalg.inv(factor) ** 2).sum(axis=1)
        assert np.allclose(state["spikes"][1], exact, rtol=1e-5)
        assert (np.abs(state["spikes"][1] - exact) <= state["wear"] + 1e-9 * exact).all()
        copy = pickle.loads(pickle.dumps(model))
    same_state(model.partial_fit(rows, y), copy.partial_fit(rows, y))


def test_projecting_through_folds_and_wipes():
    """Strong decay folds the frame again and again; step * regularization = 1 forgets everything each time."""
    for regularization in (2.9, 1 / 0.3):
        model = ok.NORMA("squared", ok.Gaussian(1.0), step=0.3, regularization=regularization, budget=ok.Projecting(5))
        rule = gradient(0.3, regularization, lambda score, y: score - y)
        points, y = np.tile(X, (3, 1)), np.tile(NUMBERS, 3)
        expected, _ = reference.learn(points, y, rule, reference.projecting(5), ok.Gaussian(1.0))
        np.testing.assert_allclose(progressive(model, points, y, 77), expected[:, 0], rtol=1e-7, atol=1e-9)


def test_terms_that_fade_to_nothing_leave_the_span():
    model = ok.NORMA("hinge", ok.Gaussian(1.0), step=1.0, regularization=0.9999999, budget=ok.Projecting(5))
    model.partial_fit(X[:6], SIGNS[:6])
    for _ in range(60):
        model.partial_fit(np.full((9, 3), 50.0), np.ones(9, dtype=int))
        model._state.engine._check()


# ---- Projectron ---------------------------------------------------------------------------------------------------


@each("chunk", CHUNKS)
@each("size, tolerance", [(1, 0.0), (10, 0.0), (200, 0.2)])
@each("margin_tolerance", [None, 0.5, 0.05])
def test_projectron(size, tolerance, margin_tolerance, chunk):
    model = ok.Projectron(ok.Gaussian(1.0), aggressive=margin_tolerance is not None, tolerance=tolerance, budget=size,
                          margin_tolerance=margin_tolerance or 1.0)
    scores = progressive(model, X, SIGNS, chunk)
    expected, naive = reference.projectron(X, SIGNS, ok.Gaussian(1.0), size, tolerance, margin_tolerance)
    np.testing.assert_allclose(scores, expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(model.support_vectors_, naive.X)
    np.testing.assert_allclose(model.dual_coef_, naive.A.T, rtol=1e-7, atol=1e-8)


@each("aggressive", [False, True])
def test_projectron_with_many_classes(aggressive):
    """With all points among the terms it is the Perceptron; with few it still learns, and two classes are the pair."""
    if not aggressive:
        scores = ok.Projectron(ok.Gaussian(1.0), budget=500).progressive(X, MANY, classes=range(3))
        expected = ok.Perceptron(ok.Gaussian(1.0)).progressive(X, MANY, classes=range(3))
        np.testing.assert_allclose(scores, expected, atol=1e-9)
    model = ok.Projectron(ok.Gaussian(1.0), aggressive=aggressive, budget=25)
    scores = progressive(model, X, MANY, 31, classes=range(3))
    assert np.mean(scores.argmax(axis=1)[80:] == MANY[80:]) > 0.75
    assert model.n_terms_ == 25
    single = ok.Projectron(ok.Gaussian(1.0), aggressive=aggressive, budget=25)
    np.testing.assert_allclose(progressive(single, X, MANY, 1, classes=range(3)), scores, rtol=1e-9, atol=1e-9)


# ---- Merging ------------------------------------------------------------------------------------------------------


@covering(2)
@each("chunk", CHUNKS)
@each("size", [1, 2, 12])
@each("learner", LEARNERS)
def test_merging(learner, size, chunk):
    make, y, rule, outputs = LEARNERS[learner]
    model = make(ok.Gaussian(1.0), ok.Merging(size))
    scores = progressive(model, X, y, chunk, **many_classes(y))
    expected, naive = reference.learn(X, y, rule, reference.merging(size, ok.Gaussian(1.0)), ok.Gaussian(1.0), outputs)
    np.testing.assert_allclose(scores.reshape(len(X), -1), expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(model.support_vectors_, naive.X, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(model.dual_coef_, naive.A.T, rtol=1e-5, atol=1e-5)
    assert model.n_terms_ == size


@each("learner", ["hinge", "many"])
def test_merging_with_constants(learner):
    make, y, rule, outputs = LEARNERS[learner]
    kernel = 2.0 * (ok.Gaussian(0.8) + 0.5) + 0.2
    scores = progressive(make(kernel, ok.Merging(8)), X, y, 30, **many_classes(y))
    expected, _ = reference.learn(X, y, rule, reference.merging(8, ok.Gaussian(0.8), 0.6), kernel, outputs)
    np.testing.assert_allclose(scores.reshape(len(X), -1), expected, rtol=1e-5, atol=1e-5)


@each("seed", range(6))
def test_a_merger_never_loses_more_than_a_drop(seed):
    """After each example: how far f is from what it would be without a budget, and from dropping the smallest term."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(150, 2)).round(rng.choice([0, 1, 5]))
    y = np.where(points[:, 0] > points[:, 1] ** 2, 1, -1)
    kernel = ok.Gaussian(rng.choice([0.1, 0.5, 2.0])) + rng.choice([0.0, 1.0])
    model = ok.PassiveAggressive("hinge", kernel, penalty=rng.choice([0.1, 1.0]), budget=ok.Merging(int(rng.integers(1, 12))))
    before, mergers = reference.Model(kernel), 0
    for x, label in zip(points, y):
        score = model.progressive(x[None], [label], classes=[-1, 1])[0]
        full = before.copy()
        alpha = label * min(model.penalty, max(0.0, 1 - label * score) / kernel(x[None])[0, 0])
        if alpha:
            full.X.append(x)
            full.A = np.vstack([full.A, [[alpha]]])
        after = reference.Model(kernel)
        after.X, after.A = list(model.support_vectors_), model.dual_coef_.T
        if len(full.X) > model.budget.size:
            mergers += 1
            smallest = reference.oldest_least(np.abs(full.A[:, 0]))
            assert after.distance(full) <= full.without(smallest).distance(full) + 1e-12
        before = after
    assert mergers > 10


@each("dtype", [np.float64, np.float32])
def test_merging_bears_duplicates_and_far_points(dtype):
    rng = np.random.default_rng(4)
    points = rng.normal(size=(8, 2))[rng.integers(0, 8, 500)].astype(dtype)
    points[::50] += 1e4 if dtype == np.float64 else 30.0
    model = ok.NORMA("squared", ok.Gaussian(0.5), step=0.3, regularization=0.01, budget=ok.Merging(12))
    progressive(model, points, np.sin(points[:, 0].astype(float)), 60)
    assert np.isfinite(model.dual_coef_).all() and np.isfinite(model.support_vectors_).all()


@each("make, sentence", [
    (lambda b: ok.NORMA("hinge", "laplacian", budget=b), "needs a Gaussian kernel"),
    (lambda b: ok.NORMA("hinge", ok.Gaussian() + ok.Linear(), budget=b), "needs a Gaussian kernel"),
    (lambda b: ok.NORMA("hinge", lambda x, z: 1.0, budget=b), "needs a Gaussian kernel"),
    (lambda b: ok.ROMMA(ok.Gaussian(), budget=b), "cannot be kept exact"),
    (lambda b: ok.SVMD("hinge", ok.Gaussian(), exact_norms=True, budget=b), "cannot be kept exact"),
    (lambda b: ok.NORMA("graph_hinge", ok.Gaussian(), labels=ok.Taxonomy({1: 0, -1: 0}), budget=b), "delta kernel"),
])
def test_merging_says_what_it_cannot_do(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make(ok.Merging(5)).fit(X, SIGNS)


def test_sparse_rows_cannot_be_merged():
    scipy = pytest.importorskip("scipy.sparse")
    with pytest.raises(TypeError, match="needs dense rows"):
        ok.NORMA("hinge", ok.Gaussian(), budget=ok.Merging(5)).fit(scipy.csr_matrix(X), SIGNS)


# ---- By lot, by age, by need --------------------------------------------------------------------------------------


def test_random_removal_depends_on_seed_and_stream_alone():
    def kept(seed, chunk):
        model = ok.NORMA("hinge", ok.Gaussian(1.0), step=0.3, budget=ok.RandomRemoval(20, seed))
        progressive(model, X, SIGNS, chunk)
        return model.support_vectors_[:, 0].tolist()

    assert kept(0, 1) == kept(0, 7) == kept(0, 110) != kept(1, 110)


def test_random_removal_is_fair():
    """Of n terms each goes with probability 1/n, so terms of age a are left with (1 - 1/n)^a."""
    ages = []
    for seed in range(200):
        model = ok.NORMA(ok.Novelty(1e9), "linear", step=1.0, regularization=0.0, budget=ok.RandomRemoval(10, seed))
        model.partial_fit(np.arange(1.0, 101)[:, None])
        ages += (100 - model.support_vectors_[:, 0]).tolist()
    assert len(ages) == 2000 and 0 in ages
    # 10 terms at ages 0, 1, 2, ... with probability 0.9^a: their mean is 9, with deviation about 10 / sqrt(2000)
    assert abs(np.mean(ages) - 9) < 0.9
    # The youngest may go as well as others, when the next one comes: of 200, 180 are left, with deviation 4.2
    assert 160 < ages.count(1) < 196


@covering(2)
@each("chunk", CHUNKS)
@each("size", [1, 5, 20])
@each("kernel", [ok.Gaussian(1.0), ok.Normalized(ok.Polynomial(2))])
def test_forgetron(kernel, size, chunk):
    model = ok.Forgetron(kernel, budget=size)
    scores = progressive(model, X, SIGNS, chunk)
    expected, naive = reference.forgetron(X, SIGNS, kernel, size)
    np.testing.assert_allclose(scores, expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(model.support_vectors_, naive.X)
    np.testing.assert_allclose(model.dual_coef_, naive.A.T, rtol=1e-8, atol=1e-9)


@each("seed", range(20))
def test_the_bound_of_the_forgetron(seed):
    """No more than 2 |g|^2 + 4 sum of hinge losses of g mistakes, for |g| <= sqrt((B + 1) / log(B + 1)) / 4."""
    rng = np.random.default_rng(seed)
    size, points = int(rng.integers(83, 200)), rng.normal(size=(400, 2))
    y = np.where(points[:, 0] + 0.5 * rng.normal(size=400) > 0, 1, -1)
    mistakes = int(np.sum(y * ok.Forgetron(ok.Gaussian(1.0), budget=size).progressive(points, y) <= 0))
    limit = np.sqrt((size + 1) / np.log(size + 1)) / 4
    for _ in range(20):
        g = reference.Model(ok.Gaussian(1.0))
        g.X = list(points[rng.integers(0, 400, 10)])
        g.A = rng.normal(size=(10, 1)) + np.sign(np.array(g.X)[:, :1])
        g.A *= limit * rng.random() / np.sqrt(g.square())
        losses = np.maximum(0, 1 - y * (ok.Gaussian(1.0)(points, np.array(g.X)) @ g.A)[:, 0])
        assert mistakes <= 2 * g.square() + 4 * losses.sum()


@covering(2)
@each("tighter", [False, True])
@each("size", [1, 8, 20])
@each("learner", ["hinge", "passive-aggressive", "many", "logistic"])
def test_redundant(learner, size, tighter):
    make, y, rule, outputs = LEARNERS[learner]
    oracle = reference.redundant(size, tighter)
    expected, naive = reference.learn(X, y, rule, oracle, ok.Gaussian(1.0), outputs)
    for chunk in CHUNKS:
        model = make(ok.Gaussian(1.0), ok.Redundant(size, tighter))
        scores = progressive(model, X, y, chunk, **many_classes(y))
        np.testing.assert_allclose(scores.reshape(len(X), -1), expected, rtol=1e-9, atol=1e-9)
        np.testing.assert_array_equal(model.support_vectors_, naive.X)


def test_budgets_that_need_labels_say_so():
    for budget, loss in ((ok.Redundant(5), "squared"), (ok.Redundant(5), "novelty"), (ok.Shrinking(5), "squared")):
        with pytest.raises(ValueError, match="classes"):
            ok.NORMA(loss, ok.Gaussian(1.0), budget=budget).fit(X, None if loss == "novelty" else NUMBERS)


class ShrinkingSVMD(ReferenceSVMD):
    """SVMD whose oldest term goes after f and v have been multiplied by phi, as in `reference.forgetron`.

    An update of size a counts for 2 a - a^2 where a mistake of a Perceptron counts for 1.
    """

    def __init__(self, *, size, **shared):
        super().__init__(**shared)
        self.size, self.won, self.damage, self.shrinks = size, 0.0, 0.0, 0

    def _apply_budget(self):
        self.rows = [row for row in self.rows if np.any(row.alpha != 0.0) or np.any(row.beta != 0.0)]
        if not self.rows or self.rows[-1].born != self.t:
            return
        a = min(1.0, abs(self.rows[-1].alpha[0]))
        self.won += a * (2.0 - a)
        if len(self.rows) <= self.size:
            return
        oldest = self.rows[0]
        sigma, value = abs(oldest.alpha[0]), self._evaluate("alpha", self._kernels(oldest.x))[0]

        def psi(phi):
            return (sigma * phi) ** 2 + 2 * sigma * phi * (1 - np.sign(oldest.alpha[0]) * phi * value)

        phi = 1.0
        if psi(1.0) + self.damage > 15 / 32 * self.won:
            low, high = 0.0, 1.0
            for _ in range(100):
                phi = 0.5 * (low + high)
                low, high = (phi, high) if psi(phi) + self.damage <= 15 / 32 * self.won else (low, phi)
            self.shrinks += 1
        self.damage += psi(phi)
        for row in self.rows:
            row.alpha, row.beta = phi * row.alpha, phi * row.beta
        self.rows.pop(0)
        self.dropped = True
        self.ff, self.fv = phi**2 * self.ff, phi**2 * self.fv
        if self.exact_norms:
            self.ff, self.fv = self.inner("alpha", "alpha"), self.inner("alpha", "beta")


@covering(2)
@each("loss", [ok.Hinge(1.0), ok.Hinge(0.0), ok.Logistic(), ok.NuHinge(0.3, 0.5, None)], ids=repr)
@each("step", [ok.MetaDescent(0.3, 0.2, 0.9), ok.MetaDescent(1.0, 0.0, 0.5)], ids=repr)
@each("exact_norms", [False, True])
@each("size", [1, 6, 20])
@each("chunk", CHUNKS)
def test_svmd_shrinks_f_and_v(loss, step, exact_norms, size, chunk):
    model = ok.SVMD(loss, ok.Gaussian(1.0), step=step.rate, meta_step=step.meta_rate, memory=step.memory, regularization=0.1,
                    exact_norms=exact_norms, budget=ok.Shrinking(size))
    scores = progressive(model, X, SIGNS, chunk)
    oracle = ShrinkingSVMD(loss=describe(loss), kernel=describe(ok.Gaussian(1.0)), step=describe(step), regularization=0.1,
                           exact_norms=exact_norms, size=size)
    expected = [oracle.learn(x, y)[0] for x, y in zip(X, SIGNS)]
    np.testing.assert_allclose(scores, expected, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(model.step_, oracle.eta, rtol=1e-8)
    np.testing.assert_allclose(model._state.hypothesis.norms(), (oracle.fv, oracle.ff), rtol=1e-8, atol=1e-9)
    assert oracle.shrinks > 5 or size > 1


def test_shrinking_is_for_gradient_steps_of_two_classes():
    """The Forgetron is NORMA with a step of 1 and no margin; smaller steps count for less."""
    mistake, same = ok.Hinge(margin=0.0), {"step": 1.0, "regularization": 0.0, "budget": ok.Shrinking(5)}
    expected = ok.Forgetron(ok.Gaussian(1.0), budget=5).progressive(X, SIGNS)
    for twin in (ok.NORMA(mistake, ok.Gaussian(1.0), **same), ok.Perceptron(ok.Gaussian(1.0), budget=ok.Shrinking(5))):
        np.testing.assert_array_equal(twin.progressive(X, SIGNS), expected)
    for make in (lambda: ok.SILK("hinge", budget=ok.Shrinking(5)), lambda: ok.ILK(mistake, budget=ok.Shrinking(5)),
                 lambda: ok.PassiveAggressive("hinge", budget=ok.Shrinking(5)), lambda: ok.ROMMA(budget=ok.Shrinking(5)),
                 lambda: ok.Projection("hinge", radius=2.0, budget=ok.Shrinking(5))):
        with pytest.raises(ValueError, match="use it with Perceptron, or Forgetron, NORMA or SVMD"):
            make().fit(X, SIGNS)
    with pytest.raises(ValueError, match="gradient steps of two classes"):
        ok.NORMA("multiclass_hinge", **same).fit(X, SIGNS)


@each("budget", [ok.Redundant(9), ok.Redundant(9, True), ok.Shrinking(9), ok.RandomRemoval(9)], ids=repr)
def test_they_work_on_objects(budget):
    expected = ok.Perceptron(ok.Gaussian(1.0), budget=budget).progressive(X, SIGNS)
    model = ok.Perceptron(lambda x, z: float(np.exp(-np.sum((x - z) ** 2) / 2)), budget=budget)
    np.testing.assert_allclose(progressive(model, list(X), SIGNS, 40), expected, rtol=1e-9, atol=1e-9)


# ---- What all of them must do -------------------------------------------------------------------------------------

BUDGETS = {
    "projecting": ok.Projecting(9),
    "merging": ok.Merging(9),
    "random": ok.RandomRemoval(9, seed=3),
    "redundant": ok.Redundant(9),
    "tighter": ok.Redundant(9, tighter=True),
    "shrinking": ok.Shrinking(9),
}


def learner_for(budget, learner):
    """(model of a kernel and a budget, y): a Perceptron of two classes where no other makes sense."""
    if budget != "shrinking":
        return LEARNERS[learner][:2]
    return (lambda k, b: ok.Perceptron(k, budget=b)), SIGNS


@each("learner", ["hinge", "many"])
@each("budget", BUDGETS)
def test_a_model_may_start_from_another_one(budget, learner):
    make, y = learner_for(budget, learner)
    if budget == "random":
        pytest.skip("its lots depend on when terms came")
    start = make(ok.Gaussian(1.0), None).fit(X[:9], y[:9], **many_classes(y))
    model = make(ok.Gaussian(1.0), BUDGETS[budget]).partial_fit(X[9:], y[9:], initial=start, **many_classes(y))
    model._state.engine._check()
    whole = make(ok.Gaussian(1.0), BUDGETS[budget]).partial_fit(X, y, **many_classes(y))
    np.testing.assert_allclose(model.decision_function(X), whole.decision_function(X), rtol=1e-7, atol=1e-8)


def test_a_start_with_many_classes_may_outnumber_the_budget():
    """The budget is at work while the terms of another model come in: f is what the budget makes of them, one by one."""
    make, y, *_ = LEARNERS["many"]
    for kernel in (ok.Gaussian(1.0), overlap):
        points = X if kernel is not overlap else list(X)
        start = make(kernel, None).fit(points[:60], y[:60], classes=range(3))
        for name in ("projecting", "merging", "redundant"):
            if kernel is overlap and name == "merging":
                continue
            model = make(kernel, BUDGETS[name])
            model.partial_fit(points[:1], y[:1], classes=range(3), initial=start, sample_weight=[0.0])
            model._state.engine._check()
            assert model.n_terms_ == 9
            if name == "projecting":
                naive = reference.Model(ok.Gaussian(1.0), 3)
                for x, row in zip(start.support_vectors_, start.dual_coef_.T):
                    naive.X.append(np.asarray(x))
                    naive.A = np.vstack([naive.A, row])
                    naive = reference.projecting(9)(naive)
                shrink = model.dual_coef_[:, 0] @ naive.A[0] / (naive.A[0] @ naive.A[0])     # the example's own decay
                np.testing.assert_allclose(model.dual_coef_, shrink * naive.A.T, rtol=1e-7, atol=1e-9)


def test_terms_for_all_labels_do_not_start_terms_for_pairs_of_labels():
    """Budgets that share out need a coefficient for every label; those that drop terms keep a pair of labels for each."""
    make, y, *_ = LEARNERS["many"]
    for before in ("projecting", "merging", "redundant"):
        start = make(ok.Gaussian(1.0), BUDGETS[before]).fit(X, y, classes=[2, 0, 1, 5])
        for after in (None, ok.Recent(99), ok.Smallest(99)):
            with pytest.raises(ValueError, match="Terms for pairs of labels. Got Terms instead. Use a budget of the same kind"):
                make(ok.Gaussian(1.0), after).partial_fit(X[:1], y[:1], initial=start, classes=[0, 1, 2, 4, 5])


def overlap(x, z):
    return float(np.exp(-np.sum((x - z) ** 2) / 2))


@each("budget", ["projecting", "redundant", "tighter", "shrinking"])
def test_a_model_of_objects_may_start_from_another_one(budget):
    make, y = learner_for(budget, "hinge")
    start = make(overlap, None).fit(list(X[:9]), y[:9])
    model = make(overlap, BUDGETS[budget]).partial_fit(list(X[9:60]), y[9:60], initial=start)
    model._state.engine._check()
    whole = make(ok.Gaussian(1.0), BUDGETS[budget]).partial_fit(X[:60], y[:60])
    np.testing.assert_allclose(model.decision_function(list(X)), whole.decision_function(X), rtol=1e-7, atol=1e-8)


def test_a_file_whose_factor_and_inverse_differ_is_refused(tmp_path):
    model = ok.NORMA("squared", ok.Gaussian(1.0), budget=ok.Projecting(5)).partial_fit(np.linspace(-2, 2, 30)[:, None], np.ones(30))
    learned = model.__getstate__()
    ok.NORMA.__new__(ok.NORMA).__setstate__(learned)
    learned["_state"]["learned"]["spikes"][1, 2] *= 1.5
    with pytest.raises(ValueError, match="inverse"):
        ok.NORMA.__new__(ok.NORMA).__setstate__(learned)
