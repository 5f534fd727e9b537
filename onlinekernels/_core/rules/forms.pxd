"""Forms: what of an example's scores a rule looks at, and on which labels its move falls."""
cimport cython
from onlinekernels._core.formulas.moves cimport Standing
from onlinekernels._core.functions.outputs cimport Outputs
from onlinekernels._core.rules.rules cimport Rule
from onlinekernels._core.run.workspace cimport Workspace


cdef class Form:
    cdef readonly Rule rule
    cdef readonly Outputs outputs
    cdef readonly object custom_loss    # a Python loss, or None if the loss is compiled
    cdef readonly Py_ssize_t targets    # numbers that y has for each example

    cdef bint decide(self, const Standing* now, const double* offset, const double* y, double weight, double k,
                     Workspace w) noexcept nogil
    cdef bint differentiate(self, const Standing* now, Workspace w) noexcept nogil
    cdef bint ask_custom_loss(self, Workspace w) noexcept with gil


@cython.final
cdef class OneOutput(Form):
    pass


@cython.final
cdef class Targets(Form):
    pass


cdef class ManyLabels(Form):
    cdef readonly bint structured       # whether the loss uses the labels' distances; otherwise all are 1
    cdef object rank_array
    cdef const long long* ranks         # place of each of the first labels among equals, or NULL
    cdef Py_ssize_t n_ranked

    cdef void distances(self, Py_ssize_t y, Workspace w, double* out) noexcept nogil
    cdef bint goes_first(self, Py_ssize_t a, Py_ssize_t b) noexcept nogil
    cdef Py_ssize_t runner_up(self, const Standing* now, const double* offset, Py_ssize_t y, const double* distance,
                              double shrink, Workspace w) noexcept nogil
    cdef void look_at_prediction(self, const Standing* now, const double* offset, Py_ssize_t y, const double* distance,
                                 Workspace w) noexcept nogil


@cython.final
cdef class LabelPair(ManyLabels):
    cdef bint look_at(self, const Standing* now, Py_ssize_t label, Py_ssize_t best, double k, Workspace w) noexcept nogil


@cython.final
cdef class AllLabels(ManyLabels):
    cdef bint differentiate_all(self, const Standing* now, Py_ssize_t y, double weight, Workspace w) noexcept nogil
    cdef bint ask_for_all(self, Py_ssize_t y, double weight, Workspace w) noexcept with gil
