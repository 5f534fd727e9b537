"""Running mean and variance of features, advanced row by row."""
from libc.math cimport sqrt
from onlinekernels._core.sparse cimport Rows


cdef double ROUNDING = 1e-14        # a spread below this fraction of the mean is rounding: the feature is constant


def advance(const double[:, ::1] X, double[::1] mean, double[::1] square, double count, double memory,
            double[:, ::1] out=None):
    """Take in the rows of X in order; each goes to `out` scaled by what is known including itself.

    mean, square: mean and sum of squared deviations of each feature, with weights memory^age; both move.
    count: sum of the weights; returned as it is afterwards.
    """
    cdef Py_ssize_t i, j, n = X.shape[0], d = X.shape[1]
    cdef bint writes = out is not None
    cdef double delta
    with nogil:
        for i in range(n):
            count = memory * count + 1.0
            for j in range(d):
                delta = X[i, j] - mean[j]
                mean[j] += delta / count
                square[j] = memory * square[j] + delta * (X[i, j] - mean[j])
            if writes:
                for j in range(d):
                    out[i, j] = scaled(X[i, j], mean[j], square[j] / count)
    return count


def advance_sparse(Rows rows, double[::1] square, double count, double memory, double[::1] out=None):
    """The same for sparse rows, which are divided by root mean squares and not centred: zeros stay zeros.

    square: sum of squares of each feature, with weights memory^age; it moves.
    """
    cdef Py_ssize_t i, j, k, n = rows.indptr.shape[0] - 1
    cdef double decay = 1.0             # what is in `square` still has to be multiplied by
    for i in range(n):
        count = memory * count + 1.0
        decay *= memory
        if decay < 1e-8:                # so that squares do not become too large beside it
            for j in range(square.shape[0]):
                square[j] *= decay
            decay = 1.0
        for k in range(rows.start[i], rows.start[i + 1]):
            square[rows.index[k]] += rows.value[k] * rows.value[k] / decay
            if out is not None:
                out[k] = divided(rows.value[k], decay * square[rows.index[k]] / count)
    if decay < 1.0:
        for j in range(square.shape[0]):
            square[j] *= decay
    return count


def scale_sparse(Rows rows, const double[::1] square, double count, double[::1] out):
    """Values of sparse rows, scaled by what is known."""
    cdef Py_ssize_t k
    for k in range(out.shape[0]):
        out[k] = divided(rows.value[k], square[rows.index[k]] / count)


cdef inline double divided(double x, double mean_square) noexcept nogil:
    """x / root mean square; x itself while all that was seen is 0."""
    return x / sqrt(mean_square) if mean_square > 0.0 else x


def scale(const double[:, ::1] X, const double[::1] mean, const double[::1] square, double count,
          double[:, ::1] out):
    """Rows of X scaled by what is known, which does not change."""
    cdef Py_ssize_t i, j
    with nogil:
        for i in range(X.shape[0]):
            for j in range(X.shape[1]):
                out[i, j] = scaled(X[i, j], mean[j], square[j] / count)


cdef inline double scaled(double x, double mean, double variance) noexcept nogil:
    """(x - mean) / deviation; a feature that has been constant so far is only centred."""
    cdef double deviation = sqrt(variance) if variance > 0.0 else 0.0
    cdef double size = mean if mean > 0.0 else -mean
    return (x - mean) / deviation if deviation > ROUNDING * size and deviation > 0.0 else x - mean


def advance_targets(const double[:, ::1] Y, const double[::1] weights, double[::1] mean, double[::1] square,
                    double count, double memory, double[:, ::1] out, double[:, ::1] means, double[:, ::1] deviations):
    """Take in the rows of Y in order; each goes to `out` scaled by what is known including itself.

    means, deviations: what was known before each row, by which a prediction of it is brought back to its units.
    Others as in `advance`; a row counts for its weight.
    """
    cdef Py_ssize_t i, j, n = Y.shape[0], d = Y.shape[1]
    cdef double delta, weight = 1.0
    with nogil:
        for i in range(n):
            for j in range(d):
                means[i, j] = mean[j]
                deviations[i, j] = deviation(mean[j], square[j], count)
            if weights is not None:
                weight = weights[i]
            if weight > 0.0:
                count = memory * count + weight
                for j in range(d):
                    delta = Y[i, j] - mean[j]
                    mean[j] += weight * delta / count
                    square[j] = memory * square[j] + weight * delta * (Y[i, j] - mean[j])
            for j in range(d):
                out[i, j] = (Y[i, j] - mean[j]) / deviation(mean[j], square[j], count)
    return count


cdef inline double deviation(double mean, double square, double count) noexcept nogil:
    """The deviation to divide by; 1 for what has been constant so far."""
    cdef double found = sqrt(square / count) if count > 0.0 and square > 0.0 else 0.0
    return found if found > ROUNDING * (mean if mean > 0.0 else -mean) and found > 0.0 else 1.0


def target_deviations(const double[::1] mean, const double[::1] square, double count):
    """What predictions are multiplied by."""
    return [deviation(mean[j], square[j], count) for j in range(mean.shape[0])]
