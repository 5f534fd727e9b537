"""Checks of what comes with examples: labels and targets, weights."""
import numbers
import warnings

import numpy as np

from onlinekernels.base.validation.errors import sklearn_class
from onlinekernels.base.validation.points import numbers_from_objects, numbers_of, refuse_masked

__all__ = ["as_array_once", "check_column", "check_length", "check_targets", "check_weights", "count_targets"]


def check_length(y, n, name):
    if len(y) != n:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: X has {n}, {name} has {len(y)}."
        )


def check_column(y, n, name="y"):
    """A 1-d array of n entries of any kind."""
    if y is None:
        raise ValueError(f"This loss requires {name} to be passed, but the target {name} is None.")
    refuse_masked(y, name)
    try:
        y = np.asarray(y)
    except ValueError as error:
        raise ValueError(f"{name} should be a 1d array. Got entries of unequal length instead.") from error
    if y.ndim == 2 and y.shape[1] == 1:
        warnings.warn(
            f"A column-vector {name} was passed when a 1d array was expected. Use {name}.ravel().",
            sklearn_class("DataConversionWarning", UserWarning),
            stacklevel=2,
        )
        y = y[:, 0]
    if y.ndim != 1:
        raise ValueError(f"{name} should be a 1d array, got an array of shape {y.shape} instead.")
    check_length(y, n, name)
    return y


def as_array_once(y):
    """y as an array, or as it is for a later check to refuse."""
    refuse_masked(y, "y")
    try:
        return y if y is None else np.asarray(y)
    except ValueError:
        return y


def count_targets(y):
    """Numbers that y, an array or something to refuse, has for each example: 1, or the columns of a matrix."""
    return y.shape[1] if isinstance(y, np.ndarray) and y.ndim == 2 and y.shape[1] > 1 else 1


def check_targets(y, n, n_targets=1):
    """Targets of a regression as finite float64 numbers, shape (n,) or (n, n_targets)."""
    y = as_array_once(y)
    if n_targets == 1 and count_targets(y) == 1:
        y = check_column(y, n)
    else:
        y = np.asarray(y)
        if y.ndim != 2 or y.shape[1] != n_targets:
            expected = "a 1d array" if n_targets == 1 else f"an array of shape (n, {n_targets})"
            raise ValueError(f"y should be {expected}, as on the first call, got an array of shape {y.shape} instead.")
        check_length(y, n, "y")
    if y.dtype.kind == "O" and all(isinstance(value, numbers.Real) for value in y.ravel()):
        y = numbers_from_objects(y, "y")
    if y.dtype.kind not in "fiub":
        odd = next((value for value in y.ravel().tolist() if not isinstance(value, numbers.Real)), None)
        raise TypeError(f"y must hold numbers for a regression loss. Got {odd!r} of dtype {y.dtype} instead.")
    return numbers_of(y, np.float64, "y")


def check_weights(sample_weight, n):
    """Sample weights as finite, non-negative float64 numbers, or None."""
    if sample_weight is None:
        return None
    if isinstance(sample_weight, numbers.Real):
        sample_weight = np.full(n, float(sample_weight))
    weights = check_column(sample_weight, n, "sample_weight")
    if weights.dtype.kind not in "fiub":
        raise TypeError(f"sample_weight must hold numbers. Got dtype {weights.dtype} instead.")
    weights = numbers_of(weights, np.float64, "sample_weight")
    if n and weights.min() < 0:
        raise ValueError(f"sample_weight must not be negative. Got {weights.min()} instead.")
    return weights
