"""One example as form and rule see it: what is known of it, and what has been decided about it."""
cimport cython
from onlinekernels._core.formulas.moves cimport Descent, Move, Norms, View
from onlinekernels._core.run.memory cimport Memory

cdef enum Failure:
    # Why an example cannot be learned
    NONE = 0
    SCORE = 1           # f(x) is not finite
    MOVE = 2            # the new coefficient, offset or scalar is not finite
    PYTHON = 3          # a user's loss raised
    LOSS = 4            # a user's loss gave no number, or none that makes sense: e.error is (exception, words)
    POINT = 5           # k(x, x) is not finite

cdef enum:
    WORK_ROWS = 3       # of `Example.work`

cdef enum:
    NOBODY = -1         # no slot: there is room, or nothing expires
    NEWCOMER = -2       # it is the newcomer itself that goes

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

cdef struct Outcome:
    # How a budget makes room for a newcomer
    Py_ssize_t slot             # of the term that goes; NOBODY; or NEWCOMER if it is the newcomer that does not come
    Py_ssize_t partner          # of the term that takes over what goes, or NOBODY
    double share                # of the way to what goes by which the partner's point moves
    double shrink               # what all of f is multiplied with when the newcomer is in,
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
    cdef Norms without_newcomer         # exact norms: what they become if a budget keeps the new term out
    cdef Norms ahead_without_newcomer   # and those of the output ahead of the labels
    cdef bint all_labels                # whether the term has a coefficient for every output
    cdef Term term                      # the one that enters
    cdef Descent descent                # where each weight has a step of its own
    cdef double* innovation             # second order: y - f(x, .), in units of
    cdef double deviation               # the deviation of y
    cdef char* decision                 # what its own state will be: see `Rule`
    # On the way: means nothing to anybody else
    cdef double* work                   # WORK_ROWS rows
    cdef double* nodes                  # taxonomies: a number for each node
    # What went wrong
    cdef int failure                    # see above; NONE for nothing
    cdef object error                   # the exception behind it, or its class and words

    cdef int make_room(self, Py_ssize_t width, int channels, Py_ssize_t nodes, Py_ssize_t decision) except -1
