"""Elementary kernels, those made of another kernel, and all of them by name."""
from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from onlinekernels.base.validation import (
    bad_parameter, check_integer, check_not_negative, check_positive, refuse_masked,
)
from onlinekernels.kernels.base import Constant, Custom, Kernel, Valued

if TYPE_CHECKING:
    from onlinekernels.annotations import Any, Examples, KernelLike

__all__ = ["Linear", "Gaussian", "Polynomial", "Laplacian", "Noise", "Normalized", "Precomputed", "rbf", "poly"]


class Linear(Kernel):
    """<x, z>.

    With an unlimited budget a model keeps its weight vector instead of terms: O(features) per step.

    Examples
    --------
    >>> Linear()([[1.0, 2.0]], [[3.0, 4.0]])
    array([[11.]])
    """

    def ops(self) -> Any:
        return [{"op": "linear"}]

    def linear_scale(self) -> Any:
        return 1.0

    def features(self) -> Any:
        return [{"map": "linear", "scale": 1.0}]


@dataclass(eq=False, repr=False)
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

    width: float = 1.0

    _values = {"width": check_positive}

    def ops(self) -> Any:
        # Below a width of 1e-150 all examples but equal ones are far apart; the limit keeps 0 * a at 0.
        rate = 0.5 / float(self.width) / float(self.width)
        return [{"op": "gaussian", "a": min(rate, 1e300)}]


@dataclass(eq=False, repr=False)
class Polynomial(Kernel):
    """(scale <x, z> + bias)^degree, V 6.3.

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

    degree: int = 3
    scale: float = 1.0
    bias: float = 1.0

    _values = {"degree": lambda kernel, name: check_integer(kernel, name, 1, 1000), "scale": check_positive,
               "bias": check_not_negative}

    def ops(self) -> Any:
        return [{"op": "linear", "a": float(self.scale), "b": float(self.bias), "degree": int(self.degree)}]


@dataclass(eq=False, repr=False)
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

    rate: float = 1.0

    _values = {"rate": check_positive}

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

    def coordinate(self, j: int, n: int = 1) -> Any:
        return Constant(0.0)  # no coordinate tells examples apart

    def row(self, x: Any, points: Any) -> Any:
        return np.zeros(len(points))


@dataclass(eq=False, repr=False)
class Normalized(Kernel):
    """k(x, z) / sqrt(k(x, x) k(z, z)), and 0 where k(x, x) or k(z, z) is 0.

    Parameters
    ----------
    kernel : Kernel, str or callable
        k: a kernel, its name, or any callable k(x, z).

    Examples
    --------
    >>> from onlinekernels import Polynomial
    >>> Normalized(Polynomial(2))([[1.0]], [[1.0], [-1.0], [3.0]]).round(3)
    array([[1. , 0. , 0.8]])
    """

    kernel: KernelLike

    def validate(self) -> None:
        if self.kernel is None:
            raise bad_parameter(self, "kernel", "a kernel, its name or a callable", None)
        self._inner()

    def _inner(self):
        return as_kernel(self.kernel, self)

    def ops(self) -> Any:
        ops = self._inner().ops()
        return None if ops is None else [*ops, {"op": "normalize"}]

    def parts(self) -> Any:
        return (self._inner(),)

    def features(self) -> Any:
        parts = self._inner().features()
        return None if parts is None else [{"map": "normalized", "parts": parts, "scale": 1.0}]

    def _gram_of_maps(self, X, Z):
        inner = self._inner()
        sizes = np.sqrt(np.outer(inner.diagonal(X), inner.diagonal(X if Z is None else Z)))
        return np.divide(inner(X, Z), sizes, out=np.zeros_like(sizes), where=sizes > 0)

    def _diagonal_of_maps(self, X):
        return (self._inner().diagonal(X) > 0).astype(float)

    def row(self, x: Any, points: Any) -> Any:
        inner = self._inner()
        sizes = inner.self_value(x) * np.array([inner.self_value(z) for z in points], dtype=float)
        values = np.asarray(inner.row(x, points), dtype=float)
        return np.where(sizes > 0, values / np.sqrt(np.where(sizes > 0, sizes, 1.0)), 0.0)

    def self_value(self, x: Any) -> Any:
        return 1.0 if self._inner().self_value(x) > 0 else 0.0


@dataclass(eq=False, repr=False)
class Precomputed(Kernel):
    """Entries of a Gram matrix: X is a column of indices into it.

    Parameters
    ----------
    gram : array of shape (n, n)
        Symmetric, of finite numbers. It must be given: None is not a matrix.

    Examples
    --------
    >>> gram = np.array([[1.0, 0.5], [0.5, 1.0]])
    >>> Precomputed(gram)([[0]], [[1]])
    array([[0.5]])
    """

    gram: Any = None

    def validate(self) -> None:
        refuse_masked(self.gram, "gram")
        gram: Any = np.asarray(self.gram) if self.gram is not None else np.empty(0)
        if gram.ndim != 2 or gram.shape[0] != gram.shape[1] or gram.size == 0 or gram.dtype.kind not in "fiu":
            shape = None if self.gram is None else gram.shape
            raise ValueError("The 'gram' parameter of Precomputed must be a square matrix of numbers. Got shape "
                             f"{shape} instead.")
        if not np.isfinite(gram).all():
            raise ValueError("The 'gram' parameter of Precomputed must hold finite numbers only.")
        if not np.allclose(gram, gram.T, rtol=1e-8, atol=1e-12):
            raise ValueError("The 'gram' parameter of Precomputed must be symmetric.")

    def ops(self) -> Any:
        return [{"op": "precomputed", "table": np.ascontiguousarray(self.gram, dtype=np.float64)}]

    def check_domain(self, X: Examples, name: str = "X") -> Any:
        """X must be one column of whole numbers in range(len(gram))."""
        if X.shape[1] != 1:
            raise ValueError(f"{name} must have one column, of indices into the Gram matrix. Got {X.shape[1]} columns.")
        bad = (X < 0) | (X >= len(self.gram)) | (X != np.floor(X))
        if bad.any():
            raise ValueError(f"{name} must hold whole numbers from 0 to {len(self.gram) - 1}, indices into the Gram "
                             f"matrix. Got {X[bad][0]}.")

    def restricts(self) -> Any:
        return True

    takes_indices = restricts


def rbf(gamma: Any = None) -> Any:
    """The Gaussian by scikit-learn's name and parameter: exp(-gamma |x-z|^2); None is `Gaussian()`.

    >>> rbf(gamma=0.125)
    Gaussian(width=2.0)
    """
    if gamma is None:
        return Gaussian()
    if not check_positive.accepts(gamma):
        raise bad_parameter("rbf", "gamma", "a positive number", gamma)
    return Gaussian(width=1.0 / math.sqrt(2.0 * float(gamma)))


def poly(degree: Any = 3, gamma: Any = 1.0, coef0: Any = 1.0) -> Any:
    """The polynomial kernel by scikit-learn's name and parameters: (gamma <x,z> + coef0)^degree.

    >>> poly(2, gamma=0.5)
    Polynomial(degree=2, scale=0.5)
    """
    return Polynomial(degree, scale=gamma, bias=coef0)


# By name those that need no other kernel, no matrix and no parameters, and "rbf" and "poly", as others call them.
KERNELS: dict[str, Any] = {
    name.lower(): globals()[name] for name in __all__ if name not in ("Normalized", "Precomputed")
}
KERNELS["constant"] = Constant


def as_kernel(value, owner, default=Gaussian):
    """A kernel from what a user may give: a kernel, its name, a callable, or None for the default."""
    if value is None:
        return default()
    if isinstance(value, str):
        name = value.lower().replace("-", "").replace("_", "")
        if name not in KERNELS:
            raise bad_parameter(owner, "kernel", f"a kernel or one of {', '.join(sorted(KERNELS))}", value)
        value = KERNELS[name]()
    elif not isinstance(value, Kernel) and callable(value) and not isinstance(value, type):
        return Custom(value)
    if not isinstance(value, Kernel):
        raise bad_parameter(owner, "kernel", "a kernel such as Gaussian(2.0), its name, a callable, or None", value)
    value.validate()
    return value
