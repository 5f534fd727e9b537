"""Ensembles that are good before anything is tuned: probabilities that hold, intervals that cover, targets with heavy tails.

The members are chosen in `algorithms`; here is what happens around them.
"""
import numpy as np

from onlinekernels._core.combiners import Calibration, PriorCorrection, TargetFences
from onlinekernels._core.smoothing import LocalRows
from onlinekernels.model.ensemble import Ensemble, spacing
from onlinekernels.model.interrupts import uninterrupted

__all__ = ["Classifying", "Predicting", "tilted"]

EARLY = (32, 64, 128, 256)  # rows after which there is a first look at what is known
NEIGHBOURS, ERRORS = 10, 500  # how near errors count for the local deviation, and how many are kept
FIRST, LARGE = 10, 6.0  # rows whose errors say nothing yet, and what an error counts for at most, in units of the usual one


class Front(Ensemble):
    """An ensemble with places to stop and look, where relevance is handed on to those members that look at rows by it."""

    def rows_ahead(self):
        return min([super().rows_ahead(), *(stop - self.t for stop in EARLY if stop > self.t)])

    def at_stop(self):
        super().at_stop()
        if self.t in EARLY or self.t and self.t % spacing(self.t) == 0:  # and not where a call happens to end
            uninterrupted(self._look)

    def _look(self):
        """Take up what has been learned; twice is as good as once."""
        source, view = self.members.get("self-tuned"), self.views.get("relevance")
        if source is None or view is None or source.asleep is not None or source.model._state is None:
            return
        ratio = view.rescale(np.array(list(source.model.relevance_.values())) ** 2)
        if ratio is not None:
            for member in self.members.values():
                if member.view == "relevance" and member.model._state is not None:
                    member.model._state.composition.rows.rescale(ratio)


class Classifying(Front):
    """Classes: calibrated, and with a threshold if asked for.

    `threshold` is None, "balanced" (each class counts alike, however rare) or "f1" (of the rarer of two classes: the best
    threshold of a probability is half the F1 that it reaches).
    """

    def __init__(self, members, stack, views, threshold):
        super().__init__(members, "classes", 0, stack, views)
        self.calibration, self.correction = Calibration(), None if threshold is None else PriorCorrection(threshold)
        self.tilts = []  # factors of the rows of the latest call, piece by piece

    def learn(self, X, y, weights, outputs):
        self.tilts = []
        return super().learn(X, y, weights, outputs)

    def _finished(self, rows, y, combined, deviations, joined, counts):
        likely = self.calibration.advance(0.5 * (1.0 + combined), y, joined, counts)
        if self.correction is not None:
            likely, factors = self.correction.advance(likely, y, joined)
            self.tilts.append(factors)
        there = np.arange(likely.shape[1]) < joined[:, None]
        return np.where(there, 2.0 * likely - 1.0, -1.0), deviations, np.zeros((len(y), 0))

    def scores(self, X):
        scores, deviations = super().scores(X)
        likely = self.calibration.calibrated(0.5 * (1.0 + scores), self.joined)
        if self.correction is not None:
            likely = self.correction.corrected(likely)
        return 2.0 * likely - 1.0, deviations

    def state(self):
        found = {**super().state(), "calibration": self.calibration.state()}
        return found if self.correction is None else {**found, "correction": self.correction.state()}

    def restore(self, state):
        super().restore(state)
        self.calibration.restore(state["calibration"])
        if self.correction is not None:
            self.correction.restore(state["correction"])


def tilted(likely, tilt):
    """Probabilities times a factor for each class, brought to the sum 1."""
    product = likely * tilt
    return product / np.maximum(product.sum(axis=1, keepdims=True), 1e-300)


class Predicting(Front):
    """Numbers: members are told targets within fences, unless several in a row are beyond one; deviations are local.

    A deviation is the usual error, times what errors were nearby.

    As long as all targets were positive, they are taken to go on so: below a prediction f an error is a ratio, f log(f / y) in place of
    f - y, which is the same where it is small, so intervals do not begin below 0, and cover what they would.

    With `lags`, the targets are a time series: behind its own features a row has so many values that came before it. Before its
    beginning a series is taken to have been at its first value. (Of that nothing is known at the first row; but there no member
    knows anything, and what the row looks like does not matter.)
    """

    def __init__(self, members, targets, stack, views, n_features, lags=0):
        super().__init__(members, "numbers", targets, stack, views, positive=True)
        self.lags, self.latest = lags, np.zeros((0, targets))  # the last values of a series, at most `lags`
        self.fences = TargetFences(targets)
        self.leasts = []  # before each row of the latest call, piece by piece
        self.nearby = None
        if "near" in views:
            self.nearby = LocalRows("numbers", n_features, targets, 0.5, False, ERRORS, neighbour=NEIGHBOURS)

    def learn(self, X, y, weights, outputs):
        self.leasts = []
        return super().learn(X, y, weights, outputs)

    def _lesson(self, y):
        return self.fences.clipped(y)

    def _after(self, y):
        after = super()._after(y)
        return {**after, "latest": np.concatenate([self.latest, y])[-self.lags :]} if self.lags else after

    def _seen(self, X, y):
        return super()._seen(np.hstack([X, _windows(self.latest, y, self.lags)]) if self.lags else X, y)

    def ahead(self, X, latest=None):
        """The first rows that follow a series, by default its `latest` values, as members see them."""
        past = self.latest if latest is None else latest
        window = _windows(past, past[-1:], self.lags) if self.lags else np.zeros((1, 0))
        return np.hstack([X, np.repeat(window, len(X), axis=0)])

    def _look(self):
        super()._look()
        self.fences.set()

    def _finished(self, rows, y, combined, deviations, joined, counts):
        self.fences.learn(y)
        if self.nearby is not None:
            local, unused = np.zeros(y.shape), np.zeros(y.shape)
            ratio = np.minimum(np.abs(y - combined) / deviations, LARGE)
            known = np.where(self.t + np.arange(len(y)) < FIRST, 0.0, 1.0)
            self.nearby.learn(rows["near"], ratio, known, local, unused)
            deviations = deviations * mixed(local)
        innovations, leasts = self.intervals.advance(combined, y, deviations)
        self.leasts.append(leasts)
        return combined, deviations, innovations

    def scores(self, X):
        """The same as of now; of a series, each row follows the one before, with what was predicted for it as its value."""
        if not self.lags:
            return self._scores_now(X)
        latest, found = self.latest, []
        for i in range(len(X)):
            found.append(self._scores_now(self.ahead(X[i : i + 1], latest)))
            latest = np.concatenate([latest, found[-1][0]])[-self.lags :]
        return tuple(np.concatenate(parts) for parts in zip(*found, strict=True))

    def _scores_now(self, X):
        scores, deviations = super().scores(X)
        if self.nearby is not None:
            deviations = deviations * mixed(self.nearby.scores(self.views["near"].transform(X), self.targets)[0])
        return scores, deviations

    def state(self):
        found = {**super().state(), "fences": self.fences.state()}
        if self.lags:
            found["latest"] = self.latest
        return found if self.nearby is None else {**found, "nearby": self.nearby.state()}

    def restore(self, state):
        super().restore(state)
        self.fences.restore(state["fences"])
        if self.lags:
            latest = np.array(state["latest"], dtype=float)
            if latest.shape != (min(self.t, self.lags), self.targets) or not np.isfinite(latest).all():
                raise ValueError("the latest values of the series make no sense")
            self.latest = latest
        if self.nearby is not None:
            self.nearby.restore(state["nearby"])


def _windows(latest, y, lags):
    """The last `lags` values before each of y, which follow `latest`, side by side."""
    whole = np.concatenate([latest, y])
    whole = np.concatenate([np.repeat(whole[:1], lags - len(latest), axis=0), whole])
    return whole[np.arange(len(y))[:, None] + np.arange(lags)].reshape(len(y), -1)


def mixed(local):
    """Factors of deviations by what errors nearby were, in units of the usual one; nothing is said before there are rows."""
    return np.where(local > 0.0, 0.2 + 0.8 * local, 1.0)
