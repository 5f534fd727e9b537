"""Taking turns: many look at a model and predict, or one learns."""

cdef long long generation       # forks between the first process and this one

cdef enum Purpose:
    LOOK
    PREDICT
    LEARN


cdef class Way:
    cdef Turn turn              # whose way in it is
    cdef int purpose            # a `Purpose`


cdef class Turn:
    cdef dict inside            # thread: how often it has entered
    cdef bint is_alone          # whether one of them learns
    cdef unsigned long learner  # that one
    cdef list waiting           # locks, one for each thread that waits
    cdef list learners          # threads among them that want to learn
    cdef int due                # others that the last learner has let in
    cdef bint cut_off           # whether another thread was learning when this process was forked
    cdef long long generation   # of the process that all this belongs to
    cdef readonly Way alone     # a context for those who learn
    cdef readonly Way shared    # a context for those who predict

    cdef enter(self, int purpose)
    cdef leave(self)
    cdef bint must_wait(self, unsigned long me, int purpose)
    cdef wait(self, unsigned long me, int purpose)
    cdef wake(self)
    cdef mind_forks(self)
    cdef refuse_what_is_cut_off(self)


cdef class TakesTurns:
    cdef readonly Turn _turn            # of the model
