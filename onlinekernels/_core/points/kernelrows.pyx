"""Kernel rows: values of a kernel between examples and the points of a dictionary.

A function that stands on a dictionary looks at an example through one row of numbers, its kernel values with all slots in
use.  They come from a compiled program over inner products, or from Python.
"""
import numpy as np
from libc.math cimport isfinite
from libc.string cimport memcpy
from onlinekernels._core.arrays cimport array_data
from onlinekernels._core.points.dictionary cimport Dictionary
from onlinekernels._core.points.kernels cimport MAX_OPS, SQUARE, TILT, Program
from onlinekernels._core.formulas.vecmath cimport ok_distance_row, ok_widen
from onlinekernels._core.run.piece cimport DENSE_ROW, FACTS, OWN, SLOT_INNER, SLOT_L1, SLOT_WORK, WIDENED, WORK, Piece


cdef inline const double* as_doubles(Piece piece, const char* numbers, Py_ssize_t place, Py_ssize_t n) noexcept nogil:
    """n numbers of a piece from a place on, widened if they are float32; NULL if there are none."""
    if numbers == NULL or not piece.narrow:
        return <const double*> NULL if numbers == NULL else <const double*> numbers + place
    ok_widen(<const float*> numbers + place, piece.widened, n)
    return piece.widened


cdef class KernelRows:
    """A kernel over a dictionary.

    Parameters
    ----------
    dictionary : Dictionary

    A kind implements

    `attach(piece, examples)`
        what a call is about;
    `open(piece, first, m, learning, turned)`
        get ready for rows first, ..., first + m - 1 of it: k(x, x) into piece.own, room for m points if they are to be learned;
    `values(piece, i)`
        kernel values of example i with the slots in use, valid until the next call;

    and may implement `own_values` (with the examples of its piece), `slot_over_piece` and `slot_values` (of a slot's point
    with the examples, with the slots), `keep_facts` (example i has entered a slot).
    """

    def __init__(self, Dictionary dictionary):
        self.dictionary = dictionary

    def look_at_slots(self):
        """Points of slots will be evaluated. O(1)."""
        self.evaluates_slots = True

    def look_at_own(self):
        """k(x, x) will be needed of examples that are only predicted, too. O(1)."""
        self.evaluates_own = True

    cdef int attach(self, Piece piece, examples) except -1:
        """What a call is about: O(1)."""
        raise NotImplementedError

    cdef int open(self, Piece piece, Py_ssize_t first, Py_ssize_t m, bint learning, bint turned) except -1:
        """As `Dictionary.open`, and O(m) for k(x, x)."""
        raise NotImplementedError

    cdef const double* values(self, Piece piece, Py_ssize_t i) noexcept nogil:
        """One row: O(n)."""
        return NULL

    cdef const double* own_values(self, Piece piece, Py_ssize_t i) noexcept nogil:
        """Kernel values of example i with all examples of its piece; NULL if the piece has only one. O(m)."""
        return NULL

    cdef const double* slot_over_piece(self, Piece piece, Py_ssize_t slot) noexcept nogil:
        """Kernel values of a slot's point with the examples of a piece that is turned. O(m)."""
        return NULL

    cdef double slot_values(self, Piece piece, Py_ssize_t slot) noexcept nogil:
        """Kernel values of a slot's point with the slots in use, into piece.slot_work; return k(x, x) there. O(n d)."""
        return 0.0

    cdef void newcomers_values(self, Piece piece, Py_ssize_t slot, double own, double* out) noexcept nogil:
        """Kernel values of the point in a slot, the latest example, with the slots in use; own: with itself.

        They do not depend on where the slots are, nor on the piece: `values_between` gives the same bits. O(n d).
        """
        pass

    cdef void keep_facts(self, Piece piece, Py_ssize_t i, Py_ssize_t slot) noexcept nogil:
        """Example i has entered a slot. O(1)."""
        pass

    cdef void distances(self, Piece piece, Py_ssize_t i, double rate, double* out) noexcept nogil:
        """rate |x - z|^2 of example i and the points of all slots in use, for kernels on inner products. O(n)."""
        pass

    cdef void point_moved(self, Py_ssize_t slot) noexcept nogil:
        """The point of a slot is another one now. O(d)."""
        pass

    cdef bint point_is_finite(self, Piece piece, Py_ssize_t i) noexcept nogil:
        """Whether an example is small enough for the kernel's arithmetic. O(1)."""
        return True

    cdef int close(self, Piece piece) except -1:
        """The piece has been learned. O(1)."""
        return 0

    cdef open_start(self, Piece piece, points, kept):
        """Open those points of another model that are kept, without inner products; return them. O(m d)."""
        raise NotImplementedError

    cdef int settle_start(self, Piece piece, points, Py_ssize_t i) except -1:
        """Point i has been added. O(1)."""
        return 0

    cdef Py_ssize_t piece_rows(self):
        """Rows that are learned at a time. O(1)."""
        return self.dictionary.piece_rows()

    cdef Py_ssize_t rows_to_evaluate(self):
        """Rows that are evaluated at a time. O(1)."""
        return self.dictionary.rows_to_evaluate()

    def restore(self):
        """The points of the dictionary have been restored: let what is kept with them follow. O(n d)."""

    def values_between(self):
        """Kernel values of the points of all slots in use, a row for each, with each other. O(n^2 d)."""
        raise NotImplementedError


cdef class CompiledRows(KernelRows):
    """A compiled kernel.

    Parameters
    ----------
    dictionary
        As for `KernelRows`.
    program : Program
        The kernel; it has been started with the points' precision and origin.
    """

    def __init__(self, Dictionary dictionary, Program program):
        KernelRows.__init__(self, dictionary)
        self.program = program
        self.looks_back = True
        self.notices_bad_points = program.needs_inner
        self.facts = dictionary.new_table(program.n_facts)
        dictionary.ask_for(program.needs_inner, program.needs_l1)

    cdef int attach(self, Piece piece, examples) except -1:
        piece.source = examples
        piece.source_data = array_data(examples) if isinstance(examples, np.ndarray) else NULL
        return 0

    cdef int open(self, Piece piece, Py_ssize_t first, Py_ssize_t m, bint learning, bint turned) except -1:
        cdef Py_ssize_t room
        self.dictionary.open(piece, first, m, learning, turned)
        piece.facts = <double*> piece.buffer(FACTS, self.program.n_facts * m * sizeof(double))
        piece.own = <double*> piece.buffer(OWN, m * sizeof(double))
        room = max(piece.stride, m)
        piece.work = <double*> piece.buffer(WORK, self.program.depth * room * sizeof(double))
        if piece.narrow:
            piece.widened = <double*> piece.buffer(WIDENED, room * sizeof(double))
        if self.evaluates_slots:
            self.make_slot_room(piece, room)
        if m == 1:
            self.find_facts(piece)                  # to let others go on meanwhile would take longer
        else:
            with nogil:
                self.find_facts(piece)
        return 0

    cdef void find_facts(self, Piece piece) noexcept nogil:
        """What the kernel wants to know of the examples of a piece, and k(x, x)."""
        cdef Py_ssize_t i, m = piece.rows, size = self.dictionary.n_features * (4 if self.program.single else 8)
        cdef const char* x
        for i in range(m):
            x = <const char*> NULL if piece.x == NULL else piece.x + i * size
            piece.own[i] = self.program.facts_from(x, piece.square[i], piece.tilt[i], piece.facts + i, m)

    cdef const double* values(self, Piece piece, Py_ssize_t i) noexcept nogil:
        self.values_into(piece, i, piece.work)
        return piece.work

    cdef void values_into(self, Piece piece, Py_ssize_t i, double* out) noexcept nogil:
        """The same elsewhere; out: room for as many numbers as the program is deep, times the slots in use."""
        cdef Py_ssize_t start = self.dictionary.start, n = self.dictionary.stop - start
        cdef Py_ssize_t place = i * piece.stride + start - piece.first
        cdef double* facts = <double*> self.facts.data
        cdef const double* inner = as_doubles(piece, piece.inner, place, n)
        cdef const char* x = NULL
        if piece.x != NULL:
            x = piece.x + i * (self.dictionary.n_features * (4 if self.program.single else 8))
        self.program.row(inner, NULL if piece.l1 == NULL else piece.l1 + place, x, piece.facts + i, piece.rows,
                         self.dictionary.point(start), facts + start, self.facts.capacity, n, out)

    cdef const double* own_values(self, Piece piece, Py_ssize_t i) noexcept nogil:
        cdef Py_ssize_t m = piece.rows, place = i * m
        cdef const double* inner
        cdef const char* x = NULL
        if m == 1:
            return NULL
        inner = as_doubles(piece, piece.own_inner, place, m)
        if piece.x != NULL:
            x = piece.x + i * (self.dictionary.n_features * (4 if self.program.single else 8))
        self.program.row(inner, NULL if piece.own_l1 == NULL else piece.own_l1 + place, x, piece.facts + i, m, piece.x, piece.facts,
                         m, m, piece.work)
        piece.work[i] = piece.own[i]                    # the same example: noise counts
        return piece.work

    cdef const double* slot_over_piece(self, Piece piece, Py_ssize_t slot) noexcept nogil:
        """A kernel is symmetric: a slot's row over the examples takes the place of an example's row over the slots."""
        cdef Py_ssize_t m = piece.rows
        cdef const double* row = as_doubles(piece, piece.inner, (slot - self.dictionary.start) * piece.stride, m)
        self.program.row(row, NULL, self.dictionary.point(slot), <double*> self.facts.data + slot, self.facts.capacity, piece.x,
                         piece.facts, m, m, piece.work)
        return piece.work

    cdef bint point_is_finite(self, Piece piece, Py_ssize_t i) noexcept nogil:
        return isfinite(piece.square[i])

    cdef void keep_facts(self, Piece piece, Py_ssize_t i, Py_ssize_t slot) noexcept nogil:
        cdef Py_ssize_t fact
        for fact in range(self.program.n_facts):
            (<double*> self.facts.data)[fact * self.facts.capacity + slot] = piece.facts[fact * piece.rows + i]

    cdef void distances(self, Piece piece, Py_ssize_t i, double rate, double* out) noexcept nogil:
        cdef Py_ssize_t start = self.dictionary.start, n = self.dictionary.stop - start
        cdef Py_ssize_t place = i * piece.stride + start - piece.first
        cdef const double* inner = <const double*> piece.inner + place
        if piece.narrow:
            ok_widen(<const float*> piece.inner + place, piece.widened, n)
            inner = piece.widened
        ok_distance_row(inner, <double*> self.facts.data + SQUARE * self.facts.capacity + start,
                        piece.facts[SQUARE * piece.rows + i], rate, out, n)

    cdef void point_moved(self, Py_ssize_t slot) noexcept nogil:
        self.program.facts_from(self.dictionary.point(slot), self.dictionary.square_of(slot), self.dictionary.tilt_of(slot),
                                <double*> self.facts.data + slot, self.facts.capacity)

    cdef double slot_values(self, Piece piece, Py_ssize_t slot) noexcept nogil:
        cdef Py_ssize_t start = self.dictionary.start, capacity = self.facts.capacity
        cdef double* facts = <double*> self.facts.data
        cdef const char* x = self.dictionary.point(slot)
        cdef double unused[2 * MAX_OPS]         # two, and one for each NORMALIZE
        cdef double own
        self.dictionary.slot_row(piece, slot)
        self.program.row(piece.slot_inner, piece.slot_l1, x, facts + slot, capacity, self.dictionary.point(start), facts + start,
                         capacity, self.dictionary.size(), piece.slot_work)
        own = self.program.facts_from(x, facts[SQUARE * capacity + slot], facts[TILT * capacity + slot], unused, 1)
        piece.slot_work[slot - start] = own         # the same example: noise counts
        return own

    cdef void newcomers_values(self, Piece piece, Py_ssize_t slot, double own, double* out) noexcept nogil:
        self.slot_values(piece, slot)
        memcpy(out, piece.slot_work, self.dictionary.size() * sizeof(double))

    def values_between(self):
        cdef Piece piece = Piece()
        cdef Py_ssize_t i, n = self.dictionary.size()
        cdef double[:, ::1] values
        result = np.empty((n, n))
        if n:
            values = result
            self.make_slot_room(piece, n)
            piece.dense_row = <double*> piece.buffer(DENSE_ROW, self.dictionary.n_features * sizeof(double))
            with nogil:
                for i in range(n):
                    self.slot_values(piece, self.dictionary.start + i)
                    memcpy(&values[i, 0], piece.slot_work, n * sizeof(double))
        return result

    cdef int make_slot_room(self, Piece piece, Py_ssize_t room) except -1:
        """Room for the kernel values of a slot's point."""
        piece.slot_inner = <double*> piece.buffer(SLOT_INNER, room * sizeof(double))
        piece.slot_l1 = <double*> piece.buffer(SLOT_L1, room * sizeof(double))
        piece.slot_work = <double*> piece.buffer(SLOT_WORK, self.program.depth * room * sizeof(double))
        return 0

    cdef open_start(self, Piece piece, points, kept):
        points = self.dictionary.chosen(points, kept)
        self.attach(piece, points)
        self.open(piece, 0, len(kept), False, False)
        piece.inner, piece.l1 = NULL, NULL          # nobody will ask for them
        return points

    def restore(self):
        cdef Py_ssize_t slot
        for slot in range(self.dictionary.capacity):
            self.point_moved(slot)
