"""What the experiments share about learners: mistakes of one pass, and today's choice without tuning."""

import numpy as np

from onlinekernels.algorithms import SILK
from onlinekernels.evaluate.progress import progress_bar
from onlinekernels.video import Background

__all__ = [
    "UNTUNED",
    "digits_of",
    "gap",
    "guesses",
    "images_of",
    "mistaken",
    "mistakes",
    "standard_error",
    "untuned",
    "watch",
]

UNTUNED = "SILK, untuned"
_LOSSES = {
    "binary": "hinge",
    "multiclass": "multiclasshinge",
    "structured": "graphhinge",
    "novelty": "nunovelty",
    "regression": "squared",
}


def untuned(task, **given):
    """Return the learner that we would try first, with nothing chosen for the stream.

    It is one more curve in every experiment. When a better one is in the library, this is the line to change.

    Parameters
    ----------
    task : {"binary", "multiclass", "structured", "novelty", "regression", "video"}
        What is learned.
    **given
        What belongs to the problem and not to the learner, such as ``labels``, or ``height`` and ``width`` of a video.

    Examples
    --------
    >>> from onlinekernels.experiments import untuned
    >>> untuned("multiclass")
    SILK(loss='multiclasshinge', budget=512, scale=True)
    """
    if task == "video":
        return Background(**given)
    settings = {"budget": 512, "scale": True, "scale_target": task == "regression"}
    return SILK(_LOSSES[task], **{**settings, **given})


def mistakes(model, X, y, classes=None):
    """Return which examples of one pass are mistakes, each before it is learned.

    A mistake is y f <= 0, K (25), and with many classes f(x, y) <= f(x, l) for another label l. So a tie is one,
    and the first example always.

    Examples
    --------
    >>> from onlinekernels import Perceptron
    >>> from onlinekernels.experiments.learners import mistakes
    >>> mistakes(Perceptron("linear"), [[-1.0], [-2.0], [3.0]], [-1, -1, 1])
    array([ True, False, False])
    """
    scores = model.progressive(X, y, classes=classes)
    return mistaken(model.classes_, scores, y)


def mistaken(classes, scores, y):
    """Which scores are mistakes for the labels y."""
    places = np.argmax(np.asarray(y)[:, None] == np.asarray(classes), axis=1)
    if scores.ndim == 1:
        return (2 * places - 1) * scores <= 0
    rows = np.arange(len(scores))
    others = scores.copy()
    others[rows, places] = -np.inf
    return scores[rows, places] <= others.max(axis=1)


def standard_error(values):
    """Standard error of the mean of independent values.

    Examples
    --------
    >>> from onlinekernels.experiments.learners import standard_error
    >>> standard_error([1.0, 3.0])
    1.0
    """
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


def gap(first, second):
    """By how much `second` exceeds `first` in the mean, run by run, and the standard error of that."""
    gaps = np.subtract(second, first)
    return float(gaps.mean()), standard_error(gaps)


def guesses(model, scores):
    """Labels that scores stand for; a score of 0 for two classes is the first, as in `predict`."""
    places = scores.argmax(axis=1) if scores.ndim == 2 else (scores > 0).astype(int)
    return model.classes_[places]


def watch(items):
    """Give the items one after the other; on a terminal, with a progress bar if tqdm is there."""
    items = list(items)
    with progress_bar(None, len(items), " runs") as advance:
        for item in items:
            yield item
            advance(1)


def digits_of(data, part="train"):
    """Pixels of USPS between -1 and 1 as rows, and the digits."""
    usps = data.load("usps")
    return usps[f"X_{part}"] / 1000.0, usps[f"y_{part}"].astype(int)


def images_of(data, most=None):
    """Images of MNIST as rows of length 1 in float32, and the digits."""
    mnist = data.load("mnist")
    X = mnist["X_train"][:most].reshape(-1, 784).astype(np.float32)
    return X / np.linalg.norm(X, axis=1, keepdims=True), mnist["y_train"][:most].astype(int)
