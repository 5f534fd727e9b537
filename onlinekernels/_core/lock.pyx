"""Taking turns: many look at a model and predict, or one learns.

A call has its scratch memory to itself, so only learning has to be alone. To leave takes no memory and cannot fail, so
no model stays locked. Three ways lead in:

* ``with lock:`` to look.  A thread that is in already may enter again: a loss or kernel of the user's, or a
  signal handler, runs between two examples, where the model is in one state.
* ``with lock.shared:`` to predict, and
* ``with lock.alone:`` to learn: a thread that is in already may not enter again.

Whoever comes while somebody waits to learn waits too; but those who have waited for a learner go in before the next
one.

A fork copies the memory of a model, but not the threads that use it: in the child, other threads have left, and what
one of them was learning refuses to be used.
"""
import os
from _thread import allocate_lock

cimport cython
from cpython.pythread cimport PyThread_get_thread_ident
from libc.stdlib cimport free, realloc

cdef enum Purpose:
    LOOK
    PREDICT
    LEARN

cdef double NAP = 1.0           # seconds of waiting for a turn, before a look whether this is another process by now
cdef unsigned long survivor     # the one thread of its parent that this process has


cdef struct Visit:
    unsigned long thread
    Py_ssize_t depth            # how often it has entered


cdef class Way:
    """The contexts ``lock.alone`` and ``lock.shared``."""

    cdef ReadWriteLock lock              # whose way in it is
    cdef int purpose            # a `Purpose`

    def __enter__(self):
        self.lock.enter(self.purpose)

    def __exit__(self, kind, error, traceback):
        self.lock.leave()


cdef class ReadWriteLock:
    """Who is in. All of it is done under the interpreter's lock, or this object's where there is none, which only
    `wait` releases.

    >>> lock = ReadWriteLock()
    >>> with lock, lock:
    ...     pass
    >>> with lock.alone, lock.shared:
    ...     pass
    Traceback (most recent call last):
    RuntimeError: This model is at work already: ...
    """

    cdef Visit* visits          # of the threads that are in,
    cdef Py_ssize_t n_visits    # so many,
    cdef Py_ssize_t capacity    # and that there is memory for
    cdef Py_ssize_t expected    # threads that wait, and have their memory already
    cdef bint is_alone          # whether one of them learns
    cdef unsigned long learner  # that one
    cdef list waiting           # locks, one for each thread that waits
    cdef list learners          # threads among them that want to learn
    cdef int due                # others that the last learner has let in
    cdef bint cut_off           # whether another thread was learning when this process was forked
    cdef long long generation   # of the process that all this belongs to
    cdef readonly Way alone     # a context for those who learn
    cdef readonly Way shared    # a context for those who predict

    def __init__(self):
        self.waiting, self.learners = [], []
        self.generation = generation
        self.alone, self.shared = Way(), Way()
        self.alone.lock = self.shared.lock = self
        self.alone.purpose, self.shared.purpose = LEARN, PREDICT

    def __enter__(self):
        self.enter(LOOK)

    def __exit__(self, kind, error, traceback):
        self.leave()

    def __dealloc__(self):
        free(self.visits)

    @property
    def n_waiting(self):
        """How many threads wait."""
        return len(self.waiting)

    cdef Visit* visit(self, unsigned long thread) noexcept:
        """That of a thread that is in, or NULL."""
        cdef Py_ssize_t i
        for i in range(self.n_visits):
            if self.visits[i].thread == thread:
                return &self.visits[i]
        return NULL

    cdef int expect(self) except -1:
        """Get the memory for one more visit."""
        cdef Py_ssize_t capacity = 2 * (self.n_visits + self.expected + 1)
        if self.n_visits + self.expected == self.capacity:
            visits = <Visit*> realloc(self.visits, capacity * sizeof(Visit))
            if visits == NULL:
                raise MemoryError()
            self.visits, self.capacity = visits, capacity

    cdef enter(self, int purpose):
        cdef unsigned long me = PyThread_get_thread_ident()
        cdef Visit* mine
        with cython.critical_section(self):
            self.mind_forks()
            self.refuse_what_is_cut_off()
            mine = self.visit(me)
            if mine != NULL:
                if purpose != LOOK:
                    raise RuntimeError("This model is at work already: a loss or kernel of your own, or a signal "
                                       "handler, must not learn or predict with the model that it interrupts.")
                mine.depth += 1
                return
            self.expect()
            if self.must_wait(me, purpose):
                self.expected += 1
                try:
                    self.wait(me, purpose)
                finally:
                    self.expected -= 1
            self.visits[self.n_visits] = Visit(me, 1)
            self.n_visits += 1
            if purpose == LEARN:
                self.is_alone, self.learner = True, me

    cdef void leave(self) noexcept:
        cdef Visit* mine
        with cython.critical_section(self):
            self.mind_forks()
            mine = self.visit(PyThread_get_thread_ident())
            mine.depth -= 1
            if mine.depth:
                return
            self.n_visits -= 1
            mine[0] = self.visits[self.n_visits]
            if self.is_alone:
                self.is_alone = False
                self.due += len(self.waiting) - len(self.learners)
            if self.waiting:
                self.wake()

    cdef bint must_wait(self, unsigned long me, int purpose):
        if purpose == LEARN:
            return self.n_visits > 0 or self.due > 0
        # A handler that interrupts a thread which waits to learn must not wait for it.
        return self.is_alone or len(self.learners) > 0 and me not in self.learners

    cdef wait(self, unsigned long me, int purpose):
        """Until there is a turn; everybody is woken and looks again, as nobody may be woken too little."""
        cdef bint is_due
        cdef long long before = generation
        while True:
            lock = allocate_lock()
            lock.acquire()
            self.waiting.append(lock)
            if purpose == LEARN:
                self.learners.append(me)
            try:
                while not lock.acquire(True, NAP) and generation == before:
                    pass
            except BaseException:               # Ctrl-C
                self.mind_forks()
                if lock in self.waiting:
                    self.waiting.remove(lock)
                elif purpose != LEARN and self.due:
                    self.due -= 1
                if purpose == LEARN and me in self.learners:
                    self.learners.remove(me)
                self.wake()
                raise
            if generation != before:            # a signal handler has forked, and nobody here would wake us
                self.mind_forks()
                self.refuse_what_is_cut_off()
                if not self.must_wait(me, purpose):
                    return
                before = generation
                continue
            if purpose == LEARN:
                self.learners.remove(me)
                if not self.must_wait(me, purpose):
                    return
            else:
                is_due = self.due > 0
                if is_due:
                    self.due -= 1
                if not self.is_alone and (is_due or not self.must_wait(me, purpose)):
                    return

    cdef void wake(self) noexcept:
        for lock in self.waiting:
            lock.release()
        self.waiting.clear()

    cdef void mind_forks(self) noexcept:
        """After a fork: the threads that were in are not in this process."""
        cdef Visit* kept = self.visit(survivor) # a thread that began since may have the name of one that is gone
        if self.generation == generation:
            return
        self.generation = generation
        self.cut_off = self.cut_off or self.is_alone and self.learner != survivor
        self.n_visits = 0
        if kept != NULL:
            self.visits[0], self.n_visits = kept[0], 1
        self.is_alone = self.is_alone and self.learner == survivor
        self.waiting.clear()
        self.learners.clear()
        self.due = 0

    cdef refuse_what_is_cut_off(self):
        if self.cut_off:
            raise RuntimeError("This model was learning in another thread when the process was forked: its copy "
                               "here is incomplete.")


cdef class Locked:
    """Base of what several threads may use: it has a lock from the beginning, without a ``__new__`` of its own."""

    cdef readonly ReadWriteLock _lock            # of the model

    def __cinit__(self, *args, **kwargs):
        self._lock = ReadWriteLock()


def _after_fork():
    global generation, survivor
    survivor = PyThread_get_thread_ident()
    generation += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
