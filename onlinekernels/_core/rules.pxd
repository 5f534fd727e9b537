"""Rules: what an example does to a function."""
cimport cython
from onlinekernels._core.coefficients cimport Coefficients
from onlinekernels._core.kernelbudgets cimport Projecting
from onlinekernels._core.moves cimport Standing, Step, View
from onlinekernels._core.outputs cimport Outputs
from onlinekernels._core.workspace cimport Workspace


cdef class Rule:
    cdef Step step
    cdef readonly bint has_trace        # whether the function's second channel is the gradient trace v
    cdef readonly bint looks_ahead      # whether it looks at the scores of the hypothesis that it will have shrunk

    # To be implemented
    cdef void move(self, const Standing* now, View* view, Workspace w) noexcept nogil
    # Where it makes sense
    cdef void move_all(self, const Standing* now, Outputs outputs, Py_ssize_t y, double k, double weight,
                       Workspace w) noexcept nogil
    cdef double shrink(self, long long t) noexcept nogil
    cdef double step_at(self, long long t) noexcept nogil
    cdef bint is_finite(self) noexcept nogil
    cdef void accept(self, const Standing* now, Py_ssize_t labels, double* offset, Workspace w) noexcept nogil
    cdef void follow(self, Workspace w) noexcept nogil


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
    cdef Projecting budget


cdef struct Adapted:
    # What adapts with the examples: V (33)-(58)
    double eta
    double scalar_eta                   # step of the margin's logarithm
    double scalar_trace


@cython.final
cdef class MetaDescent(Rule):
    cdef readonly double regularization         # c of V
    cdef Adapted adapted
    cdef Adapted next                   # after the move that has been decided
    cdef double xi                      # the derivative that was used, one direction, and the curvature
    cdef double curvature
    cdef double stiffness               # curvature along the step, squared losses: caps adapted steps
    cdef readonly object offset_steps   # rows: step size of each offset, its trace
    cdef double* offset_eta
    cdef double* offset_trace

    cdef void move_scalar(self, const Standing* now, const View* view, Workspace w) noexcept nogil
    cdef set_offset_steps(self, array)


cdef void hessian_times(Workspace w, const double* vector, Py_ssize_t n, double weight) noexcept nogil
