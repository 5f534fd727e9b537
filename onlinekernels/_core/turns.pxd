"""Taking turns: one thread at a time uses a model, and a fork finds no example half learned."""

cdef int forks_wanted           # forks that wait for pieces to end
cdef long long generation       # forks between the first process and this one


cdef class Alone:
    cdef Turn turn


cdef class Turn:
    cdef object lock
    cdef unsigned long owner    # the thread whose turn it is, while depth > 0
    cdef int depth              # how often it has entered
    cdef long long generation   # of the process that the lock belongs to
    cdef readonly Alone alone   # a context for those who may not be entered again

    cdef enter(self, bint alone)
    cdef leave(self)


cdef class TakesTurns:
    cdef readonly Turn _turn


cdef begin_piece()
cdef void end_piece() noexcept
cdef void call_out() noexcept
cdef void come_back() noexcept
