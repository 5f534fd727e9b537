"""The algorithms, one short file per family."""
from onlinekernels.algorithms.norma import NORMA, Perceptron

__all__ = ["NORMA", "Perceptron"]
