"""The algorithms, one file per family, which is imported when one of them is first named: most programs name one."""
import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onlinekernels.algorithms.adatron import Adatron
    from onlinekernels.algorithms.classics import ALMA, ROMMA, Ballseptron, Forgetron, Projectron, VotedPerceptron
    from onlinekernels.algorithms.implicit import ILK, SILK
    from onlinekernels.algorithms.krls import KRLS
    from onlinekernels.algorithms.lasvm import LASVM
    from onlinekernels.algorithms.norma import NORMA, Perceptron
    from onlinekernels.algorithms.projection import PassiveAggressive, Projection
    from onlinekernels.algorithms.selftuned import SelfTuned
    from onlinekernels.algorithms.smoother import Smoother
    from onlinekernels.algorithms.stepsize import SVMD
    from onlinekernels.ensemble import (
        Hedge, OnlineKernelClassifier, OnlineKernelDetector, OnlineKernelRegressor, Stacking,
    )

__all__ = [
    "ALMA", "Adatron", "Ballseptron", "Forgetron", "Hedge", "ILK", "KRLS", "LASVM", "NORMA", "OnlineKernelClassifier",
    "OnlineKernelDetector", "OnlineKernelRegressor", "PassiveAggressive", "Perceptron", "Projection", "Projectron",
    "ROMMA", "SILK", "SVMD", "SelfTuned", "Smoother", "Stacking", "VotedPerceptron",
]

MODULES = {
    "algorithms.adatron": ("Adatron",),
    "algorithms.classics": ("ALMA", "ROMMA", "Ballseptron", "Forgetron", "Projectron", "VotedPerceptron"),
    "algorithms.implicit": ("ILK", "SILK"),
    "algorithms.krls": ("KRLS",),
    "algorithms.lasvm": ("LASVM",),
    "algorithms.norma": ("NORMA", "Perceptron"),
    "algorithms.projection": ("PassiveAggressive", "Projection"),
    "algorithms.selftuned": ("SelfTuned",),
    "algorithms.smoother": ("Smoother",),
    "algorithms.stepsize": ("SVMD",),
    "ensemble.defaults": ("OnlineKernelClassifier", "OnlineKernelRegressor"),
    "ensemble.detector": ("OnlineKernelDetector",),
    "ensemble.stacking": ("Hedge", "Stacking"),
}
LATER = {name: module for module, names in MODULES.items() for name in names}


def __getattr__(name):
    """Import an algorithm from its module."""
    if name not in LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value = getattr(importlib.import_module(f"onlinekernels.{LATER[name]}"), name)
    return value


def __dir__():
    return sorted({*globals(), *LATER})
