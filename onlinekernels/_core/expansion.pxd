"""The function f as terms or weights: evaluate it, transform it, append a term."""
from onlinekernels._core.frame cimport Frame
from onlinekernels._core.kernels cimport Program
from onlinekernels._core.outputs cimport Outputs
from onlinekernels._core.ring cimport Pool

cdef enum Form:
    ONE = 0             # one output: a term has one coefficient per channel
    PAIR = 1            # many outputs: its coefficient at one label, the negative of it at another
    DENSE = 2           # many outputs: a coefficient for each

cdef enum Scratch:
    X = 0               # a piece about the origin
    FACTS = 1
    OWN = 2
    INNER = 3
    OWN_INNER = 4
    L1 = 5
    OWN_L1 = 6
    WORK = 7
    WIDENED = 8
    SUMS = 9
    STORED = 10
    SLOT_INNER = 11
    SLOT_L1 = 12
    SLOT_WORK = 13
    TOTALS = 14
    N_SCRATCH = 15

cdef struct Piece:
    # Consecutive examples that are learned in one loop without the interpreter.
    Py_ssize_t rows
    const char* raw             # examples as they came
    const char* x               # examples, about the origin, in the points' precision
    double* facts               # (n_facts, rows)
    double* own                 # k(x, x)
    char* inner                 # (rows, stride): inner products with slots from `first` on
    char* own_inner             # (rows, rows): of the examples with each other
    double* l1                  # the same for city-block distances
    double* own_l1
    Py_ssize_t first            # slot of column 0
    Py_ssize_t first_row        # sparse rows: place of the first in its chunk
    Py_ssize_t stride
    bint narrow                 # inner is float32 and must be widened
    double* totals              # or: sums over all terms, (channels * width, rows)
    const double* values        # or: kernel values with the slots from `first` on, from Python


cdef class Expansion:
    cdef readonly Program program       # None: kernel values come from Python, or weights
    cdef readonly object kernel         # Python kernel on objects, or None
    cdef readonly Pool pool             # None: weights
    cdef readonly object weights        # (channels * width, n_features) in frame coordinates, or None
    cdef double* weight_data
    cdef double weight_scale            # weights: k(x, z) = weight_scale <x, z>
    cdef readonly Outputs outputs       # None: one output
    cdef readonly int form
    cdef readonly Py_ssize_t width      # outputs that there is room for
    cdef readonly Py_ssize_t n_features
    cdef readonly object dtype
    cdef Frame frame
    cdef Py_ssize_t entered             # slot of the last example, -1 if it made no term
    # Scratch, never part of the state
    cdef list scratch
    cdef char* scratch_data[N_SCRATCH]
    cdef Py_ssize_t scratch_bytes[N_SCRATCH]
    cdef double* work
    cdef double* widened
    cdef double* sums
    cdef double* stored                 # coordinates of the term that enters
    cdef bint evaluates_slots           # room for kernel rows of terms
    cdef double* slot_inner
    cdef double* slot_l1
    cdef double* slot_work

    cdef begin(self, Py_ssize_t n_features, dtype, int channels, Outputs outputs, int form)
    cdef int begin_piece(self, Piece* piece, Py_ssize_t m) except -1
    cdef Py_ssize_t live(self) noexcept nogil
    cdef const double* values(self, const Piece* piece, Py_ssize_t i) noexcept nogil
    cdef void evaluate(self, const Piece* piece, Py_ssize_t i, int last, double* out) noexcept nogil
    cdef void evaluate_slot(self, Py_ssize_t slot, int last, double* out, double* own) noexcept nogil
    cdef double value_with(self, Py_ssize_t slot, const Piece* piece, Py_ssize_t i) noexcept nogil
    cdef double vote(self, const Piece* piece, Py_ssize_t i, long long t, bint signs) noexcept nogil
    cdef void make_true(self, int last, double* out) noexcept nogil
    cdef void add_up(self, const double* values, int channel, double* sums) noexcept nogil
    cdef void add_up_weights(self, const Piece* piece, Py_ssize_t i, int channel, double* sums) noexcept nogil
    cdef void add_to_weights(self, const Piece* piece, Py_ssize_t i, double c, double* weights) noexcept nogil
    cdef void add_up_carefully(self, const double* values, int channel, double* sums) noexcept nogil
    cdef void term(self, Py_ssize_t slot, int channel, double* out) noexcept nogil
    cdef void transform(self, const double* move) noexcept nogil
    cdef void enter(self, const Piece* piece, Py_ssize_t i, long long t, const double* alpha,
                    Py_ssize_t first, Py_ssize_t second) noexcept nogil
    cdef void add_weights(self, const Piece* piece, Py_ssize_t i, const double* stored,
                          Py_ssize_t first, Py_ssize_t second) noexcept nogil
    cdef void expire(self, long long t) noexcept nogil
    cdef void drop_first(self) noexcept nogil
    cdef void ready_to_store(self, double own, const double* alpha) noexcept nogil
    cdef int allocate_sums(self) except -1
    cdef bint store(self, const double* alpha, double* stored, double reach) noexcept nogil
    cdef void place(self, const Piece* piece, Py_ssize_t i, Py_ssize_t slot) noexcept nogil
    cdef void patch(self, const Piece* piece, Py_ssize_t i, Py_ssize_t slot) noexcept nogil
    cdef void fold(self) noexcept nogil
    cdef Py_ssize_t piece_rows(self)
    cdef Py_ssize_t most_rows(self)
    cdef const char* attach(self, X) except? NULL
    cdef int prepare_rows(self, Piece* piece, const char* x, Py_ssize_t first, Py_ssize_t m, bint learning,
                          int by_terms=*) except -1
    cdef int prepare(self, Piece* piece, const char* x, Py_ssize_t rows, bint learning,
                     int by_terms=*) except -1
    cdef prepare_start(self, Piece* piece, points, kept)
    cdef int prepare_object(self, Piece* piece, double* own, row) except -1
    cdef int inner_row(self, Piece* piece) except -1
    cdef int inner_products(self, Piece* piece, bint learning) except -1
    cdef int add_up_by_terms(self, Piece* piece, int last) except -1
    cdef void add_term(self, Py_ssize_t slot, int channel, const double* values, Py_ssize_t m,
                       double* totals) noexcept nogil
    cdef int l1_distances(self, Piece* piece, bint learning) except -1
    cdef void l1_block(self, Piece* piece, const char* points, Py_ssize_t n, double* out,
                       Py_ssize_t stride) noexcept nogil
    cdef object_row(self, x)
    cdef array(self, char* data, Py_ssize_t rows, Py_ssize_t columns)
    cdef char* buffer(self, int which, Py_ssize_t size) except NULL


cdef Py_ssize_t apart(Py_ssize_t width) noexcept
