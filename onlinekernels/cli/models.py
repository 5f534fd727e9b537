"""Which model learns: what options name, what the target suggests, and what the first rows need."""
import argparse
import difflib
import inspect
import math
import sys
from itertools import chain

import numpy as np

import onlinekernels as ok
from onlinekernels.budgets import Budget
from onlinekernels.cli.options import as_columns
from onlinekernels.cli.tables import NO_TARGET, Refused, as_number, as_target, kind_of_labels
from onlinekernels.kernels import Kernel
from onlinekernels.losses import Loss
from onlinekernels.steps import Step

DEFAULT_ALGORITHM = "silk"  # where an option describes a single learner
COMPONENTS = {"loss": Loss, "kernel": Kernel, "step": Step, "budget": Budget}
OF_ONE = (*COMPONENTS, "regularization", "offset", "scale")  # options that describe a single learner
LOOKED_AT = 1000  # rows of a file whose targets decide
WAITED_FOR = 100  # rows of a pipe, where only whole numbers leave it open for so long
MOST_CLASSES = 20  # distinct whole numbers that are taken for classes, if there are at least 5 rows for each
CLASSES, NUMBERS, NOVELTY = "onlinekernelclassifier", "onlinekernelregressor", "onlinekerneldetector"


def add_model_options(parser, several=False):
    """Add what describes a new model."""
    add = parser.add_argument_group("model").add_argument
    add("--algorithm", metavar="NAME", nargs="+" if several else None,
        help="silk, norma, krls, passiveaggressive, ... (default: onlinekernelclassifier, -regressor or -detector, by "
        f"what the target is; {DEFAULT_ALGORITHM} where an option describes one learner)")
    add("--effort", choices=("low", "medium", "high"),
        help="how many members onlinekernelclassifier and its like have (default: medium)")
    for name, metavar, text in (
        ("loss", "NAME", "hinge, logistic, multiclasshinge, squared, nunovelty:0.01, ..."),
        ("kernel", "NAME", "gaussian:2.0, polynomial:2, linear, laplacian:0.5, ..."),
        ("step", "NUMBER", "or a name: inversesqrt:0.5, decaying:0.3, ..."),
        ("regularization", "NUMBER", "how fast the past is forgotten"),
        ("budget", "NUMBER", "of terms, or a name: window:200, smallest:50, none, ..."),
    ):
        add(f"--{name}", metavar=metavar, help=text)
    add("--offset", action=argparse.BooleanOptionalAction,
        help="learn a constant as well; as a linear kernel does if neither is given")
    add("--scale", action=argparse.BooleanOptionalAction,
        help="scale features as the stream shows them (default: if there are words, dates or holes)")
    add("--set", metavar="NAME=VALUE", action="append", type=_assignment, default=[],
        help="any other parameter of the algorithm, such as penalty=0.5; may be repeated")
    add("--classes", type=as_columns, metavar="A,B,...", help="all labels; two-class losses need them for words")


# ---- Names --------------------------------------------------------------------------------------


def value(text):
    """A number, True, False, None, or the text itself.

    >>> value("3"), value("3.0"), value("true"), value("PA-II")
    (3, 3.0, True, 'PA-II')
    """
    words = {"true": True, "false": False, "none": None}
    for kind in (lambda text: words[text.strip().lower()], int, float):
        try:
            return kind(text)
        except (KeyError, ValueError):
            pass
    return text.strip()


def _assignment(text):
    """[name, value] of ``name=value``."""
    name, equals, rest = text.partition("=")
    if not equals or not name.strip().isidentifier():
        raise argparse.ArgumentTypeError(f"must have the form name=value. Got {text!r} instead.")
    return [name.strip(), value(rest)]


def component(kind, text):
    """An object from ``name`` or ``name:number``; steps and budgets may be a number alone, or none.

    >>> component("kernel", "gaussian:2.0"), component("loss", "nu-hinge"), component("budget", "window:200")
    (Gaussian(width=2.0), NuHinge(), Window(200))
    >>> component("step", "0.5"), component("budget", "none"), component("algorithm", "silk")
    (0.5, None, SILK())
    """
    if kind in ("step", "budget") and not isinstance(value(text), str):
        return value(text)
    name, colon, number = text.partition(":")
    known, key = names_of(kind), name.strip().lower().replace("-", "").replace("_", "")
    if key not in known:
        close = difflib.get_close_matches(key, known, 1)
        hint = f" (Is {close[0]} meant?)" if close else ""
        raise Refused(f"{kind} must be one of {', '.join(sorted(known))}. Got {name.strip()!r} instead.{hint}")
    cls = getattr(ok, known[key])
    takes = None if kind == "algorithm" else next(iter(inspect.signature(cls).parameters), None)
    if colon and (takes is None or isinstance(value(number), str)):
        what = f"{cls.__name__} takes {takes or 'no parameter'}, and --set sets the others."
        raise Refused(f"{kind} must be name or name:number; {what} Got {text!r} instead.")
    return cls(value(number)) if colon else cls()


def names_of(kind):
    """{name in small letters: name} of the library's objects of one kind."""
    if kind == "algorithm":  # Adatron learns whole data sets only
        return {name.lower(): name for name in ok.algorithms.__all__ if name != "Adatron"}
    classes = ((name, getattr(ok, name)) for name in ok.__all__)
    return {name.lower(): name for name, cls in classes if COMPONENTS[kind] in getattr(cls, "__mro__", ())[1:]}


def set_parameters(model, arguments, names):
    """Set the parameters that options give; Refused if they are invalid."""
    params = dict(arguments.set)
    for name in names:
        given = getattr(arguments, name)
        if given is not None:
            is_text = isinstance(given, str)
            params[name] = component(name, given) if name in COMPONENTS else value(given) if is_text else given
    try:
        for name in sorted(params, key=lambda name: name.count("__")):  # a kernel before its parameters
            model.set_params(**{name: params[name]})
        model._plan()
    except (ValueError, TypeError) as error:
        raise Refused(str(error)) from error


def named_models(arguments, algorithms):
    """The models that options name, as far as data need not be seen."""
    algorithms = algorithms or []
    if not algorithms and any(getattr(arguments, name) is not None for name in OF_ONE):
        algorithms = [DEFAULT_ALGORITHM]
    if not algorithms and (arguments.target == NO_TARGET or arguments.classes is not None):
        return chosen(arguments, arguments.classes)
    return [_model(arguments, name) for name in algorithms]


def _model(arguments, name):
    model = component("algorithm", name)
    set_parameters(model, arguments, (*OF_ONE, "effort"))
    return model


# ---- What the target suggests -------------------------------------------------------------------


def chosen(arguments, targets, enough=0):
    """[the ensemble for the first targets], which is said; none if fewer than `enough` leave it open."""
    found = (CLASSES, "the target, whose values are classes") if arguments.classes else choice(targets, enough)
    if found is None:
        return []
    name, reason = found
    model = _model(arguments, name)
    if is_last_column(arguments):
        reason = reason.replace("the target", "the last column", 1)
    others = "--target COLUMN (or none), --effort and --algorithm choose otherwise."
    print(f"{type(model).__name__} learns {reason}. {others}", file=sys.stderr)
    return [model]


def is_last_column(arguments):
    """Whether the target is the last column of a text, because none is named."""
    return arguments.target is None and not arguments.data[0].lower().endswith(".npz")


def choice(targets, enough=0):
    """(name of an ensemble, what the targets are); None while fewer than `enough` leave it open.

    >>> choice(["yes", "no"])[0], choice(["1.5", "2"])[0], choice(None)[0]
    ('onlinekernelclassifier', 'onlinekernelregressor', 'onlinekerneldetector')
    >>> choice(["0", "1", "1"], 3)[0], choice([*map(str, range(100))], 100)[0], choice(["0", "1", "1"], 1000)
    ('onlinekernelclassifier', 'onlinekernelregressor', None)
    """
    if targets is None:
        return NOVELTY, "all columns, as there is no target: odd rows are looked for"
    numbers = [_number_or_none(text) for text in targets]
    if None in numbers:
        return CLASSES, "the target, whose values are words: classes"
    numbers = [number for number in numbers if not math.isnan(number)]
    if any(number != math.floor(number) for number in numbers):
        return NUMBERS, "the target, whose values are numbers"
    if len(targets) < enough:
        return None
    distinct = len(set(numbers))
    found = f"the target, which has {distinct} different whole numbers in {len(numbers)} rows:"
    if distinct <= max(2, min(MOST_CLASSES, len(numbers) // 5)):
        return CLASSES, f"{found} classes, not numbers (--algorithm {NUMBERS} takes them for such)"
    return NUMBERS, f"{found} numbers, not classes (--algorithm {CLASSES} takes them for such)"


def _number_or_none(text):
    """The number that a target means, whatever its decimal mark; None if it is a word."""
    try:
        return as_number(text.replace(",", "."))
    except ValueError:
        return None


# ---- Rows for models ----------------------------------------------------------------------------


def target_of(arguments, model=None):
    """The target's column: the last one, if none is named, unless the model is a detector."""
    if arguments.target is None and getattr(model, "_estimator_type", "") != "outlier_detector":
        return "-1"
    return None if arguments.target == NO_TARGET else arguments.target


def labels_of(arguments):
    """The labels that --classes names, as they would be read from data; None without it."""
    if arguments.classes is None:
        return None
    kind = kind_of_labels(arguments.classes)
    return np.array([as_target(text, kind) for text in arguments.classes])


def examples(table, arguments, models, start=None):
    """Yield (chunk, targets) of a table, ready to be learned; if `models` is empty, the first targets choose one."""
    classes, waiting, enough = labels_of(arguments), [], LOOKED_AT if table.can_reopen else WAITED_FOR
    for last in chain(table.chunks(start), [None]):  # None: no more will come
        waiting += [] if last is None else [last]
        full = [chunk for chunk in waiting if chunk.lines]
        if not models and full:
            targets = None if full[0].y is None else [text for chunk in full for text in chunk.y]
            models += chosen(arguments, targets, 0 if last is None else enough)
        if models:
            for chunk in waiting:
                chunk, y = _with_targets(models[0], chunk, table, classes)
                for model in models:
                    if chunk.lines and not getattr(model, "t_", 0):
                        _prepare(model, arguments, table, chunk.X)
                yield chunk, y
            waiting = []


def _with_targets(model, chunk, table, classes):
    """(the chunk without rows whose target is bad, the targets, None for a detector)."""
    if model._estimator_type == "outlier_detector":
        return chunk, None
    if chunk.y is None:
        raise Refused(f"{table.name} has no labels; only detectors (--target none) need none.")
    kind = kind_of_targets(model, chunk.y, classes)
    if kind == "word" and classes is None and not hasattr(model, "classes_"):
        numbers = [_number_or_none(text) for text in chunk.y]
        for line, number, text in zip(chunk.lines, numbers, chunk.y, strict=True):
            if None not in numbers and not math.isnan(number) and number != math.floor(number):
                what = f"the target {text} is a number, and {type(model).__name__} learns classes here."
                raise table.bad_row(line, None, f"{what} Use --algorithm {NUMBERS} or --loss squared for numbers.")
    return table.with_targets(chunk, kind)


def kind_of_targets(model, texts, classes=None):
    """What a model's targets are: "number", or labels that are each an "integer" or a "word"."""
    if model._estimator_type == "regressor":
        return "number"
    known = getattr(model, "classes_", classes)
    if known is not None and len(known):
        return "integer" if all(isinstance(label, (int, float)) for label in np.asarray(known).tolist()) else "word"
    return kind_of_labels(texts)


def _prepare(model, arguments, table, X):
    """Let the first rows of text say what a new model needs: an encoder, and scaling of what it makes."""
    params = model.get_params(deep=False)
    is_plain = table.is_archive and np.isfinite(X).all()
    if is_plain or "encode" not in params or dict(arguments.set).get("encode") is not None:
        return
    names = None if table.names is None else [table.names[i] for i in table.columns]
    model.set_params(encode=ok.RunningEncoder(columns=names if names and len(set(names)) == len(names) else None))
    if arguments.scale is None and "scale" in params and (X.dtype == object or np.isnan(X).any()):
        model.set_params(scale=True)


def with_line(error, table, lines):
    """An error about a row of a chunk as one about a line of the file."""
    row = getattr(error, "row", None)
    if row is None or row >= len(lines):
        return error
    return ValueError(f"{table.name}, {table.unit} {lines[row]}, {error.what.lstrip(',: ')}")
