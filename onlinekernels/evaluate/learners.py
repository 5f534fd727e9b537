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

from onlinekernels.evaluate.measures import MEASURES, Judged, judge, judged_labels, judged_scores
from onlinekernels.model.learned import targets
from onlinekernels.model.learner import OnlineLearner
from onlinekernels.nouns.labelvalues import as_list, column, distinct_labels, keys_of, label_array, sorted_indices
from onlinekernels.validation import check_length, is_sparse, refuse_masked, to_csr

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
    if not isinstance(last, OnlineLearner):
        last = Foreign(last, delay)
    else:
        last = Late(last, delay) if delay else Prompt(last, novel)
    return Piped(steps, last) if steps else last


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


class Prompt:
    """A model of this library that learns each example as soon as it has predicted it."""

    def __init__(self, model, novel=None):
        self.model = model
        self.novel = novel
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
        judged = judge(self.model, X, y, self.classes, self.novel)
        self.classes = None
        return judged

    def finish(self):
        """(`Judged`, seconds) of the examples that were still to be learned; None if there are none."""
        return None

    def labels(self):
        """(labels by their codes, codes in the order in which labels are shown)."""
        if self.task == "novelty":
            return [1, -1], [0, 1]
        labels = self.model._state.labels.order
        return labels, sorted_indices(labels) or range(len(labels))

    def condition(self):
        model = self.model
        has_margin = model._current_loss().scalar_name is not None
        margin = model._state.scalar() if has_margin else math.nan
        return model.n_terms_, getattr(model, "step_", math.nan), margin


class _RowByRow:
    """A queue of examples that were predicted, and are learned `delay` examples later."""

    def __init__(self, delay):
        self.delay = delay
        self.queue = deque()  # (prediction, row, label)

    def judge(self, X, y):
        """(`Judged`, seconds) of the examples whose labels have come."""
        come, start = [], perf_counter()
        for i in range(n_rows(X)):
            row, label = rows_of(X, i, i + 1), y[i : i + 1]
            if self.delay:
                row, label = row.copy(), label.copy()  # a reader may use its arrays again
            self.queue.append((self.predict(row), row, label))
            if len(self.queue) > self.delay:
                come.append(self._learn_oldest())
        seconds = perf_counter() - start
        return self._judged(come), seconds

    def finish(self):
        """(`Judged`, seconds) of the examples whose labels had not come; None if there are none."""
        start = perf_counter()
        come = [self._learn_oldest() for _ in range(len(self.queue))]
        seconds = perf_counter() - start
        return (self._judged(come), seconds) if come else None

    def _learn_oldest(self):
        predicted, row, label = self.queue.popleft()
        self.learn(row, label)
        return predicted, label

    def _judged(self, come):
        if not come:
            return Judged(np.zeros((0, len(MEASURES))))
        predicted, labels = zip(*come, strict=True)
        return self.judged(predicted, np.concatenate(labels))


class Late(_RowByRow, Prompt):
    """A model of this library whose labels come late: it learns an example when `delay` more have been predicted."""

    def __init__(self, model, delay):
        Prompt.__init__(self, model)
        _RowByRow.__init__(self, delay)

    def judge(self, X, y):
        if self.classes is None and self.task == "binary" and self.model._state is None:
            self.classes = _two_labels(y)  # what a prompt model would see at once
        return super().judge(X, y)

    def predict(self, row):
        """(scores of all outputs that there are, margin), in the units of y."""
        model = self.model
        with model._turn.shared:
            state = model._state
            if state is None:
                loss = model._current_loss()
                return np.zeros(0), 0.0 if loss.scalar_name is None else getattr(loss, loss.scalar_name)
            scores = model._scores(state, row)
            margin = state.scalar() if state.loss.scalar_name is not None else 0.0
            if state.target_scaler is not None:
                scores, units = state.target_scaler.brought_back(scores, *state.target_scaler.known())
                margin *= units.flat[0]
            return scores[0], margin

    def learn(self, row, label):
        self.model.partial_fit(row, label, classes=self.classes)
        self.classes = None

    def judged(self, predicted, y):
        state = self.model._state
        margins = np.array([margin for _, margin in predicted])
        before = np.array([len(scores) for scores, _ in predicted])
        scores = np.zeros((len(y), state.joined() if state.targets == 1 else state.targets))
        for row, (known, _) in zip(scores, predicted, strict=True):
            row[: len(known)] = known
        if self.task != "multiclass":
            return judged_scores(state, scores if state.targets > 1 else scores[:, 0], y, margins)
        if state.labels.fixed:
            before[:] = len(state.labels.order)
        y, _ = targets(state.loss, state.labels, len(y), y)
        return judged_labels(state, scores, y, margins, before)


class Foreign(_RowByRow):
    """An estimator of scikit-learn that has `partial_fit`."""

    def __init__(self, estimator, delay):
        from sklearn.base import is_classifier, is_regressor

        super().__init__(delay)
        self.is_regressor = is_regressor(estimator)
        if not self.is_regressor and not is_classifier(estimator):
            raise TypeError(f"model must be a classifier, regressor or detector of this library. Got {estimator!r}.")
        self.estimator = estimator
        self.fitted = is_fitted(estimator)
        self.order = None
        self.codes = {}

    @property
    def task(self):
        if self.is_regressor:
            return "regression"
        return "binary" if self.order is not None and len(self.order) == 2 else "multiclass"

    def begin(self, classes, y):
        """Name the classes, all of which scikit-learn wants to know before the first example."""
        if self.is_regressor:
            return
        if self.fitted:
            classes = self.estimator.classes_
        elif classes is None and y is None:
            name = type(self.estimator).__name__
            raise ValueError(f"{name} must know all labels before its first chunk: name them in classes=.")
        labels = list(distinct_labels(as_list(np.asarray(y if classes is None else classes))).values())
        self.order = [labels[i] for i in sorted_indices(labels) or range(len(labels))]
        self.codes = {key: code for code, key in enumerate(keys_of(label_array(self.order)))}

    def predict(self, row):
        """The prediction and, for two classes, the score of the second one."""
        if not self.fitted:
            return (0.0 if self.is_regressor else -1), 0.0
        answer = self.estimator.predict(row)
        if self.is_regressor:
            return float(answer[0]), math.nan
        return self.codes[keys_of(answer)[0]], self._score(row) if self.task == "binary" else math.nan

    def _score(self, row):
        if hasattr(self.estimator, "decision_function"):
            return float(self.estimator.decision_function(row)[0])
        if hasattr(self.estimator, "predict_proba"):
            return float(self.estimator.predict_proba(row)[0, 1]) - 0.5
        return math.nan

    def learn(self, row, label):
        first = {} if self.is_regressor or self.fitted else {"classes": label_array(self.order)}
        self.estimator.partial_fit(row, label, **first)
        self.fitted = True

    def judged(self, predicted, y):
        answers, scores = map(np.array, zip(*predicted, strict=True))
        out = np.full((len(y), len(MEASURES)), np.nan)
        if self.is_regressor:
            errors = y.astype(float) - answers
            out[:, 0], out[:, 1] = np.abs(errors), errors**2
            return Judged(out)
        truth = np.array([self.codes[key] for key in keys_of(y)])
        out[:, 0] = answers != truth
        return Judged(out, truth, answers, scores if self.task == "binary" else None)

    def labels(self):
        return self.order, range(len(self.order))

    def condition(self):
        return 0, math.nan, math.nan


class Piped:
    """A learner behind steps that learn each row, transform it, and hand it on; none sees a row before its time."""

    def __init__(self, steps, last):
        self.steps = steps
        self.last = last
        self.begin, self.finish, self.labels, self.condition = last.begin, last.finish, last.labels, last.condition

    @property
    def task(self):
        return self.last.task

    def judge(self, X, y):
        start = perf_counter()
        for step in self.steps:
            X = _transformed(step, X)
        seconds = perf_counter() - start
        judged, more = self.last.judge(X, y)
        return judged, seconds + more


def _transformed(step, X):
    """The rows of X, each transformed by a step that has learned the rows up to it."""
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
