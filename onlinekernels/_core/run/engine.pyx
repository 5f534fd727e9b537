"""The engine: the loop over a stream.

`Engine.learn` cuts a stream into pieces; for each piece one loop without the interpreter takes the examples in order, and
lets each hypothesis evaluate, decide and carry out.
"""
cimport cython
import numpy as np
from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport NAN, isfinite, sqrt
from onlinekernels._core.arrays cimport array_data
from onlinekernels._core.errors import row_error
from onlinekernels._core.functions cimport LOSS, MOVE, POINT, PYTHON, SCORE, Example, Function, Outputs, Scratch
from onlinekernels._core.run.hypothesis cimport Hypothesis
from onlinekernels._core.transforms cimport Scaler

REASONS = {
    SCORE: "its score f(x) is not finite: the values of X are too large for the kernel, "
           "or the step is so large that learning diverges",
    MOVE: "its coefficient would be too large: the step is, or the sample weight, or y, so that learning diverges",
    POINT: "its values are too large for the kernel, k(x, x) is not finite",
}

cdef enum:
    MOST_SPARE = 8      # pairs of scratch and example that wait for the next call


cdef struct Trace:
    # Where to write what was in force at each example, before it was learned; NULL for what nobody wants.
    double* scores          # `width` numbers for each example
    double* steps
    double* norms           # |f|
    double* scalars         # the loss's margin or width
    double* deviations      # of f
    double* half_widths     # of intervals, of each target,
    int level               # of this coverage: see `level_of`
    double share
    double factor


@cython.final
cdef class Engine:
    """The loop that advances a hypothesis, and its door to Python.

    Parameters
    ----------
    hypothesis : Hypothesis
    targets : int
        Numbers that y has for each example.
    growing : bool
        Whether labels join as they appear.
    leaves_out : bool
        Whether an example of weight 0 is left out altogether, and not counted.
    scaler : Scaler or None
        Rows are learned behind it.

    One thread at a time may learn, and nobody predicts meanwhile, which the model's `Turn` sees to.
    """
    cdef readonly Hypothesis hypothesis
    cdef Function function              # of the hypothesis
    cdef Outputs outputs                # the labels
    cdef readonly Py_ssize_t targets
    cdef readonly bint growing
    cdef readonly bint leaves_out
    cdef public Py_ssize_t done         # rows of the latest call that are learned
    cdef Py_ssize_t earlier             # rows of the user's call before this one
    cdef list spare                     # (scratch, example) that no call has at present
    cdef readonly Scaler scaler
    cdef bint scaled                    # whether the scaler has taken in a piece that is not learned yet,
    cdef Py_ssize_t first               # which begins with this row of the call

    def __init__(self, Hypothesis hypothesis, *, Py_ssize_t targets=1, bint growing=False, bint leaves_out=False,
                 Scaler scaler=None):
        self.hypothesis = hypothesis
        self.function, self.outputs = hypothesis.function, hypothesis.function.outputs
        if growing and not self.outputs.can_grow():
            raise ValueError("the labels of a structure are fixed")
        self.targets = targets
        self.growing = growing
        self.leaves_out = leaves_out
        self.scaler = scaler
        self.spare = []

    # ---- The loop -----------------------------------------------------------------------------

    cdef Py_ssize_t run(self, Scratch w, Example e, const double* y, const double* weights, Trace trace) noexcept nogil:
        """Learn the examples of a piece in order; return how many were learned completely. As the three moves for each."""
        cdef Py_ssize_t i, l, joined, width = self.function.width
        cdef double weight
        for i in range(w.piece.rows):
            weight = 1.0 if weights == NULL else weights[i]
            w.piece.slot = -1
            joined = self.outputs.joined
            if self.growing and joined <= <Py_ssize_t> y[i]:
                self.hypothesis.let_join(<Py_ssize_t> y[i] + 1)     # at its own row
            if not self.hypothesis.evaluate(w, e, i):
                return self.stop_at(i, joined)
            if trace.scores != NULL:
                for l in range(width):
                    trace.scores[i * width + l] = e.scores[l] if l < self.outputs.joined else 0.0
            if trace.norms != NULL:
                trace.norms[i] = sqrt(self.hypothesis.square())
            if trace.scalars != NULL:
                trace.scalars[i] = self.hypothesis.now.loss.scalar
            if trace.deviations != NULL:
                trace.deviations[i] = sqrt(e.variance)
            if trace.half_widths != NULL:
                for l in range(self.targets):
                    trace.half_widths[i * self.targets + l] = self.hypothesis.rule.half_width(e, l, trace.level, trace.share,
                                                                                              trace.factor)
            if weight == 0.0 and self.leaves_out:
                self.done += 1
                continue
            if not self.hypothesis.decide(w, e, i, y + i * self.targets, weight):
                return self.stop_at(i, joined)
            self.hypothesis.carry_out(w, e, i)
            if trace.steps != NULL:
                trace.steps[i] = self.hypothesis.rule.step_at(self.hypothesis.now.t)
            self.done += 1
        return w.piece.rows

    cdef Py_ssize_t stop_at(self, Py_ssize_t i, Py_ssize_t joined) noexcept nogil:
        """Row i cannot be learned: its label has not joined either. O(1)."""
        if self.growing:
            self.hypothesis.undo_joining(joined)
        return i

    # ---- Scratch ------------------------------------------------------------------------------

    cdef tuple lend(self):
        """(scratch, example) that nobody else has. O(1)."""
        with cython.critical_section(self):     # several threads may predict
            if self.spare:
                return self.spare.pop()
        return self.function.new_scratch(), Example()

    cdef int take_back(self, tuple lent) except -1:
        """It may be lent again: O(1)."""
        (<Scratch> lent[0]).let_go()
        with cython.critical_section(self):
            if len(self.spare) < MOST_SPARE:
                self.spare.append(lent)
        return 0

    cdef int attach(self, Scratch w, Example e, examples) except -1:
        """What a call is about. O(1)."""
        self.hypothesis.make_ready(w, e)
        self.function.attach(w, examples)
        if self.scaler is not None:
            self.scaler.attach(w.piece)
        return 0

    # ---- Learning -----------------------------------------------------------------------------

    def learn(self, examples, const double[::1] y, *, const double[::1] weights=None, double[::1] scores=None,
              double[::1] steps=None, double[::1] scalars=None, double[::1] deviations=None, double[::1] half_widths=None,
              coverage=(0, 0.0, 0.0), double[::1] norms=None, norm=None, bint follow=False,
              Py_ssize_t earlier=0):
        """Learn all rows of an array (C-contiguous, the points' precision), sparse rows, or all objects of a list.

        `scores` takes one row of `width` numbers per example, `steps`, `scalars` and `deviations` take one, and `half_widths`,
        for the `coverage` that `level_of` has found, one for each target. `norms` takes |f|: as the hypothesis knows
        it, or as `norm()` says, if that is given. It is asked before every row, or to `follow` |f| from there, at the
        beginning. In words to the user the first row is number `earlier`. An error, or Ctrl-C, stops after the last complete
        row; `done` says how many rows that were.
        """
        cdef Py_ssize_t n = y.shape[0] // self.targets, width = self.function.width, first, rows
        cdef const double* weight_data
        cdef Trace trace
        cdef tuple lent = self.lend()
        cdef Scratch w = lent[0]
        cdef Example e = lent[1]
        trace.level, trace.share, trace.factor = coverage
        self.done, self.earlier = 0, earlier
        try:
            self.attach(w, e, examples)
            if follow:
                self.hypothesis.begin_to_follow(norm() ** 2)
            while self.done < n:
                first, rows = self.done, self.function.piece_rows()
                if norm is not None:
                    rows = self.measure(norm, &norms[first], rows)
                trace.norms = NULL if norms is None or norm is not None and not self.hypothesis.follows_norm else &norms[first]
                weight_data = <const double*> NULL if weights is None else &weights[first]
                trace.scores = NULL if scores is None else &scores[first * width]
                trace.steps = NULL if steps is None else &steps[first]
                trace.scalars = NULL if scalars is None else &scalars[first]
                trace.deviations = NULL if deviations is None else &deviations[first]
                trace.half_widths = NULL if half_widths is None else &half_widths[first * self.targets]
                self.learn_piece(w, e, first, min(n - first, rows), &y[first * self.targets],
                                 weight_data, trace)
                PyErr_CheckSignals()
        finally:
            self.hypothesis.end_following()
            if self.scaler is not None:
                self.scaler.let_go()
            self.tidy()
        self.take_back(lent)

    cdef Py_ssize_t measure(self, norm, double* out, Py_ssize_t rows) except -1:
        """|f| before the next rows, where it must be computed anew; how many rows it is good for. As `norm()`."""
        if self.hypothesis.follows_norm:
            if self.hypothesis.is_worn():
                self.hypothesis.begin_to_follow(norm() ** 2)
            return rows
        out[0] = norm()
        return 1

    def takes(self, x):
        """Whether `learn_one` can have x as it is: a row as the loop reads it, which lets no variance overflow. O(d)."""
        return self.function.is_row(x) and (self.scaler is None or self.scaler.are_tame(array_data(x), self.function.n_features))

    def learn_one(self, x, double y):
        """Learn one row (1-d, C-contiguous, the points' precision) or object; return the hypothesis's `trouble`."""
        cdef tuple lent = self.lend()
        cdef Scratch w = lent[0]
        cdef Example e = lent[1]
        self.done = self.earlier = 0
        try:
            self.attach(w, e, [x] if self.function.takes_objects else x)
            self.learn_piece(w, e, 0, 1, &y, NULL, Trace(NULL, NULL, NULL, NULL, NULL, NULL, 0, 0.0, 0.0))
        finally:
            self.tidy()
        self.take_back(lent)
        return self.hypothesis.noticed()

    cdef int learn_piece(self, Scratch w, Example e, Py_ssize_t first, Py_ssize_t rows, const double* y,
                         const double* weights, Trace trace) except -1:
        """Learn a few rows. As `Function.open` and `run`."""
        cdef Py_ssize_t learned = 0
        if self.hypothesis.exact_norms:
            self.hypothesis.norms_of_terms.renew_from_python(&self.hypothesis.now)
        try:
            if self.scaler is not None:
                self.scaler.open(w.piece, first, rows)
                self.first, self.scaled = first, True
            self.function.open(w, 0 if self.scaler is not None and not self.scaler.sparse else first, rows, True, -1)
            with nogil:
                learned = self.run(w, e, y, weights, trace)
            self.function.close(w)
        finally:
            self.end_scaling(learned, rows)
        if learned < rows:
            self.raise_failure(e, first + learned)
        return 0

    cdef int end_scaling(self, Py_ssize_t learned, Py_ssize_t rows) except -1:
        """The scaler has seen as many rows as have been learned. As `Scaler.commit`."""
        if self.scaled:
            self.scaler.commit(learned)
        self.scaled = False
        return 0

    def current_scaler(self):
        """The scaler as it belongs to the hypothesis, between any two examples; not to be changed."""
        return self.scaler.after(self.done - self.first) if self.scaled else self.scaler

    cdef raise_failure(self, Example e, Py_ssize_t row):
        if e.failure == PYTHON:
            error, e.error = e.error, None
            raise error
        kind, reason = e.error if e.failure == LOSS else (FloatingPointError, REASONS[e.failure])
        e.error = None
        raise row_error(kind, self.earlier + row, f"cannot be learned: {reason}.")

    cdef int tidy(self) except -1:
        """As `Function.tidy`."""
        return self.function.tidy()

    # ---- Predicting ---------------------------------------------------------------------------

    def decision(self, examples, *, bint trusted=False, int votes=0):
        """f(x, .) + b for all rows or objects, shape (n, labels); changes nothing.

        For votes = 1 or 2: the sum over all hypotheses since the first of their signs or scores; see `Terms.vote`.

        FloatingPointError for a score that is not finite and, unless examples are `trusted` to be finite, for
        a row whose square is not.
        """
        cdef Hypothesis hypothesis = self.hypothesis
        cdef Function function = self.function
        cdef Py_ssize_t done = 0, rows, i, n = len(examples), labels = self.outputs.joined
        cdef Py_ssize_t most = function.rows_to_evaluate()
        cdef bint checks = function.notices_bad_points and not trusted
        cdef tuple lent = self.lend()
        cdef Scratch w = lent[0]
        cdef Example e = lent[1]
        cdef double* scores
        result = np.empty((n, labels))
        scores = <double*> array_data(result)
        hypothesis.make_ready(w, e)
        function.attach(w, examples)
        while done < n:
            rows = min(n - done, most)
            function.open(w, done, rows, False, -1 if votes else hypothesis.channel())
            with nogil:
                for i in range(rows):
                    if votes:
                        scores[done + i] = function.vote(w, i, hypothesis.now.t, votes == 1)
                    else:
                        hypothesis.score(w, e, i, scores + (done + i) * labels)
                    if checks and not function.point_is_finite(w, i):
                        scores[(done + i) * labels] = NAN
            done += rows
            PyErr_CheckSignals()
        self.take_back(lent)
        for i in range(n * labels):
            if not isfinite(scores[i]):
                raise row_error(FloatingPointError, i // labels, "has no finite score: its values are too large for the kernel.")
        return result

    def _check(self):
        """Assert every invariant."""
        self.hypothesis._check()
