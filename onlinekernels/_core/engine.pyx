"""The engine: evaluate, let the rule decide, append, drop.

`Engine.learn` cuts a stream into pieces; for each piece one loop without the interpreter takes the
examples in order.
"""
import threading

import numpy as np
from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport NAN, fabs, fmax, isfinite, sqrt
from libc.string cimport memset
from onlinekernels._core.dense cimport hinge_step, softmax, softmax_hessian_times, softmax_step
from onlinekernels._core.expansion cimport DENSE, PAIR, Expansion, Piece
from onlinekernels._core.frame cimport MAX_CHANNELS
from onlinekernels._core.kernels cimport SQUARE
from onlinekernels._core.losses cimport (CUSTOM, MULTICLASS_LOGISTIC, Loss, loss_curvature, loss_derivative,
                                         loss_moved_scalar, loss_scalar_gradient)
from onlinekernels._core.ring cimport NEWCOMER, NOBODY, array_data
from onlinekernels._core.ring import check_array
from onlinekernels._core.rules cimport (AGGRESSIVE, APPROXIMATE, GRADIENT, IMPLICIT, META_DESCENT, RELAXED,
                                        RELAXED_AGGRESSIVE, Meta, Move, Rule, Step, View, adapted_step,
                                        aggressive_move, approximate_move, gain, gradient_move, implicit_move,
                                        meta_move, meta_norms, meta_transform, moved_square, relaxed_move,
                                        step_size)

RULE_CODES = {"gradient": GRADIENT, "implicit": IMPLICIT, "aggressive": AGGRESSIVE,
              "aggressive squared": AGGRESSIVE + 1, "relaxed": RELAXED,
              "relaxed aggressive": RELAXED_AGGRESSIVE, "approximate": APPROXIMATE}

cdef enum Failure:
    NONE = 0
    SCORE = 1           # f(x) is not finite
    MOVE = 2            # the new coefficient, offset or scalar is not finite
    PYTHON = 3          # a user's loss raised
    DERIVATIVE = 4      # a user's loss gave no number
    POINT = 5           # k(x, x) is not finite

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


cdef class Engine:
    """Rule, loss and offsets around an expansion, and the loop that advances them.

    Parameters
    ----------
    expansion : Expansion
        The function.
    loss : tuple
        (code, scalar, nu).
    custom_loss : Loss or None
        A Python loss; code is then 0.
    step : tuple
        (code, rate, delay, meta_rate, memory).
    rule : tuple
        (code, regularization, penalty, exact, radius, threshold).
    structured : bool
        Whether the loss uses the labels' distances; otherwise all are 1.
    growing : bool
        Whether labels join as they appear.
    targets : int
        Regression: numbers that y has for each example; each is an output.
    exact_norms : bool
        Keep |f|^2 (and <f, v> of SVMD) exact when a term is dropped.
    """
    cdef readonly Expansion expansion
    cdef Loss loss
    cdef object custom_loss
    cdef Step step
    cdef Rule rule
    cdef Meta meta
    cdef readonly bint has_offset
    cdef readonly bint averages
    cdef readonly bint structured
    cdef readonly bint growing
    cdef readonly bint exact_norms
    cdef readonly Py_ssize_t targets
    cdef const double* row              # y of the example, if it has several numbers
    cdef Meta without_newcomer          # exact norms: what `meta` becomes if the newcomer is dropped
    cdef readonly object offsets        # rows: b, its sum over time, its step sizes, their traces
    cdef double* offset
    cdef double* offset_sum
    cdef double* offset_eta
    cdef double* offset_trace
    cdef public long long t
    cdef int failure                    # why a piece stopped early
    cdef object error                   # the exception behind it
    cdef object lock                    # one thread at a time: scratch memory is shared
    cdef object owner                   # the thread that holds it
    # Scratch for one example: rows of `width` numbers
    cdef object scratch
    cdef double* bare                   # f(x, .), then v(x, .)
    cdef double* scores                 # f(x, .) + b, as the rule sees it
    cdef double* xi                     # derivative of the loss, many outputs
    cdef double* chi
    cdef double* spare
    cdef double* alpha                  # new coefficients, dense form, for each channel

    def __init__(self, *, Expansion expansion, loss, custom_loss, step, rule, bint offset, bint average,
                 bint structured=False, bint growing=False, bint exact_norms=False, Py_ssize_t targets=1):
        self.expansion = expansion
        self.custom_loss = custom_loss
        self.loss = Loss(loss[0], loss[1], loss[2])
        self.configure(step, rule)
        self.has_offset = offset
        self.averages = average
        self.structured = structured
        self.growing = growing
        self.exact_norms = exact_norms
        self.targets = targets
        self.lock = threading.Lock()
        self.meta = Meta(self.step.rate, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)
        self.offsets = np.zeros((4, expansion.width))
        self.offsets[2] = self.step.rate
        self.allocate()

    def configure(self, step, rule):
        """Set what may change between calls."""
        if step[1] != self.step.rate:
            self.meta.eta = step[1]                 # a new eta_0 starts the adaptation anew
        self.step = Step(step[0], step[1], step[2], step[3], step[4])
        self.rule = Rule(rule[0], rule[1], rule[2], rule[3], rule[4], rule[5])

    cdef allocate(self):
        """Memory for as many outputs as the expansion has room for."""
        cdef Py_ssize_t width = self.expansion.width, old = self.offsets.shape[1]
        cdef double* data
        if width > old:
            wider = np.zeros((4, width))
            wider[2] = self.step.rate
            wider[:, :old] = self.offsets
            self.offsets = wider
        data = <double*> array_data(self.offsets)
        self.offset, self.offset_sum = data, data + width
        self.offset_eta, self.offset_trace = data + 2 * width, data + 3 * width
        self.scratch = np.zeros((6 + 2 * MAX_CHANNELS, max(width, 1)))
        data = <double*> array_data(self.scratch)
        self.bare = data
        self.scores = data + MAX_CHANNELS * width
        self.xi = self.scores + width
        self.chi = self.xi + width
        self.spare = self.chi + width
        self.alpha = self.spare + 2 * width

    cdef bint adapts_step(self) noexcept nogil:
        return self.step.code == META_DESCENT

    # ---- The loop -----------------------------------------------------------------------------

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
            self.row = y + i * self.targets
            if not self.decide(piece, i, self.row[0], weight, &move):
                return self.stop_at(i, joined)
            if trace.steps != NULL:
                trace.steps[i] = move.meta.eta if self.adapts_step() else eta
        return piece.rows

    cdef Py_ssize_t stop_at(self, Py_ssize_t i, Py_ssize_t joined) noexcept nogil:
        """Row i cannot be learned: its label has not joined either."""
        if self.growing:
            self.expansion.outputs.n = joined
        return i

    cdef bint can_hold(self, const Piece* piece, Py_ssize_t i) noexcept nogil:
        """Whether an example is small enough for the kernel's arithmetic."""
        cdef bint fits = isfinite(piece.own[i])
        if self.expansion.program is not None:
            fits &= isfinite(piece.facts[SQUARE * piece.rows + i])
        if not fits:
            self.failure = POINT
        return fits

    cdef Py_ssize_t labels(self) noexcept nogil:
        return 1 if self.expansion.outputs is None else self.expansion.outputs.n

    cdef bint evaluate(self, const Piece* piece, Py_ssize_t i) noexcept nogil:
        """f(x_i, .) into `bare` (and v behind it), with the offsets into `scores`."""
        cdef Py_ssize_t l
        self.expansion.evaluate(piece, i, 1 if self.adapts_step() else 0, self.bare)
        for l in range(self.labels()):
            self.scores[l] = self.bare[l] + self.offset[l]
            if not isfinite(self.scores[l]):
                self.failure = SCORE
                return False
        return True

    cdef bint decide(self, const Piece* piece, Py_ssize_t i, double y, double weight, Move* move) noexcept nogil:
        """Let the rule make its move and carry it out; False, and nothing changed, if it cannot."""
        cdef View view
        cdef Py_ssize_t first = 0, second = 0
        move.meta = self.meta
        if self.expansion.form == DENSE:
            if not self.decide_dense(piece.own[i], <Py_ssize_t> y, weight, move):
                return False
        else:
            view.target = y
            view.k = piece.own[i]
            view.offsets = 1.0
            if self.expansion.form == PAIR:
                first = <Py_ssize_t> y
                second = self.look_at_pair(first, &view)
            else:
                self.look(&view)
            if second < 0:                          # a single label so far: nothing to tell apart
                second = first
                view.score = view.bare = view.trace = view.k = view.offsets = 0.0
                view.derivative = view.curvature = 0.0
                view.scalar_gradient = -self.loss.nu
            elif not self.differentiate(&view, weight):
                return False
            elif self.expansion.form == PAIR and self.rule.code == IMPLICIT:
                view.scalar_gradient = self.scalar_gradient_at_prediction(first, self.spare)
            self.move(&view, weight, move)
        if self.averages:
            self.add_average(move)
        if not (isfinite(move.alpha[0] * piece.own[i]) and isfinite(move.offset) and isfinite(move.scalar)
                and isfinite(move.transform[0][0]) and isfinite(move.meta.square)):
            self.failure = MOVE
            return False
        if self.exact_norms:
            self.norms_without_newcomer(move)
        self.carry_out(piece, i, move, first, second)
        return True

    cdef void norms_without_newcomer(self, const Move* move) noexcept nogil:
        """Norms of the hypothesis that is transformed only: <M_f (f, v), M_v (f, v)> with (f, v) as it was."""
        cdef double decay = move.transform[0][0]
        self.without_newcomer = move.meta
        self.without_newcomer.square = decay * decay * self.meta.square
        if not self.adapts_step():
            return
        self.without_newcomer.product = decay * (move.transform[1][0] * self.meta.square
                                                 + move.transform[1][1] * self.meta.product)

    cdef double shrink(self) noexcept nogil:
        """1 - tau of an implicit step: the rule looks at the scores of the shrunk hypothesis."""
        if self.rule.code != IMPLICIT:
            return 1.0
        return 1.0 / (1.0 + step_size(&self.step, self.t + 1) * self.rule.regularization)

    cdef void look(self, View* view) noexcept nogil:
        """One output."""
        view.bare = self.bare[0]
        view.score = self.scores[0]
        view.trace = self.bare[self.expansion.width] if self.adapts_step() else 0.0

    cdef Py_ssize_t look_at_pair(self, Py_ssize_t y, View* view) noexcept nogil:
        """Many outputs: the margin of label y over its runner-up, which is returned (-1: there is none)."""
        cdef Py_ssize_t best, width = self.expansion.width
        self.distances(y, self.spare)
        best = self.runner_up(y, self.spare, self.shrink())
        if best < 0:
            return -1
        view.target = self.spare[best]
        view.bare = self.bare[y] - self.bare[best]
        view.score = self.scores[y] - self.scores[best]
        view.trace = self.bare[width + y] - self.bare[width + best] if self.adapts_step() else 0.0
        view.k *= self.expansion.outputs.spread(y, best)
        view.offsets = 2.0
        return best

    cdef Py_ssize_t runner_up(self, Py_ssize_t y, const double* distance, double shrink) noexcept nogil:
        """argmax over l != y of rho Delta(y, l) + shrink f(x, l) + b_l, the first among equals; -1 for none."""
        cdef Py_ssize_t l, best = -1
        cdef double value, largest = 0.0
        for l in range(self.labels()):
            value = self.loss.scalar * distance[l] + shrink * self.bare[l] + self.offset[l]
            if l != y and (best < 0 or value > largest):
                best, largest = l, value
        return best

    cdef double scalar_gradient_at_prediction(self, Py_ssize_t y, const double* distance) noexcept nogil:
        """dl/drho of a nu-hinge at f_t itself, whose runner-up may differ from the shrunk hypothesis's."""
        cdef Py_ssize_t best = self.runner_up(y, distance, 1.0)
        if best < 0:
            return -self.loss.nu
        return loss_scalar_gradient(&self.loss, self.scores[y] - self.scores[best], distance[best])

    cdef void distances(self, Py_ssize_t y, double* out) noexcept nogil:
        """Delta(y, .) as the loss sees it."""
        cdef Py_ssize_t l
        if self.structured:
            self.expansion.outputs.distances(y, out)
            return
        for l in range(self.expansion.outputs.n):
            out[l] = 0.0 if l == y else 1.0

    cdef bint differentiate(self, View* view, double weight) noexcept nogil:
        """Derivatives of the loss at the score; False if a Python loss fails."""
        if self.loss.code != CUSTOM:
            view.derivative = weight * loss_derivative(&self.loss, view.score, view.target)
            view.scalar_gradient = loss_scalar_gradient(&self.loss, view.score, view.target)
            view.curvature = 0.0
            if self.adapts_step():
                view.curvature = weight * loss_curvature(&self.loss, view.score, view.target)
            return True
        view.scalar_gradient = view.curvature = 0.0
        with gil:
            try:
                view.derivative = weight * self.custom_loss.derivative(view.score, view.target)
                if self.step.code == META_DESCENT:
                    view.curvature = weight * self.custom_loss.curvature(view.score, view.target)
            except BaseException as error:
                self.error = error
                self.failure = PYTHON
                return False
        if not (isfinite(view.derivative) and isfinite(view.curvature)):
            self.failure = DERIVATIVE
            return False
        return True

    cdef void move(self, View* view, double weight, Move* move) noexcept nogil:
        """One of the rules, in one dimension."""
        cdef double eta = step_size(&self.step, self.t + 1)
        move.xi, move.curvature = view.derivative, view.curvature
        if self.adapts_step():
            meta_move(&self.loss, &self.step, &self.meta, self.rule.regularization, weight, view, move)
        elif self.rule.code == GRADIENT:
            gradient_move(&self.loss, eta, self.rule.regularization, weight, view, move)
        elif self.rule.code == IMPLICIT:
            view.score += (self.shrink() - 1.0) * view.bare
            implicit_move(&self.loss, &self.rule, eta, weight, self.has_offset, view, move)
        elif self.rule.code in (RELAXED, RELAXED_AGGRESSIVE):
            relaxed_move(&self.loss, &self.rule, weight, self.meta.square, view, move)
        elif self.rule.code == APPROXIMATE:
            approximate_move(&self.loss, &self.rule, weight, view, move)
        else:
            aggressive_move(&self.loss, &self.rule, weight, self.has_offset, view, move)
        if self.exact_norms and not self.adapts_step():
            moved_square(self.meta.square, view, move)

    cdef void add_average(self, Move* move) noexcept nogil:
        """F <- F + f, with the f that made this prediction."""
        cdef int last = self.expansion.frame.channels - 1, j
        for j in range(last):
            move.transform[last][j] = 1.0 if j == 0 else 0.0
        move.transform[last][last] = 1.0
        move.alpha[last] = 0.0

    cdef void carry_out(self, const Piece* piece, Py_ssize_t i, const Move* move, Py_ssize_t first,
                        Py_ssize_t second) noexcept nogil:
        """Move the offsets, transform the old terms, append the new one, move the scalar, apply the budget."""
        cdef Py_ssize_t l
        cdef bint enters = move.alpha[0] != 0.0 or self.adapts_step() and move.alpha[1] != 0.0
        self.t += 1
        for l in range(self.labels()):
            self.offset_sum[l] += self.offset[l]
        if self.has_offset:                     # before the scratch that it reads is used again
            self.move_offsets(move, first, second)
        self.expansion.transform(&move.transform[0][0])
        self.expansion.entered = -1
        self.meta = move.meta
        if enters and piece.own[i] != 0.0:
            if self.expansion.form == DENSE:
                self.append(piece, i, self.alpha, first, second)
            else:
                self.append(piece, i, move.alpha, first, second)
        self.loss.scalar = move.scalar
        if self.exact_norms and self.expansion.pool is not None:
            self.forget_expiring()
            self.mind_rounding()
        self.expansion.expire(self.t)
        if self.rule.radius > 0.0:
            self.stay_in_ball()

    cdef void mind_rounding(self) noexcept nogil:
        """Compute |f|^2 = sum_i a_i f(x_i) anew when it has shrunk so much that old rounding would show."""
        cdef Py_ssize_t slot, l
        cdef double own
        if self.meta.square > self.meta.peak:
            self.meta.peak = self.meta.square
        if self.adapts_step() or self.meta.square > 1e-3 * self.meta.peak:
            return
        self.meta.square = 0.0
        for slot in range(self.expansion.pool.start, self.expansion.pool.stop):
            self.expansion.evaluate_slot(slot, 0, self.bare, &own)
            self.expansion.term(slot, 0, self.xi)
            for l in range(self.labels()):
                self.meta.square += self.xi[l] * self.bare[l]
        if self.meta.square < 0.0:
            self.meta.square = 0.0
        self.meta.peak = self.meta.square

    cdef void stay_in_ball(self) noexcept nogil:
        """Project f onto the ball of the rule's radius: H (19), through the frame."""
        cdef double scaling[MAX_CHANNELS][MAX_CHANNELS]
        cdef double radius = self.rule.radius
        cdef int i, j
        if self.meta.square <= radius * radius:
            return
        for i in range(MAX_CHANNELS):
            for j in range(MAX_CHANNELS):
                scaling[i][j] = 1.0 if i == j else 0.0
        scaling[0][0] = radius / sqrt(self.meta.square)
        self.expansion.transform(&scaling[0][0])
        self.meta.square = radius * radius

    cdef void append(self, const Piece* piece, Py_ssize_t i, const double* alpha, Py_ssize_t first,
                     Py_ssize_t second) noexcept nogil:
        """Let the example enter; with exact norms, first see who has to go for it."""
        cdef Py_ssize_t victim
        if self.exact_norms and self.expansion.pool is not None:
            self.expansion.ready_to_store(piece.own[i], alpha)
            victim = self.expansion.pool.victim(self.expansion.stored)
            if victim == NEWCOMER:
                # The newcomer does not come: the hypothesis is only transformed, and its norms with it.
                self.meta = self.without_newcomer
            elif victim != NOBODY:
                self.forget(victim, self.expansion.value_with(victim, piece, i), alpha, first, second)
        self.expansion.enter(piece, i, self.t, alpha, first, second)

    cdef void forget_expiring(self) noexcept nogil:
        """With exact norms: take out the terms that a window is about to drop."""
        while self.expansion.pool.first_expires(self.t):
            self.forget(self.expansion.pool.start, 0.0, NULL, 0, 0)
            self.expansion.drop_first()

    cdef void forget(self, Py_ssize_t slot, double k_new, const double* alpha, Py_ssize_t first,
                     Py_ssize_t second) noexcept nogil:
        """<f, v> and |f|^2 without the term in a slot (V's erratum: the paper ignores what is dropped).

        f and v at its point are those of the pool, and of the newcomer that is not in it yet:
        its coefficients times k_new, its kernel value with the term.
        """
        cdef Py_ssize_t l, width = self.expansion.width, rows = width if self.expansion.form == DENSE else 1
        cdef int channel, last = 1 if self.adapts_step() else 0
        cdef double own = 0.0
        cdef double* f = self.bare                  # f at the term's point, and v behind it
        cdef double* a = self.xi                    # the term's true coefficients in f, over labels
        cdef double* b = self.chi                   # and in v
        cdef double* spare = self.spare
        self.expansion.evaluate_slot(slot, last, f, &own)
        if alpha != NULL:
            for channel in range(last + 1):
                self.spread(alpha + channel * rows, first, second, spare)
                self.expansion_apply(spare)
                for l in range(self.labels()):
                    f[channel * width + l] += k_new * spare[l]
        self.expansion.term(slot, 0, a)
        for l in range(self.labels()):
            spare[l] = a[l]
        self.expansion_apply(spare)                 # kappa a
        for l in range(self.labels()):
            self.meta.peak = fmax(self.meta.peak, fmax(self.meta.square, fabs(own * a[l] * spare[l])))
            self.meta.square += a[l] * (own * spare[l] - 2.0 * f[l])
        if self.meta.square < 0.0:
            self.meta.square = 0.0
        if last == 0:
            return
        self.expansion.term(slot, 1, b)
        for l in range(self.labels()):
            self.meta.product += b[l] * (own * spare[l] - f[l]) - a[l] * f[width + l]

    cdef void spread(self, const double* alpha, Py_ssize_t first, Py_ssize_t second, double* out) noexcept nogil:
        """Coefficients of one channel of a new term, over labels."""
        cdef Py_ssize_t l
        for l in range(self.labels()):
            out[l] = alpha[l] if self.expansion.form == DENSE else 0.0
        if self.expansion.form != DENSE:
            out[first] += alpha[0]
            if self.expansion.form == PAIR:
                out[second] -= alpha[0]

    cdef void expansion_apply(self, double* scores) noexcept nogil:
        """scores <- kappa @ scores."""
        if self.expansion.outputs is not None:
            self.expansion.outputs.apply(scores)

    cdef void move_offsets(self, const Move* move, Py_ssize_t first, Py_ssize_t second) noexcept nogil:
        """b <- b - eta l' along the direction; under MetaDescent with a step of its own for each label."""
        cdef Py_ssize_t l
        cdef double xi, curved
        if not self.adapts_step():
            if self.expansion.form == DENSE:
                for l in range(self.labels()):
                    self.offset[l] += move.offset * self.alpha[l]
            else:
                self.offset[first] += move.offset
                if second != first:
                    self.offset[second] -= move.offset
            return
        if self.expansion.form == DENSE:            # H v_b
            self.hessian_times(self.offset_trace, move.curvature)
        for l in range(self.labels()):
            if self.expansion.form == DENSE:
                xi, curved = self.xi[l], self.chi[l]
            else:
                xi = move.xi if l == first else (-move.xi if l == second else 0.0)
                curved = move.curvature * self.offset_trace[l]
            self.offset_eta[l] *= gain(self.step.meta_rate, xi * self.offset_trace[l])      # V (51)
            self.offset_trace[l] = (self.step.memory * self.offset_trace[l]                 # V (52), erratum
                                    - self.offset_eta[l] * (xi + self.step.memory * curved))
            self.offset[l] -= self.offset_eta[l] * xi                                       # V (50)

    # ---- All labels at once -------------------------------------------------------------------

    cdef bint decide_dense(self, double k, Py_ssize_t y, double weight, Move* move) noexcept nogil:
        """A move with a coefficient for every label: multiclass logistic, exact hinges, Python losses."""
        cdef double eta = step_size(&self.step, self.t + 1), c = self.rule.regularization
        cdef Py_ssize_t l, n = self.labels(), rows = self.expansion.width
        cdef bint finite = True
        memset(self.alpha, 0, self.expansion.frame.channels * rows * sizeof(double))
        move.scalar = self.loss.scalar
        move.offset = 1.0
        move.curvature = weight
        if self.targets > 1:
            if not self.decide_targets(k, weight, move):
                return False
        elif self.rule.code == IMPLICIT:
            self.implicit_dense(k, y, weight, eta, move)
        else:
            if not self.differentiate_dense(y, weight):
                return False
            if self.adapts_step():
                self.meta_dense(k, weight, move)
            else:
                move.transform[0][0] = 1.0 - eta * c
                for l in range(n):
                    self.alpha[l] = -eta * self.xi[l]
        move.alpha[0] = move.alpha[1] = 0.0         # tell whether the example enters
        for l in range(n):
            finite &= isfinite(self.alpha[l] * k)
            if self.alpha[l] != 0.0:
                move.alpha[0] = 1.0
        if not finite:
            self.failure = MOVE
        return finite

    cdef bint decide_targets(self, double k, double weight, Move* move) noexcept nogil:
        """Several targets: losses and kernels do not mix them, so each output has a move of its own."""
        cdef Py_ssize_t l
        cdef View view
        view.k, view.offsets, view.trace = k, 1.0, 0.0
        for l in range(self.targets):
            view.bare, view.score, view.target = self.bare[l], self.scores[l], self.row[l]
            if not self.differentiate(&view, weight):
                return False
            self.xi[l], self.spare[l] = view.derivative, view.curvature
            if not self.adapts_step():
                self.move(&view, weight, move)
                self.alpha[l] = move.alpha[0]
        move.curvature = weight
        move.offset = 1.0 / self.shrink()
        if self.adapts_step():
            self.meta_dense(k, weight, move)
        return True

    cdef void hessian_times(self, const double* vector, double weight) noexcept nogil:
        """chi = H vector, from what `spare` has: curvatures of the targets, or probabilities of the labels."""
        cdef Py_ssize_t l
        if self.targets == 1:
            softmax_hessian_times(self.spare, vector, self.labels(), weight, self.chi)
            return
        for l in range(self.targets):
            self.chi[l] = self.spare[l] * vector[l]

    cdef bint differentiate_dense(self, Py_ssize_t y, double weight) noexcept nogil:
        """xi = weight dl/dscores; for the logistic loss also the probabilities, into `spare`."""
        cdef Py_ssize_t l, n = self.labels()
        if self.loss.code == MULTICLASS_LOGISTIC:
            softmax(self.scores, n, self.spare)
            for l in range(n):
                self.xi[l] = weight * (self.spare[l] - (1.0 if l == y else 0.0))            # V (21)
            return True
        with gil:
            try:
                scores = np.array([self.scores[l] for l in range(n)])
                slopes = np.asarray(self.custom_loss.derivative(scores, y), dtype=float)
                if slopes.shape != (n,):
                    raise ValueError(f"The loss gave a derivative of shape {slopes.shape} for {n} scores.")
                for l in range(n):
                    self.xi[l] = weight * <double> slopes[l]
            except BaseException as error:
                self.error = error
                self.failure = PYTHON
                return False
        for l in range(n):
            if not isfinite(self.xi[l]):
                self.failure = DERIVATIVE
                return False
        return True

    cdef void meta_dense(self, double k, double weight, Move* move) noexcept nogil:
        """SVMD for the multiclass logistic loss, V (37), (38), (44)."""
        cdef Py_ssize_t l, n = self.labels(), width = self.expansion.width
        cdef double* f = self.bare
        cdef double* v = self.bare + width
        cdef double* K_new = self.spare + width     # kappa times what enters v
        cdef double* K_xi = self.scores             # kappa xi: the scores are no longer needed
        cdef double c = self.rule.regularization, memory = self.step.memory, eta
        cdef double xi_v = 0.0, xi_f = 0.0, xi_kxi = 0.0, chi_f = 0.0, xi_v_next = 0.0
        self.hessian_times(v, weight)
        for l in range(n):
            xi_v += self.xi[l] * v[l]
        move.meta = self.meta
        eta = adapted_step(&self.meta, self.step.meta_rate, c, xi_v)
        move.meta.eta = eta
        meta_transform(eta, c, memory, move)
        for l in range(n):
            self.alpha[l] = -eta * self.xi[l]
            self.alpha[width + l] = -eta * (self.xi[l] + memory * self.chi[l])
            K_xi[l] = self.xi[l]
            K_new[l] = self.xi[l] + memory * self.chi[l]
        self.expansion.outputs.apply(K_xi)
        self.expansion.outputs.apply(K_new)
        for l in range(n):
            xi_f += self.xi[l] * f[l]
            chi_f += self.chi[l] * f[l]
            xi_kxi += k * self.xi[l] * K_xi[l]
            xi_v_next += self.xi[l] * ((1.0 - eta * c) * memory * v[l] - eta * (c * f[l] + k * K_new[l]))
        meta_norms(eta, c, memory, xi_f, xi_kxi, chi_f, xi_v_next, &self.meta, &move.meta)

    cdef void implicit_dense(self, double k, Py_ssize_t y, double weight, double eta, Move* move) noexcept nogil:
        """Implicit steps over all labels, for the delta kernel."""
        cdef Py_ssize_t l, n = self.labels()
        cdef double shrink = self.shrink(), size = shrink * eta * self.rule.penalty * weight
        cdef double gradient
        move.transform[0][0] = shrink
        move.offset = 1.0 / shrink
        self.distances(y, self.xi)
        gradient = self.scalar_gradient_at_prediction(y, self.xi)
        move.scalar = loss_moved_scalar(&self.loss, self.loss.scalar - eta * self.rule.penalty * weight * gradient)
        if self.has_offset:
            k += 1.0 / shrink
        if n < 2 or k <= 0.0 or size <= 0.0:
            return
        for l in range(n):
            self.spare[l] = shrink * self.bare[l] + self.offset[l]
        if self.loss.code == MULTICLASS_LOGISTIC:
            softmax_step(self.spare, y, n, k, size, self.chi, self.alpha)
            return
        for l in range(n):
            self.chi[l] = self.loss.scalar * self.xi[l] + self.spare[l] - self.spare[y]
        hinge_step(self.chi, y, n, k, size, self.spare, self.alpha)

    # ---- Learning from Python -----------------------------------------------------------------

    def learn(self, const double[::1] y, *, X=None, objects=None, const double[::1] weights=None,
              double[::1] scores=None, double[::1] steps=None, double[::1] scalars=None):
        """Learn all rows of X (C-contiguous, the points' precision) or all objects.

        `scores` takes one row of `width` numbers per example, `steps` and `scalars` take one.  An error, or Ctrl-C, stops after the
        last complete row; the exception says how many rows that were.
        """
        cdef Expansion expansion = self.expansion
        cdef Py_ssize_t n = y.shape[0] // self.targets, done = 0, rows, learned
        cdef const double* weight_data = NULL
        cdef Trace trace = Trace(NULL, NULL, NULL)
        cdef const char* x = NULL
        self.acquire()
        try:
            if X is not None:
                x = expansion.attach(X)
            while done < n:
                if weights is not None:
                    weight_data = &weights[done]
                if scores is not None:
                    trace.scores = &scores[done * expansion.width]
                if steps is not None:
                    trace.steps = &steps[done]
                if scalars is not None:
                    trace.scalars = &scalars[done]
                if objects is not None:
                    rows = 1
                    learned = self.learn_object(objects[done], &y[done * self.targets], weight_data, trace)
                else:
                    rows = min(n - done, expansion.piece_rows())
                    learned = self.learn_piece(x, done, rows, &y[done * self.targets], weight_data, trace)
                done += learned
                if learned < rows:
                    self.raise_failure(done)
                PyErr_CheckSignals()
        except BaseException as error:
            error.rows_learned = done
            raise
        finally:
            self.release()

    def learn_one(self, x, double y):
        """Learn one row (1-d, C-contiguous, the points' precision) or object."""
        cdef Py_ssize_t learned
        self.acquire()
        try:
            if self.expansion.kernel is not None:
                learned = self.learn_object(x, &y, NULL, Trace(NULL, NULL, NULL))
            else:
                learned = self.learn_piece(array_data(x), 0, 1, &y, NULL, Trace(NULL, NULL, NULL))
            if not learned:
                self.raise_failure(0)
        except BaseException as error:
            error.rows_learned = 0
            raise
        finally:
            self.release()

    cdef acquire(self):
        """Wait until no other thread uses this engine."""
        me = threading.get_ident()
        if self.owner == me:
            raise RuntimeError("This model is learning already: a loss or kernel of your own must not use "
                               "the model that is calling it.")
        self.lock.acquire()
        self.owner = me
        self.failure = NONE

    cdef release(self):
        self.owner = None
        self.lock.release()

    cdef raise_failure(self, Py_ssize_t row):
        if self.failure == PYTHON:
            error, self.error = self.error, None
            raise error
        raise FloatingPointError(f"Row {row} of X cannot be learned: {REASONS[self.failure]}.")

    cdef Py_ssize_t learn_piece(self, const char* x, Py_ssize_t first, Py_ssize_t rows, const double* y,
                                const double* weights, Trace trace) except -1:
        """Learn a few rows."""
        cdef Piece piece
        cdef Py_ssize_t learned
        self.expansion.prepare_rows(&piece, x, first, rows, True)
        with nogil:
            learned = self.run(&piece, y, weights, trace)
        return learned

    cdef Py_ssize_t learn_object(self, x, const double* y, const double* weights, Trace trace) except -1:
        """Learn one object: its kernel row comes from Python."""
        cdef Expansion expansion = self.expansion
        cdef Piece piece
        cdef Py_ssize_t learned, slot
        cdef double own
        expansion.pool.reserve(1)
        row = expansion.object_row(x)
        own = expansion.kernel.self_value(x)
        expansion.prepare_object(&piece, &own, row)
        with nogil:
            learned = self.run(&piece, y, weights, trace)
        for slot in range(piece.first, expansion.pool.start):
            expansion.pool.objects[slot] = None
        if learned and expansion.entered >= 0:
            expansion.pool.objects[expansion.entered] = x
        return learned

    def grow(self, Py_ssize_t width):
        """Make room for labels that will join."""
        self.acquire()
        try:
            self.expansion.grow(width)
            self.allocate()
        finally:
            self.release()

    # ---- The function -------------------------------------------------------------------------

    def intercept(self):
        """b, shape (labels,); of the averaged hypothesis if this engine averages."""
        rows = self.offsets[:, :self.labels()]
        return rows[1] / self.t if self.averages and self.t else rows[0].copy()

    cdef int channel(self) noexcept nogil:
        """The channel that `decision` evaluates."""
        return self.expansion.frame.channels - 1 if self.averages and self.t else 0

    def coefficients(self, slots=None):
        """True coefficients of the function that `decision` evaluates; see `Expansion.coefficients`."""
        return self.averaged(self.expansion.coefficients(self.channel(), slots))

    cdef averaged(self, true):
        """The sum of all hypotheses to their average, if that is what `decision` evaluates."""
        return true / self.t if self.channel() else true

    def knots(self, Py_ssize_t j):
        """(keys, counts, coefficients, sizes) of a coordinate's tree, of the function that `decision` evaluates."""
        forest = self.expansion
        keys, counts, _, sizes = forest.tree.contents(j)
        return keys, counts, self.averaged(forest.knots(j, self.channel())), sizes

    def component(self, Py_ssize_t j, points):
        """f_j at values of coordinate j, shape (len(points), labels)."""
        forest = self.expansion
        return self.averaged(forest.component(j, points, self.channel()))

    def square_on_trees(self):
        """|f|^2 = sum_j sum_p a_jp f_j(p) over the knots p of each coordinate."""
        forest, channel = self.expansion, self.channel()
        total = sum(np.sum(forest.knots(j, channel).T * forest.component_at_knots(j, channel))
                    for j in range(self.expansion.n_features))
        return float(self.averaged(self.averaged(total)))

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
        self.acquire()
        try:
            return self.decide_all(X, objects, trusted, votes)
        finally:
            self.release()

    cdef decide_all(self, X, objects, bint trusted, int votes):
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

    cdef void score(self, const Piece* piece, Py_ssize_t i, double* out) noexcept nogil:
        """Scores of one example, of the averaged hypothesis if this engine averages."""
        cdef Py_ssize_t l, width = self.expansion.width
        cdef int channel = self.channel()
        self.expansion.evaluate(piece, i, channel, self.bare)
        for l in range(self.labels()):
            out[l] = self.bare[l] + self.offset[l]
            if channel:
                out[l] = (self.bare[channel * width + l] + self.offset_sum[l]) / self.t

    # ---- State --------------------------------------------------------------------------------

    def scalar(self):
        """Current value of the loss's margin or width."""
        return self.loss.scalar

    def step_size(self):
        """eta of the latest example; of the first one before it has come."""
        return self.meta.eta if self.adapts_step() else step_size(&self.step, max(self.t, 1))

    def norms(self):
        """(<f, v>, |f|^2) as they are kept for SVMD, norm balls, ROMMA and ALMA."""
        return self.meta.product, self.meta.square

    def begin_from(self, offset, *arguments):
        """Start from another function; see `Expansion.begin_from`."""
        self.expansion.begin_from(*arguments)
        self.offsets[0, :len(offset)] = offset

    def begin_with_square(self, double square):
        """Say what |f|^2 of the function is that this engine starts from."""
        self.meta.square = self.meta.peak = square
        if self.rule.radius > 0.0:
            self.stay_in_ball()

    def state(self):
        """Everything that learning has changed, as named numbers and arrays; no scratch."""
        if self.owner == threading.get_ident():     # from a user's loss, between two examples
            return self.read_state()
        with self.lock:
            return self.read_state()

    cdef read_state(self):
        state = {
            "t": int(self.t),
            "offsets": self.offsets.copy(),
            "scalar": float(self.loss.scalar),
            "meta": np.array([self.meta.eta, self.meta.product, self.meta.square, self.meta.scalar_eta,
                              self.meta.scalar_trace, self.meta.corrections, self.meta.peak]),
        }
        state.update(self.expansion.state())
        return state

    def restore(self, state):
        """Continue from a state; ValueError if it does not fit."""
        meta = check_array(state["meta"], "meta", np.float64, (7,))
        offsets = check_array(state["offsets"], "offsets", np.float64, self.offsets.shape)
        if type(state["t"]) is not int or not 0 <= state["t"] < 1 << 62:
            raise ValueError("t is not a number of examples")
        if type(state["scalar"]) is not float or not isfinite(<double> state["scalar"]):
            raise ValueError("the loss's scalar is not a finite number")
        self.expansion.restore(state)
        self.t = state["t"]
        self.loss.scalar = state["scalar"]
        self.offsets[:] = offsets
        self.meta = Meta(meta[0], meta[1], meta[2], meta[3], meta[4], meta[5], meta[6])

    def _check(self):
        """Assert every invariant."""
        assert self.t >= 0 and np.isfinite(self.offsets).all()
        self.expansion._check()

