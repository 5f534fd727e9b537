"""A posterior on inducing points: f is known at some points, which come and go."""
cimport cython
from onlinekernels._core.formulas.factor cimport Factor
from onlinekernels._core.points.dictionary cimport Dictionary, Table, Tenant
from onlinekernels._core.points.kernelrows cimport KernelRows
from onlinekernels._core.functions.posterior cimport CHECKPOINT, Posterior, PosteriorScratch


cdef class InducingPoints(Tenant):
    cdef Dictionary dictionary
    cdef readonly Table roles               # int64: 1 + the coordinate of a point, -1 - s of pending row s, else 0
    cdef Table orders
    cdef Py_ssize_t* order                  # slots of the coordinates,
    cdef Py_ssize_t pending[CHECKPOINT]     # and of the pending rows

    cdef void become(self, const Py_ssize_t* slots, Py_ssize_t n) noexcept


@cython.final
cdef class PointsPosterior(Posterior):
    cdef readonly KernelRows rows
    cdef readonly Dictionary dictionary
    cdef readonly InducingPoints inducing
    cdef readonly long long most            # points that stay at a checkpoint
    cdef readonly double tolerance
    cdef readonly Factor factor             # L, with room for `capacity` points
    cdef long long born                     # of the latest example

    cdef int make_room(self, Py_ssize_t n) except -1
    cdef void read_rows(self, PosteriorScratch w, Py_ssize_t m) noexcept nogil
    cdef Py_ssize_t find_newcomers(self, PosteriorScratch w, double* V, Py_ssize_t* joining, double* rounding) except -1
    cdef int choose(self, PosteriorScratch w, mean, const long long* births, double rounding, unsigned char* gone) except -1
    cdef void prepare_rows(self, const double* V, const Py_ssize_t* joining, Py_ssize_t count) noexcept
    cdef void list_slots(self, Py_ssize_t* slots, const Py_ssize_t* joining, Py_ssize_t count) noexcept
    cdef Py_ssize_t forget_newcomers(self, PosteriorScratch w, double* V, Py_ssize_t* joining, Py_ssize_t count,
                                     const unsigned char* gone) except -1
    cdef const double* bring_back(self, PosteriorScratch w, double* U, double* S, Py_ssize_t size, const Py_ssize_t* kept, Py_ssize_t n,
                                  Py_ssize_t first) except NULL
