"""The hypothesis: a function with offsets, a loss and a rule."""
cimport cython
from onlinekernels._core.rules cimport Form, Rule
from onlinekernels._core.functions cimport Example, Function, Scratch
from onlinekernels._core.formulas.moves cimport Norms, Standing
from onlinekernels._core.run.norms cimport ExactNorms
from onlinekernels._core.run.trial cimport Trial
from onlinekernels._core.run.watch cimport Watch


@cython.final
cdef class Hypothesis:
    cdef readonly Function function     # f
    cdef readonly Rule rule             # what an example does to it
    cdef readonly Form form             # which scores the rule looks at
    cdef Standing now                   # t, the loss and the norms as they are now
    cdef readonly bint averages         # whether the average of all hypotheses predicts
    cdef ExactNorms norms_of_terms      # or None: nobody needs them
    cdef readonly bint exact_norms      # the same
    cdef readonly bint regression       # whether y is a number, or several
    cdef readonly double radius         # |f| stays within this; 0 for no bound
    cdef Watch watch                    # signs that learning goes wrong
    cdef readonly Trial trial           # whether it is better than a constant; None if nobody asks
    cdef bint follows_norm              # whether `followed` is |f|^2 after every move, for a call that asks for it
    cdef Norms followed                 # |f|^2 for that call
    cdef bint shows_latest              # whether Python sees the latest hypothesis, and not the average
    cdef Norms before_joining           # the norms before the latest label joined
    cdef readonly object offsets        # rows: b, its sum over time
    cdef double* offset                 # b, row 0 of `offsets`
    cdef double* offset_sum             # row 1 of it
    cdef double scalar_sum              # that of the loss's scalar

    cdef int set_offsets(self, offsets) except -1
    cdef int make_ready(self, Scratch w, Example e) except -1
    # The three moves
    cdef bint evaluate(self, Scratch w, Example e, Py_ssize_t i) noexcept nogil
    cdef bint decide(self, Scratch w, Example e, Py_ssize_t i, const double* y, double weight) noexcept nogil
    cdef void carry_out(self, Scratch w, Example e, Py_ssize_t i) noexcept nogil
    # Parts of them
    cdef void let_join(self, Py_ssize_t joined) noexcept nogil
    cdef void undo_joining(self, Py_ssize_t joined) noexcept nogil
    cdef bint all_is_finite(self, Example e, double k) noexcept nogil
    cdef void add_average(self, Example e) noexcept nogil
    cdef void append(self, Scratch w, Example e, Py_ssize_t i) noexcept nogil
    cdef void let_expire(self, Scratch w) noexcept nogil
    cdef void stay_in_ball(self, Scratch w) noexcept nogil
    cdef double square(self) noexcept nogil
    cdef void follow_norm(self, Example e, double k) noexcept nogil
    cdef int noticed(self) noexcept nogil
    cpdef double largest_score(self) noexcept nogil
    # The function that predicts
    cdef int channel(self) noexcept nogil
    cdef averaged(self, true)
    cdef void score(self, Scratch w, Example e, Py_ssize_t i, double* out) noexcept nogil
