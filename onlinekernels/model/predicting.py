"""What a fitted model says of examples: labels, numbers, scores, probabilities."""
from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlinekernels import validation
from onlinekernels.model.fitted import only_if
from onlinekernels.model.labels import first_among_equals, label_column
from onlinekernels.nouns.labelvalues import plain
from onlinekernels.nouns.losses import as_loss

if TYPE_CHECKING:
    from onlinekernels.annotations import Any, Array, ArrayLike, Examples

__all__ = ["Predicting"]


def _task_is(*tasks):
    return lambda model: model._current_loss().task in tasks


class Predicting:
    """The methods of a learner that look at examples and learn nothing; what does not apply to its task does not exist."""

    _turn: Any
    _encoder: Any
    fit: Any
    _row: Any
    _checked_one: Any

    def predict(self, X: Examples) -> Any:
        """Labels, targets, or +1 (ordinary) and -1 (novel) for the rows of X."""
        with self._turn.shared:
            state = self._fitted()
            return state.answers(self._scores(state, X))

    def predict_one(self, x: Any) -> Any:
        """Prediction for one example, 1-d or an object."""
        with self._turn.shared:
            state = self._fitted()
            row = None if self._encoder is None else self._encoder.numbers_of_one(x)
            if row is not None and state.takes_rows and state.function.is_row(row):
                scores = self._decision(state, state.scaled(row.reshape(1, -1)), trusted=True)
            elif state.sparse or self._encoder is not None:
                scores = self._scores(state, self._row(state, x))
            elif state.plan.takes_objects:
                scores = self._decision(state, [self._checked_one(state, x)])
            else:
                scores = self._decision(state, state.scaled(self._checked_one(state, x).reshape(1, -1)), trusted=True)
            return plain(state.answers(scores)[0])

    @only_if(_task_is("binary", "multiclass", "novelty"), " A regressor has predict.")
    def decision_function(self, X: Examples) -> Array:
        """Scores: positive for the second of two classes, or for ordinary examples (f - rho).

        A loss of many classes gives one column per class; scikit-learn's one number for two classes if
        `fit` or `classes=` has settled that there are two.
        """
        with self._turn.shared:
            state = self._fitted()
            scores = self._scores(state, X)
            if state.loss.task == "multiclass":
                labels, scores = state.labels, state.shown(scores.T).T
                settled = labels.fixed or labels.display is not None
                return scores[:, 1] - scores[:, 0] if settled and scores.shape[1] == 2 else scores
            return np.subtract(*state.detected(scores)) if state.loss.task == "novelty" else scores[:, 0]

    @only_if(_task_is("novelty"))
    def fit_predict(self, X: Examples, y: Any = None) -> Array:
        """`fit`, then `predict`: +1 for the ordinary and -1 for the novel rows of X."""
        return self.fit(X).predict(X)

    @only_if(_task_is("novelty"))
    def score_samples(self, X: Examples) -> Array:
        """f(x): the lower, the more novel."""
        with self._turn.shared:
            state = self._fitted()
            return state.detected(self._scores(state, X))[0]

    @only_if(
        lambda model: model._current_loss().probabilistic,
        ' Probabilities come with the loss "logistic" for two classes, "multiclass_logistic" or "multiclass_squared" for many.',
    )
    def predict_proba(self, X: Examples) -> Array:
        """Probabilities of the classes, shape (n, n_classes)."""
        with self._turn.shared:
            state = self._fitted()
            scores = self._scores(state, X)
            if state.loss.task == "multiclass":
                shown = state.shown(state.loss.probabilities(scores).T).T
                return first_among_equals(shown, state.labels.first_of_best(scores))
        scores = scores[:, 0]
        return first_among_equals(state.loss.probabilities(scores), (scores > 0).astype(np.intp))

    @only_if(_task_is("binary", "multiclass", "regression"))
    def score(self, X: Examples, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Accuracy of a classifier, coefficient of determination R^2 of a regressor (its mean over targets)."""
        with self._turn.shared:
            state = self._fitted()
            scores = self._scores(state, X)
            predictions = state.answers(scores)
        if state.loss.task != "regression":
            y = label_column(y, len(scores))
            weights = validation.check_weights(sample_weight, len(y))
            return float(np.average(state.labels.agree(scores, y), weights=weights))
        y = validation.check_targets(y, len(predictions), state.targets)
        weights = validation.check_weights(sample_weight, len(y))
        residual = np.average((y - predictions) ** 2, axis=0, weights=weights)
        spread = np.average((y - np.average(y, axis=0, weights=weights)) ** 2, axis=0, weights=weights)
        with np.errstate(divide="ignore", invalid="ignore"):
            determined = np.where(spread > 0, 1.0 - residual / spread, np.where(residual == 0, 1.0, 0.0))
        return float(np.mean(determined))

    def _scores(self, state, X):
        """Scores of all rows, shape (n, outputs)."""
        if self._encoder is not None:
            X = self._to_predict(X)
        if state.plan.takes_objects:
            return self._decision(state, validation.check_objects(X))
        if state.plan.scale:
            return self._decision(state, state.scaled(self._checked_points(state, X)), trusted=True)
        points = self._checked_points(state, X, finite=not state.function.notices_bad_points)
        try:
            return self._decision(state, points)
        except FloatingPointError:
            points = self._checked_points(state, X)  # NaN or infinity: say so
            return self._decision(state, points, trusted=True)

    def _decision(self, state, examples, **how):
        """Scores of examples that have been checked and scaled; columns of labels that are yet to join are left out."""
        scores = state.engine.decision(examples, **how)
        return scores if state.form == "one" or state.labels is None else scores[:, : len(state.labels.order)]

    def _current_loss(self):
        """The loss in force: of the fitted model, else as the parameters say."""
        if self._state is not None:
            return self._state.loss
        return as_loss(getattr(self, "loss", None), self)

    def _fitted(self):
        if self._state is None:
            raise validation.not_fitted(self)
        return self._state
