"""``reproduce``: the papers' experiments, run again."""

import sys
from pathlib import Path

from onlinekernels.commandline.options import Usage, add_command
from onlinekernels.experiments import NAMES, Data, MissingData, described, find, reproduce

__all__ = ["add_reproduce"]

DESCRIPTION = """\
Run an experiment of one of the four papers again. It prints the paper's claim beside what comes
out, says in one line whether the claim holds, and writes a picture and the numbers.

Real data comes from --data, a folder with files such as usps.npz and mnist.npz; the page
"The papers' experiments" of the documentation describes them. Without it, USPS and MNIST are fetched
from OpenML, if scikit-learn is installed and there is a network. --quick takes small made-up
stand-ins for what is missing."""

EXAMPLES = [
    "python -m onlinekernels reproduce --list",
    "python -m onlinekernels reproduce norma-fig2",
    "python -m onlinekernels reproduce svmd-fig6 --data data --out pictures",
    "python -m onlinekernels reproduce --all --quick",
    "",
    "exit status: 0 if all ran, 1 if data was missing; whether a claim holds does not matter",
]


def add_reproduce(subcommands):
    """Add the command to the parser's subcommands."""
    parser = add_command(
        subcommands,
        "reproduce",
        _reproduce,
        "NAME [--data DIR] [--out DIR] [--quick]",
        "run an experiment of the papers again",
        DESCRIPTION,
        EXAMPLES,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="one or more names of experiments; see --list")
    parser.add_argument("--list", action="store_true", help="list the experiments and their claims")
    parser.add_argument("--all", action="store_true", help="run all of them")
    parser.add_argument("--data", metavar="DIR", help="folder with the data sets as .npz files")
    parser.add_argument(
        "--out", type=Path, default=Path("reproduce"), metavar="DIR", help="where to write (default: %(default)s)"
    )
    parser.add_argument("--quick", action="store_true", help="short runs, with stand-ins for data that is not there")


def _reproduce(arguments):
    if arguments.list:
        for name in NAMES:
            print(f"{described(find(name))}\n    {find(name).claim}")
        return 0
    names = _wanted(arguments)
    if arguments.data is not None and not Path(arguments.data).is_dir():
        raise FileNotFoundError(2, "there is no such folder with data", arguments.data)
    data = Data(arguments.data, quick=arguments.quick)
    status = 0
    for number, name in enumerate(names):
        try:
            text = reproduce(find(name), data, arguments.out)
        except MissingData as error:
            print(f"{name}: {error}", file=sys.stderr)
            status = 1
        else:
            print("\n" * (number > 0) + text, flush=True)
    return status


def _wanted(arguments):
    if arguments.all and arguments.names:
        raise Usage("--all runs every experiment: give no names with it")
    if not arguments.all and not arguments.names:
        raise Usage(f"which one? Give --all, or a name: {', '.join(NAMES)}")
    for name in arguments.names:
        if name not in NAMES:
            raise Usage(f"there is no experiment {name!r}. There are: {', '.join(NAMES)}")
    return NAMES if arguments.all else arguments.names
