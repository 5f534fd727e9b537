"""Declarations of vecmath.h, the vector mathematics of the hot loops."""

cdef extern from "vecmath.h" nogil:
    enum:
        OK_LANES
    float ok_exp_f(float x)
    void ok_exp_array(const double* x, double* out, Py_ssize_t n)
    void ok_fourier_row(double* row, double* sines, double scale, Py_ssize_t n)
    double ok_dot(const double* a, const double* b, Py_ssize_t n)
    void ok_axpy(double a, const double* x, double* y, Py_ssize_t n)
    void ok_distance_row(const double* inner, const double* square, double own_square, double rate, double* out,
                         Py_ssize_t n)
    void ok_widen(const float* x, double* out, Py_ssize_t n)
    double ok_precise_dot(const double* a, const double* b, Py_ssize_t n)
    double ok_precise_dot_f(const float* a, const float* b, Py_ssize_t n)
    int ok_all_finite(const double* x, Py_ssize_t n)
    int ok_all_finite_f(const float* x, Py_ssize_t n)
    void ok_inner_row(const double* S, Py_ssize_t n, Py_ssize_t d, const double* x, double* out)
    void ok_inner_row_f(const float* S, Py_ssize_t n, Py_ssize_t d, const float* x, double* out)
    void ok_subtract(const double* x, const double* origin, double* out, Py_ssize_t d)
    void ok_subtract_f(const float* x, const float* origin, float* out, Py_ssize_t d)
    void ok_l1_block(const double* X, Py_ssize_t m, const double* S, Py_ssize_t n, Py_ssize_t d, double* out,
                     Py_ssize_t stride)
    void ok_l1_block_f(const float* X, Py_ssize_t m, const float* S, Py_ssize_t n, Py_ssize_t d, double* out,
                       Py_ssize_t stride)
    void ok_scatter_pairs(const double* k, const double* coef, const int* first, const int* second, Py_ssize_t n,
                          double* sums, Py_ssize_t labels)
    void ok_gaussian_row(const double* inner, const double* square, double own_square, double gamma, double* out,
                         Py_ssize_t n)
    void ok_laplacian_row(const double* distance, double rate, double* out, Py_ssize_t n)
    void ok_affine_row(const double* inner, const double* origin_product, double own, double scale, double bias,
                       double* out, Py_ssize_t n)
    void ok_power_row(double* base, int degree, Py_ssize_t n)
    void ok_add_row(double* into, const double* row, Py_ssize_t n)
    void ok_multiply_row(double* into, const double* row, Py_ssize_t n)
    void ok_shift_row(double* row, double by, Py_ssize_t n)
    void ok_scale_row(double* row, double by, Py_ssize_t n)
    double ok_least(const double* x, Py_ssize_t n)
    Py_ssize_t ok_smallest(const double* x, Py_ssize_t n, Py_ssize_t k, Py_ssize_t* place, double* best)
    void ok_gather(const double* values, Py_ssize_t stride, const Py_ssize_t* index, Py_ssize_t n, double* out)
    double ok_scatter(const double* share, const double* x, double mean, Py_ssize_t n)
    Py_ssize_t ok_nearby(const double* x, Py_ssize_t n, double limit, double least, double rate, Py_ssize_t* place,
                         double* out)
