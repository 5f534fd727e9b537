"""Budgets: which terms of the expansion stay."""
import numbers

from onlinekernels._core import budgets as core
from onlinekernels.params import Parameterized
from onlinekernels.validation import bad_parameter, check_count, check_share

__all__ = ["Budget", "Unlimited", "Recent", "Window", "Smallest", "Sublinear"]


class Budget(Parameterized):
    """Base of all budgets.

    Parameters
    ----------
    size : int
        How many terms stay, omega in I and V; at least 1.
    """

    _size = None  # the parameter that counts terms or examples

    def validate(self):
        """Raise ValueError for a parameter out of range."""
        self._check_values()

    def core(self):
        """A new one for the engine."""
        raise NotImplementedError


class Unlimited(Budget):
    """Every term stays: the expansion grows with the stream (K (10)).

    References
    ----------
    {K}
    """

    def __init__(self):
        pass

    def core(self):
        return core.Unlimited()


class Recent(Budget):
    """A circular buffer of the `size` most recent terms (V 5.5).

    Only examples that got a coefficient count. O(1) per step.

    Parameters
    ----------
    {size}

    References
    ----------
    {V}
    """

    _size = "size"
    _values = {"size": check_count}

    def __init__(self, size):
        self.size = size

    def core(self):
        return core.Recent(int(self.size))


class _Latest(Budget):
    def length(self, t):
        """How many of the latest examples f_t may use, for one t or an array of them."""
        self.validate()
        return self.core().lengths(t)


class Window(_Latest):
    """The terms among the last `steps` examples, whether or not those made terms (K Fig. 1).

    f_t uses examples t - steps, ..., t - 1. The truncation error is bounded by K Prop. 1.

    Parameters
    ----------
    steps : int
        How many of the latest examples count, tau in K; at least 1.

    References
    ----------
    {K}
    """

    _size = "steps"
    _values = {"steps": check_count}

    def __init__(self, steps):
        self.steps = steps

    def core(self):
        return core.Window(int(self.steps))


class Smallest(Budget):
    """The `size` terms with the largest coefficients (I 2.1).

    A newcomer is appended; then the term with the smallest absolute coefficient goes, the oldest
    among equals, which may be the newcomer itself. O(log size) per step.

    Parameters
    ----------
    {size}

    References
    ----------
    {I}
    """

    _size = "size"
    _values = {"size": check_count}

    def __init__(self, size):
        self.size = size

    def core(self):
        return core.Smallest(int(self.size))


class Sublinear(_Latest):
    """A window of max(start, ceil(t^exponent)) examples (K Thm 6).

    The theorem wants an exponent between 1/2 and 1, and `start` at its t_0, which is huge when
    step * regularization is small (0.5: 14,457 at exponent 0.75; 0.1: 2e8). The printed window
    would shrink after t_0; this one never shrinks.

    Parameters
    ----------
    exponent : float
        In (0, 1].
    start : int
        The window of the first examples; at least 1.

    References
    ----------
    {K}

    Examples
    --------
    >>> Sublinear(exponent=0.5, start=3).length(100)
    10
    >>> Sublinear(exponent=0.5, start=3).length([4, 16, 100])
    array([ 3,  4, 10])
    """

    _size = "start"
    _values = {"start": check_count, "exponent": check_share}

    def __init__(self, exponent=0.6, start=1):
        self.exponent = exponent
        self.start = start

    def core(self):
        return core.Sublinear(int(self.start), float(self.exponent))


def as_budget(value, owner, of_int=Recent):
    """A budget from what a user may give: a budget, None for `Unlimited`, an int for `of_int`."""
    if value is None:
        return Unlimited()
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        value = of_int(int(value))
        if not 1 <= value.size <= 2**62:
            raise bad_parameter(owner, "budget", "an integer of at least 1 and at most 2**62", value.size)
    if not isinstance(value, Budget):
        raise bad_parameter(owner, "budget", "None, a positive integer or a budget such as Window(200)", value)
    if type(value).core is Budget.core:
        raise ValueError(f"{type(value).__name__} must derive from one of {', '.join(__all__[1:])}.")
    value.validate()
    return value
