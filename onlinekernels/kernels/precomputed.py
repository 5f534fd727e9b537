"""Kernels that were evaluated before: examples are indices into a Gram matrix."""
from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlinekernels.kernels.algebra import Kernel
from onlinekernels.base.validation import refuse_masked

if TYPE_CHECKING:
    from onlinekernels.annotations import Any, Examples

__all__ = ["Precomputed"]


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

    def __init__(self, gram: Any = None) -> None:
        self.gram = gram

    def validate(self) -> None:
        refuse_masked(self.gram, "gram")
        gram: Any = np.asarray(self.gram) if self.gram is not None else np.empty(0)
        if gram.ndim != 2 or gram.shape[0] != gram.shape[1] or gram.size == 0 or gram.dtype.kind not in "fiu":
            shape = None if self.gram is None else gram.shape
            raise ValueError(
                f"The 'gram' parameter of Precomputed must be a square matrix of numbers. Got shape {shape} instead."
            )
        if not np.isfinite(gram).all():
            raise ValueError("The 'gram' parameter of Precomputed must hold finite numbers only.")
        if not np.allclose(gram, gram.T, rtol=1e-8, atol=1e-12):
            raise ValueError("The 'gram' parameter of Precomputed must be symmetric.")

    def ops(self) -> Any:
        return [{"op": "precomputed", "table": np.ascontiguousarray(self.gram, dtype=np.float64)}]

    def check_domain(self, X: Examples, name: str = "X") -> Any:
        _check_indices(X, len(self.gram), name)

    def restricts(self) -> Any:
        return True

    takes_indices = restricts


def _check_indices(X, size, name):
    """X must be one column of whole numbers in range(size)."""
    if X.shape[1] != 1:
        raise ValueError(f"{name} must have one column, of indices into the Gram matrix. Got {X.shape[1]} columns.")
    bad = (X < 0) | (X >= size) | (X != np.floor(X))
    if bad.any():
        raise ValueError(
            f"{name} must hold whole numbers from 0 to {size - 1}, indices into the Gram matrix. Got {X[bad][0]} instead."
        )
