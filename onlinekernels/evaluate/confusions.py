"""Which labels are taken for which: confusion matrices and F1."""
from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from onlinekernels.evaluate.words import aligned, shortened

if TYPE_CHECKING:
    from onlinekernels.annotations import Any


@dataclass(eq=False)
class Confusion:
    """Which label was predicted for which.

    Attributes
    ----------
    labels : list
        In the order of `classes_`; +1 and -1 of a detector.
    counts : array of shape (labels, labels)
        ``counts[i, j]`` examples of the label i were taken for j.
    undecided : array of shape (labels,)
        Examples of each label that were given none: a score of 0 between two classes, or no class was known yet.
    has_positive : bool
        Whether the second label is the positive one, as of two classes; many classes are all alike.

    Examples
    --------
    >>> import numpy as np
    >>> confusion = Confusion(["ham", "spam"], np.array([[5, 1], [2, 3]]), np.array([1, 0]), has_positive=True)
    >>> print(confusion)
    is    taken for ham  spam  nothing
    ----------------------------------
    ham               5     1        1
    spam              2     3        0
    >>> confusion.mistakes, round(confusion.f1, 3)
    (4, 0.667)
    """

    labels: list
    counts: np.ndarray
    undecided: np.ndarray
    has_positive: bool

    @property
    def mistakes(self) -> Any:
        """Examples that were not given their own label."""
        return int(self.counts.sum() + self.undecided.sum() - np.trace(self.counts))

    @property
    def f1(self) -> Any:
        """F1 of the positive label; for many classes the mean over those that were there or were predicted.

        F1 is the harmonic mean of precision and recall, 2 hits / (2 hits + false alarms + misses).
        """
        hits = np.diagonal(self.counts)
        doubtful = self.counts.sum(axis=0) + self.counts.sum(axis=1) + self.undecided  # hits twice
        if self.has_positive:
            hits, doubtful = hits[1:], doubtful[1:]
        there = doubtful > 0
        return float(np.mean(2 * hits[there] / doubtful[there])) if there.any() else math.nan

    def table(self) -> Any:
        """The counts as text."""
        names = [shortened(str(label), 20) for label in self.labels]
        heads = [f"taken for {names[0]}", *names[1:]] if names else []
        columns = self.counts
        if self.undecided.any():
            heads, columns = [*heads, "nothing"], np.column_stack([columns, self.undecided])
        return aligned([("is", *heads), *((name, *map(str, row)) for name, row in zip(names, columns, strict=True))])

    def __str__(self):
        return self.table()


class Tally:
    """Counts of (label, prediction), over all examples and over the latest ones.

    Labels are places, in the order in which they join; a prediction of -1 is none.

    >>> tally = Tally(window=2)
    >>> tally.add(np.array([0, 1, 1]), np.array([-1, 0, 1]))
    >>> print(tally.confusion(["no", "yes"], [0, 1], True))
    is   taken for no  yes  nothing
    -------------------------------
    no              0    0        1
    yes             1    1        0
    >>> tally.confusion(["no", "yes"], [0, 1], True, latest=True).counts.tolist()
    [[0, 0], [1, 1]]
    """

    def __init__(self, window):
        self.window = window
        self.counts = np.zeros((0, 1), dtype=np.int64)  # the first column is for no prediction
        self.latest = np.zeros((2, 0), dtype=np.intp)

    def add(self, truth, guesses):
        """Take in the labels of some examples, and what was predicted for them."""
        pairs = np.array([truth, guesses], dtype=np.intp)
        self.counts = _counted(pairs, max(len(self.counts), pairs.max(initial=-1) + 1), self.counts)
        self.latest = np.concatenate([self.latest, pairs], axis=1)[:, -self.window :]

    def confusion(self, labels, display, has_positive, latest=False):
        """What has been counted, for labels in the order of joining; `display` has their places as they are shown."""
        nothing_more = self.latest[:, :0]
        of_all = () if latest else self.counts
        counts = _counted(self.latest if latest else nothing_more, len(labels), of_all)
        counts, display = counts[display], np.array(display, dtype=np.intp)
        return Confusion([labels[place] for place in display], counts[:, 1 + display], counts[:, 0], has_positive)


def _counted(pairs, size, before=()):
    """Counts of pairs of places below `size`, added to those `before`."""
    counts = np.zeros((size, size + 1), dtype=np.int64)
    rows = len(before)
    if rows:
        counts[:rows, : rows + 1] = before
    np.add.at(counts, (pairs[0], pairs[1] + 1), 1)
    return counts
