"""Rows on their way into a model: running scalers, and encoders of words, dates and holes."""
from onlinekernels.preprocessing.encoding import RunningEncoder
from onlinekernels.preprocessing.scaling import RunningScaler

__all__ = ["RunningEncoder", "RunningScaler"]
