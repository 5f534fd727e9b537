"""Functions: what a representation of f must be able to do."""
cimport cython
from onlinekernels._core.formulas.frame cimport Frame
from onlinekernels._core.formulas.moves cimport Descent
from onlinekernels._core.functions.outputs cimport Outputs
from onlinekernels._core.run.example cimport Outcome, Term
from onlinekernels._core.run.memory cimport Memory
from onlinekernels._core.run.piece cimport Piece

cdef enum ScratchBuffer:
    OUTPUTS
    LABELS
    NODES
    BUDGET
    N_SHARED            # a kind of function numbers its own from here


cdef class Scratch(Memory):
    """What a function computes on the way; each kind of function adds its own."""
    cdef Piece piece                    # the rows that are open
    cdef Py_ssize_t width               # outputs that there is room for
    cdef double* sums                   # channels * width: of stored coordinates
    cdef double* nodes                  # taxonomies: a number for each node
    cdef double variance                # of f at the row that was evaluated last, where it is known
    cdef double mean_step               # of all weights, where each has its own
    cdef double* for_budget             # what a budget computes on the way to its answer
    # Of a term that is there already
    cdef Term old                       # its labels and coefficients
    cdef double* slot_scores            # f at its point, then v
    cdef double* slot_coefficients      # its true coefficients in f over labels, then those in v,
    cdef double* slot_products          # and kappa times those in f

    @cython.final
    cdef int make_room(self, Py_ssize_t width, Py_ssize_t nodes) except -1
    cdef void let_go(self) noexcept


cdef class Function:
    cdef readonly str keeps             # what f is kept as: "terms", "weights" or "knots"
    cdef readonly Outputs outputs       # the labels
    cdef readonly Py_ssize_t width      # outputs that there is room for
    cdef readonly Py_ssize_t n_features # of examples
    cdef readonly object dtype          # of examples
    cdef readonly bint takes_objects    # whether examples are Python objects
    cdef readonly bint notices_bad_points       # whether `point_is_finite` tells
    cdef Frame frame                    # P: true coefficients are P @ stored

    # To be implemented
    cdef Scratch new_scratch(self)
    cdef int open(self, Scratch w, Py_ssize_t first, Py_ssize_t m, bint learning, int by_slots) except -1
    cdef void evaluate(self, Scratch w, Py_ssize_t i, int last, double* out) noexcept nogil
    cdef void add(self, Scratch w, Term* term, Py_ssize_t i, long long t) noexcept nogil
    cdef void fold(self, Scratch w) noexcept nogil
    cdef Py_ssize_t piece_rows(self)
    cdef Py_ssize_t rows_to_evaluate(self)
    # To be implemented where terms can go
    cdef void make_way(self, Scratch w, Term* term, Py_ssize_t i, Outcome* outcome) noexcept nogil
    cdef Py_ssize_t expiring(self, long long t) noexcept nogil
    cdef void drop(self, Scratch w, Py_ssize_t slot) noexcept nogil
    cdef void evaluate_slot(self, Scratch w, Py_ssize_t slot, int last, double* out, double* own) noexcept nogil
    cdef double value_with(self, Scratch w, Py_ssize_t slot, Py_ssize_t i) noexcept nogil
    cdef void coefficients_of(self, Scratch w, Py_ssize_t slot, int channel, double* out) noexcept nogil
    cdef double square(self, Scratch w) noexcept nogil
    cdef double square_over(self, Scratch w, Py_ssize_t start, Py_ssize_t stop) noexcept nogil
    # Where it makes sense
    cdef double descend(self, Scratch w, const Term* term, Py_ssize_t i, const Descent* descent) noexcept nogil
    cdef double vote(self, Scratch w, Py_ssize_t i, long long t, bint signs) noexcept nogil
    cdef bint point_is_finite(self, Scratch w, Py_ssize_t i) noexcept nogil
    cdef double feature_size(self, double own) noexcept nogil
    cdef int close(self, Scratch w) except -1
    cdef int tidy(self) except -1

    # The same for all
    cpdef bint is_row(self, x) except -1
    cdef int make_ready(self, Scratch w) except -1
    cdef int attach(self, Scratch w, examples) except -1
    cdef void transform(self, Scratch w, const double* move) noexcept nogil
    cdef void multiply(self, Scratch w, double factor) noexcept nogil
    cdef void store(self, Scratch w, Term* term, double own) noexcept nogil
    cdef bint try_to_store(self, Term* term, double size) noexcept nogil
    cdef void make_true(self, Scratch w, int last, double* out) noexcept nogil
    cdef open_start(self, Scratch w, points, kept)
    cdef Py_ssize_t start_row(self, Scratch w, Py_ssize_t i) except -1
    cdef int settle_start(self, Scratch w, points, Py_ssize_t i) except -1
