"""Projections onto what an example asks for: the passive-aggressive family, and with a norm ball (H part 2)."""
from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING

from onlinekernels._core import rules
from onlinekernels.base.estimator import FunctionEstimator
from onlinekernels.base.plan import Plan, Rule
from onlinekernels.base.validation import Real, bad_parameter, check_flag, check_positive
from onlinekernels.losses import Absolute, GraphHinge, Hinge, Insensitive, MulticlassHinge, Novelty, SquaredInsensitive

if TYPE_CHECKING:
    from onlinekernels.annotations import (
        Budget, ClassWeight, KernelLike, LabelStructure, Loss, RunningEncoder, RunningScaler,
    )


check_radius = Real("a number from 1e-100 to 1e100", lambda value: 1e-100 < value < 1e100)


@dataclass(eq=False, repr=False)
class Aggressive(Rule):
    """The shortest way to no loss, or to less: passive-aggressive steps, and projections (H)."""

    _values = {"penalty": check_positive.or_none, "squared": check_flag, "radius": check_radius.or_none}
    forms = frozenset({"one", "pair", "targets"})
    step_name = "passive-aggressive"
    may_change = frozenset({"penalty"})
    core_class = rules.Aggressive

    penalty: float | None = None  # the largest coefficient; None for no cap
    squared: bool = False  # against the squared loss, so that the penalty is no cap: PA-II
    radius: float | None = None  # |f| stays within it

    @property
    def solves_losses(self):
        """Without a cap there is nothing to solve: how far a loss of one's own reaches is not known."""
        return self.penalty is not None

    @property
    def losses(self):
        """Those with a constraint to meet. Without a cap only the tube matters, and the squared loss has the same."""
        fine = (Hinge, Novelty, Absolute, Insensitive, MulticlassHinge, GraphHinge)
        return fine if self.penalty is not None else (*fine, SquaredInsensitive)

    @property
    def norm_bound(self):
        return self.radius or 0.0

    @property
    def exact_norms(self):
        return self.radius is not None

    def settings(self):
        return {**super().settings(), "penalty": self.penalty}

    def core(self, function):
        return self.core_class(**self.settings(), squared=self.squared)


@dataclass(eq=False, repr=False)
class PassiveAggressive(FunctionEstimator):
    """Passive-aggressive: change f as little as possible so that the example is right.

    The implicit step without regularization (I section 5). ``variant`` "PA" always meets the margin
    exactly, "PA-I" with a coefficient of at most `penalty`, "PA-II" charges the squared loss.

    Parameters
    ----------
    {loss}
        Here it is `Hinge`, `Insensitive`, `Absolute`, `Novelty`, `MulticlassHinge` or `GraphHinge`. PA-I, and PA-II if
        it has a `value`, take a convex one of your own, too.
    {kernel}
    penalty : float
        C, the aggressiveness of PA-I and PA-II; positive.
    variant : "PA", "PA-I" or "PA-II"
        How far an example may move f: as far as it takes, up to a cap, or against a squared loss.
    {budget} {offset} {labels} {class_weight} {scale} {scale_target} {encode} {epochs}

    {Attributes} {Notes} {References}

    Examples
    --------
    >>> from onlinekernels import PassiveAggressive
    >>> PassiveAggressive("hinge", "linear", variant="PA", offset=False).fit([[2.0]], [1]).coef_
    array([[0.5]])
    """

    _rule = Aggressive

    loss: Loss | str | None = None
    kernel: KernelLike | None = None
    _: KW_ONLY
    penalty: float = 1.0
    variant: str = "PA-I"
    budget: Budget | int | None = None
    offset: bool | None = None
    labels: LabelStructure | None = None
    class_weight: ClassWeight | None = None
    scale: bool | RunningScaler = False
    scale_target: bool | str | RunningScaler = False
    encode: bool | RunningEncoder = False
    epochs: int = 1

    def _plan(self):
        if self.variant not in ("PA", "PA-I", "PA-II"):
            raise bad_parameter(self, "variant", "'PA', 'PA-I' or 'PA-II'", self.variant)
        penalty = check_positive(self, "penalty")
        return Plan.of(self, Aggressive(None if self.variant == "PA" else penalty, squared=self.variant == "PA-II"))


@dataclass(eq=False, repr=False)
class Projection(FunctionEstimator):
    """Move f to the nearest function that suits the example, H Fig. 2 and Fig. 4.

    For `Hinge` the functions that suit are those with y f(x) >= margin, for the insensitive losses those
    with |y - f(x)| <= width. With a `radius`, f is then projected onto the ball |f| <= radius, which
    gives bounds for every stretch of the stream, not only for all of it (H Thms 4 and 5).

    Without a radius it is the "PA" variant of `PassiveAggressive`.

    Parameters
    ----------
    {loss}
        Here it is `Hinge`, `Insensitive`, `SquaredInsensitive`, `Absolute`, `Novelty`, `MulticlassHinge` or
        `GraphHinge`. Weights of examples, unless they are 0, make no difference to a projection.
    {kernel}
    radius : float or None
        gamma, from 1e-100 to 1e100. The ball is kept at O(1) per step; a budget that drops a term costs one more kernel
        row. None is no ball.
    {budget} {offset}
        It is not part of |f|.
    {labels} {scale} {scale_target} {encode} {epochs}

    {Attributes} {Notes} {References}

    Examples
    --------
    >>> from onlinekernels import Projection
    >>> Projection("hinge", "linear", offset=False).fit([[2.0]], [1]).coef_
    array([[0.5]])
    >>> Projection("hinge", "linear", radius=0.25, offset=False).fit([[2.0]], [1]).coef_
    array([[0.25]])
    """

    _rule = Aggressive

    loss: Loss | str | None = None
    kernel: KernelLike | None = None
    _: KW_ONLY
    radius: float | None = None
    budget: Budget | int | None = None
    offset: bool | None = None
    labels: LabelStructure | None = None
    scale: bool | RunningScaler = False
    scale_target: bool | str | RunningScaler = False
    encode: bool | RunningEncoder = False
    epochs: int = 1
