"""Functions of additive kernels: trees, one per coordinate (H part 1)."""
cimport cython
from onlinekernels._core.formulas.additive cimport ok_additive
from onlinekernels._core.formulas.frame cimport Frame
from onlinekernels._core.functions.balanced cimport BalancedTree


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
