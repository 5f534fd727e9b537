"""Streams made by chance: the synthetic sequences of the papers, and orders in which data come.

`drifting_gaussians` and `switching_gaussians` are those of section VI-A of Kivinen, Smola and Williamson, "Online
Learning with Kernels": the first makes a small change often, the second a large one seldom. Both are `_moving_blocks`,
with another function that moves the mixtures. Examples that the Bayes-optimal classifier would get wrong, or that lie
close to its boundary, are removed: what a learner cannot do is stop learning.
"""
from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from onlinekernels.base.docstrings import like
from onlinekernels.base.validation import Real, check_finite, check_not_negative, check_positive

if TYPE_CHECKING:
    from onlinekernels.annotations import Any, ArrayLike

__all__ = ["drifting_gaussians", "switching_gaussians", "drifting_mixtures", "counting_sequence"]

_LARGEST_BLOCK = 1024  # does not depend on n, so that a longer stream begins with the shorter one
_MOST_CANDIDATES = 1_000_000  # for one block, after which to give up if too few are clear of the boundary


def drifting_gaussians(n: int = 10_000, *, seed: int = 0, components: int = 5, box: float = 3.0,
                       widths: tuple[float, float] = (0.3, 0.6), drift: float = 0.3, every: int = 10,
                       margin: float = 0.5) -> Any:
    """Return two classes of Gaussians whose means wander (Kivinen et al., VI-A, drifting).

    After every `every` examples each mean takes a normally distributed step, and is reflected at the sides of the box.
    The same seed gives the same stream, and a shorter stream is the beginning of a longer one.

    Parameters
    ----------
    n : int, default=10_000
        Number of examples.
    seed : int, default=0
        Seed of the random numbers; anything that `numpy.random.default_rng` takes.
    components : int, default=5
        Gaussians per class, all equally likely.
    box : float, default=3.0
        The means stay in the square [-box, box] x [-box, box]; examples may lie outside it.
    widths : (float, float), default=(0.3, 0.6)
        The standard deviation of each Gaussian is drawn uniformly between these two.
    drift : float, default=0.3
        Standard deviation of one step of a mean, per coordinate.
    every : int, default=10
        Number of examples between two steps.
    margin : float, default=0.5
        Only examples stay whose log-odds for their own class are at least this. With 0 the stream loses only those that
        the Bayes-optimal classifier gets wrong.

    Returns
    -------
    X : ndarray of shape (n, 2), float64
        The examples, in the order in which they arrive.
    y : ndarray of shape (n,), int64
        Their labels, -1 or +1.

    Examples
    --------
    >>> from onlinekernels.streams import drifting_gaussians
    >>> X, y = drifting_gaussians(1000, seed=7)
    >>> X.shape, y.shape
    ((1000, 2), (1000,))
    >>> sorted(set(y.tolist()))
    [-1, 1]
    >>> longer, _ = drifting_gaussians(2000, seed=7)
    >>> bool((longer[:1000] == X).all())
    True
    """
    _check("drifting_gaussians", n=n, components=components, every=every, box=box, widths=widths, margin=margin,
           drift=drift)

    def move(mixtures, rng):
        steps = rng.normal(0.0, drift, size=mixtures.means.shape)
        return mixtures._replace(means=_reflect(mixtures.means + steps, box))

    rng = np.random.default_rng(seed)
    start = _draw_mixtures(components, box, widths, rng)
    return _first(n, _moving_blocks(start, move, every, margin, rng))


@like(drifting_gaussians)
def switching_gaussians(n: int = 10_000, *, seed: int = 0, components: int = 5, box: float = 3.0,
                        widths: tuple[float, float] = (0.3, 0.6), every: int = 1000, margin: float = 0.5) -> Any:
    """Return two classes of Gaussians that are redrawn at times (Kivinen et al., VI-A, switching).

    After every `every` examples all means and all widths are forgotten and drawn again. The same seed gives the same
    stream, and a shorter stream is the beginning of a longer one.

    Parameters
    ----------
    {n}
    {seed}
    {components}
    {box}
    {widths}
    every : int, default=1000
        Number of examples between two switches.
    {margin}

    {Returns}

    Examples
    --------
    >>> from onlinekernels.streams import switching_gaussians
    >>> X, y = switching_gaussians(3000, seed=7)
    >>> X.shape, y.shape
    ((3000, 2), (3000,))
    >>> switching_gaussians(0)
    Traceback (most recent call last):
    ...
    ValueError: The 'n' parameter of switching_gaussians must be a positive integer. Got 0 instead.
    """
    _check("switching_gaussians", n=n, components=components, every=every, box=box, widths=widths, margin=margin)

    def move(_, rng):
        return _draw_mixtures(components, box, widths, rng)

    rng = np.random.default_rng(seed)
    start = _draw_mixtures(components, box, widths, rng)
    return _first(n, _moving_blocks(start, move, every, margin, rng))


@like(drifting_gaussians)
def drifting_mixtures(n: int = 2000, *, seed: int = 0, components: int = 2, width: float = 0.3, speed: float = 0.02,
                      wander: float = 0.05, turn: float = 0.005) -> Any:
    """Return two travelling classes, each a mixture of Gaussians (Cheng et al., Figure 1).

    The means of both classes alternate on a circle of radius 1. The circle travels through the plane: with every
    example it moves by `speed`, its heading takes a normally distributed step, and it turns. The classes overlap, so
    even the best classifier makes mistakes. The same seed gives the same stream, and a shorter stream is the beginning
    of a longer one.

    The paper describes its sequence in a picture and one sentence; the parameters are ours, set so
    that a tuned ILK and a tuned NORMA make about as many mistakes in 2000 examples as its axis shows, 140 to 180.

    Parameters
    ----------
    n : int, default=2000
        Number of examples.
    {seed}
    components : int, default=2
        Gaussians per class, all equally likely.
    width : float, default=0.3
        Standard deviation of every Gaussian.
    speed : float, default=0.02
        How far the circle moves with every example.
    wander : float, default=0.05
        Standard deviation of the change of its heading, in radians per example.
    turn : float, default=0.005
        How far the circle turns about its centre, in radians per example.

    {Returns}

    Examples
    --------
    >>> from onlinekernels.streams import drifting_mixtures
    >>> X, y = drifting_mixtures(seed=3)
    >>> X.shape, sorted(set(y.tolist()))
    ((2000, 2), [-1, 1])
    >>> still, _ = drifting_mixtures(seed=3, speed=0.0)
    >>> bool(np.abs(still).max() < 4), bool(np.abs(X).max() > 8)
    (True, True)
    """
    _check("drifting_mixtures", n=n, components=components, width=width, turn=turn, speed=speed, wander=wander)
    # One generator for each quantity, so that the first examples do not depend on n.
    headings, codes, noises = np.random.default_rng(seed).spawn(3)
    heading = np.cumsum(wander * headings.standard_normal(n))
    centre = np.cumsum(speed * np.column_stack([np.cos(heading), np.sin(heading)]), axis=0)
    code = codes.integers(2 * components, size=n)
    angle = turn * np.arange(n) + np.pi * code / components
    noise = width * noises.standard_normal((n, 2))
    X = centre + np.column_stack([np.cos(angle), np.sin(angle)]) + noise
    return X, 2 * (code % 2) - 1


@like(drifting_gaussians)
def counting_sequence(X: ArrayLike, y: ArrayLike, n: int, seed: int = 0, *, digits: int = 3) -> Any:
    """Return labelled examples in the order of a counter (Vishwanathan et al., 6.2, Figure 5).

    The classes, in sorted order, are the digits of a counter that runs from 0 upwards and starts again when all its
    places are full: with ten classes and three places 000, 001, ..., 999, 000, and so on. Each example is drawn from
    its class, without repetition until the class is used up. So the classes come in patterns on many time scales, and
    some are frequent for a while and rare for a while. With ``digits=1`` they come in turn: 0, 1, ..., 9, 0, 1, ...

    Parameters
    ----------
    X : array of shape (m, ...) or list
        Examples to draw from.
    y : array of shape (m,)
        Their labels, at least two different ones.
    n : int
        Length of the sequence. The paper has 6000: twice from 000 to 999.
    {seed}
    digits : int, default=3
        Number of places of the counter.

    Returns
    -------
    X, y : arrays with n rows

    Examples
    --------
    >>> from onlinekernels.streams import counting_sequence
    >>> X, y = np.arange(20.0).reshape(20, 1), np.arange(20) % 10
    >>> _, labels = counting_sequence(X, y, 36)
    >>> "".join(map(str, labels))
    '000001002003004005006007008009010011'
    >>> _, labels = counting_sequence(X, y, 12, digits=1)
    >>> "".join(map(str, labels))
    '012345678901'
    """
    name = "counting_sequence"
    X, y = np.asarray(X), np.asarray(y)
    _require(name, "y", y.shape, y.ndim == 1 and len(y) == len(X), f"one label for each of the {len(X)} rows of X")
    _check(name, n=n, digits=digits)
    classes, codes = np.unique(y, return_inverse=True)
    _require(name, "y", classes.tolist(), len(classes) > 1, "labels of at least two classes")
    order = _counter(n, len(classes), digits)
    rows = np.empty(n, dtype=np.intp)
    for code, rng in enumerate(np.random.default_rng(seed).spawn(len(classes))):
        slots = np.flatnonzero(order == code)
        rows[slots] = _in_turn(np.flatnonzero(codes == code), len(slots), rng)
    return X[rows], y[rows]


def _counter(n, base, digits):
    """Return the first n digits of a counter with this many places that runs round and round."""
    numbers = np.arange(-(-n // digits))[:, None]
    # Python's integers: base**digits may be large. Digits of a number modulo it are those of the number.
    powers = np.array([min(base**place, 2**62) for place in reversed(range(digits))])
    return (numbers // powers % base).reshape(-1)[:n]


def _in_turn(items, count, rng):
    """Return `count` of the items in random order, all of them once before any comes again."""
    rounds = [rng.permutation(items) for _ in range(-(-count // len(items)))]
    return np.concatenate([items[:0], *rounds])[:count]


class _Mixtures(NamedTuple):
    """Two mixtures of round Gaussians with equal weights: index 0 is class -1, index 1 is +1."""

    means: np.ndarray  # (2, components, 2): class, component, coordinate
    widths: np.ndarray  # (2, components): standard deviations

    def log_odds(self, X):
        """Return log p(+1 | x) - log p(-1 | x) for every row of X, the classes being as likely."""
        gaps = X[:, None, None, :] - self.means
        squares = np.einsum("ncki,ncki->nck", gaps, gaps)
        # Constants that all Gaussians share cancel in the difference.
        logs = -squares / (2.0 * self.widths**2) - X.shape[1] * np.log(self.widths)
        negative, positive = np.logaddexp.reduce(logs, axis=2).T
        return positive - negative

    def draw(self, count, rng):
        """Return `count` examples and their labels, before any are removed."""
        side = rng.integers(2, size=count)
        component = rng.integers(self.widths.shape[1], size=count)
        noise = rng.standard_normal((count, self.means.shape[2]))
        X = self.means[side, component] + self.widths[side, component, None] * noise
        return X, 2 * side - 1

    def draw_clear(self, count, margin, rng):
        """Return `count` examples whose log-odds for their own class are at least `margin`."""
        kept, missing, drawn = [], count, 0
        # Four of five candidates stay under the default parameters: one round nearly always does.
        candidates = 2 * count + 8
        while missing > 0:
            if drawn > _MOST_CANDIDATES:
                few = f"Of {drawn} examples only {count - missing} had log-odds of at least {margin} for their own class."
                raise ValueError(f"{few} Lower 'margin', or let 'components', 'box' and 'widths' overlap less.")
            X, y = self.draw(candidates, rng)
            clear = np.flatnonzero(y * self.log_odds(X) >= margin)[:missing]
            kept.append((X[clear], y[clear]))
            missing -= len(clear)
            drawn += candidates
            candidates = min(2 * candidates, 2**16)
        return _stack(kept)


def _draw_mixtures(components, box, widths, rng):
    """Return mixtures with means uniform in the box and widths uniform between two values."""
    means = rng.uniform(-box, box, size=(2, components, 2))
    return _Mixtures(means, rng.uniform(*widths, size=(2, components)))


def _reflect(values, box):
    """Return values folded into [-box, box], as if its sides were mirrors."""
    return box - np.abs(np.mod(values + box, 4.0 * box) - 2.0 * box)


def _moving_blocks(mixtures, move, every, margin, rng):
    """Yield (mixtures, X, y) without end; `mixtures` moves after every `every` examples.

    A block never crosses a move. `move(mixtures, rng)` returns the mixtures that come next.
    """
    while True:
        for begin in range(0, every, _LARGEST_BLOCK):
            count = min(_LARGEST_BLOCK, every - begin)
            yield mixtures, *mixtures.draw_clear(count, margin, rng)
        mixtures = move(mixtures, rng)


def _first(n, blocks):
    """Return the first n examples of a sequence of blocks, and their labels."""
    taken, missing = [], n
    while missing > 0:
        _, X, y = next(blocks)
        taken.append((X[:missing], y[:missing]))
        missing -= len(X)
    return _stack(taken)


def _stack(blocks):
    """Return a list of pairs (X, y) as one pair."""
    rows, labels = zip(*blocks, strict=True)
    return np.concatenate(rows), np.concatenate(labels)


_COUNT = Real("a positive integer", lambda value: value > 0)  # of whole numbers
_RANGES = {  # what a parameter must be
    "n": _COUNT, "components": _COUNT, "every": _COUNT, "digits": _COUNT, "box": check_positive, "width": check_positive,
    "margin": check_not_negative, "drift": check_not_negative, "speed": check_not_negative,
    "wander": check_not_negative, "turn": check_finite,
}


def _check(function, widths=(1.0, 1.0), **values):
    for name, value in values.items():
        rule = _RANGES[name]
        is_good = rule.accepts(value) and (rule is not _COUNT or isinstance(value, Integral))
        _require(function, name, value, is_good, rule.expected)
    is_pair = isinstance(widths, (tuple, list)) and len(widths) == 2 and all(map(check_positive.accepts, widths))
    _require(function, "widths", widths, is_pair and widths[0] <= widths[1], "two positive numbers, the smaller one first")


def _require(function, name, value, holds, expected):
    if not holds:
        raise ValueError(f"The '{name}' parameter of {function} must be {expected}. Got {value!r} instead.")
