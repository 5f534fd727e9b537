"""The pool of terms: points, coefficients and birthdays, and which of them a budget keeps."""
from libc.math cimport ceil, pow
from onlinekernels._core.frame cimport Frame

cdef enum:
    NOBODY = -1         # `victim`: there is room
    NEWCOMER = -2       # the newcomer itself goes

cdef enum BudgetCode:
    UNLIMITED = 0
    RECENT = 1          # circular buffer of the last `size` terms, V 5.5
    WINDOW = 2          # terms of the last `size` examples, K Fig. 1
    SMALLEST = 3        # the `size` terms with the largest coefficients, I 2.1
    SUBLINEAR = 4       # a window that grows like t^exponent, K Thm 6

cdef struct Budget:
    int code
    long long size      # RECENT, SMALLEST: terms; WINDOW: examples; SUBLINEAR: window while young
    double exponent     # SUBLINEAR


cdef inline long long window_length(const Budget* budget, long long t) noexcept nogil:
    """How many of the latest examples f_t may use (WINDOW and SUBLINEAR).

    K Thm 6 with its erratum: the printed window shrinks once, this one never does.  pow may land
    just above a whole number, so the ceiling forgives 1e-9.
    """
    cdef double length
    if budget.code == WINDOW:
        return budget.size
    length = ceil(pow(<double> t, budget.exponent) - 1e-9)
    return <long long> length if length > <double> budget.size else budget.size


cdef class Pool:
    cdef Budget budget
    cdef readonly Py_ssize_t capacity       # slots allocated
    cdef readonly Py_ssize_t start          # live slots lie in [start, stop)
    cdef readonly Py_ssize_t stop
    cdef readonly Py_ssize_t count          # live slots
    cdef bint stale                         # a coefficient has faded to 0: pack soon
    cdef readonly Py_ssize_t oldest         # RECENT: where the circle begins
    cdef readonly Py_ssize_t rows           # coordinates per term: channels * outputs
    cdef readonly Py_ssize_t outputs
    cdef readonly Py_ssize_t n_facts
    cdef readonly Py_ssize_t n_features
    cdef readonly object points             # (capacity, n_features), or None for objects
    cdef readonly list objects              # capacity entries, or None for points
    cdef readonly object coefficients       # (rows, capacity), in frame coordinates
    cdef readonly object point_facts        # (n_facts, capacity)
    cdef readonly object birthdays          # (capacity,) int64: the t of each term
    cdef readonly object pairs              # (2, capacity) int32: two labels of each term, or None
    cdef object keys_array, heap_array
    # The same arrays for C, renewed whenever they move
    cdef char* point_data
    cdef Py_ssize_t point_bytes             # bytes of one point
    cdef double* coef
    cdef double* facts
    cdef long long* born
    cdef int* first                         # label whose coefficient is the stored one,
    cdef int* second                        # and the one that has its negative
    cdef double* keys                       # SMALLEST: size of a stored coefficient, never changes
    cdef Py_ssize_t* heap                   # SMALLEST: slots, the smallest (key, born) first

    cdef Py_ssize_t enter(self, long long t, const double* stored) noexcept nogil
    cdef Py_ssize_t victim(self, const double* stored) noexcept nogil
    cdef double size_of(self, const double* stored) noexcept nogil
    cdef bint first_expires(self, long long t) noexcept nogil
    cdef void drop_first(self) noexcept nogil
    cdef void clear(self) noexcept nogil
    cdef void fold(self, const Frame* frame) noexcept nogil
    cdef bint is_full(self) noexcept nogil
    cdef void sift_down(self, Py_ssize_t i, Py_ssize_t n) noexcept nogil
    cdef void rebuild_heap(self) noexcept nogil
    cdef bint goes_before(self, Py_ssize_t a, Py_ssize_t b) noexcept nogil
    cdef allocate(self, Py_ssize_t capacity)


cdef char* array_data(array) except? NULL
