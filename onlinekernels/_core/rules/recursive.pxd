"""Second order: the rule that takes an example into a posterior, and how it tells what it does not know."""
cimport cython
from onlinekernels._core.rules.forms cimport Form
from onlinekernels._core.functions.posterior cimport Posterior
from onlinekernels._core.rules.rule cimport Rule
from onlinekernels._core.run.example cimport Example

cdef enum:
    LEVELS = 11         # coverages whose intervals are tracked


@cython.final
cdef class Recursive(Rule):
    cdef readonly Posterior posterior
    cdef readonly double noise          # variance of y about f
    cdef readonly bint estimates        # whether it is estimated while learning
    cdef readonly object ratios         # (LEVELS, columns): what a Gaussian quantile must be multiplied by to cover as it says
    cdef double* ratio
    cdef Py_ssize_t columns             # at least as many as outputs

    cdef int set_ratios(self, ratios) except -1
    cdef double tracked(self, Py_ssize_t output, int level, double share) noexcept nogil
    cdef void follow_coverage(self, Py_ssize_t labels, Example e) noexcept nogil
    cdef void follow_noise(self, long long t, Py_ssize_t labels, Example e) noexcept nogil


@cython.final
cdef class Innovations(Form):
    cdef readonly Posterior posterior
