"""Combiners of the core, calibration, prior correction, intervals: oracles, chunks, extremes, states."""
import concurrent.futures

import numpy as np
import pytest

from onlinekernels._core.combiners import (
    AveragedRanks,
    Calibration, ChangeDetector,
    ExponentialWeights,
    IntervalTracker,
    LeastSquares,
    OnlineNewton,
    PriorCorrection,
    RecursiveLeastSquares,
    TargetFences,
    interval_factors,
)
from onlinekernels._core.schema import positive_definite, restore, state_of
from onlinekernels.ensemble.stacking import class_settings, number_settings

N, M = 300, 4
RNG = np.random.default_rng(0)
LABELS = np.minimum(RNG.integers(0, 3, size=N), np.arange(N) // 40).astype(float)  # the third joins late
JOINED = np.concatenate([[0], np.maximum.accumulate(LABELS.astype(int) + 1)[:-1]])
NUMBERS = RNG.normal(size=(N, 2)) * [1.0, 1e3]
COUNTS = RNG.choice([0.0, 0.5, 1.0, 3.0], size=N)
ENABLED = np.array([True, True, False, True])
CLASS_SCORES = np.clip(np.where(np.arange(3) == LABELS[:, None], 0.5, -0.5)[:, None] + RNG.normal(size=(N, M, 3)), -1,
                       1)
NUMBER_SCORES = NUMBERS[:, None] * RNG.uniform(0.5, 1.5, size=(M, 2)) + RNG.normal(size=(N, M, 2)) * [0.3, 300.0]

COMBINERS = {
    "newton": (lambda: OnlineNewton(M, class_settings(0.99), odds=[True, True, False, True]), CLASS_SCORES, LABELS),
    "hedge": (lambda: ExponentialWeights(M, 0, 1.5, 1e-3), CLASS_SCORES, LABELS),
    "votes": (lambda: ExponentialWeights(M, 0, 1.5, 1e-3, True), CLASS_SCORES, LABELS),
    "hedge of numbers": (lambda: ExponentialWeights(M, 2, 0.5, 1e-3), NUMBER_SCORES, NUMBERS),
    "recursive": (lambda: RecursiveLeastSquares(M, 2, number_settings(0.99)), NUMBER_SCORES, NUMBERS),
    "least squares": (lambda: LeastSquares(M, 2, 0.99, 5.0), NUMBER_SCORES, NUMBERS),
    "least squares of labels": (lambda: LeastSquares(M, 0, 0.99, 5.0), CLASS_SCORES, LABELS),
    "ranks": (lambda: AveragedRanks(M, 0, 0.1), NUMBER_SCORES[:, :, :1], np.zeros(N)),
    "fading ranks": (lambda: AveragedRanks(M, 100, 0.1, 20), NUMBER_SCORES[:, :, :1], np.zeros(N)),
}
each = pytest.mark.parametrize("make, scores, y", COMBINERS.values(), ids=list(COMBINERS))


def same(a, b):
    np.testing.assert_equal(a, b)


@each
def test_chunks_and_copies(make, scores, y):
    found = {}
    for size in (N, 37, 1):
        combiner, parts = make(), []
        for i in range(0, N, size):
            rows = slice(i, i + size)
            if i == 111:  # of chunks of 37: goes on from its state
                state, combiner = state_of(combiner), make()
                restore(combiner, state)
            parts.append(combiner.advance(scores[rows], y[rows], JOINED[rows], COUNTS[rows], ENABLED))
            combiner._check()
        found[size] = [np.concatenate(part) for part in zip(*parts, strict=True)], state_of(combiner)
        assert all(np.isfinite(part).all() for part in found[size][0])
    same(found[37], found[N])
    same(found[1], found[N])


@each
def test_predictions_are_those_of_the_next_row_and_change_nothing(make, scores, y):
    combiner = make()
    combiner.advance(scores[:200], y[:200], JOINED[:200], COUNTS[:200], ENABLED)
    state, now = state_of(combiner), combiner.advance(scores[200:], None, 3, None, ENABLED)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        same([*pool.map(lambda _: combiner.advance(scores[200:], None, 3, None, ENABLED), range(200))], [now] * 200)
    same(state_of(combiner), state)
    combined, deviations = combiner.advance(scores[200:201], y[200:201], [3], np.ones(1), ENABLED)
    np.testing.assert_allclose(now[0][:1], combined, rtol=1e-12)
    if not isinstance(combiner, AveragedRanks):  # whose deviations are the levels of alerts
        np.testing.assert_allclose(now[1][:1], deviations, rtol=1e-12)


@each
def test_disabled_members_do_not_matter(make, scores, y):
    other = scores.copy()
    other[:, 2] = 0.0 if isinstance(make(), OnlineNewton) else -0.9 * other[:, 2]
    plain = other.copy()
    plain[:, 2] = 0.0
    if not isinstance(make(), (AveragedRanks, LeastSquares)):
        same(make().advance(other, y, JOINED, COUNTS, ENABLED), make().advance(plain, y, JOINED, COUNTS, ENABLED))
    nobody = make().advance(plain, y, JOINED, COUNTS, np.zeros(M, bool))
    assert all(np.isfinite(part).all() for part in nobody)


def test_ranks_by_hand():
    """The mean log rank of each row among those before it, and its rank; the level is that of a quantile of means."""
    combiner, scores, nu = AveragedRanks(M, 0, 0.1, 0, [1.0, 2.0, 1.0, 0.5]), NUMBER_SCORES[:, :, :1], 0.1
    weights = np.array([1.0, 2.0, 0.5]) / 3.5
    found, levels = combiner.advance(scores, np.zeros(N), JOINED, COUNTS, ENABLED)

    def rank(value, before):
        return (0.5 * ((before < value).sum(axis=0) + (before <= value).sum(axis=0)) + 0.5) / (len(before) + 1)

    means, excess = np.zeros(N), 0.0
    for t in range(N):
        means[t] = np.log(rank(scores[t, :, 0], scores[:t, :, 0]))[ENABLED] @ weights
        expected, level = rank(means[t], means[:t]) + 1e-6 * means[t], nu
        if t:
            quantile = np.sort(means[:t])[int(nu * (1.0 - 0.3 * min(1.0, excess / 50.0)) * t)]
            is_lowest = quantile <= np.log(0.5 / (t + 1)) + 1e-9    # in the eyes of all members
            level = min(4 * nu, rank(quantile, means[:t]) + 1e-6 * quantile + 1e-9 * is_lowest)
        assert found[t, 0] == pytest.approx(expected, rel=1e-12) and levels[t, 0] == pytest.approx(level, rel=1e-12)
        excess = max(0.0, excess + (expected < level) - nu) if t >= 100 else 0.0
    combiner.begin_anew()
    assert combiner.each.t == combiner.mean.t == combiner.latest.t == N // 2
    combiner._check()
    again = AveragedRanks(M, 0, 0.1)
    again.each.ranks(scores[-(N // 2):, :, 0], learns=True)
    same(state_of(combiner.each), state_of(again.each))


# ---- Numbers of any size ---------------------------------------------------------------------------------------------


def extreme_numbers(rng, n):
    """Sizes from denormal to 1e150 with sudden changes, constants, and single gross values."""
    size = 10.0 ** rng.choice([-310, -200, -170, -8, 0, 0, 12, 100, 149])
    y = size * rng.normal(size=n)
    if rng.random() < 0.3:
        y[n // 2 :] *= 1e-12
    if rng.random() < 0.3:
        y[rng.integers(n)] = rng.choice([1e149, -1e120, 0.0])
    return np.full(n, size) if rng.random() < 0.2 else y


@pytest.mark.parametrize("seed", range(60))
def test_extreme_numbers(seed):
    """Whatever comes: finite answers, sound states that load, the same in chunks."""
    rng, n = np.random.default_rng(seed), 150
    y = np.column_stack([extreme_numbers(rng, n) for _ in range(2)])
    scores = y[:, None] * rng.choice([0.0, 1.0, 1.0 + 1e-12, 0.5, -1.0], size=(M, 1))
    scores += rng.normal(size=(n, M, 2)) * rng.choice([0.0, 1e-9, 1.0]) * np.abs(y).mean(axis=0)
    scores = np.clip(scores, -1e120, 1e120)
    counts = 10.0 ** rng.choice([-300, -200, 0, 0, 0, 12, 100, 300], size=n)
    for make in (lambda: RecursiveLeastSquares(M, 2, number_settings(0.998)),
                 lambda: ExponentialWeights(M, 2, 0.5, 1e-3), lambda: LeastSquares(M, 2, 0.9995, 6.0)):
        whole, row_by_row = make(), make()
        found = whole.advance(scores, y, None, counts, None)
        parts = []
        for i in range(n):
            parts.append(row_by_row.advance(scores[i : i + 1], y[i : i + 1], None, counts[i : i + 1], None))
            state = state_of(row_by_row)
            row_by_row = make()
            restore(row_by_row, state)
        assert all(np.isfinite(part).all() for part in found), make
        same([np.concatenate(part) for part in zip(*parts, strict=True)], list(found))
        whole._check()


@pytest.mark.parametrize("seed", range(60))
def test_extreme_labels(seed):
    rng, n = np.random.default_rng(seed), 150
    classes = int(rng.integers(2, 5))
    y = rng.integers(0, classes, size=n).astype(float)
    scores = np.where(np.arange(classes) == y[:, None], 1.0, -1.0)[:, None]
    scores = scores * rng.choice([0.0, 1e-300, 1e-9, 1.0, -1.0], size=(M, 1))
    counts, joined = 10.0 ** rng.choice([-300, -200, 0, 0, 12, 100, 300], size=n), np.full(n, classes)
    newton, calibration = OnlineNewton(M, class_settings(0.998), odds=[True, True, False, True]), Calibration()
    hedge = ExponentialWeights(M, 0, 2.0, 1e-3)
    for i in range(n):
        row = slice(i, i + 1)
        found, _ = newton.advance(scores[row], y[row], joined[row], counts[row])
        likely, _ = calibration.advance(0.5 * (1.0 + found), y[row], joined[row], counts[row])
        assert np.isfinite(hedge.advance(scores[row], y[row], joined[row], counts[row])[0]).all()
        assert (likely >= 0.0).all() and likely.sum() == pytest.approx(1.0, abs=1e-12)
        for part in (newton, calibration, hedge):
            part._check()
            restore(part, state_of(part))


def calibrated_by_hand(likely, y, counts):
    """Its definition: log odds shifted and stretched by leaky Newton steps, and what is left at knots."""
    knots, fading, sums = 21, 0.9998, np.zeros((3, 21))
    v, A, found = np.zeros(2), 75.0 * np.eye(2), likely.copy()
    for t in range(len(likely)):
        best = likely[t].argmax()
        p = np.clip(likely[t, best], 1e-6, 1 - 1e-6)
        odds = np.log(p / (1 - p))
        q = 1 / (1 + np.exp(-v[0] - max(0.05, 1 + 0.5 * v[1]) * odds))
        place = (1 - np.sqrt(1 - q)) * (knots - 1)
        k = min(int(place), knots - 2)
        shares = np.array([1 - (place - k), place - k])
        left = (sums[1] - sums[2]) / (sums[0] + 100.0)
        others = np.delete(likely[t], best)
        others = others + max(0.0, 1e-6 - others.sum()) / len(others)
        others = others / others.sum()
        rate = min(1.0, max(q + shares @ left[k : k + 2], others.max() / (1 + others.max()) + 1e-9))
        found[t] = np.insert((1 - rate) * others, best, rate)
        hit = float(y[t] == best)
        sums *= fading
        sums[:, k : k + 2] += counts[t] * np.outer([1.0, hit, q], shares)
        A = fading * A
        j, back = t % 2, 2 * (1 - fading) * 75.0
        S = np.linalg.inv(A)
        v = v - back * S[:, j] * v[j] / (1 + back * S[j, j])
        A[j, j] += back
        x = np.array([1.0, 0.5 * odds])
        A += counts[t] * q * (1 - q) * np.outer(x, x)
        v = v + counts[t] * np.linalg.solve(A, (hit - q) * x)
    return found


def test_calibration_is_its_formula():
    rng = np.random.default_rng(3)
    likely = rng.dirichlet([0.3, 0.3, 0.3], size=500)
    y = np.array([rng.choice(3, p=p) for p in likely**0.5 / (likely**0.5).sum(axis=1, keepdims=True)]).astype(float)
    counts = rng.choice([0.0, 1.0, 2.0], size=500)
    found, _ = Calibration().advance(likely, y, np.full(500, 3), counts)
    np.testing.assert_allclose(found, calibrated_by_hand(likely, y, counts), rtol=0, atol=1e-9)


def corrected_by_hand(kind, likely, y, joined):
    seen, found, out = np.zeros(likely.shape[1]), np.zeros(3), likely.copy()
    for t, label in enumerate(y.astype(int)):
        there = joined[t]
        if there > 1:
            if kind == "balanced":
                factors = 1 / np.maximum(seen[:there], 1e-3 * seen[:there].sum())
            else:
                factors = np.ones(there)
                if there == 2 and seen[:2].min() > 0:
                    level = np.clip((found[0] + 1) / (found[1] + found[2] + 2), 0.02, 0.5)
                    factors[0 if seen[1] > seen[0] else 1] = (1 - level) / level
            out[t, :there] = likely[t, :there] * factors / (likely[t, :there] @ factors)
            rare = int(seen[:2].argmin()) if there == 2 else -1
            alarm = out[t, :there].argmax() == rare
            found = 0.998 * found + [alarm and label == rare, alarm, label == rare]
        seen *= 0.998
        seen[label] += 1
    return out


@pytest.mark.parametrize("kind", ["balanced", "f1"])
def test_prior_correction_is_its_formula(kind):
    rng = np.random.default_rng(5)
    y = (rng.random(N) < 0.1).astype(float)
    y[200:][rng.random(100) < 0.1] = 2.0
    joined = np.concatenate([[0], np.maximum.accumulate(y.astype(int) + 1)[:-1]])
    likely = rng.dirichlet([2.0, 1.0, 1.0], size=N)
    likely = np.where(np.arange(3) < joined[:, None], likely, 0.0)
    expected = corrected_by_hand(kind, likely, y, joined)
    for size in (N, 37, 1):
        correction = PriorCorrection(kind)
        chunks = [slice(i, i + size) for i in range(0, N, size)]
        parts = [correction.advance(likely[rows], y[rows], joined[rows]) for rows in chunks]
        corrected, factors = (np.concatenate(part) for part in zip(*parts, strict=True))
        np.testing.assert_allclose(corrected, expected, rtol=1e-10)
        back = corrected / factors
        np.testing.assert_allclose(back[joined > 1] / back[joined > 1].sum(axis=1, keepdims=True),
                                   likely[joined > 1] / likely[joined > 1].sum(axis=1, keepdims=True))
    state, again = state_of(correction), PriorCorrection(kind)
    restore(again, state)
    same(again.factors(3), correction.factors(3))
    same(state_of(again), state)


def changes_by_hand(mistakes, chances, is_label):
    """Page's CUSUM of the log likelihood ratio, for each of two alternatives."""
    sums, since, rates, quiet, found = np.zeros(2), [0, 0], np.full(2, 10.0), 0, []
    for t, (mistake, chance) in enumerate(zip(mistakes, chances)):
        expected = np.clip(chance * rates[0] / rates[1], 0.002, 0.9) if is_label else chance
        for k, odds in enumerate((2.0, 4.0) if t >= max(quiet, 200) else ()):
            likelier = odds * expected / (1.0 - expected + odds * expected)
            since[k] = t if sums[k] == 0.0 else since[k]
            ratio = likelier / expected if mistake else (1.0 - likelier) / (1.0 - expected)
            sums[k] = max(0.0, sums[k] + np.log(ratio))
        if sums.max() > 9.5:
            found.append([since[sums.argmax()], t])
            sums[:], quiet = 0.0, t + 300
        rates = 0.999 * rates + [mistake, chance]
    return found


def test_changes_are_those_of_the_definition():
    rng, n = np.random.default_rng(7), 3000
    p = rng.uniform(0.5, 1.0, size=n)
    wrong = rng.random(n) < np.where(np.arange(n) % 1500 < 1000, 1.0 - p, 0.6)
    labels, scores = wrong.astype(float), np.column_stack([2.0 * p - 1.0, 1.0 - 2.0 * p])
    errors = rng.normal(size=(n, 1)) * np.where(np.arange(n) < 2000, 1.0, 5.0)[:, None]
    expected = changes_by_hand(wrong, 1.0 - np.clip(p, 0.05, 0.995), True)
    assert [abs(first - 1000) < 60 for first, _ in expected[:1]] == [True] and len(expected) > 1
    for targets, (f, y) in ((0, (scores, labels)), (1, (np.zeros((n, 1)), errors))):
        states = []
        for size in (n, 37, 1):
            detector = ChangeDetector(targets)
            for i in range(0, n, size):
                detector.advance(f[i:i + size], y[i:i + size])
            states.append(state_of(detector))
            same(states[-1], states[0])
        assert targets or detector.changes.tolist() == expected
        assert not targets or [abs(first - 2000) < 30 for first, _ in detector.changes] == [True]
        again = ChangeDetector(targets)
        restore(again, states[0])
        same(state_of(again), states[0])


@pytest.mark.parametrize("positive", [False, True])
def test_intervals_do_not_depend_on_chunks(positive):
    rng = np.random.default_rng(6)
    y, f, deviations = np.abs(rng.normal(size=(1700, 2))), rng.normal(1.0, 1.0,
                                                                      size=(1700, 2)), rng.exponential(size=(1700, 2))
    y[900, 1] = -1.0
    least = np.vstack([[np.inf, np.inf], np.minimum.accumulate(y)[:-1]])
    expected = np.abs(y - f) / deviations
    if positive:
        with np.errstate(invalid="ignore", divide="ignore"):
            ratio = np.minimum(np.log(f / np.maximum(y, 0.0)), 3.0) * f / deviations
        expected = np.where((least > 0) & (least < np.inf) & (f > 0) & (y < f), ratio, expected)
    states = []
    for size in (1700, 37, 1):
        tracker = IntervalTracker(2, positive)
        chunks = [slice(i, i + size) for i in range(0, 1700, size)]
        parts = [tracker.advance(f[rows], y[rows], deviations[rows]) for rows in chunks]
        innovations, leasts = (np.concatenate(part) for part in zip(*parts, strict=True))
        np.testing.assert_allclose(innovations, expected, rtol=1e-12)
        same(leasts, least)
        states.append(state_of(tracker))
        for coverage in (0.1, 0.9, 0.999):
            same(tracker.half_widths(coverage), interval_factors(innovations, 1700, coverage)[0])
    same(states[1:], states[:1] * 2)
    same(states[0]["innovations"], innovations[-500:])
    again = IntervalTracker(2, positive)
    restore(again, states[0])
    same(again.half_widths(0.8), tracker.half_widths(0.8))


# ---- States that cannot be -------------------------------------------------------------------------------------------


def indefinite(S):
    S[..., 0, 1] = S[..., 1, 0] = 1.001 * np.sqrt(S[..., 0, 0] * S[..., 1, 1])
    return S


def askew(S):
    S[..., 0, 1] *= 1.0 + 1e-12
    return S


@pytest.mark.parametrize("name, path, change", [
    ("newton", "fitted/S", indefinite), ("newton", "fitted/S", askew), ("newton", "fitted/w", lambda w: w + 1e13),
    ("newton", "belief", lambda b: 2 * b), ("recursive", "fitted/S", indefinite), ("recursive", "fitted/S", askew),
    ("recursive", "errors/low", lambda low: low + 1e9), ("recursive", "errors/t", lambda t: 2.5),
    ("least squares", "products", indefinite), ("least squares", "products", askew),
    ("least squares", "answers", lambda a: a + 1e9), ("least squares", "squares", lambda s: 0.0 * s),
    ("least squares", "count", lambda c: -1.0), ("least squares", "count", lambda c: 0.0),
    ("least squares", "products", lambda p: p[:, :3, :3]), ("hedge of numbers", "trust", lambda w: 0.5 * w),
    ("hedge of numbers", "errors/sums", lambda s: s * [[1.0], [0.0]]), ("ranks", "tokens", lambda tokens: 9.0),
    ("ranks", "excess", lambda excess: -1.0), ("ranks", "mean/t", lambda t: 0),
])
def test_states_that_nearly_could_be_are_refused(name, path, change):
    """All that is farther off is in test_contracts.py."""
    make, scores, y = COMBINERS[name]
    combiner, again = make(), make()
    combiner.advance(scores, y, JOINED, COUNTS, None)
    state, fresh, (*parts, last) = state_of(combiner), state_of(again), path.split("/")
    changed = {**state, **{part: {**state[part]} for part in parts}}
    inner = changed[parts[0]] if parts else changed
    value = change(np.array(inner[last], dtype=float))
    inner[last] = value if isinstance(value, np.ndarray) else value
    with pytest.raises(ValueError):
        restore(again, changed)
    same(state_of(again), fresh)


def test_positive_definite():
    positive_definite(np.eye(3)[None], "S")
    for matrix in (-np.eye(3), np.zeros((1, 2, 2)), np.ones((2, 2)), np.array([[1.0, 0.1], [0.1 + 1e-12, 1.0]])):
        with pytest.raises(ValueError, match="S is not"):
            positive_definite(matrix, "S")


def test_fences_are_their_definition():
    """Residuals beyond three 95 % quantiles are clipped, those far beyond are nothing, and the third in a row counts;
    and so does what is beyond all targets that counted by no more than half their range."""
    rng = np.random.default_rng(8)
    y, f = rng.normal(size=(600, 2)), rng.normal(size=(600, 2))
    y[rng.random((600, 2)) < 0.05] += 12.0
    y[400:410, 0], y[450, 1] = 80.0, 1e9
    fences, told, runs, excess = TargetFences(2), [], np.zeros(2), np.zeros(2)
    for t in range(600):
        if t == 300:
            state, fences = state_of(fences), TargetFences(2)
            restore(fences, state)
        told.append(fences.advance(y[t : t + 1], f[t : t + 1])[0])
    middle = np.median(y[:30], axis=0)
    usual = np.median(np.abs(y[:30] - middle), axis=0) / 0.6745
    counted = [y[:30, j][np.abs(y[:30, j] - middle[j]) <= 3.0 * (1.0 + 2.0 / 30.0) * usual[j]] for j in range(2)]
    least, largest = (np.array([end(part) for part in counted]) for end in (np.min, np.max))
    for t in range(30, 600):
        residuals = np.abs(y - f)
        residuals[0] = 0.0
        last = t if t < 32 else t - t % 16
        for j in range(2):
            seen = np.sort(residuals[max(0, last - 256) : 30 if t < 32 else last, j])
            reach, r = 3.0 * seen[(95 * len(seen) - 1) // 100], y[t, j] - f[t, j]
            room = 0.5 * (largest[j] - least[j])
            if least[j] - room <= y[t, j] <= largest[j] + room:
                reach = np.inf
            side = np.sign(r) * (abs(r) > reach)
            runs[j] = runs[j] + side if side * runs[j] > 0 else side
            excess[j] = abs(r) if abs(runs[j]) == 1 else min(excess[j], abs(r))
            if abs(runs[j]) >= 3:
                reach = max(reach, 3.0 * excess[j])
            size = abs(r) if abs(r) <= reach else reach * np.clip((6.0 - abs(r) / reach) / 4.0, 0.0, 1.0)
            if abs(r) <= reach:
                least[j], largest[j] = min(least[j], y[t, j]), max(largest[j], y[t, j])
            if t > 40:  # by then runs do not go back to the first rows
                np.testing.assert_allclose(told[t][j], f[t, j] + np.sign(r) * size, rtol=1e-12, atol=1e-12)
    same(TargetFences(1).advance(np.r_[np.ones(29), 1e9][:, None], np.zeros((30, 1)))[-1], np.array([1e9]))
