"""Gradient steps whose size adapts: stochastic meta-descent, SVMD."""
from onlinekernels._core.formulas.moves cimport Norms, Standing
from onlinekernels._core.rules.rule cimport Rule
from onlinekernels._core.run.example cimport Example


cdef struct Adapted:
    # What adapts with the examples: V (33)-(58)
    double eta                          # step of f
    double scalar_eta                   # step of the margin's logarithm
    double scalar_trace                 # its trace: the derivative of that logarithm with respect to that of its step
    double scale                        # running mean of |<g, v>|, if products are normalized,
    double scale_weight                 # and the sum of the weights in it


cdef struct OffsetStep:
    # What adapts with each offset: V (50)-(52)
    double eta                          # step of the offset
    double trace                        # derivative of the offset with respect to the logarithm of its step
    double scale                        # running mean of |<g, v>|, as in `Adapted`,
    double weight                       # and the sum of the weights in it
    double offset                       # that it has led to


cdef struct Adaptation:
    # What is decided about an example; behind it, an `OffsetStep` for each output
    Adapted adapted                     # what the rule will have adapted to
    double derivative                   # of the loss along the direction that was looked at,
    double curvature                    # and its curvature there
    double stiffness                    # curvature along the step, squared losses: caps adapted steps
    double offset_trace                 # what the trace of an offset gains along the direction


cdef inline Adaptation* decided(Example e) noexcept nogil:
    return <Adaptation*> e.decision


cdef inline OffsetStep* decided_offsets(Example e) noexcept nogil:
    return <OffsetStep*> (e.decision + sizeof(Adaptation))


cdef class AdaptiveGradient(Rule):
    cdef readonly double regularization         # c of V
    cdef readonly double penalty                # C of implicit steps, otherwise 1
    cdef readonly double offset_meta_rate       # mu of the offsets: V (51),
    cdef readonly double offset_memory          # and their lambda: V (52)
    cdef readonly double margin_meta_rate       # mu of the margin: V (57),
    cdef readonly double margin_memory          # and its lambda: V (58)
    cdef readonly double offset_rate            # eta of the offsets at the beginning,
    cdef readonly double margin_rate            # and of the margin
    cdef readonly bint exponential              # whether steps are multiplied by the exponential itself: V (4)
    cdef readonly bint normalized               # whether products <g, v> are taken relative to their running mean
    cdef Adapted adapted                        # what has adapted with the examples so far
    cdef readonly object offset_steps           # an `OffsetStep` for each output
    cdef OffsetStep* offsets                    # its data

    cdef int set_offset_steps(self, steps) except -1
    cdef void adapt(self, double product, Example e) noexcept nogil
    cdef void move_scalar(self, const Standing* now, Example e) noexcept nogil
    cdef void leave_steps(self, const Standing* now, double curvature, Example e) noexcept nogil
    cdef void norms_over(self, Py_ssize_t first, Py_ssize_t stop, double k, const double* chi, const double* K_new,
                         const double* K_xi, const Norms* old, Norms* new, Example e) noexcept nogil
