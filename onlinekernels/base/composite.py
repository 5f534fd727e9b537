"""Estimators with a backend of the core other than the engine of one function: local averages, and ensembles.

Users' rows and labels are checked and encoded by `Estimator`, once; the backend sees numbers only.
"""
import copy
from typing import Any

import numpy as np

from onlinekernels._core.combiners import interval_ends, interval_factors
from onlinekernels._core.errors import row_error
from onlinekernels.base import validation
from onlinekernels.base.estimator import learned, only_if, UncertainEstimator
from onlinekernels.base.labelsets import ManyLabels
from onlinekernels.base.labelvalues import plain
from onlinekernels.base.members import member_state, shown
from onlinekernels.base.params import same_parameters
from onlinekernels.base.state import LARGEST, Learned, check_sizes
from onlinekernels.losses import as_loss

LARGEST_WEIGHT = 1e15  # of a row: what counts for more hides all others, and leaves sums of both to rounding


class CompositePlan:
    """Validated parameters of a composite, which only `fit` may change; attributes by name."""

    loss: Any
    sparse = False  # whether rows are; the first ones decide
    lags: Any = None  # of a series

    def __init__(self, **parts):
        vars(self).update(parts)

    def parts(self):
        """What it was made from, {name: value}. A single model also has a rule."""
        return {"rule": None, **vars(self)}

    def row_length(self, n_features, targets):
        """Numbers in a row as members take it."""
        return n_features + (self.lags or 0) * targets

    def check_change(self, after):
        """ValueError unless a model of this plan can go on with another one: they must be the same."""
        for name, now in vars(after).items():
            before = getattr(self, name)
            if not same_parameters(before, now):
                raise ValueError(f"The {name!r} parameter changed after fitting, from {before!r} to {now!r}; call fit "
                                 "to start anew.")

    def first_labels(self, y, classes, start=None):
        """Labels that the first call shows or names."""
        return ManyLabels.first_seen(y, classes)

    def validate_points(self, X, n_features=None, owner="model"):
        """X as the backend takes it."""
        if self.lags and not n_features and isinstance(X, np.ndarray) and X.shape[1:] == (0,):
            return X
        if self.sparse:
            rows = validation.check_sparse(X, n_features=n_features, owner=owner)
            if len(rows.data) and np.abs(rows.data).max() > LARGEST:
                raise ValueError("X is too large: the variance of a feature overflows. Expected values below "
                                 f"{LARGEST:g}.")
            return rows
        X = validation.check_points(X, n_features=n_features, dtype=np.dtype(float), owner=owner)
        too_large = np.abs(X) > LARGEST
        if too_large.any():
            what = f"is too large: the variance of a feature overflows. Expected values below {LARGEST:g}."
            raise row_error(ValueError, int(np.argmax(too_large.any(axis=1))), what)
        return X


class CompositeState(Learned):
    """What a composite has learned: labels, and a backend. Answers mean what those of single models do."""

    largest_target = LARGEST

    def __init__(self, plan, n_features, labels, targets, backend):
        super().__init__(plan, n_features, labels, targets, "one" if labels is None and targets == 1 else "all")
        self.backend = backend
        self.takes_rows = targets == 1
        self.t_before = 0  # the latest call

    @property
    def t(self):
        return self.backend.t

    def n_terms(self):
        """How many points all members have."""
        return sum(model.n_terms_ for model in map(shown, self.backend.members) if model is not None)

    def n_classes_seen(self):
        """Number of labels that have been learned; all of a fixed set."""
        if self.labels is None:
            return self.targets
        return self.n_labels() if self.labels.fixed else self.backend.n_seen

    def n_labels(self):
        """Number of labels, those of the current call included; 0 for other tasks."""
        return 0 if self.labels is None else len(self.labels.order)

    def scalar(self):
        """The threshold of a detector; 0 for other tasks."""
        return self.backend.threshold() if self.loss.task == "novelty" else 0.0

    def refreshed(self, estimator):
        self.plan.check_change(estimator._plan())
        self.stale = False
        return self

    def widened(self, width, fill):
        raise ValueError(f"a model with {self.n_features} features cannot take new ones after its first example: name "
                         "all of them in features=.")

    # ---- Learning ----

    def rows_of(self, X, owner):
        validation.check_feature_names(X, self.feature_names, owner)
        return self.plan.validate_points(X, self.n_features, owner=owner)

    def takes(self, x):
        return self.backend.takes(x)

    @property
    def done(self):
        return self.backend.t - self.t_before

    @done.setter
    def done(self, rows):
        self.t_before = self.backend.t - rows

    def learn_one(self, row, target):
        self.backend.learn_one(row, target, self.n_labels())

    def learn(self, X, y, weights, wanted=None, coverage=None):
        weights = None if weights is None else np.minimum(weights, LARGEST_WEIGHT)
        y = y if self.labels is not None else y.reshape(len(X), -1)
        n_seen, earlier, trace = self.n_classes_seen(), self.backend.innovations, None if wanted is None else {}
        found = self.backend.learn(X, y, weights, self.n_labels(), trace)
        if wanted is None:
            return None
        scores, deviations, innovations = found
        found = {"margins": deviations[:, 0] if self.loss.task == "novelty" else np.zeros(len(X)),
                 "steps": np.ones(len(X)), "std": self.shown_deviations(deviations)}
        if "proba" in wanted:
            likely = uncorrected(scores, trace["factors"]) if "factors" in trace else scores
            found["proba"] = self.probabilities_of_their_time(likely, y, n_seen)
        if self.labels is not None:
            scores = np.where(np.arange(scores.shape[1]) < self.labels.n_seen_before(y, n_seen)[:, None], scores, 0.0)
        if coverage is not None:
            known = ~np.isnan(innovations).any(axis=1)  # all but holes in a series
            factors = interval_factors(np.concatenate([earlier, innovations[known]]), len(earlier), coverage)
            half = factors[np.cumsum(known) - known] * deviations
            ends = self.interval(scores, half, trace.get("leasts"))
            found["interval"] = np.stack([self.numbers(end) for end in ends])
        if "labels" in wanted:
            found["labels"] = self.answers_of_their_time(scores, y, n_seen, found["margins"])
        return {**found, "scores": scores}

    # ---- What scores mean ----

    def shown_deviations(self, deviations):
        """Deviations as users see them."""
        return self.numbers(deviations) if self.labels is None else deviations[:, 0]

    def interval(self, scores, half_widths, leasts=None):
        """(lower, upper) ends about scores, where the least targets so far were these, or as they are now."""
        tracker = self.backend.intervals
        if not tracker.positive:
            return scores - half_widths, scores + half_widths
        return interval_ends(scores, half_widths, tracker.least if leasts is None else leasts)

    # ---- In files and pickles ----

    def to_dict(self):
        learned = self.backend.state()
        members = [member for member in self.backend.members if shown(member) is not None]
        if members:
            learned["members"] = {member.name: member_state(member) for member in members}
        return {**self.header(), "learned": learned}


def uncorrected(scores, factors):
    """Scores whose probabilities are as they were before factors for each class, brought to the sum 1."""
    product = 0.5 * (1.0 + scores) / factors
    return 2.0 * product / np.maximum(product.sum(axis=1, keepdims=True), 1e-300) - 1.0


class CompositeEstimator(UncertainEstimator):
    """Base of estimators with a backend of their own; for regression, classes, or novelty.

    A subclass has `_settings`, which checks its parameters and gives what the plan is made from, and `_begin`, which
    makes a backend of the core. For novelty what that gives instead of deviations are
    thresholds, and it has `threshold()`. A row whose weight is above `LARGEST_WEIGHT` counts as one that has it.
    """

    def _settings(self):
        """What the plan is made from, {name: value}, but the loss; ValueError for a parameter out of range."""
        raise NotImplementedError

    def _begin(self, plan, X, targets, learned=None):
        """A new backend for rows like X, at least one unless something was `learned`; targets is 0 for labels."""
        raise NotImplementedError

    def _own_loss(self):
        return as_loss("squared" if self.loss is None else self.loss, self)

    def _plan(self):
        """The plan: copies, so that later changes do not reach it."""
        validation.check_integer(self, "epochs", 1)
        return CompositePlan(**copy.deepcopy({"loss": self._own_loss(), **self._settings()}))

    def _first_state(self, plan, X, labels, targets, start=None, whole=False):
        if start is not None:
            raise ValueError(f"initial= starts a single function; {type(self).__name__} is made of several.")
        backend = self._begin(plan, X, 0 if labels is not None else targets)
        return CompositeState(plan, X.shape[1], labels, targets, backend)

    # ---- Predicting -----------------------------------------------------------------------------

    def _known(self, state, X):
        """(scores, deviations) of the rows of X."""
        return self._known_rows(state, state.rows_of(self._to_predict(X), type(self).__name__))

    def _known_rows(self, state, rows):
        """The same of rows as members take them."""
        scores, deviations = state.backend.scores(rows)
        missing = state.n_classes_seen() - scores.shape[1] if state.labels is not None else 0
        return np.pad(scores, ((0, 0), (0, missing)), constant_values=-1.0), deviations

    def _scores(self, state, X):
        return self._known(state, X)[0]

    def _scores_of_one(self, state, row):
        return state.backend.scores_one(row)[None]

    def _evaluated(self, state, X):
        scores, deviations = self._known(state, X)
        return scores, state.shown_deviations(deviations)

    def _interval(self, state, X, coverage):
        scores, deviations = self._known(state, X)
        return state.interval(scores, state.backend.intervals.half_widths(coverage) * deviations)

    def _member_row(self, state, x):
        """One example as members take it, shape (1, n_features)."""
        return state.plan.validate_points(self._to_predict([x]), state.n_features, owner=type(self).__name__)

    def _restored(self, learned):
        plan = CompositePlan(**{name: value for name, value in learned["plan"].items() if name != "rule"})
        if not learned["stale"] and not vars(self._plan()).keys() <= vars(plan).keys():
            raise ValueError("the current parameters are not those of this estimator")
        n_features, targets = learned["n_features"], learned["targets"]
        for count, least in ((n_features, 0 if plan.lags else 1), (targets, 1)):
            if type(count) is not int or not least <= count < 2**31:
                raise ValueError("the number of features or targets is not an integer in its range")
        task = plan.loss.task
        has_labels = learned["labels"] is not None
        if task == "binary" or has_labels != (task == "multiclass") or targets > 1 and task != "regression":
            raise ValueError("the labels do not fit the loss")
        check_sizes(learned, features=plan.row_length(n_features, targets), targets=targets)
        labels = None if learned["labels"] is None else ManyLabels.restore(learned["labels"])
        known = learned["learned"]
        if known.get("n_seen", 0) > (0 if labels is None else len(labels.order)):
            raise ValueError("there are more outputs than labels")
        backend = self._begin(plan, np.zeros((0, n_features)), 0 if labels is not None else targets, known)
        backend.restore(known)
        state = CompositeState(plan, n_features, labels, targets, backend)
        state.restore_header(learned)
        return state


class NewChanges:
    """Changes of a model, each once; see `CombinedEstimator.new_changes`."""

    def __init__(self, model):
        self.model, self.t = model, 0 if model._state is None else model._state.t

    def __iter__(self):
        with self.model._lock:
            state = self.model._state
            changes, begin = [] if state is None else state.backend.changes.changes, self.t
            self.t = 0 if state is None else state.t
        return iter([int(first) for first, noticed in changes if noticed >= begin])


class CombinedEstimator(CompositeEstimator):
    """Base of estimators whose backend combines members."""

    @learned
    def weights_(self, state: Any) -> Any:
        """The weight of each member, {name: weight}; for several targets {name: weights}. Of numbers they sum to 1."""
        weights = state.backend.combiner.weights()
        weights = weights[0] if len(weights) == 1 else weights.T
        return {member.name: plain(weight) for member, weight in zip(state.backend.members, weights, strict=True)}

    @learned
    def changes_(self, state: Any) -> Any:
        """When the truth changed, a list of rows: from each on there were more mistakes than were expected.

        That is noticed some rows later, as soon as it cannot be chance (once in 13,000 rows where nothing changes, at
        most); the latest 256 are kept. What changes slowly is learned, and noticed seldom.
        """
        if state.backend.changes is None:
            raise AttributeError("A detector is told nothing to be wrong about, and notices no changes.")
        return state.backend.changes.changes[:, 0].tolist()

    @only_if(lambda model: model._current_loss().task != "novelty")
    def new_changes(self) -> Any:
        """An iterable over changes: every loop over it yields the rows in `changes_` that were noticed since the one
        before.

        Examples
        --------
        >>> import numpy as np
        >>> from onlinekernels import OnlineKernelRegressor
        >>> X = np.random.default_rng(0).normal(size=(2000, 2))
        >>> y = np.where(np.arange(2000) < 1000, X[:, 0], X[:, 1])
        >>> model = OnlineKernelRegressor("low")
        >>> changes = model.new_changes()
        >>> for begin in range(0, 2000, 100):
        ...     model = model.partial_fit(X[begin : begin + 100], y[begin : begin + 100])
        ...     for row in changes:
        ...         print("at", begin + 100, "a change was noticed at", round(row, -1))
        at 1100 a change was noticed at 1000
        """
        return NewChanges(self)
