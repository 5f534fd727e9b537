"""How a kernel is learned from rows of the past: features on one footing, the evidence of a metric, and a descent.

With z = u Q diag(scales), the features u in axes Q, rows t and s of the past have the covariance

    C_ts = exp(-r |t - s| / 2) [a exp(-|z_t - z_s|^2 / 2) + 1] + noise [t = s]

and log p(Y) = log N(Y | 0, C), summed over outputs, says how likely the rows are under these scales, this amplitude
a, noise and forgetting r.  It is a function of logarithms alone.
"""
import math

import numpy as np

from onlinekernels._core import linalg as core
from onlinekernels._core.transforms import Metric, normal_scores

# ---- Features --------------------------------------------------------------------------------------------------------

LEVELS = 33  # quantiles of a column
TINY = 1e-290  # whose inverse is a number
LEAST = 1e-6  # by which a constant column must change, in units of its size, to count as changed
NORMAL_SCORES = normal_scores((np.arange(LEVELS) + 0.5) / LEVELS)  # quantiles of the normal distribution at the levels


class Features:
    """A fixed map of each column: the mean of its z-score and its normal score.

    A z-score keeps distances, and an outlier spoils it; a normal score (the quantile of a Gaussian that has the rank of
    the number) is proof against outliers and crowds. Half of each is better than either. A column with two values
    becomes 0 and 1, so that a change counts as one unit, however rare it is. A column that is constant becomes 0, and
    -1 or 1 where it is below or above what it used to be.

    >>> X = np.array([[1.0, 0.0, 7.0], [2.0, 1.0, 7.0], [3.0, 0.0, 7.0], [1e6, 1.0, 7.0]])
    >>> Features(X)(X).round(2)
    array([[-1.37,  0.  ,  0.  ],
           [-0.5 ,  1.  ,  0.  ],
           [-0.09,  0.  ,  0.  ],
           [ 1.95,  1.  ,  0.  ]])
    >>> Features(X)([[1.0, 0.0, 7.5]])[:, 2]                      # never seen to change before
    array([1.])
    """

    def __init__(self, X):
        self.mean = X.mean(axis=0)
        self.slope = np.zeros(X.shape[1])  # of the part that is linear
        self.knots = np.full((X.shape[1], LEVELS), np.inf)
        self.scores = np.zeros((X.shape[1], LEVELS))  # at the knots
        ascending, places = np.sort(X.T, axis=1), (np.arange(LEVELS) + 0.5) / LEVELS * (len(X) - 1)
        below = places.astype(np.intp)
        low, high = ascending[:, below], ascending[:, np.minimum(below + 1, len(X) - 1)]
        quantiles = low + (high - low) * (places - below)
        for j, column in enumerate(X.T):
            low, high = column.min(), column.max()
            if high - low <= max(LEAST * 1e-6 * max(abs(low), abs(high)), TINY):
                knots, scores = low + LEAST * max(abs(low), 1.0) * np.array([-1.0, 0.0, 1.0]), [-1.0, 0.0, 1.0]
            elif ((column == low) | (column == high)).all():
                knots, scores = [low, high], [0.0, 1.0]
            else:
                knots, places = np.unique(quantiles[j], return_inverse=True)  # equal numbers share their mean score
                scores = 0.5 * np.bincount(places, NORMAL_SCORES) / np.bincount(places)
                self.slope[j] = 0.5 / (high - low) / ((column - low) / (high - low)).std()
            self.knots[j, : len(knots)], self.scores[j, : len(knots)] = knots, scores
        self._prepare()

    def _prepare(self):
        d = len(self.mean)
        self.last = self.knots[np.arange(d), np.isfinite(self.knots).sum(axis=1) - 1]
        self.rises = np.zeros_like(self.knots)
        inside = np.isfinite(self.knots[:, 1:])
        apart = np.maximum(self.knots[:, 1:][inside] - self.knots[:, :-1][inside], TINY)
        self.rises[:, :-1][inside] = np.diff(self.scores, axis=1)[inside] / apart
        self._transform = Metric(self)

    def __call__(self, X):
        """Rows of X as they are compared."""
        return self._transform.transform(X)

    def state(self):
        """Arrays by name, from which `restored` makes the same."""
        return {"mean": self.mean, "slope": self.slope, "knots": self.knots, "scores": self.scores}

    @classmethod
    def restored(cls, state, n_features):
        """The map that `state` described; ValueError if its parts do not fit each other."""
        self = cls.__new__(cls)
        for name, shape in (("mean", (n_features,)), ("slope", (n_features,)), ("knots", (n_features, LEVELS)),
                            ("scores", (n_features, LEVELS))):
            array = np.array(state[name], dtype=float)
            if array.shape != shape or np.isnan(array).any() or name != "knots" and not np.isfinite(array).all():
                raise ValueError(f"the {name} of features are not numbers of shape {shape}")
            setattr(self, name, array)
        finite = np.isfinite(self.knots)
        ascending = (self.knots[:, 1:] > self.knots[:, :-1]) | ~finite[:, 1:]
        if not (finite[:, 0].all() and ascending.all() and (finite[:, :-1] >= finite[:, 1:]).all()):
            raise ValueError("the knots of features are not in order")
        self._prepare()
        return self


# ---- The evidence ----------------------------------------------------------------------------------------------------

FORGETTING = (-2.0, 0.0, 2.0, 3.5)  # free numbers of the forgetting that are tried: memories of 20,000 to 200 rows
PINNED = 1e-6  # of the mean curvature, along axes in which the function does not change at all


class Settings:
    """What the evidence is a function of: logarithms within boxes, about which something is believed beforehand.

    A vector q of free numbers stands for log scale_j = common + own_j, log a, log noise and log r. Each of these
    logarithms is centre + box tanh(q / box), so none runs away however little the data says, and q has a Gaussian
    prior.

    >>> scales, amplitude, noise, forgetting = Settings(4).values(np.zeros(8))
    >>> scales, amplitude, round(noise, 6), round(forgetting, 6)
    (array([0.5, 0.5, 0.5, 0.5]), 1.0, 0.1, 0.0003)
    """

    def __init__(self, n_axes):
        d = self.n_axes = n_axes
        own = 0.7 * min(1.0, math.sqrt(16.0 / d))  # many axes together move as far as 16
        #                                                      common, amplitude, noise, forgetting
        self.centre = np.concatenate([np.zeros(d), [-0.5 * math.log(d), 0.0, math.log(0.1), math.log(3e-4)]])
        self.deviation = np.concatenate([np.full(d, own), [1.5, 1.0, 2.0, 1.5]])
        self.box = np.concatenate([np.full(d, 3.0), [3.0, 4.0, 4.0, 5.0]])

    def values(self, q):
        """(scales, amplitude, noise, forgetting) that q stands for."""
        logs = self.centre + self.box * np.tanh(q / self.box)
        amplitude, noise, forgetting = (math.exp(value) for value in logs[self.n_axes + 1 :])
        return np.exp(logs[: self.n_axes] + logs[self.n_axes]), amplitude, noise, forgetting

    def slopes(self, q):
        """Derivatives of the logarithms by q."""
        return 1.0 - np.tanh(q / self.box) ** 2

    def with_scales(self, q, scales):
        """q with other scales, as far as their boxes allow, and all else as it is."""
        d, moved = self.n_axes, q.copy()
        common = self.centre[d] + self.box[d] * np.tanh(q[d] / self.box[d])
        moved[:d] = self.box[:d] * np.arctanh(np.clip((np.log(scales) - common) / self.box[:d], -0.95, 0.95))
        return moved

    def penalty(self, q):
        """Minus the logarithm of the prior, up to a constant, and its gradient."""
        return 0.5 * float(np.sum((q / self.deviation) ** 2)), q / self.deviation**2


class Evidence:
    """Minus the log evidence of some rows, as a function of `Settings`.

    X are features along the axes, (n, d); Y (n, outputs) numbers of the size of 1, or +1 for the label and -1 for all
    others. Weights divide the noise.
    """

    def __init__(self, X, Y, times, weights=None):
        self.X, self.Y = np.asarray(X), np.ascontiguousarray(Y, dtype=float)
        self.times = np.ascontiguousarray(times, dtype=float)
        self.spread = np.ones(len(X)) if weights is None else 1.0 / weights
        self.settings = Settings(X.shape[1])

    def _scaled(self, scales):
        """Rows along the axes, transposed."""
        return np.ascontiguousarray((self.X * scales).T)

    def value(self, q):
        """Minus the log evidence alone."""
        return self._judged(q, False)[0]

    def __call__(self, q):
        """(minus the log evidence, its gradient by q)."""
        value, slopes = self._judged(q, True)
        if slopes is None:
            return value, np.full(len(q), np.nan)
        d = self.settings.n_axes
        return value, np.insert(slopes, d, slopes[:d].sum()) * self.settings.slopes(q)

    def _judged(self, q, with_slopes):
        scales, amplitude, noise, forgetting = self.settings.values(q)
        rows = self._scaled(scales)
        return core.judged(rows, self.Y, self.times, self.spread, amplitude, noise, forgetting, with_slopes)

    def with_prior(self, q):
        """(minus the log evidence and the log prior, the gradient)."""
        value, gradient = self(q)
        penalty, slope = self.settings.penalty(q)
        return value + penalty, gradient + slope

    def with_best_forgetting(self, q):
        """q, with another forgetting if one is better; a step for each that is tried.

        What does not fit may be noise, fine structure, or the past, which are valleys apart: a descent stays in its
        own.
        """
        best, least = q, self.value(q) + self.settings.penalty(q)[0]
        for forgetting in FORGETTING:
            if abs(forgetting - q[-1]) > 1.0:
                yield
                there = np.append(q[:-1], forgetting)
                value = self.value(there) + self.settings.penalty(there)[0]
                if value < least:
                    best, least = there, value
        return best

    def outer_products(self, q):
        """Sum over rows and outputs of g g^T, g the gradient of the mean function by the features, shape (d, d)."""
        scales, amplitude, noise, forgetting = self.settings.values(q)
        Z = self.X * scales
        kernel, both = core.covariances(self._scaled(scales), self.times, amplitude, forgetting)
        both.flat[:: len(Z) + 1] += noise * self.spread
        alpha = np.linalg.solve(both, self.Y)
        total = np.zeros((len(scales), len(scales)))
        for coefficients in alpha.T:
            slopes = ((kernel * coefficients) @ Z - (kernel @ coefficients)[:, None] * Z) * scales
            total += slopes.T @ slopes
        return total


def gradient_axes(outer):
    """Orthonormal axes, columns, of the average outer product of gradients: relevance that is rotated is along them.

    A direction in which the function does not change has no axis of its own: a small diagonal, different in each
    feature, leaves no choice.

    >>> gradient_axes(np.array([[1.0, 1.0], [1.0, 1.0]])).round(3)
    array([[ 0.707, -0.707],
           [ 0.707,  0.707]])
    """
    d = len(outer)
    total = float(np.trace(outer))
    pinned = outer + PINNED * (total / d if total > 0.0 else 1.0) * np.diag(np.linspace(1.0, 0.5, d))
    _, axes = np.linalg.eigh(pinned)
    axes = axes[:, ::-1]  # the steepest first
    return axes * np.where(axes[np.abs(axes).argmax(axis=0), np.arange(d)] < 0.0, -1.0, 1.0)


# ---- The descent -----------------------------------------------------------------------------------------------------

MEMORY = 8  # pairs of steps and changes of the gradient
LONGEST = 2.0  # that a step may be in any coordinate
HALVINGS = 12  # before a line is given up


def descend(function, start, steps):
    """(point, value) after at most `steps` steps downhill, never above the start; a generator, with a step for each
    value of the function.

    `function` gives (value, gradient) at a point. A value that is not finite is a step too far.

    The two loops of Nocedal, "Updating quasi-Newton matrices with limited storage", 1980, with backtracking along the
    line by the parabola through what is known, until the value has fallen by Armijo's rule. Coordinates are logarithms
    here, so a step of `LONGEST` is a factor of seven, and longer ones are shortened.
    """
    point = np.array(start, dtype=float)
    value, gradient = function(point)
    yield
    pairs = []
    for _ in range(steps):
        move = _direction(gradient, pairs)
        largest = np.abs(move).max(initial=0.0)
        if largest > LONGEST:
            move *= LONGEST / largest
        slope = float(gradient @ move)
        if not slope < 0.0:
            break
        found = yield from _along(function, point, value, move, slope)
        if found is None:
            break
        reached, lower, steeper = found
        step, change = reached - point, steeper - gradient
        if step @ change > 1e-10 * math.sqrt((step @ step) * (change @ change)):
            pairs = [*pairs[1 - MEMORY :], (step, change)] if len(pairs) == MEMORY else [*pairs, (step, change)]
        point, value, gradient = reached, lower, steeper
    return point, value


def _direction(gradient, pairs):
    """Minus the inverse of the curvature, as far as the pairs know it, times the gradient."""
    move, shares = -gradient, []
    if not pairs:
        return move / max(1.0, np.abs(gradient).max(initial=0.0))
    for step, change in reversed(pairs):
        share = (step @ move) / (step @ change)
        shares.append(share)
        move = move - share * change
    step, change = pairs[-1]
    move = move * ((step @ change) / (change @ change))
    for (step, change), share in zip(pairs, reversed(shares), strict=True):
        move = move + (share - (change @ move) / (step @ change)) * step
    return move


def _along(function, point, value, move, slope):
    """(point, value, gradient) on a line where the value has fallen enough; None if it does not."""
    length = 1.0
    for _ in range(HALVINGS):
        there = point + length * move
        new, gradient = function(there)
        yield
        if new <= value + 1e-4 * length * slope and np.isfinite(gradient).all():
            return there, new, gradient
        rise = new - value - slope * length  # above the tangent
        shorter = -slope * length**2 / (2.0 * rise) if math.isfinite(rise) and rise > 0.0 else 0.0
        length = min(max(shorter, 0.1 * length), 0.5 * length)
    return None


# ---- A metric --------------------------------------------------------------------------------------------------------

STEPS = 5  # of descent


def standard_targets(y, weights, targets):
    """(targets of the size of 1, their means, their deviations, of rows that count); targets is 0 for labels."""
    if not targets:
        places, y = np.unique(y[:, 0], return_inverse=True)
        return np.where(np.arange(len(places)) == y[:, None], 1.0, -1.0), np.zeros(0), np.ones(0)
    known = y[weights > 0.0] if weights.any() else y
    centre, unit = known.mean(axis=0), known.std(axis=0)
    unit = np.where(unit > 1e-12 * np.abs(centre), unit, 1.0)
    return (y - centre) / unit, centre, np.where(unit > 0.0, unit, 1.0)


def learned_metric(sample, rotated, axes, settings):
    """(axes, settings, minus the log of their evidence and prior) a few steps of descent from those given, if any.

    A generator, with a step for each value of the evidence.
    """
    U, Y, times, weights = sample
    d = U.shape[1]
    is_new = settings is None
    axes, settings = (np.eye(d), np.zeros(d + 4)) if is_new else (axes, settings)
    evidence = Evidence(U @ axes if rotated else U, Y, times, weights)
    if is_new:
        settings, _ = yield from descend(evidence.with_prior, settings, STEPS)
    settings = yield from evidence.with_best_forgetting(settings)
    if not rotated:
        return axes, *(yield from descend(evidence.with_prior, settings, STEPS))
    scales = evidence.settings.values(settings)[0]
    metric = (axes * scales**2) @ axes.T
    axes = gradient_axes(axes @ evidence.outer_products(settings) @ axes.T)
    yield
    along = np.sqrt(np.einsum("ij,ij->j", axes, metric @ axes))  # the old metric along the new axes
    evidence = Evidence(U @ axes, Y, times, weights)
    return axes, *(yield from descend(evidence.with_prior, evidence.settings.with_scales(settings, along), STEPS))


def spread_out(weights, most):
    """Indices of `most` rows that have a weight, or fewer, evenly over all."""
    places = np.flatnonzero(weights > 0.0)
    if len(places) <= most:
        return places
    return places[np.round(np.linspace(0, len(places) - 1, most)).astype(np.intp)]
