"""Ensembles: members that learn for themselves, and a combiner; and the default ensembles, which need no tuning.

Imported when one of them is first named, as the algorithms are.
"""
import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onlinekernels.ensemble.defaults import OnlineKernelClassifier, OnlineKernelRegressor
    from onlinekernels.ensemble.detector import OnlineKernelDetector
    from onlinekernels.ensemble.stacking import Hedge, Stacking

__all__ = ["Hedge", "OnlineKernelClassifier", "OnlineKernelDetector", "OnlineKernelRegressor", "Stacking"]

LATER = {
    "Hedge": "stacking",
    "OnlineKernelClassifier": "defaults",
    "OnlineKernelDetector": "detector",
    "OnlineKernelRegressor": "defaults",
    "Stacking": "stacking",
}


def __getattr__(name):
    """Import an ensemble from its module."""
    if name not in LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value = getattr(importlib.import_module(f"{__name__}.{LATER[name]}"), name)
    return value


def __dir__():
    return sorted({*globals(), *LATER})
