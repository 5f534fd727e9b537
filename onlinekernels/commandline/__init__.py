"""The commands of ``python -m onlinekernels``: learn, predict and show work on data; demo is a tour.

``learning``, ``predicting`` and ``showing`` are the commands, ``tour`` is what runs without one, and ``options`` is
what they share. ``specifications`` turns words such as ``gaussian:2.0`` into objects, ``models`` those into a model.
``runs`` learns: ``reports`` prints, ``checkpoints`` saves, ``places`` remembers what was read, ``weights`` balances
classes, and ``interruptions`` listens for signals.
"""

from onlinekernels.commandline.learning import add_learn
from onlinekernels.commandline.predicting import add_predict
from onlinekernels.commandline.showing import add_show
from onlinekernels.commandline.tour import add_demo

__all__ = ["add_demo", "add_learn", "add_predict", "add_show"]
