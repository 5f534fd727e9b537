"""Moves: how a score and a label change the hypothesis. Formulas of more than one rule; moves.h has those of banks.

A move is a linear transform of all old coefficients, the true coefficients of one new term, a change of the offset and
a new value of the loss's scalar.  Nothing here carries it out.

The formulas see one dimension.  With one output that is the output itself.  With the hinges of many outputs it is the
direction e_y - e_r from the runner-up r to the label y: the score is the margin f(x, y) - f(x, r), the kernel is k(x,
x) |Phi(y) - Phi(r)|^2, and the formulas are the same.
"""
from libc.math cimport exp, fabs, fmax, sqrt
from onlinekernels._core.formulas.frame cimport MAX_CHANNELS
from onlinekernels._core.formulas.losses cimport Loss, loss_cap, loss_curvature, loss_is_smooth, loss_moved_scalar

cdef extern from "moves.h" nogil:
    ctypedef struct Shift "ok_shift":
        double shrink
        double alpha
        double offset

    double gradient_shrink "ok_gradient_shrink"(double eta, double regularization) noexcept
    Shift gradient_shift "ok_gradient_shift"(double shrink, double eta, double derivative) noexcept
    double implicit_shrink "ok_implicit_shrink"(double eta, double regularization) noexcept
    double implicit_kernel "ok_implicit_kernel"(double shrink, double offsets, double k) noexcept
    Shift implicit_shift "ok_implicit_shift"(const Loss* loss, double shrink, double size, double offsets, double z,
                                             double y, double k) noexcept
    double scalar_step "ok_scalar_step"(const Loss* loss, double shared, double weight, double gradient,
                                        double compared, double* gap, double* gap_weight) noexcept

cdef enum StepCode:
    FIXED = 0
    INVERSE_SQRT = 1
    DECAYING = 2
    ADAPTED = 3         # MetaDescent: the rate is where it begins
    TABLED = 4          # a step in Python, which has been asked for the examples that come

cdef struct Step:
    int code            # a `StepCode`
    double rate         # eta_0
    double delay        # tau of V (59)
    double meta_rate    # mu of V (33)
    double memory       # lambda of V (34)
    const double* sizes # those that are tabled,
    long long first     # from this example on

cdef struct Pace:
    # How fast the scalar of a nu-loss moves that has a step of its own.
    double gap          # running mean of the distance between what the loss compares and its scalar
    double weight       # sum of the weights in that mean

cdef struct Norms:
    # Of f and of the gradient trace v, for rules and balls that need them.
    double square       # |f|^2
    double product      # <f, v>
    double peak         # largest |f|^2 since it was last computed from scratch

cdef struct Standing:
    # Numbers of a hypothesis that move with the examples, beside f and the offsets.
    long long t         # examples learned
    Loss loss           # with the current value of its scalar
    Pace pace           # of the loss's scalar
    Norms norms         # of f
    Norms future         # the same of the output ahead of the labels, which is none of f's
    bint has_offset     # whether offsets are learned
    bint keeps_square   # whether |f|^2 follows every move

cdef struct View:
    # An example in the one dimension that the formulas see.
    double score        # f(x) + b
    double bare         # f(x)
    double trace        # v(x)
    double target       # y, or Delta(y, r)
    double weight       # of the example: multiplies its loss
    double k            # k(x, x)
    double offsets      # squared length of the direction in the space of offsets: 1, for a pair 2
    double derivative   # of the loss at the score, times the weight
    double curvature    # of the loss there, times the weight
    double scalar_gradient # derivative of the loss with respect to its scalar
    double compared     # what a nu-loss holds its scalar against

cdef struct Move:
    double transform[MAX_CHANNELS][MAX_CHANNELS]    # acts on the old coefficients, lower triangular
    double alpha[MAX_CHANNELS]                      # true coefficients of the new term, along the direction
    double offset                                   # change of the offset along the direction
    double scalar                                   # new scalar of the loss,
    double compared                                 # what a nu-loss held the old one against,
    Pace pace                                       # and what its own step becomes
    Norms norms                                     # of the hypothesis after the move
    Norms future                                     # the same of the output ahead of the labels


cdef inline bint is_bounded(double number) noexcept nogil:
    """Whether it is finite, and sums over all examples of such numbers, and averages of the sums, will be."""
    return fabs(number) < 1e250


cdef inline bint is_stale(const Norms* norms) noexcept nogil:
    """Whether |f|^2 has shrunk so much since it was last computed that old rounding would show."""
    return norms.square <= 1e-3 * norms.peak and norms.peak > 0.0


cdef inline bint coefficient_is_bounded(double alpha, double k) noexcept nogil:
    """Whether a coefficient is, and what it contributes to f; a small k(x, x) may have a large one."""
    return is_bounded(alpha * fmax(k, 1e-40))


cdef inline double step_size(const Step* step, long long t) noexcept nogil:
    """eta_t; t counts examples from 1."""
    if step.code == TABLED:
        return step.sizes[t - step.first]
    if step.code == INVERSE_SQRT:
        return step.rate / sqrt(<double> t)                                 # K Thm 4
    if step.code == DECAYING:
        return step.rate * sqrt(step.delay / (step.delay + <double> t))     # V (59)
    return step.rate


cdef inline double gain(double mu, double product, bint quadratic) noexcept nogil:
    """Factor of an adapted step, for u = -mu <g, v>: V (4), max(1/2, 1 + u), or its footnote 2."""
    cdef double u = -mu * product
    if quadratic and u > -1.0:
        return 1.0 + u + 0.5 * u * u
    return 1.0 + u if u > -0.5 else 0.5


cdef inline double capped(double eta, double stiffness) noexcept nogil:
    """Keep 0 <= 1 - eta stiffness."""
    return 1.0 / stiffness if eta * stiffness > 1.0 else eta


cdef inline double moved_logarithm(const Loss* loss, double size, double gradient) noexcept nogil:
    """The scalar after a step of its logarithm, so that it stays positive: V (55), (56) with erratum: dl/deps."""
    return loss_moved_scalar(loss, loss.scalar * exp(-size * loss.scalar * gradient))


cdef inline void move_scalar(const Standing* now, double shared, const View* view, Move* move) noexcept nogil:
    """The scalar of a nu-loss, by a step that shares this size with f, or by one of its own."""
    move.compared = view.compared
    move.pace = now.pace
    if now.loss.step < 0.0:
        move.scalar = moved_logarithm(&now.loss, shared * view.weight, view.scalar_gradient)
    else:
        move.scalar = scalar_step(&now.loss, shared, view.weight, view.scalar_gradient, view.compared, &move.pace.gap,
                                  &move.pace.weight)


cdef inline void shift_by(double shrink, double alpha, double offset, Move* move) noexcept nogil:
    move.transform[0][0], move.alpha[0], move.offset = shrink, alpha, offset


cdef inline void stand_still(Move* move) noexcept nogil:
    shift_by(1.0, 0.0, 0.0, move)


cdef inline double adapted_step(double eta, double mu, double product, bint quadratic,
                                double stiffness) noexcept nogil:
    """V (33), where the product is <g, v>: the step is adapted before it is used.

    It is capped at 1 / stiffness: past that, it would overshoot the minimum of the example's own risk.
    """
    return capped(eta * gain(mu, product, quadratic), stiffness)


cdef inline double regular(double memory) noexcept nogil:
    """A memory of 0 would make the frame singular; 1e-12 of v is nothing."""
    return memory if memory > 1e-12 else 1e-12


cdef inline void meta_transform(double eta, double c, double memory, Move* move) noexcept nogil:
    """What a step does to the old coefficients of f and v: V (32), (40)."""
    cdef double shrink = gradient_shrink(eta, c)
    move.transform[0][0] = shrink
    move.transform[1][0] = -eta * c
    move.transform[1][1] = shrink * regular(memory)


cdef inline double implicit_grip(const Loss* loss, double size, double alpha, double score, double target,
                                 double k) noexcept nogil:
    """If what an implicit step starts from is larger by u at x, the new coefficient is smaller by grip u.

    (1 / q + k)^-1 for the second derivative q of size l at the new score; at a kink that holds it, 1 / k.
    """
    cdef double curvature
    if not loss_is_smooth(loss):
        return 1.0 / k if 0.0 < fabs(alpha) < loss_cap(loss, alpha) * size else 0.0
    curvature = size * loss_curvature(loss, score + alpha * k, target)
    return 1.0 / (1.0 / curvature + k) if curvature > 0.0 else 0.0


cdef inline void trace_transform(double shrink, double memory, Move* move) noexcept nogil:
    """What an implicit step does to the old coefficients of f and of v, its derivative with respect to log eta.

    f_{t+1} = f_t - eta g(f_{t+1}), where g is the gradient of the example's regularized risk. So v_{t+1} = (1 + eta
    g')^-1 (memory v_t + f_{t+1} - f_t), and 1 + eta g' is 1 / shrink apart from the direction k(x, .).
    """
    move.transform[0][0] = shrink
    move.transform[1][0] = -shrink * (1.0 - shrink)
    move.transform[1][1] = shrink * regular(memory)


cdef inline void moved_norms(const Move* move, double a_f, double a_v, double b_f, double aka, double akb,
                             const Norms* old, Norms* new) noexcept nogil:
    """<f, v> and |f|^2 after old coefficients are transformed and the term (a, b) has come, with a'f(x) and so on.

    V (46)-(49), with an erratum: the printed <f, v> leaves out chi.
    """
    cdef double shrink = move.transform[0][0], mixed = move.transform[1][0], kept = move.transform[1][1]
    new.product = (shrink * (mixed * old.square + kept * old.product + b_f) + mixed * a_f + kept * a_v + akb)
    new.square = fmax(0.0, shrink * shrink * old.square + 2.0 * shrink * a_f + aka)


cdef inline void moved_square(const Norms* norms, const View* view, Move* move) noexcept nogil:
    """|f|^2 after a move: H 2.5, with the old terms shrunk."""
    cdef double shrink = move.transform[0][0], alpha = move.alpha[0]
    cdef double old = shrink * shrink * norms.square, new = alpha * alpha * view.k
    move.norms.square = fmax(0.0, old + 2.0 * shrink * alpha * view.bare + new)
    move.norms.peak = fmax(shrink * shrink * norms.peak, fmax(old, new))


cdef inline Norms without_term(const Norms* norms, const Norms* moved, const Move* move, bint has_trace) noexcept nogil:
    """What `moved` would be of the hypothesis that a move transforms, if its new term did not come."""
    cdef double decay = move.transform[0][0]
    cdef Norms rest = moved[0]
    rest.square = decay * decay * norms.square
    if has_trace:
        rest.product = decay * (move.transform[1][0] * norms.square + move.transform[1][1] * norms.product)
    return rest
