"""Posteriors: what a second-order learner knows of f, and how well.

f is known through coordinates u ~ N(U, S), a Gaussian that was N(0, I) before the first example: f(x) = <a(x), u> and a rest
that nothing is known about.  On points D that is whitened, f_D = L u with K_DD = L L^T, so that a(x) = L^-1 k(D, x); on
features, a(x) are the features.  No inverse is kept, and nothing is added to a diagonal.

Examples wait until there are `PLACE` of them, counted by t.  A waiting example is a row of the factor L_C of

    C_ts = lam^(|t-s|/2) [ k(x_t, x_s) + lam^min(t,s) a_t^T (S - I) a_s ] + noise [t = s]

so predictions, which are innovations of that factor, are those of one example at a time, whatever the chunks.  At a place U and
S take all of them in at once, and points come and go.
"""
import numpy as np
from libc.math cimport sqrt
from libc.string cimport memset
from onlinekernels._core.arrays cimport array_data
from onlinekernels._core.arrays import aligned_empty, check_array
from onlinekernels._core.coefficients import UNBOUNDED
from onlinekernels._core.dictionary cimport Dictionary, Tenant
from onlinekernels._core.function cimport Function
from onlinekernels._core.kernelrows cimport KernelRows
from onlinekernels._core.outputs cimport Outputs
from onlinekernels._core.sparse cimport Rows
from onlinekernels._core.triangles cimport (ok_invert_lower, ok_solve_block, ok_solve_rows, ok_solve_transposed,
                                            ok_times_rows)
from onlinekernels._core.vecmath cimport ok_axpy, ok_dot
from onlinekernels._core.workspace cimport CROSS, FEATURES, MEANS, OWN, TOTALS, Workspace

cdef double NEAR = 1e-6         # relative: what is closer than that is the same, and the earlier one goes first


cdef class Posterior(Function):
    """What is known of f.

    Parameters
    ----------
    n_features, dtype, outputs
        As for `Function`.
    memory : float
        f fades to sqrt(memory) f with every example, and the prior fills up what is lost.
    classes : bool
        Outputs are labels: y is +1 for one and -1 for all others.

    A kind implements

    `open_rows(workspace, first, m, learning, turned)`
        get ready for some rows: k(x, x) into w.own;
    `read(workspace, m)`
        coordinates and kernel values of the next m waiting examples;
    `admit(workspace, i)`
        example i waits from now on;
    `conclude()`
        take in the examples that wait;

    and for Python `coordinates_of`, `coefficients`, `state`, `check_state` and `restore`.
    """

    def __init__(self, Py_ssize_t n_features, dtype, Outputs outputs, double memory, bint classes):
        cdef Py_ssize_t k
        Function.__init__(self, n_features, dtype, 1, outputs)
        self.memory, self.classes = memory, classes
        for k in range(PLACE + 2):
            self.fade[k] = memory ** (0.5 * k)
        self.gram, self.root = np.zeros((PLACE, PLACE)), np.zeros((PLACE, PLACE))
        self.K, self.LC = <double*> array_data(self.gram), <double*> array_data(self.root)
        self.set_room(0, self.width)

    cdef set_room(self, Py_ssize_t capacity, Py_ssize_t columns):
        """Room for so many coordinates and outputs; what there is stays."""
        n, p, double = self.n, self.waiting, np.dtype(np.float64)
        # Rows of an odd number of cache lines, so that columns spread over the whole cache
        room = 8 * (((capacity + 7) // 8) | 1) if capacity else 0
        parts = {}
        for name, rows, wide in (("mean", room, columns), ("covariance", room, room), ("coordinates", PLACE, room),
                                 ("news", PLACE, room), ("errors", PLACE, columns)):
            parts[name] = aligned_empty((rows, wide), double)
            parts[name][:] = 0.0
        if self.mean is not None:
            parts["covariance"][:n, :n] = self.covariance[:n, :n]
            for name in ("coordinates", "news"):
                parts[name][:p, :n] = getattr(self, name)[:p, :n]
            for name, k in (("mean", n), ("errors", p)):
                old = getattr(self, name)
                parts[name][:k, :old.shape[1]] = old[:k]
        self.mean, self.covariance, self.errors = parts["mean"], parts["covariance"], parts["errors"]
        self.coordinates, self.news = parts["coordinates"], parts["news"]
        self.U, self.S, self.E = (<double*> array_data(self.mean), <double*> array_data(self.covariance),
                                  <double*> array_data(self.errors))
        self.a, self.b = <double*> array_data(self.coordinates), <double*> array_data(self.news)
        self.capacity, self.columns = room, columns

    # ---- A piece ------------------------------------------------------------------------------

    cdef Py_ssize_t piece_rows(self):
        """Up to the next place."""
        return PLACE - self.waiting

    cdef int open_rows(self, Workspace w, Py_ssize_t first, Py_ssize_t m, bint learning, bint turned) except -1:
        raise NotImplementedError

    cdef int read(self, Workspace w, Py_ssize_t m) except -1:
        raise NotImplementedError

    cdef int open(self, Workspace w, Py_ssize_t first, Py_ssize_t m, bint learning, int by_slots) except -1:
        self.open_rows(w, first, m, learning, by_slots >= 0)
        w.coefficients = NULL
        if learning:
            self.expansion = None
            w.cross = <double*> w.buffer(CROSS, m * PLACE * sizeof(double))
            w.means = <double*> w.buffer(MEANS, m * self.columns * sizeof(double))
            self.read(w, m)
            return self.relate(w, m)
        expansion = self.expansion              # several threads may predict, and replace it by the same
        if expansion is None:
            self.expansion = expansion = np.ascontiguousarray(self.expanded())
        w.kept_too = expansion
        w.coefficients = <const double*> array_data(expansion)
        return 0

    cdef int relate(self, Workspace w, Py_ssize_t m) except -1:
        """(S - I) a of m new rows, its products with all that wait, and what U says of them."""
        cdef Py_ssize_t j, r, s = self.waiting, n = self.n, room = self.capacity
        cdef double* a = self.a + s * room
        cdef double* b = self.b + s * room
        if m > 1:
            double = np.dtype(np.float64)
            coordinates, news = self.coordinates[s:s + m, :n], self.news[s:s + m, :n]
            with np.errstate(over="ignore", invalid="ignore"):      # what overflows is reported, with its row
                np.matmul(coordinates, self.covariance[:n, :n], out=news)
                np.subtract(news, coordinates, out=news)
                np.matmul(coordinates, self.news[:s + m, :n].T,
                          out=w.array(<char*> w.cross, m, PLACE, double)[:, :s + m])
                np.matmul(coordinates, self.mean[:n], out=w.array(<char*> w.means, m, self.columns, double))
            return 0
        with nogil:
            ok_times_rows(self.S, room, n, n, a, b)
            for j in range(n):
                b[j] -= a[j]
            ok_times_rows(self.b, room, s + 1, n, a, w.cross)
            memset(w.means, 0, self.columns * sizeof(double))
            for j in range(n):
                ok_axpy(a[j], self.U + j * self.columns, w.means, self.columns)
        return 0

    # ---- Evaluate, absorb ---------------------------------------------------------------------

    cdef void evaluate(self, Workspace w, Py_ssize_t i, int last, double* out) noexcept nogil:
        """The mean, and while learning the variance too: the next row of L_C, up to its diagonal."""
        cdef Py_ssize_t r, c, s = self.waiting
        cdef const double* cross = w.cross + i * PLACE
        cdef const double* K = self.K + s * PLACE
        cdef double* row = self.LC + s * PLACE
        if w.coefficients != NULL:
            self.evaluate_mean(w, i, out)
            return
        for r in range(s):
            row[r] = 0.0
            if self.K[r * PLACE + r] != 0.0:
                row[r] = self.fade[s - r] * (K[r] + self.fade[r + 1] * self.fade[r + 1] * cross[r])
        ok_solve_rows(self.LC, PLACE, s, row, PLACE, 1)
        w.row = i
        w.variance = K[s] + self.fade[s + 1] * self.fade[s + 1] * cross[s] - ok_dot(row, row, s)
        if w.variance < 0.0:
            w.variance = 0.0
        for c in range(self.columns):
            out[c] = self.fade[s + 1] * w.means[i * self.columns + c]
        for r in range(s):
            ok_axpy(row[r], self.E + r * self.columns, out, self.columns)

    cdef void absorb(self, Workspace w) noexcept nogil:
        """The example that was evaluated waits from now on: its innovations over w.deviation are in w.term.alpha."""
        cdef Py_ssize_t c, s = self.waiting
        self.admit(w, w.row)
        self.LC[s * PLACE + s] = w.deviation
        for c in range(self.columns):
            self.E[s * self.columns + c] = w.term.alpha[c]
        if w.view.weight == 0.0:                # time passes, and that is all
            memset(self.a + s * self.capacity, 0, self.n * sizeof(double))
            memset(self.b + s * self.capacity, 0, self.n * sizeof(double))
            memset(self.K + s * PLACE, 0, PLACE * sizeof(double))
            memset(self.LC + s * PLACE, 0, PLACE * sizeof(double))
            memset(self.E + s * self.columns, 0, self.columns * sizeof(double))
            self.LC[s * PLACE + s] = 1.0
        self.waiting += 1

    cdef void admit(self, Workspace w, Py_ssize_t i) noexcept nogil:
        pass

    cdef int close(self, Workspace w) except -1:
        return self.conclude() if self.waiting == PLACE else 0

    cdef int conclude(self) except -1:
        raise NotImplementedError

    def taken_in(self, V):
        """(U, S) after the examples that wait; V: what they have in common with the points that join."""
        n, j = self.n, V.shape[1]
        t = np.arange(1, PLACE + 1)
        W = np.empty((PLACE, n + j))
        W[:, :n] = self.memory ** t[:, None] * self.news[:, :n] + self.coordinates[:, :n]
        W[:, n:] = V
        W *= self.memory ** (0.5 * (PLACE - t))[:, None]
        solve_block(self.root, W)
        mean = np.zeros((n + j, self.columns))
        mean[:n] = self.memory ** (0.5 * PLACE) * self.mean[:n]
        mean += W.T @ self.errors
        covariance = np.zeros((n + j, n + j))
        covariance[:n, :n] = self.memory ** PLACE * self.covariance[:n, :n]
        diagonal = covariance.reshape(-1)[::n + j + 1]
        diagonal[:n] += 1.0 - self.memory ** PLACE
        diagonal[n:] = 1.0
        covariance -= W.T @ W
        return mean, covariance

    cdef set_known(self, mean, covariance):
        """U and S, for as many coordinates as they have; nobody waits."""
        cdef Py_ssize_t n = len(mean)
        if n > self.capacity:
            self.waiting = 0
            self.set_room(max(n, 2 * self.n), self.columns)
        self.mean[:n], self.covariance[:n, :n] = mean, covariance
        self.n, self.waiting = n, 0

    # ---- Predicting ---------------------------------------------------------------------------

    def mean_now(self):
        """(coordinates, coefficients): the mean is <a(x), coordinates> + sum_s coefficients_s k(x_s, x) over those that wait.

        It is that of the next example, so faded by one more step.
        """
        n, p = self.n, self.waiting
        errors = self.errors[:p].copy()
        solve_transposed(self.root, errors)
        s = np.arange(1, p + 1)
        coefficients = self.memory ** (0.5 * (p + 1 - s))[:, None] * errors
        coordinates = self.memory ** (0.5 * (p + 1)) * self.mean[:n]
        coordinates += self.news[:p, :n].T @ (self.memory ** s[:, None] * coefficients)
        return coordinates, coefficients

    def uncertainty(self, examples, bint together=False):
        """Variance of f at some examples; with `together`, all that their covariance has beside k(x, z) as (left, right).

        The covariance is k(x, z) + left(x) . right(z).
        """
        cdef Workspace w = Workspace()
        cdef Py_ssize_t first, m, n = self.n, p = self.waiting, total = len(examples)
        s = np.arange(1, p + 1)
        late, faded = self.memory ** (p + 1), self.memory ** (0.5 * (p + 1 - s))
        variance, lefts, rights = np.empty(total), [], []
        self.make_ready(w)
        self.attach(w, examples)
        for first in range(0, total, PLACE):
            m = min(PLACE, total - first)
            own, a, shared = self.coordinates_of(w, first, m)
            b = a @ self.covariance[:n, :n] - a
            c = faded * (shared + self.memory ** s * (a @ self.news[:p, :n].T))
            c[:, np.diag(self.gram)[:p] == 0.0] = 0.0
            c = np.ascontiguousarray(c)
            solve_rows(self.root, c)
            variance[first:first + m] = own + late * np.sum(a * b, axis=1) - np.sum(c * c, axis=1)
            if together:
                lefts.append(np.hstack([late * a, -c]))
                rights.append(np.hstack([b, c]))
        return (np.vstack(lefts), np.vstack(rights)) if together else np.maximum(variance, 0.0)

    cdef void evaluate_mean(self, Workspace w, Py_ssize_t i, double* out) noexcept nogil:
        pass

    # ---- For Python ---------------------------------------------------------------------------

    def widen(self, Py_ssize_t width):
        self.expansion = None
        self.set_room(self.capacity, width)

    def copy_last(self, Py_ssize_t known):
        """Outputs behind those that are known are what the last of these is."""
        self.expansion = None
        for array in (self.mean, self.errors):
            array[:, known:] = array[:, known - 1:known]

    def begin_from(self, *function):
        """A posterior is more than a function."""
        raise ValueError("KRLS cannot start from the function of another model: it would not know how sure that is. "
                         "Copy or load the model to go on from it.")

    def state(self):
        """Named numbers and arrays; no scratch."""
        n, p, kept = self.n, self.waiting, self.outputs.kept()
        return {**self.frame_state(), "mean": self.mean[:n, :kept].copy(), "covariance": self.covariance[:n, :n].copy(),
                "waiting_coordinates": self.coordinates[:p, :n].copy(), "waiting_news": self.news[:p, :n].copy(),
                "waiting_gram": np.tril(self.gram[:p, :p]), "waiting_root": np.tril(self.root[:p, :p]),
                "waiting_errors": self.errors[:p, :kept].copy()}

    def check_known(self, state):
        """(coordinates, waiting examples) of a state; ValueError unless U, S and the waiting examples fit."""
        self.check_frame(state)
        labels = state["labels"]
        n, p = len(state["mean"]), len(state["waiting_root"])
        if p >= PLACE:
            raise ValueError(f"{p} examples wait, and {PLACE} would be a place")
        for name, shape in (("mean", (n, labels)), ("covariance", (n, n)), ("waiting_coordinates", (p, n)),
                            ("waiting_news", (p, n)), ("waiting_gram", (p, p)), ("waiting_root", (p, p)), ("waiting_errors", (p, labels))):
            check_array(state[name], name, np.float64, shape)
        check_covariance(state["covariance"])
        if not (np.diag(state["waiting_root"]) > 0.0).all() or np.triu(state["waiting_root"], 1).any():
            raise ValueError("waiting_root is not a factor")
        if (np.diag(state["waiting_gram"]) < 0.0).any() or np.triu(state["waiting_gram"], 1).any():
            raise ValueError("waiting_gram is not lower triangular, or has a negative square")
        return n, p

    def restore_known(self, state):
        """Take over U, S and the waiting examples, which have been checked."""
        cdef Py_ssize_t n = len(state["mean"]), p = len(state["waiting_root"])
        self.restore_frame(state)
        self.expansion = None
        self.n = self.waiting = 0
        self.set_room(n, self.columns)
        self.n, self.waiting = n, p
        self.mean[:n, :state["labels"]], self.errors[:p, :state["labels"]] = state["mean"], state["waiting_errors"]
        self.covariance[:n, :n] = state["covariance"]
        self.coordinates[:p, :n], self.news[:p, :n] = state["waiting_coordinates"], state["waiting_news"]
        self.gram[:p, :p], self.root[:p, :p] = state["waiting_gram"], state["waiting_root"]

    def _check(self):
        Function._check(self)
        n, p = self.n, self.waiting
        assert 0 <= p < PLACE and self.columns == self.width
        check_covariance(self.covariance[:n, :n])
        assert (np.diag(self.root)[:p] > 0.0).all()
        for array in (self.mean[:n], self.coordinates[:p, :n], self.news[:p, :n], self.gram[:p, :p], self.errors[:p]):
            assert np.isfinite(array).all()


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
        self.places = dictionary.new_table(1, np.int64)
        dictionary.add_tenant(self)
        self.moved()

    cdef int moved(self) except -1:
        """Read where everybody is from the table that has moved with the slots."""
        cdef Py_ssize_t slot, capacity = self.dictionary.capacity
        cdef const long long* places = <const long long*> self.places.data
        self.order_array = np.zeros(capacity + PLACE, dtype=np.intp)
        self.order = <Py_ssize_t*> array_data(self.order_array)
        self.queue = self.order + capacity
        for slot in range(capacity):
            if places[slot] > 0:
                self.order[places[slot] - 1] = slot
            elif places[slot] < 0:
                self.queue[-1 - places[slot]] = slot
        return 0

    cdef int settle_down(self, slots) except -1:
        """These slots are the points now, in the order of their coordinates; whoever else was here goes, and nobody waits."""
        cdef long long* places = <long long*> self.places.data
        cdef Py_ssize_t slot
        stays = np.zeros(self.dictionary.capacity, dtype=bool)
        stays[slots] = True
        for slot in range(self.dictionary.stop - 1, self.dictionary.start - 1, -1):
            if places[slot] != 0 and not stays[slot]:
                places[slot] = 0
                self.dictionary.release(slot)
        self.places.array[0, slots] = np.arange(1, len(slots) + 1)
        return self.moved()


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
        A point joins if its variance, given f at all others, exceeds this times k(x, x).
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
        self.set_factor(np.zeros((0, 0)))

    cdef set_factor(self, factor):
        """L, in as much room as the covariance has."""
        n = len(factor)
        if self.factor is None or len(self.factor) != self.capacity:
            self.factor = np.zeros((self.capacity, self.capacity))
            self.L = <double*> array_data(self.factor)
        self.factor[:n, :n] = factor

    cdef int attach(self, Workspace w, examples) except -1:
        return self.rows.attach(w, examples)

    cdef Py_ssize_t piece_rows(self):
        return 1 if self.takes_objects else PLACE - self.waiting

    cdef Py_ssize_t rows_to_evaluate(self):
        return self.rows.rows_to_evaluate()

    cdef int open_rows(self, Workspace w, Py_ssize_t first, Py_ssize_t m, bint learning, bint turned) except -1:
        return self.rows.open(w, first, m, learning, turned)

    cdef int read(self, Workspace w, Py_ssize_t m) except -1:
        cdef Py_ssize_t i, r, s, n = self.n, start = self.dictionary.start, room = self.capacity
        cdef Py_ssize_t* order = self.residents.order
        cdef Py_ssize_t* queue = self.residents.queue
        cdef const double* values
        cdef double* a
        cdef double* K
        with nogil:
            for i in range(m):
                s = self.waiting + i
                a, K = self.a + s * room, self.K + s * PLACE
                if self.dictionary.size():
                    values = self.rows.values(w, i)
                    for r in range(n):
                        a[r] = values[order[r] - start]
                    for r in range(self.waiting):
                        K[r] = values[queue[r] - start]
                values = self.rows.own_values(w, i)
                for r in range(i):
                    K[self.waiting + r] = values[r]
                K[s] = w.own[i]
            ok_solve_rows(self.L, room, n, self.a + self.waiting * room, room, m)
        return 0

    cdef bint point_is_finite(self, Workspace w, Py_ssize_t i) noexcept nogil:
        return self.rows.point_is_finite(w, i)

    cdef void admit(self, Workspace w, Py_ssize_t i) noexcept nogil:
        cdef Py_ssize_t slot
        self.born += 1
        slot = self.dictionary.admit(w.piece, i, self.born)
        self.rows.keep_facts(w, i, slot)
        self.dictionary.hold(slot)
        self.residents.queue[self.waiting] = slot
        (<long long*> self.residents.places.data)[slot] = -1 - self.waiting

    cdef int close(self, Workspace w) except -1:
        self.rows.close(w)
        return Posterior.close(self, w)

    cdef int tidy(self) except -1:
        self.dictionary.tidy()
        return 0

    # ---- Places -------------------------------------------------------------------------------

    cdef int conclude(self) except -1:
        """Take in those that wait; let join who is new, and go who is least missed."""
        cdef Py_ssize_t n = self.n
        joining, V = self.newcomers()
        mean, covariance = self.taken_in(V)
        size = n + len(joining)
        factor = np.zeros((size, size))
        factor[:n, :n] = self.factor[:n, :n]
        factor[n:, :n] = self.coordinates[joining, :n]
        factor[n:, n:] = V[joining]
        queue = np.array([self.residents.queue[s] for s in joining], dtype=np.intp)
        slots = np.concatenate([[self.residents.order[r] for r in range(n)], queue]).astype(np.intp)
        if size > self.most:
            kept = self.removed(factor, mean[:, :self.outputs.joined], slots, size - self.most)
            slots = slots[kept]
            factor, mean, covariance = marginal(factor, mean, covariance, kept)
        self.set_known(mean, covariance)
        self.set_factor(factor)
        return self.residents.settle_down(slots)

    cdef newcomers(self):
        """(rows that join, V): pivoted Cholesky of what the points do not explain of the waiting examples.

        The one that is explained least comes first; among those that are nearly the same, the earliest.
        """
        cdef Py_ssize_t i, r, best, count = 0
        cdef double largest
        gram = self.gram + np.tril(self.gram, -1).T
        own = np.diag(gram).copy()
        gram[own == 0.0] = 0.0                  # left out
        gram[:, own == 0.0] = 0.0
        coordinates = self.coordinates[:, :self.n]
        cdef double[:, ::1] R = gram - coordinates @ coordinates.T
        cdef double[::1] rest = np.diag(R).copy(), least = self.tolerance * own
        cdef double[:, ::1] V = np.zeros((PLACE, PLACE))        # a row for each that joins
        joining = []
        while count < PLACE:
            largest, best = 0.0, -1
            for i in range(PLACE):
                if rest[i] > largest:
                    largest = rest[i]
            for i in range(PLACE - 1, -1, -1):
                if rest[i] > least[i] and rest[i] >= (1.0 - NEAR) * largest:
                    best = i
            if best < 0:
                for i in range(PLACE):          # the largest is within its own tolerance; look for one that is not
                    if rest[i] > least[i] and (best < 0 or rest[i] > (1.0 + NEAR) * rest[best]):
                        best = i
                if best < 0:
                    break
            for i in range(PLACE):
                V[count, i] = R[i, best]
            for r in range(count):
                ok_axpy(-V[r, best], &V[r, 0], &V[count, 0], PLACE)
            largest = sqrt(rest[best])
            for i in range(PLACE):
                V[count, i] /= largest
            for i in joining:
                V[count, i] = 0.0
            V[count, best] = largest
            for i in range(PLACE):
                rest[i] -= V[count, i] * V[count, i]
            joining.append(best)
            for i in joining:
                rest[i] = -1.0
            count += 1
        return joining, np.asarray(V)[:count].T

    cdef removed(self, factor, known, slots, Py_ssize_t count):
        """Which coordinates stay when `count` points go, one after another, each the one without which f changes least.

        Without point i, f loses sum_y alpha_iy^2 / Q_ii, where alpha = L^-T U and Q = K^-1; both follow each removal.  Among
        those that lose nearly the same the oldest goes.
        """
        cdef Py_ssize_t i, k, r, victim, size = len(factor)
        cdef double best, root
        cdef double[:, ::1] Z = np.zeros((size, size)), F = np.ascontiguousarray(factor)
        ok_invert_lower(&F[0, 0], size, size, &Z[0, 0], size)
        inverse = np.asarray(Z)
        cdef double[:, ::1] Q = inverse.T @ inverse
        alpha_array = inverse.T @ known
        cdef double[::1] diagonal = np.diag(Q).copy(), least = 1.0 / np.einsum("ij,ij->i", factor, factor)
        cdef double[::1] loss = np.einsum("ij,ij->i", alpha_array, alpha_array)
        cdef double[:, ::1] V = np.empty((count, size))
        cdef const long long[::1] births = np.ascontiguousarray(self.dictionary.birthdays.array[0, slots])
        gone_array = np.zeros(size, dtype=np.uint8)
        cdef unsigned char[::1] gone = gone_array
        for k in range(count):
            best, victim = -1.0, -1
            for i in range(size):
                if not gone[i] and (victim < 0 or loss[i] < best * diagonal[i]):
                    best, victim = loss[i] / diagonal[i], i
            for i in range(size):
                if not gone[i] and loss[i] <= (1.0 + NEAR) * best * diagonal[i] and births[i] < births[victim]:
                    victim = i
            for i in range(size):
                V[k, i] = Q[victim, i]
            for r in range(k):
                ok_axpy(-V[r, victim], &V[r, 0], &V[k, 0], size)
            root = sqrt(diagonal[victim])
            for i in range(size):
                V[k, i] /= root
            gone[victim] = 1
            row = np.asarray(V[k])
            alpha_array -= np.multiply.outer(row, alpha_array[victim] / root)
            np.einsum("ij,ij->i", alpha_array, alpha_array, out=np.asarray(loss))
            for i in range(size):
                diagonal[i] = max(diagonal[i] - V[k, i] * V[k, i], least[i])
        return np.flatnonzero(gone_array == 0)

    # ---- Predicting ---------------------------------------------------------------------------

    def expanded(self):
        """Coefficients of the mean over the slots in use, a row for each label."""
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

    cdef int open(self, Workspace w, Py_ssize_t first, Py_ssize_t m, bint learning, int by_slots) except -1:
        cdef Py_ssize_t slot, l, size, start = self.dictionary.start
        cdef const double* values
        Posterior.open(self, w, first, m, learning, by_slots)
        if not w.piece.turned:
            return 0
        size = self.dictionary.size()
        w.totals = <double*> w.buffer(TOTALS, self.outputs.n * m * sizeof(double))
        with nogil:
            memset(w.totals, 0, self.outputs.n * m * sizeof(double))
            for slot in range(start, self.dictionary.stop):
                values = self.rows.slot_over_piece(w, slot)
                for l in range(self.outputs.n):
                    ok_axpy(w.coefficients[l * size + slot - start], values, w.totals + l * m, m)
        return 0

    cdef void evaluate_mean(self, Workspace w, Py_ssize_t i, double* out) noexcept nogil:
        cdef Py_ssize_t l, size = self.dictionary.size()
        cdef const double* values
        if w.totals != NULL:
            for l in range(self.outputs.n):
                out[l] = w.totals[l * w.piece.rows + i]
            return
        values = self.rows.values(w, i) if size else NULL
        for l in range(self.outputs.n):
            out[l] = ok_dot(w.coefficients + l * size, values, size)

    def coordinates_of(self, Workspace w, Py_ssize_t first, Py_ssize_t m):
        """(k(x, x), a(x), kernel values with those that wait) of m rows of the source of a call."""
        cdef Py_ssize_t i, j, r, n = self.n, p = self.waiting, start = self.dictionary.start
        own_array, a_array, shared_array = np.empty(m), np.zeros((m, n)), np.zeros((m, p))
        cdef double[::1] own = own_array
        cdef double[:, ::1] a = a_array, shared = shared_array
        cdef const double* values
        for j in range(m):                      # objects come one by one
            if j == 0 or self.takes_objects:
                self.rows.open(w, first + j, 1 if self.takes_objects else m, False, False)
            i = 0 if self.takes_objects else j
            own[j] = w.own[i]
            if self.dictionary.size():
                values = self.rows.values(w, i)
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
        """Coefficients of the mean, (labels, terms), oldest first."""
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
        cdef Py_ssize_t slot
        self.dictionary.restore(state)
        self.rows.restore()
        self.residents.places.array[0] = state["places"]
        for slot in range(self.dictionary.capacity):
            self.dictionary.hold(slot)
        self.residents.moved()
        self.restore_known(state)
        self.set_factor(state["factor"])
        self.born = state["t"]

    def _check(self):
        Posterior._check(self)
        self.dictionary._check()
        assert (np.diag(self.factor)[:self.n] > 0.0).all() and not np.triu(self.factor[:self.n, :self.n], 1).any()
        places = self.residents.places.array[0]
        assert sorted(places[places != 0].tolist()) == [*range(-self.waiting, 0), *range(1, self.n + 1)]
        assert (self.dictionary.holders.array[0, places != 0] > 0).all() and self.n <= self.most
        for slot in np.flatnonzero(places):
            where = places[slot]
            assert slot == (self.residents.order[where - 1] if where > 0 else self.residents.queue[-1 - where])


cdef class WeightsPosterior(Posterior):
    """f known through weights: a(x) = sqrt(scale) x, the classical recursive least squares.

    Parameters
    ----------
    scale : float
        k(x, z) = scale <x, z>.
    n_features, outputs, memory, classes
        As for `Posterior`; rows are float64.
    sparse : bool
    """

    def __init__(self, *, double scale, Py_ssize_t n_features, Outputs outputs, double memory, bint classes, bint sparse):
        Posterior.__init__(self, n_features, np.float64, outputs, memory, classes)
        self.keeps = "weights"
        self.scale, self.sparse = scale, sparse
        self.set_known(np.zeros((n_features, self.columns)), np.eye(n_features))

    cdef int attach(self, Workspace w, examples) except -1:
        w.source = examples
        w.source_data = NULL if self.sparse else array_data(examples)
        return 0

    cdef int open_rows(self, Workspace w, Py_ssize_t first, Py_ssize_t m, bint learning, bint turned) except -1:
        """Rows as dense features, in w.features."""
        cdef Py_ssize_t i, k, d = self.n_features
        cdef double root = sqrt(self.scale)
        cdef const double* x = <const double*> w.source_data
        cdef Rows rows
        w.begin_piece(m)
        w.features = <double*> w.buffer(FEATURES, m * d * sizeof(double))
        w.own = <double*> w.buffer(OWN, m * sizeof(double))
        if self.sparse:
            rows = w.source
            memset(w.features, 0, m * d * sizeof(double))
            for i in range(m):
                for k in range(rows.start[first + i], rows.start[first + i + 1]):
                    w.features[i * d + rows.index[k]] = root * rows.value[k]
        else:
            for k in range(m * d):
                w.features[k] = root * x[first * d + k]
        for i in range(m):
            w.own[i] = ok_dot(w.features + i * d, w.features + i * d, d)
        return 0

    cdef int read(self, Workspace w, Py_ssize_t m) except -1:
        cdef Py_ssize_t i, j, d = self.n_features, s
        with nogil:
            for i in range(m):
                s = self.waiting + i
                for j in range(d):
                    self.a[s * self.capacity + j] = w.features[i * d + j]
                ok_times_rows(self.a, self.capacity, s + 1, d, w.features + i * d, self.K + s * PLACE)
        return 0

    cdef int conclude(self) except -1:
        mean, covariance = self.taken_in(np.zeros((PLACE, 0)))
        self.set_known(mean, covariance)
        return 0

    def expanded(self):
        """The mean of the weights over features, a row for each label; f = <features, weights>."""
        points, waiting = self.mean_now()
        return (points + self.coordinates[:self.waiting, :self.n].T @ waiting).T[:self.outputs.n]

    cdef void evaluate_mean(self, Workspace w, Py_ssize_t i, double* out) noexcept nogil:
        cdef Py_ssize_t l, d = self.n_features
        for l in range(self.outputs.n):
            out[l] = ok_dot(w.coefficients + l * d, w.features + i * d, d)

    def coordinates_of(self, Workspace w, Py_ssize_t first, Py_ssize_t m):
        """(k(x, x), a(x), kernel values with those that wait) of m rows of the source of a call."""
        self.open_rows(w, first, m, False, False)
        a = w.array(<char*> w.features, m, self.n_features, np.dtype(np.float64)).copy()
        return np.einsum("ij,ij->i", a, a), a, a @ self.coordinates[:self.waiting, :self.n].T

    def coefficients(self, int channel):
        """Weights, (labels, n_features): f = scale <w, x>."""
        return self.expanded() / sqrt(self.scale)

    def check_state(self, state):
        """ValueError unless a state fits."""
        n, _ = self.check_known(state)
        if n != self.n_features:
            raise ValueError("there are not as many weights as features")

    def restore(self, state):
        """Continue from a state that has been checked."""
        self.restore_known(state)


def solve_rows(factor, double[:, ::1] X):
    """L x = b in place, for each row of X; L is a part of `factor` at its upper left."""
    if X.shape[0] and X.shape[1]:
        ok_solve_rows(<const double*> array_data(factor), factor.shape[1], X.shape[1], &X[0, 0], X.shape[1], X.shape[0])


def solve_block(factor, double[:, ::1] B):
    """L X = B in place."""
    if B.shape[0] and B.shape[1]:
        ok_solve_block(<const double*> array_data(factor), factor.shape[1], B.shape[0], &B[0, 0], B.shape[1], B.shape[1])


def solve_transposed(factor, double[:, ::1] B):
    """L^T X = B in place."""
    if B.shape[0] and B.shape[1]:
        ok_solve_transposed(<const double*> array_data(factor), factor.shape[1], B.shape[0], &B[0, 0], B.shape[1], B.shape[1])


def marginal(factor, mean, covariance, kept):
    """(L, U, S) of some of the points: one thin QR, L[kept]^T = Q L'^T, then U' = Q^T U and S' = Q^T S Q.

    Coordinates before the first that goes stay as they are.
    """
    gone = np.setdiff1d(np.arange(len(factor)), kept, assume_unique=True)
    first = gone[0] if len(gone) else len(factor)
    rotation, triangle = np.linalg.qr(factor[kept[first:], first:].T)
    signs = np.where(np.diag(triangle) < 0.0, -1.0, 1.0)
    rotation, triangle = rotation * signs, triangle * signs[:, None]
    size = len(kept)
    new_factor, new_covariance = np.zeros((size, size)), np.empty((size, size))
    new_factor[:first, :first] = factor[:first, :first]
    new_factor[first:, :first] = factor[kept[first:], :first]
    new_factor[first:, first:] = np.tril(triangle.T)
    new_mean = np.vstack([mean[:first], rotation.T @ mean[first:]])
    new_covariance[:first, :first] = covariance[:first, :first]
    new_covariance[first:, :first] = rotation.T @ covariance[first:, :first]
    new_covariance[:first, first:] = new_covariance[first:, :first].T
    inner = rotation.T @ covariance[first:, first:] @ rotation
    new_covariance[first:, first:] = 0.5 * (inner + inner.T)
    return new_factor, new_mean, new_covariance


def check_covariance(covariance):
    """ValueError unless a matrix can be the covariance of coordinates whose prior is N(0, I), up to rounding."""
    if not np.allclose(covariance, covariance.T, rtol=0.0, atol=1e-9):
        raise ValueError("the covariance is not symmetric")
    if len(covariance):
        values = np.linalg.eigvalsh(covariance)
        if values.min() < -1e-7 or values.max() > 1.0 + 1e-7:
            raise ValueError("the covariance is not one of known coordinates")
