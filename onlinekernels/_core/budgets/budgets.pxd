"""Budgets: which terms of a function stay."""
cimport cython
from onlinekernels._core.functions.coefficients cimport Budget, Coefficients
from onlinekernels._core.points.dictionary cimport Table


@cython.final
cdef class Unlimited(Budget):
    pass


cdef class Queue(Budget):
    cdef Table orders
    cdef Py_ssize_t* order              # slots in a circle, the oldest term's at `first`
    cdef Py_ssize_t room, first, n

    cdef Py_ssize_t oldest(self) noexcept nogil


@cython.final
cdef class Recent(Queue):
    pass


@cython.final
cdef class RandomRemoval(Queue):
    cdef readonly unsigned long long seed


cdef class Window(Queue):
    cdef readonly long long steps

    cdef long long length(self, long long t) noexcept nogil


@cython.final
cdef class Sublinear(Window):
    cdef readonly double exponent


@cython.final
cdef class Smallest(Budget):
    cdef Table keys, heaps
    cdef double* key                    # of each slot: size of its stored coefficient, which only a fold changes
    cdef Py_ssize_t* heap               # slots, the smallest (key, birthday) first
    cdef Py_ssize_t n
    cdef bint vacant                    # the first place of the heap waits for a newcomer

    cdef void close(self, Coefficients terms) noexcept nogil
    cdef bint goes_before(self, Coefficients terms, Py_ssize_t a, Py_ssize_t b) noexcept nogil
    cdef void sift_up(self, Coefficients terms, Py_ssize_t i) noexcept nogil
    cdef void sift_down(self, Coefficients terms, Py_ssize_t i) noexcept nogil
