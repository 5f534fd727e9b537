"""Steps and rules: how (score, y) becomes a move of the hypothesis.

A move is a linear transform of all old coefficients, the true coefficients of one new term, a new
offset and a new value of the loss's scalar.  The engine carries it out.
"""
from libc.math cimport sqrt
from onlinekernels._core.frame cimport MAX_CHANNELS
from onlinekernels._core.losses cimport Loss, loss_moved_scalar

cdef enum StepCode:
    FIXED = 0
    INVERSE_SQRT = 1
    DECAYING = 2

cdef struct Step:
    int code
    double rate         # eta_0
    double delay        # tau of V (59)

cdef struct Move:
    double transform[MAX_CHANNELS][MAX_CHANNELS]    # acts on the old coefficients, lower triangular
    double alpha[MAX_CHANNELS]                      # true coefficients of the new term
    double offset                                   # new offset b
    double scalar                                   # new scalar of the loss


cdef inline double step_size(const Step* step, long long t) noexcept nogil:
    """eta_t; t counts examples from 1."""
    if step.code == INVERSE_SQRT:
        return step.rate / sqrt(<double> t)                                 # K Thm 4
    if step.code == DECAYING:
        return step.rate * sqrt(step.delay / (step.delay + <double> t))     # V (59)
    return step.rate


cdef inline void gradient_move(const Loss* loss, double eta, double regularization, double weight,
                               double derivative, double scalar_gradient, double offset,
                               Move* move) noexcept nogil:
    """f <- (1 - eta lambda) f - eta l'(f(x), y) k(x, .): K (9), (11), (12), with eta_t in both places."""
    cdef double change = -eta * weight * derivative
    move.transform[0][0] = 1.0 - eta * regularization
    move.alpha[0] = change
    move.offset = offset + change                                           # K (16): never decayed
    move.scalar = loss_moved_scalar(loss, loss.scalar - eta * weight * scalar_gradient)
