"""Steps whose size adapts, explicit and implicit: stochastic meta-descent, SVMD."""
cimport cython
import numpy as np
from libc.math cimport INFINITY, fabs, fmax
from onlinekernels._core.arrays cimport array_data
from onlinekernels._core.formulas.dense cimport softmax_grip_times, softmax_hessian_times, softmax_step
from onlinekernels._core.formulas.losses cimport loss_adapts, loss_grows_like_square, loss_implicit
from onlinekernels._core.formulas.moves cimport (Norms, Shift, Standing, adapted_step, capped, gain, implicit_grip,
                                                 implicit_kernel, implicit_shift, implicit_shrink, is_bounded,
                                                 meta_transform, move_scalar, moved_logarithm, moved_norms, shift_by,
                                                 trace_transform)
from onlinekernels._core.functions cimport Example, Function, Outputs
from onlinekernels._core.rules cimport Rule
from onlinekernels._core.rules import DIRECTIONS
from onlinekernels._core.schema import Array, Number

# ---- Gradient steps whose size adapts ------------------------------------------------------------

cdef struct Adapted:
    # What adapts with the examples: V (33)-(58)
    double eta                          # step of f
    double scalar_eta                   # step of the margin's logarithm
    double scalar_trace                 # its trace: the derivative of that logarithm with respect to that of its step

cdef struct OffsetStep:
    # What adapts with each offset: V (50)-(52)
    double eta                          # step of the offset
    double trace                        # derivative of the offset with respect to the logarithm of its step
    double offset                       # that it has led to

cdef struct Adaptation:
    # What is decided about an example; behind it, an `OffsetStep` for each output
    Adapted adapted                     # what the rule will have adapted to
    double derivative                   # of the loss along the direction that was looked at,
    double chi                          # and its curvature there times what f + b gains along it
    double stiffness                    # curvature along the step, squared losses: caps adapted steps
    double offset_trace                 # what the trace of an offset gains along the direction

cdef inline Adaptation* decided(Example e) noexcept nogil:
    return <Adaptation*> e.decision

cdef inline OffsetStep* decided_offsets(Example e) noexcept nogil:
    return <OffsetStep*> (e.decision + sizeof(Adaptation))

OFFSET_STEP = np.dtype([(name, np.float64) for name in ("eta", "trace", "offset")])      # `OffsetStep`


cdef class AdaptiveGradient(Rule):
    """SVMD, V Algorithm 2: gradient steps whose size adapts; the gradient trace v is the second channel."""

    FIELDS = (Number("eta"), Number("scalar_eta"), Number("scalar_trace"),
              Array("offset_eta", np.float64, ("labels",)), Array("offset_trace", np.float64, ("labels",)))

    forms = (*DIRECTIONS, "AllLabels")

    cdef Outputs outputs                        # the labels
    cdef readonly double regularization         # c of V
    cdef readonly double penalty                # C of implicit steps, otherwise 1
    cdef readonly double offset_rate            # eta of the offsets at the beginning, V (50),
    cdef readonly double offset_meta_rate       # their mu, V (51),
    cdef readonly double offset_memory          # and their lambda, V (52)
    cdef readonly double margin_rate            # eta of the margin at the beginning, V (56),
    cdef readonly double margin_meta_rate       # its mu, V (57),
    cdef readonly double margin_memory          # and its lambda, V (58)
    cdef readonly bint quadratic                # whether steps grow and shrink by V's footnote 2, not by (4)
    cdef Adapted adapted                        # what has adapted with the examples so far
    cdef readonly object offset_steps           # an `OffsetStep` for each output
    cdef OffsetStep* offsets                    # its data

    def __init__(self, step, **settings):
        self.has_trace = True
        self.set_offset_steps(np.zeros(1, dtype=OFFSET_STEP))
        self.configure(step, **settings)

    def configure(self, step, double regularization):
        offset_rate, offset_meta_rate, offset_memory, margin_rate, margin_meta_rate, margin_memory = step[5:11]
        self.quadratic = step[11]
        if step[1] != self.step.rate:               # a new eta_0 starts the adaptation anew
            self.adapted.eta = step[1]
        if offset_rate != self.offset_rate:
            self.offset_steps["eta"] = offset_rate
        if margin_rate != self.margin_rate:
            self.adapted.scalar_eta = margin_rate
        Rule.configure(self, step)
        self.regularization, self.penalty = regularization, 1.0
        self.offset_rate, self.offset_meta_rate, self.offset_memory = offset_rate, offset_meta_rate, offset_memory
        self.margin_rate, self.margin_meta_rate, self.margin_memory = margin_rate, margin_meta_rate, margin_memory

    cdef int set_offset_steps(self, steps) except -1:
        cdef OffsetStep* offsets = <OffsetStep*> array_data(steps)
        self.offset_steps, self.offsets = steps, offsets

    def grow(self, Py_ssize_t width, Py_ssize_t known, bint future):
        steps = np.zeros(width, dtype=OFFSET_STEP)
        steps["eta"] = self.offset_rate
        steps[:known] = self.offset_steps[:known]
        if future:
            steps[known:] = steps[known - 1]
        self.set_offset_steps(steps)

    cdef double step_at(self, long long t) noexcept nogil:
        return self.adapted.eta

    cdef double longest(self) noexcept nogil:
        return self.penalty / self.regularization if self.regularization > 0.0 else INFINITY

    # ---- Decide -------------------------------------------------------------------------------

    cdef Py_ssize_t decision_size(self, Py_ssize_t width) noexcept:
        return sizeof(Adaptation) + width * sizeof(OffsetStep)

    cdef bint is_finite(self, Example e) noexcept nogil:
        cdef Adapted* next = &decided(e).adapted
        return is_bounded(next.eta + next.scalar_eta + fabs(next.scalar_trace))

    cdef void adapt(self, double product, Example e) noexcept nogil:
        """The step after <g, v>: V (33). O(1)."""
        cdef Adapted* next = &decided(e).adapted
        next[0] = self.adapted
        next.eta = adapted_step(self.adapted.eta, self.step.meta_rate, product, self.quadratic,
                                self.regularization + decided(e).stiffness)

    cdef void move_scalar(self, const Standing* now, Example e) noexcept nogil:  # no-cython-lint
        """V (53)-(58): the margin in log space, its step size first, then v_eps, then eps. O(1)."""
        cdef double slope = self.penalty * e.view.weight * now.loss.scalar * e.view.scalar_gradient     # dl / d log eps
        cdef double memory = self.margin_memory
        cdef Adapted* next = &decided(e).adapted
        e.move.compared = e.view.compared
        if now.loss.step != 0.0:
            move_scalar(now, next.eta * self.penalty, &e.view, &e.move)
        elif loss_adapts(&now.loss) and now.loss.scalar > 0.0:
            next.scalar_eta *= gain(self.margin_meta_rate, next.scalar_trace * slope, self.quadratic)   # V (57)
            next.scalar_trace = (memory * next.scalar_trace
                                 - next.scalar_eta * slope * (1.0 + memory * next.scalar_trace))    # V (58)
            e.move.scalar = moved_logarithm(&now.loss, next.scalar_eta * self.penalty * e.view.weight,
                                            e.view.scalar_gradient)

    cdef double offset_trace_along(self, Example e) noexcept nogil:
        """The trace of the offsets along the direction of e.term.labels; 0 where there are none."""
        cdef double trace = self.offsets[e.term.labels[0]].trace
        return trace - self.offsets[e.term.labels[1]].trace if e.term.n == 2 else trace

    cdef void move(self, const Standing* now, Example e) noexcept nogil:
        cdef Adaptation* next = decided(e)
        cdef double xi = e.view.derivative, memory = self.step.memory, c = self.regularization, chi, eta
        next.derivative, next.stiffness = xi, 0.0
        if loss_grows_like_square(&now.loss):
            next.stiffness = e.view.curvature * (e.view.k + (e.view.offsets if now.has_offset else 0.0))
        next.adapted = self.adapted
        next.chi = chi = e.view.curvature * (e.view.trace + self.offset_trace_along(e))     # (43), erratum
        e.move.offset = 0.0                                                 # `decide_offsets` does that
        self.adapt(c * now.norms.product + xi * e.view.trace, e)            # (33), (45)
        eta = next.adapted.eta
        self.move_scalar(now, e)
        meta_transform(eta, c, memory, &e.move)
        e.move.alpha[0] = -eta * xi                                         # (32)
        e.move.alpha[1] = -eta * (xi + memory * chi)                        # (42)
        self.norms_along(now, e)

    cdef void norms_along(self, const Standing* now, Example e) noexcept nogil:
        """<f, v> and |f|^2 after the move along e.view. O(1)."""
        cdef double a = e.move.alpha[0], b = e.move.alpha[1]
        moved_norms(&e.move, a * e.view.bare, a * e.view.trace, b * e.view.bare, a * a * e.view.k, a * b * e.view.k,
                    &now.norms, &e.move.norms)

    cdef void move_all(self, const Standing* now, Outputs outputs, Py_ssize_t y, double k, Example e) noexcept nogil:
        """All labels at once: V (37), (38), (44). O(outputs)."""
        cdef Adaptation* next = decided(e)
        cdef Py_ssize_t l, n = outputs.n
        cdef double* xi = e.derivative
        cdef double* v = e.bare + e.width
        cdef double* chi = e.work                   # the Hessian times v + v_b; `decide_offsets` finds it here
        cdef double* K_b = chi + e.width            # kappa times what enters v
        cdef double* K_a = K_b + e.width            # kappa times what enters f, and first kappa xi
        cdef double c = self.regularization, memory = self.step.memory, eta, xi_v = 0.0
        for l in range(n):
            K_a[l], K_b[l] = xi[l], v[l] + self.offsets[l].trace
        hessian_times(e, K_b, n, chi)
        outputs.apply(K_a, e.nodes)
        for l in range(outputs.n_seen):
            xi_v += xi[l] * v[l]
        next.stiffness = 0.0
        if e.diagonal and loss_grows_like_square(&now.loss):
            next.stiffness = stiffness_along(e, K_a, outputs, k, 1.0 if now.has_offset else 0.0)
        next.adapted = self.adapted
        self.adapt(c * now.norms.product + xi_v, e)
        eta = next.adapted.eta
        meta_transform(eta, c, memory, &e.move)
        for l in range(n):
            e.term.alpha[l] = -eta * xi[l]
            e.term.alpha[n + l] = K_b[l] = -eta * (xi[l] + memory * chi[l])
            e.term.offset[l] = 0.0
            K_a[l] *= -eta
        outputs.apply(K_b, e.nodes)
        self.norms_over(0, outputs.n_seen, k, K_a, K_b, &now.norms, &e.move.norms, e)
        if outputs.future:
            self.norms_over(outputs.n_seen, outputs.n_seen + 1, k, K_a, K_b, &now.future, &e.move.future, e)

    cdef void norms_over(self, Py_ssize_t first, Py_ssize_t stop, double k, const double* K_a, const double* K_b,
                         const Norms* old, Norms* new, Example e) noexcept nogil:
        """<f, v> and |f|^2 of some outputs after a move of all; K_a and K_b are kappa times the new term."""
        cdef Py_ssize_t l
        cdef double* f = e.bare
        cdef double* v = e.bare + e.width
        cdef double* a = e.term.alpha
        cdef double* b = a + self.outputs.n
        cdef double a_f = 0.0, a_v = 0.0, b_f = 0.0, aka = 0.0, akb = 0.0
        for l in range(first, stop):
            a_f += a[l] * f[l]
            a_v += a[l] * v[l]
            b_f += b[l] * f[l]
            aka += k * a[l] * K_a[l]
            akb += k * a[l] * K_b[l]
        moved_norms(&e.move, a_f, a_v, b_f, aka, akb, old, new)

    cdef bint decide_offsets(self, Py_ssize_t labels, const double* offset, Example e) noexcept nogil:
        """Each offset has a step of its own, and a trace: V (50)-(52). O(outputs)."""
        cdef Py_ssize_t l
        cdef const OffsetStep* now
        cdef OffsetStep* next
        cdef double* chi = e.work
        cdef double* xi = e.derivative
        cdef bint finite = True
        if not e.all_labels:
            for l in range(labels):
                xi[l] = chi[l] = 0.0
            for l in range(e.term.n):               # the second label of a pair has the opposite sign
                xi[e.term.labels[l]] = decided(e).derivative * (1.0 - 2.0 * l)
                chi[e.term.labels[l]] = decided(e).chi * (1.0 - 2.0 * l)
        for l in range(labels):
            now, next = self.offsets + l, decided_offsets(e) + l
            next.eta = capped(now.eta * gain(self.offset_meta_rate, xi[l] * now.trace, self.quadratic),
                              decided(e).stiffness)                                                 # V (51)
            next.trace = (self.offset_memory * now.trace                                            # V (52), erratum
                          - next.eta * (xi[l] + self.offset_memory * chi[l]))
            next.offset = offset[l] - next.eta * xi[l]                                              # V (50)
            finite &= is_bounded(next.eta + fabs(next.trace) + fabs(next.offset))
        return finite

    # ---- Carry out ----------------------------------------------------------------------------

    cdef void accept(self, const Standing* now, Py_ssize_t labels, double* offset, Example e) noexcept nogil:
        cdef Py_ssize_t l
        self.adapted = decided(e).adapted
        if now.has_offset:
            for l in range(labels):
                self.offsets[l] = decided_offsets(e)[l]
                offset[l] = self.offsets[l].offset

    # ---- State --------------------------------------------------------------------------------

    cdef int stand_on(self, Function function) except -1:
        self.outputs = function.outputs

    def stored(self):
        offsets = self.offset_steps[:self.outputs.kept()]
        return {**self.adapted, "offset_eta": offsets["eta"], "offset_trace": offsets["trace"]}

    def resume(self, state):
        offsets = self.offset_steps[:state["labels"]]
        self.adapted = Adapted(state["eta"], state["scalar_eta"], state["scalar_trace"])
        offsets["eta"], offsets["trace"] = state["offset_eta"], state["offset_trace"]


cdef void hessian_times(Example e, const double* vector, Py_ssize_t n, double* out) noexcept nogil:
    """out = H vector, of the loss of all labels, or of a loss for each target. O(n)."""
    cdef Py_ssize_t l
    if not e.diagonal:
        softmax_hessian_times(e.probability, vector, n, e.weight, out)
        return
    for l in range(n):
        out[l] = e.curvature[l] * vector[l]


cdef double stiffness_along(Example e, const double* K_xi, Outputs outputs, double k, double offsets) noexcept nogil:
    """Curvature of squared losses along the step, per length of it; K_xi = kappa xi. O(n).

    Scores move by (k kappa + offsets) xi. Where kappa is the identity, the largest of all labels' is taken.
    """
    cdef Py_ssize_t l
    cdef double moved, bend = 0.0, length = 0.0, largest = 0.0
    if outputs.n_nodes == 0:
        for l in range(outputs.n):
            largest = fmax(largest, e.curvature[l] * (k + offsets))
        return largest
    for l in range(outputs.n):
        moved = k * K_xi[l] + offsets * e.derivative[l]
        bend += e.curvature[l] * moved * moved
        length += e.derivative[l] * moved
    return bend / length if length > 0.0 else 0.0


# ---- Implicit steps whose size adapts ------------------------------------------------------------

@cython.final
cdef class AdaptiveImplicit(AdaptiveGradient):
    """Implicit steps whose size adapts: eta <- eta max(1/2, 1 - mu <g(f_t), v_t>), then the step of `Implicit`.

    v_t is the derivative of f_t with respect to log eta, see `trace_transform`; offsets are coordinates of the same
    arg-min, so they share its step and have a part in v. Nothing caps the step: an implicit one cannot overshoot.
    """

    def __init__(self, step, **settings):
        self.looks_at_shrunk = True
        AdaptiveGradient.__init__(self, step, **settings)

    def configure(self, step, double regularization, double penalty):
        AdaptiveGradient.configure(self, step, regularization)
        self.penalty = penalty

    cdef double shrink(self, long long t, Example e) noexcept nogil:
        return implicit_shrink(decided(e).adapted.eta, self.regularization)

    cdef void look_back(self, const Standing* now, Example e) noexcept nogil:
        cdef double trace = e.view.trace + self.offset_trace_along(e)
        self.adapt_freely(self.regularization * now.norms.product + self.penalty * e.view.derivative * trace, e)

    cdef void adapt_freely(self, double product, Example e) noexcept nogil:
        """The step after <g, v>, which nothing caps."""
        cdef Adapted* next = &decided(e).adapted
        next[0] = self.adapted
        next.eta *= gain(self.step.meta_rate, product, self.quadratic)

    cdef void move(self, const Standing* now, Example e) noexcept nogil:
        cdef double shrink = self.shrink(now.t + 1, e), size = decided(e).adapted.eta * self.penalty * e.view.weight
        cdef double offsets = e.view.offsets if now.has_offset else 0.0, k = implicit_kernel(shrink, offsets, e.view.k)
        cdef double back, a
        cdef Shift shift
        e.view.score += (shrink - 1.0) * e.view.bare
        shift = implicit_shift(&now.loss, shrink, size, offsets, e.view.score, e.view.target, e.view.k)
        shift_by(shift.shrink, shift.alpha, shift.offset, &e.move)
        trace_transform(shrink, self.step.memory, &e.move)
        self.move_scalar(now, e)
        a = shift.alpha
        back = (self.step.memory * e.view.trace - (1.0 - shrink) * e.view.bare
                + a * (e.view.k + offsets / (shrink * shrink)))
        back += self.step.memory * self.offset_trace_along(e) / shrink
        back *= implicit_grip(&now.loss, shrink * size, a, e.view.score, e.view.target, k)
        e.move.alpha[1] = shrink * (a - back)
        decided(e).offset_trace = a / shrink - back
        self.norms_along(now, e)

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
        for l in range(n):
            product += self.penalty * e.derivative[l] * (v[l] + self.offsets[l].trace)
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
        self.norms_over(0, n, k, a, b, &now.norms, &e.move.norms, e)

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
            finite &= is_bounded(next[l].trace)
        return finite

    cdef void accept(self, const Standing* now, Py_ssize_t labels, double* offset, Example e) noexcept nogil:
        cdef Py_ssize_t l
        self.adapted = decided(e).adapted
        if now.has_offset:
            for l in range(labels):
                self.offsets[l].trace = decided_offsets(e)[l].trace
