"""NORMA, explicit stochastic gradient descent in a Hilbert space (K), and the Perceptron."""
from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING

from onlinekernels._core import metadescent, rules
from onlinekernels.base.labelvalues import count_labels
from onlinekernels.base.estimator import FunctionEstimator
from onlinekernels.base.plan import check_step, Plan, Rule
from onlinekernels.base.validation import bad_parameter, check_flag, check_not_negative
from onlinekernels.losses import Hinge, Mistake, MulticlassHinge
from onlinekernels.steps import Fixed

if TYPE_CHECKING:
    from onlinekernels.annotations import (
        Any, Budget, ClassWeight, KernelLike, LabelStructure, Loss, RunningEncoder, RunningScaler, Step,
    )

TIE = 1e-300  # a margin so small that only ties and mistakes fall short of it


@dataclass(eq=False, repr=False)
class Gradient(Rule):
    """f <- (1 - eta lambda) f - eta l'(f(x), y) k(x, .), with a step eta that may adapt itself (`MetaDescent`)."""

    _values = {"step": check_step, "regularization": check_not_negative, "exact_norms": check_flag}
    forms = frozenset({"one", "pair", "dense", "targets"})
    may_change = frozenset({"step", "regularization"})
    takes_gradient_steps = True
    advice = "a smaller step, or SILK, whose steps cannot overshoot"

    step: Step = field()  # eta
    regularization: float = 0.0  # lambda
    exact_norms: bool = False  # for steps that adapt: |f|^2 and <f, v> corrected whenever a term is dropped

    def check(self, plan):
        loss, largest = plan.loss, self.step.checked_size(math.inf, 1)
        if largest * self.regularization > 1:
            raise ValueError("step * regularization must be at most 1, so that old coefficients shrink and do not "
                             f"change sign. Got {largest:g} * {self.regularization:g} = "
                             f"{largest * self.regularization:g} instead.")
        if self.adapts_step and not loss.is_compiled():
            if loss.task == "multiclass" or not loss.has_curvature:
                raise ValueError(f"{type(loss).__name__} cannot be used with MetaDescent: it needs one output and a "
                                 "method curvature(score, y).")
        super().check(plan)

    def check_loss(self, loss):
        """All losses have a gradient."""

    @property
    def largest_step(self):
        return 1.0 / self.regularization if self.regularization else math.inf

    @property
    def core_class(self):
        """Another rule if the step adapts."""
        return metadescent.AdaptiveGradient if self.adapts_step else rules.Gradient

    def settings(self):
        return {**super().settings(), "regularization": self.regularization}


@dataclass(eq=False, repr=False)
class NORMA(FunctionEstimator):
    """Naive Online Regularized-risk Minimization Algorithm, K (9).

    Each example moves the hypothesis down the gradient of its regularized loss::

        f <- (1 - eta_t lambda) f - eta_t l'(f(x_t), y_t) k(x_t, .)

    Parameters
    ----------
    {loss} {kernel}
    step : float or Step
        eta_t: how far an example moves f; a number means `Fixed`. step * regularization must not exceed 1.
    regularization : float
        lambda: how fast old coefficients decay; at least 0.
    {average} {budget} {offset} {labels} {class_weight} {scale} {scale_target} {encode} {epochs}

    {Attributes} {Notes} {References}

    Examples
    --------
    >>> import numpy as np
    >>> from onlinekernels import NORMA, Gaussian
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 2))
    >>> y = np.where(X[:, 0] * X[:, 1] > 0, "same", "different")
    >>> model = NORMA("hinge", Gaussian(0.7), step=0.5, regularization=0.01, budget=200)
    >>> scores = model.progressive(X, y)
    >>> mistakes = model.classes_[(scores > 0).astype(int)] != y
    >>> int(mistakes[:100].sum()), int(mistakes[-100:].sum())
    (19, 12)
    >>> model.predict([[1.0, 1.0], [-1.0, 1.0]])
    array(['same', 'different'], dtype='<U9')
    """

    _rule = Gradient

    loss: Loss | str | None = None
    kernel: KernelLike | None = None
    _: KW_ONLY
    step: float | Step = 0.1
    regularization: float = 1e-3
    average: bool = False
    budget: Budget | int | None = None
    offset: bool | None = None
    labels: LabelStructure | None = None
    class_weight: ClassWeight | None = None
    scale: bool | RunningScaler = False
    scale_target: bool | str | RunningScaler = False
    encode: bool | RunningEncoder = False
    epochs: int = 1


@dataclass(eq=False, repr=False)
class Perceptron(FunctionEstimator):
    """The kernel Perceptron: on a mistake, y f(x) <= 0, add y k(x, .).

    It is `NORMA` with a zero margin, no regularization and step 1.

    With many classes a mistake is a label that does as well as the right one. The update is ultraconservative (Crammer
    and Singer 2003): it adds k(x, .) to the right label and takes as much away in all from those that did as well.

    Parameters
    ----------
    {kernel}
    update : "runner-up", "uniform" or None
        For many classes, what is taken from whom: all from the best of the wrong labels, or the same from each.
        None is two classes or, if the first call shows or names more, "runner-up".
    {average} {budget} {offset} {class_weight} {scale} {encode} {epochs}

    {Attributes} {Notes} {References}

    Examples
    --------
    >>> from onlinekernels import Perceptron
    >>> Perceptron("linear").fit([[1.0], [-2.0]], [1, -1]).coef_
    array([[1.]])
    >>> model = Perceptron("linear", update="uniform").fit([[1.0], [2.0], [-2.0]], ["a", "b", "c"])
    >>> model.coef_
    array([[ 0.],
           [ 2.],
           [-2.]])
    """

    _rule = Gradient
    _takes_many = True

    kernel: KernelLike | None = None
    _: KW_ONLY
    update: str | None = None
    average: bool = False
    budget: Budget | int | None = None
    offset: bool | None = None
    class_weight: ClassWeight | None = None
    scale: bool | RunningScaler = False
    encode: bool | RunningEncoder = False
    epochs: int = 1

    @property
    def loss(self) -> Any:
        """The hinge with a margin that only a mistake falls short of; for shared updates, the mistake itself."""
        return Hinge(margin=0.0) if self.update is None else self._loss_of_many()

    def _loss_of_many(self):
        if self.update == "uniform":
            return Mistake()
        # The hinge of many classes moves only for a positive loss, and a tie must count.
        return MulticlassHinge(margin=TIE)

    def _plan(self):
        fitted = self._state is not None and self._state.loss.task == "multiclass"
        return self._plan_for(self._loss_of_many() if fitted else self.loss)

    def _first_plan(self, X, y, classes):
        if self.update is None and count_labels(y if classes is None else classes) > 2:
            return self._plan_for(self._loss_of_many())
        return self._plan_for(self.loss)

    def _plan_for(self, loss):
        if self.update not in (None, "runner-up", "uniform"):
            raise bad_parameter(self, "update", '"runner-up", "uniform" or None', self.update)
        return Plan.of(self, Gradient(Fixed(1.0)), loss=loss)
