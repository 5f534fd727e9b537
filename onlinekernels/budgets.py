"""Budgets: which terms of the expansion stay."""
import numbers

from onlinekernels._core import budgets as core
from onlinekernels._core import kernelbudgets
from onlinekernels.params import Parameterized
from onlinekernels.validation import bad_parameter, check_count, check_part, check_share

__all__ = ["Budget", "Unlimited", "Recent", "Window", "Smallest", "Sublinear", "Projecting"]


class Budget(Parameterized):
    """Base of all budgets.

    Parameters
    ----------
    size : int
        How many terms stay, omega in I and V; at least 1.
    """

    _size = None  # the parameter that counts terms or examples
    looks_at_kernel = False  # whether it needs kernel values between terms, which trees do not have
    shares_out = False  # whether what goes is shared out among terms that stay, which may be of other labels

    def validate(self):
        """Raise ValueError for a parameter out of range."""
        self._check_values()

    def check_use(self, plan):
        """Raise ValueError for a plan that this budget makes no sense with."""

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


class Projecting(Budget):
    """What goes is projected onto what stays: the other terms take over as much of it as they can.

    If k(x_i, .) goes, the coefficients of the others grow by alpha_i K^-1 k_i, with K their kernel matrix and k_i their
    kernel values with x_i. Then f loses no more than what the others do not span, the least that is possible. It is
    the term that loses least by this that goes; that may be the newcomer. A newcomer that the others nearly span never
    enters: they take over its coefficient. So on few distinct examples, or with a kernel of few dimensions, there
    are fewer than `size` terms.

    Works with every kernel, on objects too, and with every loss. O(size^2) per new coefficient, and as much memory.

    Parameters
    ----------
    {size}
    tolerance : float
        A newcomer is not needed if its distance from the span of the others, squared, is at most this part of k(x, x);
        in [0, 1). Whatever is asked for, 1e-10 is the least (1e-5 for float32): below there is only rounding.

    Notes
    -----
    Projections of the Perceptron are Orabona, Keshet and Caputo (2009), "Bounded kernel-based online learning"; those of
    passive-aggressive steps Wang and Vucetic (2010), "Online passive-aggressive algorithms on a budget".

    Examples
    --------
    >>> import numpy as np
    >>> from onlinekernels import PassiveAggressive, Gaussian, Projecting, Recent
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 2))
    >>> y = np.where(X[:, 0] * X[:, 1] > 0, 1, -1)
    >>> [float(np.mean(PassiveAggressive("hinge", Gaussian(1.0), budget=budget).progressive(X, y) * y > 0).round(2))
    ...  for budget in (Recent(20), Projecting(20))]
    [0.87, 0.96]
    """

    _size = "size"
    _values = {"size": check_count, "tolerance": check_part}
    looks_at_kernel = shares_out = True

    def __init__(self, size, tolerance=0.0):
        self.size = size
        self.tolerance = tolerance

    def core(self):
        return kernelbudgets.Projecting(int(self.size), float(self.tolerance))


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
