"""The function f on trees: another expansion, for additive kernels.

f(x, y) = sum_j f_j(x_j, y), and each f_j is a tree over the values of coordinate j.  The trees hold
coordinates in the frame, one row per channel and label, so decay and averages cost O(1) here as well.
With an unlimited budget there is nothing else.  A budget keeps its terms in a pool beside the trees, to
know what to take out of them when one is dropped.
"""
import numpy as np
from onlinekernels._core.expansion cimport DENSE, OWN_INNER, PAIR, Expansion, Piece
from onlinekernels._core.expansion cimport X as MAPPED
from onlinekernels._core.frame cimport frame_reset
from onlinekernels._core.outputs cimport Outputs
from onlinekernels._core.ring cimport NEWCOMER, NOBODY, UNLIMITED, Pool, array_data
from onlinekernels._core.ring import check_array
from onlinekernels._core.tree cimport FAN, LEAF, Tree
from onlinekernels._core.tree import mapping

from libc.string cimport memcpy


cdef class Forest(Expansion):
    """f(x, y) = scale * sum_j sum_i K(x_ij, x_j) (A_i @ kappa)[y].

    Parameters
    ----------
    additive : tuple
        K, as `Tree` takes it.
    scale : float
    bounds : (low, high) or None
        Points are mapped to (x - low) / (high - low).
    n_features, budget, channels, outputs, form
        As for `Expansion`; points are float64.
    """

    def __init__(self, *, additive, double scale, bounds, n_features, budget, int channels, Outputs outputs,
                 int form):
        self.description = additive
        self.scale = scale
        self.low_data = self.stretch_data = NULL
        if bounds is not None:
            self.low, self.stretch = mapping(bounds, n_features)
            self.low_data = <double*> array_data(self.low)
            self.stretch_data = <double*> array_data(self.stretch)
        self.begin(n_features, np.float64, channels, outputs, form)
        if budget[0] != UNLIMITED:
            self.pool = Pool(budget, channels, self.width if form == DENSE else 1, n_features, self.dtype, 0,
                             form == PAIR)
        self.tree = Tree(additive, n_features, channels * self.width)
        self.allocate()

    cdef allocate(self):
        """Scratch for as many outputs as there is room for."""
        cdef Py_ssize_t rows = self.frame.channels * max(2, self.width)
        self.scratch_rows = np.zeros(rows, dtype=np.int32)
        self.scratch_values = np.zeros(rows)
        self.scratch_point = np.zeros(max(1, self.n_features))
        self.touched = <int*> array_data(self.scratch_rows)
        self.values_data = <double*> array_data(self.scratch_values)
        self.mapped = <double*> array_data(self.scratch_point)

    def grow(self, Py_ssize_t width):
        """Make room for more outputs."""
        cdef Py_ssize_t j, channels = self.frame.channels
        if width <= self.width:
            return
        if not self.outputs.can_grow():
            raise ValueError("the labels of a structure are fixed")
        wider = Tree(self.description, self.n_features, channels * width)
        for j in range(self.n_features):
            keys, counts, values, sizes = self.tree.contents(j)
            moved = np.zeros((channels, width, len(keys)))
            moved[:, :self.width] = values.reshape(channels, self.width, len(keys))
            wider.load(j, keys, counts, moved.reshape(channels * width, len(keys)), sizes)
        if self.pool is not None and self.form == DENSE:
            self.pool.widen(width)
        self.tree, self.width = wider, width
        self.allocate()

    # ---- Evaluating ---------------------------------------------------------------------------

    cdef void map_point(self, const double* x, double* out) noexcept nogil:
        """A point as the trees know it."""
        cdef Py_ssize_t j
        if self.low_data == NULL:
            memcpy(out, x, self.n_features * sizeof(double))
            return
        for j in range(self.n_features):
            out[j] = (x[j] - self.low_data[j]) * self.stretch_data[j]

    cdef void evaluate(self, const Piece* piece, Py_ssize_t i, int last, double* out) noexcept nogil:
        cdef Py_ssize_t row, rows = (last + 1) * self.width
        self.tree.evaluate_into(<const double*> piece.x + i * self.n_features, rows, self.sums)
        for row in range(rows):
            self.sums[row] *= self.scale
        self.make_true(last, out)

    cdef void evaluate_slot(self, Py_ssize_t slot, int last, double* out, double* own) noexcept nogil:
        cdef Py_ssize_t row, rows = (last + 1) * self.width
        self.map_point(<const double*> (self.pool.point_data + slot * self.pool.point_bytes), self.mapped)
        self.tree.evaluate_into(self.mapped, rows, self.sums)
        for row in range(rows):
            self.sums[row] *= self.scale
        self.make_true(last, out)
        own[0] = self.scale * self.tree.value(self.mapped, self.mapped)

    cdef double value_with(self, Py_ssize_t slot, const Piece* piece, Py_ssize_t i) noexcept nogil:
        self.map_point(<const double*> (self.pool.point_data + slot * self.pool.point_bytes), self.mapped)
        return self.scale * self.tree.value(self.mapped, <const double*> piece.x + i * self.n_features)

    # ---- Changing -----------------------------------------------------------------------------

    cdef Py_ssize_t rows_of_term(self, const double* stored, Py_ssize_t stride, Py_ssize_t first,
                                 Py_ssize_t second) noexcept nogil:
        """Which rows of the trees a term touches, and its coordinates stored[row * stride] there."""
        cdef Py_ssize_t n = 0, y
        cdef int channel
        for channel in range(self.frame.channels):
            if self.form == DENSE:
                for y in range(self.width):
                    self.touched[n] = <int> n
                    self.values_data[n] = stored[n * stride]
                    n += 1
            else:
                self.touched[n] = <int> (channel * self.width + first)
                self.values_data[n] = stored[channel * stride]
                n += 1
                if self.form == PAIR:
                    self.touched[n] = <int> (channel * self.width + second)
                    self.values_data[n] = -stored[channel * stride]
                    n += 1
        return n

    cdef Py_ssize_t rows_of_slot(self, Py_ssize_t slot) noexcept nogil:
        """The same for a term in the pool, with its point into `mapped`."""
        cdef Py_ssize_t first = 0, second = 0
        if self.form == PAIR:
            first, second = self.pool.first[slot], self.pool.second[slot]
        self.map_point(<const double*> (self.pool.point_data + slot * self.pool.point_bytes), self.mapped)
        return self.rows_of_term(self.pool.coef + slot, self.pool.capacity, first, second)

    cdef void plant(self, Py_ssize_t slot) noexcept nogil:
        """Add a term of the pool to the trees."""
        cdef Py_ssize_t n = self.rows_of_slot(slot)
        self.tree.put(self.mapped, self.values_data, self.touched, n)

    cdef void uproot(self, Py_ssize_t slot) noexcept nogil:
        """Take a term of the pool out of the trees."""
        cdef Py_ssize_t n = self.rows_of_slot(slot)
        self.tree.take(self.mapped, self.values_data, self.touched, n)

    cdef void enter(self, const Piece* piece, Py_ssize_t i, long long t, const double* alpha,
                    Py_ssize_t first, Py_ssize_t second) noexcept nogil:
        cdef Py_ssize_t victim, n, slot
        self.ready_to_store(piece.own[i], alpha)
        if self.pool is not None:
            victim = self.pool.victim(self.stored)
            if victim == NEWCOMER:
                self.entered = -1
                return
            if victim != NOBODY:
                self.uproot(victim)
            slot = self.entered = self.pool.enter(t, self.stored)
            if self.form == PAIR:
                self.pool.first[slot] = <int> first
                self.pool.second[slot] = <int> second
            self.place(piece, i, slot)
        n = self.rows_of_term(self.stored, 1, first, second)
        self.tree.put(<const double*> piece.x + i * self.n_features, self.values_data, self.touched, n)

    cdef void place(self, const Piece* piece, Py_ssize_t i, Py_ssize_t slot) noexcept nogil:
        """The pool keeps points as they came."""
        memcpy(self.pool.point_data + slot * self.pool.point_bytes,
               piece.raw + i * self.pool.point_bytes, self.pool.point_bytes)

    cdef void drop_first(self) noexcept nogil:
        self.uproot(self.pool.start)
        self.pool.drop_first()

    cdef void fold(self) noexcept nogil:
        """Multiply the frame into what is stored and reset it; with a pool, plant its terms anew."""
        cdef Py_ssize_t slot, row
        cdef bint alive
        if self.frame.channels == 1 and self.frame.p[0][0] == 0.0:
            if self.pool is not None:
                self.pool.clear()               # a factor of 0 wipes the past
            self.tree.clear()
        elif self.pool is None:
            self.tree.fold(&self.frame)
        else:
            self.pool.fold(&self.frame)
            self.tree.clear()
            for slot in range(self.pool.start, self.pool.stop):
                alive = False
                for row in range(self.pool.rows):
                    alive |= self.pool.coef[row * self.pool.capacity + slot] != 0.0
                if alive:
                    self.plant(slot)
        frame_reset(&self.frame)

    # ---- Pieces -------------------------------------------------------------------------------

    cdef Py_ssize_t piece_rows(self):
        return 256

    cdef Py_ssize_t most_rows(self):
        return 4096

    cdef reserve(self, Py_ssize_t newcomers):
        """Room for so many new terms, and for planting all terms anew."""
        cdef Py_ssize_t leaves, nodes
        self.tree.reserve(newcomers)
        if self.pool is not None:
            self.pool.reserve(newcomers)
            leaves = self.n_features * (2 * (self.pool.count + newcomers) // LEAF + 2)
            nodes = 3 * leaves // FAN + 8 * self.n_features
            self.tree.reserve_blocks(max(0, leaves - self.tree.leaves.used + self.tree.leaves.free),
                                     max(0, nodes - self.tree.nodes.used + self.tree.nodes.free))

    cdef int prepare(self, Piece* piece, const char* x, Py_ssize_t m, bint learning, int by_terms=-1) except -1:
        cdef Py_ssize_t i, d = self.n_features
        cdef double* mapped
        self.begin_piece(piece, m)
        piece.x = piece.raw = x
        if learning:
            self.reserve(m)
            # Keys that change between being compared and being stored would break the order of a tree.
            piece.x = piece.raw = self.buffer(OWN_INNER, m * d * sizeof(double))
            memcpy(<void*> piece.raw, x, m * d * sizeof(double))
        if self.low_data != NULL:
            piece.x = self.buffer(MAPPED, m * d * sizeof(double))
        with nogil:
            for i in range(m):
                mapped = <double*> piece.x + i * d
                if self.low_data != NULL:
                    self.map_point(<const double*> piece.raw + i * d, mapped)
                piece.own[i] = self.scale * self.tree.value(mapped, mapped)
        return 0

    # ---- From Python --------------------------------------------------------------------------

    def begin_from(self, points, alpha, pairs=None):
        """Start from f_1 = sum_i alpha_i k(points_i, .); or, for points=None, from the knots `alpha`."""
        cdef Py_ssize_t i, slot, n, rows = self.width if self.form == DENSE else 1
        cdef const double[:, ::1] x
        cdef double[:, ::1] stored
        if points is None:
            self.begin_from_trees(alpha)
            return
        if self.pool is not None:
            Expansion.begin_from(self, points, alpha, pairs)
            self.reserve(0)
            self.pool.tidy()
            for slot in range(self.pool.start, self.pool.stop):
                self.plant(slot)
            return
        x = np.ascontiguousarray(points, dtype=np.float64)
        stored = np.zeros((x.shape[0], self.frame.channels * rows))
        stored.base[:, :len(alpha)] = np.asarray(alpha, dtype=float).T
        self.reserve(x.shape[0])
        for i in range(x.shape[0]):
            self.map_point(&x[i, 0], self.mapped)
            n = self.rows_of_term(&stored[i, 0], 1, 0 if pairs is None else pairs[0, i],
                                  0 if pairs is None else pairs[1, i])
            self.tree.put(self.mapped, self.values_data, self.touched, n)

    cdef begin_from_trees(self, contents):
        """Start from another model's knots: (keys, counts, coefficients, sizes) of each coordinate."""
        for j, (keys, counts, true, sizes) in enumerate(contents):
            rows = np.zeros((self.frame.channels, self.width, len(keys)))
            rows[0, :len(true)] = true
            self.tree.load(j, keys, counts, rows.reshape(self.frame.channels * self.width, len(keys)), sizes)

    cdef true_rows(self, stored, int channel):
        """Rows (channels * width, n) of stored coordinates to true ones of a channel, (labels, n)."""
        cdef int c
        cdef Py_ssize_t labels = 1 if self.outputs is None else self.outputs.n
        stored = stored.reshape(self.frame.channels, self.width, stored.shape[1])[:, :labels]
        return sum(self.frame.p[channel][c] * stored[c] for c in range(channel + 1))

    def knots(self, Py_ssize_t j, int channel=0):
        """True coefficients of a channel at the keys of a coordinate, shape (labels, keys)."""
        return self.true_rows(self.tree.contents(j)[2], channel)

    def component(self, Py_ssize_t j, points, int channel=0):
        """f_j of a channel at values of coordinate j, shape (len(points), labels)."""
        points = np.asarray(points, dtype=np.float64)
        return self.component_at(j, points if self.low is None else (points - self.low[j]) * self.stretch[j], channel)

    def component_at_knots(self, Py_ssize_t j, int channel=0):
        """f_j of a channel at the keys of a coordinate."""
        return self.component_at(j, self.tree.contents(j)[0], channel)

    cdef component_at(self, Py_ssize_t j, keys, int channel):
        true = self.scale * self.true_rows(self.tree.component(j, keys).T, channel).T
        if self.outputs is None:
            return true
        return np.array([self.outputs.kappa_times(row) for row in true]).reshape(true.shape)

    def state(self):
        state = Expansion.state(self)
        contents = [self.tree.contents(j) for j in range(self.n_features)]
        state["tree_keys"] = np.concatenate([keys for keys, _, _, _ in contents])
        state["tree_counts"] = np.concatenate([counts for _, counts, _, _ in contents])
        state["tree_values"] = np.concatenate([values for _, _, values, _ in contents], axis=1)
        levels = [[len(sizes), *map(len, sizes)] for _, _, _, sizes in contents]
        state["tree_levels"] = np.concatenate([np.array(level, dtype=np.int64) for level in levels])
        sizes = [size for _, _, _, coordinate in contents for size in coordinate]
        state["tree_sizes"] = np.concatenate([np.zeros(0, dtype=np.int32), *sizes])
        return state

    def restore(self, state):
        loaded = self.checked_trees(state)
        Expansion.restore(self, state)
        if self.pool is not None:
            self.check_terms(loaded)
        self.tree = Tree(self.description, self.n_features, self.frame.channels * self.width)
        for j, contents in enumerate(loaded):
            self.tree.load(j, *contents)

    cdef checked_trees(self, state):
        """(keys, counts, values, sizes) of each coordinate; ValueError if they do not make trees."""
        rows = self.frame.channels * self.width
        levels = check_array(state["tree_levels"], "tree_levels", np.int64, (-1,))
        sizes = check_array(state["tree_sizes"], "tree_sizes", np.int32, (-1,))
        keys = check_array(state["tree_keys"], "tree_keys", np.float64, (-1,))
        counts = check_array(state["tree_counts"], "tree_counts", np.int32, (len(keys),))
        values = check_array(state["tree_values"], "tree_values", np.float64, (rows, len(keys)))
        loaded, level, first, key = [], 0, 0, 0
        wrong = ValueError("the trees do not fit together")
        for _ in range(self.n_features):
            if level >= len(levels) or not 0 <= levels[level] < 40:
                raise wrong
            blocks = levels[level + 1:level + 1 + levels[level]]
            level += 1 + int(levels[level])
            if len(blocks) and (blocks.min() < 1 or blocks[len(blocks) - 1] != 1):
                raise wrong
            parts = []
            for n in map(int, blocks):
                part = sizes[first:first + n]
                first += n
                if len(part) != n or (part < 1).any() or (part > (FAN if parts else LEAF)).any():
                    raise wrong
                if parts and part.sum() != len(parts[len(parts) - 1]):
                    raise wrong
                parts.append(part)
            n = int(parts[0].sum()) if parts else 0
            if n > len(keys) - key or (np.diff(keys[key:key + n]) <= 0).any() or (counts[key:key + n] < 1).any():
                raise wrong
            loaded.append((keys[key:key + n], counts[key:key + n], values[:, key:key + n], parts))
            key += n
        if level != len(levels) or first != len(sizes) or key != len(keys):
            raise wrong
        return loaded

    cdef check_terms(self, loaded):
        """The terms of the pool must be those of the trees."""
        points = self.pool.points[self.pool.live_slots()]
        if self.low is not None:
            points = (points - self.low) * self.stretch
        for j, (keys, counts, _, _) in enumerate(loaded):
            own_keys, own_counts = np.unique(points[:, j], return_counts=True)
            if not (np.array_equal(own_keys, keys) and np.array_equal(own_counts, counts)):
                raise ValueError("the trees do not hold the terms")

    def _check(self):
        Expansion._check(self)
        self.tree._check()
        if self.pool is not None:
            self.check_terms([self.tree.contents(j) for j in range(self.n_features)])
