"""Points that are rows of numbers, and points that are Python objects."""
cimport cython
from onlinekernels._core.points.dictionary cimport Dictionary
from onlinekernels._core.points.tables cimport RowTable
from onlinekernels._core.points.kernelrows cimport KernelRows
from onlinekernels._core.run.piece cimport Piece


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


@cython.final
cdef class Objects(Dictionary):
    cdef readonly list objects              # an entry for each slot
    cdef list coming                        # the same after the next move

    cdef keep(self, Piece piece, x)


@cython.final
cdef class ObjectRows(KernelRows):
    cdef readonly object kernel         # Python kernel on objects
    cdef Objects objects                # the dictionary

    cdef row(self, x)
