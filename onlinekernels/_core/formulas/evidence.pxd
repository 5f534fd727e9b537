"""Declarations of evidence.h: the evidence of a kernel."""

cdef extern from "evidence.h" nogil:
    void ok_covariance_row(const double* Z, Py_ssize_t n, Py_ssize_t d, const double* times, Py_ssize_t i, double amplitude,
                           double forgetting, double* kernel, double* both) noexcept
    void ok_half_square(const double* Z, Py_ssize_t n, double c, const double* alpha, Py_ssize_t outputs, double* W) noexcept
    void ok_add_slopes(const double* Z, Py_ssize_t n, Py_ssize_t d, const double* times, Py_ssize_t i, double forgetting,
                       const double* kernel, const double* both, double* W, double* slopes) noexcept
