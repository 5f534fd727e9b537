"""KRLS against the Gaussian process on all rows and its own algorithm in plain NumPy; chunks against single rows."""
import copy
import os
import threading

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


@each("noise", [0.05, 1.0])
@each("chunk", [1, 50, N])
def test_it_is_scikit_learns_gaussian_process(noise, chunk):
    process = pytest.importorskip("sklearn.gaussian_process")
    kernel = process.kernels.RBF(1.3, "fixed")
    model = exact(noise=noise)
    parts = [model.progressive(X[i : i + chunk], NUMBERS[i : i + chunk], return_std=True) for i in range(0, N, chunk)]
    scores, deviations = (np.concatenate(part) for part in zip(*parts))
    for t in range(1, N, 3 if chunk == N else 37):
        theirs = process.GaussianProcessRegressor(kernel, alpha=noise, optimizer=None, normalize_y=False)
        theirs.fit(X[:t], NUMBERS[:t])
        mean, deviation = theirs.predict(X[t : t + 1], return_std=True)
        np.testing.assert_allclose([scores[t], deviations[t]], [mean[0], deviation[0]], atol=1e-6)
    assert (scores[0], deviations[0]) == (0.0, 1.0)


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
    """Rows that earlier ones nearly determine, and rows far beyond all of them, in any order: rounding is not amplified."""
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


def test_points_that_all_others_determine_leave():
    """On a line each row is new to those before it, and those after it determine it: points can be told apart all the same."""
    line = np.linspace(0, 20, 640)[:, None]
    model = exact(ok.Gaussian(1.0), noise=1e-3).partial_fit(line, np.sin(line[:, 0]))
    gram = gaussian(1.0)(model.support_vectors_, model.support_vectors_)
    assert 20 < model.n_terms_ < 100 and 1.0 / np.diag(np.linalg.inv(gram)).max() > 0.5e-11
    np.testing.assert_allclose(model.predict(line), np.sin(line[:, 0]), atol=0.01)


KERNELS = {
    "laplacian": (ok.Laplacian(0.5), X),
    "sum": (ok.Gaussian(1.0) + 0.3 * ok.Linear() + ok.Constant(2.0), X),
    "additive": (ok.AdditiveExponential(0.7), X),
    "normalized": (ok.Normalized(ok.Polynomial(2)), X),
    "linear": (ok.Linear(), X),
    "scaled linear": (0.3 * ok.Linear(), X),
    "linear points": (ok.Linear() + ok.Constant(0.5), X),
    "far": (ok.Gaussian(1.3), X + 1000.0),
    "precomputed": (ok.Precomputed(gaussian(1.3)(X, X)), np.arange(N)[:, None]),
}


@covering(1)
@each("name", KERNELS)
@each("memory", [1.0, 0.95])
def test_any_kernel_is_the_prior_of_a_process(name, memory):
    kernel, rows = KERNELS[name]
    scores, deviations = exact(kernel, memory=memory).progressive(rows, NUMBERS, return_std=True)
    mean, spread = Exact(lambda a, b: np.asarray(kernel(a, b)), 0.1, memory).progressive(rows, NUMBERS)
    np.testing.assert_allclose(scores, mean[:, 0], atol=1e-6)
    np.testing.assert_allclose(deviations, spread, atol=1e-6)


@each("kind", ["dense", "sparse", "single"])
def test_the_linear_kernel_is_bayesian_linear_regression(kind):
    """The textbook: precision I + X^T X / noise, whatever the budget."""
    rows = np.where(X > 0, X, 0.0).astype(np.float32).astype(float)
    given = pytest.importorskip("scipy.sparse").csr_matrix(rows) if kind == "sparse" else rows
    given = rows.astype(np.float32) if kind == "single" else given
    model = KRLS(kernel=2.0 * ok.Linear(), noise=0.2, budget=3).partial_fit(given[:100], NUMBERS[:100])
    model.partial_fit(given[100:], NUMBERS[100:])
    precision = np.eye(3) / 2.0 + rows.T @ rows / 0.2
    weights = np.linalg.solve(precision, rows.T @ NUMBERS / 0.2)
    mean, deviations = model.predict(given[:20], return_std=True)
    np.testing.assert_allclose(model.coef_.ravel(), weights, rtol=1e-8)
    np.testing.assert_allclose(mean, rows[:20] @ weights, atol=1e-8)
    variance = np.sum(rows[:20].T * np.linalg.solve(precision, rows[:20].T), axis=0)
    np.testing.assert_allclose(deviations, np.sqrt(variance), atol=1e-8)


def test_two_weights_and_a_double_row():
    """A weight divides the noise: two rows with noise s are one with noise s / 2; a weight of 0 is time that passes."""
    once = exact().partial_fit(X, NUMBERS, sample_weight=np.full(N, 2.0))
    half = exact(noise=0.05).partial_fit(X, NUMBERS)
    twice = exact().partial_fit(np.repeat(X, 2, axis=0), np.repeat(NUMBERS, 2))
    for other in (half, twice):
        np.testing.assert_allclose(once.predict(NEW, return_std=True), other.predict(NEW, return_std=True), atol=1e-6)
    left_out = exact().partial_fit(X, NUMBERS, sample_weight=WEIGHTS)
    without = exact().partial_fit(X[WEIGHTS > 0], NUMBERS[WEIGHTS > 0], sample_weight=WEIGHTS[WEIGHTS > 0])
    np.testing.assert_allclose(left_out.predict(NEW, return_std=True), without.predict(NEW, return_std=True), atol=1e-8)
    fading = exact(memory=0.5).partial_fit(X[:1], NUMBERS[:1])
    before = fading.predict(X[:1])[0]
    fading.partial_fit(X[:4], NUMBERS[:4], sample_weight=np.zeros(4))
    np.testing.assert_allclose(fading.predict(X[:1]), before * 0.5**2)


def test_a_weight_of_next_to_nothing_says_nothing():
    weights = np.where(WEIGHTS > 1.0, 1.0, 1e-310)
    model = KRLS(budget=20).partial_fit(X, NUMBERS, sample_weight=weights)
    expected = KRLS(budget=20).partial_fit(X, NUMBERS, sample_weight=np.where(WEIGHTS > 1.0, 1.0, 0.0))
    np.testing.assert_allclose(model.predict(NEW, return_std=True), expected.predict(NEW, return_std=True), atol=1e-12)
    model._state.engine._check()


# ---- The algorithm with a budget ----------------------------------------------------------------------------------


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


def test_of_equals_the_older_one_goes():
    """Points that are alike in all that matters: on a circle, all with the same target."""
    angles = 2 * np.pi * np.arange(PLACE) / PLACE
    circle = np.column_stack([np.cos(angles), np.sin(angles)])[RNG.permutation(PLACE)]
    oracle = Pieces(gaussian(0.05), 0.1, 1.0, 40)
    oracle.progressive(circle, np.ones(PLACE))
    model = KRLS(kernel=ok.Gaussian(0.05), budget=40).partial_fit(circle, np.ones(PLACE))
    np.testing.assert_array_equal(model.support_vectors_, oracle.points())
    far = np.arange(PLACE)[:, None] * 100.0
    model = KRLS(kernel=ok.Gaussian(0.5), budget=40).partial_fit(far, np.ones(PLACE))
    np.testing.assert_array_equal(model.support_vectors_, far[24:])


def test_points_that_are_known_do_not_join():
    """Rows that repeat are one point; a tolerance asks for more that is new."""
    few = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    model = KRLS(kernel=ok.Gaussian(1.0)).partial_fit(few[np.arange(PLACE) % 3], np.arange(PLACE) % 3)
    assert model.n_terms_ == 3 and {tuple(point) for point in model.support_vectors_} == {tuple(point) for point in few}
    line = np.linspace(0.0, 1.0, PLACE)[:, None]
    models = [KRLS(kernel=ok.Gaussian(0.2), tolerance=tolerance).fit(line, line[:, 0]) for tolerance in (0, 1e-12, 1e-3, 0.5)]
    sizes = [model.n_terms_ for model in models]
    assert sizes[0] == sizes[1] > sizes[2] > sizes[3] > 1


# ---- Chunks -----------------------------------------------------------------------------------------------------


def near(x, z):
    """A kernel on anything that has numbers in it."""
    return float(np.exp(-0.5 * np.sum((np.asarray(x) - np.asarray(z)) ** 2)))


def sparse(rows):
    return pytest.importorskip("scipy.sparse").csr_matrix(np.where(rows > 0.3, rows, 0.0))


STREAMS = {"gaussian": (ok.Gaussian(1.3), X), "objects": (near, X), "sparse": (ok.Gaussian(1.3) + 0.5, sparse),
           **{name: KERNELS[name] for name in ("linear", "precomputed")}}
SETTINGS = {"budget": ({"budget": 25}, NUMBERS), "memory": ({"budget": 25, "memory": 0.97}, NUMBERS),
            "classes": ({"loss": "multiclass_squared", "budget": 30, "noise": 0.3}, MANY)}


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


@each("setting", ["budget", "memory", "classes"])
@each("stream", ["gaussian", "objects", "linear", "sparse", "precomputed"])
def test_what_predicting_a_row_computes_serves_learning_it(stream, setting):
    """Whatever is predicted in between, before and behind checkpoints: what is learned is the same, bit for bit."""
    (kernel, rows), (keywords, y) = STREAMS[stream], SETTINGS[setting]
    rows = rows(X) if callable(rows) else rows
    looked, alone = (KRLS(kernel=kernel, **keywords).partial_fit(rows[:50], y[:50]) for _ in range(2))
    for t in range(50, 150):
        row, other = rows[t : t + 1], rows[t - 7 : t - 6]
        scores = looked.decision_function(row) if y is MANY else looked.predict(row)
        if t % 3 == 0:
            looked.predict(other)
        if t % 5 == 0:
            looked.predict(rows[:9])
        expected = alone.progressive(row, y[t : t + 1])
        np.testing.assert_allclose(looked.progressive(row, y[t : t + 1])[0], expected[0], rtol=0, atol=0)
        if scores.shape == expected.shape:
            np.testing.assert_allclose(scores, expected, rtol=1e-9, atol=1e-9)
    fixed = rows[3:4]
    for t in range(150, 195, 3):  # what was computed for a row before others were learned is not taken for what it is now
        looked.predict(fixed)
        for model in (looked, alone):
            model.partial_fit(rows[t : t + 3], y[t : t + 3])
        answers = [model.decision_function(fixed) if y is MANY else model.predict(fixed) for model in (looked, copy.deepcopy(looked))]
        assert np.array_equal(*answers)
        for model in (looked, alone):
            model.learn_one(rows[3:4][0], y[3]) if stream in ("gaussian", "linear") else model.partial_fit(fixed, y[3:4])
        answers = [model.decision_function(fixed) if y is MANY else model.predict(fixed) for model in (looked, copy.deepcopy(looked))]
        assert np.array_equal(*answers)
    looked._state.engine._check()
    first, second = looked._state.hypothesis.state(), alone._state.hypothesis.state()
    assert all(np.array_equal(value, second[name]) for name, value in first.items() if isinstance(value, np.ndarray))


@each("points", [100, 300])
def test_one_row_is_predicted_as_many_are(points):
    """With few points by its coordinates, with many by an expansion; always with the same bits."""
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(2 * points, 5))
    model = KRLS(kernel=ok.Gaussian(1.0), budget=points, memory=0.999).partial_fit(rows, np.sin(rows[:, 0]))
    many = model.predict(rows[:40])
    singly = [model.predict_one(row) for row in rows[:40]]
    np.testing.assert_allclose(singly, many, rtol=0, atol=1e-9)
    assert singly == [model.predict_one(row) for row in rows[:40]] and (model.predict(rows[:1]) == singly[0]).all()


@each("kernel", [ok.Gaussian(1.3), ok.Linear()])
def test_threads_that_look_at_a_checkpoint_see_it_carried_out(kernel):
    """The rows of a checkpoint are pending until somebody comes; of several threads one carries it out, and nobody sees less."""
    for loss, y in (("squared", SEVERAL), ("multiclass_squared", MANY)):
        model, twin = (KRLS(loss, kernel=kernel, budget=20).partial_fit(X[:128], y[:128]) for _ in range(2))
        function = model._state.function
        assert function.root.n == PLACE         # closing a piece carries nothing out
        expected, seen, gate = twin.predict(NEW[:1]), [], threading.Barrier(4)

        def look(model=model, seen=seen, gate=gate):
            gate.wait()
            seen.append(model.predict(NEW[:1]))

        threads = [threading.Thread(target=look) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(seen) == 4 and all(np.array_equal(answer, expected) for answer in seen) and function.root.n == 0
        model._state.engine._check()
        same_up_to_rounding(model.partial_fit(X[128:], y[128:]), twin.partial_fit(X[128:], y[128:]), 1e-12)


# ---- Classes ----------------------------------------------------------------------------------------------------


@each("memory", [1.0, 0.98])
def test_classes_are_a_process_for_each(memory):
    classes = np.unique(MANY)
    oracle = Exact(gaussian(1.3), 0.3, memory)
    expected, spread = oracle.progressive(X, signs(MANY, classes))
    model = exact(loss="multiclass_squared", noise=0.3, memory=memory)
    scores, deviations = model.progressive(X, MANY, classes, return_std=True)
    np.testing.assert_allclose(scores, expected, atol=1e-8)
    np.testing.assert_allclose(deviations, spread, atol=1e-8)


@each("keywords", [
    {"budget": None, "tolerance": 1e-10}, {"memory": 0.97, "budget": 200}, {"kernel": ok.Linear()},
], ids=["all", "memory", "linear"])
@each("chunk", [1, 11, N])
def test_a_class_that_joins_was_always_minus_one(keywords, chunk):
    order = np.argsort(np.concatenate([[list("cabed").index(label) + RNG.integers(2) for label in MANY]]), kind="stable")
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
            np.testing.assert_allclose(scores[i, : len(seen)], expected[i, known], atol=1e-9)
            seen += [label] if label not in seen else []
    assert len(seen) == 5
    columns = [list("abcde").index(label) for label in growing.classes_]
    np.testing.assert_allclose(growing.decision_function(NEW), told.decision_function(NEW)[:, columns], atol=1e-9)
    np.testing.assert_allclose(growing.predict_proba(NEW), told.predict_proba(NEW)[:, columns], atol=1e-9)
    assert np.array_equal(growing.predict(NEW), told.predict(NEW))
    for model in (told, growing):
        model._state.engine._check()


def test_labels_of_two_classes_in_fit():
    y = np.where(X[:, 0] > 0, "yes", "no")
    model = KRLS("multiclass_squared", ok.Gaussian(1.3), noise=0.3).fit(X, y)
    assert model.classes_.tolist() == ["no", "yes"] and model.score(X, y) > 0.9
    assert model.decision_function(X).shape == (N,)
    assert np.array_equal(model.decision_function(X) > 0, model.predict(X) == "yes")
    balanced = KRLS("multiclass_squared", ok.Gaussian(1.3), noise=0.3, class_weight="balanced").fit(X, y)
    by_hand = KRLS("multiclass_squared", ok.Gaussian(1.3), noise=0.3)
    counts = {label: N / (2 * np.sum(y == label)) for label in ("no", "yes")}
    by_hand.partial_fit(X, y, classes=["no", "yes"], sample_weight=[counts[label] for label in y])
    np.testing.assert_allclose(balanced.predict_proba(NEW), by_hand.predict_proba(NEW), atol=1e-8)
