"""What a class keeps, declared once: the names, types, shapes and limits of its state.

A class that keeps state lists it in ``FIELDS``. `state_of` reads it, `checked` says whether a state can be that of an
object, and `restore` goes on from one: first all of it is checked, and then it is taken over. Files, pickles and
copies are the same walk.

A field is by default the attribute of the same name: arrays of the same shape are filled in place, everything else is
assigned. ``of=function`` names another array of the object, which is filled in place. A class may have up to three
methods:

- ``stored()`` gives the values of fields that are not attributes, {name: value};
- ``fits(state)`` raises ValueError where values that are each valid do not fit each other;
- ``resume(state)`` takes over checked values, all of them, in place of the default, or before and after
  ``assign(owner, state)``, which is the default. It fails for want of memory at most.

The sizes in shapes are numbers, or names: those of attributes of the object, and otherwise free, but one number for
all fields of the object; or functions of (object, {name: number}) that compute them from such numbers. An object may
also have ``sizes(state)``, {name: number}, where they follow from the state.

The fields of an object that is `Inlined` in another one stand among those of that one, and have the same sizes:
``fits`` and ``resume`` of both get the values of all. If it has a ``prefix``, its names begin with that, and it is on
its own.

>>> class Mean:
...     FIELDS = Count("rows"), Array("sums", float, ("n",), not_negative)
...     def __init__(self, n):
...         self.n, self.rows, self.sums = n, 0, np.zeros(n)
>>> mean = Mean(2)
>>> restore(mean, {"rows": 3, "sums": np.array([1.0, 2.0])})
>>> state_of(mean)
{'rows': 3, 'sums': array([1., 2.])}
>>> restore(mean, {"rows": 3, "sums": np.array([1.0, -2.0])})
Traceback (most recent call last):
    ...
ValueError: sums has negative numbers
"""
import numpy as np

from onlinekernels._core.arrays import check_array

__all__ = ["Array", "assign", "at_least", "Buffer", "check_state", "checked", "Count", "distinct", "Flag", "Items", "Inlined",
           "lower_triangular", "not_negative", "Number", "ordered", "Part", "Parts", "positive", "positive_definite",
           "Record", "restore", "shares", "Size", "state_of", "within"]

LARGEST_COUNT = 1 << 62


# ---- Limits: functions of (value, name) that raise ValueError ----


def at_least(least):
    """The limit: not below `least`."""
    def check(value, name):
        if np.size(value) and np.min(value) < least:
            raise ValueError(f"{name} is below {least:g}")
    return check


def not_negative(value, name):
    """The limit: no negative numbers."""
    if (np.asarray(value) < 0).any():
        raise ValueError(f"{name} has negative numbers")


def positive(value, name):
    """The limit: all numbers are larger than 0."""
    if not (np.asarray(value) > 0).all():
        raise ValueError(f"{name} has numbers that are not positive")


def within(low, high):
    """The limit: from `low` to `high`, both included."""
    def check(value, name):
        if np.size(value) and (np.min(value) < low or np.max(value) > high):
            raise ValueError(f"{name} is not within {low:g} and {high:g}")
    return check


def ordered(value, name):
    """The limit: each number is larger than the one before it."""
    if (np.diff(value) <= 0).any():
        raise ValueError(f"{name} is not in ascending order")


def distinct(value, name):
    """The limit: no number comes twice."""
    if len(np.unique(value)) != np.size(value):
        raise ValueError(f"{name} has equal numbers")


def lower_triangular(value, name):
    """The limit: a factor, 0 above a positive diagonal."""
    if np.triu(value, 1).any() or not (np.diag(value) > 0.0).all():
        raise ValueError(f"{name} is not lower triangular with a positive diagonal")


def shares(value, name):
    """The limit: weights along the last axis are not negative and sum to 1."""
    if (value < 0.0).any() or (np.abs(value.sum(axis=-1) - 1.0) > 1e-6).any():
        raise ValueError(f"{name} does not sum to 1")


def positive_definite(value, name):
    """The limit: matrices are symmetric to the last bit and have a Cholesky factor."""
    if (value != value.swapaxes(-1, -2)).any():
        raise ValueError(f"{name} is not symmetric")
    for matrix in value.reshape(-1, *value.shape[-2:]):
        deviations = np.sqrt(np.maximum(np.diagonal(matrix), 0.0))
        if (deviations == 0.0).any():
            raise ValueError(f"{name} is not positive definite")
        try:
            np.linalg.cholesky(matrix / deviations[:, None] / deviations)
        except np.linalg.LinAlgError:
            raise ValueError(f"{name} is not positive definite") from None


# ---- Fields ----


class Field:
    """A named value of an object's state, kept if `when(owner)` holds."""

    optional = False  # whether it may be None, and is left out then

    def __init__(self, name, *limits, when=None):
        self.name, self.limits, self.when = name, limits, when

    def is_kept(self, owner):
        """Whether this object has it."""
        return self.when is None or self.when(owner)

    def get(self, owner):
        """The present value."""
        return getattr(owner, self.name)

    def read(self, value):
        """What goes into the state."""
        return value

    def check(self, value, owner, sizes):
        """The value as `write` takes it; ValueError if it is not valid."""
        for limit in self.limits:
            limit(value, self.name)
        return value

    def write(self, owner, value):
        """Take over a checked value."""
        setattr(owner, self.name, value)


class Count(Field):
    """A number of rows, labels, ...: an int from 0 on, unless limits say otherwise."""

    def read(self, value):
        return int(value)

    def check(self, value, owner, sizes):
        if type(value) is not int or not 0 <= value < LARGEST_COUNT:
            raise ValueError(f"{self.name} is not a number of rows or labels")
        return super().check(value, owner, sizes)


class Size(Count):
    """A number of rows, labels, ... that shapes of other fields name."""

    def check(self, value, owner, sizes):
        if sizes.setdefault(self.name, value) != value:
            raise ValueError(f"{self.name} is not the size of the arrays")
        return super().check(value, owner, sizes)


class Flag(Field):
    """True or False."""

    def read(self, value):
        return bool(value)

    def check(self, value, owner, sizes):
        if type(value) is not bool:
            raise ValueError(f"{self.name} is neither True nor False")
        return super().check(value, owner, sizes)


class Number(Field):
    """A finite float."""

    def read(self, value):
        return float(value)

    def check(self, value, owner, sizes):
        if type(value) is not float or not np.isfinite(value):
            raise ValueError(f"{self.name} is not a finite number")
        return super().check(value, owner, sizes)


class Record(Field):
    """A C struct that Cython shows as a dictionary, {member: its field}."""

    def __init__(self, name, *members, when=None):
        super().__init__(name, when=when)
        self.members = members

    def read(self, value):
        return {member.name: member.read(value[member.name]) for member in self.members}

    def check(self, value, owner, sizes):
        if not isinstance(value, dict) or set(value) != {member.name for member in self.members}:
            raise ValueError(f"{self.name} has other parts than {[member.name for member in self.members]}")
        return {member.name: member.check(value[member.name], owner, sizes) for member in self.members}


class Array(Field):
    """An array of finite numbers; `shape` in numbers and names of sizes; `of(owner)` is the array, if no attribute.

    An `optional` one may be None, and is left out.
    """

    def __init__(self, name, dtype, shape, *limits, when=None, of=None, optional=False):
        super().__init__(name, *limits, when=when)
        self.dtype, self.shape, self.of, self.optional = dtype, shape, of, optional

    def get(self, owner):
        return super().get(owner) if self.of is None else self.of(owner)

    def read(self, value):
        return None if value is None else np.array(value)

    def check(self, value, owner, sizes):
        if value is None and self.optional:
            return None
        dtype = getattr(owner, self.dtype) if isinstance(self.dtype, str) else np.dtype(self.dtype)
        wanted = [_size(size, owner, sizes) for size in self.shape]
        check_array(value, self.name, dtype, tuple(-1 if size is None else size for size in wanted))
        for size, length in zip(self.shape, value.shape, strict=True):
            if isinstance(size, str):
                sizes[size] = length
        return super().check(value, owner, sizes)

    def write(self, owner, value):
        present = self.get(owner)
        if isinstance(present, np.ndarray) and present.shape == value.shape:
            present[...] = value
        else:
            setattr(owner, self.name, value.copy())


class Buffer(Array):
    """An array whose type and shape do not change, and which is filled in place."""

    def __init__(self, name, *limits, when=None, of=None):
        super().__init__(name, None, None, *limits, when=when, of=of)

    def check(self, value, owner, sizes):
        present = self.get(owner)
        return Field.check(self, check_array(value, self.name, present.dtype, present.shape), owner, sizes)


class Items(Field):
    """A list or an array of Python objects, as many as the size of this name."""

    def __init__(self, name, size):
        super().__init__(name)
        self.size = size

    def check(self, value, owner, sizes):
        if isinstance(value, dict) or len(value) != sizes.setdefault(self.size, len(value)):
            raise ValueError(f"there are not as many {self.name} as terms")
        return value


class Part(Field):
    """Another object with ``FIELDS``; nothing is kept where there is none."""

    def is_kept(self, owner):
        return super().is_kept(owner) and getattr(owner, self.name) is not None

    def read(self, value):
        return state_of(value)

    def check(self, value, owner, sizes):
        return checked(getattr(owner, self.name), value)

    def write(self, owner, value):
        _resume(getattr(owner, self.name), value)


class Parts(Field):
    """A dictionary {name: object with ``FIELDS``}, whose names are those of the owner."""

    def read(self, value):
        return {name: state_of(part) for name, part in value.items()}

    def check(self, value, owner, sizes):
        parts = getattr(owner, self.name)
        if not isinstance(value, dict) or set(value) != set(parts):
            raise ValueError(f"{self.name} are not those of the parameters")
        return {name: checked(part, value[name]) for name, part in parts.items()}

    def write(self, owner, value):
        for name, part in getattr(owner, self.name).items():
            _resume(part, value[name])


class Inlined(Field):
    """Another object with ``FIELDS``, which stand among those of its owner; see above."""


# ---- The walk ----


def state_of(owner):
    """What an object keeps, {name: value}; nothing in it changes when the object learns on."""
    if not hasattr(owner, "FIELDS"):
        return owner.state()
    state = {}
    for prefix, part in _parts(owner):
        stored = part.stored() if hasattr(part, "stored") else {}
        for field in _kept(part):
            value = field.read(stored[field.name] if field.name in stored else field.get(part))
            if value is not None or not field.optional:
                state[prefix + field.name] = value
    return state


def checked(owner, state):
    """The values of a state, each valid and fitting the others; ValueError says what is not."""
    if not hasattr(owner, "FIELDS"):
        return state
    fields = {prefix + field.name: field for prefix, part in _parts(owner) for field in _kept(part)}
    optional = {name for name, field in fields.items() if field.optional}
    if not isinstance(state, dict) or not set(fields) - optional <= set(state) <= set(fields):
        raise ValueError(f"the state of {type(owner).__name__} has other parts than {list(fields)}")
    sizes, values = {}, {}
    for prefix, part in _parts(owner):
        own_sizes, own_values = sizes.setdefault(prefix, {}), values.setdefault(prefix, {})
        if hasattr(part, "sizes"):
            own_sizes.update(part.sizes(state))
        for field in _kept(part):
            own_values[field.name] = field.check(state.get(prefix + field.name), part, own_sizes)
    for prefix, part in _parts(owner):
        if hasattr(part, "fits"):
            part.fits(values[prefix])
    return {prefix + name: value for prefix, own_values in values.items() for name, value in own_values.items()}


def check_state(owner):
    """Assert what must always hold: an object like it, and each of its parts, could go on from what it keeps."""
    checked(owner, state_of(owner))
    for field in owner.FIELDS:
        if isinstance(field, (Part, Parts)) and field.is_kept(owner):
            parts = getattr(owner, field.name)
            for part in parts.values() if isinstance(field, Parts) else [parts]:
                if hasattr(part, "_check"):
                    part._check()


def restore(owner, state):
    """Go on from a state; ValueError, and nothing changed, if it cannot be one of this object."""
    _resume(owner, checked(owner, state))


def _resume(owner, values):
    if not hasattr(owner, "FIELDS"):
        owner.restore(values)
        return
    for prefix, part in _parts(owner):  # an owner comes before what is joined to it, which it may replace
        own_values = {name[len(prefix):]: value for name, value in values.items() if name.startswith(prefix)}
        if hasattr(part, "resume"):
            part.resume(own_values)
        else:
            assign(part, own_values)


def assign(owner, values):
    """Set what checked values are of: what `restore` does where a class has no ``resume`` of its own."""
    for field in owner.FIELDS:
        if field.name in values:
            field.write(owner, values[field.name])


def _parts(owner, prefix=""):
    """(prefix of names, object) of an object and of all that is joined to it."""
    yield prefix, owner
    for field in owner.FIELDS:
        if isinstance(field, Inlined):
            part = getattr(owner, field.name)
            yield from _parts(part, prefix + getattr(part, "prefix", ""))


def _kept(owner):
    """The fields of its own that an object has."""
    return [field for field in owner.FIELDS if not isinstance(field, Inlined) and field.is_kept(owner)]


def _size(size, owner, sizes):
    """The number that a size in a shape stands for; None if any is fine."""
    if callable(size):
        return size(owner, sizes)
    if not isinstance(size, str):
        return size
    return sizes[size] if size in sizes else getattr(owner, size, None)
