"""The algorithms, one short file per family, which is imported when one of them is first named: most programs name one."""
import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onlinekernels.algorithms.adatron import Adatron
    from onlinekernels.algorithms.budgeted import Forgetron, Projectron
    from onlinekernels.ensemble.detector import OnlineKernelDetector
    from onlinekernels.ensemble.stacking import Hedge, Stacking
    from onlinekernels.ensemble.defaults import OnlineKernelClassifier, OnlineKernelRegressor
    from onlinekernels.algorithms.implicit import ILK, SILK, PassiveAggressive
    from onlinekernels.algorithms.lasvm import LASVM
    from onlinekernels.algorithms.margin import ALMA, ROMMA, Ballseptron, VotedPerceptron
    from onlinekernels.algorithms.metadescent import SVMD
    from onlinekernels.algorithms.norma import NORMA, Perceptron
    from onlinekernels.algorithms.projection import Projection
    from onlinekernels.algorithms.recursive import KRLS
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
    "ALMA": "algorithms.margin",
    "Adatron": "algorithms.adatron",
    "Ballseptron": "algorithms.margin",
    "Forgetron": "algorithms.budgeted",
    "Hedge": "ensemble.stacking",
    "ILK": "algorithms.implicit",
    "KRLS": "algorithms.recursive",
    "LASVM": "algorithms.lasvm",
    "NORMA": "algorithms.norma",
    "OnlineKernelClassifier": "ensemble.defaults",
    "OnlineKernelDetector": "ensemble.detector",
    "OnlineKernelRegressor": "ensemble.defaults",
    "PassiveAggressive": "algorithms.implicit",
    "Perceptron": "algorithms.norma",
    "Projection": "algorithms.projection",
    "Projectron": "algorithms.budgeted",
    "ROMMA": "algorithms.margin",
    "SILK": "algorithms.implicit",
    "SVMD": "algorithms.metadescent",
    "SelfTuned": "algorithms.selftuned",
    "Smoother": "algorithms.smoother",
    "Stacking": "ensemble.stacking",
    "VotedPerceptron": "algorithms.margin",
}


def __getattr__(name):
    """What is in `LATER`, from the module that is said there."""
    if name not in LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value = getattr(importlib.import_module(f"onlinekernels.{LATER[name]}"), name)
    return value


def __dir__():
    return sorted({*globals(), *LATER})
