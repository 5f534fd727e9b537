"""What is in memory as a stream: rows some at a time, and the last values of a series with the one that follows."""
from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlinekernels.base.validation import as_array_once, bad_parameter, check_length, check_targets, is_sparse, to_csr

if TYPE_CHECKING:
    from onlinekernels.annotations import Any, ArrayLike

__all__ = ["chunks", "lagged"]


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
    >>> [SILK().partial_fit(X, y).t_ for X, y in chunks(*drifting_gaussians(2500), size=1000)]
    [1000, 1000, 500]
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


def lagged(series: ArrayLike, lags: int = 8) -> Any:
    """Return rows of the last `lags` values of a time series, and the value that follows each.

    The row from which to predict what comes next is ``series[-lags:]``. A regression for series alone is
    ``OnlineKernelRegressor(lags=8)``, which makes its rows as the values come.

    Parameters
    ----------
    series : array of shape (n,), or (n, columns)
        Numbers, the oldest first.
    lags : int, default=8
        How many values make a row; at least 1.

    Returns
    -------
    X : ndarray of shape (n - lags, lags), or (n - lags, lags * columns)
        The oldest of the values first; of several columns, those of one time beside each other.
    y : ndarray of shape (n - lags,), or (n - lags, columns)

    Examples
    --------
    >>> X, y = lagged([1, 2, 3, 4, 5], lags=3)
    >>> X.tolist(), y.tolist()
    ([[1.0, 2.0, 3.0], [2.0, 3.0, 4.0]], [4.0, 5.0])
    """
    if isinstance(lags, bool) or not isinstance(lags, (int, np.integer)) or lags < 1:
        raise bad_parameter("lagged", "lags", "an integer of at least 1", lags)
    array = np.asarray(as_array_once(series))
    if array.ndim not in (1, 2) or array.size == 0:
        raise ValueError(f"series must be a 1-d or 2-d array of numbers, not empty. Got shape {array.shape} instead.")
    values = check_targets(array.reshape(-1), array.size).reshape(array.shape)
    rows = np.arange(max(0, len(values) - lags))
    shape = len(rows), lags * (values.size // len(values))
    return values[rows[:, None] + np.arange(lags)].reshape(shape), values[lags:].copy()
