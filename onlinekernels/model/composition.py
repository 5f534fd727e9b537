"""Members that learn for themselves, and a combination that listens: what a composite model has learned.

A `Composition` takes in rows (x, y), which are numbers only, and says what it would have answered before each of them: scores, and how
far off they may be.
"""
import numpy as np

from onlinekernels._core.combiners import IntervalTracker
from onlinekernels.model.interrupts import uninterrupted

__all__ = ["Composition", "checked_rows", "coded"]


class Composition:
    """Members and how their answers are combined: what a composite has learned, in numbers alone.

    A subclass says when to stop on the way (`rows_ahead`), how a piece of rows is learned and combined (`_learned`), what is
    answered as of now (`scores`), and maybe what to do at a stop (`at_stop`) and what else a piece changes (`_after`).

    No member is ever ahead of another between two pieces: whatever is raised, each has learned all rows of a piece, or none
    has. What can fail happens before the first member learns. If the piece is broken off nevertheless, by an error or by a
    signal, all members go on to its end, and no signal keeps them from it (`_finish`); only then is it told, and the piece is
    not combined. An `Ensemble` has more to lose, and no signal breaks off its pieces; for one row of a few quick members the
    thread that this takes would cost too much.

    Parameters
    ----------
    members : dict of str to Member
    task : "classes", "numbers" or "novelty"
    targets : int
        Numbers to predict; 0 for labels.
    stack : Combiner
    positive : bool
        Whether intervals of targets that were positive so far are; see `IntervalTracker`.
    """

    def __init__(self, members, task, targets, stack, positive=False):
        self.members, self.task, self.targets, self.stack = members, task, targets, stack
        self.t = 0
        self.joined = 0  # labels that have been learned
        self.intervals = IntervalTracker(targets if task == "numbers" else 0, positive)

    def rows_ahead(self):
        """How many rows may come before the next stop."""
        raise NotImplementedError

    def at_stop(self):
        """What is due when a piece has been learned."""

    # ---- Learning -----------------------------------------------------------------------------

    def learn(self, X, y, weights, outputs):
        """(scores (n, outputs), deviations (n, groups), innovations before the first row and of each) before each row.

        y is a column of places for labels, and a matrix of numbers otherwise. All is validated.
        """
        groups = max(1, self.targets)
        scores, deviations, before = np.zeros((len(y), outputs)), np.zeros((len(y), groups)), self.intervals.innovations
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
        """(scores, deviations, innovations) of rows, which all members learn, or none does."""
        told, rows, after = self._lesson(y), self._seen(X, y), self._after(y)
        begun = {member: member.rows for member in self.members.values()}
        try:
            return self._learned(rows, y, told, weights, outputs, after)
        except BaseException:
            if self.t != after["t"]:
                uninterrupted(self._finish, rows, told, weights, begun, after)
            raise

    def _after(self, y):
        """Attributes that a piece changes whatever comes of it, {name: value}: all at once, when all members have learned it."""
        joined = max(self.joined, int(y.max()) + 1) if self.task == "classes" else self.joined
        return {"t": self.t + len(y), "joined": joined}

    def _lesson(self, y):
        """What members are told of the targets."""
        return y

    def _seen(self, X, y):
        """Rows as members see them, {view: rows}."""
        return {None: X}

    def _learned(self, rows, y, told, weights, outputs, after):
        """(scores, deviations, innovations) of rows {view: rows}, which members learn as they are `told`.

        At the end the attributes in `after` change, and others with them, all at once.
        """
        raise NotImplementedError

    def _finish(self, rows, told, weights, begun, after):
        """All members learn the rest of a piece if any has begun with it, {member: rows before it}; nothing is combined."""
        if all(member.rows == begin for member, begin in begun.items()):
            return
        for member, begin in begun.items():
            left = slice(member.rows - begin, None)
            if member.asleep is None and left.start < len(told):
                try:
                    member.take(rows[member.view][left], told[left], None if weights is None else weights[left])
                except Exception as error:  # the first one is told
                    member.give_up(error)
        self.__dict__.update(after)

    def _counts(self, n, weights):
        """Weights of rows in the combination: what is said of the first row is not worth judging."""
        if self.t == 0:
            weights = np.ones(n) if weights is None else weights.copy()
            weights[0] = 0.0
        return weights

    def _innovations(self, combined, Y, deviations):
        """Innovations, for intervals of numbers, which are updated with them."""
        return self.intervals.advance(combined, Y, deviations)[0] if self.task == "numbers" else np.zeros((len(combined), 0))

    # ---- As of now ----------------------------------------------------------------------------

    def scores(self, X):
        """(scores (n, outputs), deviations (n, groups)) as of now."""
        raise NotImplementedError

    # ---- State --------------------------------------------------------------------------------

    def state(self):
        """What is learned, by name."""
        return {
            "t": self.t,
            "joined": self.joined,
            **self.intervals.state(),
            "stack": self.stack.state(),
            "members": {name: member.state() for name, member in self.members.items()},
        }

    def restore(self, state):
        """Go on from what `state` gave; ValueError if it makes no sense."""
        for name in ("t", "joined"):
            setattr(self, name, checked_rows(state, name))
        self.intervals.restore(state)
        if set(state["members"]) != set(self.members):
            raise ValueError("the members are not those of the parameters")
        self.stack.restore(state["stack"])
        for name, member in self.members.items():
            member.restore(state["members"][name])
            member.check_labels(self.joined)

    def check_learned(self):
        """ValueError unless what the members have learned can be read again."""
        for member in self.members.values():
            if member.model is not None and member.model._state is not None:
                member.model._state.check_learned()

    def _check(self):
        """Assert what must always hold."""
        assert self.t >= 0 and len(self.intervals.innovations) <= max(0, self.t)
        self.stack._check()


def checked_rows(state, name):
    """A number of rows, or of labels, in what `state` gave; ValueError if it is none."""
    if type(state[name]) is not int or not 0 <= state[name] < 1 << 62:
        raise ValueError(f"{name} is not a number of rows")
    return state[name]


def coded(y, outputs):
    """+1 at the place of each label and -1 elsewhere, shape (n, outputs)."""
    Y = np.full((len(y), outputs), -1.0)
    Y[np.arange(len(y)), y.astype(np.intp)] = 1.0
    return Y
