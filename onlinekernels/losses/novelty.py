"""Losses of novelty detection: no y, and f should be large where examples are."""
from __future__ import annotations

from typing import TYPE_CHECKING

from onlinekernels.losses.base import NU_VALUES, WithMargin
from onlinekernels.base.validation import check_finite

if TYPE_CHECKING:
    from onlinekernels.annotations import Any

__all__ = ["Novelty", "NuNovelty"]


class Novelty(WithMargin):
    """max(0, margin - f): an example with f < margin is novel (K III-B).

    Parameters
    ----------
    {margin}

    References
    ----------
    {K}

    Examples
    --------
    >>> Novelty(margin=1.0).value([0.25, 1.5]).tolist()
    [0.75, 0.0]
    """

    task = "novelty"

    def __init__(self, margin: float = 1.0) -> None:
        self.margin = margin


class NuNovelty(WithMargin):
    """max(0, rho - f) - nu rho: rho adapts so that a fraction nu of the examples alerts, K (20).

    The default `margin_step` is not the papers' rule: rho then has a step of its own, relative to its distance from what is
    held against it, and stays positive. ``margin_step=None`` is the papers': rho shares the step of f, and may outrun it.

    K prints the update of rho with the wrong sign; see the page on errata.

    Parameters
    ----------
    {nu}
    margin : float
        Where rho starts.
    {margin_step}
        With a number, `fit`, which knows all rows, in the end puts rho where a fraction nu of them is below it.

    References
    ----------
    {K}
    """

    task = "novelty"
    adapts = True
    _values = {**NU_VALUES, "margin": check_finite}

    def __init__(self, nu: float = 0.01, margin: float = 1.0, margin_step: Any = 0.1) -> None:
        self.nu = nu
        self.margin = margin
        self.margin_step = margin_step
