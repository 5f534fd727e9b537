"""The area under the ROC curve, of all scores or of the latest ones."""
import math
from collections import deque


class RunningAUC:
    """Fraction of pairs, one positive and one negative example, in which the positive one has the larger score.

    Equal scores count one half; with a `window`, only the latest scores count. Scores are kept in order, so that one
    that comes or goes finds how many lie below it in O(log n). The count of pairs is a whole number: nothing is rounded.

    >>> auc = RunningAUC()
    >>> auc.add([0.1, 0.4, 0.35, 0.8], [False, False, True, True])
    >>> auc.value()
    0.75
    """

    def __init__(self, window=None):
        from sortedcontainers import SortedList

        self.sides = SortedList(), SortedList()  # scores of the negatives, of the positives
        self.double_pairs = 0  # a pair in order counts 2, one of equals 1
        self.unordered = 0  # scores that are NaN: while there are any, there is no order
        self.window = window
        self.latest = deque()  # (score, whether it is positive), of a window

    def add(self, scores, positive):
        """Add scores and whether each belongs to a positive example; the oldest leave a full window."""
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
