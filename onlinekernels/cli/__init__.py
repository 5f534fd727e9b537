"""The commands of ``python -m onlinekernels``: learn, predict and show work on data; demo is a tour.

``tables`` reads rows of files and pipes, ``options`` is what the commands share, ``figures`` is what learn measures and
prints.
"""
