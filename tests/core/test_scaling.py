"""RunningScaler against sums over all rows so far, and `scale=` inside the algorithms."""
import pickle

import numpy as np
import pytest
from cases import each

import onlinekernels as ok


def oracle(X, memory):
    """Each row scaled by weighted mean and deviation of the rows up to it, in extended precision.

    Of a feature with two values, one of which came again, a change counts as sqrt(2).
    """
    X = X.astype(np.longdouble)
    out = np.zeros(X.shape)
    for t in range(len(X)):
        weights = np.longdouble(memory) ** np.arange(t, -1, -1)
        mean = weights @ X[: t + 1] / weights.sum()
        deviation = np.sqrt(weights @ (X[: t + 1] - mean) ** 2 / weights.sum())
        values = np.array([len(set(column)) for column in X[: t + 1].T])
        deviation[values == 1], two = 0, (values == 2) & (t >= 2)
        deviation[two] = np.ptp(X[: t + 1], axis=0)[two] / np.sqrt(np.longdouble(2))
        out[t] = np.where(deviation > 0, (X[t] - mean) / np.where(deviation > 0, deviation, 1), X[t] - mean)
    return out


def rows(n=80, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 4)) * [1.0, 1e6, 1e-6, 3.0] + [0.0, 1e8, 5.0, -2.0]


@each("memory", [1.0, 0.999, 0.9, 0.3])
def test_rows_are_scaled_by_what_has_been_seen(memory):
    X = rows()
    np.testing.assert_allclose(ok.RunningScaler(memory).progressive(X), oracle(X, memory), rtol=1e-7, atol=1e-7)


def few_values(n=120, seed=0):
    """Columns of few values: rare, constant for long, with a third value late, of another size, and a number."""
    rng = np.random.default_rng(seed)
    rare, late, third = np.zeros(n), np.full(n, 7.0), rng.integers(0, 2, n).astype(float)
    rare[[4, 50, 51]], late[70:], third[90] = 1.0, 5.0, 0.5
    return np.column_stack([rare, late, third, np.where(rng.random(n) < 0.3, 1e6, 1e6 + 3), np.zeros(n),
                            rng.normal(size=n)])


@pytest.mark.parametrize("memory", [1.0, 0.99, 0.3])
def test_a_change_between_two_values_counts_the_same_however_rare_it_is(memory):
    X = few_values()
    whole = ok.RunningScaler(memory)
    scaled = whole.progressive(X)
    np.testing.assert_allclose(scaled, oracle(X, memory), rtol=1e-7, atol=1e-7)
    assert np.abs(scaled[:, :2]).max() <= 2**0.5
    step = whole.transform(X[[4]]) - whole.transform(X[[5]])
    assert step[0, 0] == pytest.approx(2**0.5) and whole.scale_[0] == pytest.approx(0.5**0.5)
    ordinary = [2, 5]  # with the statistics of all rows, also of those before a third value
    np.testing.assert_allclose(whole.scale_[ordinary], np.sqrt(whole.var_[ordinary]), rtol=1e-12)
    assert whole.scale_[4] == 1.0
    pieces = ok.RunningScaler(memory)
    parts = []
    for first, last in ((0, 1), (1, 3), (3, 72), (72, 91), (91, 120)):
        parts.append(pieces.progressive(X[first:last]))
        pieces = pickle.loads(pickle.dumps(pieces))
    np.testing.assert_array_equal(np.vstack(parts), scaled)
    sparse = pytest.importorskip("scipy.sparse")
    rows = sparse.csr_matrix(X[:, [0, 2, 5]])
    whole = ok.RunningScaler(memory)
    found = whole.progressive(rows)
    np.testing.assert_allclose(found[3:, 0].toarray(), 2**0.5 * X[3:, [0]], rtol=1e-12)
    np.testing.assert_allclose(found[3:90, 1].toarray(), 2**0.5 * X[3:90, [2]], rtol=1e-12)
    weights = memory ** np.arange(119, -1, -1.0)
    deviations = np.sqrt(weights @ X[:, [2, 5]] ** 2 / weights.sum())
    np.testing.assert_allclose(found[119].toarray()[0, 1:], X[119, [2, 5]] / deviations, rtol=1e-9)
    np.testing.assert_allclose(whole.scale_[1:], deviations, rtol=1e-9)
    pieces = ok.RunningScaler(memory)
    parts = [pieces.progressive(rows[first:last]).toarray()
             for first, last in ((0, 1), (1, 3), (3, 72), (72, 91), (91, 120))]
    np.testing.assert_allclose(np.vstack(parts), found.toarray(), rtol=1e-12)
    np.testing.assert_allclose(pieces.transform(rows).toarray(), whole.transform(rows).toarray(), rtol=1e-12)


def test_scaled_sparse_rows_share_nothing_with_the_users():
    sparse = pytest.importorskip("scipy.sparse")
    rows = sparse.csr_matrix((np.array([1.0, 0.0, 2.0]), [0, 1, 2], [0, 2, 3]), shape=(2, 3))
    before = rows.toarray()
    for scaled in (ok.RunningScaler().fit_transform(rows), ok.RunningScaler().progressive(rows)):
        scaled.eliminate_zeros()
        np.testing.assert_array_equal(rows.toarray(), before)
