"""What is measured at each example."""
import math
from time import perf_counter
from types import SimpleNamespace

import numpy as np

from onlinekernels.losses import Loss
from onlinekernels.state import targets

# What is measured at each example, in this order; a report has the mean of each over all examples and, with
# "window_" before its name, over the latest ones.
MEASURES = ("error", "squared_error", "loss", "margin_errors")


def test_then_train(model, X, y, classes=None, sample_weight=None):
    """Let a model predict and learn some examples; return (measures, seconds that the model took).

    `measures` has a row for each example and a column for each of `MEASURES`, with NaN where there is none.
    """
    is_many = model._current_loss().task == "multiclass"
    known = len(model.classes_) if is_many and model._state is not None else 0
    start = perf_counter()
    scores, margins = model.progressive(X, y, classes, sample_weight, return_margins=True)
    seconds = perf_counter() - start
    return _measured(model._state, scores, y, margins, known), seconds


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
        """Take in what `test_then_train` has measured."""
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


def _measured(state, scores, y, margins, known):
    loss, n = state.loss, len(scores)
    y, _ = targets(loss, state.labels, n, y, state.targets)
    out = np.full((n, len(MEASURES)), np.nan)
    if loss.task == "multiclass":
        y, scores = y.astype(np.intp), _as_learned(state.labels, scores)
        fixed = state.labels.fixed
        out[:, 0] = _wrong_labels(state.labels, scores, y, None if fixed else known)
        if not fixed:
            scores = _among_known(scores, _labels_before(y, known, including_own=True))
    elif loss.task == "binary":
        out[:, 0] = y * scores <= 0
    elif loss.task == "novelty":
        out[:, 0] = scores < margins
    else:
        y = y.reshape(scores.shape)
        if state.targets > 1:
            margins = margins[:, None]
        out[:, 0] = _over_targets(np.abs(y - scores))
        with np.errstate(over="ignore"):
            out[:, 1] = _over_targets((y - scores) ** 2)
    structure = SimpleNamespace(outputs=lambda: state.engine.expansion.outputs)
    extra = {"labels": structure} if loss.structured else {}
    out[:, 2] = _over_targets(_loss_values(loss, scores, y, margins, extra))
    out[:, 3] = _over_targets(_margin_errors(loss, scores, y, margins, extra))
    return out


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


def _wrong_labels(labels, scores, y, known):
    """Whether each prediction is wrong; only labels that were known before an example can be predicted."""
    if known is None:
        return labels.chosen(scores) != y
    before = _labels_before(y, known)
    guesses = np.where(before > 0, labels.chosen(_among_known(scores, before)), -1)
    return guesses != y


def _labels_before(y, known, including_own=False):
    """Number of labels that had joined before each example; columns are in the order of joining."""
    reached = np.maximum(np.maximum.accumulate(y + 1), known)
    return reached if including_own else np.concatenate([[known], reached[:-1]])


def _among_known(scores, counts):
    """Scores with minus infinity for the labels that have not joined yet."""
    return np.where(np.arange(scores.shape[1]) < counts[:, None], scores, -np.inf)


def _loss_values(loss, scores, y, margins, extra):
    """The loss of each example at the margin of its time."""
    if loss.adapts:
        extra = {**extra, "scalar": margins}
    try:
        if type(loss).value.__module__ == Loss.__module__:
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
