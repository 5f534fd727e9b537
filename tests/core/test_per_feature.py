"""A step for each weight: stochastic meta-descent as V 2.2 has it, in plain NumPy."""

import numpy as np
import pytest
from cases import each

import onlinekernels as ok

sparse = pytest.importorskip("scipy.sparse")

RNG = np.random.default_rng(3)
X = RNG.normal(size=(150, 6)) * [1.0, 0.3, 2.0, 0.1, 1.0, 0.5]
X *= RNG.random(X.shape) > 0.2  # what a sparse row does not have must not be left over from another one
SIGNS = np.where(X[:, 0] + 5 * X[:, 3] + 0.2 * RNG.normal(size=150) > 0, 1, -1)
NUMBERS = X @ [1.0, -2.0, 0.5, 7.0, 0.0, 1.0] + 0.1 * RNG.normal(size=150)
CLASSES = RNG.integers(0, 3, size=150)


class Descent:
    """theta <- theta - eta . g (1), eta <- eta . max(1/2, 1 - mu g . v) (4), v <- lambda v - eta . (g + lambda H v)
    (7).

    g and H are those of the example's loss of all outputs plus c/2 |theta|^2; eta is at most 1 / c and, for the squared
    loss, such that the step does not pass the example's own minimum: the largest eta x^2 are cut to one level.
    """

    def __init__(self, outputs, features, rate, mu, memory, c):
        self.theta, self.v = np.zeros((2, outputs, features))
        self.eta = np.full((outputs, features), rate)
        self.mu, self.memory, self.c = mu, memory, c

    def learn(self, x, slope, hessian, bounded=True):
        """slope and hessian of the loss in the scores theta @ x."""
        g = np.outer(slope, x) + self.c * self.theta
        H_v = np.outer(hessian @ (self.v @ x), x) + self.c * self.v
        self.eta = self.eta * np.maximum(0.5, 1 - self.mu * g * self.v)
        if self.c:
            self.eta = np.minimum(self.eta, 1 / self.c)
        if not bounded:
            for l in range(len(self.eta)):
                parts = hessian.max() * self.eta[l] * x**2
                if parts.sum() > 1:
                    low, high = 0.0, 1.0
                    for _ in range(100):
                        level = (low + high) / 2
                        low, high = (level, high) if np.minimum(parts, level).sum() < 1 else (low, level)
                    self.eta[l] = np.where(parts > level, self.eta[l] * level / np.where(parts > 0, parts, 1.0),
                                           self.eta[l])
        self.v = self.memory * self.v - self.eta * (g + self.memory * H_v)
        self.theta = self.theta - self.eta * g


def hinge(scores, y):
    return np.array([-y if y * scores[0] <= 1 else 0.0]), np.zeros((1, 1)), True


def logistic(scores, y):
    p = 1 / (1 + np.exp(y * scores[0]))
    return np.array([-y * p]), np.array([[p * (1 - p)]]), True


def squared(scores, y):
    return scores - np.atleast_1d(y), np.eye(len(scores)), False


def multiclass_logistic(scores, y):
    p = np.exp(scores - scores.max())
    p /= p.sum()
    return p - np.eye(3)[y], np.diag(p) - np.outer(p, p), True


def multiclass_hinge(scores, y):
    margins = scores + 1.0 - np.eye(3)[y]
    margins[y] = -np.inf
    other = margins.argmax()
    slope = np.zeros(3)
    if scores[y] - scores[other] <= 1:
        slope[y], slope[other] = -1.0, 1.0
    return slope, np.zeros((3, 3)), True


LOSSES = {"hinge": (hinge, SIGNS, 1), "logistic": (logistic, SIGNS, 1), "squared": (squared, NUMBERS, 1),
          "multiclass_logistic": (multiclass_logistic, CLASSES, 3), "multiclass_hinge": (multiclass_hinge, CLASSES, 3),
          "targets": (squared, np.column_stack([NUMBERS, X[:, 1]]), 2),}


def oracle(loss, features, rate=0.1, mu=0.2, memory=0.95, c=0.05):
    """(scores before each example, their mean over time after all, the descent)."""
    derivatives, y, outputs = LOSSES[loss]
    descent, scores, total = Descent(outputs, features.shape[1], rate, mu, memory, c), [], 0.0
    for x, target in zip(features, y):
        scores.append(descent.theta @ x)
        total = total + descent.theta
        descent.learn(x, *derivatives(scores[-1], target))
    return np.array(scores), total / len(features), descent


def learner(loss, kernel, average=False, **changes):
    name = "squared" if loss == "targets" else loss
    step = ok.MetaDescent(**{"rate": 0.1, "meta_rate": 0.2, "memory": 0.95, "per_feature": True, **changes})
    return ok.NORMA(name, kernel, step=step, regularization=0.05, average=average, offset=False)


def learn(model, X, y, rows):
    classes = [0, 1, 2] if y is CLASSES else None
    parts = [model.progressive(X[i : i + rows], y[i : i + rows], classes=classes) for i in range(0, X.shape[0], rows)]
    return np.concatenate(parts).reshape(X.shape[0], -1)


@each("loss", LOSSES)
@each("rows", [1, 13, 150])
def test_linear_weights(loss, rows):
    expected, mean, descent = oracle(loss, X)
    y = LOSSES[loss][1]
    model = learner(loss, ok.Linear())
    np.testing.assert_allclose(learn(model, X, y, rows), expected, rtol=0, atol=1e-10)
    np.testing.assert_allclose(model.coef_, descent.theta, atol=1e-10)
    np.testing.assert_allclose(model._state.function.steps, descent.eta, rtol=1e-9)
    assert model.step_ == pytest.approx(descent.eta.mean())
    in_sparse = learner(loss, ok.Linear())
    np.testing.assert_allclose(learn(in_sparse, sparse.csr_array(X), y, rows), expected, rtol=0, atol=1e-10)
    averaged = learner(loss, ok.Linear(), average=True)
    learn(averaged, X, y, rows)
    np.testing.assert_allclose(averaged.coef_, mean, atol=1e-10)


@each("loss", LOSSES)
@each("kernel", [ok.RandomFourier("gaussian", 30), ok.Nystroem("gaussian", 20) + ok.Linear()], ids=repr)
def test_feature_maps(loss, kernel):
    y = LOSSES[loss][1]
    model = learner(loss, kernel)
    scores = learn(model, X, y, 150)
    features = model._state.function.map(X)
    expected, _, descent = oracle(loss, features)
    np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-8)
    np.testing.assert_allclose(learn(learner(loss, kernel), X, y, 9), expected, rtol=0, atol=1e-8)
    np.testing.assert_allclose(model.coef_, descent.theta, atol=1e-8)


def test_steps_stay_when_labels_join():
    """Labels of this loss have nothing to do with each other: the first is learned as if the others had been there."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(90, 3)), np.concatenate([rng.integers(0, n, 30) for n in (2, 3, 6)])
    joining, knowing = (ok.NORMA("multiclass_squared", "linear", step=ok.MetaDescent(0.05, 0.5, per_feature=True),
                                 offset=False)
                        for _ in range(2))
    scores = [joining.progressive(X[i : i + 1], y[i : i + 1])[0, 0] for i in range(90)]
    np.testing.assert_allclose(scores, knowing.progressive(X, y, classes=list(dict.fromkeys(y.tolist())))[:, 0],
                               rtol=1e-9)
