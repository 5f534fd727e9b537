"""A budget that projects what goes onto what stays."""
import numpy as np
from libc.math cimport fmax, fmin
from onlinekernels._core.budgets.span cimport Look, Span
from onlinekernels._core.functions.coefficients cimport NEARLY, NEWCOMER, NOBODY, Budget, Coefficients
from onlinekernels._core.functions.function cimport Scratch
from onlinekernels._core.run.example cimport Outcome, Term


cdef class ProjectingBudget(Budget):
    """What goes is projected onto what stays: the others get what they can represent of it.

    Parameters
    ----------
    size : int
    tolerance : float
        A newcomer of which this part or less of k(x, x) is orthogonal to the others never enters.
    """

    def __init__(self, long long size, double tolerance):
        self.most = size
        self.tolerance = tolerance
        self.looks_at_newcomers = True
        self.span = Span()

    def let_newcomers_yield(self):
        """When it is full, those that are there stay."""
        self.newcomers_yield = True

    cdef Py_ssize_t numbers(self, Coefficients terms) noexcept:
        return 2 + 3 * (terms.dictionary.capacity + 1)

    cdef Look look_in(self, Coefficients terms, double* room) noexcept nogil:
        """What was seen in the call whose room this is. O(1)."""
        cdef Look look
        cdef Py_ssize_t size = terms.dictionary.capacity + 1
        look.own, look.residual = room[0], room[1]
        look.way, look.shares, look.loss = room + 2, room + 2 + size, room + 2 + 2 * size
        return look

    cdef double look(self, Coefficients terms, const double* values, double own, double* room) noexcept nogil:
        """What part of an example with these kernel values is orthogonal to the terms. O(terms^2)."""
        cdef Look look = self.look_in(terms, room)
        self.span.look(values, terms.dictionary.start, own, &look)
        room[0], room[1] = look.own, look.residual
        return look.residual / own

    cdef void make_room(self, Coefficients terms, Scratch w, const Term* term, Py_ssize_t i, double size,
                        Outcome* outcome) noexcept nogil:
        """O(terms^2)."""
        cdef Py_ssize_t place
        cdef Look look
        if not term.looked_at:                  # otherwise the rule has let it be looked at
            self.look(terms, w.piece.values, w.piece.own[i], w.for_budget)
        look = self.look_in(terms, w.for_budget)
        outcome.slot = NEWCOMER
        if look.residual / w.piece.own[i] <= fmax(self.tolerance, self.floor) or term.stays_out:
            return
        if terms.count < self.most:
            outcome.slot = NOBODY
        elif not self.newcomers_yield:
            place = self.cheapest(terms, term, &look)
            if place < self.span.n:
                outcome.slot = self.span.order[place]

    cdef void hand_over(self, Coefficients terms, Scratch w, Term* term, Py_ssize_t i, Outcome* outcome) noexcept nogil:
        """O(terms^2)."""
        cdef Py_ssize_t place = 0
        cdef Look look = self.look_in(terms, w.for_budget)
        if outcome.slot == NEWCOMER:
            outcome.residual = look.residual
            self.share_out_newcomer(terms, term, &look)
            return
        self.span.append(&look)
        self.expected = True
        if outcome.slot != NOBODY:
            while self.span.order[place] != outcome.slot:
                place += 1
            outcome.residual = self.span.leave(place)
            self.share_out(terms, term, &w.old, outcome.slot, place, outcome.residual)

    cdef Py_ssize_t cheapest(self, Coefficients terms, const Term* term, Look* look) noexcept nogil:
        """Whose projection onto the others and the newcomer loses least: a place in the span, its end for the newcomer."""
        cdef Py_ssize_t j, k, row, rows = terms.kept()
        cdef double* loss = look.loss
        cdef double coefficient, least, share
        least = 0.0
        for k in range(term.n):
            if term.labels[k] < rows:
                least += term.stored[k] * term.stored[k]
        least *= look.residual
        for j in range(self.span.n):
            loss[j] = 0.0
            for row in range(rows):
                coefficient = terms.column(self.span.order[j])[row * terms.stored.capacity]
                loss[j] += coefficient * coefficient
            share = look.shares[j]
            loss[j] /= self.span.spike[j] + share * share / look.residual
            least = fmin(least, loss[j])
        for j in range(self.span.n):
            if loss[j] <= least * NEARLY:
                return j
        return self.span.n

    cdef void share_out_newcomer(self, Coefficients terms, const Term* term, const Look* look) noexcept nogil:
        cdef Py_ssize_t k, j
        cdef int channel
        cdef double* stored
        cdef double value
        for channel in range(terms.channels):
            for k in range(term.n):
                value = term.stored[channel * term.n + k]
                stored = terms.column(0) + (channel * terms.rows + term.labels[k]) * terms.stored.capacity
                for j in range(self.span.n):
                    stored[self.span.order[j]] += value * look.shares[j]

    cdef void share_out(self, Coefficients terms, Term* term, Term* old, Py_ssize_t slot, Py_ssize_t place,
                        double residual) noexcept nogil:
        """What the term in a slot leaves to the others and to the newcomer, which has a coefficient for every output then.

        It has left the span, where it was in a place.
        """
        cdef Py_ssize_t row, k, j, n = self.span.n - 1      # the last is the newcomer
        cdef int channel
        cdef const double* column = self.span.column
        cdef double* stored
        cdef double value
        terms.read(slot, old)
        for row in range(terms.channels * terms.rows):
            value = -old.stored[row] * residual
            stored = terms.column(0) + row * terms.stored.capacity
            for j in range(place):
                stored[self.span.order[j]] += value * column[j]
            for j in range(place, n):
                stored[self.span.order[j]] += value * column[j + 1]
            old.stored[row] = value * column[n + 1]
        for channel in range(terms.channels):
            for k in range(term.n):
                old.stored[channel * terms.rows + term.labels[k]] += term.stored[channel * term.n + k]
        term.n = terms.rows
        for row in range(terms.rows):
            term.labels[row] = <int> row
        for row in range(terms.channels * terms.rows):
            term.stored[row] = old.stored[row]

    cdef void entered(self, Coefficients terms, Py_ssize_t slot) noexcept nogil:
        self.span.order[self.span.n - 1] = slot
        self.expected = False

    cdef void left(self, Coefficients terms, Py_ssize_t slot) noexcept nogil:
        cdef Py_ssize_t place = 0
        if self.expected:                       # it has made room for a newcomer
            return
        while self.span.order[place] != slot:
            place += 1
        self.span.leave(place)

    cdef int begin(self, Coefficients terms) except -1:
        self.floor = 1e-10 if terms.dictionary.dtype == np.float64 else 1e-5
        return 0

    cdef int prepare(self, Coefficients terms, Py_ssize_t capacity) except -1:
        if self.span.room < capacity + 1:
            self.span.make_room(capacity + 1)
        return 0

    cdef void arrange(self, Coefficients terms) noexcept nogil:
        """The span follows the terms whatever their slots are called."""
        if terms.count == self.span.n:          # otherwise a state is about to be restored
            terms.list_slots(self.span.order)

    def state(self, Coefficients terms, slots):
        return self.span.state()

    def check_numbers(self, state, Py_ssize_t n):
        self.span.check_state(state, n, 1e-10)

    def restore(self, Coefficients terms, state):
        self.span.restore(state, np.argsort(state["birthdays"], kind="stable"))

    def _check(self, Coefficients terms):
        Budget._check(self, terms)
        order = self.span.order_array[:self.span.n]
        assert sorted(order.tolist()) == np.flatnonzero(terms.mine.array[0]).tolist()
        assert (np.diff(terms.dictionary.birthdays.array[0, order]) > 0).all()
        own, spike = self.span.array[:2, :self.span.n]
        self.span.factor._check()
        assert self.span.factor.n == self.span.n
        assert np.allclose(own, np.diag(self.span.factor.gram()), rtol=1e-6)
        assert np.allclose(spike, (self.span.factor.inverse()**2).sum(axis=0), rtol=1e-3), "the inverse's diagonal is worn"
