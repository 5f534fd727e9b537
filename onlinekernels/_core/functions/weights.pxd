"""Functions that are weight vectors."""
cimport cython
from onlinekernels._core.functions.function cimport N_SHARED, Function, Scratch
from onlinekernels._core.functions.maps cimport FeatureMap

cdef enum WeightsBuffer:
    FEATURES = N_SHARED
    CHANGES


@cython.final
cdef class WeightsScratch(Scratch):
    cdef double* changes                # coefficients of a term in f, over labels, then those in v


cdef class Weights(Function):
    cdef readonly Py_ssize_t length     # weights of one output
    cdef readonly object weights        # (channels * width, length) in frame coordinates
    cdef double* data                   # of `weights`
    cdef double scale                   # k(x, z) = scale <x, z>
    cdef readonly object steps          # (width, length): a step for each weight, or None
    cdef double* step_data              # of `steps`, or NULL
    cdef double first_step              # where these begin

    cdef double dot(self, Scratch w, Py_ssize_t i, const double* weights) noexcept nogil
    cdef double own_square(self, Scratch w, Py_ssize_t i) noexcept nogil
    cdef const double* features_of(self, Scratch w, Py_ssize_t i) noexcept nogil
    cdef void done_with_features(self, Scratch w, Py_ssize_t i) noexcept nogil
    cdef void add_to(self, Scratch w, Py_ssize_t i, double c, double* weights) noexcept nogil
    cdef begin(self, double scale, Py_ssize_t length)
    cdef int set_weights(self, weights, steps) except -1


@cython.final
cdef class SparseWeights(Weights):
    pass


@cython.final
cdef class MappedWeights(Weights):
    cdef readonly FeatureMap map        # phi
