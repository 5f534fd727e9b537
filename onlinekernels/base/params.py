"""Parameters of plain objects, in scikit-learn's manner and without scikit-learn.

An object's parameters are the arguments of its ``__init__``, stored under their own names and not
touched there: constructors and `set_params` never raise on a value, the first fit does.
"""
from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING

from onlinekernels.base import docstrings

if TYPE_CHECKING:
    from onlinekernels.annotations import Any, Self


@functools.cache
def _parameters_of(init):
    return [p for p in inspect.signature(init).parameters.values() if p.name != "self"]


class Parameterized:
    """get_params, set_params and repr from the signature of ``__init__``.

    The papers that docstrings cite by a letter, with a number in parentheses for an equation; see
    `onlinekernels.base.docstrings` for how the docstrings get them.

    References
    ----------
    K
        Kivinen, Smola and Williamson, "Online Learning with Kernels", 2004.
    I
        Cheng, Vishwanathan, Schuurmans, Wang and Caelli, "Implicit Online Learning with Kernels", 2006.
    V
        Vishwanathan, Schraudolph and Smola, "Step Size Adaptation in Reproducing Kernel Hilbert Space", 2006.
    H
        Herbster, "Learning Additive Models Online with Fast Evaluating Kernels", 2001.
    """

    _values: dict[str, Any] = {}  # {parameter: check(self, name)} of the values that it takes

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        docstrings.fill(cls)

    def _check_values(self):
        """Raise ValueError for a parameter whose value is not one that it takes."""
        for name, check in self._values.items():
            check(self, name)

    @classmethod
    def _signature(cls):
        return [] if cls.__init__ is object.__init__ else _parameters_of(cls.__init__)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name; with `deep` also those of parameters, as ``kernel__width``."""
        params = {}
        for parameter in self._signature():
            name, value = parameter.name, getattr(self, parameter.name)
            params[name] = value
            if deep and hasattr(value, "get_params") and not isinstance(value, type):
                params.update({f"{name}__{key}": v for key, v in value.get_params().items()})
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name, nested ones as ``kernel__width``; return self.

        A name that does not exist is refused, and then nothing has been set.
        """
        own, nested = self._sorted_out(params)
        for inner, values in nested:
            inner.set_params(**values)
        for name, value in own.items():
            setattr(self, name, value)
        return self

    def _sorted_out(self, params):
        """(own parameters, [(object, its parameters)]), all of which exist; changes nothing."""
        names = [p.name for p in self._signature()]
        own, nested = {}, {}
        for key, value in params.items():
            name, separator, rest = key.partition("__")
            if name not in names:
                raise ValueError(f"{type(self).__name__} has no parameter {name!r}. It has: "
                                 f"{', '.join(names) or 'none'}.")
            if separator:
                nested.setdefault(name, {})[rest] = value
            else:
                own[name] = value
        inner = {name: own[name] if name in own else getattr(self, name) for name in nested}
        for name, values in nested.items():
            if not hasattr(inner[name], "set_params"):
                component = self._component(name, inner[name])
                if component is None:
                    raise ValueError(f"The {name!r} parameter of {type(self).__name__} is {inner[name]!r}, which has "
                                     f"no parameters of its own to set. Give an object for {name!r} first.")
                own[name] = inner[name] = component
            if isinstance(inner[name], Parameterized):
                inner[name]._sorted_out(values)
        return own, [(inner[name], values) for name, values in nested.items()]

    def _component(self, name, value):
        """The object that a value of a parameter stands for, if it is none itself; None if there is no such object."""
        return None

    def __repr__(self):
        shown = []
        for p in self._signature():
            value = getattr(self, p.name)
            if p.default is p.empty or not _equal(value, p.default):
                named = p.kind is p.KEYWORD_ONLY or p.default is not p.empty
                shown.append(f"{p.name}={value!r}" if named else repr(value))
        return f"{type(self).__name__}({', '.join(shown)})"


def nearest(cls, table):
    """Entry of a table of built-in classes by name for a class or its nearest ancestor; None without one."""
    for ancestor in cls.__mro__:
        if ancestor.__module__.startswith("onlinekernels.") and ancestor.__name__ in table:
            return table[ancestor.__name__]
    return None


def _equal(a, b):
    try:
        return type(a) is type(b) and bool(a == b)
    except ValueError:  # arrays
        return a is b


def same_parameters(a, b):
    """Whether two objects are of one class and have equal parameters, nested ones included.

    >>> from onlinekernels import Gaussian
    >>> same_parameters(Gaussian(2.0), Gaussian(2.0)), same_parameters(Gaussian(2.0), Gaussian(3.0))
    (True, False)
    """
    if isinstance(a, Parameterized) and type(a) is type(b):
        mine, other = a.get_params(deep=False), b.get_params(deep=False)
        return all(same_parameters(mine[name], other[name]) for name in mine)
    if isinstance(a, (dict, list, tuple)) and type(a) is type(b) and len(a) == len(b):
        if isinstance(a, dict):
            return list(a) == list(b) and all(same_parameters(a[name], b[name]) for name in a)
        return all(same_parameters(mine, other) for mine, other in zip(a, b, strict=True))
    if hasattr(a, "shape") or hasattr(b, "shape"):
        return getattr(a, "shape", ()) == getattr(b, "shape", ()) and bool((a == b).all())
    return a is b or bool(a == b)
