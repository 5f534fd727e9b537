"""Run experiments of the four papers again.

Each prints the paper's claim beside what comes out, says in one line whether the claim holds, and writes a picture and
the numbers. Real data comes from --data, a folder with files such as usps.npz and mnist.npz; the page "The papers'
experiments" of the documentation describes them. Without it, USPS and MNIST are fetched from OpenML, if scikit-learn is
installed and there is a network. --quick takes small made-up stand-ins for what is missing.

    python docs/experiments/run.py --list
    python docs/experiments/run.py norma-fig2
    python docs/experiments/run.py svmd-fig6 --data data --out pictures
    python docs/experiments/run.py --all --quick

Exit status: 0 if all ran, 1 if data was missing; whether a claim holds does not matter.
"""
import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from experiments import EXPERIMENTS
from experiments.data import Data, MissingData


def main(argv=None):
    """Run what the arguments name; those of the process if `argv` is None. Return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="one or more names of experiments; see --list")
    parser.add_argument("--list", action="store_true", help="list the experiments and their claims")
    parser.add_argument("--all", action="store_true", help="run all of them")
    parser.add_argument("--data", type=Path, metavar="DIR", help="folder with the data sets as .npz files")
    parser.add_argument("--out", type=Path, default=Path("results"), metavar="DIR",
                        help="where to write (default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="short runs, with stand-ins for data that is not there")
    arguments = parser.parse_args(argv)
    if arguments.list:
        for experiment in EXPERIMENTS.values():
            print(f"{experiment.described()}\n    {experiment.claim}")
        return 0
    unknown = [name for name in arguments.names if name not in EXPERIMENTS]
    if arguments.all and arguments.names:
        parser.error("--all runs every experiment: give no names with it")
    if unknown or not (arguments.all or arguments.names):
        said = f"there is no experiment {unknown[0]!r}. There are" if unknown else "which one? Give --all, or a name"
        parser.error(f"{said}: {', '.join(EXPERIMENTS)}")
    if arguments.data is not None and not arguments.data.is_dir():
        parser.error(f"--data: there is no folder {arguments.data}")
    data = Data(arguments.data, quick=arguments.quick)
    missing = 0
    for number, name in enumerate(EXPERIMENTS if arguments.all else arguments.names):
        try:
            text = EXPERIMENTS[name].reproduce(data, arguments.out)
        except MissingData as error:
            print(f"{name}: {error}", file=sys.stderr)
            missing = 1
        else:
            print("\n" * (number > 0) + text, flush=True)
    return missing


if __name__ == "__main__":
    sys.exit(main())
