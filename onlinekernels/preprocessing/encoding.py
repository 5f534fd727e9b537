"""Encoding online: tables of numbers, words, dates and holes as rows of numbers, by what the stream has shown."""
from __future__ import annotations

import warnings
from collections import namedtuple
from typing import TYPE_CHECKING

import numpy as np

from onlinekernels.base import validation
from onlinekernels._core.errors import row_error
from onlinekernels._core.formulas.vectorized import all_finite
from onlinekernels._core.transforms import circle, fill
from onlinekernels.preprocessing.transforming import RunningTransformer
from onlinekernels.preprocessing.values import (
    DAY,
    NO_TIME,
    hash_of,
    instants_of,
    is_missing,
    kind_of,
    kind_of_array,
    numbers_of,
    slots_of,
    word_of,
)
from onlinekernels.base.validation import Table

if TYPE_CHECKING:
    from onlinekernels.annotations import Any, Array, Examples, Self, Sequence

__all__ = ["RunningEncoder"]

KINDS = ("number", "word", "date")
YEAR = 365.2425 * DAY
# Of so many words of a column, more different ones than this become hundreds, which is said.
VARIETY, DIFFERENT = 100, 80


class RunningEncoder(RunningTransformer):
    """Make rows of numbers of data frames, dictionaries, structured arrays, lists of mixed rows, arrays.

    Each row is encoded by what was known before it, and then learned. So nothing from the future is used, a row gets
    from `transform` just what it would get if it came next, and `partial_fit` of n rows gives what n calls of one row
    give, bit for bit. Memory is constant, and the columns that come out are the same from the first row on.

    The first row says what each column holds, and that decides what is made of it:

    - a number (also True, False, or a text that Python's `float` reads, such as "3.5" or "1e3"): the number;
    - a word (any other text, whatever pandas and polars call categories): `slots` columns of zeros and ones. Each new
      word has the next of them to itself, at once; when all are taken, the word's hash chooses which one it shares;
    - a date (datetime, date, datetime64, pandas' and polars' dates, or a text of ISO 8601 such as "2024-02-29",
      "2024-02-29T12:30+01:00" or a time of day, "14:05"): days since the first date, and a point on a circle for each
      of the `cycles`: its sine and cosine. With a time zone, in UTC;
    - what is missing (None, NaN, NaT, pandas' NA, an empty text) is filled: numbers by the mean so far (of two
      values, such as those of a truth value, by the nearer one), dates by the latest, a point on a circle by its
      middle, words by zeros. A further column of zeros and ones tells that it was missing, see `indicators`. A column
      whose first value is missing has all of the above, and is what its first value is.

    Numbers are not scaled: put a `RunningScaler` behind it, or ``scale=True``, which has a change of a column of
    zeros and ones count as much as that of a number, however rare it is.

    A word where a number or a date is expected counts as missing, with a warning; see `invalid_`. Numbers and dates in
    other forms (1.234,50, $12.40, 02/29/2024) are words: convert them, by ``pandas.to_numeric`` and
    ``pandas.to_datetime``, say. A warning names the column where words are so different that hundreds of them are to
    be expected. Numbers that are names of something are words as categories, ``frame.astype({"postcode":
    "category"})``, or with a letter before them.

    Parameters
    ----------
    slots : int
        Columns for the words of each column; at least 1.
    columns : list or None
        Names of all columns: of those of arrays and lists, and for dictionaries of which the first does not have all.
        Dictionaries may lack some, which is missing then.
    cycles : "all", a list of some of "day", "week", "year", or None
        What of a date is cyclic.
    indicators : "auto" or bool
        Whether a further column tells for each column that its value was missing. "auto" says no if the first row has
        nothing but numbers: these come out as they are, and only holes are filled.
    memory : float
        Weight of a value that is one example old in the means that fill holes, in (0, 1].

    {Attributes}

    Examples
    --------
    >>> encoder = RunningEncoder(slots=2, cycles=["year"])
    >>> rows = [{"day": "2024-01-01", "age": 30, "pet": "cat"}, {"age": None, "pet": "dog", "day": "2024-07-01"}]
    >>> for row in encoder.progressive(rows):
    ...     print(*row.round(2))
    0.0 0.0 1.0 0.0 30.0 0.0 1.0 0.0 0.0
    182.0 0.01 -1.0 0.0 30.0 1.0 0.0 1.0 0.0
    >>> print(*encoder.feature_names_out, sep=", ")
    day, day year sin, day year cos, day is missing, age, age is missing, pet=cat, pet=dog, pet is missing
    """

    def __init__(self, slots: int = 16, *, columns: Sequence[Any] | None = None, cycles: Any = "all",
                 indicators: bool | str = "auto", memory: float = 1.0) -> None:
        self.slots = slots
        self.columns = columns
        self.cycles = cycles
        self.indicators = indicators
        self.memory = memory

    # ---- Learning -----------------------------------------------------------------------------

    def fit(self, X: Examples, y: Any = None) -> Self:
        """Forget everything, then learn from X; return self."""
        with self._turn.alone:
            self._state = self._encoded(None, self._table(None, X), True)[0]
        return self

    def partial_fit(self, X: Examples, y: Any = None) -> Self:
        """Learn from some more rows; return self."""
        self._advance(X)
        return self

    def progressive(self, X: Examples) -> Any:
        """Learn from the rows one after another, and return each encoded by what was known before it."""
        return self._shown(X, self._advance(X))

    def learn_one(self, x: Any) -> Self:
        """Learn from one row: a dictionary, a list, a tuple, a 1-d array; return self."""
        self._advance([x])
        return self

    def _advance(self, X):
        with self._turn.alone:
            self._state, out = self._encoded(self._state, self._table(self._state, X), True)
        return out

    def advanced(self, X: Examples) -> Any:
        """(an encoder that has seen these rows as well, the rows as it encodes them); this one stays as it is."""
        fresh = RunningEncoder(self.slots, columns=self.columns, cycles=self.cycles, indicators=self.indicators,
                               memory=self.memory)  # in a tenth of the time of `get_params`
        fresh._state, out = self._encoded(self._state, self._table(self._state, X), True)
        return fresh, out

    def numbers_of_one(self, x: Any) -> Any:
        """x, an array or a dictionary, as a row of numbers that is encoded as it is; None if that takes a longer look."""
        state = self._state
        if state is None or not state.layout.is_plain:
            return None
        if type(x) is dict:
            if state.names is None or len(x) != len(state.names):
                return None
            values = [x.get(name) for name in state.names]
            return np.array(values, dtype=float) if _NUMBERS.issuperset(map(type, values)) else None
        if type(x) is not np.ndarray or x.ndim != 1 or x.dtype.kind not in "fiu":
            return None
        return x if x.dtype == float and x.flags.c_contiguous else np.ascontiguousarray(x, dtype=float)

    def after_one(self, row: Array) -> Any:
        """The encoder that has learned such a row as well."""
        state = self._attribute()
        mean, count, shown = state.mean.copy(), state.count.copy(), state.shown.copy()
        fill(row[None].copy(), mean, count, shown, np.full(len(row), state.memory), True)
        fresh = RunningEncoder.__new__(RunningEncoder)
        fresh.__dict__.update(self.__dict__)
        fresh._state = state._replace(mean=mean, count=count, shown=shown, rows=state.rows + 1)
        return fresh

    # ---- Encoding -----------------------------------------------------------------------------

    def transform(self, X: Examples) -> Any:
        """X encoded by what is known now."""
        return self._shown(X, self.encoded(X))

    def encoded(self, X: Examples) -> Any:
        """`transform`, as an array whatever `set_output` says."""
        state = self._fitted()
        return self._encoded(state, self._table(state, X), False)[1]

    def transform_one(self, x: Any) -> Array:
        """One row encoded by what is known now, 1-d."""
        return self.encoded([x])[0]

    def table(self, X: Examples) -> Any:
        """X as columns in the order of this encoder, which its other methods take, too; slices of it are tables."""
        return self._table(self._state, X)

    def _table(self, state, X):
        if state is None:
            names = self.columns
            if names is not None:
                if not isinstance(names, (list, tuple)) or not names or len(set(names)) < len(names):
                    raise validation.bad_parameter(self, "columns", "a list of different names, or None", names)
                names = tuple(names)
            table = X if isinstance(X, Table) else Table.of(X, names)
            return table if names is None else table.in_order(names, len(names), type(self).__name__).called(names)
        table = X if isinstance(X, Table) else Table.of(X, state.names)
        return table.in_order(state.names, len(state.kinds), type(self).__name__)

    def _first_state(self, table):
        """What is known before the first row of a stream, by what kind of values this has."""
        slots, memory = validation.check_count(self, "slots"), validation.check_share(self, "memory")
        is_all = isinstance(self.cycles, str) and self.cycles == "all"
        cycles = tuple(_ELAPSED) if is_all else () if self.cycles is None else self.cycles
        if not isinstance(cycles, (list, tuple)) or self.cycles == [] or not all(cycle in _ELAPSED for cycle in cycles):
            expected = f"'all', a list of some of {', '.join(map(repr, _ELAPSED))}, or None"
            raise validation.bad_parameter(self, "cycles", expected, self.cycles)
        if not isinstance(self.indicators, (bool, np.bool_)) and not (
            isinstance(self.indicators, str) and self.indicators == "auto"
        ):
            raise validation.bad_parameter(self, "indicators", "True, False or 'auto'", self.indicators)
        shown = [_first_kind(table, j, 1) for j in range(len(table.columns))]
        kinds = tuple(
            "word" if j in table.categories else kind_of_array(column) or kind
            for j, (column, kind) in enumerate(zip(table.columns, shown, strict=True))
        )
        indicators = bool(self.indicators)
        if isinstance(self.indicators, str):
            indicators = None in shown or any(kind != "number" for kind in kinds)
        n = len(kinds)
        layout = Layout(kinds, slots, tuple(dict.fromkeys(cycles)), indicators)
        # Nothing is said of the variety of what is called categories.
        variety = tuple((VARIETY,) if j in table.categories else (0,) for j in range(n))
        return State(table.names, kinds, layout, memory, ({},) * n, variety, (None,) * n, mean=np.zeros(n),
                     count=np.zeros(n), shown=np.full((2, n), np.inf), odd=(0,) * n, rows=0)

    def _encoded(self, state, table, learns):
        """(the state after the rows of a table, or the same if it does not learn; these rows encoded)."""
        state = self._first_state(table) if state is None else state
        kinds = state.kinds
        if None in kinds:
            kinds = tuple(_first_kind(table, j, len(table)) if kind is None else kind for j, kind in enumerate(kinds))
            if kinds != state.kinds and not learns and len(table) > 1:  # each row says for itself what a column is
                rows = (table[i : i + 1] for i in range(len(table)))
                return state, np.concatenate([self._encoded(state, row, False)[1] for row in rows])
        layout, n, values = state.layout, len(table), np.full((len(table), len(kinds)), np.nan)
        words, variety, origins, odd = map(list, (state.words, state.variety, state.origins, state.odd))
        out = np.zeros((n, layout.width)) if layout.width > len(kinds) or layout.words else values
        for j, (kind, column) in enumerate(zip(kinds, table.columns, strict=True)):
            invalid = []
            if kind == "word":
                slots, words[j] = _located(lambda column: slots_of(column, words[j], layout.slots, learns), table, j)
                missing = slots < 0
                rows = np.flatnonzero(~missing)
                out[rows, layout.words[j] + slots[rows]] = 1.0
                if learns and state.variety[j][0] < VARIETY:
                    variety[j] = _variety_after(state, j, column, rows)
            elif kind == "date":
                instants, invalid = _located(instants_of, table, j)
                circles = out[:, layout.circles[j] :]
                origins[j] = _write_dates(instants, origins[j], layout.cycles, values[:, j], circles)
                missing = instants == NO_TIME
            elif kind == "number":
                values[:, j], invalid = _located(numbers_of, table, j)
                missing = np.isnan(values[:, j])
            else:
                missing = np.ones(n, dtype=bool)
            if invalid and learns:
                if odd[j] == 0:
                    _warn_of_invalid(state, j, kind, invalid[0], column[invalid[0]])
                odd[j] += len(invalid)
            if layout.missing:
                out[:, layout.missing[j]] = missing
        _check_finite(values, state)
        mean, count, shown = state.mean, state.count, state.shown
        if learns:
            mean, count, shown = mean.copy(), count.copy(), shown.copy()
        memory = np.array([0.0 if kind == "date" else state.memory for kind in kinds])  # of dates, the latest
        fill(values, mean, count, shown, memory, learns)
        if out is not values:
            out[:, layout.places] = values[:, layout.numbers]
        if learns:
            state = state._replace(kinds=kinds, words=tuple(words), variety=tuple(variety), origins=tuple(origins),
                                   mean=mean, count=count, shown=shown, odd=tuple(odd), rows=state.rows + n)
        return state, out

    # ---- What can be seen ---------------------------------------------------------------------

    @property
    def feature_names_out(self) -> Any:
        """What each column that comes out is, as of now: slots that no word has yet have a number, as in ``pet#3``."""
        return self.get_feature_names_out().tolist()

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> Array:
        """The names of the columns that come out, as an array; `input_features` are those of nameless columns."""
        state = self._fitted()
        if input_features is not None:
            expected = input_features if state.names is None else state.names
            if len(input_features) != len(state.kinds) or set(input_features) != set(expected):
                raise ValueError("input_features should have the names of the first rows' columns. Got others instead.")
            state = state._replace(names=tuple(input_features)) if state.names is None else state
        return np.array(state.names_out(), dtype=object)

    def columns_of(self, values: Any) -> Any:
        """{column: (indices of its parts, values there)} of an encoded row of means; of words the most frequent."""
        state = self._attribute()
        layout, values = state.layout, np.array(values, dtype=float)
        for begin in layout.words.values():
            slots = slice(begin, begin + layout.slots)
            values[slots] = np.arange(layout.slots) == values[slots].argmax()
        places = (np.flatnonzero(layout.owners == j) for j in range(len(state.kinds)))
        return {state.name(j): (found, values[found]) for j, found in enumerate(places)}

    def places_of_time(self) -> Any:
        """Where encoded rows have what of a date hardly changes for days: days since the first, week and year."""
        state = self._attribute()
        layout, found = state.layout, []
        for j in (j for j, kind in enumerate(state.kinds) if kind == "date"):
            found.append(int(layout.places[layout.numbers == j][0]))
            for i in (i for i, cycle in enumerate(layout.cycles) if cycle != "day"):
                found += [layout.circles[j] + 2 * i, layout.circles[j] + 2 * i + 1]
        return found

    @property
    def kinds_(self) -> Any:
        """{column: what it holds}; None for those of which nothing has come yet."""
        state = self._attribute()
        return {state.name(j): kind for j, kind in enumerate(state.kinds)}

    @property
    def categories_(self) -> Any:
        """{column: words that have a slot to themselves, in order} of the columns with words."""
        state = self._attribute()
        return {state.name(j): list(state.words[j]) for j, kind in enumerate(state.kinds) if kind == "word"}

    @property
    def means_(self) -> Any:
        """{column: the mean so far} of numbers; the latest of dates, in days since the first."""
        state = self._attribute()
        return {state.name(j): float(state.mean[j]) for j, kind in enumerate(state.kinds) if kind in ("number", "date")}

    @property
    def invalid_(self) -> Any:
        """{column: how many values were no numbers or dates although it is a column of these}, where there are any."""
        state = self._attribute()
        return {state.name(j): count for j, count in enumerate(state.odd) if count}

    @property
    def count_(self) -> Any:
        """Number of rows that it has learned from."""
        return self._attribute().rows

    @property
    def n_features_in_(self) -> int:
        """Number of columns that come in."""
        return len(self._attribute().kinds)

    @property
    def n_features_out_(self) -> int:
        """Number of columns that come out."""
        return self._attribute().layout.width

    @property
    def feature_names_in_(self) -> Any:
        """Names of the columns, if what came first had names."""
        if self._attribute().names is None:
            raise AttributeError("feature_names_in_ exists only after rows with names.")
        return np.array(self._attribute().names, dtype=object)

    # ---- Protocols ----------------------------------------------------------------------------

    def to_dict(self) -> Any:
        """What is learned, as plain numbers, words and lists; None before the first row."""
        return None if self._state is None else self._state.plain()

    def restore(self, learned: Any) -> Any:
        """Continue from what `to_dict` gave; ValueError if its parts do not fit each other."""
        self._state = None if learned is None else State.restored(learned)

    def __getstate__(self):
        return {**super().__getstate__(), "_state": self.to_dict()}

    def __setstate__(self, state):
        state = dict(state)
        learned = state.pop("_state")
        self.__dict__.update(state)
        self.restore(learned)

    def __sklearn_tags__(self):
        """What scikit-learn wants to know; it is imported only when it asks."""
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=False),
            transformer_tags=TransformerTags(),
            input_tags=InputTags(string=True, categorical=True, allow_nan=True, dict=True),
        )


def as_encoder(value, owner, name="encode"):
    """The encoder that a user asks for, that has seen nothing: False, True or a RunningEncoder; None for none."""
    if isinstance(value, (bool, np.bool_)):
        return RunningEncoder() if value else None
    if not isinstance(value, RunningEncoder):
        raise validation.bad_parameter(owner, name, "True, False or a RunningEncoder", value)
    return RunningEncoder(**value.get_params(deep=False))


# ---- What it knows --------------------------------------------------------------------------------


_NUMBERS = frozenset((float, int, np.float64))


class State(namedtuple("State", "names kinds layout memory words variety origins mean count shown odd rows")):
    """What an encoder has learned, with an entry for each column in tuples and arrays; never changed, only replaced.

    names       of the columns, or None
    kinds       "number", "word", "date", or None as long as nothing has come
    layout      where in a row each part of each column is
    memory      parameter, as of the first row
    words       {word: its slot}
    variety     how many words have come, up to `VARIETY`, and before that the hashes of the different ones among them
    origins     the first date, in microseconds since 1970, or None
    mean, count, shown
                of the numbers so far, see the core
    odd         how many values were not of the kind of their column
    rows        learned from so far
    """

    def name(self, j):
        """What column j is called."""
        return f"x{j}" if self.names is None else self.names[j]

    def names_out(self):
        """What each column that comes out is, as of now."""
        layout, names = self.layout, [""] * self.layout.width
        for j, place in zip(layout.numbers, layout.places, strict=True):
            names[place] = f"{self.name(j)}"
        for j, begin in layout.words.items():
            names[begin : begin + layout.slots] = [f"{self.name(j)}#{slot}" for slot in range(layout.slots)]
            for word, slot in self.words[j].items():
                names[begin + slot] = f"{self.name(j)}={word}"
        for j, begin in layout.circles.items():
            parts = [f"{self.name(j)} {cycle} {part}" for cycle in layout.cycles for part in ("sin", "cos")]
            names[begin : begin + len(parts)] = parts
        for j, place in enumerate(layout.missing):
            names[place] = f"{self.name(j)} is missing"
        return names

    def plain(self):
        """All of it as plain numbers, words and lists."""
        plain, layout = self._asdict(), self.layout
        plain.update({name: list(plain[name]) for name in ("kinds", "origins", "odd")})
        plain.update(names=None if self.names is None else list(self.names))
        plain.update(words=[list(words) for words in self.words], variety=[list(variety) for variety in self.variety])
        plain.update(mean=self.mean.tolist(), count=self.count.tolist())
        plain["layout"] = {"kinds": list(layout.kinds), "slots": layout.slots, "cycles": list(layout.cycles),
                           "indicators": bool(layout.missing)}
        # whether at most two values were shown, and these; infinite before the first is None
        plain["shown"] = [
            [None if np.isinf(v) else "many" if np.isnan(v) else v for v in row] for row in self.shown.tolist()
        ]
        return plain

    @classmethod
    def restored(cls, learned):
        """What `plain` described; ValueError if its parts do not fit each other."""
        if not isinstance(learned, dict) or set(learned) != set(cls._fields):
            raise ValueError("the encoder lacks a part")
        layout, n, rows, names = learned["layout"], len(learned["kinds"]), learned["rows"], learned["names"]
        if not isinstance(layout, dict) or set(layout) != {"kinds", "slots", "cycles", "indicators"}:
            raise ValueError("the layout of the encoder lacks a part")
        lists = [layout["kinds"], *(learned[name] for name in ("words", "variety", "origins", "mean", "count", "odd"))]
        if not n or any(len(values) != n for values in lists) or [len(row) for row in learned["shown"]] != [n, n]:
            raise ValueError("the parts of the encoder do not fit its columns")
        for number in (layout["slots"], rows, *learned["odd"], *(origin or 0 for origin in learned["origins"])):
            if type(number) is not int or abs(number) >= 2**63:
                raise ValueError("the encoder's counts are not whole numbers")
        for before, kind in zip(layout["kinds"], learned["kinds"], strict=True):
            if kind not in (None, *KINDS) or before not in (None, kind):
                raise ValueError("the encoder's columns are of no kind that there is")
        is_sound = 1 <= layout["slots"] <= 2**20 and rows >= 1 and min(learned["odd"]) >= 0
        is_sound = is_sound and isinstance(layout["indicators"], bool) and set(layout["cycles"]) <= set(_ELAPSED)
        is_sound = is_sound and (names is None or len(set(names)) == len(names) == n)
        for words in learned["words"]:
            is_sound = is_sound and len(words) == len(set(words)) <= layout["slots"]
            is_sound = is_sound and all(isinstance(word, str) for word in words)
        for count, *hashes in learned["variety"]:
            is_sound = is_sound and all(type(number) is int and 0 <= number < 2**32 for number in (count, *hashes))
            is_sound = is_sound and len(set(hashes)) == len(hashes) <= count <= VARIETY
            is_sound = is_sound and (count < VARIETY or not hashes)
        mean, count = np.array(learned["mean"], dtype=float), np.array(learned["count"], dtype=float)
        special = {None: np.inf, "many": np.nan}
        shown = np.array([[special.get(v, v) for v in row] for row in learned["shown"]])
        memory = learned["memory"]
        is_sound = is_sound and np.isfinite(mean).all() and (0.0 <= count).all() and (count <= rows).all()
        if not is_sound or not isinstance(memory, float) or not 0.0 < memory <= 1.0 or shown.dtype != float:
            raise ValueError("what the encoder has seen is out of bounds")
        layout = Layout(tuple(layout["kinds"]), layout["slots"], tuple(layout["cycles"]), layout["indicators"])
        parts = {name: tuple(learned[name]) for name in ("kinds", "origins", "odd")}
        words = tuple({word: slot for slot, word in enumerate(words)} for words in learned["words"])
        parts.update(names=None if names is None else tuple(names), variety=tuple(map(tuple, learned["variety"])))
        parts.update(layout=layout, words=words, mean=mean, count=count, shown=shown)
        return cls(**{**learned, **parts})


class Layout:
    """Where in an encoded row each part of each column is.

    Attributes
    ----------
    kinds : tuple
        What the columns were when the first row came; None has room for all.
    slots, cycles
        Parameters, as of the first row.
    numbers, places : arrays of int
        Columns that have a number, and where it is.
    words, circles : dict of int to int
        Where the slots, and the points on circles, of a column begin.
    missing : list of int
        Where it is told that a column was missing, if it is.
    owners : array of int
        The column that each place belongs to.
    width : int
    """

    def __init__(self, kinds, slots, cycles, indicators):
        self.kinds, self.slots, self.cycles = kinds, slots, cycles
        numbers, places, owners, self.words, self.circles, self.missing, at = [], [], [], {}, {}, [], 0
        for j, kind in enumerate(kinds):
            if kind != "word":
                numbers.append(j)
                places.append(at)
                at += 1
            if kind in ("date", None):
                self.circles[j] = at
                at += 2 * len(cycles)
            if kind in ("word", None):
                self.words[j] = at
                at += slots
            if indicators:
                self.missing.append(at)
                at += 1
            owners += [j] * (at - len(owners))
        self.is_plain = all(kind == "number" for kind in kinds) and not indicators
        self.owners = np.array(owners, dtype=np.intp)
        self.numbers, self.places, self.width = np.array(numbers, dtype=np.intp), np.array(places, dtype=np.intp), at


# ---- The parts of encoding ------------------------------------------------------------------------


def _first_kind(table, j, rows):
    """What the first value of a column is that is not missing among so many rows; None without one."""
    def first(column):
        found = (None if is_missing(value) else kind_of_array(column) or kind_of(value) for value in column[:rows])
        return next((kind for kind in found if kind is not None), None)

    return _located(first, table, j)


def _located(read, table, j):
    """What `read` makes of column j; its TypeErrors say where in the table the value is."""
    column = table.columns[j]
    try:
        return read(column)
    except TypeError as error:
        name = j if table.names is None else table.names[j]
        for row, value in enumerate(column):
            try:
                kind_of(value)
            except TypeError as found:
                raise row_error(TypeError, row, f", column {name!r}: {found}.") from error
        raise


def _write_dates(instants, origin, cycles, days, circles):
    """Write days since the first date, and points on circles; return the first date, if there is one by now."""
    there = instants != NO_TIME
    if not there.any():
        return origin
    origin = int(instants[np.argmax(there)]) if origin is None else origin
    days[there] = (instants[there] - origin) / DAY
    for k, cycle in enumerate(cycles):
        elapsed, period = _ELAPSED[cycle](instants)
        circle(np.where(there, elapsed, -1), period, circles[:, 2 * k : 2 * k + 2])
    return origin


def _since_new_year(instants):
    """(microseconds since the year began, how long a year is)."""
    years = instants.astype("M8[us]").astype("M8[Y]").astype("M8[us]").astype(np.int64)
    return instants - years, YEAR


_ELAPSED = {
    "day": lambda instants: (instants % DAY, DAY),
    "week": lambda instants: ((instants - 4 * DAY) % (7 * DAY), 7 * DAY),  # since Monday; 1970 began on a Thursday
    "year": _since_new_year,
}


def _check_finite(values, state):
    if not all_finite(values) and np.isinf(values).any():
        row, column = (int(place) for place in np.argwhere(np.isinf(values))[0])
        raise row_error(
            ValueError,
            row,
            f", column {state.name(column)!r}: expected a finite number. Input contains infinity, or a value too large "
            "for float64.",
        )


_CONVERT = {"number": "pandas.to_numeric", "date": "pandas.to_datetime"}


def _warn_of_invalid(state, j, kind, row, value):
    """Warn of the first value of a column that is not of its kind."""
    warnings.warn(UserWarning(
        f"Row {row} of X, column {state.name(j)!r}: expected a {kind}, as in the rows before. Got {value!r}, which "
        f"counts as missing, as do others like it (invalid_ counts them). {_CONVERT[kind]} reads other forms of {kind}s; "
        "where they are names of something, make the column one of categories."), stacklevel=2)


def _variety_after(state, j, column, rows):
    """The `variety` of column j after these rows of it, which have words; warn where few of the words came again."""
    count, *hashes = state.variety[j]
    rows = rows[: VARIETY - count].tolist()
    hashes = sorted({*hashes, *(hash_of(word_of(column[row])) for row in rows)})
    count += len(rows)
    if count < VARIETY:
        return (count, *hashes)
    if len(hashes) > max(DIFFERENT, state.layout.slots):
        warnings.warn(UserWarning(
            f"Column {state.name(j)!r}: {len(hashes)} of its first {VARIETY} texts are different, such as "
            f"{column[rows[-1]]!r}, and become hundreds of categories that share {state.layout.slots} columns, which "
            "says little of them. If they are numbers or dates, convert them with pandas.to_numeric or "
            "pandas.to_datetime; if they name rows, leave the column out."), stacklevel=2)
    return (VARIETY,)
