"""Local averages: votes, means or densities of the rows near an example, by kernel weights."""
cimport cython
from onlinekernels._core.functions cimport Memory


cdef struct Block:
    # Some rows, and what is computed of them on the way.
    Py_ssize_t m                # how many
    double* rows                # (m, features): about the origin
    double* squares             # (m): of their lengths
    double* table               # (m, stride): distances to the rows that are kept
    Py_ssize_t stride
    # Of one average
    Py_ssize_t* index           # slots that count,
    double* share               # their weights,
    double* gathered            # and what they say
    double* ones
    double* sums
    # If they are learned
    double* own                 # (m, m): distances to each other
    double* transposed              # (features, m): the rows, with a row for each feature
    Py_ssize_t* slots           # (m): where they go, -1 for nowhere


cdef class LocalScratch(Memory):
    """Memory of a block."""
    cdef Block block

    cdef int reserve(self, LocalRows local, Py_ssize_t m, Py_ssize_t n, Py_ssize_t outputs, bint learning) except -1


@cython.final
cdef class LocalRows:
    cdef readonly int task
    cdef readonly Py_ssize_t n_features, targets, size, neighbour
    cdef readonly double rate
    cdef readonly bint city_block, uniform
    cdef readonly long long memory
    cdef readonly long long t               # rows so far, but for those that were held back
    cdef readonly unsigned long long seed
    cdef readonly object origin             # what rows are kept about: the first one
    cdef readonly object points             # (room, features)
    # (features, room): the same with a row for each feature; None if nobody looks at it so
    cdef readonly object columns
    cdef readonly object squares, values, weights
    cdef readonly object running_errors      # (targets + 1): fading sums of squared errors, and of their weights
    cdef double* O                          # of `origin`
    cdef double* P                          # of `points`
    cdef double* C                          # of `columns`, or NULL
    cdef double* q                          # of `squares`
    cdef double* V                          # of `values`
    cdef double* w                          # of `weights`
    cdef double* errors                     # of `running_errors`
    cdef Py_ssize_t capacity                    # rows that there is room for
    cdef Py_ssize_t weighted                # rows that are kept with another weight than 1
    cdef LocalScratch scratch               # of the block that is open,
    cdef Py_ssize_t outputs                 # of its rows
    cdef list spare                         # scratch that no call has at present

    # A block of rows to be learned
    cdef Py_ssize_t most_rows(self) noexcept
    cdef int open(self, const double* X, Py_ssize_t m, Py_ssize_t outputs) except -1
    cdef void test_row(self, Py_ssize_t i, double* scores, double* deviations) noexcept nogil
    cdef void train_row(self, Py_ssize_t i, const double* y, double weight, const double* scores) noexcept nogil
    cdef void hold_row(self, Py_ssize_t i) noexcept nogil
    cdef void commit(self) noexcept nogil
    # As of now
    cdef int evaluate(self, const double* X, Py_ssize_t m, Py_ssize_t outputs, double* scores,
                      double* deviations) except -1
    # On the way
    cdef int reserve(self, Py_ssize_t n) except -1
    cdef Py_ssize_t slot_of(self, long long t) noexcept nogil
    cdef int measure(self, LocalScratch w, const double* X, Py_ssize_t n) except -1
    cdef void measure_one(self, Block* w, Py_ssize_t n) noexcept nogil
    cdef void measure_each_other(self, Block* w) noexcept nogil
    cdef void answer(self, Py_ssize_t slot, const double* y, double weight) noexcept nogil
    cdef void put(self, Py_ssize_t slot, const double* x, double square) noexcept nogil
    cdef void learn_errors(self, const double* scores, const double* y, double weight) noexcept nogil
    cdef void average(self, double* distance, Py_ssize_t n, const double* errors, Block* w, double* out,
                      Py_ssize_t outputs, double* spread) noexcept nogil
    cdef void vote(self, Py_ssize_t n, double total, Block* w, double* out, Py_ssize_t outputs) noexcept nogil
    cdef double log_height(self, double rate) noexcept nogil
    cdef double unit_of(self, const double* distance, Py_ssize_t n, Py_ssize_t* index) noexcept nogil
