"""Budgets that keep all terms, or the latest, or those that a lot spares."""
cimport cython
from onlinekernels._core.functions.coefficients cimport Budget, Coefficients
from onlinekernels._core.points.tables cimport Table


@cython.final
cdef class UnlimitedBudget(Budget):
    pass


cdef class Queue(Budget):
    cdef Table orders                   # intp: the memory of `order`
    cdef Py_ssize_t* order              # slots in a circle, the oldest term's at `first`
    cdef Py_ssize_t room                # places in the circle
    cdef Py_ssize_t first               # place of the oldest
    cdef Py_ssize_t n                   # terms

    cdef Py_ssize_t oldest(self) noexcept nogil


@cython.final
cdef class RecentBudget(Queue):
    pass


@cython.final
cdef class RandomBudget(Queue):
    cdef readonly unsigned long long seed # of who goes


cdef class WindowBudget(Queue):
    cdef readonly long long steps         # that a term lives

    cdef long long length(self, long long t) noexcept nogil


@cython.final
cdef class SublinearBudget(WindowBudget):
    cdef readonly double exponent       # the window is t^exponent long
