"""How an ensemble weighs its members: one loop over rows, after the members have had their say.

All of them say what they would have answered just before each row, then learn from it; every loop over rows is one call
without Python, so it is done whole or not at all.
"""
import numpy as np
from libc.math cimport INFINITY, exp, fabs, fmax, fmin, log, sqrt
from onlinekernels._core.arrays import check_array

cdef double SOFTEST = 0.02          # that is added to both sides of odds, so that certainty is finite
cdef double CAP = 8.0               # no row says more than this against an opinion, in nats
cdef double LONG = 0.995            # memory of the usual squared error
cdef Py_ssize_t FEW = 30            # rows before the range of targets is known well enough to cut what lies far beyond it


cdef void shared_out(double* belief, const double* losses, Py_ssize_t n, double share) noexcept nogil:
    """Bayes' rule with losses for log likelihoods; then each gives up a share to all (Herbster and Warmuth 1998)."""
    cdef Py_ssize_t i
    cdef double least = INFINITY, total = 0.0
    for i in range(n):
        least = fmin(least, losses[i])
    for i in range(n):
        belief[i] *= exp(least - losses[i])
        total += belief[i]
    for i in range(n):
        belief[i] = (1.0 - share) * belief[i] / total + share / n


cdef class Leaky:
    """Weights of members with their precision, for each of some settings: a recursive fit that leaks towards its prior.

    S is the inverse of the precision of w. With every row S <- S / memory, and one coordinate in turn gets its share of the
    prior back: the precision n (1 - memory) prior towards `start`. So weights that rows say nothing of go back, and S is bounded.
    What is added to S is symmetric to the last bit: an antisymmetric part would grow like memory^-t.
    """

    cdef readonly Py_ssize_t n, settings
    cdef readonly double start
    cdef readonly object memories, priors, w, S
    cdef double[::1] work

    def __init__(self, Py_ssize_t n, settings, double start):
        self.n, self.settings, self.start = n, len(settings), start
        self.memories, self.priors = (np.array(part, dtype=float) for part in zip(*settings))
        self.w = np.full((self.settings, n), start)
        self.S = np.array([np.eye(n) / prior for prior in self.priors])
        self.work = np.zeros(n)

    cdef void leak(self, double* w, double* S, double memory, double prior, long long t) noexcept nogil:
        cdef Py_ssize_t i, j, n = self.n, k = <Py_ssize_t> (t % n)
        cdef double precision = n * (1.0 - memory) * prior, factor, gain
        if memory == 1.0:
            return
        for i in range(n * n):
            S[i] /= memory
        factor = precision / (1.0 + precision * S[k * n + k])
        gain = factor * (self.start - w[k])
        for i in range(n):
            self.work[i] = S[k * n + i]
        for i in range(n):
            w[i] += gain * self.work[i]
            for j in range(n):
                S[i * n + j] -= factor * (self.work[i] * self.work[j])

    cdef double learn_direction(self, double* S, const double* x, double precision) noexcept nogil:
        """S after an observation of x.w with this precision. Returns x.S.x before; S x of before is left in `work`."""
        cdef Py_ssize_t i, j, n = self.n
        cdef double size = 0.0, factor
        for i in range(n):
            self.work[i] = 0.0
            for j in range(n):
                self.work[i] += S[i * n + j] * x[j]
            size += x[i] * self.work[i]
        factor = precision / (1.0 + precision * size)
        for i in range(n):
            for j in range(n):
                S[i * n + j] -= factor * (self.work[i] * self.work[j])
        return size

    def state(self):
        return {"w": self.w.copy(), "S": self.S.copy()}

    def restore(self, state):
        w = check_array(state["w"], "w", np.float64, self.w.shape)
        S = check_array(state["S"], "S", np.float64, self.S.shape)
        if max(np.abs(w).max(), np.abs(S).max()) > 1e12:
            raise ValueError("the weights are too large")
        if not np.array_equal(S, S.transpose(0, 2, 1)) or (np.linalg.eigvalsh(S) < -1e-9 * np.abs(S).max()).any():
            raise ValueError("the precision of the weights is not that of a fit")
        self.w[:], self.S[:] = w, S

    def _check(self):
        assert np.isfinite(self.w).all() and np.isfinite(self.S).all()
        assert np.array_equal(self.S, self.S.transpose(0, 2, 1)), "S is not symmetric"
        assert (np.linalg.eigvalsh(self.S) > -1e-9 * np.abs(self.S).max()).all()


def log_odds(scores):
    """Scores 2 p - 1 as log odds of p, within [-1, 1] again: rare classes have small p, which differ little, and odds that differ much.

    >>> log_odds(np.array([-1.0, -0.9, 0.0, 1.0])).round(2).tolist()
    [-1.0, -0.6, 0.0, 1.0]
    """
    return np.log((1.0 + SOFTEST + scores) / (1.0 + SOFTEST - scores)) / log((2.0 + SOFTEST) / SOFTEST)


cdef class NewtonStack:
    """Classes: p = softmax(sum_i w_i F_i) with one weight for each member, by leaky online Newton steps on the log loss.

    F are members' scores in [-1, 1]. Several settings (memory, prior) run side by side, and are mixed by Bayes' rule with a share.
    Some of them may hear log odds instead as long as there are two classes; see `log_odds`.

    Parameters
    ----------
    n : int
        Members.
    settings : list of (memory, prior)
    share : float
    total : float
        What the weights sum to beforehand.
    odds : list of bool or None
        Which settings hear log odds.
    """

    cdef readonly Leaky fits
    cdef readonly object belief, odds
    cdef readonly double share
    cdef readonly long long t

    def __init__(self, Py_ssize_t n, settings, double share=1e-3, double total=2.0, odds=None):
        self.fits = Leaky(n, settings, total / n)
        self.odds = np.zeros(len(settings), dtype=np.uint8) if odds is None else np.array(odds, dtype=np.uint8)
        self.belief = np.full(len(settings), 1.0 / len(settings))
        self.share, self.t = share, 0

    def advance(self, scores, places, joined, counts):
        """Probabilities just before each row, shape (n, classes); the rows are learned.

        Parameters
        ----------
        scores : array of shape (n, members, classes)
        places : array of shape (n,)
            The labels.
        joined : array of shape (n,)
            How many classes there were before each row; a row that brings a new one is not judged.
        counts : array of shape (n,)
            Weights of the rows.
        """
        cdef const double[:, :, ::1] F = np.ascontiguousarray(scores), G = self.heard(scores, joined)
        cdef const unsigned char[::1] odds = self.odds
        cdef const double* said
        cdef const double[::1] y = np.ascontiguousarray(places, dtype=float), count = np.ascontiguousarray(counts, dtype=float)
        cdef const Py_ssize_t[::1] there = np.ascontiguousarray(joined, dtype=np.intp)
        found = np.zeros((len(scores), scores.shape[2]))
        cdef Py_ssize_t t, k, label, n = self.fits.n, K = self.fits.settings, C = scores.shape[2]
        cdef double[:, ::1] out = found, w = self.fits.w, likely = np.zeros((K, max(1, C)))
        cdef double[:, :, ::1] S = self.fits.S
        cdef const double[::1] memory = self.fits.memories, prior = self.fits.priors
        cdef double[::1] belief = self.belief, losses = np.zeros(K), x = np.zeros(n), g = np.zeros(n)
        with nogil:
            for t in range(F.shape[0]):
                label = <Py_ssize_t> y[t]
                if there[t] > 0:
                    for k in range(K):
                        said = &G[t, 0, 0] if odds[k] and there[t] == 2 else &F[t, 0, 0]
                        self.softmax(said, C, there[t], &w[k, 0], &likely[k, 0])
                    self.mix(&likely[0, 0], K, C, there[t], &belief[0], &out[t, 0])
                for k in range(K):
                    self.fits.leak(&w[k, 0], &S[k, 0, 0], memory[k], prior[k], self.t)
                if 1 < there[t] and label < there[t] and count[t] > 0.0:
                    for k in range(K):
                        losses[k] = fmin(CAP, -count[t] * log(fmax(likely[k, label], 1e-300)))
                        said = &G[t, 0, 0] if odds[k] and there[t] == 2 else &F[t, 0, 0]
                        self.step(said, C, there[t], label, count[t], &likely[k, 0], &w[k, 0], &S[k, 0, 0], &x[0], &g[0])
                    shared_out(&belief[0], &losses[0], K, self.share)
                self.t += 1
        return found

    def heard(self, scores, joined):
        """What the settings that hear log odds do; the scores themselves where nobody does."""
        if not self.odds.any() or not np.any(np.asarray(joined) == 2):
            return np.ascontiguousarray(scores)
        return np.ascontiguousarray(log_odds(scores))

    cdef void softmax(self, const double* F, Py_ssize_t C, Py_ssize_t joined, const double* w, double* p) noexcept nogil:
        cdef Py_ssize_t i, c
        cdef double largest = -INFINITY, total = 0.0
        for c in range(joined):
            p[c] = 0.0
        for i in range(self.fits.n):
            for c in range(joined):
                p[c] += w[i] * F[i * C + c]
        for c in range(joined):
            largest = fmax(largest, p[c])
        for c in range(joined):
            p[c] = exp(p[c] - largest)
            total += p[c]
        for c in range(joined):
            p[c] /= total

    cdef void mix(self, const double* likely, Py_ssize_t K, Py_ssize_t C, Py_ssize_t joined, const double* belief,
                  double* out) noexcept nogil:
        cdef Py_ssize_t k, c
        for c in range(joined):
            out[c] = 0.0
            for k in range(K):
                out[c] += belief[k] * likely[k * C + c]

    cdef void step(self, const double* F, Py_ssize_t C, Py_ssize_t joined, Py_ssize_t label, double count, const double* p,
                   double* w, double* S, double* x, double* g) noexcept nogil:
        """A Newton step: the curvature is that along what tells the label from its strongest rival."""
        cdef Py_ssize_t i, j, c, n = self.fits.n, rival = 1 if label == 0 else 0
        cdef double direction
        for c in range(joined):
            if c != label and p[c] > p[rival]:
                rival = c
        for i in range(n):
            x[i] = F[i * C + label] - F[i * C + rival]
            g[i] = F[i * C + label]
            for c in range(joined):
                g[i] -= p[c] * F[i * C + c]
        self.fits.learn_direction(S, x, count * p[label] * p[rival])
        for i in range(n):
            direction = 0.0
            for j in range(n):
                direction += S[i * n + j] * g[j]
            w[i] += count * direction

    def combined(self, scores, Py_ssize_t joined):
        """Probabilities as of now, shape (n, classes)."""
        cdef const double[:, :, ::1] F = np.ascontiguousarray(scores), G = self.heard(scores, joined)
        cdef const unsigned char[::1] odds = self.odds
        found = np.zeros((len(scores), scores.shape[2]))
        cdef Py_ssize_t t, k, K = self.fits.settings, C = scores.shape[2]
        cdef double[:, ::1] out = found, w = self.fits.w, likely = np.zeros((K, max(1, C)))
        cdef double[::1] belief = self.belief
        if joined == 0:
            return found
        with nogil:
            for t in range(F.shape[0]):
                for k in range(K):
                    self.softmax(&G[t, 0, 0] if odds[k] and joined == 2 else &F[t, 0, 0], C, joined, &w[k, 0], &likely[k, 0])
                self.mix(&likely[0, 0], K, C, joined, &belief[0], &out[t, 0])
        return found

    def weights(self):
        """Mean weights over the settings, shape (1, members)."""
        return (self.belief @ self.fits.w)[None]

    def state(self):
        """What is learned, by name."""
        return {"t": int(self.t), "belief": self.belief.copy(), **self.fits.state()}

    def restore(self, state):
        """Go on from what `state` gave; ValueError if it makes no sense."""
        self.t = checked_count(state["t"])
        self.belief[:] = checked_beliefs(state["belief"], self.belief.shape)
        self.fits.restore(state)

    def _check(self):
        """Assert what must always hold."""
        self.fits._check()
        assert abs(self.belief.sum() - 1.0) < 1e-9 and (self.belief >= 0.0).all()


cdef class Usual:
    """What is usual of targets: their range, and the fading mean of squared errors."""

    cdef readonly object sums, low, high
    cdef readonly long long t

    def __init__(self, Py_ssize_t targets):
        self.sums = np.zeros((2, targets))      # of squared errors, and of their weights
        self.low, self.high, self.t = np.full(targets, np.inf), np.full(targets, -np.inf), 0

    def state(self):
        seen = self.low <= self.high
        return {"sums": self.sums.copy(), "low": np.where(seen, self.low, 0.0), "high": np.where(seen, self.high, 0.0),
                "rows": int(self.t)}

    def restore(self, state):
        targets = self.sums.shape[1]
        sums = check_array(state["sums"], "sums", np.float64, (2, targets))
        low, high = (check_array(state[name], name, np.float64, (targets,)) for name in ("low", "high"))
        if (sums < 0.0).any() or (low > high).any():
            raise ValueError("the sums of squared errors make no sense")
        self.t = checked_count(state["rows"])
        self.sums[:] = sums
        seen = sums[1] > 0.0            # and not only rows that did not count, as the first
        self.low[:], self.high[:] = np.where(seen, low, np.inf), np.where(seen, high, -np.inf)


cdef double usual_square(const double* sums, Py_ssize_t targets, Py_ssize_t j, double low, double high) noexcept nogil:
    """The usual squared error of a target: beforehand 1/16 of its squared range, which counts as one row, or 1; never nothing."""
    cdef double reach = high - low if low < high else 0.0, most = fmax(fabs(low), fabs(high)) if low <= high else 1.0
    if reach == 0.0:
        return fmax(sums[j] / sums[targets + j] if sums[targets + j] > 0.0 else 1.0, fmax(1e-12 * most * most, 1e-300))
    return fmax((sums[j] + 0.0625 * reach * reach) / (sums[targets + j] + 1.0), 1e-12 * reach * reach)


cdef class SquaresStack:
    """Numbers: members' mean, plus leaky least squares on how members differ from it; and exponential weights beside these.

    With f the mean of the members that are awake, y - f = sum_i v_i (f_i - f), so units and offsets do not matter, and weights sum to 1. Each
    target is a fit of its own, in units of its usual squared error. What members say is cut to the range of the targets so far,
    widened by itself on both sides.

    Parameters
    ----------
    n, targets : int
    settings : list of (memory, prior)
    share : float
    """

    cdef readonly list fits
    cdef readonly Usual usual
    cdef readonly object belief, trust
    cdef readonly double share

    def __init__(self, Py_ssize_t n, Py_ssize_t targets, settings, double share=1e-3):
        self.fits = [Leaky(n, settings, 0.0) for _ in range(targets)]
        self.usual = Usual(targets)
        self.belief = np.full((targets, len(settings) + 1), 1.0 / (len(settings) + 1))  # the last is for exponential weights
        self.trust = np.full((targets, n), 1.0 / n)
        self.share = share

    def advance(self, scores, Y, counts, awake):
        """(combined scores, usual errors) just before each row, shapes (n, targets); the rows are learned."""
        cdef const double[:, :, ::1] F = np.ascontiguousarray(scores)
        cdef const double[:, ::1] y = np.ascontiguousarray(Y)
        cdef const double[::1] count = np.ascontiguousarray(counts, dtype=float)
        cdef const unsigned char[::1] there = np.ascontiguousarray(awake, dtype=np.uint8)
        cdef Leaky fit = self.fits[0]
        cdef Py_ssize_t t, i, j, k, n = fit.n, K = fit.settings, T = Y.shape[1]
        found, spread = np.zeros(Y.shape), np.zeros(Y.shape)
        cdef double[:, ::1] out = found, deviations = spread, sums = self.usual.sums, belief = self.belief, trust = self.trust, w
        cdef double[:, :, ::1] S
        cdef double[::1] low = self.usual.low, high = self.usual.high, d = np.zeros(n), x = np.zeros(n), said = np.zeros(K + 1)
        cdef double[::1] losses = np.zeros(max(K + 1, n))
        cdef const double[::1] memory = fit.memories, prior = fit.priors
        cdef double middle, size, error, mixed
        cdef long long begin = self.usual.t
        for j in range(T):
            fit = self.fits[j]
            w, S = fit.w, fit.S
            with nogil:
                for t in range(F.shape[0]):
                    middle = differences(&F[t, 0, 0], n, T, j, &there[0], low[j], high[j], begin + t, &d[0])
                    size = usual_square(&sums[0, 0], T, j, low[j], high[j])
                    deviations[t, j] = sqrt(size)
                    mixed = 0.0
                    for k in range(K):
                        said[k] = middle
                        for i in range(n):
                            said[k] += w[k, i] * d[i]
                        mixed += belief[j, k] * said[k]
                    said[K] = middle
                    for i in range(n):
                        said[K] += trust[j, i] * d[i]
                    mixed += belief[j, K] * said[K]
                    out[t, j] = mixed
                    for k in range(K):
                        fit.leak(&w[k, 0], &S[k, 0, 0], memory[k], prior[k], begin + t)
                    if count[t] > 0.0:
                        for i in range(n):
                            x[i] = d[i] / sqrt(size)
                        for k in range(K):
                            self.step(fit, &w[k, 0], &S[k, 0, 0], &x[0], (y[t, j] - said[k]) / sqrt(size), count[t])
                        for k in range(K + 1):
                            error = y[t, j] - said[k]
                            losses[k] = fmin(CAP, 0.5 * count[t] * error * error / size)
                        shared_out(&belief[j, 0], &losses[0], K + 1, self.share)
                        for i in range(n):
                            error = y[t, j] - middle - d[i]
                            losses[i] = fmin(CAP, 0.5 * count[t] * error * error / size)
                        shared_out(&trust[j, 0], &losses[0], n, self.share)
                        learn_usual(&sums[0, 0], T, j, y[t, j] - mixed, count[t], size, begin + t)
                        low[j], high[j] = fmin(low[j], y[t, j]), fmax(high[j], y[t, j])
        self.usual.t = begin + len(Y)
        return found, spread

    cdef void step(self, Leaky fit, double* w, double* S, const double* x, double error, double count) noexcept nogil:
        """Least squares in units of the usual error; of an outlier counts what is left of it within 4 of them."""
        cdef Py_ssize_t i
        cdef double precision = count * (1.0 if fabs(error) < 4.0 else 4.0 / fabs(error))
        cdef double factor = precision / (1.0 + precision * fit.learn_direction(S, x, precision))
        for i in range(fit.n):
            w[i] += factor * error * fit.work[i]

    def combined(self, scores, awake):
        """(combined scores, usual errors) as of now."""
        cdef const double[:, :, ::1] F = np.ascontiguousarray(scores)
        cdef const unsigned char[::1] there = np.ascontiguousarray(awake, dtype=np.uint8)
        weights = np.ascontiguousarray(self.differences_weights())
        found = np.zeros((len(scores), scores.shape[2]))
        cdef double[:, ::1] out = found, v = weights, sums = self.usual.sums
        cdef double[::1] d = np.zeros(scores.shape[1]), low = self.usual.low, high = self.usual.high
        cdef Py_ssize_t t, i, j, n = scores.shape[1], T = scores.shape[2]
        for t in range(len(scores)):
            for j in range(T):
                out[t, j] = differences(&F[t, 0, 0], n, T, j, &there[0], low[j], high[j], self.usual.t, &d[0])
                for i in range(n):
                    out[t, j] += v[j, i] * d[i]
        deviations = [sqrt(usual_square(&sums[0, 0], T, j, low[j], high[j])) for j in range(T)]
        return found, np.repeat([deviations], len(scores), axis=0)

    def differences_weights(self):
        """Weights of what members differ from their mean, shape (targets, members)."""
        fits = [self.belief[j, :-1] @ fit.w for j, fit in enumerate(self.fits)]
        return np.array(fits) + self.belief[:, -1:] * self.trust

    def weights(self):
        """Weights of the members, shape (targets, members); each sums to 1."""
        v = self.differences_weights()
        return v + (1.0 - v.sum(axis=1, keepdims=True)) / v.shape[1]

    def state(self):
        """What is learned, by name."""
        return {"belief": self.belief.copy(), "trust": self.trust.copy(), **self.usual.state(),
                "w": np.array([fit.w for fit in self.fits]), "S": np.array([fit.S for fit in self.fits])}

    def restore(self, state):
        """Go on from what `state` gave; ValueError if it makes no sense."""
        self.belief[:] = checked_beliefs(state["belief"], self.belief.shape)
        self.trust[:] = checked_beliefs(state["trust"], self.trust.shape)
        self.usual.restore(state)
        for j, fit in enumerate(self.fits):
            fit.restore({"w": state["w"][j], "S": state["S"][j]})

    def _check(self):
        """Assert what must always hold."""
        for fit in self.fits:
            fit._check()
        assert np.allclose(self.belief.sum(axis=1), 1.0) and np.allclose(self.trust.sum(axis=1), 1.0)


cdef double differences(const double* F, Py_ssize_t n, Py_ssize_t T, Py_ssize_t j, const unsigned char* awake, double low,
                        double high, long long t, double* d) noexcept nogil:
    """(mean of the members that are awake, how far each is from it: 0 for those asleep), within the range of targets."""
    cdef Py_ssize_t i, many = 0
    cdef double middle = 0.0, reach = high - low
    for i in range(n):
        if awake[i]:
            d[i] = F[i * T + j]
            if t >= FEW and low <= high:
                d[i] = fmin(fmax(d[i], low - reach), high + reach)
            middle += d[i]
            many += 1
    middle = middle / many if many else 0.0
    for i in range(n):
        d[i] = d[i] - middle if awake[i] else 0.0
    return middle


cdef void learn_usual(double* sums, Py_ssize_t targets, Py_ssize_t j, double error, double count, double size,
                      long long t) noexcept nogil:
    """Take in an error; what is more than 4 times the usual counts as that, once 30 rows have been seen.

    While there are few rows, errors fall fast, and the last third of them is remembered.
    """
    cdef double square = error * error, memory = fmin(LONG, 1.0 - 3.0 / (t + 6.0))
    if t >= FEW and square > 16.0 * size:
        square = 16.0 * size
    sums[j] = memory * sums[j] + count * square
    sums[targets + j] = memory * sums[targets + j] + count


cdef class ExponentialWeights:
    """Hedge: weights like exp(-rate sum of losses), of which each member gives up a share to all with every row.

    Classes: losses are 1/8 [(1 - F_label)^2 + (1 + the largest other F)^2], in [0, 1] for scores in [-1, 1]. Numbers: 1/2 of the
    squared error in units of the usual one. Both are convex, so the combination, the weighted mean, loses no more than the
    weighted mean of the losses. Whoever is asleep says what the others say.

    Parameters
    ----------
    n, targets : int
        targets is 0 for labels.
    rate, share : float
    votes : bool
        Labels: each member gives 1 to the label that it says, the first of the best ones, and -1 to all others. So its loss is 1
        for a mistake and otherwise 0, and where the weighted means lead to a mistake, so do half of the weights at least.
    """

    cdef readonly Py_ssize_t n, targets
    cdef readonly double rate, share
    cdef readonly bint votes
    cdef readonly object trust, losses, own, ranges
    cdef readonly Usual usual

    def __init__(self, Py_ssize_t n, Py_ssize_t targets, double rate, double share, bint votes=False):
        self.n, self.targets, self.rate, self.share, self.votes = n, targets, rate, share, votes
        groups = max(1, targets)
        self.trust = np.full((groups, n), 1.0 / n)
        self.losses, self.own, self.ranges = np.zeros((groups, n)), np.zeros(groups), np.zeros(groups)
        self.usual = Usual(groups)

    def advance(self, scores, Y, joined, counts, awake):
        """(weighted means, usual errors) just before each row; the rows are learned. Y are places of labels, or numbers (n, targets)."""
        cdef const double[:, :, ::1] F = np.ascontiguousarray(self.heard(scores))
        cdef const double[:, ::1] y = np.ascontiguousarray(Y, dtype=float).reshape(len(scores), -1)
        cdef const double[::1] count = np.ascontiguousarray(counts, dtype=float)
        cdef const Py_ssize_t[::1] before = np.ascontiguousarray(joined, dtype=np.intp)
        cdef const unsigned char[::1] there = np.ascontiguousarray(awake, dtype=np.uint8)
        cdef Py_ssize_t t, i, j, c, n = self.n, C = scores.shape[2], groups = max(1, self.targets), first, last
        found, spread = np.zeros((len(scores), C)), np.zeros((len(scores), groups))
        cdef double[:, ::1] out = found, deviations = spread, trust = self.trust, losses = self.losses, sums = self.usual.sums
        cdef double[::1] own = self.own, ranges = self.ranges, loss = np.zeros(n), scaled = np.zeros(n)
        cdef double[::1] low = self.usual.low, high = self.usual.high
        cdef double awake_trust, mine, least, most, size
        cdef long long begin = self.usual.t
        with nogil:
            for t in range(F.shape[0]):
                for j in range(groups):
                    first = j if self.targets else 0
                    last = j + 1 if self.targets else before[t]
                    awake_trust = 0.0
                    for i in range(n):
                        awake_trust += trust[j, i] if there[i] else 0.0
                    for c in range(first, last):
                        for i in range(n):
                            if there[i]:
                                out[t, c] += trust[j, i] / awake_trust * F[t, i, c]
                    size = usual_square(&sums[0, 0], groups, j, low[j], high[j]) if self.targets else 1.0
                    deviations[t, j] = sqrt(size)
                    if count[t] <= 0.0 or not self.targets and (before[t] < 2 or y[t, 0] >= before[t]):
                        continue
                    mine = count[t] * self.loss(&out[t, 0], y[t, j], j, last, size)
                    least, most = mine, mine
                    for i in range(n):
                        loss[i] = count[t] * self.loss(&F[t, i, 0], y[t, j], j, last, size) if there[i] else mine
                        least, most = fmin(least, loss[i]), fmax(most, loss[i])
                        losses[j, i] += loss[i]
                        scaled[i] = self.rate * loss[i]
                    own[j] += mine
                    ranges[j] += (most - least) * (most - least)
                    shared_out(&trust[j, 0], &scaled[0], n, self.share)
                    if self.targets:
                        learn_usual(&sums[0, 0], groups, j, y[t, j] - out[t, j], count[t], size, begin + t)
                        low[j], high[j] = fmin(low[j], y[t, j]), fmax(high[j], y[t, j])
        self.usual.t += len(scores)
        return found, spread

    cdef double loss(self, const double* F, double y, Py_ssize_t j, Py_ssize_t classes, double size) noexcept nogil:
        cdef Py_ssize_t c, label
        cdef double rival = -1.0
        if self.targets:
            return 0.5 * (y - F[j]) * (y - F[j]) / size
        label = <Py_ssize_t> y
        for c in range(classes):
            if c != label:
                rival = fmax(rival, F[c])
        return 0.125 * ((1.0 - F[label]) ** 2 + (1.0 + rival) ** 2)

    def heard(self, scores):
        """What members say, shape (n, members, outputs): their scores, or votes."""
        if not self.votes or self.targets:
            return scores
        return np.where(np.arange(scores.shape[2]) == scores.argmax(axis=2)[:, :, None], 1.0, -1.0)

    def combined(self, scores, awake):
        """(weighted means, usual errors) as of now."""
        cdef double[:, ::1] sums = self.usual.sums
        cdef double[::1] low = self.usual.low, high = self.usual.high
        scores = self.heard(scores)
        trust = np.where(awake, self.trust, 0.0)
        trust = trust / np.maximum(trust.sum(axis=1, keepdims=True), 1e-300)
        groups = len(trust)
        spread = [sqrt(usual_square(&sums[0, 0], groups, j, low[j], high[j])) if self.targets else 1.0 for j in range(groups)]
        means = np.einsum("gm,tmg->tg", trust, scores) if self.targets else np.einsum("m,tmc->tc", trust[0], scores)
        return means, np.repeat([spread], len(scores), axis=0)

    def weights(self):
        """Weights of the members, shape (groups, members)."""
        return self.trust.copy()

    def state(self):
        """What is learned, by name."""
        return {"trust": self.trust.copy(), "losses": self.losses.copy(), "own": self.own.copy(), "ranges": self.ranges.copy(),
                **self.usual.state()}

    def restore(self, state):
        """Go on from what `state` gave; ValueError if it makes no sense."""
        self.trust[:] = checked_beliefs(state["trust"], self.trust.shape)
        for name in ("losses", "own", "ranges"):
            array = check_array(state[name], name, np.float64, getattr(self, name).shape)
            if (array < 0.0).any():
                raise ValueError(f"{name} are negative")
            getattr(self, name)[:] = array
        self.usual.restore(state)

    def _check(self):
        """Assert what must always hold."""
        assert np.allclose(self.trust.sum(axis=1), 1.0) and (self.trust >= 0.0).all()


def checked_count(value):
    """A number of rows, or ValueError."""
    if type(value) is not int or value < 0:
        raise ValueError("t is not a number of rows")
    return value


def checked_beliefs(array, shape):
    """Weights that sum to 1, or ValueError."""
    array = check_array(array, "belief", np.float64, shape)
    if (array < 0.0).any() or (np.abs(array.sum(axis=-1) - 1.0) > 1e-6).any():
        raise ValueError("beliefs do not sum to 1")
    return array
