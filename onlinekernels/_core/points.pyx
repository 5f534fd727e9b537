"""Kinds of points: rows of an array, sparse rows, Python objects.

Kernels of sparse rows are functions of inner products and need nothing else of an example.  One example is spread over
a dense vector, and each point gathers from it.  The non-zeros of all points are in one arena.
"""
cimport cython
import numpy as np
from libc.string cimport memcmp, memcpy
from onlinekernels._core.arrays cimport array_data
from onlinekernels._core.dictionary cimport Aged, Dictionary, RowTable, Table
from onlinekernels._core.formulas.vecmath cimport (ok_all_finite, ok_inner_row, ok_inner_row_f, ok_l1_block,
                                                   ok_l1_block_f, ok_subtract, ok_subtract_f)
from onlinekernels._core.functions cimport (CENTERED, DENSE_ROW, INNER, L1, ORIGIN_PRODUCTS, OWN, OWN_INNER, OWN_L1,
                                            SQUARES, apart)
from onlinekernels._core.kernels cimport Program
from onlinekernels._core.linalg import matmul
from onlinekernels._core.linalg cimport ok_gram, ok_gram_pays, ok_inner_block
from onlinekernels._core.schema import Array, Items, not_negative

# ---- Rows of an array, and Python objects --------------------------------------------------------

cdef enum:
    FEW_NUMBERS = 1 << 17       # of points: to rearrange these for a BLAS takes a good part of the time of the product,
    WIDE = 128                  # unless rows are short: then its product is the faster one


@cython.final
cdef class DensePoints(Dictionary):
    """Rows of an array, kept about an origin."""

    FIELDS = (*Dictionary.FIELDS, Array("points", "dtype", ("n", "n_features")),
              Array("origin", "dtype", ("n_features",), optional=True))

    cdef RowTable rows                      # the points
    cdef char* point_data                   # the same
    cdef bint single                        # points are float32
    cdef readonly object origin             # that points are kept about, in their precision; or None
    cdef const char* origin_data            # of `origin`, or NULL

    def __init__(self, Py_ssize_t n_features, dtype, origin=None, Program program=None):
        Dictionary.__init__(self, n_features, dtype, program)
        self.single = self.dtype == np.float32
        self.rows = self.add_table(RowTable(n_features, self.dtype))
        if origin is not None:
            self.origin = np.empty(n_features, dtype=self.dtype)
            self.origin[:] = origin
            self.origin_data = array_data(self.origin)

    @property
    def points(self):
        """All that there is room for, (capacity, n_features)."""
        return self.rows.array

    cdef void move_points(self) noexcept:
        self.point_data = self.rows.data

    # ---- Pieces -------------------------------------------------------------------------------

    cdef int open_points(self, Piece piece, Py_ssize_t first, Py_ssize_t m, bint learning, bint transposed) except -1:
        """A single row does without numpy."""
        cdef Py_ssize_t i, size = self.point_bytes
        cdef const char* x = piece.source_data + first * size
        if learning:
            self.reserve(m)
        piece.begin(m)
        piece.x = x
        piece.first = self.start
        piece.stride = apart(min(self.size() + m, self.capacity - self.start) if learning else self.size())
        piece.square = <double*> piece.buffer(SQUARES, m * sizeof(double))
        piece.origin_product = <double*> piece.buffer(ORIGIN_PRODUCTS, m * sizeof(double))
        if self.origin_data != NULL:
            piece.x = piece.buffer(CENTERED, m * size)
        if self.needs_inner and m == 1:
            piece.inner = piece.buffer(INNER, piece.stride * sizeof(double))
        with nogil:
            for i in range(m):
                if self.origin_data != NULL and self.single:
                    ok_subtract_f(<const float*> (x + i * size), <const float*> self.origin_data,
                                  <float*> (piece.x + i * size), self.n_features)
                elif self.origin_data != NULL:
                    ok_subtract(<const double*> (x + i * size), <const double*> self.origin_data,
                                <double*> (piece.x + i * size), self.n_features)
                piece.square[i] = piece.origin_product[i] = 0.0
                if self.needs_inner:
                    piece.square[i] = self.program.precise_dot(piece.x + i * size, piece.x + i * size)
                if self.origin_data != NULL:
                    piece.origin_product[i] = self.program.precise_dot(piece.x + i * size, self.origin_data)
            if self.needs_inner and m == 1:
                self.inner_row(piece.x, <double*> piece.inner)
        if transposed and self.needs_inner and not self.needs_l1 and 0 < self.size() < m:
            self.transposed_products(piece)
        elif self.needs_inner and m > 1:
            self.inner_products(piece, learning)
        if self.needs_l1:
            self.l1_distances(piece, learning)

    cdef void inner_row(self, const char* x, double* out) noexcept nogil:
        """Inner products of one example or point with all points."""
        cdef const char* points = self.point(self.start)
        if self.single:
            ok_inner_row_f(<const float*> points, self.size(), self.n_features, <const float*> x, out)
        else:
            ok_inner_row(<const double*> points, self.size(), self.n_features, <const double*> x, out)

    cdef int inner_products(self, Piece piece, bint learning) except -1:
        """Inner products of a piece with the points and with itself: two matrix products."""
        cdef Py_ssize_t m = piece.rows, item = self.dtype.itemsize, n = self.size()
        cdef bint by_tiles = not self.single and ok_gram_pays(self.n_features)
        cdef bint all_by_tiles = by_tiles and self.n_features >= WIDE and n * self.n_features <= FEW_NUMBERS
        piece.narrow = self.single
        piece.inner = piece.buffer(INNER, m * piece.stride * item)
        if learning:
            piece.own_inner = piece.buffer(OWN_INNER, m * m * item)
        if by_tiles:
            with nogil:
                if all_by_tiles:
                    ok_inner_block(<const double*> piece.x, m, <const double*> self.point(self.start), n,
                                   self.n_features, <double*> piece.inner, piece.stride)
                if learning:
                    ok_gram(<const double*> piece.x, m, self.n_features, <double*> piece.own_inner)
        if all_by_tiles or by_tiles and n == 0:
            return 0
        examples = piece.array(<char*> piece.x, m, self.n_features, self.dtype)
        if n:
            matmul(examples, self.rows.array[self.start:self.stop].T,
                   piece.array(piece.inner, m, piece.stride, self.dtype)[:, :n])
        if learning and not by_tiles:
            matmul(examples, examples.T, piece.array(piece.own_inner, m, m, self.dtype))

    cdef int transposed_products(self, Piece piece) except -1:
        """With fewer points than examples the matrix product is faster this way round."""
        cdef Py_ssize_t m = piece.rows, n = self.size(), stride = apart(m)
        piece.transposed = True
        piece.stride = stride
        piece.inner = piece.buffer(INNER, n * stride * self.dtype.itemsize)
        piece.narrow = self.single
        matmul(self.rows.array[self.start:self.stop], piece.array(<char*> piece.x, m, self.n_features, self.dtype).T,
               piece.array(piece.inner, n, stride, self.dtype)[:, :m])

    cdef int l1_distances(self, Piece piece, bint learning) except -1:
        """City-block distances of a piece to the points and within itself."""
        cdef Py_ssize_t m = piece.rows
        piece.l1 = <double*> piece.buffer(L1, m * piece.stride * sizeof(double))
        if learning:
            piece.own_l1 = <double*> piece.buffer(OWN_L1, m * m * sizeof(double))
        with nogil:
            self.l1_block(piece.x, m, self.point_data + self.start * self.point_bytes, self.size(), piece.l1,
                          piece.stride)
            if learning:
                self.l1_block(piece.x, m, piece.x, m, piece.own_l1, m)

    cdef void l1_block(self, const char* x, Py_ssize_t m, const char* points, Py_ssize_t n, double* out,
                       Py_ssize_t stride) noexcept nogil:
        if self.single:
            ok_l1_block_f(<const float*> x, m, <const float*> points, n, self.n_features, out, stride)
        else:
            ok_l1_block(<const double*> x, m, <const double*> points, n, self.n_features, out, stride)

    # ---- Slots --------------------------------------------------------------------------------

    cdef void put(self, Piece piece, Py_ssize_t i, Py_ssize_t slot) noexcept nogil:
        memcpy(self.point_data + slot * self.point_bytes, piece.x + i * self.point_bytes, self.point_bytes)

    cdef void mix(self, Piece piece, Py_ssize_t i, Py_ssize_t other, Py_ssize_t slot, double share) noexcept nogil:
        cdef const char* there = piece.x + i * self.point_bytes if other < 0 else self.point(other)
        cdef char* here = self.point_data + slot * self.point_bytes
        cdef Py_ssize_t j
        if self.single:
            for j in range(self.n_features):
                (<float*> here)[j] = <float> (share * (<float*> there)[j] + (1.0 - share) * (<float*> here)[j])
        else:
            for j in range(self.n_features):
                (<double*> here)[j] = share * (<double*> there)[j] + (1.0 - share) * (<double*> here)[j]

    cdef const char* point(self, Py_ssize_t slot) noexcept nogil:
        return self.point_data + slot * self.point_bytes

    cdef bint is_at(self, Piece piece, Py_ssize_t i, Py_ssize_t slot) noexcept nogil:
        return memcmp(self.point(slot), piece.x + i * self.point_bytes, self.point_bytes) == 0

    cdef void slot_row(self, Piece piece, Py_ssize_t slot) noexcept nogil:
        cdef Py_ssize_t n = self.size()
        if self.needs_inner:
            self.inner_row(self.point(slot), piece.slot_inner)
        if self.needs_l1:
            self.l1_block(self.point(slot), 1, self.point(self.start), n, piece.slot_l1, n)

    # ---- For Python ---------------------------------------------------------------------------

    def chosen(self, points, kept):
        """Some of the rows of another model, with room for them."""
        self.reserve(len(kept))
        return np.ascontiguousarray(points[kept], dtype=self.dtype)

    def points_at(self, slots):
        """Points of slots, as they came."""
        return self.points[slots] if self.origin is None else self.points[slots] + self.origin

    def points_state(self, slots):
        """Points of slots, by name; the origin that they are about is in the state for a successor."""
        return {"points": self.points[slots]}

    def restore_points(self, state):
        self.points[:] = state["points"]


@cython.final
cdef class Objects(Dictionary):
    """Python objects; their kernel values come from Python, one row at a time."""

    FIELDS = *Dictionary.FIELDS, Items("objects", "n")

    cdef readonly object kernel             # of Python objects
    cdef readonly list objects              # an entry for each slot
    cdef list coming                        # the same after the next move

    def __init__(self, kernel):
        Dictionary.__init__(self, 0, np.float64)
        self.kernel, self.objects, self.takes_objects = kernel, [], True

    cdef int prepare_points(self, const Aged* order, Py_ssize_t capacity) except -1:
        cdef Py_ssize_t i
        self.coming = [None] * capacity
        for i in range(self.held):
            self.coming[i] = self.objects[order[i].slot]

    cdef void move_points(self) noexcept:
        self.objects, self.coming = self.coming, None

    cdef int attach(self, Piece piece, examples) except -1:
        piece.source = examples

    cdef Py_ssize_t piece_rows(self):
        return 1

    cdef Py_ssize_t rows_to_evaluate(self):
        return 1

    cdef int open(self, Piece piece, Py_ssize_t first, Py_ssize_t m, bint learning, bint transposed) except -1:
        piece.example = x = piece.source[first]
        if learning:
            self.reserve(1)
        piece.own = <double*> piece.buffer(OWN, sizeof(double))
        piece.values_array = self.row(x)
        piece.own[0] = self.self_value(x) if learning or self.evaluates_own else 1.0
        piece.begin(1)
        piece.first = self.start
        piece.values = <const double*> array_data(piece.values_array)

    cdef row(self, x):
        """Kernel values of an object with the points, checked to be as many numbers."""
        points = self.in_use()
        if not points:
            return np.zeros(0)
        row = np.ascontiguousarray(self.kernel.row(x, points), dtype=np.float64)
        if row.shape != (len(points),):
            raise ValueError(f"The kernel gave an array of shape {row.shape} for one example and "
                             f"{len(points)} terms; expected shape {(len(points),)}.")
        if np.isnan(row).any():
            raise FloatingPointError(f"The kernel {self.kernel!r} gave NaN for two examples; expected a number.")
        return row

    cdef double self_value(self, x) except? -1.0:
        """k(x, x)."""
        cdef double value = self.kernel.self_value(x)
        if value != value:
            raise FloatingPointError(f"The kernel {self.kernel!r} gave NaN for an example and itself.")
        return value

    cdef const double* values(self, Piece piece, Py_ssize_t i) noexcept nogil:
        return piece.values

    cdef void keep_cached(self, Piece piece, Py_ssize_t i, Py_ssize_t slot) noexcept nogil:
        pass

    cdef bint point_is_finite(self, Piece piece, Py_ssize_t i) noexcept nogil:
        return True

    cdef int close(self, Piece piece) except -1:
        self.keep(piece, piece.example)
        piece.example = None

    cdef open_start(self, Piece piece, points, kept):
        self.reserve(len(kept))
        piece.begin(0)
        piece.own = <double*> piece.buffer(OWN, max(1, len(kept)) * sizeof(double))
        piece.source = [points[i] for i in kept]
        return piece.source

    cdef int resolve_start(self, Piece piece, points, Py_ssize_t i) except -1:
        self.keep(piece, points[i])

    cdef void candidates_values(self, Piece piece, Py_ssize_t slot, double own, double* out) noexcept nogil:
        cdef Py_ssize_t other, first = piece.first
        for other in range(self.start, self.stop):
            if other != slot:
                out[other - self.start] = piece.values[other - first]
        out[slot - self.start] = own

    def values_between(self):
        points = self.in_use()
        values = np.empty((len(points), len(points)))
        for i, x in enumerate(points):
            values[i] = self.row(x)
            values[i, i] = self.self_value(x)
        return values

    cdef keep(self, Piece piece, x):
        """The example that a piece was about, if it was admitted; what nobody holds any more is let go."""
        cdef Py_ssize_t slot, i
        if piece.slot >= 0 and self.taken.data[piece.slot]:
            self.objects[piece.slot] = x
        for slot in range(piece.first, self.start):
            self.objects[slot] = None
        for i in range(self.n_holes):
            self.objects[(<Py_ssize_t*> self.hole_table.data)[i]] = None

    def in_use(self):
        """Objects of all slots in use."""
        return self.objects[self.start:self.stop]

    def points_at(self, slots):
        return [self.objects[slot] for slot in slots]

    def points_state(self, slots):
        return {"objects": self.points_at(slots)}

    def restore_points(self, state):
        self.objects[:] = list(state["objects"])


# ---- Sparse rows ---------------------------------------------------------------------------------

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
        return Rows(self.indptr[first:last + 1] - begin, self.indices[begin:end], self.data[begin:end], self.n_features)

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


@cython.final
cdef class SparsePoints(Dictionary):
    """Sparse rows; kernels on them need inner products only."""

    FIELDS = (*Dictionary.FIELDS, Array("sparse_sizes", np.int64, ("n",), not_negative),
              Array("sparse_indices", np.int32, ("non_zeros",)), Array("sparse_values", np.float64, ("non_zeros",)))

    cdef readonly Table spans           # (2, capacity) int64: begin and end of the non-zeros of each point in the arena
    cdef object index_array, value_array        # the arena: non-zeros of all points, and of dropped ones
    cdef int* index                     # columns of these non-zeros,
    cdef double* value                  # and their values
    cdef Py_ssize_t used                # of the arena

    def __init__(self, Py_ssize_t n_features, Program program):
        Dictionary.__init__(self, n_features, np.float64, program)
        self.spans = self.new_table(2, np.int64)
        self.set_arena(self.spans.array, np.zeros(0, dtype=np.int32), np.zeros(0), 0)

    cdef int set_arena(self, spans, indices, values, Py_ssize_t used) except -1:
        """Go on with other arrays, in which the non-zeros of points are in other places."""
        cdef int* index = <int*> array_data(indices)
        cdef double* value = <double*> array_data(values)
        self.spans.set_array(spans)
        self.index_array, self.value_array, self.used = indices, values, used
        self.index, self.value = index, value

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

    cdef int open_points(self, Piece piece, Py_ssize_t first, Py_ssize_t m, bint learning, bint transposed) except -1:
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
        piece.origin_product = <double*> piece.buffer(ORIGIN_PRODUCTS, m * sizeof(double))
        for i in range(m):
            piece.square[i] = piece.origin_product[i] = 0.0
            for k in range(piece.start[i], piece.start[i + 1]):
                piece.square[i] += piece.value[k] * piece.value[k]
        piece.dense_row = <double*> piece.buffer(DENSE_ROW, self.n_features * sizeof(double))
        piece.inner = piece.buffer(INNER, m * piece.stride * sizeof(double))
        if learning and m > 1:
            piece.own_inner = piece.buffer(OWN_INNER, m * m * sizeof(double))
        with nogil:
            self.inner_of_piece(piece)

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

    cdef void point_moved(self, Py_ssize_t slot) noexcept nogil:
        cdef double square = 0.0
        cdef Py_ssize_t k
        for k in range(self.begin(slot), self.end(slot)):
            square += self.value[k] * self.value[k]
        self.program.cache_from(NULL, square, 0.0, <double*> self.cached.data + slot, self.cached.capacity)

    cdef void slot_row(self, Piece piece, Py_ssize_t slot) noexcept nogil:
        cdef Py_ssize_t size = self.end(slot) - self.begin(slot)
        spread_out(self.index + self.begin(slot), self.value + self.begin(slot), size, piece.dense_row)
        self.inner_with_slots(piece.dense_row, piece.slot_inner)
        wipe(self.index + self.begin(slot), size, piece.dense_row)

    cdef int reserve_arena(self, Py_ssize_t candidates) except -1:
        """Room for so many non-zeros; what dropped points have left goes when it is more than half."""
        cdef Py_ssize_t live
        if self.used + candidates <= len(self.index_array):
            return 0
        slots = self.slots()
        begins, ends = self.spans.array[:, slots]
        kept, live = positions(begins, ends), int((ends - begins).sum())
        size = max(2 * live, live + candidates, 256)
        indices, values = np.empty(size, dtype=np.int32), np.empty(size)
        indices[:live] = self.index_array[kept]
        values[:live] = self.value_array[kept]
        spans = np.zeros_like(self.spans.array)
        spans[1, slots] = np.cumsum(ends - begins)
        spans[0, slots] = spans[1, slots] - (ends - begins)
        self.set_arena(spans, indices, values, live)

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

    def points_state(self, slots):
        rows = self.points_at(slots)
        return {"sparse_sizes": np.diff(rows.indptr), "sparse_indices": rows.indices, "sparse_values": rows.data}

    def fits(self, state):
        Dictionary.fits(self, state)
        sizes, indices = state["sparse_sizes"], state["sparse_indices"]
        if (sizes > len(indices)).any() or sizes.sum() != len(indices):
            raise ValueError("the non-zeros do not fit the terms")
        Rows(np.concatenate([[0], np.cumsum(sizes)]), indices, state["sparse_values"], self.n_features)

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
