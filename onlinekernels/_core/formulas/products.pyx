"""Products of matrices: NumPy's, but for those so small that it would take less time than to ask for them."""
import numpy as np
from cpython.buffer cimport PyBUF_WRITE
from cpython.memoryview cimport PyMemoryView_FromMemory
from onlinekernels._core.formulas.tiles cimport ok_few_multiplications, ok_product

cdef Py_ssize_t FEW = ok_few_multiplications()


cdef Matrix matrix(const double* data, Py_ssize_t rows, Py_ssize_t columns, Py_ssize_t stride) noexcept nogil:
    """Rows of numbers, so far apart."""
    return Matrix(data, rows, columns, stride, 1)


cdef Matrix transposed(const double* data, Py_ssize_t rows, Py_ssize_t columns, Py_ssize_t stride) noexcept nogil:
    """The transpose of so many rows."""
    return Matrix(data, columns, rows, 1, stride)


cdef int multiply(double* C, Py_ssize_t stride, Matrix A, Matrix B, Py_ssize_t upto) except -1:
    """C = A B, of which row r is needed up to column `upto` + r. B is not turned. O(rows columns inner)."""
    cdef Py_ssize_t most = min(B.columns, upto + A.rows)
    if A.rows * most * A.columns <= FEW:
        with nogil:
            ok_product(C, stride, A.rows, B.columns, A.data, A.row, A.column, A.columns, B.data, B.row, upto)
        return 0
    with np.errstate(over="ignore", invalid="ignore"):      # what overflows is reported, with its row
        np.matmul(as_array(A), as_array(B), out=as_array(matrix(C, A.rows, B.columns, stride)))
    return 0


cdef as_array(Matrix M):
    """A matrix for NumPy, which must not outlive the call: O(1)."""
    cdef Py_ssize_t size = (M.rows - 1) * M.row + (M.columns - 1) * M.column + 1
    memory = PyMemoryView_FromMemory(<char*> M.data, size * sizeof(double), PyBUF_WRITE)
    return np.ndarray((M.rows, M.columns), np.float64, memory, 0, (M.row * sizeof(double), M.column * sizeof(double)))


def leave_to_numpy(Py_ssize_t few):
    """Leave products with more than so many multiplications to NumPy; how many that were before."""
    global FEW
    before, FEW = FEW, few
    return before


def product(left, right, Py_ssize_t upto=ALL):
    """left right, as `multiply` has it, for float64 arrays; the first may be turned, and of the second rows may be far apart.

    >>> product(np.eye(2), np.array([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    cdef const double[:, :] A = left, B = right
    found = np.zeros((A.shape[0], B.shape[1]))
    cdef double[:, ::1] C = found
    if found.size and A.shape[1]:
        multiply(&C[0, 0], C.shape[1], Matrix(&A[0, 0], A.shape[0], A.shape[1], A.strides[0] // 8, A.strides[1] // 8),
                 Matrix(&B[0, 0], B.shape[0], B.shape[1], B.strides[0] // 8, 1), upto)
    return found
