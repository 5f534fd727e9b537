"""Implicit steps whose size adapts: meta-descent on the arg-min of each step."""
cimport cython
from onlinekernels._core.formulas.dense cimport softmax_grip_times, softmax_step
from onlinekernels._core.formulas.losses cimport loss_implicit
from onlinekernels._core.formulas.moves cimport (Shift, Standing, gain, implicit_grip, implicit_kernel, implicit_shift,
                                                 implicit_shrink, is_tame, moved_norms, normalized_product, shift_by,
                                                 trace_transform)
from onlinekernels._core.functions.outputs cimport Outputs
from onlinekernels._core.rules.metadescent cimport Adapted, AdaptiveGradient, OffsetStep, decided, decided_offsets
from onlinekernels._core.run.example cimport Example


@cython.final
cdef class AdaptiveImplicit(AdaptiveGradient):
    """Implicit steps whose size adapts: eta <- eta max(1/2, 1 - mu <g(f_t), v_t>), then the step of `Implicit`.

    v_t is the derivative of f_t with respect to log eta, see `trace_transform`; offsets are coordinates of the same arg-min,
    so they share its step and have a part in v. Nothing caps the step: an implicit one cannot overshoot.

    Parameters
    ----------
    step : tuple
    regularization, penalty : float
    """

    def __init__(self, step, **settings):
        self.looks_ahead = True
        AdaptiveGradient.__init__(self, step, **settings)

    def configure(self, step, double regularization, double penalty, bint normalized=False):
        AdaptiveGradient.configure(self, step, regularization, normalized)
        self.penalty = penalty

    cdef double shrink(self, long long t, Example e) noexcept nogil:
        return implicit_shrink(decided(e).adapted.eta, self.regularization)

    cdef double offset_trace_along(self, Example e) noexcept nogil:
        """The trace of the offsets along the direction of e.term.labels."""
        cdef double trace = self.offsets[e.term.labels[0]].trace
        return trace - self.offsets[e.term.labels[1]].trace if e.term.n == 2 else trace

    cdef void look_back(self, const Standing* now, Example e) noexcept nogil:
        cdef double trace = e.view.trace + (self.offset_trace_along(e) if now.has_offset else 0.0)
        self.adapt_freely(self.regularization * now.norms.product + self.penalty * e.view.derivative * trace, e)

    cdef void adapt_freely(self, double product, Example e) noexcept nogil:
        """The step after <g, v>, which nothing caps."""
        cdef Adapted* next = &decided(e).adapted
        next[0] = self.adapted
        if self.normalized:
            product = normalized_product(product, &next.scale, &next.scale_weight)
        next.eta *= gain(self.step.meta_rate, product, self.exponential)

    cdef void move(self, const Standing* now, Example e) noexcept nogil:
        cdef double shrink = self.shrink(now.t + 1, e), size = decided(e).adapted.eta * self.penalty * e.view.weight
        cdef double offsets = e.view.offsets if now.has_offset else 0.0, k = implicit_kernel(shrink, offsets, e.view.k)
        cdef double back, a, b
        cdef Shift shift
        e.view.score += (shrink - 1.0) * e.view.bare
        shift = implicit_shift(&now.loss, shrink, size, offsets, e.view.score, e.view.target, e.view.k)
        shift_by(&shift, &e.move)
        trace_transform(shrink, self.step.memory, &e.move)
        self.move_scalar(now, e)
        a = shift.alpha
        back = self.step.memory * e.view.trace - (1.0 - shrink) * e.view.bare + a * (e.view.k + offsets / (shrink * shrink))
        if now.has_offset:
            back += self.step.memory * self.offset_trace_along(e) / shrink
        back *= implicit_grip(&now.loss, shrink * size, a, e.view.score, e.view.target, k)
        e.move.alpha[1] = b = shrink * (a - back)
        decided(e).offset_trace = a / shrink - back
        moved_norms(&e.move, a * e.view.bare, a * e.view.trace, b * e.view.bare, a * a * e.view.k, a * b * e.view.k, &now.norms,
                    &e.move.norms)

    cdef void move_all(self, const Standing* now, Outputs outputs, Py_ssize_t y, double k, Example e) noexcept nogil:
        """All labels at once, or all targets; kappa is the identity. e.derivative is that at f_t."""
        cdef Py_ssize_t l, n = outputs.n
        cdef OffsetStep* next = decided_offsets(e)
        cdef double* f = e.bare
        cdef double* v = e.bare + e.width
        cdef double* a = e.term.alpha
        cdef double* b = e.term.alpha + n
        cdef double* back = e.work                  # what v would be at x but for the loss, which gives this back of it
        cdef double* probability = e.work + e.width         # after the step
        cdef double memory = self.step.memory, product = self.regularization * now.norms.product, shrink, size, own
        cdef double a_f = 0.0, a_v = 0.0, b_f = 0.0, aka = 0.0, akb = 0.0
        for l in range(n):
            product += self.penalty * e.derivative[l] * (v[l] + (self.offsets[l].trace if now.has_offset else 0.0))
        self.adapt_freely(product, e)
        shrink = self.shrink(now.t + 1, e)
        size = shrink * decided(e).adapted.eta * self.penalty * e.weight
        own = implicit_kernel(shrink, 1.0 if now.has_offset else 0.0, k)
        for l in range(n):
            e.shrunk[l] = e.scores[l] + (shrink - 1.0) * f[l]
        if own > 0.0 and size > 0.0:
            if e.diagonal:
                for l in range(n):
                    a[l] = loss_implicit(&now.loss, e.shrunk[l], e.targets[l], own, size)
            elif n >= 2:
                softmax_step(e.shrunk, y, n, own, size, e.work, a)
        for l in range(n):
            back[l] = memory * v[l] - (1.0 - shrink) * f[l] + a[l] * k
            if now.has_offset:
                back[l] += (memory * self.offsets[l].trace + a[l] / shrink) / shrink
        if e.diagonal:
            for l in range(n):
                back[l] *= implicit_grip(&now.loss, size, a[l], e.shrunk[l], e.targets[l], own)
        elif size > 0.0:
            for l in range(n):
                probability[l] = (1.0 if l == y else 0.0) - a[l] / size
            softmax_grip_times(probability, back, n, own, size, back)
        trace_transform(shrink, memory, &e.move)
        for l in range(n):
            b[l] = shrink * (a[l] - back[l])
            e.term.offset[l] = a[l] / shrink
            next[l].trace = e.term.offset[l] - back[l]      # so much more
            a_f += a[l] * f[l]
            a_v += a[l] * v[l]
            b_f += b[l] * f[l]
            aka += a[l] * a[l] * k
            akb += a[l] * b[l] * k
        moved_norms(&e.move, a_f, a_v, b_f, aka, akb, &now.norms, &e.move.norms)

    cdef bint decide_offsets(self, Py_ssize_t labels, const double* offset, Example e) noexcept nogil:
        """Traces of the offsets, which share the step of f."""
        cdef Py_ssize_t l
        cdef OffsetStep* next = decided_offsets(e)
        cdef bint finite = True
        for l in range(labels):
            next[l].trace = self.step.memory * self.offsets[l].trace + (next[l].trace if e.all_labels else 0.0)
        if not e.all_labels:
            next[e.term.labels[0]].trace += decided(e).offset_trace
            if e.term.n == 2:
                next[e.term.labels[1]].trace -= decided(e).offset_trace
        for l in range(labels):
            finite &= is_tame(next[l].trace)
        return finite

    cdef void accept(self, const Standing* now, Py_ssize_t labels, double* offset, Example e) noexcept nogil:
        cdef Py_ssize_t l
        self.adapted = decided(e).adapted
        if now.has_offset:
            for l in range(labels):
                self.offsets[l].trace = decided_offsets(e)[l].trace
