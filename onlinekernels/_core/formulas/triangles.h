/* Triangular systems and products with the rows of a matrix, for matrices of some hundred rows.
 *
 * Matrices are row-major, with so many numbers between the beginnings of two rows as their stride says.  L is lower
 * triangular with a diagonal without zeros; what is above the diagonal is not read.
 */
#ifndef ONLINEKERNELS_TRIANGLES_H
#define ONLINEKERNELS_TRIANGLES_H

#include "tiles.h"

enum { OK_PANEL = 256 }; /* columns of L that are transposed at a time */

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
    OK_OVER_LANES(n, double v = x[k]; la[l] += a[k] * v; lb[l] += b[k] * v; lc[l] += c[k] * v; le[l] += e[k] * v);
    sums[0] = ok_sum_of_lanes(la);
    sums[1] = ok_sum_of_lanes(lb);
    sums[2] = ok_sum_of_lanes(lc);
    sums[3] = ok_sum_of_lanes(le);
}

OK_INLINE double ok_one_dot(const double *a, const double *x, ptrdiff_t n)
{
    double lane[OK_LANES] = {0};
    OK_OVER_LANES(n, lane[l] += a[k] * x[k]);
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

/* Rows of L from `i` on, at most OK_LANES of them, take what is known of the m rows of X: X_i -= X L_i^T. */
OK_INLINE void ok_subtract_known(const double *L, ptrdiff_t stride, ptrdiff_t i, ptrdiff_t width, double *X,
                                 ptrdiff_t x_stride, ptrdiff_t m)
{
    double transposed[OK_PANEL * OK_LANES];
    ptrdiff_t first, r, s, l;
    if (width < OK_LANES) memset(transposed, 0, sizeof transposed);
    for (first = 0; first < i; first += OK_PANEL) {
        const ptrdiff_t count = i - first < OK_PANEL ? i - first : OK_PANEL;
        for (l = 0; l < width; l++)
            for (s = 0; s < count; s++) transposed[s * OK_LANES + l] = L[(i + l) * stride + first + s];
        for (r = 0; r + 4 <= m; r += 4)
            ok_subtract_tile(X + r * x_stride + i, x_stride, 4, 0, width, X + r * x_stride + first, x_stride, 1, count,
                             transposed, OK_LANES);
        for (; r < m; r++)
            ok_subtract_tile(X + r * x_stride + i, x_stride, 1, 0, width, X + r * x_stride + first, x_stride, 1, count,
                             transposed, OK_LANES);
    }
}

/* L x = b in place, for OK_LANES vectors side by side. */
OK_INLINE void ok_solve_lanes(const double *L, ptrdiff_t stride, ptrdiff_t n, double *x)
{
    ptrdiff_t q, s, p;
    for (q = 0; q < n; q++) {
        const double scale = 1.0 / L[q * (stride + 1)];
        double sum[OK_LANES] = {0};
        for (s = 0; s < q; s++)
            for (p = 0; p < OK_LANES; p++) sum[p] += L[q * stride + s] * x[s * OK_LANES + p];
        for (p = 0; p < OK_LANES; p++) x[q * OK_LANES + p] = (x[q * OK_LANES + p] - sum[p]) * scale;
    }
}

/* Columns from i on, at most OK_LANES, of the m rows of X, from which all that is known has been subtracted. */
OK_INLINE void ok_solve_corner(const double *L, ptrdiff_t stride, ptrdiff_t i, ptrdiff_t width, double *X,
                               ptrdiff_t x_stride, ptrdiff_t m)
{
    double x[OK_LANES * OK_LANES] = {0};
    ptrdiff_t r, p, q;
    for (r = 0; r < m; r += OK_LANES) {
        const ptrdiff_t rows = m - r < OK_LANES ? m - r : OK_LANES;
        for (p = 0; p < rows; p++)
            for (q = 0; q < width; q++) x[q * OK_LANES + p] = X[(r + p) * x_stride + i + q];
        ok_solve_lanes(L + i * (stride + 1), stride, width, x);
        for (p = 0; p < rows; p++)
            for (q = 0; q < width; q++) X[(r + p) * x_stride + i + q] = x[q * OK_LANES + p];
    }
}

/* L x = b in place, for m rows of X: OK_LANES rows of L at a time, first what is known of x, then the corner. */
OK_STATIC OK_CLONES void ok_solve_rows(const double *L, ptrdiff_t stride, ptrdiff_t n, double *X, ptrdiff_t x_stride,
                                       ptrdiff_t m)
{
    ptrdiff_t i, r;
    if (m < 4) {
        for (r = 0; r < m; r++) ok_solve_one(L, stride, n, X + r * x_stride);
        return;
    }
    for (i = 0; i < n; i += OK_LANES) {
        const ptrdiff_t width = n - i < OK_LANES ? n - i : OK_LANES;
        ok_subtract_known(L, stride, i, width, X, x_stride, m);
        ok_solve_corner(L, stride, i, width, X, x_stride, m);
    }
}

/* The lower triangle of a symmetric matrix becomes its Cholesky factor; 0 unless it is positive definite. */
OK_STATIC OK_CLONES int ok_decompose(double *A, ptrdiff_t stride, ptrdiff_t n)
{
    ptrdiff_t i, r, s, j;
    for (i = 0; i < n; i += OK_LANES) {
        const ptrdiff_t width = n - i < OK_LANES ? n - i : OK_LANES;
        double *corner = A + i * (stride + 1);
        ok_subtract_known(A, stride, i, width, A + i * stride, stride, n - i);
        for (r = 0; r < width; r++) {
            double *row = corner + r * stride;
            for (s = 0; s < r; s++) {
                double rest = row[s];
                for (j = 0; j < s; j++) rest -= row[j] * corner[s * stride + j];
                row[s] = rest / corner[s * (stride + 1)];
            }
            for (j = 0; j < r; j++) row[r] -= row[j] * row[j];
            if (!(row[r] > 0.0)) return 0;
            row[r] = sqrt(row[r]);
        }
        ok_solve_corner(A, stride, i, width, A + (i + width) * stride, stride, n - i - width);
    }
    return 1;
}

/* L X = B in place, for a matrix B of n rows of length m. */
OK_STATIC OK_CLONES void ok_solve_block(const double *L, ptrdiff_t stride, ptrdiff_t n, double *B, ptrdiff_t b_stride,
                                        ptrdiff_t m)
{
    ptrdiff_t i, r, j;
    for (i = 0; i < n; i += 4) {
        const ptrdiff_t rows = n - i < 4 ? n - i : 4;
        ok_subtract_product(B + i * b_stride, b_stride, rows, m, L + i * stride, stride, 1, i, B, b_stride);
        for (r = i; r < i + rows; r++) {
            double *row = B + r * b_stride;
            const double scale = 1.0 / L[r * (stride + 1)];
            ok_subtract_rows(row, B + i * b_stride, b_stride, L + r * stride + i, 1, r - i, m);
            for (j = 0; j < m; j++) row[j] *= scale;
        }
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
        ok_subtract_rows(x, a, stride, corner, 1, 4, n - 4);
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
    ptrdiff_t i, r, j;
    for (i = 0; i < n; i += 4) {
        const ptrdiff_t rows = n - i < 4 ? n - i : 4;
        for (r = i; r < i + rows; r++)
            for (j = 0; j < n; j++) Z[r * z_stride + j] = 0.0;
        /* Rows of Z are as long as their number, so columns from j on have nothing before row j. */
        for (j = 0; j < i; j += 2 * OK_LANES)
            ok_subtract_product(Z + i * z_stride + j, z_stride, rows, i - j < 2 * OK_LANES ? i - j : 2 * OK_LANES,
                                L + i * stride + j, stride, 1, i - j, Z + j * z_stride + j, z_stride);
        for (r = i; r < i + rows; r++) {
            double *row = Z + r * z_stride;
            const double scale = 1.0 / L[r * (stride + 1)];
            ok_subtract_rows(row, Z + i * z_stride, z_stride, L + r * stride + i, 1, r - i, r);
            for (j = 0; j < r; j++) row[j] *= scale;
            row[r] = scale;
        }
    }
}

/* The squares of the columns of L^-1 = Z: the diagonal of (L L^T)^-1. */
OK_STATIC OK_CLONES void ok_column_squares(const double *Z, ptrdiff_t n, double *OK_RESTRICT out)
{
    ptrdiff_t i, j;
    for (j = 0; j < n; j++) out[j] = 0.0;
    for (i = 0; i < n; i++)
        for (j = 0; j <= i; j++) out[j] += Z[i * n + j] * Z[i * n + j];
}

/* A row of L and its column of L L^T go: rows below move up by one, and rotations bring their entries from column p on,
 * of which there is one too many, back to a triangle. c and s have room for n numbers. Four rows take a rotation at a
 * time, since each has to wait for its own result. */
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

/* The next row of a pivoted factor: V_k = (R_b - sum_(r<k) V_rb V_r) / root, where row b of R is given. */
OK_STATIC OK_CLONES void ok_eliminate(const double *OK_RESTRICT R, ptrdiff_t b, double root, double *V,
                                      ptrdiff_t stride, ptrdiff_t k, ptrdiff_t n)
{
    double *row = V + k * stride;
    ptrdiff_t j;
    for (j = 0; j < n; j++) row[j] = R[j];
    ok_subtract_rows(row, V, stride, V + b, stride, k, n);
    for (j = 0; j < n; j++) row[j] /= root;
}

/* Column r of a Cholesky factor whose columns are the rows of T, up to row n; it holds that of the matrix, and root is
 * its diagonal. What it explains of later rows is added to their squares. */
OK_STATIC OK_CLONES void ok_next_column(double *T, ptrdiff_t stride, ptrdiff_t r, ptrdiff_t n, double root,
                                        double *OK_RESTRICT squares)
{
    double *row = T + r * stride;
    const double scale = 1.0 / root;
    ptrdiff_t j;
    ok_subtract_rows(row + r + 1, T + r + 1, stride, T + r, stride, r, n - r - 1);
    for (j = r + 1; j < n; j++) {
        const double v = row[j] *= scale;
        squares[j] += v * v;
    }
}

/* Which has the least birthday of those with a loss up to a limit; -1 for none. */
OK_STATIC OK_CLONES ptrdiff_t ok_oldest(const double *loss, double limit, const long long *birthday, ptrdiff_t n)
{
    long long least = INT64_MAX;
    ptrdiff_t i;
    for (i = 0; i < n; i++) {
        const long long own = loss[i] <= limit ? birthday[i] : INT64_MAX;
        least = own < least ? own : least;
    }
    if (least == INT64_MAX) return -1;
    for (i = 0; birthday[i] != least || !(loss[i] <= limit); i++) {}
    return i;
}

/* The largest of n numbers that exceed a share of others; 0 if none does. */
OK_STATIC OK_CLONES double ok_largest_above(const double *x, double share, const double *other, ptrdiff_t n)
{
    double lane[OK_LANES] = {0}, largest = 0.0;
    ptrdiff_t i, l;
    for (i = 0; i + OK_LANES <= n; i += OK_LANES)
        for (l = 0; l < OK_LANES; l++) {
            const double v = x[i + l] > share * other[i + l] ? x[i + l] : 0.0;
            lane[l] = v > lane[l] ? v : lane[l];
        }
    for (; i < n; i++) largest = x[i] > share * other[i] && x[i] > largest ? x[i] : largest;
    for (l = 0; l < OK_LANES; l++) largest = lane[l] > largest ? lane[l] : largest;
    return largest;
}

/* Points of a kernel matrix K leave, k of them so far; Z = L^-1, Q = K^-1 = Z^T Z of all n. Now b leaves: row k of V,
 * the next of a pivoted factor of Q, and what is left of the diagonal of Q (not less than `least`) and of the rows of
 * alpha. */
OK_STATIC OK_CLONES void ok_leave(const double *Z, ptrdiff_t n, ptrdiff_t b, double *V, ptrdiff_t k,
                                  double *OK_RESTRICT diagonal, const double *OK_RESTRICT least, double *alpha,
                                  ptrdiff_t labels)
{
    double *OK_RESTRICT row = V + k * n;
    const double root = sqrt(diagonal[b]);
    ptrdiff_t s, j, y;
    for (j = 0; j < n; j++) row[j] = 0.0;
    for (s = b; s < n; s += OK_LANES) { /* rows of Z are as long as their number */
        const ptrdiff_t count = n - s < OK_LANES ? n - s : OK_LANES;
        ok_subtract_rows(row, Z + s * n, n, Z + s * n + b, n, count, s + count);
    }
    for (j = 0; j < n; j++) row[j] = -row[j];
    ok_subtract_rows(row, V, n, V + b, n, k, n);
    for (j = 0; j < n; j++) {
        const double v = row[j] /= root, left = diagonal[j] - v * v;
        diagonal[j] = left < least[j] ? least[j] : left;
    }
    for (y = 0; y < labels; y++) {
        double *OK_RESTRICT a = alpha + y * n;
        const double c = a[b] / root;
        for (j = 0; j < n; j++) a[j] -= c * row[j];
    }
}

/* loss_i = sum_y alpha_yi^2 / diagonal_i */
OK_STATIC OK_CLONES void ok_losses(const double *alpha, ptrdiff_t labels, ptrdiff_t n,
                                   const double *OK_RESTRICT diagonal, double *OK_RESTRICT loss)
{
    ptrdiff_t y, i;
    for (i = 0; i < n; i++) loss[i] = 0.0;
    for (y = 0; y < labels; y++)
        for (i = 0; i < n; i++) loss[i] += alpha[y * n + i] * alpha[y * n + i];
    for (i = 0; i < n; i++) loss[i] /= diagonal[i];
}

/* W <- c S + d I - W, for symmetric matrices of n rows; of W the lower triangle is read. */
OK_STATIC OK_CLONES void ok_shrink_and_subtract(const double *OK_RESTRICT S, ptrdiff_t stride, ptrdiff_t n, double c,
                                                double d, double *OK_RESTRICT W, ptrdiff_t w_stride)
{
    ptrdiff_t i, j;
    for (i = 0; i < n; i++) {
        for (j = 0; j <= i; j++) W[i * w_stride + j] = c * S[i * stride + j] - W[i * w_stride + j];
        W[i * w_stride + i] += d;
    }
    for (i = 0; i < n; i++)
        for (j = i + 1; j < n; j++) W[i * w_stride + j] = W[j * w_stride + i];
}

#endif
