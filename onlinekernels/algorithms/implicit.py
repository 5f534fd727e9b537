"""Implicit updates: ILK and SILK (I)."""
from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING

import numpy as np

from onlinekernels._core import metadescent, rules
from onlinekernels.base import defaults
from onlinekernels.base.estimator import FunctionEstimator
from onlinekernels.base.plan import Rule, check_step
from onlinekernels.base.validation import check_flag, check_not_negative, check_positive
from onlinekernels.budgets import Smallest
from onlinekernels.labels import Labels
from onlinekernels.losses import MulticlassSquared

if TYPE_CHECKING:
    from onlinekernels.annotations import (
        Budget, ClassWeight, KernelLike, LabelStructure, Loss, RunningEncoder, RunningScaler, Step,
    )


@dataclass(eq=False, repr=False)
class Implicit(Rule):
    """f <- argmin 1/2 |f - f_t|^2 + eta (lambda/2 |f|^2 + C L(f)); the step may adapt itself (`MetaDescent`)."""

    _values = {"step": lambda owner, name: None if owner.step is None else check_step(owner, name),
               "regularization": check_not_negative.or_none, "penalty": check_positive, "exact": check_flag}
    forms = frozenset({"one", "pair", "dense", "targets"})
    step_name = "implicit"
    solves_losses = True
    may_change = frozenset({"step", "regularization", "penalty"})

    step: Step | None = None  # eta; None leaves it to the call
    regularization: float | None = None  # lambda; None leaves it to the call
    penalty: float = 1.0  # C
    exact: bool = False  # the arg-min over all labels, not the runner-up alone

    @property
    def is_open(self):
        return self.step is None or self.regularization is None

    def resolved(self, loss, data, kernel):
        step = defaults.step(loss, data, kernel) if self.step is None else self.step
        regularization = self.regularization
        if regularization is None:
            regularization = defaults.regularization(loss, data, kernel)
        return Implicit(step, regularization, self.penalty, self.exact)

    @property
    def over_all_labels(self):
        return self.exact

    def check(self, plan):
        loss = plan.loss
        if self.adapts_step:
            self._check_adapted(loss)
        super().check(plan)
        if self.adapts_step and loss.over_all_labels and plan.label_kernel is not None:
            raise ValueError(f"step=MetaDescent adapts implicit steps of {loss!r} with the delta kernel between "
                             f"labels. Got {plan.label_kernel!r}.")
        if self.exact and not loss.over_all_labels and not plan.offset and isinstance(plan.label_kernel, Labels):
            least, *_, largest = np.linalg.eigvalsh(plan.label_kernel.kernels())
            if least < 1e-4 * largest:
                raise ValueError(f"The exact step of {loss!r} needs a kernel between labels that is positive "
                                 f"definite. Got one whose eigenvalues are from {max(0.0, least):.2g} to "
                                 f"{largest:.2g}.")

    def _check_adapted(self, loss):
        if self.exact and loss.task == "multiclass" and not loss.over_all_labels:
            raise ValueError("step=MetaDescent needs exact=False here: the exact step over all labels has no trace.")
        if isinstance(loss, MulticlassSquared) or not loss.is_compiled():
            raise ValueError(f"step=MetaDescent does not adapt implicit steps of {loss!r}; it does with NORMA.")
        if self.step.offset_step is not None:
            raise ValueError("offset_step of MetaDescent is for explicit steps: in an implicit step, offsets share "
                             "the step of f. Leave it at None.")

    @property
    def core_class(self):
        """Another rule if the step adapts."""
        return metadescent.AdaptiveImplicit if self.adapts_step else rules.Implicit

    def settings(self):
        return {**super().settings(), "regularization": self.regularization, "penalty": self.penalty}


@dataclass(eq=False, repr=False)
class ILK(FunctionEstimator):
    """Implicit online learning with kernels, I (8).

    Each step minimizes, over all functions, the distance to the old one plus the regularized loss of
    the example, evaluated at the *new* function::

        f <- argmin 1/2 |f - f_t|^2 + eta_t (lambda/2 |f|^2 + C L(f(x_t), y_t))

    The solution shrinks the old coefficients by 1 - tau_t = 1 / (1 + eta_t lambda) and appends one term,
    whose coefficient the loss decides: in closed form, or by a bracketed iteration for the logistic
    losses and those of your own. A step can never overshoot, so large steps are safe.

    Parameters
    ----------
    {loss}
        One of your own may have any convex shape: the coefficient is found by its `derivative`, faster with a
        `curvature`.
    {kernel}
    step : float, Step or None
        eta_t: how far an example moves f; a number means `Fixed`, and `MetaDescent` adapts it. None is 1 on a stream,
        and ``InverseSqrt(5.0)`` in `fit`, which means a world that stands still.
    regularization : float or None
        lambda: how fast old coefficients decay; at least 0. None is 3e-3 for classes and 1e-3 for numbers on a stream,
        1 / rows in `fit`, and nu / 200 for `NuNovelty`.
    penalty : float
        C: how much a loss counts against staying where f is; positive. It caps the coefficients of the hinges.
    exact : bool
        For the hinges of many classes. False is the paper's step, I (17)-(18), which looks at the best
        runner-up only; True is the arg-min over all labels.
    {average} {budget}
    offset : bool or None
        Learn offsets b as further coordinates of the same arg-min, without regularization. None decides by the kernel:
        True for a linear one on dense rows, which otherwise goes through 0. `has_offset_` is what was decided.
    {labels} {class_weight} {scale} {scale_target} {encode} {epochs}

    {Attributes} {Notes} {References}

    Examples
    --------
    >>> from onlinekernels import ILK
    >>> model = ILK("squared", "linear", step=1.0, regularization=0.0, offset=False).fit([[2.0]], [1.0])
    >>> model.coef_                     # I (13): C y / (1 + C k(x, x)) times x
    array([[0.4]])
    """

    _rule = Implicit

    loss: Loss | str | None = None
    kernel: KernelLike | None = None
    _: KW_ONLY
    step: float | Step | None = None
    regularization: float | None = None
    penalty: float = 1.0
    exact: bool = False
    average: bool = False
    budget: Budget | int | None = None
    offset: bool | None = None
    labels: LabelStructure | None = None
    class_weight: ClassWeight | None = None
    scale: bool | RunningScaler = False
    scale_target: bool | str | RunningScaler = False
    encode: bool | RunningEncoder = False
    epochs: int = 1


class SILK(ILK):
    """Sparse implicit online learning with kernels: the terms with the largest coefficients stay (I 2.1).

    It is `ILK` with a budget. Each step minimizes, over all functions, the distance to the old one plus the regularized
    loss of the example, evaluated at the *new* function::

        f <- argmin 1/2 |f - f_t|^2 + eta_t (lambda/2 |f|^2 + C L(f(x_t), y_t))

    The defaults are for features in comparable units, as behind a running scaler, ``scale=True``. A world that changes
    fast wants more regularization.

    Parameters
    ----------
    {loss} {kernel} {step} {regularization} {penalty} {exact}
    budget : Budget, int, None or "auto"
        Which terms stay; an integer means `Smallest`, None all of them. "auto" is 512 terms on a stream and 4096 in
        `fit`; with a linear kernel it is None, for weights.
    {offset} {labels} {class_weight} {scale} {scale_target} {encode} {epochs}

    {Attributes} {Notes} {References}

    Examples
    --------
    >>> import numpy as np
    >>> from onlinekernels import SILK, Gaussian
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> y = np.where(X[:, 0] > 0, "right", "left")
    >>> model = SILK("hinge", Gaussian(1.0), budget=60).fit(X, y)
    >>> model.n_terms_, bool(model.score(X, y) > 0.9)
    (60, True)
    """

    _budget_of_int = Smallest
    average = False  # that of terms which were dropped cannot be kept

    def __init__(self, loss: Loss | str | None = None, kernel: KernelLike | None = None, *,
                 step: float | Step | None = None, regularization: float | None = None, penalty: float = 1.0,
                 exact: bool = False, budget: Budget | int | str | None = "auto", offset: bool | None = None,
                 labels: LabelStructure | None = None, class_weight: ClassWeight | None = None,
                 scale: bool | RunningScaler = False, scale_target: bool | str | RunningScaler = False,
                 encode: bool | RunningEncoder = False, epochs: int = 1) -> None:
        super().__init__(loss, kernel, step=step, regularization=regularization, penalty=penalty, exact=exact,
                         budget=budget,  # type: ignore[arg-type]
                         offset=offset, labels=labels, class_weight=class_weight, scale=scale,
                         scale_target=scale_target, encode=encode, epochs=epochs)
