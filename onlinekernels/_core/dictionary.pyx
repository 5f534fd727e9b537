"""Dictionaries: the points that functions stand on, in slots, and tables of numbers per slot.

A dictionary opens a piece of examples: all inner products with the points and of the examples with each other.  When an
example is admitted to a slot, its column of inner products is copied from the piece's own Gram matrix, so that later
examples of the piece see it, and the result is what one example at a time would give.

The slots in use are one range [start, stop), so that a kernel row is one matrix product with a contiguous block.  A
newcomer takes a slot that was just given up, or the next one at the end.  Several functions may stand on one
dictionary; a slot is free when none of them holds it.
"""
import numpy as np
from libc.math cimport sqrt
from onlinekernels._core.arrays cimport array_data
from onlinekernels._core.arrays import aligned_empty, check_array

cdef enum:
    MOST_ROWS = 256     # of a piece that is only evaluated


cdef class Table:
    """Numbers per slot: they grow and move with the slots.

    Parameters
    ----------
    rows : int
    dtype : numpy dtype
    """

    def __init__(self, Py_ssize_t rows, dtype=np.float64):
        self.set_array(np.zeros((rows, 0), dtype=dtype))

    cdef set_array(self, array):
        self.array = array
        self.data = array_data(array)
        self.capacity = array.shape[1]

    def move(self, slots, Py_ssize_t capacity):
        """The numbers of these slots become those of slots 0, 1, ...; the others are 0."""
        n, old = len(slots), self.array
        if old.shape[1] == capacity:
            old[:, :n] = old[:, slots]
            old[:, n:] = 0
            return
        new = aligned_empty((old.shape[0], capacity), old.dtype)
        new[:, :n] = old[:, slots]
        new[:, n:] = 0
        self.set_array(new)

    cdef void clear(self, Py_ssize_t slot) noexcept nogil:
        """A slot is free: make its numbers 0, and those in the tables behind this one."""
        if self.next is not None:
            self.next.clear(slot)


cdef class SquareTable(Table):
    """Numbers per pair of slots; 0 for slots that nobody holds."""

    def __init__(self):
        self.set_array(np.zeros((0, 0)))

    def move(self, slots, Py_ssize_t capacity):
        n, old = len(slots), self.array
        in_place = len(old) == capacity and (np.diff(slots) > 0).all()
        new = old if in_place else np.zeros((capacity, capacity))
        for i, slot in enumerate(slots):            # a row at a time: matrices of many terms are large
            new[i, :n] = old[slot, slots]
        if in_place and n:
            used = slots[-1] + 1
            new[:n, n:used] = new[n:used, :used] = 0
        self.set_array(new)

    cdef void clear(self, Py_ssize_t slot) noexcept nogil:
        cdef double* numbers = <double*> self.data
        cdef Py_ssize_t other
        for other in range(self.capacity):
            numbers[slot * self.capacity + other] = numbers[other * self.capacity + slot] = 0.0
        if self.next is not None:
            self.next.clear(slot)


cdef class Tenant:
    """Who holds slots of a dictionary, and must know when they move."""

    cdef int settle(self) except -1:
        """Release slots that need not be held any more."""
        return 0

    cdef int moved(self) except -1:
        """The slots have moved: those in use are now 0, 1, ..., oldest first."""
        return 0


cdef class Dictionary:
    """Points in slots.

    Parameters
    ----------
    n_features : int
    dtype : numpy dtype
        Precision of the points.

    A kind of points implements `open`, `place`, `point`, `square_of`, `tilt_of`, `slot_row` and `move_points`, and
    for Python `points_at`, `state`, `check_state` and `restore_points`.
    """

    def __init__(self, Py_ssize_t n_features, dtype):
        self.n_features = n_features
        self.dtype = np.dtype(dtype)
        self.tables, self.tenants = [], []
        self.birthdays = self.new_table(1, np.int64)
        self.holders = self.new_table(1, np.int32)
        self.hole_table = self.new_table(1, np.intp)

    def new_table(self, Py_ssize_t rows, dtype=np.float64):
        """A table of so many numbers per slot."""
        return self.add_table(Table(rows, dtype))

    def new_square_table(self):
        """A table of numbers per pair of slots, which are 0 for slots that nobody holds."""
        cdef Table table = self.add_table(SquareTable())
        table.next, self.cleared = self.cleared, table
        return table

    cdef add_table(self, Table table):
        table.move(np.zeros(0, dtype=np.intp), self.capacity)
        self.tables.append(table)
        return table

    def add_tenant(self, Tenant tenant):
        """Somebody will hold slots."""
        self.tenants.append(tenant)

    def ask_for(self, bint inner, bint l1):
        """A kernel wants inner products, or city-block distances, of every piece."""
        self.needs_inner |= inner
        self.needs_l1 |= l1

    cdef Py_ssize_t size(self) noexcept nogil:
        """Slots in use."""
        return self.stop - self.start

    cdef long long born(self, Py_ssize_t slot) noexcept nogil:
        return (<long long*> self.birthdays.data)[slot]

    # ---- Points come and go -------------------------------------------------------------------

    cdef Py_ssize_t admit(self, Piece* piece, Py_ssize_t i, long long t) noexcept nogil:
        """The slot of example i, which is placed there unless a function before has seen to it; room has been reserved."""
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
        self.place(piece, i, slot)
        self.patch(piece, i, slot)
        piece.slot = slot
        return slot

    cdef void patch(self, const Piece* piece, Py_ssize_t i, Py_ssize_t slot) noexcept nogil:
        """Show example i, now in a slot, to the later examples of its piece."""
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

    cdef void hold(self, Py_ssize_t slot) noexcept nogil:
        """One more function has a term in this slot."""
        cdef int* holders = <int*> self.holders.data
        if holders[slot] == 0:
            self.held += 1
        holders[slot] += 1

    cdef void release(self, Py_ssize_t slot) noexcept nogil:
        """A function that held this slot does not any more."""
        cdef int* holders = <int*> self.holders.data
        holders[slot] -= 1
        if holders[slot] == 0:
            self.held -= 1
            (<Py_ssize_t*> self.hole_table.data)[self.n_holes] = slot
            self.n_holes += 1
            if self.cleared is not None:
                self.cleared.clear(slot)

    cdef void trim(self) noexcept nogil:
        """Leave slots at the beginning that nobody holds behind; there must be room at the end for all newcomers."""
        cdef int* holders = <int*> self.holders.data
        while self.start < self.stop and holders[self.start] == 0:
            if self.n_holes and (<Py_ssize_t*> self.hole_table.data)[self.n_holes - 1] == self.start:
                self.n_holes -= 1
            self.start += 1

    # ---- Memory -------------------------------------------------------------------------------

    cdef int reserve(self, Py_ssize_t newcomers) except -1:
        """Make sure that so many points can be admitted without any array moving."""
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
        """See to it that [start, stop) is exactly the slots that are held, so that sums do not depend on dead ones."""
        cdef Tenant tenant
        for tenant in self.tenants:
            tenant.settle()
        if self.held != self.stop - self.start:
            self.pack(self.capacity)
        return 0

    def slots(self):
        """Slots that somebody holds, oldest first."""
        slots = np.arange(self.start, self.stop)
        slots = slots[self.holders.array[0, self.start:self.stop] > 0]
        return slots[np.argsort(self.birthdays.array[0, slots], kind="stable")]

    cdef pack(self, Py_ssize_t capacity):
        """Move what is held to the front, oldest first."""
        cdef Tenant tenant
        slots = self.slots()
        self.move_points(slots, capacity)
        for table in self.tables:
            table.move(slots, capacity)
        self.capacity = capacity
        self.start, self.stop, self.n_holes = 0, len(slots), 0
        for tenant in self.tenants:
            tenant.moved()

    # ---- Pieces -------------------------------------------------------------------------------

    cdef Py_ssize_t piece_rows(self):
        """Rows per piece.

        A matrix product costs about n d / rows per example for rearranging the n points, and the
        piece's own Gram matrix rows d / 2; the sum is least at a multiple of sqrt(n).  With few
        features neither matters, and the inner products should stay in the cache.
        """
        cdef Py_ssize_t points, rows
        self.tidy()                             # sizes, and so bits, must not depend on dead slots
        points = self.size() + 64
        rows = <Py_ssize_t> ((8.0 if self.dtype.itemsize == 4 else 6.0) * sqrt(<double> points))
        if self.n_features < 64:
            rows = min(rows, (1 << 16) // points)
        return max(8, min(rows, 512, (1 << 21) // points))

    cdef Py_ssize_t rows_to_evaluate(self):
        """Rows that are evaluated at a time; with few features the inner products should stay in the cache."""
        return max(8, min(MOST_ROWS, (1 << (21 if self.n_features >= 64 else 17)) // max(1, self.size())))

    cdef int open(self, Workspace w, Py_ssize_t first, Py_ssize_t m, bint learning, bint turned) except -1:
        """Compute at once what a loop over rows first, ..., first + m - 1 of the call's source needs.

        `turned`: inner products may come the other way round, a row for each slot.
        """
        raise NotImplementedError

    cdef void place(self, const Piece* piece, Py_ssize_t i, Py_ssize_t slot) noexcept nogil:
        """Copy example i into a slot."""
        pass

    cdef const char* point(self, Py_ssize_t slot) noexcept nogil:
        """A point as kernels take it that look at coordinates; NULL if there are none."""
        return NULL

    cdef double square_of(self, Py_ssize_t slot) noexcept nogil:
        """|x|^2 about the origin."""
        return 0.0

    cdef double tilt_of(self, Py_ssize_t slot) noexcept nogil:
        """<origin, x> about the origin."""
        return 0.0

    cdef void slot_row(self, Workspace w, Py_ssize_t slot) noexcept nogil:
        """Inner products of a slot's own point with all slots in use, into w.slot_inner, distances into w.slot_l1."""
        pass

    cdef move_points(self, slots, Py_ssize_t capacity):
        """The points of these slots become those of slots 0, 1, ..., with room for `capacity`."""
        raise NotImplementedError

    # ---- State --------------------------------------------------------------------------------

    def saved_slots(self):
        """Slots in the order in which they are saved: that of sums; the packed one where a pack is due."""
        if self.held != self.stop - self.start:
            return self.slots()
        return np.arange(self.start, self.stop)

    def restore(self, state):
        """Take over points that have been checked (`check_state`); nobody holds them yet."""
        n = len(state["birthdays"])
        self.start = self.stop = self.held = self.n_holes = 0
        nothing = np.zeros(0, dtype=np.intp)
        self.move_points(nothing, n)
        for table in self.tables:
            table.move(nothing, n)
        self.capacity = self.stop = n
        self.birthdays.array[0] = state["birthdays"]
        self.restore_points(state)

    def check_birthdays(self, state, long long t):
        """ValueError unless the birthdays are those of points of a model that has seen t examples."""
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
        free = set(np.flatnonzero(holders[self.start:self.stop] == 0) + self.start)
        holes = set(self.hole_table.array[0, :self.n_holes].tolist())
        assert free <= holes and all(slot < self.stop for slot in holes), "a free slot is lost"
        assert all(table.array.shape[1] == self.capacity for table in self.tables)
        assert len(set(self.birthdays.array[0, self.slots()].tolist())) == self.held
