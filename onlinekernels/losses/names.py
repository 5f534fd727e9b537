"""Losses by name."""
from onlinekernels.losses import binary, multiclass, novelty, regression
from onlinekernels.losses.base import Loss
from onlinekernels.base.validation import bad_parameter

__all__ = ["LOSSES", "as_loss"]

FAMILIES = (binary, novelty, regression, multiclass)
LOSSES = {name.lower(): getattr(family, name) for family in FAMILIES for name in family.__all__}


def as_loss(value, owner, default=binary.Hinge):
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
