"""Taking turns: one thread at a time uses a model, and a fork finds no example half learned.

A model has one lock, so no order of locks can go wrong.  Two ways lead in:

* ``with turn:`` to read.  The thread whose turn it is may enter again: a loss or kernel of the user's, or a
  signal handler, runs between two examples, where the model is in one state.
* ``with turn.alone:`` to learn or predict, which use the model's scratch memory: nobody may enter again.

A fork copies the memory of a model, but not the threads that use it.  So a fork waits until no thread is in the
middle of a piece, and no thread begins one meanwhile; in the child, locks that other threads held are new ones.
"""
import os
import time
from _thread import allocate_lock

from cpython.pythread cimport PyThread_get_thread_ident

cdef int pieces = 0             # pieces that are being learned just now
cdef dict called_out = {}       # thread: how many pieces it has begun and left for Python code of the user's
cdef double PATIENCE = 5.0      # seconds that a fork waits


cdef class Alone:
    """The context ``turn.alone``."""

    def __enter__(self):
        self.turn.enter(True)

    def __exit__(self, *error):
        self.turn.leave()


cdef class Turn:
    """Whose turn it is.

    >>> turn = Turn()
    >>> with turn, turn:
    ...     pass
    >>> with turn.alone, turn.alone:
    ...     pass
    Traceback (most recent call last):
    RuntimeError: This model is at work already: ...
    """

    def __init__(self):
        self.lock = allocate_lock()
        self.generation = generation
        self.alone = Alone()
        self.alone.turn = self

    def __enter__(self):
        self.enter(False)

    def __exit__(self, *error):
        self.leave()

    cdef enter(self, bint alone):
        cdef unsigned long me = PyThread_get_thread_ident()
        if self.depth and self.owner == me:
            if alone:
                raise RuntimeError("This model is at work already: a loss or kernel of your own, or a signal handler, "
                                   "must not learn or predict with the model that it interrupts.")
            self.depth += 1
            return
        if self.generation != generation:       # whoever held the lock is not in this process
            self.lock = allocate_lock()
            self.depth = 0
            self.generation = generation
        self.lock.acquire()
        self.owner = me
        self.depth = 1

    cdef leave(self):
        self.depth -= 1
        if not self.depth:
            self.lock.release()


cdef class TakesTurns:
    """Base of what several threads may use: it has a turn from the beginning, without a ``__new__`` of its own."""

    def __cinit__(self, *args, **kwargs):
        self._turn = Turn()


cdef begin_piece():
    """Announce a piece, after forks that wait have happened; to be called with the interpreter's lock."""
    global pieces
    while forks_wanted and PyThread_get_thread_ident() not in called_out:
        time.sleep(1e-4)
    pieces += 1


cdef void end_piece() noexcept:
    global pieces
    pieces -= 1


cdef void call_out() noexcept:
    """In the middle of a piece, Python code of the user's is about to run: a fork from there must not wait for it."""
    me = PyThread_get_thread_ident()
    called_out[me] = called_out.get(me, 0) + 1


cdef void come_back() noexcept:
    me = PyThread_get_thread_ident()
    called_out[me] -= 1
    if not called_out[me]:
        del called_out[me]


def _before_fork():
    global forks_wanted
    me, deadline = PyThread_get_thread_ident(), time.monotonic() + PATIENCE
    forks_wanted += 1
    while pieces > called_out.get(me, 0) and time.monotonic() < deadline:
        time.sleep(1e-4)


def _after_fork_in_parent():
    global forks_wanted
    forks_wanted -= 1


def _after_fork_in_child():
    global forks_wanted, generation, pieces
    me = PyThread_get_thread_ident()
    for thread in [thread for thread in called_out if thread != me]:
        del called_out[thread]
    pieces = called_out.get(me, 0)
    forks_wanted = 0
    generation += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent,
                        after_in_child=_after_fork_in_child)
