"""Memory of one call: nothing that belongs to a call lives in the model."""
cimport cython

cdef enum:
    MOST_BUFFERS = 24       # more than any of them numbers; `buffer` looks


cdef class Memory:
    cdef list blocks        # arrays that own the memory
    cdef char* data[MOST_BUFFERS] # where each buffer begins, at a cache line
    cdef Py_ssize_t bytes[MOST_BUFFERS] # how long each is

    @cython.final
    cdef char* buffer(self, int which, Py_ssize_t size) except NULL
    @cython.final
    cdef array(self, char* data, Py_ssize_t rows, Py_ssize_t columns, dtype)
