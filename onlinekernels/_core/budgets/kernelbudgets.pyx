"""Budgets that look at the kernel: what goes leaves something behind, or is chosen by what it is worth."""
import numpy as np
from libc.math cimport INFINITY, exp, expm1, fabs, fmax, fmin, log, sqrt
from libc.string cimport memcpy, memmove, memset
from onlinekernels._core.arrays cimport array_data
from onlinekernels._core.arrays import aligned_empty, check_array, check_number
from onlinekernels._core.functions.coefficients cimport NEWCOMER, NOBODY, Budget, Coefficients
from onlinekernels._core.points.dictionary cimport SquareTable
from onlinekernels._core.points.kernelrows cimport CompiledRows
from onlinekernels._core.points.kernels cimport GAUSSIAN, SCALE, SHIFT
from onlinekernels._core.formulas.vecmath cimport ok_axpy, ok_dot, ok_exp_array, ok_rotate
from onlinekernels._core.functions.function cimport Scratch
from onlinekernels._core.run.example cimport Term
from onlinekernels._core.run.piece cimport Piece

cdef enum:
    VECTORS = 8         # of a span, beside its factor
    KEPT = 3            # of these, those that are not scratch
    GRID = 100          # cells of the table of mergers, each way

# Losses, or sizes, that differ by less than this are equal: then the oldest goes, whatever the rounding.
cdef double NEARLY = 1.0 + 1e-9
cdef double ROUNDING = 2.220446049250313e-16
cdef double WORN = 1e-4                 # the diagonal of an inverse is computed anew before it is further off than that


cdef class Span:
    """What the points of terms span: the Cholesky factor of their kernel matrix, which follows them.

    The points are in the order of their age, so newcomers come last.  A newcomer adds a column, and what leaves is rotated
    out: both are O(n^2), and stable as long as no point enters that the others nearly span.
    """

    def __init__(self):
        self.make_room(0)

    cdef make_room(self, Py_ssize_t room):
        """Room for so many points; those that are there stay."""
        cdef Py_ssize_t n = self.n
        cdef Py_ssize_t* slots
        cdef double* numbers
        array, order = aligned_empty((room + VECTORS, room), np.dtype(float)), np.zeros(room, dtype=np.intp)
        slots, numbers = <Py_ssize_t*> array_data(order), <double*> array_data(array)
        array[:] = 0.0
        if n:
            array[:n, :n] = self.array[:n, :n]
            array[room:room + KEPT, :n] = self.array[self.room:self.room + KEPT, :n]
            order[:n] = self.order_array[:n]
        # Nothing below can fail.
        self.room, self.array, self.order_array, self.looked = room, array, order, False
        self.order, self.factor = slots, numbers
        self.own = self.factor + room * room
        self.spike = self.own + room
        self.wear = self.spike + room
        self.row = self.wear + room
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
        cdef double change, error = ROUNDING * self.own_value / self.residual
        for i in range(n):
            self.factor[i * self.room + n] = self.way[i]
            change = self.shares[i] * self.shares[i] / self.residual
            self.spike[i] += change
            self.wear[i] += error * change
        self.factor[n * self.room + n] = sqrt(self.residual)
        self.own[n], self.spike[n], self.wear[n] = self.own_value, 1.0 / self.residual, 0.0
        self.order[n] = NOBODY
        self.n = n + 1
        self.looked = False

    cdef double leave(self, Py_ssize_t place) noexcept nogil:
        """A point is not one of them any more. Return its residual; its projection onto the others has the coefficients
        -column / column[place], with places as they were."""
        cdef Py_ssize_t i, k, n = self.n, room = self.room
        cdef double* row
        cdef double* carry = self.way
        cdef double c, s, length, residual, change, error
        self.looked = False
        memset(self.way, 0, n * sizeof(double))
        self.way[place] = 1.0
        self.solve(place, self.way, self.column)
        residual = 1.0 / self.column[place]
        error = ROUNDING * self.own[place] * self.column[place]
        for i in range(n):                      # an inverse's diagonal is at least one over the matrix's
            change = self.column[i] * self.column[i] * residual
            self.spike[i] = fmax(self.spike[i] - change, 1.0 / self.own[i])
            self.wear[i] += error * change
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
            self.own[i], self.spike[i], self.wear[i] = self.own[i + 1], self.spike[i + 1], self.wear[i + 1]
            self.order[i] = self.order[i + 1]
        self.n = n - 1
        for i in range(n - 1):
            if self.wear[i] > WORN * self.spike[i]:
                self.renew_spike(i)
        return residual

    cdef void renew_spike(self, Py_ssize_t place) noexcept nogil:
        """What sums and differences have left of it is rounding: |R'^-1 e|^2, from the factor."""
        cdef Py_ssize_t i, n = self.n
        cdef double* way = self.way
        cdef double* row
        memset(way, 0, n * sizeof(double))
        way[place] = 1.0
        for i in range(place, n):
            row = self.factor + i * self.room
            way[i] /= row[i]
            ok_axpy(-way[i], row + i + 1, way + i + 1, n - i - 1)
        self.spike[place], self.wear[place] = ok_dot(way + place, way + place, n - place), 0.0

    def state(self):
        """Named arrays."""
        return {"factor": self.array[:self.n, :self.n][np.triu_indices(self.n)],
                "spikes": self.array[self.room:self.room + 2, :self.n].copy(),
                "wear": self.array[self.room + 2, :self.n].copy()}

    def check_state(self, state, Py_ssize_t n, double floor):
        """ValueError unless a state is about n points that no others nearly span."""
        factor = np.zeros((n, n))
        factor[np.triu_indices(n)] = check_array(state["factor"], "factor", np.float64, (n * (n + 1) // 2,))
        own, spike = check_array(state["spikes"], "spikes", np.float64, (2, n))
        if "wear" in state and (check_array(state["wear"], "wear", np.float64, (n,)) < 0).any():
            raise ValueError("wear is negative")
        with np.errstate(over="ignore"):
            square = (factor**2).sum(axis=0)
        if not (np.isfinite(square).all() and (np.diag(factor) > 0).all() and (np.diag(factor)**2 > 0.5 * floor * square).all()):
            raise ValueError("factor is not that of terms that are independent")
        if not ((own > 0).all() and np.allclose(own, square, rtol=1e-3, atol=0) and (spike * own >= 1 - 1e-6).all()):
            raise ValueError("spikes do not fit the factor")
        if n and not np.allclose(spike, (np.linalg.inv(factor)**2).sum(axis=1), rtol=1e-3):
            raise ValueError("spikes are not the diagonal of the inverse")

    def restore(self, state, slots):
        """Continue from a state that has been checked."""
        n = len(slots)
        self.n = 0
        self.make_room(max(self.room, n))
        self.array[:n, :n][np.triu_indices(n)] = state["factor"]
        self.array[self.room:self.room + 2, :n] = state["spikes"]
        self.array[self.room + 2, :n] = state.get("wear", state["spikes"][1])       # earlier files do not know: renew all
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

    cdef double look(self, Coefficients terms, const double* values, double own) noexcept nogil:
        """What part of the newcomer is orthogonal to the terms."""
        if not self.span.looked:
            self.span.look(values, terms.dictionary.start, own)
        return self.span.residual / own

    cdef Py_ssize_t welcome(self, Coefficients terms, Scratch w, Term* term, Py_ssize_t i, double size) noexcept nogil:
        cdef Py_ssize_t place = self.span.n, slot
        cdef bint spanned = self.look(terms, w.piece.values, w.piece.own[i]) <= fmax(self.tolerance, self.floor)
        if not spanned and not term.stays_out:
            if terms.count < self.most:
                self.span.append()
                self.expected = True
                return NOBODY
            if not self.newcomers_yield:
                place = self.cheapest(self.span, terms, term)
        if place == self.span.n:
            self.share_out_newcomer(terms, term)
            return NEWCOMER
        slot = self.span.order[place]
        self.span.append()
        self.residual = self.span.leave(place)
        self.share_out(terms, term, &w.old, slot, place)
        self.expected = True
        return slot

    cdef Py_ssize_t cheapest(self, Span span, Coefficients terms, const Term* term) noexcept nogil:
        """Whose projection onto the others and the newcomer loses least: a place in the span, its end for the newcomer."""
        cdef Py_ssize_t j, k, row
        cdef double* loss = span.column         # free to use
        cdef double coefficient, least, share
        least = 0.0
        for k in range(term.n):
            least += term.stored[k] * term.stored[k]
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

    cdef void share_out_newcomer(self, Coefficients terms, const Term* term) noexcept nogil:
        cdef Py_ssize_t k, j, row
        cdef int channel
        cdef double* stored
        cdef double value
        self.residual = self.span.residual
        self.span.looked = False
        for channel in range(terms.channels):
            for k in range(term.n):
                value = term.stored[channel * term.n + k]
                stored = terms.column(0) + (channel * terms.rows + term.labels[k]) * terms.stored.capacity
                for j in range(self.span.n):
                    stored[self.span.order[j]] += value * self.span.shares[j]

    cdef void share_out(self, Coefficients terms, Term* term, Term* old, Py_ssize_t slot, Py_ssize_t place) noexcept nogil:
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
            value = -old.stored[row] * self.residual
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
        inverse = np.linalg.inv(np.triu(self.span.array[:self.span.n, :self.span.n])) if self.span.n else np.zeros((0, 0))
        own, spike = self.span.array[self.span.room:self.span.room + 2, :self.span.n]
        assert np.allclose(own, np.diag(self.span.gram()), rtol=1e-6)
        assert np.allclose(spike, (inverse**2).sum(axis=1), rtol=1e-3), "the inverse's diagonal is worn"


cdef class PairBudget(Budget):
    """A budget that keeps a number for each two of its terms, which newcomers bring with them: see `row`."""

    cdef void take_row(self, Coefficients terms, Piece piece, Py_ssize_t i) noexcept nogil:
        """The numbers are kernel values."""
        if terms.dictionary.size():
            memcpy(self.row, piece.values, terms.dictionary.size() * sizeof(double))
        self.own = piece.own[i]

    cdef void entered(self, Coefficients terms, Py_ssize_t slot) noexcept nogil:
        cdef Py_ssize_t other, start = terms.dictionary.start, capacity = self.pairs.capacity
        cdef double* numbers = <double*> self.pairs.data
        cdef const char* mine = terms.mine.data
        for other in range(start, terms.dictionary.stop):
            if other != slot and mine[other]:
                numbers[slot * capacity + other] = numbers[other * capacity + slot] = self.row[other - start]
        numbers[slot * capacity + slot] = self.own

    cdef int begin(self, Coefficients terms) except -1:
        self.pairs, self.rows_of_newcomers = terms.dictionary.add_table(SquareTable()), terms.dictionary.new_table(1)
        return 0

    cdef void arrange(self, Coefficients terms) noexcept nogil:
        self.row = <double*> self.rows_of_newcomers.data

    def state(self, Coefficients terms, slots):
        numbers = self.pairs.array[np.ix_(slots, slots)]
        mine = terms.mine.array[0, slots] != 0
        return {"between": np.where(mine[:, None] & mine, numbers, 0.0)[np.triu_indices(len(slots))]}

    def check_numbers(self, state, Py_ssize_t n):
        check_array(state["between"], "between", np.float64, (n * (n + 1) // 2,))

    def restore(self, Coefficients terms, state):
        upper, n = np.triu_indices(len(state["birthdays"])), len(state["birthdays"])
        self.pairs.array[:n, :n][upper] = state["between"]
        self.pairs.array[:n, :n].T[upper] = state["between"]

    def _check(self, Coefficients terms):
        Budget._check(self, terms)
        mine = np.flatnonzero(terms.mine.array[0])
        numbers = self.pairs.array[np.ix_(mine, mine)]
        assert np.array_equal(numbers, numbers.T)


# ---- Mergers: two terms of a Gaussian become one at a point between them --------------------------------------------
#
# a has the coefficient 1 and b the coefficient r >= 1, u = rate |a - b|^2.  At z = h a + (1 - h) b the Gaussian is
# exp(-u (1 - h)^2) with a and exp(-u h^2) with b.  A constant c may be added to it, which the height is 1 of.


cdef double best_share(double ratio, double u) noexcept nogil:
    """h, for coefficients of equal signs and ratio = 1 / r: where p + r q is largest, p and q the values at z.

    There ratio (1 - h) p = h q. The ratio p / q is exp(-u (1 - 2 h)), and the root between 0 and 1/2 is the one.
    """
    cdef double low = 0.0, high = 0.5, h = ratio / (1.0 + ratio), part, rest, slope, step
    cdef int i
    for i in range(60):
        part = ratio * exp(-u * (1.0 - 2.0 * h))
        rest = part * (1.0 - h) - h
        if rest > 0.0:
            low = h
        else:
            high = h
        slope = part * (2.0 * u * (1.0 - h) - 1.0) - 1.0
        step = rest / slope if slope != 0.0 else 0.0
        if not low < h - step < high:
            step = h - 0.5 * (low + high)
        h -= step
        if fabs(step) <= 1e-16:
            break
    return h


cdef double merger_loss(double r, double u, double shift, double h) noexcept nogil:
    """|k(a, .) + r k(b, .) - what it becomes at z|^2, without cancellation."""
    cdef double p = expm1(-u * (1.0 - h) * (1.0 - h)), q = expm1(-u * h * h)         # less 1
    cdef double loss = -p * (2.0 + p) - r * r * q * (2.0 + q) - 2.0 * r * exp(-u) * expm1(2.0 * u * h * (1.0 - h))
    return fmax(0.0, loss + shift / (1.0 + shift) * (p + r * q) * (p + r * q))


cdef double same_sign_loss(double ratio, double u, double shift) noexcept nogil:
    """The least that two terms of equal signs lose when they merge, relative to the smaller one."""
    return merger_loss(1.0 / ratio, u, shift, best_share(ratio, u))


cdef dict tables = {}                   # by shift: what mergers lose, and the error of that


def merger_table(double shift):
    """(table, error): same_sign_loss / (1 - value)^2 over (ratio, Gaussian value), and how far off it is between nodes."""
    cdef Py_ssize_t i, j
    cdef double worst = 0.0, exact, between
    cdef double[:, ::1] table
    if shift in tables:
        return tables[shift]
    array = np.empty((GRID + 1, GRID + 1))
    table = array
    nodes = np.linspace(0.0, 1.0, GRID + 1)
    ratios, values = np.maximum(nodes, 1e-6).tolist(), nodes.clip(1e-12, 1.0 - 1e-5).tolist()
    for i in range(GRID + 1):
        for j in range(GRID + 1):
            table[i, j] = same_sign_loss(ratios[i], -log(values[j]), shift) / (1.0 - values[j]) ** 2
    for i in range(GRID):
        for j in range(GRID):
            value = 0.5 * (values[j] + values[j + 1])
            exact = same_sign_loss(0.5 * (ratios[i] + ratios[i + 1]), -log(value), shift) / (1.0 - value) ** 2
            between = 0.25 * (table[i, j] + table[i + 1, j] + table[i, j + 1] + table[i + 1, j + 1])
            worst = max(worst, abs(between / exact - 1.0))
    tables[shift] = array, 1.5 * worst
    return tables[shift]


cdef double between_nodes(const double* table, double ratio, double value) noexcept nogil:
    cdef Py_ssize_t i = <Py_ssize_t> (ratio * GRID), j = <Py_ssize_t> (value * GRID)
    cdef double s, t
    i, j = min(i, <Py_ssize_t> (GRID - 1)), min(j, <Py_ssize_t> (GRID - 1))
    s, t = ratio * GRID - i, value * GRID - j
    table += i * (GRID + 1) + j
    return (1.0 - s) * ((1.0 - t) * table[0] + t * table[1]) + s * ((1.0 - t) * table[GRID + 1] + t * table[GRID + 2])


cdef class Merging(PairBudget):
    """The smallest term and the one that it loses least with become one term, at a point between them.

    For Gaussian kernels, times and plus constants. `pairs` are distances; those of a merged point, as its inner products
    with later examples, are combinations of two rows: |z - x|^2 = h |a - x|^2 + (1 - h) |b - x|^2 - h (1 - h) |a - b|^2.

    Parameters
    ----------
    size : int
    """

    def __init__(self, long long size):
        self.most = size
        self.looks_at_newcomers = True

    def stand_on(self, rows):
        cdef CompiledRows compiled = rows
        cdef int i
        cdef double scale = 1.0
        self.rows = rows
        self.shift = 0.0
        for i in range(compiled.program.n_ops):
            if compiled.program.ops[i].code == GAUSSIAN and i == 0:
                self.rate = compiled.program.ops[i].a
            elif compiled.program.ops[i].code == SCALE:
                scale *= compiled.program.ops[i].a
                self.shift *= compiled.program.ops[i].a
            elif compiled.program.ops[i].code == SHIFT:
                self.shift += compiled.program.ops[i].a
            else:
                raise ValueError("the kernel is not a Gaussian, times and plus constants")
        self.shift /= scale
        self.table_array, self.table_error = merger_table(self.shift)
        self.table = <const double*> array_data(self.table_array)

    cdef int begin(self, Coefficients terms) except -1:
        PairBudget.begin(self, terms)
        self.candidates = terms.dictionary.new_table(8)         # twice four: one more than there are slots
        return 0

    cdef void arrange(self, Coefficients terms) noexcept nogil:
        cdef Py_ssize_t room = 2 * self.candidates.capacity
        PairBudget.arrange(self, terms)
        self.coefficient = <double*> self.candidates.data
        self.distance = self.coefficient + room
        self.value = self.distance + room
        self.bound = self.value + room

    cdef Py_ssize_t welcome(self, Coefficients terms, Scratch w, Term* term, Py_ssize_t i, double size) noexcept nogil:
        cdef Py_ssize_t victim, partner, start = terms.dictionary.start, n = terms.dictionary.size()
        cdef double share, p, q
        self.rows.distances(w.piece, i, self.rate, self.row)
        if terms.count < self.most:
            return NOBODY
        victim = self.smallest(terms, size)
        if (size if victim == NEWCOMER else terms.size_of(victim)) == 0.0:
            return victim                       # there is nothing to hand on
        self.look_around(terms, victim)
        partner = self.cheapest(terms, term, victim, &share) if terms.rows == 1 else self.nearest(terms, term, victim, &share)
        p = (exp(-self.distance[partner] * (1.0 - share) * (1.0 - share)) + self.shift) / (1.0 + self.shift)
        q = (exp(-self.distance[partner] * share * share) + self.shift) / (1.0 + self.shift)
        if partner == n:                        # the newcomer: the point between them takes the victim's slot
            self.merge(terms, w.piece, term, i, NEWCOMER, victim, 1.0 - share, q, p)
            return NEWCOMER
        self.merge(terms, w.piece, term, i, victim, start + partner, share, p, q)
        return victim

    cdef Py_ssize_t smallest(self, Coefficients terms, double size) noexcept nogil:
        """The slot of the smallest term, the oldest among equals; NEWCOMER, which has a size, if that is smaller."""
        cdef Py_ssize_t j, start = terms.dictionary.start, n = terms.dictionary.size(), found = n
        cdef const char* mine = terms.mine.data + start
        cdef const double* coefficient = terms.column(start)
        cdef double least = size
        for j in range(n):
            self.bound[j] = fabs(coefficient[j]) if terms.rows == 1 else terms.size_of(start + j)
            if not mine[j]:
                self.bound[j] = INFINITY
            if self.bound[j] < least:
                least = self.bound[j]
        for j in range(n):
            if self.bound[j] <= least * NEARLY and (found == n or self.born(terms, j) < self.born(terms, found)):
                found = j
        return NEWCOMER if found == n else start + found

    cdef void look_around(self, Coefficients terms, Py_ssize_t victim) noexcept nogil:
        """Distances of the victim from all candidates."""
        cdef Py_ssize_t j, start = terms.dictionary.start, n = terms.dictionary.size()
        cdef const char* mine = terms.mine.data + start
        cdef const double* found = self.row
        if victim != NEWCOMER:
            found = <double*> self.pairs.data + victim * self.pairs.capacity + start
        for j in range(n):
            self.distance[j] = found[j] if mine[j] else INFINITY
        self.distance[n] = INFINITY
        if victim != NEWCOMER:
            self.distance[victim - start] = INFINITY
            self.distance[n] = self.row[victim - start]

    cdef long long born(self, Coefficients terms, Py_ssize_t j) noexcept nogil:
        """When candidate j came."""
        return <long long> 1 << 62 if j == terms.dictionary.size() else terms.dictionary.born(terms.dictionary.start + j)

    cdef Py_ssize_t cheapest(self, Coefficients terms, const Term* term, Py_ssize_t victim, double* share) noexcept nogil:
        """One output: the candidate that the victim loses least with, and its share h of the point between them.

        Of opposite signs, nothing between is better than the other point itself, h = 0. The table says what a merger
        loses, up to its error, and those that may be the best are computed.
        """
        cdef Py_ssize_t j, start = terms.dictionary.start, n = terms.dictionary.size(), best = NOBODY
        cdef const double* stored = terms.column(start)
        cdef double own, ratio, gap, least = INFINITY
        for j in range(n):
            self.coefficient[j] = stored[j]
            self.bound[j] = -self.distance[j]
        self.coefficient[n], self.bound[n] = term.stored[0], -self.distance[n]
        own = term.stored[0] if victim == NEWCOMER else terms.column(victim)[0]
        ok_exp_array(self.bound, self.value, n + 1)
        for j in range(n + 1):
            if self.distance[j] == INFINITY:
                self.bound[j] = INFINITY
                continue
            gap = 1.0 - self.value[j]
            ratio = own / self.coefficient[j]
            if ratio > 0.0:
                self.bound[j] = between_nodes(self.table, fmin(ratio, 1.0), self.value[j]) * gap * gap
                least = fmin(least, self.bound[j] * (1.0 + self.table_error))
                self.bound[j] *= 1.0 - self.table_error
            else:
                self.bound[j] = gap * (1.0 + self.value[j]) + self.shift / (1.0 + self.shift) * gap * gap
                least = fmin(least, self.bound[j])
        least += 1e-12
        for j in range(n + 1):
            if self.bound[j] <= least and own * self.coefficient[j] > 0.0:
                ratio = fmin(own / self.coefficient[j], 1.0)
                self.bound[j] = merger_loss(1.0 / ratio, self.distance[j], self.shift, best_share(ratio, self.distance[j]))
        least = INFINITY
        for j in range(n + 1):
            least = fmin(least, self.bound[j])
        for j in range(n + 1):                  # the oldest among equals
            if self.bound[j] <= least + 1e-12 and (best == NOBODY or self.born(terms, j) < self.born(terms, best)):
                best = j
        ratio = fmin(own / self.coefficient[best], 1.0)
        share[0] = best_share(ratio, self.distance[best]) if ratio > 0.0 else 0.0
        return best

    cdef Py_ssize_t nearest(self, Coefficients terms, const Term* term, Py_ssize_t victim, double* share) noexcept nogil:
        """Many outputs: the nearest candidate, and the victim's share h of the best point between them.

        With coefficients A and B, what remains is |p A + q B|^2; it is largest where its derivative is 0.
        """
        cdef Py_ssize_t j, k, row, start = terms.dictionary.start, n = terms.dictionary.size(), best = NOBODY, slot
        cdef double a, b, least = INFINITY, u, c = self.shift, low, high, h, p, q
        cdef double both = 0.0, of_victim = 0.0, of_other = 0.0
        for j in range(n + 1):
            least = fmin(least, self.distance[j])
        for j in range(n + 1):
            if self.distance[j] <= least * NEARLY + 1e-12 and (best == NOBODY or self.born(terms, j) < self.born(terms, best)):
                best = j
        for row in range(terms.rows):
            a = b = 0.0
            for k in range(term.n):
                if term.labels[k] == row:
                    a = b = term.stored[k]
            if victim != NEWCOMER:
                a = terms.column(victim)[row * terms.stored.capacity]
            if best != n:
                b = terms.column(start + best)[row * terms.stored.capacity]
            both += a * b
            of_victim += a * a
            of_other += b * b
        share[0] = 0.0
        if both <= 0.0:
            return best
        u = self.distance[best]
        low, high = (0.0, 0.5) if of_victim <= of_other else (0.5, 1.0)
        while True:
            h = 0.5 * (low + high)
            if not low < h < high:
                break
            p, q = exp(-u * (1.0 - h) * (1.0 - h)), exp(-u * h * h)
            if (p + c) * p * (1.0 - h) * of_victim - (q + c) * q * h * of_other \
                    + both * (p * (1.0 - h) * (q + c) - (p + c) * q * h) > 0.0:
                low = h
            else:
                high = h
        p, q = exp(-u * (1.0 - h) * (1.0 - h)) + c, exp(-u * h * h) + c
        a, b = exp(-u) + c, 1.0 + c
        if p * p * of_victim + q * q * of_other + 2.0 * p * q * both > a * a * of_victim + b * b * of_other + 2.0 * a * b * both:
            share[0] = h
        return best

    cdef void merge(self, Coefficients terms, Piece piece, const Term* term, Py_ssize_t i, Py_ssize_t other, Py_ssize_t slot,
                    double share, double of_other, double of_slot) noexcept nogil:
        """Another term, or example i, joins the one in a slot: by this share of its point, and its part of coefficients."""
        cdef Py_ssize_t k, row, j, start = terms.dictionary.start, capacity = self.pairs.capacity
        cdef int channel
        cdef double* here = <double*> self.pairs.data + slot * capacity
        cdef const double* there = self.row - start if other == NEWCOMER else <double*> self.pairs.data + other * capacity
        cdef const char* mine = terms.mine.data
        cdef double* pairs = <double*> self.pairs.data
        cdef double* stored
        cdef double apart = there[slot] * share * (1.0 - share), distance
        for row in range(terms.channels * terms.rows):
            stored = terms.column(0) + row * terms.stored.capacity
            stored[slot] *= of_slot
            if other != NEWCOMER:
                stored[slot] += of_other * stored[other]
        if other == NEWCOMER:
            for channel in range(terms.channels):
                for k in range(term.n):
                    stored = terms.column(0) + (channel * terms.rows + term.labels[k]) * terms.stored.capacity
                    stored[slot] += of_other * term.stored[channel * term.n + k]
        if share == 0.0:
            return
        for j in range(start, terms.dictionary.stop):
            if j != slot and mine[j]:
                distance = share * there[j] + (1.0 - share) * here[j] - apart
                here[j] = pairs[j * capacity + slot] = distance if distance > 0.0 else 0.0
        if other != NEWCOMER:
            self.row[slot - start] = fmax(0.0, share * self.row[other - start] + (1.0 - share) * self.row[slot - start] - apart)
        terms.dictionary.blend(piece, i, other, slot, share)
        self.rows.point_moved(slot)

    def check_numbers(self, state, Py_ssize_t n):
        PairBudget.check_numbers(self, state, n)
        numbers = np.zeros((n, n))
        numbers[np.triu_indices(n)] = state["between"]
        if (numbers < 0).any() or not self.are_distances(numbers + np.triu(numbers, 1).T, state["points"]):
            raise ValueError("between is not the distances of the points")

    def are_distances(self, numbers, points):
        """Whether numbers are those between points, up to what mergers leave of their digits."""
        digits, points = 1e-9 if points.dtype == np.float64 else 1e-4, points.astype(float)
        with np.errstate(over="ignore", invalid="ignore"):
            square = (points**2).sum(axis=1)
            error = np.abs(numbers - self.rate * (square[:, None] + square - 2.0 * points @ points.T)).max(initial=0.0)
            return bool(error <= digits * self.rate * max(1.0, square.max(initial=0.0)) < np.inf)

    def _check(self, Coefficients terms):
        PairBudget._check(self, terms)
        mine = np.flatnonzero(terms.mine.array[0])
        assert self.are_distances(self.pairs.array[np.ix_(mine, mine)], terms.dictionary.points[mine]), "distances are worn"


cdef class Shrinking(PairBudget):
    """The oldest term goes, after all of f has been shrunk: the self-tuned Forgetron (Dekel, Shalev-Shwartz, Singer 2008).

    With sigma the oldest term's absolute coefficient and mu the margin of its point, both with the newcomer there, a removal
    after shrinking by phi costs at most Psi = (sigma phi)^2 + 2 sigma phi - 2 sigma phi^2 mu. phi is as large as can
    be such that the sum of these, Q, stays within 15/32 of the number of mistakes, M.

    Parameters
    ----------
    size : int
    """

    def __init__(self, long long size):
        self.most = size
        self.looks_at_newcomers = True

    cdef Py_ssize_t welcome(self, Coefficients terms, Scratch w, Term* term, Py_ssize_t i, double size) noexcept nogil:
        cdef Py_ssize_t slot, oldest = NOBODY, start = terms.dictionary.start
        cdef const double* stored = terms.column(0)
        cdef const double* values
        cdef double frame, sigma, score, square, rest, phi = 1.0
        self.take_row(terms, w.piece, i)
        self.mistakes += 1
        if terms.count < self.most:
            return NOBODY
        for slot in range(start, terms.dictionary.stop):
            if terms.holds(slot) and (oldest == NOBODY or terms.dictionary.born(slot) < terms.dictionary.born(oldest)):
                oldest = slot
        values = <double*> self.pairs.data + oldest * self.pairs.capacity
        score = term.stored[0] * self.row[oldest - start]
        for slot in range(start, terms.dictionary.stop):
            if terms.holds(slot):
                score += stored[slot] * values[slot]
        frame = term.alpha[0] / term.stored[0]
        sigma = fabs(frame * stored[oldest])
        square = sigma * sigma - 2.0 * frame * stored[oldest] * frame * score
        rest = 15.0 / 32.0 * self.mistakes - self.damage
        if square + 2.0 * sigma > rest:         # the smaller root of square phi^2 + 2 sigma phi = rest
            phi = rest / (sigma + sqrt(fmax(0.0, sigma * sigma + square * rest)))
        self.damage += phi * (square * phi + 2.0 * sigma)
        self.shrink = phi
        return oldest

    def state(self, Coefficients terms, slots):
        return {**PairBudget.state(self, terms, slots), "mistakes": int(self.mistakes), "damage": self.damage}

    def check_numbers(self, state, Py_ssize_t n):
        PairBudget.check_numbers(self, state, n)
        check_number(state["damage"], "damage")
        if type(state["mistakes"]) is not int or not n <= state["mistakes"] < 1 << 62:
            raise ValueError("mistakes is not a number of terms that entered")
        if state["damage"] > 15.0 / 32.0 * state["mistakes"] * (1.0 + 1e-9):
            raise ValueError("the damage is more than it may be")

    def restore(self, Coefficients terms, state):
        PairBudget.restore(self, terms, state)
        self.mistakes, self.damage = state["mistakes"], state["damage"]


cdef class Redundant(PairBudget):
    """The term that is classified best without itself goes: Crammer, Kandola, Singer (2003).

    Or (`tighter`) the one without which the fewest terms are classified wrongly, of those the one that is classified best:
    Weston, Bordes, Bottou (2005). The label of a term is where its largest coefficient is, or with one output its sign.

    The newcomer is the slot behind those in use. Either it is one of the terms already (`insert_first`), and may be the one
    that goes, or f is what it was without it.

    Parameters
    ----------
    size : int
    tighter, insert_first : bool
    """

    def __init__(self, long long size, bint tighter, bint insert_first):
        self.most = size
        self.tighter = tighter
        self.insert_first = insert_first
        self.looks_at_newcomers = True

    cdef Py_ssize_t welcome(self, Coefficients terms, Scratch w, Term* term, Py_ssize_t i, double size) noexcept nogil:
        cdef Py_ssize_t slot, best = NOBODY, newcomer = terms.dictionary.stop, mistakes, fewest = newcomer + 1
        cdef double largest = -INFINITY, margin, slack
        self.take_row(terms, w.piece, i)
        if terms.count < self.most:
            return NOBODY
        self.take_scores(terms, term)
        for slot in range(terms.dictionary.start, newcomer + 1):
            if self.counts(terms, slot):
                margin = self.margin_without(terms, slot, slot)
                mistakes = self.mistakes_without(terms, slot) if self.tighter else 0
                slack = 0.0 if best == NOBODY else 1e-9 * fabs(largest)
                if mistakes < fewest or mistakes == fewest and (margin > largest + slack or (
                        margin >= largest - slack and slot != newcomer
                        and terms.dictionary.born(slot) < terms.dictionary.born(best))):
                    best, fewest, largest = slot, mistakes, margin
        return NEWCOMER if best == newcomer else best

    cdef bint counts(self, Coefficients terms, Py_ssize_t slot) noexcept nogil:
        """Whether a slot has a term that is looked at."""
        return self.insert_first if slot == terms.dictionary.stop else terms.holds(slot)

    cdef void take_scores(self, Coefficients terms, const Term* term) noexcept nogil:
        """f at all points that count, and the newcomer's coefficients."""
        cdef Py_ssize_t slot, row, k, start = terms.dictionary.start, stop = terms.dictionary.stop
        cdef const double* stored
        cdef double* scores
        self.used = <double*> self.score_table.data
        self.coming = self.used + terms.rows
        self.scores = self.coming + terms.rows
        self.side = self.scores + (self.score_table.capacity + 1) * terms.rows
        memset(self.coming, 0, terms.rows * sizeof(double))
        for k in range(term.n if self.insert_first else 0):
            self.coming[term.labels[k]] = term.stored[k]
        for slot in range(start, stop):         # slots that are not held have no coefficient; their numbers must not count
            if not terms.holds(slot):
                self.row[slot - start] = 0.0
                for k in range(start, stop):
                    (<double*> self.pairs.data)[k * self.pairs.capacity + slot] = 0.0
        for row in range(terms.rows):
            stored = terms.column(start) + row * terms.stored.capacity
            scores = self.scores + row
            self.used[row] = self.coming[row] != 0.0
            for slot in range(start, stop):
                self.used[row] = 1.0 if stored[slot - start] != 0.0 else self.used[row]
                scores[slot * terms.rows] = self.coming[row] * self.row[slot - start] + ok_dot(
                    stored, <double*> self.pairs.data + slot * self.pairs.capacity + start, stop - start)
            scores[stop * terms.rows] = self.coming[row] * self.own + ok_dot(stored, self.row, stop - start)
        for slot in range(start, stop + 1 if terms.rows == 1 else start):
            self.side[slot] = 1.0 if (self.coming if slot == stop else terms.column(slot))[0] > 0.0 else -1.0
            if not self.counts(terms, slot):    # it is never a mistake
                self.side[slot] = self.scores[slot] = 1.0

    cdef double margin_without(self, Coefficients terms, Py_ssize_t slot, Py_ssize_t other) noexcept nogil:
        """By how much f without another term gives the point of a slot its own label."""
        cdef Py_ssize_t row, label = 0, start = terms.dictionary.start, stop = terms.dictionary.stop
        cdef Py_ssize_t capacity = 1 if slot == stop else terms.stored.capacity
        cdef Py_ssize_t step = 1 if other == stop else terms.stored.capacity
        cdef const double* own = self.coming if slot == stop else terms.column(slot)
        cdef const double* gone = self.coming if other == stop else terms.column(other)
        cdef const double* scores = self.scores + slot * terms.rows
        cdef double k, best = -INFINITY, score
        if slot < stop and other < stop:
            k = (<double*> self.pairs.data)[slot * self.pairs.capacity + other]
        else:
            k = self.own if slot == other else self.row[min(slot, other) - start]
        if terms.rows == 1:
            return self.side[slot] * (scores[0] - gone[0] * k)
        for row in range(terms.rows):
            if own[row * capacity] > own[label * capacity]:
                label = row
        for row in range(terms.rows):
            score = scores[row] - gone[row * step] * k
            if row != label and self.used[row] != 0.0 and score > best:
                best = score
        return scores[label] - gone[label * step] * k - best

    cdef Py_ssize_t mistakes_without(self, Coefficients terms, Py_ssize_t other) noexcept nogil:
        cdef Py_ssize_t slot, first = terms.dictionary.start, stop = terms.dictionary.stop, mistakes = 0
        cdef const double* values
        cdef double gone
        if terms.rows == 1:                     # the same, without a question inside: most of the time is spent here
            gone = self.coming[0] if other == stop else terms.column(other)[0]
            values = self.row - first if other == stop else <double*> self.pairs.data + other * self.pairs.capacity
            for slot in range(first, stop):
                mistakes += self.side[slot] * (self.scores[slot] - gone * values[slot]) <= 0.0
            first = stop
        for slot in range(first, stop + 1):
            if self.counts(terms, slot) and self.margin_without(terms, slot, other) <= 0.0:
                mistakes += 1
        return mistakes

    cdef int begin(self, Coefficients terms) except -1:
        PairBudget.begin(self, terms)
        self.score_table = terms.dictionary.new_table(score_rows(terms.rows))
        return 0

    cdef int widen(self, Coefficients terms, Py_ssize_t rows) except -1:
        return self.score_table.set_array(np.zeros((score_rows(rows), terms.dictionary.capacity)))


cdef Py_ssize_t score_rows(Py_ssize_t rows) noexcept:
    """Numbers per slot that have room for all of `take_scores`: with one slot, 2 for each output, and 2 slots' scores and sides."""
    return 4 * rows + 2
