"""Features as numbers, and the sentences for those that are none."""
import math
import numbers

import numpy as np

_FLOAT = np.dtype(np.float64)
_NOTHING = np.array(None)


def numbers_of(x):
    """The values of a dictionary as an array of finite floats."""
    try:
        values = list(x.values())
    except AttributeError as error:
        raise TypeError(f"x must be a dictionary of features. Got {x!r} instead.") from error
    try:
        array = np.array(values)
    except ValueError:  # entries of unequal shape
        array = _NOTHING
    if array.dtype is _FLOAT and array.ndim == 1 and math.isfinite(sum(values)):
        return array
    for name, value in x.items():
        _check_number(value, f"x[{name!r}]")
    return np.array(values, dtype=float)


def column_numbers(column, name):
    """A column of a data frame as an array of finite floats."""
    values = column.to_numpy()
    if values.dtype.kind not in "fiub" or not np.isfinite(values).all():
        for value in values:
            _check_number(value, f"X[{name!r}]")
    return values.astype(float)


def _check_number(value, what):
    """One feature: TypeError if it is no number, ValueError if it is not finite."""
    if not isinstance(value, (numbers.Real, np.bool_)):
        raise TypeError(
            f"{what} must be a number. Got {value!r} instead; put preprocessing.OneHotEncoder() of river before the "
            "model."
        )
    if not math.isfinite(value):
        raise ValueError(
            f"{what} must be a finite number. Got {value!r} instead; leave missing features out, or put "
            "preprocessing.StatImputer() of river before the model."
        )
