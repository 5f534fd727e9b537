/* Products of matrices of some hundred rows, which cannot fail, and need no interpreter.
 *
 * Matrices are row-major, with so many numbers between the beginnings of two rows as their stride says. A product is
 * made of tiles, four rows by OK_LANES columns, whose sums stay in registers.
 */
#ifndef ONLINEKERNELS_TILES_H
#define ONLINEKERNELS_TILES_H

#include "vecmath.h"

/* tile = some rows of A, four or one, times OK_LANES columns of B. Entry (r, s) of A is A[r * a_row + s * a_column]. */
OK_INLINE void ok_tile(ptrdiff_t rows, const double *A, ptrdiff_t a_row, ptrdiff_t a_column, ptrdiff_t inner,
                       const double *OK_RESTRICT B, ptrdiff_t b_stride, double *OK_RESTRICT tile)
{
    double s0[OK_LANES] = {0}, s1[OK_LANES] = {0}, s2[OK_LANES] = {0}, s3[OK_LANES] = {0};
    ptrdiff_t s, l;
    if (rows == 4) {
        for (s = 0; s < inner; s++) {
            const double *a = A + s * a_column, *b = B + s * b_stride;
            const double c0 = a[0], c1 = a[a_row], c2 = a[2 * a_row], c3 = a[3 * a_row];
            for (l = 0; l < OK_LANES; l++) {
                const double v = b[l];
                s0[l] += c0 * v;
                s1[l] += c1 * v;
                s2[l] += c2 * v;
                s3[l] += c3 * v;
            }
        }
        for (l = 0; l < OK_LANES; l++) {
            tile[l] = s0[l];
            tile[OK_LANES + l] = s1[l];
            tile[2 * OK_LANES + l] = s2[l];
            tile[3 * OK_LANES + l] = s3[l];
        }
    } else {
        for (s = 0; s < inner; s++) {
            const double c = A[s * a_column], *b = B + s * b_stride;
            for (l = 0; l < OK_LANES; l++) s0[l] += c * b[l];
        }
        for (l = 0; l < OK_LANES; l++) tile[l] = s0[l];
    }
}

/* C = A B, row r up to column `upto` + r at least. Rows of B should have room for OK_LANES numbers. */
OK_STATIC OK_CLONES void ok_product(double *C, ptrdiff_t c_stride, ptrdiff_t rows, ptrdiff_t columns, const double *A,
                                    ptrdiff_t a_row, ptrdiff_t a_column, ptrdiff_t inner, const double *B,
                                    ptrdiff_t b_stride, ptrdiff_t upto)
{
    ptrdiff_t r, j, p, l, s, count;
    for (r = 0; r < rows; r += count) {
        const double *a = A + r * a_row;
        double *c = C + r * c_stride, tile[4 * OK_LANES];
        ptrdiff_t width = upto + r + 4 < columns ? upto + r + 4 : columns;
        count = rows - r < 4 ? 1 : 4;
        if (width < OK_LANES && OK_LANES <= columns) width = OK_LANES;
        if (width < OK_LANES && b_stride < OK_LANES) {
            for (p = 0; p < count; p++)
                for (j = 0; j < width; j++) {
                    double sum = 0.0;
                    for (s = 0; s < inner; s++) sum += a[p * a_row + s * a_column] * B[s * b_stride + j];
                    c[p * c_stride + j] = sum;
                }
            continue;
        }
        for (j = 0; j < width; j += OK_LANES) {
            const ptrdiff_t first = j + OK_LANES <= width || width < OK_LANES ? j : width - OK_LANES;
            const ptrdiff_t some = width < OK_LANES ? width : OK_LANES;
            ok_tile(count, a, a_row, a_column, inner, B + first, b_stride, tile);
            for (p = 0; p < count; p++)
                if (some == OK_LANES)
                    for (l = 0; l < OK_LANES; l++) c[p * c_stride + first + l] = tile[p * OK_LANES + l];
                else
                    for (l = 0; l < some; l++) c[p * c_stride + l] = tile[p * OK_LANES + l];
        }
    }
}

/* Rows of X become the columns of T. */
OK_STATIC void ok_transpose(const double *X, ptrdiff_t stride, ptrdiff_t rows, ptrdiff_t columns, double *OK_RESTRICT T,
                       ptrdiff_t t_stride)
{
    ptrdiff_t i, j;
    for (j = 0; j < columns; j++)
        for (i = 0; i < rows; i++) T[j * t_stride + i] = X[i * stride + j];
}

/* C -= A B for four rows or one, and at most OK_LANES columns of B, which are followed by so many that may be read. */
OK_INLINE void ok_subtract_tile(double *C, ptrdiff_t c_stride, ptrdiff_t rows, ptrdiff_t from, ptrdiff_t columns,
                                const double *A, ptrdiff_t a_row, ptrdiff_t a_column, ptrdiff_t inner, const double *B,
                                ptrdiff_t b_stride)
{
    double tile[4 * OK_LANES];
    ptrdiff_t r, l;
    ok_tile(rows, A, a_row, a_column, inner, B, b_stride, tile);
    if (columns - from == OK_LANES) {
        for (r = 0; r < rows; r++)
            for (l = 0; l < OK_LANES; l++) C[r * c_stride + l] -= tile[r * OK_LANES + l];
    } else
        for (r = 0; r < rows; r++)
            for (l = from; l < columns; l++) C[r * c_stride + l] -= tile[r * OK_LANES + l];
}

OK_INLINE void ok_subtract_tiles(double *C, ptrdiff_t c_stride, ptrdiff_t rows, ptrdiff_t columns, const double *A,
                                 ptrdiff_t a_row, ptrdiff_t a_column, ptrdiff_t inner, const double *B,
                                 ptrdiff_t b_stride)
{
    ptrdiff_t j = 0, r, s, back;
    for (; j < columns && columns >= OK_LANES; j += OK_LANES) {
        back = j + OK_LANES <= columns ? 0 : j + OK_LANES - columns; /* the last tile begins where others have been */
        ok_subtract_tile(C + j - back, c_stride, rows, back, OK_LANES, A, a_row, a_column, inner, B + j - back,
                         b_stride);
    }
    for (; j < columns; j++)
        for (r = 0; r < rows; r++)
            for (s = 0; s < inner; s++) C[r * c_stride + j] -= A[r * a_row + s * a_column] * B[s * b_stride + j];
}

/* C -= A B.  B may be other rows of C. */
OK_INLINE void ok_subtract_product(double *C, ptrdiff_t c_stride, ptrdiff_t rows, ptrdiff_t columns, const double *A,
                                   ptrdiff_t a_row, ptrdiff_t a_column, ptrdiff_t inner, const double *B,
                                   ptrdiff_t b_stride)
{
    ptrdiff_t r = 0;
    for (; r + 4 <= rows; r += 4)
        ok_subtract_tiles(C + r * c_stride, c_stride, 4, columns, A + r * a_row, a_row, a_column, inner, B, b_stride);
    for (; r < rows; r++)
        ok_subtract_tiles(C + r * c_stride, c_stride, 1, columns, A + r * a_row, a_row, a_column, inner, B, b_stride);
}

/* row -= c times another one, four of them at a time */
OK_INLINE void ok_subtract_rows(double *OK_RESTRICT row, const double *B, ptrdiff_t stride, const double *c,
                                ptrdiff_t c_stride, ptrdiff_t count, ptrdiff_t m)
{
    ptrdiff_t s = 0, j;
    for (; s + 4 <= count; s += 4) {
        const double *b0 = B + s * stride, *b1 = b0 + stride, *b2 = b1 + stride, *b3 = b2 + stride;
        const double *four = c + s * c_stride;
        const double c0 = four[0], c1 = four[c_stride], c2 = four[2 * c_stride], c3 = four[3 * c_stride];
        for (j = 0; j < m; j++) row[j] -= c0 * b0[j] + c1 * b1[j] + c2 * b2[j] + c3 * b3[j];
    }
    for (; s < count; s++)
        for (j = 0; j < m; j++) row[j] -= c[s * c_stride] * B[s * stride + j];
}

/* Inner products of four rows with four rows of d numbers; sixteen sums of OK_WIDE numbers stay in registers. */
#define OK_WIDE 8

OK_INLINE void ok_inner_tile(const double *const *a, const double *const *b, ptrdiff_t d, double *OK_RESTRICT tile)
{
    double s[16][OK_WIDE];
    ptrdiff_t j, k, l, half;
    memset(s, 0, sizeof s);
    for (j = 0; j + OK_WIDE <= d; j += OK_WIDE)
        for (l = 0; l < OK_WIDE; l++) {
            const double a0 = a[0][j + l], a1 = a[1][j + l], a2 = a[2][j + l], a3 = a[3][j + l];
            const double b0 = b[0][j + l], b1 = b[1][j + l], b2 = b[2][j + l], b3 = b[3][j + l];
            s[0][l] += a0 * b0, s[1][l] += a0 * b1, s[2][l] += a0 * b2, s[3][l] += a0 * b3;
            s[4][l] += a1 * b0, s[5][l] += a1 * b1, s[6][l] += a1 * b2, s[7][l] += a1 * b3;
            s[8][l] += a2 * b0, s[9][l] += a2 * b1, s[10][l] += a2 * b2, s[11][l] += a2 * b3;
            s[12][l] += a3 * b0, s[13][l] += a3 * b1, s[14][l] += a3 * b2, s[15][l] += a3 * b3;
        }
    for (k = 0; k < 16; k++) {
        for (half = OK_WIDE / 2; half; half /= 2)
            for (l = 0; l < half; l++) s[k][l] += s[k][l + half];
        tile[k] = s[k][0];
        for (l = j; l < d; l++) tile[k] += a[k / 4][l] * b[k % 4][l];
    }
}

/* G = X X^T for m rows of d numbers: tiles on and above the diagonal, and their mirror images. */
OK_STATIC OK_CLONES void ok_gram(const double *X, ptrdiff_t m, ptrdiff_t d, double *OK_RESTRICT G)
{
    const double *a[4], *b[4];
    double tile[16];
    ptrdiff_t i, j, r, c;
    for (i = 0; i < m; i += 4)
        for (j = i; j < m; j += 4) {
            for (r = 0; r < 4; r++) { /* the last row stands in for those that are missing */
                a[r] = X + (i + r < m ? i + r : m - 1) * d;
                b[r] = X + (j + r < m ? j + r : m - 1) * d;
            }
            ok_inner_tile(a, b, d, tile);
            for (r = 0; r < 4 && i + r < m; r++)
                for (c = 0; c < 4 && j + c < m; c++) G[(i + r) * m + j + c] = G[(j + c) * m + i + r] = tile[4 * r + c];
        }
}

/* Inner products of m rows of X with n rows of S, of d numbers. Four of S stay in the fast cache while X passes by. */
OK_STATIC OK_CLONES void ok_inner_block(const double *X, ptrdiff_t m, const double *S, ptrdiff_t n, ptrdiff_t d,
                                        double *OK_RESTRICT out, ptrdiff_t stride)
{
    const double *a[4], *b[4];
    double tile[16];
    ptrdiff_t i, j, r, c;
    for (j = 0; j < n; j += 4) {
        for (c = 0; c < 4; c++) b[c] = S + (j + c < n ? j + c : n - 1) * d;
        for (i = 0; i < m; i += 4) {
            for (r = 0; r < 4; r++) a[r] = X + (i + r < m ? i + r : m - 1) * d;
            ok_inner_tile(a, b, d, tile);
            for (r = 0; r < 4 && i + r < m; r++)
                for (c = 0; c < 4 && j + c < n; c++) out[(i + r) * stride + j + c] = tile[4 * r + c];
        }
    }
}

/* Squared distances, never negative, of m rows to n points with these squares, whose features are the rows of T. */
OK_STATIC OK_CLONES void ok_distance_block(const double *X, const double *own, ptrdiff_t m, const double *T,
                                           ptrdiff_t t_stride, const double *squares, ptrdiff_t n, ptrdiff_t d,
                                           double *OK_RESTRICT out, ptrdiff_t stride)
{
    double tile[4 * OK_LANES];
    ptrdiff_t r, j, p, l, s, count;
    for (r = 0; r < m; r += count) {
        count = m - r < 4 ? 1 : 4;
        for (j = 0; j < n && OK_LANES <= n; j += OK_LANES) {
            const ptrdiff_t first = j + OK_LANES <= n ? j : n - OK_LANES;
            ok_tile(count, X + r * d, d, 1, d, T + first, t_stride, tile);
            for (p = 0; p < count; p++)
                for (l = 0; l < OK_LANES; l++) {
                    const double distance = squares[first + l] + own[r + p] - 2.0 * tile[p * OK_LANES + l];
                    out[(r + p) * stride + first + l] = distance < 0.0 ? 0.0 : distance;
                }
        }
        for (p = 0; p < count && n < OK_LANES; p++)
            for (j = 0; j < n; j++) {
                double inner = 0.0, distance;
                for (s = 0; s < d; s++) inner += X[(r + p) * d + s] * T[s * t_stride + j];
                distance = squares[j] + own[r + p] - 2.0 * inner;
                out[(r + p) * stride + j] = distance < 0.0 ? 0.0 : distance;
            }
    }
}

/* Whether inner products take less time so than by a BLAS, which has more to prepare: with AVX-512, many features. */
OK_STATIC int ok_gram_pays(ptrdiff_t d)
{
#ifdef OK_HAS_CLONES
    return d >= 64 && __builtin_cpu_supports("avx512f");
#else
    (void)d; /* a BLAS has vectors of its own */
    return 0;
#endif
}

#endif
