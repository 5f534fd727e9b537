"""Docstrings that share what they say: what a base class describes, derived classes point to.

A line ``{name}`` of its own, or of several such names, in the docstring of a class, stands for the entry of that name
in the docstring of the nearest base that has one: the entry's line, and its description below. Further lines below the
name add to the description. ``{Notes}``, or the name of another section, stands for that whole section;
``{Attributes}`` for the public properties that end in an underscore, each with its own docstring. A name that no base
describes stays as it is.

`Parameterized` does this for every class that derives from it, when the class is made; so `help`, Sphinx and doctest
see the whole text.  `like` does it for a function, or a class without such a base, by what another one says.

>>> from onlinekernels import Laplacian
>>> class Sharp(Laplacian):
...     '''A Laplacian kernel.
...
...     Parameters
...     ----------
...     {rate}
...         Large is sharp.
...     '''
>>> print(inspect.cleandoc(Sharp.__doc__))
A Laplacian kernel.
<BLANKLINE>
Parameters
----------
rate : float
    How fast k(x, z) falls with the distance; positive.
    Large is sharp.
"""
import functools
import inspect
import re

_PLACES = re.compile(r"( *)(\{\w+\}(?: \{\w+\})*)")
_ENTRY = re.compile(r"([\w]+(?:, \w+)*)(?: : .*)?")
LINES_ADDED: dict[str, int] = {}  # {name of a class or function: lines that its docstring has more than in the file}


def fill(cls):
    """Put what the bases say into the docstring of a class."""
    def described(name):
        if name == "Attributes":
            return _attributes(cls)
        found = (entries(vars(base).get("__doc__")).get(name) for base in cls.__mro__[1:-1])
        return next((lines for lines in found if lines is not None), None)

    _fill(cls, described)


def like(*others):
    """A decorator that puts what others say into the docstring of a function or class."""
    described = {name: lines for other in others for name, lines in entries(other.__doc__).items()}

    def filled(thing):
        _fill(thing, described.get)
        return thing

    return filled


def _fill(thing, described):
    """Put `described(name)` in the places of names; nothing without a docstring, as under ``python -OO``."""
    lines, whole = (thing.__doc__ or "").split("\n"), []
    for line in lines:
        places, filled = _PLACES.fullmatch(line) if "{" in line else None, []
        for place in places[2].split() if places else ():
            found = described(place[1:-1]) or [place]
            if filled and found[1:] and not found[1].strip("-"):  # a section
                filled.append("")
            filled += [places[1] + part if part else part for part in found]
        whole += filled if places else [line]
    if whole != lines:
        thing.__doc__ = "\n".join(whole)
        LINES_ADDED[f"{thing.__module__}.{thing.__qualname__}"] = len(whole) - len(lines)


@functools.cache
def entries(doc):
    '''{name: lines} of the sections of a docstring and of the entries in them; an entry may have several names.

    >>> entries("""A ring.
    ...
    ... Parameters
    ... ----------
    ... size : int
    ...     How many.
    ... """)["size"]
    ['size : int', '    How many.']
    '''
    found, section, entry = {}, [], []
    lines = inspect.cleandoc(doc or "").split("\n")
    for line, below in zip(lines, [*lines[1:], ""]):
        if line and below and not below.strip("-"):  # a heading
            section, entry = [], []
            found[line] = section
        elif line and line[0] not in " -":  # not within an entry
            entry, names = [], _ENTRY.fullmatch(line)
            if names and found:
                found.update(dict.fromkeys(names[1].split(", "), entry))
        section.append(line)
        entry.append(line)
    return {name: "\n".join(described).rstrip("\n").split("\n") for name, described in found.items()}


def _attributes(cls):
    """The section about attributes, from the docstrings of properties."""
    properties = {}
    for base in reversed(cls.__mro__):
        properties.update({name: value for name, value in vars(base).items() if isinstance(value, property)})
    section = ["Attributes", "----------"]
    for name, value in properties.items():
        if name.endswith("_") and not name.startswith("_"):
            lines = inspect.cleandoc(value.__doc__ or "").split("\n")
            section += [name, *("    " + line for line in lines if line)]
    return section if len(section) > 2 else None
