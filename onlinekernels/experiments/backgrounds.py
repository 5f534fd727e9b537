"""What Figures 2 and 3 of I share: the foreground of videos by one small detector per pixel."""

import numpy as np

from onlinekernels.experiments.learners import untuned
from onlinekernels.experiments.panels import Images
from onlinekernels.video import Background, Clip

__all__ = ["NORMA", "RATES", "REGULARIZATIONS", "SILK", "UNTUNED", "area", "clip_of", "recovery", "roc", "scores_of", "strip"]

SILK, NORMA, UNTUNED = "SILK", "truncated NORMA", "Background, untuned"
TERMS = 20  # I 4
# How much one frame may change a pixel's function: SILK's penalty, NORMA's step.
RATES = (0.05, 0.1, 0.25, 0.5)
REGULARIZATIONS = (0.0, 0.1, 2.0)
_RULES = {SILK: ("silk", "penalty"), NORMA: ("norma", "step")}
THRESHOLD = 0.5


def scores_of(name, clip, width=None, rate=None, regularization=0.0):
    """f of each pixel before it learns its colour; `name` is one of the three above."""
    height, columns = clip.frames.shape[1:3]
    if name == UNTUNED:
        return untuned("video", height=height, width=columns).progressive(clip.frames)
    rule, parameter = _RULES[name]
    made = Background(
        height, columns, rule=rule, kernel_width=width, budget=TERMS, regularization=regularization, **{parameter: rate}
    )
    return made.progressive(clip.frames)


def clip_of(arrays):
    """The arrays of a data set as a clip."""
    return Clip(arrays["frames"], arrays["mask"] != 0, arrays["has_mask"].astype(bool))


def roc(scores, masks, most=400):
    """False and true positive rates over all thresholds, thinned; low scores are foreground.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinekernels.experiments.backgrounds import roc
    >>> false, true = roc(np.array([0.1, 0.2, 0.9, 0.8]), np.array([True, False, False, True]))
    >>> false.tolist(), true.tolist()
    ([0.0, 0.0, 0.5, 0.5, 1.0], [0.0, 0.5, 0.5, 1.0, 1.0])
    """
    order = np.argsort(scores, axis=None)
    ranked, truth = scores.ravel()[order], masks.ravel()[order]
    ends = np.append(np.flatnonzero(np.diff(ranked)), len(ranked) - 1)  # equal scores have one threshold
    true = np.concatenate([[0], np.cumsum(truth)[ends]]) / truth.sum()
    false = np.concatenate([[0], np.cumsum(~truth)[ends]]) / (~truth).sum()
    return (false, true) if most is None or len(false) <= most else _thin(false, true, most)


def _thin(false, true, most):
    """A few of many points of a curve, denser where it is steep."""
    half = np.searchsorted(false, np.geomspace(1e-4, 1.0, most // 2))
    other = np.searchsorted(true, np.linspace(0.0, 1.0, most // 2))
    places = np.unique(np.clip(np.concatenate([[0], half, other, [len(false) - 1]]), 0, len(false) - 1))
    return false[places], true[places]


def area(scores, masks, most=1.0):
    """Area under the ROC curve up to a rate `most` of false positives, as a share of the whole strip.

    It is the mean of the true positive rate over that part of the axis.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinekernels.experiments.backgrounds import area
    >>> scores, masks = np.array([0.1, 0.5, 0.5, 0.8]), np.array([True, True, False, False])
    >>> area(scores, masks)
    0.875
    >>> area(scores, masks, most=0.25)
    0.625
    """
    false, true = roc(scores, masks, most=None)
    within = false <= most
    false, true = np.append(false[within], most), np.append(true[within], np.interp(most, false, true))
    return float(np.sum(np.diff(false) * (true[1:] + true[:-1])) / 2 / most)


def recovery(scores, masks, change, level=0.05, most=60):
    """Frames after a change until less than a share `level` of the background looks like foreground."""
    for later in range(most):
        frame = change + later
        if frame >= len(scores) or np.mean(scores[frame][~masks[frame]] < THRESHOLD) < level:
            return later
    return most


def strip(title, clip, scores, moments, levels=None):
    """Frames, their truth, and what each detector takes for foreground, one column for each moment.

    `levels` are the thresholds of the detectors by name, if they are not the usual one.
    """
    levels = levels or {}
    rows = {"frame": clip.frames, "truth": clip.masks}
    rows |= {name: found < levels.get(name, THRESHOLD) for name, found in scores.items()}
    images = [part[moment] for part in rows.values() for moment in moments]
    return Images(
        title, images, columns=len(moments), captions=[f"frame {moment}" for moment in moments], rows=list(rows)
    )
