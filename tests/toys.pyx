# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, auto_pickle=False
"""A rule and a budget that the library does not have: each is a short file that uses the core's contracts and no more.

test_seam.py compiles this and compares it with plain NumPy.
"""
from onlinekernels._core.coefficients cimport NOBODY, Budget, Coefficients
from onlinekernels._core.dictionary cimport Dictionary, SquareTable, Table
from onlinekernels._core.moves cimport Standing, View
from onlinekernels._core.rules cimport Rule
from onlinekernels._core.workspace cimport Workspace


cdef class LeastSquares(Rule):
    """Recursive least squares in the dual: second order, with P = (K + noise I)^-1 over all pairs of slots.

    A newcomer changes all coefficients: with a = P k and r = k(x, x) + noise - k.a, the new one is e / r, and the old
    ones move by -a e / r, where e is the error of the prediction.
    """
    cdef Dictionary dictionary
    cdef SquareTable inverse
    cdef Table scratch                  # a and the change of all coefficients
    cdef double noise, rest

    def __init__(self, step, Dictionary dictionary, double noise):
        Rule.__init__(self, step)
        self.dictionary, self.noise = dictionary, noise
        self.inverse, self.scratch = dictionary.new_square_table(), dictionary.new_table(2)

    cdef void move(self, const Standing* now, View* view, Workspace w) noexcept nogil:
        cdef Py_ssize_t i, j, start = self.dictionary.start, n = self.dictionary.size(), size = self.inverse.capacity
        cdef double* P = <double*> self.inverse.data
        cdef double* a = <double*> self.scratch.data
        cdef double* change = a + size
        self.rest = view.k + self.noise
        for i in range(n):
            a[i] = 0.0
            for j in range(n):
                a[i] += P[(start + i) * size + start + j] * w.values[j]
            self.rest -= w.values[i] * a[i]
        w.move.transform[0][0] = 1.0
        w.move.alpha[0] = (view.target - view.score) / self.rest
        w.move.offset = 0.0
        for i in range(n):
            change[i] = -a[i] * w.move.alpha[0]
        w.term.change = change

    cdef void follow(self, Workspace w) noexcept nogil:
        cdef Py_ssize_t i, j, start = self.dictionary.start, slot = w.piece.slot, size = self.inverse.capacity
        cdef double* P = <double*> self.inverse.data
        cdef double* a = <double*> self.scratch.data
        if slot < 0:
            return
        for i in range(slot - start):           # nobody leaves, so the newcomer is the last
            for j in range(slot - start):
                P[(start + i) * size + start + j] += a[i] * a[j] / self.rest
            P[(start + i) * size + slot] = P[slot * size + start + i] = -a[i] / self.rest
        P[slot * size + slot] = 1.0 / self.rest


cdef class Halfway(Rule):
    """Half of an error goes to the offset, and a tenth of it to a term."""

    cdef void move(self, const Standing* now, View* view, Workspace w) noexcept nogil:
        w.move.transform[0][0] = 1.0
        w.move.alpha[0] = 0.1 * (view.target - view.score)
        w.move.offset = 0.5 * (view.target - view.score)


cdef class Merging(Budget):
    """The oldest term goes, and its nearest neighbour inherits its coefficient, projected: for kernels with k(x, x) = 1."""

    def __init__(self, long long size):
        self.most = size
        self.looks_at_rows = True

    cdef Py_ssize_t victim(self, Coefficients terms, double size) noexcept nogil:
        cdef Py_ssize_t slot, oldest = NOBODY
        if terms.count < self.most:
            return NOBODY
        for slot in range(terms.dictionary.start, terms.dictionary.stop):
            if terms.holds(slot) and (oldest == NOBODY or terms.dictionary.born(slot) < terms.dictionary.born(oldest)):
                oldest = slot
        return oldest

    cdef void hand_on(self, Coefficients terms, Workspace w, Py_ssize_t slot) noexcept nogil:
        cdef Py_ssize_t other, heir = NOBODY, start = terms.dictionary.start
        for other in range(start, terms.dictionary.stop):
            if other != slot and terms.holds(other) and (heir == NOBODY or w.slot_work[other - start] > w.slot_work[heir - start]):
                heir = other
        if heir != NOBODY:
            terms.column(heir)[0] += terms.column(slot)[0] * w.slot_work[heir - start]
