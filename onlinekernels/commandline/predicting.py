"""``predict``: what a saved model says of new examples."""

import csv
import sys
from collections import Counter
from contextlib import ExitStack, contextmanager

import numpy as np

from onlinekernels.commandline import checkpoints
from onlinekernels.commandline.options import Usage, add_command, add_data_options, label_options, open_data, told
from onlinekernels.evaluate.words import headline, shown
from onlinekernels.modelfile import load

__all__ = ["add_predict"]

DESCRIPTION = """\
Predict new examples with a model that learn has saved: one line for each, as soon as it comes.
Columns are taken by the names that the model was learned with, if the data have names; otherwise
all columns but the target. Where the data have labels (--target, or .libsvm and y of .npz), mistakes
are counted, on stderr."""

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
    parser.add_argument(
        "--scores",
        action="store_true",
        help="add scores, for logistic losses probabilities too, with a line of headings",
    )
    parser.add_argument("--output", metavar="FILE", help="where to write (default: standard output)")


def _predict(arguments):
    model = load(arguments.model)
    if model._state is None:
        raise ValueError(f"{arguments.model} has not learned anything yet.")
    if model._state.targets > 1 and arguments.target is not None:
        raise Usage(f"--target names one column, and {arguments.model} predicts {model._state.targets} numbers")
    task = model._current_loss().task
    tally = _Tally(task)
    names = checkpoints.names_in(arguments.model, model)
    reader = open_data(arguments, model, names=names, **label_options(model, task))
    with _output(arguments.output) as write:
        for X, y in reader:
            answers = _answers(model, X)
            rows = answers.reshape(len(answers), -1).tolist()
            if arguments.scores:
                headings, columns = _scores(model, X)
                rows = [[*row, *more] for row, more in zip(rows, columns.tolist(), strict=True)]
                if reader.n_rows == len(rows):
                    write([["prediction", *headings]])
            write(rows)
            if y is not None and model._state.targets == 1:
                tally.add(answers, y)
    if tally.count:
        print(f"{tally.count} examples, {tally.words()}", file=sys.stderr)
    if reader.n_skipped:
        print(f"Skipped bad rows, which have no line: {reader.n_skipped}.", file=sys.stderr)
    return 0


class _Tally:
    """How predictions compare with the target."""

    def __init__(self, task):
        self.task = task
        self.count = 0
        self.sums = Counter()

    def add(self, answers, y):
        self.count += len(y)
        if self.task == "regression":
            self.sums.update(error=np.abs(answers - y).sum(), squared_error=((answers - y) ** 2).sum())
        elif self.task == "novelty":
            self.sums.update(y[answers == -1].tolist())
        else:
            self.sums.update(mistakes=int(np.sum(answers != y)))

    def words(self):
        if self.task == "regression":
            rows = [(word, shown(self.task, name, self.sums[name] / self.count)) for name, word in headline(self.task)]
            return ", ".join(f"{word} {mean}" for word, mean in rows)
        if self.task == "novelty":
            alerts = ", ".join(f"{number} of {label}" for label, number in sorted(self.sums.items(), key=str))
            return f"{sum(self.sums.values()) / self.count:.2%} alerts" + (f": {alerts}" if alerts else "")
        return f"{self.sums['mistakes'] / self.count:.2%} mistakes"


def _answers(model, X):
    try:
        return model.predict(X)
    except ValueError as error:
        hint = " (--target names a column to leave out, --features those to use.)" if "features" in str(error) else ""
        raise ValueError(told(error) + hint) from error


def _scores(model, X):
    """(headings, columns) of scores and, for logistic losses, probabilities; numbers are their own scores."""
    if not hasattr(model, "decision_function"):
        return [], np.empty((X.shape[0], 0))
    columns = np.reshape(model.decision_function(X), (X.shape[0], -1))
    labels = model.classes_.tolist() if hasattr(model, "classes_") else []
    headings = [f"score {label}" for label in labels] if columns.shape[1] > 1 else ["score"] * columns.shape[1]
    if hasattr(model, "predict_proba"):
        headings = [*headings, *(f"probability {label}" for label in labels)]
        columns = np.hstack([columns, model.predict_proba(X)])
    return headings, columns


@contextmanager
def _output(path):
    """Give a function that writes rows at once. A file is not touched before the first row."""
    if path is None:
        yield _writer(sys.stdout)
        return
    with ExitStack() as opened:
        writers = []

        def write(rows):
            if not writers:
                writers.append(_writer(opened.enter_context(_created(path))))
            writers[0](rows)

        yield write
        write([])


def _created(path):
    try:
        return open(path, "w", encoding="utf-8", newline="")
    except OSError as error:
        raise Usage(f"--output must be a file that can be written. Got {path!r}: {error.strerror}.") from error


def _writer(file):
    writer = csv.writer(file, lineterminator="\n")

    def write(rows):
        writer.writerows(rows)
        file.flush()

    return write
