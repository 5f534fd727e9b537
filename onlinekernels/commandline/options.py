"""What the commands share: options that describe data, and how errors end a command."""

import argparse
import os
import sys
import warnings

from onlinekernels.commandline.choosing import NO_TARGET
from onlinekernels.streams import read
from onlinekernels.streams.labels import LabelParser
from onlinekernels.streams.options import FORMATS, format_of
from onlinekernels.validation import Sentence

__all__ = [
    "Usage",
    "add_command",
    "add_data_options",
    "as_labels",
    "converter",
    "integer_from",
    "label_options",
    "needs_target",
    "open_data",
    "told",
    "with_line",
]


class Usage(Exception):
    """The arguments make no sense together; ends with status 2."""


def add_command(subcommands, name, run, arguments, summary, description, examples):
    """Add a subcommand whose help ends with examples; return its parser."""
    parser = subcommands.add_parser(
        name,
        help=summary,
        usage=f"%(prog)s {arguments}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
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
    except Usage as error:
        parser.error(str(error))
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
    """An error, or a warning, in one line."""
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    text = error.args[0] if error.args and isinstance(error.args[0], Sentence) else str(error)
    text = text.told(_as_option) if isinstance(text, Sentence) else text
    return " ".join(text.split()) or type(error).__name__


_OPTIONS = {"features": "--features A,B,...", "classes": "--classes A,B"}


def _as_option(argument):
    """What the command line has for an argument of Python's."""
    if argument.option is not None:
        return argument.option
    option = "--" + argument.name.replace("_", "-")
    if argument.owner is not None:
        return "data" if argument.name == "source" else option
    value = argument.value.strip("'")
    return _OPTIONS.get(argument.name) or f"{option} {value if value.isalnum() else argument.value}".strip()


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
        value = int(text)
        if value < least:
            raise argparse.ArgumentTypeError(f"must be at least {least}. Got {value} instead.")
        return value

    return integer


def columns(text):
    """Names or indices of columns, separated by commas."""
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise ValueError(f"must be names of columns, separated by commas. Got {text!r} instead.")
    return names


def add_data_options(parser):
    data = parser.add_argument_group("data")
    data.add_argument(
        "data",
        nargs="+",
        help="a .csv, .tsv, .libsvm (each also .gz), .npy or .npz file, or - for standard input; or several in a row",
    )
    data.add_argument(
        "--target",
        metavar="COLUMN",
        help="name or index of the column of labels or numbers (learn: the last, if none is named; \"none\" for no target). "
        "Of numbers also several: A,B,...",
    )
    data.add_argument(
        "--features",
        type=converter(columns),
        metavar="A,B,...",
        help="names or indices of the columns to use (default: all but the target)",
    )
    data.add_argument("--format", choices=FORMATS, help="default: by the file's name")
    data.add_argument(
        "--delimiter",
        type=lambda text: {"\\t": "\t", "tab": "\t"}.get(text, text),
        metavar="C",
        help="character between fields, or tab (default: a comma, or what the first line has in its place; in .tsv a tab); between ; 0,5 is a number",
    )
    header = data.add_mutually_exclusive_group()
    header.add_argument("--header", dest="header", action="store_true", default="auto", help="the first line has names")
    header.add_argument("--no-header", dest="header", action="store_false", help="the first line has data")
    data.add_argument("--n-features", type=integer_from(1), metavar="N", help="number of features, for .libsvm")
    data.add_argument("--sparse", action="store_true", help="keep .libsvm data sparse; needs scipy")
    data.add_argument(
        "--label-type",
        choices=("auto", "number", "string"),
        default="auto",
        help="auto: numbers if the first labels are numbers",
    )
    data.add_argument(
        "--on-error", choices=("raise", "skip"), default="raise", help="what to do with bad rows (default: %(default)s)"
    )
    data.add_argument("--limit", type=integer_from(0), metavar="N", help="stop after so many rows")
    data.add_argument(
        "--chunk",
        type=integer_from(1),
        default=1024,
        metavar="N",
        help="most rows at a time (default: %(default)s); on standard input, fewer once the oldest is 0.1 s old",
    )
    return data


def open_data(arguments, source, model, **others):
    """The reader of a source that the arguments describe, for a model, or None if it is yet to be chosen."""
    options = dict(
        target=None if arguments.target == NO_TARGET else arguments.target,
        features=arguments.features,
        format=arguments.format,
        header=arguments.header,
        delimiter=arguments.delimiter,
        n_features=arguments.n_features,
        sparse=arguments.sparse,
        label_type=arguments.label_type,
        on_error=arguments.on_error,
        limit=arguments.limit,
        chunk=arguments.chunk,
        kinds=_kinds(arguments, source, model),
    )
    try:
        is_libsvm = format_of(source, arguments.format) == "libsvm"
        if arguments.n_features is None and is_libsvm and hasattr(model, "n_features_in_"):
            options["n_features"] = model.n_features_in_
        return read(source, **{**options, **others})
    except ValueError as error:
        raise Usage(told(error)) from error


def _kinds(arguments, source, model):
    """What the columns of a table hold, as far as that is known; None if a model takes numbers alone."""
    encodes = arguments.encode is not False if model is None else model.encode is not False
    if not encodes or format_of(source, arguments.format) not in ("csv", "tsv"):
        return None
    if hasattr(model, "encoder_"):
        return list(model.encoder_.kinds_.values())
    return "auto"


def needs_target(arguments, source):
    """Whether only --target can say where the labels are."""
    return arguments.target is None and format_of(source, arguments.format) in ("csv", "tsv", "npy")


def label_options(arguments, model, task, classes=None):
    """Labels are read as what the model, or the user, knows them to be."""
    if task == "regression":
        several = columns(arguments.target) if "," in (arguments.target or "") else None
        return {"label_type": "number", **({} if several is None else {"target": several})}
    if model is not None and model._state is not None and task in ("binary", "multiclass"):
        classes = model.classes_
    return {"label_type": "string"} if classes is not None and classes.dtype.kind == "U" else {}


def as_labels(texts, label_type):
    """Labels that are named on the command line, as the reader would read them from data."""
    return LabelParser("string" if label_type == "string" else "auto").convert(texts)


def with_line(error, reader, lines):
    """An error about a row of a chunk as one about a line of the file."""
    row = getattr(error, "row", None)
    if row is None or row >= len(lines):
        return error
    return ValueError(f"{reader.name}, {reader.unit} {lines[row]}, {error.what.lstrip(',: ')}")
