"""Running mean and variance of features, advanced row by row.

A feature that has shown two values only, such as a column of a one-hot encoding, is not divided by its deviation, which is
small where one of them is rare: then the rare ones would dominate every distance. A change of it counts as `CHANGE`.
`first` and `second` are the values that a feature has shown, equal if it is one, NaN if there are more than two.
"""
import numpy as np
from libc.math cimport INFINITY, NAN, fabs, fmax, fmin, sqrt
from libc.string cimport memcpy
from onlinekernels._core.arrays cimport array_data
from onlinekernels._core.points.sparse cimport Rows
from onlinekernels._core.run.piece cimport SCALED, Piece


cdef double ROUNDING = 1e-14        # a spread below this fraction of the mean is rounding: the feature is constant
OTHERS = 16                         # times its weight that a number must have beside it to be called far off
cdef double CHANGE = sqrt(2.0)      # as far as two values of a scaled number are apart, in the root mean square


ctypedef fused real:
    float
    double


cdef inline void advance_moments(double x, double weight, double count, double memory, double* mean,
                                 double* square) noexcept nogil:
    """Welford's recursion, by which all here is scaled: one more number, whose weight `count` knows already; the past fades."""
    cdef double delta = x - mean[0]
    mean[0] += weight * delta / count
    square[0] = memory * square[0] + weight * delta * (x - mean[0])


cdef inline void take_in_row(const real* x, double* mean, double* square, double* first, double* second, Py_ssize_t* few,
                             Py_ssize_t d, double count, double memory, real* out) noexcept nogil:
    """One more row, of which `count` knows already; scaled to `out` unless that is NULL.

    few: number of features that have shown two values at most; it moves with `first` and `second`.
    """
    cdef Py_ssize_t j
    for j in range(d):
        advance_moments(x[j], 1.0, count, memory, mean + j, square + j)
    if count == 1.0:
        few[0] = d
        for j in range(d):
            first[j] = second[j] = x[j]
    elif few[0] > 0:
        few[0] = 0
        for j in range(d):
            if x[j] != first[j] and x[j] != second[j]:
                if first[j] == second[j]:
                    second[j] = x[j]
                else:
                    first[j] = second[j] = NAN
            few[0] += first[j] == first[j]
    if out == NULL:
        return
    if few[0] > 0 and knows_values(count, memory):
        for j in range(d):
            out[j] = <real> ((x[j] - mean[j]) / divisor(mean[j], square[j] / count, second[j] - first[j]))
    else:
        for j in range(d):
            out[j] = <real> ((x[j] - mean[j]) / divisor(mean[j], square[j] / count, 0.0))


cdef inline bint knows_values(double count, double memory) noexcept nogil:
    """Whether there were three rows: of two values, one has come again."""
    return count > 1.0 + memory


cdef double take_in_sparse(Rows rows, Py_ssize_t start, Py_ssize_t n, double* square, double* first, double* second, Py_ssize_t d,
                           double count, double memory, double* out) noexcept nogil:
    """The same for n sparse rows, which are divided by root mean squares and not centred: zeros stay zeros.

    Zero is among the values that every feature has shown.
    """
    cdef Py_ssize_t i, j, k
    cdef double decay = 1.0             # what is in `square` still has to be multiplied by
    for i in range(start, start + n):
        count = memory * count + 1.0
        decay *= memory
        if decay < 1e-8:                # so that squares do not become too large beside it
            for j in range(d):
                square[j] *= decay
            decay = 1.0
        for k in range(rows.start[i], rows.start[i + 1]):
            j = rows.index[k]
            square[j] += rows.value[k] * rows.value[k] / decay
            if rows.value[k] != second[j] and rows.value[k] != 0.0:
                if second[j] == 0.0:
                    second[j] = rows.value[k]
                else:
                    first[j] = second[j] = NAN
            if out != NULL:
                out[k] = rows.value[k] / divisor(0.0, decay * square[j] / count,
                                                 second[j] if knows_values(count, memory) else 0.0)
    if decay < 1.0:
        for j in range(d):
            square[j] *= decay
    return count


def advance(const double[:, ::1] X, double[::1] mean, double[::1] square, double[:, ::1] shown, double count, double memory,
            double[:, ::1] out=None):
    """Take in the rows of X in order; each goes to `out` scaled by what is known including itself.

    mean, square: mean and sum of squared deviations of each feature, with weights memory^age; both move.
    shown: rows `first` and `second`, the values of each feature; they move.
    count: sum of the weights; returned as it is afterwards.
    """
    cdef Py_ssize_t i, d = X.shape[1], few = d
    cdef bint writes = out is not None
    with nogil:
        for i in range(X.shape[0]):
            count = memory * count + 1.0
            take_in_row[double](&X[i, 0], &mean[0], &square[0], &shown[0, 0], &shown[1, 0], &few, d, count, memory,
                                &out[i, 0] if writes else NULL)
    return count


def advance_sparse(Rows rows, double[::1] square, double[:, ::1] shown, double count, double memory, double[::1] out=None):
    """The same for sparse rows.

    square: sum of squares of each feature, with weights memory^age; it moves.
    """
    cdef double* values = &out[0] if out is not None and out.shape[0] else NULL
    return take_in_sparse(rows, 0, len(rows), &square[0], &shown[0, 0], &shown[1, 0], square.shape[0], count, memory, values)


def scale_sparse(Rows rows, const double[::1] square, const double[:, ::1] shown, double count, double memory,
                 double[::1] out):
    """Values of sparse rows, scaled by what is known."""
    cdef Py_ssize_t j, k
    cdef bint known = knows_values(count, memory)
    for k in range(out.shape[0]):
        j = rows.index[k]
        out[k] = rows.value[k] / divisor(0.0, square[j] / count, shown[1, j] if known else 0.0)


def scale(const double[:, ::1] X, const double[::1] mean, const double[::1] square, const double[:, ::1] shown, double count,
          double memory, double[:, ::1] out):
    """Rows of X scaled by what is known, which does not change."""
    cdef Py_ssize_t i, j
    cdef bint known = knows_values(count, memory)
    with nogil:
        for i in range(X.shape[0]):
            for j in range(X.shape[1]):
                out[i, j] = (X[i, j] - mean[j]) / divisor(mean[j], square[j] / count,
                                                          shown[1, j] - shown[0, j] if known else 0.0)


cdef inline bint is_change(double change, double size) noexcept nogil:
    """Whether values of this size that differ by so much differ by more than rounding; not if NaN."""
    return fabs(change) > ROUNDING * size and change * change > 0.0


cdef inline double divisor(double mean, double variance, double change) noexcept nogil:
    """What a feature is divided by after it is centred: its deviation; 1 while it is constant.

    change: what lies between the only two values of a feature; 0 or NaN for others.
    """
    cdef double deviation = sqrt(variance) if variance > 0.0 else 0.0
    cdef double size = mean if mean > 0.0 else -mean
    if is_change(change, size):
        return fabs(change) / CHANGE
    return deviation if deviation > ROUNDING * size and deviation > 0.0 else 1.0


def divisors(mean, const double[::1] square, const double[:, ::1] shown, double count, double memory):
    """What each feature is divided by; mean is None for sparse rows."""
    cdef bint known = knows_values(count, memory)
    return np.array([divisor(0.0 if mean is None else mean[j], square[j] / count, shown[1, j] - shown[0, j] if known else 0.0)
                     for j in range(square.shape[0])])


def advance_targets(const double[:, ::1] Y, const double[::1] weights, double[::1] mean, double[::1] square,
                    double count, double memory, double[:, ::1] out, double[:, ::1] means, double[:, ::1] deviations,
                    double farthest=INFINITY):
    """Take in the rows of Y in order; each goes to `out` scaled by what is known including itself.

    farthest: deviations from the mean beyond which a number counts for no more than that, unless there are few others.

    means, deviations: what was known before each row, by which a prediction of it is brought back to its units.
    Others as in `advance`; a row counts for its weight.
    """
    cdef Py_ssize_t i, j, n = Y.shape[0], d = Y.shape[1]
    cdef double y, weight = 1.0, few = OTHERS
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
                    y = Y[i, j]
                    if farthest < INFINITY and square[j] > 0.0 and weight * few <= count:
                        y = fmin(fmax(y, mean[j] - farthest * deviations[i, j]), mean[j] + farthest * deviations[i, j])
                    advance_moments(y, weight, count, memory, &mean[j], &square[j])
            for j in range(d):
                out[i, j] = (Y[i, j] - mean[j]) / deviation(mean[j], square[j], count)
    return count


cdef inline double deviation(double mean, double square, double count) noexcept nogil:
    """The deviation to divide by; 1 for what has been constant so far."""
    return divisor(mean, square / count if count > 0.0 else 0.0, 0.0)


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
        self.numbers = np.zeros((9, n_features))
        self.mean = <double*> array_data(self.numbers)
        self.square = self.mean + n_features
        self.first_value = self.mean + 2 * n_features
        self.second_value = self.mean + 3 * n_features
        self.few = n_features

    def load(self, mean, square, double count, shown):
        """Go on from these; mean is None for sparse rows."""
        self.numbers[0] = 0.0 if mean is None else mean
        self.numbers[1] = square
        self.numbers[2:4] = shown
        self.few = np.count_nonzero(self.numbers[2] == self.numbers[2])
        self.count = count

    def learned(self):
        """(mean, sum of squares, count, values shown), copies; mean is None for sparse rows."""
        return None if self.sparse else self.numbers[0].copy(), self.numbers[1].copy(), self.count, self.numbers[2:4].copy()

    def after(self, Py_ssize_t n):
        """What this scaler was after n rows of the piece that is being learned, another one."""
        cdef Scaler twin = Scaler(self.n_features, self.memory, self.sparse, np.float32 if self.single else np.float64)
        twin.numbers[:4] = self.numbers[4:8]
        twin.count, twin.few, twin.stands = self.count_before, self.few_before, self.stands
        twin.rows, twin.sparse_rows, twin.first = self.rows, self.sparse_rows, self.first
        twin.take_in(n, NULL)
        return twin

    def scaled(self, examples):
        """Rows, an array or sparse ones, scaled by what is known, which does not change: O(n d), or O(non-zeros)."""
        cdef Py_ssize_t m = examples.shape[0]
        cdef const char* x
        cdef char* out
        cdef double* divisors
        if self.sparse:
            rows = Rows(examples.indptr, examples.indices, np.zeros(len(examples.data)), self.n_features)
            self.scale_values(examples, 0, len(examples.data), <double*> (<Rows> rows).value)
            return rows
        examples = np.ascontiguousarray(examples)
        result, numbers = np.empty_like(examples), np.empty(self.n_features)      # several threads may predict
        x, out, divisors = array_data(examples), array_data(result), <double*> array_data(numbers)
        if examples.dtype == np.float32:
            with nogil:
                scale_rows[float](self, <const float*> x, m, divisors, <float*> out)
        else:
            with nogil:
                scale_rows[double](self, <const double*> x, m, divisors, <double*> out)
        return result

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

    cdef int attach(self, Piece piece) except -1:
        """A call is about the rows in piece.source: sparse ones get a copy, whose values are scaled piece by piece."""
        if self.sparse:
            self.sparse_rows = piece.source
            rows = self.sparse_rows
            piece.source = Rows(rows.indptr, rows.indices, rows.data, self.n_features)
        else:
            self.rows = piece.source_data
        self.call_rows = piece.source_data
        return 0

    cdef int open(self, Piece piece, Py_ssize_t first, Py_ssize_t m) except -1:
        """Take in m rows from `first` on, and let the piece read them scaled."""
        cdef Py_ssize_t d = self.n_features
        cdef char* out = <char*> (<Rows> piece.source).value if self.sparse else piece.buffer(SCALED, m * d * sizeof(double))
        memcpy(self.mean + 4 * d, self.mean, 4 * d * sizeof(double))
        self.count_before, self.few_before, self.first = self.count, self.few, first
        if not self.sparse:
            self.rows, piece.source_data = self.call_rows + first * d * (4 if self.single else 8), out
        with nogil:
            self.take_in(m, out)
        return 0

    cdef void go_back(self, Py_ssize_t learned) noexcept:
        """Only so many rows of the piece have been learned."""
        memcpy(self.mean, self.mean + 4 * self.n_features, 4 * self.n_features * sizeof(double))
        self.count, self.few = self.count_before, self.few_before
        self.take_in(learned, NULL)

    cdef void take_in(self, Py_ssize_t m, char* out) noexcept nogil:
        """Take in the first m rows of the piece; each goes to `out` scaled by what is known including itself."""
        cdef Py_ssize_t i
        if self.stands:
            self.scale(m, out)
            return
        if self.sparse:
            self.count = take_in_sparse(self.sparse_rows, self.first, m, self.square, self.first_value, self.second_value,
                                        self.n_features, self.count, self.memory, <double*> out)
            return
        for i in range(m):
            self.count = self.memory * self.count + 1.0
            if self.single:
                take_row[float](self, <const float*> self.rows + i * self.n_features,
                                 NULL if out == NULL else <float*> out + i * self.n_features)
            else:
                take_row[double](self, <const double*> self.rows + i * self.n_features,
                                 NULL if out == NULL else <double*> out + i * self.n_features)

    cdef void scale(self, Py_ssize_t m, char* out) noexcept nogil:
        """The first m rows of the piece to `out`, scaled by what is known."""
        cdef double* divisors = self.mean + 8 * self.n_features
        if out == NULL:
            return
        if self.sparse:
            self.scale_values(self.sparse_rows, self.sparse_rows.start[self.first], self.sparse_rows.start[self.first + m],
                              <double*> out)
        elif self.single:
            scale_rows[float](self, <const float*> self.rows, m, divisors, <float*> out)
        else:
            scale_rows[double](self, <const double*> self.rows, m, divisors, <double*> out)

    cdef void scale_values(self, Rows rows, Py_ssize_t start, Py_ssize_t stop, double* out) noexcept nogil:
        """These values of sparse rows to `out`, scaled by what is known."""
        cdef Py_ssize_t k
        for k in range(start, stop):
            out[k] = rows.value[k] / self.divisor_of(rows.index[k])

    cdef double divisor_of(self, Py_ssize_t j) noexcept nogil:
        """What a feature is divided by."""
        cdef double change = self.second_value[j] - self.first_value[j] if knows_values(self.count, self.memory) else 0.0
        return divisor(self.mean[j], self.square[j] / self.count, change)


cdef inline void take_row(Scaler scaler, const real* x, real* out) noexcept nogil:
    """One more row, which the scaler has counted."""
    take_in_row[real](x, scaler.mean, scaler.square, scaler.first_value, scaler.second_value, &scaler.few, scaler.n_features,
                      scaler.count, scaler.memory, out)


cdef void scale_rows(Scaler scaler, const real* x, Py_ssize_t m, double* divisors, real* out) noexcept nogil:
    """m rows scaled by what is known; divisors: room for one of each feature."""
    cdef Py_ssize_t i, j, d = scaler.n_features
    for j in range(d):
        divisors[j] = scaler.divisor_of(j)
    for i in range(m):
        for j in range(d):
            out[i * d + j] = <real> ((x[i * d + j] - scaler.mean[j]) / divisors[j])
