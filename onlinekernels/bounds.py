"""What the theorems promise about a stream, and the parameters that they prescribe.

A bound compares the learner with functions g that may know the whole stream. The arguments have the
same names and meanings in all functions:

================  =====================================================================================
radius            X in K and I, R in H and V: k(x, x) <= radius^2 for all examples
margin            mu, the margin at which the comparison functions are judged
loss              K, their cumulative hinge loss at that margin: sum_t max(0, mu - y_t g_t(x_t))
norm              B, the largest |g_t|
path              D1, the way that the comparison functions travel: sum_t |g_{t+1} - g_t|
squared_path      D2, sum_t |g_{t+1} - g_t|^2
examples          m in K, T in I: the length of the stream
step              eta, the learning rate of the algorithm (of InverseSqrt: its rate)
regularization    lambda
learner_margin    rho, the margin of the algorithm's own hinge loss
lipschitz         c, the largest |l'(f, y)|: 1 for the hinges, logistic, absolute, insensitive and Huber
penalty           C of ILK
================  =====================================================================================

The first seven describe a comparison; `comparison` computes them, and its answer fits the functions on
mistakes and their tunings:

>>> from onlinekernels import NORMA
>>> X, y = [[0.0], [1.0], [0.2], [0.9]], [1, -1, 1, -1]
>>> against = comparison("gaussian", X, y, [2.0, -2.0, 0.0, 0.0], margin=1.0)
>>> model = NORMA(kernel="gaussian", **tune_norma_mistakes(**against))
>>> mistakes = int((model.progressive(X, y) * y <= 0).sum())
>>> mistakes <= norma_mistakes(**against)
True

**K** is Kivinen, Smola and Williamson, **I** Cheng et al., **H** Herbster, **V** Vishwanathan et al. Where a
printed theorem is wrong, its corrected form stands here; see the page on errata. All bounds are for an
algorithm that starts at f = 0, has no offset and sees no sample weights.
"""
import functools
import inspect
import math
import numbers

import numpy as np

from onlinekernels.budgets import Sublinear
from onlinekernels.kernels import as_kernel
from onlinekernels.losses import Hinge
from onlinekernels.steps import InverseSqrt
from onlinekernels.validation import bad_parameter

__all__ = [
    "comparison",
    "complexity",
    "best_gap",
    "norm_limit",
    "truncation_error",
    "implicit_truncation_error",
    "norma_margin_errors",
    "norma_hinge_loss",
    "norma_mistakes",
    "norma_mistakes_untuned",
    "norma_regret",
    "norma_window_regret",
    "window_start",
    "average_excess_risk",
    "hinge_risk_limit",
    "ilk_mistakes",
    "ilk_mistakes_untuned",
    "ilk_regret",
    "projection_mistakes",
    "projection_loss",
    "perceptron_mistakes",
    "voted_perceptron_error",
    "tune_norma_margin_errors",
    "tune_norma_mistakes",
    "tune_norma_regret",
    "tune_norma_window",
    "tune_ilk_mistakes",
    "tune_ilk_regret",
]


LARGEST_LOG = 709.0  # the exponential of more is no float


# ---- Checks of arguments: one rule per name ---------------------------------------------------


def _number(expected, test):
    """A rule: what is expected, in words and as a predicate."""
    def allowed(value):
        is_number = isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_))
        return bool(is_number and np.isfinite(value) and test(value))

    return expected, allowed


POSITIVE = _number("a positive number", lambda value: value > 0)
NOT_NEGATIVE = _number("a number of at least 0", lambda value: value >= 0)
FRACTION = _number("a number between 0 and 1, both excluded", lambda value: 0 < value < 1)
HALF = _number("a number between 0 and 1/2, both excluded", lambda value: 0 < value < 0.5)
COUNT = _number("an integer of at least 1", lambda value: isinstance(value, numbers.Integral) and value >= 1)
FLAG = "True or False", lambda value: isinstance(value, (bool, np.bool_))

RULES = {
    "radius": POSITIVE,
    "margin": POSITIVE,
    "loss": NOT_NEGATIVE,
    "norm": POSITIVE,
    "path": NOT_NEGATIVE,
    "squared_path": NOT_NEGATIVE,
    "examples": COUNT,
    "step": POSITIVE,
    "regularization": POSITIVE,
    "learner_margin": NOT_NEGATIVE,
    "lipschitz": POSITIVE,
    "penalty": POSITIVE,
    "window": COUNT,
    "terms": COUNT,
    "growth": HALF,
    "largest_risk": POSITIVE,
    "failure": FRACTION,
    "gap": POSITIVE,
    "complexity": POSITIVE,
    "ball": POSITIVE,
    "deviation": NOT_NEGATIVE,
    "expected_mistakes": NOT_NEGATIVE,
    "zero_margin": FLAG,
}


def _checked(function=None, **exceptions):
    """Check every argument by the rule of its name; `exceptions` replace rules for one function."""
    if function is None:
        return functools.partial(_checked, **exceptions)
    signature, rules = inspect.signature(function), {**RULES, **exceptions}

    @functools.wraps(function)
    def checked(*args, **kwargs):
        given = signature.bind(*args, **kwargs)
        given.apply_defaults()
        for name, value in given.arguments.items():
            optional = value is None and signature.parameters[name].default is None
            if not optional:
                _check(function.__name__, name, value, rules[name])
        return function(*given.args, **given.kwargs)

    return checked


def _check(owner, name, value, rule):
    expected, allowed = rule
    if not allowed(value):
        raise bad_parameter(owner, name, expected, value)


def _check_step(owner, step, regularization):
    """The explicit algorithms need step * regularization <= 1."""
    if step * regularization > 1:
        raise bad_parameter(owner, "step", f"at most 1 / regularization = {1 / regularization:g}", step)


# ---- The comparison ---------------------------------------------------------------------------


def comparison(kernel, X, y, coefficients, *, margin, points=None):
    """Describe comparison functions g_t = sum_j coefficients[t, j] k(points[j], .) on a stream.

    Parameters
    ----------
    kernel : Kernel, str or callable
    X, y : the stream; y holds -1 and +1
    coefficients : array of shape (n_points,) for one function g, or (n_examples, n_points) for one
        function g_t per example
    margin : float
        mu. The bounds depend on g / mu only: 2 g at the margin 2 mu is the same comparison.
    points : where the functions have their terms; None means X itself

    Returns
    -------
    dict
        radius, margin, loss, norm, path, squared_path and examples, as the module describes them.

    Examples
    --------
    One function, in one dimension, with weight 2. The second example is within its margin:

    >>> about = comparison("linear", [[1.0], [-0.25]], [1, -1], [2.0], margin=1.0, points=[[1.0]])
    >>> about["loss"], about["norm"], about["path"], about["radius"]
    (0.5, 2.0, 0.0, 1.0)

    A weight that moves from 2 to 5:

    >>> about = comparison("linear", [[1.0], [-0.25]], [1, -1], [[2.0], [5.0]], margin=1.0, points=[[1.0]])
    >>> about["loss"], about["norm"], about["path"], about["squared_path"]
    (0.0, 5.0, 3.0, 9.0)
    """
    _check("comparison", "margin", margin, POSITIVE)
    kernel = as_kernel(kernel, "comparison")
    rows = kernel(X) if points is None else kernel(X, points)
    gram = rows if points is None else kernel(points)
    y = _signs(y, len(rows))
    functions = _functions(coefficients, rows.shape)
    scores = (rows * functions).sum(axis=1)
    moves = np.diff(functions, axis=0)
    lengths = _norms(moves, gram)
    return {
        "radius": float(np.sqrt(np.max(kernel.diagonal(X)))),
        "margin": float(margin),
        "loss": float(np.maximum(0.0, margin - y * scores).sum()),
        "norm": float(_norms(functions, gram).max()),
        "path": float(lengths.sum()),
        "squared_path": float((lengths ** 2).sum()),
        "examples": len(y),
    }


def _signs(y, n):
    y = np.asarray(y)
    if y.shape != (n,) or not np.isin(y, (-1, 1)).all():
        raise bad_parameter("comparison", "y", f"{n} labels, each -1 or 1", y)
    return y.astype(float)


def _functions(coefficients, shape):
    """One row per function; a single row for one that never moves."""
    functions = np.asarray(coefficients, dtype=float)
    if functions.shape == shape[1:]:
        functions = functions[None]
    elif functions.shape != shape:
        raise ValueError(
            f"The 'coefficients' parameter of comparison must have shape {shape[1:]} for one function or {shape} for "
            f"one per example. Got shape {functions.shape} instead."
        )
    if not np.isfinite(functions).all():
        raise ValueError("The 'coefficients' parameter of comparison must hold finite numbers only.")
    return functions


def _norms(functions, gram):
    return np.sqrt(np.maximum(0.0, ((functions @ gram) * functions).sum(axis=1)))


@_checked
def complexity(*, radius, norm, path=0.0, squared_path=0.0, examples=1):
    """C of K (31), S of I Thm 2: how hard the comparison functions are to follow.

    C = X^2/4 (B^2 + B (sqrt(m D2) + D1)); for one function that never moves X^2 B^2 / 4.

    >>> complexity(radius=1.0, norm=2.0)
    1.0
    >>> complexity(radius=1.0, norm=2.0, path=9.0, squared_path=1.0, examples=81)
    10.0
    """
    return _complexity(radius, norm, path, squared_path, examples)


def _complexity(radius, norm, path, squared_path, examples):
    return radius ** 2 / 4 * (norm ** 2 + norm * (math.sqrt(examples * squared_path) + path))


@_checked
def best_gap(gap, loss, complexity):
    """h(x, K, C) of K (30): which part of the gap between two margins the step should use.

    It minimises K/(x - z) + C/(z (x - z)) over 0 < z < x (K Lemma 7, where "maximised" is a misprint).
    K prints sqrt(C/K (x + C/K)) - C/K. This is the same number without cancellation, K = 0 included:
    x / (1 + sqrt(1 + x K / C)).

    >>> best_gap(1.0, loss=0.0, complexity=7.0)
    0.5
    >>> best_gap(1.0, loss=8.0, complexity=1.0)
    0.25
    """
    return gap / (1 + math.sqrt(1 + gap * loss / complexity))


def _least_mistakes(gap, loss, complexity):
    """The minimum in K Lemma 7: K/x + 2 C/x^2 + 2 sqrt(C/x^2 (K/x + C/x^2))."""
    share = complexity / gap ** 2
    return loss / gap + 2 * share + 2 * math.sqrt(share * (loss / gap + share))


# ---- Truncation -------------------------------------------------------------------------------


@_checked
def norm_limit(*, regularization, radius, lipschitz=1.0):
    """U = c X / lambda, K (17) and (34): no hypothesis of NORMA, and no best function, has a larger norm.

    For ILK, c is the penalty C times the largest |l'|.

    >>> norm_limit(regularization=0.1, radius=1.0)
    10.0
    """
    return lipschitz * radius / regularization


@_checked
def truncation_error(*, window, step, regularization, radius, lipschitz=1.0):
    """Bound on |f - f_trunc|, K Prop. 1, for NORMA with a fixed step: (1 - eta lambda)^tau c X / lambda.

    f_trunc is f without the terms older than the `window` (tau) latest examples, *with the same
    coefficients*. Two runs, one with `Window(tau)` and one without, may differ by more.

    >>> round(truncation_error(window=100, step=0.5, regularization=0.1, radius=1.0), 3)
    0.059
    """
    _check_step("truncation_error", step, regularization)
    return (1 - step * regularization) ** window * lipschitz * radius / regularization


@_checked
def implicit_truncation_error(*, terms, step, regularization, radius, penalty=1.0, lipschitz=1.0):
    """Bound on |f - f_trunc| for ILK with a fixed step: (1 - tau)^omega C X / lambda.

    1 - tau = 1 / (1 + eta lambda), and f_trunc is f with its `terms` (omega) largest coefficients or its
    omega most recent ones, *the same coefficients* in both. A run of SILK may differ by more. There is no
    bound on the regret of SILK: the one that I prints after Thm 3 does not know omega, and a buffer of one
    term on orthogonal examples breaks it.

    >>> round(implicit_truncation_error(terms=100, step=0.5, regularization=0.1, radius=1.0), 3)
    0.076
    """
    return (1 + step * regularization) ** -float(terms) * penalty * lipschitz * radius / regularization


# ---- NORMA: mistakes --------------------------------------------------------------------------


@_checked
def norma_margin_errors(*, learner_margin, radius, margin, loss, norm, path=0.0, squared_path=0.0, examples):
    """Bound on the margin errors y f(x) <= rho of NORMA tuned by `tune_norma_margin_errors`, K Thm 2.

    With x = mu - rho > 0 it is K/x + 2 C/x^2 + 2 sqrt(C/x^2) sqrt(K/x + C/x^2), where C is `complexity`.

    >>> norma_margin_errors(learner_margin=0.5, radius=1.0, margin=1.0, loss=0.0, norm=3.0, examples=100)
    36.0
    """
    gap = _gap("norma_margin_errors", margin, learner_margin)
    return _least_mistakes(gap, loss, _complexity(radius, norm, path, squared_path, examples))


def _gap(owner, margin, learner_margin):
    if learner_margin >= margin:
        raise bad_parameter(owner, "learner_margin", f"below the comparison's margin {margin:g}", learner_margin)
    return margin - learner_margin


@_checked
def norma_mistakes(*, radius, margin, loss, norm, path=0.0, squared_path=0.0, examples):
    """Bound on the mistakes y f(x) <= 0 of NORMA tuned by `tune_norma_mistakes`, K Thm 3.

    K/mu + 2 C/mu^2 + 2 sqrt(C/mu^2) sqrt(K/mu + C/mu^2), where C is `complexity`. For a function that
    separates the stream, K = 0, it is X^2 B^2 / mu^2. If the comparison does not move it holds for the
    `Perceptron` as well, and for all comparisons at once: with lambda = rho = 0 the step does not matter.

    >>> norma_mistakes(radius=1.0, margin=1.0, loss=0.0, norm=3.0, examples=100)
    9.0
    >>> norma_mistakes(radius=1.0, margin=1.0, loss=40.0, norm=3.0, examples=1000)
    64.0
    """
    return _least_mistakes(margin, loss, _complexity(radius, norm, path, squared_path, examples))


@_checked
def norma_hinge_loss(*, learner_margin, radius, margin, loss, norm, path=0.0, squared_path=0.0, examples):
    """Bound on NORMA's own cumulative hinge loss sum_t max(0, rho - y_t f_t(x_t)), K (47): K + C/(mu - rho).

    It is for the step eta' = 2 (mu - rho) / X^2, that is eta = eta'/(1 + eta' lambda), with lambda of K (32).
    `tune_norma_mistakes` has that step for its own margin rho = mu - h(mu, K, C).

    >>> norma_hinge_loss(learner_margin=0.5, radius=1.0, margin=1.0, loss=2.0, norm=1.0, examples=100)
    2.5
    """
    gap = _gap("norma_hinge_loss", margin, learner_margin)
    return loss + _complexity(radius, norm, path, squared_path, examples) / gap


@_checked(regularization=NOT_NEGATIVE)
def norma_mistakes_untuned(*, step, regularization, learner_margin, radius, margin, loss, norm,
                           path=0.0, squared_path=0.0, examples):
    """Bound on the mistakes of NORMA with the hinge loss and *any* fixed step, lambda and margin.

    It follows from K (45) before any tuning. With eta' = eta/(1 - eta lambda) and z = eta' lambda,

        M <= (2 eta' K + E) / (eta' (2 mu - eta' X^2)),    E = B^2 + (D2/z + 2 B D1 + m z B^2) / (2 + z)

    whenever rho + eta' X^2/2 <= mu. As c g at the margin c mu is as good a comparison as g at mu, the
    best c that meets the condition is taken. Infinite for a moving comparison without regularization.

    >>> stream = dict(radius=1.0, margin=1.0, loss=0.0, norm=3.0, examples=100)
    >>> norma_mistakes_untuned(step=0.3, regularization=0.0, learner_margin=0.0, **stream)
    9.0
    >>> round(norma_mistakes_untuned(step=0.3, regularization=0.0, learner_margin=1.0, **stream), 1)
    19.8
    """
    if step * regularization >= 1:
        limit = f"below 1 / regularization = {1 / regularization:g}"
        raise bad_parameter("norma_mistakes_untuned", "step", limit, step)
    full = step / (1 - step * regularization)
    energy = _energy(full * regularization, norm, path, squared_path, examples)
    return _mistakes_at_best_scale(full, full, learner_margin + full * radius ** 2 / 2, energy, radius, margin, loss)


def _energy(decay, norm, path, squared_path, examples):
    """E = B^2 + (D2/z + 2 B D1 + m z B^2) / (2 + z), K (43)-(45), for z = eta' lambda."""
    if squared_path == 0:
        moving = 0.0  # nothing moves, whatever bound on the path was given
    elif decay == 0:
        return math.inf
    else:
        moving = squared_path / decay + 2 * norm * path
    return norm ** 2 + (moving + examples * decay * norm ** 2) / (2 + decay)


def _mistakes_at_best_scale(largest, sure, least_margin, energy, radius, margin, loss):
    """min over c of (2 largest c K + c^2 E) / (sure (2 c mu - sure X^2)), subject to c mu >= least_margin.

    `largest` bounds every coefficient of an update, `sure` is what a mistake gets at least.
    """
    if energy == math.inf:
        return math.inf
    charge, cost = 2 * largest * loss, sure * radius ** 2
    scale = (cost + math.sqrt(cost ** 2 + 2 * margin * charge * cost / energy)) / (2 * margin)
    scale = max(scale, least_margin / margin)
    return (charge * scale + energy * scale ** 2) / (sure * (2 * scale * margin - cost))


# ---- NORMA: risk ------------------------------------------------------------------------------


@_checked
def norma_regret(*, examples, step, regularization, radius, lipschitz=1.0):
    """Bound on sum_t R_inst[f_t] - m R_reg[g] for every g, K Thm 4: a sqrt(m) + b.

    For NORMA with ``InverseSqrt(step)`` and a convex loss. R_inst[f, x, y] = l(f(x), y) + lambda/2 |f|^2, and
    R_reg[g] is its mean over the stream. a = 2 lambda U^2 (2 eta lambda + 1/(eta lambda)), b = U^2/(2 eta),
    U = c X / lambda. For the hinges of many classes c is sqrt(2).

    >>> norma_regret(examples=10000, step=0.5, regularization=1.0, radius=1.0)
    601.0
    """
    _check_step("norma_regret", step, regularization)
    return _regret(2.0, examples, step, regularization, lipschitz * radius / regularization)


def _regret(weight, examples, step, regularization, limit):
    """a sqrt(m) + b of K Thms 4 and 6; `weight` is what multiplies eta lambda in a."""
    product = step * regularization
    slope = 2 * regularization * limit ** 2 * (weight * product + 1 / product)
    return slope * math.sqrt(examples) + limit ** 2 / (2 * step)


@_checked
def norma_window_regret(*, examples, step, regularization, radius, lipschitz=1.0):
    """`norma_regret` for NORMA with the window of K Thm 6: a = 2 lambda U^2 (10 eta lambda + 1/(eta lambda)).

    The budget is ``Sublinear(1/2 + growth, start)`` with `start` at least `window_start`. The window never
    shrinks; the printed one does, against the theorem's own assumption.

    >>> norma_window_regret(examples=10000, step=0.5, regularization=1.0, radius=1.0)
    1401.0
    """
    _check_step("norma_window_regret", step, regularization)
    return _regret(10.0, examples, step, regularization, lipschitz * radius / regularization)


@_checked
def window_start(*, step, regularization, growth):
    """t0(lambda, eta, epsilon) of K Thm 6: up to here the window must hold every example.

    The smallest t0 such that for all t >= t0: exp(-eta lambda t^e) <= eta lambda / sqrt(t), and
    ceil(t^(1/2 + e)) <= 3t/4; `growth` is e. An integer, or infinity if it is beyond all floats.

    It is huge for a small eta lambda and a small e. An e of about 0.4 is kinder:

    >>> [window_start(step=step, regularization=1.0, growth=0.25) for step in (0.9, 0.5, 0.1)]
    [6, 14457, 197377914]
    >>> [window_start(step=step, regularization=1.0, growth=0.4) for step in (0.9, 0.5, 0.1)]
    [26, 80, 52682]
    """
    _check_step("window_start", step, regularization)
    return max(_first_decayed(step * regularization, growth), _first_short(growth))


def _first_decayed(product, growth):
    """First t from which exp(-x t^e) <= x / sqrt(t) for good; x is `product`."""
    def excess(u):  # convex in u = log t; what is needed is excess >= 0
        return product * math.exp(growth * u) - u / 2 + math.log(product)

    low = math.log(1 / (2 * product * growth)) / growth  # where excess is smallest
    if excess(low) >= 0:
        return 1
    high = max(low, 0.0) + 1
    while excess(high) < 0:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) < 0 else (low, middle)
    return _integer_above(high, lambda t: np.exp(-product * t ** growth) <= product / np.sqrt(t))


def _first_short(growth):
    """First t from which ceil(t^(1/2 + e)) <= 3t/4 for good."""
    power = 0.5 + growth
    crossing = math.log(4 / 3) / (1 - power)  # log t for t^power = 3t/4
    if crossing > LARGEST_LOG:
        return math.inf
    enough = math.exp(crossing) + 4 / (3 * (1 - power))  # t^power + 1 <= 3t/4, as t^power is concave
    return _integer_above(math.log(enough), lambda t: np.ceil(t ** power) <= 0.75 * t)


def _integer_above(log_t, holds):
    """First integer from which `holds` holds, given the logarithm of a number just above it."""
    if log_t > LARGEST_LOG:
        return math.inf
    top = math.ceil(math.exp(log_t)) + 1
    if top > 2 ** 52:
        return top  # floats are too coarse to tell integers apart
    t = np.arange(max(1, top - 4096), top + 1, dtype=float)
    fails = t[~holds(t)]
    return int(fails[-1]) + 1 if len(fails) else int(t[0])


@_checked
def average_excess_risk(*, examples, step, regularization, radius, largest_risk, failure, lipschitz=1.0):
    """Bound on E R_inst[f_average] - R_reg[g], K Cor. 5: (a + L sqrt(2 ln(1/delta)))/sqrt(m) + b/m.

    For examples drawn independently from one distribution it holds with probability 1 - `failure` (delta),
    for NORMA with ``InverseSqrt(step)`` and ``average=True``: f_average is (f_1 + ... + f_m)/m. (K's sum stops
    at m - 1, which is no average.) R_reg[g] is the regularised risk on the stream of any g. `largest_risk` (L)
    bounds R_inst of all f_t; see `hinge_risk_limit`. a and b are those of `norma_regret`.

    >>> excess = average_excess_risk(examples=10**6, step=0.7, regularization=1.0, radius=1.0,
    ...                              largest_risk=2.5, failure=0.05)
    >>> round(excess, 4)
    0.0118
    """
    regret = norma_regret(
        examples=examples, step=step, regularization=regularization, radius=radius, lipschitz=lipschitz)
    return regret / examples + largest_risk * math.sqrt(2 * math.log(1 / failure) / examples)


@_checked
def hinge_risk_limit(*, learner_margin, regularization, radius):
    """L of K Cor. 5 for the hinge: rho + X^2/lambda + X^2/(2 lambda), as |f| <= X/lambda.

    K's 5 X^2/(2 lambda) is the same for the largest margin that can be reached, X^2/lambda.

    >>> hinge_risk_limit(learner_margin=1.0, regularization=1.0, radius=1.0)
    2.5
    """
    return learner_margin + 1.5 * radius ** 2 / regularization


# ---- ILK --------------------------------------------------------------------------------------


@_checked
def ilk_mistakes(*, radius, margin, loss, norm, path=0.0, squared_path=0.0, examples):
    """Bound on the mistakes of ILK tuned by `tune_ilk_mistakes`, I Thm 2: the number of `norma_mistakes`.

    I states it for every eta, which is false. With eta C X^2 = 2 h(mu, K, S) and the margin
    rho = eta C X^2/(1 + eta lambda) every mistake makes a full step and K's proof goes through. The loss of the
    comparison is the hinge loss at the margin mu, without C. (I's own mu is 0 whenever Delta is constant.)

    For `MulticlassHinge`, radius^2 bounds k((x,y),(x,y)) - 2 k((x,y),(x,l)) + k((x,l),(x,l)) for all labels
    l: that is 2 k(x, x). A mistake is then f(x, y) <= f(x, l) for some l.

    >>> ilk_mistakes(radius=1.0, margin=1.0, loss=0.0, norm=3.0, examples=100)
    9.0
    """
    return norma_mistakes(radius=radius, margin=margin, loss=loss, norm=norm, path=path,
                          squared_path=squared_path, examples=examples)


@_checked(regularization=NOT_NEGATIVE, learner_margin=POSITIVE)
def ilk_mistakes_untuned(*, step, regularization, learner_margin, penalty=1.0, radius, margin, loss, norm,
                         path=0.0, squared_path=0.0, examples):
    """Bound on the mistakes of ILK with the hinge loss and *any* fixed step, lambda, margin and penalty.

    Let R = (1 + eta lambda) rho. A mistake gets a coefficient of at least b = min(eta C, R/X^2) before it
    shrinks. If R <= mu, other updates cannot lead away from the comparison, and

        M <= (2 eta C K + E) / (b (2 mu - b X^2)),    E as in `norma_mistakes_untuned` with z = eta lambda

    The comparison is scaled as there, so that any margin will do. For small steps the bound grows like
    1/eta, and so can the mistakes.

    >>> stream = dict(radius=1.0, margin=1.0, loss=0.0, norm=3.0, examples=1000)
    >>> ilk_mistakes_untuned(step=1.0, regularization=0.0, learner_margin=1.0, **stream)
    9.0
    >>> round(ilk_mistakes_untuned(step=0.01, regularization=0.0, learner_margin=1.0, **stream))
    452
    """
    reach = (1 + step * regularization) * learner_margin
    sure = min(step * penalty, reach / radius ** 2)
    energy = _energy(step * regularization, norm, path, squared_path, examples)
    return _mistakes_at_best_scale(step * penalty, sure, reach, energy, radius, margin, loss)


@_checked
def ilk_regret(*, examples, step, regularization, radius, penalty=1.0, lipschitz=1.0):
    """Bound on sum_t R_t(f_t) - sum_t R_t(g) for every g, I Thm 3: a sqrt(T) + b.

    For ILK with ``InverseSqrt(step)``, R_t(f) = lambda/2 |f|^2 + C L(f(x_t), y_t), and U = C X / lambda,
    a = 4 eta C^2 X^2 + 2 U^2/eta, b = U^2/(2 eta). Any positive step will do. For `MulticlassHinge` X^2 is
    2 max k(x, x): the right label against any other. (I prints a difference that is 0 for every kernel.)

    >>> ilk_regret(examples=10000, step=0.5, regularization=1.0, radius=1.0, penalty=2.0)
    2404.0
    """
    return _regret(2.0, examples, step, regularization, penalty * lipschitz * radius / regularization)


# ---- Projection and Perceptron ----------------------------------------------------------------


@_checked
def projection_mistakes(*, radius, norm, ball=None, margin=1.0):
    """Bound on the mistakes of Herbster's projection algorithm for two classes, H Thms 2 and 4.

    R^2 |u|^2 / margin^2, for every u with y u(x) >= margin on all examples; `norm` is |u| (or |u - w_1|, for
    another start than 0). H has margin 1.

    With hypotheses kept in the ball |w| <= gamma it is R^2 (gamma + |u|)^2 / margin^2 for *any* stretch of
    the stream, if |u| <= gamma; u need fit this stretch only, and R is the radius of the stretch.

    >>> projection_mistakes(radius=1.0, norm=3.0)
    9.0
    >>> projection_mistakes(radius=1.0, norm=3.0, ball=4.0)
    49.0
    """
    return _projection("projection_mistakes", radius, norm, ball) / margin ** 2


@_checked
def projection_loss(*, radius, norm, ball=None):
    """Bound on sum_t max(0, |y_t - w_t(x_t)| - width)^2 of the projection algorithm, H Thms 3, 5 and 6.

    R^2 |u|^2 for every u with |y - u(x)| <= width on all examples, and R^2 (gamma + |u|)^2 for any
    stretch if hypotheses are kept in a ball; see `projection_mistakes`. R^2 = max K(x, x); H Thm 6 prints R.

    >>> projection_loss(radius=2.0, norm=3.0)
    36.0
    """
    return _projection("projection_loss", radius, norm, ball)


def _projection(owner, radius, norm, ball):
    if ball is not None and norm > ball:
        raise bad_parameter(owner, "norm", f"at most the radius {ball:g} of the ball", norm)
    distance = norm if ball is None else norm + ball
    return radius ** 2 * distance ** 2


@_checked
def perceptron_mistakes(*, radius, margin, norm=1.0, deviation=0.0):
    """Bound on the mistakes of the Perceptron, V Thm 1: ((R |theta| + D) / gamma)^2.

    D is the `deviation` sqrt(sum_t max(0, gamma - y_t theta(x_t))^2) of a function theta with norm |theta|.
    D = 0 is Novikoff's theorem; otherwise it is Freund and Schapire's, for streams that cannot be
    separated. `norma_mistakes` with the sum of the deviations as `loss` holds too: take the smaller.

    >>> perceptron_mistakes(radius=1.0, margin=0.25)
    16.0
    >>> perceptron_mistakes(radius=1.0, margin=0.25, deviation=0.5)
    36.0
    """
    return ((radius * norm + deviation) / margin) ** 2


@_checked
def voted_perceptron_error(*, expected_mistakes, examples):
    """Bound on the probability that the voted Perceptron errs on a new example, V Thm 2: 2 E[bound]/(m + 1).

    After one pass over m independent examples. `expected_mistakes` is the expectation of
    `perceptron_mistakes` over draws of m + 1 examples, for the best theta and gamma of each draw. At most 1.

    >>> voted_perceptron_error(expected_mistakes=16.0, examples=999)
    0.032
    """
    return min(1.0, 2 * expected_mistakes / (examples + 1))


# ---- Tuning: parameters ready for a constructor -----------------------------------------------


@_checked
def tune_norma_margin_errors(*, learner_margin, radius, margin, loss, norm, path=0.0, squared_path=0.0, examples):
    """Parameters of NORMA for `norma_margin_errors`, K Thm 2.

    eta' = 2 h(mu - rho, K, C)/X^2, lambda = sqrt(D2/m)/(B eta') (K (32)), eta = eta'/(1 + eta' lambda).

    >>> tune_norma_margin_errors(learner_margin=0.5, radius=1.0, margin=1.0, loss=0.0, norm=3.0, examples=100)
    {'loss': Hinge(margin=0.5), 'step': 0.5, 'regularization': 0.0}
    """
    gap = _gap("tune_norma_margin_errors", margin, learner_margin)
    share = best_gap(gap, loss, _complexity(radius, norm, path, squared_path, examples))
    return _explicit(learner_margin, 2 * share / radius ** 2, norm, squared_path, examples)


def _explicit(learner_margin, full, norm, squared_path, examples):
    """NORMA's parameters for eta' = `full`."""
    regularization = _best_regularization(full, norm, squared_path, examples)
    return {
        "loss": Hinge(float(learner_margin)),
        "step": full / (1 + full * regularization),
        "regularization": regularization,
    }


def _best_regularization(step, norm, squared_path, examples):
    return math.sqrt(squared_path / examples) / (norm * step)  # K (32)


@_checked
def tune_norma_mistakes(*, radius, margin, loss, norm, path=0.0, squared_path=0.0, examples, zero_margin=False):
    """Parameters of NORMA for `norma_mistakes`, K Thm 3.

    eta' = 2 r/X^2 with r = h(mu, K, C), lambda and eta as in `tune_norma_margin_errors`, and the margin
    rho = mu - r, or 0 with `zero_margin`. The bound is the same. With rho = mu - r there is a bound on
    mistakes and on the hinge loss (`norma_hinge_loss`) but none on margin errors.

    >>> tune_norma_mistakes(radius=1.0, margin=1.0, loss=0.0, norm=3.0, examples=100)
    {'loss': Hinge(margin=0.5), 'step': 1.0, 'regularization': 0.0}
    """
    share = best_gap(margin, loss, _complexity(radius, norm, path, squared_path, examples))
    learner_margin = 0.0 if zero_margin else margin - share
    return _explicit(learner_margin, 2 * share / radius ** 2, norm, squared_path, examples)


@_checked
def tune_norma_regret(*, regularization):
    """Parameters of NORMA for `norma_regret`, K Thm 4: the step that makes a smallest, eta = 1/(sqrt(2) lambda).

    >>> tune_norma_regret(regularization=0.5)
    {'step': InverseSqrt(rate=1.41...), 'regularization': 0.5}
    """
    return {"step": InverseSqrt(math.sqrt(0.5) / regularization), "regularization": float(regularization)}


@_checked
def tune_norma_window(*, regularization, growth=0.4, step=None):
    """Parameters of NORMA for `norma_window_regret`, K Thm 6: step and window.

    Without `step`, the one that makes a smallest, eta = 1/(sqrt(10) lambda). A larger step, up to 1/lambda, costs
    little and starts with a smaller window; see `window_start`.

    >>> tune_norma_window(regularization=0.5)
    {'step': InverseSqrt(rate=0.63...), 'regularization': 0.5, 'budget': Sublinear(exponent=0.9, start=747)}
    >>> tune_norma_window(regularization=0.5, growth=0.25, step=1.8)["budget"]
    Sublinear(exponent=0.75, start=6)
    """
    step = math.sqrt(0.1) / regularization if step is None else float(step)
    start = window_start(step=step, regularization=regularization, growth=growth)
    if start > 2 ** 62:
        raise ValueError(
            f"The theorem wants all of the first {start:.3g} examples for step * regularization = "
            f"{step * regularization:g} and growth = {growth:g}; expected at most 2**62. Take a larger one of them."
        )
    budget = Sublinear(exponent=0.5 + growth, start=start)
    return {"step": InverseSqrt(step), "regularization": float(regularization), "budget": budget}


@_checked
def tune_ilk_mistakes(*, radius, margin, loss, norm, path=0.0, squared_path=0.0, examples, penalty=1.0):
    """Parameters of ILK for `ilk_mistakes`, I Thm 2 as corrected.

    eta = 2 h(mu, K, S)/(C X^2), lambda = sqrt(D2/T)/(B eta), rho = eta C X^2/(1 + eta lambda). With K = 0 and a
    comparison that does not move this is rho = mu.

    >>> tune_ilk_mistakes(radius=1.0, margin=2.0, loss=0.0, norm=6.0, examples=100, penalty=4.0)
    {'loss': Hinge(margin=2.0), 'step': 0.5, 'regularization': 0.0, 'penalty': 4.0}
    """
    share = best_gap(margin, loss, _complexity(radius, norm, path, squared_path, examples))
    step = 2 * share / (penalty * radius ** 2)
    regularization = _best_regularization(step, norm, squared_path, examples)
    return {
        "loss": Hinge(2 * share / (1 + step * regularization)),
        "step": step,
        "regularization": regularization,
        "penalty": float(penalty),
    }


@_checked
def tune_ilk_regret(*, regularization, penalty=1.0):
    """Parameters of ILK for `ilk_regret`, I Thm 3: the step that makes a smallest, eta = 1/(sqrt(2) lambda).

    >>> tune_ilk_regret(regularization=0.5, penalty=2.0)
    {'step': InverseSqrt(rate=1.41...), 'regularization': 0.5, 'penalty': 2.0}
    """
    return {**tune_norma_regret(regularization=regularization), "penalty": float(penalty)}
