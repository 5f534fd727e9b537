"""Tables: numbers per slot of a dictionary, which grow and move with the slots.

A move is prepared first, which may fail, and then carried out, which cannot.
"""
import numpy as np
from libc.string cimport memcpy, memmove, memset
from onlinekernels._core.arrays cimport array_data
from onlinekernels._core.arrays import aligned_empty


cdef class Table:
    """Numbers per slot: they grow and move with the slots.

    Parameters
    ----------
    rows : int
    dtype : numpy dtype
    """

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
        return 0

    cdef int prepare(self, Py_ssize_t capacity, bint in_place) except -1:
        """Have an array ready for so many slots, unless the next move is one in place. O(1), and the memory."""
        self.coming = None
        if not in_place:
            self.coming = aligned_empty(self.shape(capacity), self.dtype)
            self.coming_data = array_data(self.coming)
        return 0

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
            gather_row(self.data + row * self.capacity * self.item, new + row * capacity * self.item, order, n, self.item)
            memset(new + (row * capacity + n) * self.item, 0, (capacity - n) * self.item)

    cdef void clear(self, Py_ssize_t slot) noexcept nogil:
        """A slot is free: make its numbers 0, and those in the tables behind this one. O(rows), for pairs O(capacity)."""
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
        return 0

    cdef void gather(self, char* new, const Aged* order, Py_ssize_t n, Py_ssize_t capacity) noexcept nogil:
        cdef Py_ssize_t row, size = capacity * sizeof(double), first = n * sizeof(double), used
        for row in range(n):
            gather_row(self.data + order[row].slot * self.capacity * sizeof(double), new + row * size, order, n, sizeof(double))
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
    """Numbers per slot that are next to each other, a row for each.

    Parameters
    ----------
    columns : int
    dtype : numpy dtype
    """

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
