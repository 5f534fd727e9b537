"""Kinds of points: rows of an array, sparse rows, Python objects."""
cimport cython
from onlinekernels._core.dictionary cimport Dictionary, RowTable, Table
from onlinekernels._core.functions cimport Piece

@cython.final
cdef class DensePoints(Dictionary):
    cdef RowTable rows                      # the points
    cdef char* point_data                   # the same
    cdef Py_ssize_t point_bytes             # bytes of one point
    cdef bint single                        # points are float32
    cdef readonly object origin             # that points are kept about, in their precision; or None
    cdef const char* origin_data            # of `origin`, or NULL

    cdef double precise_dot(self, const char* x, const char* z) noexcept nogil
    cdef void inner_row(self, const char* x, double* out) noexcept nogil
    cdef int inner_products(self, Piece piece, bint learning) except -1
    cdef int turned_products(self, Piece piece) except -1
    cdef int l1_distances(self, Piece piece, bint learning) except -1
    cdef void l1_block(self, const char* x, Py_ssize_t m, const char* points, Py_ssize_t n, double* out,
                       Py_ssize_t stride) noexcept nogil


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


@cython.final
cdef class SparsePoints(Dictionary):
    cdef readonly Table spans           # (2, capacity) int64: where the non-zeros of each point begin and end in the arena
    cdef object index_array, value_array        # the arena: non-zeros of all points, and of dropped ones
    cdef int* index                     # columns of these non-zeros,
    cdef double* value                  # and their values
    cdef Py_ssize_t used                # of the arena

    cdef long long begin(self, Py_ssize_t slot) noexcept nogil
    cdef long long end(self, Py_ssize_t slot) noexcept nogil
    cdef void inner_with_slots(self, const double* dense, double* out) noexcept nogil
    cdef void inner_of_piece(self, Piece piece) noexcept nogil
    cdef int reserve_arena(self, Py_ssize_t newcomers) except -1
    cdef int set_arena(self, spans, indices, values, Py_ssize_t used) except -1
