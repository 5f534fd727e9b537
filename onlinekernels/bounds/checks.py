"""The arguments of bounds: what each means, and which values it takes, said once for all functions."""
import functools
import inspect
import math
import numbers
import re
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from onlinekernels.base import docstrings
from onlinekernels.base.params import Parameterized
from onlinekernels.labels import LabelStructure
from onlinekernels.base.validation import Real, as_number, bad_parameter, check_not_negative, check_positive

LARGEST_LOG = 709.0  # the exponential of more is no float
ROUNDING = 1e-12  # what a bound and the numbers that describe a comparison may have lost


class Rule(NamedTuple):
    """Which values an argument takes, in words and as a predicate; a `Real` is one as well."""

    expected: str
    accepts: Callable


POSITIVE, NOT_NEGATIVE = check_positive, check_not_negative
FRACTION = Real("a number between 0 and 1, both excluded", lambda value: 0 < value < 1)
HALF = Real("a number between 0 and 1/2, both excluded", lambda value: 0 < value < 0.5)
FLAG = Rule("True or False", lambda value: isinstance(value, (bool, np.bool_)))
COUNT = Rule(
    "an integer of at least 1", lambda value: isinstance(value, numbers.Integral) and (as_number(value) or 0) >= 1)
LABELS = Rule(
    "a Taxonomy, a LabelGraph, Labels or a list of at least two labels",
    lambda value: isinstance(value, LabelStructure) or isinstance(value, (list, tuple, np.ndarray)) and len(value) > 1,
)

ARGUMENTS = {
    "radius": (POSITIVE, "X in K and I, R in H and V: k(x, x) <= radius^2 for all examples."),
    "margin": (POSITIVE, "mu, in V gamma: the margin at which the comparison functions are judged."),
    "loss": (NOT_NEGATIVE, "K, their cumulative hinge loss at that margin: sum_t max(0, mu - y_t g_t(x_t))."),
    "norm": (POSITIVE, "B, in H |u|, in V |theta|: the largest norm of the comparison functions."),
    "path": (NOT_NEGATIVE, "D1, the way that the comparison functions travel: sum_t |g_{t+1} - g_t|."),
    "squared_path": (NOT_NEGATIVE, "D2, sum_t |g_{t+1} - g_t|^2."),
    "examples": (COUNT, "m in K and V, T in I: the length of the stream."),
    "step": (POSITIVE, "eta, the learning rate of the algorithm; of `InverseSqrt`, its rate."),
    "regularization": (POSITIVE, "lambda of the algorithm."),
    "learner_margin": (NOT_NEGATIVE, "rho, the margin of the algorithm's own hinge loss."),
    "lipschitz": (POSITIVE, "c, the largest |l'(f, y)|: 1 for the hinges, logistic, absolute, insensitive and Huber."),
    "penalty": (POSITIVE, "C of `ILK`."),
    "regret": (NOT_NEGATIVE, "What the learner may lose more than g on the stream."),
    "members": (COUNT, "m, how many members an ensemble has."),
    "rate": (POSITIVE, "eta, how fast weights follow losses."),
    "share": (FRACTION, "alpha, what each member gives up to all with every row."),
    "squared_ranges": (NOT_NEGATIVE, "sum_t s_t^2, s_t the largest loss of a member at row t minus the smallest."),
    "window": (COUNT, "tau, how many of the latest examples f may use."),
    "terms": (COUNT, "omega, how many terms stay."),
    "growth": (HALF, "epsilon, or e: the window of example t is ceil(t^(1/2 + e))."),
    "largest_risk": (POSITIVE, "L, the largest regularized loss that an f_t has on an example."),
    "failure": (FRACTION, "delta, the probability with which the bound may fail."),
    "gap": (POSITIVE, "x, the distance between two margins."),
    "complexity": (POSITIVE, "C in K, S in I: `complexity` of the comparison functions."),
    "ball": (POSITIVE, "gamma, the radius of the ball in which the hypotheses are kept; None is no ball."),
    "deviation": (NOT_NEGATIVE, "D, sqrt(sum_t max(0, gamma - y_t theta(x_t))^2) of a function theta."),
    "expected_mistakes": (NOT_NEGATIVE, "The mean of `perceptron_mistakes` over draws of the stream."),
    "labels": (LABELS, "Many classes, as `comparison` took them; None is two."),
    "mistakes": (NOT_NEGATIVE, "Those of the best member."),
    "information": (NOT_NEGATIVE, "log det(I + K / s) of the kernel matrix K of all examples and the noise s."),
    "largest_target": (POSITIVE, "Y, the largest |y_t|."),
    "shrunk": (FLAG, "Whether predictions are those of the kernel aggregating algorithm."),
    "zero_margin": (FLAG, "Whether the algorithm's own margin is to be 0."),
}


def checked(function=None, **exceptions):
    """Check every argument by the rule of its name, and say in the docstring what it means.

    `exceptions` replace rules for one function.
    """
    if function is None:
        return functools.partial(checked, **exceptions)
    signature = inspect.signature(function)
    rules = {name: exceptions.get(name, ARGUMENTS[name][0]) for name in signature.parameters}
    function.__doc__ = _with_arguments(function.__doc__, rules, signature)

    @functools.wraps(function)
    def with_checks(*args, **kwargs):
        given = signature.bind(*args, **kwargs)
        given.apply_defaults()
        for name, value in given.arguments.items():
            optional = value is None and signature.parameters[name].default is None
            if not optional:
                check(function.__name__, name, value, rules[name])
        return function(*given.args, **given.kwargs)

    return with_checks


def bound(function=None, **exceptions):
    """`checked`, for an upper bound: one that is a whole number but for rounding is that number.

    A tight bound of one mistake must not come out as 0.9999999999999999, which allows none.
    """
    if function is None:
        return functools.partial(bound, **exceptions)
    exact = checked(function, **exceptions)

    @functools.wraps(function)
    def rounded_up(*args, **kwargs):
        value = exact(*args, **kwargs)
        whole = round(value) if math.isfinite(value) else value
        return float(whole) if 0 < whole - value <= ROUNDING * whole else value

    return rounded_up


def check(owner, name, value, rule):
    if not rule.accepts(value):
        raise bad_parameter(owner, name, rule.expected, value)


def _with_arguments(doc, rules, signature):
    """A docstring, if there is one, and below it the arguments and the papers that it cites."""
    if doc is None:
        return None
    lines = [inspect.cleandoc(doc), "", "Parameters", "----------"]
    for name, rule in rules.items():
        optional = " or None" if signature.parameters[name].default is None else ""
        lines += [f"{name} : {rule.expected}{optional}", f"    {ARGUMENTS[name][1]}"]
    papers = docstrings.entries(Parameterized.__doc__)
    lines += ["", "References", "----------"]
    for letter in ("K", "I", "V", "H"):
        if re.search(rf"\b{letter}\b", "\n".join(lines[:-2])):
            lines += papers[letter]
    return "\n".join(lines) + "\n"


def check_step(owner, step, regularization):
    """The explicit algorithms need step * regularization <= 1."""
    if step * regularization > 1:
        raise bad_parameter(owner, "step", f"at most 1 / regularization = {1 / regularization:g}", step)
