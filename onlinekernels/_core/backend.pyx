"""The protocol of everything that learns: engines, local averages, and ensembles of these.

A block of rows is learned in two steps.  `open` may fail, for want of memory, by user code, bad values or a signal, and has
then changed nothing.  Then `test` and `train` take its rows in order, compiled, and `commit` says how many of them count.
So an ensemble opens all of its members, runs all, and commits all, and nobody is ever ahead of another.  Between the first
`test` and the last `commit` no Python runs, but for losses and kernels of the user's, whose errors are kept for later.
"""


cdef class Backend:
    """What learns rows, which were checked, and labels, which are numbers 0, 1, 2, ...

    A kind implements

    `attach(examples)`
        a call is about these rows;
    `room()`
        how many rows the next block may have at most;
    `open(first, n, y, weights, labels)`
        get ready to learn n rows of the call from `first` on; y and weights are those of the block (NULL: all 1), and
        there may be so many labels at its end. y is read when a row is trained; labels are read before;
    `test(i, scores, deviations)`
        what would be answered for row i of the block, unless that is NULL; False if that is not possible;
    `train(i)`
        learn that row; False if that is not possible, and then nothing has changed;
    `failure()`
        why not: an exception, to be raised when all is done;
    `diverges()`
        whether its answers have gone out of hand;
    `signal()`
        what a signal has raised in the user's code, which then is no failure: the row may be tried again;
    `commit(n)`
        the first n rows count, at most those that were trained; after `open` alone, 0;
    `detach()`
        the call is over;
    `evaluate(examples, n, scores, stride, deviations, spread)`
        the answers for n rows as of now, and from row to row they are so far apart; several threads may ask.

    Scores have a number for each output, deviations (of y, noise included) one for each target, or one for all labels.
    """

    cdef int attach(self, examples) except -1:
        raise NotImplementedError

    cdef int detach(self) except -1:
        return 0

    cdef Py_ssize_t room(self) except -1:
        raise NotImplementedError

    cdef int open(self, Py_ssize_t first, Py_ssize_t n, const double* y, const double* weights, Py_ssize_t labels) except -1:
        raise NotImplementedError

    cdef bint test(self, Py_ssize_t i, double* scores, double* deviations) noexcept nogil:
        return False

    cdef bint train(self, Py_ssize_t i) noexcept nogil:
        return False

    cdef void commit(self, Py_ssize_t n) noexcept:
        pass

    cdef bint diverges(self) noexcept nogil:
        return False

    cdef object signal(self):
        return None

    cdef object failure(self):
        return None

    cdef int evaluate(self, examples, Py_ssize_t n, double* scores, Py_ssize_t stride, double* deviations,
                      Py_ssize_t spread) except -1:
        raise NotImplementedError
