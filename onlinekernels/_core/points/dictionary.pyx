"""Dictionaries: the points that functions stand on, in slots.

A dictionary opens a piece of examples: all inner products with the points and of the examples with each other.  When an
example is admitted to a slot, its column of inner products is copied from the piece's own Gram matrix, so that later
examples of the piece see it, and the result is what one example at a time would give.

The slots in use are one range [start, stop), so that a kernel row is one matrix product with a contiguous block.  A
newcomer takes a slot that was just given up, or the next one at the end.  Several functions may stand on one
dictionary; a slot is free when none of them holds it.

When slots move, all that can fail or be interrupted comes first: new arrays are prepared, beside the old ones.  The move
itself is compiled code that cannot raise, so a dictionary has moved with all that hangs on it, or nothing has.
"""
import numpy as np
from libc.math cimport sqrt
from libc.stdlib cimport free, malloc, qsort
from onlinekernels._core.arrays import check_array
from onlinekernels._core.points.tables cimport Aged, SquareTable, Table

cdef enum:
    MOST_ROWS = 256     # of a piece that is only evaluated


cdef int compare_ages(const void* a, const void* b) noexcept nogil:
    return ((<const Aged*> a).birthday > (<const Aged*> b).birthday) - ((<const Aged*> a).birthday < (<const Aged*> b).birthday)


cdef class Tenant:
    """Who holds slots of a dictionary, and must know when they move."""

    cdef void settle(self) noexcept nogil:
        """Release slots that need not be held any more. O(1), O(terms) if some are due."""
        pass

    cdef int prepare(self, Py_ssize_t capacity) except -1:
        """There may soon be so many slots: get what memory that needs. What is in tables of the dictionary follows anyway.

        O(capacity).
        """
        return 0

    cdef void moved(self) noexcept:
        """The slots have moved: those in use are now 0, 1, ..., oldest first. O(capacity)."""
        pass


cdef class Dictionary:
    """Points in slots.

    Parameters
    ----------
    n_features : int
    dtype : numpy dtype
        Precision of the points.

    Complexities are those of n slots in use of d features; for sparse rows d is the number of non-zeros.

    A kind of points implements `open`, `put`, `point`, `square_of`, `tilt_of` and `slot_row`, and for Python `points_at`,
    `state`, `check_state` and `restore_points`. It keeps points in tables, or implements `prepare_points` and `move_points`.
    """

    def __init__(self, Py_ssize_t n_features, dtype):
        self.n_features = n_features
        self.dtype = np.dtype(dtype)
        self.tables, self.tenants = [], []
        self.birthdays = self.new_table(1, np.int64)
        self.holders = self.new_table(1, np.int32)
        self.hole_table = self.new_table(1, np.intp)

    def new_table(self, Py_ssize_t rows, dtype=np.float64):
        """A table of so many numbers per slot. O(rows capacity)."""
        return self.add_table(Table(rows, dtype))

    def new_square_table(self):
        """A table of numbers per pair of slots, which are 0 for slots that nobody holds. O(capacity^2)."""
        cdef Table table = self.add_table(SquareTable())
        table.next, self.cleared = self.cleared, table
        return table

    cdef add_table(self, Table table):
        """One more table that moves with the slots: O(capacity)."""
        table.prepare(self.capacity, False)
        table.move(NULL, 0, self.capacity)
        self.tables.append(table)
        return table

    def add_tenant(self, Tenant tenant):
        """Somebody will hold slots. O(1)."""
        self.tenants.append(tenant)

    def ask_for(self, bint inner, bint l1):
        """A kernel wants inner products, or city-block distances, of every piece. O(1)."""
        self.needs_inner |= inner
        self.needs_l1 |= l1

    cdef Py_ssize_t size(self) noexcept nogil:
        """Slots in use: O(1)."""
        return self.stop - self.start

    cdef long long born(self, Py_ssize_t slot) noexcept nogil:
        """The t at which the point of a slot was admitted: O(1)."""
        return (<long long*> self.birthdays.data)[slot]

    # ---- Points come and go -------------------------------------------------------------------

    cdef Py_ssize_t admit(self, Piece piece, Py_ssize_t i, long long t) noexcept nogil:
        """The slot of example i, which is placed there unless a function before has seen to it; room is reserved. O(d + rows)."""
        cdef Py_ssize_t slot = piece.slot
        cdef int* holders = <int*> self.holders.data
        if slot >= 0:
            return slot
        while self.n_holes and not self.keeps_order:
            self.n_holes -= 1
            slot = (<Py_ssize_t*> self.hole_table.data)[self.n_holes]
            if slot >= self.start and holders[slot] == 0:
                break
            slot = -1                           # trimmed since
        if slot < 0:
            slot = self.stop
            self.stop += 1
        (<long long*> self.birthdays.data)[slot] = t
        self.put(piece, i, slot)
        self.patch(piece, i, slot)
        piece.slot = slot
        return slot

    cdef void patch(self, Piece piece, Py_ssize_t i, Py_ssize_t slot) noexcept nogil:
        """Show example i, now in a slot, to the later examples of its piece: O(rows)."""
        cdef Py_ssize_t row, rows = piece.rows, stride = piece.stride, column = slot - piece.first
        if piece.inner != NULL and piece.narrow:
            for row in range(i + 1, rows):
                (<float*> piece.inner)[row * stride + column] = (<float*> piece.own_inner)[i * rows + row]
        elif piece.inner != NULL:
            for row in range(i + 1, rows):
                (<double*> piece.inner)[row * stride + column] = (<double*> piece.own_inner)[i * rows + row]
        if piece.l1 != NULL:
            for row in range(i + 1, rows):
                piece.l1[row * stride + column] = piece.own_l1[i * rows + row]

    cdef void blend(self, Piece piece, Py_ssize_t i, Py_ssize_t other, Py_ssize_t slot, double share) noexcept nogil:
        """Move the point of a slot by this share of the way to that of another one (if that is negative, to example i).

        Inner products are linear, so later examples of the piece see a combination of two columns. Only for points that
        one function alone stands on, and kernels without city-block distances. O(d + rows).
        """
        cdef Py_ssize_t row, rows = piece.rows, stride = piece.stride, column = slot - piece.first, from_ = other - piece.first
        cdef float* narrow = <float*> piece.inner
        cdef double* wide = <double*> piece.inner
        cdef double there
        self.mix(piece, i, other, slot, share)
        if piece.inner == NULL:
            return
        if piece.narrow:
            for row in range(i + 1, rows):
                there = (<float*> piece.own_inner)[i * rows + row] if other < 0 else narrow[row * stride + from_]
                narrow[row * stride + column] = <float> (share * there + (1.0 - share) * narrow[row * stride + column])
        else:
            for row in range(i + 1, rows):
                there = (<double*> piece.own_inner)[i * rows + row] if other < 0 else wide[row * stride + from_]
                wide[row * stride + column] = share * there + (1.0 - share) * wide[row * stride + column]

    cdef void hold(self, Py_ssize_t slot) noexcept nogil:
        """One more function has a term in this slot: O(1)."""
        cdef int* holders = <int*> self.holders.data
        if holders[slot] == 0:
            self.held += 1
        holders[slot] += 1

    cdef void release(self, Py_ssize_t slot) noexcept nogil:
        """A function that held this slot does not any more: O(1), O(n) with tables of pairs."""
        cdef int* holders = <int*> self.holders.data
        holders[slot] -= 1
        if holders[slot] == 0:
            self.held -= 1
            (<Py_ssize_t*> self.hole_table.data)[self.n_holes] = slot
            self.n_holes += 1
            if self.cleared is not None:
                self.cleared.clear(slot)

    cdef void trim(self) noexcept nogil:
        """Leave slots at the beginning that nobody holds behind; there must be room at the end for all newcomers. O(1) a slot."""
        cdef int* holders = <int*> self.holders.data
        while self.start < self.stop and holders[self.start] == 0:
            if self.n_holes and (<Py_ssize_t*> self.hole_table.data)[self.n_holes - 1] == self.start:
                self.n_holes -= 1
            self.start += 1

    # ---- Memory -------------------------------------------------------------------------------

    cdef int reserve(self, Py_ssize_t newcomers) except -1:
        """Make sure that so many points can be admitted without any array moving: O(1) a point, amortised, times d."""
        cdef Py_ssize_t wanted
        cdef long long most = 0
        cdef Tenant tenant
        self.tidy()
        for tenant in self.tenants:
            most = min(most + tenant.most, <long long> 1 << 62)
        wanted = min(self.stop + newcomers, most)
        if wanted <= self.capacity:
            return 0
        if self.start and 2 * (self.held + newcomers) <= self.capacity:
            self.pack(self.capacity)
            return 0
        self.pack(min(max(2 * self.held, self.held + newcomers, 16), most))
        return 0

    cdef int tidy(self) except -1:
        """See to it that [start, stop) is exactly the slots that are held, so that sums do not hang on dead ones: O(1), or `pack`."""
        cdef Tenant tenant
        for tenant in self.tenants:
            tenant.settle()
        if self.must_pack():
            self.pack(self.capacity)
        return 0

    cdef bint must_pack(self) noexcept nogil:
        """Whether there are dead slots, or were where newcomers are now: O(1)."""
        return self.disorderly or self.held != self.stop - self.start

    def slots(self):
        """Slots that somebody holds, oldest first. O(n log n)."""
        slots = np.arange(self.start, self.stop)
        slots = slots[self.holders.array[0, self.start:self.stop] > 0]
        return slots[np.argsort(self.birthdays.array[0, slots], kind="stable")]

    cdef int pack(self, Py_ssize_t capacity) except -1:
        """Move what is held to the front, oldest first: O(n (d + log n)), O(n^2) with tables of pairs."""
        cdef Tenant tenant
        cdef Table table
        cdef Aged* order = <Aged*> malloc(max(1, self.held) * sizeof(Aged))
        cdef bint in_place
        if order == NULL:
            raise MemoryError
        try:
            in_place = self.sort_by_age(order) and capacity == self.capacity
            for table in self.tables:
                table.prepare(capacity, in_place)
            self.prepare_points(order, capacity)
            for tenant in self.tenants:
                tenant.prepare(capacity)
            self.move(order, capacity)
        finally:
            free(order)
            for table in self.tables:
                table.coming = None
        return 0

    cdef bint sort_by_age(self, Aged* order) noexcept nogil:
        """Slots that somebody holds, oldest first; return whether they ascend. O(n), O(n log n) if they do not."""
        cdef Py_ssize_t slot, n = 0
        cdef bint ascends = True
        for slot in range(self.start, self.stop):
            if (<int*> self.holders.data)[slot]:
                order[n].birthday, order[n].slot = self.born(slot), slot
                ascends &= n == 0 or order[n - 1].birthday < order[n].birthday
                n += 1
        if not ascends:
            qsort(order, n, sizeof(Aged), compare_ages)
        return ascends

    cdef void move(self, const Aged* order, Py_ssize_t capacity) noexcept:
        """Carry out what has been prepared. O(n d), O(n^2) with tables of pairs."""
        cdef Tenant tenant
        cdef Table table
        for table in self.tables:
            table.move(order, self.held, capacity)
        self.capacity = capacity
        self.start, self.stop, self.n_holes, self.disorderly = 0, self.held, 0, False
        self.move_points()
        for tenant in self.tenants:
            tenant.moved()

    # ---- Pieces -------------------------------------------------------------------------------

    cdef Py_ssize_t piece_rows(self):
        """Rows per piece.

        A matrix product costs about n d / rows per example for rearranging the n points, and the piece's own Gram matrix
        rows d / 2; the sum is least at a multiple of sqrt(n).  Libraries multiply blocks of 4 to 24 rows, and 48 is a
        multiple of them.  With few features neither matters, and the inner products should stay in the cache. O(1), or `pack`.
        """
        cdef Py_ssize_t points, rows
        self.tidy()                             # sizes, and so bits, must not depend on dead slots
        points = self.size() + 64
        rows = 48 * max(1, <Py_ssize_t> (sqrt(<double> points) / 12.0))
        if self.n_features < 64:
            rows = min(max(rows, 96), (1 << 16) // points)
        return max(8, min(rows, 512, (1 << 21) // points))

    cdef Py_ssize_t rows_to_evaluate(self):
        """Rows that are evaluated at a time; with few features the inner products should stay in the cache. O(1)."""
        return max(8, min(MOST_ROWS, (1 << (21 if self.n_features >= 64 else 17)) // max(1, self.size())))

    cdef int open(self, Piece piece, Py_ssize_t first, Py_ssize_t m, bint learning, bint turned) except -1:
        """Compute at once what a loop over rows first, ..., first + m - 1 of the call's source needs.

        `turned`: inner products may come the other way round, a row for each slot. O(m (n + m) d), O(m n d) unless learning.
        """
        raise NotImplementedError

    cdef void put(self, Piece piece, Py_ssize_t i, Py_ssize_t slot) noexcept nogil:
        """Copy example i into a slot: O(d)."""
        pass

    cdef void mix(self, Piece piece, Py_ssize_t i, Py_ssize_t other, Py_ssize_t slot, double share) noexcept nogil:
        """The point's own part of `blend`: O(d)."""
        pass

    cdef const char* point(self, Py_ssize_t slot) noexcept nogil:
        """A point as kernels take it that look at coordinates; NULL if there are none. O(1)."""
        return NULL

    cdef bint is_at(self, Piece piece, Py_ssize_t i, Py_ssize_t slot) noexcept nogil:
        """Whether example i is, bit for bit, the point of a slot: O(n_features), or O(nnz)."""
        return False

    cdef double square_of(self, Py_ssize_t slot) noexcept nogil:
        """|x|^2 about the origin: O(d)."""
        return 0.0

    cdef double tilt_of(self, Py_ssize_t slot) noexcept nogil:
        """<origin, x> about the origin: O(d)."""
        return 0.0

    cdef void slot_row(self, Piece piece, Py_ssize_t slot) noexcept nogil:
        """Inner products of a slot's own point with all slots in use, into piece.slot_inner, distances into piece.slot_l1.

        O(n d).
        """
        pass

    cdef int prepare_points(self, const Aged* order, Py_ssize_t capacity) except -1:
        """The points of these slots are about to become those of slots 0, 1, ..., with room for `capacity`. O(capacity d)."""
        return 0

    cdef void move_points(self) noexcept:
        """Now they do. O(1)."""
        pass

    # ---- State --------------------------------------------------------------------------------

    def saved_slots(self):
        """Slots in the order in which they are saved: that of sums; the packed one where a pack is due. O(n log n)."""
        if self.must_pack():
            return self.slots()
        return np.arange(self.start, self.stop)

    def restore(self, state):
        """Take over points that have been checked (`check_state`); nobody holds them yet. O(n d)."""
        n = len(state["birthdays"])
        self.start = self.stop = self.held = self.n_holes = 0
        self.pack(n)
        self.stop = n
        self.birthdays.array[0] = state["birthdays"]
        self.restore_points(state)

    def check_birthdays(self, state, long long t):
        """ValueError unless the birthdays are those of points of a model that has seen t examples. O(n log n)."""
        birthdays = check_array(state["birthdays"], "birthdays", np.int64, (-1,))
        if len(birthdays) and birthdays.max() > t:
            raise ValueError("a term is younger than the model")
        if len(np.unique(birthdays)) != len(birthdays):
            raise ValueError("two terms have the same birthday")
        return len(birthdays)

    def _check(self):
        """Assert every invariant."""
        assert 0 <= self.start <= self.stop <= self.capacity
        holders = self.holders.array[0]
        assert (holders >= 0).all() and self.held == np.count_nonzero(holders)
        assert not holders[:self.start].any() and not holders[self.stop:].any()
        free = set(np.flatnonzero(holders[self.start:self.stop] == 0) + self.start)  # no-cython-lint
        holes = set(self.hole_table.array[0, :self.n_holes].tolist())
        assert free <= holes and all(slot < self.stop for slot in holes), "a free slot is lost"
        assert all(table.array.shape == table.shape(self.capacity) for table in self.tables)
        assert len(set(self.birthdays.array[0, self.slots()].tolist())) == self.held
