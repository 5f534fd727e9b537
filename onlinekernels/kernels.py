"""Kernels: the public names of `onlinekernels.nouns`."""
from onlinekernels.nouns.additive import *  # noqa: F403
from onlinekernels.nouns.kernels import *  # noqa: F403
from onlinekernels.nouns.maps import *  # noqa: F403
