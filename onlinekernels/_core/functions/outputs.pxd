"""Label structures: how many labels there are, the label kernel kappa and the distance Delta."""


cdef class Outputs:
    cdef readonly Py_ssize_t joined         # labels that there are now: the one place that knows
    cdef readonly Py_ssize_t n              # outputs that move: the labels and, if they learn ahead, those to join next
    cdef readonly bint ahead                # whether labels learn before they join
    cdef readonly Py_ssize_t n_nodes        # numbers of scratch that `apply` and `distances` want

    cdef Py_ssize_t kept(self) noexcept nogil
    cdef void let_join(self, Py_ssize_t joined) noexcept nogil
    cdef void apply(self, double* scores, double* nodes) noexcept nogil
    cdef void distances(self, Py_ssize_t y, double* out, double* nodes) noexcept nogil
    cdef double kappa(self, Py_ssize_t a, Py_ssize_t b) noexcept nogil
    cdef double square_between(self, Py_ssize_t a, Py_ssize_t b) noexcept nogil


cdef class TaxonomyOutputs(Outputs):
    cdef object parent_array, place_array   # keep these alive
    cdef const long long* parent            # of each node; parents come before children, -1 is above roots
    cdef const long long* place             # node of each label


cdef class GraphOutputs(Outputs):
    cdef object table_array                 # keeps the table alive
    cdef const double* table                # Delta, (n, n)


cdef class MatrixOutputs(GraphOutputs):
    cdef object kernel_array                # keeps the kernel alive
    cdef const double* kernel               # kappa, (n, n)
