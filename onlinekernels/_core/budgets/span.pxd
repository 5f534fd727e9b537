"""What the points of terms span, which budgets that project need to know."""
cimport cython
from onlinekernels._core.formulas.factor cimport Factor


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
    cdef Py_ssize_t room                # points that there is room for
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
    cdef make_room(self, Py_ssize_t room)
