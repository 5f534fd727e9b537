"""Budgets: which term goes, and what becomes of its coefficient. The contract is `Budget` in `terms`."""
cimport cython
import numpy as np
from libc.math cimport INFINITY, ceil, exp, expm1, fabs, fmax, fmin, log, pow, sqrt
from libc.string cimport memcpy, memset
from onlinekernels._core.arrays cimport array_data
from onlinekernels._core.arrays import aligned_empty, check_array, check_number
from onlinekernels._core.dictionary cimport SquareTable, Table
from onlinekernels._core.formulas.hashing cimport scrambled
from onlinekernels._core.formulas.vecmath cimport ok_dot, ok_exp_array
from onlinekernels._core.functions cimport CANDIDATE, NOBODY, Outcome, Piece, Scratch
from onlinekernels._core.kernels cimport GAUSSIAN, SCALE, SHIFT, Program
from onlinekernels._core.terms cimport NEARLY

# ---- All terms, the latest, or those that a hash spares ------------------------------------------


@cython.final
cdef class UnlimitedBudget(Budget):
    """Every term stays."""

    def check_state(self, birthdays):
        check_order(birthdays)


cdef class Queue(Budget):
    """Terms go in the order in which they came."""

    cdef Table orders                   # intp: the memory of `order`
    cdef Py_ssize_t* order              # slots in a circle, the oldest term's at `first`
    cdef Py_ssize_t room                # places in the circle
    cdef Py_ssize_t first               # place of the oldest
    cdef Py_ssize_t n                   # terms

    cdef int begin(self, Coefficients terms) except -1:
        self.orders = terms.dictionary.new_table(1, np.intp)
        return 0

    cdef void arrange(self, Coefficients terms) noexcept nogil:
        self.order, self.room = <Py_ssize_t*> self.orders.data, self.orders.capacity
        self.first, self.n = 0, terms.list_slots(self.order)

    def restore(self, Coefficients terms, state):
        self.orders.array[0] = np.argsort(state["birthdays"], kind="stable")

    cdef void entered(self, Coefficients terms, Py_ssize_t slot) noexcept nogil:
        cdef Py_ssize_t last = self.first + self.n
        self.order[last if last < self.room else last - self.room] = slot
        self.n += 1

    cdef void left(self, Coefficients terms, Py_ssize_t slot) noexcept nogil:
        """Nearly always the first; the others close ranks."""
        cdef Py_ssize_t i = 0
        if self.order[self.first] != slot:
            while self.order[(self.first + i) % self.room] != slot:
                i += 1
            while i > 0:
                self.order[(self.first + i) % self.room] = self.order[(self.first + i - 1) % self.room]
                i -= 1
        self.first += 1
        if self.first == self.room:
            self.first = 0
        self.n -= 1

    cdef Py_ssize_t oldest(self) noexcept nogil:
        return self.order[self.first]

    def _check(self, Coefficients terms):
        Budget._check(self, terms)
        order = [self.order[(self.first + i) % self.room] for i in range(self.n)]
        assert sorted(order) == np.flatnonzero(terms.dictionary.taken.array[0]).tolist()
        assert (np.diff(terms.dictionary.birthdays.array[0, order]) > 0).all()


@cython.final
cdef class RecentBudget(Queue):
    """The latest `size` terms: V 5.5.

    Parameters
    ----------
    size : int
    """

    def __init__(self, long long size):
        self.most = size

    cdef Py_ssize_t evicted(self, Coefficients terms, double size) noexcept nogil:
        return self.oldest() if self.n >= self.most else NOBODY

    def check_state(self, birthdays):
        """In the order of sums, the terms are a circle that begins anywhere."""
        Budget.check_state(self, birthdays)
        oldest = int(np.argmin(birthdays)) if len(birthdays) else 0
        if oldest and len(birthdays) < self.most:
            raise ValueError("the terms are a circle before there are as many as the budget allows")
        check_order(np.roll(birthdays, -oldest))


@cython.final
cdef class RandomBudget(Queue):
    """A term that is drawn by lot goes: Cavallanti, Cesa-Bianchi, Gentile (2007).

    The lot depends on the seed and on the birthday of the youngest term, and so on nothing but the examples.

    Parameters
    ----------
    size, seed : int
    """

    cdef readonly unsigned long long seed # of who goes

    def __init__(self, long long size, unsigned long long seed):
        self.most = size
        self.seed = seed

    cdef Py_ssize_t evicted(self, Coefficients terms, double size) noexcept nogil:
        cdef unsigned long long lot
        if self.n < self.most:
            return NOBODY
        lot = <unsigned long long> terms.dictionary.born(self.order[(self.first + self.n - 1) % self.room])
        lot = scrambled(scrambled(self.seed) + lot)
        return self.order[(self.first + <Py_ssize_t> (lot % <unsigned long long> self.n)) % self.room]


cdef class WindowBudget(Queue):
    """The terms of the latest `steps` examples: K Fig. 1.

    Parameters
    ----------
    steps : int
    """

    cdef readonly long long steps         # that a term lives

    def __init__(self, long long steps):
        Queue.__init__(self)
        self.steps = steps

    cdef long long length(self, long long t) noexcept nogil:
        """How many of the latest examples f_t may use."""
        return self.steps

    cdef Py_ssize_t expiring(self, Coefficients terms, long long t) noexcept nogil:
        terms.dictionary.trim()                 # what expired before is left behind
        if self.n and terms.dictionary.born(self.oldest()) < t + 1 - self.length(t + 1):
            return self.oldest()
        return NOBODY

    def lengths(self, t):
        """Length of the window at one example t or at an array of them."""
        times = np.asarray(t, dtype=np.int64)
        lengths = np.array([self.length(one) for one in times.ravel().tolist()], dtype=np.int64)
        return lengths.reshape(times.shape) if times.ndim else int(lengths[0])

    def check_state(self, birthdays):
        check_order(birthdays)


@cython.final
cdef class SublinearBudget(WindowBudget):
    """A window that grows like t^exponent: K Thm 6 with its erratum, the printed window shrinks once, this one never does.

    Parameters
    ----------
    start : int
        Its length while the model is young.
    exponent : float
    """

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
    """The `size` terms with the largest coefficients: I 2.1. A heap of slots, O(log size) per term.

    Parameters
    ----------
    size : int
    """

    cdef Table keys, heaps              # the memory of `key` and `heap`
    cdef double* key                    # of each slot: size of its stored coefficient, which only a fold changes
    cdef Py_ssize_t* heap               # slots, the smallest (key, birthday) first
    cdef Py_ssize_t n                   # slots in the heap
    cdef bint vacant                    # the first place of the heap waits for a candidate

    def __init__(self, long long size):
        self.most = size

    cdef Py_ssize_t evicted(self, Coefficients terms, double size) noexcept nogil:
        """Among equals the oldest goes, not the candidate."""
        self.close(terms)
        if self.n < self.most:
            return NOBODY
        return CANDIDATE if size < self.key[self.heap[0]] else self.heap[0]

    cdef void entered(self, Coefficients terms, Py_ssize_t slot) noexcept nogil:
        self.key[slot] = terms.size_of(slot)
        if self.vacant:
            self.vacant = False
            self.heap[0] = slot
            self.sift_down(terms, 0)
            return
        self.heap[self.n] = slot
        self.n += 1
        self.sift_up(terms, self.n - 1)

    cdef void close(self, Coefficients terms) noexcept nogil:
        """Nobody has come for the first place: the last takes it."""
        if self.vacant:
            self.vacant = False
            self.n -= 1
            self.heap[0] = self.heap[self.n]
            self.sift_down(terms, 0)

    cdef void left(self, Coefficients terms, Py_ssize_t slot) noexcept nogil:
        """Nearly always the first, for a candidate; if another one, the last takes its place."""
        cdef Py_ssize_t i = 0
        self.close(terms)
        if self.heap[0] == slot:
            self.vacant = True
            return
        while self.heap[i] != slot:
            i += 1
        self.n -= 1
        if i < self.n:
            self.heap[i] = self.heap[self.n]
            self.sift_up(terms, i)
            self.sift_down(terms, i)

    cdef void changed(self, Coefficients terms) noexcept nogil:
        cdef Py_ssize_t i
        self.close(terms)
        for i in range(self.n):
            self.key[self.heap[i]] = terms.size_of(self.heap[i])
        for i in range(self.n // 2 - 1, -1, -1):
            self.sift_down(terms, i)

    cdef int begin(self, Coefficients terms) except -1:
        self.keys, self.heaps = terms.dictionary.new_table(1), terms.dictionary.new_table(1, np.intp)
        return 0

    cdef void arrange(self, Coefficients terms) noexcept nogil:
        self.key, self.heap = <double*> self.keys.data, <Py_ssize_t*> self.heaps.data
        self.n, self.vacant = terms.list_slots(self.heap), False
        self.changed(terms)

    cdef bint goes_before(self, Coefficients terms, Py_ssize_t a, Py_ssize_t b) noexcept nogil:
        """Whether slot a is dropped before slot b: smaller, or as small and older."""
        if self.key[a] != self.key[b]:
            return self.key[a] < self.key[b]
        return terms.dictionary.born(a) < terms.dictionary.born(b)

    cdef void sift_up(self, Coefficients terms, Py_ssize_t i) noexcept nogil:
        while i > 0 and self.goes_before(terms, self.heap[i], self.heap[(i - 1) // 2]):
            self.heap[i], self.heap[(i - 1) // 2] = self.heap[(i - 1) // 2], self.heap[i]
            i = (i - 1) // 2

    cdef void sift_down(self, Coefficients terms, Py_ssize_t i) noexcept nogil:
        cdef Py_ssize_t child, slot = self.heap[i]
        while True:
            child = 2 * i + 1
            if child >= self.n:
                break
            if child + 1 < self.n and self.goes_before(terms, self.heap[child + 1], self.heap[child]):
                child += 1
            if not self.goes_before(terms, self.heap[child], slot):
                break
            self.heap[i] = self.heap[child]
            i = child
        self.heap[i] = slot

    def _check(self, Coefficients terms):
        Budget._check(self, terms)
        self.close(terms)
        heap = self.heaps.array[0, :self.n].tolist()
        assert sorted(heap) == np.flatnonzero(terms.dictionary.taken.array[0]).tolist()
        for i in range(1, self.n):
            assert not self.goes_before(terms, heap[i], heap[(i - 1) // 2]), "the heap is out of order"


# ---- Budgets with a number for each two terms ----------------------------------------------------

cdef class PairBudget(Budget):
    """A budget that keeps a number for each two of its terms, which candidates bring with them: see `row`."""

    cdef readonly SquareTable pairs     # a number for each two terms; of slots without a term it means nothing
    cdef Table rows_of_candidates        # the memory of `row`
    cdef double* row                    # the numbers of a candidate that is about to enter with all slots in use,
    cdef double own                     # and with itself

    cdef void take_row(self, Coefficients terms, const double* row, double own) noexcept nogil:
        """A candidate has these numbers with all slots in use, and with itself. O(n)."""
        if terms.dictionary.size():
            memcpy(self.row, row, terms.dictionary.size() * sizeof(double))
        self.own = own

    cdef void redistribute(self, Coefficients terms, Scratch w, Term* term, Py_ssize_t i, Outcome* outcome) noexcept nogil:
        """The numbers are kernel values. O(n)."""
        self.take_row(terms, w.piece.values, w.piece.own[i])

    cdef void entered(self, Coefficients terms, Py_ssize_t slot) noexcept nogil:
        """O(n)."""
        cdef Py_ssize_t other, start = terms.dictionary.start, capacity = self.pairs.capacity
        cdef double* numbers = <double*> self.pairs.data
        cdef const char* mine = terms.dictionary.taken.data
        for other in range(start, terms.dictionary.stop):
            if other != slot and mine[other]:
                numbers[slot * capacity + other] = numbers[other * capacity + slot] = self.row[other - start]
        numbers[slot * capacity + slot] = self.own

    cdef int begin(self, Coefficients terms) except -1:
        """O(n^2)."""
        self.pairs, self.rows_of_candidates = terms.dictionary.add_table(SquareTable()), terms.dictionary.new_table(1)
        return 0

    cdef void arrange(self, Coefficients terms) noexcept nogil:
        self.row = <double*> self.rows_of_candidates.data

    def state(self, Coefficients terms, slots):
        """O(n^2)."""
        numbers = self.pairs.array[np.ix_(slots, slots)]
        mine = terms.dictionary.taken.array[0, slots] != 0
        return {"between": np.where(mine[:, None] & mine, numbers, 0.0)[np.triu_indices(len(slots))]}

    def check_numbers(self, state, Py_ssize_t n):
        """O(n^2)."""
        check_array(state["between"], "between", np.float64, (n * (n + 1) // 2,))

    def restore(self, Coefficients terms, state):
        """O(n^2)."""
        upper, n = np.triu_indices(len(state["birthdays"])), len(state["birthdays"])
        self.pairs.array[:n, :n][upper] = state["between"]
        self.pairs.array[:n, :n].T[upper] = state["between"]

    def _check(self, Coefficients terms):
        Budget._check(self, terms)
        mine = np.flatnonzero(terms.dictionary.taken.array[0])
        numbers = self.pairs.array[np.ix_(mine, mine)]
        assert np.array_equal(numbers, numbers.T)


# ---- The term that is classified best without itself goes ----------------------------------------

cdef struct Looks:
    # What is looked at before it is said who goes
    Py_ssize_t rows             # outputs that count
    double own                  # k(x, x) of the candidate,
    double* row                 # (capacity + 1,): its kernel values with all slots in use
    double* side                # (capacity + 1,): of one output, the labels of the terms, +1 or -1
    double* used                # (outputs,): 1 if a term has a coefficient there, others do not count yet
    double* coming              # (outputs,): the candidate's coefficients; 0 if it does not count
    double slack                # margins that differ by less are equal, whatever the rounding
    double* scores              # (capacity + 1, outputs): f at the terms' points, in the frame's coordinates


@cython.final
cdef class RedundantBudget(PairBudget):
    """The term that is classified best without itself goes: Crammer, Kandola, Singer (2003).

    Or (`tighter`) the one without which the fewest terms are classified wrongly, of those the one that is classified best:
    Weston, Bordes, Bottou (2005). The label of a term is where its largest coefficient is, or with one output its sign.

    The candidate is the slot behind those in use. It is one of the terms already, and may be the one that goes.

    Parameters
    ----------
    size : int
    tighter : bool
    """

    cdef readonly bint tighter  # few mistakes without it count first: Weston, Bordes, Bottou

    def __init__(self, long long size, bint tighter):
        self.most = size
        self.tighter = tighter
        self.looks_at_candidates = True

    cdef void make_room(self, Coefficients terms, Scratch w, const Term* term, Py_ssize_t i, double size,
                        Outcome* outcome) noexcept nogil:
        """O(terms^2), `tighter` O(terms^2 outputs)."""
        cdef Py_ssize_t slot, best = NOBODY, candidate = terms.dictionary.stop, mistakes, fewest = candidate + 1
        cdef double largest = -INFINITY, margin
        cdef Looks looks
        if terms.dictionary.held < self.most:
            return
        self.take_scores(terms, term, w.piece.values, w.piece.own[i], w.for_budget, &looks)
        for slot in range(terms.dictionary.start, candidate + 1):
            if self.counts(terms, slot):
                margin = self.margin_without(terms, &looks, slot, slot)
                mistakes = self.mistakes_without(terms, &looks, slot) if self.tighter else 0
                if mistakes < fewest or mistakes == fewest and (margin > largest + looks.slack or (
                        margin >= largest - looks.slack and slot != candidate
                        and terms.dictionary.born(slot) < terms.dictionary.born(best))):
                    best, fewest, largest = slot, mistakes, margin
        outcome.slot = CANDIDATE if best == candidate else best

    cdef bint counts(self, Coefficients terms, Py_ssize_t slot) noexcept nogil:
        """Whether a slot has a term that is looked at."""
        return slot == terms.dictionary.stop or terms.holds(slot)

    cdef Py_ssize_t numbers(self, Coefficients terms) noexcept:
        cdef Py_ssize_t slots = terms.dictionary.capacity + 1
        return (slots + 2) * terms.rows + 2 * slots

    cdef void take_scores(self, Coefficients terms, const Term* term, const double* values, double own, double* room,
                          Looks* looks) noexcept nogil:
        """f at all points that count, and the candidate's coefficients; it has these kernel values. O(n^2)."""
        cdef Py_ssize_t slot, row, k, rows = terms.kept(), start = terms.dictionary.start, stop = terms.dictionary.stop
        cdef const double* stored
        cdef double* scores
        looks.own, looks.row, looks.rows = own, room, rows
        looks.side = looks.row + terms.dictionary.capacity + 1
        looks.used = looks.side + terms.dictionary.capacity + 1
        looks.coming = looks.used + rows
        looks.scores = looks.coming + rows
        memset(looks.coming, 0, rows * sizeof(double))
        for k in range(term.n):
            if term.labels[k] < rows:
                looks.coming[term.labels[k]] = term.stored[k]
        for slot in range(start, stop):         # of slots that are not held, values need not be finite
            looks.row[slot - start] = values[slot - start] if terms.holds(slot) else 0.0
        for row in range(rows):
            stored = terms.column(start) + row * terms.stored.capacity
            scores = looks.scores + row
            looks.used[row] = looks.coming[row] != 0.0
            for slot in range(start, stop):
                looks.used[row] = 1.0 if stored[slot - start] != 0.0 else looks.used[row]
                scores[slot * rows] = looks.coming[row] * looks.row[slot - start] + ok_dot(
                    stored, <double*> self.pairs.data + slot * self.pairs.capacity + start, stop - start)
            scores[stop * rows] = looks.coming[row] * own + ok_dot(stored, looks.row, stop - start)
        looks.slack = 0.0
        for slot in range(start, stop + 1):
            for row in range(rows if self.counts(terms, slot) else 0):
                looks.slack = fmax(looks.slack, 1e-9 * fabs(looks.scores[slot * rows + row]))
        for slot in range(start, stop + 1 if rows == 1 else start):
            looks.side[slot] = 1.0 if (looks.coming if slot == stop else terms.column(slot))[0] > 0.0 else -1.0
            if not self.counts(terms, slot):    # it is never a mistake
                looks.side[slot], looks.scores[slot] = 1.0, INFINITY

    cdef double margin_without(self, Coefficients terms, const Looks* looks, Py_ssize_t slot, Py_ssize_t other) noexcept nogil:
        """By how much f without another term gives the point of a slot its own label."""
        cdef Py_ssize_t row, label = 0, start = terms.dictionary.start, stop = terms.dictionary.stop
        cdef Py_ssize_t capacity = 1 if slot == stop else terms.stored.capacity
        cdef Py_ssize_t step = 1 if other == stop else terms.stored.capacity
        cdef const double* own = looks.coming if slot == stop else terms.column(slot)
        cdef const double* gone = looks.coming if other == stop else terms.column(other)
        cdef const double* scores = looks.scores + slot * looks.rows
        cdef double k, best = -INFINITY, score
        if slot < stop and other < stop:
            k = (<double*> self.pairs.data)[slot * self.pairs.capacity + other]
        else:
            k = looks.own if slot == other else looks.row[min(slot, other) - start]
        if looks.rows == 1:
            return looks.side[slot] * (scores[0] - gone[0] * k)
        for row in range(looks.rows):
            if own[row * capacity] > own[label * capacity]:
                label = row
        for row in range(looks.rows):
            score = scores[row] - gone[row * step] * k
            if row != label and looks.used[row] != 0.0 and score > best:
                best = score
        return scores[label] - gone[label * step] * k - best

    cdef Py_ssize_t mistakes_without(self, Coefficients terms, const Looks* looks, Py_ssize_t other) noexcept nogil:
        cdef Py_ssize_t slot, first = terms.dictionary.start, stop = terms.dictionary.stop, mistakes = 0
        cdef const double* values
        cdef double gone
        if looks.rows == 1:                     # the same, without a question inside: most of the time is spent here
            gone = looks.coming[0] if other == stop else terms.column(other)[0]
            values = looks.row - first if other == stop else <double*> self.pairs.data + other * self.pairs.capacity
            for slot in range(first, stop):
                mistakes += looks.side[slot] * (looks.scores[slot] - gone * values[slot]) <= looks.slack
            first = stop
        for slot in range(first, stop + 1):
            if self.counts(terms, slot) and self.margin_without(terms, looks, slot, other) <= looks.slack:
                mistakes += 1
        return mistakes


# ---- Scaling f down before the oldest term goes: the Forgetron's ---------------------------------

cdef inline double won_by(const Term* term) noexcept nogil:
    """What an update brings f nearer to a function with margin 1: |f - u|^2 falls by 2 a - a^2, or more."""
    cdef double a = fabs(term.alpha[0])
    return a * (2.0 - a) if a < 1.0 else 1.0


@cython.final
cdef class ShrinkingBudget(PairBudget):
    """The oldest term goes, after all of f has been shrunk: the self-tuned Forgetron (Dekel, Shalev-Shwartz, Singer 2008).

    With sigma the oldest term's absolute coefficient and mu the margin of its point, both with the candidate there, a removal
    after shrinking by phi costs at most Psi = (sigma phi)^2 + 2 sigma phi - 2 sigma phi^2 mu. phi is as large as can
    be such that the sum of these, Q, stays within 15/32 of what the updates have won: for mistakes of a Perceptron their number,
    M, and for a coefficient a, of a smaller step, 2 a - a^2 (and no more than 1).

    Parameters
    ----------
    size : int
    """

    cdef readonly double won            # by the updates so far: M, their number, for a Perceptron
    cdef readonly double damage         # Q: what removals have cost so far, at most

    def __init__(self, long long size):
        self.most = size
        self.looks_at_candidates = True

    cdef void make_room(self, Coefficients terms, Scratch w, const Term* term, Py_ssize_t i, double size,
                        Outcome* outcome) noexcept nogil:
        """O(terms)."""
        cdef Py_ssize_t slot, oldest = NOBODY, start = terms.dictionary.start
        cdef const double* stored = terms.column(0)
        cdef const double* values
        cdef double frame, sigma, score, square, rest, phi = 1.0
        if terms.dictionary.held < self.most:
            return
        for slot in range(start, terms.dictionary.stop):
            if terms.holds(slot) and (oldest == NOBODY or terms.dictionary.born(slot) < terms.dictionary.born(oldest)):
                oldest = slot
        values = <double*> self.pairs.data + oldest * self.pairs.capacity
        score = term.stored[0] * w.piece.values[oldest - start]
        for slot in range(start, terms.dictionary.stop):
            if terms.holds(slot):
                score += stored[slot] * values[slot]
        frame = term.alpha[0] / term.stored[0] if term.stored[0] != 0.0 else 0.0    # a term of the trace alone: nothing to shrink for
        sigma = fabs(frame * stored[oldest])
        square = sigma * sigma - 2.0 * frame * stored[oldest] * frame * score
        rest = 15.0 / 32.0 * (self.won + won_by(term)) - self.damage
        if square + 2.0 * sigma > rest:         # the smaller root of square phi^2 + 2 sigma phi = rest
            phi = rest / (sigma + sqrt(fmax(0.0, sigma * sigma + square * rest)))
        outcome.slot, outcome.shrink, outcome.loss = oldest, phi, phi * (square * phi + 2.0 * sigma)

    cdef void redistribute(self, Coefficients terms, Scratch w, Term* term, Py_ssize_t i, Outcome* outcome) noexcept nogil:
        PairBudget.redistribute(self, terms, w, term, i, outcome)
        self.won += won_by(term)
        self.damage += outcome.loss

    def state(self, Coefficients terms, slots):
        return {**PairBudget.state(self, terms, slots), "won": self.won, "damage": self.damage}

    def check_numbers(self, state, Py_ssize_t n):
        PairBudget.check_numbers(self, state, n)
        check_number(state["damage"], "damage")
        check_number(state["won"], "won", 0.0)
        if state["damage"] > 15.0 / 32.0 * state["won"] * (1.0 + 1e-9):
            raise ValueError("the damage is more than it may be")

    def restore(self, Coefficients terms, state):
        PairBudget.restore(self, terms, state)
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

# ---- Mergers: two terms of a Gaussian become one at a point between them -------------------------

#
# a has the coefficient 1 and b the coefficient r >= 1, u = rate |a - b|^2.  At z = h a + (1 - h) b the Gaussian is
# exp(-u (1 - h)^2) with a and exp(-u h^2) with b.  A constant c may be added to it, which the height is 1 of.


cdef double best_share(double ratio, double u) noexcept nogil:
    """h, for coefficients of equal signs and ratio = 1 / r: where p + r q is largest, p and q the values at z.

    There ratio (1 - h) p = h q. The ratio p / q is exp(-u (1 - 2 h)), and the root between 0 and 1/2 is the one.
    """
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


cdef double same_sign_loss(double ratio, double u, double shift) noexcept nogil:
    """The least that two terms of equal signs lose when they merge, relative to the smaller one."""
    return merger_loss(1.0 / ratio, u, shift, best_share(ratio, u))


cdef dict tables = {}                   # by shift: what mergers lose, and the error of that


def merger_table(double shift):
    """(table, error): same_sign_loss / (1 - value)^2 over (ratio, Gaussian value), and how far off it is between nodes."""
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
    cdef Py_ssize_t i = <Py_ssize_t> (ratio * GRID), j = <Py_ssize_t> (value * GRID)
    cdef double s, t
    i, j = min(i, <Py_ssize_t> (GRID - 1)), min(j, <Py_ssize_t> (GRID - 1))
    s, t = ratio * GRID - i, value * GRID - j
    table += i * (GRID + 1) + j
    return (1.0 - s) * ((1.0 - t) * table[0] + t * table[1]) + s * ((1.0 - t) * table[GRID + 1] + t * table[GRID + 2])


@cython.final
cdef class MergingBudget(PairBudget):
    """The smallest term and the one that it loses least with become one term, at a point between them.

    For Gaussian kernels, times and plus constants. `pairs` are distances; those of a merged point, as its inner products
    with later examples, are combinations of two rows: |z - x|^2 = h |a - x|^2 + (1 - h) |b - x|^2 - h (1 - h) |a - b|^2.

    Parameters
    ----------
    size : int
    """

    cdef double rate                    # of the Gaussian: exp(-rate |a - b|^2)
    cdef double shift                   # a constant added to it, as a part of its height
    cdef object table_array             # keeps `table` alive
    cdef const double* table            # what a merger loses, by (ratio of coefficients, kernel value)
    cdef double table_error             # within this part of it

    def __init__(self, long long size):
        self.most = size
        self.looks_at_candidates = True

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

    cdef Py_ssize_t numbers(self, Coefficients terms) noexcept:
        return 5 * (terms.dictionary.capacity + 1)

    cdef Partners partners_in(self, Coefficients terms, double* room) noexcept nogil:
        """The partners of the call whose room this is. O(1)."""
        cdef Partners found
        cdef Py_ssize_t size = terms.dictionary.capacity + 1
        found.row, found.coefficient, found.distance = room, room + size, room + 2 * size
        found.value, found.bound = room + 3 * size, room + 4 * size
        return found

    cdef void make_room(self, Coefficients terms, Scratch w, const Term* term, Py_ssize_t i, double size,
                        Outcome* outcome) noexcept nogil:
        """O(terms)."""
        cdef Py_ssize_t evicted, partner
        cdef double share
        cdef Partners others = self.partners_in(terms, w.for_budget)
        terms.dictionary.distances(w.piece, i, self.rate, others.row)
        if terms.dictionary.held < self.most:
            return
        evicted = self.smallest(terms, &others, size)
        outcome.slot = evicted
        if (size if evicted == CANDIDATE else terms.size_of(evicted)) == 0.0:
            return                              # there is nothing to hand over
        self.look_around(terms, &others, evicted)
        if terms.kept() == 1:
            partner = self.cheapest(terms, &others, term, evicted, &share)
        else:
            partner = self.nearest(terms, &others, term, evicted, &share)
        outcome.partner, outcome.share = terms.dictionary.start + partner, share
        if partner == terms.dictionary.size():  # the candidate: the point between them takes the evicted term's slot
            outcome.slot, outcome.partner, outcome.share = CANDIDATE, evicted, 1.0 - share

    cdef void redistribute(self, Coefficients terms, Scratch w, Term* term, Py_ssize_t i, Outcome* outcome) noexcept nogil:
        """O(terms)."""
        cdef double share = outcome.share, u, p, q
        self.take_row(terms, w.for_budget, 0.0)
        if outcome.partner == NOBODY:
            return
        if outcome.slot == CANDIDATE:
            u = self.row[outcome.partner - terms.dictionary.start]
        else:
            u = (<double*> self.pairs.data)[outcome.slot * self.pairs.capacity + outcome.partner]
        p = (exp(-u * (1.0 - share) * (1.0 - share)) + self.shift) / (1.0 + self.shift)
        q = (exp(-u * share * share) + self.shift) / (1.0 + self.shift)
        self.merge(terms, w.piece, term, i, outcome.slot, outcome.partner, share, p, q)

    cdef Py_ssize_t smallest(self, Coefficients terms, Partners* others, double size) noexcept nogil:
        """The slot of the smallest term, the oldest among equals; CANDIDATE, which has a size, if that is smaller."""
        cdef Py_ssize_t j, start = terms.dictionary.start, n = terms.dictionary.size(), found = n
        cdef const char* mine = terms.dictionary.taken.data + start
        cdef const double* coefficient = terms.column(start)
        cdef double least = size
        for j in range(n):
            others.bound[j] = fabs(coefficient[j]) if terms.rows == 1 else terms.size_of(start + j)
            if not mine[j]:
                others.bound[j] = INFINITY
            if others.bound[j] < least:
                least = others.bound[j]
        for j in range(n):
            if others.bound[j] <= least * NEARLY and (found == n or self.born(terms, j) < self.born(terms, found)):
                found = j
        return CANDIDATE if found == n else start + found

    cdef void look_around(self, Coefficients terms, Partners* others, Py_ssize_t evicted) noexcept nogil:
        """Distances of the evicted term from all partners."""
        cdef Py_ssize_t j, start = terms.dictionary.start, n = terms.dictionary.size()
        cdef const char* mine = terms.dictionary.taken.data + start
        cdef const double* found = others.row
        if evicted != CANDIDATE:
            found = <double*> self.pairs.data + evicted * self.pairs.capacity + start
        for j in range(n):
            others.distance[j] = found[j] if mine[j] else INFINITY
        others.distance[n] = INFINITY
        if evicted != CANDIDATE:
            others.distance[evicted - start] = INFINITY
            others.distance[n] = others.row[evicted - start]

    cdef long long born(self, Coefficients terms, Py_ssize_t j) noexcept nogil:
        """When partner j came."""
        return <long long> 1 << 62 if j == terms.dictionary.size() else terms.dictionary.born(terms.dictionary.start + j)

    cdef Py_ssize_t cheapest(self, Coefficients terms, Partners* others, const Term* term, Py_ssize_t evicted,
                             double* share) noexcept nogil:
        """One output: the partner that the evicted term loses least with, and its share h of the point between them.

        Of opposite signs, nothing between is better than the other point itself, h = 0. The table says what a merger
        loses, up to its error, and those that may be the best are computed.
        """
        cdef Py_ssize_t j, start = terms.dictionary.start, n = terms.dictionary.size(), best = NOBODY
        cdef const double* stored = terms.column(start)
        cdef double own, ratio, gap, least = INFINITY
        for j in range(n):
            others.coefficient[j] = stored[j]
            others.bound[j] = -others.distance[j]
        others.coefficient[n], others.bound[n] = term.stored[0], -others.distance[n]
        own = term.stored[0] if evicted == CANDIDATE else terms.column(evicted)[0]
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
                others.bound[j] = merger_loss(1.0 / ratio, others.distance[j], self.shift, best_share(ratio, others.distance[j]))
        least = INFINITY
        for j in range(n + 1):
            least = fmin(least, others.bound[j])
        for j in range(n + 1):                  # the oldest among equals
            if others.bound[j] <= least + 1e-12 and (best == NOBODY or self.born(terms, j) < self.born(terms, best)):
                best = j
        ratio = fmin(own / others.coefficient[best], 1.0)
        share[0] = best_share(ratio, others.distance[best]) if ratio > 0.0 else 0.0
        return best

    cdef Py_ssize_t nearest(self, Coefficients terms, Partners* others, const Term* term, Py_ssize_t evicted,
                             double* share) noexcept nogil:
        """Many outputs: the nearest partner, and the evicted term's share h of the best point between them.

        With coefficients A and B, what remains is |p A + q B|^2; it is largest where its derivative is 0.
        """
        cdef Py_ssize_t j, k, row, start = terms.dictionary.start, n = terms.dictionary.size(), best = NOBODY
        cdef double a, b, least = INFINITY, u, c = self.shift, low, high, h, p, q
        cdef double both = 0.0, of_evicted = 0.0, of_other = 0.0
        for j in range(n + 1):
            least = fmin(least, others.distance[j])
        for j in range(n + 1):
            if others.distance[j] <= least * NEARLY + 1e-12 and (best == NOBODY or self.born(terms, j) < self.born(terms, best)):
                best = j
        for row in range(terms.kept()):
            a = b = 0.0
            for k in range(term.n):
                if term.labels[k] == row:
                    a = b = term.stored[k]
            if evicted != CANDIDATE:
                a = terms.column(evicted)[row * terms.stored.capacity]
            if best != n:
                b = terms.column(start + best)[row * terms.stored.capacity]
            both += a * b
            of_evicted += a * a
            of_other += b * b
        share[0] = 0.0
        if both <= 0.0:
            return best
        u = others.distance[best]
        low, high = (0.0, 0.5) if of_evicted <= of_other else (0.5, 1.0)
        while True:
            h = 0.5 * (low + high)
            if not low < h < high:
                break
            p, q = exp(-u * (1.0 - h) * (1.0 - h)), exp(-u * h * h)
            if (p + c) * p * (1.0 - h) * of_evicted - (q + c) * q * h * of_other \
                    + both * (p * (1.0 - h) * (q + c) - (p + c) * q * h) > 0.0:
                low = h
            else:
                high = h
        p, q = exp(-u * (1.0 - h) * (1.0 - h)) + c, exp(-u * h * h) + c
        a, b = exp(-u) + c, 1.0 + c
        if p * p * of_evicted + q * q * of_other + 2.0 * p * q * both > a * a * of_evicted + b * b * of_other + 2.0 * a * b * both:
            share[0] = h
        return best

    cdef void merge(self, Coefficients terms, Piece piece, const Term* term, Py_ssize_t i, Py_ssize_t other, Py_ssize_t slot,
                    double share, double of_other, double of_slot) noexcept nogil:
        """Another term, or example i, joins the one in a slot: by this share of its point, and its part of coefficients."""
        cdef Py_ssize_t k, row, j, start = terms.dictionary.start, capacity = self.pairs.capacity
        cdef int channel
        cdef double* here = <double*> self.pairs.data + slot * capacity
        cdef const double* there = self.row - start if other == CANDIDATE else <double*> self.pairs.data + other * capacity
        cdef const char* mine = terms.dictionary.taken.data
        cdef double* pairs = <double*> self.pairs.data
        cdef double* stored
        cdef double apart = there[slot] * share * (1.0 - share), distance
        for row in range(terms.channels * terms.rows):
            stored = terms.column(0) + row * terms.stored.capacity
            stored[slot] *= of_slot
            if other != CANDIDATE:
                stored[slot] += of_other * stored[other]
        if other == CANDIDATE:
            for channel in range(terms.channels):
                for k in range(term.n):
                    stored = terms.column(0) + (channel * terms.rows + term.labels[k]) * terms.stored.capacity
                    stored[slot] += of_other * term.stored[channel * term.n + k]
        if share == 0.0:
            return
        for j in range(start, terms.dictionary.stop):
            if j != slot and mine[j]:
                distance = share * there[j] + (1.0 - share) * here[j] - apart
                here[j] = pairs[j * capacity + slot] = distance if distance > 0.0 else 0.0
        if other != CANDIDATE:
            self.row[slot - start] = fmax(0.0, share * self.row[other - start] + (1.0 - share) * self.row[slot - start] - apart)
        terms.dictionary.blend(piece, i, other, slot, share)
        terms.dictionary.point_moved(slot)

    def check_numbers(self, state, Py_ssize_t n):
        PairBudget.check_numbers(self, state, n)
        numbers = np.zeros((n, n))
        numbers[np.triu_indices(n)] = state["between"]
        if (numbers < 0).any() or not self.are_distances(numbers + np.triu(numbers, 1).T, state["points"]):
            raise ValueError("between is not the distances of the points")

    def are_distances(self, numbers, points):
        """Whether numbers are those between points, up to what mergers leave of their digits."""
        digits, points = 1e-9 if points.dtype == np.float64 else 1e-4, points.astype(float)
        with np.errstate(over="ignore", invalid="ignore"):
            square = (points**2).sum(axis=1)
            error = np.abs(numbers - self.rate * (square[:, None] + square - 2.0 * points @ points.T)).max(initial=0.0)
            return bool(error <= digits * self.rate * max(1.0, square.max(initial=0.0)) < np.inf)

    def _check(self, Coefficients terms):
        PairBudget._check(self, terms)
        mine = np.flatnonzero(terms.dictionary.taken.array[0])
        assert self.are_distances(self.pairs.array[np.ix_(mine, mine)], terms.dictionary.points[mine]), "distances are stale"


# ---- Projecting: what the points of terms span ---------------------------------------------------

cdef enum:
    VECTORS = 7         # of a span
    KEPT = 3            # of these, those that are not scratch

cdef double ROUNDING = 2.220446049250313e-16
cdef double STALE = 1e-4                 # the diagonal of an inverse is computed anew before it is further off than that


cdef class Span:
    """What the points of terms span: the Cholesky factor of their kernel matrix, which follows them.

    The points are in the order of their age, so candidates come last.  A candidate adds a row, and what leaves is rotated
    out: both are O(n^2), and stable as long as no point enters that the others nearly span.
    """

    def __init__(self):
        self.factor = Factor(0)
        self.make_room(0)

    cdef make_room(self, Py_ssize_t room):
        """Room for so many points; those that are there stay. O(room^2) when it grows."""
        cdef Py_ssize_t n = self.n
        cdef Py_ssize_t* slots
        cdef double* numbers
        factor = self.factor.with_room(room)
        array, order = aligned_empty((VECTORS, room), np.dtype(float)), np.zeros(room, dtype=np.intp)
        slots, numbers = <Py_ssize_t*> array_data(order), <double*> array_data(array)
        array[:] = 0.0
        if n:
            array[:KEPT, :n] = self.array[:KEPT, :n]
            order[:n] = self.order_array[:n]
        # Nothing below can fail.
        self.factor, self.room, self.array, self.order_array = factor, room, array, order
        self.order, self.own = slots, numbers
        self.spike = self.own + room
        self.wear = self.spike + room
        self.way = self.wear + room
        self.column = self.way + room
        self.scratch = self.column + room

    cdef void look(self, const double* values, Py_ssize_t start, double own, Look* look) noexcept nogil:
        """How a point that has these kernel values with the slots in use lies to the span, which does not change: O(n^2)."""
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

        Return its residual; its projection onto the others has the coefficients -column / column[i], as they were numbered.
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

    def state(self):
        """Named arrays. O(n^2)."""
        return {"factor": self.factor.lower().T[np.triu_indices(self.n)], "spikes": self.array[:2, :self.n].copy(),
                "wear": self.array[2, :self.n].copy()}

    def check_state(self, state, Py_ssize_t n, double floor):
        """ValueError unless a state is about n points that no others nearly span. O(n^3)."""
        factor = np.zeros((n, n))
        factor[np.triu_indices(n)] = check_array(state["factor"], "factor", np.float64, (n * (n + 1) // 2,))
        own, spike = check_array(state["spikes"], "spikes", np.float64, (2, n))
        if (check_array(state["wear"], "wear", np.float64, (n,)) < 0).any():
            raise ValueError("wear is negative")
        with np.errstate(over="ignore"):
            square = (factor**2).sum(axis=0)
        if not (np.isfinite(square).all() and (np.diag(factor) > 0).all() and (np.diag(factor)**2 > 0.5 * floor * square).all()):
            raise ValueError("factor is not that of terms that are independent")
        if not ((own > 0).all() and np.allclose(own, square, rtol=1e-3, atol=0) and (spike * own >= 1 - 1e-6).all()):
            raise ValueError("spikes do not fit the factor")
        if n and not np.allclose(spike, (np.linalg.inv(factor)**2).sum(axis=1), rtol=1e-3):
            raise ValueError("spikes are not the diagonal of the inverse")

    def restore(self, state, slots):
        """Continue from a state that has been checked. O(n^2)."""
        n = len(slots)
        self.factor, self.n = Factor(0), 0
        self.make_room(max(self.room, n))
        upper = np.zeros((n, n))
        upper[np.triu_indices(n)] = state["factor"]
        self.factor.load(upper.T)
        self.array[:2, :n] = state["spikes"]
        self.array[2, :n] = state["wear"]
        self.order_array[:n] = slots
        self.n = n


# ---- Projecting what goes onto what stays --------------------------------------------------------

cdef class ProjectingBudget(Budget):
    """What goes is projected onto what stays: the others get what they can represent of it.

    Parameters
    ----------
    size : int
    tolerance : float
        A candidate of which this part or less of k(x, x) is orthogonal to the others never enters.
    """

    def __init__(self, long long size, double tolerance):
        self.most = size
        self.tolerance = tolerance
        self.looks_at_candidates = True
        self.span = Span()

    def let_candidates_yield(self):
        """When it is full, those that are there stay."""
        self.candidates_yield = True

    cdef Py_ssize_t numbers(self, Coefficients terms) noexcept:
        return 2 + 3 * (terms.dictionary.capacity + 1)

    cdef Look look_in(self, Coefficients terms, double* room) noexcept nogil:
        """What was seen in the call whose room this is. O(1)."""
        cdef Look look
        cdef Py_ssize_t size = terms.dictionary.capacity + 1
        look.own, look.residual = room[0], room[1]
        look.way, look.shares, look.loss = room + 2, room + 2 + size, room + 2 + 2 * size
        return look

    cdef double look(self, Coefficients terms, const double* values, double own, double* room) noexcept nogil:
        """What part of an example with these kernel values is orthogonal to the terms. O(terms^2)."""
        cdef Look look = self.look_in(terms, room)
        self.span.look(values, terms.dictionary.start, own, &look)
        room[0], room[1] = look.own, look.residual
        return look.residual / own

    cdef void make_room(self, Coefficients terms, Scratch w, const Term* term, Py_ssize_t i, double size,
                        Outcome* outcome) noexcept nogil:
        """O(terms^2)."""
        cdef Py_ssize_t place
        cdef Look look
        if not term.looked_at:                  # otherwise the rule has let it be looked at
            self.look(terms, w.piece.values, w.piece.own[i], w.for_budget)
        look = self.look_in(terms, w.for_budget)
        outcome.slot = CANDIDATE
        if look.residual / w.piece.own[i] <= fmax(self.tolerance, self.floor) or term.stays_out:
            return
        if terms.dictionary.held < self.most:
            outcome.slot = NOBODY
        elif not self.candidates_yield:
            place = self.cheapest(terms, term, &look)
            if place < self.span.n:
                outcome.slot = self.span.order[place]

    cdef void redistribute(self, Coefficients terms, Scratch w, Term* term, Py_ssize_t i, Outcome* outcome) noexcept nogil:
        """O(terms^2)."""
        cdef Py_ssize_t place = 0
        cdef Look look = self.look_in(terms, w.for_budget)
        if outcome.slot == CANDIDATE:
            outcome.residual = look.residual
            self.share_out_candidate(terms, term, &look)
            return
        self.span.append(&look)
        self.expected = True
        if outcome.slot != NOBODY:
            while self.span.order[place] != outcome.slot:
                place += 1
            outcome.residual = self.span.leave(place)
            self.share_out(terms, term, &w.old, outcome.slot, place, outcome.residual)

    cdef Py_ssize_t cheapest(self, Coefficients terms, const Term* term, Look* look) noexcept nogil:
        """Whose projection onto the others and the candidate loses least: a place in the span, its end for the candidate."""
        cdef Py_ssize_t j, k, row, rows = terms.kept()
        cdef double* loss = look.loss
        cdef double coefficient, least, share
        least = 0.0
        for k in range(term.n):
            if term.labels[k] < rows:
                least += term.stored[k] * term.stored[k]
        least *= look.residual
        for j in range(self.span.n):
            loss[j] = 0.0
            for row in range(rows):
                coefficient = terms.column(self.span.order[j])[row * terms.stored.capacity]
                loss[j] += coefficient * coefficient
            share = look.shares[j]
            loss[j] /= self.span.spike[j] + share * share / look.residual
            least = fmin(least, loss[j])
        for j in range(self.span.n):
            if loss[j] <= least * NEARLY:
                return j
        return self.span.n

    cdef void share_out_candidate(self, Coefficients terms, const Term* term, const Look* look) noexcept nogil:
        cdef Py_ssize_t k, j
        cdef int channel
        cdef double* stored
        cdef double value
        for channel in range(terms.channels):
            for k in range(term.n):
                value = term.stored[channel * term.n + k]
                stored = terms.column(0) + (channel * terms.rows + term.labels[k]) * terms.stored.capacity
                for j in range(self.span.n):
                    stored[self.span.order[j]] += value * look.shares[j]

    cdef void share_out(self, Coefficients terms, Term* term, Term* old, Py_ssize_t slot, Py_ssize_t place,
                        double residual) noexcept nogil:
        """What the term in a slot leaves to the others and to the candidate, which has a coefficient for every output then.

        It has left the span, where it was in a place.
        """
        cdef Py_ssize_t row, k, j, n = self.span.n - 1      # the last is the candidate
        cdef int channel
        cdef const double* column = self.span.column
        cdef double* stored
        cdef double value
        terms.read(slot, old)
        for row in range(terms.channels * terms.rows):
            value = -old.stored[row] * residual
            stored = terms.column(0) + row * terms.stored.capacity
            for j in range(place):
                stored[self.span.order[j]] += value * column[j]
            for j in range(place, n):
                stored[self.span.order[j]] += value * column[j + 1]
            old.stored[row] = value * column[n + 1]
        for channel in range(terms.channels):
            for k in range(term.n):
                old.stored[channel * terms.rows + term.labels[k]] += term.stored[channel * term.n + k]
        term.n = terms.rows
        for row in range(terms.rows):
            term.labels[row] = <int> row
        for row in range(terms.channels * terms.rows):
            term.stored[row] = old.stored[row]

    cdef void entered(self, Coefficients terms, Py_ssize_t slot) noexcept nogil:
        self.span.order[self.span.n - 1] = slot
        self.expected = False

    cdef void left(self, Coefficients terms, Py_ssize_t slot) noexcept nogil:
        cdef Py_ssize_t place = 0
        if self.expected:                       # it has made room for a candidate
            return
        while self.span.order[place] != slot:
            place += 1
        self.span.leave(place)

    cdef int begin(self, Coefficients terms) except -1:
        self.floor = 1e-10 if terms.dictionary.dtype == np.float64 else 1e-5
        return 0

    cdef int prepare(self, Coefficients terms, Py_ssize_t capacity) except -1:
        if self.span.room < capacity + 1:
            self.span.make_room(capacity + 1)
        return 0

    cdef void arrange(self, Coefficients terms) noexcept nogil:
        """The span follows the terms whatever their slots are called."""
        if terms.dictionary.held == self.span.n:          # otherwise a state is about to be restored
            terms.list_slots(self.span.order)

    def state(self, Coefficients terms, slots):
        return self.span.state()

    def check_numbers(self, state, Py_ssize_t n):
        self.span.check_state(state, n, 1e-10)

    def restore(self, Coefficients terms, state):
        self.span.restore(state, np.argsort(state["birthdays"], kind="stable"))

    def _check(self, Coefficients terms):
        Budget._check(self, terms)
        order = self.span.order_array[:self.span.n]
        assert sorted(order.tolist()) == np.flatnonzero(terms.dictionary.taken.array[0]).tolist()
        assert (np.diff(terms.dictionary.birthdays.array[0, order]) > 0).all()
        own, spike = self.span.array[:2, :self.span.n]
        self.span.factor._check()
        assert self.span.factor.n == self.span.n
        assert np.allclose(own, np.diag(self.span.factor.gram()), rtol=1e-6)
        assert np.allclose(spike, (self.span.factor.inverse()**2).sum(axis=0), rtol=1e-3), "the inverse's diagonal is stale"
