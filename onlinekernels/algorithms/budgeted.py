"""Perceptrons with a budget of their own."""
from __future__ import annotations

from typing import TYPE_CHECKING

from onlinekernels._core import rules as core
from onlinekernels.algorithms.margin import TwoClasses
from onlinekernels.algorithms.norma import TIE, Gradient
from onlinekernels.base.estimator import OnlineLearner
from onlinekernels.base.plan import Plan, Rule
from onlinekernels.budgets import Projecting, Shrinking
from onlinekernels.base.labelvalues import count_labels
from onlinekernels.losses import Hinge, MulticlassHinge
from onlinekernels.steps import Fixed
from onlinekernels.base.validation import check_count, check_flag, check_not_negative, check_part, check_positive

if TYPE_CHECKING:
    from onlinekernels.annotations import Any, ClassWeight, KernelLike, RunningEncoder, RunningScaler

__all__ = ["Forgetron", "Projected", "Projectron"]


class Projected(Rule):
    """Steps of a Perceptron that the terms take over as far as they can: the budget projects what does not enter.

    Parameters
    ----------
    margin_tolerance : float
        eta of margin errors; 0 leaves them alone.
    """

    _values = {"margin_tolerance": check_not_negative}
    losses = (Hinge, MulticlassHinge)
    step_name = "Projectron"
    forms = frozenset({"one", "pair"})
    keeps_examples = True
    core_class = core.Projected

    def __init__(self, margin_tolerance=0.0):
        self.margin_tolerance = margin_tolerance

    def check(self, plan):
        super().check(plan)
        if type(plan.budget) is not Projecting:
            raise ValueError("the rule needs a budget that projects")

    def settings(self):
        return {**super().settings(), "tolerance": self.margin_tolerance}


class Forgetron(TwoClasses):
    """The self-tuned Forgetron (Dekel, Shalev-Shwartz and Singer 2008): a Perceptron that forgets slowly.

    On a mistake, y f(x) <= 0, it adds y k(x, .). If that is one term too many, all of f is multiplied by phi and the oldest
    term goes. phi in (0, 1] is the largest for which ::

        Q + (sigma phi)^2 + 2 sigma phi - 2 sigma phi^2 mu <= 15/32 M

    where sigma is the absolute coefficient of that term, mu is its margin y_r f(x_r), newcomer included, M counts mistakes,
    and Q sums up what removals before have added here. So f never forgets faster than it errs, and
    for k(x, x) <= 1 there is a bound: no more than 2 |g|^2 + 4 sum_t max(0, 1 - y_t g(x_t)) mistakes for any g with
    |g| <= sqrt((budget + 1) / log(budget + 1)) / 4.

    Parameters
    ----------
    {kernel}
        The bound holds for k(x, x) <= 1; `Normalized` makes it so.
    budget : int
        How many terms there may be; at least 1.
    {scale}
    {encode}
    {epochs}

    {Attributes}

    {Notes}
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

    def __init__(self, kernel: KernelLike | None = None, *, budget: int = 100, scale: bool | RunningScaler = False,
                 encode: bool | RunningEncoder = False, epochs: int = 1) -> None:
        self.kernel = kernel
        self.budget = budget
        self.scale = scale
        self.encode = encode
        self.epochs = epochs

    def _plan(self):
        check_count(self, "budget")
        return Plan.of(self, Gradient(Fixed(1.0)))


class Projectron(OnlineLearner):
    """Projectron and Projectron++ (Orabona, Keshet and Caputo 2009): a Perceptron that never forgets a term.

    On a mistake, y f(x) <= 0, it adds y k(x, .), as a new term if there is room and the others do not span x. Otherwise
    the terms that are there take over the projection of k(x, .) onto their span.

    Projectron++ (``aggressive=True``) also moves after a margin error, 0 < y f(x) < 1, with no new term: by the projection
    P k(x, .) times ::

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
    {class_weight}
    {scale}
    {encode}
    {epochs}

    {Attributes}

    {Notes}
    Orabona, Keshet and Caputo (2009), "Bounded kernel-based online learning". There terms enter as long as delta > eta,
    and the number of them follows from eta. Other terms than the newcomer are never given up; `Projecting` is the
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

    def __init__(self, kernel: KernelLike | None = None, *, aggressive: bool = False, tolerance: float = 0.0,
                 margin_tolerance: float = 0.5, budget: int = 300, class_weight: ClassWeight | None = None,
                 scale: bool | RunningScaler = False, encode: bool | RunningEncoder = False, epochs: int = 1) -> None:
        self.kernel = kernel
        self.aggressive = aggressive
        self.tolerance = tolerance
        self.margin_tolerance = margin_tolerance
        self.budget = budget
        self.class_weight = class_weight
        self.scale = scale
        self.encode = encode
        self.epochs = epochs

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

    def _first_plan(self, y, classes):
        many = count_labels(y if classes is None else classes) > 2
        return self._plan_for(self._loss_of_many() if many else self.loss)

    def _plan_for(self, loss):
        aggressive = check_flag(self, "aggressive")
        check_part(self, "tolerance")
        tolerance = check_positive(self, "margin_tolerance")
        check_count(self, "budget")
        return Plan.of(self, Projected(tolerance if aggressive else 0.0), loss=loss)
