"""What is evaluated on what: streams as chunks of rows; models of this library and of scikit-learn as learners."""
import copy
import math
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from onlinekernels.base.estimator import Estimator
from onlinekernels.base.labelvalues import (
    as_list, column, distinct_labels, label_array, label_column, sorted_indices,
)
from onlinekernels.base.validation import check_length, is_sparse, refuse_masked, to_csr

# ---- Streams ----


def n_rows(X):
    return X.shape[0] if hasattr(X, "shape") else len(X)


def rows_of(X, begin, end):
    return X.iloc[begin:end] if hasattr(X, "iloc") else X[begin:end]  # a data frame may have an index of numbers


def opened(stream):
    """A stream as (X, y) or as an iterable of chunks."""
    if callable(stream):
        stream = stream()
    if isinstance(stream, list) and len(stream) == 2 and len(getattr(stream[1], "shape", ())) == 1:
        stream = tuple(stream)  # [X, y]: no chunk has one dimension
    if isinstance(stream, tuple) or _is_matrix(stream):
        return _pair(stream)
    if not isinstance(stream, Iterable) or isinstance(stream, (str, bytes, Mapping)):
        expected = "stream must be (X, y), an array X, or an iterable of such chunks"
        raise TypeError(f"{expected}. Got {type(stream).__name__} instead.")
    return stream


def kept(stream):
    """A stream that can be used more than once, and sent to other processes if its chunks can."""
    if isinstance(stream, tuple) or _is_matrix(stream) or callable(stream) or not isinstance(stream, Iterable):
        return stream
    return [copy.deepcopy(chunk) for chunk in stream]  # a reader may use its arrays again


def pieces(stream, chunk):
    """Pieces (X, y) that end wherever a record is due: after `chunk` examples, and again, and again."""
    due = chunk
    for X, y in [stream] if isinstance(stream, tuple) else map(_pair, stream):
        begin = 0
        while begin < n_rows(X):
            end = min(begin + due, n_rows(X))
            yield rows_of(X, begin, end), None if y is None else y[begin:end]
            due = due - (end - begin) or chunk
            begin = end


def _is_matrix(thing):
    """Whether it is an array, a sparse matrix or a data frame."""
    return len(getattr(thing, "shape", ())) == 2


def _pair(chunk):
    """(X, y) of a chunk; y is None where there are no labels."""
    if _is_matrix(chunk):
        chunk = chunk, None
    if not isinstance(chunk, (tuple, list)) or len(chunk) != 2:
        length = f" of length {len(chunk)}" if hasattr(chunk, "__len__") else ""
        raise TypeError(f"stream must give pairs (X, y) or arrays X. Got a {type(chunk).__name__}{length} instead.")
    X, y = chunk
    if is_sparse(X):
        X = to_csr(X, "X")
    elif not hasattr(X, "__len__"):
        X = np.asarray(X)
    if y is not None:
        refuse_masked(y, "y")
        is_nested = isinstance(y, list) and len(y) and isinstance(y[0], (list, np.ndarray))
        several = _is_matrix(y) and y.shape[1] > 1 or is_nested
        y = np.asarray(y) if several else column(y, n_rows(X))
        check_length(y, n_rows(X), "y")
    return X, y


def _distinct(y):
    """Distinct labels of an array, or of `classes`, in order of appearance."""
    return distinct_labels(as_list(np.asarray(y)))


def in_order(labels):
    """A list of labels, sorted if they can be compared."""
    return [labels[i] for i in sorted_indices(labels) or range(len(labels))]


def _two_labels(y):
    """The labels in y if there are two, so that a first chunk need not show both; otherwise None."""
    try:
        seen = [] if y is None else _distinct(y)
    except (TypeError, ValueError):  # several targets; labels that the model will refuse
        return None
    return seen if len(seen) == 2 else None


# ---- Models that can be evaluated ----


class Judged(NamedTuple):
    """Predictions of some examples, which have been learned.

    `truth` are targets or labels, of a detector whether each is novel, None if that is not known. `predictions` are
    targets, labels (None where there is none), whether a detector alerts. `scores` and whether each of them is
    `positive` are those of the examples since two classes are known; None where there is no such order.
    """

    truth: Any
    predictions: Any
    scores: Any = None
    positive: Any = None


def judged_labels(truth, predictions, scores, labels):
    """`Judged` for labels; `scores` speak for the second of two, and are those of the last examples."""
    if scores is None or len(labels) != 2:
        return Judged(truth, predictions)
    positive = [label == labels[1] for label in truth[len(truth) - len(scores) :]]
    return Judged(truth, predictions, scores, positive)


def check_model(name, model):
    """Models of this library, and classifiers and regressors of scikit-learn that learn in parts."""
    if not isinstance(model, Estimator) and not (hasattr(model, "partial_fit") and hasattr(model, "predict")):
        raise TypeError(f"{name} must be an online learner such as NORMA(). Got {model!r} instead.")
    if isinstance(model, Estimator) and not hasattr(model, "progressive"):
        raise TypeError(f"{name} must learn one example after the other. {type(model).__name__} learns by fit only.")
    learner_for(model)  # knows whether it is for a task of ours


def learner_for(model, delay=0, novel=None):
    """The learner for a model."""
    if not isinstance(model, Estimator):
        return Theirs(model, delay)
    return OursRowByRow(model, delay) if delay else Ours(model, novel=novel)


class Ours:
    """A model of this library, which predicts and learns many rows in one call."""

    classes = None  # for the first call

    def __init__(self, model, delay=0, novel=None):
        self.model, self.delay, self.novel = model, delay, novel

    @property
    def task(self):
        """What the model is for."""
        return self.model._current_loss().task

    @property
    def labels(self):
        """The labels of its classes."""
        return [1, -1] if self.task == "novelty" else as_list(self.model.classes_)

    @property
    def is_learned(self):
        """Whether there is anything to predict with."""
        return self.model._state is not None

    def begin(self, classes, y):
        """Name the classes: those given, or the two in y, so that the first chunk need not show both."""
        self.classes = classes
        if classes is None and self.task == "binary" and not self.is_learned:
            self.classes = _two_labels(y)

    def judge(self, X, y):
        """`Judged` for the examples that have been learned, or None."""
        known = [] if self.task in ("regression", "novelty") else self.classes
        known = (self.labels if self.is_learned else []) if known is None else known
        call, self.classes = (X, y, self.classes, None, None), None
        scores, margins, answers = self.model._progressive(call, margins=True, labels=True)
        if self.task == "regression":
            return Judged(y, answers)
        if self.task == "novelty":
            alerts = scores < margins
            if self.novel is None:
                return Judged(None, alerts)
            truth = [label == self.novel for label in as_list(label_column(y, len(alerts)))]
            return Judged(truth, alerts, margins - scores, truth)
        truth, answers = as_list(label_column(y, len(scores))), as_list(answers)
        if self.task == "binary":
            answers = [None if score == 0 else answer for score, answer in zip(scores, answers, strict=True)]
            return judged_labels(truth, answers, scores, self.labels)
        scores = scores[:, 1] - scores[:, 0] if len(self.labels) == 2 else None
        if scores is not None and len(known) < 2:  # it counts from the row behind the first one of the second class
            come = [*known, *truth]
            scores = scores[next(i for i, label in enumerate(come) if label != come[0]) - len(known) + 1 :]
        return judged_labels(truth, answers, scores, self.labels)

    def finish(self):
        """`Judged` for the examples whose labels were still to come; None if there are none."""
        return None

    def condition(self):
        """(terms, step, margin)."""
        loss, state = self.model._current_loss(), self.model._state
        margin = math.nan if loss.scalar_name is None else state.scalar()
        return getattr(self.model, "n_terms_", 0), getattr(self.model, "step_", math.nan), margin


class OursRowByRow(Ours):
    """A model whose labels come late: a row is learned when `delay` more have been predicted, each in a call."""

    def __init__(self, model, delay):
        super().__init__(model, delay)
        self.queue = deque()  # (prediction, score, row, label)

    def judge(self, X, y):
        if self.classes is None and self.task == "binary" and not self.is_learned:
            self.classes = _two_labels(y)
        come = []
        for i in range(n_rows(X)):
            row, label = rows_of(X, i, i + 1), y[i : i + 1]
            if self.delay:
                row, label = row.copy(), label.copy()  # a reader may use its arrays again
            self.queue.append((*self._predicted(row), row, label))
            if len(self.queue) > self.delay:
                come.append(self._learn_oldest())
        return self._judged(come)

    def finish(self):
        return self._judged([self._learn_oldest() for _ in range(len(self.queue))])

    def _predicted(self, row):
        """(the prediction, the score of the second of two classes or None)."""
        if self.task == "regression":
            return (self.model.predict(row)[0] if self.is_learned else 0.0), None
        if not self.is_learned:
            return None, 0.0 if self.task == "binary" else None
        label = self.model.predict(row)[0]
        if len(self.model.classes_) != 2:
            return label, None
        score = next((getattr(self.model, name) for name in ("decision_function", "predict_proba")
                      if hasattr(self.model, name)), lambda row: np.array([math.nan]))(row).ravel()
        score = float(score[-1] - score[0] if len(score) == 2 else score[0])
        return None if score == 0.0 else label, score

    def _learn_oldest(self):
        """(prediction, score, label or target) of the example that has waited longest, which is learned."""
        prediction, score, row, label = self.queue.popleft()
        self.model.partial_fit(row, label, **({} if self.classes is None else {"classes": self.classes}))
        self.classes = None
        return prediction, score, as_list(label)[0] if label.ndim == 1 else label[0]

    def _judged(self, come):
        if not come:
            return None
        predictions, scores, truth = zip(*come, strict=True)
        if self.task == "regression":
            return Judged(truth, [np.zeros(np.shape(y)) + guess for y, guess in zip(truth, predictions, strict=True)])
        return judged_labels(truth, predictions, [score for score in scores if score is not None], self.labels)


class Theirs(OursRowByRow):
    """An estimator of scikit-learn."""

    def __init__(self, model, delay):
        from sklearn.base import is_classifier, is_regressor

        super().__init__(model, delay)
        if not is_regressor(model) and not is_classifier(model):
            raise TypeError(f"model must be a classifier, regressor or detector of this library. Got {model!r}.")
        self.has_classes = is_classifier(model)

    @property
    def is_learned(self):
        return hasattr(self.model, "n_features_in_")

    @property
    def task(self):
        classes = getattr(self.model, "classes_", self.classes)
        if not self.has_classes:
            return "regression"
        return "binary" if classes is not None and len(classes) == 2 else "multiclass"

    def begin(self, classes, y):
        """Name the classes, all of which estimators of scikit-learn want to know before their first example."""
        if not self.has_classes or self.is_learned:
            return
        if classes is None and y is None:
            name = type(self.model).__name__
            raise ValueError(f"{name} must know all labels before its first chunk: name them in classes=.")
        self.classes = label_array(in_order(_distinct(y if classes is None else classes)))

    def condition(self):
        return 0, math.nan, math.nan
