"""Vector-valued losses and their implicit steps, for outputs that all have a coefficient of their own."""
from libc.math cimport exp, fabs, log
from libc.stdlib cimport qsort
from onlinekernels._core.formulas.losses cimport Bracket, bracket_next, bracket_start


cdef inline void softmax(const double* scores, Py_ssize_t n, double* p) noexcept nogil:
    """p = exp(scores) / sum exp(scores), V (22), without overflow."""
    cdef Py_ssize_t i
    cdef double largest = scores[0], total = 0.0
    for i in range(1, n):
        if scores[i] > largest:
            largest = scores[i]
    for i in range(n):
        p[i] = exp(scores[i] - largest)
        total += p[i]
    for i in range(n):
        p[i] /= total


cdef inline void softmax_hessian_times(const double* p, const double* v, Py_ssize_t n, double weight,
                                       double* out) noexcept nogil:
    """out = weight (diag(p) - p p') v, V (38), (44)."""
    cdef Py_ssize_t i
    cdef double mean = 0.0
    for i in range(n):
        mean += p[i] * v[i]
    for i in range(n):
        out[i] = weight * p[i] * (v[i] - mean)


cdef inline void mistake_gradient(const double* scores, Py_ssize_t y, Py_ssize_t n, double* out) noexcept nogil:
    """Uniform ultraconservative updates (Crammer and Singer 2003): -1 at y, 1 / n at n labels that do as well."""
    cdef Py_ssize_t l, count = 0
    for l in range(n):
        out[l] = 0.0
        if l != y and scores[l] >= scores[y]:
            count += 1
    if count == 0:
        return
    out[y] = -1.0
    for l in range(n):
        if l != y and scores[l] >= scores[y]:
            out[l] = 1.0 / count


cdef inline double probability(double level, double size) noexcept nogil:
    """p in (0, 1] with log p + size p = level; Newton in log p, whose residual is convex and rising."""
    cdef double u = level if level < 0.0 else 0.0, step
    cdef int i
    if level > size:                    # p would exceed 1
        return 1.0
    if level > 0.0 and size > 0.0:
        u = log(level / size) if level < size else 0.0
    for i in range(60):  # no-cython-lint
        step = (u + size * exp(u) - level) / (1.0 + size * exp(u))
        u -= step
        if fabs(step) <= 1e-16 * (1.0 + fabs(u)):
            break
    return exp(u)


cdef inline void softmax_step(const double* scores, Py_ssize_t y, Py_ssize_t n, double k, double size,
                              double* level, double* alpha) noexcept nogil:
    """Implicit step of the multiclass logistic loss, delta kernel: alpha = size (e_y - p(scores + k alpha)).

    With A = log sum exp of the new scores, each p_l solves log p + k size p = level_l - A, where level = scores + k
    size e_y; sum p falls as A rises, so A is a bracketed root.
    """
    cdef Py_ssize_t i
    cdef Bracket bracket
    cdef double A, total, slope, p, largest, grip = k * size
    for i in range(n):
        level[i] = scores[i] + (grip if i == y else 0.0)
    largest = level[0]
    for i in range(1, n):
        if level[i] > largest:
            largest = level[i]
    total = 0.0
    for i in range(n):
        total += exp(level[i] - largest)
    A = largest + log(total)            # p_l <= exp(level - A): the sum is at most 1 there,
    bracket_start(&bracket, A - grip, A)        # and p_l >= exp(level - A - grip): at least 1 there
    while not bracket.done:
        total = 0.0
        slope = 0.0
        for i in range(n):
            p = probability(level[i] - A, grip)
            total += p
            slope += p / (1.0 + grip * p)
        A = bracket_next(&bracket, A, 1.0 - total, slope)
    for i in range(n):
        alpha[i] = -size * probability(level[i] - A, grip)
    total = 0.0
    for i in range(n):
        if i != y:
            total += alpha[i]
    alpha[y] = -total                   # the sum over labels is 0


cdef inline void softmax_grip_times(const double* p, const double* u, Py_ssize_t n, double k, double size,
                                    double* out) noexcept nogil:
    """out = Q (1 + k Q)^-1 u with Q = size (diag(p) - p p'), p the probabilities after a `softmax_step`. As in one
    dimension: if what the step starts from is larger by u at x, the new coefficients are smaller by `out`."""
    cdef Py_ssize_t i
    cdef double above = 0.0, below = 0.0
    for i in range(n):
        above += p[i] * u[i] / (1.0 + k * size * p[i])
        below += p[i] / (1.0 + k * size * p[i])
    for i in range(n):                  # (1 + k Q)^-1 u by Sherman and Morrison
        out[i] = (u[i] + k * size * p[i] * above / below) / (1.0 + k * size * p[i])
    softmax_hessian_times(p, out, n, size, out)


cdef inline int falling(const void* a, const void* b) noexcept nogil:
    cdef double x = (<const double*> a)[0], y = (<const double*> b)[0]
    return (x < y) - (x > y)


cdef inline double water_level(const double* sorted, Py_ssize_t n, double base, double spill) noexcept nogil:
    """T with spill T + base = sum_l max(0, sorted_l - T): the sum falls, so each prefix is tried."""
    cdef Py_ssize_t m
    cdef double total = 0.0, T = 0.0
    for m in range(1, n + 1):
        total += sorted[m - 1]
        T = (total - base) / (m + spill)
        if m == n or sorted[m] <= T:
            break
    return T


cdef inline void hinge_step(const double* violation, Py_ssize_t y, Py_ssize_t n, double k, double size, double dust,
                            double* sorted, double* alpha) noexcept nogil:
    """Exact implicit step of a multiclass hinge with the delta kernel: the arg-min of I (8) over all labels.

    violation_l = Delta(y, l) + score_l - score_y.  The minimizer takes theta_l >= 0 from each label and gives their sum
    T <= size to y: theta_l = max(0, (violation_l - nu) / k - T), where nu is 0 unless T reaches the cap.  A sort finds
    the threshold, O(n log n).
    """
    cdef Py_ssize_t i, m = 0
    cdef double T, threshold, total = 0.0
    for i in range(n):
        if i != y and violation[i] > 0.0:
            sorted[m] = violation[i] / k
            m += 1
    for i in range(n):
        alpha[i] = 0.0
    if m == 0:
        return
    qsort(sorted, m, sizeof(double), falling)
    T = water_level(sorted, m, 0.0, 1.0)        # T = sum max(0, v - T)
    threshold = T
    if T > size:
        threshold = water_level(sorted, m, size, 0.0)   # size = sum max(0, v - threshold)
    for i in range(n):
        if i != y and violation[i] / k > threshold:
            alpha[i] = -(violation[i] / k - threshold)
            if -alpha[i] < dust:
                alpha[i] = 0.0
            total -= alpha[i]
    alpha[y] = total
