"""Class probabilities over arrays, for Python."""
import numpy as np


def probabilities(scores):
    """Softmax of each row of a matrix, V (22)."""
    cdef const double[:, ::1] z = np.ascontiguousarray(scores, dtype=np.float64)
    cdef double[:, ::1] p = np.empty((z.shape[0], z.shape[1]))
    cdef Py_ssize_t i
    if z.shape[1]:
        for i in range(z.shape[0]):
            softmax(&z[i, 0], z.shape[1], &p[i, 0])
    return np.asarray(p)
