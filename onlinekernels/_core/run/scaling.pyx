"""Running means and variances of columns of numbers, features or targets, advanced row by row.

A feature that has shown two values only, such as a column of a one-hot encoding, is not divided by its deviation, which is
small where one of them is rare: then the rare ones would dominate every distance. A change of it counts as `CHANGE`.
`first` and `second` are the values that a feature has shown, equal if it is one, NaN if there are more than two; targets are
all taken to have more.
"""
import numpy as np
from libc.math cimport INFINITY, NAN, fabs, fmax, fmin, isfinite, sqrt
from libc.string cimport memcpy
from onlinekernels._core.arrays cimport array_data
from onlinekernels._core.run.moments cimport MANY, advance_moments, divisor, knows_values, not_farther
from onlinekernels._core.points cimport Rows
from onlinekernels._core.functions cimport SCALED, Piece


cdef double TAME = 1e140            # no variance of smaller numbers overflows


ctypedef fused real:
    float
    double


cdef class Scaler:
    """What is known of columns of numbers, and how they are scaled by it: the one scaler of features and of targets.

    Dense rows are centred and divided by their deviations, sparse ones divided by root mean squares, so that zeros stay
    zeros. In a model it scales a piece of rows when the piece is opened, and goes back if not all are learned.

    Parameters
    ----------
    n_features : int
        Number of columns.
    memory : float
    sparse : bool
    dtype : numpy dtype
        Of dense rows.
    few_values : bool
        Whether columns of two values are scaled by what lies between these.
    """

    def __init__(self, Py_ssize_t n_features, double memory, bint sparse=False, dtype=np.float64, bint few_values=True):
        self.n_features, self.memory, self.sparse, self.few_values = n_features, memory, sparse, few_values
        self.single = np.dtype(dtype) == np.float32
        self.numbers = np.zeros((9, n_features))
        self.mean = <double*> array_data(self.numbers)
        self.square = self.mean + n_features
        self.first_value = self.mean + 2 * n_features
        self.second_value = self.mean + 3 * n_features
        self.few = n_features if few_values else 0
        if not few_values:
            self.numbers[2:4] = np.nan

    @property
    def dtype(self):
        """Of dense rows."""
        return np.dtype(np.float32 if self.single else np.float64)

    @property
    def means(self):
        """Mean of each column; 0 for sparse rows. O(d)."""
        return self.numbers[0].copy()

    @property
    def variances(self):
        """Variance of each column; its mean square for sparse rows. O(d)."""
        return self.numbers[1] / self.count if self.count else np.zeros(self.n_features)

    @property
    def divisors(self):
        """What each column is divided by. O(d)."""
        return np.array([self.divisor_of(j) for j in range(self.n_features)])

    # ---- Another one --------------------------------------------------------------------------

    def copy(self, memory=None):
        """One that knows the same, and goes on with another memory if that is given. O(d)."""
        cdef Scaler twin = Scaler(self.n_features, self.memory if memory is None else memory, self.sparse, self.dtype,
                                  self.few_values)
        twin.take_over(self)
        return twin

    cdef void take_over(self, Scaler other) noexcept:
        """Know what another one knows, of as many columns. O(d)."""
        memcpy(self.mean, other.mean, 4 * self.n_features * sizeof(double))
        self.count, self.few = other.count, other.few

    def load(self, Scaler other):
        """Go on from what another one knows, of as many columns. O(d)."""
        if other.n_features != self.n_features or other.sparse != self.sparse or other.few_values != self.few_values:
            raise ValueError("the scaler is for other rows")
        self.take_over(other)

    def after(self, Py_ssize_t n):
        """What this scaler was after n rows of the piece that is being learned, another one. As `take_in`."""
        cdef Scaler twin = self.copy()
        memcpy(twin.mean, self.mean + 4 * self.n_features, 4 * self.n_features * sizeof(double))
        twin.count, twin.few, twin.stands = self.count_before, self.few_before, self.stands
        twin.rows, twin.sparse_rows, twin.first = self.rows, self.sparse_rows, self.first
        twin.take_in(n, NULL)
        return twin

    def widened(self, Py_ssize_t extra, double fill):
        """One for more columns, which had the value `fill` in all rows so far; rows must not be sparse. O(d)."""
        cdef Scaler wider = Scaler(self.n_features + extra, self.memory, self.sparse, self.dtype, self.few_values)
        cdef Py_ssize_t n = self.n_features
        wider.numbers[:4, :n] = self.numbers[:4]
        if self.count:
            wider.numbers[0, n:] = fill
            if self.few_values:
                wider.numbers[2:4, n:] = fill
        wider.count, wider.few = self.count, np.count_nonzero(wider.numbers[2] == wider.numbers[2])
        return wider

    # ---- Rows ---------------------------------------------------------------------------------

    def advance(self, rows, bint wanted=True, const double[::1] weights=None, double farthest=INFINITY,
                double[:, ::1] means=None, double[:, ::1] divisors=None):
        """Take in rows in order, an array or sparse ones. Return them, if that is `wanted`, each scaled by what is known
        including itself. O(n d), or O(non-zeros).

        weights: what dense rows count for; 1 for each if it is None.
        farthest: deviations from the mean beyond which a number counts for no more than that, unless there are few others.
        means, divisors: for what was known before each dense row.
        """
        cdef Py_ssize_t i, j, d = self.n_features, n = rows.shape[0]
        cdef double weight = 1.0
        cdef char* out = NULL
        if self.sparse:
            scaled = self.new_rows(rows) if wanted else None
            self.sparse_rows, self.first = rows, 0
            self.take_sparse(n, <double*> (<Rows> scaled).value if wanted else NULL)
            self.let_go()
            return scaled
        rows = np.ascontiguousarray(rows, dtype=self.dtype)
        scaled = np.empty_like(rows) if wanted else None
        self.rows = array_data(rows)
        if wanted:
            out = array_data(scaled)
        with nogil:
            for i in range(n):
                for j in range(d if means is not None else 0):
                    means[i, j], divisors[i, j] = self.mean[j], self.divisor_of(j)
                if weights is not None:
                    weight = weights[i]
                self.take_row(i, weight, farthest, out)
        self.let_go()
        return scaled

    def scaled(self, rows):
        """Rows, an array or sparse ones, scaled by what is known, which does not change: O(n d), or O(non-zeros)."""
        cdef Py_ssize_t m = rows.shape[0]
        cdef const char* x
        cdef char* out
        cdef double* divisors
        if self.sparse:
            result = self.new_rows(rows)
            self.scale_values(rows, 0, len(rows.data), <double*> (<Rows> result).value)
            return result
        rows = np.ascontiguousarray(rows, dtype=self.dtype)
        result, numbers = np.empty_like(rows), np.empty(self.n_features)          # several threads may predict
        x, out, divisors = array_data(rows), array_data(result), <double*> array_data(numbers)
        with nogil:
            self.scale_dense(x, m, divisors, out)
        return result

    def new_rows(self, rows):
        """Sparse rows like these, of zeros that are to be filled in. O(non-zeros)."""
        return Rows(rows.indptr, rows.indices, np.zeros(len(rows.data)), self.n_features)

    def scaled_column(self, Py_ssize_t j, values):
        """Values of one column, scaled by what is known. O(values)."""
        return (values - self.mean[j]) / self.divisor_of(j)

    def is_finite(self):
        """Whether no mean and no variance has overflowed. O(d)."""
        cdef Py_ssize_t j
        for j in range(2 * self.n_features):
            if not isfinite(self.mean[j]):
                return False
        return isfinite(self.count)

    def is_tame(self, values):
        """Whether no variance can overflow with these numbers, a C-contiguous array of the rows' precision. O(size + d)."""
        return self.are_tame(array_data(values), values.size)

    cdef bint are_tame(self, const char* values, Py_ssize_t n) noexcept nogil:
        """The same of n numbers in memory."""
        cdef Py_ssize_t i
        cdef double largest = largest_size[float](<const float*> values, n) if self.single \
            else largest_size[double](<const double*> values, n)
        for i in range(self.n_features):
            largest = max(largest, max(fabs(self.mean[i]), sqrt(self.square[i])))
        return largest < TAME

    # ---- In an engine -------------------------------------------------------------------------

    cdef int attach(self, Piece piece) except -1:
        """A call is about the rows in piece.source: sparse ones get a copy, whose values are scaled piece by piece.

        O(1), O(non-zeros) for sparse rows.
        """
        if self.sparse:
            self.sparse_rows = piece.source
            rows = self.sparse_rows
            piece.source = Rows(rows.indptr, rows.indices, rows.data, self.n_features)
        else:
            self.rows = piece.source_data
        self.call_rows = piece.source_data
        return 0

    cdef void let_go(self) noexcept:
        """The call is over: hold on to none of its rows. O(1)."""
        self.sparse_rows, self.rows, self.call_rows = None, NULL, NULL

    cdef int open(self, Piece piece, Py_ssize_t first, Py_ssize_t m) except -1:
        """Take in m rows from `first` on, and let the piece read them scaled. As `take_in`."""
        cdef Py_ssize_t d = self.n_features
        cdef char* out = <char*> (<Rows> piece.source).value if self.sparse else piece.buffer(SCALED, m * d * sizeof(double))
        memcpy(self.mean + 4 * d, self.mean, 4 * d * sizeof(double))
        self.count_before, self.few_before, self.first = self.count, self.few, first
        if not self.sparse:
            self.rows, piece.source_data = self.call_rows + first * d * (4 if self.single else 8), out
        if m == 1:                              # to let go of the interpreter would take longer
            self.take_in(m, out)
            return 0
        with nogil:
            self.take_in(m, out)
        return 0

    cdef void go_back(self, Py_ssize_t learned) noexcept:
        """Only so many rows of the piece have been learned. As `take_in`."""
        memcpy(self.mean, self.mean + 4 * self.n_features, 4 * self.n_features * sizeof(double))
        self.count, self.few = self.count_before, self.few_before
        self.take_in(learned, NULL)

    cdef void take_in(self, Py_ssize_t m, char* out) noexcept nogil:
        """Take in the first m rows of the piece; each goes to `out` scaled by what is known including itself.

        O(m d), or O(d + non-zeros).
        """
        cdef Py_ssize_t i
        if self.stands:
            self.scale(m, out)
        elif self.sparse:
            self.take_sparse(m, <double*> out)
        else:
            for i in range(m):
                self.take_row(i, 1.0, INFINITY, out)

    cdef void take_row(self, Py_ssize_t i, double weight, double farthest, char* out) noexcept nogil:
        """Take in dense row i of the piece, which counts for so much; it goes to its place in `out`, unless that is NULL. O(d)."""
        cdef Py_ssize_t first = i * self.n_features
        if self.single:
            take_dense[float](self, <const float*> self.rows + first, weight, farthest, NULL if out == NULL else <float*> out + first)
        else:
            take_dense[double](self, <const double*> self.rows + first, weight, farthest,
                               NULL if out == NULL else <double*> out + first)

    cdef void take_sparse(self, Py_ssize_t n, double* out) noexcept nogil:
        """Take in n sparse rows of the piece. Zero is among the values that every feature has shown. O(d + non-zeros)."""
        cdef Py_ssize_t i, j, k, d = self.n_features
        cdef const long long* start = self.sparse_rows.start
        cdef const int* index = self.sparse_rows.index
        cdef const double* value = self.sparse_rows.value
        cdef double decay = 1.0             # what is in `square` still has to be multiplied by
        for i in range(self.first, self.first + n):
            self.count = self.memory * self.count + 1.0
            decay *= self.memory
            if decay < 1e-8:                # so that squares do not become too large beside it
                for j in range(d):
                    self.square[j] *= decay
                decay = 1.0
            for k in range(start[i], start[i + 1]):
                j = index[k]
                self.square[j] += value[k] * value[k] / decay
                if value[k] != self.second_value[j] and value[k] != 0.0:
                    if self.second_value[j] == 0.0:
                        self.second_value[j] = value[k]
                    else:
                        self.first_value[j] = self.second_value[j] = NAN
                if out != NULL:
                    out[k] = value[k] / divisor(0.0, decay * self.square[j] / self.count, self.change_of(j))
        if decay < 1.0:
            for j in range(d):
                self.square[j] *= decay

    cdef void scale(self, Py_ssize_t m, char* out) noexcept nogil:
        """The first m rows of the piece to `out`, scaled by what is known. O(m d), or O(non-zeros)."""
        if out == NULL:
            return
        if self.sparse:
            self.scale_values(self.sparse_rows, self.sparse_rows.start[self.first], self.sparse_rows.start[self.first + m],
                              <double*> out)
        else:
            self.scale_dense(self.rows, m, self.mean + 8 * self.n_features, out)

    cdef void scale_dense(self, const char* rows, Py_ssize_t m, double* divisors, char* out) noexcept nogil:
        """m dense rows to `out`, scaled by what is known; divisors: room for one of each column. O(m d)."""
        if self.single:
            scale_rows[float](self, <const float*> rows, m, divisors, <float*> out)
        else:
            scale_rows[double](self, <const double*> rows, m, divisors, <double*> out)

    cdef void scale_values(self, Rows rows, Py_ssize_t start, Py_ssize_t stop, double* out) noexcept nogil:
        """These values of sparse rows to `out`, scaled by what is known. O(stop - start)."""
        cdef Py_ssize_t k
        for k in range(start, stop):
            out[k] = rows.value[k] / self.divisor_of(rows.index[k])

    cdef double change_of(self, Py_ssize_t j) noexcept nogil:
        """What lies between the only two values of a column; NaN for others, 0 as long as one has not come again. O(1)."""
        return self.second_value[j] - self.first_value[j] if knows_values(self.count, self.memory) else 0.0

    cdef double divisor_of(self, Py_ssize_t j) noexcept nogil:
        """What a column is divided by; 1 before the first row. O(1)."""
        return divisor(self.mean[j], self.square[j] / self.count if self.count > 0.0 else 0.0, self.change_of(j))

    # ---- State --------------------------------------------------------------------------------

    def state(self):
        """What is learned, as plain numbers and lists. O(d)."""
        mean, square, *shown = self.numbers[:4]
        found = {"count": self.count, "mean": None if self.sparse else mean.tolist(), "square": square.tolist()}
        if self.few_values:                     # whether a column has shown at most two values, and these; 0 for others
            found["few"] = (shown[0] == shown[0]).tolist()
            found.update({name: np.where(row == row, row, 0.0).tolist() for name, row in zip(("first", "second"), shown)})
        return found

    def restore(self, state):
        """Go on from what `state` gave; ValueError if it makes no sense. O(d)."""
        if (state["mean"] is None) != self.sparse:
            raise ValueError("the scaler is for another kind of rows")
        mean = np.zeros(self.n_features) if self.sparse else state["mean"]
        values = [state["first"], state["second"]] if self.few_values else []
        rows = [np.asarray(row, dtype=float) for row in (mean, state["square"], *values)]
        count = np.asarray(state["count"], dtype=float)
        if count.shape != () or not all(row.shape == (self.n_features,) and np.isfinite(row).all() for row in rows):
            raise ValueError("what the scaler knows does not fit the columns")
        if not 0.0 <= count < np.inf or (rows[1] < 0.0).any() or count == 0.0 and np.any(rows):
            raise ValueError("the scaler's count and squares make no sense")
        if self.few_values:
            few = np.asarray(state["few"])
            if few.dtype != bool or few.shape != (self.n_features,) or 0.0 < count < 1.0:
                raise ValueError("the values that the scaler has seen do not fit the columns")
            if self.sparse and rows[2].any():
                raise ValueError("the values that the scaler has seen do not fit sparse rows")
            rows[2:] = [np.where(few, row, np.nan) for row in rows[2:]]
        self.numbers[:len(rows)] = rows
        self.few, self.count = np.count_nonzero(self.numbers[2] == self.numbers[2]), float(count)

    def __reduce__(self):
        return _restored, ((self.n_features, self.memory, self.sparse, self.dtype, self.few_values), self.state())


def _restored(arguments, state):
    """A scaler from a pickle."""
    scaler = Scaler(*arguments)
    scaler.restore(state)
    return scaler


cdef inline void take_dense(Scaler s, const real* x, double weight, double farthest, real* out) noexcept nogil:
    """Take in a row that counts for so much; it goes to `out`, scaled by what is known with it, unless that is NULL."""
    cdef Py_ssize_t j, d = s.n_features
    cdef double memory = s.memory, count = s.count, before = s.count
    cdef double* mean = s.mean
    cdef double* square = s.square
    cdef const double* first = s.first_value
    cdef const double* second = s.second_value
    if weight > 0.0:
        s.count = count = memory * count + weight
        if farthest < INFINITY and weight * MANY <= count:
            for j in range(d):
                advance_moments(not_farther(x[j], mean[j], square[j] / before, farthest), weight, count, memory,
                                mean + j, square + j)
        else:
            for j in range(d):
                advance_moments(x[j], weight, count, memory, mean + j, square + j)
        if s.few_values:
            look_at_values[real](s, x)
    if out == NULL:
        return
    if s.few > 0 and knows_values(count, memory):
        for j in range(d):
            out[j] = <real> ((x[j] - mean[j]) / divisor(mean[j], square[j] / count, second[j] - first[j]))
    else:
        count = count if count > 0.0 else 1.0
        for j in range(d):
            out[j] = <real> ((x[j] - mean[j]) / divisor(mean[j], square[j] / count, 0.0))


cdef inline double largest_size(const real* x, Py_ssize_t n) noexcept nogil:
    """The largest |x|."""
    cdef Py_ssize_t i
    cdef double largest = 0.0
    for i in range(n):
        largest = max(largest, fabs(x[i]))
    return largest


cdef inline void look_at_values(Scaler s, const real* x) noexcept nogil:
    """A row that has been counted: which columns have shown two values at most, and which values."""
    cdef Py_ssize_t j, d = s.n_features
    if s.count == 1.0:
        s.few = d
        for j in range(d):
            s.first_value[j] = s.second_value[j] = x[j]
    elif s.few > 0:
        s.few = 0
        for j in range(d):
            if x[j] != s.first_value[j] and x[j] != s.second_value[j]:
                if s.first_value[j] == s.second_value[j]:
                    s.second_value[j] = x[j]
                else:
                    s.first_value[j] = s.second_value[j] = NAN
            s.few += s.first_value[j] == s.first_value[j]


cdef void scale_rows(Scaler scaler, const real* x, Py_ssize_t m, double* divisors, real* out) noexcept nogil:
    """m rows scaled by what is known; divisors: room for one of each column."""
    cdef Py_ssize_t i, j, d = scaler.n_features
    for j in range(d):
        divisors[j] = scaler.divisor_of(j)
    for i in range(m):
        for j in range(d):
            out[i * d + j] = <real> ((x[i * d + j] - scaler.mean[j]) / divisors[j])
