"""Least squares that forget: weights of a few members as of each row, from sums that fade; see `onlinekernels.model.combining`."""
import numpy as np
from libc.math cimport fmax
from onlinekernels._core.linalg cimport ok_decompose


def solved(const double[:, :, ::1] apart, const double[:, ::1] missed, counts, double memory, double prior, sums):
    """(v.apart with v before each row, v after the last, the sums then): v minimises the fading sum of (missed - v.apart)^2 / size + prior |v|^2.

    Parameters
    ----------
    apart : array of shape (n, members, outputs)
    missed : array of shape (n, outputs)
        What v.apart is to be; its mean square is the size.
    counts : array of shape (n,) or None
        Weights of the rows.
    memory, prior : float
    sums : tuple
        (products (groups, members, members), answers (groups, members), squares (groups,), count); one group is for all outputs.
    """
    cdef Py_ssize_t n = apart.shape[0], m = apart.shape[1], outputs = apart.shape[2], groups = sums[0].shape[0]
    cdef Py_ssize_t t, g, i, j, k, first, last
    cdef double[:, :, ::1] products = sums[0].copy()
    cdef double[:, ::1] answers = sums[1].copy()
    cdef double[::1] squares = sums[2].copy()
    cdef double count = sums[3], weight, total, x
    cdef const double[::1] given = None if counts is None else counts
    cdef double[:, ::1] root = np.empty((m, m))
    found, latest = np.empty((n, outputs)), np.empty((groups, m))
    cdef double[:, ::1] said = found, v = latest
    with nogil:
        for t in range(n + 1):
            for g in range(groups):
                solve(&products[g, 0, 0], &answers[g, 0], m, squares[g] / fmax(count, 1e-12), prior, &root[0, 0], &v[g, 0])
            if t == n:
                break
            weight = 1.0 if given is None else given[t]
            count = memory * count + weight
            for g in range(groups):
                first = 0 if groups == 1 else g
                last = outputs if groups == 1 else g + 1
                for k in range(first, last):
                    said[t, k] = 0.0
                    for i in range(m):
                        said[t, k] += v[g, i] * apart[t, i, k]
                for i in range(m):
                    for j in range(i + 1):
                        total = 0.0
                        for k in range(first, last):
                            total += apart[t, i, k] * apart[t, j, k]
                        x = memory * products[g, i, j] + weight * total
                        products[g, i, j] = products[g, j, i] = x
                    total = 0.0
                    for k in range(first, last):
                        total += apart[t, i, k] * missed[t, k]
                    answers[g, i] = memory * answers[g, i] + weight * total
                total = 0.0
                for k in range(first, last):
                    total += missed[t, k] * missed[t, k]
                squares[g] = memory * squares[g] + weight * total
    return found, latest, (np.asarray(products), np.asarray(answers), np.asarray(squares), count)


cdef void solve(const double* products, const double* answers, Py_ssize_t m, double size, double prior, double* root,
                double* v) noexcept nogil:
    """v = (products / size + prior)^-1 answers / size, by Cholesky's factor, which is left in root."""
    cdef Py_ssize_t i, j
    cdef double trace = 0.0
    for i in range(m):
        trace += products[i * m + i]
    size = fmax(size, 1e-12 * trace)            # also where nothing has been missed
    size = size if size > 0.0 else 1.0          # or nothing has been learned
    for i in range(m):
        for j in range(i + 1):
            root[i * m + j] = products[i * m + j] / size
        root[i * m + i] += prior
    ok_decompose(root, m, m)
    for i in range(m):
        v[i] = answers[i] / size
        for j in range(i):
            v[i] -= root[i * m + j] * v[j]
        v[i] /= root[i * m + i]
    for i in range(m - 1, -1, -1):
        for j in range(i + 1, m):
            v[i] -= root[j * m + i] * v[j]
        v[i] /= root[i * m + i]
