"""Dictionaries: the points that functions stand on, in slots."""
cimport cython
from onlinekernels._core.points.tables cimport Aged, Table
from onlinekernels._core.run.piece cimport Piece


cdef class Tenant:
    cdef readonly long long most        # slots that it will ever hold at a time

    cdef void settle(self) noexcept nogil
    cdef int prepare(self, Py_ssize_t capacity) except -1
    cdef void moved(self) noexcept


cdef class Dictionary:
    cdef readonly Py_ssize_t capacity       # slots allocated
    cdef readonly Py_ssize_t start          # slots in use lie in [start, stop)
    cdef readonly Py_ssize_t stop           # the first slot behind them
    cdef readonly Py_ssize_t held           # slots that somebody holds
    cdef readonly Table birthdays           # int64: the t at which each point was admitted
    cdef readonly Table holders             # int32: how many functions hold each slot
    cdef Table hole_table                   # intp: slots within [start, stop) that nobody holds, the latest last
    cdef Py_ssize_t n_holes                 # how many of these there are
    cdef bint disorderly                    # slots were given up among others, so that newcomers may lie before older ones
    cdef bint keeps_order                   # newcomers come last, also where others have left: slots are in order of age
    cdef readonly list tables               # all tables, which move with the slots
    cdef Table cleared                      # the first of those that are cleared with a slot
    cdef readonly list tenants              # who holds slots
    cdef readonly object dtype              # of points
    cdef readonly Py_ssize_t n_features     # of points; 0 for objects
    cdef bint needs_inner                   # whether a kernel wants inner products of every piece,
    cdef bint needs_l1                      # or city-block distances

    # To be implemented
    cdef int open(self, Piece piece, Py_ssize_t first, Py_ssize_t m, bint learning, bint turned) except -1
    cdef void put(self, Piece piece, Py_ssize_t i, Py_ssize_t slot) noexcept nogil
    cdef const char* point(self, Py_ssize_t slot) noexcept nogil
    cdef bint is_at(self, Piece piece, Py_ssize_t i, Py_ssize_t slot) noexcept nogil
    cdef double square_of(self, Py_ssize_t slot) noexcept nogil
    cdef double tilt_of(self, Py_ssize_t slot) noexcept nogil
    cdef void slot_row(self, Piece piece, Py_ssize_t slot) noexcept nogil
    # Where it makes sense
    cdef int prepare_points(self, const Aged* order, Py_ssize_t capacity) except -1
    cdef void move_points(self) noexcept
    cdef void mix(self, Piece piece, Py_ssize_t i, Py_ssize_t other, Py_ssize_t slot, double share) noexcept nogil

    # The same for all
    @cython.final
    cdef Py_ssize_t size(self) noexcept nogil
    @cython.final
    cdef long long born(self, Py_ssize_t slot) noexcept nogil
    @cython.final
    cdef Py_ssize_t admit(self, Piece piece, Py_ssize_t i, long long t) noexcept nogil
    @cython.final
    cdef void patch(self, Piece piece, Py_ssize_t i, Py_ssize_t slot) noexcept nogil
    @cython.final
    cdef void blend(self, Piece piece, Py_ssize_t i, Py_ssize_t other, Py_ssize_t slot, double share) noexcept nogil
    @cython.final
    cdef void hold(self, Py_ssize_t slot) noexcept nogil
    @cython.final
    cdef void release(self, Py_ssize_t slot) noexcept nogil
    @cython.final
    cdef void trim(self) noexcept nogil
    cdef add_table(self, Table table)
    cdef int reserve(self, Py_ssize_t newcomers) except -1
    cdef int tidy(self) except -1
    cdef bint must_pack(self) noexcept nogil
    cdef int pack(self, Py_ssize_t capacity) except -1
    cdef bint sort_by_age(self, Aged* order) noexcept nogil
    cdef void move(self, const Aged* order, Py_ssize_t capacity) noexcept
    cdef Py_ssize_t piece_rows(self)
    cdef Py_ssize_t rows_to_evaluate(self)
