"""The algorithms, one short file per family."""
from onlinekernels.algorithms.adatron import Adatron
from onlinekernels.algorithms.budgeted import Forgetron, Projectron
from onlinekernels.algorithms.detector import OnlineKernelDetector
from onlinekernels.algorithms.ensembles import Hedge, Stacking
from onlinekernels.algorithms.frontdoor import OnlineKernelClassifier, OnlineKernelRegressor
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
