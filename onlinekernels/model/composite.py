"""Models made of models: members learn for themselves, a combination listens, and the whole is an ordinary learner.

A composite meets the rest of the library by a narrow protocol.  Users' rows and labels are checked and encoded here, once;
from there on there are numbers only.  A `Composition` takes in rows (x, y) and says what it would have answered before each of
them: scores, and how far off they may be.  What these mean, labels or numbers, is said here again.
"""
import math

import numpy as np

from onlinekernels import validation
from onlinekernels.model.combining import LeastSquares
from onlinekernels.model.fitted import learned, only_if
from onlinekernels.model.labels import ManyLabels, label_column
from onlinekernels.nouns.labelvalues import plain
from onlinekernels.model.learned import Learned
from onlinekernels.model.learner import OnlineLearner, checked_coverage
from onlinekernels.nouns.losses import as_loss
from onlinekernels.nouns.params import same_parameters
from onlinekernels.model.state import State

__all__ = ["Composition", "Member", "OnlineComposite", "Parts"]

LARGEST = 1e150  # numbers whose squares are numbers
RECALLED = 500  # innovations by which intervals go
LED, GAIN = 200, 0.1  # how many of them lead a half-width, and how far each
TRIES = 20  # to finish a piece that was interrupted, before a member is left behind


# ---- Members ------------------------------------------------------------------------------------


class Member:
    """A model with deviations on encoded rows: labels are places 0, 1, 2, ..., and a class that it has not met has the score -1.

    Parameters
    ----------
    model : KRLS
    many : bool
        Whether y are places of labels, and not numbers.
    """

    def __init__(self, model, many):
        self.model = model
        self.many = many

    @property
    def rows(self):
        """How many rows it has learned."""
        return 0 if self.model._state is None else self.model.t_

    def learn(self, X, y, weights, outputs):
        """(scores (n, outputs), deviations of y (n, targets)) just before each row, which is learned."""
        known = self._known()
        scores, deviations = self.model.progressive(self.mapped(X), self._targets(y), sample_weight=weights, return_std=True)
        return self._in_place(scores, outputs, known, y), self._with_noise(deviations, len(X))

    def take(self, X, y, weights):
        """Learn rows and say nothing."""
        self.model.partial_fit(self.mapped(X), self._targets(y), sample_weight=weights)

    def scores(self, X, outputs):
        """(scores, deviations of y) as of now."""
        if self.model._state is None:
            return np.full((len(X), outputs), -1.0 if self.many else 0.0), np.ones((len(X), 1 if self.many else outputs))
        state, _, scores, deviations = self.model._known(self.mapped(X))
        if self.many:
            return self._in_place(scores, outputs, self._known(), None), self._with_noise(deviations, len(X))
        scores = np.reshape(state.answers(scores), scores.shape)
        return self._in_place(scores, outputs, None, None), self._with_noise(self._in_units(state, deviations), len(X))

    @staticmethod
    def _in_units(state, deviations):
        scaler = state.target_scaler
        return deviations if scaler is None else deviations[:, None] * scaler.known()[1]

    def mapped(self, X):
        """Rows as the model takes them."""
        return X

    def _targets(self, y):
        return y.astype(np.int64) if self.many else y if y.shape[1] > 1 else y[:, 0]

    def _known(self):
        """Places of the labels that the model has met, in the order of its columns; None where there are none."""
        if not self.many:
            return None
        return np.zeros(0, dtype=np.intp) if self.model._state is None else self.model.classes_.astype(np.intp)

    def _in_place(self, scores, outputs, known, y):
        """Scores with a column for each of so many outputs; those of labels that were not `known` begin with their first row."""
        scores = scores.reshape(len(scores), -1)
        if not self.many:
            return scores
        whole = np.full((len(scores), outputs), -1.0)
        columns = self._known()
        whole[:, columns] = scores
        for place in columns[len(known) :]:
            whole[: np.argmax(y == place) + 1, place] = -1.0
        return whole

    def _with_noise(self, deviations, n):
        """Deviations of y from those of f, shape (n, targets)."""
        state = self.model._state
        units = self._in_units(state, np.ones(1)).reshape(1, -1)
        return np.sqrt(np.reshape(deviations, (n, -1)) ** 2 + self.model.noise_ * units**2)

    def state(self):
        """What is learned, by name."""
        return {"model": None if self.model._state is None else self.model._state.to_dict()}

    def restore(self, state):
        """Go on from what `state` gave."""
        if state["model"] is not None:
            self.model.__dict__["_state"] = State.from_dict(state["model"])


# ---- Members together ---------------------------------------------------------------------------


class Composition:
    """Members and how their answers are combined: what a composite has learned, in numbers alone.

    A subclass says when to stop on the way (`rows_ahead`), what to do there (`at_stop`), and what else to remember of rows
    (`remembered`, a dictionary of attributes that all change at once).

    Every member has learned every row when a call ends, also by an error: an interrupted piece is finished first.

    Parameters
    ----------
    members : dict of str to Member
    targets : int
        Numbers to predict; 0 for labels.
    """

    def __init__(self, members, targets):
        self.members = members
        self.targets = targets
        self.t = 0
        self.joined = 0  # labels that have been learned
        # Within a factor of 3, all is much the same on the streams that were tried.
        numbers, labels = {"memory": 0.9995, "prior": 6.0}, {"memory": 0.998, "prior": 30.0, "origin": -1.0}
        self.stack = LeastSquares(len(members), max(1, targets), **numbers if targets else labels)
        self.innovations = np.zeros((0, targets))  # the last errors of numbers, in units of what was expected

    def rows_ahead(self):
        """How many rows may come before the next stop."""
        return 512

    def at_stop(self):
        """What is due when a piece has been learned."""

    def remembered(self, X, y, weights, Y, members):
        """Attributes to change with rows: {name: value}. `members` are their scores (n, members, outputs), Y the targets."""
        return {}

    def learn(self, X, y, weights, outputs):
        """(scores (n, outputs), deviations (n, groups), innovations before the first row and of each) before each row.

        y is a column of places for labels, and a matrix of numbers otherwise. All is validated.
        """
        groups = max(1, self.targets)
        scores, deviations, before = np.zeros((len(y), outputs)), np.zeros((len(y), groups)), self.innovations
        fresh, done = [before], 0
        self.at_stop()  # what an error may have left
        while done < len(y):
            rows = slice(done, min(len(y), done + self.rows_ahead()))
            scores[rows], deviations[rows], errors = self._piece(
                X[rows], y[rows], None if weights is None else weights[rows], outputs
            )
            fresh.append(errors)
            done = rows.stop
            self.at_stop()
        return scores, deviations, np.concatenate(fresh)

    def _piece(self, X, y, weights, outputs):
        start, parts = [member.rows for member in self.members.values()], []
        try:
            for member in self.members.values():
                parts.append(member.learn(X, y, weights, outputs))
        except BaseException:
            self._finish(X, y, weights, start)
            raise
        members = np.stack([scores for scores, _ in parts], axis=1)
        if self.targets == 0:
            members = np.clip(members, -1.0, 1.0)
        deviations = self._expected(np.stack([deviations for _, deviations in parts], axis=1), self.stack.weights())
        Y = y if self.targets else coded(y, outputs)
        combined = self.stack.advance(members, Y, self._counts(len(X), weights))
        errors = self._errors(combined, Y, deviations)
        self.__dict__.update(
            t=self.t + len(X),
            joined=self.joined if self.targets else max(self.joined, int(y.max()) + 1),
            innovations=np.concatenate([self.innovations, errors])[-RECALLED:],
            **self.remembered(X, y, weights, Y, members),
        )
        return combined, deviations, errors

    def _finish(self, X, y, weights, start):
        """After an error: all members learn all rows of the piece if any has begun with it; nothing is combined."""
        behind = {member: begin for member, begin in zip(self.members.values(), start, strict=True)}
        if all(member.rows == begin for member, begin in behind.items()):
            return
        for member, begin in behind.items():
            for _ in range(TRIES):
                try:
                    rows = slice(member.rows - begin, None)
                    if rows.start < len(X):
                        member.take(X[rows], y[rows], None if weights is None else weights[rows])
                    break
                except Exception:  # the first error is the one to tell
                    break
                except BaseException:
                    continue
        self.__dict__.update(
            t=self.t + len(X), joined=self.joined if self.targets else max(self.joined, int(y.max()) + 1)
        )

    def _counts(self, n, weights):
        """Weights of rows in the combination: what is said of the first row is not worth judging."""
        if self.t == 0:
            weights = np.ones(n) if weights is None else weights.copy()
            weights[0] = 0.0
        return weights

    @staticmethod
    def _expected(deviations, weights):
        """Deviations of the combination from those of members (n, members, groups): they err alike, so deviations add up."""
        shares = np.maximum(weights.T, 0.0) + 1e-9
        return np.einsum("tmg,mg->tg", deviations, shares / shares.sum(axis=0))

    def _errors(self, combined, Y, deviations):
        """|y - f| in deviations, for intervals of numbers."""
        if not self.targets:
            return np.zeros((len(Y), 0))
        return np.abs(Y - combined) / np.maximum(deviations, 1e-300)

    def scores(self, X):
        """(scores (n, outputs), deviations (n, groups)) as of now."""
        outputs = self.targets or self.joined
        parts = [member.scores(X, outputs) for member in self.members.values()]
        members = np.stack([scores for scores, _ in parts], axis=1)
        if self.targets == 0:
            members = np.clip(members, -1.0, 1.0)
        return self.stack.combined(members), self._expected(np.stack([part[1] for part in parts], axis=1), self.stack.weights())

    def state(self):
        """What is learned, by name."""
        return {
            "t": self.t,
            "joined": self.joined,
            "innovations": self.innovations,
            "stack": self.stack.state(),
            "members": {name: member.state() for name, member in self.members.items()},
        }

    def restore(self, state):
        """Go on from what `state` gave; ValueError if it makes no sense."""
        for name in ("t", "joined"):
            if type(state[name]) is not int or state[name] < 0:
                raise ValueError(f"{name} is not a number of rows")
        innovations = np.array(state["innovations"], dtype=float).reshape(len(state["innovations"]), self.targets)
        if len(innovations) > RECALLED or not (innovations >= 0.0).all():
            raise ValueError("the innovations make no sense")
        if set(state["members"]) != set(self.members):
            raise ValueError("the members are not those of the parameters")
        self.t, self.joined, self.innovations = state["t"], state["joined"], innovations
        self.stack.restore(state["stack"])
        for name, member in self.members.items():
            member.restore(state["members"][name])

    def _check(self):
        """Assert what must always hold."""
        assert self.t >= 0 and len(self.innovations) <= RECALLED
        assert len({self.stack.products.shape[1], len(self.members)}) == 1
        assert np.isfinite(self.stack.products).all() and np.isfinite(self.stack.answers).all()
        assert np.allclose(self.stack.products, self.stack.products.transpose(0, 2, 1))


def coded(y, outputs):
    """+1 at the place of each label and -1 elsewhere, shape (n, outputs)."""
    Y = np.full((len(y), outputs), -1.0)
    Y[np.arange(len(y)), y.astype(np.intp)] = 1.0
    return Y


def reach(innovations, coverage):
    """How many deviations an interval reaches, so that it has covered so much of the last innovations, shape (groups,).

    See `reaches`.
    """
    return reaches(innovations, len(innovations), coverage)[0]


def reaches(innovations, first, coverage):
    """The same before each of the innovations from the `first` on, and after the last, shape (n, groups).

    It begins with the smallest that covers at least `coverage` of the last 500, and of the one to come if that is like them.
    Then it is led along the last 200: each that was outside makes it larger, and each inside smaller, so that it balances
    where they grow or shrink. While they are too few to say, it is no less than that of a Gaussian.
    """
    from statistics import NormalDist

    starts, ends = np.arange(first, len(innovations) + 1), []
    for end in starts:
        latest = innovations[max(0, end - RECALLED) : end]
        place = math.ceil((len(latest) + 1) * coverage) - 1
        if place < len(latest):
            ends.append(np.partition(latest, place, axis=0)[place])
        else:
            ends.append(np.maximum(NormalDist().inv_cdf(0.5 + 0.5 * coverage), latest.max(axis=0, initial=0.0)))
    found = np.array(ends)
    enough = np.ceil((np.minimum(starts, RECALLED) + 1) * coverage) - 1 < np.minimum(starts, RECALLED)
    for age in range(LED, 0, -1):
        rows = np.flatnonzero(enough & (starts >= age))
        beyond = innovations[starts[rows] - age] > found[rows]
        found[rows] *= np.exp(GAIN * (beyond - (1.0 - coverage)))
    return found


# ---- The learner --------------------------------------------------------------------------------


class Parts(Learned):
    """What a composite has learned: labels, and a `Composition`. What answers mean is what it means for single models."""

    def __init__(self, loss, settings, n_features, labels, targets, composition):
        super().__init__(n_features, labels, targets, "one" if labels is None and targets == 1 else "all")
        self.loss = loss
        self.settings = self.plan = settings  # parameters in force, by name
        self.composition = composition

    def joined(self):
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
        """The state under changed parameters, of which only some may change."""
        settings = learner._settings()
        for name, before in self.settings.items():
            if not same_parameters(before, settings[name]):
                raise ValueError(f"The {name!r} parameter changed after fitting, from {before!r} to {settings[name]!r}; "
                                 "call fit to start anew.")
        self.stale = False
        return self

    def widened(self, width, fill):
        """Refuse more features: they would be new axes of the metric."""
        raise ValueError(f"a model with {self.n_features} features cannot take new ones after its first example: name all of "
                         "them in features=.")

    def check_learned(self):
        """ValueError unless what the members have learned can be read again."""
        for member in self.composition.members.values():
            if member.model is not None and member.model._state is not None:
                member.model._state.check_learned()

    def to_dict(self):
        """Everything that is learned, as plain values, nouns and arrays."""
        return {
            "plan": {"loss": self.loss, "rule": None, **self.settings},
            "stale": self.stale,
            "n_features": self.n_features,
            "feature_names": self.feature_names,
            "targets": self.targets,
            "labels": None if self.labels is None else self.labels.state(),
            "learned": flat(self.composition.state()),
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

    A subclass has `_settings`, which checks its parameters and names those that must not change, and `_begin`, which makes a
    `Composition`, or what learns, answers and is saved as one does. For novelty what it gives instead of deviations are
    thresholds, and it has `threshold()`.
    """

    kernel = None

    def _settings(self):
        """Parameters in force, {name: value}, that only `fit` may change; ValueError for one that makes no sense."""
        raise NotImplementedError

    def _begin(self, settings, n_features, targets):
        """A new `Composition`; targets is 0 for labels."""
        raise NotImplementedError

    def _plan(self):
        """Check the parameters, as every learner does by this name."""
        validation.check_integer(self, "epochs", 1)
        return self._settings()

    # ---- Learning -----------------------------------------------------------------------------

    def _checked(self, state, X, y, classes, sample_weight, start, balanced=False):
        """(state to learn in, X, y, weights), all validated; changes nothing in self."""
        if start is not None:
            raise ValueError(f"initial= starts a single function; {type(self).__name__} is made of several.")
        if self._encodes():
            X = self._to_learn(state, X, whole=balanced)
        names = validation.feature_names(X)
        if state is None:
            settings, loss = self._plan(), self._current_loss()
            X = self._points(X)
            labels, n_targets = None, 1
            if loss.task == "regression":
                y = validation.as_array_once(y)
                n_targets = validation.count_targets(y)
            elif loss.task != "novelty":
                labels = ManyLabels.first_seen(label_column(y, len(X)), classes)
            composition = self._begin(settings, X.shape[1], n_targets if labels is None else 0)
            state = Parts(loss, settings, X.shape[1], labels, n_targets, composition)
            state.feature_names = names
        else:
            if state.stale:
                self._plan()
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
        if np.abs(X).max() > LARGEST:
            raise ValueError(f"X is too large: the variance of a feature overflows. Expected values below {LARGEST:g}.")
        return X

    def _learn(self, before, state, X, y, weights=None, *, earlier=0):
        """Put a state in force and learn; an error says how many rows were. Returns what `Composition.learn` does."""
        composition = state.composition
        begin = composition.t
        y = y if state.labels is not None else y.reshape(len(X), -1)
        try:
            self._state = state
            answers = composition.learn(X, y, weights, state.targets if state.labels is None else len(state.labels.order))
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

    def progressive(self, X, y=None, classes=None, sample_weight=None, *, return_std=False, return_interval=None,
                    return_proba=False, return_labels=False):
        """Test, then train: learn like `partial_fit` and return the scores just before each update, and what else is asked for.

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
        return self._progressive((X, y, classes, sample_weight, None), *self._checked_wishes(wanted))

    def _progressive(self, call, wanted, coverage=None):
        X, y, classes, sample_weight, initial = call
        with self._turn.alone:
            before = self._state
            state, X, y, weights = self._checked(before, X, y, classes, sample_weight, initial)
            joined = state.joined()
            scores, deviations, innovations = self._learn(before, state, X, y, weights)
            found = {"margins": np.zeros(len(X)), "steps": np.ones(len(X)), "std": state.numbers(deviations)}
            if state.loss.task == "novelty":
                found["margins"] = deviations[:, 0]
            if state.labels is not None:
                found["std"] = deviations[:, 0]
                there = np.arange(scores.shape[1]) < state.labels.joined_before(y, joined)[:, None]
                if "proba" in wanted:
                    found["proba"] = state.probabilities_of_their_time(scores, y, joined)
                scores = np.where(there, scores, 0.0)
            if coverage is not None:
                half = reaches(innovations, len(innovations) - len(X), coverage)[:-1] * deviations
                found["interval"] = np.stack([state.numbers(scores - half), state.numbers(scores + half)])
            if "labels" in wanted:
                found["labels"] = state.answers_of_their_time(scores, y, joined, found["margins"])
            scores = scores[:, 0] if state.form == "one" else state.shown(scores.T).T
        others = [found[name] for name in ("steps", "margins", "std", "interval", "proba", "labels") if name in wanted]
        return (scores, *others) if others else scores

    def learn_one(self, x, y=None):
        """Learn one example, 1-d; return self."""
        if isinstance(x, np.ndarray) and x.ndim != 1:
            raise ValueError(f"x must be 1-d for learn_one. Got shape {x.shape} instead.")
        several = self._current_loss().task == "regression" and np.size(y) > 1
        if isinstance(y, (list, np.ndarray)) and np.ndim(y) > 0 and not several:
            raise ValueError(f"y must be one label or number for learn_one. Got {y!r} instead.")
        return self.partial_fit([x], None if y is None else [y])

    # ---- Predicting ---------------------------------------------------------------------------

    def predict(self, X, return_std=False):
        """Targets or labels for the rows of X; with return_std=True also standard deviations of y, noise included.

        A detector has +1 for the ordinary and -1 for the novel rows.
        """
        if return_std and self._current_loss().task == "novelty":
            raise ValueError("return_std is for numbers and classes; a detector has thresholds.")
        with self._turn.shared:
            state = self._fitted()
            scores, deviations = self._known(state, X)
            answers = state.answers(scores)
        return (answers, state.numbers(deviations) if state.labels is None else deviations[:, 0]) if return_std else answers

    def predict_one(self, x):
        """Prediction for one example, 1-d."""
        return plain(self.predict([x])[0])

    @only_if(_is_regression, " Classes have predict_proba.")
    def predict_interval(self, X, coverage=0.9):
        """Intervals for the targets of the rows of X: array (2, n), lower and upper ends; (2, n, n_targets) for several targets.

        Half their width is the deviation that is expected of y, times the factor that would have covered the last 500 examples
        as often as `coverage` says, and that follows where their errors grow or shrink.

        Parameters
        ----------
        X : array of shape (n, n_features)
        coverage : float
            The part of targets that shall lie inside, in (0, 1).
        """
        coverage = checked_coverage(coverage)
        with self._turn.shared:
            state = self._fitted()
            scores, deviations = self._known(state, X)
            half = reach(state.composition.innovations, coverage) * deviations
            return np.stack([state.answers(scores - half), state.answers(scores + half)])

    def _known(self, state, X):
        """(scores, deviations) of the rows of X."""
        X = self._to_predict(X)
        validation.check_feature_names(X, state.feature_names, type(self).__name__)
        scores, deviations = state.composition.scores(self._points(X, state.n_features))
        missing = state.joined() - scores.shape[1] if state.labels is not None else 0
        return np.pad(scores, ((0, 0), (0, missing)), constant_values=-1.0), deviations

    def _scores(self, state, X):
        return self._known(state, X)[0]

    # ---- Looking ------------------------------------------------------------------------------

    @learned
    def t_(self, state):
        """Number of examples learned."""
        return state.composition.t

    @learned
    def n_terms_(self, state):
        """Number of points of all members."""
        return sum(member.model.n_terms_ for member in state.composition.members.values() if member.model is not None and member.rows)

    @learned
    def offset_(self, state):
        """The threshold of a detector: decision_function = score_samples - offset_."""
        if state.loss.task != "novelty":
            raise AttributeError("offset_ exists for novelty losses only.")
        return state.scalar()

    @learned
    def weights_(self, state):
        """How much each member counts, {name: weight}; for several targets {name: weights}. Of numbers they sum to 1."""
        weights = state.composition.stack.weights()
        weights = weights[0] if len(weights) == 1 else weights.T
        return {name: plain(weight) for name, weight in zip(state.composition.members, weights, strict=True)}

    def _not_of_one(self, state):
        """Does not exist: there are several functions."""
        raise AttributeError(f"{type(self).__name__} is made of several functions, and has no such attribute.")

    support_vectors_ = dual_coef_ = intercept_ = coef_ = norm_ = step_ = kernel_ = knots_ = regularization_ = learned(_not_of_one)
    margin_ = width_ = budget_ = learned(_not_of_one)

    def _check(self):
        """Assert what must always hold."""
        if self._state is not None:
            self._state.composition._check()

    def _attribute(self):
        if self._state is None:
            raise AttributeError(f"This {type(self).__name__} instance is not fitted yet.")
        return self._state

    def _fitted(self):
        if self._state is None:
            raise validation.not_fitted(self)
        return self._state

    def _current_loss(self):
        if self._state is not None:
            return self._state.loss
        return as_loss("squared" if self.loss is None else self.loss, self)

    # ---- Protocols ----------------------------------------------------------------------------

    def __sklearn_tags__(self):
        """What scikit-learn wants to know; it is imported only when it asks."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags

    def _restored(self, learned):
        """The state that `Parts.to_dict` described; ValueError if its parts do not fit each other."""
        settings = {name: value for name, value in learned["plan"].items() if name not in ("loss", "rule")}
        loss, n_features, targets = learned["plan"]["loss"], learned["n_features"], learned["targets"]
        if set(settings) != set(self._settings()):
            raise ValueError("the parameters in force are not those of this learner")
        for count in (n_features, targets):
            if type(count) is not int or not 1 <= count < 2**31:
                raise ValueError("the numbers of features and targets make no sense")
        if (learned["labels"] is None) != (loss.task != "multiclass") or targets > 1 and loss.task != "regression":
            raise ValueError("the labels do not fit the loss")
        labels = None if learned["labels"] is None else ManyLabels.restore(learned["labels"])
        composition = self._begin(settings, n_features, 0 if labels is not None else targets)
        composition.restore(grown(learned["learned"]))
        if labels is not None and composition.joined > len(labels.order):
            raise ValueError("there are more outputs than labels")
        state = Parts(loss, settings, n_features, labels, targets, composition)
        state.stale, names = bool(learned["stale"]), learned["feature_names"]
        if names is not None and (len(names) != n_features or not all(isinstance(name, str) for name in names)):
            raise ValueError("the feature names do not fit the number of features")
        state.feature_names = names
        return state
