"""Posteriors: what a second-order learner knows of f, and how well.

f is known through coordinates u ~ N(U, S), a Gaussian that was N(0, I) before the first example: f(x) = <a(x), u> and a rest
that nothing is known about.  On points D that is whitened, f_D = L u with K_DD = L L^T, so that a(x) = L^-1 k(D, x); on
features, a(x) are the features.  No inverse is kept, and nothing is added to a diagonal.

Examples are pending until there are `CHECKPOINT` of them, counted by t.  A pending row is one of the factor L_C of

    C_ts = lam^(|t-s|/2) [ k(x_t, x_s) + lam^min(t,s) a_t^T (S - I) a_s ] + noise [t = s]

so predictions, which are innovations of that factor, are those of one example at a time, whatever the chunks.  At a checkpoint
U and S take all of them in at once, and points come and go.

A checkpoint is all or nothing.  What can fail or be interrupted comes first, and its results lie beside what is in use; then
compiled code that cannot raise puts them in force.  If something fails before, all rows are still pending, and the next call
that learns begins with that checkpoint.
"""
import numpy as np
cimport cython
from libc.string cimport memcpy, memset
from onlinekernels._core.arrays cimport array_data
from onlinekernels._core.arrays import aligned_empty, check_array
from onlinekernels._core.functions cimport Function, Outputs, Scratch
from onlinekernels._core.linalg cimport (ALL, Factor, matrix, multiply, ok_next_column, ok_shrink_and_subtract,
                                         ok_times_rows, ok_turn, transposed)
from onlinekernels._core.linalg import check_lower
from onlinekernels._core.formulas.vecmath cimport ok_axpy, ok_dot

cdef object DOUBLE = np.dtype(np.float64)
ROUNDING = 1e-12        # of variances, relative to k(x, x): less may be rounding, never joins, and cannot be told from no noise


cdef class PosteriorScratch(Scratch):
    """What a posterior computes on the way."""

    cdef void let_go(self) noexcept:
        Scratch.let_go(self)
        self.expansion_array = None


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

    `open_rows(scratch, first, m, learning, turned)`
        get ready for some rows: k(x, x) into w.piece.own; O(m) kernel rows, or maps;
    `read(scratch, m)`
        coordinates and kernel values of the next m rows, which are about to be pending: O(m n^2);
    `admit(scratch, i)`
        example i is pending from now on: O(1) and a copy of it;
    `conclude(scratch)`
        take in the pending rows, at a checkpoint: O(n^3 + CHECKPOINT n^2);
    `evaluate_mean(scratch, i, out)`
        the mean at example i, from w.expansion: O(n) for each output;

    and for Python `expanded`, `coordinates_of`, `coefficients`, `state`, `check_state` and `restore`.
    """

    def __init__(self, Py_ssize_t n_features, dtype, Outputs outputs, double memory, bint classes):
        cdef Py_ssize_t k
        Function.__init__(self, n_features, dtype, 1, outputs)
        self.memory, self.classes = memory, classes
        for k in range(CHECKPOINT + 2):
            self.fade[k] = memory ** (0.5 * k)
        self.gram, self.root = np.zeros((CHECKPOINT, CHECKPOINT)), Factor(CHECKPOINT)
        self.K = <double*> array_data(self.gram)
        self.set_room(0, self.width)

    cdef int set_room(self, Py_ssize_t capacity, Py_ssize_t width) except -1:
        """Room for so many coordinates and outputs; what there is stays: O(capacity^2)."""
        cdef Py_ssize_t n = self.n, p = self.root.n
        cdef Py_ssize_t room = room_for(capacity)
        kept = {"mean": (width, room, (slice(None), slice(n))), "covariance": (room, room, (slice(n), slice(n))),
                "coordinates": (CHECKPOINT, room, (slice(p), slice(n))),
                "corrections": (CHECKPOINT, room, (slice(p), slice(n))),
                "errors": (width, CHECKPOINT, (slice(None), slice(p)))}
        cdef double* data[5]
        parts = []
        for name, (rows, columns, part) in kept.items():
            array, old = aligned_empty((rows, columns), DOUBLE), getattr(self, name)
            array[:] = 0.0
            if old is not None:
                array[:len(old)][part] = old[:rows][part]
            data[len(parts)] = <double*> array_data(array)
            parts.append(array)
        self.mean, self.covariance, self.coordinates, self.corrections, self.errors = parts    # nothing can fail any more
        self.U, self.S, self.a, self.b, self.E = data[0], data[1], data[2], data[3], data[4]
        self.capacity = room
        return 0

    # ---- A piece ------------------------------------------------------------------------------

    cdef Py_ssize_t piece_rows(self):
        """Up to the next checkpoint: O(1)."""
        return CHECKPOINT - self.root.n % CHECKPOINT

    cdef int open_rows(self, PosteriorScratch w, Py_ssize_t first, Py_ssize_t m, bint learning, bint turned) except -1:
        raise NotImplementedError

    cdef int read(self, PosteriorScratch w, Py_ssize_t m) except -1:
        raise NotImplementedError

    cdef Scratch new_scratch(self):
        """O(1)."""
        return PosteriorScratch()

    cdef int open(self, Scratch w, Py_ssize_t first, Py_ssize_t m, bint learning, int by_slots) except -1:
        """O(m n^2) while it learns, and `conclude` if that was interrupted; otherwise O(m) kernel rows, or maps."""
        cdef PosteriorScratch scratch = w
        if learning:
            self.expansion = None               # of slots that may move now
            if self.root.n == CHECKPOINT:       # that one was interrupted
                self.conclude(scratch)
        self.open_rows(scratch, first, m, learning, by_slots >= 0)
        scratch.expansion = scratch.totals = NULL
        if learning:
            scratch.cross = <double*> w.buffer(CROSS, m * CHECKPOINT * sizeof(double))
            scratch.means = <double*> w.buffer(MEANS, m * self.width * sizeof(double))
            self.read(scratch, m)
            return self.relate(scratch, m)
        with cython.critical_section(self):     # several threads may predict, and replace it by the same
            expansion = self.expansion
        if expansion is None:
            expansion = np.ascontiguousarray(self.expanded())
            with cython.critical_section(self):
                self.expansion = expansion
        scratch.expansion_array = expansion
        scratch.expansion = <const double*> array_data(expansion)
        return 0

    cdef int relate(self, PosteriorScratch w, Py_ssize_t m) except -1:
        """(S - I) a of m new rows, its products with all pending ones, and what U says of them: O(m n^2)."""
        cdef Py_ssize_t i, j, s = self.root.n, n = self.n, room = self.capacity
        cdef double* a = self.a + s * room
        cdef double* b = self.b + s * room
        cdef double* A
        w.columns = NULL
        if m == 1:                              # to let others go on meanwhile would take longer
            self.relate_one(w)
            return 0
        A = <double*> w.buffer(TURNED, max(1, n) * CHECKPOINT * sizeof(double))
        w.columns = <double*> w.buffer(COLUMNS, (CHECKPOINT + 1 + self.width) * CHECKPOINT * sizeof(double))
        multiply(b, room, matrix(a, m, n, room), matrix(self.S, n, n, room), ALL)
        with nogil:
            for i in range(m):
                for j in range(n):
                    b[i * room + j] -= a[i * room + j]
                ok_times_rows(self.U, room, self.width, n, a + i * room, w.means + i * self.width)
            ok_turn(self.a, room, s + m, n, A, CHECKPOINT)
        multiply(w.cross, CHECKPOINT, matrix(b, m, n, room), matrix(A, n, s + m, CHECKPOINT), s)
        with nogil:
            self.spread_out(w, m)
        return 0

    cdef void spread_out(self, PosteriorScratch w, Py_ssize_t m) noexcept nogil:
        """Columns of C, which become those of L_C one by one: so each explains all later rows at once. O(m CHECKPOINT^2)."""
        cdef Py_ssize_t r, t, y, s = self.root.n
        cdef double* T = w.columns
        cdef const double* K
        cdef const double* cross
        w.explained, w.expected, w.end = T + CHECKPOINT * CHECKPOINT, T + (CHECKPOINT + 1) * CHECKPOINT, s + m
        memset(w.explained, 0, (1 + self.width) * CHECKPOINT * sizeof(double))
        for t in range(s, s + m):
            K, cross = self.K + t * CHECKPOINT, w.cross + (t - s) * CHECKPOINT
            for r in range(t):
                T[r * CHECKPOINT + t] = self.fade[t - r] * (K[r] + self.fade[r + 1] * self.fade[r + 1] * cross[r])
        for r in range(s):
            if self.K[r * CHECKPOINT + r] == 0.0:           # left out
                memset(T + r * CHECKPOINT + s, 0, m * sizeof(double))
        self.root.solve_columns(T + s, CHECKPOINT, m)
        for r in range(s):
            for t in range(s, s + m):
                w.explained[t] += T[r * CHECKPOINT + t] * T[r * CHECKPOINT + t]
            for y in range(self.width):
                ok_axpy(self.E[y * CHECKPOINT + r], T + r * CHECKPOINT + s, w.expected + y * CHECKPOINT + s, m)

    cdef void relate_one(self, PosteriorScratch w) noexcept nogil:
        """The same for a single row, without numpy. O(n^2)."""
        cdef Py_ssize_t j, s = self.root.n, n = self.n, room = self.capacity
        cdef double* a = self.a + s * room
        cdef double* b = self.b + s * room
        ok_times_rows(self.S, room, n, n, a, b)
        for j in range(n):
            b[j] -= a[j]
        ok_times_rows(self.b, room, s + 1, n, a, w.cross)
        ok_times_rows(self.U, room, self.width, n, a, w.means)

    # ---- Evaluate, absorb ---------------------------------------------------------------------

    cdef void evaluate(self, Scratch w, Py_ssize_t i, int last, double* out) noexcept nogil:
        """The mean, and while learning the variance too: the next row of L_C, up to its diagonal, O(pending rows^2)."""
        cdef Py_ssize_t r, y, s = self.root.n
        cdef const double* cross = (<PosteriorScratch> w).cross + i * CHECKPOINT
        cdef const double* K = self.K + s * CHECKPOINT
        cdef double* row = self.root.row(s)
        if (<PosteriorScratch> w).expansion != NULL:
            self.evaluate_mean(<PosteriorScratch> w, i, out)
            return
        (<PosteriorScratch> w).row = i
        if (<PosteriorScratch> w).columns != NULL:
            w.variance = (<PosteriorScratch> w).explained[s]
            for y in range(self.width):
                out[y] = (<PosteriorScratch> w).expected[y * CHECKPOINT + s]
        else:
            for r in range(s):
                row[r] = 0.0
                if self.K[r * CHECKPOINT + r] != 0.0:
                    row[r] = self.fade[s - r] * (K[r] + self.fade[r + 1] * self.fade[r + 1] * cross[r])
            self.root.solve(row, 0)
            w.variance = ok_dot(row, row, s)
            ok_times_rows(self.E, CHECKPOINT, self.width, s, row, out)
        w.variance = K[s] + self.fade[s + 1] * self.fade[s + 1] * cross[s] - w.variance
        if w.variance < 0.0:
            w.variance = 0.0
        for y in range(self.width):
            out[y] += self.fade[s + 1] * (<PosteriorScratch> w).means[i * self.width + y]

    cdef void absorb(self, PosteriorScratch w, const double* innovation, double deviation, bint counts) noexcept nogil:
        """The example that was evaluated is pending from now on; its innovations are in units of the deviation.

        O(n) for each output.
        """
        cdef Py_ssize_t r, y, s = self.root.n
        cdef double* row = self.root.row(s)
        self.admit(w, w.row)
        for y in range(self.width):
            self.E[y * CHECKPOINT + s] = innovation[y] if counts else 0.0
        if not counts:                          # time passes, and that is all
            memset(self.a + s * self.capacity, 0, self.n * sizeof(double))
            memset(self.b + s * self.capacity, 0, self.n * sizeof(double))
            memset(self.K + s * CHECKPOINT, 0, CHECKPOINT * sizeof(double))
            memset(row, 0, s * sizeof(double))
        elif w.columns != NULL:
            for r in range(s):
                row[r] = w.columns[r * CHECKPOINT + s]
        self.root.append(row, deviation if counts else 1.0)
        if w.columns != NULL:
            self.next_column(w, s, deviation, counts)

    cdef void next_column(self, PosteriorScratch w, Py_ssize_t s, double deviation, bint counts) noexcept nogil:
        """Column s of L_C below its diagonal, and what it says of the later rows of a piece: O(s CHECKPOINT)."""
        cdef Py_ssize_t y, rest = w.end - s - 1
        cdef double* column = w.columns + s * CHECKPOINT + s + 1
        if not counts:
            memset(column, 0, rest * sizeof(double))
            return
        ok_next_column(w.columns, CHECKPOINT, s, w.end, deviation, w.explained)
        for y in range(self.width):
            ok_axpy(self.E[y * CHECKPOINT + s], column, w.expected + y * CHECKPOINT + s + 1, rest)

    cdef void admit(self, PosteriorScratch w, Py_ssize_t i) noexcept nogil:
        pass

    # ---- Checkpoints --------------------------------------------------------------------------

    cdef int close(self, Scratch w) except -1:
        """At a checkpoint `conclude`, else O(1)."""
        return self.conclude(<PosteriorScratch> w) if self.root.n == CHECKPOINT else 0

    cdef int conclude(self, PosteriorScratch w) except -1:
        raise NotImplementedError

    cdef int begin_to_take_in(self, PosteriorScratch w, Py_ssize_t joining) except -1:
        """Get ready to take in the pending rows, and at most so many new coordinates: O(CHECKPOINT^2 n).

            W = L_C^-1 lam^((b-t)/2) [ lam^t (S - I) a_t + a_t , V_t ]      over t = 1, ..., b
            U' = lam^(b/2) U + W^T e,      S' = lam^b S + (1 - lam^b) I - W^T W

        V is what the pending rows have in common with those that join, beside the others.
        """
        cdef Py_ssize_t j, t, n = self.n, room = self.capacity
        cdef double late
        w.taken_stride = n + joining
        w.taken_stride = max(w.taken_stride, 16)    # as tiles read it
        w.taken = <double*> w.buffer(TAKEN, CHECKPOINT * w.taken_stride * sizeof(double))
        with nogil:
            for t in range(CHECKPOINT):
                late = self.fade[CHECKPOINT - 1 - t]
                for j in range(n):
                    w.taken[t * w.taken_stride + j] = late * (self.fade[t + 1] * self.fade[t + 1] * self.b[t * room + j]
                                                              + self.a[t * room + j])
            self.root.solve_columns(w.taken, w.taken_stride, n)
        return 0

    cdef double* future_mean(self, PosteriorScratch w, const double* V, Py_ssize_t joining) except NULL:
        """U as it will be with the coordinates of V, which has a row for each: O(CHECKPOINT^2 joining + CHECKPOINT n)."""
        cdef Py_ssize_t j, t, y, n = self.n, size = n + joining
        cdef double* W = w.taken + n
        cdef double* mean = <double*> w.buffer(FUTURE_MEAN, max(1, self.width * size) * sizeof(double))
        with nogil:
            for t in range(CHECKPOINT):
                for j in range(joining):
                    W[t * w.taken_stride + j] = self.fade[CHECKPOINT - 1 - t] * V[j * CHECKPOINT + t]
            self.root.solve_columns(W, w.taken_stride, joining)
        multiply(mean, size, matrix(self.E, self.width, CHECKPOINT, CHECKPOINT), matrix(w.taken, CHECKPOINT, size, w.taken_stride), ALL)
        for y in range(self.width):
            for j in range(n):
                mean[y * size + j] += self.fade[CHECKPOINT] * self.U[y * self.capacity + j]
        return mean

    cdef double* future_covariance(self, PosteriorScratch w, Py_ssize_t joining) except NULL:
        """S as it will be with so many coordinates more, those of the last `future_mean`: O(CHECKPOINT n^2)."""
        cdef Py_ssize_t i, j, n = self.n, size = n + joining
        cdef double* S = <double*> w.buffer(FUTURE, max(1, size * size) * sizeof(double))
        cdef double faded = self.fade[CHECKPOINT] * self.fade[CHECKPOINT]
        multiply(S, size, transposed(w.taken, CHECKPOINT, size, w.taken_stride), matrix(w.taken, CHECKPOINT, size, w.taken_stride), 0)
        with nogil:
            ok_shrink_and_subtract(self.S, self.capacity, n, faded, 1.0 - faded, S, size)
            for i in range(n, size):
                for j in range(i):
                    S[i * size + j] = S[j * size + i] = -S[i * size + j]
                S[i * size + i] = 1.0 - S[i * size + i]
        return S

    cdef void become(self, const double* mean, const double* covariance, Py_ssize_t stride, Py_ssize_t n) noexcept nogil:
        """U and S are these now, of n coordinates, for which there is room, and no row is pending: O(n^2)."""
        cdef Py_ssize_t y, i
        for y in range(self.width):
            memcpy(self.U + y * self.capacity, mean + y * stride, n * sizeof(double))
        for i in range(n):
            memcpy(self.S + i * self.capacity, covariance + i * stride, n * sizeof(double))
        if self.doubts:                         # f may be anything again, and is about what it was
            for i in range(n):
                memset(self.S + i * self.capacity, 0, n * sizeof(double))
                self.S[i * self.capacity + i] = 1.0
        self.n, self.root.n, self.doubts = n, 0, False

    cdef void doubt(self) noexcept nogil:
        """Keep the mean, and know as little of f as before the first example, from the next checkpoint on. O(1)."""
        self.doubts = True

    # ---- Predicting ---------------------------------------------------------------------------

    def mean_now(self):
        """(coordinates, coefficients): the mean is <a(x), coordinates> + sum_s coefficients_s k(x_s, x) over pending rows.

        Columns are outputs. It is that of the next example, so faded by one more step. O(n CHECKPOINT outputs).
        """
        n, p = self.n, self.root.n
        errors = self.errors[:, :p].T.copy("C")         # which is solved in place
        self.root.solve_transposed_into(errors)
        s = np.arange(1, p + 1)
        coefficients = self.memory ** (0.5 * (p + 1 - s))[:, None] * errors
        coordinates = self.memory ** (0.5 * (p + 1)) * self.mean[:, :n].T
        coordinates += self.corrections[:p, :n].T @ (self.memory ** s[:, None] * coefficients)
        return coordinates, coefficients

    def uncertainty(self, examples, bint together=False):
        """Variance of f at some examples; with `together`, all that their covariance has beside k(x, z) as (left, right).

        The covariance is k(x, z) + left(x) . right(z). O(n^2) an example.
        """
        cdef PosteriorScratch w = self.new_scratch()
        cdef Py_ssize_t first, m, n = self.n, p = self.root.n, total = len(examples)
        s = np.arange(1, p + 1)
        late, faded = self.memory ** (p + 1), self.memory ** (0.5 * (p + 1 - s))
        variance, lefts, rights = np.empty(total), [], []
        self.make_ready(w)
        self.attach(w, examples)
        for first in range(0, total, CHECKPOINT):
            m = min(CHECKPOINT, total - first)
            own, a, shared = self.coordinates_of(w, first, m)
            b = a @ self.covariance[:n, :n] - a
            c = faded * (shared + self.memory ** s * (a @ self.corrections[:p, :n].T))
            c[:, np.diag(self.gram)[:p] == 0.0] = 0.0
            c = np.ascontiguousarray(c)
            self.root.solve_into(c)
            variance[first:first + m] = own + late * np.sum(a * b, axis=1) - np.sum(c * c, axis=1)
            if together:
                lefts.append(np.hstack([late * a, -c]))
                rights.append(np.hstack([b, c]))
        return (np.vstack(lefts), np.vstack(rights)) if together else np.maximum(variance, 0.0)

    cdef void evaluate_mean(self, PosteriorScratch w, Py_ssize_t i, double* out) noexcept nogil:
        pass

    # ---- For Python ---------------------------------------------------------------------------

    def widen(self, Py_ssize_t width):
        """Make room for more outputs: O(capacity^2)."""
        self.expansion = None
        self.set_room(self.capacity, width)

    def copy_last(self, Py_ssize_t known):
        """Outputs behind those that are known are what the last of these is. O(outputs n)."""
        self.expansion = None
        for array in (self.mean, self.errors):
            array[known:] = array[known - 1]

    def begin_from(self, *function, t=0):
        """A posterior is more than a function."""
        raise ValueError("a posterior cannot start from a function")

    def state(self):
        """Named numbers and arrays; no scratch. O(n^2)."""
        n, p, kept = self.n, self.root.n, self.outputs.kept()
        return {**self.frame_state(), "mean": self.mean[:kept, :n].copy(), "covariance": self.covariance[:n, :n].copy(),
                "pending_coordinates": self.coordinates[:p, :n].copy(),
                "pending_corrections": self.corrections[:p, :n].copy(), "pending_gram": np.tril(self.gram[:p, :p]),
                "pending_root": self.root.lower(), "pending_errors": self.errors[:kept, :p].copy()}

    def check_known(self, state):
        """(coordinates, pending rows) of a state; ValueError unless U, S and the pending rows fit.

        O(n^3), for the eigenvalues of S.
        """
        self.check_frame(state)
        labels, n, p = state["labels"], len(state["covariance"]), len(state["pending_root"])
        if p > CHECKPOINT:                      # so many if an error has interrupted it
            raise ValueError(f"{p} rows are pending, and at {CHECKPOINT} there is a checkpoint")
        for name, shape in (("mean", (labels, n)), ("covariance", (n, n)), ("pending_coordinates", (p, n)),
                            ("pending_corrections", (p, n)), ("pending_gram", (p, p)), ("pending_errors", (labels, p))):
            check_array(state[name], name, np.float64, shape)
        check_covariance(state["covariance"])
        check_lower(state["pending_root"], "pending_root", p)
        if (np.diag(state["pending_gram"]) < 0.0).any() or np.triu(state["pending_gram"], 1).any():
            raise ValueError("pending_gram is not lower triangular, or has a negative square")
        return n, p

    def restore_known(self, state):
        """Take over U, S and the pending rows, which have been checked. O(n^2)."""
        cdef Py_ssize_t n = len(state["covariance"]), p = len(state["pending_root"]), labels = state["labels"]
        self.restore_frame(state)
        self.expansion = None
        self.n = self.root.n = 0
        self.set_room(n, self.width)
        self.n = n
        self.root.load(state["pending_root"])
        self.mean[:labels, :n], self.errors[:labels, :p] = state["mean"], state["pending_errors"]
        self.covariance[:n, :n] = state["covariance"]
        self.coordinates[:p, :n], self.corrections[:p, :n] = state["pending_coordinates"], state["pending_corrections"]
        self.gram[:p, :p] = state["pending_gram"]

    def _check(self):
        Function._check(self)
        n, p = self.n, self.root.n
        assert 0 <= p <= CHECKPOINT and n <= self.capacity
        check_covariance(self.covariance[:n, :n])
        self.root._check()
        for array in (self.mean[:, :n], self.coordinates[:p, :n], self.corrections[:p, :n], self.gram[:p, :p],
                      self.errors[:, :p]):
            assert np.isfinite(array).all()


cdef Py_ssize_t room_for(Py_ssize_t n) noexcept:
    """A row length for n numbers: an odd number of cache lines, so that columns spread over the whole cache.

    At least three, as tiles read them: so a product has the same bits whatever room there is.
    """
    return 8 * (max(3, (n + 7) // 8) | 1) if n else 0


def check_covariance(covariance):
    """ValueError unless a matrix can be the covariance of coordinates whose prior is N(0, I), up to rounding."""
    if not np.allclose(covariance, covariance.T, rtol=0.0, atol=1e-9):
        raise ValueError("the covariance is not symmetric")
    if len(covariance):
        values = np.linalg.eigvalsh(covariance)
        if values.min() < -1e-7 or values.max() > 1.0 + 1e-7:
            raise ValueError("the covariance is not one of known coordinates")
