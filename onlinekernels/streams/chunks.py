"""Rows that are in memory, some at a time."""
from __future__ import annotations

from typing import TYPE_CHECKING

from onlinekernels.base.validation import check_length, is_sparse, to_csr

if TYPE_CHECKING:
    from onlinekernels.annotations import Any

__all__ = ["chunks"]


def chunks(X: Any, y: Any = None, size: int = 1000) -> Any:
    """Yield the rows of a table a chunk at a time: pairs (X, y), or X alone where there are no labels.

    Parameters
    ----------
    X : array, sparse matrix, data frame or list of rows
    y : array, series or list, default=None
        The label or target of each row.
    size : int, default=1000
        Rows of a chunk; the last one may have fewer.

    Examples
    --------
    >>> from onlinekernels import SILK
    >>> from onlinekernels.streams import chunks, drifting_gaussians
    >>> model = SILK()
    >>> for X, y in chunks(*drifting_gaussians(2500), size=1000):
    ...     model = model.partial_fit(X, y)
    ...     print(model.t_)
    1000
    2000
    2500
    """
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise ValueError(f"The 'size' parameter of chunks must be a positive integer. Got {size!r} instead.")
    X = to_csr(X, "X") if is_sparse(X) else X
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    if y is not None:
        check_length(y, n, "y")
    return _pieces(X, y, n, size)


def _pieces(X, y, n, size):
    rows, labels = (getattr(part, "iloc", part) for part in (X, y))  # a data frame may have an index of numbers
    for begin in range(0, n, size):
        part = slice(begin, begin + size)
        yield rows[part] if y is None else (rows[part], labels[part])
