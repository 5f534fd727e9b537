"""What a label is: how labels are read, compared, and given back as they came.

Two labels are the same if Python says that they are equal: 1, 1.0 and True are one label, "1" is another.  NumPy
would merge more than that (whole numbers beyond 2**53 become floats, trailing zero characters get lost, nanoseconds
become plain numbers), so an array of labels is of a plain kind only if it gives back the very labels that went in;
otherwise it is an array of objects.
"""
import numpy as np

from onlinekernels.base.validation import check_column, refuse_masked

# What an array of labels of one type must be.
PLAIN_KINDS = {bool: "b", int: "iu", float: "f", complex: "c", str: "U", bytes: "S", np.datetime64: "M",
               np.timedelta64: "m"}


# ---- Reading -----------------------------------------------------------------------------------


def label_column(y, n, name="y"):
    """n labels as a 1-d array that keeps what each of them is; ValueError if one is missing.

    >>> label_column([2**63 + 1, -1], 2).tolist()
    [9223372036854775809, -1]
    >>> label_column(["a", "a\\0"], 2).tolist()
    ['a', 'a\\x00']
    """
    y = column(y, n, name)
    if y.dtype.kind in "fc" and not np.isfinite(y).all():
        raise ValueError(f"Input {name} contains NaN or infinity; expected labels.")
    if y.dtype.kind in "mM" and np.isnat(y).any():
        raise ValueError(f"Input {name} contains NaT, not a time; expected labels.")
    if y.dtype == object:
        for i, label in enumerate(y):
            if _is_missing(label):
                raise ValueError(f"Input {name} contains NaN or None at index {i}; expected labels.")
            try:
                hash(label)
            except TypeError as error:
                raise ValueError(f"{name} must hold hashable labels. Got {label!r} instead.") from error
    return y


def column(y, n, name="y"):
    """n entries as a 1-d array that keeps what each of them is: mixed kinds, tuples and the like stay objects."""
    refuse_masked(y, name)
    if isinstance(y, (list, tuple)):
        y = [label[()] if isinstance(label, np.ndarray) and label.ndim == 0 else label for label in y]
        is_nested = any(isinstance(label, (list, np.ndarray)) for label in y)
        y = check_column(np.array(y, dtype=object) if is_nested else object_array(y), n, name)
        return _array_of([plain(label) for label in y])
    y = check_column(y, n, name)
    if y.dtype.kind == "V":  # rows of a structured array
        return object_array(y.tolist())
    return y.astype(object) if y.dtype.kind == "T" else y  # numpy's strings of any length


def _array_of(labels):
    """Labels as an array; numbers of several types are of the widest if each of them can be."""
    kinds = {type(label) for label in labels}
    if len(kinds) > 1 and kinds <= {bool, int, float}:
        array = np.asarray(labels)
        if array.dtype.kind in ("f" if float in kinds else "biu") and array.tolist() == labels:
            return array
    return label_array(labels)


def label_array(labels):
    """Labels of one plain kind as an ordinary array if it gives back the same; otherwise an array of objects."""
    kinds = {type(label) for label in labels}
    one_unit = len({getattr(label, "dtype", None) for label in labels}) == 1  # others may overflow
    if len(kinds) == 1 and one_unit and (kind := PLAIN_KINDS.get(*kinds)):
        array = np.array(labels)
        if array.dtype.kind in kind and as_list(array) == labels:
            return array
    return object_array(labels)


def object_array(labels):
    """An array of objects, whatever NumPy would make of them."""
    array = np.empty(len(labels), dtype=object)
    for i, label in enumerate(labels):
        array[i] = label
    return array


def as_list(labels):
    """Labels of an array as Python has them; NumPy's moments stay, since a number of nanoseconds is none."""
    if labels.dtype.kind == "O":
        return [plain(label) for label in labels]
    return list(labels) if labels.dtype.kind in "mM" else labels.tolist()


def plain(label):
    """A number or string of NumPy's as one of Python's."""
    is_plain = isinstance(label, np.generic) and not isinstance(label, (np.datetime64, np.timedelta64, np.void))
    return label.item() if is_plain else label


def _is_missing(label):
    """Whether a label is None, NaN, NaT, or pandas' idea of these."""
    try:
        return label is None or bool(label != label)
    except (TypeError, ValueError, ArithmeticError):  # pandas.NA; an array, which is no label either; a signalling NaN
        return not isinstance(label, np.ndarray)


# ---- Order and words ---------------------------------------------------------------------------


def distinct_labels(labels, known=()):
    """Known labels and others, each once, in order of appearance."""
    return list(dict.fromkeys([*known, *labels]))


def sorted_indices(labels):
    """Indices of labels in sorted order; None if they have none."""
    try:
        return sorted(range(len(labels)), key=labels.__getitem__)
    except (TypeError, ValueError, ArithmeticError):  # each kind has its own way to refuse a comparison with another
        return None


def shown(labels):
    """An array of labels in words."""
    return shown_list(as_list(labels))


def shown_list(labels, most=5):
    """The first labels of a list, in words."""
    return ", ".join(repr(label) for label in labels[:most]) + (", ..." if len(labels) > most else "")


def count_labels(labels):
    """How many different labels there are; 0 for what a later check will refuse.

    >>> count_labels(["a", "b", "a"]), count_labels(None)
    (2, 0)
    """
    try:
        labels = list(labels) if isinstance(labels, (set, frozenset, range, dict)) else labels
        return len(set(as_list(label_column(labels, len(labels)))))
    except (TypeError, ValueError):
        return 0
