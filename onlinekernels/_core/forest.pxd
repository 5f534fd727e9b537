"""The function f on trees: another expansion, for additive kernels."""
from onlinekernels._core.expansion cimport Expansion
from onlinekernels._core.tree cimport Tree


cdef class Forest(Expansion):
    cdef readonly Tree tree
    cdef object description             # the kernel, as `Tree` takes it
    cdef readonly double scale          # k(x, z) = scale * sum_j K(x_j, z_j)
    cdef readonly object low, stretch   # a point is mapped to (x - low) * stretch; or None
    cdef double* low_data
    cdef double* stretch_data
    cdef object scratch_rows, scratch_values, scratch_point
    cdef int* touched                   # rows of a term,
    cdef double* values_data            # its values there,
    cdef double* mapped                 # and its point, mapped

    cdef void map_point(self, const double* x, double* out) noexcept nogil
    cdef Py_ssize_t rows_of_term(self, const double* stored, Py_ssize_t stride, Py_ssize_t first,
                                 Py_ssize_t second) noexcept nogil
    cdef void plant(self, Py_ssize_t slot) noexcept nogil
    cdef void uproot(self, Py_ssize_t slot) noexcept nogil
    cdef Py_ssize_t rows_of_slot(self, Py_ssize_t slot) noexcept nogil
    cdef allocate(self)
    cdef reserve(self, Py_ssize_t newcomers)
    cdef checked_trees(self, state)
    cdef check_terms(self, loaded)
    cdef begin_from_trees(self, contents)
    cdef true_rows(self, stored, int channel)
    cdef component_at(self, Py_ssize_t j, keys, int channel)
