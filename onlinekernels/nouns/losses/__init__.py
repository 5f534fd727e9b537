"""Losses: a file for each task, what they share in `contract`, and all of them by name.

Conventions at kinks: the two-class hinges count a tie y f = margin as a margin error (K (14)); novelty
only f < margin; the regression losses only |y - f| > width, or f other than y; the hinges of many classes
only a positive loss (V (17)), and the runner-up is the first label in class order among equals.
"""
from onlinekernels.nouns.losses.binary import Hinge, Logistic, NuHinge
from onlinekernels.nouns.losses.contract import Loss
from onlinekernels.nouns.losses.multiclass import (
    GraphHinge, MulticlassHinge, MulticlassLogistic, MulticlassSquared, NuGraphHinge, NuMulticlassHinge,
)
from onlinekernels.nouns.losses.multiclass import Mistake as Mistake
from onlinekernels.nouns.losses.names import LOSSES as LOSSES
from onlinekernels.nouns.losses.names import as_loss as as_loss
from onlinekernels.nouns.losses.novelty import Novelty, NuNovelty
from onlinekernels.nouns.losses.regression import (
    Absolute, ConcomitantHuber, Huber, Insensitive, NuHuber, NuInsensitive, Quantile, Squared, SquaredInsensitive,
)

__all__ = [
    "Loss", "Hinge", "NuHinge", "Logistic", "Novelty", "NuNovelty", "Squared", "Absolute", "Quantile", "Insensitive", "NuInsensitive",
    "SquaredInsensitive", "Huber", "NuHuber", "ConcomitantHuber", "MulticlassHinge", "NuMulticlassHinge", "MulticlassLogistic",
    "MulticlassSquared", "GraphHinge", "NuGraphHinge",
]
