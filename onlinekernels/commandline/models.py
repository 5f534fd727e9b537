"""The model that the arguments of learn describe: a new one, or one from a file."""

from onlinekernels.commandline import specifications
from onlinekernels.commandline.options import Usage, told
from onlinekernels.files.modelfile import load
from onlinekernels.nouns.encoding import RunningEncoder
from onlinekernels.nouns.scaling import RunningScaler
from onlinekernels.streams.options import format_of

__all__ = ["DECISIVE", "DEFAULT_ALGORITHM", "FIXED_ON_A_MODEL", "made", "new_model", "settled"]

DEFAULT_ALGORITHM = "silk"  # of single learners, whose parameters these are
OF_ONE = (
    *("loss", "kernel", "step", "regularization", "penalty", "noise", "memory", "tolerance"),
    *("budget", "offset", "average", "scale"),
)
# Options that are parameters of algorithms, and those of them that a model which has learned takes.
PARAMETERS = (*OF_ONE, "encode", "effort")
CHANGEABLE = ("step", "regularization", "penalty", "noise", "memory")  # as far as its algorithm lets them
FIXED_ON_A_MODEL = (
    "algorithm",
    *(name for name in PARAMETERS if name not in CHANGEABLE),
    *("scale_memory", "classes"),
)
# Options that decide what the model becomes: a run can only be resumed with the same ones.
DECISIVE = (
    *"target features format header delimiter n_features sparse label_type on_error chunk algorithm".split(),
    *PARAMETERS,
    *("scale_memory", "set", "classes", "class_weight"),
)


def made(arguments):
    """The model, or None if the target has to say which; Usage if the parameters make no sense."""
    if arguments.model is None:
        is_open = arguments.algorithm is None and all(getattr(arguments, name) is None for name in (*OF_ONE, "scale_memory"))
        if is_open:
            _are_tables(arguments)  # or files of any other kind
            return None
        return new_model(arguments, arguments.algorithm or DEFAULT_ALGORITHM)
    model = load(arguments.model)
    changes = _assignments(arguments) | _parameters(arguments, CHANGEABLE)
    _check_names(model, changes)
    for name, value in changes.items():
        model.set_params(**{name: value})
        _checked(model._plan)
        if model._state is not None:
            option = f"--set {name}" if name not in CHANGEABLE else f"--{name}"
            _checked(lambda: model._state.refreshed(model), f"{option} cannot be given with --model, which has its own")
    return model


def new_model(arguments, name):
    """A model of the algorithm of that name, with the parameters that were given; Usage if they make no sense."""
    algorithm = specifications.algorithm(name)
    params = _assignments(arguments) | _parameters(arguments, PARAMETERS)
    if arguments.scale_memory is not None:
        params["scale"] = RunningScaler(float(arguments.scale_memory))
    _check_names(algorithm, params)
    if _are_tables(arguments):
        params.setdefault("encode", True)
    model = algorithm(**params)
    _checked(model._plan)
    return model


def _are_tables(arguments):
    """Whether all data may have words in them."""
    try:
        return all(format_of(source, arguments.format) in ("csv", "tsv") for source in arguments.data)
    except ValueError as error:
        raise Usage(told(error)) from error


def settled(model, arguments, X, names):
    """Let the first rows of a table say what a new model needs: names of columns to encode; words want scaled numbers."""
    if model.encode is False:
        return
    columns = names if names is not None and len(set(names)) == len(names) else None
    model.set_params(encode=RunningEncoder(columns=columns))
    if X.dtype == object and arguments.scale is None and arguments.scale_memory is None:
        if "scale" in model.get_params(deep=False):
            model.set_params(scale=True)


def _assignments(arguments):
    """The parameters that --set gives."""
    return dict(specifications.assignment(text) for text in arguments.set or [])


def _parameters(arguments, names):
    """The parameters that were given, as objects."""
    makers = {name: getattr(specifications, name) for name in ("loss", "kernel", "step", "budget")}
    given = {name: getattr(arguments, name) for name in names}
    return {
        name: makers.get(name, specifications.value)(text) if isinstance(text, str) else text
        for name, text in given.items()
        if text is not None
    }


def _check_names(algorithm, params):
    takes = [parameter.name for parameter in algorithm._signature() if parameter.name not in ("labels", "epochs")]
    for name in params:
        if name not in takes:
            owner = algorithm if isinstance(algorithm, type) else type(algorithm)
            raise Usage(f"{owner.__name__} has no parameter {name!r}. It has: {', '.join(takes)}.")


def _checked(check, message=None):
    try:
        check()
    except (ValueError, TypeError) as error:
        raise Usage(message or str(error)) from error
