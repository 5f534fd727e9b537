"""Columns of numbers as the mean of their z-score and their normal score; see `onlinekernels.selftuning.features`."""
import numpy as np
from libc.math cimport fmax, fmin


def scored(const double[:, ::1] X, const double[::1] mean, const double[::1] slope, double farthest, const double[:, ::1] knots,
           const double[::1] last, const double[:, ::1] scores, const double[:, ::1] rises):
    """slope (x - mean), at most `farthest`, plus the polygon through (knots, scores), which is flat outside: O(knots) for a number.

    Knots of a column ascend to the last one and are infinite behind it; rises are those of the polygon from each knot on.
    """
    cdef Py_ssize_t i, j, k, place, d = X.shape[1], levels = knots.shape[1]
    cdef double x, inside
    found = np.empty((X.shape[0], d))
    cdef double[:, ::1] out = found
    with nogil:
        for i in range(X.shape[0]):
            for j in range(d):
                x = X[i, j]
                inside = fmin(fmax(x, knots[j, 0]), last[j])
                place = 0
                for k in range(1, levels):
                    place += knots[j, k] <= inside
                out[i, j] = (fmin(fmax((x - mean[j]) * slope[j], -farthest), farthest)
                             + (scores[j, place] + rises[j, place] * (inside - knots[j, place])))
    return found
