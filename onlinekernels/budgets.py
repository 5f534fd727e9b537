"""Budgets: which terms of the expansion stay."""
from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import TYPE_CHECKING

from onlinekernels._core.budgets import (AbsorbingBudget, ImportanceBudget, MergingBudget, ProjectingBudget,
                                         QuantizedBudget, RandomBudget, RecentBudget, RedundantBudget, ShrinkingBudget,
                                         SmallestBudget, SublinearBudget, UnlimitedBudget, WindowBudget)
from onlinekernels.base.params import Parameterized
from onlinekernels.base.validation import (
    bad_parameter, check_count, check_flag, check_integer, check_part, check_positive, check_share,
)

if TYPE_CHECKING:
    from onlinekernels.annotations import Any

__all__ = ["Budget", "Unlimited", "Recent", "Window", "Smallest", "Sublinear", "RandomRemoval", "Redundant", "Merging",
           "Projecting", "Absorbing", "Quantized", "Reservoir", "Shrinking"]


def check_seed(owner, name):
    """A parameter that must be a whole number of at least 0."""
    return check_integer(owner, name, 0)


def check_norms(budget, plan):
    """ValueError if a rule needs |f| exact under a budget that moves terms, or some of their coefficients."""
    if plan.rule.exact_norms:
        raise ValueError(f"budget={budget!r} moves terms, so that |f| cannot be kept exact here. Use Projecting.")


class Budget(Parameterized):
    """Base of all budgets.

    One of your own defines ``evict(coefficients, births)``. It is asked whenever a term is about to enter; `births` are
    the numbers of the examples that made the terms, oldest first, that of the candidate last, and `coefficients` has a
    column for each of them and a row for each output. It gives the index of the one that goes, or None if all may stay.
    What it answers must depend on nothing else. It costs a Python call for each new term.

    Parameters
    ----------
    size : int
        How many terms stay, omega in I and V; at least 1.

    Examples
    --------
    >>> from onlinekernels import NORMA, Budget
    >>> class SecondOldest(Budget):
    ...     def evict(self, coefficients, births):
    ...         return 1 if len(births) > 4 else None
    >>> model = NORMA("squared", "gaussian", budget=SecondOldest())
    >>> model.fit([[float(i)] for i in range(8)], range(8, 16)).support_vectors_.ravel()
    array([0., 5., 6., 7.])
    """

    _size: str | None = None  # the parameter that counts terms or examples
    looks_at_kernel = False  # whether it needs kernel values between terms, which trees do not have
    shares_out = False  # whether what goes is shared out among terms that stay, which may be of other labels
    moves_points = False  # whether terms leave the points of examples

    def validate(self) -> None:
        """Raise ValueError for a parameter out of range."""
        self._check_values()

    def check_use(self, plan: Any) -> Any:
        """Raise ValueError for a plan that cannot have this budget."""

    def capacity(self, t: Any) -> Any:
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

    def core(self) -> Any:
        return UnlimitedBudget()


@dataclass(eq=False, repr=False)
class _OfTerms(Budget):
    """A number of terms."""

    size: int

    _size = "size"
    _values = {"size": check_count}


class Recent(_OfTerms):
    """A circular buffer of the `size` most recent terms (V 5.5).

    Only examples that got a coefficient count. O(1) per step.

    Parameters
    ----------
    {size}

    References
    ----------
    {V}
    """

    def core(self) -> Any:
        return RecentBudget(int(self.size))


class _Latest(Budget):
    def length(self, t: Any) -> Any:
        """How many of the latest examples f_t may use, for one t or an array of them."""
        self.validate()
        return self.core().lengths(t)

    def capacity(self, t: Any) -> Any:
        return self.length(t + 1)


@dataclass(eq=False, repr=False)
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

    steps: int

    _size = "steps"
    _values = {"steps": check_count}

    def core(self) -> Any:
        return WindowBudget(int(self.steps))


class Smallest(_OfTerms):
    """The `size` terms with the largest coefficients (I 2.1).

    A candidate is appended; then the term with the smallest absolute coefficient goes, the oldest
    among equals, which may be the candidate itself. O(log size) per step.

    Parameters
    ----------
    {size}

    References
    ----------
    {I}
    """

    def core(self) -> Any:
        return SmallestBudget(int(self.size))


@dataclass(eq=False, repr=False)
class Sublinear(_Latest):
    """A window of max(start, ceil(t^exponent)) examples (K Thm 6).

    The theorem wants an exponent between 1/2 and 1, and `start` at its t_0, which is huge when step * regularization is
    small (0.5: 14,457 at exponent 0.75; 0.1: 2e8). The printed window would shrink after t_0; this one never shrinks.

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

    exponent: float = 0.6
    start: int = 1

    _size = "start"
    _values = {"start": check_count, "exponent": check_share}

    def core(self) -> Any:
        return SublinearBudget(int(self.start), float(self.exponent))


@dataclass(eq=False, repr=False)
class RandomRemoval(_OfTerms):
    """When a candidate is one too many, another term goes, at random.

    Random budget Perceptrons (Cavallanti, Cesa-Bianchi and Gentile 2007, "Tracking the best hyperplane with a simple
    budget Perceptron") are `Perceptron` with this budget. The draw is a function of the seed and the stream, so the
    same examples give the same terms, in chunks of any size and after saving and loading. O(size) per step at most.

    Parameters
    ----------
    {size}
    seed : int
        Another one draws others; at least 0.
    bound : float or None
        Make up for what goes, as BOGD does (Zhao, Wang, Wu, Jin and Hoi 2012, "Fast bounded online gradient descent
        algorithms"): those that stay grow by size / (size - 1), and then all of f shrinks until no coefficient is
        larger than this. None leaves those that stay as they are. For `NORMA` with a step that does not adapt itself.
    importance : bool
        BOGD++ of the same paper: a term stays with a probability proportional to the length of alpha k(x, .), at most
        1, and then is divided by it. So f is what it was in the mean, and lengths add up to what they did.

    Examples
    --------
    >>> from onlinekernels import NORMA, RandomRemoval
    >>> model = NORMA("novelty", "linear", step=1.0, regularization=0.0, budget=RandomRemoval(3))
    >>> model.partial_fit([[0.5**t] for t in range(9)]).n_terms_
    3
    """

    seed: int = 0
    bound: float | None = None
    importance: bool = False

    _values = _OfTerms._values | {"seed": check_seed, "importance": check_flag}
    makes_up = property(lambda self: self.bound is not None or self.importance)
    looks_at_kernel = makes_up  # in trees f cannot be multiplied here

    def validate(self) -> None:
        super().validate()
        if self.bound is not None:
            check_positive(self, "bound")
            if self.size < 2:
                raise ValueError(f"size must be at least 2 with a bound: one makes up for another. Got {self.size}.")

    def check_use(self, plan: Any) -> Any:
        if self.makes_up and (
                not plan.rule.takes_gradient_steps or plan.rule.exact_norms or plan.rule.adapts_step):
            raise ValueError(f"budget={self!r} is for NORMA with a step that does not adapt itself.")

    def core(self) -> Any:
        kind = ImportanceBudget if self.importance else RandomBudget
        return kind(int(self.size), int(self.seed), float(self.bound or 0.0))


@dataclass(eq=False, repr=False)
class Reservoir(_OfTerms):
    """A uniform sample of all rows so far, for a `Smoother`: each of them is there with the same probability.

    Rows come in bursts, and the latest ones may all be unusual; a sample of all has its fair share of them. What is
    drawn depends on the seed and the number of rows alone, so the same examples give the same sample, in chunks of any
    size. O(1) per row.

    Parameters
    ----------
    {size}
    memory : int or None
        After how many rows the past fades: a row is there with a probability like exp(-age / memory). At least 1; less
        than `size` counts as `size`. None is for ever.
    seed : int
        Another one draws others; at least 0.

    Examples
    --------
    >>> from onlinekernels import Reservoir, Smoother
    >>> model = Smoother("nunovelty", budget=Reservoir(50)).partial_fit([[float(t)] for t in range(500)])
    >>> model.n_terms_
    50
    """

    memory: int | None = None
    seed: int = 0

    _values = _OfTerms._values | {"seed": check_seed}

    def validate(self) -> None:
        super().validate()
        if self.memory is not None:
            check_count(self, "memory")

    def core(self) -> Any:
        raise ValueError("Reservoir is a sample of rows, for Smoother. RandomRemoval drops terms at random.")


@dataclass(eq=False, repr=False)
class Redundant(_OfTerms):
    """The term that f needs least goes: the one whose example would be classified best without it.

    That is, the largest of y_i (f(x_i) - alpha_i k(x_i, x_i)) over the terms, f with the candidate, which may be the
    one that goes; with many classes, the margin of the label over all others. The label y_i is the sign of the
    coefficient, with many classes where it is largest. O(size^2) per new coefficient, and as much memory. Works with
    every kernel, also between labels, on objects too; for losses of classes only.

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

    tighter: bool = False

    _values = _OfTerms._values | {"tighter": check_flag}
    looks_at_kernel = shares_out = True

    def check_use(self, plan: Any) -> Any:
        if plan.loss.task not in ("binary", "multiclass"):
            raise ValueError(f"budget={self!r} needs a loss of classes: it looks at who is classified right. Got "
                             f"{plan.loss!r}.")

    def core(self) -> Any:
        return RedundantBudget(int(self.size), bool(self.tighter))


class Merging(_OfTerms):
    """Two terms become one: the smallest and the one that it loses least with, at the best point between them.

    If a candidate is one too many, the term with the smallest absolute coefficient, the oldest among equals and maybe
    the candidate itself, is merged with another one: z = h a + (1 - h) b with the coefficient that is closest to the
    two. Among all partners it is the one for which f changes least. Where signs differ, z is the partner's own point,
    so f never loses more than by dropping the term. With many outputs the partner is the nearest point, and z the best
    one on the way to it, as the kernel between labels has it.

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

    looks_at_kernel = shares_out = moves_points = True

    def check_use(self, plan: Any) -> Any:
        ops = plan.kernel.ops()
        if not ops or ops[0]["op"] != "gaussian" or any(op["op"] not in ("scale", "shift") for op in ops[1:]):
            raise ValueError(f"budget={self!r} needs a Gaussian kernel, times or plus constants. Got {plan.kernel!r}; "
                             "Projecting works with every kernel.")
        check_norms(self, plan)

    def core(self) -> Any:
        return MergingBudget(int(self.size))


@dataclass(eq=False, repr=False)
class Projecting(_OfTerms):
    """What goes is projected onto what stays: the other terms take over as much of it as they can.

    If k(x_i, .) goes, the coefficients of the others grow by alpha_i K^-1 k_i, with K their kernel matrix and k_i their
    kernel values with x_i. Then f loses no more than what the others do not span, the least that is possible. It is
    the term that loses least by this that goes; that may be the candidate. A candidate that the others nearly span
    never enters: they take over its coefficient. So on few distinct examples, or with a kernel of few dimensions, there
    are fewer than `size` terms.

    Works with every kernel, also between labels, on objects too, and with every loss. O(size^2) per new coefficient,
    and as much memory.

    Parameters
    ----------
    {size}
    tolerance : float
        A candidate is not needed if its distance from the span of the others, squared, is at most this part of k(x, x);
        in [0, 1). Whatever is asked for, 1e-8 is the least (1e-5 for float32): below there is only rounding.

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

    tolerance: float = 0.0

    _values = _OfTerms._values | {"tolerance": check_part}
    looks_at_kernel = shares_out = True

    def core(self) -> Any:
        return ProjectingBudget(int(self.size), float(self.tolerance))


class Absorbing(_OfTerms):
    """What goes is projected onto the newest term alone, which takes over as much of it as it can.

    If k(x_i, .) goes, the candidate's coefficient grows by alpha_i k(x_i, x) / k(x, x). It is the term that loses least
    by this. `PassiveAggressive` with it is BPA-S, where "PA-I" is the best that can be done for the example with these
    two coefficients. Works with every kernel, also between labels, on objects too, and with every loss. O(size) per new
    coefficient. |f| cannot be kept exact: `ALMA`, `ROMMA`, norm balls and ``exact_norms=True`` refuse it.

    Parameters
    ----------
    {size}

    Notes
    -----
    Wang and Vucetic (2010), "Online passive-aggressive algorithms on a budget".

    Examples
    --------
    >>> from onlinekernels import Absorbing, Gaussian, PassiveAggressive
    >>> model = PassiveAggressive("hinge", Gaussian(1.0), budget=Absorbing(2), offset=False)
    >>> model = model.fit([[0.0], [3.0], [1.0]], [1, -1, 1])
    >>> model.support_vectors_.ravel(), model.dual_coef_.round(2)
    (array([3., 1.]), array([[-1.  ,  1.14]]))
    """

    looks_at_kernel = shares_out = True

    def check_use(self, plan: Any) -> Any:
        check_norms(self, plan)

    def core(self) -> Any:
        return AbsorbingBudget(int(self.size))


@dataclass(eq=False, repr=False)
class Quantized(Budget):
    """An example that is nearly a term does not become one: that term's coefficient grows by its own.

    Nearly the same is k(x, z) >= coherence * sqrt(k(x, x) k(z, z)); of several such terms it is the nearest, the oldest
    among equals. So terms cover the examples, however many there are. A term that this leaves with 0 goes. O(terms) per
    new coefficient. Works with every kernel, on objects too. As the example moves to its neighbour, |f| cannot be kept
    exact: `ALMA`, `ROMMA`, norm balls and ``exact_norms=True`` refuse it.

    Parameters
    ----------
    coherence : float
        In (0, 1]; 1 joins only examples that the kernel cannot tell apart. For a distance d and a Gaussian it is the
        kernel's value at d.
    size : int or None
        How many terms stay at most: if another one comes, the oldest goes. None is any number.

    Notes
    -----
    Chen, Zhao, Zhu and Principe (2012), "Quantized kernel least mean square algorithm".

    Examples
    --------
    >>> from onlinekernels import NORMA, Gaussian, Quantized
    >>> model = NORMA("novelty", Gaussian(1.0), step=1.0, regularization=0.0, budget=Quantized(0.9))
    >>> model.fit([[0.0], [0.1], [3.0]]).support_vectors_.ravel(), model.dual_coef_
    (array([0., 3.]), array([[2., 1.]]))
    """

    coherence: float = 0.9
    size: int | None = None

    _size = "size"
    _values = {"coherence": check_share}
    looks_at_kernel = shares_out = True

    def validate(self) -> None:
        super().validate()
        if self.size is not None:
            check_count(self, "size")

    def check_use(self, plan: Any) -> Any:
        check_norms(self, plan)

    def core(self) -> Any:
        return QuantizedBudget(float(self.coherence), self.size and int(self.size))


class Shrinking(_OfTerms):
    """The oldest term goes, and all of f is shrunk before, so that little is lost: what `Forgetron` does.

    How much it shrinks is tuned on the way, for gradient steps of at most 1 and kernels with k(x, x) <= 1. Two classes.
    The Forgetron's theorem is about updates of a Perceptron; of smaller ones, as of `SVMD`, each counts for what it
    wins. The trace v of `SVMD` shrinks with f.

    Parameters
    ----------
    {size}
    """

    looks_at_kernel = True

    def check_use(self, plan: Any) -> Any:
        if plan.loss.task != "binary" or not plan.rule.takes_gradient_steps:
            raise ValueError(f"budget={self!r} is for gradient steps of two classes: Perceptron, Forgetron, NORMA or "
                             "SVMD.")

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
    if type(value).core is Budget.core and not hasattr(value, "evict"):
        raise ValueError(f"{type(value).__name__} is a budget of your own and must define evict(coefficients, births).")
    value.validate()
    return value
