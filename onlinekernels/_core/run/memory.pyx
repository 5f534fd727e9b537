"""Memory of one call: nothing that belongs to a call lives in the model.

What a call needs is in three objects: the piece of rows that is open (`Piece`), what one kind of function computes on the
way (a subclass of `Scratch` for each), and one example as form and rule see it (`Example`).  The engine lends them and takes
them back, so that a call with one example does not ask for memory; no two calls at the same time have the same ones.
"""
import numpy as np
from cpython.buffer cimport PyBUF_WRITE
from cpython.memoryview cimport PyMemoryView_FromMemory
from onlinekernels._core.arrays cimport array_data


cdef class Memory:
    """Buffers that grow as a call needs them; who has them numbers them, from 0 to MOST_BUFFERS - 1."""

    def __cinit__(self, *args, **kwargs):
        self.blocks = [None] * MOST_BUFFERS

    cdef char* buffer(self, int which, Py_ssize_t size) except NULL:
        """At least so many bytes, which start at a cache line; 0 when they are new. O(1), O(size) when they are."""
        cdef char* data
        if not 0 <= which < MOST_BUFFERS:
            raise IndexError(f"there is no buffer {which}: MOST_BUFFERS is {MOST_BUFFERS}")
        if self.bytes[which] < size or self.data[which] == NULL:
            block = np.zeros(size + 64, dtype=np.uint8)
            data = array_data(block)
            self.blocks[which] = block
            self.data[which] = data + (-<Py_ssize_t> data & 63)
            self.bytes[which] = size
        return self.data[which]

    def reserve(self, int which, Py_ssize_t size):
        """See to it that a buffer has at least so many bytes; how many it has. As `buffer`."""
        self.buffer(which, size)
        return self.bytes[which]

    cdef array(self, char* data, Py_ssize_t rows, Py_ssize_t columns, dtype):
        """Numbers in memory as a matrix for numpy; it must not outlive the call. O(1)."""
        return np.frombuffer(PyMemoryView_FromMemory(data, rows * columns * dtype.itemsize, PyBUF_WRITE),
                             dtype=dtype).reshape(rows, columns)
