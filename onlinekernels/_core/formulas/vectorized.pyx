"""Formulas over arrays, for Python: losses, class probabilities, and two of the vector functions."""
import numpy as np
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from onlinekernels._core.formulas.dense cimport mistake_gradient, softmax
from onlinekernels._core.formulas.losses cimport (Loss, LossName, loss_curvature, loss_derivative, loss_names,
                                                  loss_scalar_gradient, loss_value)
from onlinekernels._core.formulas.vecmath cimport ok_all_finite, ok_all_finite_f, ok_exp_array, ok_exp_f

# ---- Losses over arrays, and the codes by which Python names a loss to the engine ----------------

CODES = {}  # as the header names them
cdef const LossName* named = loss_names
while named.name != NULL:
    CODES[named.name.decode()] = named.code
    named += 1

ctypedef double (*PointFunction)(const Loss*, double, double) noexcept nogil


cdef over_arrays(PointFunction function, int code, scalar, double nu, score, y):
    cdef Loss loss = Loss(code, 0.0, nu, 0.0)
    cdef const double[::1] z, target, scalars
    cdef double[::1] out
    cdef Py_ssize_t i
    arrays = np.broadcast_arrays(*[np.asarray(number, dtype=np.float64) for number in (score, y, scalar)])
    result = np.empty(arrays[0].shape)
    z, target, scalars = [np.ascontiguousarray(array).ravel() for array in arrays]
    out = result.ravel()
    with nogil:
        for i in range(out.shape[0]):
            loss.scalar = scalars[i]
            out[i] = function(&loss, z[i], target[i])
    return result if result.ndim else float(result)


def value(int code, scalar, double nu, score, y):
    return over_arrays(loss_value, code, scalar, nu, score, y)


def derivative(int code, scalar, double nu, score, y):
    return over_arrays(loss_derivative, code, scalar, nu, score, y)


def curvature(int code, scalar, double nu, score, y):
    return over_arrays(loss_curvature, code, scalar, nu, score, y)


def scalar_gradient(int code, scalar, double nu, score, y):
    return over_arrays(loss_scalar_gradient, code, scalar, nu, score, y)


# ---- Class probabilities and mistakes over arrays, for Python ------------------------------------

def probabilities(scores):
    """Softmax of each row of a matrix, V (22)."""
    cdef const double[:, ::1] z = np.ascontiguousarray(scores, dtype=np.float64)
    cdef double[:, ::1] p = np.empty((z.shape[0], z.shape[1]))
    cdef Py_ssize_t i
    if z.shape[1]:
        for i in range(z.shape[0]):
            softmax(&z[i, 0], z.shape[1], &p[i, 0])
    return np.asarray(p)


def mistake_gradients(scores, y):
    """Ultraconservative updates for each row of a matrix, and its label's index."""
    cdef const double[:, ::1] z = np.ascontiguousarray(scores, dtype=np.float64)
    cdef const long long[::1] label = np.ascontiguousarray(y, dtype=np.int64)
    cdef double[:, ::1] out = np.zeros((z.shape[0], z.shape[1]))
    cdef Py_ssize_t i
    for i in range(z.shape[0]):
        if not 0 <= label[i] < z.shape[1]:
            raise IndexError(f"there is no class {label[i]}")
        mistake_gradient(&z[i, 0], label[i], z.shape[1], &out[i, 0])
    return np.asarray(out)


# ---- Two of the vector functions for Python ------------------------------------------------------

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
