"""Budgets that look at the kernel, slow and plain, written from the papers.

A model is a list of points, their ages and a matrix of coefficients, a row for each point.  Each budget is a function
that is given a model with one term too many, the newcomer the last, and gives one back that fits.
"""
import numpy as np


class Model:
    """f(x) = sum_i k(x_i, x) kappa A_i.

    Parameters
    ----------
    kernel : callable
        (points, points) to a matrix of kernel values.
    kappa : array
        The kernel between labels.
    """

    def __init__(self, kernel, kappa):
        self.kernel, self.kappa = kernel, kappa
        self.X, self.A = [], np.zeros((0, len(kappa)))

    def __call__(self, x):
        values = self.kernel(np.array(self.X), x[None])[:, 0] if self.X else np.zeros(0)
        return values @ self.A @ self.kappa

    def gram(self):
        return self.kernel(np.array(self.X), np.array(self.X))

    def square(self):
        """|f|^2."""
        return float(np.sum(self.A * (self.gram() @ self.A @ self.kappa)))

    def distance(self, other):
        """|f - g|^2."""
        both = Model(self.kernel, self.kappa)
        both.X, both.A = self.X + other.X, np.vstack([self.A, -other.A])
        return both.square()

    def copy(self):
        other = Model(self.kernel, self.kappa)
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
        if rest <= max(tolerance, 1e-8) * own:
            return project(model, last)
        if len(model.X) <= size:
            return model
        losses = (model.A * (model.A @ model.kappa)).sum(axis=1) / np.diag(np.linalg.inv(model.gram()))
        return project(model, oldest_least(losses))

    return fit


def quantized(coherence, size=None):
    """Chen, Zhao, Zhu, Principe (2012), with an angle for a distance; if there are too many, the oldest goes."""

    def fit(model):
        last, gram = len(model.X) - 1, model.gram()
        cosines = (gram / np.sqrt(np.outer(gram.diagonal(), gram.diagonal())))[last, :last]
        if last and cosines.max() >= coherence:
            nearest = int(np.argmax(cosines))
            model.A[nearest] += model.A[last]
            model = model.without(last)
            return model if model.A[nearest].any() else model.without(nearest)
        return model.without(0) if size is not None and last >= size else model

    return fit


def absorbing(size):
    """BPA-S, Wang and Vucetic (2010): the term that loses least if the newcomer takes over what it can of it."""

    def fit(model):
        last, gram = len(model.X) - 1, model.gram()
        if last < size:
            return model
        shares = gram[last, :last] / gram[last, last]
        rest = gram.diagonal()[:last] - shares * gram[last, :last]
        goes = oldest_least((model.A @ model.kappa * model.A).sum(axis=1)[:last] * rest)
        model.A[last] += shares[goes] * model.A[goes]
        return model.without(goes) if model.A[last].any() else model.without(last).without(goes)

    return fit


def learn(X, Y, rule, budget, kernel, kappa=np.eye(1)):
    """Scores before each example, and the model; rule(t, scores, y, k) is (shrink, new coefficients)."""
    model, scores = Model(kernel, kappa), []
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
    model, scores = Model(kernel, np.eye(1)), []
    for x, y in zip(X, Y):
        score = model(x)[0]
        scores.append(score)
        trial = model.copy()
        trial.X.append(x)
        trial.A = np.vstack([trial.A, [[float(y)]]])
        rest, own = residual(trial, len(trial.X) - 1)
        if y * score <= 0:
            full = len(model.X) >= size or rest <= max(tolerance, 1e-8) * own
            model = project(trial, len(trial.X) - 1) if full else trial
        elif margin_tolerance is not None and y * score < 1:
            loss, length = 1 - y * score, own - rest
            if loss > rest / margin_tolerance:
                tau = min(loss / length, 2 * (loss - rest / margin_tolerance) / length, 1.0)
                trial.A[-1] *= tau
                model = project(trial, len(trial.X) - 1)
    return np.array(scores), model


def merge(model, i, j, gaussian, constant):
    """Terms i and j as one at z = h x_i + (1 - h) x_j: its point and coefficients, and |change of f|^2.

    Wang, Crammer, Vucetic (2012): the best h maximises what remains, |p A_i + q A_j|^2; found by a fine search.
    """
    a, b, A, B = model.X[i], model.X[j], model.A[i], model.A[j]
    value = float(gaussian(a[None], b[None])[0, 0])
    AA, AB, BB = (float(C @ model.kappa @ D) for C, D in ((A, A), (A, B), (B, B)))

    def values(h):
        """p = k(x_i, z) and q = k(x_j, z), over k(z, z)."""
        return (value ** (1 - h) ** 2 + constant) / (1 + constant), (value ** h**2 + constant) / (1 + constant)

    def remains(h):
        p, q = values(h)
        return p * p * AA + 2 * p * q * AB + q * q * BB

    low, high = 0.0, 1.0
    for zoom in range(8):
        grid = np.linspace(low, high, 1001)
        worth = remains(grid)
        h = grid[worth.argmax() if zoom else np.flatnonzero(worth >= worth.max() * (1 - 1e-10))[0]]
        low, high = max(0.0, h - 2 * (grid[1] - grid[0])), min(1.0, h + 2 * (grid[1] - grid[0]))
    p, q = values(h)
    z, coefficients = h * a + (1 - h) * b, p * A + q * B
    loss = (1 + constant) * (AA + BB - coefficients @ model.kappa @ coefficients) + 2 * (value + constant) * AB
    return z, coefficients, loss


def merging(size, gaussian, constant=0.0):
    """The smallest term and another one become one: with one output the one that loses least, otherwise the nearest."""

    def fit(model):
        if len(model.X) <= size:
            return model
        i = oldest_least(np.abs(model.A).max(axis=1))
        others = [j for j in range(len(model.X)) if j != i]
        mergers = {j: merge(model, i, j, gaussian, constant) for j in others}
        if model.A.shape[1] == 1:
            worth = np.array([mergers[j][2] for j in others]) / model.A[i, 0] ** 2
        else:
            worth = np.array([np.sum((model.X[j] - model.X[i]) ** 2) for j in others])
        j = others[int(np.flatnonzero(worth <= worth.min() + 1e-11)[0])]
        z, coefficients, _ = mergers[j]
        # It takes the place of the partner, or of the smallest if the partner is the newcomer.
        place, gone = (i, j) if j == len(model.X) - 1 else (j, i)
        model.X[place], model.A[place] = z, coefficients
        return model.without(gone)

    return fit


def forgetron(X, Y, kernel, size):
    """Dekel, Shalev-Shwartz, Singer (2008), Figure 4: phi by bisection on its definition."""
    model, scores, Q, M = Model(kernel, np.eye(1)), [], 0.0, 0
    for x, y in zip(X, Y):
        scores.append(model(x)[0])
        if y * scores[-1] > 0:
            continue
        M += 1
        model.X.append(x)
        model.A = np.vstack([model.A, [[float(y)]]])
        if len(model.X) > size:
            sigma, label = abs(model.A[0, 0]), np.sign(model.A[0, 0])

            value = model(model.X[0])[0]

            def psi(phi):
                mu = label * phi * value
                return (sigma * phi) ** 2 + 2 * sigma * phi * (1 - mu)

            phi = 1.0
            if psi(1.0) + Q > 15 / 32 * M:
                low, high = 0.0, 1.0
                for _ in range(100):
                    phi = 0.5 * (low + high)
                    low, high = (phi, high) if psi(phi) + Q <= 15 / 32 * M else (low, phi)
            Q += psi(phi)
            model.A = phi * model.A
            model = model.without(0)
    return np.array(scores), model


def redundant(size, tighter=False):
    """Weston, Bordes, Bottou (2005): the newcomer is one of the terms, and the one that is classified best without
    itself goes.

    Tighter: the one without which the fewest are classified wrongly.
    """

    def margin(scores, row):
        if len(row) == 1:
            return np.sign(row[0]) * scores[0]
        label = int(row.argmax())
        return scores[label] - np.delete(scores, label).max()

    def fit(model):
        if len(model.X) <= size:
            return model
        related = (model.kappa != np.diag(np.diag(model.kappa))).any()       # then all labels have scores
        K, A, used = model.gram(), model.A, related | (model.A != 0).any(axis=0)
        without = [((K @ A - np.outer(K[i], A[i])) @ model.kappa)[:, used] for i in range(len(A))]
        A = A[:, used]
        margins = np.array([margin(scores[i], A[i]) for i, scores in enumerate(without)])
        if tighter:
            mistakes = np.array([sum(margin(f, row) <= 0 for f, row in zip(scores, A)) for scores in without])
            margins[mistakes > mistakes.min()] = -np.inf
        return model.without(int(np.flatnonzero(margins >= margins.max() - 1e-9 * abs(margins.max()))[0]))

    return fit
