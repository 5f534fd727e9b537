"""What is usual of targets and of errors."""


cdef Py_ssize_t FEW                         # rows before the range of targets is known well enough to cut what lies far beyond it


cdef class Usual:
    cdef readonly object sums               # of squared errors, and of their weights
    cdef readonly object low, high          # range of the targets
    cdef readonly long long t


cdef double usual_square(const double* sums, Py_ssize_t targets, Py_ssize_t j, double low, double high) noexcept nogil
cdef void learn_usual(double* sums, Py_ssize_t targets, Py_ssize_t j, double error, double count, double size,
                      long long t) noexcept nogil
