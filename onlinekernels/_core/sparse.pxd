"""Sparse examples: rows of indices and values, and the function f on them."""
from onlinekernels._core.expansion cimport Expansion


cdef class Rows:
    cdef readonly object indptr         # int64, (n + 1,)
    cdef readonly object indices        # int32, ascending in each row
    cdef readonly object data           # float64
    cdef readonly Py_ssize_t n_features
    cdef const long long* start
    cdef const int* index
    cdef const double* value


cdef class Sparse(Expansion):
    cdef Rows chunk                     # the rows that are being learned or evaluated
    cdef object index_array, value_array        # the arena: non-zeros of all terms, and of dropped ones
    cdef int* index
    cdef double* value
    cdef Py_ssize_t used                # of the arena
    cdef object dense_array
    cdef double* dense                  # one example, 0 elsewhere and between calls

    cdef void spread(self, const int* index, const double* value, Py_ssize_t n) noexcept nogil
    cdef void clear(self, const int* index, Py_ssize_t n) noexcept nogil
    cdef double inner_with(self, const int* index, const double* value, Py_ssize_t n) noexcept nogil
    cdef void inner_with_terms(self, double* out) noexcept nogil
    cdef int inner_of_piece(self, Py_ssize_t first, Py_ssize_t m, double* inner, Py_ssize_t stride,
                            double* own_inner) except -1
    cdef reserve_arena(self, Py_ssize_t newcomers)
