"""Features of a kernel from its values with some examples, the inducing points."""
cimport cython
from onlinekernels._core.formulas.factor cimport Factor
from onlinekernels._core.functions.maps cimport FeatureMap
from onlinekernels._core.points.dictionary cimport Dictionary, Tenant
from onlinekernels._core.points.kernelrows cimport CompiledRows
from onlinekernels._core.run.piece cimport Piece


@cython.final
cdef class NystroemMap(FeatureMap):
    cdef tuple arguments                    # of the constructor, for a successor
    cdef NystroemMap successor              # what the map is about to be; None for what it is
    cdef readonly Dictionary inducing       # the points,
    cdef CompiledRows rows                  # the kernel over them,
    cdef Tenant tenant                      # and who holds them
    cdef readonly Factor factor             # L
    cdef readonly object inverse            # of L once the points are fixed; None while they come
    cdef const double* inverse_data         # of `inverse`
    cdef object of_rows                     # the inverse in the precision of rows
    cdef double dependent                   # residual variances, of k(x, x), of what inducing points span
    cdef double nearly_dependent            # and of what they nearly span
    cdef double scale                       # of features
    cdef bint tells_examples_apart          # Noise: an equal row is another example

    cdef int begin(self, origin) except -1
    cdef Py_ssize_t twin(self, Piece below) noexcept nogil
    cdef double read(self, Piece below, Py_ssize_t i, double* out) noexcept nogil
    cdef int grow_rows(self, Piece below, Py_ssize_t m, bint learning, double* out, Py_ssize_t stride) except -1
    cdef int project_rows(self, Piece below, Py_ssize_t m, double* out, Py_ssize_t stride) except -1
    cdef fix(self)
