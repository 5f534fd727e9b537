"""The area under the ROC curve, kept up to date as scores come and go."""
import math
from collections import deque

import numpy as np


class RunningAUC:
    """Fraction of pairs, one positive and one negative example, in which the positive one has the larger score.

    Equal scores count one half. All scores are kept in order, so that one that comes or goes finds how many lie below
    it in O(log n). The count of pairs is a whole number: however many have come and gone, nothing is rounded.

    Parameters
    ----------
    window : int or None
        Only the latest scores count; None keeps all.

    Examples
    --------
    >>> auc = RunningAUC()
    >>> auc.add([0.1, 0.4, 0.35, 0.8], [False, False, True, True])
    >>> auc.value()
    0.75
    >>> latest = RunningAUC(window=2)
    >>> latest.add([0.1, 0.4, 0.35, 0.8], [True, False, False, True])
    >>> latest.value()
    1.0
    """

    def __init__(self, window=None):
        from sortedcontainers import SortedList

        self.sides = SortedList(), SortedList()  # scores of the negatives, of the positives
        self.double_pairs = 0  # a pair in order counts 2, one of equals 1
        self.unordered = 0  # scores that are NaN: while there are any, there is no order
        self.window = window
        self.latest = deque()  # (score, whether it is positive), of a window

    def add(self, scores, positive):
        """Take in scores and whether each belongs to a positive example; the oldest leave a full window."""
        for score, is_positive in zip(map(float, scores), map(bool, positive), strict=True):
            if self.window is not None:
                if len(self.latest) == self.window:
                    self._move(*self.latest.popleft(), -1)
                self.latest.append((score, is_positive))
            self._move(score, is_positive, 1)

    def _move(self, score, is_positive, sign):
        """One score comes (sign 1) or goes (-1)."""
        if score != score:
            self.unordered += sign
            return
        own, others = self.sides[is_positive], self.sides[not is_positive]
        below_or_equal = others.bisect_left(score) + others.bisect_right(score)  # those below twice
        self.double_pairs += sign * (below_or_equal if is_positive else 2 * len(others) - below_or_equal)
        own.add(score) if sign > 0 else own.remove(score)

    def value(self):
        """The area; NaN without a positive or a negative score."""
        pairs = len(self.sides[0]) * len(self.sides[1])
        return self.double_pairs / (2 * pairs) if pairs and not self.unordered else math.nan

    def _check(self):
        """Assert that the count is that of all pairs."""
        negatives, positives = self.sides
        held = len(negatives) + len(positives) + self.unordered
        assert self.window is None or len(self.latest) == held <= self.window
        assert self.double_pairs == sum((p > n) + (p >= n) for p in positives for n in negatives)


class CountedAUC:
    """`RunningAUC` of any number of scores in little memory: scores that agree in the first two digits count as equal.

    A score is known by the first 16 bits of its float32: 128 steps from each power of two to the next.

    Parameters
    ----------
    counts : list of (bits, negatives, positives)
        Where to go on, as `to_list` gives it.

    Examples
    --------
    >>> auc = CountedAUC()
    >>> auc.add([0.1, 0.4, 0.35, 0.8], [False, False, True, True])
    >>> auc.value(), CountedAUC(auc.to_list()).value()
    (0.75, 0.75)
    """

    def __init__(self, counts=()):
        self.counts = np.zeros((2, 1 << 16), dtype=np.int64)  # of negatives and positives, in the order of scores
        for place, *both in counts:
            self.counts[:, place] = both

    def add(self, scores, positive):
        """Take in scores and whether each belongs to a positive example."""
        with np.errstate(over="ignore"):
            bits = (np.asarray(scores, dtype=np.float32) + np.float32(0.0)).view(np.int32) >> 16  # -0 is 0
        places = np.where(bits < 0, ~(bits & 0x7FFF), bits) + (1 << 15)
        np.add.at(self.counts, (np.asarray(positive, dtype=np.intp), places), 1)

    def value(self):
        """The area; NaN without a positive or a negative score."""
        negatives, positives = self.counts
        pairs = int(negatives.sum()) * int(positives.sum())
        below = np.cumsum(negatives) - negatives
        return float(positives @ (2 * below + negatives)) / (2 * pairs) if pairs else math.nan

    def to_list(self):
        """The counts that are not 0, as plain numbers."""
        places = np.flatnonzero(self.counts.any(axis=0))
        return np.column_stack([places, self.counts[:, places].T]).tolist()
