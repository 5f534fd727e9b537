"""Budgets that keep a number for each two of their terms."""
from onlinekernels._core.functions.coefficients cimport Budget, Coefficients
from onlinekernels._core.points.dictionary cimport SquareTable, Table
from onlinekernels._core.run.piece cimport Piece


cdef class PairBudget(Budget):
    cdef readonly SquareTable pairs     # a number for each two terms; of slots without a term it means nothing
    cdef Table rows_of_newcomers
    cdef double* row                    # the newcomer's numbers with all slots in use,
    cdef double own                     # and with itself

    cdef void take_row(self, Coefficients terms, Piece piece, Py_ssize_t i) noexcept nogil
