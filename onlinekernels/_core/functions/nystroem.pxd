"""Features of a kernel from its values with some examples, the inducing points."""
cimport cython
from onlinekernels._core.functions.maps cimport FeatureMap
from onlinekernels._core.points.dictionary cimport Dictionary, Table, Tenant
from onlinekernels._core.points.kernels cimport Program
from onlinekernels._core.points.points cimport DensePoints
from onlinekernels._core.points.sparse cimport SparsePoints
from onlinekernels._core.run.piece cimport Piece


@cython.final
cdef class NystroemMap(FeatureMap):
    cdef tuple arguments
    cdef NystroemMap successor              # what the map is about to be; None for what it is
    cdef Program program
    cdef readonly Dictionary landmarks
    cdef DensePoints dense                  # the same, or None
    cdef SparsePoints spread                # the same, or None
    cdef Tenant tenant                      # who holds the landmarks
    cdef Table facts                        # what the kernel keeps with each of them
    cdef readonly object factor             # (capacity, capacity): L, lower triangular
    cdef double* lower
    cdef Py_ssize_t capacity
    cdef readonly object inverse            # of L once the landmarks are fixed; None while they come
    cdef const double* inverse_data
    cdef object of_rows                     # the inverse in the precision of rows
    cdef double dependent                   # residual variances, of k(x, x), of what landmarks span
    cdef double nearly_dependent
    cdef double scale                       # of features
    cdef bint tells_examples_apart          # Noise: an equal row is another example

    cdef int set_factor(self, factor) except -1
    cdef int begin(self, origin) except -1
    cdef Py_ssize_t twin(self, Piece below) noexcept nogil
    cdef int make_work(self, Piece below, Py_ssize_t m) except -1
    cdef void kernel_row(self, Piece below, Py_ssize_t i, double* out) noexcept nogil
    cdef int grow_rows(self, Piece below, Py_ssize_t m, bint learning, double* out, Py_ssize_t stride) except -1
    cdef int project_rows(self, Piece below, Py_ssize_t m, double* out, Py_ssize_t stride) except -1
    cdef fix(self)
