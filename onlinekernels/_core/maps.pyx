"""Feature maps: examples as rows of features, k(x, z) = <phi(x), phi(z)>.

With such a map f is a vector of weights over the features, whatever the number of examples.  Features of many rows come
from matrix products and one compiled pass; those of a single row do without numpy.
"""
cimport cython
import numpy as np
from libc.math cimport NAN, isfinite, sqrt
from libc.string cimport memcpy, memset
from onlinekernels._core.arrays cimport array_data
from onlinekernels._core.dictionary cimport Dictionary
from onlinekernels._core.errors import quiet
from onlinekernels._core.formulas.vecmath cimport ok_add_row, ok_axpy, ok_dot, ok_fourier_row, ok_scale_row, ok_widen
from onlinekernels._core.functions cimport COORDINATES, WIDENED
from onlinekernels._core.kernels cimport Program
from onlinekernels._core.linalg cimport Factor
from onlinekernels._core.linalg import matmul
from onlinekernels._core.points cimport Rows
from onlinekernels._core.points import DensePoints, SparsePoints
from onlinekernels._core.schema import Array, Flag, Inlined, lower_triangular, state_of

# ---- The contract, and simple maps ---------------------------------------------------------------

DOUBLE, SINGLE = np.dtype(np.float64), np.dtype(np.float32)
as_type = quiet(np.ndarray.astype)


cdef class FeatureMap:
    """phi(x), `size` numbers for every example x.

    `examples` are (number of features, whether rows are sparse, whether they are float32); otherwise they are float64.

    It knows nothing of weights. Who uses it says what a call is about (`attach`), and then calls `map_rows` for each
    piece of rows. A map may choose its features by the examples that it meets. As long as it `grows()`, pieces that are
    learned must have one row, and `change` comes before it. A map that has something to save has a `prefix` for its
    names.
    """

    FIELDS = ()
    prefix = ""

    def __init__(self, examples, Py_ssize_t size):
        self.n_features, self.sparse, self.single = examples
        self.row_bytes = self.n_features * (4 if self.single else 8)
        self.dtype = SINGLE if self.single else DOUBLE
        self.size = size

    cdef int map_rows(self, Piece piece, Py_ssize_t first, Py_ssize_t m, bint learning, double* out,
                      Py_ssize_t stride) except -1:
        """All features of rows first, ..., first + m - 1 of the call's source into out[i * stride], ...

        out must have room for m + 1 rows. They are doubles, from products in the precision of the rows. Features of
        rows that are too large for the kernel are not finite. O(size d) a row, with inducing points O(size^2) more.
        """
        raise NotImplementedError

    cdef bint grows(self) noexcept nogil:
        """Whether examples still choose features. O(1)."""
        return False

    cdef change(self, Piece piece, Py_ssize_t first):
        """Just before row `first` is mapped to be learned: None, or a matrix B of shape (size, size) if the features
        change: then phi becomes B phi, and weights w become B w. O(size^2), O(size^3) for B."""

    cdef void carry_out_change(self) noexcept:
        """That happens once the weights are ready for it, or there is no matrix; it cannot fail. O(1)."""

    cdef void admit(self, Piece piece) noexcept nogil:
        """The row that was mapped last is being learned. Features of all other examples stay as they are: a new feature
        is 0 for those learned before, and so is its weight. O(size^2)."""

    cdef int attach(self, Piece piece, examples) except -1:
        """What a call is about, for this map and, on pieces below the call's, for those below: O(depth)."""
        cdef Py_ssize_t level
        piece.source = examples
        piece.source_data = NULL if self.sparse else array_data(examples)
        for level in range(self.depth):  # no-cython-lint
            if piece.under is None:
                piece.under = Piece()
            piece = piece.under

    cdef void admit_below(self, Piece piece, Py_ssize_t levels) noexcept nogil:
        """A row of pieces so far below is being learned: O(levels)."""
        if levels:
            self.admit_below(piece.under, levels - 1)
        else:
            self.admit(piece)

    # ---- For Python ---------------------------------------------------------------------------

    def __call__(self, examples):
        """Features of all rows of an array, or of sparse rows, shape (n, size); the map learns nothing."""
        cdef Piece piece = Piece()
        cdef Py_ssize_t n = len(examples), first
        cdef double* out
        features = np.zeros((n + 1, self.size))
        out = <double*> array_data(features)
        self.attach(piece, examples)
        for first in range(0, n, 256):
            self.map_rows(piece, first, min(256, n - first), False, out + first * self.size, self.size)
        return features[:n]

    def leaves(self):
        """The maps that this one is made of, in the order of their features. O(maps)."""
        return [self]

    def widened(self, Py_ssize_t extra, double fill):
        """(indices that today's features will have, features that there will be, state) for examples with so many more
        columns, which held the value `fill` in all of them so far. O(size)."""
        places, size, state = [], 0, {}
        for leaf in self.leaves():
            places.append(size + np.arange(leaf.size))
            size += leaf.size + (extra if isinstance(leaf, LinearMap) else 0)
            own = state_of(leaf)
            leaf.widen(own, extra, fill)
            state.update({leaf.prefix + key: value for key, value in own.items()})
        return np.concatenate(places), size, state

    def widen(self, state, Py_ssize_t extra, double fill):
        """Change the state of a map that is made of no others in the same way. O(its size)."""

    def _check(self):
        """Assert every invariant."""


@cython.final
cdef class LinearMap(FeatureMap):
    """sqrt(scale) x."""

    cdef double factor                      # phi(x) = factor x

    def __init__(self, examples, double scale):
        FeatureMap.__init__(self, examples, examples[0])
        self.factor = sqrt(scale)

    cdef int map_rows(self, Piece piece, Py_ssize_t first, Py_ssize_t m, bint learning, double* out,
                      Py_ssize_t stride) except -1:
        cdef Py_ssize_t i, k
        cdef Rows rows
        if self.sparse:
            rows = piece.source
            for i in range(m):
                memset(out + i * stride, 0, self.size * sizeof(double))
                for k in range(rows.start[first + i], rows.start[first + i + 1]):
                    out[i * stride + rows.index[k]] = self.factor * rows.value[k]
            return 0
        for i in range(m):
            if self.single:
                ok_widen(<const float*> (piece.source_data + (first + i) * self.row_bytes), out + i * stride, self.size)
            else:
                memcpy(out + i * stride, piece.source_data + (first + i) * self.row_bytes, self.row_bytes)
            if self.factor != 1.0:
                ok_scale_row(out + i * stride, self.factor, self.size)


@cython.final
cdef class ConstantMap(FeatureMap):
    """sqrt(value)."""

    cdef double value                       # of the one feature

    def __init__(self, examples, double value):
        FeatureMap.__init__(self, examples, 1)
        self.value = sqrt(value)

    cdef int map_rows(self, Piece piece, Py_ssize_t first, Py_ssize_t m, bint learning, double* out,
                      Py_ssize_t stride) except -1:
        cdef Py_ssize_t i
        for i in range(m):
            out[i * stride] = self.value


cdef multiply(Piece piece, left, right, out):
    """left @ right into an array of doubles, by a product in the precision of `right`."""
    cdef Py_ssize_t rows = left.shape[0], columns = right.shape[1]
    if right.dtype == DOUBLE:
        matmul(left, right, out)
        return
    product = piece.array(piece.buffer(WIDENED, rows * columns * 4), rows, columns, SINGLE)
    matmul(left, right, product)
    out[:] = product


@cython.final
cdef class NormalizedMap(FeatureMap):
    """sqrt(scale) phi(x) / |phi(x)|, and 0 where that is 0."""

    FIELDS = Inlined("inner"),

    cdef readonly FeatureMap inner          # whose features are divided by their length,
    cdef double factor                      # and multiplied by this

    def __init__(self, FeatureMap inner, double scale):
        FeatureMap.__init__(self, (inner.n_features, inner.sparse, inner.single), inner.size)
        self.inner = inner
        self.factor = sqrt(scale)
        self.depth = inner.depth

    cdef int map_rows(self, Piece piece, Py_ssize_t first, Py_ssize_t m, bint learning, double* out,
                      Py_ssize_t stride) except -1:
        cdef Py_ssize_t i
        cdef double square
        self.inner.map_rows(piece, first, m, learning, out, stride)
        for i in range(m):
            square = ok_dot(out + i * stride, out + i * stride, self.size)
            if square > 0.0:
                ok_scale_row(out + i * stride, self.factor / sqrt(square), self.size)

    cdef bint grows(self) noexcept nogil:
        return self.inner.grows()

    cdef change(self, Piece piece, Py_ssize_t first):
        return self.inner.change(piece, first)

    cdef void carry_out_change(self) noexcept:
        self.inner.carry_out_change()

    cdef void admit(self, Piece piece) noexcept nogil:
        self.inner.admit(piece)

    def leaves(self):
        return self.inner.leaves()


@cython.final
cdef class SumMap(FeatureMap):
    """Features of two maps, one after the other: the sum of their kernels."""

    FIELDS = Inlined("left"), Inlined("right")

    cdef readonly FeatureMap left           # whose features come first,
    cdef readonly FeatureMap right          # and whose come next

    def __init__(self, FeatureMap left, FeatureMap right):
        FeatureMap.__init__(self, (left.n_features, left.sparse, left.single), left.size + right.size)
        self.left, self.right = left, right
        self.depth = left.depth + right.depth

    cdef Piece rows_of_right(self, Piece piece):
        """What is below that of the left one, about the same rows."""
        cdef Piece below = piece
        cdef Py_ssize_t level
        for level in range(self.left.depth):  # no-cython-lint
            below = below.under
        below.source, below.source_data = piece.source, piece.source_data
        return below

    cdef int map_rows(self, Piece piece, Py_ssize_t first, Py_ssize_t m, bint learning, double* out,
                      Py_ssize_t stride) except -1:
        self.left.map_rows(piece, first, m, learning, out, stride)
        self.right.map_rows(self.rows_of_right(piece), first, m, learning, out + self.left.size, stride)

    cdef bint grows(self) noexcept nogil:
        return self.left.grows() or self.right.grows()

    cdef change(self, Piece piece, Py_ssize_t first):
        left, right = self.left.change(piece, first), self.right.change(self.rows_of_right(piece), first)
        if left is None and right is None:
            return None
        change = np.eye(self.size)
        if left is not None:
            change[:self.left.size, :self.left.size] = left
        if right is not None:
            change[self.left.size:, self.left.size:] = right
        return change

    cdef void carry_out_change(self) noexcept:
        self.left.carry_out_change()
        self.right.carry_out_change()

    cdef void admit(self, Piece piece) noexcept nogil:
        self.left.admit(piece)
        self.right.admit_below(piece, self.left.depth)

    def leaves(self):
        return self.left.leaves() + self.right.leaves()


# ---- Random Fourier features ---------------------------------------------------------------------

@cython.final
cdef class FourierMap(FeatureMap):
    """sqrt(scale / n) (cos <w_1, x>, ..., cos <w_n, x>, sin <w_1, x>, ..., sin <w_n, x>), Rahimi and Recht.

    `draw` gives frequencies (columns, n) of examples with so many columns; those of one do not depend on how many there
    are. Names in the state begin with `name`.
    """

    # Of the frequencies, which follow from the seed, one is kept to see whether they still do.
    FIELDS = Array("phases", np.float64, ("half",)), Array("frequency", np.float64, ("n_features",))

    cdef readonly str prefix                # of names in the state
    cdef readonly Py_ssize_t half           # phases
    cdef object draw                        # frequencies of so many columns
    cdef readonly object frequencies        # (n_features, size / 2)
    cdef object of_rows                     # the same in the precision of rows
    cdef readonly object phases             # (size / 2,): added to those of every example
    cdef const double* frequency            # of `frequencies`
    cdef const double* phase                # of `phases`
    cdef bint shifted                       # whether a phase is not 0
    cdef double factor                      # of cosines and sines

    def __init__(self, examples, double scale, Py_ssize_t size, draw, str name):
        FeatureMap.__init__(self, examples, size)
        self.draw = draw
        self.frequencies = self.draw(self.n_features)
        self.of_rows = self.frequencies.astype(self.dtype, copy=False)
        self.frequency = <const double*> array_data(self.frequencies)
        self.factor = sqrt(2.0 * scale / size)
        self.prefix, self.half = f"{name}.", size // 2
        self.set_phases(np.zeros(self.half))

    def set_phases(self, phases):
        """Phases that all examples have beside their own: those of features that came late and were the same before."""
        self.phases = phases
        self.phase = <const double*> array_data(phases)
        self.shifted = bool(phases.any())

    cdef int map_rows(self, Piece piece, Py_ssize_t first, Py_ssize_t m, bint learning, double* out,
                      Py_ssize_t stride) except -1:
        cdef Py_ssize_t i, n = self.size // 2
        cdef bint by_row = self.sparse or m == 1
        if not by_row:
            examples = piece.array(<char*> piece.source_data + first * self.row_bytes, m, self.n_features, self.dtype)
            multiply(piece, examples, self.of_rows, piece.array(<char*> out, m, stride, DOUBLE)[:, :n])
        with nogil:
            for i in range(m):
                if by_row:
                    self.row_phases(piece, first + i, out + i * stride)
                if self.shifted:
                    ok_add_row(out + i * stride, self.phase, n)
                ok_fourier_row(out + i * stride, out + i * stride + n, self.factor, n)

    cdef void row_phases(self, Piece piece, Py_ssize_t i, double* out) noexcept nogil:
        """<w_j, x_i> for all j, feature by feature."""
        cdef Py_ssize_t j, k, n = self.size // 2
        cdef const char* x = piece.source_data + i * self.row_bytes
        cdef double value
        memset(out, 0, n * sizeof(double))
        if self.sparse:
            for k in range((<Rows> piece.source).start[i], (<Rows> piece.source).start[i + 1]):
                ok_axpy((<Rows> piece.source).value[k], self.frequency + (<Rows> piece.source).index[k] * n, out, n)
            return
        for j in range(self.n_features):
            value = (<const float*> x)[j] if self.single else (<const double*> x)[j]
            if value != 0.0:
                ok_axpy(value, self.frequency + j * n, out, n)

    def stored(self):
        return {"frequency": self.frequencies[:, 0]}

    def fits(self, state):
        """ValueError if the seed gives other frequencies here."""
        if not np.array_equal(state["frequency"], self.frequencies[:, 0]):
            raise ValueError("the random frequencies are not those that the seed gives here")

    def resume(self, state):
        self.set_phases(state["phases"].copy())

    def widen(self, state, Py_ssize_t extra, double fill):
        frequencies = self.draw(self.n_features + extra)
        state["frequency"] = frequencies[:, 0].copy()
        state["phases"] = self.phases - fill * frequencies[self.n_features:].sum(axis=0)


# ---- Nystroem features: kernel values with inducing points ---------------------------------------

# Residual variances, of k(x, x), up to which a row counts as a combination of inducing points: while they come, where
# rounding of the kernel is all that is left, and when they are fixed, so that features do not amplify that rounding. By
# precision.
DEPENDENT = {DOUBLE: (1e-13, 1e-10), SINGLE: (1e-7, 1e-6)}

cdef enum:
    BLOCK = 64          # features that are computed together


@cython.final
cdef class NystroemMap(FeatureMap):
    """sqrt(scale) L^-1 k(D, x), where K_DD = L L^T and D are inducing points: the first rows that are learned.

    While rows come, each that is no combination of these points becomes one, until there are `size`: f is exact. The
    new feature is what the point does not share with those before it, so it is 0 for all of them. When there are
    enough, and another row comes, points that others nearly span are given up, and those that stay are fixed.
    """

    FIELDS = Array("factor", np.float64, ("n", "n"), lower_triangular), Flag("fixed"), Inlined("inducing")

    cdef readonly str prefix                # of names in the state
    cdef tuple arguments                    # of the constructor, for a successor
    cdef NystroemMap successor              # what the map is about to be; None for what it is
    cdef readonly Dictionary inducing       # the points
    cdef readonly Factor factor             # L
    cdef readonly object inverse            # of L once the points are fixed; None while they come
    cdef const double* inverse_data         # of `inverse`
    cdef object of_rows                     # the inverse in the precision of rows
    cdef double dependent                   # residual variances, of k(x, x), of what inducing points span
    cdef double nearly_dependent            # and of what they nearly span
    cdef double scale                       # of features
    cdef bint tells_examples_apart          # Noise: an equal row is another example

    def __init__(self, examples, double scale, ops, Py_ssize_t size, str name):
        FeatureMap.__init__(self, examples, size)
        self.arguments = examples, scale, ops, size, name
        self.dependent, self.nearly_dependent = DEPENDENT[self.dtype]
        self.depth = 1
        self.scale = sqrt(scale)
        self.prefix = f"{name}."
        self.tells_examples_apart = any(op["op"] == "noise" for op in ops)
        self.begin(None)

    cdef int begin(self, origin) except -1:
        """No points, about an origin; to be called before the map is in use, see `successor`."""
        cdef Program program = Program(self.arguments[2])
        program.start(self.n_features, DOUBLE if self.sparse else self.dtype, origin)
        if self.sparse:
            self.inducing = SparsePoints(self.n_features, program)
        else:
            self.inducing = DensePoints(self.n_features, self.dtype, origin, program)
        self.inducing.observer.most = self.size
        self.factor = Factor(0)
        self.inverse = None

    cdef bint grows(self) noexcept nogil:
        return self.inverse is None

    # ---- Rows ---------------------------------------------------------------------------------

    cdef int map_rows(self, Piece piece, Py_ssize_t first, Py_ssize_t m, bint learning, double* out,
                      Py_ssize_t stride) except -1:
        cdef Piece below = piece.under
        cdef Py_ssize_t i, n
        below.joins = False
        learning = learning and self.grows()
        if learning and self.inducing.stop == 0 and not self.sparse:
            row = piece.array(<char*> piece.source_data + first * self.row_bytes, 1, self.n_features, self.dtype)[0]
            origin = self.inducing.program.choose_origin(row)
            if origin is not self.inducing.program.origin:
                self.successor = NystroemMap(*self.arguments)
                self.successor.begin(origin)
                self.carry_out_change()
        below.source, below.source_data = piece.source, piece.source_data
        self.inducing.open(below, first, m, learning, False)
        if learning and self.inducing.capacity > self.factor.capacity:
            self.factor = self.factor.with_capacity(self.inducing.capacity)
        n = self.inducing.stop
        if self.grows():
            self.grow_rows(below, m, learning, out, stride)
        else:
            self.project_rows(below, m, out, stride)
        with nogil:
            for i in range(m):
                memset(out + i * stride + n + below.joins, 0, (self.size - n - below.joins) * sizeof(double))
                if self.scale != 1.0:
                    ok_scale_row(out + i * stride, self.scale, n + below.joins)
                if not isfinite(below.own[i] + below.square[i]):          # too large for the kernel
                    out[i * stride] = NAN

    cdef double read(self, Piece below, Py_ssize_t i, double* out) noexcept nogil:
        """Coordinates L^-1 k(D, x) of example i, O(n^2); return what of k(x, x) the points do not determine."""
        cdef Py_ssize_t n = self.inducing.stop
        self.inducing.values_into(below, i, out)
        self.factor.solve(out, 0)
        return below.own[i] - ok_dot(out, out, n)

    cdef int grow_rows(self, Piece below, Py_ssize_t m, bint learning, double* out, Py_ssize_t stride) except -1:
        """Features while points come; a row that is learned and is no combination of them has one more."""
        cdef Py_ssize_t i, n = self.inducing.stop, twin
        cdef double rest
        below.coordinates = <double*> below.buffer(COORDINATES, (self.inducing.program.depth * n + 1) * sizeof(double))
        with nogil:
            for i in range(m):
                rest = self.read(below, i, below.coordinates)
                memcpy(out + i * stride, below.coordinates, n * sizeof(double))
                if not learning:
                    continue
                twin = self.twin(below)
                if twin >= 0:
                    memcpy(out + i * stride, self.factor.row(twin), n * sizeof(double))
                elif n < self.size and rest > self.dependent * below.own[i]:
                    below.joins = True
                    out[i * stride + n] = below.coordinates[n] = sqrt(rest)

    cdef Py_ssize_t twin(self, Piece below) noexcept nogil:
        """The point that is equal to the only row of a piece, or -1."""
        cdef Py_ssize_t slot
        if not self.tells_examples_apart:
            for slot in range(self.inducing.stop):
                if self.inducing.is_at(below, 0, slot):
                    return slot
        return -1

    cdef int project_rows(self, Piece below, Py_ssize_t m, double* out, Py_ssize_t stride) except -1:
        """Features once the points are fixed: kernel rows times the inverse of L, O(m n^2)."""
        cdef Py_ssize_t i, j, n = self.inducing.stop
        below.coordinates = <double*> below.buffer(COORDINATES, (m + self.inducing.program.depth) * n * sizeof(double))
        with nogil:
            for i in range(m):
                self.inducing.values_into(below, i, below.coordinates + i * n)
            if m == 1:
                for j in range(n):
                    out[j] = ok_dot(self.inverse_data + j * n, below.coordinates, j + 1)
        if m > 1:
            values = below.array(<char*> below.coordinates, m, n, DOUBLE)
            features = below.array(<char*> out, m, stride, DOUBLE)
            if self.single:
                values = as_type(values, SINGLE)
            for j in range(0, n, BLOCK):                # the inverse is triangular: blocks above the diagonal are 0
                last = min(j + BLOCK, n)
                multiply(below, values[:, :last], self.of_rows[j:last, :last].T, features[:, j:last])

    # ---- Points come, and are fixed -----------------------------------------------------------

    cdef void admit(self, Piece piece) noexcept nogil:
        cdef Py_ssize_t slot, n = self.inducing.stop
        if not piece.under.joins:
            return
        piece.under.joins = False
        slot = self.inducing.admit(piece.under, 0, n + 1)
        self.inducing.hold(slot)
        self.inducing.keep_cached(piece.under, 0, slot)
        self.factor.append(piece.under.coordinates, piece.under.coordinates[n])

    cdef change(self, Piece piece, Py_ssize_t first):
        """When all points are there, and a row comes that is no combination of them: fix them."""
        cdef Piece below = piece.under
        cdef Py_ssize_t capacity
        cdef double rest
        self.successor = None
        if not self.grows() or self.inducing.stop < self.size:
            return None
        below.source, below.source_data = piece.source, piece.source_data
        self.inducing.open(below, first, 1, False, False)
        capacity = self.inducing.program.depth * self.size
        below.coordinates = <double*> below.buffer(COORDINATES, capacity * sizeof(double))
        rest = self.read(below, 0, below.coordinates)
        if self.twin(below) >= 0 or not rest > self.dependent * below.own[0]:
            return None
        return self.fix()

    cdef fix(self):
        """Prepare to give up points that others nearly span; what that does to features, or None. O(n^3)."""
        cdef Py_ssize_t j, n = self.inducing.stop
        cdef Factor factor = Factor(n)
        cdef double* row
        gram, kept = self.factor.gram(), []
        for j in range(n):
            row = factor.row(factor.n)
            factor.array[factor.n, :factor.n] = gram[j, kept]
            factor.solve(row, 0)
            rest = gram[j, j] - ok_dot(row, row, factor.n)
            if rest > self.nearly_dependent * gram[j, j]:
                factor.append(row, sqrt(rest))
                kept.append(j)
        if len(kept) == n:
            factor = self.factor
        successor = NystroemMap(*self.arguments)
        state = {**self.inducing.points_state(np.array(kept)), "birthdays": np.arange(1, len(kept) + 1),
                 "origin": self.inducing.program.origin, "factor": factor.lower(), "fixed": True}
        successor.resume(state)
        successor.inducing.resume(state)
        self.successor = successor
        if len(kept) == n:
            return None
        change = np.zeros((self.size, self.size))
        features = self.factor.lower()[kept]
        factor.solve_columns_into(features)
        change[:len(kept), :n] = features
        return change

    cdef void carry_out_change(self) noexcept:
        """Be what the successor is."""
        cdef NystroemMap next = self.successor
        if next is None:
            return
        self.successor = None
        self.inducing, self.factor = next.inducing, next.factor
        self.inverse, self.inverse_data, self.of_rows = next.inverse, next.inverse_data, next.of_rows

    def set_inverse(self):
        """The points are fixed, and L is."""
        inverse = self.factor.inverse()
        self.of_rows = inverse.astype(self.dtype, copy=False)
        self.inverse_data = <const double*> array_data(inverse)
        self.inverse = inverse

    # ---- For Python ---------------------------------------------------------------------------

    def points(self):
        """The inducing points, oldest first."""
        return self.inducing.points_at(self.inducing.slots())

    def dual(self, weights):
        """Coefficients of the points of functions with these weights, (functions, points)."""
        coefficients = weights[:, :self.factor.n].T.copy("C")
        self.factor.solve_transposed_into(coefficients)
        return coefficients.T / self.scale

    def stored(self):
        return {"factor": self.factor.lower(), "fixed": not self.grows()}

    def fits(self, state):
        """ValueError for more points than there may be, or for others than the first, second, ... one."""
        n = len(state["factor"])
        if n > self.size or not np.array_equal(state["birthdays"], np.arange(1, n + 1)):
            raise ValueError(f"the factor, or its points, do not fit a map of size {self.size}")
        if state["fixed"] and n == 0:
            raise ValueError("points are fixed, and there are none")

    def resume(self, state):
        """Begin anew about the origin of the state; the points are joined to this."""
        self.begin(state.get("origin"))
        self.factor = Factor(len(state["factor"]))
        self.factor.load(state["factor"])
        if state["fixed"]:
            self.set_inverse()

    def widen(self, state, Py_ssize_t extra, double fill):
        origin = state.get("origin", np.zeros(self.n_features, dtype=self.dtype))
        state["origin"] = np.append(origin, np.full(extra, fill, dtype=self.dtype))
        state["points"] = np.pad(state["points"], [(0, 0), (0, extra)])

    def _check(self):
        n = self.inducing.stop
        self.inducing._check()
        self.factor._check()
        assert self.inducing.start == 0 and self.inducing.held == n == self.factor.n <= self.size
        assert self.inverse is None or self.inverse.shape == (n, n)
