"""KRLS against the Gaussian process on all rows and its own algorithm in plain NumPy; chunks against single rows."""
import os

import numpy as np
import pytest
from cases import covering, each
from reference_recursive import PLACE, Exact, Pieces, gaussian

import onlinekernels as ok
from onlinekernels import KRLS

RNG = np.random.default_rng(14)
N = 210
X = RNG.normal(size=(N, 3))
NUMBERS = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.2 * RNG.normal(size=N)
SEVERAL = np.column_stack([NUMBERS, X[:, 2], -NUMBERS**2])
WEIGHTS = RNG.choice([0.0, 0.3, 1.0, 2.0, 7.0], size=N)
MANY = np.array(list("cabed"))[np.clip((2 + 1.5 * X[:, 2] + 0.3 * RNG.normal(size=N)).astype(int), 0, 4)]
NEW = RNG.normal(size=(20, 3))
FIRST = {1, 63, 64, 65, 127, 128, 200, N}  # rows after which predictions are compared: before, at and behind places


def exact(kernel=None, **settings):
    """A model that keeps all rows, as good as the exact process."""
    return KRLS(kernel=kernel or ok.Gaussian(1.3), budget=None, tolerance=1e-12, **settings)


def signs(labels, classes):
    """+1 for the label and -1 for all others."""
    return np.where(np.asarray(labels)[:, None] == np.asarray(classes)[None, :], 1.0, -1.0)


# ---- The Gaussian process on all rows -------------------------------------------------------------------------------


@each("memory", [0.999, 0.9, 0.3, 1e-3])
@each("weights", [None, WEIGHTS], ids=["", "weights"])
def test_forgetting_is_a_process_over_time(memory, weights):
    oracle, model = Exact(gaussian(1.3), 0.1, memory), exact(noise=0.1, memory=memory)
    expected, spread = oracle.progressive(X, SEVERAL, weights)
    scores, deviations = model.progressive(X, SEVERAL, sample_weight=weights, return_std=True)
    np.testing.assert_allclose(scores, expected, atol=1e-8)
    np.testing.assert_allclose(deviations, spread, atol=1e-8)
    for t in FIRST:
        part = None if weights is None else weights[:t]
        mean, covariance = oracle.given(X[:t], SEVERAL[:t], part).posterior(NEW)
        model = exact(noise=0.1, memory=memory).partial_fit(X[:t], SEVERAL[:t], sample_weight=part)
        ours, deviations = model.predict(NEW, return_std=True)
        np.testing.assert_allclose(ours, mean, atol=1e-8)
        np.testing.assert_allclose(deviations, np.sqrt(np.diag(covariance)), atol=1e-8)


SEEDS = range(200 if os.environ.get("ONLINEKERNELS_THOROUGH") else 2)
PATHS = {
    "normal": lambda rng, n, d: rng.normal(size=(n, d)),
    "heavy": lambda rng, n, d: rng.standard_t(3, size=(n, d)),
    "uniform": lambda rng, n, d: rng.uniform(-1, 1, size=(n, d)),
    "walk": lambda rng, n, d: np.cumsum(0.2 * rng.normal(size=(n, d)), axis=0),
    "line": lambda rng, n, d: np.linspace(0, rng.uniform(1, 30), n)[:, None] * np.ones(d),
}


@pytest.mark.parametrize("path", PATHS)
def test_the_exact_process_whatever_the_rows(path):
    """Rows that earlier ones nearly determine, and rows far beyond all of them, in any order: rounding is not
    amplified."""
    n, errors = 256, []
    for seed in [*SEEDS, 18]:
        for d, width in ((1, 0.03), (1, 0.3), (1, 3.0), (2, 1.0)):
            rng = np.random.default_rng(seed)
            rows = PATHS[path](rng, n, d)
            new, noise = np.vstack([rows[::8], rows[::8] + 0.1 * width]), (1e-6, 1e-3, 0.1)[seed % 3]
            y = np.sin(2 * rows[:, 0] / max(width, 1)) + np.sqrt(noise) * rng.normal(size=n)
            mean, _ = Exact(gaussian(width), noise).given(rows, y).posterior(new)
            model = exact(ok.Gaussian(width), noise=noise).partial_fit(rows, y)
            errors.append((np.abs(model.predict(new) - mean[:, 0]).max() * min(1.0, 1e3 * noise), (seed, d, width)))
            model._state.engine._check()
    assert max(errors)[0] < 1e-2, max(errors)  # narrow kernels, whose own rounding is 1e-12, are the worst
    assert np.median([error for error, _ in errors]) < 1e-5


KERNELS = {"laplacian": (ok.Laplacian(0.5), X), "sum": (ok.Gaussian(1.0) + 0.3 * ok.Linear() + ok.Constant(2.0), X),
           "additive": (ok.AdditiveExponential(0.7), X), "normalized": (ok.Normalized(ok.Polynomial(2)), X),
           "linear": (ok.Linear(), X), "scaled linear": (0.3 * ok.Linear(), X),
           "linear points": (ok.Linear() + ok.Constant(0.5), X), "far": (ok.Gaussian(1.3), X + 1000.0),
           "precomputed": (ok.Precomputed(gaussian(1.3)(X, X)), np.arange(N)[:, None])}


@covering(1)
@each("name", KERNELS)
@each("memory", [1.0, 0.95])
def test_any_kernel_is_the_prior_of_a_process(name, memory):
    kernel, rows = KERNELS[name]
    scores, deviations = exact(kernel, memory=memory).progressive(rows, NUMBERS, return_std=True)
    mean, spread = Exact(lambda a, b: np.asarray(kernel(a, b)), 0.1, memory).progressive(rows, NUMBERS)
    np.testing.assert_allclose(scores, mean[:, 0], atol=1e-6)
    np.testing.assert_allclose(deviations, spread, atol=1e-6)


@each("seed", range(16))
def test_a_budget_against_the_oracle(seed):
    """Streams of random sizes, with copies of rows, weights and several targets or without, under random parameters."""
    rng = np.random.default_rng(seed)
    n, budget = int(rng.integers(150, 300)), 1 if seed == 0 else int(rng.integers(20, 61))
    memory, tolerance, noise = rng.choice([1.0, 0.999, 0.97]), rng.choice([1e-3, 1e-2, 0.3]), rng.choice([0.05, 0.3])
    width, outputs = rng.uniform(0.3, 2.0), int(rng.integers(1, 4))
    rows = rng.normal(size=(n, 2))
    if seed % 2:
        rows = rows[rng.integers(n // 3, size=n)]
    y = np.sin((rows @ rng.normal(size=2))[:, None] * np.arange(1, outputs + 1)) + 0.2 * rng.normal(size=(n, outputs))
    y = y[:, 0] if outputs == 1 else y
    weights = rng.choice([0.0, 0.5, 1.0, 3.0], size=n) if seed % 3 == 0 else None
    oracle = Pieces(gaussian(width), noise, memory, budget, tolerance)
    mean, spread = oracle.progressive(rows, y, weights)
    model = KRLS(kernel=ok.Gaussian(width), noise=noise, memory=memory, budget=budget, tolerance=tolerance)
    scores, deviations = model.progressive(rows, y, sample_weight=weights, return_std=True)
    np.testing.assert_allclose(scores.reshape(mean.shape), mean, atol=1e-7)
    np.testing.assert_allclose(deviations, spread, atol=1e-7)
    np.testing.assert_array_equal(model.support_vectors_, oracle.points())
    new = rng.normal(size=(10, 2))
    mean, covariance = oracle.posterior(new)
    ours, deviations = model.predict(new, return_std=True)
    np.testing.assert_allclose(ours.reshape(mean.shape), mean, atol=1e-7)
    np.testing.assert_allclose(deviations, np.sqrt(np.diag(covariance)), atol=1e-7)
    plain = gaussian(width)(new, model.support_vectors_) @ np.atleast_2d(model.dual_coef_).T
    np.testing.assert_allclose(plain, mean, atol=1e-7)
    assert model.n_terms_ <= budget + PLACE - 1
    model._state.engine._check()


# ---- Chunks -----------------------------------------------------------------------------------------------------


def sparse(rows):
    return pytest.importorskip("scipy.sparse").csr_matrix(np.where(rows > 0.3, rows, 0.0))


def same_up_to_rounding(model, other, tolerance=1e-8):
    """Scores, points, coefficients and all numbers of the state."""
    first, second = model._state.hypothesis.state(), other._state.hypothesis.state()
    assert first.keys() == second.keys()
    for name, value in first.items():
        if isinstance(value, np.ndarray) and value.dtype.kind == "f":
            scale = np.abs(value).max(initial=1.0)
            np.testing.assert_allclose(second[name], value, rtol=tolerance, atol=tolerance * scale, err_msg=name)
        elif isinstance(value, float):
            assert abs(second[name] - value) <= tolerance * max(1.0, abs(value)), name
        else:
            np.testing.assert_equal(second[name], value, err_msg=name)


@each("kernel", [ok.Gaussian(1.3), ok.Linear()])
def test_a_checkpoint_belongs_to_its_last_row(kernel):
    """Also in the middle of a piece, as in an ensemble, whose pieces do not end where its members' checkpoints are."""
    for loss, y in (("squared", SEVERAL[:, 0]), ("multiclass_squared", MANY)):
        alone, model = (KRLS(loss, kernel=kernel, budget=20) for _ in range(2))
        assert alone.partial_fit(X[:PLACE], y[:PLACE])._state.function.root.n == 0
        model.partial_fit(X[:37], y[:37])
        stack = ok.Stacking.from_fitted({"one": model}).partial_fit(X[37:], y[37:])
        alone.partial_fit(X[PLACE:], y[PLACE:])
        member = stack.named_members_["one"]
        member._state.engine._check()
        same_up_to_rounding(alone, member, 1e-9)


@each("memory", [1.0, 0.98])
def test_classes_are_a_process_for_each(memory):
    classes = np.unique(MANY)
    oracle = Exact(gaussian(1.3), 0.3, memory)
    expected, spread = oracle.progressive(X, signs(MANY, classes))
    model = exact(loss="multiclass_squared", noise=0.3, memory=memory)
    scores, deviations = model.progressive(X, MANY, classes, return_std=True)
    np.testing.assert_allclose(scores, expected, atol=1e-8)
    np.testing.assert_allclose(deviations, spread, atol=1e-8)


@each("keywords", [{"budget": None, "tolerance": 1e-10}, {"memory": 0.97, "budget": 200}, {"kernel": ok.Linear()},],
      ids=["all", "memory", "linear"])
@each("chunk", [1, 11, N])
def test_a_class_that_joins_was_always_minus_one(keywords, chunk):
    order = np.argsort(np.concatenate([[list("cabed").index(label) + RNG.integers(2) for label in MANY]]),
                       kind="stable")
    rows, y = X[order], MANY[order]
    keywords = {"kernel": ok.Gaussian(1.3), "loss": "multiclass_squared", "noise": 0.3, **keywords}
    told, growing = KRLS(**keywords), KRLS(**keywords)
    seen = []
    for t in range(0, N, chunk):
        part = slice(t, t + chunk)
        expected = told.progressive(rows[part], y[part], classes=list("abcde"))
        scores = growing.progressive(rows[part], y[part])
        for i, label in enumerate(y[part]):
            known = [list("abcde").index(one) for one in seen]
            columns = [growing.classes_.tolist().index(one) for one in seen]
            np.testing.assert_allclose(scores[i, columns], expected[i, known], atol=1e-9)
            seen += [label] if label not in seen else []
    assert len(seen) == 5
    columns = [list("abcde").index(label) for label in growing.classes_]
    np.testing.assert_allclose(growing.decision_function(NEW), told.decision_function(NEW)[:, columns], atol=1e-9)
    np.testing.assert_allclose(growing.predict_proba(NEW), told.predict_proba(NEW)[:, columns], atol=1e-9)
    assert np.array_equal(growing.predict(NEW), told.predict(NEW))
    for model in (told, growing):
        model._state.engine._check()
