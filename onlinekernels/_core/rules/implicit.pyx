"""Implicit updates: ILK and SILK."""
cimport cython
from libc.math cimport INFINITY
from onlinekernels._core.formulas.dense cimport hinge_step, softmax_step
from onlinekernels._core.formulas.losses cimport MULTICLASS_LOGISTIC, MULTICLASS_SQUARED, loss_implicit
from onlinekernels._core.formulas.moves cimport (Shift, Standing, implicit_kernel, implicit_move, implicit_shift_by,
                                                 implicit_shrink, move_scalar, moved_square, shift_by, step_size)
from onlinekernels._core.functions.outputs cimport Outputs
from onlinekernels._core.rules.convex cimport ConvexStep
from onlinekernels._core.rules.rule cimport Rule
from onlinekernels._core.rules.rule import DIRECTIONS
from onlinekernels._core.run.example cimport Example


@cython.final
cdef class Implicit(Rule):
    """f <- argmin 1/2 |f - f_t|^2 + eta (lambda/2 |f|^2 + C L(f)): ILK and SILK.

    Parameters
    ----------
    step : tuple
    regularization, penalty : float
        lambda and C of I.
    """
    cdef readonly double regularization
    cdef readonly double penalty
    cdef ConvexStep own                 # of a Python loss, or None

    def __init__(self, step, **settings):
        self.forms = (*DIRECTIONS, "AllLabels")
        self.looks_ahead = True
        self.configure(step, **settings)

    def configure(self, step, double regularization, double penalty):
        Rule.configure(self, step)
        self.regularization, self.penalty = regularization, penalty

    def take_loss(self, loss):
        self.own, self.asks_loss = ConvexStep(loss), True

    cdef double shrink(self, long long t, Example e) noexcept nogil:
        return implicit_shrink(step_size(&self.step, t), self.regularization)

    cdef double longest(self) noexcept nogil:
        return self.penalty / self.regularization if self.regularization > 0.0 else INFINITY

    cdef void move(self, const Standing* now, Example e) noexcept nogil:
        e.view.score += (self.shrink(now.t + 1, e) - 1.0) * e.view.bare
        if self.asks_loss:
            self.move_by_asking(now, e)
        else:
            implicit_move(&now.loss, &now.pace, step_size(&self.step, now.t + 1), self.regularization, self.penalty,
                          now.has_offset, &e.view, &e.move)
        if now.keeps_square:
            moved_square(&now.norms, &e.view, &e.move)

    cdef void move_by_asking(self, const Standing* now, Example e) noexcept nogil:
        """The same of a Python loss."""
        cdef double eta = step_size(&self.step, now.t + 1), shrink = implicit_shrink(eta, self.regularization)
        cdef double k = implicit_kernel(shrink, e.view.offsets if now.has_offset else 0.0, e.view.k), alpha = 0.0
        cdef Shift shift
        if k > 0.0:
            alpha = self.own.alpha(e.view.score, e.view.target, k, shrink * eta * self.penalty * e.view.weight, e)
        shift = implicit_shift_by(shrink, alpha)
        shift_by(&shift, &e.move)

    cdef void move_all(self, const Standing* now, Outputs outputs, Py_ssize_t y, double k, Example e) noexcept nogil:
        cdef double eta = step_size(&self.step, now.t + 1), shrink = self.shrink(now.t + 1, e)
        cdef double size = shrink * eta * self.penalty * e.weight
        cdef Py_ssize_t l, n = outputs.n
        e.move.transform[0][0] = shrink
        move_scalar(&now.loss, &now.pace, eta * self.penalty, e.weight, e.view.scalar_gradient, e.view.compared, &e.move)
        k = implicit_kernel(shrink, 1.0 if now.has_offset else 0.0, k)
        if k > 0.0 and size > 0.0:
            self.over_all_labels(now, n, y, k, size, e)
        for l in range(n):
            e.term.offset[l] = 1.0 / shrink * e.term.alpha[l]

    cdef void over_all_labels(self, const Standing* now, Py_ssize_t n, Py_ssize_t y, double k, double size,
                              Example e) noexcept nogil:
        """The arg-min over all labels, for the delta kernel. O(n), for exact hinges O(n log n)."""
        cdef Py_ssize_t l
        cdef double* violation = e.work
        if now.loss.code == MULTICLASS_SQUARED:
            for l in range(n):
                e.term.alpha[l] = loss_implicit(&now.loss, e.shrunk[l], 1.0 if l == y else -1.0, k, size)
            return
        if n < 2:                                   # a single label so far: nothing to tell apart
            return
        if now.loss.code == MULTICLASS_LOGISTIC:
            softmax_step(e.shrunk, y, n, k, size, e.work, e.term.alpha)
            return
        for l in range(n):
            violation[l] = now.loss.scalar * e.distance[l] + e.shrunk[l] - e.shrunk[y]
        hinge_step(violation, y, n, k, size, e.work + e.width, e.term.alpha)
