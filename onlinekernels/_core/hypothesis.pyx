"""The hypothesis: an expansion with offsets and norms, and what a move does to it.

An example is evaluated here, and once a rule has made its move, the move is carried out here: old terms are
transformed, a new one is appended, offsets and the loss's scalar move, a budget and a ball are kept.
"""
import numpy as np
from libc.math cimport fabs, fmax, isfinite, sqrt
from onlinekernels._core.dense cimport softmax_hessian_times
from onlinekernels._core.expansion cimport DENSE, PAIR
from onlinekernels._core.frame cimport MAX_CHANNELS
from onlinekernels._core.kernels cimport SQUARE
from onlinekernels._core.ring cimport NEWCOMER, NOBODY, array_data
from onlinekernels._core.rules cimport META_DESCENT, capped, gain, step_size
from onlinekernels._core.watch cimport new_watch, watch_scalar, watch_step


cdef class Hypothesis:
    """f(x, .) + b over an expansion.

    Parameters
    ----------
    expansion : Expansion
        The function.
    loss : tuple
        (code, scalar, nu, the scalar's own step or 0).
    step : tuple
        (code, rate, delay, meta_rate, memory).
    rule : tuple
        (code, regularization, penalty, exact, radius, threshold).
    offset, average : bool
    exact_norms : bool
        Keep |f|^2 (and <f, v> of SVMD) exact when a term is dropped.
    targets : int
        Regression: numbers that y has for each example; each is an output.
    regression : bool
        Whether y are numbers to predict.
    """
    def __init__(self, *, Expansion expansion, loss, step, rule, bint offset, bint average, bint exact_norms,
                 Py_ssize_t targets, bint regression=False):
        self.expansion = expansion
        code, scalar, nu, own_step = loss
        self.loss = Loss(code, scalar, nu, own_step)
        self.configure(step, rule)
        self.has_offset = offset
        self.averages = average
        self.exact_norms = exact_norms
        self.targets = targets
        self.regression = regression
        self.watch = new_watch(self.loss.nu)
        self.meta = Meta(self.step.rate, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        self.offsets = np.zeros((4, expansion.width))
        self.offsets[2] = self.step.rate
        self.allocate()

    def configure(self, step, rule):
        """Set what may change between calls."""
        if step[1] != self.step.rate:               # a new eta_0 starts the adaptation anew
            self.meta.eta = step[1]
            if self.offsets is not None:
                self.offsets[2] = step[1]
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

    cdef Py_ssize_t labels(self) noexcept nogil:
        return 1 if self.expansion.outputs is None else self.expansion.outputs.n

    cdef bint can_hold(self, const Piece* piece, Py_ssize_t i) noexcept nogil:
        """Whether an example is small enough for the kernel's arithmetic."""
        cdef bint fits = isfinite(piece.own[i])
        if self.expansion.program is not None:
            fits &= isfinite(piece.facts[SQUARE * piece.rows + i])
        if not fits:
            self.failure = POINT
        return fits

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

    # ---- A move -----------------------------------------------------------------------------

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
        if self.watch.block:
            watch_scalar(&self.watch, move.compared, move.scalar)
        if self.adapts_step():
            watch_step(&self.watch, move.meta.eta, self.step.rate)
        if self.exact_norms and self.expansion.pool is not None:
            self.forget_expiring()
            self.mind_rounding()
        self.expansion.expire(self.t)
        if self.rule.radius > 0.0:
            self.stay_in_ball()

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
            self.offset_eta[l] = capped(self.offset_eta[l], move.stiffness)
            self.offset_trace[l] = (self.step.memory * self.offset_trace[l]                 # V (52), erratum
                                    - self.offset_eta[l] * (xi + self.step.memory * curved))
            self.offset[l] -= self.offset_eta[l] * xi                                       # V (50)

    cdef void hessian_times(self, const double* vector, double weight) noexcept nogil:
        """chi = H vector, from what `spare` has: curvatures of the targets, or probabilities of the labels."""
        cdef Py_ssize_t l
        if self.targets == 1:
            softmax_hessian_times(self.spare, vector, self.labels(), weight, self.chi)
            return
        for l in range(self.targets):
            self.chi[l] = self.spare[l] * vector[l]

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

    # ---- Norms ------------------------------------------------------------------------------

    cdef void norms_without_newcomer(self, const Move* move) noexcept nogil:
        """Norms of the hypothesis that is transformed only: <M_f (f, v), M_v (f, v)> with (f, v) as it was."""
        cdef double decay = move.transform[0][0]
        self.without_newcomer = move.meta
        self.without_newcomer.square = decay * decay * self.meta.square
        if not self.adapts_step():
            return
        self.without_newcomer.product = decay * (move.transform[1][0] * self.meta.square
                                                 + move.transform[1][1] * self.meta.product)

    cdef bint square_is_worn(self) noexcept nogil:
        """Whether |f|^2 has shrunk so much since it was last computed that old rounding would show."""
        return not self.adapts_step() and self.meta.square <= 1e-3 * self.meta.peak and self.meta.peak > 0.0

    cdef void renew_square(self, double square) noexcept nogil:
        self.meta.square = self.meta.peak = fmax(0.0, square)

    cdef void mind_rounding(self) noexcept nogil:
        """Compute |f|^2 = sum_i a_i f(x_i) anew when it is worn; for objects that waits for the next example."""
        cdef Py_ssize_t slot, l
        cdef double own, square = 0.0
        self.meta.peak = fmax(self.meta.peak, self.meta.square)
        if not self.square_is_worn() or self.expansion.kernel is not None:
            return
        for slot in range(self.expansion.pool.start, self.expansion.pool.stop):
            self.expansion.evaluate_slot(slot, 0, self.bare, &own)
            self.expansion.term(slot, 0, self.xi)
            for l in range(self.labels()):
                square += self.xi[l] * self.bare[l]
        self.renew_square(square)

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

    # ---- The function that predicts ---------------------------------------------------------

    cdef int channel(self) noexcept nogil:
        """The channel that `decision` evaluates."""
        return self.expansion.frame.channels - 1 if self.averages and self.t else 0

    cdef averaged(self, true):
        """The sum of all hypotheses to their average, if that is what `decision` evaluates."""
        return true / self.t if self.channel() else true

    def intercept(self):
        """b, shape (labels,); of the averaged hypothesis if this engine averages."""
        rows = self.offsets[:, :self.labels()]
        return rows[1] / self.t if self.averages and self.t else rows[0].copy()

    def coefficients(self, slots=None):
        """True coefficients of the function that `decision` evaluates; see `Expansion.coefficients`."""
        return self.averaged(self.expansion.coefficients(self.channel(), slots))

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

    cdef void score(self, const Piece* piece, Py_ssize_t i, double* out) noexcept nogil:
        """Scores of one example, of the averaged hypothesis if this engine averages."""
        cdef Py_ssize_t l, width = self.expansion.width
        cdef int channel = self.channel()
        self.expansion.evaluate(piece, i, channel, self.bare)
        for l in range(self.labels()):
            out[l] = self.bare[l] + self.offset[l]
            if channel:
                out[l] = (self.bare[channel * width + l] + self.offset_sum[l]) / self.t

    @property
    def trouble(self):
        """What went wrong first, as a number: see `watch`. 0 for nothing."""
        return self.watch.trouble

    def scalar(self):
        """Current value of the loss's margin or width."""
        return self.loss.scalar

    def set_scalar(self, double scalar):
        """Put the margin or width where it belongs, if that is known from all examples."""
        self.loss.scalar = scalar

    def step_size(self):
        """eta of the latest example; of the first one before it has come."""
        return self.meta.eta if self.adapts_step() else step_size(&self.step, max(self.t, 1))

    def norms(self):
        """(<f, v>, |f|^2) as they are kept for SVMD, norm balls, ROMMA and ALMA."""
        return self.meta.product, self.meta.square

    def begin_with_square(self, double square):
        """Say what |f|^2 of the function is that this engine starts from."""
        self.meta.square = self.meta.peak = square
        if self.rule.radius > 0.0:
            self.stay_in_ball()
