"""The classics for two classes: ALMA, Ballseptron, ROMMA, voted Perceptron, Forgetron and Projectron."""
from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING

import numpy as np

from onlinekernels._core import budgets, rules as core
from onlinekernels.algorithms.norma import TIE, Gradient
from onlinekernels.base import defaults
from onlinekernels.base.labelvalues import count_labels
from onlinekernels.base.estimator import FunctionEstimator
from onlinekernels.base.plan import Plan, Rule
from onlinekernels.base.validation import (
    check_count, check_flag, check_not_negative, check_part, check_positive, check_share,
)
from onlinekernels.budgets import Projecting, Shrinking
from onlinekernels.kernels import Normalized, as_kernel
from onlinekernels.losses import Hinge, MulticlassHinge
from onlinekernels.steps import Fixed

if TYPE_CHECKING:
    from onlinekernels.annotations import Any, Budget, ClassWeight, KernelLike, RunningEncoder, RunningScaler

# ---- Rules of two classes, by the sign of f and its norm ----


@dataclass(eq=False, repr=False)
class Approximate(Rule):
    """ALMA_2: w + (C / sqrt(k)) y x if y w.x <= (1 - alpha) B / sqrt(k), where |w| <= 1."""

    _values = {"alpha": check_share, "B": check_positive, "C": check_positive}
    losses = (Hinge,)
    step_name = "ALMA"
    may_change = frozenset({"C"})
    norm_bound = 1.0
    exact_norms = True
    knows_weights = False
    core_class = core.Approximate

    alpha: float
    B: float
    C: float

    def settings(self):
        return {**super().settings(), "threshold": (1.0 - self.alpha) * self.B, "penalty": self.C}


@dataclass(eq=False, repr=False)
class Ball(Rule):
    """The Ballseptron: w moves by the point of a ball around x that is farthest on the wrong side."""

    _values = {"radius": check_positive}
    losses = (Hinge,)
    step_name = "Ballseptron"
    exact_norms = True
    knows_weights = False
    core_class = core.Ball

    radius: float  # of the ball around each example

    def settings(self):
        return {**super().settings(), "radius": self.radius}


@dataclass(eq=False, repr=False)
class Relaxed(Rule):
    """ROMMA: the shortest w with y w.x >= 1 in the half space of all that was learned."""

    _values = {"aggressive": check_flag}
    losses = (Hinge,)
    step_name = "ROMMA"
    exact_norms = True
    knows_weights = False
    core_class = core.Relaxed

    aggressive: bool = False  # move whenever y w.x < 1, not only after mistakes

    def core(self, function):
        return self.core_class(**self.settings(), aggressive=self.aggressive)


class Voted(Gradient):
    """The Perceptron whose hypotheses all vote: they are prefix sums of its terms."""

    may_change = frozenset()
    knows_weights = False
    keeps_examples = True
    votes = True
    refuses_start = "A voted Perceptron starts from 0: initial cannot say which hypotheses there were."


# ---- Learners ----


class TwoClasses(FunctionEstimator):
    """An algorithm for two classes without a choice of loss or an offset.

    Parameters
    ----------
    {kernel} {budget}
        |f| is kept exact when a term is dropped.
    {scale} {encode} {epochs}

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


@dataclass(eq=False, repr=False)
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
        The margin that is asked for, times sqrt(k) / (1 - alpha); positive. None is sqrt(8) / alpha, as in the
        original.
    C : float or None
        The step, times sqrt(k); positive. None is sqrt(2), as in the original.
    {budget} {scale} {encode} {epochs}

    {Attributes} {Notes}
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

    kernel: KernelLike | None = None
    _: KW_ONLY
    alpha: float = 0.9
    B: float | None = None
    C: float | None = None
    budget: Budget | int | None = None
    scale: bool | RunningScaler = False
    encode: bool | RunningEncoder = False
    epochs: int = 1

    _default_kernel = staticmethod(defaults.normalized)

    def _plan(self):
        alpha = check_share(self, "alpha")
        B = check_positive.or_none(self, "B") or np.sqrt(8.0) / alpha
        C = check_positive.or_none(self, "C") or np.sqrt(2.0)
        kernel = None if self.kernel is None else Normalized(as_kernel(self.kernel, self))
        return Plan.of(self, Approximate(alpha, float(B), float(C)), kernel=kernel)


@dataclass(eq=False, repr=False)
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
        r, the radius of the balls; positive. It should be smaller than the margin that is there; with a much smaller
        one this is the Perceptron.
    {budget} {scale} {encode} {epochs}

    {Attributes} {Notes}
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

    kernel: KernelLike | None = None
    _: KW_ONLY
    radius: float = 0.1
    budget: Budget | int | None = None
    scale: bool | RunningScaler = False
    encode: bool | RunningEncoder = False
    epochs: int = 1


@dataclass(eq=False, repr=False)
class ROMMA(TwoClasses):
    """Relaxed online maximum margin algorithm (Li and Long 2002).

    After a mistake w becomes the shortest vector with y w.x >= 1 and w.w_t >= |w_t|^2: all earlier
    constraints are relaxed to one half space. The aggressive variant moves whenever y w.x < 1.

    |w| grows by every update, and 1 / |w| bounds the margin of the examples. On data that no w separates it would
    grow without end. An example that contradicts w, up to rounding, or would take |w| |x| beyond 1e5 starts anew with
    w = y x / |x|^2; the latter is worth a `LearningWarning`, once. It is no good choice for such data: it believes
    every example.

    Parameters
    ----------
    {kernel}
    aggressive : bool
        Move whenever y w.x < 1, not only after mistakes.
    {budget} {scale} {encode} {epochs}

    {Attributes} {Notes}
    Other weights make no difference.

    Examples
    --------
    >>> from onlinekernels import ROMMA
    >>> ROMMA("linear").fit([[2.0, 0.0], [0.0, 1.0]], [1, -1]).coef_
    array([[ 0.5, -1. ]])
    """

    _rule = Relaxed

    kernel: KernelLike | None = None
    _: KW_ONLY
    aggressive: bool = False
    budget: Budget | int | None = None
    scale: bool | RunningScaler = False
    encode: bool | RunningEncoder = False
    epochs: int = 1


@dataclass(eq=False, repr=False)
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
    {scale} {encode} {epochs}

    {Attributes} {Notes}

    Examples
    --------
    >>> from onlinekernels import VotedPerceptron
    >>> model = VotedPerceptron("linear").fit([[1.0, 0.0], [0.0, 1.0], [1.0, 0.5]], [1, -1, 1])
    >>> model.decision_function([[1.0, 0.0]])       # w_1 survived one example, w_2 two
    array([3.])
    """

    _rule = Voted

    kernel: KernelLike | None = None
    _: KW_ONLY
    vote: bool = True
    scale: bool | RunningScaler = False
    encode: bool | RunningEncoder = False
    epochs: int = 1

    def _plan(self):
        check_flag(self, "vote")
        return Plan.of(self, Voted(Fixed(1.0)))

    def _decision(self, state, examples, **how):
        return super()._decision(state, examples, votes=1 if check_flag(self, "vote") else 2, **how)


@dataclass(eq=False, repr=False)
class Projected(Rule):
    """Steps of a Perceptron that the terms take over as far as they can: the budget projects what does not enter."""

    _values = {"margin_tolerance": check_not_negative}
    losses = (Hinge, MulticlassHinge)
    step_name = "Projectron"
    forms = frozenset({"one", "pair"})
    keeps_examples = True
    core_class = budgets.Projected

    margin_tolerance: float = 0.0  # eta of margin errors; 0 leaves them alone

    def check(self, plan):
        super().check(plan)
        if type(plan.budget) is not Projecting:
            raise ValueError("the rule needs a budget that projects")

    def settings(self):
        return {**super().settings(), "tolerance": self.margin_tolerance}


@dataclass(eq=False, repr=False)
class Forgetron(TwoClasses):
    """The self-tuned Forgetron (Dekel, Shalev-Shwartz and Singer 2008): a Perceptron that forgets slowly.

    On a mistake, y f(x) <= 0, it adds y k(x, .). If that is one term too many, all of f is multiplied by phi and the
    oldest term goes. phi in (0, 1] is the largest for which ::

        Q + (sigma phi)^2 + 2 sigma phi - 2 sigma phi^2 mu <= 15/32 M

    where sigma is the absolute coefficient of that term, mu is its margin y_r f(x_r), the new term included, M counts
    mistakes, and Q sums up what removals before have added here. So f never forgets faster than it errs, and for k(x,
    x) <= 1 there is a bound: no more than 2 |g|^2 + 4 sum_t max(0, 1 - y_t g(x_t)) mistakes for any g with
    |g| <= sqrt((budget + 1) / log(budget + 1)) / 4.

    Parameters
    ----------
    {kernel}
        The bound holds for k(x, x) <= 1; `Normalized` makes it so.
    budget : int
        How many terms there may be; at least 1.
    {scale} {encode} {epochs}

    {Attributes} {Notes}
    Dekel, Shalev-Shwartz and Singer (2008), "The Forgetron: a kernel-based Perceptron on a budget".

    Examples
    --------
    >>> import numpy as np
    >>> from onlinekernels import Forgetron, Gaussian
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 2))
    >>> y = np.where(X[:, 0] * X[:, 1] > 0, 1, -1)
    >>> model = Forgetron(Gaussian(0.5), budget=100)
    >>> bool(np.mean(model.progressive(X, y) * y > 0) > 0.85), model.n_terms_
    (True, 100)
    """

    _rule = Gradient
    _budget_of_int = Shrinking

    kernel: KernelLike | None = None
    _: KW_ONLY
    budget: int = 100
    scale: bool | RunningScaler = False
    encode: bool | RunningEncoder = False
    epochs: int = 1

    def _plan(self):
        check_count(self, "budget")
        return Plan.of(self, Gradient(Fixed(1.0)))


@dataclass(eq=False, repr=False)
class Projectron(FunctionEstimator):
    """Projectron and Projectron++ (Orabona, Keshet and Caputo 2009): a Perceptron that never forgets a term.

    On a mistake, y f(x) <= 0, it adds y k(x, .), as a new term if there is room and the others do not span x. Otherwise
    the terms that are there take over the projection of k(x, .) onto their span.

    Projectron++ (``aggressive=True``) also moves after a margin error, 0 < y f(x) < 1, with no new term: by the
    projection P k(x, .) times ::

        tau = min(l / p, 2 (l - delta^2 / eta) / p, 1),     l = 1 - y f(x),  p = |P k(x, .)|^2,  delta^2 = k(x, x) - p

    unless l <= delta^2 / eta: then too much of x is out of reach.

    With many classes y f(x) is the score of the label minus that of the best wrong one, and both get the update.

    Parameters
    ----------
    {kernel}
    aggressive : bool
        Learn from margin errors, too: Projectron++.
    tolerance : float
        eta of mistakes: no new term if delta^2 is at most this part of k(x, x), in [0, 1).
    margin_tolerance : float
        eta of margin errors; a positive number.
    budget : int
        How many terms there may be; at least 1. Once they are there, they stay.
    {class_weight} {scale} {encode} {epochs}

    {Attributes} {Notes}
    Orabona, Keshet and Caputo (2009), "Bounded kernel-based online learning". There terms enter as long as delta > eta,
    and the number of them follows from eta. Other terms than the new one are never given up; `Projecting` is the
    budget that does so, for all algorithms.

    {References}

    Examples
    --------
    >>> import numpy as np
    >>> from onlinekernels import Projectron, Gaussian
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 2))
    >>> y = np.where(X[:, 0] * X[:, 1] > 0, 1, -1)
    >>> for aggressive in (False, True):
    ...     model = Projectron(Gaussian(1.0), aggressive=aggressive, budget=20)
    ...     print(np.mean(model.progressive(X, y) * y > 0).round(2), model.n_terms_)
    0.91 20
    0.93 20
    """

    _rule = Projected
    _takes_many = True

    kernel: KernelLike | None = None
    _: KW_ONLY
    aggressive: bool = False
    tolerance: float = 0.0
    margin_tolerance: float = 0.5
    budget: int = 300
    class_weight: ClassWeight | None = None
    scale: bool | RunningScaler = False
    encode: bool | RunningEncoder = False
    epochs: int = 1

    @property
    def loss(self) -> Any:
        """The hinge: with a margin of 1 for Projectron++, otherwise one that only a mistake falls short of."""
        return Hinge(margin=1.0 if self.aggressive else 0.0)

    def _loss_of_many(self):
        return MulticlassHinge(margin=1.0 if self.aggressive else TIE)

    def _budget_of_int(self, size):
        return Projecting(size, self.tolerance)

    def _plan(self):
        fitted = self._state is not None and self._state.loss.task == "multiclass"
        return self._plan_for(self._loss_of_many() if fitted else self.loss)

    def _first_plan(self, X, y, classes):
        many = count_labels(y if classes is None else classes) > 2
        return self._plan_for(self._loss_of_many() if many else self.loss)

    def _plan_for(self, loss):
        aggressive = check_flag(self, "aggressive")
        check_part(self, "tolerance")
        tolerance = check_positive(self, "margin_tolerance")
        check_count(self, "budget")
        return Plan.of(self, Projected(tolerance if aggressive else 0.0), loss=loss)
