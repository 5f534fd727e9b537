"""Banks: many small models of one kind, one per pixel, sensor or user, that learn in one call."""
from onlinekernels.bank.models import Bank

__all__ = ["Bank"]
