"""Kinds of points: rows of an array, sparse rows, Python objects."""
from onlinekernels._core.functions cimport Piece


cdef class Rows:
    cdef readonly object indptr         # int64, (n + 1,)
    cdef readonly object indices        # int32, ascending in each row
    cdef readonly object data           # float64
    cdef readonly Py_ssize_t n_features # columns
    cdef const long long* start         # of `indptr`
    cdef const int* index               # of `indices`
    cdef const double* value            # of `data`

    cdef bint are_sound(self, Py_ssize_t rows, Py_ssize_t n) noexcept nogil


cdef int attach_rows(Piece piece, Rows rows, Py_ssize_t first) except -1
