"""``show``: what is in a model file."""

import os

import numpy as np

from onlinekernels.commandline import checkpoints
from onlinekernels.commandline.options import add_command
from onlinekernels.commandline.reports import key_of, print_json
from onlinekernels.evaluate.measures import Totals
from onlinekernels.evaluate.display import headline, shown
from onlinekernels.files.modelfile import load

__all__ = ["add_show"]

DESCRIPTION = "Show what a model file holds: algorithm, parameters, classes, terms, and what it has read."
EXAMPLES = ["python -m onlinekernels show model.npz", "python -m onlinekernels show model.npz --json"]

_TASKS = {"binary": "two classes", "multiclass": "many classes", "regression": "numbers", "novelty": "novelty"}
# The norm takes kernel values between all terms.
_MOST_TERMS_FOR_NORM = 5000


def add_show(subcommands):
    """Add the command to the parser's subcommands."""
    parser = add_command(
        subcommands, "show", _show, "model [options]", "show what a model file holds", DESCRIPTION, EXAMPLES
    )
    parser.add_argument("model", help="a model file")
    parser.add_argument("--json", action="store_true", help="one line of JSON")


def _show(arguments):
    path = checkpoints.found(arguments.model)
    model = load(path)
    params = {
        name: str(model._in_force(name)) if value is None else repr(value) for name, value in model.get_params(deep=False).items()
    }
    facts = {"file": path, "bytes": os.path.getsize(path), "algorithm": type(model).__name__, "parameters": params}
    facts.update(_learned(model) if model._state is not None else {"examples": 0})
    task, stream = model._current_loss().task, checkpoints.stream_of(model)
    if stream is not None:
        facts.update(_read(task, stream))
    if arguments.json:
        print_json(facts)
        return 0
    rows = list(_rows(facts, task))
    width = max(len(name) for name, _ in rows) + 2
    for name, text in rows:
        print(f"{name:<{width}}{text}")
    return 0


def _learned(model):
    """What the model has learned, by name."""
    task = model._current_loss().task
    yield "task", _TASKS["binary" if task == "multiclass" and len(model.classes_) == 2 else task]
    if task in ("binary", "multiclass"):
        yield "classes", model.classes_.tolist()
    yield "examples", model.t_
    if model._state.n_features is not None:
        yield "features", model.n_features_in_
    yield "terms", model.n_terms_
    if hasattr(model, "named_members_") and task != "novelty":
        yield "members", {name: {"weight": model.weights_[name], "error": error} for name, error in model.errors_.items()}
    if model.n_terms_ <= _MOST_TERMS_FOR_NORM and hasattr(model, "norm_"):
        yield "norm", model.norm_
    for name in ("step_", "noise_", "margin_", "width_", "offset_"):
        if hasattr(model, name):
            yield name.rstrip("_"), float(getattr(model, name))
    if np.any(getattr(model, "intercept_", 0.0)):
        yield "intercept", np.ravel(model.intercept_).tolist()


def _read(task, stream):
    """What the model's file remembers of its stream, by name."""
    totals = Totals(**stream["totals"])
    if stream["columns"] is not None:
        yield "columns", stream["columns"]
    if stream["files"]:
        yield "read", [
            {
                "name": file["name"],
                "bytes": file["bytes"],
                "pass": file["epoch"] + 1,
                file["unit"]: file["position"]["line"],
                "rows": file["position"]["rows"],
            }
            for file in stream["files"]
        ]
    if totals.count:
        yield "while_learning", {key_of(word): totals.mean(name) for name, word in headline(task)}


def _rows(facts, task):
    """The facts as (name, text)."""
    for name, fact in facts.items():
        if name == "file":
            yield name, f"{fact}, {facts['bytes']} bytes"
        elif name == "parameters":
            yield from (("", f"{key} = {value}") for key, value in fact.items())
        elif name == "read":
            for file in fact:
                place = f"line {file['line']}" if "line" in file else f"row {file['row']}"
                yield name, f"{file['name']}, pass {file['pass']}, {place}"
        elif name == "members":
            for member, said in fact.items():
                yield "member", f"{member}: weight {np.mean(said['weight']):.2f}, error {said['error']:.4g}"
        elif name == "while_learning":
            words = {key_of(word): (measure, word) for measure, word in headline(task)}
            for key, mean in fact.items():
                yield words[key][1], f"{shown(task, words[key][0], mean) or '-'} while learning"
        elif name == "examples" and fact == 0:
            yield "learned", "nothing yet"
        elif name != "bytes":
            yield name, ", ".join(map(_text, fact)) if isinstance(fact, list) else _text(fact)


def _text(value):
    return f"{value:.6g}" if isinstance(value, float) else str(value)
