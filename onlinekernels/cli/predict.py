"""``predict``: what a saved model says of new examples."""
import sys

from onlinekernels import load
from onlinekernels.cli.figures import Figures
from onlinekernels.cli.learn import key_of, stream_of
from onlinekernels.cli.models import kind_of_targets, with_line
from onlinekernels.cli.options import Interruption, add_command, add_data_options, refuse_same_file, in_one_line
from onlinekernels.cli.tables import NO_TARGET, Refused, Table, Writer

DESCRIPTION = """\
Predict new examples with a model that learn has saved: one line for each, as soon as it comes.
Columns are taken by the names that the model was learned with, if the data have names; otherwise
all columns but the target. Where the data have labels (--target, or y of .npz), mistakes are counted,
on stderr. A bad row that --on-error skip skips has an empty line, or null."""

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
    """Add the command to the parser's subcommands."""
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
    wants = arguments.scores or arguments.probabilities or arguments.interval is not None or arguments.alerts
    with Interruption() as interruption, Writer(arguments.output, arguments.json, wants) as writer:
        run = _Run(arguments, model, writer)
        for source in arguments.data:
            if interruption.signal is None:
                run.predict_file(source, interruption)
        if run.figures.rows:
            print(f"{run.figures.rows} examples, {run.figures.sentence()}", file=sys.stderr)
        if run.n_skipped:
            print(f"Skipped bad rows, which have an empty line: {run.n_skipped}.", file=sys.stderr)
        return interruption.status


class _Run:
    """Predictions of a model on their way out, and how they compare with the target."""

    def __init__(self, arguments, model, writer):
        self.arguments, self.model, self.writer = arguments, model, writer
        self.figures, self.n_skipped = Figures(model._estimator_type), 0
        self.read = (stream_of(model) or {"files": {}})["files"]

    def predict_file(self, source, interruption):
        target = None if self.arguments.target == NO_TARGET else self.arguments.target
        table, n_before = Table(source, self.arguments, interruption, target, self.model), self.figures.rows
        for chunk in table.chunks():
            y = None
            if chunk.y is not None:
                is_detector = self.model._estimator_type == "outlier_detector"
                chunk, y = table.with_targets(chunk, "word" if is_detector else kind_of_targets(self.model, chunk.y))
            self.n_skipped += len(chunk.skipped)
            self._write(table, chunk, y)
        if self.figures.rows > n_before:
            self._warn_of_learned_rows(source, table, chunk)

    def _warn_of_learned_rows(self, source, table, last):
        """Figures of rows that the model has learned are not those of new rows."""
        place = (table.header, last.rows, last.last)
        same = [file for file in self.read.values() if place == (file["header"], file["rows"], file["last"])]
        for file in [self.read[key_of(source)]] if key_of(source) in self.read else same[:1]:
            what = f"the model has learned the first {file['rows']} of these rows, and figures of new rows are worse."
            print(f"{table.name}: {what}", file=sys.stderr)

    def _write(self, table, chunk, y):
        """Write the rows of a chunk in the order of their lines; one that is skipped has an empty line."""
        has_alerts, headings = self.arguments.alerts, None
        rows = {} if has_alerts else dict.fromkeys(chunk.skipped, [])
        if chunk.lines:
            try:
                answers = self.model.predict(chunk.X)
            except (ValueError, FloatingPointError) as error:
                raise ValueError(in_one_line(with_line(error, table, chunk.lines))) from error
            if y is not None:
                if answers.shape != y.shape:
                    raise Refused(f"--target needs a model of one number. Got one of {answers.shape[1]}.")
                self.figures.add(y, answers)
            headings, parts = self._columns(chunk.X, answers)
            columns = [part.reshape(len(answers), -1).tolist() for part in parts]
            for line, answer, row in zip(chunk.lines, answers, zip(*columns, strict=True), strict=True):
                if not has_alerts or answer == -1:
                    rows[line] = [table.name, line] * has_alerts + sum(row, [])
        self.writer.write(headings, [row for _, row in sorted(rows.items())])

    def _columns(self, X, answers):
        """(headings, arrays)."""
        model, arguments = self.model, self.arguments
        if arguments.alerts:
            return ["file", "line", "score"], [model.decision_function(X)]
        labels = model.classes_.tolist() if hasattr(model, "classes_") else []
        outputs = [""] if answers.ndim == 1 else [f" {i}" for i in range(answers.shape[1])]
        headings, parts = [f"prediction{output}" for output in outputs], [answers]
        if arguments.scores and hasattr(model, "decision_function"):
            parts.append(model.decision_function(X))
            headings += ["score"] if parts[-1].ndim == 1 else [f"score {label}" for label in labels]
        if (arguments.scores or arguments.probabilities) and hasattr(model, "predict_proba"):
            parts.append(model.predict_proba(X))
            headings += [f"probability {label}" for label in labels]
        if arguments.interval is not None:
            parts.extend(model.predict_interval(X, arguments.interval))
            headings += [f"{end}{output}" for end in ("lower", "upper") for output in outputs]
        return headings, parts
