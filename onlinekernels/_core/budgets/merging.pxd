"""A budget that merges two terms into one, at a point between them."""
cimport cython
from onlinekernels._core.budgets.pairs cimport PairBudget
from onlinekernels._core.functions.coefficients cimport Coefficients
from onlinekernels._core.points.dictionary cimport Table
from onlinekernels._core.points.kernelrows cimport KernelRows
from onlinekernels._core.functions.function cimport Scratch
from onlinekernels._core.run.example cimport Term
from onlinekernels._core.run.piece cimport Piece


@cython.final
cdef class MergingBudget(PairBudget):
    cdef KernelRows rows
    cdef double rate                    # of the Gaussian: exp(-rate |a - b|^2)
    cdef double shift                   # a constant added to it, as a part of its height
    cdef object table_array
    cdef Table candidates
    cdef const double* table            # what a merger loses, by (ratio of coefficients, kernel value)
    cdef double table_error             # within this part of it
    cdef double* coefficient            # of candidates: the terms, the newcomer at the end
    cdef double* distance               # from the victim; infinite for those that it cannot merge with
    cdef double* value                  # of the Gaussian with it
    cdef double* bound                  # a merger loses at least this

    cdef Py_ssize_t smallest(self, Coefficients terms, double size) noexcept nogil
    cdef void look_around(self, Coefficients terms, Py_ssize_t victim) noexcept nogil
    cdef Py_ssize_t cheapest(self, Coefficients terms, const Term* term, Py_ssize_t victim, double* share) noexcept nogil
    cdef Py_ssize_t nearest(self, Coefficients terms, const Term* term, Py_ssize_t victim, double* share) noexcept nogil
    cdef long long born(self, Coefficients terms, Py_ssize_t j) noexcept nogil
    cdef void merge(self, Coefficients terms, Piece piece, const Term* term, Py_ssize_t i, Py_ssize_t other, Py_ssize_t slot,
                    double share, double of_other, double of_slot) noexcept nogil
