"""Losses of regression: y is a number."""
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from onlinekernels.losses.base import Loss, NuWidth, WithWidth
from onlinekernels.base.validation import check_fraction, check_positive

if TYPE_CHECKING:
    from onlinekernels.annotations import Any

__all__ = ["Squared", "Absolute", "Quantile", "Insensitive", "NuInsensitive", "SquaredInsensitive", "Huber", "NuHuber"]


class Squared(Loss):
    """1/2 (y - f)^2, K (21).

    References
    ----------
    {K}

    Examples
    --------
    >>> Squared().value([0.0, 2.0], 1.0).tolist()
    [0.5, 0.5]
    """


class Absolute(Loss):
    """|y - f|, K II.

    References
    ----------
    {K}

    Examples
    --------
    >>> Absolute().value([0.0, 3.0], 1.0).tolist()
    [1.0, 2.0]
    """


@dataclass(eq=False, repr=False)
class Quantile(Loss):
    """The pinball loss, level (y - f) below y and (1 - level) (f - y) above: f becomes that quantile of y.

    The derivative is 0 where f = y. The level 0.5, the median, is half of `Absolute`.

    Parameters
    ----------
    level : float
        The fraction of the y that should lie below f, in (0, 1).

    Examples
    --------
    >>> Quantile(level=0.75).value([0.0, 3.0], 1.0).tolist()
    [0.75, 0.5]
    >>> Quantile(level=0.75).derivative([0.0, 1.0, 3.0], 1.0).tolist()
    [-0.75, 0.0, 0.25]
    """

    level: float = 0.5

    _values = {"level": check_fraction}

    def core(self) -> Any:
        return self._code(), float(self.level), 0.0, 0.0


class Insensitive(WithWidth):
    """max(0, |y - f| - width), K III-C with a width that stays.

    Parameters
    ----------
    {width}

    References
    ----------
    {K}

    Examples
    --------
    >>> Insensitive(width=0.5).value([0.75, 3.0], 1.0).tolist()
    [0.0, 1.5]
    """


class NuInsensitive(NuWidth):
    """max(0, |y - f| - epsilon) + nu epsilon with epsilon adapted, K (22).

    A fraction nu of the examples comes to lie outside the tube.

    Parameters
    ----------
    {nu}
    width : float
        Where epsilon starts; at least 0.
    {margin_step}

    References
    ----------
    {K}
    """



class SquaredInsensitive(WithWidth):
    """max(0, |y - f| - width)^2, H (6), without a factor 1/2.

    Parameters
    ----------
    {width}

    References
    ----------
    {H}

    Examples
    --------
    >>> SquaredInsensitive(width=0.5).value([0.75, 3.0], 1.0).tolist()
    [0.0, 2.25]
    """


@dataclass(eq=False, repr=False)
class Huber(WithWidth):
    """|y - f| - width/2 outside, (y - f)^2 / (2 width) inside, K (23).

    Parameters
    ----------
    width : float
        sigma, the error up to which the loss is quadratic; positive.

    References
    ----------
    {K}

    Examples
    --------
    >>> Huber(width=1.0).value([0.5, 3.0], 1.0).tolist()
    [0.125, 1.5]
    """

    width: float = 1.0

    _values = {"width": check_positive}


class NuHuber(NuWidth):
    """Huber's loss with sigma adapted so that a fraction nu lies outside (K III-C).

    sigma moves by +eta (1 - nu) outside and -eta nu inside, where eta is the step, and stays positive. That is a
    quantile rule, not the gradient of a loss; `value` is Huber's loss at the current width.

    Parameters
    ----------
    {nu}
    width : float
        Where sigma starts; positive.
    {margin_step}

    References
    ----------
    {K}
    """

    _values = {**NuWidth._values, "width": check_positive}
