"""The protocol of everything that learns: engines, local averages, and ensembles of these.

A block of rows is learned in two steps.  `open` may fail, for want of memory, by user code, bad values or a signal, and
has then changed nothing.  Then `test` and `train` take its rows in order, compiled, and `commit` says how many of them
count. So an ensemble opens all of its members, runs all, and commits all, and nobody is ever ahead of another. Between
the first `test` and the last `commit` no Python runs, but for losses and kernels of the user's, whose errors are kept
for later.
"""
import numpy as np
from cpython.exc cimport PyErr_CheckSignals
from onlinekernels._core.arrays cimport array_data
from onlinekernels._core.points cimport Rows
from onlinekernels._core.schema import check_state, restore, state_of

cdef object DOUBLE = np.dtype(float)
cdef Py_ssize_t BLOCK = 128         # rows of a block at most,
cdef Py_ssize_t MOST = 512          # and of one whose scores nobody wants


cdef class Backend:
    """What learns rows, which were checked, and labels, which are numbers 0, 1, 2, ...

    A kind implements

    `attach(examples)`
        a call is about these rows;
    `rows_at_once()`
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
        what a signal, or want of memory, has raised in the user's code, which then is no failure: the row may be tested
        and trained again;
    `commit(n)`
        the first n rows count, at most those that were trained; after `open` alone, 0;
    `detach()`
        the call is over;
    `evaluate(examples, n, scores, stride, deviations, spread)`
        the answers for n rows as of now, and from row to row they are so far apart; several threads may ask.

    `prepare()`
        what is due between two blocks; it may fail, and is tried again;
    `stagger(place)`
        let large work fall on other rows than that of backends at other places; the next free place.

    Scores have a number for each output, deviations (of y, noise included) one for each target, or one for all labels.

    Parameters
    ----------
    task : "classes", "numbers" or "novelty"
    targets : int
        Numbers to predict; 0 for labels.
    """

    def __init__(self, str task="numbers", Py_ssize_t targets=1):
        self.task, self.targets, self.groups = task, targets, max(1, targets)

    cdef int attach(self, examples) except -1:
        self.examples = examples
        self.data = NULL if isinstance(examples, Rows) else <const double*> array_data(examples)

    cdef int detach(self) except -1:
        self.examples, self.data = None, NULL

    cdef Py_ssize_t rows_at_once(self) except -1:
        return BLOCK

    cdef int open(self, Py_ssize_t first, Py_ssize_t n, const double* y, const double* weights,
                  Py_ssize_t labels) except -1:
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

    cdef int prepare(self) except -1:
        return 0

    cpdef Py_ssize_t stagger(self, Py_ssize_t place) noexcept:
        return place

    # ---- For Python ---------------------------------------------------------------------------

    cdef Py_ssize_t outputs_for(self, Py_ssize_t labels) noexcept nogil:
        """How many scores a row has where there are so many labels."""
        return self.targets if self.targets else max(labels, self.n_seen)

    cdef Py_ssize_t outputs_now(self) noexcept nogil:
        return self.outputs_for(self.n_seen)

    cdef Py_ssize_t open_block(self, Py_ssize_t first, Py_ssize_t n, const double* y, const double* weights,
                               Py_ssize_t labels) except -1:
        """Open a block of at most n rows; how many."""
        self.open(first, n, y, weights, labels)
        return n

    cdef void run_block(self, Py_ssize_t n, const double* y, double* scores, Py_ssize_t stride, double* deviations,
                        double* innovations) noexcept nogil:
        """Test and train all rows of the open block, and follow the innovations of numbers."""
        cdef Py_ssize_t i, g = self.groups
        for i in range(n):
            self.test(i, scores + i * stride, deviations + i * g)
            self.train(i)
        if self.intervals is not None and self.intervals.targets:
            self.intervals.run(n, scores, y, deviations, innovations, NULL)

    cdef int resolve(self) except -1:
        """What a block has left to be said; errors of the user's code, and signals in it."""

    cdef int trace_block(self, dict trace, Py_ssize_t first, Py_ssize_t rows, Py_ssize_t n) except -1:
        """What else was known at the rows of a block, of a call with n rows, into arrays by name."""

    def learn(self, examples, y, weights=None, Py_ssize_t labels=0, dict trace=None):
        """(scores (n, outputs), deviations (n, groups), innovations (n, targets)) just before each row, which is
        learned; None without `trace`, which gets what else was known.

        Rows and numbers are checked; y are codes of labels, of which there are so many, or numbers. After an error
        `done` rows were learned.
        """
        cdef Py_ssize_t n = examples.shape[0], rows, first = 0, g = self.groups, each = self.targets or 1
        cdef Py_ssize_t width = self.outputs_for(labels), capacity = n if trace is not None else min(n, MOST)
        cdef const double[::1] Y = np.ascontiguousarray(y, dtype=float).reshape(-1)
        cdef const double[::1] W = None if weights is None else np.ascontiguousarray(weights, dtype=float)
        cdef const double* here
        scores, deviations, innovations = np.zeros((capacity, width)), np.zeros((capacity, g)), np.zeros((capacity, g))
        cdef double* out = <double*> array_data(scores)
        cdef double* spread = <double*> array_data(deviations)
        cdef double* errors = <double*> array_data(innovations)
        self.done = 0
        try:
            self.attach(examples)
            while self.done < n:
                here = &Y[self.done * each]
                rows = self.open_block(self.done, min(n - self.done, min(capacity, self.rows_at_once())), here,
                                       NULL if W is None else &W[self.done], labels)
                with nogil:
                    self.run_block(rows, here, out + first * width, width, spread + first * g, errors + first * g)
                self.commit(rows)
                if trace is not None:
                    self.trace_block(trace, first, rows, n)
                    first += rows
                self.done += rows
                self.resolve()
                PyErr_CheckSignals()
                self.prepare()
        finally:
            self.detach()
        return None if trace is None else (scores, deviations, innovations)

    def learn_one(self, x, double y, Py_ssize_t labels=0):
        """Learn one row, 1-d as `takes` has it, and its label's code or its target."""
        cdef Py_ssize_t width = self.outputs_for(labels)
        cdef double* out
        if self.one is None or len(self.one) < width + 2 * self.groups:
            self.one = np.zeros(width + 2 * self.groups)
        out = <double*> array_data(self.one)
        self.done = 0
        try:
            self.attach(x[None])
            self.open_block(0, 1, &y, NULL, labels)
            self.run_block(1, &y, out, width, out + width, out + width + self.groups)
            self.commit(1)
            self.done = 1
            self.resolve()
            self.prepare()
        finally:
            self.detach()

    def takes(self, x):
        """Whether `learn_one` and `scores_one` can have x as it is: a row of numbers no larger than 1e150."""
        cdef const double* data
        cdef Py_ssize_t j
        if type(x) is not np.ndarray or x.dtype != DOUBLE or x.ndim != 1 or len(x) != self.n_features:
            return False
        if not x.flags.c_contiguous:
            return False
        data = <const double*> array_data(x)
        for j in range(self.n_features):
            if not -1e150 <= data[j] <= 1e150:  # or not a number
                return False
        return self.n_features > 0

    def scores_one(self, x):
        """Scores of one row as of now, 1-d."""
        cdef Py_ssize_t outputs = self.outputs_now()
        scores = np.empty(outputs)
        self.evaluate(x[None], 1, <double*> array_data(scores), outputs, NULL, 0)
        return scores

    def scores(self, examples):
        """(scores (n, outputs), deviations (n, groups)) as of now."""
        cdef Py_ssize_t n = examples.shape[0], outputs = self.outputs_now()
        scores, deviations = np.zeros((n, outputs)), np.ones((n, self.groups))
        self.evaluate(examples, n, <double*> array_data(scores), outputs, <double*> array_data(deviations), self.groups)
        return scores, deviations

    def state(self):
        """What is learned, by name; see `schema`."""
        return state_of(self)

    def restore(self, state):
        """Go on from what `state` gave; ValueError, and nothing changed, if it cannot be."""
        restore(self, state)

    def _check(self):
        check_state(self)

    @property
    def innovations(self):
        """The latest ones, by which intervals go."""
        return np.zeros((0, self.targets)) if self.intervals is None else self.intervals.innovations


cdef class RowBackend(Backend):
    """What learns dense rows one by one, and answers each. A kind has `answer`, `train` and `commit`."""

    cdef int open(self, Py_ssize_t first, Py_ssize_t n, const double* y, const double* weights,
                  Py_ssize_t labels) except -1:
        self.rows, self.y, self.weights = self.data + first * self.n_features, y, weights

    cdef void answer(self, const double* x, double* scores) noexcept nogil:
        """Scores of a row."""

    cdef bint test(self, Py_ssize_t i, double* scores, double* deviations) noexcept nogil:
        self.answer(self.rows + i * self.n_features, scores)
        return True

    cdef int evaluate(self, examples, Py_ssize_t n, double* scores, Py_ssize_t stride, double* deviations,
                      Py_ssize_t spread) except -1:
        cdef Py_ssize_t i
        cdef const double* rows = <const double*> array_data(examples)
        for i in range(n):
            self.answer(rows + i * self.n_features, scores + i * stride)
