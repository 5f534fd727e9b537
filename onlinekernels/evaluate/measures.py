"""What is measured at each example: errors, whose sums suffice; F1 and AUC; the errors of a constant."""
import math
from collections import deque
from dataclasses import dataclass

import numpy as np

from onlinekernels.base.labelsets import among_seen, label_column
from onlinekernels.base.state import targets
from onlinekernels.base.labelvalues import as_list

# What is measured at each example, in this order; a report has the mean of each over all examples and, with
# "window_" before its name, over the latest ones.
MEASURES = ("error", "squared_error")


@dataclass
class Judged:
    """Measures of some examples.

    Attributes
    ----------
    measures : array
        A row for each example and a column for each of `MEASURES`, with NaN where there is none.
    truth, guesses : arrays of int, or None
        Codes of the labels and of those that were predicted, in the order of joining; -1 predicts none.
    scores : array or None
        Of two classes: how much each example looks like the one with code 1.
    """

    measures: np.ndarray
    truth: np.ndarray | None = None
    guesses: np.ndarray | None = None
    scores: np.ndarray | None = None


# ---- Examples ----


def judge(model, X, y, classes=None, novel=None):
    """Let a model predict and learn some examples; return them `Judged`.

    With `novel`, the label in y of novel examples, a detector is judged by its labels too.
    """
    is_many = model._current_loss().task == "multiclass"
    known = len(model.classes_) if is_many and model._state is not None else 0
    scores, margins = model._progressive((X, y, classes, None, None), {"margins"})
    state = model._state
    if not is_many:
        return _judged_scores(state, scores, y, margins, novel)
    y, _ = targets(state.loss, state.labels, len(scores), y)
    scores = _in_order_of_joining(state.labels, scores)
    return _judged_labels(state.labels, scores, y, state.labels.n_seen_before(y, known))


def _judged_scores(state, scores, y, margins, novel):
    """`Judged` for scores of one output, or of several targets: all tasks but many classes."""
    loss, n, labelled = state.loss, len(scores), {}
    given = y
    y, _ = targets(loss, state.labels, n, y, state.targets)
    out = np.full((n, len(MEASURES)), np.nan)
    if loss.task == "binary":
        out[:, 0] = y * scores <= 0
        guesses = np.where(scores == 0, -1, scores > 0)
        labelled = {"truth": y > 0, "guesses": guesses, "scores": scores}
    elif loss.task == "novelty":
        out[:, 0] = scores < margins
        if novel is not None:
            truth = np.array([label == novel for label in as_list(label_column(given, n))])
            labelled = {"truth": truth, "guesses": scores < margins, "scores": margins - scores}
    else:
        y = y.reshape(scores.shape)
        out[:, 0] = _over_targets(np.abs(y - scores))
        with np.errstate(over="ignore"):
            out[:, 1] = _over_targets((y - scores) ** 2)
    return Judged(out, **labelled)


def _judged_labels(labels, scores, y, before):
    """`Judged` for scores of many labels, in the order of joining; `before` of them had joined at each example."""
    y = y.astype(np.intp)
    out = np.full((len(scores), len(MEASURES)), np.nan)
    guesses = np.where(before > 0, labels.chosen(among_seen(scores, before)), -1)
    out[:, 0] = guesses != y
    difference = np.where(before > 1, scores[:, -1] - scores[:, 0], 0.0) if len(labels.order) <= 2 else None
    return Judged(out, y, guesses, difference)


def _over_targets(values):
    """Means over several targets of an example."""
    return values.mean(axis=1) if np.ndim(values) > 1 else values


def _in_order_of_joining(labels, scores):
    """Scores with a column for each label in the order in which labels joined, as losses see them."""
    if labels.class_order is None:
        return scores
    columns = np.empty_like(scores)
    columns[:, labels.class_order] = scores
    return columns


# ---- Over many examples ----


class LabelCounts:
    """Counts of (label, prediction), over all examples and over the latest ones.

    >>> labels = LabelCounts(window=2)
    >>> labels.add(np.array([0, 1, 1]), np.array([-1, 0, 1]))
    >>> labels.counts.tolist()                     # a row for each label; the first column is for no prediction
    [[1, 0, 0], [0, 1, 1]]
    >>> labels.latest().tolist()
    [[0, 0, 0], [0, 1, 1]]
    """

    def __init__(self, window):
        self.window = window
        self.counts = np.zeros((0, 1), dtype=np.int64)
        self._pairs = np.zeros((2, 0), dtype=np.intp)  # codes of the labels and of the predictions in the window

    def add(self, truth, guesses):
        """Count the labels of some examples and their predictions, by their codes."""
        pairs = np.array([truth, guesses], dtype=np.intp)
        size, known = max(len(self.counts), pairs.max(initial=-1) + 1), len(self.counts)
        grown = np.zeros((size, size + 1), dtype=np.int64)
        grown[:known, : known + 1] = self.counts
        self.counts = _count(grown, pairs)
        self._pairs = np.concatenate([self._pairs, pairs], axis=1)[:, -self.window :]

    def latest(self):
        """Counts over the latest examples."""
        return _count(np.zeros_like(self.counts), self._pairs)


def _count(counts, pairs):
    np.add.at(counts, (pairs[0], pairs[1] + 1), 1)
    return counts


def f1_scores(counts, undecided):
    """F1 of each label, the harmonic mean of precision and recall: 2 hits / (2 hits + false alarms + misses).

    ``counts[i, j]`` examples of label i were taken for j, ``undecided[i]`` of them for none. NaN for a label that
    neither came nor was predicted.

    >>> f1_scores(np.array([[5, 1, 0], [2, 3, 0], [0, 0, 0]]), np.array([1, 0, 0])).round(3)
    array([0.714, 0.667,   nan])
    """
    hits = np.diagonal(counts)
    involved = counts.sum(axis=0) + counts.sum(axis=1) + undecided  # hits twice
    return np.divide(2.0 * hits, involved, out=np.full(len(hits), np.nan), where=involved > 0)


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
    >>> latest.value(), list(latest.latest)
    (1.0, [(0.35, False), (0.8, True)])
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

    def _check(self):
        """Assert that the count is that of all pairs."""
        negatives, positives = self.sides
        held = len(negatives) + len(positives) + self.unordered
        assert self.window is None or len(self.latest) == held <= self.window
        assert self.double_pairs == sum((p > n) + (p >= n) for p in positives for n in negatives)
