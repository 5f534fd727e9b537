"""Budgets that remove the term which is classified best without itself."""
cimport cython
from onlinekernels._core.budgets.pairs cimport PairBudget
from onlinekernels._core.functions.coefficients cimport Coefficients
from onlinekernels._core.points.dictionary cimport Table
from onlinekernels._core.run.example cimport Term


@cython.final
cdef class RedundantBudget(PairBudget):
    cdef readonly bint tighter
    cdef readonly bint insert_first     # the newcomer counts when it is chosen who goes
    cdef Table score_table              # room for what follows
    cdef double* scores                 # (capacity + 1, outputs): f at the terms' points, in the frame's coordinates
    cdef double* side                   # (capacity + 1,): of one output, the labels of the terms, +1 or -1
    cdef double* coming                 # (outputs,): the newcomer's coefficients; 0 if it does not count
    cdef double* used                   # (outputs,): 1 if a term has a coefficient there, others do not count yet

    cdef bint counts(self, Coefficients terms, Py_ssize_t slot) noexcept nogil
    cdef void take_scores(self, Coefficients terms, const Term* term) noexcept nogil
    cdef double margin_without(self, Coefficients terms, Py_ssize_t slot, Py_ssize_t other) noexcept nogil
    cdef Py_ssize_t mistakes_without(self, Coefficients terms, Py_ssize_t other) noexcept nogil
