"""Budgets: which term goes, and what becomes of its coefficient. The contract is `Budget` in `terms`.

And the rule that asks its budget: Projectrons.
"""
cimport cython
import numpy as np
from libc.math cimport INFINITY, ceil, exp, expm1, fabs, fmax, fmin, log, pow, sqrt
from libc.string cimport memcpy, memset
from onlinekernels._core.arrays cimport array_data
from onlinekernels._core.arrays import aligned_empty
from onlinekernels._core.dictionary cimport SquareTable, Table
from onlinekernels._core.formulas.hashing cimport scrambled
from onlinekernels._core.formulas.vecmath cimport ok_dot, ok_exp_array
from onlinekernels._core.formulas.moves cimport Standing, stand_still
from onlinekernels._core.functions cimport (CANDIDATE, NOBODY, PYTHON, Example, Function, Piece, Removal, Scratch,
                                            Term)
from onlinekernels._core.kernels cimport GAUSSIAN, SCALE, SHIFT, Program
from onlinekernels._core.linalg cimport Factor
from onlinekernels._core.rules cimport Rule
from onlinekernels._core.schema import Array, Inlined, not_negative, Number
from onlinekernels._core.terms cimport NEARLY, Budget, Coefficients

# ---- All terms, the latest, or those that a hash spares ------------------------------------------


@cython.final
cdef class UnlimitedBudget(Budget):
    """Every term stays."""

    def fits(self, state):
        check_order(state["birthdays"])


@cython.final
cdef class OwnBudget(Budget):
    """One in Python: its `evict` is asked before anything changes."""

    cdef object ask                     # (coefficients, births) to the index of the term that goes, or None

    def __init__(self, evict):
        self.ask = evict

    cdef Py_ssize_t numbers(self) noexcept:
        return 1

    cdef bint consult(self, Function f, Scratch w, Example e, long long t) noexcept with gil:
        cdef Py_ssize_t k
        try:
            slots, coming = self.terms.slots(), np.zeros((f.outputs.n, 1))
            for k in range(e.term.n):
                coming[e.term.labels[k], 0] = e.term.alpha[k]
            rows = np.hstack([f.coefficients(0) * e.move.transform[0][0], coming])[:f.outputs.n_seen]
            goes = self.ask(rows, np.append(self.dictionary.birthdays.array[0, slots], t))
            if goes is None:
                goes = NOBODY
            elif 0 <= goes.__index__() <= len(slots):
                goes = CANDIDATE if goes == len(slots) else slots[goes]
            else:
                raise ValueError(f"evict must give None, or the index of one of {len(slots) + 1} terms. Got {goes!r}.")
            w.for_budget[0] = goes
        except BaseException as error:
            e.error, e.failure = error, PYTHON
            return False
        return True

    cdef void evict(self, Scratch w, const Term* term, Py_ssize_t i, double size, Removal* removal) noexcept nogil:
        """A term that has faded away in the meantime makes room as well."""
        cdef Py_ssize_t slot = <Py_ssize_t> w.for_budget[0]
        removal.slot = slot if slot == CANDIDATE or slot != NOBODY and self.terms.holds(slot) else NOBODY


cdef void give(Coefficients terms, const Term* term, Py_ssize_t slot, double part) noexcept nogil:
    """A part of the coefficients of a candidate goes to the term in a slot. O(channels outputs)."""
    cdef Py_ssize_t k
    cdef int channel
    for channel in range(terms.channels):
        for k in range(term.n):
            terms.row(channel * terms.rows + term.labels[k])[slot] += part * term.stored[channel * term.n + k]


cdef class Queue(Budget):
    """Terms go in the order in which they came."""

    cdef Table orders                   # intp: the memory of `order`
    cdef Py_ssize_t* order              # slots in a circle, the oldest term's at `first`
    cdef Py_ssize_t capacity                # places in the circle
    cdef Py_ssize_t first               # place of the oldest
    cdef Py_ssize_t n                   # terms

    cdef int begin(self) except -1:
        self.orders = self.dictionary.new_table(1, np.intp)

    cdef void arrange(self) noexcept nogil:
        self.order, self.capacity = <Py_ssize_t*> self.orders.data, self.orders.capacity
        self.first, self.n = 0, self.terms.list_slots(self.order)

    def resume(self, state):
        self.orders.array[0] = np.argsort(state["birthdays"], kind="stable")

    cdef void entered(self, Py_ssize_t slot) noexcept nogil:
        cdef Py_ssize_t last = self.first + self.n
        self.order[last if last < self.capacity else last - self.capacity] = slot
        self.n += 1

    cdef void left(self, Py_ssize_t slot) noexcept nogil:
        """Nearly always the first; the others close ranks."""
        cdef Py_ssize_t i = 0
        if self.order[self.first] != slot:
            while self.order[(self.first + i) % self.capacity] != slot:
                i += 1
            while i > 0:
                self.order[(self.first + i) % self.capacity] = self.order[(self.first + i - 1) % self.capacity]
                i -= 1
        self.first += 1
        if self.first == self.capacity:
            self.first = 0
        self.n -= 1

    cdef Py_ssize_t oldest(self) noexcept nogil:
        return self.order[self.first]

    def _check(self):
        Budget._check(self)
        order = [self.order[(self.first + i) % self.capacity] for i in range(self.n)]
        assert sorted(order) == np.flatnonzero(self.dictionary.taken.array[0]).tolist()
        assert (np.diff(self.dictionary.birthdays.array[0, order]) > 0).all()


@cython.final
cdef class RecentBudget(Queue):
    """The latest `size` terms: V 5.5."""

    cdef Py_ssize_t evicted(self, double size) noexcept nogil:
        return self.oldest() if self.n >= self.most else NOBODY

    def fits(self, state):
        """In the order of sums, the terms are a circle that begins anywhere."""
        Budget.fits(self, state)
        birthdays = state["birthdays"]
        oldest = int(np.argmin(birthdays)) if len(birthdays) else 0
        if oldest and len(birthdays) < self.most:
            raise ValueError("the terms are a circle before there are as many as the budget allows")
        check_order(np.roll(birthdays, -oldest))


@cython.final
cdef class RandomBudget(Queue):
    """A term that is drawn by lot goes: Cavallanti, Cesa-Bianchi, Gentile (2007).

    The lot depends on the seed and on the birthday of the youngest term, and so on nothing but the examples. With a
    bound those that stay make up for it, and then f shrinks until no coefficient is larger than that: BOGD, Zhao,
    Wang, Wu, Jin, Hoi (2012).
    """

    cdef readonly unsigned long long seed # of who goes
    cdef readonly double bound          # of coefficients; 0 for none

    def __init__(self, long long size, unsigned long long seed, double bound):
        self.most, self.seed, self.bound = size, seed, bound

    cdef Py_ssize_t evicted(self, double size) noexcept nogil:
        cdef unsigned long long lot
        if self.n < self.most:
            return NOBODY
        lot = <unsigned long long> self.dictionary.born(self.order[(self.first + self.n - 1) % self.capacity])
        lot = scrambled(scrambled(self.seed) + lot)
        return self.order[(self.first + <Py_ssize_t> (lot % <unsigned long long> self.n)) % self.capacity]

    cdef void redistribute(self, Scratch w, Term* term, Py_ssize_t i, Removal* removal) noexcept nogil:
        """All of f will be multiplied, so the candidate is divided before by what only the others get."""
        cdef Py_ssize_t k
        cdef double growth, within
        if removal.slot == NOBODY or self.bound == 0.0:
            return
        growth = self.n / (self.n - 1.0)
        within = shrink_within(self.bound, self.terms, term, removal.slot, growth)
        for k in range(term.n):
            term.stored[k] /= growth
            term.alpha[k] /= growth
        removal.shrink = growth * within


cdef double shrink_within(double bound, Coefficients terms, const Term* term, Py_ssize_t evicted,
                          double growth) noexcept nogil:
    """The factor, at most 1, that brings all coefficients within a bound when a term has gone: the candidate's, and
    those of the others, which will have grown. O(terms)."""
    cdef Py_ssize_t slot, k
    cdef double frame = 0.0, largest = 0.0, own = 0.0
    for slot in range(terms.dictionary.start, terms.dictionary.stop):
        if slot != evicted and terms.holds(slot):
            largest = fmax(largest, terms.size_of(slot))
    for k in range(term.n):
        if term.stored[k] != 0.0:
            frame = fabs(term.alpha[k] / term.stored[k])
        own = fmax(own, fabs(term.alpha[k]))
    return fmin(1.0, bound / fmax(own, growth * frame * largest))


cdef class WeighingQueue(Queue):
    """Terms go in some order, and k(x, x) of each is known."""

    FIELDS = Array("own", np.float64, ("n",), not_negative),

    cdef Table owns                     # k(x, x) of each slot
    cdef double own                     # and of a candidate that is about to enter

    cdef Py_ssize_t at(self, Py_ssize_t j) noexcept nogil:
        """The slot of the term that came j terms after the oldest."""
        return self.order[(self.first + j) % self.capacity]

    cdef double square_of(self, Scratch w, Py_ssize_t slot) noexcept nogil:
        """|alpha|^2 of a term, in frame coordinates. O(rows)."""
        self.spread(slot, NULL, w.slot_coefficients)
        return self.product(w, w.slot_coefficients, w.slot_coefficients)

    cdef void redistribute(self, Scratch w, Term* term, Py_ssize_t i, Removal* removal) noexcept nogil:
        self.own = w.piece.own[i]

    cdef void entered(self, Py_ssize_t slot) noexcept nogil:
        Queue.entered(self, slot)
        (<double*> self.owns.data)[slot] = self.own

    cdef int begin(self) except -1:
        self.owns = self.dictionary.new_table(1)
        return Queue.begin(self)

    def stored(self):
        slots = self.dictionary.saved_slots()
        return {"own": np.where(self.dictionary.taken.array[0, slots] != 0, self.owns.array[0, slots], 0.0)}

    def resume(self, state):
        Queue.resume(self, state)
        self.owns.array[0, :len(state["own"])] = state["own"]


@cython.final
cdef class ImportanceBudget(WeighingQueue):
    """Who goes is drawn by lot, and what stays makes up for its own chance to go: BOGD++, Zhao et al. (2012).

    A term stays with a probability q = s |alpha| sqrt k(x, x), where s makes them add up to all terms but one, and is
    divided by it. Where q would exceed 1 it is 1, and s is of the others. The lot is that of `RandomBudget`.
    """

    cdef readonly unsigned long long seed
    cdef readonly double bound          # of coefficients; 0 for none

    def __init__(self, long long size, unsigned long long seed, double bound):
        self.most, self.seed, self.bound = size, seed, bound

    cdef Py_ssize_t numbers(self) noexcept:
        return self.dictionary.capacity

    cdef void evict(self, Scratch w, const Term* term, Py_ssize_t i, double size, Removal* removal) noexcept nogil:
        """O(terms), times the few rounds until no probability exceeds 1."""
        cdef Py_ssize_t j, certain = 0, before = -1
        cdef double* stays = w.for_budget           # weights, and then probabilities, of the terms, oldest first
        cdef const double* owns = <const double*> self.owns.data
        cdef double total, drawn, s = 0.0
        if self.n < self.most:
            return
        for j in range(self.n):
            stays[j] = sqrt(self.square_of(w, self.at(j)) * owns[self.at(j)])
        while certain != before:
            before, total = certain, 0.0
            for j in range(self.n):
                total += stays[j] if stays[j] < INFINITY else 0.0
            s = (self.n - 1 - certain) / total if total > 0.0 else 0.0
            for j in range(self.n):
                if s * stays[j] >= 1.0 and stays[j] < INFINITY:
                    stays[j], certain = INFINITY, certain + 1
        drawn = (scrambled(scrambled(self.seed) + <unsigned long long> self.dictionary.born(self.at(self.n - 1)))
                 >> 11) * 2.0**-53
        for j in range(self.n):
            stays[j] = s * stays[j] if stays[j] < INFINITY else 1.0
            if drawn >= 0.0 and stays[j] < 1.0:
                removal.slot = self.at(j)           # the last one, if rounding leaves something
                drawn -= 1.0 - stays[j]

    cdef void redistribute(self, Scratch w, Term* term, Py_ssize_t i, Removal* removal) noexcept nogil:
        """O(terms rows)."""
        cdef Py_ssize_t j, row
        WeighingQueue.redistribute(self, w, term, i, removal)
        if removal.slot == NOBODY:
            return
        for j in range(self.n):
            if self.at(j) != removal.slot:
                for row in range(self.terms.channels * self.terms.rows):
                    self.terms.row(row)[self.at(j)] /= w.for_budget[j]
        if self.bound > 0.0:
            removal.shrink = shrink_within(self.bound, self.terms, term, removal.slot, 1.0)


@cython.final
cdef class AbsorbingBudget(WeighingQueue):
    """The term that loses least goes, and is projected onto the candidate alone: BPA-S, Wang, Vucetic (2010)."""

    def __init__(self, long long size):
        self.most = size
        self.looks_at_candidates = True

    cdef void evict(self, Scratch w, const Term* term, Py_ssize_t i, double size, Removal* removal) noexcept nogil:
        """O(terms)."""
        cdef Py_ssize_t j, slot
        cdef double value, loss, own = w.piece.own[i], least = INFINITY
        if self.n < self.most:
            return
        for j in range(self.n):
            slot = self.at(j)
            value = w.piece.values[slot - self.dictionary.start]
            loss = self.square_of(w, slot) * fmax(0.0, (<double*> self.owns.data)[slot] - value * value / own)
            if loss < least * NEARLY or removal.slot == NOBODY:
                removal.slot, removal.share, least = slot, value / own, loss

    cdef void redistribute(self, Scratch w, Term* term, Py_ssize_t i, Removal* removal) noexcept nogil:
        """O(channels rows). If nothing is left of the two, neither is a term: none would be there in a file either."""
        cdef Py_ssize_t row
        cdef double left = 0.0
        WeighingQueue.redistribute(self, w, term, i, removal)
        if removal.slot == NOBODY:
            return
        self.terms.read(removal.slot, &w.old)
        for row in range(self.terms.channels * self.terms.rows):
            w.old.stored[row] *= removal.share
        take_over(self.terms, term, &w.old)
        for row in range(self.terms.channels * self.terms.rows):
            left = fmax(left, fabs(term.stored[row]))
        if left == 0.0:
            self.terms.drop(removal.slot)
            self.dictionary.disorderly = True
            removal.slot = CANDIDATE


cdef void take_over(Coefficients terms, Term* term, Term* old) noexcept nogil:
    """What another term leaves goes to the candidate, which has a coefficient for every output then. O(rows)."""
    cdef Py_ssize_t row, k
    cdef int channel
    for channel in range(terms.channels):
        for k in range(term.n):
            old.stored[channel * terms.rows + term.labels[k]] += term.stored[channel * term.n + k]
    term.n = terms.rows
    for row in range(terms.rows):
        term.labels[row] = <int> row
    for row in range(terms.channels * terms.rows):
        term.stored[row] = old.stored[row]


@cython.final
cdef class QuantizedBudget(WeighingQueue):
    """An example that is nearly a term adds its coefficient to that term's: Chen, Zhao, Zhu, Principe (2012)."""

    cdef readonly double coherence      # cosine of an angle: no wider is nearly the same

    def __init__(self, double coherence, size):
        self.coherence, self.looks_at_candidates = coherence, True
        self.most = self.most if size is None else size

    cdef void evict(self, Scratch w, const Term* term, Py_ssize_t i, double size, Removal* removal) noexcept nogil:
        """The nearest, among equals the oldest."""
        cdef Py_ssize_t slot, start = self.dictionary.start
        cdef const double* owns = <const double*> self.owns.data
        cdef double cosine, scale, most = 0.0
        for slot in range(start, self.dictionary.stop):
            scale = w.piece.own[i] * owns[slot]
            if not self.terms.holds(slot) or scale <= 0.0:
                continue
            cosine = w.piece.values[slot - start] / sqrt(scale)
            if cosine * NEARLY >= self.coherence and (cosine > most * NEARLY or (
                    cosine * NEARLY >= most and self.dictionary.born(slot) < self.dictionary.born(removal.partner))):
                removal.slot, removal.partner, most = CANDIDATE, slot, fmax(most, cosine)
        if removal.partner == NOBODY and self.n >= self.most:
            removal.slot = self.oldest()

    cdef void redistribute(self, Scratch w, Term* term, Py_ssize_t i, Removal* removal) noexcept nogil:
        """A term whose coefficient becomes 0 by this is none any more: it would not be there in a file either."""
        WeighingQueue.redistribute(self, w, term, i, removal)
        if removal.partner == NOBODY:
            return
        give(self.terms, term, removal.partner, 1.0)
        if self.terms.is_zero(removal.partner):
            self.terms.drop(removal.partner)
            self.dictionary.disorderly = True


cdef class WindowBudget(Queue):
    """The terms of the latest `steps` examples: K Fig. 1."""

    cdef readonly long long steps         # that a term lives

    def __init__(self, long long steps):
        Queue.__init__(self)
        self.steps = steps

    cdef long long length(self, long long t) noexcept nogil:
        """How many of the latest examples f_t may use."""
        return self.steps

    cdef Py_ssize_t expiring(self, long long t) noexcept nogil:
        self.dictionary.trim()                 # what expired before is left behind
        if self.n and self.dictionary.born(self.oldest()) < t + 1 - self.length(t + 1):
            return self.oldest()
        return NOBODY

    def lengths(self, t):
        """Length of the window at one example t or at an array of them."""
        times = np.asarray(t, dtype=np.int64)
        lengths = np.array([self.length(one) for one in times.ravel().tolist()], dtype=np.int64)
        return lengths.reshape(times.shape) if times.ndim else int(lengths[0])

    def fits(self, state):
        check_order(state["birthdays"])


@cython.final
cdef class SublinearBudget(WindowBudget):
    """A window that grows like t^exponent, from `start`: K Thm 6 with its erratum, the printed window shrinks once."""

    cdef readonly double exponent       # the window is t^exponent long

    def __init__(self, long long start, double exponent):
        WindowBudget.__init__(self, start)
        self.exponent = exponent

    cdef long long length(self, long long t) noexcept nogil:
        """pow may land just above a whole number, so the ceiling forgives 1e-9."""
        cdef double length = ceil(pow(<double> t, self.exponent) - 1e-9)
        return <long long> length if length > <double> self.steps else self.steps


def check_order(birthdays):
    """ValueError unless terms are in the order of their birthdays."""
    if len(birthdays) and not (np.diff(birthdays) > 0).all():
        raise ValueError("the terms are not in the order of their birthdays")


# ---- Those with the largest coefficients, in a heap ----------------------------------------------

@cython.final
cdef class SmallestBudget(Budget):
    """The `size` terms with the largest coefficients: I 2.1. A heap of slots, O(log size) per term."""

    cdef Table keys, heaps              # the memory of `key` and `heap`
    cdef double* key                    # of each slot: size of its stored coefficient, which only a fold changes
    cdef Py_ssize_t* heap               # slots, the smallest (key, birthday) first
    cdef Py_ssize_t n                   # slots in the heap
    cdef bint vacant                    # the first place of the heap waits for a candidate

    cdef Py_ssize_t evicted(self, double size) noexcept nogil:
        """Among equals the oldest goes, not the candidate."""
        self.close()
        if self.n < self.most:
            return NOBODY
        return CANDIDATE if size < self.key[self.heap[0]] else self.heap[0]

    cdef void entered(self, Py_ssize_t slot) noexcept nogil:
        self.key[slot] = self.terms.size_of(slot)
        if self.vacant:
            self.vacant = False
            self.heap[0] = slot
            self.sift_down(0)
            return
        self.heap[self.n] = slot
        self.n += 1
        self.sift_up(self.n - 1)

    cdef void close(self) noexcept nogil:
        """Nobody has come for the first place: the last takes it."""
        if self.vacant:
            self.vacant = False
            self.n -= 1
            self.heap[0] = self.heap[self.n]
            self.sift_down(0)

    cdef void left(self, Py_ssize_t slot) noexcept nogil:
        """Nearly always the first, for a candidate; if another one, the last takes its place."""
        cdef Py_ssize_t i = 0
        self.close()
        if self.heap[0] == slot:
            self.vacant = True
            return
        while self.heap[i] != slot:
            i += 1
        self.n -= 1
        if i < self.n:
            self.heap[i] = self.heap[self.n]
            self.sift_up(i)
            self.sift_down(i)

    cdef void changed(self) noexcept nogil:
        cdef Py_ssize_t i
        self.close()
        for i in range(self.n):
            self.key[self.heap[i]] = self.terms.size_of(self.heap[i])
        for i in range(self.n // 2 - 1, -1, -1):
            self.sift_down(i)

    cdef int begin(self) except -1:
        self.keys, self.heaps = self.dictionary.new_table(1), self.dictionary.new_table(1, np.intp)

    cdef void arrange(self) noexcept nogil:
        self.key, self.heap = <double*> self.keys.data, <Py_ssize_t*> self.heaps.data
        self.n, self.vacant = self.terms.list_slots(self.heap), False
        self.changed()

    cdef bint goes_before(self, Py_ssize_t a, Py_ssize_t b) noexcept nogil:
        """Whether slot a is dropped before slot b: smaller, or as small and older."""
        if self.key[a] != self.key[b]:
            return self.key[a] < self.key[b]
        return self.dictionary.born(a) < self.dictionary.born(b)

    cdef void sift_up(self, Py_ssize_t i) noexcept nogil:
        while i > 0 and self.goes_before(self.heap[i], self.heap[(i - 1) // 2]):
            self.heap[i], self.heap[(i - 1) // 2] = self.heap[(i - 1) // 2], self.heap[i]
            i = (i - 1) // 2

    cdef void sift_down(self, Py_ssize_t i) noexcept nogil:
        cdef Py_ssize_t child, slot = self.heap[i]
        while True:
            child = 2 * i + 1
            if child >= self.n:
                break
            if child + 1 < self.n and self.goes_before(self.heap[child + 1], self.heap[child]):
                child += 1
            if not self.goes_before(self.heap[child], slot):
                break
            self.heap[i] = self.heap[child]
            i = child
        self.heap[i] = slot

    def _check(self):
        Budget._check(self)
        self.close()
        heap = self.heaps.array[0, :self.n].tolist()
        assert sorted(heap) == np.flatnonzero(self.dictionary.taken.array[0]).tolist()
        for i in range(1, self.n):
            assert not self.goes_before(heap[i], heap[(i - 1) // 2]), "the heap is out of order"


# ---- Budgets with a number for each two terms ----------------------------------------------------

def triangle(owner, sizes):
    """The size of the upper triangle of a matrix of terms."""
    return sizes["n"] * (sizes["n"] + 1) // 2


def packed(matrix):
    """Its upper triangle, as states have it."""
    return matrix[np.triu_indices(len(matrix))]


def unpacked(numbers, n):
    """An upper triangular matrix."""
    matrix = np.zeros((n, n))
    matrix[np.triu_indices(n)] = numbers
    return matrix


cdef class PairBudget(Budget):
    """A budget that keeps a number for each two of its terms, which candidates bring with them: see `row`."""

    FIELDS = Array("between", np.float64, (triangle,)),

    cdef readonly SquareTable pairs     # a number for each two terms; of slots without a term it means nothing
    cdef Table rows_of_candidates        # the memory of `row`
    cdef double* row                    # the numbers of a candidate that is about to enter with all slots in use,
    cdef double own                     # and with itself

    @cython.final
    cdef double* pairs_of(self, Py_ssize_t slot) noexcept nogil:
        """The numbers of a slot with all slots. O(1)."""
        return <double*> self.pairs.data + slot * self.pairs.capacity

    cdef void take_row(self, const double* row, double own) noexcept nogil:
        """A candidate has these numbers with all slots in use, and with itself. O(n)."""
        if self.dictionary.size():
            memcpy(self.row, row, self.dictionary.size() * sizeof(double))
        self.own = own

    cdef void redistribute(self, Scratch w, Term* term, Py_ssize_t i, Removal* removal) noexcept nogil:
        self.take_row(w.piece.values, w.piece.own[i])

    cdef void entered(self, Py_ssize_t slot) noexcept nogil:
        cdef Py_ssize_t other, start = self.dictionary.start
        for other in range(start, self.dictionary.stop):
            if other != slot and self.terms.holds(other):
                self.pairs_of(slot)[other] = self.pairs_of(other)[slot] = self.row[other - start]
        self.pairs_of(slot)[slot] = self.own

    cdef int begin(self) except -1:
        self.pairs, self.rows_of_candidates = self.dictionary.add_table(SquareTable()), self.dictionary.new_table(1)

    cdef void arrange(self) noexcept nogil:
        self.row = <double*> self.rows_of_candidates.data

    def stored(self):
        slots = self.dictionary.saved_slots()
        numbers = self.pairs.array[np.ix_(slots, slots)]
        mine = self.dictionary.taken.array[0, slots] != 0
        return {"between": packed(np.where(mine[:, None] & mine, numbers, 0.0))}

    def resume(self, state):
        n = len(state["birthdays"])
        self.pairs.array[:n, :n] = self.both_triangles(state)

    def both_triangles(self, state):
        upper = unpacked(state["between"], len(state["birthdays"]))
        return upper + np.triu(upper, 1).T

    def _check(self):
        Budget._check(self)
        mine = np.flatnonzero(self.dictionary.taken.array[0])
        numbers = self.pairs.array[np.ix_(mine, mine)]
        assert np.array_equal(numbers, numbers.T)


# ---- The term that is classified best without itself goes ----------------------------------------

cdef struct Looks:
    # What is looked at before it is said who goes
    Py_ssize_t rows             # outputs that count
    double own                  # k(x, x) of the candidate,
    double* row                 # (capacity + 1,): its kernel values with all slots in use
    double* side                # (capacity + 1,): the labels of the terms: of one output +1 or -1
    double* used                # (outputs,): 1 if a term has a coefficient there, others do not count yet
    double slack                # margins that differ by less are equal, whatever the rounding
    double* scores              # (capacity + 1, outputs): f at the terms' points, in the frame's coordinates
    double* moves               # (capacity + 1, outputs): by how much each term moves them, per kernel value


@cython.final
cdef class RedundantBudget(PairBudget):
    """The term that is classified best without itself goes: Crammer, Kandola, Singer (2003).

    Or (`tighter`) the one without which the fewest terms are classified wrongly, of those the one that is classified
    best: Weston, Bordes, Bottou (2005). The label of a term is where its largest coefficient is, or with one output its
    sign. The candidate is the slot behind those in use. It is one of the terms already, and may be the one that goes.
    """

    cdef readonly bint tighter  # few mistakes without it count first: Weston, Bordes, Bottou

    def __init__(self, long long size, bint tighter):
        self.most = size
        self.tighter = tighter
        self.looks_at_candidates = True

    cdef void evict(self, Scratch w, const Term* term, Py_ssize_t i, double size, Removal* removal) noexcept nogil:
        cdef Py_ssize_t slot, best = NOBODY, candidate = self.dictionary.stop, mistakes, fewest = candidate + 1
        cdef double largest = -INFINITY, margin
        cdef Looks looks
        if self.dictionary.held < self.most:
            return
        self.take_scores(w, term, w.piece.values, w.piece.own[i], &looks)
        for slot in range(self.dictionary.start, candidate + 1):
            if self.counts(slot):
                margin = self.margin_without(&looks, slot, slot)
                mistakes = self.mistakes_without(&looks, slot) if self.tighter else 0
                if mistakes < fewest or mistakes == fewest and (margin > largest + looks.slack or (
                        margin >= largest - looks.slack and slot != candidate
                        and self.dictionary.born(slot) < self.dictionary.born(best))):
                    best, fewest, largest = slot, mistakes, margin
        removal.slot = CANDIDATE if best == candidate else best

    cdef bint counts(self, Py_ssize_t slot) noexcept nogil:
        return slot == self.dictionary.stop or self.terms.holds(slot)

    cdef Py_ssize_t numbers(self) noexcept:
        cdef Py_ssize_t slots = self.dictionary.capacity + 1
        return 2 * slots * (self.terms.rows + 1) + self.terms.rows

    cdef void take_scores(self, Scratch w, const Term* term, const double* values, double own,
                          Looks* looks) noexcept nogil:
        """f at all points that count, what each term does to it, and its label; the candidate has these kernel values.

        O(n^2), and n products with the label kernel.
        """
        cdef Py_ssize_t slot, row, label, rows = self.terms.kept(), size = self.dictionary.capacity + 1
        cdef Py_ssize_t start = self.dictionary.start, stop = self.dictionary.stop
        cdef const double* stored
        cdef double* scores
        cdef double* moves
        looks.own, looks.row, looks.rows, looks.slack = own, w.for_budget, rows, 0.0
        looks.side = looks.row + size
        looks.used = looks.side + size
        looks.scores = looks.used + rows
        looks.moves = looks.scores + size * rows
        for slot in range(start, stop):         # of slots that are not held, values need not be finite
            looks.row[slot - start] = values[slot - start] if self.terms.holds(slot) else 0.0
        for row in range(rows):                 # with a kernel between labels, terms of others move a label's score
            looks.used[row] = self.terms.outputs.n_nodes != 0
        for slot in range(start, stop + 1):
            moves = looks.moves + slot * rows
            self.spread(CANDIDATE if slot == stop else slot, term, moves)
            label = 0
            for row in range(rows):
                looks.used[row] = 1.0 if moves[row] != 0.0 else looks.used[row]
                label = row if moves[row] > moves[label] else label
            looks.side[slot] = label if rows > 1 else 1.0 if moves[0] > 0.0 else -1.0
        moves = looks.moves + stop * rows
        for row in range(rows):
            stored = self.terms.row(row) + start
            scores = looks.scores + row
            for slot in range(start, stop):
                scores[slot * rows] = moves[row] * looks.row[slot - start] + ok_dot(
                    stored, <double*> self.pairs.data + slot * self.pairs.capacity + start, stop - start)
            scores[stop * rows] = moves[row] * own + ok_dot(stored, looks.row, stop - start)
        for slot in range(start, stop + 1):
            self.terms.outputs.apply(looks.scores + slot * rows, w.nodes)
            self.terms.outputs.apply(looks.moves + slot * rows, w.nodes)
            for row in range(rows if self.counts(slot) else 0):
                looks.slack = fmax(looks.slack, 1e-9 * fabs(looks.scores[slot * rows + row]))
            if rows == 1 and not self.counts(slot):     # it is never a mistake
                looks.side[slot], looks.scores[slot] = 1.0, INFINITY

    cdef double margin_without(self, const Looks* looks, Py_ssize_t slot, Py_ssize_t other) noexcept nogil:
        """By how much f without another term gives the point of a slot its own label."""
        cdef Py_ssize_t row, label = <Py_ssize_t> looks.side[slot], start = self.dictionary.start
        cdef Py_ssize_t stop = self.dictionary.stop
        cdef const double* gone = looks.moves + other * looks.rows
        cdef const double* scores = looks.scores + slot * looks.rows
        cdef double k, best = -INFINITY, score
        if slot < stop and other < stop:
            k = (<double*> self.pairs.data)[slot * self.pairs.capacity + other]
        else:
            k = looks.own if slot == other else looks.row[min(slot, other) - start]
        if looks.rows == 1:
            return looks.side[slot] * (scores[0] - gone[0] * k)
        for row in range(looks.rows):
            score = scores[row] - gone[row] * k
            if row != label and looks.used[row] != 0.0 and score > best:
                best = score
        return scores[label] - gone[label] * k - best

    cdef Py_ssize_t mistakes_without(self, const Looks* looks, Py_ssize_t other) noexcept nogil:
        cdef Py_ssize_t slot, first = self.dictionary.start, stop = self.dictionary.stop, mistakes = 0
        cdef const double* values
        cdef double gone
        if looks.rows == 1:                     # the same without a condition inside: most of the time is spent here
            gone = looks.moves[other]
            values = looks.row - first if other == stop else <double*> self.pairs.data + other * self.pairs.capacity
            for slot in range(first, stop):
                mistakes += looks.side[slot] * (looks.scores[slot] - gone * values[slot]) <= looks.slack
            first = stop
        for slot in range(first, stop + 1):
            if self.counts(slot) and self.margin_without(looks, slot, other) <= looks.slack:
                mistakes += 1
        return mistakes


# ---- Scaling f down before the oldest term goes: the Forgetron's ---------------------------------

cdef inline double won_by(const Term* term) noexcept nogil:
    """What an update brings f nearer to a function with margin 1: |f - u|^2 falls by 2 a - a^2, or more."""
    cdef double a = fabs(term.alpha[0])
    return a * (2.0 - a) if a < 1.0 else 1.0


@cython.final
cdef class ShrinkingBudget(PairBudget):
    """The oldest term goes, after all of f has been shrunk: the self-tuned Forgetron.

    Dekel, Shalev-Shwartz, Singer (2008).

    With sigma the oldest term's absolute coefficient and mu the margin of its point, both with the candidate there, a
    removal after shrinking by phi costs at most Psi = (sigma phi)^2 + 2 sigma phi - 2 sigma phi^2 mu. phi is as large
    as can be such that the sum of these, Q, stays within 15/32 of what the updates have won: for mistakes of a
    Perceptron their number, M, and for a coefficient a, of a smaller step, 2 a - a^2 (and no more than 1).
    """

    FIELDS = *PairBudget.FIELDS, Number("won", not_negative), Number("damage")

    cdef readonly double won            # by the updates so far: M, their number, for a Perceptron
    cdef readonly double damage         # Q: what removals have cost so far, at most

    def __init__(self, long long size):
        self.most, self.looks_at_candidates = size, True

    cdef void evict(self, Scratch w, const Term* term, Py_ssize_t i, double size, Removal* removal) noexcept nogil:
        cdef Py_ssize_t slot, oldest = NOBODY, start = self.dictionary.start
        cdef const double* stored = self.terms.column(0)
        cdef const double* values
        cdef double frame = 0.0, sigma, score, square, rest, phi = 1.0
        if self.dictionary.held < self.most:
            return
        for slot in range(start, self.dictionary.stop):
            if self.terms.holds(slot) and (
                    oldest == NOBODY or self.dictionary.born(slot) < self.dictionary.born(oldest)):
                oldest = slot
        values = self.pairs_of(oldest)
        score = term.stored[0] * w.piece.values[oldest - start]
        for slot in range(start, self.dictionary.stop):
            if self.terms.holds(slot):
                score += stored[slot] * values[slot]
        if term.stored[0] != 0.0:               # otherwise it is a term of the trace alone: nothing to shrink for
            frame = term.alpha[0] / term.stored[0]
        sigma = fabs(frame * stored[oldest])
        square = sigma * sigma - 2.0 * frame * stored[oldest] * frame * score
        rest = 15.0 / 32.0 * (self.won + won_by(term)) - self.damage
        if square + 2.0 * sigma > rest:         # the smaller root of square phi^2 + 2 sigma phi = rest
            phi = rest / (sigma + sqrt(fmax(0.0, sigma * sigma + square * rest)))
        removal.slot, removal.shrink, removal.loss = oldest, phi, phi * (square * phi + 2.0 * sigma)

    cdef void redistribute(self, Scratch w, Term* term, Py_ssize_t i, Removal* removal) noexcept nogil:
        PairBudget.redistribute(self, w, term, i, removal)
        self.won += won_by(term)
        self.damage += removal.loss

    def fits(self, state):
        PairBudget.fits(self, state)
        if state["damage"] > 15.0 / 32.0 * state["won"] * (1.0 + 1e-9):
            raise ValueError("the damage is more than it may be")

    def resume(self, state):
        PairBudget.resume(self, state)
        self.won, self.damage = state["won"], state["damage"]


# ---- Merging two terms into one, at a point between them -----------------------------------------

cdef struct Partners:
    # Those that an evicted term may merge with: the terms, the candidate at the end
    double* row                 # the candidate's distances from all slots in use
    double* coefficient         # of each
    double* distance            # from the evicted; infinite for those that it cannot merge with
    double* value               # of the Gaussian with it
    double* bound               # a merger loses at least this

cdef enum:
    GRID = 100          # cells of the table of mergers, each way
    SHARES = 32         # cells between two points where many outputs merge

# a has the coefficient 1 and b the coefficient r >= 1, u = rate |a - b|^2.  At z = h a + (1 - h) b the Gaussian is
# exp(-u (1 - h)^2) with a and exp(-u h^2) with b.  A constant c may be added to it, which the height is 1 of.


cdef double best_share(double ratio, double u) noexcept nogil:
    """h, for coefficients of equal signs and ratio = 1 / r: where p + r q is largest, p and q the values at z. There
    ratio (1 - h) p = h q. The ratio p / q is exp(-u (1 - 2 h)), and the root between 0 and 1/2 is the one."""
    cdef double low = 0.0, high = 0.5, h = ratio / (1.0 + ratio), part, rest, slope, step
    cdef int i
    for i in range(60):  # no-cython-lint
        part = ratio * exp(-u * (1.0 - 2.0 * h))
        rest = part * (1.0 - h) - h
        if rest > 0.0:
            low = h
        else:
            high = h
        slope = part * (2.0 * u * (1.0 - h) - 1.0) - 1.0
        step = rest / slope if slope != 0.0 else 0.0
        if not low < h - step < high:
            step = h - 0.5 * (low + high)
        h -= step
        if fabs(step) <= 1e-16:
            break
    return h


cdef double merger_loss(double r, double u, double shift, double h) noexcept nogil:
    """|k(a, .) + r k(b, .) - what it becomes at z|^2, without cancellation."""
    cdef double p = expm1(-u * (1.0 - h) * (1.0 - h)), q = expm1(-u * h * h)         # less 1
    cdef double loss = -p * (2.0 + p) - r * r * q * (2.0 + q) - 2.0 * r * exp(-u) * expm1(2.0 * u * h * (1.0 - h))
    return fmax(0.0, loss + shift / (1.0 + shift) * (p + r * q) * (p + r * q))


cdef double share_of_many(double of_a, double of_b, double both, double u, double c) noexcept nogil:
    """h, for coefficients A and B with these products: where |p A + q B|^2, what remains, is largest. There may be a
    maximum near each of the points: a grid is searched, and then, by halves, between the neighbours of its best."""
    cdef double p, q, remains, largest = 0.0, low = 0.0, high = 1.0, h
    cdef Py_ssize_t i
    for i in range(SHARES + 1):
        h = <double> i / SHARES
        p, q = exp(-u * (1.0 - h) * (1.0 - h)) + c, exp(-u * h * h) + c
        remains = p * p * of_a + q * q * of_b + 2.0 * p * q * both
        if i == 0 or remains > largest * NEARLY:
            largest, low, high = remains, fmax(0.0, h - 1.0 / SHARES), fmin(1.0, h + 1.0 / SHARES)
    while True:
        h = 0.5 * (low + high)
        if not low < h < high:
            return h if h > 1e-15 else 0.0
        p, q = exp(-u * (1.0 - h) * (1.0 - h)), exp(-u * h * h)
        if (p + c) * p * (1.0 - h) * of_a - (q + c) * q * h * of_b \
                + both * (p * (1.0 - h) * (q + c) - (p + c) * q * h) > 0.0:
            low = h
        else:
            high = h


cdef double same_sign_loss(double ratio, double u, double shift) noexcept nogil:
    """The least that two terms of equal signs lose when they merge, relative to the smaller one."""
    return merger_loss(1.0 / ratio, u, shift, best_share(ratio, u))


cdef dict tables = {}                   # by shift: what mergers lose, and the error of that


def merger_table(double shift):
    """(table, error): same_sign_loss / (1 - value)^2 over (ratio, Gaussian value), and its error between nodes."""
    cdef Py_ssize_t i, j
    cdef double worst = 0.0, exact, between
    cdef double[:, ::1] table
    if shift in tables:
        return tables[shift]
    array = np.empty((GRID + 1, GRID + 1))
    table = array
    nodes = np.linspace(0.0, 1.0, GRID + 1)
    ratios, values = np.maximum(nodes, 1e-6).tolist(), nodes.clip(1e-12, 1.0 - 1e-5).tolist()
    for i in range(GRID + 1):
        for j in range(GRID + 1):
            table[i, j] = same_sign_loss(ratios[i], -log(values[j]), shift) / (1.0 - values[j]) ** 2
    for i in range(GRID):
        for j in range(GRID):
            value = 0.5 * (values[j] + values[j + 1])
            exact = same_sign_loss(0.5 * (ratios[i] + ratios[i + 1]), -log(value), shift) / (1.0 - value) ** 2
            between = 0.25 * (table[i, j] + table[i + 1, j] + table[i, j + 1] + table[i + 1, j + 1])
            worst = max(worst, abs(between / exact - 1.0))
    tables[shift] = array, 1.5 * worst
    return tables[shift]


cdef double between_nodes(const double* table, double ratio, double value) noexcept nogil:
    cdef Py_ssize_t i = min(<Py_ssize_t> (ratio * GRID), <Py_ssize_t> (GRID - 1))
    cdef Py_ssize_t j = min(<Py_ssize_t> (value * GRID), <Py_ssize_t> (GRID - 1))
    cdef double s = ratio * GRID - i, t = value * GRID - j
    table += i * (GRID + 1) + j
    return (1.0 - s) * ((1.0 - t) * table[0] + t * table[1]) + s * ((1.0 - t) * table[GRID + 1] + t * table[GRID + 2])


@cython.final
cdef class MergingBudget(PairBudget):
    """The smallest term and the one that it loses least with become one term, at a point between them.

    For Gaussian kernels, times and plus constants. `pairs` are distances; those of a merged point, as its inner
    products with later examples, are combinations of two rows: |z - x|^2 = h |a - x|^2 + (1 - h) |b - x|^2 - h (1 - h)
    |a - b|^2.
    """

    cdef double rate                    # of the Gaussian: exp(-rate |a - b|^2)
    cdef double shift                   # a constant added to it, as a part of its height
    cdef object table_array             # keeps `table` alive
    cdef const double* table            # what a merger loses, by (ratio of coefficients, kernel value)
    cdef double table_error             # within this part of it

    def __init__(self, long long size):
        self.most, self.looks_at_candidates = size, True

    def stand_on(self, Program program):
        cdef int i
        cdef double scale = 1.0
        self.shift = 0.0
        for i in range(program.n_ops):
            if program.ops[i].code == GAUSSIAN and i == 0:
                self.rate = program.ops[i].a
            elif program.ops[i].code == SCALE:
                scale *= program.ops[i].a
                self.shift *= program.ops[i].a
            elif program.ops[i].code == SHIFT:
                self.shift += program.ops[i].a
            else:
                raise ValueError("the kernel is not a Gaussian, times and plus constants")
        self.shift /= scale
        self.table_array, self.table_error = merger_table(self.shift)
        self.table = <const double*> array_data(self.table_array)

    cdef Py_ssize_t numbers(self) noexcept:
        return 5 * (self.dictionary.capacity + 1)

    cdef void evict(self, Scratch w, const Term* term, Py_ssize_t i, double size, Removal* removal) noexcept nogil:
        cdef Py_ssize_t evicted, partner, size_of_row = self.dictionary.capacity + 1
        cdef double share
        cdef double* row = w.for_budget
        cdef Partners others = Partners(row, row + size_of_row, row + 2 * size_of_row, row + 3 * size_of_row,
                                        row + 4 * size_of_row)
        self.dictionary.distances(w.piece, i, self.rate, others.row)
        if self.dictionary.held < self.most:
            return
        evicted = self.smallest(&others, size)
        removal.slot = evicted
        if (size if evicted == CANDIDATE else self.terms.size_of(evicted)) == 0.0:
            return                              # there is nothing to redistribute
        self.look_around(&others, evicted)
        if self.terms.kept() == 1:
            partner = self.cheapest(&others, term, evicted, &share)
        else:
            partner = self.nearest(w, &others, term, evicted, &share)
        removal.partner, removal.share = self.dictionary.start + partner, share
        if partner == self.dictionary.size():   # the candidate: the point between them takes the evicted term's slot
            removal.slot, removal.partner, removal.share = CANDIDATE, evicted, 1.0 - share

    cdef void redistribute(self, Scratch w, Term* term, Py_ssize_t i, Removal* removal) noexcept nogil:
        cdef double share = removal.share, u, p, q
        self.take_row(w.for_budget, 0.0)
        if removal.partner == NOBODY:
            return
        if removal.slot == CANDIDATE:
            u = self.row[removal.partner - self.dictionary.start]
        else:
            u = self.pairs_of(removal.slot)[removal.partner]
        p = (exp(-u * (1.0 - share) * (1.0 - share)) + self.shift) / (1.0 + self.shift)
        q = (exp(-u * share * share) + self.shift) / (1.0 + self.shift)
        self.merge(w.piece, term, i, removal.slot, removal.partner, share, p, q)

    cdef Py_ssize_t smallest(self, Partners* others, double size) noexcept nogil:
        """The slot of the smallest term, the oldest among equals; CANDIDATE, which has a size, if that is smaller."""
        cdef Py_ssize_t j, start = self.dictionary.start, n = self.dictionary.size(), found
        cdef const char* mine = self.dictionary.taken.data + start
        cdef const double* coefficient = self.terms.column(start)
        cdef double least = size
        for j in range(n):
            others.bound[j] = fabs(coefficient[j]) if self.terms.rows == 1 else self.terms.size_of(start + j)
            if not mine[j]:
                others.bound[j] = INFINITY
            if others.bound[j] < least:
                least = others.bound[j]
        found = self.oldest_below(others.bound, least * NEARLY, n)
        return CANDIDATE if found == NOBODY else start + found

    cdef Py_ssize_t oldest_below(self, const double* values, double limit, Py_ssize_t n) noexcept nogil:
        """Of the first n partners the oldest whose value is no larger than a limit; NOBODY if there is none. O(n)."""
        cdef Py_ssize_t j, best = NOBODY
        for j in range(n):
            if values[j] <= limit and (best == NOBODY or self.born(j) < self.born(best)):
                best = j
        return best

    cdef void look_around(self, Partners* others, Py_ssize_t evicted) noexcept nogil:
        """Distances of the evicted term from all partners."""
        cdef Py_ssize_t j, start = self.dictionary.start, n = self.dictionary.size()
        cdef const char* mine = self.dictionary.taken.data + start
        cdef const double* found = others.row
        if evicted != CANDIDATE:
            found = self.pairs_of(evicted) + start
        for j in range(n):
            others.distance[j] = found[j] if mine[j] else INFINITY
        others.distance[n] = INFINITY
        if evicted != CANDIDATE:
            others.distance[evicted - start] = INFINITY
            others.distance[n] = others.row[evicted - start]

    cdef long long born(self, Py_ssize_t j) noexcept nogil:
        cdef Py_ssize_t slot = self.dictionary.start + j
        return self.dictionary.born(slot) if slot < self.dictionary.stop else <long long> 1 << 62

    cdef Py_ssize_t cheapest(self, Partners* others, const Term* term, Py_ssize_t evicted,
                             double* share) noexcept nogil:
        """One output: the partner that the evicted term loses least with, and its share h of the point between them.

        Of opposite signs, nothing between is better than the other point itself, h = 0. The table says what a merger
        loses, up to its error, and those that may be the best are computed.
        """
        cdef Py_ssize_t j, start = self.dictionary.start, n = self.dictionary.size(), best
        cdef const double* stored = self.terms.column(start)
        cdef double own, ratio, gap, least = INFINITY
        for j in range(n):
            others.coefficient[j] = stored[j]
            others.bound[j] = -others.distance[j]
        others.coefficient[n], others.bound[n] = term.stored[0], -others.distance[n]
        own = term.stored[0] if evicted == CANDIDATE else self.terms.column(evicted)[0]
        ok_exp_array(others.bound, others.value, n + 1)
        for j in range(n + 1):
            if others.distance[j] == INFINITY:
                others.bound[j] = INFINITY
                continue
            gap = 1.0 - others.value[j]
            ratio = own / others.coefficient[j]
            if ratio > 0.0:
                others.bound[j] = between_nodes(self.table, fmin(ratio, 1.0), others.value[j]) * gap * gap
                least = fmin(least, others.bound[j] * (1.0 + self.table_error))
                others.bound[j] *= 1.0 - self.table_error
            else:
                others.bound[j] = gap * (1.0 + others.value[j]) + self.shift / (1.0 + self.shift) * gap * gap
                least = fmin(least, others.bound[j])
        least += 1e-12
        for j in range(n + 1):
            if others.bound[j] <= least and own * others.coefficient[j] > 0.0:
                ratio = fmin(own / others.coefficient[j], 1.0)
                others.bound[j] = same_sign_loss(ratio, others.distance[j], self.shift)
        least = INFINITY
        for j in range(n + 1):
            least = fmin(least, others.bound[j])
        best = self.oldest_below(others.bound, least + 1e-12, n + 1)
        ratio = fmin(own / others.coefficient[best], 1.0)
        share[0] = best_share(ratio, others.distance[best]) if ratio > 0.0 else 0.0
        return best

    cdef Py_ssize_t nearest(self, Scratch w, Partners* others, const Term* term, Py_ssize_t evicted,
                            double* share) noexcept nogil:
        """Many outputs: the nearest partner, and the evicted term's share h of the best point between them."""
        cdef Py_ssize_t j, n = self.dictionary.size(), best
        cdef double least = INFINITY
        cdef double* own = w.slot_coefficients
        cdef double* other = own + self.terms.rows
        for j in range(n + 1):
            least = fmin(least, others.distance[j])
        best = self.oldest_below(others.distance, least * NEARLY + 1e-12, n + 1)
        self.spread(evicted, term, own)
        self.spread(CANDIDATE if best == n else self.dictionary.start + best, term, other)
        share[0] = share_of_many(self.product(w, own, own), self.product(w, other, other), self.product(w, own, other),
                                 others.distance[best], self.shift)
        return best

    cdef void merge(self, Piece piece, const Term* term, Py_ssize_t i, Py_ssize_t other, Py_ssize_t slot,
                    double share, double of_other, double of_slot) noexcept nogil:
        """Another term, or example i, joins the one in a slot: by a share of its point, and parts of coefficients."""
        cdef Py_ssize_t row, j, start = self.dictionary.start
        cdef double* here = self.pairs_of(slot)
        cdef const double* there = self.row - start if other == CANDIDATE else self.pairs_of(other)
        cdef double* stored
        cdef double apart = there[slot] * share * (1.0 - share), distance
        for row in range(self.terms.channels * self.terms.rows):
            stored = self.terms.row(row)
            stored[slot] *= of_slot
            if other != CANDIDATE:
                stored[slot] += of_other * stored[other]
        if other == CANDIDATE:
            give(self.terms, term, slot, of_other)
        if share == 0.0:
            return
        for j in range(start, self.dictionary.stop):
            if j != slot and self.terms.holds(j):
                distance = share * there[j] + (1.0 - share) * here[j] - apart
                here[j] = self.pairs_of(j)[slot] = distance if distance > 0.0 else 0.0
        if other != CANDIDATE:
            distance = share * self.row[other - start] + (1.0 - share) * self.row[slot - start] - apart
            self.row[slot - start] = fmax(0.0, distance)
        self.dictionary.blend(piece, i, other, slot, share)
        self.dictionary.point_moved(slot)

    def fits(self, state):
        PairBudget.fits(self, state)
        if (state["between"] < 0).any() or not self.are_distances(self.both_triangles(state), state["points"]):
            raise ValueError("between is not the distances of the points")

    def are_distances(self, numbers, points):
        """Whether numbers are those between points, up to what mergers leave of their digits."""
        digits, points = 1e-9 if points.dtype == np.float64 else 1e-4, points.astype(float)
        with np.errstate(over="ignore", invalid="ignore"):
            square = (points**2).sum(axis=1)
            error = np.abs(numbers - self.rate * (square[:, None] + square - 2.0 * points @ points.T)).max(initial=0.0)
            return bool(error <= digits * self.rate * max(1.0, square.max(initial=0.0)) < np.inf)

    def _check(self):
        PairBudget._check(self)
        mine = np.flatnonzero(self.dictionary.taken.array[0])
        numbers, points = self.pairs.array[np.ix_(mine, mine)], self.dictionary.points[mine]
        assert self.are_distances(numbers, points), "distances are stale"


# ---- Projecting: what the points of terms span ---------------------------------------------------

cdef enum:
    VECTORS = 7         # of a span
    KEPT = 3            # of these, those that are not scratch

cdef struct Look:
    # How a point lies to a span
    double own                  # k(x, x),
    double residual             # and what of it is orthogonal to the span
    double* way                 # L^-1 row, of its kernel values with the points
    double* shares              # K^-1 row: its projection onto the span has these coefficients
    double* loss                # of projecting each point, with it there

cdef double ROUNDING = 2.220446049250313e-16
cdef double STALE = 1e-6                # the diagonal of an inverse is computed anew before it is further off than that


@cython.final
cdef class Span:
    """What the points of terms span: the Cholesky factor of their kernel matrix, which follows them.

    The points are in the order of their age, so candidates come last. A candidate adds a row, and what leaves is
    rotated out: both are O(n^2), and stable as long as no point enters that the others nearly span.
    """

    FIELDS = (Array("factor", np.float64, (triangle,)), Array("spikes", np.float64, (2, "n")),
              Array("wear", np.float64, ("n",), not_negative))

    cdef readonly Py_ssize_t n          # points
    cdef Py_ssize_t capacity            # points that there is room for
    cdef readonly Factor factor         # of the kernel matrix K of the points, oldest first
    cdef object array, order_array      # the memory of what follows
    cdef double* own                    # k(x, x) of each point
    cdef double* spike                  # the diagonal of K^-1
    cdef double* wear                   # and by how much rounding may have changed it
    cdef double* way                    # L^-1 e_i of the point that left last,
    cdef double* column                 # and its column of K^-1
    cdef double* scratch                # twice as long
    cdef Py_ssize_t* order              # slots of the points

    def __init__(self):
        self.factor = Factor(0)
        self.reserve(0)

    cdef reserve(self, Py_ssize_t capacity):
        """Room for so many points; those that are there stay. O(room^2) when it grows."""
        cdef Py_ssize_t n = self.n
        cdef Py_ssize_t* slots
        cdef double* numbers
        factor = self.factor.with_capacity(capacity)
        array, order = aligned_empty((VECTORS, capacity), np.dtype(float)), np.zeros(capacity, dtype=np.intp)
        slots, numbers = <Py_ssize_t*> array_data(order), <double*> array_data(array)
        array[:] = 0.0
        if n:
            array[:KEPT, :n] = self.array[:KEPT, :n]
            order[:n] = self.order_array[:n]
        # Nothing below can fail.
        self.factor, self.capacity, self.array, self.order_array = factor, capacity, array, order
        self.order, self.own = slots, numbers
        self.spike = self.own + capacity
        self.wear = self.spike + capacity
        self.way = self.wear + capacity
        self.column = self.way + capacity
        self.scratch = self.column + capacity

    cdef void look(self, const double* values, Py_ssize_t start, double own, Look* look) noexcept nogil:
        """How a point with these kernel values with the slots in use lies to the span: O(n^2)."""
        cdef Py_ssize_t i, n = self.n
        for i in range(n):
            look.way[i] = values[self.order[i] - start]
        self.factor.solve(look.way, 0)
        memcpy(look.shares, look.way, n * sizeof(double))
        self.factor.solve_transposed(look.shares, 1, 1)
        look.own = own
        look.residual = fmax(0.0, own - ok_dot(look.way, look.way, n))

    cdef void append(self, const Look* look) noexcept nogil:
        """The point that was looked at is one of them, the last; its slot is not known yet: O(n)."""
        cdef Py_ssize_t i, n = self.n
        cdef double change, error = ROUNDING * look.own / look.residual
        for i in range(n):
            change = look.shares[i] * look.shares[i] / look.residual
            self.spike[i] += change
            self.wear[i] += error * change
        self.factor.append(look.way, sqrt(look.residual))
        self.own[n], self.spike[n], self.wear[n] = look.own, 1.0 / look.residual, 0.0
        self.order[n] = NOBODY
        self.n = n + 1

    cdef double leave(self, Py_ssize_t i) noexcept nogil:
        """Point i is not one of them any more: O(n^2), and O(n^2) for each entry of the diagonal that is stale.

        Return its residual; its projection onto the others, as they were numbered, is -column / column[i].
        """
        cdef Py_ssize_t j, n = self.n
        cdef double residual, change, error
        self.unit_solution(i)
        memcpy(self.column, self.way, n * sizeof(double))
        self.factor.solve_transposed(self.column, 1, 1)
        residual = 1.0 / self.column[i]
        error = ROUNDING * self.own[i] * self.column[i]
        for j in range(n):                      # an inverse's diagonal is at least one over the matrix's
            change = self.column[j] * self.column[j] * residual
            self.spike[j] = fmax(self.spike[j] - change, 1.0 / self.own[j])
            self.wear[j] += error * change
        self.factor.remove(i, self.scratch)
        for j in range(i, n - 1):
            self.own[j], self.spike[j], self.wear[j] = self.own[j + 1], self.spike[j + 1], self.wear[j + 1]
            self.order[j] = self.order[j + 1]
        self.n = n - 1
        for j in range(n - 1):                  # what sums and differences have left of it is rounding
            if self.wear[j] > STALE * self.spike[j]:
                self.spike[j], self.wear[j] = self.unit_solution(j), 0.0
        return residual

    cdef double unit_solution(self, Py_ssize_t i) noexcept nogil:
        """L^-1 e_i into `way`; return its square, (K^-1)_ii. O(n^2)."""
        memset(self.way, 0, self.n * sizeof(double))
        self.way[i] = 1.0
        self.factor.solve(self.way, i)
        return ok_dot(self.way + i, self.way + i, self.n - i)

    def stored(self):
        return {"factor": packed(self.factor.lower().T), "spikes": self.array[:2, :self.n],
                "wear": self.array[2, :self.n]}

    def fits(self, state):
        """ValueError unless a state is about points that no others nearly span. O(n^3)."""
        own, spike = state["spikes"]
        factor = unpacked(state["factor"], len(own))
        diagonal = np.diag(factor)
        with np.errstate(over="ignore"):
            square = (factor**2).sum(axis=0)
        if not (np.isfinite(square).all() and (diagonal > 0).all() and (diagonal**2 > 0.5 * 1e-8 * square).all()):
            raise ValueError("factor is not that of terms that are independent")
        if not ((own > 0).all() and np.allclose(own, square, rtol=1e-3, atol=0) and (spike * own >= 1 - 1e-6).all()):
            raise ValueError("spikes do not fit the factor")
        if len(own) and not np.allclose(spike, (np.linalg.inv(factor)**2).sum(axis=1), rtol=1e-3):
            raise ValueError("spikes are not the diagonal of the inverse")

    def resume(self, state):
        slots = np.argsort(state["birthdays"], kind="stable")
        n = len(slots)
        self.factor, self.n = Factor(0), 0
        self.reserve(max(self.capacity, n))
        self.factor.load(unpacked(state["factor"], n).T)
        self.array[:2, :n] = state["spikes"]
        self.array[2, :n] = state["wear"]
        self.order_array[:n] = slots
        self.n = n


# ---- Projecting what goes onto what stays --------------------------------------------------------

@cython.final
cdef class ProjectingBudget(Budget):
    """What goes is projected onto what stays: the others get what they can represent of it.

    A candidate of which at most the `tolerance`, a part of k(x, x), is orthogonal to the others never enters.
    """

    FIELDS = Inlined("span"),

    cdef readonly double tolerance      # a candidate is projected if at most this part of k(x, x) is lost
    cdef readonly Span span             # of the terms
    cdef double floor                   # residuals below it, relative to k(x, x), are rounding
    cdef bint candidates_yield          # when it is full, those that are there stay, and candidates are projected
    cdef bint expected                  # the span has followed already: somebody leaves, or enters

    def __init__(self, long long size, double tolerance):
        self.most, self.tolerance, self.looks_at_candidates, self.span = size, tolerance, True, Span()

    cdef Py_ssize_t numbers(self) noexcept:
        return 2 + 3 * (self.dictionary.capacity + 1)

    cdef Look look_in(self, double* buffer) noexcept nogil:
        """What was seen in the call whose room this is. O(1)."""
        cdef Look look
        cdef Py_ssize_t size = self.dictionary.capacity + 1
        look.own, look.residual = buffer[0], buffer[1]
        look.way, look.shares, look.loss = buffer + 2, buffer + 2 + size, buffer + 2 + 2 * size
        return look

    cdef double look(self, const double* values, double own, double* buffer) noexcept nogil:
        """What part of an example with these kernel values is orthogonal to the terms. O(terms^2)."""
        cdef Look look = self.look_in(buffer)
        self.span.look(values, self.dictionary.start, own, &look)
        buffer[0], buffer[1] = look.own, look.residual
        return look.residual / own

    cdef void evict(self, Scratch w, const Term* term, Py_ssize_t i, double size, Removal* removal) noexcept nogil:
        cdef Py_ssize_t place
        cdef Look look
        if not term.looked_at:                  # otherwise the rule has let it be looked at
            self.look(w.piece.values, w.piece.own[i], w.for_budget)
        look = self.look_in(w.for_budget)
        removal.slot = CANDIDATE
        if look.residual / w.piece.own[i] <= fmax(self.tolerance, self.floor) or term.stays_out:
            return
        if self.dictionary.held < self.most:
            removal.slot = NOBODY
        elif not self.candidates_yield:
            place = self.cheapest(w, term, &look)
            if place < self.span.n:
                removal.slot = self.span.order[place]

    cdef void redistribute(self, Scratch w, Term* term, Py_ssize_t i, Removal* removal) noexcept nogil:
        cdef Py_ssize_t place = 0
        cdef Look look = self.look_in(w.for_budget)
        if removal.slot == CANDIDATE:
            removal.residual = look.residual
            for place in range(self.span.n):
                give(self.terms, term, self.span.order[place], look.shares[place])
            return
        self.span.append(&look)
        self.expected = True
        if removal.slot != NOBODY:
            while self.span.order[place] != removal.slot:
                place += 1
            removal.residual = self.span.leave(place)
            self.share_out(term, &w.old, removal.slot, place, removal.residual)

    cdef Py_ssize_t cheapest(self, Scratch w, const Term* term, Look* look) noexcept nogil:
        """Whose projection onto the others loses least: a place in the span, its end for the candidate."""
        cdef Py_ssize_t j
        cdef double* loss = look.loss
        cdef double* own = w.slot_coefficients
        cdef double least, share
        self.spread(CANDIDATE, term, own)
        least = look.residual * self.product(w, own, own)
        for j in range(self.span.n):
            self.spread(self.span.order[j], term, own)
            share = look.shares[j]
            loss[j] = self.product(w, own, own) / (self.span.spike[j] + share * share / look.residual)
            least = fmin(least, loss[j])
        for j in range(self.span.n):
            if loss[j] <= least * NEARLY:
                return j
        return self.span.n

    cdef void share_out(self, Term* term, Term* old, Py_ssize_t slot, Py_ssize_t place, double residual) noexcept nogil:
        """What the term in a slot, which has left its place in the span, leaves to the others and to the candidate,
        which has a coefficient for every output then."""
        cdef Py_ssize_t row, j, n = self.span.n - 1         # the last is the candidate
        cdef const double* column = self.span.column
        cdef double* stored
        cdef double value
        self.terms.read(slot, old)
        for row in range(self.terms.channels * self.terms.rows):
            value = -old.stored[row] * residual
            stored = self.terms.row(row)
            for j in range(place):
                stored[self.span.order[j]] += value * column[j]
            for j in range(place, n):
                stored[self.span.order[j]] += value * column[j + 1]
            old.stored[row] = value * column[n + 1]
        take_over(self.terms, term, old)

    cdef void entered(self, Py_ssize_t slot) noexcept nogil:
        self.span.order[self.span.n - 1] = slot
        self.expected = False

    cdef void left(self, Py_ssize_t slot) noexcept nogil:
        cdef Py_ssize_t place = 0
        if self.expected:                       # it has made room for a candidate
            return
        while self.span.order[place] != slot:
            place += 1
        self.span.leave(place)

    cdef int begin(self) except -1:
        self.floor = 1e-8 if self.dictionary.dtype == np.float64 else 1e-5

    cdef int prepare(self, Py_ssize_t capacity) except -1:
        if self.span.capacity < capacity + 1:
            self.span.reserve(capacity + 1)

    cdef void arrange(self) noexcept nogil:
        """The span follows the terms whatever their slots are called."""
        if self.dictionary.held == self.span.n:          # otherwise a state is about to be restored
            self.terms.list_slots(self.span.order)

    def _check(self):
        Budget._check(self)
        order = self.span.order_array[:self.span.n]
        assert sorted(order.tolist()) == np.flatnonzero(self.dictionary.taken.array[0]).tolist()
        assert (np.diff(self.dictionary.birthdays.array[0, order]) > 0).all()
        own, spike = self.span.array[:2, :self.span.n]
        self.span.factor._check()
        assert self.span.factor.n == self.span.n
        assert np.allclose(own, np.diag(self.span.factor.gram()), rtol=1e-6)
        exact = (self.span.factor.inverse()**2).sum(axis=0)
        assert np.allclose(spike, exact, rtol=1e-3), "the inverse's diagonal is stale"


# ---- Projectrons: the rule whose updates that budget projects --------------------------------------

@cython.final
cdef class Projected(Rule):
    """Projectron and Projectron++ (Orabona, Keshet, Caputo): a Perceptron whose updates the terms that are there take
    over.

    The budget projects what does not enter. After a margin error, 0 < y f(x) < 1, the update is projected in any case,
    and as large as it safely may be: with loss l and p = |P k(x, .)|^2, where delta^2 = k(x, x) - p is out of reach,
    tau = min(l / p, 2 (l - delta^2 / eta) / p, 1), none if that is negative.
    """

    forms = ("OneOutput", "LabelPair")

    cdef public double tolerance        # eta of margin errors; 0 leaves them alone
    cdef ProjectingBudget budget

    cdef int stand_on(self, Function function) except -1:
        self.budget = function.terms.budget
        self.budget.candidates_yield = True

    cdef void move(self, const Standing* now, Example e) noexcept nogil:
        cdef double y = -1.0 if e.view.derivative > 0.0 else 1.0, loss = 1.0 - y * e.view.score, part, reached, tau
        stand_still(&e.move)
        if e.view.derivative == 0.0 or e.view.k <= 0.0:
            return
        if loss >= 1.0:
            e.move.alpha[0] = -e.view.derivative
            return
        # Of a pair of labels, view.k is that of both.
        part, e.term.looked_at = 1.0, self.tolerance > 0.0
        if e.term.looked_at:
            part = self.budget.look(e.values, e.view.k / e.view.offsets, e.for_budget)
        reached = e.view.k * (1.0 - part)
        if reached > 0.0 and loss > e.view.k * part / self.tolerance:
            tau = fmin(1.0, fmin(loss, 2.0 * (loss - e.view.k * part / self.tolerance)) / reached)
            e.move.alpha[0] = -e.view.derivative * tau
            e.term.stays_out = True
