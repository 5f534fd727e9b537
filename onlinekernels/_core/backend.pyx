"""The protocol of everything that learns: engines, local averages, self-tuned posteriors, and ensembles of these.

A block of rows is learned in two steps.  `open` may fail, for want of memory, by user code, bad values or a signal, and has
then changed nothing.  `run` tests and learns the rows, compiled, and cannot fail, and `commit` says how many of them count.
So an ensemble opens all of its members, runs all, and commits all, and nobody is ever ahead of another.  Between the first
`run` and the last `commit` no Python runs, but for losses and kernels of the user's, whose errors are kept for later.
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
        there may be so many labels at its end;
    `run(scores, stride, deviations)`
        learn the block, and write what would have been answered just before each row, unless that is NULL; returns how
        many rows could be learned;
    `failure()`
        why the row after these could not be: an exception, to be raised when all is done;
    `commit(n)`
        the first n rows count, at most those that `run` has learned; after `open` without `run`, 0;
    `detach()`
        the call is over;
    `evaluate(examples, n, scores, stride, deviations)`
        the answers for n rows as of now; several threads may ask.
    """

    cdef int attach(self, examples) except -1:
        raise NotImplementedError

    cdef int detach(self) except -1:
        return 0

    cdef Py_ssize_t room(self) except -1:
        raise NotImplementedError

    cdef int open(self, Py_ssize_t first, Py_ssize_t n, const double* y, const double* weights, Py_ssize_t labels) except -1:
        raise NotImplementedError

    cdef Py_ssize_t run(self, double* scores, Py_ssize_t stride, double* deviations) noexcept nogil:
        return 0

    cdef void commit(self, Py_ssize_t n) noexcept:
        pass

    cdef object failure(self):
        return None

    cdef int evaluate(self, examples, Py_ssize_t n, double* scores, Py_ssize_t stride, double* deviations) except -1:
        raise NotImplementedError
