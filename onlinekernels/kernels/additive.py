"""Additive models: f(x) = f_1(x_1) + ... + f_d(x_d), one smooth function per coordinate (H part 1).

A kernel that is a sum over coordinates makes such a model, whatever the algorithm. These ones are
separable to the left and to the right of their knot, so a balanced tree per coordinate evaluates f,
and adds a new term, in O(d log m) instead of O(d m).
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from onlinekernels.kernels.base import Kernel
from onlinekernels.kernels.elementary import KERNELS
from onlinekernels.base.validation import Real, bad_parameter, check_flag, check_integer, check_positive

if TYPE_CHECKING:
    from onlinekernels.annotations import Any, Callable, Examples, Sequence

__all__ = ["Additive", "AdditiveExponential", "AdditiveMatern", "AdditiveSpline"]


class _Additive(Kernel):
    """Base: sum_j K(x_j, z_j).

    Parameters
    ----------
    rate : float
        How fast K falls with the distance, sigma of H; positive.
    tree : bool
        Run on trees. With False the kernel is evaluated term by term, like any other.
    """

    bounds: Any = None
    tree: bool

    def _core(self):
        """K as the compiled core takes it."""
        raise NotImplementedError

    def ops(self) -> Any:
        return [{"op": "additive", "kernel": self._core(), "bounds": self.bounds}]

    def coordinate(self, j: int, n: int = 1) -> Any:
        return self

    def summands(self) -> Any:
        return [{"kernel": self._core(), "bounds": self.bounds, "scale": 1.0}] if self.tree else None


@dataclass(eq=False, repr=False)
class AdditiveSpline(_Additive):
    """Splines with infinitely many knots, summed over coordinates, H (2)::

        K(p, q) = sum_{r=0}^{z} C(z,r) min(p,q)^(2z-r+1) |q-p|^r / (2z-r+1)  +  sum_{r=0}^{z} p^r q^r

    With order z = 1 each f_j is a piecewise cubic polynomial (H prints 5/6 in (4); it is 1/6).

    Parameters
    ----------
    order : int
        z, from 0 (piecewise linear) to 31.
    bounds : (low, high) or None
        The kernel lives on (0, inf). Bounds map low to 0 and high to 1; values above high are fine. Numbers,
        or arrays with one entry per feature.
    {tree}

    References
    ----------
    {H}

    Examples
    --------
    >>> AdditiveSpline(order=1)([[1.0]], [[1.0], [2.0]])
    array([[2.33333333, 3.83333333]])
    >>> AdditiveSpline(order=1, bounds=(-5, 5))([[0.0, 1.0]], [[5.0, -5.0]]).round(4)
    array([[2.6042]])
    """

    order: int = 1
    bounds: tuple[float, float] | None = None
    tree: bool = True

    _values = {"order": lambda kernel, name: check_integer(kernel, name, 0, 31), "tree": check_flag}

    def validate(self) -> None:
        super().validate()
        if self.bounds is None:
            return
        try:
            low, high = (np.asarray(bound, dtype=float) for bound in self.bounds)
            fine = np.isfinite(low).all() and np.isfinite(high).all() and (low < high).all()
            fine = fine and low.ndim <= 1 and high.ndim <= 1
        except (TypeError, ValueError):
            fine = False
        if not fine:
            expected = "None or (low, high), numbers or arrays of one entry per feature, low < high"
            raise bad_parameter(self, "bounds", expected, self.bounds)

    def _core(self):
        return "spline", int(self.order)

    def coordinate(self, j: int, n: int = 1) -> Any:
        if self.bounds is None or all(np.ndim(bound) == 0 for bound in self.bounds):
            return self
        low, high = (bound if np.size(bound) == 1 else np.asarray(bound)[j] for bound in self.bounds)
        return AdditiveSpline(self.order, (low, high), self.tree)

    def check_domain(self, X: Examples, name: str = "X") -> Any:
        n_features = X.shape[1]
        if self.bounds is None:
            if (X <= 0).any():
                raise ValueError(f"{name} must be positive for AdditiveSpline, whose domain is (0, inf). Got "
                                 f"{X[X <= 0][0]:g}. Set bounds=(low, high) to map another range into it.")
            return
        for bound in self.bounds:
            if np.size(bound) not in (1, n_features):
                raise ValueError(f"bounds has {np.size(bound)} entries and {name} has {n_features} features; expected "
                                 "as many.")
        low = np.broadcast_to(np.asarray(self.bounds[0], dtype=float), n_features)
        if (X < low).any():
            row, column = np.argwhere(X < low)[0]
            raise ValueError(f"{name} must not be below the lower bound for AdditiveSpline. Got {X[row, column]:g} in "
                             f"column {column}, where bounds begins at {low[column]:g}. Set bounds=(low, high) to a "
                             "range of all values.")

    def restricts(self) -> Any:
        return True


@dataclass(eq=False, repr=False)
class AdditiveExponential(_Additive):
    """sum_j exp(-rate |x_j - z_j|): the continuous, rough kernel of H Fig. 1 (minus sign by erratum).

    Parameters
    ----------
    {rate} {tree}

    References
    ----------
    {H}

    Examples
    --------
    >>> AdditiveExponential(rate=1.0)([[0.0, 3.0]], [[1.0, 3.0]]).round(4)
    array([[1.3679]])
    """

    rate: float = 1.0
    tree: bool = True

    _values = {"rate": check_positive, "tree": check_flag}

    def _core(self):
        return "exponential", float(self.rate)


@dataclass(eq=False, repr=False)
class AdditiveMatern(_Additive):
    """sum_j of (1 + r) exp(-r), or (1 + r + r^2/3) exp(-r) for smoothness 2.5; r = rate |x_j - z_j|.

    Parameters
    ----------
    {rate}
    smoothness : float
        1.5 or 2.5: f_j has one continuous derivative, or two.
    {tree}

    Examples
    --------
    >>> AdditiveMatern(rate=1.0)([[0.0]], [[1.0]]).round(4)
    array([[0.7358]])
    """

    rate: float = 1.0
    smoothness: float = 1.5
    tree: bool = True

    _values = {"rate": check_positive,
               "smoothness": Real("1.5 or 2.5", lambda value: value in (1.5, 2.5)),
               "tree": check_flag}

    def _core(self):
        return "matern", float(self.rate), float(self.smoothness)


def _check_functions(kernel, name):
    functions = getattr(kernel, name)
    fine = isinstance(functions, (list, tuple)) and 1 <= len(functions) <= 32 and all(map(callable, functions))
    if not fine:
        raise bad_parameter(kernel, name, "a list of 1 to 32 functions of an array", functions)


@dataclass(eq=False, repr=False)
class Additive(_Additive):
    """A kernel of your own, summed over coordinates, from its left and right functions (H section 1)::

        K(p, q) = sum_i left_i(p) right_i(q)    for p <= q, and K(q, p) = K(p, q)

    Without a budget it runs on trees, like the other additive kernels. With one, and with ``tree=False``, it is
    evaluated term by term in Python, which is slow. The trees add up values of the functions, so these should be of
    moderate size where your data are.

    Parameters
    ----------
    left : list of functions
        Of the smaller number. Each takes an array of numbers and gives as many, or one for all.
    right : list of functions
        Of the larger number, as many.
    {tree}

    References
    ----------
    {H}

    Examples
    --------
    >>> import numpy as np
    >>> brownian = Additive([lambda p: p], [np.ones_like])          # min(p, q), for positive numbers
    >>> brownian([[1.0], [2.0]])
    array([[1., 1.],
           [1., 2.]])
    >>> from onlinekernels import NORMA
    >>> NORMA("squared", brownian, step=0.5).fit([[1.0], [0.5]], [1.0, 1.0]).n_terms_
    2
    """

    left: Sequence[Callable[..., Any]]
    right: Sequence[Callable[..., Any]]
    tree: bool = True

    _values = {"left": _check_functions, "right": _check_functions, "tree": check_flag}

    def validate(self) -> None:
        super().validate()
        if len(self.left) != len(self.right):
            raise bad_parameter(self, "right", f"a list of as many functions as left, {len(self.left)}", self.right)

    def _core(self):
        return "own", list(self.left), list(self.right)

    def ops(self) -> Any:
        return None  # beside the trees, only Python can evaluate it

    def row(self, x: Any, points: Any) -> Any:
        if not len(points):
            return np.zeros(0)
        points = np.asarray(points, dtype=float)
        x = np.broadcast_to(np.asarray(x, dtype=float), points.shape)
        low, high = np.minimum(points, x).ravel(), np.maximum(points, x).ravel()
        values = sum(left(low) * right(high) for left, right in zip(self.left, self.right))
        return np.broadcast_to(values, low.shape).reshape(points.shape).sum(axis=1)

    def __deepcopy__(self, memo):
        return Additive(self.left, self.right, self.tree)  # the same functions: models can be compared


KERNELS.update({kernel.__name__.lower(): kernel for kernel in (AdditiveSpline, AdditiveExponential, AdditiveMatern)})
