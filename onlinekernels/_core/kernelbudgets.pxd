"""Budgets that look at the kernel: what goes leaves something behind, or is chosen by what it is worth."""
cimport cython
from onlinekernels._core.coefficients cimport Budget, Coefficients
from onlinekernels._core.workspace cimport Workspace


@cython.final
cdef class Span:
    cdef readonly Py_ssize_t n          # points
    cdef Py_ssize_t room
    cdef object array, order_array
    cdef double* factor                 # (room, room): R, upper triangular; K = R'R over the points, oldest first
    cdef double* own                    # k(x, x) of each point
    cdef double* spike                  # the diagonal of K^-1
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
    cdef make_room(self, Py_ssize_t room)


@cython.final
cdef class Projecting(Budget):
    cdef readonly double tolerance
    cdef readonly Span span
    cdef double floor                   # residuals below it, relative to k(x, x), are rounding
    cdef readonly bint newcomers_yield  # when it is full, it is always the newcomer that is projected
    cdef bint stays_out                 # the next newcomer is projected in any case
    cdef bint expected                  # the span has followed already: somebody leaves, or enters

    cdef double look(self, Coefficients terms, Workspace w, double own) noexcept nogil
    cdef Py_ssize_t cheapest(self, Span span, Coefficients terms, Workspace w) noexcept nogil
    cdef void share_out_newcomer(self, Coefficients terms, Workspace w) noexcept nogil
    cdef void share_out(self, Coefficients terms, Workspace w, Py_ssize_t slot, Py_ssize_t place) noexcept nogil
