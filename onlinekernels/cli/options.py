"""What the commands share: options that describe data, names that stand for objects, and how a command ends."""

import argparse
import difflib
import inspect
import os
import signal
import stat
import sys
import threading
import warnings

import numpy as np

import onlinekernels as ok
from onlinekernels.budgets import Budget
from onlinekernels.cli.tables import Refused, file_behind, kind_of_labels, open_table
from onlinekernels.kernels import Kernel
from onlinekernels.losses import Loss
from onlinekernels.steps import Step

__all__ = [
    *("NO_TARGET", "Interruption", "add_command", "add_data_options", "as_columns", "component", "converter"),
    *("integer_from", "kind_of_targets", "opened", "refuse_same_file", "told", "value", "with_line"),
]

NO_TARGET = "none"


# ---- Commands and their ends --------------------------------------------------------------------


def add_command(subcommands, name, run, arguments, summary, description, examples):
    """Add a subcommand whose help ends with examples; return its parser."""
    parser = subcommands.add_parser(name, help=summary, usage=f"%(prog)s {arguments}", description=description,
                                    formatter_class=argparse.RawDescriptionHelpFormatter)
    program = parser.prog.removesuffix(" " + name)
    lines = [f"  {line}".rstrip().replace("python -m onlinekernels", program) for line in examples]
    parser.epilog = "\n".join(["examples:", *lines])
    parser.set_defaults(run=lambda arguments: _ended(run, arguments, parser), parser=parser)
    return parser


def _ended(run, arguments, parser):
    """Run a command and return its exit status; what is wrong, or is warned of, goes to stderr in one line."""
    formatwarning = warnings.formatwarning
    warnings.formatwarning = lambda warning, *_: f"{parser.prog}: {told(warning)}\n"
    try:
        status = run(arguments)
        sys.stdout.flush()
        return status
    except Refused as error:
        parser.error(told(error))
    except BrokenPipeError:  # whoever read our output has gone; nobody is there to be told
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 1
    except KeyboardInterrupt:
        return 130
    except (OSError, ValueError, TypeError, ArithmeticError, ImportError) as error:
        print(f"{parser.prog}: {told(error)}", file=sys.stderr)
        return 1
    finally:
        warnings.formatwarning = formatwarning


def told(error):
    """An error, or a warning, in one line, in which arguments of Python's are options."""
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    text = error.args[0] if error.args and hasattr(error.args[0], "told") else str(error)
    text = text.told(_as_option) if hasattr(text, "told") else text
    return " ".join(text.split()) or type(error).__name__


def _as_option(argument):
    if argument.option is not None:
        return argument.option
    return "--classes A,B" if argument.name == "classes" else f"--set {argument}"


class Interruption:
    """Ctrl-C and a polite kill end a command early, in good order: what was read is dealt with, and no more is read.

    The first signal is noted; a second one ends at once.

    Attributes
    ----------
    signal : int or None
        The signal that came.
    is_opening : bool
        Whether a pipe is waiting for its writer, which nothing but an exception ends.
    wake : int or None
        A descriptor that has something to read when a signal has come, for `select`.
    """

    def __init__(self):
        self.signal, self.is_opening, self.wake = None, False, None

    def __enter__(self):
        self._before = {}
        if threading.current_thread() is threading.main_thread():
            if os.name != "nt":
                self.wake, self._alarm = os.pipe()
                os.set_blocking(self._alarm, False)
                self._alarm_before = signal.set_wakeup_fd(self._alarm, warn_on_full_buffer=False)
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_):
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if self.wake is not None:
            signal.set_wakeup_fd(self._alarm_before)
            os.close(self.wake)
            os.close(self._alarm)

    @property
    def status(self):
        """The exit status after a signal, as shells have it."""
        return 128 + (self.signal or signal.SIGINT)

    def _note(self, number, _):
        is_first, self.signal = self.signal is None, number
        if not is_first or self.is_opening:
            raise KeyboardInterrupt


# ---- Words that stand for something -------------------------------------------------------------


def converter(function):
    """A converter for argparse whose ValueErrors are told as they are."""

    def convert(text):
        try:
            return function(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    convert.__name__ = function.__name__
    return convert


def integer_from(least):
    """A converter for argparse that refuses integers below `least`."""

    def integer(text):
        number = int(text)
        if number < least:
            raise argparse.ArgumentTypeError(f"must be at least {least}. Got {number} instead.")
        return number

    return integer


def value(text):
    """A number, True, False, None, or the text itself.

    >>> value("3"), value("3.0"), value("true"), value("PA-II")
    (3, 3.0, True, 'PA-II')
    """
    words = {"true": True, "false": False, "none": None}
    if text.strip().lower() in words:
        return words[text.strip().lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text.strip()


def component(kind, text):
    """An object from ``name`` or ``name:number``; steps and budgets may be a number alone, or none.

    >>> component("kernel", "gaussian:2.0"), component("loss", "nu-hinge"), component("budget", "window:200")
    (Gaussian(width=2.0), NuHinge(), Window(200))
    >>> component("step", "0.5"), component("budget", "none"), component("algorithm", "silk").__name__
    (0.5, None, 'SILK')
    """
    number = value(text)
    if kind in ("step", "budget") and not isinstance(number, str):
        return number
    name, colon, number = text.partition(":")
    known = names_of(kind)
    key = name.strip().lower().replace("-", "").replace("_", "")
    if key not in known:
        close = difflib.get_close_matches(key, known, 1)
        hint = f" (Is {close[0]} meant?)" if close else ""
        raise ValueError(f"{kind} must be one of {', '.join(sorted(known))}. Got {name.strip()!r} instead.{hint}")
    cls = getattr(ok, known[key])
    if kind == "algorithm" and not colon:
        return cls
    takes = "no number" if kind == "algorithm" else next(iter(inspect.signature(cls).parameters), "no parameter")
    try:
        if colon and (kind == "algorithm" or isinstance(value(number), str)):
            raise TypeError
        return cls(value(number)) if colon else cls()
    except TypeError:
        what = f"{kind} must be name or name:number; {cls.__name__} takes {takes}, and --set sets the others."
        raise ValueError(f"{what} Got {text!r} instead.") from None


def names_of(kind):
    """{name in small letters: name} of the library's objects of one kind."""
    if kind == "algorithm":  # Adatron learns whole data sets only
        return {name.lower(): name for name in ok.algorithms.__all__ if name != "Adatron"}
    base = {"kernel": Kernel, "loss": Loss, "step": Step, "budget": Budget}[kind]
    classes = ((name, getattr(ok, name)) for name in ok.__all__)
    return {name.lower(): name for name, cls in classes if base in getattr(cls, "__mro__", ())[1:]}


def as_columns(text):
    """Names or indices of columns, separated by commas."""
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise ValueError(f"must be names of columns, separated by commas. Got {text!r} instead.")
    return names


# ---- Data ---------------------------------------------------------------------------------------


def add_data_options(parser):
    data = parser.add_argument_group("data")
    data.add_argument("data", nargs="+",
                      help="a .csv or .tsv file (also .gz), an .npz file with arrays X and y, or - for standard input; or "
                      "several")
    data.add_argument("--target", metavar="COLUMN",
                      help="name or index of the column of labels or numbers (learn: the last, if none is named; \"none\" "
                      "for no target)")
    data.add_argument("--features", type=converter(as_columns), metavar="A,B,...",
                      help="names or indices of the columns to use (default: all but the target)")
    data.add_argument("--delimiter", type=converter(_delimiter), metavar="C",
                      help="character between fields, or tab (default: a comma; in .tsv a tab)")
    data.add_argument("--decimal", choices=(".", ","), default=".",
                      help="what numbers have before their fraction (default: %(default)s)")
    header = data.add_mutually_exclusive_group()
    header.add_argument("--header", dest="header", action="store_true", default="auto",
                        help="the first line has names (default: if none of its fields is a number)")
    header.add_argument("--no-header", dest="header", action="store_false", help="the first line has data")
    data.add_argument("--on-error", choices=("raise", "skip"), default="raise",
                      help="what to do with bad rows (default: %(default)s)")
    data.add_argument("--limit", type=integer_from(0), metavar="N", help="stop after so many rows of a file")
    data.add_argument("--chunk", type=integer_from(1), default=1024, metavar="N",
                      help="most rows at a time (default: %(default)s); on a pipe, fewer once the oldest is 0.1 s old")


def _delimiter(text):
    delimiter = {"\\t": "\t", "tab": "\t"}.get(text, text)
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise ValueError(f"must be one character that is not a quote or the end of a line. Got {text!r} instead.")
    return delimiter


def opened(source, arguments, interruption, model, target):
    """The table in a source, with the columns that a model knows; `target` is the target's column or None."""
    names = list(model.feature_names_in_) if hasattr(model, "feature_names_in_") else None
    kinds = None
    if hasattr(model, "encoder_"):
        kinds = [kind and ("number" if kind == "number" else "text") for kind in model.encoder_.kinds_.values()]
    elif getattr(model, "t_", 0):  # it learned arrays of numbers
        kinds = ["number"] * model.n_features_in_
    return open_table(source, arguments, interruption, target=target, names=names, kinds=kinds)


def kind_of_targets(model, texts, classes=None):
    """What a model's targets are: "number", or labels that are each an "integer" or a "word"."""
    if model._estimator_type == "regressor":
        return "number"
    known = getattr(model, "classes_", classes)
    if known is not None and len(known):
        return "integer" if all(isinstance(label, (int, float)) for label in np.asarray(known).tolist()) else "word"
    return kind_of_labels(texts)


def refuse_same_file(option, path, sources):
    """Refuse to write to a file that is read, whatever name, link or pipe leads to it, before anything is written."""
    written = None if path is None else file_behind(path)
    for source in sources if written is not None and stat.S_ISREG(written.st_mode) else ():
        read = file_behind(source)
        if read is not None and os.path.samestat(read, written):
            raise Refused(f"{option} must not be a file that is read, which would be lost. {path!r} is {source!r}.")


def with_line(error, table, lines):
    """An error about a row of a chunk as one about a line of the file."""
    row = getattr(error, "row", None)
    if row is None or row >= len(lines):
        return error
    return ValueError(f"{table.name}, {table.unit} {lines[row]}, {error.what.lstrip(',: ')}")
