"""Numbers: members' predictions, weighed by leaky least squares.

Members say what they would have answered just before each row, then learn from it; the loop over rows is one call without
Python, so it is done whole or not at all.
"""
import numpy as np
from libc.math cimport fabs, fmax, fmin, sqrt
from onlinekernels._core.combining.leaky cimport Leaky
from onlinekernels._core.combining.mixing cimport CAP, shared_out
from onlinekernels._core.combining.usual cimport FEW, Usual, learn_usual, usual_square
from onlinekernels._core.combining.mixing import checked_beliefs


cdef class SquaresStack:
    """Numbers: members' mean, plus leaky least squares on how members differ from it; and exponential weights beside these.

    With f the mean of the members that are awake, y - f = sum_i v_i (f_i - f), so units and offsets do not matter, and weights sum to 1. Each
    target is a fit of its own, in units of its usual squared error. What members say is cut to the range of the targets so far,
    widened by itself on both sides.

    Parameters
    ----------
    n, targets : int
    settings : list of (memory, prior)
    share : float
    """

    cdef readonly list fits
    cdef readonly Usual usual
    cdef readonly object belief, trust
    cdef readonly double share

    def __init__(self, Py_ssize_t n, Py_ssize_t targets, settings, double share=1e-3):
        self.fits = [Leaky(n, settings, 0.0) for _ in range(targets)]
        self.usual = Usual(targets)
        self.belief = np.full((targets, len(settings) + 1), 1.0 / (len(settings) + 1))  # the last is for exponential weights
        self.trust = np.full((targets, n), 1.0 / n)
        self.share = share

    def advance(self, scores, Y, joined, counts, awake):
        """(combined scores, usual errors) just before each row, shapes (n, targets); the rows are learned."""
        cdef const double[:, :, ::1] F = np.ascontiguousarray(scores)
        cdef const double[:, ::1] y = np.ascontiguousarray(Y)
        cdef const double[::1] count = np.ascontiguousarray(counts, dtype=float)
        cdef const unsigned char[::1] there = np.ascontiguousarray(awake, dtype=np.uint8)
        cdef Leaky fit = self.fits[0]
        cdef Py_ssize_t t, i, j, k, n = fit.n, K = fit.n_settings, T = Y.shape[1]
        found, spread = np.zeros(Y.shape), np.zeros(Y.shape)
        cdef double[:, ::1] out = found, deviations = spread, sums = self.usual.sums, belief = self.belief, trust = self.trust, w
        cdef double[:, :, ::1] S
        cdef double[::1] low = self.usual.low, high = self.usual.high, d = np.zeros(n), x = np.zeros(n), said = np.zeros(K + 1)
        cdef double[::1] losses = np.zeros(max(K + 1, n))
        cdef const double[::1] memory = fit.memories, prior = fit.priors
        cdef double middle, size, error, mixed
        cdef long long begin = self.usual.t
        for j in range(T):
            fit = self.fits[j]
            w, S = fit.w, fit.S
            with nogil:
                for t in range(F.shape[0]):
                    middle = differences(&F[t, 0, 0], n, T, j, &there[0], low[j], high[j], begin + t, &d[0])
                    size = usual_square(&sums[0, 0], T, j, low[j], high[j])
                    deviations[t, j] = sqrt(size)
                    mixed = 0.0
                    for k in range(K):
                        said[k] = middle
                        for i in range(n):
                            said[k] += w[k, i] * d[i]
                        mixed += belief[j, k] * said[k]
                    said[K] = middle
                    for i in range(n):
                        said[K] += trust[j, i] * d[i]
                    mixed += belief[j, K] * said[K]
                    out[t, j] = mixed
                    for k in range(K):
                        fit.leak(&w[k, 0], &S[k, 0, 0], memory[k], prior[k], begin + t)
                    if count[t] > 0.0:
                        for i in range(n):
                            x[i] = d[i] / sqrt(size)
                        for k in range(K):
                            self.step(fit, &w[k, 0], &S[k, 0, 0], &x[0], (y[t, j] - said[k]) / sqrt(size), count[t])
                        for k in range(K + 1):
                            error = y[t, j] - said[k]
                            losses[k] = fmin(CAP, 0.5 * count[t] * error * error / size)
                        shared_out(&belief[j, 0], &losses[0], K + 1, self.share)
                        for i in range(n):
                            error = y[t, j] - middle - d[i]
                            losses[i] = fmin(CAP, 0.5 * count[t] * error * error / size)
                        shared_out(&trust[j, 0], &losses[0], n, self.share)
                        learn_usual(&sums[0, 0], T, j, y[t, j] - mixed, count[t], size, begin + t)
                        low[j], high[j] = fmin(low[j], y[t, j]), fmax(high[j], y[t, j])
        self.usual.t = begin + len(Y)
        return found, spread

    cdef void step(self, Leaky fit, double* w, double* S, const double* x, double error, double count) noexcept nogil:
        """Least squares in units of the usual error; of an outlier counts what is left of it within 4 of them."""
        cdef Py_ssize_t i
        cdef double precision = count * (1.0 if fabs(error) < 4.0 else 4.0 / fabs(error))
        cdef double factor = precision / (1.0 + precision * fit.learn_direction(S, x, precision))
        for i in range(fit.n):
            w[i] += factor * error * fit.work[i]

    def combined(self, scores, joined, awake):
        """The same as of now."""
        cdef const double[:, :, ::1] F = np.ascontiguousarray(scores)
        cdef const unsigned char[::1] there = np.ascontiguousarray(awake, dtype=np.uint8)
        weights = np.ascontiguousarray(self.differences_weights())
        found = np.zeros((len(scores), scores.shape[2]))
        cdef double[:, ::1] out = found, v = weights, sums = self.usual.sums
        cdef double[::1] d = np.zeros(scores.shape[1]), low = self.usual.low, high = self.usual.high
        cdef Py_ssize_t t, i, j, n = scores.shape[1], T = scores.shape[2]
        for t in range(len(scores)):
            for j in range(T):
                out[t, j] = differences(&F[t, 0, 0], n, T, j, &there[0], low[j], high[j], self.usual.t, &d[0])
                for i in range(n):
                    out[t, j] += v[j, i] * d[i]
        deviations = [sqrt(usual_square(&sums[0, 0], T, j, low[j], high[j])) for j in range(T)]
        return found, np.repeat([deviations], len(scores), axis=0)

    def differences_weights(self):
        """Weights of what members differ from their mean, shape (targets, members)."""
        fits = [self.belief[j, :-1] @ fit.w for j, fit in enumerate(self.fits)]
        return np.array(fits) + self.belief[:, -1:] * self.trust

    def weights(self):
        """Weights of the members, shape (targets, members); each sums to 1."""
        v = self.differences_weights()
        return v + (1.0 - v.sum(axis=1, keepdims=True)) / v.shape[1]

    def state(self):
        """What is learned, by name."""
        return {"belief": self.belief.copy(), "trust": self.trust.copy(), **self.usual.state(),
                "w": np.array([fit.w for fit in self.fits]), "S": np.array([fit.S for fit in self.fits])}

    def restore(self, state):
        """Go on from what `state` gave; ValueError if it makes no sense."""
        self.belief[:] = checked_beliefs(state["belief"], self.belief.shape)
        self.trust[:] = checked_beliefs(state["trust"], self.trust.shape)
        self.usual.restore(state)
        for j, fit in enumerate(self.fits):
            fit.restore({"w": state["w"][j], "S": state["S"][j]})

    def _check(self):
        """Assert what must always hold."""
        for fit in self.fits:
            fit._check()
        assert np.allclose(self.belief.sum(axis=1), 1.0) and np.allclose(self.trust.sum(axis=1), 1.0)


cdef double differences(const double* F, Py_ssize_t n, Py_ssize_t T, Py_ssize_t j, const unsigned char* awake, double low,
                        double high, long long t, double* d) noexcept nogil:
    """(mean of the members that are awake, how far each is from it: 0 for those asleep), within the range of targets."""
    cdef Py_ssize_t i, many = 0
    cdef double middle = 0.0, reach = high - low
    for i in range(n):
        if awake[i]:
            d[i] = F[i * T + j]
            if t >= FEW and low <= high:
                d[i] = fmin(fmax(d[i], low - reach), high + reach)
            middle += d[i]
            many += 1
    middle = middle / many if many else 0.0
    for i in range(n):
        d[i] = d[i] - middle if awake[i] else 0.0
    return middle
