"""A piece: consecutive rows that are learned or evaluated in one loop without the interpreter, as a dictionary opens them."""
cimport cython
from onlinekernels._core.run.memory cimport Memory

cdef enum PieceBuffer:
    CENTERED            # rows about the origin, or as they came
    SCALED              # rows behind a scaler
    SQUARES
    TILTS
    INNER
    OWN_INNER
    L1
    OWN_L1
    DENSE_ROW
    FACTS
    OWN
    WORK
    WIDENED
    SLOT_INNER
    SLOT_L1
    SLOT_WORK
    COORDINATES


@cython.final
cdef class Piece(Memory):
    # The rows of the call that it is a piece of
    cdef object source                  # an array, sparse rows or a list of objects
    cdef const char* source_data        # of an array, or of a piece of it behind a scaler
    cdef readonly Piece under           # the same rows, for the inducing points of a feature map
    # Its own rows
    cdef Py_ssize_t rows                # how many
    cdef const char* x                  # as the dictionary keeps points
    cdef const long long* start         # of sparse rows: non-zeros of row i are those from start[i] to start[i + 1]
    cdef const int* index               # their columns,
    cdef const double* value            # and values
    cdef double* dense_row              # one sparse row spread out; 0 between uses
    cdef object example                 # the object that is being learned
    cdef double* square                 # |x|^2 about the origin
    cdef double* tilt                   # <origin, x> about the origin
    cdef double* own                    # k(x, x)
    cdef Py_ssize_t slot                # of the row that is being learned, -1 as long as it has none
    cdef bint joins                     # whether that row becomes an inducing point
    # With the slots of the dictionary, and with each other
    cdef Py_ssize_t first               # slot of column 0
    cdef Py_ssize_t stride              # row length of `inner` and `l1`
    cdef char* inner                    # (rows, stride): inner products with slots from `first` on
    cdef char* own_inner                # (rows, rows)
    cdef double* l1                     # the same for city-block distances
    cdef double* own_l1                 # the same for the rows with each other
    cdef bint turned                    # inner is (slots, stride) instead: a row for each slot
    cdef bint narrow                    # inner is float32 and must be widened
    cdef double* widened                # one row of it as float64
    # Kernel values
    cdef double* facts                  # (n_facts, rows): what the kernel wants to know of each row
    cdef double* work                   # a row of kernel values, and what it takes to compute them
    cdef const double* values           # of the row that was looked at last, with all slots in use
    cdef object values_array            # keeps these alive if they came from Python
    cdef double* coordinates            # with the inducing points of a feature map
    # Of the point of a slot with all slots in use
    cdef double* slot_inner             # inner products
    cdef double* slot_l1                # city-block distances
    cdef double* slot_work              # kernel values, and what it takes to compute them

    cdef void begin(self, Py_ssize_t rows) noexcept
    cdef void let_go(self) noexcept


cdef Py_ssize_t apart(Py_ssize_t width) noexcept
