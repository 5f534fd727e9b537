"""``predict``: what a saved model says of new examples."""

import csv
import os
import sys
from contextlib import contextmanager

import numpy as np

from onlinekernels.commandline import checkpoints
from onlinekernels.commandline.options import Usage, add_command, add_data_options, open_data, told
from onlinekernels.modelfile import load

__all__ = ["add_predict"]

DESCRIPTION = """\
Predict new examples with a model that learn has saved: one line for each, as soon as it comes.
Columns are taken by the names that the model was learned with, if the data have such names;
otherwise all columns but the target. With --target the mistakes are counted, on stderr."""

EXAMPLES = [
    "python -m onlinekernels predict model.npz new.csv",
    "python -m onlinekernels predict model.npz new.csv --scores --output predictions.csv",
    "python -m onlinekernels predict model.npz test.csv --target label > predictions.txt",
    "tail -f log.csv | python -m onlinekernels predict model.npz - --target 3",
]


def add_predict(subcommands):
    """Add the command to the parser's subcommands."""
    parser = add_command(
        subcommands, "predict", _predict, "model data [options]", "predict with a saved model", DESCRIPTION, EXAMPLES
    )
    parser.add_argument("model", help="a model file")
    add_data_options(parser)
    parser.add_argument("--scores", action="store_true", help="add the scores, with a line of headings")
    parser.add_argument("--output", metavar="FILE", help="where to write (default: standard output)")


def _predict(arguments):
    model = load(arguments.model)
    if model._state is None:
        raise ValueError(f"{arguments.model} has not learned anything yet.")
    task = model._current_loss().task
    wrong, count = 0.0, 0
    reader = open_data(arguments, prefer=_names_in(arguments.model), **_label_options(arguments, model, task))
    with _output(arguments.output) as file:
        writer = csv.writer(file, lineterminator="\n")
        for X, y in reader:
            answers = _answers(model, X)
            scores = _scores(model, X) if arguments.scores else np.empty((len(answers), 0))
            if arguments.scores and reader.n_rows == len(answers):
                writer.writerow(_headings(model, scores))
            writer.writerows([answer, *row] for answer, row in zip(answers.tolist(), scores.tolist(), strict=True))
            file.flush()
            if y is not None and task != "novelty":
                wrong += np.sum((answers - y) ** 2 if task == "regression" else answers != y)
                count += len(y)
    _conclude(arguments, task, wrong, count, reader.n_skipped)
    return 0


def _answers(model, X):
    try:
        return model.predict(X)
    except ValueError as error:
        hint = " (--target names a column to leave out, --features those to use.)" if "features" in str(error) else ""
        raise ValueError(told(error) + hint) from error


def _names_in(path):
    stream = checkpoints.stream_of(checkpoints.with_suffix(path) if not os.path.exists(path) else path)
    return None if stream is None else stream["place"]["features"]


def _label_options(arguments, model, task):
    """Labels are read as what the model knows them to be."""
    if task in ("regression", "novelty") or arguments.target is None:
        return {"label_type": "number"} if task == "regression" else {}
    return {"label_type": "string"} if model.classes_.dtype.kind == "U" else {}


def _scores(model, X):
    """Scores as columns; a prediction that is a number is its own score."""
    if not hasattr(model, "decision_function"):
        return np.empty((X.shape[0], 0))
    return np.reshape(model.decision_function(X), (X.shape[0], -1))


def _headings(model, scores):
    if scores.shape[1] > 1:
        return ["prediction", *(f"score {label}" for label in model.classes_.tolist())]
    return ["prediction", *["score"] * scores.shape[1]]


@contextmanager
def _output(path):
    if path is None:
        yield sys.stdout
        return
    try:
        file = open(path, "w", encoding="utf-8", newline="")
    except OSError as error:
        raise Usage(f"--output must be a file that can be written. Got {path!r}: {error.strerror}.") from error
    with file:
        yield file


def _conclude(arguments, task, wrong, count, n_skipped):
    if count and arguments.target is not None:
        what = f"mean square {wrong / count:.4g}" if task == "regression" else f"{wrong / count:.2%} mistakes"
        print(f"{count} examples, {what}", file=sys.stderr)
    if n_skipped:
        print(f"Skipped bad rows, which have no line: {n_skipped}.", file=sys.stderr)
