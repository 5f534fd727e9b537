"""Running mean and variance of features, advanced row by row."""
import numpy as np
from libc.math cimport fabs, sqrt
from libc.string cimport memcpy
from onlinekernels._core.arrays cimport array_data
from onlinekernels._core.sparse cimport Rows
from onlinekernels._core.workspace cimport SCALED, Workspace


cdef double ROUNDING = 1e-14        # a spread below this fraction of the mean is rounding: the feature is constant


ctypedef fused real:
    float
    double


cdef inline void take_in_row(const real* x, double* mean, double* square, Py_ssize_t d, double count, double memory,
                             real* out) noexcept nogil:
    """One more row, of which `count` knows already; scaled to `out` unless that is NULL."""
    cdef Py_ssize_t j
    cdef double delta
    for j in range(d):
        delta = x[j] - mean[j]
        mean[j] += delta / count
        square[j] = memory * square[j] + delta * (x[j] - mean[j])
    if out != NULL:
        for j in range(d):
            out[j] = <real> scaled(x[j], mean[j], square[j] / count)


cdef double take_in_sparse(Rows rows, Py_ssize_t first, Py_ssize_t n, double* square, Py_ssize_t d, double count, double memory,
                           double* out) noexcept nogil:
    """The same for n sparse rows, which are divided by root mean squares and not centred: zeros stay zeros."""
    cdef Py_ssize_t i, j, k
    cdef double decay = 1.0             # what is in `square` still has to be multiplied by
    for i in range(first, first + n):
        count = memory * count + 1.0
        decay *= memory
        if decay < 1e-8:                # so that squares do not become too large beside it
            for j in range(d):
                square[j] *= decay
            decay = 1.0
        for k in range(rows.start[i], rows.start[i + 1]):
            square[rows.index[k]] += rows.value[k] * rows.value[k] / decay
            if out != NULL:
                out[k] = divided(rows.value[k], decay * square[rows.index[k]] / count)
    if decay < 1.0:
        for j in range(d):
            square[j] *= decay
    return count


def advance(const double[:, ::1] X, double[::1] mean, double[::1] square, double count, double memory,
            double[:, ::1] out=None):
    """Take in the rows of X in order; each goes to `out` scaled by what is known including itself.

    mean, square: mean and sum of squared deviations of each feature, with weights memory^age; both move.
    count: sum of the weights; returned as it is afterwards.
    """
    cdef Py_ssize_t i, d = X.shape[1]
    cdef bint writes = out is not None
    with nogil:
        for i in range(X.shape[0]):
            count = memory * count + 1.0
            take_in_row[double](&X[i, 0], &mean[0], &square[0], d, count, memory, &out[i, 0] if writes else NULL)
    return count


def advance_sparse(Rows rows, double[::1] square, double count, double memory, double[::1] out=None):
    """The same for sparse rows.

    square: sum of squares of each feature, with weights memory^age; it moves.
    """
    cdef double* values = &out[0] if out is not None and out.shape[0] else NULL
    return take_in_sparse(rows, 0, len(rows), &square[0], square.shape[0], count, memory, values)


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


cdef double TAME = 1e140            # no variance of smaller numbers overflows


cdef class Scaler:
    """The scaler of a model: it scales a piece of rows when the piece is opened, and goes back if not all are learned.

    Parameters
    ----------
    n_features : int
    memory : float
    sparse : bool
    dtype : numpy dtype
        Of dense rows.
    """

    def __init__(self, Py_ssize_t n_features, double memory, bint sparse, dtype):
        self.n_features, self.memory, self.sparse = n_features, memory, sparse
        self.single = np.dtype(dtype) == np.float32
        self.numbers = np.zeros((4, n_features))
        self.mean = <double*> array_data(self.numbers)
        self.square = self.mean + n_features

    def load(self, mean, square, double count):
        """Go on from these; mean is None for sparse rows."""
        self.numbers[0] = 0.0 if mean is None else mean
        self.numbers[1] = square
        self.count = count

    def learned(self):
        """(mean, sum of squares, count), copies; mean is None for sparse rows."""
        return None if self.sparse else self.numbers[0].copy(), self.numbers[1].copy(), self.count

    def learned_after(self, Py_ssize_t n):
        """The same after n rows of the piece that is being learned."""
        cdef Scaler twin = Scaler(self.n_features, self.memory, self.sparse, np.float32 if self.single else np.float64)
        twin.numbers[:2] = self.numbers[2:]
        twin.count = self.count_before
        twin.rows, twin.sparse_rows, twin.first = self.rows, self.sparse_rows, self.first
        twin.take_in(n, NULL)
        return twin.learned()

    def is_tame(self, values):
        """Whether no variance can overflow with these numbers, a C-contiguous array of the rows' precision."""
        cdef Py_ssize_t i, n = values.size
        cdef const char* data = array_data(values)
        cdef double largest = 0.0
        for i in range(n):
            largest = max(largest, fabs((<const float*> data)[i] if self.single else (<const double*> data)[i]))
        for i in range(self.n_features):
            largest = max(largest, max(fabs(self.mean[i]), sqrt(self.square[i])))
        return largest < TAME

    cdef int attach(self, Workspace w) except -1:
        """A call is about the rows in w.source: sparse ones get a copy, whose values are scaled piece by piece."""
        if self.sparse:
            self.sparse_rows = w.source
            rows = self.sparse_rows
            w.source = Rows(rows.indptr, rows.indices, rows.data, self.n_features)
        else:
            self.rows = w.source_data
        w.raw = w.source_data
        return 0

    cdef int open(self, Workspace w, Py_ssize_t first, Py_ssize_t m) except -1:
        """Take in m rows from `first` on, and let the workspace read them scaled."""
        cdef Py_ssize_t d = self.n_features
        cdef char* out = <char*> (<Rows> w.source).value if self.sparse else w.buffer(SCALED, m * d * sizeof(double))
        memcpy(self.mean + 2 * d, self.mean, 2 * d * sizeof(double))
        self.count_before, self.first = self.count, first
        if not self.sparse:
            self.rows, w.source_data = w.raw + first * d * (4 if self.single else 8), out
        with nogil:
            self.take_in(m, out)
        return 0

    cdef void go_back(self, Py_ssize_t learned) noexcept:
        """Only so many rows of the piece have been learned."""
        memcpy(self.mean, self.mean + 2 * self.n_features, 2 * self.n_features * sizeof(double))
        self.count = self.count_before
        self.take_in(learned, NULL)

    cdef void take_in(self, Py_ssize_t m, char* out) noexcept nogil:
        """Take in the first m rows of the piece; each goes to `out` scaled by what is known including itself."""
        cdef Py_ssize_t i
        if self.sparse:
            self.count = take_in_sparse(self.sparse_rows, self.first, m, self.square, self.n_features, self.count, self.memory,
                                        <double*> out)
            return
        for i in range(m):
            self.count = self.memory * self.count + 1.0
            if self.single:
                take_in_row[float](<const float*> self.rows + i * self.n_features, self.mean, self.square, self.n_features,
                                   self.count, self.memory, NULL if out == NULL else <float*> out + i * self.n_features)
            else:
                take_in_row[double](<const double*> self.rows + i * self.n_features, self.mean, self.square, self.n_features,
                                    self.count, self.memory, NULL if out == NULL else <double*> out + i * self.n_features)
