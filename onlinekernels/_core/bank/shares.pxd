"""Threads of a call to a bank: each has its share of the blocks."""
from cpython.pythread cimport PyThread_type_lock
from onlinekernels._core.bank.block cimport Examples, Outcome, Store


cdef struct Share:
    # What one thread does of a call: some blocks.
    Store* store                # the models
    const Examples* examples    # of the call
    bint single                 # points, coefficients and x are float, not double
    void* points                # of the models
    void* coef                  # their coefficients
    void* x                     # a row for each model of a block
    Py_ssize_t first, last      # places of its blocks
    Outcome outcome             # of its rows
    PyThread_type_lock done     # free when the thread is done; NULL: it is the calling thread


cdef class Shares:
    cdef Share* of          # each thread
    cdef Py_ssize_t n       # threads
    cdef object scratch     # the memory of their `x`

    cdef void run(self) noexcept
    cdef Outcome outcome(self)
