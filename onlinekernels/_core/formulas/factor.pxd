"""A Cholesky factor that grows and shrinks with the points that it is about."""
cimport cython


@cython.final
cdef class Factor:
    cdef readonly Py_ssize_t n          # points
    cdef readonly Py_ssize_t room       # points that there is room for: numbers from one row to the next
    cdef readonly object array          # (room, room)
    cdef double* L                      # the same: lower triangular, K = L L^T

    cdef Factor with_room(self, Py_ssize_t room)
    cdef double* row(self, Py_ssize_t i) noexcept nogil
    cdef void solve(self, double* x, Py_ssize_t first) noexcept nogil
    cdef void solve_rows(self, double* X, Py_ssize_t stride, Py_ssize_t m) noexcept nogil
    cdef void solve_columns(self, double* B, Py_ssize_t stride, Py_ssize_t m) noexcept nogil
    cdef void solve_transposed(self, double* B, Py_ssize_t stride, Py_ssize_t m) noexcept nogil
    cdef void append(self, const double* row, double diagonal) noexcept nogil
    cdef void remove(self, Py_ssize_t i, double* scratch) noexcept nogil
    cdef void keep(self, const Py_ssize_t* kept, Py_ssize_t first, Py_ssize_t n, const double* corner) noexcept nogil
