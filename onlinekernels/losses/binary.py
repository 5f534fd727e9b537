"""Losses of two classes, where y is -1 or +1, and of novelty detection, which has no y."""
from __future__ import annotations

from typing import TYPE_CHECKING

from onlinekernels.base.validation import check_finite
from onlinekernels.losses.base import NU_VALUES, Loss, WithMargin

if TYPE_CHECKING:
    from onlinekernels.annotations import Any

__all__ = ["Hinge", "NuHinge", "Logistic", "Novelty", "NuNovelty"]


class Hinge(WithMargin):
    """Soft margin loss max(0, margin - y f), K (13).

    Parameters
    ----------
    {margin}

    References
    ----------
    {K}

    Examples
    --------
    >>> Hinge().value([2.0, 0.5, -1.0], 1).tolist()
    [0.0, 0.5, 2.0]
    >>> Hinge().derivative([2.0, 1.0, 0.0], 1).tolist()
    [0.0, -1.0, -1.0]
    """

    task = "binary"

    def __init__(self, margin: float = 1.0) -> None:
        self.margin = margin


class NuHinge(WithMargin):
    """max(0, rho - y f) - nu rho with the margin rho adapted, K (19).

    The default `margin_step` is not the papers' rule: rho then has a step of its own, relative to its distance from
    what is held against it, and stays positive. ``margin_step=None`` is the papers': rho shares the step of f, and may
    outrun it.

    A fraction nu of the examples comes to lie within the margin.
    K prints rho + eta (sigma - nu), which runs away; rho moves by -eta (sigma - nu) here, where eta is the step and
    sigma is 1 for a margin error and 0 otherwise.

    Parameters
    ----------
    {nu}
        It should be above the fraction of examples that cannot be told apart: below that, no margin is left.
    margin : float
        Where rho starts.
    {margin_step}

    References
    ----------
    {K}
    """

    task = "binary"
    adapts = True
    _values = {**NU_VALUES, "margin": check_finite}

    def __init__(self, nu: float = 0.3, margin: float = 1.0, margin_step: Any = 0.1) -> None:
        self.nu = nu
        self.margin = margin
        self.margin_step = margin_step


class Logistic(Loss):
    """log(1 + exp(-y f)); expit(f) is the probability of the second class.

    Examples
    --------
    >>> round(Logistic().value(0.0, 1), 4)
    0.6931
    """

    task = "binary"
    probabilistic = True

    def __init__(self) -> None:
        pass


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

    The default `margin_step` is not the papers' rule: rho then has a step of its own, relative to its distance from
    what is held against it, and stays positive. ``margin_step=None`` is the papers': rho shares the step of f, and may
    outrun it.

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
