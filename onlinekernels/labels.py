"""Structures of labels: the public names of `onlinekernels.nouns`."""
from onlinekernels.nouns.structures import *  # noqa: F403
