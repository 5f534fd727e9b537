"""Budgets: which terms of the expansion stay."""
from __future__ import annotations

import numbers
from typing import TYPE_CHECKING

from onlinekernels._core.budgets import (MergingBudget, ProjectingBudget, RandomBudget, RecentBudget, RedundantBudget,
                                         ShrinkingBudget, SmallestBudget, SublinearBudget, UnlimitedBudget,
                                         WindowBudget)
from onlinekernels.base.params import Parameterized
from onlinekernels.base.validation import bad_parameter, check_count, check_flag, check_integer, check_part, check_share

if TYPE_CHECKING:
    from onlinekernels.annotations import Any

__all__ = ["Budget", "Unlimited", "Recent", "Window", "Smallest", "Sublinear", "RandomRemoval", "Redundant", "Merging", "Projecting",
           "Reservoir", "Shrinking"]


def check_seed(owner, name):
    """A parameter that must be a whole number of at least 0."""
    return check_integer(owner, name, 0)


class Budget(Parameterized):
    """Base of all budgets.

    Parameters
    ----------
    size : int
        How many terms stay, omega in I and V; at least 1.
    """

    _size: str | None = None  # the parameter that counts terms or examples
    looks_at_kernel = False  # whether it needs kernel values between terms, which trees do not have
    shares_out = False  # whether what goes is shared out among terms that stay, which may be of other labels
    moves_points = False  # whether terms leave the places of examples

    def validate(self) -> None:
        """Raise ValueError for a parameter out of range."""
        self._check_values()

    def check_use(self, plan: Any) -> Any:
        """Raise ValueError for a plan that cannot have this budget."""

    def room(self, t: Any) -> Any:
        """How many terms there may be after t examples; None for any number."""
        return None if self._size is None else getattr(self, self._size)

    def core(self) -> Any:
        """A new one for the engine."""
        raise NotImplementedError


class Unlimited(Budget):
    """Every term stays: the expansion grows with the stream (K (10)).

    References
    ----------
    {K}
    """

    def __init__(self) -> None:
        pass

    def core(self) -> Any:
        return UnlimitedBudget()


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

    def __init__(self, size: int) -> None:
        self.size = size

    def core(self) -> Any:
        return RecentBudget(int(self.size))


class _Latest(Budget):
    def length(self, t: Any) -> Any:
        """How many of the latest examples f_t may use, for one t or an array of them."""
        self.validate()
        return self.core().lengths(t)

    def room(self, t: Any) -> Any:
        return self.length(t + 1)


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

    def __init__(self, steps: int) -> None:
        self.steps = steps

    def core(self) -> Any:
        return WindowBudget(int(self.steps))


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

    def __init__(self, size: int) -> None:
        self.size = size

    def core(self) -> Any:
        return SmallestBudget(int(self.size))


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

    def __init__(self, exponent: float = 0.6, start: int = 1) -> None:
        self.exponent = exponent
        self.start = start

    def core(self) -> Any:
        return SublinearBudget(int(self.start), float(self.exponent))


class RandomRemoval(Budget):
    """When a newcomer is one too many, another term goes that is drawn by lot.

    Random budget Perceptrons (Cavallanti, Cesa-Bianchi and Gentile 2007, "Tracking the best hyperplane with a simple
    budget Perceptron") are `Perceptron` with this budget. The lot is a function of the seed and the stream, so the same
    examples give the same terms, in chunks of any size and after saving and loading. O(size) per step at most.

    Parameters
    ----------
    {size}
    seed : int
        Another one draws other lots; at least 0.

    Examples
    --------
    >>> from onlinekernels import NORMA, RandomRemoval
    >>> model = NORMA("novelty", "linear", step=1.0, regularization=0.0, budget=RandomRemoval(3))
    >>> model.partial_fit([[0.5**t] for t in range(9)]).n_terms_
    3
    """

    _size = "size"
    _values = {"size": check_count, "seed": check_seed}

    def __init__(self, size: int, seed: int = 0) -> None:
        self.size = size
        self.seed = seed

    def core(self) -> Any:
        return RandomBudget(int(self.size), int(self.seed))


class Reservoir(Budget):
    """A uniform sample of all rows so far, for a `Smoother`: each of them is there with the same probability.

    Rows come in bursts, and the latest ones may all be odd; a sample of all has its fair share of them. What is drawn
    depends on the seed and the number of rows alone, so the same examples give the same sample, in chunks of any size.
    O(1) per row.

    Parameters
    ----------
    {size}
    memory : int or None
        After how many rows the past fades: a row is there with a probability like exp(-age / memory). At least 1; less
        than `size` counts as `size`. None is for ever.
    seed : int
        Another one draws other lots; at least 0.

    Examples
    --------
    >>> from onlinekernels import Reservoir, Smoother
    >>> model = Smoother("nunovelty", budget=Reservoir(50)).partial_fit([[float(t)] for t in range(500)])
    >>> model.n_terms_
    50
    """

    _size = "size"
    _values = {"size": check_count, "seed": check_seed}

    def __init__(self, size: int, memory: int | None = None, seed: int = 0) -> None:
        self.size = size
        self.memory = memory
        self.seed = seed

    def validate(self) -> None:
        super().validate()
        if self.memory is not None:
            check_count(self, "memory")

    def core(self) -> Any:
        raise ValueError("Reservoir is a sample of rows, for Smoother. RandomRemoval is the budget of terms that is drawn by lot.")


class Redundant(Budget):
    """The term that f needs least goes: the one whose example would be classified best without it.

    That is, the largest of y_i (f(x_i) - alpha_i k(x_i, x_i)) over the terms, f with the newcomer, which may be the one
    that goes; with many classes, the margin of the label over all others. The label y_i is the sign of the coefficient,
    with many classes where it is largest. O(size^2) per new coefficient, and as much memory. Works with every kernel,
    on objects too; for losses of classes only.

    Parameters
    ----------
    {size}
    tighter : bool
        Give up the term without which the fewest examples of terms are classified wrongly, among equals the one
        that is classified best. That bears noise better: an example with a wrong label is never classified well.

    Notes
    -----
    Crammer, Kandola and Singer (2003), "Online classification on a budget", who make room first; Weston, Bordes and
    Bottou (2005), "Online (and offline) on an even tighter budget", who insert first, as here, and are tighter.

    Examples
    --------
    >>> from onlinekernels import Perceptron, Gaussian, Redundant
    >>> model = Perceptron(Gaussian(1.0), budget=Redundant(2))
    >>> model.partial_fit([[0.0], [4.0], [2.1]], [1, -1, 1]).support_vectors_
    array([[4. ],
           [2.1]])
    """

    _size = "size"
    _values = {"size": check_count, "tighter": check_flag}
    looks_at_kernel = shares_out = True

    def __init__(self, size: int, tighter: bool = False) -> None:
        self.size = size
        self.tighter = tighter

    def check_use(self, plan: Any) -> Any:
        if plan.loss.task not in ("binary", "multiclass"):
            raise ValueError(f"budget={self!r} needs a loss of classes: it looks at who is classified right. Got {plan.loss!r}.")

    def core(self) -> Any:
        return RedundantBudget(int(self.size), bool(self.tighter))


class Merging(Budget):
    """Two terms become one: the smallest and the one that it loses least with, at the best point between them.

    If a newcomer is one too many, the term with the smallest absolute coefficient, the oldest among equals and maybe
    the newcomer itself, is merged with another one: z = h a + (1 - h) b with the coefficient that is closest to the
    two. Among all partners it is the one for which f changes least. Where signs differ, z is the partner's own point,
    so f never loses more than by dropping the term. With many outputs the partner is the nearest point.

    Terms are not examples any more. O(size) per new coefficient, and O(size^2) memory.

    It needs a Gaussian kernel, times or plus constants: there a term between two others is known to be the best. It
    needs dense rows. Points of other kernels cannot be mixed; use `Projecting`. As points move, |f| cannot be kept
    exact: `ALMA`, `ROMMA`, norm balls and ``exact_norms=True`` refuse it.

    Parameters
    ----------
    {size}

    Notes
    -----
    Wang, Crammer and Vucetic (2012), "Breaking the curse of kernelization: budgeted stochastic gradient descent for
    large-scale SVM training", who find h by golden section search; here by Newton's method on its derivative. That a
    table of what mergers lose will do to compare them is from Glasmachers and Qaadan (2018), "Speeding up budgeted
    stochastic gradient descent SVM training with precomputed golden section search"; here candidates within its error
    are computed.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinekernels import NORMA, Gaussian, Merging
    >>> model = NORMA("novelty", Gaussian(1.0), step=0.5, regularization=0.0, budget=Merging(1))
    >>> model.fit([[0.0], [1.0]]).support_vectors_
    array([[0.5]])
    """

    _size = "size"
    _values = {"size": check_count}
    looks_at_kernel = shares_out = moves_points = True

    def __init__(self, size: int) -> None:
        self.size = size

    def check_use(self, plan: Any) -> Any:
        ops = plan.kernel.ops()
        if not ops or ops[0]["op"] != "gaussian" or any(op["op"] not in ("scale", "shift") for op in ops[1:]):
            raise ValueError(f"budget={self!r} needs a Gaussian kernel, times or plus constants. Got {plan.kernel!r}; "
                             "Projecting works with every kernel.")
        if plan.rule.exact_norms:
            raise ValueError(f"budget={self!r} moves points, so that |f| cannot be kept exact here. Use Projecting.")
        if plan.relates_labels:
            raise ValueError(f"budget={self!r} needs the delta kernel between labels; a Taxonomy has another. Use Projecting.")

    def core(self) -> Any:
        return MergingBudget(int(self.size))


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
    Projections of the Perceptron are Orabona, Keshet and Caputo (2009), "Bounded kernel-based online learning"; those
    of passive-aggressive steps Wang and Vucetic (2010), "Online passive-aggressive algorithms on a budget".

    Examples
    --------
    >>> import numpy as np
    >>> from onlinekernels import PassiveAggressive, Gaussian, Projecting, Recent
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 2))
    >>> y = np.where(X[:, 0] * X[:, 1] > 0, 1, -1)
    >>> [float(np.mean(PassiveAggressive("hinge", Gaussian(1.0), budget=budget).progressive(X, y) * y > 0).round(2))
    ...  for budget in (Recent(20), Projecting(20))]
    [0.72, 0.93]
    """

    _size = "size"
    _values = {"size": check_count, "tolerance": check_part}
    looks_at_kernel = shares_out = True

    def __init__(self, size: int, tolerance: float = 0.0) -> None:
        self.size = size
        self.tolerance = tolerance

    def core(self) -> Any:
        return ProjectingBudget(int(self.size), float(self.tolerance))


class Shrinking(Budget):
    """The oldest term goes, and all of f is shrunk before, so that little is lost: what `Forgetron` does.

    How much it shrinks is tuned on the way, for gradient steps of at most 1 and kernels with k(x, x) <= 1. Two classes.
    The Forgetron's theorem is about updates of a Perceptron; of smaller ones, as of `SVMD`, each counts for what it
    wins. The trace v of `SVMD` shrinks with f.

    Parameters
    ----------
    {size}
    """

    _size = "size"
    _values = {"size": check_count}
    looks_at_kernel = True

    def __init__(self, size: int) -> None:
        self.size = size

    def check_use(self, plan: Any) -> Any:
        if plan.loss.task != "binary" or not plan.rule.takes_gradient_steps:
            raise ValueError(
                f"budget={self!r} is for gradient steps of two classes: use it with Perceptron, or Forgetron, NORMA or SVMD."
            )

    def core(self) -> Any:
        return ShrinkingBudget(int(self.size))


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
