/* The losses of one output: each formula exists here and nowhere else.
 *
 * z is the score f(x) + b, y is the label (-1 or +1) or the target, and novelty ignores it.  The
 * functions are inlined: where the code is a constant of a loop over many models, only its own
 * formula is left, and the compiler makes vector code of it.  losses.pxd declares them for Cython.
 * A loss that a function does not name has no number there, which is refused where it is used.
 */
#ifndef ONLINEKERNELS_LOSSES_H
#define ONLINEKERNELS_LOSSES_H

#include "vecmath.h"

/* All losses: code, number, and what Python calls it.
 *
 * For the pair hinges z is the margin f(x, y) - f(x, r) over the runner-up r, and the target is
 * Delta(y, r): V (16), (25).  The loss of a mistake shares the update among all labels that do as
 * well as the right one.  The squared loss of many labels has for each the target +1 or -1.  The
 * scalar of a quantile is its level. */
#define OK_EACH_LOSS(LOSS)                                                                         \
    LOSS(OK_HINGE, 1, "Hinge")                                                                     \
    LOSS(OK_NU_HINGE, 2, "NuHinge")                                                                \
    LOSS(OK_LOGISTIC, 3, "Logistic")                                                               \
    LOSS(OK_NOVELTY, 4, "Novelty")                                                                 \
    LOSS(OK_NU_NOVELTY, 5, "NuNovelty")                                                            \
    LOSS(OK_SQUARED, 6, "Squared")                                                                 \
    LOSS(OK_ABSOLUTE, 7, "Absolute")                                                               \
    LOSS(OK_INSENSITIVE, 8, "Insensitive")                                                         \
    LOSS(OK_NU_INSENSITIVE, 9, "NuInsensitive")                                                    \
    LOSS(OK_SQUARED_INSENSITIVE, 10, "SquaredInsensitive")                                         \
    LOSS(OK_HUBER, 11, "Huber")                                                                    \
    LOSS(OK_NU_HUBER, 12, "NuHuber")                                                               \
    LOSS(OK_PAIR_HINGE, 13, "MulticlassHinge")                                                     \
    LOSS(OK_NU_PAIR_HINGE, 14, "NuMulticlassHinge")                                                \
    LOSS(OK_MULTICLASS_LOGISTIC, 15, "MulticlassLogistic")                                         \
    LOSS(OK_MISTAKE, 16, "Mistake")                                                                \
    LOSS(OK_MULTICLASS_SQUARED, 17, "MulticlassSquared")                                           \
    LOSS(OK_QUANTILE, 18, "Quantile")

#define OK_LOSS_CODE(CODE, NUMBER, NAME) CODE = NUMBER,
enum {
    OK_EACH_LOSS(OK_LOSS_CODE) OK_CUSTOM = 0 /* a Python object; the engine calls back */
};

typedef struct {
    const char *name;
    int code;
} ok_loss_name;

#define OK_LOSS_NAME(CODE, NUMBER, NAME) {NAME, CODE},
static const ok_loss_name ok_loss_names[] = {
    OK_EACH_LOSS(OK_LOSS_NAME) {"GraphHinge", OK_PAIR_HINGE}, {"NuGraphHinge", OK_NU_PAIR_HINGE}, {0, 0}
};

typedef struct {
    int code;
    double scalar; /* margin rho, tube width epsilon or Huber's sigma: the current value; a quantile's level */
    double nu;     /* fraction of margin errors or outliers that an adapted scalar aims at */
    double step;   /* of the adapted scalar, relative to how far scores are from it; 0: it shares f's step, and if
                    * negative, its logarithm does */
} ok_loss;

OK_INLINE double ok_sign(double x)
{
    return x > 0 ? 1.0 : (x < 0 ? -1.0 : 0.0);
}

/* 1 / (1 + exp(-z)) without overflow. */
OK_INLINE double ok_expit(double z)
{
    double e;
    if (z >= 0) return 1.0 / (1.0 + exp(-z));
    e = exp(z);
    return e / (1.0 + e);
}

/* Two comparisons in turn, each a vector minimum or maximum; a NaN stays. */
OK_INLINE double ok_clip(double x, double low, double high)
{
    x = x < low ? low : x;
    return x > high ? high : x;
}

OK_INLINE double ok_loss_value(const ok_loss *loss, double z, double y)
{
    const int code = loss->code;
    const double s = loss->scalar;
    double margin, delta;
    if (code == OK_HINGE || code == OK_NU_HINGE) { /* K (13), (19) */
        margin = s - y * z;
        return (margin > 0 ? margin : 0.0) - (code == OK_NU_HINGE ? loss->nu * s : 0.0);
    }
    if (code == OK_LOGISTIC) {
        margin = y * z;
        return margin > 0 ? log1p(exp(-margin)) : log1p(exp(margin)) - margin;
    }
    if (code == OK_NOVELTY || code == OK_NU_NOVELTY) { /* K III-B */
        margin = s - z;
        return (margin > 0 ? margin : 0.0) - (code == OK_NU_NOVELTY ? loss->nu * s : 0.0);
    }
    if (code == OK_PAIR_HINGE || code == OK_NU_PAIR_HINGE) {
        margin = s * y - z;
        return (margin > 0 ? margin : 0.0) - (code == OK_NU_PAIR_HINGE ? loss->nu * s : 0.0);
    }
    delta = fabs(y - z);
    if (code == OK_SQUARED || code == OK_MULTICLASS_SQUARED) return 0.5 * delta * delta; /* K (21) */
    if (code == OK_QUANTILE) return (z < y ? s : 1.0 - s) * delta;
    if (code == OK_ABSOLUTE) return delta;
    if (code == OK_INSENSITIVE) return delta > s ? delta - s : 0.0;
    if (code == OK_NU_INSENSITIVE) /* K, above (22) */
        return (delta > s ? delta - s : 0.0) + loss->nu * s;
    if (code == OK_SQUARED_INSENSITIVE) /* H (6) */
        return delta > s ? (delta - s) * (delta - s) : 0.0;
    /* K (23).  The nu-form moves sigma by a quantile rule that is not the gradient of a loss, so its
     * value is plain Huber at the current sigma. */
    if (code == OK_HUBER || code == OK_NU_HUBER) return delta >= s ? delta - 0.5 * s : 0.5 * delta * delta / s;
    return NAN;
}

/* dl/dz, with the library's convention at kinks. */
OK_INLINE double ok_loss_derivative(const ok_loss *loss, double z, double y)
{
    const int code = loss->code;
    const double s = loss->scalar;
    double delta, size;
    if (code == OK_HINGE || code == OK_NU_HINGE) /* K (14): a tie is a margin error */
        return y * z <= s ? -y : 0.0;
    if (code == OK_LOGISTIC) return -y * ok_expit(-y * z);
    if (code == OK_NOVELTY || code == OK_NU_NOVELTY) /* K (20): only below */
        return z < s ? -1.0 : 0.0;
    if (code == OK_PAIR_HINGE || code == OK_NU_PAIR_HINGE) /* V (17), (26): only a positive loss */
        return z < s * y ? -1.0 : 0.0;
    delta = z - y;
    if (code == OK_SQUARED || code == OK_MULTICLASS_SQUARED) return delta;
    if (code == OK_QUANTILE) return delta < 0 ? -s : (delta > 0 ? 1.0 - s : 0.0);
    size = fabs(delta);
    if (code == OK_ABSOLUTE) return ok_sign(delta);
    if (code == OK_INSENSITIVE || code == OK_NU_INSENSITIVE) /* K (22): only outside */
        return size <= s ? 0.0 : ok_sign(delta);
    if (code == OK_SQUARED_INSENSITIVE) return size <= s ? 0.0 : 2.0 * (delta - s * ok_sign(delta));
    if (code == OK_HUBER || code == OK_NU_HUBER) /* K (24) with its erratum: delta / sigma in the quadratic branch */
        return size <= s ? delta / s : ok_sign(delta);
    return NAN;
}

/* Whether gradients have no bound, or may have none, so that a step can be too large for every example. */
OK_INLINE int ok_loss_grows_like_square(const ok_loss *loss)
{
    return loss->code == OK_SQUARED || loss->code == OK_SQUARED_INSENSITIVE || loss->code == OK_MULTICLASS_SQUARED ||
           loss->code == OK_CUSTOM;
}

/* Whether the loss has a derivative everywhere. */
OK_INLINE int ok_loss_is_smooth(const ok_loss *loss)
{
    return loss->code == OK_LOGISTIC || loss->code == OK_SQUARED || loss->code == OK_MULTICLASS_SQUARED ||
           loss->code == OK_SQUARED_INSENSITIVE || loss->code == OK_HUBER || loss->code == OK_NU_HUBER;
}

/* The largest |l'| of a loss with kinks, where an implicit step goes up (side > 0) or down: it caps the step. */
OK_INLINE double ok_loss_cap(const ok_loss *loss, double side)
{
    if (loss->code != OK_QUANTILE) return 1.0;
    return side > 0.0 ? loss->scalar : 1.0 - loss->scalar;
}

/* d2l/dz2 where it exists, and the derivative's side of a kink otherwise. */
OK_INLINE double ok_loss_curvature(const ok_loss *loss, double z, double y)
{
    const int code = loss->code;
    if (code == OK_LOGISTIC) return ok_expit(z) * ok_expit(-z); /* never the printed quotient: nan for large |z| */
    if (code == OK_SQUARED || code == OK_MULTICLASS_SQUARED) return 1.0;
    if (code == OK_SQUARED_INSENSITIVE) return fabs(y - z) > loss->scalar ? 2.0 : 0.0;
    if (code == OK_HUBER || code == OK_NU_HUBER)
        return fabs(y - z) <= loss->scalar ? 1.0 / loss->scalar : 0.0;
    return 0.0;
}

/* dl/dscalar of the nu-losses, so that the scalar moves by -eta times it.
 *
 * Errata of K: descent on max(0, rho - y g) - nu rho moves rho by -eta (sigma - nu), the printed
 * sign runs away; the text under (22) has the two moves of epsilon exchanged, (22) is right.
 *
 * Implicit steps bring scores to the margin itself.  A margin with a step of its own may stand still
 * at its lowest value, so there what is a tie up to rounding counts as one. */
OK_INLINE double ok_loss_scalar_gradient(const ok_loss *loss, double z, double y)
{
    const int code = loss->code;
    const double s = loss->scalar, rounding = loss->step > 0.0 ? 1e-12 * fabs(s) : 0.0;
    if (code == OK_NU_HINGE) return (y * z <= s + rounding ? 1.0 : 0.0) - loss->nu;
    if (code == OK_NU_NOVELTY) return (z < s - rounding ? 1.0 : 0.0) - loss->nu;
    if (code == OK_NU_PAIR_HINGE) return (z < (s - rounding) * y ? y : 0.0) - loss->nu;
    if (code == OK_NU_INSENSITIVE || code == OK_NU_HUBER)
        return loss->nu - (fabs(y - z) > s ? 1.0 : 0.0);
    return 0.0;
}

/* Whether the scalar is adapted: a nu-loss. */
OK_INLINE int ok_loss_adapts(const ok_loss *loss)
{
    return loss->code == OK_NU_HINGE || loss->code == OK_NU_NOVELTY || loss->code == OK_NU_PAIR_HINGE ||
           loss->code == OK_NU_INSENSITIVE || loss->code == OK_NU_HUBER;
}

/* Whether the scalar of a nu-loss is a width, which y gives its size, and not a margin, which f gives it. */
OK_INLINE int ok_loss_has_width(const ok_loss *loss)
{
    return loss->code == OK_NU_INSENSITIVE || loss->code == OK_NU_HUBER;
}

/* What a nu-loss holds its scalar against, in the scalar's units: y f, f, the margin per Delta, or |y - f|. */
OK_INLINE double ok_loss_compared(const ok_loss *loss, double z, double y)
{
    const int code = loss->code;
    if (code == OK_NU_HINGE) return y * z;
    if (code == OK_NU_NOVELTY) return z;
    if (code == OK_NU_PAIR_HINGE) return y > 0.0 ? z / y : z;
    return fabs(y - z);
}

/* A new value of the scalar brought back into its domain: Huber's sigma divides. */
OK_INLINE double ok_loss_moved_scalar(const ok_loss *loss, double scalar)
{
    return loss->code == OK_NU_HUBER && scalar < 1e-12 ? 1e-12 : scalar;
}

/* ---- Implicit steps, I (8)-(16): alpha = -size l'(score + alpha k) ------------------------------ */

typedef struct {
    /* A root of a rising function between low and high. */
    double low, high;
    double step, last; /* the latest step, and the one before it */
    int rounds, done;
} ok_bracket;

OK_INLINE void ok_bracket_start(ok_bracket *bracket, double low, double high)
{
    bracket->low = low;
    bracket->high = high;
    bracket->step = bracket->last = high - low;
    bracket->rounds = 0;
    bracket->done = !(high > low);
}

/* The next x: Newton's, or the middle where Newton leaves the bracket or is slower than halving. */
OK_INLINE double ok_bracket_next(ok_bracket *bracket, double x, double value, double slope)
{
    const double newton = x - value / slope;
    if (fabs(newton - x) <= 2e-16 * fabs(x)) {
        bracket->done = 1;
        return x;
    }
    if (value > 0.0) bracket->high = x;
    else bracket->low = x;
    if (bracket->low < newton && newton < bracket->high && fabs(2.0 * value) <= fabs(bracket->last * slope)) {
        bracket->last = bracket->step;
        bracket->step = x - newton;
        x = newton;
    } else {
        bracket->last = bracket->step;
        bracket->step = 0.5 * (bracket->high - bracket->low);
        x = bracket->low + bracket->step;
    }
    bracket->rounds += 1;
    bracket->done = fabs(bracket->step) <= 2e-16 * fabs(x) || bracket->rounds == 300;
    return x;
}

/* u >= 0 with u = size expit(-(margin + u k)): Newton in s = margin + u k, kept in its bracket.
 *
 * A fixed-point iteration and plain Newton cycle; here the root of s - margin - k size expit(-s),
 * which rises with slope >= 1, stays bracketed. */
OK_INLINE double ok_logistic_step(double margin, double k, double size)
{
    ok_bracket bracket;
    double s = margin;
    ok_bracket_start(&bracket, margin, margin + k * size * ok_expit(-margin));
    while (!bracket.done)
        s = ok_bracket_next(&bracket, s, s - margin - k * size * ok_expit(-s),
                            1.0 + k * size * ok_expit(s) * ok_expit(-s));
    return size * ok_expit(-s);
}

/* The size below which a coefficient is rounding dust, and makes no term: 1e-12 of its natural size.
 *
 * That is the smaller of the step's cap and of what brings a score from 0 to where scores and
 * targets are: this is what the rounding of f(x) is relative to, where f comes close to the target. */
OK_INLINE double ok_loss_dust(double scale, double k, double cap)
{
    const double natural = scale / k;
    return 1e-12 * (natural < cap ? natural : cap);
}

/* The alpha that minimizes alpha^2 k / 2 + size l(z + alpha k, y); k > 0, size >= 0.
 *
 * z is the score after the shrinking, (1 - tau) f(x) + b, and size = (1 - tau) eta C: I prints the
 * cap (1 - tau) C, which is right for eta = 1 only. */
OK_INLINE double ok_loss_implicit(const ok_loss *loss, double z, double y, double k, double size)
{
    const int code = loss->code;
    const double s = loss->scalar, delta = y - z, away = fabs(delta);
    double alpha;
    if (code == OK_SQUARED || code == OK_MULTICLASS_SQUARED) return size * delta / (1.0 + size * k); /* I (13) */
    if (code == OK_SQUARED_INSENSITIVE)
        return away <= s ? 0.0 : 2.0 * size * (delta - s * ok_sign(delta)) / (1.0 + 2.0 * size * k);
    if (code == OK_HINGE || code == OK_NU_HINGE) /* I (16) */
        alpha = y * ok_clip((s - y * z) / k, 0.0, size);
    else if (code == OK_NOVELTY || code == OK_NU_NOVELTY)
        alpha = ok_clip((s - z) / k, 0.0, size);
    else if (code == OK_PAIR_HINGE || code == OK_NU_PAIR_HINGE) /* I (17), (18) */
        alpha = ok_clip((s * y - z) / k, 0.0, size);
    else if (code == OK_LOGISTIC)
        alpha = y * ok_logistic_step(y * z, k, size);
    else if (code == OK_ABSOLUTE || code == OK_QUANTILE)
        alpha = ok_clip(delta / k, -ok_loss_cap(loss, -1.0) * size, ok_loss_cap(loss, 1.0) * size);
    else if (code == OK_INSENSITIVE || code == OK_NU_INSENSITIVE) /* an adapted width may be negative */
        alpha = ok_sign(delta) * ok_clip((away - (s > 0 ? s : 0.0)) / k, 0.0, size);
    else if (code == OK_HUBER || code == OK_NU_HUBER)
        alpha = away <= s + size * k ? size * delta / (s + size * k) : size * ok_sign(delta);
    else
        return NAN;
    return fabs(alpha) > ok_loss_dust(fabs(s) + fabs(y) + fabs(z), k, size) ? alpha : 0.0;
}

#endif
