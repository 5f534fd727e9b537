"""The tour: what ``python -m onlinekernels`` does without a command.

It follows section VI-A of Kivinen, Smola and Williamson, "Online Learning with Kernels": a stream of two
classes that drift, learned by algorithms that differ in what they remember.
"""
import sys
from pathlib import Path

from onlinekernels.algorithms import NORMA, Perceptron
from onlinekernels.nouns.budgets import Recent, Smallest, Sublinear, Window
from onlinekernels.commandline.options import integer_from
from onlinekernels.evaluate import compare
from onlinekernels.nouns.kernels import Gaussian
from onlinekernels.nouns.losses import Hinge
from onlinekernels.streams import drifting_gaussians

__all__ = ["add_demo"]

_FEW = 200
_TITLE = "Two classes that drift: mistakes before learning each example"
# Rows of the table that the closing words speak of.
_PERCEPTRON, _NORMA, _SMALL = "Perceptron", "NORMA, margin 1", "NORMA, Recent(50)"


def add_demo(subcommands):
    """Add the command to the parser's subcommands."""
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
    demo.set_defaults(run=_demo, parser=demo)


def _demo(arguments):
    print(
        f"{arguments.examples} examples of two classes, five Gaussians each, that move every ten examples.\n"
        "Every learner predicts each example before it learns from it.\n"
    )
    stream = drifting_gaussians(arguments.examples, seed=arguments.seed)
    _warm_up(stream)
    comparison = compare(learners(), stream)
    print(comparison)
    print()
    print(_conclusion(comparison))
    return 0 if arguments.no_plot else _picture(comparison, arguments.plot)


def _warm_up(stream):
    """Let each learner see a few examples, so that the first is not charged for what all need once."""
    X, y = stream
    for learner in learners().values():
        learner.partial_fit(X[:_FEW], y[:_FEW], classes=[-1, 1])


def learners():
    """The learners of the tour by name.

    The parameters of the Perceptron and of both NORMAs were tuned one by one, on streams of other
    seeds than the default one. The budgets share those of NORMA without a budget.
    """

    def norma(budget=None):
        # step * regularization = 1/15: a term loses 1/15 of its weight with every example.
        return NORMA(Hinge(margin=1.0), Gaussian(width=0.4), step=1.0, regularization=1 / 15, budget=budget)

    return {
        _PERCEPTRON: Perceptron(Gaussian(width=0.8)),
        "NORMA, margin 0": NORMA(Hinge(margin=0.0), Gaussian(width=0.6), step=1.0, regularization=1 / 150),
        _NORMA: norma(),
        _SMALL: norma(Recent(50)),
        "NORMA, Window(200)": norma(Window(200)),
        "NORMA, Smallest(100)": norma(Smallest(100)),
        "NORMA, Sublinear()": norma(Sublinear()),
    }


def _conclusion(comparison):
    """What the table shows. The figures are read off it, so they hold for any seed."""
    perceptron, norma, small = (comparison[name] for name in (_PERCEPTRON, _NORMA, _SMALL))
    return (
        f"The Perceptron forgets nothing and made {perceptron.mistakes} mistakes; NORMA asks "
        f"for a margin, forgets\na little with every example, and made {norma.mistakes}. "
        f"A budget keeps it small: with {small.terms} terms instead of\n{norma.terms} it made "
        f"{small.mistakes} mistakes. Where to go next: docs/quickstart."
    )


def _picture(comparison, path):
    """Write the picture and say where it is; return the exit status."""
    try:
        figure = comparison.plot()
        figure.axes[0].set_title(_TITLE)
        figure.savefig(path)
    except ImportError:
        print("For a picture, install matplotlib: pip install matplotlib")
    except (OSError, ValueError) as error:  # a folder that does not exist, an unknown suffix
        print(f"The picture could not be written to {path}: {error}", file=sys.stderr)
        return 1
    else:
        print(f"The mistakes over time are drawn in {path}.")
    return 0
