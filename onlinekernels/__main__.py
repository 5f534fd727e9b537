"""The command line: ``python -m onlinekernels`` takes a short tour of the library, or learns from data."""
import argparse
import sys

from onlinekernels.commandline import add_demo, add_learn, add_predict, add_reproduce, add_show

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
        0 if all is well, 1 after an error in files or data, 130 after Ctrl-C. Wrong arguments raise
        SystemExit with status 2.
    """
    arguments = _parser().parse_args(_with_subcommand(sys.argv[1:] if argv is None else argv))
    return arguments.run(arguments)


def _with_subcommand(argv):
    """The arguments with ``demo`` in front if they name no subcommand."""
    if not argv or (argv[0].startswith("-") and argv[0] not in ("-h", "--help")):
        return ["demo", *argv]
    return argv


def _parser():
    parser = argparse.ArgumentParser(
        prog="python -m onlinekernels",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    subcommands = parser.add_subparsers(title="subcommands", metavar="subcommand", required=True)
    for add in (add_demo, add_learn, add_predict, add_show, add_reproduce):
        add(subcommands)
    return parser


if __name__ == "__main__":
    sys.exit(main())
