"""Kernels: what they compute, and their sums and products."""
from __future__ import annotations

import numbers
import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from onlinekernels._core.kernels import Program
from onlinekernels.base.params import Parameterized
from onlinekernels.base.validation import (
    as_csr, bad_parameter, check_not_negative, check_objects, check_points, check_sparse, is_sparse,
)

if TYPE_CHECKING:
    from onlinekernels.annotations import Any, Array, Examples

ON_INNER_PRODUCTS = {"linear", "gaussian", "constant", "noise", "add", "multiply", "shift", "scale", "normalize"}


class Kernel(Parameterized):
    """Base of all kernels; subclass it, or pass a plain callable, for a kernel of your own.

    A subclass defines ``pair(x, z)`` for two examples, whatever they are; one that can do many pairs
    at once may define ``row(x, points)`` as well.
    """

    _gram_of_maps: Any
    _diagonal_of_maps: Any

    def __call__(self, X: Examples, Z: Examples | None = None) -> Any:
        """Gram matrix of k(x, z) for all x in X and z in Z; Z = None means X itself."""
        self.validate()
        ops = self.ops()
        if ops is None:
            return self._gram_of_maps(X, Z) if self.has_map() else self._gram_of_objects(X, Z)
        if is_sparse(X) or is_sparse(Z):
            return self._gram_of_sparse(X, Z)
        X = self.check_input(X)
        Z = None if Z is None else self.check_input(Z, name="Z")
        if Z is not None and Z.shape[1] != X.shape[1]:
            raise ValueError(f"X has {X.shape[1]} features and Z has {Z.shape[1]}; expected the same number.")
        return Program(ops).gram(X, Z)

    def diagonal(self, X: Examples) -> Array:
        """k(x, x) for all x in X."""
        self.validate()
        ops = self.ops()
        if ops is None and self.has_map():
            return self._diagonal_of_maps(X)
        if ops is None:
            return np.array([self.self_value(x) for x in check_objects(X)], dtype=float)
        if is_sparse(X):
            return self._of_inner(np.zeros((X.shape[0], 0)), _squares(check_sparse(X)), np.zeros(0), X.shape[1])[1]
        return Program(ops).diagonal(self.check_input(X))

    def check_input(self, X: Examples, n_features: Any = None, dtype: Any = np.float64, name: str = "X",
                    finite: bool = True, owner: Any = "model") -> Any:
        """X as an array that the compiled kernel may use without looking."""
        X = check_points(X, n_features=n_features, dtype=dtype, name=name, finite=finite, owner=owner)
        if self.takes_indices():
            X = X.copy()  # what is checked here must not change any more: loops go where indices say
        self.check_domain(X, name)
        return X

    def validate(self) -> None:
        """Raise ValueError for a parameter out of range."""
        cls = type(self)
        if cls.ops is Kernel.ops and cls.pair is Kernel.pair and cls.row is Kernel.row:
            raise ValueError(f"{cls.__name__} is a kernel of your own and must define pair(x, z).")
        self._check_values()
        for name in ("pair", "row", "self_value", "diagonal", "__call__"):
            own, compiled = (_index_of(cls, what) for what in (name, "features" if self.has_map() else "ops"))
            if own < compiled and (self.ops() is not None or self.has_map()):
                raise ValueError(f"{cls.__name__} has a {name}() of its own, which the compiled kernel it derives from "
                                 "does not ask; derive it from Kernel.")

    def ops(self) -> Any:
        """Operations for the compiled core in postfix order; None if only Python can evaluate it."""
        return None

    def parts(self) -> Any:
        """Kernels that this one is made of."""
        return ()

    def check_domain(self, X: Examples, name: str = "X") -> Any:
        """Raise ValueError if the kernel is not defined for all rows of X."""
        for part in self.parts():
            part.check_domain(X, name)

    def restricts(self) -> Any:
        """Whether `check_domain` looks at X at all."""
        return any(part.restricts() for part in self.parts())

    def takes_indices(self) -> Any:
        """Whether X holds indices, which need double precision."""
        parts = self.parts()
        return bool(parts) and any(part.takes_indices() for part in parts)

    def summands(self) -> Any:
        """What this kernel is if it is a sum of kernels for the trees, of constants and of noise; otherwise None.

        A list of {"kernel": one coordinate's, for the core, "bounds": ..., "scale": ...}, {"constant": value} and
        {"noise": value}.
        """
        return None

    def additive(self) -> Any:
        """The summands if this kernel can run on trees; otherwise None."""
        summands = self.summands() or []
        return summands if any("kernel" in one for one in summands) else None

    def linear_scale(self) -> Any:
        """c if this kernel is c <x, z>, so that weights can replace terms; otherwise None."""
        return None

    def coordinate(self, j: int, n: int = 1) -> Any:
        """The kernel of coordinate j of n alone if this one is a sum over coordinates; otherwise None."""
        return None

    def has_map(self) -> Any:
        """Whether a feature map is among the parts: then f is weights over features."""
        return any(part.has_map() for part in self.parts())

    def features(self) -> Any:
        """The feature map for the core: a list of parts, whose features stand one after the other; None without one."""
        return None

    def takes_objects(self) -> Any:
        """Whether examples are Python objects."""
        return self.ops() is None and not self.has_map()

    # ---- In Python, for objects ----

    def pair(self, x: Any, z: Any) -> Any:
        """k(x, z) for two examples."""
        return float(self.row(x, [z])[0])

    def row(self, x: Any, points: Any) -> Any:
        """k(x, z) for all z in a list of examples other than x itself."""
        if self.ops() is None:
            return np.array([self.pair(x, z) for z in points], dtype=float)
        return self([x], points)[0] if len(points) else np.zeros(0)

    def self_value(self, x: Any) -> Any:
        """k(x, x) of one example with itself."""
        return self.pair(x, x) if self.ops() is None else float(self.diagonal([x])[0])

    def on_inner_products(self) -> Any:
        """Whether inner products are all that this kernel needs of two examples."""
        if self.has_map():
            return all(part.on_inner_products() for part in self.parts())
        ops = self.ops()
        return ops is not None and {op["op"] for op in ops} <= ON_INNER_PRODUCTS

    def _gram_of_sparse(self, X, Z):
        """Gram matrix of sparse rows; scipy multiplies them."""
        if not self.on_inner_products():
            raise TypeError(f"{self!r} needs dense rows: it is not a function of inner products. Use X.toarray().")
        left, right = check_sparse(X), check_sparse(X if Z is None else Z, name="Z")
        if left.n_features != right.n_features:
            raise ValueError(f"X has {left.n_features} features and Z has {right.n_features}; expected the same "
                             "number.")
        inner = np.ascontiguousarray((as_csr(left) @ as_csr(right).T).toarray(), dtype=float)
        return self._of_inner(inner, _squares(left), _squares(right), left.n_features, Z is None)[0]

    def _of_inner(self, inner, left, right, n_features, same=False):
        program = Program(self.ops())
        program.start(n_features, np.dtype(float), None)
        return program.gram_of_inner(inner, left, right, same)

    def _gram_of_objects(self, X, Z):
        X = check_objects(X)
        points = X if Z is None else check_objects(Z, name="Z")
        gram = np.array([self.row(x, points) for x in X], dtype=float)
        if Z is None:
            np.fill_diagonal(gram, [self.self_value(x) for x in X])
        return gram

    # ---- Sums and products ----

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


def _index_of(cls, name):
    """Where among its ancestors, itself first, a class has a method from, if that is the user's; otherwise behind."""
    for i, ancestor in enumerate(cls.__mro__):
        if name in vars(ancestor):
            return len(cls.__mro__) if ancestor.__module__.startswith("onlinekernels.") else i
    return len(cls.__mro__)


def _squares(rows):
    """|x|^2 of sparse rows."""
    owner = np.repeat(np.arange(len(rows)), np.diff(rows.indptr))
    return np.bincount(owner, rows.data**2, minlength=len(rows))


def _as_operand(value):
    if isinstance(value, Kernel):
        return value
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        return Constant(float(value))
    return Custom(value) if callable(value) else None


@dataclass(eq=False, repr=False)
class Valued(Kernel):
    """A kernel of one value.

    Parameters
    ----------
    value : float
        At least 0.
    """

    value: float = 1.0

    _op = ""
    _values = {"value": check_not_negative}

    def ops(self) -> Any:
        return [{"op": self._op, "a": float(self.value)}]

    def summands(self) -> Any:
        return [{self._op: float(self.value)}]

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

    def coordinate(self, j: int, n: int = 1) -> Any:
        return Constant(float(self.value) / n)

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
        return self._combined(self.left(X, Z), self.right(X, Z))

    def _diagonal_of_maps(self, X):
        return self._combined(self.left.diagonal(X), self.right.diagonal(X))

    def row(self, x, points):
        return self._combined(self.left.row(x, points), self.right.row(x, points))

    def self_value(self, x):
        return self._combined(self.left.self_value(x), self.right.self_value(x))


class Sum(_Pair):
    """left + right.

    Parameters
    ----------
    {left}
    """

    _with_constant, _with_row, _combined = "shift", "add", operator.add

    def coordinate(self, j, n=1):
        left, right = self.left.coordinate(j, n), self.right.coordinate(j, n)
        return None if left is None or right is None else left + right

    def summands(self):
        left, right = self.left.summands(), self.right.summands()
        return None if left is None or right is None else [*left, *right]

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

    _with_constant, _with_row, _combined = "scale", "multiply", operator.mul

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

    def coordinate(self, j, n=1):
        factor, kernel = self._multiple()
        part = None if factor is None else kernel.coordinate(j, n)
        return None if part is None else factor * part

    def summands(self):
        factor, kernel = self._multiple()
        parts = None if factor is None else kernel.summands()
        scaled = ("scale", "constant", "noise")
        return parts and [{name: factor * value if name in scaled else value for name, value in one.items()}
                          for one in parts]

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
