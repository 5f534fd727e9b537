"""Models that are no better than a constant say so; others do not, nor do short streams."""
import re
import warnings

import numpy as np
import pytest

import onlinekernels as ok
from cases import each

MESSAGE = "This model is no better than"


def warned(learn, *arguments, **options):
    """What is said of a constant."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ok.LearningWarning)
        learn(*arguments, **options)
    return [str(warning.message) for warning in caught if MESSAGE in str(warning.message)]


def stream(n=1600, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 3)), rng


def test_who_learns_nothing_says_so_once():
    X, rng = stream()
    far = 1e3 * X  # every example is new to a kernel of width 0.5
    classes, numbers, names = np.sign(X[:, 0]), X[:, 0], np.array(list("abcd"))[(X[:, :2] > 0) @ [1, 2]]
    for model, y, than in (
        (ok.SILK("hinge", ok.Gaussian(0.5)), classes, "always answering -?1"),
        (ok.Perceptron(ok.Gaussian(0.5)), names,
         "always answering '[abcd]', the most frequent class so far: 7\\d[.]\\d% mistakes, and 7\\d[.]\\d%"),
        (ok.NORMA("multiclass_logistic", ok.Gaussian(0.5)), names, "always answering '[abcd]'"),
        (ok.PassiveAggressive("insensitive", ok.Gaussian(0.5), budget=50), numbers,
         "the mean of the targets so far: its loss is"),
        (ok.KRLS(kernel=ok.Gaussian(0.5), budget=20), numbers + 3, "the mean of the targets so far: its loss is"),
    ):
        (message,) = warned(model.fit, far, y)
        assert re.search(than, message) and "scale=True" in message, message
        assert "another width of the kernel than 0." in message, message
        assert ("offset=True" in message) == ("offset" in model.get_params())
        assert not warned(model.partial_fit, far, y)  # said once,
        assert warned(model.fit, far, y)  # and once per fit
        one = type(model)(**model.get_params(deep=False))
        one.partial_fit(far[:9], y[:9])
        assert len(warned(lambda: [one.learn_one(*example) for example in zip(far[9:], y[9:])])) == 1


def test_who_learns_does_not():
    X, rng = stream()
    noisy = np.where(rng.random(1600) < 0.75, 1, -1) * np.sign(X[:, 0])
    rare = np.where(X[:, 0] > 1.7, "rare", "frequent")  # 4 %
    for model, y in (
        (ok.SILK("hinge"), noisy),
        (ok.NORMA("logistic", "linear"), noisy),
        (ok.SILK("multiclass_hinge"), rare),
        (ok.SILK("hinge", class_weight="balanced"), rare),
        (ok.SILK("squared"), 0.5 * X[:, 0] + rng.normal(size=1600)),
        (ok.SILK(ok.Quantile(0.95)), np.exp(X[:, 0] + 0.3 * rng.normal(size=1600))),
        (ok.SILK("squared"), X[:, :2]),
    ):
        assert not warned(model.fit, X, y), (model, y)


def noisy(n, scale=1.0):
    rng = np.random.default_rng(0)
    X = scale * rng.normal(size=(n, 2))
    return X, np.where(X[:, 0] + 0.1 * scale * rng.normal(size=n) > 0, 1, -1)


@each("model, largest", [(lambda: ok.NORMA(ok.Hinge(3.0), ok.Gaussian(1.0), step=0.5, regularization=0.5), 2.0),
                         (lambda: ok.NORMA(ok.Novelty(3.0), ok.Gaussian(1.0), step=0.5, regularization=0.5), 2.0),
                         (lambda: ok.SVMD(ok.Hinge(3.0), ok.Gaussian(1.0), regularization=0.5), 2.0),
                         (lambda: ok.ILK(ok.Hinge(3.0), ok.Gaussian(1.0), regularization=0.5, penalty=1.2), 2.4),])
def test_a_margin_out_of_reach_is_a_warning(model, largest):
    """rho > X^2 / lambda: no f(x) can be so large, all examples are margin errors, and all are kept."""
    X, y = noisy(150)
    model = model()
    y = None if isinstance(model.loss, ok.Novelty) else y
    with pytest.warns(ok.LearningWarning, match=f"The margin 3 is out of reach: .* no f.x. exceeds {largest:g},"):
        scores = model.progressive(X, y)
    assert (scores * (1 if y is None else y) < 3.0).all() and model.n_terms_ == 150
    assert np.abs(scores).max() <= largest
