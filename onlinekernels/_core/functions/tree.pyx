"""Functions of additive kernels: trees, one per coordinate, that answer f_j(x) = sum_i a_i K(p_i, x) in O(log m) (H part 1).

A node keeps, for each child, `dims` sums per output and channel (additive.h).  At x, children left and right of the one
that x falls into contribute through their sums, whatever lies below them; that one is looked into.  All coordinates descend
together, level by level, and each asks for its next block before the others take their turn, so that the misses overlap.
"""
import numpy as np
from onlinekernels._core.formulas.additive cimport *
from onlinekernels._core.formulas.frame cimport MAX_CHANNELS, Frame, frame_row
from onlinekernels._core.formulas.vecmath cimport ok_dot
from onlinekernels._core.functions.balanced cimport CHILD, FAN, HIGH, KEYS, LEAF, LOW, NOWHERE, SUMS, VALUES, BalancedTree


cdef class Tree(BalancedTree):
    """Sums over coordinates of f_j(x_j) = sum_i a_i K(p_ij, x_j).

    Parameters
    ----------
    kernel : tuple
        ("spline", order), ("exponential", rate), ("matern", rate, smoothness) or ("own", left, right) with lists of
        functions of arrays.
    n_coordinates : int
        Trees; a term has one key in each.
    rows : int
        Coefficients of a term: channels * outputs.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinekernels._core.functions.tree import Tree
    >>> tree = Tree(("exponential", 1.0))
    >>> tree.add(np.array([2.0]), np.array([0.5]))
    >>> tree.add(np.array([3.0]), np.array([1.0]))
    >>> tree.evaluate(np.array([2.0]))              # 0.5 + exp(-1)
    array([0.86787944])
    """

    def __init__(self, kernel, Py_ssize_t n_coordinates=1, Py_ssize_t rows=1):
        self.kernel = additive_kernel(kernel)
        self.functions = [*kernel[1], *kernel[2]] if kernel[0] == "own" else []
        BalancedTree.__init__(self, n_coordinates, rows, len(self.functions), ok_additive_dims(&self.kernel))

    # ---- Sums ---------------------------------------------------------------------------------

    cdef void refresh(self, int block, Py_ssize_t at, int level, const int* touched, Py_ssize_t n,
                      bint* everything) noexcept nogil:
        """Compute a node's entry for its child, which is at `level`, from the child."""
        cdef double* node = self.node(block)
        cdef int child = (<int*> (node + CHILD))[at]
        cdef double* below = self.leaf(child) if level == 0 else self.node(child)
        cdef Py_ssize_t i, row, s, size = (<int*> below)[0]
        cdef double low = below[KEYS] if level == 0 else below[LOW]
        cdef double high = below[KEYS + size - 1] if level == 0 else below[HIGH + size - 1]
        cdef double work[OK_MAX_DIMS * LEAF]
        cdef const double* basis = work
        cdef Py_ssize_t width = size            # of a row of the basis
        cdef double* sums
        everything[0] |= low != node[LOW + at] or high != node[HIGH + at]
        node[LOW + at] = low
        node[HIGH + at] = high
        if level == 0 and self.facts:
            basis, width = below + VALUES + self.rows * LEAF, LEAF
        elif level == 0:
            ok_additive_basis(&self.kernel, low, high, below + KEYS, work, size)
        elif self.kernel.code == OK_MATERN:
            ok_additive_shifts(&self.kernel, low, high, below + LOW, below + HIGH, work, FAN)
        if everything[0]:
            n = self.rows
        for i in range(n):
            row = i if everything[0] else touched[i]
            sums = node + SUMS + row * self.dims * FAN + at
            if level == 0:
                for s in range(self.dims):
                    sums[s * FAN] = ok_dot(basis + s * width, below + VALUES + row * LEAF, size)
            else:
                ok_additive_combine(&self.kernel, work, below + SUMS + row * self.dims * FAN, sums, FAN, FAN)

    cdef void fold(self, const Frame* frame) noexcept nogil:
        """Multiply the frame into all coefficients; rows are (channels, outputs)."""
        cdef Py_ssize_t i, j, y, at, outputs = self.rows // frame.channels
        cdef double stored[MAX_CHANNELS]
        cdef double* leaf
        cdef int channel
        for i in range(self.leaves.used):
            leaf = self.leaf(<int> i)
            for at in range((<int*> leaf)[0]):                  # -1 for a free block
                for y in range(outputs):
                    for channel in range(frame.channels):
                        stored[channel] = leaf[VALUES + (channel * outputs + y) * LEAF + at]
                    for channel in range(frame.channels):
                        leaf[VALUES + (channel * outputs + y) * LEAF + at] = frame_row(frame, channel, stored)
        for j in range(self.n_coordinates):
            if self.root[j] != NOWHERE:
                self.refresh_below(self.root[j], self.height[j])

    # ---- Evaluating ---------------------------------------------------------------------------

    cdef void evaluate_into(self, const double* x, Py_ssize_t rows, double* out, int* at) noexcept nogil:
        """out[row] = sum_j f_j(x_j) for the first `rows` rows; all coordinates descend together.

        x: a place for each coordinate, see `places`. at: scratch, where each coordinate's descent is.
        """
        cdef Py_ssize_t j, row
        cdef int step, highest = 0
        for row in range(rows):
            out[row] = 0.0
        for j in range(self.n_coordinates):
            at[j] = self.root[j]
            highest = max(highest, self.height[j])
        for step in range(highest + 1):
            for j in range(self.n_coordinates):
                if step < self.height[j]:
                    self.descend(j, x + j * self.stride, self.height[j] - step, self.node(at[j]), rows, out, at)
                elif step == self.height[j] and at[j] != NOWHERE:
                    self.look_into(x + j * self.stride, self.leaf(at[j]), rows, out)

    cdef void descend(self, Py_ssize_t j, const double* x, int level, const double* block, Py_ssize_t rows,
                      double* out, int* at) noexcept nogil:
        """Add what the children beside x contribute, and go on to the one that x falls into."""
        cdef double weights[OK_MAX_DIMS * FAN]
        cdef Py_ssize_t row, size = (<const int*> block)[0], span = self.dims * FAN
        cdef Py_ssize_t child = min(ok_count_below(block + HIGH, x[0], FAN), size - 1)
        at[j] = (<const int*> (block + CHILD))[child]
        if level > 1:
            ok_prefetch(self.node(at[j]), self.nodes.block if self.rows == 1 else SUMS)
        else:
            ok_prefetch(self.leaf(at[j]), self.leaves.block if self.rows == 1 else VALUES)
        if self.facts:
            ok_own_weights(&self.kernel, x, child, size, weights, FAN)
        else:
            ok_additive_weights(&self.kernel, x[0], block + LOW, block + HIGH, child, size, weights, FAN)
        for row in range(rows):
            out[row] += ok_dot(weights, block + SUMS + row * span, span)

    cdef void look_into(self, const double* x, const double* block, Py_ssize_t rows, double* out) noexcept nogil:
        """Add the keys of a leaf, one by one."""
        cdef double values[LEAF]
        cdef Py_ssize_t row, size = (<const int*> block)[0]
        if self.facts:
            ok_own_values(&self.kernel, x, block + KEYS, block + VALUES + self.rows * LEAF, LEAF, values, size)
        else:
            ok_additive_values(&self.kernel, x[0], block + KEYS, values, size)
        for row in range(rows):
            out[row] += ok_dot(values, block + VALUES + row * LEAF, size)

    cdef double value(self, const double* x, const double* z) noexcept nogil:
        """sum_j K(x_j, z_j)."""
        cdef double total = 0.0
        cdef Py_ssize_t j
        if self.facts:
            for j in range(self.n_coordinates):
                total += ok_own_value(&self.kernel, x + j * self.stride, z + j * self.stride)
        elif self.n_coordinates:
            ok_additive_row(&self.kernel, NULL, NULL, x, z, 1, self.n_coordinates, &total)
        return total

    # ---- From Python --------------------------------------------------------------------------

    def facts_of(self, x):
        """Values of the user's functions at an array of numbers, shape (facts, n)."""
        facts = np.empty((self.facts, len(x)))
        for i, function in enumerate(self.functions):
            values = np.asarray(function(x.copy()), dtype=np.float64)
            if values.shape not in ((), x.shape):
                raise ValueError(f"The functions of Additive must give one number for each one that they get. For {len(x)} "
                                 f"numbers, {function!r} gave an array of shape {values.shape}.")
            facts[i] = values
        return facts

    def places(self, x):
        """Rows of numbers, one per coordinate, as rows of places: each number and the facts about it."""
        x = np.asarray(x, dtype=np.float64)
        if not self.facts:
            return np.ascontiguousarray(x)
        places = np.vstack([x.reshape(1, -1), self.facts_of(x.ravel())]).T
        return np.ascontiguousarray(places).reshape(x.shape[0], -1)

    def add(self, const double[::1] x, const double[::1] values):
        """Add a term: its keys, one per coordinate, and its coefficients, one per row."""
        cdef const double[:, ::1] place
        self.check_shapes(x, values)
        self.reserve(1)
        place = self.places(np.asarray(x).reshape(1, -1))
        self.put(&place[0, 0], &values[0], self.all_rows, self.rows)

    def remove(self, const double[::1] x, const double[::1] values):
        """Remove a term that was added with the same arguments; KeyError if there is no such key."""
        cdef const double[:, ::1] place
        self.check_shapes(x, values)
        place = self.places(np.asarray(x).reshape(1, -1))
        if not self.has(&place[0, 0]):
            raise KeyError(f"no term has the keys {list(x)}")
        self.take(&place[0, 0], &values[0], self.all_rows, self.rows)

    cdef check_shapes(self, const double[::1] x, const double[::1] values):
        if x.shape[0] != self.n_coordinates or values.shape[0] != self.rows:
            raise ValueError(f"expected {self.n_coordinates} keys and {self.rows} values, "
                             f"got {x.shape[0]} and {values.shape[0]}")
        if not (np.isfinite(x).all() and np.isfinite(values).all()):
            raise ValueError("keys and values must be finite")

    def evaluate(self, const double[::1] x):
        """sum_j f_j(x_j), one number per row."""
        cdef double[::1] out = np.zeros(self.rows)
        cdef int[::1] at = np.zeros(self.n_coordinates, dtype=np.int32)
        cdef const double[:, ::1] place
        if x.shape[0] != self.n_coordinates:
            raise ValueError(f"expected {self.n_coordinates} coordinates, got {x.shape[0]}")
        place = self.places(np.asarray(x).reshape(1, -1))
        self.evaluate_into(&place[0, 0], self.rows, &out[0], &at[0])
        return np.asarray(out)

    def component(self, Py_ssize_t j, points):
        """f_j at all points, shape (len(points), rows)."""
        cdef const double[:, ::1] x = self.places(np.reshape(points, (-1, 1)))
        cdef double[:, ::1] out = np.zeros((x.shape[0], self.rows))
        cdef Py_ssize_t i
        cdef int[::1] at = np.zeros(self.n_coordinates, dtype=np.int32)
        cdef int level
        self.check_coordinate(j)
        if self.root[j] != NOWHERE:
            for i in range(x.shape[0]):
                at[j] = self.root[j]
                for level in range(self.height[j], 0, -1):
                    self.descend(j, &x[i, 0], level, self.node(at[j]), self.rows, &out[i, 0], &at[0])
                self.look_into(&x[i, 0], self.leaf(at[j]), self.rows, &out[i, 0])
        return np.asarray(out)
