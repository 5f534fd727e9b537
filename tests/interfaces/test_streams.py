"""The synthetic streams: what they promise in their docstrings, and the paper's two movements."""


import inspect

import numpy as np
import pytest
from cases import each

from onlinekernels.streams import (chunks, counting_sequence, drifting_gaussians, drifting_mixtures, lagged,
                                   switching_gaussians,)
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
@each("every", [7, 1000, 3000])
def test_a_shorter_stream_begins_a_longer_one(stream, every):
    long_X, long_y = stream(4000, seed=5, every=every)
    travel = drifting_mixtures(3001, seed=5)
    for n in (1, 6, 7, 8, 1025, 3001):
        X, y = stream(n, seed=5, every=every)
        np.testing.assert_array_equal(X, long_X[:n])
        np.testing.assert_array_equal(y, long_y[:n])
        for part, whole in zip(drifting_mixtures(n, seed=5), travel):
            np.testing.assert_array_equal(part, whole[:n])
    assert (drifting_mixtures(10, seed=6)[0] != travel[0][:10]).any()


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


# The movements


def test_reflection():
    values = np.array([0.0, 2.9, -2.9, 3.0, -3.0, 3.5, -3.5, 8.9, 9.0, 9.5, 12.0, -12.5])
    expected = [0.0, 2.9, -2.9, 3.0, -3.0, 2.5, -2.5, -2.9, -3.0, -2.5, 0.0, -0.5]
    np.testing.assert_allclose(streams._reflect(values, 3.0), expected, atol=1e-14)


# Errors

BAD_COUNTS = "a positive integer", [0, -1, 2.5, "10", None, True]
BAD_POSITIVE = "a positive number", [0, -1.0, float("nan"), float("inf"), "3", None, True]
BAD_NON_NEGATIVE = "a number of at least 0", [-0.1, float("nan"), float("inf"), "0", None, True]
BAD_WIDTHS = [(0.6, 0.3), (0.0, 0.3), (0.3,), (0.3, 0.6, 0.9), 0.3, None, "ab", (0.3, float("inf"))]
EXPECTED = {"n": BAD_COUNTS, "components": BAD_COUNTS, "every": BAD_COUNTS, "digits": BAD_COUNTS, "box": BAD_POSITIVE,
            "width": BAD_POSITIVE, "margin": BAD_NON_NEGATIVE, "drift": BAD_NON_NEGATIVE, "speed": BAD_NON_NEGATIVE,
            "wander": BAD_NON_NEGATIVE, "turn": ("a finite number", ["fast", None, float("inf")]),
            "widths": ("two positive numbers, the smaller one first", BAD_WIDTHS)}


def counting(n, **parameters):
    return counting_sequence([[1.0], [2.0]], [0, 1], n, **parameters)


counting.__signature__ = inspect.signature(counting_sequence)


@each("stream", [*STREAMS, drifting_mixtures, counting])
def test_bad_parameters_are_named(stream):
    name = "counting_sequence" if stream is counting else stream.__name__
    checked = [parameter for parameter in inspect.signature(stream).parameters if parameter not in ("seed", "X", "y")]
    assert set(checked) <= set(EXPECTED)
    for parameter in checked:
        expected, values = EXPECTED[parameter]
        for value in values:
            with pytest.raises(ValueError) as refusal:
                stream(**{"n": 10, parameter: value})
            what = f"The '{parameter}' parameter of {name}"
            assert str(refusal.value) == f"{what} must be {expected}. Got {value!r} instead."
    for y in ([0], [0, 0]):
        with pytest.raises(ValueError, match="The 'y' parameter of counting_sequence must be"):
            counting_sequence([[1.0], [2.0]], y, 3)


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


def test_rows_of_a_series_are_its_last_values_and_the_next():
    rng = np.random.default_rng(0)
    for series in (rng.normal(size=40), rng.normal(size=(40, 3))):
        for lags in (1, 2, 7, 39):
            X, y = lagged(series, lags)
            np.testing.assert_array_equal(X, [series[t - lags : t].reshape(-1) for t in range(lags, 40)])
            np.testing.assert_array_equal(y, series[lags:])
            assert not np.shares_memory(X, series) and not np.shares_memory(y, series)
    assert [part.shape for part in lagged([1, 2], lags=5)] == [(0, 5), (0,)]


def test_series_that_make_no_sense_are_refused():
    for series in ([], [np.nan], [np.inf], ["a"], 3.0, np.zeros((1, 1, 1)), None):
        with pytest.raises((ValueError, TypeError)):
            lagged(series, 2)
    for lags in (0, 1.5, True):
        with pytest.raises(ValueError, match="'lags' parameter of lagged"):
            lagged([1, 2, 3], lags=lags)


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
