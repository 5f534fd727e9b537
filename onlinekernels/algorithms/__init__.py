"""The algorithms, one short file per family."""
from onlinekernels.algorithms.implicit import ILK, SILK, PassiveAggressive
from onlinekernels.algorithms.metadescent import SVMD
from onlinekernels.algorithms.norma import NORMA, Perceptron

__all__ = ["ILK", "NORMA", "PassiveAggressive", "Perceptron", "SILK", "SVMD"]
