"""The evidence of a kernel, log N(Y | 0, C), and its exact gradient; see `onlinekernels.selftuning.evidence`, which says of what."""
import math

import numpy as np
from onlinekernels._core.formulas.triangles cimport ok_decompose, ok_invert_lower, ok_solve_block


def covariances(const double[:, ::1] Z, const double[::1] times, double amplitude, double forgetting):
    """(kernel part, both parts) of the covariance of rows Z^T without noise, two symmetric matrices: O(n^2 d)."""
    cdef Py_ssize_t i, d = Z.shape[0], n = Z.shape[1]
    found = np.zeros((2, n, n))
    cdef double[:, :, ::1] parts = found
    with nogil:
        for i in range(n):
            ok_covariance_row(&Z[0, 0], n, d, &times[0], i, amplitude, forgetting, &parts[0, i, 0], &parts[1, i, 0])
    return tuple(part + np.tril(part, -1).T for part in found)


def judged(const double[:, ::1] Z, const double[:, ::1] Y, const double[::1] times, const double[::1] spread, double amplitude,
           double noise, double forgetting, bint with_slopes=True):
    """(minus the log evidence, its derivatives by log scales, log amplitude, log noise and log forgetting): O(n^3).

    (inf, None) if the covariance is not positive definite, and None for derivatives that nobody wants.
    """
    cdef Py_ssize_t i, j, d = Z.shape[0], n = Z.shape[1], outputs = Y.shape[1]
    cdef double[:, :, ::1] work = np.empty((4, n, n))
    cdef double* kernel = &work[0, 0, 0]
    cdef double* both = &work[1, 0, 0]
    cdef double* root = &work[2, 0, 0]
    cdef double* inverse = &work[3, 0, 0]
    cdef double[:, ::1] whitened = np.array(Y)
    cdef bint definite
    with nogil:
        for i in range(n):
            ok_covariance_row(&Z[0, 0], n, d, &times[0], i, amplitude, forgetting, kernel + i * n, both + i * n)
            for j in range(i + 1):
                root[i * n + j] = both[i * n + j]
            root[i * n + i] += noise * spread[i]
        definite = ok_decompose(root, n, n)
        if definite:
            ok_solve_block(root, n, n, &whitened[0, 0], outputs, outputs)
    if not definite:
        return math.inf, None
    value = 0.5 * float(np.sum(np.square(whitened))) + 0.5 * n * outputs * math.log(2.0 * math.pi)
    value += outputs * float(np.log(np.asarray(work[2]).diagonal()).sum())
    if not with_slopes:
        return value, None
    with nogil:
        ok_invert_lower(root, n, n, inverse, n)
    cdef double[:, ::1] alpha = np.ascontiguousarray(np.asarray(work[3]).T @ whitened)
    found = np.zeros(d + 3)
    cdef double[::1] slopes = found
    with nogil:
        ok_half_square(inverse, n, outputs, &alpha[0, 0], outputs, root)        # twice the derivative by the covariance
        for i in range(n):
            slopes[d + 1] += 0.5 * noise * root[i * (n + 1)] * spread[i]
            ok_add_slopes(&Z[0, 0], n, d, &times[0], i, forgetting, kernel + i * n, both + i * n, root + i * n, &slopes[0])
    return value, found
