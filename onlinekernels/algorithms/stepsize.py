"""SVMD: explicit gradient steps whose size adapts itself (V)."""
from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING

from onlinekernels.algorithms.norma import Gradient
from onlinekernels.base.estimator import FunctionEstimator
from onlinekernels.base.plan import Plan
from onlinekernels.steps import MetaDescent, check_one_step
from onlinekernels.base.validation import check_flag, check_memory, check_not_negative, check_positive

if TYPE_CHECKING:
    from onlinekernels.annotations import (
        Budget, ClassWeight, KernelLike, LabelStructure, Loss, RunningEncoder, RunningScaler,
    )


@dataclass(eq=False, repr=False)
class SVMD(FunctionEstimator):
    """Step-size adaptation in a Hilbert space, V Algorithm 2.

    It is `NORMA` with ``step=MetaDescent(step, meta_step, memory)``: the step grows while successive
    gradients agree and shrinks when they do not. Offsets and the margin of a nu-loss have steps of their
    own. A nu-loss without a `margin_step` adapts the logarithm of its margin here, so the margin stays positive.

    Parameters
    ----------
    {loss} {kernel}
    step : float
        eta_0, the first step; positive.
    meta_step : float
        mu, how fast the step adapts; at least 0.
    memory : float
        lambda of V (34), in [0, 1]: how long the trace v remembers; 0 looks one step back only.
    offset_step : MetaDescent or None
        eta_b at the beginning, mu_b and lambda_b: the offsets' own, V (50)-(52). None is that of f.
    margin_step : MetaDescent or None
        eta_eps at the beginning, mu_eps and lambda_eps: those of the margin's or width's logarithm, V (55)-(58), for a
        nu-loss whose own `margin_step` is None. None is that of f, but with the first step 1, as in V.
    regularization : float
        c of V, lambda elsewhere: how fast old coefficients decay; at least 0. step * regularization must not exceed 1;
        an adapted step is capped there.
    exact_norms : bool
        False is the paper: <f, v> and |f|^2 as if no term had ever been dropped. True corrects them
        at each drop, for the price of one more kernel row.
    budget : Budget, int, None or "auto"
        Which terms stay; an integer means `Recent`, None all of them. "auto" is 512 terms on a stream and 4096 in
        `fit`; with a linear kernel it is None, for weights.
    {offset} {labels} {class_weight} {scale} {scale_target} {encode} {epochs}

    {Attributes} {Notes} {References}

    Examples
    --------
    >>> import numpy as np
    >>> from onlinekernels import SVMD, Gaussian
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> y = np.where(X[:, 0] > 0, "right", "left")
    >>> model = SVMD("hinge", Gaussian(1.0), step=0.01)
    >>> scores, steps = model.progressive(X, y, return_steps=True)
    >>> bool(steps[-1] > 0.05)          # a first step that was too small has grown
    True
    """

    _rule = Gradient

    loss: Loss | str | None = None
    kernel: KernelLike | None = None
    _: KW_ONLY
    step: float = 0.1
    meta_step: float = 0.1
    memory: float = 0.99
    offset_step: MetaDescent | None = None
    margin_step: MetaDescent | None = None
    regularization: float = 1e-3
    exact_norms: bool = False
    budget: Budget | int | str | None = "auto"
    offset: bool | None = None
    labels: LabelStructure | None = None
    class_weight: ClassWeight | None = None
    scale: bool | RunningScaler = False
    scale_target: bool | str | RunningScaler = False
    encode: bool | RunningEncoder = False
    epochs: int = 1

    def _plan(self):
        step = MetaDescent(
            check_positive(self, "step"), check_not_negative(self, "meta_step"), check_memory(self, "memory"),
            offset_step=check_one_step(self, "offset_step"), margin_step=check_one_step(self, "margin_step"),
        )
        rule = Gradient(step, check_not_negative(self, "regularization"), check_flag(self, "exact_norms"))
        return Plan.of(self, rule)
