"""Encoding online: tables of numbers, words, dates and holes as rows of numbers, by what the stream has shown so far."""
from __future__ import annotations

import numbers
import warnings
from typing import TYPE_CHECKING

import numpy as np

from onlinekernels import validation
from onlinekernels._core.errors import row_error
from onlinekernels._core.formulas.vectorized import all_finite
from onlinekernels._core.transforms import fill
from onlinekernels.nouns.columns import (
    ALL_KINDS,
    CYCLES,
    VARIETY,
    first_kind,
    kind_at,
    kind_of_array,
    kind_with_custom,
    located,
    points_of_dates,
    slots_of,
    variety_with,
)
from onlinekernels.nouns.encoded import Known
from onlinekernels.nouns.formats import CONVENTIONS, NEW, READINGS
from onlinekernels.nouns.transforming import RunningTransformer
from onlinekernels.nouns.values import NO_TIME, instants_of, numbers_of
from onlinekernels.validation import Argument, Sentence
from onlinekernels.validation.tables import Table

if TYPE_CHECKING:
    from onlinekernels.annotations import Any, Array, Examples, Self, Sequence

__all__ = ["RunningEncoder"]


class RunningEncoder(RunningTransformer):
    """Make rows of numbers of whatever comes: data frames, dictionaries, structured arrays, lists of mixed rows, arrays.

    Each row is encoded by what was known before it, and then taken in. So nothing from the future is used, a row gets from
    `transform` just what it would get if it came next, and `partial_fit` of n rows gives what n calls of one row give, bit for
    bit. Memory is constant, and the columns that come out are the same from the first row on.

    The first row says what each column holds, and that decides what is made of it:

    - a number (also True, False, or a text such as "3.5", "1,234.50", "1.234,5", "5%" or "$12.40"): the number, without its sign;
    - a word (any other text, categories): `slots` columns of zeros and ones. Each new word has the next of them to itself, at
      once; when all are taken, the word's hash chooses which one it shares;
    - a date (datetime, datetime64, pandas' timestamps, or a text such as "2024-02-29", "2024-02-29T12:30+01:00", "02/29/2024",
      "29.2.2024", "29 Feb 2024 2:05 pm" or a time of day, "14:05"): days since the first date, and a point on a circle for each
      of the `cycles`: its sine and cosine. With a time zone, in UTC;
    - what is missing (None, NaN, NaT, pandas' NA, an empty text) is filled: numbers by the mean so far (of two values, such as
      those of a truth value, by the nearer one), dates by the latest, a point on a circle by its middle, words by zeros. A
      further column of zeros and ones tells that it was missing, see `indicators`. A column whose first value is missing has all of the
      above, and is what its first value is.

    Numbers are not scaled: put a `RunningScaler` behind it, or ``scale=True``, which has a change of a column of zeros and ones
    count as much as that of a number, however rare it is.

    A word where a number or a date is expected is taken for missing, with a warning; see `kinds` and `odd_`. Texts such as 03/04/2024
    or 1,234 mean one of two things. The first text of a column that can mean one alone, such as 03/14/2024, decides for those after it;
    before it 03/04/2024 is the fourth of March, 03-04-2024 and 03.04.2024 the third of April, and a comma parts thousands. A warning
    says so when 30 were read by such a guess, or when a guess turns out to be wrong. Another says when a column of words has had
    nearly as many different ones as rows.

    Parameters
    ----------
    slots : int
        Columns for the words of each column; at least 1.
    kinds : dict or None
        {column: "number", "word" or "date"} of columns, by name or index, for which the first row shall not decide: whole
        numbers that are names of something, say. "day first" and "month first" are dates, "decimal point" and "decimal comma" numbers
        written so.
    columns : list or None
        Names of all columns: of those of arrays and lists, and for dictionaries of which the first does not have all.
        Dictionaries may lack some, which is missing then.
    cycles : "all", a list of some of "day", "week", "year", or None
        What of a date is cyclic.
    indicators : "auto" or bool
        Whether a further column tells for each column that its value was missing. "auto" says no if the first row has nothing
        but numbers: these come out as they are, and only holes are filled.
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

    def __init__(self, slots: int = 16, *, kinds: dict[Any, Any] | None = None, columns: Sequence[Any] | None = None,
                 cycles: Any = "all", indicators: bool | str = "auto", memory: float = 1.0) -> None:
        self.slots = slots
        self.kinds = kinds
        self.columns = columns
        self.cycles = cycles
        self.indicators = indicators
        self.memory = memory

    # ---- Learning -----------------------------------------------------------------------------

    def fit(self, X: Examples, y: Any = None) -> Self:
        """Forget everything, then take in X; return self."""
        with self._turn.alone:
            self._state = self._taken_in(None, self._table(None, X))[0]
        return self

    def partial_fit(self, X: Examples, y: Any = None) -> Self:
        """Take in some more rows; return self."""
        self._advance(X)
        return self

    def progressive(self, X: Examples) -> Any:
        """Take in the rows one after another, and return each encoded by what was known before it."""
        return self._shown(X, self._advance(X))

    def learn_one(self, x: Any) -> Self:
        """Take in one row: a dictionary, a list, a tuple, a 1-d array; return self."""
        self._advance([x])
        return self

    def _advance(self, X):
        with self._turn.alone:
            self._state, out = self._taken_in(self._state, self._table(self._state, X))
        return out

    def advanced(self, X: Examples) -> Any:
        """(an encoder that has seen these rows as well, the rows as it encodes them); this one stays as it is."""
        fresh = RunningEncoder(self.slots, kinds=self.kinds, columns=self.columns, cycles=self.cycles, indicators=self.indicators,
                               memory=self.memory)  # in a tenth of the time of `get_params`
        fresh._state, out = self._taken_in(self._state, self._table(self._state, X))
        return fresh, out

    def _taken_in(self, known, table):
        """(what is known after these rows, the rows encoded)."""
        known = self._begun(table) if known is None else known
        return self._encoded(known, table, True)

    # ---- Encoding -----------------------------------------------------------------------------

    def transform(self, X: Examples) -> Any:
        """X encoded by what is known now."""
        return self._shown(X, self.encoded(X))

    def encoded(self, X: Examples) -> Any:
        """`transform`, as an array whatever `set_output` says."""
        known = self._fitted()
        return self._encoded(known, self._table(known, X), False)[1]

    def transform_one(self, x: Any) -> Array:
        """One row encoded by what is known now, 1-d."""
        return self.encoded([x])[0]

    def table(self, X: Examples) -> Any:
        """X as columns in the order of this encoder, which its other methods take, too; slices of it are tables."""
        return self._table(self._state, X)

    def _table(self, known, X):
        if known is None:
            names = self.columns
            if names is not None:
                if not isinstance(names, (list, tuple)) or not names or len(set(names)) < len(names):
                    raise validation.bad_parameter(self, "columns", "a list of different names, or None", names)
                names = tuple(names)
            table = X if isinstance(X, Table) else Table.of(X, names)
            return table if names is None else table.in_order(names, len(names), type(self).__name__).called(names)
        table = X if isinstance(X, Table) else Table.of(X, known.names)
        return table.in_order(known.names, len(known.kinds), type(self).__name__)

    def _begun(self, table):
        """What is known before the first row of a stream, by what kind of values this has."""
        slots, memory = validation.check_count(self, "slots"), validation.check_share(self, "memory")
        is_all = isinstance(self.cycles, str) and self.cycles == "all"
        cycles = CYCLES if is_all else () if self.cycles is None else self.cycles
        if not isinstance(cycles, (list, tuple)) or self.cycles == [] or not all(cycle in CYCLES for cycle in cycles):
            expected = f"'all', a list of some of {', '.join(map(repr, CYCLES))}, or None"
            raise validation.bad_parameter(self, "cycles", expected, self.cycles)
        cycles = tuple(dict.fromkeys(cycles))
        if not isinstance(self.indicators, (bool, np.bool_)) and not (
            isinstance(self.indicators, str) and self.indicators == "auto"
        ):
            raise validation.bad_parameter(self, "indicators", "True, False or 'auto'", self.indicators)
        given, customs = self._given_kinds(table)
        shown = [located(lambda column: kind_at(column, 0), table, j) for j in range(len(table.columns))]
        is_hole = [kind is None for kind in shown]
        kinds = tuple(
            given[j] if j in given else "word" if j in table.categories else kind_of_array(column) or shown[j]
            for j, column in enumerate(table.columns)
        )
        indicators = bool(self.indicators)
        if isinstance(self.indicators, str):
            indicators = any(is_hole) or any(kind != "number" for kind in kinds)
        n = len(kinds)
        values = {"mean": np.zeros(n), "count": np.zeros(n), "shown": np.full((2, n), np.inf), "odd": (0,) * n}
        variety = tuple((VARIETY,) if given.get(j) == "word" else (0,) for j in range(n))  # of what was asked for nothing is said
        values.update(words=({},) * n, variety=variety, customs=tuple(customs.get(j, NEW) for j in range(n)), origins=(None,) * n)
        return Known(table.names, kinds, kinds, slots, cycles, indicators, memory, rows=0, **values)

    def _given_kinds(self, table):
        """({index: kind}, {index: how its texts are to be read}) of the columns of which these are parameters."""
        given, customs = {}, {}
        expected = f"a dictionary of {', '.join(map(repr, ALL_KINDS))} by names or indices of columns, or None"
        if self.kinds is not None and not isinstance(self.kinds, dict):
            raise validation.bad_parameter(self, "kinds", expected, self.kinds)
        for column, kind in (self.kinds or {}).items():
            places = range(len(table.columns)) if table.names is None else table.names
            index = column if column not in places and isinstance(column, numbers.Integral) else None
            index = list(places).index(column) if column in places else index
            if index is None or not -len(table.columns) <= index < len(table.columns) or kind not in ALL_KINDS:
                raise validation.bad_parameter(self, "kinds", expected, self.kinds)
            index %= len(table.columns)
            given[index], customs[index] = kind_with_custom(kind)
        return given, customs

    def _encoded(self, known, table, learns):
        """(what is known after the rows of a table, or `known` itself, and these rows encoded)."""
        kinds = self._kinds_with(known, table)
        if kinds != known.kinds and not learns and len(table) > 1:  # what a column is to be, each row says for itself
            return known, np.concatenate([self._encoded(known, table[i : i + 1], False)[1] for i in range(len(table))])
        layout, n = known.layout, len(table)
        values, words, origins, odd = np.full((n, len(kinds)), np.nan), list(known.words), list(known.origins), list(known.odd)
        variety, customs = list(known.variety), list(known.customs)
        out = np.zeros((n, layout.width)) if layout.width > len(kinds) or layout.words else values
        for j, (kind, column) in enumerate(zip(kinds, table.columns, strict=True)):
            if kind == "word":
                places, words[j] = located(lambda column: slots_of(column, words[j], known.slots, learns), table, j)
                missing, strange = places < 0, []
                rows = np.flatnonzero(~missing)
                out[rows, layout.words[j] + places[rows]] = 1.0
                if learns and known.variety[j][0] < VARIETY:
                    variety[j], found = variety_with(known.variety[j], column, places)
                    if found is not None:
                        tell_variety(known, table, j, *found)
            elif kind == "date":
                instants, strange, customs[j], news = located(lambda column: instants_of(column, customs[j], learns), table, j)
                tell_news(known, table, j, kind, news)
                origins[j] = points_of_dates(instants, origins[j], known.cycles, values[:, j], out[:, layout.cycles[j] :])
                missing = instants == NO_TIME
            elif kind == "number":
                values[:, j], strange, customs[j], news = located(lambda column: numbers_of(column, customs[j], learns), table, j)
                tell_news(known, table, j, kind, news)
                missing = np.isnan(values[:, j])
            else:
                missing, strange = np.ones(n, dtype=bool), []
            if strange and learns:
                tell_once(known, table, j, kind, customs[j], strange)
                odd[j] += len(strange)
            if known.indicators:
                out[:, layout.missing[j]] = missing
        self._check_finite(values, known)
        mean, count, shown = known.mean, known.count, known.shown
        if learns:
            mean, count, shown = mean.copy(), count.copy(), shown.copy()
        memory = np.array([0.0 if kind == "date" else known.memory for kind in kinds])  # of dates, the latest
        fill(values, mean, count, shown, memory, learns)
        if out is not values:
            out[:, layout.places] = values[:, layout.numbers]
        if learns:
            known = known._replace(kinds=kinds, words=tuple(words), variety=tuple(variety), customs=tuple(customs), origins=tuple(origins), mean=mean,
                                   count=count, shown=shown, odd=tuple(odd), rows=known.rows + n)
        return known, out

    @staticmethod
    def _kinds_with(known, table):
        """Kinds of the columns, those included that their first value decides in this table."""
        if None not in known.kinds:
            return known.kinds
        return tuple(
            located(first_kind, table, j) if kind is None else kind for j, kind in enumerate(known.kinds)
        )

    @staticmethod
    def _check_finite(values, known):
        if not all_finite(values) and np.isinf(values).any():
            row, column = (int(place) for place in np.argwhere(np.isinf(values))[0])
            raise row_error(
                ValueError,
                row,
                f", column {known.name(column)!r}: expected a finite number. Input contains infinity, or a value too large for float64.",
            )

    # ---- What can be seen ---------------------------------------------------------------------

    @property
    def feature_names_out(self) -> Any:
        """What each column that comes out is, as of now: slots that no word has taken yet have a number, as in ``pet#3``."""
        return self.get_feature_names_out().tolist()

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> Array:
        """The names of the columns that come out, as an array; `input_features` are those of nameless columns."""
        known = self._fitted()
        if input_features is not None:
            if len(input_features) != len(known.kinds) or known.names is not None and set(input_features) != set(known.names):
                raise ValueError("input_features should have the names of the columns that came first. Got others instead.")
            known = known._replace(names=tuple(input_features)) if known.names is None else known
        return np.array(known.names_out(), dtype=object)

    def columns_of(self, values: Any) -> Any:
        """{column: (places of what was made of it, values there)} of an encoded row of means; of words the most frequent alone."""
        known = self._attribute()
        layout, values = known.layout, np.array(values, dtype=float)
        for begin in layout.words.values():
            slots = slice(begin, begin + known.slots)
            values[slots] = np.arange(known.slots) == values[slots].argmax()
        places = (np.flatnonzero(layout.owners == j) for j in range(len(known.kinds)))
        return {known.name(j): (found, values[found]) for j, found in enumerate(places)}

    def places_of_time(self) -> Any:
        """Where rows have what of a date goes one way for days: days since the first, and its place in the week and in the year."""
        known = self._attribute()
        layout, found = known.layout, []
        for j in (j for j, kind in enumerate(known.kinds) if kind == "date"):
            found.append(int(layout.places[layout.numbers == j][0]))
            for i in (i for i, cycle in enumerate(known.cycles) if cycle != "day"):
                found += [layout.cycles[j] + 2 * i, layout.cycles[j] + 2 * i + 1]
        return found

    @property
    def kinds_(self) -> Any:
        """{column: what it holds}; None for those of which nothing has come yet."""
        known = self._attribute()
        return {known.name(j): kind for j, kind in enumerate(known.kinds)}

    @property
    def words_(self) -> Any:
        """{column: words that have a slot to themselves, in order} of the columns with words."""
        known = self._attribute()
        return {known.name(j): list(known.words[j]) for j, kind in enumerate(known.kinds) if kind == "word"}

    @property
    def means_(self) -> Any:
        """{column: the mean so far} of numbers; the latest of dates, in days since the first."""
        known = self._attribute()
        return {known.name(j): float(known.mean[j]) for j, kind in enumerate(known.kinds) if kind in ("number", "date")}

    @property
    def odd_(self) -> Any:
        """{column: how many values were no numbers or dates although the column is of such}, columns with none left out."""
        known = self._attribute()
        return {known.name(j): count for j, count in enumerate(known.odd) if count}

    @property
    def count_(self) -> Any:
        """Number of rows taken in."""
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
        """Continue from what `to_dict` gave; ValueError if it makes no sense."""
        self._state = None if learned is None else Known.restored(learned)

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


def tell_once(known, table, j, kind, custom, strange):
    """Warn of the first value of a column that is not of its kind."""
    if known.odd[j] == 0:
        value = table.columns[j][strange[0]]
        like = "as in the first row"
        if isinstance(value, str) and READINGS[kind](value) is not None:  # by the other convention
            like = f"{CONVENTIONS[kind][custom.convention]}, as in rows before"
        _tell(known, j, f"Row {strange[0]} of X, column {known.name(j)!r}: expected a {kind}, {like}. Got {value!r}, which is taken for "
                        "missing, as are others like it (odd_ counts them). If these are words, ", "word", " takes them so.")


def tell_news(known, table, j, kind, news):
    """Warn of texts that could follow either convention: where many were read by a guess, and where a guess was wrong."""
    for row, what, readings in news:
        text, names = table.columns[j][row], CONVENTIONS[kind]
        place = f"Row {row} of X, column {known.name(j)!r}: "
        if what == "turned":
            name, other = names[readings.decides], names[1 - readings.decides]
            _tell(known, j, f"{place}{text!r} tells that the convention is {name}. Texts before it that could follow either were read as "
                            f"{other}; from here on it is {name}. To have it so from the first row on, use ", name, ".")
        else:
            name, other = names[readings.guess], names[1 - readings.guess]
            _tell(known, j, f"{place}texts such as {text!r} may follow one of two conventions, {name} or {other}, and nothing has told yet "
                            f"which. Until something does, it is {name}. If that is wrong, use ", other, ".")


def tell_variety(known, table, j, row, different):
    """Warn of a column of words of which few come again."""
    _tell(known, j, f"Column {known.name(j)!r}: {different} of its first {VARIETY} values are different words, such as "
                    f"{table.columns[j][row]!r}, and share {known.slots} columns, which says little of them. If they name rows, leave "
                    "the column out; if they are numbers or dates in a form that is not read, convert them. (", "word", " takes them as "
                    "they are, and says nothing.)")


def _tell(known, j, before, kind, after):
    key = known.name(j) if known.names is not None else j
    way = Argument("encode", f"RunningEncoder(kinds={{{key!r}: {kind!r}}})", option=f"--kinds {key}={kind.replace(' ', '-')}")
    warnings.warn(UserWarning(Sentence(before, way, after)), stacklevel=2)
