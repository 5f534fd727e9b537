"""Recursive fits that leak towards their prior."""


cdef class Leaky:
    cdef readonly Py_ssize_t n, n_settings      # members; fits side by side
    cdef readonly double start                  # what each weight is beforehand
    cdef readonly object memories, priors       # of the settings
    cdef readonly object w, S                   # weights, and the inverse of their precision, of each setting
    cdef double[::1] work

    cdef void leak(self, double* w, double* S, double memory, double prior, long long t) noexcept nogil
    cdef double learn_direction(self, double* S, const double* x, double precision) noexcept nogil
