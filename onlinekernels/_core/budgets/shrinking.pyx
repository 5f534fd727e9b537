"""A budget that scales f down before the oldest term goes: the Forgetron's."""
from libc.math cimport fabs, fmax, sqrt
from onlinekernels._core.arrays import check_number
from onlinekernels._core.budgets.pairs cimport PairBudget
from onlinekernels._core.functions.coefficients cimport NOBODY, Coefficients
from onlinekernels._core.functions.function cimport Scratch
from onlinekernels._core.run.example cimport Outcome, Term


cdef inline double won_by(const Term* term) noexcept nogil:
    """What an update brings f nearer to a function with margin 1: |f - u|^2 falls by 2 a - a^2, or more."""
    cdef double a = fabs(term.alpha[0])
    return a * (2.0 - a) if a < 1.0 else 1.0


cdef class ShrinkingBudget(PairBudget):
    """The oldest term goes, after all of f has been shrunk: the self-tuned Forgetron (Dekel, Shalev-Shwartz, Singer 2008).

    With sigma the oldest term's absolute coefficient and mu the margin of its point, both with the newcomer there, a removal
    after shrinking by phi costs at most Psi = (sigma phi)^2 + 2 sigma phi - 2 sigma phi^2 mu. phi is as large as can
    be such that the sum of these, Q, stays within 15/32 of what the updates have won: for mistakes of a Perceptron their number,
    M, and for a coefficient a, of a smaller step, 2 a - a^2 (and no more than 1).

    Parameters
    ----------
    size : int
    """

    def __init__(self, long long size):
        self.most = size
        self.looks_at_newcomers = True

    cdef void make_room(self, Coefficients terms, Scratch w, const Term* term, Py_ssize_t i, double size,
                        Outcome* outcome) noexcept nogil:
        """O(terms)."""
        cdef Py_ssize_t slot, oldest = NOBODY, start = terms.dictionary.start
        cdef const double* stored = terms.column(0)
        cdef const double* values
        cdef double frame, sigma, score, square, rest, phi = 1.0
        if terms.count < self.most:
            return
        for slot in range(start, terms.dictionary.stop):
            if terms.holds(slot) and (oldest == NOBODY or terms.dictionary.born(slot) < terms.dictionary.born(oldest)):
                oldest = slot
        values = <double*> self.pairs.data + oldest * self.pairs.capacity
        score = term.stored[0] * w.piece.values[oldest - start]
        for slot in range(start, terms.dictionary.stop):
            if terms.holds(slot):
                score += stored[slot] * values[slot]
        frame = term.alpha[0] / term.stored[0] if term.stored[0] != 0.0 else 0.0    # a term of the trace alone: nothing to shrink for
        sigma = fabs(frame * stored[oldest])
        square = sigma * sigma - 2.0 * frame * stored[oldest] * frame * score
        rest = 15.0 / 32.0 * (self.won + won_by(term)) - self.damage
        if square + 2.0 * sigma > rest:         # the smaller root of square phi^2 + 2 sigma phi = rest
            phi = rest / (sigma + sqrt(fmax(0.0, sigma * sigma + square * rest)))
        outcome.slot, outcome.shrink, outcome.loss = oldest, phi, phi * (square * phi + 2.0 * sigma)

    cdef void hand_over(self, Coefficients terms, Scratch w, Term* term, Py_ssize_t i, Outcome* outcome) noexcept nogil:
        PairBudget.hand_over(self, terms, w, term, i, outcome)
        self.won += won_by(term)
        self.damage += outcome.loss

    def state(self, Coefficients terms, slots):
        return {**PairBudget.state(self, terms, slots), "won": self.won, "damage": self.damage}

    def check_numbers(self, state, Py_ssize_t n):
        PairBudget.check_numbers(self, state, n)
        check_number(state["damage"], "damage")
        check_number(state["won"], "won", 0.0)
        if state["damage"] > 15.0 / 32.0 * state["won"] * (1.0 + 1e-9):
            raise ValueError("the damage is more than it may be")

    def restore(self, Coefficients terms, state):
        PairBudget.restore(self, terms, state)
        self.won, self.damage = state["won"], state["damage"]
