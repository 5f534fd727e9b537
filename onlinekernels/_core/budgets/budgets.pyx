"""Budgets: which terms of a function stay. `Budget` has the contract."""
import numpy as np
from libc.math cimport ceil, pow
from onlinekernels._core.formulas.lots cimport scrambled
from onlinekernels._core.functions.coefficients cimport NEWCOMER, NOBODY, Budget, Coefficients


cdef class Unlimited(Budget):
    """Every term stays."""

    def check_state(self, birthdays):
        check_order(birthdays)


cdef class Queue(Budget):
    """Terms go in the order in which they came."""

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
        assert sorted(order) == np.flatnonzero(terms.mine.array[0]).tolist()
        assert (np.diff(terms.dictionary.birthdays.array[0, order]) > 0).all()


cdef class Recent(Queue):
    """The latest `size` terms: V 5.5.

    Parameters
    ----------
    size : int
    """

    def __init__(self, long long size):
        self.most = size

    cdef Py_ssize_t victim(self, Coefficients terms, double size) noexcept nogil:
        return self.oldest() if self.n >= self.most else NOBODY

    def check_state(self, birthdays):
        """In the order of sums, the terms are a circle that begins anywhere."""
        Budget.check_state(self, birthdays)
        oldest = int(np.argmin(birthdays)) if len(birthdays) else 0
        if oldest and len(birthdays) < self.most:
            raise ValueError("the terms are a circle before there are as many as the budget allows")
        check_order(np.roll(birthdays, -oldest))


cdef class RandomRemoval(Queue):
    """A term that is drawn by lot goes: Cavallanti, Cesa-Bianchi, Gentile (2007).

    The lot depends on the seed and on the birthday of the youngest term, and so on nothing but the examples.

    Parameters
    ----------
    size, seed : int
    """

    def __init__(self, long long size, unsigned long long seed):
        self.most = size
        self.seed = seed

    cdef Py_ssize_t victim(self, Coefficients terms, double size) noexcept nogil:
        cdef unsigned long long lot
        if self.n < self.most:
            return NOBODY
        lot = <unsigned long long> terms.dictionary.born(self.order[(self.first + self.n - 1) % self.room])
        lot = scrambled(scrambled(self.seed) + lot)
        return self.order[(self.first + <Py_ssize_t> (lot % <unsigned long long> self.n)) % self.room]


cdef class Window(Queue):
    """The terms of the latest `steps` examples: K Fig. 1.

    Parameters
    ----------
    steps : int
    """

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


cdef class Sublinear(Window):
    """A window that grows like t^exponent: K Thm 6 with its erratum, the printed window shrinks once, this one never does.

    Parameters
    ----------
    start : int
        Its length while the model is young.
    exponent : float
    """

    def __init__(self, long long start, double exponent):
        Window.__init__(self, start)
        self.exponent = exponent

    cdef long long length(self, long long t) noexcept nogil:
        """pow may land just above a whole number, so the ceiling forgives 1e-9."""
        cdef double length = ceil(pow(<double> t, self.exponent) - 1e-9)
        return <long long> length if length > <double> self.steps else self.steps


cdef class Smallest(Budget):
    """The `size` terms with the largest coefficients: I 2.1. A heap of slots, O(log size) per term.

    Parameters
    ----------
    size : int
    """

    def __init__(self, long long size):
        self.most = size

    cdef Py_ssize_t victim(self, Coefficients terms, double size) noexcept nogil:
        """Among equals the oldest goes, not the newcomer."""
        self.close(terms)
        if self.n < self.most:
            return NOBODY
        return NEWCOMER if size < self.key[self.heap[0]] else self.heap[0]

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
        """Nearly always the first, for a newcomer; if another one, the last takes its place."""
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
        assert sorted(heap) == np.flatnonzero(terms.mine.array[0]).tolist()
        for i in range(1, self.n):
            assert not self.goes_before(terms, heap[i], heap[(i - 1) // 2]), "the heap is out of order"


def check_order(birthdays):
    """ValueError unless terms are in the order of their birthdays."""
    if len(birthdays) and not (np.diff(birthdays) > 0).all():
        raise ValueError("the terms are not in the order of their birthdays")
