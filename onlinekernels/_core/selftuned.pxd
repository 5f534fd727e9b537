"""Posteriors whose kernels are learned on the stream."""
cimport cython
from onlinekernels._core.ensemble cimport Ensemble, Member
from onlinekernels._core.transforms cimport Transform


@cython.final
cdef class Metric(Transform):
    cdef readonly object map            # B such that distances are |u B - v B|, for features u and v; None: features alone
    cdef Py_ssize_t levels              # knots of a feature at most
    cdef object memory_of_map           # owns these:
    cdef double* mean                   # (features,)
    cdef double* slope                  # of the part that is linear
    cdef double* last                   # knot of each feature
    cdef double* knots                  # (features, levels): ascending, infinite behind the last one,
    cdef double* scores                 # at the knots,
    cdef double* rises                  # and slopes from each knot on
    cdef double* turned                 # the map, transposed
    cdef double* compared               # a row's features

    cdef void score_row(self, const double* x, double* out) noexcept nogil
    cdef void map_row(self, const double* x, double* compared, double* out) noexcept nogil


@cython.final
cdef class SelfTuning(Ensemble):
    cdef readonly object maker          # makes members
    cdef readonly tuple kinds           # names of those whose kernel is learned; the last member is plain
    cdef readonly Py_ssize_t window     # rows that are kept to learn kernels from
    cdef readonly Py_ssize_t sampled    # rows at most that the evidence is taken of
    cdef public bint frozen             # kernels stay as they are
    cdef readonly long long began       # row at which the clock of refreshes started
    cdef readonly long long due         # row at which the next one takes over,
    cdef readonly long long begin       # and at which it begins
    cdef readonly long long oldest      # row that may be kept
    cdef readonly long long first_loss  # row from which losses are known
    cdef long long checked              # row at which a change was looked for last
    cdef readonly object pending        # the refresh under way, or None
    cdef readonly list refreshes        # (t, whether by an alarm, what each kind has learned)
    cdef Py_ssize_t first               # row of the call with which the block begins
    cdef object memory_of_rows          # owns these, both rings in which row t is at t % size:
    cdef double* kept                   # rows, targets and weights,
    cdef double* losses_kept            # losses of the learned members and of the plain one
    cdef readonly Py_ssize_t capacity   # rows of the first
    cdef readonly object kept_array, loss_array, units
    cdef double* unit                   # of each target, in which losses are measured
    cdef object memory_of_shares
    cdef double* shares                 # (members, groups): of members in the deviation, before a row

    cdef int plan(self, long long due) except -1
    cdef void weigh(self, const unsigned char* enabled, double* shares) noexcept nogil
    cdef void spread(self, const double* deviations, const double* shares, double* out) noexcept nogil
    cdef void keep(self, Py_ssize_t i) noexcept nogil
    cdef int replay(self, Member member, long long first, long long last) except -1
