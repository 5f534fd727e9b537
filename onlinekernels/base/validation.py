"""Every input check and every error sentence.

All checks run before anything is learned, so that a refused call changes nothing.
"""
import copy
import math
import numbers
import sys
import warnings

import numpy as np

from onlinekernels._core.formulas.vectorized import all_finite
from onlinekernels._core.points import Rows


class WrongFeatures(ValueError):
    """Rows have other columns than those that were learned."""


def wrong_number(name, count, owner, expected):
    """The error for rows with another number of columns than is expected."""
    return WrongFeatures(f"{name} has {count} features, but {owner} is expecting {expected} features as input.")


class NotFittedError(ValueError, AttributeError):
    """Predicting before learning."""


def sklearn_class(name, otherwise):
    """A class of scikit-learn's for those who use it; this library never imports it."""
    exceptions = sys.modules.get("sklearn.exceptions")
    return otherwise if exceptions is None else getattr(exceptions, name)


def not_fitted(estimator):
    """The error for predicting before learning."""
    return sklearn_class("NotFittedError", NotFittedError)(
        f"This {type(estimator).__name__} instance is not fitted yet. Call 'fit' or 'partial_fit' first.")


def add_rows_learned(error, rows):
    """Say on an exception how many rows of the call were learned before it."""
    error.rows_learned = rows
    add_note(error, f"Learned before this error: {rows} rows of this call. The model is consistent.")


def add_note(error, note):
    """Add a sentence to an exception."""
    if hasattr(error, "add_note"):  # Python 3.11
        error.add_note(note)
    else:
        error.args = (f"{error} ({note})", *error.args[1:])


# ---- Parameters ------------------------------------------------------------------------------------------------------


def bad_parameter(owner, name, expected, value):
    """ValueError for a parameter, in scikit-learn's words."""
    owner = owner if isinstance(owner, str) else type(owner).__name__
    return ValueError(f"The {name!r} parameter of {owner} must be {expected}. Got {value!r} instead.")


class Real:
    """A check: a parameter must be a finite number for which `allowed` holds, in words `expected`.

    >>> from onlinekernels import Gaussian
    >>> Real("a number below 2", lambda value: value < 2)(Gaussian(1), "width")
    1.0
    >>> check_positive.or_none(Gaussian(-1), "width")
    Traceback (most recent call last):
    ...
    ValueError: The 'width' parameter of Gaussian must be a positive number or None. Got -1 instead.
    """

    def __init__(self, expected, allowed):
        self.expected = expected
        self.allowed = allowed

    def __call__(self, owner, name):
        """The value as a float."""
        value = getattr(owner, name)
        if not self.accepts(value):
            raise bad_parameter(owner, name, self.expected, value)
        return float(value)

    def accepts(self, value):
        """Whether a value is such a number."""
        number = as_number(value)
        return number is not None and bool(self.allowed(number))

    def or_none(self, owner, name):
        """The value as a float, or None."""
        return None if getattr(owner, name) is None else Real(f"{self.expected} or None", self.allowed)(owner, name)


check_positive = Real("a positive number", lambda value: value > 0)
check_not_negative = Real("a number of at least 0", lambda value: value >= 0)
check_finite = Real("a finite number", lambda value: True)
check_fraction = Real("a number in (0, 1)", lambda value: 0 < value < 1)
check_share = Real("a number in (0, 1]", lambda value: 0 < value <= 1)
check_part = Real("a number in [0, 1)", lambda value: 0 <= value < 1)
check_memory = Real("a number in [0, 1]", lambda value: 0 <= value <= 1)


def as_number(value):
    """A finite real number of any kind as a float; None for anything else, truth values included."""
    if type(value) is float:  # most are, and abstract classes take their time
        return value if math.isfinite(value) else None
    if not isinstance(value, numbers.Real) or isinstance(value, (bool, np.bool_)):
        return None
    try:
        value = float(value)
    except OverflowError:  # a whole number or a fraction beyond all floats
        return None
    return value if math.isfinite(value) else None


def check_integer(owner, name, minimum, maximum=2**62):
    """A parameter that must be a whole number from `minimum` to `maximum`."""
    value = getattr(owner, name)
    is_integer = isinstance(value, numbers.Integral) and not isinstance(value, (bool, np.bool_))
    if not is_integer or not minimum <= value <= maximum:
        largest = "2**62" if maximum == 2**62 else maximum
        raise bad_parameter(owner, name, f"an integer of at least {minimum} and at most {largest}", value)
    return int(value)


def check_count(owner, name):
    """A parameter that must be a whole number of at least 1."""
    return check_integer(owner, name, 1)


def check_flag(owner, name, or_none=False):
    """A parameter that must be a truth value; with `or_none`, None is False."""
    value = getattr(owner, name)
    if not (isinstance(value, (bool, np.bool_)) or or_none and value is None):
        raise bad_parameter(owner, name, "True, False or None" if or_none else "True or False", value)
    return bool(value)


def check_class_weight(owner, weights):
    """A dictionary of weights."""
    given = [as_number(float(w) if isinstance(w, (bool, np.bool_)) else w) for w in weights.values()]
    if not all(number is not None and number >= 0 for number in given):
        raise bad_parameter(owner, "class_weight", "a dictionary of weights of at least 0", weights)


# ---- Rows of numbers -------------------------------------------------------------------------------------------------


def check_points(X, *, n_features=None, dtype=None, name="X", finite=True, owner="model"):
    """X as a C-contiguous array of finite float32 or float64 numbers, shape (n, n_features).

    float32 stays float32 (unless `dtype` says otherwise), every other kind of number becomes float64.
    With ``finite=False`` the caller notices numbers that are not finite.
    """
    columns = getattr(X, "columns", None)  # of a data frame
    X = _as_array(X, name)
    if X.dtype.kind not in "fiub":
        X = numbers_from_objects(X, name, columns)
    check_shape(X.shape, name)
    if n_features is not None and X.shape[1] != n_features:
        raise wrong_number(name, X.shape[1], owner, n_features)
    return numbers_of(X, dtype, name, finite, columns)


def check_shape(shape, name):
    """Raise ValueError unless an array of this shape holds rows."""
    if len(shape) != 2:
        hint = (" Reshape your data with X.reshape(-1, 1) if it has a single feature, or X.reshape(1, -1) if it is a "
                "single example." if len(shape) == 1 else "")
        raise ValueError(f"Expected 2D array for {name}, got {len(shape)}D array instead.{hint}")
    if 0 in shape:
        what = "sample(s)" if shape[0] == 0 else "feature(s)"
        raise ValueError(f"Found array {name} with 0 {what} (shape={shape}) while a minimum of 1 is required.")


def check_point(x, *, n_features, owner="model"):
    """One example as rows of one."""
    x = _as_array(x, "x")
    if x.ndim != 1:
        raise ValueError(f"Expected 1D array for x, one example, got {x.ndim}D array instead.")
    if n_features is not None and len(x) != n_features:
        raise wrong_number("x", len(x), owner, n_features)
    return numbers_of(x, None, "x")[None]


def _as_array(X, name):
    if type(X) is np.ndarray:
        return X
    refuse_masked(X, name)
    if hasattr(X, "toarray"):
        raise TypeError(f"{name} is sparse; expected a dense array. Convert it with {name}.toarray().")
    try:
        return np.asarray(X)
    except ValueError as error:
        raise ValueError(f"{name} must be a 2-d array of numbers. Got rows of unequal length instead.") from error


def numbers_of(X, dtype, name, finite=True, columns=None):
    """X as a contiguous array of finite numbers; `columns` names them in the error if there are others."""
    if X.dtype.kind not in "fiub":
        X = numbers_from_objects(X, name)
    if dtype is None:
        dtype = X.dtype if X.dtype in (np.float32, np.float64) else np.dtype(np.float64)
    if X.dtype != dtype or not X.flags.c_contiguous or not X.flags.aligned:
        with np.errstate(over="ignore", invalid="ignore"):
            X = np.require(X, dtype=dtype, requirements=["C", "A"])
    if finite and not all_finite(X):
        index = int(np.argmin(np.isfinite(X)))
        what = "NaN" if np.isnan(X.flat[index]) else f"infinity or a value too large for {X.dtype}"
        raise ValueError(f"Input {name} contains {what}{_where(X, index, columns)}; expected finite numbers.")
    return X


def numbers_from_objects(X, name, columns=None):
    """Python numbers in an object array; everything else is refused."""
    if X.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {name} must hold real numbers, got dtype {X.dtype}.")
    if X.dtype.kind != "O":
        raise TypeError(f"{name} must hold numbers for this kernel. Got dtype {X.dtype} instead; strings and other "
                        "objects need a kernel of their own: any callable k(x, z).")
    invalid = next((i for i, value in enumerate(X.ravel()) if not isinstance(value, numbers.Real)), None)
    try:
        if invalid is None:
            return X.astype(np.float64)
    except OverflowError as error:
        raise ValueError(f"{name} contains a number too large for float64; expected finite numbers.") from error
    value = X.flat[invalid]
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        advice = "fill in what is missing, or leave these rows out"
    else:
        how = "encode words as numbers, one column for each word," if isinstance(value, str) else "make numbers of it,"
        advice = f"{how} or give a kernel on objects, any callable k(x, z)"
    raise TypeError(f"{name} must hold numbers for this kernel: an argument must be a string of digits or a number. "
                    f"Got {value!r}{_where(X, invalid, columns)}, instead; {advice}.")


def _where(X, index, columns):
    """Where an entry of X is, in words."""
    if X.ndim != 2:
        return f" at index {index}" if X.ndim == 1 else ""
    row, column = divmod(index, X.shape[1])
    return f" in row {row}, column {column if columns is None else columns[column]!r}"


def refuse_masked(X, name):
    """Masked entries are missing, and NumPy would show what is behind the mask; ValueError for any."""
    if type(X) is np.ndarray:
        return
    parts = [X, *X] if isinstance(X, (list, tuple)) else [X]
    if any(isinstance(part, np.ma.MaskedArray) and np.ma.is_masked(part) for part in parts):
        raise ValueError(f"Input {name} contains masked entries; expected none. Fill them in, or leave these rows out.")


# ---- Sparse rows -----------------------------------------------------------------------------------------------------


def is_sparse(X):
    """Whether X is a sparse matrix or array of scipy's."""
    return hasattr(X, "tocsr") and hasattr(X, "nnz")


def as_csr(rows):
    """Sparse rows as a matrix of scipy's, which only those need who have passed one."""
    from scipy.sparse import csr_matrix

    return csr_matrix((rows.data, rows.indices, rows.indptr), shape=rows.shape)


def to_csr(X, name):
    """A sparse matrix in the format CSR, if its indices are within it: compiled code of scipy's relies on that."""
    if not _is_sound(X) or not _is_sound(X := X.tocsr()):
        raise ValueError(f"{name} is not a sound sparse matrix: its indices, or indptr, point outside of it.")
    return X


def _is_sound(X):
    """Whether the index arrays of a sparse matrix are valid; True for formats that have no such arrays."""
    kind = getattr(X, "format", None)
    if kind == "coo":
        sizes = zip((X.row, X.col), X.shape, strict=True)
        return all(len(indices) == len(X.data) and _are_below(indices, size) for indices, size in sizes)
    if kind not in ("csr", "csc", "bsr"):
        return True
    rows, columns = X.shape if kind != "csc" else X.shape[::-1]
    if kind == "bsr":
        rows, columns = rows // X.data.shape[1], columns // X.data.shape[2]
    ends, indices = np.asarray(X.indptr), np.asarray(X.indices)
    has_ends = ends.shape == (rows + 1,) and ends[0] == 0 and (ends[1:] >= ends[:-1]).all()
    return has_ends and ends[-1] <= min(len(indices), len(X.data)) and _are_below(indices[: ends[-1]], columns)


def _are_below(indices, size):
    return len(indices) == 0 or indices.min() >= 0 and indices.max() < size


def check_sparse(X, *, n_features=None, name="X", owner="model"):
    """Rows of finite numbers from a sparse matrix, or from a dense array for a model on sparse rows."""
    if isinstance(X, Rows):
        return X
    if not is_sparse(X):
        X = check_points(X, n_features=n_features, dtype=np.dtype(float), name=name, owner=owner)
        rows, columns = np.nonzero(X)
        indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(X)))])
        return Rows(indptr, columns, X[rows, columns], X.shape[1])
    if X.dtype.kind not in "fiub":
        raise TypeError(f"{name} must hold numbers for this kernel. Got dtype {X.dtype} instead.")
    check_shape(X.shape, name)
    if n_features is not None and X.shape[1] != n_features:
        raise wrong_number(name, X.shape[1], owner, n_features)
    if X.shape[1] >= 2**31:
        raise ValueError(f"{name} has {X.shape[1]} features; expected fewer than 2**31.")
    X = to_csr(X, name)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    if not np.isfinite(X.data).all():
        index = int(np.argmin(np.isfinite(X.data)))
        row, column = int(np.searchsorted(X.indptr, index, side="right")) - 1, int(X.indices[index])
        raise ValueError(f"Input {name} contains NaN or infinity in row {row}, column {column}; expected finite "
                         "numbers.")
    return Rows(X.indptr, X.indices, X.data, X.shape[1])


# ---- Data frames and objects -----------------------------------------------------------------------------------------


def feature_names(X):
    """Names of the columns of a data frame, if they are strings; otherwise None."""
    columns = getattr(X, "columns", None)
    if columns is None or not len(columns) or not all(isinstance(name, str) for name in columns):
        return None
    return list(columns)


def check_feature_names(X, expected, owner):
    """A data frame must have the columns that the model has seen, in their order."""
    names = feature_names(X)
    if names is None or expected is None or names == expected:
        return
    new, missing = [n for n in names if n not in expected], [n for n in expected if n not in names]
    what = f"unseen at fit time: {new[:5]}" if new else f"missing: {missing[:5]}" if missing else "in another order"
    raise WrongFeatures("The feature names should match those that were passed during fit, in their order. "
                        f"{owner} got features {what}.")


def check_objects(X, *, name="X", empty=False):
    """A list of examples for a kernel of Python objects: the rows of an array or a data frame, or the items of a list.

    Arrays, lists, dicts, sets and bytearrays are copied, so that it does not matter what becomes of them; other
    objects are kept as they are.
    """
    if is_sparse(X):
        raise TypeError(f"{name} is sparse; expected a list of examples. Convert it with {name}.toarray().")
    refuse_masked(X, name)
    if hasattr(X, "columns"):  # a data frame
        X = np.asarray(X)
    is_list = hasattr(X, "__len__") and hasattr(X, "__getitem__") and not isinstance(X, (str, bytes, dict))
    if not is_list or getattr(X, "ndim", 1) == 0:
        raise TypeError(f"{name} must be a list of examples. Got {type(X).__name__} instead.")
    if isinstance(X, np.ndarray) and X.dtype.kind == "f" and not np.isfinite(X).all():
        raise ValueError(f"Input {name} contains NaN or infinity; expected finite numbers.")
    if len(X) == 0 and not empty:
        raise ValueError(f"Found {name} with 0 sample(s) while a minimum of 1 is required.")
    return [copy.deepcopy(x) if isinstance(x, (np.ndarray, list, dict, set, bytearray)) else x for x in X]


# ---- Labels, targets and weights -------------------------------------------------------------------------------------


def check_length(y, n, name):
    if len(y) != n:
        raise ValueError(f"Found input variables with inconsistent numbers of samples: X has {n}, {name} has {len(y)}.")


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
        warnings.warn(f"A column-vector {name} was passed when a 1d array was expected. Use {name}.ravel().",
                      sklearn_class("DataConversionWarning", UserWarning), stacklevel=2)
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
    if y.dtype.kind not in "fiub" and not (y.dtype.kind == "O" and all(isinstance(v, numbers.Real) for v in y.ravel())):
        invalid = next((value for value in y.ravel().tolist() if not isinstance(value, numbers.Real)), None)
        raise TypeError(f"y must hold numbers for a regression loss. Got {invalid!r} of dtype {y.dtype} instead.")
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
