"""Coefficients of terms, in the slots of a dictionary and the coordinates of a frame, under a budget.

Two kinds: a coefficient for every output (one output, several targets, all labels), or one coefficient for a pair of
labels, which one of them has and the other one has the negative of.
"""
import numpy as np
from libc.math cimport fabs, isfinite
from onlinekernels._core.arrays import check_array
from onlinekernels._core.formulas.frame cimport MAX_CHANNELS, frame_row
from onlinekernels._core.formulas.vecmath cimport ok_axpy, ok_dot, ok_scatter_pairs

cdef double TINY = 2.2250738585072014e-308      # below it numbers lose digits: folded to 0
UNBOUNDED = 1 << 62
NEARLY = 1.0 + 1e-9


cdef class Budget:
    """Makes room in a function: says which of its terms goes, and what becomes of that term's coefficient.

    One budget belongs to one function. Complexities count the n terms, and outputs as one. Sizes are in the frame's
    coordinates, as `terms.size_of` gives them: all terms share the frame, and only a fold changes them. It must implement

    `victim(terms, size)`
        the slot of the term that goes if another one of this size comes: NOBODY if there is room, NEWCOMER if it is
        the newcomer that does not come. O(1), or O(log n) with a heap;

    and may implement

    `make_room(terms, scratch, term, i, size, outcome)`
        the same question, asked with the newcomer at hand: its term; k(x, x) in w.piece.own[i] and, if `looks_at_newcomers`,
        its kernel values with all slots in use in w.piece.values. The answer is in the outcome, which says before that there is
        room and nothing to hand over. On the way to it, numbers go to w.for_budget and nowhere else: `numbers` says how many
        at most, and nothing of the budget changes;
    `hand_over(terms, scratch, term, i, outcome)`
        that is carried out: those that stay take over what they can of what goes, which is still there, and the newcomer's
        term too may change. It says in outcome.residual how much is lost;
    `expiring(terms, t)`
        the slot of a term that f may not use after example t; asked again until it is NOBODY. O(1). It is asked after every
        example, so that a budget can know what time it is;
    `entered(terms, slot)`, `left(terms, slot)`
        to follow which terms there are. O(1) for a queue, O(log n) for a heap, O(n) for numbers of pairs;
    `changed(terms)`
        all coefficients have been folded. O(n);
    `begin(terms)`
        before there are terms: make tables of the dictionary for what it keeps, which follow the slots. O(1);
    `prepare(terms, capacity)`
        there may soon be so many slots: get other memory that this needs, before anything moves. O(capacity^2) at most;
    `arrange(terms)`
        start anew: the terms have moved, and the order of their slots is that of their age. O(n);
    `widen(terms, rows)`
        there are about to be so many outputs: get memory for them, which may be too much for those there are. O(rows n);
    `stand_on(rows)`
        the kernel over the dictionary, before there are terms. O(1);
    `state`, `check_numbers`, `restore`
        for numbers of its own. The last one is called when the terms are back, after `arrange`, but slots are in the order
        of the state, which is that of the hypothesis: it has "t" and "birthdays", too;
    `check_state(birthdays)`
        where a file can have terms in an order, or of an age, that cannot be.
    """

    def __cinit__(self, *args, **kwargs):
        self.most = UNBOUNDED

    cdef Py_ssize_t numbers(self, Coefficients terms) noexcept:
        """How many numbers `make_room` writes to the scratch of a call, at most. O(1)."""
        return 0

    cdef Py_ssize_t victim(self, Coefficients terms, double size) noexcept nogil:
        """Who goes for a newcomer of this size. O(1)."""
        return NOBODY

    cdef void make_room(self, Coefficients terms, Scratch w, const Term* term, Py_ssize_t i, double size,
                        Outcome* outcome) noexcept nogil:
        """Say who goes for a newcomer of this size. As `victim`."""
        outcome.slot = self.victim(terms, size)

    cdef void hand_over(self, Coefficients terms, Scratch w, Term* term, Py_ssize_t i, Outcome* outcome) noexcept nogil:
        """Carry out what `make_room` has said, but for leaving and entering. O(1)."""
        pass

    cdef Py_ssize_t expiring(self, Coefficients terms, long long t) noexcept nogil:
        """A term that f may not use after example t. O(1)."""
        return NOBODY

    cdef void entered(self, Coefficients terms, Py_ssize_t slot) noexcept nogil:
        """A slot has a term now. O(1), of a heap O(log terms), of pairs O(terms)."""
        pass

    cdef void left(self, Coefficients terms, Py_ssize_t slot) noexcept nogil:
        """A slot has no term any more. As `entered`."""
        pass

    cdef void changed(self, Coefficients terms) noexcept nogil:
        """All coefficients have been folded. O(terms)."""
        pass

    cdef int begin(self, Coefficients terms) except -1:
        return 0

    cdef int prepare(self, Coefficients terms, Py_ssize_t capacity) except -1:
        return 0

    cdef void arrange(self, Coefficients terms) noexcept nogil:
        """The terms have moved. O(terms)."""
        pass

    cdef int widen(self, Coefficients terms, Py_ssize_t rows) except -1:
        return 0

    def stand_on(self, rows):
        """Look at the kernel, if that is needed."""

    def state(self, Coefficients terms, slots):
        """Named numbers and arrays about the terms in these slots. O(its size)."""
        return {}

    def restore(self, Coefficients terms, state):
        """Continue from a state that has been checked; slots are in its order. O(its size)."""

    def check_numbers(self, state, Py_ssize_t n):
        """ValueError unless what `state` gave fits n terms. O(their size)."""

    def check_state(self, birthdays):
        """ValueError unless a model under this budget can have terms with these birthdays, in the order of sums. O(n)."""
        if len(birthdays) > self.most:
            raise ValueError(f"{len(birthdays)} terms are more than the budget of {self.most}")

    def _check(self, Coefficients terms):
        """Assert every invariant."""
        assert terms.count <= self.most


cdef class Coefficients(Tenant):
    """Coefficients in slots, rows (channel, label), as a frame stores them.

    Parameters
    ----------
    dictionary : Dictionary
    budget : Budget
    channels : int
    rows : int
        Numbers per channel.
    """

    def __init__(self, Dictionary dictionary, Budget budget, int channels, Py_ssize_t rows):
        self.dictionary = dictionary
        self.budget = budget
        self.most = budget.most
        self.channels = channels
        self.rows = rows
        self.stored = dictionary.new_table(channels * rows)
        self.mine = dictionary.new_table(1, np.uint8)
        budget.begin(self)
        budget.prepare(self, dictionary.capacity)
        budget.arrange(self)
        dictionary.add_tenant(self)

    cdef double* column(self, Py_ssize_t slot) noexcept nogil:
        """The coefficients of a slot: one of each row, `capacity` apart. O(1)."""
        return <double*> self.stored.data + slot

    cdef bint holds(self, Py_ssize_t slot) noexcept nogil:
        """Whether a slot has a term: O(1)."""
        return self.mine.data[slot] != 0

    cdef double size_of(self, Py_ssize_t slot) noexcept nogil:
        """max_y |coefficient| in frame coordinates: all terms share the frame, so their order by it never changes. O(rows)."""
        cdef Py_ssize_t row, capacity = self.stored.capacity
        cdef double size = 0.0
        for row in range(self.rows):
            size = max(size, fabs(self.column(slot)[row * capacity]))
        return size

    cdef bint is_zero(self, Py_ssize_t slot) noexcept nogil:
        """Whether all of a slot's coefficients are 0: O(channels rows)."""
        cdef Py_ssize_t row
        for row in range(self.channels * self.rows):
            if self.column(slot)[row * self.stored.capacity] != 0.0:
                return False
        return True

    # ---- Terms come and go --------------------------------------------------------------------

    cdef void put(self, Py_ssize_t slot, const Term* term) noexcept nogil:
        """A new term in a slot of the dictionary. O(channels rows), and the budget's."""
        self.mine.data[slot] = 1
        self.dictionary.hold(slot)
        self.count += 1
        self.write(slot, term)
        self.budget.entered(self, slot)

    cdef void drop(self, Py_ssize_t slot) noexcept nogil:
        """The term in a slot goes. O(channels rows), and the budget's."""
        cdef Py_ssize_t row, capacity = self.stored.capacity
        cdef double* column = self.column(slot)
        self.budget.left(self, slot)
        for row in range(self.channels * self.rows):
            column[row * capacity] = 0.0
        self.mine.data[slot] = 0
        self.count -= 1
        self.dictionary.release(slot)

    cdef void clear(self) noexcept nogil:
        """Forget all terms, leaving the slots in use where they are. O(n)."""
        cdef Py_ssize_t slot
        for slot in range(self.dictionary.stop - 1, self.dictionary.start - 1, -1):     # the first is free at last
            if self.holds(slot):
                self.drop(slot)

    cdef void fold(self, const Frame* frame) noexcept nogil:
        """Multiply the frame into the stored coordinates. O(channels rows n)."""
        cdef double stored[MAX_CHANNELS]
        cdef Py_ssize_t slot, row, capacity = self.stored.capacity, stride = self.rows * capacity
        cdef int channel
        cdef double value
        cdef double* coef = <double*> self.stored.data
        for row in range(self.rows):
            for slot in range(self.dictionary.start, self.dictionary.stop):
                for channel in range(frame.channels):
                    stored[channel] = coef[channel * stride + row * capacity + slot]
                for channel in range(frame.channels):
                    value = frame_row(frame, channel, stored)
                    if fabs(value) < TINY:
                        value = 0.0
                        self.stale = True
                    coef[channel * stride + row * capacity + slot] = value
        self.budget.changed(self)

    cdef void settle(self) noexcept nogil:
        """Release terms that have faded to 0. O(1), O(n) if there are any."""
        cdef Py_ssize_t slot
        if not self.stale or self.keeps_zeros:
            return
        self.stale = False
        for slot in range(self.dictionary.start, self.dictionary.stop):
            if self.holds(slot) and self.is_zero(slot):
                self.drop(slot)
                self.dictionary.disorderly = True

    cdef int prepare(self, Py_ssize_t capacity) except -1:
        """As the budget."""
        return self.budget.prepare(self, capacity)

    cdef void moved(self) noexcept:
        """As the budget."""
        self.budget.arrange(self)

    cdef Py_ssize_t list_slots(self, Py_ssize_t* out) noexcept nogil:
        """Slots of the terms, ascending; return how many. O(n)."""
        cdef Py_ssize_t slot, n = 0
        for slot in range(self.dictionary.start, self.dictionary.stop):
            if self.holds(slot):
                out[n] = slot
                n += 1
        return n

    def slots(self):
        """Slots with a coefficient, oldest first. O(n log n)."""
        slots = np.arange(self.dictionary.start, self.dictionary.stop)
        slots = slots[(self.stored.array[:, slots] != 0).any(axis=0)]
        return slots[np.argsort(self.dictionary.birthdays.array[0, slots], kind="stable")]

    # ---- Labels -------------------------------------------------------------------------------

    cdef Py_ssize_t kept(self) noexcept nogil:
        """Rows per channel, the first ones, that a budget weighs: the rest are copies, or 0. How many of these there are
        depends on how many labels a chunk has seen coming, and must not matter. O(1)."""
        return self.rows

    cdef void write(self, Py_ssize_t slot, const Term* term) noexcept nogil:
        """Take over a term's coordinates; the slot has none. O(channels rows)."""
        pass

    cdef void read(self, Py_ssize_t slot, Term* term) noexcept nogil:
        """The labels of a slot, and its stored coordinates, into a term. O(channels rows)."""
        pass

    cdef void add_up(self, const double* values, int channel, Py_ssize_t labels, double* sums) noexcept nogil:
        """sums[y] = sum over the slots in use of the stored coefficient at label y times the value. O(channels rows n)."""
        pass

    cdef void add_up_carefully(self, const double* values, int channel, Py_ssize_t labels, double* sums) noexcept nogil:
        """The same without slots that hold no term: an infinite value times their 0 is no reason to stop. O(channels rows n)."""
        pass

    cdef void add_slot(self, Py_ssize_t slot, int channel, const double* values, Py_ssize_t m, double* totals) noexcept nogil:
        """totals[y * m + i] += the slot's stored coefficient at label y times value i. O(channels rows m)."""
        pass

    # ---- State --------------------------------------------------------------------------------

    def check_state(self, state, Py_ssize_t n, Py_ssize_t labels):
        """ValueError unless the coefficients of a state fit n terms of so many labels. O(its size)."""
        rows = self.stored_rows(labels)
        check_array(state["coefficients"], "coefficients", np.float64, (self.channels * rows, n))
        self.budget.check_state(state["birthdays"])
        self.budget.check_numbers(state, n)

    def state(self, slots, Py_ssize_t labels):
        """Named arrays about these slots. O(its size)."""
        rows = self.stored_rows(labels)
        stored = self.stored.array[:, slots].reshape(self.channels, self.rows, len(slots))[:, :rows]
        return {"coefficients": stored.reshape(self.channels * rows, len(slots)), **self.budget.state(self, slots)}

    def restore(self, state, Py_ssize_t labels):
        """Take over what has been checked; the points are there, and slots are in the order of the state. O(its size)."""
        cdef Py_ssize_t slot
        rows, n = self.stored_rows(labels), len(state["birthdays"])
        stored = self.stored.array.reshape(self.channels, self.rows, n)
        stored[:, :rows] = state["coefficients"].reshape(self.channels, rows, n)
        self.mine.array[:] = 1
        self.count, self.stale = n, True        # saved in the middle of a call, a term may have faded to 0
        for slot in range(n):
            self.dictionary.hold(slot)
        self.budget.arrange(self)
        self.budget.restore(self, state)

    def stored_rows(self, Py_ssize_t labels):
        """Rows per channel that mean something, for so many labels. O(1)."""
        return self.rows

    def _check(self):
        """Assert every invariant."""
        mine = self.mine.array[0] != 0
        assert self.count == np.count_nonzero(mine) and (self.dictionary.holders.array[0, mine] > 0).all()
        assert not self.stored.array[:, ~mine].any(), "a slot without a term has a coefficient"
        self.budget._check(self)


cdef class Full(Coefficients):
    """A coefficient for every output."""

    def __init__(self, Dictionary dictionary, Budget budget, int channels, Outputs outputs):
        self.outputs = outputs
        Coefficients.__init__(self, dictionary, budget, channels, max(1, outputs.n))

    cdef Py_ssize_t kept(self) noexcept nogil:
        return self.outputs.kept()

    def widen(self, Py_ssize_t rows):
        """Make room for more outputs; their coefficients are 0."""
        cdef Py_ssize_t capacity = self.stored.capacity
        wider = np.zeros((self.channels, rows, capacity))
        wider[:, :self.rows] = self.stored.array.reshape(self.channels, self.rows, capacity)
        wider = wider.reshape(self.channels * rows, capacity)
        self.budget.widen(self, rows)
        self.stored.set_array(wider)            # which fails, or
        self.rows = rows

    def copy_last(self, Py_ssize_t n):
        """Outputs from the n-th on become what the one before them is."""
        stored = self.stored.array.reshape(self.channels, self.rows, self.stored.capacity)
        stored[:, n:] = stored[:, n - 1:n]

    cdef void write(self, Py_ssize_t slot, const Term* term) noexcept nogil:
        cdef int channel
        cdef Py_ssize_t k, n = term.n, capacity = self.stored.capacity
        cdef double* column = self.column(slot)
        for channel in range(self.channels):
            for k in range(n):
                column[term.labels[k] * capacity] = term.stored[channel * n + k]
            column += self.rows * capacity

    cdef void read(self, Py_ssize_t slot, Term* term) noexcept nogil:
        cdef Py_ssize_t row
        term.n = self.rows
        for row in range(self.rows):
            term.labels[row] = <int> row
        for row in range(self.channels * self.rows):
            term.stored[row] = self.column(slot)[row * self.stored.capacity]

    cdef void add_up(self, const double* values, int channel, Py_ssize_t labels, double* sums) noexcept nogil:
        cdef Py_ssize_t y, n = self.dictionary.size()
        cdef const double* coef = self.column(self.dictionary.start) + channel * self.rows * self.stored.capacity
        cdef bint finite = True
        for y in range(labels):
            sums[y] = ok_dot(coef + y * self.stored.capacity, values, n)
            finite &= isfinite(sums[y])
        if not finite:
            self.add_up_carefully(values, channel, labels, sums)

    cdef void add_up_carefully(self, const double* values, int channel, Py_ssize_t labels, double* sums) noexcept nogil:
        cdef Py_ssize_t j, y
        cdef double c
        for y in range(labels):
            sums[y] = 0.0
            for j in range(self.dictionary.size()):
                c = self.column(self.dictionary.start + j)[(channel * self.rows + y) * self.stored.capacity]
                if c != 0.0:
                    sums[y] += c * values[j]

    cdef void add_slot(self, Py_ssize_t slot, int channel, const double* values, Py_ssize_t m, double* totals) noexcept nogil:
        cdef Py_ssize_t y
        cdef double c
        for y in range(self.rows):
            c = self.column(slot)[(channel * self.rows + y) * self.stored.capacity]
            if c != 0.0:
                ok_axpy(c, values, totals + y * m, m)

    def stored_rows(self, Py_ssize_t labels):
        return labels

    def over_labels(self, true, slots, Py_ssize_t labels):
        """True numbers (rows, slots) of one channel as (labels, slots)."""
        return true[:labels]


cdef class Paired(Coefficients):
    """One coefficient for two labels: the first has it, the second its negative."""

    def __init__(self, Dictionary dictionary, Budget budget, int channels):
        Coefficients.__init__(self, dictionary, budget, channels, 1)
        self.pairs = dictionary.new_table(2, np.int32)

    def widen(self, Py_ssize_t rows):
        """More labels need no more room."""

    cdef int* pair(self, Py_ssize_t slot) noexcept nogil:
        """The first label of a slot; the second is `capacity` behind."""
        return <int*> self.pairs.data + slot

    cdef void write(self, Py_ssize_t slot, const Term* term) noexcept nogil:
        cdef int channel
        for channel in range(self.channels):
            self.column(slot)[channel * self.stored.capacity] = term.stored[channel * term.n]
        self.pair(slot)[0] = term.labels[0]
        self.pair(slot)[self.pairs.capacity] = term.labels[1]

    cdef void read(self, Py_ssize_t slot, Term* term) noexcept nogil:
        cdef int channel
        term.n = 2
        term.labels[0], term.labels[1] = self.pair(slot)[0], self.pair(slot)[self.pairs.capacity]
        for channel in range(self.channels):
            term.stored[2 * channel] = self.column(slot)[channel * self.stored.capacity]
            term.stored[2 * channel + 1] = -term.stored[2 * channel]

    cdef void add_up(self, const double* values, int channel, Py_ssize_t labels, double* sums) noexcept nogil:
        cdef Py_ssize_t y, start = self.dictionary.start
        cdef bint finite = True
        for y in range(labels):
            sums[y] = 0.0
        ok_scatter_pairs(values, self.column(start) + channel * self.stored.capacity, self.pair(start),
                         self.pair(start) + self.pairs.capacity, self.dictionary.size(), sums, labels)
        for y in range(labels):
            finite &= isfinite(sums[y])
        if not finite:
            self.add_up_carefully(values, channel, labels, sums)

    cdef void add_up_carefully(self, const double* values, int channel, Py_ssize_t labels, double* sums) noexcept nogil:
        cdef Py_ssize_t j, y, slot
        cdef double c
        for y in range(labels):
            sums[y] = 0.0
        for j in range(self.dictionary.size()):
            slot = self.dictionary.start + j
            c = self.column(slot)[channel * self.stored.capacity]
            if c != 0.0:
                sums[self.pair(slot)[0]] += c * values[j]
                sums[self.pair(slot)[self.pairs.capacity]] -= c * values[j]

    cdef void add_slot(self, Py_ssize_t slot, int channel, const double* values, Py_ssize_t m, double* totals) noexcept nogil:
        cdef double c = self.column(slot)[channel * self.stored.capacity]
        if c != 0.0:
            ok_axpy(c, values, totals + self.pair(slot)[0] * m, m)
            ok_axpy(-c, values, totals + self.pair(slot)[self.pairs.capacity] * m, m)

    def over_labels(self, true, slots, Py_ssize_t labels):
        rows, terms = np.zeros((labels, len(slots))), np.arange(len(slots))
        rows[self.pairs.array[0, slots], terms] = true[0]
        rows[self.pairs.array[1, slots], terms] = -true[0]
        return rows

    def check_state(self, state, Py_ssize_t n, Py_ssize_t labels):
        Coefficients.check_state(self, state, n, labels)
        pairs = check_array(state["pairs"], "pairs", np.int32, (2, n))
        if n and not (0 <= pairs.min() and pairs.max() < labels):
            raise ValueError("the labels of the terms are not pairs of known labels")

    def state(self, slots, Py_ssize_t labels):
        return {**Coefficients.state(self, slots, labels), "pairs": self.pairs.array[:, slots]}

    def restore(self, state, Py_ssize_t labels):
        self.pairs.array[:] = state["pairs"]
        Coefficients.restore(self, state, labels)
