"""Deciding: an example and a rule make a move.

Losses of one score and the hinges of many labels are moves in one dimension, which ``rules`` has. Moves with a
coefficient for every label (multiclass logistic, exact hinges, several targets) are at the end.
"""
import numpy as np
from libc.math cimport fmax, isfinite
from libc.string cimport memset
from onlinekernels._core.dense cimport hinge_step, mistake_gradient, softmax, softmax_step
from onlinekernels._core.expansion cimport DENSE, PAIR
from onlinekernels._core.hypothesis cimport DERIVATIVE, MOVE, PYTHON
from onlinekernels._core.losses cimport (CUSTOM, MULTICLASS_LOGISTIC, PROPORTIONAL_MISTAKE, UNIFORM_MISTAKE, loss_compared,
                                         loss_curvature, loss_derivative, loss_grows_like_square, loss_scalar_gradient)
from onlinekernels._core.rules cimport (AGGRESSIVE, APPROXIMATE, GRADIENT, IMPLICIT, META_DESCENT, RELAXED,
                                        RELAXED_AGGRESSIVE, adapted_step, aggressive_move, approximate_move,
                                        gradient_move, implicit_move, implicit_shrink, meta_move, meta_norms, meta_transform,
                                        move_scalar, moved_square, relaxed_move, step_size)
from onlinekernels._core.ring cimport array_data
from onlinekernels._core.turns cimport call_out, come_back
from onlinekernels._core.watch cimport watch_score

RULE_CODES = {"gradient": GRADIENT, "implicit": IMPLICIT, "aggressive": AGGRESSIVE,
              "aggressive squared": AGGRESSIVE + 1, "relaxed": RELAXED,
              "relaxed aggressive": RELAXED_AGGRESSIVE, "approximate": APPROXIMATE}


cdef class Decider(Hypothesis):
    """A hypothesis with a loss and a rule.

    Parameters
    ----------
    custom_loss : Loss or None
        A Python loss; the code of `loss` is then 0.
    structured : bool
        Whether the loss uses the labels' distances; otherwise all are 1.
    **others
        As for `Hypothesis`.
    """
    def __init__(self, *, custom_loss, bint structured=False, **others):
        Hypothesis.__init__(self, **others)
        self.custom_loss = custom_loss
        self.structured = structured

    def set_order(self, display):
        """Say which of equal labels comes first: display lists them; None and those behind it go by their number."""
        if display is None:
            self.ranks, self.n_ranked, self.rank_array = NULL, 0, None
            return
        self.rank_array = np.ascontiguousarray(np.argsort(display), dtype=np.int64)
        self.ranks, self.n_ranked = <const long long*> array_data(self.rank_array), len(display)

    cdef bint decide(self, const Piece* piece, Py_ssize_t i, double y, double weight, Move* move) noexcept nogil:
        """Let the rule make its move and carry it out; False, and nothing changed, if it cannot."""
        cdef View view
        cdef Py_ssize_t l, first = 0, second = 0
        move.meta = self.meta
        move.compared = self.loss.scalar
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
                view.compared = self.loss.scalar
            elif not self.differentiate(&view, weight):
                return False
            elif self.expansion.form == PAIR and self.rule.code == IMPLICIT:
                self.look_at_prediction(first, self.spare, &view)
            self.move(&view, weight, move)
        if self.averages:
            self.add_average(move)
        if not (isfinite(move.alpha[0] * piece.own[i]) and isfinite(move.offset) and isfinite(move.scalar)
                and isfinite(move.transform[0][0]) and isfinite(move.meta.square)):
            self.failure = MOVE
            return False
        if self.regression:
            for l in range(self.targets):
                watch_score(&self.watch, self.bare[l] + self.offset[l], self.row[l])
        if self.exact_norms:
            self.norms_without_newcomer(move)
        self.carry_out(piece, i, move, first, second)
        return True

    cdef double shrink(self) noexcept nogil:
        """1 - tau of an implicit step: the rule looks at the scores of the shrunk hypothesis."""
        if self.rule.code != IMPLICIT:
            return 1.0
        return implicit_shrink(step_size(&self.step, self.t + 1), self.rule.regularization)

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
            if l != y and (best < 0 or value > largest or (value == largest and self.goes_first(l, best))):
                best, largest = l, value
        return best

    cdef bint goes_first(self, Py_ssize_t a, Py_ssize_t b) noexcept nogil:
        """Whether label a > b comes before b all the same."""
        return a < self.n_ranked and self.ranks[a] < self.ranks[b]

    cdef void look_at_prediction(self, Py_ssize_t y, const double* distance, View* view) noexcept nogil:
        """dl/drho of a nu-hinge at f_t itself, whose runner-up may differ from the shrunk hypothesis's."""
        cdef Py_ssize_t best = self.runner_up(y, distance, 1.0)
        cdef double margin
        view.scalar_gradient, view.compared = -self.loss.nu, self.loss.scalar
        if best >= 0:
            margin = self.scores[y] - self.scores[best]
            view.scalar_gradient = loss_scalar_gradient(&self.loss, margin, distance[best])
            view.compared = loss_compared(&self.loss, margin, distance[best])

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
            view.compared = loss_compared(&self.loss, view.score, view.target)
            view.curvature = 0.0
            if self.adapts_step():
                view.curvature = weight * loss_curvature(&self.loss, view.score, view.target)
            return True
        view.scalar_gradient = view.curvature = view.compared = 0.0
        with gil:
            call_out()
            try:
                view.derivative = weight * self.custom_loss.derivative(view.score, view.target)
                if self.step.code == META_DESCENT:
                    view.curvature = weight * self.custom_loss.curvature(view.score, view.target)
            except BaseException as error:
                self.error = error
                self.failure = PYTHON
                return False
            finally:
                come_back()
        if not (isfinite(view.derivative) and isfinite(view.curvature)):
            self.failure = DERIVATIVE
            return False
        return True

    cdef void move(self, View* view, double weight, Move* move) noexcept nogil:
        """One of the rules, in one dimension."""
        cdef double eta = step_size(&self.step, self.t + 1)
        move.xi, move.curvature = view.derivative, view.curvature
        if self.adapts_step():
            meta_move(&self.loss, &self.step, &self.meta, self.rule.regularization, weight, self.has_offset,
                      view, move)
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

    # ---- All labels at once -----------------------------------------------------------------

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

    cdef bint differentiate_dense(self, Py_ssize_t y, double weight) noexcept nogil:
        """xi = weight dl/dscores; for the logistic loss also the probabilities, into `spare`."""
        cdef Py_ssize_t l, n = self.labels()
        if self.loss.code == MULTICLASS_LOGISTIC:
            softmax(self.scores, n, self.spare)
            for l in range(n):
                self.xi[l] = weight * (self.spare[l] - (1.0 if l == y else 0.0))            # V (21)
            return True
        if self.loss.code in (UNIFORM_MISTAKE, PROPORTIONAL_MISTAKE):
            mistake_gradient(self.scores, y, n, self.loss.code == PROPORTIONAL_MISTAKE, self.xi)
            for l in range(n):
                self.xi[l] *= weight
            return True
        with gil:
            call_out()
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
            finally:
                come_back()
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
        move.stiffness = 0.0
        if self.targets > 1 and loss_grows_like_square(&self.loss):
            for l in range(n):
                move.stiffness = fmax(move.stiffness, self.spare[l] * (k + (1.0 if self.has_offset else 0.0)))
        eta = adapted_step(&self.meta, self.step.meta_rate, c, xi_v, move.stiffness)
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
        cdef View view
        move.transform[0][0] = shrink
        move.offset = 1.0 / shrink
        self.distances(y, self.xi)
        self.look_at_prediction(y, self.xi, &view)
        move_scalar(&self.loss, eta * self.rule.penalty, weight, view.scalar_gradient, view.compared, move)
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
