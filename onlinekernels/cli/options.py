"""What the commands share: how a command is declared, its options about data, and how it ends."""
import argparse
import difflib
import os
import re
import signal
import stat
import sys
import tempfile
import threading
import warnings

from onlinekernels.cli.tables import Refused, file_behind

MODULE = "python -m onlinekernels"


class Parser(argparse.ArgumentParser):
    """A parser that refuses unknown arguments with its own usage, and says which may be meant."""

    def parse_known_args(self, args=None, namespace=None):
        namespace, unknown = super().parse_known_args(args, namespace)
        if unknown:
            options = re.findall(r"--[\w-]+", self.format_help())
            close = [difflib.get_close_matches(word.partition("=")[0], options, 1, 0.75) for word in unknown]
            others = " (--set NAME=VALUE sets any other parameter.)" if "--set" in options else ""
            hint = next((f" (is {matches[0]} meant?)" for matches in close if matches), others)
            self.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
        return namespace, unknown

    def error(self, message):
        chosen = re.search(r"invalid choice: '([^']*)' \(choose from (.*)\)", message)
        close = difflib.get_close_matches(chosen[1], re.findall(r"[\w-]+", chosen[2]), 1) if chosen else []
        super().error(message + "".join(f" (Is {word} meant?)" for word in close))


def add_command(subcommands, name, run, arguments, summary, description, examples):
    """Add a subcommand whose help ends with examples; return its parser."""
    parser = subcommands.add_parser(name, help=summary, usage=f"%(prog)s {arguments}", description=description,
                                    formatter_class=argparse.RawDescriptionHelpFormatter)
    program = parser.prog.removesuffix(" " + name)
    parser.epilog = "\n".join(["examples:", *(f"  {line.replace(MODULE, program)}" for line in examples)])
    parser.set_defaults(run=lambda arguments: _ended(run, arguments, parser))
    return parser


def _ended(run, arguments, parser):
    """Run a command and return its exit status; an error or a warning goes to stderr in one line."""
    formatwarning = warnings.formatwarning
    warnings.formatwarning = lambda warning, *_: f"{parser.prog}: {in_one_line(warning)}\n"
    try:
        status = run(arguments)
        sys.stdout.flush()
        return status
    except Refused as error:
        parser.error(in_one_line(error))
    except BrokenPipeError:  # whoever read our output has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 1
    except KeyboardInterrupt:
        return 130
    except (OSError, ValueError, TypeError, ArithmeticError, ImportError) as error:
        print(f"{parser.prog}: {in_one_line(error)}", file=sys.stderr)
        return 1
    finally:
        warnings.formatwarning = formatwarning


def in_one_line(error):
    """An error, or a warning, in one line, which names options where the library names arguments."""
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    text = str(error).replace("classes=[...]", "--classes A,B")
    return " ".join(text.split()) or type(error).__name__


class Interruption:
    """Ctrl-C and SIGTERM are noted: what was read is learned or predicted, and no more is read.

    A second one raises KeyboardInterrupt at once, and so does the first one while a pipe waits for its writer.
    """

    def __init__(self):
        self.signal, self.is_opening = None, False

    def __enter__(self):
        self._before = {}
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_):
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @property
    def status(self):
        """The exit status: as shells have it after a signal, otherwise 0."""
        return 0 if self.signal is None else 128 + self.signal

    def _note(self, number, _):
        is_first, self.signal = self.signal is None, number
        if not is_first or self.is_opening:
            raise KeyboardInterrupt


def count(text):
    """A whole number of at least 1, for argparse."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1. Got {number} instead.")
    return number


def as_columns(text):
    """Names or indices of columns, separated by commas, for argparse."""
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise argparse.ArgumentTypeError(f"must be names of columns, separated by commas. Got {text!r} instead.")
    return names


def _delimiter(text):
    delimiter = {"\\t": "\t", "tab": "\t"}.get(text, text)
    if len(delimiter) != 1 or delimiter in '"\r\n':
        what = "must be one character that is not a quote or the end of a line"
        raise argparse.ArgumentTypeError(f"{what}. Got {text!r} instead.")
    return delimiter


def add_data_options(parser):
    """Add the options that all commands that read data have."""
    add = parser.add_argument_group("data").add_argument
    add("data", nargs="+", help="a .csv, .tsv or .jsonl file (also .gz), or - for standard input; or several")
    add("--target", metavar="COLUMN",
        help="name or index of the column of labels or numbers, or \"none\" (learn, evaluate: default the last)")
    add("--features", type=as_columns, metavar="A,B,...",
        help="names or indices of the columns to use (default: all but the target)")
    add("--delimiter", type=_delimiter, metavar="C",
        help="character between fields, or tab (default: a comma; in .tsv a tab)")
    add("--decimal", choices=(".", ","), default=".",
        help="what numbers have before their fraction (default: %(default)s)")
    add("--header", action=argparse.BooleanOptionalAction,
        help="whether the first line has names (default: if none of its fields is a number)")
    add("--json", action="store_true", help="standard input and output are JSON lines")
    add("--on-error", choices=("raise", "skip"), default="raise",
        help="what to do with bad rows (default: %(default)s)")
    add("--limit", type=count, metavar="N", help="stop after N rows of a file")
    add("--chunk", type=count, default=1024, metavar="N",
        help="most rows at a time (default: %(default)s); on a pipe, fewer once the oldest is 0.1 s old")


def check_folder(path):
    """OSError, before anything is learned, if no file can be written where this one shall be."""
    folder = os.path.dirname(os.path.realpath(path))
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise OSError(error.errno, f"cannot be saved to: {error.strerror}", folder) from error


def refuse_same_file(option, path, sources):
    """Refuse to write to a file that is read, whatever name, link or pipe leads to it, before anything is written."""
    written = None if path is None else file_behind(path)
    for source in sources if written is not None and stat.S_ISREG(written.st_mode) else ():
        read = file_behind(source)
        if read is not None and os.path.samestat(read, written):
            raise Refused(f"{option} must not be a file that is read, which would be lost. {path!r} is {source!r}.")
