"""Functions on trees, for additive kernels.

f(x, y) = sum_j f_j(x_j, y), and each f_j is a tree over the values of coordinate j.  The trees hold
coordinates in the frame, one row per channel and label, so decay and averages cost O(1) here as well.
With an unlimited budget there is nothing else.  A budget keeps its terms in a dictionary beside the trees, to
know what to take out of them when one is dropped.
"""
import numpy as np
from libc.string cimport memcpy
from onlinekernels._core.arrays cimport array_data
from onlinekernels._core.arrays import check_array
from onlinekernels._core.functions.coefficients cimport Coefficients
from onlinekernels._core.formulas.frame cimport frame_reset
from onlinekernels._core.functions.function cimport Function, Scratch
from onlinekernels._core.functions.outputs cimport Outputs
from onlinekernels._core.functions.terms cimport Terms
from onlinekernels._core.formulas.additive import mapping
from onlinekernels._core.functions.balanced cimport FAN, LEAF
from onlinekernels._core.functions.tree cimport Tree
from onlinekernels._core.run.example cimport Term
from onlinekernels._core.run.piece cimport CENTERED, OWN

cdef enum:
    PIECE_ROWS = 256            # of trees: there are no inner products that must fit the cache
    EVALUATED_ROWS = 4096


cdef class TreeScratch(Scratch):
    """What trees compute on the way."""


cdef class Forest:
    """A tree for each coordinate: scale * sum_j sum_i K(x_ij, x_j) A_i, of stored coordinates.

    Parameters
    ----------
    additive : tuple
        K, as `Tree` takes it.
    scale : float
    bounds : (low, high) or None
        Points are mapped to (x - low) / (high - low).
    n_features, channels, width : int
    """

    def __init__(self, *, additive, double scale, bounds, Py_ssize_t n_features, int channels, Py_ssize_t width):
        self.description = additive
        self.scale = scale
        self.n_features, self.channels, self.width = n_features, channels, width
        if bounds is not None:
            self.low, self.stretch = mapping(bounds, n_features)
            self.low_data = <double*> array_data(self.low)
            self.stretch_data = <double*> array_data(self.stretch)
        self.tree = self.empty(width)
        self.span = n_features * self.tree.stride

    def empty(self, Py_ssize_t width):
        """Trees without terms."""
        return Tree(self.description, self.n_features, self.channels * width)

    cdef void take_over(self, Tree tree, Py_ssize_t width) noexcept:
        """Go on with trees for so many outputs."""
        self.tree, self.width = tree, width

    def wider(self, Py_ssize_t width):
        """The trees with room for more outputs."""
        return self.planted(width, self.width, self.width)

    def copy_last(self, Py_ssize_t n):
        """Outputs from the n-th on become what the one before them is."""
        self.take_over(self.planted(self.width, n, n - 1), self.width)

    def planted(self, Py_ssize_t width, Py_ssize_t n, Py_ssize_t source):
        """Trees with the first n outputs, and behind them up to `width` what output `source` is, 0 if there is none."""
        cdef Py_ssize_t j
        planted = self.empty(width)
        for j in range(self.n_features):
            keys, counts, values, sizes = self.tree.contents(j)
            values = values.reshape(self.channels, self.width, len(keys))
            moved = np.zeros((self.channels, width, len(keys)))
            moved[:, n:] = values[:, source:source + 1] if source < self.width else 0.0
            moved[:, :n] = values[:, :n]
            planted.load(j, keys, counts, moved.reshape(self.channels * width, len(keys)), sizes)
        return planted

    # ---- In the loop --------------------------------------------------------------------------

    cdef void map_point(self, const double* x, double* out) noexcept nogil:
        """A point as the trees know it."""
        cdef Py_ssize_t j
        if self.low_data == NULL:
            memcpy(out, x, self.n_features * sizeof(double))
            return
        for j in range(self.n_features):
            out[j] = (x[j] - self.low_data[j]) * self.stretch_data[j]

    cdef int open(self, TreeScratch w, Py_ssize_t first, Py_ssize_t m, bint copies) except -1:
        """Examples as they came into the piece, as the trees know them into w.places, and their k(x, x)."""
        cdef Py_ssize_t i, d = self.n_features, rows = self.channels * max(2, self.width)
        w.piece.begin(m)
        w.piece.x = w.piece.source_data + first * d * sizeof(double)
        if copies:
            # Keys that change between being compared and being stored would break the order of a tree.
            w.piece.x = w.piece.buffer(CENTERED, m * d * sizeof(double))
            memcpy(<void*> w.piece.x, w.piece.source_data + first * d * sizeof(double), m * d * sizeof(double))
        w.piece.own = <double*> w.piece.buffer(OWN, m * sizeof(double))
        w.descent = <int*> w.buffer(DESCENT, d * sizeof(int))
        w.touched = <int*> w.buffer(TOUCHED, rows * sizeof(int))
        w.touched_values = <double*> w.buffer(TOUCHED_VALUES, rows * sizeof(double))
        w.knot = <double*> w.buffer(KNOT, d * sizeof(double))
        w.places = <double*> w.piece.x
        if self.low_data != NULL or self.tree.facts:
            w.places = <double*> w.buffer(PLACES, m * self.span * sizeof(double))
        if self.tree.facts:
            places = self.tree.places(w.array(<char*> w.piece.x, m, d, np.dtype(np.float64)))   # may ask the user's functions
            memcpy(w.places, array_data(places), m * self.span * sizeof(double))
        with nogil:
            for i in range(m):
                if self.low_data != NULL:
                    self.map_point(<const double*> w.piece.x + i * d, w.places + i * d)
                w.piece.own[i] = self.value(w.places + i * self.span, w.places + i * self.span)
        return 0

    cdef void evaluate(self, TreeScratch w, const double* x, Py_ssize_t rows) noexcept nogil:
        """Sums over all terms into w.sums, for the first rows."""
        cdef Py_ssize_t row
        self.tree.evaluate_into(x, rows, w.sums, w.descent)
        for row in range(rows):
            w.sums[row] *= self.scale

    cdef double value(self, const double* x, const double* z) noexcept nogil:
        return self.scale * self.tree.value(x, z)

    cdef Py_ssize_t rows_of(self, TreeScratch w, const Term* term) noexcept nogil:
        """Which rows of the trees a term touches, and its coordinates there."""
        cdef Py_ssize_t n = 0, k
        cdef int channel
        for channel in range(self.channels):
            for k in range(term.n):
                w.touched[n] = <int> (channel * self.width + term.labels[k])
                w.touched_values[n] = term.stored[n]
                n += 1
        return n

    cdef void put(self, TreeScratch w, const double* x, const Term* term) noexcept nogil:
        """Add a term at a mapped point."""
        cdef Py_ssize_t n = self.rows_of(w, term)
        self.tree.put(x, w.touched_values, w.touched, n)

    cdef void take(self, TreeScratch w, const double* x, const Term* term) noexcept nogil:
        """Take a term out again."""
        cdef Py_ssize_t n = self.rows_of(w, term)
        self.tree.take(x, w.touched_values, w.touched, n)

    # ---- For Python ---------------------------------------------------------------------------

    def mapped(self, Py_ssize_t j, points):
        """Values of coordinate j as the trees know them."""
        points = np.asarray(points, dtype=np.float64)
        return points if self.low is None else (points - self.low[j]) * self.stretch[j]

    def by_channel(self, rows, Py_ssize_t labels):
        """Rows (channels * width, n) as (channels, labels, n)."""
        return rows.reshape(self.channels, self.width, rows.shape[1])[:, :labels]

    def knots(self, Function function, Py_ssize_t j, int channel, Py_ssize_t labels):
        """(keys, counts, true coefficients, sizes) of coordinate j, of a channel of the function that these trees are."""
        keys, counts, stored, sizes = self.tree.contents(j)
        return keys, counts, function.true_rows(self.by_channel(stored, labels), channel), sizes

    def component(self, Function function, Py_ssize_t j, keys, int channel, Py_ssize_t labels):
        """f_j of a channel at keys of coordinate j."""
        stored = self.by_channel(self.tree.component(j, keys).T, labels)
        true = self.scale * function.true_rows(stored, channel).T
        return np.array([function.outputs.kappa_times(row) for row in true]).reshape(true.shape)

    def square(self, Function function, int channel, Py_ssize_t labels):
        """|f|^2 = sum_j sum_p a_jp f_j(p) over the knots p of each coordinate."""
        cdef Py_ssize_t j
        total = 0.0
        for j in range(self.n_features):
            keys, _, true, _ = self.knots(function, j, channel, labels)
            total += np.sum(true.T * self.component(function, j, keys, channel, labels))
        return float(total)

    def load(self, contents):
        """Trees with (keys, counts, values of shape (channels, labels, keys), sizes) for each coordinate."""
        tree = self.empty(self.width)
        for j, (keys, counts, values, sizes) in enumerate(contents):
            rows = np.zeros((self.channels, self.width, len(keys)))
            rows[:len(values), :values.shape[1]] = values
            tree.load(j, keys, counts, rows.reshape(self.channels * self.width, len(keys)), sizes)
        self.tree = tree

    def state(self, Py_ssize_t labels):
        """Keys, counts and stored coordinates of all knots, one coordinate after another, and the trees' shapes."""
        contents = [self.tree.contents(j) for j in range(self.n_features)]
        values = np.concatenate([values for _, _, values, _ in contents], axis=1)
        levels = [[len(sizes), *map(len, sizes)] for _, _, _, sizes in contents]
        sizes = [size for _, _, _, coordinate in contents for size in coordinate]
        return {
            "tree_keys": np.concatenate([keys for keys, _, _, _ in contents]),
            "tree_counts": np.concatenate([counts for _, counts, _, _ in contents]),
            "tree_values": self.by_channel(values, labels).reshape(self.channels * labels, -1).copy(),
            "tree_levels": np.concatenate([np.array(level, dtype=np.int64) for level in levels]),
            "tree_sizes": np.concatenate([np.zeros(0, dtype=np.int32), *sizes]),
        }

    def checked(self, state):
        """What `load` takes; ValueError if a state does not make trees."""
        labels = state["labels"]
        levels = check_array(state["tree_levels"], "tree_levels", np.int64, (-1,))
        sizes = check_array(state["tree_sizes"], "tree_sizes", np.int32, (-1,))
        keys = check_array(state["tree_keys"], "tree_keys", np.float64, (-1,))
        counts = check_array(state["tree_counts"], "tree_counts", np.int32, (len(keys),))
        values = check_array(state["tree_values"], "tree_values", np.float64, (self.channels * labels, len(keys)))
        values = values.reshape(self.channels, labels, len(keys))
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
            loaded.append((keys[key:key + n], counts[key:key + n], values[:, :, key:key + n], parts))
            key += n
        if level != len(levels) or first != len(sizes) or key != len(keys):
            raise wrong
        return loaded

    def check_terms(self, points, contents):
        """ValueError unless the trees hold terms at these points."""
        for j, (keys, counts, _, _) in enumerate(contents):
            own_keys, own_counts = np.unique(self.mapped(j, points[:, j]), return_counts=True)
            if not (np.array_equal(own_keys, keys) and np.array_equal(own_counts, counts)):
                raise ValueError("the trees do not hold the terms")


cdef open_points(Function f, Scratch w, points):
    """Open the points of another model as a piece: O(points d)."""
    points = np.ascontiguousarray(points, dtype=np.float64)
    f.attach(w, points)
    f.open(w, 0, len(points), True, -1)
    return points


cdef class Trees(Function):
    """f on trees and nowhere else.

    Parameters
    ----------
    forest : Forest
    outputs
        As for `Function`; rows are float64.
    """

    def __init__(self, *, Forest forest, Outputs outputs):
        Function.__init__(self, forest.n_features, np.float64, forest.channels, outputs)
        self.keeps = "knots"
        self.forest = forest

    cdef Scratch new_scratch(self):
        return TreeScratch()

    cdef int open(self, Scratch w, Py_ssize_t first, Py_ssize_t m, bint learning, int by_slots) except -1:
        if learning:
            self.forest.tree.reserve(m)
        return self.forest.open(<TreeScratch> w, first, m, learning)

    cdef void evaluate(self, Scratch w, Py_ssize_t i, int last, double* out) noexcept nogil:
        self.forest.evaluate(<TreeScratch> w, (<TreeScratch> w).places + i * self.forest.span, (last + 1) * self.width)
        self.make_true(w, last, out)

    cdef void add(self, Scratch w, Term* term, Py_ssize_t i, long long t) noexcept nogil:
        self.forest.put(<TreeScratch> w, (<TreeScratch> w).places + i * self.forest.span, term)

    cdef void fold(self, Scratch w) noexcept nogil:
        if self.frame.channels == 1 and self.frame.p[0][0] == 0.0:
            self.forest.tree.clear()            # a factor of 0 wipes the past
        else:
            self.forest.tree.fold(&self.frame)
        frame_reset(&self.frame)

    cdef Py_ssize_t piece_rows(self):
        return PIECE_ROWS

    cdef Py_ssize_t rows_to_evaluate(self):
        return EVALUATED_ROWS

    cdef open_start(self, Scratch w, points, kept):
        return open_points(self, w, points[kept])

    # ---- For Python ---------------------------------------------------------------------------

    def widen(self, Py_ssize_t width):
        self.forest.take_over(self.forest.wider(width), width)

    def copy_last(self, Py_ssize_t n):
        self.forest.copy_last(n)

    def begin_from(self, points, alpha, pairs=None, long long t=0):
        """Start from f = sum_i alpha_i k(points_i, .); or, for points=None, from the knots `alpha` of each coordinate."""
        if points is None:
            if len(alpha) != self.n_features or any(not 1 <= len(true) <= self.width for _, _, true, _ in alpha):
                raise ValueError(f"the knots are not those of {self.n_features} coordinates and {self.width} outputs")
            self.forest.load([(keys, counts, true[None], sizes) for keys, counts, true, sizes in alpha])
        else:
            self.start_from(points, alpha, pairs, t)

    def knots(self, Py_ssize_t j, int channel, Py_ssize_t labels):
        return self.forest.knots(self, j, channel, labels)

    def component(self, Py_ssize_t j, points, int channel, Py_ssize_t labels):
        return self.forest.component(self, j, self.forest.mapped(j, points), channel, labels)

    def additive_square(self, int channel, Py_ssize_t labels):
        return self.forest.square(self, channel, labels)

    def state(self):
        """Named numbers and arrays; no scratch."""
        return {**self.frame_state(), **self.forest.state(self.outputs.kept())}

    def check_state(self, state):
        """ValueError unless a state fits."""
        self.check_frame(state)
        self.forest.checked(state)

    def restore(self, state):
        """Continue from a state that has been checked."""
        self.restore_frame(state)
        self.forest.load(self.forest.checked(state))

    def _check(self):
        Function._check(self)
        self.forest.tree._check()


cdef class BudgetedTrees(Terms):
    """f on trees, with its terms in a dictionary to know what to take out of them; not for kernels of the user's own.

    Parameters
    ----------
    forest : Forest
    terms, outputs
        As for `Terms`; the dictionary keeps points as they came.
    """

    def __init__(self, *, Forest forest, Coefficients terms, Outputs outputs):
        Terms.__init__(self, terms, outputs)
        self.forest = forest

    cdef Scratch new_scratch(self):
        return TreeScratch()

    cdef int open(self, Scratch w, Py_ssize_t first, Py_ssize_t m, bint learning, int by_slots) except -1:
        if learning:
            self.reserve(m)
        return self.forest.open(<TreeScratch> w, first, m, learning)

    def reserve(self, Py_ssize_t newcomers):
        """Room for so many new terms, and for planting all terms anew."""
        cdef Py_ssize_t leaves, nodes
        cdef Tree tree = self.forest.tree
        tree.reserve(newcomers)
        self.dictionary.reserve(newcomers)
        leaves = self.n_features * (2 * (self.terms.count + newcomers) // LEAF + 2)
        nodes = 3 * leaves // FAN + 8 * self.n_features
        tree.reserve_blocks(max(0, leaves - tree.leaves.used + tree.leaves.free),
                            max(0, nodes - tree.nodes.used + tree.nodes.free))

    cdef const double* knot(self, TreeScratch w, Py_ssize_t slot) noexcept nogil:
        """The point of a slot as the trees know it."""
        self.forest.map_point(<const double*> self.dictionary.point(slot), w.knot)
        return w.knot

    cdef void evaluate(self, Scratch w, Py_ssize_t i, int last, double* out) noexcept nogil:
        self.forest.evaluate(<TreeScratch> w, (<TreeScratch> w).places + i * self.n_features, (last + 1) * self.width)
        self.make_true(w, last, out)

    cdef void evaluate_slot(self, Scratch w, Py_ssize_t slot, int last, double* out, double* own) noexcept nogil:
        cdef const double* x = self.knot(<TreeScratch> w, slot)
        self.forest.evaluate(<TreeScratch> w, x, (last + 1) * self.width)
        self.make_true(w, last, out)
        own[0] = self.forest.value(x, x)

    cdef double value_with(self, Scratch w, Py_ssize_t slot, Py_ssize_t i) noexcept nogil:
        return self.forest.value(self.knot(<TreeScratch> w, slot), (<TreeScratch> w).places + i * self.n_features)

    cdef double square(self, Scratch w) noexcept nogil:
        return self.square_over(w, self.dictionary.start, self.dictionary.stop)

    cdef void plant(self, Scratch w, Py_ssize_t slot) noexcept nogil:
        """Add a term of the dictionary to the trees."""
        self.terms.read(slot, &w.old)
        self.forest.put(<TreeScratch> w, self.knot(<TreeScratch> w, slot), &w.old)

    cdef void drop(self, Scratch w, Py_ssize_t slot) noexcept nogil:
        self.terms.read(slot, &w.old)
        self.forest.take(<TreeScratch> w, self.knot(<TreeScratch> w, slot), &w.old)
        Terms.drop(self, w, slot)

    cdef void add(self, Scratch w, Term* term, Py_ssize_t i, long long t) noexcept nogil:
        Terms.add(self, w, term, i, t)
        self.forest.put(<TreeScratch> w, (<TreeScratch> w).places + i * self.n_features, term)

    cdef void fold(self, Scratch w) noexcept nogil:
        """Fold the terms, and plant them anew."""
        cdef Py_ssize_t slot
        Terms.fold(self, w)
        self.forest.tree.clear()
        for slot in range(self.dictionary.start, self.dictionary.stop):
            if self.terms.holds(slot):
                self.plant(w, slot)

    cdef Py_ssize_t piece_rows(self):
        return PIECE_ROWS

    cdef Py_ssize_t rows_to_evaluate(self):
        return EVALUATED_ROWS

    cdef open_start(self, Scratch w, points, kept):
        return open_points(self, w, points[kept])

    # ---- For Python ---------------------------------------------------------------------------

    def widen(self, Py_ssize_t width):
        cdef Tree trees = self.forest.wider(width)
        Terms.widen(self, width)                # the last that can fail
        self.forest.take_over(trees, width)

    def copy_last(self, Py_ssize_t n):
        Terms.copy_last(self, n)
        self.forest.copy_last(n)

    def knots(self, Py_ssize_t j, int channel, Py_ssize_t labels):
        return self.forest.knots(self, j, channel, labels)

    def component(self, Py_ssize_t j, points, int channel, Py_ssize_t labels):
        return self.forest.component(self, j, self.forest.mapped(j, points), channel, labels)

    def additive_square(self, int channel, Py_ssize_t labels):
        return self.forest.square(self, channel, labels)

    def state(self):
        return {**Terms.state(self), **self.forest.state(self.outputs.kept())}

    def check_state(self, state):
        Terms.check_state(self, state)
        alive = (state["coefficients"] != 0).any(axis=0)
        self.forest.check_terms(state["points"][alive], self.forest.checked(state))

    def restore(self, state):
        Terms.restore(self, state)
        self.forest.load(self.forest.checked(state))

    def _check(self):
        Terms._check(self)
        self.forest.tree._check()
        contents = [self.forest.tree.contents(j) for j in range(self.n_features)]
        self.forest.check_terms(self.points(), contents)
