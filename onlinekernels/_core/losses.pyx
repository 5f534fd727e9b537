"""Losses over arrays, and the codes by which Python names a loss to the engine."""
import numpy as np

CODES = {
    "Hinge": HINGE,
    "NuHinge": NU_HINGE,
    "Logistic": LOGISTIC,
    "Novelty": NOVELTY,
    "NuNovelty": NU_NOVELTY,
    "Squared": SQUARED,
    "Absolute": ABSOLUTE,
    "Insensitive": INSENSITIVE,
    "NuInsensitive": NU_INSENSITIVE,
    "SquaredInsensitive": SQUARED_INSENSITIVE,
    "Huber": HUBER,
    "NuHuber": NU_HUBER,
    "MulticlassHinge": PAIR_HINGE,
    "NuMulticlassHinge": NU_PAIR_HINGE,
    "GraphHinge": PAIR_HINGE,
    "NuGraphHinge": NU_PAIR_HINGE,
    "MulticlassLogistic": MULTICLASS_LOGISTIC,
}

ctypedef double (*PointFunction)(const Loss*, double, double) noexcept nogil


cdef over_arrays(PointFunction function, int code, double scalar, double nu, score, y):
    cdef Loss loss = Loss(code, scalar, nu)
    cdef const double[::1] z, target
    cdef double[::1] out
    cdef Py_ssize_t i
    score, y = np.broadcast_arrays(np.asarray(score, dtype=np.float64),
                                   np.asarray(y, dtype=np.float64))
    result = np.empty(score.shape)
    z, target, out = np.ascontiguousarray(score).ravel(), np.ascontiguousarray(y).ravel(), result.ravel()
    with nogil:
        for i in range(out.shape[0]):
            out[i] = function(&loss, z[i], target[i])
    return result if result.ndim else float(result)


def value(int code, double scalar, double nu, score, y):
    return over_arrays(loss_value, code, scalar, nu, score, y)


def derivative(int code, double scalar, double nu, score, y):
    return over_arrays(loss_derivative, code, scalar, nu, score, y)


def curvature(int code, double scalar, double nu, score, y):
    return over_arrays(loss_curvature, code, scalar, nu, score, y)


def scalar_gradient(int code, double scalar, double nu, score, y):
    return over_arrays(loss_scalar_gradient, code, scalar, nu, score, y)
