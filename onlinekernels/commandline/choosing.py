"""Which model learns if no option says so: the front door for what the target is."""

from collections import namedtuple

import numpy as np

__all__ = ["LOOKED_AT", "NO_TARGET", "Choice", "choice", "choice_by_options"]

LOOKED_AT = 1000  # rows of a file whose targets decide
WAITED_FOR = 100  # rows of live input, where only whole numbers leave it open for so long
MOST_CLASSES = 20  # distinct whole numbers that are taken for classes, if there are at least 5 rows for each
NO_TARGET = "none"

Choice = namedtuple("Choice", ["algorithm", "reason"])  # a name, and what the target is
CLASSES, NUMBERS, NOVELTY = "onlinekernelclassifier", "onlinekernelregressor", "onlinekerneldetector"
NOTHING = Choice(NOVELTY, "all columns, as there is no target: odd rows are looked for")
SEVERAL = Choice(NUMBERS, "several targets, which are numbers")


def choice_by_options(arguments):
    """The choice, if the options say what the target is; None if its values have to."""
    if arguments.target == NO_TARGET:
        return NOTHING
    if "," in (arguments.target or ""):
        return SEVERAL
    if arguments.classes is not None or arguments.label_type == "string":
        return Choice(CLASSES, "the target, whose values are names of classes")
    return None


def choice(y, live=False):
    """The choice for the first targets of a stream; None while more of them are needed, of `live` input.

    >>> import numpy as np
    >>> choice(np.array(["yes", "no"])).algorithm, choice(np.array([1.5, 2.0])).algorithm, choice(None).algorithm
    ('onlinekernelclassifier', 'onlinekernelregressor', 'onlinekerneldetector')
    >>> choice(np.array([0, 1, 1])).algorithm, choice(np.arange(100)).algorithm
    ('onlinekernelclassifier', 'onlinekernelregressor')
    >>> choice(np.array([0, 1, 1]), live=True)
    """
    if y is None:
        return NOTHING
    if y.ndim > 1:
        return SEVERAL
    if y.dtype.kind == "U":
        return Choice(CLASSES, "the target, whose values are words: classes")
    if y.dtype.kind == "f" and (y != np.floor(y)).any():
        return Choice(NUMBERS, "the target, whose values are numbers")
    if live and len(y) < WAITED_FOR:
        return None
    distinct = len(set(y.tolist()))
    found = f"the target, which has {distinct} different whole numbers in {len(y)} rows:"
    if distinct <= max(2, min(MOST_CLASSES, len(y) // 5)):
        return Choice(CLASSES, f"{found} classes, not numbers (--algorithm {NUMBERS} takes them for such)")
    return Choice(NUMBERS, f"{found} numbers, not classes (--algorithm {CLASSES} takes them for such)")
