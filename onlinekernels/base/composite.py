"""Models made of models: the whole is an ordinary learner.

A composite meets the rest of the library by a narrow protocol. Users' rows and labels are checked and encoded here,
once; from there on there are numbers only, see `Composition`. What its answers mean, labels or numbers, is said here
again."""
from __future__ import annotations

import copy
from dataclasses import dataclass, fields
from typing import ClassVar, TYPE_CHECKING

import numpy as np

from onlinekernels._core.combiners import interval_factors
from onlinekernels._core.errors import row_error
from onlinekernels.base import validation
from onlinekernels.base.estimator import validate_coverage, learned, OnlineLearner, only_if
from onlinekernels.base.labelsets import label_column, ManyLabels
from onlinekernels.base.labelvalues import plain
from onlinekernels.base.members import member_state, shown
from onlinekernels.base.params import same_parameters
from onlinekernels.base.state import LARGEST, Learned
from onlinekernels.losses import as_loss

if TYPE_CHECKING:
    from onlinekernels.annotations import Any, Array, ArrayLike, Examples, Self

__all__ = ["CompositePlan", "CompositeState", "grown", "OnlineComposite"]


@dataclass(frozen=True, eq=False)
class CompositePlan:
    """Validated parameters of a composite, which only `fit` may change. A subclass has a field for each of its own."""

    loss: Any
    least_features: ClassVar[int] = 1

    def parts(self):
        """What it was made from, {name: value}. A single model also has a rule."""
        return {"rule": None, **{field.name: getattr(self, field.name) for field in fields(self)}}

    @classmethod
    def restored(cls, parts):
        """The plan that `parts` described; ValueError if it is one of another learner."""
        parts = {name: value for name, value in parts.items() if name != "rule"}
        if set(parts) != {field.name for field in fields(cls)}:
            raise ValueError("the current parameters are not those of this learner")
        return cls(**parts)

    def check_change(self, after):
        """ValueError unless a model of this plan can go on with another one: they must be the same."""
        now = after.parts()
        for name, before in self.parts().items():
            if not same_parameters(before, now[name]):
                raise ValueError(f"The {name!r} parameter changed after fitting, from {before!r} to {now[name]!r}; "
                                 "call fit to start anew.")


class CompositeState(Learned):
    """What a composite has learned: labels, and a `Composition`. Answers mean what those of single models do."""

    def __init__(self, plan, n_features, labels, targets, composition):
        super().__init__(n_features, labels, targets, "one" if labels is None and targets == 1 else "all")
        self.plan = plan
        self.composition = composition

    largest_target = LARGEST

    def answer_of_one(self, scores):
        """The answer for the scores of one row, 1-d."""
        if self.labels is not None:
            return self.labels.order[self.labels.best_of_one(scores)]
        if self.loss.task == "novelty":
            return 1 if scores[0] >= self.scalar() else -1
        return float(scores[0]) if self.targets == 1 else scores

    @property
    def loss(self):
        return self.plan.loss

    def n_classes_seen(self):
        """Number of labels that have been learned; all of a fixed set."""
        if self.labels is None:
            return self.targets
        return len(self.labels.order) if self.labels.fixed else self.composition.joined

    def take_labels(self, labels):
        """Go on with labels that may be shown in another order, which decides among equals."""
        self.labels = labels

    def scalar(self):
        """The threshold of a detector; 0 for other tasks."""
        return self.composition.threshold() if self.loss.task == "novelty" else 0.0

    def refreshed(self, learner):
        """The state under the parameters that a learner has now."""
        self.plan.check_change(learner._plan())
        self.stale = False
        return self

    def widened(self, width, fill):
        """Refuse more features: members have begun with those there were."""
        raise ValueError(
            f"a model with {self.n_features} features cannot take new ones after its first example: name all of "
            "them in features=."
        )

    def check_learned(self):
        """ValueError unless what the members have learned can be read again."""
        for member in self.composition.members:
            model = shown(member)
            if model is not None:
                model._state.check_learned()
            elif member.model is not None:
                member.model.check_learned()

    def to_dict(self):
        """Everything that is learned, as plain values, components and arrays."""
        learned = self.composition.state()
        if self.composition.members:
            members = [member for member in self.composition.members if shown(member) is not None]
            learned.update({"members": {member.name: member_state(member) for member in members}} if members else {})
        return {
            "plan": self.plan.parts(),
            "stale": self.stale,
            "n_features": self.n_features,
            "feature_names": self.feature_names,
            "targets": self.targets,
            "labels": None if self.labels is None else self.labels.state(),
            "learned": flat(learned),
        }


def flat(tree, path=""):
    """A dictionary of dictionaries as one, with names like paths; an empty one is itself.

    >>> flat({"a": {"b": 1, "c": {"d": 2}}})
    {'a/b': 1, 'a/c/d': 2}
    """
    found = {}
    for name, value in tree.items():
        is_branch = isinstance(value, dict) and value
        found.update(flat(value, f"{path}{name}/") if is_branch else {f"{path}{name}": value})
    return found


def grown(values):
    """The dictionary of dictionaries that `flat` was given.

    >>> grown({"a/b": 1, "a/c/d": 2})
    {'a': {'b': 1, 'c': {'d': 2}}}
    """
    tree = {}
    for path, value in values.items():
        *branches, name = path.split("/")
        place = tree
        for branch in branches:
            place = place.setdefault(branch, {})
        place[name] = value
    return tree


def _is_regression(model):
    return model._current_loss().task == "regression"


class OnlineComposite(OnlineLearner):
    """Base of learners that are made of others; numbers, one or several, classes, or novelty.

    A subclass has a `CompositePlan` of its own, `_settings`, which checks its parameters and gives the fields of the
    plan, and `_begin`, which makes a backend of the core. For novelty what that gives instead of deviations are
    thresholds, and it has `threshold()`.
    """

    kernel: Any = None
    _plan_class: type[CompositePlan]

    def _settings(self):
        """Fields of the plan, {name: value}, but the loss; ValueError for a parameter out of range."""
        raise NotImplementedError

    def _begin(self, plan, X, targets, learned=None):
        """A new backend for rows like X, at least one unless something was `learned`; targets is 0 for labels."""
        raise NotImplementedError

    def _first_state(self, X, targets):
        """The state before the first row, as a member of an ensemble that knows labels by their codes."""
        labels = None if self._current_loss().task != "multiclass" else ManyLabels([], False)
        plan = self._plan()
        backend = self._begin(plan, X, targets if labels is None else 0)
        return CompositeState(plan, X.shape[1], labels, max(1, targets), backend)

    def _plan(self):
        """The plan, as every learner has it by this name: copies, so that later changes do not reach it."""
        validation.check_integer(self, "epochs", 1)
        settings = self._settings()
        return self._plan_class(**copy.deepcopy({"loss": self._own_loss(), **settings}))

    def _first_plan(self, X):
        """The plan of a model that begins with these rows."""
        return self._plan()

    # ---- Learning -----------------------------------------------------------------------------

    def _validate_examples(self, state, X, y, classes, sample_weight, start, balanced=False):
        """(state to learn in, X, y, weights), all validated; changes nothing in self."""
        if start is not None:
            raise ValueError(f"initial= starts a single function; {type(self).__name__} is made of several.")
        if self._encodes():
            X = self._to_learn(state, X, whole=balanced)
        names = validation.feature_names(X)
        if state is None:
            plan = self._first_plan(X)
            X = self._points(X)
            labels, n_targets = None, 1
            if plan.loss.task == "regression":
                y = validation.as_array_once(y)
                n_targets = validation.count_targets(y)
            elif plan.loss.task != "novelty":
                labels = ManyLabels.first_seen(label_column(y, len(X)), classes)
            backend = self._begin(plan, X, n_targets if labels is None else 0)
            state = CompositeState(plan, X.shape[1], labels, n_targets, backend)
            state.feature_names = names
        else:
            if state.stale:
                state = state.refreshed(self)
            validation.check_feature_names(X, state.feature_names, type(self).__name__)
            X = self._points(X, state.n_features)
        weights = validation.check_weights(sample_weight, len(X))
        state, y = state.with_targets(len(X), y, classes)
        if state.labels is None and len(y) and np.abs(y).max() > LARGEST:
            raise ValueError(f"y is too large: its variance overflows. Expected values below {LARGEST:g}.")
        if self.class_weight is not None:
            weights = state.class_weights(self.class_weight, y, weights, balanced, self)
        return state, X, y, weights

    def _place_margin(self, state, X):
        """Nothing: the threshold is a quantile of all scores already."""

    def _points(self, X, n_features=None):
        """X as members take it, validated."""
        X = validation.check_points(X, n_features=n_features, dtype=np.dtype(float), owner=type(self).__name__)
        beyond = np.abs(X) > LARGEST
        if beyond.any():
            what = f"is too large: the variance of a feature overflows. Expected values below {LARGEST:g}."
            raise row_error(ValueError, int(np.argmax(beyond.any(axis=1))), what)
        return X

    def _member_row(self, state, x):
        """One example as members take it, shape (1, n_features)."""
        return self._points(self._to_predict([x]), state.n_features)

    def _learn(self, before, state, X, y, weights=None, *, earlier=0, trace=None):
        """Make a state current and learn; an error says how many rows were learned. Returns what `learn` does."""
        composition = state.composition
        begin = composition.t
        y = y if state.labels is not None else y.reshape(len(X), -1)
        try:
            self._state = state
            answers = composition.learn(X, y, weights, 0 if state.labels is None else len(state.labels.order), trace)
            self._took_in(len(X))
            return answers
        except BaseException as error:
            rows = composition.t - begin
            self._took_in(rows)
            is_new = before is None or before.composition is not composition
            if is_new and earlier + rows == 0:
                self._state = before
            elif earlier == 0:
                state.keep_learned(None if is_new else before, y[:rows])
            validation.tell(error, earlier + rows)
            raise

    def progressive(self, X: Examples, y: Any = None, classes: Any = None, sample_weight: ArrayLike | None = None, *,
                    return_std: bool = False, return_interval: float | None = None, return_proba: bool = False,
                    return_labels: bool = False) -> Any:
        """Test, then train: learn like `partial_fit` and return the scores just before each update, and what else is
        asked for.

        Returns
        -------
        scores : array of shape (n,), or (n, n_classes) for classes, (n, n_targets) for many targets
            A class that joins later has 0.
        std : array of shape (n,), with return_std=True
            Standard deviations of y, noise included; (n, n_targets) for many targets.
        interval : array of shape (2, n), with return_interval=0.9, say
            Lower and upper ends of intervals that have covered so large a part of late. See `predict_interval`.
        proba : array of shape (n, n_classes), with return_proba=True
            Probabilities of the classes; 0 for those that join later.
        labels : array of length n, with return_labels=True
            The predictions.
        """
        wanted = {"std": return_std, "interval": return_interval, "proba": return_proba, "labels": return_labels}
        return self._progressive((X, y, classes, sample_weight, None), *self._requested_outputs(wanted))

    def _progressive(self, call, wanted, coverage=None):
        X, y, classes, sample_weight, initial = call
        with self._turn.alone:
            before = self._state
            state, X, y, weights = self._validate_examples(before, X, y, classes, sample_weight, initial)
            n_seen = state.n_classes_seen()
            trace, earlier = {}, state.composition.innovations
            scores, deviations, innovations = self._learn(before, state, X, y, weights, trace=trace)
            found = {"margins": np.zeros(len(X)), "steps": np.ones(len(X)), "std": state.numbers(deviations)}
            if state.loss.task == "novelty":
                found["margins"] = deviations[:, 0]
            if state.labels is not None:
                found["std"] = deviations[:, 0]
                there = np.arange(scores.shape[1]) < state.labels.n_seen_before(y, n_seen)[:, None]
                if "proba" in wanted:
                    found["proba"] = self._likely_then(state, scores, y, n_seen, trace)
                scores = np.where(there, scores, 0.0)
            if coverage is not None:
                all_innovations = np.concatenate([earlier, innovations])
                half = interval_factors(all_innovations, len(earlier), coverage)[:-1] * deviations
                found["interval"] = np.stack([state.numbers(end) for end in self._ends(state, scores, half, trace)])
            if "labels" in wanted:
                found["labels"] = state.answers_of_their_time(scores, y, n_seen, found["margins"])
            scores = scores[:, 0] if state.form == "one" else state.shown(scores.T).T
        others = [found[name] for name in ("steps", "margins", "std", "interval", "proba", "labels") if name in wanted]
        return (scores, *others) if others else scores

    def _likely_then(self, state, scores, y, n_seen, trace):
        """Probabilities of the rows that were just learned, from the scores before each of them."""
        return state.probabilities_of_their_time(scores, y, n_seen)

    def learn_one(self, x: Any, y: Any = None) -> Self:
        """Learn one example, 1-d; return self."""
        with self._turn.alone:
            if self._learn_row(x, y):
                return self
            if isinstance(x, np.ndarray) and x.ndim != 1:
                raise ValueError(f"x must be 1-d for learn_one. Got shape {x.shape} instead.")
            several = self._current_loss().task == "regression" and np.size(y) > 1
            if isinstance(y, (list, np.ndarray)) and np.ndim(y) > 0 and not several:
                raise ValueError(f"y must be one label or number for learn_one. Got {y!r} instead.")
            self._partial_fit([x], None if y is None else [y])
        return self

    def _learn_row(self, x, y):
        """Learn a row and its label or target as they are, unless they need a longer look: whether it did."""
        state = self._state
        if state is None or state.stale or self.class_weight is not None:
            return False
        row, target = self._numbers_of_one(state, x), state.target_of(y)
        if row is None or target is None or state.targets > 1:
            return False
        composition, encoder = state.composition, self._encoder
        encoder = None if encoder is None else encoder.after_one(row)
        self._set_up(composition)
        before = composition.t
        try:
            composition.learn_one(row, target, 0 if state.labels is None else len(state.labels.order))
        except BaseException as error:
            rows = composition.t - before
            if rows and encoder is not None:
                self.__dict__["_encoder"] = encoder
            validation.tell(error, rows)
            raise
        if encoder is not None:
            self.__dict__["_encoder"] = encoder
        return True

    def _set_up(self, composition):
        """Let the backend know parameters that may be set at any time."""

    # ---- Predicting ---------------------------------------------------------------------------

    def predict(self, X: Examples, return_std: bool = False) -> Any:
        """Targets or labels for the rows of X; with return_std=True also standard deviations of y, noise included.

        A detector has +1 for the ordinary and -1 for the novel rows.
        """
        if return_std and self._current_loss().task == "novelty":
            raise ValueError("return_std is for numbers and classes; a detector has thresholds.")
        with self._turn.shared:
            state = self._fitted()
            scores, deviations = self._known(state, X)
            answers = state.answers(scores)
        if not return_std:
            return answers
        return answers, state.numbers(deviations) if state.labels is None else deviations[:, 0]

    def predict_one(self, x: Any) -> Any:
        """Prediction for one example, 1-d."""
        with self._turn.shared:
            state = self._state
            row = None if state is None else self._numbers_of_one(state, x)
            if row is not None and state.n_classes_seen():
                return state.answer_of_one(state.composition.scores_one(row))
        return plain(self.predict([x])[0])

    @only_if(_is_regression, " Classes have predict_proba.")
    def predict_interval(self, X: Examples, coverage: float = 0.9) -> Array:
        """Intervals for the targets of the rows of X: array (2, n), lower and upper ends; (2, n, n_targets) for several
        targets.

        Half their width is the deviation that is expected of y, times the factor that would have covered the last 500
        examples as often as `coverage` says, and that follows where their errors grow or shrink.

        Parameters
        ----------
        X : array of shape (n, n_features)
        coverage : float
            The part of targets that shall lie inside, in (0, 1).
        """
        coverage = validate_coverage(coverage)
        with self._turn.shared:
            state = self._fitted()
            scores, deviations = self._known(state, X)
            half = state.composition.intervals.half_widths(coverage) * deviations
            return np.stack([state.answers(end) for end in self._ends(state, scores, half)])

    def _ends(self, state, scores, half, trace=None):
        """Ends of intervals so far to each side; for rows just learned, by what was traced before each of them."""
        return scores - half, scores + half

    def _known(self, state, X):
        """(scores, deviations) of the rows of X."""
        X = self._to_predict(X)
        validation.check_feature_names(X, state.feature_names, type(self).__name__)
        return self._known_rows(state, self._points(X, state.n_features))

    def _known_rows(self, state, rows):
        """The same of rows as members take them."""
        scores, deviations = state.composition.scores(rows)
        missing = state.n_classes_seen() - scores.shape[1] if state.labels is not None else 0
        return np.pad(scores, ((0, 0), (0, missing)), constant_values=-1.0), deviations

    def _scores(self, state, X):
        return self._known(state, X)[0]

    # ---- Looking ------------------------------------------------------------------------------

    @learned
    def t_(self, state: Any) -> int:
        """Number of examples learned."""
        return state.composition.t

    @learned
    def n_terms_(self, state: Any) -> int:
        """Number of points of all members."""
        return sum(model.n_terms_ for model in map(shown, state.composition.members) if model is not None)

    @learned
    def offset_(self, state: Any) -> Any:
        """The threshold of a detector: decision_function = score_samples - offset_."""
        if state.loss.task != "novelty":
            raise AttributeError("offset_ exists for novelty losses only.")
        return state.scalar()

    @learned
    def weights_(self, state: Any) -> Any:
        """The weight of each member, {name: weight}; for several targets {name: weights}. Of numbers they sum to 1."""
        weights = state.composition.combiner.weights()
        weights = weights[0] if len(weights) == 1 else weights.T
        return {member.name: plain(weight) for member, weight in zip(state.composition.members, weights, strict=True)}

    def _not_of_one(self, state):
        """Does not exist: there are several functions."""
        raise AttributeError(f"{type(self).__name__} is made of several functions, and has no such attribute.")

    support_vectors_ = dual_coef_ = intercept_ = coef_ = norm_ = step_ = kernel_ = knots_ = learned(_not_of_one)
    regularization_ = margin_ = width_ = budget_ = learned(_not_of_one)

    def _check(self):
        """Assert what must always hold."""
        if self._state is not None:
            self._state.composition._check()

    def _current_loss(self):
        return self._own_loss() if self._state is None else self._state.loss

    def _own_loss(self):
        """The loss that the parameters name, whatever has been learned."""
        return as_loss("squared" if self.loss is None else self.loss, self)

    # ---- Protocols ----------------------------------------------------------------------------

    def __sklearn_tags__(self):
        """What scikit-learn wants to know; it is imported only when it asks."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags

    def _restored(self, learned):
        """The state that `CompositeState.to_dict` described; ValueError if its parts do not fit each other."""
        plan = self._plan_class.restored(learned["plan"])
        n_features, targets = learned["n_features"], learned["targets"]
        for count, least in ((n_features, plan.least_features), (targets, 1)):
            if type(count) is not int or not least <= count < 2**31:
                raise ValueError("the number of features or targets is not an integer in its range")
        task = plan.loss.task
        has_labels = learned["labels"] is not None
        if task == "binary" or has_labels != (task == "multiclass") or targets > 1 and task != "regression":
            raise ValueError("the labels do not fit the loss")
        labels = None if learned["labels"] is None else ManyLabels.restore(learned["labels"])
        known = grown(learned["learned"])
        composition = self._begin(plan, np.zeros((0, n_features)), 0 if labels is not None else targets, known)
        composition.restore(known)
        if labels is not None and composition.joined > len(labels.order):
            raise ValueError("there are more outputs than labels")
        state = CompositeState(plan, n_features, labels, targets, composition)
        state.stale = bool(learned["stale"])
        state.restore_names(learned["feature_names"])
        return state
