"""The protocol of everything that learns."""
from onlinekernels._core.combiners cimport IntervalTracker


cdef class Backend:
    cdef public bint holds              # whether the row that is trained next shall not be among those that are kept
    cdef readonly str task              # "classes", "numbers" or "novelty"
    cdef readonly Py_ssize_t targets    # numbers to predict; 0 for labels
    cdef readonly Py_ssize_t groups     # deviations of a row
    cdef public Py_ssize_t n_seen       # labels that have been learned
    cdef readonly IntervalTracker intervals     # that follows innovations, or None
    cdef readonly Py_ssize_t n_features # of dense rows; 0 where they are sparse, or nobody asks
    cdef object one                     # answers for a single row
    cdef object examples                # of the call,
    cdef const double* data             # the same, if they are dense
    cdef public Py_ssize_t done         # rows of the latest call that are learned

    # A call
    cdef int attach(self, examples) except -1
    cdef int detach(self) except -1
    # A block of its rows: `open`, which may fail and then has changed nothing; all else cannot fail
    cdef Py_ssize_t rows_at_once(self) except -1
    cdef int open(self, Py_ssize_t first, Py_ssize_t n, const double* y, const double* weights,
                  Py_ssize_t labels) except -1
    cdef bint test(self, Py_ssize_t i, double* scores, double* deviations) noexcept nogil
    cdef bint train(self, Py_ssize_t i) noexcept nogil
    cdef void commit(self, Py_ssize_t n) noexcept
    cdef bint diverges(self) noexcept nogil
    cdef object signal(self)
    cdef object failure(self)
    # As of now
    cdef int evaluate(self, examples, Py_ssize_t n, double* scores, Py_ssize_t stride, double* deviations,
                      Py_ssize_t spread) except -1
    # Between blocks
    cdef int prepare(self) except -1
    # When it is made
    cpdef Py_ssize_t stagger(self, Py_ssize_t place) noexcept
    # For Python
    cdef Py_ssize_t outputs_for(self, Py_ssize_t labels) noexcept nogil
    cdef Py_ssize_t outputs_now(self) noexcept nogil
    cdef Py_ssize_t open_block(self, Py_ssize_t first, Py_ssize_t n, const double* y, const double* weights,
                               Py_ssize_t labels) except -1
    cdef void run_block(self, Py_ssize_t n, const double* y, double* scores, Py_ssize_t stride, double* deviations,
                        double* innovations) noexcept nogil
    cdef int resolve(self) except -1
    cdef int trace_block(self, dict trace, Py_ssize_t first, Py_ssize_t rows, Py_ssize_t n) except -1


cdef class RowBackend(Backend):
    cdef const double* rows             # of the block
    cdef const double* y
    cdef const double* weights

    cdef void answer(self, const double* x, double* scores) noexcept nogil
