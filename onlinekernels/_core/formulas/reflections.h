/* Points leave a Cholesky factor: reflections that bring what is left back to a triangle.
 *
 * Rows of L that stay, [L_k L_g] with the columns of those that leave behind the others, are a triangle and g columns
 * more. Column after column, a reflection of coordinate a and the g behind takes all of row a to its diagonal: L_k'
 * L_k'^T is L_k L_k^T + L_g L_g^T. Whatever else is in these coordinates takes the same reflections I - v v^T, |v|^2 =
 * 2. They are applied OK_REFLECTED at a time: the product of those with the columns Y of v is I - Y N^-T Y^T, where N
 * is the lower triangle of Y^T Y with 1 on its diagonal, and since each v has one coordinate of its own beside the g, Y
 * is a diagonal over a matrix of g rows.
 */
#ifndef ONLINEKERNELS_REFLECTIONS_H
#define ONLINEKERNELS_REFLECTIONS_H

#include "triangles.h"

enum { OK_REFLECTED = 8 }; /* that are applied at a time */

typedef struct {
    ptrdiff_t n;    /* coordinates that stay, with a reflection for each, */
    ptrdiff_t more; /* and coordinates that leave */
    double *heads;  /* (n): v at its own coordinate */
    double *tails;  /* (n, more): -v at those that leave */
    double *meet;   /* (n, OK_REFLECTED): rows of N */
    double *work;   /* (OK_REFLECTED, columns) */
} ok_reflections;

/* Numbers that n reflections need beside `work`. */
OK_INLINE ptrdiff_t ok_reflections_size(ptrdiff_t n, ptrdiff_t more) { return n * (1 + more + OK_REFLECTED); }

/* Apply those from a on, at most OK_REFLECTED, to columns of X: a row for each coordinate, first those that stay. */
OK_STATIC OK_CLONES void ok_reflect_panel(const ok_reflections *h, ptrdiff_t a, double *X, ptrdiff_t stride,
                                          ptrdiff_t columns)
{
    const ptrdiff_t count = h->n - a < OK_REFLECTED ? h->n - a : OK_REFLECTED, more = h->more;
    const double *tails = h->tails + a * more;
    double *own = X + a * stride, *others = X + h->n * stride, *G = h->work;
    ptrdiff_t r, j;
    for (r = 0; r < count; r++)
        for (j = 0; j < columns; j++) G[r * columns + j] = h->heads[a + r] * own[r * stride + j];
    ok_subtract_product(G, columns, count, columns, tails, more, 1, more, others, stride);
    ok_solve_block(h->meet + a * OK_REFLECTED, OK_REFLECTED, count, G, columns, columns);
    for (r = 0; r < count; r++)
        for (j = 0; j < columns; j++) {
            const double g = -G[r * columns + j];
            G[r * columns + j] = g;
            own[r * stride + j] += h->heads[a + r] * g;
        }
    ok_subtract_product(others, stride, more, columns, tails, 1, more, count, G, columns);
}

/* Apply all of them. */
OK_STATIC void ok_reflect(const ok_reflections *h, double *X, ptrdiff_t stride, ptrdiff_t columns)
{
    ptrdiff_t a;
    for (a = 0; a < h->n; a += OK_REFLECTED) ok_reflect_panel(h, a, X, stride, columns);
}

/* The reflection of coordinate a, applied to `width` columns of X from the panel's first on. */
OK_STATIC OK_CLONES void ok_next_reflection(const ok_reflections *h, ptrdiff_t a, ptrdiff_t panel, double *X,
                                            ptrdiff_t stride)
{
    const ptrdiff_t more = h->more, width = h->n - panel < OK_REFLECTED ? h->n - panel : OK_REFLECTED;
    double *own = X + a * stride + panel, *others = X + h->n * stride + panel, *tail = h->tails + a * more;
    double sums[OK_REFLECTED], head = own[a - panel], square = 0.0, length, scale;
    ptrdiff_t g, j;
    for (g = 0; g < more; g++) square += others[g * stride + a - panel] * others[g * stride + a - panel];
    if (square < 1e-40 * head * head) square = 0.0; /* far below rounding, and perhaps too small to be divided by */
    length = sqrt(head * head + square);
    head = square > 0.0 ? -square / (head + length) : 0.0; /* head - length */
    scale = square > 0.0 ? sqrt(2.0 / (head * head + square)) : 0.0;
    h->heads[a] = head *= scale;
    for (g = 0; g < more; g++) tail[g] = -scale * others[g * stride + a - panel];
    for (j = 0; j < width; j++) sums[j] = head * own[j];
    for (g = 0; g < more; g++)
        for (j = 0; j < width; j++) sums[j] -= tail[g] * others[g * stride + j];
    for (j = 0; j < width; j++) own[j] -= head * sums[j];
    for (g = 0; g < more; g++) {
        for (j = 0; j < width; j++) others[g * stride + j] += tail[g] * sums[j];
        others[g * stride + a - panel] = 0.0;
    }
    own[a - panel] = length;
    for (j = panel; j < a; j++) h->meet[a * OK_REFLECTED + j - panel] = ok_one_dot(tail, h->tails + j * more, more);
    h->meet[a * OK_REFLECTED + a - panel] = 1.0;
}

/* Find and apply the reflections that make the first n columns of X, the rows of L that stay, a triangle. */
OK_STATIC void ok_find_reflections(const ok_reflections *h, double *X, ptrdiff_t stride, ptrdiff_t columns)
{
    ptrdiff_t panel, a, end;
    for (panel = 0; panel < h->n; panel += OK_REFLECTED) {
        end = h->n - panel < OK_REFLECTED ? h->n : panel + OK_REFLECTED;
        for (a = panel; a < end; a++) ok_next_reflection(h, a, panel, X, stride);
        ok_reflect_panel(h, panel, X + end, stride, columns - end);
    }
}

#endif
