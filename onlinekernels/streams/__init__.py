"""Streams of examples to learn from, one after the other.

``generators`` makes them up, as the papers do; ``readers`` reads them from files and from standard
input, chunk by chunk; ``series`` makes rows of a time series; ``shipped`` are three small real streams.
"""

from onlinekernels.streams.generators import (
    counting_sequence,
    drifting_gaussians,
    drifting_mixtures,
    switching_gaussians,
)
from onlinekernels.streams.parsers import BadRow
from onlinekernels.streams.readers import ChangedFile, Reader, read
from onlinekernels.streams.series import Lags, lagged
from onlinekernels.streams.shipped import digits, sunspots, tumours

__all__ = [
    "drifting_gaussians",
    "switching_gaussians",
    "drifting_mixtures",
    "counting_sequence",
    "digits",
    "sunspots",
    "tumours",
    "read",
    "Reader",
    "BadRow",
    "ChangedFile",
    "Lags",
    "lagged",
]
