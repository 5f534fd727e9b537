"""Gradient descent: NORMA."""
cimport cython
from libc.math cimport INFINITY
from onlinekernels._core.formulas.moves cimport Standing, gradient_move, gradient_shrink, moved_square, step_size
from onlinekernels._core.functions.outputs cimport Outputs
from onlinekernels._core.rules.rule cimport Rule
from onlinekernels._core.rules.rule import DIRECTIONS
from onlinekernels._core.run.example cimport Example


@cython.final
cdef class Gradient(Rule):
    """f <- (1 - eta lambda) f - eta l'(f(x), y) k(x, .): NORMA.

    Parameters
    ----------
    step : tuple
    regularization : float
        lambda of K.
    """
    cdef readonly double regularization

    def __init__(self, step, **settings):
        self.forms = (*DIRECTIONS, "AllLabels")
        self.configure(step, **settings)

    def configure(self, step, double regularization):
        Rule.configure(self, step)
        self.regularization = regularization

    cdef double longest(self) noexcept nogil:
        return 1.0 / self.regularization if self.regularization > 0.0 else INFINITY

    cdef void move(self, const Standing* now, Example e) noexcept nogil:
        gradient_move(&now.loss, &now.pace, step_size(&self.step, now.t + 1), self.regularization, &e.view, &e.move)
        if now.keeps_square:
            moved_square(&now.norms, &e.view, &e.move)

    cdef void move_all(self, const Standing* now, Outputs outputs, Py_ssize_t y, double k, Example e) noexcept nogil:
        cdef double eta = step_size(&self.step, now.t + 1)
        cdef Py_ssize_t l
        e.move.transform[0][0] = gradient_shrink(eta, self.regularization)
        for l in range(outputs.n):
            e.term.alpha[l] = e.term.offset[l] = -eta * e.derivative[l]
