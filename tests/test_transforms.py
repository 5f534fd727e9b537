"""Transforms of the core: each row with what was known at its time; blocks that count in part; rows as of now;
states."""
import threading

import numpy as np
import pytest

from onlinekernels._core.transforms import NormalScores, Ranks, Relevance, StandardScores, normal_scores

N, D = 260, 3
RNG = np.random.default_rng(0)
ROWS = np.column_stack([np.exp(3 * RNG.normal(size=N)), RNG.integers(0, 4, size=N), RNG.random(N) < 0.1]).astype(float)


def relevance(n_features):
    transform = Relevance(n_features)
    transform.weights[:] = transform.weights_for(np.array([0.7, 0.2, 0.1]))
    return transform


KINDS = {"scores": StandardScores, "fading scores": lambda d: StandardScores(d, 0.98),
         "squashed": lambda d: StandardScores(d, 1.0, True),
         "relevance": relevance, "ranks": NormalScores}
each = pytest.mark.parametrize("make", KINDS.values(), ids=list(KINDS))


def same(a, b):
    np.testing.assert_equal(a, b)


def scores_by_hand(memory, squashed):
    """Weighted mean and deviation of the rows so far; of two values what lies between them, over sqrt(2)."""
    found = np.zeros(ROWS.shape)
    for t in range(N):
        weights, seen = memory ** np.arange(t, -1.0, -1.0), ROWS[: t + 1]
        mean = weights @ seen / weights.sum()
        deviations = np.sqrt(weights @ (seen - mean) ** 2 / weights.sum())
        for j in range(D):
            values = np.unique(seen[:, j])
            if len(values) == 2 and t > 1:
                deviations[j] = np.diff(values)[0] / np.sqrt(2.0)
        found[t] = (ROWS[t] - mean) / np.where(deviations > 1e-9, deviations, 1.0)
    return np.arcsinh(found) if squashed else found


def ranks_by_hand():
    found = np.zeros(ROWS.shape)
    for t in range(N):
        before = ROWS[:t]
        found[t] = (0.5 * ((before < ROWS[t]).sum(axis=0) + (before <= ROWS[t]).sum(axis=0)) + 0.5) / (t + 1)
    return normal_scores(found)


def test_formulas():
    np.testing.assert_allclose(StandardScores(D).advance(ROWS), scores_by_hand(1.0, False), atol=1e-10)
    np.testing.assert_allclose(StandardScores(D, 0.98).advance(ROWS), scores_by_hand(0.98, False), atol=1e-9)
    np.testing.assert_allclose(StandardScores(D, 1.0, True).advance(ROWS), scores_by_hand(1.0, True), atol=1e-10)
    np.testing.assert_allclose(relevance(D).advance(ROWS), scores_by_hand(1.0, False) * relevance(D).weights,
                               atol=1e-10)
    np.testing.assert_allclose(NormalScores(D).advance(ROWS), ranks_by_hand(), atol=1e-12)


@each
def test_chunks(make):
    whole = make(D)
    found = whole.advance(ROWS)
    for size in (37, 1):
        other, parts = make(D), []
        for i in range(0, N, size):
            parts.append(other.advance(ROWS[i : i + size]))
            other._check()
        same(np.concatenate(parts), found)
        same(other.state(), whole.state())
        assert other.t == N


@each
def test_the_first_rows_of_a_block_count(make):
    """For every number of them, and as if the others had never come; also after an earlier block that did not count."""
    for begin in (0, 1, 30):
        for n in range(21):
            transform, expected = make(D), make(D)
            for one in (transform, expected):
                one.advance(ROWS[:begin])
            transform.opened(ROWS[::-1][:20])
            transform.committed(0)
            same(transform.state(), expected.state())
            found = transform.opened(ROWS[begin : begin + 20])
            transform.committed(n)
            same(expected.advance(ROWS[begin : begin + n]), found[:n])
            same(transform.state(), expected.state())
            same(transform.advance(ROWS[50:60]), expected.advance(ROWS[50:60]))
            transform._check()


def test_ranks_of_a_full_sample_are_rolled_back():
    """More rows than are kept: rows of the block replace older ones, and each other."""
    rng = np.random.default_rng(1)
    rows = np.round(rng.normal(size=(3000, 2)), 1)
    transform, expected = NormalScores(2), NormalScores(2)
    for one in (transform, expected):
        one.advance(rows[:1400])
    for n in (0, 1, 37, 199, 200):
        found = transform.opened(rows[1400:1600])
        transform.committed(n)
        transform._check()
        again = NormalScores(2)
        again.restore(expected.state())
        same(again.advance(rows[1400 : 1400 + n]), found[:n])
        same(again.state(), transform.state())
        again._check()
        transform = NormalScores(2)
        transform.restore(expected.state())


@each
def test_rows_as_of_now(make):
    transform = make(D)
    assert np.array_equal(transform.transform(ROWS[:2]), np.zeros((2, D))) or isinstance(transform, NormalScores)
    transform.advance(ROWS[:200])
    state, now = transform.state(), transform.transform(ROWS)
    same(np.concatenate([transform.transform(ROWS[i : i + 1]) for i in range(N)]), now)
    found = [None] * 4

    def ask(i):
        found[i] = [transform.transform(ROWS) for _ in range(50)]

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    same(found, [[now] * 50] * 4)
    same(transform.state(), state)
    assert transform.transform(np.zeros((0, D))).shape == (0, D)


def test_a_block_that_fails_changes_nothing():
    for make in (StandardScores, relevance):
        transform, expected, rows = make(D), make(D), ROWS.copy()
        rows[40, 1] = 1e200
        for one in (transform, expected):
            one.advance(ROWS[:20])
        with pytest.raises(ValueError, match="Row 20 of X is too large to scale") as error:
            transform.opened(rows[20:60])
        assert error.value.row == 20
        same(transform.state(), expected.state())
        same(transform.advance(ROWS[20:]), expected.advance(ROWS[20:]))


def test_one_block_at_a_time():
    transform = StandardScores(D)
    transform.opened(ROWS[:5])
    with pytest.raises(RuntimeError, match="open already"):
        transform.opened(ROWS[5:9])
    transform.committed(5)
    transform.committed(0)  # none is open
    assert transform.t == 5


@each
def test_states(make):
    transform, again = make(D), make(D)
    transform.advance(ROWS[:100])
    state = transform.state()
    again.restore(state)
    same(again.state(), state)
    same(again.advance(ROWS[100:]), transform.advance(ROWS[100:]))


def test_states_that_cannot_be_are_refused():
    scores, ranks, weighed = StandardScores(D, 0.98), NormalScores(D), relevance(D)
    for transform in (scores, ranks, weighed):
        transform.advance(ROWS)
    damages = [
        (scores, {"t": -1}), (scores, {"t": 7.0}), (scores, {"t": 11}), (scores, {"count": 3.0}),
        (scores, {"square": [-1.0] * D}), (scores, {"mean": [0.0]}),
        (ranks, {"t": N - 1}), (ranks, {"t": 1 << 62}), (ranks, {"rows": np.full((N, D), np.nan)}),
        (weighed, {"weights": np.ones(2)}), (weighed, {"weights": 2.0 * np.ones(D)}),
        (weighed, {"weights": -np.ones(D)}),
    ]
    for transform, damage in damages:
        state = transform.state()
        with pytest.raises(ValueError):
            transform.restore({**state, **damage})


def test_samples_begin_anew_with_the_latest_rows():
    ranks, expected = Ranks(D, 300), Ranks(D, 300)
    ranks.advance(ROWS)
    ranks.restart(100)
    expected.advance(ROWS[-100:])
    ranks._check()
    same(ranks.state(), expected.state())
    same(ranks.advance(ROWS), expected.advance(ROWS))
    state = ranks.state()
    ranks.restart(1)  # the latest rows are not known any more
    same(ranks.state(), state)
