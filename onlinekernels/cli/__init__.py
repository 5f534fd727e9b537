"""The commands of ``python -m onlinekernels``: learn, evaluate, predict and show work on data; demo is a tour."""
