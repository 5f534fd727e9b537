"""Linear algebra of some hundred rows: products, a Cholesky factor that grows and shrinks, the evidence of a kernel.

The loops are in the headers beside formulas/.
"""
import math
import os

import numpy as np
from libc.string cimport memcpy, memmove
from onlinekernels._core.arrays cimport array_data
from onlinekernels._core.arrays import aligned_empty
from onlinekernels._core.errors import quiet
from onlinekernels._core.schema import lower_triangular

# ---- Products ------------------------------------------------------------------------------------

cdef Py_ssize_t ALONE = 1 << 18     # multiplications up to which OpenBLAS asks no other threads
cdef Py_ssize_t MOST = 1 << 27      # of a product that is cut into parts of that size
cdef Py_ssize_t DEEPEST = 128       # columns of its left factor; parts of deeper ones would be too small
cdef bint IS_ALONE = "1" in (os.environ.get("OPENBLAS_NUM_THREADS"), os.environ.get("OMP_NUM_THREADS"))


numpy_matmul = quiet(np.matmul)


@quiet
def matmul(left, right, out):
    """np.matmul; a product of less than some hundred million multiplications in parts that BLAS computes in one thread.

    To wake other threads, and to wait for them, takes many times as long where the machine is busy.
    """
    cdef Py_ssize_t i, j, rows, columns, n = left.shape[0], k = left.shape[1], m = right.shape[1]
    if IS_ALONE or not ALONE < n * k * m <= MOST or k > DEEPEST:
        np.matmul(left, right, out=out)
        return
    columns = min(m, max(16, ALONE // (min(n, 64) * k)))
    rows = max(1, ALONE // (columns * k))
    for i in range(0, n, rows):
        for j in range(0, m, columns):
            np.matmul(left[i:i + rows], right[:, j:j + columns], out=out[i:i + rows, j:j + columns])


# ---- A Cholesky factor that grows and shrinks with its points ------------------------------------

cdef class Factor:
    """L, lower triangular with a positive diagonal, K = L L^T for the kernel matrix K of n points.

    A point with the kernel values k and k(x, x) appends the row a = L^-1 k (`solve`) and the root of k(x, x) - |a|^2,
    which is what the points before it do not determine. Nothing here fails or asks for memory but `with_capacity` and
    what is for Python: a change is one that cannot be interrupted. Complexities count n points and m right-hand sides.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinekernels._core.linalg import Factor
    >>> factor = Factor(2)
    >>> factor.load(np.array([[2.0, 0.0], [1.0, 3.0]]))
    >>> factor.gram().tolist()
    [[4.0, 2.0], [2.0, 10.0]]
    >>> factor.inverse().round(3).tolist()
    [[0.5, 0.0], [-0.167, 0.333]]
    """

    def __init__(self, Py_ssize_t capacity):
        self.array = aligned_empty((capacity, capacity), np.dtype(np.float64))
        self.array[:] = 0.0
        self.L, self.capacity = <double*> array_data(self.array), capacity

    cdef Factor with_capacity(self, Py_ssize_t capacity):
        """The same with room for so many points, which are not fewer: O(room^2)."""
        cdef Factor other = Factor(capacity)
        other.array[:self.n, :self.n] = self.array[:self.n, :self.n]
        other.n = self.n
        return other

    cdef double* row(self, Py_ssize_t i) noexcept nogil:
        """Row i: O(1). Beyond n it is free to be prepared."""
        return self.L + i * self.capacity

    # ---- Solving ------------------------------------------------------------------------------

    cdef void solve(self, double* x, Py_ssize_t first) noexcept nogil:
        """L x = b in place, where b is 0 before `first`: O((n - first)^2)."""
        ok_solve_rows(self.L + first * (self.capacity + 1), self.capacity, self.n - first, x + first, self.capacity, 1)

    cdef void solve_rows(self, double* X, Py_ssize_t stride, Py_ssize_t m) noexcept nogil:
        """L x = b in place for each of m rows: O(m n^2)."""
        ok_solve_rows(self.L, self.capacity, self.n, X, stride, m)

    cdef void solve_columns(self, double* B, Py_ssize_t stride, Py_ssize_t m) noexcept nogil:
        """L X = B in place, for a matrix of n rows of length m: O(m n^2)."""
        ok_solve_block(self.L, self.capacity, self.n, B, stride, m)

    cdef void solve_transposed(self, double* B, Py_ssize_t stride, Py_ssize_t m) noexcept nogil:
        """L^T X = B in place, for a matrix of n rows of length m: O(m n^2)."""
        ok_solve_transposed(self.L, self.capacity, self.n, B, stride, m)

    # ---- Points come and go -------------------------------------------------------------------

    cdef void append(self, const double* row, double diagonal) noexcept nogil:
        """One more point, for which there is room: O(n)."""
        memmove(self.row(self.n), row, self.n * sizeof(double))
        self.row(self.n)[self.n] = diagonal
        self.n += 1

    cdef void remove(self, Py_ssize_t i, double* scratch) noexcept nogil:
        """Point i goes, and those after it move up: O((n - i)^2 + n i). scratch: 2 n numbers."""
        ok_remove_row(self.L, self.capacity, self.n, i, scratch, scratch + self.n)
        self.n -= 1

    cdef void keep(self, const Py_ssize_t* kept, Py_ssize_t first, Py_ssize_t n, const double* corner) noexcept nogil:
        """Only n points stay, the first of them where they are: O(n^2).

        The rows of the others become those in `kept`, up to column `first`, with a corner behind it that somebody has
        computed.
        """
        cdef Py_ssize_t i, size = n - first
        for i in range(first, n):
            memmove(self.row(i), self.row(kept[i]), first * sizeof(double))
            memcpy(self.row(i) + first, corner + (i - first) * size, size * sizeof(double))
        self.n = n

    # ---- For Python ---------------------------------------------------------------------------

    def solve_into(self, double[:, ::1] X):
        """L x = b in place for each row of an array. O(n^2) a row."""
        if X.shape[0] and X.shape[1]:
            self.solve_rows(&X[0, 0], X.shape[1], X.shape[0])

    def solve_columns_into(self, double[:, ::1] B):
        """L X = B in place. O(n^2) a column."""
        if B.shape[0] and B.shape[1]:
            self.solve_columns(&B[0, 0], B.shape[1], B.shape[1])

    def solve_transposed_into(self, double[:, ::1] B):
        """L^T X = B in place. O(n^2) a column."""
        if B.shape[0] and B.shape[1]:
            self.solve_transposed(&B[0, 0], B.shape[1], B.shape[1])

    def lower(self):
        """L, a copy. O(n^2)."""
        return np.tril(self.array[:self.n, :self.n])

    def gram(self):
        """K. O(n^3)."""
        lower = self.lower()
        return lower @ lower.T

    def inverse(self):
        """L^-1. O(n^3)."""
        inverse = np.empty((self.n, self.n))
        ok_invert_lower(self.L, self.capacity, self.n, <double*> array_data(inverse), self.n)
        return inverse

    def load(self, lower):
        """Be about other points, for which there is room; `lower_triangular` came before. O(n^2)."""
        self.n = 0
        self.array[:len(lower), :len(lower)] = lower
        self.n = len(lower)

    def _check(self):
        assert self.n <= self.capacity
        lower_triangular(self.lower(), "factor")
        assert np.isfinite(self.lower()).all()


# ---- The evidence of a kernel, log N(Y | 0, C), and its gradient: see `onlinekernels.algorithms.evidence` ----

def covariances(const double[:, ::1] Z, const double[::1] times, double amplitude, double forgetting):
    """(kernel part, both parts) of the covariance of rows Z^T without noise, two symmetric matrices: O(n^2 d)."""
    cdef Py_ssize_t i, d = Z.shape[0], n = Z.shape[1]
    found = np.zeros((2, n, n))
    cdef double[:, :, ::1] parts = found
    with nogil:
        for i in range(n):
            ok_covariance_row(&Z[0, 0], n, d, &times[0], i, amplitude, forgetting, &parts[0, i, 0], &parts[1, i, 0])
    return tuple(part + np.tril(part, -1).T for part in found)


def judged(const double[:, ::1] Z, const double[:, ::1] Y, const double[::1] times, const double[::1] spread,
           double amplitude, double noise, double forgetting, bint with_slopes=True):
    """(minus the log evidence, its derivatives by log scales, log amplitude, log noise and log forgetting): O(n^3).

    (inf, None) if the covariance is not positive definite, and None for derivatives that nobody wants.
    """
    cdef Py_ssize_t i, j, d = Z.shape[0], n = Z.shape[1], outputs = Y.shape[1]
    cdef double[:, :, ::1] work = np.empty((4, n, n))
    cdef double* kernel = &work[0, 0, 0]
    cdef double* both = &work[1, 0, 0]
    cdef double* root = &work[2, 0, 0]
    cdef double* inverse = &work[3, 0, 0]
    cdef double[:, ::1] whitened = np.array(Y)
    cdef bint definite
    with nogil:
        for i in range(n):
            ok_covariance_row(&Z[0, 0], n, d, &times[0], i, amplitude, forgetting, kernel + i * n, both + i * n)
            for j in range(i + 1):
                root[i * n + j] = both[i * n + j]
            root[i * n + i] += noise * spread[i]
        definite = ok_decompose(root, n, n)
        if definite:
            ok_solve_block(root, n, n, &whitened[0, 0], outputs, outputs)
    if not definite:
        return math.inf, None
    value = 0.5 * float(np.sum(np.square(whitened))) + 0.5 * n * outputs * math.log(2.0 * math.pi)
    value += outputs * float(np.log(np.asarray(work[2]).diagonal()).sum())
    if not with_slopes:
        return value, None
    with nogil:
        ok_invert_lower(root, n, n, inverse, n)
    cdef double[:, ::1] alpha = np.ascontiguousarray(np.asarray(work[3]).T @ whitened)
    found = np.zeros(d + 3)
    cdef double[::1] slopes = found
    with nogil:
        ok_half_square(inverse, n, outputs, &alpha[0, 0], outputs, root)        # twice the derivative by the covariance
        for i in range(n):
            slopes[d + 1] += 0.5 * noise * root[i * (n + 1)] * spread[i]
            ok_add_slopes(&Z[0, 0], n, d, &times[0], i, forgetting, kernel + i * n, both + i * n, root + i * n,
                          &slopes[0])
    return value, found
