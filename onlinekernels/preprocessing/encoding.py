"""Encoding online: tables of numbers, categories, dates and missing values as rows of numbers."""
from __future__ import annotations

import warnings
from collections import namedtuple
from typing import TYPE_CHECKING

import numpy as np

from onlinekernels._core.errors import row_error
from onlinekernels._core.formulas.vectorized import all_finite
from onlinekernels._core.transforms import category_means, circle, fill, surprises
from onlinekernels.base import validation
from onlinekernels.preprocessing.transforming import RunningTransformer
from onlinekernels.preprocessing.values import (
    DAY, instants_of, kind_of_array, NO_TIME, numbers_of, read, slot_of, slots_of, Table,
)

if TYPE_CHECKING:
    from onlinekernels.annotations import Any, Array, Examples, Self, Sequence

KINDS = ("number", "category", "date")
YEAR = 365.2425 * DAY
# A column whose first VARIETY texts have more than DIFFERENT different ones would become hundreds of categories.
VARIETY, DIFFERENT = 100, 80
MEANS = 3  # columns at most for the means of targets of each category
REMEMBERED = 2000  # categories of a column that have means


class RunningEncoder(RunningTransformer):
    """Encode data frames, dictionaries, lists of mixed rows and arrays as rows of numbers.

    Each row is encoded by what was known before it, and then learned: nothing from the future is used, `transform`
    gives a row what it would get if it came next, and `partial_fit` of n rows gives what n calls of one row give, bit
    for bit. Memory is constant, and the encoded columns are the same from the first row on.

    The first value of a column decides its kind:

    - a number (also True, False, or a text that Python's `float` reads, such as "3.5" or "1e3") is the number;
    - a category (any other text, and what pandas and polars call categories) is one of `slots` columns of zeros and
      ones. Each new category has the next of them to itself; when all are taken, a hash chooses which one it shares.
      Where there are three slots or more, the second category has its own from the third on: two are one column. In a
      model, a column with more categories than slots also has the mean of the targets of each category in the rows
      before, shrunk to that of all: above the mean of all, in units of their deviation, and clipped; all rows count
      or late ones, whichever has been nearer. Of classes it is how frequent they were, the first class left out and up
      to three others told apart; of several numbers there are three;
    - a date (datetime, date, datetime64, pandas' and polars' dates, or a text of ISO 8601 such as "2024-02-29",
      "2024-02-29T12:30+01:00" or a time of day, "14:05") is the days since the first date, and a point on a circle for
      each of the `cycles`: its sine and cosine. With a time zone, in UTC;
    - what is missing (None, NaN, NaT, pandas' NA, an empty text) is filled: numbers by the mean so far (of two values,
      such as those of a truth value, by the nearer one), dates by the latest, a point on a circle by its middle,
      categories by zeros. A further column of zeros and ones tells that it was missing, see `indicators`. A column
      whose first value is missing has all of the above.

    Numbers are not scaled: put a `RunningScaler` behind it, or ``scale=True``, which has a change of a column of
    zeros and ones count as much as that of a number, however rare it is.

    A value of another kind counts as missing, with a warning; see `invalid_`. Numbers and dates in other forms
    (1.234,50, $12.40, 02/29/2024) are categories: convert them, by ``pandas.to_numeric`` and ``pandas.to_datetime``,
    say. A warning names a column whose texts would become hundreds of categories. Numbers that are names of something
    are categories if you say so, ``frame.astype({"postcode": "category"})``, or put a letter before them.

    Parameters
    ----------
    slots : int
        Columns for the categories of each column; at least 1.
    columns : list or None
        Names of all columns: of those of arrays and lists, and for dictionaries of which the first does not have all.
        Dictionaries may lack some, which are missing then. Names beside these are ignored, with a warning while
        learning; to a model with weights, or with a kernel that you name and that new columns of zeros do not change,
        they are columns that join.
    cycles : "all", a list of some of "day", "week", "year", or None
        What of a date is cyclic.
    indicators : "auto" or bool
        Whether a further column tells for each column that its value was missing. "auto" says no if the first row has
        nothing but numbers: these come out as they are, and only holes are filled.

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
                 indicators: bool | str = "auto") -> None:
        self.slots = slots
        self.columns = columns
        self.cycles = cycles
        self.indicators = indicators

    _means = 0  # number of columns for the means of targets
    _ignored: frozenset[Any] = frozenset()  # names of columns that there have been warnings of

    # ---- Learning ---------------------------------------------------------------------------------------------------

    def learn_one(self, x: Any) -> Self:
        """Learn from one row: a dictionary, a list, a tuple, a 1-d array; return self."""
        self._advance([x], False)
        return self

    def _advance(self, X, wanted):
        with self._lock.alone:
            block = self.open(X)
            block.commit()
        return block.rows

    def open(self, X: Examples, grows: bool = False) -> Any:
        """Encode rows that may be learned, each by what is known before it: a `Block`, whose `commit` learns them.

        If the model behind it `grows`, columns join that dictionaries have from some row on.
        """
        table = self._table(X)
        state = self._first_state(table) if self._state is None else self._state
        unknown = [] if grows else [name for name in table.new if name not in self._ignored]
        if unknown and len(self._ignored) < VARIETY:  # a warning of each new name, while they are few
            self._ignored = self._ignored.union(unknown)
            warnings.warn(UserWarning(
                f"The columns {', '.join(map(repr, unknown))} are new after the first row and ignored: name all "
                "columns in RunningEncoder(columns=...), or give them in the first row."), stacklevel=2)
        return Block(self, state, table, table.new if grows else {})

    def open_one(self, x: Any, learns: bool = True) -> Any:
        """The same for one row, an array, list or dictionary; None if it needs a longer look, as most first rows do."""
        try:
            return None if self._state is None else Block.of_one(self, self._state, x, learns)
        except OverflowError:  # a whole number that is no float
            return None

    # ---- Encoding ---------------------------------------------------------------------------------------------------

    def encoded(self, X: Examples) -> Any:
        """`transform`, as an array whatever `set_output` says."""
        with self._lock.shared:
            state = self._fitted()
            return encoded(state, self._table(X))

    _transformed = encoded

    def transform_one(self, x: Any) -> Array:
        """One row encoded by what is known now, 1-d."""
        return self.encoded([x])[0]

    def _table(self, X):
        """X as columns in the order of the first rows."""
        state, owner = self._state, type(self).__name__
        if state is not None:
            return Table.of(X, state.names).in_order(state.names, len(state.kinds), owner)
        names = self.columns
        if names is None:
            return Table.of(X)
        if not isinstance(names, (list, tuple)) or not names or len(set(names)) < len(names):
            raise validation.bad_parameter(self, "columns", "a list of different names, or None", names)
        table = Table.of(X, tuple(names)).in_order(tuple(names), len(names), owner)
        table.names = tuple(names)
        return table

    def _first_state(self, table):
        """The state before the first row of a stream, whose values decide the kinds of the columns."""
        slots, cycles = validation.check_count(self, "slots"), self.cycles
        cycles = list(_ELAPSED) if isinstance(cycles, str) and cycles == "all" else () if cycles is None else cycles
        if not isinstance(cycles, (list, tuple)) or self.cycles == [] or not all(cycle in _ELAPSED for cycle in cycles):
            expected = f"'all', a list of some of {', '.join(map(repr, _ELAPSED))}, or None"
            raise validation.bad_parameter(self, "cycles", expected, self.cycles)
        is_auto = isinstance(self.indicators, str) and self.indicators == "auto"
        if not is_auto and not isinstance(self.indicators, (bool, np.bool_)):
            raise validation.bad_parameter(self, "indicators", "True, False or 'auto'", self.indicators)
        n = len(table.columns)
        first = [_first_kind(table, j, 1)[0] for j in range(n)]
        kinds = tuple("category" if j in table.categories else kind_of_array(table.columns[j]) or first[j]
                      for j in range(n))
        indicators = None in first or set(kinds) != {"number"} if is_auto else bool(self.indicators)
        # There is no warning of the variety of what is called categories.
        seen = tuple(VARIETY if j in table.categories else 0 for j in range(n))
        statistics = np.zeros((4, n))
        statistics[2:] = np.inf
        means = self._means if set(kinds) & {"category", None} else 0
        return State(table.names, kinds, Layout(kinds, slots, tuple(dict.fromkeys(cycles)), indicators, means),
                     tuple({} for _ in kinds), seen, (None,) * n, statistics, (0,) * n, 0, np.zeros((3, means)),
                     tuple(_no_means(means) for _ in kinds))

    # ---- Fitted attributes ------------------------------------------------------------------------------------------

    @property
    def feature_names_out(self) -> Any:
        """Names of the encoded columns: slots that no category has yet have a number, as in ``pet#3``."""
        return self.get_feature_names_out().tolist()

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> Array:
        """The names of the encoded columns, as an array; `input_features` are those of nameless columns."""
        state = self._fitted()
        if input_features is not None:
            expected = input_features if state.names is None else state.names
            if len(input_features) != len(state.kinds) or set(input_features) != set(expected):
                raise ValueError("input_features should have the names of the first rows' columns. Got others instead.")
            state = state._replace(names=tuple(input_features)) if state.names is None else state
        return np.array(state.names_out(), dtype=object)

    def columns_of(self, values: Any) -> Any:
        """{column: (indices of its parts, values there)} of an encoded row of means; the most frequent category."""
        state = self._attribute()
        layout, values = state.layout, np.array(values, dtype=float)
        for j, begin in layout.categories.items():
            slots = slice(begin, begin + layout.slots)
            is_second = len(state.codes[j]) == 2 and layout.slots > 2 and values[begin] < 0.5
            values[slots] = 0.0 if is_second else np.arange(layout.slots) == values[slots].argmax()
        parts = (np.flatnonzero(layout.owners == j) for j in range(len(state.kinds)))
        return {state.name(j): (found, values[found]) for j, found in enumerate(parts)}

    def summed(self, values: Any) -> Any:
        """{column: sum over its parts} of one value for each encoded column."""
        state = self._attribute()
        sums = np.bincount(state.layout.owners, values, len(state.kinds)).tolist()
        return {state.name(j): value for j, value in enumerate(sums)}

    def slow_columns(self) -> Any:
        """Encoded columns in which dates hardly change for days."""
        return [] if self._state is None else self._state.layout.slow_columns(self._state.kinds)

    def _by_column(self, values, *kinds):
        """{column: its value}, of the columns of some kinds."""
        state = self._attribute()
        return {state.name(j): value for j, value in enumerate(values(state)) if not kinds or state.kinds[j] in kinds}

    @property
    def kinds_(self) -> Any:
        """{column: "number", "category" or "date"}; None for those without a value yet."""
        return self._by_column(lambda state: state.kinds)

    @property
    def categories_(self) -> Any:
        """{column: categories that have a slot to themselves, in order}."""
        return self._by_column(lambda state: [list(codes)[: state.layout.slots] for codes in state.codes], "category")

    @property
    def means_(self) -> Any:
        """{column: the mean so far} of numbers; the latest of dates, in days since the first."""
        return self._by_column(lambda state: state.statistics[0].tolist(), "number", "date")

    @property
    def invalid_(self) -> Any:
        """{column: number of values that were not of its kind and count as missing}, where there are any."""
        return {name: count for name, count in self._by_column(lambda state: state.invalid).items() if count}

    @property
    def count_(self) -> Any:
        """Number of rows that it has learned from."""
        return self._attribute().rows

    @property
    def n_features_in_(self) -> int:
        """Number of columns before encoding."""
        return len(self._attribute().kinds)

    @property
    def n_features_out_(self) -> int:
        """Number of encoded columns."""
        return self._attribute().layout.width

    @property
    def feature_names_in_(self) -> Any:
        """Names of the columns, if the first rows had names."""
        if self._attribute().names is None:
            raise AttributeError("feature_names_in_ exists only after rows with names.")
        return np.array(self._attribute().names, dtype=object)

    # ---- Protocols --------------------------------------------------------------------------------------------------

    def copy(self) -> Any:
        """An encoder that knows the same and learns for itself."""
        twin = RunningEncoder(**self.get_params(deep=False))
        if self._state is not None:
            state = self._state
            twin._state = state._replace(codes=tuple(map(dict, state.codes)), means=tuple(map(np.copy, state.means)))
        return twin

    def to_dict(self) -> Any:
        """The state as plain numbers, texts and lists; None before the first row."""
        return None if self._state is None else self._state.plain()

    def restore(self, learned: Any) -> Any:
        """Continue from what `to_dict` gave; ValueError if its parts do not fit each other."""
        self._state = None if learned is None else State.restored(learned)

    def __getstate__(self):
        with self._lock:
            return {**super().__getstate__(), "_state": self.to_dict()}

    def __setstate__(self, state):
        super().__setstate__({**state, "_state": None})
        self.restore(state["_state"])

    def __sklearn_tags__(self):
        return self._tags(string=True, categorical=True, allow_nan=True, dict=True)


def as_encoder(value, owner, means=0):
    """A new encoder of the kind that a user asks for: False, True or a RunningEncoder; None for none.

    It has so many columns for the `means` of targets of each category.
    """
    if not isinstance(value, (bool, np.bool_, RunningEncoder)):
        raise validation.bad_parameter(owner, "encode", "True, False or a RunningEncoder", value)
    if not value and not isinstance(value, RunningEncoder):
        return None
    encoder = RunningEncoder(**(value.get_params(deep=False) if isinstance(value, RunningEncoder) else {}))
    encoder._means = means
    return encoder


def _no_means(columns):
    """What is known of the targets of no categories: see `category_means`."""
    return np.zeros((1, 1 + 2 * columns))


# ---- State ----------------------------------------------------------------------------------------------------------


_NUMBERS = frozenset((float, int, np.float64))


class State(namedtuple("State", "names kinds layout codes seen origins statistics invalid rows overall means")):
    """What an encoder has learned, with an entry for each column. It is replaced; `codes` and `means` change in place.

    names       of the columns, or None
    kinds       of `KINDS`, or None before the first value
    layout      which encoded columns each column has
    codes       {category: its code, in order of appearance}, of the first categories
    seen        number of values of categories, up to `VARIETY`
    origins     the first date, in microseconds since 1970, or None
    statistics  means, counts, and two rows with the values of columns that have had one or two, see `fill`
    invalid     number of values that were not of the kind of their column
    rows        number of rows
    overall     number, mean and variance of late targets, see `surprises`
    means       what is known of the targets of each category, with spare rows at the end, see `category_means`
    """

    def name(self, j):
        """The name of column j."""
        return f"x{j}" if self.names is None else self.names[j]

    def grown(self, new):
        """The same with columns that were missing until now, {name: (first row that has it, values)}."""
        layout, n = self.layout, len(new)
        kinds = tuple(read(values[row])[0] for row, values in new.values())
        statistics = np.hstack([self.statistics, np.repeat([[0.0], [0.0], [np.inf], [np.inf]], n, axis=1)])
        return self._replace(
            names=(*self.names, *new), kinds=self.kinds + kinds,
            layout=Layout(layout.kinds + kinds, layout.slots, layout.cycles, layout.indicators, layout.means),
            codes=(*self.codes, *({} for _ in new)), seen=self.seen + (0,) * n, origins=self.origins + (None,) * n,
            statistics=statistics, invalid=self.invalid + (0,) * n,
            means=(*self.means, *(_no_means(layout.means) for _ in new)))

    def limit(self):
        """Number of categories of a column that are remembered."""
        return max(self.layout.slots, REMEMBERED if self.layout.means else VARIETY)

    def names_out(self):
        """The names of the encoded columns."""
        layout, names = self.layout, [""] * self.layout.width
        for j, place in zip(layout.numbers, layout.places, strict=True):
            names[place] = f"{self.name(j)}"
        for j, begin in layout.categories.items():
            taken = [f"={category}" for category in self.codes[j]]
            free = [f"#{slot}" for slot in range(len(taken), layout.slots)]
            means = [" mean" if layout.means == 1 else f" mean {k}" for k in range(layout.means)]
            parts = (taken + free)[: layout.slots] + means
            names[begin : begin + len(parts)] = [f"{self.name(j)}{part}" for part in parts]
        for j, begin in layout.circles.items():
            parts = [f"{self.name(j)} {cycle} {part}" for cycle in layout.cycles for part in ("sin", "cos")]
            names[begin : begin + len(parts)] = parts
        for j, place in enumerate(layout.missing):
            names[place] = f"{self.name(j)} is missing"
        return names

    def plain(self):
        """All of it as plain numbers, texts and lists."""
        special = {np.inf: None}
        shown = [[special.get(v, v) if v == v else "many" for v in row] for row in self.statistics[2:].tolist()]
        parts = {name: list(value) if type(value) is tuple else value for name, value in self._asdict().items()}
        has_means = [bool(codes) and self.layout.means > 0 for codes in self.codes]
        means = [known[: 1 + len(codes)].tolist() if has else []
                 for known, codes, has in zip(self.means, self.codes, has_means, strict=True)]
        return {**parts, "layout": dict(self.layout.parameters), "codes": list(map(list, self.codes)),
                "statistics": self.statistics[:2].tolist() + shown, "overall": self.overall.tolist(), "means": means}

    @classmethod
    def restored(cls, learned):
        """The state that `plain` described; ValueError or TypeError if its parts do not fit each other."""
        if not isinstance(learned, dict) or set(learned) != set(cls._fields):
            raise ValueError("the encoder lacks a part")
        layout = learned["layout"]
        if layout.keys() != {"kinds", "slots", "cycles", "indicators", "means"}:
            raise ValueError("the layout of the encoder lacks a part")
        if not 1 <= layout["slots"] * len(layout["kinds"]) <= 2**20 or layout["means"] not in range(MEANS + 1):
            raise ValueError("the encoder has too many slots")
        layout, special = Layout(**layout), {None: np.inf, "many": np.nan}
        statistics = np.array([[special.get(value, value) for value in row] for row in learned["statistics"]])
        codes = tuple({category: code for code, category in enumerate(column)} for column in learned["codes"])
        parts = {name: tuple(value) if type(value) is list else value for name, value in learned.items()}
        means = tuple(np.array(known, dtype=float) if known else _no_means(layout.means) for known in learned["means"])
        overall = np.array(learned["overall"], dtype=float).reshape(3, layout.means)
        state = cls(**{**parts, "layout": layout, "codes": codes, "statistics": statistics, "overall": overall,
                       "means": means})
        n, rows = len(state.kinds), state.rows
        columns = layout.kinds, codes, state.seen, state.origins, state.invalid, means
        origins = [abs(origin) for origin in state.origins if origin is not None]
        for what, *conditions in (
            ("size", n, {len(part) for part in columns} == {n}, statistics.shape == (4, n), statistics.dtype == float),
            ("means", np.isfinite(statistics[0]).all(), ((0.0 <= statistics[1]) & (statistics[1] <= rows)).all(),
             np.isfinite(overall).all(), (overall[[0, 2]] >= 0.0).all(),
             *(_are_means(known, column, layout.means, rows) for known, column in zip(means, codes, strict=False))),
            ("kinds", all(kind in (None, *KINDS) for kind in state.kinds),
             all(before in (None, kind) for before, kind in zip(layout.kinds, state.kinds, strict=False))),
            ("counts", _are_counts((*state.seen, *state.invalid, rows - 1, layout.slots)),
             max(state.seen, default=0) <= VARIETY),
            ("dates", _are_counts(origins)),
            ("parameters", type(layout.indicators) is bool, set(layout.cycles) <= set(_ELAPSED)),
            ("names", state.names is None or len(set(state.names)) == len(state.names) == n),
            ("categories", *(len(given) == len(found) <= state.limit() and all(type(name) is str for name in found)
                             for given, found in zip(learned["codes"], codes, strict=True))),
        ):
            if not all(conditions):
                raise ValueError(f"the encoder's {what} do not fit, or are out of bounds")
        return state


def _are_means(known, codes, columns, rows):
    """Whether these are means of targets for the categories of a column, or for none, in so many rows."""
    shape = 1 + len(codes) if columns else 1, 1 + 2 * columns
    is_sound = known.shape == shape and np.isfinite(known).all() and (known[0] >= 0.0).all()
    return is_sound and (known[1:, 0] >= 0.0).all() and known[1:, 0].sum() <= rows


def _are_counts(numbers):
    return all(type(number) is int and 0 <= number < 2**63 for number in numbers)


class Layout:
    """Which encoded columns each column has.

    kinds, slots, cycles, indicators, means
                          kinds of the columns when the first row came, of which None has room for all, and parameters
    numbers, places       columns that have a number, and where it is
    categories, circles   {column: where its slots, and means of targets behind them, or its points on circles, begin}
    missing               where the indicators of missing values are, if there are any
    owners                the column that each of the `width` encoded columns belongs to
    """

    def __init__(self, kinds, slots, cycles, indicators, means):
        self.parameters = {"kinds": list(kinds), "slots": slots, "cycles": list(cycles), "indicators": indicators,
                           "means": means}
        self.kinds, self.slots, self.cycles = tuple(kinds), slots, tuple(cycles)
        self.indicators, self.means = indicators, means
        numbers, places, owners, self.categories, self.circles, self.missing = [], [], [], {}, {}, []
        for j, kind in enumerate(kinds):
            at = len(owners)
            if kind != "category":
                numbers.append(j)
                places.append(at)
                at += 1
            if kind in ("date", None):
                self.circles[j] = at
                at += 2 * len(cycles)
            if kind in ("category", None):
                self.categories[j] = at
                at += slots + means
            if indicators:
                self.missing.append(at)
                at += 1
            owners += [j] * (at - len(owners))
        self.is_plain = set(kinds) == {"number"} and not indicators
        self.owners, self.width = np.array(owners, dtype=np.intp), len(owners)
        self.numbers, self.places = np.array(numbers, dtype=np.intp), np.array(places, dtype=np.intp)

    def means_in(self, rows, j):
        """The columns of encoded rows where the means of a column are."""
        begin = self.categories[j] + self.slots
        return rows[:, begin : begin + self.means]

    def slow_columns(self, kinds):
        """Encoded columns in which dates hardly change for days: days since the first, week and year."""
        slow = [2 * k + part for k, cycle in enumerate(self.cycles) if cycle != "day" for part in (0, 1)]
        found = []
        for j in (j for j, kind in enumerate(kinds) if kind == "date"):
            found += [int(self.places[self.numbers == j][0]), *(self.circles[j] + part for part in slow)]
        return found


# ---- Rows -----------------------------------------------------------------------------------------------------------


class Block:
    """Rows that are encoded, and what an encoder learns from the first n of them: `commit(n)` cannot fail.

    `rows` are encoded, each by what was known before it; `kinds` are those of the columns, as these rows show them.
    """

    targets = None  # of these rows, once `tell` has given them

    def __init__(self, encoder, state, table, new=None, learns=True):
        first_rows = {}
        if new:
            first_rows = {len(state.kinds) + i: row for i, (row, _) in enumerate(new.values())}
            state = state.grown(new)
            table = Table([*table.columns, *(values for _, values in new.values())], len(table), state.names)
        self._begin(encoder, state, learns)
        if None in state.kinds:
            first = {j: _first_kind(table, j, len(table)) for j, kind in enumerate(state.kinds) if kind is None}
            self.kinds = tuple(first[j][0] if kind is None else kind for j, kind in enumerate(state.kinds))
            self.decided = {j: row for j, (_, row) in first.items()}
        encoded = np.zeros((len(table), state.layout.width))
        self.values = np.full((len(table), len(self.kinds)), np.nan)
        for j, kind in enumerate(self.kinds):
            missing = True if kind is None else _ENCODE[kind](self, table, j, encoded)
            if state.layout.missing:
                encoded[first_rows.get(j, 0) :, state.layout.missing[j]] = (
                    missing if kind is None else missing[first_rows.get(j, 0) :])
        self._fill(encoded)

    def _begin(self, encoder, state, learns):
        self.encoder, self.before, self.learns, self.kinds = encoder, state, learns, state.kinds
        # {column: what these rows change}, with the rows that do
        self.decided, self.categories, self.origins, self.invalid = {}, {}, {}, {}
        self.codes, self.means, self.gathered = {}, {}, {}

    def _fill(self, encoded):
        """Fill the holes among `values`, each by what was known before it; the rows are `encoded` with them."""
        state, holes = self.before, None
        if not all_finite(self.values):
            infinite = np.argwhere(np.isinf(self.values))
            if len(infinite):
                row, j = (int(place) for place in infinite[0])
                what = "expected a finite number. Input contains infinity, or a value too large for float64."
                raise row_error(ValueError, row, f", column {state.name(j)!r}: {what}")
            holes = self.values.copy()
        # Of dates the latest counts, of numbers the mean.
        self.memory = np.array([0.0 if kind == "date" else 1.0 for kind in self.kinds])
        self.statistics = state.statistics.copy() if self.learns else state.statistics
        fill(self.values, self.statistics, self.memory, self.learns, holes)
        filled = self.rows = self.values if holes is None else holes
        if not state.layout.is_plain:
            encoded[:, state.layout.places] = filled[:, state.layout.numbers]
            self.rows = encoded
            for j, (codes, first) in self.codes.items() if not self.learns else ():  # means of targets as they are now
                nothing = np.zeros((len(encoded), state.layout.means))
                category_means(codes, nothing, state.means[j], first, state.layout.means_in(encoded, j), False)

    @classmethod
    def of_one(cls, encoder, state, x, learns):
        """The block of one row; None if there is more to do than to look its values up."""
        layout, n = state.layout, len(state.kinds)
        if type(x) is dict and state.names is not None:
            if len(x) != n:
                return None
            x = [x.get(name) for name in state.names]
        block, row = cls.__new__(cls), None
        block._begin(encoder, state, learns)
        if layout.is_plain:
            if type(x) is list and _NUMBERS.issuperset(map(type, x)):
                x = np.array(x, dtype=float)
            elif type(x) is not np.ndarray or x.dtype.kind not in "fiu":
                return None
            if x.shape != (n,):
                return None
            block.values = np.ascontiguousarray(x, dtype=float)[None]
        elif type(x) not in (list, tuple) or len(x) != n or (row := block._look_up(x)) is None:
            return None
        if np.isinf(block.values).any():
            return None
        block._fill(row)
        return block

    def _look_up(self, x):
        """A row of numbers, holes and categories seen before, encoded but for the numbers; None for others."""
        state, layout = self.before, self.before.layout
        self.values, row = np.full((1, len(x)), np.nan), np.zeros((1, layout.width))
        for j, (value, kind) in enumerate(zip(x, self.kinds, strict=True)):
            missing = value is None
            if kind == "number" and type(value) in _NUMBERS:
                missing = value != value
                self.values[0, j] = value
            elif kind == "category" and type(value) is str and state.seen[j] == VARIETY and value in state.codes[j]:
                code = state.codes[j][value]
                if layout.means:
                    self.codes[j] = np.array([code + 1]), int(len(state.codes[j]) <= layout.slots)
                    self.means[j] = state.means[j]
                if code != 1 or layout.slots < 3 or len(state.codes[j]) > 2:
                    row[0, layout.categories[j] + slot_of(value, code, layout.slots)] = 1.0
            elif not missing or kind is None:
                return None
            if layout.missing:
                row[0, layout.missing[j]] = missing
        return row

    def tell(self, rows, targets, are_classes):
        """Give the rows, as they are learned, the means of the targets of each category before them; `targets` has a
        column for each of `Layout.means`. Called at most once."""
        self.targets, self.are_classes = np.ascontiguousarray(targets, dtype=float), are_classes
        for j, (codes, first) in self.codes.items():
            used, places = np.unique(np.append(0, codes), return_inverse=True)
            self.gathered[j] = used, places[1:], self.means[j][used], first
        self.updated = self._updated(len(rows), rows)

    def _updated(self, n, rows):
        """(`overall`, {column: what its used rows of `means` become}) after n rows."""
        overall, known, layout = self.before.overall.copy(), {}, self.before.layout
        surprise = surprises(self.targets[:n], overall, self.are_classes)
        for j, (_, codes, before, first) in self.gathered.items():
            known[j] = before.copy()
            category_means(codes[:n], surprise, known[j], first, layout.means_in(rows, j), True)
        return overall, known

    def commit(self, n=None):
        """Let the encoder learn from the first n rows, all of them without n. It cannot fail, and may be done again."""
        before = self.before
        n = len(self.rows) if n is None else n
        if n < len(self.rows):
            self.statistics[:] = before.statistics
            fill(self.values[:n], self.statistics, self.memory, True)
        changes = {"statistics": self.statistics, "rows": before.rows + n}
        if self.decided:
            changes["kinds"] = tuple(kind if self.decided.get(j, -1) < n else None for j, kind in enumerate(self.kinds))
        if self.categories:
            seen = list(before.seen)
            for j, (new, rows) in self.categories.items():
                codes = before.codes[j]
                for category in (category for category, row in new.items() if row < n):
                    codes.setdefault(category, len(codes))
                seen[j] = min(VARIETY, seen[j] + int(np.searchsorted(rows, n)))
            changes["seen"] = tuple(seen)
        if self.origins:
            first = {j: origin for j, (row, origin) in self.origins.items() if row < n}
            changes["origins"] = tuple(first.get(j, origin) for j, origin in enumerate(before.origins))
        if self.invalid:
            counts = {j: int(np.searchsorted(rows, n)) for j, rows in self.invalid.items()}
            changes["invalid"] = tuple(count + counts.get(j, 0) for j, count in enumerate(before.invalid))
        if self.means:
            changes["means"] = tuple(self.means.get(j, known) for j, known in enumerate(before.means))
        if self.targets is not None:
            changes["overall"], known = self.updated if n == len(self.rows) else self._updated(n, self.rows.copy())
            for j, (used, *_) in self.gathered.items():
                self.means[j][used] = known[j]
        self.encoder._state = before._replace(**changes)

    def slow_columns(self):
        """Encoded columns in which dates hardly change for days."""
        return self.before.layout.slow_columns(self.kinds)

    # ---- Columns, each of which returns where it is missing ----

    def _encode_numbers(self, table, j, encoded):
        self.values[:, j], invalid = _located(numbers_of, table, j)
        self._note_invalid(table, j, invalid)
        return np.isnan(self.values[:, j])

    def _encode_categories(self, table, j, encoded):
        state, layout = self.before, self.before.layout
        begin, known, limit = layout.categories[j], len(state.codes[j]), state.limit() if self.learns else 0
        codes, slots, new = _located(lambda column: slots_of(column, state.codes[j], layout.slots, limit), table, j)
        rows, new_rows = np.flatnonzero(slots >= 0), list(new.values())
        encoded[rows, begin + slots[rows]] = 1.0
        if layout.slots > 2 and known < 3:
            third = new_rows[2 - known : 3 - known]
            encoded[: third[0] if third else None, begin + 1] = 0.0
        if layout.means:
            overflow = new_rows[layout.slots - known :] if known <= layout.slots else [0]
            self.codes[j] = codes + 1, overflow[0] if overflow else len(codes)
            spare = 1 + known + len(new) - len(state.means[j])
            self.means[j] = state.means[j] if spare <= 0 else np.concatenate(
                [state.means[j], np.zeros((max(spare, len(state.means[j])), state.means[j].shape[1]))])
        if self.learns:
            rows = rows[: VARIETY - state.seen[j]]
            self.categories[j] = new, rows
            if len(rows) and state.seen[j] + len(rows) == VARIETY:
                self._check_variety(table, j, rows[-1])
        return slots < 0

    def _encode_dates(self, table, j, encoded):
        instants, invalid = _located(instants_of, table, j)
        self._note_invalid(table, j, invalid)
        layout, origin, there = self.before.layout, self.before.origins[j], instants != NO_TIME
        if there.any():
            if origin is None:
                first = int(np.argmax(there))
                origin = int(instants[first])
                self.origins[j] = first, origin
            self.values[there, j] = (instants[there] - origin) / DAY
            for k, cycle in enumerate(layout.cycles):
                elapsed, period = _ELAPSED[cycle](instants)
                at = layout.circles[j] + 2 * k
                circle(np.where(there, elapsed, -1), period, encoded[:, at : at + 2])
        return ~there

    # ---- Warnings ----

    def _note_invalid(self, table, j, rows):
        """Count values of a column that are not of its kind; warn of the first of them."""
        if not rows or not self.learns:
            return
        self.invalid[j] = rows
        if self.before.invalid[j] == 0:
            kind, convert = self.kinds[j], {"number": "pandas.to_numeric", "date": "pandas.to_datetime"}
            warnings.warn(UserWarning(
                f"Row {rows[0]} of X, column {self.before.name(j)!r}: expected a {kind}, as in the rows before. Got "
                f"{table.columns[j][rows[0]]!r}, which counts as missing, as do others like it (invalid_ counts them). "
                f"{convert[kind]} reads other forms of {kind}s; where they are names of something, make the column one "
                "of categories."), stacklevel=2)

    def _check_variety(self, table, j, last):
        """Warn if few of the first texts of a column, of which that of row `last` is the last, came again."""
        state = self.before
        different = len(state.codes[j]) + sum(row <= last for row in self.categories[j][0].values())
        if different > max(DIFFERENT, state.layout.slots):
            what = ("; beside them is the mean of earlier targets of each, which says nothing of one that comes once"
                    if state.layout.means else ", which says little of them")
            warnings.warn(UserWarning(
                f"Column {state.name(j)!r}: {different} of its first {VARIETY} texts are different, such as "
                f"{table.columns[j][last]!r}, and become hundreds of categories that share {state.layout.slots} "
                f"columns{what}. If they are numbers or dates, convert them with pandas.to_numeric or "
                "pandas.to_datetime; if each names one row, leave the column out."), stacklevel=2)


_ENCODE = {"number": Block._encode_numbers, "category": Block._encode_categories, "date": Block._encode_dates}


def encoded(state, table):
    """The rows of a table, each as if it came next."""
    block = Block(None, state, table, learns=False)
    if block.kinds == state.kinds or len(table) == 1:
        return block.rows
    return np.concatenate([encoded(state, table[i : i + 1]) for i in range(len(table))])


def _first_kind(table, j, rows):
    """(kind of the first value of a column that is not missing, its row), or (None, their number), in so many rows."""
    def kind_of_first(column):
        found = (read(value)[0] and (kind_of_array(column) or read(value)[0]) for value in column[:rows])
        return next(((kind, row) for row, kind in enumerate(found) if kind is not None), (None, rows))

    return _located(kind_of_first, table, j)


def _located(convert, table, j):
    """What `convert` makes of column j; its TypeErrors say where in the table the value is."""
    column = table.columns[j]
    try:
        return convert(column)
    except TypeError as error:
        name = j if table.names is None else table.names[j]
        for row, value in enumerate(column):
            try:
                read(value)
            except TypeError as found:
                raise row_error(TypeError, row, f", column {name!r}: {found}.") from error
        raise


_ELAPSED = {  # (microseconds since each began, its length)
    "day": lambda instants: (instants % DAY, DAY),
    "week": lambda instants: ((instants - 4 * DAY) % (7 * DAY), 7 * DAY),  # since Monday; 1970 began on a Thursday
    "year": lambda instants: (
        instants - instants.astype("M8[us]").astype("M8[Y]").astype("M8[us]").astype(np.int64), YEAR),
}
