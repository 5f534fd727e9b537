"""Losses of two classes, where y is -1 or +1, and of novelty detection, which has no y."""
from dataclasses import dataclass

from onlinekernels.losses.base import Loss, NuMargin, WithMargin

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


class NuHinge(NuMargin):
    """max(0, rho - y f) - nu rho with the margin rho adapted, K (19).

    A fraction nu of the examples comes to lie within the margin. K prints rho + eta (sigma - nu), which runs away; rho
    moves by -eta (sigma - nu) here, where eta is the step and sigma is 1 for a margin error and 0 otherwise.

    Parameters
    ----------
    {nu}
        It should be above the fraction of examples that cannot be told apart: below that, no margin is left.
    {margin} {margin_step}

    References
    ----------
    {K}
    """

    task = "binary"


class Logistic(Loss):
    """log(1 + exp(-y f)), V (18); expit(f) is the probability of the second class.

    References
    ----------
    {V}

    Examples
    --------
    >>> round(Logistic().value(0.0, 1), 4)
    0.6931
    """

    task = "binary"
    probabilistic = True


class Novelty(WithMargin):
    """max(0, margin - f), V (23): an example with f < margin is novel (K III-B).

    Parameters
    ----------
    {margin}

    References
    ----------
    {K} {V}

    Examples
    --------
    >>> Novelty(margin=1.0).value([0.25, 1.5]).tolist()
    [0.75, 0.0]
    """

    task = "novelty"


@dataclass(eq=False, repr=False)
class NuNovelty(NuMargin):
    """max(0, rho - f) - nu rho: rho adapts so that a fraction nu of the examples alerts, K (20).

    K prints the update of rho with the wrong sign; see the page on errata.

    Parameters
    ----------
    {nu} {margin} {margin_step}
        With a number, `fit`, which knows all rows, in the end puts rho where a fraction nu of them is below it.

    References
    ----------
    {K}
    """

    nu: float = 0.01

    task = "novelty"
