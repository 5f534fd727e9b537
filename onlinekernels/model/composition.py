"""Members that learn for themselves, and a combination that listens: what a composite model has learned.

A `Composition` takes in rows (x, y), which are numbers only, and says what it would have answered before each of them: scores, and how
far off they may be.
"""
import math

import numpy as np

from onlinekernels.model.combining import LeastSquares
from onlinekernels.model.state import State

__all__ = ["Composition", "Member", "coded", "interval_factor", "interval_factors"]

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
        met = self._met()
        scores, deviations = self.model.progressive(self.mapped(X), self._targets(y), sample_weight=weights, return_std=True)
        return self._in_place(scores, outputs, met, y), self._with_noise(deviations, len(X))

    def take(self, X, y, weights):
        """Learn rows and say nothing."""
        self.model.partial_fit(self.mapped(X), self._targets(y), sample_weight=weights)

    def scores(self, X, outputs):
        """(scores, deviations of y) as of now."""
        if self.model._state is None:
            return np.full((len(X), outputs), -1.0 if self.many else 0.0), np.ones((len(X), 1 if self.many else outputs))
        state, _, scores, deviations = self.model._known(self.mapped(X))
        if self.many:
            return self._in_place(scores, outputs, self._met(), None), self._with_noise(deviations, len(X))
        scores = np.reshape(state.answers(scores), scores.shape)
        return self._in_place(scores, outputs, None, None), self._with_noise(self._in_units(state, deviations), len(X))

    @staticmethod
    def _in_units(state, deviations):
        scaler = state.current_target_scaler()
        return deviations if scaler is None else deviations[:, None] * scaler.known()[1]

    def mapped(self, X):
        """Rows as the model takes them."""
        return X

    def _targets(self, y):
        return y.astype(np.int64) if self.many else y if y.shape[1] > 1 else y[:, 0]

    def _met(self):
        """Places of the labels that the model has met, in the order of its columns; None where there are none."""
        if not self.many:
            return None
        return np.zeros(0, dtype=np.intp) if self.model._state is None else self.model.classes_.astype(np.intp)

    def _in_place(self, scores, outputs, met, y):
        """Scores with a column for each of so many outputs; those of labels that were not `met` before begin with their first row."""
        scores = scores.reshape(len(scores), -1)
        if not self.many:
            return scores
        whole = np.full((len(scores), outputs), -1.0)
        columns = self._met()
        whole[:, columns] = scores
        for place in columns[len(met) :]:
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
        numbers, labels = {"memory": 0.9995, "prior": 6.0}, {"memory": 0.998, "prior": 100.0, "origin": -1.0}
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
        t, start = self.t, [member.rows for member in self.members.values()]
        try:
            return self._learned(X, y, weights, outputs)
        except BaseException:
            if self.t == t:
                self._finish(X, y, weights, start)
            raise

    def _learned(self, X, y, weights, outputs):
        parts = [member.learn(X, y, weights, outputs) for member in self.members.values()]
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
        self._check_labels()

    def _check_labels(self):
        """ValueError unless the labels that members have met are places of those there are."""
        for member in self.members.values():
            state = None if member.model is None or not member.many else member.model._state
            if state is not None and not all(type(place) is int and 0 <= place < self.joined for place in state.labels.state()["order"]):
                raise ValueError("the labels of a member are none")

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


def interval_factor(innovations, coverage):
    """How many deviations the half-width of an interval is, so that it has covered so much of the last innovations, shape (groups,).

    See `interval_factors`.
    """
    return interval_factors(innovations, len(innovations), coverage)[0]


def interval_factors(innovations, first, coverage):
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
