"""Targets of a regression, scaled as they come: the model learns numbers of the size of 1 and predicts in your units."""
import copy
from itertools import accumulate

import numpy as np

from onlinekernels._core.transforms import OTHERS, Scaler

__all__ = ["TargetScaler"]


FARTHEST = 6.0  # deviations from the mean beyond which a target of a robust scaler counts for no more than that
LARGEST = 700.0  # whose sinh is a number


class TargetScaler:
    """Running mean and deviation of each target; a value, like a number: `advanced` gives another one.

    A target is learned scaled by what is known with it. A prediction is brought back to its units by what was known
    before its target came. That may be said to be `exact`: the prediction is then the target that would become the score. Both
    differ by a part 1 / n of the deviation, which matters to models that are better than that.

    Parameters
    ----------
    targets : int
    memory : float or "log"
        "log": log(y + sqrt(y^2 + 1)) = arcsinh(y) is scaled instead, with memory 1.
    exact : bool
    robust : bool
        A target far from all others does not move the mean and the deviation much; for models that can take it as it is.

    >>> scaler, scaled, means, deviations = TargetScaler(1).advanced(np.array([10.0, 14.0, 12.0]), None)
    >>> scaled.tolist(), means.ravel().tolist(), deviations.ravel().tolist()
    ([0.0, 1.0, 0.0], [0.0, 10.0, 12.0], [1.0, 1.0, 2.0])
    >>> scaler.restored(np.array([[0.0], [1.0]])).round(2).ravel().tolist()
    [12.0, 13.63]
    """

    def __init__(self, targets, memory=1.0, exact=False, robust=False):
        self.kind = memory
        self.exact, self.robust = exact, robust
        self.scaler = Scaler(targets, self.memory, few_values=False)

    @property
    def is_log(self):
        return self.kind == "log"

    @property
    def memory(self):
        return 1.0 if self.is_log else self.kind

    def advanced(self, y, weights):
        """(a scaler that knows y as well, y scaled, means and deviations that were known before each row).

        y is flat, row by row, as the engine takes it.
        """
        fresh = copy.copy(self)
        fresh.scaler = self.scaler.copy(self.memory)
        Y = self.taken(np.ascontiguousarray(y, dtype=float).reshape(-1, self.scaler.n_features))
        means, deviations = np.empty_like(Y), np.empty_like(Y)
        farthest = FARTHEST if self.robust else np.inf
        scaled = fresh.scaler.advance(Y, True, weights, farthest, means, deviations)
        if not np.isfinite(fresh.scaler.count):
            raise ValueError("sample_weight is too large to scale targets: the sum of the weights overflows.")
        if not fresh.scaler.is_finite():
            raise ValueError("y is too large to scale: its variance overflows. Expected values below 1e150.")
        return fresh, scaled.reshape(-1), means, deviations

    def taken(self, y):
        """What is scaled of targets."""
        return np.arcsinh(y) if self.is_log else y

    def log_slope(self, y):
        """Logarithm of the derivative of what is scaled by y."""
        return -np.log(np.hypot(1.0, y)) if self.is_log else 0.0

    def known(self):
        """(means, deviations, shares) that `brought_back` wants for the next example."""
        return self.scaler.means, self.scaler.divisors, 1.0 / (self.memory * self.scaler.count + 1.0)

    def restored(self, scores):
        """Scores of shape (n, targets) in the units of the targets, as of the next example."""
        return self.in_units(scores)[0]

    def in_units(self, scores):
        """(the same, what deviations of the scores are to be multiplied by)."""
        return self.brought_back(scores, *self.known())

    def brought_back(self, scores, means, deviations, shares):
        """The same by means and deviations that were known before the targets, each of which has this share of all weight."""
        values, units = self.values(scores, means, deviations, shares)
        return self.targets(values), units * np.cosh(np.clip(values, -LARGEST, LARGEST)) if self.is_log else units

    def interval(self, scores, half_widths, means, deviations, shares):
        """Lower and upper ends, `half_widths` from the scores, in the units of the targets."""
        values, units = self.values(scores, means, deviations, shares)
        return self.targets(values - half_widths * units), self.targets(values + half_widths * units)

    def targets(self, values):
        """Targets that `values` are what is scaled of."""
        return np.sinh(np.clip(values, -LARGEST, LARGEST)) if self.is_log else values

    def values(self, scores, means, deviations, shares):
        """(values, what deviations of the scores are multiplied by): scores in the units of what is scaled, y or arcsinh(y).

        A target z deviations from the mean becomes z sqrt(1 - share) / sqrt(1 + share z^2) when it is taken in. No score of the
        first examples is taken to be a target far beyond all others. Beyond what a robust scaler takes in, it is a straight line.
        """
        if not self.exact:
            return scores * deviations + means, deviations
        left = np.maximum(1.0 - shares * (1.0 + scores**2), 0.5)
        z, slope = scores / np.sqrt(left), (1.0 - shares) / left**1.5
        if self.robust:
            scale = np.sqrt((1.0 - shares) * (1.0 + shares * FARTHEST**2))  # of the deviation, by a target that is so far off
            line = shares * FARTHEST * np.sign(scores) + scores * scale
            is_far = (np.abs(line) > FARTHEST) & (shares * OTHERS <= 1.0)
            z, slope = np.where(is_far, line, z), np.where(is_far, scale, slope)
        return z * deviations + means, deviations * slope

    def shares(self, n, weights):
        """The share of all weight that each of the next n targets will have, shape (n, 1)."""
        weights, memory = np.ones(n) if weights is None else np.asarray(weights), self.memory
        if memory == 1.0:
            counts = np.cumsum(np.concatenate([[self.scaler.count], weights]))
        else:
            counts = list(accumulate(weights.tolist(), lambda count, weight: memory * count + weight, initial=self.scaler.count))
        return (weights / np.maximum(counts[1:], 1e-300))[:, None]

    def to_dict(self):
        """What is learned, as plain numbers and lists."""
        return self.scaler.state()

    def restore(self, learned):
        """Continue from what `to_dict` gave; ValueError if it makes no sense."""
        self.scaler.restore(learned)
