"""Functions that are sums over terms: coefficients in the slots of a dictionary, a budget, and the kernel over points.

Coefficients are of two kinds: one for every output (one output, several targets, all labels), or one for a pair of
labels, which one of them has and the other one has the negative of.
"""
cimport cython
import numpy as np
from libc.math cimport NAN, fabs, isfinite
from libc.string cimport memcpy, memset
from onlinekernels._core.formulas.frame cimport MAX_CHANNELS, frame_reset, frame_row
from onlinekernels._core.formulas.vecmath cimport ok_axpy, ok_dot, ok_scatter_pairs
from onlinekernels._core.functions cimport BUDGET, CANDIDATE, NOBODY, N_SHARED, Outputs
from onlinekernels._core.functions import rows_of_channels
from onlinekernels._core.schema import Array, Inlined, not_negative

# ---- The contract of budgets ---------------------------------------------------------------------

cdef double TINY = 2.2250738585072014e-308      # below it numbers lose digits: folded to 0
UNBOUNDED = 1 << 62
NEARLY = 1.0 + 1e-9


cdef class Budget:
    """Makes room in a function: says which of its terms goes, and what becomes of that term's coefficient.

    One budget belongs to one function, whose `terms` it knows. Complexities count the n terms, and outputs as one.
    Sizes are in the frame's coordinates, as `terms.size_of` gives them: all terms share the frame, and only a fold
    changes them. A budget implements `evicted`, and what else it needs to know or to do. What it keeps is a schema's
    (`schema`) with n for the number of terms; states know `birthdays`, too, of terms in the order of sums.
    """

    FIELDS = ()

    def __cinit__(self, *args, **kwargs):
        self.most = UNBOUNDED

    def __init__(self, long long size=UNBOUNDED):
        self.most = size

    cdef Py_ssize_t numbers(self) noexcept:
        """How many numbers `evict` writes to the scratch of a call, at most. O(1)."""
        return 0

    cdef bint consult(self, Function f, Scratch w, Example e, long long t) noexcept nogil:
        """Before anything changes, a budget in Python may look at its function f and at what has been decided about
        example t, and write to w.for_budget; False, with the reason in e.failure, if that goes wrong."""
        return True

    cdef Py_ssize_t evicted(self, double size) noexcept nogil:
        """The slot of the term that goes if another one of this size comes: NOBODY if there is room, CANDIDATE if it is
        the candidate that does not come. O(1), or O(log n) with a heap."""
        return NOBODY

    cdef void evict(self, Scratch w, const Term* term, Py_ssize_t i, double size, Removal* removal) noexcept nogil:
        """The same question, asked with the candidate at hand: its term; k(x, x) in w.piece.own[i] and, if
        `looks_at_candidates`, its kernel values with all slots in use in w.piece.values.

        The answer is in the removal, which says before that there is room and nothing to redistribute. On the way to
        it, numbers go to w.for_budget and nowhere else, at most as many as `numbers` says, and nothing of the budget
        changes.
        """
        removal.slot = self.evicted(size)

    cdef void redistribute(self, Scratch w, Term* term, Py_ssize_t i, Removal* removal) noexcept nogil:
        """That is carried out: those that stay take over what they can of what goes, which is still there, and the
        candidate's term too may change. Say in removal.residual how much is lost."""

    cdef Py_ssize_t expiring(self, long long t) noexcept nogil:
        """The slot of a term that f may not use after example t; asked after every example until it is NOBODY, so that
        a budget can know what time it is. O(1)."""
        return NOBODY

    cdef void entered(self, Py_ssize_t slot) noexcept nogil:
        """A slot has a term now. O(1) for a queue, O(log n) for a heap, O(n) for numbers of pairs."""

    cdef void left(self, Py_ssize_t slot) noexcept nogil:
        """A slot has no term any more. As `entered`."""

    cdef void changed(self) noexcept nogil:
        """All coefficients have been folded. O(terms)."""

    cdef int begin(self) except -1:
        """Before there are terms: make tables of the dictionary for what it keeps, which follow the slots. O(1)."""

    cdef int prepare(self, Py_ssize_t capacity) except -1:
        """There may soon be so many slots: get other memory that this needs. O(capacity^2) at most."""

    cdef void arrange(self) noexcept nogil:
        """Start anew: the terms have moved, and the order of their slots is that of their age. O(n)."""

    cdef void spread(self, Py_ssize_t slot, const Term* term, double* out) noexcept nogil:
        """Coefficients in f of a slot, or of the candidate's term, over all outputs that count. O(rows)."""
        cdef Py_ssize_t k, row, rows = self.terms.kept()
        for row in range(rows):
            out[row] = 0.0 if slot == CANDIDATE else self.terms.row(row)[slot]
        for k in range(term.n if slot == CANDIDATE else 0):
            if term.labels[k] < rows:
                out[term.labels[k]] = term.stored[k]

    cdef double product(self, Scratch w, const double* a, const double* b) noexcept nogil:
        """a' kappa b over the outputs that count. O(rows), and a product with the label kernel."""
        cdef Py_ssize_t rows = self.terms.kept()
        if self.terms.outputs.n_nodes == 0:
            return ok_dot(a, b, rows)
        memcpy(w.slot_products, b, rows * sizeof(double))
        self.terms.outputs.apply(w.slot_products, w.nodes)
        return ok_dot(a, w.slot_products, rows)

    def stand_on(self, program):
        """Look at the kernel, before there are terms; None for one in Python. O(1)."""

    def fits(self, state):
        """ValueError unless a model under this budget can have the terms of a state, and what it keeps of them."""
        if len(state["birthdays"]) > self.most:
            raise ValueError(f"{len(state['birthdays'])} terms are more than the budget of {self.most}")

    def _check(self):
        assert self.dictionary.held <= self.most


# ---- Coefficients --------------------------------------------------------------------------------


cdef class Coefficients(Observer):
    """Coefficients in slots, rows (channel, label), as a frame stores them."""

    def __init__(self, Dictionary dictionary, Budget budget, int channels, Py_ssize_t rows):
        self.dictionary = dictionary
        self.budget = budget
        self.most = budget.most
        self.channels = channels
        self.rows = rows
        self.table = dictionary.new_table(channels * rows)
        budget.terms, budget.dictionary = self, dictionary
        budget.begin()
        budget.prepare(dictionary.capacity)
        budget.arrange()
        dictionary.observer = self

    cdef double* column(self, Py_ssize_t slot) noexcept nogil:
        """The coefficients of a slot: one of each row, `capacity` apart. O(1)."""
        return <double*> self.table.data + slot

    cdef double* row(self, Py_ssize_t row) noexcept nogil:
        """The numbers of a row (channel * rows + label), one for each slot. O(1)."""
        return <double*> self.table.data + row * self.table.capacity

    cdef bint holds(self, Py_ssize_t slot) noexcept nogil:
        """Whether a slot has a term: O(1)."""
        return self.dictionary.taken.data[slot] != 0

    cdef double size_of(self, Py_ssize_t slot) noexcept nogil:
        """max_y |coefficient| in frame coordinates: all terms share the frame. O(rows)."""
        cdef Py_ssize_t row, capacity = self.table.capacity
        cdef double size = 0.0
        for row in range(self.rows):
            size = max(size, fabs(self.column(slot)[row * capacity]))
        return size

    cdef bint is_zero(self, Py_ssize_t slot) noexcept nogil:
        """Whether all of a slot's coefficients are 0: O(channels rows)."""
        cdef Py_ssize_t row
        for row in range(self.channels * self.rows):
            if self.column(slot)[row * self.table.capacity] != 0.0:
                return False
        return True

    # ---- Terms come and go --------------------------------------------------------------------

    cdef void put(self, Py_ssize_t slot, const Term* term) noexcept nogil:
        """A new term in a slot of the dictionary. O(channels rows), and the budget's."""
        self.dictionary.hold(slot)
        self.write(slot, term)
        self.budget.entered(slot)

    cdef void drop(self, Py_ssize_t slot) noexcept nogil:
        """The term in a slot goes. O(channels rows), and the budget's."""
        cdef Py_ssize_t row, capacity = self.table.capacity
        cdef double* column = self.column(slot)
        self.budget.left(slot)
        for row in range(self.channels * self.rows):
            column[row * capacity] = 0.0
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
        cdef Py_ssize_t slot, row, capacity = self.table.capacity, stride = self.rows * capacity
        cdef int channel
        cdef double value
        cdef double* coef = <double*> self.table.data
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
        self.budget.changed()

    cdef void resolve(self) noexcept nogil:
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
        return self.budget.prepare(capacity)

    cdef void moved(self) noexcept:
        """As the budget."""
        self.budget.arrange()

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
        slots = slots[(self.table.array[:, slots] != 0).any(axis=0)]
        return slots[np.argsort(self.dictionary.birthdays.array[0, slots], kind="stable")]

    # ---- Labels -------------------------------------------------------------------------------

    cdef Py_ssize_t kept(self) noexcept nogil:
        """Rows per channel, the first ones, that a budget weighs: the rest are copies, or 0. How many of these there
        are depends on how many labels a chunk has seen coming, and must not matter. O(1)."""
        return self.rows

    cdef void write(self, Py_ssize_t slot, const Term* term) noexcept nogil:
        """Take over a term's coordinates; the slot has none. O(channels rows)."""

    cdef void read(self, Py_ssize_t slot, Term* term) noexcept nogil:
        """The labels of a slot, and its stored coordinates, into a term. O(channels rows)."""

    cdef void add_up(self, const double* values, int channel, Py_ssize_t labels, double* sums) noexcept nogil:
        """sums[y] = sum over the slots in use of the stored coefficient at label y times the value. O(rows n).

        Without slots that hold no term if that is not finite: an infinite value times their 0 is no reason to stop.
        """
        cdef Py_ssize_t y, slot, start = self.dictionary.start
        cdef bint finite = True
        memset(sums, 0, labels * sizeof(double))
        self.add_slots(values, channel, labels, sums)
        for y in range(labels):
            finite &= isfinite(sums[y])
        if not finite:
            memset(sums, 0, labels * sizeof(double))
            for slot in range(start, self.dictionary.stop):
                self.add_slot(slot, channel, values + slot - start, 1, sums)

    cdef void add_slots(self, const double* values, int channel, Py_ssize_t labels, double* sums) noexcept nogil:
        """The same of all slots in use, at once, into sums that are 0."""

    cdef void add_slot(self, Py_ssize_t slot, int channel, const double* values, Py_ssize_t m,
                       double* totals) noexcept nogil:
        """totals[y * m + i] += the slot's stored coefficient at label y times value i. O(channels rows m)."""

    # ---- State --------------------------------------------------------------------------------

    def stored(self):
        """Coefficients in the order in which they are added up, of the rows that count. O(its size)."""
        slots = self.dictionary.saved_slots()
        stored = self.table.array[:, slots].reshape(self.channels, self.rows, len(slots))[:, :self.kept()]
        return {"coefficients": stored.reshape(self.channels * self.kept(), len(slots))}

    def resume(self, state):
        """Take over coefficients; the points are there, and slots are in the order of the state. O(its size)."""
        n = len(state["birthdays"])
        stored = state["coefficients"].reshape(self.channels, -1, n) if n else np.zeros((self.channels, 0, 0))
        self.table.array.reshape(self.channels, self.rows, n)[:, :stored.shape[1]] = stored
        self.stale = True                       # saved in the middle of a call, a term may have faded to 0
        self.budget.arrange()

    def _check(self):
        free = self.dictionary.taken.array[0] == 0
        assert not self.table.array[:, free].any(), "a slot without a term has a coefficient"
        self.budget._check()


@cython.final
cdef class Full(Coefficients):
    """A coefficient for every output."""

    FIELDS = (Array("coefficients", np.float64, (rows_of_channels, "n")),
              Inlined("budget"))

    def __init__(self, Dictionary dictionary, Budget budget, int channels, Outputs outputs):
        self.outputs = outputs
        Coefficients.__init__(self, dictionary, budget, channels, max(1, outputs.n))

    cdef Py_ssize_t kept(self) noexcept nogil:
        return self.outputs.kept()

    def widen(self, Py_ssize_t rows):
        """Make room for more outputs; their coefficients are 0."""
        cdef Py_ssize_t capacity = self.table.capacity
        wider = np.zeros((self.channels, rows, capacity))
        wider[:, :self.rows] = self.table.array.reshape(self.channels, self.rows, capacity)
        self.table.set_array(wider.reshape(self.channels * rows, capacity))    # which fails, or
        self.rows = rows

    def copy_last(self, Py_ssize_t n):
        """Outputs from the n-th on become what the one before them is."""
        stored = self.table.array.reshape(self.channels, self.rows, self.table.capacity)
        stored[:, n:] = stored[:, n - 1:n]

    cdef void write(self, Py_ssize_t slot, const Term* term) noexcept nogil:
        cdef int channel
        cdef Py_ssize_t k, n = term.n, capacity = self.table.capacity
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
            term.stored[row] = self.column(slot)[row * self.table.capacity]

    cdef void add_slots(self, const double* values, int channel, Py_ssize_t labels, double* sums) noexcept nogil:
        cdef Py_ssize_t y
        cdef const double* coef = self.column(self.dictionary.start) + channel * self.rows * self.table.capacity
        for y in range(labels):
            sums[y] = ok_dot(coef + y * self.table.capacity, values, self.dictionary.size())

    cdef void add_slot(self, Py_ssize_t slot, int channel, const double* values, Py_ssize_t m,
                       double* totals) noexcept nogil:
        cdef Py_ssize_t y
        cdef double c
        for y in range(self.rows):
            c = self.column(slot)[(channel * self.rows + y) * self.table.capacity]
            if c != 0.0:
                ok_axpy(c, values, totals + y * m, m)

    def over_labels(self, true, slots, Py_ssize_t labels):
        """True numbers (rows, slots) of one channel as (labels, slots)."""
        return true[:labels]


@cython.final
cdef class Paired(Coefficients):
    """One coefficient for two labels: the first has it, the second its negative."""

    FIELDS = (Array("coefficients", np.float64, ("channels", "n")), Array("pairs", np.int32, (2, "n"), not_negative),
              Inlined("budget"))

    cdef readonly Table pairs               # (2, capacity) int32: the label that has the coefficient, and its negative

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
            self.column(slot)[channel * self.table.capacity] = term.stored[channel * term.n]
        self.pair(slot)[0] = term.labels[0]
        self.pair(slot)[self.pairs.capacity] = term.labels[1]

    cdef void read(self, Py_ssize_t slot, Term* term) noexcept nogil:
        cdef int channel
        term.n = 2
        term.labels[0], term.labels[1] = self.pair(slot)[0], self.pair(slot)[self.pairs.capacity]
        for channel in range(self.channels):
            term.stored[2 * channel] = self.column(slot)[channel * self.table.capacity]
            term.stored[2 * channel + 1] = -term.stored[2 * channel]

    cdef void add_slots(self, const double* values, int channel, Py_ssize_t labels, double* sums) noexcept nogil:
        cdef Py_ssize_t start = self.dictionary.start
        ok_scatter_pairs(values, self.column(start) + channel * self.table.capacity, self.pair(start),
                         self.pair(start) + self.pairs.capacity, self.dictionary.size(), sums, labels)

    cdef void add_slot(self, Py_ssize_t slot, int channel, const double* values, Py_ssize_t m,
                       double* totals) noexcept nogil:
        cdef double c = self.column(slot)[channel * self.table.capacity]
        if c != 0.0:
            ok_axpy(c, values, totals + self.pair(slot)[0] * m, m)
            ok_axpy(-c, values, totals + self.pair(slot)[self.pairs.capacity] * m, m)

    def over_labels(self, true, slots, Py_ssize_t labels):
        rows, terms = np.zeros((labels, len(slots))), np.arange(len(slots))
        rows[self.pairs.array[0, slots], terms] = true[0]
        rows[self.pairs.array[1, slots], terms] = -true[0]
        return rows

    def stored(self):
        return {**Coefficients.stored(self), "pairs": self.pairs.array[:, self.dictionary.saved_slots()]}

    def fits(self, state):
        """ValueError unless the labels are known ones."""
        if (state["pairs"] >= state["labels"]).any():
            raise ValueError("the labels of the terms are not pairs of known labels")

    def resume(self, state):
        self.pairs.array[:] = state["pairs"]
        Coefficients.resume(self, state)


# ---- Functions -----------------------------------------------------------------------------------

cdef enum TermsBuffer:
    TOTALS = N_SHARED


cdef class TermsScratch(Scratch):
    """What a sum over terms of a kernel computes on the way."""


cdef class Terms(Function):
    """f(x, y) = sum_i k(x_i, x) (A_i @ kappa)[y] over the points x_i of a dictionary.

    How it is evaluated is for others to say.
    """

    FIELDS = *Function.FIELDS, Inlined("dictionary"), Inlined("terms")

    def __init__(self, Coefficients terms, Outputs outputs):
        Function.__init__(self, terms.dictionary.n_features, terms.dictionary.dtype, terms.channels, outputs)
        self.keeps = "terms"
        self.terms = terms
        self.dictionary = terms.dictionary

    # ---- Changing -----------------------------------------------------------------------------

    cdef int reserve_for_budget(self, Scratch w) except -1:
        """Memory for what the budget computes. O(1), O(its size) if it is new."""
        w.for_budget = <double*> w.buffer(BUDGET, self.terms.budget.numbers() * sizeof(double))

    cdef bint consult(self, Scratch w, Example e, long long t) noexcept nogil:
        return self.terms.budget.consult(self, w, e, t)

    cdef void make_way(self, Scratch w, Term* term, Py_ssize_t i, Removal* removal) noexcept nogil:
        """A term is as large as its largest coefficient in f."""
        cdef Py_ssize_t k
        cdef double size = 0.0
        for k in range(term.n):
            size = max(size, fabs(term.stored[k]))
        Function.make_way(self, w, term, i, removal)
        self.terms.budget.evict(w, term, i, size, removal)
        self.terms.budget.redistribute(w, term, i, removal)

    cdef Py_ssize_t expiring(self, long long t) noexcept nogil:
        return self.terms.budget.expiring(t)

    cdef void drop(self, Scratch w, Py_ssize_t slot) noexcept nogil:
        self.terms.drop(slot)

    cdef void add(self, Scratch w, Term* term, Py_ssize_t i, long long t) noexcept nogil:
        cdef Py_ssize_t slot = self.dictionary.admit(w.piece, i, t)
        self.entered(w, i, slot)
        self.terms.put(slot, term)

    cdef void entered(self, Scratch w, Py_ssize_t i, Py_ssize_t slot) noexcept nogil:
        """Example i has entered a slot."""

    cdef void fold(self, Scratch w) noexcept nogil:
        if self.frame.channels == 1 and self.frame.p[0][0] == 0.0:
            self.terms.clear()                  # eta * lambda = 1 wipes the past
        else:
            self.terms.fold(&self.frame)
            self.terms.resolve()                 # at once: who is there must not depend on where pieces end
        frame_reset(&self.frame)

    cdef void coefficients_of(self, Scratch w, Py_ssize_t slot, int channel, double* out) noexcept nogil:
        cdef Py_ssize_t k
        cdef double stored[MAX_CHANNELS]
        cdef int j
        for k in range(self.width):
            out[k] = 0.0
        self.terms.read(slot, &w.old)
        for k in range(w.old.n):
            for j in range(channel + 1):
                stored[j] = w.old.stored[j * w.old.n + k]
            out[w.old.labels[k]] += frame_row(&self.frame, channel, stored)

    cdef int tidy(self) except -1:
        self.dictionary.tidy()

    # ---- For Python ---------------------------------------------------------------------------

    def widen(self, Py_ssize_t width):
        self.terms.widen(width)

    def copy_last(self, Py_ssize_t n):
        self.terms.copy_last(n)

    def slots(self):
        """Slots with a term, oldest first."""
        return self.terms.slots()

    def points(self):
        """Points of the terms, oldest first."""
        return self.dictionary.points_at(self.slots())

    def pairs(self):
        """The two labels of each term, or None."""
        return self.terms.pairs.array[:, self.slots()] if hasattr(self.terms, "pairs") else None

    def coefficients(self, int channel):
        """True coefficients of a channel, (labels, terms), oldest first: the A_i, before the label kernel."""
        slots = self.slots()
        stored = self.terms.table.array[:, slots].reshape(self.frame.channels, self.terms.rows, len(slots))
        return self.terms.over_labels(self.true_rows(stored, channel), slots, self.outputs.n)

    def check_start(self, points, alpha, pairs):
        Function.check_start(self, points, alpha, pairs)
        if pairs is None and self.pairs() is not None:
            raise ValueError("terms have a coefficient for a pair of labels here, and alpha has one for each label")

    def begin_from(self, points, alpha, pairs=None, long long t=0):
        """Start from f = sum_i alpha_i k(points_i, .), for t=0 H's start vector w_1; ValueError if that does not fit.

        The n terms count as examples t - n + 1, ..., t in their order, under the budget. `alpha` is (outputs, n), or
        (1, n) with `pairs` of labels, (2, n).
        """
        self.start_from(points, alpha, pairs, t)
        self.tidy()

    def _check(self):
        Function._check(self)
        self.dictionary._check()
        self.terms._check()


cdef class KernelTerms(Terms):
    """Terms of a kernel: f is a sum over its row of values."""

    def __init__(self, *, Coefficients terms, Outputs outputs, bint evaluates_slots=False):
        Terms.__init__(self, terms, outputs)
        self.takes_objects, self.notices_bad_points = self.dictionary.takes_objects, self.dictionary.notices_bad_points
        self.dictionary.evaluates_slots = evaluates_slots
        terms.budget.stand_on(self.dictionary.program)

    cdef Scratch new_scratch(self):
        return TermsScratch()

    cdef int attach(self, Scratch w, examples) except -1:
        return self.dictionary.attach(w.piece, examples)

    cdef int open(self, Scratch w, Py_ssize_t first, Py_ssize_t m, bint learning, int by_slots) except -1:
        self.dictionary.open(w.piece, first, m, learning, by_slots >= 0)
        (<TermsScratch> w).totals = NULL
        if w.piece.transposed:
            self.add_up_by_slots(<TermsScratch> w, by_slots)
        if learning:
            self.reserve_for_budget(w)

    cdef int close(self, Scratch w) except -1:
        return self.dictionary.close(w.piece)

    cdef int add_up_by_slots(self, TermsScratch w, int last) except -1:
        """Sums of stored coefficients times kernel values, slot after slot, for all examples of a piece."""
        cdef Py_ssize_t slot, m = w.piece.rows
        cdef const double* values
        cdef int channel
        w.totals = <double*> w.buffer(TOTALS, (last + 1) * self.width * m * sizeof(double))
        with nogil:
            memset(w.totals, 0, (last + 1) * self.width * m * sizeof(double))
            for slot in range(self.dictionary.start, self.dictionary.stop):
                values = self.dictionary.slot_over_piece(w.piece, slot)
                for channel in range(last + 1):
                    self.terms.add_slot(slot, channel, values, m, w.totals + channel * self.width * m)

    cdef bint point_is_finite(self, Scratch w, Py_ssize_t i) noexcept nogil:
        return self.dictionary.point_is_finite(w.piece, i)

    cdef void evaluate(self, Scratch w, Py_ssize_t i, int last, double* out) noexcept nogil:
        cdef Py_ssize_t y
        cdef int channel
        cdef const double* totals = (<TermsScratch> w).totals
        if self.dictionary.size() == 0:
            for y in range((last + 1) * self.width):
                out[y] = 0.0
            return
        if totals != NULL:
            for y in range((last + 1) * self.width):
                w.sums[y] = totals[y * w.piece.rows + i]
        else:
            w.piece.values = self.dictionary.values(w.piece, i)
            for channel in range(last + 1):
                self.terms.add_up(w.piece.values, channel, self.outputs.n, w.sums + channel * self.width)
        self.make_true(w, last, out)

    cdef double value_with(self, Scratch w, Py_ssize_t slot, Py_ssize_t i) noexcept nogil:
        return w.piece.values[slot - self.dictionary.start]

    cdef double vote(self, Scratch w, Py_ssize_t i, long long t, bint signs) noexcept nogil:
        """sum over all hypotheses of a Perceptron of sign(w . x), or of w . x, times what each survived.

        A term makes a new hypothesis: the prefix sum that ends with it.
        """
        cdef Py_ssize_t slot, start = self.dictionary.start, stop = self.dictionary.stop
        cdef long long next
        cdef double total = 0.0, votes = 0.0
        cdef const double* values
        if start == stop:
            return 0.0
        values = self.dictionary.values(w.piece, i)
        for slot in range(start, stop):
            total += self.frame.p[0][0] * self.terms.column(slot)[0] * values[slot - start]
            next = self.dictionary.born(slot + 1) if slot + 1 < stop else t + 1     # example with another hypothesis
            votes += <double> (next - self.dictionary.born(slot)) * (((total > 0) - (total < 0)) if signs else total)
        return votes

    cdef void entered(self, Scratch w, Py_ssize_t i, Py_ssize_t slot) noexcept nogil:
        self.dictionary.keep_cached(w.piece, i, slot)

    cdef void evaluate_slot(self, Scratch w, Py_ssize_t slot, int last, double* out, double* own) noexcept nogil:
        cdef int channel
        own[0] = self.dictionary.slot_values(w.piece, slot)
        for channel in range(last + 1):
            self.terms.add_up(w.piece.slot_work, channel, self.outputs.n, w.sums + channel * self.width)
        self.make_true(w, last, out)

    cdef double square(self, Scratch w) noexcept nogil:
        return self.square_over(w, self.dictionary.start, self.dictionary.stop) if self.dictionary.looks_back else NAN

    def square_from_python(self):
        """|f|^2 of one output, from kernel values anew; None where a loop can do that."""
        if self.dictionary.looks_back:
            return None
        slots = self.slots()
        alpha, places = self.coefficients(0)[0], slots - self.dictionary.start
        return float(alpha @ self.dictionary.values_between()[np.ix_(places, places)] @ alpha)

    cdef Py_ssize_t piece_rows(self):
        return self.dictionary.piece_rows()

    cdef Py_ssize_t rows_to_evaluate(self):
        return self.dictionary.rows_to_evaluate()

    cdef open_start(self, Scratch w, points, kept):
        return self.dictionary.open_start(w.piece, points, kept)

    cdef Py_ssize_t start_row(self, Scratch w, Py_ssize_t i) except -1:
        """A budget that looks at candidates sees one at a time."""
        self.reserve_for_budget(w)
        if not self.terms.budget.looks_at_candidates:
            return i
        self.dictionary.open(w.piece, i, 1, True, False)
        w.piece.values = self.dictionary.values(w.piece, 0)
        return 0

    cdef int resolve_start(self, Scratch w, points, Py_ssize_t i) except -1:
        return self.dictionary.resolve_start(w.piece, points, i)
