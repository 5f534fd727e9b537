"""Targets of a regression, scaled as they come: the model learns numbers of the size of 1 and predicts in the user's
units."""
import numpy as np
from libc.math cimport asinh, cosh, fabs, fmax, fmin, isfinite, sinh, sqrt
from libc.string cimport memcpy
from onlinekernels._core.arrays cimport array_data
from onlinekernels._core.schema import Buffer, Number, at_least, not_negative
from onlinekernels._core.formulas.moments cimport MANY, advance_moments, divisor, not_farther

# deviations from the mean beyond which a target of a robust scaler counts for no more
cdef double FARTHEST = 6.0
cdef double LARGEST_LOG = 700.0     # whose sinh is a number


cdef class TargetScaler:
    """Running mean and deviation of each target.

    A target is learned scaled by what is known with it. A prediction is brought back to its units by what was known
    before its target came. That may be said to be `exact`: the prediction is then the target that would become the
    score. Both differ by a part 1 / n of the deviation, which matters to models that are better than that.

    Parameters
    ----------
    targets : int
    kind : float or "log"
        The memory; "log": log(y + sqrt(y^2 + 1)) = arcsinh(y) is scaled instead, with memory 1.
    exact : bool
    robust : bool
        A target far from all others does not move the mean and the deviation much; for models that can take it as it
        is.

    >>> scaler = TargetScaler(1)
    >>> scaled, *known = scaler.advance(np.array([10.0, 14.0, 12.0]))
    >>> scaled.tolist(), [part.ravel().tolist() for part in known[:2]]
    ([0.0, 1.0, 0.0], [[0.0, 10.0, 12.0], [1.0, 1.0, 2.0]])
    >>> scaler.restored(np.array([[0.0], [1.0]])).round(2).ravel().tolist()
    [12.0, 13.63]
    """

    FIELDS = (
        Number("count", at_least(0.0)),
        Buffer("mean", of=lambda scaler: scaler.numbers[0]),
        Buffer("square", not_negative, of=lambda scaler: scaler.numbers[1]))

    def fits(self, state):
        """Nothing comes of no targets."""
        if state["count"] == 0.0 and (state["mean"].any() or state["square"].any()):
            raise ValueError("count is 0, and mean or square are not")

    def __init__(self, Py_ssize_t targets, kind=1.0, bint exact=False, bint robust=False):
        self.targets, self.kind, self.exact, self.robust = targets, kind, exact, robust
        self.is_log = isinstance(kind, str)
        self.memory = 1.0 if self.is_log else kind
        self.numbers = np.zeros((4, targets))
        self.mean = <double*> array_data(self.numbers)
        self.square = self.mean + targets

    @classmethod
    def fixed(cls, centre, unit):
        """One that learns nothing: targets are counted from these centres, in these units."""
        cdef TargetScaler scaler = cls(len(centre))
        scaler.numbers[0], scaler.numbers[1] = centre, unit
        scaler.frozen, scaler.count = True, 1.0
        return scaler

    def copy(self, kind=None):
        """One that knows the same; of another kind if that is given."""
        cdef TargetScaler twin = TargetScaler(self.targets, self.kind if kind is None else kind, self.exact,
                                              self.robust)
        twin.numbers[:] = self.numbers
        twin.count, twin.frozen = self.count, self.frozen
        return twin

    # ---- Learning -----------------------------------------------------------------------------

    cdef int open(self, const double* y, Py_ssize_t n, const double* weights) except -1:
        """Get ready for n rows of targets: `know` notes what is known before each, `take` learns it. O(targets)."""
        cdef Py_ssize_t T = self.targets
        if self.rows < n:
            buffer = np.zeros((3 * T + 1) * n)
            self.scaled = <double*> array_data(buffer)
            self.means, self.deviations = self.scaled + n * T, self.scaled + 2 * n * T
            self.shares, self.buffer, self.rows = self.scaled + 3 * n * T, buffer, n
        self.y, self.weights, self.count_before = y, weights, self.count
        memcpy(self.mean + 2 * T, self.mean, 2 * T * sizeof(double))

    cdef void know(self, Py_ssize_t i) noexcept nogil:
        """Remember what is known before row i of the block. O(targets)."""
        cdef Py_ssize_t j, T = self.targets
        cdef double weight = 1.0 if self.weights == NULL else self.weights[i]
        cdef double count = self.memory * self.count + weight if weight > 0.0 else self.count
        self.shares[i] = weight / fmax(count, 1e-300)
        for j in range(T):
            self.means[i * T + j], self.deviations[i * T + j] = self.mean[j], self.divisor_of(j)

    cdef bint take(self, Py_ssize_t i) noexcept nogil:
        """Learn the targets of row i, and scale them; False if that overflows. O(targets)."""
        cdef Py_ssize_t j, T = self.targets
        cdef bint finite = True
        self.update(i)
        for j in range(T):
            self.scaled[i * T + j] = (self.taken(self.y[i * T + j]) - self.mean[j]) / self.divisor_of(j)
            finite = finite and isfinite(self.scaled[i * T + j]) and isfinite(self.square[j])
        return finite and isfinite(self.count)

    cdef void commit(self, Py_ssize_t n) noexcept nogil:
        """The first n rows of the block were learned, the others were not. O(n targets)."""
        cdef Py_ssize_t i, T = self.targets
        memcpy(self.mean, self.mean + 2 * T, 2 * T * sizeof(double))
        self.count = self.count_before
        for i in range(n):
            self.update(i)

    cdef void update(self, Py_ssize_t i) noexcept nogil:
        """Update means and deviations with row i of the block."""
        cdef Py_ssize_t j
        cdef double weight = 1.0 if self.weights == NULL else self.weights[i], before = self.count, y
        if weight <= 0.0 or self.frozen:
            return
        self.count = self.memory * before + weight
        for j in range(self.targets):
            y = self.taken(self.y[i * self.targets + j])
            if self.robust and weight * MANY <= self.count:
                y = not_farther(y, self.mean[j], self.square[j] / before, FARTHEST)
            advance_moments(y, weight, self.count, self.memory, self.mean + j, self.square + j)

    cdef double taken(self, double y) noexcept nogil:
        """What is scaled of a target."""
        return asinh(y) if self.is_log else y

    cdef double divisor_of(self, Py_ssize_t j) noexcept nogil:
        """What a target is divided by; 1 before the first row. O(1)."""
        if self.frozen:
            return self.square[j]
        return divisor(self.mean[j], self.square[j] / self.count if self.count > 0.0 else 0.0, 0.0)

    def after(self, Py_ssize_t n):
        """What this scaler was after n rows of the open block, another one."""
        cdef TargetScaler twin = self.copy()
        cdef Py_ssize_t T = self.targets
        memcpy(twin.mean, self.mean + 2 * T, 2 * T * sizeof(double))
        twin.count, twin.y, twin.weights = self.count_before, self.y, self.weights
        for i in range(n):
            twin.update(i)
        return twin

    # ---- Back in the units of the targets -----------------------------------------------------

    cdef double value(self, double score, double mean, double deviation, double share, double* unit) noexcept nogil:
        """What is scaled, y or arcsinh(y), for a score; unit: what a deviation of the score is multiplied by.

        A target z deviations from the mean becomes z sqrt(1 - share) / sqrt(1 + share z^2) when it is learned. No score
        of the first examples is taken to be a target far beyond all others. Beyond what a robust scaler counts it is a
        straight line.
        """
        cdef double left, z, line, scale
        if not self.exact:
            unit[0] = deviation
            return score * deviation + mean
        left = fmax(1.0 - share * (1.0 + score * score), 0.5)
        z, unit[0] = score / sqrt(left), deviation * (1.0 - share) / (left * sqrt(left))
        if self.robust and share * MANY <= 1.0:
            scale = sqrt((1.0 - share) * (1.0 + share * FARTHEST * FARTHEST))
            line = share * FARTHEST * (1.0 if score > 0.0 else -1.0 if score < 0.0 else 0.0) + score * scale
            if fabs(line) > FARTHEST:
                z, unit[0] = line, deviation * scale
        return z * deviation + mean

    cdef double target(self, double value) noexcept nogil:
        """The target of which `value` is what is scaled."""
        return sinh(fmin(fmax(value, -LARGEST_LOG), LARGEST_LOG)) if self.is_log else value

    cdef double in_units(self, double score, double mean, double deviation, double share, double* unit) noexcept nogil:
        """The target for a score; unit: what a deviation of the score is multiplied by."""
        cdef double value = self.value(score, mean, deviation, share, unit)
        if self.is_log:
            unit[0] *= cosh(fmin(fmax(value, -LARGEST_LOG), LARGEST_LOG))
        return self.target(value)

    cdef void restore_row(self, Py_ssize_t i, double* scores, double* deviations) noexcept nogil:
        """Scores of row i of the block become targets, by what was known before it, and deviations theirs."""
        cdef Py_ssize_t j, T = self.targets
        cdef double unit
        for j in range(T):
            scores[j] = self.in_units(scores[j], self.means[i * T + j], self.deviations[i * T + j], self.shares[i],
                                      &unit)
            if deviations != NULL:
                deviations[j] *= unit

    cdef void restore_next(self, double* scores, double* deviations) noexcept nogil:
        """The same of the row that comes next. O(targets)."""
        cdef Py_ssize_t j
        cdef double unit, share = 1.0 / (self.memory * self.count + 1.0)
        for j in range(self.targets):
            scores[j] = self.in_units(scores[j], self.mean[j], self.divisor_of(j), share, &unit)
            if deviations != NULL:
                deviations[j] *= unit

    # ---- For Python ---------------------------------------------------------------------------

    def advance(self, y, weights=None):
        """(scaled targets, and what was known before each row: means, deviations, shares); learns the targets.

        y is flat, row by row, as the engine takes it.
        """
        cdef const double[::1] Y = np.ascontiguousarray(y, dtype=float).reshape(-1)
        cdef const double[::1] w = None if weights is None else np.ascontiguousarray(weights, dtype=float)
        cdef Py_ssize_t i, n = Y.shape[0] // self.targets
        shape = n, self.targets
        if n == 0:
            return np.zeros(0), np.zeros(shape), np.zeros(shape), np.zeros((0, 1))
        self.open(&Y[0], n, NULL if w is None else &w[0])
        for i in range(n):
            self.know(i)
            self.take(i)
        return np.array(<double[:n * self.targets]> self.scaled), *self.known_before(n)

    def known_before(self, Py_ssize_t n):
        """(means, deviations, shares) before each of the n rows of the open block."""
        T = self.targets
        return (np.array(<double[:n, :T]> self.means), np.array(<double[:n, :T]> self.deviations),
                np.array(<double[:n, :1]> self.shares))

    def known(self):
        """(means, deviations, share) that bring back the prediction for the next example."""
        deviations = np.array([self.divisor_of(j) for j in range(self.targets)])
        return self.numbers[0].copy(), deviations, 1.0 / (self.memory * self.count + 1.0)

    def restored(self, scores):
        """Scores of shape (n, targets) in the units of the targets, as of the next example."""
        return self.brought_back(scores, *self.known())[0]

    def brought_back(self, scores, means, deviations, shares):
        """(targets, what deviations of the scores are multiplied by), by what was known before each row."""
        return self.ends(scores, 0.0, means, deviations, shares)[1:]

    def interval(self, scores, half_widths, means, deviations, shares):
        """Lower and upper ends, `half_widths` from the scores, in the units of the targets."""
        low, _, _ = self.ends(scores, -np.asarray(half_widths), means, deviations, shares)
        return low, self.ends(scores, half_widths, means, deviations, shares)[0]

    def ends(self, scores, distances, means, deviations, shares):
        """(ends at these distances from the scores, targets, units); without distances, values and their units."""
        cdef bint scaled = distances is None
        parts = np.broadcast_arrays(scores, 0.0 if scaled else distances, means, deviations, shares)
        s, h, m, d, p = (np.ascontiguousarray(part, dtype=float).reshape(-1) for part in parts)
        found = np.empty((3, len(s)))
        cdef const double[::1] score = s, distance = h, mean = m, deviation = d, share = p
        cdef double[:, ::1] out = found
        cdef double value, unit
        cdef Py_ssize_t i
        for i in range(score.shape[0]):
            value = self.value(score[i], mean[i], deviation[i], share[i], &unit)
            out[0, i] = value if scaled else self.target(value + distance[i] * unit)
            if not scaled:
                out[1, i] = self.in_units(score[i], mean[i], deviation[i], share[i], &unit)
            out[2, i] = unit
        return found.reshape(3, *parts[0].shape)

    def log_slope(self, y):
        """Logarithm of the derivative of what is scaled by y."""
        return -np.log(np.hypot(1.0, y)) if self.is_log else 0.0

    def values(self, scores, means, deviations, shares):
        """(values, what deviations of the scores are multiplied by), in units of what is scaled: y or arcsinh(y)."""
        values, _, units = self.ends(scores, None, means, deviations, shares)
        return values, units

    def targets_of(self, values):
        """Targets of which `values` are what is scaled."""
        return np.sinh(np.clip(values, -LARGEST_LOG, LARGEST_LOG)) if self.is_log else values

    def taken_of(self, y):
        """What is scaled of targets."""
        return np.arcsinh(y) if self.is_log else y
