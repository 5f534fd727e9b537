"""Declarations of tiles.h: products of matrices whose structure saves work."""

cdef extern from "tiles.h" nogil:
    void ok_product(double* C, Py_ssize_t c_stride, Py_ssize_t rows, Py_ssize_t columns, const double* A, Py_ssize_t a_row,
                    Py_ssize_t a_column, Py_ssize_t inner, const double* B, Py_ssize_t b_stride, Py_ssize_t upto) noexcept
    Py_ssize_t ok_few_multiplications() noexcept
    void ok_turn(const double* X, Py_ssize_t stride, Py_ssize_t rows, Py_ssize_t columns, double* T, Py_ssize_t t_stride) noexcept
    void ok_inner_block(const double* X, Py_ssize_t m, const double* S, Py_ssize_t n, Py_ssize_t d, double* out,
                        Py_ssize_t stride) noexcept
    void ok_distance_block(const double* X, const double* own, Py_ssize_t m, const double* T, Py_ssize_t t_stride, const double* squares,
                           Py_ssize_t n, Py_ssize_t d, double* out, Py_ssize_t stride) noexcept
    void ok_gram(const double* X, Py_ssize_t m, Py_ssize_t d, double* G) noexcept
    bint ok_gram_pays(Py_ssize_t d) noexcept
