"""The inner loops of the Kernel-Adatron: coefficients of known examples move, none are appended."""
import numpy as np
from libc.math cimport fmax
from onlinekernels._core.tree cimport Tree


cdef inline double step_of(double alpha, double score, double y, double step) noexcept nogil:
    """What alpha becomes: V 3."""
    return fmax(0.0, alpha + step * (1.0 - y * score))


def pass_over_block(double[:, ::1] gram, Py_ssize_t first, const double[::1] y, double[::1] alpha,
                    double[::1] scores, double step):
    """Examples first, first + 1, ... in turn.

    gram has their kernel values with all examples, scores their f(x), which earlier ones of the block
    change.
    """
    cdef Py_ssize_t i, j, m = gram.shape[0]
    cdef double new, change
    with nogil:
        for i in range(m):
            new = step_of(alpha[first + i], scores[i], y[first + i], step)
            change = (new - alpha[first + i]) * y[first + i]
            alpha[first + i] = new
            if change != 0.0:
                for j in range(i + 1, m):
                    scores[j] += change * gram[j, first + i]


def pass_over_tree(Tree tree, const double[:, ::1] points, double scale, const double[::1] y, double[::1] alpha,
                   double step):
    """All examples in turn; the tree holds sum_i alpha_i y_i K(x_i, .)."""
    cdef Py_ssize_t i
    cdef double new, change, score
    cdef int[::1] at = np.zeros(points.shape[1], dtype=np.int32)
    tree.reserve(points.shape[0])
    with nogil:
        for i in range(points.shape[0]):
            tree.evaluate_into(&points[i, 0], 1, &score, &at[0])
            new = step_of(alpha[i], scale * score, y[i], step)
            change = (new - alpha[i]) * y[i]
            alpha[i] = new
            if change != 0.0:
                tree.put(&points[i, 0], &change, tree.all_rows, 1)
