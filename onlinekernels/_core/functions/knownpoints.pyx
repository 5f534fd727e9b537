"""A posterior on points: f is known at some points, f_D = L u, which come and go.

At a place of the stream those examples join that f at the points does not determine, and if there are more points than a
budget allows, those leave that the mean of f would miss least.  With a small tolerance, points leave too that the others have
come to determine: otherwise L is so near to singular that coordinates are nothing but rounding.
"""
import numpy as np
from libc.math cimport INFINITY, fmax, sqrt
from libc.string cimport memcpy, memmove, memset
from onlinekernels._core.arrays cimport array_data
from onlinekernels._core.arrays import check_array
from onlinekernels._core.functions.coefficients import UNBOUNDED
from onlinekernels._core.points.dictionary cimport Dictionary, Tenant
from onlinekernels._core.points.kernelrows cimport KernelRows
from onlinekernels._core.functions.outputs cimport Outputs
from onlinekernels._core.functions.posterior cimport (INVERSE, JOINING, PLACE, PRODUCTS, TOTALS,
                                                          Posterior, PosteriorScratch, room_for)
from onlinekernels._core.functions.posterior import solve_rows, solve_transposed
from onlinekernels._core.formulas.triangles cimport ok_invert_lower, ok_solve_rows, ok_times_rows
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
cdef long long STAYS = 1 << 40  # marks a place while others are given up


cdef class Residents(Tenant):
    """Which slots of a dictionary the points of a posterior, and the examples that wait, are in.

    Parameters
    ----------
    dictionary : Dictionary
    most : int
        Slots at the most.
    """

    def __init__(self, Dictionary dictionary, long long most):
        self.dictionary, self.most = dictionary, most
        self.places, self.orders = dictionary.new_table(1, np.int64), dictionary.new_table(1, np.intp)
        dictionary.add_tenant(self)
        self.moved()

    cdef void moved(self) noexcept:
        """Read where everybody is from the table that has moved with the slots."""
        cdef Py_ssize_t slot
        cdef const long long* places = <const long long*> self.places.data
        self.order = <Py_ssize_t*> self.orders.data
        for slot in range(self.dictionary.capacity):
            if places[slot] > 0:
                self.order[places[slot] - 1] = slot
            elif places[slot] < 0:
                self.queue[-1 - places[slot]] = slot

    cdef void settle_down(self, const Py_ssize_t* slots, Py_ssize_t n) noexcept:
        """These slots are the points now, in the order of their coordinates; whoever else was here goes, and nobody waits."""
        cdef long long* places = <long long*> self.places.data
        cdef Py_ssize_t slot, i
        for i in range(n):
            places[slots[i]] = STAYS + i + 1
        for slot in range(self.dictionary.stop - 1, self.dictionary.start - 1, -1):
            if places[slot] >= STAYS:
                places[slot] -= STAYS
            elif places[slot] != 0:
                places[slot] = 0
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
        Points that stay at a place; None for all.
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
        self.residents = Residents(self.dictionary, UNBOUNDED if budget is None else budget + 2 * PLACE)
        self.tolerance = tolerance
        self.make_room(0)

    cdef int make_room(self, Py_ssize_t n) except -1:
        """Room for so many points, in all arrays or in none."""
        cdef Py_ssize_t room = self.capacity if n <= self.capacity else room_for(max(n, 2 * self.n))
        cdef double* L
        if self.factor is not None and len(self.factor) == room:
            return 0
        factor = np.zeros((room, room))
        if self.factor is not None:
            factor[:self.n, :self.n] = self.factor[:self.n, :self.n]
        L = <double*> array_data(factor)
        if room != self.capacity:
            self.set_room(room, self.width)
        self.factor, self.L = factor, L         # nothing can fail any more
        return 0

    cdef int attach(self, Scratch w, examples) except -1:
        return self.rows.attach(w.piece, examples)

    cdef Py_ssize_t piece_rows(self):
        return 1 if self.takes_objects else PLACE - self.waiting % PLACE

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
        cdef Py_ssize_t* order = self.residents.order
        cdef Py_ssize_t* queue = self.residents.queue
        cdef const double* values
        cdef double* a
        cdef double* K
        for i in range(m):
            s = self.waiting + i
            a, K = self.a + s * room, self.K + s * PLACE
            if self.dictionary.size():
                values = self.rows.values(w.piece, i)
                for r in range(n):
                    a[r] = values[order[r] - start]
                for r in range(self.waiting):
                    K[r] = values[queue[r] - start]
            values = self.rows.own_values(w.piece, i)
            for r in range(i):
                K[self.waiting + r] = values[r]
            K[s] = w.piece.own[i]
        ok_solve_rows(self.L, room, n, self.a + self.waiting * room, room, m)

    cdef bint point_is_finite(self, Scratch w, Py_ssize_t i) noexcept nogil:
        return self.rows.point_is_finite(w.piece, i)

    cdef void admit(self, PosteriorScratch w, Py_ssize_t i) noexcept nogil:
        cdef Py_ssize_t slot
        self.born += 1
        slot = self.dictionary.admit(w.piece, i, self.born)
        self.rows.keep_facts(w.piece, i, slot)
        self.dictionary.hold(slot)
        self.residents.queue[self.waiting] = slot
        (<long long*> self.residents.places.data)[slot] = -1 - self.waiting

    cdef int close(self, Scratch w) except -1:
        self.rows.close(w.piece)
        return Posterior.close(self, w)

    cdef int tidy(self) except -1:
        self.dictionary.tidy()
        return 0

    # ---- Places -------------------------------------------------------------------------------

    cdef int conclude(self, PosteriorScratch w) except -1:
        """Take in those that wait; let join who is new, and go who is least missed."""
        cdef Py_ssize_t i, r, first = 0, n = self.n, count, size, room
        cdef Py_ssize_t joining[PLACE]
        cdef double rounding = DETERMINED
        cdef double* V = <double*> w.buffer(JOINING, PLACE * PLACE * sizeof(double))
        cdef const Py_ssize_t* stay = NULL
        cdef const double* corner_data = NULL
        count = self.find_newcomers(w, V, joining, &rounding)
        size = n + count
        self.make_room(size)
        room = self.capacity
        slots = np.empty(size, dtype=np.intp)
        cdef Py_ssize_t* slot = <Py_ssize_t*> array_data(slots)
        memcpy(slot, self.residents.order, n * sizeof(Py_ssize_t))
        for i in range(count):                  # rows of L that are not in use yet
            slot[n + i] = self.residents.queue[joining[i]]
            memcpy(self.L + (n + i) * room, self.a + joining[i] * room, n * sizeof(double))
            for r in range(count):
                self.L[(n + i) * room + n + r] = V[r * PLACE + joining[i]] if r <= i else 0.0
        mean, covariance = self.take_in(w, V, count)
        gone = np.zeros(size, dtype=np.uint8)
        births = self.dictionary.birthdays.array[0, slots]
        if count == 0 or self.tolerance * BETTER >= rounding:
            rounding = 0.0                      # nobody is determined who was not before
        if self.choose(w, mean, <const long long*> array_data(births), rounding, <unsigned char*> array_data(gone)):
            kept, first = np.flatnonzero(gone == 0), int(np.argmax(gone))
            slots, corner = slots[kept], self.keep(mean, covariance, kept, first)
            slot, stay = <Py_ssize_t*> array_data(slots), <const Py_ssize_t*> array_data(kept)
            corner_data, n = <const double*> array_data(corner), len(kept)
        else:
            n = size
        cdef const double* U = <const double*> array_data(mean)
        cdef const double* S = <const double*> array_data(covariance)
        if n < size:                            # nothing can fail any more
            self.move_factor(stay, first, n, corner_data)
        self.become(U, S, size, n)
        self.residents.settle_down(slot, n)
        return 0

    cdef Py_ssize_t find_newcomers(self, PosteriorScratch w, double* V, Py_ssize_t* joining, double* rounding) except -1:
        """Who joins: pivoted Cholesky of what f at the points does not determine of the waiting examples.

        The one that is determined least comes first, and among those that are nearly the same, the earliest. V has a row
        for each of them, joining their numbers. A variance below 0 shows how large rounding is, which grows to ten times that.
        """
        cdef Py_ssize_t i, r, best, count = 0, room = self.capacity
        cdef double rest[PLACE]
        cdef double largest
        cdef double* R
        cdef bint any_new = False
        for i in range(PLACE):
            rest[i] = self.K[i * PLACE + i] - ok_dot(self.a + i * room, self.a + i * room, self.n)
            any_new |= rest[i] > fmax(self.tolerance, rounding[0]) * self.K[i * PLACE + i]
        if not any_new:
            return 0
        R = <double*> w.buffer(PRODUCTS, PLACE * PLACE * sizeof(double))
        coordinates = self.coordinates[:, :self.n]
        np.matmul(coordinates, coordinates.T, out=w.array(<char*> R, PLACE, PLACE, DOUBLE))
        with nogil:
            for i in range(PLACE):
                for r in range(i + 1):
                    R[i * PLACE + r] = self.K[i * PLACE + r] - R[i * PLACE + r]
                    if self.K[i * PLACE + i] == 0.0 or self.K[r * PLACE + r] == 0.0:    # left out
                        R[i * PLACE + r] = 0.0
                    R[r * PLACE + i] = R[i * PLACE + r]
            while count < PLACE:
                for i in range(PLACE):
                    if rest[i] < 0.0 and rest[i] > -INFINITY and self.K[i * PLACE + i] > 0.0:
                        rounding[0] = fmax(rounding[0], -10.0 * rest[i] / self.K[i * PLACE + i])
                best = least_determined(rest, self.K, fmax(self.tolerance, rounding[0]))
                if best < 0:
                    break
                memcpy(V + count * PLACE, R + best * PLACE, PLACE * sizeof(double))
                for r in range(count):
                    ok_axpy(-V[r * PLACE + best], V + r * PLACE, V + count * PLACE, PLACE)
                largest = sqrt(rest[best])
                joining[count] = best
                for i in range(PLACE):
                    V[count * PLACE + i] /= largest
                for r in range(count):
                    V[count * PLACE + joining[r]] = 0.0
                V[count * PLACE + best] = largest
                for i in range(PLACE):
                    rest[i] -= V[count * PLACE + i] * V[count * PLACE + i]
                count += 1
                for r in range(count):
                    rest[joining[r]] = -INFINITY
        return count

    cdef int choose(self, PosteriorScratch w, mean, const long long* births, double rounding, unsigned char* gone) except -1:
        """Mark which of the points of `mean` go, one after another; return how many.

        First those that f at all others determines: its variance given these, 1 / Q_ii with Q = K^-1, is `rounding`. Then, as
        long as there are more than the budget allows, each time the one without which the mean changes least: without point i
        it loses sum_y alpha_yi^2 / Q_ii, where alpha = L^-T U. Both follow each removal. Among those that lose nearly the same
        the oldest goes.
        """
        cdef Py_ssize_t i, k, r, y, victim, size = mean.shape[1], joined = self.outputs.joined
        cdef Py_ssize_t over = max(0, size - self.most), most = over
        cdef double root, lowest
        if rounding > 0.0:
            most = min(size - 1, over + PLACE)
        if most == 0:
            return 0
        cdef double* Z = <double*> w.buffer(INVERSE, (size * size + (3 + joined + most) * size) * sizeof(double))
        cdef double* Q = <double*> w.buffer(PRODUCTS, size * size * sizeof(double)) if over else NULL
        cdef double* diagonal = Z + size * size
        cdef double* least = diagonal + size
        cdef double* loss = least + size
        cdef double* alpha = loss + size
        cdef double* V = alpha + joined * size
        with nogil:
            ok_invert_lower(self.L, self.capacity, size, Z, size)
        if over:
            inverse = w.array(<char*> Z, size, size, DOUBLE)
            np.matmul(inverse.T, inverse, out=w.array(<char*> Q, size, size, DOUBLE))
            np.matmul(mean[:joined], inverse, out=w.array(<char*> alpha, joined, size, DOUBLE))
        with nogil:
            for i in range(size):
                diagonal[i] = Q[i * size + i] if over else column_square(Z, size, i)
                least[i] = 1.0 / ok_dot(self.L + i * self.capacity, self.L + i * self.capacity, i + 1)
            for k in range(most):
                victim = most_determined(diagonal, least, gone, size, rounding)
                if victim < 0:
                    if k >= over:
                        return k
                    memset(loss, 0, size * sizeof(double))
                    for y in range(joined):
                        for i in range(size):
                            loss[i] += alpha[y * size + i] * alpha[y * size + i]
                    lowest = 0.0
                    for i in range(size):
                        loss[i] /= diagonal[i]
                        if not gone[i] and (victim < 0 or loss[i] < lowest):
                            victim, lowest = i, loss[i]
                    for i in range(size):
                        if not gone[i] and loss[i] <= (1.0 + NEAR) * lowest and births[i] < births[victim]:
                            victim = i
                if over:
                    memcpy(V + k * size, Q + victim * size, size * sizeof(double))
                else:
                    memset(V + k * size, 0, size * sizeof(double))
                    for r in range(victim, size):
                        ok_axpy(Z[r * size + victim], Z + r * size, V + k * size, r + 1)
                for r in range(k):
                    ok_axpy(-V[r * size + victim], V + r * size, V + k * size, size)
                root = sqrt(diagonal[victim])
                for i in range(size):
                    V[k * size + i] /= root
                    diagonal[i] -= V[k * size + i] * V[k * size + i]
                    if diagonal[i] < least[i]:
                        diagonal[i] = least[i]
                for y in range(joined if over else 0):
                    ok_axpy(-alpha[y * size + victim] / root, V + k * size, alpha + y * size, size)
                gone[victim] = 1
        return most

    cdef keep(self, mean, covariance, kept, Py_ssize_t first):
        """Only some points stay, all before the first that goes: change U and S in place, return what L has from there on.

        One thin QR, L[kept]^T = Q L'^T, U' = Q^T U, S' = Q^T S Q.
        """
        cdef Py_ssize_t size = len(kept), n = mean.shape[1]
        rotation, triangle = np.linalg.qr(self.factor[kept[first:], first:n].T)
        signs = np.where(np.diag(triangle) < 0.0, -1.0, 1.0)
        rotation *= signs
        triangle *= signs[:, None]
        inner = rotation.T @ covariance[first:, first:] @ rotation
        across = rotation.T @ covariance[first:, :first]
        mean[:, first:size] = mean[:, first:] @ rotation
        covariance[first:size, :first], covariance[:first, first:size] = across, across.T
        covariance[first:size, first:size] = 0.5 * (inner + inner.T)
        return np.ascontiguousarray(triangle.T)

    cdef void move_factor(self, const Py_ssize_t* kept, Py_ssize_t first, Py_ssize_t n, const double* corner) noexcept nogil:
        """Rows of L become those that are kept, with a new corner from row and column `first` on."""
        cdef Py_ssize_t i, size = n - first, room = self.capacity
        for i in range(first, n):
            memmove(self.L + i * room, self.L + kept[i] * room, first * sizeof(double))
            memcpy(self.L + i * room + first, corner + (i - first) * size, size * sizeof(double))

    # ---- Predicting ---------------------------------------------------------------------------

    def expanded(self):
        """Coefficients of the mean over the slots in use, a row for each output."""
        cdef Py_ssize_t n = self.n, p = self.waiting, start = self.dictionary.start, r
        points, waiting = self.mean_now()
        points = np.ascontiguousarray(points)
        solve_transposed(self.factor, points)
        rows = np.zeros((self.outputs.n, self.dictionary.stop - start))
        for r in range(n):
            rows[:, self.residents.order[r] - start] = points[r, :self.outputs.n]
        for r in range(p):
            rows[:, self.residents.queue[r] - start] = waiting[r, :self.outputs.n]
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
        """(k(x, x), a(x), kernel values with those that wait) of m rows of the source of a call."""
        cdef Py_ssize_t i, j, r, n = self.n, p = self.waiting, start = self.dictionary.start
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
                    a[j, r] = values[self.residents.order[r] - start]
                for r in range(p):
                    shared[j, r] = values[self.residents.queue[r] - start]
        solve_rows(self.factor, a_array)
        return own_array, a_array, shared_array

    # ---- For Python ---------------------------------------------------------------------------

    def slots(self):
        """Slots of points and of waiting examples, oldest first."""
        slots = np.flatnonzero(self.residents.places.array[0] != 0)
        return slots[np.argsort(self.dictionary.birthdays.array[0, slots], kind="stable")]

    def points(self):
        """Points, and the examples that wait, oldest first."""
        return self.dictionary.points_at(self.slots())

    def pairs(self):
        """There are no pairs of labels."""
        return None

    def coefficients(self, int channel):
        """Coefficients of the mean, (outputs, terms), oldest first."""
        return self.expanded()[:, self.slots() - self.dictionary.start]

    def state(self):
        slots = self.dictionary.saved_slots()
        return {**Posterior.state(self), **self.dictionary.state(slots), "factor": np.tril(self.factor[:self.n, :self.n]),
                "birthdays": self.dictionary.birthdays.array[0, slots], "places": self.residents.places.array[0, slots]}

    def check_state(self, state):
        """ValueError unless a state fits."""
        n, p = self.check_known(state)
        if n > self.most:
            raise ValueError(f"{n} points are more than the budget of {self.most}")
        factor = check_array(state["factor"], "factor", np.float64, (n, n))
        if not (np.diag(factor) > 0.0).all() or np.triu(factor, 1).any():
            raise ValueError("factor is not lower triangular with a positive diagonal")
        self.dictionary.check_state(state, self.dictionary.check_birthdays(state, state["t"]))
        places = check_array(state["places"], "places", np.int64, (len(state["birthdays"]),))
        if sorted(places.tolist()) != [*range(-p, 0), *range(1, n + 1)]:
            raise ValueError("the places are not those of all coordinates and waiting examples")

    def restore(self, state):
        """Continue from a state that has been checked."""
        cdef Py_ssize_t slot, n = len(state["factor"])
        self.dictionary.restore(state)
        self.rows.restore()
        self.residents.places.array[0] = state["places"]
        for slot in range(self.dictionary.capacity):
            self.dictionary.hold(slot)
        self.residents.moved()
        self.restore_known(state)
        self.factor = None
        self.make_room(n)
        self.factor[:n, :n] = state["factor"]
        self.born = state["t"]

    def _check(self):
        Posterior._check(self)
        self.dictionary._check()
        assert (np.diag(self.factor)[:self.n] > 0.0).all()
        places = self.residents.places.array[0]
        assert sorted(places[places != 0].tolist()) == [*range(-self.waiting, 0), *range(1, self.n + 1)]
        assert (self.dictionary.holders.array[0, places != 0] > 0).all() and self.n <= self.most
        for slot in np.flatnonzero(places):
            where = places[slot]
            assert slot == (self.residents.order[where - 1] if where > 0 else self.residents.queue[-1 - where])


cdef double column_square(const double* Z, Py_ssize_t n, Py_ssize_t i) noexcept nogil:
    """The square of a column of a lower triangular matrix."""
    cdef Py_ssize_t r
    cdef double square = 0.0
    for r in range(i, n):
        square += Z[r * n + i] * Z[r * n + i]
    return square


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
    for i in range(PLACE):
        if rest[i] > share * K[i * PLACE + i] and rest[i] > largest:
            largest = rest[i]
    for i in range(PLACE):
        if rest[i] > share * K[i * PLACE + i] and rest[i] >= (1.0 - NEAR) * largest:
            best = i
            break
    return best
