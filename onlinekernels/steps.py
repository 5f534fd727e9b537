"""Steps: the learning rate eta_t of example t = 1, 2, ..."""
import numbers

from onlinekernels._core.rules import STEP_CODES, step_sizes
from onlinekernels.params import Parameterized
from onlinekernels.validation import bad_parameter, check_real

__all__ = ["Step", "Fixed", "InverseSqrt", "Decaying"]


class Step(Parameterized):
    """Base of all steps."""

    delay = 1.0

    def validate(self):
        """Raise ValueError for a parameter out of range."""
        check_real(self, "rate", "a positive number", lambda value: value > 0)

    def core(self):
        """(code, rate, delay) for the engine."""
        return STEP_CODES[type(self).__name__], float(self.rate), float(self.delay)

    def size(self, t):
        """eta_t for example t, or for an array of them; t counts from 1."""
        self.validate()
        return step_sizes(*self.core(), t)


class Fixed(Step):
    """eta_t = rate.

    >>> Fixed(0.5).size(100)
    0.5
    """

    def __init__(self, rate=0.1):
        self.rate = rate


class InverseSqrt(Step):
    """eta_t = rate / sqrt(t), the step of the convergence theorems (K Thms 4 and 6).

    >>> InverseSqrt(0.5).size([1, 4, 100])
    array([0.5 , 0.25, 0.05])
    """

    def __init__(self, rate=0.1):
        self.rate = rate


class Decaying(Step):
    """eta_t = rate * sqrt(delay / (delay + t)), V (59).

    About constant for `delay` examples, then falling like 1/sqrt(t).

    >>> Decaying(rate=1.0, delay=3).size(1)
    0.866...
    """

    def __init__(self, rate=0.1, delay=100):
        self.rate = rate
        self.delay = delay

    def validate(self):
        super().validate()
        check_real(self, "delay", "a positive number", lambda value: value > 0)


def as_step(value, owner):
    """A step from what a user may give: a step, or a number that means `Fixed`."""
    if isinstance(value, Step):
        value.validate()
        return value
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        if value > 0 and value < float("inf"):
            return Fixed(float(value))
    raise bad_parameter(owner, "step", "a positive number or a step such as InverseSqrt(0.1)", value)
