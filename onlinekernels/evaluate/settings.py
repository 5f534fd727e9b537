"""The settings of parameters that a grid means: all of them, or some at random."""
import itertools
import math
from collections.abc import Iterable, Mapping

import numpy as np

from onlinekernels.evaluate.chunks import is_series


def settings_of(grid):
    """All settings of a grid, a list of dicts.

    >>> settings_of({"step": [0.1, 1.0], "budget": [50]})
    [{'step': 0.1, 'budget': 50}, {'step': 1.0, 'budget': 50}]
    """
    if not isinstance(grid, Mapping):
        return _listed(grid)
    for name, values in grid.items():
        if not is_series(values):
            drawn = "; give n_iter to draw values" if _draws(values) else ""
            raise ValueError(f"grid[{name!r}] must be a list of values. Got {values!r} instead{drawn}.")
    return _some([dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())], grid)


def drawn_settings(grid, n_iter, seed):
    """Settings of a grid at random: `n_iter` of them, or all if there are no more.

    >>> drawn_settings({"step": [0.1, 1.0, 10.0], "budget": [20, 50]}, 2, seed=1)
    [{'step': 1.0, 'budget': 50}, {'step': 10.0, 'budget': 50}]
    >>> len(drawn_settings({"step": lambda rng: rng.uniform()}, 5, seed=1))
    5
    """
    rng = np.random.default_rng(seed)
    if not isinstance(grid, Mapping):
        settings = _listed(grid)
        return [settings[place] for (place,) in _different([len(settings)], n_iter, rng)]
    columns = {name: _values(name, values) for name, values in grid.items()}
    if any(map(_draws, columns.values())):
        return [{name: _drawn(values, rng) for name, values in columns.items()} for _ in range(n_iter)]
    chosen = _different([len(values) for values in columns.values()], n_iter, rng)
    return [{name: columns[name][i] for name, i in zip(columns, places, strict=True)} for places in chosen]


def _values(name, values):
    """A list of values, or what draws them."""
    if _draws(values):
        return values
    if not is_series(values):
        raise ValueError(
            f"grid[{name!r}] must be a list of values, have rvs like the distributions of scipy.stats, or be a function "
            f"of a random generator. Got {values!r} instead."
        )
    values = list(values)
    if not values:
        raise ValueError(f"grid must hold at least one setting. grid[{name!r}] has no values.")
    return values


def _draws(values):
    return hasattr(values, "rvs") or callable(values)


def _drawn(values, rng):
    """One value, as Python has it."""
    if isinstance(values, list):
        return values[rng.integers(len(values))]
    value = values.rvs(random_state=rng) if hasattr(values, "rvs") else values(rng)
    return value.item() if isinstance(value, np.generic) else value


def _different(sizes, n_iter, rng):
    """Different places in a table of these sizes, at random, in their order; all of them if there are no more."""
    if n_iter >= math.prod(sizes):
        return list(itertools.product(*map(range, sizes)))
    chosen = set()
    while len(chosen) < n_iter:  # the table may be too large to be written down
        chosen.add(tuple(rng.integers(sizes).tolist()))
    return sorted(chosen)


def _listed(grid):
    settings = list(grid) if isinstance(grid, Iterable) else [grid]
    for setting in settings:
        if not isinstance(setting, Mapping):
            raise ValueError(f"grid must be a dict of lists or a list of dicts. Got {setting!r} instead.")
    return _some(settings, grid)


def _some(settings, grid):
    if not settings:
        raise ValueError(f"grid must hold at least one setting. Got {grid!r} instead.")
    return settings
