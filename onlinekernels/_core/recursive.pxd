"""Second order: the rule that takes an example into a posterior, and how it tells what it does not know."""
cimport cython
from onlinekernels._core.rules cimport Form, Rule
from onlinekernels._core.posterior cimport Posterior
from onlinekernels._core.functions cimport Example

cdef enum:
    LEVELS = 11         # coverages whose intervals are tracked


@cython.final
cdef class Recursive(Rule):
    cdef readonly Posterior posterior   # f, and how well it is known
    cdef readonly double noise          # variance of y about f
    cdef readonly bint estimates        # whether it is estimated while learning
    cdef readonly double usual          # then: how large an innovation usually is, in units of what it should be
    cdef readonly long long since       # then: examples since the first, or since the last doubt
    cdef readonly double reference      # then: variance of y about f as it was at the last checkpoint
    cdef readonly double surprise       # then: sum of squares of innovations in units of that, since the last checkpoint
    cdef readonly long long surprised   # of so many examples
    cdef readonly long long changes     # then: how often f was doubted
    cdef readonly object ratios         # (LEVELS, columns): what a Gaussian quantile must be multiplied by to cover as it says
    cdef double* ratio                  # of `ratios`
    cdef Py_ssize_t columns             # at least as many as outputs

    cdef int set_ratios(self, ratios) except -1
    cdef double tracked(self, Py_ssize_t output, int level, double share) noexcept nogil
    cdef bint is_robust(self) noexcept nogil
    cdef void follow_coverage(self, Py_ssize_t labels, double excess, Example e) noexcept nogil
    cdef void follow_noise(self, double square, Example e) noexcept nogil
    cdef void look_for_a_change(self, double square, Example e) noexcept nogil


@cython.final
cdef class Innovations(Form):
    cdef readonly Posterior posterior   # f, and how well it is known
