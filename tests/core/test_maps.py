"""Feature maps, against features in plain NumPy and against the kernels that they stand for."""
import copy

import numpy as np
import pytest
from cases import each

import onlinekernels as ok
from onlinekernels.kernels.maps import feature_map

RNG = np.random.default_rng(7)
X = RNG.normal(size=(160, 4))
X[40:50] = X[5:15]  # rows that come again
SIGNS = np.where(X[:, 0] * X[:, 1] + 0.3 * RNG.normal(size=160) > 0, 1, -1)
NUMBERS = np.sin(2 * X[:, 0]) + 0.1 * RNG.normal(size=160)
CLASSES = np.array(["a", "b", "c"])[RNG.integers(0, 3, size=160)]

LEARNERS = {
    "norma": lambda kernel: (ok.NORMA("hinge", kernel, step=0.3, regularization=0.01, offset=False), SIGNS),
    "average": lambda kernel: (ok.NORMA("squared", kernel, step=0.1, average=True, offset=True), NUMBERS),
    "fading": lambda kernel: (ok.NORMA("logistic", kernel, step=0.5, regularization=1.9, offset=False), SIGNS),
    "silk": lambda kernel: (ok.SILK("hinge", kernel, regularization=0.05, step=1.0, budget=None, offset=False), SIGNS),
    "classes": lambda kernel: (ok.ILK("multiclass_hinge", kernel, regularization=0.05, exact=True, offset=False),
                               CLASSES),
    "softmax": lambda kernel: (ok.NORMA("multiclass_logistic", kernel, step=0.2, offset=False), CLASSES),
    "svmd": lambda kernel: (ok.SVMD("squared", kernel, step=0.1, budget=None, offset=False), NUMBERS),
    "svmd pairs": lambda kernel: (ok.SVMD("nu_multiclass_hinge", kernel, budget=None, offset=True), CLASSES),
    "projection": lambda kernel: (ok.Projection("insensitive", kernel, radius=3.0, offset=False), NUMBERS),
    "aggressive": lambda kernel: (ok.PassiveAggressive("hinge", kernel, penalty=0.5, offset=False), SIGNS),
    "romma": lambda kernel: (ok.ROMMA(kernel), SIGNS),
    "novelty": lambda kernel: (ok.SILK("nunovelty", kernel, budget=None, regularization=0.01), None),
    "targets": lambda kernel: (ok.NORMA("squared", kernel, step=0.1, offset=False),
                               np.column_stack([NUMBERS, -NUMBERS, X[:, 1]])),
}


def fourier_features(X, kernel, size, seed=0):
    """Rahimi and Recht: cosines and sines of frequencies whose law is the kernel's Fourier transform."""
    rng, n = np.random.default_rng(seed), size // 2
    if isinstance(kernel, ok.Gaussian):
        frequencies = rng.standard_normal((X.shape[1], n)) / kernel.width
    else:
        frequencies = rng.standard_cauchy((X.shape[1], n)) * kernel.rate
    return np.hstack([np.cos(X @ frequencies), np.sin(X @ frequencies)]) / np.sqrt(n)


def landmarks_of(X, size):
    """The first `size` distinct rows."""
    found = []
    for row in X:
        if len(found) < size and not any((row == other).all() for other in found):
            found.append(row)
    return np.array(found)


def nystroem_features(X, kernel, size, D=None):
    """L^-1 k(D, x), K_DD = L L^T."""
    D = landmarks_of(X, size) if D is None else D
    return np.linalg.solve(np.linalg.cholesky(kernel(D)), kernel(D, X)).T


def learn(model, X, y, rows):
    """Progressive scores in chunks of so many rows."""
    classes = np.unique(y) if y is not None and y.dtype.kind == "U" else None
    parts = [model.progressive(X[i : i + rows], None if y is None else y[i : i + rows], classes=classes)
             for i in range(0, len(X), rows)]
    return np.concatenate(parts)


MAPS = {
    "gaussian": (
        ok.RandomFourier(ok.Gaussian(1.5), 40, seed=3), lambda X: fourier_features(X, ok.Gaussian(1.5), 40, 3)),
    "laplacian": (ok.RandomFourier(ok.Laplacian(0.4), 24), lambda X: fourier_features(X, ok.Laplacian(0.4), 24)),
    "nystroem": (ok.Nystroem(ok.Gaussian(1.0), 30), lambda X: nystroem_features(X, ok.Gaussian(1.0), 30)),
    "nystroem laplacian": (ok.Nystroem("laplacian", 20), lambda X: nystroem_features(X, ok.Laplacian(), 20)),
    "sum": (
        (ok.Constant(0.5) + 2.0 * ok.RandomFourier("gaussian", 16) + 0.1 * ok.Linear()
         + ok.Nystroem(ok.Laplacian(0.5), 12)),
        lambda X: np.hstack([
            np.full((len(X), 1), np.sqrt(0.5)),
            np.sqrt(2.0) * fourier_features(X, ok.Gaussian(), 16),
            np.sqrt(0.1) * X,
            nystroem_features(X, ok.Laplacian(0.5), 12),
        ]),
    ),
    "two landmark sets": (
        ok.Nystroem(ok.Gaussian(0.7), 9) + 0.5 * ok.Nystroem(ok.Gaussian(2.0) + 0.2 * ok.Laplacian(), 21),
        lambda X: np.hstack([
            nystroem_features(X, ok.Gaussian(0.7), 9),
            np.sqrt(0.5) * nystroem_features(X, ok.Gaussian(2.0) + 0.2 * ok.Laplacian(), 21),
        ]),
    ),
}


class TestFeatures:
    @each("largest", [1.0, 1e3, 9e5, 1e7, 1e12])
    def test_cosines_and_sines_of_large_phases(self, largest):
        phases = np.random.default_rng(0).uniform(-largest, largest, size=(500, 1))
        part = {"map": "fourier", "law": "gaussian", "rate": 1.0, "size": 8, "seed": 0, "scale": 4.0}
        features = feature_map([part], 1, False)
        products = phases * features.frequencies
        np.testing.assert_allclose(features(phases), np.hstack([np.cos(products), np.sin(products)]), rtol=0,
                                   atol=4e-16)


@each("name", MAPS)
@each("learner", LEARNERS)
def test_a_map_is_a_linear_kernel_on_features(learner, name):
    """One row at a time, in chunks, and in one call: the scores of a linear model that is given the features."""
    kernel, features = MAPS[name]
    model, y = LEARNERS[learner](kernel)
    oracle, _ = LEARNERS[learner](ok.Linear())
    expected = learn(oracle, features(X), y, 1)
    tolerance = 1e-9 * max(1.0, np.abs(expected).max())
    for rows in (1, 7, len(X)):
        scores = learn(copy.deepcopy(model), X, y, rows)
        np.testing.assert_allclose(scores, expected, rtol=0, atol=tolerance)
    model = model.partial_fit(X, y)
    oracle = LEARNERS[learner](ok.Linear())[0].partial_fit(features(X), y)
    np.testing.assert_allclose(model.norm_, oracle.norm_, rtol=1e-8)
    np.testing.assert_allclose(model.coef_, oracle.coef_, rtol=0, atol=1e-8 * max(1.0, np.abs(oracle.coef_).max()))
    model._state.engine._check()


class TestNystroem:
    @each("base", [ok.Gaussian(1.0), ok.Gaussian(6.0), ok.Laplacian(0.5), ok.Polynomial(3, scale=0.1), ok.Linear(),
                   ok.Gaussian() + 0.2 * ok.Linear() + ok.Constant(), ok.Normalized(ok.Polynomial(2)),
                   ok.AdditiveExponential(), ok.Gaussian(1.0) + ok.Noise(0.3)], ids=repr)
    @each("learner", LEARNERS)
    def test_with_as_many_points_as_rows_it_is_exact(self, learner, base):
        if learner == "romma" and isinstance(base, ok.Linear):
            pytest.skip("nothing separates these examples, and ROMMA grows until rounding shows")
        model, y = LEARNERS[learner](ok.Nystroem(base, len(X)))
        exact, _ = LEARNERS[learner](base)
        scores, expected = learn(model, X, y, 50), learn(exact, X, y, 50)
        scale = max(1.0, np.abs(expected).max())
        np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-8 * scale)
        at = X[:20] + 0.1
        ask = "decision_function" if hasattr(model, "decision_function") else "predict"
        np.testing.assert_allclose(getattr(model, ask)(at), getattr(exact, ask)(at), rtol=0, atol=1e-8 * scale)
        np.testing.assert_allclose(model.norm_, exact.norm_, rtol=1e-7)

    def test_what_is_not_learned_is_no_landmark(self):
        class Fails(ok.Loss):
            task = "regression"

            def __init__(self):
                self.left = 5

            def __deepcopy__(self, memo):
                return self

            def derivative(self, score, y):
                self.left -= 1
                if self.left < 0:
                    raise RuntimeError("enough")
                return score - y

        model = ok.NORMA(Fails(), ok.Nystroem("gaussian", 20), step=0.1)
        with pytest.raises(RuntimeError):
            model.partial_fit(X, NUMBERS)
        assert model.t_ == 5 and model.n_terms_ == 5
        model._state.engine._check()
        with pytest.raises(ValueError):
            model.partial_fit(np.full((1, 4), np.nan), [1.0])
        with pytest.raises(FloatingPointError):
            ok.NORMA("squared", ok.Nystroem("gaussian", 20)).partial_fit(np.full((1, 4), 1e200), [1.0])
        assert model.n_terms_ == 5


def test_a_file_with_other_frequencies_is_refused():
    model = ok.NORMA("hinge", ok.RandomFourier("gaussian", 10)).partial_fit(X, SIGNS)
    learned = model._state.to_dict()
    learned["learned"]["map0.frequency"] = learned["learned"]["map0.frequency"] + 1e-9
    with pytest.raises(ValueError, match="seed"):
        type(model._state).from_dict(learned)


@each("kernel, fill", [(ok.RandomFourier("gaussian", 20), 0.0),
                       (ok.RandomFourier("laplacian", 20), 2.5),
                       (ok.Nystroem("gaussian", 15), 2.5), (ok.Nystroem("gaussian", 500), 0.0),
                       (ok.Linear() + ok.RandomFourier("gaussian", 8) + ok.Nystroem("laplacian", 9), 0.0)],
      ids=repr)
def test_more_features_later(kernel, fill):
    """The function stays as it is where new columns hold what all examples had there."""
    model = ok.NORMA("hinge", kernel).partial_fit(X[:80, :2], SIGNS[:80])
    wider = copy.deepcopy(model)
    wider._state = model._state.widened(5, fill)
    rows = np.hstack([X[:, :2], np.full((160, 3), fill)])
    np.testing.assert_allclose(wider.decision_function(rows), model.decision_function(X[:, :2]), atol=1e-12)
    twin = ok.NORMA("hinge", kernel).partial_fit(np.hstack([X[:80, :2], np.full((80, 3), fill)]), SIGNS[:80])
    new = RNG.normal(size=(10, 5))
    np.testing.assert_allclose(wider.partial_fit(new, SIGNS[:10]).decision_function(new),
                               twin.partial_fit(new, SIGNS[:10]).decision_function(new), atol=1e-9)
