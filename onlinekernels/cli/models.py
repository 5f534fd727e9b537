"""Which model learns: what options name, what the target suggests, and what the first rows need."""
import argparse
import ast
import difflib
import inspect
import math
import sys
from itertools import chain

import numpy as np

import onlinekernels as ok
from onlinekernels.budgets import Budget
from onlinekernels.cli.options import as_columns
from onlinekernels.cli.tables import NO_TARGET, Refused, Table, as_label, as_number
from onlinekernels.kernels import Kernel
from onlinekernels.losses import Loss
from onlinekernels.steps import Step

DEFAULT_ALGORITHM = "silk"  # where an option describes a single learner
COMPONENTS = {"loss": Loss, "kernel": Kernel, "step": Step, "budget": Budget}
OF_ONE = (*COMPONENTS, "regularization", "offset", "scale")  # options that describe a single learner
OF_MODEL = ("algorithm", "effort", *OF_ONE, "set", "classes")
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
    add("--set", metavar="NAME=VALUE", action="append", type=_assignment,
        help="any other parameter of the algorithm, such as penalty=0.5; may be repeated")
    add("--classes", type=lambda text: [as_label(name) for name in as_columns(text)], metavar="A,B,...",
        help="all labels; two-class losses need them for words")


# ---- Names --------------------------------------------------------------------------------------


def value(text):
    """A number, True, False, None, or the text itself.

    >>> value("3"), value("3.0"), value("true"), value("PA-II")
    (3, 3.0, True, 'PA-II')
    """
    text = text.strip()
    try:
        return ast.literal_eval(text.capitalize() if text.lower() in ("true", "false", "none") else text)
    except (SyntaxError, ValueError):
        return text


def _assignment(text):
    name, equals, _ = text.partition("=")
    if not equals or not name.strip().isidentifier():
        raise argparse.ArgumentTypeError(f"must have the form name=value. Got {text!r} instead.")
    return text


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


def named_models(arguments, algorithms):
    """The models that options name, as far as data need not be seen."""
    if not algorithms and any(getattr(arguments, name) is not None for name in OF_ONE):
        algorithms = [DEFAULT_ALGORITHM]
    if not algorithms and (arguments.target == NO_TARGET or arguments.classes is not None):
        return _chosen(arguments, arguments.classes)
    return [_model(arguments, name) for name in algorithms]


def _model(arguments, name):
    """A model with the parameters that options give; Refused if they are invalid."""
    model, params = component("algorithm", name), {}
    for option in (*OF_ONE, "effort"):
        given = getattr(arguments, option)
        if given is not None:
            is_text = isinstance(given, str)
            params[option] = component(option, given) if option in COMPONENTS else value(given) if is_text else given
    params |= _set(arguments)
    try:
        for option in sorted(params, key=lambda option: option.count("__")):  # a kernel before its parameters
            model.set_params(**{option: params[option]})
        model._plan()
    except (ValueError, TypeError) as error:
        raise Refused(str(error)) from error
    return model


def _set(arguments):
    """{name: value} of what --set gives."""
    pairs = (text.partition("=") for text in arguments.set or ())
    return {name.strip(): value(text) for name, _, text in pairs}


# ---- What the target suggests -------------------------------------------------------------------


def _chosen(arguments, targets, enough=0):
    """[the ensemble for the first targets], which is said; none if fewer than `enough` leave it open."""
    found = (CLASSES, "the target, whose values are classes") if arguments.classes else choice(targets, enough)
    if found is None:
        return []
    model, reason = _model(arguments, found[0]), found[1]
    if arguments.target is None:
        reason = reason.replace("the target", "the last column", 1)
    others = "--target COLUMN (or none), --effort and --algorithm choose otherwise."
    print(f"{type(model).__name__} learns {reason}. {others}", file=sys.stderr)
    return [model]


def choice(targets, enough=0):
    """(name of an ensemble, what the targets are); None while fewer than `enough` leave it open.

    >>> choice(["yes", "no"])[0], choice(["1.5", "2"])[0], choice(None)[0]
    ('onlinekernelclassifier', 'onlinekernelregressor', 'onlinekerneldetector')
    >>> choice(["0", "1", "1"], 3)[0], choice([*map(str, range(100))], 100)[0], choice(["0", "1", "1"], 1000)
    ('onlinekernelclassifier', 'onlinekernelregressor', None)
    """
    if targets is None:
        return NOVELTY, "all columns, as there is no target: odd rows are looked for"
    try:
        numbers = [as_number(text.replace(",", ".")) for text in targets]  # whatever the decimal mark is
    except ValueError:
        return CLASSES, "the target, whose values are words: classes"
    numbers = [number for number in numbers if not math.isnan(number)]
    if any(number != math.floor(number) for number in numbers):
        return NUMBERS, "the target, whose values are numbers"
    if len(targets) < enough:
        return None
    distinct = len(set(numbers))
    found = f"the target, which has {distinct} different whole numbers in {len(numbers)} rows"
    if distinct <= max(2, min(MOST_CLASSES, len(numbers) // 5)):
        return CLASSES, f"{found}: classes, not numbers"
    return NUMBERS, f"{found}: numbers, not classes"


# ---- Rows for models ----------------------------------------------------------------------------


def examples(arguments, interruption, models, start_of=lambda table: None):
    """Yield (table, chunk, targets) of all files, ready to be learned; if `models` is empty, targets choose one."""
    for source in arguments.data:
        if interruption.signal is not None:
            return
        model, target = models[0] if models else None, arguments.target
        if target is None and getattr(model, "_estimator_type", "") != "outlier_detector":
            target = "-1"
        table = Table(source, arguments, interruption, None if target == NO_TARGET else target, model)
        waiting, enough = [], LOOKED_AT if table.can_reopen else WAITED_FOR
        for last in chain(table.chunks(start_of(table)), [None]):  # None: no more will come
            waiting += [] if last is None else [last]
            full = [chunk for chunk in waiting if chunk.lines]
            if not models and full:
                targets = None if full[0].y is None else [text for chunk in full for text in chunk.y]
                models += _chosen(arguments, targets, 0 if last is None else enough)
            for chunk in waiting if models else ():
                chunk, y = _with_targets(models[0], chunk, table)
                for model in models if chunk.lines else ():
                    if not getattr(model, "t_", 0):
                        _prepare(model, arguments, table, chunk.X)
                yield table, chunk, y
            waiting = [] if models else waiting


def _with_targets(model, chunk, table):
    """(the chunk without rows whose target is bad, the targets as a model takes them, None where there are none)."""
    is_fitted, kind = getattr(model, "t_", 0) > 0, model._estimator_type
    if kind == "outlier_detector" or chunk.y is None and is_fitted:
        return chunk, None
    if chunk.y is None:
        raise Refused(f"{table.name} has no labels; only detectors (--target none) need none.")
    if kind == "classifier" and not is_fitted and (choice(chunk.y, math.inf) or "?")[0] == NUMBERS:
        what = f"the target's values are numbers, and {type(model).__name__} learns classes here."
        raise ValueError(f"{table.name}: {what} Use --algorithm {NUMBERS} or --loss squared for numbers.")
    known = {str(label): label for label in getattr(model, "classes_", np.array([])).tolist()}
    return table.with_targets(chunk, known if kind == "classifier" else None)


def _prepare(model, arguments, table, X):
    """Let the first rows of text say what a new model needs: an encoder, and scaling of what it makes."""
    params = model.get_params(deep=False)
    if "encode" not in params or _set(arguments).get("encode") is not None:
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
    return ValueError(f"{table.name}, line {lines[row]}, {error.what.lstrip(',: ')}")
