"""Words of the command line that stand for objects.

A specification is ``name``, ``name:value``, ``name:parameter=value,parameter=value``; kernels may be
added with ``+``, multiplied by numbers, put in parentheses, and normalized. Feature maps come before their kernel.

>>> kernel("gaussian:2.0"), kernel("polynomial:degree=2,bias=0.5")
(Gaussian(width=2.0), Polynomial(degree=2, bias=0.5))
>>> kernel("gaussian:2 + 0.1*linear + noise:1e+3").right
Noise(value=1000.0)
>>> kernel("normalized:(linear+gaussian:2)"), kernel("normalized:polynomial:2 + 0.5*constant").left
(Normalized(Linear() + Gaussian(width=2)), Normalized(Polynomial(degree=2)))
>>> kernel("nystroem:300:gaussian:2"), kernel("fourier:size=400,seed=1:laplacian")
(Nystroem(Gaussian(width=2), size=300), RandomFourier(Laplacian(), size=400, seed=1))
>>> loss("nuhinge:nu=0.2"), step("0.5"), step("decaying:rate=0.3,delay=50"), budget("window:200")
(NuHinge(nu=0.2), 0.5, Decaying(rate=0.3, delay=50), Window(200))
"""

import inspect
import re
from math import inf

from onlinekernels import algorithms
from onlinekernels.nouns import budgets, steps
from onlinekernels.nouns.additive import KERNELS  # with the additive ones in it
from onlinekernels.nouns.kernels import Normalized
from onlinekernels.nouns.losses import LOSSES
from onlinekernels.nouns.maps import Nystroem, RandomFourier

__all__ = ["algorithm", "kernel", "loss", "step", "budget", "noise", "assignment", "class_weight", "value"]

# Adatron learns whole data sets only.
ALGORITHMS = {name.lower(): getattr(algorithms, name) for name in algorithms.__all__ if name != "Adatron"}
STEPS = {name.lower(): getattr(steps, name) for name in steps.__all__ if name != "Step"}
MAPS = {"fourier": RandomFourier, "randomfourier": RandomFourier, "nystroem": Nystroem}
BUDGETS = {name.lower(): getattr(budgets, name) for name in budgets.__all__ if name != "Budget"}

# A plus between two kernels comes before a name or a parenthesis, perhaps with a factor; that of 1e+3 before a digit.
_PLUS = re.compile(r"\+(?=\s*(?:[0-9.eE-]+\s*\*\s*)?[A-Za-z(])")


def algorithm(text):
    """The class of an algorithm."""
    return _looked_up(text, ALGORITHMS, "algorithm")


def kernel(text):
    """A kernel, or a sum of multiples of kernels."""
    first, *others = (_multiple(part) for part in _terms(text))
    for other in others:
        first = first + other
    return first


def _terms(text):
    """Parts of a sum; a plus within parentheses does not divide."""
    parts, begin = [], 0
    for plus in _PLUS.finditer(text):
        before = text[begin : plus.start()]
        if before.count("(") == before.count(")"):
            parts.append(before)
            begin = plus.end()
    return [*parts, text[begin:]]


def _multiple(text):
    factor, star, rest = text.partition("*")
    if not star or "(" in factor or ":" in factor:
        return _one_kernel(text.strip())
    number = value(factor)
    if isinstance(number, (int, float)) and not isinstance(number, bool):
        return number * _one_kernel(rest.strip())
    raise ValueError(f"a factor of a kernel must be a number. Got {factor.strip()!r} instead.")


def _one_kernel(text):
    """A kernel by its name, a sum in parentheses, or one of these normalized or mapped to features."""
    if text.startswith("("):
        if not text.endswith(")"):
            raise ValueError(f"parentheses of a kernel must match. Got {text!r} instead.")
        return kernel(text[1:-1])
    name, _, rest = text.partition(":")
    if name.strip().lower() == "normalized":
        if not rest.strip():
            raise ValueError(f"normalized needs a kernel, as in normalized:polynomial:2. Got {text!r} instead.")
        return Normalized(_one_kernel(rest.strip()))
    if _key(name) in MAPS:
        return _map(MAPS[_key(name)], text, rest.strip())
    return _made(text, KERNELS, "kernel")


def _map(cls, text, rest):
    """A feature map of a kernel, before which its parameters may come."""
    first, _, behind = rest.partition(":")
    parameters, inner = (first, behind) if "=" in first or not isinstance(value(first), str) else ("", rest)
    if not inner.strip():
        raise ValueError(f"a feature map needs a kernel, as in nystroem:300:gaussian:2. Got {text!r} instead.")
    arguments, named = _arguments(parameters)
    return _called(cls, text, [_one_kernel(inner.strip()), *arguments], named)


def loss(text):
    """A loss."""
    return _made(text, LOSSES, "loss")


def step(text):
    """A step: a number, or one of the steps."""
    number = value(text)
    return _made(text, STEPS, "step") if isinstance(number, str) else number


def budget(text):
    """A budget: a number, ``none``, or one of the budgets."""
    if text.strip().lower() == "none":
        return None
    number = value(text)
    return _made(text, BUDGETS, "budget") if isinstance(number, str) else number


def noise(text):
    """The variance of noise: a number, or ``auto``.

    >>> noise("0.01"), noise("auto")
    (0.01, 'auto')
    """
    return "auto" if text.strip().lower() == "auto" else float(text)


def assignment(text):
    """(name, value) of ``name=value``."""
    name, equals, rest = text.partition("=")
    if not equals or not name.strip().isidentifier():
        raise ValueError(f"must have the form name=value. Got {text!r} instead.")
    return name.strip(), value(rest)


def class_weight(text):
    """``balanced``, or a dictionary of labels (as texts) and weights.

    >>> class_weight("balanced"), class_weight("rain:2, snow:0.5")
    ('balanced', {'rain': 2.0, 'snow': 0.5})
    """
    if text.strip().lower() == "balanced":
        return "balanced"
    pairs = [part.rpartition(":") for part in text.split(",")]
    weights = {label.strip(): value(weight) for label, _, weight in pairs}
    if "" in weights or not all(type(weight) in (int, float) and 0 <= weight < inf for weight in weights.values()):
        raise ValueError(f"must be balanced, or LABEL:WEIGHT,... with weights of at least 0. Got {text!r} instead.")
    return {label: float(weight) for label, weight in weights.items()}


def value(text):
    """A number, a pair of numbers ``low..high``, True, False, None, or the text itself.

    >>> value("3"), value("3.0"), value("0..1"), value("true"), value("PA-II")
    (3, 3.0, (0, 1), True, 'PA-II')
    """
    text = text.strip()
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    if ".." in text:
        ends = tuple(value(end) for end in text.split("..", 1))
        return text if any(isinstance(end, str) for end in ends) else ends
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def _made(text, table, noun):
    """An object from ``name:arguments``."""
    name, _, rest = text.partition(":")
    return _called(_looked_up(name, table, noun), text, *_arguments(rest))


def _arguments(text):
    """(values, {name: value}) of ``value,name=value``."""
    arguments, named = [], {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        if "=" in part:
            key, content = assignment(part)
            named[key] = content
        else:
            arguments.append(value(part))
    return arguments, named


def _called(cls, text, arguments, named):
    try:
        return cls(*arguments, **named)
    except TypeError as error:
        raise ValueError(f"{cls.__name__} takes {_parameters(cls)}. Got {text.strip()!r} instead.") from error


def _parameters(cls):
    names = [] if cls.__init__ is object.__init__ else [*inspect.signature(cls).parameters]
    return ", ".join(names) or "no parameters"


def _looked_up(name, table, noun):
    if _key(name) not in table:
        raise ValueError(f"{noun} must be one of {', '.join(sorted(table))}. Got {name.strip()!r} instead.")
    return table[_key(name)]


def _key(name):
    return name.strip().lower().replace("-", "").replace("_", "")
