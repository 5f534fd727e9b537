"""``show``: what is in a model file."""

import os

import numpy as np

from onlinekernels import load
from onlinekernels.cli.figures import Figures, headline, key_of, print_json, shown
from onlinekernels.cli.learn import stream_of
from onlinekernels.cli.options import add_command

__all__ = ["add_show"]

DESCRIPTION = "Show what a model file holds: algorithm, parameters, classes, terms, and what it has read."
EXAMPLES = ["python -m onlinekernels show model.npz", "python -m onlinekernels show model.npz --json"]

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
    model, path = load(arguments.model), arguments.model
    path = path if os.path.exists(path) else path + ".npz"  # as `load` has it
    facts = {"file": path, "bytes": os.path.getsize(path), "algorithm": type(model).__name__}
    facts["parameters"] = dict(_parameters(model))
    facts.update(_learned(model) if getattr(model, "t_", 0) else {"examples": 0})
    kind, stream = model._estimator_type, stream_of(model)
    if stream is not None:
        facts.update(_read(model, kind, stream))
    if arguments.json:
        print_json(facts)
        return 0
    rows = list(_rows(facts, kind))
    width = max(len(name) for name, _ in rows) + 2
    for name, text in rows:
        print(f"{name:<{width}}{text}")
    return 0


def _parameters(model):
    """The parameters, with what stands for those that are None."""
    for name, given in model.get_params(deep=False).items():
        yield name, repr(getattr(model, f"{name}_", None) if given is None else given)


def _learned(model):
    """What the model has learned, by name."""
    kind = model._estimator_type
    classes = model.classes_.tolist() if kind == "classifier" else []
    of_classes = "two classes" if len(classes) == 2 else "many classes"
    yield "task", {"regressor": "numbers", "outlier_detector": "novelty"}.get(kind, of_classes)
    if classes:
        yield "classes", classes
    yield "examples", model.t_
    if hasattr(model, "n_features_in_"):
        yield "features", model.n_features_in_
    yield "terms", model.n_terms_
    if hasattr(model, "named_members_") and kind != "outlier_detector":
        errors = model.errors_.items()
        yield "members", {name: {"weight": model.weights_[name], "error": error} for name, error in errors}
    if model.n_terms_ <= _MOST_TERMS_FOR_NORM and hasattr(model, "norm_"):
        yield "norm", model.norm_
    for name in ("step_", "noise_", "margin_", "width_", "offset_"):
        if hasattr(model, name):
            yield name.rstrip("_"), float(getattr(model, name))
    if np.any(getattr(model, "intercept_", 0.0)):
        yield "intercept", np.ravel(model.intercept_).tolist()


def _read(model, kind, stream):
    """What the model's file remembers of its stream, by name."""
    if hasattr(model, "feature_names_in_"):
        yield "columns", list(model.feature_names_in_)
    if stream["files"]:
        yield "read", [
            {"name": file["name"], "bytes": file["bytes"], "pass": file["epoch"] + 1, "rows": file["rows"]}
            for file in stream["files"].values()
        ]
    figures = Figures(kind, stream["figures"])
    if figures.rows:
        yield "while_learning", {key_of(words): figures.mean(name) for name, words in headline(kind)}


def _rows(facts, kind):
    """The facts as (name, text)."""
    for name, fact in facts.items():
        if name == "file":
            yield name, f"{fact}, {facts['bytes']} bytes"
        elif name == "parameters":
            yield from (("", f"{key} = {value}") for key, value in fact.items())
        elif name == "read":
            for file in fact:
                yield name, f"{file['name']}, pass {file['pass']}, row {file['rows']}"
        elif name == "members":
            for member, said in fact.items():
                yield "member", f"{member}: weight {np.mean(said['weight']):.2f}, error {said['error']:.4g}"
        elif name == "while_learning":
            words = {key_of(word): (measure, word) for measure, word in headline(kind)}
            for key, mean in fact.items():
                yield words[key][1], f"{shown(kind, words[key][0], mean) or '-'} while learning"
        elif name == "examples" and fact == 0:
            yield "learned", "nothing yet"
        elif name != "bytes":
            yield name, ", ".join(map(_text, fact)) if isinstance(fact, list) else _text(fact)


def _text(value):
    return f"{value:.6g}" if isinstance(value, float) else str(value)
