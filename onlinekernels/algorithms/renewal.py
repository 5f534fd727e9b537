"""The work of a refresh: a kernel is learned anew from rows of the past, in stages."""
import threading

import numpy as np

from onlinekernels.model.composition import coded
from onlinekernels.selftuning.descent import minimize
from onlinekernels.selftuning.evidence import Evidence, gradient_axes
from onlinekernels.selftuning.features import Features

__all__ = ["Renewal"]

STEPS = 5  # of descent
WORTH = 10.0  # nats of evidence by which another kernel must be better, once replaying it forgets what is kept no more
REPLAYED = 512  # rows in one stage


class Renewal:
    """Members in a metric that is learned anew from rows of the past, made in stages: first their metrics, then their rows.

    Parameters
    ----------
    t : int
        When it began.
    olds : dict of str to Tuned
        Members in force, by kind.
    kept : Kept
        The rows to learn from.
    sampled : int
        Of how many of them the evidence is taken at most.
    targets : int
    is_full : bool
        Whether a member in force stays unless another kernel is better: it remembers more than what is kept.
    alarm : bool
        Whether nothing is to be gone on from.
    """

    def __init__(self, t, olds, kept, sampled, targets, is_full, alarm):
        self.t, self.olds, self.kept, self.sampled, self.targets = t, olds, kept, sampled, targets
        self.is_full, self.alarm = is_full, alarm
        self.thread = None
        self.begin()

    def begin(self):
        """Nothing is done yet."""
        self.done, self.members, self.sample = 0, {}, None

    @property
    def n_stages(self):
        return len(self.olds) * (1 + -(-len(self.kept) // REPLAYED))

    def advance(self, stages):
        """Have so many stages done. An error leaves none, and they are done again."""
        self.wait()
        try:
            while self.done < min(stages, self.n_stages):
                self._stage(self.done)
                self.done += 1
        except BaseException:
            self.begin()
            raise

    def _stage(self, number):
        kinds = list(self.olds)
        if number < len(kinds):
            self._learn_metric(kinds[number])
            return
        kind, part = kinds[(number - len(kinds)) % len(kinds)], (number - len(kinds)) // len(kinds)
        rows = slice(part * REPLAYED, (part + 1) * REPLAYED)
        self._replay(kind, tuple(array[rows] for array in self.kept.rows()))

    def _learn_metric(self, kind):
        X, y, weights = self.kept.rows()
        if self.sample is None:
            features = Features(X)
            Y, centre, unit = _standard(y, self.targets)
            places = _spread_out(weights, self.sampled)
            self.sample = features, centre, unit, places, (features(X[places]), Y[places], places.astype(float), weights[places])
        features, centre, unit, places, sample = self.sample
        old = self.olds[kind]
        start = (None, None) if self.alarm else (old.axes, old.chosen)
        axes, settings, value = _tuned(sample, kind == "gradient", *start)
        value += len(places) * float(np.log(unit).sum())
        _, Y, times, weighted = sample
        if self.is_full and old.evidence(X[places], y[places], times, weighted, Y) < value + WORTH:
            self.members[kind] = old  # it remembers more than what is kept
        else:
            self.members[kind] = old.renewed(features, axes, settings, centre, unit)

    def _replay(self, kind, rows):
        X, y, weights = rows
        if self.members[kind] is not self.olds[kind] and len(X):
            self.members[kind].take(X, y if self.targets else y[:, 0], weights)

    def start(self):
        """Do all stages in a thread."""
        if self.thread is None and self.done < self.n_stages:
            self.thread = threading.Thread(target=self._in_thread, daemon=True)
            self.thread.start()

    def _in_thread(self):
        try:
            for number in range(self.done, self.n_stages):
                self._stage(number)
                self.done = number + 1
        except BaseException:  # it is done again by who needs it, and told there
            self.begin()

    def wait(self):
        """Until no thread works on it any more."""
        if self.thread is not None:
            self.thread.join()
            self.thread = None

    def finished(self, later):
        """The members, which have learned the rows that were kept, and those that came later."""
        self.advance(self.n_stages)
        for kind in self.olds:
            self._replay(kind, later)
        return self.members


def _standard(y, targets):
    """(targets of the size of 1, their means, their deviations)."""
    if not targets:
        places, y = np.unique(y[:, 0], return_inverse=True)
        return coded(y, len(places)), np.zeros(0), np.ones(0)
    centre, unit = y.mean(axis=0), y.std(axis=0)
    unit = np.where(unit > 1e-12 * np.abs(centre), unit, 1.0)
    return (y - centre) / unit, centre, np.where(unit > 0.0, unit, 1.0)


def _tuned(sample, turned, axes, settings):
    """(axes, settings, minus the log of their evidence and prior) a few steps of descent from those given; None for the first."""
    U, Y, times, weights = sample
    d = U.shape[1]
    is_new = settings is None
    axes, settings = (np.eye(d), np.zeros(d + 4)) if is_new else (axes, settings)
    evidence = Evidence(U @ axes if turned else U, Y, times, weights)
    if is_new:
        settings, _ = minimize(evidence.with_prior, settings, STEPS)
    settings = evidence.with_best_forgetting(settings)
    if not turned:
        settings, value = minimize(evidence.with_prior, settings, STEPS)
    else:
        scales = evidence.settings.values(settings)[0]
        metric = (axes * scales**2) @ axes.T
        axes = gradient_axes(axes @ evidence.outer_products(settings) @ axes.T)
        along = np.sqrt(np.einsum("ij,ij->j", axes, metric @ axes))  # the old metric along the new axes
        evidence = Evidence(U @ axes, Y, times, weights)
        settings, value = minimize(evidence.with_prior, evidence.settings.with_scales(settings, along), STEPS)
    return axes, settings, value


def _spread_out(weights, most):
    """Places of at most so many rows that have a weight, evenly over all."""
    places = np.flatnonzero(weights > 0.0)
    if len(places) <= most:
        return places
    return places[np.round(np.linspace(0, len(places) - 1, most)).astype(np.intp)]
