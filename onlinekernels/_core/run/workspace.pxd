"""Scratch of one call: nothing that belongs to a call lives in the model."""
cimport cython
from onlinekernels._core.formulas.moves cimport Move, View

cdef enum Failure:
    # Why an example cannot be learned
    NONE = 0
    SCORE = 1           # f(x) is not finite
    MOVE = 2            # the new coefficient, offset or scalar is not finite
    PYTHON = 3          # a user's loss raised
    DERIVATIVE = 4      # a user's loss gave no number
    POINT = 5           # k(x, x) is not finite

cdef enum Buffer:
    # Of a piece of examples
    CENTERED            # examples about the origin, or as they came
    SCALED              # examples behind a scaler
    SQUARES
    TILTS
    INNER
    OWN_INNER
    L1
    OWN_L1
    DENSE_ROW           # one sparse example spread out; 0 between calls
    # Of one function on it
    FACTS
    OWN
    WORK
    WIDENED
    TOTALS
    PLACES              # examples as trees know them
    SLOT_INNER
    SLOT_L1
    SLOT_WORK
    SUMS
    CROSS               # second order: what the rows of a piece have to do with those that wait,
    MEANS               # and what was known of them at the last place
    FEATURES            # rows as features
    TAKEN               # what is taken in at a place,
    FUTURE              # the covariance that it leads to,
    PRODUCTS            # products,
    JOINING             # what those that join have in common with the others,
    INVERSE             # and what tells who leaves
    DESCENT             # trees: where each coordinate's descent is
    TOUCHED             # trees: rows that a term touches,
    TOUCHED_VALUES      # what they get,
    KNOTS               # and the term's point
    NODES               # taxonomies: a number for each node
    # Of one example
    EXAMPLE
    LABELS
    N_BUFFERS

cdef struct Piece:
    # Consecutive examples that are learned in one loop without the interpreter, as a dictionary opens them.
    Py_ssize_t rows
    const char* x               # examples as the dictionary keeps points
    double* square              # |x|^2 about the origin
    double* tilt                # <origin, x> about the origin
    char* inner                 # (rows, stride): inner products with slots from `first` on
    char* own_inner             # (rows, rows): of the examples with each other
    double* l1                  # the same for city-block distances
    double* own_l1
    Py_ssize_t first            # slot of column 0
    Py_ssize_t stride
    bint turned                 # inner is (slots, stride) instead: a row for each slot
    bint narrow                 # inner is float32 and must be widened
    Py_ssize_t slot             # of the example that is being learned, -1 as long as it has none
    # Sparse rows: non-zeros of row i are those from start[i] to start[i + 1]
    const long long* start
    const int* index
    const double* value
    # Objects: kernel values with all slots in use, from Python
    const double* values

cdef struct Term:
    # A new term: its labels, and true coefficients (channels, n) for them.
    Py_ssize_t n
    int* labels
    double* alpha
    double* stored              # the same in the frame's coordinates
    double* offset              # changes of the offsets (n,)
    bint enters                 # whether there is a new term at all


@cython.final
cdef class Workspace:
    cdef list memory
    cdef char* data[N_BUFFERS]
    cdef Py_ssize_t bytes[N_BUFFERS]
    cdef readonly Workspace under       # of the feature map that a function stands on
    # The call: what it learns or evaluates
    cdef object source                  # an array, sparse rows or a list of objects
    cdef const char* source_data        # of an array, or of a piece of it behind a scaler
    cdef const char* raw                # of the array, if there is a scaler
    cdef object example                 # the object that is being learned
    cdef object kept                    # keeps alive what the piece points to
    cdef object kept_too                # and what `coefficients` does
    cdef Piece own_piece
    cdef Piece* piece                   # its own
    # One function on the piece
    cdef double* facts                  # (n_facts, rows): what the kernel wants to know of each example
    cdef double* own                    # k(x, x) of each example
    cdef double* work                   # a row of kernel values, and what it takes to compute them
    cdef double* widened
    cdef double* totals                 # or NULL: sums over all terms, (channels * width, rows)
    cdef const double* values           # the kernel values of the latest example that was evaluated, with all slots
    cdef double* places
    cdef double* slot_inner             # the same for the point of a slot
    cdef double* slot_l1
    cdef double* slot_work
    cdef double* sums                   # channels * width
    cdef double* nodes
    cdef const double* coefficients     # of the mean, while a posterior predicts; NULL while it learns
    cdef double* cross                  # (rows, PLACE)
    cdef double* means                  # (rows, outputs)
    cdef double* features               # (rows, features)
    cdef double* dense_row
    cdef int* descent
    cdef int* touched
    cdef double* touched_values
    cdef double* knots
    # One example: rows of `width` numbers
    cdef Py_ssize_t width
    cdef int channels                   # of the function
    cdef double* bare                   # f(x, .), then v(x, .)
    cdef double* scores                 # f(x, .) + b, as the rule sees it
    cdef double* xi                     # derivative of the loss, many outputs
    cdef double* chi
    cdef double* probability            # of each label; or curvature at each target
    cdef bint diagonal                  # whether it is curvatures
    cdef double* spare
    cdef Py_ssize_t row                 # that a posterior has evaluated,
    cdef double variance                # that of f there,
    cdef double deviation               # and the deviation of y
    cdef View view
    cdef Move move
    cdef const double* targets          # y of the example,
    cdef double weight                  # and what its loss is multiplied by
    cdef double mean_step               # of all weights, where each has its own
    cdef bint newcomer                  # whether the term is about to enter
    cdef bint all_labels                # whether the term has a coefficient for every output
    cdef Term term                      # the one that the move adds
    cdef Term old                       # one that is there already, while it is looked at
    cdef int failure
    cdef object error                   # the exception behind a failure

    cdef char* buffer(self, int which, Py_ssize_t size) except NULL
    cdef int make_room(self, Py_ssize_t width, int channels, Py_ssize_t nodes) except -1
    cdef void begin_piece(self, Py_ssize_t rows) noexcept
    cdef int let_go(self) except -1
    cdef array(self, char* data, Py_ssize_t rows, Py_ssize_t columns, dtype)


cdef Py_ssize_t apart(Py_ssize_t width) noexcept
