"""A posterior on inducing points: f is known at some points, f_D = L u, which come and go at checkpoints of the stream."""
import numpy as np
from libc.string cimport memcpy, memset
from onlinekernels._core.arrays import check_array
from onlinekernels._core.terms import UNBOUNDED
from onlinekernels._core.dictionary cimport Dictionary, Observer
from onlinekernels._core.functions cimport Outputs, Scratch
from onlinekernels._core.posterior cimport CHECKPOINT, CHOSEN, JOINING, TOTALS, Posterior, PosteriorScratch, room_for
from onlinekernels._core.selection cimport bring_back, choose_leavers, find_newcomers, forget_newcomers
from onlinekernels._core.linalg cimport Factor, ok_times_rows
from onlinekernels._core.linalg import check_lower
from onlinekernels._core.formulas.vecmath cimport ok_axpy

# A variance given f at other points, relative to k(x, x), that may be rounding. If that of each point, given all others, is at
# least this, the coefficients of f(x) given f_D are at most 1 / sqrt(DETERMINED), and coordinates of any x are right up to the
# rounding of the kernel over DETERMINED.
cdef double DETERMINED = 1e-11
# What is new given those before it, by a tolerance, all others may determine so much better: points of a line that goes on do.
cdef double BETTER = 1e-5
cdef long long STAYS = 1 << 40  # marks a role while others are given up


cdef class InducingPoints(Observer):
    """Which slots of a dictionary the points of a posterior, and its pending rows, are in.

    Parameters
    ----------
    dictionary : Dictionary
    most : int
        Slots at the most.
    """

    def __init__(self, Dictionary dictionary, long long most):
        self.dictionary, self.most = dictionary, most
        self.roles, self.orders = dictionary.new_table(1, np.int64), dictionary.new_table(1, np.intp)
        dictionary.observer = self
        self.moved()

    cdef void moved(self) noexcept:
        """Read where everybody is from the table that has moved with the slots."""
        cdef Py_ssize_t slot
        cdef const long long* roles = <const long long*> self.roles.data
        self.order = <Py_ssize_t*> self.orders.data
        for slot in range(self.dictionary.capacity):
            if roles[slot] > 0:
                self.order[roles[slot] - 1] = slot
            elif roles[slot] < 0:
                self.pending[-1 - roles[slot]] = slot

    cdef void become(self, const Py_ssize_t* slots, Py_ssize_t n) noexcept:
        """These slots are the points now, in the order of their coordinates; all others go, and no row is pending."""
        cdef long long* roles = <long long*> self.roles.data
        cdef Py_ssize_t slot, i
        for i in range(n):
            roles[slots[i]] = STAYS + i + 1
        for slot in range(self.dictionary.stop - 1, self.dictionary.start - 1, -1):
            if roles[slot] >= STAYS:
                roles[slot] -= STAYS
            elif roles[slot] != 0:
                roles[slot] = 0
                self.dictionary.release(slot)
        self.moved()


cdef class PointsPosterior(Posterior):
    """f known at points of a dictionary: f_D = L u.

    Parameters
    ----------
    dictionary : Dictionary
        With a kernel.
    outputs, memory, classes
        As for `Posterior`.
    budget : int or None
        Points that stay at a checkpoint; None for all.
    tolerance : float
        A point joins if its variance, given f at all others, exceeds this, or 1e-11, times k(x, x).
    """

    def __init__(self, *, Dictionary dictionary, Outputs outputs, double memory, bint classes, budget, double tolerance):
        Posterior.__init__(self, dictionary.n_features, dictionary.dtype, outputs, memory, classes)
        self.keeps = "terms"
        self.dictionary = dictionary
        self.takes_objects, self.notices_bad_points = dictionary.takes_objects, dictionary.notices_bad_points
        dictionary.evaluates_own = True
        self.most = UNBOUNDED if budget is None else budget
        self.inducing = InducingPoints(self.dictionary, UNBOUNDED if budget is None else budget + 2 * CHECKPOINT)
        self.tolerance = tolerance
        self.factor = Factor(0)

    cdef int make_room(self, Py_ssize_t n) except -1:
        """Room for so many points, in all arrays or in none: O(capacity^2) when it grows, which doubles."""
        cdef Py_ssize_t room = self.capacity if n <= self.capacity else room_for(max(n, 2 * self.n))
        if self.factor.room == room:
            return 0
        factor = self.factor.with_room(room)
        if room != self.capacity:
            self.set_room(room, self.width)
        self.factor = factor                    # nothing can fail any more
        return 0

    cdef int attach(self, Scratch w, examples) except -1:
        return self.dictionary.attach(w.piece, examples)

    cdef Py_ssize_t piece_rows(self):
        return 1 if self.takes_objects else CHECKPOINT - self.root.n % CHECKPOINT

    cdef Py_ssize_t rows_to_evaluate(self):
        return self.dictionary.rows_to_evaluate()

    cdef int open_rows(self, PosteriorScratch w, Py_ssize_t first, Py_ssize_t m, bint learning, bint turned) except -1:
        return self.dictionary.open(w.piece, first, m, learning, turned)

    cdef int read(self, PosteriorScratch w, Py_ssize_t m) except -1:
        if m == 1:                              # to let others go on meanwhile would take longer
            self.read_rows(w, 1)
        else:
            with nogil:
                self.read_rows(w, m)
        return 0

    cdef void read_rows(self, PosteriorScratch w, Py_ssize_t m) noexcept nogil:
        cdef Py_ssize_t i, r, s, n = self.n, start = self.dictionary.start, room = self.capacity
        cdef Py_ssize_t* order = self.inducing.order
        cdef Py_ssize_t* pending = self.inducing.pending
        cdef const double* values
        cdef double* a
        cdef double* K
        for i in range(m):
            s = self.root.n + i
            a, K = self.a + s * room, self.K + s * CHECKPOINT
            if self.dictionary.size():
                values = self.dictionary.values(w.piece, i)
                for r in range(n):
                    a[r] = values[order[r] - start]
                for r in range(self.root.n):
                    K[r] = values[pending[r] - start]
            values = self.dictionary.own_values(w.piece, i)
            for r in range(i):
                K[self.root.n + r] = values[r]
            K[s] = w.piece.own[i]
        self.factor.solve_rows(self.a + self.root.n * room, room, m)

    cdef bint point_is_finite(self, Scratch w, Py_ssize_t i) noexcept nogil:
        return self.dictionary.point_is_finite(w.piece, i)

    cdef void admit(self, PosteriorScratch w, Py_ssize_t i) noexcept nogil:
        cdef Py_ssize_t slot
        self.born += 1
        slot = self.dictionary.admit(w.piece, i, self.born)
        self.dictionary.keep_facts(w.piece, i, slot)
        self.dictionary.hold(slot)
        self.inducing.pending[self.root.n] = slot
        (<long long*> self.inducing.roles.data)[slot] = -1 - self.root.n

    cdef int close(self, Scratch w) except -1:
        self.dictionary.close(w.piece)
        return Posterior.close(self, w)

    cdef int tidy(self) except -1:
        self.dictionary.tidy()
        return 0

    # ---- Checkpoints --------------------------------------------------------------------------

    cdef int conclude(self, PosteriorScratch w) except -1:
        """Take in the pending rows; let join who is new, and go who is least missed."""
        cdef Py_ssize_t i, first = 0, n = self.n, count, size, stayers
        cdef Py_ssize_t joining[CHECKPOINT]
        cdef double rounding = DETERMINED
        cdef double* V = <double*> w.buffer(JOINING, CHECKPOINT * CHECKPOINT * sizeof(double))
        cdef const double* corner = NULL
        count = find_newcomers(self, w, self.tolerance, V, joining, &rounding)
        self.make_room(n + count)
        self.begin_to_take_in(w, count)
        self.prepare_rows(V, joining, count)
        cdef double* U = self.future_mean(w, V, count)
        size = n + count
        cdef Py_ssize_t* slot = <Py_ssize_t*> w.buffer(CHOSEN, max(1, size) * (3 * sizeof(long long) + 1))
        cdef Py_ssize_t* stay = slot + size
        cdef long long* births = <long long*> (stay + size)
        cdef unsigned char* leaves = <unsigned char*> (births + size)
        self.list_slots(slot, joining, count)
        for i in range(size):
            births[i], leaves[i] = self.dictionary.born(slot[i]), 0
        if count == 0 or self.tolerance * BETTER >= rounding:
            rounding = 0.0                      # nobody is determined who was not before
        if choose_leavers(self, self.factor, w, self.most, U, size, births, rounding, leaves):
            stayers = forget_newcomers(w, V, joining, count, leaves + n)
            if stayers < count:
                count = stayers
                self.prepare_rows(V, joining, count)
                self.list_slots(slot, joining, count)
                U = self.future_mean(w, V, count)
        size, n = n + count, 0
        cdef double* S = self.future_covariance(w, count)
        for i in range(size):
            if i >= self.n or not leaves[i]:
                stay[n] = i
                n += 1
        if n < size:
            while first < n and stay[first] == first:
                first += 1
            corner = bring_back(self, self.factor, w, U, S, size, stay, n, first)
            for i in range(n):
                slot[i] = slot[stay[i]]
            self.factor.keep(stay, first, n, corner)        # nothing can fail any more
        self.factor.n = n
        self.become(U, S, size, n)
        self.inducing.become(slot, n)
        return 0

    cdef void prepare_rows(self, const double* V, const Py_ssize_t* joining, Py_ssize_t count) noexcept:
        """Rows of L of those that join, behind those in use: O(count n)."""
        cdef Py_ssize_t i, r, n = self.n
        cdef double* row
        for i in range(count):
            row = self.factor.row(n + i)
            memcpy(row, self.a + joining[i] * self.capacity, n * sizeof(double))
            for r in range(count):
                row[n + r] = V[r * CHECKPOINT + joining[i]] if r <= i else 0.0

    cdef void list_slots(self, Py_ssize_t* slots, const Py_ssize_t* joining, Py_ssize_t count) noexcept:
        """Slots of all points, with those that join."""
        cdef Py_ssize_t i
        memcpy(slots, self.inducing.order, self.n * sizeof(Py_ssize_t))
        for i in range(count):
            slots[self.n + i] = self.inducing.pending[joining[i]]

    # ---- Predicting ---------------------------------------------------------------------------

    def expanded(self):
        """Coefficients of the mean over the slots in use, a row for each output."""
        cdef Py_ssize_t n = self.n, p = self.root.n, start = self.dictionary.start, r
        points, pending = self.mean_now()
        points = np.ascontiguousarray(points)
        self.factor.solve_transposed_into(points)
        rows = np.zeros((self.outputs.n, self.dictionary.stop - start))
        for r in range(n):
            rows[:, self.inducing.order[r] - start] = points[r, :self.outputs.n]
        for r in range(p):
            rows[:, self.inducing.pending[r] - start] = pending[r, :self.outputs.n]
        return rows

    cdef int open(self, Scratch w, Py_ssize_t first, Py_ssize_t m, bint learning, int by_slots) except -1:
        cdef Py_ssize_t slot, l, size, start = self.dictionary.start
        cdef const double* values
        cdef PosteriorScratch scratch
        Posterior.open(self, w, first, m, learning, by_slots)
        if not w.piece.turned:
            return 0
        scratch = w
        size = self.dictionary.size()
        scratch.totals = <double*> w.buffer(TOTALS, self.outputs.n * m * sizeof(double))
        with nogil:
            memset(scratch.totals, 0, self.outputs.n * m * sizeof(double))
            for slot in range(start, self.dictionary.stop):
                values = self.dictionary.slot_over_piece(w.piece, slot)
                for l in range(self.outputs.n):
                    ok_axpy(scratch.expansion[l * size + slot - start], values, scratch.totals + l * m, m)
        return 0

    cdef void evaluate_mean(self, PosteriorScratch w, Py_ssize_t i, double* out) noexcept nogil:
        cdef Py_ssize_t l, size = self.dictionary.size()
        if w.totals != NULL:
            for l in range(self.outputs.n):
                out[l] = w.totals[l * w.piece.rows + i]
        elif size:
            ok_times_rows(w.expansion, size, self.outputs.n, size, self.dictionary.values(w.piece, i), out)
        else:
            for l in range(self.outputs.n):
                out[l] = 0.0

    def coordinates_of(self, PosteriorScratch w, Py_ssize_t first, Py_ssize_t m):
        """(k(x, x), a(x), kernel values with the pending rows) of m rows of the source of a call."""
        cdef Py_ssize_t i, j, r, n = self.n, p = self.root.n, start = self.dictionary.start
        own_array, a_array, shared_array = np.empty(m), np.zeros((m, n)), np.zeros((m, p))
        cdef double[::1] own = own_array
        cdef double[:, ::1] a = a_array, shared = shared_array
        cdef const double* values
        for j in range(m):
            if j == 0 or self.takes_objects:    # objects come one by one
                self.dictionary.open(w.piece, first + j, 1 if self.takes_objects else m, False, False)
            i = 0 if self.takes_objects else j
            own[j] = w.piece.own[i]
            if self.dictionary.size():
                values = self.dictionary.values(w.piece, i)
                for r in range(n):
                    a[j, r] = values[self.inducing.order[r] - start]
                for r in range(p):
                    shared[j, r] = values[self.inducing.pending[r] - start]
        self.factor.solve_into(a_array)
        return own_array, a_array, shared_array

    # ---- For Python ---------------------------------------------------------------------------

    def slots(self):
        """Slots of points and of pending rows, oldest first."""
        slots = np.flatnonzero(self.inducing.roles.array[0] != 0)
        return slots[np.argsort(self.dictionary.birthdays.array[0, slots], kind="stable")]

    def points(self):
        """Points, and pending rows, oldest first."""
        return self.dictionary.points_at(self.slots())

    def pairs(self):
        """There are no pairs of labels."""
        return None

    def coefficients(self, int channel):
        """Coefficients of the mean, (outputs, terms), oldest first."""
        return self.expanded()[:, self.slots() - self.dictionary.start]

    def state(self):
        slots = self.dictionary.saved_slots()
        return {**Posterior.state(self), **self.dictionary.state(slots), "factor": self.factor.lower(),
                "birthdays": self.dictionary.birthdays.array[0, slots], "roles": self.inducing.roles.array[0, slots]}

    def check_state(self, state):
        """ValueError unless a state fits."""
        n, p = self.check_known(state)
        if n > self.most:
            raise ValueError(f"{n} points are more than the budget of {self.most}")
        check_lower(state["factor"], "factor", n)
        self.dictionary.check_state(state, self.dictionary.check_birthdays(state, state["t"]))
        roles = check_array(state["roles"], "roles", np.int64, (len(state["birthdays"]),))
        if sorted(roles.tolist()) != [*range(-p, 0), *range(1, n + 1)]:
            raise ValueError("the roles are not those of all coordinates and pending rows")

    def restore(self, state):
        """Continue from a state that has been checked."""
        cdef Py_ssize_t slot, n = len(state["factor"])
        self.dictionary.restore(state)
        self.inducing.roles.array[0] = state["roles"]
        for slot in range(self.dictionary.capacity):
            self.dictionary.hold(slot)
        self.inducing.moved()
        self.restore_known(state)
        self.factor = Factor(0)
        self.make_room(n)
        self.factor.load(state["factor"])
        self.born = state["t"]

    def _check(self):
        Posterior._check(self)
        self.dictionary._check()
        self.factor._check()
        assert self.factor.n == self.n and self.factor.room == self.capacity
        roles = self.inducing.roles.array[0]
        assert sorted(roles[roles != 0].tolist()) == [*range(-self.root.n, 0), *range(1, self.n + 1)]
        assert self.dictionary.taken.array[0, roles != 0].all() and self.n <= self.most
        for slot in np.flatnonzero(roles):
            role = roles[slot]
            assert slot == (self.inducing.order[role - 1] if role > 0 else self.inducing.pending[-1 - role])
