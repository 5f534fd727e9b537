"""``evaluate``: how well models would learn a stream, several side by side, and nothing is kept."""
from importlib.util import find_spec
from itertools import chain

from onlinekernels import evaluate
from onlinekernels.cli.models import add_model_options, examples, named_models
from onlinekernels.cli.options import Interruption, add_command, add_data_options, check_folder, refuse_same_file
from onlinekernels.cli.tables import Refused

DESCRIPTION = """\
Let one model or several predict and learn a stream, each row before it is learned, and print their
figures, the best first. What is learned is not kept. All models have the parameters that are given."""

EXAMPLES = [
    "python -m onlinekernels evaluate data.csv",
    "python -m onlinekernels evaluate data.csv --target label --algorithm silk krls --plot comparison.png",
]


def add_evaluate(subcommands):
    parser = add_command(subcommands, "evaluate", _evaluate, "data ... [options]", "compare models on a file or a pipe",
                         DESCRIPTION, EXAMPLES)
    add_data_options(parser)
    add_model_options(parser, several=True)
    parser.add_argument("--plot", metavar="FILE", help="where to draw the mistakes over time, such as comparison.png")


def _evaluate(arguments):
    if arguments.plot is not None:
        refuse_same_file("--plot", arguments.plot, arguments.data)
        check_folder(arguments.plot)
        if find_spec("matplotlib") is None:
            raise Refused("--plot needs matplotlib: pip install matplotlib")
    models = named_models(arguments, arguments.algorithm or [])
    with Interruption() as interruption:
        chunks = (chunk.X if y is None else (chunk.X, y)
                  for _, chunk, y in examples(arguments, interruption, models) if chunk.lines)
        first = [next(chunks, None)]  # by now there are models
        if first[0] is None:
            raise ValueError(f"{', '.join(arguments.data)}: no examples to learn from.")
        compared = {type(model).__name__: model for model in models}
        comparison = evaluate.compare(compared, chain(first, chunks), classes=arguments.classes)
        print(comparison)
        if arguments.plot is not None:
            comparison.plot(arguments.plot)
        return interruption.status
