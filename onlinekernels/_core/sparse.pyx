"""Sparse examples: rows of indices and values, and the function f on them.

Kernels that are functions of inner products need nothing else of an example, so this is the ordinary
expansion with another way to inner products: one example is spread over a dense vector, and each term
gathers from it.  The pool keeps, in place of a point, where its non-zeros are in an arena.
"""
import numpy as np
from onlinekernels._core.expansion cimport DENSE, FACTS, INNER, OWN_INNER, PAIR, SLOT_INNER, SLOT_WORK, WORK
from onlinekernels._core.expansion cimport Expansion, Piece, apart
from onlinekernels._core.expansion cimport X as UNUSED
from onlinekernels._core.kernels cimport MAX_OPS, SQUARE, Program
from onlinekernels._core.outputs cimport Outputs
from onlinekernels._core.ring cimport Pool, array_data
from onlinekernels._core.ring import check_array


cdef class Rows:
    """Rows of a CSR matrix: indices ascend within a row, values are finite."""

    def __init__(self, indptr, indices, data, Py_ssize_t n_features):
        # Copies, checked below and out of reach of everybody else's hands: loops rely on them.
        self.indptr = np.array(indptr, dtype=np.int64, order="C")
        self.indices = np.array(indices, dtype=np.int32, order="C")
        self.data = np.array(data, dtype=np.float64, order="C")
        self.n_features = n_features
        n = self.data.shape[0]
        fits = (len(self.indptr) > 0 and self.indptr[0] == 0 and self.indptr[len(self.indptr) - 1] == n
                and (np.diff(self.indptr) >= 0).all() and self.indices.shape == (n,))
        if fits and n:
            inside = np.ones(n, dtype=bool)
            inside[self.indptr[:len(self.indptr) - 1][np.diff(self.indptr) > 0]] = False
            steps = np.diff(self.indices, prepend=self.indices[0])
            fits = (self.indices.min() >= 0 and self.indices.max() < n_features and (steps[inside] > 0).all()
                    and np.isfinite(self.data).all())
        if not fits:
            raise ValueError("the rows are not sparse rows with ascending indices and finite values")
        self.start = <const long long*> array_data(self.indptr)
        self.index = <const int*> array_data(self.indices)
        self.value = <const double*> array_data(self.data)

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


cdef class Sparse(Expansion):
    """f on sparse rows; parameters as for `Expansion`, and the kernel needs inner products only."""

    def __init__(self, *, Program program, double weight_scale, n_features, budget, int channels, Outputs outputs,
                 int form, bint evaluates_slots=False):
        self.evaluates_slots = evaluates_slots
        self.program = program
        self.weight_scale = weight_scale
        self.begin(n_features, np.float64, channels, outputs, form)
        self.dense_array = np.zeros(n_features)
        self.dense = <double*> array_data(self.dense_array)
        if program is None:
            self.weights = np.zeros((channels * self.width, n_features))
            self.weight_data = <double*> array_data(self.weights)
        else:
            program.start(n_features, self.dtype, None)
            self.pool = Pool(budget, channels, self.width if form == DENSE else 1, 2, self.dtype, program.n_facts,
                             form == PAIR)
            self.set_arena(np.zeros(0, dtype=np.int32), np.zeros(0), 0)

    def set_arena(self, indices, values, Py_ssize_t used):
        """The non-zeros of all terms."""
        self.index_array, self.value_array, self.used = indices, values, used
        self.index = <int*> array_data(indices)
        self.value = <double*> array_data(values)

    # ---- Inner products -----------------------------------------------------------------------

    cdef void spread(self, const int* index, const double* value, Py_ssize_t n) noexcept nogil:
        cdef Py_ssize_t k
        for k in range(n):
            self.dense[index[k]] = value[k]

    cdef void clear(self, const int* index, Py_ssize_t n) noexcept nogil:
        cdef Py_ssize_t k
        for k in range(n):
            self.dense[index[k]] = 0.0

    cdef double inner_with(self, const int* index, const double* value, Py_ssize_t n) noexcept nogil:
        """Inner product with the example that is spread out."""
        cdef Py_ssize_t k
        cdef double even = 0.0, odd = 0.0
        for k in range(0, n - 1, 2):
            even += value[k] * self.dense[index[k]]
            odd += value[k + 1] * self.dense[index[k + 1]]
        if n % 2:
            even += value[n - 1] * self.dense[index[n - 1]]
        return even + odd

    cdef void inner_with_terms(self, double* out) noexcept nogil:
        """Inner products of the example that is spread out with the slots in use."""
        cdef Py_ssize_t slot
        cdef const double* place
        for slot in range(self.pool.start, self.pool.stop):
            place = <const double*> (self.pool.point_data + slot * self.pool.point_bytes)
            out[slot - self.pool.start] = self.inner_with(self.index + <Py_ssize_t> place[0],
                                                          self.value + <Py_ssize_t> place[0],
                                                          <Py_ssize_t> place[1])

    cdef int inner_of_piece(self, Py_ssize_t first, Py_ssize_t m, double* inner, Py_ssize_t stride,
                            double* own_inner) except -1:
        """Inner products of m rows with the terms and, unless own_inner is NULL, with each other."""
        cdef Rows rows = self.chunk
        cdef Py_ssize_t i, j, begin, size
        with nogil:
            for i in range(m):
                begin = rows.start[first + i]
                size = rows.start[first + i + 1] - begin
                self.spread(rows.index + begin, rows.value + begin, size)
                self.inner_with_terms(inner + i * stride)
                if own_inner != NULL:
                    for j in range(i, m):
                        own_inner[i * m + j] = own_inner[j * m + i] = self.inner_with(
                            rows.index + rows.start[first + j], rows.value + rows.start[first + j],
                            rows.start[first + j + 1] - rows.start[first + j])
                self.clear(rows.index + begin, size)
        return 0

    def clear_scratch(self):
        Expansion.clear_scratch(self)
        self.dense_array[:] = 0.0

    # ---- Evaluating and changing --------------------------------------------------------------

    cdef void add_up_weights(self, const Piece* piece, Py_ssize_t i, int channel, double* sums) noexcept nogil:
        cdef Py_ssize_t y, k, row = piece.first_row + i
        cdef const double* weights
        for y in range(1 if self.outputs is None else self.outputs.n):
            weights = self.weight_data + (channel * self.width + y) * self.n_features
            sums[y] = 0.0
            for k in range(self.chunk.start[row], self.chunk.start[row + 1]):
                sums[y] += self.chunk.value[k] * weights[self.chunk.index[k]]
            sums[y] *= self.weight_scale

    cdef void add_to_weights(self, const Piece* piece, Py_ssize_t i, double c, double* weights) noexcept nogil:
        cdef Py_ssize_t k, row = piece.first_row + i
        for k in range(self.chunk.start[row], self.chunk.start[row + 1]):
            weights[self.chunk.index[k]] += c * self.chunk.value[k]

    cdef void evaluate_slot(self, Py_ssize_t slot, int last, double* out, double* own) noexcept nogil:
        cdef const double* place = <const double*> (self.pool.point_data + slot * self.pool.point_bytes)
        cdef const int* index = self.index + <Py_ssize_t> place[0]
        cdef Py_ssize_t size = <Py_ssize_t> place[1], n = self.live()
        cdef double facts[2 * MAX_OPS]
        cdef int channel
        self.spread(index, self.value + <Py_ssize_t> place[0], size)
        self.inner_with_terms(self.slot_inner)
        self.clear(index, size)
        self.program.row(self.slot_inner, NULL, NULL, self.pool.facts + slot, self.pool.capacity, NULL,
                         self.pool.facts + self.pool.start, self.pool.capacity, n, self.slot_work)
        own[0] = self.program.facts_from(NULL, self.pool.facts[SQUARE * self.pool.capacity + slot], 0.0, facts, 1)
        self.slot_work[slot - self.pool.start] = own[0]
        for channel in range(last + 1):
            self.add_up(self.slot_work, channel, self.sums + channel * self.width)
        self.make_true(last, out)

    cdef void place(self, const Piece* piece, Py_ssize_t i, Py_ssize_t slot) noexcept nogil:
        """Copy the non-zeros of example i to the end of the arena, where room has been reserved."""
        cdef Py_ssize_t k, fact, row = piece.first_row + i
        cdef double* point = <double*> (self.pool.point_data + slot * self.pool.point_bytes)
        point[0] = <double> self.used
        point[1] = <double> (self.chunk.start[row + 1] - self.chunk.start[row])
        for k in range(self.chunk.start[row], self.chunk.start[row + 1]):
            self.index[self.used] = self.chunk.index[k]
            self.value[self.used] = self.chunk.value[k]
            self.used += 1
        for fact in range(self.pool.n_facts):
            self.pool.facts[fact * self.pool.capacity + slot] = piece.facts[fact * piece.rows + i]

    # ---- Pieces -------------------------------------------------------------------------------

    cdef const char* attach(self, X) except? NULL:
        self.chunk = X
        return NULL

    cdef int prepare_rows(self, Piece* piece, const char* x, Py_ssize_t first, Py_ssize_t m, bint learning,
                          int by_terms=-1) except -1:
        cdef Rows rows = self.chunk
        cdef Program program = self.program
        cdef Py_ssize_t i, k
        cdef double square
        self.begin_piece(piece, m)
        piece.first_row = first
        piece.x = piece.raw = self.buffer(UNUSED, m * 2 * sizeof(double))
        if self.pool is not None:
            if learning:
                self.pool.reserve(m)
                self.reserve_arena(rows.start[first + m] - rows.start[first])
            piece.first = self.pool.start
            piece.stride = apart(min(self.live() + m, self.pool.capacity - self.pool.start) if learning
                                 else self.live())
            piece.facts = <double*> self.buffer(FACTS, program.n_facts * m * sizeof(double))
            self.work = <double*> self.buffer(WORK, program.depth * piece.stride * sizeof(double))
            if self.evaluates_slots:
                self.slot_inner = <double*> self.buffer(SLOT_INNER, piece.stride * sizeof(double))
                self.slot_work = <double*> self.buffer(SLOT_WORK, program.depth * piece.stride * sizeof(double))
        for i in range(m):
            square = 0.0
            for k in range(rows.start[first + i], rows.start[first + i + 1]):
                square += rows.value[k] * rows.value[k]
            if self.pool is None:
                piece.own[i] = self.weight_scale * square
            else:
                piece.own[i] = program.facts_from(NULL, square, 0.0, piece.facts + i, m)
        if self.pool is not None:
            piece.inner = self.buffer(INNER, m * piece.stride * sizeof(double))
            if learning and m > 1:
                piece.own_inner = self.buffer(OWN_INNER, m * m * sizeof(double))
            self.inner_of_piece(first, m, <double*> piece.inner, piece.stride, <double*> piece.own_inner)
        return 0

    cdef reserve_arena(self, Py_ssize_t newcomers):
        """Room for so many non-zeros; what dropped terms have left goes when it is more than half."""
        cdef Py_ssize_t live
        if self.used + newcomers <= len(self.index_array):
            return
        slots = self.pool.live_slots()
        places = self.pool.points[slots].astype(np.int64)
        live = int(places[:, 1].sum())
        size = max(2 * live, live + newcomers, 256)
        indices, values = np.empty(size, dtype=np.int32), np.empty(size)
        kept = positions(places)
        indices[:live] = self.index_array[kept]
        values[:live] = self.value_array[kept]
        self.pool.points[slots, 0] = np.cumsum(places[:, 1]) - places[:, 1]
        self.set_arena(indices, values, live)

    # ---- From Python --------------------------------------------------------------------------

    def terms(self, slots):
        """Points of slots, as rows."""
        return gathered(self.pool.points[slots].astype(np.int64), self.index_array, self.value_array, self.n_features)

    cdef prepare_start(self, Piece* piece, points, kept):
        cdef Rows rows = gathered(np.column_stack([points.indptr[:len(points)], np.diff(points.indptr)])[kept],
                                  points.indices, points.data, self.n_features)
        self.attach(rows)
        self.reserve_arena(len(rows.data))
        self.prepare_rows(piece, NULL, 0, len(rows), False)
        return rows

    def state(self):
        state = Expansion.state(self)
        if self.pool is not None:
            places = state["points"].astype(np.int64)
            kept = positions(places)
            state["points"][:, 0] = np.cumsum(places[:, 1]) - places[:, 1]
            state["sparse_indices"], state["sparse_values"] = self.index_array[kept], self.value_array[kept]
        return state

    def restore(self, state):
        if self.pool is not None:
            places = check_array(state["points"], "points", np.float64, (-1, 2))
            indices = check_array(state["sparse_indices"], "sparse_indices", np.int32, (-1,))
            values = check_array(state["sparse_values"], "sparse_values", np.float64, (len(indices),))
            sizes = places[:, 1]
            if not ((sizes >= 0).all() and (sizes == np.floor(sizes)).all() and sizes.sum() == len(indices)
                    and np.array_equal(places[:, 0], np.cumsum(sizes) - sizes)):
                raise ValueError("the non-zeros do not fit the terms")
            indptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
            rows = Rows(indptr, indices, values, self.n_features)
        Expansion.restore(self, state)
        if self.pool is not None:
            self.set_arena(rows.indices.copy(), rows.data.copy(), len(indices))

    def _check(self):
        Expansion._check(self)
        assert not self.dense_array.any()
        if self.pool is not None:
            places = self.pool.points[self.pool.live_slots()]
            assert (places >= 0).all() and (places.sum(axis=1) <= self.used).all()
            assert self.used <= len(self.index_array) == len(self.value_array)
            self.terms(self.pool.live_slots())


def positions(places):
    """Places in the arena of the non-zeros of terms, (start, size) each, one after another."""
    sizes = places[:, 1]
    starts = np.repeat(places[:, 0] - (np.cumsum(sizes) - sizes), sizes)
    return starts + np.arange(int(sizes.sum()))


def gathered(places, indices, values, n_features):
    """Rows of the non-zeros at these places."""
    kept = positions(places)
    indptr = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(places[:, 1])])
    return Rows(indptr, indices[kept], values[kept], n_features)
