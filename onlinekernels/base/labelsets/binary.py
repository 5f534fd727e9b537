"""Two labels, which are -1 and +1 to a loss."""
import numpy as np

from onlinekernels.base.labelsets.lookup import CONTINUOUS, LabelSet, checked_list, classes_column
from onlinekernels.base.labelvalues import (
    as_list,
    distinct_labels,
    is_continuous,
    keys_of,
    label_array,
    label_key,
    object_array,
    shown,
    sorted_indices,
)
from onlinekernels.base.validation import Argument, Sentence

__all__ = ["BinaryLabels"]


class BinaryLabels(LabelSet):
    """Two labels; the first in sorted order is -1, the second +1.

    Immutable: `encode` returns the targets and the labels to go on with, so that a refused call
    changes nothing.

    >>> labels = BinaryLabels.first_seen(np.array(["spam", "ham"]))
    >>> labels.classes
    array(['ham', 'spam'], dtype='<U4')
    >>> labels.encode(np.array(["spam"]))[0]
    array([1.])
    """

    def __init__(self, classes, negative_is_open=False):
        self.classes = classes
        self.order = as_list(classes)
        # Only the label 1 has been seen: its counterpart may turn out to be -1 or 0.
        self.negative_is_open = negative_is_open
        self._targets = self._short = dict(zip(map(label_key, self.order), (-1.0, 1.0)))
        if negative_is_open:
            self._short = {1: 1.0}  # any other label settles the question

    @classmethod
    def first_seen(cls, y, classes=None):
        """The labels that `classes` names or, without it, that the first y shows."""
        if classes is not None:
            classes = _in_order(classes_column(classes), "classes")
            if len(classes) != 2:
                raise ValueError(
                    f"classes must hold two different labels for a two-class loss. Got {len(classes)}: "
                    f"{shown(classes)}."
                )
            return cls(classes)
        seen = _in_order(y, "y")
        if len(seen) == 2:
            return cls(seen)
        if len(seen) > 2:
            if is_continuous(seen):
                raise ValueError(CONTINUOUS.format(shown(seen)))
            raise ValueError(
                "Only binary classification is supported by a two-class loss: y must hold two labels. Got "
                f'{len(seen)}: {shown(seen)}. For many classes use a loss such as "multiclass_hinge".'
            )
        label = seen[0]
        if seen.dtype.kind == "b":
            return cls(np.array([False, True]))
        if seen.dtype.kind in "iuf" and label in (-1, 0, 1):
            if label == 1 and seen.dtype.kind != "u":
                return cls(np.array([-1, 1], dtype=seen.dtype), negative_is_open=True)
            return cls(np.array([-1, 1] if label == -1 else [0, 1], dtype=seen.dtype))
        raise ValueError(Sentence(
            f"y holds one class only, {shown(seen)}, and two are needed: pass ", Argument("classes", "[...]"),
            " with both labels on the first call. (Labels -1/1, 0/1 and booleans need no classes.)"
        ))

    def label_of(self, target):
        """The label of a target."""
        return self.order[target > 0]

    def encode(self, y):
        """(targets -1.0 or +1.0, labels to go on with); ValueError for an unknown label."""
        if len(y) == 1:
            target = self.encode_one(as_list(y)[0])
            if target is not None:
                return np.array([target]), self
        if self.negative_is_open:
            zero, negative = _holds(y, 0), _holds(y, -1)
            if zero != negative:
                return self.settled(0 if zero else -1).encode(y)
        targets = self._looked_up(y)
        unknown = np.isnan(targets)
        if unknown.any():
            raise ValueError(
                f"y contains an unknown label, {shown(y[unknown][:1])}; expected one of {shown(self.classes)}."
            )
        return targets, self

    def _looked_up(self, y):
        """Targets of labels, NaN for unknown ones."""
        if y.dtype == self.classes.dtype and y.dtype != object or y.dtype.kind == self.classes.dtype.kind == "U":
            negative, positive = (y == label for label in self.classes)
            return np.where(positive, 1.0, np.where(negative, -1.0, np.nan))
        return np.array(super()._looked_up(y), dtype=float)

    def chosen(self, scores):
        """Targets that scores choose: +1 where they are positive."""
        return np.where(scores[:, 0] > 0, 1.0, -1.0)

    def decode(self, scores):
        """Labels of scores: the second class where the score is positive."""
        return self.classes[(scores[:, 0] > 0).astype(np.intp)]

    def settled(self, negative):
        """The labels, now that the counterpart of 1 is known."""
        return BinaryLabels(np.array([negative, 1], dtype=self.classes.dtype))

    def as_learned(self, before, targets, joined):
        """These labels, or those from before if no target that was learned has settled the question."""
        is_open = before is not None and before.negative_is_open
        return before if is_open and not (targets < 0).any() else self

    def agreeing_with(self, classes):
        """These labels, or the ones that `classes` settles; None if they differ."""
        named = distinct_labels(as_list(classes_column(classes)))
        if self.negative_is_open and set(named) in ({-1, 1}, {0, 1}):
            return self.settled(min(named))
        return self if set(named) == set(self._targets) else None

    def state(self):
        """Plain values from which `restore` makes the same labels."""
        return {"classes": self.order, "dtype": self.classes.dtype.str, "open": self.negative_is_open}

    @classmethod
    def restore(cls, state):
        labels = checked_list(state["classes"])
        if len(labels) != 2 or len(distinct_labels(labels)) != 2:
            raise ValueError("there are not two different labels")
        is_open = state["open"]
        if type(is_open) is not bool or is_open and labels != [-1, 1]:
            raise ValueError("the labels cannot be open")
        return cls(_array_of_type(labels, state["dtype"]), is_open)


def _holds(y, number):
    """Whether a column holds a small whole number, also where numpy has no such comparison."""
    return number in keys_of(y) if y.dtype.kind not in "biuf" else bool((y == number).any())


def _in_order(y, name):
    """Distinct labels as a sorted array."""
    if y.dtype != object:
        seen = np.unique(y)
        return label_array(as_list(seen)) if seen.dtype.kind in "US" else seen  # no wider than they are
    seen = list(distinct_labels(as_list(y)).values())
    order = sorted_indices(seen)
    if order is None:
        raise ValueError(f"{name} must hold labels of one kind that can be sorted, such as numbers or strings.")
    return object_array([seen[i] for i in order])


def _array_of_type(labels, name):
    """Two labels as an array of a type that a file names."""
    array = object_array(labels)
    if name == array.dtype.str:
        return array
    dtype = np.dtype(name) if isinstance(name, str) and len(name) < 16 else None
    if dtype is not None and dtype.kind in "US":
        array = label_array(labels)  # as wide as they are, whatever the file says
        fits = array.dtype.kind == dtype.kind
    else:
        fits = dtype is not None and dtype.kind in "biufcmM" and dtype.shape == () and dtype.fields is None
        array = np.array(labels, dtype=dtype) if fits else array
    if not fits or as_list(array) != labels:
        raise ValueError(f"the labels are not of type {name!r}")
    return array
