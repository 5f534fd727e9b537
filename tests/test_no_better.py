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
        (ok.Perceptron(ok.Gaussian(0.5)), names, "always answering '[abcd]', the most frequent class so far: 7\\d[.]\\d% mistakes, and 7\\d[.]\\d%"),
        (ok.NORMA("multiclass_logistic", ok.Gaussian(0.5)), names, "always answering '[abcd]'"),
        (ok.PassiveAggressive("insensitive", ok.Gaussian(0.5), budget=50), numbers, "the mean of the targets so far: its loss is"),
        (ok.KRLS(kernel=ok.Gaussian(0.5), budget=20), numbers + 3, "the mean of the targets so far: its loss is"),
    ):
        (message,) = warned(model.fit, far, y)
        assert re.search(than, message) and "scale=True" in message and "another width of the kernel than 0." in message, message
        assert ("offset=True" in message) == ("offset" in model.get_params())
        assert not warned(model.partial_fit, far, y)  # said once,
        assert warned(model.fit, far, y)  # and once per fit
        one = type(model)(**model.get_params(deep=False))
        one.partial_fit(far[:9], y[:9])
        assert len(warned(lambda: [one.learn_one(*example) for example in zip(far[9:], y[9:])])) == 1


def test_a_model_of_several_says_so_once_and_in_its_own_words():
    """Whatever its members are called inside, and what they could be told, is not the user's business."""
    X, rng = stream(3200)
    words = np.where(rng.random(3200) < 0.65, "one", "other")
    for loss, y, than in (("squared", rng.normal(size=3200), "than the mean of the targets so far"),
                          ("multiclass_squared", words, "than always answering 'one'")):
        model = ok.SelfTuned(loss, window=200, budget=20)
        (message,) = warned(model.partial_fit, X, y)
        assert re.search(than, message) and "say nothing" in message and "=True" not in message and "kernel" not in message
        assert not warned(model.partial_fit, X, y)
        assert not warned(ok.Stacking([ok.SelfTuned(loss, window=200, budget=20)]).partial_fit, X, y)


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


def test_nothing_to_say():
    """Short streams, targets that a constant hits, classes too rare to tell, detectors, models that predict with an average."""
    X, rng = stream()
    noise = np.where(rng.random(1600) < 0.5, 1, -1)
    for model, X_, y in (
        (ok.SILK(), X[:500], noise[:500]),
        (ok.SILK("squared"), X, np.full(1600, 5.0)),
        (ok.SILK("hinge"), X, np.where(np.arange(1600) % 200 == 7, 1, -1)),
        (ok.SILK("multiclass_hinge"), X, ["only"] * 1600),
        (ok.SILK("nunovelty"), X, None),
        (ok.VotedPerceptron(), X, noise),
        (ok.NORMA("hinge", average=True, budget=None), X, noise),
    ):
        assert not warned(model.fit, X_, y), model


def test_clearly_worse_is_said_early():
    """Five hundred examples suffice."""
    X, rng = stream(600)
    y = np.where(rng.random(600) < 0.15, "rare", "frequent")
    for model in (ok.Perceptron("linear"), ok.PassiveAggressive(kernel="linear")):
        (message,) = warned(model.fit, X, y)
        assert "in the latest 500 examples" in message and "not linear" in message and "a class_weight for the rare" in message
        assert "scale=True" not in warned(model.set_params(scale=True).fit, X, y)[0]


def test_weights_count():
    X, rng = stream()
    y = np.sign(X[:, 0])
    flipped = np.arange(1600) % 3 > 0  # two thirds of the labels are wrong, and weigh next to nothing
    weights = np.where(flipped, 1e-3, 1.0)
    assert not warned(ok.SILK().partial_fit, X, np.where(flipped, -y, y), sample_weight=weights)


# ---- A margin out of reach, K before (17) ---------------------------------------------------------------------


def noisy(n, scale=1.0):
    rng = np.random.default_rng(0)
    X = scale * rng.normal(size=(n, 2))
    return X, np.where(X[:, 0] + 0.1 * scale * rng.normal(size=n) > 0, 1, -1)


@each("model, largest", [
    (lambda: ok.NORMA(ok.Hinge(3.0), ok.Gaussian(1.0), step=0.5, regularization=0.5), 2.0),
    (lambda: ok.NORMA(ok.Novelty(3.0), ok.Gaussian(1.0), step=0.5, regularization=0.5), 2.0),
    (lambda: ok.SVMD(ok.Hinge(3.0), ok.Gaussian(1.0), regularization=0.5), 2.0),
    (lambda: ok.ILK(ok.Hinge(3.0), ok.Gaussian(1.0), regularization=0.5, penalty=1.2), 2.4),
])
def test_a_margin_out_of_reach_is_a_warning(model, largest):
    """rho > X^2 / lambda: no f(x) can be so large, all examples are margin errors, and all are kept."""
    X, y = noisy(150)
    model = model()
    y = None if isinstance(model.loss, ok.Novelty) else y
    with pytest.warns(ok.LearningWarning, match=f"The margin 3 is out of reach: .* no f.x. exceeds {largest:g},"):
        scores = model.progressive(X, y)
    assert (scores * (1 if y is None else y) < 3.0).all() and model.n_terms_ == 150
    assert np.abs(scores).max() <= largest


def test_the_largest_score_is_that_of_one_place():
    """The limit is met, and what is said to help does."""
    X, y = np.zeros((400, 1)), np.ones(400, dtype=int)
    with pytest.warns(ok.LearningWarning, match="a regularization below 0.333"):
        scores = ok.NORMA(ok.Hinge(1.5), step=0.5, regularization=0.5, kernel=0.5 * ok.Gaussian(1.0)).progressive(X, y, classes=[-1, 1])
    assert scores[-1] == pytest.approx(1.0, rel=1e-9)
    ok.NORMA(ok.Hinge(1.5), step=0.5, regularization=0.333, kernel=0.5 * ok.Gaussian(1.0)).progressive(X, y, classes=[-1, 1])
    ok.NORMA(ok.Hinge(0.99), step=0.5, regularization=0.5, kernel=0.5 * ok.Gaussian(1.0)).progressive(X, y, classes=[-1, 1])


def test_who_can_reach_the_margin_is_left_alone():
    X, y = noisy(150)
    shared = dict(step=0.5, regularization=0.5)
    ok.NORMA(ok.Hinge(3.0), ok.Gaussian(1.0), offset=True, **shared).progressive(X, y)
    ok.NORMA(ok.NuHinge(0.3, 3.0), ok.Gaussian(1.0), **shared).progressive(X, y)
    ok.NORMA(ok.Hinge(3.0), ok.Gaussian(1.0), **shared).progressive(X, y, sample_weight=np.full(150, 2.0))
    ok.NORMA(ok.Hinge(3.0), ok.Gaussian(1.0), **shared).progressive(X[:99], y[:99])  # k(x, x) may yet be larger
    ok.NORMA(ok.Hinge(3.0), ok.Gaussian(1.0), step=0.5, regularization=0.0).progressive(X, y)
