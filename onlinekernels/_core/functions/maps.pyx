"""Feature maps: examples as rows of features, k(x, z) = <phi(x), phi(z)>.

With such a map f is a vector of weights over the features, whatever the number of examples.  Features of many rows come
from matrix products and one compiled pass; those of a single row do without numpy.
"""
import numpy as np
from libc.math cimport sqrt
from libc.string cimport memcpy, memset
from onlinekernels._core.arrays cimport array_data
from onlinekernels._core.formulas.vecmath cimport ok_dot, ok_scale_row, ok_widen
from onlinekernels._core.points.sparse cimport Rows
from onlinekernels._core.run.piece cimport WIDENED, Piece

DOUBLE, SINGLE = np.dtype(np.float64), np.dtype(np.float32)


cdef class FeatureMap:
    """phi(x), `size` numbers for every example x.

    Parameters
    ----------
    examples : tuple
        (number of features, whether rows are sparse, whether they are float32); otherwise they are float64.
    size : int

    It knows nothing of weights. Who uses it calls `make_ready(piece)` once, says what the call is about
    (piece.source, and for dense rows piece.source_data), and then for each piece of rows

    `map_rows(piece, first, m, learning, out, stride)`
        features of rows first, ..., first + m - 1 of the call's source into out[i * stride], ..., all `size` of them.
        out must have room for m + 1 rows. They are doubles, from products in the precision of the rows. Features of
        rows that are too large for the kernel are not finite. O(size d) a row, with inducing points O(size^2) more.

    A map may choose its features by the examples that it meets. As long as it `grows()`, pieces that are learned must
    have one row, and

    `change(piece, first)`
        just before row `first` is mapped to be learned: None, or a matrix B of shape (size, size) if the features change:
        then phi becomes B phi, and weights w become B w. O(size^2), O(size^3) for B. That is prepared, and happens with
    `carry_out_change()`
        once the weights are ready for it, or there is no matrix; it cannot fail. O(1);
    `admit(piece)`
        the row that was mapped last is being learned. Features of all other examples stay as they are: a new feature is 0
        for those learned before, and so is its weight. O(size^2).

    For Python there are `state`, `check_state` and `restore`; a map that has something to save implements them as
    `own_state`, `check_own` and `restore_own`, and has a name.
    """

    def __init__(self, examples, Py_ssize_t size):
        self.n_features, self.sparse, self.single = examples
        self.row_bytes = self.n_features * (4 if self.single else 8)
        self.dtype = SINGLE if self.single else DOUBLE
        self.size = size

    cdef int map_rows(self, Piece piece, Py_ssize_t first, Py_ssize_t m, bint learning, double* out,
                      Py_ssize_t stride) except -1:
        raise NotImplementedError

    cdef bint grows(self) noexcept nogil:
        return False

    cdef change(self, Piece piece, Py_ssize_t first):
        return None

    cdef void carry_out_change(self) noexcept:
        pass

    cdef void admit(self, Piece piece) noexcept nogil:
        pass

    cdef int make_ready(self, Piece piece) except -1:
        """Pieces below the call's, where it needs them: O(depth)."""
        cdef Py_ssize_t level
        for level in range(self.depth):  # no-cython-lint
            if piece.under is None:
                piece.under = Piece()
            piece = piece.under
        return 0

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
        self.make_ready(piece)
        piece.source = examples
        if not self.sparse:
            piece.source_data = array_data(examples)
        for first in range(0, n, 256):
            self.map_rows(piece, first, min(256, n - first), False, out + first * self.size, self.size)
        return features[:n]

    def leaves(self):
        """The maps that this one is made of, in the order of their features. O(maps)."""
        return [self]

    def widened(self, Py_ssize_t extra, double fill):
        """(places that today's features will have, features that there will be, state) for examples with so many more columns.

        These held the value `fill` in all of them so far. O(size).
        """
        places, size, state = [], 0, {}
        for leaf in self.leaves():
            places.append(size + np.arange(leaf.size))
            size += leaf.size + (extra if isinstance(leaf, LinearMap) else 0)
            own = leaf.own_state()
            leaf.widen(own, extra, fill)
            state.update({f"{leaf.name}.{key}": value for key, value in own.items()})
        return np.concatenate(places), size, state

    def state(self):
        """Named numbers and arrays that do not follow from the parameters. O(its size)."""
        return {f"{leaf.name}.{key}": value for leaf in self.leaves() for key, value in leaf.own_state().items()}

    def check_state(self, state):
        """ValueError unless a state fits. O(its size)."""
        for leaf in self.leaves():
            leaf.check_own(entries(state, leaf.name))

    def restore(self, state):
        """Continue from a state that has been checked. O(its size)."""
        for leaf in self.leaves():
            leaf.restore_own(entries(state, leaf.name))

    def own_state(self):
        """The same of a map that is made of no others. O(its size)."""
        return {}

    def check_own(self, state):
        """ValueError unless such a state fits: O(its size)."""
        pass

    def restore_own(self, state):
        """Continue from it: O(its size)."""
        pass

    def widen(self, state, Py_ssize_t extra, double fill):
        """Change its own state to that for examples with so many more columns, which held `fill` in all of them so far.

        O(its size).
        """

    def _check(self):
        """Assert every invariant."""


def entries(state, name):
    """Entries of a state that are about one map, without its name."""
    return {key.removeprefix(f"{name}."): value for key, value in state.items() if key.startswith(f"{name}.")}


cdef class LinearMap(FeatureMap):
    """sqrt(scale) x."""

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
        return 0


cdef class ConstantMap(FeatureMap):
    """sqrt(value)."""

    def __init__(self, examples, double value):
        FeatureMap.__init__(self, examples, 1)
        self.value = sqrt(value)

    cdef int map_rows(self, Piece piece, Py_ssize_t first, Py_ssize_t m, bint learning, double* out,
                      Py_ssize_t stride) except -1:
        cdef Py_ssize_t i
        for i in range(m):
            out[i * stride] = self.value
        return 0


cdef multiply(Piece piece, left, right, out):
    """left @ right into an array of doubles, by a product in the precision of `right`."""
    cdef Py_ssize_t rows = left.shape[0], columns = right.shape[1]
    if right.dtype == DOUBLE:
        np.matmul(left, right, out=out)
        return
    product = piece.array(piece.buffer(WIDENED, rows * columns * 4), rows, columns, SINGLE)
    np.matmul(left, right, out=product)
    out[:] = product


cdef class NormalizedMap(FeatureMap):
    """sqrt(scale) phi(x) / |phi(x)|, and 0 where that is 0."""

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
        return 0

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


cdef class JoinedMap(FeatureMap):
    """Features of two maps, one after the other: the sum of their kernels."""

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
        return 0

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
