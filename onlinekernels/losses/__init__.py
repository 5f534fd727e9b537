"""Losses: a file for each task, what they share in `contract`, and all of them by name.

Conventions at kinks: the two-class hinges count a tie y f = margin as a margin error (K (14)); novelty
only f < margin; the regression losses only |y - f| > width, or f other than y; the hinges of many classes
only a positive loss (V (17)), and the runner-up is the first label in class order among equals.
"""
from onlinekernels.losses import binary, multiclass, novelty, regression
from onlinekernels.losses.binary import *  # noqa: F403
from onlinekernels.losses.base import Loss
from onlinekernels.losses.multiclass import *  # noqa: F403
from onlinekernels.losses.multiclass import Mistake as Mistake
from onlinekernels.losses.names import LOSSES as LOSSES
from onlinekernels.losses.names import as_loss as as_loss
from onlinekernels.losses.novelty import *  # noqa: F403
from onlinekernels.losses.regression import *  # noqa: F403

__all__ = ["Loss"]
__all__ += binary.__all__  # each on a line of its own: so type checkers read it
__all__ += novelty.__all__
__all__ += regression.__all__
__all__ += multiclass.__all__
