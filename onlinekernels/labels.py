"""Labels: between what users call their classes and the numbers that losses see."""
import numpy as np

from onlinekernels.validation import check_column

__all__ = ["BinaryLabels"]


class BinaryLabels:
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
        # Only the label 1 has been seen: its counterpart may turn out to be -1 or 0.
        self.negative_is_open = negative_is_open
        self._targets = dict(zip(classes.tolist(), (-1.0, 1.0)))

    @classmethod
    def first_seen(cls, y, classes=None):
        """The labels that `classes` names or, without it, that the first y shows."""
        if classes is not None:
            classes = _distinct(check_column(classes, len(classes), "classes"))
            if len(classes) != 2:
                raise ValueError(
                    f"classes must hold two different labels for a two-class loss. Got {len(classes)}: "
                    f"{_shown(classes)}."
                )
            return cls(classes)
        seen = _distinct(y)
        if len(seen) == 2:
            return cls(seen)
        if len(seen) > 2:
            raise ValueError(f"y must hold two labels for a two-class loss. Got {len(seen)}: {_shown(seen)}.")
        label = seen[0]
        if seen.dtype.kind == "b":
            return cls(np.array([False, True]))
        if seen.dtype.kind in "iuf" and label in (-1, 0, 1):
            if label == 1 and seen.dtype.kind != "u":
                return cls(np.array([-1, 1], dtype=seen.dtype), negative_is_open=True)
            return cls(np.array([-1, 1] if label == -1 else [0, 1], dtype=seen.dtype))
        raise ValueError(
            f"y holds one class only, {_shown(seen)}, and two are needed: pass classes=[...] with both labels "
            "on the first call. (Labels -1/1, 0/1 and booleans need no classes.)"
        )

    def encode(self, y):
        """(targets -1.0 or +1.0, labels to go on with); ValueError for an unknown label."""
        if len(y) == 1:
            targets = self.encode_one(y[0])
            if targets is not None:
                return np.array([targets]), self
        with np.errstate(all="ignore"):
            positive, negative = y == self.classes[1], y == self.classes[0]
        if self.negative_is_open:
            zero = y == 0
            if zero.any() != negative.any():
                classes = np.array([0, 1] if zero.any() else [-1, 1], dtype=self.classes.dtype)
                return BinaryLabels(classes).encode(y)
        known = positive | negative
        if not np.all(known):
            unknown = y if np.ndim(known) == 0 else y[~known]
            raise ValueError(f"y contains an unknown label, {_shown(unknown[:1])}; expected one of {_shown(self.classes)}.")
        return np.where(positive, 1.0, -1.0), self

    def encode_one(self, y):
        """Target of one label, or None if it is not known yet."""
        try:
            return self._targets.get(y)
        except TypeError:
            return None

    def decode(self, scores):
        """Labels of scores: the second class where the score is positive."""
        return self.classes[(np.asarray(scores) > 0).astype(np.intp)]

    def state(self):
        """Plain values from which `restore` makes the same labels."""
        return {"classes": self.classes.tolist(), "dtype": self.classes.dtype.str, "open": self.negative_is_open}

    @classmethod
    def restore(cls, state):
        classes = np.array(state["classes"], dtype=np.dtype(state["dtype"]))
        if classes.shape != (2,):
            raise ValueError("there are not two labels")
        return cls(classes, bool(state["open"]))


def _distinct(y):
    """Sorted distinct labels; NaN is not a label."""
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ValueError("Input y contains NaN or infinity; expected labels.")
    try:
        return np.unique(y)
    except TypeError as error:
        raise ValueError("y must hold labels of one kind that can be sorted, such as numbers or strings.") from error


def _shown(labels, most=5):
    text = ", ".join(repr(label) for label in labels.tolist()[:most])
    return text + (", ..." if len(labels) > most else "")
