"""How the predictions of members become one: combiners, calibration, prior correction, intervals."""
cimport cython
from onlinekernels._core.transforms cimport Ranks


cdef enum:
    DECIDED = 8                 # targets from which on an outlier among the first is known


cdef Py_ssize_t likeliest(const double* p, Py_ssize_t n) noexcept nogil


cdef struct Row:
    Py_ssize_t outputs
    Py_ssize_t n_seen               # labels that there were before it
    const double* scores            # (members, outputs)
    const unsigned char* enabled    # members that take part
    const double* y                 # a label's code, or the targets
    double count                    # its weight
    double* combined                # (outputs,): what all say together,
    double* deviations              # and by how much that may be wrong; (targets,), or (1,) for labels
    double* scratch


cdef class Combiner:
    cdef readonly Py_ssize_t n_members, targets # targets: 0 for labels
    cdef object memory_of_scratch               # keeps this alive
    cdef double* scratch                        # of `run`

    cdef Py_ssize_t scratch_size(self, Py_ssize_t outputs) noexcept nogil
    cdef void combine_row(self, Row* row) noexcept nogil
    cdef void learn_row(self, Row* row) noexcept nogil
    cdef void current_weights(self, Py_ssize_t group, double* w) noexcept nogil
    cdef int open(self, Py_ssize_t n, Py_ssize_t outputs) except -1
    cdef void run(self, Py_ssize_t n, Py_ssize_t outputs, const double* scores, const double* y,
                  const Py_ssize_t* n_seen, const double* counts, const unsigned char* enabled, double* combined,
                  double* deviations) noexcept nogil
    cdef int evaluate(self, Py_ssize_t n, Py_ssize_t outputs, const double* scores, Py_ssize_t n_seen,
                      const unsigned char* enabled, double* combined, double* deviations) except -1
    cdef void combine(self, Py_ssize_t n, Py_ssize_t outputs, const double* scores, Py_ssize_t n_seen,
                      const unsigned char* enabled, double* combined, double* deviations,
                      double* scratch) noexcept nogil


@cython.final
cdef class AveragedRanks(Combiner):
    cdef readonly Ranks each, mean, latest      # samples of scores, and of means; the latest means
    cdef readonly double nu
    cdef readonly long long patience
    cdef readonly object member_weights         # owns these:
    cdef double* weights_data
    cdef public long long t                     # rows seen
    cdef public double tokens, excess           # alerts that may count as scores, and those that there were too many
    cdef unsigned char* held                    # of the rows of `run`, which members should not keep; or NULL

    cdef bint counts_after(self, bint alert, double mean, unsigned char* held) noexcept nogil
    cdef double most_tokens(self) noexcept nogil
    cdef double share(self) noexcept nogil
    cdef double rank_of(self, double mean) noexcept nogil
    cpdef double level(self) noexcept nogil
    cpdef void begin_anew(self) noexcept nogil


cdef class Probabilities:
    cdef int open(self, Py_ssize_t outputs) except -1
    cdef void change(self, double* p, Py_ssize_t n_seen) noexcept nogil
    cdef void learn(self, const double* before, const double* after, Py_ssize_t n_seen, Py_ssize_t label,
                    double count) noexcept nogil
    cdef void set_factors(self, Py_ssize_t n_seen, Py_ssize_t outputs, double* factors) noexcept nogil
    cdef void run(self, Py_ssize_t n, Py_ssize_t outputs, const double* likely, const double* y,
                  const Py_ssize_t* n_seen, const double* counts, double* changed, double* factors) noexcept nogil
    cdef void evaluate(self, Py_ssize_t n, Py_ssize_t outputs, const double* likely, Py_ssize_t n_seen,
                       double* changed) noexcept nogil


@cython.final
cdef class TargetFences:
    cdef readonly Py_ssize_t targets
    cdef public long long t                     # rows
    cdef readonly object first                  # the first targets
    cdef readonly object residuals              # the latest ones, row t at t % RESIDUALS
    cdef readonly object quantile               # of theirs
    cdef readonly object beyond                 # how many of the latest targets in a row were beyond; below count down
    cdef readonly object excess                 # how far at least
    cdef double* excess_data
    cdef readonly object least, largest         # of the targets that were believed, after the first
    cdef double* least_data
    cdef double* largest_data
    cdef readonly object mean                   # of clipped targets; the median of the first targets
    cdef object scratch
    cdef double* first_data
    cdef double* residual_data
    cdef double* quantile_data
    cdef double* beyond_data
    cdef double* mean_data
    cdef double* work

    cdef bint has_outlier(self) noexcept nogil
    cdef bint is_plausible(self, double y, Py_ssize_t j) noexcept nogil
    cdef void set_range(self, Py_ssize_t j) noexcept nogil
    cdef bint is_young(self) noexcept nogil
    cdef double deviation(self, Py_ssize_t j, double* most) noexcept nogil
    cdef double first_reach(self, Py_ssize_t j, double* most) noexcept nogil
    cdef double reach(self, Py_ssize_t j, double deviation, double local) noexcept nogil
    cdef void tell(self, const double* y, const double* predicted, const double* deviations, const double* local,
                   double* clipped) noexcept nogil
    cdef double first_median(self, Py_ssize_t j, Py_ssize_t n) noexcept nogil
    cdef void set_quantile(self, Py_ssize_t j) noexcept nogil


@cython.final
cdef class IntervalTracker:
    cdef readonly Py_ssize_t targets
    cdef readonly bint positive                 # whether intervals of targets that were positive so far are
    cdef readonly object least                  # target so far
    cdef Py_ssize_t n, first                    # innovations that are kept; where they begin in `kept`
    cdef object kept                            # innovations, the oldest first; room for twice as many
    cdef double* kept_data
    cdef double* least_data

    cdef void run(self, Py_ssize_t n, const double* predictions, const double* y, const double* deviations,
                  double* innovations, double* leasts) noexcept nogil


@cython.final
cdef class ChangeDetector:
    cdef readonly Py_ssize_t targets            # 0 for labels
    cdef public long long t                     # rows,
    cdef public long long judged                # and those that were judged
    cdef public long long quiet                 # row before which nothing is noticed
    cdef readonly object thresholds             # logarithms of errors beyond which an error is large
    cdef readonly object rates                  # fading sums: mistakes, and those that were expected
    cdef readonly object evidence, since        # for each of the alternatives, and the row from which it is counted
    cdef readonly Py_ssize_t n_changes
    cdef object noted                           # their rows: first after the change, at which it was noticed
    cdef double* thresholds_data
    cdef double* rates_data
    cdef double* evidence_data
    cdef long long* since_data
    cdef long long* noted_data

    cdef void run(self, Py_ssize_t n, Py_ssize_t outputs, const double* scores, const double* y,
                  const Py_ssize_t* n_seen, const double* counts) noexcept nogil
    cdef void learn(self, double mistake, double chance) noexcept nogil
    cdef void note(self, long long first) noexcept nogil
