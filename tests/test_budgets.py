"""Budgets that look at the kernel, against plain NumPy written from the papers."""
import pickle

import numpy as np
import pytest

import onlinekernels as ok
import reference_budgets as reference
from small_models import same_state

RNG = np.random.default_rng(11)
X = RNG.normal(size=(160, 3))
SIGNS = np.where(X[:, 0] * X[:, 1] + 0.3 * RNG.normal(size=len(X)) > 0, 1, -1)
NUMBERS = np.sin(2 * X[:, 0]) + X[:, 1]
MANY = np.argmax(np.stack([X[:, 0], X[:, 1] ** 2, X[:, 2] + 0.5], axis=1), axis=1)
CHUNKS = [1, 7, 160]


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


@pytest.mark.parametrize("chunk", CHUNKS)
@pytest.mark.parametrize("size, tolerance", [(1, 0.0), (12, 0.0), (30, 0.1)])
@pytest.mark.parametrize("learner", LEARNERS)
def test_projecting(learner, size, tolerance, chunk):
    make, y, rule, outputs = LEARNERS[learner]
    model = make(ok.Gaussian(1.0), ok.Projecting(size, tolerance))
    scores = progressive(model, X, y, chunk, **many_classes(y))
    expected, naive = reference.learn(X, y, rule, reference.projecting(size, tolerance), ok.Gaussian(1.0), outputs)
    np.testing.assert_allclose(scores.reshape(len(X), -1), expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(model.support_vectors_, naive.X)
    np.testing.assert_allclose(model.dual_coef_, naive.A.T, rtol=1e-7, atol=1e-8)
    assert model.n_terms_ == size or tolerance


@pytest.mark.parametrize("kernel", KERNELS)
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


@pytest.mark.parametrize("spread", [0.0, 1e-12, 1e-7, 1e-4])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
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


@pytest.mark.parametrize("seed", range(6))
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


@pytest.mark.parametrize("chunk", [1, 160])
@pytest.mark.parametrize("make", [
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


@pytest.mark.parametrize("chunk", CHUNKS)
@pytest.mark.parametrize("size, tolerance", [(1, 0.0), (10, 0.0), (200, 0.2)])
@pytest.mark.parametrize("margin_tolerance", [None, 0.5, 0.05])
def test_projectron(size, tolerance, margin_tolerance, chunk):
    model = ok.Projectron(ok.Gaussian(1.0), aggressive=margin_tolerance is not None, tolerance=tolerance, budget=size,
                          margin_tolerance=margin_tolerance or 1.0)
    scores = progressive(model, X, SIGNS, chunk)
    expected, naive = reference.projectron(X, SIGNS, ok.Gaussian(1.0), size, tolerance, margin_tolerance)
    np.testing.assert_allclose(scores, expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(model.support_vectors_, naive.X)
    np.testing.assert_allclose(model.dual_coef_, naive.A.T, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("aggressive", [False, True])
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


# ---- What all of them must do -------------------------------------------------------------------------------------

BUDGETS = {
    "projecting": ok.Projecting(9),
}


@pytest.mark.parametrize("learner", ["hinge", "many"])
@pytest.mark.parametrize("budget", BUDGETS)
def test_saved_and_copied_models_continue_bit_for_bit(budget, learner, tmp_path):
    make, y, *_ = LEARNERS[learner]
    model = make(ok.Gaussian(1.0), BUDGETS[budget])
    model.partial_fit(X[:100], y[:100], **many_classes(y))
    model.save(tmp_path / "model.npz")
    others = [ok.load(tmp_path / "model.npz"), pickle.loads(pickle.dumps(model))]
    for rows in (slice(100, 101), slice(101, 160)):
        scores = model.progressive(X[rows], y[rows])
        for other in others:
            np.testing.assert_array_equal(other.progressive(X[rows], y[rows]), scores)
            same_state(model, other)
            other._state.engine._check()


@pytest.mark.parametrize("learner", ["hinge", "many"])
@pytest.mark.parametrize("budget", BUDGETS)
def test_a_model_may_start_from_another_one(budget, learner):
    make, y, *_ = LEARNERS[learner]
    start = make(ok.Gaussian(1.0), None).fit(X[:9], y[:9], **many_classes(y))
    model = make(ok.Gaussian(1.0), BUDGETS[budget]).partial_fit(X[9:], y[9:], initial=start, **many_classes(y))
    model._state.engine._check()
    whole = make(ok.Gaussian(1.0), BUDGETS[budget]).partial_fit(X, y, **many_classes(y))
    np.testing.assert_allclose(model.decision_function(X), whole.decision_function(X), rtol=1e-7, atol=1e-8)
