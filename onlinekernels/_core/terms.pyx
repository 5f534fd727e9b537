"""Functions that are sums over terms: a kernel's program over the rows of a dictionary, and coefficients."""
import numpy as np
from libc.math cimport fabs, fmax, isfinite
from libc.string cimport memcpy, memset
from onlinekernels._core.arrays cimport array_data
from onlinekernels._core.coefficients cimport Coefficients
from onlinekernels._core.frame cimport MAX_CHANNELS, frame_reset, frame_row
from onlinekernels._core.function cimport Function
from onlinekernels._core.kernels cimport MAX_OPS, SQUARE, TILT, Program
from onlinekernels._core.outputs cimport Outputs
from onlinekernels._core.vecmath cimport ok_widen
from onlinekernels._core.workspace cimport (DENSE_ROW, FACTS, OWN, SLOT_INNER, SLOT_L1, SLOT_WORK, TOTALS, WIDENED, WORK, Piece,
                                            Workspace)


cdef class Terms(Function):
    """f(x, y) = sum_i k(x_i, x) (A_i @ kappa)[y] over the points x_i of a dictionary.

    Parameters
    ----------
    terms : Coefficients
        The A_i, and the budget; they know the dictionary.
    outputs
        As for `Function`.
    """

    def __init__(self, Coefficients terms, Outputs outputs):
        Function.__init__(self, terms.dictionary.n_features, terms.dictionary.dtype, terms.channels, outputs)
        self.keeps = "terms"
        self.terms = terms
        self.dictionary = terms.dictionary

    cdef const double* values(self, Workspace w, Py_ssize_t i) noexcept nogil:
        """Kernel values of example i with the slots in use."""
        return NULL

    cdef double slot_values(self, Workspace w, Py_ssize_t slot) noexcept nogil:
        """Kernel values of a slot's point with the slots in use, into w.slot_work; return k(x, x) there."""
        return 0.0

    cdef void newcomers_values(self, Workspace w, Py_ssize_t slot, double own, double* out) noexcept nogil:
        """Kernel values of the point in a slot, the latest example, with the slots in use; own: with itself.

        They do not depend on where the slots are, nor on the piece: `values_between` gives the same bits.
        """
        pass

    cdef void keep_facts(self, Workspace w, Py_ssize_t i, Py_ssize_t slot) noexcept nogil:
        """Example i has entered a slot."""
        pass

    cdef void evaluate(self, Workspace w, Py_ssize_t i, int last, double* out) noexcept nogil:
        cdef Py_ssize_t y
        cdef int channel
        if self.dictionary.size() == 0:
            for y in range((last + 1) * self.width):
                out[y] = 0.0
            return
        if w.totals != NULL:
            for y in range((last + 1) * self.width):
                w.sums[y] = w.totals[y * w.piece.rows + i]
        else:
            w.values = self.values(w, i)
            for channel in range(last + 1):
                self.terms.add_up(w.values, channel, self.outputs.n, w.sums + channel * self.width)
        self.make_true(w, last, out)

    cdef double value_with(self, Workspace w, Py_ssize_t slot, Py_ssize_t i) noexcept nogil:
        return w.values[slot - self.dictionary.start]

    cdef double vote(self, Workspace w, Py_ssize_t i, long long t, bint signs) noexcept nogil:
        """sum over all hypotheses of a Perceptron of sign(w . x), or of w . x, times what each survived.

        A term makes a new hypothesis: the prefix sum that ends with it.
        """
        cdef Py_ssize_t slot, start = self.dictionary.start, stop = self.dictionary.stop
        cdef double total = 0.0, votes = 0.0, survived
        cdef const double* values
        if start == stop:
            return 0.0
        values = self.values(w, i)
        for slot in range(start, stop):
            total += self.frame.p[0][0] * self.terms.column(slot)[0] * values[slot - start]
            survived = <double> ((self.dictionary.born(slot + 1) if slot + 1 < stop else t + 1) - self.dictionary.born(slot))
            votes += survived * (((total > 0) - (total < 0)) if signs else total)
        return votes

    # ---- Changing -----------------------------------------------------------------------------

    cdef Py_ssize_t victim(self, Workspace w) noexcept nogil:
        """A term is as large as its largest coefficient in f."""
        cdef Py_ssize_t k
        cdef double size = 0.0
        for k in range(w.term.n):
            size = fmax(size, fabs(w.term.stored[k]))
        return self.terms.budget.victim(self.terms, size)

    cdef Py_ssize_t expiring(self, long long t) noexcept nogil:
        return self.terms.budget.expiring(self.terms, t)

    cdef void drop(self, Workspace w, Py_ssize_t slot) noexcept nogil:
        if self.terms.budget.looks_at_rows:
            self.slot_values(w, slot)
        self.terms.budget.hand_on(self.terms, w, slot)
        self.terms.drop(slot)

    cdef void add(self, Workspace w, Py_ssize_t i, long long t) noexcept nogil:
        cdef Py_ssize_t slot = self.dictionary.admit(w.piece, i, t)
        self.keep_facts(w, i, slot)
        self.terms.put(slot, &w.term)

    cdef void fold(self, Workspace w) noexcept nogil:
        if self.frame.channels == 1 and self.frame.p[0][0] == 0.0:
            self.terms.clear()                  # eta * lambda = 1 wipes the past
        else:
            self.terms.fold(&self.frame)
        frame_reset(&self.frame)

    cdef void spread(self, Workspace w) noexcept nogil:
        cdef Py_ssize_t slot, start = self.dictionary.start
        for slot in range(start, self.dictionary.stop):
            if self.terms.holds(slot):
                self.terms.column(slot)[0] += w.term.change[slot - start] / self.frame.p[0][0]
        self.terms.budget.changed(self.terms)

    cdef void coefficients_of(self, Workspace w, Py_ssize_t slot, int channel, double* out) noexcept nogil:
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

    cdef Py_ssize_t piece_rows(self):
        return self.dictionary.piece_rows()

    cdef Py_ssize_t rows_to_evaluate(self):
        return self.dictionary.rows_to_evaluate()

    # ---- For Python ---------------------------------------------------------------------------

    def values_between(self):
        """Kernel values of the points of all slots in use, a row for each, with each other."""
        raise NotImplementedError

    def widen(self, Py_ssize_t width):
        self.terms.widen(width)

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

    def begin_from(self, points, alpha, pairs=None):
        """Start from f_1 = sum_i alpha_i k(points_i, .), H's start vector w_1.

        The terms count as examples 1 - n, ..., 0 in their order, under the budget.

        Parameters
        ----------
        points : array, sparse rows or list of objects
        alpha : array of shape (1, n), or (outputs, n)
        pairs : array of shape (2, n), where terms have pairs of labels
        """
        self.start_from(points, alpha, pairs)
        self.tidy()

    def state(self):
        """Named numbers and arrays; no scratch. Terms are in the order in which they are added up."""
        slots = self.dictionary.saved_slots()
        return {**self.frame_state(), **self.dictionary.state(slots), **self.terms.state(slots, self.outputs.n),
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


cdef class CompiledTerms(Terms):
    """Terms of a compiled kernel.

    Parameters
    ----------
    program : Program
        The kernel; it has been started with the points' precision and origin.
    terms, outputs
        As for `Terms`.
    evaluates_slots : bool
        Whether f at the points of terms will be needed.
    """

    def __init__(self, *, Program program, Coefficients terms, Outputs outputs, bint evaluates_slots=False):
        Terms.__init__(self, terms, outputs)
        self.program = program
        self.notices_bad_points = program.needs_inner
        self.evaluates_slots = evaluates_slots or terms.budget.looks_at_rows
        self.facts = self.dictionary.new_table(program.n_facts)
        self.dictionary.ask_for(program.needs_inner, program.needs_l1)

    cdef int attach(self, Workspace w, examples) except -1:
        w.source = examples
        w.source_data = array_data(examples) if isinstance(examples, np.ndarray) else NULL
        return 0

    cdef int open(self, Workspace w, Py_ssize_t first, Py_ssize_t m, bint learning, int by_slots) except -1:
        cdef Py_ssize_t i, size = self.n_features * self.dtype.itemsize
        cdef Py_ssize_t room
        cdef const char* x
        if w.piece == &w.own_piece:             # no other function on this dictionary has opened it
            self.dictionary.open(w, first, m, learning, by_slots >= 0)
        w.facts = <double*> w.buffer(FACTS, self.program.n_facts * m * sizeof(double))
        w.own = <double*> w.buffer(OWN, m * sizeof(double))
        room = w.piece.stride
        w.work = <double*> w.buffer(WORK, self.program.depth * room * sizeof(double))
        if w.piece.narrow:
            w.widened = <double*> w.buffer(WIDENED, room * sizeof(double))
        if self.evaluates_slots:
            self.make_slot_room(w, room)
        with nogil:
            for i in range(m):
                x = NULL if w.piece.x == NULL else w.piece.x + i * size
                w.own[i] = self.program.facts_from(x, w.piece.square[i], w.piece.tilt[i], w.facts + i, m)
        if w.piece.turned:
            self.add_up_by_slots(w, by_slots)
        return 0

    cdef open_start(self, Workspace w, points, kept):
        points = self.dictionary.chosen(points, kept)
        self.attach(w, points)
        self.open(w, 0, len(kept), False, -1)
        w.piece.inner, w.piece.l1 = NULL, NULL          # nobody will ask for them
        return points

    cdef int add_up_by_slots(self, Workspace w, int last) except -1:
        """Sums of stored coefficients times kernel values, slot after slot, for all examples of a piece.

        A kernel is symmetric: a slot's row over the examples takes the place of an example's row over the slots.
        """
        cdef Piece* piece = w.piece
        cdef Py_ssize_t m = piece.rows, slot, item = self.dtype.itemsize
        cdef Py_ssize_t capacity = self.facts.capacity, start = self.dictionary.start
        cdef double* facts = <double*> self.facts.data
        cdef const double* row
        cdef int channel
        w.totals = <double*> w.buffer(TOTALS, (last + 1) * self.width * m * sizeof(double))
        with nogil:
            memset(w.totals, 0, (last + 1) * self.width * m * sizeof(double))
            for slot in range(start, self.dictionary.stop):
                row = <const double*> (piece.inner + (slot - start) * piece.stride * item)
                if piece.narrow:
                    ok_widen(<const float*> row, w.widened, m)
                    row = w.widened
                self.program.row(row, NULL, self.dictionary.point(slot), facts + slot, capacity, piece.x, w.facts, m, m,
                                 w.work)
                for channel in range(last + 1):
                    self.terms.add_slot(slot, channel, w.work, m, w.totals + channel * self.width * m)
        return 0

    cdef const double* values(self, Workspace w, Py_ssize_t i) noexcept nogil:
        cdef Piece* piece = w.piece
        cdef Py_ssize_t start = self.dictionary.start, n = self.dictionary.stop - start
        cdef Py_ssize_t place = i * piece.stride + start - piece.first
        cdef double* facts = <double*> self.facts.data
        cdef const double* inner = NULL
        cdef const char* x = NULL
        if piece.inner != NULL:
            if piece.narrow:
                ok_widen(<const float*> piece.inner + place, w.widened, n)
                inner = w.widened
            else:
                inner = <const double*> piece.inner + place
        if piece.x != NULL:
            x = piece.x + i * (self.n_features * (4 if self.program.single else 8))
        self.program.row(inner, NULL if piece.l1 == NULL else piece.l1 + place, x, w.facts + i, piece.rows,
                         self.dictionary.point(start), facts + start, self.facts.capacity, n, w.work)
        return w.work

    cdef bint point_is_finite(self, Workspace w, Py_ssize_t i) noexcept nogil:
        return isfinite(w.piece.square[i])

    cdef void keep_facts(self, Workspace w, Py_ssize_t i, Py_ssize_t slot) noexcept nogil:
        cdef Py_ssize_t fact
        for fact in range(self.program.n_facts):
            (<double*> self.facts.data)[fact * self.facts.capacity + slot] = w.facts[fact * w.piece.rows + i]

    cdef double slot_values(self, Workspace w, Py_ssize_t slot) noexcept nogil:
        cdef Py_ssize_t start = self.dictionary.start, capacity = self.facts.capacity
        cdef double* facts = <double*> self.facts.data
        cdef const char* x = self.dictionary.point(slot)
        cdef double unused[2 * MAX_OPS]         # two, and one for each NORMALIZE
        cdef double own
        self.dictionary.slot_row(w, slot)
        self.program.row(w.slot_inner, w.slot_l1, x, facts + slot, capacity, self.dictionary.point(start), facts + start,
                         capacity, self.dictionary.size(), w.slot_work)
        own = self.program.facts_from(x, facts[SQUARE * capacity + slot], facts[TILT * capacity + slot], unused, 1)
        w.slot_work[slot - start] = own         # the same example: noise counts
        return own

    cdef void newcomers_values(self, Workspace w, Py_ssize_t slot, double own, double* out) noexcept nogil:
        self.slot_values(w, slot)
        memcpy(out, w.slot_work, self.dictionary.size() * sizeof(double))

    def values_between(self):
        cdef Workspace w = Workspace()
        cdef Py_ssize_t i, n = self.dictionary.size()
        cdef double[:, ::1] values
        result = np.empty((n, n))
        if n:
            values = result
            self.make_slot_room(w, n)
            w.dense_row = <double*> w.buffer(DENSE_ROW, self.n_features * sizeof(double))
            with nogil:
                for i in range(n):
                    self.slot_values(w, self.dictionary.start + i)
                    memcpy(&values[i, 0], w.slot_work, n * sizeof(double))
        return result

    cdef int make_slot_room(self, Workspace w, Py_ssize_t room) except -1:
        """Room for the kernel values of a slot's point."""
        w.slot_inner = <double*> w.buffer(SLOT_INNER, room * sizeof(double))
        w.slot_l1 = <double*> w.buffer(SLOT_L1, room * sizeof(double))
        w.slot_work = <double*> w.buffer(SLOT_WORK, self.program.depth * room * sizeof(double))
        return 0

    cdef void evaluate_slot(self, Workspace w, Py_ssize_t slot, int last, double* out, double* own) noexcept nogil:
        cdef int channel
        own[0] = self.slot_values(w, slot)
        for channel in range(last + 1):
            self.terms.add_up(w.slot_work, channel, self.outputs.n, w.sums + channel * self.width)
        self.make_true(w, last, out)

    cdef double square(self, Workspace w) noexcept nogil:
        return self.square_over(w, self.dictionary.start, self.dictionary.stop)

    def restore(self, state):
        cdef Py_ssize_t slot
        Terms.restore(self, state)
        for slot in range(self.dictionary.capacity):
            self.program.facts_from(self.dictionary.point(slot), self.dictionary.square_of(slot),
                                    self.dictionary.tilt_of(slot), <double*> self.facts.data + slot, self.facts.capacity)


cdef class ObjectTerms(Terms):
    """Terms of a kernel on Python objects.

    Parameters
    ----------
    kernel : Kernel
    terms, outputs
        As for `Terms`; the dictionary is one of objects.
    """

    def __init__(self, *, kernel, Coefficients terms, Outputs outputs):
        Terms.__init__(self, terms, outputs)
        self.kernel = kernel
        self.objects = terms.dictionary
        self.takes_objects = True

    cdef int attach(self, Workspace w, examples) except -1:
        w.source = examples
        return 0

    cdef Py_ssize_t piece_rows(self):
        """One at a time: its kernel row comes from Python."""
        return 1

    cdef Py_ssize_t rows_to_evaluate(self):
        return 1

    cdef int open(self, Workspace w, Py_ssize_t first, Py_ssize_t m, bint learning, int by_slots) except -1:
        w.example = x = w.source[first]
        if learning:
            self.dictionary.reserve(1)
        w.kept = self.row(x)
        w.own = <double*> w.buffer(OWN, sizeof(double))
        w.own[0] = self.kernel.self_value(x) if learning else 1.0
        w.begin_piece(1)
        w.piece.first = self.dictionary.start
        w.piece.values = <const double*> array_data(w.kept)
        return 0

    cdef row(self, x):
        """Kernel values of an object with the points, checked to be as many numbers."""
        points = self.objects.in_use()
        row = np.ascontiguousarray(self.kernel.row(x, points), dtype=np.float64)
        if row.shape != (len(points),):
            raise ValueError(f"The kernel gave an array of shape {row.shape} for one example and "
                             f"{len(points)} terms; expected shape {(len(points),)}.")
        return row

    cdef const double* values(self, Workspace w, Py_ssize_t i) noexcept nogil:
        return w.piece.values

    cdef void newcomers_values(self, Workspace w, Py_ssize_t slot, double own, double* out) noexcept nogil:
        cdef Py_ssize_t other, first = w.piece.first
        for other in range(self.dictionary.start, self.dictionary.stop):
            if other != slot:
                out[other - self.dictionary.start] = w.piece.values[other - first]
        out[slot - self.dictionary.start] = own

    def values_between(self):
        points = self.objects.in_use()
        values = np.empty((len(points), len(points)))
        for i, x in enumerate(points):
            values[i] = self.row(x)
            values[i, i] = self.kernel.self_value(x)
        return values

    cdef int close(self, Workspace w) except -1:
        self.objects.keep(w.piece, w.example)
        w.example = None
        return 0

    cdef open_start(self, Workspace w, points, kept):
        self.dictionary.reserve(len(kept))
        w.begin_piece(0)
        w.own = <double*> w.buffer(OWN, max(1, len(kept)) * sizeof(double))
        return [points[i] for i in kept]

    cdef int settle_start(self, Workspace w, points, Py_ssize_t i) except -1:
        self.objects.keep(w.piece, points[i])
        return 0

    def square_from_python(self):
        """|f|^2 of one output, from kernel values anew."""
        terms, alpha = self.points(), self.coefficients(0)[0]
        square = 0.0
        for i, x in enumerate(terms):
            row = np.array(self.kernel.row(x, terms), dtype=np.float64)
            row[i] = self.kernel.self_value(x)
            square += alpha[i] * np.dot(alpha, row)
        return float(square)
