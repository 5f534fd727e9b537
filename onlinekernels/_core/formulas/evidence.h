/* The evidence of a kernel, row after row of its covariance.
 *
 * Z is transposed, (d, n), so that a coordinate of all rows is contiguous. Of symmetric matrices there is the lower
 * triangle.
 */
#ifndef ONLINEKERNELS_EVIDENCE_H
#define ONLINEKERNELS_EVIDENCE_H

#include "triangles.h"

/* Row i up to its diagonal: kernel_j = a exp(-|z_i - z_j|^2 / 2) f_j and both_j = kernel_j + f_j for the fading
 * f_j = exp(-r |t_i - t_j| / 2). */
OK_STATIC OK_CLONES void ok_covariance_row(const double *Z, ptrdiff_t n, ptrdiff_t d, const double *times, ptrdiff_t i,
                                           double amplitude, double forgetting, double *OK_RESTRICT kernel,
                                           double *OK_RESTRICT both)
{
    ptrdiff_t j, k;
    for (j = 0; j <= i; j++) kernel[j] = 0.0;
    for (k = 0; k < d; k++) {
        const double *z = Z + k * n, own = z[i];
        for (j = 0; j <= i; j++) kernel[j] += (own - z[j]) * (own - z[j]);
    }
    for (j = 0; j <= i; j++) {
        const double fading = -0.5 * forgetting * fabs(times[i] - times[j]);
        kernel[j] = amplitude * ok_exp(fading - 0.5 * kernel[j]);
        both[j] = ok_exp(fading) + kernel[j];
    }
}

/* W = c Z^T Z - alpha alpha^T, where Z is lower triangular and alpha (n, outputs). */
OK_STATIC OK_CLONES void ok_half_square(const double *Z, ptrdiff_t n, double c, const double *alpha, ptrdiff_t outputs,
                                        double *OK_RESTRICT W)
{
    ptrdiff_t i, r, j, y;
    for (i = 0; i < n; i += 4) {
        const ptrdiff_t rows = n - i < 4 ? n - i : 4;
        for (r = i; r < i + rows; r++)
            for (j = 0; j < i + rows; j++) W[r * n + j] = 0.0;
        ok_subtract_product(W + i * n, n, rows, i + rows, Z + i * (n + 1), 1, n, n - i, Z + i * n, n);
        for (r = i; r < i + rows; r++) {
            for (j = 0; j <= r; j++) W[r * n + j] *= -c;
            for (y = 0; y < outputs; y++)
                for (j = 0; j <= r; j++) W[r * n + j] -= alpha[r * outputs + y] * alpha[j * outputs + y];
        }
    }
}

/* What row i of W, the derivative by the covariance, means for log scales (d), log amplitude and, two
 * behind that, log forgetting: added up. */
OK_STATIC OK_CLONES void ok_add_slopes(const double *Z, ptrdiff_t n, ptrdiff_t d, const double *times, ptrdiff_t i,
                                       double forgetting, const double *OK_RESTRICT kernel,
                                       const double *OK_RESTRICT both, double *OK_RESTRICT W,
                                       double *OK_RESTRICT slopes)
{
    double fading[OK_LANES] = {0}, all[OK_LANES] = {0};
    ptrdiff_t j, c;
    OK_OVER_LANES(i, fading[l] += W[k] * both[k] * fabs(times[i] - times[k]));
    slopes[d + 2] -= 0.5 * forgetting * ok_sum_of_lanes(fading);
    slopes[d] += 0.5 * W[i] * kernel[i];
    for (j = 0; j < i; j++) W[j] *= kernel[j];
    OK_OVER_LANES(i, all[l] += W[k]);
    slopes[d] += ok_sum_of_lanes(all);
    for (c = 0; c < d; c++) {
        const double *z = Z + c * n, own = z[i];
        double apart[OK_LANES] = {0};
        OK_OVER_LANES(i, apart[l] += W[k] * (own - z[k]) * (own - z[k]));
        slopes[c] -= ok_sum_of_lanes(apart);
    }
}

#endif
