"""Models as estimators of river: features are dictionaries, and names come and go.

`as_river` wraps any model by the task of its loss: `RiverClassifier`, `RiverRegressor` or `RiverDetector`.

A name gets a column when it is first learned, and a missing feature has the value `fill`.  For kernels whose
values do not change when points get columns of equal entries, which is all but additive and precomputed ones
as long as `fill` is 0, this is exact: the model is the one of a dense array that had all columns from the start.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

try:
    import river  # noqa: F401
except ImportError as error:
    raise ImportError("onlinekernels.compat.river needs river: pip install river pandas") from error

from onlinekernels.compat.river.classifier import RiverClassifier
from onlinekernels.compat.river.detector import RiverDetector
from onlinekernels.compat.river.regressors import RiverMultiTargetRegressor, RiverRegressor
from onlinekernels.compat.river.wrapper import task_of

if TYPE_CHECKING:
    from onlinekernels.annotations import Any

__all__ = ["RiverClassifier", "RiverDetector", "RiverMultiTargetRegressor", "RiverRegressor", "as_river"]


def as_river(model: Any, **options: Any) -> Any:
    """The wrapper for a model, by the task of its loss.

    Parameters
    ----------
    model : a model of this library
    **options
        Other parameters of the wrapper, such as `features`. With `targets`, a regressor takes and gives dictionaries of
        several targets; ``targets=None`` takes their names from the first example.

    Examples
    --------
    >>> from onlinekernels import NORMA
    >>> as_river(NORMA("squared", "linear"))
    RiverRegressor (
      model=NORMA(loss='squared', kernel='linear')
      features=None
      fill=0.
    )
    """
    regressor = RiverMultiTargetRegressor if "targets" in options else RiverRegressor
    wrappers = {"regression": regressor, "novelty": RiverDetector}
    return wrappers.get(task_of(model), RiverClassifier)(model, **options)
