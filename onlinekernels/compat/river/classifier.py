"""Classifiers of river."""
from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from river import base

from onlinekernels.algorithms import NORMA, SILK
from onlinekernels.compat.river.twolabels import TwoLabels
from onlinekernels.compat.river.unitscores import Usual
from onlinekernels.compat.river.wrapper import Wrapper, alone, task_of
from onlinekernels.nouns.labelvalues import as_list, label_array
from onlinekernels.nouns.losses import Logistic, MulticlassLogistic
from onlinekernels.validation import bad_parameter, check_class_weight

if TYPE_CHECKING:
    from onlinekernels.annotations import Any, Examples


class RiverClassifier(Wrapper, base.MiniBatchClassifier):
    """A model with a loss for two or many classes, as a classifier of river.

    Before the first example `predict_one` gives None. Probabilities exist for logistic losses only; before
    the first example they are 1/2 each for two classes, and none for many.

    Parameters
    ----------
    {model}
    {features}
    {fill}
    classes
        The negative and the positive label of a two-class loss, or all labels of a multiclass loss. None takes
        them as they come: of two, 1 and True are positive, 0, -1 and False negative, and any others are
        negative first and positive second.
    scores
        "unit" gives the losses of two classes that have no probabilities something that looks like them, for metrics
        such as ROCAUC: f(x) on [0, 1] in the same order, 1/2 at 0 and 3/4 one deviation of the scores so far above it. None
        gives probabilities of logistic losses only.

    Examples
    --------
    >>> from onlinekernels import NORMA
    >>> from onlinekernels.compat.river import RiverClassifier
    >>> model = RiverClassifier(NORMA("hinge", "gaussian"))
    >>> model.learn_one({"length": 1.0}, "ham")
    >>> model.learn_one({"length": -1.0, "capitals": 3}, "spam")
    >>> model.predict_one({"length": 0.9}), model.predict_one({"capitals": 2})
    ('ham', 'spam')
    """

    _tasks = ("binary", "multiclass")

    def __init__(self, model: Any, features: Any = None, fill: Any = 0.0, classes: Any = None,
                 scores: Any = None) -> None:
        self.classes = classes
        self.scores = scores
        super().__init__(model, features, fill)
        self._probabilistic = hasattr(model, "predict_proba")
        if scores == "unit" and not self._probabilistic:
            if task_of(model) == "multiclass":
                raise bad_parameter(self, "scores", "None for a loss of many classes", scores)
            self._usual = Usual()
        self._labels = self._first_labels()
        self._weights: dict[Any, float] = {}  # of classes, if the learner does not know them by their names
        if self._labels is not None and not self._learned and isinstance(model.class_weight, dict):
            check_class_weight(model, model.class_weight)
            self._weights, self.learner.class_weight = model.class_weight, None

    @classmethod
    def _unit_test_params(cls):
        yield {"model": NORMA(budget=100)}
        yield {"model": NORMA(Logistic(), budget=100)}
        yield {"model": SILK(MulticlassLogistic(), budget=100)}

    @property
    def _multiclass(self):
        return self._labels is None

    def _first_labels(self):
        if self._learned and self.classes is not None:
            raise bad_parameter(self, "classes", "None for a fitted model, which knows its labels", self.classes)
        if task_of(self.model) == "multiclass":
            return None
        if self._learned:
            classes = as_list(self.learner.classes_)
            return TwoLabels(dict(zip(classes, classes)), classes)
        classes = () if self.classes is None else tuple(self.classes)
        if self.classes is not None and len(set(classes)) != 2:
            raise bad_parameter(self, "classes", "two different labels for a two-class loss", self.classes)
        return TwoLabels(dict(zip(classes, (False, True))))

    def _first_time(self):
        return {"classes": self.classes} if self._multiclass else {}

    def learn_one(self, x: Any, y: Any, w: float = 1.0) -> None:
        """Learn one example; `w` multiplies its loss."""
        labels = self._labels
        if labels is not None:
            w *= self._weights.get(y, 1.0)
            side = labels.sides.get(y)
            if side is None:
                labels = labels.including([y])
                side = labels.sides[y]
            y = side
        self._learn_one(x, y, w, labels)

    def learn_many(self, X: Examples, y: Any) -> None:
        """Learn the rows of a data frame in their order: what one at a time would give, but faster."""
        y, labels, weights = list(y), self._labels, None
        if labels is not None:
            weights = [self._weights.get(label, 1.0) for label in y] if self._weights else None
            labels = labels.including(y)
            y = [labels.sides[label] for label in y]
        self._learn_many(X, y, labels, weights)

    def predict_one(self, x: Any) -> Any:
        """The label of x; None before the first example."""
        if not self._learned:
            return None
        answer = self.learner.predict_one(self._example(x)[0])
        return answer if self._labels is None else self._labels.name(answer)

    def predict_many(self, X: Examples) -> Any:
        """The labels of the rows of a data frame."""
        import pandas

        if not self._learned or not len(X):
            return pandas.Series([None] * len(X), index=X.index, dtype=object)
        answers = as_list(self.learner.predict(self._examples(X)[0]))
        if self._labels is not None:
            answers = [self._labels.name(answer) for answer in answers]
        return pandas.Series(label_array(answers), index=X.index)

    def predict_proba_one(self, x: Any) -> dict[Any, float]:
        """{label: probability} of the labels seen so far; for logistic losses only."""
        self._check_probabilistic()
        labels, rows = self._probabilities(alone(self._example(x)[0]) if self._learned else [x])
        return dict(zip(labels, rows[0].tolist()))

    def predict_proba_many(self, X: Examples) -> Any:
        """A data frame with one column for each label seen so far; for logistic losses only."""
        import pandas

        self._check_probabilistic()
        labels, rows = self._probabilities(self._examples(X)[0] if self._learned and len(X) else X)
        return pandas.DataFrame(dict(zip(labels, rows.T)), index=X.index)

    def _check_probabilistic(self):
        if not self._probabilistic and self._usual is None:
            raise NotImplementedError(
                f"{self.learner!r} gives no probabilities; the logistic losses do, and for metrics of two classes "
                'scores="unit" does as well.'
            )

    def _probabilities(self, examples):
        """(labels, their probabilities with a row for each example)."""
        labels = None if self._multiclass else self._labels.names()
        if labels is not None and len(labels) == 1:
            return labels, np.ones((len(examples), 1))
        if not self._learned or not len(examples):
            labels = labels or []
            return labels, np.full((len(examples), len(labels)), 0.5)
        if self._usual is not None:
            positive = self._usual.unit(self.learner.decision_function(examples), 0.0)
            return labels, np.column_stack([1.0 - positive, positive])
        return labels or as_list(self.learner.classes_), self.learner.predict_proba(examples)
