"""Opinions weighed by what they lost."""

cdef double CAP                             # no row says more than this against an opinion, in nats


cdef void shared_out(double* belief, const double* losses, Py_ssize_t n, double share) noexcept nogil
