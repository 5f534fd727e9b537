/* Many models side by side: lane l of every row of numbers belongs to model l of a block.
 *
 * Each function serves all OK_LANES models of a block by loops without branches over the lanes, which the compiler
 * turns into vector code (vecmath.h says how).  bank.pyx has what is done one by one. */
#ifndef ONLINEKERNELS_LANES_H
#define ONLINEKERNELS_LANES_H

#include <float.h>
#include "moves.h"

/* sums[l] = sum over slots of coef[slot][l] k(x[.][l], points[slot][.][l]).  Slots without a term have
 * coefficient 0.  Gaussian distances come from differences: they need no origin.
 *
 * While one block is at work, memory has time to bring the next, which is `prefetch` coefficients ahead. */
#define OK_DEFINE_LANES(TYPE, SUFFIX, EXP, SIZE)                                                   \
    OK_INLINE void ok_lanes_fetch##SUFFIX(const TYPE *row)                                         \
    {                                                                                              \
        OK_PREFETCH(row);                                                                          \
        if (sizeof(TYPE) * OK_LANES > 64) OK_PREFETCH(row + OK_LANES / 2);                         \
    }                                                                                              \
    OK_INLINE void ok_lanes_gaussian_inline##SUFFIX(                                               \
        const TYPE *points, const TYPE *coef, const TYPE *x, ptrdiff_t slots, ptrdiff_t d,         \
        ptrdiff_t prefetch, TYPE gamma, TYPE *sums)                                                   \
    {                                                                                              \
        ptrdiff_t slot, j, l;                                                                      \
        for (l = 0; l < OK_LANES; l++) sums[l] = 0;                                                \
        for (slot = 0; slot < slots; slot++) {                                                     \
            TYPE distance[OK_LANES] = {0};                                                         \
            for (j = 0; j < d; j++, points += OK_LANES) {                                          \
                ok_lanes_fetch##SUFFIX(points + prefetch * d);                                        \
                for (l = 0; l < OK_LANES; l++) {                                                   \
                    TYPE gap = x[j * OK_LANES + l] - points[l];                                    \
                    distance[l] += gap * gap;                                                      \
                }                                                                                  \
            }                                                                                      \
            ok_lanes_fetch##SUFFIX(coef + slot * OK_LANES + prefetch);                                \
            for (l = 0; l < OK_LANES; l++)                                                         \
                sums[l] += coef[slot * OK_LANES + l] * EXP(-gamma * distance[l]);                  \
        }                                                                                          \
    }                                                                                              \
    /* With few features, loops over a number of them that the compiler knows keep x in registers. */ \
    OK_STATIC OK_CLONES void ok_lanes_gaussian##SUFFIX(                                            \
        const TYPE *OK_RESTRICT points, const TYPE *OK_RESTRICT coef, const TYPE *OK_RESTRICT x,   \
        ptrdiff_t slots, ptrdiff_t d, ptrdiff_t prefetch, TYPE gamma, TYPE *OK_RESTRICT sums)         \
    {                                                                                              \
        switch (d) {                                                                               \
        case 1: ok_lanes_gaussian_inline##SUFFIX(points, coef, x, slots, 1, prefetch, gamma, sums); break; \
        case 2: ok_lanes_gaussian_inline##SUFFIX(points, coef, x, slots, 2, prefetch, gamma, sums); break; \
        case 3: ok_lanes_gaussian_inline##SUFFIX(points, coef, x, slots, 3, prefetch, gamma, sums); break; \
        default: ok_lanes_gaussian_inline##SUFFIX(points, coef, x, slots, d, prefetch, gamma, sums);  \
        }                                                                                          \
    }                                                                                              \
    OK_STATIC OK_CLONES void ok_lanes_linear##SUFFIX(                                              \
        const TYPE *OK_RESTRICT points, const TYPE *OK_RESTRICT coef, const TYPE *OK_RESTRICT x,   \
        ptrdiff_t slots, ptrdiff_t d, ptrdiff_t prefetch, TYPE *OK_RESTRICT sums)                     \
    {                                                                                              \
        ptrdiff_t slot, j, l;                                                                      \
        for (l = 0; l < OK_LANES; l++) sums[l] = 0;                                                \
        for (slot = 0; slot < slots; slot++) {                                                     \
            TYPE inner[OK_LANES] = {0};                                                            \
            for (j = 0; j < d; j++, points += OK_LANES) {                                          \
                ok_lanes_fetch##SUFFIX(points + prefetch * d);                                        \
                for (l = 0; l < OK_LANES; l++) inner[l] += x[j * OK_LANES + l] * points[l];        \
            }                                                                                      \
            ok_lanes_fetch##SUFFIX(coef + slot * OK_LANES + prefetch);                                \
            for (l = 0; l < OK_LANES; l++) sums[l] += coef[slot * OK_LANES + l] * inner[l];        \
        }                                                                                          \
    }                                                                                              \
    /* Rows of X that follow each other, transposed to the layout of a block. */                       \
    OK_STATIC OK_CLONES void ok_lanes_transpose##SUFFIX(const TYPE *OK_RESTRICT X, ptrdiff_t d,         \
                                                   TYPE *OK_RESTRICT x)                            \
    {                                                                                              \
        ptrdiff_t j, l;                                                                            \
        if (d == 3) /* colours: known strides become shuffles */                                   \
            for (l = 0; l < OK_LANES; l++) {                                                       \
                x[l] = X[3 * l];                                                                   \
                x[OK_LANES + l] = X[3 * l + 1];                                                    \
                x[2 * OK_LANES + l] = X[3 * l + 2];                                                \
            }                                                                                      \
        else                                                                                       \
            for (j = 0; j < d; j++)                                                                \
                for (l = 0; l < OK_LANES; l++) x[j * OK_LANES + l] = X[l * d + j];                 \
    }                                                                                              \
    /* least[l]: the size of the smallest coefficient.  Two minima at a time, which need not wait for each other. */ \
    OK_STATIC OK_CLONES void ok_lanes_least##SUFFIX(const TYPE *OK_RESTRICT coef, ptrdiff_t slots, \
                                                    TYPE *OK_RESTRICT least)                       \
    {                                                                                              \
        TYPE other[OK_LANES];                                                                      \
        ptrdiff_t slot, l;                                                                         \
        for (l = 0; l < OK_LANES; l++) least[l] = other[l] = SIZE(coef[l]);                        \
        for (slot = 1; slot + 2 <= slots; slot += 2)                                               \
            for (l = 0; l < OK_LANES; l++) {                                                       \
                TYPE one = SIZE(coef[slot * OK_LANES + l]), two = SIZE(coef[(slot + 1) * OK_LANES + l]); \
                least[l] = one < least[l] ? one : least[l];                                        \
                other[l] = two < other[l] ? two : other[l];                                        \
            }                                                                                      \
        for (; slot < slots; slot++)                                                               \
            for (l = 0; l < OK_LANES; l++) {                                                       \
                TYPE one = SIZE(coef[slot * OK_LANES + l]);                                        \
                least[l] = one < least[l] ? one : least[l];                                        \
            }                                                                                      \
        for (l = 0; l < OK_LANES; l++) least[l] = other[l] < least[l] ? other[l] : least[l];       \
    }                                                                                              \
    /* evicted[l]: the slot whose coefficient has that size, of equal ones the oldest. */           \
    OK_STATIC OK_CLONES void ok_lanes_evicted##SUFFIX(                                             \
        const TYPE *OK_RESTRICT coef, const unsigned char *OK_RESTRICT born, ptrdiff_t slots,      \
        const TYPE *OK_RESTRICT least, int32_t *OK_RESTRICT evicted)                                \
    {                                                                                              \
        int32_t first[OK_LANES];                                                                   \
        ptrdiff_t slot, l;                                                                         \
        for (l = 0; l < OK_LANES; l++) first[l] = INT32_MAX;                                       \
        for (slot = 0; slot < slots; slot++)                                                       \
            for (l = 0; l < OK_LANES; l++) {                                                       \
                int32_t age = ((int32_t)born[slot * OK_LANES + l] << 8) + (int32_t)slot;           \
                age = SIZE(coef[slot * OK_LANES + l]) == least[l] ? age : INT32_MAX;               \
                first[l] = age < first[l] ? age : first[l];                                        \
            }                                                                                      \
        for (l = 0; l < OK_LANES; l++) evicted[l] = first[l] & 255;                                 \
    }

OK_DEFINE_LANES(double, , ok_exp, fabs)
OK_DEFINE_LANES(float, _f, ok_exp_f, fabsf)

/* ---- Moves -------------------------------------------------------------------------------------- */

/* The parameters that all models share. */
typedef struct {
    ok_loss loss; /* its scalar is not used: each model has its own */
    int implicit; /* the rule: implicit steps, or gradient steps */
    int has_offset;
    double penalty;
    double range;       /* largest number of the points' precision */
    double dust;        /* see `ok_lanes_step` */
    double least_frame; /* below it, a frame is to be folded */
    double most;        /* stored coefficients beyond it, too: sums of them have to stay finite */
} ok_lanes_rule;

/* One example for each model of a block, and what comes of it.  Truths are 1.0 or 0.0: of the width of the rest. */
typedef struct {
    double active[OK_LANES]; /* whether there is one, with a finite score */
    double bare[OK_LANES];   /* f(x) */
    double score[OK_LANES];  /* f(x) + b */
    double own[OK_LANES];    /* k(x, x) */
    double target[OK_LANES];
    double eta[OK_LANES];
    double shrink[OK_LANES]; /* factor of the old coefficients, by eta */
    double moved[OK_LANES];  /* whether it could be learned */
    double alpha[OK_LANES];  /* true coefficient of the new term; 0: there is none */
    double stored[OK_LANES]; /* what is stored for it, if the frame stays */
    double folds[OK_LANES];  /* whether the frame has to be folded before */
    double no_gap[OK_LANES]; /* 0, where the scalar has no step of its own: see `ok_scalar_step` */
    double no_weight[OK_LANES];
    int64_t n_moved;         /* how many moved, have a term, have to be folded */
    int64_t n_terms;
    int64_t n_folds;
} ok_lanes;

#define OK_DEFINE_LANES_MOVES(TYPE, SUFFIX)                                                        \
    /* f(x) and the score of each active model from its sum; those without a finite one stop being active. */ \
    OK_STATIC OK_CLONES void ok_lanes_scores##SUFFIX(                                              \
        const TYPE *OK_RESTRICT sums, const double *OK_RESTRICT frame,                             \
        const double *OK_RESTRICT offset, ok_lanes *OK_RESTRICT lanes)                             \
    {                                                                                              \
        ptrdiff_t l;                                                                               \
        for (l = 0; l < OK_LANES; l++) {                                                           \
            double active = lanes->active[l];                                                      \
            double bare = active == 0.0 ? 0.0 : frame[l] * (double)sums[l];                        \
            double score = bare + offset[l];                                                       \
            lanes->bare[l] = bare;                                                                 \
            lanes->score[l] = score;                                                               \
            lanes->active[l] = fabs(score) <= DBL_MAX ? active : 0.0;                              \
        }                                                                                          \
    }                                                                                              \
    /* Lists the models whose new term is stored: there is a free slot, or a term that is not larger. */ \
    OK_STATIC OK_CLONES ptrdiff_t ok_lanes_entering##SUFFIX(                                       \
        const ok_lanes *OK_RESTRICT lanes, const unsigned char *OK_RESTRICT count,                 \
        ptrdiff_t slots, const TYPE *OK_RESTRICT least, int32_t *OK_RESTRICT entering)             \
    {                                                                                              \
        int32_t enters[OK_LANES];                                                                  \
        ptrdiff_t n = 0, l;                                                                        \
        for (l = 0; l < OK_LANES; l++) {                                                           \
            TYPE stored = (TYPE)lanes->stored[l], size = stored < 0 ? -stored : stored;            \
            int32_t enter = size >= least[l] ? 1 : 0;                                              \
            enter = count[l] < (int32_t)slots ? 1 : enter;                                         \
            enters[l] = stored != 0 ? enter : 0;                                                   \
        }                                                                                          \
        for (l = 0; l < OK_LANES; l++) {                                                           \
            entering[n] = (int32_t)l;                                                              \
            n += enters[l];                                                                        \
        }                                                                                          \
        return n;                                                                                  \
    }

OK_DEFINE_LANES_MOVES(double, )
OK_DEFINE_LANES_MOVES(float, _f)

/* Moves all but the terms: the frame shrinks the old ones, and the new ones are left to be stored.
 *
 * In float32, a change of f(x) below the rounding of f(x) itself is no reason for a term. */
OK_INLINE void ok_lanes_move_by(int code, int implicit, int has_offset, const ok_lanes_rule *rule, ok_lanes *lanes,
                                int64_t *t, double *frame, double *offset, double *scalar, double *gap,
                                double *gap_weight)
{
    const double penalty = implicit ? rule->penalty : 1.0;
    ptrdiff_t l;
    for (l = 0; l < OK_LANES; l++) {
        const ok_loss loss = {code, scalar[l], rule->loss.nu, rule->loss.step};
        const double score = lanes->score[l], y = lanes->target[l], k = lanes->own[l];
        const double eta = lanes->eta[l], shrink = lanes->shrink[l];
        double new_gap = gap[l], new_weight = gap_weight[l], new_scalar = scalar[l], new_offset, moved, alpha, z;
        ok_shift shift;
        if (implicit) {
            z = score + (shrink - 1.0) * lanes->bare[l];
            shift = ok_implicit_shift(&loss, shrink, eta * penalty, has_offset ? 1.0 : 0.0, z, y, k);
            alpha = fabs(shift.alpha) * k < rule->dust * (fabs(z) + fabs(y) + fabs(loss.scalar)) ? 0.0 : shift.alpha;
        } else {
            shift = ok_gradient_shift(shrink, eta, ok_loss_derivative(&loss, score, y));
            alpha = shift.alpha;
        }
        if (ok_loss_adapts(&loss))
            new_scalar = ok_scalar_step(&loss, eta * penalty, 1.0, ok_loss_scalar_gradient(&loss, score, y),
                                        ok_loss_compared(&loss, score, y), &new_gap, &new_weight);
        new_offset = has_offset ? offset[l] + shift.offset : 0.0;

        moved = fabs(alpha) <= rule->range ? lanes->active[l] : 0.0;
        moved = fabs(alpha * k) <= rule->range ? moved : 0.0;
        moved = fabs(new_offset) <= DBL_MAX ? moved : 0.0;
        moved = fabs(new_scalar) <= DBL_MAX ? moved : 0.0;
        alpha = k == 0.0 ? 0.0 : alpha;
        alpha = moved == 0.0 ? 0.0 : alpha;

        t[l] += moved == 0.0 ? 0 : 1;
        frame[l] *= moved == 0.0 ? 1.0 : shift.shrink;
        if (has_offset) offset[l] = moved == 0.0 ? offset[l] : new_offset;
        if (ok_loss_adapts(&loss)) {
            scalar[l] = moved == 0.0 ? scalar[l] : new_scalar;
            gap[l] = moved == 0.0 ? gap[l] : new_gap;
            gap_weight[l] = moved == 0.0 ? gap_weight[l] : new_weight;
        }
        lanes->moved[l] = moved;
        lanes->alpha[l] = alpha;
        lanes->stored[l] = alpha / frame[l];
        lanes->folds[l] = fabs(alpha) >= rule->most * frame[l] ? 1.0 : 0.0;
        lanes->folds[l] = frame[l] < rule->least_frame ? 1.0 : lanes->folds[l];
    }
}

#define OK_LANES_CASE(CODE, NUMBER, NAME)                                                          \
    case CODE:                                                                                     \
        if (rule->implicit && rule->has_offset)                                                    \
            ok_lanes_move_by(CODE, 1, 1, rule, lanes, t, frame, offset, scalar, gap, gap_weight);  \
        else if (rule->implicit)                                                                   \
            ok_lanes_move_by(CODE, 1, 0, rule, lanes, t, frame, offset, scalar, gap, gap_weight);  \
        else if (rule->has_offset)                                                                 \
            ok_lanes_move_by(CODE, 0, 1, rule, lanes, t, frame, offset, scalar, gap, gap_weight);  \
        else                                                                                       \
            ok_lanes_move_by(CODE, 0, 0, rule, lanes, t, frame, offset, scalar, gap, gap_weight);  \
        break;

/* A loop of its own for each loss and each rule. */
OK_STATIC OK_CLONES void ok_lanes_move(const ok_lanes_rule *OK_RESTRICT rule, ok_lanes *OK_RESTRICT lanes,
                                       int64_t *OK_RESTRICT t, double *OK_RESTRICT frame, double *OK_RESTRICT offset,
                                       double *OK_RESTRICT scalar, double *OK_RESTRICT gap,
                                       double *OK_RESTRICT gap_weight)
{
    ptrdiff_t l;
    int64_t moved = 0, terms = 0, folds = 0;
    switch (rule->loss.code) {
        OK_EACH_LOSS(OK_LANES_CASE)
    default: /* a loss without a loop of its own: the same, slower */
        ok_lanes_move_by(rule->loss.code, rule->implicit, rule->has_offset, rule, lanes, t, frame, offset, scalar, gap,
                         gap_weight);
    }
    for (l = 0; l < OK_LANES; l++) {
        moved += lanes->moved[l] != 0.0 ? 1 : 0;
        terms += lanes->alpha[l] != 0.0 ? 1 : 0;
        folds += lanes->folds[l] != 0.0 ? 1 : 0;
    }
    lanes->n_moved = moved;
    lanes->n_terms = terms;
    lanes->n_folds = folds;
}

#endif
