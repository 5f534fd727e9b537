"""Budgets that keep a number for each two of their terms."""
from onlinekernels._core.functions.coefficients cimport Budget, Coefficients
from onlinekernels._core.points.tables cimport SquareTable, Table


cdef class PairBudget(Budget):
    cdef readonly SquareTable pairs     # a number for each two terms; of slots without a term it means nothing
    cdef Table rows_of_newcomers        # the memory of `row`
    cdef double* row                    # the numbers of a newcomer that is about to enter with all slots in use,
    cdef double own                     # and with itself

    cdef void take_row(self, Coefficients terms, const double* row, double own) noexcept nogil
