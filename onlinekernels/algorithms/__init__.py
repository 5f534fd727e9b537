"""The algorithms, one short file per family.

Those that are made of other models are imported when they are first named: most programs name none.
"""
import importlib
from typing import TYPE_CHECKING

from onlinekernels.algorithms.adatron import Adatron
from onlinekernels.algorithms.budgeted import Forgetron, Projectron
from onlinekernels.algorithms.implicit import ILK, SILK, PassiveAggressive
from onlinekernels.algorithms.lasvm import LASVM
from onlinekernels.algorithms.margin import ALMA, ROMMA, Ballseptron, VotedPerceptron
from onlinekernels.algorithms.metadescent import SVMD
from onlinekernels.algorithms.norma import NORMA, Perceptron
from onlinekernels.algorithms.projection import Projection
from onlinekernels.algorithms.recursive import KRLS

if TYPE_CHECKING:
    from onlinekernels.algorithms.detector import OnlineKernelDetector
    from onlinekernels.algorithms.ensembles import Hedge, Stacking
    from onlinekernels.algorithms.frontdoor import OnlineKernelClassifier, OnlineKernelRegressor
    from onlinekernels.algorithms.selftuned import SelfTuned
    from onlinekernels.algorithms.smoother import Smoother

__all__ = [
    "ALMA",
    "Adatron",
    "Ballseptron",
    "Forgetron",
    "Hedge",
    "ILK",
    "KRLS",
    "LASVM",
    "NORMA",
    "OnlineKernelClassifier",
    "OnlineKernelDetector",
    "OnlineKernelRegressor",
    "PassiveAggressive",
    "Perceptron",
    "Projection",
    "Projectron",
    "ROMMA",
    "SILK",
    "SVMD",
    "SelfTuned",
    "Smoother",
    "Stacking",
    "VotedPerceptron",
]

LATER = {
    "Hedge": "ensembles",
    "OnlineKernelClassifier": "frontdoor",
    "OnlineKernelDetector": "detector",
    "OnlineKernelRegressor": "frontdoor",
    "SelfTuned": "selftuned",
    "Smoother": "smoother",
    "Stacking": "ensembles",
}


def __getattr__(name):
    """What is in `LATER`, from the file that is said there."""
    if name not in LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value = getattr(importlib.import_module(f"{__name__}.{LATER[name]}"), name)
    return value


def __dir__():
    return sorted({*globals(), *LATER})
