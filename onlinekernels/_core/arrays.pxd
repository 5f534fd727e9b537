"""Arrays for C: their addresses, their alignment, and checks of those that come from a file."""


cdef char* array_data(array) except? NULL
