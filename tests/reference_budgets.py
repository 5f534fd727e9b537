"""Budgets that look at the kernel, slow and plain, written from the papers.

A model is a list of points, their ages and a matrix of coefficients, a row for each point.  Each budget is a function that
is given a model with one term too many, the newcomer the last, and gives one back that fits.
"""
import numpy as np


class Model:
    """f(x) = sum_i k(x_i, x) A_i.

    Parameters
    ----------
    kernel : callable
        (points, points) to a matrix of kernel values.
    outputs : int
    """

    def __init__(self, kernel, outputs=1):
        self.kernel = kernel
        self.X, self.A = [], np.zeros((0, outputs))

    def __call__(self, x):
        return self.kernel(np.array(self.X), x[None])[:, 0] @ self.A if self.X else np.zeros(self.A.shape[1])

    def gram(self):
        return self.kernel(np.array(self.X), np.array(self.X))

    def square(self):
        """|f|^2."""
        return float(np.sum(self.A * (self.gram() @ self.A)))

    def distance(self, other):
        """|f - g|^2."""
        both = Model(self.kernel, self.A.shape[1])
        both.X, both.A = self.X + other.X, np.vstack([self.A, -other.A])
        return both.square()

    def copy(self):
        other = Model(self.kernel, self.A.shape[1])
        other.X, other.A = list(self.X), self.A.copy()
        return other

    def without(self, i):
        """The same with a term dropped."""
        other = self.copy()
        del other.X[i]
        other.A = np.delete(other.A, i, axis=0)
        return other


def project(model, i):
    """Orthogonal projection onto the span of all points but one: beta = K^-1 k_i."""
    rest = model.without(i)
    if rest.X:
        k = model.kernel(np.array(rest.X), model.X[i][None])[:, 0]
        rest.A += np.outer(np.linalg.solve(rest.gram(), k), model.A[i])
    return rest


def residual(model, i):
    """|k(x_i, .) - its projection|^2."""
    rest, own = model.without(i), model.kernel(model.X[i][None], model.X[i][None])[0, 0]
    if not rest.X:
        return own, own
    k = model.kernel(np.array(rest.X), model.X[i][None])[:, 0]
    return own - k @ np.linalg.solve(rest.gram(), k), own


def oldest_least(numbers):
    """The first of the smallest, whatever the rounding."""
    return int(np.flatnonzero(numbers <= np.min(numbers) * (1 + 1e-9))[0])


def projecting(size, tolerance=0.0):
    """The term whose projection loses least goes; a newcomer that is spanned never comes."""

    def fit(model):
        last = len(model.X) - 1
        rest, own = residual(model, last)
        if rest <= max(tolerance, 1e-10) * own:
            return project(model, last)
        if len(model.X) <= size:
            return model
        losses = (model.A**2).sum(axis=1) / np.diag(np.linalg.inv(model.gram()))
        return project(model, oldest_least(losses))

    return fit


def learn(X, Y, rule, budget, kernel, outputs=1):
    """Scores before each example, and the model; rule(t, scores, y, k) is (shrink, new coefficients)."""
    model, scores = Model(kernel, outputs), []
    for t, (x, y) in enumerate(zip(X, Y), 1):
        scores.append(model(x))
        shrink, row = rule(t, scores[-1], y, kernel(x[None], x[None])[0, 0])
        model.A = shrink * model.A
        if np.any(row):
            model.X.append(x)
            model.A = np.vstack([model.A, row])
            model = budget(model)
    return np.array(scores), model


def projectron(X, Y, kernel, size, tolerance=0.0, margin_tolerance=None):
    """Orabona, Keshet, Caputo (2009), Algorithms 1 and 4, with terms that enter while there is room."""
    model, scores = Model(kernel), []
    for x, y in zip(X, Y):
        score = model(x)[0]
        scores.append(score)
        trial = model.copy()
        trial.X.append(x)
        trial.A = np.vstack([trial.A, [[float(y)]]])
        rest, own = residual(trial, len(trial.X) - 1)
        if y * score <= 0:
            full = len(model.X) >= size or rest <= max(tolerance, 1e-10) * own
            model = project(trial, len(trial.X) - 1) if full else trial
        elif margin_tolerance is not None and y * score < 1:
            loss, length = 1 - y * score, own - rest
            if loss > rest / margin_tolerance:
                tau = min(loss / length, 2 * (loss - rest / margin_tolerance) / length, 1.0)
                trial.A[-1] *= tau
                model = project(trial, len(trial.X) - 1)
    return np.array(scores), model
