"""A budget that merges two terms into one, at a point between them."""
import numpy as np
from libc.math cimport INFINITY, exp, expm1, fabs, fmax, fmin, log
from onlinekernels._core.arrays cimport array_data
from onlinekernels._core.budgets.pairs cimport PairBudget
from onlinekernels._core.formulas.vecmath cimport ok_exp_array
from onlinekernels._core.functions.coefficients cimport NEARLY, NEWCOMER, NOBODY, Coefficients
from onlinekernels._core.points.kernelrows cimport CompiledRows
from onlinekernels._core.points.kernels cimport GAUSSIAN, SCALE, SHIFT
from onlinekernels._core.functions.function cimport Scratch
from onlinekernels._core.run.example cimport Outcome, Term
from onlinekernels._core.run.piece cimport Piece

cdef enum:
    GRID = 100          # cells of the table of mergers, each way

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
    for i in range(60):  # no-cython-lint
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


cdef class MergingBudget(PairBudget):
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

    cdef Py_ssize_t numbers(self, Coefficients terms) noexcept:
        return 5 * (terms.dictionary.capacity + 1)

    cdef Candidates candidates_in(self, Coefficients terms, double* room) noexcept nogil:
        """The candidates of the call whose room this is. O(1)."""
        cdef Candidates found
        cdef Py_ssize_t size = terms.dictionary.capacity + 1
        found.row, found.coefficient, found.distance = room, room + size, room + 2 * size
        found.value, found.bound = room + 3 * size, room + 4 * size
        return found

    cdef void make_room(self, Coefficients terms, Scratch w, const Term* term, Py_ssize_t i, double size,
                        Outcome* outcome) noexcept nogil:
        """O(terms)."""
        cdef Py_ssize_t victim, partner
        cdef double share
        cdef Candidates others = self.candidates_in(terms, w.for_budget)
        self.rows.distances(w.piece, i, self.rate, others.row)
        if terms.count < self.most:
            return
        victim = self.smallest(terms, &others, size)
        outcome.slot = victim
        if (size if victim == NEWCOMER else terms.size_of(victim)) == 0.0:
            return                              # there is nothing to hand over
        self.look_around(terms, &others, victim)
        if terms.kept() == 1:
            partner = self.cheapest(terms, &others, term, victim, &share)
        else:
            partner = self.nearest(terms, &others, term, victim, &share)
        outcome.partner, outcome.share = terms.dictionary.start + partner, share
        if partner == terms.dictionary.size():  # the newcomer: the point between them takes the victim's slot
            outcome.slot, outcome.partner, outcome.share = NEWCOMER, victim, 1.0 - share

    cdef void hand_over(self, Coefficients terms, Scratch w, Term* term, Py_ssize_t i, Outcome* outcome) noexcept nogil:
        """O(terms)."""
        cdef double share = outcome.share, u, p, q
        self.take_row(terms, w.for_budget, 0.0)
        if outcome.partner == NOBODY:
            return
        if outcome.slot == NEWCOMER:
            u = self.row[outcome.partner - terms.dictionary.start]
        else:
            u = (<double*> self.pairs.data)[outcome.slot * self.pairs.capacity + outcome.partner]
        p = (exp(-u * (1.0 - share) * (1.0 - share)) + self.shift) / (1.0 + self.shift)
        q = (exp(-u * share * share) + self.shift) / (1.0 + self.shift)
        self.merge(terms, w.piece, term, i, outcome.slot, outcome.partner, share, p, q)

    cdef Py_ssize_t smallest(self, Coefficients terms, Candidates* others, double size) noexcept nogil:
        """The slot of the smallest term, the oldest among equals; NEWCOMER, which has a size, if that is smaller."""
        cdef Py_ssize_t j, start = terms.dictionary.start, n = terms.dictionary.size(), found = n
        cdef const char* mine = terms.mine.data + start
        cdef const double* coefficient = terms.column(start)
        cdef double least = size
        for j in range(n):
            others.bound[j] = fabs(coefficient[j]) if terms.rows == 1 else terms.size_of(start + j)
            if not mine[j]:
                others.bound[j] = INFINITY
            if others.bound[j] < least:
                least = others.bound[j]
        for j in range(n):
            if others.bound[j] <= least * NEARLY and (found == n or self.born(terms, j) < self.born(terms, found)):
                found = j
        return NEWCOMER if found == n else start + found

    cdef void look_around(self, Coefficients terms, Candidates* others, Py_ssize_t victim) noexcept nogil:
        """Distances of the victim from all candidates."""
        cdef Py_ssize_t j, start = terms.dictionary.start, n = terms.dictionary.size()
        cdef const char* mine = terms.mine.data + start
        cdef const double* found = others.row
        if victim != NEWCOMER:
            found = <double*> self.pairs.data + victim * self.pairs.capacity + start
        for j in range(n):
            others.distance[j] = found[j] if mine[j] else INFINITY
        others.distance[n] = INFINITY
        if victim != NEWCOMER:
            others.distance[victim - start] = INFINITY
            others.distance[n] = others.row[victim - start]

    cdef long long born(self, Coefficients terms, Py_ssize_t j) noexcept nogil:
        """When candidate j came."""
        return <long long> 1 << 62 if j == terms.dictionary.size() else terms.dictionary.born(terms.dictionary.start + j)

    cdef Py_ssize_t cheapest(self, Coefficients terms, Candidates* others, const Term* term, Py_ssize_t victim,
                             double* share) noexcept nogil:
        """One output: the candidate that the victim loses least with, and its share h of the point between them.

        Of opposite signs, nothing between is better than the other point itself, h = 0. The table says what a merger
        loses, up to its error, and those that may be the best are computed.
        """
        cdef Py_ssize_t j, start = terms.dictionary.start, n = terms.dictionary.size(), best = NOBODY
        cdef const double* stored = terms.column(start)
        cdef double own, ratio, gap, least = INFINITY
        for j in range(n):
            others.coefficient[j] = stored[j]
            others.bound[j] = -others.distance[j]
        others.coefficient[n], others.bound[n] = term.stored[0], -others.distance[n]
        own = term.stored[0] if victim == NEWCOMER else terms.column(victim)[0]
        ok_exp_array(others.bound, others.value, n + 1)
        for j in range(n + 1):
            if others.distance[j] == INFINITY:
                others.bound[j] = INFINITY
                continue
            gap = 1.0 - others.value[j]
            ratio = own / others.coefficient[j]
            if ratio > 0.0:
                others.bound[j] = between_nodes(self.table, fmin(ratio, 1.0), others.value[j]) * gap * gap
                least = fmin(least, others.bound[j] * (1.0 + self.table_error))
                others.bound[j] *= 1.0 - self.table_error
            else:
                others.bound[j] = gap * (1.0 + others.value[j]) + self.shift / (1.0 + self.shift) * gap * gap
                least = fmin(least, others.bound[j])
        least += 1e-12
        for j in range(n + 1):
            if others.bound[j] <= least and own * others.coefficient[j] > 0.0:
                ratio = fmin(own / others.coefficient[j], 1.0)
                others.bound[j] = merger_loss(1.0 / ratio, others.distance[j], self.shift, best_share(ratio, others.distance[j]))
        least = INFINITY
        for j in range(n + 1):
            least = fmin(least, others.bound[j])
        for j in range(n + 1):                  # the oldest among equals
            if others.bound[j] <= least + 1e-12 and (best == NOBODY or self.born(terms, j) < self.born(terms, best)):
                best = j
        ratio = fmin(own / others.coefficient[best], 1.0)
        share[0] = best_share(ratio, others.distance[best]) if ratio > 0.0 else 0.0
        return best

    cdef Py_ssize_t nearest(self, Coefficients terms, Candidates* others, const Term* term, Py_ssize_t victim,
                             double* share) noexcept nogil:
        """Many outputs: the nearest candidate, and the victim's share h of the best point between them.

        With coefficients A and B, what remains is |p A + q B|^2; it is largest where its derivative is 0.
        """
        cdef Py_ssize_t j, k, row, start = terms.dictionary.start, n = terms.dictionary.size(), best = NOBODY
        cdef double a, b, least = INFINITY, u, c = self.shift, low, high, h, p, q
        cdef double both = 0.0, of_victim = 0.0, of_other = 0.0
        for j in range(n + 1):
            least = fmin(least, others.distance[j])
        for j in range(n + 1):
            if others.distance[j] <= least * NEARLY + 1e-12 and (best == NOBODY or self.born(terms, j) < self.born(terms, best)):
                best = j
        for row in range(terms.kept()):
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
        u = others.distance[best]
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
