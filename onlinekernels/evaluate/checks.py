"""Checks of what callers give."""
import numbers
from collections.abc import Iterable, Mapping

import numpy as np

from onlinekernels.learner import OnlineLearner
from onlinekernels.validation import bad_parameter


def check_model(name, model):
    if not isinstance(model, OnlineLearner):
        raise TypeError(f"{name} must be an online learner such as NORMA(). Got {model!r} instead.")
    if not hasattr(model, "progressive"):
        raise TypeError(f"{name} must learn one example after the other. {type(model).__name__} learns by fit only.")


def check_models(models):
    if not isinstance(models, Mapping) or not models:
        raise TypeError(f"models must be a dict {{name: model}} with at least one model. Got {models!r} instead.")
    names = {}
    for name, model in models.items():
        check_model(f"models[{name!r}]", model)
        if id(model) in names:
            raise ValueError(
                f"models must be different objects, as each learns. {names[id(model)]!r} and {name!r} are one."
            )
        names[id(model)] = name
    tasks = {name: model._current_loss().task for name, model in models.items()}
    # Mistakes are mistakes, whichever loss of a classifier counts them.
    if len({"classes" if task in ("binary", "multiclass") else task for task in tasks.values()}) > 1:
        raise ValueError(f"models must all be for the same task, so that errors compare. Got {tasks} instead.")


def checked_count(owner, name, value):
    if not isinstance(value, numbers.Integral) or isinstance(value, (bool, np.bool_)) or value < 1:
        raise bad_parameter(owner, name, "an integer of at least 1", value)
    return int(value)


def is_series(thing):
    """Whether it can be gone through, item by item; text and dicts do not count."""
    return isinstance(thing, Iterable) and not isinstance(thing, (str, bytes, Mapping))
