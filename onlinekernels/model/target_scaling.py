"""Targets of a regression, scaled as they come: the model learns numbers of the size of 1 and predicts in your units."""
from itertools import accumulate

import numpy as np

from onlinekernels._core.run import scaling as core

__all__ = ["TargetScaler"]


class TargetScaler:
    """Running mean and deviation of each target; a value, like a number: `advanced` gives another one.

    A target is learned scaled by what is known with it. A prediction is brought back to its units by what was known
    before its target came. That may be said to be `exact`: the prediction is then the target that would become the score. Both
    differ by a part 1 / n of the deviation, which matters to models that are better than that.

    Parameters
    ----------
    targets : int
    memory : float
    exact : bool

    >>> scaler, scaled, means, deviations = TargetScaler(1).advanced(np.array([10.0, 14.0, 12.0]), None)
    >>> scaled.tolist(), means.ravel().tolist(), deviations.ravel().tolist()
    ([0.0, 1.0, 0.0], [0.0, 10.0, 12.0], [1.0, 1.0, 2.0])
    >>> scaler.restored(np.array([[0.0], [1.0]])).round(2).ravel().tolist()
    [12.0, 13.63]
    """

    def __init__(self, targets, memory=1.0, exact=False):
        self.memory, self.exact = memory, exact
        self.mean, self.square, self.count = np.zeros(targets), np.zeros(targets), 0.0

    def advanced(self, y, weights):
        """(a scaler that knows y as well, y scaled, means and deviations that were known before each row).

        y is flat, row by row, as the engine takes it.
        """
        fresh = TargetScaler(len(self.mean), self.memory, self.exact)
        fresh.mean[:], fresh.square[:] = self.mean, self.square
        Y = np.ascontiguousarray(y, dtype=float).reshape(-1, len(self.mean))
        scaled, means, deviations = np.empty_like(Y), np.empty_like(Y), np.empty_like(Y)
        fresh.count = core.advance_targets(
            Y, weights, fresh.mean, fresh.square, self.count, self.memory, scaled, means, deviations
        )
        if not np.isfinite(fresh.count):
            raise ValueError("sample_weight is too large to scale targets: the sum of the weights overflows.")
        if not (np.isfinite(fresh.mean).all() and np.isfinite(fresh.square).all()):
            raise ValueError("y is too large to scale: its variance overflows. Expected values below 1e150.")
        return fresh, scaled.reshape(-1), means, deviations

    def restored(self, scores):
        """Scores of shape (n, targets) in the units of the targets, as of the next example."""
        return self.in_units(scores)[0]

    def in_units(self, scores):
        """(the same, what deviations of the scores are to be multiplied by)."""
        return self.brought_back(scores, self.mean, self.deviations(), 1.0 / (self.memory * self.count + 1.0))

    def deviations(self):
        """The deviation of each target."""
        return np.array(core.target_deviations(self.mean, self.square, self.count))

    def brought_back(self, scores, means, deviations, shares):
        """The same by means and deviations that were known before the targets, each of which has this share of all weight.

        A target z deviations from the mean becomes z sqrt(1 - share) / sqrt(1 + share z^2) when it is taken in. No score of the
        first examples is taken to be a target far beyond all others.
        """
        if self.exact:
            left = np.maximum(1.0 - shares * (1.0 + scores**2), 0.5)
            scores, deviations = scores / np.sqrt(left), deviations * np.ones_like(scores)
            return scores * deviations + means, deviations * (1.0 - shares) / left**1.5
        return scores * deviations + means, deviations

    def shares(self, n, weights):
        """The share of all weight that each of the next n targets will have, shape (n, 1)."""
        weights = np.ones(n) if weights is None else np.asarray(weights)
        counts = list(accumulate(weights.tolist(), lambda count, weight: self.memory * count + weight, initial=self.count))
        return (weights / np.maximum(counts[1:], 1e-300))[:, None]

    def to_dict(self):
        """What is learned, as plain numbers and lists."""
        return {"count": self.count, "mean": self.mean.tolist(), "square": self.square.tolist()}

    def restore(self, learned):
        """Continue from what `to_dict` gave; ValueError if it makes no sense."""
        mean, square, count = (np.asarray(learned[name], dtype=float) for name in ("mean", "square", "count"))
        shapes = mean.shape == square.shape == self.mean.shape and count.shape == ()
        if not shapes or not all(np.isfinite(part).all() for part in (mean, square, count)):
            raise ValueError("the means and deviations do not fit the targets")
        if (square < 0).any() or count < 0:
            raise ValueError("the deviations of the targets are not numbers of at least 0")
        self.mean, self.square, self.count = mean.copy(), square.copy(), float(count)
