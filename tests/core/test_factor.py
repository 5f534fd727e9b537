"""The Cholesky factor against NumPy, of all sizes that its loops treat differently."""
import numpy as np
import pytest
from onlinekernels._core.linalg import Factor, covariances, judged, matmul
from onlinekernels._core.schema import lower_triangular

RNG = np.random.default_rng(11)


def test_products_in_parts_are_numpys():
    """Below, between and beyond the sizes that are cut, also into a part of an array."""
    for n, k, m in ((60, 60, 60), (129, 60, 1003), (3, 128, 4099), (500, 1, 1025), (500, 7, 900), (129, 129, 70)):
        left, right = RNG.normal(size=(n, k)), RNG.normal(size=(m, k)).T
        out = np.full((n, m + 5), np.nan)
        matmul(left, right, out[:, :m])
        np.testing.assert_allclose(out[:, :m], left @ right, rtol=1e-12, atol=1e-12)
        assert np.isnan(out[:, m:]).all()


def test_its_solves_are_numpys():
    for n in (*range(12), 15, 16, 17, 35, 300):
        lower = np.tril(RNG.normal(size=(n, n)), -1) / max(1.0, n / 12) + np.diag(RNG.uniform(1, 3, n))
        factor = Factor(n + n % 3)
        factor.load(lower)
        np.testing.assert_allclose(factor.gram(), lower @ lower.T, rtol=1e-13)
        np.testing.assert_allclose(factor.inverse(), np.linalg.inv(lower), atol=1e-13)
        for m in (0, 1, 3, 4, 9, 16, 21):
            rows, columns = RNG.normal(size=(m, n)), RNG.normal(size=(n, m))
            solved, below, above = rows.copy(), columns.copy(), columns.copy()
            factor.solve_into(solved)
            factor.solve_columns_into(below)
            factor.solve_transposed_into(above)
            np.testing.assert_allclose(solved, np.linalg.solve(lower, rows.T).T, atol=1e-13)
            np.testing.assert_allclose(below, np.linalg.solve(lower, columns), atol=1e-13)
            np.testing.assert_allclose(above, np.linalg.solve(lower.T, columns), atol=1e-13)
        factor._check()


def test_decompositions_are_numpys():
    """Seen by the evidence of a covariance, of which the diagonal of the factor is all that counts where targets are 0;
    and the targets if they are not."""
    for n in (1, 5, 16, 17, 49, 130, 300):
        Z, times = RNG.normal(size=(2, n)), np.arange(n, dtype=float)
        for Y in (np.zeros((n, 1)), RNG.normal(size=(n, 2))):
            value, _ = judged(Z, Y, times, np.ones(n), 1.0, 0.1, 0.01)
            gram = covariances(Z, times, 1.0, 0.01)[1] + 0.1 * np.eye(n)
            expected = 0.5 * np.trace(Y.T @ np.linalg.solve(gram, Y)) + 0.5 * Y.size * np.log(2.0 * np.pi)
            expected += Y.shape[1] * np.log(np.diag(np.linalg.cholesky(gram))).sum()
            np.testing.assert_allclose(value, expected, rtol=1e-11)
    assert judged(np.zeros((2, 130)), np.zeros((130, 1)), np.zeros(130), np.ones(130), 1.0, -0.1, 0.0) == (np.inf, None)


def test_what_cannot_be_a_factor_is_refused():
    for bad in (np.ones((2, 2)), np.diag([1.0, 0.0]), np.diag([1.0, -1.0])):
        with pytest.raises(ValueError, match="factor"):
            lower_triangular(bad, "factor")
    lower_triangular(np.eye(2), "factor")
