"""Forms: what of an example's scores a rule looks at, and on which labels its move falls."""
cimport cython
from onlinekernels._core.formulas.moves cimport Standing
from onlinekernels._core.functions.outputs cimport Outputs
from onlinekernels._core.rules.rule cimport Rule
from onlinekernels._core.run.example cimport Example


cdef class Form:
    cdef readonly Rule rule             # what moves along the direction that it finds
    cdef readonly Outputs outputs       # the labels
    cdef readonly object custom_loss    # a Python loss, or None if the loss is compiled
    cdef readonly Py_ssize_t targets    # numbers that y has for each example

    cdef bint decide(self, const Standing* now, const double* offset, double k, Example e) noexcept nogil
    cdef bint differentiate(self, const Standing* now, Example e) noexcept nogil
    cdef bint ask_custom_loss(self, Example e) noexcept with gil
    cdef int refuse_loss(self, what, Example e) except -1


@cython.final
cdef class OneOutput(Form):
    pass


@cython.final
cdef class Targets(Form):
    pass


cdef class LabelForm(Form):
    cdef readonly bint structured       # whether the loss uses the labels' distances; otherwise all are 1
    cdef object rank_array              # keeps `ranks` alive
    cdef const long long* ranks         # place of each of the first labels among equals, or NULL
    cdef Py_ssize_t n_ranked            # how many these are

    cdef void find_distances(self, Py_ssize_t y, Example e) noexcept nogil
    cdef bint goes_first(self, Py_ssize_t a, Py_ssize_t b) noexcept nogil
    cdef Py_ssize_t runner_up(self, const Standing* now, const double* offset, Py_ssize_t y, double shrink,
                              Example e) noexcept nogil
    cdef void look_at_prediction(self, const Standing* now, const double* offset, Py_ssize_t y, Example e) noexcept nogil


@cython.final
cdef class LabelPair(LabelForm):
    cdef bint look_at(self, const Standing* now, Py_ssize_t label, Py_ssize_t best, double k, Example e) noexcept nogil


@cython.final
cdef class AllLabels(LabelForm):
    cdef bint differentiate_all(self, const Standing* now, Py_ssize_t y, Example e) noexcept nogil
    cdef bint ask_for_all(self, Py_ssize_t y, Example e) noexcept with gil
