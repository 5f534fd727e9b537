"""Projections onto what an example demands, with an optional norm ball (H part 2)."""
from __future__ import annotations

from typing import TYPE_CHECKING

from onlinekernels.algorithms.implicit import Aggressive
from onlinekernels.base.estimator import OnlineLearner
from onlinekernels.base.plan import Plan
from onlinekernels.base.validation import Real

if TYPE_CHECKING:
    from onlinekernels.annotations import Budget, KernelLike, LabelStructure, Loss, RunningEncoder, RunningScaler

__all__ = ["Projection"]

check_radius = Real("a number from 1e-100 to 1e100", lambda value: 1e-100 < value < 1e100)


class Projection(OnlineLearner):
    """Move f to the nearest function that suits the example, H Fig. 2 and Fig. 4.

    For `Hinge` the functions that suit are those with y f(x) >= margin, for the insensitive losses those
    with |y - f(x)| <= width. With a `radius`, f is then projected onto the ball |f| <= radius, which
    gives bounds for every stretch of the stream, not only for all of it (H Thms 4 and 5).

    Without a radius it is the "PA" variant of `PassiveAggressive`.

    Parameters
    ----------
    {loss}
        Here it is `Hinge`, `Insensitive`, `SquaredInsensitive`, `Absolute`, `Novelty`, `MulticlassHinge` or `GraphHinge`.
        Weights of examples, unless they are 0, make no difference to a projection.
    {kernel}
    radius : float or None
        gamma, from 1e-100 to 1e100. The ball is kept at O(1) per step; a budget that drops a term costs one more kernel
        row. None is no ball.
    {budget}
    {offset}
        It is not part of |f|.
    {labels}
    {scale}
    {scale_target}
    {encode}
    {epochs}

    {Attributes}

    {Notes}

    {References}

    Examples
    --------
    >>> from onlinekernels import Projection
    >>> Projection("hinge", "linear", offset=False).fit([[2.0]], [1]).coef_
    array([[0.5]])
    >>> Projection("hinge", "linear", radius=0.25, offset=False).fit([[2.0]], [1]).coef_
    array([[0.25]])
    """

    _rule = Aggressive

    def __init__(self, loss: Loss | str | None = None, kernel: KernelLike | None = None, *, radius: float | None = None,
                 budget: Budget | int | None = None, offset: bool | None = None, labels: LabelStructure | None = None,
                 scale: bool | RunningScaler = False, scale_target: bool | str | RunningScaler = False,
                 encode: bool | RunningEncoder = False, epochs: int = 1) -> None:
        self.loss = loss
        self.kernel = kernel
        self.radius = radius
        self.budget = budget
        self.offset = offset
        self.labels = labels
        self.scale = scale
        self.scale_target = scale_target
        self.encode = encode
        self.epochs = epochs

    def _plan(self):
        return Plan.of(self, Aggressive(radius=check_radius.or_none(self, "radius")))
