"""Random Fourier features: cosines and sines whose inner products approximate a kernel of x - z."""
cimport cython
from onlinekernels._core.functions.maps cimport FeatureMap
from onlinekernels._core.run.piece cimport Piece


@cython.final
cdef class FourierMap(FeatureMap):
    cdef object draw                        # frequencies of so many columns
    cdef readonly object frequencies        # (n_features, size / 2)
    cdef object of_rows                     # the same in the precision of rows
    cdef readonly object phases             # (size / 2,): added to those of every example
    cdef const double* frequency            # of `frequencies`
    cdef const double* phase                # of `phases`
    cdef bint shifted                       # whether a phase is not 0
    cdef double factor                      # of cosines and sines

    cdef void row_phases(self, Piece piece, Py_ssize_t i, double* out) noexcept nogil
