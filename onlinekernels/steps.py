"""Steps: the learning rate eta_t of example t = 1, 2, ..."""
from __future__ import annotations

from typing import TYPE_CHECKING

from onlinekernels._core.rules import STEP_CODES, step_sizes
from onlinekernels.base.params import Parameterized, nearest, same_parameters
from onlinekernels.base.validation import as_number, bad_parameter, check_flag, check_memory, check_not_negative, check_positive

if TYPE_CHECKING:
    from onlinekernels.annotations import Any

__all__ = ["Step", "Fixed", "InverseSqrt", "Decaying", "MetaDescent"]


class Step(Parameterized):
    """Base of all steps.

    Parameters
    ----------
    rate : float
        How large the steps eta_t are; positive.
    """

    rate: float
    _values = {"rate": check_positive}
    delay = 1.0
    meta_rate = 0.0
    memory = 0.0
    per_feature = False

    def validate(self) -> None:
        """Raise ValueError for a parameter out of range."""
        self._check_values()

    def core(self) -> Any:
        """(code, rate, delay, meta_rate, memory) for the engine; a step that adapts has more."""
        numbers = (self.rate, self.delay, self.meta_rate, self.memory)
        return nearest(type(self), STEP_CODES), *(float(number) for number in numbers)

    def size(self, t: Any) -> Any:
        """eta_t for example t, or for an array of them; t counts from 1."""
        self.validate()
        return step_sizes(*self.core()[:5], t)


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

    def __init__(self, rate: float = 0.1) -> None:
        self.rate = rate


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

    def __init__(self, rate: float = 0.1) -> None:
        self.rate = rate


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

    _values = {"rate": check_positive, "delay": check_positive}

    def __init__(self, rate: float = 0.1, delay: float = 100) -> None:
        self.rate = rate
        self.delay = delay


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
    per_feature : bool
        A step for each weight, V 2.2 (SMD): for features that are not of one size. f must be weights: a feature map,
        or `Linear` without a budget. `step_` is the mean of all steps.
    offset_step : MetaDescent or None
        eta_b, mu_b and lambda_b of the offsets, V (50)-(52). None is that of f. Not for implicit steps.
    margin_step : MetaDescent or None
        eta_eps, mu_eps and lambda_eps of the margin's or width's logarithm, V (55)-(58), for a nu-loss whose own
        `margin_step` is None. None is that of f, but with the first step 1, as in V.

    References
    ----------
    {V}
    {I}

    Examples
    --------
    >>> from onlinekernels import NORMA
    >>> model = NORMA("squared", "linear", step=MetaDescent(rate=0.01)).fit([[1.0]] * 20, [1.0] * 20)
    >>> bool(model.step_ > 0.01)        # all gradients agree: the step has grown
    True
    """

    _values = {"rate": check_positive, "meta_rate": check_not_negative, "memory": check_memory, "per_feature": check_flag}

    def __init__(self, rate: float = 0.1, meta_rate: float = 0.1, memory: float = 0.99, per_feature: bool = False,
                 offset_step: MetaDescent | None = None, margin_step: MetaDescent | None = None) -> None:
        self.rate = rate
        self.meta_rate = meta_rate
        self.memory = memory
        self.per_feature = per_feature
        self.offset_step = offset_step
        self.margin_step = margin_step

    def validate(self) -> None:
        super().validate()
        for name in ("offset_step", "margin_step"):
            check_one_step(self, name)

    def core(self) -> Any:
        """Also rate, meta_rate and memory of the offsets, and of the margin."""
        offset = self if self.offset_step is None else self.offset_step
        margin = MetaDescent(1.0, self.meta_rate, self.memory) if self.margin_step is None else self.margin_step
        own = (float(number) for step in (offset, margin) for number in (step.rate, step.meta_rate, step.memory))
        return *super().core(), *own

    def size(self, t: Any) -> Any:
        """eta_0: the steps after it depend on the stream."""
        self.validate()
        return float(self.rate)


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
    if isinstance(value, Step):
        if nearest(type(value), STEP_CODES) is None:
            raise ValueError(f"{type(value).__name__} must derive from one of {', '.join(STEP_CODES)}.")
        value.validate()
        return value
    rate = as_number(value)
    if rate is not None and rate > 0:
        return Fixed(rate)
    raise bad_parameter(owner, "step", "a positive number or a step such as InverseSqrt(0.1)", value)
