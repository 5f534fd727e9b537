"""Rules: what an example does to a function. `Rule` has the contract; the formulas are in ``moves`` and ``dense``."""
import numpy as np
from libc.math cimport exp, fmax, fmin, isfinite, sqrt
from onlinekernels._core.arrays cimport array_data
from onlinekernels._core.arrays import check_array, check_number
from onlinekernels._core.dense cimport hinge_step, softmax_hessian_times, softmax_step
from onlinekernels._core.losses cimport MULTICLASS_LOGISTIC, loss_grows_like_square, loss_moved_scalar
from onlinekernels._core.moves cimport (ADAPTED, DECAYING, FIXED, INVERSE_SQRT, Standing, Step, View, adapted_step,
                                        aggressive_move, capped, gain, gradient_move, implicit_move, implicit_shrink,
                                        meta_norms, meta_transform, move_scalar, moved_square, relaxed_move, stand_still,
                                        step_size)
from onlinekernels._core.outputs cimport Outputs
from onlinekernels._core.workspace cimport Workspace

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
        slots, and may ask for a change of all coefficients (w.term.change);

    and may implement

    `move_all(now, outputs, y, k, weight, w)`
        a move with a coefficient for every label: w.term.alpha, and w.term.offset. What it may find there is
        the derivative of the loss, w.xi;
    `shrink(t)`
        the factor that it will apply to f, if it looks at the scores after that;
    `accept`, `follow`, `state`, `check_state`, `restore`, `grow`
        for a state of its own: before the move is carried out, when it has been, and between calls. Numbers per slot, or
        per pair of slots, are tables of the dictionary.

    Parameters
    ----------
    step : tuple
        (code, rate, delay, meta_rate, memory).
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

    cdef double step_at(self, long long t) noexcept nogil:
        """eta of example t, which has just been decided."""
        return step_size(&self.step, t)

    cdef bint is_finite(self) noexcept nogil:
        """Whether its own state would be, after the move that has been decided."""
        return True

    cdef void accept(self, const Standing* now, Py_ssize_t labels, double* offset, Workspace w) noexcept nogil:
        """The move that has been decided is carried out: let its own state follow, and offsets that it adapts itself."""
        pass

    cdef void follow(self, Workspace w) noexcept nogil:
        """The move has been carried out: w.piece.slot is where the example is now, -1 if it is nowhere."""
        pass

    def stand_on(self, function):
        """See the function that it will move, if that is needed."""

    def grow(self, Py_ssize_t width):
        """Make room for more labels."""

    def current_step(self, long long t):
        """eta of example t, the latest one."""
        return step_size(&self.step, t)

    def state(self, Py_ssize_t labels):
        """Named numbers and arrays."""
        return {}

    def check_state(self, state):
        """ValueError unless a state fits."""

    def restore(self, state):
        """Continue from a state that has been checked."""


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
        if n >= 2 and k > 0.0 and size > 0.0:
            self.over_all_labels(now, n, y, k, size, w)
        for l in range(n):
            w.term.offset[l] = 1.0 / shrink * w.term.alpha[l]

    cdef void over_all_labels(self, const Standing* now, Py_ssize_t n, Py_ssize_t y, double k, double size,
                              Workspace w) noexcept nogil:
        """The arg-min over all labels, for the delta kernel; w.xi has their distances from y, w.spare their shrunk scores."""
        cdef Py_ssize_t l
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
        relaxed_move(self.aggressive, now.norms.square, view, &w.move)
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

    def stand_on(self, function):
        self.terms, self.budget = function.terms, function.terms.budget
        self.budget.let_newcomers_yield()

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
    """

    def __init__(self, step, **others):
        self.has_trace = True
        self.adapted = Adapted(step[1], 1.0, 0.0)
        self.step.rate = step[1]
        self.set_offset_steps(np.array([[step[1]], [0.0]]))
        self.configure(step, **others)

    def configure(self, step, double regularization, **others):
        if step[1] != self.step.rate:               # a new eta_0 starts the adaptation anew
            self.adapted.eta = step[1]
            self.offset_steps[0] = step[1]
        Rule.configure(self, step)
        self.regularization = regularization

    cdef set_offset_steps(self, array):
        cdef Py_ssize_t width = array.shape[1]
        self.offset_steps = array
        self.offset_eta = <double*> array_data(array)
        self.offset_trace = self.offset_eta + width

    def grow(self, Py_ssize_t width):
        old = self.offset_steps
        if width > old.shape[1]:
            new = np.zeros((2, width))
            new[0] = self.step.rate
            new[:, :old.shape[1]] = old
            self.set_offset_steps(new)

    cdef double step_at(self, long long t) noexcept nogil:
        return self.next.eta

    def current_step(self, long long t):
        return self.adapted.eta

    cdef bint is_finite(self) noexcept nogil:
        return isfinite(self.next.eta)

    cdef void move_scalar(self, const Standing* now, const View* view, Workspace w) noexcept nogil:
        """V (53)-(58): the margin in log space, its step size first, then v_eps, then eps (erratum)."""
        cdef double slope = view.weight * now.loss.scalar * view.scalar_gradient        # dl / d log eps
        cdef Adapted* next = &self.next
        w.move.compared = view.compared
        if now.loss.step > 0.0:
            move_scalar(&now.loss, &now.pace, next.eta, view.weight, view.scalar_gradient, view.compared, &w.move)
        elif view.scalar_gradient != 0.0 and now.loss.scalar > 0.0:
            next.scalar_eta *= gain(self.step.meta_rate, next.scalar_trace * slope)
            next.scalar_trace = (self.step.memory * next.scalar_trace
                                 - next.scalar_eta * slope * (1.0 + self.step.memory * next.scalar_trace))
            w.move.scalar = loss_moved_scalar(&now.loss, now.loss.scalar * exp(-next.scalar_eta * slope))

    cdef void move(self, const Standing* now, View* view, Workspace w) noexcept nogil:
        cdef double xi = view.derivative, memory = self.step.memory, c = self.regularization, chi, eta, trace_next
        self.xi, self.curvature, self.stiffness = xi, view.curvature, 0.0
        if loss_grows_like_square(&now.loss):
            self.stiffness = view.curvature * (view.k + (view.offsets if now.has_offset else 0.0))
        self.next = self.adapted
        self.next.eta = eta = adapted_step(self.adapted.eta, self.step.meta_rate, c, now.norms.product, xi * view.trace,
                                           self.stiffness)                  # (33), (45)
        chi = view.curvature * view.trace                                   # (43)
        self.move_scalar(now, view, w)
        meta_transform(eta, c, memory, &w.move)
        w.move.alpha[0] = -eta * xi                                         # (32)
        w.move.alpha[1] = -eta * (xi + memory * chi)                        # (42)
        trace_next = ((1.0 - eta * c) * memory * view.trace
                      - eta * (c * view.bare + (xi + memory * chi) * view.k))       # (39) at x_t
        meta_norms(eta, c, memory, xi * view.bare, xi * xi * view.k, chi * view.bare, xi * trace_next, &now.norms,
                   &w.move.norms)
        w.move.offset = 0.0                                                 # `accept` adapts offsets

    cdef void move_all(self, const Standing* now, Outputs outputs, Py_ssize_t y, double k, double weight,
                       Workspace w) noexcept nogil:
        """All labels at once: V (37), (38), (44)."""
        cdef Py_ssize_t l, n = outputs.n
        cdef double* f = w.bare
        cdef double* v = w.bare + w.width
        cdef double* K_new = w.spare                # kappa times what enters v
        cdef double* K_xi = w.spare + w.width       # kappa xi
        cdef double c = self.regularization, memory = self.step.memory, eta
        cdef double xi_v = 0.0, xi_f = 0.0, xi_kxi = 0.0, chi_f = 0.0, xi_v_next = 0.0
        hessian_times(w, v, n, weight)
        for l in range(n):
            xi_v += w.xi[l] * v[l]
        self.stiffness = 0.0
        if w.diagonal and loss_grows_like_square(&now.loss):
            for l in range(n):
                self.stiffness = fmax(self.stiffness, w.probability[l] * (k + (1.0 if now.has_offset else 0.0)))
        self.next = self.adapted
        self.next.eta = eta = adapted_step(self.adapted.eta, self.step.meta_rate, c, now.norms.product, xi_v, self.stiffness)
        self.curvature = weight
        meta_transform(eta, c, memory, &w.move)
        for l in range(n):
            w.term.alpha[l] = -eta * w.xi[l]
            w.term.alpha[n + l] = -eta * (w.xi[l] + memory * w.chi[l])
            w.term.offset[l] = 0.0
            K_xi[l] = w.xi[l]
            K_new[l] = w.xi[l] + memory * w.chi[l]
        outputs.apply(K_xi, w.nodes)
        outputs.apply(K_new, w.nodes)
        for l in range(n):
            xi_f += w.xi[l] * f[l]
            chi_f += w.chi[l] * f[l]
            xi_kxi += k * w.xi[l] * K_xi[l]
            xi_v_next += w.xi[l] * ((1.0 - eta * c) * memory * v[l] - eta * (c * f[l] + k * K_new[l]))
        meta_norms(eta, c, memory, xi_f, xi_kxi, chi_f, xi_v_next, &now.norms, &w.move.norms)

    cdef void accept(self, const Standing* now, Py_ssize_t labels, double* offset, Workspace w) noexcept nogil:
        """Each offset has a step of its own, and a trace: V (50)-(52)."""
        cdef Py_ssize_t l, k
        self.adapted = self.next
        if not now.has_offset:
            return
        if w.all_labels:
            hessian_times(w, self.offset_trace, labels, self.curvature)
        else:
            for l in range(labels):
                w.xi[l], w.chi[l] = 0.0, self.curvature * self.offset_trace[l]
            for k in range(w.term.n):               # the second label of a pair has the opposite sign
                w.xi[w.term.labels[k]] = self.xi if k == 0 else -self.xi
        for l in range(labels):
            self.offset_eta[l] *= gain(self.step.meta_rate, w.xi[l] * self.offset_trace[l])         # V (51)
            self.offset_eta[l] = capped(self.offset_eta[l], self.stiffness)
            self.offset_trace[l] = (self.step.memory * self.offset_trace[l]                         # V (52), erratum
                                    - self.offset_eta[l] * (w.xi[l] + self.step.memory * w.chi[l]))
            offset[l] -= self.offset_eta[l] * w.xi[l]                                               # V (50)

    def state(self, Py_ssize_t labels):
        return {"eta": self.adapted.eta, "scalar_eta": self.adapted.scalar_eta, "scalar_trace": self.adapted.scalar_trace,
                "offset_eta": self.offset_steps[0, :labels].copy(), "offset_trace": self.offset_steps[1, :labels].copy()}

    def check_state(self, state):
        for name in ("eta", "scalar_eta", "scalar_trace"):
            check_number(state[name], name)
        for name in ("offset_eta", "offset_trace"):
            check_array(state[name], name, np.float64, (state["labels"],))

    def restore(self, state):
        self.adapted = Adapted(state["eta"], state["scalar_eta"], state["scalar_trace"])
        self.offset_steps[0, :state["labels"]] = state["offset_eta"]
        self.offset_steps[1, :state["labels"]] = state["offset_trace"]


cdef void hessian_times(Workspace w, const double* vector, Py_ssize_t n, double weight) noexcept nogil:
    """w.chi = H vector, of the loss of all labels, or of a loss for each target."""
    cdef Py_ssize_t l
    if not w.diagonal:
        softmax_hessian_times(w.probability, vector, n, weight, w.chi)
        return
    for l in range(n):
        w.chi[l] = w.probability[l] * vector[l]

