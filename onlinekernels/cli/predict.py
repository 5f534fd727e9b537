"""``predict``: what a saved model says of new examples."""
import csv
import gzip
import json
import sys
from contextlib import ExitStack

from onlinekernels import load
from onlinekernels.cli.learn import Figures, key_of, stream_of
from onlinekernels.cli.models import examples, with_line
from onlinekernels.cli.options import Interruption, add_command, add_data_options, in_one_line, refuse_same_file
from onlinekernels.cli.tables import JSON_LINES, NO_TARGET, Refused

DESCRIPTION = """\
Predict new examples with a model that learn has saved: one line for each, as soon as it comes.
Columns are taken by the names that the model was learned with, if the data have names; otherwise
all columns but the target. Where the data have labels (--target), mistakes are counted, on stderr.
A bad row that --on-error skip skips has an empty line, or null."""

EXAMPLES = [
    "python -m onlinekernels predict model.npz new.csv",
    "python -m onlinekernels predict model.npz new.csv --probabilities --output predictions.csv",
    "python -m onlinekernels predict krls.npz new.csv --interval 0.9",
    "python -m onlinekernels predict detector.npz new.csv --alerts",
    "python -m onlinekernels predict model.npz test.csv --target label > predictions.txt",
    "tail -f log.csv | python -m onlinekernels predict model.npz - --target 3",
]

NEEDS = {  # of an option: the method of a model, in words
    "probabilities": ("predict_proba", "needs a model whose loss has them (learn with --loss logistic, "
                      "multiclasslogistic or multiclasssquared)"),
    "interval": ("predict_interval", "needs a model of numbers that knows deviations (learn a target of numbers "
                 "without --loss or --kernel, or with --algorithm krls --loss squared)"),
    "alerts": ("score_samples", "needs a detector (learn with --target none)"),
}


def add_predict(subcommands):
    usage, summary = "model data ... [options]", "predict with a saved model"
    parser = add_command(subcommands, "predict", _predict, usage, summary, DESCRIPTION, EXAMPLES)
    parser.add_argument("model", help="a model file")
    add_data_options(parser)
    parser.add_argument("--scores", action="store_true",
                        help="add scores, and probabilities where there are some, with a line of headings")
    parser.add_argument("--probabilities", action="store_true",
                        help="add the probability of each class, for models that have them")
    parser.add_argument("--interval", type=float, metavar="COVERAGE",
                        help="add both ends of an interval that covers so large a part of targets, such as 0.9")
    parser.add_argument("--alerts", action="store_true", help="print only the rows for which a detector alerts")
    parser.add_argument("--output", metavar="FILE", help="where to write (default: standard output)")
    parser.set_defaults(target=NO_TARGET)


def _predict(arguments):
    model = load(arguments.model)
    if not getattr(model, "t_", 0):
        raise ValueError(f"{arguments.model} has not learned anything yet.")
    if arguments.interval is not None and not 0 < arguments.interval < 1:
        raise Refused(f"--interval must be a number in (0, 1). Got {arguments.interval} instead.")
    for option, (method, needs) in NEEDS.items():
        if getattr(arguments, option) not in (None, False) and not hasattr(model, method):
            loss = "" if getattr(model, "loss", None) is None else f" and {model.loss!r}"
            raise Refused(f"--{option} {needs}. {arguments.model} has {type(model).__name__}{loss}.")
    refuse_same_file("--output", arguments.output, [*arguments.data, arguments.model])
    figures, seen, n_skipped = Figures(model._estimator_type), (stream_of(model) or {"files": {}})["files"], 0
    with Interruption() as interruption, ExitStack() as files:
        writer = _Writer(arguments, files)
        for table, chunk, y in examples(arguments, interruption, [model]):
            n_skipped += len(chunk.skipped)
            writer.write(*_answers(arguments, model, table, chunk, y, figures))
            file = seen.pop(key_of(table), None) if y is not None else None
            if file is not None:
                what = f"the model has learned the first {file['rows']} of these rows"
                print(f"{table.name}: {what}, and figures of new rows are worse.", file=sys.stderr)
        writer.write(None, [], is_over=True)
    if figures.rows:
        print(f"{figures.rows} examples, {figures.sentence()}", file=sys.stderr)
    if n_skipped:
        print(f"Skipped bad rows, which have an empty line: {n_skipped}.", file=sys.stderr)
    return interruption.status


def _answers(arguments, model, table, chunk, y, figures):
    """(headings or None, rows in the order of their lines); one that is skipped is empty."""
    rows = {} if arguments.alerts else dict.fromkeys(chunk.skipped, [])
    if not chunk.lines:
        return None, [*rows.values()]
    try:
        answers = model.predict(chunk.X)
    except (ValueError, FloatingPointError) as error:
        raise ValueError(in_one_line(with_line(error, table, chunk.lines))) from error
    if y is not None:
        if answers.shape != y.shape:
            raise Refused(f"--target needs a model of one number. Got one of {answers.shape[1]}.")
        figures.add(y, answers)
    if arguments.alerts:
        scores = zip(chunk.lines, answers, model.decision_function(chunk.X).tolist(), strict=True)
        return ["file", "line", "score"], [[table.name, line, score] for line, answer, score in scores if answer == -1]
    labels = model.classes_.tolist() if hasattr(model, "classes_") else []
    outputs = [""] if answers.ndim == 1 else [f" {i}" for i in range(answers.shape[1])]
    headings, parts = [f"prediction{output}" for output in outputs], [answers]
    if arguments.scores and hasattr(model, "decision_function"):
        parts.append(model.decision_function(chunk.X))
        headings += ["score"] if parts[-1].ndim == 1 else [f"score {label}" for label in labels]
    if (arguments.scores or arguments.probabilities) and hasattr(model, "predict_proba"):
        parts.append(model.predict_proba(chunk.X))
        headings += [f"probability {label}" for label in labels]
    if arguments.interval is not None:
        parts.extend(model.predict_interval(chunk.X, arguments.interval))
        headings += [f"{end}{output}" for end in ("lower", "upper") for output in outputs]
    columns = (part.reshape(len(answers), -1).tolist() for part in parts)
    rows.update((line, sum(row, [])) for line, *row in zip(chunk.lines, *columns, strict=True))
    return headings, [row for _, row in sorted(rows.items())]


class _Writer:
    """Writes rows as CSV or JSON lines, as soon as they come; no file is touched before the first, or the end."""

    def __init__(self, arguments, files):
        self.path, self.files, self.waiting = arguments.output, files, []
        self.is_json = arguments.json or (self.path or "").lower().removesuffix(".gz").endswith(JSON_LINES)
        self.has_headings = bool(arguments.scores or arguments.probabilities or arguments.interval or arguments.alerts)
        self.file = None if self.path else sys.stdout

    def write(self, headings, rows, is_over=False):
        """Without headings rows wait: they were skipped."""
        self.waiting += rows
        if headings is None and not is_over:
            return
        if self.file is None:
            try:
                opened = gzip.open if self.path.lower().endswith(".gz") else open
                self.file = self.files.enter_context(opened(self.path, "wt", encoding="utf-8", newline=""))
            except OSError as error:
                what = f"--output must be a file that can be written. Got {self.path!r}: {error.strerror}."
                raise Refused(what) from error
        if self.is_json:
            objects = (dict(zip(headings, row, strict=True)) if row else None for row in self.waiting)
            self.file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in objects)
        else:
            has_headings = self.has_headings and headings is not None
            csv.writer(self.file, lineterminator="\n").writerows([headings] * has_headings + self.waiting)
            self.has_headings = self.has_headings and not has_headings
        self.waiting = []
        self.file.flush()
