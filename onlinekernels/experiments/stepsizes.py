"""What Figures 3, 4 and 6 of V share: error and step size of three learners on one pass through USPS."""

import numpy as np

from onlinekernels.algorithms import NORMA
from onlinekernels.experiments.experiment import Check, Results
from onlinekernels.experiments.learners import UNTUNED, mistaken, untuned, watch
from onlinekernels.experiments.panels import Lines, averages
from onlinekernels.nouns.kernels import Gaussian
from onlinekernels.nouns.steps import Decaying

__all__ = ["ADAPTED", "KERNEL_WIDTH", "SCHEDULED", "SINGLE", "TERMS", "compared", "rate", "scheduled"]

ADAPTED, SINGLE, SCHEDULED = "SVMD", "SVMD, memory 0", "scheduled step"
KERNEL_WIDTH = 8.0  # V 6.1
TERMS = 512


def rate(wrong):
    """An error rate in words."""
    return f"{100 * np.mean(wrong):.1f}%"


def scheduled(loss, delay):
    """V's control for the nu-trick: the online SVM whose steps follow the schedule (59), with a first step of 1.

    The margin moves as V (55)-(56) say, with dl/deps = 1{margin error} - nu for the printed sign. By K's rule it may
    become negative.
    """
    return NORMA(loss.set_params(margin_step="log"), Gaussian(KERNEL_WIDTH), step=Decaying(1.0, delay), regularization=1.0,
                 budget=TERMS)


def compared(models, streams, task, classes, paper):
    """Run fresh learners on each stream; a table, panels, and the check of their order.

    Parameters
    ----------
    models : callable
        ``models(n)`` returns learners by name for a stream of n examples.
    streams : list of (X, y)
        One per seed. Curves are those of the first, figures are means over all.
    task : str
        For the learner without tuning.
    classes : list
        All labels.
    paper : dict
        What the paper says about each learner.
    """
    wrong, steps = {}, {}
    for X, y in watch(streams):
        for name, model in {**models(len(y)), UNTUNED: untuned(task)}.items():
            scores, history = model.progressive(X, y, classes=classes, return_steps=True)
            wrong.setdefault(name, []).append(mistaken(model.classes_, scores, y))
            steps.setdefault(name, history)
    error = {name: float(np.mean(runs)) for name, runs in wrong.items()}
    average = {name: averages(runs[0]) for name, runs in wrong.items()}
    table = [
        {"learner": name, "error": rate(error[name]), "paper": paper.get(name), "last step": steps[name][-1]}
        for name in error
    ]
    panels = [
        Lines("average error so far", "examples", "error", average, logarithmic=("x",), percent=True),
        Lines(
            "step size", "examples", "step", {name: steps[name] for name in (ADAPTED, SINGLE, SCHEDULED)}, ("x", "y")
        ),
    ]
    found = f"{rate(error[ADAPTED])}, {rate(error[SINGLE])}, {rate(error[SCHEDULED])}"
    order = error[ADAPTED] < error[SINGLE] < error[SCHEDULED]
    check = Check("SVMD errs less than with memory 0, and that less than the schedule", found, order)
    return error, Results(table=table, panels=panels, checks=[check])
