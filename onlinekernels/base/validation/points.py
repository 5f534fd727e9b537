"""Checks of examples: rows of numbers, dense or sparse, and lists of objects."""
import copy
import numbers

import numpy as np

from onlinekernels._core.formulas.vectorized import all_finite
from onlinekernels._core.points import Rows
from onlinekernels.base.validation.errors import WrongFeatures, wrong_number

__all__ = ["check_feature_names", "check_objects", "check_point", "check_points", "check_sparse", "refuse_masked"]


def check_points(X, *, n_features=None, dtype=None, name="X", finite=True, owner="model"):
    """X as a C-contiguous array of finite float32 or float64 numbers, shape (n, n_features).

    float32 stays float32 (unless `dtype` says otherwise), every other kind of number becomes float64.
    With ``finite=False`` the caller notices numbers that are not finite.
    """
    columns = getattr(X, "columns", None)  # of a data frame
    X = _as_array(X, name)
    if X.dtype.kind not in "fiub":
        X = numbers_from_objects(X, name, columns)
    if X.ndim != 2:
        hint = (
            " Reshape your data with X.reshape(-1, 1) if it has a single feature, or X.reshape(1, -1) if it"
            " is a single example." if X.ndim == 1 else ""
        )
        raise ValueError(f"Expected 2D array for {name}, got {X.ndim}D array instead.{hint}")
    if len(X) == 0:
        raise ValueError(f"Found array {name} with 0 sample(s) (shape={X.shape}) while a minimum of 1 is required.")
    if X.shape[1] == 0:
        raise ValueError(f"Found array {name} with 0 feature(s) (shape={X.shape}) while a minimum of 1 is required.")
    if n_features is not None and X.shape[1] != n_features:
        raise wrong_number(name, X.shape[1], owner, n_features)
    return numbers_of(X, dtype, name, finite, columns)


def check_point(x, *, n_features, dtype, owner="model"):
    """One example as a contiguous 1-d array of finite numbers."""
    x = _as_array(x, "x")
    if x.dtype.kind not in "fiub":
        x = numbers_from_objects(x, "x")
    if x.ndim != 1:
        raise ValueError(f"Expected 1D array for x, one example, got {x.ndim}D array instead.")
    if n_features is not None and len(x) != n_features:
        raise wrong_number("x", len(x), owner, n_features)
    return numbers_of(x, dtype, "x")


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
        place = int(np.argmin(np.isfinite(X)))
        what = "NaN" if np.isnan(X.flat[place]) else f"infinity or a value too large for {X.dtype}"
        raise ValueError(f"Input {name} contains {what}{_where(X, place, columns)}; expected finite numbers.")
    return X


def numbers_from_objects(X, name, columns=None):
    """Python numbers in an object array; everything else is refused."""
    if X.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {name} must hold real numbers, got dtype {X.dtype}.")
    if X.dtype.kind == "O":
        try:
            if not all(isinstance(value, numbers.Real) for value in X.ravel()):
                raise TypeError
            return X.astype(np.float64)
        except OverflowError as error:
            raise ValueError(f"{name} contains a number too large for float64; expected finite numbers.") from error
        except (TypeError, ValueError) as error:
            place = next((i for i, value in enumerate(X.ravel()) if not isinstance(value, numbers.Real)), 0)
            raise TypeError(
                f"{name} must hold numbers for this kernel: an argument must be a string of digits or a number. Got "
                f"{X.flat[place]!r}{_where(X, place, columns)}, instead; {_what_to_do(X.flat[place])}."
            ) from error
    raise TypeError(
        f"{name} must hold numbers for this kernel. Got dtype {X.dtype} instead; strings and other objects "
        "need a kernel of their own: any callable k(x, z)."
    )


def _where(X, place, columns):
    """Where an entry of X is, in words."""
    if X.ndim != 2:
        return f" at index {place}" if X.ndim == 1 else ""
    row, column = divmod(place, X.shape[1])
    return f" in row {row}, column {column if columns is None else columns[column]!r}"


def _what_to_do(value):
    """How to make a number of what is none."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return "fill in what is missing, or leave these rows out"
    if isinstance(value, str):
        return "encode words as numbers, one column for each word, or give a kernel on objects, any callable k(x, z)"
    return "make numbers of it, or give a kernel on objects, any callable k(x, z)"


def refuse_masked(X, name):
    """Masked entries are missing, and NumPy would show what is behind the mask; ValueError for any."""
    if type(X) is np.ndarray:
        return
    parts = [X, *X] if isinstance(X, (list, tuple)) else [X]
    if any(isinstance(part, np.ma.MaskedArray) and np.ma.is_masked(part) for part in parts):
        raise ValueError(f"Input {name} contains masked entries; expected none. Fill them in, or leave these rows out.")


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
    """Whether what says where the entries of a sparse matrix are makes sense; True for formats that have no such arrays."""
    if getattr(X, "format", None) == "coo":
        return all(
            len(places) == len(X.data) and _are_below(places, size) for places, size in zip((X.row, X.col), X.shape)
        )
    if getattr(X, "format", None) not in ("csr", "csc", "bsr"):
        return True
    rows, columns = X.shape if X.format != "csc" else X.shape[::-1]
    if X.format == "bsr":
        rows, columns = rows // X.data.shape[1], columns // X.data.shape[2]
    ends, places = np.asarray(X.indptr), np.asarray(X.indices)
    return (
        ends.shape == (rows + 1,)
        and ends[0] == 0
        and (ends[1:] >= ends[:-1]).all()
        and ends[-1] <= min(len(places), len(X.data))
        and _are_below(places[: ends[-1]], columns)
    )


def _are_below(places, size):
    return len(places) == 0 or places.min() >= 0 and places.max() < size


def check_sparse(X, *, n_features=None, name="X", owner="model"):
    """Rows of finite numbers from a sparse matrix, or from a dense array for a model on sparse rows."""
    if isinstance(X, Rows):
        return X
    if not is_sparse(X):
        X = check_points(X, n_features=n_features, dtype=np.dtype(float), name=name, owner=owner)
        rows, columns = np.nonzero(X)
        indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(X)))])
        return Rows(indptr, columns, X[rows, columns], X.shape[1])
    if X.ndim != 2:
        raise ValueError(f"Expected 2D array for {name}, got {X.ndim}D array instead.")
    if X.dtype.kind not in "fiub":
        raise TypeError(f"{name} must hold numbers for this kernel. Got dtype {X.dtype} instead.")
    if 0 in X.shape:
        what = "sample(s)" if X.shape[0] == 0 else "feature(s)"
        raise ValueError(f"Found array {name} with 0 {what} (shape={X.shape}) while a minimum of 1 is required.")
    if n_features is not None and X.shape[1] != n_features:
        raise wrong_number(name, X.shape[1], owner, n_features)
    if X.shape[1] >= 2**31:
        raise ValueError(f"{name} has {X.shape[1]} features; expected fewer than 2**31.")
    X = to_csr(X, name)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    if not np.isfinite(X.data).all():
        place = int(np.argmin(np.isfinite(X.data)))
        row, column = int(np.searchsorted(X.indptr, place, side="right")) - 1, int(X.indices[place])
        raise ValueError(f"Input {name} contains NaN or infinity in row {row}, column {column}; expected finite numbers.")
    return Rows(X.indptr, X.indices, X.data, X.shape[1])


def check_one_row(x, name="x"):
    """A sparse matrix of one row."""
    if x.ndim == 2 and x.shape[0] != 1:
        raise ValueError(f"{name} must be one example. Got a sparse matrix of {x.shape[0]} rows instead.")
    return x


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
    raise WrongFeatures(
        f"The feature names should match those that were passed during fit, in their order. {owner} got features {what}."
    )


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
    if isinstance(X, (str, bytes, dict)) or not hasattr(X, "__len__") or not hasattr(X, "__getitem__"):
        raise TypeError(f"{name} must be a list of examples. Got {type(X).__name__} instead.")
    if isinstance(X, np.ndarray) and X.ndim == 0:
        raise TypeError(f"{name} must be a list of examples. Got an array of no dimension instead.")
    if isinstance(X, np.ndarray) and X.dtype.kind == "f" and not np.isfinite(X).all():
        raise ValueError(f"Input {name} contains NaN or infinity; expected finite numbers.")
    if len(X) == 0 and not empty:
        raise ValueError(f"Found {name} with 0 sample(s) while a minimum of 1 is required.")
    return [_own(x) for x in X]


def _own(x):
    """An example that nobody else can change, if it is of a kind that can change."""
    if isinstance(x, np.ndarray):
        return np.array(x)
    return copy.deepcopy(x) if isinstance(x, (list, dict, set, bytearray)) else x
