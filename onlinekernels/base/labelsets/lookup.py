"""What both kinds of label sets share: looking labels up, and reading those that an argument or a file names."""
import numpy as np

from onlinekernels.base.labelvalues import as_list, check_same, keys_of, label_column, label_key, object_array

__all__ = ["CONTINUOUS", "LabelSet", "checked_list", "classes_column"]

CONTINUOUS = (
    "Unknown label type: continuous. y must hold labels for a classification loss. Got {}. "
    'To predict numbers use OnlineKernelRegressor, or a regression loss such as "squared".'
)


class LabelSet:
    """Labels and the targets that stand for them; a subclass says which, and what scores choose."""

    _targets: dict[object, float] = {}  # by the key of a label
    _short = _targets  # those that need no longer look
    display = None  # how the labels are shown, if not in their own order

    def encode_one(self, y):
        """Target of one label, or None if that takes a longer look."""
        try:
            return self._short.get(y)
        except TypeError:
            return None

    def _looked_up(self, y):
        """Targets of labels, None for unknown ones."""
        targets = [self._targets.get(key) for key in keys_of(y)]
        if y.dtype == object:
            for label, target in zip(y, targets):
                if target is not None:
                    check_same(self.label_of(target), label)
        return targets

    def indices_of(self, labels):
        """Targets of a list of labels, None for unknown ones."""
        return self._looked_up(object_array(labels))

    def agree(self, scores, y):
        """Whether the labels that scores choose are those of an array; a label that is not known never is."""
        return np.array(self._looked_up(y), dtype=float) == self.chosen(scores)

    def weights(self, table):
        """Weight of each label, in order of the targets, from a dictionary; 1 for those it does not name."""
        table = {label_key(label): weight for label, weight in table.items()}
        return [table.get(label_key(label), 1.0) for label in self.order]

    def is_odd(self, table):
        """Whether a dictionary has a label that is unknown, and lacks one that is known: scikit-learn's rule."""
        named, known = {label_key(label) for label in table}, {label_key(label) for label in self.order}
        return not named <= known and not known <= named


def classes_column(classes):
    """The argument `classes` as an array: any collection of labels."""
    if isinstance(classes, (set, frozenset, range, dict)):
        classes = list(classes)
    if not hasattr(classes, "__len__") or isinstance(classes, (str, bytes)) or getattr(classes, "shape", None) == ():
        raise ValueError(f"classes must be a list of labels. Got {classes!r} instead.")
    return label_column(classes, len(classes), "classes")


def checked_list(labels):
    """Labels that may come from a file."""
    if not isinstance(labels, list):
        raise ValueError("the labels are not a list")
    return as_list(label_column(object_array(labels), len(labels), "the list of labels"))
