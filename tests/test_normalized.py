"""MetaDescent with normalized products: against its definition, and the invariance that it is for."""
import pickle

import numpy as np
import pytest
from cases import each

import onlinekernels as ok

pytestmark = pytest.mark.filterwarnings("ignore:Learning has stalled:onlinekernels.LearningWarning")   # in the form of the paper
KERNELS = [ok.Linear(), ok.Gaussian(1.0), ok.AdditiveExponential()]


def stream(seed=0, n=300, d=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.1 * rng.normal(size=n)


def descent(X, y, eta, mu, memory, c):
    """(scores, steps) of SVMD with the squared loss on a weight vector, V (32)-(42), products relative to their mean size."""
    w, v = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    products, scores, steps = [], [], []
    for x, target in zip(X, y):
        scores.append(w @ x)
        xi = scores[-1] - target
        gradient = c * w + xi * x
        product = gradient @ v
        if product != 0:
            products.append(abs(product))
            weights = 0.99 ** np.arange(len(products) - 1, -1, -1)
            product /= max(np.average(products, weights=weights), abs(product))
        eta = min(eta * max(0.5, 1 - mu * product), 1 / (c + x @ x))
        steps.append(eta)
        w, v = w - eta * gradient, memory * v - eta * (gradient + memory * (c * v + (x @ v) * x))
    return np.array(scores), np.array(steps)


@each("memory", [0.0, 0.9, 0.99])
@each("size", [1.0, 1e4])
def test_it_is_what_it_says(memory, size):
    X, y = stream()
    expected, expected_steps = descent(X, size * y, 0.01, 0.1, memory, 1e-3)
    model = ok.SVMD("squared", "linear", step=0.01, memory=memory, normalized=True, budget=None, offset=False)
    scores, steps = model.progressive(X, size * y, return_steps=True)
    np.testing.assert_allclose(scores, expected, rtol=1e-6, atol=1e-9 * size)
    np.testing.assert_allclose(steps, expected_steps, rtol=1e-6)


@each("offset", [False, True])
@each("kernel", KERNELS, ids=repr)
@each("size", [1e-6, 1e3, 1e8])
def test_targets_in_other_units_give_the_same_steps(kernel, offset, size):
    X, y = stream(1)
    both = np.column_stack([y, y[::-1]])
    for targets in (y, both):
        make = ok.NORMA("squared", kernel, step=ok.MetaDescent(0.05, normalized=True), offset=offset, regularization=1e-4)
        one, other = (ok.NORMA(**make.get_params(deep=False)) for _ in range(2))
        scores, steps = one.progressive(X, targets, return_steps=True)
        scaled, scaled_steps = other.progressive(X, size * targets, return_steps=True)
        np.testing.assert_allclose(scaled_steps, steps, rtol=1e-6)
        np.testing.assert_allclose(scaled / size, scores, rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(other.intercept_ / size, one.intercept_, rtol=1e-5, atol=1e-9)
    paper = [ok.SVMD("squared", kernel, step=0.05, offset=offset, regularization=1e-4) for _ in range(2)]
    steps = [model.progressive(X, factor * y, return_steps=True)[1] for model, factor in zip(paper, (1.0, 30.0))]
    assert np.abs(steps[0] / steps[1] - 1).max() > 0.1          # which is not so in the paper's form


def test_large_targets_do_not_stop_it():
    X, y = stream(2, 1500)
    errors = {}
    for normalized in (False, True):
        model = ok.SVMD("squared", ok.Gaussian(1.0), normalized=normalized, regularization=1e-6)
        errors[normalized] = np.mean((model.progressive(X, 10 * y)[500:] / 10 - y[500:]) ** 2)
    assert errors[True] < 0.5 * np.var(y) < errors[False]


@each("offset", [False, True])
def test_it_continues_bit_for_bit_and_in_any_chunks(tmp_path, offset):
    X, y = stream(3)
    model = ok.SVMD("squared", ok.Gaussian(1.0), normalized=True, offset=offset, budget=40).partial_fit(X[:150], y[:150])
    model.save(tmp_path / "m.npz")
    twins = [ok.load(tmp_path / "m.npz"), pickle.loads(pickle.dumps(model))]
    expected = model.progressive(X[150:], y[150:])
    for twin in twins:
        np.testing.assert_array_equal(twin.progressive(X[150:], y[150:]), expected)
    single = ok.SVMD("squared", ok.Gaussian(1.0), normalized=True, offset=offset, budget=40)
    for x, target in zip(X, y.tolist()):
        single.learn_one(x, target)
    np.testing.assert_allclose(single.predict(X), model.predict(X), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(single.step_, model.step_, rtol=1e-7)


def test_a_file_without_its_scale_is_refused():
    X, y = stream(3)
    state = ok.SVMD("squared", ok.Gaussian(1.0), normalized=True).partial_fit(X, y).__getstate__()
    for name, value in (("scale", -1.0), ("scale_weight", np.inf), ("offset_scales", np.zeros((2, 3)))):
        bad = pickle.loads(pickle.dumps(state))
        bad["_state"]["learned"][name] = value
        with pytest.raises(ValueError, match="scale"):
            ok.SVMD().__setstate__(bad)
    with pytest.raises(ValueError, match="normalized"):
        ok.SVMD(normalized="yes").fit(X, y)
