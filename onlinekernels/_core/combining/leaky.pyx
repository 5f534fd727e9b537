"""Recursive fits of members' weights that leak towards their prior."""
import numpy as np
from onlinekernels._core.arrays import check_array


cdef class Leaky:
    """Weights of members with their precision, for each of some settings: a recursive fit that leaks towards its prior.

    S is the inverse of the precision of w. With every row S <- S / memory, and one coordinate in turn gets its share of the
    prior back: the precision n (1 - memory) prior towards `start`. So weights that rows say nothing of go back, and S is bounded.
    What is added to S is symmetric to the last bit: an antisymmetric part would grow like memory^-t.
    """

    def __init__(self, Py_ssize_t n, settings, double start):
        self.n, self.n_settings, self.start = n, len(settings), start
        self.memories, self.priors = (np.array(part, dtype=float) for part in zip(*settings))
        self.w = np.full((self.n_settings, n), start)
        self.S = np.array([np.eye(n) / prior for prior in self.priors])
        self.work = np.zeros(n)

    cdef void leak(self, double* w, double* S, double memory, double prior, long long t) noexcept nogil:
        cdef Py_ssize_t i, j, n = self.n, k = <Py_ssize_t> (t % n)
        cdef double precision = n * (1.0 - memory) * prior, factor, gain
        if memory == 1.0:
            return
        for i in range(n * n):
            S[i] /= memory
        factor = precision / (1.0 + precision * S[k * n + k])
        gain = factor * (self.start - w[k])
        for i in range(n):
            self.work[i] = S[k * n + i]
        for i in range(n):
            w[i] += gain * self.work[i]
            for j in range(n):
                S[i * n + j] -= factor * (self.work[i] * self.work[j])

    cdef double learn_direction(self, double* S, const double* x, double precision) noexcept nogil:
        """S after an observation of x.w with this precision. Returns x.S.x before; S x of before is left in `work`."""
        cdef Py_ssize_t i, j, n = self.n
        cdef double size = 0.0, factor
        for i in range(n):
            self.work[i] = 0.0
            for j in range(n):
                self.work[i] += S[i * n + j] * x[j]
            size += x[i] * self.work[i]
        factor = precision / (1.0 + precision * size)
        for i in range(n):
            for j in range(n):
                S[i * n + j] -= factor * (self.work[i] * self.work[j])
        return size

    def state(self):
        """What is learned, by name."""
        return {"w": self.w.copy(), "S": self.S.copy()}

    def restore(self, state):
        """Go on from what `state` gave; ValueError if it makes no sense."""
        w = check_array(state["w"], "w", np.float64, self.w.shape)
        S = check_array(state["S"], "S", np.float64, self.S.shape)
        if max(np.abs(w).max(), np.abs(S).max()) > 1e12:
            raise ValueError("the weights are too large")
        if not np.array_equal(S, S.transpose(0, 2, 1)) or not are_positive(S):
            raise ValueError("the precision of the weights is not that of a fit")
        self.w[:], self.S[:] = w, S

    def _check(self):
        assert np.isfinite(self.w).all() and np.isfinite(self.S).all()
        assert np.array_equal(self.S, self.S.transpose(0, 2, 1)), "S is not symmetric"
        assert are_positive(self.S)


def are_positive(S):
    """Whether symmetric matrices, shape (k, n, n), are positive definite up to rounding, and none is 0."""
    sizes = np.abs(S).max(axis=(1, 2))
    return bool((sizes > 0.0).all() and (np.linalg.eigvalsh(S) > -1e-9 * sizes[:, None]).all())
