"""Tables: numbers per slot of a dictionary, which grow and move with the slots."""


cdef struct Aged:
    # A slot that somebody holds.
    long long birthday                  # the t at which its point was admitted
    Py_ssize_t slot                     # where it is


cdef class Table:
    cdef readonly object array          # (rows, capacity)
    cdef char* data                     # of the array; renewed whenever it moves
    cdef Py_ssize_t capacity            # slots that there is room for
    cdef Py_ssize_t rows                # numbers per slot
    cdef readonly object dtype          # of numbers
    cdef Py_ssize_t item                # bytes of a number
    cdef object coming                  # the array for the next move, if that is not one in place
    cdef char* coming_data              # of that array
    cdef Table next                     # another table that is cleared with a slot

    cdef void clear(self, Py_ssize_t slot) noexcept nogil
    cdef int set_array(self, array) except -1
    cdef int prepare(self, Py_ssize_t capacity, bint in_place) except -1
    cdef void move(self, const Aged* order, Py_ssize_t n, Py_ssize_t capacity) noexcept
    cdef void gather(self, char* new, const Aged* order, Py_ssize_t n, Py_ssize_t capacity) noexcept nogil


cdef class SquareTable(Table):
    pass


cdef class RowTable(Table):
    cdef Py_ssize_t columns             # the array is (capacity, columns)
