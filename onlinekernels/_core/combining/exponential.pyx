"""Hedge: members weighed by what they lost, with a guarantee.

Members say what they would have answered just before each row, then learn from it; the loop over rows is one call without
Python, so it is done whole or not at all.
"""
import numpy as np
from libc.math cimport fmax, fmin, sqrt
from onlinekernels._core.arrays import check_array
from onlinekernels._core.combining.mixing cimport shared_out
from onlinekernels._core.combining.usual cimport Usual, learn_usual, usual_square
from onlinekernels._core.combining.mixing import checked_beliefs


cdef class ExponentialWeights:
    """Hedge: weights like exp(-rate sum of losses), of which each member gives up a share to all with every row.

    Classes: losses are 1/8 [(1 - F_label)^2 + (1 + the largest other F)^2], in [0, 1] for scores in [-1, 1]. Numbers: 1/2 of the
    squared error in units of the usual one. Both are convex, so the combination, the weighted mean, loses no more than the
    weighted mean of the losses. Whoever is asleep says what the others say.

    Parameters
    ----------
    n, targets : int
        targets is 0 for labels.
    rate, share : float
    votes : bool
        Labels: each member gives 1 to the label that it says, the first of the best ones, and -1 to all others. So its loss is 1
        for a mistake and otherwise 0, and where the weighted means lead to a mistake, so do half of the weights at least.
    """

    cdef readonly Py_ssize_t n, targets
    cdef readonly double rate, share
    cdef readonly bint votes
    cdef readonly object trust, losses, own, ranges
    cdef readonly Usual usual

    def __init__(self, Py_ssize_t n, Py_ssize_t targets, double rate, double share, bint votes=False):
        if not 0.0 < rate < np.inf or not 0.0 <= share < 1.0:
            raise ValueError("there is no such rate, or no such share")
        self.n, self.targets, self.rate, self.share, self.votes = n, targets, rate, share, votes
        groups = max(1, targets)
        self.trust = np.full((groups, n), 1.0 / n)
        self.losses, self.own, self.ranges = np.zeros((groups, n)), np.zeros(groups), np.zeros(groups)
        self.usual = Usual(groups)

    def advance(self, scores, Y, joined, counts, awake):
        """(weighted means, usual errors) just before each row; the rows are learned.

        Y are places of labels (n,) or numbers (n, targets). `joined` labels were there before each row, others have -1.
        """
        cdef const double[:, :, ::1] F = np.ascontiguousarray(self.heard(scores))
        cdef const double[:, ::1] y = np.ascontiguousarray(Y, dtype=float).reshape(len(scores), -1)
        cdef const double[::1] count = np.ascontiguousarray(counts, dtype=float)
        cdef const Py_ssize_t[::1] before = np.ascontiguousarray(np.zeros(0) if self.targets else joined, dtype=np.intp)
        cdef const unsigned char[::1] there = np.ascontiguousarray(awake, dtype=np.uint8)
        cdef Py_ssize_t t, i, j, c, n = self.n, C = scores.shape[2], groups = max(1, self.targets), first, last
        found, spread = np.zeros((len(scores), C)), np.zeros((len(scores), groups))
        cdef double[:, ::1] out = found, deviations = spread, trust = self.trust, losses = self.losses, sums = self.usual.sums
        cdef double[::1] own = self.own, ranges = self.ranges, loss = np.zeros(n), scaled = np.zeros(n)
        cdef double[::1] low = self.usual.low, high = self.usual.high
        cdef double awake_trust, mine, least, most, size
        cdef long long begin = self.usual.t
        with nogil:
            for t in range(F.shape[0]):
                for j in range(groups):
                    first = j if self.targets else 0
                    last = j + 1 if self.targets else before[t]
                    awake_trust = 0.0
                    for i in range(n):
                        awake_trust += trust[j, i] if there[i] else 0.0
                    for c in range(first, last):
                        for i in range(n):
                            if there[i]:
                                out[t, c] += trust[j, i] / awake_trust * F[t, i, c]
                    size = usual_square(&sums[0, 0], groups, j, low[j], high[j]) if self.targets else 1.0
                    deviations[t, j] = sqrt(size)
                    if count[t] <= 0.0 or not self.targets and (before[t] < 2 or y[t, 0] >= before[t]):
                        continue
                    mine = count[t] * self.loss(&out[t, 0], y[t, j], j, last, size)
                    least, most = mine, mine
                    for i in range(n):
                        loss[i] = count[t] * self.loss(&F[t, i, 0], y[t, j], j, last, size) if there[i] else mine
                        least, most = fmin(least, loss[i]), fmax(most, loss[i])
                        losses[j, i] += loss[i]
                        scaled[i] = self.rate * loss[i]
                    own[j] += mine
                    ranges[j] += (most - least) * (most - least)
                    shared_out(&trust[j, 0], &scaled[0], n, self.share)
                    if self.targets:
                        learn_usual(&sums[0, 0], groups, j, y[t, j] - out[t, j], count[t], size, begin + t)
                        low[j], high[j] = fmin(low[j], y[t, j]), fmax(high[j], y[t, j])
        self.usual.t += len(scores)
        return found if self.targets else np.where(np.arange(C) < np.asarray(before)[:, None], found, -1.0), spread

    cdef double loss(self, const double* F, double y, Py_ssize_t j, Py_ssize_t classes, double size) noexcept nogil:
        cdef Py_ssize_t c, label
        cdef double rival = -1.0
        if self.targets:
            return 0.5 * (y - F[j]) * (y - F[j]) / size
        label = <Py_ssize_t> y
        for c in range(classes):
            if c != label:
                rival = fmax(rival, F[c])
        return 0.125 * ((1.0 - F[label]) ** 2 + (1.0 + rival) ** 2)

    def heard(self, scores):
        """What members say, shape (n, members, outputs): their scores, or votes."""
        if not self.votes or self.targets:
            return scores
        return np.where(np.arange(scores.shape[2]) == scores.argmax(axis=2)[:, :, None], 1.0, -1.0)

    def combined(self, scores, joined, awake):
        """The same as of now."""
        cdef double[:, ::1] sums = self.usual.sums
        cdef double[::1] low = self.usual.low, high = self.usual.high
        scores = self.heard(scores)
        trust = np.where(awake, self.trust, 0.0)
        trust = trust / np.maximum(trust.sum(axis=1, keepdims=True), 1e-300)
        groups = len(trust)
        spread = [sqrt(usual_square(&sums[0, 0], groups, j, low[j], high[j])) if self.targets else 1.0 for j in range(groups)]
        means = np.einsum("gm,tmg->tg", trust, scores) if self.targets else np.einsum("m,tmc->tc", trust[0], scores)
        return means, np.repeat([spread], len(scores), axis=0)

    def weights(self):
        """Weights of the members, shape (groups, members)."""
        return self.trust.copy()

    def state(self):
        """What is learned, by name."""
        return {"trust": self.trust.copy(), "losses": self.losses.copy(), "own": self.own.copy(), "ranges": self.ranges.copy(),
                **self.usual.state()}

    def restore(self, state):
        """Go on from what `state` gave; ValueError if it makes no sense."""
        self.trust[:] = checked_beliefs(state["trust"], self.trust.shape)
        for name in ("losses", "own", "ranges"):
            array = check_array(state[name], name, np.float64, getattr(self, name).shape)
            if (array < 0.0).any():
                raise ValueError(f"{name} are negative")
            getattr(self, name)[:] = array
        self.usual.restore(state)

    def _check(self):
        """Assert what must always hold."""
        assert np.allclose(self.trust.sum(axis=1), 1.0) and (self.trust >= 0.0).all()
