"""Feature maps: examples as rows of features, whose inner products are a kernel."""
cimport cython
from onlinekernels._core.points.dictionary cimport Dictionary, Table, Tenant
from onlinekernels._core.points.kernels cimport Program
from onlinekernels._core.points.points cimport DensePoints
from onlinekernels._core.points.sparse cimport SparsePoints
from onlinekernels._core.run.piece cimport Piece


cdef class FeatureMap:
    cdef readonly Py_ssize_t n_features     # of examples
    cdef readonly Py_ssize_t size           # features that they become
    cdef readonly bint sparse               # examples are sparse rows
    cdef readonly bint single               # examples are float32
    cdef readonly object dtype              # the same
    cdef Py_ssize_t row_bytes               # of a dense one
    cdef readonly str name                  # what names in the state begin with
    cdef readonly Py_ssize_t depth          # pieces below the call's that it needs

    cdef int map_rows(self, Piece piece, Py_ssize_t first, Py_ssize_t m, bint learning, double* out,
                      Py_ssize_t stride) except -1
    cdef bint grows(self) noexcept nogil
    cdef change(self, Piece piece, Py_ssize_t first)
    cdef void carry_out_change(self) noexcept
    cdef void admit(self, Piece piece) noexcept nogil
    # The same for all
    cdef int make_ready(self, Piece piece) except -1
    cdef void admit_below(self, Piece piece, Py_ssize_t levels) noexcept nogil


@cython.final
cdef class LinearMap(FeatureMap):
    cdef double factor


@cython.final
cdef class ConstantMap(FeatureMap):
    cdef double value


@cython.final
cdef class FourierMap(FeatureMap):
    cdef object draw                        # frequencies of so many columns
    cdef readonly object frequencies        # (n_features, size / 2)
    cdef object of_rows                     # the same in the precision of rows
    cdef readonly object phases             # (size / 2,): added to those of every example
    cdef const double* frequency
    cdef const double* phase
    cdef bint shifted                       # whether a phase is not 0
    cdef double factor

    cdef void row_phases(self, Piece piece, Py_ssize_t i, double* out) noexcept nogil


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


@cython.final
cdef class NormalizedMap(FeatureMap):
    cdef readonly FeatureMap inner
    cdef double factor


@cython.final
cdef class JoinedMap(FeatureMap):
    cdef readonly FeatureMap left
    cdef readonly FeatureMap right

    cdef Piece rows_of_right(self, Piece piece)
