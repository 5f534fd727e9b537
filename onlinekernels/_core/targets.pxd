"""Targets of a regression, scaled as they come."""
cimport cython


@cython.final
cdef class TargetScaler:
    cdef readonly Py_ssize_t targets    # numbers that y has for each example
    cdef readonly object kind           # memory, or "log"
    cdef readonly double memory         # weight of a target that is one example old
    cdef readonly bint exact            # see the class
    cdef readonly bint robust           # see the class
    cdef readonly bint is_log           # whether arcsinh(y) is scaled
    cdef readonly bint frozen           # nothing is learned, and `square` is what targets are divided by
    cdef public double count            # sum of the weights
    cdef readonly object numbers        # rows: mean, sum of squares; both before the open block
    cdef double* mean                   # of each target
    cdef double* square                 # weighted sum of squares about the mean
    # The open block
    cdef const double* y                # its targets
    cdef const double* weights          # its weights, or NULL
    cdef double count_before            # `count` before it
    cdef object buffer                  # owns the memory of what follows
    cdef Py_ssize_t rows                # that there is room for
    cdef double* scaled                 # targets as they are learned
    cdef double* means                  # what was known before each row: the mean
    cdef double* deviations             # and the deviation of each target,
    cdef double* shares                 # and the share of all weight that the row will have

    cdef int open(self, const double* y, Py_ssize_t n, const double* weights) except -1
    cdef void know(self, Py_ssize_t i) noexcept nogil
    cdef bint take(self, Py_ssize_t i) noexcept nogil
    cdef void commit(self, Py_ssize_t n) noexcept nogil
    cdef void update(self, Py_ssize_t i) noexcept nogil
    cdef double divisor_of(self, Py_ssize_t j) noexcept nogil
    cdef double value(self, double score, double mean, double deviation, double share, double* unit) noexcept nogil
    cdef double taken(self, double y) noexcept nogil
    cdef double target(self, double value) noexcept nogil
    cdef double in_units(self, double score, double mean, double deviation, double share, double* unit) noexcept nogil
    cdef void restore_row(self, Py_ssize_t i, double* scores, double* deviations) noexcept nogil
    cdef void restore_next(self, double* scores, double* deviations) noexcept nogil
