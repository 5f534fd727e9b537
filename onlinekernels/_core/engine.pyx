"""The engine: evaluate, let the rule decide, append, drop.

`Engine.learn` cuts a stream into pieces; for each piece one loop without the interpreter takes the
examples in order.
"""
import numpy as np
from cpython.exc cimport PyErr_CheckSignals
from cpython.pythread cimport PyThread_get_thread_ident
from libc.math cimport NAN, isfinite
from onlinekernels._core.decider cimport Decider
from onlinekernels._core.expansion cimport Expansion, Piece
from onlinekernels._core.hypothesis cimport DERIVATIVE, MOVE, NONE, POINT, PYTHON, SCORE
from onlinekernels._core.kernels cimport SQUARE
from onlinekernels._core.ring cimport array_data
from onlinekernels._core.ring import check_array
from onlinekernels._core.rules cimport Meta, Move, step_size
from onlinekernels._core.turns cimport begin_piece, end_piece, generation

REASONS = {
    SCORE: "its score f(x) is not finite: the values of X are too large for the kernel, "
           "or the step is so large that learning diverges",
    MOVE: "its coefficient is not finite: the step, the sample weight or y is too large, "
          "so that learning diverges",
    DERIVATIVE: "the derivative that its loss gave is not finite",
    POINT: "its values are too large for the kernel, k(x, x) is not finite",
}


cdef struct Trace:
    # Where to write what was in force at each example, before it was learned; NULL for what nobody wants.
    double* scores          # `width` numbers for each example
    double* steps
    double* scalars         # the loss's margin or width


cdef class Engine(Decider):
    """The loop that advances a hypothesis, and its door to Python.

    Parameters
    ----------
    growing : bool
        Whether labels join as they appear.
    leaves_out : bool
        Whether an example of weight 0 is left out altogether, and not counted.
    **others
        As for `Decider`.

    One thread at a time may use it, which the model's `Turn` sees to.
    """
    cdef readonly bint growing
    cdef readonly bint leaves_out
    cdef public Py_ssize_t done         # rows of the latest call that are learned
    # In the middle of a piece, by the thread `runner`; and the process in which that was last looked at.
    cdef bint halfway
    cdef unsigned long runner
    cdef long long generation

    def __init__(self, *, bint growing=False, bint leaves_out=False, **others):
        Decider.__init__(self, **others)
        if growing and not self.expansion.outputs.can_grow():
            raise ValueError("the labels of a structure are fixed")
        self.growing = growing
        self.leaves_out = leaves_out
        self.generation = generation

    cdef Py_ssize_t run(self, Piece* piece, const double* y, const double* weights, Trace trace) noexcept nogil:
        """Learn the examples of a piece in order; return how many were learned completely."""
        cdef Py_ssize_t i, l, joined, width = self.expansion.width
        cdef double weight, eta
        cdef Move move
        for i in range(piece.rows):
            eta = step_size(&self.step, self.t + 1)
            weight = 1.0 if weights == NULL else weights[i]
            joined = self.labels()
            if self.growing and joined <= <Py_ssize_t> y[i]:
                self.expansion.outputs.n = <Py_ssize_t> y[i] + 1    # the label joins at its own row
            if not self.can_hold(piece, i) or not self.evaluate(piece, i):
                return self.stop_at(i, joined)
            if trace.scores != NULL:
                for l in range(width):
                    trace.scores[i * width + l] = self.scores[l] if l < self.labels() else 0.0
            if trace.scalars != NULL:
                trace.scalars[i] = self.loss.scalar
            if weight == 0.0 and self.leaves_out:
                self.done += 1
                continue
            self.row = y + i * self.targets
            if not self.decide(piece, i, self.row[0], weight, &move):
                return self.stop_at(i, joined)
            if trace.steps != NULL:
                trace.steps[i] = move.meta.eta if self.adapts_step() else eta
            self.done += 1
        return piece.rows

    cdef Py_ssize_t stop_at(self, Py_ssize_t i, Py_ssize_t joined) noexcept nogil:
        """Row i cannot be learned: its label has not joined either."""
        if self.growing:
            self.expansion.outputs.n = joined
        return i

    # ---- Learning from Python ---------------------------------------------------------------

    def learn(self, const double[::1] y, *, X=None, objects=None, const double[::1] weights=None,
              double[::1] scores=None, double[::1] steps=None, double[::1] scalars=None):
        """Learn all rows of X (C-contiguous, the points' precision) or all objects.

        `scores` takes one row of `width` numbers per example, `steps` and `scalars` take one.  An error, or
        Ctrl-C, stops after the last complete row; the exception says how many rows that were.
        """
        cdef Expansion expansion = self.expansion
        cdef Py_ssize_t n = y.shape[0] // self.targets, first, rows
        cdef const double* weight_data = NULL
        cdef Trace trace = Trace(NULL, NULL, NULL)
        cdef const char* x = NULL
        self.failure, self.done = NONE, 0
        try:
            if X is not None:
                x = expansion.attach(X)
            while self.done < n:
                first = self.done
                if weights is not None:
                    weight_data = &weights[first]
                if scores is not None:
                    trace.scores = &scores[first * expansion.width]
                if steps is not None:
                    trace.steps = &steps[first]
                if scalars is not None:
                    trace.scalars = &scalars[first]
                if objects is not None:
                    rows = 1
                    self.learn_object(objects[first], &y[first * self.targets], weight_data, trace)
                else:
                    rows = min(n - first, expansion.piece_rows())
                    self.learn_piece(x, first, rows, &y[first * self.targets], weight_data, trace)
                if self.done < first + rows:
                    self.raise_failure(self.done)
                PyErr_CheckSignals()
        except BaseException as error:
            error.rows_learned = self.done
            raise

    def learn_one(self, x, double y):
        """Learn one row (1-d, C-contiguous, the points' precision) or object."""
        self.failure, self.done = NONE, 0
        try:
            if self.expansion.kernel is not None:
                self.learn_object(x, &y, NULL, Trace(NULL, NULL, NULL))
            else:
                self.learn_piece(array_data(x), 0, 1, &y, NULL, Trace(NULL, NULL, NULL))
            if not self.done:
                self.raise_failure(0)
        except BaseException as error:
            error.rows_learned = 0
            raise

    cdef raise_failure(self, Py_ssize_t row):
        if self.failure == PYTHON:
            error, self.error = self.error, None
            raise error
        raise FloatingPointError(f"Row {row} of X cannot be learned: {REASONS[self.failure]}.")

    cdef int learn_piece(self, const char* x, Py_ssize_t first, Py_ssize_t rows, const double* y,
                         const double* weights, Trace trace) except -1:
        """Learn a few rows."""
        cdef Piece piece
        self.expansion.prepare_rows(&piece, x, first, rows, True)
        self.set_out()
        with nogil:
            self.run(&piece, y, weights, trace)
        self.arrive()
        return 0

    cdef int learn_object(self, x, const double* y, const double* weights, Trace trace) except -1:
        """Learn one object: its kernel row comes from Python."""
        cdef Expansion expansion = self.expansion
        cdef Piece piece
        cdef Py_ssize_t learned, slot
        cdef double own
        if self.exact_norms and self.square_is_worn():
            self.renew_square(expansion.square_of_objects())
        expansion.pool.reserve(1)
        row = expansion.object_row(x)
        own = expansion.kernel.self_value(x)
        expansion.prepare_object(&piece, &own, row)
        self.set_out()
        with nogil:
            learned = self.run(&piece, y, weights, trace)
        for slot in range(piece.first, expansion.pool.start):
            expansion.pool.objects[slot] = None
        if learned and expansion.entered >= 0:
            expansion.pool.objects[expansion.entered] = x
        self.arrive()
        return 0

    cdef set_out(self):
        """A piece begins, which a fork must not find half learned."""
        begin_piece()
        self.runner = PyThread_get_thread_ident()
        self.halfway = True

    cdef arrive(self):
        self.halfway = False
        end_piece()

    def mind_forks(self):
        """After a fork: RuntimeError if another thread was in the middle of a piece; what it may have left is cleared."""
        if self.generation == generation:
            return
        if self.halfway and self.runner != PyThread_get_thread_ident():
            raise RuntimeError("This model was learning in another thread when the process was forked, and that "
                               "thread did not come to a rest in time: its copy here is incomplete.")
        self.generation = generation
        self.expansion.clear_scratch()

    def grow(self, Py_ssize_t width):
        """Make room for labels that will join."""
        self.expansion.grow(width)
        self.allocate()

    # ---- Predicting -------------------------------------------------------------------------

    @property
    def notices_bad_points(self):
        """Whether `decision` raises for points that are not finite: their squares tell."""
        return self.expansion.program is not None and self.expansion.program.needs_inner

    def decision(self, *, X=None, objects=None, bint trusted=False, int votes=0):
        """f(x, .) + b for all rows of X or all objects, shape (n, labels).

        For votes = 1 or 2: the sum over all hypotheses of their signs or scores; see `Expansion.vote`.

        FloatingPointError for a score that is not finite and, unless X is `trusted` to be finite, for
        a row whose square is not.
        """
        cdef Expansion expansion = self.expansion
        cdef const char* x = NULL if X is None else expansion.attach(X)
        cdef Py_ssize_t done = 0, rows, i, n = len(objects) if X is None else X.shape[0]
        cdef Py_ssize_t labels = self.labels()
        cdef double* scores
        cdef Piece piece
        cdef double own = 1.0
        cdef Py_ssize_t most = expansion.most_rows()
        result = np.empty((n, labels))
        scores = <double*> array_data(result)
        while done < n:
            if X is None:
                rows = 1
                values = expansion.object_row(objects[done])
                expansion.prepare_object(&piece, &own, values)
            else:
                rows = min(n - done, most)
                expansion.prepare_rows(&piece, x, done, rows, False, -1 if trusted or votes else self.channel())
            with nogil:
                for i in range(rows):
                    if votes:
                        scores[done + i] = expansion.vote(&piece, i, self.t, votes == 1)
                    else:
                        self.score(&piece, i, scores + (done + i) * labels)
                    if not (trusted or self.expansion.program is None):
                        if not isfinite(piece.facts[SQUARE * rows + i]):
                            scores[(done + i) * labels] = NAN
            done += rows
            PyErr_CheckSignals()
        for i in range(n * labels):
            if not isfinite(scores[i]):
                raise FloatingPointError(f"Row {i // labels} of X has no finite score: its values are too "
                                         "large for the kernel.")
        return result

    # ---- State ------------------------------------------------------------------------------

    def begin_from(self, offset, *arguments):
        """Start from another function; see `Expansion.begin_from`."""
        self.expansion.begin_from(*arguments)
        self.offsets[0, :len(offset)] = offset

    def state(self):
        """Everything that learning has changed, as named numbers and arrays; no scratch."""
        state = {
            "t": int(self.t),
            "offsets": self.offsets.copy(),
            "scalar": float(self.loss.scalar),
            "meta": np.array([self.meta.eta, self.meta.product, self.meta.square, self.meta.scalar_eta,
                              self.meta.scalar_trace, self.meta.corrections, self.meta.peak, self.meta.gap,
                              self.meta.gap_weight]),
        }
        state.update(self.expansion.state())
        return state

    def restore(self, state):
        """Continue from a state; ValueError if it does not fit."""
        meta = check_array(state["meta"], "meta", np.float64, (-1,))
        if len(meta) == 7:                          # before adapted scalars had steps of their own
            meta = np.append(meta, [0.0, 0.0])
        if len(meta) != 9:
            raise ValueError("meta does not have nine numbers")
        offsets = check_array(state["offsets"], "offsets", np.float64, self.offsets.shape)
        if type(state["t"]) is not int or not 0 <= state["t"] < 1 << 62:
            raise ValueError("t is not a number of examples")
        if type(state["scalar"]) is not float or not isfinite(<double> state["scalar"]):
            raise ValueError("the loss's scalar is not a finite number")
        self.expansion.restore(state)
        self.t = state["t"]
        self.loss.scalar = state["scalar"]
        self.offsets[:] = offsets
        self.meta = Meta(meta[0], meta[1], meta[2], meta[3], meta[4], meta[5], meta[6], meta[7], meta[8])

    def _check(self):
        """Assert every invariant."""
        assert self.t >= 0 and np.isfinite(self.offsets).all()
        self.expansion._check()
