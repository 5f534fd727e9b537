"""Local averages: votes, means or densities of the rows near an example, by kernel weights.

    f(x) = sum_i k(x_i, x) y_i / sum_i k(x_i, x)

over rows that are kept in slots. Weights are taken in logarithms, relative to the nearest row's, so that an example far
from all rows still has nearest neighbours.

`open` gets all memory for a block, and all distances at once; distances to rows that enter within the block are patched
from the block's own, so chunks are exact.
"""
import numpy as np
cimport cython
from libc.math cimport INFINITY, log, sqrt
from libc.string cimport memcpy
from onlinekernels._core.arrays cimport array_data
from onlinekernels._core.backend cimport Backend
from onlinekernels._core.combiners cimport IntervalTracker
from onlinekernels._core.transforms cimport Ranks, Scaler
from onlinekernels._core.schema import Array, Buffer, Count, Part, not_negative
from onlinekernels._core.transforms import too_large
from onlinekernels._core.formulas.hashing cimport reservoir_slot
from onlinekernels._core.formulas.vecmath cimport (ok_distance_row, ok_dot, ok_exp_array, ok_gather, ok_l1_block,
                                                   ok_least, ok_nearby, ok_scatter, ok_smallest,
                                                   ok_subtract)
from onlinekernels._core.functions cimport Memory
from onlinekernels._core.linalg import matmul
from onlinekernels._core.linalg cimport ok_distance_block, ok_times_rows, ok_transpose

cdef enum:
    NUMBERS = 0
    LABELS = 1
    DENSITY = 2
    PIECE = 128         # examples at most whose distances are taken together,
    MOST = 320000       # and distances: a piece of few rows costs more than these
    NEAREST = 64        # neighbours that may be the unit of distances
    NARROW = 32         # features for which distances by tiles take less time than a matrix product
    MOST_SPARE = 8      # scratches that wait for the next call that predicts

cdef enum LocalBuffer:
    ROWS
    SQUARES
    TABLE
    OWN
    TRANSPOSED
    SLOTS
    INDEX
    SHARES
    ONES
    SUMS

cdef double NEGLIGIBLE = 23.0       # weights below exp(-23), 1e-10, of the nearest row's do not count
cdef double FADING = 0.99           # of the mean squared error that a lone neighbour's answer is expected to have

cdef object DOUBLE = np.dtype(np.float64)

cdef enum:
    SCORES = 2000       # that a threshold is the quantile of
    LATEST = 100        # scores of these that the sample begins with
    YOUNG = 500         # rows at most before scores are worth remembering: those of few are too low, and would stay

TASKS = {"numbers": NUMBERS, "labels": LABELS, "density": DENSITY}


def squares_of(const double[:, ::1] points):
    """Squared lengths of rows, with the bits that they have when these are learned."""
    cdef Py_ssize_t i, n = points.shape[0], d = points.shape[1]
    cdef double[::1] squares = np.zeros(n)
    for i in range(n if d else 0):
        squares[i] = ok_dot(&points[i, 0], &points[i, 0], d)
    return np.asarray(squares)


cdef struct Block:
    # Some rows, and what is computed of them on the way.
    Py_ssize_t m                # how many
    double* rows                # (m, features): about the origin
    double* squares             # (m): of their lengths
    double* table               # (m, stride): distances to the rows that are kept
    Py_ssize_t stride
    # Of one average
    Py_ssize_t* index           # slots that count,
    double* share               # their weights,
    double* gathered            # and what they say
    double* ones
    double* sums
    # If they are learned
    double* own                 # (m, m): distances to each other
    double* transposed              # (features, m): the rows, with a row for each feature
    Py_ssize_t* slots           # (m): where they go, -1 for nowhere


@cython.final
cdef class LocalScratch(Memory):
    """Memory of a block."""

    cdef Block block

    cdef int reserve(self, LocalRows local, Py_ssize_t m, Py_ssize_t n, Py_ssize_t outputs, bint learning) except -1:
        """Room for m rows, n distances of each, and so many outputs. O(n), unless it is new."""
        cdef Py_ssize_t i, item = sizeof(double)
        cdef Block* w = &self.block
        w.m, w.stride = 0, n
        w.rows = <double*> self.buffer(ROWS, m * local.n_features * item)
        w.squares = <double*> self.buffer(SQUARES, m * item)
        w.table = <double*> self.buffer(TABLE, m * n * item)
        w.index = <Py_ssize_t*> self.buffer(INDEX, (n + 1) * sizeof(Py_ssize_t))        # one is written behind the last
        w.share = <double*> self.buffer(SHARES, 2 * (n + 1) * item)
        w.gathered = w.share + n + 1
        if self.bytes[<int> ONES] < n * item or self.data[<int> ONES] == NULL:
            w.ones = <double*> self.buffer(ONES, n * item)
            for i in range(n):
                w.ones[i] = 1.0
        w.sums = <double*> self.buffer(SUMS, 4 * outputs * item)
        if learning:
            w.own = <double*> self.buffer(OWN, m * m * item)
            w.transposed = <double*> self.buffer(TRANSPOSED, m * local.n_features * item)
            w.slots = <Py_ssize_t*> self.buffer(SLOTS, m * sizeof(Py_ssize_t))
        w.m = m


@cython.final
cdef class LocalRows:
    """Rows in slots, and local averages of what they say.

    Parameters
    ----------
    task : "numbers", "labels" or "density"
    n_features, targets : int
        Numbers that a row has, and that it says; 1 for labels.
    rate : float
        k = exp(-rate |x - z|^2), or exp(-rate |x - z|_1) for city-block distances.
    city_block : bool
    size : int
        How many rows are kept.
    uniform, memory, seed
        Whether they are a uniform sample of all, and not the latest; see `reservoir_slot`.
    neighbour : int
        Distances are in units of that to so near a row; 0 for none.
    """

    cdef readonly int task
    cdef readonly Py_ssize_t n_features, targets, size, neighbour
    cdef readonly double rate
    cdef readonly bint city_block, uniform
    cdef readonly long long memory
    cdef readonly long long t               # rows so far, but for those that were held back
    cdef readonly unsigned long long seed
    cdef readonly object origin             # what rows are kept about: the first one
    cdef readonly object points             # (room, features)
    # (features, room): the same with a row for each feature; None if nobody looks at it so
    cdef readonly object columns
    cdef readonly object squares, values, weights
    cdef readonly object running_errors      # (targets + 1): fading sums of squared errors, and of their weights
    cdef double* O                          # of `origin`
    cdef double* P                          # of `points`
    cdef double* C                          # of `columns`, or NULL
    cdef double* q                          # of `squares`
    cdef double* V                          # of `values`
    cdef double* w                          # of `weights`
    cdef double* errors                     # of `running_errors`
    cdef Py_ssize_t capacity                    # rows that there is room for
    cdef Py_ssize_t weighted                # rows that are kept with another weight than 1
    cdef LocalScratch scratch               # of the block that is open,
    cdef Py_ssize_t outputs                 # of its rows
    cdef list spare                         # scratch that no call has at present

    def __init__(self, task, Py_ssize_t n_features, Py_ssize_t targets, double rate, bint city_block, Py_ssize_t size,
                 bint uniform=False, long long memory=0, unsigned long long seed=0, Py_ssize_t neighbour=0):
        if not 0 <= neighbour <= NEAREST or size < 1:  # they may come from a file
            raise ValueError("the number of rows, or of the neighbour whose distance is the unit, is beyond its limits")
        self.task = TASKS[task]
        self.n_features, self.targets, self.rate, self.city_block = n_features, targets, rate, city_block
        self.size, self.uniform, self.memory, self.seed = size, uniform, memory, seed
        self.neighbour = neighbour
        self.scratch, self.spare = LocalScratch(), []
        self.start_at(np.zeros(n_features), np.zeros(targets + 1))
        self.origin = None
        self.reserve(0)

    def start_at(self, origin, running_errors):
        """Go on with this origin and these running errors: O(d)."""
        self.origin, self.running_errors = origin, running_errors
        self.O, self.errors = <double*> array_data(origin), <double*> array_data(running_errors)

    cdef int reserve(self, Py_ssize_t n) except -1:
        """Room for n rows, or a few more; nothing that is kept changes. O(rows d) when it grows, which doubles."""
        cdef Py_ssize_t capacity = min(self.size, max(2 * n, 16)), before = self.capacity
        if self.points is not None and before >= min(n, self.size):
            return 0
        points, values = np.zeros((capacity, self.n_features)), np.zeros((capacity, self.targets))
        squares, weights = np.zeros(capacity), np.ones(capacity)
        transposes = not self.city_block and 0 < self.n_features <= NARROW
        columns = np.zeros((self.n_features, capacity)) if transposes else None
        if before:
            points[:before], values[:before] = self.points, self.values
            squares[:before], weights[:before] = self.squares, self.weights
            if columns is not None:
                columns[:, :before] = self.columns
        self.keep(points, squares, values, weights, columns)

    def keep(self, points, squares, values, weights, columns):
        """Go on with these arrays: O(1)."""
        cdef double* C = <double*> NULL if columns is None else <double*> array_data(columns)
        cdef double* P = <double*> array_data(points)
        cdef double* q = <double*> array_data(squares)
        cdef double* V = <double*> array_data(values)
        cdef double* w = <double*> array_data(weights)
        self.points, self.squares, self.values, self.weights, self.columns = points, squares, values, weights, columns
        # nothing can fail any more
        self.P, self.q, self.V, self.w, self.C, self.capacity = P, q, V, w, C, points.shape[0]

    @property
    def n(self):
        """How many rows are kept."""
        return min(self.t, self.size)

    cdef Py_ssize_t slot_of(self, long long t) noexcept nogil:
        """Where row t = 0, 1, ... goes; -1 for nowhere. O(1)."""
        return reservoir_slot(t, self.size, self.memory, self.seed) if self.uniform else <Py_ssize_t> (t % self.size)

    # ---- Distances ----------------------------------------------------------------------------

    cdef int measure(self, LocalScratch scratch, const double* X, Py_ssize_t n) except -1:
        """Rows about the origin, and their distances to the first n that are kept. O(m n d)."""
        cdef Block* w = &scratch.block
        cdef Py_ssize_t i, m = w.m, d = self.n_features
        for i in range(m):
            ok_subtract(X + i * d, self.O, w.rows + i * d, d)
            w.squares[i] = ok_dot(w.rows + i * d, w.rows + i * d, d)
        if n == 0:
            return 0
        if m == 1:                              # to let others go on meanwhile would take longer
            self.measure_rows(w, n)
        elif self.city_block or self.C != NULL:
            with nogil:
                self.measure_rows(w, n)
        else:
            matmul(scratch.array(<char*> w.rows, m, d, DOUBLE), self.points[:n].T,
                   scratch.array(<char*> w.table, m, w.stride, DOUBLE)[:, :n])
            with nogil:
                for i in range(m):
                    ok_distance_row(w.table + i * w.stride, self.q, w.squares[i], 1.0, w.table + i * w.stride, n)

    cdef void measure_rows(self, Block* w, Py_ssize_t n) noexcept nogil:
        """The same without numpy; of many features for a single row. O(m n d)."""
        cdef Py_ssize_t d = self.n_features
        if self.city_block:
            ok_l1_block(w.rows, w.m, self.P, n, d, w.table, w.stride)
        elif self.C != NULL:
            ok_distance_block(w.rows, w.squares, w.m, self.C, self.capacity, self.q, n, d, w.table, w.stride)
        else:
            ok_times_rows(self.P, d, n, d, w.rows, w.table)
            ok_distance_row(w.table, self.q, w.squares[0], 1.0, w.table, n)

    cdef void measure_each_other(self, Block* w) noexcept nogil:
        """Distances of the rows of a block to each other. O(m^2 d)."""
        cdef Py_ssize_t i, m = w.m, d = self.n_features
        if self.city_block:
            ok_l1_block(w.rows, m, w.rows, m, d, w.own, m)
        elif self.C != NULL:
            ok_transpose(w.rows, d, m, d, w.transposed, m)
            ok_distance_block(w.rows, w.squares, m, w.transposed, m, w.squares, m, d, w.own, m)
        else:
            for i in range(m):
                ok_times_rows(w.rows, d, m, d, w.rows + i * d, w.own + i * m)
                ok_distance_row(w.own + i * m, w.squares, w.squares[i], 1.0, w.own + i * m, m)

    def distances(self, const double[:, ::1] X):
        """Squared or city-block distances of rows to those that are kept, (len(X), n)."""
        cdef LocalScratch scratch = LocalScratch()
        cdef Py_ssize_t m = X.shape[0], n = self.n
        scratch.reserve(self, m, n, 0, False)
        if m:
            self.measure(scratch, &X[0, 0] if self.n_features else NULL, n)
        return scratch.array(<char*> scratch.block.table, m, n, DOUBLE).copy()

    # ---- Learning -----------------------------------------------------------------------------

    cdef Py_ssize_t most_rows(self) noexcept:
        return max(8, min(PIECE, MOST // max(1, min(self.t, self.size))))

    cdef int open(self, const double* X, Py_ssize_t m, Py_ssize_t outputs) except -1:
        """Get ready to learn m rows, which have so many outputs; nothing that counts changes. O(m (n + m) d)."""
        cdef Py_ssize_t n = self.n, columns = min(self.size, n + m)
        cdef LocalScratch scratch = self.scratch
        scratch.block.m = 0
        if self.t == 0:
            origin = np.empty(self.n_features)
            memcpy(<double*> array_data(origin), X, self.n_features * sizeof(double))
            self.start_at(origin, self.running_errors)
        self.reserve(columns)
        scratch.reserve(self, m, columns, outputs, True)
        self.outputs = outputs
        self.measure(scratch, X, n)
        if m > 1:
            with nogil:
                self.measure_each_other(&scratch.block)

    cdef void test_row(self, Py_ssize_t i, double* scores, double* deviations) noexcept nogil:
        """Scores and deviations for row i of the block, after the rows before it. O(n + m)."""
        cdef Block* w = &self.scratch.block
        cdef Py_ssize_t s
        cdef double* distance = w.table + i * w.stride
        for s in range(i):
            if w.slots[s] >= 0:
                distance[w.slots[s]] = w.own[i * w.m + s]
        self.average(distance, min(self.t, self.size), self.errors, w, scores, self.outputs, deviations)

    cdef void train_row(self, Py_ssize_t i, const double* y, double weight, const double* scores) noexcept nogil:
        """Learn row i, for which these were the scores. O(d)."""
        cdef Block* w = &self.scratch.block
        cdef Py_ssize_t slot = self.slot_of(self.t)
        w.slots[i] = slot
        self.t += 1
        self.learn_errors(scores, y, weight)
        if slot >= 0:
            self.answer(slot, y, weight)
            self.put(slot, w.rows + i * self.n_features, w.squares[i])

    cdef void hold_row(self, Py_ssize_t i) noexcept nogil:
        """Row i has come, and is not among those that may be kept."""
        self.scratch.block.slots[i] = -1

    cdef void answer(self, Py_ssize_t slot, const double* y, double weight) noexcept nogil:
        """The row of a slot says y from now on. O(targets)."""
        memcpy(self.V + slot * self.targets, y, self.targets * sizeof(double))
        self.weighted += <Py_ssize_t> (weight != 1.0) - <Py_ssize_t> (self.w[slot] != 1.0)
        self.w[slot] = weight

    cdef void put(self, Py_ssize_t slot, const double* x, double square) noexcept nogil:
        """A row into a slot. O(d)."""
        cdef Py_ssize_t j
        memcpy(self.P + slot * self.n_features, x, self.n_features * sizeof(double))
        self.q[slot] = square
        if self.C != NULL:
            for j in range(self.n_features):
                self.C[j * self.capacity + slot] = x[j]

    cdef void learn_errors(self, const double* scores, const double* y, double weight) noexcept nogil:
        """Fading sums of squared errors after a row. O(targets)."""
        cdef Py_ssize_t j, targets = self.targets
        if self.task == NUMBERS:
            for j in range(targets):
                self.errors[j] = FADING * self.errors[j] + weight * (y[j] - scores[j]) ** 2
            self.errors[targets] = FADING * self.errors[targets] + weight

    cdef void commit(self) noexcept nogil:
        """The block is over. O(1)."""
        self.scratch.block.m = 0

    # ---- Predicting ---------------------------------------------------------------------------

    cdef int evaluate(self, const double* X, Py_ssize_t m, Py_ssize_t outputs, double* scores,
                      double* deviations) except -1:
        """Scores and deviations as of now; several threads may ask. O(m n d)."""
        cdef Py_ssize_t i, first = 0, rows, n = self.n
        cdef LocalScratch scratch = None
        cdef Block* w
        with cython.critical_section(self):
            if self.spare:
                scratch = self.spare.pop()
        if scratch is None:
            scratch = LocalScratch()
        w = &scratch.block
        while first < m:
            rows = min(m - first, self.most_rows())
            scratch.reserve(self, rows, n, outputs, False)
            self.measure(scratch, X + first * self.n_features, n)
            if rows == 1:
                self.average(w.table, n, self.errors, w, scores + first * outputs, outputs,
                             deviations + first * self.targets)
            else:
                with nogil:
                    for i in range(rows):
                        self.average(w.table + i * n, n, self.errors, w, scores + (first + i) * outputs, outputs,
                                     deviations + (first + i) * self.targets)
            first += rows
        with cython.critical_section(self):
            if len(self.spare) < MOST_SPARE:
                self.spare.append(scratch)

    cdef void average(self, double* distance, Py_ssize_t n, const double* errors, Block* w, double* out,
                      Py_ssize_t outputs, double* spread) noexcept nogil:
        """What rows at these distances say together; distances of rows without weight are lost."""
        cdef Py_ssize_t i, j, chosen
        cdef double nearest, rate = self.rate, total, all_weights = 0.0
        cdef double effective, mean, square, running_square
        cdef Py_ssize_t* index = w.index
        cdef double* share = w.share
        if self.weighted:
            for i in range(n):
                distance[i] = distance[i] if self.w[i] > 0.0 else INFINITY
        nearest = ok_least(distance, n)
        if nearest == INFINITY:
            for j in range(outputs):
                out[j] = -1.0 if self.task == LABELS else 0.0
            for j in range(self.targets):
                spread[j] = 1.0
            return
        if self.neighbour:
            rate /= self.unit_of(distance, n, index)
        chosen = ok_nearby(distance, n, nearest + NEGLIGIBLE / rate, nearest, rate, index, share)
        ok_exp_array(share, share, chosen)
        if self.weighted:
            for i in range(chosen):
                share[i] *= self.w[index[i]]
        total = ok_dot(share, w.ones, chosen)
        if self.task == LABELS:
            self.vote(chosen, total, w, out, outputs)
            spread[0] = 1.0
        elif self.task == NUMBERS:
            effective = 0.0
            for i in range(chosen):             # squares of the weights themselves may overflow, or be 0
                effective += (share[i] / total) * (share[i] / total)
            effective = 1.0 / effective
            for j in range(self.targets):
                ok_gather(self.V + j, self.targets, index, chosen, w.gathered)
                mean = ok_dot(share, w.gathered, chosen) / total
                square = ok_scatter(share, w.gathered, mean, chosen) / total
                out[j] = mean
                running_square = errors[j] / errors[self.targets] if errors[self.targets] > 0.0 else 1.0
                spread[j] = sqrt((effective * square + running_square) / (effective + 1.0))
        else:
            for i in range(n):
                all_weights += self.w[i]
            # of a density: the kernel has the integral 1
            out[0] = log(total / all_weights) - rate * nearest + self.n_features * self.log_height(rate)
            spread[0] = 1.0

    cdef void vote(self, Py_ssize_t n, double total, Block* w, double* out, Py_ssize_t outputs) noexcept nogil:
        """2 p - 1 for the classes. Neighbouring rows often have one label, and each sum would wait for the one before:
        four do not."""
        cdef Py_ssize_t i, j
        cdef double* sums = w.sums
        for j in range(4 * outputs):
            sums[j] = 0.0
        for i in range(n):
            sums[(i & 3) * outputs + <Py_ssize_t> self.V[w.index[i]]] += w.share[i]
        for j in range(outputs):
            out[j] = 2.0 * (sums[j] + sums[outputs + j] + sums[2 * outputs + j] + sums[3 * outputs + j]) / total - 1.0

    cdef double log_height(self, double rate) noexcept nogil:
        """Logarithm of the kernel's height per feature: sqrt(rate / pi), or rate / 2."""
        return log(0.5 * rate) if self.city_block else 0.5 * log(rate / 3.141592653589793)

    cdef double unit_of(self, const double* distance, Py_ssize_t n, Py_ssize_t* index) noexcept nogil:
        """Distance to the row that is so near; to the farthest if there are fewer, 1 if there is none. Never 0."""
        cdef double best[NEAREST]
        cdef Py_ssize_t found = ok_smallest(distance, n, self.neighbour, index, best)
        if found == 0:
            return 1.0
        return best[found - 1] if best[found - 1] > 1e-100 else 1e-100

    # ---- For Python ---------------------------------------------------------------------------

    def rescaled(self, ratio):
        """What `take_rescaled` wants to multiply the features of all rows that are kept."""
        points, origin = self.points * ratio, None if self.origin is None else self.origin * ratio
        columns = None if self.columns is None else np.ascontiguousarray(points.T)
        return points, origin, squares_of(points), columns

    def take_rescaled(self, tuple rescaled):
        """Go on with rescaled rows. O(1)."""
        points, origin, squares, columns = rescaled
        if origin is not None:
            self.start_at(origin, self.running_errors)
        self.keep(points, squares, self.values, self.weights, columns)

    FIELDS = (
        Count("t"), Array("points", float, ("kept", "n_features")), Array("values", float, ("kept", "targets")),
        Array("weights", float, ("kept",), not_negative), Buffer("running_errors", not_negative),
        Array("origin", float, ("n_features",), optional=True))

    def stored(self):
        """The rows that are kept; before the first one they have no origin."""
        n = self.n
        return {"points": self.points[:n], "values": self.values[:n], "weights": self.weights[:n],
                "origin": self.origin if self.t else None}

    def fits(self, state):
        """There are as many rows as are kept, and their lengths are numbers."""
        points, values, origin = state["points"], state["values"], state["origin"]
        if len(points) != min(state["t"], self.size) or (origin is None) != (state["t"] == 0):
            raise ValueError("points or origin are not those of t rows")
        if self.task == LABELS and not ((values >= 0) & (values == np.floor(values))).all():
            raise ValueError("the rows that are kept have labels that are none")
        with np.errstate(over="ignore"):
            if not np.isfinite(squares_of(points)).all() or origin is not None and not np.isfinite(origin @ origin):
                raise ValueError("the rows that are kept are too large")

    def resume(self, state):
        points, weights, origin = state["points"], state["weights"], state["origin"]
        n = len(points)
        self.t = self.scratch.block.m = 0
        self.reserve(n)
        self.points[:n], self.values[:n], self.squares[:n] = points, state["values"], squares_of(points)
        if self.columns is not None:
            self.columns[:, :n] = points.T
        self.weights[:n], self.weights[n:] = weights, 1.0       # also of slots that are free
        self.start_at(np.zeros(self.n_features) if origin is None else origin.copy(), state["running_errors"].copy())
        self.weighted, self.t = np.count_nonzero(weights != 1.0), state["t"]

    def _check(self):
        n = self.n
        assert len(self.points) == len(self.values) == len(self.weights) == self.capacity >= n
        assert self.columns is None or np.array_equal(self.columns[:, :n], self.points[:n].T)
        assert np.allclose(self.squares[:n], np.einsum("ij,ij->i", self.points[:n], self.points[:n]))
        assert self.weighted == np.count_nonzero(self.weights[:n] != 1.0) == np.count_nonzero(self.weights != 1.0)


@cython.final
cdef class Smoothing(Backend):
    """Local averages behind a running scaler, with a threshold where they are densities: what a `Smoother` has learned.

    Parameters
    ----------
    task : "classes", "numbers" or "novelty"
    rows : dict
        Arguments of `LocalRows`.
    memory : float
        Of the scaler; 0 for none.
    nu : float
        The share of scores below the threshold; for novelty.
    """

    cdef readonly LocalRows rows
    cdef readonly Scaler scaler             # of rows, or None
    cdef readonly Ranks past                # scores so far, for novelty, or None
    cdef readonly double nu                 # share of scores below the threshold
    cdef public long long held              # rows that were held back from those that are kept
    cdef readonly long long young           # rows after which the sample of scores begins anew
    # The block
    cdef bint is_open
    cdef object scratch                     # owns these:
    cdef double* latest                     # scores of the row that was tested,
    cdef double* unwanted                   # and its deviations, where nobody wants them
    cdef const double* y
    cdef const double* weights
    cdef Py_ssize_t outputs

    def __init__(self, str task, rows, double memory, double nu=0.0):
        if not 0.0 <= nu < 1.0:
            raise ValueError("nu is not a share")
        Backend.__init__(self, task, 0 if task == "classes" else rows["targets"])
        self.nu, self.n_features = nu, rows["n_features"]
        self.rows = LocalRows({"numbers": "numbers", "classes": "labels", "novelty": "density"}[task], **rows)
        self.scaler = Scaler(rows["n_features"], memory) if memory else None
        self.intervals = IntervalTracker(self.targets if task == "numbers" else 0)
        self.past = Ranks(1, SCORES) if task == "novelty" else None
        self.young = min(YOUNG, rows["size"])

    members = ()                                # it is not made of others

    @property
    def t(self):
        """Number of rows learned."""
        return int(self.rows.t + self.held)

    # ---- Learning -----------------------------------------------------------------------------

    cdef int detach(self) except -1:
        if self.is_open:
            self.commit(0)
        return Backend.detach(self)

    cdef Py_ssize_t rows_at_once(self) except -1:
        cdef Py_ssize_t most = self.rows.most_rows()
        cdef long long t = self.rows.t + self.held
        return min(most, self.young - t) if t < self.young else most    # where the scores begin anew

    cdef int open(self, Py_ssize_t first, Py_ssize_t n, const double* y, const double* weights,
                  Py_ssize_t labels) except -1:
        cdef Py_ssize_t d = self.rows.n_features, outputs = self.outputs_for(labels)
        cdef const double* X = self.data + first * d
        if self.scratch is None or len(self.scratch) < n * d + outputs + max(1, self.targets):
            self.scratch = np.empty(n * d + outputs + max(1, self.targets))
        cdef double* scaled = <double*> array_data(self.scratch)
        if self.scaler is not None:
            self.scaler.open_rows(<const char*> X, 0, n, <char*> scaled)
        try:
            if self.scaler is not None:
                if not self.scaler.is_finite():
                    raise too_large(np.asarray(<const double[:n, :d]> X))
                X = scaled
            self.rows.open(X, n, outputs)
        except BaseException:
            if self.scaler is not None:
                self.scaler.commit(0)
            raise
        self.latest, self.unwanted = scaled + n * d, scaled + n * d + outputs
        self.y, self.weights, self.outputs, self.is_open = y, weights, outputs, True

    cdef bint test(self, Py_ssize_t i, double* scores, double* deviations) noexcept nogil:
        cdef double* spread = deviations if deviations != NULL and self.past is None else self.unwanted
        self.rows.test_row(i, self.latest, spread)
        memcpy(scores, self.latest, self.outputs * sizeof(double))
        if deviations != NULL and self.past is not None:
            deviations[0] = -INFINITY if self.rows.t == 0 else self.past.quantile(self.nu)  # the first is not novel
        return True

    cdef bint train(self, Py_ssize_t i) noexcept nogil:
        cdef double weight = 1.0 if self.weights == NULL else self.weights[i], rank
        cdef const double* y = self.y + i * max(1, self.targets)
        cdef bint is_first = self.rows.t == 0
        if self.holds:
            self.held += 1
            self.rows.hold_row(i)
        else:
            self.rows.train_row(i, y, weight, self.latest)
        if self.past is not None:
            if not is_first:                    # nothing is known at the first row
                self.past.learn_row(self.latest, &rank)
            if self.rows.t + self.held == self.young:
                self.past.restart(LATEST)
        elif self.targets == 0:
            self.n_seen = max(self.n_seen, <Py_ssize_t> y[0] + 1)
        return True

    cdef void commit(self, Py_ssize_t n) noexcept:
        if self.scaler is not None:
            self.scaler.commit(n)
        self.rows.commit()
        self.is_open = self.holds = False

    # ---- Predicting ---------------------------------------------------------------------------

    cdef int evaluate(self, examples, Py_ssize_t n, double* scores, Py_ssize_t stride, double* deviations,
                      Py_ssize_t spread) except -1:
        cdef Py_ssize_t i, d = self.rows.n_features, outputs = self.outputs_now(), g = max(1, self.targets)
        cdef const double* X = <const double*> array_data(examples)
        capacity = np.empty(n * (d + outputs + g) + 2 * d)
        cdef double* scaled = <double*> array_data(capacity)
        cdef double* answers = scaled + n * d
        cdef double* found = answers + n * outputs
        if self.scaler is not None and self.scaler.count > 0.0:
            self.scaler.scale_dense(<const char*> X, n, found + n * g, <char*> scaled)
            X = scaled
        self.rows.evaluate(X, n, outputs, answers, found)
        for i in range(n):
            memcpy(scores + i * stride, answers + i * outputs, outputs * sizeof(double))
            if deviations != NULL:
                memcpy(deviations + i * spread, found + i * g, g * sizeof(double))

    def threshold(self):
        """The score below which a share nu of all has been."""
        return self.past.quantile(self.nu)

    def scaled(self, X):
        """Rows as they are compared with those that are kept."""
        return X if self.scaler is None or not self.scaler.count else self.scaler.scaled(X)

    def shares(self, row):
        """How much each row that is kept counts for what is said of one row, shape (1, features); they sum to 1."""
        rows, n = self.rows, self.rows.n
        distances = rows.distances(np.ascontiguousarray(self.scaled(row)))[0]
        counted = rows.weights[:n] > 0.0
        nearest = np.sort(distances[counted])[: rows.neighbour]
        unit = nearest[len(nearest) - 1] if rows.neighbour else 1.0
        found = rows.weights[:n] * np.exp(-rows.rate / max(unit, 1e-100) * (distances - distances[counted].min()))
        return found / found.sum()

    def kept(self):
        """(rows, what they say) that are kept, in the units of the features where they are not scaled."""
        n = self.rows.n
        if n == 0:
            return np.zeros((0, 1)), np.zeros((0, 1))
        return self.rows.points[:n] + self.rows.origin, self.rows.values[:n]

    # ---- State --------------------------------------------------------------------------------

    FIELDS = Count("n_seen"), Count("held"), Part("intervals"), Part("rows"), Part("scaler"), Part("past")

    def fits(self, state):
        """Rows that are kept say labels that were seen."""
        if not self.targets and state["rows"]["values"].max(initial=-1) >= state["n_seen"]:
            raise ValueError("the rows that are kept have labels that are none")
