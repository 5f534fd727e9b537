"""Transforms of the core: each row with what was known at its time; blocks that count in part; rows as of now;
states."""
import threading

import numpy as np
import pytest

from onlinekernels._core.schema import restore, state_of
from onlinekernels._core.transforms import (
    NormalScores, QuantileScores, Ranks, Relevance, normal_scores,
)

N, D = 260, 3
RNG = np.random.default_rng(0)
ROWS = np.column_stack([np.exp(3 * RNG.normal(size=N)), RNG.integers(0, 4, size=N), RNG.random(N) < 0.1]).astype(float)


def relevance(n_features):
    transform = Relevance(n_features)
    transform.weights[:] = transform.weights_for(np.array([0.7, 0.2, 0.1]))
    return transform


KINDS = {"scores": Relevance, "relevance": relevance, "ranks": NormalScores, "quantiles": QuantileScores}
each = pytest.mark.parametrize("make", KINDS.values(), ids=list(KINDS))


def same(a, b):
    np.testing.assert_equal(a, b)


def scores_by_hand():
    """Mean and deviation of the rows so far; of two values what lies between them, over sqrt(2)."""
    found = np.zeros(ROWS.shape)
    for t in range(N):
        seen = ROWS[: t + 1]
        mean, deviations = seen.mean(axis=0), seen.std(axis=0)
        for j in range(D):
            values = np.unique(seen[:, j])
            if len(values) == 2 and t > 1:
                deviations[j] = np.diff(values)[0] / np.sqrt(2.0)
        found[t] = (ROWS[t] - mean) / np.where(deviations > 1e-9, deviations, 1.0)
    return found


def ranks_by_hand():
    found = np.zeros(ROWS.shape)
    for t in range(N):
        before = ROWS[:t]
        found[t] = (0.5 * ((before < ROWS[t]).sum(axis=0) + (before <= ROWS[t]).sum(axis=0)) + 0.5) / (t + 1)
    return normal_scores(found)


def test_formulas():
    np.testing.assert_allclose(Relevance(D).advance(ROWS), scores_by_hand(), atol=1e-10)
    np.testing.assert_allclose(relevance(D).advance(ROWS), scores_by_hand() * relevance(D).weights, atol=1e-10)
    np.testing.assert_allclose(NormalScores(D).advance(ROWS), ranks_by_hand(), atol=1e-12)
    np.testing.assert_allclose(QuantileScores(D).advance(ROWS), quantile_scores_by_hand(), atol=1e-9)


def quantile_scores_by_hand():
    """Between quantiles of the rows up to the latest of the places 1, 2, 4, ..., 64, 128, ..., and beyond."""
    special = pytest.importorskip("scipy.special")
    deviates, found = np.linspace(-3.0, 3.0, 33), np.zeros(ROWS.shape)
    for t in range(1, N):
        place = t // 64 * 64 if t >= 64 else 1 << t.bit_length() - 1
        for j in range(D):
            past, x = np.sort(ROWS[:place, j]), ROWS[t, j]
            places = special.ndtr(deviates) * len(past) - 0.5
            within = (places >= 0) & (places[::-1] >= 0)
            knots, known = np.interp(places[within], np.arange(len(past)), past), deviates[within]
            low, middle, high, reach = knots[0], knots[len(knots) // 2], knots[-1], known[-1]
            if past[0] == past[-1]:
                found[t, j] = np.sign(x - middle)
            elif len(np.unique(past)) == 2:
                found[t, j] = 0.6 * np.arcsinh((x - middle) / (past[-1] - past[0])) / np.arcsinh(1.0)
            elif x < low:
                found[t, j] = -reach - np.arcsinh(reach * (low - x) / ((middle - low) or (high - middle)))
            elif x > high:
                found[t, j] = reach + np.arcsinh(reach * (x - high) / ((high - middle) or (middle - low)))
            elif x in knots:
                found[t, j] = known[knots == x].mean()
            else:
                found[t, j] = np.interp(x, knots, known)
    return found


def test_quantiles_are_of_the_latest_rows_and_of_no_glitch():
    rng, transform = np.random.default_rng(3), QuantileScores(3)
    rows = np.column_stack([rng.normal(size=6000), rng.normal(size=6000), rng.random(6000) < 0.01])
    rows[2000, 0], rows[3000:, 1] = 1e300, 1e-6 * rows[3000:, 1] + 5.0
    found = transform.advance(rows)
    assert np.isfinite(found).all() and abs(found).max() < 1100.0
    np.testing.assert_allclose(found[2001:, 0], rows[2001:, 0], atol=1.0)
    assert abs(found[4600:, 1].std() - 1.0) < 0.1 and abs(np.ptp(found[500:, 2]) - 0.6) < 1e-12
    tiny = QuantileScores(2, 1)
    assert np.isfinite(tiny.advance([[-1.7e308, 5e-324], [1.7e308, 0.0], [0.0, 1.7e308]] * 50)).all() and tiny.sample.n == 1


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
        same(state_of(other), state_of(whole))
        assert other.t == N


@each
def test_the_first_rows_of_a_block_count(make):
    """For every number of them, and as if the others had never come; also after an earlier block that did not count."""
    for begin in (66, 100) if make is QuantileScores else (0, 1, 30):  # whose blocks end at fixed places
        for n in range(21):
            transform, expected = make(D), make(D)
            for one in (transform, expected):
                one.advance(ROWS[:begin])
            transform.opened(ROWS[::-1][:20])
            transform.committed(0)
            same(state_of(transform), state_of(expected))
            found = transform.opened(ROWS[begin : begin + 20])
            transform.committed(n)
            same(expected.advance(ROWS[begin : begin + n]), found[:n])
            same(state_of(transform), state_of(expected))
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
        restore(again, state_of(expected))
        same(again.advance(rows[1400 : 1400 + n]), found[:n])
        same(state_of(again), state_of(transform))
        again._check()
        transform = NormalScores(2)
        restore(transform, state_of(expected))


@each
def test_rows_as_of_now(make):
    transform = make(D)
    assert np.array_equal(transform.transform(ROWS[:2]), np.zeros((2, D))) or isinstance(transform, NormalScores)
    transform.advance(ROWS[:200])
    state, now = state_of(transform), transform.transform(ROWS)
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
    same(state_of(transform), state)
    assert transform.transform(np.zeros((0, D))).shape == (0, D)


def test_a_block_that_fails_changes_nothing():
    for make in (Relevance, relevance):
        transform, expected, rows = make(D), make(D), ROWS.copy()
        rows[40, 1] = 1e200
        for one in (transform, expected):
            one.advance(ROWS[:20])
        with pytest.raises(ValueError, match="Row 20 of X is too large to scale") as error:
            transform.opened(rows[20:60])
        assert error.value.row == 20
        same(state_of(transform), state_of(expected))
        same(transform.advance(ROWS[20:]), expected.advance(ROWS[20:]))


def test_states_that_cannot_be_are_refused():
    scores, ranks, weighed, knots = Relevance(D), NormalScores(D), relevance(D), QuantileScores(D)
    for transform in (scores, ranks, weighed, knots):
        transform.advance(ROWS)
    damages = [
        (scores, {"t": -1}), (scores, {"t": 7.0}), (scores, {"t": 11}), (scores, {"scaler": {"count": 3.0}}),
        (scores, {"scaler": {"square": -np.ones(D)}}), (scores, {"scaler": {"mean": np.zeros(1)}}),
        (ranks, {"t": N - 1}), (ranks, {"t": 1 << 62}), (ranks, {"ranks": {"rows": np.full((N, D), np.nan)}}),
        (ranks, {"t": N + 1, "ranks": {"t": N + 1}}), (weighed, {"weights": np.ones(2)}),
        (weighed, {"weights": 2.0 * np.ones(D)}),
        (weighed, {"weights": -np.ones(D)}),
        (knots, {"t": 100}), (knots, {"knots": -np.cumsum(np.ones((D, 33)), axis=1)}),
    ]
    for transform, damage in damages:
        state = state_of(transform)
        damage = {name: {**state[name], **change} if isinstance(change, dict) else change
                  for name, change in damage.items()}
        with pytest.raises(ValueError):
            restore(transform, {**state, **damage})
        same(state_of(transform), state)


def test_samples_begin_anew_with_the_latest_rows():
    ranks, expected = Ranks(D, 300), Ranks(D, 300)
    ranks.ranks(ROWS, learns=True)
    ranks.restart(100)
    expected.ranks(ROWS[-100:], learns=True)
    ranks._check()
    same(state_of(ranks), state_of(expected))
    same(ranks.ranks(ROWS, learns=True), expected.ranks(ROWS, learns=True))
    state = state_of(ranks)
    ranks.restart(1)  # the latest rows are not known any more
    same(state_of(ranks), state)
