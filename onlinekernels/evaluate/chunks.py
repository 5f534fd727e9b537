"""Streams in all their forms, as chunks of examples."""
import copy
from collections.abc import Iterable

import numpy as np

from onlinekernels.evaluate.checks import is_series
from onlinekernels.labels import label_column
from onlinekernels.validation import check_length


def opened(stream):
    """A stream as (X, y) or as an iterable of chunks."""
    if callable(stream):
        stream = stream()
    if isinstance(stream, np.ndarray):
        stream = stream, None
    if isinstance(stream, tuple):
        return _pair(stream)
    if not is_series(stream):
        raise TypeError(
            "stream must be (X, y), an array X, or an iterable of such chunks. Got "
            f"{type(stream).__name__} instead."
        )
    return stream


def _pair(chunk):
    """(X, y) of a chunk; y is None where there are no labels."""
    if isinstance(chunk, np.ndarray):
        return chunk, None
    if not isinstance(chunk, (tuple, list)) or len(chunk) != 2:
        length = f" of length {len(chunk)}" if hasattr(chunk, "__len__") else ""
        raise TypeError(f"stream must give pairs (X, y) or arrays X. Got a {type(chunk).__name__}{length} instead.")
    X, y = chunk
    X = X if hasattr(X, "__len__") else np.asarray(X)
    if y is not None:
        y = label_column(y, len(X))
        check_length(y, len(X), "y")
    return X, y


def pieces(stream, chunk):
    """Pieces (X, y) that end wherever a record is due: after `chunk` examples, and again, and again."""
    due = chunk
    for X, y in [stream] if isinstance(stream, tuple) else map(_pair, stream):
        begin = 0
        while begin < len(X):
            end = min(begin + due, len(X))
            yield X[begin:end], None if y is None else y[begin:end]
            due = due - (end - begin) or chunk
            begin = end


def two_labels(y):
    """The labels in y if there are two, so that a first chunk need not show both; otherwise None."""
    if y is None:
        return None
    try:
        seen = list(dict.fromkeys(np.asarray(y).tolist()))
    except TypeError:
        return None
    return seen if len(seen) == 2 else None


def kept(stream):
    """A stream that can be used more than once, and sent to other processes if its chunks can."""
    if isinstance(stream, (tuple, np.ndarray)) or callable(stream) or not isinstance(stream, Iterable):
        return stream
    return [copy.deepcopy(chunk) for chunk in stream]  # a reader may use its arrays again
