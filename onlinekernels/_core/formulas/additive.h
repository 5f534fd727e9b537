/* One-coordinate kernels that are separable to the left and to the right of their knot, and what the
 * tree needs of them: values, sums of a block of knots, sums of a block of sums, weights of sums.
 *
 * A block of knots p_1 <= ... <= p_n with coefficients is known to the outside by `dims` sums.
 *
 *   spline of order z   moments sum a_i p_i^s, s = 0 .. 2z+1.  Left of x a knot contributes a
 *                       polynomial in p of degree 2z+1, right of x one of degree z (H (2), (4) with the
 *                       erratum's 1/6).  The domain starts at 0, so that moments about 0 lose nothing:
 *                       each monomial is at most a small multiple of the kernel itself.
 *   Matern, r = rate |x - p|: e^-r, (1 + r) e^-r, (1 + r + r^2/3) e^-r
 *                       sum a_i s_i^k e^-s_i with s_i = rate (high - p_i), for the side left of x, and
 *                       the same with s_i = rate (p_i - low) for the side right of x.  Nothing can
 *                       overflow: all exponents are negative, relative to the block's own keys.
 *   a kernel of the user's own, K(p, q) = sum_i left_i(p) right_i(q) for p <= q
 *                       sum a_i left(p_i), for the side left of x, and sum a_i right(p_i).  The values of
 *                       these functions at a key come from Python; they are cached beside the keys.
 *
 * Arrays are (dims, width): all knots or blocks of one sum are neighbours.
 */
#ifndef ONLINEKERNELS_ADDITIVE_H
#define ONLINEKERNELS_ADDITIVE_H

#include "vecmath.h"

enum { OK_SPLINE = 0, OK_MATERN = 1, OK_OWN = 2 };

#define OK_MAX_ORDER 31
#define OK_MAX_DIMS (2 * OK_MAX_ORDER + 2)
#define OK_LARGEST_EXPONENT 1e5 /* e^-s is 0 long before; s^2 e^-s stays a number */

typedef struct {
    int code;
    int order; /* spline: z; Matern: 0 for the exponential kernel, 1 (3/2), 2 (5/2); own: functions of a side, less 1 */
    double rate;
    double c[OK_MAX_ORDER + 1]; /* spline: coefficient of p^(2z+1-s) q^s, p <= q, without the powers of pq */
} ok_additive;

OK_STATIC int ok_additive_dims(const ok_additive *k)
{
    return 2 * k->order + 2;
}

/* The integral of (p-t)^z (q-t)^z over t from 0 to p, expanded in q: c_s = (-1)^(z-s) z!^2 / (s! (2z-s+1)!). */
OK_STATIC void ok_additive_start(ok_additive *k)
{
    int s, z = k->order;
    for (s = 0; s <= OK_MAX_ORDER; s++) k->c[s] = 0.0;
    if (k->code != OK_SPLINE) return;
    k->c[z] = 1.0 / (z + 1);
    for (s = z; s > 0; s--) k->c[s - 1] = -k->c[s] * s / (2 * z - s + 2);
}

/* H (2): sum_r C(z,r) min^(2z-r+1) |q-p|^r / (2z-r+1) + sum_r (pq)^r, all terms positive. */
OK_INLINE double ok_spline(int order, double p, double q)
{
    double low = p < q ? p : q, gap = p < q ? q - p : p - q, pq = p * q, low2 = low * low, low4 = low2 * low2;
    if (order == 0) return low + 1.0;
    if (order == 1) return low2 * (low / 3.0 + gap / 2.0) + (1.0 + pq);
    if (order == 2)
        return low2 * low * (low2 / 5.0 + gap * (low / 2.0 + gap / 3.0)) + (1.0 + pq * (1.0 + pq));
    if (order > 3) {
        double binomial = 1.0, power = 1.0, sum = 1.0 / (2 * order + 1), products = 1.0, ends = low;
        int r;
        for (r = 1; r <= order; r++) {
            binomial = binomial * (order - r + 1) / r;
            power *= gap;
            sum = sum * low + binomial * power / (2 * order - r + 1);
            products = 1.0 + pq * products;
            ends *= low;
        }
        return ends * sum + products;
    }
    return low4 * (low2 * low / 7.0 + gap * (low2 / 2.0 + gap * (low * 0.6 + gap / 4.0))) +
           (1.0 + pq * (1.0 + pq * (1.0 + pq)));
}

OK_INLINE double ok_matern(int order, double r)
{
    double factor = order == 0 ? 1.0 : order == 1 ? 1.0 + r : 1.0 + r * (1.0 + r / 3.0);
    return factor * ok_exp(-r);
}

OK_INLINE double ok_exponent(double rate, double gap)
{
    double s = rate * gap;
    s = s < 0.0 ? 0.0 : s; /* padding: beyond its size a block has infinite keys and sums of 0 */
    return s > OK_LARGEST_EXPONENT ? OK_LARGEST_EXPONENT : s;
}

/* K(p_i, x) for n knots. */
OK_STATIC OK_CLONES void ok_additive_values(const ok_additive *k, double x, const double *p,
                                            double *OK_RESTRICT out, ptrdiff_t n)
{
    const double rate = k->rate;
    ptrdiff_t i;
#define OK_EACH(EXPRESSION)                        \
    for (i = 0; i < n; i++) {                      \
        double gap = p[i] < x ? x - p[i] : p[i] - x; \
        (void)gap;                                 \
        out[i] = EXPRESSION;                       \
    }
    switch (k->code == OK_SPLINE ? k->order : -1 - k->order) {
    case 0: OK_EACH(ok_spline(0, p[i], x)) break;
    case 1: OK_EACH(ok_spline(1, p[i], x)) break;
    case 2: OK_EACH(ok_spline(2, p[i], x)) break;
    case 3: OK_EACH(ok_spline(3, p[i], x)) break;
    case -1: OK_EACH(ok_matern(0, ok_exponent(rate, gap))) break;
    case -2: OK_EACH(ok_matern(1, ok_exponent(rate, gap))) break;
    case -3: OK_EACH(ok_matern(2, ok_exponent(rate, gap))) break;
    default: OK_EACH(ok_spline(k->order, p[i], x)) break;
    }
#undef OK_EACH
}

/* What one unit of coefficient at each knot adds to the sums of its block. */
OK_STATIC OK_CLONES void ok_additive_basis(const ok_additive *k, double low, double high,
                                           const double *p, double *OK_RESTRICT out, ptrdiff_t n)
{
    ptrdiff_t i;
    int s, sides = k->order + 1;
    if (k->code == OK_SPLINE) {
        for (i = 0; i < n; i++) out[i] = 1.0;
        for (s = 1; s < 2 * sides; s++)
            for (i = 0; i < n; i++) out[s * n + i] = out[(s - 1) * n + i] * p[i];
        return;
    }
    for (i = 0; i < n; i++) {
        out[i] = ok_exp(-ok_exponent(k->rate, high - p[i]));
        out[sides * n + i] = ok_exp(-ok_exponent(k->rate, p[i] - low));
    }
    for (s = 1; s < sides; s++)
        for (i = 0; i < n; i++) {
            out[s * n + i] = out[(s - 1) * n + i] * ok_exponent(k->rate, high - p[i]);
            out[(sides + s) * n + i] = out[(sides + s - 1) * n + i] * ok_exponent(k->rate, p[i] - low);
        }
}

/* Sums of a block of n blocks: theirs, brought to the keys (low, high) of the whole.
 * scratch has room for 4 n numbers: e^-s and s to the left, e^-s and s to the right. */
OK_STATIC OK_CLONES void ok_additive_shifts(const ok_additive *k, double low, double high, const double *lows,
                                            const double *highs, double *OK_RESTRICT scratch, ptrdiff_t n)
{
    ptrdiff_t i;
    for (i = 0; i < n; i++) {
        double left = ok_exponent(k->rate, high - highs[i]), right = ok_exponent(k->rate, lows[i] - low);
        scratch[n + i] = left;
        scratch[3 * n + i] = right;
        scratch[i] = ok_exp(-left);
        scratch[2 * n + i] = ok_exp(-right);
    }
}

OK_STATIC OK_CLONES void ok_additive_combine(const ok_additive *k, const double *shifts, const double *sums,
                                             double *OK_RESTRICT out, ptrdiff_t stride, ptrdiff_t n)
{
    ptrdiff_t i;
    int s, side, sides = k->order + 1;
    if (k->code != OK_MATERN) {
        for (s = 0; s < 2 * sides; s++) {
            double total = 0.0;
            for (i = 0; i < n; i++) total += sums[s * n + i];
            out[s * stride] = total;
        }
        return;
    }
    for (side = 0; side < 2; side++) {
        const double *decay = shifts + 2 * side * n, *gap = decay + n, *a = sums + side * sides * n;
        double t0 = 0.0, t1 = 0.0, t2 = 0.0;
        for (i = 0; i < n; i++) t0 += decay[i] * a[i];
        if (sides > 1)
            for (i = 0; i < n; i++) t1 += decay[i] * (a[n + i] + gap[i] * a[i]);
        if (sides > 2)
            for (i = 0; i < n; i++)
                t2 += decay[i] * (a[2 * n + i] + gap[i] * (2.0 * a[n + i] + gap[i] * a[i]));
        out[side * sides * stride] = t0;
        if (sides > 1) out[(side * sides + 1) * stride] = t1;
        if (sides > 2) out[(side * sides + 2) * stride] = t2;
    }
}

/* Weights of the sums of n blocks in f(x): blocks before `at` lie left of x, those after it right of
 * x; block `at` itself has weight 0 and is looked into. */
OK_STATIC OK_CLONES void ok_additive_weights(const ok_additive *k, double x, const double *lows, const double *highs,
                                             ptrdiff_t at, ptrdiff_t used, double *OK_RESTRICT out, ptrdiff_t n)
{
    ptrdiff_t i;
    int s, z = k->order;
    if (k->code == OK_SPLINE) {
        double powers[OK_MAX_DIMS];
        powers[0] = 1.0;
        for (s = 1; s <= 2 * z + 1; s++) powers[s] = powers[s - 1] * x;
        for (s = 0; s <= 2 * z + 1; s++) {
            double left = s <= z ? powers[s] : k->c[2 * z + 1 - s] * powers[2 * z + 1 - s];
            double right = s <= z ? powers[s] + k->c[s] * powers[2 * z + 1 - s] : 0.0;
            for (i = 0; i < n; i++) out[s * n + i] = i < at ? left : (i > at && i < used ? right : 0.0);
        }
        return;
    }
    for (i = 0; i < n; i++) {
        double r = ok_exponent(k->rate, i < at ? x - highs[i] : lows[i] - x);
        double decay = i == at || i >= used ? 0.0 : ok_exp(-r);
        double left = i < at ? decay : 0.0, right = i > at ? decay : 0.0;
        double w0 = z == 0 ? 1.0 : z == 1 ? 1.0 + r : 1.0 + r * (1.0 + r / 3.0);
        double w1 = z == 2 ? 1.0 + r * (2.0 / 3.0) : 1.0;
        out[i] = left * w0;
        out[(z + 1) * n + i] = right * w0;
        if (z > 0) {
            out[n + i] = left * w1;
            out[(z + 2) * n + i] = right * w1;
        }
        if (z > 1) {
            out[2 * n + i] = left / 3.0;
            out[5 * n + i] = right / 3.0;
        }
    }
}

/* The same for a kernel of the user's own. A place is x, left_i(x), right_i(x); cached of n keys are (dims, stride). */
OK_INLINE double ok_own_value(const ok_additive *k, const double *x, const double *z)
{
    const int sides = k->order + 1;
    const double *left = (x[0] < z[0] ? x : z) + 1, *right = (x[0] < z[0] ? z : x) + 1 + sides;
    double total = 0.0;
    int s;
    for (s = 0; s < sides; s++) total += left[s] * right[s];
    return total;
}

OK_STATIC void ok_own_values(const ok_additive *k, const double *x, const double *p, const double *cached,
                             ptrdiff_t stride, double *OK_RESTRICT out, ptrdiff_t n)
{
    const int sides = k->order + 1;
    ptrdiff_t i;
    int s;
    for (i = 0; i < n; i++) out[i] = 0.0;
    for (s = 0; s < sides; s++)
        for (i = 0; i < n; i++)
            out[i] += p[i] < x[0] ? cached[s * stride + i] * x[1 + sides + s]
                                  : x[1 + s] * cached[(sides + s) * stride + i];
}

OK_STATIC void ok_own_weights(const ok_additive *k, const double *x, ptrdiff_t at, ptrdiff_t used,
                              double *OK_RESTRICT out, ptrdiff_t n)
{
    const int sides = k->order + 1;
    ptrdiff_t i;
    int s;
    for (s = 0; s < sides; s++)
        for (i = 0; i < n; i++) {
            out[s * n + i] = i < at ? x[1 + sides + s] : 0.0;
            out[(sides + s) * n + i] = i > at && i < used ? x[1 + s] : 0.0;
        }
}

/* How many of n ascending keys (padded with infinity) are below x. */
OK_STATIC OK_CLONES ptrdiff_t ok_count_below(const double *keys, double x, ptrdiff_t n)
{
    ptrdiff_t i;
    int64_t below = 0;
    for (i = 0; i < n; i++) below += keys[i] < x;
    return (ptrdiff_t)below;
}

/* sum_j K(x_j, s_j) for n points s with d coordinates; low and scale map a range to (0, 1], or NULL. */
#define OK_DEFINE_ADDITIVE_ROW(TYPE, SUFFIX)                                                          \
    OK_STATIC void ok_additive_row##SUFFIX(const ok_additive *k, const double *low, const double *scale, \
                                           const TYPE *x, const TYPE *points, ptrdiff_t n,            \
                                           ptrdiff_t d, double *OK_RESTRICT out)                      \
    {                                                                                                 \
        double knots[64], values[64];                                                                 \
        ptrdiff_t first, i, j;                                                                        \
        for (first = 0; first < n; first += 64) {                                                     \
            ptrdiff_t size = n - first < 64 ? n - first : 64;                                         \
            for (i = 0; i < size; i++) out[first + i] = 0.0;                                          \
            for (j = 0; j < d; j++) {                                                                 \
                double a = low ? low[j] : 0.0, b = low ? scale[j] : 1.0;                              \
                for (i = 0; i < size; i++) knots[i] = ((double)points[(first + i) * d + j] - a) * b;  \
                ok_additive_values(k, ((double)x[j] - a) * b, knots, values, size);                   \
                for (i = 0; i < size; i++) out[first + i] += values[i];                               \
            }                                                                                         \
        }                                                                                             \
    }

OK_DEFINE_ADDITIVE_ROW(double, )
OK_DEFINE_ADDITIVE_ROW(float, _f)

/* Bring a block into the cache while other work goes on. */
OK_INLINE void ok_prefetch(const double *block, ptrdiff_t numbers)
{
    ptrdiff_t i;
    for (i = 0; i < numbers; i += 8) OK_PREFETCH(block + i);
}

#endif
