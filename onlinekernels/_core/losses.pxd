"""The losses of one output as C functions: each formula exists here and nowhere else.

A loss is a code, the scalar that it may adapt (margin rho, tube epsilon, Huber's sigma), nu, and the
scalar's own step.
`z` is the score f(x) + b, `y` is the label (-1 or +1) or the target, and novelty ignores it.
"""
from libc.math cimport exp, fabs, log1p

cdef enum LossCode:
    CUSTOM = 0          # a Python object; the engine calls back
    HINGE = 1
    NU_HINGE = 2
    LOGISTIC = 3
    NOVELTY = 4
    NU_NOVELTY = 5
    SQUARED = 6
    ABSOLUTE = 7
    INSENSITIVE = 8
    NU_INSENSITIVE = 9
    SQUARED_INSENSITIVE = 10
    HUBER = 11
    NU_HUBER = 12
    # Many outputs. For the pair hinges z is the margin f(x, y) - f(x, r) over the runner-up r, and
    # the target is Delta(y, r): V (16), (25).
    PAIR_HINGE = 13
    NU_PAIR_HINGE = 14
    MULTICLASS_LOGISTIC = 15
    # Mistakes of many outputs: the update is shared among all labels that do as well as the right one.
    UNIFORM_MISTAKE = 16
    PROPORTIONAL_MISTAKE = 17

cdef struct Loss:
    int code
    double scalar       # margin rho, tube width epsilon or Huber's sigma: the current value
    double nu           # fraction of margin errors or outliers that an adapted scalar aims at
    double step         # of the adapted scalar, relative to how far scores are from it; 0: it shares f's step


cdef inline double sign(double x) noexcept nogil:
    return 1.0 if x > 0 else (-1.0 if x < 0 else 0.0)


cdef inline double expit(double z) noexcept nogil:
    """1 / (1 + exp(-z)) without overflow."""
    cdef double e
    if z >= 0:
        return 1.0 / (1.0 + exp(-z))
    e = exp(z)
    return e / (1.0 + e)


cdef inline double loss_value(const Loss* loss, double z, double y) noexcept nogil:
    cdef int code = loss.code
    cdef double s = loss.scalar, margin, delta
    if code == HINGE or code == NU_HINGE:                     # K (13), (19)
        margin = s - y * z
        return (margin if margin > 0 else 0.0) - (loss.nu * s if code == NU_HINGE else 0.0)
    if code == LOGISTIC:
        margin = y * z
        return log1p(exp(-margin)) if margin > 0 else log1p(exp(margin)) - margin
    if code == NOVELTY or code == NU_NOVELTY:                 # K III-B
        margin = s - z
        return (margin if margin > 0 else 0.0) - (loss.nu * s if code == NU_NOVELTY else 0.0)
    if code == PAIR_HINGE or code == NU_PAIR_HINGE:
        margin = s * y - z
        return (margin if margin > 0 else 0.0) - (loss.nu * s if code == NU_PAIR_HINGE else 0.0)
    delta = fabs(y - z)
    if code == SQUARED:                                       # K (21)
        return 0.5 * delta * delta
    if code == ABSOLUTE:
        return delta
    if code == INSENSITIVE:
        return delta - s if delta > s else 0.0
    if code == NU_INSENSITIVE:                                # K, above (22)
        return (delta - s if delta > s else 0.0) + loss.nu * s
    if code == SQUARED_INSENSITIVE:                           # H (6)
        return (delta - s) * (delta - s) if delta > s else 0.0
    # K (23). The nu-form moves sigma by a quantile rule that is not the gradient of a loss,
    # so its value is plain Huber at the current sigma.
    return delta - 0.5 * s if delta >= s else 0.5 * delta * delta / s


cdef inline double loss_derivative(const Loss* loss, double z, double y) noexcept nogil:
    """dl/dz, with the library's convention at kinks."""
    cdef int code = loss.code
    cdef double s = loss.scalar, delta, size
    if code == HINGE or code == NU_HINGE:                     # K (14): a tie is a margin error
        return -y if y * z <= s else 0.0
    if code == LOGISTIC:
        return -y * expit(-y * z)
    if code == NOVELTY or code == NU_NOVELTY:                 # K (20): only below
        return -1.0 if z < s else 0.0
    if code == PAIR_HINGE or code == NU_PAIR_HINGE:           # V (17), (26): only a positive loss
        return -1.0 if z < s * y else 0.0
    delta = z - y
    if code == SQUARED:
        return delta
    size = fabs(delta)
    if code == ABSOLUTE:
        return sign(delta)
    if code == INSENSITIVE or code == NU_INSENSITIVE:         # K (22): only outside
        return 0.0 if size <= s else sign(delta)
    if code == SQUARED_INSENSITIVE:
        return 0.0 if size <= s else 2.0 * (delta - s * sign(delta))
    # K (24) with its erratum: delta / sigma in the quadratic branch
    return delta / s if size <= s else sign(delta)


cdef inline bint loss_grows_like_square(const Loss* loss) noexcept nogil:
    """Whether gradients have no bound, or may have none, so that a step can be too large for every example."""
    return loss.code in (SQUARED, SQUARED_INSENSITIVE, CUSTOM)


cdef inline double loss_curvature(const Loss* loss, double z, double y) noexcept nogil:
    """d2l/dz2 where it exists, and the derivative's side of a kink otherwise."""
    cdef int code = loss.code
    if code == LOGISTIC:
        return expit(z) * expit(-z)     # never the printed quotient: nan for large |z|
    if code == SQUARED:
        return 1.0
    if code == SQUARED_INSENSITIVE:
        return 2.0 if fabs(y - z) > loss.scalar else 0.0
    if code == HUBER or code == NU_HUBER:
        return 1.0 / loss.scalar if fabs(y - z) <= loss.scalar else 0.0
    return 0.0


cdef inline double loss_scalar_gradient(const Loss* loss, double z, double y) noexcept nogil:
    """dl/dscalar of the nu-losses, so that the scalar moves by -eta times it.

    Errata of K: descent on max(0, rho - y g) - nu rho moves rho by -eta (sigma - nu), the printed
    sign runs away; the text under (22) has the two moves of epsilon exchanged, (22) is right.

    Implicit steps bring scores to the margin itself. A margin with a step of its own may stand still at its lowest value,
    so there what is a tie up to rounding counts as one.
    """
    cdef int code = loss.code
    cdef double s = loss.scalar, rounding = 1e-12 * fabs(loss.scalar) if loss.step > 0.0 else 0.0
    if code == NU_HINGE:
        return (1.0 if y * z <= s + rounding else 0.0) - loss.nu
    if code == NU_NOVELTY:
        return (1.0 if z < s - rounding else 0.0) - loss.nu
    if code == NU_PAIR_HINGE:
        return (y if z < (s - rounding) * y else 0.0) - loss.nu
    if code == NU_INSENSITIVE or code == NU_HUBER:
        return loss.nu - (1.0 if fabs(y - z) > loss.scalar else 0.0)
    return 0.0


cdef inline bint loss_has_width(const Loss* loss) noexcept nogil:
    """Whether the scalar of a nu-loss is a width, which y gives its size, and not a margin, which f gives it."""
    return loss.code == NU_INSENSITIVE or loss.code == NU_HUBER


cdef inline double loss_compared(const Loss* loss, double z, double y) noexcept nogil:
    """What a nu-loss holds its scalar against, in the scalar's units: y f, f, the margin per Delta, or |y - f|."""
    cdef int code = loss.code
    if code == NU_HINGE:
        return y * z
    if code == NU_NOVELTY:
        return z
    if code == NU_PAIR_HINGE:
        return z / y if y > 0.0 else z
    return fabs(y - z)


cdef inline double loss_moved_scalar(const Loss* loss, double scalar) noexcept nogil:
    """A new value of the scalar brought back into its domain: Huber's sigma divides."""
    return 1e-12 if loss.code == NU_HUBER and scalar < 1e-12 else scalar


# ---- Implicit steps, I (8)-(16): alpha = -size l'(score + alpha k) -------------------------------

cdef struct Bracket:
    # A root of a rising function between low and high.
    double low
    double high
    double step         # the latest step, and the one before it
    double last
    int rounds
    bint done


cdef inline void bracket_start(Bracket* bracket, double low, double high) noexcept nogil:
    bracket.low, bracket.high = low, high
    bracket.step = bracket.last = high - low
    bracket.rounds = 0
    bracket.done = not high > low


cdef inline double bracket_next(Bracket* bracket, double x, double value, double slope) noexcept nogil:
    """The next x: Newton's, or the middle where Newton leaves the bracket or is slower than halving."""
    cdef double newton = x - value / slope
    if fabs(newton - x) <= 2e-16 * fabs(x):
        bracket.done = True
        return x
    if value > 0.0:
        bracket.high = x
    else:
        bracket.low = x
    if bracket.low < newton < bracket.high and fabs(2.0 * value) <= fabs(bracket.last * slope):
        bracket.last, bracket.step = bracket.step, x - newton
        x = newton
    else:
        bracket.last, bracket.step = bracket.step, 0.5 * (bracket.high - bracket.low)
        x = bracket.low + bracket.step
    bracket.rounds += 1
    bracket.done = fabs(bracket.step) <= 2e-16 * fabs(x) or bracket.rounds == 300
    return x


cdef inline double clip(double x, double low, double high) noexcept nogil:
    return low if x < low else (high if x > high else x)


cdef inline double logistic_step(double margin, double k, double size) noexcept nogil:
    """u >= 0 with u = size expit(-(margin + u k)): Newton in s = margin + u k, kept in its bracket.

    A fixed-point iteration and plain Newton cycle; here the root of s - margin - k size expit(-s),
    which rises with slope >= 1, stays bracketed.
    """
    cdef Bracket bracket
    cdef double s
    bracket_start(&bracket, margin, margin + k * size * expit(-margin))
    s = margin
    while not bracket.done:
        s = bracket_next(&bracket, s, s - margin - k * size * expit(-s), 1.0 + k * size * expit(s) * expit(-s))
    return size * expit(-s)


cdef inline double loss_implicit(const Loss* loss, double z, double y, double k,
                                 double size) noexcept nogil:
    """The alpha that minimizes alpha^2 k / 2 + size l(z + alpha k, y); k > 0, size >= 0.

    z is the score after the shrinking, (1 - tau) f(x) + b, and size = (1 - tau) eta C: I prints the
    cap (1 - tau) C, which is right for eta = 1 only.
    """
    cdef int code = loss.code
    cdef double s = loss.scalar, delta, away, alpha
    if code == HINGE or code == NU_HINGE:                     # I (16)
        alpha = y * clip((s - y * z) / k, 0.0, size)
    elif code == NOVELTY or code == NU_NOVELTY:
        alpha = clip((s - z) / k, 0.0, size)
    elif code == PAIR_HINGE or code == NU_PAIR_HINGE:         # I (17), (18)
        alpha = clip((s * y - z) / k, 0.0, size)
    elif code == LOGISTIC:
        alpha = y * logistic_step(y * z, k, size)
    else:
        delta = y - z
        away = fabs(delta)
        if code == SQUARED:                                   # I (13)
            return size * delta / (1.0 + size * k)
        if code == ABSOLUTE:
            alpha = clip(delta / k, -size, size)
        elif code == INSENSITIVE or code == NU_INSENSITIVE:   # an adapted width may be negative
            alpha = sign(delta) * clip((away - (s if s > 0 else 0.0)) / k, 0.0, size)
        elif code == SQUARED_INSENSITIVE:
            return 0.0 if away <= s else 2.0 * size * (delta - s * sign(delta)) / (1.0 + 2.0 * size * k)
        else:
            alpha = size * delta / (s + size * k) if away <= s + size * k else size * sign(delta)
    # Rounding dust makes no term; a step without a cap is measured by what it has to make good for.
    away = size if size < 1e300 else (fabs(s) + fabs(y)) / k
    return alpha if fabs(alpha) > 1e-12 * away else 0.0
