"""What rows go through before they are learned: running scalers, ranks, and the transforms of an ensemble's members."""
cimport cython
from onlinekernels._core.points cimport Rows
from onlinekernels._core.functions cimport Piece


@cython.final
cdef class Scaler:
    cdef readonly bint sparse               # rows are divided by root mean squares, and not centred
    cdef readonly bint single               # dense rows are float32
    cdef readonly Py_ssize_t n_features     # columns
    cdef readonly double memory             # weight of a row that is one example old
    cdef public double count                # sum of the weights
    cdef public bint frozen                 # rows are scaled by what is known, which does not change
    # Rows: mean, sum of squares, first and second value; all before the piece; scratch
    cdef readonly object numbers
    cdef double* mean                       # of each column; 0 for sparse rows
    cdef double* square                     # weighted sum of squares about the mean
    cdef double* first_value                # of a column that has shown two at most; NaN if there were more
    cdef double* second_value               # likewise; equal to the first as long as there is one
    cdef Py_ssize_t few                     # number of such columns, of dense rows
    cdef double count_before                # `count` before the piece
    cdef Py_ssize_t few_before              # `few` before the piece
    cdef Py_ssize_t opened                  # number of rows of the piece
    # The piece that is open
    cdef const char* call_rows              # all rows of the call
    cdef const char* rows                   # of the piece, if they are dense
    cdef Rows sparse_rows                   # all rows of the call, if they are sparse
    cdef Py_ssize_t first                   # row of the call with which the piece begins

    cdef bint are_bounded(self, const char* values, Py_ssize_t n) noexcept nogil
    cdef int open(self, Piece piece, Py_ssize_t first, Py_ssize_t m) except -1
    cdef int attach(self, Piece piece) except -1
    cdef void let_go(self) noexcept
    cdef void open_rows(self, const char* rows, Py_ssize_t first, Py_ssize_t m, char* out) noexcept nogil
    cdef void commit(self, Py_ssize_t n) noexcept nogil
    cpdef bint is_finite(self) noexcept nogil
    cdef void update_rows(self, Py_ssize_t m, char* out) noexcept nogil
    cdef void take_row(self, Py_ssize_t i, char* out) noexcept nogil
    cdef void take_sparse(self, Py_ssize_t n, double* out) noexcept nogil
    cdef void scale(self, Py_ssize_t m, char* out) noexcept nogil
    cdef void scale_dense(self, const char* rows, Py_ssize_t m, double* divisors, char* out) noexcept nogil
    cdef void scale_values(self, Rows rows, Py_ssize_t start, Py_ssize_t stop, double* out) noexcept nogil
    cdef double change_of(self, Py_ssize_t j) noexcept nogil
    cdef double divisor_of(self, Py_ssize_t j) noexcept nogil


@cython.final
cdef class Ranks:
    cdef readonly Py_ssize_t columns, size  # of the samples: numbers of a row, rows that are kept at most
    cdef readonly bint latest               # whether they are the latest rows
    cdef readonly long long memory, t       # rows after which the past fades, 0 for never; rows seen
    cdef readonly unsigned long long seed
    cdef readonly object ordered, rows      # (columns, size) in order; (size, columns) as they came
    cdef double* ordered_data
    cdef double* rows_data
    # What undoes the rows of the block that is open
    cdef object log                         # keeps this memory
    cdef Py_ssize_t* slots                  # where each row has gone, -1 for nowhere
    cdef double* replaced                   # the rows that were there
    cdef Py_ssize_t opened                  # rows of the block

    cdef int reserve(self, Py_ssize_t n) except -1
    cdef void open_row(self, const double* values, double* ranks) noexcept nogil
    cdef void commit(self, Py_ssize_t n) noexcept nogil
    cdef Py_ssize_t next_slot(self) noexcept nogil
    cdef void learn_row(self, const double* values, double* ranks) noexcept nogil
    cdef void evaluate_row(self, const double* values, double* ranks) noexcept nogil
    cpdef void restart(self, Py_ssize_t kept) noexcept nogil
    cpdef double quantile(self, double level) noexcept nogil


cdef class Transform:
    cdef readonly Py_ssize_t n_features
    cdef public long long t                 # rows seen
    cdef double* out                        # transformed rows of the block that is open
    cdef object memory_of_out, rows_held    # keep these, and the rows of an `opened` block, alive
    cdef Py_ssize_t capacity                # rows that `out` has room for
    cdef Py_ssize_t opened_rows             # rows of the block that is open,
    cdef const unsigned char* held          # and which of them are not to be learned, if not NULL

    cdef Py_ssize_t rows_at_once(self) noexcept nogil
    cdef int open(self, const double* rows, Py_ssize_t n) except -1
    cdef int reserve(self, Py_ssize_t n) except -1
    cdef int transform_block(self, const double* rows, Py_ssize_t n) except -1
    cdef void commit(self, Py_ssize_t n) noexcept nogil
    cdef void close_block(self, Py_ssize_t n) noexcept nogil
    cdef int evaluate(self, const double* rows, Py_ssize_t n, double* out) except -1
