"""Regression with several targets: one model with a row of coefficients per term, equal to a model for each."""
import pickle

import numpy as np
import pytest
from cases import each

import onlinekernels as ok

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3))
Y = np.column_stack([X[:, 0], X[:, 0] * X[:, 1], np.sin(X[:, 2])])
KERNELS = [ok.Linear(), ok.Gaussian(1.0), ok.AdditiveMatern()]


class Cube(ok.Loss):
    """|score - y|^3 / 3, in Python."""

    task = "regression"

    def value(self, score, y):
        return abs(score - y) ** 3 / 3

    def derivative(self, score, y):
        return (score - y) * abs(score - y)


def models(kernel, budget):
    yield ok.NORMA("squared", kernel, step=0.05, regularization=0.01, offset=True, budget=budget)
    yield ok.NORMA("absolute", kernel, step=0.05, average=budget is None, budget=budget)
    yield ok.NORMA(Cube(), kernel, step=0.02, budget=budget)
    yield ok.ILK("huber", kernel, offset=True, budget=budget)
    yield ok.ILK("insensitive", kernel, budget=budget)
    yield ok.PassiveAggressive("insensitive", kernel, offset=True, budget=budget)
    yield ok.PassiveAggressive("insensitive", kernel, variant="PA-II", budget=budget)
    yield ok.Projection(ok.SquaredInsensitive(0.05), kernel, budget=budget)


@each("budget", [None, ok.Window(40)], ids=repr)
@each("kernel", KERNELS, ids=repr)
def test_several_targets_are_a_model_for_each(kernel, budget):
    rng = np.random.default_rng(1)
    for model in models(kernel, budget):
        single = [pickle.loads(pickle.dumps(model)) for _ in range(3)]
        scores, first = [], 0
        while first < len(X):
            size = int(rng.integers(1, 50))
            scores.append(model.progressive(X[first : first + size], Y[first : first + size]))
            first += size
        model._state.engine._check()
        for j, other in enumerate(single):
            np.testing.assert_allclose(np.concatenate(scores)[:, j], other.progressive(X, Y[:, j]), atol=1e-12)
            np.testing.assert_allclose(model.predict(X)[:, j], other.predict(X), atol=1e-12)
        assert model.score(X, Y) == pytest.approx(np.mean([m.score(X, Y[:, j]) for j, m in enumerate(single)]))
