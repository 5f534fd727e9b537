"""NORMA against the plain oracle: every loss, step, budget, offset and kernel, any chunking."""
import numpy as np
import pytest

import onlinekernels as ok
from onlinekernels.base.params import Parameterized
from cases import covering, each
from reference_outputs import ReferenceNORMA

# Some settings diverge; the library and the oracle then do so together.
pytestmark = pytest.mark.filterwarnings("ignore::onlinekernels.LearningWarning")
N, D = 36, 3
GRAM = (lambda A: A @ A.T)(np.random.default_rng(5).normal(size=(N, 4)))


def shared_sign(x, z):
    """A kernel of the tests' own: the share of coordinates with equal signs, plus a product."""
    return float(np.mean(np.sign(x) == np.sign(z))) + 0.1 * float(x[0] * z[0])


LOSSES = [ok.Hinge(1.0), ok.Hinge(0.0), ok.NuHinge(0.3, 0.5, None), ok.NuHinge(0.3, 0.5, 0.2), ok.Logistic(),
          ok.Novelty(0.4), ok.NuNovelty(0.2, 0.3, None), ok.NuNovelty(0.2, 0.3, 0.1), ok.Squared(), ok.Absolute(),
          ok.Quantile(0.3), ok.Insensitive(0.2), ok.NuInsensitive(0.3, 0.5, None), ok.NuInsensitive(0.3, 0.5, 0.3),
          ok.SquaredInsensitive(0.3), ok.Huber(0.7), ok.NuHuber(0.3, 0.4, None), ok.NuHuber(0.3, 0.4, 0.1),
          ok.NuHinge(0.3, 0.5, "log"), ok.NuInsensitive(0.3, 0.5, "log")]
KERNELS = [ok.Linear(), 0.5 * ok.Linear(), ok.Gaussian(1.3), ok.Polynomial(3, 0.3, 1.0), ok.Laplacian(0.7),
           ok.Constant(0.7), ok.Gaussian(0.9) + ok.Noise(0.5), ok.Normalized(ok.Polynomial(2)), ok.Precomputed(GRAM),
           ok.Gaussian(2) + 0.1 * ok.Linear() + ok.Constant(),
           ok.Gaussian(2) * ok.Polynomial(2) + ok.Laplacian(0.5) * ok.Gaussian(1.0),
           ok.Normalized(ok.Linear() + ok.Constant(0.3)) * ok.Gaussian(1.5) + 0.2 * ok.Laplacian(1.0), shared_sign,
           ok.Gaussian(1.0) + shared_sign]
STEPS = [ok.Fixed(0.2), ok.InverseSqrt(0.4), ok.Decaying(0.3, 5)]
BUDGETS = [ok.Unlimited(), ok.Recent(7), ok.Window(9), ok.Smallest(6), ok.Sublinear(0.6, 4)]


def describe(noun):
    """A noun of the library as the oracle's plain data."""
    if not isinstance(noun, Parameterized):
        return noun
    if type(noun).__name__ == "Custom":
        return noun.function
    params = {name: describe(value) for name, value in noun.get_params(deep=False).items()}
    return type(noun).__name__, params


def stream(loss, kernel, seed, n=N):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D))
    if isinstance(kernel, ok.Precomputed):
        X = rng.integers(0, len(GRAM), size=(n, 1)).astype(float)
    X[n // 3] *= isinstance(kernel, ok.Precomputed)  # of 0 with itself the linear kernel is 0
    y = {"binary": rng.choice([-1, 1], n), "regression": rng.normal(size=n), "novelty": None}[loss.task]
    return X, y, rng.uniform(0.5, 2.0, n), rng


def in_chunks(model, X, y, weights, rng, **first):
    """Progressive scores of a stream cut at random places."""
    scores, start = [], 0
    while start < len(X):
        stop = min(len(X), start + int(rng.choice([1, 2, 5, 11, 40])))
        piece = slice(start, stop)
        scores.append(model.progressive(X[piece], None if y is None else y[piece],
                                        sample_weight=None if weights is None else weights[piece], **first))
        start, first = stop, {}
    return np.concatenate(scores)


def assert_same_function(model, oracle, scores, expected, X):
    np.testing.assert_allclose(scores, expected, rtol=1e-10, atol=1e-10)
    predict = model.predict if hasattr(model, "width_") or not hasattr(model, "decision_function") else None
    answers = predict(X) if predict else model.decision_function(X) + getattr(model, "offset_", 0.0)
    np.testing.assert_allclose(answers, [oracle.scores(x)[0] for x in X], rtol=1e-10, atol=1e-10)
    assert model.t_ == oracle.t
    if oracle.scalar is not None:
        scalar = model.margin_ if hasattr(model, "margin_") else model.width_
        np.testing.assert_allclose(scalar, oracle.scalar, rtol=1e-10, atol=1e-12)
    if hasattr(model, "dual_coef_"):
        assert model.n_terms_ == len(oracle.rows)
        np.testing.assert_allclose(model.dual_coef_[0], [row.alpha[0] for row in oracle.rows], rtol=1e-10, atol=1e-12)
    model._state.engine._check()


@covering(2, unless=lambda loss, offset, **_: offset and loss.task == "novelty")
@each("loss", LOSSES, ids=repr)
@each("kernel", KERNELS, ids=repr)
@each("step", STEPS, ids=repr)
@each("budget", BUDGETS, ids=repr)
@each("offset", [False, True])
def test_every_combination_equals_the_oracle(loss, kernel, step, budget, offset):
    seed = 10 * STEPS.index(step) + 2 * BUDGETS.index(budget) + offset
    X, y, weights, rng = stream(loss, kernel, seed)
    weights = weights if seed % 3 == 0 else None
    model = ok.NORMA(loss, kernel, step=step, regularization=0.05, budget=budget, offset=offset)
    oracle = ReferenceNORMA(loss=describe(loss), kernel=describe(kernel), step=describe(step),
                            regularization=0.05, budget=describe(budget), offset=offset)
    classes = {"classes": [-1, 1]} if loss.task == "binary" else {}
    scores = in_chunks(model, X, y, weights, rng, **classes)
    assert_same_function(model, oracle, scores, oracle.run(X, y, weights), X[:5])


@each("seed", range(20))
def test_random_sizes_budgets_and_chunkings(seed):
    rng = np.random.default_rng(100 + seed)
    n, d, size = int(rng.integers(1, 250)), int(rng.integers(1, 40)), int(rng.integers(1, 60))
    loss = [ok.Hinge(), ok.Squared(), ok.NuNovelty(0.3)][seed % 3]
    kernel = ok.Gaussian(float(np.sqrt(d)))
    budget = [ok.Recent(size), ok.Window(size), ok.Smallest(size), ok.Sublinear(0.7, size)][seed % 4]
    X = rng.normal(size=(n, d)) * 10 ** rng.uniform(-1, 0.3) + rng.choice([0.0, 100.0])
    X[rng.random(n) < 0.2] = X[0]                       # duplicates
    y = rng.choice([-1, 1], n) if loss.task == "binary" else rng.normal(size=n)
    lam = float(rng.choice([0.0, 0.01, 1.0]))
    model = ok.NORMA(loss, kernel, step=0.5, regularization=lam, budget=budget)
    oracle = ReferenceNORMA(loss=describe(loss), kernel=describe(kernel), step=("Fixed", {"rate": 0.5}),
                            regularization=lam, budget=describe(budget))
    scores = in_chunks(model, X, y, None, rng, **({"classes": [-1, 1]} if loss.task == "binary" else {}))
    assert_same_function(model, oracle, scores, oracle.run(X, y), X[:3])


@each("dtype", [np.float64, np.float32])
@each("loss", [ok.Hinge(), ok.MulticlassHinge(), ok.MulticlassLogistic()], ids=repr)
@each("average", [False, True])
def test_many_rows_and_few_terms_are_added_up_term_by_term(loss, dtype, average):
    """More rows than terms take another way through the matrix product; a few rows at a time do not."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(40, 3)).astype(dtype)
    y = rng.integers(0, 2 if isinstance(loss, ok.Hinge) else 4, 40)
    kernel = ok.Gaussian(0.8) + 0.3 * ok.Polynomial(2) + ok.Normalized(ok.Linear() + ok.Constant(0.5))
    model = ok.NORMA(loss, kernel, step=0.2, regularization=0.1, offset=True, average=average).fit(X, y)
    rows = rng.normal(size=(500, 3)).astype(dtype)
    few = np.concatenate([model.decision_function(rows[i : i + 8]) for i in range(0, 500, 8)])
    assert 8 < model.n_terms_ < 256
    np.testing.assert_allclose(model.decision_function(rows), few, rtol=0, atol=1e-12 if dtype == np.float64 else 1e-5)
