"""Annotations: all that a user can call has them, and a user's program, which `.ci/run` has checked strictly, runs."""
import importlib
import inspect

import pytest
import typed_program
from cases import each

from onlinekernels import kernels, losses

MODULES = ["onlinekernels", *(f"onlinekernels.{name}" for name in (
    "algorithms", "annotations", "bank", "bounds", "budgets", "decomposition", "evaluate", "kernels", "labels",
    "losses",
    "parallel", "preprocessing", "river", "steps", "streams"))]


def functions(thing):
    """(name, function) of all that is called or read of a class, or of a function."""
    if inspect.isfunction(thing):
        yield thing.__qualname__, thing
    for cls in thing.__mro__ if inspect.isclass(thing) else ():
        if not cls.__module__.startswith("onlinekernels.") or "._core" in cls.__module__:
            continue
        for name, member in vars(cls).items():
            if name.startswith("_") and name not in ("__init__", "__call__", "__init_subclass__"):
                continue
            member = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
            member = inspect.unwrap(getattr(member, "function", member))     # of `only_if`, `learned`
            if inspect.isfunction(member) and member.__name__ == name:      # what a class gives up has another name
                yield f"{cls.__qualname__}.{name}", member


@each("module", MODULES)
def test_what_users_call_has_types(module):
    if module.endswith("river"):
        pytest.importorskip("river")
    found = importlib.import_module(module)
    names = getattr(found, "__all__", None) or [name for name in vars(found) if not name.startswith("_")]
    missing, seen = [], 0
    for name in names:
        for where, function in functions(getattr(found, name)) if hasattr(found, name) else ():
            signature = inspect.signature(function)
            parameters = list(signature.parameters.values())[1 if "." in where else 0:]
            missing += [f"{where}({p.name})" for p in parameters if p.annotation is p.empty]
            missing += [f"{where} ->"] if signature.return_annotation is signature.empty else []
            seen += 1
    assert seen and not missing, missing


def test_names_that_type_checkers_can_see_are_all():
    assert set(losses.__all__) == {"Loss", *(cls.__name__ for cls in losses.LOSSES.values())}
    assert set(kernels.elementary.__all__) <= set(kernels.__all__)


def test_the_typed_program_runs(tmp_path):
    rows = [[0.0, 0.1], [1.0, 1.1], [0.1, 0.0], [1.1, 1.0]] * 10
    assert typed_program.main(rows, ["a", "b"] * 20, tmp_path) > 3.0
