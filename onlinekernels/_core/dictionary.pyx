"""Dictionaries: the points that functions stand on, in slots, and rows of kernel values with these points.

A dictionary opens a piece of examples: all inner products with the points and of the examples with each other.  When an
example is admitted to a slot, its column of inner products is copied from the piece's own Gram matrix, so that later
examples of the piece see it, and the result is what one example at a time would give.

The slots in use are one range [start, stop), so that a kernel row is one matrix product with a contiguous block.  A
candidate takes a slot that was just given up, or the next one at the end.  One function stands on a dictionary.  It
looks at an example through one row of numbers, its kernel values with all slots in use, which come from a compiled
program over inner products, or from Python.

When slots move, all that can fail or be interrupted comes first: new arrays are prepared, beside the old ones.  The
move itself is compiled code that cannot raise, so a dictionary has moved with all that hangs on it, or nothing has.
"""
import numpy as np
from libc.math cimport isfinite, sqrt
from libc.stdlib cimport free, malloc, qsort
from libc.string cimport memcpy, memmove, memset
from onlinekernels._core.arrays cimport array_data
from onlinekernels._core.arrays import aligned_empty
from onlinekernels._core.formulas.vecmath cimport ok_distance_row, ok_widen
from onlinekernels._core.functions cimport DENSE_ROW, CACHED, OWN, SLOT_INNER, SLOT_L1, SLOT_WORK, WIDENED, WORK
from onlinekernels._core.kernels cimport MAX_OPS, SQUARE, ORIGIN_PRODUCT
from onlinekernels._core.schema import Array, distinct

# ---- Tables --------------------------------------------------------------------------------------
# A move is prepared first, which may fail, and then carried out, which cannot.

cdef class Table:
    """Numbers per slot: they grow and move with the slots."""

    def __init__(self, Py_ssize_t rows, dtype=np.float64):
        self.rows, self.dtype = rows, np.dtype(dtype)
        self.item = self.dtype.itemsize
        self.set_array(np.zeros(self.shape(0), dtype=self.dtype))

    def shape(self, Py_ssize_t capacity):
        """Of an array for so many slots. O(1)."""
        return self.rows, capacity

    cdef int set_array(self, array) except -1:
        """Go on with another array, for as many slots. O(1)."""
        cdef char* data = array_data(array)
        cdef Py_ssize_t rows = len(array)
        self.array, self.data, self.rows = array, data, rows

    cdef int prepare(self, Py_ssize_t capacity, bint in_place) except -1:
        """Have an array ready for so many slots, unless the next move is one in place. O(1), and the memory."""
        self.coming = None
        if not in_place:
            self.coming = aligned_empty(self.shape(capacity), self.dtype)
            self.coming_data = array_data(self.coming)

    cdef void move(self, const Aged* order, Py_ssize_t n, Py_ssize_t capacity) noexcept:
        """The numbers of these slots become those of slots 0, 1, ...; the others are 0. `prepare` came before.

        In place, slots ascend: then none is written to before it has been read. O(rows capacity); squares O(n^2).
        """
        cdef char* new = self.data if self.coming is None else self.coming_data
        self.gather(new, order, n, capacity)
        if self.coming is not None:
            self.array, self.data, self.coming = self.coming, new, None
        self.capacity = capacity

    cdef void gather(self, char* new, const Aged* order, Py_ssize_t n, Py_ssize_t capacity) noexcept nogil:
        """The numbers themselves. As `move`."""
        cdef Py_ssize_t row
        for row in range(self.rows):
            gather_row(self.data + row * self.capacity * self.item, new + row * capacity * self.item, order, n,
                       self.item)
            memset(new + (row * capacity + n) * self.item, 0, (capacity - n) * self.item)

    cdef void clear(self, Py_ssize_t slot) noexcept nogil:
        """A slot is free: make its numbers 0, and those in the tables behind this one. O(capacity)."""
        if self.next is not None:
            self.next.clear(slot)


cdef class SquareTable(Table):
    """Numbers per pair of slots; 0 for slots that nobody holds."""

    def __init__(self):
        Table.__init__(self, 0)

    def shape(self, Py_ssize_t capacity):
        return capacity, capacity

    cdef int prepare(self, Py_ssize_t capacity, bint in_place) except -1:
        """Matrices of many terms are large: memory that is 0 and never touched costs nothing."""
        self.coming = None
        if not in_place:
            self.coming = np.zeros((capacity, capacity))
            self.coming_data = array_data(self.coming)

    cdef void gather(self, char* new, const Aged* order, Py_ssize_t n, Py_ssize_t capacity) noexcept nogil:
        cdef Py_ssize_t row, size = capacity * sizeof(double), first = n * sizeof(double), used
        for row in range(n):
            gather_row(self.data + order[row].slot * self.capacity * sizeof(double), new + row * size, order, n,
                       sizeof(double))
        if new == self.data and n:
            used = order[n - 1].slot + 1
            for row in range(used):
                if row == n:
                    first = 0
                memset(new + row * size + first, 0, used * sizeof(double) - first)

    cdef void clear(self, Py_ssize_t slot) noexcept nogil:
        cdef double* numbers = <double*> self.data
        cdef Py_ssize_t other
        for other in range(self.capacity):
            numbers[slot * self.capacity + other] = numbers[other * self.capacity + slot] = 0.0
        if self.next is not None:
            self.next.clear(slot)


cdef class RowTable(Table):
    """Numbers per slot that are next to each other, a row for each."""

    def __init__(self, Py_ssize_t columns, dtype):
        self.columns = columns
        Table.__init__(self, 0, dtype)

    def shape(self, Py_ssize_t capacity):
        return capacity, self.columns

    cdef void gather(self, char* new, const Aged* order, Py_ssize_t n, Py_ssize_t capacity) noexcept nogil:
        cdef Py_ssize_t i, size = self.columns * self.item
        for i in range(n):
            if new != self.data or order[i].slot != i:
                memcpy(new + i * size, self.data + order[i].slot * size, size)
        memset(new + n * size, 0, (capacity - n) * size)


cdef void gather_row(const char* old, char* new, const Aged* order, Py_ssize_t n, Py_ssize_t item) noexcept nogil:
    """new[i] = old[order[i].slot], items of so many bytes."""
    cdef Py_ssize_t i
    if item == 8:
        for i in range(n):
            memcpy(new + 8 * i, old + 8 * order[i].slot, 8)
    elif item == 4:
        for i in range(n):
            memcpy(new + 4 * i, old + 4 * order[i].slot, 4)
    else:
        for i in range(n):
            memmove(new + item * i, old + item * order[i].slot, item)


# ---- Dictionaries --------------------------------------------------------------------------------

cdef enum:
    MOST_ROWS = 256     # of a piece that is only evaluated


cdef int compare_ages(const void* a, const void* b) noexcept nogil:
    cdef long long first = (<const Aged*> a).birthday, second = (<const Aged*> b).birthday
    return (first > second) - (first < second)


cdef class Observer:
    """Who holds the slots of a dictionary, and must know when they move."""

    cdef void resolve(self) noexcept nogil:
        """Release slots that need not be held any more. O(1), O(terms) if some are due."""

    cdef int prepare(self, Py_ssize_t capacity) except -1:
        """There may soon be so many slots: get what memory that needs. What is in tables of the dictionary follows
        anyway. O(capacity)."""

    cdef void moved(self) noexcept:
        """The slots have moved: those in use are now 0, 1, ..., oldest first. O(capacity)."""


cdef inline const double* as_doubles(Piece piece, const char* numbers, Py_ssize_t place, Py_ssize_t n) noexcept nogil:
    """n numbers of a piece from a place on, widened if they are float32; NULL if there are none."""
    if numbers == NULL or not piece.narrow:
        return <const double*> NULL if numbers == NULL else <const double*> numbers + place
    ok_widen(<const float*> numbers + place, piece.widened, n)
    return piece.widened


cdef inline const char* row_of(Piece piece, Py_ssize_t i, Py_ssize_t size) noexcept nogil:
    """Example i of a piece, of so many bytes, as kernels take it that look at coordinates; NULL if there are none."""
    return <const char*> NULL if piece.x == NULL else piece.x + i * size


cdef class Dictionary:
    """Points in slots.

    Its program is the kernel, started with the points' precision and origin; None if its values come from elsewhere.
    Complexities are those of n slots in use of d features; for sparse rows d is the number of non-zeros.

    A kind of points implements `open_points`, `put`, `point` and `slot_row`, and for Python `chosen`, `points_at`,
    `points_state` and `restore_points`. It keeps points in tables, or implements `prepare_points` and `move_points`.
    """

    FIELDS = Array("birthdays", np.int64, ("n",), distinct),

    def __init__(self, Py_ssize_t n_features, dtype, Program program=None):
        self.n_features = n_features
        self.dtype = np.dtype(dtype)
        self.point_bytes = n_features * self.dtype.itemsize
        self.tables, self.observer = [], Observer()
        self.birthdays = self.new_table(1, np.int64)
        self.taken = self.new_table(1, np.uint8)
        self.hole_table = self.new_table(1, np.intp)
        self.program = program
        if program is not None:
            self.looks_back = True
            self.notices_bad_points = self.needs_inner = program.needs_inner
            self.needs_l1 = program.needs_l1
            self.cached = self.new_table(program.n_cached)

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

    cdef Py_ssize_t size(self) noexcept nogil:
        """Slots in use: O(1)."""
        return self.stop - self.start

    cdef long long born(self, Py_ssize_t slot) noexcept nogil:
        """The t at which the point of a slot was admitted: O(1)."""
        return (<long long*> self.birthdays.data)[slot]

    # ---- Points come and go -------------------------------------------------------------------

    cdef Py_ssize_t admit(self, Piece piece, Py_ssize_t i, long long t) noexcept nogil:
        """The slot that example i is placed in; room is reserved. O(d + rows)."""
        cdef Py_ssize_t slot = -1
        while self.n_holes and not self.keeps_order:
            self.n_holes -= 1
            slot = (<Py_ssize_t*> self.hole_table.data)[self.n_holes]
            if slot >= self.start and not self.taken.data[slot]:
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

        Inner products are linear, so later examples of the piece see a combination of two columns. Only for kernels
        without city-block distances. O(d + rows).
        """
        cdef Py_ssize_t row, rows = piece.rows, stride = piece.stride
        cdef Py_ssize_t column = slot - piece.first, from_ = other - piece.first
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
        """A slot has been taken: O(1)."""
        self.taken.data[slot] = 1
        self.held += 1

    cdef void release(self, Py_ssize_t slot) noexcept nogil:
        """A slot is free: O(1), O(n) with tables of pairs."""
        self.taken.data[slot] = 0
        self.held -= 1
        (<Py_ssize_t*> self.hole_table.data)[self.n_holes] = slot
        self.n_holes += 1
        if self.cleared is not None:
            self.cleared.clear(slot)

    cdef void trim(self) noexcept nogil:
        """Leave free slots at the beginning behind; there must be room at the end for all candidates. O(1) a slot."""
        while self.start < self.stop and not self.taken.data[self.start]:
            if self.n_holes and (<Py_ssize_t*> self.hole_table.data)[self.n_holes - 1] == self.start:
                self.n_holes -= 1
            self.start += 1

    # ---- Memory -------------------------------------------------------------------------------

    cdef int reserve(self, Py_ssize_t candidates) except -1:
        """Make sure that so many points can be admitted without any array moving: O(1) a point, amortised, times d."""
        cdef long long most = self.observer.most
        self.tidy()
        if min(self.stop + candidates, most) <= self.capacity:
            return 0
        if self.start and 2 * (self.held + candidates) <= self.capacity:
            self.pack(self.capacity)
            return 0
        self.pack(min(max(2 * self.held, self.held + candidates, 16), most))

    cdef int tidy(self) except -1:
        """Make [start, stop) the slots that are held, so that sums do not depend on dead ones: O(1), or `pack`."""
        self.observer.resolve()
        if self.must_pack():
            self.pack(self.capacity)

    cdef bint must_pack(self) noexcept nogil:
        """Whether there are dead slots, or were where candidates are now: O(1)."""
        return self.disorderly or self.held != self.stop - self.start

    def slots(self):
        """Slots that are taken, oldest first. O(n log n)."""
        slots = np.arange(self.start, self.stop)
        slots = slots[self.taken.array[0, self.start:self.stop] != 0]
        return slots[np.argsort(self.birthdays.array[0, slots], kind="stable")]

    cdef int pack(self, Py_ssize_t capacity) except -1:
        """Move what is held to the front, oldest first: O(n (d + log n)), O(n^2) with tables of pairs."""
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
            self.observer.prepare(capacity)
            self.move(order, capacity)
        finally:
            free(order)
            for table in self.tables:
                table.coming = None

    cdef bint sort_by_age(self, Aged* order) noexcept nogil:
        """Slots that are taken, oldest first; return whether they ascend. O(n), O(n log n) if they do not."""
        cdef Py_ssize_t slot, n = 0
        cdef bint ascends = True
        for slot in range(self.start, self.stop):
            if self.taken.data[slot]:
                order[n].birthday, order[n].slot = self.born(slot), slot
                ascends &= n == 0 or order[n - 1].birthday < order[n].birthday
                n += 1
        if not ascends:
            qsort(order, n, sizeof(Aged), compare_ages)
        return ascends

    cdef void move(self, const Aged* order, Py_ssize_t capacity) noexcept:
        """Carry out what has been prepared. O(n d), O(n^2) with tables of pairs."""
        cdef Table table
        for table in self.tables:
            table.move(order, self.held, capacity)
        self.capacity = capacity
        self.start, self.stop, self.n_holes, self.disorderly = 0, self.held, 0, False
        self.move_points()
        self.observer.moved()

    # ---- Pieces -------------------------------------------------------------------------------

    cdef Py_ssize_t piece_rows(self):
        """Rows per piece.

        A matrix product costs about n d / rows per example for rearranging the n points, and the piece's own Gram
        matrix rows d / 2; the sum is least at a multiple of sqrt(n).  Libraries multiply blocks of 4 to 24 rows, and 48
        is a multiple of them.  With few features neither matters, and the inner products should stay in the cache.
        O(1), or `pack`.
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

    cdef int open_points(self, Piece piece, Py_ssize_t first, Py_ssize_t m, bint learning, bint transposed) except -1:
        """Compute at once what a loop over rows first, ..., first + m - 1 of the call's source needs.

        `transposed`: inner products may come the other way round, a row for each slot. O(m (n + m) d), O(m n d) unless
        learning.
        """
        raise NotImplementedError

    cdef void put(self, Piece piece, Py_ssize_t i, Py_ssize_t slot) noexcept nogil:
        """Copy example i into a slot: O(d)."""

    cdef void mix(self, Piece piece, Py_ssize_t i, Py_ssize_t other, Py_ssize_t slot, double share) noexcept nogil:
        """The point's own part of `blend`: O(d)."""

    cdef const char* point(self, Py_ssize_t slot) noexcept nogil:
        """A point as kernels take it that look at coordinates; NULL if there are none. O(1)."""
        return NULL

    cdef bint is_at(self, Piece piece, Py_ssize_t i, Py_ssize_t slot) noexcept nogil:
        """Whether example i is, bit for bit, the point of a slot: O(n_features), or O(nnz)."""
        return False

    cdef void slot_row(self, Piece piece, Py_ssize_t slot) noexcept nogil:
        """Inner products of a slot's own point with all slots in use, into piece.slot_inner, distances into
        piece.slot_l1. O(n d)."""

    cdef int prepare_points(self, const Aged* order, Py_ssize_t capacity) except -1:
        """The points of these slots are about to become those of slots 0, 1, .... O(capacity d)."""

    cdef void move_points(self) noexcept:
        """Now they do. O(1)."""

    # ---- Kernel values ------------------------------------------------------------------------

    cdef int attach(self, Piece piece, examples) except -1:
        """What a call is about. O(1)."""
        piece.source = examples
        piece.source_data = array_data(examples) if isinstance(examples, np.ndarray) else NULL

    cdef int open(self, Piece piece, Py_ssize_t first, Py_ssize_t m, bint learning, bint transposed) except -1:
        """Get ready for rows first, ..., first + m - 1 of the call: `open_points`, and k(x, x)."""
        cdef Py_ssize_t capacity
        self.open_points(piece, first, m, learning, transposed)
        piece.cached = <double*> piece.buffer(CACHED, self.program.n_cached * m * sizeof(double))
        piece.own = <double*> piece.buffer(OWN, m * sizeof(double))
        capacity = max(piece.stride, m)
        piece.work = <double*> piece.buffer(WORK, self.program.depth * capacity * sizeof(double))
        if piece.narrow:
            piece.widened = <double*> piece.buffer(WIDENED, capacity * sizeof(double))
        if self.evaluates_slots:
            self.reserve_slots(piece, capacity)
        if m == 1:
            self.find_cached(piece)                  # to let others go on meanwhile would take longer
        else:
            with nogil:
                self.find_cached(piece)

    cdef void find_cached(self, Piece piece) noexcept nogil:
        """What the kernel wants to know of the examples of a piece, and k(x, x)."""
        cdef Py_ssize_t i, m = piece.rows
        for i in range(m):
            piece.own[i] = self.program.cache_from(row_of(piece, i, self.point_bytes), piece.square[i],
                                                   piece.origin_product[i], piece.cached + i, m)

    cdef const double* values(self, Piece piece, Py_ssize_t i) noexcept nogil:
        """Kernel values of example i with the slots in use, valid until the next call. O(n)."""
        self.values_into(piece, i, piece.work)
        return piece.work

    cdef void values_into(self, Piece piece, Py_ssize_t i, double* out) noexcept nogil:
        """`values` elsewhere; out: room for as many numbers as the program is deep, times the slots in use."""
        cdef Py_ssize_t start = self.start, n = self.stop - start
        cdef Py_ssize_t place = i * piece.stride + start - piece.first
        cdef double* cached = <double*> self.cached.data
        cdef const double* inner = as_doubles(piece, piece.inner, place, n)
        self.program.row(inner, NULL if piece.l1 == NULL else piece.l1 + place, row_of(piece, i, self.point_bytes),
                         piece.cached + i, piece.rows, self.point(start), cached + start, self.cached.capacity, n, out)

    cdef const double* own_values(self, Piece piece, Py_ssize_t i) noexcept nogil:
        """Kernel values of example i with all examples of its piece; NULL if the piece has only one. O(m)."""
        cdef Py_ssize_t m = piece.rows, place = i * m
        if m == 1:
            return NULL
        self.program.row(as_doubles(piece, piece.own_inner, place, m),
                         NULL if piece.own_l1 == NULL else piece.own_l1 + place, row_of(piece, i, self.point_bytes),
                         piece.cached + i, m, piece.x, piece.cached, m, m, piece.work)
        piece.work[i] = piece.own[i]                    # the same example: noise counts
        return piece.work

    cdef const double* slot_over_piece(self, Piece piece, Py_ssize_t slot) noexcept nogil:
        """Kernel values of a slot's point with the examples of a piece that is transposed. O(m)."""
        cdef Py_ssize_t m = piece.rows
        cdef const double* row = as_doubles(piece, piece.inner, (slot - self.start) * piece.stride, m)
        self.program.row(row, NULL, self.point(slot), <double*> self.cached.data + slot, self.cached.capacity, piece.x,
                         piece.cached, m, m, piece.work)
        return piece.work

    cdef bint point_is_finite(self, Piece piece, Py_ssize_t i) noexcept nogil:
        """Whether an example is small enough for the kernel's arithmetic. O(1)."""
        return isfinite(piece.square[i])

    cdef void keep_cached(self, Piece piece, Py_ssize_t i, Py_ssize_t slot) noexcept nogil:
        """Example i has entered a slot. O(1)."""
        cdef Py_ssize_t row
        for row in range(self.program.n_cached):
            (<double*> self.cached.data)[row * self.cached.capacity + slot] = piece.cached[row * piece.rows + i]

    cdef void distances(self, Piece piece, Py_ssize_t i, double rate, double* out) noexcept nogil:
        """rate |x - z|^2 of example i and the points of all slots in use, for kernels on inner products. O(n)."""
        cdef Py_ssize_t start = self.start, n = self.stop - start
        cdef Py_ssize_t place = i * piece.stride + start - piece.first
        ok_distance_row(as_doubles(piece, piece.inner, place, n),
                        <double*> self.cached.data + SQUARE * self.cached.capacity + start,
                        piece.cached[SQUARE * piece.rows + i], rate, out, n)

    cdef void point_moved(self, Py_ssize_t slot) noexcept nogil:
        """The point of a slot is another one now. O(d)."""
        self.program.cached(self.point(slot), <double*> self.cached.data + slot, self.cached.capacity)

    cdef double slot_values(self, Piece piece, Py_ssize_t slot) noexcept nogil:
        """Kernel values of a slot's point with the slots in use, into piece.slot_work; return k(x, x) there. O(n d)."""
        cdef Py_ssize_t start = self.start, capacity = self.cached.capacity
        cdef double* cached = <double*> self.cached.data
        cdef const char* x = self.point(slot)
        cdef double unused[2 * MAX_OPS]         # two, and one for each NORMALIZE
        cdef double own
        self.slot_row(piece, slot)
        self.program.row(piece.slot_inner, piece.slot_l1, x, cached + slot, capacity, self.point(start), cached + start,
                         capacity, self.size(), piece.slot_work)
        own = self.program.cache_from(x, cached[SQUARE * capacity + slot], cached[ORIGIN_PRODUCT * capacity + slot],
                                      unused, 1)
        piece.slot_work[slot - start] = own         # the same example: noise counts
        return own

    cdef void candidates_values(self, Piece piece, Py_ssize_t slot, double own, double* out) noexcept nogil:
        """Kernel values of the point in a slot, the latest example, with the slots in use; own: with itself.

        They do not depend on where the slots are, nor on the piece: `values_between` gives the same bits. O(n d).
        """
        self.slot_values(piece, slot)
        memcpy(out, piece.slot_work, self.size() * sizeof(double))

    def values_between(self):
        """Kernel values of the points of all slots in use, a row for each, with each other. O(n^2 d)."""
        cdef Piece piece = Piece()
        cdef Py_ssize_t i, n = self.size()
        cdef double[:, ::1] values
        result = np.empty((n, n))
        if n:
            values = result
            self.reserve_slots(piece, n)
            piece.dense_row = <double*> piece.buffer(DENSE_ROW, self.n_features * sizeof(double))
            with nogil:
                for i in range(n):
                    self.slot_values(piece, self.start + i)
                    memcpy(&values[i, 0], piece.slot_work, n * sizeof(double))
        return result

    cdef int reserve_slots(self, Piece piece, Py_ssize_t capacity) except -1:
        """Room for the kernel values of a slot's point."""
        piece.slot_inner = <double*> piece.buffer(SLOT_INNER, capacity * sizeof(double))
        piece.slot_l1 = <double*> piece.buffer(SLOT_L1, capacity * sizeof(double))
        piece.slot_work = <double*> piece.buffer(SLOT_WORK, self.program.depth * capacity * sizeof(double))

    cdef open_start(self, Piece piece, points, kept):
        """Open those points of another model that are kept, without inner products; return them. O(m d)."""
        points = self.chosen(points, kept)
        self.attach(piece, points)
        self.open(piece, 0, len(kept), False, False)
        piece.inner, piece.l1 = NULL, NULL          # nobody will ask for them
        return points

    cdef int resolve_start(self, Piece piece, points, Py_ssize_t i) except -1:
        """Point i of another model has been added. O(1)."""

    cdef int close(self, Piece piece) except -1:
        """The piece has been learned. O(1)."""

    # ---- State --------------------------------------------------------------------------------

    def saved_slots(self):
        """Slots in the order in which they are saved: that of sums; the packed one where a pack is due. O(n log n)."""
        if self.must_pack():
            return self.slots()
        return np.arange(self.start, self.stop)

    def stored(self):
        """Birthdays and points. O(n d)."""
        slots = self.saved_slots()
        return {"birthdays": self.birthdays.array[0, slots], **self.points_state(slots)}

    def fits(self, state):
        """ValueError if a point has come after all examples of the model."""
        if "t" in state and len(state["birthdays"]) and state["birthdays"].max() > state["t"]:
            raise ValueError("a term is younger than the model")

    def resume(self, state):
        """Take over points; all of them are held. O(n d)."""
        cdef Py_ssize_t slot, n = len(state["birthdays"])
        self.start = self.stop = self.held = self.n_holes = 0
        self.pack(n)
        self.stop = n
        self.birthdays.array[0] = state["birthdays"]
        self.restore_points(state)
        for slot in range(n):
            if self.program is not None:
                self.point_moved(slot)
            self.hold(slot)

    def _check(self):
        assert 0 <= self.start <= self.stop <= self.capacity
        taken = self.taken.array[0]
        assert self.held == np.count_nonzero(taken)
        assert not taken[:self.start].any() and not taken[self.stop:].any()
        free = set(np.flatnonzero(taken[self.start:self.stop] == 0) + self.start)  # no-cython-lint
        holes = set(self.hole_table.array[0, :self.n_holes].tolist())
        assert free <= holes and all(slot < self.stop for slot in holes), "a free slot is lost"
        assert all(table.array.shape == table.shape(self.capacity) for table in self.tables)
        assert len(set(self.birthdays.array[0, self.slots()].tolist())) == self.held
