"""Functions of additive kernels, f(x, y) = sum_j f_j(x_j, y), on one balanced tree per coordinate.

A tree holds the distinct values (keys) that one coordinate of the terms has, with the sum of the coefficients at each.

The structure is a B+ tree.  A comparison costs nothing beside a cache miss, so blocks are wide: 32 keys
in a leaf, 16 children in a node, each block one contiguous stretch of memory in an array that all
coordinates share.  A node keeps, for each child, its smallest and largest key and some sums per coefficient.

Sums are never updated, always recomputed from the children, from the changed leaf up.  So a removal
leaves no dust, rounding does not accumulate, and the sums are a function of keys, coefficients and
shape alone: a tree that is saved and loaded goes on bit for bit.

f_j(x) = sum_i a_i K(p_i, x) takes O(log m) (H part 1): a node keeps, for each child, `dims` sums per output and channel
(additive.h). At x, children left and right of the one that x falls into contribute through their sums, whatever lies
below them; that one is looked into. All coordinates descend together, level by level, and each asks for its next block
before the others take their turn, so that the misses overlap.
"""
cimport cython
import numpy as np
from libc.math cimport INFINITY, fmax
from libc.string cimport memcpy, memmove, memset
from onlinekernels._core.arrays cimport array_data
from onlinekernels._core.arrays import aligned_empty
from onlinekernels._core.formulas.additive cimport (
    OK_MATERN, OK_MAX_DIMS, OK_OWN, ok_additive, ok_additive_basis, ok_additive_combine, ok_additive_dims,
    ok_additive_shifts, ok_additive_values, ok_additive_weights, ok_count_below, ok_own_value, ok_own_values,
    ok_own_weights, ok_prefetch)
from onlinekernels._core.formulas.frame cimport MAX_CHANNELS, Frame, frame_reset, frame_row
from onlinekernels._core.formulas.vecmath cimport ok_dot
from onlinekernels._core.functions cimport CENTERED, N_SHARED, OWN, Function, Outputs, Scratch, Term
from onlinekernels._core.functions import rows_of_channels
from onlinekernels._core.kernels cimport additive_kernel
from onlinekernels._core.kernels import mapping
from onlinekernels._core.schema import Array, Inlined, positive
from onlinekernels._core.terms cimport Coefficients, Terms

# ---- Balanced trees ------------------------------------------------------------------------------

cdef enum:
    LEAF = 32               # keys in a leaf
    FAN = 16                # children of a node
    HEADER = 8              # numbers at the start of a block: one cache line; its size is the first int
    NOWHERE = -1

# Where things are in a block, in doubles
cdef enum:
    KEYS = HEADER                           # leaf: keys, ascending, then infinity
    COUNTS = KEYS + LEAF                    # leaf: int32, terms with this key
    VALUES = COUNTS + LEAF // 2             # leaf: (rows, LEAF) coefficients, then (n_cached, LEAF)
    HIGH = HEADER                           # node: largest key of each child, then infinity
    LOW = HIGH + FAN                        # node: smallest key of each child
    CHILD = LOW + FAN                       # node: int32
    SUMS = CHILD + FAN // 2                 # node: (rows, dims, FAN)

cdef enum:
    MOST_TERMS = 0x7FFFFFFF     # with one key that are counted: without a budget none is taken out again


cdef struct Blocks:
    # Blocks of one kind in one array; free ones are chained.
    Py_ssize_t block        # doubles in a block
    Py_ssize_t width        # entries of a block, whose keys come first,
    Py_ssize_t ints         # where their int32 are,
    Py_ssize_t rest         # and where rows of numbers are, one of each entry,
    Py_ssize_t rows         # so many
    Py_ssize_t capacity     # blocks that there is room for
    Py_ssize_t used         # blocks that have ever been given out
    Py_ssize_t free         # how many of them are free again
    int first_free          # the first of the chain, or NOWHERE
    double* data            # of the array


cdef struct Summand:
    # What one of the kernels that are added up does in each coordinate
    ok_additive kernel      # K of one coordinate
    double scale            # what it is multiplied by
    Py_ssize_t dims         # sums per block, output and channel


@cython.final
cdef class Tree:
    """Sums over coordinates of f_j(x_j) = sum_i a_i K(p_ij, x_j).

    `kernel` is what `additive_kernel` takes, or a list of pairs of that and a scale.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinekernels._core.trees import Tree
    >>> tree = Tree(("exponential", 1.0))
    >>> tree.add(np.array([2.0]), np.array([0.5]))
    >>> tree.add(np.array([3.0]), np.array([1.0]))
    >>> tree.evaluate(np.array([2.0]))              # 0.5 + exp(-1)
    array([0.86787944])
    """

    cdef object summand_array               # keeps these alive:
    cdef Summand* summands                  # of each kernel
    cdef readonly list functions            # of each that is the user's own: left, then right ones
    cdef Py_ssize_t each                    # coordinates of a kernel
    cdef readonly int dims                  # sums per block, output and channel, of the kernel that has most
    cdef readonly Py_ssize_t n_cached       # numbers that a leaf keeps beside each key: values of the user's functions
    cdef readonly Py_ssize_t stride         # numbers of a place: the key and these
    cdef readonly Py_ssize_t n_coordinates  # trees
    cdef readonly Py_ssize_t rows           # numbers per term: channels * outputs
    cdef Blocks leaves                      # of all trees
    cdef Blocks nodes                       # of all trees
    cdef object leaf_array, node_array, root_array, height_array, all_rows_array # keep the memory alive
    cdef int* root                          # per coordinate: a leaf at height 0, else a node, or NOWHERE
    cdef int* height                        # per coordinate: levels of nodes above the leaves
    cdef const int* all_rows                # 0, 1, ..., rows - 1

    cdef inline Blocks* store(self, int level) noexcept nogil:
        return &self.nodes if level else &self.leaves

    cdef inline double* data(self, int block, int level) noexcept nogil:
        return self.store(level).data + block * self.store(level).block

    cdef inline double* leaf(self, int i) noexcept nogil:
        return self.leaves.data + i * self.leaves.block

    cdef inline double* node(self, int i) noexcept nogil:
        return self.nodes.data + i * self.nodes.block

    cdef inline int size_of(self, int block, int level) noexcept nogil:
        return (<int*> self.data(block, level))[0]

    cdef inline const Summand* of(self, Py_ssize_t j) noexcept nogil:
        """The kernel of a coordinate."""
        return self.summands + (j // self.each if j >= self.each else 0)     # mostly there is one: no division

    def __init__(self, kernel, Py_ssize_t n_coordinates=1, Py_ssize_t rows=1, each=None):
        cdef Py_ssize_t i
        cdef Summand* summand
        kernels = [(kernel, 1.0)] if isinstance(kernel, tuple) else kernel
        self.each = max(1, n_coordinates if each is None else each)
        self.functions = [[*one[1], *one[2]] if one[0] == "own" else [] for one, _ in kernels]
        self.n_coordinates, self.rows, self.n_cached = n_coordinates, rows, max(map(len, self.functions))
        self.summand_array = np.zeros(len(kernels) * sizeof(Summand), dtype=np.uint8)
        self.summands = <Summand*> array_data(self.summand_array)
        for i in range(len(kernels)):
            summand = self.summands + i
            summand.kernel, summand.scale = additive_kernel(kernels[i][0]), kernels[i][1]
            summand.dims = ok_additive_dims(&summand.kernel)
            self.dims = max(self.dims, <int> summand.dims)
        self.stride = 1 + self.n_cached
        self.lay_out(&self.leaves, LEAF, COUNTS, VALUES, rows + self.n_cached)
        self.lay_out(&self.nodes, FAN, CHILD, SUMS, rows * self.dims)
        self.root_array = np.empty(max(n_coordinates, 1), dtype=np.int32)
        self.height_array = np.empty(max(n_coordinates, 1), dtype=np.int32)
        self.all_rows_array = np.arange(max(rows, 1), dtype=np.int32)
        self.root = <int*> array_data(self.root_array)
        self.height = <int*> array_data(self.height_array)
        self.all_rows = <const int*> array_data(self.all_rows_array)
        self.leaf_array = self.node_array = None
        self.clear()

    cdef void lay_out(self, Blocks* store, Py_ssize_t width, Py_ssize_t ints, Py_ssize_t rest, Py_ssize_t rows):
        store.width, store.ints, store.rest, store.rows = width, ints, rest, rows
        store.block, store.capacity = rest + rows * width, 0

    cdef void clear(self) noexcept nogil:
        """Forget all terms. O(coordinates)."""
        cdef Py_ssize_t j
        for j in range(self.n_coordinates):
            self.root[j] = NOWHERE
            self.height[j] = 0
        self.leaves.used = self.leaves.free = self.nodes.used = self.nodes.free = 0
        self.leaves.first_free = self.nodes.first_free = NOWHERE

    # ---- Memory -------------------------------------------------------------------------------

    cdef reserve(self, Py_ssize_t candidates):
        """Make sure that so many terms can be added without any array moving.

        A block splits when it is full, into halves: a term splits at most one leaf of each coordinate, and leaves that
        are halves need LEAF / 2 terms more.  A new leaf may split one node of each level, and node splits are as rare
        among leaf splits as leaf splits among terms. O(blocks) when an array moves, which is rare.
        """
        cdef Py_ssize_t terms = candidates * self.n_coordinates
        cdef Py_ssize_t leaves = min(terms, self.leaves.used + terms // (LEAF // 2)) + self.n_coordinates
        cdef Py_ssize_t nodes = 2 * min(leaves, self.nodes.used + leaves // (FAN // 2)) + 2 * self.n_coordinates
        self.reserve_blocks(leaves, nodes)

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

    cdef int new_block(self, int level) noexcept nogil:
        """An empty block, whose keys are infinity. O(its size)."""
        cdef Blocks* store = self.store(level)
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
        for j in range(store.width):
            block[HEADER + j] = INFINITY
        return i

    cdef void free_block(self, int i, int level) noexcept nogil:
        """Chain a block to the free ones: O(1)."""
        cdef Blocks* store = self.store(level)
        cdef int* header = <int*> self.data(i, level)
        header[0] = -1
        header[1] = store.first_free
        store.first_free = i
        store.free += 1

    # ---- Adding -------------------------------------------------------------------------------

    cdef void put(self, const double* x, const double* values, const int* touched, Py_ssize_t n) noexcept nogil:
        """Add a term with values[row] for the n rows in `touched`; there is room. O(coordinates rows log n)."""
        cdef Py_ssize_t j
        cdef int sibling, above
        cdef bint everything
        for j in range(self.n_coordinates):
            everything = False
            if self.root[j] == NOWHERE:
                self.root[j] = self.new_block(0)
            sibling = self.insert_below(j, self.root[j], self.height[j], x + j * self.stride, values, touched, n,
                                        &everything)
            if sibling != NOWHERE:                              # the root has split
                above = self.new_block(1)
                self.insert_child(j, above, 0, self.root[j], self.height[j])
                self.insert_child(j, above, 1, sibling, self.height[j])
                self.root[j] = above
                self.height[j] += 1

    cdef int insert_below(self, Py_ssize_t j, int block, int level, const double* key, const double* values,
                          const int* touched, Py_ssize_t n, bint* everything) noexcept nogil:
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
        sibling = self.insert_below(j, (<int*> (node + CHILD))[at], level - 1, key, values, touched, n, everything)
        self.refresh(j, block, at, level - 1, touched, n, everything)
        if sibling == NOWHERE:
            return NOWHERE
        if (<int*> node)[0] == FAN:
            right = self.split(block, level)
            if at >= (<int*> node)[0]:
                at -= (<int*> node)[0]
                self.insert_child(j, right, at + 1, sibling, level - 1)
                return right
        self.insert_child(j, block, at + 1, sibling, level - 1)
        return right

    cdef int insert_in_leaf(self, int block, const double* place, const double* values, const int* touched,
                            Py_ssize_t n, bint* everything) noexcept nogil:
        """The same in a leaf: O(n touched), O(rows) if the key is new."""
        cdef double* leaf = self.leaf(block)
        cdef int* counts = <int*> (leaf + COUNTS)
        cdef double key = place[0]
        cdef Py_ssize_t row, size = (<int*> leaf)[0], at = ok_count_below(leaf + KEYS, key, LEAF)
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
                block, at = right, at - size
                leaf = self.leaf(block)
        self.shift(block, 0, at, 1)
        leaf[KEYS + at] = key
        (<int*> (leaf + COUNTS))[at] = 1
        for row in range(n):
            leaf[VALUES + touched[row] * LEAF + at] += values[row]
        for row in range(self.n_cached):
            leaf[VALUES + (self.rows + row) * LEAF + at] = place[1 + row]
        return right

    cdef int split(self, int block, int level) noexcept nogil:
        """Move the upper half of a full block to a new one, which is returned. O(rows)."""
        cdef Py_ssize_t width = self.store(level).width
        cdef int right = self.new_block(level)
        self.move_entries(block, width // 2, width - width // 2, right, 0, level)
        return right

    cdef void move_entries(self, int source, Py_ssize_t first, Py_ssize_t n, int target, Py_ssize_t at,
                           int level) noexcept nogil:
        """Move the last n entries of a block to the end of another, which has `at` so far. O(rows)."""
        cdef const Blocks* store = self.store(level)
        cdef double* a = self.data(source, level)
        cdef double* b = self.data(target, level)
        cdef Py_ssize_t i, row
        memcpy(b + HEADER + at, a + HEADER + first, n * sizeof(double))        # KEYS or HIGH
        if level > 0:
            memcpy(b + LOW + at, a + LOW + first, n * sizeof(double))
        memcpy(<int*> (b + store.ints) + at, <int*> (a + store.ints) + first, n * sizeof(int))
        for row in range(store.rows):
            memcpy(b + store.rest + row * store.width + at, a + store.rest + row * store.width + first,
                   n * sizeof(double))
            memset(a + store.rest + row * store.width + first, 0, n * sizeof(double))
        for i in range(n):
            a[HEADER + first + i] = INFINITY
        (<int*> a)[0] = <int> first
        (<int*> b)[0] = <int> (at + n)

    cdef void shift(self, int block, int level, Py_ssize_t at, int by) noexcept nogil:
        """Make room for an entry at a place (by 1), or let the one there go (-1): those behind it move. O(rows)."""
        cdef const Blocks* store = self.store(level)
        cdef double* data = self.data(block, level)
        cdef double* numbers
        cdef int* ints = <int*> (data + store.ints)
        cdef Py_ssize_t row, size = (<int*> data)[0], first = at + (by < 0), rest = size - first
        memmove(data + HEADER + first + by, data + HEADER + first, rest * sizeof(double))      # KEYS or HIGH
        if level > 0:
            memmove(data + LOW + first + by, data + LOW + first, rest * sizeof(double))
        memmove(ints + first + by, ints + first, rest * sizeof(int))
        for row in range(store.rows):
            numbers = data + store.rest + row * store.width
            memmove(numbers + first + by, numbers + first, rest * sizeof(double))
            numbers[at if by > 0 else size - 1] = 0.0
        if by < 0:
            data[HEADER + size - 1] = INFINITY
        (<int*> data)[0] = <int> (size + by)

    cdef void insert_child(self, Py_ssize_t j, int block, Py_ssize_t at, int child, int level) noexcept nogil:
        """Make room for a child, which is at `level`, and compute its entry. O(rows)."""
        cdef bint everything = True
        self.shift(block, level + 1, at, 1)
        (<int*> (self.node(block) + CHILD))[at] = child
        self.refresh(j, block, at, level, self.all_rows, self.rows, &everything)

    cdef void refresh_below(self, Py_ssize_t j, int block, int level) noexcept nogil:
        """Compute all sums from the leaves up. O(rows blocks)."""
        cdef Py_ssize_t at
        cdef bint everything = True
        if level == 0:
            return
        for at in range((<int*> self.node(block))[0]):
            self.refresh_below(j, (<int*> (self.node(block) + CHILD))[at], level - 1)
            self.refresh(j, block, at, level - 1, self.all_rows, self.rows, &everything)

    # ---- Removing -----------------------------------------------------------------------------

    cdef void take(self, const double* x, const double* values, const int* touched, Py_ssize_t n) noexcept nogil:
        """Remove a term that was added with these values; every coordinate has its key. O(coordinates rows log n)."""
        cdef Py_ssize_t j
        cdef int block
        cdef bint everything
        for j in range(self.n_coordinates):
            everything = False
            self.remove_below(j, self.root[j], self.height[j], x[j * self.stride], values, touched, n, &everything)
            while self.height[j] > 0 and self.size_of(self.root[j], self.height[j]) == 1:
                block = self.root[j]
                self.root[j] = (<int*> (self.node(block) + CHILD))[0]
                self.height[j] -= 1
                self.free_block(block, 1)
            if self.height[j] == 0 and self.size_of(self.root[j], 0) == 0:
                self.free_block(self.root[j], 0)
                self.root[j] = NOWHERE

    cdef void remove_below(self, Py_ssize_t j, int block, int level, double key, const double* values,
                           const int* touched, Py_ssize_t n, bint* everything) noexcept nogil:
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
        self.remove_below(j, child, level - 1, key, values, touched, n, everything)
        if self.size_of(child, level - 1) == 0:
            self.free_block(child, level - 1)
            self.shift(block, level, at, -1)
            everything[0] = True
        elif self.merge(j, block, at, level - 1) or at > 0 and self.merge(j, block, at - 1, level - 1):
            everything[0] = True
        else:
            self.refresh(j, block, at, level - 1, touched, n, everything)

    cdef void remove_in_leaf(self, int block, double key, const double* values, const int* touched,
                             Py_ssize_t n) noexcept nogil:
        """The same in a leaf: O(n touched), O(rows) if the key goes."""
        cdef double* leaf = self.leaf(block)
        cdef int* counts = <int*> (leaf + COUNTS)
        cdef Py_ssize_t row, at = ok_count_below(leaf + KEYS, key, LEAF)
        counts[at] -= 1
        if counts[at] > 0:
            for row in range(n):
                leaf[VALUES + touched[row] * LEAF + at] -= values[row]
        else:
            self.shift(block, 0, at, -1)                        # the key goes, with all that rounding left

    cdef bint merge(self, Py_ssize_t j, int block, Py_ssize_t at, int level) noexcept nogil:
        """Join a child with its right neighbour if together they leave a quarter of a block free and
        one of them is small. O(rows)."""
        cdef double* node = self.node(block)
        cdef int* children = <int*> (node + CHILD)
        cdef Py_ssize_t left, right, width = self.store(level).width
        cdef bint everything = True
        if at + 1 >= (<int*> node)[0]:
            return False
        left, right = self.size_of(children[at], level), self.size_of(children[at + 1], level)
        if min(left, right) > width // 4 or left + right > 3 * width // 4:
            return False
        self.move_entries(children[at + 1], 0, right, children[at], left, level)
        self.free_block(children[at + 1], level)
        self.shift(block, level + 1, at + 1, -1)
        self.refresh(j, block, at, level, self.all_rows, self.rows, &everything)
        return True

    # ---- From Python --------------------------------------------------------------------------

    def load(self, Py_ssize_t j, keys, counts, values, sizes):
        """Fill an empty coordinate with what `contents` gives of one. O(rows m)."""
        cdef const double[::1] key = keys
        cdef const int[::1] count = counts
        cdef const double[:, ::1] value = np.vstack([values, self.cached_of(j, keys)])
        cdef Py_ssize_t first = 0, size, row
        cdef int block, level
        cdef double* data
        if len(keys) == 0:
            return
        self.reserve_blocks(len(sizes[0]), sum(map(len, sizes[1:])))
        below = []
        for size in sizes[0]:
            block = self.new_block(0)
            data = self.leaf(block)
            memcpy(data + KEYS, &key[first], size * sizeof(double))
            memcpy(data + COUNTS, &count[first], size * sizeof(int))
            for row in range(self.rows + self.n_cached):
                memcpy(data + VALUES + row * LEAF, &value[row, first], size * sizeof(double))
            (<int*> data)[0] = <int> size
            first += size
            below.append(block)
        for level in range(1, len(sizes)):
            blocks, first = [], 0
            for size in sizes[level]:
                block = self.new_block(level)
                for row in range(size):
                    self.insert_child(j, block, row, below[first + row], level - 1)
                first += size
                blocks.append(block)
            below = blocks
        self.root[j] = below[0]
        self.height[j] = len(sizes) - 1

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

    def _check(self):
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
            self.refresh_below(j, self.root[j], self.height[j])    # the sums are what the leaves say, bit for bit
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
            assert not leaf[VALUES:].reshape(self.rows + self.n_cached, LEAF)[:, size:].any()
            return leaf[KEYS], leaf[KEYS + size - 1]
        node = self.node_array[block]
        assert np.isinf(node[HIGH + size:LOW]).all()
        assert not node[SUMS:].reshape(self.rows * self.dims, FAN)[:, size:].any()
        for at in range(size):
            low, high = self.ends((<int*> (self.node(block) + CHILD))[at], level - 1)
            assert (low, high) == (node[LOW + at], node[HIGH + at])
        return node[LOW], node[HIGH + size - 1]

    # ---- Sums ---------------------------------------------------------------------------------

    cdef void refresh(self, Py_ssize_t j, int block, Py_ssize_t at, int level, const int* touched, Py_ssize_t n,
                      bint* everything) noexcept nogil:
        """Compute a node's entry for its child, which is at `level`, from the child."""
        cdef const Summand* summand = self.of(j)
        cdef const ok_additive* kernel = &summand.kernel
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
        if level == 0 and kernel.code == OK_OWN:
            basis, width = below + VALUES + self.rows * LEAF, LEAF
        elif level == 0:
            ok_additive_basis(kernel, low, high, below + KEYS, work, size)
        elif kernel.code == OK_MATERN:
            ok_additive_shifts(kernel, low, high, below + LOW, below + HIGH, work, FAN)
        if everything[0]:
            n = self.rows
        for i in range(n):
            row = i if everything[0] else touched[i]
            sums = node + SUMS + row * self.dims * FAN + at
            if level == 0:
                for s in range(summand.dims):
                    sums[s * FAN] = ok_dot(basis + s * width, below + VALUES + row * LEAF, size)
            else:
                ok_additive_combine(kernel, work, below + SUMS + row * self.dims * FAN, sums, FAN, FAN)

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
                self.refresh_below(j, self.root[j], self.height[j])

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
                    self.look_into(j, x + j * self.stride, self.leaf(at[j]), rows, out)

    cdef void descend(self, Py_ssize_t j, const double* x, int level, const double* block, Py_ssize_t rows,
                      double* out, int* at) noexcept nogil:
        """Add what the children beside x contribute, and go on to the one that x falls into."""
        cdef double weights[OK_MAX_DIMS * FAN]
        cdef const Summand* summand = self.of(j)
        cdef Py_ssize_t row, size = (<const int*> block)[0], span = self.dims * FAN
        cdef Py_ssize_t child = min(ok_count_below(block + HIGH, x[0], FAN), size - 1)
        at[j] = (<const int*> (block + CHILD))[child]
        if level > 1:
            ok_prefetch(self.node(at[j]), self.nodes.block if self.rows == 1 else SUMS)
        else:
            ok_prefetch(self.leaf(at[j]), self.leaves.block if self.rows == 1 else VALUES)
        if summand.kernel.code == OK_OWN:
            ok_own_weights(&summand.kernel, x, child, size, weights, FAN)
        else:
            ok_additive_weights(&summand.kernel, x[0], block + LOW, block + HIGH, child, size, weights, FAN)
        for row in range(rows):
            out[row] += summand.scale * ok_dot(weights, block + SUMS + row * span, summand.dims * FAN)

    cdef void look_into(self, Py_ssize_t j, const double* x, const double* block, Py_ssize_t rows,
                        double* out) noexcept nogil:
        """Add the keys of a leaf, one by one."""
        cdef double values[LEAF]
        cdef const Summand* summand = self.of(j)
        cdef Py_ssize_t row, size = (<const int*> block)[0]
        if summand.kernel.code == OK_OWN:
            ok_own_values(&summand.kernel, x, block + KEYS, block + VALUES + self.rows * LEAF, LEAF, values, size)
        else:
            ok_additive_values(&summand.kernel, x[0], block + KEYS, values, size)
        for row in range(rows):
            out[row] += summand.scale * ok_dot(values, block + VALUES + row * LEAF, size)

    cdef double value(self, const double* x, const double* z) noexcept nogil:
        """sum_j K(x_j, z_j)."""
        cdef double total = 0.0, one
        cdef Py_ssize_t j
        cdef const Summand* summand
        for j in range(self.n_coordinates):
            summand = self.of(j)
            if summand.kernel.code == OK_OWN:
                one = ok_own_value(&summand.kernel, x + j * self.stride, z + j * self.stride)
            else:
                ok_additive_values(&summand.kernel, x[j * self.stride], z + j * self.stride, &one, 1)
            total += summand.scale * one
        return total

    # ---- From Python --------------------------------------------------------------------------

    def cached_of(self, Py_ssize_t j, x):
        """Values of the user's functions of coordinate j at an array of numbers, shape (n_cached, n)."""
        cached = np.zeros((self.n_cached, len(x)))
        for i, function in enumerate(self.functions[j // self.each]):
            values = np.asarray(function(x.copy()), dtype=np.float64)
            if values.shape not in ((), x.shape):
                raise ValueError("The functions of Additive must give one number for each one that they get. "
                                 f"For {len(x)} numbers, {function!r} gave an array of shape {values.shape}.")
            cached[i] = values
        return cached

    def places(self, x, Py_ssize_t j=0):
        """Rows of numbers, for coordinate j and those after it, as rows of places: each number, and what is cached."""
        x = np.ascontiguousarray(x, dtype=np.float64)
        if not self.n_cached:
            return x
        parts = []
        for first in range(0, x.shape[1], self.each):
            part = x[:, first:first + self.each]
            values = part.reshape(1, -1), self.cached_of(j + first, part.ravel())
            parts.append(np.vstack(values).T.reshape(len(x), -1))
        return np.ascontiguousarray(np.hstack(parts))

    def add(self, const double[::1] x, const double[::1] values):
        """Add a term: its keys, one per coordinate, and its coefficients, one per row."""
        cdef const double[:, ::1] place
        self.reserve(1)
        place = self.places(np.asarray(x).reshape(1, -1))
        self.put(&place[0, 0], &values[0], self.all_rows, self.rows)

    def remove(self, const double[::1] x, const double[::1] values):
        """Remove a term that was added with the same arguments."""
        cdef const double[:, ::1] place
        place = self.places(np.asarray(x).reshape(1, -1))
        self.take(&place[0, 0], &values[0], self.all_rows, self.rows)

    def evaluate(self, const double[::1] x):
        """sum_j f_j(x_j), one number per row."""
        cdef double[::1] out = np.zeros(self.rows)
        cdef int[::1] at = np.zeros(self.n_coordinates, dtype=np.int32)
        cdef const double[:, ::1] place
        place = self.places(np.asarray(x).reshape(1, -1))
        self.evaluate_into(&place[0, 0], self.rows, &out[0], &at[0])
        return np.asarray(out)

    def component(self, Py_ssize_t j, points):
        """f_j at all points, shape (len(points), rows)."""
        cdef const double[:, ::1] x = self.places(np.reshape(points, (-1, 1)), j)
        cdef double[:, ::1] out = np.zeros((x.shape[0], self.rows))
        cdef Py_ssize_t i
        cdef int[::1] at = np.zeros(self.n_coordinates, dtype=np.int32)
        cdef int level
        if self.root[j] != NOWHERE:
            for i in range(x.shape[0]):
                at[j] = self.root[j]
                for level in range(self.height[j], 0, -1):
                    self.descend(j, &x[i, 0], level, self.node(at[j]), self.rows, &out[i, 0], &at[0])
                self.look_into(j, &x[i, 0], self.leaf(at[j]), self.rows, &out[i, 0])
        return np.asarray(out)


# ---- Functions -----------------------------------------------------------------------------------
# f(x, y) = sum_j f_j(x_j, y), and each f_j is a tree over the values of coordinate j.  The trees hold
# coordinates in the frame, one row per channel and label, so decay and averages cost O(1) here as well.
# With an unlimited budget there is nothing else.  A budget, or noise, keeps the terms in a dictionary beside the trees.

cdef enum TreeBuffer:
    PLACES = N_SHARED, DESCENT, TOUCHED, TOUCHED_VALUES, KNOT

cdef enum:
    PIECE_ROWS = 256            # of trees: there are no inner products that must fit the cache
    EVALUATED_ROWS = 4096


@cython.final
cdef class TreeScratch(Scratch):
    """What trees compute on the way."""

    cdef double* places                 # rows of the piece as trees know them
    cdef int* descent                   # where each coordinate's descent is
    cdef int* touched                   # rows of the trees that a term touches,
    cdef double* touched_values         # what they get,
    cdef double* knot                   # and the term's point


@cython.final
cdef class Forest:
    """A tree for each coordinate of each kernel that is added up: sum_j sum_i K(x_ij, x_j) A_i, of stored coordinates.

    `summands` is what `Kernel.additive` gives: kernels, each with its scale and bounds, by which points are mapped to
    (x - low) / (high - low); constants, which make one more tree, whose keys are all 0; and noise, that of an example
    with itself, which the terms know.
    """

    FIELDS = (Array("tree_keys", np.float64, ("keys",)), Array("tree_counts", np.int32, ("keys",), positive),
              Array("tree_values", np.float64, (rows_of_channels, "keys")), Array("tree_levels", np.int64, ("levels",)),
              Array("tree_sizes", np.int32, ("blocks",), positive))

    cdef readonly Tree tree             # one for each feature
    cdef Outputs outputs                # the labels
    cdef list kernels                   # and their scales, as `Tree` takes them
    cdef readonly bint has_constant     # whether the last tree is that of the constants
    cdef readonly double noise          # that k(x, x) has more
    cdef readonly Py_ssize_t n_features # of examples
    cdef readonly Py_ssize_t n_trees    # so many for each kernel
    cdef readonly Py_ssize_t width      # outputs that there is room for
    cdef Py_ssize_t span                # numbers of an example as the trees know it
    cdef readonly int channels          # of the frame
    cdef readonly object low, stretch   # a point is mapped to (x - low) * stretch; or None
    cdef double* low_data               # of `low`, or NULL
    cdef double* stretch_data           # of `stretch`, or NULL

    def __init__(self, *, summands, Py_ssize_t n_features, int channels, Outputs outputs):
        self.n_features, self.channels, self.outputs, self.width = n_features, channels, outputs, max(1, outputs.n)
        kernels = [one for one in summands if "kernel" in one]
        constant, self.noise = (sum(one.get(name, 0.0) for one in summands) for name in ("constant", "noise"))
        self.kernels = [(one["kernel"], one["scale"]) for one in kernels]
        self.n_trees, self.has_constant = len(kernels) * n_features, constant > 0.0
        maps = [(np.zeros(n_features), np.ones(n_features)) if one["bounds"] is None
                else mapping(one["bounds"], n_features) for one in kernels]
        if self.has_constant:
            self.kernels.append((("exponential", 1.0), constant))
            self.n_trees += 1
            maps.append((np.zeros(1), np.zeros(1)))
        if len(maps) > 1 or kernels[0]["bounds"] is not None:
            self.low, self.stretch = map(np.concatenate, zip(*maps))
            self.low_data = <double*> array_data(self.low)
            self.stretch_data = <double*> array_data(self.stretch)
        self.load([])
        self.span = self.n_trees * self.tree.stride

    cdef void take_over(self, Tree tree, Py_ssize_t width) noexcept:
        """Go on with trees for so many outputs."""
        self.tree, self.width = tree, width

    def contents(self, Py_ssize_t labels):
        """(keys, counts, stored coordinates (channels, labels, keys), sizes) of each tree."""
        found = [self.tree.contents(j) for j in range(self.n_trees)]
        return [(keys, counts, self.by_channel(values, labels), sizes) for keys, counts, values, sizes in found]

    def planted(self, contents, Py_ssize_t width):
        """Trees for so many outputs with these contents, which may have fewer: the others are 0."""
        planted = Tree(self.kernels, self.n_trees, self.channels * width, self.n_features)
        for j, (keys, counts, values, sizes) in enumerate(contents):
            rows = np.zeros((self.channels, width, len(keys)))
            rows[:len(values), :values.shape[1]] = values
            planted.load(j, keys, counts, rows.reshape(self.channels * width, len(keys)), sizes)
        return planted

    def wider(self, Py_ssize_t width):
        """The trees with room for more outputs."""
        return self.planted(self.contents(self.width), width)

    def load(self, contents):
        """Go on with these contents."""
        self.take_over(self.planted(contents, self.width), self.width)

    def copy_last(self, Py_ssize_t n):
        """Outputs from the n-th on become what the one before them is."""
        contents = self.contents(self.width)
        for _, _, values, _ in contents:
            values[:, n:] = values[:, n - 1:n]
        self.load(contents)

    # ---- In the loop --------------------------------------------------------------------------

    cdef void map_point(self, const double* x, double* out) noexcept nogil:
        """A point as the trees know it."""
        cdef Py_ssize_t j
        if self.low_data == NULL:
            memcpy(out, x, self.n_features * sizeof(double))
            return
        for j in range(self.n_trees):
            out[j] = (x[j % self.n_features] - self.low_data[j]) * self.stretch_data[j]

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
        w.descent = <int*> w.buffer(DESCENT, self.n_trees * sizeof(int))
        w.touched = <int*> w.buffer(TOUCHED, rows * sizeof(int))
        w.touched_values = <double*> w.buffer(TOUCHED_VALUES, rows * sizeof(double))
        w.knot = <double*> w.buffer(KNOT, self.span * sizeof(double))
        w.places = <double*> w.piece.x
        if self.low_data != NULL or self.tree.n_cached:
            w.places = <double*> w.buffer(PLACES, m * self.span * sizeof(double))
        if self.tree.n_cached:
            places = self.places(w.array(<char*> w.piece.x, m, d, np.dtype(np.float64)))
            memcpy(w.places, array_data(places), m * self.span * sizeof(double))
        with nogil:
            for i in range(m):
                if self.low_data != NULL and self.tree.n_cached == 0:
                    self.map_point(<const double*> w.piece.x + i * d, w.places + i * self.span)
                w.piece.own[i] = self.own_value(w.places + i * self.span)

    cdef void evaluate(self, TreeScratch w, const double* x, Py_ssize_t rows) noexcept nogil:
        """Sums over all terms into w.sums, for the first rows."""
        self.tree.evaluate_into(x, rows, w.sums, w.descent)

    cdef double own_value(self, const double* x) noexcept nogil:
        """k(x, x) of an example."""
        return self.tree.value(x, x) + self.noise

    cdef void change(self, TreeScratch w, const double* x, const Term* term, bint enters) noexcept nogil:
        """Add a term at a mapped point, or take it out again."""
        cdef Py_ssize_t n = 0, k
        cdef int channel
        for channel in range(self.channels):
            for k in range(term.n):
                w.touched[n] = <int> (channel * self.width + term.labels[k])
                w.touched_values[n] = term.stored[n]
                n += 1
        if enters:
            self.tree.put(x, w.touched_values, w.touched, n)
        else:
            self.tree.take(x, w.touched_values, w.touched, n)

    # ---- For Python ---------------------------------------------------------------------------

    def places(self, X):
        """Rows of examples as the trees know them, with what is cached."""
        columns = [self.mapped(j, X[:, j % self.n_features]) for j in range(self.n_trees)]
        return self.tree.places(np.stack(columns, axis=1))

    def mapped(self, Py_ssize_t j, points):
        """Values of a coordinate as tree j knows them."""
        points = np.asarray(points, dtype=np.float64)
        return points if self.low is None else (points - self.low[j]) * self.stretch[j]

    def unmapped(self, Py_ssize_t j, keys):
        """Keys of tree j as they came."""
        return keys if self.low is None else keys / self.stretch[j] + self.low[j]

    def by_channel(self, rows, Py_ssize_t labels):
        """Rows (channels * width, n) as (channels, labels, n)."""
        return rows.reshape(self.channels, self.width, rows.shape[1])[:, :labels]

    def knots(self, Function function, Py_ssize_t j, int channel, Py_ssize_t labels):
        """(keys, counts, true coefficients, sizes) of tree j, of a channel of the function."""
        keys, counts, stored, sizes = self.tree.contents(j)
        return keys, counts, function.true_rows(self.by_channel(stored, labels), channel), sizes

    def component(self, Function function, Py_ssize_t j, points, int channel, Py_ssize_t labels):
        """f_j of a channel at values of coordinate j, (len(points), labels): each has its part of the constants."""
        if not 0 <= j < self.n_features:
            raise IndexError(f"there is no coordinate {j} of {self.n_features}")
        total = sum(self.at_keys(function, i, self.mapped(i, points), channel, labels)
                    for i in range(j, self.n_trees - self.has_constant, self.n_features))
        if self.has_constant:
            total = total + self.at_keys(function, self.n_trees - 1, np.zeros(1), channel, labels) / self.n_features
        return total

    def at_keys(self, Function function, Py_ssize_t j, keys, int channel, Py_ssize_t labels):
        """What tree j says, at values as it knows them."""
        stored = self.by_channel(self.tree.component(j, keys).T, labels)
        true = function.true_rows(stored, channel).T
        return np.array([self.outputs.kappa_times(row) for row in true]).reshape(true.shape)

    def square(self, Function function, int channel, Py_ssize_t labels):
        """|f|^2 = sum_j sum_p a_jp f_j(p) over the knots p of each tree, and the noise of the terms."""
        cdef Py_ssize_t j
        total = 0.0
        for j in range(self.n_trees):
            keys, _, true, _ = self.knots(function, j, channel, labels)
            total += np.sum(true.T * self.at_keys(function, j, keys, channel, labels))
        if self.noise:
            alpha = function.coefficients(channel)[:labels].T
            total += self.noise * np.sum(alpha * [self.outputs.kappa_times(row) for row in alpha])
        return float(total)

    def stored(self):
        """Keys, counts and stored coordinates of all knots, one coordinate after another, and the trees' shapes."""
        labels = self.outputs.kept()
        contents = self.contents(labels)
        values = np.concatenate([values for _, _, values, _ in contents], axis=2)
        levels = [[len(sizes), *map(len, sizes)] for _, _, _, sizes in contents]
        sizes = [size for _, _, _, coordinate in contents for size in coordinate]
        return {
            "tree_keys": np.concatenate([keys for keys, _, _, _ in contents]),
            "tree_counts": np.concatenate([counts for _, counts, _, _ in contents]),
            "tree_values": values.reshape(self.channels * labels, values.shape[2]),
            "tree_levels": np.concatenate([np.array(level, dtype=np.int64) for level in levels]),
            "tree_sizes": np.concatenate([np.zeros(0, dtype=np.int32), *sizes]),
        }

    def fits(self, state):
        """ValueError if a state does not make trees."""
        self.contents_of(state)

    def resume(self, state):
        self.load(self.contents_of(state))

    def contents_of(self, state):
        """What `load` takes; ValueError if a state does not make trees."""
        keys, counts, levels, sizes = (state[f"tree_{name}"] for name in ("keys", "counts", "levels", "sizes"))
        values = state["tree_values"].reshape(self.channels, state["labels"], len(keys))
        loaded, level, first, key = [], 0, 0, 0
        wrong = ValueError("the trees do not fit together")
        for _ in range(self.n_trees):
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
                if len(part) != n or (part > (FAN if parts else LEAF)).any():
                    raise wrong
                if parts and part.sum() != len(parts[len(parts) - 1]):
                    raise wrong
                parts.append(part)
            n = int(parts[0].sum()) if parts else 0
            if n > len(keys) - key or (np.diff(keys[key:key + n]) <= 0).any():
                raise wrong
            loaded.append((keys[key:key + n], counts[key:key + n], values[:, :, key:key + n], parts))
            key += n
        if level != len(levels) or first != len(sizes) or key != len(keys):
            raise wrong
        return loaded

    def check_terms(self, points, contents):
        """ValueError unless the trees hold terms at these points."""
        for j, (keys, counts, _, _) in enumerate(contents):
            own_keys, own_counts = np.unique(self.mapped(j, points[:, j % self.n_features]), return_counts=True)
            if not (np.array_equal(own_keys, keys) and np.array_equal(own_counts, counts)):
                raise ValueError("the trees do not hold the terms")


cdef open_points(Function f, Scratch w, points):
    """Open the points of another model as a piece: O(points d)."""
    points = np.ascontiguousarray(points, dtype=np.float64)
    f.attach(w, points)
    f.open(w, 0, len(points), True, -1)
    return points


@cython.final
cdef class Trees(Function):
    """f on trees and nowhere else.

    Rows are float64.
    """

    FIELDS = *Function.FIELDS, Inlined("forest")

    cdef readonly Forest forest         # what f is kept in

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
        self.forest.change(<TreeScratch> w, (<TreeScratch> w).places + i * self.forest.span, term, True)

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
        """Start from f = sum_i alpha_i k(points_i, .), or if points is None from the knots of each coordinate."""
        if points is None:
            if len(alpha) != self.forest.n_trees or any(not 1 <= len(true) <= self.width for _, _, true, _ in alpha):
                raise ValueError(f"the knots are not those of {self.forest.n_trees} trees and {self.width} outputs")
            self.forest.load([(keys, counts, true[None], sizes) for keys, counts, true, sizes in alpha])
        else:
            self.start_from(points, alpha, pairs, t)

    def _check(self):
        Function._check(self)
        self.forest.tree._check()


@cython.final
cdef class BudgetedTrees(Terms):
    """f on trees, with its terms in a dictionary: to know what to take out of the trees, and to tell examples apart
    where there is noise. Not for kernels of the user's own.

    The dictionary keeps points as they came.
    """

    FIELDS = *Terms.FIELDS, Inlined("forest")

    cdef readonly Forest forest         # what f is kept in

    def __init__(self, *, Forest forest, Coefficients terms, Outputs outputs):
        Terms.__init__(self, terms, outputs)
        self.forest = forest

    cdef Scratch new_scratch(self):
        return TreeScratch()

    cdef int open(self, Scratch w, Py_ssize_t first, Py_ssize_t m, bint learning, int by_slots) except -1:
        if learning:
            self.reserve(m)
            self.reserve_for_budget(w)
        return self.forest.open(<TreeScratch> w, first, m, learning)

    def reserve(self, Py_ssize_t candidates):
        """Room for so many new terms, and for planting all terms anew."""
        cdef Py_ssize_t leaves, nodes
        cdef Tree tree = self.forest.tree
        tree.reserve(candidates)
        self.dictionary.reserve(candidates)
        leaves = tree.n_coordinates * (2 * (self.dictionary.held + candidates) // LEAF + 2)
        nodes = 3 * leaves // FAN + 8 * tree.n_coordinates
        tree.reserve_blocks(max(0, leaves - tree.leaves.used + tree.leaves.free),
                            max(0, nodes - tree.nodes.used + tree.nodes.free))

    cdef const double* knot(self, TreeScratch w, Py_ssize_t slot) noexcept nogil:
        """The point of a slot as the trees know it."""
        self.forest.map_point(<const double*> self.dictionary.point(slot), w.knot)
        return w.knot

    cdef void evaluate(self, Scratch w, Py_ssize_t i, int last, double* out) noexcept nogil:
        self.forest.evaluate(<TreeScratch> w, (<TreeScratch> w).places + i * self.forest.span, (last + 1) * self.width)
        self.make_true(w, last, out)

    cdef void evaluate_slot(self, Scratch w, Py_ssize_t slot, int last, double* out, double* own) noexcept nogil:
        cdef Py_ssize_t k
        cdef int channel
        cdef const double* x = self.knot(<TreeScratch> w, slot)
        self.forest.evaluate(<TreeScratch> w, x, (last + 1) * self.width)
        if self.forest.noise:
            self.terms.read(slot, &w.old)
            for channel in range(last + 1):
                for k in range(w.old.n):
                    w.sums[channel * self.width + w.old.labels[k]] += (
                        self.forest.noise * w.old.stored[channel * w.old.n + k])
        self.make_true(w, last, out)
        own[0] = self.forest.own_value(x)

    cdef double value_with(self, Scratch w, Py_ssize_t slot, Py_ssize_t i) noexcept nogil:
        cdef const double* x = (<TreeScratch> w).places + i * self.forest.span
        return self.forest.tree.value(self.knot(<TreeScratch> w, slot), x)

    cdef double square(self, Scratch w) noexcept nogil:
        return self.square_over(w, self.dictionary.start, self.dictionary.stop)

    cdef void plant(self, Scratch w, Py_ssize_t slot) noexcept nogil:
        """Add a term of the dictionary to the trees."""
        self.terms.read(slot, &w.old)
        self.forest.change(<TreeScratch> w, self.knot(<TreeScratch> w, slot), &w.old, True)

    cdef void drop(self, Scratch w, Py_ssize_t slot) noexcept nogil:
        self.terms.read(slot, &w.old)
        self.forest.change(<TreeScratch> w, self.knot(<TreeScratch> w, slot), &w.old, False)
        Terms.drop(self, w, slot)

    cdef void add(self, Scratch w, Term* term, Py_ssize_t i, long long t) noexcept nogil:
        Terms.add(self, w, term, i, t)
        self.forest.change(<TreeScratch> w, (<TreeScratch> w).places + i * self.forest.span, term, True)

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

    def fits(self, state):
        Terms.fits(self, state)
        alive = (state["coefficients"] != 0).any(axis=0)
        self.forest.check_terms(state["points"][alive], self.forest.contents_of(state))

    def _check(self):
        Terms._check(self)
        self.forest.tree._check()
        contents = [self.forest.tree.contents(j) for j in range(self.n_features)]
        self.forest.check_terms(self.points(), contents)


# ---- The Kernel-Adatron: coefficients on a tree, or with a block of a Gram matrix, move in turn --

cdef inline double step_of(double alpha, double score, double y, double step) noexcept nogil:
    """What alpha becomes: V 3."""
    return fmax(0.0, alpha + step * (1.0 - y * score))


def pass_over_block(double[:, ::1] gram, Py_ssize_t first, const double[::1] y, double[::1] alpha,
                    double[::1] scores, double step):
    """Examples first, first + 1, ... in turn.

    gram has their kernel values with all examples, scores their f(x), which earlier ones of the block change.
    """
    cdef Py_ssize_t i, j, m = gram.shape[0]
    cdef double new, change
    with nogil:
        for i in range(m):
            new = step_of(alpha[first + i], scores[i], y[first + i], step)
            change = (new - alpha[first + i]) * y[first + i]
            alpha[first + i] = new
            if change != 0.0:
                for j in range(i + 1, m):
                    scores[j] += change * gram[j, first + i]


def pass_over_tree(Forest forest, X, const double[::1] y, double[::1] alpha, double step, Py_ssize_t epochs):
    """All examples in turn, again and again; the empty trees are to hold sum_i alpha_i y_i K(x_i, .)."""
    cdef Tree tree = forest.tree
    cdef const double[:, ::1] points = forest.places(X)
    cdef Py_ssize_t i, epoch
    cdef double new, change, score
    cdef int[::1] at = np.zeros(tree.n_coordinates, dtype=np.int32)
    for epoch in range(epochs + 1):
        tree.reserve(len(y))
        with nogil:
            for i in range(points.shape[0]):
                change = alpha[i] * y[i]
                if epoch:
                    tree.evaluate_into(&points[i, 0], 1, &score, &at[0])
                    new = step_of(alpha[i], score + forest.noise * change, y[i], step)
                    change = (new - alpha[i]) * y[i]
                    alpha[i] = new
                if change != 0.0:
                    tree.put(&points[i, 0], &change, tree.all_rows, 1)
