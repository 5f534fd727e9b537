"""Declarations of reflections.h: points leave a Cholesky factor."""

cdef extern from "reflections.h" nogil:
    enum:
        OK_REFLECTED

    ctypedef struct ok_reflections:
        Py_ssize_t n
        Py_ssize_t more
        double* heads
        double* tails
        double* meet
        double* work

    Py_ssize_t ok_reflections_size(Py_ssize_t n, Py_ssize_t more) noexcept
    void ok_find_reflections(const ok_reflections* h, double* X, Py_ssize_t stride, Py_ssize_t columns) noexcept
    void ok_reflect(const ok_reflections* h, double* X, Py_ssize_t stride, Py_ssize_t columns) noexcept
