"""Functions on trees, for additive kernels."""
cimport cython
from onlinekernels._core.functions.function cimport N_SHARED, Function, Scratch
from onlinekernels._core.functions.terms cimport Terms
from onlinekernels._core.functions.tree cimport Tree
from onlinekernels._core.run.example cimport Term

cdef enum TreeBuffer:
    PLACES = N_SHARED
    DESCENT
    TOUCHED
    TOUCHED_VALUES
    KNOT


@cython.final
cdef class TreeScratch(Scratch):
    cdef double* places                 # rows of the piece as trees know them
    cdef int* descent                   # where each coordinate's descent is
    cdef int* touched                   # rows of the trees that a term touches,
    cdef double* touched_values         # what they get,
    cdef double* knot                   # and the term's point


@cython.final
cdef class Forest:
    cdef readonly Tree tree             # one for each feature
    cdef object description             # the kernel, as `Tree` takes it
    cdef readonly double scale          # k(x, z) = scale * sum_j K(x_j, z_j)
    cdef readonly Py_ssize_t n_features # trees
    cdef readonly Py_ssize_t width      # outputs that there is room for
    cdef Py_ssize_t span                # numbers of an example as the trees know it
    cdef readonly int channels          # of the frame
    cdef readonly object low, stretch   # a point is mapped to (x - low) * stretch; or None
    cdef double* low_data               # of `low`, or NULL
    cdef double* stretch_data           # of `stretch`, or NULL

    cdef void take_over(self, Tree tree, Py_ssize_t width) noexcept
    cdef void map_point(self, const double* x, double* out) noexcept nogil
    cdef int open(self, TreeScratch w, Py_ssize_t first, Py_ssize_t m, bint copies) except -1
    cdef void evaluate(self, TreeScratch w, const double* x, Py_ssize_t rows) noexcept nogil
    cdef double value(self, const double* x, const double* z) noexcept nogil
    cdef Py_ssize_t rows_of(self, TreeScratch w, const Term* term) noexcept nogil
    cdef void put(self, TreeScratch w, const double* x, const Term* term) noexcept nogil
    cdef void take(self, TreeScratch w, const double* x, const Term* term) noexcept nogil


@cython.final
cdef class Trees(Function):
    cdef readonly Forest forest         # what f is kept in


@cython.final
cdef class BudgetedTrees(Terms):
    cdef readonly Forest forest         # what f is kept in

    cdef void plant(self, Scratch w, Py_ssize_t slot) noexcept nogil
    cdef const double* knot(self, TreeScratch w, Py_ssize_t slot) noexcept nogil
