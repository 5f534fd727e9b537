"""Streams in all their forms, as chunks of examples."""
import copy
from collections.abc import Iterable, Mapping

import numpy as np

from onlinekernels.nouns.labelvalues import as_list, column, distinct_labels
from onlinekernels.validation import check_length, is_sparse, refuse_masked, to_csr


def is_series(thing):
    """Whether it can be gone through, item by item; text and dicts do not count."""
    return isinstance(thing, Iterable) and not isinstance(thing, (str, bytes, Mapping))


def n_rows(X):
    return X.shape[0] if hasattr(X, "shape") else len(X)


def opened(stream):
    """A stream as (X, y) or as an iterable of chunks."""
    if callable(stream):
        stream = stream()
    if isinstance(stream, list) and len(stream) == 2 and len(getattr(stream[1], "shape", ())) == 1:
        stream = tuple(stream)  # [X, y]: no chunk has one dimension
    if isinstance(stream, tuple) or _is_matrix(stream):
        return _pair(stream)
    if not is_series(stream):
        raise TypeError(
            "stream must be (X, y), an array X, or an iterable of such chunks. Got "
            f"{type(stream).__name__} instead."
        )
    return stream


def _is_matrix(thing):
    """Whether it is an array, a sparse matrix or a data frame."""
    return len(getattr(thing, "shape", ())) == 2


def _pair(chunk):
    """(X, y) of a chunk; y is None where there are no labels."""
    if _is_matrix(chunk):
        chunk = chunk, None
    if not isinstance(chunk, (tuple, list)) or len(chunk) != 2:
        length = f" of length {len(chunk)}" if hasattr(chunk, "__len__") else ""
        raise TypeError(f"stream must give pairs (X, y) or arrays X. Got a {type(chunk).__name__}{length} instead.")
    X, y = chunk
    if is_sparse(X):
        X = to_csr(X, "X")
    elif not hasattr(X, "__len__"):
        X = np.asarray(X)
    if y is not None:
        refuse_masked(y, "y")
        is_nested = isinstance(y, list) and len(y) and isinstance(y[0], (list, np.ndarray))
        several = _is_matrix(y) and y.shape[1] > 1 or is_nested
        y = np.asarray(y) if several else column(y, n_rows(X))
        check_length(y, n_rows(X), "y")
    return X, y


def pieces(stream, chunk):
    """Pieces (X, y) that end wherever a record is due: after `chunk` examples, and again, and again."""
    due = chunk
    for X, y in [stream] if isinstance(stream, tuple) else map(_pair, stream):
        begin = 0
        while begin < n_rows(X):
            end = min(begin + due, n_rows(X))
            yield rows_of(X, begin, end), None if y is None else y[begin:end]
            due = due - (end - begin) or chunk
            begin = end


def rows_of(X, begin, end):
    return X.iloc[begin:end] if hasattr(X, "iloc") else X[begin:end]  # a data frame may have an index of numbers


def two_labels(y):
    """The labels in y if there are two, so that a first chunk need not show both; otherwise None."""
    if y is None:
        return None
    try:
        seen = list(distinct_labels(as_list(y)).values())
    except (TypeError, ValueError):  # several targets; labels that the model will refuse
        return None
    return seen if len(seen) == 2 else None


def kept(stream):
    """A stream that can be used more than once, and sent to other processes if its chunks can."""
    if isinstance(stream, tuple) or _is_matrix(stream) or callable(stream) or not isinstance(stream, Iterable):
        return stream
    return [copy.deepcopy(chunk) for chunk in stream]  # a reader may use its arrays again
