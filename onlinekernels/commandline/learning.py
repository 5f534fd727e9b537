"""``learn``: a model learns a stream, and says how well it predicted each example beforehand."""

import argparse
import os
import sys

from onlinekernels.algorithms.frontmembers import EFFORTS
from onlinekernels.commandline import checkpoints, specifications
from onlinekernels.commandline.interruptions import Interruption
from onlinekernels.commandline.models import DEFAULT_ALGORITHM, FIXED_ON_A_MODEL
from onlinekernels.commandline.options import (
    Usage,
    add_command,
    add_data_options,
    converter,
    integer_from,
    told,
)
from onlinekernels.commandline.runs import Run
from onlinekernels.evaluate.running import progress_bar
from onlinekernels.files.atomic import remove_leftovers

__all__ = ["add_learn"]

DESCRIPTION = """\
Learn from a stream, example by example; tables may have words, dates and empty fields. Nothing has
to be chosen: a target of words or of few whole numbers is learned by OnlineKernelClassifier, one of
numbers by OnlineKernelRegressor, and where there is none OnlineKernelDetector looks for odd rows.
One line says which. Each example is predicted before it is learned, so the mistakes that are printed
are honest. A report has the number of examples, the mistakes (or errors, or alerts) over all of them
and since the last report, the terms of the model, and the microseconds that learning took per
example. Several files are learned one after the other.

Kernels, losses, steps and budgets are written as name, name:value or name:parameter=value,...
A sum of kernels has a + in it: gaussian:2.0+0.1*linear. normalized:polynomial:2 is normalized."""

EXAMPLES = [
    "python -m onlinekernels learn data.csv",
    "python -m onlinekernels learn data.csv --target label --save model.npz",
    "python -m onlinekernels learn fraud.csv --target fraud --set threshold=f1 --effort low --save model.npz",
    "python -m onlinekernels learn sensors.csv --target none --set nu=0.01 --save model.npz",
    "python -m onlinekernels learn data.csv --target label --loss multiclasshinge \\",
    "       --algorithm silk --kernel gaussian:2.0 --budget 512 --save model.npz --progress",
    "python -m onlinekernels learn prices.tsv.gz --target price --loss squared --scale --offset --report 1000",
    "python -m onlinekernels learn prices.csv --target price --algorithm krls --noise auto --memory 0.999 --scale --save m",
    "python -m onlinekernels learn january.csv february.csv --target rain --class-weight balanced --json --save m.npz",
    "python -m onlinekernels learn big.libsvm --n-features 123 --kernel linear --checkpoint 100000 --save m --resume",
    "tail -f log.csv | python -m onlinekernels learn - --target 3 --classes ok,failed --report 100 --save m.npz",
    "tail -f log.csv | python -m onlinekernels learn - --loss nunovelty:0.01 --kernel gaussian:1 --save m.npz",
    "",
    "exit status: 0 fine, 1 an error in the data or files, 2 wrong arguments; 130 after Ctrl-C and 143 after a",
    "polite kill, with the model saved",
]

def add_learn(subcommands):
    """Add the command to the parser's subcommands."""
    parser = add_command(
        subcommands, "learn", _learn, "data ... [options]", "learn a model from a file or a pipe", DESCRIPTION, EXAMPLES
    )
    add_data_options(parser)
    _add_model_options(parser.add_argument_group("model"))
    _add_run_options(parser.add_argument_group("run"))


def _add_model_options(model):
    def add(name, convert, metavar, text):
        # The words themselves are kept: a checkpoint compares them.
        model.add_argument(name, type=_checked(convert), metavar=metavar, help=text)

    names = ", ".join(sorted(specifications.ALGORITHMS))
    model.add_argument(
        "--algorithm",
        type=_checked(specifications.algorithm),
        metavar="NAME",
        help=f"one of {names} (default: onlinekernelclassifier, -regressor or -detector, by what the target is; "
        f"{DEFAULT_ALGORITHM} where an option describes a single learner: loss, kernel, budget, scale, ...)",
    )
    model.add_argument("--effort", choices=EFFORTS, help="how many members onlinekernelclassifier and its like have (default: medium)")
    add("--loss", specifications.loss, "SPEC", "hinge, logistic, multiclasshinge, squared, nunovelty:0.01, ...")
    add("--kernel", specifications.kernel, "SPEC", "gaussian:2.0, polynomial:degree=2, linear, sums with +, ...")
    add("--step", specifications.step, "SPEC", "a number, or inversesqrt:0.5, decaying:rate=0.3,delay=200, ...")
    add("--regularization", float, "NUMBER", "how fast the past is forgotten")
    add("--penalty", float, "NUMBER", "weight of the loss in implicit and passive-aggressive steps")
    add("--noise", specifications.noise, "NUMBER", "krls: variance of the target about f, or auto")
    add("--memory", float, "NUMBER", "krls, svmd: what is left of the past after one example; 1 forgets nothing")
    add("--tolerance", float, "NUMBER", "krls: how little a point may bring that joins")
    add("--budget", specifications.budget, "SPEC", "a number of terms, or window:200, smallest:50, none, ...")
    model.add_argument("--offset", action=argparse.BooleanOptionalAction, default=None,
                       help="learn a constant as well; as a linear kernel does if neither is given")
    model.add_argument("--average", action="store_true", default=None, help="average over all models on the way")
    model.add_argument("--scale", action=argparse.BooleanOptionalAction, default=None,
                       help="scale features as the stream shows them (default: where there are words, dates or empty fields)")
    add("--scale-memory", float, "NUMBER", "scale, and forget: 0.999 goes by about the last thousand rows")
    model.add_argument("--encode", action=argparse.BooleanOptionalAction, default=None,
                       help="take words, dates and empty fields (default: in .csv and .tsv, where numbers stay as they are)")
    model.add_argument(
        "--set",
        type=_checked(specifications.assignment),
        action="append",
        metavar="NAME=VALUE",
        help="any other parameter of the algorithm, such as meta_step=0.5; may be repeated",
    )
    model.add_argument("--classes", metavar="A,B,...", help="all labels; two-class losses need them for words")
    add("--class-weight", specifications.class_weight, "SPEC", "balanced (as the stream shows them) or rain:2,snow:0.5")
    model.add_argument(
        "--model",
        metavar="FILE",
        help="go on with this model instead of a new one; of its parameters, --step, --regularization, --penalty, "
        "--class-weight, the --noise of krls and what --set says of a step may change",
    )


def _checked(convert):
    """A converter for argparse that keeps the text if `convert` takes it."""

    def keep(text):
        convert(text)
        return text

    keep.__name__ = convert.__name__
    return converter(keep)


def _add_run_options(run):
    run.add_argument(
        "--epochs",
        type=integer_from(1),
        default=1,
        metavar="N",
        help="passes over a file (default: 1); all count in the report",
    )
    run.add_argument("--report", type=integer_from(1), metavar="N", help="report every N examples, at the next end of a chunk")
    run.add_argument("--save", metavar="FILE", help="where to write the model, at the end and at checkpoints")
    run.add_argument(
        "--checkpoint",
        type=integer_from(1),
        metavar="N",
        help="save every N examples, at the next end of a chunk, with the place in the stream",
    )
    run.add_argument(
        "--resume",
        action="store_true",
        help="go on with the saved file, if it exists: files that it has read go on where they stopped, others are "
        "learned from their first row. The result is the model that a run without interruption gives, bit for bit. "
        "(Standard input is not read again: what comes is taken as new.)",
    )
    run.add_argument("--json", action="store_true", help="reports as lines of JSON")
    run.add_argument("--progress", action="store_true", help="a progress bar, if tqdm is there, on a terminal")


def _learn(arguments):
    _check(arguments)
    if arguments.save is not None:
        arguments.save = checkpoints.with_suffix(arguments.save)
        remove_leftovers(arguments.save)
    wanted = None if arguments.progress else False  # on a terminal, if tqdm is there
    with Interruption() as interruption, progress_bar(wanted, arguments.limit, " examples") as advance:
        run = Run(arguments, interruption)
        try:
            run.learn_all(advance)
            is_over = interruption.signal is not None
        except KeyboardInterrupt:
            is_over = True
        except BrokenPipeError:
            run.rescue()
            raise
        except (OSError, ValueError, TypeError, ArithmeticError) as error:
            raise ValueError(told(error) + run.rescue()) from error
        if is_over:
            print(f"Stopped after {run.figures.count} examples.{run.rescue('They')}", file=sys.stderr)
            return interruption.status
        return run.finish()


def _check(arguments):
    for option in ("checkpoint", "resume"):
        if getattr(arguments, option) and arguments.save is None:
            raise Usage(f"--{option} needs --save FILE")
    if "-" in arguments.data and arguments.epochs > 1:
        raise Usage(f"--epochs must be 1 for standard input, which comes once. Got {arguments.epochs} instead.")
    for source in arguments.data:
        if arguments.data.count(source) > 1:
            raise Usage(f"data must be different files; --epochs repeats them. Got {source!r} twice.")
    if arguments.save is not None and not os.path.isdir(os.path.dirname(arguments.save) or "."):
        raise FileNotFoundError(2, "there is no such folder to save to", os.path.dirname(arguments.save))
    if arguments.scale_memory is not None and not 0 < float(arguments.scale_memory) <= 1:
        raise Usage(f"--scale-memory must be a number in (0, 1]. Got {arguments.scale_memory} instead.")
    if arguments.model is not None:
        for name in FIXED_ON_A_MODEL:
            if getattr(arguments, name) is not None:
                raise Usage(f"--{name.replace('_', '-')} cannot be given with --model, which has its own")
