"""Scores on [0, 1], where river's metrics expect them."""
import math

import numpy as np


class Usual:
    """Mean and deviation of the scores of a stream, by which others are put on [0, 1].

    >>> usual = Usual()
    >>> usual.add([1.0, 3.0])
    >>> usual.mean, usual.deviation
    (2.0, 1.0)
    >>> usual.unit(np.array([2.0, 3.0, 5.0]), usual.mean)
    array([0.5  , 0.75 , 0.875])
    """

    def __init__(self):
        self.count = 0
        self.mean = 0.0
        self._square = 0.0  # sum of squares about the mean

    def add(self, scores):
        """Take in scores, one after the other."""
        for score in map(float, scores):
            self.count += 1
            ahead = score - self.mean
            self.mean += ahead / self.count
            self._square += ahead * (score - self.mean)

    @property
    def deviation(self):
        """1 as long as all scores are the same."""
        return math.sqrt(self._square / self.count) if self._square > 0 else 1.0

    def unit(self, scores, middle):
        """Scores as numbers in (0, 1), in the same order: 1/2 at the middle, 3/4 one deviation above it.

        A deviation further halves the rest only slowly, so that scores far away can still be told apart.
        """
        ahead = (scores - middle) / self.deviation
        return 0.5 * (1.0 + ahead / (1.0 + np.abs(ahead)))
