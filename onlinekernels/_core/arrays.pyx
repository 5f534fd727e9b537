"""Arrays for C: their addresses, their alignment, and checks of those that come from a file."""
import numpy as np
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer

cdef char* array_data(array) except? NULL:
    """Address of a C-contiguous array's elements, valid while the array lives."""
    cdef Py_buffer view
    PyObject_GetBuffer(array, &view, PyBUF_SIMPLE)
    cdef char* data = <char*> view.buf
    PyBuffer_Release(&view)
    return data


def aligned_empty(shape, dtype):
    """np.empty that starts at a cache line: vector loads that straddle two lines take half as long again."""
    cdef Py_ssize_t size = dtype.itemsize, n, start
    for n in shape:
        size *= n
    memory = np.empty(size + 64, dtype=np.uint8)
    start = -<Py_ssize_t> array_data(memory) & 63
    return memory[start:start + size].view(dtype).reshape(shape)


def check_array(array, name, dtype, shape):
    """An array of this kind and shape (-1: any length) with finite numbers, or ValueError."""
    if not isinstance(array, np.ndarray) or array.dtype != dtype:
        raise ValueError(f"{name} is not an array of {np.dtype(dtype)}")
    if array.ndim != len(shape) or any(want not in (-1, have) for want, have in zip(shape, array.shape)):
        raise ValueError(f"{name} has shape {array.shape}, not {shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} is not finite")
    return array


def check_number(number, name, least=None):
    """A finite float, at least `least` if that is given, or ValueError."""
    if type(number) is not float or not np.isfinite(number) or least is not None and number < least:
        raise ValueError(f"{name} is not a finite number" + ("" if least is None else f" of at least {least:g}"))
    return number
