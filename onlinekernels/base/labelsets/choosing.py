"""Scores and probabilities of many labels, so that the largest is the one to choose."""
import numpy as np

__all__ = ["among_joined", "first_among_equals"]


def first_among_equals(probabilities, chosen):
    """Probabilities in which the label that scores choose is the first of the largest, as rounding may not leave it.

    >>> first_among_equals(np.array([[0.5, 0.5]]), np.array([1])).argmax(axis=1)
    array([1])
    """
    largest = np.take_along_axis(probabilities, chosen[:, None], axis=1)
    earlier = np.arange(probabilities.shape[1]) < chosen[:, None]
    others = np.minimum(probabilities, largest)
    return np.where(earlier & (others == largest), np.nextafter(largest, 0.0), others)


def among_joined(scores, counts):
    """Scores with minus infinity for labels that have not joined; they join in the order of their columns."""
    return np.where(np.arange(scores.shape[1]) < counts[:, None], scores, -np.inf)
