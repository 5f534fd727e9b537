"""Online learning with kernels: exact, fast, pleasant.

Everything here learns a function f(x, y) = sum_i k(x_i, x) (A_i @ kappa)[y] + b[y] by repeating three
moves: evaluate f at an example; let a rule turn the scores and the label into a linear transform of all
old coefficients and one new row of them; append that term and, if over budget, drop one.

Five components say what is learned: a kernel, a loss, a step, a budget and (for many classes) labels.  An
algorithm is a rule plus sensible defaults for the components.

The packages, each of which imports only those before it: ``_core`` (compiled: formulas, points, functions, budgets,
rules, ensembles, and the run over a stream); ``kernels losses steps budgets labels preprocessing`` (components that
users name); ``base`` (what all estimators share: parameters, validation, the plan, the state, files); ``algorithms`` (a
rule and its learners in each file) and ``ensemble``; and what uses them: ``streams bounds evaluate river``, ``bank
decomposition``, ``parallel``, ``cli``.
"""
import importlib
from typing import TYPE_CHECKING, Any

from onlinekernels import algorithms as _algorithms
from onlinekernels.base.status import LearningWarning
from onlinekernels import budgets as _budgets
from onlinekernels import kernels as _kernels
from onlinekernels import losses as _losses
from onlinekernels.budgets import *  # noqa: F403
from onlinekernels.kernels import *  # noqa: F403
from onlinekernels.losses import *  # noqa: F403
from onlinekernels.preprocessing import RunningEncoder, RunningScaler
from onlinekernels.steps import Decaying, Fixed, InverseSqrt, MetaDescent
from onlinekernels.labels import LabelGraph, Labels, Taxonomy

if TYPE_CHECKING:
    from onlinekernels.algorithms import *  # noqa: F403
    from onlinekernels.bank import Bank
    from onlinekernels.decomposition import KernelHebbian
    from onlinekernels.base.files import load
    from onlinekernels.kernels import Constant, Kernel, Normalized, Precomputed  # noqa: F401
    from onlinekernels.kernels.elementary import *  # noqa: F403
    from onlinekernels.losses import Loss  # noqa: F401
    from onlinekernels.losses.binary import *  # noqa: F403
    from onlinekernels.losses.multiclass import *  # noqa: F403
    from onlinekernels.losses.regression import *  # noqa: F403
    from onlinekernels.parallel import combine

__version__ = "1.0.0"

__all__ = [
    *_algorithms.__all__,
    *_budgets.__all__[1:],  # without their base
    "Bank",
    "KernelHebbian",
    *_kernels.__all__,
    "LabelGraph",
    "Labels",
    "Taxonomy",
    *_losses.__all__,
    "RunningEncoder",
    "RunningScaler",
    "LearningWarning",
    "Decaying",
    "Fixed",
    "InverseSqrt",
    "MetaDescent",
    "combine",
    "load",
]

# Modules and names that are imported when they are first named
MODULES = ("bank", "bounds", "decomposition", "evaluate", "parallel", "preprocessing", "river", "streams")
LATER = {
    **dict.fromkeys(_algorithms.__all__, "algorithms"),
    "Bank": "bank",
    "KernelHebbian": "decomposition",
    "combine": "parallel",
    "load": "base.files",
}


def __getattr__(name: str) -> Any:
    """What is in `MODULES` and `LATER`."""
    if name in MODULES:
        return importlib.import_module(f"onlinekernels.{name}")
    if name not in LATER:
        raise AttributeError(f"module 'onlinekernels' has no attribute {name!r}")
    globals()[name] = value = getattr(importlib.import_module(f"onlinekernels.{LATER[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *MODULES, *LATER})
