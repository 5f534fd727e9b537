"""What a budget costs."""
from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlinekernels.bounds.checks import check_step, checked

if TYPE_CHECKING:
    from onlinekernels.annotations import Any, ArrayLike


@checked
def norm_limit(*, regularization: float, radius: float, lipschitz: float = 1.0) -> Any:
    """U = c X / lambda, K (34), and before (17) for the hinge: no hypothesis of NORMA, and no best function, has a larger norm.

    For ILK, c is the penalty C times the largest |l'|.

    >>> norm_limit(regularization=0.1, radius=1.0)
    10.0
    """
    return lipschitz * radius / regularization


@checked
def truncation_error(*, window: int, step: float, regularization: float, radius: float, lipschitz: float = 1.0) -> Any:
    """Bound on |f - f_trunc|, K Prop. 1, for NORMA with a fixed step: (1 - eta lambda)^tau c X / lambda.

    f_trunc is f without the terms older than the `window` (tau) latest examples, *with the same
    coefficients*. Two runs, one with `Window(tau)` and one without, may differ by more.

    >>> round(truncation_error(window=100, step=0.5, regularization=0.1, radius=1.0), 3)
    0.059
    """
    check_step("truncation_error", step, regularization)
    return (1 - step * regularization) ** window * lipschitz * radius / regularization


@checked
def truncation_error_of_steps(*, steps: ArrayLike, regularization: float, radius: float, lipschitz: float = 1.0) -> Any:
    """Bound on |f - f_trunc| for NORMA with steps that change: prod (1 - eta_j lambda) c X / lambda over the window.

    `steps` are those of the latest examples, which f_trunc keeps; as in `truncation_error`, *with the same
    coefficients*. Whatever the steps before them, their terms together are no longer than c X / lambda when the window
    begins, and from then on they shrink with every step.

    >>> round(truncation_error_of_steps(steps=[0.5] * 100, regularization=0.1, radius=1.0), 3)
    0.059
    >>> steps = [1 / t ** 0.5 for t in range(901, 1001)]
    >>> round(truncation_error_of_steps(steps=steps, regularization=0.5, radius=1.0), 3)
    0.39
    """
    steps = np.asarray(steps, dtype=float)
    check_step("truncation_error_of_steps", float(steps.max()), regularization)
    return float(np.prod(1 - steps * regularization)) * lipschitz * radius / regularization


@checked
def implicit_truncation_error(*, terms: int, step: float, regularization: float, radius: float, penalty: float = 1.0,
                              lipschitz: float = 1.0) -> Any:
    """Bound on |f - f_trunc| for ILK with a fixed step: (1 - tau)^omega C X / lambda.

    1 - tau = 1 / (1 + eta lambda), and f_trunc is f with its `terms` (omega) largest coefficients or its
    omega most recent ones, *the same coefficients* in both. A run of SILK may differ by more. There is no
    bound on the regret of SILK: the one that I prints after Thm 3 does not know omega, and a buffer of one
    term on orthogonal examples breaks it.

    >>> round(implicit_truncation_error(terms=100, step=0.5, regularization=0.1, radius=1.0), 3)
    0.076
    """
    return (1 + step * regularization) ** -float(terms) * penalty * lipschitz * radius / regularization
