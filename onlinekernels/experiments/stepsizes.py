"""What Figures 3, 4 and 6 of V share: error and step size of three learners on one pass through USPS."""

import numpy as np

from onlinekernels.experiments.experiment import Check, Results
from onlinekernels.experiments.learners import UNTUNED, mistaken, untuned, watch
from onlinekernels.experiments.panels import Lines, averages

__all__ = ["ADAPTED", "KERNEL_WIDTH", "SCHEDULED", "SINGLE", "ScheduledNuSVM", "compared", "rate"]

ADAPTED, SINGLE, SCHEDULED = "SVMD", "SVMD, memory 0", "scheduled step"
KERNEL_WIDTH = 8.0  # V 6.1
TERMS = 512


def rate(wrong):
    """An error rate in words."""
    return f"{100 * np.mean(wrong):.1f}%"


class ScheduledNuSVM:
    """V's control for the nu-trick: the online SVM whose steps, that of the margin too, follow the schedule (59).

    It is `NORMA` with regularization 1 but for the margin epsilon, whose logarithm moves as V (55)-(56) say, with
    dl/deps = 1{margin error} - nu for the printed sign. By K's rule, which is NORMA's, it may become negative.

    Parameters
    ----------
    nu, margin : float
        The fraction of margin errors, and the first margin.
    delay : float
        tau of (59). The first step is 1.
    """

    def __init__(self, nu, margin, delay):
        self.nu, self.margin, self.delay = nu, margin, delay

    def progressive(self, X, y, classes, return_steps=True):
        """Scores just before each update, and the steps; for two classes one score, that of the second."""
        self.classes_ = np.asarray(list(classes))
        places = np.searchsorted(self.classes_, y)
        binary = len(self.classes_) == 2
        scores = np.zeros((len(X), 1 if binary else len(self.classes_)))
        points = np.zeros((TERMS, X.shape[1]))
        coefficients = np.zeros((TERMS, scores.shape[1]))
        squares, used = np.zeros(TERMS), 0
        steps = np.sqrt(self.delay / (self.delay + np.arange(1, len(X) + 1)))
        margin = self.margin
        for t, (x, place, step) in enumerate(zip(X, places, steps, strict=True)):
            square = x @ x
            distances = np.maximum(0.0, squares + square - 2 * (points @ x))
            scores[t] = np.exp(-distances / (2 * KERNEL_WIDTH**2)) @ coefficients
            gradient = np.zeros(scores.shape[1])
            if binary:
                sign = 2 * place - 1
                if sign * scores[t, 0] <= margin:
                    gradient[0] = -sign
            else:
                others = np.where(np.arange(len(gradient)) == place, -np.inf, scores[t])
                other = others.argmax()
                if margin + scores[t, other] - scores[t, place] > 0:
                    gradient[place], gradient[other] = -1.0, 1.0
            coefficients *= 1 - step
            if gradient.any():  # a circular buffer of the latest non-zero terms, V 5.5
                points[used % TERMS], squares[used % TERMS] = x, square
                coefficients[used % TERMS] = -step * gradient
                used += 1
            margin *= np.exp(-step * margin * (float(gradient.any()) - self.nu))  # (55), (56)
        self.margin_ = margin
        return scores[:, 0] if binary else scores, steps


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
