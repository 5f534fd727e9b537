"""What rows go through before they are learned: running scalers, ranks, and the transforms of an ensemble's members.

Each row is transformed with what was known at its time. `open` transforms a block of rows, `commit(n)` says how many of
them were learned: the others are rolled back, by what was noted when the block was opened, and never by a copy of a
whole sample.

A feature that has shown two values only, such as a column of a one-hot encoding, is not divided by its deviation, which
is small where one of them is rare: then the rare ones would dominate every distance. A change of it counts as `CHANGE`.
`first` and `second` are the values that a feature has shown, equal if it is one, NaN if there are more than two;
targets are all taken to have more.
"""
import numpy as np
cimport cython
from libc.math cimport INFINITY, NAN, asinh, cos, erfc, fabs, fmax, fmin, isfinite, isnan, log, sin, sqrt
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memmove
from onlinekernels._core.arrays cimport array_data
from onlinekernels._core.errors import row_error
from onlinekernels._core.schema import (Array, Buffer, Count, Number, Part, assign, at_least, check_state, not_negative,
                                        positive, restore, state_of, within)
from onlinekernels._core.formulas.hashing cimport reservoir_slot
from onlinekernels._core.points cimport Rows
from onlinekernels._core.formulas.moments cimport advance_moments, divisor, knows_values
from onlinekernels._core.functions cimport SCALED, Piece
from onlinekernels._core.linalg cimport ok_times_rows


cdef double BOUND = 1e140           # no variance of smaller numbers overflows
cdef double LARGEST = 1e300         # no difference of smaller numbers does


ctypedef fused real:
    float
    double


cdef class Scaler:
    """What is known of columns of numbers, and how they are scaled by it: the one scaler of features and of targets.

    Dense rows are centred and divided by their deviations, sparse ones divided by root mean squares, so that zeros stay
    zeros. In a model it scales a piece of rows when the piece is opened, and `commit` says how many were learned.

    Parameters
    ----------
    n_features : int
        Number of columns.
    memory : float
    sparse : bool
    dtype : numpy dtype
        Of dense rows.
    """

    def __init__(self, Py_ssize_t n_features, double memory, bint sparse=False, dtype=np.float64):
        self.n_features, self.memory, self.sparse = n_features, memory, sparse
        self.single = np.dtype(dtype) == np.float32
        self.numbers = np.zeros((9, n_features))
        self.mean = <double*> array_data(self.numbers)
        self.square = self.mean + n_features
        self.first_value = self.mean + 2 * n_features
        self.second_value = self.mean + 3 * n_features
        self.few = n_features

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
        cdef Scaler twin = Scaler(self.n_features, self.memory if memory is None else memory, self.sparse, self.dtype)
        twin.load(self)
        return twin

    def load(self, Scaler other):
        """Go on from what another one knows, of as many columns. O(d)."""
        if other.n_features != self.n_features or other.sparse != self.sparse:
            raise ValueError("the scaler is for other rows")
        memcpy(self.mean, other.mean, 4 * self.n_features * sizeof(double))
        self.count, self.few = other.count, other.few

    def after(self, Py_ssize_t n):
        """What this scaler was after n rows of the piece that is being learned, another one. As `update_rows`."""
        cdef Scaler twin = self.copy()
        memcpy(twin.mean, self.mean + 4 * self.n_features, 4 * self.n_features * sizeof(double))
        twin.count, twin.few, twin.frozen = self.count_before, self.few_before, self.frozen
        twin.rows, twin.sparse_rows, twin.first = self.rows, self.sparse_rows, self.first
        twin.update_rows(n, NULL)
        return twin

    def widened(self, Py_ssize_t extra, double fill):
        """One for more columns, which had the value `fill` in all rows so far; rows must not be sparse. O(d)."""
        cdef Scaler wider = Scaler(self.n_features + extra, self.memory, self.sparse, self.dtype)
        cdef Py_ssize_t n = self.n_features
        wider.numbers[:4, :n] = self.numbers[:4]
        if self.count:
            wider.numbers[0, n:] = fill
            wider.numbers[2:4, n:] = fill
        wider.count, wider.few = self.count, np.count_nonzero(wider.numbers[2] == wider.numbers[2])
        return wider

    # ---- Rows ---------------------------------------------------------------------------------

    def advanced(self, rows, bint wanted=True):
        """(a scaler that has seen these rows as well, the rows, if that is wanted, each scaled by what is known
        including itself); they are checked. O(n d), or O(non-zeros).

        >>> after, rows = Scaler(1, 1.0).advanced(np.array([[1.0], [3.0], [5.0]]))
        >>> rows.round(3).ravel().tolist(), after.means
        ([0.0, 1.0, 1.225], array([3.]))
        """
        cdef Scaler fresh = self.copy()
        cdef Py_ssize_t n = rows.shape[0]
        cdef char* out
        if self.sparse:
            scaled = self.new_rows(rows)
            fresh.sparse_rows, out = rows, <char*> (<Rows> scaled).value
        else:
            rows = np.ascontiguousarray(rows, dtype=self.dtype)
            scaled = np.empty_like(rows)
            fresh.rows, out = array_data(rows), array_data(scaled)
        with nogil:
            fresh.update_rows(n, out if wanted else NULL)
        fresh.let_go()
        if not fresh.is_finite():
            raise too_large(rows)
        return fresh, scaled if wanted else None

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

    cpdef bint is_finite(self) noexcept nogil:
        """Whether no mean and no variance has overflowed. O(d)."""
        cdef Py_ssize_t j
        for j in range(2 * self.n_features):
            if not isfinite(self.mean[j]):
                return False
        return isfinite(self.count)

    def is_bounded(self, values):
        """Whether no variance can overflow with these numbers, contiguous and of the rows' precision. O(size + d)."""
        return self.are_bounded(array_data(values), values.size)

    cdef bint are_bounded(self, const char* values, Py_ssize_t n) noexcept nogil:
        """The same of n numbers in memory."""
        cdef Py_ssize_t i
        cdef double largest = largest_size[float](<const float*> values, n) if self.single \
            else largest_size[double](<const double*> values, n)
        for i in range(self.n_features):
            largest = max(largest, max(fabs(self.mean[i]), sqrt(self.square[i])))
        return largest < BOUND

    # ---- In an engine -------------------------------------------------------------------------

    cdef int attach(self, Piece piece) except -1:
        """A call is about the rows in piece.source: sparse ones get a copy, whose values are scaled piece by piece.

        O(1), O(non-zeros) for sparse rows.
        """
        if self.sparse:
            self.sparse_rows = piece.source
            rows = self.sparse_rows
            piece.source = Rows(rows.indptr, rows.indices, rows.data, self.n_features)
        self.call_rows = piece.source_data

    cdef void let_go(self) noexcept:
        """The call is over: hold on to none of its rows. O(1)."""
        self.sparse_rows, self.rows, self.call_rows = None, NULL, NULL

    cdef int open(self, Piece piece, Py_ssize_t first, Py_ssize_t m) except -1:
        """Update with m rows from `first` on, and let the piece read them scaled. As `update_rows`."""
        cdef const char* rows = NULL
        cdef char* out
        if self.sparse:
            out = <char*> (<Rows> piece.source).value
        else:
            out = piece.buffer(SCALED, m * self.n_features * sizeof(double))
            piece.source_data = out
            rows = self.call_rows + first * self.n_features * (4 if self.single else 8)
        if m == 1:                              # to release the interpreter would take longer
            self.open_rows(rows, first, m, out)
        else:
            with nogil:
                self.open_rows(rows, first, m, out)

    cdef void open_rows(self, const char* rows, Py_ssize_t first, Py_ssize_t m, char* out) noexcept nogil:
        """Update with m rows: dense ones, which must stay where they are until `commit`, or sparse ones of the call
        from `first` on. As `update_rows`."""
        memcpy(self.mean + 4 * self.n_features, self.mean, 4 * self.n_features * sizeof(double))
        self.count_before, self.few_before = self.count, self.few
        self.rows, self.first, self.opened = rows, first, m
        self.update_rows(m, out)

    cdef void commit(self, Py_ssize_t n) noexcept nogil:
        """The first n rows of the piece were learned. O(1) if that is all of them, otherwise as `update_rows`."""
        if n < self.opened:
            memcpy(self.mean, self.mean + 4 * self.n_features, 4 * self.n_features * sizeof(double))
            self.count, self.few = self.count_before, self.few_before
            self.update_rows(n, NULL)
        self.opened = 0

    cdef void update_rows(self, Py_ssize_t m, char* out) noexcept nogil:
        """Take in the first m rows of the piece; each goes to `out` scaled by what is known including itself.

        O(m d), or O(d + non-zeros).
        """
        cdef Py_ssize_t i
        if self.frozen:
            self.scale(m, out)
        elif self.sparse:
            self.take_sparse(m, <double*> out)
        else:
            for i in range(m):
                self.take_row(i, out)

    cdef void take_row(self, Py_ssize_t i, char* out) noexcept nogil:
        """Update with dense row i of the piece; it goes to its place in `out`, unless that is NULL. O(d)."""
        cdef Py_ssize_t first = i * self.n_features
        if self.single:
            take_dense[float](self, <const float*> self.rows + first, NULL if out == NULL else <float*> out + first)
        else:
            take_dense[double](self, <const double*> self.rows + first, NULL if out == NULL else <double*> out + first)

    cdef void take_sparse(self, Py_ssize_t n, double* out) noexcept nogil:
        """Take in n sparse rows of the piece; every feature has shown zero. O(d + non-zeros)."""
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
            self.scale_values(self.sparse_rows, self.sparse_rows.start[self.first],
                              self.sparse_rows.start[self.first + m], <double*> out)
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
        """What lies between the only two values of a column; NaN for others, 0 until one has come again. O(1)."""
        return self.second_value[j] - self.first_value[j] if knows_values(self.count, self.memory) else 0.0

    cdef double divisor_of(self, Py_ssize_t j) noexcept nogil:
        """What a column is divided by; 1 before the first row. O(1)."""
        return divisor(self.mean[j], self.square[j] / self.count if self.count > 0.0 else 0.0, self.change_of(j))

    # ---- State --------------------------------------------------------------------------------

    FIELDS = (
        Number("count", at_least(0.0)),
        Buffer("mean", of=lambda scaler: scaler.numbers[0], when=lambda scaler: not scaler.sparse),
        Buffer("square", not_negative, of=lambda scaler: scaler.numbers[1]),
        Array("few", bool, ("n_features",)),            # whether a column has shown at most two values, and these
        Array("first", float, ("n_features",)),
        Array("second", float, ("n_features",)))

    def stored(self):
        """The values that columns have shown. O(d)."""
        first, second = self.numbers[2:4]
        few = first == first
        return {"few": few, "first": np.where(few, first, 0.0), "second": np.where(few, second, 0.0)}

    def fits(self, state):
        """Nothing comes of no rows; the first value of a sparse column is 0."""
        numbers = [value for name, value in state.items() if name not in ("count", "few")]
        if state["count"] < 1.0 and (state["count"] > 0.0 or np.any(numbers)):
            raise ValueError("count is below that of one row")
        if self.sparse and state["first"].any():
            raise ValueError("first is not 0, as sparse rows have it")

    def resume(self, state):
        assign(self, {name: state[name] for name in ("count", "mean", "square") if name in state})
        self.numbers[2:4] = np.where(state["few"], (state["first"], state["second"]), np.nan)
        self.few = np.count_nonzero(state["few"])

    def __reduce__(self):
        return _restored, ((self.n_features, self.memory, self.sparse, self.dtype), state_of(self))


def _restored(arguments, state):
    """A scaler from a pickle."""
    scaler = Scaler(*arguments)
    restore(scaler, state)
    return scaler


cdef inline void take_dense(Scaler s, const real* x, real* out) noexcept nogil:
    """Update with a row; it goes to `out`, scaled by what is known with it, unless that is NULL."""
    cdef Py_ssize_t j, d = s.n_features
    cdef double memory = s.memory, count = memory * s.count + 1.0
    cdef double* mean = s.mean
    cdef double* square = s.square
    cdef const double* first = s.first_value
    cdef const double* second = s.second_value
    s.count = count
    for j in range(d):
        advance_moments(x[j], 1.0, count, memory, mean + j, square + j)
    look_at_values[real](s, x)
    if out == NULL:
        return
    if s.few > 0 and knows_values(count, memory):
        for j in range(d):
            out[j] = <real> ((x[j] - mean[j]) / divisor(mean[j], square[j] / count, second[j] - first[j]))
    else:
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


# ---- Missing values, and time on circles -----------------------------------------------------------------------------


def fill(const double[:, ::1] X, double[:, ::1] statistics, const double[::1] memory, bint learns,
         double[:, ::1] out=None):
    """Write to `out`, for each NaN of X, the mean of its feature in the rows before, 0 if there are none.

    A feature that has shown two values at most has the nearer one, so that it goes on to have two.

    statistics: rows that change if it `learns`: means and counts of the values so far, with weights memory^age, where
    memory is that of each feature, and the values that a feature has shown, in two rows: equal if it is one, NaN if
    they are more; infinite before the first.
    """
    cdef Py_ssize_t i, j
    cdef bint fills = out is not None
    cdef double x
    cdef double[::1] mean = statistics[0], count = statistics[1], first = statistics[2], second = statistics[3]
    with nogil:
        for i in range(X.shape[0]):
            for j in range(X.shape[1]):
                x = X[i, j]
                if isnan(x):
                    if fills:
                        out[i, j] = filling(mean[j], count[j], first[j], second[j])
                elif learns:
                    count[j] = memory[j] * count[j] + 1.0
                    mean[j] += x / count[j] - mean[j] / count[j]        # no difference, which could overflow
                    if x != first[j] and x != second[j] and not isnan(first[j]):
                        if first[j] == INFINITY:
                            first[j] = second[j] = x
                        elif first[j] == second[j]:
                            second[j] = x
                        else:
                            first[j] = second[j] = NAN


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


# ---- Means of targets, of each category ------------------------------------------------------------------------------

cdef double CLIPPED = 4.0           # a target counts for so many deviations at most
cdef double SHRINKAGE = 1.0         # rows of no effect that every category begins with
cdef double LATE = 30.0             # rows that the mean of all categories remembers: what all have in common is drift
cdef double RECENT = 5.0            # rows that the mean of late rows of a category remembers
cdef double FADING = 0.998          # memory of the errors of both means


def surprises(const double[:, ::1] targets, double[:, ::1] overall, bint are_classes):
    """By how much each target is above the mean of those before it, numbers in units of their deviation and clipped;
    what is clipped counts as that much. Updates `overall`: numbers of rows, means and variances, of late rows."""
    cdef Py_ssize_t i, k
    cdef double gap, unit, share
    cdef double[:, ::1] out = np.zeros((targets.shape[0], targets.shape[1]))
    with nogil:
        for i in range(targets.shape[0]):
            for k in range(targets.shape[1]):
                gap = max(-BOUND, min(BOUND, targets[i, k])) - overall[1, k]
                unit = 1.0 if are_classes else sqrt(overall[2, k])
                if overall[0, k] > 0.0 and unit > 0.0:
                    gap = max(-CLIPPED * unit, min(CLIPPED * unit, gap))
                    out[i, k] = gap / unit
                overall[0, k] = min(overall[0, k] + 1.0, LATE)
                share = 1.0 / overall[0, k]
                overall[1, k] += share * gap
                overall[2, k] = (1.0 - share) * (overall[2, k] + share * gap * gap)
    return np.asarray(out)


def category_means(const long long[::1] rows, const double[:, ::1] surprise, double[:, ::1] known, Py_ssize_t first,
                   double[:, :] out, bint learns):
    """Mean surprise of the category of each row in the rows before it, to `out` from row `first` on.

    There are two such means, shrunk to 0: of all rows, and of late ones; what is given is the one that has been nearer
    to the surprises of this column so far. If it `learns`, `known` is updated. Its row 0 has the running squared
    errors of both means, row c of a category how many rows there were, then the sums over all rows, and the means of
    late ones. Row 0 of `rows` is for values that belong to no category.
    """
    cdef Py_ssize_t i, k, c, K = surprise.shape[1]
    cdef double count, all_rows, late
    with nogil:
        for i in range(rows.shape[0]):
            c = rows[i]
            if c == 0:
                continue
            count = known[c, 0]
            for k in range(K):
                all_rows = known[c, 1 + k] / (count + SHRINKAGE)
                late = known[c, 1 + K + k] * (min(count, RECENT) / (min(count, RECENT) + SHRINKAGE))
                if i >= first:
                    out[i, k] = late if known[0, 1 + K + k] < known[0, 1 + k] else all_rows
                if learns and count > RECENT:           # before they are equal
                    known[0, 1 + k] += (1.0 - FADING) * ((surprise[i, k] - all_rows)**2 - known[0, 1 + k])
                    known[0, 1 + K + k] += (1.0 - FADING) * ((surprise[i, k] - late)**2 - known[0, 1 + K + k])
                if learns:
                    known[c, 1 + k] += surprise[i, k]
                    known[c, 1 + K + k] += (surprise[i, k] - known[c, 1 + K + k]) / min(count + 1.0, RECENT)
            if learns:
                known[c, 0] = count + 1.0


# ---- Ranks -----------------------------------------------------------------------------------------------------------


cdef double normal_score(double p) noexcept nogil:
    """x with Phi(x) = p, within 1e-8 (Acklam's rational approximations, relative 1.2e-9)."""
    cdef double q, r
    if p < 0.02425 or p > 0.97575:
        q = sqrt(-2.0 * log(p if p < 0.5 else 1.0 - p))
        r = (((((-7.784894002430293e-03 * q - 3.223964580411365e-01) * q - 2.400758277161838e+00) * q
                - 2.549732539343734e+00) * q
              + 4.374664141464968e+00) * q + 2.938163982698783e+00) / (
            (((7.784695709041462e-03 * q + 3.224671290700398e-01) * q + 2.445134137142996e+00) * q
                + 3.754408661907416e+00) * q
            + 1.0)
        return r if p < 0.5 else -r
    q = p - 0.5
    r = q * q
    return (((((-3.969683028665376e+01 * r + 2.209460984245205e+02) * r - 2.759285104469687e+02) * r
                + 1.383577518672690e+02) * r
             - 3.066479806614716e+01) * r + 2.506628277459239e+00) * q / (
        ((((-5.447609879822406e+01 * r + 1.615858368580409e+02) * r - 1.556989798598866e+02) * r
            + 6.680131188771972e+01) * r
         - 1.328068155288572e+01) * r + 1.0)


def normal_scores(ranks):
    """Normal deviates of ranks in (0, 1), of any shape.

    >>> normal_scores(np.array([0.001, 0.1, 0.5, 0.975])).round(4).tolist()
    [-3.0902, -1.2816, 0.0, 1.96]
    """
    found = np.array(ranks, dtype=float)
    cdef double[::1] out = found.reshape(-1)
    cdef Py_ssize_t i
    for i in range(out.shape[0]):
        out[i] = normal_score(out[i])
    return found


cdef inline Py_ssize_t below(const double* ordered, Py_ssize_t n, double value, bint with_equal) noexcept nogil:
    """How many are smaller, or also as large; without a branch, which nobody could foresee."""
    cdef Py_ssize_t low = 0, half
    while n > 0:
        half = (n + 1) // 2
        low += half * (ordered[low + half - 1] <= value if with_equal else ordered[low + half - 1] < value)
        n -= half
    return low


cdef class Ranks:
    """Running ranks: where a value stands among a uniform sample of those before it.

    Ranks are the same in any units, and no burst of odd values moves them much: a sample of all values has few of them.
    Each column is kept in order, so a rank is a search, and a value that enters moves those between its place and that
    of the value it replaces. Rows enter and leave the samples of all columns together.

    Parameters
    ----------
    columns, size : int
    memory, seed : int
        See `reservoir_slot`.
    latest : bool
        Whether the latest rows are kept, and not a uniform sample.

    >>> ranks = Ranks(1, 100)
    >>> ranks.ranks(np.array([[1.0], [3.0], [2.0], [2.0]]), learns=True).ravel().tolist()
    [0.5, 0.75, 0.5, 0.5]
    """

    def __init__(self, Py_ssize_t columns, Py_ssize_t size, long long memory=0, unsigned long long seed=0,
                 bint latest=False):
        self.columns, self.size, self.memory, self.seed, self.latest = columns, size, memory, seed, latest
        self.ordered, self.rows = np.zeros((columns, size)), np.zeros((size, columns))
        self.ordered_data, self.rows_data = <double*> array_data(self.ordered), <double*> array_data(self.rows)

    cpdef void restart(self, Py_ssize_t kept) noexcept nogil:
        """Begin anew with the latest rows, as long as all rows are there: nothing happens when t is beyond the size.
        O(columns kept size).

        >>> ranks = Ranks(1, 100)
        >>> _ = ranks.ranks(np.array([[1.0], [2.0], [3.0]]), learns=True)
        >>> ranks.restart(2)
        >>> ranks.n, ranks.quantile(0.0)
        (2, 2.0)
        """
        cdef Py_ssize_t i, j, d = self.columns, n = max(0, min(kept, <Py_ssize_t> self.t)), first = self.t - n
        if self.t > self.size:
            return
        memmove(self.rows_data, self.rows_data + first * d, n * d * sizeof(double))
        for i in range(n):
            for j in range(d):
                put_in_order(self.ordered_data + j * self.size, i, False, 0.0, self.rows_data[i * d + j])
        self.t = n

    @property
    def n(self):
        """Number of rows that are kept."""
        return min(self.t, self.size)

    # ---- A block of rows, which can be rolled back ---------------------------------------------

    cdef int reserve(self, Py_ssize_t n) except -1:
        """Room for what undoes n rows; a block begins. O(1), O(n columns) when the room grows."""
        cdef Py_ssize_t size = n * (self.columns + 1)
        if self.log is None or self.log.size < size:
            self.log = np.empty(size)
        self.replaced = <double*> array_data(self.log)
        self.slots = <Py_ssize_t*> (self.replaced + n * self.columns)
        self.opened = 0

    cdef void open_row(self, const double* values, double* ranks) noexcept nogil:
        """`learn_row` with the next row of the block; what undoes it is noted."""
        cdef Py_ssize_t slot = self.next_slot(), d = self.columns
        self.slots[self.opened] = slot
        if slot >= 0:
            memcpy(self.replaced + self.opened * d, self.rows_data + slot * d, d * sizeof(double))
        self.opened += 1
        self.learn_row(values, ranks)

    cdef void commit(self, Py_ssize_t n) noexcept nogil:
        """The first n rows count, the others are rolled back, last one first. O(those x columns x size)."""
        cdef Py_ssize_t i, j, slot, kept, d = self.columns
        cdef double* row
        cdef double* before
        for i in range(self.opened - 1, n - 1, -1):
            self.t -= 1
            slot, kept = self.slots[i], <Py_ssize_t> min(self.t, self.size)
            if slot < 0:
                continue
            row, before = self.rows_data + slot * d, self.replaced + i * d
            for j in range(d):
                if slot < kept:
                    put_in_order(self.ordered_data + j * self.size, kept, True, row[j], before[j])
                else:
                    take_out(self.ordered_data + j * self.size, kept + 1, row[j])
            memcpy(row, before, d * sizeof(double))
        self.opened = 0

    # ---- Rows ---------------------------------------------------------------------------------

    cdef Py_ssize_t next_slot(self) noexcept nogil:
        """Where the next row goes; -1 for nowhere. O(1)."""
        if self.latest:
            return <Py_ssize_t> (self.t % self.size)
        return reservoir_slot(self.t, self.size, self.memory, self.seed)

    cdef void learn_row(self, const double* values, double* ranks) noexcept nogil:
        """Mid-ranks of a row unless `ranks` is NULL; then it may enter the samples. O(columns size)."""
        cdef Py_ssize_t j, n = <Py_ssize_t> min(self.t, self.size), slot = self.next_slot()
        cdef double* row
        if ranks != NULL:
            self.evaluate_row(values, ranks)
        if slot >= 0:
            row = self.rows_data + slot * self.columns
            for j in range(self.columns):
                put_in_order(self.ordered_data + j * self.size, n, slot < n, row[j], values[j])
                row[j] = values[j]
        self.t += 1

    cdef void evaluate_row(self, const double* values, double* ranks) noexcept nogil:
        """Mid-ranks of a row as of now. O(columns log size)."""
        cdef Py_ssize_t j, n = <Py_ssize_t> min(self.t, self.size)
        for j in range(self.columns):
            ranks[j] = mid_rank(self.ordered_data + j * self.size, n, values[j])

    def ranks(self, values, bint learns=False):
        """Mid-ranks in (0, 1) of rows, shape (n, columns): as of now, or of each before it is learned."""
        cdef const double[:, ::1] given = np.ascontiguousarray(values, dtype=float)
        cdef double[:, ::1] found = np.empty((given.shape[0], self.columns))
        cdef Py_ssize_t i
        with nogil:
            for i in range(given.shape[0]):
                self.evaluate_row(&given[i, 0], &found[i, 0])
                if learns:
                    self.learn_row(&given[i, 0], NULL)
        return np.asarray(found)

    cpdef double quantile(self, double level) noexcept nogil:
        """A value of the first column that a share `level` of the rows is below; -inf without rows. O(1)."""
        cdef Py_ssize_t n = min(self.t, self.size)
        return self.ordered_data[min(n - 1, <Py_ssize_t> (level * n))] if n else -INFINITY

    # ---- State --------------------------------------------------------------------------------

    FIELDS = Count("t"), Array("rows", float, ("kept", "columns"))

    def stored(self):
        """The rows that are kept."""
        return {"rows": self.rows[:self.n]}

    def fits(self, state):
        """All rows are kept up to the size."""
        if len(state["rows"]) != min(state["t"], self.size):
            raise ValueError("rows are not as many as have been seen, or as are kept")

    def resume(self, state):
        n = len(state["rows"])
        self.rows[:n], self.ordered[:, :n] = state["rows"], np.sort(state["rows"], axis=0).T
        self.t, self.opened = state["t"], 0

    def _check(self):
        assert np.array_equal(self.ordered[:, :self.n], np.sort(self.rows[:self.n], axis=0).T)


cdef double mid_rank(const double* ordered, Py_ssize_t n, double value) noexcept nogil:
    cdef Py_ssize_t smaller = below(ordered, n, value, False), others = smaller
    if smaller < n and ordered[smaller] == value:
        others += below(ordered + smaller, n - smaller, value, True)
    return (0.5 * (smaller + others) + 0.5) / (n + 1.0)


cdef void put_in_order(double* ordered, Py_ssize_t n, bint instead, double old, double value) noexcept nogil:
    """Put a value in its place among n, instead of an old one or beside all."""
    cdef Py_ssize_t gap = below(ordered, n, old, False) if instead else n, place = below(ordered, n, value, False)
    if place > gap:
        place -= 1                          # the old one leaves
        memmove(ordered + gap, ordered + gap + 1, (place - gap) * sizeof(double))
    else:
        memmove(ordered + place + 1, ordered + place, (gap - place) * sizeof(double))
    ordered[place] = value


cdef void take_out(double* ordered, Py_ssize_t n, double value) noexcept nogil:
    """Remove a value from n."""
    cdef Py_ssize_t place = below(ordered, n, value, False)
    memmove(ordered + place, ordered + place + 1, (n - place - 1) * sizeof(double))


# ---- What rows of an ensemble go through before some of its members see them -----------------------------------------

cdef enum:
    MOST = 4096         # rows of a block that nothing else limits
    KNOTS = 33          # quantiles of a feature, those of normal deviates from -FARTHEST to FARTHEST
    REFRESH = 64        # rows after which they are taken anew,
    RECENT_ROWS = 1500  # of the latest rows,
    EVERY = 2           # each second of which is kept

cdef double FARTHEST = 3.0
cdef double TAIL = 1.0          # slope of scores beyond, at first
cdef double CHANGE = 0.6        # of a feature that has two values: no more than that of an ordinary one
SAMPLE = 1000           # rows among which ranks are taken
LEAST = 0.05            # relevance, in units of the mean one: what does not matter today may matter tomorrow


cdef class Transform:
    """A transform of rows that learns as they come, and is as cheap for one row as its arithmetic.

    `open` transforms a block, each row with what was known at its time, to `out`, and updates what is known; it may
    fail, and then nothing has changed. The rows must stay where they are until `commit(n)` says that the first n of
    them count. `evaluate` transforms rows as of now and changes nothing, so several threads may call it at a time,
    though not while a block is open.

    A subclass has `evaluate`, and `transform_block` and `close_block` if it learns.
    """

    FIELDS = Count("t"),

    def __init__(self, Py_ssize_t n_features):
        self.n_features = n_features

    cdef int open(self, const double* rows, Py_ssize_t n) except -1:
        """O(n n_features), times the logarithm of the sample for ranks, and its size where rows enter it."""
        if self.opened_rows:
            raise RuntimeError("a block is open already")
        self.reserve(n)
        self.transform_block(rows, n)
        self.opened_rows = n
        self.t += n

    cdef Py_ssize_t rows_at_once(self) noexcept nogil:
        """How many rows the next block may have at most."""
        return MOST

    cdef int reserve(self, Py_ssize_t n) except -1:
        """Room for a block."""
        if self.capacity < n:
            fresh = np.empty((n, self.n_features))
            self.memory_of_out, self.out, self.capacity = fresh, <double*> array_data(fresh), n

    cdef int transform_block(self, const double* rows, Py_ssize_t n) except -1:
        """n rows to `out`; changes nothing if it fails."""
        return self.evaluate(rows, n, self.out)

    cdef void commit(self, Py_ssize_t n) noexcept nogil:
        """The first n rows of the open block count, the others are rolled back."""
        if self.opened_rows:
            self.close_block(n)
            self.t -= self.opened_rows - n
            self.opened_rows = 0

    cdef void close_block(self, Py_ssize_t n) noexcept nogil:
        """The same for what a subclass knows."""

    cdef int evaluate(self, const double* rows, Py_ssize_t n, double* out) except -1:
        """n rows transformed as of now."""
        raise NotImplementedError

    def _check(self):
        check_state(self)
        assert not self.opened_rows

    # ---- On arrays ----------------------------------------------------------------------------

    def opened(self, X):
        """`open` with the rows of an array; a copy of what they are transformed to."""
        cdef const double[:, ::1] rows = np.ascontiguousarray(X, dtype=float)
        cdef Py_ssize_t n = rows.shape[0]
        found = np.empty((n, self.n_features))
        if n and self.n_features:
            self.rows_held = rows.base
            self.open(&rows[0, 0], n)
            memcpy(array_data(found), self.out, n * self.n_features * sizeof(double))
        return found

    def committed(self, Py_ssize_t n):
        """`commit`: the first n rows of the block count."""
        self.commit(n)
        self.rows_held = None

    def advance(self, X):
        """Rows transformed, each with what was known at its time; all of them count."""
        parts, done = [np.empty((0, self.n_features))], 0
        while done < len(X):
            found = self.opened(X[done:done + self.rows_at_once()])
            self.committed(len(found))
            parts.append(found)
            done += len(found)
        return np.concatenate(parts)

    def transform(self, X):
        """Rows transformed as of now."""
        cdef const double[:, ::1] rows = np.ascontiguousarray(X, dtype=float)
        cdef double[:, ::1] found = np.empty((rows.shape[0], self.n_features))
        if rows.shape[0] and self.n_features:
            self.evaluate(&rows[0, 0], rows.shape[0], &found[0, 0])
        return np.asarray(found)


cdef class NormalScores(Transform):
    """Each feature by its rank in a sample of all rows so far, as a normal deviate: outliers and crowds do no harm."""

    cdef readonly Ranks ranks

    FIELDS = Count("t"), Part("ranks")

    def __init__(self, Py_ssize_t n_features):
        super().__init__(n_features)
        self.ranks = Ranks(n_features, SAMPLE)

    def fits(self, state):
        """All rows were ranked."""
        if state["ranks"]["t"] != state["t"]:
            raise ValueError("t is not the number of rows that were ranked")

    cdef int transform_block(self, const double* rows, Py_ssize_t n) except -1:
        cdef Py_ssize_t i, d = self.n_features
        self.ranks.reserve(n)
        for i in range(n):
            self.ranks.open_row(rows + i * d, self.out + i * d)
        for i in range(n * d):
            self.out[i] = normal_score(self.out[i])

    cdef void close_block(self, Py_ssize_t n) noexcept nogil:
        self.ranks.commit(n)

    cdef int evaluate(self, const double* rows, Py_ssize_t n, double* out) except -1:
        cdef Py_ssize_t i, d = self.n_features
        for i in range(n):
            self.ranks.evaluate_row(rows + i * d, out + i * d)
        for i in range(n * d):
            out[i] = normal_score(out[i])


@cython.final
cdef class QuantileScores(Transform):
    """Each feature by quantiles of the latest rows, as a normal deviate, and beyond them by its logarithm.

    So a skewed feature is as good as any, no single value moves the others, and where a feature becomes calmer or
    wilder it soon looks as before. A feature that has two values differs by `CHANGE` between them, however rare one is.
    Quantiles are taken at fixed places of the stream, every `REFRESH` rows, and rows that are held back are none of
    theirs.

    Parameters
    ----------
    n_features : int
    memory : int
        Of how many of the latest rows quantiles are at most; 0 for `RECENT_ROWS`.
    """

    cdef readonly Ranks sample              # of the latest rows
    cdef readonly object knots, units       # (n_features, KNOTS): quantiles; (n_features, 2): how others are scaled
    cdef double* knots_data
    cdef double* units_data
    cdef public Py_ssize_t first            # knot at either end: those beyond are as many rows too few for
    cdef const double* rows                 # of the block

    FIELDS = (Count("t"), Part("sample"), Buffer("knots"), Buffer("units"),
              Count("first", within(0, KNOTS // 2)))    # quantile: as many at both ends are least and largest

    def __init__(self, Py_ssize_t n_features, long long memory=0):
        super().__init__(n_features)
        self.sample = Ranks(n_features, (min(memory or RECENT_ROWS, RECENT_ROWS) + EVERY - 1) // EVERY, latest=True)
        self.knots, self.units = np.zeros((n_features, KNOTS)), np.zeros((n_features, 2))
        self.knots_data, self.units_data = <double*> array_data(self.knots), <double*> array_data(self.units)

    def fits(self, state):
        """Quantiles are in order, and no more rows were learned than seen."""
        if (np.diff(state["knots"]) < 0.0).any() or state["sample"]["t"] > state["t"]:
            raise ValueError("knots are not in order, or of more rows than were seen")

    cdef Py_ssize_t rows_at_once(self) noexcept nogil:
        """Rows to the next place where quantiles are taken: after 1, 2, 4, ..., 64, 128, 192, ..."""
        cdef Py_ssize_t place = 1
        if self.t >= REFRESH:
            return <Py_ssize_t> (REFRESH - self.t % REFRESH)
        while place <= self.t:
            place *= 2
        return place - <Py_ssize_t> self.t

    cdef int transform_block(self, const double* rows, Py_ssize_t n) except -1:
        self.rows = rows
        return self.evaluate(rows, n, self.out)

    cdef void close_block(self, Py_ssize_t n) noexcept nogil:
        cdef Py_ssize_t i, j, d = self.n_features
        cdef long long before = self.t - self.opened_rows, t = before + n
        cdef double* row = self.out
        for i in range(n):
            if ((before + i) % EVERY == 0 or before + i < self.sample.size) and (self.held == NULL or not self.held[i]):
                for j in range(d):              # so that no difference overflows
                    row[j] = fmin(fmax(self.rows[i * d + j], -LARGEST), LARGEST)
                self.sample.learn_row(row, NULL)
        if n and (t % REFRESH == 0 or t < REFRESH and t & (t - 1) == 0):
            self.refresh()

    cdef void refresh(self) noexcept nogil:
        """Take the quantiles of what is known. O(n_features), but for features whose quantiles are all the same."""
        cdef Py_ssize_t j, k, low, n = <Py_ssize_t> min(self.sample.t, self.sample.size)
        cdef double place
        cdef const double* ordered
        self.first = 0
        for k in range(KNOTS if n else 0):
            place = 0.5 * erfc(FARTHEST * (1.0 - 2.0 * k / (KNOTS - 1)) / sqrt(2.0)) * n - 0.5
            self.first += place < 0.0           # n rows have no such quantiles
            place = fmin(fmax(place, 0.0), n - 1)
            low = <Py_ssize_t> place
            for j in range(self.n_features):
                ordered = self.sample.ordered_data + j * self.sample.size + low
                self.knots_data[j * KNOTS + k] = ordered[0]
                if place > low:
                    self.knots_data[j * KNOTS + k] = fmin(ordered[0] + (place - low) * (ordered[1] - ordered[0]),
                                                          ordered[1])
        for j in range(self.n_features if n else 0):
            self.refresh_units(j)

    cdef void refresh_units(self, Py_ssize_t j) noexcept nogil:
        """How a feature is scaled beyond its quantiles: as it is within, on either side. Minus what lies between its
        only two values; 0 if it is constant."""
        cdef Py_ssize_t i, others = 0, n = <Py_ssize_t> min(self.sample.t, self.sample.size)
        cdef const double* ordered = self.sample.ordered_data + j * self.sample.size
        cdef const double* knot = self.knots_data + j * KNOTS
        cdef double* unit = self.units_data + 2 * j
        cdef double middle = knot[KNOTS // 2], apart = 0.0
        if below(ordered, n, ordered[0], True) >= below(ordered, n, ordered[n - 1], False):
            unit[0] = unit[1] = ordered[0] - ordered[n - 1]
            return
        unit[0] = (middle - knot[self.first]) / self.reach()
        unit[1] = (knot[KNOTS - 1 - self.first] - middle) / self.reach()
        if unit[0] <= 0.0 and unit[1] <= 0.0:   # nearly all values are the same: as far as the others are from it
            for i in range(n):
                apart += fabs(ordered[i] - middle) / n
                others += ordered[i] != middle
            unit[0] = apart * n / others
        unit[0] = unit[0] if unit[0] > 0.0 else unit[1]
        unit[1] = unit[1] if unit[1] > 0.0 else unit[0]

    cdef double reach(self) noexcept nogil:
        """The deviate of the farthest quantile."""
        return FARTHEST - 2.0 * FARTHEST / (KNOTS - 1) * self.first

    cdef double score(self, Py_ssize_t j, double x) noexcept nogil:
        """The normal deviate of a value of feature j. O(log KNOTS)."""
        cdef const double* knot = self.knots_data + j * KNOTS + self.first
        cdef const double* unit = self.units_data + 2 * j
        cdef Py_ssize_t low, high, n = KNOTS - 2 * self.first
        cdef double step = 2.0 * FARTHEST / (KNOTS - 1), reach = self.reach(), far
        x = fmin(fmax(x, -LARGEST), LARGEST)
        if unit[0] <= 0.0 or unit[1] <= 0.0:
            far = x - knot[n // 2]
            if unit[0] < 0.0:
                return CHANGE / asinh(1.0) * asinh(fmin(fmax(far / -unit[0], -LARGEST), LARGEST))
            return <double> (far > 0.0) - <double> (far < 0.0)
        if x < knot[0]:
            return -reach - TAIL * asinh(fmin((knot[0] - x) / unit[0], LARGEST))
        if x > knot[n - 1]:
            return reach + TAIL * asinh(fmin((x - knot[n - 1]) / unit[1], LARGEST))
        low, high = below(knot, n, x, False), below(knot, n, x, True)
        if high > low:                          # x is a quantile, or several
            return 0.5 * step * (low + high - 1) - reach
        return step * (low - 1 + (x - knot[low - 1]) / (knot[low] - knot[low - 1])) - reach

    cdef int evaluate(self, const double* rows, Py_ssize_t n, double* out) except -1:
        cdef Py_ssize_t i, j, d = self.n_features
        for i in range(n):
            for j in range(d):
                out[i * d + j] = self.score(j, rows[i * d + j]) if self.t else 0.0

    def medians(self):
        """Of the features."""
        return self.knots[:, KNOTS // 2].copy()


@cython.final
cdef class Relevance(Transform):
    """Running z-scores, each times how much its feature matters; a member that sees rows so has to follow when that
    changes."""

    cdef readonly Scaler scaler
    cdef readonly object weights            # of the features
    cdef double* weights_data

    FIELDS = Count("t"), Part("scaler"), Buffer("weights", positive)

    def __init__(self, Py_ssize_t n_features):
        super().__init__(n_features)
        self.scaler, self.weights = Scaler(n_features, 1.0), np.ones(n_features)
        self.weights_data = <double*> array_data(self.weights)

    def fits(self, state):
        """All rows were counted; the mean square of the weights is 1."""
        if state["scaler"]["count"] != state["t"]:
            raise ValueError("count is not the sum of the weights of t rows")
        if abs((state["weights"]**2).mean() - 1.0) > 1e-6:
            raise ValueError("weights have another mean square than 1")

    cdef int transform_block(self, const double* rows, Py_ssize_t n) except -1:
        cdef Py_ssize_t i, j
        self.scaler.open_rows(<const char*> rows, 0, n, <char*> self.out)
        if not self.scaler.is_finite():
            self.scaler.commit(0)
            raise too_large(np.asarray(<double[:n, :self.n_features]> <double*> rows))
        for i in range(n):
            for j in range(self.n_features):
                self.out[i * self.n_features + j] *= self.weights_data[j]

    cdef void close_block(self, Py_ssize_t n) noexcept nogil:
        self.scaler.commit(n)

    cdef int evaluate(self, const double* rows, Py_ssize_t n, double* out) except -1:
        cdef Py_ssize_t i, j, d = self.n_features
        cdef Scaler scaler = self.scaler
        cdef double unit
        for j in range(d):
            unit = scaler.divisor_of(j)
            for i in range(n):
                out[i * d + j] = 0.0
                if scaler.count > 0.0:
                    out[i * d + j] = (rows[i * d + j] - scaler.mean[j]) / unit * self.weights_data[j]

    def weights_for(self, relevance):
        """Weights by the relevance of features, their mean square 1."""
        weights = np.sqrt(np.maximum(relevance / np.mean(relevance), LEAST))
        return weights * np.sqrt(len(weights) / np.sum(weights**2))


@cython.final
cdef class SeriesDifferences(Transform):
    """Rows with the last values of a series, so many `targets` at a time, in the columns from the `first` on: all but
    the very last become differences from each to the next.

    >>> SeriesDifferences(4, 1, 1).transform([[7.0, 1.0, 3.0, 6.0]]).tolist()
    [[7.0, 2.0, 3.0, 6.0]]
    """

    cdef readonly Py_ssize_t first, targets

    def __init__(self, Py_ssize_t n_features, Py_ssize_t first, Py_ssize_t targets):
        super().__init__(n_features)
        self.first, self.targets = first, targets

    cdef int evaluate(self, const double* rows, Py_ssize_t n, double* out) except -1:
        cdef Py_ssize_t i, j, d = self.n_features
        memcpy(out, rows, n * d * sizeof(double))
        for i in range(n):
            for j in range(self.first, d - self.targets):
                out[i * d + j] = rows[i * d + j + self.targets] - rows[i * d + j]


cdef double FARTHEST_FEATURE = 10.0     # deviations at which a feature stops to move


@cython.final
cdef class Metric(Transform):
    """Features on one footing, times a linear map: a transform that stands still.

    A feature becomes slope (x - mean), at most half of `FARTHEST_FEATURE`, plus the polygon through (knots, scores),
    which is flat outside of it; `features` has these arrays. A row u of features becomes u B, where B is the `map`.
    """

    # B such that distances are |u B - v B|, for features u and v; None: features alone
    cdef readonly object map
    cdef Py_ssize_t levels              # knots of a feature at most
    cdef object memory_of_map           # owns these:
    cdef double* mean                   # (features,)
    cdef double* slope                  # of the part that is linear
    cdef double* last                   # knot of each feature
    cdef double* knots                  # (features, levels): ascending, infinite behind the last one,
    cdef double* scores                 # at the knots,
    cdef double* rises                  # and slopes from each knot on
    cdef double* transposed_map                 # the map, transposed

    def __init__(self, features, map=None):
        cdef Py_ssize_t d = len(features.mean)
        Transform.__init__(self, d)
        self.levels, self.map = features.knots.shape[1], map
        transposed_map = np.zeros((0, 0)) if map is None else np.asarray(map, dtype=float).T
        parts = features.mean, features.slope, features.last, features.knots, features.scores, features.rises
        memory = np.concatenate([np.ravel(part) for part in (*parts, transposed_map)])
        self.memory_of_map, self.mean = memory, <double*> array_data(memory)
        self.slope = self.mean + d
        self.last = self.slope + d
        self.knots = self.last + d
        self.scores = self.knots + d * self.levels
        self.rises = self.scores + d * self.levels
        self.transposed_map = self.rises + d * self.levels

    cdef void score_row(self, const double* x, double* out) noexcept nogil:
        """The features of a row. O(d levels)."""
        cdef Py_ssize_t j, k, below
        cdef double inside
        cdef const double* knots
        for j in range(self.n_features):
            knots = self.knots + j * self.levels
            inside = fmin(fmax(x[j], knots[0]), self.last[j])
            below = 0
            for k in range(1, self.levels):
                below += knots[k] <= inside
            out[j] = (fmin(fmax((x[j] - self.mean[j]) * self.slope[j], -0.5 * FARTHEST_FEATURE), 0.5 * FARTHEST_FEATURE)
                      + (self.scores[j * self.levels + below] + self.rises[j * self.levels + below]
                         * (inside - knots[below])))

    cdef int evaluate(self, const double* rows, Py_ssize_t n, double* out) except -1:
        """O(n d (levels + d))."""
        cdef Py_ssize_t i, d = self.n_features
        cdef double* compared
        if self.map is None:
            for i in range(n):
                self.score_row(rows + i * d, out + i * d)
            return 0
        compared = <double*> malloc(max(1, d) * sizeof(double))      # several threads may ask
        if compared == NULL:
            raise MemoryError()
        for i in range(n):
            self.score_row(rows + i * d, compared)
            ok_times_rows(self.transposed_map, d, d, d, compared, out + i * d)
        free(compared)


# ---- Rows that are too large -----------------------------------------------------------------------------------------


def too_large(rows):
    """The error for rows, dense or sparse, with which the variance of a feature overflows: the largest is to blame."""
    if isinstance(rows, Rows):
        row = int(np.searchsorted(rows.indptr, np.abs(rows.data).argmax(), side="right")) - 1
    else:
        row = int(np.abs(rows).max(axis=1).argmax())
    what = "is too large to scale: the variance of a feature overflows. Expected values below 1e150."
    return row_error(ValueError, row, what)
