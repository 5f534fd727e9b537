"""The synthetic streams: what they promise in their docstrings, and the paper's two movements."""


import numpy as np
import pytest
from cases import each

from onlinekernels import ILK, NORMA, Gaussian, Hinge
from onlinekernels.streams import (
    Lags,
    chunks,
    counting_sequence,
    drifting_gaussians,
    drifting_mixtures,
    lagged,
    switching_gaussians,
)
from onlinekernels.streams import generators as streams

STREAMS = [drifting_gaussians, switching_gaussians]


def blocks_behind(monkeypatch, stream, n, **parameters):
    """Return X, y and the blocks (mixtures, X, y) that the stream was made of."""
    seen = []
    plain = streams._moving_blocks

    def recorded(*arguments):
        for block in plain(*arguments):
            seen.append(block)
            yield block

    monkeypatch.setattr(streams, "_moving_blocks", recorded)
    X, y = stream(n, **parameters)
    return X, y, seen


def naive_log_odds(mixtures, x):
    """log p(x | +1) - log p(x | -1) from the density of the normal distribution, term by term."""
    densities = []
    for means, widths in zip(mixtures.means, mixtures.widths, strict=True):
        density = 0.0
        for mean, width in zip(means, widths, strict=True):
            square = ((x - mean) ** 2).sum() / width**2
            density += np.exp(-square / 2) / (2 * np.pi * width**2) / len(widths)
        densities.append(density)
    return np.log(densities[1]) - np.log(densities[0])


# What every stream promises


@each("stream", STREAMS)
@each("n", [1, 9, 10, 11, 2500])
def test_shapes_types_and_labels(stream, n):
    X, y = stream(n)
    assert X.shape == (n, 2) and X.dtype == np.float64
    assert y.shape == (n,) and y.dtype == np.int64
    assert set(y.tolist()) <= {-1, 1}
    assert np.isfinite(X).all()


@each("stream", STREAMS)
def test_global_random_state_is_neither_read_nor_changed(stream):
    np.random.seed(1)
    before = np.random.get_state()[1].copy()
    stream(100)
    np.testing.assert_array_equal(np.random.get_state()[1], before)


@each("stream", STREAMS)
@each("every", [7, 1000, 3000])
def test_a_shorter_stream_begins_a_longer_one(stream, every):
    long_X, long_y = stream(4000, seed=5, every=every)
    for n in (1, 6, 7, 8, 1025, 3001):
        X, y = stream(n, seed=5, every=every)
        np.testing.assert_array_equal(X, long_X[:n])
        np.testing.assert_array_equal(y, long_y[:n])


# The Bayes boundary


@each("stream", STREAMS)
@each("margin", [0.0, 0.5, 2.0])
def test_every_example_is_clear_of_the_bayes_boundary(monkeypatch, stream, margin):
    X, y, blocks = blocks_behind(monkeypatch, stream, 2000, margin=margin)
    np.testing.assert_array_equal(np.concatenate([block[1] for block in blocks])[:2000], X)
    np.testing.assert_array_equal(np.concatenate([block[2] for block in blocks])[:2000], y)
    for mixtures, block_X, block_y in blocks:
        assert (block_y * mixtures.log_odds(block_X) >= margin).all()


def test_log_odds_are_those_of_the_densities(monkeypatch):
    *_, blocks = blocks_behind(monkeypatch, drifting_gaussians, 100)
    for mixtures, X, _ in blocks:
        expected = [naive_log_odds(mixtures, x) for x in X]
        np.testing.assert_allclose(mixtures.log_odds(X), expected, rtol=1e-9)


def test_removal_does_not_change_what_stays():
    """The clear examples follow the density of the mixtures, restricted to the clear region."""
    rng = np.random.default_rng(0)
    mixtures = streams._draw_mixtures(5, 3.0, (0.3, 0.6), rng)
    X, y = mixtures.draw(40_000, rng)
    clear = y * mixtures.log_odds(X) >= 0.5
    drawn_X, drawn_y = mixtures.draw_clear(40_000, 0.5, rng)
    assert abs(drawn_y.mean() - y[clear].mean()) < 0.03
    for label in (-1, 1):
        expected = X[clear & (y == label)]
        np.testing.assert_allclose(drawn_X[drawn_y == label].mean(0), expected.mean(0), atol=0.06)
        np.testing.assert_allclose(drawn_X[drawn_y == label].std(0), expected.std(0), atol=0.06)


@each("stream", STREAMS)
def test_a_margin_that_nothing_satisfies_is_an_error(monkeypatch, stream):
    monkeypatch.setattr(streams, "_MOST_CANDIDATES", 10_000)
    with pytest.raises(ValueError, match="Lower 'margin'"):
        stream(10, margin=1e9)


# The movements


def test_drift_moves_every_ten_examples(monkeypatch):
    *_, blocks = blocks_behind(monkeypatch, drifting_gaussians, 1000)
    assert [len(X) for _, X, _ in blocks] == [10] * 100
    means = np.array([mixtures.means for mixtures, _, _ in blocks])
    assert (means[1:] != means[:-1]).all()
    widths = np.array([mixtures.widths for mixtures, _, _ in blocks])
    assert (widths == widths[0]).all()


def test_steps_of_the_drift_have_the_given_deviation(monkeypatch):
    # A box so large that nothing is reflected.
    *_, blocks = blocks_behind(monkeypatch, drifting_gaussians, 5000, box=1000.0, drift=0.3)
    means = np.array([mixtures.means for mixtures, _, _ in blocks])
    steps = np.diff(means, axis=0)
    assert abs(steps.mean()) < 0.02
    assert abs(steps.std() - 0.3) < 0.02


@each("drift", [0.3, 5.0, 50.0])
def test_drifting_means_stay_in_the_box(monkeypatch, drift):
    parameters = {"drift": drift, "box": 1.5, "widths": (0.1, 0.2)}
    *_, blocks = blocks_behind(monkeypatch, drifting_gaussians, 2000, **parameters)
    for mixtures, _, _ in blocks:
        assert (np.abs(mixtures.means) <= 1.5).all()


def test_reflection():
    values = np.array([0.0, 2.9, -2.9, 3.0, -3.0, 3.5, -3.5, 8.9, 9.0, 9.5, 12.0, -12.5])
    expected = [0.0, 2.9, -2.9, 3.0, -3.0, 2.5, -2.5, -2.9, -3.0, -2.5, 0.0, -0.5]
    np.testing.assert_allclose(streams._reflect(values, 3.0), expected, atol=1e-14)


def test_switch_redraws_everything_every_thousand_examples(monkeypatch):
    *_, blocks = blocks_behind(monkeypatch, switching_gaussians, 5000)
    assert [len(X) for _, X, _ in blocks] == [1000] * 5
    for (before, _, _), (after, _, _) in zip(blocks, blocks[1:], strict=False):
        assert (before.means != after.means).all()
        assert (before.widths != after.widths).all()


def test_moves_fall_between_examples_also_when_blocks_are_smaller(monkeypatch):
    *_, blocks = blocks_behind(monkeypatch, switching_gaussians, 5000, every=2500)
    assert [len(X) for _, X, _ in blocks] == [1024, 1024, 452] * 2
    assert len({id(mixtures.means) for mixtures, _, _ in blocks}) == 2


# Errors

BAD_COUNTS = [0, -1, 2.5, "10", None, True]
BAD_POSITIVE = [0, -1.0, float("nan"), float("inf"), "3", None, True]
BAD_WIDTHS = [(0.6, 0.3), (0.0, 0.3), (0.3,), (0.3, 0.6, 0.9), 0.3, None, "ab", (0.3, float("inf"))]
BAD_NON_NEGATIVE = [-0.1, float("nan"), float("inf"), "0", None, True]
EXPECTED = {
    "n": ("a positive integer", BAD_COUNTS),
    "components": ("a positive integer", BAD_COUNTS),
    "every": ("a positive integer", BAD_COUNTS),
    "box": ("a positive number", BAD_POSITIVE),
    "widths": ("two positive numbers, the smaller one first", BAD_WIDTHS),
    "margin": ("a non-negative number", BAD_NON_NEGATIVE),
}


def check_refusal(stream, parameter, expected, value):
    with pytest.raises(ValueError) as refusal:
        stream(**{"n": 10, parameter: value})
    assert str(refusal.value) == (
        f"The '{parameter}' parameter of {stream.__name__} must be {expected}. "
        f"Got {value!r} instead."
    )


@each("stream", STREAMS)
@each("parameter", EXPECTED)
def test_bad_parameters_are_named(stream, parameter):
    expected, values = EXPECTED[parameter]
    for value in values:
        check_refusal(stream, parameter, expected, value)


def test_bad_drift_is_named():
    for value in BAD_NON_NEGATIVE:
        check_refusal(drifting_gaussians, "drift", "a non-negative number", value)


# ---- The travelling mixtures of Cheng et al. ----------------------------------------------------


def test_a_shorter_travel_is_the_beginning_of_a_longer_one():
    X, y = drifting_mixtures(3000, seed=5)
    for n in (1, 10, 2000):
        head, labels = drifting_mixtures(n, seed=5)
        np.testing.assert_array_equal(head, X[:n])
        np.testing.assert_array_equal(labels, y[:n])
    assert (drifting_mixtures(10, seed=6)[0] != X[:10]).any()


def test_each_class_is_a_mixture_on_a_circle_that_travels():
    X, y = drifting_mixtures(4000, seed=1, speed=0.0, wander=0.0, turn=0.0, width=0.05, components=3)
    angles = np.rint(np.arctan2(X[:, 1], X[:, 0]) / (np.pi / 3)).astype(int) % 6
    assert np.bincount(angles).min() > 500
    assert (y == np.where(angles % 2, 1, -1)).all()
    np.testing.assert_allclose(np.hypot(*X.T), 1, atol=0.3)
    moved, _ = drifting_mixtures(4000, seed=1, speed=0.5, wander=0.0, turn=0.0, width=0.05, components=3)
    np.testing.assert_allclose(moved - X, np.column_stack([0.5 * np.arange(1, 4001), np.zeros(4000)]), atol=1e-9)


def test_the_order_of_figure_1():
    """I Fig. 1: the implicit step beats the explicit one, and both beat themselves without decay."""
    streams_ = [drifting_mixtures(seed=seed) for seed in range(4)]

    def mistakes(algorithm, step, regularization):
        total = 0
        for X, y in streams_:
            model = algorithm(Hinge(), Gaussian(0.5), step=step, regularization=regularization)
            total += np.sum(y * model.progressive(X, y) <= 0)
        return total / len(streams_)

    implicit, explicit = mistakes(ILK, 3.0, 0.03), mistakes(NORMA, 1.0, 0.1)
    assert 140 < implicit < explicit < 180
    assert min(mistakes(ILK, 1.0, 1e-9), mistakes(NORMA, 1.0, 1e-9)) > 1.2 * explicit


@each(
    "parameters", [{"n": 0}, {"components": 1.5}, {"width": 0}, {"speed": -1}, {"wander": np.nan}, {"turn": "fast"}]
)
def test_bad_parameters_of_the_travelling_mixtures(parameters):
    (name,) = parameters
    with pytest.raises(ValueError, match=f"The '{name}' parameter of drifting_mixtures must be"):
        drifting_mixtures(**parameters)


# ---- Counting -----------------------------------------------------------------------------------


def naive_counter(n, base, places):
    digits, number = [], 0
    while len(digits) < n:
        rest, places_of_number = number, []
        for _ in range(places):
            places_of_number.append(rest % base)
            rest //= base
        digits += reversed(places_of_number)
        number = (number + 1) % base**places
    return digits[:n]


@each("n, base, places", [(6000, 10, 3), (25, 10, 1), (100, 2, 3), (50, 3, 80), (7, 5, 4)])
def test_the_labels_count(n, base, places):
    X = np.arange(3 * base)
    _, y = counting_sequence(X, X % base, n, digits=places)
    assert y.tolist() == naive_counter(n, base, places)


def test_twice_to_999_takes_600_of_each_digit_and_none_twice():
    """V 6.2."""
    X = np.arange(6000)
    rows, y = counting_sequence(X, X // 600, 6000, seed=3)
    assert sorted(rows.tolist()) == list(range(6000))
    assert (rows // 600 == y).all()
    again, _ = counting_sequence(X, X // 600, 6000, seed=3)
    other, _ = counting_sequence(X, X // 600, 6000, seed=4)
    assert (again == rows).all() and (other != rows).any()


def test_classes_that_are_used_up_come_again():
    rows, y = counting_sequence(np.arange(6), ["b", "a"] * 3, 12, digits=1)
    assert y.tolist() == ["a", "b"] * 6
    assert sorted(rows[:6].tolist()) == sorted(rows[6:].tolist()) == list(range(6))


@each(
    "y, n, digits, name", [([0], 3, 3, "y"), ([0, 0], 3, 3, "y"), ([0, 1], 0, 3, "n"), ([0, 1], 3, 0, "digits")]
)
def test_bad_parameters_of_counting(y, n, digits, name):
    with pytest.raises(ValueError, match=f"The '{name}' parameter of counting_sequence must be"):
        counting_sequence([[1.0], [2.0]], y, n, digits=digits)


# ---- Time series -------------------------------------------------------------------------------


def test_rows_of_a_series_are_its_last_values_and_the_next():
    rng = np.random.default_rng(0)
    for series in (rng.normal(size=40), rng.normal(size=(40, 3))):
        for lags in (1, 2, 7, 39):
            X, y = lagged(series, lags)
            np.testing.assert_array_equal(X, [series[t - lags : t].reshape(-1) for t in range(lags, 40)])
            np.testing.assert_array_equal(y, series[lags:])
            assert not np.shares_memory(X, series) and not np.shares_memory(y, series)
            last, rows, first = Lags(lags), [], 0
            while first < 40:  # in pieces, and one at a time
                size = int(rng.integers(1, 9))
                if size == 1 and last.row is not None:
                    rows.append(last.row[None])
                    last = last.learn_one(series[first])
                else:
                    rows.append(last.take(series[first : first + size])[0])
                first += size
            np.testing.assert_array_equal(np.concatenate(rows), X)
            np.testing.assert_array_equal(last.row, series[-lags:].reshape(-1))
    assert [part.shape for part in lagged([1, 2], lags=5)] == [(0, 5), (0,)]


def test_series_that_make_no_sense_are_refused_and_change_nothing():
    last = Lags(2)
    last.take([1, 2, 3])
    for series in ([], [np.nan], [np.inf], ["a"], 3.0, [[1, 2]], np.zeros((1, 1, 1)), None):
        with pytest.raises((ValueError, TypeError)):
            last.take(series)
        assert last.row.tolist() == [2.0, 3.0]
    with pytest.raises(ValueError, match="'lags' parameter of Lags"):
        lagged([1, 2, 3], lags=0)


# Rows that are in memory, some at a time


def test_chunks_of_all_kinds_of_tables():
    """Every row comes once, in order, as what it was."""
    pandas, sparse = pytest.importorskip("pandas"), pytest.importorskip("scipy.sparse")
    X, y = np.arange(14.0).reshape(7, 2), list("abcabca")
    frame = pandas.DataFrame(X, columns=["u", "v"], index=range(100, 107))
    for table in (X, X.tolist(), frame, sparse.csc_matrix(X)):
        parts = list(chunks(table, y, size=3))
        assert [len(labels) for _, labels in parts] == [3, 3, 1] and sum((labels for _, labels in parts), []) == y
        rows = [part.toarray() if sparse.issparse(part) else np.asarray(part) for part, _ in parts]
        np.testing.assert_array_equal(np.concatenate(rows), X)
    parts = list(chunks(frame, pandas.Series(y, index=frame.index), size=4))
    assert list(parts[1][0].columns) == ["u", "v"] and parts[1][1].tolist() == y[4:]
    assert [part.tolist() for part in chunks(X[:2], size=1)] == [[[0, 1]], [[2, 3]]]
    with pytest.raises(ValueError, match="'size' parameter of chunks must be a positive integer. Got 0"):
        chunks(X, size=0)
    with pytest.raises(ValueError, match="X has 7, y has 6"):
        chunks(X, y[:6])


def test_chunks_of_pandas_are_a_stream():
    """A table with words, ISO dates and holes, as pandas reads it piece by piece."""
    pandas = pytest.importorskip("pandas")
    import io

    from onlinekernels import SILK

    text = "day,pet,age,label\n" + "".join(
        f"2024-01-{1 + i % 28:02},{['cat', 'dog', ''][i % 3]},{'' if i % 5 == 2 else i % 7},{'ab'[i % 2]}\n" for i in range(90)
    )
    model = SILK("hinge", encode=True, scale=True)
    for chunk in pandas.read_csv(io.StringIO(text), chunksize=20):
        model.partial_fit(chunk.drop(columns="label"), chunk["label"])
    assert model.t_ == 90 and model.encoder_.kinds_["age"] == "number" and model.encoder_.kinds_["day"] == "date"
