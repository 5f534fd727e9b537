"""Losses: the public names of `onlinekernels.nouns`."""
from onlinekernels.nouns.losses import *  # noqa: F403
