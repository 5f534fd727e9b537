"""Functions: what a representation of f must be able to do."""
from onlinekernels._core.formulas.frame cimport Frame
from onlinekernels._core.formulas.moves cimport Descent
from onlinekernels._core.functions.outputs cimport Outputs
from onlinekernels._core.run.workspace cimport Workspace


cdef class Function:
    cdef readonly str keeps             # what f is kept as: "terms", "weights" or "knots"
    cdef readonly Outputs outputs       # the labels
    cdef readonly Py_ssize_t width      # outputs that there is room for
    cdef readonly Py_ssize_t n_features
    cdef readonly object dtype          # of examples
    cdef readonly bint takes_objects
    cdef readonly bint notices_bad_points       # whether `point_is_finite` tells
    cdef Frame frame

    # To be implemented
    cdef int open(self, Workspace w, Py_ssize_t first, Py_ssize_t m, bint learning, int by_slots) except -1
    cdef void evaluate(self, Workspace w, Py_ssize_t i, int last, double* out) noexcept nogil
    cdef void add(self, Workspace w, Py_ssize_t i, long long t) noexcept nogil
    cdef void fold(self, Workspace w) noexcept nogil
    cdef Py_ssize_t piece_rows(self)
    cdef Py_ssize_t rows_to_evaluate(self)
    # To be implemented where terms can go
    cdef Py_ssize_t victim(self, Workspace w, Py_ssize_t i) noexcept nogil
    cdef Py_ssize_t expiring(self, long long t) noexcept nogil
    cdef double residual(self) noexcept nogil
    cdef void drop(self, Workspace w, Py_ssize_t slot) noexcept nogil
    cdef void evaluate_slot(self, Workspace w, Py_ssize_t slot, int last, double* out, double* own) noexcept nogil
    cdef double value_with(self, Workspace w, Py_ssize_t slot, Py_ssize_t i) noexcept nogil
    cdef void coefficients_of(self, Workspace w, Py_ssize_t slot, int channel, double* out) noexcept nogil
    cdef double square(self, Workspace w) noexcept nogil
    cdef double square_over(self, Workspace w, Py_ssize_t start, Py_ssize_t stop) noexcept nogil
    # Where it makes sense
    cdef double descend(self, Workspace w, Py_ssize_t i, const Descent* descent) noexcept nogil
    cdef double vote(self, Workspace w, Py_ssize_t i, long long t, bint signs) noexcept nogil
    cdef bint point_is_finite(self, Workspace w, Py_ssize_t i) noexcept nogil
    cdef double reach(self, double own) noexcept nogil
    cdef int close(self, Workspace w) except -1
    cdef int tidy(self) except -1

    # The same for all
    cdef int make_ready(self, Workspace w) except -1
    cdef int attach(self, Workspace w, examples) except -1
    cdef void transform(self, Workspace w, const double* move) noexcept nogil
    cdef void store(self, Workspace w, double own) noexcept nogil
    cdef bint try_to_store(self, Workspace w, double reach) noexcept nogil
    cdef void make_true(self, Workspace w, int last, double* out) noexcept nogil
    cdef open_start(self, Workspace w, points, kept)
    cdef Py_ssize_t start_row(self, Workspace w, Py_ssize_t i) except -1
    cdef int settle_start(self, Workspace w, points, Py_ssize_t i) except -1
