"""Running scalers: the public names of `onlinekernels.nouns`."""
from onlinekernels.nouns.scaling import *  # noqa: F403
