"""``learn``: a model learns a stream, and says how well it predicted each example beforehand."""

import os
import signal
import sys
import threading
from contextlib import contextmanager

import numpy as np

from onlinekernels.commandline import checkpoints, specifications
from onlinekernels.commandline.options import (
    Usage,
    add_command,
    add_data_options,
    converter,
    integer_from,
    label_options,
    open_data,
    told,
)
from onlinekernels.evaluate.measures import Totals, test_then_train
from onlinekernels.evaluate.progress import progress_bar
from onlinekernels.evaluate.words import headline, shown
from onlinekernels.modelfile import load
from onlinekernels.scaling import RunningScaler

__all__ = ["add_learn"]

DESCRIPTION = """\
Learn from a stream, example by example. Each one is predicted before it is learned, so the
mistakes that are printed are honest. A report has the number of examples, the mistakes (or errors,
or alerts) over all of them and since the last report, the terms of the model, and the microseconds
that learning took per example.

Kernels, losses, steps and budgets are written as name, name:value or name:parameter=value,...
A sum of kernels has a + in it: gaussian:2.0+0.1*linear."""

EXAMPLES = [
    "python -m onlinekernels learn data.csv --target label --save model.npz",
    "python -m onlinekernels learn data.csv --target label --loss multiclasshinge \\",
    "       --algorithm silk --kernel gaussian:2.0 --budget 512 --save model.npz --progress",
    "python -m onlinekernels learn prices.tsv.gz --target price --loss squared --scale --offset --report 1000",
    "python -m onlinekernels learn big.libsvm --n-features 123 --kernel linear --checkpoint 100000 --save m --resume",
    "tail -f log.csv | python -m onlinekernels learn - --target 3 --classes ok,failed --report 100 --save m.npz",
    "tail -f log.csv | python -m onlinekernels learn - --loss nunovelty:0.01 --kernel gaussian:1 --save m.npz",
    "",
    "exit status: 0 fine, 1 an error in the data or files, 2 wrong arguments, 130 after Ctrl-C (the model is saved)",
]

# Options that decide what the model becomes: a run can only be resumed with the same ones.
_DECISIVE = (
    "target features format header delimiter n_features sparse label_type on_error chunk "
    "algorithm loss kernel step regularization penalty budget offset average scale scale_memory set classes"
).split()
DEFAULT_ALGORITHM = "silk"
_PARAMETERS = ("loss", "kernel", "step", "regularization", "penalty", "budget", "offset", "average", "scale")


def add_learn(subcommands):
    """Add the command to the parser's subcommands."""
    parser = add_command(
        subcommands, "learn", _learn, "data [options]", "learn a model from a file or a pipe", DESCRIPTION, EXAMPLES
    )
    add_data_options(parser)
    _add_model_options(parser.add_argument_group("model"))
    _add_run_options(parser.add_argument_group("run"))


def _add_model_options(model):
    def add(name, convert, metavar, text):
        # The words themselves are kept: a checkpoint compares them.
        model.add_argument(name, type=_checked(convert), metavar=metavar, help=text)

    names = ", ".join(sorted(specifications.ALGORITHMS))
    model.add_argument(
        "--algorithm",
        type=_checked(specifications.algorithm),
        metavar="NAME",
        help=f"one of {names} (default: {DEFAULT_ALGORITHM})",
    )
    add("--loss", specifications.loss, "SPEC", "hinge, logistic, multiclasshinge, squared, nunovelty:0.01, ...")
    add("--kernel", specifications.kernel, "SPEC", "gaussian:2.0, polynomial:degree=2, linear, sums with +, ...")
    add("--step", specifications.step, "SPEC", "a number, or inversesqrt:0.5, decaying:rate=0.3,delay=200, ...")
    add("--regularization", float, "NUMBER", "how fast the past is forgotten")
    add("--penalty", float, "NUMBER", "weight of the loss in implicit and passive-aggressive steps")
    add("--budget", specifications.budget, "SPEC", "a number of terms, or window:200, smallest:50, none, ...")
    model.add_argument("--offset", action="store_true", default=None, help="learn a constant as well")
    model.add_argument("--average", action="store_true", default=None, help="average over all models on the way")
    model.add_argument("--scale", action="store_true", default=None, help="scale features as the stream shows them")
    add("--scale-memory", float, "NUMBER", "scale, and forget: 0.999 goes by about the last thousand rows")
    model.add_argument(
        "--set",
        type=_checked(specifications.assignment),
        action="append",
        metavar="NAME=VALUE",
        help="any other parameter of the algorithm, such as meta_step=0.5; may be repeated",
    )
    model.add_argument("--classes", metavar="A,B,...", help="all labels; two-class losses need them for words")
    model.add_argument("--model", metavar="FILE", help="go on with this model instead of a new one")


def _checked(convert):
    """A converter for argparse that keeps the text if `convert` takes it."""

    def keep(text):
        convert(text)
        return text

    keep.__name__ = convert.__name__
    return converter(keep)


def _add_run_options(run):
    run.add_argument(
        "--epochs",
        type=integer_from(1),
        default=1,
        metavar="N",
        help="passes over a file (default: 1); all count in the report",
    )
    run.add_argument("--report", type=integer_from(1), metavar="N", help="report every N examples")
    run.add_argument("--save", metavar="FILE", help="where to write the model, at the end and at checkpoints")
    run.add_argument(
        "--checkpoint",
        type=integer_from(1),
        metavar="N",
        help="save every N examples, at the next end of a chunk, with the place in the stream",
    )
    run.add_argument(
        "--resume",
        action="store_true",
        help="go on from the place that the saved file remembers, if it exists; the result is the model that a run "
        "without interruption gives, bit for bit. (Standard input is not read again: what comes is taken as new.)",
    )
    run.add_argument("--progress", action="store_true", help="a progress bar, if tqdm is there, on a terminal")


def _learn(arguments):
    _check(arguments)
    if arguments.save is not None:
        arguments.save = checkpoints.with_suffix(arguments.save)
        checkpoints.remove_leftovers(arguments.save)
    run = _Run(arguments)
    wanted = None if arguments.progress else False  # on a terminal, if tqdm is there
    with _Interruption() as interruption, progress_bar(wanted, arguments.limit, " examples") as advance:
        try:
            _learn_all(run, interruption, advance)
        except KeyboardInterrupt:
            interruption.signal = interruption.signal or signal.SIGINT
        except BrokenPipeError:
            run.rescue()
            raise
        except (OSError, ValueError, TypeError, ArithmeticError) as error:
            raise ValueError(told(error) + run.rescue()) from error
        if interruption.signal is not None:
            print(f"Stopped after {run.totals.count} examples.{run.rescue('They')}", file=sys.stderr)
            return 128 + interruption.signal
    return run.finish()


def _learn_all(run, interruption, advance):
    for X, y in run.chunks():
        with interruption.held():
            run.learn(X, y)
            run.report_if_due()
            run.save_if_due()
        advance(X.shape[0])


def _check(arguments):
    for option in ("checkpoint", "resume"):
        if getattr(arguments, option) and arguments.save is None:
            raise Usage(f"--{option} needs --save FILE")
    if arguments.data == "-" and arguments.epochs > 1:
        raise Usage(f"--epochs must be 1 for standard input, which comes once. Got {arguments.epochs} instead.")
    if arguments.save is not None and not os.path.isdir(os.path.dirname(arguments.save) or "."):
        raise FileNotFoundError(2, "there is no such folder to save to", os.path.dirname(arguments.save))
    if arguments.scale_memory is not None and not 0 < float(arguments.scale_memory) <= 1:
        raise Usage(f"--scale-memory must be a number in (0, 1]. Got {arguments.scale_memory} instead.")
    if arguments.model is not None:
        for name in ("algorithm", *_PARAMETERS, "scale_memory", "set", "classes"):
            if getattr(arguments, name) is not None:
                raise Usage(f"--{name.replace('_', '-')} cannot be given with --model, which has its own")


def _new_model(arguments):
    """An algorithm with the parameters that were given; Usage if it does not take them."""
    algorithm = specifications.algorithm(arguments.algorithm or DEFAULT_ALGORITHM)
    makers = {name: getattr(specifications, name) for name in ("loss", "kernel", "step", "budget")}
    params = dict(specifications.assignment(text) for text in arguments.set or [])
    for name in _PARAMETERS:
        given = getattr(arguments, name)
        if given is not None:
            params[name] = makers.get(name, specifications.value)(given) if isinstance(given, str) else given
    if arguments.scale_memory is not None:
        params["scale"] = RunningScaler(float(arguments.scale_memory))
    takes = [parameter.name for parameter in algorithm._signature() if parameter.name not in ("labels", "epochs")]
    for name in params:
        if name not in takes:
            raise Usage(f"{algorithm.__name__} has no parameter {name!r}. It has: {', '.join(takes)}.")
    model = algorithm(**params)
    try:
        model._plan()
    except (ValueError, TypeError) as error:
        raise Usage(str(error)) from error
    return model


def _named_classes(text, label_type):
    """Labels of --classes as an array: numbers, unless one of them is a word."""
    if text is None:
        return None
    words = [word.strip() for word in text.split(",")]
    numbers = [specifications.value(word) for word in words]
    if label_type == "string" or not all(type(number) in (int, float) for number in numbers):
        return np.array(words)
    return np.array(numbers)


class _Run:
    """A model on its way through a stream."""

    def __init__(self, arguments):
        self.arguments = arguments
        self.model = load(arguments.model) if arguments.model else _new_model(arguments)
        self.task = self.model._current_loss().task
        self.totals, self.totals_reported = Totals(), Totals()
        self.classes = _named_classes(arguments.classes, arguments.label_type)
        self.options = {name: checkpoints.brief(getattr(arguments, name)) for name in _DECISIVE}
        # The place after the last chunk that was learned, and after the chunk that comes next.
        names = checkpoints.names_in(arguments.model, self.model) if arguments.model else None
        self.place = self.next_place = {"epoch": 0, "position": None, "features": names}
        self.n_skipped = 0
        self.seconds, self.timed = 0.0, 0
        self.saved = 0
        self.has_headings = False
        if arguments.resume and os.path.exists(arguments.save):
            self._resume(arguments.save)
        self.learned = self._t()

    def _resume(self, path):
        stream = checkpoints.stream_of(path)
        if stream is None:
            raise ValueError(f"{path} cannot be resumed: it does not remember a place in a stream.")
        for name, before in stream["options"].items():
            now = self.options.get(name)
            if now != before:
                option = "--" + name.replace("_", "-")
                was, is_now = (f"was {value!r}" if value is not None else "was not given" for value in (before, now))
                raise Usage(f"{option} must be as it was for {path} to resume: it {was}. Now it {is_now}.")
        self.model = load(path)
        self.totals, self.totals_reported = Totals(**stream["totals"]), Totals(**stream["totals"])
        self.place = self.next_place = stream["place"]
        self.saved = self.totals.count

    def _t(self):
        return 0 if self.model._state is None else self.model.t_

    # ---- Data ---------------------------------------------------------------------------------

    def chunks(self):
        """Yield all chunks of all passes that are still to come."""
        start = self.place["position"] if self.arguments.data != "-" else None
        for epoch in range(self.place["epoch"], self.arguments.epochs):
            options = label_options(self.model, self.task, self.classes)
            reader = open_data(self.arguments, self.model, start=start, names=self.place["features"], **options)
            for X, y in reader:
                if y is None and self.task != "novelty":
                    raise Usage("--target COLUMN must name the column of labels; only novelty losses need none")
                self.next_place = {"epoch": epoch, "position": reader.position, "features": reader.feature_names}
                yield X, y
            self.n_skipped = reader.n_skipped
            start = None

    # ---- Learning -----------------------------------------------------------------------------

    def learn(self, X, y):
        """Test, then train, on one chunk."""
        classes = self.classes if self.model._state is None else None
        measures, seconds = test_then_train(self.model, X, None if self.task == "novelty" else y, classes)
        self.seconds += seconds
        self.timed += len(measures)
        self.totals.add(measures)
        self.place, self.learned = self.next_place, self._t()

    def report_if_due(self):
        every = self.arguments.report
        if every is not None and self.totals_reported.count // every < self.totals.count // every:
            self.report()

    def report(self):
        headings, cells = ["examples"], [str(self.totals.count)]
        lately = self.totals.since(self.totals_reported)
        for name, word in headline(self.task):
            headings += [word, "lately"]
            cells += [shown(self.task, name, totals.mean(name)) or "-" for totals in (self.totals, lately)]
        headings += ["terms", "microseconds"]
        cells += [str(self.model.n_terms_), f"{1e6 * self.seconds / self.timed:.2f}" if self.timed else "-"]
        widths = [max(len(heading), 10) + 2 for heading in headings]
        for row in (cells,) if self.has_headings else (headings, cells):
            print("".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)), flush=True)
        self.has_headings = True
        self.totals_reported = Totals(**self.totals.to_dict())

    def finish(self):
        """Last report, last save; the exit status."""
        if self._t() == 0:
            raise ValueError(f"{self.arguments.data} has no examples to learn from.")
        if not self.has_headings or self.totals_reported.count < self.totals.count:
            self.report()
        if self.arguments.save is not None:
            self.save()
        if self.n_skipped:
            print(f"Skipped bad rows: {self.n_skipped}.", file=sys.stderr)
        return 0

    # ---- Saving -------------------------------------------------------------------------------

    def save_if_due(self):
        every = self.arguments.checkpoint
        if every is not None and self.saved // every < self.totals.count // every:
            self.save()

    def save(self):
        stream = {"place": self.place, "totals": self.totals.to_dict(), "options": self.options}
        checkpoints.save(self.model, self.arguments.save, stream)
        self.saved = self.totals.count

    def rescue(self, who=None):
        """Save what was learned before something went wrong, and say so."""
        if self.arguments.save is None or self.saved == self.totals.count or self._t() != self.learned:
            return ""
        self.save()
        return f" {who or f'The {self.totals.count} examples before it'} are saved in {self.arguments.save}."


class _Interruption:
    """Ctrl-C and a polite kill end a run between two chunks, so that the model and its place agree.

    While a chunk is being learned, the first signal is only noted; a second one ends at once.
    """

    def __init__(self):
        self.signal = None
        self.is_held = False

    def __enter__(self):
        self.before = {}
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self.before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_):
        for number, handler in self.before.items():
            signal.signal(number, handler)

    def _note(self, number, _):
        is_first, self.signal = self.signal is None, number
        if not (self.is_held and is_first):
            raise KeyboardInterrupt

    @contextmanager
    def held(self):
        """Hold signals back for a while; then KeyboardInterrupt if there was one."""
        self.is_held = True
        try:
            yield
        finally:
            self.is_held = False
        if self.signal is not None:
            raise KeyboardInterrupt
