"""Classes: members' scores, weighed by leaky Newton steps on the log loss.

Members say what they would have answered just before each row, then learn from it; the loop over rows is one call without
Python, so it is done whole or not at all.
"""
import numpy as np
from libc.math cimport INFINITY, exp, fmax, fmin, log
from onlinekernels._core.combining.leaky cimport Leaky
from onlinekernels._core.combining.mixing cimport CAP, shared_out
from onlinekernels._core.combining.mixing import checked_beliefs
from onlinekernels._core.combining.usual import checked_count

cdef double SOFTEST = 0.02          # that is added to both sides of odds, so that certainty is finite


def log_odds(scores):
    """Scores 2 p - 1 as log odds of p, within [-1, 1] again: rare classes have small p, which differ little, and odds that differ much.

    >>> log_odds(np.array([-1.0, -0.9, 0.0, 1.0])).round(2).tolist()
    [-1.0, -0.6, 0.0, 1.0]
    """
    return np.log((1.0 + SOFTEST + scores) / (1.0 + SOFTEST - scores)) / log((2.0 + SOFTEST) / SOFTEST)


cdef class NewtonStack:
    """Classes: p = softmax(sum_i w_i F_i) with one weight for each member, by leaky online Newton steps on the log loss.

    F are members' scores in [-1, 1]. Several settings (memory, prior) run side by side, and are mixed by Bayes' rule with a share.
    Some of them may hear log odds instead as long as there are two classes; see `log_odds`.

    Parameters
    ----------
    n : int
        Members.
    settings : list of (memory, prior)
    share : float
    total : float
        What the weights sum to beforehand.
    odds : list of bool or None
        Which settings hear log odds.
    """

    cdef readonly Leaky fit
    cdef readonly object belief, odds
    cdef readonly double share
    cdef readonly long long t

    def __init__(self, Py_ssize_t n, settings, double share=1e-3, double total=2.0, odds=None):
        self.fit = Leaky(n, settings, total / n)
        self.odds = np.zeros(len(settings), dtype=np.uint8) if odds is None else np.array(odds, dtype=np.uint8)
        self.belief = np.full(len(settings), 1.0 / len(settings))
        self.share, self.t = share, 0

    def advance(self, scores, places, joined, counts, awake=None):
        """(2 p - 1, ones) just before each row, shapes (n, classes) and (n, 1); the rows are learned.

        Parameters
        ----------
        scores : array of shape (n, members, classes)
            Those of members asleep are 0.
        places : array of shape (n,)
            The labels.
        joined : array of shape (n,)
            How many classes there were before each row; p of others is 0, and a row that brings a new one is not judged.
        counts : array of shape (n,)
            Weights of the rows.
        awake : ignored
        """
        cdef const double[:, :, ::1] F = np.ascontiguousarray(scores), G = self.heard(scores, joined)
        cdef const unsigned char[::1] odds = self.odds
        cdef const double* said
        cdef const double[::1] y = np.ascontiguousarray(places, dtype=float), count = np.ascontiguousarray(counts, dtype=float)
        cdef const Py_ssize_t[::1] before = np.ascontiguousarray(joined, dtype=np.intp)
        found = np.zeros((len(scores), scores.shape[2]))
        cdef Py_ssize_t t, k, label, n = self.fit.n, K = self.fit.n_settings, C = scores.shape[2]
        cdef double[:, ::1] out = found, w = self.fit.w, likely = np.zeros((K, max(1, C)))
        cdef double[:, :, ::1] S = self.fit.S
        cdef const double[::1] memory = self.fit.memories, prior = self.fit.priors
        cdef double[::1] belief = self.belief, losses = np.zeros(K), x = np.zeros(n), g = np.zeros(n)
        with nogil:
            for t in range(F.shape[0]):
                label = <Py_ssize_t> y[t]
                if before[t] > 0:
                    for k in range(K):
                        said = &G[t, 0, 0] if odds[k] and before[t] == 2 else &F[t, 0, 0]
                        self.softmax(said, C, before[t], &w[k, 0], &likely[k, 0])
                    self.mix(&likely[0, 0], K, C, before[t], &belief[0], &out[t, 0])
                for k in range(K):
                    self.fit.leak(&w[k, 0], &S[k, 0, 0], memory[k], prior[k], self.t)
                if 1 < before[t] and label < before[t] and count[t] > 0.0:
                    for k in range(K):
                        losses[k] = fmin(CAP, -count[t] * log(fmax(likely[k, label], 1e-300)))
                        said = &G[t, 0, 0] if odds[k] and before[t] == 2 else &F[t, 0, 0]
                        self.step(said, C, before[t], label, count[t], &likely[k, 0], &w[k, 0], &S[k, 0, 0], &x[0], &g[0])
                    shared_out(&belief[0], &losses[0], K, self.share)
                self.t += 1
        return 2.0 * found - 1.0, np.ones((len(scores), 1))

    def heard(self, scores, joined):
        """What the settings that hear log odds do; the scores themselves where nobody does."""
        if not self.odds.any() or not np.any(np.asarray(joined) == 2):
            return np.ascontiguousarray(scores)
        return np.ascontiguousarray(log_odds(scores))

    cdef void softmax(self, const double* F, Py_ssize_t C, Py_ssize_t joined, const double* w, double* p) noexcept nogil:
        cdef Py_ssize_t i, c
        cdef double largest = -INFINITY, total = 0.0
        for c in range(joined):
            p[c] = 0.0
        for i in range(self.fit.n):
            for c in range(joined):
                p[c] += w[i] * F[i * C + c]
        for c in range(joined):
            largest = fmax(largest, p[c])
        for c in range(joined):
            p[c] = exp(p[c] - largest)
            total += p[c]
        for c in range(joined):
            p[c] /= total

    cdef void mix(self, const double* likely, Py_ssize_t K, Py_ssize_t C, Py_ssize_t joined, const double* belief,
                  double* out) noexcept nogil:
        cdef Py_ssize_t k, c
        for c in range(joined):
            out[c] = 0.0
            for k in range(K):
                out[c] += belief[k] * likely[k * C + c]

    cdef void step(self, const double* F, Py_ssize_t C, Py_ssize_t joined, Py_ssize_t label, double count, const double* p,
                   double* w, double* S, double* x, double* g) noexcept nogil:
        """A Newton step: the curvature is that along what tells the label from its strongest rival."""
        cdef Py_ssize_t i, j, c, n = self.fit.n, rival = 1 if label == 0 else 0
        cdef double direction
        for c in range(joined):
            if c != label and p[c] > p[rival]:
                rival = c
        for i in range(n):
            x[i] = F[i * C + label] - F[i * C + rival]
            g[i] = F[i * C + label]
            for c in range(joined):
                g[i] -= p[c] * F[i * C + c]
        self.fit.learn_direction(S, x, count * p[label] * p[rival])
        for i in range(n):
            direction = 0.0
            for j in range(n):
                direction += S[i * n + j] * g[j]
            w[i] += count * direction

    def combined(self, scores, Py_ssize_t joined, awake=None):
        """The same as of now."""
        cdef const double[:, :, ::1] F = np.ascontiguousarray(scores), G = self.heard(scores, joined)
        cdef const unsigned char[::1] odds = self.odds
        found = np.zeros((len(scores), scores.shape[2]))
        cdef Py_ssize_t t, k, K = self.fit.n_settings, C = scores.shape[2]
        cdef double[:, ::1] out = found, w = self.fit.w, likely = np.zeros((K, max(1, C)))
        cdef double[::1] belief = self.belief
        with nogil:
            for t in range(F.shape[0] if joined else 0):
                for k in range(K):
                    self.softmax(&G[t, 0, 0] if odds[k] and joined == 2 else &F[t, 0, 0], C, joined, &w[k, 0], &likely[k, 0])
                self.mix(&likely[0, 0], K, C, joined, &belief[0], &out[t, 0])
        return 2.0 * found - 1.0, np.ones((len(scores), 1))

    def weights(self):
        """Mean weights over the settings, shape (1, members)."""
        return (self.belief @ self.fit.w).reshape(1, -1)

    def state(self):
        """What is learned, by name."""
        return {"t": int(self.t), "belief": self.belief.copy(), **self.fit.state()}

    def restore(self, state):
        """Go on from what `state` gave; ValueError if it makes no sense."""
        self.t = checked_count(state["t"])
        self.belief[:] = checked_beliefs(state["belief"], self.belief.shape)
        self.fit.restore(state)

    def _check(self):
        """Assert what must always hold."""
        self.fit._check()
        assert abs(self.belief.sum() - 1.0) < 1e-9 and (self.belief >= 0.0).all()
