"""The Cholesky factor against NumPy, of all sizes that its loops treat differently; budgets test how points leave
it."""
import itertools

import numpy as np
import pytest
from onlinekernels._core.linalg import Factor, product
from onlinekernels._core.schema import lower_triangular

RNG = np.random.default_rng(11)


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


def test_it_is_that_of_a_matrix():
    for n in (0, 1, 5, 16, 17, 49, 130, 300):
        gram = (np.cov(RNG.normal(size=(n, 3 * n))).reshape(n, n) if n else np.zeros((0, 0))) + np.eye(n)
        factor = Factor(n + 3)
        factor.decompose(gram)
        np.testing.assert_allclose(factor.lower(), np.linalg.cholesky(gram), atol=1e-12)
        factor._check()
    with pytest.raises(np.linalg.LinAlgError):
        factor.decompose(np.eye(130) - 0.1)
    assert factor.n == 300


def test_what_cannot_be_a_factor_is_refused():
    for bad in (np.ones((2, 2)), np.diag([1.0, 0.0]), np.diag([1.0, -1.0])):
        with pytest.raises(ValueError, match="factor"):
            lower_triangular(bad, "factor")
    lower_triangular(np.eye(2), "factor")


def test_products():
    """Of all shapes, turned or not, with rows far apart; of a triangle what is on and below its diagonal."""
    rng = np.random.default_rng(2)
    for rows, inner, columns in itertools.product((1, 2, 4, 7, 20), (1, 5, 64), (1, 3, 15, 16, 17, 24, 40)):
        left, wide = rng.normal(size=(rows, inner)), rng.normal(size=(inner, columns + 20))
        for right in (wide[:, :columns], np.ascontiguousarray(wide[:, :columns])):
            for first in (left, np.asfortranarray(left)):
                assert np.allclose(product(first, right), left @ right, rtol=0, atol=1e-13)
                low = np.tril(product(first, right, 2), 2)
                assert np.allclose(low, np.tril(left @ right, 2), rtol=0, atol=1e-13)
