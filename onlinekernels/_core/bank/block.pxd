"""Blocks of models side by side: what examples do to them."""
from libc.stdint cimport int64_t
from onlinekernels._core.bank.lanes cimport LanesRule
from onlinekernels._core.formulas.moves cimport Step

cdef enum:
    MAX_SLOTS = 64
    LAST_TICK = 255     # of the clock that tells which of equal terms is older


cdef struct Store:
    LanesRule rule      # the scalar of its loss is the one to start with
    Step step           # of an example
    double regularization   # lambda
    bint linear         # the kernel: linear, or Gaussian exp(-gamma |x - z|^2)
    double gamma        # of the Gaussian
    bint recent         # the budget: the latest terms, or the largest
    Py_ssize_t slots    # terms of a model, at most
    Py_ssize_t d        # features
    # Of each model
    int64_t* t          # examples learned
    double* frame       # true coefficient = frame * stored
    double* offset      # b
    double* scalar      # current margin or width of the loss
    double* gap         # of a scalar with a step of its own, otherwise NULL: see `ok_scalar_step`
    double* gap_weight  # and the weights in that mean
    unsigned char* count        # slots in use: the first ones
    unsigned char* clock        # Recent: the slot of the oldest term, once all are used; Smallest: the next birthday
    unsigned char* born         # [block][slot][lane]: order of entry, for Smallest


cdef struct Examples:
    # Rows of X, and which of them are for which model.
    const void* X               # float or double, (n, d)
    const double* y             # NULL: the loss needs none
    double* scores              # takes one number for each row
    const unsigned char* active # NULL, or whether row m, which is model m's, counts
    const int64_t* blocks       # NULL if row m is model m's; otherwise the blocks that have rows
    const int64_t* starts       # [place in blocks][lane]: the rows of a lane are order[start:next start]
    const int64_t* order        # numbers of rows, those of a lane together
    unsigned char* failed       # NULL, or whether a model has met a row of this call that it cannot learn
    Py_ssize_t n                # rows
    bint learning               # or scoring only


cdef struct Outcome:
    int64_t learned     # rows
    int64_t row         # the first one that could not be learned, and why
    int reason          # why: see `example`


cdef void visit_places(Store* store, bint single, void* points, void* coef, void* x, const Examples* examples, Py_ssize_t first,
                       Py_ssize_t last, Outcome* outcome) noexcept nogil
