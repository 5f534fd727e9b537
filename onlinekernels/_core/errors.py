"""Exceptions that carry what they are about, and calls without warnings."""
import functools

import numpy as np

__all__ = ["quiet", "row_error"]


def quiet(function):
    """The function without NumPy's warnings about overflow, where what overflows is reported otherwise, with its row.

    Compiled code must not leave a ``with`` statement when there is no memory: Cython's way out of it crashes, and that
    of CPython 3.11 may call what is not callable. NumPy 2 decorates a function without one.

    >>> quiet(np.multiply)(np.float64(1e200), 1e200)
    np.float64(inf)
    """
    @functools.wraps(function)
    def call(*arguments, **options):
        return np.errstate(over="ignore", invalid="ignore")(function)(*arguments, **options)
    return call


def row_error(kind, row, what, name="X"):
    """An exception about one row: it carries the `row`, and `what` it says of it, for those who know rows by another
    name.

    >>> error = row_error(ValueError, 3, "is too large")
    >>> error, error.row, error.what
    (ValueError('Row 3 of X is too large'), 3, 'is too large')
    >>> row_error(ValueError, 3, ": expected a list")
    ValueError('Row 3 of X: expected a list')
    """
    error = kind(f"Row {row} of {name}{'' if what[0] in ',:' else ' '}{what}")
    error.row, error.what = int(row), what
    return error
