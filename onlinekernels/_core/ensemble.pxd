"""Ensembles: members that learn for themselves, and a combiner that learns whom to trust."""
cimport cython
from onlinekernels._core.backend cimport Backend
from onlinekernels._core.combiners cimport Calibration, Combiner, IntervalTracker, PriorCorrection
from onlinekernels._core.transforms cimport Transform

cdef enum Scale:
    # What the scores of a backend mean
    NUMBERS             # targets
    DENSITY             # how ordinary a row is
    MARGIN              # positive for the second of two classes
    LOG_ODDS            # of the second of two classes
    LABELS              # one for each label, about +1 and -1
    LOGITS              # one for each label, whose softmax are probabilities


cdef class Member:
    cdef readonly str name
    cdef public object model            # an estimator that shows the backend
    cdef readonly Backend backend
    cdef readonly Transform transform   # what its rows go through first; None: they are those of the ensemble
    cdef readonly int scale             # of its scores
    cdef readonly Py_ssize_t width      # outputs that there is room for
    cdef readonly bint frozen           # whether it learns no more
    cdef public object status           # why it is disabled; None
    cdef readonly long long before      # rows that it had learned when it became a member
    cdef readonly long long t           # rows that it has seen as a member
    # Labels: the member's are numbered as they appear to it
    cdef Py_ssize_t known               # how many it has met
    cdef object code_array, label_array # own these:
    cdef long long* codes               # the ensemble's code of a label
    cdef long long* labels              # the label of a code, or -1
    # The block
    cdef Py_ssize_t rows                # of it; 0: it takes no part
    cdef Py_ssize_t trained             # rows that are learned
    cdef object room                    # owns these:
    cdef double* y                      # as the backend takes them
    cdef long long* known_before        # labels before each row
    cdef double* raw                    # scores of a row
    cdef object attached                # what the backend's call is about
    cdef object error                   # why it stopped
    cdef bint interrupted               # whether a signal came in the user's code

    cdef int reserve(self, Py_ssize_t n, Py_ssize_t targets, Py_ssize_t labels) except -1
    cdef int attach(self, examples, Py_ssize_t n) except -1
    cdef int open(self, Py_ssize_t first, Py_ssize_t n, const double* y, const double* weights, Py_ssize_t targets,
                  Py_ssize_t labels) except -1
    cdef bint test(self, Py_ssize_t i, double* scores, Py_ssize_t outputs) noexcept nogil
    cdef void train(self, Py_ssize_t i) noexcept nogil
    cdef void place(self, double* scores, Py_ssize_t outputs, Py_ssize_t known) noexcept nogil
    cdef void commit(self, Py_ssize_t n) noexcept
    cdef void stop(self) noexcept with gil
    cdef int evaluate(self, examples, const double* rows, Py_ssize_t n, double* scores, Py_ssize_t outputs, Py_ssize_t stride) except -1


cdef class Ensemble(Backend):
    cdef readonly list members
    cdef readonly dict transforms       # by name
    cdef readonly str task              # "classes", "numbers" or "novelty"
    cdef readonly Py_ssize_t targets    # numbers to predict; 0 for labels
    cdef readonly Combiner combiner
    cdef readonly Calibration calibration       # of probabilities, or None
    cdef readonly PriorCorrection correction    # of decisions about rare classes, or None
    cdef readonly IntervalTracker intervals     # or None
    cdef readonly long long t           # rows learned
    cdef readonly Py_ssize_t joined     # labels that have been learned
    cdef readonly object losses         # mistakes or squared errors of each member, and of all together
    cdef double* loss_sums
    cdef public list history            # (t, weights, losses so far)
    cdef public Py_ssize_t stride       # rows between two entries
    cdef readonly Py_ssize_t n_features # of rows; 0 where they are sparse
    # The call
    cdef object examples
    cdef const double* data             # of dense rows
    cdef Py_ssize_t call_rows
    # The block
    cdef Py_ssize_t rows                # 0: none is open
    cdef Py_ssize_t outputs
    cdef const double* y
    cdef const double* weights
    cdef object room                    # owns these:
    cdef double* scores                 # (rows, members, outputs)
    cdef double* combined               # (rows, outputs): before they are calibrated,
    cdef double* answers                # and after,
    cdef double* factors                # and what a prior correction has multiplied
    cdef double* deviations             # (rows, groups)
    cdef double* innovations            # (rows, groups)
    cdef double* leasts                 # (rows, groups): least target before each row
    cdef double* counts                 # weights of the rows in the combination
    cdef Py_ssize_t* joined_before      # labels before each row
    cdef unsigned char* enabled         # members that take part
    cdef Py_ssize_t room_rows, room_outputs

    cdef int reserve(self, Py_ssize_t n, Py_ssize_t outputs) except -1
    cdef int prepare(self) except -1
    cdef void run(self) noexcept nogil
    cdef void combine(self, Py_ssize_t begin, Py_ssize_t end) noexcept nogil
    cdef void count_losses(self) noexcept nogil
    cdef Py_ssize_t best(self, const double* scores, Py_ssize_t joined) noexcept nogil
