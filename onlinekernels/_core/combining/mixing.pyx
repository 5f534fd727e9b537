"""Opinions weighed by what they lost: Bayes' rule, where everybody gives up a share to all."""
import numpy as np
from libc.math cimport INFINITY, exp, fmin
from onlinekernels._core.arrays import check_array

CAP = 8.0


cdef void shared_out(double* belief, const double* losses, Py_ssize_t n, double share) noexcept nogil:
    """Bayes' rule with losses for log likelihoods; then each gives up a share to all (Herbster and Warmuth 1998)."""
    cdef Py_ssize_t i
    cdef double least = INFINITY, total = 0.0
    for i in range(n):
        least = fmin(least, losses[i])
    for i in range(n):
        belief[i] *= exp(least - losses[i])
        total += belief[i]
    for i in range(n):
        belief[i] = (1.0 - share) * belief[i] / total + share / n


def checked_beliefs(array, shape):
    """Weights that sum to 1, or ValueError."""
    array = check_array(array, "belief", np.float64, shape)
    if (array < 0.0).any() or (np.abs(array.sum(axis=-1) - 1.0) > 1e-6).any():
        raise ValueError("beliefs do not sum to 1")
    return array
