"""A budget that keeps the terms with the largest coefficients, in a heap."""
cimport cython
from onlinekernels._core.functions.coefficients cimport Budget, Coefficients
from onlinekernels._core.points.tables cimport Table


@cython.final
cdef class SmallestBudget(Budget):
    cdef Table keys, heaps              # the memory of `key` and `heap`
    cdef double* key                    # of each slot: size of its stored coefficient, which only a fold changes
    cdef Py_ssize_t* heap               # slots, the smallest (key, birthday) first
    cdef Py_ssize_t n                   # slots in the heap
    cdef bint vacant                    # the first place of the heap waits for a newcomer

    cdef void close(self, Coefficients terms) noexcept nogil
    cdef bint goes_before(self, Coefficients terms, Py_ssize_t a, Py_ssize_t b) noexcept nogil
    cdef void sift_up(self, Coefficients terms, Py_ssize_t i) noexcept nogil
    cdef void sift_down(self, Coefficients terms, Py_ssize_t i) noexcept nogil
