"""Declarations of additive.h: additive kernels."""

cdef extern from "additive.h" nogil:
    ctypedef struct ok_additive:
        int code
        int order
        double rate
    enum:
        OK_SPLINE
        OK_MATERN
        OK_OWN
        OK_MAX_ORDER
        OK_MAX_DIMS
    int ok_additive_dims(const ok_additive* k)
    void ok_additive_start(ok_additive* k)
    void ok_additive_values(const ok_additive* k, double x, const double* p, double* out, Py_ssize_t n)
    void ok_additive_basis(const ok_additive* k, double low, double high, const double* p, double* out, Py_ssize_t n)
    void ok_additive_shifts(const ok_additive* k, double low, double high, const double* lows, const double* highs,
                            double* scratch, Py_ssize_t n)
    void ok_additive_combine(const ok_additive* k, const double* shifts, const double* sums, double* out,
                             Py_ssize_t stride, Py_ssize_t n)
    void ok_additive_weights(const ok_additive* k, double x, const double* lows, const double* highs, Py_ssize_t at,
                             Py_ssize_t used, double* out, Py_ssize_t n)
    double ok_own_value(const ok_additive* k, const double* x, const double* z)
    void ok_own_values(const ok_additive* k, const double* x, const double* p, const double* cached, Py_ssize_t stride,
                       double* out, Py_ssize_t n)
    void ok_own_weights(const ok_additive* k, const double* x, Py_ssize_t at, Py_ssize_t used, double* out,
                        Py_ssize_t n)
    Py_ssize_t ok_count_below(const double* keys, double x, Py_ssize_t n)
    void ok_additive_row(const ok_additive* k, const double* low, const double* scale, const double* x,
                         const double* points, Py_ssize_t n, Py_ssize_t d, double* out)
    void ok_additive_row_f(const ok_additive* k, const double* low, const double* scale, const float* x,
                           const float* points, Py_ssize_t n, Py_ssize_t d, double* out)
    void ok_prefetch(const double* block, Py_ssize_t numbers)
