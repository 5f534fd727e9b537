"""Ensembles: members that learn for themselves, and a combiner that learns whom to trust."""
cimport cython
from onlinekernels._core.backend cimport Backend
from onlinekernels._core.combiners cimport (AveragedRanks, Calibration, ChangeDetector, Combiner, DECIDED,
                                            IntervalTracker, PriorCorrection, TargetFences)
from onlinekernels._core.pool cimport Pool
from onlinekernels._core.smoother cimport LocalRows
from onlinekernels._core.transforms cimport Relevance, SeriesDifferences, Transform


@cython.final
cdef class Member:
    cdef readonly str name
    cdef public object model            # what shows the backend to users
    cdef readonly Backend backend
    cdef readonly Transform transform   # what its rows go through first; None: they are those of the ensemble
    cdef Py_ssize_t base                # column of rows that its targets are counted from, those of a series; or -1
    cdef readonly int scale             # what its scores mean
    cdef readonly Py_ssize_t width      # outputs that there is room for
    cdef readonly bint frozen           # whether it learns no more
    cdef readonly bint has_deviations   # whether the combination wants its deviations
    cdef readonly bint has_python       # whether code of the user's runs in it
    cdef readonly bint disabled         # whether it takes part no more,
    cdef object text                    # and why
    cdef readonly long long before      # rows that it had learned when it became a member
    cdef readonly long long t           # rows that it has seen as a member
    cdef public long long begun         # rows that the ensemble had seen when it began anew
    cdef public long long unheard       # rows that it learns before it takes part
    cdef public long long due           # row of the ensemble from which on it begins anew, if it is disabled
    cdef public long long failures      # how often it was
    cdef Member next                    # the next member of the ensemble
    # Labels: the backend's are numbered as they appear to it
    cdef readonly bint fixed            # whether no other can join
    cdef Py_ssize_t known               # how many it has met
    cdef object code_array, label_array # own these:
    cdef long long* codes               # the ensemble's code of a label
    cdef long long* labels              # the label of a code, or -1
    # The block
    cdef Py_ssize_t rows                # of it; 0: none is open
    cdef Py_ssize_t until               # rows in which it takes part
    cdef Py_ssize_t trained             # rows that are learned
    cdef bint is_wild                   # whether a score was too large, or no number,
    cdef bint diverged                  # or the backend has said that it diverges
    cdef bint exhausted                 # or signals have come again and again in the user's code
    cdef object memory                      # owns these:
    cdef double* y                      # as the backend takes them
    cdef Py_ssize_t* known_before       # labels before each row
    cdef double* raw                    # scores of a row
    cdef double* answers                # of all rows, if it is frozen
    cdef object attached                # what the backend's call is about
    cdef object signal                  # that came in the user's code

    cdef int reserve(self, Py_ssize_t n, Py_ssize_t targets, Py_ssize_t labels) except -1
    cdef int attach(self, examples, Py_ssize_t n) except -1
    cdef int open(self, examples, Py_ssize_t first, Py_ssize_t n, const double* y, const double* weights,
                  Py_ssize_t targets,
                  Py_ssize_t labels) except -1
    cdef void run_all(self, Py_ssize_t k, Py_ssize_t n, double* scores, Py_ssize_t stride, Py_ssize_t outputs,
                      double* deviations,
                      Py_ssize_t spread, Py_ssize_t groups) noexcept nogil
    cdef void test_all(self, Py_ssize_t i, double* scores, Py_ssize_t outputs, double* deviations,
                       Py_ssize_t groups) noexcept nogil
    cdef void tell_all(self, Py_ssize_t i, const double* y, Py_ssize_t targets) noexcept nogil
    cdef void train_all(self, Py_ssize_t i, bint held) noexcept nogil
    cdef Py_ssize_t enabled_from(self, Py_ssize_t i, Py_ssize_t end, unsigned char* enabled) noexcept nogil
    cdef void test(self, Py_ssize_t i, double* scores, Py_ssize_t outputs, double* deviations) noexcept nogil
    cdef bint tested(self, Py_ssize_t i, double* deviations) noexcept nogil
    cdef void train(self, Py_ssize_t i) noexcept nogil
    cdef bint may_try_again(self, Py_ssize_t tries) noexcept with gil
    cdef void place(self, double* raw, double* scores, Py_ssize_t outputs, Py_ssize_t known) noexcept nogil
    cdef void place_nothing(self, double* scores, Py_ssize_t outputs) noexcept nogil
    cdef void commit(self, Py_ssize_t n) noexcept
    cdef int evaluate(self, examples, Py_ssize_t n, double* raw, Py_ssize_t width, double* scores, Py_ssize_t outputs,
                      Py_ssize_t stride, double* deviations, Py_ssize_t spread) except -1


cdef class Ensemble(Backend):
    cdef readonly list members
    cdef Member first_member            # which knows the next one, and so on
    cdef readonly dict transforms       # by name
    cdef readonly bint is_novelty       # whether there are no targets
    cdef bint tells                     # whether there are numbers, which may be told otherwise than they are
    cdef readonly Combiner combiner
    cdef readonly Calibration calibration       # of probabilities, or None
    cdef readonly PriorCorrection correction    # of decisions about rare classes, or None
    cdef readonly TargetFences fences   # within which members are told targets, or None
    cdef readonly ChangeDetector changes        # in how many mistakes there are, or None
    cdef readonly LocalRows nearby      # what errors were nearby, or None,
    cdef Transform near                 # on rows behind this one
    cdef readonly object relevance      # name of the member that says how relevant features are, or None
    cdef readonly object last           # what the last target says, which is a member, or None
    cdef readonly Py_ssize_t lags       # values of a series that rows have behind their features,
    cdef readonly object latest         # and the last ones of them, (lags, targets)
    cdef double* latest_data
    cdef bint looks_early               # whether there is something to look at in the first rows,
    cdef public long long looked        # and t at the latest look
    cdef public long long t             # rows learned
    cdef readonly object losses         # mistakes or squared errors of each member, and of all together
    cdef double* loss_sums
    cdef readonly object baseline       # weight of all rows, and means of their targets or weights of their labels
    cdef double* baseline_data
    cdef Py_ssize_t n_baseline
    cdef public list history            # (t, weights, losses so far)
    cdef public Py_ssize_t stride       # rows between two entries
    cdef public Py_ssize_t n_jobs       # threads that are wanted
    cdef Pool pool                      # of them, or None
    cdef object memory_of_order         # owns this:
    cdef Py_ssize_t* order              # in which threads take members; the last are those that the caller keeps
    cdef Py_ssize_t n_dealt             # the others
    # The call
    cdef object examples
    cdef const double* data             # of dense rows
    # The block
    cdef Py_ssize_t first               # row of the call
    cdef Py_ssize_t rows                # 0: none is open
    cdef bint is_shared                 # whether threads share the members
    cdef list errors                    # of the members, in getting ready,
    cdef bint has_errors                # if there are any
    cdef Py_ssize_t outputs
    cdef const double* y
    cdef const double* weights
    cdef object memory_of_block         # owns these:
    cdef double* table                  # scores (rows, members, outputs)
    cdef double* member_deviations      # (rows, members, groups)
    cdef double* combined               # (rows, outputs): before they are calibrated,
    cdef double* answers                # and after,
    cdef double* factors                # and what a prior correction has multiplied
    cdef double* deviations             # (rows, groups)
    cdef double* innovations_of_rows    # (rows, groups)
    cdef double* leasts                 # (rows, groups): least target before each row
    cdef double* clipped                   # (rows, targets): targets as members learn them
    cdef double* local                  # (rows, targets): errors nearby,
    cdef double* ratios                 # and errors, in units of the running one
    cdef double* counts                 # weights of the rows in the combination
    cdef Py_ssize_t* n_seen_before      # labels before each row
    cdef unsigned char* enabled         # members that take part
    cdef unsigned char* held            # rows that members should not keep
    cdef Py_ssize_t capacity_rows, capacity_outputs

    cdef int link(self) except -1
    cdef int share(self, Py_ssize_t n) except -1
    cdef int deal(self) except -1
    cdef int open_members(self) except -1
    cdef void open_member(self, Py_ssize_t k) noexcept
    cdef void run_member(self, Py_ssize_t k) noexcept nogil
    cdef object seen_by(self, Member member, dict seen, examples, Py_ssize_t n)
    cdef int ask_members(self, examples, Py_ssize_t n, Py_ssize_t outputs, double* table, double* spreads) except -1
    cdef int reserve(self, Py_ssize_t n, Py_ssize_t outputs) except -1
    cdef bint has_learned_members(self)
    cdef void combine(self, Py_ssize_t begin, Py_ssize_t end) noexcept nogil
    cdef int answer(self, Py_ssize_t n, Py_ssize_t outputs, const double* table, const double* spreads, double* answers,
                    double* deviations, object examples) except -1
    cdef int begin_anew(self) except -1
    cdef int follow_relevance(self) except -1
    cdef void predict(self, Py_ssize_t i) noexcept nogil
    cdef void bound(self, Py_ssize_t n, double* combined, double* deviations) noexcept nogil
    cdef void tell(self, Py_ssize_t i) noexcept nogil
    cdef void follow_errors(self, Py_ssize_t i) noexcept nogil
    cdef void remember(self, Py_ssize_t n) noexcept nogil
    cdef void answer_nothing(self, Py_ssize_t n, Py_ssize_t outputs, double* combined,
                             double* deviations) noexcept nogil
    cdef int set_baseline(self, baseline) except -1
    cdef void count_target(self, Py_ssize_t i) noexcept nogil
    cdef void finish(self, Py_ssize_t begin, Py_ssize_t end) noexcept nogil
    cdef void count_losses(self, Py_ssize_t begin, Py_ssize_t end) noexcept nogil
    cdef Py_ssize_t best(self, const double* scores, Py_ssize_t n_seen) noexcept nogil
