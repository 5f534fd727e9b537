"""Holes in rows, filled by running means, row by row; and places on circles."""
from libc.math cimport INFINITY, NAN, cos, fabs, isnan, sin


def fill(double[:, ::1] X, double[::1] mean, double[::1] count, double[:, ::1] shown, const double[::1] memory,
         bint learns):
    """Put a value in the place of each NaN of X: the mean of its feature in the rows before, 0 if there are none.

    A feature that has shown two values at most has the nearer one, so that it goes on to have two.

    mean, count: of the values so far, with weights memory^age, where memory is that of each feature; they move if it `learns`.
    shown: two rows, the values that a feature has shown: equal if it is one, NaN if they are more; infinite before the first.
    """
    cdef Py_ssize_t i, j
    cdef double x
    with nogil:
        for i in range(X.shape[0]):
            for j in range(X.shape[1]):
                x = X[i, j]
                if isnan(x):
                    X[i, j] = filling(mean[j], count[j], shown[0, j], shown[1, j])
                elif learns:
                    count[j] = memory[j] * count[j] + 1.0
                    mean[j] += x / count[j] - mean[j] / count[j]        # no difference, which could overflow
                    if x != shown[0, j] and x != shown[1, j] and not isnan(shown[0, j]):
                        if shown[0, j] == INFINITY:
                            shown[0, j] = shown[1, j] = x
                        elif shown[0, j] == shown[1, j]:
                            shown[1, j] = x
                        else:
                            shown[0, j] = shown[1, j] = NAN


cdef inline double filling(double mean, double count, double first, double second) noexcept nogil:
    if count == 0.0:
        return 0.0
    if isnan(first):
        return mean
    return first if fabs(mean - first) <= fabs(mean - second) else second


def circle(const long long[::1] elapsed, double period, double[:, :] out):
    """Sine and cosine of how much of a period has elapsed, in the columns of `out`; negative times are left alone.

    The same bits for a row alone and among others, which vectorised sines do not promise.
    """
    cdef Py_ssize_t i
    cdef double angle
    for i in range(elapsed.shape[0]):
        if elapsed[i] >= 0:
            angle = 6.283185307179586 * (elapsed[i] / period)
            out[i, 0] = sin(angle)
            out[i, 1] = cos(angle)
