"""Intervals of numbers that go by innovations: errors of the past, in units of what was expected."""
import math

import numpy as np

__all__ = ["checked_innovations", "in_deviations", "interval_factor", "interval_factors", "recalled"]

RECALLED = 500  # innovations by which intervals go
LED, GAIN = 200, 0.1  # how many of them lead a half-width, and how far each


def in_deviations(Y, scores, deviations):
    """Innovations: |y - f| in units of the deviations that were expected."""
    return np.abs(Y - scores) / np.maximum(deviations, 1e-300)


def recalled(before, new):
    """The last innovations, by which intervals go, when new ones have come."""
    return np.concatenate([before, new])[-RECALLED:]


def checked_innovations(values, groups):
    """Those of a file, shape (n, groups); ValueError if they make no sense."""
    found = np.array(values, dtype=float)
    if found.ndim != 2 or found.shape[1] != groups or len(found) > RECALLED or not (found >= 0.0).all():
        raise ValueError("the innovations make no sense")
    return found


def interval_factor(innovations, coverage):
    """How many deviations the half-width of an interval is, so that it has covered so much of late, shape (groups,).

    See `interval_factors`.
    """
    return interval_factors(innovations, len(innovations), coverage)[0]


def interval_factors(innovations, first, coverage):
    """The same before each of the innovations from the `first` on, and after the last, shape (n, groups).

    It begins with the smallest that covers at least `coverage` of the last 500, and of the one to come if that is like them.
    Then it is led along the last 200: each that was outside makes it larger, and each inside smaller, so that it balances
    where they grow or shrink. While they are too few to say, it is no less than that of a Gaussian.
    """
    from statistics import NormalDist

    starts, ends = np.arange(first, len(innovations) + 1), []
    for end in starts:
        latest = innovations[max(0, end - RECALLED) : end]
        place = math.ceil((len(latest) + 1) * coverage) - 1
        if place < len(latest):
            ends.append(np.partition(latest, place, axis=0)[place])
        else:
            ends.append(np.maximum(NormalDist().inv_cdf(0.5 + 0.5 * coverage), latest.max(axis=0, initial=0.0)))
    found = np.array(ends)
    enough = np.ceil((np.minimum(starts, RECALLED) + 1) * coverage) - 1 < np.minimum(starts, RECALLED)
    for age in range(LED, 0, -1):
        rows = np.flatnonzero(enough & (starts >= age))
        beyond = innovations[starts[rows] - age] > found[rows]
        found[rows] *= np.exp(GAIN * (beyond - (1.0 - coverage)))
    return found
