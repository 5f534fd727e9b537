"""Two of the vector functions for Python: the exp for tests, the finiteness check for validation."""
import numpy as np
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer


def exp(x):
    """The library's own exp over an array: within 2 ulp of libm, in float32 for float32."""
    cdef const float[::1] narrow
    cdef float[::1] narrow_out
    cdef Py_ssize_t i
    if getattr(x, "dtype", None) == np.float32:
        narrow = np.ascontiguousarray(x).reshape(-1)
        narrow_out = np.empty(narrow.shape[0], dtype=np.float32)
        for i in range(narrow.shape[0]):
            narrow_out[i] = ok_exp_f(narrow[i])
        return np.asarray(narrow_out).reshape(np.shape(x))
    cdef const double[::1] values = np.ascontiguousarray(x, dtype=np.float64).reshape(-1)
    cdef double[::1] out = np.empty(values.shape[0])
    if values.shape[0]:
        ok_exp_array(&values[0], &out[0], values.shape[0])
    return np.asarray(out).reshape(np.shape(x))


def all_finite(array):
    """Whether a C-contiguous float32 or float64 array holds finite numbers only."""
    cdef Py_buffer view
    cdef bint finite
    PyObject_GetBuffer(array, &view, PyBUF_SIMPLE)
    if view.itemsize == sizeof(float):
        finite = ok_all_finite_f(<const float*> view.buf, view.len // <Py_ssize_t> sizeof(float))
    else:
        finite = ok_all_finite(<const double*> view.buf, view.len // <Py_ssize_t> sizeof(double))
    PyBuffer_Release(&view)
    return finite
