"""Functions that are sums over terms: a kernel over the rows of a dictionary, and coefficients."""
cimport cython
from onlinekernels._core.functions.coefficients cimport Coefficients
from onlinekernels._core.points.dictionary cimport Dictionary
from onlinekernels._core.functions.function cimport Function
from onlinekernels._core.points.kernelrows cimport KernelRows
from onlinekernels._core.run.workspace cimport Workspace


cdef class Terms(Function):
    cdef readonly Dictionary dictionary
    cdef readonly Coefficients terms

    cdef void shrink(self, Workspace w) noexcept nogil
    cdef void entered(self, Workspace w, Py_ssize_t i, Py_ssize_t slot) noexcept nogil


@cython.final
cdef class KernelTerms(Terms):
    cdef readonly KernelRows rows

    cdef int add_up_by_slots(self, Workspace w, int last) except -1
