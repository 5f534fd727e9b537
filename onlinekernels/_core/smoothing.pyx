"""Local averages: votes, means or densities of the rows near an example, by kernel weights.

    f(x) = sum_i k(x_i, x) y_i / sum_i k(x_i, x)

over rows that are kept in slots. Weights are taken in logarithms, relative to the nearest row's, so that an example far from
all rows still has nearest neighbours. A piece of examples has all its distances by one matrix product; those of rows
that enter within the piece are patched from the piece's own, so chunks are exact.
"""
import numpy as np
from libc.math cimport INFINITY, log, sqrt
from libc.string cimport memcpy
from onlinekernels._core.arrays import check_array
from onlinekernels._core.formulas.lots cimport reservoir_slot
from onlinekernels._core.linalg cimport ok_distance_block
from onlinekernels._core.formulas.vecmath cimport (ok_distance_row, ok_dot, ok_exp_array, ok_gather, ok_l1_block, ok_least, ok_nearby,
                                                   ok_scatter, ok_smallest)

cdef enum:
    NUMBERS = 0
    LABELS = 1
    DENSITY = 2
    PIECE = 128         # examples at most whose distances are taken together,
    MOST = 320000       # and distances: a piece of few rows costs more than these
    NEAREST = 64        # neighbours that may be the unit of distances
    NARROW = 32         # features for which distances by tiles take less time than a matrix product

cdef double NEGLIGIBLE = 23.0       # weights below exp(-23), 1e-10, of the nearest row's do not count
cdef double FADING = 0.99           # of the mean squared error that a lone neighbour's answer is expected to have

TASKS = {"numbers": NUMBERS, "labels": LABELS, "density": DENSITY}


cdef class LocalRows:
    """Rows in slots, and local averages of what they say.

    Parameters
    ----------
    task : "numbers", "labels" or "density"
    n_features : int
    targets : int
        Numbers that a row says; 1 for labels.
    rate : float
        k = exp(-rate |x - z|^2), or exp(-rate |x - z|_1).
    city_block : bool
        Whether distances are |x - z|_1.
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
    cdef readonly long long memory, t
    cdef readonly unsigned long long seed
    cdef readonly object origin             # what rows are kept about: the first one
    cdef readonly object points, squares, values, weights, usual
    cdef object columns                     # points, with a row for each feature; None if they are to be turned

    def __init__(self, task, Py_ssize_t n_features, Py_ssize_t targets, double rate, bint city_block, Py_ssize_t size,
                 bint uniform=False, long long memory=0, unsigned long long seed=0, Py_ssize_t neighbour=0):
        if not 0 <= neighbour <= NEAREST or size < 1:  # they may come from a file
            raise ValueError("the number of rows, or the neighbour whose distance is the unit, makes no sense")
        self.task = TASKS[task]
        self.n_features, self.targets, self.rate, self.city_block = n_features, targets, rate, city_block
        self.size, self.uniform, self.memory, self.seed = size, uniform, memory, seed
        self.neighbour = neighbour
        self.origin = None
        self.make_room(0)
        self.usual = np.zeros(targets + 1)  # fading sums of squared errors, and of their weights

    cdef make_room(self, Py_ssize_t n):
        """Room for n rows, or a few more; nothing that is kept changes."""
        cdef Py_ssize_t room = min(self.size, max(2 * n, 16))
        if self.points is not None and len(self.points) >= min(n, self.size):
            return
        found = []
        for old, shape in ((self.points, (room, self.n_features)), (self.squares, (room,)), (self.values, (room, self.targets)),
                           (self.weights, (room,))):
            array = np.zeros(shape)
            if old is not None:
                array[:len(old)] = old
            found.append(array)
        self.points, self.squares, self.values, self.weights = found
        self.columns = None

    @property
    def n(self):
        """How many rows are kept."""
        return min(self.t, self.size)

    def slots(self, Py_ssize_t n):
        """Where the next n rows go; -1 for nowhere."""
        cdef Py_ssize_t i
        cdef Py_ssize_t[::1] found = np.empty(n, dtype=np.intp)
        for i in range(n):
            if self.uniform:
                found[i] = reservoir_slot(self.t + i, self.size, self.memory, self.seed)
            else:
                found[i] = <Py_ssize_t> ((self.t + i) % self.size)
        return np.asarray(found)

    def about(self, X):
        """Rows about the origin."""
        return np.ascontiguousarray(X - self.origin)

    def distances(self, X, points, squares, found=None, columns=None):
        """Squared or city-block distances of rows to points, all about the origin; in the first columns of `found`, if given.

        `columns` are these points, and perhaps more behind them, with a row for each feature.
        """
        cdef const double[:, ::1] left = X, right
        cdef double[:, ::1] out
        cdef const double[::1] own, other
        cdef Py_ssize_t i, m = len(X), n = len(points)
        found = np.empty((m, n)) if found is None else found
        if m == 0 or n == 0:
            return found
        out = found
        if self.city_block:
            right = points
            with nogil:
                ok_l1_block(&left[0, 0], m, &right[0, 0], n, self.n_features, &out[0, 0], out.shape[1])
            return found
        own, other = np.einsum("ij,ij->i", X, X), squares
        if 0 < self.n_features <= NARROW:
            right = np.ascontiguousarray(points.T) if columns is None else columns
            with nogil:
                ok_distance_block(&left[0, 0], &own[0], m, &right[0, 0], right.shape[1], &other[0], n, self.n_features, &out[0, 0],
                                  out.shape[1])
            return found
        np.matmul(X, points.T, out=found[:, :n])
        with nogil:
            for i in range(m):
                ok_distance_row(&out[i, 0], &other[0], own[i], 1.0, &out[i, 0], n)
        return found

    def turned(self):
        """All points there is room for, with a row for each feature; None where nobody looks at them so."""
        if self.columns is None and not self.city_block and self.n_features <= NARROW:
            return np.ascontiguousarray(self.points.T)      # several threads may predict: only who learns keeps them
        return self.columns

    def learn(self, X, Y, weights, scores, deviations):
        """Scores and deviations just before each row, which is learned; all is checked, and Y has a row for each.

        Each piece is all or nothing: `t` says how far it got.
        """
        cdef Py_ssize_t done = 0, rows
        while done < len(X):
            rows = min(len(X) - done, self.rows_at_once())
            part = slice(done, done + rows)
            self.piece(X[part], Y[part], weights[part], scores[part], deviations[part])
            done += rows

    def rows_at_once(self):
        """How many rows a piece may have."""
        return max(8, min(PIECE, MOST // max(1, self.n)))

    def piece(self, X, Y, weights, scores, deviations):
        """Learn rows that are few enough to be learned at once."""
        cdef Py_ssize_t b = len(X), before = self.n, outputs = scores.shape[1], i, j, s, slot, filled = before, columns
        if self.t == 0:
            self.origin = X[0].copy()
        X = self.about(X)
        slots = self.slots(b)
        columns = min(self.size, before + b)
        self.make_room(columns)
        found = np.empty((b, columns))
        self.columns = turned = self.turned()
        self.distances(X, self.points[:before], self.squares[:before], found, turned)
        own_squares = np.einsum("ij,ij->i", X, X)
        cdef double[:, ::1] table = found
        cdef const double[:, ::1] own = self.distances(X, X, own_squares), Xs = X, Ys = np.ascontiguousarray(Y, dtype=float)
        cdef const double[::1] ws = np.ascontiguousarray(weights, dtype=float), xx = own_squares
        cdef const Py_ssize_t[::1] place = slots
        # What is kept changes while the piece is looked at: here, and for good at its end
        said, counts, errors = self.values[:columns].copy(), self.weights[:columns].copy(), self.usual.copy()
        cdef double[:, ::1] values = said, out = scores, spread = deviations
        cdef double[::1] weight = counts, usual = errors
        cdef LocalScratch scratch = LocalScratch(columns, outputs)
        cdef bint plain = bool((counts[:before] == 1.0).all() and (weights == 1.0).all())
        cdef double[:, ::1] kept = self.points, kept_values = self.values, kept_columns = turned
        cdef double[::1] kept_squares = self.squares, kept_weights = self.weights, kept_usual = self.usual
        with nogil:
            for i in range(b):
                for s in range(i):
                    if place[s] >= 0:
                        table[i, place[s]] = own[i, s]
                self.average(&table[i, 0], &values[0, 0], &weight[0], filled, plain, &usual[0], scratch, &out[i, 0], outputs,
                             &spread[i, 0])
                if self.task == NUMBERS:
                    self.learn_errors(&out[i, 0], &Ys[i, 0], ws[i], &usual[0])
                slot = place[i]
                if slot >= 0:
                    memcpy(&values[slot, 0], &Ys[i, 0], self.targets * sizeof(double))
                    weight[slot] = ws[i]
                    filled = max(filled, slot + 1)
            for i in range(b):
                slot = place[i]
                if slot >= 0:
                    memcpy(&kept[slot, 0], &Xs[i, 0], self.n_features * sizeof(double))
                    memcpy(&kept_values[slot, 0], &Ys[i, 0], self.targets * sizeof(double))
                    kept_squares[slot], kept_weights[slot] = xx[i], ws[i]
                    if kept_columns is not None:
                        for j in range(self.n_features):
                            kept_columns[j, slot] = Xs[i, j]
            kept_usual[:] = usual
            self.t += b

    cdef void learn_errors(self, const double* score, const double* y, double weight, double* usual) noexcept nogil:
        cdef Py_ssize_t j
        for j in range(self.targets):
            usual[j] = FADING * usual[j] + weight * (y[j] - score[j]) ** 2
        usual[self.targets] = FADING * usual[self.targets] + weight

    def scores(self, X, Py_ssize_t outputs):
        """(scores, deviations) as of now."""
        found, deviations = np.zeros((len(X), outputs)), np.zeros((len(X), self.targets))
        cdef double[:, ::1] out = found, spread = deviations, values = self.values, table
        cdef double[::1] weight = self.weights, usual = self.usual
        cdef Py_ssize_t i, begin, rows, n = self.n
        cdef LocalScratch scratch = LocalScratch(max(1, n), outputs)
        cdef bint plain = bool((self.weights[:n] == 1.0).all())
        turned = self.turned()
        begin = 0
        while begin < len(X):
            rows = min(len(X) - begin, self.rows_at_once())
            here = self.about(X[begin:begin + rows]) if n else np.zeros((rows, self.n_features))
            near = self.distances(here, self.points[:n], self.squares[:n], None, turned)
            table = near if n else np.zeros((rows, 1))
            with nogil:
                for i in range(rows):
                    self.average(&table[i, 0], &values[0, 0], &weight[0], n, plain, &usual[0], scratch, &out[begin + i, 0], outputs,
                                 &spread[begin + i, 0])
            begin += rows
        return found, deviations

    cdef void average(self, double* distance, const double* values, const double* weight, Py_ssize_t n, bint plain,
                      const double* usual, LocalScratch scratch, double* out, Py_ssize_t outputs, double* spread) noexcept nogil:
        """What rows at these distances say together; distances of rows without weight are lost. `plain`: all weights are 1."""
        cdef Py_ssize_t i, j, chosen
        cdef double nearest, rate = self.rate, total, all_weights = 0.0
        cdef double effective, mean, square, usual_square
        cdef Py_ssize_t* index = scratch.index
        cdef double* share = scratch.share
        if not plain:
            for i in range(n):
                distance[i] = distance[i] if weight[i] > 0.0 else INFINITY
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
        if not plain:
            for i in range(chosen):
                share[i] *= weight[index[i]]
        total = ok_dot(share, scratch.ones, chosen)
        if self.task == LABELS:
            self.vote(values, index, share, chosen, total, scratch, out, outputs)
            spread[0] = 1.0
        elif self.task == NUMBERS:
            effective = total * total / ok_dot(share, share, chosen)
            for j in range(self.targets):
                ok_gather(values + j, self.targets, index, chosen, scratch.said)
                mean = ok_dot(share, scratch.said, chosen) / total
                square = ok_scatter(share, scratch.said, mean, chosen) / total
                out[j] = mean
                usual_square = usual[j] / usual[self.targets] if usual[self.targets] > 0.0 else 1.0
                spread[j] = sqrt((effective * square + usual_square) / (effective + 1.0))
        else:
            for i in range(n):
                all_weights += weight[i]
            # of a density: the kernel has the integral 1
            out[0] = log(total / all_weights) - rate * nearest + self.n_features * self.log_height(rate)
            spread[0] = 1.0

    cdef void vote(self, const double* values, const Py_ssize_t* index, const double* share, Py_ssize_t n, double total,
                   LocalScratch scratch, double* out, Py_ssize_t outputs) noexcept nogil:
        """2 p - 1 for the classes. Neighbouring rows often have one label, and each sum would wait for the one before: four do not."""
        cdef Py_ssize_t i, j
        cdef double* sums = scratch.sums
        for j in range(4 * outputs):
            sums[j] = 0.0
        for i in range(n):
            sums[(i & 3) * outputs + <Py_ssize_t> values[index[i]]] += share[i]
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

    def rescale(self, ratio):
        """Multiply the features of all rows that are kept. All or nothing, but for the last assignment."""
        points, origin = self.points * ratio, self.origin * ratio
        squares = np.einsum("ij,ij->i", points, points)
        self.points, self.squares, self.origin, self.columns = points, squares, origin, None

    def state(self):
        """What is kept, by name."""
        n = self.n
        found = {"t": int(self.t), "points": self.points[:n].copy(), "values": self.values[:n].copy(),
                 "weights": self.weights[:n].copy(), "usual": self.usual.copy()}
        if self.t:
            found["origin"] = self.origin.copy()
        return found

    def restore(self, state):
        """Go on from what `state` gave; ValueError if it makes no sense."""
        t = state["t"]
        if type(t) is not int or t < 0 or (t > 0) != ("origin" in state):
            raise ValueError("t is not a number of rows")
        n = min(t, self.size)
        points = check_array(state["points"], "points", np.float64, (n, self.n_features))
        values = check_array(state["values"], "values", np.float64, (n, self.targets))
        weights = check_array(state["weights"], "weights", np.float64, (n,))
        usual = check_array(state["usual"], "usual", np.float64, (self.targets + 1,))
        origin = check_array(state["origin"], "origin", np.float64, (self.n_features,)) if t else None
        if (weights < 0.0).any() or (usual < 0.0).any():
            raise ValueError("the weights of rows are negative")
        if self.task == LABELS and not ((values >= 0) & (values == np.floor(values))).all():
            raise ValueError("the rows that are kept have labels that are none")
        with np.errstate(over="ignore"):
            squares = np.einsum("ij,ij->i", points, points)
            if not np.isfinite(squares).all() or origin is not None and not np.isfinite(origin @ origin):
                raise ValueError("the rows that are kept are too large")
        self.t = 0
        self.make_room(n)
        self.points[:n], self.values[:n], self.weights[:n] = points, values, weights
        self.squares[:n], self.columns = squares, None
        self.usual, self.origin, self.t = usual.copy(), None if origin is None else origin.copy(), t

    def _check(self):
        """Assert what must always hold."""
        assert len(self.points) == len(self.values) == len(self.weights) >= self.n
        assert self.columns is None or np.array_equal(self.columns[:, :self.n], self.points[:self.n].T)
        assert np.allclose(self.squares[:self.n], np.einsum("ij,ij->i", self.points[:self.n], self.points[:self.n]))


cdef class LocalScratch:
    """Memory of one call."""

    cdef Py_ssize_t* index
    cdef double* share
    cdef double* said
    cdef double* ones
    cdef double* sums
    cdef object arrays

    def __init__(self, Py_ssize_t n, Py_ssize_t outputs):
        cdef Py_ssize_t[::1] index = np.empty(n + 1, dtype=np.intp)     # one is written behind the last
        cdef double[:, ::1] rows = np.ones((3, n + 1))
        cdef double[::1] sums = np.empty(4 * outputs + 1)
        self.arrays = index, rows, sums
        self.index, self.share, self.said, self.ones, self.sums = &index[0], &rows[0, 0], &rows[1, 0], &rows[2, 0], &sums[0]
