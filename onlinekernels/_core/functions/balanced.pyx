"""Balanced trees, one per coordinate, whose nodes keep sums over all that is below them.

A tree holds the distinct values (keys) that one coordinate of the terms has, with the sum of the coefficients at each.

The structure is a B+ tree.  A comparison costs nothing beside a cache miss, so blocks are wide: 32 keys
in a leaf, 16 children in a node, each block one contiguous stretch of memory in an array that all
coordinates share.  A node keeps, for each child, its smallest and largest key and some sums per coefficient.

Sums are never updated, always recomputed from the children, from the changed leaf up.  So a removal
leaves no dust, rounding does not accumulate, and the sums are a function of keys, coefficients and
shape alone: a tree that is saved and loaded goes on bit for bit.
"""
import numpy as np
from libc.math cimport INFINITY
from libc.string cimport memcpy, memmove, memset
from onlinekernels._core.arrays cimport array_data
from onlinekernels._core.arrays import aligned_empty
from onlinekernels._core.formulas.additive cimport ok_count_below

cdef enum:
    MOST_TERMS = 0x7FFFFFFF     # with one key that are counted: where nothing bounds their number, none is taken out again


cdef class BalancedTree:
    """Keys and coefficients of every coordinate, in order; what the sums are is for a kind of tree to say.

    Parameters
    ----------
    n_coordinates : int
        Trees; a term has one key in each.
    rows : int
        Coefficients of a term: channels * outputs.
    facts : int
        Numbers that follow from a key and are kept beside it.
    dims : int
        Sums per block and coefficient.

    A kind implements

    `refresh(block, at, level, touched, n, everything)`
        a node's entry for a child, which is at `level`: its ends, and the sums of the n rows in `touched` or, if more has
        changed, of all;
    `facts_of(keys)`
        the facts about an array of keys, shape (facts, n).
    """

    def __init__(self, Py_ssize_t n_coordinates, Py_ssize_t rows, Py_ssize_t facts, int dims):
        self.n_coordinates, self.rows, self.facts, self.dims = n_coordinates, rows, facts, dims
        self.stride = 1 + facts
        self.leaves.block = VALUES + (rows + self.facts) * LEAF
        self.nodes.block = SUMS + rows * self.dims * FAN
        self.leaves.capacity = self.nodes.capacity = 0
        self.root_array = np.empty(max(n_coordinates, 1), dtype=np.int32)
        self.height_array = np.empty(max(n_coordinates, 1), dtype=np.int32)
        self.all_rows_array = np.arange(max(rows, 1), dtype=np.int32)
        self.root = <int*> array_data(self.root_array)
        self.height = <int*> array_data(self.height_array)
        self.all_rows = <const int*> array_data(self.all_rows_array)
        self.leaf_array = self.node_array = None
        self.clear()

    cdef void clear(self) noexcept nogil:
        """Forget all terms. O(coordinates)."""
        cdef Py_ssize_t j
        for j in range(self.n_coordinates):
            self.root[j] = NOWHERE
            self.height[j] = 0
        self.leaves.used = self.leaves.free = self.nodes.used = self.nodes.free = 0
        self.leaves.first_free = self.nodes.first_free = NOWHERE

    # ---- Memory -------------------------------------------------------------------------------

    cdef reserve(self, Py_ssize_t newcomers):
        """Make sure that so many terms can be added without any array moving.

        A block splits when it is full, into halves: a term splits at most one leaf of each coordinate,
        and leaves that are halves need LEAF / 2 terms more.  A new leaf may split one node of each level, and
        node splits are as rare among leaf splits as leaf splits among terms. O(blocks) when an array moves, which is rare.
        """
        cdef Py_ssize_t terms = newcomers * self.n_coordinates
        cdef Py_ssize_t leaves = min(terms, self.leaves.used + terms // (LEAF // 2)) + self.n_coordinates
        cdef Py_ssize_t nodes = 2 * min(leaves, self.nodes.used + leaves // (FAN // 2)) + 2 * self.n_coordinates
        self.leaf_array = self.grown(&self.leaves, self.leaf_array, leaves)
        self.node_array = self.grown(&self.nodes, self.node_array, nodes)

    cdef reserve_blocks(self, Py_ssize_t leaves, Py_ssize_t nodes):
        """The same for so many blocks."""
        self.leaf_array = self.grown(&self.leaves, self.leaf_array, leaves)
        self.node_array = self.grown(&self.nodes, self.node_array, nodes)

    cdef grown(self, Blocks* store, array, Py_ssize_t wanted):
        """An array with room for `wanted` new blocks. O(1), O(blocks) when it moves."""
        cdef Py_ssize_t needed = store.used - store.free + wanted, capacity
        cdef double* data
        if store.capacity - store.used + store.free >= wanted and array is not None:
            return array
        new = aligned_empty((max(needed, store.used + store.used // 2), store.block), np.dtype(float))
        if store.used:
            new[:store.used] = array[:store.used]
        capacity, data = len(new), <double*> array_data(new)
        store.capacity, store.data = capacity, data
        return new

    cdef int new_block(self, Blocks* store, Py_ssize_t padded) noexcept nogil:
        """An empty block; its first `padded` keys are infinity. O(its size)."""
        cdef int i
        cdef Py_ssize_t j
        cdef double* block
        if store.first_free != NOWHERE:
            i = store.first_free
            store.first_free = (<int*> (store.data + i * store.block))[1]
            store.free -= 1
        else:
            i = <int> store.used
            store.used += 1
        block = store.data + i * store.block
        memset(block, 0, store.block * sizeof(double))
        for j in range(padded):
            block[HEADER + j] = INFINITY
        return i

    cdef void free_block(self, Blocks* store, int i) noexcept nogil:
        """Chain a block to the free ones: O(1)."""
        cdef int* header = <int*> (store.data + i * store.block)
        header[0] = -1
        header[1] = store.first_free
        store.first_free = i
        store.free += 1

    # ---- Adding -------------------------------------------------------------------------------

    cdef void put(self, const double* x, const double* values, const int* touched, Py_ssize_t n) noexcept nogil:
        """Add a term with values[row] for the n rows in `touched`; room has been reserved. O(coordinates rows log n)."""
        cdef Py_ssize_t j
        for j in range(self.n_coordinates):
            self.put_key(j, x + j * self.stride, values, touched, n)

    cdef void put_key(self, Py_ssize_t j, const double* key, const double* values, const int* touched,
                      Py_ssize_t n) noexcept nogil:
        """The same in one tree: O(rows log n)."""
        cdef int sibling, above
        cdef bint everything = False
        if self.root[j] == NOWHERE:
            self.root[j] = self.new_block(&self.leaves, LEAF)
        sibling = self.insert_below(self.root[j], self.height[j], key, values, touched, n, &everything)
        if sibling != NOWHERE:                                  # the root has split
            above = self.new_block(&self.nodes, FAN)
            self.insert_child(above, 0, self.root[j], self.height[j])
            self.insert_child(above, 1, sibling, self.height[j])
            self.root[j] = above
            self.height[j] += 1

    cdef int insert_below(self, int block, int level, const double* key, const double* values, const int* touched,
                    Py_ssize_t n, bint* everything) noexcept nogil:
        """Add to a key below a block; return a new sibling to its right if it had to split.

        `everything` tells whether more than the touched rows has changed. O(rows level).
        """
        cdef double* node
        cdef int sibling, right = NOWHERE
        cdef Py_ssize_t at
        if level == 0:
            return self.insert_in_leaf(block, key, values, touched, n, everything)
        node = self.node(block)
        at = min(ok_count_below(node + HIGH, key[0], FAN), (<int*> node)[0] - 1)
        sibling = self.insert_below((<int*> (node + CHILD))[at], level - 1, key, values, touched, n, everything)
        self.refresh(block, at, level - 1, touched, n, everything)
        if sibling == NOWHERE:
            return NOWHERE
        if (<int*> node)[0] == FAN:
            right = self.split(block, level)
            if at >= (<int*> node)[0]:
                at -= (<int*> node)[0]
                self.insert_child(right, at + 1, sibling, level - 1)
                return right
        self.insert_child(block, at + 1, sibling, level - 1)
        return right

    cdef int insert_in_leaf(self, int block, const double* place, const double* values, const int* touched,
                            Py_ssize_t n, bint* everything) noexcept nogil:
        """The same in a leaf: O(n touched), O(rows) if the key is new."""
        cdef double* leaf = self.leaf(block)
        cdef int* counts = <int*> (leaf + COUNTS)
        cdef double key = place[0]
        cdef Py_ssize_t row, rest, size = (<int*> leaf)[0], at = ok_count_below(leaf + KEYS, key, LEAF)
        cdef int right = NOWHERE
        if at < size and leaf[KEYS + at] == key:
            counts[at] += counts[at] < MOST_TERMS
            for row in range(n):
                leaf[VALUES + touched[row] * LEAF + at] += values[row]
            return NOWHERE
        everything[0] = True
        if size == LEAF:
            right = self.split(block, 0)
            size = (<int*> leaf)[0]
            if at > size or at == size and key > self.leaf(right)[KEYS]:
                leaf, at = self.leaf(right), at - size
                counts, size = <int*> (leaf + COUNTS), (<int*> leaf)[0]
        rest = size - at
        memmove(leaf + KEYS + at + 1, leaf + KEYS + at, rest * sizeof(double))
        memmove(counts + at + 1, counts + at, rest * sizeof(int))
        for row in range(self.rows + self.facts):
            memmove(leaf + VALUES + row * LEAF + at + 1, leaf + VALUES + row * LEAF + at, rest * sizeof(double))
            leaf[VALUES + row * LEAF + at] = 0.0 if row < self.rows else place[1 + row - self.rows]
        leaf[KEYS + at] = key
        counts[at] = 1
        for row in range(n):
            leaf[VALUES + touched[row] * LEAF + at] += values[row]
        (<int*> leaf)[0] += 1
        return right

    cdef int split(self, int block, int level) noexcept nogil:
        """Move the upper half of a full block to a new one, which is returned. O(rows)."""
        cdef Blocks* store = &self.leaves if level == 0 else &self.nodes
        cdef Py_ssize_t width = LEAF if level == 0 else FAN
        cdef int right = self.new_block(store, width)
        self.move_entries(block, width // 2, width - width // 2, right, 0, level)
        return right

    cdef void move_entries(self, int source, Py_ssize_t first, Py_ssize_t n, int target, Py_ssize_t at,
                           int level) noexcept nogil:
        """Move the last n entries of a block to the end of another, which has `at` so far. O(rows)."""
        cdef Py_ssize_t i, row, rows, width = LEAF if level == 0 else FAN
        cdef double* a = self.leaf(source) if level == 0 else self.node(source)
        cdef double* b = self.leaf(target) if level == 0 else self.node(target)
        cdef Py_ssize_t ints = COUNTS if level == 0 else CHILD
        cdef Py_ssize_t rest = VALUES if level == 0 else SUMS
        rows = self.rows + self.facts if level == 0 else self.rows * self.dims
        memcpy(b + HEADER + at, a + HEADER + first, n * sizeof(double))        # KEYS or HIGH
        if level > 0:
            memcpy(b + LOW + at, a + LOW + first, n * sizeof(double))
        memcpy(<int*> (b + ints) + at, <int*> (a + ints) + first, n * sizeof(int))
        for row in range(rows):
            memcpy(b + rest + row * width + at, a + rest + row * width + first, n * sizeof(double))
            memset(a + rest + row * width + first, 0, n * sizeof(double))
        for i in range(n):
            a[HEADER + first + i] = INFINITY
        (<int*> a)[0] = <int> first
        (<int*> b)[0] = <int> (at + n)

    cdef void insert_child(self, int block, Py_ssize_t at, int child, int level) noexcept nogil:
        """Make room for a child, which is at `level`, and compute its entry. O(rows)."""
        cdef double* node = self.node(block)
        cdef Py_ssize_t row, rest = (<int*> node)[0] - at
        cdef int* children = <int*> (node + CHILD)
        cdef bint everything = True
        memmove(node + HIGH + at + 1, node + HIGH + at, rest * sizeof(double))
        memmove(node + LOW + at + 1, node + LOW + at, rest * sizeof(double))
        memmove(children + at + 1, children + at, rest * sizeof(int))
        for row in range(self.rows * self.dims):
            memmove(node + SUMS + row * FAN + at + 1, node + SUMS + row * FAN + at, rest * sizeof(double))
        children[at] = child
        (<int*> node)[0] += 1
        self.refresh(block, at, level, self.all_rows, self.rows, &everything)

    cdef void refresh(self, int block, Py_ssize_t at, int level, const int* touched, Py_ssize_t n,
                      bint* everything) noexcept nogil:
        pass

    cdef void refresh_below(self, int block, int level) noexcept nogil:
        """Compute all sums from the leaves up. O(rows blocks)."""
        cdef Py_ssize_t at
        cdef bint everything = True
        if level == 0:
            return
        for at in range((<int*> self.node(block))[0]):
            self.refresh_below((<int*> (self.node(block) + CHILD))[at], level - 1)
            self.refresh(block, at, level - 1, self.all_rows, self.rows, &everything)

    # ---- Removing -----------------------------------------------------------------------------

    cdef bint has(self, const double* x) noexcept nogil:
        """Whether every coordinate has its key. O(coordinates log n)."""
        cdef Py_ssize_t j, at
        cdef int block, level
        cdef double* data
        for j in range(self.n_coordinates):
            block = self.root[j]
            if block == NOWHERE:
                return False
            for level in range(self.height[j], 0, -1):  # no-cython-lint
                data = self.node(block)
                at = min(ok_count_below(data + HIGH, x[j * self.stride], FAN), (<int*> data)[0] - 1)
                block = (<int*> (data + CHILD))[at]
            data = self.leaf(block)
            at = ok_count_below(data + KEYS, x[j * self.stride], LEAF)
            if at >= (<int*> data)[0] or data[KEYS + at] != x[j * self.stride]:
                return False
        return True

    cdef void take(self, const double* x, const double* values, const int* touched, Py_ssize_t n) noexcept nogil:
        """Remove a term that was added with these values; every coordinate has its key. O(coordinates rows log n)."""
        cdef Py_ssize_t j
        cdef int block
        cdef bint everything
        for j in range(self.n_coordinates):
            everything = False
            self.remove_below(self.root[j], self.height[j], x[j * self.stride], values, touched, n, &everything)
            while self.height[j] > 0 and self.size_of(self.root[j], self.height[j]) == 1:
                block = self.root[j]
                self.root[j] = (<int*> (self.node(block) + CHILD))[0]
                self.height[j] -= 1
                self.free_block(&self.nodes, block)
            if self.height[j] == 0 and self.size_of(self.root[j], 0) == 0:
                self.free_block(&self.leaves, self.root[j])
                self.root[j] = NOWHERE

    cdef void remove_below(self, int block, int level, double key, const double* values, const int* touched,
                     Py_ssize_t n, bint* everything) noexcept nogil:
        """Remove from a key below a block; small children join a neighbour, empty ones go. O(rows level)."""
        cdef double* node
        cdef Py_ssize_t at, before
        cdef int child
        if level == 0:
            before = self.size_of(block, 0)
            self.remove_in_leaf(block, key, values, touched, n)
            everything[0] |= before != self.size_of(block, 0)
            return
        node = self.node(block)
        at = min(ok_count_below(node + HIGH, key, FAN), (<int*> node)[0] - 1)
        child = (<int*> (node + CHILD))[at]
        self.remove_below(child, level - 1, key, values, touched, n, everything)
        if self.size_of(child, level - 1) == 0:
            self.free_block(&self.leaves if level == 1 else &self.nodes, child)
            self.remove_child(block, at)
            everything[0] = True
        elif self.merge(block, at, level - 1) or at > 0 and self.merge(block, at - 1, level - 1):
            everything[0] = True
        else:
            self.refresh(block, at, level - 1, touched, n, everything)

    cdef void remove_in_leaf(self, int block, double key, const double* values, const int* touched,
                             Py_ssize_t n) noexcept nogil:
        """The same in a leaf: O(n touched), O(rows) if the key goes."""
        cdef double* leaf = self.leaf(block)
        cdef int* counts = <int*> (leaf + COUNTS)
        cdef Py_ssize_t row, rest, size = (<int*> leaf)[0], at = ok_count_below(leaf + KEYS, key, LEAF)
        counts[at] -= 1
        if counts[at] > 0:
            for row in range(n):
                leaf[VALUES + touched[row] * LEAF + at] -= values[row]
            return
        rest = size - at - 1                                    # the key goes, with all that rounding left
        memmove(leaf + KEYS + at, leaf + KEYS + at + 1, rest * sizeof(double))
        memmove(counts + at, counts + at + 1, rest * sizeof(int))
        for row in range(self.rows + self.facts):
            memmove(leaf + VALUES + row * LEAF + at, leaf + VALUES + row * LEAF + at + 1, rest * sizeof(double))
            leaf[VALUES + row * LEAF + size - 1] = 0.0
        leaf[KEYS + size - 1] = INFINITY
        (<int*> leaf)[0] -= 1

    cdef void remove_child(self, int block, Py_ssize_t at) noexcept nogil:
        """Take a child's entry out of a node. O(rows)."""
        cdef double* node = self.node(block)
        cdef int* children = <int*> (node + CHILD)
        cdef Py_ssize_t row, size = (<int*> node)[0], rest = size - at - 1
        memmove(node + HIGH + at, node + HIGH + at + 1, rest * sizeof(double))
        memmove(node + LOW + at, node + LOW + at + 1, rest * sizeof(double))
        memmove(children + at, children + at + 1, rest * sizeof(int))
        for row in range(self.rows * self.dims):
            memmove(node + SUMS + row * FAN + at, node + SUMS + row * FAN + at + 1, rest * sizeof(double))
            node[SUMS + row * FAN + size - 1] = 0.0
        node[HIGH + size - 1] = INFINITY
        (<int*> node)[0] -= 1

    cdef bint merge(self, int block, Py_ssize_t at, int level) noexcept nogil:
        """Join a child with its right neighbour if together they leave a quarter of a block free and
        one of them is small. O(rows)."""
        cdef double* node = self.node(block)
        cdef int* children = <int*> (node + CHILD)
        cdef Py_ssize_t left, right, width = LEAF if level == 0 else FAN
        cdef bint everything = True
        if at + 1 >= (<int*> node)[0]:
            return False
        left, right = self.size_of(children[at], level), self.size_of(children[at + 1], level)
        if min(left, right) > width // 4 or left + right > 3 * width // 4:
            return False
        self.move_entries(children[at + 1], 0, right, children[at], left, level)
        self.free_block(&self.leaves if level == 0 else &self.nodes, children[at + 1])
        self.remove_child(block, at + 1)
        self.refresh(block, at, level, self.all_rows, self.rows, &everything)
        return True

    # ---- From Python --------------------------------------------------------------------------

    def load(self, Py_ssize_t j, keys, counts, values, sizes=None):
        """Fill an empty coordinate in O(m).

        Parameters
        ----------
        keys, counts : arrays of shape (m,)
            Distinct keys in ascending order, and how many terms have each.
        values : array of shape (rows, m)
        sizes : list of arrays
            Sizes of the leaves, of the nodes above them, ..., of the root; blocks three quarters full
            if not given.
        """
        keys, counts = np.asarray(keys, dtype=np.float64), np.asarray(counts, dtype=np.int32)
        values, m = np.asarray(values, dtype=np.float64), len(keys)
        self.check_coordinate(j)
        if self.root[j] != NOWHERE:
            raise ValueError(f"coordinate {j} is not empty")
        if keys.shape != (m,) or counts.shape != (m,) or values.shape != (self.rows, m):
            raise ValueError(f"expected {m} counts and values of shape {(self.rows, m)}, got shapes {counts.shape} "
                             f"and {values.shape}")
        if not (np.isfinite(keys).all() and np.isfinite(values).all() and (np.diff(keys) > 0).all()
                and (counts > 0).all()):
            raise ValueError("keys must be finite and ascending, counts positive and values finite")
        if sizes is None:
            sizes, n, full = [], m, 3 * LEAF // 4
            while True:
                blocks = max(1, -(-n // full))
                sizes.append(np.full(blocks, n // blocks) + (np.arange(blocks) < n % blocks))
                if blocks == 1:
                    break
                n, full = blocks, 3 * FAN // 4
        if m:
            self.reserve_blocks(len(sizes[0]), sum(map(len, sizes[1:])))
            self.build(j, np.ascontiguousarray(keys), np.ascontiguousarray(counts), np.ascontiguousarray(values), sizes)

    cdef build(self, Py_ssize_t j, keys, counts, values, sizes):
        """A tree from its leaves in order: O(rows leaves)."""
        cdef const double[::1] key = keys
        cdef const int[::1] count = counts
        cdef const double[:, ::1] value = np.vstack([values, self.facts_of(keys)])
        cdef Py_ssize_t first = 0, size, row
        cdef int block, level
        cdef double* data
        below = []
        for size in sizes[0]:
            block = self.new_block(&self.leaves, LEAF)
            data = self.leaf(block)
            memcpy(data + KEYS, &key[first], size * sizeof(double))
            memcpy(data + COUNTS, &count[first], size * sizeof(int))
            for row in range(self.rows + self.facts):
                memcpy(data + VALUES + row * LEAF, &value[row, first], size * sizeof(double))
            (<int*> data)[0] = <int> size
            first += size
            below.append(block)
        for level in range(1, len(sizes)):
            blocks, first = [], 0
            for size in sizes[level]:
                block = self.new_block(&self.nodes, FAN)
                for row in range(size):
                    self.insert_child(block, row, below[first + row], level - 1)
                first += size
                blocks.append(block)
            below = blocks
        self.root[j] = below[0]
        self.height[j] = len(sizes) - 1

    cdef check_coordinate(self, Py_ssize_t j):
        if not 0 <= j < self.n_coordinates:
            raise IndexError(f"there is no coordinate {j} of {self.n_coordinates}")

    cdef collect(self, int block, int level, list leaf_blocks, list sizes):
        """Leaves in order, and the sizes of all blocks by level. O(blocks)."""
        cdef Py_ssize_t at
        sizes[level].append(self.size_of(block, level))
        if level == 0:
            leaf_blocks.append(block)
            return
        for at in range(self.size_of(block, level)):
            self.collect((<int*> (self.node(block) + CHILD))[at], level - 1, leaf_blocks, sizes)

    def contents(self, Py_ssize_t j):
        """(keys, counts, values, sizes) of a coordinate, as `load` takes them."""
        cdef int level
        self.check_coordinate(j)
        blocks, sizes = [], [[] for level in range(self.height[j] + 1)]  # no-cython-lint
        if self.root[j] == NOWHERE:
            return np.zeros(0), np.zeros(0, dtype=np.int32), np.zeros((self.rows, 0)), []
        self.collect(self.root[j], self.height[j], blocks, sizes)
        sizes = [np.array(level_sizes, dtype=np.int32) for level_sizes in sizes]
        leaves = self.leaf_array[blocks]
        used = np.arange(LEAF) < sizes[0][:, None]
        counts = np.ascontiguousarray(leaves[:, COUNTS:VALUES]).view(np.int32)
        values = leaves[:, VALUES:VALUES + self.rows * LEAF].reshape(len(blocks), self.rows, LEAF).transpose(1, 0, 2)
        return leaves[:, KEYS:COUNTS][used], counts[used], values[:, used], sizes

    def keys(self, Py_ssize_t j):
        """Distinct values of a coordinate, ascending."""
        return self.contents(j)[0]

    def counts(self, Py_ssize_t j):
        """How many terms have each of the keys."""
        return self.contents(j)[1]

    def values(self, Py_ssize_t j):
        """Sum of the coefficients at each of the keys, shape (rows, keys)."""
        return self.contents(j)[2]

    @property
    def size(self):
        """Number of keys in all coordinates."""
        return sum(len(self.contents(j)[0]) for j in range(self.n_coordinates))

    @property
    def nbytes(self):
        """Bytes that are allocated for blocks."""
        return sum(0 if array is None else array.nbytes for array in (self.leaf_array, self.node_array))

    def _check(self):
        """Assert every invariant."""
        cdef Py_ssize_t j
        cdef Py_ssize_t leaves = 0, nodes = 0
        for j in range(self.n_coordinates):
            if self.root[j] == NOWHERE:
                assert self.height[j] == 0
                continue
            keys, counts, values, sizes = self.contents(j)
            assert (np.diff(keys) > 0).all() and np.isfinite(keys).all() and (counts > 0).all()
            assert np.isfinite(values).all()
            assert len(sizes) == self.height[j] + 1 and len(sizes[self.height[j]]) == 1
            for level in range(len(sizes)):
                assert (sizes[level] >= 1).all() and (sizes[level] <= (LEAF if level == 0 else FAN)).all()
                assert sizes[level].sum() == (len(keys) if level == 0 else len(sizes[level - 1]))
            assert self.height[j] == 0 or sizes[self.height[j]][0] >= 2
            self.ends(self.root[j], self.height[j])
            before = self.node_array[:self.nodes.used].copy() if self.nodes.used else None
            self.refresh_below(self.root[j], self.height[j])    # the sums are what the leaves say, bit for bit
            if before is not None:
                assert np.array_equal(before[:, SUMS:], self.node_array[:self.nodes.used, SUMS:], equal_nan=True)
            leaves += len(sizes[0])
            nodes += sum(map(len, sizes[1:]))
        assert leaves == self.leaves.used - self.leaves.free
        assert nodes == self.nodes.used - self.nodes.free

    cdef ends(self, int block, int level):
        """Smallest and largest key below a block, which its parent must know; beyond its size all is padding. O(1)."""
        cdef Py_ssize_t at, size = self.size_of(block, level)
        if level == 0:
            leaf = self.leaf_array[block]
            assert np.isinf(leaf[KEYS + size:COUNTS]).all()
            assert not leaf[VALUES:].reshape(self.rows + self.facts, LEAF)[:, size:].any()
            return leaf[KEYS], leaf[KEYS + size - 1]
        node = self.node_array[block]
        assert np.isinf(node[HIGH + size:LOW]).all()
        assert not node[SUMS:].reshape(self.rows * self.dims, FAN)[:, size:].any()
        for at in range(size):
            low, high = self.ends((<int*> (self.node(block) + CHILD))[at], level - 1)
            assert (low, high) == (node[LOW + at], node[HIGH + at])
        return node[LOW], node[HIGH + size - 1]
