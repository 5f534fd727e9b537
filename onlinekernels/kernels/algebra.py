"""Kernels add and multiply like numbers: sums, products, and what a number or a callable beside them stands for."""
from __future__ import annotations

import numbers
import operator
from typing import TYPE_CHECKING

import numpy as np

from onlinekernels.kernels.base import Contract
from onlinekernels.base.validation import bad_parameter, check_not_negative

if TYPE_CHECKING:
    from onlinekernels.annotations import Any

__all__ = ["Kernel", "Valued", "Constant", "Custom", "Sum", "Product"]


class Kernel(Contract):
    """Base of all kernels; subclass it, or pass a plain callable, for a kernel of your own.

    A subclass defines ``pair(x, z)`` for two examples, whatever they are; one that can do many pairs
    at once may define ``row(x, points)`` as well.
    """

    def __add__(self, other):
        other = _as_operand(other)
        return NotImplemented if other is None else Sum(self, other)

    def __radd__(self, other):
        other = _as_operand(other)
        return NotImplemented if other is None else Sum(other, self)

    def __mul__(self, other):
        other = _as_operand(other)
        return NotImplemented if other is None else Product(self, other)

    def __rmul__(self, other):
        other = _as_operand(other)
        return NotImplemented if other is None else Product(other, self)


def _as_operand(value):
    if isinstance(value, Kernel):
        return value
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        return Constant(float(value))
    return Custom(value) if callable(value) else None


class Valued(Kernel):
    """A kernel of one value.

    Parameters
    ----------
    value : float
        At least 0.
    """

    _op: str
    _values = {"value": check_not_negative}

    def __init__(self, value: float = 1.0) -> None:
        self.value = value

    def ops(self) -> Any:
        return [{"op": self._op, "a": float(self.value)}]

    def self_value(self, x: Any) -> Any:
        return float(self.value)


class Constant(Valued):
    """The same value for all pairs: an offset that is regularized like the rest of f.

    Parameters
    ----------
    {value}

    Examples
    --------
    >>> Constant(2.0)([[0.0]], [[1.0], [5.0]])
    array([[2., 2.]])
    """

    _op = "constant"

    def features(self) -> Any:
        return [{"map": "constant", "value": float(self.value)}]

    def row(self, x: Any, points: Any) -> Any:
        return np.full(len(points), float(self.value))


class Custom(Kernel):
    """Any callable k(x, z) on any objects: strings, sets, graphs.

    Parameters
    ----------
    function : callable
        Gives the number k(x, z) for two examples. It must be symmetric, and positive semidefinite.

    Examples
    --------
    >>> shared = lambda a, b: len(a & b)
    >>> Custom(shared)([{1, 2}, {2, 3}])
    array([[2., 1.],
           [1., 2.]])
    """

    def __init__(self, function):
        self.function = function

    def validate(self):
        if not callable(self.function):
            raise bad_parameter(self, "function", "a callable k(x, z)", self.function)

    def pair(self, x, z):
        return float(self.function(x, z))

    def __deepcopy__(self, memo):
        return Custom(self.function)  # the same function, so that models with it can be compared


class _Pair(Kernel):
    """Two kernels and an operation.

    Parameters
    ----------
    left, right : Kernel
    """

    def __init__(self, left, right):
        self.left = left
        self.right = right

    def validate(self):
        for name in ("left", "right"):
            kernel = getattr(self, name)
            if not isinstance(kernel, Kernel):
                raise bad_parameter(self, name, "a kernel", kernel)
            kernel.validate()

    def parts(self):
        return self.left, self.right

    def ops(self):
        left, right = self.left.ops(), self.right.ops()
        if left is None or right is None:
            return None
        for constant, other in ((self.left, right), (self.right, left)):
            if type(constant) is Constant:  # one cheap operation instead of a row of constants
                return [*other, {"op": self._with_constant, "a": float(constant.value)}]
        return [*left, *right, {"op": self._with_row}]

    def _gram_of_maps(self, X, Z):
        return self._joined(self.left(X, Z), self.right(X, Z))

    def _diagonal_of_maps(self, X):
        return self._joined(self.left.diagonal(X), self.right.diagonal(X))

    def row(self, x, points):
        return self._joined(self.left.row(x, points), self.right.row(x, points))

    def self_value(self, x):
        return self._joined(self.left.self_value(x), self.right.self_value(x))


class Sum(_Pair):
    """left + right.

    Parameters
    ----------
    {left}
    """

    _with_constant, _with_row, _joined = "shift", "add", operator.add

    def coordinate(self, j):
        left, right = self.left.coordinate(j), self.right.coordinate(j)
        return None if left is None or right is None else left + right

    def features(self):
        left, right = self.left.features(), self.right.features()
        return None if left is None or right is None else [*left, *right]

    def __repr__(self):
        right = f"({self.right!r})" if isinstance(self.right, Sum) else repr(self.right)
        return f"{self.left!r} + {right}"


class Product(_Pair):
    """left * right.

    Parameters
    ----------
    {left}
    """

    _with_constant, _with_row, _joined = "scale", "multiply", operator.mul

    def _multiple(self):
        """(c, kernel) if this is a positive multiple c of a kernel; otherwise (None, None)."""
        for constant, other in ((self.left, self.right), (self.right, self.left)):
            if type(constant) is Constant and constant.value > 0:
                return float(constant.value), other
        return None, None

    def linear_scale(self):
        factor, kernel = self._multiple()
        scale = None if factor is None else kernel.linear_scale()
        return None if scale is None else factor * scale

    def features(self):
        factor, kernel = self._multiple()
        parts = None if factor is None else kernel.features()
        return None if parts is None else [_scaled(part, factor) for part in parts]

    def coordinate(self, j):
        factor, kernel = self._multiple()
        part = None if factor is None else kernel.coordinate(j)
        return None if part is None else factor * part

    def additive(self):
        factor, kernel = self._multiple()
        trees = None if factor is None else kernel.additive()
        return None if trees is None else {**trees, "scale": factor * trees["scale"]}

    def __repr__(self):
        def shown(k, other, brackets):
            if type(k) is Constant and type(other) is not Constant:
                return repr(k.value)
            return f"({k!r})" if isinstance(k, brackets) else repr(k)

        return f"{shown(self.left, self.right, Sum)}*{shown(self.right, self.left, (Sum, Product))}"


def _scaled(part, factor):
    """A part of a feature map whose kernel is multiplied."""
    key = "value" if part["map"] == "constant" else "scale"
    return {**part, key: factor * part[key]}
