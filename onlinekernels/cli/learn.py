"""``learn``: a model learns a stream, and says how well it predicted each row beforehand."""
import hashlib
import json
import math
import os
import sys
import tempfile
from time import monotonic, perf_counter

import numpy as np

from onlinekernels import load
from onlinekernels.base import files
from onlinekernels.cli.figures import Figures, print_row
from onlinekernels.cli.models import (
    OF_ONE, add_model_options, examples, is_last_column, labels_of, named_models, set_parameters, target_of, with_line,
)
from onlinekernels.cli.options import (
    Interruption, add_command, add_data_options, in_one_line, integer_from, refuse_same_file,
)
from onlinekernels.cli.tables import ChangedFile, Refused, Table

DESCRIPTION = """\
Learn from a stream, row by row; tables may have words, dates and empty fields. Nothing has to be
chosen: a target of words or of few whole numbers is learned by OnlineKernelClassifier, one of numbers
by OnlineKernelRegressor, and where there is none OnlineKernelDetector looks for odd rows. Each row is
predicted before it is learned. A report has the number of rows, the mistakes (or errors, or alerts) over
all of them and since the last report, those of a constant, the terms of the model, and the microseconds
that learning took per row. Several files are learned one after the other.

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
    "exit status: 0 fine, 1 an error in the data or files, 2 wrong arguments; 130 after Ctrl-C and 143 after a",
    "polite kill, with the model saved",
]

# Options that decide what the model becomes: a run can only be resumed with the same ones.
DECISIVE = (
    *"target features delimiter decimal header json on_error chunk".split(),
    *("algorithm", "effort", *OF_ONE, "set", "classes"),
)
FIXED_ON_A_MODEL = ("algorithm", "effort", "loss", "kernel", "budget", "offset", "scale", "classes")
FORMAT, VERSION = "onlinekernels stream", 6


def add_learn(subcommands):
    """Add the command to the parser's subcommands."""
    parser = add_command(subcommands, "learn", _learn, "data ... [options]", "learn a model from a file or a pipe",
                         DESCRIPTION, EXAMPLES)
    add_data_options(parser)
    add_model_options(parser)
    run = parser.add_argument_group("run")
    run.add_argument("--model", metavar="FILE",
                     help="go on with this model; --step, --regularization and --set may change it")
    run.add_argument("--report", type=integer_from(1), metavar="N", help="report about every N rows")
    run.add_argument("--alerts", action="store_true", help="print the rows for which a detector alerts")
    run.add_argument("--progress", action="store_true", help="show percent and remaining time, on a terminal")
    run.add_argument("--save", metavar="FILE", help="where to write the model, at the end and at checkpoints")
    run.add_argument("--checkpoint", type=integer_from(1), metavar="N",
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
            run.learn_all()
            is_over = interruption.signal is not None
        except KeyboardInterrupt:
            is_over = True
        except BrokenPipeError:
            run.rescue()
            raise
        except Refused:
            raise
        except (OSError, ValueError, TypeError, ArithmeticError) as error:
            raise ValueError(in_one_line(error) + run.rescue()) from error
        finally:
            run.progress.end()
        if is_over:
            print(f"Stopped after {run.figures.rows} examples.{run.rescue('They')}", file=sys.stderr)
            return interruption.status
        return run.finish()


def _check(arguments):
    """Refuse options that contradict each other before anything is read or written."""
    for option in ("checkpoint", "resume", "force"):
        if getattr(arguments, option) and arguments.save is None:
            raise Refused(f"--{option} needs --save FILE")
    for source in arguments.data:
        if arguments.data.count(source) > 1:
            raise Refused(f"data must be different files. Got {source!r} twice.")
    if arguments.model is not None:
        for name in FIXED_ON_A_MODEL:
            if getattr(arguments, name) is not None:
                raise Refused(f"--{name} cannot be given with --model, which has its own")
    if arguments.save is None:
        return
    arguments.save = path = arguments.save.removesuffix(".npz") + ".npz"
    refuse_same_file("--save", path, arguments.data)
    if os.path.isdir(path):
        raise IsADirectoryError(21, "is a folder, and --save needs a file", path)
    is_own = path in (arguments.model, f"{arguments.model}.npz")
    if os.path.exists(path) and not (arguments.force or arguments.resume or is_own):
        raise Refused(f"--save must not be a file that exists, {path!r}: --resume goes on, --force replaces it.")
    folder = os.path.dirname(os.path.realpath(path))
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise OSError(error.errno, f"cannot be saved to: {error.strerror}", folder) from error


def _typed(given):
    """What was given for an option, as it was typed."""
    if not isinstance(given, list):
        return repr(given)
    if isinstance(given[0], str):
        return repr(",".join(given))
    return repr(" ".join(f"{name}={value}" for name, value in given))


class _Run:
    """A model on its way through its files, with the figures so far, and the places that it has reached."""

    def __init__(self, arguments, interruption):
        self.arguments, self.interruption = arguments, interruption
        self.options = {name: getattr(arguments, name) for name in DECISIVE}
        self.progress = _Progress(arguments)
        self.n_skipped, self.headings, self.seconds, self.timed = 0, None, 0.0, 0  # headings of the last report
        self.models, self.figures, self.files, kept = [], Figures("classifier"), {}, None  # none or one model
        self.is_resumed = arguments.resume and os.path.exists(arguments.save)
        if self.is_resumed:
            self.models = [load(arguments.save)]
            stream = self._stream_to_resume()
            kept, self.files = stream["figures"], stream["files"]
        elif arguments.model is not None:
            self.models = [load(arguments.model)]
            set_parameters(self.models[0], arguments, ("step", "regularization"))
            self.files = (stream_of(self.models[0]) or {"files": {}})["files"]
        else:
            self.models = named_models(arguments, [arguments.algorithm] if arguments.algorithm else [])
        self.has_begun = False
        if self.models:
            self._begin(kept)

    def _stream_to_resume(self):
        """What the saved model remembers of its stream; Refused if the options are others."""
        path, stream = self.arguments.save, stream_of(self.models[0])
        if stream is None:
            hint = f"(--model {path} goes on with it.)"
            raise ValueError(f"{path} cannot be resumed: it does not remember a stream. {hint}")
        for name, now in self.options.items():
            before = stream["options"].get(name)
            if now != before:
                option = "--" + name.replace("_", "-")
                was, is_now = ("was not given" if given in (None, []) else f"was {_typed(given)}"
                               for given in (before, now))
                raise Refused(f"{option} must be as it was for {path} to resume: it {was}. Now it {is_now}.")
        return stream

    def _begin(self, kept=None):
        """Begin with the model; figures go on from those that were kept."""
        self.model, self.has_begun = self.models[0], True
        if self.arguments.alerts and self.model._estimator_type != "outlier_detector":
            raise Refused(f"--alerts needs a detector (--target none). {type(self.model).__name__} is none.")
        self.figures = Figures(self.model._estimator_type, kept)
        self.saved, self.learned = self.figures.rows, self._t()

    def _t(self):
        return getattr(self.models[0], "t_", 0) if self.models else 0

    # ---- Learning -----------------------------------------------------------------------------

    def learn_all(self):
        """Learn all files, as far as they are still to come."""
        has_target = self.models and self.figures.kind != "outlier_detector"
        if has_target and is_last_column(self.arguments):  # a model that is chosen for it says so, too
            print("The target is the last column; --target COLUMN names another.", file=sys.stderr)
        for source in self.arguments.data:
            if self.interruption.signal is None:
                self._learn_file(source)

    def _learn_file(self, source):
        model = self.models[0] if self.models else None
        table = Table(source, self.arguments, self.interruption, target_of(self.arguments, model), model)
        key = key_of(source)
        start = self.files.get(key) if self.is_resumed else None
        if self.is_resumed:
            known = "not read before, learned from its first row" if start is None else (
                f"read before, goes on after row {start['rows']}")
            print(f"{table.name}: {known}.", flush=True, file=sys.stderr if self.arguments.json else sys.stdout)
        try:
            for chunk, y in examples(table, self.arguments, self.models, start):
                if not self.has_begun:
                    self._begin()
                self.n_skipped += len(chunk.skipped)
                if chunk.lines:
                    self._learn(table, chunk, y)
                if table.can_reopen:
                    self.files[key] = {"name": os.path.basename(source), "rows": chunk.rows, "header": table.header,
                                       "last": chunk.last}
                self.learned = self._t()
                if chunk.lines:
                    self._end_chunk(table)
        except ChangedFile as error:
            hint = f"(Without --resume, --model {self.arguments.save} learns it from its first row.)"
            raise ValueError(f"{error} {hint}") from error

    def _learn(self, table, chunk, y):
        """Test, then train, on one chunk."""
        classes = labels_of(self.arguments)
        given = {} if classes is None or self._t() else {"classes": classes}
        begin = perf_counter()
        try:
            rows = [chunk.X] if y is None else [chunk.X, y]
            scores, predictions = self.model.progressive(*rows, return_labels=True, **given)
        except (FloatingPointError, ValueError) as error:
            raise with_line(error, table, chunk.lines) from error
        self.seconds += perf_counter() - begin
        self.timed += len(chunk.lines)
        predictions = np.asarray(predictions)
        self.figures.add(y, predictions, scores, getattr(self.model, "classes_", np.array([])).tolist())
        for i in np.flatnonzero(predictions == -1).tolist() if self.arguments.alerts else ():
            alert = {"file": table.name, table.unit: chunk.lines[i], "score": float(scores[i])}
            words = f"alert: {table.name}, {table.unit} {chunk.lines[i]}, score {scores[i]:.4g}"
            print(json.dumps(alert) if self.arguments.json else words, flush=True)

    def _end_chunk(self, table):
        """Report and save where they are due."""
        for every, last, act in ((self.arguments.report, self.figures.reported[0], self._report),
                                 (self.arguments.checkpoint, self.saved, self._save)):
            if every is not None and last // every < self.figures.rows // every:
                act()
        self.progress.show(table, self.figures.rows)

    # ---- Reports and saving -------------------------------------------------------------------

    def _report(self):
        self.progress.end()
        microseconds = 1e6 * self.seconds / self.timed if self.timed else math.nan
        columns, before = self.figures.row(self.model.n_terms_, microseconds), self.headings
        self.headings = [name for name, _, _ in columns]
        print_row(columns, self.arguments.json, self.headings != before)

    def finish(self):
        """Last report, last save, closing words; the exit status."""
        if self._t() == 0:
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
        files.save(self.model, self.arguments.save, notes={"format": FORMAT, "version": VERSION, **stream})
        self.saved = self.figures.rows

    def rescue(self, who=None):
        """Save what was learned before something went wrong, and say so."""
        if self.arguments.save is None or not self.has_begun or self._t() != self.learned:
            return ""  # nothing, or a part of a chunk, which has no place in the stream
        if self.saved != self.figures.rows:
            self._save()
        elif who is None or not self.saved:
            return ""
        return f" {who or f'The {self.figures.rows} examples before it'} are saved in {self.arguments.save}."


class _Progress:
    """A line on a terminal: rows, and where the length is known percent and the remaining time."""

    def __init__(self, arguments):
        self.is_wanted = arguments.progress and sys.stderr.isatty()
        sizes = [os.path.getsize(source) for source in arguments.data if os.path.isfile(source)]
        self.total = sum(sizes) if len(sizes) == len(arguments.data) and arguments.limit is None else 0
        self.tables, self.begin = [], None  # those that were read; (time, share that was done) when it began

    def show(self, table, rows):
        """Show how far a table has been read, and how many rows were learned in all."""
        if not self.is_wanted:
            return
        if table not in self.tables:
            self.tables.append(table)
        read = sum(before.size for before in self.tables[:-1]) + table.position()
        now, done = monotonic(), read / self.total if self.total else 0.0
        self.begin = self.begin or (now, done)
        text = f"{rows} examples"
        if done > self.begin[1]:
            left = math.ceil((1 - done) * (now - self.begin[0]) / (done - self.begin[1]))
            text += f", {done:.0%}, {left // 60}:{left % 60:02} left"
        print(f"\r{text:<50}", end="\r", file=sys.stderr, flush=True)

    def end(self):
        """Clear the line."""
        if self.is_wanted:
            print(f"\r{'':<50}", end="\r", file=sys.stderr, flush=True)


# ---- What a model file remembers ----------------------------------------------------------------


def key_of(source):
    """A model file is passed around; where its data were is nobody's business."""
    return hashlib.blake2b(os.path.abspath(source).encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()


def stream_of(model):
    """The options, figures and files that a loaded model's file remembers, or None."""
    stream = files.notes_of(model)
    if not isinstance(stream, dict) or (stream.get("format"), stream.get("version")) != (FORMAT, VERSION):
        return None
    return stream if {"options", "figures", "files"} <= set(stream) else None
