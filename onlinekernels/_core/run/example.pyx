"""One example as form and rule see it: what is known of it, and what has been decided about it.

`evaluate` and `decide` write here and nowhere else; `carry_out` reads.
"""
from onlinekernels._core.formulas.frame cimport MAX_CHANNELS

cdef enum ExampleBuffer:
    NUMBERS
    LABELS
    NODES
    DECISION


cdef class Example(Memory):
    """What is known of an example, and what has been decided about it."""

    def __cinit__(self):
        self.width = -1

    cdef int make_room(self, Py_ssize_t width, int channels, Py_ssize_t nodes, Py_ssize_t decision) except -1:
        """Room for so many outputs and nodes of their structure, and for a decision of so many bytes. O(width) if it is new."""
        cdef Py_ssize_t n = max(width, 2)           # a pair of labels
        cdef double* row
        self.failure = NONE
        self.channels = channels
        self.decision = self.buffer(DECISION, decision)
        if width == self.width:
            return 0
        row = <double*> self.buffer(NUMBERS, (8 + 3 * MAX_CHANNELS + WORK_ROWS) * n * sizeof(double))
        self.bare = row
        self.term.alpha = self.bare + MAX_CHANNELS * n
        self.term.stored = self.term.alpha + MAX_CHANNELS * n
        self.term.offset = self.term.stored + MAX_CHANNELS * n
        self.scores = self.term.offset + n
        self.derivative = self.scores + n
        self.curvature = self.derivative + n
        self.probability = self.curvature + n
        self.distance = self.probability + n
        self.shrunk = self.distance + n
        self.innovation = self.shrunk + n
        self.work = self.innovation + n
        self.term.labels = <int*> self.buffer(LABELS, n * sizeof(int))
        self.nodes = <double*> self.buffer(NODES, nodes * sizeof(double))
        self.width = width
        return 0
