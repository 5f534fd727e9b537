"""The command line: ``python -m onlinekernels`` takes a short tour of the library, or learns from data."""
import argparse
import os
import sys

from onlinekernels import __version__
from onlinekernels.cli.demo import add_demo
from onlinekernels.cli.evaluate import add_evaluate
from onlinekernels.cli.learn import add_learn
from onlinekernels.cli.options import MODULE, Parser
from onlinekernels.cli.predict import add_predict
from onlinekernels.cli.show import add_show

DESCRIPTION = f"""\
Online learning with kernels, from the command line. Without a subcommand: a ten-second tour.
Every subcommand explains itself: {MODULE} learn --help"""

EXAMPLES = f"""\
examples:
  {MODULE}
  {MODULE} learn data.csv --target label --kernel gaussian:2.0 --save model.npz
  {MODULE} show model.npz
  {MODULE} predict model.npz new.csv
  {MODULE} evaluate data.csv --target label --algorithm silk krls
  tail -f log.csv | {MODULE} learn - --target 3 --save model.npz"""


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
    argv = sys.argv[1:] if argv is None else argv
    if not argv or argv[0].startswith("-") and argv[0] not in ("-h", "--help", "--version"):
        argv = ["demo", *argv]
    arguments = _parser().parse_args(argv)
    return arguments.run(arguments)


def _parser():
    name = os.path.splitext(os.path.basename(sys.argv[0]))[0]
    program = name if name == "onlinekernels" else MODULE  # what the user typed: the installed script, or the module
    description, epilog = (text.replace(MODULE, program) for text in (DESCRIPTION, EXAMPLES))
    parser = Parser(prog=program, description=description, epilog=epilog,
                    formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", action="version", version=f"onlinekernels {__version__}")
    subcommands = parser.add_subparsers(title="subcommands", metavar="subcommand", required=True)
    for add in (add_demo, add_learn, add_evaluate, add_predict, add_show):
        add(subcommands)
    return parser


if __name__ == "__main__":
    sys.exit(main())
