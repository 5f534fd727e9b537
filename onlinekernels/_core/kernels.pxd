"""Kernels as small postfix programs over rows of inner products and distances."""
from onlinekernels._core.formulas.additive cimport ok_additive

cdef ok_additive additive_kernel(description) except *


cdef enum OpCode:
    LINEAR              # a <x, z> + b, a power of it if degree > 1
    GAUSSIAN            # exp(-a |x - z|^2)
    LAPLACIAN           # exp(-a |x - z|_1)
    CONSTANT            # a
    NOISE               # a for an example with itself, 0 otherwise
    PRECOMPUTED         # table[x, z]
    ADDITIVE            # sum_j K(x_j, z_j)
    # All before put a row on the stack, and these change what is there
    ADD                 # the two on top of the stack
    MULTIPLY
    SHIFT               # + a
    SCALE               # * a
    NORMALIZE           # k(x, z) / sqrt(k(x, x) k(z, z))


cdef enum:
    MAX_OPS = 64
    SQUARE = 0          # cached with a point: |x|^2 about the origin,
    ORIGIN_PRODUCT = 1            # <origin, x> about the origin,
    FIRST_NORM = 2      # and 1 / sqrt(k(x, x)) for each NORMALIZE


cdef struct Op:
    int code            # see above, also for `degree`, `a` and `b`
    int degree
    double a
    double b
    Py_ssize_t cached_at             # NORMALIZE: which cached_at of a point it uses
    const double* table         # PRECOMPUTED: a square matrix of `size` rows
    Py_ssize_t size             # rows of the table
    ok_additive additive        # ADDITIVE: K, on coordinates mapped to (x - low) * stretch
    const double* low           # of each coordinate, or NULL
    const double* stretch       # of each coordinate, or NULL


cdef class Program:
    cdef Op ops[MAX_OPS]        # in the order in which they are carried out
    cdef readonly int n_ops                 # how many
    cdef readonly Py_ssize_t n_cached        # numbers kept with every point
    cdef readonly int depth                 # rows of scratch that a row of values needs
    cdef readonly bint needs_inner          # whether it wants inner products,
    cdef readonly bint needs_l1             # or city-block distances
    cdef readonly bint needs_double         # indices: single precision would not hold them
    cdef readonly bint needs_places         # additive kernels: coordinates as they are, about 0
    cdef bint single                        # points are float32
    cdef readonly object origin             # in the points' precision, or None
    cdef double origin_square               # |origin|^2
    cdef const char* origin_data            # of `origin`, or NULL
    cdef Py_ssize_t n_features              # of points
    cdef list tables                        # keeps the arrays behind `table` alive
    cdef list bounds                        # of each operation, or None
    cdef dict mappings                      # keeps the arrays behind `low` and `stretch` alive

    cdef Op compile(self, description) except *
    cdef int fill(self, double[:, ::1] values, near, X, Z, const double[:, ::1] cached, const double[:, ::1] others,
                  const double[::1] own) except -1
    cdef void additive_row(self, const Op* op, const char* x, const char* points, Py_ssize_t n,
                           double* out) noexcept nogil
    cdef Py_ssize_t index(self, const char* x) noexcept nogil
    cdef double precise_dot(self, const char* x, const char* z) noexcept nogil
    cdef double cache_from(self, const char* x, double square, double origin_product, double* cached,
                           Py_ssize_t stride) noexcept nogil
    cdef double cached(self, const char* x, double* cached, Py_ssize_t stride) noexcept nogil
    cdef void row(self, const double* inner, const double* l1, const char* x,
                  const double* own_cached, Py_ssize_t own_stride, const char* points,
                  const double* cached, Py_ssize_t stride, Py_ssize_t n, double* work) noexcept nogil
