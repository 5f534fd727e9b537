"""What the points of terms span, which budgets that project need to know."""
cimport cython


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
    cdef Py_ssize_t* order              # slots of the points

    cdef void look(self, const double* values, Py_ssize_t start, double own) noexcept nogil
    cdef void solve(self, Py_ssize_t first, double* way, double* out) noexcept nogil
    cdef void append(self) noexcept nogil
    cdef double leave(self, Py_ssize_t place) noexcept nogil
    cdef void renew_spike(self, Py_ssize_t place) noexcept nogil
    cdef make_room(self, Py_ssize_t room)
