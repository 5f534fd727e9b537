"""Checks of what callers give."""
import numbers
from collections.abc import Mapping

import numpy as np

from onlinekernels.evaluate.subjects import is_fitted, is_pipeline, learns_in_parts, parts_of, subject
from onlinekernels.model.learner import OnlineLearner
from onlinekernels.validation import bad_parameter


def check_model(name, model):
    """Models of this library, estimators of scikit-learn that learn in parts, pipelines of such."""
    steps, last = parts_of(model)
    learns = isinstance(last, OnlineLearner) or hasattr(last, "partial_fit") and hasattr(last, "predict")
    if not learns and not is_pipeline(model):
        raise TypeError(f"{name} must be an online learner such as NORMA(). Got {model!r} instead.")
    if not learns or isinstance(last, OnlineLearner) and not hasattr(last, "progressive"):
        raise TypeError(f"{name} must learn one example after the other. {type(last).__name__} learns by fit only.")
    for step in steps:
        if not learns_in_parts(step) and not is_fitted(step):
            raise TypeError(
                f"{name} must be a pipeline whose steps can learn in parts. {type(step).__name__} has no partial_fit: "
                "fit it before, and it stays as it is, or take RunningScaler or another step that has."
            )
    subject(model)  # knows whether it is for a task of ours


def check_models(models):
    if not isinstance(models, Mapping) or not models:
        raise TypeError(f"models must be a dict {{name: model}} with at least one model. Got {models!r} instead.")
    names = {}
    for name, model in models.items():
        check_model(f"models[{name!r}]", model)
        steps, last = parts_of(model)
        for part in (*steps, last):
            if names.setdefault(id(part), name) != name:
                raise ValueError(
                    f"models must be different objects, as each learns. {names[id(part)]!r} and {name!r} are one, or "
                    "share a step."
                )
    tasks = {name: subject(model).task for name, model in models.items()}
    # Mistakes are mistakes, whichever loss of a classifier counts them.
    if len({"classes" if task in ("binary", "multiclass") else task for task in tasks.values()}) > 1:
        raise ValueError(f"models must all be for the same task, so that errors compare. Got {tasks} instead.")


def checked_count(owner, name, value, least=1):
    if not isinstance(value, numbers.Integral) or isinstance(value, (bool, np.bool_)) or value < least:
        raise bad_parameter(owner, name, f"an integer of at least {least}", value)
    return int(value)
