"""Functions: what a representation of f must be able to do, and what a call, a piece and an example bring to it."""
cimport cython
from onlinekernels._core.formulas.frame cimport Frame
from onlinekernels._core.formulas.moves cimport Move, Norms, View

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


cdef enum PieceBuffer:
    CENTERED            # rows about the origin, or as they came
    SCALED              # rows behind a scaler
    SQUARES, ORIGIN_PRODUCTS, INNER, OWN_INNER, L1, OWN_L1, DENSE_ROW, CACHED, OWN, WORK, WIDENED
    SLOT_INNER, SLOT_L1, SLOT_WORK, COORDINATES


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
    cdef double* origin_product                   # <origin, x> about the origin
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
    cdef bint transposed                    # inner is (slots, stride) instead: a row for each slot
    cdef bint narrow                    # inner is float32 and must be widened
    cdef double* widened                # one row of it as float64
    # Kernel values
    cdef double* cached                  # (n_cached, rows): what the kernel wants to know of each row
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


cdef enum Failure:
    # Why an example cannot be learned
    NONE = 0
    SCORE = 1           # f(x) is not finite
    MOVE = 2            # the new coefficient, offset or scalar is not finite
    PYTHON = 3          # a user's loss raised
    LOSS = 4            # a user's loss gave no number, or one that cannot be: e.error is (exception, words)
    POINT = 5           # k(x, x) is not finite


cdef enum:
    NOBODY = -1         # no slot: there is room, or nothing expires
    CANDIDATE = -2       # it is the candidate itself that goes


cdef struct Term:
    # A term of f: its labels, and coefficients (channels, n) for them.
    Py_ssize_t n                # how many labels
    int* labels                 # their outputs
    double* alpha               # true ones
    double* stored              # the same in the frame's coordinates
    double* offset              # changes of the offsets (n,)
    bint enters                 # whether there is a new term at all,
    bint looked_at              # whether a budget that projects has looked at it,
    bint stays_out              # and the terms that are there take it over


cdef struct Removal:
    # How a budget makes room for a candidate
    Py_ssize_t slot             # of the term that goes; NOBODY; or CANDIDATE if it is the candidate that does not come
    Py_ssize_t partner          # of the term that takes over what goes, or NOBODY
    double share                # of the way to what goes by which the partner's point moves
    double shrink               # what all of f is multiplied with when the candidate is in,
    double loss                 # and what that and the removal cost at most
    double residual             # |part of k(x, .) of what goes that is lost|^2; negative: all of it


@cython.final
cdef class Example(Memory):
    cdef Py_ssize_t width               # outputs that there is room for: of each row below
    cdef int channels                   # of the function
    # Evaluated
    cdef double* bare                   # f(x, .), then v(x, .)
    cdef double* scores                 # f(x, .) + b
    cdef double variance                # of f(x, .), where that is known
    cdef const double* values           # kernel values with all slots in use, where f is a sum over terms
    cdef double* for_budget             # where a budget that is asked to look at it writes
    # Its y, and what its loss is multiplied by
    cdef const double* targets          # a number, a label's, or one for each target
    cdef double weight                  # of the example
    # What the form finds: in the one dimension of a direction,
    cdef View view                      # score, k(x, x), target, derivatives
    # or over all outputs
    cdef double* derivative             # of the loss, times the weight
    cdef bint diagonal                  # whether the loss is a sum over outputs: then its Hessian is
    cdef double* curvature              # these, times the weight; otherwise it is that of the logistic loss at
    cdef double* probability            # these
    cdef double* distance               # Delta(y, .)
    cdef double* shrunk                 # scores of the hypothesis that the rule will have shrunk
    # What the rule decides
    cdef Move move                      # what becomes of f and of the loss's scalar
    cdef Norms without_candidate         # exact norms: what they become if a budget keeps the new term out
    cdef Norms future_without_candidate   # and those of the output ahead of the labels
    cdef bint all_labels                # whether the term has a coefficient for every output
    cdef Term term                      # the one that enters
    cdef double* innovation             # second order: y - f(x, .), in units of
    cdef double deviation               # the deviation of y
    cdef char* decision                 # what its own state will be: see `Rule`
    # On the way: means nothing to anybody else
    cdef double* work                   # WORK_ROWS rows
    cdef double* nodes                  # taxonomies: a number for each node
    # What went wrong
    cdef int failure                    # see above; NONE for nothing
    cdef object error                   # the exception behind it, or its class and words

    cdef int reserve(self, Py_ssize_t width, int channels, Py_ssize_t nodes, Py_ssize_t decision) except -1


cdef class Outputs:
    cdef readonly Py_ssize_t n_seen         # labels that there are now: the one place that knows
    cdef readonly Py_ssize_t n              # outputs that move: the labels and, if they learn ahead, those to join next
    cdef readonly bint future                # whether labels learn before they join
    cdef readonly Py_ssize_t n_nodes        # numbers of scratch that `apply` and `distances` want

    cdef Py_ssize_t kept(self) noexcept nogil
    cdef void set_seen(self, Py_ssize_t n_seen) noexcept nogil
    cdef void apply(self, double* scores, double* nodes) noexcept nogil
    cdef void distances(self, Py_ssize_t y, double* out, double* nodes) noexcept nogil
    cdef double kappa(self, Py_ssize_t a, Py_ssize_t b) noexcept nogil
    cdef double square_between(self, Py_ssize_t a, Py_ssize_t b) noexcept nogil


cdef enum ScratchBuffer:
    OUTPUTS, LABELS, NODES, BUDGET
    N_SHARED            # a kind of function numbers its own from here


cdef class Scratch(Memory):
    """What a function computes on the way; each kind of function adds its own."""
    cdef Piece piece                    # the rows that are open
    cdef Py_ssize_t width               # outputs that there is room for
    cdef double* sums                   # channels * width: of stored coordinates
    cdef double* nodes                  # taxonomies: a number for each node
    cdef double variance                # of f at the row that was evaluated last, where it is known
    cdef double* for_budget             # what a budget computes on the way to its answer
    # Of a term that is there already
    cdef Term old                       # its labels and coefficients
    cdef double* slot_scores            # f at its point, then v
    cdef double* slot_coefficients      # its true coefficients in f over labels, then those in v,
    cdef double* slot_products          # and kappa times those in f

    @cython.final
    cdef int reserve(self, Py_ssize_t width, Py_ssize_t nodes) except -1
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
    cdef Py_ssize_t most_rows(self)
    cdef Py_ssize_t rows_to_evaluate(self)
    # To be implemented where terms can go
    cdef bint consult(self, Scratch w, Example e, long long t) noexcept nogil
    cdef void make_way(self, Scratch w, Term* term, Py_ssize_t i, Removal* removal) noexcept nogil
    cdef Py_ssize_t expiring(self, long long t) noexcept nogil
    cdef void drop(self, Scratch w, Py_ssize_t slot) noexcept nogil
    cdef void evaluate_slot(self, Scratch w, Py_ssize_t slot, int last, double* out, double* own) noexcept nogil
    cdef double value_with(self, Scratch w, Py_ssize_t slot, Py_ssize_t i) noexcept nogil
    cdef void coefficients_of(self, Scratch w, Py_ssize_t slot, int channel, double* out) noexcept nogil
    cdef double square(self, Scratch w) noexcept nogil
    cdef double square_over(self, Scratch w, Py_ssize_t start, Py_ssize_t stop) noexcept nogil
    # Where it applies
    cdef double vote(self, Scratch w, Py_ssize_t i, long long t, bint signs) noexcept nogil
    cdef bint stagger(self, Py_ssize_t rows) noexcept
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
    cdef int resolve_start(self, Scratch w, points, Py_ssize_t i) except -1
