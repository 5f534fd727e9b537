"""The implicit step of a loss in Python."""
cimport cython
from onlinekernels._core.run.example cimport Example


@cython.final
cdef class ConvexStep:
    cdef object loss                # the user's
    cdef bint squared               # whether its square counts: PA-II
    cdef bint has_curvature         # whether the loss tells its second derivative

    cdef double alpha(self, double z, double y, double k, double size, Example e) noexcept with gil
    cdef double root(self, double z, double y, double k, double size) except? -1.0
    cdef double slope(self, double z, double y) except? -1.0
    cdef double asked(self, name, double z, double y) except? -1.0
    cdef int check_order(self, double first, double z, double side, double k, double u, double h, double w, double g,
                         double y) except -1
