"""Kernels with a formula of their own, which the core has compiled."""
from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlinekernels.kernels.algebra import Kernel, Valued
from onlinekernels.base.validation import check_integer, check_not_negative, check_positive

if TYPE_CHECKING:
    from onlinekernels.annotations import Any

__all__ = [
    "Linear",
    "Gaussian",
    "Polynomial",
    "Laplacian",
    "Noise",
]


class Linear(Kernel):
    """<x, z>.

    With an unlimited budget a model keeps its weight vector instead of terms: O(features) per step.

    Examples
    --------
    >>> Linear()([[1.0, 2.0]], [[3.0, 4.0]])
    array([[11.]])
    """

    def __init__(self) -> None:
        pass

    def ops(self) -> Any:
        return [{"op": "linear"}]

    def linear_scale(self) -> Any:
        return 1.0

    def features(self) -> Any:
        return [{"map": "linear", "scale": 1.0}]


class Gaussian(Kernel):
    """exp(-|x - z|^2 / (2 width^2)), V (60).

    Distances come from inner products taken about an origin, so that a large offset in the data
    costs no digits; k(x, x) is exactly 1.

    Parameters
    ----------
    width : float
        The distance at which examples cease to resemble each other, sigma of V; positive.

    References
    ----------
    {V}

    Examples
    --------
    >>> Gaussian(width=1.0)([[0.0], [1e6]], [[0.0], [1e6 + 1]]).round(4)
    array([[1.    , 0.    ],
           [0.    , 0.6065]])
    """

    _values = {"width": check_positive}

    def __init__(self, width: float = 1.0) -> None:
        self.width = width

    def ops(self) -> Any:
        # Below a width of 1e-150 all examples but equal ones are far apart; the limit keeps 0 * a at 0.
        rate = 0.5 / float(self.width) / float(self.width)
        return [{"op": "gaussian", "a": min(rate, 1e300)}]


class Polynomial(Kernel):
    """(scale <x, z> + bias)^degree, V (61).

    Parameters
    ----------
    degree : int
        From 1 to 1000.
    scale : float
        Factor of the inner product; positive.
    bias : float
        What is added to it; at least 0.

    References
    ----------
    {V}

    Examples
    --------
    >>> Polynomial(degree=2)([[1.0, 2.0]], [[3.0, 4.0]])
    array([[144.]])
    """

    _values = {
        "degree": lambda kernel, name: check_integer(kernel, name, 1, 1000),
        "scale": check_positive,
        "bias": check_not_negative,
    }

    def __init__(self, degree: int = 3, scale: float = 1.0, bias: float = 1.0) -> None:
        self.degree = degree
        self.scale = scale
        self.bias = bias

    def ops(self) -> Any:
        return [{"op": "linear", "a": float(self.scale), "b": float(self.bias), "degree": int(self.degree)}]


class Laplacian(Kernel):
    """exp(-rate |x - z|_1), with the sum of the coordinates' distances.

    Parameters
    ----------
    rate : float
        How fast k(x, z) falls with the distance; positive.

    Examples
    --------
    >>> Laplacian(rate=2.0)([[0.0, 0.0]], [[0.0, 0.0], [1.0, 1.0]]).round(4)
    array([[1.    , 0.0183]])
    """

    _values = {"rate": check_positive}

    def __init__(self, rate: float = 1.0) -> None:
        self.rate = rate

    def ops(self) -> Any:
        return [{"op": "laplacian", "a": float(self.rate)}]


class Noise(Valued):
    """`value` if x and z are the same example, else 0 (H cites it for noise tolerance).

    Identity, not equality, decides: a later example with the same features is another example. So
    ``kernel(X)`` is value times the identity matrix, and ``kernel(X, Z)`` is 0.

    Parameters
    ----------
    {value}

    References
    ----------
    {H}

    Examples
    --------
    >>> Noise(0.5)([[1.0], [1.0]])
    array([[0.5, 0. ],
           [0. , 0.5]])
    """

    _op = "noise"

    def row(self, x: Any, points: Any) -> Any:
        return np.zeros(len(points))
