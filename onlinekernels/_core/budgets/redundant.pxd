"""Budgets that remove the term which is classified best without itself."""
cimport cython
from onlinekernels._core.budgets.pairs cimport PairBudget
from onlinekernels._core.functions.coefficients cimport Coefficients
from onlinekernels._core.run.example cimport Term


cdef struct Looks:
    # What is looked at before it is said who goes
    Py_ssize_t rows             # outputs that count
    double own                  # k(x, x) of the newcomer,
    double* row                 # (capacity + 1,): its kernel values with all slots in use
    double* side                # (capacity + 1,): of one output, the labels of the terms, +1 or -1
    double* used                # (outputs,): 1 if a term has a coefficient there, others do not count yet
    double* coming              # (outputs,): the newcomer's coefficients; 0 if it does not count
    double slack                # margins that differ by less are equal, whatever the rounding
    double* scores              # (capacity + 1, outputs): f at the terms' points, in the frame's coordinates


@cython.final
cdef class RedundantBudget(PairBudget):
    cdef readonly bint tighter  # few mistakes without it count first: Weston, Bordes, Bottou
    cdef readonly bint insert_first     # the newcomer counts when it is chosen who goes

    cdef bint counts(self, Coefficients terms, Py_ssize_t slot) noexcept nogil
    cdef void take_scores(self, Coefficients terms, const Term* term, const double* values, double own, double* room,
                          Looks* looks) noexcept nogil
    cdef double margin_without(self, Coefficients terms, const Looks* looks, Py_ssize_t slot, Py_ssize_t other) noexcept nogil
    cdef Py_ssize_t mistakes_without(self, Coefficients terms, const Looks* looks, Py_ssize_t other) noexcept nogil
