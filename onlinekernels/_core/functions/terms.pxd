"""Functions that are sums over terms: a kernel over the rows of a dictionary, and coefficients."""
cimport cython
from onlinekernels._core.functions.coefficients cimport Coefficients
from onlinekernels._core.points.dictionary cimport Dictionary
from onlinekernels._core.functions.function cimport N_SHARED, Function, Scratch
from onlinekernels._core.points.kernelrows cimport KernelRows
from onlinekernels._core.run.example cimport Term

cdef enum TermsBuffer:
    TOTALS = N_SHARED


@cython.final
cdef class TermsScratch(Scratch):
    cdef double* totals                 # sums over all terms for each row of the piece, (channels * width, rows); or NULL


cdef class Terms(Function):
    cdef readonly Dictionary dictionary # the points
    cdef readonly Coefficients terms    # their coefficients

    cdef void entered(self, Scratch w, Py_ssize_t i, Py_ssize_t slot) noexcept nogil


@cython.final
cdef class KernelTerms(Terms):
    cdef readonly KernelRows rows       # the kernel between an example and the points

    cdef int add_up_by_slots(self, TermsScratch w, int last) except -1
    cdef int make_budget_room(self, Scratch w) except -1
