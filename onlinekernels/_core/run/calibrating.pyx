"""Probabilities that are held to what happened: how often the likeliest class was right, where it was given that probability."""
import numpy as np
from libc.math cimport fmax, fmin, sqrt
from onlinekernels._core.arrays import check_array

cdef enum:
    KNOTS = 21          # at p = 1 - (1 - k / 20)^2, closer to each other near 1

cdef double FADING = 0.9998
cdef double PRIOR = 30.0        # rows at each knot that were as right as they were said to be
cdef double APART = 1e-9        # by which the likeliest class stays ahead


cdef double knot_of(double p) noexcept nogil:
    """The place of a probability among the knots."""
    return (1.0 - sqrt(fmax(0.0, 1.0 - p))) * (KNOTS - 1)


cdef double at_knot(Py_ssize_t k) noexcept nogil:
    """The probability at a knot."""
    return 1.0 - (1.0 - k / (KNOTS - 1.0)) ** 2


cdef class Calibration:
    """Hit rates of the likeliest class at some knots of its probability, which fade; between knots they are interpolated.

    The other classes share the rest as before, and the likeliest one stays the likeliest.
    """

    cdef readonly object sums

    def __init__(self):
        self.sums = np.zeros((2, KNOTS))        # of rows, and of hits

    def advance(self, likely, places, joined, counts):
        """Calibrated probabilities just before each row, shape (n, classes); the rows are learned. All or nothing."""
        found = np.array(likely)
        cdef double[:, ::1] p = found, sums = self.sums
        cdef const double[::1] y = np.ascontiguousarray(places, dtype=float), count = np.ascontiguousarray(counts, dtype=float)
        cdef const Py_ssize_t[::1] there = np.ascontiguousarray(joined, dtype=np.intp)
        cdef Py_ssize_t t, i, best, k
        cdef double said, share
        with nogil:
            for t in range(p.shape[0]):
                if there[t] < 2:
                    continue
                best = self.likeliest(&p[t, 0], there[t])
                said = p[t, best]
                self.calibrate(&p[t, 0], there[t], best, &sums[0, 0])
                for i in range(2 * KNOTS):
                    (&sums[0, 0])[i] *= FADING
                k = <Py_ssize_t> fmin(knot_of(said), KNOTS - 2)
                share = knot_of(said) - k
                sums[0, k] += count[t] * (1.0 - share)
                sums[0, k + 1] += count[t] * share
                if <Py_ssize_t> y[t] == best:
                    sums[1, k] += count[t] * (1.0 - share)
                    sums[1, k + 1] += count[t] * share
        return found

    cdef Py_ssize_t likeliest(self, const double* p, Py_ssize_t n) noexcept nogil:
        cdef Py_ssize_t c, best = 0
        for c in range(1, n):
            if p[c] > p[best]:
                best = c
        return best

    cdef void calibrate(self, double* p, Py_ssize_t n, Py_ssize_t best, const double* sums) noexcept nogil:
        cdef Py_ssize_t c, k = <Py_ssize_t> fmin(knot_of(p[best]), KNOTS - 2)
        cdef double share = knot_of(p[best]) - k, rest = 1.0 - p[best], second = 0.0, rate
        rate = (1.0 - share) * self.rate_at(k, sums) + share * self.rate_at(k + 1, sums)
        for c in range(n):
            if c != best:
                second = fmax(second, p[c])
        if rest <= 0.0:
            for c in range(n):
                p[c] = 1.0 / (n - 1)
            rest, second = 1.0, 1.0 / (n - 1)
        rate = fmin(fmax(rate, second / (rest + second) + APART), 1.0)
        for c in range(n):
            p[c] *= (1.0 - rate) / rest
        p[best] = rate

    cdef double rate_at(self, Py_ssize_t k, const double* sums) noexcept nogil:
        return (sums[KNOTS + k] + PRIOR * at_knot(k)) / (sums[k] + PRIOR)

    def calibrated(self, likely, Py_ssize_t joined):
        """Probabilities as of now."""
        found = np.array(likely)
        cdef double[:, ::1] p = found, sums = self.sums
        cdef Py_ssize_t t
        if joined > 1:
            for t in range(p.shape[0]):
                self.calibrate(&p[t, 0], joined, self.likeliest(&p[t, 0], joined), &sums[0, 0])
        return found

    def state(self):
        """What is learned, by name."""
        return {"sums": self.sums.copy()}

    def restore(self, state):
        """Go on from what `state` gave; ValueError if it makes no sense."""
        sums = check_array(state["sums"], "sums", np.float64, (2, KNOTS))
        if (sums < 0.0).any() or (sums[1] > sums[0] * (1 + 1e-9)).any():
            raise ValueError("there are more hits than rows")
        self.sums[:] = sums
