"""Threads of a call to a bank: each has its share of the blocks, and knows nothing of the interpreter."""
from cpython.pythread cimport (PyThread_acquire_lock, PyThread_allocate_lock, PyThread_free_lock, PyThread_release_lock,
                               PyThread_start_new_thread, WAIT_LOCK)
from libc.stdlib cimport calloc, free
from onlinekernels._core.arrays cimport array_data
from onlinekernels._core.bank.block cimport Outcome, visit_places
from onlinekernels._core.run.example cimport NONE


cdef void work(void* given) noexcept nogil:
    """Do one's share, and say so."""
    cdef Share* share = <Share*> given
    visit_places(share.store, share.single, share.points, share.coef, share.x, share.examples, share.first, share.last,
                 &share.outcome)
    if share.done != NULL:
        PyThread_release_lock(share.done)


cdef class Shares:
    """What each thread of a call does: places first, ..., last - 1, in n parts; scratch has a row for each thread."""

    def __cinit__(self, Py_ssize_t n, Py_ssize_t first, Py_ssize_t last, scratch):
        cdef Py_ssize_t i
        cdef char* x = array_data(scratch)
        self.scratch = scratch
        self.of = <Share*> calloc(n, sizeof(Share))
        if self.of == NULL:
            raise MemoryError("There is no memory for threads.")
        self.n = n
        for i in range(n):
            self.of[i].first, self.of[i].last = first + (last - first) * i // n, first + (last - first) * (i + 1) // n
            self.of[i].outcome.row = -1
            self.of[i].x = x + i * (<Py_ssize_t> scratch.strides[0])
            if i > 0:
                self.of[i].done = PyThread_allocate_lock()
                if self.of[i].done == NULL:
                    raise MemoryError("There is no memory for threads.")

    def __dealloc__(self):
        cdef Py_ssize_t i
        for i in range(self.n):
            if self.of[i].done != NULL:
                PyThread_free_lock(self.of[i].done)
        free(self.of)

    cdef void run(self) noexcept:
        """Do all shares, each in a thread of its own; signals wait.  If there is no thread to be had, its share is ours."""
        cdef Py_ssize_t i
        for i in range(1, self.n):
            PyThread_acquire_lock(self.of[i].done, WAIT_LOCK)
            if PyThread_start_new_thread(work, &self.of[i]) == <unsigned long> -1:
                with nogil:
                    work(&self.of[i])
        with nogil:
            work(&self.of[0])
            for i in range(1, self.n):
                PyThread_acquire_lock(self.of[i].done, WAIT_LOCK)

    cdef Outcome outcome(self):
        """All outcomes as one. O(threads)."""
        cdef Outcome total = Outcome(0, -1, NONE)
        cdef Py_ssize_t i
        for i in range(self.n):
            total.learned += self.of[i].outcome.learned
            if self.of[i].outcome.row >= 0 and (total.row < 0 or self.of[i].outcome.row < total.row):
                total.row, total.reason = self.of[i].outcome.row, self.of[i].outcome.reason
        return total
