"""How the predictions of members become one: combiners, calibration, prior correction, intervals.

Members learn for themselves; a combiner sees what each predicted just before a row, and then the row. `open` gets the
memory that a block of rows takes; it may fail and changes nothing. `run` combines and learns row by row, test then
train; it cannot fail, allocates nothing and needs no interpreter. `evaluate` combines as of now and changes nothing, so
several threads may call it at a time.

What is learned stays sound with finite scores, targets and weights of any size: sums and weights are finite,
covariances symmetric and positive definite.
"""
cimport cython
import numpy as np
from libc.math cimport INFINITY, ceil, exp, fabs, fmax, fmin, log, sqrt
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memmove, memset
from onlinekernels._core.arrays cimport array_data
from onlinekernels._core.linalg cimport ok_decompose
from onlinekernels._core.schema import (Array, Buffer, Count, Number, Part, assign, check_state, not_negative, positive,
                                        positive_definite, shares, within)
from onlinekernels._core.transforms cimport Ranks

cdef double LARGEST_LOSS = 1e140        # whose square, summed over all rows of a long life, is a number
cdef double LARGEST_SQUARE = 1e290      # sums of so large ones are numbers
cdef double LARGEST_WEIGHT = 1e12       # of a member; a fit that goes beyond it starts anew
cdef double LARGEST_SUM = 1e300         # that a file may hold
cdef double BEYOND = 0.5                # of the range of what members say, that all together are beyond it at most
cdef double CAP = 8.0                   # that a loss of one row is cut to where it moves beliefs


cdef double* data_of(array) except? NULL:
    return <double*> array_data(array)


# ---- Beliefs ---------------------------------------------------------------------------------------------------------


cdef void update_beliefs(double* belief, const double* losses, Py_ssize_t n, double share) noexcept nogil:
    """Bayes' rule with losses for log likelihoods; then each gives up a share to all (Herbster and Warmuth 1998)."""
    cdef Py_ssize_t i
    cdef double least = INFINITY, total = 0.0
    for i in range(n):
        least = fmin(least, losses[i])
    for i in range(n):
        belief[i] *= exp(least - losses[i])
        total += belief[i]
    for i in range(n):
        belief[i] = (1.0 - share) * belief[i] / total + share / n if total > 0.0 else 1.0 / n


# ---- Recursive fits --------------------------------------------------------------------------------------------------

cdef double SURE = 1e-12                # a direction is known this much better than the least known one at most


@cython.final
cdef class LeakyFits:
    """Weights of members with their precision, for each of some groups and settings: recursive fits that leak towards
    their prior.

    S is the inverse of the precision of w. With every row S <- S / memory, and one coordinate in turn gets its share of
    the prior back: the precision n (1 - memory) prior towards `start`. So weights that rows say nothing of go back, and
    S is bounded. What is added to S is symmetric to the last bit: an antisymmetric part would grow like memory^-t.

    Rows of extreme size cannot make S indefinite: the variance of a direction is not reduced below `SURE` times the
    largest one, which leaves room for rounding. A fit whose weights become too large to be of use starts anew.

    `settings` are pairs (memory, prior).
    """

    cdef readonly Py_ssize_t n, n_settings  # weights of each fit; fits: one for each group and setting
    cdef readonly double start              # what each weight is beforehand
    cdef readonly object memories, priors   # of the settings
    cdef readonly object w, S               # weights, and the inverse of their precision, of each fit
    cdef object memory_of_work
    cdef double* work
    cdef double* w_data
    cdef double* S_data
    cdef double* memory_data
    cdef double* prior_data

    FIELDS = (
        Buffer("w", within(-LARGEST_WEIGHT, LARGEST_WEIGHT)),
        Buffer("S", within(-LARGEST_WEIGHT, LARGEST_WEIGHT), positive_definite))

    def __init__(self, Py_ssize_t n, settings, double start, Py_ssize_t groups=1):
        self.n, self.n_settings, self.start = n, len(settings), start
        self.memories, self.priors = (np.array(part, dtype=float) for part in zip(*settings))
        self.w = np.full((groups, self.n_settings, n), start)
        self.S = np.tile(np.array([np.eye(n) / prior for prior in self.priors]), (groups, 1, 1, 1))
        self.memory_of_work = np.zeros(n)
        self.work, self.w_data, self.S_data = data_of(self.memory_of_work), data_of(self.w), data_of(self.S)
        self.memory_data, self.prior_data = data_of(self.memories), data_of(self.priors)

    cdef double* weights_of(self, Py_ssize_t fit) noexcept nogil:
        """Weights of fit = group n_settings + setting."""
        return self.w_data + fit * self.n

    cdef void leak(self, Py_ssize_t fit, long long t) noexcept nogil:
        """Before row t. O(n^2)."""
        cdef Py_ssize_t i, j, n = self.n, k = <Py_ssize_t> (t % n)
        cdef double memory = self.memory_data[fit % self.n_settings], prior = self.prior_data[fit % self.n_settings]
        cdef double precision = n * (1.0 - memory) * prior, factor, gain, share
        cdef double* w = self.w_data + fit * n
        cdef double* S = self.S_data + fit * n * n
        cdef double* row = self.work
        if memory == 1.0:
            return
        for i in range(n):
            row[i] = S[k * n + i] / memory
        factor = precision / (1.0 + precision * row[k])
        gain = factor * (self.start - w[k])
        for i in range(n):
            w[i] += gain * row[i]
            share = row[i]
            for j in range(n):
                S[i * n + j] = S[i * n + j] / memory - factor * (share * row[j])

    cdef double learn_direction(self, Py_ssize_t fit, const double* x, double precision, double* factor) noexcept nogil:
        """S after an observation of x.w with this precision, or as much of it as keeps S sound, which is returned.
        O(n^2).

        S x of before is left in `work`, precision / (1 + precision x.S x) in `factor`.
        """
        cdef Py_ssize_t i, j, n = self.n
        cdef double variance = 0.0, square = 0.0, largest = 0.0, total, least
        cdef double* S = self.S_data + fit * n * n
        for i in range(n):
            total = 0.0
            for j in range(n):
                total += S[i * n + j] * x[j]
            self.work[i] = total
            variance += x[i] * total
            square += x[i] * x[i]
            largest = fmax(largest, S[i * n + i])
        least = SURE * largest * square
        if not variance > 1e-280:
            factor[0] = 0.0                 # x is nothing, or so small that rows like it say nothing
            return precision
        if variance < least * (1.0 + precision * variance):
            precision = fmax(0.0, 1.0 / least - 1.0 / variance)
        factor[0] = precision / (1.0 + precision * variance)
        for i in range(n):
            total = self.work[i]
            for j in range(n):
                S[i * n + j] -= factor[0] * (total * self.work[j])
        return precision

    cdef void newton(self, Py_ssize_t fit, const double* x, const double* gradient, double count,
                     double curvature) noexcept nogil:
        """w <- w + count S gradient, where S has learned the curvature along x for so many rows. O(n^2)."""
        cdef Py_ssize_t i, j, n = self.n
        cdef double factor, total, precision = count * curvature
        cdef double* w = self.w_data + fit * n
        cdef double* S = self.S_data + fit * n * n
        cdef double learned = self.learn_direction(fit, x, precision, &factor)
        if learned < precision:
            count *= learned / precision
        for i in range(n):
            total = 0.0
            for j in range(n):
                total += S[i * n + j] * gradient[j]
            w[i] += count * total
        self.keep_sound(fit)

    cdef void least_squares(self, Py_ssize_t fit, const double* x, double error, double precision) noexcept nogil:
        """Least squares with an error of x.w that was observed with this precision. O(n^2)."""
        cdef Py_ssize_t i
        cdef double factor
        cdef double* w = self.w_data + fit * self.n
        self.learn_direction(fit, x, precision, &factor)
        for i in range(self.n):
            w[i] += factor * error * self.work[i]
        self.keep_sound(fit)

    cdef void keep_sound(self, Py_ssize_t fit) noexcept nogil:
        """Start a fit anew whose numbers are of no use any more. O(n), O(n^2) then."""
        cdef Py_ssize_t i, n = self.n
        cdef double* w = self.w_data + fit * n
        cdef double* S = self.S_data + fit * n * n
        cdef bint sound = True
        for i in range(n):
            sound &= fabs(w[i]) < LARGEST_WEIGHT and 0.0 < S[i * n + i] < LARGEST_WEIGHT     # not if NaN
        if not sound:
            memset(S, 0, n * n * sizeof(double))
            for i in range(n):
                w[i], S[i * n + i] = self.start, 1.0 / self.prior_data[fit % self.n_settings]


# ---- Running errors --------------------------------------------------------------------------------------------------

cdef double LONG = 0.995                # memory of the running squared error
# Rows before the range of targets is known well enough to cut what lies far beyond it
FEW = 30
cdef Py_ssize_t FEW_ROWS = FEW
cdef Py_ssize_t UNKNOWN = 3    # targets of which nobody can say that one is an outlier
cdef double LEAST_SQUARE = 1e-300       # a squared error, whatever the targets: squares of what is much smaller are 0
cdef double LARGEST_REACH = 1e150       # a range of targets; the square of a larger one is no number


@cython.final
cdef class RunningErrors:
    """The unit in which errors are counted: the fading mean of squared errors of each target, and the range of the
    targets."""

    cdef readonly Py_ssize_t targets
    cdef readonly object sums                   # of squared errors, and of their weights
    cdef readonly object low, high              # range of the targets
    cdef public long long t
    cdef double* sums_data
    cdef double* low_data
    cdef double* high_data

    FIELDS = Count("t"), Buffer("sums", not_negative), Buffer("low"), Buffer("high")

    def __init__(self, Py_ssize_t targets):
        self.targets = targets
        self.sums, self.t = np.zeros((2, targets)), 0
        self.low, self.high = np.full(targets, np.inf), np.full(targets, -np.inf)
        self.sums_data, self.low_data, self.high_data = data_of(self.sums), data_of(self.low), data_of(self.high)

    cdef double square(self, Py_ssize_t j) noexcept nogil:
        """The mean squared error of a target: beforehand 1/16 of its squared range, counted as one row, or 1; not 0."""
        cdef double low = self.low_data[j], high = self.high_data[j]
        cdef double sums = self.sums_data[j], weight = self.sums_data[self.targets + j]
        cdef double reach = fmin(high - low, LARGEST_REACH) if low < high else 0.0
        cdef double largest = fmin(fmax(fabs(low), fabs(high)), LARGEST_REACH) if low <= high else 1.0
        if reach == 0.0:
            return fmax(sums / weight if weight > 0.0 else 1.0, fmax(1e-12 * largest * largest, LEAST_SQUARE))
        return fmax((sums + 0.0625 * reach * reach) / (weight + 1.0), fmax(1e-12 * reach * reach, LEAST_SQUARE))

    cdef void learn(self, Py_ssize_t j, double y, double error, double count, double size) noexcept nogil:
        """Update with an error of a target, where `size` is `square` before; more than 4 units count as 4, once 30 rows
        have been seen.

        While there are few rows, errors fall fast, and the last third of them is remembered.
        """
        cdef double square = error * error, memory = fmin(LONG, 1.0 - 3.0 / (self.t + 6.0))
        if self.t >= FEW_ROWS and square > 16.0 * size:
            square = 16.0 * size
        self.sums_data[j] = memory * self.sums_data[j] + fmin(count * square, LARGEST_SQUARE)
        self.sums_data[self.targets + j] = memory * self.sums_data[self.targets + j] + fmin(count, LARGEST_SQUARE)
        self.low_data[j], self.high_data[j] = fmin(self.low_data[j], y), fmax(self.high_data[j], y)

    def stored(self):
        """The range of the targets; 0 before the first."""
        seen = self.low <= self.high
        return {"low": np.where(seen, self.low, 0.0), "high": np.where(seen, self.high, 0.0)}

    def fits(self, state):
        """Nothing comes of no rows."""
        if (state["low"] > state["high"]).any() or state["sums"][0][state["sums"][1] == 0.0].any():
            raise ValueError("sums, low and high do not fit each other")

    def resume(self, state):
        seen = state["sums"][1] > 0.0           # and not only rows that did not count, as the first
        assign(self, {**state, "low": np.where(seen, state["low"], np.inf),
                      "high": np.where(seen, state["high"], -np.inf)})


# ---- Combiners -------------------------------------------------------------------------------------------------------


cdef class Combiner:
    """Base of all combiners.

    A subclass has `combine_row`, `learn_row`, which follows it for the same row and finds its scratch as that left it,
    `scratch_size` and `current_weights`.

    Scores are (n, members, outputs); y are codes of labels (n,), or targets (n, targets); `n_seen` is the number of
    labels that there were before each row; `counts` are weights of rows; members that are not `enabled` take no part.
    What is `combined` is (n, outputs), `deviations` (n, targets), or (n, 1) for labels.
    """

    cdef Py_ssize_t scratch_size(self, Py_ssize_t outputs) noexcept nogil:
        """How many doubles `run` and `combine` work with."""
        return 0

    cdef void combine_row(self, Row* row) noexcept nogil:
        """What all say together of a row, and its deviations."""

    cdef void learn_row(self, Row* row) noexcept nogil:
        """Learn from a row whom to trust."""

    cdef void current_weights(self, Py_ssize_t group, double* w) noexcept nogil:
        """Weights of the members for a target, or for all labels."""

    cdef int open(self, Py_ssize_t n, Py_ssize_t outputs) except -1:
        """Memory for `run` with this number of outputs."""
        cdef Py_ssize_t size = max(1, self.scratch_size(outputs))
        if self.memory_of_scratch is None or self.memory_of_scratch.size < size:
            fresh = np.empty(size)
            self.memory_of_scratch, self.scratch = fresh, data_of(fresh)

    cdef void run(self, Py_ssize_t n, Py_ssize_t outputs, const double* scores, const double* y,
                  const Py_ssize_t* n_seen, const double* counts, const unsigned char* enabled, double* combined,
                  double* deviations) noexcept nogil:
        """Combined scores just before each row; the rows are learned."""
        cdef Py_ssize_t t, m = self.n_members, g = max(1, self.targets)
        cdef Row row
        for t in range(n):
            row = Row(outputs, n_seen[t], scores + t * m * outputs, enabled, y + t * g, counts[t],
                      combined + t * outputs, deviations + t * g, self.scratch)
            self.combine_row(&row)
            self.learn_row(&row)

    cdef void combine(self, Py_ssize_t n, Py_ssize_t outputs, const double* scores, Py_ssize_t n_seen,
                      const unsigned char* enabled, double* combined, double* deviations,
                      double* scratch) noexcept nogil:
        """`evaluate`, with memory to work in."""
        cdef Py_ssize_t t, m = self.n_members, g = max(1, self.targets)
        cdef Row row
        for t in range(n):
            row = Row(outputs, n_seen, scores + t * m * outputs, enabled, NULL, 0.0, combined + t * outputs,
                      deviations + t * g, scratch)
            self.combine_row(&row)

    cdef int evaluate(self, Py_ssize_t n, Py_ssize_t outputs, const double* scores, Py_ssize_t n_seen,
                      const unsigned char* enabled, double* combined, double* deviations) except -1:
        """Combined scores as of now."""
        cdef double* scratch = <double*> malloc(max(1, self.scratch_size(outputs)) * sizeof(double))
        if scratch == NULL:
            raise MemoryError()
        self.combine(n, outputs, scores, n_seen, enabled, combined, deviations, scratch)
        free(scratch)

    # ---- For Python ---------------------------------------------------------------------------

    def advance(self, scores, y=None, n_seen=None, counts=None, enabled=None):
        """(combined, deviations) just before each row, for arrays as above; the rows are learned. Without y as of now,
        for one `n_seen`."""
        cdef const double[:, :, ::1] F = np.ascontiguousarray(scores, dtype=float)
        cdef Py_ssize_t n = F.shape[0], outputs = F.shape[2]
        there = np.array(np.ones(self.n_members) if enabled is None else enabled, dtype=np.uint8)
        cdef const unsigned char* present = <const unsigned char*> array_data(there)
        found, spread = np.zeros((n, outputs)), np.ones((n, max(1, self.targets)))
        if n == 0 or outputs == 0:
            return found, spread
        if y is None:
            self.evaluate(n, outputs, &F[0, 0, 0], n_seen or 0, present, data_of(found), data_of(spread))
            return found, spread
        targets, weights = np.array(y, dtype=float), np.ones(n) if counts is None else np.array(counts, dtype=float)
        labels = np.full(n, outputs) if n_seen is None else np.array(n_seen, dtype=np.intp)
        self.open(n, outputs)
        self.run(n, outputs, &F[0, 0, 0], data_of(targets), <Py_ssize_t*> array_data(labels), data_of(weights),
                 present, data_of(found), data_of(spread))
        return found, spread

    def weights(self):
        """Weights of the members, shape (groups, members); where they are a mean, each target's sum to 1."""
        cdef Py_ssize_t j
        weights = np.empty((max(1, self.targets), self.n_members))
        for j in range(len(weights)):
            self.current_weights(j, data_of(weights) + j * self.n_members)
        return weights

    def _check(self):
        check_state(self)


# ---- Numbers: the mean of the members, and how they differ from it ---------------------------------------------------


cdef class Differences(Combiner):
    """Base of combiners by least squares: y - f = sum_i v_i d_i, where f is the mean of the members and d_i = f_i - f.

    Only differences count, so weights 1/m + v_i sum to 1, units and offsets do not matter, and nothing happens where
    members agree for ever. For labels d_i = f_i + 1 instead, as -1 means "no". Each target has v of its own; labels
    share one.

    A subclass has `weights_now` and maybe `limits`.
    """

    cdef void weights_now(self, Py_ssize_t group, double* v) noexcept nogil:
        """v of a target, or of all labels."""

    cdef double limits(self, Py_ssize_t group, double* low, double* high) noexcept nogil:
        """The range to which predictions of the members are cut; returns the deviation that is expected."""
        low[0], high[0] = -INFINITY, INFINITY
        return 1.0

    cdef double apart(self, const Row* row, Py_ssize_t j, double low, double high, double* d) noexcept nogil:
        """(f, d) of output j within limits; d of disabled members is 0. O(members)."""
        cdef Py_ssize_t i, n = 0
        cdef double mean = 0.0
        for i in range(self.n_members):
            if row.enabled[i]:
                d[i] = fmin(fmax(row.scores[i * row.outputs + j], low), high)
                mean += d[i]
                n += 1
        mean = mean / n if n else 0.0
        for i in range(self.n_members):
            d[i] = 0.0 if not row.enabled[i] else d[i] - mean if self.targets else d[i] + 1.0
        return mean

    cdef double mixed(self, double f, const double* v, const double* d) noexcept nogil:
        """f + v.d. O(members)."""
        cdef Py_ssize_t i
        for i in range(self.n_members):
            f += v[i] * d[i]
        return f

    cdef Py_ssize_t scratch_size(self, Py_ssize_t outputs) noexcept nogil:
        return 2 * self.n_members

    cdef void combine_row(self, Row* row) noexcept nogil:
        cdef Py_ssize_t j
        cdef double low, high
        cdef double* d = row.scratch
        cdef double* v = row.scratch + self.n_members
        for j in range(row.outputs):
            if j == 0 or self.targets:
                self.weights_now(j, v)
                row.deviations[j] = self.limits(j, &low, &high)
            row.combined[j] = self.mixed(self.apart(row, j, low, high, d), v, d)

    cdef void current_weights(self, Py_ssize_t group, double* w) noexcept nogil:
        cdef Py_ssize_t i, m = self.n_members
        cdef double rest = 1.0
        self.weights_now(group, w)
        for i in range(m if self.targets else 0):
            rest -= w[i]
        for i in range(m):
            w[i] += rest / m


@cython.final
cdef class RecursiveLeastSquares(Differences):
    """Numbers: the members' mean, plus leaky least squares on how members differ from it; and exponential weights
    beside these.

    Each target is a fit of its own, in units of its running squared error. Several `settings` (memory, prior) run side
    by side, and are mixed by Bayes' rule with a share. Predictions are cut to the range of the targets so far, widened
    by itself on both sides.
    """

    cdef readonly LeakyFits fitted
    cdef readonly RunningErrors errors
    cdef readonly object belief, trust          # in the fits and in exponential weights; these weights of the members
    cdef readonly double share
    cdef double* belief_data
    cdef double* trust_data

    FIELDS = Buffer("belief", shares), Buffer("trust", shares), Part("errors"), Part("fitted")

    def __init__(self, Py_ssize_t n, Py_ssize_t targets, settings, double share=1e-3):
        self.n_members, self.targets, self.share = n, targets, share
        self.fitted, self.errors = LeakyFits(n, settings, 0.0, targets), RunningErrors(targets)
        # The last is for exponential weights
        self.belief = np.full((targets, len(settings) + 1), 1.0 / (len(settings) + 1))
        self.trust = np.full((targets, n), 1.0 / n)
        self.belief_data, self.trust_data = data_of(self.belief), data_of(self.trust)

    def forget(self):
        """Begin anew."""
        settings = list(zip(self.fitted.memories, self.fitted.priors))
        self.__init__(self.n_members, self.targets, settings, self.share)

    cdef Py_ssize_t scratch_size(self, Py_ssize_t outputs) noexcept nogil:
        return 3 * self.n_members + 2 * (self.fitted.n_settings + 1)

    cdef double limits(self, Py_ssize_t group, double* low, double* high) noexcept nogil:
        cdef double least = self.errors.low_data[group], largest = self.errors.high_data[group], reach = largest - least
        low[0], high[0] = -INFINITY, INFINITY
        if self.errors.t >= FEW_ROWS and least <= largest:
            low[0], high[0] = least - reach, largest + reach
        return sqrt(self.errors.square(group))

    cdef double mixed(self, double f, const double* v, const double* d) noexcept nogil:
        """f + v.d, not far beyond what any member says: weights were not learned for what has just changed."""
        cdef Py_ssize_t i
        cdef double low = 0.0, high = 0.0, total = 0.0, reach
        for i in range(self.n_members):
            total += v[i] * d[i]
            low, high = fmin(low, d[i]), fmax(high, d[i])
        reach = BEYOND * (high - low)
        return f + fmin(fmax(total, low - reach), high + reach)

    cdef void weights_now(self, Py_ssize_t group, double* v) noexcept nogil:
        cdef Py_ssize_t i, k, K = self.fitted.n_settings
        cdef const double* belief = self.belief_data + group * (K + 1)
        for i in range(self.n_members):
            v[i] = belief[K] * self.trust_data[group * self.n_members + i]
            for k in range(K):
                v[i] += belief[k] * self.fitted.weights_of(group * K + k)[i]

    cdef void learn_row(self, Row* row) noexcept nogil:
        cdef Py_ssize_t j
        for j in range(self.targets):
            self.learn_target(row, j)
        self.errors.t += 1

    cdef void learn_target(self, Row* row, Py_ssize_t j) noexcept nogil:
        cdef Py_ssize_t i, k, m = self.n_members, K = self.fitted.n_settings
        cdef double* d = row.scratch
        cdef double* x = d + m
        cdef double* predictions = x + m                    # of each fit, and of exponential weights
        cdef double* losses = predictions + K + 1           # of these, or of the members
        cdef double* trust = self.trust_data + j * m
        cdef double low, high, error, y = row.y[j], count = row.count, size = self.errors.square(j)
        cdef double unit = self.limits(j, &low, &high), mean = self.apart(row, j, low, high, d)
        for k in range(K + 1):
            predictions[k] = self.mixed(mean, self.fitted.weights_of(j * K + k) if k < K else trust, d)
        for k in range(K):
            self.fitted.leak(j * K + k, self.errors.t)
        if not count > 0.0:
            return
        for i in range(m):
            x[i] = fmin(fmax(d[i] / unit, -1e8), 1e8)       # beyond 1e7 only before 30 rows
        for k in range(K + 1):
            error = (y - predictions[k]) / unit
            losses[k] = fmin(CAP, 0.5 * count * error * error)
            if k < K:               # Of an outlier counts what is left of it within 4 units
                self.fitted.least_squares(j * K + k, x, error,
                                          count * (1.0 if fabs(error) < 4.0 else 4.0 / fabs(error)))
        update_beliefs(self.belief_data + j * (K + 1), losses, K + 1, self.share)
        for i in range(m):
            error = (y - mean - d[i]) / unit
            losses[i] = fmin(CAP, 0.5 * count * error * error)
        update_beliefs(trust, losses, m, self.share)
        self.errors.learn(j, y, y - row.combined[j], count, size)


@cython.final
cdef class LeastSquares(Differences):
    """A few strong members: v minimises the fading sum of (y - f - v.d)^2 / size + prior |v|^2, where size is the mean
    of (y - f)^2.

    All members count alike until the rows say otherwise, and the prior leaves no more of that than it must. For labels
    y is +1 for the label and -1 for others: a member that is right but timid may then count for more than its share.
    `memory` is what is left of a row's weight after one more.

    >>> f = np.array([[0.0, 1.0]] * 400)[:, :, None]               # two members, of which the second is right
    >>> combiner = LeastSquares(2, 1, memory=0.9995, prior=10.0)
    >>> combined, _ = combiner.advance(f, np.ones((400, 1)))
    >>> combined[[0, 50, 399], 0].round(2), combiner.weights().round(2)
    (array([0.5 , 0.95, 0.99]), array([[0.01, 0.99]]))
    """

    cdef readonly double memory, prior
    cdef public double count                    # of the rows
    cdef readonly Py_ssize_t groups
    cdef readonly object products, answers, squares, v
    cdef double* products_data
    cdef double* answers_data
    cdef double* squares_data
    cdef double* v_data

    FIELDS = (
        Buffer("products", within(-LARGEST_SUM, LARGEST_SUM)),
        Buffer("answers", within(-LARGEST_SUM, LARGEST_SUM)),
        Buffer("squares", within(0.0, LARGEST_SUM)),
        Number("count", within(0.0, LARGEST_SUM)))

    def __init__(self, Py_ssize_t n, Py_ssize_t targets, double memory, double prior):
        self.n_members, self.targets, self.groups, self.memory, self.prior = n, targets, max(1, targets), memory, prior
        self.products, self.answers = np.zeros((self.groups, n, n)), np.zeros((self.groups, n))
        self.squares, self.count = np.zeros(self.groups), 0.0       # of y - f
        self.v = np.zeros((self.groups, n))                         # as of these sums
        self.products_data, self.answers_data = data_of(self.products), data_of(self.answers)
        self.squares_data, self.v_data = data_of(self.squares), data_of(self.v)

    cdef Py_ssize_t scratch_size(self, Py_ssize_t outputs) noexcept nogil:
        cdef Py_ssize_t m = self.n_members
        return 2 * m + m * m + outputs * (m + 1)

    cdef void weights_now(self, Py_ssize_t group, double* v) noexcept nogil:
        memcpy(v, self.v_data + group * self.n_members, self.n_members * sizeof(double))

    cdef void learn_row(self, Row* row) noexcept nogil:
        cdef Py_ssize_t j, g, m = self.n_members, columns = 1 if self.targets else row.outputs
        cdef double* root = row.scratch
        cdef double* d = root + m * m                       # (outputs, members)
        cdef double* missed = d + row.outputs * m           # y - f of each output
        cdef double target, weight = fmin(row.count, LARGEST_SQUARE)
        for j in range(row.outputs):
            target = row.y[j] if self.targets else 1.0 if j == <Py_ssize_t> row.y[0] else -1.0
            missed[j] = target - self.apart(row, j, -INFINITY, INFINITY, d + j * m)
        self.count = self.memory * self.count + weight
        for g in range(self.groups):
            self.learn(g, d + g * m, missed + g, columns, weight)
            self.solve(g, root)

    cdef void learn(self, Py_ssize_t g, const double* d, const double* missed, Py_ssize_t columns,
                    double weight) noexcept nogil:
        """Update the sums of a group with d (columns, members) and y - f (columns). Sums that overflow start anew."""
        cdef Py_ssize_t i, j, k, m = self.n_members
        cdef double total, trace = 0.0
        cdef double* products = self.products_data + g * m * m
        cdef double* answers = self.answers_data + g * m
        for i in range(m):
            for j in range(i + 1):
                total = 0.0
                for k in range(columns):
                    total += d[k * m + i] * d[k * m + j]
                products[i * m + j] = products[j * m + i] = self.memory * products[i * m + j] + weight * total
            total = 0.0
            for k in range(columns):
                total += d[k * m + i] * missed[k]
            answers[i] = self.memory * answers[i] + weight * total
            trace += products[i * m + i] + fabs(answers[i])
        total = 0.0
        for k in range(columns):
            total += missed[k] * missed[k]
        self.squares_data[g] = self.memory * self.squares_data[g] + weight * total
        if not trace + self.squares_data[g] < LARGEST_SQUARE:
            memset(products, 0, m * m * sizeof(double))
            memset(answers, 0, m * sizeof(double))
            self.squares_data[g] = 0.0

    cdef void solve(self, Py_ssize_t g, double* root) noexcept nogil:
        """v = (products / size + prior)^-1 answers / size of a group, by Cholesky's factor."""
        cdef Py_ssize_t i, j, m = self.n_members
        cdef double trace = 0.0, size = self.squares_data[g] / fmax(self.count, 1e-12)
        cdef const double* products = self.products_data + g * m * m
        cdef const double* answers = self.answers_data + g * m
        cdef double* v = self.v_data + g * m
        for i in range(m):
            trace += products[i * m + i]
        size = fmax(size, 1e-12 * trace)            # also where nothing has been missed
        size = size if size > 0.0 else 1.0          # or nothing has been learned
        for i in range(m):
            for j in range(i + 1):
                root[i * m + j] = products[i * m + j] / size
            root[i * m + i] += self.prior
        ok_decompose(root, m, m)
        for i in range(m):
            v[i] = answers[i] / size
            for j in range(i):
                v[i] -= root[i * m + j] * v[j]
            v[i] /= root[i * m + i]
        for i in range(m - 1, -1, -1):
            for j in range(i + 1, m):
                v[i] -= root[j * m + i] * v[j]
            v[i] /= root[i * m + i]

    def fits(self, state):
        """Sums of (d, y - f) (d, y - f)' are symmetric and positive semidefinite, and nothing comes of no rows."""
        m = self.n_members
        whole = np.empty((self.groups, m + 1, m + 1))
        whole[:, :m, :m], whole[:, m, m] = state["products"], state["squares"]
        whole[:, m, :m] = whole[:, :m, m] = state["answers"]
        squares = np.diagonal(whole, axis1=1, axis2=2)
        if not np.array_equal(whole, whole.transpose(0, 2, 1)) or (squares < 0.0).any():
            raise ValueError("products are not symmetric, or negative")
        sizes = np.sqrt(np.maximum(squares, 1e-300))
        correlations = whole / sizes[:, :, None] / sizes[:, None] + 1e-6 * np.eye(m + 1)
        positive_definite(0.5 * (correlations + correlations.transpose(0, 2, 1)), "what products and answers sum")
        if state["count"] == 0.0 and whole.any():
            raise ValueError("count is 0, and the sums are not")

    def resume(self, state):
        self.open(1, 0)
        assign(self, state)
        for g in range(self.groups):
            self.solve(g, self.scratch)


# ---- Labels: online Newton steps on the log loss ---------------------------------------------------------------------

cdef double SOFTEST = 0.02              # that is added to both sides of odds, so that certainty is finite
cdef double ODDS_OF_ONE = log((2.0 + SOFTEST) / SOFTEST)


cdef double score_as_log_odds(double score) noexcept nogil:
    """A score 2 p - 1 as log odds of p, within [-1, 1] again: rare classes have small p, which differ little, and odds
    that differ much."""
    return log((1.0 + SOFTEST + score) / (1.0 + SOFTEST - score)) / ODDS_OF_ONE


@cython.final
cdef class OnlineNewton(Combiner):
    """Labels: p = softmax(sum_i w_i F_i) with one weight for each member, by leaky online Newton steps on the log loss.

    F are members' scores in [-1, 1], 0 for members that are disabled. Several `settings` (memory, prior) run side by
    side, and are mixed by Bayes' rule with a share. Some of them may see log `odds` instead as long as there are two
    classes. The weights sum to `total` beforehand.

    Combined scores are 2 p - 1, and -1 for labels that have not joined; a row that brings a new label is not judged.
    """

    cdef readonly LeakyFits fitted
    cdef readonly object belief, odds           # in the fits; whether a fit sees log odds
    cdef readonly double share
    cdef public long long t
    cdef bint any_odds
    cdef double* belief_data
    cdef unsigned char* odds_data

    FIELDS = Count("t"), Buffer("belief", shares), Part("fitted")

    def __init__(self, Py_ssize_t n, settings, double share=1e-3, double total=2.0, odds=None):
        self.n_members, self.targets, self.share, self.t = n, 0, share, 0
        self.fitted = LeakyFits(n, settings, total / n)
        self.odds = np.zeros(len(settings), dtype=np.uint8) if odds is None else np.array(odds, dtype=np.uint8)
        self.any_odds = self.odds.any()
        self.belief = np.full(len(settings), 1.0 / len(settings))
        self.belief_data, self.odds_data = data_of(self.belief), <unsigned char*> array_data(self.odds)

    cdef Py_ssize_t scratch_size(self, Py_ssize_t outputs) noexcept nogil:
        return (self.n_members + self.fitted.n_settings) * outputs + 2 * self.n_members + self.fitted.n_settings

    cdef const double* seen(self, const Row* row, Py_ssize_t k) noexcept nogil:
        """Scores as fit k sees them; log odds are in the scratch."""
        if self.odds_data[k] and row.n_seen == 2:
            return row.scratch
        return row.scores

    cdef void softmax(self, const double* F, Py_ssize_t outputs, Py_ssize_t n_seen, const double* w,
                      double* p) noexcept nogil:
        cdef Py_ssize_t i, c
        cdef double largest = -INFINITY, total = 0.0
        for c in range(n_seen):
            p[c] = 0.0
        for i in range(self.n_members):
            for c in range(n_seen):
                p[c] += w[i] * F[i * outputs + c]
        for c in range(n_seen):
            largest = fmax(largest, p[c])
        for c in range(n_seen):
            p[c] = exp(p[c] - largest)
            total += p[c]
        for c in range(n_seen):
            p[c] /= total

    cdef void combine_row(self, Row* row) noexcept nogil:
        cdef Py_ssize_t i, k, c, outputs = row.outputs, n_seen = row.n_seen
        cdef double* likely = row.scratch + self.n_members * outputs            # by each fit
        row.deviations[0] = 1.0
        for c in range(outputs):
            row.combined[c] = 0.0 if c < n_seen else -1.0
        for i in range(self.n_members * outputs if self.any_odds and n_seen == 2 else 0):
            row.scratch[i] = score_as_log_odds(row.scores[i])
        for k in range(self.fitted.n_settings if n_seen > 0 else 0):
            self.softmax(self.seen(row, k), outputs, n_seen, self.fitted.weights_of(k), likely + k * outputs)
            for c in range(n_seen):
                row.combined[c] += self.belief_data[k] * likely[k * outputs + c]
        for c in range(n_seen):
            row.combined[c] = 2.0 * row.combined[c] - 1.0

    cdef void learn_row(self, Row* row) noexcept nogil:
        cdef Py_ssize_t i, c, k, rival, outputs = row.outputs, m = self.n_members, K = self.fitted.n_settings
        cdef Py_ssize_t label = <Py_ssize_t> row.y[0]
        cdef double* likely = row.scratch + m * outputs
        cdef double* x = likely + K * outputs
        cdef double* gradient = x + m
        cdef double* losses = gradient + m
        cdef const double* F
        cdef const double* p
        for k in range(K):
            self.fitted.leak(k, self.t)
        self.t += 1
        if row.n_seen < 2 or label >= row.n_seen or not row.count > 0.0:
            return
        for k in range(K):
            p, F = likely + k * outputs, self.seen(row, k)
            losses[k] = fmin(CAP, -row.count * log(fmax(p[label], 1e-300)))
            # The curvature is that along what tells the label from its strongest rival
            rival = 1 if label == 0 else 0
            for c in range(row.n_seen):
                if c != label and p[c] > p[rival]:
                    rival = c
            for i in range(m):
                x[i] = F[i * outputs + label] - F[i * outputs + rival]
                gradient[i] = F[i * outputs + label]
                for c in range(row.n_seen):
                    gradient[i] -= p[c] * F[i * outputs + c]
            self.fitted.newton(k, x, gradient, row.count, p[label] * p[rival])
        update_beliefs(self.belief_data, losses, K, self.share)

    cdef void current_weights(self, Py_ssize_t group, double* w) noexcept nogil:
        """Mean weights over the settings."""
        cdef Py_ssize_t i, k
        for i in range(self.n_members):
            w[i] = 0.0
            for k in range(self.fitted.n_settings):
                w[i] += self.belief_data[k] * self.fitted.weights_of(k)[i]


# ---- Exponential weights ---------------------------------------------------------------------------------------------


@cython.final
cdef class ExponentialWeights(Combiner):
    """Hedge: weights like exp(-rate sum of losses), of which each member gives up a share to all with every row.

    Classes: losses are 1/8 [(1 - F_label)^2 + (1 + the largest other F)^2], in [0, 1] for scores in [-1, 1]. Numbers:
    1/2 of the squared error in units of the running one. Both are convex, so the combination, the weighted mean, loses
    no more than the weighted mean of the losses. A disabled member loses what the combination of the others does.

    `votes`, for labels: each member gives 1 to the label that it predicts, the first of the best ones, and -1 to all
    others. So its loss is 1 for a mistake and otherwise 0, and where the weighted means lead to a mistake, so do half
    of the weights at least.
    """

    cdef readonly double rate, share
    cdef readonly bint votes
    cdef readonly object trust, losses, own, ranges
    cdef readonly RunningErrors errors
    cdef double* trust_data
    cdef double* losses_data
    cdef double* own_data
    cdef double* ranges_data

    FIELDS = (Buffer("trust", shares), Buffer("losses", not_negative), Buffer("own", not_negative),
              Buffer("ranges", not_negative), Part("errors"))

    def __init__(self, Py_ssize_t n, Py_ssize_t targets, double rate, double share, bint votes=False):
        if not 0.0 < rate < np.inf or not 0.0 <= share < 1.0:
            raise ValueError("the rate must be positive, and the share in [0, 1)")
        groups = max(1, targets)
        self.n_members, self.targets, self.rate, self.share = n, targets, rate, share
        self.votes = votes and not targets
        self.trust = np.full((groups, n), 1.0 / n)
        self.losses, self.own, self.ranges = np.zeros((groups, n)), np.zeros(groups), np.zeros(groups)
        self.errors = RunningErrors(groups)
        self.trust_data, self.losses_data = data_of(self.trust), data_of(self.losses)
        self.own_data, self.ranges_data = data_of(self.own), data_of(self.ranges)

    cdef Py_ssize_t scratch_size(self, Py_ssize_t outputs) noexcept nogil:
        return (outputs + 2) * self.n_members

    cdef const double* seen(self, const Row* row) noexcept nogil:
        """Scores, or votes, which are in the scratch."""
        if self.votes:
            return row.scratch + 2 * self.n_members
        return row.scores

    cdef void vote(self, const Row* row, double* votes) noexcept nogil:
        cdef Py_ssize_t i, c, best
        for i in range(self.n_members):
            best = likeliest(row.scores + i * row.outputs, row.n_seen)
            for c in range(row.n_seen):
                votes[i * row.outputs + c] = -1.0
            votes[i * row.outputs + best] = 1.0

    cdef void combine_row(self, Row* row) noexcept nogil:
        """The weighted mean of the members that are enabled; -1 for labels that have not joined."""
        cdef Py_ssize_t i, c, m = self.n_members, known = row.outputs if self.targets else row.n_seen
        cdef double total = 0.0
        cdef const double* trust = self.trust_data
        cdef const double* F = self.seen(row)
        if self.votes:
            self.vote(row, row.scratch + 2 * m)
        if not self.targets:
            row.deviations[0] = 1.0
        for c in range(row.outputs):
            row.combined[c] = 0.0 if c < known else -1.0
        for c in range(known):
            if c == 0 or self.targets:
                trust, total = self.trust_data + c * m, 0.0
                for i in range(m):
                    total += trust[i] if row.enabled[i] else 0.0
            if self.targets:
                row.deviations[c] = sqrt(self.errors.square(c))
            for i in range(m):
                if row.enabled[i] and total > 0.0:
                    row.combined[c] += trust[i] / total * F[i * row.outputs + c]

    cdef void learn_row(self, Row* row) noexcept nogil:
        cdef Py_ssize_t i, j, m = self.n_members
        cdef double* loss = row.scratch
        cdef double* scaled = loss + m
        cdef const double* F = self.seen(row)
        cdef double own, least, most, size
        for j in range(max(1, self.targets)):
            if not row.count > 0.0 or not self.targets and (row.n_seen < 2 or row.y[0] >= row.n_seen):
                continue
            size = self.errors.square(j) if self.targets else 1.0
            own = self.loss(row, row.combined, j, size)
            least, most = own, own
            for i in range(m):
                loss[i] = self.loss(row, F + i * row.outputs, j, size) if row.enabled[i] else own
                least, most = fmin(least, loss[i]), fmax(most, loss[i])
                self.losses_data[j * m + i] += loss[i]
                scaled[i] = self.rate * loss[i]
            self.own_data[j] += own
            self.ranges_data[j] += (most - least) * (most - least)
            update_beliefs(self.trust_data + j * m, scaled, m, self.share)
            if self.targets:
                self.errors.learn(j, row.y[j], row.y[j] - row.combined[j], row.count, size)
        self.errors.t += 1

    cdef double loss(self, const Row* row, const double* F, Py_ssize_t j, double size) noexcept nogil:
        """The weight of the row times the loss of scores."""
        cdef Py_ssize_t c, label
        cdef double rival = -1.0, y = row.y[j]
        if self.targets:
            return fmin(LARGEST_LOSS, row.count * (0.5 * (y - F[j]) * (y - F[j]) / size))
        label = <Py_ssize_t> y
        for c in range(row.n_seen):
            if c != label:
                rival = fmax(rival, F[c])
        return fmin(LARGEST_LOSS, row.count * (0.125 * ((1.0 - F[label]) ** 2 + (1.0 + rival) ** 2)))

    cdef void current_weights(self, Py_ssize_t group, double* w) noexcept nogil:
        memcpy(w, self.trust_data + group * self.n_members, self.n_members * sizeof(double))


# ---- Novelty: ranks --------------------------------------------------------------------------------------------------

cdef Py_ssize_t SCORES = 2000           # that ranks are taken among
cdef Py_ssize_t RECENT_SCORES = 1000    # that the level of alerts is a quantile of
cdef double HIGHEST = 4.0               # rank at which there are alerts at most, in units of nu
cdef long long FIRST_HELD = 100         # rows of which none is held back
cdef double TOKENS = 5.0                # alerts in a row that are scores like any other,
cdef double EARNED = 5.0                # and by how many, in units of nu, a row without alert makes these more
cdef double REPAID = 0.3                # share of the alerts that there are fewer of after too many,
cdef double EXCESS = 50.0               # and how many alerts too many that takes
cdef double TIE = 1e-9                  # less than two means of ranks differ by
cdef double DOUBTFUL = 4.0              # ranks below so many times nu are held back between alerts


cdef class AveragedRanks(Combiner):
    """Novelty: the mean over members of the log rank of a score among its like, and the rank of that mean among its
    like.

    Logarithms, as Fisher combined tests: a member that is very sure that a row is odd counts. Ranks are among uniform
    samples of the past. The higher, the more ordinary.

    A rank below `level`, which is what `run` has for deviations, is an alert: the rank of a quantile of the latest
    means, so a share nu alerts, also where rows become more ordinary than those before; ranks above 4 nu never do. A
    burst of alerts tells nothing of the rows to come, so a few alerts at a time are scores like others, and the rest is
    not taken into the samples. How many alerts there were too many so far is `excess`, which lowers the quantile a
    little until it is made up for. Where it reaches `patience`, a burst has become the ordinary state.

    Rows that alert are marked in `held` by 1, so that no member keeps them, until there have been so many; and rows
    after nearly as many by 2, until some are made up for, unless the past fades: they are not what features are scaled
    by.

    Parameters
    ----------
    n : int
        Members.
    memory : int
        After how many rows the past fades; 0 for never.
    nu : float
        The share of rows to alert about, in (0, 1).
    patience : int
        Alerts too many after which rows that alert are taken for ordinary; 0 for at once.
    weights : list of float or None
        Of the members in the mean; None for all alike.
    """

    FIELDS = (Count("t"), Part("each"), Part("mean"), Part("latest"), Number("tokens", within(0.0, TOKENS)),
              Number("excess", not_negative))

    def __init__(self, Py_ssize_t n, long long memory=0, double nu=0.02, long long patience=0, weights=None):
        size, weights = min(SCORES, memory or SCORES), np.ones(n) if weights is None else np.array(weights)
        self.member_weights = weights / weights.sum()
        self.weights_data = data_of(self.member_weights)
        self.n_members, self.targets = n, 1
        self.each, self.mean = Ranks(n, size, memory, 1), Ranks(1, size, memory, 2)
        self.latest = Ranks(1, min(RECENT_SCORES, size), latest=True)
        self.nu, self.patience, self.tokens = nu, patience, TOKENS

    cdef Py_ssize_t scratch_size(self, Py_ssize_t outputs) noexcept nogil:
        return self.n_members

    cdef void run(self, Py_ssize_t n, Py_ssize_t outputs, const double* scores, const double* y,
                  const Py_ssize_t* n_seen, const double* counts, const unsigned char* enabled, double* combined,
                  double* deviations) noexcept nogil:
        """As of any combiner; all rows count alike."""
        cdef Py_ssize_t t, m = self.n_members
        cdef double mean
        for t in range(n):
            self.each.evaluate_row(scores + t * m, self.scratch)
            mean = mean_log(self.scratch, self.weights_data, enabled, m)
            combined[t], deviations[t] = self.rank_of(mean), self.level()
            if self.counts_after(combined[t] < deviations[t], mean, NULL if self.held == NULL else self.held + t):
                self.each.learn_row(scores + t * m, NULL)
                self.mean.learn_row(&mean, NULL)
                self.latest.learn_row(&mean, NULL)

    cdef bint counts_after(self, bint alert, double mean, unsigned char* held) noexcept nogil:
        """Whether a row is a score like others, after it; to `held` whether members should not keep it."""
        cdef bint waits = self.excess < self.patience, counts = True, holds = False
        self.t += 1
        if self.t > FIRST_HELD:
            if not alert:
                holds = waits and self.tokens < 1.0 and mean < self.latest.quantile(DOUBTFUL * self.share())
                self.tokens = fmin(self.most_tokens(), self.tokens + EARNED * self.nu)
            elif self.tokens >= 1.0:
                holds = waits
                self.tokens -= 1.0
            else:
                holds, counts = waits, not waits
            self.excess = fmax(0.0, self.excess + alert - self.nu)
        if held != NULL:
            held[0] = 1 if holds else 2 if not self.each.memory and self.excess > 0.9 * self.patience > 0.0 else 0
        return counts

    cdef double most_tokens(self) noexcept nogil:
        """So few that a burst is not what the level is a quantile of."""
        return fmin(TOKENS, fmax(1.0, 0.25 * self.nu * <double> min(self.latest.t, self.latest.size)))

    cdef double share(self) noexcept nogil:
        """Of the latest means, those that alerts are below."""
        return self.nu * (1.0 - REPAID * fmin(1.0, self.excess / EXCESS))

    cdef double rank_of(self, double mean) noexcept nogil:
        """The rank of a mean; a little of the mean itself tells apart those of one rank, also beyond all others."""
        cdef double rank
        self.mean.evaluate_row(&mean, &rank)
        return rank + 1e-6 * mean

    cpdef double level(self) noexcept nogil:
        """The rank below which there are alerts; a row that no member has seen the like of always is one. O(log n)."""
        cdef double mean, rank
        if self.latest.t == 0:
            return self.nu
        mean = self.latest.quantile(self.share())
        rank = self.rank_of(mean)
        if mean <= log(0.5 / (min(self.each.t, self.each.size) + 1)) + TIE:     # the lowest rank, by all of them
            rank += TIE
        return fmin(rank, highest_level(self.nu))

    cdef void combine(self, Py_ssize_t n, Py_ssize_t outputs, const double* scores, Py_ssize_t n_seen,
                      const unsigned char* enabled, double* combined, double* deviations,
                      double* scratch) noexcept nogil:
        cdef Py_ssize_t t, m = self.n_members
        for t in range(n):
            self.each.evaluate_row(scores + t * m, scratch)
            combined[t], deviations[t] = self.rank_of(mean_log(scratch, self.weights_data, enabled, m)), 1.0

    cpdef void begin_anew(self) noexcept nogil:
        """Forget the first half of all scores, of a time when members knew too little; before row 2000."""
        self.each.restart(self.each.t // 2)
        self.mean.restart(self.mean.t // 2)
        self.latest.restart(self.latest.t // 2)

    cdef void current_weights(self, Py_ssize_t group, double* w) noexcept nogil:
        memcpy(w, self.weights_data, self.n_members * sizeof(double))

    def fits(self, state):
        """The samples have seen the same rows."""
        if not state["each"]["t"] == state["mean"]["t"] <= state["t"] or state["latest"]["t"] > state["t"]:
            raise ValueError("the samples of ranks have not seen the same rows")


cdef double highest_level(double nu) noexcept nogil:
    return fmin(HIGHEST * nu, 0.5 + 0.5 * nu)


cdef double mean_log(const double* ranks, const double* weights, const unsigned char* enabled,
                     Py_ssize_t m) noexcept nogil:
    """Mean logarithm of the ranks by members that are enabled."""
    cdef Py_ssize_t i
    cdef double total = 0.0, weight = 0.0
    for i in range(m):
        if enabled[i]:
            total += weights[i] * log(ranks[i])
            weight += weights[i]
    return total / weight if weight > 0.0 else 0.0


# ---- Calibration -----------------------------------------------------------------------------------------------------

cdef enum:
    KNOTS = 21          # at p = 1 - (1 - k / 20)^2, closer to each other near 1

cdef double FADING = 0.9998
cdef double PRIOR = 100.0       # rows at each knot that were as right as they were expected to be
cdef double STIFF = 75.0        # precision of shift and slope beforehand: that of 300 rows at p = 1/2
cdef double SUREST = 1e-6       # by which p stays away from 0 and 1 where its log odds are taken
cdef double FLATTEST = 0.05     # the least slope: the surer, the likelier
cdef double APART = 1e-9        # by which the likeliest class stays ahead


cdef double knot_of(double p) noexcept nogil:
    """The place of a probability among the knots."""
    return (1.0 - sqrt(fmax(0.0, 1.0 - p))) * (KNOTS - 1)


cdef double log_odds(double p) noexcept nogil:
    p = fmin(fmax(p, SUREST), 1.0 - SUREST)
    return log(p / (1.0 - p))


cdef Py_ssize_t likeliest(const double* p, Py_ssize_t n) noexcept nogil:
    """The first of the largest."""
    cdef Py_ssize_t c, best = 0
    for c in range(1, n):
        if p[c] > p[best]:
            best = c
    return best


cdef class Probabilities:
    """Base of what changes probabilities of classes by what has happened; a subclass has `change` and `learn`."""

    cdef int open(self, Py_ssize_t outputs) except -1:
        """Memory for so many classes."""

    cdef void change(self, double* p, Py_ssize_t n_seen) noexcept nogil:
        """Change those of a row, of two classes at least."""

    cdef void learn(self, const double* before, const double* after, Py_ssize_t n_seen, Py_ssize_t label,
                    double count) noexcept nogil:
        """Learn a row, by its probabilities before and after they were changed."""

    cdef void set_factors(self, Py_ssize_t n_seen, Py_ssize_t outputs, double* factors) noexcept nogil:
        """What `change` multiplies by now, but for what all are divided by."""

    cdef void run(self, Py_ssize_t n, Py_ssize_t outputs, const double* likely, const double* y,
                  const Py_ssize_t* n_seen, const double* counts, double* changed, double* factors) noexcept nogil:
        """Probabilities (n, outputs) just before each row, and factors unless that is NULL; the rows are learned."""
        cdef Py_ssize_t t
        for t in range(n):
            if factors != NULL:
                self.set_factors(n_seen[t], outputs, factors + t * outputs)
            self.evaluate(1, outputs, likely + t * outputs, n_seen[t], changed + t * outputs)
            self.learn(likely + t * outputs, changed + t * outputs, n_seen[t], <Py_ssize_t> y[t], counts[t])

    cdef void evaluate(self, Py_ssize_t n, Py_ssize_t outputs, const double* likely, Py_ssize_t n_seen,
                       double* changed) noexcept nogil:
        """The same as of now."""
        cdef Py_ssize_t t
        memcpy(changed, likely, n * outputs * sizeof(double))
        for t in range(n if n_seen > 1 else 0):
            self.change(changed + t * outputs, n_seen)

    def advance(self, const double[:, ::1] likely, y, n_seen, counts=None):
        """(changed probabilities, factors) just before each row, shapes (n, classes); the rows are learned."""
        cdef Py_ssize_t n = likely.shape[0], outputs = likely.shape[1]
        cdef const double[::1] labels = np.ravel(y), weights = np.ones(n) if counts is None else counts
        cdef const Py_ssize_t[::1] there = n_seen
        changed, factors = np.empty((n, outputs)), np.ones((n, outputs))
        if n:
            self.open(outputs)
            self.run(n, outputs, &likely[0, 0], &labels[0], &there[0], &weights[0], data_of(changed), data_of(factors))
        return changed, factors

    def factors(self, Py_ssize_t classes):
        """What probabilities of so many classes are multiplied by as of now."""
        found = np.ones(classes)
        self.set_factors(classes, classes, data_of(found))
        return found

    def _check(self):
        check_state(self)


@cython.final
cdef class Calibration(Probabilities):
    """Hit rates of the likeliest class by its probability p: log odds that are shifted and stretched, and what is left
    at some knots.

    log q / (1 - q) = log p / (1 - p) + v_0 + v_1 / 2 log p / (1 - p), by leaky Newton steps on the log loss; then q
    plus how much more often the class was right than q says, at some knots of q, between which it is interpolated. All
    fade. The other classes share the rest as before, and the likeliest one stays the likeliest.

    How others share the rest is taken from their own probabilities and not from 1 - p, which is rounding where p is
    near 1; where they sum to less than `SUREST` they tend to equal shares.
    """

    cdef readonly object sums                   # of rows, of hits, and of hits as q has it, at the knots
    cdef readonly LeakyFits line
    cdef public long long t
    cdef double* sums_data

    FIELDS = Count("t"), Buffer("sums", not_negative), Part("line")

    def __init__(self):
        self.sums, self.t = np.zeros((3, KNOTS)), 0
        self.line = LeakyFits(2, [(FADING, STIFF)], 0.0)
        self.sums_data = data_of(self.sums)

    cdef void learn(self, const double* before, const double* after, Py_ssize_t n_seen, Py_ssize_t label,
                    double count) noexcept nogil:
        cdef Py_ssize_t i, k, best = likeliest(before, n_seen)
        cdef double q, place, share
        cdef double[2] x
        cdef double[2] gradient
        cdef bint hit = label == best
        if n_seen < 2:
            return
        q, count = self.stretched(before[best]), fmin(count, LARGEST_WEIGHT)
        place = knot_of(q)
        k = <Py_ssize_t> fmin(place, KNOTS - 2)
        for i in range(3 * KNOTS):
            self.sums_data[i] *= FADING
        for i in range(2):
            share = count * (place - k if i else 1.0 - (place - k))
            self.sums_data[k + i] += share
            self.sums_data[KNOTS + k + i] += share * hit
            self.sums_data[2 * KNOTS + k + i] += share * q
        self.line.leak(0, self.t)
        x[0], x[1] = 1.0, 0.5 * log_odds(before[best])
        for i in range(2):
            gradient[i] = (hit - q) * x[i]
        self.line.newton(0, x, gradient, count, q * (1.0 - q))
        self.t += 1

    cdef double stretched(self, double p) noexcept nogil:
        """q, see above."""
        return 1.0 / (1.0 + exp(-self.line.w_data[0] - fmax(FLATTEST, 1.0 + 0.5 * self.line.w_data[1]) * log_odds(p)))

    cdef void change(self, double* p, Py_ssize_t n_seen) noexcept nogil:
        cdef Py_ssize_t c, best = likeliest(p, n_seen)
        cdef double q = self.stretched(p[best]), place = knot_of(q), rest = 0.0, second = 0.0, rate, extra, total
        cdef Py_ssize_t k = <Py_ssize_t> fmin(place, KNOTS - 2)
        rate = q + (1.0 - place + k) * self.left_at(k) + (place - k) * self.left_at(k + 1)
        for c in range(n_seen):
            if c != best:
                rest += p[c]
                second = fmax(second, p[c])
        total = fmax(rest, SUREST)
        extra = (total - rest) / (n_seen - 1)
        second = (second + extra) / total
        rate = fmin(fmax(rate, second / (1.0 + second) + APART), 1.0)
        for c in range(n_seen):
            p[c] = (p[c] + extra) / total * (1.0 - rate)
        p[best] = rate

    cdef double left_at(self, Py_ssize_t k) noexcept nogil:
        """How much more often the class was right than q says."""
        return (self.sums_data[KNOTS + k] - self.sums_data[2 * KNOTS + k]) / (self.sums_data[k] + PRIOR)

    def fits(self, state):
        """A row is a hit at most."""
        rows, hits, expected = state["sums"]
        if (np.maximum(hits, expected) > rows * (1 + 1e-9)).any():
            raise ValueError("sums have more hits than rows")


# ---- Prior correction ------------------------------------------------------------------------------------------------

cdef double FREQUENCIES = 0.998         # fading of what thresholds are chosen by
cdef double LARGEST_FREQUENCY = 1.0 / (1.0 - FREQUENCIES) * (1.0 + 1e-9)


@cython.final
cdef class PriorCorrection(Probabilities):
    """Probabilities times a factor for each class, so that the largest is another one where classes are rare.

    "balanced": 1 / frequency, so each class counts alike. "f1", for two classes: the best threshold of the probability
    of the rarer one is half the F1 that it reaches.

    >>> correction = PriorCorrection("balanced")
    >>> likely, y = np.array([[0.9, 0.1]] * 400), np.arange(400) % 10 == 9.0
    >>> corrected, factors = correction.advance(likely, y.astype(float), np.full(400, 2))
    >>> corrected[-1].round(1), correction.factors(2).round(3)[1] > 5 * correction.factors(2)[0]
    (array([0.5, 0.5]), np.True_)
    """

    cdef readonly bint balanced                 # each class counts alike; otherwise F1 of the rarer of two
    cdef Py_ssize_t classes                     # that there is memory for
    cdef readonly object frequencies, found     # fading: of the classes; rare rows that were found, alarms, rare rows
    cdef double* frequencies_data
    cdef double* found_data

    FIELDS = (
        Array("frequencies", float, ("n_classes",), within(0.0, LARGEST_FREQUENCY)),
        Buffer("found", within(0.0, LARGEST_FREQUENCY)))

    def __init__(self, kind):
        if kind not in ("balanced", "f1"):
            raise ValueError(f"kind must be 'balanced' or 'f1'. Got {kind!r} instead.")
        self.balanced = kind == "balanced"
        self.frequencies, self.found = np.zeros(0), np.zeros(3)
        self.frequencies_data, self.found_data = data_of(self.frequencies), data_of(self.found)

    cdef int open(self, Py_ssize_t outputs) except -1:
        if self.classes < outputs:
            fresh = np.concatenate([self.frequencies, np.zeros(outputs - self.classes)])
            self.frequencies_data, self.frequencies, self.classes = data_of(fresh), fresh, outputs

    cdef double total(self, Py_ssize_t n_seen) noexcept nogil:
        """Sum of the frequencies of the first classes."""
        cdef Py_ssize_t c
        cdef double total = 0.0
        for c in range(min(n_seen, self.classes)):
            total += self.frequencies_data[c]
        return total

    cdef double factor(self, Py_ssize_t c, Py_ssize_t n_seen, double total) noexcept nogil:
        """What the probability of a class is multiplied by, where the frequencies sum to `total`."""
        cdef double mine = self.frequencies_data[c] if c < self.classes else 0.0, level
        if self.balanced:
            return 1.0 / fmax(mine, 1e-3 * fmax(total, 1e-300) + 1e-300)
        if n_seen != 2 or self.classes < 2 or fmin(self.frequencies_data[0], self.frequencies_data[1]) <= 0.0:
            return 1.0
        if c == (self.frequencies_data[1] > self.frequencies_data[0]):      # the more frequent one
            return 1.0
        # Half of F1, with a little prior
        level = (self.found_data[0] + 1.0) / (self.found_data[1] + self.found_data[2] + 2.0)
        level = fmin(fmax(level, 0.02), 0.5)
        return (1.0 - level) / level

    cdef void set_factors(self, Py_ssize_t n_seen, Py_ssize_t outputs, double* factors) noexcept nogil:
        cdef Py_ssize_t c
        cdef double total = self.total(n_seen)
        for c in range(outputs):
            factors[c] = self.factor(c, n_seen, total) if 1 < n_seen and c < n_seen else 1.0

    cdef void change(self, double* p, Py_ssize_t n_seen) noexcept nogil:
        cdef Py_ssize_t c
        cdef double sum_of_all = 0.0, total = self.total(n_seen)
        for c in range(n_seen):
            p[c] *= self.factor(c, n_seen, total)
            sum_of_all += p[c]
        for c in range(n_seen):
            p[c] /= fmax(sum_of_all, 1e-300)

    cdef void learn(self, const double* before, const double* after, Py_ssize_t n_seen, Py_ssize_t label,
                    double count) noexcept nogil:
        cdef Py_ssize_t c, rare = -1
        cdef double* found = self.found_data
        cdef bint alarm
        if n_seen == 2:
            rare = self.frequencies_data[1] < self.frequencies_data[0]
        if n_seen > 1:
            alarm = likeliest(after, n_seen) == rare
            found[0] = FREQUENCIES * found[0] + (alarm and label == rare)
            found[1] = FREQUENCIES * found[1] + alarm
            found[2] = FREQUENCIES * found[2] + (label == rare)
        for c in range(self.classes):
            self.frequencies_data[c] *= FREQUENCIES
        self.frequencies_data[label] += 1.0

    def fits(self, state):
        """A rare row that was found is an alarm and a rare row."""
        found, alarms, rare = state["found"]
        if state["frequencies"].sum() > LARGEST_FREQUENCY or found > min(alarms, rare) * (1.0 + 1e-9):
            raise ValueError("frequencies or found are not those of rows")

    def resume(self, state):
        self.open(len(state["frequencies"]))
        self.frequencies[:] = 0.0
        self.frequencies[:len(state["frequencies"])] = state["frequencies"]
        self.found[:] = state["found"]


# ---- Fences ----------------------------------------------------------------------------------------------------------

cdef enum:
    RESIDUALS = 256             # of which a fence is taken
    SET_EVERY = 16              # rows

cdef double FENCE = 3.0         # times the 95 % quantile of residuals beyond which a target is clipped,
cdef double FENCED = 4.0        # and deviations that it is away at least
cdef double HALFWAY = 2.0        # reaches of a residual from which on it says less,
cdef double NOTHING = 6.0        # and nothing
cdef double FENCED_FIRST = 3.0  # deviations from the median of the first targets
cdef double GROSS = 10.0         # times the other one of two
cdef double OUTLYING = 3.0       # reaches, of one of the first
cdef double NORMAL_MEDIAN = 0.6745      # of the size of a normal deviation
cdef double LASTING = 3.0       # targets in a row beyond a fence, from which on they count as they are
cdef double PLAUSIBLE = 0.5     # of the range of targets so far that one may be beyond it and count as it is
cdef double BELIEVED = 3.0      # mean error nearby in deviations, from which on a target counts as it is


cdef class TargetFences:
    """Targets as members learn them: clipped to a fence about the prediction, from the residuals of late.

    What is not far beyond all targets that were believed is no gross error, and counts as it is. A level that lasts is
    none, either: of several in a row on one side the third counts, and so does a target near to which errors have been
    large. The first rows are held to the nearest of the prediction, the last target and the median of those before, by
    their median deviation; of the first three nobody can say that one is an outlier, until there are eight.

    Parameters
    ----------
    targets : int

    >>> fences = TargetFences(1)
    >>> y = np.sin(np.arange(40.0))[:, None]
    >>> y[5], y[35:] = 1e6, 50.0
    >>> clipped = fences.advance(y, np.zeros((40, 1)))
    >>> clipped[5:7].round(1).ravel().tolist(), clipped[34:].round(1).ravel().tolist()
    ([0.1, -0.3], [0.5, 0.0, 0.0, 50.0, 50.0, 50.0])
    """

    FIELDS = (Count("t"), Buffer("first"), Buffer("residuals", not_negative), Buffer("quantile", not_negative),
              Buffer("beyond"), Buffer("excess", not_negative), Buffer("mean"), Buffer("least"), Buffer("largest"))

    def __init__(self, Py_ssize_t targets):
        self.excess = np.zeros(targets)
        self.excess_data = data_of(self.excess)
        self.targets, self.scratch = targets, np.zeros(RESIDUALS)
        self.first, self.residuals = np.zeros((FEW_ROWS, targets)), np.zeros((RESIDUALS, targets))
        self.quantile, self.beyond, self.mean = np.zeros(targets), np.zeros(targets), np.zeros(targets)
        self.first_data, self.residual_data = data_of(self.first), data_of(self.residuals)
        self.quantile_data, self.beyond_data = data_of(self.quantile), data_of(self.beyond)
        self.mean_data, self.work = data_of(self.mean), data_of(self.scratch)
        self.least, self.largest = np.zeros(targets), np.zeros(targets)
        self.least_data, self.largest_data = data_of(self.least), data_of(self.largest)

    cdef bint has_outlier(self) noexcept nogil:
        """Whether one of the first targets, which are learned as they are, lies far from all others. O(30 targets)."""
        cdef Py_ssize_t i, j
        cdef double reach, most
        for j in range(self.targets if self.t > 1 else 0):
            reach = OUTLYING * self.first_reach(j, &most)
            if self.t == 2:                     # gross errors are large
                reach = (GROSS - 1.0) * fabs(self.mean_data[j])
            for i in range(min(UNKNOWN, <Py_ssize_t> self.t)):
                if fabs(self.first_data[i * self.targets + j] - self.mean_data[j]) > reach:
                    return True
        return False

    cdef bint is_young(self) noexcept nogil:
        """Whether members know too little, or have learned an outlier."""
        return self.t < 2 or self.t < DECIDED and self.has_outlier()

    def forget_outliers(self):
        """Whether one of the first targets was an outlier, which is no more."""
        cdef Py_ssize_t j
        if self.t != DECIDED or not self.has_outlier():
            return False
        for j in range(self.targets):
            self.first[:UNKNOWN, j] = self.mean[j]
        return True

    cdef double deviation(self, Py_ssize_t j, double* most) noexcept nogil:
        """Of the first targets from their median, robust, and the largest; 0 if it is not known. O(30)."""
        cdef Py_ssize_t i, n = <Py_ssize_t> self.t
        cdef double second = 0.0, middle
        most[0] = 0.0
        for i in range(n):
            self.work[i] = fabs(self.first_data[i * self.targets + j] - self.mean_data[j])
            second = fmax(second, fmin(most[0], self.work[i]))
            most[0] = fmax(most[0], self.work[i])
        middle = median(self.work, n) if n > 1 else 0.0
        if middle > 0.0:
            return middle / NORMAL_MEDIAN
        return second if second > 0.0 else most[0]      # where most are one number

    cdef double first_reach(self, Py_ssize_t j, double* most) noexcept nogil:
        """How far the first targets are from their median if none is an outlier."""
        return FENCED_FIRST * self.deviation(j, most) * (1.0 + 2.0 / self.t)

    cdef double reach(self, Py_ssize_t j, double deviation, double local) noexcept nogil:
        """How far a target may be from the prediction, or the median while there are few."""
        cdef double reach, most
        if self.t < UNKNOWN or local > BELIEVED:
            return INFINITY
        if self.t < FEW_ROWS:
            reach = self.first_reach(j, &most)
            if self.t < DECIDED:                # what seems to be far may not be
                reach = fmax(reach, most)
            return reach if reach > 0.0 else INFINITY       # all are the same
        return fmax(FENCE * self.quantile_data[j], FENCED * deviation) * fmax(1.0, local)

    cdef void tell(self, const double* y, const double* predicted, const double* deviations, const double* local,
                   double* clipped) noexcept nogil:
        """Targets of the next row as members learn them; `local`: mean errors nearby in deviations, or NULL."""
        cdef Py_ssize_t j, T = self.targets, now = <Py_ssize_t> (self.t % RESIDUALS)
        cdef double side, centre, reach, share = fmax(1.0 / (self.t + 1.0), 1e-3)
        for j in range(T):
            reach = self.reach(j, deviations[j], 0.0 if local == NULL else local[j])
            centre = predicted[j] if self.t else 0.0
            if self.t < FEW_ROWS:
                centre = nearest(y[j], centre, self.mean_data[j])
                if self.t:
                    centre = nearest(y[j], centre, self.first_data[(self.t - 1) * T + j])
            elif self.is_plausible(y[j], j):
                reach = INFINITY
            side = (y[j] > centre + reach) - (y[j] < centre - reach)
            self.beyond_data[j] = self.beyond_data[j] + side if side * self.beyond_data[j] > 0.0 else side
            if fabs(self.beyond_data[j]) == 1.0:
                self.excess_data[j] = fabs(y[j] - centre)
            elif side != 0.0:
                self.excess_data[j] = fmin(self.excess_data[j], fabs(y[j] - centre))
            if fabs(self.beyond_data[j]) >= LASTING:        # and no farther beyond than these
                reach = fmax(reach, LASTING * self.excess_data[j])
            clipped[j] = centre + believed(y[j] - centre, reach)
            if self.t >= FEW_ROWS and fabs(y[j] - centre) <= reach:
                self.least_data[j] = fmin(self.least_data[j], y[j])
                self.largest_data[j] = fmax(self.largest_data[j], y[j])
            self.residual_data[now * T + j] = fabs(y[j] - predicted[j]) if self.t else 0.0
            if self.t < FEW_ROWS:
                self.first_data[self.t * T + j] = y[j]
                self.mean_data[j] = self.first_median(j, self.t + 1)
            else:
                self.mean_data[j] += share * (clipped[j] - self.mean_data[j])
        self.t += 1
        if self.t == FEW_ROWS or self.t > FEW_ROWS and self.t % SET_EVERY == 0:
            for j in range(T):
                self.set_quantile(j)
                if self.t == FEW_ROWS:
                    self.set_range(j)

    cdef bint is_plausible(self, double y, Py_ssize_t j) noexcept nogil:
        """Whether a target is not far beyond all that were believed."""
        cdef double margin = PLAUSIBLE * (self.largest_data[j] - self.least_data[j])
        return self.least_data[j] - margin <= y <= self.largest_data[j] + margin

    cdef void set_range(self, Py_ssize_t j) noexcept nogil:
        """That of the first targets, but for outliers."""
        cdef double most, y, reach = self.first_reach(j, &most)
        cdef Py_ssize_t i
        self.least_data[j] = self.largest_data[j] = self.mean_data[j]
        for i in range(FEW_ROWS):
            y = self.first_data[i * self.targets + j]
            if fabs(y - self.mean_data[j]) <= reach:
                self.least_data[j] = fmin(self.least_data[j], y)
                self.largest_data[j] = fmax(self.largest_data[j], y)

    cdef double first_median(self, Py_ssize_t j, Py_ssize_t n) noexcept nogil:
        cdef Py_ssize_t i
        for i in range(n):
            self.work[i] = self.first_data[i * self.targets + j]
        if n == 2:                              # the other one may be an outlier
            return self.work[0] if fabs(self.work[0]) <= fabs(self.work[1]) else self.work[1]
        return median(self.work, n)

    cdef void set_quantile(self, Py_ssize_t j) noexcept nogil:
        """That of 95 % of the residuals."""
        cdef Py_ssize_t i, n = <Py_ssize_t> min(self.t, RESIDUALS)
        for i in range(n):
            self.work[i] = self.residual_data[i * self.targets + j]
        self.quantile_data[j] = nth_smallest(self.work, n, (95 * n - 1) // 100)

    def advance(self, const double[:, ::1] y, const double[:, ::1] predicted):
        """Targets as members learn them, where no deviation is known."""
        cdef double[:, ::1] clipped = np.empty((y.shape[0], self.targets))
        cdef double[::1] nothing = np.zeros(self.targets)
        for i in range(y.shape[0]):
            self.tell(&y[i, 0], &predicted[i, 0], &nothing[0], NULL, &clipped[i, 0])
        return np.asarray(clipped)

    def fits(self, state):
        """No more targets were beyond a fence than there were."""
        beyond = np.abs(state["beyond"])
        if not (beyond <= state["t"]).all() or (beyond != np.floor(beyond)).any():
            raise ValueError("beyond is not a number of targets")
        if (state["least"] > state["largest"]).any():
            raise ValueError("least is beyond largest")


cdef double believed(double residual, double reach) noexcept nogil:
    """As much of a residual as members are told of: what is far beyond the reach says nothing (Hampel 1974)."""
    cdef double size = fabs(residual)
    if size <= reach:
        return residual
    size = fmin(reach, fmax(0.0, (NOTHING * reach - size) / (NOTHING - HALFWAY)))
    return size if residual > 0.0 else -size


cdef double nearest(double y, double one, double other) noexcept nogil:
    return one if fabs(y - one) <= fabs(y - other) else other


cdef double median(double* x, Py_ssize_t n) noexcept nogil:
    """The median; x is shuffled. O(n)."""
    cdef double above = nth_smallest(x, n, n // 2)
    return above if n % 2 else 0.5 * above + 0.5 * nth_smallest(x, n, n // 2 - 1)


# ---- Intervals -------------------------------------------------------------------------------------------------------

cdef enum:
    KEPT = 500          # innovations that intervals are taken from

cdef Py_ssize_t LED = 200       # how many of them lead a half-width,
cdef double LEADS = 0.1         # and how far each
# Half-widths in units of a prediction from which on the interval of a positive target begins at 0
cdef double REACH = 3.0
cdef double MOST = 1e6          # deviations of an error at most


cdef double nth_smallest(double* x, Py_ssize_t n, Py_ssize_t k) noexcept nogil:
    """The number that would be at place k if x were sorted; x is shuffled. O(n) (Hoare's quickselect)."""
    cdef Py_ssize_t low = 0, high = n - 1, i, j
    cdef double pivot, other
    while low < high:
        pivot, i, j = x[(low + high) // 2], low, high
        while i <= j:
            while x[i] < pivot:
                i += 1
            while pivot < x[j]:
                j -= 1
            if i <= j:
                other = x[i]
                x[i] = x[j]
                x[j] = other
                i += 1
                j -= 1
        if k <= j:
            high = j
        elif k >= i:
            low = i
        else:
            break
    return x[k]


cdef double factor_of(const double* innovations, Py_ssize_t n, Py_ssize_t stride, double coverage, double gaussian,
                      double* scratch) noexcept nogil:
    """The half-width of an interval in deviations, from the last n <= 500 innovations, the oldest first.

    It begins with the smallest that covers at least `coverage` of them, and of the one to come if that is like them.
    Then it is led along the last 200: each that was outside makes it larger, and each inside smaller, so that it
    balances where they grow or shrink. While they are too few to say, it is no less than that of a Gaussian.
    """
    cdef Py_ssize_t i, place = <Py_ssize_t> ceil((n + 1) * coverage) - 1
    cdef double found = gaussian, outside = exp(LEADS * coverage), inside = exp(-LEADS * (1.0 - coverage))
    for i in range(n):
        scratch[i] = innovations[i * stride]
        if place >= n:
            found = fmax(found, scratch[i])
    if place >= n:
        return found
    found = nth_smallest(scratch, n, place)
    for i in range(max(0, n - LED), n):
        found *= outside if innovations[i * stride] > found else inside
    return found


cdef bint is_positive_so_far(double least, double f) noexcept nogil:
    return 0.0 < least < INFINITY and 0.0 < f


cdef double innovation_of(double f, double y, double deviation, double least) noexcept nogil:
    """By how many deviations a prediction was wrong, where the least target before it was `least`; the inverse of
    `ends_of`. Where no deviation was known it says nothing, and more than a million of them are a million."""
    cdef double error = fabs(y - f)
    if y < f and is_positive_so_far(least, f):
        error = fmin(log(f / fmax(y, 0.0)), REACH) * f
    return fmin(error / deviation, MOST) if deviation > 0.0 else 0.0


cdef void ends_of(double f, double half, double least, double* low, double* high) noexcept nogil:
    """Ends of the interval about a prediction, where the least target before it was `least`."""
    cdef double floor = 0.0 if 0.0 <= least < INFINITY else -INFINITY, ratio
    low[0] = f - half
    if is_positive_so_far(least, f):
        ratio = half / f
        low[0] = f * exp(-ratio) if ratio < REACH else 0.0
    low[0], high[0] = fmax(low[0], floor), fmax(f + half, floor)


cdef class IntervalTracker:
    """Intervals of numbers that follow innovations: errors of the past, in units of what was expected.

    As long as all targets were `positive`, they are taken to go on so: below a prediction f an error is a ratio, f
    log(f / y) in place of f - y, which is the same where it is small, so intervals do not begin below 0, and cover what
    they would.

    Parameters
    ----------
    targets : int
    of_positive : bool
        Whether positive targets are treated so.

    >>> tracker = IntervalTracker(1)
    >>> f, y = np.zeros((2000, 1)), np.random.default_rng(0).standard_cauchy((2000, 1))
    >>> innovations, _ = tracker.advance(f, y, np.ones((2000, 1)))
    >>> half_widths = interval_factors(innovations, 500, 0.8)[:-1]
    >>> bool(abs(np.mean(innovations[500:] <= half_widths) - 0.8) < 0.01)
    True
    """

    FIELDS = (
        Array("innovations", float, ("kept_rows", "targets"), not_negative),
        Buffer("least", when=lambda tracker: tracker.positive))

    def __init__(self, Py_ssize_t targets, bint of_positive=False):
        self.targets, self.positive = targets, of_positive
        self.least, self.kept = np.full(targets, np.inf), np.zeros((2 * KEPT, targets))
        self.least_data, self.kept_data = data_of(self.least), data_of(self.kept)

    @property
    def innovations(self):
        """The last ones, the oldest first, shape (n, targets)."""
        return self.kept[self.first:self.first + self.n].copy()

    cdef void run(self, Py_ssize_t n, const double* predictions, const double* y, const double* deviations,
                  double* innovations, double* leasts) noexcept nogil:
        """Innovations (n, targets) of rows, which are learned, and least targets before each row, unless NULL."""
        cdef Py_ssize_t t, j, i, T = self.targets
        cdef double* row
        for t in range(n):
            if self.first + self.n == 2 * KEPT:
                memmove(self.kept_data, self.kept_data + self.first * T, self.n * T * sizeof(double))
                self.first = 0
            row = self.kept_data + (self.first + self.n) * T
            for j in range(T):
                i = t * T + j
                if leasts != NULL:
                    leasts[i] = self.least_data[j]
                row[j] = innovations[i] = innovation_of(predictions[i], y[i], deviations[i],
                                                        self.least_data[j] if self.positive else INFINITY)
                self.least_data[j] = fmin(self.least_data[j], y[i])
            self.n += 1
            if self.n > KEPT:
                self.n, self.first = KEPT, self.first + 1

    def advance(self, const double[:, ::1] predictions, const double[:, ::1] y, const double[:, ::1] deviations):
        """(innovations, least targets before each row), shapes (n, targets); the rows are learned."""
        cdef Py_ssize_t n = y.shape[0]
        found, leasts = np.zeros((n, self.targets)), np.zeros((n, self.targets))
        if found.size:
            self.run(n, &predictions[0, 0], &y[0, 0], &deviations[0, 0], data_of(found), data_of(leasts))
        return found, leasts

    def half_widths(self, double coverage):
        """Half-widths of the next intervals in deviations, shape (targets,)."""
        return interval_factors(self.innovations, self.n, coverage)[0]

    def stored(self):
        """The least target; 0 before the first."""
        return {"least": np.where(np.isfinite(self.least), self.least, 0.0)}

    def fits(self, state):
        """No more are kept than there is memory for."""
        if len(state["innovations"]) > KEPT:
            raise ValueError(f"innovations are more than {KEPT}")

    def resume(self, state):
        self.first, self.n = 0, len(state["innovations"])
        self.kept[:self.n] = state["innovations"]
        if self.positive:
            self.least[:] = state["least"] if self.n else np.inf


def interval_factors(innovations, Py_ssize_t first, double coverage):
    """Half-widths in deviations before each innovation from the `first` on, and after the last, (n, targets)."""
    from statistics import NormalDist

    cdef const double[:, ::1] given = np.ascontiguousarray(innovations, dtype=float)
    cdef Py_ssize_t n = given.shape[0], T = given.shape[1], t, j, begin
    cdef double gaussian = NormalDist().inv_cdf(0.5 + 0.5 * coverage)
    cdef double[::1] scratch = np.empty(KEPT)
    cdef double[:, ::1] out = np.empty((n + 1 - first, T))
    with nogil:
        for t in range(first, n + 1):
            begin = max(0, t - KEPT)
            for j in range(T):
                out[t - first, j] = factor_of(&given[0, 0] + begin * T + j, t - begin, T, coverage, gaussian,
                                              &scratch[0])
    return np.asarray(out)


def interval_ends(f, half, least):
    """(lower, upper) ends of intervals about predictions, given the least targets before them; any shapes."""
    shape = np.broadcast_shapes(np.shape(f), np.shape(half), np.shape(least))
    cdef const double[::1] F, H, L
    F, H, L = (np.ascontiguousarray(np.broadcast_to(part, shape), dtype=float).reshape(-1) for part in (f, half, least))
    cdef double[:, ::1] ends = np.empty((2, F.shape[0]))
    for i in range(F.shape[0]):
        ends_of(F[i], H[i], L[i], &ends[0, i], &ends[1, i])
    return tuple(np.asarray(ends).reshape(2, *shape))


# ---- Changes ---------------------------------------------------------------------------------------------------------

cdef enum:
    YOUNGEST = 200      # judged rows before any change is noticed: errors fall while a model is young
    PAUSE = 300         # rows after a change in which it is learned, and no other is noticed
    NOTED = 256         # changes that are kept

cdef double[2] ODDS = [2.0, 4.0]        # by which odds of mistakes are multiplied, in the alternatives
# Sums of log likelihood ratios beyond which something has changed: with the chances of mistakes that are expected, each
# is beyond it once in exp(9.5) = 13,000 rows at most
cdef double DECISIVE = 9.5
cdef double USUAL = 0.25                # of errors of numbers that are called large,
cdef double FOLLOWS = 0.011             # and how fast their threshold follows, in logarithms
cdef double FAR = 5.0                   # below an error at most, where nothing is known of their size
cdef double LEAST_SIZE = log(1e-300)    # of an error, as a logarithm
cdef double SLOW = 0.999                # memory of the rates


cdef class ChangeDetector:
    """When the truth changed: from when on there were more mistakes than were expected.

    A mistake is expected as often as probabilities say, times what has happened for each that was expected; of numbers
    it is an error among the largest quarter of late. For each of some alternatives, in which the odds of a
    mistake are larger, the log likelihood ratio is summed, from 0 on whenever it falls below (CUSUM: Page 1954). It
    decides beyond a threshold, and the change is at the row from which it was summed (its maximum likelihood estimate).
    So what is slow enough to be learned is no change, nor is a row that is hard for itself.

    Parameters
    ----------
    targets : int
        0 for labels.

    >>> detector = ChangeDetector(1)
    >>> errors = np.random.default_rng(0).normal(size=(3000, 1)) * np.repeat([1.0, 4.0], [2000, 1000])[:, None]
    >>> detector.advance(np.zeros((3000, 1)), errors)
    >>> (abs(detector.changes[:, 0] - 2000) < 20).tolist()
    [True]
    """

    FIELDS = (
        Count("t"), Count("judged"), Count("quiet"), Buffer("thresholds"), Buffer("rates", positive),
        Buffer("evidence", within(0.0, 10.0)), Buffer("since", not_negative),
        Array("changes", np.int64, ("kept_changes", 2), not_negative))

    def __init__(self, Py_ssize_t targets):
        self.targets = targets
        self.thresholds = np.full(max(1, targets), LEAST_SIZE)
        self.rates, self.evidence = np.full(2, 10.0), np.zeros(2)
        self.since, self.noted = np.zeros(2, dtype=np.int64), np.zeros((NOTED, 2), dtype=np.int64)
        self.noted_data = <long long*> array_data(self.noted)
        self.thresholds_data, self.rates_data = data_of(self.thresholds), data_of(self.rates)
        self.evidence_data, self.since_data = data_of(self.evidence), <long long*> array_data(self.since)

    cdef void run(self, Py_ssize_t n, Py_ssize_t outputs, const double* scores, const double* y,
                  const Py_ssize_t* n_seen, const double* counts) noexcept nogil:
        """Judge scores (n, outputs) of rows just before they were learned: numbers, or 2 p - 1. O(outputs) a row."""
        cdef Py_ssize_t i, j, best
        cdef double mistakes, size
        cdef bint is_large
        for i in range(n):
            if self.targets and counts[i] > 0.0:
                mistakes = 0.0
                for j in range(outputs):
                    size = fmax(log(fabs(y[i * outputs + j] - scores[i * outputs + j])), LEAST_SIZE)
                    if self.judged < YOUNGEST or self.t < self.quiet:   # errors may be of another size altogether
                        self.thresholds_data[j] = fmax(self.thresholds_data[j], size - FAR)
                    is_large = size > self.thresholds_data[j]
                    self.thresholds_data[j] += fmax(FOLLOWS, 5.0 / (self.judged + 1)) * (is_large - USUAL)
                    mistakes += is_large
                self.learn(mistakes / outputs, USUAL)
            elif not self.targets and counts[i] > 0.0 and n_seen[i] > 1 and y[i] < n_seen[i]:
                best = likeliest(scores + i * outputs, n_seen[i])
                self.learn(best != <Py_ssize_t> y[i],
                           fmin(fmax(0.5 - 0.5 * scores[i * outputs + best], 0.005), 0.95))
            self.t += 1

    cdef void learn(self, double mistake, double chance) noexcept nogil:
        """Learn whether row t was a mistake, or which share of it, and what chance that was given."""
        cdef Py_ssize_t k, most = 0
        cdef double expected = chance
        if not self.targets:
            expected = fmin(fmax(chance * self.rates_data[0] / self.rates_data[1], 0.002), 0.9)
        if self.judged >= YOUNGEST and self.t >= self.quiet:
            for k in range(2):
                if self.evidence_data[k] == 0.0:
                    self.since_data[k] = self.t
                self.evidence_data[k] = fmax(0.0, self.evidence_data[k] + mistake * log(ODDS[k])
                                             - log(1.0 + expected * (ODDS[k] - 1.0)))
                if self.evidence_data[k] > self.evidence_data[most]:
                    most = k
            if self.evidence_data[most] > DECISIVE:
                self.note(self.since_data[most])
        self.rates_data[0] = SLOW * self.rates_data[0] + mistake
        self.rates_data[1] = SLOW * self.rates_data[1] + chance
        self.judged += 1

    cdef void note(self, long long first) noexcept nogil:
        """Something has changed."""
        if self.n_changes == NOTED:
            self.n_changes -= 1
            memmove(self.noted_data, self.noted_data + 2, 2 * self.n_changes * sizeof(long long))
        self.noted_data[2 * self.n_changes], self.noted_data[2 * self.n_changes + 1] = first, self.t
        self.n_changes += 1
        self.evidence_data[0] = self.evidence_data[1] = 0.0
        self.quiet = self.t + PAUSE

    @property
    def changes(self):
        """The latest ones, shape (n, 2): the first row after each, and the one at which it was noticed."""
        return self.noted[:self.n_changes].copy()

    def advance(self, const double[:, ::1] scores, y):
        """Judge scores (n, outputs) of rows, where all labels are known."""
        cdef Py_ssize_t n = scores.shape[0]
        cdef const double[::1] given = np.ravel(y), counts = np.ones(n)
        cdef const Py_ssize_t[::1] labels = np.full(n, scores.shape[1])
        if n:
            self.run(n, scores.shape[1], &scores[0, 0], &given[0], &labels[0], &counts[0])

    def fits(self, state):
        """Nothing was noticed before it was there, and no more than is kept."""
        changes, t = state["changes"], state["t"]
        if len(changes) > NOTED or (changes[:, 0] > changes[:, 1]).any() or (changes >= t).any():
            raise ValueError("changes are too many, or not those of rows")
        if state["judged"] > t or (state["since"] > t).any() or state["quiet"] > t + PAUSE:
            raise ValueError("judged, since or quiet are ahead of the rows")

    def resume(self, state):
        self.n_changes = len(state["changes"])
        self.noted[:self.n_changes] = state["changes"]
        assign(self, {name: value for name, value in state.items() if name != "changes"})
