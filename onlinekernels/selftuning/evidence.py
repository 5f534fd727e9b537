"""The evidence of a kernel, its exact gradient, and the axes along which a function changes.

With z = u Q diag(scales), the features u in axes Q, rows t and s of the past have the covariance

    C_ts = exp(-r |t - s| / 2) [a exp(-|z_t - z_s|^2 / 2) + 1] + noise [t = s]

and log p(Y) = log N(Y | 0, C), summed over outputs, says how likely the rows are under these scales, this amplitude a, noise
and forgetting r.  It is a function of logarithms alone.
"""
import math

import numpy as np

from onlinekernels._core import linalg as core

__all__ = ["Evidence", "Settings", "gradient_axes"]

FORGETTING = (-2.0, 0.0, 2.0, 3.5)  # free numbers of the forgetting that are tried: memories of 20,000 to 200 rows
PINNED = 1e-6  # of the mean curvature, along axes in which the function does not change at all


class Settings:
    """What the evidence is a function of: logarithms within boxes, about which something is believed beforehand.

    A vector q of free numbers stands for log scale_j = common + own_j, log a, log noise and log r. Each of these logarithms
    is centre + box tanh(q / box), so none runs away however little the data says, and q has a Gaussian prior.

    Parameters
    ----------
    n_axes : int

    Examples
    --------
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

    Parameters
    ----------
    X : array of shape (n, d)
        Features along the axes.
    Y : array of shape (n, outputs)
        Numbers of the size of 1, or +1 for the label and -1 for all others.
    times : array of shape (n,)
    weights : array of shape (n,) or None
        They divide the noise.
    """

    def __init__(self, X, Y, times, weights=None):
        self.X, self.Y = np.asarray(X), np.ascontiguousarray(Y, dtype=float)
        self.times = np.ascontiguousarray(times, dtype=float)
        self.spread = np.ones(len(X)) if weights is None else 1.0 / weights
        self.settings = Settings(X.shape[1])

    def _scaled(self, scales):
        """Rows along the axes, turned."""
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
        return core.judged(self._scaled(scales), self.Y, self.times, self.spread, amplitude, noise, forgetting, with_slopes)

    def with_prior(self, q):
        """(minus the log evidence and the log prior, the gradient)."""
        value, gradient = self(q)
        penalty, slope = self.settings.penalty(q)
        return value + penalty, gradient + slope

    def with_best_forgetting(self, q):
        """q, with another forgetting if one is better.

        What does not fit may be noise, fine structure, or the past, which are valleys apart: a descent stays in its own.
        """
        tries = [q, *(np.append(q[:-1], forgetting) for forgetting in FORGETTING if abs(forgetting - q[-1]) > 1.0)]
        return min(tries, key=lambda there: self.value(there) + self.settings.penalty(there)[0])

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

    A direction in which the function does not change has no axis of its own: a small diagonal, different in each feature,
    leaves no choice.

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
