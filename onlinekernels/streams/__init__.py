"""Streams of examples to learn from, one after the other.

``generators`` makes them up, as the papers do; ``shipped`` are three small real streams; ``memory`` gives rows that are
there already some at a time, and makes rows of a time series. Files are for pandas, polars or the command line.
"""
from onlinekernels.streams.generators import (
    counting_sequence, drifting_gaussians, drifting_mixtures, switching_gaussians,
)
from onlinekernels.streams.memory import chunks, lagged
from onlinekernels.streams.shipped import digits, sunspots, tumours

__all__ = ["drifting_gaussians", "switching_gaussians", "drifting_mixtures", "counting_sequence", "digits", "sunspots",
           "tumours", "chunks", "lagged"]
