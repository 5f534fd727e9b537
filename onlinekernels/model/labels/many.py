"""Any number of labels, which are 0, 1, 2, ... to a loss, in the order of their appearance."""
import numpy as np

from onlinekernels.model.labels.choosing import among_joined
from onlinekernels.model.labels.lookup import CONTINUOUS, LabelSet, checked_list, classes_column
from onlinekernels.nouns.labelvalues import (
    as_list,
    distinct_labels,
    is_continuous,
    keys_of,
    label_array,
    label_key,
    object_array,
    plain,
    shown,
    shown_list,
    sorted_indices,
)

__all__ = ["ManyLabels"]


class ManyLabels(LabelSet):
    """Any number of hashable labels; new ones may join unless the set is fixed.

    Immutable, like `BinaryLabels`. A target is the label's index in the order of appearance, or in
    the order of `classes` where they were given. Users may see them in another order, `display`.

    >>> labels = ManyLabels.first_seen(np.array(["b", "a", "b"]))
    >>> targets, labels = labels.encode(np.array(["b", "a", "c"]))
    >>> targets.tolist(), labels.classes.tolist()
    ([0.0, 1.0, 2.0], ['b', 'a', 'c'])
    """

    def __init__(self, order, fixed, display=None):
        self.order = order
        self.fixed = fixed
        self.display = display
        self._targets = self._short = {label_key(label): float(i) for i, label in enumerate(order)}
        is_other = display is not None and list(display) != list(range(len(order)))
        self._shown = np.array(display, dtype=np.intp) if is_other else None
        self._table = _table(order)
        self._classes = None

    @classmethod
    def first_seen(cls, y, classes=None, structure=None):
        """No labels yet; or those of `classes`, or of a label structure, and no others."""
        if classes is not None:
            classes = list(distinct_labels(as_list(classes_column(classes))).values())
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
            order = sorted_indices(classes)
            return cls(classes if order is None else [classes[i] for i in order], True)
        return cls([], False)

    @property
    def classes(self):
        """The labels as an array, in the order that users see."""
        if self._classes is None:
            display = range(len(self.order)) if self.display is None else self.display
            self._classes = label_array([self.order[i] for i in display])
        return self._classes

    def in_sorted_order(self):
        """The same labels, shown in sorted order where there is one."""
        display = sorted_indices(self.order)
        return self if display is None else ManyLabels(self.order, self.fixed, display)

    def label_of(self, target):
        """The label of a target."""
        return self.order[int(target)]

    def encode(self, y):
        """(indices, labels to go on with); ValueError for a label outside a fixed set."""
        targets = self._at_once(y)
        if targets is not None:
            return targets, self
        if is_continuous(y):
            raise ValueError(CONTINUOUS.format(shown(y)))
        targets = self._looked_up(y)
        if None not in targets:
            return np.array(targets), self
        labels = as_list(y)
        if self.fixed:
            unknown = labels[targets.index(None)]
            raise ValueError(f"y contains an unknown label, {unknown!r}; expected one of {shown_list(self.order)}.")
        order = list(distinct_labels(labels, self.order).values())
        display = None if self.display is None else [*self.display, *range(len(self.order), len(order))]
        return ManyLabels(order, False, display).encode(y)

    def _at_once(self, y):
        """Targets of labels that are small numbers, as members of ensembles have, without a look at each; None for others."""
        if self._table is None or y.dtype.kind not in "iuf" or not len(y) or not 0 <= y.min() <= y.max() < len(self._table):
            return None
        places = y.astype(np.intp)
        if y.dtype.kind == "f" and (places != y).any():
            return None
        targets = self._table[places]
        return None if np.isnan(targets).any() else targets

    def first_of_best(self, scores):
        """Place of the largest score in the order that users see; among equals the first."""
        if scores.shape[1] == 0:
            raise ValueError("No label has been learned yet.")
        if self._shown is None:
            return scores.argmax(axis=1)
        if len(self._shown) == scores.shape[1]:
            return scores[:, self._shown].argmax(axis=1)
        known = np.flatnonzero(self._shown < scores.shape[1])  # another thread may be about to add labels
        return known[scores[:, self._shown[known]].argmax(axis=1)]

    def chosen(self, scores):
        """The target with the largest score; among equals the first in the order that users see."""
        best = self.first_of_best(scores)
        return best if self._shown is None else self._shown[best]

    def best_of_one(self, scores):
        """Index of the label with the largest of some scores, 1-d; among equals the first of `classes`."""
        best = int(scores.argmax())
        if self._shown is None or np.count_nonzero(scores == scores[best]) == 1:
            return best
        return next(place for place in self.display if place < len(scores) and scores[place] == scores[best])

    def decode(self, scores):
        """The label with the largest score; among equals the first of `classes`."""
        return self.classes[self.first_of_best(scores)]

    def decode_before(self, scores, before):
        """`decode` among the first `before` labels, those that had joined at each example; None where there were none."""
        if (before > 0).all():
            return self.decode(among_joined(scores, before))
        answers = object_array(as_list(self.decode(among_joined(scores, before))))
        answers[before == 0] = None
        return answers

    def joined_before(self, targets, known):
        """How many labels had joined before each of some examples; `known` had before the first."""
        if self.fixed:
            return np.full(len(targets), len(self.order))
        reached = np.maximum(np.maximum.accumulate(targets.astype(np.intp) + 1), known)
        return np.concatenate([[known], reached[:-1]])

    def as_learned(self, before, targets, joined):
        """The labels that have joined."""
        if self.fixed or joined == len(self.order):
            return self
        display = None if self.display is None else [place for place in self.display if place < joined]
        return ManyLabels(self.order[:joined], False, display)

    def agreeing_with(self, classes):
        """These labels, or None if `classes` names others."""
        return self if set(self._targets) == set(keys_of(classes_column(classes))) else None

    def state(self):
        """Plain values from which `restore` makes the same labels."""
        return {"order": list(self.order), "fixed": self.fixed, "display": self.display}

    @classmethod
    def restore(cls, state):
        order, fixed, display = checked_list(state["order"]), state["fixed"], state["display"]
        if len(distinct_labels(order)) != len(order):
            raise ValueError("a label appears twice")
        if type(fixed) is not bool:
            raise ValueError("it does not say whether the labels are fixed")
        if display is not None:
            if any(type(place) is not int for place in display) or sorted(display) != list(range(len(order))):
                raise ValueError("the labels are not shown once each")
        return cls(order, fixed, display)


def _table(order):
    """Targets of labels that are numbers 0, 1, 2, ..., by label, NaN for none; None where labels are others, or few of these."""
    if not order or not all(type(label) is int and 0 <= label < 4 * len(order) for label in order):
        return None
    table = np.full(max(order) + 1, np.nan)
    table[order] = np.arange(len(order))
    return table
