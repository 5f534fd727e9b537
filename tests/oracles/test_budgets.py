"""Budgets that look at the kernel, against plain NumPy written from the papers."""
import pickle

import numpy as np
import pytest

import onlinekernels as ok
from onlinekernels._core.schema import state_of
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


TREE = ok.Taxonomy({0: 3, 1: 3, 3: 5, 2: 5})
RELATED = np.array([[3.0, 2, 1], [2, 3, 1], [1, 1, 2]])     # of its leaves
CROSS = np.array([[2.0, -1, 0], [-1, 1, 0.4], [0, 0.4, 1]])

# name: (model of a kernel and a budget, y, the oracle's rule, the kernel between labels)
LEARNERS = {
    "hinge": (lambda k, b: ok.NORMA("hinge", k, step=0.3, regularization=0.05, budget=b), SIGNS,
              gradient(0.3, 0.05, hinge), np.eye(1)),
    "squared": (lambda k, b: ok.NORMA("squared", k, step=0.3, regularization=0.02, budget=b), NUMBERS,
                gradient(0.3, 0.02, lambda score, y: score - y), np.eye(1)),
    "passive-aggressive": (lambda k, b: ok.PassiveAggressive("hinge", k, penalty=0.4, budget=b), SIGNS,
                           passive_aggressive(0.4), np.eye(1)),
    "many": (lambda k, b: ok.NORMA("multiclass_hinge", k, step=0.3, regularization=0.05, budget=b), MANY,
             crammer_singer(0.3, 0.05), np.eye(3)),
    "logistic": (lambda k, b: ok.NORMA("multiclass_logistic", k, step=0.3, regularization=0.05, budget=b), MANY,
                 softmax(0.3, 0.05), np.eye(3)),
    "taxonomy": (lambda k, b: ok.NORMA("multiclass_hinge", k, step=0.3, regularization=0.05, budget=b, labels=TREE),
                 MANY, crammer_singer(0.3, 0.05), RELATED),
    "related": (lambda k, b: ok.NORMA("multiclass_logistic", k, step=0.3, regularization=0.05, budget=b,
                                      labels=ok.Labels([0, 1, 2], kernel=CROSS)), MANY, softmax(0.3, 0.05), CROSS),
}


def many_classes(y):
    return {"classes": range(3)} if y is MANY else {}


def test_the_oracle_knows_the_kernel_of_the_taxonomy():
    assert [[TREE.kernel(a, b) for b in range(3)] for a in range(3)] == RELATED.tolist()


# ---- Projecting ---------------------------------------------------------------------------------------------------


@covering(2)
@each("chunk", CHUNKS)
@each("size, tolerance", [(1, 0.0), (12, 0.0), (30, 0.1)])
@each("learner", LEARNERS)
def test_projecting(learner, size, tolerance, chunk):
    make, y, rule, kappa = LEARNERS[learner]
    model = make(ok.Gaussian(1.0), ok.Projecting(size, tolerance))
    scores = progressive(model, X, y, chunk, **many_classes(y))
    expected, naive = reference.learn(X, y, rule, reference.projecting(size, tolerance), ok.Gaussian(1.0), kappa)
    np.testing.assert_allclose(scores.reshape(len(X), -1), expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(model.support_vectors_, naive.X)
    np.testing.assert_allclose(model.dual_coef_, naive.A.T, rtol=1e-7, atol=1e-8)
    assert model.n_terms_ == size or tolerance


@each("chunk", [1, 110])
@each("make", [lambda **o: ok.ROMMA(ok.Gaussian(1.0), **o), lambda **o: ok.ALMA(ok.Gaussian(1.0), **o),
               lambda **o: ok.Projection("hinge", ok.Gaussian(1.0), radius=2.0, **o),
               lambda **o: ok.Projection("multiclass_hinge", ok.Gaussian(1.0), radius=2.0, **o),
               lambda **o: ok.Projection("graph_hinge", ok.Gaussian(1.0), radius=2.0, labels=ok.Taxonomy({0: 3, 1: 3,
                                                                                                          2: 4, 3: 4}),
                                         **o), lambda **o: ok.SVMD("hinge", ok.Gaussian(1.0), exact_norms=True, **o),])
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
    """The diagonal of the inverse is kept by sums and differences, which cancel when terms nearly depend on each
    other."""
    rng = np.random.default_rng(48)
    rows = rng.normal(size=(900, 4)) * (rng.random((900, 4)) > 0.8)
    y = np.where(rows[:, 0] * rows[:, 1] + 0.3 * rng.normal(size=900) > 0, 1, -1)
    model = ok.Perceptron(ok.Polynomial(3), budget=ok.Projecting(30))
    for start in range(0, 900, 50):
        model.partial_fit(rows[start : start + 50], y[start : start + 50])
        span = model._state.function.terms.budget.span
        factor, state = np.zeros((span.n, span.n)), state_of(span)
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


@each("decay", [0.01, 10.0, 1e3, 1e6])
@each("loss", ["squared", "hinge"])
def test_who_is_spanned_does_not_depend_on_chunks(loss, decay):
    """With this many terms on a plane, residuals of candidates become small; below a part of k(x, x) they are rounding,
    and nobody's decision."""
    rng = np.random.default_rng(0)
    rng.normal(size=3000)                       # an order in which the least of 1e-10 made 228 or 231 terms
    points = rng.normal(size=(1500, 2))
    y = np.sin(2 * points[:, 0]) + 0.3 * rng.normal(size=1500)
    y = np.where(y > 0, 1, -1) if loss == "hinge" else y
    models = [ok.NORMA(loss, ok.Gaussian(0.7), step=1.0, regularization=decay / (1 + decay), budget=ok.Projecting(300))
              for _ in range(2)]
    one, many = (np.concatenate([model.progressive(points[i : i + chunk], y[i : i + chunk])
                                 for i in range(0, 1500, chunk)]) for model, chunk in zip(models, (1, 37)))
    np.testing.assert_array_equal(models[0].support_vectors_, models[1].support_vectors_)
    np.testing.assert_allclose(one, many, atol=1e-7)


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


@covering(2)
@each("chunk", CHUNKS)
@each("coherence, size", [(0.7, None), (0.9, 15)])
@each("kernel", [ok.Gaussian(1.0), ok.Polynomial(2)])
@each("learner", LEARNERS)
def test_quantized(learner, kernel, coherence, size, chunk):
    make, y, rule, kappa = LEARNERS[learner]
    points = X / 2.0
    model = make(kernel, ok.Quantized(coherence, size))
    scores = progressive(model, points, y, chunk, **many_classes(y))
    expected, naive = reference.learn(points, y, rule, reference.quantized(coherence, size), kernel, kappa)
    np.testing.assert_allclose(scores.reshape(len(X), -1), expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(model.support_vectors_, naive.X)
    np.testing.assert_allclose(model.dual_coef_, naive.A.T, rtol=1e-12, atol=1e-12)
    assert 1 < model.n_terms_ < len(X) - 9


@covering(2)
@each("chunk", CHUNKS)
@each("size", [1, 2, 12])
@each("kernel", [ok.Gaussian(1.0), ok.Polynomial(2)])
@each("learner", LEARNERS)
def test_absorbing(learner, kernel, size, chunk):
    make, y, rule, kappa = LEARNERS[learner]
    points = X / 2.0
    model = make(kernel, ok.Absorbing(size))
    scores = progressive(model, points, y, chunk, **many_classes(y))
    expected, naive = reference.learn(points, y, rule, reference.absorbing(size), kernel, kappa)
    np.testing.assert_allclose(scores.reshape(len(X), -1), expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(model.support_vectors_, naive.X)
    np.testing.assert_allclose(model.dual_coef_, naive.A.T, rtol=1e-9, atol=1e-9)


def test_a_term_that_absorbs_its_opposite_is_gone():
    model = ok.Perceptron("gaussian", budget=ok.Absorbing(1)).partial_fit([[1.0], [1.0]], [1, -1], classes=[-1, 1])
    assert model.n_terms_ == 0
    model.partial_fit([[1.0], [2.0]], [1, 1])
    model._state.engine._check()
    assert pickle.loads(pickle.dumps(model)).n_terms_ == model.n_terms_ == 1


def test_a_term_that_quantization_wipes_out_is_gone():
    model = ok.Perceptron("linear", budget=ok.Quantized(1.0)).partial_fit([[1.0], [2.0]], [1, -1], classes=[-1, 1])
    assert model.n_terms_ == 0
    model.partial_fit([[-1.0], [3.0], [2.0]], [1, 1, -1])
    model._state.engine._check()
    assert pickle.loads(pickle.dumps(model)).n_terms_ == model.n_terms_ == 1


@covering(2)
@each("chunk", CHUNKS)
@each("size", [1, 2, 12])
@each("learner", LEARNERS)
def test_merging(learner, size, chunk):
    make, y, rule, kappa = LEARNERS[learner]
    model = make(ok.Gaussian(1.0), ok.Merging(size))
    scores = progressive(model, X, y, chunk, **many_classes(y))
    expected, naive = reference.learn(X, y, rule, reference.merging(size, ok.Gaussian(1.0)), ok.Gaussian(1.0), kappa)
    np.testing.assert_allclose(scores.reshape(len(X), -1), expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(model.support_vectors_, naive.X, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(model.dual_coef_, naive.A.T, rtol=1e-5, atol=1e-5)
    assert model.n_terms_ == size


@each("learner", ["hinge", "many", "related"])
def test_merging_with_constants(learner):
    make, y, rule, kappa = LEARNERS[learner]
    kernel = 2.0 * (ok.Gaussian(0.8) + 0.5) + 0.2
    scores = progressive(make(kernel, ok.Merging(8)), X, y, 30, **many_classes(y))
    expected, _ = reference.learn(X, y, rule, reference.merging(8, ok.Gaussian(0.8), 0.6), kernel, kappa)
    np.testing.assert_allclose(scores.reshape(len(X), -1), expected, rtol=1e-5, atol=1e-5)


# ---- By lot, by age, by need --------------------------------------------------------------------------------------


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


@covering(2)
@each("tighter", [False, True])
@each("size", [1, 8, 20])
@each("learner", [name for name in LEARNERS if name != "squared"])
def test_redundant(learner, size, tighter):
    make, y, rule, kappa = LEARNERS[learner]
    oracle = reference.redundant(size, tighter)
    expected, naive = reference.learn(X, y, rule, oracle, ok.Gaussian(1.0), kappa)
    for chunk in CHUNKS:
        model = make(ok.Gaussian(1.0), ok.Redundant(size, tighter))
        scores = progressive(model, X, y, chunk, **many_classes(y))
        np.testing.assert_allclose(scores.reshape(len(X), -1), expected, rtol=1e-9, atol=1e-9)
        np.testing.assert_array_equal(model.support_vectors_, naive.X)


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
    model = ok.SVMD(loss, ok.Gaussian(1.0), step=step.rate, meta_step=step.meta_rate, memory=step.memory,
                    regularization=0.1, exact_norms=exact_norms, budget=ok.Shrinking(size))
    scores = progressive(model, X, SIGNS, chunk)
    oracle = ShrinkingSVMD(loss=describe(loss), kernel=describe(ok.Gaussian(1.0)), step=describe(step),
                           regularization=0.1, exact_norms=exact_norms, size=size)
    expected = [oracle.learn(x, y)[0] for x, y in zip(X, SIGNS)]
    np.testing.assert_allclose(scores, expected, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(model.step_, oracle.eta, rtol=1e-8)
    np.testing.assert_allclose(model._state.hypothesis.norms(), (oracle.fv, oracle.ff), rtol=1e-8, atol=1e-9)
    assert oracle.shrinks > 5 or size > 1


def test_the_forgetron_is_norma_with_a_step_of_1_and_no_margin():
    mistake, same = ok.Hinge(margin=0.0), {"step": 1.0, "regularization": 0.0, "budget": ok.Shrinking(5)}
    expected = ok.Forgetron(ok.Gaussian(1.0), budget=5).progressive(X, SIGNS)
    for twin in (ok.NORMA(mistake, ok.Gaussian(1.0), **same), ok.Perceptron(ok.Gaussian(1.0), budget=ok.Shrinking(5))):
        np.testing.assert_array_equal(twin.progressive(X, SIGNS), expected)


def test_a_file_whose_factor_and_inverse_differ_is_refused(tmp_path):
    model = ok.NORMA("squared", ok.Gaussian(1.0), budget=ok.Projecting(5))
    model.partial_fit(np.linspace(-2, 2, 30)[:, None], np.ones(30))
    learned = model.__getstate__()
    ok.NORMA.__new__(ok.NORMA).__setstate__(learned)
    learned["_state"]["learned"]["spikes"][1, 2] *= 1.5
    with pytest.raises(ValueError, match="inverse"):
        ok.NORMA.__new__(ok.NORMA).__setstate__(learned)
