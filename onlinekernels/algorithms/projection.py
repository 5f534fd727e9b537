"""Projections onto what an example demands, with an optional norm ball (H part 2)."""
from onlinekernels.learner import OnlineLearner
from onlinekernels.plan import Plan
from onlinekernels.validation import bad_parameter, check_real

__all__ = ["Projection"]


class Projection(OnlineLearner):
    """Move f to the nearest function that suits the example, H Fig. 2 and Fig. 4.

    For `Hinge` the functions that suit are those with y f(x) >= margin, for the insensitive losses those
    with |y - f(x)| <= width. With a `radius`, f is then projected onto the ball |f| <= radius, which
    gives bounds for every stretch of the stream, not only for all of it (H Thms 4 and 5).

    Without a radius it is the "PA" variant of `PassiveAggressive`.

    Parameters
    ----------
    loss : Loss, str or None
        `Hinge`, `Insensitive`, `SquaredInsensitive`, `Absolute`, `Novelty`, `MulticlassHinge` or `GraphHinge`.
    radius : float or None
        gamma. The ball is kept at O(1) per step; a budget that drops a term costs one more kernel row.
    kernel, budget, offset, labels, scale, scale_target, epochs
        As in `NORMA`. Offsets are not part of |f|. Weights of examples, unless they are 0, make no difference to a
        projection.

    Examples
    --------
    >>> from onlinekernels import Projection
    >>> Projection("hinge", "linear").fit([[2.0]], [1]).coef_
    array([[0.5]])
    >>> Projection("hinge", "linear", radius=0.25).fit([[2.0]], [1]).coef_
    array([[0.25]])
    """

    def __init__(self, loss=None, kernel=None, *, radius=None, budget=None, offset=False, labels=None, scale=False,
                 scale_target=False, epochs=1):
        self.loss = loss
        self.kernel = kernel
        self.radius = radius
        self.budget = budget
        self.offset = offset
        self.labels = labels
        self.scale = scale
        self.scale_target = scale_target
        self.epochs = epochs

    def _plan(self):
        radius = 0.0
        if self.radius is not None:
            radius = check_real(self, "radius", "a positive number or None", lambda value: value > 0)
            if not 1e-100 < radius < 1e100:
                raise bad_parameter(self, "radius", "a number from 1e-100 to 1e100 or None", self.radius)
        return Plan.of(
            self,
            loss=self.loss,
            kernel=self.kernel,
            step=1.0,
            rule="aggressive",
            penalty=1e308,
            radius=radius,
            exact_norms=radius > 0,
        )
