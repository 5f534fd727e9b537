"""Feature maps: examples as rows of features, k(x, z) = <phi(x), phi(z)>."""
from onlinekernels._core.functions cimport Piece

cdef class FeatureMap:
    cdef readonly Py_ssize_t n_features     # of examples
    cdef readonly Py_ssize_t size           # features that they become
    cdef readonly bint sparse               # examples are sparse rows
    cdef readonly bint single               # examples are float32
    cdef readonly object dtype              # the same
    cdef Py_ssize_t row_bytes               # of a dense one
    cdef readonly Py_ssize_t depth          # pieces below the call's that it needs

    cdef int map_rows(self, Piece piece, Py_ssize_t first, Py_ssize_t m, bint learning, double* out,
                      Py_ssize_t stride) except -1
    cdef bint grows(self) noexcept nogil
    cdef change(self, Piece piece, Py_ssize_t first)
    cdef void carry_out_change(self) noexcept
    cdef void admit(self, Piece piece) noexcept nogil
    # The same for all
    cdef int attach(self, Piece piece, examples) except -1
    cdef void admit_below(self, Piece piece, Py_ssize_t levels) noexcept nogil
