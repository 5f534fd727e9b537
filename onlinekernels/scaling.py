"""Running scalers and encoders: the public names of `onlinekernels.nouns`."""
from onlinekernels.nouns.encoding import *  # noqa: F403
from onlinekernels.nouns.scaling import *  # noqa: F403
