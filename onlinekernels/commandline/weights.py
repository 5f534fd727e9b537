"""Weights that balance classes while they come."""

from collections import Counter

import numpy as np

__all__ = ["Balance"]


class Balance:
    """Weights n / (classes * examples of its class) for each example, counted up to and including it.

    They tend to what ``class_weight="balanced"`` of `fit` gives, which sees all labels beforehand. Immutable.

    >>> weights, after = Balance().advanced(["sun", "sun", "rain", "sun"])
    >>> weights.round(3).tolist(), after.counts
    ([1.0, 1.0, 1.5, 0.667], [['sun', 3], ['rain', 1]])
    """

    def __init__(self, counts=()):
        self.counts = [list(pair) for pair in counts]

    def advanced(self, labels):
        """(weights of some more examples, the balance after them)."""
        counts = Counter(dict(self.counts))
        weights, total = np.empty(len(labels)), counts.total()
        for i, label in enumerate(labels):
            counts[label] += 1
            weights[i] = (total + i + 1) / (len(counts) * counts[label])
        return weights, Balance(counts.items())
