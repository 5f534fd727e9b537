"""Steps: the learning rate eta_t of example t = 1, 2, ..."""
from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from onlinekernels._core.rules import STEP_CODES, step_sizes
from onlinekernels.base.params import Parameterized, nearest, same_parameters
from onlinekernels.base.validation import (
    as_number, bad_parameter, check_flag, check_memory, check_not_negative, check_positive,
)

if TYPE_CHECKING:
    from onlinekernels.annotations import Any

__all__ = ["Step", "Fixed", "InverseSqrt", "Decaying", "MetaDescent"]


@dataclass(eq=False, repr=False)
class Step(Parameterized):
    """Base of all steps.

    One of your own has a ``size(t)`` of its own; a plain function of t will do as well. It is asked for each example.

    Parameters
    ----------
    rate : float
        How large the steps eta_t are; positive.

    Examples
    --------
    >>> from onlinekernels import NORMA
    >>> model = NORMA("squared", "linear", step=lambda t: 1.0 if t == 1 else 0.5, regularization=0.0, offset=False)
    >>> model.progressive([[1.0]] * 3, [1.0] * 3)
    array([0., 1., 1.])
    """

    rate: float = 0.1

    _values = {"rate": check_positive}
    delay = 1.0
    meta_rate = 0.0
    memory = 0.0

    def validate(self) -> None:
        """Raise ValueError for a parameter out of range."""
        self._check_values()
        if self.is_own() and (isinstance(self, MetaDescent) or type(self).size is Step.size):
            raise ValueError(f"{type(self).__name__} must derive from one of {', '.join(STEP_CODES)}, or define "
                             "size(t) and not adapt itself.")

    @classmethod
    def is_own(cls) -> Any:
        """Whether `size` is Python code of the user's, or missing."""
        return nearest(cls, STEP_CODES) is None or not str(cls.size.__module__).startswith("onlinekernels.")

    def core(self, most: float = math.inf) -> Any:
        """(code or a function of t, rate, delay, meta_rate, memory) for the engine; a step that adapts has more.

        `most` is what the function may give.
        """
        code = partial(self.checked_size, most) if self.is_own() else nearest(type(self), STEP_CODES)
        return code, *(float(number) for number in (self.rate, self.delay, self.meta_rate, self.memory))

    def size(self, t: Any) -> Any:
        """eta_t for example t, or for an array of them; t counts from 1."""
        self.validate()
        return step_sizes(*self.core()[:5], t)

    def checked_size(self, most: float, t: int) -> Any:
        """eta_t of one example; ValueError unless it can be one."""
        given = self.size(t)
        size = as_number(given)
        if size is None or not 0 < size <= min(most, 1e300):
            limit = f", at most {most:g}" if most < math.inf else ""
            raise ValueError(f"The size of step {t} must be a positive number{limit}. Got {given!r} of {self!r}.")
        return size


class Fixed(Step):
    """The same step for every example: eta_t = rate.

    Parameters
    ----------
    {rate}

    Examples
    --------
    >>> Fixed(0.5).size(100)
    0.5
    """


class InverseSqrt(Step):
    """eta_t = rate / sqrt(t), the step of the convergence theorems (K Thms 4 and 6).

    Parameters
    ----------
    {rate}
        eta_1, the step of the first example.

    References
    ----------
    {K}

    Examples
    --------
    >>> InverseSqrt(0.5).size([1, 4, 100])
    array([0.5 , 0.25, 0.05])
    """


@dataclass(eq=False, repr=False)
class Decaying(Step):
    """eta_t = rate * sqrt(delay / (delay + t)), V (59).

    About constant for `delay` examples, then falling like 1/sqrt(t).

    Parameters
    ----------
    {rate}
        eta_0 of V.
    delay : float
        tau of V: how many examples it takes until the step falls; positive.

    References
    ----------
    {V}

    Examples
    --------
    >>> Decaying(rate=1.0, delay=3).size(1)
    0.866...
    """

    delay: float = 100

    _values = {"rate": check_positive, "delay": check_positive}


@dataclass(eq=False, repr=False)
class MetaDescent(Step):
    """A step that adapts itself by stochastic meta-descent (V section 5): NORMA becomes SVMD.

    eta grows while successive gradients agree and shrinks, by at most half a step, when they do
    not: eta <- eta max(1/2, 1 - mu <g, v>), V (33), where the trace v follows how f depends on the
    past steps. In `NORMA` it never exceeds 1 / regularization.

    The steps of `ILK` and `SILK` adapt in the same way (I section 2), with v_{t+1} = (1 + eta g')^-1 (lambda v_t +
    f_{t+1} - f_t) and g' the second derivative of the example's risk at f_{t+1}. Their offsets share the step of f.

    Parameters
    ----------
    rate : float
        eta_0, the first step; positive. SVMD is not sensitive to it.
    meta_rate : float
        mu, how fast the step adapts; at least 0.
    memory : float
        lambda in V (34), in [0, 1]: how long the trace remembers; 0 looks one step back only.
    offset_step : MetaDescent or None
        eta_b, mu_b and lambda_b of the offsets, V (50)-(52). None is that of f. Not for implicit steps.
    margin_step : MetaDescent or None
        eta_eps, mu_eps and lambda_eps of the margin's or width's logarithm, V (55)-(58), for a nu-loss whose own
        `margin_step` is None. None is that of f, but with the first step 1, as in V.
    quadratic : bool
        V's footnote 2 in place of (4), for all these steps: for u = -mu <g, v> the factor is u^2/2 + u + 1, nearer to
        e^u, and 1/2 for u <= -1.

    References
    ----------
    {V} {I}

    Examples
    --------
    >>> from onlinekernels import NORMA
    >>> model = NORMA("squared", "linear", step=MetaDescent(rate=0.01)).fit([[1.0]] * 20, [1.0] * 20)
    >>> bool(model.step_ > 0.01)        # all gradients agree: the step has grown
    True
    """

    meta_rate: float = 0.1
    memory: float = 0.99
    offset_step: MetaDescent | None = None
    margin_step: MetaDescent | None = None
    quadratic: bool = False

    _values = {
        "rate": check_positive, "meta_rate": check_not_negative, "memory": check_memory, "quadratic": check_flag,
    }

    def validate(self) -> None:
        super().validate()
        for name in ("offset_step", "margin_step"):
            check_one_step(self, name)

    def core(self, most: float = math.inf) -> Any:
        """Also rate, meta_rate and memory of the offsets, and of the margin, and whether factors are quadratic."""
        offset = self if self.offset_step is None else self.offset_step
        margin = MetaDescent(1.0, self.meta_rate, self.memory) if self.margin_step is None else self.margin_step
        own = (float(number) for step in (offset, margin) for number in (step.rate, step.meta_rate, step.memory))
        return *super().core(most), *own, bool(self.quadratic)

    def size(self, t: Any) -> Any:
        """eta_0: the steps after it depend on the stream."""
        self.validate()
        return float(self.rate)


class Custom(Step):
    """eta_t by a function of t."""

    def __init__(self, function):
        self.function = function

    def validate(self):
        if not callable(self.function):
            raise bad_parameter(self, "function", "a callable of t", self.function)

    def size(self, t):
        return self.function(t)

    def __deepcopy__(self, memo):
        return Custom(self.function)  # the same function, so that models with it can be compared


def check_one_step(owner, name):
    """None, or the step of a single number: a `MetaDescent` with a rate, a meta_rate and a memory, and no more."""
    step = getattr(owner, name)
    if step is None:
        return None
    if type(step) is not MetaDescent or not same_parameters(step, MetaDescent(step.rate, step.meta_rate, step.memory)):
        raise bad_parameter(owner, name, "MetaDescent(rate, meta_rate, memory) or None", step)
    step.validate()
    return step


def as_step(value, owner):
    """A step from what a user may give: a step, or a number that means `Fixed`."""
    if callable(value) and not isinstance(value, type):
        value = Custom(value)
    if isinstance(value, Step):
        value.validate()
        return value
    rate = as_number(value)
    if rate is not None and rate > 0:
        return Fixed(rate)
    raise bad_parameter(owner, "step", "a positive number, a step such as InverseSqrt(0.1) or a function of t", value)
