"""A Cholesky factor that grows and shrinks with the points that it is about."""
import numpy as np
from libc.string cimport memcpy, memmove
from onlinekernels._core.arrays cimport array_data
from onlinekernels._core.arrays import aligned_empty, check_array
from onlinekernels._core.formulas.triangles cimport (ok_decompose, ok_invert_lower, ok_remove_row, ok_solve_block, ok_solve_rows,
                                                     ok_solve_transposed)


cdef class Factor:
    """L, lower triangular with a positive diagonal, K = L L^T for the kernel matrix K of n points.

    A point with the kernel values k and k(x, x) appends the row a = L^-1 k (`solve`) and the root of k(x, x) - |a|^2, which is
    what the points before it do not determine. Nothing here fails or asks for memory but `with_room` and what is for Python: a
    change is one that cannot be interrupted. Complexities count n points and m right-hand sides.

    Parameters
    ----------
    room : int
        Points that there is room for.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinekernels._core.formulas.factor import Factor
    >>> factor = Factor(2)
    >>> factor.load(np.array([[2.0, 0.0], [1.0, 3.0]]))
    >>> factor.gram().tolist()
    [[4.0, 2.0], [2.0, 10.0]]
    >>> factor.inverse().round(3).tolist()
    [[0.5, 0.0], [-0.167, 0.333]]
    """

    def __init__(self, Py_ssize_t room):
        self.array = aligned_empty((room, room), np.dtype(np.float64))
        self.array[:] = 0.0
        self.L, self.room = <double*> array_data(self.array), room

    cdef Factor with_room(self, Py_ssize_t room):
        """The same with room for so many points, which are not fewer: O(room^2)."""
        cdef Factor other = Factor(room)
        other.array[:self.n, :self.n] = self.array[:self.n, :self.n]
        other.n = self.n
        return other

    cdef double* row(self, Py_ssize_t i) noexcept nogil:
        """Row i: O(1). Beyond n it is free to be prepared."""
        return self.L + i * self.room

    # ---- Solving ------------------------------------------------------------------------------

    cdef void solve(self, double* x, Py_ssize_t first) noexcept nogil:
        """L x = b in place, where b is 0 before `first`: O((n - first)^2)."""
        ok_solve_rows(self.L + first * (self.room + 1), self.room, self.n - first, x + first, self.room, 1)

    cdef void solve_rows(self, double* X, Py_ssize_t stride, Py_ssize_t m) noexcept nogil:
        """L x = b in place for each of m rows: O(m n^2)."""
        ok_solve_rows(self.L, self.room, self.n, X, stride, m)

    cdef void solve_columns(self, double* B, Py_ssize_t stride, Py_ssize_t m) noexcept nogil:
        """L X = B in place, for a matrix of n rows of length m: O(m n^2)."""
        ok_solve_block(self.L, self.room, self.n, B, stride, m)

    cdef void solve_transposed(self, double* B, Py_ssize_t stride, Py_ssize_t m) noexcept nogil:
        """L^T X = B in place, for a matrix of n rows of length m: O(m n^2)."""
        ok_solve_transposed(self.L, self.room, self.n, B, stride, m)

    # ---- Points come and go -------------------------------------------------------------------

    cdef void append(self, const double* row, double diagonal) noexcept nogil:
        """One more point, for which there is room: O(n)."""
        memmove(self.row(self.n), row, self.n * sizeof(double))
        self.row(self.n)[self.n] = diagonal
        self.n += 1

    cdef void remove(self, Py_ssize_t i, double* scratch) noexcept nogil:
        """Point i goes, and those after it move up: O((n - i)^2 + n i). scratch: 2 n numbers."""
        ok_remove_row(self.L, self.room, self.n, i, scratch, scratch + self.n)
        self.n -= 1

    cdef void keep(self, const Py_ssize_t* kept, Py_ssize_t first, Py_ssize_t n, const double* corner) noexcept nogil:
        """Only n points stay, the first of them where they are: O(n^2).

        The rows of the others become those in `kept`, up to column `first`, with a corner behind it that somebody has computed.
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
        ok_invert_lower(self.L, self.room, self.n, <double*> array_data(inverse), self.n)
        return inverse

    def load(self, lower):
        """Be about other points, for which there is room; `check_lower` came before. O(n^2)."""
        self.n = 0
        self.array[:len(lower), :len(lower)] = lower
        self.n = len(lower)

    def decompose(self, gram):
        """Be the factor of a matrix, for which there is room; LinAlgError unless it is positive definite. O(n^3)."""
        lower = np.array(gram, dtype=np.float64, order="C")
        if not ok_decompose(<double*> array_data(lower), len(lower), len(lower)):
            raise np.linalg.LinAlgError("the matrix is not positive definite")
        self.load(np.tril(lower))

    def _check(self):
        assert self.n <= self.room
        check_lower(self.lower(), "factor", self.n)


def check_lower(lower, name, n):
    """An array of n rows that can be a factor (n = -1: of any size), or ValueError."""
    check_array(lower, name, np.float64, (n, n))
    if lower.shape[0] != lower.shape[1] or np.triu(lower, 1).any() or not (np.diag(lower) > 0.0).all():
        raise ValueError(f"{name} is not lower triangular with a positive diagonal")
    return lower
