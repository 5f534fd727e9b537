"""Streams of examples to learn from, one after the other.

``generators`` makes them up, as the papers do; ``series`` makes rows of a time series; ``shipped`` are three small real
streams; ``chunks`` gives rows that are in memory some at a time. Files are for pandas, polars or the command line.
"""

from onlinekernels.streams.chunks import chunks
from onlinekernels.streams.generators import (
    counting_sequence,
    drifting_gaussians,
    drifting_mixtures,
    switching_gaussians,
)
from onlinekernels.streams.series import lagged
from onlinekernels.streams.shipped import digits, sunspots, tumours

__all__ = [
    "drifting_gaussians",
    "switching_gaussians",
    "drifting_mixtures",
    "counting_sequence",
    "digits",
    "sunspots",
    "tumours",
    "chunks",
    "lagged",
]
