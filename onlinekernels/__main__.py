"""The command line: ``python -m onlinekernels`` takes a short tour of the library, or learns from data.

This file has the parser and the tour; ``commandline`` has the commands for data: learn, predict, show.

The tour follows section VI-A of Kivinen, Smola and Williamson, "Online Learning with Kernels": a
stream of two classes that drift, learned by algorithms that differ in what they remember.
"""

import argparse
import sys
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import numpy as np

from onlinekernels import NORMA, Gaussian, Hinge, Perceptron, Recent, Smallest, Sublinear, Window
from onlinekernels.commandline import add_learn, add_predict, add_show
from onlinekernels.commandline.options import integer_from
from onlinekernels.commandline.progress import progress_bar
from onlinekernels.streams import drifting_gaussians

# Large enough for the compiled code to do the work, small enough for a progress bar to move.
_ROWS_PER_CHUNK = 500

# Okabe and Ito's colours can be told apart with any kind of colour vision; the line styles help
# where lines lie on top of each other. One entry for each learner of the tour.
_LINES = [
    ("#000000", "-"),
    ("#E69F00", "-"),
    ("#0072B2", "-"),
    ("#D55E00", "--"),
    ("#009E73", "-."),
    ("#CC79A7", ":"),
    ("#56B4E9", (0, (5, 1, 1, 1))),
]

# Rows of the table that the closing words speak of.
_PERCEPTRON, _NORMA, _SMALL = "Perceptron", "NORMA, margin 1", "NORMA, Recent(50)"


class _Outcome(NamedTuple):
    """What one learner made of the stream."""

    name: str
    mistakes: np.ndarray  # bool, one per example: y * score <= 0 before learning from it
    terms: int
    seconds: float


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
    """Return the arguments with ``demo`` in front if they name no subcommand."""
    if not argv or (argv[0].startswith("-") and argv[0] not in ("-h", "--help")):
        return ["demo", *argv]
    return argv


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


def _parser():
    parser = argparse.ArgumentParser(
        prog="python -m onlinekernels",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    subcommands = parser.add_subparsers(title="subcommands", metavar="subcommand", required=True)
    _add_demo(subcommands)
    for add in (add_learn, add_predict, add_show):
        add(subcommands)
    return parser


def _add_demo(subcommands):
    summary = "a ten-second tour; also what runs without a subcommand"
    demo = subcommands.add_parser("demo", help=summary, description=summary.capitalize() + ".")
    demo.add_argument(
        "--examples",
        type=integer_from(1),
        default=10_000,
        metavar="N",
        help="length of the stream (default: %(default)s)",
    )
    demo.add_argument(
        "--seed",
        type=integer_from(0),
        default=0,
        metavar="S",
        help="seed of the stream (default: %(default)s)",
    )
    picture = demo.add_mutually_exclusive_group()
    picture.add_argument(
        "--plot",
        type=Path,
        default=Path("onlinekernels-tour.png"),
        metavar="PATH",
        help="where to write the picture (default: %(default)s)",
    )
    picture.add_argument("--no-plot", action="store_true", help="write no picture")
    demo.set_defaults(run=_demo)


def _demo(arguments):
    X, y = drifting_gaussians(arguments.examples, seed=arguments.seed)
    print(
        f"{len(y)} examples of two classes, five Gaussians each, that move every ten examples.\n"
        "Every learner predicts each example before it learns from it.\n"
    )
    outcomes = _run_all(_learners(), X, y)
    print(_table(outcomes))
    print()
    print(_conclusion(outcomes))
    return 0 if arguments.no_plot else _picture(outcomes, arguments.plot)


def _learners():
    """Return the learners of the tour by name.

    The parameters of the Perceptron and of both NORMAs were tuned one by one, on streams of other
    seeds than the default one. The budgets share those of NORMA without a budget.
    """

    def norma(budget=None):
        # step * regularization = 1/15: a term loses 1/15 of its weight with every example.
        return NORMA(
            Hinge(margin=1.0), Gaussian(width=0.4), step=1.0, regularization=1 / 15, budget=budget
        )

    zero_margin = NORMA(Hinge(margin=0.0), Gaussian(width=0.6), step=1.0, regularization=1 / 150)
    return {
        _PERCEPTRON: Perceptron(Gaussian(width=0.8)),
        "NORMA, margin 0": zero_margin,
        _NORMA: norma(),
        _SMALL: norma(Recent(50)),
        "NORMA, Window(200)": norma(Window(200)),
        "NORMA, Smallest(100)": norma(Smallest(100)),
        "NORMA, Sublinear()": norma(Sublinear()),
    }


def _run_all(learners, X, y):
    with progress_bar(len(learners) * len(y)) as advance:
        return [_run(name, model, X, y, advance) for name, model in learners.items()]


def _run(name, model, X, y, advance):
    """Test, then train, chunk by chunk; `advance(rows)` hears of every chunk."""
    scores, seconds = np.empty(len(y)), 0.0
    for begin in range(0, len(y), _ROWS_PER_CHUNK):
        chunk = slice(begin, begin + _ROWS_PER_CHUNK)
        start = perf_counter()
        scores[chunk] = model.progressive(X[chunk], y[chunk])
        seconds += perf_counter() - start
        advance(len(y[chunk]))
    return _Outcome(name, y * scores <= 0, model.n_terms_, seconds)


def _table(outcomes):
    rows = [("algorithm", "mistakes", "terms", "microseconds per example")]
    for outcome in outcomes:
        microseconds = 1e6 * outcome.seconds / len(outcome.mistakes)
        mistakes = str(outcome.mistakes.sum())
        rows.append((outcome.name, mistakes, str(outcome.terms), f"{microseconds:.2f}"))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(_aligned(row, widths)) for row in rows]
    lines.insert(1, "-" * len(lines[0]))
    return "\n".join(lines)


def _aligned(row, widths):
    """Return the cells of a row padded: names to the left, numbers to the right."""
    name, *numbers = zip(row, widths, strict=True)
    return [name[0].ljust(name[1]), *(text.rjust(width) for text, width in numbers)]


def _conclusion(outcomes):
    """Return what the table shows. The figures are read off it, so they hold for any seed."""
    by_name = {outcome.name: outcome for outcome in outcomes}
    perceptron, norma, small = (by_name[name] for name in (_PERCEPTRON, _NORMA, _SMALL))
    return (
        f"The Perceptron forgets nothing and made {perceptron.mistakes.sum()} mistakes; NORMA asks "
        f"for a margin, forgets\na little with every example, and made {norma.mistakes.sum()}. "
        f"A budget keeps it small: with {small.terms} terms instead of\n{norma.terms} it made "
        f"{small.mistakes.sum()} mistakes. Where to go next: docs/quickstart."
    )


def _picture(outcomes, path):
    """Write the picture and say where it is; return the exit status."""
    try:
        _plot(outcomes, path)
    except ImportError:
        print('For a picture, install matplotlib: pip install "onlinekernels[plot]"')
    except (OSError, ValueError) as error:  # a folder that does not exist, an unknown suffix
        print(f"The picture could not be written to {path}: {error}", file=sys.stderr)
        return 1
    else:
        print(f"The mistakes over time are drawn in {path}.")
    return 0


def _plot(outcomes, path):
    # Figure and canvas as objects: pyplot would choose a backend and keep state for the process.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    # From most to fewest mistakes, so that the legend has the order of the lines.
    styled = zip(outcomes, _LINES, strict=True)
    drawn = sorted(styled, key=lambda pair: -pair[0].mistakes.sum())
    for outcome, (color, style) in drawn:
        total = np.cumsum(outcome.mistakes)
        label = f"{outcome.name}: {total[-1]}"
        axes.plot(np.arange(1, len(total) + 1), total, color=color, linestyle=style, label=label)
    axes.set(
        title="Two drifting classes: mistakes so far",
        xlabel="examples seen",
        ylabel="cumulative mistakes",
        xlim=(0, len(total)),
    )
    axes.set_ylim(bottom=0)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, loc="upper left")
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    sys.exit(main())
