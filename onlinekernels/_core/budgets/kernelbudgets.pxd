"""Budgets that look at the kernel: what goes leaves something behind, or is chosen by what it is worth."""
cimport cython
from onlinekernels._core.functions.coefficients cimport Budget, Coefficients
from onlinekernels._core.points.dictionary cimport SquareTable, Table
from onlinekernels._core.points.kernelrows cimport KernelRows
from onlinekernels._core.functions.function cimport Scratch
from onlinekernels._core.run.example cimport Term
from onlinekernels._core.run.piece cimport Piece


@cython.final
cdef class Span:
    cdef readonly Py_ssize_t n          # points
    cdef Py_ssize_t room
    cdef object array, order_array
    cdef double* factor                 # (room, room): R, upper triangular; K = R'R over the points, oldest first
    cdef double* own                    # k(x, x) of each point
    cdef double* spike                  # the diagonal of K^-1
    cdef double* wear                   # and by how much rounding may have changed it
    # What was looked at last
    cdef double* row                    # its kernel values with the points
    cdef double* way                    # R'^-1 row
    cdef double* shares                 # K^-1 row: its projection onto the span has these coefficients
    cdef double* column                 # of K^-1: the point that left last
    cdef double own_value               # k(x, x)
    cdef double residual                # and what of it is orthogonal to the span
    cdef bint looked                    # and the span is as it was
    cdef Py_ssize_t* order              # slots of the points

    cdef void look(self, const double* values, Py_ssize_t start, double own) noexcept nogil
    cdef void solve(self, Py_ssize_t first, double* way, double* out) noexcept nogil
    cdef void append(self) noexcept nogil
    cdef double leave(self, Py_ssize_t place) noexcept nogil
    cdef void renew_spike(self, Py_ssize_t place) noexcept nogil
    cdef make_room(self, Py_ssize_t room)


@cython.final
cdef class Projecting(Budget):
    cdef readonly double tolerance
    cdef readonly Span span
    cdef double floor                   # residuals below it, relative to k(x, x), are rounding
    cdef readonly bint newcomers_yield  # when it is full, it is always the newcomer that is projected
    cdef bint expected                  # the span has followed already: somebody leaves, or enters

    cdef double look(self, Coefficients terms, const double* values, double own) noexcept nogil
    cdef Py_ssize_t cheapest(self, Span span, Coefficients terms, const Term* term) noexcept nogil
    cdef void share_out_newcomer(self, Coefficients terms, const Term* term) noexcept nogil
    cdef void share_out(self, Coefficients terms, Term* term, Term* old, Py_ssize_t slot, Py_ssize_t place) noexcept nogil


cdef class PairBudget(Budget):
    cdef readonly SquareTable pairs     # a number for each two terms; of slots without a term it means nothing
    cdef Table rows_of_newcomers
    cdef double* row                    # the newcomer's numbers with all slots in use,
    cdef double own                     # and with itself

    cdef void take_row(self, Coefficients terms, Piece piece, Py_ssize_t i) noexcept nogil


@cython.final
cdef class Merging(PairBudget):
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


@cython.final
cdef class Shrinking(PairBudget):
    cdef readonly long long mistakes    # M: terms that have entered
    cdef readonly double damage         # Q: what removals have cost so far, at most


@cython.final
cdef class Redundant(PairBudget):
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
