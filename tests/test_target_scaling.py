"""scale_target: targets scaled by their running mean and deviation, predictions in their own units."""
import pickle
import warnings

import numpy as np
import pytest

import onlinekernels as ok
from cases import each
from test_real_data import load

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 3))
Y = 50 + 10 * np.sin(X[:, 0]) + RNG.normal(size=200)
TWO = np.column_stack([Y, 1e-3 * X[:, 1]])
WEIGHTS = RNG.uniform(0.2, 3.0, 200)
MODELS = [
    ok.NORMA("squared", scale_target=True),
    ok.ILK("huber", scale=True, scale_target=True, offset=True),
    ok.SILK("nuinsensitive", scale_target=True, budget=30),
    ok.SVMD("squared", scale_target=ok.RunningScaler(memory=0.98)),
    ok.PassiveAggressive("insensitive", scale_target=True),
    ok.Projection("insensitive", scale_target=True, radius=4.0),
    ok.SILK("squared", ok.AdditiveExponential(), scale_target=True, budget=None),
    ok.KRLS("squared", ok.Gaussian(), scale_target=True, budget=20, memory=0.99),
]


def known_before(y, weights, memory=1.0):
    """Mean and deviation of the targets before each row, and each target scaled with itself: by the definitions."""
    means, deviations, scaled = [], [], []
    for t in range(len(y) + 1):
        w = weights[:t] * memory ** np.arange(t)[::-1]
        mean = np.average(y[:t], weights=w) if t else 0.0
        deviation = np.sqrt(np.average((y[:t] - mean) ** 2, weights=w)) if t > 1 else 0.0
        means.append(mean)
        deviations.append(deviation if deviation > 0 else 1.0)
        if t:
            scaled.append((y[t - 1] - mean) / deviations[-1])
    return np.array(means), np.array(deviations), np.array(scaled)


@each("weights", [None, WEIGHTS], ids=["plain", "weighted"])
@each("model", MODELS, ids=repr)
def test_it_is_the_same_model_on_scaled_targets(model, weights):
    """The oracle: a model without it, on targets that are scaled by hand, its scores brought back by hand."""
    plain = ok.evaluate.fresh_copy(model).set_params(scale_target=False)
    memory = model._plan().scale_target
    means, deviations, scaled = known_before(Y, np.ones(200) if weights is None else weights, memory)
    model = ok.evaluate.fresh_copy(model)
    too = {"return_std" if isinstance(model, ok.KRLS) else "return_margins": True}
    scores, margins = model.progressive(X, Y, sample_weight=weights, **too)
    expected, widths = plain.progressive(X, scaled, sample_weight=weights, **too)
    if isinstance(model, ok.KRLS):
        weights = np.ones(200) if weights is None else weights
        return check_exact(model, plain, (scores, margins, expected, widths), weights)
    np.testing.assert_allclose(scores, expected * deviations[:-1] + means[:-1], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(margins, widths * deviations[:-1], rtol=1e-9)
    np.testing.assert_allclose(model.predict(X[:9]), plain.predict(X[:9]) * deviations[-1] + means[-1], rtol=1e-9)
    np.testing.assert_allclose(model.predict_one(X[3]), model.predict(X[3:4])[0], rtol=1e-12)


def check_exact(model, plain, found, weights):
    """A prediction is the target that becomes the score when it is taken in; a deviation goes with the derivative of that."""
    weights = np.append(weights, 1.0)
    last, std = model.predict(X[:1], return_std=True)
    score, width = plain.predict(X[:1], return_std=True)
    answers = {t: [part[t] for part in found] for t in range(30, 200, 17)}
    answers[200] = last[0], std[0], score[0], width[0]
    for t, (y, deviation, score, width) in answers.items():
        becomes = [known_before(np.append(Y[:t], y + h), weights[: t + 1])[2][-1] for h in (0.0, -1e-4, 1e-4)]
        assert becomes[0] == pytest.approx(score, abs=1e-9)
        assert deviation * (becomes[2] - becomes[1]) / 2e-4 == pytest.approx(width, rel=1e-5)


def test_each_of_several_targets_has_a_scale_of_its_own():
    model = ok.SILK("squared", scale_target=True).partial_fit(X, TWO)
    for j in range(2):
        alone = ok.SILK("squared", scale_target=True, budget=ok.Recent(512)).partial_fit(X, TWO[:, j])
        together = ok.SILK("squared", scale_target=True, budget=ok.Recent(512)).partial_fit(X, TWO)
        np.testing.assert_allclose(together.predict(X)[:, j], alone.predict(X), rtol=1e-9)
    assert model.predict(X).shape == (200, 2)


def test_a_rows_own_target_does_not_reach_its_prediction():
    for t in (0, 1, 5, 100):
        other = Y.copy()
        other[t] += 1e4
        scores = [ok.SILK("squared", scale_target=True).progressive(X, y)[: t + 1] for y in (Y, other)]
        np.testing.assert_array_equal(*scores)


def test_an_error_leaves_the_scaler_where_the_engine_is():
    class Failing(ok.Loss):
        task, calls = "regression", 0

        def derivative(self, score, y):
            Failing.calls += 1
            if Failing.calls == 51:
                raise KeyboardInterrupt
            return score - y

    model = ok.NORMA(Failing(), scale_target=True).partial_fit(X[:20], Y[:20])
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(X[20:], Y[20:])
    assert model.t_ == 50
    expected = ok.NORMA("squared", scale_target=True).partial_fit(X[:50], Y[:50])
    np.testing.assert_allclose(model.predict(X), expected.predict(X), rtol=1e-9)


def test_weights_whose_sum_overflows_are_refused():
    for model in (ok.SILK("squared", scale_target=True), ok.KRLS(scale_target=True)):
        before = pickle.dumps(model.partial_fit(X, Y))
        with pytest.raises(ValueError, match="sample_weight is too large"):
            model.partial_fit(X[:2], Y[:2], sample_weight=[1e308, 1e308])
        assert pickle.dumps(model) == before


def test_what_makes_no_sense_is_refused():
    with pytest.raises(ValueError, match="needs a loss of numbers"):
        ok.NORMA("hinge", scale_target=True).fit(X, Y > 50)
    with pytest.raises(ValueError, match="'scale_target' parameter.*True, False, a RunningScaler or .log."):
        ok.NORMA("squared", scale_target=3).fit(X, Y)
    start = ok.SILK("squared", scale_target=True).partial_fit(X, Y)
    with pytest.raises(ValueError, match="both scale their targets"):
        ok.SILK("squared").partial_fit(X, Y, initial=start)
    again = ok.SILK("squared", scale_target=True).partial_fit(X[:1], Y[:1], initial=start)
    assert abs(again.predict(X) - start.predict(X)).max() < 5


def test_constant_targets():
    model = ok.SILK("squared", scale_target=True).partial_fit(X, np.full(200, 7.0))
    np.testing.assert_allclose(model.predict(X), 7.0)


# ---- Learning that goes wrong ----------------------------------------------------------------------------------


@each("model, y, word", [
    (ok.NORMA("squared", "linear", step=0.5), Y, "diverges"),
    (ok.NORMA("squared", "linear", step=0.5), TWO, "diverges"),
    (ok.SVMD("squared", ok.Gaussian(0.1)), 1e4 * Y, "stalled"),
], ids=["diverges", "diverges in two", "stalls"])
def test_a_loss_that_explodes_is_told_once(model, y, word):
    model = ok.evaluate.fresh_copy(model)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for _ in range(2):
            try:
                model.partial_fit(np.tile(X, (2, 1)), np.concatenate([y, y]))
            except FloatingPointError:
                pass
    (warning,) = [w for w in said if w.category is ok.LearningWarning]
    assert word in str(warning.message) and "scale_target=True" in str(warning.message)
    assert warning.filename == __file__


def test_a_model_that_learns_is_not_warned_of():
    for model in MODELS:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            ok.evaluate.fresh_copy(model).partial_fit(np.tile(X, (9, 1)), np.tile(Y, 9))
    spikes = np.where(np.arange(1800) % 300 == 299, 1e4, 1e-3)
    ok.SILK("squared", scale=True).partial_fit(np.tile(X, (9, 1)), spikes)


# ---- Real data -------------------------------------------------------------------------------------------------

SETS = ["airfoil", "bike_hour", "california", "concrete", "kin8nm", "power_plant", "wine_red"]


@pytest.mark.slow
@each("name", SETS)
def test_defaults_on_real_regressions(name):
    """Behind a running scaler, 6000 rows shuffled: better than the running mean, near a linear model or better."""
    linear_model = pytest.importorskip("sklearn.linear_model")
    data = load("regression")
    X, y = data[f"{name}::X"].astype(float), data[f"{name}::y"].astype(float)
    X, y = X[~np.isnan(X).any(axis=1)], y[~np.isnan(X).any(axis=1)]
    order = np.random.default_rng(0).permutation(len(X))[:6000]
    X, y = X[order], y[order]
    means, deviations, scaled = (np.array(part) for part in _running(y))

    def error(scores):
        return np.mean((scores - y) ** 2)

    ours = error(ok.SILK("squared", scale=True, scale_target=True).progressive(X, y))
    tube = error(ok.SILK("nuinsensitive", scale=True, scale_target=True).progressive(X, y))
    rows, linear, answers = ok.RunningScaler().progressive(X), linear_model.SGDRegressor(random_state=0), np.zeros(len(y))
    for i in range(len(y)):
        answers[i] = linear.predict(rows[i : i + 1])[0] if i else 0.0
        linear.partial_fit(rows[i : i + 1], scaled[i : i + 1])
    assert ours < error(means)
    assert tube < error(means)
    assert ours < 1.3 * error(answers * deviations + means)


def _running(y):
    """Running means and deviations before each row, and targets scaled with themselves."""
    mean, squares, rows = 0.0, 0.0, []
    for i, value in enumerate(y):
        before = mean, np.sqrt(squares / i) if squares > 0 else 1.0
        change = value - mean
        mean += change / (i + 1)
        squares += change * (value - mean)
        rows.append((*before, (value - mean) / np.sqrt(squares / (i + 1)) if squares > 0 else 0.0))
    return zip(*rows)


# ---- "log" ----------------------------------------------------------------------------------------------------------


SKEWED = np.exp(2 * np.sin(X[:, 0]) + 3 + 0.3 * RNG.normal(size=200)) * np.where(X[:, 1] > 1.5, -1.0, 1.0)


@each("model", MODELS, ids=repr)
def test_log_is_the_same_model_on_logarithms(model):
    """The oracle: scale_target=True on arcsinh(y); answers and ends of intervals by sinh."""
    model = ok.evaluate.fresh_copy(model).set_params(scale_target="log")
    plain = ok.evaluate.fresh_copy(model).set_params(scale_target=True)
    for y in (SKEWED, np.column_stack([SKEWED, 1e6 * SKEWED])):
        if y.ndim == 2 and (model._current_loss().adapts or getattr(model, "radius", None)):
            continue  # these have one target
        too = {"return_interval": 0.9} if isinstance(model, ok.KRLS) else {}
        found, expected = model.progressive(X, y, **too), plain.progressive(X, np.arcsinh(y), **too)
        for ours, theirs in zip(found, expected, strict=True) if too else [(found, expected)]:
            np.testing.assert_allclose(ours, np.sinh(theirs), rtol=1e-9)
        np.testing.assert_allclose(model.predict(X), np.sinh(plain.predict(X)), rtol=1e-9)
        if too:
            np.testing.assert_allclose(model.predict_interval(X), np.sinh(plain.predict_interval(X)), rtol=1e-9)
            np.testing.assert_allclose(model.sample_y(X[:9], 3), np.sinh(plain.sample_y(X[:9], 3)), rtol=1e-9)
            (mean, std), (log_mean, log_std) = (m.predict(X, return_std=True) for m in (model, plain))
            np.testing.assert_allclose(std, log_std * np.cosh(log_mean), rtol=1e-9)  # as far as it is straight
            density = plain.log_density(X, np.arcsinh(y)) - np.log(np.hypot(1.0, y)).reshape(200, -1).sum(axis=1)
            np.testing.assert_allclose(model.log_density(X, y), density, rtol=1e-9)
        model, plain = (ok.evaluate.fresh_copy(m) for m in (model, plain))


def test_log_is_for_all_numbers(tmp_path):
    """Of any size and sign, saved, refused where it makes no sense; better where targets are skewed."""
    model = ok.KRLS(scale_target="log", noise="auto").partial_fit(X, SKEWED)
    model.save(tmp_path / "m.npz")
    for again in (ok.load(tmp_path / "m.npz"), pickle.loads(pickle.dumps(model))):
        assert again.scale_target == "log"
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
    wild = np.where(np.arange(200) % 2, 1e300, -1e-300)
    answers = ok.SILK("squared", scale_target="log").partial_fit(X, wild).predict(X)
    assert np.isfinite(answers).all()
    run = ok.evaluate.progressive(ok.SILK("nuinsensitive", scale_target="log", budget=30), (X, SKEWED), delay=3)
    assert run.examples == 200
    start = ok.SILK("squared", scale_target=True).partial_fit(X, SKEWED)
    with pytest.raises(ValueError, match="both scale their targets"):
        ok.SILK("squared", scale_target="log").partial_fit(X, SKEWED, initial=start)
    with pytest.raises(ValueError, match="needs a loss of numbers"):
        ok.NORMA("hinge", scale_target="log").fit(X, Y > 50)
    y = SKEWED**2
    errors = [np.median(np.abs(ok.KRLS(scale_target=kind, noise="auto").progressive(X, y) - y)[50:]) for kind in (True, "log")]
    assert errors[1] < 0.8 * errors[0]


def test_a_model_that_starts_from_another_goes_on_with_a_memory_of_its_own():
    rng = np.random.default_rng(0)
    rows, y = rng.normal(size=(50, 2)), rng.normal(size=50)
    start = ok.NORMA("squared", ok.Gaussian(), scale_target=ok.RunningScaler(0.5)).partial_fit(rows[:40], y[:40])
    model = ok.NORMA("squared", ok.Gaussian(), scale_target=True).partial_fit(rows[40:], y[40:], initial=start)
    before, after = start._state.target_scaler, model._state.target_scaler
    assert before.count == pytest.approx(2.0) and after.count == pytest.approx(before.count + 10.0)
    assert model._state.target_scaler.memory == 1.0 and start._state.target_scaler.memory == 0.5
