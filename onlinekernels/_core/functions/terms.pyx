"""Functions that are sums over terms: a kernel over the rows of a dictionary, and coefficients."""
import numpy as np
from libc.math cimport NAN, fabs
from libc.string cimport memset
from onlinekernels._core.functions.coefficients cimport Coefficients
from onlinekernels._core.formulas.frame cimport MAX_CHANNELS, frame_reset, frame_row
from onlinekernels._core.functions.function cimport BUDGET, Function, Scratch
from onlinekernels._core.points.kernelrows cimport KernelRows
from onlinekernels._core.functions.outputs cimport Outputs
from onlinekernels._core.run.example cimport Outcome, Term


cdef class TermsScratch(Scratch):
    """What a sum over terms of a kernel computes on the way."""


cdef class Terms(Function):
    """f(x, y) = sum_i k(x_i, x) (A_i @ kappa)[y] over the points x_i of a dictionary.

    Parameters
    ----------
    terms : Coefficients
        The A_i, and the budget; they know the dictionary.
    outputs
        As for `Function`.

    How it is evaluated is for others to say.
    """

    def __init__(self, Coefficients terms, Outputs outputs):
        Function.__init__(self, terms.dictionary.n_features, terms.dictionary.dtype, terms.channels, outputs)
        self.keeps = "terms"
        self.terms = terms
        self.dictionary = terms.dictionary

    # ---- Changing -----------------------------------------------------------------------------

    cdef void make_way(self, Scratch w, Term* term, Py_ssize_t i, Outcome* outcome) noexcept nogil:
        """A term is as large as its largest coefficient in f."""
        cdef Py_ssize_t k
        cdef double size = 0.0
        for k in range(term.n):
            size = max(size, fabs(term.stored[k]))
        Function.make_way(self, w, term, i, outcome)
        self.terms.budget.make_room(self.terms, w, term, i, size, outcome)
        self.terms.budget.hand_over(self.terms, w, term, i, outcome)

    cdef Py_ssize_t expiring(self, long long t) noexcept nogil:
        return self.terms.budget.expiring(self.terms, t)

    cdef void drop(self, Scratch w, Py_ssize_t slot) noexcept nogil:
        self.terms.drop(slot)

    cdef void add(self, Scratch w, Term* term, Py_ssize_t i, long long t) noexcept nogil:
        cdef Py_ssize_t slot = self.dictionary.admit(w.piece, i, t)
        self.entered(w, i, slot)
        self.terms.put(slot, term)

    cdef void entered(self, Scratch w, Py_ssize_t i, Py_ssize_t slot) noexcept nogil:
        """Example i has entered a slot."""
        pass

    cdef void fold(self, Scratch w) noexcept nogil:
        if self.frame.channels == 1 and self.frame.p[0][0] == 0.0:
            self.terms.clear()                  # eta * lambda = 1 wipes the past
        else:
            self.terms.fold(&self.frame)
            self.terms.settle()                 # at once: who is there for a budget must not depend on where pieces end
        frame_reset(&self.frame)

    cdef void coefficients_of(self, Scratch w, Py_ssize_t slot, int channel, double* out) noexcept nogil:
        cdef Py_ssize_t k
        cdef double stored[MAX_CHANNELS]
        cdef int j
        for k in range(self.width):
            out[k] = 0.0
        self.terms.read(slot, &w.old)
        for k in range(w.old.n):
            for j in range(channel + 1):
                stored[j] = w.old.stored[j * w.old.n + k]
            out[w.old.labels[k]] += frame_row(&self.frame, channel, stored)

    cdef int tidy(self) except -1:
        self.dictionary.tidy()
        return 0

    # ---- For Python ---------------------------------------------------------------------------

    def widen(self, Py_ssize_t width):
        self.terms.widen(width)

    def copy_last(self, Py_ssize_t n):
        self.terms.copy_last(n)

    def slots(self):
        """Slots with a term, oldest first."""
        return self.terms.slots()

    def points(self):
        """Points of the terms, oldest first."""
        return self.dictionary.points_at(self.slots())

    def pairs(self):
        """The two labels of each term, or None."""
        return self.terms.pairs.array[:, self.slots()] if hasattr(self.terms, "pairs") else None

    def coefficients(self, int channel):
        """True coefficients of a channel, (labels, terms), oldest first: the A_i, before the label kernel."""
        slots = self.slots()
        stored = self.terms.stored.array[:, slots].reshape(self.frame.channels, self.terms.rows, len(slots))
        return self.terms.over_labels(self.true_rows(stored, channel), slots, self.outputs.n)

    def check_start(self, points, alpha, pairs):
        Function.check_start(self, points, alpha, pairs)
        if pairs is None and self.pairs() is not None:
            raise ValueError("terms have a coefficient for a pair of labels here, and alpha has one for each label")

    def begin_from(self, points, alpha, pairs=None, long long t=0):
        """Start from f = sum_i alpha_i k(points_i, .), for t=0 H's start vector w_1; ValueError if that does not fit.

        The terms count as examples t - n + 1, ..., t in their order, under the budget.

        Parameters
        ----------
        points : array, sparse rows or list of objects
        alpha : array of shape (1, n), or (outputs, n)
        pairs : array of shape (2, n), where terms have pairs of labels
        t : int
            How many examples there have been.
        """
        self.start_from(points, alpha, pairs, t)
        self.tidy()

    def state(self):
        """Named numbers and arrays; no scratch. Terms are in the order in which they are added up."""
        slots = self.dictionary.saved_slots()
        return {**self.frame_state(), **self.dictionary.state(slots), **self.terms.state(slots, self.outputs.kept()),
                "birthdays": self.dictionary.birthdays.array[0, slots]}

    def check_state(self, state):
        """ValueError unless a state fits."""
        self.check_frame(state)
        n = self.dictionary.check_birthdays(state, state["t"])
        self.dictionary.check_state(state, n)
        self.terms.check_state(state, n, state["labels"])

    def restore(self, state):
        """Continue from a state that has been checked."""
        self.restore_frame(state)
        self.dictionary.restore(state)
        self.terms.restore(state, state["labels"])

    def _check(self):
        Function._check(self)
        self.dictionary._check()
        self.terms._check()


cdef class KernelTerms(Terms):
    """Terms of a kernel: f is a sum over its row of values.

    Parameters
    ----------
    rows : KernelRows
        The kernel over the dictionary of the terms.
    terms, outputs
        As for `Terms`.
    evaluates_slots : bool
        Whether f at the points of terms will be needed.
    """

    def __init__(self, *, KernelRows rows, Coefficients terms, Outputs outputs, bint evaluates_slots=False):
        Terms.__init__(self, terms, outputs)
        self.rows = rows
        self.takes_objects, self.notices_bad_points = rows.takes_objects, rows.notices_bad_points
        if evaluates_slots:
            rows.look_at_slots()
        terms.budget.stand_on(rows)

    cdef Scratch new_scratch(self):
        return TermsScratch()

    cdef int attach(self, Scratch w, examples) except -1:
        return self.rows.attach(w.piece, examples)

    cdef int open(self, Scratch w, Py_ssize_t first, Py_ssize_t m, bint learning, int by_slots) except -1:
        self.rows.open(w.piece, first, m, learning, by_slots >= 0)
        (<TermsScratch> w).totals = NULL
        if w.piece.turned:
            self.add_up_by_slots(<TermsScratch> w, by_slots)
        if learning:
            self.make_budget_room(w)
        return 0

    cdef int make_budget_room(self, Scratch w) except -1:
        """Memory for what the budget computes, for as many slots as there are room for. O(1), O(its size) if it is new."""
        w.for_budget = <double*> w.buffer(BUDGET, self.terms.budget.numbers(self.terms) * sizeof(double))
        return 0

    cdef int close(self, Scratch w) except -1:
        return self.rows.close(w.piece)

    cdef int add_up_by_slots(self, TermsScratch w, int last) except -1:
        """Sums of stored coefficients times kernel values, slot after slot, for all examples of a piece."""
        cdef Py_ssize_t slot, m = w.piece.rows
        cdef const double* values
        cdef int channel
        w.totals = <double*> w.buffer(TOTALS, (last + 1) * self.width * m * sizeof(double))
        with nogil:
            memset(w.totals, 0, (last + 1) * self.width * m * sizeof(double))
            for slot in range(self.dictionary.start, self.dictionary.stop):
                values = self.rows.slot_over_piece(w.piece, slot)
                for channel in range(last + 1):
                    self.terms.add_slot(slot, channel, values, m, w.totals + channel * self.width * m)
        return 0

    cdef bint point_is_finite(self, Scratch w, Py_ssize_t i) noexcept nogil:
        return self.rows.point_is_finite(w.piece, i)

    cdef void evaluate(self, Scratch w, Py_ssize_t i, int last, double* out) noexcept nogil:
        cdef Py_ssize_t y
        cdef int channel
        cdef const double* totals = (<TermsScratch> w).totals
        if self.dictionary.size() == 0:
            for y in range((last + 1) * self.width):
                out[y] = 0.0
            return
        if totals != NULL:
            for y in range((last + 1) * self.width):
                w.sums[y] = totals[y * w.piece.rows + i]
        else:
            w.piece.values = self.rows.values(w.piece, i)
            for channel in range(last + 1):
                self.terms.add_up(w.piece.values, channel, self.outputs.n, w.sums + channel * self.width)
        self.make_true(w, last, out)

    cdef double value_with(self, Scratch w, Py_ssize_t slot, Py_ssize_t i) noexcept nogil:
        return w.piece.values[slot - self.dictionary.start]

    cdef double vote(self, Scratch w, Py_ssize_t i, long long t, bint signs) noexcept nogil:
        """sum over all hypotheses of a Perceptron of sign(w . x), or of w . x, times what each survived.

        A term makes a new hypothesis: the prefix sum that ends with it.
        """
        cdef Py_ssize_t slot, start = self.dictionary.start, stop = self.dictionary.stop
        cdef double total = 0.0, votes = 0.0, survived
        cdef const double* values
        if start == stop:
            return 0.0
        values = self.rows.values(w.piece, i)
        for slot in range(start, stop):
            total += self.frame.p[0][0] * self.terms.column(slot)[0] * values[slot - start]
            survived = <double> ((self.dictionary.born(slot + 1) if slot + 1 < stop else t + 1) - self.dictionary.born(slot))
            votes += survived * (((total > 0) - (total < 0)) if signs else total)
        return votes

    cdef void entered(self, Scratch w, Py_ssize_t i, Py_ssize_t slot) noexcept nogil:
        self.rows.keep_facts(w.piece, i, slot)

    cdef void evaluate_slot(self, Scratch w, Py_ssize_t slot, int last, double* out, double* own) noexcept nogil:
        cdef int channel
        own[0] = self.rows.slot_values(w.piece, slot)
        for channel in range(last + 1):
            self.terms.add_up(w.piece.slot_work, channel, self.outputs.n, w.sums + channel * self.width)
        self.make_true(w, last, out)

    cdef double square(self, Scratch w) noexcept nogil:
        return self.square_over(w, self.dictionary.start, self.dictionary.stop) if self.rows.looks_back else NAN

    def square_from_python(self):
        """|f|^2 of one output, from kernel values anew; None where a loop can do that."""
        if self.rows.looks_back:
            return None
        slots = self.slots()
        alpha, places = self.coefficients(0)[0], slots - self.dictionary.start
        return float(alpha @ self.rows.values_between()[np.ix_(places, places)] @ alpha)

    cdef Py_ssize_t piece_rows(self):
        return self.rows.piece_rows()

    cdef Py_ssize_t rows_to_evaluate(self):
        return self.rows.rows_to_evaluate()

    cdef open_start(self, Scratch w, points, kept):
        return self.rows.open_start(w.piece, points, kept)

    cdef Py_ssize_t start_row(self, Scratch w, Py_ssize_t i) except -1:
        """A budget that looks at newcomers sees one at a time."""
        if not self.terms.budget.looks_at_newcomers:
            return i
        self.rows.open(w.piece, i, 1, True, False)
        self.make_budget_room(w)
        w.piece.values = self.rows.values(w.piece, 0)
        return 0

    cdef int settle_start(self, Scratch w, points, Py_ssize_t i) except -1:
        return self.rows.settle_start(w.piece, points, i)

    def restore(self, state):
        Terms.restore(self, state)
        self.rows.restore()
