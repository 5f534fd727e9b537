"""A posterior on inducing points: f is known at some points, which come and go."""
cimport cython
from onlinekernels._core.linalg cimport Factor
from onlinekernels._core.dictionary cimport Dictionary, Observer, Table
from onlinekernels._core.posterior cimport CHECKPOINT, Posterior, PosteriorScratch


cdef class InducingPoints(Observer):
    cdef Dictionary dictionary              # whose slots they are
    cdef readonly Table roles               # int64: 1 + the coordinate of a point, -1 - s of pending row s, else 0
    cdef Table orders                       # intp: the memory of `order`
    cdef Py_ssize_t* order                  # slots of the coordinates,
    cdef Py_ssize_t pending[CHECKPOINT]     # and of the pending rows

    cdef void become(self, const Py_ssize_t* slots, Py_ssize_t n) noexcept


@cython.final
cdef class PointsPosterior(Posterior):
    cdef readonly Dictionary dictionary     # the kernel, over the points and the pending rows,
    cdef readonly InducingPoints inducing   # whose slots it knows
    cdef readonly long long most            # points that stay at a checkpoint
    cdef readonly double tolerance          # a point joins above this variance given f at all others, relative to k(x, x)
    cdef readonly Factor factor             # L, with room for `capacity` points
    cdef long long born                     # birthday of the latest example

    cdef int make_room(self, Py_ssize_t n) except -1
    cdef void read_rows(self, PosteriorScratch w, Py_ssize_t m) noexcept nogil
    cdef void prepare_rows(self, const double* V, const Py_ssize_t* joining, Py_ssize_t count) noexcept
    cdef void list_slots(self, Py_ssize_t* slots, const Py_ssize_t* joining, Py_ssize_t count) noexcept
