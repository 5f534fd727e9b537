"""Probabilities that are held to what happened: how often the likeliest class was right, where it was given that probability."""
import numpy as np
from libc.math cimport exp, fmax, fmin, log, sqrt
from onlinekernels._core.arrays import check_array
from onlinekernels._core.combining.leaky cimport Leaky

from onlinekernels._core.combining.usual import checked_count

cdef enum:
    KNOTS = 21          # at p = 1 - (1 - k / 20)^2, closer to each other near 1

cdef double FADING = 0.9998
cdef double PRIOR = 100.0       # rows at each knot that were as right as they were said to be
cdef double STIFF = 75.0        # precision of shift and slope beforehand: that of 300 rows at p = 1/2
cdef double SUREST = 1e-6       # by which p stays away from 0 and 1 where its log odds are taken
cdef double FLATTEST = 0.05     # the least slope: the surer, the likelier
cdef double APART = 1e-9        # by which the likeliest class stays ahead


cdef double knot_of(double p) noexcept nogil:
    """The place of a probability among the knots."""
    return (1.0 - sqrt(fmax(0.0, 1.0 - p))) * (KNOTS - 1)


cdef double log_odds(double p) noexcept nogil:
    p = fmin(fmax(p, SUREST), 1.0 - SUREST)
    return log(p / (1.0 - p))


cdef class Calibration:
    """Hit rates of the likeliest class by its probability p: log odds that are shifted and stretched, and what is left at some knots.

    log q / (1 - q) = log p / (1 - p) + v_0 + v_1 / 2 log p / (1 - p), by leaky Newton steps on the log loss; then q plus how much more
    often the class was right than q says, at some knots of q, between which it is interpolated. All fade. The other classes
    share the rest as before, and the likeliest one stays the likeliest.
    """

    cdef readonly object sums
    cdef readonly Leaky line
    cdef readonly long long t

    def __init__(self):
        self.sums = np.zeros((3, KNOTS))        # of rows, of hits, and of hits as q has it
        self.line = Leaky(2, [(FADING, STIFF)], 0.0)
        self.t = 0

    def advance(self, likely, places, joined, counts):
        """Calibrated probabilities just before each row, shape (n, classes); the rows are learned. All or nothing."""
        found = np.array(likely)
        cdef double[:, ::1] p = found, sums = self.sums, v = self.line.w
        cdef double[:, :, ::1] S = self.line.S
        cdef const double[::1] y = np.ascontiguousarray(places, dtype=float), count = np.ascontiguousarray(counts, dtype=float)
        cdef const Py_ssize_t[::1] there = np.ascontiguousarray(joined, dtype=np.intp)
        cdef Py_ssize_t t, best
        cdef double said
        with nogil:
            for t in range(p.shape[0]):
                if there[t] < 2:
                    continue
                best = self.likeliest(&p[t, 0], there[t])
                said = p[t, best]
                self.calibrate(&p[t, 0], there[t], best, &sums[0, 0], &v[0, 0])
                self.learn(said, <Py_ssize_t> y[t] == best, count[t], &sums[0, 0], &v[0, 0], &S[0, 0, 0])
        return found

    cdef void learn(self, double said, bint hit, double count, double* sums, double* v, double* S) noexcept nogil:
        cdef double q = self.stretched(said, v), place = knot_of(q), share
        cdef double[2] x
        cdef Py_ssize_t i, k = <Py_ssize_t> fmin(place, KNOTS - 2)
        share = place - k
        for i in range(3 * KNOTS):
            sums[i] *= FADING
        for i in range(2):
            sums[k + i] += count * (share if i else 1.0 - share)
            sums[KNOTS + k + i] += count * (share if i else 1.0 - share) * hit
            sums[2 * KNOTS + k + i] += count * (share if i else 1.0 - share) * q
        self.line.leak(v, S, FADING, STIFF, self.t)
        x[0], x[1] = 1.0, 0.5 * log_odds(said)
        self.line.learn_direction(S, x, count * q * (1.0 - q))
        for i in range(2):
            v[i] += count * (hit - q) * (S[2 * i] * x[0] + S[2 * i + 1] * x[1])
        self.t += 1

    cdef double stretched(self, double p, const double* v) noexcept nogil:
        """q, see above."""
        return 1.0 / (1.0 + exp(-v[0] - fmax(FLATTEST, 1.0 + 0.5 * v[1]) * log_odds(p)))

    cdef Py_ssize_t likeliest(self, const double* p, Py_ssize_t n) noexcept nogil:
        cdef Py_ssize_t c, best = 0
        for c in range(1, n):
            if p[c] > p[best]:
                best = c
        return best

    cdef void calibrate(self, double* p, Py_ssize_t n, Py_ssize_t best, const double* sums, const double* v) noexcept nogil:
        cdef double q = self.stretched(p[best], v), place = knot_of(q), rest = 1.0 - p[best], second = 0.0, rate
        cdef Py_ssize_t c, k = <Py_ssize_t> fmin(place, KNOTS - 2)
        rate = q + (1.0 - place + k) * self.left_at(k, sums) + (place - k) * self.left_at(k + 1, sums)
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

    cdef double left_at(self, Py_ssize_t k, const double* sums) noexcept nogil:
        """How much more often the class was right than q says."""
        return (sums[KNOTS + k] - sums[2 * KNOTS + k]) / (sums[k] + PRIOR)

    def calibrated(self, likely, Py_ssize_t joined):
        """Probabilities as of now."""
        found = np.array(likely)
        cdef double[:, ::1] p = found, sums = self.sums, v = self.line.w
        cdef Py_ssize_t t
        if joined > 1:
            for t in range(p.shape[0]):
                self.calibrate(&p[t, 0], joined, self.likeliest(&p[t, 0], joined), &sums[0, 0], &v[0, 0])
        return found

    def state(self):
        """What is learned, by name."""
        return {"t": int(self.t), "sums": self.sums.copy(), **self.line.state()}

    def restore(self, state):
        """Go on from what `state` gave; ValueError if it makes no sense."""
        sums = check_array(state["sums"], "sums", np.float64, (3, KNOTS))
        if (sums < 0.0).any() or (sums[1:] > sums[0] * (1 + 1e-9)).any():
            raise ValueError("there are more hits than rows")
        t = checked_count(state["t"])
        self.line.restore(state)
        self.sums[:], self.t = sums, t
