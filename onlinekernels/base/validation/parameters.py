"""Checks of parameters: which values one takes, in a predicate and in words."""
import math
import numbers

import numpy as np

__all__ = ["Real", "as_number", "bad_parameter", "check_class_weight", "check_count", "check_flag", "check_integer"]


def bad_parameter(owner, name, expected, value):
    """ValueError for a parameter, in scikit-learn's words."""
    owner = owner if isinstance(owner, str) else type(owner).__name__
    return ValueError(f"The {name!r} parameter of {owner} must be {expected}. Got {value!r} instead.")


class Real:
    """A check: a parameter must be a finite number for which `allowed` holds, in words `expected`.

    >>> from onlinekernels import Gaussian
    >>> Real("a number below 2", lambda value: value < 2)(Gaussian(1), "width")
    1.0
    >>> check_positive.or_none(Gaussian(-1), "width")
    Traceback (most recent call last):
    ...
    ValueError: The 'width' parameter of Gaussian must be a positive number or None. Got -1 instead.
    """

    def __init__(self, expected, allowed):
        self.expected = expected
        self.allowed = allowed

    def __call__(self, owner, name):
        """The value as a float."""
        value = getattr(owner, name)
        if not self.accepts(value):
            raise bad_parameter(owner, name, self.expected, value)
        return float(value)

    def accepts(self, value):
        """Whether a value is such a number."""
        number = as_number(value)
        return number is not None and bool(self.allowed(number))

    def or_none(self, owner, name):
        """The value as a float, or None."""
        return None if getattr(owner, name) is None else Real(f"{self.expected} or None", self.allowed)(owner, name)


check_positive = Real("a positive number", lambda value: value > 0)
check_not_negative = Real("a number of at least 0", lambda value: value >= 0)
check_finite = Real("a finite number", lambda value: True)
check_fraction = Real("a number in (0, 1)", lambda value: 0 < value < 1)
check_share = Real("a number in (0, 1]", lambda value: 0 < value <= 1)
check_part = Real("a number in [0, 1)", lambda value: 0 <= value < 1)
check_memory = Real("a number in [0, 1]", lambda value: 0 <= value <= 1)


def as_number(value):
    """A finite real number of any kind as a float; None for anything else, truth values included."""
    if type(value) is float:  # most are, and abstract classes take their time
        return value if math.isfinite(value) else None
    if not isinstance(value, numbers.Real) or isinstance(value, (bool, np.bool_)):
        return None
    try:
        value = float(value)
    except OverflowError:  # a whole number or a fraction beyond all floats
        return None
    return value if math.isfinite(value) else None


def check_integer(owner, name, minimum, maximum=2**62):
    """A parameter that must be a whole number from `minimum` to `maximum`."""
    value = getattr(owner, name)
    is_integer = isinstance(value, numbers.Integral) and not isinstance(value, (bool, np.bool_))
    if not is_integer or not minimum <= value <= maximum:
        largest = "2**62" if maximum == 2**62 else maximum
        raise bad_parameter(owner, name, f"an integer of at least {minimum} and at most {largest}", value)
    return int(value)


def check_count(owner, name):
    """A parameter that must be a whole number of at least 1."""
    return check_integer(owner, name, 1)


def check_flag(owner, name, or_none=False):
    """A parameter that must be a truth value; with `or_none`, None is False."""
    value = getattr(owner, name)
    if not (isinstance(value, (bool, np.bool_)) or or_none and value is None):
        raise bad_parameter(owner, name, "True, False or None" if or_none else "True or False", value)
    return bool(value)


def check_class_weight(owner, weights):
    """A dictionary of weights."""
    numbers_of = [as_number(float(w) if isinstance(w, (bool, np.bool_)) else w) for w in weights.values()]
    if not all(number is not None and number >= 0 for number in numbers_of):
        raise bad_parameter(owner, "class_weight", "a dictionary of weights of at least 0", weights)
