"""Implicit steps of losses in Python: each built-in loss, written again, must learn what the compiled one learns."""
import math

import numpy as np
import pytest

import onlinekernels as ok
from cases import covering, each


class Own(ok.Loss):
    """A loss that counts how often it is asked."""

    calls = 0

    def derivative(self, score, y):
        type(self).calls += 1
        return self.slope(score, y)


def sign(number):
    return math.copysign(1.0, number) if number else 0.0


def expit(z):
    return 1.0 / (1.0 + math.exp(-z)) if z >= 0 else math.exp(z) / (1.0 + math.exp(z))


class Hinge(Own):
    task = "binary"

    def slope(self, score, y):
        return -y if y * score < 1.0 else 0.0

    def value(self, score, y):
        return max(0.0, 1.0 - y * score)


class TiedHinge(Hinge):
    """The other slope at the kink."""

    def slope(self, score, y):
        return -y if y * score <= 1.0 else 0.0


class Logistic(Own):
    task = "binary"

    def slope(self, score, y):
        return -y * expit(-y * score)


class BentLogistic(Logistic):
    def curvature(self, score, y):
        return expit(score) * expit(-score)


class WrongLogistic(Logistic):
    """A curvature that is no help."""

    def curvature(self, score, y):
        return 1e6


class NegativeLogistic(Logistic):
    def curvature(self, score, y):
        return -1e6


class Novelty(Own):
    task = "novelty"

    def slope(self, score, y):
        return -1.0 if score < 1.0 else 0.0

    def value(self, score, y):
        return max(0.0, 1.0 - score)


class Squared(Own):
    def slope(self, score, y):
        return score - y


class BentSquared(Squared):
    def curvature(self, score, y):
        return 1.0


class Absolute(Own):
    def slope(self, score, y):
        return sign(score - y)

    def value(self, score, y):
        return abs(score - y)


class Quantile(Own):
    def slope(self, score, y):
        return -0.3 if score < y else 0.7


class Insensitive(Own):
    def slope(self, score, y):
        return sign(score - y) if abs(score - y) > 0.1 else 0.0

    def value(self, score, y):
        return max(0.0, abs(score - y) - 0.1)


class SquaredInsensitive(Own):
    def slope(self, score, y):
        return 2.0 * sign(score - y) * max(0.0, abs(score - y) - 0.1)

    def curvature(self, score, y):
        return 2.0 if abs(score - y) > 0.1 else 0.0


class Huber(Own):
    def slope(self, score, y):
        return min(max((score - y) / 0.5, -1.0), 1.0)


class BentHuber(Huber):
    def curvature(self, score, y):
        return 2.0 if abs(score - y) <= 0.5 else 0.0


PAIRS = [
    (Hinge, ok.Hinge()), (TiedHinge, ok.Hinge()), (Logistic, ok.Logistic()), (BentLogistic, ok.Logistic()),
    (WrongLogistic, ok.Logistic()), (NegativeLogistic, ok.Logistic()), (Novelty, ok.Novelty()), (Squared, ok.Squared()),
    (BentSquared, ok.Squared()), (Absolute, ok.Absolute()), (Quantile, ok.Quantile(0.3)), (Insensitive, ok.Insensitive(0.1)),
    (SquaredInsensitive, ok.SquaredInsensitive(0.1)), (Huber, ok.Huber(0.5)), (BentHuber, ok.Huber(0.5)),
]


def stream(task, rows=120, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 3))
    X[5] = X[4]  # the second time a kink may hold the score already
    y = np.tanh(X[:, 0]) + 0.3 * rng.normal(size=rows)
    return X, {"binary": np.where(y > 0, 1, -1), "regression": 3.0 * y, "novelty": None}[task]


def assert_same(mine, built_in, task, weights=None, seed=0):
    X, y = stream(task, seed=seed)
    scores = [model.progressive(X, y, sample_weight=weights) for model in (mine, built_in)]
    np.testing.assert_allclose(*scores, atol=1e-9, rtol=1e-9)
    assert len(X) * 0.1 < mine.n_terms_ or mine.budget is not None
    if mine.budget is None:
        np.testing.assert_allclose(mine.dual_coef_, built_in.dual_coef_, atol=1e-9)
    np.testing.assert_allclose(mine.intercept_, built_in.intercept_, atol=1e-9)


@covering(2, unless=lambda pair=None, offset=None, **_: pair is not None and offset and pair[1].task == "novelty")
@each("pair", PAIRS, ids=lambda pair: pair[0].__name__)
@each("offset", [False, True])
@each("learner", [ok.ILK, ok.SILK])
@each("step", [1.0, 30.0, ok.InverseSqrt(0.3)], ids=repr)
@each("weighted", [False, True])
def test_a_loss_in_python_learns_what_the_compiled_one_does(pair, offset, learner, step, weighted):
    own, built_in = pair
    weights = np.random.default_rng(1).choice([0.0, 0.5, 2.0], size=120) if weighted else None
    budget = {} if learner is ok.ILK else {"budget": 25}
    made = [learner(loss, ok.Gaussian(1.0), step=step, regularization=0.05, penalty=0.7, offset=offset, **budget)
            for loss in (own(), built_in)]
    assert_same(*made, built_in.task, weights)


@each("variant", ["PA-I", "PA-II"])
@each("offset", [False, True])
@each("own, built_in", [(Hinge, ok.Hinge()), (TiedHinge, ok.Hinge()), (Novelty, ok.Novelty()), (Absolute, ok.Absolute()),
                        (Insensitive, ok.Insensitive(0.1))])
def test_passive_aggressive(own, built_in, offset, variant):
    offset = offset and built_in.task != "novelty"
    made = [ok.PassiveAggressive(loss, ok.Gaussian(1.0), penalty=0.4, variant=variant, offset=offset) for loss in (own(), built_in)]
    assert_same(*made, built_in.task)


def test_passive_aggressive_of_a_smooth_loss_is_the_implicit_step_without_regularization():
    X, y = stream("binary")
    mine = ok.PassiveAggressive(Logistic(), ok.Gaussian(1.0), penalty=0.4, variant="PA-I")
    built_in = ok.ILK("logistic", ok.Gaussian(1.0), step=1.0, regularization=0.0, penalty=0.4)
    np.testing.assert_allclose(mine.progressive(X, y), built_in.progressive(X, y), atol=1e-9)


def test_weights_trees_and_targets():
    X, y = stream("regression")
    for kernel in ("linear", ok.AdditiveExponential()):
        scores = [ok.ILK(loss, kernel, step=0.5, regularization=0.01).progressive(X, y) for loss in (Huber(), ok.Huber(0.5))]
        np.testing.assert_allclose(*scores, atol=1e-9)
    Y = np.column_stack([y, -2 * y, X[:, 1]])
    scores = [ok.ILK(loss, ok.Gaussian(1.0), step=0.5).progressive(X, Y) for loss in (Huber(), ok.Huber(0.5))]
    np.testing.assert_allclose(*scores, atol=1e-9)


@each("own", [pair[0] for pair in PAIRS])
def test_the_step_is_an_arg_min(own):
    """alpha^2 k / 2 + size l(z + alpha k): the slopes of the two sides have the signs of a minimum, for sizes of all kinds."""
    rng = np.random.default_rng(3)
    for trial in range(60):
        size, k = 10 ** rng.uniform(-6, 6), 10 ** rng.uniform(-3, 3)
        y = 1.0 if own.task == "novelty" else rng.choice([-1, 1]) if own.task == "binary" else rng.normal()
        model = ok.ILK(own(), "linear", step=1.0, regularization=0.0, penalty=size, offset=False)
        model.partial_fit([[math.sqrt(k)]], None if own.task == "novelty" else [y], **({"classes": [-1, 1]} if own.task == "binary" else {}))
        alpha = model.coef_[0, 0] / math.sqrt(k)
        width = 1e-9 * (abs(alpha) + abs(size * own().slope(0.0, y)) * 1e-3)
        below, above = [end + size * own().slope(end * k, y) for end in (alpha - width, alpha + width)]
        rounding = 1e-12 * size
        assert below <= rounding and above >= -rounding, (trial, size, k, y, alpha)


def test_few_calls_where_the_loss_is_smooth():
    X, y = stream("binary")
    for loss, most in ((Logistic, 20), (BentLogistic, 14), (BentSquared, 10), (Hinge, 70)):
        loss.calls = 0
        ok.ILK(loss(), ok.Gaussian(1.0)).progressive(X, y if loss.task == "binary" else y.astype(float))
        assert 120 <= loss.calls <= most * 120, (loss, loss.calls / 120)


# ---- What is refused ----


class Wavy(ok.Loss):
    def derivative(self, score, y):
        return math.sin(3.0 * (score - y))


class Broken(ok.Loss):
    """Not a number between 0.05 and 0.95."""

    wrong = math.nan

    def derivative(self, score, y):
        return self.wrong if 0.05 < score < 0.95 else score - y


class Raising(Broken):
    @property
    def wrong(self):
        raise KeyError("no slope here")


def learned(model):
    return model._state.hypothesis.state()


@each("loss, kind, words", [
    (Wavy(), ValueError, "Row 1 of X cannot be learned: Wavy is not convex, and has no implicit step; with NORMA it works"),
    (Broken(), FloatingPointError, r"Row 1 of X cannot be learned: derivative\(0.[0-9]*, 1\) of Broken is nan"),
    (Raising(), KeyError, "no slope here"),
])
@each("make", [ok.ILK, ok.SILK, ok.PassiveAggressive])
def test_nothing_is_learned_from_a_row_whose_loss_fails(make, loss, kind, words):
    model = make(loss, ok.Gaussian(1.0), offset=True)
    with pytest.raises(kind, match=words) as caught:
        model.partial_fit([[0.0], [9.0], [9.0]], [0.0, 1.0, 0.0])
    assert caught.value.rows_learned == 1 and model.t_ == 1
    before = learned(model)
    with pytest.raises(kind):
        model.partial_fit([[9.0]], [1.0])
    after = learned(model)
    assert before.keys() == after.keys()
    for name in before:
        np.testing.assert_array_equal(before[name], after[name], err_msg=name)
    model._state.hypothesis._check()


def test_norma_says_where_a_derivative_is_no_number():
    with pytest.raises(FloatingPointError, match=r"derivative\(0, 1\) of Nothing is not finite"):
        class Nothing(ok.Loss):
            def derivative(self, score, y):
                return math.inf
        ok.NORMA(Nothing()).partial_fit([[0.0]], [1.0])


class Many(ok.Loss):
    task = "multiclass"

    def derivative(self, scores, y):
        return scores


class Negative(Hinge):
    def value(self, score, y):
        return -1.0


@each("model, words", [
    (lambda: ok.ILK(Many()), "Many has no implicit step over all labels; it works with NORMA"),
    (lambda: ok.PassiveAggressive(Hinge(), variant="PA"), "Hinge has no passive-aggressive step: a loss of your own works with NORMA"),
    (lambda: ok.Projection(Hinge()), "Hinge has no passive-aggressive step"),
    (lambda: ok.ILK(Hinge(), step=ok.MetaDescent()), "step=MetaDescent does not adapt implicit steps of Hinge()"),
    (lambda: ok.PassiveAggressive(Negative(), variant="PA-II"), "its loss is squared, and value(0, 1) of Negative is -1 < 0"),
])
def test_combinations_without_sense(model, words):
    with pytest.raises(ValueError) as caught:
        model().partial_fit([[0.0], [1.0]], [1, -1])
    assert words in str(caught.value)


def test_passive_aggressive_on_squares_needs_values():
    with pytest.raises(NotImplementedError, match="does not define value"):
        ok.PassiveAggressive(Logistic(), variant="PA-II").partial_fit([[0.0], [1.0]], [1, -1])
