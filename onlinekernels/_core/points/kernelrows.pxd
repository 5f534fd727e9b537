"""Kernel rows: values of a kernel between examples and the points of a dictionary."""
cimport cython
from onlinekernels._core.points.dictionary cimport Dictionary
from onlinekernels._core.points.tables cimport Table
from onlinekernels._core.points.kernels cimport Program
from onlinekernels._core.run.piece cimport Piece


cdef class KernelRows:
    cdef readonly Dictionary dictionary         # the points
    cdef readonly bint takes_objects            # whether examples are Python objects
    cdef readonly bint notices_bad_points       # whether `point_is_finite` tells
    cdef readonly bint looks_back               # whether points of slots can be evaluated in a loop: `slot_values`
    cdef bint evaluates_slots                   # whether that will be needed
    cdef bint evaluates_own                     # whether k(x, x) will be needed of examples that are not learned

    # To be implemented
    cdef int attach(self, Piece piece, examples) except -1
    cdef int open(self, Piece piece, Py_ssize_t first, Py_ssize_t m, bint learning, bint turned) except -1
    cdef const double* values(self, Piece piece, Py_ssize_t i) noexcept nogil
    cdef open_start(self, Piece piece, points, kept)
    # Where it makes sense
    cdef const double* own_values(self, Piece piece, Py_ssize_t i) noexcept nogil
    cdef const double* slot_over_piece(self, Piece piece, Py_ssize_t slot) noexcept nogil
    cdef double slot_values(self, Piece piece, Py_ssize_t slot) noexcept nogil
    cdef void newcomers_values(self, Piece piece, Py_ssize_t slot, double own, double* out) noexcept nogil
    cdef void keep_facts(self, Piece piece, Py_ssize_t i, Py_ssize_t slot) noexcept nogil
    cdef void distances(self, Piece piece, Py_ssize_t i, double rate, double* out) noexcept nogil
    cdef void point_moved(self, Py_ssize_t slot) noexcept nogil
    cdef bint point_is_finite(self, Piece piece, Py_ssize_t i) noexcept nogil
    cdef int settle_start(self, Piece piece, points, Py_ssize_t i) except -1
    cdef int close(self, Piece piece) except -1
    cdef Py_ssize_t piece_rows(self)
    cdef Py_ssize_t rows_to_evaluate(self)


@cython.final
cdef class CompiledRows(KernelRows):
    cdef readonly Program program       # the kernel
    cdef readonly Table facts           # (n_facts, capacity): what the kernel keeps with each point

    cdef void values_into(self, Piece piece, Py_ssize_t i, double* out) noexcept nogil
    cdef int make_slot_room(self, Piece piece, Py_ssize_t room) except -1
    cdef void find_facts(self, Piece piece) noexcept nogil
