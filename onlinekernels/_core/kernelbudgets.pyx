"""Budgets that look at the kernel: what goes leaves something behind, or is chosen by what it is worth."""
import numpy as np
from libc.math cimport fmax, fmin, sqrt
from libc.string cimport memcpy, memmove, memset
from onlinekernels._core.arrays cimport array_data
from onlinekernels._core.arrays import aligned_empty, check_array
from onlinekernels._core.coefficients cimport NEWCOMER, NOBODY, Budget, Coefficients
from onlinekernels._core.vecmath cimport ok_axpy, ok_dot, ok_rotate
from onlinekernels._core.workspace cimport Workspace

cdef enum:
    VECTORS = 7         # of a span, beside its factor

# Losses, or sizes, that differ by less than this are equal: then the oldest goes, whatever the rounding.
cdef double NEARLY = 1.0 + 1e-9


cdef class Span:
    """What the points of terms span: the Cholesky factor of their kernel matrix, which follows them.

    The points are in the order of their age, so newcomers come last.  A newcomer adds a column, and what leaves is rotated
    out: both are O(n^2), and stable as long as no point enters that the others nearly span.
    """

    def __init__(self):
        self.make_room(0)

    cdef make_room(self, Py_ssize_t room):
        """Room for so many points; those that are there stay."""
        old, n = self.array, self.n
        self.array = aligned_empty((room + VECTORS, room), np.dtype(float))
        self.array[:] = 0.0
        order = np.zeros(room, dtype=np.intp)
        if n:
            self.array[:n, :n] = old[:n, :n]
            self.array[room:room + 2, :n] = old[self.room:self.room + 2, :n]
            order[:n] = self.order_array[:n]
        self.room, self.order_array, self.looked = room, order, False
        self.order = <Py_ssize_t*> array_data(order)
        self.factor = <double*> array_data(self.array)
        self.own = self.factor + room * room
        self.spike = self.own + room
        self.row = self.spike + room
        self.way = self.row + room
        self.shares = self.way + room
        self.column = self.shares + room

    cdef void solve(self, Py_ssize_t first, double* way, double* out) noexcept nogil:
        """K out = way, which is 0 before `first`; way becomes R'^-1 way."""
        cdef Py_ssize_t i, n = self.n, room = self.room
        cdef double* row
        for i in range(first, n):
            row = self.factor + i * room
            way[i] /= row[i]
            ok_axpy(-way[i], row + i + 1, way + i + 1, n - i - 1)
        for i in range(n - 1, -1, -1):
            row = self.factor + i * room
            out[i] = (way[i] - ok_dot(row + i + 1, out + i + 1, n - i - 1)) / row[i]

    cdef void look(self, const double* values, Py_ssize_t start, double own) noexcept nogil:
        """How a point that has these kernel values with the slots in use lies to the span."""
        cdef Py_ssize_t i
        for i in range(self.n):
            self.way[i] = self.row[i] = values[self.order[i] - start]
        self.solve(0, self.way, self.shares)
        self.own_value = own
        self.residual = fmax(0.0, own - ok_dot(self.way, self.way, self.n))
        self.looked = True

    cdef void append(self) noexcept nogil:
        """The point that was looked at is one of them, the last; its slot is not known yet."""
        cdef Py_ssize_t i, n = self.n
        for i in range(n):
            self.factor[i * self.room + n] = self.way[i]
            self.spike[i] += self.shares[i] * self.shares[i] / self.residual
        self.factor[n * self.room + n] = sqrt(self.residual)
        self.own[n], self.spike[n] = self.own_value, 1.0 / self.residual
        self.order[n] = NOBODY
        self.n = n + 1
        self.looked = False

    cdef double leave(self, Py_ssize_t place) noexcept nogil:
        """A point is not one of them any more. Return its residual; its projection onto the others has the coefficients
        -column / column[place], with places as they were."""
        cdef Py_ssize_t i, k, n = self.n, room = self.room
        cdef double* row
        cdef double* carry = self.way
        cdef double c, s, length, residual
        self.looked = False
        memset(self.way, 0, n * sizeof(double))
        self.way[place] = 1.0
        self.solve(place, self.way, self.column)
        residual = 1.0 / self.column[place]
        for i in range(n):                      # an inverse's diagonal is at least one over the matrix's
            self.spike[i] = fmax(self.spike[i] - self.column[i] * self.column[i] * residual, 1.0 / self.own[i])
        for i in range(place):
            row = self.factor + i * room
            memmove(row + place, row + place + 1, (n - 1 - place) * sizeof(double))
        # Without its column the rows below have one entry too many: rotate pairs of rows, the upper one in `carry`.
        memcpy(carry, self.factor + place * room + place + 1, (n - 1 - place) * sizeof(double))
        for k in range(place, n - 1):
            row = self.factor + (k + 1) * room + k + 1
            length = sqrt(carry[k - place] * carry[k - place] + row[0] * row[0])
            c, s = carry[k - place] / length, row[0] / length
            ok_rotate(c, s, carry + k - place, row, self.factor + k * room + k, n - 1 - k)
        for i in range(place, n - 1):
            self.own[i], self.spike[i], self.order[i] = self.own[i + 1], self.spike[i + 1], self.order[i + 1]
        self.n = n - 1
        return residual

    def state(self):
        """Named arrays."""
        return {"factor": self.array[:self.n, :self.n][np.triu_indices(self.n)],
                "spikes": self.array[self.room:self.room + 2, :self.n].copy()}

    def check_state(self, state, Py_ssize_t n, double floor):
        """ValueError unless a state is about n points that no others nearly span."""
        factor = np.zeros((n, n))
        factor[np.triu_indices(n)] = check_array(state["factor"], "factor", np.float64, (n * (n + 1) // 2,))
        own, spike = check_array(state["spikes"], "spikes", np.float64, (2, n))
        with np.errstate(over="ignore"):
            square = (factor**2).sum(axis=0)
        if not (np.isfinite(square).all() and (np.diag(factor) > 0).all() and (np.diag(factor)**2 > 0.5 * floor * square).all()):
            raise ValueError("factor is not that of terms that are independent")
        if not ((own > 0).all() and np.allclose(own, square, rtol=1e-3, atol=0) and (spike * own >= 1 - 1e-6).all()):
            raise ValueError("spikes do not fit the factor")

    def restore(self, state, slots):
        """Continue from a state that has been checked."""
        n = len(slots)
        self.n = 0
        self.make_room(max(self.room, n))
        self.array[:n, :n][np.triu_indices(n)] = state["factor"]
        self.array[self.room:self.room + 2, :n] = state["spikes"]
        self.order_array[:n] = slots
        self.n = n

    def gram(self):
        """K, from its factor."""
        upper = np.triu(self.array[:self.n, :self.n])
        return upper.T @ upper


cdef class Projecting(Budget):
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

    cdef double look(self, Coefficients terms, Workspace w, double own) noexcept nogil:
        """What part of the newcomer is orthogonal to the terms."""
        if not self.span.looked:
            self.span.look(w.values, terms.dictionary.start, own)
        return self.span.residual / own

    cdef Py_ssize_t welcome(self, Coefficients terms, Workspace w, Py_ssize_t i, double size) noexcept nogil:
        cdef Py_ssize_t place = self.span.n, slot
        cdef bint spanned = self.look(terms, w, w.own[i]) <= fmax(self.tolerance, self.floor)
        if not spanned and not self.stays_out:
            if terms.count < self.most:
                self.span.append()
                self.expected = True
                return NOBODY
            if not self.newcomers_yield:
                place = self.cheapest(self.span, terms, w)
        self.stays_out = False
        if place == self.span.n:
            self.share_out_newcomer(terms, w)
            return NEWCOMER
        slot = self.span.order[place]
        self.span.append()
        self.residual = self.span.leave(place)
        self.share_out(terms, w, slot, place)
        self.expected = True
        return slot

    cdef Py_ssize_t cheapest(self, Span span, Coefficients terms, Workspace w) noexcept nogil:
        """Whose projection onto the others and the newcomer loses least: a place in the span, its end for the newcomer."""
        cdef Py_ssize_t j, k, row
        cdef double* loss = span.column         # free to use
        cdef double coefficient, least, share
        least = 0.0
        for k in range(w.term.n):
            least += w.term.stored[k] * w.term.stored[k]
        least *= span.residual
        for j in range(span.n):
            loss[j] = 0.0
            for row in range(terms.rows):
                coefficient = terms.column(span.order[j])[row * terms.stored.capacity]
                loss[j] += coefficient * coefficient
            share = span.shares[j]
            loss[j] /= span.spike[j] + share * share / span.residual
            least = fmin(least, loss[j])
        for j in range(span.n):
            if loss[j] <= least * NEARLY:
                return j
        return span.n

    cdef void share_out_newcomer(self, Coefficients terms, Workspace w) noexcept nogil:
        cdef Py_ssize_t k, j, row
        cdef int channel
        cdef double* stored
        cdef double value
        self.residual = self.span.residual
        self.span.looked = False
        for channel in range(terms.channels):
            for k in range(w.term.n):
                value = w.term.stored[channel * w.term.n + k]
                stored = terms.column(0) + (channel * terms.rows + w.term.labels[k]) * terms.stored.capacity
                for j in range(self.span.n):
                    stored[self.span.order[j]] += value * self.span.shares[j]

    cdef void share_out(self, Coefficients terms, Workspace w, Py_ssize_t slot, Py_ssize_t place) noexcept nogil:
        """What the term in a slot leaves to the others and to the newcomer, which has a coefficient for every output then.

        It has left the span, where it was in a place.
        """
        cdef Py_ssize_t row, k, j, n = self.span.n - 1      # the last is the newcomer
        cdef int channel
        cdef const double* column = self.span.column
        cdef double* stored
        cdef double value
        terms.read(slot, &w.old)
        for row in range(terms.channels * terms.rows):
            value = -w.old.stored[row] * self.residual
            stored = terms.column(0) + row * terms.stored.capacity
            for j in range(place):
                stored[self.span.order[j]] += value * column[j]
            for j in range(place, n):
                stored[self.span.order[j]] += value * column[j + 1]
            w.old.stored[row] = value * column[n + 1]
        for channel in range(terms.channels):
            for k in range(w.term.n):
                w.old.stored[channel * terms.rows + w.term.labels[k]] += w.term.stored[channel * w.term.n + k]
        w.term.n = terms.rows
        for row in range(terms.rows):
            w.term.labels[row] = <int> row
        for row in range(terms.channels * terms.rows):
            w.term.stored[row] = w.old.stored[row]

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

    cdef int arrange(self, Coefficients terms, slots) except -1:
        """The span follows the terms whatever their slots are called."""
        self.floor = 1e-10 if terms.dictionary.dtype == np.float64 else 1e-5
        if self.span.room < terms.dictionary.capacity + 1:
            self.span.make_room(terms.dictionary.capacity + 1)
        if len(slots) == self.span.n:           # otherwise a state is about to be restored
            self.span.order_array[:self.span.n] = slots
        return 0

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
        inverse = np.linalg.inv(np.triu(self.span.array[:self.span.n, :self.span.n])) if self.span.n else np.zeros((0, 0))
        own, spike = self.span.array[self.span.room:self.span.room + 2, :self.span.n]
        assert np.allclose(own, np.diag(self.span.gram()), rtol=1e-6)
        assert np.allclose(spike, (inverse**2).sum(axis=1), rtol=1e-3), "the inverse's diagonal is worn"
