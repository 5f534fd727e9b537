"""Kernels divided by the lengths of their features."""
from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlinekernels.kernels.algebra import Kernel
from onlinekernels.kernels.names import as_kernel
from onlinekernels.base.validation import bad_parameter

if TYPE_CHECKING:
    from onlinekernels.annotations import Any, KernelLike

__all__ = ["Normalized"]


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

    def __init__(self, kernel: KernelLike) -> None:
        self.kernel = kernel

    def validate(self) -> None:
        if self.kernel is None:
            raise bad_parameter(self, "kernel", "a kernel, its name or a callable", None)
        as_kernel(self.kernel, self)

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
