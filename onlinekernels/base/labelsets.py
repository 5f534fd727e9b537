"""Label sets: between what users call their classes and the numbers that losses see."""
import functools

import numpy as np

from onlinekernels.base.labelvalues import (
    as_list, distinct_labels, label_array, label_column, object_array, plain, shown, shown_list, sorted_indices,
)


def first_among_equals(probabilities, chosen):
    """Probabilities in which the label that scores choose is the first of the largest, as rounding may not leave it.

    >>> first_among_equals(np.array([[0.5, 0.5]]), np.array([1])).argmax(axis=1)
    array([1])
    """
    largest = np.take_along_axis(probabilities, chosen[:, None], axis=1)
    earlier = np.arange(probabilities.shape[1]) < chosen[:, None]
    others = np.minimum(probabilities, largest)
    return np.where(earlier & (others == largest), np.nextafter(largest, 0.0), others)


def among_seen(scores, counts):
    """Scores with minus infinity for labels not seen yet; labels are seen in the order of their columns."""
    return np.where(np.arange(scores.shape[1]) < counts[:, None], scores, -np.inf)


def refuse_continuous(y):
    """Numbers that are not whole are targets of a regression, not labels; ValueError for any."""
    if y.dtype.kind == "f" and (y != np.floor(y)).any():
        raise ValueError("Unknown label type: continuous. y must hold labels for a classification loss. Got "
                         f"{shown(y)}. "
                         'To predict numbers use OnlineKernelRegressor, or a regression loss such as "squared".')


class LabelSet:
    """Labels and the targets that stand for them; a subclass says which, and what scores choose."""

    _targets: dict[object, float] = {}  # of each label
    _short = _targets  # those that need no longer look

    def encode_one(self, y):
        """Target of one label, or None if that takes a longer look."""
        try:
            return self._short.get(y)
        except TypeError:
            return None

    def indices_of(self, labels):
        """Targets of a list of labels, None for unknown ones."""
        return [self._targets.get(label) for label in labels]

    def _looked_up(self, y):
        """Targets of an array of labels, None for unknown ones."""
        return self.indices_of(as_list(y))

    def agree(self, scores, y):
        """Whether the labels that scores choose are those of an array; a label that is not known never is."""
        return np.array(self._looked_up(y), dtype=float) == self.chosen(scores)


def classes_column(classes):
    """The argument `classes` as an array: any collection of labels."""
    if isinstance(classes, (set, frozenset, range, dict)):
        classes = list(classes)
    if not hasattr(classes, "__len__") or isinstance(classes, (str, bytes)) or getattr(classes, "shape", None) == ():
        raise ValueError(f"classes must be a list of labels. Got {classes!r} instead.")
    return label_column(classes, len(classes), "classes")


def restored_list(labels):
    """Labels that may come from a file."""
    if not isinstance(labels, list):
        raise ValueError("the labels are not a list")
    return as_list(label_column(object_array(labels), len(labels), "the list of labels"))


class BinaryLabels(LabelSet):
    """Two labels; the first in sorted order is -1, the second +1.

    Immutable: `encode` returns the targets and the labels to go on with, so that a refused call changes nothing.

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
        self._targets = self._short = dict(zip(self.order, (-1.0, 1.0)))
        if negative_is_open:
            self._short = {1: 1.0}  # any other label decides which set it is

    @classmethod
    def first_seen(cls, y, classes=None):
        """The labels that `classes` names or, without it, that the first y shows."""
        if classes is not None:
            classes = _in_order(classes_column(classes), "classes")
            if len(classes) != 2:
                raise ValueError("classes must hold two different labels for a two-class loss. Got "
                                 f"{len(classes)}: {shown(classes)}.")
            return cls(classes)
        seen = _in_order(y, "y")
        if len(seen) == 2:
            return cls(seen)
        if len(seen) > 2:
            refuse_continuous(seen)
            raise ValueError("Only binary classification is supported by a two-class loss: y must hold two labels. Got "
                             f'{len(seen)}: {shown(seen)}. For many classes use a loss such as "multiclass_hinge".')
        label = seen[0]
        if seen.dtype.kind == "b":
            return cls(np.array([False, True]))
        if seen.dtype.kind in "iuf" and label in (-1, 0, 1):
            if label == 1 and seen.dtype.kind != "u":
                return cls(np.array([-1, 1], dtype=seen.dtype), negative_is_open=True)
            return cls(np.array([-1, 1] if label == -1 else [0, 1], dtype=seen.dtype))
        raise ValueError(f"y holds one class only, {shown(seen)}, and two are needed: pass classes=[...] with both "
                         "labels on the first call. (Labels -1/1, 0/1 and booleans need no classes.)")

    def encode(self, y):
        """(targets -1.0 or +1.0, labels to go on with); ValueError for an unknown label."""
        if len(y) == 1:
            target = self.encode_one(as_list(y)[0])
            if target is not None:
                return np.array([target]), self
        if self.negative_is_open:
            zero, negative = _holds(y, 0), _holds(y, -1)
            if zero != negative:
                return self.resolved(0 if zero else -1).encode(y)
        targets = self._looked_up(y)
        unknown = np.isnan(targets)
        if unknown.any():
            raise ValueError(f"y contains an unknown label, {shown(y[unknown][:1])}; expected one of "
                             f"{shown(self.classes)}.")
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

    def resolved(self, negative):
        """The labels, now that the counterpart of 1 is known."""
        return BinaryLabels(np.array([negative, 1], dtype=self.classes.dtype))

    def as_learned(self, before, targets, n_seen):
        """These labels, or those from before if no target that was learned tells which they are."""
        is_open = before is not None and before.negative_is_open
        return before if is_open and not (targets < 0).any() else self

    def agreeing_with(self, classes):
        """These labels, or those that `classes` names; None if they differ."""
        named = distinct_labels(as_list(classes_column(classes)))
        if self.negative_is_open and set(named) in ({-1, 1}, {0, 1}):
            return self.resolved(min(named))
        return self if set(named) == set(self._targets) else None

    def state(self):
        """Plain values from which `restore` makes the same labels."""
        return {"classes": self.order, "dtype": self.classes.dtype.str, "open": self.negative_is_open}

    @classmethod
    def restore(cls, state):
        labels = restored_list(state["classes"])
        if len(labels) != 2 or len(distinct_labels(labels)) != 2:
            raise ValueError("there are not two different labels")
        is_open = state["open"]
        if type(is_open) is not bool or is_open and labels != [-1, 1]:
            raise ValueError("the labels cannot be open")
        return cls(_array_of_type(labels, state["dtype"]), is_open)


def _holds(y, number):
    """Whether a column holds a small whole number, also where numpy has no such comparison."""
    return number in as_list(y) if y.dtype.kind not in "biuf" else bool((y == number).any())


def _in_order(y, name):
    """Distinct labels as a sorted array."""
    if y.dtype != object:
        seen = np.unique(y)
        return label_array(as_list(seen)) if seen.dtype.kind in "US" else seen  # no wider than they are
    seen = distinct_labels(as_list(y))
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


class ManyLabels(LabelSet):
    """Any number of hashable labels; new ones may join unless the set is fixed.

    Immutable, like `BinaryLabels`. A target is the label's index in the order of appearance, or in
    the order of `classes` where they were given. Users see them sorted; if they cannot be compared, in that order.

    >>> labels = ManyLabels.first_seen(np.array(["b", "a", "b"]))
    >>> targets, labels = labels.encode(np.array(["b", "a", "c"]))
    >>> targets.tolist(), labels.classes.tolist()
    ([0.0, 1.0, 2.0], ['a', 'b', 'c'])
    """

    def __init__(self, order, fixed):
        self.order = order
        self.fixed = fixed
        self._targets = self._short = {label: float(i) for i, label in enumerate(order)}
        self._table = None  # targets of labels that are numbers 0, 1, 2, ..., by label, NaN for none
        if order and all(type(label) is int and 0 <= label < 4 * len(order) for label in order):
            self._table = np.full(max(order) + 1, np.nan)
            self._table[order] = np.arange(len(order))

    @classmethod
    def first_seen(cls, y, classes=None, structure=None):
        """No labels yet; or those of `classes`, or of a label structure, and no others."""
        if classes is not None:
            classes = distinct_labels(as_list(classes_column(classes)))
            if len(classes) < 2:
                raise ValueError(f"classes must hold at least two different labels. Got {shown_list(classes)}.")
        if structure is not None:
            known = structure.names()
            if classes is None:
                return cls([plain(label) for label in known], True)
            nodes = set(structure.nodes())
            missing = [label for label in classes if label not in nodes]
            if missing:
                raise ValueError(f"classes contains {missing[0]!r}, which is not in {type(structure).__name__}.")
        if classes is not None:
            return cls([classes[i] for i in sorted_indices(classes) or range(len(classes))], True)
        return cls([], False)

    @functools.cached_property
    def class_order(self):
        """Targets of the labels in the order that users see."""
        class_order = sorted_indices(self.order)
        return np.arange(len(self.order)) if class_order is None else np.array(class_order, dtype=np.intp)

    @functools.cached_property
    def classes(self):
        """The labels as an array, in the order that users see."""
        return label_array([self.order[i] for i in self.class_order])

    def encode(self, y):
        """(indices, labels to go on with); ValueError for a label outside a fixed set."""
        targets = self._at_once(y)
        if targets is not None:
            return targets, self
        refuse_continuous(y)
        targets = self._looked_up(y)
        if None not in targets:
            return np.array(targets), self
        labels = as_list(y)
        if self.fixed:
            unknown = labels[targets.index(None)]
            raise ValueError(f"y contains an unknown label, {unknown!r}; expected one of {shown_list(self.order)}.")
        return ManyLabels(distinct_labels(labels, self.order), False).encode(y)

    def _at_once(self, y):
        """Targets of labels that are small numbers, all at once; None for others."""
        if self._table is None or y.dtype.kind not in "iuf" or not len(y):
            return None
        if not 0 <= y.min() <= y.max() < len(self._table):
            return None
        codes = y.astype(np.intp)
        targets = self._table[codes]
        return None if (codes != y).any() or np.isnan(targets).any() else targets

    def first_of_best(self, scores):
        """Place of the largest score in the order that users see; among equals the first."""
        if scores.shape[1] == 0:
            raise ValueError("No label has been learned yet.")
        return scores[:, self._shown(scores)].argmax(axis=1)

    def _shown(self, scores):
        """Columns of scores in the order that users see; another thread may be about to add labels."""
        return self.class_order[self.class_order < scores.shape[1]]

    def chosen(self, scores):
        """The target with the largest score; among equals the first in the order that users see."""
        return self._shown(scores)[self.first_of_best(scores)]

    def decode(self, scores):
        """The label with the largest score; among equals the first of `classes`."""
        return self.classes[np.flatnonzero(self.class_order < scores.shape[1])[self.first_of_best(scores)]]

    def decode_before(self, scores, before):
        """`decode` among the first `before` labels, those seen before each example; None where there were none."""
        if (before > 0).all():
            return self.decode(among_seen(scores, before))
        answers = object_array(as_list(self.decode(among_seen(scores, before))))
        answers[before == 0] = None
        return answers

    def n_seen_before(self, targets, known):
        """How many labels were seen before each of some examples; `known` before the first."""
        if self.fixed:
            return np.full(len(targets), len(self.order))
        reached = np.maximum(np.maximum.accumulate(targets.astype(np.intp) + 1), known)
        return np.concatenate([[known], reached[:-1]])

    def as_learned(self, before, targets, n_seen):
        """The labels that were seen."""
        return self if self.fixed or n_seen == len(self.order) else ManyLabels(self.order[:n_seen], False)

    def agreeing_with(self, classes):
        """These labels, or None if `classes` names others."""
        return self if set(self._targets) == set(as_list(classes_column(classes))) else None

    def state(self):
        """Plain values from which `restore` makes the same labels."""
        return {"order": list(self.order), "fixed": self.fixed}

    @classmethod
    def restore(cls, state):
        order, fixed = restored_list(state["order"]), state["fixed"]
        if len(distinct_labels(order)) != len(order):
            raise ValueError("a label appears twice")
        if type(fixed) is not bool:
            raise ValueError("it does not say whether the labels are fixed")
        return cls(order, fixed)
