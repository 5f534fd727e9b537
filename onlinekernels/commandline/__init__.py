"""The commands of ``python -m onlinekernels`` that work on data: learn, predict, show.

``specifications`` turns words such as ``gaussian:2.0`` into objects, ``tallies`` counts mistakes,
``checkpoints`` writes a model together with its place in the stream, ``progress`` draws a bar;
``learning``, ``predicting`` and ``showing`` are the commands themselves, and ``options`` what they share.
"""

from onlinekernels.commandline.learning import add_learn
from onlinekernels.commandline.predicting import add_predict
from onlinekernels.commandline.showing import add_show

__all__ = ["add_learn", "add_predict", "add_show"]
