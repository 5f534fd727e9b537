"""A trial: is the model better than a constant?"""
cimport cython
from onlinekernels._core.formulas.losses cimport Loss
from onlinekernels._core.functions cimport Example, Outputs


@cython.final
cdef class Trial:
    cdef bint regression            # y is a number, or several
    cdef bint two_classes           # with one score, -1 and +1
    cdef object constants           # what a constant would say: means of the targets, or how frequent each class is
    cdef double* says               # of `constants`
    cdef bint failed                # the latest verdict
    cdef long long block            # examples that are looked at together; 0 if the trial is over
    cdef long long rows             # of them so far
    cdef double loss                # sums over the block: of the model's loss,
    cdef double constant            # of the constant's,
    cdef double constant_square     # of the squares of that,
    cdef double square              # and of the squared differences
    cdef double weight              # of the examples in the block,
    cdef double total               # and of all
    cdef Py_ssize_t leader          # the most frequent class
    cdef long long lost             # the latest block that was lost: examples,
    cdef double lost_by             # mean loss of the model,
    cdef double lost_to             # and of the constant

    cdef int set_constants(self, constants) except -1
    cdef void hold(self, const Loss* loss, Outputs outputs, Example e) noexcept nogil
    cdef bint is_wrong(self, Outputs outputs, Example e, Py_ssize_t y) noexcept nogil
    cdef void take_in(self, double loss, double constant, double weight) noexcept nogil
    cdef void judge(self) noexcept nogil
