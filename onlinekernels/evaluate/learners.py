"""What is evaluated on what: streams as chunks of rows; models of this library and of scikit-learn behind one interface.

A learner has a `task`; `begin` names its classes, `judge` lets it predict and learn some examples, `finish` lets it
learn those whose labels are still to come, `labels` says what the codes in a `Judged` mean, and `condition` has
(terms, step, margin).
"""
import copy
import math
import sys
from collections import deque
from collections.abc import Iterable, Mapping
from time import perf_counter

import numpy as np

from onlinekernels.evaluate.measures import MEASURES, Judged, judge
from onlinekernels.base.estimator import OnlineLearner
from onlinekernels.base.labelvalues import as_list, column, distinct_labels, keys_of, label_array, sorted_indices
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
        raise TypeError(
            f"stream must be (X, y), an array X, or an iterable of such chunks. Got {type(stream).__name__} instead."
        )
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


def _two_labels(y):
    """The labels in y if there are two, so that a first chunk need not show both; otherwise None."""
    if y is None:
        return None
    try:
        seen = list(distinct_labels(as_list(y)).values())
    except (TypeError, ValueError):  # several targets; labels that the model will refuse
        return None
    return seen if len(seen) == 2 else None


# ---- Models that can be evaluated ----


def learner_for(model, delay=0, novel=None):
    """The learner for a model that `check_model` has accepted."""
    steps, last = steps_of(model)
    if isinstance(last, OnlineLearner) and not delay:
        return Chunked(steps, last, novel)
    return RowByRow(steps, last, delay)


def steps_of(model):
    """(steps before the last one, the last step): of a pipeline its own, otherwise none and the model."""
    if not is_pipeline(model):
        return [], model
    *steps, last = (step for _, step in model.steps)
    return [step for step in steps if step is not None and step != "passthrough"], last


def check_model(name, model):
    """Models of this library, estimators of scikit-learn that learn in parts, pipelines of such."""
    steps, last = steps_of(model)
    learns = isinstance(last, OnlineLearner) or hasattr(last, "partial_fit") and hasattr(last, "predict")
    if not learns and not is_pipeline(model):
        raise TypeError(f"{name} must be an online learner such as NORMA(). Got {model!r} instead.")
    if not learns or isinstance(last, OnlineLearner) and not hasattr(last, "progressive"):
        raise TypeError(f"{name} must learn one example after the other. {type(last).__name__} learns by fit only.")
    for step in steps:
        if not hasattr(step, "partial_fit") and not hasattr(step, "progressive") and not is_fitted(step):
            raise TypeError(
                f"{name} must be a pipeline whose steps can learn in parts. {type(step).__name__} has no partial_fit "
                "and is not fitted: fit it before, and it stays as it is, or take a step that has, such as RunningScaler."
            )
    learner_for(model)  # knows whether it is for a task of ours


def is_pipeline(model):
    pipelines = sys.modules.get("sklearn.pipeline")  # without it there are none
    return pipelines is not None and isinstance(model, pipelines.Pipeline)


def is_fitted(estimator):
    """Whether an estimator of scikit-learn is fitted, or needs not be."""
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    try:
        check_is_fitted(estimator)
    except (NotFittedError, TypeError):
        return False
    return True


class Chunked:
    """A model of this library, which predicts and learns many rows in one call; steps of a pipeline may come before."""

    def __init__(self, steps, model, novel=None):
        self.steps, self.model, self.novel = steps, model, novel
        self.classes = None  # for the first call

    @property
    def task(self):
        return self.model._current_loss().task

    def begin(self, classes, y):
        """Name the classes: those given, or the two in y, so that the first chunk need not show both."""
        if classes is None and self.task == "binary" and self.model._state is None:
            classes = _two_labels(y)
        self.classes = classes

    def judge(self, X, y):
        """(`Judged`, seconds) of some examples, which are learned."""
        start = perf_counter()
        judged = judge(self.model, _through(self.steps, X), y, self.classes, self.novel)
        self.classes = None
        return judged, perf_counter() - start

    def finish(self):
        """(`Judged`, seconds) of the examples that were still to be learned; None if there are none."""
        return None

    def labels(self):
        """(labels by their codes, codes in the order in which labels are shown)."""
        if self.task == "novelty":
            return [1, -1], [0, 1]
        return _in_order(self.model._state.labels.order)

    def condition(self):
        return _condition(self.model)


def _in_order(labels):
    return labels, sorted_indices(labels) or range(len(labels))


def _condition(model):
    """(terms, step, margin), as far as there are any."""
    loss = model._current_loss() if isinstance(model, OnlineLearner) else None
    margin = model._state.scalar() if loss is not None and loss.scalar_name is not None else math.nan
    return getattr(model, "n_terms_", 0), getattr(model, "step_", math.nan), margin


_SCORES = ("decision_function", "predict_proba")


class RowByRow:
    """What takes one row after another: estimators of scikit-learn, and models whose labels come late.

    Steps of a pipeline learn a row, without its label, as soon as it comes; the last one predicts it then, and learns
    it when `delay` more have been predicted.
    """

    def __init__(self, steps, last, delay):
        self.steps, self.last, self.delay = steps, last, delay
        self.queue = deque()  # (prediction, score, row, label)
        self.codes = {}  # of the keys of the labels, in the order of `classes_`
        self.classes = None  # for the first call of partial_fit
        self.is_ours = isinstance(last, OnlineLearner)
        if self.is_ours:
            self.is_learned = last._state is not None
            self.has_classes = last._current_loss().task in ("binary", "multiclass")
            return
        from sklearn.base import is_classifier, is_regressor

        if not is_regressor(last) and not is_classifier(last):
            raise TypeError(f"model must be a classifier, regressor or detector of this library. Got {last!r}.")
        self.is_learned, self.has_classes = is_fitted(last), is_classifier(last)

    @property
    def task(self):
        if self.is_ours:
            return self.last._current_loss().task
        if not self.has_classes:
            return "regression"
        classes = getattr(self.last, "classes_", self.classes)
        return "binary" if classes is not None and len(classes) == 2 else "multiclass"

    def begin(self, classes, y):
        """Name the classes, all of which estimators of scikit-learn want to know before their first example."""
        if not self.has_classes or self.is_learned:
            return
        if self.is_ours:
            self.classes = _two_labels(y) if classes is None and self.task == "binary" else classes
        elif classes is None and y is None:
            name = type(self.last).__name__
            raise ValueError(f"{name} must know all labels before its first chunk: name them in classes=.")
        else:
            labels = list(distinct_labels(as_list(np.asarray(y if classes is None else classes))).values())
            self.classes = label_array([labels[i] for i in _in_order(labels)[1]])

    def judge(self, X, y):
        """(`Judged`, seconds) of the examples whose labels have come."""
        come, start = [], perf_counter()
        if self.classes is None and self.task == "binary" and not self.is_learned:
            self.classes = _two_labels(y)
        X = _through(self.steps, X)
        for i in range(n_rows(X)):
            row, label = rows_of(X, i, i + 1), y[i : i + 1]
            if self.delay:
                row, label = row.copy(), label.copy()  # a reader may use its arrays again
            self.queue.append((*self._predicted(row), row, label))
            if len(self.queue) > self.delay:
                come.append(self._learn_oldest())
        return self._judged(come), perf_counter() - start

    def finish(self):
        """(`Judged`, seconds) of the examples whose labels had not come; None if there are none."""
        start = perf_counter()
        come = [self._learn_oldest() for _ in range(len(self.queue))]
        return (self._judged(come), perf_counter() - start) if come else None

    def _predicted(self, row):
        """(the prediction, the score of the second of two classes)."""
        if not self.is_learned:
            return (-1 if self.has_classes else 0.0), 0.0
        answer = self.last.predict(row)
        if not self.has_classes:
            return answer[0], 0.0
        if len(self.last.classes_) != 2:
            return self._code_of(answer), 0.0
        score = next((getattr(self.last, name)(row).ravel() for name in _SCORES if hasattr(self.last, name)), [math.nan])
        score = float(score[-1] - score[0]) if len(score) == 2 else float(score[0])
        return (-1 if score == 0.0 else self._code_of(answer)), score

    def _code_of(self, labels):
        if len(self.codes) < len(self.last.classes_):
            self.codes = {key: code for code, key in enumerate(keys_of(self.last.classes_))}
        return self.codes[keys_of(labels)[0]]

    def _learn_oldest(self):
        """(prediction, score, label or its code) of the example that has waited longest, which is learned."""
        prediction, score, row, label = self.queue.popleft()
        self.last.partial_fit(row, label, **({} if self.classes is None else {"classes": self.classes}))
        self.classes, self.is_learned = None, True
        return prediction, score, self._code_of(label) if self.has_classes else label[0]

    def _judged(self, come):
        out = np.full((len(come), len(MEASURES)), np.nan)
        if not come:
            return Judged(out)
        guesses, scores, truth = zip(*come, strict=True)
        if self.has_classes:
            guesses, scores, truth = map(np.array, (guesses, scores, truth))
            out[:, 0] = guesses != truth
            return Judged(out, truth, guesses, scores if len(self.codes) == 2 else None)
        errors = np.array([np.ravel(y - guess) for y, guess in zip(truth, guesses, strict=True)], dtype=float)
        out[:, 0], out[:, 1] = np.abs(errors).mean(axis=1), (errors**2).mean(axis=1)
        return Judged(out)

    def labels(self):
        """(labels by their codes, codes in the order in which labels are shown)."""
        return _in_order(as_list(self.last.classes_))

    def condition(self):
        return _condition(self.last)


def _through(steps, X):
    """The rows of X behind the steps of a pipeline, each of which learns a row, and then transforms it."""
    for step in steps:
        X = _transformed(step, X)
    return X


def _transformed(step, X):
    """The rows of X, each as a step transforms it that has learned the rows up to it."""
    if hasattr(step, "progressive"):
        return step.progressive(X)
    if not hasattr(step, "partial_fit"):
        return step.transform(X)
    rows = [step.partial_fit(row).transform(row) for row in (rows_of(X, i, i + 1) for i in range(n_rows(X)))]
    if hasattr(rows[0], "tocsr"):
        from scipy.sparse import vstack

        return vstack(rows).tocsr()
    if hasattr(rows[0], "iloc"):
        from pandas import concat

        return concat(rows)
    return np.concatenate(rows)
