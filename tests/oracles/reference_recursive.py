"""What kernel recursive least squares must give, slow and plain.

Two oracles, both from the definition: `Exact` is the Gaussian process on all rows, without a budget; `Pieces` is the
algorithm with a budget, which decides at fixed places of the stream which points stay.  Both take a function that gives
kernel values of two sets of rows, and targets with a column for each output.
"""
import numpy as np

PLACE = 64


def gaussian(width):
    """Values of exp(-|x - z|^2 / (2 width^2)) between the rows of two arrays."""

    def values(X, Z):
        return np.exp(-((X[:, None, :] - Z[None, :, :]) ** 2).sum(axis=2) / (2.0 * width**2))

    return values


def columns(y):
    y = np.asarray(y, dtype=float)
    return y[:, None] if y.ndim == 1 else y


class Exact:
    """f_t ~ GP with the kernel k(x, x') memory^(|t-t'|/2), y_t = f_t(x_t) + noise of variance noise / weight_t.

    A row of weight 0 says nothing, but takes its time.
    """

    def __init__(self, kernel, noise, memory=1.0):
        self.kernel, self.noise, self.memory = kernel, noise, memory

    def given(self, X, y, weights=None):
        weights = np.ones(len(X)) if weights is None else np.asarray(weights, dtype=float)
        counts = weights > 0
        self.now = len(X) + 1
        self.times = np.flatnonzero(counts) + 1
        self.X, self.y, self.variances = X[counts], columns(y)[counts], self.noise / weights[counts]
        return self

    def posterior(self, Z):
        """(mean, covariance) of f at the time of the next example, at the rows of Z."""
        prior = self.kernel(Z, Z)
        if len(self.X) == 0:
            return np.zeros((len(Z), self.y.shape[1])), prior
        apart = np.abs(self.times[:, None] - self.times[None, :])
        C = self.kernel(self.X, self.X) * self.memory ** (0.5 * apart) + np.diag(self.variances)
        c = self.kernel(self.X, Z) * self.memory ** (0.5 * (self.now - self.times))[:, None]
        return c.T @ np.linalg.solve(C, self.y), prior - c.T @ np.linalg.solve(C, c)

    def progressive(self, X, y, weights=None):
        means, deviations = [], []
        for t in range(len(X)):
            mean, covariance = self.given(X[:t], y[:t],
                                          None if weights is None else weights[:t]).posterior(X[t : t + 1])
            means.append(mean[0])
            deviations.append(np.sqrt(max(0.0, covariance[0, 0])))
        return np.array(means), np.array(deviations)


class Pieces:
    """f is known at some points, f_D = L u with K_DD = L L^T and u ~ N(U, S); all else of f is as before.

    Examples wait for a place, every 64th example, and are used in full meanwhile.  There U and S take them in; those
    join that f at the points does not determine, and those leave without which the mean changes least.
    """

    def __init__(self, kernel, noise, memory=1.0, budget=None, tolerance=1e-3):
        self.kernel, self.noise, self.memory, self.budget, self.tolerance = kernel, noise, memory, budget, tolerance
        self.X = None

    # ---- A piece ------------------------------------------------------------------------------

    def _begin(self, X, outputs):
        self.X, self.births, self.n = X[:0], np.zeros(0, dtype=int), 0
        self.L, self.U, self.S = np.zeros((0, 0)), np.zeros((0, outputs)), np.zeros((0, 0))
        self._wait(X[:0], np.zeros((0, outputs)), np.zeros(0))

    def _wait(self, X, y, weights):
        self.waiting, self.targets, self.weights = X, y, weights

    def _known(self, X, Z, times, others):
        """Covariance of f at rows X and times, and at rows Z and others, times being counted from the last place."""
        A, B = (np.linalg.solve(self.L, self.kernel(self.X, points)) for points in (X, Z))
        early = np.minimum(times[:, None], others[None, :])
        apart = np.abs(times[:, None] - others[None, :])
        known, unknown = A.T @ self.S @ B, A.T @ B
        rest = self.kernel(X, Z) - unknown
        left = self.memory**early
        return self.memory ** (0.5 * apart) * (left * known + (1.0 - left) * unknown + rest)

    def posterior(self, Z):
        """(mean, covariance) of f at the time of the next example, at the rows of Z."""
        counts = self.weights > 0
        X, times = self.waiting[counts], np.flatnonzero(counts) + 1.0
        now = np.full(len(Z), len(self.waiting) + 1.0)
        C = self._known(X, X, times, times) + np.diag(self.noise / self.weights[counts])
        c = self._known(X, Z, times, now)
        surprise = self.targets[counts] - self._faded(X, times)
        mean = self._faded(Z, now) + c.T @ np.linalg.solve(C, surprise)
        return mean, self._known(Z, Z, now, now) - c.T @ np.linalg.solve(C, c)

    def _faded(self, X, times):
        return self.memory ** (0.5 * times)[:, None] * (np.linalg.solve(self.L, self.kernel(self.X, X)).T @ self.U)

    def progressive(self, X, y, weights=None):
        y, means, deviations = columns(y), [], []
        weights = np.ones(len(X)) if weights is None else np.asarray(weights, dtype=float)
        if self.X is None:
            self._begin(X, y.shape[1])
        for t in range(len(X)):
            mean, covariance = self.posterior(X[t : t + 1])
            means.append(mean[0])
            deviations.append(np.sqrt(max(0.0, covariance[0, 0])))
            self._wait(np.vstack([self.waiting, X[t : t + 1]]), np.vstack([self.targets, y[t]]), np.append(self.weights,
                                                                                                           weights[t]))
            self.n += 1
            if len(self.waiting) == PLACE:
                self._conclude()
        return np.array(means), np.array(deviations)

    # ---- Places -------------------------------------------------------------------------------

    def _conclude(self):
        counts = self.weights > 0
        X, times = self.waiting[counts], np.flatnonzero(counts) + 1.0
        variances, births = self.noise / self.weights[counts], self.n - PLACE + np.flatnonzero(counts) + 1
        A = np.linalg.solve(self.L, self.kernel(self.X, X))
        joining, V = self._newcomers(self.kernel(X, X) - A.T @ A, np.diag(self.kernel(X, X)))
        C = self._known(X, X, times, times) + np.diag(variances)
        root = np.linalg.cholesky(C)
        errors = np.linalg.solve(root, self.targets[counts] - self._faded(X, times))
        left, late = self.memory ** times[:, None], self.memory ** (0.5 * (PLACE - times))[:, None]
        W = np.linalg.solve(root, late * np.hstack([left * (A.T @ self.S) + (1.0 - left) * A.T, V]))
        old, new, faded = len(self.X), len(joining), self.memory**PLACE
        S = np.eye(old + new)
        S[:old, :old] = faded * self.S + (1.0 - faded) * np.eye(old)
        self.U = np.vstack([self.memory ** (0.5 * PLACE) * self.U, np.zeros((new, self.U.shape[1]))]) + W.T @ errors
        self.S = S - W.T @ W
        self.L = np.block([[self.L, np.zeros((old, new))], [A[:, joining].T, V[joining]]])
        self.X, self.births = np.vstack([self.X, X[joining]]), np.append(self.births, births[joining])
        self._wait(self.waiting[:0], self.targets[:0], self.weights[:0])
        while self.budget is not None and len(self.X) > self.budget:
            self._remove(self._least_missed())

    def _newcomers(self, rest, prior):
        """(rows that join, V with rest ~ V V^T): each time the one that is determined least, of equals the earliest."""
        rest, joining, V = rest.copy(), [], []
        while True:
            variances = np.diag(rest)
            candidates = [i for i in range(len(rest)) if i not in joining and variances[i] > self.tolerance * prior[i]]
            if not candidates:
                return joining, np.array(V).reshape(len(V), len(rest)).T
            largest = max(variances[i] for i in candidates)
            best = next(i for i in candidates if variances[i] >= (1.0 - 1e-6) * largest)
            V.append(rest[best] / np.sqrt(rest[best, best]))
            V[-1][joining] = 0.0
            rest = rest - np.outer(V[-1], V[-1])
            joining.append(best)

    def _least_missed(self):
        """The point without which the mean loses least, |mean|^2 - |mean without it|^2; of equals the oldest."""
        Q = np.linalg.inv(self.L @ self.L.T)
        loss = np.sum((Q @ self.L @ self.U) ** 2, axis=1) / np.diag(Q)
        equals = np.flatnonzero(loss <= (1.0 + 1e-6) * loss.min())
        return equals[np.argmin(self.births[equals])]

    def _remove(self, i):
        stay = np.arange(len(self.X)) != i
        mean, covariance = (self.L @ self.U)[stay], (self.L @ self.S @ self.L.T)[np.ix_(stay, stay)]
        self.L = np.linalg.cholesky((self.L @ self.L.T)[np.ix_(stay, stay)])
        self.U = np.linalg.solve(self.L, mean)
        self.S = np.linalg.solve(self.L, np.linalg.solve(self.L, covariance).T)
        self.X, self.births = self.X[stay], self.births[stay]

    def points(self):
        return np.vstack([self.X[np.argsort(self.births)], self.waiting])
