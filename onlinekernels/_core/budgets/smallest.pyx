"""A budget that keeps the terms with the largest coefficients, in a heap."""
import numpy as np
from onlinekernels._core.functions.coefficients cimport NEWCOMER, NOBODY, Budget, Coefficients


cdef class SmallestBudget(Budget):
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
