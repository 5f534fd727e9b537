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


def test_normalized_is_zero_where_the_kernel_of_an_example_with_itself_is():
    X = np.array([[0.0, 0.0], [1.0, 2.0]])
    for kernel in (ok.Normalized(ok.Linear()), ok.Normalized(lambda x, z: float(np.dot(x, z)))):
        assert np.allclose(kernel(X), [[0.0, 0.0], [0.0, 1.0]])


class TestExp:
    def test_within_two_units_in_the_last_place_of_libm(self):
        x = np.concatenate([np.linspace(-708.39, 709.78, 400_001), RNG.uniform(-1, 1, 100_000),
                            RNG.normal(size=1000) * 1e-9])
        expected = np.exp(x.astype(np.longdouble)).astype(float)
        assert (np.abs(vectorized.exp(x) - expected) <= 2 * np.spacing(expected)).all()

    def test_ends_of_the_range(self):
        x = [0.0, -0.0, -np.inf, np.inf, 710.0, -745.0, -708.4, np.nan]
        np.testing.assert_array_equal(vectorized.exp(x), [1.0, 1.0, 0.0, np.inf, np.inf, 0.0, 0.0, np.nan])

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
