"""What a kernel answers: k of points, of sparse rows and of objects, and what representations of f ask of it."""
from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlinekernels._core.kernels import Program
from onlinekernels.base.params import Parameterized
from onlinekernels.base.validation import as_csr, check_objects, check_points, check_sparse, is_sparse

if TYPE_CHECKING:
    from onlinekernels.annotations import Any, Array, Examples

__all__ = ["Contract"]

ON_INNER_PRODUCTS = {"linear", "gaussian", "constant", "noise", "add", "multiply", "shift", "scale", "normalize"}


class Contract(Parameterized):
    """What a kernel answers. `Kernel` is this and its arithmetic, and the base of all kernels."""

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
        if cls.ops is Contract.ops and cls.pair is Contract.pair and cls.row is Contract.row:
            raise ValueError(f"{cls.__name__} is a kernel of your own and must define pair(x, z).")
        self._check_values()

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

    def additive(self) -> Any:
        """What the trees need to know if this kernel can run on them; otherwise None."""
        return None

    def linear_scale(self) -> Any:
        """c if this kernel is c <x, z>, so that weights can replace terms; otherwise None."""
        return None

    def coordinate(self, j: int) -> Any:
        """The kernel of coordinate j alone if this one is a sum over coordinates; otherwise None."""
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
            raise ValueError(f"X has {left.n_features} features and Z has {right.n_features}; expected the same number.")
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


def _squares(rows):
    """|x|^2 of sparse rows."""
    owner = np.repeat(np.arange(len(rows)), np.diff(rows.indptr))
    return np.bincount(owner, rows.data**2, minlength=len(rows))
