"""What KRLS says of what it knows: intervals, probabilities, densities, samples, noise; and that it stays sound."""
import pickle
import warnings
from statistics import NormalDist

import numpy as np
import pytest
from cases import covering, each
from reference_recursive import Exact, gaussian
from small_models import same_state
from test_recursive import MANY, NEW, NUMBERS, SEVERAL, N, X, exact

import onlinekernels as ok
from onlinekernels import KRLS
from onlinekernels._core.schema import checked, state_of

PLACES_OF_LABELS = np.random.default_rng(0).integers(5, size=20)


# ---- Outliers and changes -------------------------------------------------------------------------------------------


COVERAGES = (0.5, 0.8, 0.85, 0.9, 0.97)


def covered(model, X, y, coverage, chunk=1000):
    """Whether each target was inside of its interval before it was learned."""
    found = []
    for i in range(0, len(X), chunk):
        _, (low, high) = model.progressive(X[i : i + chunk], y[i : i + chunk], return_interval=coverage)
        found.append((low <= y[i : i + chunk]) & (y[i : i + chunk] <= high))
    return np.concatenate(found)


def world(n=2400):
    """(rows, y of a world, of another one) with a little noise."""
    rng = np.random.default_rng(11)
    rows = rng.uniform(-2, 2, size=(n, 2))
    f = np.sin(2 * rows[:, 0]) * np.cos(rows[:, 1])
    other = np.cos(2 * rows[:, 0] + 1) + 0.5 * rows[:, 1] + 1.0
    noise = 0.1 * rng.normal(size=n)
    return rows, f, np.where(np.arange(n) < n // 2, f, other) + noise, noise, rng


DOUBTING = [{}, {"memory": 0.999}, {"scale": True, "scale_target": True}]


def test_an_outlier_whose_square_is_no_number_is_refused(tmp_path):
    """It would be pending with an infinite deviation, and no file could hold the model."""
    model = KRLS(kernel=ok.Gaussian(1.0), noise="auto").partial_fit([[0.0], [1.0]], [0.0, 1.0])
    with pytest.raises(FloatingPointError, match="Row 1 of X cannot be learned"):
        model.partial_fit([[2.0], [3.0]], [1e150, 1e160])
    assert model.t_ == 3
    model.save(tmp_path / "model.npz")
    assert np.array_equal(ok.load(tmp_path / "model.npz").predict([[2.0]]), model.predict([[2.0]]))


@each("keywords", DOUBTING, ids=repr)
def test_an_abrupt_change_is_noticed(keywords, tmp_path):
    rows, _, y, _, _ = world()
    model = KRLS(noise="auto", **keywords)
    errors = (model.progressive(rows, y) - y) ** 2 / y[1200:].var()
    drifts = "scale_target" in keywords  # the mean of all targets follows for as long as there were targets before
    assert model.changes_ in (1, 2) and errors[1400:].mean() < (0.6 if drifts else 0.25)
    assert drifts or errors[-400:].mean() < 0.12
    for size in (1, 50):  # the same in chunks, and from a file in the middle of what is noticed
        other, found = KRLS(noise="auto", **keywords), []
        for i in range(1100, 1500, size):
            if i == 1100:
                other.partial_fit(rows[:i], y[:i])
            if i % 50 == 0:
                other.save(tmp_path / "model.npz")
                other = ok.load(tmp_path / "model.npz")
            found.append((other.progressive(rows[i : i + size],
                                            y[i : i + size]) - y[i : i + size]) ** 2 / y[1200:].var())
        np.testing.assert_allclose(np.concatenate(found), errors[1100:1500], rtol=1e-4, atol=1e-7)
        assert other.changes_ == model.changes_


@each("keywords", DOUBTING, ids=repr)
def test_noise_after_thousands_of_exact_targets_is_noticed(keywords):
    """Within some hundred rows: it is y that is noisier, and not f that has changed."""
    rng = np.random.default_rng(3)
    rows = rng.uniform(-3, 3, size=(2400, 2))
    f = np.sin(rows[:, 0]) * rows[:, 1]
    model = KRLS(kernel=ok.Gaussian(1.5) + 1.0, noise="auto", **keywords).partial_fit(rows[:2000], f[:2000])
    exact = model.noise_
    model.partial_fit(rows[2000:], f[2000:] + 0.3 * rng.normal(size=400))
    assert exact < 2e-3 and 0.03 < model.noise_ < 0.3 and model.changes_ <= 3
    assert np.mean((model.predict(rows[:500]) - f[:500]) ** 2) < 0.03


# ---- Densities, probabilities, samples -----------------------------------------------------------------------------


def test_log_density_is_that_of_a_gaussian():
    model = KRLS(kernel=ok.Gaussian(1.3), budget=30, noise=0.2).partial_fit(X, SEVERAL)
    mean, deviations = model.predict(NEW, return_std=True)
    targets = SEVERAL[:20]
    parts = [NormalDist(mean[i, j], np.sqrt(deviations[i] ** 2 + 0.2)) for i in range(20) for j in range(3)]
    expected = np.log([part.pdf(y) for part, y in zip(parts, targets.ravel())]).reshape(20, 3).sum(axis=1)
    np.testing.assert_allclose(model.log_density(NEW, targets), expected, rtol=1e-9)
    one = KRLS(kernel=ok.Gaussian(1.3), budget=30, noise=0.2).partial_fit(X, NUMBERS)
    mean, deviations = one.predict(NEW, return_std=True)
    expected = [np.log(NormalDist(m, np.sqrt(d**2 + 0.2)).pdf(y)) for m, d, y in zip(mean, deviations, NUMBERS)]
    np.testing.assert_allclose(one.log_density(NEW, NUMBERS[:20]), expected, rtol=1e-9)


@each("told", [False, True])
def test_probabilities(told):
    classes = list("abcde") if told else None
    model = KRLS("multiclass_squared", ok.Gaussian(1.3), noise=0.3, budget=40).partial_fit(X, MANY, classes)
    scores = model.decision_function(NEW)
    likely = np.clip((1 + scores) / 2, 1e-6, 1)
    likely /= likely.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(NEW), likely, rtol=1e-9)
    assert np.array_equal(model.classes_[model.predict_proba(NEW).argmax(axis=1)], model.predict(NEW))
    labels = model.classes_[PLACES_OF_LABELS]
    np.testing.assert_allclose(model.log_density(NEW, labels), np.log(likely[np.arange(20), PLACES_OF_LABELS]),
                               rtol=1e-9)
    with pytest.raises(ValueError, match="'z' is not a label"):
        model.log_density(NEW, ["a"] * 19 + ["z"])


@each("memory", [1.0, 0.95])
@each("t", [30, 64, 150])
def test_samples_have_the_moments_of_the_posterior(memory, t):
    points = np.vstack([NEW[:3], X[:2], X[t - 2 : t]])
    mean, covariance = Exact(gaussian(1.3), 0.1, memory).given(X[:t], NUMBERS[:t]).posterior(points)
    model = exact(memory=memory).partial_fit(X[:t], NUMBERS[:t])
    draws = model.sample_y(points, 20_000, random_state=5)
    assert draws.shape == (7, 20_000)
    error = np.sqrt(np.diag(covariance) / 20_000)
    assert (np.abs(draws.mean(axis=1) - mean[:, 0]) < 5 * error + 1e-9).all()
    spread = np.sqrt(np.outer(np.diag(covariance), np.diag(covariance)))
    assert (np.abs(np.cov(draws) - covariance) < 0.05 * spread + 1e-9).all()


@each("true", [0.01, 0.1, 1.0])
@each("targets", [1, 2])
def test_the_noise_can_be_estimated(true, targets):
    rng = np.random.default_rng(1)
    rows = rng.uniform(-3, 3, size=(3000, 1))
    y = np.column_stack([np.sin(2 * rows[:, 0]), np.cos(rows[:, 0])])[:, :targets]
    y = y + np.sqrt(true) * rng.normal(size=y.shape)
    y = y[:, 0] if targets == 1 else y
    model = KRLS(kernel=ok.Gaussian(0.7), noise="auto").partial_fit(rows, y)
    assert model.noise_ == pytest.approx(true, rel=0.3)
    single = KRLS(kernel=ok.Gaussian(0.7), noise="auto")
    for i in range(0, 3000, 17):
        single.partial_fit(rows[i : i + 17], y[i : i + 17])
    assert single.noise_ == pytest.approx(model.noise_, rel=1e-8)
    assert KRLS(noise=0.25).partial_fit(rows, y).noise_ == 0.25


HARD = {"copies": lambda rng, n: rng.normal(size=(n, 2))[rng.integers(5, size=n)],
        "constant": lambda rng, n: np.ones((n, 3)), "zeros": lambda rng, n: np.zeros((n, 2)),
        "one constant": lambda rng, n: np.column_stack([rng.normal(size=n), np.full(n, 7.0)]),
        "line": lambda rng, n: rng.uniform(size=(n, 1)), "far": lambda rng, n: 1e6 + rng.uniform(size=(n, 1))}


@covering(2)
@each("data", HARD)
@each("size, noise", [(1e-6, 1e-8), (1.0, 1e-8), (1e6, 1e-8), (1e-6, 0.1), (1e6, 0.1)])
@each("keywords", [{}, {"budget": 20}, {"budget": None, "tolerance": 0}, {"budget": 20, "tolerance": 1e-12},
                   {"budget": 15, "memory": 0.9}, {"budget": 1}, {"budget": 20, "memory": 1e-12},], ids=str)
def test_hard_data_is_no_harm(data, size, noise, keywords):
    """No error, no NaN, all answers of the size of the targets, and S stays a covariance."""
    rng = np.random.default_rng(4)
    rows, y = HARD[data](rng, 300), rng.normal(size=300)
    for kernel, single in ((size * ok.Gaussian(5.0), False),
                           (size * ok.Gaussian(5.0) + (1e-14 * size) * ok.Linear(), True)):
        model, chunk = KRLS(kernel=kernel, noise=noise, **keywords), 40
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for i in range(0, 300, chunk):
                part = rows[i : i + chunk].astype(np.float32 if single else float)
                scores, std, interval = model.progressive(part, y[i : i + chunk], return_std=True, return_interval=0.9)
                assert np.isfinite(scores).all() and np.isfinite(std).all() and np.isfinite(interval).all()
                assert np.abs(scores).max() < 1000.0
            mean, std = model.predict(rows[:20], return_std=True)
        assert np.isfinite(mean).all() and (std >= 0).all() and np.isfinite(model.sample_y(rows[:5], 2)).all()
        model._state.engine._check()
        same_state(model, pickle.loads(pickle.dumps(model)))


def near_line(rng, n):
    """Copies of few rows, and then a walk in small steps."""
    rows = rng.normal(size=(3, 1))[rng.integers(3, size=n)]
    rows[100:, 0] = np.cumsum(0.2 * rng.normal(size=n - 100))
    return rows


DELICATE = {"copies": HARD["copies"], "line": HARD["line"], "near line": near_line,
            "all sizes": lambda rng, n: rng.standard_cauchy(size=(n, 2)) ** 3}
UNITS = {"gaussian": ok.Gaussian(5.0), "polynomial": ok.Polynomial(5), "linear": ok.Linear(),
         "features": ok.Nystroem(ok.Gaussian(1.0), 20), "both": ok.RandomFourier(ok.Gaussian(1.0), 16) + ok.Linear()}


@covering(2)
@each("data", DELICATE)
@each("unit", UNITS)
@each("size, noise", [(1e-8, 1e-10), (1.0, 1.0), (1e2, 1e-10), (1e6, 1e-8), (1e8, 1e-10)])
@each("keywords", [{}, {"budget": None, "tolerance": 0}, {"budget": 20, "tolerance": 1e-12},
                   {"budget": 15, "memory": 0.9}, {"budget": 20, "memory": 1e-12}], ids=str)
def test_what_was_learned_can_be_copied_whatever_the_rounding(data, unit, size, noise, keywords):
    """What is left of the prior may be so small that all of its digits are rounding, which differs between machines:
    so the same rows come in another order, and nearly the same."""
    rng = np.random.default_rng(7)
    rows, y = DELICATE[data](rng, 230), rng.normal(size=230)
    for order, factor in ((np.arange(230), 1.0), (np.arange(230), 1.0 + 1e-15), (rng.permutation(230), 1.0)):
        model = KRLS(kernel=size * UNITS[unit], noise=noise, **keywords)
        for i in range(0, 230, 33):
            part = order[i : i + 33]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # with the polynomial of such rows it says that learning diverges,
                try:
                    model.partial_fit(factor * rows[part], y[part])
                except FloatingPointError:      # and what it has learned until then is no covariance any more
                    break
            same_state(model, pickle.loads(pickle.dumps(model)))


@each("kernel", [ok.Gaussian(1.3), ok.Linear()], ids=repr)
def test_pending_rows_that_do_not_fit_each_other_are_refused(kernel):
    model = KRLS(kernel=kernel, budget=20).partial_fit(X[:100], NUMBERS[:100])
    function = model._state.function
    for name in ("coordinates", "corrections", "gram", "root"):
        state = state_of(function)
        array = state[f"pending_{name}"]
        array[9, 1] += 1e-3 * np.abs(array).max()
        with pytest.raises(ValueError, match="pending rows"):
            checked(function, state)
    checked(function, state_of(function))


@each("kernel", [ok.Gaussian(1.3), ok.Linear(), 0.5 * ok.Linear() + 1.0, ok.Nystroem(ok.Gaussian(1.3), 9),
                 ok.Linear() + ok.RandomFourier(ok.Gaussian(1.3), 16)], ids=repr)
@each("t", [30, 64, 100])
def test_features_that_join_were_always_zero(kernel, t):
    """As for wrappers whose features come and go by name."""
    wide = np.column_stack([X, np.zeros((N, 2))])
    model = KRLS(kernel=kernel, budget=20).partial_fit(X[:t], NUMBERS[:t])
    model.__dict__["_state"] = model._state.widened(5, 0.0)
    expected = KRLS(kernel=kernel, budget=20).partial_fit(wide[:t], NUMBERS[:t])
    wide[t:, 3:] = np.random.default_rng(0).normal(size=(N - t, 2))
    for one in (model, expected):
        one._state.engine._check()
    np.testing.assert_allclose(model.progressive(wide[t:], NUMBERS[t:]), expected.progressive(wide[t:], NUMBERS[t:]),
                               atol=1e-8)


@each("coverage", COVERAGES)
@each("tails", ["normal", "heavy", "doubles"])
def test_intervals_cover_what_they_say(tails, coverage):
    """Over disjoint windows of 1000, whatever the tails are, and when the noise doubles half way."""
    rng = np.random.default_rng(3)
    n = 8000
    rows = rng.uniform(-3, 3, size=(n, 1))
    noise = rng.standard_t(2.5, size=n) if tails == "heavy" else rng.normal(size=n)
    scale = np.where(np.arange(n) < n // 2, 0.2, 0.4 if tails == "doubles" else 0.2)
    y = np.sin(2 * rows[:, 0]) + scale * noise
    hits = covered(KRLS(kernel=ok.Gaussian(0.7), noise=0.1, memory=0.999, budget=30), rows, y, coverage)
    for start in range(0, n, 1000):
        first = start + 500 if start in (0, n // 2) else start
        share = hits[first : start + 1000].mean()
        assert abs(share - coverage) <= 0.04, (start, share)
    assert abs(hits[500:].mean() - coverage) <= 0.02
