"""Declarations of triangles.h: triangular systems of some hundred rows."""

cdef extern from "triangles.h" nogil:
    void ok_times_rows(const double* S, Py_ssize_t stride, Py_ssize_t n, Py_ssize_t d, const double* x, double* out) noexcept
    void ok_solve_rows(const double* L, Py_ssize_t stride, Py_ssize_t n, double* X, Py_ssize_t x_stride,
                       Py_ssize_t m) noexcept
    void ok_solve_block(const double* L, Py_ssize_t stride, Py_ssize_t n, double* B, Py_ssize_t b_stride,
                        Py_ssize_t m) noexcept
    void ok_solve_transposed(const double* L, Py_ssize_t stride, Py_ssize_t n, double* B, Py_ssize_t b_stride,
                             Py_ssize_t m) noexcept
    void ok_remove_row(double* L, Py_ssize_t stride, Py_ssize_t n, Py_ssize_t p, double* c, double* s) noexcept
    void ok_invert_lower(const double* L, Py_ssize_t stride, Py_ssize_t n, double* Z, Py_ssize_t z_stride) noexcept
    void ok_shrink_and_subtract(const double* S, Py_ssize_t stride, Py_ssize_t n, double c, double d, double* W,
                                Py_ssize_t w_stride) noexcept
    void ok_column_squares(const double* Z, Py_ssize_t n, double* out) noexcept
    void ok_eliminate(const double* R, Py_ssize_t b, double root, double* V, Py_ssize_t stride, Py_ssize_t k, Py_ssize_t n) noexcept
    void ok_leave(const double* Z, Py_ssize_t n, Py_ssize_t b, double* V, Py_ssize_t k, double* diagonal, const double* least,
                  double* alpha, Py_ssize_t labels) noexcept
    void ok_losses(const double* alpha, Py_ssize_t labels, Py_ssize_t n, const double* diagonal, double* loss) noexcept
    void ok_next_column(double* T, Py_ssize_t stride, Py_ssize_t r, Py_ssize_t n, double root, double* squares) noexcept
    Py_ssize_t ok_oldest(const double* loss, double limit, const long long* birthday, Py_ssize_t n) noexcept
    double ok_largest_above(const double* x, double share, const double* other, Py_ssize_t n) noexcept
    int ok_decompose(double* A, Py_ssize_t stride, Py_ssize_t n) noexcept
