"""The protocol of everything that learns."""


cdef class Backend:
    # A call
    cdef int attach(self, examples) except -1
    cdef int detach(self) except -1
    # A block of its rows: `open`, which may fail and then has changed nothing; all else cannot fail
    cdef Py_ssize_t room(self) except -1
    cdef int open(self, Py_ssize_t first, Py_ssize_t n, const double* y, const double* weights, Py_ssize_t labels) except -1
    cdef bint test(self, Py_ssize_t i, double* scores, double* deviations) noexcept nogil
    cdef bint train(self, Py_ssize_t i) noexcept nogil
    cdef void commit(self, Py_ssize_t n) noexcept
    cdef bint diverges(self) noexcept nogil
    cdef object signal(self)
    cdef object failure(self)
    # As of now
    cdef int evaluate(self, examples, Py_ssize_t n, double* scores, Py_ssize_t stride, double* deviations,
                      Py_ssize_t spread) except -1
