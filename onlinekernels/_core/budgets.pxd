"""Budgets: which term goes, and what becomes of its coefficient. The contract is `Budget` in `terms`."""
cimport cython
from onlinekernels._core.functions cimport Scratch, Term
from onlinekernels._core.linalg cimport Factor
from onlinekernels._core.terms cimport Budget, Coefficients

cdef struct Look:
    # How a point lies to a span
    double own                  # k(x, x),
    double residual             # and what of it is orthogonal to the span
    double* way                 # L^-1 row, of its kernel values with the points
    double* shares              # K^-1 row: its projection onto the span has these coefficients
    double* loss                # of projecting each point, with it there


@cython.final
cdef class Span:
    cdef readonly Py_ssize_t n          # points
    cdef Py_ssize_t capacity                # points that there is room for
    cdef readonly Factor factor         # of the kernel matrix K of the points, oldest first
    cdef object array, order_array      # the memory of what follows
    cdef double* own                    # k(x, x) of each point
    cdef double* spike                  # the diagonal of K^-1
    cdef double* wear                   # and by how much rounding may have changed it
    cdef double* way                    # L^-1 e_i of the point that left last,
    cdef double* column                 # and its column of K^-1
    cdef double* scratch                # twice as long
    cdef Py_ssize_t* order              # slots of the points

    cdef void look(self, const double* values, Py_ssize_t start, double own, Look* look) noexcept nogil
    cdef void append(self, const Look* look) noexcept nogil
    cdef double leave(self, Py_ssize_t i) noexcept nogil
    cdef double unit_solution(self, Py_ssize_t i) noexcept nogil
    cdef reserve(self, Py_ssize_t capacity)


@cython.final
cdef class ProjectingBudget(Budget):
    cdef readonly double tolerance      # a candidate is projected if at most this part of k(x, x) is lost
    cdef readonly Span span             # of the terms
    cdef double floor                   # residuals below it, relative to k(x, x), are rounding
    cdef readonly bint candidates_yield  # when it is full, it is always the candidate that is projected
    cdef bint expected                  # the span has followed already: somebody leaves, or enters

    cdef Look look_in(self, double* buffer) noexcept nogil
    cdef double look(self, const double* values, double own, double* buffer) noexcept nogil
    cdef Py_ssize_t cheapest(self, Scratch w, const Term* term, Look* look) noexcept nogil
    cdef void share_out_candidate(self, const Term* term, const Look* look) noexcept nogil
    cdef void share_out(self, Term* term, Term* old, Py_ssize_t slot, Py_ssize_t place, double residual) noexcept nogil
