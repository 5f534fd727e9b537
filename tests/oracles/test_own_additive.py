"""Additive kernels from left and right functions of one's own: the same as the compiled kernels that they stand for."""

import numpy as np
import pytest

import onlinekernels as ok
from cases import each
from test_additive import points


def identity(p):
    return p


def one(p):
    return 1.0


def spline_bend(p):
    return p * p / 2 + p


def spline_rest(p):
    return 1 - p**3 / 6


def falling(p):
    return np.exp(-1.3 * p)


def rising(p):
    return np.exp(1.3 * p)


PAIRS = {  # (left, right), the compiled kernel, and how the oracle knows it
    "spline": (([spline_bend, spline_rest], [identity, one]), ok.AdditiveSpline(1), ("spline", 1)),
    "exponential": (([rising], [falling]), ok.AdditiveExponential(1.3), ("exponential", 1.3)),
}
CLOSE = {"rtol": 1e-9, "atol": 1e-9}


@each("make", [lambda spline, exponential: 0.5 * spline + exponential,
               lambda spline, exponential: ok.AdditiveMatern() + 0.2 + 2.0 * exponential,
               lambda spline, exponential: exponential + ok.AdditiveSpline(3, bounds=(-1, 2)) + spline])
def test_sums_stay_on_the_trees(make):
    X = points(0)
    models = []
    for kernels in zip(*((ok.Additive(*own), compiled) for own, compiled, _ in PAIRS.values())):
        model = ok.NORMA("squared", make(*kernels), step=0.1, regularization=0.1)
        scores = np.concatenate([model.progressive(X[i : i + 17], X[i : i + 17, 0]) for i in range(0, len(X), 17)])
        assert type(model._state.function).__name__ == "Trees"
        model._state.engine._check()
        models.append((scores, model.predict(X + 0.01), model.component(1, X[:, 1]), model.norm_))
    for own, compiled in zip(*models):
        np.testing.assert_allclose(own, compiled, **CLOSE)


@pytest.mark.filterwarnings("ignore::onlinekernels.LearningWarning")
def test_what_goes_wrong_in_a_function_stops_after_the_last_piece():
    X, y = np.linspace(0.0, 1.0, 600)[:, None], np.tile([1, -1], 300)

    def picky(p):
        if (p > 0.9).any():
            raise KeyError("no such number")
        return p

    model = ok.NORMA("hinge", ok.Additive([picky], [one]), step=0.1)
    with pytest.raises(KeyError) as caught:
        model.partial_fit(X, y)
    assert 0 < model.t_ < 541 and caught.value.args
    model._state.engine._check()
    twin = ok.NORMA("hinge", ok.Additive([identity], [one]), step=0.1).partial_fit(X[: model.t_], y[: model.t_])
    np.testing.assert_array_equal(twin.decision_function(X[:9]), model.decision_function(X[:9]))
    with np.errstate(all="ignore"):
        model = ok.NORMA("hinge", ok.Additive([np.log], [one]), step=0.1).partial_fit(X[1:100], y[1:100])
        with pytest.raises(FloatingPointError, match="Row 0"):
            model.partial_fit(X[:1], y[:1])
        with pytest.raises(FloatingPointError, match="Row 1"):
            model.decision_function([[0.5], [0.0]])
    assert model.t_ == 99
