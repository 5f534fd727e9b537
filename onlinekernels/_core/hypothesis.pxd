"""The hypothesis: an expansion with offsets and norms, and what a move does to it."""
from onlinekernels._core.expansion cimport Expansion, Piece
from onlinekernels._core.losses cimport Loss
from onlinekernels._core.rules cimport Meta, Move, Rule, Step
from onlinekernels._core.watch cimport Watch

cdef enum Failure:
    NONE = 0
    SCORE = 1           # f(x) is not finite
    MOVE = 2            # the new coefficient, offset or scalar is not finite
    PYTHON = 3          # a user's loss raised
    DERIVATIVE = 4      # a user's loss gave no number
    POINT = 5           # k(x, x) is not finite


cdef class Hypothesis:
    cdef readonly Expansion expansion
    cdef Loss loss
    cdef Step step
    cdef Rule rule
    cdef Meta meta
    cdef readonly bint has_offset
    cdef readonly bint averages
    cdef readonly bint exact_norms
    cdef readonly Py_ssize_t targets    # regression: numbers that y has for each example
    cdef readonly bint regression
    cdef Watch watch                    # signs that learning goes wrong
    cdef Meta without_newcomer          # exact norms: what `meta` becomes if the newcomer is dropped
    cdef readonly object offsets        # rows: b, its sum over time, its step sizes, their traces
    cdef double* offset
    cdef double* offset_sum
    cdef double* offset_eta
    cdef double* offset_trace
    cdef public long long t
    cdef int failure                    # why an example cannot be learned
    # Scratch for one example: rows of `width` numbers
    cdef object scratch
    cdef double* bare                   # f(x, .), then v(x, .)
    cdef double* scores                 # f(x, .) + b, as the rule sees it
    cdef double* xi                     # derivative of the loss, many outputs
    cdef double* chi
    cdef double* spare
    cdef double* alpha                  # new coefficients, dense form, for each channel

    cdef allocate(self)
    cdef bint adapts_step(self) noexcept nogil
    cdef Py_ssize_t labels(self) noexcept nogil
    cdef bint can_hold(self, const Piece* piece, Py_ssize_t i) noexcept nogil
    cdef bint evaluate(self, const Piece* piece, Py_ssize_t i) noexcept nogil
    cdef void carry_out(self, const Piece* piece, Py_ssize_t i, const Move* move, Py_ssize_t first,
                        Py_ssize_t second) noexcept nogil
    cdef void append(self, const Piece* piece, Py_ssize_t i, const double* alpha, Py_ssize_t first,
                     Py_ssize_t second) noexcept nogil
    cdef void move_offsets(self, const Move* move, Py_ssize_t first, Py_ssize_t second) noexcept nogil
    cdef void hessian_times(self, const double* vector, double weight) noexcept nogil
    cdef void stay_in_ball(self) noexcept nogil
    cdef void norms_without_newcomer(self, const Move* move) noexcept nogil
    cdef bint square_is_worn(self) noexcept nogil
    cdef void renew_square(self, double square) noexcept nogil
    cdef void mind_rounding(self) noexcept nogil
    cdef void forget_expiring(self) noexcept nogil
    cdef void forget(self, Py_ssize_t slot, double k_new, const double* alpha, Py_ssize_t first,
                     Py_ssize_t second) noexcept nogil
    cdef void spread(self, const double* alpha, Py_ssize_t first, Py_ssize_t second,
                     double* out) noexcept nogil
    cdef void expansion_apply(self, double* scores) noexcept nogil
    cdef int channel(self) noexcept nogil
    cdef averaged(self, true)
    cdef void score(self, const Piece* piece, Py_ssize_t i, double* out) noexcept nogil
