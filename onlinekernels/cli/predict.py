"""``predict``: what a saved model says of new examples."""

import csv
import sys
from collections import Counter
from contextlib import ExitStack, contextmanager

import numpy as np

from onlinekernels import load
from onlinekernels.cli.figures import headline, shown
from onlinekernels.cli.options import (
    NO_TARGET,
    Interruption,
    add_command,
    add_data_options,
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
    "python -m onlinekernels predict krls.npz new.csv --interval 0.9",
    "python -m onlinekernels predict model.npz test.csv --target label > predictions.txt",
    "tail -f log.csv | python -m onlinekernels predict model.npz - --target 3",
]


def add_predict(subcommands):
    """Add the command to the parser's subcommands."""
    usage, summary = "model data ... [options]", "predict with a saved model"
    parser = add_command(subcommands, "predict", _predict, usage, summary, DESCRIPTION, EXAMPLES)
    parser.add_argument("model", help="a model file")
    add_data_options(parser)
    parser.add_argument("--scores", action="store_true",
                        help="add scores, and probabilities where there are some, with a line of headings")
    parser.add_argument("--probabilities", action="store_true",
                        help="add the probability of each class, for models that have them")
    parser.add_argument("--interval", type=converter(_coverage), metavar="COVERAGE",
                        help="add both ends of an interval that covers so large a part of targets, such as 0.9; for models "
                        "of numbers that know deviations")
    parser.add_argument("--output", metavar="FILE", help="where to write (default: standard output)")


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
    tally.tell()
    return 0 if interruption.signal is None else interruption.status


def _check(arguments, model):
    for is_wanted, method, needs in (
        (arguments.probabilities, "predict_proba",
         "--probabilities needs a model whose loss has them (learn with --loss logistic, multiclasslogistic or "
         "multiclasssquared)"),
        (arguments.interval is not None, "predict_interval",
         "--interval needs a model of numbers that knows deviations (learn a target of numbers without --loss or --kernel, "
         "or with --algorithm krls --loss squared)"),
    ):
        if is_wanted and not hasattr(model, method):
            loss = "" if getattr(model, "loss", None) is None else f" and {model.loss!r}"
            raise Refused(f"{needs}. {arguments.model} has {type(model).__name__}{loss}.")


def _predict_file(arguments, source, model, interruption, predictions, tally):
    table = opened(source, arguments, interruption, model, None if arguments.target == NO_TARGET else arguments.target)
    for chunk in table.chunks():
        y = answers = None
        if chunk.y is not None:
            kind = "word" if tally.kind == "outlier_detector" else kind_of_targets(model, chunk.y)
            chunk, y = table.with_targets(chunk, kind)
        if chunk.lines:
            try:
                answers = model.predict(chunk.X)
            except (ValueError, FloatingPointError) as error:
                raise ValueError(told(with_line(error, table, chunk.lines))) from error
        predictions.add(chunk, answers)
        tally.add(answers, y, len(chunk.skipped))


class _Predictions:
    """Predictions as rows, with headings if there is more than those; an empty row for each that was skipped."""

    def __init__(self, arguments, model, write):
        self.model, self.write, self.coverage = model, write, arguments.interval
        self.has_scores = arguments.scores and hasattr(model, "decision_function")
        self.has_probabilities = (arguments.scores or arguments.probabilities) and hasattr(model, "predict_proba")
        self.needs_headings = arguments.scores or arguments.probabilities or arguments.interval is not None
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
            ends = [] if self.coverage is None else self.model.predict_interval(chunk.X, self.coverage)
            parts = [answers, scores, probabilities, *ends]
            columns = [part.reshape(len(answers), -1).tolist() for part in parts if part is not None]
            rows.update(zip(chunk.lines, (sum(row, []) for row in zip(*columns, strict=True)), strict=True))
        self.waiting += [row for _, row in sorted(rows.items())]
        if not self.needs_headings:
            self.end()

    def end(self):
        """Write the rows that have waited."""
        self.write(self.waiting)
        self.waiting = []

    def _headings(self, answers, scores):
        labels = self.model.classes_.tolist() if hasattr(self.model, "classes_") else []
        outputs = [""] if answers.ndim == 1 else [f" {i}" for i in range(answers.shape[1])]
        headings = [f"prediction{output}" for output in outputs]
        if scores is not None:
            headings += ["score"] if scores.ndim == 1 else [f"score {label}" for label in labels]
        headings += [f"probability {label}" for label in labels if self.has_probabilities]
        return headings + [f"{end}{output}" for end in ("lower", "upper") for output in outputs if self.coverage is not None]


class _Tally:
    """How predictions compare with the target."""

    def __init__(self, kind):
        self.kind = kind
        self.count = self.skipped = 0
        self.sums = Counter()

    def add(self, answers, y, skipped):
        """Count predictions; y is None where there is no target."""
        self.skipped += skipped
        if y is None or answers is None:
            return
        self.count += len(y)
        if self.kind == "regressor":
            if answers.shape != y.shape:
                raise Refused(f"--target needs a model of one number. Got one of {answers.shape[1]}.")
            self.sums.update(error=np.abs(answers - y).sum(), squared_error=((answers - y) ** 2).sum())
        elif self.kind == "outlier_detector":
            self.sums.update(label for label, answer in zip(y.tolist(), answers.tolist(), strict=True) if answer == -1)
        else:  # as Python compares them: arrays of different kinds would be compared as doubles
            self.sums.update(error=sum(a != b for a, b in zip(answers.tolist(), y.tolist(), strict=True)))

    def tell(self):
        """Say it on stderr."""
        if self.count:
            print(f"{self.count} examples, {self._words()}", file=sys.stderr)
        if self.skipped:
            print(f"Skipped bad rows, which have an empty line: {self.skipped}.", file=sys.stderr)

    def _words(self):
        total = {"error": sum(self.sums.values())} if self.kind == "outlier_detector" else self.sums
        figures = [(words, shown(self.kind, float(total[name]) / self.count)) for name, words in headline(self.kind)]
        if self.kind == "regressor":
            return ", ".join(f"{words} {mean}" for words, mean in figures)
        words = ", ".join(f"{mean} {words}" for words, mean in figures)
        alerts = sorted(self.sums.items(), key=str) if self.kind == "outlier_detector" else []
        return words + (": " + ", ".join(f"{number} of {label}" for label, number in alerts) if alerts else "")


@contextmanager
def _output(path):
    """Give a function that writes rows at once. A file is not touched before the first row."""
    with ExitStack() as opened:
        file = sys.stdout if path is None else None

        def write(rows):
            nonlocal file
            if file is None:
                try:
                    file = opened.enter_context(open(path, "w", encoding="utf-8", newline=""))
                except OSError as error:
                    what = f"--output must be a file that can be written. Got {path!r}: {error.strerror}."
                    raise Refused(what) from error
            csv.writer(file, lineterminator="\n").writerows(rows)
            file.flush()

        yield write
        write([])
