"""scale_target: targets scaled by their running mean and deviation, predictions in their own units."""
import warnings

import numpy as np
import pytest

import onlinekernels as ok
from cases import each
from onlinekernels._core.targets import TargetScaler

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
    """A prediction is the target that becomes the score when it is taken in; a deviation goes with the derivative of
    that."""
    weights = np.append(weights, 1.0)
    last, std = model.predict(X[:1], return_std=True)
    score, width = plain.predict(X[:1], return_std=True)
    answers = {t: [part[t] for part in found] for t in range(30, 200, 17)}
    answers[200] = last[0], std[0], score[0], width[0]
    for t, (y, deviation, score, width) in answers.items():
        becomes = [known_before(np.append(Y[:t], y + h), weights[: t + 1])[2][-1] for h in (0.0, -1e-4, 1e-4)]
        assert becomes[0] == pytest.approx(score, abs=1e-9)
        assert deviation * (becomes[2] - becomes[1]) / 2e-4 == pytest.approx(width, rel=1e-5)


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


@each("robust", [False, True])
def test_a_prediction_is_the_target_that_becomes_the_score(robust):
    """Of an exact scaler, also far beyond what a robust one counts; and what was known after some rows of a block."""
    scaler = TargetScaler(1, exact=True, robust=robust)
    scaler.advance(Y)
    half = TargetScaler(1, exact=True, robust=robust)
    half.advance(Y[:90])
    np.testing.assert_allclose(scaler.after(90).numbers[:2], half.numbers[:2], rtol=1e-12)
    for score in (0.0, 0.5, -3.0, *([20.0, -50.0] if robust else [])):
        scaled = scaler.copy().advance(scaler.restored(np.array([[score]])).ravel())[0]
        np.testing.assert_allclose(np.ravel(scaled), score, rtol=1e-9, atol=1e-12)
