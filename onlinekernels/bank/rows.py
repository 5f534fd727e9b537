"""Rows of a call: whose they are, which of them belong together, and what they aim at."""
import numpy as np

from onlinekernels.base import validation
from onlinekernels._core.bank import LANES_CODES
from onlinekernels.base.labelsets import BinaryLabels, label_column

__all__ = ["as_keys", "checked_mask", "checked_numbers", "pieces", "targets"]

LANES = LANES_CODES["lanes"]


def as_keys(keys, n):
    """n keys as a list; numpy's numbers become Python's, which are equal and hash faster."""
    if isinstance(keys, str) or not hasattr(keys, "__len__"):
        raise TypeError(f"keys must be a list or array with a key for each row of X. Got {type(keys).__name__} instead.")
    if isinstance(keys, (list, tuple)):
        keys = [key.item() if isinstance(key, np.generic) else key for key in keys]
    else:
        column = np.asarray(keys)
        if column.ndim != 1:
            raise ValueError(f"keys must be one-dimensional. Got an array of shape {column.shape} instead.")
        keys = column.tolist()
    validation.check_length(keys, n, "keys")
    return keys


def pieces(n, numbers, n_models, rows):
    """The n rows of a call, so many at a time: (slice, groups or None, (first place, end of places))."""
    for begin in range(0, n, rows):
        end = min(begin + rows, n)
        if numbers is None:
            yield slice(begin, end), None, (begin // LANES, -(-end // LANES))
        else:
            blocks, starts, order = grouped(numbers[begin:end], n_models)
            yield slice(begin, end), (blocks, starts, order + begin if begin else order), (0, len(blocks))


def grouped(numbers, n_models):
    """(blocks that have rows, where the rows of each lane begin, rows in that order); rows without a model left out."""
    order = np.argsort(numbers, kind="stable")
    ordered = numbers[order]
    known = slice(np.searchsorted(ordered, 0), np.searchsorted(ordered, n_models))
    order, ordered = np.ascontiguousarray(order[known]), ordered[known]
    blocks = np.unique(ordered // LANES)
    starts = np.searchsorted(ordered, blocks[:, None] * LANES + np.arange(LANES + 1))
    return blocks, np.ascontiguousarray(starts, dtype=np.int64), order.astype(np.int64, copy=False)


def checked_numbers(keys, n, n_models):
    """Numbers of models for n rows."""
    numbers = np.asarray(keys)
    validation.check_length(numbers, n, "keys")
    if numbers.dtype.kind not in "iu" or numbers.ndim != 1:
        raise TypeError(f"keys must be whole numbers of models with n_models=. Got dtype {numbers.dtype} instead.")
    if n and not (0 <= numbers.min() and numbers.max() < n_models):
        raise ValueError(f"keys must be between 0 and {n_models - 1}. Got {numbers.min()} to {numbers.max()} instead.")
    return numbers.astype(np.int64)


def checked_mask(active, n):
    """Which of n rows count, as booleans."""
    active = np.asarray(active)
    if active.dtype != bool or active.shape != (n,):
        raise ValueError(
            f"active must hold a boolean for each of the {n} rows of X. Got dtype {active.dtype} and shape "
            f"{active.shape} instead."
        )
    return np.ascontiguousarray(active)


def targets(plan, labels, y, n, active=None, classes=None):
    """(y as numbers, labels to go on with)."""
    task = plan.loss.task
    if task == "novelty":
        return None, None
    rows = slice(None) if active is None else active
    if task == "regression":
        if active is not None:
            y = validation.check_column(y, n)[rows]
        some = validation.check_targets(y, n if active is None else len(y))
    else:
        column = label_column(y, n)[rows]
        if classes is not None and labels is not None and labels.agreeing_with(classes) is None:
            raise ValueError(f"classes={classes!r} is not the same as on the first call: {labels.classes.tolist()!r}.")
        if not len(column) and labels is None and classes is None:
            raise ValueError("No row is active, so that y shows no label. Pass classes=[...] with both.")
        labels = labels or BinaryLabels.first_seen(column, classes)
        some, labels = labels.encode(column)
    y = np.zeros(n)
    y[rows] = some
    return y, labels
