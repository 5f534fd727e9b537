"""A budget that merges two terms into one, at a point between them."""
cimport cython
from onlinekernels._core.budgets.pairs cimport PairBudget
from onlinekernels._core.functions.coefficients cimport Coefficients
from onlinekernels._core.points.kernelrows cimport KernelRows
from onlinekernels._core.functions.function cimport Scratch
from onlinekernels._core.run.example cimport Term
from onlinekernels._core.run.piece cimport Piece


cdef struct Candidates:
    # Those that a victim may merge with: the terms, the newcomer at the end
    double* row                 # the newcomer's distances from all slots in use
    double* coefficient         # of each
    double* distance            # from the victim; infinite for those that it cannot merge with
    double* value               # of the Gaussian with it
    double* bound               # a merger loses at least this


@cython.final
cdef class MergingBudget(PairBudget):
    cdef KernelRows rows                # the Gaussian, over the terms
    cdef double rate                    # of the Gaussian: exp(-rate |a - b|^2)
    cdef double shift                   # a constant added to it, as a part of its height
    cdef object table_array             # keeps `table` alive
    cdef const double* table            # what a merger loses, by (ratio of coefficients, kernel value)
    cdef double table_error             # within this part of it

    cdef Candidates candidates_in(self, Coefficients terms, double* room) noexcept nogil
    cdef Py_ssize_t smallest(self, Coefficients terms, Candidates* others, double size) noexcept nogil
    cdef void look_around(self, Coefficients terms, Candidates* others, Py_ssize_t victim) noexcept nogil
    cdef Py_ssize_t cheapest(self, Coefficients terms, Candidates* others, const Term* term, Py_ssize_t victim,
                             double* share) noexcept nogil
    cdef Py_ssize_t nearest(self, Coefficients terms, Candidates* others, const Term* term, Py_ssize_t victim,
                             double* share) noexcept nogil
    cdef long long born(self, Coefficients terms, Py_ssize_t j) noexcept nogil
    cdef void merge(self, Coefficients terms, Piece piece, const Term* term, Py_ssize_t i, Py_ssize_t other, Py_ssize_t slot,
                    double share, double of_other, double of_slot) noexcept nogil
