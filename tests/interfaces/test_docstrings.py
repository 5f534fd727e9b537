"""Signature, docstring and check of every parameter say the same; what docstrings share is whole where it is shown."""
import importlib
import inspect
import pkgutil
import re

import numpy as np
import pytest
from cases import each

import onlinekernels as ok
from onlinekernels import algorithms
from onlinekernels import kernels
from onlinekernels.budgets import Budget
from onlinekernels.base.estimator import FunctionEstimator
from onlinekernels.base.params import Parameterized
from onlinekernels.steps import Step
from onlinekernels.labels import LabelStructure


X = np.random.default_rng(0).uniform(0.1, 0.9, size=(12, 2))
SIGNS = np.where(X[:, 0] > 0.5, 1, -1)
NUMBERS = X[:, 1]
LETTERS = np.array(list("abc"))[np.arange(12) % 3]
LINE = ok.LabelGraph([("a", "b", 1.0), ("b", "c", 1.0)])
Y = {"binary": SIGNS, "multiclass": LETTERS, "regression": NUMBERS, "novelty": None}
# Parameters without a default
NEEDED = {**{name: {"size": 5} for name in ("Recent", "RandomRemoval", "Redundant", "Merging", "Projecting",
                                            "Reservoir", "Shrinking")}, "Smallest": {"size": 5}, "Window": {"steps": 5},
          "Normalized": {"kernel": "gaussian"}, "RandomFourier": {"kernel": "gaussian"},
          "Nystroem": {"kernel": "gaussian"}, "Precomputed": {"gram": np.eye(12)}, "Sum": {"left": ok.Gaussian(),
                                                                                           "right": ok.Linear()},
          "Product": {"left": ok.Gaussian(), "right": ok.Linear()}, "Custom": {"function": np.dot},
          "Additive": {"left": [np.ones_like], "right": [np.ones_like]}, "Labels": {"labels": ["a", "b", "c"]},
          "Taxonomy": {"parents": {"a": "r", "b": "r", "c": "r"}}, "LabelGraph": {"edges": LINE.edges},
          "Bank": {"n_features": 2}, "KRLS": {"loss": "multiclass_squared"},
          "SelfTuned": {"loss": "multiclass_squared"}, "Smoother": {"loss": "multiclass_squared"},
          **{name: {"members": [ok.SILK(budget=5), ok.PassiveAggressive("hinge", "linear")]} for name in ("Stacking",
                                                                                                          "Hedge")}}
CLASSES = [
    *(thing for thing in (getattr(ok, name) for name in ok.__all__)
      if isinstance(thing, type) and issubclass(thing, Parameterized) and thing not in (ok.Loss, ok.Kernel)),
    kernels.Sum, kernels.Product, kernels.Custom,
]
PARAMETERS = [(cls, parameter.name) for cls in CLASSES for parameter in cls._signature()]


def fit(cls, **params):
    """The first fit of a model of this class, or with a noun of this class."""
    thing = cls(**{**NEEDED.get(cls.__name__, {}), **params})
    if isinstance(thing, ok.Bank):
        return thing.partial_fit(X, SIGNS, keys=None if thing.n_models is not None else [0] * 12)
    if cls.__name__ in algorithms.__all__:
        numbers = "squared" if cls is ok.KRLS else "insensitive"
        thing.set_params(**{"loss": numbers} if params.get("scale_target") is True else {})
        return thing.fit(X, NUMBERS if params.get("scale_target") is True else SIGNS)
    if isinstance(thing, ok.Loss):
        return ok.NORMA(thing, labels=LINE if thing.structured else None).fit(X, Y[thing.task])
    if isinstance(thing, ok.Reservoir):
        return ok.Smoother(budget=thing).fit(X, NUMBERS)
    if isinstance(thing, ok.Precomputed):
        return ok.NORMA("squared", thing).fit(np.arange(12)[:, None], NUMBERS)
    if isinstance(thing, LabelStructure):
        return ok.NORMA("graph_hinge", labels=thing).fit(X, LETTERS)
    for kind, name in ((ok.Kernel, "kernel"), (Step, "step"), (Budget, "budget"), (ok.RunningScaler, "scale")):
        if isinstance(thing, kind):
            loss, y = ("hinge", SIGNS) if isinstance(thing, ok.Redundant) else ("squared", NUMBERS)
            return ok.NORMA(loss, **{name: thing}).fit(X, y)
    if isinstance(thing, (ok.RunningEncoder, ok.KernelHebbian)):
        return thing.fit(X)
    raise AssertionError(f"no way to fit {cls}")


def described(cls):
    """{parameter: (kind, text)} of the section about parameters, each of several names by itself."""
    section = re.search(r"^Parameters\n-+\n(.*?)(?=\n\n|\Z)", inspect.getdoc(cls), re.M | re.S)
    found, names = {}, []
    for line in section[1].split("\n") if section else []:
        if not line.startswith(" "):
            names, _, kind = line.partition(" : ")
            names = names.split(", ")
            found.update({name: [kind, ""] for name in names})
        else:
            for name in names:
                found[name][1] += line.strip() + " "
    return {name: tuple(said) for name, said in found.items()}


@each("cls", CLASSES)
def test_each_parameter_is_described_in_the_order_of_the_signature(cls):
    assert list(described(cls)) == [parameter.name for parameter in cls._signature()]


@each("cls", CLASSES)
def test_the_kind_of_a_parameter_is_named_and_has_the_default_among_it(cls):
    for parameter in cls._signature():
        kind, text = described(cls)[parameter.name]
        assert kind, parameter.name
        default = parameter.default
        if default is not parameter.empty and (cls, parameter.name) != (ok.Precomputed, "gram"):
            words = {str: f'"{default}"', type(None): r"\bNone\b", int: r"\b(int|float)\b"}
            assert re.search(words.get(type(default), rf"\b{type(default).__name__}\b"), kind), (parameter.name, kind)
        for named in re.findall(r"\b[Dd]efault(?: is|s to|=|:)? ([\w.\"'-]+[\w\"'])", text):
            assert named == repr(default), f"{parameter.name}: the text says {named}"


# ---- Docstring and check ---------------------------------------------------------------------------------------

PROBES = {"None": None, "bool": True, "float": 0.37, "int": 3, "str": "no such name", "object": object(), "list": []}
NEVER = ("str", "object", "list")  # even where a parameter takes names or lists


@each("probe", PROBES)
@each("cls, name", PARAMETERS)
def test_a_value_of_another_kind_is_refused_at_the_first_fit_by_name(cls, name, probe):
    kind = described(cls)[name][0]
    taken = "int|float" if probe == "int" else probe
    if taken not in NEVER and re.search(rf"\b({taken})\b", kind):
        if probe in ("None", "bool"):
            fit(cls, **{name: PROBES[probe]})  # what the docstring says is true
        return
    with pytest.raises((ValueError, TypeError), match=rf"'{name}'"):
        fit(cls, **{name: PROBES[probe]})


@each("value", [float("nan"), float("inf"), 10**400, 1j], ids=["nan", "inf", "10**400", "1j"])
@each("cls, name", [(c, n) for c, n in PARAMETERS if re.search("float|int", described(c)[n][0])])
def test_a_number_that_is_none_is_refused_at_the_first_fit_by_name(cls, name, value):
    with pytest.raises((ValueError, TypeError), match=rf"'{name}'"):
        fit(cls, **{name: value})


RANGES = r"at least|positive|[Ii]n [\(\[]"


@each("cls, name", [(c, n) for c, n in PARAMETERS if re.search(RANGES, described(c)[n][1])])
def test_a_number_out_of_the_range_that_the_docstring_names_is_refused(cls, name):
    kind, text = described(cls)[name]
    least = re.search(r"at least (\d+)", text)
    outside = [-0.5, -3] if least is None else [int(least[1]) - 1, -7]
    if "positive" in text:
        outside.append(0)
    bounds = re.search(r"in ([(\[])0, 1([)\]])", text, re.I)
    if bounds is not None:
        outside += [1.5, *([0] if bounds[1] == "(" else []), *([1] if bounds[2] == ")" else [])]
    for value in outside:
        with pytest.raises(ValueError, match=rf"'{name}'"):
            fit(cls, **{name: value})


CITED = re.compile(r"\b([KIVH]) (?=\(\d|\d|[IVX]+-|Thm|Cor|Fig|Prop|Algorithm|section)")


@each("cls", CLASSES)
def test_papers_that_are_cited_are_named(cls):
    doc = inspect.getdoc(cls)
    references = re.search(r"^References\n-+\n(.*?)(?=\n\n|\Z)", doc, re.M | re.S)
    named = re.findall(r"^(\w)$", references[1], re.M) if references else []
    assert set(CITED.findall(doc)) <= set(named)


# ---- The mechanism ---------------------------------------------------------------------------------------------


def all_classes():
    for module in pkgutil.walk_packages(ok.__path__, "onlinekernels."):
        if not any(part in module.name for part in ("__main__", "conftest", "river", "_core")):
            for thing in vars(importlib.import_module(module.name)).values():
                if isinstance(thing, type) and thing.__module__ == module.name:
                    yield thing


def test_nothing_is_left_to_fill_in_and_nothing_is_described_elsewhere():
    for cls in all_classes():
        doc = inspect.getdoc(cls) or ""
        assert not re.search(r"^ *\{\w+\}$", doc, re.M), cls
        if cls in CLASSES:
            assert not re.search(r"\b[Aa]s (in|for) `[A-Z]", doc), cls


@each("name", algorithms.__all__)
def test_the_docstring_of_an_algorithm_has_every_attribute(name):
    cls = getattr(ok, name)
    section = re.search(r"^Attributes\n-+\n(.*?)(?=\n\n[A-Z]\w+\n--)", inspect.getdoc(cls), re.M | re.S)[1]
    shown = re.findall(r"^(\w+_)\n +\S", section, re.M)
    assert sorted(shown) == sorted(n for n in dir(cls) if re.fullmatch(r"[a-z]\w*_", n))
    assert {"classes_", "t_"} <= set(shown)
    of_a_function = {"dual_coef_", "coef_", "intercept_", "kernel_", "norm_", "step_"}
    assert of_a_function & set(shown) == (of_a_function if issubclass(cls, FunctionEstimator) else set())
