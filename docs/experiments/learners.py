"""What the experiments share about learners: mistakes of one pass, and today's choice without tuning."""
import numpy as np

from onlinekernels import SILK

UNTUNED = "SILK, untuned"
LOSSES = {"binary": "hinge", "multiclass": "multiclasshinge", "structured": "graphhinge", "novelty": "nunovelty",
          "regression": "squared"}


def untuned(task, **given):
    """The learner that we would try first, with nothing chosen for the stream: one more curve in every experiment.

    `given` is what belongs to the problem and not to the learner, such as ``labels``.

    Examples
    --------
    >>> from experiments.learners import untuned
    >>> untuned("multiclass")
    SILK(loss='multiclasshinge', budget=512, scale=True)
    """
    settings = {"budget": 512, "scale": True, "scale_target": task == "regression"}
    return SILK(LOSSES[task], **{**settings, **given})


def mistakes(model, X, y, classes=None):
    """Which examples of one pass are mistakes, each before it is learned.

    A mistake is y f <= 0, K (25), and with many classes f(x, y) <= f(x, l) for another label l. So a tie is one,
    and the first example always.

    Examples
    --------
    >>> from onlinekernels import Perceptron
    >>> from experiments.learners import mistakes
    >>> mistakes(Perceptron("linear"), [[-1.0], [-2.0], [3.0]], [-1, -1, 1])
    array([ True, False, False])
    """
    scores = model.progressive(X, y, classes=classes)
    return mistaken(model.classes_, scores, y)


def mistaken(classes, scores, y):
    """Which scores are mistakes for the labels y."""
    columns = np.argmax(np.asarray(y)[:, None] == np.asarray(classes), axis=1)
    if scores.ndim == 1:
        return (2 * columns - 1) * scores <= 0
    rows = np.arange(len(scores))
    others = scores.copy()
    others[rows, columns] = -np.inf
    return scores[rows, columns] <= others.max(axis=1)


def rate(wrong):
    """An error rate in words."""
    return f"{100 * np.mean(wrong):.1f}%"


def averages(wrong):
    """The average of a sequence so far, after each of its members.

    Examples
    --------
    >>> from experiments.learners import averages
    >>> averages([1, 0, 0, 1]).tolist()
    [1.0, 0.5, 0.3333333333333333, 0.5]
    """
    wrong = np.asarray(wrong, dtype=float)
    return np.cumsum(wrong) / np.arange(1, len(wrong) + 1)


def standard_error(values):
    """Standard error of the mean of independent values."""
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


def gap(first, second):
    """By how much `second` exceeds `first` in the mean, run by run, and the standard error of that."""
    gaps = np.subtract(second, first)
    return float(gaps.mean()), standard_error(gaps)


def watch(items):
    """The items; on a terminal, with a progress bar if tqdm is there."""
    try:
        from tqdm import tqdm
    except ImportError:
        return items
    return tqdm(list(items), unit=" runs", leave=False, disable=None)  # None: without a terminal


def digits_of(data, part="train"):
    """Pixels of USPS between -1 and 1 as rows, and the digits."""
    usps = data.load("usps")
    return usps[f"X_{part}"] / 1000.0, usps[f"y_{part}"].astype(int)


def images_of(data, most=None, part="train"):
    """Images of MNIST as rows of length 1 in float32, and the digits."""
    mnist = data.load("mnist")
    X = mnist[f"X_{part}"][:most].reshape(-1, 784).astype(np.float32)
    return X / np.linalg.norm(X, axis=1, keepdims=True), mnist[f"y_{part}"][:most].astype(int)
