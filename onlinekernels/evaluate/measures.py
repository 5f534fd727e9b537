"""What is measured at each example."""
import math
from dataclasses import dataclass
from time import perf_counter
from types import SimpleNamespace

import numpy as np

from onlinekernels.model.labels import among_joined, label_column
from onlinekernels.model.learned import targets
from onlinekernels.nouns import losses
from onlinekernels.nouns.labelvalues import as_list

# What is measured at each example, in this order; a report has the mean of each over all examples and, with
# "window_" before its name, over the latest ones.
MEASURES = ("error", "squared_error", "loss", "margin_errors")


@dataclass
class Judged:
    """What was found out about some examples.

    Attributes
    ----------
    measures : array
        A row for each example and a column for each of `MEASURES`, with NaN where there is none.
    truth, guesses : arrays of int, or None
        Places of the labels and of those that were predicted, in the order of joining; -1 predicts none.
    scores : array or None
        How much each example looks like the positive label, the second one.
    """

    measures: np.ndarray
    truth: np.ndarray | None = None
    guesses: np.ndarray | None = None
    scores: np.ndarray | None = None


def judge(model, X, y, classes=None, novel=None, sample_weight=None):
    """Let a model predict and learn some examples; return (`Judged`, seconds that the model took).

    With `novel`, the label in y of novel examples, a detector is judged by its labels too.
    """
    is_many = model._current_loss().task == "multiclass"
    known = len(model.classes_) if is_many and model._state is not None else 0
    start = perf_counter()
    scores, margins = model._progressive((X, y, classes, sample_weight, None), {"margins"})
    seconds = perf_counter() - start
    state = model._state
    if is_many:
        scores = _as_learned(state.labels, scores)
        y, _ = targets(state.loss, state.labels, len(scores), y)
        return judged_labels(state, scores, y, margins, state.labels.joined_before(y, known)), seconds
    return judged_scores(state, scores, y, margins, novel), seconds


class Totals:
    """Sums of measures over a number of examples.

    >>> totals = Totals()
    >>> totals.add(np.array([[1.0, 4.0, 2.0, 0.0], [0.0, 0.0, 0.0, 1.0]]))
    >>> totals.mean("error"), totals.mean("squared_error")
    (0.5, 2.0)
    """

    def __init__(self, count=0, sums=(0.0,) * len(MEASURES)):
        self.count = count
        self.sums = np.array(sums, dtype=float)

    def add(self, measures):
        """Take in what `judge` has measured."""
        self.count += len(measures)
        with np.errstate(over="ignore"):  # a sum of squares may be infinite
            self.sums += measures.sum(axis=0)

    def since(self, earlier):
        """What has been added to earlier totals."""
        with np.errstate(invalid="ignore"):
            return Totals(self.count - earlier.count, self.sums - earlier.sums)

    def mean(self, name):
        """Mean of a measure; NaN over no examples."""
        return float(self.sums[MEASURES.index(name)]) / self.count if self.count else math.nan

    def to_dict(self):
        """Plain numbers, from which ``Totals(**totals.to_dict())`` goes on."""
        return {"count": self.count, "sums": self.sums.tolist()}


def judged_scores(state, scores, y, margins, novel=None):
    """What scores of one output, or of several targets, are worth; for all tasks but many classes."""
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
        if state.targets > 1:
            margins = margins[:, None]
        out[:, 0] = _over_targets(np.abs(y - scores))
        with np.errstate(over="ignore"):
            out[:, 1] = _over_targets((y - scores) ** 2)
    _measure_loss(out, state, scores, y, margins)
    return Judged(out, **labelled)


def judged_labels(state, scores, y, margins, before):
    """What the scores of many labels are worth: labels in the order of joining, `before` of them at each example."""
    y, labels = y.astype(np.intp), state.labels
    out = np.full((len(scores), len(MEASURES)), np.nan)
    guesses = np.where(before > 0, labels.chosen(among_joined(scores, before)), -1)
    out[:, 0] = guesses != y
    ranked = None
    if len(labels.order) <= 2:  # as much as between two classes
        ranked = np.where(before > 1, scores[:, -1] - scores[:, 0], 0.0)
    if not labels.fixed:  # an example brings its own label along
        scores = among_joined(scores, np.maximum(before, y + 1))
    _measure_loss(out, state, scores, y, margins)
    return Judged(out, y, guesses, ranked)


def _measure_loss(out, state, scores, y, margins):
    structure = SimpleNamespace(outputs=lambda: state.function.outputs)
    extra = {"labels": structure} if state.loss.structured else {}
    out[:, 2] = _over_targets(_loss_values(state.loss, scores, y, margins, extra))
    out[:, 3] = _over_targets(_margin_errors(state.loss, scores, y, margins, extra))


def _over_targets(values):
    """Means over several targets of an example."""
    return values.mean(axis=1) if np.ndim(values) > 1 else values


def _as_learned(labels, scores):
    """Scores with a column for each label in the order in which labels joined, as losses see them."""
    if labels.display is None:
        return scores
    columns = np.empty_like(scores)
    columns[:, labels.display] = scores
    return columns


def _loss_values(loss, scores, y, margins, extra):
    """The loss of each example at the margin of its time."""
    if loss.adapts:
        extra = {**extra, "scalar": margins}
    try:
        if type(loss).value.__module__.startswith(losses.__name__):  # of ours: takes arrays
            return loss.value(scores, y, **extra)
        return _values_one_by_one(loss, scores, y)
    except NotImplementedError:  # a loss of one's own needs a derivative only
        return np.full(len(scores), np.nan)


def _values_one_by_one(loss, scores, y):
    """Values of a loss of one's own, which need not take arrays."""
    if loss.task != "multiclass":
        values = [float(loss.value(score, target)) for score, target in zip(scores.flat, y.flat, strict=True)]
        return np.reshape(values, scores.shape)
    return np.array([float(loss.value(row[np.isfinite(row)], label)) for row, label in zip(scores, y, strict=True)])


def _margin_errors(loss, scores, y, margins, extra):
    """Whether each example lies within the margin or outside the tube, with the losses' conventions at ties."""
    if loss.task == "multiclass":
        if not loss.is_compiled() or loss.probabilistic:
            return np.nan
        return (loss.derivative(scores, y, scalar=margins, **extra) != 0).any(axis=1)
    if loss.scalar_name is None:
        return np.nan
    if loss.task == "binary":
        return y * scores <= margins
    return scores < margins if loss.task == "novelty" else np.abs(y - scores) > margins


def rank(value):
    """A key for sorting numbers, NaN last."""
    return math.inf if math.isnan(value) else value
