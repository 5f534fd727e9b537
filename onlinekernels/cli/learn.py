"""``learn``: a model learns a stream, and says how well it predicted each row beforehand."""
import hashlib
import json
import math
import os
import sys
from collections import Counter
from contextlib import suppress
from time import monotonic

import numpy as np

from onlinekernels import load
from onlinekernels.base import files
from onlinekernels.cli.models import OF_MODEL, add_model_options, examples, named_models, with_line
from onlinekernels.cli.options import (
    Interruption, add_command, add_data_options, check_folder, count, in_one_line, refuse_same_file,
)
from onlinekernels.cli.tables import ChangedFile, Refused
from onlinekernels.evaluate.measures import RunningAUC

DESCRIPTION = """\
Learn from a stream, row by row; tables may have words, dates and empty fields. Nothing has to be
chosen: a target of words or of few whole numbers is learned by OnlineKernelClassifier, one of numbers
by OnlineKernelRegressor, and where there is none OnlineKernelDetector looks for odd rows. Each row is
predicted before it is learned. A report has the number of rows, the mistakes (or errors, or alerts) over
all of them and since the last report, those of a constant, and the terms of the model.

Kernels, losses, steps and budgets are written as name or name:number; --set sets whatever else an
algorithm has, such as --set kernel__bias=0.5."""

EXAMPLES = [
    "python -m onlinekernels learn data.csv --target label --save model.npz",
    "python -m onlinekernels learn fraud.csv --target fraud --set threshold=f1 --effort low --save model.npz",
    "python -m onlinekernels learn sensors.csv --target none --set nu=0.01 --alerts",
    "python -m onlinekernels learn data.csv --target label --algorithm silk --kernel gaussian:2.0 --progress",
    "python -m onlinekernels learn preise.csv --target price --delimiter ; --decimal , --report 1000",
    "python -m onlinekernels learn big.csv.gz --checkpoint 100000 --save m --resume",
    "tail -f log.csv | python -m onlinekernels learn - --target 3 --classes ok,failed --report 100 --save m.npz",
    "",
    "exit status: 0 fine, 1 bad data or files, 2 wrong arguments; 130 after Ctrl-C, 143 after SIGTERM, with a model",
]

# Options that decide what the model becomes: a run can only be resumed with the same ones.
DECISIVE = ("target", "features", "delimiter", "decimal", "header", "json", "on_error", "chunk", *OF_MODEL)
FORMAT = "onlinekernels stream 7"
AUC_WINDOW = 5000  # rows whose scores are kept
WORDS = {"classifier": "mistakes", "regressor": "mean absolute error", "outlier_detector": "alerts"}


def add_learn(subcommands):
    parser = add_command(subcommands, "learn", _learn, "data ... [options]", "learn a model from a file or a pipe",
                         DESCRIPTION, EXAMPLES)
    add_data_options(parser)
    add_model_options(parser)
    run = parser.add_argument_group("run")
    run.add_argument("--report", type=count, metavar="N", help="report about every N rows")
    run.add_argument("--alerts", action="store_true", help="print the rows for which a detector alerts")
    run.add_argument("--progress", action="store_true", help="show percent and remaining time, on a terminal")
    run.add_argument("--save", metavar="FILE", help="where to write the model, at the end and at checkpoints")
    run.add_argument("--checkpoint", type=count, metavar="N",
                     help="save about every N rows, with the place in the stream")
    existing = run.add_mutually_exclusive_group()
    existing.add_argument("--force", action="store_true", help="let --save replace a file")
    existing.add_argument("--resume", action="store_true",
                          help="go on with the saved file, if it exists: files that it has read go on where they "
                          "stopped, others, and standard input, are learned from their first row")


def _learn(arguments):
    _check(arguments)
    with Interruption() as interruption:
        run = _Run(arguments, interruption)
        try:
            with suppress(KeyboardInterrupt):
                run.learn_all()
        except (BrokenPipeError, Refused):
            run.rescue()
            raise
        except (OSError, ValueError, TypeError, ArithmeticError) as error:
            raise ValueError(in_one_line(error) + run.rescue()) from error
        finally:
            run.progress.line()
        if interruption.signal is None:
            return run.finish()
        print(f"Stopped.{run.rescue()}", file=sys.stderr)
        return interruption.status


def _check(arguments):
    """Refuse options that contradict each other before anything is read or written."""
    if len(set(arguments.data)) < len(arguments.data):
        raise Refused(f"data must be different files. Got {' '.join(arguments.data)}.")
    if arguments.save is None:
        for option in ("checkpoint", "resume", "force"):
            if getattr(arguments, option):
                raise Refused(f"--{option} needs --save FILE")
        return
    arguments.save = path = arguments.save.removesuffix(".npz") + ".npz"
    refuse_same_file("--save", path, arguments.data)
    if os.path.isdir(path):
        raise IsADirectoryError(21, "is a folder, and --save needs a file", path)
    if os.path.exists(path) and not (arguments.force or arguments.resume):
        raise Refused(f"--save must not be a file that exists, {path!r}: --resume goes on, --force replaces it.")
    check_folder(path)


class _Run:
    """A model on its way through its files, with the figures so far, and the places that it has reached."""

    def __init__(self, arguments, interruption):
        self.arguments, self.interruption = arguments, interruption
        self.options = {name: getattr(arguments, name) for name in DECISIVE}
        self.progress = _Progress(arguments)
        self.n_skipped, self.headings = 0, None  # those of the last report
        self.figures, self.files = None, {}
        self.is_resumed = arguments.resume and os.path.exists(arguments.save)
        if self.is_resumed:
            self._resume(load(arguments.save))
        else:  # none or one model
            self.models = named_models(arguments, [arguments.algorithm] if arguments.algorithm else [])
            if self.models:
                self._begin()

    def _resume(self, model):
        """Go on with a saved model; Refused if options that make another one are given."""
        self.models = [model]
        fresh = {"options": {**self.options, **dict.fromkeys(OF_MODEL)}, "figures": None, "files": {}}
        stream = stream_of(model) or fresh
        for name, now in self.options.items():
            before, option = stream["options"].get(name), "--" + name.replace("_", "-")
            if now != before:
                expected = f"as it was for {self.arguments.save} to resume: {before!r}"
                raise Refused(f"{option} must be {expected}. Got {now!r} instead.")
        self.files = stream["files"]
        self._begin(stream["figures"])

    def _begin(self, kept=None):
        """Begin with the model; figures go on from those that were kept."""
        self.model = self.models[0]
        if self.arguments.alerts and self.model._estimator_type != "outlier_detector":
            raise Refused(f"--alerts needs a detector (--target none). {type(self.model).__name__} is none.")
        self.figures = Figures(self.model._estimator_type, kept)
        self.saved, self.learned = self.figures.rows, getattr(self.model, "t_", 0)

    # ---- Learning -----------------------------------------------------------------------------

    def learn_all(self):
        """Learn all files, as far as they are still to come."""
        has_target = self.models and self.figures.kind != "outlier_detector"
        if has_target and self.arguments.target is None:  # a model that is chosen for it says so, too
            print("The target is the last column; --target COLUMN names another.", file=sys.stderr)
        try:
            for table, chunk, y in examples(self.arguments, self.interruption, self.models, self._start_of):
                if self.figures is None:
                    self._begin()
                self.n_skipped += len(chunk.skipped)
                if chunk.lines:
                    self._learn(table, chunk, y)
                if table.can_reopen:
                    self.files[key_of(table)] = {"name": os.path.basename(table.source), "rows": chunk.rows,
                                                 "header": table.header, "last": chunk.last}
                self.learned = getattr(self.model, "t_", 0)
                if chunk.lines:
                    self._end_chunk(table)
        except ChangedFile as error:
            raise ValueError(f"{error} (--save another file learns it from its first row.)") from error

    def _start_of(self, table):
        """Where a file goes on, which is said; None for one that begins."""
        if not self.is_resumed:
            return None
        start = self.files.get(key_of(table))
        known = "not read before, learned from its first row"
        if start:
            known = f"read before, goes on after row {start['rows']}"
        print(f"{table.name}: {known}.", flush=True, file=sys.stderr if self.arguments.json else sys.stdout)
        return start

    def _learn(self, table, chunk, y):
        """Test, then train, on one chunk."""
        given = {} if self.learned else {"classes": self.arguments.classes}
        try:
            rows = [chunk.X] if y is None else [chunk.X, y]
            scores, predictions = self.model.progressive(*rows, return_labels=True, **given)
        except (FloatingPointError, ValueError) as error:
            raise with_line(error, table, chunk.lines) from error
        predictions = np.asarray(predictions)
        self.figures.add(y, predictions, scores, getattr(self.model, "classes_", np.array([])).tolist())
        for i in np.flatnonzero(predictions == -1).tolist() if self.arguments.alerts else ():
            alert = {"file": table.name, "line": chunk.lines[i], "score": float(scores[i])}
            words = f"alert: {table.name}, line {chunk.lines[i]}, score {scores[i]:.4g}"
            print(json.dumps(alert) if self.arguments.json else words, flush=True)

    def _end_chunk(self, table):
        """Report and save where they are due."""
        report, checkpoint, rows = self.arguments.report, self.arguments.checkpoint, self.figures.rows
        if report and self.figures.reported[0] // report < rows // report:
            self._report()
        if checkpoint and self.saved // checkpoint < rows // checkpoint:
            self._save()
        self.progress.show(table, rows)

    # ---- Reports and saving -------------------------------------------------------------------

    def _report(self):
        """Print a row of figures, as part of a table or as an object of JSON."""
        self.progress.line()
        columns = [*self.figures.row(), ("terms", self.model.n_terms_, "d")]
        before, self.headings = self.headings, [name for name, _, _ in columns]
        if self.arguments.json:
            print(json.dumps({name: value if math.isfinite(value) else None for name, value, _ in columns}), flush=True)
            return
        cells = ["-" if math.isnan(value) else format(value, spec) for _, value, spec in columns]
        for row in (cells,) if self.headings == before else (self.headings, cells):
            padded = (cell.rjust(max(len(name), 10) + 2) for name, cell in zip(self.headings, row, strict=True))
            print("".join(padded), flush=True)

    def finish(self):
        """Last report, last save, closing words; the exit status."""
        if self.figures is None or not self.learned:
            raise ValueError(f"{', '.join(self.arguments.data)}: no examples to learn from.")
        if self.headings is None or self.figures.reported[0] < self.figures.rows:
            self._report()
        if self.arguments.save is not None:
            self._save()
        else:
            print("Nothing was kept: --save FILE keeps the model.", file=sys.stderr)
        if self.n_skipped:
            print(f"Skipped bad rows: {self.n_skipped}.", file=sys.stderr)
        if self.figures.f1() == 0 and getattr(self.model, "threshold", 0) is None:
            hint = "--set threshold=f1 finds some, with false alarms."
            print(f"No row of the rarer class was found (F1 is 0): {hint}", file=sys.stderr)
        return 0

    def _save(self):
        """Write the model and its place in the stream; a kill at any moment leaves the old file or the new one."""
        stream = {"options": self.options, "figures": self.figures.to_dict(), "files": self.files}
        files.save(self.model, self.arguments.save, notes={"format": FORMAT, **stream})
        self.saved = self.figures.rows

    def rescue(self):
        """Save what was learned before something went wrong; a sentence about it."""
        rows = self.figures.rows if self.figures else 0
        if self.arguments.save is None or not rows or getattr(self.model, "t_", 0) != self.learned:
            return ""  # nothing, or a part of a chunk, which has no place in the stream
        if self.saved != rows:
            self._save()
        return f" The {rows} examples before are saved in {self.arguments.save}."


class Figures:
    """What has been measured so far, each row before it was learned; beside it the errors of a constant.

    The constant is the most frequent class of the rows before, or their mean. `kept` is where to go on, as `to_dict`
    gives it.
    """

    SUMS = ("rows", "errors", "squared_errors", "constant_errors", "targets", "leader")

    def __init__(self, kind, kept=None):
        kept = kept or {"sums": [0, 0, 0, 0, 0, None], "pairs": [], "latest": []}
        vars(self).update(zip(self.SUMS, kept["sums"], strict=True))  # the leader is the most frequent class
        self.kind, self.words, self.rate = kind, WORDS[kind], ".4g" if kind == "regressor" else ".2%"
        self.pairs, self.counts = Counter(), Counter()  # of (label, prediction), and of each label
        for label, guess, n in kept["pairs"]:
            self.pairs[label, guess] += n
            self.counts[label] += n
        self.auc = RunningAUC(AUC_WINDOW)
        for score, is_positive in kept["latest"]:
            self.auc.add([score], [is_positive])
        self.reported = self.rows, self.errors  # at the last report

    def to_dict(self):
        """Plain numbers and lists, from which a run goes on."""
        return {"sums": [getattr(self, name) for name in self.SUMS], "latest": [list(pair) for pair in self.auc.latest],
                "pairs": [[*pair, n] for pair, n in self.pairs.items()]}

    def add(self, y, predictions, scores=None, classes=()):
        """Add some rows: targets, or None, and what was predicted before the rows were learned."""
        if self.kind == "outlier_detector":
            self.errors += int(np.sum(predictions == -1))
        elif self.kind == "regressor":
            sums = np.cumsum([self.targets, *y])
            means = sums[:-1] / np.maximum(self.rows + np.arange(len(y)), 1)
            with np.errstate(over="ignore"):
                self.errors += float(np.abs(predictions - y).sum())
                self.squared_errors += float(((predictions - y) ** 2).sum())
                self.constant_errors += float(np.abs(means - y).sum())
            self.targets = float(sums[-1])
        else:
            if scores is not None and scores.ndim > 1:
                scores = scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else None
            for i, (label, guess) in enumerate(zip(y.tolist(), predictions.tolist(), strict=True)):
                if scores is not None and len(self.counts) == 2 == len(classes):
                    self.auc.add([scores[i]], [label == classes[1]])
                guess = None if scores is not None and scores[i] == 0 else guess  # a tie
                self.pairs[label, guess] += 1
                self.errors += guess != label
                self.constant_errors += label != self.leader
                self.counts[label] += 1
                self.leader = label if self.counts[label] > self.counts[self.leader] else self.leader
        self.rows += len(predictions)

    def f1(self):
        """F1 of the rarer of two classes; NaN of others."""
        if len(self.counts) != 2:
            return math.nan
        rarer = min(self.counts, key=self.counts.get)
        predicted = sum(n for (_, guess), n in self.pairs.items() if guess == rarer)
        return 2 * self.pairs[rarer, rarer] / (self.counts[rarer] + predicted)

    def row(self):
        """(heading, value, format) of each column of a report; what is "lately" begins now."""
        (rows, errors), self.reported = self.reported, (self.rows, self.errors)
        n, lately = max(self.rows, 1), (self.errors - errors) / (self.rows - rows) if self.rows > rows else math.nan
        columns = [("examples", self.rows, "d"), (self.words, self.errors / n, self.rate),
                   ("lately", lately, self.rate)]
        if self.kind != "outlier_detector":
            columns.append(("constant", self.constant_errors / n, self.rate))
        if self.kind == "regressor":
            columns.append(("squared error", self.squared_errors / n, ".4g"))
        if len(self.counts) == 2:
            columns += [("F1", self.f1(), ".3f"), ("AUC", self.auc.value(), ".3f")]
        return columns

    def sentence(self):
        """The figures over all rows."""
        if self.kind == "regressor":
            squared = f"squared error {self.squared_errors / self.rows:.4g}"
            return f"{self.words} {self.errors / self.rows:.4g}, {squared}"
        return f"{self.errors / self.rows:.2%} {self.words}"


class _Progress:
    """A line on a terminal: rows, and where the length is known percent and the remaining time."""

    def __init__(self, arguments):
        self.is_wanted = arguments.progress and sys.stderr.isatty()
        sizes = [os.path.getsize(source) if os.path.isfile(source) else math.inf for source in arguments.data]
        self.total = math.inf if arguments.limit is not None else sum(sizes)
        self.positions, self.begin = {}, None  # bytes read by file; (time, share that was done) when it began

    def show(self, table, rows):
        """Show how far a table has been read, and how many rows were learned in all."""
        self.positions[table.name] = table.position
        now, done = monotonic(), sum(self.positions.values()) / self.total
        begin, before = self.begin = self.begin or (now, done)
        text = f"{rows} examples"
        if done > before:
            left = math.ceil((1 - done) * (now - begin) / (done - before))
            text += f", {done:.0%}, {left // 60}:{left % 60:02} left"
        self.line(text)

    def line(self, text=""):
        """Write the line anew, or clear it."""
        if self.is_wanted:
            print(f"\r{text:<50}", end="\r", file=sys.stderr, flush=True)


# ---- What a model file remembers ----------------------------------------------------------------


def key_of(table):
    """A model file is passed around; where its data were is nobody's business."""
    path = os.path.abspath(table.source).encode("utf-8", "surrogateescape")
    return hashlib.blake2b(path, digest_size=16).hexdigest()


def stream_of(model):
    """The options, figures and files that a loaded model's file remembers, or None."""
    notes = files.notes_of(model)
    return notes if isinstance(notes, dict) and notes.get("format") == FORMAT else None
