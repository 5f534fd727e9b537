/* Triangular systems and products with the rows of a matrix, for matrices of some hundred rows.
 *
 * Matrices are row-major, with so many numbers between the beginnings of two rows as their stride says.  L is lower
 * triangular with a diagonal without zeros; what is above the diagonal is not read.  Larger products are NumPy's.
 */
#ifndef ONLINEKERNELS_TRIANGLES_H
#define ONLINEKERNELS_TRIANGLES_H

#include "vecmath.h"

/* Sum of all lanes, in a tree, so that no addition waits for all others. */
OK_INLINE double ok_sum_of_lanes(double *lane)
{
    ptrdiff_t l, width;
    for (width = OK_LANES / 2; width; width /= 2)
        for (l = 0; l < width; l++) lane[l] += lane[l + width];
    return lane[0];
}

/* sums_r = <row r, x> for four rows, or <row, x_r> for four vectors: what they share is loaded once. */
OK_INLINE void ok_four_dots(const double *a, const double *b, const double *c, const double *e, const double *x,
                            ptrdiff_t n, double *sums)
{
    double la[OK_LANES] = {0}, lb[OK_LANES] = {0}, lc[OK_LANES] = {0}, le[OK_LANES] = {0};
    ptrdiff_t j, l;
    for (j = 0; j + OK_LANES <= n; j += OK_LANES)
        for (l = 0; l < OK_LANES; l++) {
            double v = x[j + l];
            la[l] += a[j + l] * v;
            lb[l] += b[j + l] * v;
            lc[l] += c[j + l] * v;
            le[l] += e[j + l] * v;
        }
    for (l = 0; j + l < n; l++) {
        double v = x[j + l];
        la[l] += a[j + l] * v;
        lb[l] += b[j + l] * v;
        lc[l] += c[j + l] * v;
        le[l] += e[j + l] * v;
    }
    sums[0] = ok_sum_of_lanes(la);
    sums[1] = ok_sum_of_lanes(lb);
    sums[2] = ok_sum_of_lanes(lc);
    sums[3] = ok_sum_of_lanes(le);
}

OK_INLINE double ok_one_dot(const double *a, const double *x, ptrdiff_t n)
{
    double lane[OK_LANES] = {0};
    ptrdiff_t j, l;
    for (j = 0; j + OK_LANES <= n; j += OK_LANES)
        for (l = 0; l < OK_LANES; l++) lane[l] += a[j + l] * x[j + l];
    for (l = 0; j + l < n; l++) lane[l] += a[j + l] * x[j + l];
    return ok_sum_of_lanes(lane);
}

/* out_i = <row i of S, x>, for n rows of length d. */
OK_STATIC OK_CLONES void ok_times_rows(const double *S, ptrdiff_t stride, ptrdiff_t n, ptrdiff_t d,
                                       const double *OK_RESTRICT x, double *OK_RESTRICT out)
{
    ptrdiff_t i = 0;
    for (; i + 4 <= n; i += 4) {
        const double *a = S + i * stride;
        ok_four_dots(a, a + stride, a + 2 * stride, a + 3 * stride, x, d, out + i);
    }
    for (; i < n; i++) out[i] = ok_one_dot(S + i * stride, x, d);
}

/* L x = b in place, for one vector: four rows at a time, first what is known of x, then the corner. */
OK_INLINE void ok_solve_one(const double *L, ptrdiff_t stride, ptrdiff_t n, double *x)
{
    ptrdiff_t i = 0, r, j;
    double sums[4];
    for (; i + 4 <= n; i += 4) {
        const double *a = L + i * stride;
        ok_four_dots(a, a + stride, a + 2 * stride, a + 3 * stride, x, i, sums);
        for (r = 0; r < 4; r++) {
            double rest = x[i + r] - sums[r];
            for (j = i; j < i + r; j++) rest -= a[r * stride + j] * x[j];
            x[i + r] = rest / a[r * stride + i + r];
        }
    }
    for (; i < n; i++) x[i] = (x[i] - ok_one_dot(L + i * stride, x, i)) / L[i * stride + i];
}

/* L x = b in place, for four vectors. */
OK_INLINE void ok_solve_four(const double *L, ptrdiff_t stride, ptrdiff_t n, double *x, double *y, double *z, double *u)
{
    ptrdiff_t i;
    double sums[4];
    for (i = 0; i < n; i++) {
        const double *row = L + i * stride;
        const double scale = 1.0 / row[i];
        ok_four_dots(x, y, z, u, row, i, sums);
        x[i] = (x[i] - sums[0]) * scale;
        y[i] = (y[i] - sums[1]) * scale;
        z[i] = (z[i] - sums[2]) * scale;
        u[i] = (u[i] - sums[3]) * scale;
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

/* L^T x = b in place, for one vector: four rows at a time, first their corner, then what they take from all before. */
OK_INLINE void ok_solve_transposed_one(const double *L, ptrdiff_t stride, ptrdiff_t n, double *x)
{
    ptrdiff_t r, j;
    for (; n >= 4; n -= 4) {
        const double *a = L + (n - 4) * stride;
        double *corner = x + n - 4;
        for (r = 3; r >= 0; r--) {
            corner[r] /= a[r * stride + n - 4 + r];
            for (j = 0; j < r; j++) corner[j] -= a[r * stride + n - 4 + j] * corner[r];
        }
        ok_subtract_rows(x, a, stride, corner, 4, n - 4);
    }
    for (; n > 0; n--) {
        x[n - 1] /= L[(n - 1) * stride + n - 1];
        for (j = 0; j < n - 1; j++) x[j] -= L[(n - 1) * stride + j] * x[n - 1];
    }
}

/* L^T X = B in place. */
OK_STATIC OK_CLONES void ok_solve_transposed(const double *L, ptrdiff_t stride, ptrdiff_t n, double *B,
                                             ptrdiff_t b_stride, ptrdiff_t m)
{
    ptrdiff_t i, j, s;
    if (m == 1 && b_stride == 1) {
        ok_solve_transposed_one(L, stride, n, B);
        return;
    }
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

/* Z = L^-1, of which the part above the diagonal is 0. */
OK_STATIC OK_CLONES void ok_invert_lower(const double *L, ptrdiff_t stride, ptrdiff_t n, double *Z, ptrdiff_t z_stride)
{
    ptrdiff_t i, j, s;
    for (i = 0; i < n; i++) {
        double *row = Z + i * z_stride;
        const double scale = 1.0 / L[i * stride + i];
        for (j = 0; j < n; j++) row[j] = 0.0;
        /* Rows of Z are as long as their number, so blocks of them have the length of their last. */
        for (s = 0; s < i; s += 32) {
            ptrdiff_t count = i - s < 32 ? i - s : 32;
            ok_subtract_rows(row, Z + s * z_stride, z_stride, L + i * stride + s, count, s + count);
        }
        for (j = 0; j < i; j++) row[j] *= scale;
        row[i] = scale;
    }
}

/* A row of L and its column of L L^T go: rows below move up by one, and rotations bring their entries from column p on,
 * of which there is one too many, back to a triangle.  c and s have room for n numbers.  Four rows take a rotation at a time,
 * since each has to wait for its own result. */
OK_STATIC OK_CLONES void ok_remove_row(double *L, ptrdiff_t stride, ptrdiff_t n, ptrdiff_t p, double *c, double *s)
{
    ptrdiff_t i, k, r, j;
    for (i = p + 1; i < n; i += 4) {
        const ptrdiff_t rows = n - i < 4 ? n - i : 4;
        double over[4] = {0};           /* what a row has beside its triangle */
        for (r = 0; r < rows; r++) {
            for (j = 0; j < p; j++) L[(i + r - 1) * stride + j] = L[(i + r) * stride + j];
            over[r] = L[(i + r) * stride + p];
        }
        if (rows == 4)
            for (k = p; k < i - 1; k++) {
                double *to = L + (i - 1) * stride + k;
                for (r = 0; r < 4; r++) {
                    const double a = over[r], b = to[(r + 1) * stride + 1];
                    to[r * stride] = c[k] * a + s[k] * b;
                    over[r] = c[k] * b - s[k] * a;
                }
            }
        for (r = 0; r < rows; r++) {
            double *to = L + (i + r - 1) * stride, *from = to + stride, a = over[r], length;
            for (k = rows == 4 ? i - 1 : p; k < i + r - 1; k++) {
                const double b = from[k + 1];
                to[k] = c[k] * a + s[k] * b;
                a = c[k] * b - s[k] * a;
            }
            length = sqrt(a * a + from[k + 1] * from[k + 1]);
            c[k] = a / length;
            s[k] = from[k + 1] / length;
            to[k] = length;
        }
    }
}

/* W <- c S + d I - W, for symmetric matrices of n rows. */
OK_STATIC OK_CLONES void ok_shrink_and_subtract(const double *OK_RESTRICT S, ptrdiff_t stride, ptrdiff_t n, double c, double d,
                                                double *OK_RESTRICT W, ptrdiff_t w_stride)
{
    ptrdiff_t i, j;
    for (i = 0; i < n; i++) {
        for (j = 0; j < n; j++) W[i * w_stride + j] = c * S[i * stride + j] - W[i * w_stride + j];
        W[i * w_stride + i] += d;
    }
}

#endif
