"""Additive kernels in extended precision, and a naive tree, for the tests only.

Written from H (Herbster, "Learning additive models online with fast evaluating kernels"), one sum over all terms at
a time, in np.longdouble: nothing here is cached, split into sides or shared with the code that it judges.

A one-dimensional kernel is plain data, as the compiled tree takes it: ``("spline", order)``, ``("exponential",
rate)`` or ``("matern", rate, smoothness)``.
"""

import math

import numpy as np

LONG = np.longdouble


def coordinate_kernel(spec, p, q):
    """k(p, q) for numbers or arrays p and q, in extended precision."""
    p, q = np.asarray(p, dtype=LONG), np.asarray(q, dtype=LONG)
    if spec[0] == "spline":
        return _spline(spec[1], p, q)
    r = LONG(spec[1]) * np.abs(p - q)
    if spec[0] == "exponential":
        return np.exp(-r)
    if spec[0] == "matern" and spec[2] == 1.5:
        return (1 + r) * np.exp(-r)
    if spec[0] == "matern" and spec[2] == 2.5:
        return (1 + r + r * r / 3) * np.exp(-r)
    raise ValueError(f"unknown kernel {spec!r}")


def _spline(z, p, q):
    """H (2): the integral of (p - t)^z (q - t)^z over t in (0, min(p, q)), plus sum_r p^r q^r.

    With q - t = (p - t) + (q - p) the binomial theorem gives C(z, r), which the print of (2) does not show.
    """
    low, gap, product = _powers(np.minimum(p, q), 2 * z + 1), _powers(np.abs(q - p), z), _powers(p * q, z)
    total = LONG(0)
    for r in range(z + 1):
        power = 2 * z - r + 1
        total = total + LONG(math.comb(z, r)) / power * low[power] * gap[r] + product[r]
    return total


def _powers(x, most):
    """[1, x, x^2, ..., x^most]: extended precision has a slow power function."""
    powers = [LONG(1)]
    for _ in range(most):
        powers.append(powers[-1] * x)
    return powers


def additive_kernel(spec, x, z):
    """sum_j k(x_j, z_j), as a float: what `reference.py` takes for a kernel."""
    return float(np.sum(coordinate_kernel(spec, x, z)))


def additive_gram(spec, X, Z):
    X, Z = np.asarray(X), np.asarray(Z)
    return np.sum(coordinate_kernel(spec, X[:, None, :], Z[None, :, :]), axis=2)


class BruteTree:
    """What `Tree` does, by lists: for each coordinate a dict from key to its terms' values.

    A key's value is the exact sum of what its terms hold; a key whose last term is removed is forgotten with all
    that rounding could have left there.
    """

    def __init__(self, kernel, n_coordinates=1, rows=1):
        self.kernel, self.n_coordinates, self.rows = kernel, n_coordinates, rows
        self.terms = [{} for _ in range(n_coordinates)]  # key -> [count, [values, ...]]

    @property
    def size(self):
        return sum(len(terms) for terms in self.terms)

    def add(self, x, values):
        for j, key in enumerate(x):
            entry = self.terms[j].setdefault(_key(key), [0, []])
            entry[0] += 1
            entry[1].append(np.array(values, dtype=float))

    def remove(self, x, values):
        keys = [_key(key) for key in x]
        for j, key in enumerate(keys):
            if key not in self.terms[j]:
                raise KeyError(key)
        for j, key in enumerate(keys):
            self._remove(self.terms[j], key, np.array(values, dtype=float))

    @staticmethod
    def _remove(terms, key, values):
        entry = terms[key]
        entry[0] -= 1
        if entry[0] == 0:
            del terms[key]
            return
        for i, held in enumerate(entry[1]):
            if np.array_equal(held, values):
                del entry[1][i]
                return
        entry[1].append(-values)  # not what was added: a difference all the same

    def keys(self, j):
        return np.array(sorted(self.terms[j]), dtype=float)

    def counts(self, j):
        return np.array([self.terms[j][key][0] for key in sorted(self.terms[j])], dtype=np.int64)

    def values(self, j):
        """What each key holds, shape (rows, keys), in the order of `keys`."""
        sums = [[math.fsum(held[row] for held in self.terms[j][key][1]) for row in range(self.rows)]
                for key in sorted(self.terms[j])]
        return np.array(sums, dtype=float).reshape(-1, self.rows).T

    def component(self, j, points):
        kernels = self._kernels(j, points)
        return (kernels @ self.values(j).T.astype(LONG)).astype(float)

    def evaluate(self, x):
        total = np.zeros(self.rows, dtype=LONG)
        for j, point in enumerate(x):
            total = total + self._kernels(j, [point])[0] @ self.values(j).T.astype(LONG)
        return total.astype(float)

    def scale(self, x):
        """sum_i |alpha_i| k(x_i, x), shape (rows,): what rounding may be compared with."""
        return sum(self.component_scale(j, [point])[0] for j, point in enumerate(x))

    def component_scale(self, j, points):
        """The same for one coordinate, shape (points, rows)."""
        held = [np.sum(np.abs(self.terms[j][key][1]), axis=0) for key in sorted(self.terms[j])]
        held = np.array(held, dtype=LONG).reshape(-1, self.rows)
        return (self._kernels(j, points) @ held).astype(float)

    def _kernels(self, j, points):
        return coordinate_kernel(self.kernel, np.asarray(points, dtype=float)[:, None], self.keys(j)[None, :])


def _key(key):
    return float(key) + 0.0
