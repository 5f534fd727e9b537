/* Products of matrices of some hundred rows, where their structure (triangles, few rows, one side in use) saves more than NumPy's
 * speed is worth.
 *
 * Matrices are row-major, with so many numbers between the beginnings of two rows as their stride says.  A product is made of
 * tiles, four rows by OK_LANES columns, whose sums stay in registers.
 */
#ifndef ONLINEKERNELS_TILES_H
#define ONLINEKERNELS_TILES_H

#include "vecmath.h"

/* tile = some rows of A, four or one, times OK_LANES columns of B.  Entry (r, s) of A is A[r * a_row + s * a_column]. */
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

/* C -= A B for four rows or one, and at most OK_LANES columns of B, which are followed by so many that may be read. */
OK_INLINE void ok_subtract_tile(double *C, ptrdiff_t c_stride, ptrdiff_t rows, ptrdiff_t from, ptrdiff_t columns, const double *A,
                                ptrdiff_t a_row, ptrdiff_t a_column, ptrdiff_t inner, const double *B, ptrdiff_t b_stride)
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

OK_INLINE void ok_subtract_tiles(double *C, ptrdiff_t c_stride, ptrdiff_t rows, ptrdiff_t columns, const double *A, ptrdiff_t a_row,
                                 ptrdiff_t a_column, ptrdiff_t inner, const double *B, ptrdiff_t b_stride)
{
    ptrdiff_t j = 0, r, s, back;
    for (; j < columns && columns >= OK_LANES; j += OK_LANES) {
        back = j + OK_LANES <= columns ? 0 : j + OK_LANES - columns; /* the last tile begins where others have been */
        ok_subtract_tile(C + j - back, c_stride, rows, back, OK_LANES, A, a_row, a_column, inner, B + j - back, b_stride);
    }
    for (; j < columns; j++)
        for (r = 0; r < rows; r++)
            for (s = 0; s < inner; s++) C[r * c_stride + j] -= A[r * a_row + s * a_column] * B[s * b_stride + j];
}

/* C -= A B.  B may be other rows of C. */
OK_INLINE void ok_subtract_product(double *C, ptrdiff_t c_stride, ptrdiff_t rows, ptrdiff_t columns, const double *A, ptrdiff_t a_row,
                                   ptrdiff_t a_column, ptrdiff_t inner, const double *B, ptrdiff_t b_stride)
{
    ptrdiff_t r = 0;
    for (; r + 4 <= rows; r += 4)
        ok_subtract_tiles(C + r * c_stride, c_stride, 4, columns, A + r * a_row, a_row, a_column, inner, B, b_stride);
    for (; r < rows; r++)
        ok_subtract_tiles(C + r * c_stride, c_stride, 1, columns, A + r * a_row, a_row, a_column, inner, B, b_stride);
}

/* row -= c times another one, four of them at a time */
OK_INLINE void ok_subtract_rows(double *OK_RESTRICT row, const double *B, ptrdiff_t stride, const double *c, ptrdiff_t c_stride,
                                ptrdiff_t count, ptrdiff_t m)
{
    ptrdiff_t s = 0, j;
    for (; s + 4 <= count; s += 4) {
        const double *b0 = B + s * stride, *b1 = b0 + stride, *b2 = b1 + stride, *b3 = b2 + stride;
        const double c0 = c[s * c_stride], c1 = c[(s + 1) * c_stride], c2 = c[(s + 2) * c_stride], c3 = c[(s + 3) * c_stride];
        for (j = 0; j < m; j++) row[j] -= c0 * b0[j] + c1 * b1[j] + c2 * b2[j] + c3 * b3[j];
    }
    for (; s < count; s++)
        for (j = 0; j < m; j++) row[j] -= c[s * c_stride] * B[s * stride + j];
}

#endif
