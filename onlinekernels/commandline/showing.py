"""``show``: what is in a model file."""

import os

import numpy as np

from onlinekernels.commandline import checkpoints
from onlinekernels.commandline.options import add_command
from onlinekernels.evaluate.measures import Totals
from onlinekernels.evaluate.words import headline, shown
from onlinekernels.modelfile import load

__all__ = ["add_show"]

DESCRIPTION = "Show what a model file holds: algorithm, parameters, classes, terms, and where its stream stands."
EXAMPLES = ["python -m onlinekernels show model.npz"]

_TASKS = {"binary": "two classes", "multiclass": "many classes", "regression": "numbers", "novelty": "novelty"}
# The norm takes kernel values between all terms.
_MOST_TERMS_FOR_NORM = 5000


def add_show(subcommands):
    """Add the command to the parser's subcommands."""
    parser = add_command(subcommands, "show", _show, "model", "show what a model file holds", DESCRIPTION, EXAMPLES)
    parser.add_argument("model", help="a model file")


def _show(arguments):
    path = checkpoints.found(arguments.model)
    model = load(path)
    rows = [("file", f"{path}, {os.path.getsize(path)} bytes"), ("algorithm", type(model).__name__)]
    plan = model._plan() if model._state is None else model._state.plan  # with the nouns that stand for None
    for name, value in model.get_params(deep=False).items():
        rows.append(("", f"{name} = {getattr(plan, name, value) if value is None else value!r}"))
    rows += _learned(model) if model._state is not None else [("learned", "nothing yet")]
    rows += _place(checkpoints.stream_of(path), model._current_loss().task)
    for name, text in rows:
        print(f"{name:<12}{text}")
    return 0


def _learned(model):
    task = model._current_loss().task
    yield "task", _TASKS[task]
    if task in ("binary", "multiclass"):
        yield "classes", ", ".join(map(str, model.classes_.tolist()))
    yield "examples", model.t_
    if model._state.n_features is not None:
        yield "features", model.n_features_in_
    yield "terms", model.n_terms_
    if model.n_terms_ <= _MOST_TERMS_FOR_NORM:
        yield "norm", f"{model.norm_:.6g}"
    for name in ("step_", "margin_", "width_", "offset_"):
        if hasattr(model, name):
            yield name.rstrip("_"), f"{getattr(model, name):.6g}"
    if np.any(model.intercept_):
        yield "intercept", ", ".join(f"{value:.6g}" for value in model.intercept_)


def _place(stream, task):
    if stream is None:
        return
    place, totals = stream["place"], Totals(**stream["totals"])
    if place["features"] is not None:
        yield "columns", ", ".join(place["features"])
    if place["position"] is not None:
        yield "stream", f"pass {place['epoch'] + 1}, line {place['position']['line']}"
    for name, word in headline(task):
        if totals.count:
            yield word, f"{shown(task, name, totals.mean(name))} while learning"
