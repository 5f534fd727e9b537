/* Triangular systems and products with the rows of a matrix, for matrices of some hundred rows.
 *
 * Matrices are row-major, with so many numbers between the beginnings of two rows as their stride says.  L is lower
 * triangular with a diagonal without zeros; what is above the diagonal is not read.  Larger products are NumPy's.
 */
#ifndef ONLINEKERNELS_TRIANGLES_H
#define ONLINEKERNELS_TRIANGLES_H

#include "vecmath.h"

/* out_i = <row i of S, x>, for n rows of length d. */
OK_STATIC OK_CLONES void ok_times_rows(const double *S, ptrdiff_t stride, ptrdiff_t n, ptrdiff_t d,
                                       const double *OK_RESTRICT x, double *OK_RESTRICT out)
{
    ptrdiff_t i;
    for (i = 0; i < n; i++) out[i] = ok_dot_inline(S + i * stride, x, d);
}

/* L x = b in place, for one vector. */
OK_INLINE void ok_solve_one(const double *L, ptrdiff_t stride, ptrdiff_t n, double *x)
{
    ptrdiff_t i;
    for (i = 0; i < n; i++) {
        const double *row = L + i * stride;
        x[i] = (x[i] - ok_dot_inline(row, x, i)) / row[i];
    }
}

/* The same for four vectors, which share what is loaded of L; each has the sums that it has alone. */
OK_INLINE void ok_solve_four(const double *L, ptrdiff_t stride, ptrdiff_t n, double *OK_RESTRICT x,
                             double *OK_RESTRICT y, double *OK_RESTRICT z, double *OK_RESTRICT u)
{
    ptrdiff_t i, j, l;
    for (i = 0; i < n; i++) {
        const double *row = L + i * stride;
        double lx[OK_LANES] = {0}, ly[OK_LANES] = {0}, lz[OK_LANES] = {0}, lu[OK_LANES] = {0};
        double tx = 0, ty = 0, tz = 0, tu = 0;
        for (j = 0; j + OK_LANES <= i; j += OK_LANES)
            for (l = 0; l < OK_LANES; l++) {
                double v = row[j + l];
                lx[l] += v * x[j + l];
                ly[l] += v * y[j + l];
                lz[l] += v * z[j + l];
                lu[l] += v * u[j + l];
            }
        for (l = 0; j + l < i; l++) {
            double v = row[j + l];
            lx[l] += v * x[j + l];
            ly[l] += v * y[j + l];
            lz[l] += v * z[j + l];
            lu[l] += v * u[j + l];
        }
        for (l = 0; l < OK_LANES; l++) {
            tx += lx[l];
            ty += ly[l];
            tz += lz[l];
            tu += lu[l];
        }
        x[i] = (x[i] - tx) / row[i];
        y[i] = (y[i] - ty) / row[i];
        z[i] = (z[i] - tz) / row[i];
        u[i] = (u[i] - tu) / row[i];
    }
}

/* L x = b in place, for each of the m rows of X. */
OK_STATIC OK_CLONES void ok_solve_rows(const double *L, ptrdiff_t stride, ptrdiff_t n, double *X,
                                       ptrdiff_t x_stride, ptrdiff_t m)
{
    ptrdiff_t r = 0;
    for (; r + 4 <= m; r += 4) {
        double *x = X + r * x_stride;
        ok_solve_four(L, stride, n, x, x + x_stride, x + 2 * x_stride, x + 3 * x_stride);
    }
    for (; r < m; r++) ok_solve_one(L, stride, n, X + r * x_stride);
}

/* row -= c times another one, four of them at a time */
OK_INLINE void ok_subtract_rows(double *OK_RESTRICT row, const double *B, ptrdiff_t stride, const double *c,
                                ptrdiff_t count, ptrdiff_t m)
{
    ptrdiff_t s = 0, j;
    for (; s + 4 <= count; s += 4) {
        const double *b0 = B + s * stride, *b1 = b0 + stride, *b2 = b1 + stride, *b3 = b2 + stride;
        double c0 = c[s], c1 = c[s + 1], c2 = c[s + 2], c3 = c[s + 3];
        for (j = 0; j < m; j++) row[j] -= c0 * b0[j] + c1 * b1[j] + c2 * b2[j] + c3 * b3[j];
    }
    for (; s < count; s++)
        for (j = 0; j < m; j++) row[j] -= c[s] * B[s * stride + j];
}

/* L X = B in place, for a matrix B of n rows of length m. */
OK_STATIC OK_CLONES void ok_solve_block(const double *L, ptrdiff_t stride, ptrdiff_t n, double *B,
                                        ptrdiff_t b_stride, ptrdiff_t m)
{
    ptrdiff_t i, j;
    for (i = 0; i < n; i++) {
        double *row = B + i * b_stride, scale = 1.0 / L[i * stride + i];
        ok_subtract_rows(row, B, b_stride, L + i * stride, i, m);
        for (j = 0; j < m; j++) row[j] *= scale;
    }
}

/* L^T X = B in place. */
OK_STATIC OK_CLONES void ok_solve_transposed(const double *L, ptrdiff_t stride, ptrdiff_t n, double *B,
                                             ptrdiff_t b_stride, ptrdiff_t m)
{
    ptrdiff_t i, j, s;
    for (i = n - 1; i >= 0; i--) {
        double *OK_RESTRICT row = B + i * b_stride;
        const double scale = 1.0 / L[i * stride + i];
        for (j = 0; j < m; j++) row[j] *= scale;
        for (s = 0; s < i; s++) {
            double *OK_RESTRICT other = B + s * b_stride;
            const double c = L[i * stride + s];
            for (j = 0; j < m; j++) other[j] -= c * row[j];
        }
    }
}

/* Z = L^-1, of which the part above the diagonal is left as it is. */
OK_STATIC OK_CLONES void ok_invert_lower(const double *L, ptrdiff_t stride, ptrdiff_t n, double *Z, ptrdiff_t z_stride)
{
    ptrdiff_t i, j, s;
    for (i = 0; i < n; i++) {
        double *OK_RESTRICT row = Z + i * z_stride;
        const double scale = 1.0 / L[i * stride + i];
        for (j = 0; j < i; j++) row[j] = 0.0;
        for (s = 0; s < i; s++) {
            const double c = L[i * stride + s];
            const double *OK_RESTRICT other = Z + s * z_stride;
            for (j = 0; j <= s; j++) row[j] -= c * other[j];
        }
        for (j = 0; j < i; j++) row[j] *= scale;
        row[i] = scale;
    }
}

#endif
