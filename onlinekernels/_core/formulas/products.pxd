"""Products of matrices: small ones without NumPy."""

cdef enum:
    ALL = 1 << 30       # columns of each row

cdef struct Matrix:
    # Numbers in memory: entry (i, j) is data[i * row + j * column].
    const double* data
    Py_ssize_t rows
    Py_ssize_t columns
    Py_ssize_t row
    Py_ssize_t column

cdef Matrix matrix(const double* data, Py_ssize_t rows, Py_ssize_t columns, Py_ssize_t stride) noexcept nogil
cdef Matrix transposed(const double* data, Py_ssize_t rows, Py_ssize_t columns, Py_ssize_t stride) noexcept nogil
cdef int multiply(double* C, Py_ssize_t stride, Matrix A, Matrix B, Py_ssize_t upto) except -1
