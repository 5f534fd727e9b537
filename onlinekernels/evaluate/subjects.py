"""What is judged: models of this library at once or with late labels, pipelines, estimators of scikit-learn.

A subject has a `task`; `begin` names its classes, `judge` lets it predict and learn some examples, `finish` lets it
learn those whose labels are still under way, `labels` says what the places in a `Judged` mean, and `condition` has
(terms, step, margin).
"""
import math
import sys
from collections import deque
from time import perf_counter

import numpy as np

from onlinekernels.evaluate.chunks import n_rows, rows_of, two_labels
from onlinekernels.evaluate.measures import MEASURES, Judged, judge, judged_labels, judged_scores
from onlinekernels.model.learned import targets
from onlinekernels.model.learner import OnlineLearner
from onlinekernels.nouns.labelvalues import as_list, distinct_labels, keys_of, label_array, sorted_indices


def subject(model, delay=0, novel=None):
    """What to judge a model as; `check_model` has accepted it."""
    steps, last = parts_of(model)
    if not isinstance(last, OnlineLearner):
        last = Foreign(last, delay)
    else:
        last = Late(last, delay) if delay else Prompt(last, novel)
    return Piped(steps, last) if steps else last


def parts_of(model):
    """(steps before the last one, the last step): of a pipeline its own, otherwise none and the model."""
    if not is_pipeline(model):
        return [], model
    *steps, last = (step for _, step in model.steps)
    return [step for step in steps if step is not None and step != "passthrough"], last


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


def learns_in_parts(step):
    """Whether a step of a pipeline learns row by row; others are fitted before, and stay as they are."""
    return hasattr(step, "progressive") or hasattr(step, "partial_fit")


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
            classes = two_labels(y)
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
        """(labels in the order of joining, their places as they are shown, whether the second is positive)."""
        if self.task == "novelty":
            return [1, -1], [0, 1], True
        labels = self.model._state.labels
        return labels.order, labels.display or range(len(labels.order)), self.task == "binary"

    def condition(self):
        model = self.model
        has_margin = model._current_loss().scalar_name is not None
        margin = model._state.scalar() if has_margin else math.nan
        return model.n_terms_, getattr(model, "step_", math.nan), margin


class _RowByRow:
    """A queue of examples that were predicted, and are learned `delay` examples later."""

    def __init__(self, delay):
        self.delay = delay
        self.waiting = deque()  # (what was predicted, row, label)

    def judge(self, X, y):
        """(`Judged`, seconds) of the examples whose labels have come."""
        come, start = [], perf_counter()
        for i in range(n_rows(X)):
            row, label = rows_of(X, i, i + 1), y[i : i + 1]
            if self.delay:
                row, label = row.copy(), label.copy()  # a reader may use its arrays again
            self.waiting.append((self.predict(row), row, label))
            if len(self.waiting) > self.delay:
                come.append(self._learn_oldest())
        seconds = perf_counter() - start
        return self._judged(come), seconds

    def finish(self):
        """(`Judged`, seconds) of the examples whose labels had not come; None if there are none."""
        start = perf_counter()
        come = [self._learn_oldest() for _ in range(len(self.waiting))]
        seconds = perf_counter() - start
        return (self._judged(come), seconds) if come else None

    def _learn_oldest(self):
        predicted, row, label = self.waiting.popleft()
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
            self.classes = two_labels(y)  # what a prompt model would see at once
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
        super().__init__(delay)
        self.estimator = estimator
        self.fitted = is_fitted(estimator)
        self.is_regressor = _is_regressor(estimator)
        self.order = None
        self.places = {}

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
        self.places = {key: place for place, key in enumerate(keys_of(label_array(self.order)))}

    def predict(self, row):
        """The prediction and, for two classes, the score of the second one."""
        if not self.fitted:
            return (0.0 if self.is_regressor else -1), 0.0
        answer = self.estimator.predict(row)
        if self.is_regressor:
            return float(answer[0]), math.nan
        return self.places[keys_of(answer)[0]], self._score(row) if self.task == "binary" else math.nan

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
        truth = np.array([self.places[key] for key in keys_of(y)])
        out[:, 0] = answers != truth
        return Judged(out, truth, answers, scores if self.task == "binary" else None)

    def labels(self):
        return self.order, range(len(self.order)), self.task == "binary"

    def condition(self):
        return 0, math.nan, math.nan


class Piped:
    """A subject behind steps that learn each row, transform it, and hand it on; none sees a row before its time."""

    def __init__(self, steps, last):
        self.steps = steps
        self.last = last

    @property
    def task(self):
        return self.last.task

    def begin(self, classes, y):
        self.last.begin(classes, y)

    def judge(self, X, y):
        start = perf_counter()
        for step in self.steps:
            X = _passed(step, X)
        seconds = perf_counter() - start
        judged, more = self.last.judge(X, y)
        return judged, seconds + more

    def finish(self):
        return self.last.finish()

    def labels(self):
        return self.last.labels()

    def condition(self):
        return self.last.condition()


def _passed(step, X):
    """The rows of X, each transformed by what the step knows with it."""
    if hasattr(step, "progressive"):
        return step.progressive(X)
    if not hasattr(step, "partial_fit"):
        return step.transform(X)
    rows = (rows_of(X, i, i + 1) for i in range(n_rows(X)))
    return _stacked([step.partial_fit(row).transform(row) for row in rows])


def _stacked(rows):
    first = rows[0]
    if hasattr(first, "tocsr"):
        from scipy.sparse import vstack

        return vstack(rows).tocsr()
    if hasattr(first, "iloc"):
        from pandas import concat

        return concat(rows)
    return np.concatenate(rows)


def _is_regressor(estimator):
    from sklearn.base import is_classifier, is_regressor

    if not is_classifier(estimator) and not is_regressor(estimator):
        raise TypeError(f"model must be a classifier, a regressor or a detector of this library. Got {estimator!r}.")
    return is_regressor(estimator)
