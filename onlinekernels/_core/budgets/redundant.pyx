"""Budgets that remove the term which is classified best without itself."""
from libc.math cimport INFINITY, fabs, fmax
from libc.string cimport memset
from onlinekernels._core.budgets.pairs cimport PairBudget
from onlinekernels._core.formulas.vecmath cimport ok_dot
from onlinekernels._core.functions.coefficients cimport NEWCOMER, NOBODY, Coefficients
from onlinekernels._core.functions.function cimport Scratch
from onlinekernels._core.run.example cimport Outcome, Term


cdef class RedundantBudget(PairBudget):
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

    cdef void make_room(self, Coefficients terms, Scratch w, const Term* term, Py_ssize_t i, double size,
                        Outcome* outcome) noexcept nogil:
        """O(terms^2), `tighter` O(terms^2 outputs)."""
        cdef Py_ssize_t slot, best = NOBODY, newcomer = terms.dictionary.stop, mistakes, fewest = newcomer + 1
        cdef double largest = -INFINITY, margin
        cdef Looks looks
        if terms.count < self.most:
            return
        self.take_scores(terms, term, w.piece.values, w.piece.own[i], w.for_budget, &looks)
        for slot in range(terms.dictionary.start, newcomer + 1):
            if self.counts(terms, slot):
                margin = self.margin_without(terms, &looks, slot, slot)
                mistakes = self.mistakes_without(terms, &looks, slot) if self.tighter else 0
                if mistakes < fewest or mistakes == fewest and (margin > largest + looks.slack or (
                        margin >= largest - looks.slack and slot != newcomer
                        and terms.dictionary.born(slot) < terms.dictionary.born(best))):
                    best, fewest, largest = slot, mistakes, margin
        outcome.slot = NEWCOMER if best == newcomer else best

    cdef bint counts(self, Coefficients terms, Py_ssize_t slot) noexcept nogil:
        """Whether a slot has a term that is looked at."""
        return self.insert_first if slot == terms.dictionary.stop else terms.holds(slot)

    cdef Py_ssize_t numbers(self, Coefficients terms) noexcept:
        cdef Py_ssize_t slots = terms.dictionary.capacity + 1
        return (slots + 2) * terms.rows + 2 * slots

    cdef void take_scores(self, Coefficients terms, const Term* term, const double* values, double own, double* room,
                          Looks* looks) noexcept nogil:
        """f at all points that count, and the newcomer's coefficients; it has these kernel values. O(n^2)."""
        cdef Py_ssize_t slot, row, k, rows = terms.kept(), start = terms.dictionary.start, stop = terms.dictionary.stop
        cdef const double* stored
        cdef double* scores
        looks.own, looks.row, looks.rows = own, room, rows
        looks.side = looks.row + terms.dictionary.capacity + 1
        looks.used = looks.side + terms.dictionary.capacity + 1
        looks.coming = looks.used + rows
        looks.scores = looks.coming + rows
        memset(looks.coming, 0, rows * sizeof(double))
        for k in range(term.n if self.insert_first else 0):
            if term.labels[k] < rows:
                looks.coming[term.labels[k]] = term.stored[k]
        for slot in range(start, stop):         # of slots that are not held, values need not be finite
            looks.row[slot - start] = values[slot - start] if terms.holds(slot) else 0.0
        for row in range(rows):
            stored = terms.column(start) + row * terms.stored.capacity
            scores = looks.scores + row
            looks.used[row] = looks.coming[row] != 0.0
            for slot in range(start, stop):
                looks.used[row] = 1.0 if stored[slot - start] != 0.0 else looks.used[row]
                scores[slot * rows] = looks.coming[row] * looks.row[slot - start] + ok_dot(
                    stored, <double*> self.pairs.data + slot * self.pairs.capacity + start, stop - start)
            scores[stop * rows] = looks.coming[row] * own + ok_dot(stored, looks.row, stop - start)
        looks.slack = 0.0
        for slot in range(start, stop + 1):
            for row in range(rows if self.counts(terms, slot) else 0):
                looks.slack = fmax(looks.slack, 1e-9 * fabs(looks.scores[slot * rows + row]))
        for slot in range(start, stop + 1 if rows == 1 else start):
            looks.side[slot] = 1.0 if (looks.coming if slot == stop else terms.column(slot))[0] > 0.0 else -1.0
            if not self.counts(terms, slot):    # it is never a mistake
                looks.side[slot], looks.scores[slot] = 1.0, INFINITY

    cdef double margin_without(self, Coefficients terms, const Looks* looks, Py_ssize_t slot, Py_ssize_t other) noexcept nogil:
        """By how much f without another term gives the point of a slot its own label."""
        cdef Py_ssize_t row, label = 0, start = terms.dictionary.start, stop = terms.dictionary.stop
        cdef Py_ssize_t capacity = 1 if slot == stop else terms.stored.capacity
        cdef Py_ssize_t step = 1 if other == stop else terms.stored.capacity
        cdef const double* own = looks.coming if slot == stop else terms.column(slot)
        cdef const double* gone = looks.coming if other == stop else terms.column(other)
        cdef const double* scores = looks.scores + slot * looks.rows
        cdef double k, best = -INFINITY, score
        if slot < stop and other < stop:
            k = (<double*> self.pairs.data)[slot * self.pairs.capacity + other]
        else:
            k = looks.own if slot == other else looks.row[min(slot, other) - start]
        if looks.rows == 1:
            return looks.side[slot] * (scores[0] - gone[0] * k)
        for row in range(looks.rows):
            if own[row * capacity] > own[label * capacity]:
                label = row
        for row in range(looks.rows):
            score = scores[row] - gone[row * step] * k
            if row != label and looks.used[row] != 0.0 and score > best:
                best = score
        return scores[label] - gone[label * step] * k - best

    cdef Py_ssize_t mistakes_without(self, Coefficients terms, const Looks* looks, Py_ssize_t other) noexcept nogil:
        cdef Py_ssize_t slot, first = terms.dictionary.start, stop = terms.dictionary.stop, mistakes = 0
        cdef const double* values
        cdef double gone
        if looks.rows == 1:                     # the same, without a question inside: most of the time is spent here
            gone = looks.coming[0] if other == stop else terms.column(other)[0]
            values = looks.row - first if other == stop else <double*> self.pairs.data + other * self.pairs.capacity
            for slot in range(first, stop):
                mistakes += looks.side[slot] * (looks.scores[slot] - gone * values[slot]) <= looks.slack
            first = stop
        for slot in range(first, stop + 1):
            if self.counts(terms, slot) and self.margin_without(terms, looks, slot, other) <= looks.slack:
                mistakes += 1
        return mistakes
