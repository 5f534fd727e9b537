"""Ensembles: members are ordinary models that know nothing of each other, and a combiner listens.

A piece of rows goes to each member, in threads if asked; what they would have answered before each row is then combined in one
compiled loop. A member that fails is put to sleep with a warning, and the others go on.
"""
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from onlinekernels.model.composition import Composition, checked_rows
from onlinekernels.model.interrupts import uninterrupted
from onlinekernels.model.members import in_words
from onlinekernels.model.trouble import DIVERGED, LearningWarning, level_outside

__all__ = ["Ensemble", "spacing"]

PIECE = 512  # rows at most that all members learn before anything else happens
SPACING = 512  # rows between two looks at what has been learned, at first
ENTRIES = 256  # of a history; then every second one goes, and entries are twice as far apart
YOUNG = (500, 2000)  # rows after which the scores of detectors so far are forgotten: of few rows they are too low, and would stay
LARGEST = 1e120  # answer of a member: squares of larger ones would leave what combines them without numbers


def spacing(t):
    """How far apart the places are where an ensemble looks at itself: pieces that end there in vain cost time."""
    return SPACING if t < 8 * SPACING else 4 * SPACING


class Ensemble(Composition):
    """Voices, what their rows go through first, and a combiner.

    Parameters
    ----------
    members : dict of str to Voice
    task : "classes", "numbers" or "novelty"
    targets : int
        0 for labels.
    stack : Combiner
        See `onlinekernels._core.combiners`.
    views : dict of str to Transform
        See `onlinekernels._core.transforms`.
    positive : bool
        Whether intervals of targets that were positive so far are.
    """

    def __init__(self, members, task, targets, stack, views=None, positive=False):
        super().__init__(members, task, targets, stack, positive)
        self.views = {} if views is None else views
        self.n_jobs = 1
        self.lost = np.zeros(len(members) + 1)  # mistakes or squared errors of each member, and of all together
        self.stride, self.history = SPACING, []  # (t, weights, what was lost so far)

    # ---- On the way ---------------------------------------------------------------------------

    def _counts(self, n, weights):
        """The first row is worth judging where members had learned before."""
        return weights if any(voice.before for voice in self.members.values()) else super()._counts(n, weights)

    def rows_ahead(self):
        ahead = min(PIECE, spacing(self.t) - self.t % spacing(self.t))
        return min([ahead, *(age - self.t for age in YOUNG if age > self.t)]) if self.task == "novelty" else ahead

    def at_stop(self):
        if self.task == "novelty" and self.t in YOUNG:
            self.stack.restart()
        if self.t and self.t % self.stride == 0 and (not self.history or self.history[-1][0] < self.t):
            stride, history = self.stride, [*self.history, (self.t, self.stack.weights(), self.lost.copy())]
            if len(history) > ENTRIES:
                stride, history = 2 * stride, history[1::2]
            self.__dict__.update(stride=stride, history=history)

    def _piece(self, X, y, weights, outputs):
        """The same, and a signal waits until it is done: what views and the combiner have missed cannot be made up for."""
        awake = self.awake()
        try:
            return uninterrupted(self._committed_piece, X, y, weights, outputs)
        finally:
            for (name, member), before in zip(self.members.items(), awake, strict=True):
                if before and member.asleep is not None:
                    warnings.warn(f"The member {name!r} is put to sleep, the others go on: {member.asleep}", LearningWarning,
                                  stacklevel=level_outside())

    def _committed_piece(self, X, y, weights, outputs):
        begin = self.t
        try:
            return super()._piece(X, y, weights, outputs)
        finally:
            for view in self.views.values():
                view.committed(self.t - begin)

    def _seen(self, X, y):
        return {None: X, **{name: view.opened(X) for name, view in self.views.items()}}

    def _learned(self, rows, y, told, weights, outputs, after):
        voices, n = list(self.members.values()), len(y)

        def hear(voice):
            return self._heard(voice, rows[voice.view], told, weights, outputs)

        if self.n_jobs == 1:
            heard = list(map(hear, voices))
        else:
            with ThreadPoolExecutor(self.n_jobs) as pool:
                heard = list(pool.map(hear, voices))
        scores = np.stack([part for part, _ in heard], axis=1)
        awake = np.array([until for _, until in heard])
        joined = None
        if self.task == "classes":
            joined = np.maximum.accumulate(np.concatenate([[self.joined], y.astype(np.intp) + 1]))[:-1]
        counts = self._counts(n, weights)
        counts = np.ones(n) if counts is None else counts
        combined, deviations = np.zeros((n, outputs)), np.ones((n, max(1, self.targets)))
        places = sorted({0, n, *(int(until) for until in awake if until < n)})
        for begin, end in zip(places[:-1], places[1:], strict=True):
            part, there = slice(begin, end), awake > begin
            before = None if joined is None else joined[part]
            combined[part], deviations[part] = (self.stack.advance(scores[part], y[part], before, counts[part], there)
                                                if there.any() else self._nobody(scores[part]))
        combined, deviations, errors = self._finished(rows, y, combined, deviations, joined, counts)
        lost = self._lost(scores, combined, y, joined)
        self.__dict__.update(after, lost=lost)
        return combined, deviations, errors

    def _heard(self, voice, X, y, weights, outputs):
        """(scores of a member, up to which row it takes part); it falls asleep at the first row that it cannot take."""
        scores = np.zeros((len(y), outputs))
        if voice.asleep is not None:
            return scores, 0
        begin, until, reason = voice.rows, len(y), None
        try:
            scores = voice.learn(X, y, weights, outputs)
        except Exception as error:
            reason, until = in_words(error), 0
            if voice.rows == begin and len(y) > 1:  # it has refused all rows for the sake of one
                until, reason = self._up_to_an_error(voice, X, y, weights, scores)
        bad = np.flatnonzero(~(np.abs(scores[:until]) < LARGEST).all(axis=1))  # or not numbers
        if len(bad):
            until, reason = int(bad[0]), "its answers are too large, or not numbers"
        state = None if voice.model is None else voice.model._state
        if reason is None and state is not None and state.trouble == DIVERGED:
            reason = "learning diverges"
        voice.asleep = reason
        scores[until:] = 0.0
        return scores, until

    @staticmethod
    def _up_to_an_error(voice, X, y, weights, scores):
        for i in range(len(y)):
            row = slice(i, i + 1)
            try:
                scores[row] = voice.learn(X[row], y[row], None if weights is None else weights[row], scores.shape[1])
            except Exception as error:
                return i, in_words(error)
        return len(y), None

    def _finished(self, rows, y, combined, deviations, joined, counts):
        """(scores, deviations, innovations) as they are given out; `rows` are as the views show them."""
        return combined, deviations, self._innovations(combined, y, deviations)

    def _lost(self, scores, combined, y, joined):
        """What each member, and all together, have lost after these rows: mistakes, or squared errors of all targets."""
        if self.task == "novelty":
            return self.lost
        every = np.concatenate([scores, combined[:, None]], axis=1)
        if self.task == "numbers":
            with np.errstate(over="ignore"):
                return self.lost + ((every - y[:, None]) ** 2).sum(axis=(0, 2))
        there = np.arange(every.shape[2]) < joined[:, None, None]
        guesses = np.where(there, every, -np.inf).argmax(axis=2)
        return self.lost + ((guesses != y[:, None]) | (joined == 0)[:, None]).sum(axis=0)

    # ---- As of now ----------------------------------------------------------------------------

    def threshold(self):
        """Of a detector: ranks below it are alerts."""
        return self.stack.level

    def awake(self):
        """Which members take part."""
        return np.array([member.asleep is None for member in self.members.values()])

    def members_scores(self, X):
        """Scores of all members as of now, shape (n, members, outputs); 0 of those asleep."""
        outputs = self.targets or self.joined
        rows = {None: X, **{name: view.transform(X) for name, view in self.views.items()}}
        n = len(X)
        return np.stack([member.scores(rows[member.view], outputs) if member.asleep is None else np.zeros((n, outputs))
                         for member in self.members.values()], axis=1)

    def scores(self, X):
        scores, awake = self.members_scores(X), self.awake()
        return self.stack.combined(scores, self.joined, awake) if awake.any() else self._nobody(scores)

    def _nobody(self, scores):
        """(scores, deviations) where all members are asleep."""
        return np.full(scores[:, 0].shape, -1.0 if self.task == "classes" else 0.0), np.ones((len(scores), max(1, self.targets)))

    # ---- State --------------------------------------------------------------------------------

    def state(self):
        history = {"t": np.array([t for t, _, _ in self.history], dtype=np.int64)}
        if self.history:
            history["weights"] = np.array([weights for _, weights, _ in self.history])
            history["lost"] = np.array([lost for _, _, lost in self.history])
        return {
            **super().state(),
            "stride": self.stride,
            "lost": self.lost,
            "history": history,
            "views": {name: view.state() for name, view in self.views.items()},
        }

    def restore(self, state):
        super().restore(state)
        stride, lost = checked_rows(state, "stride"), np.array(state["lost"], dtype=float)
        if lost.shape != self.lost.shape or not (lost >= 0).all():
            raise ValueError("what the members have lost makes no sense")
        if set(state["views"]) != set(self.views):
            raise ValueError("the views are not those of the members")
        times, (groups, n) = state["history"]["t"], self.stack.weights().shape
        history = []
        if len(times):
            weights, sums = state["history"]["weights"], state["history"]["lost"]
            if weights.shape != (len(times), groups, n) or sums.shape != (len(times), n + 1) or stride < SPACING:
                raise ValueError("the history does not fit the members")
            history = [(int(t), w.copy(), s.copy()) for t, w, s in zip(times, weights, sums, strict=True)]
        for name, view in self.views.items():
            view.restore(state["views"][name])
        self.stride, self.lost, self.history = stride, lost, history
        if any(member.asleep is None and member.rows != self.t for member in self.members.values()):
            raise ValueError("the members have not learned the same rows")
        if any(view.t != self.t for view in self.views.values()):
            raise ValueError("the views have not seen the rows that the members have learned")

    def _check(self):
        super()._check()
        assert len(self.history) <= ENTRIES
        for member in self.members.values():
            assert member.asleep is not None or member.rows == self.t
        for view in self.views.values():
            view._check()
            assert view.t == self.t
