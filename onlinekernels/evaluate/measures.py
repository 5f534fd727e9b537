"""What is measured at each example."""
import copy
import math
from types import SimpleNamespace

import numpy as np

from onlinekernels.plan import targets

# What is measured at each example, in this order; a report has the mean of each over all examples and, with
# "window_" before its name, over the latest ones.
MEASURES = ("error", "squared_error", "loss", "margin_errors")


def measured(model, scores, y, margins, known):
    """An array with a row for each example and a column for each of `MEASURES`; NaN where there is none."""
    loss, state = model._current_loss(), model._state
    n = len(scores)
    y, _ = targets(loss, state.labels, n, y)
    out = np.full((n, len(MEASURES)), np.nan)
    if loss.task == "multiclass":
        y = _columns_of(state.labels, y)
        fixed = state.labels.fixed
        out[:, 0] = _wrong_labels(scores, y, None if fixed else known)
        if not fixed:
            scores = _among_known(scores, _labels_before(y, known, including_own=True))
    elif loss.task == "binary":
        out[:, 0] = y * scores <= 0
    elif loss.task == "novelty":
        out[:, 0] = scores < (margins if loss.scalar_name else 0.0)
    else:
        out[:, 0] = np.abs(y - scores)
        out[:, 1] = (y - scores) ** 2
    structure = SimpleNamespace(outputs=lambda: state.engine.expansion.outputs)
    extra = {"labels": structure} if loss.structured else {}
    out[:, 2] = _loss_values(loss, scores, y, margins, extra)
    out[:, 3] = _margin_errors(loss, scores, y, margins, extra)
    return out


def _columns_of(labels, indices):
    """Columns of the scores that belong to encoded labels."""
    indices = indices.astype(np.intp)
    return indices if labels.display is None else np.argsort(labels.display)[indices]


def _wrong_labels(scores, y, known):
    """Whether each prediction is wrong; only labels that were known before an example can be predicted."""
    if known is None:
        return scores.argmax(axis=1) != y
    before = _labels_before(y, known)
    guesses = np.where(before > 0, _among_known(scores, before).argmax(axis=1), -1)
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
    try:
        if np.ndim(margins) == 0 and type(loss).value.__module__.startswith("onlinekernels."):
            return loss.value(scores, y, **extra)
        return np.array([float(one) for one in _values_one_by_one(loss, scores, y, margins, extra)])
    except NotImplementedError:  # a loss of one's own needs a derivative only
        return np.full(len(scores), np.nan)


def _values_one_by_one(loss, scores, y, margins, extra):
    loss = copy.copy(loss)
    for i, score in enumerate(scores):
        if np.ndim(margins):
            setattr(loss, loss.scalar_name, float(margins[i]))
        if np.ndim(score):
            score = score[np.isfinite(score)]
        yield loss.value(score, y[i], **extra)


def _margin_errors(loss, scores, y, margins, extra):
    """Whether each example lies within the margin or outside the tube, with the losses' conventions at ties."""
    if loss.task == "multiclass" and not (loss.is_compiled() and hasattr(loss, "_runner_up")):
        return np.nan
    if loss.task == "multiclass":
        return _runner_up_errors(loss, scores, y, margins, extra)
    if loss.scalar_name is None:
        return np.nan
    if loss.task == "binary":
        return y * scores <= margins
    return scores < margins if loss.task == "novelty" else np.abs(y - scores) > margins


def _runner_up_errors(loss, scores, y, margins, extra):
    """Whether the hinge over the runner-up is positive."""
    if np.ndim(margins) == 0:
        return (loss.derivative(scores, y, **extra) != 0).any(axis=1)
    loss, wrong = copy.copy(loss), np.empty(len(scores))
    for i, score in enumerate(scores):
        loss.margin = float(margins[i])
        wrong[i] = (loss.derivative(score[None], y[i : i + 1], **extra) != 0).any()
    return wrong


def rank(value):
    """A key for sorting numbers, NaN last."""
    return math.inf if math.isnan(value) else value
