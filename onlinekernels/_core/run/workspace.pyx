"""Scratch of one call: nothing that belongs to a call lives in the model.

Memory grows as a call needs it.  The engine lends workspaces and takes them back, so that a call with one example does
not ask for memory; no two calls at the same time have the same one.
"""
import numpy as np
from cpython.buffer cimport PyBUF_WRITE
from cpython.memoryview cimport PyMemoryView_FromMemory
from libc.string cimport memset
from onlinekernels._core.arrays cimport array_data
from onlinekernels._core.formulas.frame cimport MAX_CHANNELS


cdef class Workspace:
    """What one call needs to learn or evaluate with one function."""

    def __init__(self):
        self.memory = [None] * N_BUFFERS
        self.piece = &self.own_piece
        self.width = -1

    cdef char* buffer(self, int which, Py_ssize_t size) except NULL:
        """Memory of at least so many bytes, which starts at a cache line; 0 when it is new."""
        cdef char* data
        if self.bytes[which] < size or self.data[which] == NULL:
            memory = np.zeros(size + 64, dtype=np.uint8)
            data = array_data(memory)
            self.memory[which] = memory
            self.data[which] = data + (-<Py_ssize_t> data & 63)
            self.bytes[which] = size
        return self.data[which]

    cdef int make_room(self, Py_ssize_t width, int channels, Py_ssize_t nodes) except -1:
        """Room for one example with so many outputs, and for the nodes of their structure."""
        cdef double* row
        cdef Py_ssize_t n = max(width, 2)           # a pair of labels
        self.failure = NONE
        self.channels = channels
        if width == self.width:
            return 0
        row = <double*> self.buffer(EXAMPLE, (7 + 5 * MAX_CHANNELS) * n * sizeof(double))
        self.bare = row
        self.scores = self.bare + MAX_CHANNELS * n
        self.xi = self.scores + n
        self.chi = self.xi + n
        self.probability = self.chi + n
        self.spare = self.probability + n
        self.term.offset = self.spare + 2 * n
        self.term.alpha = self.term.offset + n
        self.term.stored = self.term.alpha + MAX_CHANNELS * n
        self.old.stored = self.term.stored + MAX_CHANNELS * n
        self.sums = self.old.stored + MAX_CHANNELS * n
        self.term.labels = <int*> self.buffer(LABELS, 2 * n * sizeof(int))
        self.old.labels = self.term.labels + n
        self.nodes = <double*> self.buffer(NODES, nodes * sizeof(double))
        self.width = width
        return 0

    cdef void begin_piece(self, Py_ssize_t rows) noexcept:
        """A piece about which nothing is known yet."""
        memset(self.piece, 0, sizeof(Piece))
        self.piece.rows = rows
        self.piece.slot = -1
        self.totals = NULL

    cdef int let_go(self) except -1:
        """The call is over: hold on to nothing that was its own."""
        self.source = self.kept = self.kept_too = self.example = None
        if self.under is not None:
            self.under.let_go()
        return 0

    cdef array(self, char* data, Py_ssize_t rows, Py_ssize_t columns, dtype):
        """Memory of this workspace as a matrix for numpy; it must not outlive the call."""
        return np.frombuffer(PyMemoryView_FromMemory(data, rows * columns * dtype.itemsize, PyBUF_WRITE),
                             dtype=dtype).reshape(rows, columns)


cdef Py_ssize_t apart(Py_ssize_t width) noexcept:
    """A row length of an odd number of cache lines, so that a column spreads over the whole cache."""
    return 16 * (((width + 15) // 16) | 1)
