"""Budgets that keep all terms, or the latest, or those that a lot spares."""
import numpy as np
from libc.math cimport ceil, pow
from onlinekernels._core.formulas.lots cimport scrambled
from onlinekernels._core.functions.coefficients cimport NOBODY, Budget, Coefficients


cdef class UnlimitedBudget(Budget):
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


cdef class RecentBudget(Queue):
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


cdef class RandomBudget(Queue):
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


cdef class WindowBudget(Queue):
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


cdef class SublinearBudget(WindowBudget):
    """A window that grows like t^exponent: K Thm 6 with its erratum, the printed window shrinks once, this one never does.

    Parameters
    ----------
    start : int
        Its length while the model is young.
    exponent : float
    """

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
