"""A budget that projects what goes onto what stays."""
cimport cython
from onlinekernels._core.budgets.span cimport Look, Span
from onlinekernels._core.functions.coefficients cimport Budget, Coefficients
from onlinekernels._core.run.example cimport Term


@cython.final
cdef class ProjectingBudget(Budget):
    cdef readonly double tolerance      # a newcomer is projected if at most this part of k(x, x) is lost
    cdef readonly Span span             # of the terms
    cdef double floor                   # residuals below it, relative to k(x, x), are rounding
    cdef readonly bint newcomers_yield  # when it is full, it is always the newcomer that is projected
    cdef bint expected                  # the span has followed already: somebody leaves, or enters

    cdef Look look_in(self, Coefficients terms, double* room) noexcept nogil
    cdef double look(self, Coefficients terms, const double* values, double own, double* room) noexcept nogil
    cdef Py_ssize_t cheapest(self, Coefficients terms, const Term* term, Look* look) noexcept nogil
    cdef void share_out_newcomer(self, Coefficients terms, const Term* term, const Look* look) noexcept nogil
    cdef void share_out(self, Coefficients terms, Term* term, Term* old, Py_ssize_t slot, Py_ssize_t place,
                        double residual) noexcept nogil
