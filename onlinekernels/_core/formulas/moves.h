/* The steps that both the engine and a bank of many models make, in the one dimension that rules see.
 * moves.pxd declares them for Cython and has all others.
 */
#ifndef ONLINEKERNELS_MOVES_H
#define ONLINEKERNELS_MOVES_H

#include "losses.h"

typedef struct {
    double shrink; /* factor of the old coefficients */
    double alpha;  /* true coefficient of the new term */
    double offset; /* change of the offset */
} ok_shift;

/* 1 - eta lambda: what a gradient step leaves of old coefficients. */
OK_INLINE double ok_gradient_shrink(double eta, double regularization)
{
    return 1.0 - eta * regularization;
}

/* f <- (1 - eta lambda) f - eta l'(f(x), y) k(x, .): K (9), (11), (12), with eta_t in both places.
 * The offset is never decayed: K (16). */
OK_INLINE ok_shift ok_gradient_shift(double shrink, double eta, double derivative)
{
    const ok_shift shift = {shrink, -eta * derivative, -eta * derivative};
    return shift;
}

/* 1 - tau of I (11): what an implicit step leaves of old coefficients. */
OK_INLINE double ok_implicit_shrink(double eta, double regularization)
{
    return 1.0 / (1.0 + eta * regularization);
}

/* k(x, x) as an implicit step sees it.
 *
 * An offset is one more coordinate without regularization, so the same arg-min is over (f, b): along
 * the direction it adds its squared length, `offsets`, to the kernel; 0: there is none. */
OK_INLINE double ok_implicit_kernel(double shrink, double offsets, double k)
{
    return offsets > 0.0 ? k + offsets / shrink : k;
}

/* f <- argmin 1/2 |f - f_t|^2 + eta (lambda/2 |f|^2 + C L(f)), I (8)-(12).
 *
 * `size` is eta C times the example's weight, and z the score that the shrunk hypothesis gives. */
OK_INLINE ok_shift ok_implicit_shift(const ok_loss *loss, double shrink, double size, double offsets, double z,
                                     double y, double k)
{
    const double own = ok_implicit_kernel(shrink, offsets, k);
    const double alpha = own > 0.0 ? ok_loss_implicit(loss, z, y, own, shrink * size) : 0.0;
    const ok_shift shift = {shrink, alpha, alpha / shrink};
    return shift;
}

/* The scalar of a nu-loss goes down its gradient: by f's step, `shared`, or by a step of its own.
 *
 * Its own step is relative to the running mean of |compared - scalar|, which is `gap` with the sum of
 * weights `gap_weight`.  Far away it goes fast; near the quantile it moves by a small part of the
 * scores' spread.  f's step may be as large as all of f, and then the scalar swings like a clock,
 * whatever comes.  But a margin and an f that only just reaches it could fade away together, so the
 * scale of a margin is not below a part of f's step.  Where more than nu of the examples cannot be
 * told apart, the margin of classes would go below 0 and mistakes would not be learned: it stays above. */
OK_INLINE double ok_scalar_step(const ok_loss *loss, double shared, double weight, double gradient,
                                double compared, double *gap, double *gap_weight)
{
    const double memory = 0.999, least = ok_loss_has_width(loss) ? 0.0 : 0.3 * shared;
    const int own = loss->step > 0.0 && weight > 0.0;
    double step = shared, scalar;
    if (own) {
        *gap_weight = memory * *gap_weight + weight;
        *gap += weight / *gap_weight * (fabs(compared - loss->scalar) - *gap);
        step = loss->step * (*gap > least ? *gap : least);
    }
    scalar = ok_loss_moved_scalar(loss, loss->scalar - step * weight * gradient);
    if (own && (loss->code == OK_NU_HINGE || loss->code == OK_NU_PAIR_HINGE))
        scalar = scalar > 0.1 * shared ? scalar : 0.1 * shared;
    return scalar;
}

#endif
