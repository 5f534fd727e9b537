"""Time series as rows: the last values, and the one that follows them."""
from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlinekernels.base.validation import as_array_once, check_count, check_targets

if TYPE_CHECKING:
    from onlinekernels.annotations import Any, ArrayLike, Self

__all__ = ["Lags", "lagged"]


def lagged(series: ArrayLike, lags: int = 8) -> Any:
    """Return rows of the last `lags` values of a time series, and the value that follows each.

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
    return Lags(lags).take(series)


class Lags:
    """The last values of a time series that is still going on: rows to learn from, and the row to predict from.

    Parameters
    ----------
    lags : int, default=8
        How many values make a row; at least 1.

    Attributes
    ----------
    row : ndarray or None
        The last `lags` values, from which to predict the next; None as long as there are fewer.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinekernels import KRLS
    >>> model, last, errors = KRLS("squared"), Lags(4), []
    >>> for value in np.sin(np.arange(200)):
    ...     if last.row is not None:
    ...         errors.append(model.predict_one(last.row) - value if len(errors) else 0.0)
    ...         model = model.learn_one(last.row, value)
    ...     last = last.learn_one(value)
    >>> bool(np.abs(errors[-100:]).max() < 0.01)
    True
    """

    def __init__(self, lags: int = 8) -> None:
        self.lags = lags
        self._last = None  # the last values, at most `lags`, shape (k, columns); and whether they came as columns
        self._is_table = False

    @property
    def row(self) -> Any:
        return None if self._last is None or len(self._last) < self.lags else self._last.flatten()

    def learn_one(self, value: Any) -> Self:
        """Take in the next value, or one for each column; return self."""
        self.take([value])
        return self

    def take(self, series: Any) -> Any:
        """Take in some more values; return (X, y), a row for each of them that has `lags` values before it."""
        lags = check_count(self, "lags")
        values, is_table = self._checked(series)
        before = values[:0] if self._last is None else self._last
        whole = np.concatenate([before, values])
        first = max(lags, len(before))  # that has a row
        times = np.arange(first, max(first, len(whole)))
        X = whole[times[:, None] + np.arange(-lags, 0)].reshape(len(times), lags * whole.shape[1])
        y = whole[first:].copy()
        self._last, self._is_table = whole[-lags:].copy(), is_table
        return X, y if is_table else y[:, 0]

    def _checked(self, series):
        """(values of shape (n, columns), whether they came so)."""
        series = as_array_once(series)
        if np.ndim(series) not in (1, 2) or np.size(series) == 0:
            raise ValueError(f"series must be a 1-d or 2-d array of numbers, not empty. Got shape {np.shape(series)} instead.")
        is_table = np.ndim(series) == 2
        columns = series.shape[1] if is_table else 1
        if self._last is not None and (is_table != self._is_table or columns != self._last.shape[1]):
            before = f"rows of {self._last.shape[1]} numbers" if self._is_table else "numbers"
            raise ValueError(f"series must hold {before}, as before. Got shape {series.shape} instead.")
        values = check_targets(series.reshape(-1), series.size).reshape(len(series), columns)
        return values, is_table
