"""Rules: what an example does to a function. `Rule` has the contract; the formulas are in ``moves`` and ``dense``."""
import numpy as np
from libc.math cimport NAN, exp, fabs, fmax, fmin, sqrt
from onlinekernels._core.arrays cimport array_data
from onlinekernels._core.arrays import check_array, check_number
from onlinekernels._core.formulas.dense cimport hinge_step, softmax_grip_times, softmax_hessian_times, softmax_step
from onlinekernels._core.functions.function cimport Function
from onlinekernels._core.formulas.losses cimport (MULTICLASS_LOGISTIC, MULTICLASS_SQUARED, loss_adapts, loss_grows_like_square,
                                         loss_implicit, loss_moved_scalar)
from onlinekernels._core.formulas.moves cimport (ADAPTED, DECAYING, FIXED, INVERSE_SQRT, Norms, Standing, Step, View, adapted_step,
                                        aggressive_move, ball_move, capped, gain, gradient_move, implicit_grip,
                                        implicit_move, implicit_shift, implicit_shrink, is_tame, meta_norms, meta_transform,
                                        move_scalar, moved_norms, moved_square, normalized_product, relaxed_move, shift_by,
                                        stand_still, step_size, trace_transform, Shift)
from onlinekernels._core.functions.outputs cimport Outputs
from onlinekernels._core.run.watch cimport RESTARTED
from onlinekernels._core.run.workspace cimport Workspace

STEP_CODES = {"Fixed": FIXED, "InverseSqrt": INVERSE_SQRT, "Decaying": DECAYING, "MetaDescent": ADAPTED}


def step_sizes(int code, double rate, double delay, double meta_rate, double memory, t):
    """eta_t for one t or an array of them."""
    cdef Step step = Step(code, rate, delay, meta_rate, memory)
    times = np.asarray(t, dtype=np.int64)
    sizes = np.array([step_size(&step, one) for one in times.ravel().tolist()])
    return sizes.reshape(times.shape) if times.ndim else float(sizes[0])


cdef class Rule:
    """Turns an example into a move, and has named state of its own.

    It decides and changes nothing: what it writes is w.move, and w.term where all labels move. When the move is
    carried out, `accept` makes its own state follow. It must implement

    `move(now, view, w)`
        the move in one direction: w.move.transform, alpha and offset. The scalar, its pace and the norms stay as they
        are unless it says otherwise. A rule that wants to see more finds in w the kernel values of the example with all
        slots;

    and may implement

    `move_all(now, outputs, y, k, weight, w)`
        a move with a coefficient for every label: w.term.alpha, and w.term.offset. What it may find there is
        the derivative of the loss, w.xi;
    `shrink(t)`
        the factor that it will apply to f, if it looks at the scores after that;
    `look_back(now, view, w)`
        before that, if it has a trace too: the example at f_t itself, along w.term.labels;
    `decide_offsets(labels, offset, w)`
        after the move, if it adapts offsets itself, or something that goes with each of them;
    `accept`, `follow`, `state`, `check_state`, `restore`, `grow`
        for a state of its own: before the move is carried out, when it has been, and between calls. Numbers per slot, or
        per pair of slots, are tables of the dictionary;
    `stand_on(function)`
        to know the function that it will move.

    Parameters
    ----------
    step : tuple
        (code, rate, delay, meta_rate, memory), for `MetaDescent` also meta_rate and memory of offsets and of the margin.
    """
    def __init__(self, step):
        self.configure(step)

    def configure(self, step):
        """Set what may change between calls."""
        self.step = Step(step[0], step[1], step[2], step[3], step[4])

    cdef void move(self, const Standing* now, View* view, Workspace w) noexcept nogil:
        stand_still(&w.move)

    cdef void move_all(self, const Standing* now, Outputs outputs, Py_ssize_t y, double k, double weight,
                       Workspace w) noexcept nogil:
        stand_still(&w.move)

    cdef double shrink(self, long long t) noexcept nogil:
        """What the rule leaves of old coefficients at example t, if it looks at the scores after that."""
        return 1.0

    cdef void look_back(self, const Standing* now, const View* view, Workspace w) noexcept nogil:
        """The example as f_t sees it, before the rule is asked how much it will shrink f."""
        pass

    cdef double step_at(self, long long t) noexcept nogil:
        """eta of example t, which has just been decided."""
        return step_size(&self.step, t)

    cdef bint is_finite(self) noexcept nogil:
        """Whether its own state would be, after the move that has been decided."""
        return True

    cdef bint decide_offsets(self, Py_ssize_t labels, const double* offset, Workspace w) noexcept nogil:
        """What `accept` will do to offsets that it adapts itself, and to what goes with them; False if that is not finite."""
        return True

    cdef void accept(self, const Standing* now, Py_ssize_t labels, double* offset, Workspace w) noexcept nogil:
        """The move that has been decided is carried out: let its own state follow, and offsets that it adapts itself."""
        pass

    cdef void follow(self, Workspace w) noexcept nogil:
        """The move has been carried out: w.piece.slot is where the example is now, -1 if it is nowhere."""
        pass

    cdef double reach(self, Workspace w, Py_ssize_t output, int level, double share, double factor) noexcept nogil:
        """How far y may be from the score that was just evaluated, in the interval of a coverage: see `level_of`."""
        return NAN

    cdef int stand_on(self, Function function) except -1:
        """This is the function that it will move."""
        return 0

    def grow(self, Py_ssize_t width, Py_ssize_t known, bint ahead):
        """Make room for more labels than are known; those that learn ahead go on from the last one."""

    def current_step(self, long long t):
        """eta of example t, the latest one."""
        return step_size(&self.step, t)

    def state(self, Py_ssize_t labels):
        """Named numbers and arrays."""
        return {}

    def check_state(self, state):
        """ValueError unless a state fits."""

    def restore(self, state):
        """Continue from a state that has been checked; the function has been restored."""

    def _check(self):
        """Assert every invariant."""


cdef class Gradient(Rule):
    """f <- (1 - eta lambda) f - eta l'(f(x), y) k(x, .): NORMA.

    Parameters
    ----------
    step : tuple
    regularization : float
    """

    def configure(self, step, double regularization, **others):
        Rule.configure(self, step)
        self.regularization = regularization

    def __init__(self, step, **others):
        self.configure(step, **others)

    cdef void move(self, const Standing* now, View* view, Workspace w) noexcept nogil:
        gradient_move(&now.loss, &now.pace, step_size(&self.step, now.t + 1), self.regularization, view, &w.move)
        if now.keeps_square:
            moved_square(&now.norms, view, &w.move)

    cdef void move_all(self, const Standing* now, Outputs outputs, Py_ssize_t y, double k, double weight,
                       Workspace w) noexcept nogil:
        cdef double eta = step_size(&self.step, now.t + 1)
        cdef Py_ssize_t l
        w.move.transform[0][0] = 1.0 - eta * self.regularization
        for l in range(outputs.n):
            w.term.alpha[l] = w.term.offset[l] = -eta * w.xi[l]


cdef class Implicit(Rule):
    """f <- argmin 1/2 |f - f_t|^2 + eta (lambda/2 |f|^2 + C L(f)): ILK and SILK.

    Parameters
    ----------
    step : tuple
    regularization, penalty : float
    """

    def __init__(self, step, **others):
        self.looks_ahead = True
        self.configure(step, **others)

    def configure(self, step, double regularization, double penalty, **others):
        Rule.configure(self, step)
        self.regularization, self.penalty = regularization, penalty

    cdef double shrink(self, long long t) noexcept nogil:
        return implicit_shrink(step_size(&self.step, t), self.regularization)

    cdef void move(self, const Standing* now, View* view, Workspace w) noexcept nogil:
        view.score += (self.shrink(now.t + 1) - 1.0) * view.bare
        implicit_move(&now.loss, &now.pace, step_size(&self.step, now.t + 1), self.regularization, self.penalty,
                      now.has_offset, view, &w.move)
        if now.keeps_square:
            moved_square(&now.norms, view, &w.move)

    cdef void move_all(self, const Standing* now, Outputs outputs, Py_ssize_t y, double k, double weight,
                       Workspace w) noexcept nogil:
        cdef double eta = step_size(&self.step, now.t + 1), shrink = self.shrink(now.t + 1)
        cdef double size = shrink * eta * self.penalty * weight
        cdef Py_ssize_t l, n = outputs.n
        w.move.transform[0][0] = shrink
        move_scalar(&now.loss, &now.pace, eta * self.penalty, weight, w.view.scalar_gradient, w.view.compared, &w.move)
        if now.has_offset:
            k += 1.0 / shrink
        if k > 0.0 and size > 0.0:
            self.over_all_labels(now, n, y, k, size, w)
        for l in range(n):
            w.term.offset[l] = 1.0 / shrink * w.term.alpha[l]

    cdef void over_all_labels(self, const Standing* now, Py_ssize_t n, Py_ssize_t y, double k, double size,
                              Workspace w) noexcept nogil:
        """The arg-min over all labels, for the delta kernel; w.xi has their distances from y, w.spare their shrunk scores."""
        cdef Py_ssize_t l
        if now.loss.code == MULTICLASS_SQUARED:
            for l in range(n):
                w.term.alpha[l] = loss_implicit(&now.loss, w.spare[l], 1.0 if l == y else -1.0, k, size)
            return
        if n < 2:                                   # a single label so far: nothing to tell apart
            return
        if now.loss.code == MULTICLASS_LOGISTIC:
            softmax_step(w.spare, y, n, k, size, w.chi, w.term.alpha)
            return
        for l in range(n):
            w.chi[l] = now.loss.scalar * w.xi[l] + w.spare[l] - w.spare[y]
        hinge_step(w.chi, y, n, k, size, w.probability, w.term.alpha)


cdef class Aggressive(Rule):
    """The shortest way to no loss, or to less: passive-aggressive, and the projections of H.

    Parameters
    ----------
    step : tuple
    penalty : float
    squared : bool
        PA-II.
    """

    def __init__(self, step, bint squared=False, **others):
        self.squared = squared
        self.configure(step, **others)

    def configure(self, step, double penalty, **others):
        Rule.configure(self, step)
        self.penalty = penalty

    cdef void move(self, const Standing* now, View* view, Workspace w) noexcept nogil:
        aggressive_move(&now.loss, self.penalty, self.squared, now.has_offset, view, &w.move)
        if now.keeps_square:
            moved_square(&now.norms, view, &w.move)


cdef class Relaxed(Rule):
    """ROMMA.

    Parameters
    ----------
    step : tuple
    aggressive : bool
    """

    def __init__(self, step, bint aggressive=False, **others):
        self.aggressive = aggressive
        Rule.configure(self, step)

    def configure(self, step, **others):
        Rule.configure(self, step)

    cdef void move(self, const Standing* now, View* view, Workspace w) noexcept nogil:
        self.too_long = relaxed_move(self.aggressive, now.norms.square, view, &w.move)
        if now.keeps_square:
            moved_square(&now.norms, view, &w.move)

    cdef void accept(self, const Standing* now, Py_ssize_t labels, double* offset, Workspace w) noexcept nogil:
        if self.too_long:
            self.trouble = RESTARTED


cdef class Ball(Rule):
    """Ballseptron.

    Parameters
    ----------
    step : tuple
    threshold : float
        The radius of the ball.
    """

    def __init__(self, step, **others):
        self.configure(step, **others)

    def configure(self, step, double threshold, **others):
        Rule.configure(self, step)
        self.radius = threshold

    cdef void move(self, const Standing* now, View* view, Workspace w) noexcept nogil:
        ball_move(self.radius, now.norms.square, view, &w.move)
        if now.keeps_square:
            moved_square(&now.norms, view, &w.move)


cdef class Approximate(Rule):
    """ALMA_2 (Gentile): w + C / sqrt(k) y x if y w.x <= (1 - alpha) B / sqrt(k); the hypothesis keeps |w| <= 1.

    Parameters
    ----------
    step : tuple
    threshold : float
        (1 - alpha) B.
    penalty : float
        C.
    """

    def __init__(self, step, **others):
        self.configure(step, **others)

    def configure(self, step, double threshold, double penalty, **others):
        Rule.configure(self, step)
        self.threshold, self.penalty = threshold, penalty

    cdef void move(self, const Standing* now, View* view, Workspace w) noexcept nogil:
        cdef double k = self.corrections + 1.0
        stand_still(&w.move)
        self.next_corrections = self.corrections
        if view.k > 0.0 and view.weight > 0.0 and view.target * view.bare <= self.threshold / sqrt(k):
            w.move.alpha[0] = view.target * self.penalty / sqrt(k)
            self.next_corrections = k
        if now.keeps_square:
            moved_square(&now.norms, view, &w.move)

    cdef void accept(self, const Standing* now, Py_ssize_t labels, double* offset, Workspace w) noexcept nogil:
        self.corrections = self.next_corrections

    def state(self, Py_ssize_t labels):
        return {"corrections": self.corrections}

    def check_state(self, state):
        check_number(state["corrections"], "corrections", 0.0)

    def restore(self, state):
        self.corrections = self.next_corrections = state["corrections"]


cdef class Projected(Rule):
    """Projectron and Projectron++ (Orabona, Keshet, Caputo): a Perceptron whose updates the terms that are there take over.

    The budget projects what does not enter. After a margin error, 0 < y f(x) < 1, the update is projected in any case,
    and as large as it safely may be: with loss l and p = |P k(x, .)|^2, where delta^2 = k(x, x) - p is out of reach,
    tau = min(l / p, 2 (l - delta^2 / eta) / p, 1), none if that is negative.

    Parameters
    ----------
    step : tuple
    threshold : float
        eta; 0 leaves margin errors alone.
    """

    def __init__(self, step, **others):
        self.configure(step, **others)

    def configure(self, step, double threshold, **others):
        Rule.configure(self, step)
        self.tolerance = threshold

    cdef int stand_on(self, Function function) except -1:
        self.terms, self.budget = function.terms, function.terms.budget
        self.budget.let_newcomers_yield()
        return 0

    cdef void move(self, const Standing* now, View* view, Workspace w) noexcept nogil:
        cdef double y = -1.0 if view.derivative > 0.0 else 1.0, loss = 1.0 - y * view.score, part, reached, tau
        stand_still(&w.move)
        self.budget.stays_out = self.budget.span.looked = False
        if view.derivative == 0.0 or view.k <= 0.0:
            return
        if loss >= 1.0:
            w.move.alpha[0] = -view.derivative
            return
        # Of a pair of labels, view.k is that of both.
        part = self.budget.look(self.terms, w, view.k / view.offsets) if self.tolerance > 0.0 else 1.0
        reached = view.k * (1.0 - part)
        if reached > 0.0 and loss > view.k * part / self.tolerance:
            tau = fmin(1.0, fmin(loss, 2.0 * (loss - view.k * part / self.tolerance)) / reached)
            w.move.alpha[0] = -view.derivative * tau
            self.budget.stays_out = True


cdef class MetaDescent(Rule):
    """SVMD, V Algorithm 2: gradient steps whose size adapts; the gradient trace v is the second channel.

    Parameters
    ----------
    step : tuple
    regularization : float
    per_feature : bool
        SMD, V 2.2: each weight has a step of its own, which the function keeps. The rule decides as for a step of 1, and
        `eta` is their mean.
    normalized : bool
        Take products <g, v> relative to their running mean.
    """

    def __init__(self, step, bint per_feature=False, **others):
        self.has_trace = True
        self.per_feature = per_feature
        self.adapted = Adapted(step[1], 1.0, 0.0, 0.0, 0.0)
        self.step.rate = step[1]
        self.set_offset_steps(np.array([[step[1]], *[[0.0]] * 8]))
        self.configure(step, **others)

    def configure(self, step, double regularization, bint normalized=False, **others):
        if step[1] != self.step.rate:               # a new eta_0 starts the adaptation anew
            self.adapted.eta = step[1]
            self.offset_steps[0] = step[1]
        Rule.configure(self, step)
        self.regularization, self.penalty = regularization, 1.0
        self.offset_meta_rate, self.offset_memory, self.margin_meta_rate, self.margin_memory = step[5:9]
        self.descent.meta_rate, self.descent.memory = self.step.meta_rate, self.step.memory
        self.descent.regularization = regularization
        self.normalized = normalized

    cdef int set_offset_steps(self, array) except -1:
        cdef Py_ssize_t width = array.shape[1]
        cdef double* data = <double*> array_data(array)
        self.offset_steps, self.offset_eta = array, data
        self.offset_trace = self.offset_eta + width
        self.offset_scale = self.offset_trace + width
        self.offset_weight = self.offset_scale + width
        self.next_offset = self.offset_weight + width
        self.offset_width = width
        return 0

    def grow(self, Py_ssize_t width, Py_ssize_t known, bint ahead):
        new = np.zeros((len(self.offset_steps), width))
        new[0] = self.step.rate
        new[:, :known] = self.offset_steps[:, :known]
        if ahead:
            new[:, known:] = new[:, known - 1:known]
        self.set_offset_steps(new)

    cdef double step_at(self, long long t) noexcept nogil:
        return self.next.eta

    def current_step(self, long long t):
        return self.adapted.eta

    cdef bint is_finite(self) noexcept nogil:
        return is_tame(self.next.eta + self.next.scale + self.next.scalar_eta + fabs(self.next.scalar_trace))

    cdef void adapt(self, double product) noexcept nogil:
        """The step after <g, v>: V (33)."""
        self.next = self.adapted
        if self.normalized:
            product = normalized_product(product, &self.next.scale, &self.next.scale_weight)
        self.next.eta = adapted_step(self.adapted.eta, self.step.meta_rate, product, self.regularization + self.stiffness)

    cdef void move_scalar(self, const Standing* now, const View* view, Workspace w) noexcept nogil:
        """V (53)-(58): the margin in log space, its step size first, then v_eps, then eps (erratum)."""
        cdef double slope = self.penalty * view.weight * now.loss.scalar * view.scalar_gradient     # dl / d log eps
        cdef double memory = self.margin_memory
        cdef Adapted* next = &self.next
        w.move.compared = view.compared
        if now.loss.step > 0.0:
            move_scalar(&now.loss, &now.pace, next.eta * self.penalty, view.weight, view.scalar_gradient, view.compared, &w.move)
        elif loss_adapts(&now.loss) and now.loss.scalar > 0.0:
            next.scalar_eta *= gain(self.margin_meta_rate, next.scalar_trace * slope)               # V (57)
            next.scalar_trace = (memory * next.scalar_trace
                                 - next.scalar_eta * slope * (1.0 + memory * next.scalar_trace))    # V (58)
            w.move.scalar = loss_moved_scalar(&now.loss, now.loss.scalar * exp(-next.scalar_eta * slope))

    cdef void move(self, const Standing* now, View* view, Workspace w) noexcept nogil:
        cdef double xi = view.derivative, memory = self.step.memory, c = self.regularization, chi, eta, trace_next
        self.xi, self.curvature, self.stiffness = xi, view.curvature, 0.0
        if loss_grows_like_square(&now.loss):
            self.stiffness = view.curvature * (view.k + (view.offsets if now.has_offset else 0.0))
        self.next = self.adapted
        chi = view.curvature * view.trace                                   # (43)
        w.move.offset = 0.0                                                 # `decide_offsets` does that
        if self.per_feature:
            self.move_scalar(now, view, w)
            self.leave_steps(now, view.curvature, w)
            w.move.alpha[0], w.move.alpha[1] = -xi, -(xi + memory * chi)
            return
        self.adapt(c * now.norms.product + xi * view.trace)                 # (33), (45)
        eta = self.next.eta
        self.move_scalar(now, view, w)
        meta_transform(eta, c, memory, &w.move)
        w.move.alpha[0] = -eta * xi                                         # (32)
        w.move.alpha[1] = -eta * (xi + memory * chi)                        # (42)
        trace_next = ((1.0 - eta * c) * memory * view.trace
                      - eta * (c * view.bare + (xi + memory * chi) * view.k))       # (39) at x_t
        meta_norms(eta, c, memory, xi * view.bare, xi * xi * view.k, chi * view.bare, xi * trace_next, &now.norms,
                   &w.move.norms)

    cdef void leave_steps(self, const Standing* now, double curvature, Workspace w) noexcept nogil:
        """The function's own steps decay and move f and v; here they stand still."""
        w.move.transform[0][0] = w.move.transform[1][1] = 1.0
        w.move.transform[1][0] = 0.0
        self.descent.curvature = curvature if loss_grows_like_square(&now.loss) else 0.0

    cdef void move_all(self, const Standing* now, Outputs outputs, Py_ssize_t y, double k, double weight,
                       Workspace w) noexcept nogil:
        """All labels at once: V (37), (38), (44)."""
        cdef Py_ssize_t l, n = outputs.n
        cdef double* v = w.bare + w.width
        cdef double* K_new = w.spare                # kappa times what enters v
        cdef double* K_xi = w.spare + w.width       # kappa xi
        cdef double c = self.regularization, memory = self.step.memory, eta, xi_v = 0.0, largest = 0.0
        hessian_times(w, v, n, weight)
        for l in range(n):
            K_xi[l] = w.xi[l]
        outputs.apply(K_xi, w.nodes)
        for l in range(outputs.joined):
            xi_v += w.xi[l] * v[l]
        self.stiffness = 0.0
        if w.diagonal and loss_grows_like_square(&now.loss):
            self.stiffness = stiffness_along(w, K_xi, outputs, k, 1.0 if now.has_offset else 0.0)
            for l in range(n):
                largest = fmax(largest, w.probability[l])
        self.next = self.adapted
        if self.per_feature:
            self.curvature = weight
            self.leave_steps(now, largest, w)
            for l in range(n):
                w.term.alpha[l], w.term.alpha[n + l], w.term.offset[l] = -w.xi[l], -(w.xi[l] + memory * w.chi[l]), 0.0
            return
        self.adapt(c * now.norms.product + xi_v)
        eta = self.next.eta
        self.curvature = weight
        meta_transform(eta, c, memory, &w.move)
        for l in range(n):
            w.term.alpha[l] = -eta * w.xi[l]
            w.term.alpha[n + l] = -eta * (w.xi[l] + memory * w.chi[l])
            w.term.offset[l] = 0.0
            K_new[l] = w.xi[l] + memory * w.chi[l]
        outputs.apply(K_new, w.nodes)
        self.norms_over(0, outputs.joined, k, &now.norms, &w.move.norms, w)
        if outputs.ahead:
            self.norms_over(outputs.joined, outputs.joined + 1, k, &now.ahead, &w.move.ahead, w)

    cdef void norms_over(self, Py_ssize_t first, Py_ssize_t stop, double k, const Norms* old, Norms* new,
                         Workspace w) noexcept nogil:
        """<f, v> and |f|^2 of some outputs after the move that `move_all` has decided."""
        cdef Py_ssize_t l
        cdef double* f = w.bare
        cdef double* v = w.bare + w.width
        cdef double* K_new = w.spare
        cdef double* K_xi = w.spare + w.width
        cdef double c = self.regularization, memory = self.step.memory, eta = self.next.eta
        cdef double xi_f = 0.0, xi_kxi = 0.0, chi_f = 0.0, xi_v_next = 0.0
        for l in range(first, stop):
            xi_f += w.xi[l] * f[l]
            chi_f += w.chi[l] * f[l]
            xi_kxi += k * w.xi[l] * K_xi[l]
            xi_v_next += w.xi[l] * ((1.0 - eta * c) * memory * v[l] - eta * (c * f[l] + k * K_new[l]))
        meta_norms(eta, c, memory, xi_f, xi_kxi, chi_f, xi_v_next, old, new)

    cdef bint decide_offsets(self, Py_ssize_t labels, const double* offset, Workspace w) noexcept nogil:
        """Each offset has a step of its own, and a trace: V (50)-(52)."""
        cdef Py_ssize_t l, k, width = self.offset_width
        cdef double* eta = self.next_offset
        cdef double* trace = eta + width
        cdef double* scale = trace + width
        cdef double* weight = scale + width
        cdef double* new = weight + width
        cdef double product
        cdef bint finite = True
        if w.all_labels:
            hessian_times(w, self.offset_trace, labels, self.curvature)
        else:
            for l in range(labels):
                w.xi[l], w.chi[l] = 0.0, self.curvature * self.offset_trace[l]
            for k in range(w.term.n):               # the second label of a pair has the opposite sign
                w.xi[w.term.labels[k]] = self.xi if k == 0 else -self.xi
        for l in range(labels):
            product, scale[l], weight[l] = w.xi[l] * self.offset_trace[l], self.offset_scale[l], self.offset_weight[l]
            if self.normalized:
                product = normalized_product(product, scale + l, weight + l)
            eta[l] = capped(self.offset_eta[l] * gain(self.offset_meta_rate, product), self.stiffness)      # V (51)
            trace[l] = (self.offset_memory * self.offset_trace[l]                                   # V (52), erratum
                        - eta[l] * (w.xi[l] + self.offset_memory * w.chi[l]))
            new[l] = offset[l] - eta[l] * w.xi[l]                                                   # V (50)
            finite &= is_tame(eta[l] + scale[l] + fabs(trace[l]) + fabs(new[l]))
        return finite

    cdef void accept(self, const Standing* now, Py_ssize_t labels, double* offset, Workspace w) noexcept nogil:
        cdef Py_ssize_t row, l, width = self.offset_width
        self.adapted = self.next
        if now.has_offset:
            for row in range(4):
                for l in range(labels):
                    self.offset_eta[row * width + l] = self.next_offset[row * width + l]
            for l in range(labels):
                offset[l] = self.next_offset[4 * width + l]

    cdef void follow(self, Workspace w) noexcept nogil:
        if self.per_feature:
            self.adapted.eta = self.next.eta = w.mean_step

    def state(self, Py_ssize_t labels):
        state = {"eta": self.adapted.eta, "scalar_eta": self.adapted.scalar_eta, "scalar_trace": self.adapted.scalar_trace,
                 "offset_eta": self.offset_steps[0, :labels].copy(), "offset_trace": self.offset_steps[1, :labels].copy()}
        if self.normalized:
            state.update(scale=self.adapted.scale, scale_weight=self.adapted.scale_weight,
                         offset_scales=self.offset_steps[2:4, :labels].copy())
        return state

    def check_state(self, state):
        for name in ("eta", "scalar_eta", "scalar_trace"):
            check_number(state[name], name)
        for name in ("offset_eta", "offset_trace"):
            check_array(state[name], name, np.float64, (state["labels"],))
        if self.normalized:
            for name in ("scale", "scale_weight"):
                check_number(state[name], name, 0.0)
            if (check_array(state["offset_scales"], "offset_scales", np.float64, (2, state["labels"])) < 0).any():
                raise ValueError("offset_scales are negative")

    def restore(self, state):
        self.adapted = Adapted(state["eta"], state["scalar_eta"], state["scalar_trace"], 0.0, 0.0)
        if self.normalized:
            self.adapted.scale, self.adapted.scale_weight = state["scale"], state["scale_weight"]
            self.offset_steps[2:4, :state["labels"]] = state["offset_scales"]
        self.offset_steps[0, :state["labels"]] = state["offset_eta"]
        self.offset_steps[1, :state["labels"]] = state["offset_trace"]


cdef double stiffness_along(Workspace w, const double* K_xi, Outputs outputs, double k, double offsets) noexcept nogil:
    """Curvature of squared losses along the step, per length of it; K_xi = kappa xi.

    Scores move by (k kappa + offsets) xi. Where kappa is the identity, the largest of all labels' is taken.
    """
    cdef Py_ssize_t l
    cdef double moved, bend = 0.0, length = 0.0, largest = 0.0
    if outputs.n_nodes == 0:
        for l in range(outputs.n):
            largest = fmax(largest, w.probability[l] * (k + offsets))
        return largest
    for l in range(outputs.n):
        moved = k * K_xi[l] + offsets * w.xi[l]
        bend += w.probability[l] * moved * moved
        length += w.xi[l] * moved
    return bend / length if length > 0.0 else 0.0


cdef class ImplicitMetaDescent(MetaDescent):
    """Implicit steps whose size adapts: eta <- eta max(1/2, 1 - mu <g(f_t), v_t>), then the step of `Implicit`.

    v_t is the derivative of f_t with respect to log eta, see `trace_transform`; offsets are coordinates of the same arg-min,
    so they share its step and have a part in v. Nothing caps the step: an implicit one cannot overshoot.

    Parameters
    ----------
    step : tuple
    regularization, penalty : float
    """

    def __init__(self, step, **others):
        self.looks_ahead = True
        MetaDescent.__init__(self, step, **others)

    def configure(self, step, double regularization, double penalty, bint normalized=False, **others):
        MetaDescent.configure(self, step, regularization, normalized)
        self.penalty = penalty

    cdef double shrink(self, long long t) noexcept nogil:
        return implicit_shrink(self.next.eta, self.regularization)

    cdef double offset_trace_along(self, Workspace w) noexcept nogil:
        """The trace of the offsets along the direction of w.term.labels."""
        cdef double trace = self.offset_trace[w.term.labels[0]]
        return trace - self.offset_trace[w.term.labels[1]] if w.term.n == 2 else trace

    cdef void look_back(self, const Standing* now, const View* view, Workspace w) noexcept nogil:
        cdef double trace = view.trace + (self.offset_trace_along(w) if now.has_offset else 0.0)
        self.adapt_freely(self.regularization * now.norms.product + self.penalty * view.derivative * trace)

    cdef void adapt_freely(self, double product) noexcept nogil:
        """The step after <g, v>, which nothing caps."""
        self.next = self.adapted
        if self.normalized:
            product = normalized_product(product, &self.next.scale, &self.next.scale_weight)
        self.next.eta *= gain(self.step.meta_rate, product)

    cdef void move(self, const Standing* now, View* view, Workspace w) noexcept nogil:
        cdef double shrink = self.shrink(now.t + 1), size = self.next.eta * self.penalty * view.weight
        cdef double offsets = view.offsets if now.has_offset else 0.0, k = view.k + offsets / shrink, back, a, b
        cdef Shift shift
        view.score += (shrink - 1.0) * view.bare
        shift = implicit_shift(&now.loss, shrink, size, offsets, view.score, view.target, view.k)
        shift_by(&shift, &w.move)
        trace_transform(shrink, self.step.memory, &w.move)
        self.move_scalar(now, view, w)
        a = shift.alpha
        back = self.step.memory * view.trace - (1.0 - shrink) * view.bare + a * (view.k + offsets / (shrink * shrink))
        if now.has_offset:
            back += self.step.memory * self.offset_trace_along(w) / shrink
        back *= implicit_grip(&now.loss, shrink * size, a, view.score, view.target, k)
        w.move.alpha[1] = b = shrink * (a - back)
        self.trace_of_offset = a / shrink - back
        moved_norms(&w.move, a * view.bare, a * view.trace, b * view.bare, a * a * view.k, a * b * view.k, &now.norms,
                    &w.move.norms)

    cdef void move_all(self, const Standing* now, Outputs outputs, Py_ssize_t y, double k, double weight,
                       Workspace w) noexcept nogil:
        """All labels at once, or all targets; kappa is the identity. w.xi has the derivatives at f_t, w.chi gets what the
        traces of the offsets gain."""
        cdef Py_ssize_t l, n = outputs.n
        cdef double* f = w.bare
        cdef double* v = w.bare + w.width
        cdef double* a = w.term.alpha
        cdef double* b = w.term.alpha + n
        cdef double memory = self.step.memory, product = self.regularization * now.norms.product, shrink, size, own
        cdef double a_f = 0.0, a_v = 0.0, b_f = 0.0, aka = 0.0, akb = 0.0
        for l in range(n):
            product += self.penalty * w.xi[l] * (v[l] + (self.offset_trace[l] if now.has_offset else 0.0))
        self.adapt_freely(product)
        shrink = self.shrink(now.t + 1)
        size, own = shrink * self.next.eta * self.penalty * weight, k
        for l in range(n):
            w.spare[l] = w.scores[l] + (shrink - 1.0) * f[l]
        if now.has_offset:
            own += 1.0 / shrink
        if own > 0.0 and size > 0.0:
            if w.diagonal:
                self.over_targets(now, n, own, size, w)
            elif n >= 2:
                softmax_step(w.spare, y, n, own, size, w.chi, a)
        for l in range(n):              # what v would be at x, if it were not for the loss
            w.chi[l] = memory * v[l] - (1.0 - shrink) * f[l] + a[l] * k
            if now.has_offset:
                w.chi[l] += (memory * self.offset_trace[l] + a[l] / shrink) / shrink
        if w.diagonal:
            for l in range(n):
                w.chi[l] *= implicit_grip(&now.loss, size, a[l], w.spare[l], w.targets[l], own)
        elif size > 0.0:
            self.over_all_labels(n, y, own, size, w)
        trace_transform(shrink, memory, &w.move)
        for l in range(n):
            b[l] = shrink * (a[l] - w.chi[l])
            w.term.offset[l] = a[l] / shrink
            w.chi[l] = w.term.offset[l] - w.chi[l]
            a_f += a[l] * f[l]
            a_v += a[l] * v[l]
            b_f += b[l] * f[l]
            aka += a[l] * a[l] * k
            akb += a[l] * b[l] * k
        moved_norms(&w.move, a_f, a_v, b_f, aka, akb, &now.norms, &w.move.norms)

    cdef void over_targets(self, const Standing* now, Py_ssize_t n, double k, double size, Workspace w) noexcept nogil:
        cdef Py_ssize_t l
        for l in range(n):
            w.term.alpha[l] = loss_implicit(&now.loss, w.spare[l], w.targets[l], k, size)

    cdef void over_all_labels(self, Py_ssize_t n, Py_ssize_t y, double k, double size, Workspace w) noexcept nogil:
        """w.chi <- what the coefficients of the logistic loss give back of it."""
        cdef Py_ssize_t l
        for l in range(n):
            w.probability[l] = (1.0 if l == y else 0.0) - w.term.alpha[l] / size
        softmax_grip_times(w.probability, w.chi, n, k, size, w.chi)

    cdef bint decide_offsets(self, Py_ssize_t labels, const double* offset, Workspace w) noexcept nogil:
        """Traces of the offsets, which share the step of f."""
        cdef Py_ssize_t l
        cdef double* trace = self.next_offset + self.offset_width
        cdef bint finite = True
        for l in range(labels):
            trace[l] = self.step.memory * self.offset_trace[l] + (w.chi[l] if w.all_labels else 0.0)
        if not w.all_labels:
            trace[w.term.labels[0]] += self.trace_of_offset
            if w.term.n == 2:
                trace[w.term.labels[1]] -= self.trace_of_offset
        for l in range(labels):
            finite &= is_tame(trace[l])
        return finite

    cdef void accept(self, const Standing* now, Py_ssize_t labels, double* offset, Workspace w) noexcept nogil:
        cdef Py_ssize_t l
        self.adapted = self.next
        if now.has_offset:
            for l in range(labels):
                self.offset_trace[l] = self.next_offset[self.offset_width + l]


cdef void hessian_times(Workspace w, const double* vector, Py_ssize_t n, double weight) noexcept nogil:
    """w.chi = H vector, of the loss of all labels, or of a loss for each target."""
    cdef Py_ssize_t l
    if not w.diagonal:
        softmax_hessian_times(w.probability, vector, n, weight, w.chi)
        return
    for l in range(n):
        w.chi[l] = w.probability[l] * vector[l]

