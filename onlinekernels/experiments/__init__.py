"""The papers' experiments, each with one command: ``python -m onlinekernels reproduce norma-fig2``.

One file per figure, on shared pieces: ``experiment`` says what an experiment and its results are, ``data`` where
data sets come from (``standins`` makes small ones up), ``learners`` what all use to learn, ``panels`` what is drawn,
``reporting`` what is printed and written. An experiment is a name, a claim in one sentence, and a function
``run(data, quick, seeds)`` that returns a table, panels, and checks of the claim.

The letters of the papers: K is Kivinen, Smola and Williamson, I is Cheng et al., V is Vishwanathan, Schraudolph and
Smola, H is Herbster.
"""

import importlib

from onlinekernels.experiments.data import Data, MissingData
from onlinekernels.experiments.experiment import Check, Experiment, Results
from onlinekernels.experiments.learners import untuned
from onlinekernels.experiments.reporting import described, reproduce

__all__ = [
    "Check",
    "Data",
    "Experiment",
    "MissingData",
    "NAMES",
    "Results",
    "described",
    "find",
    "reproduce",
    "untuned",
]

# A name is that of a file with an EXPERIMENT in it, with - for _.
NAMES = (
    "norma-fig2",
    "norma-fig3",
    "norma-bounds",
    "ilk-fig1",
    "ilk-fig2",
    "ilk-fig3",
    "ilk-fig4",
    "svmd-fig3",
    "svmd-fig4",
    "svmd-fig6",
    "svmd-fig7",
    "svmd-fig8",
    "herbster-speed",
    "herbster-additive",
)


def find(name):
    """Return the experiment of that name.

    Examples
    --------
    >>> from onlinekernels.experiments import find
    >>> find("norma-fig2").paper
    'K VI-A, Fig. 2'
    >>> find("norma-fig9")
    Traceback (most recent call last):
    ...
    ValueError: There is no experiment 'norma-fig9'. There are: norma-fig2, ...
    """
    if name not in NAMES:
        raise ValueError(f"There is no experiment {name!r}. There are: {', '.join(NAMES)}.")
    return importlib.import_module(f"onlinekernels.experiments.{name.replace('-', '_')}").EXPERIMENT
