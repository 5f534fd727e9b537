"""``show``: what is in a model file."""
import os

import numpy as np

from onlinekernels import load
from onlinekernels.cli.learn import Figures, stream_of
from onlinekernels.cli.options import add_command

DESCRIPTION = "Show what a model file holds: algorithm, parameters, classes, terms, and what it has read."
EXAMPLES = ["python -m onlinekernels show model.npz"]


def add_show(subcommands):
    parser = add_command(subcommands, "show", _show, "model", "show what a model file holds", DESCRIPTION, EXAMPLES)
    parser.add_argument("model", help="a model file")


def _show(arguments):
    model, path = load(arguments.model), arguments.model
    path = path if os.path.exists(path) else path + ".npz"  # as `load` has it
    rows = [("file", f"{path}, {os.path.getsize(path)} bytes"), ("algorithm", type(model).__name__)]
    for name, given in model.get_params(deep=False).items():  # with what stands for those that are None
        rows.append(("", f"{name} = {getattr(model, f'{name}_', None) if given is None else given!r}"))
    rows += _learned(model) if getattr(model, "t_", 0) else [("learned", "nothing yet")]
    width = max(len(name) for name, _ in rows) + 2
    for name, value in rows:
        print(f"{name:<{width}}{value}")
    return 0


def _learned(model):
    """What the model has learned, and what its file remembers of its stream, as (name, value)."""
    yield "kind", model._estimator_type
    if hasattr(model, "classes_"):
        yield "classes", ", ".join(map(str, model.classes_))
    yield "examples", model.t_
    yield "terms", model.n_terms_
    if hasattr(model, "feature_names_in_"):
        yield "columns", ", ".join(map(str, model.feature_names_in_))
    for name, error in getattr(model, "errors_", {}).items():
        yield "member", f"{name}: weight {np.mean(model.weights_[name]):.2f}, error {error:.4g}"
    for name in ("norm_", "step_", "noise_", "margin_", "width_", "offset_"):
        if hasattr(model, name):
            yield name.rstrip("_"), f"{float(getattr(model, name)):.6g}"
    stream = stream_of(model)
    if stream is not None:
        for file in stream["files"].values():
            yield "read", f"{file['name']}, row {file['rows']}"
        yield "while learning", Figures(model._estimator_type, stream["figures"]).sentence()
