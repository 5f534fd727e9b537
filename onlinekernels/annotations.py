"""Names of types in annotations; nothing imports this at run time."""
from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy.typing as npt
from numpy.random import Generator
from numpy.typing import ArrayLike

from onlinekernels.bank import Bank
from onlinekernels.base.estimator import Estimator
from onlinekernels.budgets import Budget
from onlinekernels.preprocessing.encoding import RunningEncoder
from onlinekernels.kernels import Kernel
from onlinekernels.losses import Loss
from onlinekernels.preprocessing.scaling import RunningScaler
from onlinekernels.steps import Step
from onlinekernels.labels import LabelStructure

if TYPE_CHECKING:
    from typing_extensions import Self  # type checkers bring it; of Python itself from 3.11 on

__all__ = [
    "Any", "Array", "ArrayLike", "Bank", "Budget", "Callable", "ClassWeight", "Estimator", "Examples", "Executor",
    "Generator", "Kernel", "KernelLike", "LabelStructure", "Loss", "Members", "Path",
    "RunningEncoder", "RunningScaler", "Self", "Sequence", "Step",  # noqa: F822
]

Array: TypeAlias = npt.NDArray[Any]
# Rows: arrays, sparse matrices, data frames, lists of lists or dictionaries; objects, if the kernel takes them
Examples: TypeAlias = Any
Path: TypeAlias = "str | os.PathLike[str]"
KernelLike: TypeAlias = "Kernel | str | Callable[[Any, Any], float]"
ClassWeight: TypeAlias = "Mapping[Any, float] | str"
Members: TypeAlias = "Sequence[Estimator] | Mapping[str, Estimator]"
