"""The commands of ``python -m onlinekernels``: learn, predict and show work on data; demo is a tour.

``specifications`` turns words such as ``gaussian:2.0`` into objects, ``checkpoints`` writes a model together
with its place in the stream; ``learning``, ``predicting`` and ``showing`` are the commands themselves, ``options``
what they share, and ``tour`` is what runs without a command.
"""

from onlinekernels.commandline.learning import add_learn
from onlinekernels.commandline.predicting import add_predict
from onlinekernels.commandline.reproducing import add_reproduce
from onlinekernels.commandline.showing import add_show
from onlinekernels.commandline.tour import add_demo

__all__ = ["add_demo", "add_learn", "add_predict", "add_reproduce", "add_show"]
