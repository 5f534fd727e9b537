"""Augmented balanced trees, one per coordinate, for additive kernels (H part 1)."""
from onlinekernels._core.formulas.frame cimport Frame

cdef extern from "additive.h" nogil:
    ctypedef struct ok_additive:
        int code
        int order
        double rate
    enum:
        OK_SPLINE
        OK_MATERN
        OK_OWN
        OK_MAX_ORDER
        OK_MAX_DIMS
    int ok_additive_dims(const ok_additive* k) noexcept
    void ok_additive_start(ok_additive* k) noexcept
    void ok_additive_values(const ok_additive* k, double x, const double* p, double* out, Py_ssize_t n) noexcept
    void ok_additive_basis(const ok_additive* k, double low, double high, const double* p, double* out,
                           Py_ssize_t n) noexcept
    void ok_additive_shifts(const ok_additive* k, double low, double high, const double* lows, const double* highs,
                            double* scratch, Py_ssize_t n) noexcept
    void ok_additive_combine(const ok_additive* k, const double* shifts, const double* sums, double* out,
                             Py_ssize_t stride, Py_ssize_t n) noexcept
    void ok_additive_weights(const ok_additive* k, double x, const double* lows, const double* highs,
                             Py_ssize_t at, Py_ssize_t used, double* out, Py_ssize_t n) noexcept
    double ok_own_value(const ok_additive* k, const double* x, const double* z) noexcept
    void ok_own_values(const ok_additive* k, const double* x, const double* p, const double* facts, Py_ssize_t stride,
                       double* out, Py_ssize_t n) noexcept
    void ok_own_weights(const ok_additive* k, const double* x, Py_ssize_t at, Py_ssize_t used, double* out,
                        Py_ssize_t n) noexcept
    Py_ssize_t ok_count_below(const double* keys, double x, Py_ssize_t n) noexcept
    void ok_additive_row(const ok_additive* k, const double* low, const double* scale, const double* x,
                         const double* points, Py_ssize_t n, Py_ssize_t d, double* out) noexcept
    void ok_additive_row_f(const ok_additive* k, const double* low, const double* scale, const float* x,
                           const float* points, Py_ssize_t n, Py_ssize_t d, double* out) noexcept
    void ok_prefetch(const double* block, Py_ssize_t numbers) noexcept

cdef enum:
    LEAF = 32               # keys in a leaf
    FAN = 16                # children of a node
    HEADER = 8              # numbers at the start of a block: one cache line; its size is the first int
    NOWHERE = -1

cdef struct Store:
    # Blocks of one kind in one array; free ones are chained.
    Py_ssize_t block        # doubles in a block
    Py_ssize_t capacity
    Py_ssize_t used         # blocks that have ever been given out
    Py_ssize_t free         # how many of them are free again
    int first_free
    double* data


cdef ok_additive additive_kernel(description) except *


cdef class Tree:
    cdef ok_additive kernel
    cdef object functions                   # of a kernel of the user's own: left, then right ones
    cdef readonly int dims                  # sums per block, output and channel
    cdef readonly Py_ssize_t facts          # numbers that a leaf keeps beside each key: values of the user's functions
    cdef readonly Py_ssize_t stride         # numbers of a place: the key and its facts
    cdef readonly Py_ssize_t n_coordinates
    cdef readonly Py_ssize_t rows           # numbers per term: channels * outputs
    cdef Store leaves
    cdef Store nodes
    cdef object leaf_array, node_array, root_array, height_array, all_rows_array
    cdef int* root                          # per coordinate: a leaf at height 0, else a node, or NOWHERE
    cdef int* height
    cdef const int* all_rows                # 0, 1, ..., rows - 1

    cdef void evaluate_into(self, const double* x, Py_ssize_t rows, double* out, int* at) noexcept nogil
    cdef double value(self, const double* x, const double* z) noexcept nogil
    cdef void put(self, const double* x, const double* values, const int* touched, Py_ssize_t n) noexcept nogil
    cdef bint has(self, const double* x) noexcept nogil
    cdef void take(self, const double* x, const double* values, const int* touched, Py_ssize_t n) noexcept nogil
    cdef void clear(self) noexcept nogil
    cdef void fold(self, const Frame* frame) noexcept nogil
    cdef reserve(self, Py_ssize_t newcomers)
    cdef reserve_blocks(self, Py_ssize_t leaves, Py_ssize_t nodes)
    cdef grown(self, Store* store, array, Py_ssize_t wanted)
    cdef check_coordinate(self, Py_ssize_t j)
    cdef check_shapes(self, const double[::1] x, const double[::1] values)
    # Blocks
    cdef double* leaf(self, int i) noexcept nogil
    cdef double* node(self, int i) noexcept nogil
    cdef int new_block(self, Store* store, Py_ssize_t padded) noexcept nogil
    cdef void free_block(self, Store* store, int i) noexcept nogil
    cdef int size_of(self, int block, int level) noexcept nogil
    # One coordinate
    cdef void descend(self, Py_ssize_t j, const double* x, int level, const double* block, Py_ssize_t rows,
                      double* out, int* at) noexcept nogil
    cdef void look_into(self, const double* x, const double* block, Py_ssize_t rows, double* out) noexcept nogil
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
