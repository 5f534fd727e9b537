"""The engine: the loop over a stream.

`Engine.learn` cuts a stream into pieces; for each piece one loop without the interpreter takes the examples in order, and
lets each hypothesis evaluate, decide and carry out.
"""
cimport cython
import numpy as np
from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport NAN, isfinite, sqrt
from libc.string cimport memcpy, memset
from onlinekernels._core.arrays cimport array_data
from onlinekernels._core.backend cimport Backend
from onlinekernels._core.errors import row_error
from onlinekernels._core.functions cimport LOSS, MOVE, NONE, POINT, PYTHON, SCALED, SCORE, Example, Function, Outputs, Scratch
from onlinekernels._core.run.hypothesis cimport Hypothesis
from onlinekernels._core.run.watch cimport DIVERGED
from onlinekernels._core.targets cimport TargetScaler
from onlinekernels._core.transforms cimport Scaler

REASONS = {
    SCORE: "its score f(x) is not finite: the values of X are too large for the kernel, "
           "or the step is so large that learning diverges",
    MOVE: "its coefficient would be too large: the step is, or the sample weight, or y, so that learning diverges",
    POINT: "its values are too large for the kernel, k(x, x) is not finite",
}

cdef enum:
    MOST_SPARE = 8      # pairs of scratch and example that wait for the next call


@cython.final
cdef class Engine(Backend):
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
    target_scaler : TargetScaler or None
        Targets are learned behind it.

    One thread at a time may learn, and nobody predicts meanwhile, which the model's `Turn` sees to.
    """

    def __init__(self, Hypothesis hypothesis, *, Py_ssize_t targets=1, bint growing=False, bint leaves_out=False,
                 Scaler scaler=None, TargetScaler target_scaler=None):
        self.hypothesis = hypothesis
        self.function, self.outputs = hypothesis.function, hypothesis.function.outputs
        if growing and not self.outputs.can_grow():
            raise ValueError("the labels of a structure are fixed")
        Backend.__init__(self, "numbers" if hypothesis.regression else "classes", targets)
        self.growing = growing
        self.leaves_out = leaves_out
        self.scaler, self.target_scaler = scaler, target_scaler
        self.spare = []

    # ---- The loop -----------------------------------------------------------------------------

    cdef Py_ssize_t loop(self, Trace* trace) noexcept nogil:
        """Test and train the rows of the open block in order; how many were learned completely."""
        cdef Py_ssize_t i
        cdef long long t
        for i in range(self.rows):
            t = self.hypothesis.now.t
            if not (self.evaluate_row(self.scratch, self.example, i, trace) and self.learn_row(self.scratch, self.example, i)):
                return i
            if trace.steps != NULL and self.hypothesis.now.t > t:       # unless it was left out
                trace.steps[i] = self.hypothesis.rule.step_at(self.hypothesis.now.t)
        return self.rows

    cdef bint evaluate_row(self, Scratch w, Example e, Py_ssize_t i, const Trace* trace) noexcept nogil:
        """Scores of row i, and what else is traced; its label joins before. False if they are not finite."""
        cdef Py_ssize_t l
        w.piece.slot = -1
        self.joined_before = self.outputs.joined
        if self.growing and self.joined_before <= <Py_ssize_t> self.y[i]:
            self.hypothesis.let_join(<Py_ssize_t> self.y[i] + 1)    # at its own row
        if self.target_scaler is not None:
            self.target_scaler.know(i)
        if not self.hypothesis.evaluate(w, e, i):
            return self.refuse_row()
        if trace.scores != NULL:
            for l in range(min(self.function.width, trace.stride)):
                trace.scores[i * trace.stride + l] = e.scores[l] if l < self.outputs.joined else 0.0
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
        return True

    cdef bint learn_row(self, Scratch w, Example e, Py_ssize_t i) noexcept nogil:
        """Learn row i, which was evaluated; False if that is not possible, and then nothing has changed."""
        cdef double weight = 1.0 if self.weights == NULL else self.weights[i]
        cdef const double* y = self.y + i * self.targets
        if weight == 0.0 and self.leaves_out:
            self.done += 1
            return True
        if self.target_scaler is not None:
            if not self.target_scaler.take(i):
                e.failure = MOVE
                return self.refuse_row()
            y = self.target_scaler.scaled + i * self.targets
        if not self.hypothesis.decide(w, e, i, y, weight):
            if self.target_scaler is not None:
                self.target_scaler.commit(i)
            return self.refuse_row()
        self.hypothesis.carry_out(w, e, i)
        self.done += 1
        return True

    cdef bint refuse_row(self) noexcept nogil:
        """A row cannot be learned: its label has not joined either. O(1)."""
        if self.growing:
            self.hypothesis.undo_joining(self.joined_before)
        return False

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

    # ---- A call, block by block ---------------------------------------------------------------

    cdef int attach(self, examples) except -1:
        """The call is about these examples, as `learn` takes them. O(1), O(non-zeros) for sparse rows behind a scaler."""
        lent = self.lend()
        self.scratch, self.example = lent
        self.hypothesis.make_ready(self.scratch, self.example)
        self.function.attach(self.scratch, examples)
        if self.scaler is not None:
            self.scaler.attach(self.scratch.piece)
        self.lent = lent
        return 0

    cdef int detach(self) except -1:
        """The call is over; whatever is open was not learned. As `Function.tidy`."""
        lent, self.lent = self.lent, None
        if self.is_open:
            self.commit(0)
        if self.scaler is not None:
            self.scaler.let_go()
        self.scratch, self.example = None, None
        if lent is not None:
            self.take_back(lent)
        return self.function.tidy()

    cdef Py_ssize_t room(self) except -1:
        return self.function.piece_rows()

    cdef int open(self, Py_ssize_t first, Py_ssize_t n, const double* y, const double* weights, Py_ssize_t labels) except -1:
        """As `Function.open`, `Scaler.open` and `TargetScaler.open`."""
        if self.growing and labels > self.outputs.joined:
            self.make_room_for(labels)
        if self.hypothesis.exact_norms:
            self.hypothesis.norms_of_terms.renew_from_python(&self.hypothesis.now)
        try:
            if self.target_scaler is not None:
                self.target_scaler.open(y, n, weights)
            if self.scaler is not None:
                self.scaler.open(self.scratch.piece, first, n)
                self.is_scaled, self.done_before = True, self.done      # with no Python in between: a handler may look
            self.function.open(self.scratch, 0 if self.scaler is not None and not self.scaler.sparse else first, n, True, -1)
        except BaseException:
            if self.is_scaled:
                self.is_scaled = False
                self.scaler.commit(0)
            raise
        self.y, self.weights, self.rows, self.first = y, weights, n, first
        self.done_before, self.is_open = self.done, True
        return 0

    cdef int make_room_for(self, Py_ssize_t labels) except -1:
        """Room for labels that will join. O(1), unless outputs have come."""
        cdef Py_ssize_t needed = labels + self.outputs.ahead
        if needed > (self.outputs.n if self.outputs.ahead else self.function.width):
            self.hypothesis.grow(needed)
            self.hypothesis.make_ready(self.scratch, self.example)
        return 0

    cdef bint test(self, Py_ssize_t i, double* scores, double* deviations) noexcept nogil:
        cdef Trace trace
        cdef Py_ssize_t j
        cdef double deviation
        memset(&trace, 0, sizeof(Trace))
        if not self.evaluate_row(self.scratch, self.example, i, &trace):
            return False
        memcpy(scores, self.example.scores, self.outputs.joined * sizeof(double))
        if deviations != NULL:
            deviation = sqrt(self.example.variance + self.hypothesis.rule.noise_of_targets())
            for j in range(self.targets):
                deviations[j] = deviation
        if self.target_scaler is not None:
            self.target_scaler.restore_row(i, scores, deviations)
        return True

    cdef bint train(self, Py_ssize_t i) noexcept nogil:
        return self.learn_row(self.scratch, self.example, i)

    cdef void commit(self, Py_ssize_t n) noexcept:
        """As `Function.close`."""
        self.is_open = False
        self.function.close(self.scratch)
        if self.is_scaled:
            self.is_scaled = False
            self.scaler.commit(n)
        if n < self.rows and self.target_scaler is not None:
            self.target_scaler.commit(n)
        self.done = self.done_before + n

    cdef bint diverges(self) noexcept nogil:
        return self.hypothesis.watch.trouble == DIVERGED

    cdef object signal(self):
        """A KeyboardInterrupt, say, or want of memory, that came in a loss of the user's."""
        cdef Example e = self.example
        if e.failure != PYTHON or isinstance(e.error, Exception) and not isinstance(e.error, MemoryError):
            return None
        error, e.error, e.failure = e.error, None, NONE
        return error

    cdef object failure(self):
        cdef Example e = self.example
        error, e.error = e.error, None
        if e.failure == PYTHON:
            return error
        kind, reason = error if e.failure == LOSS else (FloatingPointError, REASONS[e.failure])
        return row_error(kind, self.earlier + self.done, f"cannot be learned: {reason}.")

    # ---- Learning -----------------------------------------------------------------------------

    def learn_all(self, examples, const double[::1] y, *, const double[::1] weights=None, double[::1] scores=None,
              double[::1] steps=None, double[::1] scalars=None, double[::1] deviations=None, double[::1] half_widths=None,
              coverage=(0, 0.0, 0.0), double[::1] norms=None, norm=None, bint follow=False, known=None,
              Py_ssize_t earlier=0):
        """Learn all rows of an array (C-contiguous, the points' precision), sparse rows, or all objects of a list.

        `scores` takes one row of `width` numbers per example, `steps`, `scalars` and `deviations` take one, and `half_widths`,
        for the `coverage` that `level_of` has found, one for each target. `norms` takes |f|: as the hypothesis knows
        it, or as `norm()` says, if that is given. It is asked before every row, or to `follow` |f| from there, at the
        beginning. `known`, three arrays, take what the scaler of targets knew before each row: means, deviations and the
        share of all weight that the row has. In words to the user the first row is number `earlier`. An error, or Ctrl-C,
        stops after the last complete row; `done` says how many rows that were.
        """
        cdef Py_ssize_t n = y.shape[0] // self.targets, width = self.function.width, first, rows, learned
        cdef Trace trace
        memset(&trace, 0, sizeof(Trace))
        trace.stride = width
        trace.level, trace.share, trace.factor = coverage
        self.done, self.earlier = 0, earlier
        try:
            self.attach(examples)
            if follow:
                self.hypothesis.begin_to_follow(norm() ** 2)
            while self.done < n:
                first, rows = self.done, self.function.piece_rows()
                if norm is not None:
                    rows = self.measure(norm, &norms[first], rows)
                rows = min(n - first, rows)
                trace.norms = NULL if norms is None or norm is not None and not self.hypothesis.follows_norm else &norms[first]
                trace.scores = NULL if scores is None else &scores[first * width]
                trace.steps = NULL if steps is None else &steps[first]
                trace.scalars = NULL if scalars is None else &scalars[first]
                trace.deviations = NULL if deviations is None else &deviations[first]
                trace.half_widths = NULL if half_widths is None else &half_widths[first * self.targets]
                self.open(first, rows, &y[first * self.targets], NULL if weights is None else &weights[first], 0)
                with nogil:
                    learned = self.loop(&trace)
                self.commit(learned)
                if known is not None:
                    self.tell_what_was_known(known, first, rows)
                if learned < rows:
                    raise self.failure()
                PyErr_CheckSignals()
        finally:
            self.hypothesis.end_following()
            self.detach()

    cdef int tell_what_was_known(self, known, Py_ssize_t first, Py_ssize_t rows) except -1:
        for out, part in zip(known, self.target_scaler.known_before(rows)):
            out[first:first + rows] = part
        return 0

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
        cdef Py_ssize_t learned
        cdef Trace trace
        memset(&trace, 0, sizeof(Trace))
        self.done = self.earlier = 0
        try:
            self.attach([x] if self.function.takes_objects else x)
            self.open(0, 1, &y, NULL, 0)
            learned = self.loop(&trace)
            self.commit(learned)
            if learned == 0:
                raise self.failure()
        finally:
            self.detach()
        return self.hypothesis.noticed()

    def current_scaler(self):
        """The scaler as it belongs to the hypothesis, between any two examples; not to be changed."""
        return self.scaler.after(self.done - self.done_before) if self.is_scaled else self.scaler

    def current_target_scaler(self):
        """The same of targets."""
        return self.target_scaler.after(self.done - self.done_before) if self.is_open and self.target_scaler is not None \
            else self.target_scaler

    # ---- Predicting ---------------------------------------------------------------------------

    cdef int evaluate(self, examples, Py_ssize_t n, double* scores, Py_ssize_t stride, double* deviations,
                      Py_ssize_t spread) except -1:
        """Scores of the function that predicts; numbers are in the units of the targets. As `decision`."""
        cdef Py_ssize_t i, j, rows, done = 0, most = self.function.rows_to_evaluate()
        cdef int channel = self.hypothesis.channel()
        cdef bint scales = self.scaler is not None and self.scaler.count > 0.0 and not self.scaler.sparse
        cdef tuple lent = self.lend()
        cdef Scratch w = lent[0]
        cdef Example e = lent[1]
        cdef const char* data
        self.hypothesis.make_ready(w, e)
        if self.scaler is not None and self.scaler.sparse:
            examples = self.scaler.scaled(examples)
        self.function.attach(w, examples)
        data = w.piece.source_data
        while done < n:
            rows = min(n - done, most)
            if scales:
                self.scale_rows(w, data, done, rows)
            self.function.open(w, 0 if scales else done, rows, False, channel)
            with nogil:
                for i in range(rows):
                    self.hypothesis.score(w, e, i, scores + (done + i) * stride)
            done += rows
            PyErr_CheckSignals()
        self.take_back(lent)
        if deviations != NULL:
            self.evaluate_deviations(examples, n, deviations, spread)
        for i in range(n):
            for j in range(self.outputs.joined):
                if not isfinite(scores[i * stride + j]):
                    raise row_error(FloatingPointError, i, "has no finite score: its values are too large for the kernel.")
            if self.target_scaler is not None:
                self.target_scaler.restore_next(scores + i * stride, NULL if deviations == NULL else deviations + i * spread)
        return 0

    cdef int scale_rows(self, Scratch w, const char* data, Py_ssize_t first, Py_ssize_t rows) except -1:
        """Let the piece read rows of a call scaled by what is known. O(rows d)."""
        cdef Py_ssize_t size = self.function.n_features * (sizeof(float) if self.scaler.single else sizeof(double))
        cdef char* out = w.piece.buffer(SCALED, (rows + 2) * self.function.n_features * sizeof(double))
        self.scaler.scale_dense(data + first * size, rows, <double*> (out + rows * size + (-rows * size & 7)), out)
        w.piece.source_data = out
        return 0

    cdef int evaluate_deviations(self, examples, Py_ssize_t n, double* deviations, Py_ssize_t spread) except -1:
        """Deviations of y, noise included, in units of the scores; of posteriors."""
        cdef Py_ssize_t i, j
        cdef double noise = self.hypothesis.rule.noise_of_targets()
        if self.scaler is not None and self.scaler.count > 0.0 and not self.scaler.sparse:
            examples = self.scaler.scaled(examples)
        cdef const double[::1] variances = self.function.uncertainty(examples)
        for i in range(n):
            for j in range(self.targets):
                deviations[i * spread + j] = sqrt(variances[i] + noise)
        return 0

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
