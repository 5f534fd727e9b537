"""Running ranks: where a value stands among a uniform sample of those before it.

Ranks are the same in any units, and no burst of odd values moves them much: a sample of all values has few of them. Each
column is kept in order, so a rank is a search, and a value that enters moves those between its place and the leaving one's.
"""
import numpy as np
from libc.math cimport INFINITY, log, sqrt
from libc.string cimport memmove
from onlinekernels._core.arrays import check_array
from onlinekernels._core.formulas.lots cimport reservoir_slot


cdef double normal_score(double p) noexcept nogil:
    """x with Phi(x) = p, within 1e-8 (Acklam's rational approximations, relative 1.2e-9)."""
    cdef double q, r
    if p < 0.02425 or p > 0.97575:
        q = sqrt(-2.0 * log(p if p < 0.5 else 1.0 - p))
        r = (((((-7.784894002430293e-03 * q - 3.223964580411365e-01) * q - 2.400758277161838e+00) * q - 2.549732539343734e+00) * q
              + 4.374664141464968e+00) * q + 2.938163982698783e+00) / (
            (((7.784695709041462e-03 * q + 3.224671290700398e-01) * q + 2.445134137142996e+00) * q + 3.754408661907416e+00) * q + 1.0)
        return r if p < 0.5 else -r
    q = p - 0.5
    r = q * q
    return (((((-3.969683028665376e+01 * r + 2.209460984245205e+02) * r - 2.759285104469687e+02) * r + 1.383577518672690e+02) * r
             - 3.066479806614716e+01) * r + 2.506628277459239e+00) * q / (
        ((((-5.447609879822406e+01 * r + 1.615858368580409e+02) * r - 1.556989798598866e+02) * r + 6.680131188771972e+01) * r
         - 1.328068155288572e+01) * r + 1.0)


def normal_scores(ranks):
    """Normal deviates of ranks in (0, 1), of any shape.

    >>> normal_scores(np.array([0.001, 0.1, 0.5, 0.975])).round(4).tolist()
    [-3.0902, -1.2816, 0.0, 1.96]
    """
    found = np.array(ranks, dtype=float)
    cdef double[::1] out = found.reshape(-1)
    cdef Py_ssize_t i
    for i in range(out.shape[0]):
        out[i] = normal_score(out[i])
    return found


cdef inline Py_ssize_t below(const double* ordered, Py_ssize_t n, double value, bint with_equal) noexcept nogil:
    """How many are smaller, or also as large. Each step halves what is left, without a branch, which nobody could foresee."""
    cdef Py_ssize_t low = 0, half
    while n > 0:
        half = (n + 1) // 2
        low += half * (ordered[low + half - 1] <= value if with_equal else ordered[low + half - 1] < value)
        n -= half
    return low


cdef Py_ssize_t quantile_place(Py_ssize_t n, double level) noexcept nogil:
    return min(n - 1, <Py_ssize_t> (level * n))


cdef class Ranks:
    """Uniform samples of the values of some columns, rows of which come and go together.

    Parameters
    ----------
    columns, size : int
    memory, seed : int
        See `reservoir_slot`.

    >>> ranks = Ranks(1, 100)
    >>> ranks.advance(np.array([[1.0], [3.0], [2.0], [2.0]])).ravel().tolist()
    [0.5, 0.75, 0.5, 0.5]
    """

    cdef readonly Py_ssize_t columns, size
    cdef readonly long long memory, t
    cdef readonly unsigned long long seed
    cdef readonly object ordered, rows

    def __init__(self, Py_ssize_t columns, Py_ssize_t size, long long memory=0, unsigned long long seed=0):
        self.columns, self.size, self.memory, self.seed = columns, size, memory, seed
        self.clear()

    def clear(self):
        """Forget all values."""
        self.ordered, self.rows = np.zeros((self.columns, self.size)), np.zeros((self.size, self.columns))
        self.t = 0

    def copy(self):
        """Another one that has seen the same: O(columns size)."""
        cdef Ranks other = Ranks.__new__(Ranks)
        other.columns, other.size, other.memory, other.seed, other.t = self.columns, self.size, self.memory, self.seed, self.t
        other.ordered, other.rows = self.ordered.copy(), self.rows.copy()
        return other

    def keep_latest(self, Py_ssize_t n):
        """Begin anew with the latest n rows, as long as all rows are there: t is at most the size.

        >>> ranks = Ranks(1, 100)
        >>> _ = ranks.advance(np.array([[1.0], [2.0], [3.0]]))
        >>> ranks.keep_latest(2)
        >>> ranks.n, ranks.quantile(0.0)
        (2, 2.0)
        """
        if self.t > self.size:
            raise ValueError("the latest rows are not known any more")
        fresh = Ranks(self.columns, self.size, self.memory, self.seed)
        fresh.advance(self.rows[max(0, self.t - n):self.t])
        self.ordered, self.rows, self.t = fresh.ordered, fresh.rows, fresh.t    # nothing can fail any more

    @property
    def n(self):
        """How many rows are kept."""
        return min(self.t, self.size)

    def advance(self, values, quantiles=None, double level=0.0):
        """Mid-ranks in (0, 1) of each row among those before it, shape (n, columns); the rows are taken in. All or nothing.

        `quantiles`, if given, gets the first column's at this level before each row; infinitely small before there are rows.
        """
        found = np.empty((len(values), self.columns))
        cdef const double[:, ::1] taken = np.ascontiguousarray(values, dtype=float)
        cdef double[:, ::1] out = found, ordered = self.ordered, rows = self.rows
        cdef double[::1] limits = quantiles
        cdef Py_ssize_t i, j, slot, n = self.n
        with nogil:
            for i in range(taken.shape[0]):
                if limits is not None:
                    limits[i] = ordered[0, quantile_place(n, level)] if n else -INFINITY
                for j in range(self.columns):
                    out[i, j] = self.rank(&ordered[j, 0], n, taken[i, j])
                slot = reservoir_slot(self.t, self.size, self.memory, self.seed)
                if slot >= 0:
                    for j in range(self.columns):
                        self.enter(&ordered[j, 0], n, slot < n, rows[slot, j], taken[i, j])
                        rows[slot, j] = taken[i, j]
                    n = max(n, slot + 1)
                self.t += 1
        return found

    cdef double rank(self, const double* ordered, Py_ssize_t n, double value) noexcept nogil:
        cdef Py_ssize_t smaller = below(ordered, n, value, False), others = smaller
        if smaller < n and ordered[smaller] == value:
            others += below(ordered + smaller, n - smaller, value, True)
        return (0.5 * (smaller + others) + 0.5) / (n + 1.0)

    cdef void enter(self, double* ordered, Py_ssize_t n, bint instead, double old, double value) noexcept nogil:
        """Put a value in its place, instead of an old one or beside all."""
        cdef Py_ssize_t gap = below(ordered, n, old, False) if instead else n, place = below(ordered, n, value, False)
        if place > gap:
            place -= 1                          # the old one goes
            memmove(ordered + gap, ordered + gap + 1, (place - gap) * sizeof(double))
        else:
            memmove(ordered + place + 1, ordered + place, (gap - place) * sizeof(double))
        ordered[place] = value

    def ranks(self, values):
        """Mid-ranks of rows as of now."""
        found = np.empty((len(values), self.columns))
        cdef const double[:, ::1] asked = np.ascontiguousarray(values, dtype=float)
        cdef double[:, ::1] out = found, ordered = self.ordered
        cdef Py_ssize_t i, j, n = self.n
        with nogil:
            for i in range(asked.shape[0]):
                for j in range(self.columns):
                    out[i, j] = self.rank(&ordered[j, 0], n, asked[i, j])
        return found

    def quantile(self, double level):
        """A value of the first column that a share `level` of the rows is below; infinitely small before there are rows."""
        return float(self.ordered[0, quantile_place(self.n, level)]) if self.n else -np.inf

    def state(self):
        """What is kept, by name."""
        return {"t": int(self.t), "rows": self.rows[:self.n].copy()}

    def restore(self, state):
        """Go on from what `state` gave; ValueError if it makes no sense."""
        t = state["t"]
        if type(t) is not int or t < 0:
            raise ValueError("t is not a number of rows")
        n = min(t, self.size)
        rows = check_array(state["rows"], "rows", np.float64, (n, self.columns))
        self.clear()
        self.rows[:n], self.ordered[:, :n], self.t = rows, np.sort(rows, axis=0).T, t

    def _check(self):
        """Assert what must always hold."""
        assert np.array_equal(self.ordered[:, :self.n], np.sort(self.rows[:self.n], axis=0).T)
