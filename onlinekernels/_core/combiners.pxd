"""How the predictions of members become one: combiners, calibration, prior correction, intervals."""
cimport cython
from onlinekernels._core.transforms cimport Ranks


cdef class Combiner:
    cdef readonly Py_ssize_t n_members, targets # targets: 0 for labels
    cdef object memory_of_scratch               # keeps this alive
    cdef double* scratch                        # of `run`

    cdef Py_ssize_t scratch_size(self, Py_ssize_t outputs) noexcept nogil
    cdef int open(self, Py_ssize_t n, Py_ssize_t outputs) except -1
    cdef void run(self, Py_ssize_t n, Py_ssize_t outputs, const double* scores, const double* y,
                  const Py_ssize_t* joined, const double* counts, const unsigned char* enabled, double* combined,
                  double* deviations) noexcept nogil
    cdef int evaluate(self, Py_ssize_t n, Py_ssize_t outputs, const double* scores, Py_ssize_t joined,
                      const unsigned char* enabled, double* combined, double* deviations) except -1
    cdef void combine(self, Py_ssize_t n, Py_ssize_t outputs, const double* scores, Py_ssize_t joined,
                      const unsigned char* enabled, double* combined, double* deviations,
                      double* scratch) noexcept nogil


@cython.final
cdef class LeakyFits:
    cdef readonly Py_ssize_t n, groups, n_settings  # weights of each fit; fits: one for each group and setting
    cdef readonly double start                      # what each weight is beforehand
    cdef readonly object memories, priors           # of the settings
    cdef readonly object w, S                       # weights, and the inverse of their precision, of each fit
    cdef object memory_of_work
    cdef double* work
    cdef double* w_data
    cdef double* S_data
    cdef double* memory_data
    cdef double* prior_data

    cdef double* weights_of(self, Py_ssize_t fit) noexcept nogil
    cdef void leak(self, Py_ssize_t fit, long long t) noexcept nogil
    cdef double learn_direction(self, Py_ssize_t fit, const double* x, double precision, double* factor) noexcept nogil
    cdef void newton(self, Py_ssize_t fit, const double* x, const double* gradient, double count,
                     double curvature) noexcept nogil
    cdef void least_squares(self, Py_ssize_t fit, const double* x, double error, double precision) noexcept nogil
    cdef void keep_sound(self, Py_ssize_t fit) noexcept nogil


cdef class Differences(Combiner):
    cdef readonly object origin                 # what members' scores are counted from; None: their mean
    cdef bint about_mean
    cdef double origin_value

    cdef void weights_now(self, Py_ssize_t group, double* v) noexcept nogil
    cdef void member_weights(self, Py_ssize_t group, double* w) noexcept nogil
    cdef double limits(self, Py_ssize_t group, double* low, double* high) noexcept nogil
    cdef double apart(self, const double* scores, Py_ssize_t outputs, Py_ssize_t j, const unsigned char* enabled,
                      double low, double high, double* d) noexcept nogil


@cython.final
cdef class LeastSquares(Differences):
    cdef readonly double memory, prior, count
    cdef readonly Py_ssize_t groups
    cdef readonly object products, answers, squares, v
    cdef double* products_data
    cdef double* answers_data
    cdef double* squares_data
    cdef double* v_data

    cdef void learn(self, Py_ssize_t g, const double* d, const double* missed, Py_ssize_t columns,
                    double weight) noexcept nogil
    cdef void solve(self, Py_ssize_t g, double* root) noexcept nogil


@cython.final
cdef class AveragedRanks(Combiner):
    cdef readonly Ranks each, mean
    cdef readonly double nu, level

    cpdef void begin_anew(self) noexcept nogil


@cython.final
cdef class Calibration:
    cdef readonly object sums                   # of rows, of hits, and of hits as q has it, at the knots
    cdef readonly LeakyFits line
    cdef readonly long long t
    cdef double* sums_data

    cdef void run(self, Py_ssize_t n, Py_ssize_t outputs, const double* likely, const double* y,
                  const Py_ssize_t* joined, const double* counts, double* calibrated) noexcept nogil
    cdef void evaluate(self, Py_ssize_t n, Py_ssize_t outputs, const double* likely, Py_ssize_t joined,
                       double* calibrated) noexcept nogil
    cdef void learn(self, double p, bint hit, double count) noexcept nogil
    cdef double stretched(self, double p) noexcept nogil
    cdef void calibrate(self, double* p, Py_ssize_t n, Py_ssize_t best) noexcept nogil
    cdef double left_at(self, Py_ssize_t k) noexcept nogil


@cython.final
cdef class PriorCorrection:
    cdef readonly bint balanced                 # each class counts alike; otherwise F1 of the rarer of two
    cdef Py_ssize_t classes                     # that there is memory for
    cdef readonly object frequencies, found     # fading: of the classes; rare rows that were found, alarms, rare rows
    cdef double* frequencies_data
    cdef double* found_data

    cdef int open(self, Py_ssize_t n, Py_ssize_t outputs) except -1
    cdef void run(self, Py_ssize_t n, Py_ssize_t outputs, const double* likely, const double* y,
                  const Py_ssize_t* joined, double* corrected, double* factors) noexcept nogil
    cdef void evaluate(self, Py_ssize_t n, Py_ssize_t outputs, const double* likely, Py_ssize_t joined,
                       double* corrected) noexcept nogil
    cdef double factor(self, Py_ssize_t c, Py_ssize_t joined, double total) noexcept nogil
    cdef double total(self, Py_ssize_t joined) noexcept nogil


@cython.final
cdef class TargetFences:
    cdef readonly Py_ssize_t targets
    cdef readonly Ranks samples                 # of the targets so far
    cdef readonly object limits                 # lower and upper fences, infinite where there are none
    cdef readonly object beyond                 # how many of the latest targets in a row were beyond; below count down
    cdef object next_beyond                     # the same after the rows that `clip` has seen
    cdef double* limits_data
    cdef double* beyond_data
    cdef double* next_data

    cdef void clip(self, const double* y, Py_ssize_t n, double* clipped) noexcept nogil
    cdef void commit(self, const double* y, Py_ssize_t n) noexcept nogil


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
    cdef double factor(self, Py_ssize_t j, double coverage, double gaussian, double* scratch) noexcept nogil
