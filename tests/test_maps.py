"""Feature maps, against features in plain NumPy and against the kernels that they stand for."""
import copy

import numpy as np
import pytest
from cases import each

import onlinekernels as ok
from onlinekernels.kernels.maps import feature_map

scipy_sparse = pytest.importorskip("scipy.sparse")

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
    "classes": lambda kernel: (ok.ILK("multiclass_hinge", kernel, regularization=0.05, exact=True, offset=False), CLASSES),
    "softmax": lambda kernel: (ok.NORMA("multiclass_logistic", kernel, step=0.2, offset=False), CLASSES),
    "svmd": lambda kernel: (ok.SVMD("squared", kernel, step=0.1, budget=None, offset=False), NUMBERS),
    "svmd pairs": lambda kernel: (ok.SVMD("nu_multiclass_hinge", kernel, budget=None, offset=True), CLASSES),
    "projection": lambda kernel: (ok.Projection("insensitive", kernel, radius=3.0, offset=False), NUMBERS),
    "aggressive": lambda kernel: (ok.PassiveAggressive("hinge", kernel, penalty=0.5, offset=False), SIGNS),
    "romma": lambda kernel: (ok.ROMMA(kernel), SIGNS),
    "novelty": lambda kernel: (ok.SILK("nunovelty", kernel, budget=None, regularization=0.01), None),
    "targets": lambda kernel: (ok.NORMA("squared", kernel, step=0.1, offset=False), np.column_stack([NUMBERS, -NUMBERS, X[:, 1]])),
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
    @each("base", [ok.Gaussian(0.8), ok.Laplacian(1.3), "gaussian"], ids=repr)
    def test_gram_of_random_fourier_features(self, base):
        kernel = ok.RandomFourier(base, 30, seed=5)
        base = ok.Gaussian() if base == "gaussian" else base
        phi, psi = fourier_features(X, base, 30, 5), fourier_features(X[:7], base, 30, 5)
        np.testing.assert_allclose(kernel(X, X[:7]), phi @ psi.T, rtol=0, atol=1e-14)
        np.testing.assert_allclose(kernel(X), phi @ phi.T, rtol=0, atol=1e-14)
        np.testing.assert_allclose(kernel.diagonal(X), 1.0, rtol=1e-14)
        assert kernel.pair(X[0], X[1]) == pytest.approx(phi[0] @ phi[1], abs=1e-14)
        sparse = scipy_sparse.csr_array(X)
        np.testing.assert_allclose(kernel(sparse, sparse[:7]), phi @ psi.T, rtol=0, atol=1e-14)

    def test_gram_of_sums_products_and_normalized(self):
        fourier, linear = ok.RandomFourier("laplacian", 10), ok.Linear()
        one, two = fourier(X), linear(X)
        np.testing.assert_allclose((2 * fourier + linear)(X), 2 * one + two, rtol=1e-13, atol=1e-13)
        product = fourier * linear + ok.Gaussian()
        np.testing.assert_allclose(product(X), one * two + ok.Gaussian()(X), rtol=1e-13, atol=1e-13)
        whole = 2 * one + two
        sizes = np.sqrt(np.diag(whole))
        np.testing.assert_allclose(ok.Normalized(2 * fourier + linear)(X), whole / np.outer(sizes, sizes), atol=1e-13)
        np.testing.assert_allclose((2 * fourier + linear).diagonal(X), np.diag(whole))

    def test_before_a_stream_nystroem_is_the_kernel_itself(self):
        base = ok.Gaussian(0.6) + 0.1 * ok.Linear()
        np.testing.assert_array_equal(ok.Nystroem(base, 5)(X, X[:9]), base(X, X[:9]))
        np.testing.assert_array_equal(ok.Nystroem(base, 5).diagonal(X), base.diagonal(X))

    def test_error_falls_like_one_over_the_root_of_size(self):
        exact = ok.Gaussian(1.0)(X)
        sizes = [64, 256, 1024, 4096]
        errors = [np.mean([np.sqrt(np.mean((ok.RandomFourier(ok.Gaussian(1.0), size, seed)(X) - exact) ** 2))
                           for seed in range(10)]) for size in sizes]
        slope = np.polyfit(np.log(sizes), np.log(errors), 1)[0]
        assert -0.6 < slope < -0.4
        assert errors[-1] < 0.03

    def test_models_converge_like_one_over_the_root_of_size(self):
        def scores(kernel):
            return ok.NORMA("squared", kernel, step=0.2).partial_fit(X[:100], NUMBERS[:100]).predict(X[100:])
        exact, sizes = scores(ok.Gaussian(1.0)), [64, 256, 1024, 4096]
        errors = [np.mean([np.sqrt(np.mean((scores(ok.RandomFourier(ok.Gaussian(1.0), size, seed)) - exact) ** 2))
                           for seed in range(10)]) for size in sizes]
        assert -0.65 < np.polyfit(np.log(sizes), np.log(errors), 1)[0] < -0.35

    @each("largest", [1.0, 1e3, 9e5, 1e7, 1e12])
    def test_cosines_and_sines_of_large_phases(self, largest):
        phases = np.random.default_rng(0).uniform(-largest, largest, size=(500, 1))
        part = {"map": "fourier", "law": "gaussian", "rate": 1.0, "size": 8, "seed": 0, "scale": 4.0}
        features = feature_map([part], 1, False)
        products = phases * features.frequencies
        np.testing.assert_allclose(features(phases), np.hstack([np.cos(products), np.sin(products)]), rtol=0, atol=4e-16)

    def test_far_from_the_origin(self):
        far = X + 1e6
        for kernel, y in ((ok.Nystroem(ok.Gaussian(1.0), 500), SIGNS), (ok.Nystroem(ok.Gaussian(1.0), 20), SIGNS)):
            here, there = (ok.NORMA("hinge", kernel).progressive(rows, y) for rows in (X, far))
            np.testing.assert_allclose(there, here, atol=1e-6)


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
    @each("base", [ok.Gaussian(1.0), ok.Gaussian(6.0), ok.Laplacian(0.5),
                   ok.Polynomial(3, scale=0.1),
                   ok.Linear(), ok.Gaussian() + 0.2 * ok.Linear() + ok.Constant(), ok.Normalized(ok.Polynomial(2)),
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

    def test_until_it_is_full_it_has_terms(self):
        kernel = ok.Gaussian(1.0) + 0.1 * ok.Linear()
        model = ok.NORMA("hinge", 2.0 * ok.Nystroem(kernel, 60), step=0.3).partial_fit(X[:60], SIGNS[:60])
        assert model.n_terms_ == 50
        np.testing.assert_array_equal(model.support_vectors_, landmarks_of(X[:60], 60))
        at = X[60:70]
        expected = 2.0 * (model.dual_coef_ @ kernel(model.support_vectors_, at))[0]
        np.testing.assert_allclose(model.decision_function(at), expected, atol=1e-10)
        assert sum(part.value for part in model.contributions(at[0], top=None)) == pytest.approx(expected[0], abs=1e-10)
        model.partial_fit(X[60:], SIGNS[60:])
        for name in ("support_vectors_", "dual_coef_"):
            with pytest.raises(AttributeError, match="weights over features"):
                getattr(model, name)
        assert model.n_terms_ == 0 and model.coef_.shape == (1, 60)

    def test_landmarks_that_others_span_are_given_up(self):
        """Copies of rows with dust on them: the features stay tame, and f hardly moves."""
        rows = np.vstack([X[:10], X[:10] + 1e-6, X[20:40]])
        y = SIGNS[:40]
        model = ok.NORMA("squared", ok.Nystroem(ok.Gaussian(1.0), 20), step=0.2, regularization=0.0)
        model.partial_fit(rows[:20], y[:20])
        before = model.predict(X)
        assert model.n_terms_ > 10
        model.partial_fit(rows[20:21], y[20:21], sample_weight=[0.0])
        fixed = model._state.function.map
        assert fixed.inverse is not None and fixed.factor.n == 10
        assert np.abs(fixed.inverse).max() < 1e6
        np.testing.assert_allclose(model.predict(X), before, atol=1e-5)
        model.partial_fit(rows[21:], y[21:])
        model._state.engine._check()

    def test_a_kernel_of_few_dimensions_never_fills_it(self):
        model = ok.NORMA("squared", ok.Nystroem("linear", 50), step=0.05).partial_fit(X, NUMBERS)
        linear = ok.NORMA("squared", "linear", step=0.05, offset=False).partial_fit(X, NUMBERS)
        assert model.n_terms_ == 4
        np.testing.assert_allclose(model.predict(X), linear.predict(X), atol=1e-12)

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

    def test_rows_of_weight_zero_that_are_left_out_are_no_landmarks(self):
        model = ok.ROMMA(ok.Nystroem("gaussian", 20))
        model.partial_fit(X[:4], SIGNS[:4], sample_weight=[1, 0, 1, 0], classes=[-1, 1])
        np.testing.assert_array_equal(model.support_vectors_, X[[0, 2]])


@each("kernel", [kernel for kernel, _ in MAPS.values()] + [ok.Normalized(MAPS["sum"][0])], ids=repr)
class TestContinuing:

    def test_initial(self, kernel):
        first = ok.NORMA("hinge", kernel).partial_fit(X[:25], SIGNS[:25])
        second = ok.NORMA("hinge", kernel).partial_fit(X[25:26], SIGNS[25:26], classes=[-1, 1], initial=first)
        expected = copy.deepcopy(first).partial_fit(X[25:26], SIGNS[25:26])
        np.testing.assert_allclose(second.decision_function(X), expected.decision_function(X), atol=1e-12)

    def test_sparse_rows(self, kernel):
        if not kernel.on_inner_products():
            with pytest.raises(TypeError, match="dense"):
                ok.NORMA("hinge", kernel).partial_fit(scipy_sparse.csr_array(X), SIGNS)
            return
        rows = np.where(np.abs(X) > 0.6, X, 0.0)
        dense = ok.NORMA("hinge", kernel).partial_fit(rows, SIGNS)
        for chunk in (1, 30, 160):
            sparse = ok.NORMA("hinge", kernel)
            for i in range(0, 160, chunk):
                part = scipy_sparse.csr_array(rows[i : i + chunk])
                sparse.partial_fit(part, SIGNS[i : i + chunk], classes=[-1, 1])
            np.testing.assert_allclose(sparse.coef_, dense.coef_, atol=1e-9)
            scores = sparse.decision_function(scipy_sparse.csr_array(rows))
            np.testing.assert_allclose(scores, dense.decision_function(rows), atol=1e-9)

    def test_scaled_rows(self, kernel):
        model = ok.NORMA("hinge", kernel, scale=True)
        scores = model.progressive(100 * X + 7, SIGNS)
        scaler, scaled = ok.RunningScaler(), []
        for row in 100 * X + 7:
            scaled.append(scaler.partial_fit(row[None]).transform(row[None])[0])
        expected = ok.NORMA("hinge", kernel).progressive(np.array(scaled), SIGNS)
        np.testing.assert_allclose(scores, expected, atol=1e-9)

    def test_single_precision(self, kernel):
        rows = X.astype(np.float32)
        exact = ok.NORMA("logistic", kernel, step=0.2).progressive(rows.astype(float), SIGNS)
        for chunk in (1, 20, 160):
            model = ok.NORMA("logistic", kernel, step=0.2)
            np.testing.assert_allclose(learn(model, rows, SIGNS, chunk), exact, atol=2e-3)
            assert model._state.function.dtype == np.float32

    def test_any_budget_is_none(self, kernel):
        without, under = ok.NORMA("hinge", kernel), ok.NORMA("hinge", kernel, budget=3)
        np.testing.assert_array_equal(without.progressive(X, SIGNS), under.progressive(X, SIGNS))

    def test_alma_normalizes_features(self, kernel):
        model = ok.ALMA(kernel).partial_fit(X, SIGNS)
        assert model.norm_ <= 1 + 1e-9
        assert model.score(X, SIGNS) > 0.6


def test_initial_of_another_precision_or_kind_of_rows():
    kernel = ok.Nystroem("gaussian", 20) + ok.Linear()
    first = ok.NORMA("hinge", kernel).partial_fit(X[:50].astype(np.float32), SIGNS[:50])
    second = ok.NORMA("hinge", kernel)
    second.partial_fit(X[50:51], SIGNS[50:51], classes=[-1, 1], initial=first, sample_weight=[0.0])
    np.testing.assert_allclose(second.decision_function(X), first.decision_function(X), atol=1e-3)
    with pytest.raises(ValueError, match="kind of rows"):
        ok.NORMA("hinge", kernel).partial_fit(scipy_sparse.csr_array(X), SIGNS, initial=first)


def test_combine():
    fourier = [ok.NORMA("hinge", ok.RandomFourier("gaussian", 20)).partial_fit(X[i::2], SIGNS[i::2]) for i in range(2)]
    whole = ok.combine(fourier)
    mean = np.mean([model.decision_function(X) for model in fourier], axis=0)
    np.testing.assert_allclose(whole.decision_function(X), mean, atol=1e-12)
    start = ok.NORMA("hinge", ok.Nystroem("gaussian", 20)).partial_fit(X[:25], SIGNS[:25])
    rest = [slice(25 + i, None, 2) for i in range(2)]
    parts = [ok.NORMA("hinge", ok.Nystroem("gaussian", 20)).partial_fit(X[i], SIGNS[i], initial=start) for i in rest]
    mean = np.average([model.decision_function(X) for model in parts], axis=0, weights=[68, 67])
    np.testing.assert_allclose(ok.combine(parts).decision_function(X), mean, atol=1e-12)
    apart = [ok.NORMA("hinge", ok.Nystroem("gaussian", 20)).partial_fit(X[i::2], SIGNS[i::2]) for i in range(2)]
    with pytest.raises(ValueError, match="landmarks"):
        ok.combine(apart)


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


@each("kernel, words", [
    (ok.RandomFourier("linear"), "Gaussian or a Laplacian"),
    (ok.RandomFourier(None), "'kernel'"),
    (ok.RandomFourier("gaussian", 7), "even number"),
    (ok.RandomFourier("gaussian", 0), "at least 2"),
    (ok.RandomFourier("gaussian", seed=-1), "'seed'"),
    (ok.RandomFourier(ok.Gaussian(-1)), "'width'"),
    (ok.Nystroem("gaussian", 0), "'size'"),
    (ok.Nystroem(lambda x, z: 1.0), "built-in"),
    (ok.Nystroem(ok.RandomFourier("gaussian")), "no feature map"),
    (ok.RandomFourier("gaussian") + ok.Gaussian(), "no feature map as a whole"),
    (ok.RandomFourier("gaussian") * ok.Linear(), "no feature map as a whole"),
    (ok.Nystroem("gaussian") + ok.Noise(), "no feature map as a whole"),
    (0.0 * ok.RandomFourier("gaussian"), "no feature map as a whole"),
], ids=repr)
def test_what_makes_no_sense_is_refused(kernel, words):
    with pytest.raises(ValueError, match=words):
        ok.NORMA("hinge", kernel).partial_fit(X, SIGNS)


@each("model", [ok.VotedPerceptron(ok.RandomFourier("gaussian")),
                ok.Adatron(ok.Nystroem("gaussian"))], ids=repr)
def test_algorithms_that_keep_their_examples(model):
    with pytest.raises(ValueError, match="feature map"):
        model.fit(X, SIGNS)


def test_a_file_with_other_frequencies_is_refused():
    model = ok.NORMA("hinge", ok.RandomFourier("gaussian", 10)).partial_fit(X, SIGNS)
    learned = model._state.to_dict()
    learned["learned"]["map0.frequency"] = learned["learned"]["map0.frequency"] + 1e-9
    with pytest.raises(ValueError, match="seed"):
        type(model._state).from_dict(learned)


def test_a_file_with_landmarks_where_the_kernel_is_not_defined_is_refused():
    gram = ok.Gaussian()(X[:20])
    model = ok.NORMA("hinge", ok.Nystroem(ok.Precomputed(gram), 8)).partial_fit(np.arange(20)[:, None], SIGNS[:20])
    exact = ok.NORMA("hinge", ok.Nystroem("gaussian", 8)).partial_fit(X[:20], SIGNS[:20])
    np.testing.assert_allclose(model.coef_, exact.coef_, atol=1e-10)
    learned = model._state.to_dict()
    learned["learned"]["map0.points"] = learned["learned"]["map0.points"] + 100.0
    with pytest.raises(ValueError, match="indices"):
        type(model._state).from_dict(learned)
