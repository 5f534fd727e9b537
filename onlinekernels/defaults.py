"""Defaults that are chosen by the call, where the user gave none.

They depend on the task, on the number of features, and on whether a stream is learned or, by `fit`, a set that is all
there is. `fit` means a world that stands still: nothing is forgotten, and steps get smaller. What a user gives is used
as it is.
"""
import math

from onlinekernels.kernels import Gaussian
from onlinekernels.steps import Fixed, InverseSqrt

__all__ = ["budget", "kernel", "regularization", "step"]

AUTO = "auto"  # a budget that is chosen by the call
WIDTHS = {"binary": 0.3, "multiclass": 0.3, "regression": 0.5, "novelty": 1.0}  # of scaled features, per sqrt(d)


def kernel(loss, n_features, rows):
    """Scaled rows of d independent features are about sqrt(2 d) apart; so widths grow like sqrt(d).

    >>> from onlinekernels import Hinge, Squared
    >>> kernel(Hinge(), 4, None), kernel(Squared(), 4, None)
    (Gaussian(width=0.6), Gaussian())
    """
    return Gaussian(WIDTHS[loss.task] * math.sqrt(n_features))


def regularization(loss, n_features, rows):
    """lambda of implicit steps. A detector must remember many times 1 / nu rows."""
    if loss.task == "novelty" and loss.adapts:
        return loss.nu / 200.0
    if rows is not None and loss.task != "novelty":
        return 1.0 / rows
    return 1e-3 if loss.task == "regression" else 3e-3


def step(loss, n_features, rows):
    """eta_t of implicit steps."""
    return Fixed(1.0) if rows is None or loss.task == "novelty" else InverseSqrt(5.0)


def budget(kind):
    """A chooser for budgets of one kind: 512 terms, and 4096 where all data is there at once."""
    return lambda loss, n_features, rows: kind(512 if rows is None else 4096)
