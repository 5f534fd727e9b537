"""Losses: a file for each task, what they share in `base`, and all of them by name.

Conventions at kinks: the two-class hinges count a tie y f = margin as a margin error (K (14)); novelty
only f < margin; the regression losses only |y - f| > width, or f other than y; the hinges of many classes
only a positive loss (V (17)), and the runner-up is the first label in class order among equals.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from onlinekernels.base.validation import bad_parameter
from onlinekernels.losses import binary, multiclass, regression
from onlinekernels.losses.base import Loss
from onlinekernels.losses.binary import *  # noqa: F403
from onlinekernels.losses.multiclass import *  # noqa: F403
from onlinekernels.losses.multiclass import Mistake as Mistake
from onlinekernels.losses.regression import *  # noqa: F403

if TYPE_CHECKING:
    from onlinekernels.annotations import Any

__all__ = ["Loss"]
__all__ += binary.__all__  # each on a line of its own: so type checkers read it
__all__ += regression.__all__
__all__ += multiclass.__all__

LOSSES = {name.lower(): getattr(family, name) for family in (binary, regression, multiclass) for name in family.__all__}


def as_loss(value: Any, owner: Any, default: Any = binary.Hinge) -> Any:
    """A loss from what a user may give: a loss, its name, or None for the default."""
    if value is None:
        return default()
    if isinstance(value, str):
        name = value.lower().replace("_", "").replace("-", "")
        if name not in LOSSES:
            raise bad_parameter(owner, "loss", f"a loss or one of {', '.join(sorted(LOSSES))}", value)
        return LOSSES[name]()
    if not isinstance(value, Loss):
        raise bad_parameter(owner, "loss", "a loss such as Hinge(), its name, or None", value)
    value.validate()
    return value
