"""Declarations of tiles.h: products of matrices whose structure saves work."""

cdef extern from "tiles.h" nogil:
    void ok_gram(const double* X, Py_ssize_t m, Py_ssize_t d, double* G) noexcept
    bint ok_gram_pays(Py_ssize_t d) noexcept
