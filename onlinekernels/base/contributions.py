"""What stored examples contribute to a score."""
import numbers
from collections import namedtuple

import numpy as np

__all__ = ["Contribution", "checked_top", "largest"]

Contribution = namedtuple("Contribution", "value place point coefficient kernel")
Contribution.__doc__ = """What one stored example contributes to a score: value = coefficient * kernel."""


def checked_top(top):
    """How many contributions to give; ValueError for what is no such number."""
    if top is not None and (not isinstance(top, numbers.Integral) or isinstance(top, bool) or top < 0):
        raise ValueError(f"top must be a number of terms, or None for all. Got {top!r} instead.")
    return top


def largest(points, coefficients, kernel, top):
    """The `top` contributions of so many points, all for None, the largest in size first."""
    values = coefficients * kernel
    order = np.argsort(-np.abs(values), kind="stable")[:top]
    return [Contribution(float(values[i]), int(i), points[i], float(coefficients[i]), float(kernel[i])) for i in order]
