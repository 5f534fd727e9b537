/* Vector mathematics of the hot loops: exp, dot products, kernel rows.
 *
 * Every function is a plain loop without branches that an ordinary compiler turns into vector code at -O3, without
 * fast-math and without -march. Where the compiler can make several versions of a function and choose one at load time
 * (GCC or clang with glibc on x86-64), it makes three: AVX-512, AVX2 and the baseline. Elsewhere (MSVC, other
 * processors and systems, ONLINEKERNELS_NO_CLONES) there is one version.
 *
 * NaN is never swallowed: comparisons are written so that a NaN passes through to the caller, who reports it.
 */
#ifndef ONLINEKERNELS_VECMATH_H
#define ONLINEKERNELS_VECMATH_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Earlier compilers choose the wrong one, or cannot: clang relies on the libgcc of GCC 12 and on glibc 2.36. */
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(ONLINEKERNELS_NO_CLONES)
#if defined(__clang__) ? __clang_major__ >= 19 && __GLIBC_PREREQ(2, 36) : __GNUC__ >= 12
#define OK_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#define OK_HAS_CLONES
#ifdef __clang__ /* a function with several versions must not be called "unused" */
#define OK_STATIC static
#pragma clang diagnostic ignored "-Wunused-function"
#endif
#endif
#endif
#ifndef OK_CLONES
#define OK_CLONES
#endif

#if defined(__GNUC__) || defined(__clang__)
#define OK_INLINE static inline __attribute__((always_inline, unused))
#ifndef OK_STATIC
#define OK_STATIC static __attribute__((unused))
#endif
#define OK_PREFETCH(address) __builtin_prefetch(address)
#else
#define OK_INLINE static __forceinline
#define OK_STATIC static
#define OK_PREFETCH(address) ((void)0)
#endif

#if defined(_MSC_VER)
#define OK_RESTRICT __restrict
#else
#define OK_RESTRICT restrict
#endif

#define OK_DEFINE_BITS(NAME, TO, FROM)                                                             \
    OK_INLINE TO NAME(FROM from)                                                                   \
    {                                                                                              \
        TO to;                                                                                     \
        memcpy(&to, &from, sizeof to);                                                             \
        return to;                                                                                 \
    }

OK_DEFINE_BITS(ok_from_bits, double, uint64_t)
OK_DEFINE_BITS(ok_to_bits, uint64_t, double)
OK_DEFINE_BITS(ok_from_bits_f, float, uint32_t)
OK_DEFINE_BITS(ok_to_bits_f, uint32_t, float)

/* exp(x) within 1 ulp: x = n ln2 + r with |r| <= ln2/2, a polynomial of degree 11 for exp(r)
 * (relative error 2e-17), and n added to its exponent.  Adding 1.5 * 2^52 rounds to an integer and
 * leaves it in the low bits.  Results below the smallest normal number, 2.2e-308, are 0. */
OK_INLINE double ok_exp(double x)
{
    const double magic = 6755399441055744.0;
    double n, r, q;
    uint64_t k;

    n = x * 0x1.71547652b82fep+0 + magic;
    k = ok_to_bits(n);
    n -= magic;
    r = x - n * 0x1.62e42fee00000p-1;
    r -= n * 0x1.a39ef35793c76p-33;
    q = 0x1.af38d53857513p-26;
    q = q * r + 0x1.2891a8c1d838dp-22;
    q = q * r + 0x1.71de0d9c145d0p-19;
    q = q * r + 0x1.a019b8ef67c6cp-16;
    q = q * r + 0x1.a01a01a7c8d47p-13;
    q = q * r + 0x1.6c16c17893833p-10;
    q = q * r + 0x1.11111111109adp-7;
    q = q * r + 0x1.5555555553d4fp-5;
    q = q * r + 0x1.5555555555556p-3;
    q = q * r + 0x1.0000000000001p-1;
    q = q * r + 1.0;
    q = q * r + 1.0;
    q = ok_from_bits(ok_to_bits(q) + (k << 52));
    q = x < -708.3964185322641 ? 0.0 : q;
    return x > 709.782712893384 ? HUGE_VAL : q;
}

/* The same in single precision, within 2 ulp; results below the smallest normal number, 1.2e-38, are 0. */
OK_INLINE float ok_exp_f(float x)
{
    const float magic = 12582912.0f;
    float n, r, q;
    uint32_t k;

    n = x * 1.44269504f + magic;
    k = ok_to_bits_f(n);
    n -= magic;
    r = x - n * 0.693359375f;
    r += n * 2.12194440e-4f;
    q = 1.9875691500e-4f;
    q = q * r + 1.3981999507e-3f;
    q = q * r + 8.3334519073e-3f;
    q = q * r + 4.1665795894e-2f;
    q = q * r + 1.6666665459e-1f;
    q = q * r + 5.0000001201e-1f;
    q = q * r * r + r + 1.0f;
    q = ok_from_bits_f(ok_to_bits_f(q) + (k << 23));
    q = x < -87.3365447f ? 0.0f : q;
    return x > 88.7228317f ? HUGE_VALF : q;
}

/* From n phases to scale * cos of them, in place, and scale * sin of them: random Fourier features.
 *
 * x = q pi/2 + r with |r| <= pi/4, by pi/2 in three parts of 33 bits, so that products with q < 2^20 are exact; then
 * fdlibm's polynomials, within 1 ulp.  q says which of them is the cosine, and the signs.  A row with a phase of a
 * million or more, or without numbers, goes to the C library. */
OK_STATIC OK_CLONES void ok_fourier_row(double *OK_RESTRICT row, double *OK_RESTRICT sines, double scale, ptrdiff_t n)
{
    const double magic = 6755399441055744.0;
    double largest = 0;
    ptrdiff_t j;
    for (j = 0; j < n; j++) largest = fabs(row[j]) <= largest ? largest : fabs(row[j]);
    if (!(largest < 1e6)) {
        for (j = 0; j < n; j++) {
            sines[j] = scale * sin(row[j]);
            row[j] = scale * cos(row[j]);
        }
        return;
    }
    for (j = 0; j < n; j++) {
        double q, r, z, s, c, first, second;
        uint64_t k, odd;
        q = row[j] * 0x1.45f306dc9c883p-1 + magic;
        k = ok_to_bits(q);
        q -= magic;
        r = row[j] - q * 0x1.921fb54400000p+0;
        r -= q * 0x1.0b4611a600000p-34;
        r -= q * 0x1.3198a2e037073p-69;
        z = r * r;
        s = 1.58969099521155010221e-10;
        s = s * z - 2.50507602534068634195e-08;
        s = s * z + 2.75573137070700676789e-06;
        s = s * z - 1.98412698298579493134e-04;
        s = s * z + 8.33333333332248946124e-03;
        s = s * z - 1.66666666666666324348e-01;
        s = s * z * r + r;
        c = -1.13596475577881948265e-11;
        c = c * z + 2.08757232129817482790e-09;
        c = c * z - 2.75573143513906633035e-07;
        c = c * z + 2.48015872894767294178e-05;
        c = c * z - 1.38888888888741095749e-03;
        c = c * z + 4.16666666666666019037e-02;
        c = c * z * z - 0.5 * z + 1.0;
        odd = (uint64_t)0 - (k & 1); /* all bits or none: the quadrants where sine and cosine change places */
        first = ok_from_bits((ok_to_bits(c) & ~odd) | (ok_to_bits(s) & odd));
        second = ok_from_bits((ok_to_bits(s) & ~odd) | (ok_to_bits(c) & odd));
        row[j] = scale * ok_from_bits(ok_to_bits(first) ^ (((k + 1) & 2) << 62));
        sines[j] = scale * ok_from_bits(ok_to_bits(second) ^ ((k & 2) << 62));
    }
}

/* Sixteen independent sums: enough to fill vector registers, and the same order of additions
 * whatever the vector width.  A sum depends on the machine only in its last bits: where there is a
 * fused multiply-add, the compiler may use it, and a product is then not rounded before it is added. */
#define OK_LANES 16

/* A statement with lane l and number k, for all k from 0 to n - 1, of which each OK_LANES-th is in the same lane. */
#define OK_OVER_LANES(n, STATEMENT)                                                                \
    do {                                                                                           \
        ptrdiff_t first_, l;                                                                       \
        for (first_ = 0; first_ + OK_LANES <= (n); first_ += OK_LANES)                             \
            for (l = 0; l < OK_LANES; l++) {                                                       \
                const ptrdiff_t k = first_ + l;                                                    \
                STATEMENT;                                                                         \
            }                                                                                      \
        for (l = 0; first_ + l < (n); l++) {                                                       \
            const ptrdiff_t k = first_ + l;                                                        \
            STATEMENT;                                                                             \
        }                                                                                          \
    } while (0)

/* A function that is a loop of one statement over the numbers i = 0, ..., n - 1. */
#define OK_DEFINE_LOOP(NAME, ARGUMENTS, STATEMENT)                                                 \
    OK_STATIC OK_CLONES void NAME ARGUMENTS                                                        \
    {                                                                                              \
        ptrdiff_t i;                                                                               \
        for (i = 0; i < n; i++) { STATEMENT; }                                                     \
    }

#define OK_DEFINE_FOR(TYPE, SUFFIX)                                                                \
    OK_INLINE TYPE ok_dot_inline##SUFFIX(const TYPE *a, const TYPE *b, ptrdiff_t n)                \
    {                                                                                              \
        TYPE lane[OK_LANES] = {0}, total = 0;                                                      \
        ptrdiff_t l;                                                                               \
        OK_OVER_LANES(n, lane[l] += a[k] * b[k]);                                                  \
        for (l = 0; l < OK_LANES; l++) total += lane[l];                                           \
        return total;                                                                              \
    }                                                                                              \
    /* Inner products of x with n rows of S: four rows at a time share what is loaded of x. */        \
    OK_STATIC OK_CLONES void ok_inner_row##SUFFIX(const TYPE *S, ptrdiff_t n, ptrdiff_t d,         \
                                                  const TYPE *x, double *OK_RESTRICT out)          \
    {                                                                                              \
        ptrdiff_t i = 0, l;                                                                        \
        for (; i + 4 <= n; i += 4) {                                                               \
            const TYPE *a = S + i * d, *b = a + d, *c = b + d, *e = c + d;                         \
            TYPE la[OK_LANES] = {0}, lb[OK_LANES] = {0}, lc[OK_LANES] = {0}, le[OK_LANES] = {0};   \
            TYPE ta = 0, tb = 0, tc = 0, te = 0;                                                   \
            OK_OVER_LANES(d, TYPE v = x[k]; la[l] += a[k] * v; lb[l] += b[k] * v; lc[l] += c[k] * v;\
                             le[l] += e[k] * v);                                                   \
            for (l = 0; l < OK_LANES; l++) {                                                       \
                ta += la[l];                                                                       \
                tb += lb[l];                                                                       \
                tc += lc[l];                                                                       \
                te += le[l];                                                                       \
            }                                                                                      \
            out[i] = ta;                                                                           \
            out[i + 1] = tb;                                                                       \
            out[i + 2] = tc;                                                                       \
            out[i + 3] = te;                                                                       \
        }                                                                                          \
        for (; i < n; i++) out[i] = ok_dot_inline##SUFFIX(S + i * d, x, d);                        \
    }                                                                                              \
    /* The same sums for few features: OK_LANES points side by side, of which there are n, and two rows. */\
    OK_INLINE void ok_l1_tile##SUFFIX(const TYPE *a, const TYPE *b, const TYPE *transposed, ptrdiff_t d,\
                                      TYPE *OK_RESTRICT tile)                                      \
    {                                                                                              \
        TYPE s0[OK_LANES] = {0}, s1[OK_LANES] = {0};                                               \
        ptrdiff_t j, l;                                                                            \
        for (j = 0; j < d; j++) {                                                                  \
            const TYPE u = a[j], v = b[j], *t = transposed + j * OK_LANES;                             \
            for (l = 0; l < OK_LANES; l++) {                                                       \
                const TYPE z = t[l];                                                               \
                s0[l] += (TYPE)fabs((double)(u - z));                                              \
                s1[l] += (TYPE)fabs((double)(v - z));                                              \
            }                                                                                      \
        }                                                                                          \
        for (l = 0; l < OK_LANES; l++) {                                                           \
            tile[l] = s0[l];                                                                       \
            tile[OK_LANES + l] = s1[l];                                                            \
        }                                                                                          \
    }                                                                                              \
    OK_INLINE void ok_narrow_l1_block##SUFFIX(const TYPE *X, ptrdiff_t m, const TYPE *S, ptrdiff_t n,\
                                              ptrdiff_t d, double *OK_RESTRICT out, ptrdiff_t stride)\
    {                                                                                              \
        TYPE transposed[OK_LANES * OK_LANES], tile[2 * OK_LANES];                                      \
        ptrdiff_t first, r, j, l;                                                                  \
        memset(transposed, 0, sizeof transposed);                                                          \
        for (first = 0; first < n; first += OK_LANES) {                                            \
            const ptrdiff_t some = n - first < OK_LANES ? n - first : OK_LANES;                    \
            for (l = 0; l < some; l++)                                                             \
                for (j = 0; j < d; j++) transposed[j * OK_LANES + l] = S[(first + l) * d + j];         \
            for (r = 0; r < m; r += 2) {                                                           \
                double *own = out + r * stride + first, *next = r + 1 < m ? own + stride : own;    \
                ok_l1_tile##SUFFIX(X + (r + 1 < m ? r + 1 : r) * d, X + r * d, transposed, d, tile);   \
                if (some == OK_LANES)                                                              \
                    for (l = 0; l < OK_LANES; l++) next[l] = tile[l], own[l] = tile[OK_LANES + l]; \
                else                                                                               \
                    for (l = 0; l < some; l++) next[l] = tile[l], own[l] = tile[OK_LANES + l];     \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    /* City-block distances of m rows of X to n rows of S, a tile of S at a time. */               \
    OK_STATIC OK_CLONES void ok_l1_block##SUFFIX(const TYPE *X, ptrdiff_t m, const TYPE *S,        \
                                                 ptrdiff_t n, ptrdiff_t d,                         \
                                                 double *OK_RESTRICT out, ptrdiff_t stride)        \
    {                                                                                              \
        ptrdiff_t tile = 16384 / (d > 0 ? d : 1) + 1, first, r, i, l;                              \
        if (d <= OK_LANES && m >= 4) {                                                             \
            ok_narrow_l1_block##SUFFIX(X, m, S, n, d, out, stride);                                \
            return;                                                                                \
        }                                                                                          \
        for (first = 0; first < n; first += tile) {                                                \
            ptrdiff_t last = first + tile < n ? first + tile : n;                                  \
            for (r = 0; r < m; r++)                                                                \
                for (i = first; i < last; i++) {                                                   \
                    const TYPE *a = X + r * d, *b = S + i * d;                                     \
                    TYPE lane[OK_LANES] = {0}, total = 0;                                          \
                    OK_OVER_LANES(d, lane[l] += (TYPE)fabs((double)(a[k] - b[k])));                \
                    for (l = 0; l < OK_LANES; l++) total += lane[l];                               \
                    out[r * stride + i] = total;                                                   \
                }                                                                                  \
        }                                                                                          \
    }                                                                                              \
    OK_DEFINE_LOOP(ok_subtract##SUFFIX, (const TYPE *x, const TYPE *origin, TYPE *OK_RESTRICT out, ptrdiff_t n), \
                   out[i] = x[i] - origin[i])                                                      \
    /* |x|^2 and <x, z> in double precision whatever the type of the elements. */                  \
    OK_STATIC OK_CLONES double ok_precise_dot##SUFFIX(const TYPE *a, const TYPE *b, ptrdiff_t n)   \
    {                                                                                              \
        double lane[OK_LANES] = {0}, total = 0;                                                    \
        ptrdiff_t l;                                                                               \
        OK_OVER_LANES(n, lane[l] += (double)a[k] * (double)b[k]);                                  \
        for (l = 0; l < OK_LANES; l++) total += lane[l];                                           \
        return total;                                                                              \
    }                                                                                              \
    /* 1 if every element is finite: x - x is 0 for finite x and NaN otherwise. */                 \
    OK_STATIC OK_CLONES int ok_all_finite##SUFFIX(const TYPE *x, ptrdiff_t n)                      \
    {                                                                                              \
        TYPE lane[OK_LANES] = {0}, total = 0;                                                      \
        ptrdiff_t l;                                                                               \
        OK_OVER_LANES(n, lane[l] += x[k] - x[k]);                                                  \
        for (l = 0; l < OK_LANES; l++) total += lane[l];                                           \
        return total == 0;                                                                         \
    }

OK_DEFINE_FOR(double, )
OK_DEFINE_FOR(float, _f)

OK_STATIC OK_CLONES double ok_dot(const double *a, const double *b, ptrdiff_t n)
{
    return ok_dot_inline(a, b, n);
}

/* out may be x. */
OK_DEFINE_LOOP(ok_exp_array, (const double *x, double *out, ptrdiff_t n), out[i] = ok_exp(x[i]))

OK_DEFINE_LOOP(ok_axpy, (double a, const double *x, double *OK_RESTRICT y, ptrdiff_t n), y[i] += a * x[i])

/* rate |x - z|^2 from inner products, never negative; in place, too. */
OK_DEFINE_LOOP(ok_distance_row, (const double *inner, const double *square, double own_square, double rate, double *out,
                                 ptrdiff_t n),
               double distance = square[i] + own_square - 2.0 * inner[i];
               out[i] = distance < 0.0 ? 0.0 : rate * distance)

OK_DEFINE_LOOP(ok_widen, (const float *x, double *OK_RESTRICT out, ptrdiff_t n), out[i] = x[i])

/* sums[first_j] += k_j c_j and sums[second_j] -= k_j c_j.  With few labels neighbouring terms often
 * share one, and each addition would wait for the one before: four copies of the sums do not. */
OK_STATIC void ok_scatter_pairs(const double *k, const double *coef, const int32_t *first,
                                const int32_t *second, ptrdiff_t n, double *sums, ptrdiff_t labels)
{
    double copies[4][64];
    ptrdiff_t j = 0, l;
    if (labels <= 64 && n >= 64) {
        memset(copies, 0, sizeof copies);
        for (; j + 4 <= n; j += 4) {
            double a = k[j] * coef[j], b = k[j + 1] * coef[j + 1];
            double c = k[j + 2] * coef[j + 2], d = k[j + 3] * coef[j + 3];
            copies[0][first[j]] += a;
            copies[1][first[j + 1]] += b;
            copies[2][first[j + 2]] += c;
            copies[3][first[j + 3]] += d;
            copies[0][second[j]] -= a;
            copies[1][second[j + 1]] -= b;
            copies[2][second[j + 2]] -= c;
            copies[3][second[j + 3]] -= d;
        }
        for (l = 0; l < labels; l++)
            sums[l] += (copies[0][l] + copies[1][l]) + (copies[2][l] + copies[3][l]);
    }
    for (; j < n; j++) {
        double a = k[j] * coef[j];
        sums[first[j]] += a;
        sums[second[j]] -= a;
    }
}

/* The smallest of those numbers that share a lane, OK_LANES * 4 lanes: so many minima need not wait for each other. */
OK_INLINE void ok_least_of_lanes(const double *x, ptrdiff_t n, double *OK_RESTRICT lane)
{
    ptrdiff_t i, l;
    for (l = 0; l < 4 * OK_LANES; l++) lane[l] = HUGE_VAL;
    for (i = 0; i + 4 * OK_LANES <= n; i += 4 * OK_LANES)
        for (l = 0; l < 4 * OK_LANES; l++) lane[l] = x[i + l] < lane[l] ? x[i + l] : lane[l];
    for (l = 0; i + l < n; l++) lane[l] = x[i + l] < lane[l] ? x[i + l] : lane[l];
}

/* The smallest of n numbers; infinity for none. */
OK_STATIC OK_CLONES double ok_least(const double *x, ptrdiff_t n)
{
    double lane[4 * OK_LANES], least = HUGE_VAL;
    ptrdiff_t l;
    ok_least_of_lanes(x, n, lane);
    for (l = 0; l < 4 * OK_LANES; l++) least = lane[l] < least ? lane[l] : least;
    return least;
}

/* Places of the numbers up to a limit, in order; returns how many. Flags are bytes, eight one word; most are 0. */
OK_INLINE ptrdiff_t ok_places(const double *x, ptrdiff_t n, double limit, ptrdiff_t *OK_RESTRICT place)
{
    unsigned char flag[512];
    ptrdiff_t first, i, l, found = 0;
    for (first = 0; first < n; first += 512) {
        const ptrdiff_t some = n - first < 512 ? n - first : 512;
        for (i = 0; i < some; i++) flag[i] = x[first + i] <= limit;
        for (; i & 7; i++) flag[i] = 0;
        for (i = 0; i < some; i += 8) {
            uint64_t word;
            memcpy(&word, flag + i, sizeof word);
            if (word == 0) continue;
            if (word == 0x0101010101010101u) {
                for (l = 0; l < 8; l++) place[found + l] = first + i + l;
                found += 8;
                continue;
            }
            for (l = 0; l < 8 && i + l < some; l++) {
                place[found] = first + i + l;
                found += flag[i + l];
            }
        }
    }
    return found;
}

/* Places (with room for one more) of the numbers up to a limit, and rate (least - x) of each; returns how many. */
OK_STATIC OK_CLONES ptrdiff_t ok_nearby(const double *x, ptrdiff_t n, double limit, double least, double rate,
                                        ptrdiff_t *OK_RESTRICT place, double *OK_RESTRICT out)
{
    const ptrdiff_t found = ok_places(x, n, limit, place);
    ptrdiff_t i;
    for (i = 0; i < found; i++) out[i] = rate * (least - x[place[i]]);
    return found;
}

/* Let a number in among the k smallest, of which there are `found`; returns how many there are then. */
OK_INLINE ptrdiff_t ok_let_in(double v, ptrdiff_t k, ptrdiff_t found, double *best)
{
    ptrdiff_t j = found < k ? found : k - 1;
    if (!(v < (found < k ? HUGE_VAL : best[k - 1]))) return found;
    for (; j > 0 && best[j - 1] > v; j--) best[j] = best[j - 1];
    best[j] = v;
    return found < k ? found + 1 : k;
}

/* The k smallest of n numbers, in order, but for infinite ones; returns how many there are.  place has room for n + 1.
 * None is larger than the k-th smallest minimum of a lane. */
OK_STATIC OK_CLONES ptrdiff_t ok_smallest(const double *x, ptrdiff_t n, ptrdiff_t k, ptrdiff_t *OK_RESTRICT place,
                                          double *OK_RESTRICT best)
{
    double lane[4 * OK_LANES];
    ptrdiff_t i, near, found = 0;
    ok_least_of_lanes(x, n, lane);
    for (i = 0; i < 4 * OK_LANES; i++) found = ok_let_in(lane[i], k, found, best);
    near = ok_places(x, n, found < k ? HUGE_VAL : best[k - 1], place);
    for (i = found = 0; i < near; i++) found = ok_let_in(x[place[i]], k, found, best);
    return found;
}

/* out_i = values[index_i stride] */
OK_DEFINE_LOOP(ok_gather, (const double *values, ptrdiff_t stride, const ptrdiff_t *index, ptrdiff_t n,
                           double *OK_RESTRICT out), out[i] = values[index[i] * stride])

/* sum_i share_i (x_i - mean)^2 */
OK_STATIC OK_CLONES double ok_scatter(const double *share, const double *x, double mean, ptrdiff_t n)
{
    double lane[OK_LANES] = {0}, total = 0;
    ptrdiff_t l;
    OK_OVER_LANES(n, lane[l] += share[k] * ((x[k] - mean) * (x[k] - mean)));
    for (l = 0; l < OK_LANES; l++) total += lane[l];
    return total;
}

/* ---- Kernel rows: k(x, s_j) for all j from inner products or distances ------------------------ */

/* exp(-gamma |x - s|^2) with |x - s|^2 = |x|^2 + |s|^2 - 2 <x, s>, never below 0. */
OK_DEFINE_LOOP(ok_gaussian_row, (const double *inner, const double *square, double own_square, double gamma,
                                 double *OK_RESTRICT out, ptrdiff_t n),
               double distance = own_square + square[i] - 2.0 * inner[i];
               out[i] = ok_exp(-gamma * (distance < 0.0 ? 0.0 : distance)))

OK_DEFINE_LOOP(ok_laplacian_row, (const double *distance, double rate, double *OK_RESTRICT out, ptrdiff_t n),
               out[i] = ok_exp(-rate * distance[i]))

/* scale * (inner + tilt_j + own) + bias: an inner product taken about an origin and brought back. */
OK_STATIC OK_CLONES void ok_affine_row(const double *inner, const double *origin_product, double own, double scale,
                                       double bias, double *OK_RESTRICT out, ptrdiff_t n)
{
    ptrdiff_t j;
    if (origin_product)
        for (j = 0; j < n; j++) out[j] = scale * (inner[j] + origin_product[j] + own) + bias;
    else
        for (j = 0; j < n; j++) out[j] = scale * inner[j] + bias;
}

/* base ^ degree by repeated squaring, in place, a block at a time so that each loop is over numbers. */
OK_STATIC OK_CLONES void ok_power_row(double *OK_RESTRICT base, int degree, ptrdiff_t n)
{
    double result[256];
    ptrdiff_t first, j;
    for (first = 0; first < n; first += 256) {
        ptrdiff_t size = n - first < 256 ? n - first : 256;
        double *power = base + first;
        int rest = degree;
        for (j = 0; j < size; j++) result[j] = 1.0;
        for (; rest > 1; rest >>= 1) {
            if (rest & 1)
                for (j = 0; j < size; j++) result[j] *= power[j];
            for (j = 0; j < size; j++) power[j] *= power[j];
        }
        for (j = 0; j < size; j++) power[j] *= result[j];
    }
}

OK_DEFINE_LOOP(ok_add_row, (double *OK_RESTRICT into, const double *row, ptrdiff_t n), into[i] += row[i])
OK_DEFINE_LOOP(ok_multiply_row, (double *OK_RESTRICT into, const double *row, ptrdiff_t n), into[i] *= row[i])
OK_DEFINE_LOOP(ok_shift_row, (double *OK_RESTRICT row, double by, ptrdiff_t n), row[i] += by)
OK_DEFINE_LOOP(ok_scale_row, (double *OK_RESTRICT row, double by, ptrdiff_t n), row[i] *= by)

#endif
