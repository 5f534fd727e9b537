"""A posterior on features: f is known through its weights."""
cimport cython
from onlinekernels._core.maps cimport FeatureMap
from onlinekernels._core.posterior cimport Posterior


@cython.final
cdef class WeightsPosterior(Posterior):
    cdef readonly FeatureMap map            # phi
    cdef readonly double scale              # weights are shown as those of f = scale <w, x>
