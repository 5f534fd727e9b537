"""Kernels: Gram matrices against pair-by-pair definitions, arithmetic, numerics, objects."""
import numpy as np
import pytest

import onlinekernels as ok
from cases import each
import reference
from onlinekernels._core.formulas import vectorized
from onlinekernels.kernels import Custom
from test_oracle import GRAM, KERNELS, describe, shared_sign

RNG = np.random.default_rng(0)


def points(kernel, n, seed):
    rng = np.random.default_rng(seed)
    if isinstance(kernel, ok.Precomputed):
        return rng.integers(0, len(GRAM), size=(n, 1))
    return rng.normal(size=(n, 3))


@each("kernel", KERNELS, ids=repr)
def test_gram_and_diagonal_equal_the_definition(kernel):
    X, Z = points(kernel, 8, 1), points(kernel, 5, 2)
    if not isinstance(kernel, ok.Kernel):
        kernel = 1.0 * (kernel + ok.Constant(0.0))
    spec = describe(kernel)
    np.testing.assert_allclose(kernel(X, Z), reference.gram(spec, X, Z), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(kernel(X), reference.gram(spec, X, X, same=True), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(kernel.diagonal(X), kernel(X).diagonal(), rtol=1e-12)


@each("kernel", [k for k in KERNELS if isinstance(k, ok.Kernel)], ids=repr)
def test_gram_matrices_are_symmetric_and_positive_semidefinite(kernel):
    if "shared_sign" in repr(kernel):
        pytest.skip("not a positive semidefinite kernel")
    gram = kernel(points(kernel, 30, 3))
    np.testing.assert_allclose(gram, gram.T, rtol=1e-12, atol=1e-14)
    assert np.linalg.eigvalsh(gram).min() > -1e-9 * np.trace(gram)


@each("dtype, tolerance", [(np.float64, 1e-9), (np.float32, 2e-3)])
@each("offset", [0.0, 1e3, 1e6])
def test_a_large_offset_in_the_data_costs_no_digits(offset, dtype, tolerance):
    X = (RNG.integers(-64, 64, size=(60, 4)) / 16.0 + offset).astype(dtype)     # exact at every offset
    centred = X.astype(float) - offset
    y = RNG.choice([-1, 1], 60)
    near = ok.NORMA(ok.Hinge(), ok.Gaussian(1.0), step=0.4).progressive(centred, y)
    far = ok.NORMA(ok.Hinge(), ok.Gaussian(1.0), step=0.4).progressive(X, y)
    np.testing.assert_allclose(far, near, atol=tolerance)
    if dtype == np.float64:
        np.testing.assert_allclose(ok.Gaussian()(X), ok.Gaussian()(centred), atol=tolerance)


def test_a_gaussian_of_an_example_with_itself_is_exactly_one():
    X = RNG.normal(size=(50, 7)) * 1e5
    assert (ok.Gaussian(1e-3)(X).diagonal() == 1.0).all()
    assert (ok.Gaussian(3.0).diagonal(X) == 1.0).all()
    assert ok.Gaussian()(X).max() <= 1.0                # distances never fall below 0


def test_arithmetic_of_kernels():
    X = RNG.normal(size=(6, 2))
    a, b = ok.Gaussian(1.5), ok.Polynomial(2)
    np.testing.assert_allclose((a + b)(X), a(X) + b(X), rtol=1e-13)
    np.testing.assert_allclose((a * b)(X), a(X) * b(X), rtol=1e-13)
    np.testing.assert_allclose((2 * a + 3)(X), 2 * a(X) + 3, rtol=1e-13)
    np.testing.assert_allclose((1 + a * 0.5)(X), 1 + a(X) * 0.5, rtol=1e-13)
    np.testing.assert_allclose((a * (b + 1) * a)(X), a(X) * (b(X) + 1) * a(X), rtol=1e-13)
    np.testing.assert_allclose((a + shared_sign)(X), a(X) + Custom(shared_sign)(X), rtol=1e-13)
    assert repr(2.0 * (a + b)) == "2.0*(Gaussian(width=1.5) + Polynomial(degree=2))"
    assert (0.1 * ok.Linear()).linear_scale() == 0.1
    assert (2 * (3 * ok.Linear())).linear_scale() == 6.0
    assert (ok.Linear() + 1).linear_scale() is None
    with pytest.raises(TypeError):
        a + "b"


def test_one_matrix_product_serves_all_parts_of_a_kernel(monkeypatch):
    calls = []
    real = np.matmul
    monkeypatch.setattr(np, "matmul", lambda *args, **kwargs: calls.append(1) or real(*args, **kwargs))
    model = ok.NORMA(ok.Hinge(), ok.Gaussian(2) + 0.1 * ok.Linear() + ok.Polynomial(2) + ok.Constant())
    X, y = RNG.normal(size=(20, 3)), RNG.choice([-1, 1], 20)
    model.partial_fit(X, y, classes=[-1, 1])
    calls.clear()
    model.partial_fit(X[:8], y[:8])
    assert len(calls) == 2                              # with the terms, and of the piece with itself


def test_normalized_is_zero_where_the_kernel_of_an_example_with_itself_is():
    X = np.array([[0.0, 0.0], [1.0, 2.0]])
    for kernel in (ok.Normalized(ok.Linear()), ok.Normalized(lambda x, z: float(np.dot(x, z)))):
        assert np.allclose(kernel(X), [[0.0, 0.0], [0.0, 1.0]])


def test_an_example_without_length_makes_no_term():
    model = ok.NORMA(ok.Hinge(), ok.Linear(), budget=10).partial_fit([[0.0, 0.0], [1.0, 0.0]], [1, -1])
    assert model.n_terms_ == 1


@each("kernel", [ok.Gaussian(4.0), ok.Polynomial(3, 0.1), ok.Laplacian(0.2), ok.Linear(),
                 ok.Gaussian(4.0) + 0.1 * ok.Linear()], ids=repr)
@each("chunk", [1, 64])
def test_single_precision_stays_within_its_documented_tolerance(kernel, chunk):
    X, y = RNG.normal(size=(400, 16)).astype(np.float32), RNG.normal(size=400)
    narrow = ok.NORMA(ok.Huber(), kernel, step=0.05, budget=100)
    wide = ok.NORMA(ok.Huber(), kernel, step=0.05, budget=100)
    for start in range(0, 400, chunk):
        part = slice(start, start + chunk)
        scores = narrow.progressive(X[part], y[part]), wide.progressive(X[part].astype(float), y[part])
        np.testing.assert_allclose(*scores, atol=2e-4)
    assert narrow.support_vectors_.dtype == np.float32
    assert narrow.predict(X).dtype == np.float64


def test_objects_of_any_kind():
    words = ["kernel", "colonel", "cornel", "banana", "bandana", "cabana"]
    shared = lambda a, b: len(set(a) & set(b)) / len(set(a) | set(b))
    model = ok.NORMA(ok.Hinge(), shared, step=0.5, epochs=20).fit(words, ["k", "k", "k", "b", "b", "b"])
    assert model.predict(["kernels", "bananas"]).tolist() == ["k", "b"]
    sets = ok.NORMA(ok.Hinge(), lambda a, b: len(a & b)).fit([{1, 2}, {3}], [1, -1])
    assert sets.support_vectors_ == [{1, 2}, {3}]


def test_a_kernel_subclass_may_compute_rows():
    class Tanimoto(ok.Kernel):
        def __init__(self):
            pass

        def pair(self, x, z):
            return float(np.minimum(x, z).sum() / np.maximum(x, z).sum())

        def row(self, x, points):
            return np.array([np.minimum(x, z).sum() / np.maximum(x, z).sum() for z in points])

    X, y = np.abs(RNG.normal(size=(50, 4))), RNG.choice([-1, 1], 50)
    by_class = ok.NORMA(ok.Hinge(), Tanimoto(), budget=10).progressive(X, y)
    by_function = ok.NORMA(ok.Hinge(), Tanimoto().pair, budget=10).progressive(X, y)
    np.testing.assert_array_equal(by_class, by_function)


class TestExp:
    def test_within_two_units_in_the_last_place_of_libm(self):
        x = np.concatenate([np.linspace(-708.39, 709.78, 400_001), RNG.uniform(-1, 1, 100_000), RNG.normal(size=1000) * 1e-9])
        expected = np.exp(x.astype(np.longdouble)).astype(float)
        assert (np.abs(vectorized.exp(x) - expected) <= 2 * np.spacing(expected)).all()

    def test_ends_of_the_range(self):
        x = [0.0, -0.0, -np.inf, np.inf, 710.0, -745.0, -708.4, np.nan]
        np.testing.assert_array_equal(vectorized.exp(x), [1.0, 1.0, 0.0, np.inf, np.inf, 0.0, 0.0, np.nan])

    @each("n", range(40))
    def test_every_length(self, n):
        x = np.linspace(-5, 0, n)
        np.testing.assert_allclose(vectorized.exp(x), np.exp(x), rtol=5e-16)

    def test_all_finite_sees_every_place(self):
        for dtype in (np.float64, np.float32):
            for n in range(1, 40):
                x = np.ones(n, dtype)
                assert vectorized.all_finite(x)
                for bad in (np.nan, np.inf, -np.inf):
                    for i in range(n):
                        y = x.copy()
                        y[i] = bad
                        assert not vectorized.all_finite(y)


def test_models_far_from_the_origin_know_inner_products():
    """Points are kept relative to an origin near them; a linear part feels it if that is not added again."""
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(40, 2)) + 1000.0, rng.normal(size=40)
    model = ok.NORMA("squared", ok.Gaussian(0.7) + 1e-6 * ok.Linear(), step=0.1, regularization=0.01)
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / (2 * 0.7**2)) + 1e-6 * X @ X.T
    alpha, expected = np.zeros(40), []
    for t in range(40):
        expected.append(alpha @ K[t])
        alpha *= 1 - 0.1 * 0.01
        alpha[t] = -0.1 * (expected[-1] - y[t])
    np.testing.assert_allclose(model.progressive(X, y), expected, rtol=1e-6)
    np.testing.assert_allclose(model.predict(X), K @ alpha, rtol=1e-6)


def test_far_from_the_origin_kernels_on_inner_products_know_k_of_x_and_x():
    """Beside a Gaussian an origin is chosen, and k(x, x) is put together from what lies about it."""
    def plain(x, z):
        return float(np.exp(-0.5 * np.sum((x - z) ** 2)) + 0.01 * (x @ z) + 1e-6 * (x @ z + 1.0) ** 2)

    rng = np.random.default_rng(0)
    X, y = 100.0 + rng.normal(size=(60, 2)), rng.choice([-1, 1], 60)
    kernel = ok.Gaussian(1.0) + 0.01 * ok.Linear() + 1e-6 * ok.Polynomial(2)
    for make in (lambda k: ok.PassiveAggressive("hinge", k, variant="PA"), lambda k: ok.SILK("squared", k, step=0.1)):
        built_in, own = make(kernel), make(plain)
        np.testing.assert_allclose(built_in.progressive(X, y), own.progressive(X, y), rtol=0, atol=1e-7)
