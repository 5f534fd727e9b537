"""Rules: what an example does to a function. Formulas of several rules are in ``moves`` and ``dense``."""
cimport cython
from onlinekernels._core.formulas.moves cimport Standing, Step
from onlinekernels._core.functions cimport Example, Function, Outputs, Scratch

cdef enum Status:
    # Of learning, when something has gone wrong; see `Watch`
    NO_STATUS = 0
    SCALAR_BELOW = 1    # below all scores (margins), or below all errors (widths)
    SCALAR_ABOVE = 2
    DIVERGED = 3
    STALLED = 4
    RESTARTED = 5       # f would have grown beyond what numbers can hold
    NO_BETTER = 6       # than a constant
    OUT_OF_REACH = 7    # a margin that no f can have

cdef class Rule:
    cdef Step step                      # the learning rate
    cdef object own_size                # eta_t by a Python function of t, or None
    cdef object sizes                   # its table for the examples that come,
    cdef long long last_size            # up to this one,
    cdef object size_error              # because this was raised for the next
    cdef readonly bint has_trace        # whether the function's second channel is the gradient trace v
    cdef readonly bint looks_at_shrunk      # whether it looks at the scores of the hypothesis that it will have shrunk
    cdef bint moves_all                 # whether it moves all labels at once
    cdef readonly bint asks_loss        # whether it asks a Python loss itself, which is a rule's own way to move
    cdef readonly int status           # what it has noticed: a `Status`

    @cython.final
    cdef int open_steps(self, long long t, Py_ssize_t n) except -1
    @cython.final
    cdef bint has_step(self, long long t, Example e) noexcept nogil
    cdef void miss_step(self, Example e) noexcept with gil
    # Decide: write to the example and to nothing else
    cdef void move(self, const Standing* now, Example e) noexcept nogil
    cdef void move_all(self, const Standing* now, Outputs outputs, Py_ssize_t y, double k, Example e) noexcept nogil
    cdef void look_back(self, const Standing* now, Example e) noexcept nogil
    cdef double shrink(self, long long t, Example e) noexcept nogil
    cdef bint decide_offsets(self, Py_ssize_t labels, const double* offset, Example e) noexcept nogil
    cdef bint is_finite(self, Example e) noexcept nogil
    cdef Py_ssize_t decision_size(self, Py_ssize_t width) noexcept
    # Carry out
    cdef void accept(self, const Standing* now, Py_ssize_t labels, double* offset, Example e) noexcept nogil
    cdef void follow(self, Scratch w, Example e) noexcept nogil
    # Tell
    cdef double step_at(self, long long t) noexcept nogil
    cdef double longest(self) noexcept nogil
    cdef double noise_of_targets(self) noexcept nogil
    cdef double half_width(self, Example e, Py_ssize_t output, int level, double share, double factor) noexcept nogil
    cdef int stand_on(self, Function function) except -1

cdef class Form:
    cdef readonly Rule rule             # what moves along the direction that it finds
    cdef readonly Outputs outputs       # the labels
    cdef readonly object custom_loss    # a Python loss, or None if the loss is compiled
    cdef readonly Py_ssize_t targets    # numbers that y has for each example

    cdef bint decide(self, const Standing* now, const double* offset, double k, Example e) noexcept nogil
    @cython.final
    cdef bint move(self, const Standing* now, Example e) noexcept nogil
    @cython.final
    cdef bint move_along(self, const Standing* now, Example e) noexcept nogil
    cdef bint differentiate(self, const Standing* now, Example e) noexcept nogil
    cdef bint ask_custom_loss(self, Example e) noexcept with gil


@cython.final
cdef class OneOutput(Form):
    pass
