"""Principal components in feature space by Hebbian steps: one loop over rows, done whole or not at all."""
from libc.math cimport fabs, fmax, fmin, sqrt
from libc.string cimport memset
from onlinekernels._core.formulas.vecmath cimport ok_dot

cdef double FADE = 0.001            # weight of a row in an eigenvalue, once more than 1000 have come
cdef double SLOW = 0.001            # and in the usual size of a product <gradient, trace>
cdef double LONGEST = 0.5           # step, of components whose length tends to 1
cdef double LEAST = 1e-300
cdef double DUST = 1e-20            # of |x|^2: what is but rounding


def advance(const double[:, ::1] coordinates, const long long[::1] known, const double[::1] sizes,
            double[:, ::1] components, double[:, ::1] traces, double[::1] steps, double[::1] products,
            double[::1] eigenvalues, double[::1] mean, long long t, long long n_seen, double meta_rate, double memory,
            bint adapts, bint center, double[:, ::1] scores, double[:, ::1] work):
    """Learn rows, given by their coordinates in an orthonormal basis that grows with them.

    With y_c = <w_c, x> and the gradient g_c = y_c (x - sum_{j <= c} y_j w_j) of Sanger, w_c <- w_c + gain_c g_c. The
    gain is eta_c / (lambda_c + eta_c y_c^2), where lambda_c is the running mean of y_c^2: so steps have the same size,
    whatever the eigenvalue, and none overshoots; nor is any longer than 1/2. eta_c is the step of c times the size of
    the row.

    Where steps adapt, each is multiplied by 1 + mu <g_c, v_c>, relative to its usual size and in [1/2, 2], with the
    trace v <- memory (v + gain dg(v)) + gain g, which is no longer than 1.

    Row i has known[i] coordinates, and those behind are 0; its size is sizes[i], and scores[i] are its y before its
    step. Component c begins at basis vector c, when that joins. There are r components and traces, with r steps,
    products and eigenvalues; t rows and n_seen coordinates have come before, whose new numbers are the answer. mu and
    lambda of V are the meta_rate and the memory. work has four rows.
    """
    cdef Py_ssize_t n = coordinates.shape[0], r = components.shape[0], i, c, k, m
    cdef double* x = &work[0, 0]
    cdef double* rest = &work[1, 0]             # x - sum_{j <= c} y_j w_j
    cdef double* change = &work[2, 0]             # its derivative along the traces
    cdef double* gradient = &work[3, 0]
    cdef double* w
    cdef double* v
    cdef double y, dy, product, eta, gain, size, length, dust
    with nogil:
        for i in range(n):
            m = known[i]
            t += 1
            while n_seen < m:
                if n_seen < r:
                    components[n_seen, n_seen] = 1.0
                n_seen += 1
            for k in range(m):
                if center:
                    mean[k] += (coordinates[i, k] - mean[k]) / t
                x[k] = rest[k] = coordinates[i, k] - mean[k]
            dust = fmax(DUST * ok_dot(x, x, m), LEAST)
            memset(change, 0, m * sizeof(double))
            for c in range(r):
                w, v = &components[c, 0], &traces[c, 0]
                y = scores[i, c] = ok_dot(w, x, m)
                eigenvalues[c] += fmax(1.0 / t, FADE) * (y * y - eigenvalues[c])
                for k in range(m):
                    rest[k] -= y * w[k]
                length = ok_dot(rest, rest, m)
                length = fabs(y) * sqrt(length) if length > dust else 0.0
                for k in range(m):
                    gradient[k] = y * rest[k] if length > 0.0 else 0.0
                if adapts:
                    product = ok_dot(gradient, v, m)
                    products[c] += fmax(1.0 / t, SLOW) * (fabs(product) - products[c])
                    if products[c] > LEAST:
                        steps[c] = fmin(1.0, steps[c] * fmin(2.0, fmax(0.5, 1.0 + meta_rate * product / products[c])))
                eta = steps[c] * sizes[i]
                size = eigenvalues[c] + eta * y * y
                gain = eta / size if size > dust else 0.0
                gain = fmin(gain, LONGEST / length) if length > 0.0 else 0.0
                if adapts:
                    dy = ok_dot(v, x, m)
                    size = 0.0
                    for k in range(m):
                        change[k] -= dy * w[k] + y * v[k]
                        v[k] = memory * (v[k] + gain * (dy * rest[k] + y * change[k])) + gain * gradient[k]
                        size += v[k] * v[k]
                    if size > 1.0:
                        size = 1.0 / sqrt(size)
                        for k in range(m):
                            v[k] *= size
                for k in range(m):
                    w[k] += gain * gradient[k]
    return t, n_seen
