"""Sparse examples: rows of indices and values, and dictionaries of them.

Kernels that are functions of inner products need nothing else of an example.  One example is spread over a dense
vector, and each point gathers from it.  The non-zeros of all points are in one arena.
"""
import numpy as np
from libc.string cimport memcmp
from onlinekernels._core.arrays cimport array_data
from onlinekernels._core.arrays import check_array
from onlinekernels._core.points.dictionary cimport Dictionary
from onlinekernels._core.formulas.vecmath cimport ok_all_finite
from onlinekernels._core.run.piece cimport DENSE_ROW, INNER, OWN_INNER, SQUARES, TILTS, Piece, apart


cdef class Rows:
    """Rows of a CSR matrix: indices ascend within a row, values are finite."""

    def __init__(self, indptr, indices, data, Py_ssize_t n_features):
        # Copies, checked below and out of reach of everybody else's hands: loops rely on them.
        self.indptr = np.array(indptr, dtype=np.int64, order="C")
        self.indices = np.array(indices, dtype=np.int32, order="C")
        self.data = np.array(data, dtype=np.float64, order="C")
        self.n_features = n_features
        self.start = <const long long*> array_data(self.indptr)
        self.index = <const int*> array_data(self.indices)
        self.value = <const double*> array_data(self.data)
        is_flat = self.indptr.ndim == self.indices.ndim == self.data.ndim == 1 and len(self.indices) == len(self.data)
        if not (is_flat and len(self.indptr) > 0 and self.are_sound(len(self.indptr) - 1, len(self.data))):
            raise ValueError("the rows are not sparse rows with ascending indices and finite values")

    cdef bint are_sound(self, Py_ssize_t rows, Py_ssize_t n) noexcept nogil:
        """Whether rows divide n values among them, indices ascend within each, and values are finite."""
        cdef const int* index = self.index
        cdef Py_ssize_t i, k, first, last
        cdef bint falls = False
        if self.start[0] != 0 or self.start[rows] != n:
            return False
        for i in range(rows):
            first, last = self.start[i], self.start[i + 1]
            if last < first or last > n:
                return False
            if first < last and (index[first] < 0 or index[last - 1] >= self.n_features):
                return False
            for k in range(first + 1, last):
                falls |= index[k] <= index[k - 1]
        return not falls and ok_all_finite(self.value, n)

    @property
    def shape(self):
        return len(self.indptr) - 1, self.n_features

    @property
    def dtype(self):
        return self.data.dtype

    def __len__(self):
        return len(self.indptr) - 1

    def __getitem__(self, rows):
        first, last, _ = rows.indices(len(self))
        last = max(first, last)
        begin, end = self.indptr[first], self.indptr[last]
        return Rows(self.indptr[first:last + 1] - begin, self.indices[begin:end], self.data[begin:end],
                    self.n_features)

    def take(self, places):
        """The rows at these places, in this order."""
        sizes = np.diff(self.indptr)[places]
        ends = np.cumsum(sizes)
        # Value after value: so far into its row, which begins there.
        at = np.arange(sizes.sum()) + np.repeat(self.indptr[places] - ends + sizes, sizes)
        return Rows(np.append(0, ends), self.indices[at], self.data[at], self.n_features)


cdef int attach_rows(Piece piece, Rows rows, Py_ssize_t first) except -1:
    """Let a piece read these rows, from `first` on."""
    piece.start = rows.start + first
    piece.index, piece.value = rows.index, rows.value
    return 0


cdef inline void spread_out(const int* index, const double* value, Py_ssize_t n, double* dense) noexcept nogil:
    cdef Py_ssize_t k
    for k in range(n):
        dense[index[k]] = value[k]


cdef inline void wipe(const int* index, Py_ssize_t n, double* dense) noexcept nogil:
    cdef Py_ssize_t k
    for k in range(n):
        dense[index[k]] = 0.0


cdef inline double inner_with(const int* index, const double* value, Py_ssize_t n, const double* dense) noexcept nogil:
    """Inner product with an example that is spread out."""
    cdef Py_ssize_t k
    cdef double even = 0.0, odd = 0.0
    for k in range(0, n - 1, 2):
        even += value[k] * dense[index[k]]
        odd += value[k + 1] * dense[index[k + 1]]
    if n % 2:
        even += value[n - 1] * dense[index[n - 1]]
    return even + odd


cdef class SparsePoints(Dictionary):
    """Sparse rows; kernels on them need inner products only.

    Parameters
    ----------
    n_features : int
    """

    def __init__(self, Py_ssize_t n_features):
        Dictionary.__init__(self, n_features, np.float64)
        self.spans = self.new_table(2, np.int64)
        self.set_arena(self.spans.array, np.zeros(0, dtype=np.int32), np.zeros(0), 0)

    cdef int set_arena(self, spans, indices, values, Py_ssize_t used) except -1:
        """Go on with other arrays, in which the non-zeros of points are in other places."""
        cdef int* index = <int*> array_data(indices)
        cdef double* value = <double*> array_data(values)
        self.spans.set_array(spans)
        self.index_array, self.value_array, self.used = indices, values, used
        self.index, self.value = index, value
        return 0

    cdef long long begin(self, Py_ssize_t slot) noexcept nogil:
        return (<long long*> self.spans.data)[slot]

    cdef long long end(self, Py_ssize_t slot) noexcept nogil:
        return (<long long*> self.spans.data)[self.spans.capacity + slot]

    cdef bint is_at(self, Piece piece, Py_ssize_t i, Py_ssize_t slot) noexcept nogil:
        cdef long long size = self.end(slot) - self.begin(slot)
        return (size == piece.start[i + 1] - piece.start[i]
                and memcmp(self.index + self.begin(slot), piece.index + piece.start[i], size * sizeof(int)) == 0
                and memcmp(self.value + self.begin(slot), piece.value + piece.start[i], size * sizeof(double)) == 0)

    # ---- Pieces -------------------------------------------------------------------------------

    cdef int open(self, Piece piece, Py_ssize_t first, Py_ssize_t m, bint learning, bint turned) except -1:
        cdef Rows rows = piece.source
        cdef Py_ssize_t i, k
        if learning:
            self.reserve(m)
            self.reserve_arena(rows.start[first + m] - rows.start[first])
        piece.begin(m)
        attach_rows(piece, rows, first)
        piece.first = self.start
        piece.stride = apart(min(self.size() + m, self.capacity - self.start) if learning else self.size())
        piece.square = <double*> piece.buffer(SQUARES, m * sizeof(double))
        piece.tilt = <double*> piece.buffer(TILTS, m * sizeof(double))
        for i in range(m):
            piece.square[i] = piece.tilt[i] = 0.0
            for k in range(piece.start[i], piece.start[i + 1]):
                piece.square[i] += piece.value[k] * piece.value[k]
        piece.dense_row = <double*> piece.buffer(DENSE_ROW, self.n_features * sizeof(double))
        piece.inner = piece.buffer(INNER, m * piece.stride * sizeof(double))
        if learning and m > 1:
            piece.own_inner = piece.buffer(OWN_INNER, m * m * sizeof(double))
        with nogil:
            self.inner_of_piece(piece)
        return 0

    cdef void inner_of_piece(self, Piece piece) noexcept nogil:
        """Inner products of the rows with the points and, if they are to be learned, with each other."""
        cdef Py_ssize_t i, j, size, m = piece.rows
        cdef double* own = <double*> piece.own_inner
        cdef const long long* start = piece.start
        for i in range(m):
            size = start[i + 1] - start[i]
            spread_out(piece.index + start[i], piece.value + start[i], size, piece.dense_row)
            self.inner_with_slots(piece.dense_row, <double*> piece.inner + i * piece.stride)
            if own != NULL:
                for j in range(i, m):
                    own[i * m + j] = own[j * m + i] = inner_with(piece.index + start[j], piece.value + start[j],
                                                                 start[j + 1] - start[j], piece.dense_row)
            wipe(piece.index + start[i], size, piece.dense_row)

    cdef void inner_with_slots(self, const double* dense, double* out) noexcept nogil:
        """Inner products of an example that is spread out with the slots in use."""
        cdef Py_ssize_t slot
        for slot in range(self.start, self.stop):
            out[slot - self.start] = inner_with(self.index + self.begin(slot), self.value + self.begin(slot),
                                                self.end(slot) - self.begin(slot), dense)

    # ---- Slots --------------------------------------------------------------------------------

    cdef void put(self, Piece piece, Py_ssize_t i, Py_ssize_t slot) noexcept nogil:
        """Copy the non-zeros of example i to the end of the arena, where room has been reserved."""
        cdef Py_ssize_t k
        (<long long*> self.spans.data)[slot] = self.used
        for k in range(piece.start[i], piece.start[i + 1]):
            self.index[self.used] = piece.index[k]
            self.value[self.used] = piece.value[k]
            self.used += 1
        (<long long*> self.spans.data)[self.spans.capacity + slot] = self.used

    cdef double square_of(self, Py_ssize_t slot) noexcept nogil:
        cdef double square = 0.0
        cdef Py_ssize_t k
        for k in range(self.begin(slot), self.end(slot)):
            square += self.value[k] * self.value[k]
        return square

    cdef void slot_row(self, Piece piece, Py_ssize_t slot) noexcept nogil:
        cdef Py_ssize_t size = self.end(slot) - self.begin(slot)
        spread_out(self.index + self.begin(slot), self.value + self.begin(slot), size, piece.dense_row)
        self.inner_with_slots(piece.dense_row, piece.slot_inner)
        wipe(self.index + self.begin(slot), size, piece.dense_row)

    cdef int reserve_arena(self, Py_ssize_t newcomers) except -1:
        """Room for so many non-zeros; what dropped points have left goes when it is more than half."""
        cdef Py_ssize_t live
        if self.used + newcomers <= len(self.index_array):
            return 0
        slots = self.slots()
        begins, ends = self.spans.array[:, slots]
        kept, live = positions(begins, ends), int((ends - begins).sum())
        size = max(2 * live, live + newcomers, 256)
        indices, values = np.empty(size, dtype=np.int32), np.empty(size)
        indices[:live] = self.index_array[kept]
        values[:live] = self.value_array[kept]
        spans = np.zeros_like(self.spans.array)
        spans[1, slots] = np.cumsum(ends - begins)
        spans[0, slots] = spans[1, slots] - (ends - begins)
        self.set_arena(spans, indices, values, live)
        return 0

    # ---- For Python ---------------------------------------------------------------------------

    def chosen(self, points, kept):
        """Some of the rows of another model, with room for them."""
        rows = gathered(points.indptr[kept], points.indptr[kept + 1], points.indices, points.data, self.n_features)
        self.reserve(len(rows))
        self.reserve_arena(len(rows.data))
        return rows

    def points_at(self, slots):
        """Points of slots, as rows."""
        return gathered(*self.spans.array[:, slots], self.index_array, self.value_array, self.n_features)

    def state(self, slots):
        """Named arrays about these slots."""
        rows = self.points_at(slots)
        return {"sparse_sizes": np.diff(rows.indptr), "sparse_indices": rows.indices, "sparse_values": rows.data}

    def check_state(self, state, Py_ssize_t n):
        """ValueError unless the points of a state are n of this kind."""
        sizes = check_array(state["sparse_sizes"], "sparse_sizes", np.int64, (n,))
        indices = check_array(state["sparse_indices"], "sparse_indices", np.int32, (-1,))
        values = check_array(state["sparse_values"], "sparse_values", np.float64, (len(indices),))
        if (sizes < 0).any() or (sizes > len(indices)).any() or sizes.sum() != len(indices):
            raise ValueError("the non-zeros do not fit the terms")
        Rows(np.concatenate([[0], np.cumsum(sizes)]), indices, values, self.n_features)

    def restore_points(self, state):
        ends = np.cumsum(state["sparse_sizes"])
        self.set_arena(np.stack([ends - state["sparse_sizes"], ends]), state["sparse_indices"].copy(),
                       state["sparse_values"].copy(), len(ends) and int(ends[len(ends) - 1]))

    def _check(self):
        Dictionary._check(self)
        begins, ends = self.spans.array[:, self.slots()]
        assert (begins >= 0).all() and (begins <= ends).all() and (ends <= self.used).all()
        assert self.used <= len(self.index_array) == len(self.value_array)
        self.points_at(self.slots())


def positions(begins, ends):
    """Places in the arena of the non-zeros of points, one after another."""
    sizes = ends - begins
    return np.repeat(begins - (np.cumsum(sizes) - sizes), sizes) + np.arange(int(sizes.sum()))


def gathered(begins, ends, indices, values, n_features):
    """Rows of the non-zeros at these places."""
    kept = positions(begins, ends)
    return Rows(np.concatenate([[0], np.cumsum(ends - begins)]), indices[kept], values[kept], n_features)
