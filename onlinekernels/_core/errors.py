"""Exceptions that carry what they are about."""

__all__ = ["row_error"]


def row_error(kind, row, what, name="X"):
    """An exception about one row: it carries the `row`, and `what` it says of it, for those who know rows by another name.

    >>> error = row_error(ValueError, 3, "is too large")
    >>> error, error.row, error.what
    (ValueError('Row 3 of X is too large'), 3, 'is too large')
    >>> row_error(ValueError, 3, ": expected a list")
    ValueError('Row 3 of X: expected a list')
    """
    error = kind(f"Row {row} of {name}{'' if what[0] in ',:' else ' '}{what}")
    error.row, error.what = int(row), what
    return error
