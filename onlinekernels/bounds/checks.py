"""Checks of the arguments of bounds: one rule per name."""
import functools
import inspect
import math
import numbers

import numpy as np

from onlinekernels.validation import as_number, bad_parameter

LARGEST_LOG = 709.0  # the exponential of more is no float
ROUNDING = 1e-12  # what a bound and the numbers that describe a comparison may have lost


def _number(expected, test):
    """A rule: what is expected, in words and as a predicate."""
    def allowed(value):
        number = as_number(value)
        return number is not None and test(number)

    return expected, allowed


POSITIVE = _number("a positive number", lambda value: value > 0)
NOT_NEGATIVE = _number("a number of at least 0", lambda value: value >= 0)
FRACTION = _number("a number between 0 and 1, both excluded", lambda value: 0 < value < 1)
HALF = _number("a number between 0 and 1/2, both excluded", lambda value: 0 < value < 0.5)
COUNT = "an integer of at least 1", lambda value: isinstance(value, numbers.Integral) and (as_number(value) or 0) >= 1
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


def checked(function=None, **exceptions):
    """Check every argument by the rule of its name; `exceptions` replace rules for one function."""
    if function is None:
        return functools.partial(checked, **exceptions)
    signature, rules = inspect.signature(function), {**RULES, **exceptions}

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
    expected, allowed = rule
    if not allowed(value):
        raise bad_parameter(owner, name, expected, value)


def check_step(owner, step, regularization):
    """The explicit algorithms need step * regularization <= 1."""
    if step * regularization > 1:
        raise bad_parameter(owner, "step", f"at most 1 / regularization = {1 / regularization:g}", step)
