"""A posterior on inducing points: f is known at some points, f_D = L u, which come and go.

At a checkpoint of the stream those rows join that f at the points does not determine, and if there are more points than a
budget allows, those leave that the mean of f would miss least.  With a small tolerance, points leave too that the others have
come to determine: otherwise L is so near to singular that coordinates are nothing but rounding.
"""
import numpy as np
from libc.math cimport INFINITY, fmax, sqrt
from libc.string cimport memcpy, memset
from onlinekernels._core.arrays cimport array_data
from onlinekernels._core.arrays import check_array
from onlinekernels._core.functions.coefficients import UNBOUNDED
from onlinekernels._core.points.dictionary cimport Dictionary, Tenant
from onlinekernels._core.points.kernelrows cimport KernelRows
from onlinekernels._core.functions.outputs cimport Outputs
from onlinekernels._core.functions.posterior cimport (CHECKPOINT, INVERSE, JOINING, LEAVING, PRODUCTS, TOTALS, Posterior,
                                                       PosteriorScratch, room_for)
from onlinekernels._core.formulas.factor cimport Factor
from onlinekernels._core.formulas.factor import check_lower
from onlinekernels._core.formulas.reflections cimport (OK_REFLECTED, ok_find_reflections, ok_reflect, ok_reflections,
                                                       ok_reflections_size)
from onlinekernels._core.formulas.triangles cimport (ok_column_squares, ok_eliminate, ok_invert_lower, ok_leave, ok_losses,
                                                     ok_times_rows)
from onlinekernels._core.formulas.vecmath cimport ok_axpy, ok_dot
from onlinekernels._core.functions.function cimport Scratch

cdef object DOUBLE = np.dtype(np.float64)
cdef double NEAR = 1e-6         # relative: what is closer than that is the same, and the earlier one goes first
# A variance given f at other points, relative to k(x, x), that may be rounding. If that of each point, given all others, is at
# least this, the coefficients of f(x) given f_D are at most 1 / sqrt(DETERMINED), and coordinates of any x are right up to the
# rounding of the kernel over DETERMINED.
cdef double DETERMINED = 1e-11
# What is new given those before it, by a tolerance, all others may determine so much better: points of a line that goes on do.
cdef double BETTER = 1e-5
cdef long long STAYS = 1 << 40  # marks a role while others are given up


cdef class InducingPoints(Tenant):
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
        dictionary.add_tenant(self)
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
    rows : KernelRows
    outputs, memory, classes
        As for `Posterior`.
    budget : int or None
        Points that stay at a checkpoint; None for all.
    tolerance : float
        A point joins if its variance, given f at all others, exceeds this, or 1e-11, times k(x, x).
    """

    def __init__(self, *, KernelRows rows, Outputs outputs, double memory, bint classes, budget, double tolerance):
        Posterior.__init__(self, rows.dictionary.n_features, rows.dictionary.dtype, outputs, memory, classes)
        self.keeps = "terms"
        self.rows, self.dictionary = rows, rows.dictionary
        self.takes_objects, self.notices_bad_points = rows.takes_objects, rows.notices_bad_points
        rows.look_at_own()
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
        return self.rows.attach(w.piece, examples)

    cdef Py_ssize_t piece_rows(self):
        return 1 if self.takes_objects else CHECKPOINT - self.root.n % CHECKPOINT

    cdef Py_ssize_t rows_to_evaluate(self):
        return self.rows.rows_to_evaluate()

    cdef int open_rows(self, PosteriorScratch w, Py_ssize_t first, Py_ssize_t m, bint learning, bint turned) except -1:
        return self.rows.open(w.piece, first, m, learning, turned)

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
                values = self.rows.values(w.piece, i)
                for r in range(n):
                    a[r] = values[order[r] - start]
                for r in range(self.root.n):
                    K[r] = values[pending[r] - start]
            values = self.rows.own_values(w.piece, i)
            for r in range(i):
                K[self.root.n + r] = values[r]
            K[s] = w.piece.own[i]
        self.factor.solve_rows(self.a + self.root.n * room, room, m)

    cdef bint point_is_finite(self, Scratch w, Py_ssize_t i) noexcept nogil:
        return self.rows.point_is_finite(w.piece, i)

    cdef void admit(self, PosteriorScratch w, Py_ssize_t i) noexcept nogil:
        cdef Py_ssize_t slot
        self.born += 1
        slot = self.dictionary.admit(w.piece, i, self.born)
        self.rows.keep_facts(w.piece, i, slot)
        self.dictionary.hold(slot)
        self.inducing.pending[self.root.n] = slot
        (<long long*> self.inducing.roles.data)[slot] = -1 - self.root.n

    cdef int close(self, Scratch w) except -1:
        self.rows.close(w.piece)
        return Posterior.close(self, w)

    cdef int tidy(self) except -1:
        self.dictionary.tidy()
        return 0

    # ---- Checkpoints --------------------------------------------------------------------------

    cdef int conclude(self, PosteriorScratch w) except -1:
        """Take in the pending rows; let join who is new, and go who is least missed."""
        cdef Py_ssize_t first = 0, n = self.n, count, size, stayers
        cdef Py_ssize_t joining[CHECKPOINT]
        cdef double rounding = DETERMINED
        cdef double* V = <double*> w.buffer(JOINING, CHECKPOINT * CHECKPOINT * sizeof(double))
        cdef const double* corner = NULL
        count = self.find_newcomers(w, V, joining, &rounding)
        self.make_room(n + count)
        self.begin_to_take_in(w, count)
        self.prepare_rows(V, joining, count)
        mean = self.future_mean(w, V, count)
        slots, gone = np.empty(n + count, dtype=np.intp), np.zeros(n + count, dtype=np.uint8)
        cdef Py_ssize_t* slot = <Py_ssize_t*> array_data(slots)
        cdef unsigned char* leaves = <unsigned char*> array_data(gone)
        self.list_slots(slot, joining, count)
        births = self.dictionary.birthdays.array[0, slots]
        if count == 0 or self.tolerance * BETTER >= rounding:
            rounding = 0.0                      # nobody is determined who was not before
        if self.choose(w, mean, <const long long*> array_data(births), rounding, leaves):
            stayers = self.forget_newcomers(w, V, joining, count, leaves + n)
            if stayers < count:
                count = stayers
                self.prepare_rows(V, joining, count)
                self.list_slots(slot, joining, count)
                mean = self.future_mean(w, V, count)
        size = n + count
        covariance = self.future_covariance(w, count)
        cdef double* U = <double*> array_data(mean)
        cdef double* S = <double*> array_data(covariance)
        kept = np.append(np.flatnonzero(gone[:n] == 0), np.arange(n, size))
        cdef const Py_ssize_t* stay = <const Py_ssize_t*> array_data(kept)
        n = len(kept)
        if n < size:
            first = int(np.argmax(gone))
            corner = self.bring_back(w, U, S, size, stay, n, first)
            slots = slots[kept]
            slot = <Py_ssize_t*> array_data(slots)
            self.factor.keep(stay, first, n, corner)        # nothing can fail any more
        self.factor.n = n
        self.become(U, S, size, n)
        self.inducing.become(slot, n)
        return 0

    cdef void prepare_rows(self, const double* V, const Py_ssize_t* joining, Py_ssize_t count) noexcept:
        """Rows of L of those that join, behind those in use: O(count n)."""
        cdef Py_ssize_t i, r, n = self.n
        for i in range(count):
            memcpy(self.factor.row(n + i), self.a + joining[i] * self.capacity, n * sizeof(double))
            for r in range(count):
                self.factor.row(n + i)[n + r] = V[r * CHECKPOINT + joining[i]] if r <= i else 0.0

    cdef void list_slots(self, Py_ssize_t* slots, const Py_ssize_t* joining, Py_ssize_t count) noexcept:
        """Slots of all points, with those that join."""
        cdef Py_ssize_t i
        memcpy(slots, self.inducing.order, self.n * sizeof(Py_ssize_t))
        for i in range(count):
            slots[self.n + i] = self.inducing.pending[joining[i]]

    cdef Py_ssize_t find_newcomers(self, PosteriorScratch w, double* V, Py_ssize_t* joining, double* rounding) except -1:
        """Who joins: pivoted Cholesky of what f at the points does not determine of the pending rows: O(CHECKPOINT^3).

        The one that is determined least comes first, and among those that are nearly the same, the earliest. V has a row
        for each of them, joining their numbers. A variance below 0 shows how large rounding is, which grows to ten times that.
        """
        cdef Py_ssize_t i, r, best, count = 0, room = self.capacity
        cdef double rest[CHECKPOINT]
        cdef double* R
        cdef bint any_new = False
        for i in range(CHECKPOINT):
            rest[i] = self.K[i * CHECKPOINT + i] - ok_dot(self.a + i * room, self.a + i * room, self.n)
            any_new |= rest[i] > fmax(self.tolerance, rounding[0]) * self.K[i * CHECKPOINT + i]
        if not any_new:
            return 0
        R = <double*> w.buffer(PRODUCTS, CHECKPOINT * CHECKPOINT * sizeof(double))
        coordinates = self.coordinates[:, :self.n]
        np.matmul(coordinates, coordinates.T, out=w.array(<char*> R, CHECKPOINT, CHECKPOINT, DOUBLE))
        with nogil:
            for i in range(CHECKPOINT):
                for r in range(i):
                    R[i * CHECKPOINT + r] = self.K[i * CHECKPOINT + r] - R[i * CHECKPOINT + r]
                    if self.K[i * CHECKPOINT + i] == 0.0 or self.K[r * CHECKPOINT + r] == 0.0:    # left out
                        R[i * CHECKPOINT + r] = 0.0
                    R[r * CHECKPOINT + i] = R[i * CHECKPOINT + r]
                R[i * CHECKPOINT + i] = rest[i]
            while count < CHECKPOINT:
                for i in range(CHECKPOINT):
                    if rest[i] < 0.0 and rest[i] > -INFINITY and self.K[i * CHECKPOINT + i] > 0.0:
                        rounding[0] = fmax(rounding[0], -10.0 * rest[i] / self.K[i * CHECKPOINT + i])
                best = least_determined(rest, self.K, fmax(self.tolerance, rounding[0]))
                if best < 0:
                    break
                joining[count] = best
                join(R, V, joining, count, sqrt(rest[best]))
                for i in range(CHECKPOINT):
                    rest[i] -= V[count * CHECKPOINT + i] * V[count * CHECKPOINT + i]
                count += 1
                for r in range(count):
                    rest[joining[r]] = -INFINITY
        return count

    cdef Py_ssize_t forget_newcomers(self, PosteriorScratch w, double* V, Py_ssize_t* joining, Py_ssize_t count,
                                     const unsigned char* gone) except -1:
        """Only those join that are not gone: V and joining become theirs; return how many. O(CHECKPOINT stayers^2)."""
        cdef const double* R = <const double*> w.buffer(PRODUCTS, CHECKPOINT * CHECKPOINT * sizeof(double))
        cdef Py_ssize_t i, r, best, stayers = 0
        cdef double square, least
        for i in range(count):
            if gone[i]:
                continue
            best = joining[i]
            least = V[i * CHECKPOINT + best]    # its root, given all of those before it and not only those that stay
            square = R[best * CHECKPOINT + best]
            for r in range(stayers):
                square -= V[r * CHECKPOINT + best] * V[r * CHECKPOINT + best]
            if i > stayers:
                joining[stayers] = best
                join(R, V, joining, stayers, sqrt(fmax(square, least * least)))
            stayers += 1
        return stayers

    cdef int choose(self, PosteriorScratch w, mean, const long long* births, double rounding, unsigned char* gone) except -1:
        """Mark which of the points of `mean` go, one after another; return how many.

        First those that f at all others determines: its variance given these, 1 / Q_ii with Q = K^-1, is `rounding`. Then, as
        long as there are more than the budget allows, each time the one without which the mean changes least: without point i
        it loses sum_y alpha_yi^2 / Q_ii, where alpha = L^-T U. Both follow each removal. Among those that lose nearly the same
        the oldest goes. Of Q there are only the diagonal and the columns of those that go.
        """
        cdef Py_ssize_t i, k, victim, size = mean.shape[1], joined = self.outputs.joined
        cdef Py_ssize_t over = max(0, size - self.most), most = over
        cdef double lowest
        if rounding > 0.0:
            most = min(size - 1, over + CHECKPOINT)
        if most == 0:
            return 0
        cdef double* Z = <double*> w.buffer(INVERSE, (size * size + (3 + joined + most) * size) * sizeof(double))
        cdef double* diagonal = Z + size * size
        cdef double* least = diagonal + size
        cdef double* loss = least + size
        cdef double* alpha = loss + size
        cdef double* V = alpha + joined * size
        with nogil:
            ok_invert_lower(self.factor.L, self.capacity, size, Z, size)
        if over:
            np.matmul(mean[:joined], w.array(<char*> Z, size, size, DOUBLE), out=w.array(<char*> alpha, joined, size, DOUBLE))
        with nogil:
            ok_column_squares(Z, size, diagonal)
            for i in range(size):
                least[i] = 1.0 / ok_dot(self.factor.row(i), self.factor.row(i), i + 1)
            for k in range(most):
                victim = most_determined(diagonal, least, gone, size, rounding) if rounding > 0.0 else -1
                if victim < 0:
                    if k >= over:
                        return k
                    ok_losses(alpha, joined, size, diagonal, loss)
                    lowest = 0.0
                    for i in range(size):
                        if not gone[i] and (victim < 0 or loss[i] < lowest):
                            victim, lowest = i, loss[i]
                    for i in range(size):
                        if not gone[i] and loss[i] <= (1.0 + NEAR) * lowest and births[i] < births[victim]:
                            victim = i
                ok_leave(Z, size, victim, V, k, diagonal, least, alpha, joined if over else 0)
                gone[victim] = 1
        return most

    cdef const double* bring_back(self, PosteriorScratch w, double* U, double* S, Py_ssize_t size, const Py_ssize_t* kept, Py_ssize_t n,
                                  Py_ssize_t first) except NULL:
        """n of `size` points stay, all before the first that goes: change U and S in place, return what L has from there on.

        With orthonormal columns of Q, L[kept] = L' Q^T, U' = Q^T U, S' = Q^T S Q. O(n^2) for each that goes.
        """
        cdef Py_ssize_t i, r, y, rest = size - first, stay = n - first, columns = stay + self.width
        cdef ok_reflections h
        h.n, h.more = stay, size - n
        h.heads = <double*> w.buffer(LEAVING, (ok_reflections_size(stay, h.more) + OK_REFLECTED * max(size, columns)
                                               + rest * (columns + size + stay) + stay * stay) * sizeof(double))
        h.tails = h.heads + stay
        h.meet = h.tails + stay * h.more
        h.work = h.meet + stay * OK_REFLECTED
        cdef double* X = h.work + OK_REFLECTED * max(size, columns)     # [L[kept]^T , U^T], a row for each coordinate
        cdef double* left = X + rest * columns                          # S
        cdef double* both = left + rest * size                          # (Q^T S)^T
        cdef double* corner = both + rest * stay
        cdef Py_ssize_t[::1] order = np.empty(rest, dtype=np.intp)      # coordinates, first those that stay
        with nogil:
            for i in range(stay):
                order[i] = kept[first + i]
            y = 0
            for i in range(first, size):
                if y < stay and order[y] == i:
                    y += 1
                else:
                    order[stay + i - first - y] = i
            for r in range(rest):
                for i in range(stay):
                    X[r * columns + i] = self.factor.row(kept[first + i])[order[r]] if order[r] <= kept[first + i] else 0.0
                for y in range(self.width):
                    X[r * columns + stay + y] = U[y * size + order[r]]
                memcpy(left + r * size, S + order[r] * size, size * sizeof(double))
            ok_find_reflections(&h, X, columns, columns)
            ok_reflect(&h, left, size, size)
            for r in range(rest):
                for i in range(stay):
                    both[r * stay + i] = left[i * size + order[r]]
            ok_reflect(&h, both, stay, stay)
            for i in range(stay):
                for y in range(self.width):
                    U[y * size + first + i] = X[i * columns + stay + y]
                for r in range(first):
                    S[(first + i) * size + r] = S[r * size + first + i] = left[i * size + r]
                for r in range(i + 1):
                    S[(first + i) * size + first + r] = S[(first + r) * size + first + i] = 0.5 * (both[i * stay + r] + both[r * stay + i])
                for r in range(stay):
                    corner[i * stay + r] = X[r * columns + i] if r <= i else 0.0
        return corner

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
                values = self.rows.slot_over_piece(w.piece, slot)
                for l in range(self.outputs.n):
                    ok_axpy(scratch.expansion[l * size + slot - start], values, scratch.totals + l * m, m)
        return 0

    cdef void evaluate_mean(self, PosteriorScratch w, Py_ssize_t i, double* out) noexcept nogil:
        cdef Py_ssize_t l, size = self.dictionary.size()
        if w.totals != NULL:
            for l in range(self.outputs.n):
                out[l] = w.totals[l * w.piece.rows + i]
        elif size:
            ok_times_rows(w.expansion, size, self.outputs.n, size, self.rows.values(w.piece, i), out)
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
                self.rows.open(w.piece, first + j, 1 if self.takes_objects else m, False, False)
            i = 0 if self.takes_objects else j
            own[j] = w.piece.own[i]
            if self.dictionary.size():
                values = self.rows.values(w.piece, i)
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
        self.rows.restore()
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
        assert (self.dictionary.holders.array[0, roles != 0] > 0).all() and self.n <= self.most
        for slot in np.flatnonzero(roles):
            role = roles[slot]
            assert slot == (self.inducing.order[role - 1] if role > 0 else self.inducing.pending[-1 - role])


cdef void join(const double* R, double* V, const Py_ssize_t* joining, Py_ssize_t count, double root) noexcept nogil:
    """The last of those that join, behind `count` others, makes the next row of V; root is what they do not determine."""
    cdef Py_ssize_t r, last = joining[count]
    ok_eliminate(R + last * CHECKPOINT, last, root, V, CHECKPOINT, count, CHECKPOINT)
    for r in range(count):
        V[count * CHECKPOINT + joining[r]] = 0.0
    V[count * CHECKPOINT + last] = root


cdef Py_ssize_t most_determined(const double* precision, const double* least, const unsigned char* gone, Py_ssize_t n,
                                double rounding) noexcept nogil:
    """The point whose precision given f at all others is most times its least, if more than 1 / rounding; -1 for none."""
    cdef Py_ssize_t i, most = -1
    for i in range(n):
        if not gone[i] and rounding * precision[i] > least[i] and (
                most < 0 or precision[i] * least[most] > precision[most] * least[i]):
            most = i
    return most


cdef Py_ssize_t least_determined(const double* rest, const double* K, double share) noexcept nogil:
    """The example with the largest rest of those with more than this share of K_ii, of equals the earliest; -1 for none."""
    cdef Py_ssize_t i, best = -1
    cdef double largest = 0.0
    for i in range(CHECKPOINT):
        if rest[i] > share * K[i * CHECKPOINT + i] and rest[i] > largest:
            largest = rest[i]
    for i in range(CHECKPOINT):
        if rest[i] > share * K[i * CHECKPOINT + i] and rest[i] >= (1.0 - NEAR) * largest:
            best = i
            break
    return best
