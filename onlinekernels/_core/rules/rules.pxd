"""Rules: what an example does to a function."""
cimport cython
from onlinekernels._core.functions.coefficients cimport Coefficients
from onlinekernels._core.functions.function cimport Function
from onlinekernels._core.budgets.projecting cimport ProjectingBudget
from onlinekernels._core.formulas.moves cimport Descent, Norms, Standing, Step, View
from onlinekernels._core.functions.outputs cimport Outputs
from onlinekernels._core.run.workspace cimport Workspace


cdef class Rule:
    cdef Step step
    cdef readonly bint has_trace        # whether the function's second channel is the gradient trace v
    cdef readonly bint per_feature      # whether each weight has a step of its own, which the function keeps
    cdef Descent descent                # then: what it needs to know
    cdef readonly bint looks_ahead      # whether it looks at the scores of the hypothesis that it will have shrunk
    cdef readonly int trouble           # what it has noticed; see `watch`

    # To be implemented
    cdef void move(self, const Standing* now, View* view, Workspace w) noexcept nogil
    # Where it makes sense
    cdef void move_all(self, const Standing* now, Outputs outputs, Py_ssize_t y, double k, double weight,
                       Workspace w) noexcept nogil
    cdef double shrink(self, long long t) noexcept nogil
    cdef void look_back(self, const Standing* now, const View* view, Workspace w) noexcept nogil
    cdef double step_at(self, long long t) noexcept nogil
    cdef bint is_finite(self) noexcept nogil
    cdef bint decide_offsets(self, Py_ssize_t labels, const double* offset, Workspace w) noexcept nogil
    cdef void accept(self, const Standing* now, Py_ssize_t labels, double* offset, Workspace w) noexcept nogil
    cdef void follow(self, Workspace w) noexcept nogil
    cdef double reach(self, Workspace w, Py_ssize_t output, int level, double share, double factor) noexcept nogil
    cdef int stand_on(self, Function function) except -1


@cython.final
cdef class Gradient(Rule):
    cdef readonly double regularization         # lambda of K


@cython.final
cdef class Implicit(Rule):
    cdef readonly double regularization         # lambda of I
    cdef readonly double penalty                # C of I

    cdef void over_all_labels(self, const Standing* now, Py_ssize_t n, Py_ssize_t y, double k, double size,
                              Workspace w) noexcept nogil


@cython.final
cdef class Aggressive(Rule):
    cdef readonly double penalty
    cdef readonly bint squared                  # PA-II


@cython.final
cdef class Relaxed(Rule):
    cdef readonly bint aggressive               # below margin 1, not after mistakes only
    cdef bint too_long                          # whether the move that has been decided starts anew


@cython.final
cdef class Ball(Rule):
    cdef readonly double radius


@cython.final
cdef class Approximate(Rule):
    cdef readonly double threshold              # (1 - alpha) B
    cdef readonly double penalty                # C
    cdef readonly double corrections            # updates so far
    cdef double next_corrections


@cython.final
cdef class Projected(Rule):
    cdef readonly double tolerance              # eta of margin errors; 0: only mistakes count
    cdef Coefficients terms
    cdef ProjectingBudget budget


cdef struct Adapted:
    # What adapts with the examples: V (33)-(58)
    double eta
    double scalar_eta                   # step of the margin's logarithm
    double scalar_trace
    double scale                        # running mean of |<g, v>|, if products are normalized,
    double scale_weight                 # and the sum of the weights in it


cdef class MetaDescent(Rule):
    cdef readonly double regularization         # c of V
    cdef readonly double penalty                # C of implicit steps, otherwise 1
    cdef readonly double offset_meta_rate       # mu and lambda of the offsets: V (51), (52)
    cdef readonly double offset_memory
    cdef readonly double margin_meta_rate       # and of the margin: V (57), (58)
    cdef readonly double margin_memory
    cdef readonly bint normalized               # whether products <g, v> are relative to their running mean
    cdef Adapted adapted
    cdef Adapted next                   # after the move that has been decided
    cdef double xi                      # the derivative that was used, one direction, and the curvature
    cdef double curvature
    cdef double stiffness               # curvature along the step, squared losses: caps adapted steps
    # Rows: step size of each offset, its trace, the scale of its product, weights in it; these after the move that has been
    # decided, and the offset itself
    cdef readonly object offset_steps
    cdef Py_ssize_t offset_width
    cdef double* offset_eta
    cdef double* offset_trace
    cdef double* offset_scale
    cdef double* offset_weight
    cdef double* next_offset

    cdef void norms_over(self, Py_ssize_t first, Py_ssize_t stop, double k, const Norms* old, Norms* new,
                         Workspace w) noexcept nogil
    cdef void adapt(self, double product) noexcept nogil
    cdef void move_scalar(self, const Standing* now, const View* view, Workspace w) noexcept nogil
    cdef void leave_steps(self, const Standing* now, double curvature, Workspace w) noexcept nogil
    cdef int set_offset_steps(self, array) except -1


@cython.final
cdef class ImplicitMetaDescent(MetaDescent):
    cdef double trace_of_offset         # what the trace of an offset gains along the direction

    cdef double offset_trace_along(self, Workspace w) noexcept nogil
    cdef void adapt_freely(self, double product) noexcept nogil
    cdef void over_targets(self, const Standing* now, Py_ssize_t n, double k, double size, Workspace w) noexcept nogil
    cdef void over_all_labels(self, Py_ssize_t n, Py_ssize_t y, double k, double size, Workspace w) noexcept nogil


cdef double stiffness_along(Workspace w, const double* K_xi, Outputs outputs, double k, double offsets) noexcept nogil
cdef void hessian_times(Workspace w, const double* vector, Py_ssize_t n, double weight) noexcept nogil
