"""Running means and variances of numbers, by which features and targets are scaled."""
from libc.math cimport fabs, fmax, fmin, sqrt

cdef enum:
    MANY = 16                   # times its weight that a number must have beside it to be called far off


cdef inline void advance_moments(double x, double weight, double count, double memory, double* mean,
                                 double* square) noexcept nogil:
    """Welford's recursion: one more number, whose weight `count` knows already; the past fades."""
    cdef double delta = x - mean[0]
    mean[0] += weight * delta / count
    square[0] = memory * square[0] + weight * delta * (x - mean[0])


cdef inline bint knows_values(double count, double memory) noexcept nogil:
    """Whether there were three rows: of two values, one has come again."""
    return count > 1.0 + memory


cdef inline bint is_change(double change, double size) noexcept nogil:
    """Whether values of this size that differ by so much differ by more than rounding (1e-14); not if NaN."""
    return fabs(change) > 1e-14 * size and change * change > 0.0


cdef inline double divisor(double mean, double variance, double change) noexcept nogil:
    """What a number is divided by after it is centred: its deviation; 1 while it is constant.

    change: what lies between the only two values of a feature; 0 or NaN for others. Two values of a scaled number are
    sqrt(2) apart, in the root mean square.
    """
    cdef double deviation = sqrt(variance) if variance > 0.0 else 0.0
    cdef double size = mean if mean > 0.0 else -mean
    if is_change(change, size):
        return fabs(change) / sqrt(2.0)
    return deviation if deviation > 1e-14 * size and deviation > 0.0 else 1.0


cdef inline double not_farther(double x, double mean, double variance, double farthest) noexcept nogil:
    """x, or where that is farther from the mean than so many deviations, the number that is not."""
    cdef double most = farthest * divisor(mean, variance, 0.0)
    return fmin(fmax(x, mean - most), mean + most) if variance > 0.0 else x
