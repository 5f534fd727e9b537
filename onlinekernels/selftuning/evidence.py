"""The evidence of a kernel, its exact gradient, and the axes along which a function changes.

With z = u Q diag(scales), the features u in axes Q, rows t and s of the past have the covariance

    C_ts = exp(-r |t - s| / 2) [a exp(-|z_t - z_s|^2 / 2) + 1] + noise [t = s]

and log p(Y) = log N(Y | 0, C), summed over outputs, says how likely the rows are under these scales, this amplitude a, noise
and forgetting r.  It is a function of logarithms alone; its gradient for all scales takes one n x n by n x d product.
"""
import math

import numpy as np

__all__ = ["Evidence", "Settings", "gradient_axes"]

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
        self.X, self.Y = X, Y
        self.lags = 0.5 * np.abs(times[:, None] - times[None, :])
        self.spread = np.ones(len(X)) if weights is None else 1.0 / weights
        self.settings = Settings(X.shape[1])

    def _covariance(self, q):
        """(scaled rows, kernel part, both parts without noise), and what q stands for."""
        scales, amplitude, noise, forgetting = values = self.settings.values(q)
        Z = self.X * scales
        squares = np.einsum("ij,ij->i", Z, Z)
        kernel = Z @ Z.T
        kernel *= 2.0
        kernel -= squares[:, None]
        kernel -= squares[None, :]
        np.minimum(kernel, 0.0, out=kernel)
        kernel *= 0.5
        fading = self.lags * -forgetting
        kernel += fading
        np.exp(kernel, out=kernel)
        kernel *= amplitude
        both = np.exp(fading, out=fading)
        both += kernel
        return Z, kernel, both, values

    def value(self, q):
        """Minus the log evidence alone."""
        return self._judged(q, with_gradient=False)[0]

    def __call__(self, q):
        """(minus the log evidence, its gradient by q)."""
        return self._judged(q)

    def _judged(self, q, with_gradient=True):
        Z, kernel, both, (scales, amplitude, noise, forgetting) = self._covariance(q)
        n, outputs = self.Y.shape
        both.flat[:: n + 1] += noise * self.spread
        try:
            inverse, log = whitening(both)
        except np.linalg.LinAlgError:
            return math.inf, np.full(len(q), np.nan)
        whitened = inverse @ self.Y
        value = 0.5 * float(np.sum(whitened**2)) + outputs * log
        value += 0.5 * n * outputs * math.log(2.0 * math.pi)
        if not with_gradient:
            return value, None
        alpha = inverse.T @ whitened
        W = inverse.T @ inverse
        if outputs > 1:
            W *= outputs
        W -= alpha * alpha.T if outputs == 1 else alpha @ alpha.T  # twice the derivative by the covariance
        d, gradient = self.settings.n_axes, np.empty(len(q))
        gradient[d + 2] = 0.5 * noise * float(W.diagonal() @ self.spread)
        both *= self.lags  # which are 0 where the noise is
        gradient[d + 3] = -0.5 * forgetting * float(np.vdot(W, both))
        W *= kernel
        rows = W.sum(axis=1)
        gradient[:d] = np.einsum("ij,ij->j", Z, W @ Z) - rows @ Z**2
        gradient[d] = gradient[:d].sum()
        gradient[d + 1] = 0.5 * float(rows.sum())
        return value, gradient * self.settings.slopes(q)

    def with_prior(self, q):
        """(minus the log evidence and the log prior, the gradient)."""
        value, gradient = self(q)
        penalty, slope = self.settings.penalty(q)
        return value + penalty, gradient + slope

    def outer_products(self, q):
        """Sum over rows and outputs of g g^T, g the gradient of the mean function by the features, shape (d, d)."""
        Z, kernel, both, (scales, _, noise, _) = self._covariance(q)
        both.flat[:: len(Z) + 1] += noise * self.spread
        alpha = np.linalg.solve(both, self.Y)
        total = np.zeros((len(scales), len(scales)))
        for coefficients in alpha.T:
            slopes = ((kernel * coefficients) @ Z - (kernel @ coefficients)[:, None] * Z) * scales
            total += slopes.T @ slopes
        return total


def whitening(covariance, smallest=48):
    """(R, log det): R lower triangular with R C R^T = 1, the inverse of the Cholesky factor, and half the logarithm of det C.

    By halves: nearly all of it is matrix products. LinAlgError if C is not positive definite.

    >>> whitening(np.array([[4.0, 2.0], [2.0, 17.0]]), smallest=1)
    (array([[ 0.5  ,  0.   ],
           [-0.125,  0.25 ]]), 2.0794415416798357)
    """
    n = len(covariance)
    if n <= smallest:
        factor = np.linalg.cholesky(covariance)
        return np.tril(np.linalg.inv(factor)), float(np.log(factor.diagonal()).sum())
    half, R = n // 2, np.zeros((n, n))
    upper, log = whitening(covariance[:half, :half], smallest)
    shared = covariance[half:, :half] @ upper.T
    lower, rest = whitening(covariance[half:, half:] - shared @ shared.T, smallest)
    R[:half, :half], R[half:, half:] = upper, lower
    np.matmul(-lower, shared @ upper, out=R[half:, :half])
    return R, log + rest


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
