"""Implicit steps of losses in Python: each built-in loss, written again, must learn what the compiled one learns."""
import copy
import math
import pickle

import numpy as np
import pytest

import onlinekernels as ok
from cases import covering, each


class Own(ok.Loss):
    """A loss of a slope that is given, and perhaps a value and a curvature, which counts how often it is asked."""

    def __init__(self, task, slope, value=None, curvature=None):
        self.task, self.slope, self.calls = task, slope, 0
        if value is not None:
            self.value = value
        if curvature is not None:
            self.curvature = curvature

    def __deepcopy__(self, memo):  # to count in one place
        return self

    def __repr__(self):
        return "Own()"

    def derivative(self, score, y):
        self.calls += 1
        return self.slope(score, y)


def sign(number):
    return math.copysign(1.0, number) if number else 0.0


def expit(z):
    return 1.0 / (1.0 + math.exp(-z)) if z >= 0 else math.exp(z) / (1.0 + math.exp(z))


def logistic_slope(z, y):
    return -y * expit(-y * z)


def hinge_value(z, y):
    return max(0.0, 1.0 - y * z)


def huber_slope(z, y):
    return min(max((z - y) / 0.5, -1.0), 1.0)


# name: (task, slope, value, curvature), and the built-in loss that it is
LOSSES = {
    "hinge": (("binary", lambda z, y: -y if y * z < 1.0 else 0.0, hinge_value), ok.Hinge()),
    "tied hinge": (("binary", lambda z, y: -y if y * z <= 1.0 else 0.0, hinge_value), ok.Hinge()),
    "logistic": (("binary", logistic_slope), ok.Logistic()),
    "bent logistic": (("binary", logistic_slope, None, lambda z, y: expit(z) * expit(-z)), ok.Logistic()),
    # a curvature that is no help
    "wrong logistic": (("binary", logistic_slope, None, lambda z, y: 1e6), ok.Logistic()),
    "negative logistic": (("binary", logistic_slope, None, lambda z, y: -1e6), ok.Logistic()),
    "novelty": (("novelty", lambda z, y: -1.0 if z < 1.0 else 0.0, lambda z, y: max(0.0, 1.0 - z)), ok.Novelty()),
    "squared": (("regression", lambda z, y: z - y), ok.Squared()),
    "bent squared": (("regression", lambda z, y: z - y, None, lambda z, y: 1.0), ok.Squared()),
    "absolute": (("regression", lambda z, y: sign(z - y), lambda z, y: abs(z - y)), ok.Absolute()),
    "quantile": (("regression", lambda z, y: -0.3 if z < y else 0.7), ok.Quantile(0.3)),
    "insensitive": (("regression", lambda z, y: sign(z - y) if abs(z - y) > 0.1 else 0.0,
                     lambda z, y: max(0.0, abs(z - y) - 0.1)), ok.Insensitive(0.1)),
    "squared insensitive": (("regression", lambda z, y: 2.0 * sign(z - y) * max(0.0, abs(z - y) - 0.1), None,
                             lambda z, y: 2.0 if abs(z - y) > 0.1 else 0.0), ok.SquaredInsensitive(0.1)),
    "huber": (("regression", huber_slope), ok.Huber(0.5)),
    "bent huber": (("regression", huber_slope, None, lambda z, y: 2.0 if abs(z - y) <= 0.5 else 0.0), ok.Huber(0.5)),
}


def pair(name):
    """(the loss in Python, the built-in one)."""
    parts, built_in = LOSSES[name]
    return Own(*parts), built_in


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


@covering(2, unless=lambda name=None, offset=None, **_: name == "novelty" and offset)
@each("name", LOSSES)
@each("offset", [False, True])
@each("learner", [ok.ILK, ok.SILK])
@each("step", [1.0, 30.0, ok.InverseSqrt(0.3)], ids=repr)
@each("weighted", [False, True])
def test_a_loss_in_python_learns_what_the_compiled_one_does(name, offset, learner, step, weighted):
    weights = np.random.default_rng(1).choice([0.0, 0.5, 2.0], size=120) if weighted else None
    budget = {} if learner is ok.ILK else {"budget": 25}
    made = [learner(loss, ok.Gaussian(1.0), step=step, regularization=0.05, penalty=0.7, offset=offset, **budget)
            for loss in pair(name)]
    assert_same(*made, made[1].loss.task, weights)


@each("name", LOSSES)
def test_the_step_is_an_arg_min(name):
    """alpha^2 k / 2 + size l(z + alpha k): the slopes of the two sides have the signs of a minimum, for sizes of all
    kinds."""
    rng, own = np.random.default_rng(3), pair(name)[0]
    for trial in range(60):
        size, k = 10 ** rng.uniform(-6, 6), 10 ** rng.uniform(-3, 3)
        y = 1.0 if own.task == "novelty" else rng.choice([-1, 1]) if own.task == "binary" else rng.normal()
        model = ok.ILK(own, "linear", step=1.0, regularization=0.0, penalty=size, offset=False)
        given = {"classes": [-1, 1]} if own.task == "binary" else {}
        model.partial_fit([[math.sqrt(k)]], None if own.task == "novelty" else [y], **given)
        alpha = model.coef_[0, 0] / math.sqrt(k)
        width = 1e-9 * (abs(alpha) + abs(size * own.slope(0.0, y)) * 1e-3)
        below, above = [end + size * own.slope(end * k, y) for end in (alpha - width, alpha + width)]
        rounding = 1e-12 * size
        assert below <= rounding and above >= -rounding, (trial, size, k, y, alpha)


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
    (Wavy(), ValueError,
     "Row 1 of X cannot be learned: Wavy is not convex, and has no implicit step; with NORMA it works"),
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


class Many(ok.Loss):
    task = "multiclass"

    def derivative(self, scores, y):
        return scores


HINGE, NEGATIVE = pair("hinge")[0], Own("binary", LOSSES["hinge"][0][1], lambda z, y: -1.0)


@each("model, words", [
    (lambda: ok.ILK(Many()), "Many has no implicit step over all labels; it works with NORMA"),
    (lambda: ok.PassiveAggressive(HINGE, variant="PA"),
     "Own has no passive-aggressive step: a loss of your own works with NORMA"),
    (lambda: ok.Projection(HINGE), "Own has no passive-aggressive step"),
    (lambda: ok.ILK(HINGE, step=ok.MetaDescent()), "step=MetaDescent does not adapt implicit steps of Own()"),
    (lambda: ok.PassiveAggressive(NEGATIVE, variant="PA-II"), "its loss is squared, and value(0, 1) of Own is -1 < 0"),
])
def test_combinations_without_sense(model, words):
    with pytest.raises(ValueError) as caught:
        model().partial_fit([[0.0], [1.0]], [1, -1])
    assert words in str(caught.value)


# ---- Steps, budgets and kernels of one's own -----------------------------------------------------------------------


class Falling(ok.Fixed):
    def size(self, t):
        return self.rate if t < 2 else self.rate / t**0.5


def falling(t):
    return 0.5 / t**0.5


class First(ok.Budget):
    def evict(self, coefficients, births):
        assert coefficients.shape == (1, len(births)) and (np.diff(births) > 0).all()
        return 0 if len(births) > 12 else None


class Least(ok.Recent):
    def evict(self, coefficients, births):
        return int(np.abs(coefficients).max(axis=0).argmin()) if len(births) > self.size else None


OWN_POINTS = np.random.default_rng(5).normal(size=(150, 2))
OWN_SIGNS = np.where(OWN_POINTS[:, 0] * OWN_POINTS[:, 1] > 0, 1, -1)


def twins():
    """(a model with parts in Python, the same with those of the library)."""
    for step in (falling, Falling(0.5)):
        for make in (lambda step: ok.NORMA("hinge", ok.Gaussian(1.0), step=step),
                     lambda step: ok.ILK("multiclass_logistic", ok.Gaussian(1.0), step=step),
                     lambda step: ok.Stacking([ok.NORMA("hinge", step=step), ok.SILK("hinge")])):
            yield make(step), make(ok.InverseSqrt(0.5))
    for kernel in (ok.Gaussian(1.0), ok.AdditiveExponential()):
        for budget, twin in ((First(), ok.Recent(12)), (Least(9), ok.Smallest(9))):
            for loss in ("hinge", "multiclass_hinge") if isinstance(budget, Least) else ("hinge",):
                yield tuple(ok.NORMA(loss, kernel, step=0.3, regularization=0.01, budget=one) for one in (budget, twin))
    for exact in (False, True):
        yield (ok.SVMD("hinge", ok.Gaussian(1.0), exact_norms=exact, budget=First()),
               ok.SVMD("hinge", ok.Gaussian(1.0), exact_norms=exact, budget=ok.Recent(12)))


@pytest.mark.filterwarnings("ignore::onlinekernels.LearningWarning")
def test_steps_and_budgets_in_python_are_those_of_the_library():
    for own, known in twins():
        expected = known.progressive(OWN_POINTS, OWN_SIGNS, classes=[-1, 1])
        for chunk in (1, 40):
            model, scores = copy.deepcopy(own), []
            for start in range(0, 150, chunk):
                part = slice(start, start + chunk)
                scores.append(model.progressive(OWN_POINTS[part], OWN_SIGNS[part], classes=[-1, 1]))
                if start == 80:
                    model = pickle.loads(pickle.dumps(model))
            np.testing.assert_allclose(np.concatenate(scores), expected, rtol=1e-9, atol=1e-9)
        if hasattr(known, "step_"):
            assert model.step_ == pytest.approx(known.step_)


def test_what_goes_wrong_in_a_step_or_a_budget_stops_at_its_row():
    class Picky(ok.Budget):
        def evict(self, coefficients, births):
            if len(births) > 5:
                raise KeyError("no")

    class Wrong(ok.Budget):
        def evict(self, coefficients, births):
            return 99 if len(births) > 5 else None

    def bad(answer):
        return lambda t: answer if t == 7 else 0.1

    for model, error, words in [
        (ok.NORMA("novelty", budget=Picky(), step=1.0), KeyError, "no"),
        (ok.NORMA("novelty", budget=Wrong(), step=1.0), ValueError, "index of one of 6 terms. Got 99"),
        (ok.NORMA("hinge", step=bad(-1.0)), ValueError, "size of step 7 must be a positive number, at most 1000. Got -1"),
        (ok.NORMA("hinge", step=bad(2e3)), ValueError, "at most 1000"),
        (ok.ILK("hinge", step=bad("x"), regularization=1.0), ValueError, "Got 'x'"),
        (ok.ILK("hinge", step=lambda t: 1 / (t - 7) ** 2, regularization=1.0), ZeroDivisionError, "zero"),
    ]:
        y = None if model._current_loss().task == "novelty" else OWN_SIGNS
        for rows in (150, 1):
            model = type(model)(**model.get_params(deep=False))
            with pytest.raises(error, match=words):
                for start in range(0, 150, rows):
                    model.partial_fit(OWN_POINTS[start : start + rows], y if y is None else y[start : start + rows])
            assert model.t_ == (87 if y is None else 6)
            model._state.engine._check()


def test_overrides_that_nobody_asks_are_refused():
    class Mine(ok.Gaussian):
        def pair(self, x, z):
            return 1.0

    class Meta(ok.MetaDescent):
        def size(self, t):
            return 1.0

    class Nothing(ok.Budget):
        pass

    for model, words in [
        (ok.NORMA("hinge", Mine(1.0)), "Mine has a pair.. of its own"),
        (ok.NORMA("hinge", 2.0 * Mine(1.0) + 1.0), "Mine has a pair.. of its own"),
        (ok.NORMA("hinge", step=Meta(0.1)), "Meta must derive from"),
        (ok.NORMA("hinge", budget=Nothing()), "must define evict"),
        (ok.Bank(2, step=falling), "A Bank has no step"),
        (ok.SVMD(ok.NuHinge(0.3, margin_step=0.1), margin_step=ok.MetaDescent(1.0)), "margin_step=0.1 of its own"),
    ]:
        with pytest.raises(ValueError, match=words):
            model.partial_fit(OWN_POINTS, OWN_SIGNS)
