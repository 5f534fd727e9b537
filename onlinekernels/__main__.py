"""The command line: ``python -m onlinekernels`` takes a short tour of the library, or learns from data."""
import argparse
import difflib
import os
import sys

from onlinekernels import __version__
from onlinekernels.cli.demo import add_demo
from onlinekernels.cli.learn import add_learn
from onlinekernels.cli.predict import add_predict
from onlinekernels.cli.show import add_show

_MODULE = "python -m onlinekernels"
_DESCRIPTION = """\
Online learning with kernels, from the command line. Without a subcommand: a ten-second tour.
Every subcommand explains itself: python -m onlinekernels learn --help"""

_EXAMPLES = """\
examples:
  python -m onlinekernels
  python -m onlinekernels learn data.csv --target label --kernel gaussian:2.0 --save model.npz
  python -m onlinekernels show model.npz
  python -m onlinekernels predict model.npz new.csv
  tail -f log.csv | python -m onlinekernels learn - --target 3 --save model.npz"""


def main(argv=None):
    """Run the command line and return its exit status.

    Parameters
    ----------
    argv : list of str, default=None
        The arguments; None means those of the process.

    Returns
    -------
    int
        0 if all is well, 1 after an error in files or data, 130 after Ctrl-C, 143 after a polite kill. Wrong
        arguments raise SystemExit with status 2.
    """
    arguments, unknown = _parser().parse_known_args(_with_subcommand(sys.argv[1:] if argv is None else argv))
    if unknown:
        _refuse(unknown, arguments.parser)
    return arguments.run(arguments)


def _refuse(unknown, parser):
    """End with the usage of the subcommand that does not know these arguments."""
    options = [option for action in parser._actions for option in action.option_strings]
    close = [match for word in unknown for match in difflib.get_close_matches(word.partition("=")[0], options, 1, 0.75)]
    hint = f" (is {close[0]} meant?)" if close else " (--set NAME=VALUE sets any other parameter.)" if "--set" in options else ""
    parser.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")


def _with_subcommand(argv):
    """The arguments with ``demo`` in front if they name no subcommand."""
    if not argv or (argv[0].startswith("-") and argv[0] not in ("-h", "--help", "--version")):
        return ["demo", *argv]
    return argv


def _program():
    """What the user typed: the installed script, or the module."""
    name = os.path.splitext(os.path.basename(sys.argv[0]))[0]
    return name if name == "onlinekernels" else _MODULE


def _parser():
    program = _program()
    parser = argparse.ArgumentParser(
        prog=program,
        description=_DESCRIPTION.replace(_MODULE, program),
        epilog=_EXAMPLES.replace(_MODULE, program),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"onlinekernels {__version__}")
    subcommands = parser.add_subparsers(title="subcommands", metavar="subcommand", required=True)
    for add in (add_demo, add_learn, add_predict, add_show):
        add(subcommands)
    return parser


if __name__ == "__main__":
    sys.exit(main())
