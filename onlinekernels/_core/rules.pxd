"""Steps and rules: how a score and a label become a move of the hypothesis.

A move is a linear transform of all old coefficients, the true coefficients of one new term, changes of
the offset and a new value of the loss's scalar.  The engine carries it out.

The rules see one dimension.  With one output that is the output itself.  With the hinges of many
outputs it is the direction e_y - e_r from the runner-up r to the label y: the score is the margin
f(x, y) - f(x, r), the kernel is k(x, x) |Phi(y) - Phi(r)|^2, and the formulas are the same.
"""
from libc.math cimport exp, fmax, sqrt
from onlinekernels._core.frame cimport MAX_CHANNELS
from onlinekernels._core.losses cimport (INSENSITIVE, SQUARED_INSENSITIVE, Loss, loss_grows_like_square, loss_implicit,
                                         loss_moved_scalar)

cdef extern from "rules.h" nogil:
    ctypedef struct Shift "ok_shift":
        double shrink
        double alpha
        double offset

    double gradient_shrink "ok_gradient_shrink"(double eta, double regularization) noexcept
    Shift gradient_shift "ok_gradient_shift"(double shrink, double eta, double derivative) noexcept
    double implicit_shrink "ok_implicit_shrink"(double eta, double regularization) noexcept
    Shift implicit_shift "ok_implicit_shift"(const Loss* loss, double shrink, double size, double offsets, double z,
                                             double y, double k) noexcept
    double scalar_step "ok_scalar_step"(const Loss* loss, double shared, double weight, double gradient, double compared,
                                        double* gap, double* gap_weight) noexcept

cdef enum StepCode:
    FIXED = 0
    INVERSE_SQRT = 1
    DECAYING = 2
    META_DESCENT = 3

cdef enum RuleCode:
    GRADIENT = 0        # NORMA, and SVMD with the step META_DESCENT
    IMPLICIT = 1        # ILK
    AGGRESSIVE = 2      # PA and PA-I: an implicit step without regularization, at eta = 1
    AGGRESSIVE_SQUARED = 3      # PA-II
    RELAXED = 4         # ROMMA: after mistakes
    RELAXED_AGGRESSIVE = 5      # ROMMA: below margin 1
    APPROXIMATE = 6     # ALMA

cdef struct Step:
    int code
    double rate         # eta_0
    double delay        # tau of V (59)
    double meta_rate    # mu of V (33)
    double memory       # lambda of V (34)

cdef struct Rule:
    int code
    double regularization       # lambda of K and I, c of V
    double penalty              # C of I
    bint exact                  # many outputs: the arg-min over all labels, not the runner-up alone
    double radius               # |f| stays within this; 0 for no bound
    double threshold            # ALMA: (1 - alpha) B; its C is the penalty

cdef struct Meta:
    # What rules carry along: SVMD, V (33)-(58); |f|^2 for norm balls, ROMMA and ALMA.
    double eta
    double product      # <f, v>
    double square       # |f|^2
    double scalar_eta   # step of the margin's logarithm
    double scalar_trace
    double corrections  # ALMA: updates so far
    double peak         # largest |f|^2 since it was last computed from scratch
    double gap          # running mean of the distance between what a nu-loss compares and its scalar
    double gap_weight   # sum of the weights in that mean

cdef struct View:
    # An example in the one dimension that the rules see.
    double score        # f(x) + b
    double bare         # f(x)
    double trace        # v(x)
    double target       # y, or Delta(y, r)
    double k            # k(x, x)
    double offsets      # squared length of the direction in the space of offsets: 1, for a pair 2
    double derivative   # of the loss at the score, times the weight
    double curvature
    double scalar_gradient
    double compared     # what a nu-loss holds its scalar against

cdef struct Move:
    double transform[MAX_CHANNELS][MAX_CHANNELS]    # acts on the old coefficients, lower triangular
    double alpha[MAX_CHANNELS]                      # true coefficients of the new term
    double offset                                   # change of the offset along the direction
    double scalar                                   # new scalar of the loss
    double compared                                 # what a nu-loss held the old one against
    double xi                                       # the derivative that was used, and the curvature
    double curvature
    double stiffness                                # curvature along the step, squared losses: caps adapted steps
    Meta meta


cdef inline double step_size(const Step* step, long long t) noexcept nogil:
    """eta_t; t counts examples from 1."""
    if step.code == INVERSE_SQRT:
        return step.rate / sqrt(<double> t)                                 # K Thm 4
    if step.code == DECAYING:
        return step.rate * sqrt(step.delay / (step.delay + <double> t))     # V (59)
    return step.rate


cdef inline double gain(double mu, double product) noexcept nogil:
    """Factor of an adapted step: max(1/2, 1 - mu <g, v>)."""
    cdef double factor = 1.0 - mu * product
    return factor if factor > 0.5 else 0.5


cdef inline double capped(double eta, double stiffness) noexcept nogil:
    """Keep 0 <= 1 - eta stiffness."""
    return 1.0 / stiffness if eta * stiffness > 1.0 else eta


cdef inline void move_scalar(const Loss* loss, double shared, double weight, double gradient, double compared,
                             Move* move) noexcept nogil:
    move.compared = compared
    move.scalar = scalar_step(loss, shared, weight, gradient, compared, &move.meta.gap, &move.meta.gap_weight)


cdef inline void shift_by(const Shift* shift, Move* move) noexcept nogil:
    move.transform[0][0] = shift.shrink
    move.alpha[0] = shift.alpha
    move.offset = shift.offset


cdef inline void gradient_move(const Loss* loss, double eta, double regularization, double weight,
                               const View* view, Move* move) noexcept nogil:
    cdef Shift shift = gradient_shift(gradient_shrink(eta, regularization), eta, view.derivative)
    shift_by(&shift, move)
    move_scalar(loss, eta, weight, view.scalar_gradient, view.compared, move)


cdef inline double adapted_step(const Meta* meta, double mu, double c, double product,
                                double stiffness) noexcept nogil:
    """V (33) with <g, v> = c <f, v> + product: the step is adapted before it is used.

    It is capped at 1 / (c + stiffness): past that, it would overshoot the minimum of the example's own risk.
    """
    return capped(meta.eta * gain(mu, c * meta.product + product), c + stiffness)


cdef inline void meta_scalar(const Loss* loss, const Step* step, double weight, double gradient,
                             Move* move) noexcept nogil:
    """V (53)-(58): the margin in log space, its step size first, then v_eps, then eps (erratum)."""
    cdef double slope = weight * loss.scalar * gradient                     # dl / d log eps
    if gradient == 0.0 or loss.scalar <= 0.0:
        return
    move.meta.scalar_eta *= gain(step.meta_rate, move.meta.scalar_trace * slope)
    move.meta.scalar_trace = (step.memory * move.meta.scalar_trace
                              - move.meta.scalar_eta * slope * (1.0 + step.memory * move.meta.scalar_trace))
    move.scalar = loss_moved_scalar(loss, loss.scalar * exp(-move.meta.scalar_eta * slope))


cdef inline void meta_transform(double eta, double c, double memory, Move* move) noexcept nogil:
    """What a step does to the old coefficients of f and v: V (32), (40)."""
    move.transform[0][0] = 1.0 - eta * c
    move.transform[1][0] = -eta * c
    # A memory of 0 would make the frame singular; 1e-12 of v is nothing.
    move.transform[1][1] = (1.0 - eta * c) * (memory if memory > 1e-12 else 1e-12)


cdef inline void meta_norms(double eta, double c, double memory, double xi_f, double xi_kxi,
                            double chi_f, double xi_v_next, const Meta* old, Meta* new) noexcept nogil:
    """V (46)-(49): <f, v> and |f|^2 after the step.

    xi_f, xi_kxi, chi_f are xi'f(x), xi'K xi, chi'f(x); xi_v_next is xi'v_{t+1}(x).
    """
    cdef double shrink = 1.0 - eta * c
    cdef double f_g = c * old.square + xi_f                                 # (48)
    cdef double f_v = shrink * memory * old.product - eta * f_g - eta * memory * chi_f  # (47), erratum
    new.product = shrink * f_v - eta * xi_v_next                            # (46)
    new.square = shrink * shrink * old.square - 2.0 * eta * shrink * xi_f + eta * eta * xi_kxi  # (49)
    if new.square < 0.0:
        new.square = 0.0


cdef inline void meta_move(const Loss* loss, const Step* step, const Meta* meta, double c, double weight,
                           bint has_offset, const View* view, Move* move) noexcept nogil:
    """SVMD, V Algorithm 2, for one direction."""
    cdef double xi = view.derivative, chi, eta, trace_next, memory = step.memory
    move.meta = meta[0]
    move.stiffness = 0.0
    if loss_grows_like_square(loss):
        move.stiffness = view.curvature * (view.k + (view.offsets if has_offset else 0.0))
    eta = adapted_step(meta, step.meta_rate, c, xi * view.trace, move.stiffness)    # (33), (45)
    move.meta.eta = eta
    chi = view.curvature * view.trace                                       # (43)
    move.scalar = loss.scalar
    move.compared = view.compared
    if loss.step > 0.0:
        move_scalar(loss, eta, weight, view.scalar_gradient, view.compared, move)
    else:
        meta_scalar(loss, step, weight, view.scalar_gradient, move)
    meta_transform(eta, c, memory, move)
    move.alpha[0] = -eta * xi                                               # (32)
    move.alpha[1] = -eta * (xi + memory * chi)                              # (42)
    trace_next = ((1.0 - eta * c) * memory * view.trace
                  - eta * (c * view.bare + (xi + memory * chi) * view.k))   # (39) at x_t
    meta_norms(eta, c, memory, xi * view.bare, xi * xi * view.k, chi * view.bare, xi * trace_next,
               meta, &move.meta)
    move.offset = 0.0                                                       # the engine adapts offsets


cdef inline void implicit_move(const Loss* loss, const Rule* rule, double eta, double weight,
                               bint has_offset, const View* view, Move* move) noexcept nogil:
    """`view.score` is the score that the shrunk hypothesis gives."""
    cdef Shift shift = implicit_shift(loss, implicit_shrink(eta, rule.regularization), eta * rule.penalty * weight,
                                      view.offsets if has_offset else 0.0, view.score, view.target, view.k)
    shift_by(&shift, move)
    # The scalar of a nu-loss moves explicitly, by its gradient at f_t.
    move_scalar(loss, eta * rule.penalty, weight, view.scalar_gradient, view.compared, move)


cdef inline void aggressive_move(const Loss* loss, const Rule* rule, double weight, bint has_offset,
                                 const View* view, Move* move) noexcept nogil:
    """Passive-aggressive: the implicit hinge step without regularization.

    PA has no cap (penalty infinite), PA-I the cap C, PA-II none but a kernel larger by 1 / (2 C).
    """
    cdef double k = view.k + (view.offsets if has_offset else 0.0)
    cdef double size = rule.penalty * weight
    cdef Loss constraint = loss[0]
    if loss.code == SQUARED_INSENSITIVE:
        constraint.code = INSENSITIVE                                       # the same tube to reach
    move.transform[0][0] = 1.0
    if rule.code == AGGRESSIVE_SQUARED:
        k += 0.5 / size if size > 0.0 else 1e300
        size = 1e308
    move.alpha[0] = 0.0
    if k > 0.0 and weight > 0.0:
        move.alpha[0] = loss_implicit(&constraint, view.score, view.target, k, size)
    move.offset = move.alpha[0]
    move.scalar = loss.scalar


cdef inline void moved_square(double square, const View* view, Move* move) noexcept nogil:
    """|f|^2 after a move: H 2.5, with the old terms shrunk."""
    cdef double shrink = move.transform[0][0], alpha = move.alpha[0]
    cdef double old = shrink * shrink * square, new = alpha * alpha * view.k
    move.meta.square = fmax(0.0, old + 2.0 * shrink * alpha * view.bare + new)
    move.meta.peak = fmax(shrink * shrink * move.meta.peak, fmax(old, new))


cdef inline void stand_still(const Loss* loss, Move* move) noexcept nogil:
    move.transform[0][0] = 1.0
    move.alpha[0] = move.offset = 0.0
    move.scalar = loss.scalar


cdef inline void relaxed_move(const Loss* loss, const Rule* rule, double weight, double square, const View* view,
                              Move* move) noexcept nogil:
    """ROMMA (Li and Long): the shortest w with y w.x >= 1 and w.w_t >= |w_t|^2.

    Both constraints are met with equality, w = c w_t + d x, unless the first alone implies the other (or, for w
    parallel to x, there is nothing to solve): then w = y x / |x|^2.  So it is where nothing separates the examples,
    and |w| |x| would exceed 1e5: the error of |w|^2 is about 1e-16 |w|^2 |x|^2 of it.
    """
    cdef double y = view.target, f = view.bare, product = view.k * square, rest = product - f * f, c, d
    stand_still(loss, move)
    # Within 1e-12 of the margin there is only rounding to make good for.
    if view.k <= 0.0 or weight <= 0.0 or (y * f >= 1.0 - 1e-12 if rule.code == RELAXED_AGGRESSIVE else y * f > 0.0):
        return
    if y * f < product and rest > 1e-12 * product:
        c, d = (product - y * f) / rest, square * (y - f) / rest
        if (c * c * square + 2.0 * c * d * f + d * d * view.k) * view.k <= 1e10:
            move.transform[0][0], move.alpha[0] = c, d
            return
    move.transform[0][0] = 0.0
    move.alpha[0] = y / view.k


cdef inline void approximate_move(const Loss* loss, const Rule* rule, double weight, const View* view,
                                  Move* move) noexcept nogil:
    """ALMA_2 (Gentile): w + C / sqrt(k) y x if y w.x <= (1 - alpha) B / sqrt(k); the engine keeps |w| <= 1."""
    cdef double k = move.meta.corrections + 1.0
    stand_still(loss, move)
    if view.k <= 0.0 or weight <= 0.0 or view.target * view.bare > rule.threshold / sqrt(k):
        return
    move.alpha[0] = view.target * rule.penalty / sqrt(k)
    move.meta.corrections = k
