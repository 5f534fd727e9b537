"""``show``: what is in a model file."""
import os

import numpy as np

from onlinekernels import load
from onlinekernels.cli.figures import Figures
from onlinekernels.cli.learn import stream_of
from onlinekernels.cli.options import add_command

DESCRIPTION = "Show what a model file holds: algorithm, parameters, classes, terms, and what it has read."
EXAMPLES = ["python -m onlinekernels show model.npz"]
MOST_TERMS_FOR_NORM = 5000  # the norm takes kernel values between all terms
TASKS = {"regressor": "regression", "outlier_detector": "novelty"}


def add_show(subcommands):
    """Add the command to the parser's subcommands."""
    parser = add_command(subcommands, "show", _show, "model", "show what a model file holds", DESCRIPTION, EXAMPLES)
    parser.add_argument("model", help="a model file")


def _show(arguments):
    model, path = load(arguments.model), arguments.model
    path = path if os.path.exists(path) else path + ".npz"  # as `load` has it
    rows = [("file", f"{path}, {os.path.getsize(path)} bytes"), ("algorithm", type(model).__name__)]
    for name, given in model.get_params(deep=False).items():  # with what stands for those that are None
        rows.append(("", f"{name} = {getattr(model, f'{name}_', None) if given is None else given!r}"))
    rows += _learned(model) if getattr(model, "t_", 0) else [("learned", "nothing yet")]
    rows += _read(model, stream_of(model))
    width = max(len(name) for name, _ in rows) + 2
    for name, value in rows:
        print(f"{name:<{width}}" + ", ".join(f"{part:.6g}" if isinstance(part, float) else str(part)
                                             for part in (value if isinstance(value, list) else [value])))
    return 0


def _learned(model):
    """What the model has learned, as (name, number, text or list)."""
    kind, classes = model._estimator_type, []
    if kind == "classifier":
        classes = model.classes_.tolist()
    yield "task", TASKS.get(kind, "two classes" if len(classes) == 2 else "many classes")
    if classes:
        yield "classes", classes
    yield "examples", model.t_
    if hasattr(model, "n_features_in_"):
        yield "features", model.n_features_in_
    yield "terms", model.n_terms_
    if hasattr(model, "named_members_") and kind != "outlier_detector":
        for name, error in model.errors_.items():
            yield "member", f"{name}: weight {np.mean(model.weights_[name]):.2f}, error {error:.4g}"
    if model.n_terms_ <= MOST_TERMS_FOR_NORM and hasattr(model, "norm_"):
        yield "norm", model.norm_
    for name in ("step_", "noise_", "margin_", "width_", "offset_"):
        if hasattr(model, name):
            yield name.rstrip("_"), float(getattr(model, name))
    if np.any(getattr(model, "intercept_", 0.0)):
        yield "intercept", np.ravel(model.intercept_).tolist()


def _read(model, stream):
    """What the model's file remembers of its stream."""
    if stream is not None:
        if hasattr(model, "feature_names_in_"):
            yield "columns", list(model.feature_names_in_)
        for file in stream["files"].values():
            yield "read", f"{file['name']}, row {file['rows']}"
        yield "while learning", Figures(model._estimator_type, stream["figures"]).sentence()
