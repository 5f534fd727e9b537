"""Class probabilities and mistakes over arrays, for Python."""
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


def mistake_gradients(scores, y, bint proportional):
    """Ultraconservative updates for each row of a matrix, and its label's index."""
    cdef const double[:, ::1] z = np.ascontiguousarray(scores, dtype=np.float64)
    cdef const long long[::1] label = np.ascontiguousarray(y, dtype=np.int64)
    cdef double[:, ::1] out = np.zeros((z.shape[0], z.shape[1]))
    cdef Py_ssize_t i
    for i in range(z.shape[0]):
        if not 0 <= label[i] < z.shape[1]:
            raise IndexError(f"there is no class {label[i]}")
        mistake_gradient(&z[i, 0], label[i], z.shape[1], proportional, &out[i, 0])
    return np.asarray(out)
