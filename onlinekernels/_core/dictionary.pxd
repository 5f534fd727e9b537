"""Dictionaries: the points that functions stand on, in slots, and rows of kernel values with these points."""
cimport cython
from onlinekernels._core.functions cimport Piece
from onlinekernels._core.kernels cimport Program

cdef struct Aged:
    # A slot that somebody holds.
    long long birthday                  # the t at which its point was admitted
    Py_ssize_t slot                     # where it is


cdef class Table:
    cdef readonly object array          # (rows, capacity)
    cdef char* data                     # of the array; renewed whenever it moves
    cdef Py_ssize_t capacity            # slots that there is room for
    cdef Py_ssize_t rows                # numbers per slot
    cdef readonly object dtype          # of numbers
    cdef Py_ssize_t item                # bytes of a number
    cdef object coming                  # the array for the next move, if that is not one in place
    cdef char* coming_data              # of that array
    cdef Table next                     # another table that is cleared with a slot

    cdef void clear(self, Py_ssize_t slot) noexcept nogil
    cdef int set_array(self, array) except -1
    cdef int prepare(self, Py_ssize_t capacity, bint in_place) except -1
    cdef void move(self, const Aged* order, Py_ssize_t n, Py_ssize_t capacity) noexcept
    cdef void gather(self, char* new, const Aged* order, Py_ssize_t n, Py_ssize_t capacity) noexcept nogil


cdef class SquareTable(Table):
    pass


cdef class RowTable(Table):
    cdef Py_ssize_t columns             # the array is (capacity, columns)


cdef class Observer:
    cdef readonly long long most        # slots that it will ever hold at a time

    cdef void resolve(self) noexcept nogil
    cdef int prepare(self, Py_ssize_t capacity) except -1
    cdef void moved(self) noexcept


cdef class Dictionary:
    cdef readonly Py_ssize_t capacity       # slots allocated
    cdef readonly Py_ssize_t start          # slots in use lie in [start, stop)
    cdef readonly Py_ssize_t stop           # the first slot behind them
    cdef readonly Py_ssize_t held           # slots that somebody holds
    cdef readonly Table birthdays           # int64: the t at which each point was admitted
    cdef readonly Table taken               # uint8: whether each slot is held
    cdef Table hole_table                   # intp: slots within [start, stop) that nobody holds, the latest last
    cdef Py_ssize_t n_holes                 # how many of these there are
    cdef bint disorderly                    # slots were given up among others: candidates may precede older ones
    cdef bint keeps_order                   # candidates come last, also where others have left: in order of age
    cdef readonly list tables               # all tables, which move with the slots
    cdef Table cleared                      # the first of those that are cleared with a slot
    cdef Observer observer                  # who holds slots
    cdef readonly object dtype              # of points
    cdef readonly Py_ssize_t n_features     # of points; 0 for objects
    cdef Py_ssize_t point_bytes             # of a dense one
    cdef readonly Program program           # the kernel, or None
    cdef readonly Table cached               # (n_cached, capacity): what the kernel keeps with each point
    cdef bint needs_inner                   # whether the kernel wants inner products of every piece,
    cdef bint needs_l1                      # or city-block distances
    cdef readonly bint takes_objects        # whether examples are Python objects
    cdef readonly bint notices_bad_points   # whether `point_is_finite` tells
    cdef readonly bint looks_back           # whether points of slots can be evaluated in a loop: `slot_values`
    cdef bint evaluates_slots               # whether that will be needed
    cdef bint evaluates_own                 # whether k(x, x) will be needed of examples that are not learned

    # To be implemented
    cdef int open_points(self, Piece piece, Py_ssize_t first, Py_ssize_t m, bint learning, bint transposed) except -1
    cdef void put(self, Piece piece, Py_ssize_t i, Py_ssize_t slot) noexcept nogil
    cdef const char* point(self, Py_ssize_t slot) noexcept nogil
    cdef bint is_at(self, Piece piece, Py_ssize_t i, Py_ssize_t slot) noexcept nogil
    cdef void slot_row(self, Piece piece, Py_ssize_t slot) noexcept nogil
    cdef void point_moved(self, Py_ssize_t slot) noexcept nogil
    # Where it applies
    cdef int prepare_points(self, const Aged* order, Py_ssize_t capacity) except -1
    cdef void move_points(self) noexcept
    cdef void mix(self, Piece piece, Py_ssize_t i, Py_ssize_t other, Py_ssize_t slot, double share) noexcept nogil

    # Kernel values, by a program; otherwise to be implemented as far as they are asked for
    cdef int attach(self, Piece piece, examples) except -1
    cdef int open(self, Piece piece, Py_ssize_t first, Py_ssize_t m, bint learning, bint transposed) except -1
    cdef const double* values(self, Piece piece, Py_ssize_t i) noexcept nogil
    cdef const double* own_values(self, Piece piece, Py_ssize_t i) noexcept nogil
    cdef const double* slot_over_piece(self, Piece piece, Py_ssize_t slot) noexcept nogil
    cdef double slot_values(self, Piece piece, Py_ssize_t slot) noexcept nogil
    cdef void candidates_values(self, Piece piece, Py_ssize_t slot, double own, double* out) noexcept nogil
    cdef void keep_cached(self, Piece piece, Py_ssize_t i, Py_ssize_t slot) noexcept nogil
    cdef bint point_is_finite(self, Piece piece, Py_ssize_t i) noexcept nogil
    cdef open_start(self, Piece piece, points, kept)
    cdef int resolve_start(self, Piece piece, points, Py_ssize_t i) except -1
    cdef int close(self, Piece piece) except -1
    @cython.final
    cdef void values_into(self, Piece piece, Py_ssize_t i, double* out) noexcept nogil
    @cython.final
    cdef void distances(self, Piece piece, Py_ssize_t i, double rate, double* out) noexcept nogil
    @cython.final
    cdef int reserve_slots(self, Piece piece, Py_ssize_t capacity) except -1
    @cython.final
    cdef void find_cached(self, Piece piece) noexcept nogil

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
    cdef int reserve(self, Py_ssize_t candidates) except -1
    cdef int tidy(self) except -1
    cdef bint must_pack(self) noexcept nogil
    cdef int pack(self, Py_ssize_t capacity) except -1
    cdef bint sort_by_age(self, Aged* order) noexcept nogil
    cdef void move(self, const Aged* order, Py_ssize_t capacity) noexcept
    cdef Py_ssize_t piece_rows(self)
    cdef Py_ssize_t rows_to_evaluate(self)
