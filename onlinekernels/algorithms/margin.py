"""The margin classics: the Ballseptron, ALMA, ROMMA and the voted Perceptron."""
from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlinekernels._core import rules as core
from onlinekernels.algorithms.norma import Gradient
from onlinekernels.base import defaults
from onlinekernels.base.estimator import OnlineLearner
from onlinekernels.base.plan import Plan, Rule
from onlinekernels.kernels import Normalized, as_kernel
from onlinekernels.losses import Hinge
from onlinekernels.steps import Fixed
from onlinekernels.base.validation import check_flag, check_positive, check_share

if TYPE_CHECKING:
    from onlinekernels.annotations import Any, Budget, KernelLike, RunningEncoder, RunningScaler

__all__ = ["ALMA", "Approximate", "Ball", "Ballseptron", "ROMMA", "Relaxed", "Voted", "VotedPerceptron"]

# ---- Rules of two classes, by the sign of f and its norm ----


class Approximate(Rule):
    """ALMA_2: w + (C / sqrt(k)) y x if y w.x <= (1 - alpha) B / sqrt(k), where |w| <= 1.

    Parameters
    ----------
    alpha, B, C : float
    """

    _values = {"alpha": check_share, "B": check_positive, "C": check_positive}
    losses = (Hinge,)
    step_name = "ALMA"
    may_change = frozenset({"C"})
    norm_bound = 1.0
    exact_norms = True
    knows_weights = False
    core_class = core.Approximate

    def __init__(self, alpha, B, C):
        self.alpha = alpha
        self.B = B
        self.C = C

    def settings(self):
        return {**super().settings(), "threshold": (1.0 - self.alpha) * self.B, "penalty": self.C}


class Ball(Rule):
    """The Ballseptron: w moves by the point of a ball around x that is farthest on the wrong side.

    Parameters
    ----------
    radius : float
        Of the ball around each example.
    """

    _values = {"radius": check_positive}
    losses = (Hinge,)
    step_name = "Ballseptron"
    exact_norms = True
    knows_weights = False
    core_class = core.Ball

    def __init__(self, radius):
        self.radius = radius

    def settings(self):
        return {**super().settings(), "radius": self.radius}


class Relaxed(Rule):
    """ROMMA: the shortest w with y w.x >= 1 in the half space of all that was learned.

    Parameters
    ----------
    aggressive : bool
        Move whenever y w.x < 1, not only after mistakes.
    cap : float or None
        |w| stays within it.
    """

    _values = {"aggressive": check_flag, "cap": check_positive.or_none}
    losses = (Hinge,)
    step_name = "ROMMA"
    exact_norms = True
    knows_weights = False
    core_class = core.Relaxed

    def __init__(self, aggressive=False, cap=None):
        self.aggressive = aggressive
        self.cap = cap

    @property
    def norm_bound(self):
        return self.cap or 0.0

    def core(self, function):
        return self.core_class(**self.settings(), aggressive=self.aggressive)


class Voted(Gradient):
    """The Perceptron whose hypotheses all vote: they are prefix sums of its terms."""

    _values = {}
    may_change = frozenset()
    knows_weights = False
    keeps_examples = True
    votes = True
    refuses_start = "A voted Perceptron starts from 0: initial cannot say which hypotheses there were."

    def __init__(self):
        super().__init__(Fixed(1.0))


# ---- Learners ----


class TwoClasses(OnlineLearner):
    """A learner of two classes without a choice of loss or an offset.

    Parameters
    ----------
    {kernel}
    {budget}
        |f| is kept exact when a term is dropped.
    {scale}
    {encode}
    {epochs}

    Notes
    -----
    f(x) is written w.x here, as in the papers about these algorithms, and |f| is |w|. A sample weight of 0 leaves an
    example out.
    """

    budget: Budget | int | None = None

    @property
    def loss(self) -> Any:
        """Hinge(margin=0.0): two classes; the rule is the algorithm's own."""
        return Hinge(margin=0.0)


class ALMA(TwoClasses):
    """Approximate large margin algorithm ALMA_2(alpha) (Gentile 2001).

    Examples are normalised to length 1. If y w.x <= (1 - alpha) B / sqrt(k), then w <- w + (C / sqrt(k)) y x,
    and w is projected onto the unit ball; k counts these corrections from 1. On separable data the margin
    of w comes within a factor 1 - alpha of the largest there is.

    Parameters
    ----------
    {kernel}
        f lives in the space of `Normalized(kernel)`.
    alpha : float
        How much of the largest margin may be given away, in (0, 1]; 1 asks for no margin at all.
    B : float or None
        The margin that is asked for, times sqrt(k) / (1 - alpha); positive. None is sqrt(8) / alpha, as in the original.
    C : float or None
        The step, times sqrt(k); positive. None is sqrt(2), as in the original.
    {budget}
    {scale}
    {encode}
    {epochs}

    {Attributes}

    {Notes}
    Other weights make no difference.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinekernels import ALMA, Gaussian
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> y = np.where(X[:, 0] > 0, "right", "left")
    >>> model = ALMA(Gaussian(1.0), epochs=5).fit(X, y)
    >>> bool(model.score(X, y) > 0.95), bool(model.norm_ < 1 + 1e-12)
    (True, True)
    """

    _rule = Approximate

    def __init__(self, kernel: KernelLike | None = None, *, alpha: float = 0.9, B: float | None = None,
                 C: float | None = None, budget: Budget | int | None = None, scale: bool | RunningScaler = False,
                 encode: bool | RunningEncoder = False, epochs: int = 1) -> None:
        self.kernel = kernel
        self.alpha = alpha
        self.B = B
        self.C = C
        self.budget = budget
        self.scale = scale
        self.encode = encode
        self.epochs = epochs

    _default_kernel = staticmethod(defaults.normalized)

    def _plan(self):
        alpha = check_share(self, "alpha")
        B = check_positive.or_none(self, "B") or np.sqrt(8.0) / alpha
        C = check_positive.or_none(self, "C") or np.sqrt(2.0)
        kernel = None if self.kernel is None else Normalized(as_kernel(self.kernel, self))
        return Plan.of(self, Approximate(alpha, float(B), float(C)), kernel=kernel)


class Ballseptron(TwoClasses):
    """The Perceptron with a ball around each example (Shalev-Shwartz and Singer 2005).

    After a mistake, y w.x <= 0, w <- w + y x as the Perceptron does. If the prediction is right but the hyperplane cuts
    the ball of radius r around x, y w.x <= r |w|, the update is made with the point of the ball that is farthest on the
    wrong side, x - y r w / |w|::

        w <- (1 - r / |w|) w + y x

    So it asks for a margin of r, in the units of sqrt(k(x, x)).

    Parameters
    ----------
    {kernel}
    radius : float
        r, the radius of the balls; positive. It should be smaller than the margin that is there; with a much smaller one
        this is the Perceptron.
    {budget}
    {scale}
    {encode}
    {epochs}

    {Attributes}

    {Notes}
    Other weights make no difference.

    References
    ----------
    Shalev-Shwartz and Singer. A new perspective on an old Perceptron algorithm. Conference on Learning Theory, 2005.

    Examples
    --------
    >>> from onlinekernels import Ballseptron
    >>> Ballseptron("linear", radius=0.5).fit([[1.0, 0.0], [0.25, -1.0]], [1, 1]).coef_  # half of w goes, x comes
    array([[ 0.75, -1.  ]])
    """

    _rule = Ball

    def __init__(self, kernel: KernelLike | None = None, *, radius: float = 0.1, budget: Budget | int | None = None,
                 scale: bool | RunningScaler = False, encode: bool | RunningEncoder = False, epochs: int = 1) -> None:
        self.kernel = kernel
        self.radius = radius
        self.budget = budget
        self.scale = scale
        self.encode = encode
        self.epochs = epochs

    def _plan(self):
        return Plan.of(self, Ball(check_positive(self, "radius")))


class ROMMA(TwoClasses):
    """Relaxed online maximum margin algorithm (Li and Long 2002).

    After a mistake w becomes the shortest vector with y w.x >= 1 and w.w_t >= |w_t|^2: all earlier
    constraints are relaxed to one half space. The aggressive variant moves whenever y w.x < 1.

    |w| grows by every update, and 1 / |w| bounds the margin of the examples. On data that no w separates it would
    grow without end. An example that contradicts w, up to rounding, or would take |w| |x| beyond 1e5 starts anew with
    w = y x / |x|^2; the latter is worth a `LearningWarning`, once. A `cap` keeps w shorter,
    so that it never starts anew. Neither makes it a good choice for such data: it believes every example.

    Parameters
    ----------
    {kernel}
    aggressive : bool
        Move whenever y w.x < 1, not only after mistakes.
    cap : float or None
        The largest |w|: what is longer is scaled back to it; positive. None is no cap. 1 / |w| is a margin, so a cap says
        which margin is too small to be asked for.
    {budget}
    {scale}
    {encode}
    {epochs}

    {Attributes}

    {Notes}
    Other weights make no difference.

    Examples
    --------
    >>> from onlinekernels import ROMMA
    >>> ROMMA("linear").fit([[2.0, 0.0], [0.0, 1.0]], [1, -1]).coef_
    array([[ 0.5, -1. ]])
    """

    _rule = Relaxed

    def __init__(self, kernel: KernelLike | None = None, *, aggressive: bool = False, cap: float | None = None,
                 budget: Budget | int | None = None, scale: bool | RunningScaler = False,
                 encode: bool | RunningEncoder = False, epochs: int = 1) -> None:
        self.kernel = kernel
        self.aggressive = aggressive
        self.cap = cap
        self.budget = budget
        self.scale = scale
        self.encode = encode
        self.epochs = epochs

    def _plan(self):
        return Plan.of(self, Relaxed(check_flag(self, "aggressive"), check_positive.or_none(self, "cap")))


class VotedPerceptron(TwoClasses):
    """The Perceptron, predicting with all the hypotheses it ever had (Freund and Schapire 1999).

    Each hypothesis w_i votes with the number c_i of examples that it survived: sum_i c_i sign(w_i.x), or for
    ``vote=False`` the averaged form sum_i c_i w_i.x. The hypotheses are prefix sums of the terms, so one
    pass over the terms evaluates them all. `progressive` gives the scores of the Perceptron itself.

    Parameters
    ----------
    {kernel}
    vote : bool
        Predict with the majority of the hypotheses; False is their average.
    {scale}
    {encode}
    {epochs}

    {Attributes}

    {Notes}

    Examples
    --------
    >>> from onlinekernels import VotedPerceptron
    >>> model = VotedPerceptron("linear").fit([[1.0, 0.0], [0.0, 1.0], [1.0, 0.5]], [1, -1, 1])
    >>> model.decision_function([[1.0, 0.0]])       # w_1 survived one example, w_2 two
    array([3.])
    """

    _rule = Voted

    def __init__(self, kernel: KernelLike | None = None, *, vote: bool = True, scale: bool | RunningScaler = False,
                 encode: bool | RunningEncoder = False, epochs: int = 1) -> None:
        self.kernel = kernel
        self.vote = vote
        self.scale = scale
        self.encode = encode
        self.epochs = epochs

    def _plan(self):
        check_flag(self, "vote")
        return Plan.of(self, Voted())

    def _decision(self, state, examples, **how):
        return super()._decision(state, examples, votes=1 if check_flag(self, "vote") else 2, **how)
