"""Functions that are weight vectors."""
cimport cython
from onlinekernels._core.function cimport Function
from onlinekernels._core.maps cimport FeatureMap
from onlinekernels._core.workspace cimport Workspace


cdef class Weights(Function):
    cdef readonly Py_ssize_t length     # weights of one output
    cdef readonly object weights        # (channels * width, length) in frame coordinates
    cdef double* data
    cdef double scale                   # k(x, z) = scale <x, z>

    cdef double dot(self, Workspace w, Py_ssize_t i, const double* weights) noexcept nogil
    cdef double own_square(self, Workspace w, Py_ssize_t i) noexcept nogil
    cdef void add_to(self, Workspace w, Py_ssize_t i, double c, double* weights) noexcept nogil
    cdef begin(self, double scale, Py_ssize_t length)
    cdef set_weights(self, weights)


@cython.final
cdef class SparseWeights(Weights):
    pass


@cython.final
cdef class MappedWeights(Weights):
    cdef readonly FeatureMap map
