"""Losses over arrays, and the codes by which Python names a loss to the engine."""
import numpy as np

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
