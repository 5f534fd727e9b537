"""Step sizes: the public names of `onlinekernels.nouns`."""
from onlinekernels.nouns.steps import *  # noqa: F403
