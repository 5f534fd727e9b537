"""A short quasi-Newton descent: a few steps of L-BFGS, all that a warm start needs."""
import math

import numpy as np

__all__ = ["minimize"]

MEMORY = 8  # pairs of steps and changes of the gradient
LONGEST = 2.0  # that a step may be in any coordinate
HALVINGS = 12  # before a line is given up


def minimize(function, start, steps):
    """(point, value) after at most so many steps downhill; never above the start.

    Parameters
    ----------
    function : callable
        Point to (value, gradient). A value that is not finite is a step too far.
    start : array
    steps : int

    Notes
    -----
    The two loops of Nocedal, "Updating quasi-Newton matrices with limited storage", 1980, with backtracking along the line
    by the parabola through what is known, until the value has fallen by Armijo's rule. Coordinates are logarithms here, so
    a step of `LONGEST` is a factor of seven, and longer ones are shortened.

    Examples
    --------
    >>> def bowl(x):
    ...     return 0.5 * np.sum([1.0, 100.0] * x**2), [1.0, 100.0] * x
    >>> point, value = minimize(bowl, np.array([1.0, 1.0]), 20)
    >>> bool(value < 1e-12)
    True
    """
    point = np.array(start, dtype=float)
    value, gradient = function(point)
    pairs = []
    for _ in range(steps):
        move = _direction(gradient, pairs)
        largest = np.abs(move).max(initial=0.0)
        if largest > LONGEST:
            move *= LONGEST / largest
        slope = float(gradient @ move)
        if not slope < 0.0:
            break
        found = _along(function, point, value, move, slope)
        if found is None:
            break
        reached, lower, steeper = found
        step, change = reached - point, steeper - gradient
        if step @ change > 1e-10 * math.sqrt((step @ step) * (change @ change)):
            pairs = [*pairs[1 - MEMORY :], (step, change)] if len(pairs) == MEMORY else [*pairs, (step, change)]
        point, value, gradient = reached, lower, steeper
    return point, value


def _direction(gradient, pairs):
    """Minus the inverse of the curvature, as far as the pairs know it, times the gradient."""
    move, shares = -gradient, []
    if not pairs:
        return move / max(1.0, np.abs(gradient).max(initial=0.0))
    for step, change in reversed(pairs):
        share = (step @ move) / (step @ change)
        shares.append(share)
        move = move - share * change
    step, change = pairs[-1]
    move = move * ((step @ change) / (change @ change))
    for (step, change), share in zip(pairs, reversed(shares), strict=True):
        move = move + (share - (change @ move) / (step @ change)) * step
    return move


def _along(function, point, value, move, slope):
    """(point, value, gradient) on a line where the value has fallen enough; None if it does not."""
    length = 1.0
    for _ in range(HALVINGS):
        there = point + length * move
        new, gradient = function(there)
        if new <= value + 1e-4 * length * slope and np.isfinite(gradient).all():
            return there, new, gradient
        rise = new - value - slope * length  # above the tangent
        shorter = -slope * length**2 / (2.0 * rise) if math.isfinite(rise) and rise > 0.0 else 0.0
        length = min(max(shorter, 0.1 * length), 0.5 * length)
    return None
