"""Threads that work for one model.

They are made once, report when they have begun, wait without the interpreter's lock, and end when their model is gone.
Whoever calls them waits for all tasks, also without the interpreter's lock: no Python runs in the calling thread, so no
signal comes in between, and it cannot fork.  A process that another thread has forked has no threads but that one, so
it makes a pool of its own.  At the end of the interpreter nobody waits for them.
"""
from _thread import start_new_thread

from cpython.pythread cimport (PyThread_acquire_lock, PyThread_allocate_lock, PyThread_free_lock, PyThread_release_lock,
                               PyThread_type_lock, WAIT_LOCK)
from libc.stdlib cimport calloc, free

from onlinekernels._core.lock cimport generation


cdef PyThread_type_lock closed_lock() except NULL:
    """A lock that is held: who waits for it goes on when somebody releases it."""
    cdef PyThread_type_lock lock = PyThread_allocate_lock()
    if lock == NULL:
        raise MemoryError("there is no memory for a lock")
    PyThread_acquire_lock(lock, WAIT_LOCK)
    return lock


cdef void free_lock(PyThread_type_lock lock) noexcept:
    if lock != NULL:
        PyThread_free_lock(lock)


cdef class Crew:
    """What the threads of a pool know. They keep it, and it does not keep the pool, so that the pool can go.

    Parameters
    ----------
    n_threads : int
        At most so many.
    """

    def __cinit__(self, Py_ssize_t n_threads):
        cdef Py_ssize_t i
        self.generation, self.capacity = generation, n_threads
        self.begin = <PyThread_type_lock*> calloc(n_threads, sizeof(PyThread_type_lock))
        if self.begin == NULL:
            raise MemoryError("there is no memory for locks")
        self.finished, self.guard = closed_lock(), closed_lock()
        PyThread_release_lock(self.guard)
        for i in range(n_threads):
            self.begin[i] = closed_lock()

    def __dealloc__(self):
        cdef Py_ssize_t i
        if self.generation != generation:       # threads that are gone may have held them
            return
        for i in range(self.capacity if self.begin != NULL else 0):
            free_lock(self.begin[i])
        free_lock(self.finished)
        free_lock(self.guard)
        free(self.begin)

    def work(self):
        """What a thread does until the pool is gone."""
        with nogil:
            self.serve()

    cdef void serve(self) noexcept nogil:
        """Report, so that whoever calls knows of this thread, and do what there is to do."""
        cdef Py_ssize_t k, which
        cdef bint is_last
        PyThread_acquire_lock(self.guard, WAIT_LOCK)
        which = self.n_threads
        self.n_threads += 1
        PyThread_release_lock(self.guard)
        while True:
            PyThread_acquire_lock(self.begin[which], WAIT_LOCK)
            if self.stopped:
                return
            while True:
                PyThread_acquire_lock(self.guard, WAIT_LOCK)
                k = self.next
                self.next += 1
                is_last = False
                if k >= self.n:
                    self.busy -= 1
                    is_last = self.busy == 0
                PyThread_release_lock(self.guard)
                if k >= self.n:
                    break
                self.task(self.context, k)
            if is_last:
                PyThread_release_lock(self.finished)

    cdef void call(self, Task task, void* context, Py_ssize_t n) noexcept nogil:
        cdef Py_ssize_t i, there
        PyThread_acquire_lock(self.guard, WAIT_LOCK)
        there = self.n_threads
        self.task, self.context, self.n, self.next, self.busy = task, context, n, 0, there
        PyThread_release_lock(self.guard)
        for i in range(there):
            PyThread_release_lock(self.begin[i])
        PyThread_acquire_lock(self.finished, WAIT_LOCK)

    cdef void stop(self) noexcept:
        """Let the threads end, which wait."""
        cdef Py_ssize_t i
        if self.generation == generation:
            self.stopped = True
            for i in range(self.capacity):
                PyThread_release_lock(self.begin[i])


cdef class Pool:
    """Threads that share the tasks of a call: each takes the next one as soon as it is free.

    Parameters
    ----------
    n_threads : int
        There are fewer if the system does not give as many.
    """

    def __init__(self, Py_ssize_t n_threads):
        self.crew, self.wanted = Crew(n_threads), n_threads
        for _ in range(n_threads):
            try:
                start_new_thread(self.crew.work, ())
            except RuntimeError:                # no more threads, or the interpreter is about to end
                return

    def __dealloc__(self):
        if self.crew is not None:
            self.crew.stop()

    @property
    def n_threads(self):
        """How many have begun; one that finds no memory for its first step never does."""
        return self.crew.n_threads

    cdef bint serves(self, Py_ssize_t n_threads) noexcept:
        """Whether it is a pool of so many threads, and of this process."""
        return self.wanted == n_threads and self.crew.generation == generation

    cdef void call(self, Task task, void* context, Py_ssize_t n) noexcept nogil:
        """Do the tasks 0, ..., n - 1, in this order as threads are free; there must be threads."""
        self.crew.call(task, context, n)
