"""``learn``: a model learns a stream, and says how well it predicted each row beforehand."""

import argparse
import hashlib
import math
import os
import sys
import tempfile
from time import perf_counter

import numpy as np

from onlinekernels import RunningEncoder, load
from onlinekernels.cli.figures import Figures, print_report
from onlinekernels.cli.options import (
    NO_TARGET,
    Interruption,
    add_command,
    add_data_options,
    as_columns,
    component,
    converter,
    integer_from,
    kind_of_targets,
    opened,
    refuse_same_file,
    told,
    value,
    with_line,
)
from onlinekernels.cli.tables import ChangedFile, Refused, as_number, labels_of
from onlinekernels.evaluate.running import progress_bar
from onlinekernels.base import files

__all__ = ["add_learn", "stream_of"]

DESCRIPTION = """\
Learn from a stream, row by row; tables may have words, dates and empty fields. Nothing has to be
chosen: a target of words or of few whole numbers is learned by OnlineKernelClassifier, one of numbers
by OnlineKernelRegressor, and where there is none OnlineKernelDetector looks for odd rows. One line says
which. Each row is predicted before it is learned, so the mistakes that are printed are honest. A report
has the number of rows, the mistakes (or errors, or alerts) over all of them and since the last report,
those of a constant, the terms of the model, and the microseconds that learning took per row. Several
files are learned one after the other.

Kernels, losses, steps and budgets are written as name or name:number; --set sets whatever else an
algorithm has, such as --set kernel__bias=0.5."""

EXAMPLES = [
    "python -m onlinekernels learn data.csv",
    "python -m onlinekernels learn data.csv --target label --save model.npz",
    "python -m onlinekernels learn fraud.csv --target fraud --set threshold=f1 --effort low --save model.npz",
    "python -m onlinekernels learn sensors.csv --target none --set nu=0.01 --save model.npz",
    "python -m onlinekernels learn data.csv --target label --loss multiclasshinge \\",
    "       --algorithm silk --kernel gaussian:2.0 --budget 512 --save model.npz --progress",
    "python -m onlinekernels learn preise.csv --target price --delimiter ; --decimal , --report 1000",
    "python -m onlinekernels learn big.csv.gz --checkpoint 100000 --save m --resume",
    "tail -f log.csv | python -m onlinekernels learn - --target 3 --classes ok,failed --report 100 --save m.npz",
    "",
    "exit status: 0 fine, 1 an error in the data or files, 2 wrong arguments; 130 after Ctrl-C and 143 after a",
    "polite kill, with the model saved",
]

DEFAULT_ALGORITHM = "silk"  # where an option describes a single learner
OF_ONE = ("loss", "kernel", "step", "regularization", "budget", "offset", "scale")
# Options that decide what the model becomes: a run can only be resumed with the same ones.
DECISIVE = (
    *"target features delimiter decimal header on_error chunk algorithm effort".split(),
    *(*OF_ONE, "set", "classes"),
)
FIXED_ON_A_MODEL = ("algorithm", "effort", "loss", "kernel", "budget", "offset", "scale", "classes")


def add_learn(subcommands):
    """Add the command to the parser's subcommands."""
    parser = add_command(
        subcommands, "learn", _learn, "data ... [options]", "learn a model from a file or a pipe", DESCRIPTION, EXAMPLES
    )
    add_data_options(parser)
    _add_model_options(parser.add_argument_group("model"))
    _add_run_options(parser.add_argument_group("run"))


def _add_model_options(model):
    def add(name, convert, metavar, text, **others):
        # The words themselves are kept: a checkpoint compares them.
        model.add_argument(name, type=_checked(convert), metavar=metavar, help=text, **others)

    def add_component(kind, metavar, text):
        add(f"--{kind}", lambda name: component(kind, name), metavar, text)

    add_component("algorithm", "NAME",
                  "silk, norma, krls, passiveaggressive, ... (default: onlinekernelclassifier, -regressor or -detector, by what "
                  f"the target is; {DEFAULT_ALGORITHM} where an option describes a single learner)")
    model.add_argument("--effort", choices=("low", "medium", "high"),
                       help="how many members onlinekernelclassifier and its like have (default: medium)")
    add_component("loss", "NAME", "hinge, logistic, multiclasshinge, squared, nunovelty:0.01, ...")
    add_component("kernel", "NAME", "gaussian:2.0, polynomial:2, linear, laplacian:0.5, ...")
    add_component("step", "NUMBER", "or a name: inversesqrt:0.5, decaying:0.3, ...")
    add("--regularization", float, "NUMBER", "how fast the past is forgotten")
    add_component("budget", "NUMBER", "of terms, or a name: window:200, smallest:50, none, ...")
    model.add_argument("--offset", action=argparse.BooleanOptionalAction, default=None,
                       help="learn a constant as well; as a linear kernel does if neither is given")
    model.add_argument("--scale", action=argparse.BooleanOptionalAction, default=None,
                       help="scale features as the stream shows them (default: if there are words, dates or holes)")
    add("--set", _assignment, "NAME=VALUE", "any other parameter of the algorithm, such as penalty=0.5; may be repeated",
        action="append")
    model.add_argument("--classes", type=converter(as_columns), metavar="A,B,...",
                       help="all labels; two-class losses need them for words")
    model.add_argument("--model", metavar="FILE",
                       help="go on with this model instead of a new one; of its parameters --step, --regularization and "
                       "what --set says of them may change")


def _checked(convert):
    """A converter for argparse that keeps the text if `convert` takes it."""

    def keep(text):
        convert(text)
        return text

    keep.__name__ = convert.__name__.lstrip("_")
    return converter(keep)


def _assignment(text):
    """(name, value) of ``name=value``."""
    name, equals, rest = text.partition("=")
    if not equals or not name.strip().isidentifier():
        raise ValueError(f"must have the form name=value. Got {text!r} instead.")
    return name.strip(), value(rest)


def _add_run_options(run):
    run.add_argument("--report", type=integer_from(1), metavar="N",
                     help="report every N rows, at the next end of a chunk")
    run.add_argument("--save", metavar="FILE", help="where to write the model, at the end and at checkpoints")
    run.add_argument("--checkpoint", type=integer_from(1), metavar="N",
                     help="save every N rows, at the next end of a chunk, with the place in the stream")
    run.add_argument("--resume", action="store_true",
                     help="go on with the saved file, if it exists: files that it has read go on where they stopped, others "
                     "are learned from their first row. The result is the model that a run without interruption gives, bit "
                     "for bit. (Standard input is not read again: what comes is taken as new.)")
    run.add_argument("--progress", action="store_true", help="a progress bar, if tqdm is there, on a terminal")


def _learn(arguments):
    _check(arguments)
    wanted = None if arguments.progress else False  # on a terminal, if tqdm is there
    with Interruption() as interruption, progress_bar(wanted, arguments.limit, " examples") as advance:
        run = _Run(arguments, interruption)
        try:
            run.learn_all(advance)
            is_over = interruption.signal is not None
        except KeyboardInterrupt:
            is_over = True
        except BrokenPipeError:
            run.rescue()
            raise
        except Refused:
            raise
        except (OSError, ValueError, TypeError, ArithmeticError) as error:
            raise ValueError(told(error) + run.rescue()) from error
        if is_over:
            print(f"Stopped after {run.figures.rows} examples.{run.rescue('They')}", file=sys.stderr)
            return interruption.status
        return run.finish()


def _check(arguments):
    """Refuse options that contradict each other before anything is read or written."""
    for option in ("checkpoint", "resume"):
        if getattr(arguments, option) and arguments.save is None:
            raise Refused(f"--{option} needs --save FILE")
    for source in arguments.data:
        if arguments.data.count(source) > 1:
            raise Refused(f"data must be different files. Got {source!r} twice.")
    if arguments.model is not None:
        for name in FIXED_ON_A_MODEL:
            if getattr(arguments, name) is not None:
                raise Refused(f"--{name.replace('_', '-')} cannot be given with --model, which has its own")
    if arguments.save is not None:
        arguments.save = arguments.save if arguments.save.endswith(".npz") else arguments.save + ".npz"
        refuse_same_file("--save", arguments.save, arguments.data)
        if os.path.isdir(arguments.save):
            raise IsADirectoryError(21, "is a folder, and --save needs a file", arguments.save)
        folder = os.path.dirname(os.path.realpath(arguments.save))
        try:
            tempfile.TemporaryFile(dir=folder).close()
        except OSError as error:
            raise OSError(error.errno, f"cannot be saved to: {error.strerror}", folder) from error


# ---- Which model --------------------------------------------------------------------------------

LOOKED_AT = 1000  # rows of a file whose targets decide
WAITED_FOR = 100  # rows of a pipe, where only whole numbers leave it open for so long
MOST_CLASSES = 20  # distinct whole numbers that are taken for classes, if there are at least 5 rows for each
CLASSES, NUMBERS, NOVELTY = "onlinekernelclassifier", "onlinekernelregressor", "onlinekerneldetector"


def choice(y, enough=LOOKED_AT):
    """(the default ensemble for the first targets of a stream, what these are); None while fewer than `enough` leave it open.

    >>> choice(["yes", "no"])[0], choice(["1.5", "2"])[0], choice(None)[0]
    ('onlinekernelclassifier', 'onlinekernelregressor', 'onlinekerneldetector')
    >>> choice(["0", "1", "1"], 3)[0], choice([*map(str, range(100))], 100)[0], choice(["0", "1", "1"])
    ('onlinekernelclassifier', 'onlinekernelregressor', None)
    """
    if y is None:
        return (NOVELTY, "all columns, as there is no target: odd rows are looked for")
    numbers = [_number_or_none(text) for text in y]
    if None in numbers:
        return (CLASSES, "the target, whose values are words: classes")
    numbers = [number for number in numbers if not math.isnan(number)]
    if any(number != math.floor(number) for number in numbers):
        return (NUMBERS, "the target, whose values are numbers")
    if len(y) < enough:
        return None
    distinct = len(set(numbers))
    found = f"the target, which has {distinct} different whole numbers in {len(numbers)} rows:"
    if distinct <= max(2, min(MOST_CLASSES, len(numbers) // 5)):
        return (CLASSES, f"{found} classes, not numbers (--algorithm {NUMBERS} takes them for such)")
    return (NUMBERS, f"{found} numbers, not classes (--algorithm {CLASSES} takes them for such)")


def _number_or_none(text):
    """The number that a target means, whatever its decimal mark; None if it is a word."""
    try:
        return as_number(text.replace(",", "."))
    except ValueError:
        return None


def _new_model(arguments, name):
    """A model of the algorithm of that name, with the parameters that were given; Refused if they are invalid."""
    model = component("algorithm", name)()
    _set(model, arguments, (*OF_ONE, "effort"))
    try:
        model._plan()
    except (ValueError, TypeError) as error:
        raise Refused(str(error)) from error
    return model


def _set(model, arguments, names):
    """Set the parameters that options give."""
    params = dict(map(_assignment, arguments.set or []))
    for name in names:
        text = getattr(arguments, name)
        if text is not None:
            is_named = isinstance(text, str) and name in ("loss", "kernel", "step", "budget")
            params[name] = component(name, text) if is_named else value(text) if isinstance(text, str) else text
    try:
        for name in sorted(params, key=lambda name: name.count("__")):  # a kernel before its parameters
            model.set_params(**{name: params[name]})
    except (ValueError, TypeError) as error:
        raise Refused(str(error)) from error


# ---- The run ------------------------------------------------------------------------------------


class _Run:
    """A model on its way through its files, with the figures so far, and the places that it has reached."""

    def __init__(self, arguments, interruption):
        self.arguments, self.interruption = arguments, interruption
        self.classes = None if arguments.classes is None else labels_of(arguments.classes)
        self.options = {name: getattr(arguments, name) for name in DECISIVE}
        self.n_skipped, self.has_said_target = 0, False
        self.seconds, self.timed, self.n_reports = 0.0, 0, 0
        self.model, self.figures, self.files = None, Figures("classifier"), {}
        self.is_resumed = arguments.resume and os.path.exists(arguments.save)
        if self.is_resumed:
            self._resume(arguments.save)
        elif arguments.model is not None:
            self._begin(load(arguments.model))
            _set(self.model, arguments, ("step", "regularization"))
            self.files = (stream_of(self.model) or {"files": {}})["files"]
        elif arguments.algorithm is not None or any(getattr(arguments, name) is not None for name in OF_ONE):
            self._begin(_new_model(arguments, arguments.algorithm or DEFAULT_ALGORITHM))
        elif arguments.target == NO_TARGET:
            self._choose(choice(None))
        elif self.classes is not None:
            self._choose((CLASSES, "the target, whose values are names of classes"))

    def _begin(self, model, kept=None):
        """Take up a model; figures go on from those that were kept."""
        self.model = model
        self.figures = Figures(model._estimator_type, kept)
        self.saved, self.learned = self.figures.rows, self._t()

    def _resume(self, path):
        model = load(path)
        stream = stream_of(model)
        if stream is None:
            hint = f"(--model {path} goes on with it.)"
            raise ValueError(f"{path} cannot be resumed: it does not remember a stream. {hint}")
        for name, now in self.options.items():
            before = stream["options"].get(name)
            if now != before:
                option = "--" + name.replace("_", "-")
                was, is_now = (f"was {given!r}" if given is not None else "was not given" for given in (before, now))
                raise Refused(f"{option} must be as it was for {path} to resume: it {was}. Now it {is_now}.")
        self._begin(model, stream["figures"])
        self.files = stream["files"]

    def _choose(self, found):
        """Let the ensemble learn that was found for the target, and say so; None says that more has to be seen."""
        if found is not None:
            algorithm, reason = found
            self._begin(_new_model(self.arguments, algorithm))
            reason = reason.replace("the target", "the last column", 1) if self.has_said_target else reason
            others = "--target COLUMN (or none), --effort and --algorithm choose otherwise."
            print(f"{type(self.model).__name__} learns {reason}. {others}", file=sys.stderr)

    def _t(self):
        return getattr(self.model, "t_", 0)

    # ---- Files --------------------------------------------------------------------------------

    def learn_all(self, advance):
        """Learn all files, as far as they are still to come; `advance` hears of each chunk."""
        for source in self.arguments.data:
            if self.interruption.signal is None:
                self._learn_file(source, advance)

    def _learn_file(self, source, advance):
        table, key = self._open(source), _key_of(source)
        start = self.files.get(key) if self.is_resumed else None
        if start is not None:
            print(f"{table.name}: read before, goes on after row {start['rows']}.", flush=True)
        elif self.is_resumed:
            print(f"{table.name}: not read before, learned from its first row.", flush=True)
        for chunk in self._chunks(table, start):
            n = self._learn(chunk, table)
            if table.can_reopen:
                self.files[key] = {"name": os.path.basename(source), "rows": chunk.rows, "header": table.header,
                                   "last": chunk.last}
            self.learned = self._t()
            if n:
                if self._is_due("report", self.figures.reported[0]):
                    self._report()
                if self._is_due("checkpoint", self.saved):
                    self._save()
                advance(n)

    def _is_due(self, option, last):
        every = getattr(self.arguments, option)
        return every is not None and last // every < self.figures.rows // every

    def _open(self, source):
        target = None if self.arguments.target == NO_TARGET else self.arguments.target
        if self.arguments.target is None and not source.lower().endswith(".npz"):
            if self.model is None or self.figures.kind != "outlier_detector":
                target = "-1"
                if not self.has_said_target and self.model is not None:  # who is chosen for it says so, too
                    print("The target is the last column; --target COLUMN names another.", file=sys.stderr)
                self.has_said_target = True
        return opened(source, self.arguments, self.interruption, self.model, target)

    def _chunks(self, table, start):
        """The chunks of a table, once there is a model: those that are needed to choose one wait until then."""
        waiting = []
        try:
            for chunk in table.chunks(start):
                waiting.append(chunk)
                if self.model is None and chunk.lines:
                    self._choose(choice(_targets_of(waiting), LOOKED_AT if table.can_reopen else WAITED_FOR))
                if self.model is not None:
                    yield from waiting
                    waiting = []
        except ChangedFile as error:
            hint = f"(Without --resume, --model {self.arguments.save} learns it from its first row.)"
            raise ValueError(f"{error} {hint}") from error
        if any(chunk.lines for chunk in waiting):
            self._choose(choice(_targets_of(waiting), 0))
            yield from waiting

    # ---- Learning -----------------------------------------------------------------------------

    def _learn(self, chunk, table):
        """Test, then train, on one chunk; return the number of its rows."""
        y = None
        if self.figures.kind != "outlier_detector":
            if chunk.y is None:
                raise Refused(f"{table.name} has no labels; only detectors (--target none) need none.")
            kind = kind_of_targets(self.model, chunk.y, self.classes)
            self._check_fractions(chunk, kind, table)
            chunk, y = table.with_targets(chunk, kind)
        self.n_skipped += len(chunk.skipped)
        if not chunk.lines:
            return 0
        given = {}
        if self._t() == 0:
            given = {} if self.classes is None else {"classes": self.classes}
            self._settle(chunk.X, table)
        begin = perf_counter()
        try:
            examples = [chunk.X] if y is None else [chunk.X, y]
            scores, predictions = self.model.progressive(*examples, return_labels=True, **given)
        except (FloatingPointError, ValueError) as error:
            raise with_line(error, table, chunk.lines) from error
        self.seconds += perf_counter() - begin
        self.timed += len(chunk.lines)
        self.figures.add(y, scores, np.asarray(predictions), getattr(self.model, "classes_", np.array([])).tolist())
        return len(chunk.lines)

    def _settle(self, X, table):
        """Let the first rows of text say what a new model needs: an encoder, and scaling of what it makes."""
        if table.unit != "line" or dict(map(_assignment, self.arguments.set or [])).get("encode") is not None:
            return
        names = table.names if table.names is not None and len(set(table.names)) == len(table.names) else None
        params = self.model.get_params(deep=False)
        if "encode" in params and self.arguments.model is None:
            self.model.set_params(encode=RunningEncoder(columns=names))
            if self.arguments.scale is None and "scale" in params and (X.dtype == object or np.isnan(X).any()):
                self.model.set_params(scale=True)

    def _check_fractions(self, chunk, kind, table):
        """Fractions are no labels: say which model learns them."""
        if kind != "word" or self.classes is not None or hasattr(self.model, "classes_"):
            return
        numbers = [_number_or_none(text) for text in chunk.y]
        for line, number, text in zip(chunk.lines, numbers, chunk.y, strict=True):
            if None not in numbers and not math.isnan(number) and number != math.floor(number):
                what = f"the target {text} is a number, and {type(self.model).__name__} learns classes here."
                raise table.bad_row(line, None, f"{what} Use --algorithm {NUMBERS} or --loss squared for numbers.")

    # ---- Reports and saving -------------------------------------------------------------------

    def _report(self):
        microseconds = 1e6 * self.seconds / self.timed if self.timed else math.nan
        print_report(self.figures, self.model.n_terms_, microseconds, has_headings=self.n_reports == 0)
        self.n_reports += 1

    def finish(self):
        """Last report, last save, closing words; the exit status."""
        if self._t() == 0:
            raise ValueError(f"{', '.join(self.arguments.data)}: no examples to learn from.")
        if self.n_reports == 0 or self.figures.reported[0] < self.figures.rows:
            self._report()
        if self.arguments.save is not None:
            self._save()
        else:
            print("Nothing was kept: --save FILE keeps the model.", file=sys.stderr)
        if self.n_skipped:
            print(f"Skipped bad rows: {self.n_skipped}.", file=sys.stderr)
        if self.figures.of_two_classes().get("f1") == 0 and getattr(self.model, "threshold", 0) is None:
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
        if self.arguments.save is None or self.model is None or self._t() != self.learned:
            return ""  # nothing, or a part of a chunk, which has no place in the stream
        if self.saved != self.figures.rows:
            self._save()
        elif who is None or not self.saved:
            return ""
        return f" {who or f'The {self.figures.rows} examples before it'} are saved in {self.arguments.save}."


def _targets_of(chunks):
    return None if chunks[0].y is None else [text for chunk in chunks for text in chunk.y]


def _key_of(source):
    """A model file is passed around; where its data were is nobody's business."""
    return hashlib.blake2b(os.path.abspath(source).encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()


# ---- What a model file remembers ----------------------------------------------------------------

FORMAT = "onlinekernels stream"
VERSION = 5


def stream_of(model):
    """The options, figures and files that a loaded model's file remembers, or None."""
    stream = files.notes_of(model)
    if not isinstance(stream, dict) or (stream.get("format"), stream.get("version")) != (FORMAT, VERSION):
        return None
    return stream if {"options", "figures", "files"} <= set(stream) else None
