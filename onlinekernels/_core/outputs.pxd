"""Label structures for the engine: the label kernel kappa and the distance Delta."""

cdef enum LabelCode:
    PLAIN = 0           # kappa = identity, Delta = 1 between different labels
    TREE = 1            # kappa (65) and Delta (62) of a taxonomy
    TABLE = 2           # kappa = identity, Delta from a matrix


cdef class Outputs:
    cdef readonly int code
    cdef public Py_ssize_t n              # labels that there are now
    cdef object parent_array, place_array, table_array, node_array, path_array
    cdef Py_ssize_t n_nodes
    cdef const long long* parent            # of each node; parents come before children, -1 is above roots
    cdef const long long* place             # node of each label
    cdef const double* table                # Delta, (n, n)
    cdef double* nodes                      # scratch, one number per node
    cdef double* path                       # scratch, 0 between calls

    cdef void apply(self, double* scores) noexcept nogil
    cdef void distances(self, Py_ssize_t y, double* out) noexcept nogil
    cdef void mark(self, Py_ssize_t y, double value) noexcept nogil
    cdef double kappa(self, Py_ssize_t a, Py_ssize_t b) noexcept nogil
    cdef double spread(self, Py_ssize_t a, Py_ssize_t b) noexcept nogil
