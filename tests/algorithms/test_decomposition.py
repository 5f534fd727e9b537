"""KernelHebbian: against a plain loop in feature space, against eigenvectors, in chunks, and as an estimator."""

import pickle

import numpy as np
import pytest

import onlinekernels as ok
from cases import each
from onlinekernels import Gaussian, KernelHebbian
from onlinekernels.steps import Decaying, MetaDescent

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 3)) * [2.0, 1.0, 0.5]


def plain(X, kernel, r, points, step, delay, center=True, meta=None):
    """The algorithm with functions as coefficients of all points, inner products by the Gram matrix."""
    K, D = kernel(X, points), kernel(points)
    inverse = np.linalg.inv(D)
    spans = (inverse @ K.T).T  # coefficients of each row, projected on the points
    basis = np.linalg.inv(np.linalg.cholesky(D))  # orthonormal functions, one after another
    W, V, mean = basis[:r].copy(), np.zeros((r, len(points))), np.zeros(len(points))
    eta, usual, eigenvalues, scores = np.full(r, 1.0 if meta is None else meta[0]), np.zeros(r), np.zeros(r), []
    for t, phi in enumerate(spans, start=1):
        mean = mean + (phi - mean) / t if center else mean
        x = phi - mean
        y = W @ D @ x
        scores.append(y)
        eigenvalues += max(1 / t, 0.001) * (y**2 - eigenvalues)
        new_W, new_V = W.copy(), V.copy()
        for c in range(r):
            rest = x - y[: c + 1] @ W[: c + 1]
            gradient = y[c] * rest if rest @ D @ rest > 1e-20 * x @ D @ x else 0.0 * rest
            if meta is not None:
                product = gradient @ D @ V[c]
                usual[c] += max(1 / t, 0.001) * (abs(product) - usual[c])
                if usual[c] > 0:
                    eta[c] = min(1.0, eta[c] * np.clip(1 + meta[1] * product / usual[c], 0.5, 2.0))
            size = (eta[c] if meta is not None else step.size(t)) * delay / (delay + t)
            below = eigenvalues[c] + size * y[c] ** 2
            gain = size / below if below > 1e-20 * x @ D @ x else 0.0
            length = np.sqrt(gradient @ D @ gradient)
            gain = min(gain, 0.5 / length) if length > 0 else 0.0
            if meta is not None:
                dy = V @ D @ x
                turn = -(dy[: c + 1] @ W[: c + 1] + y[: c + 1] @ V[: c + 1])
                new_V[c] = meta[2] * (V[c] + gain * (dy[c] * rest + y[c] * turn)) + gain * gradient
                new_V[c] /= max(1.0, np.sqrt(new_V[c] @ D @ new_V[c]))
            new_W[c] = W[c] + gain * gradient
        W, V = new_W, new_V
    return np.array(scores), W


@each("step, meta", [(Decaying(0.3, 50), None), (MetaDescent(0.1, 0.05, 0.9), (0.1, 0.05, 0.9))])
@each("center", [True, False])
def test_it_is_the_plain_loop_over_functions(step, meta, center):
    kernel, points = Gaussian(2.0), X[:12]
    model = KernelHebbian(3, kernel, step=step, delay=40.0, budget=12, tolerance=1e-9, center=center)
    model.partial_fit(points)  # all points are there from now on
    model._state = {**model._state, "t": 0, "mean": np.zeros(12), "components": np.eye(3, 12),
                    "traces": np.zeros((3, 12)),
                    "eigenvalues": np.zeros(3), "products": np.zeros(3), "steps": np.full(3, meta[0] if meta else 1.0)}
    scores = model.progressive(X[:200])
    expected, coefficients = plain(X[:200], kernel, 3, points, step, 40.0, center, meta)
    np.testing.assert_allclose(scores, expected, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(model.dual_coef_, coefficients, rtol=1e-5, atol=1e-6)
    model._check()


def test_it_finds_the_eigenvectors_of_a_linear_kernel():
    model = KernelHebbian(3, ok.Linear(), epochs=30).fit(X)
    values, vectors = np.linalg.eigh(np.cov(X.T, bias=True))
    directions = model.dual_coef_ @ model.support_vectors_
    np.testing.assert_allclose(np.abs(directions @ vectors[:, ::-1]), np.eye(3), atol=0.05)
    np.testing.assert_allclose(model.eigenvalues_, values[::-1], rtol=0.05)
    assert len(model.support_vectors_) == 3  # a row that others determine is no point


def test_without_delay_it_follows_a_change():
    """Columns that vary swap their roles."""
    stream = np.r_[X, X[:, ::-1], X[:, ::-1], X[:, ::-1]]
    directions = {}
    for delay in (10.0, None):
        model = KernelHebbian(1, ok.Linear(), step=0.02, delay=delay, center=False).fit(stream)
        directions[delay] = (model.dual_coef_ @ model.support_vectors_)[0]
    assert abs(directions[None][2]) > 0.9 > abs(directions[10.0][2])


def test_what_it_refuses_and_what_it_is_called():
    model = KernelHebbian(2, Gaussian(2.0), budget=20).partial_fit(X)
    assert model.get_feature_names_out().tolist() == ["kernelhebbian0", "kernelhebbian1"]
    np.testing.assert_array_equal(model.transform_one(X[3]), model.transform(X[3:4])[0])
    huge, before = np.vstack([X[:2], [[1e200, 0.0, 0.0]]]), model.dual_coef_
    cubic = KernelHebbian(2, ok.Polynomial(3))
    for call in (cubic.partial_fit, pickle.loads(pickle.dumps(cubic.partial_fit(X))).partial_fit, cubic.transform):
        with pytest.raises(ValueError, match="Row 2 of X .*too large"):
            call(huge)
    for wrong, words in ((model.set_params(n_components=3), "'n_components' parameter changed"),
                         (KernelHebbian(2, ok.RandomFourier(Gaussian())), "'kernel' parameter")):
        with pytest.raises(ValueError, match=words):
            wrong.partial_fit(X)
    np.testing.assert_array_equal(model.dual_coef_, before)
