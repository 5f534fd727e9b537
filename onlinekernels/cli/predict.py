"""``predict``: what a saved model says of new examples."""

import csv
import sys
from collections import Counter
from contextlib import ExitStack, contextmanager
from inspect import signature

import numpy as np

from onlinekernels import load
from onlinekernels.cli.figures import headline, key_of, print_json, shown
from onlinekernels.cli.learn import stream_of
from onlinekernels.cli.options import (
    NO_TARGET,
    Interruption,
    add_command,
    add_data_options,
    as_columns,
    converter,
    kind_of_targets,
    opened,
    refuse_same_file,
    told,
    with_line,
)
from onlinekernels.cli.tables import Refused

__all__ = ["add_predict"]

DESCRIPTION = """\
Predict new examples with a model that learn has saved: one line for each, as soon as it comes.
Columns are taken by the names that the model was learned with, if the data have names; otherwise
all columns but the target. Where the data have labels (--target, or y of .npz), mistakes are counted,
on stderr. A bad row that --on-error skip skips has an empty line."""

EXAMPLES = [
    "python -m onlinekernels predict model.npz new.csv",
    "python -m onlinekernels predict model.npz new.csv --scores --output predictions.csv",
    "python -m onlinekernels predict model.npz new.csv --probabilities",
    "python -m onlinekernels predict krls.npz new.csv --std --interval 0.9",
    "python -m onlinekernels predict model.npz test.csv --target label > predictions.txt",
    "tail -f log.csv | python -m onlinekernels predict model.npz - --target 3",
]


def add_predict(subcommands):
    """Add the command to the parser's subcommands."""
    usage, summary = "model data ... [options]", "predict with a saved model"
    parser = add_command(subcommands, "predict", _predict, usage, summary, DESCRIPTION, EXAMPLES)
    parser.add_argument("model", help="a model file")
    add_data_options(parser)
    parser.add_argument(
        "--scores",
        action="store_true",
        help="add scores, and probabilities where there are some, with a line of headings",
    )
    parser.add_argument(
        "--probabilities", action="store_true", help="add the probability of each class, for models that have them"
    )
    parser.add_argument("--std", action="store_true", help="add the standard deviation, for models that know it")
    parser.add_argument(
        "--interval",
        type=converter(_coverage),
        metavar="COVERAGE",
        help="add both ends of an interval that covers so large a part of targets, such as 0.9; for models of numbers",
    )
    parser.add_argument("--output", metavar="FILE", help="where to write (default: standard output)")
    parser.add_argument("--json", action="store_true", help="the closing count of mistakes as a line of JSON")


def _coverage(text):
    coverage = float(text)
    if not 0 < coverage < 1:
        raise ValueError(f"must be a number in (0, 1). Got {text} instead.")
    return coverage


def _predict(arguments):
    model = load(arguments.model)
    if not getattr(model, "t_", 0):
        raise ValueError(f"{arguments.model} has not learned anything yet.")
    _check(arguments, model)
    refuse_same_file("--output", arguments.output, [*arguments.data, arguments.model])
    tally = _Tally(model._estimator_type)
    with Interruption() as interruption, _output(arguments.output) as write:
        table = _Predictions(arguments, model, write)
        for source in arguments.data:
            if interruption.signal is None:
                _predict_file(arguments, source, model, interruption, table, tally)
        table.end()
    tally.tell(arguments.json)
    return 0 if interruption.signal is None else interruption.status


def _check(arguments, model):
    knows_deviations = "return_std" in signature(model.predict).parameters and model._estimator_type != "outlier_detector"
    for is_wanted, is_there, needs in (
        (arguments.probabilities, hasattr(model, "predict_proba"),
         "--probabilities needs a model whose loss has them (learn with --loss logistic, multiclasslogistic or "
         "multiclasssquared)"),
        (arguments.std, knows_deviations,
         "--std needs a model that knows deviations (learn without --loss or --kernel, or with --algorithm krls)"),
        (arguments.interval is not None, hasattr(model, "predict_interval"),
         "--interval needs a model of numbers that knows deviations (learn a target of numbers without --loss or --kernel, "
         "or with --algorithm krls --loss squared)"),
    ):
        if is_wanted and not is_there:
            loss = "" if getattr(model, "loss", None) is None else f" and {model.loss!r}"
            raise Refused(f"{needs}. {arguments.model} has {type(model).__name__}{loss}.")


def _predict_file(arguments, source, model, interruption, predictions, tally):
    target = arguments.target
    target = None if target in (None, NO_TARGET) else as_columns(target) if tally.kind == "regressor" else [target]
    table = opened(source, arguments, interruption, model, target)
    for chunk in table.chunks():
        y = None
        if chunk.y is not None:
            kind = "word" if tally.kind == "outlier_detector" else kind_of_targets(model, chunk.y)
            chunk, y = table.with_targets(chunk, kind)
        answers = _answers(model, chunk, table) if chunk.lines else None
        predictions.add(chunk, answers)
        tally.add(answers, y, len(chunk.skipped))


def _answers(model, chunk, table):
    try:
        return model.predict(chunk.X)
    except (ValueError, FloatingPointError) as error:
        raise ValueError(told(with_line(error, table, chunk.lines))) from error


class _Predictions:
    """Predictions as rows, with headings if there is more than those; an empty row for each that was skipped."""

    def __init__(self, arguments, model, write):
        self.model, self.write = model, write
        self.has_scores = arguments.scores and hasattr(model, "decision_function")
        self.has_probabilities = (arguments.scores or arguments.probabilities) and hasattr(model, "predict_proba")
        self.has_deviations, self.coverage = arguments.std, arguments.interval
        has_more = arguments.scores or arguments.probabilities or arguments.std
        self.needs_headings = has_more or arguments.interval is not None
        self.waiting = []  # empty rows before the first one that tells the headings

    def add(self, chunk, answers):
        """Write the rows of a chunk in the order of their lines; without good rows, `answers` is None."""
        rows = dict.fromkeys(chunk.skipped, [])
        if answers is not None:
            scores = self.model.decision_function(chunk.X) if self.has_scores else None
            if self.needs_headings:
                self.write([self._headings(answers, scores)])
                self.needs_headings = False
            probabilities = self.model.predict_proba(chunk.X) if self.has_probabilities else None
            parts = [answers, scores, probabilities, *self._known(chunk.X, answers)]
            columns = [part.reshape(len(answers), -1).tolist() for part in parts if part is not None]
            rows.update(zip(chunk.lines, (sum(row, []) for row in zip(*columns, strict=True)), strict=True))
        self.waiting += [row for _, row in sorted(rows.items())]
        if not self.needs_headings:
            self.end()

    def _known(self, X, answers):
        """Deviations, and lower and upper ends of intervals."""
        deviations = []
        if self.has_deviations:  # targets in their own units share them
            column = self.model.predict(X, return_std=True)[1].reshape(len(answers), -1)
            deviations = [np.broadcast_to(column, answers.reshape(len(answers), -1).shape)]
        return deviations if self.coverage is None else [*deviations, *self.model.predict_interval(X, self.coverage)]

    def end(self):
        """Write the rows that have waited."""
        self.write(self.waiting)
        self.waiting = []

    def _headings(self, answers, scores):
        labels = self.model.classes_.tolist() if hasattr(self.model, "classes_") else []
        names = [""] if answers.ndim == 1 else [f" {name}" for name in _target_names(self.model, answers.shape[1])]
        headings = [f"prediction{name}" for name in names]
        if scores is not None:
            headings += ["score"] if scores.ndim == 1 else [f"score {label}" for label in labels]
        headings += [f"probability {label}" for label in labels if self.has_probabilities]
        if self.has_deviations:
            headings += [f"std{name}" for name in names]
        return headings + [f"{end}{name}" for end in ("lower", "upper") for name in names if self.coverage is not None]


def _target_names(model, count):
    """Names of several targets as learn was given them, or their numbers."""
    stream = stream_of(model)
    names = as_columns(stream["options"]["target"]) if stream is not None and stream["options"]["target"] else []
    return names if len(names) == count else range(count)


class _Tally:
    """How predictions compare with the target."""

    def __init__(self, kind):
        self.kind = kind
        self.rows = self.count = self.skipped = 0
        self.sums = Counter()

    def add(self, answers, y, skipped):
        """Count predictions; y is None where there is no target."""
        self.skipped += skipped
        self.rows += 0 if answers is None else len(answers)
        if y is None or answers is None:
            return
        self.count += len(y)
        if self.kind == "regressor":
            if answers.shape != y.shape:
                expected = "as many columns as the model predicts numbers"
                raise Refused(f"--target must name {expected}. Got {y[0].size} instead.")
            errors = np.reshape(answers - y, (len(y), -1))
            self.sums.update(error=np.abs(errors).mean(axis=1).sum(), squared_error=(errors**2).mean(axis=1).sum())
        elif self.kind == "outlier_detector":
            self.sums.update(label for label, answer in zip(y.tolist(), answers.tolist(), strict=True) if answer == -1)
        else:  # as Python compares them: arrays of different kinds would be compared as doubles
            self.sums.update(error=sum(a != b for a, b in zip(answers.tolist(), y.tolist(), strict=True)))

    def _figures(self):
        """(name, words, mean) of the measures that matter."""
        total = {"error": sum(self.sums.values())} if self.kind == "outlier_detector" else self.sums
        return [(name, words, float(total[name]) / self.count) for name, words in headline(self.kind)]

    def tell(self, as_json):
        """Say it on stderr."""
        if as_json:
            figures = {key_of(words): mean for _, words, mean in self._figures()} if self.count else {}
            print_json({"examples": self.rows, **figures, "skipped": self.skipped}, sys.stderr)
            return
        if self.count:
            print(f"{self.count} examples, {self._words()}", file=sys.stderr)
        if self.skipped:
            print(f"Skipped bad rows, which have an empty line: {self.skipped}.", file=sys.stderr)

    def _words(self):
        figures = [(words, shown(self.kind, name, mean)) for name, words, mean in self._figures()]
        if self.kind == "regressor":
            return ", ".join(f"{words} {mean}" for words, mean in figures)
        words = ", ".join(f"{mean} {words}" for words, mean in figures)
        alerts = sorted(self.sums.items(), key=str) if self.kind == "outlier_detector" else []
        return words + (": " + ", ".join(f"{number} of {label}" for label, number in alerts) if alerts else "")


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
        raise Refused(f"--output must be a file that can be written. Got {path!r}: {error.strerror}.") from error


def _writer(file):
    writer = csv.writer(file, lineterminator="\n")

    def write(rows):
        writer.writerows(rows)
        file.flush()

    return write
