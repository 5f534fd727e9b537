"""Threads that work for one model."""
cimport cython
from cpython.pythread cimport PyThread_type_lock

# Does task k of those that a context has; neither raises nor waits for the thread that called
ctypedef void (*Task)(void* context, Py_ssize_t k) noexcept nogil


@cython.final
cdef class Crew:
    cdef PyThread_type_lock* begin      # a thread waits at its own until there is work
    cdef PyThread_type_lock finished    # the caller waits here for the last of them
    cdef PyThread_type_lock guard       # of the numbers below
    cdef Py_ssize_t next, n, busy       # the next task, tasks, and threads that are at it
    cdef Py_ssize_t n_threads, capacity     # threads that have begun, and locks for all
    cdef Task task
    cdef void* context
    cdef bint stopped
    cdef long long generation           # of the process that has the threads

    cdef void call(self, Task task, void* context, Py_ssize_t n) noexcept nogil
    cdef void serve(self) noexcept nogil
    cdef void stop(self) noexcept


@cython.final
cdef class Pool:
    cdef Crew crew
    cdef readonly Py_ssize_t wanted     # threads; there are fewer if the system does not give as many

    cdef bint serves(self, Py_ssize_t n_threads) noexcept
    cdef void call(self, Task task, void* context, Py_ssize_t n) noexcept nogil
