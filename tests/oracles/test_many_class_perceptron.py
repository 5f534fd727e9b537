"""The Perceptron for many classes against the updates of Crammer and Singer, written down row by row."""
import pickle

import numpy as np
import pytest
from cases import each

import onlinekernels as ok

RNG = np.random.default_rng(4)
N = 140
X = RNG.normal(size=(N, 2))
Y = np.array(["d", "b", "a", "c"])[(X[:, 0] > 0) * 2 + (X[:, 1] + 0.3 * RNG.normal(size=N) > 0)]
UPDATES = ["runner-up", "uniform"]


def oracle(K, y, update, offset):
    """(scores before each update, coefficients) with the labels 0, 1, ..., all known from the start."""
    n, classes = len(y), int(max(y)) + 1
    alpha, b, made = np.zeros((classes, n)), np.zeros(classes), []
    for t in range(n):
        f = alpha @ K[:, t] + b
        made.append(f)
        as_good = [r for r in range(classes) if r != y[t] and f[r] >= f[y[t]]]
        if not as_good:
            continue
        if update == "uniform":
            share = np.full(len(as_good), 1 / len(as_good))
        else:
            share = np.eye(len(as_good))[np.argmax(f[as_good])]
        change = np.zeros(classes)
        change[y[t]] = 1.0
        change[as_good] -= share
        alpha[:, t] = change
        b += change * offset
    return np.array(made), alpha


@each("update", UPDATES)
@each("offset", [False, True])
@each("kernel", [ok.Gaussian(0.7), ok.Linear(), ok.AdditiveExponential()], ids=repr)
def test_it_is_the_papers_update_in_any_chunks(update, offset, kernel):
    classes = np.unique(Y)
    y = np.searchsorted(classes, Y)
    expected, alpha = oracle(kernel(X), y, update, offset)
    for sizes in ([N], [1] * N, [50, 3, 87]):
        model, scores, first = ok.Perceptron(kernel, update=update, offset=offset), [], 0
        for size in sizes:
            scores.append(model.progressive(X[first:first + size], Y[first:first + size], classes))
            first += size
        np.testing.assert_allclose(np.concatenate(scores), expected, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(model.decision_function(X), kernel(X) @ alpha.T + model.intercept_, rtol=1e-9,
                                   atol=1e-9)
    again = pickle.loads(pickle.dumps(model))
    assert (again.decision_function(X) == model.decision_function(X)).all()


def test_the_first_call_tells_two_classes_from_many():
    model = ok.Perceptron().fit(X, Y)
    assert model.classes_.tolist() == ["a", "b", "c", "d"] and model.score(X, Y) > 0.6
    named = ok.Perceptron().partial_fit(X[:1], Y[:1], classes=["a", "b", "c", "d"])
    assert named.decision_function(X).shape == (N, 4)
    two = ok.Perceptron().fit(X, Y < "c")
    assert two.decision_function(X).shape == (N,)
    model.set_params(update=None).partial_fit(X, Y)
    with pytest.raises(ValueError, match="continuous"):
        ok.Perceptron().fit(X, X[:, 0])
    with pytest.raises(ValueError, match="'update' parameter of Perceptron"):
        ok.Perceptron(update="most").fit(X, Y)
