"""Functions of additive kernels, f(x, y) = sum_j f_j(x_j, y), on one balanced tree per coordinate."""
cimport cython
from onlinekernels._core.formulas.additive cimport ok_additive
from onlinekernels._core.formulas.frame cimport Frame

cdef struct Blocks:
    # Blocks of one kind in one array; free ones are chained.
    Py_ssize_t block        # doubles in a block
    Py_ssize_t capacity     # blocks that there is room for
    Py_ssize_t used         # blocks that have ever been given out
    Py_ssize_t free         # how many of them are free again
    int first_free          # the first of the chain, or NOWHERE
    double* data            # of the array


cdef class BalancedTree:
    cdef readonly int dims                  # sums per block, output and channel
    cdef readonly Py_ssize_t facts          # numbers that a leaf keeps beside each key: values of the user's functions
    cdef readonly Py_ssize_t stride         # numbers of a place: the key and its facts
    cdef readonly Py_ssize_t n_coordinates  # trees
    cdef readonly Py_ssize_t rows           # numbers per term: channels * outputs
    cdef Blocks leaves                      # of all trees
    cdef Blocks nodes                       # of all trees
    cdef object leaf_array, node_array, root_array, height_array, all_rows_array # keep the memory alive
    cdef int* root                          # per coordinate: a leaf at height 0, else a node, or NOWHERE
    cdef int* height                        # per coordinate: levels of nodes above the leaves
    cdef const int* all_rows                # 0, 1, ..., rows - 1

    @cython.final
    cdef inline double* leaf(self, int i) noexcept nogil:
        return self.leaves.data + i * self.leaves.block

    @cython.final
    cdef inline double* node(self, int i) noexcept nogil:
        return self.nodes.data + i * self.nodes.block

    @cython.final
    cdef inline int size_of(self, int block, int level) noexcept nogil:
        return (<int*> (self.leaf(block) if level == 0 else self.node(block)))[0]

    cdef void put(self, const double* x, const double* values, const int* touched, Py_ssize_t n) noexcept nogil
    cdef bint has(self, const double* x) noexcept nogil
    cdef void take(self, const double* x, const double* values, const int* touched, Py_ssize_t n) noexcept nogil
    cdef void clear(self) noexcept nogil
    cdef reserve(self, Py_ssize_t newcomers)
    cdef reserve_blocks(self, Py_ssize_t leaves, Py_ssize_t nodes)
    cdef grown(self, Blocks* store, array, Py_ssize_t wanted)
    cdef check_coordinate(self, Py_ssize_t j)
    cdef int new_block(self, Blocks* store, Py_ssize_t padded) noexcept nogil
    cdef void free_block(self, Blocks* store, int i) noexcept nogil
    cdef void put_key(self, Py_ssize_t j, const double* key, const double* values, const int* touched,
                      Py_ssize_t n) noexcept nogil
    cdef int insert_below(self, int block, int level, const double* key, const double* values, const int* touched,
                    Py_ssize_t n, bint* everything) noexcept nogil
    cdef int insert_in_leaf(self, int block, const double* key, const double* values, const int* touched,
                            Py_ssize_t n, bint* everything) noexcept nogil
    cdef void insert_child(self, int block, Py_ssize_t at, int child, int level) noexcept nogil
    cdef void remove_below(self, int block, int level, double key, const double* values, const int* touched,
                     Py_ssize_t n, bint* everything) noexcept nogil
    cdef void remove_in_leaf(self, int block, double key, const double* values, const int* touched,
                             Py_ssize_t n) noexcept nogil
    cdef void remove_child(self, int block, Py_ssize_t at) noexcept nogil
    cdef bint merge(self, int block, Py_ssize_t at, int level) noexcept nogil
    cdef int split(self, int block, int level) noexcept nogil
    cdef void move_entries(self, int source, Py_ssize_t first, Py_ssize_t n, int target, Py_ssize_t at,
                           int level) noexcept nogil
    cdef void refresh(self, int block, Py_ssize_t at, int level, const int* touched, Py_ssize_t n,
                      bint* everything) noexcept nogil
    cdef void refresh_below(self, int block, int level) noexcept nogil
    cdef collect(self, int block, int level, list leaf_blocks, list sizes)
    cdef build(self, Py_ssize_t j, keys, counts, values, sizes)
    cdef ends(self, int block, int level)


@cython.final
cdef class Tree(BalancedTree):
    cdef ok_additive kernel                 # K of one coordinate
    cdef object functions                   # of a kernel of the user's own: left, then right ones

    cdef void evaluate_into(self, const double* x, Py_ssize_t rows, double* out, int* at) noexcept nogil
    cdef double value(self, const double* x, const double* z) noexcept nogil
    cdef void fold(self, const Frame* frame) noexcept nogil
    cdef check_shapes(self, const double[::1] x, const double[::1] values)
    cdef void descend(self, Py_ssize_t j, const double* x, int level, const double* block, Py_ssize_t rows,
                      double* out, int* at) noexcept nogil
    cdef void look_into(self, const double* x, const double* block, Py_ssize_t rows, double* out) noexcept nogil
