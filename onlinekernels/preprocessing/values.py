"""Tables and their values: what each of them is, and columns of them as arrays of numbers, instants and slots.

What a value is depends on the value alone, never on those beside it: where a column is converted at once, that is a
fast way to the same result.
"""
import math
import numbers
import re
import zlib
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta

import numpy as np

from onlinekernels._core.errors import row_error
from onlinekernels.base import validation

DAY = 86_400_000_000  # microseconds
NO_TIME = np.iinfo(np.int64).min  # as NumPy has it
LONGEST = 64  # characters of a category
# Texts for a missing value where a number or a date is expected. Elsewhere they are categories.
HOLES = {"na", "n/a", "#n/a", "nan", "-nan", "nat", "null", "none", "<na>", "?", "-", "."}


# ---- One value ------------------------------------------------------------------------------------------------------


def is_missing(value):
    """Whether a value is None, NaN, NaT, pandas' NA or an empty text.

    >>> [is_missing(value) for value in (None, float("nan"), np.datetime64("NaT", "s"), " ", "NA", 0)]
    [True, True, True, True, False, False]
    """
    if isinstance(value, str):
        return not value or value.isspace()
    if value is None or type(value).__name__ == "NAType":
        return True
    return isinstance(value, (numbers.Number, np.generic, date)) and bool(value != value)


def read(value):
    """(kind of a value, what it is): ("number", a float), ("date", microseconds since 1970 in UTC), ("category", None),
    or (None, None) if it is missing. TypeError for what is none of these.

    >>> [read(value) for value in (3, "3.5", "1970-01-02", "00:01", None, "n/a")]
    [('number', 3.0), ('number', 3.5), ('date', 86400000000), ('date', 60000000), (None, None), (None, None)]
    >>> [read(value)[0] for value in ("1_000", "2024-02-30", "three")]
    ['category', 'category', 'category']
    """
    if is_missing(value):
        return None, None
    if isinstance(value, str):
        text = value.strip()
        if text.lower() in HOLES:
            return None, None
        try:
            return "number", float("?" if "_" in text else text)  # Python's 1_000 is a word to everybody else
        except ValueError:
            instant = _instant_in(text)
            return ("category", None) if instant is None else ("date", instant)
    if isinstance(value, (date, time, np.datetime64)):
        return "date", _instant(value)
    if isinstance(value, numbers.Real) or type(value).__module__ in ("decimal", "_pydecimal"):
        try:
            return "number", float(value)
        except OverflowError:
            return "number", math.inf
    if isinstance(value, (list, dict, set, bytes, bytearray, np.ndarray, numbers.Complex, timedelta)):
        expected = "expected a number, a word or a date: an argument must be a string or a number"
        raise TypeError(f"{expected}. Got {value!r} instead")
    return "category", None


def _instant(value):
    """Microseconds since 1970 of a date or time of Python or NumPy."""
    if isinstance(value, time):
        value = datetime.combine(date(1970, 1, 1), value.replace(tzinfo=None))
    away = timedelta(0)
    if isinstance(value, datetime) and value.tzinfo is not None:
        value, away = value.replace(tzinfo=None), value.utcoffset() or away
    return int(np.datetime64(value).astype("M8[us]").astype(np.int64)) - away // _MICROSECOND


_EPOCH, _MICROSECOND = datetime(1970, 1, 1), timedelta(microseconds=1)
_CLOCK = r"(\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?"
_ZONE = r"(?: ?(?:Z|([+-])([01]\d|2[0-3])(?::?([0-5]\d))?))?"
_ISO = re.compile(rf"(\d{{4}})-(\d\d)-(\d\d)(?:[T ]{_CLOCK}{_ZONE})?", re.ASCII | re.IGNORECASE)
_TIME_OF_DAY = re.compile(_CLOCK, re.ASCII)


def _instant_in(text):
    """Microseconds since 1970 of a date of ISO 8601, perhaps with a time and a zone, or of a time in 1970; or None."""
    found, sign = _ISO.fullmatch(text), None
    if found is not None:
        *parts, fraction, sign, hours, minutes = found.groups()
    else:
        found = _TIME_OF_DAY.fullmatch(text)
        if found is None:
            return None
        *clock, fraction = found.groups()
        parts = (1970, 1, 1, *clock)
    try:
        at = datetime(*(int(part or 0) for part in parts), int((fraction or "").ljust(6, "0")[:6]))
    except ValueError:  # there is no such day or time
        return None
    away = 0 if sign is None else (60 * int(hours) + int(minutes or 0)) * 60_000_000
    return (at - _EPOCH) // _MICROSECOND - (-away if sign == "-" else away)


def category_of(value):
    """A value as a category of bounded length: whole numbers are the same category as integers and as floats.

    >>> category_of("red"), category_of(3.0), category_of(True), len(category_of("ab" * 1000)) <= LONGEST
    ('red', '3', 'True', True)
    """
    if not isinstance(value, str):
        read(value)  # refuses what is no category
        if isinstance(value, (float, np.floating)) and math.isfinite(value) and value == np.floor(value):
            value = int(value)
    category = str(value).strip()
    return category if len(category) <= LONGEST else f"{category[: LONGEST - 9]}~{_hash(category):08x}"


def _hash(category):
    """A number below 2**32 that is the same in all processes."""
    return zlib.crc32(category.encode("utf-8", "surrogatepass"))


# ---- A column -------------------------------------------------------------------------------------------------------


def kind_of_array(column):
    """What an array holds, whatever its values are; None for lists."""
    return ("date" if column.dtype.kind == "M" else "number") if isinstance(column, np.ndarray) else None


def numbers_of(column):
    """(numbers of a column, with NaN for what is missing or no number; indices of what is no number).

    >>> numbers_of([1, "2.5", None, "", "many", True, "1_000"])
    (array([1. , 2.5, nan, nan, nan, 1. , nan]), [4, 6])
    """
    if isinstance(column, np.ndarray):
        if column.dtype.kind == "M":
            return np.full(len(column), np.nan), np.flatnonzero(~np.isnat(column)).tolist()
        return column.astype(float), []
    types = set(map(type, column))
    try:
        if types <= _NUMBERS:
            return np.array(column, dtype=float), []
        if types <= _TEXTS and "_" not in "".join(value for value in column if type(value) is str):
            return np.array([_AS_NAN.get(value, value) for value in column], dtype=float), []
    except (ValueError, OverflowError):
        pass
    return _of_kind("number", column, math.nan, float)


# What NumPy makes numbers of, or NaN; of dates it would, too.
_NUMBERS = {int, float, bool, type(None), np.bool_, np.float64, np.float32, np.int64, np.int32}
_TEXTS = {str, float, type(None)}
_AS_NAN = dict.fromkeys((None, "", *HOLES, *map(str.upper, HOLES), "NaN", "NaT", "None"), math.nan)


def _of_kind(kind, column, missing, dtype):
    """(values of a kind, `missing` in place of all others; indices of values of another kind)."""
    found = [read(value) for value in column]
    values = np.array([value if other == kind else missing for other, value in found], dtype=dtype)
    return values, [i for i, (other, _) in enumerate(found) if other not in (None, kind)]


def instants_of(column):
    """(microseconds since 1970 as int64, with `NO_TIME` for what is missing or no date; indices of what is no date).

    >>> instants, invalid = instants_of(["1970-01-02", None, "1970-01-01T00:00:01+00:00", "soon"])
    >>> (instants // 10**6).tolist(), invalid
    ([86400, -9223372036855, 1, -9223372036855], [3])
    """
    if not isinstance(column, np.ndarray):
        return _of_kind("date", column, NO_TIME, np.int64)
    if column.dtype.kind == "M":
        return column.astype("M8[us]").astype(np.int64), []
    return np.full(len(column), NO_TIME), np.flatnonzero(~np.isnan(column)).tolist()


def slots_of(column, codes, slots, limit):
    """(code of each category, -1 for what is missing or has none; its slot, -1 for what is missing; {new category: its
    first row}, while there are fewer than `limit`).

    The slot of a category is its code, or chosen by a hash where there are no more. With a limit of 0 nothing is new
    for longer than a row.

    >>> slots_of(["red", None, "blue", "red"], {"blue": 0}, 2, 10)
    (array([ 1, -1,  0,  1]), array([ 1, -1,  0,  1]), {'red': 0})
    """
    values = column.tolist() if isinstance(column, np.ndarray) else column
    types = set(map(type, values))
    if not types <= _TEXTS and not types <= {int, type(None)}:
        # values of these types alone are only equal if they are the same category
        values = [None if is_missing(value) else category_of(value) for value in values]
    found, places, new, new_codes = dict.fromkeys(values, -1), {}, {}, {}
    for value in found:
        if is_missing(value):
            places[value] = -1
            continue
        category = value if value in codes else category_of(value)
        code = codes.get(category, new_codes.get(category))
        if code is None:
            code = len(codes) + len(new)
            if code < limit:
                new[category], new_codes[category] = value, code
        if code < limit or category in codes:
            found[value] = code
        places[value] = slot_of(category, code, slots)
    if new:
        first = dict(zip(reversed(values), range(len(values) - 1, -1, -1), strict=True))
        new = {category: first[value] for category, value in new.items()}
    n = len(values)
    return np.fromiter(map(found.__getitem__, values), np.int64, n), np.fromiter(
        map(places.__getitem__, values), np.int64, n), new


def slot_of(category, code, slots):
    """The slot of a category: its code, or by a hash where there are no more."""
    return code if code < slots else _hash(category) % slots


# ---- A table ------------------------------------------------------------------------------------


class Table:
    """Columns of one length, perhaps with names: arrays of numbers, truth values and dates, lists of anything else.

    `categories` are the columns that say of themselves that they hold some. `keyed` is a table of dictionaries, whose
    entries are in any order, and `new` {name: (first row that has it, column)} of what these have beside the names of
    earlier tables.

    >>> table = Table.of([{"age": 3, "pet": "cat"}, {"pet": None}])
    >>> table.names, table.columns, len(table)
    (('age', 'pet'), [[3, None], ['cat', None]], 2)
    """

    def __init__(self, columns, length, names=None, categories=(), keyed=False, new=None):
        self.columns, self.length, self.names, self.keyed = columns, length, names, keyed
        self.categories, self.new = set(categories), new or {}

    def __len__(self):
        return self.length

    def __getitem__(self, rows):
        """Some of the rows, by a slice."""
        columns, length = [column[rows] for column in self.columns], len(range(self.length)[rows])
        return Table(columns, length, self.names, self.categories, self.keyed)

    @classmethod
    def of(cls, X, names=None, name="X"):
        """The table that X is. `names` are those of the columns in earlier tables, by which dictionaries are taken."""
        validation.refuse_masked(X, name)
        if validation.is_sparse(X):
            raise TypeError(f"{name} is sparse, which holds numbers alone; expected rows to encode. Leave the encoder "
                            "out.")
        if type(X).__name__ == "LazyFrame":
            raise TypeError(f"{name} is a LazyFrame, which has no rows yet; expected {name}.collect().")
        X = [X] if isinstance(X, Mapping) else X
        if hasattr(X, "columns") and hasattr(X, "shape"):
            table = cls._of_frame(X)
        elif isinstance(X, (list, tuple)) and len(X) and not isinstance(X[0], str) and not np.isscalar(X[0]):
            table = cls._of_rows(X, names, name)
        else:
            table = cls._of_array(np.asarray(X), name)
        validation.check_shape((table.length, len(table.columns)), name)
        if table.names is not None and len(set(table.names)) < len(table.names):
            raise ValueError(f"{name} must have columns of different names. Got {table.names!r} instead.")
        return table

    @classmethod
    def _of_frame(cls, X):
        """Columns of a data frame of pandas or polars, neither of which is imported for it."""
        names = tuple(key.item() if isinstance(key, np.generic) else key for key in X.columns)
        columns, categories = [], []
        for j in range(X.shape[1]):
            column = X.iloc[:, j] if hasattr(X, "iloc") else X[X.columns[j]]
            kind, nullable = getattr(column.dtype, "kind", "O"), {}
            if type(column.dtype).__name__ in ("CategoricalDtype", "Categorical", "Enum"):
                categories.append(j)
                columns.append(column.astype(object).tolist() if hasattr(column, "iloc") else column.to_list())
                continue
            if hasattr(column, "iloc") and not isinstance(column.dtype, np.dtype):
                if kind in "fiub":
                    nullable = {"dtype": float, "na_value": np.nan}
                elif kind == "M":  # with a time zone
                    column = column.dt.tz_convert("UTC").dt.tz_localize(None)
            columns.append(_column(column.to_numpy(**nullable)))
        is_numbered = names == tuple(range(len(names)))  # as pandas does without being told
        return cls(columns, X.shape[0], None if is_numbered else names, categories)

    @classmethod
    def _of_rows(cls, rows, names, name):
        """Columns of a list of dictionaries, or of rows in one order."""
        if any(hasattr(kind, "to_dict") for kind in set(map(type, rows))):  # rows of a data frame
            for i, row in enumerate(rows):
                if getattr(row, "ndim", 1) == 2 or hasattr(row, "columns"):
                    what = "is a data frame; expected one row, such as frame.iloc[0] or a dictionary."
                    raise row_error(TypeError, i, what, name)
            rows = [row.to_dict() if hasattr(row, "to_dict") else row for row in rows]
        if not any(issubclass(kind, Mapping) for kind in set(map(type, rows))):
            return cls._of_sequences(rows, name)
        names = tuple(rows[0]) if names is None else names
        known, new = set(names), {}
        for i, row in enumerate(rows):
            if type(row) is not dict and not isinstance(row, Mapping):
                what = f": expected a dictionary, like others. Got {type(row).__name__} instead."
                raise row_error(TypeError, i, what, name)
            if not row.keys() <= known:
                new.update({key: i for key in row if key not in known and key not in new})
        columns = [[row.get(key) for row in rows] for key in names]
        return cls(columns, len(rows), names, keyed=True,
                   new={key: (i, [row.get(key) for row in rows]) for key, i in new.items()})

    @classmethod
    def _of_sequences(cls, rows, name):
        """Columns of a list of rows, none of them a dictionary."""
        if all(isinstance(row, np.ndarray) and row.dtype.kind in "fiub" for row in rows):
            if len({row.shape for row in rows}) == 1:
                return cls._of_array(np.stack(rows), name)
        rows = [row.tolist() if isinstance(row, np.ndarray) else row for row in rows]
        for i, row in enumerate(rows):
            if not isinstance(row, (list, tuple)):
                what = f": expected a list, a tuple, an array or a dictionary. Got {type(row).__name__} instead."
                raise row_error(TypeError, i, what, name)
            if len(row) != len(rows[0]):
                what = f"has {len(row)} entries; expected {len(rows[0])}, like the rows before it."
                raise row_error(ValueError, i, what, name)
        return cls([list(column) for column in zip(*rows, strict=True)], len(rows))

    @classmethod
    def _of_array(cls, X, name):
        if X.dtype.kind == "c":
            raise ValueError(f"Complex data not supported: {name} must hold real numbers, got dtype {X.dtype}.")
        validation.check_shape(X.shape, name)
        return cls([_column(X[:, j]) for j in range(X.shape[1])], len(X))

    def in_order(self, names, count, owner, name="X"):
        """The columns of earlier tables, in their order; ValueError if these are others."""
        if names is None and self.keyed:
            before = "as in the first call, where columns had no names"
            raise TypeError(f"{name} must hold lists or arrays, {before}. Got dictionaries instead.")
        if self.names is None or names is None or self.names == names:
            if len(self.columns) != count:
                raise validation.wrong_number(name, len(self.columns), owner, count)
            return self
        places = {key: j for j, key in enumerate(self.names)}
        for wrong, right, what in ((names, places, "has no column"), (places, set(names), "has the new column")):
            unknown = [key for key in wrong if key not in right]
            if unknown:
                known = ", ".join(map(repr, names[:20])) + ", ..." * (len(names) > 20)
                raise validation.WrongFeatures(f"{name} {what} {unknown[0]!r}; {owner} is expecting the columns "
                                               f"{known}.")
        order = [places[key] for key in names]
        categories = {j for j, place in enumerate(order) if place in self.categories}
        return Table([self.columns[place] for place in order], self.length, names, categories)


def _column(values):
    """An array of numbers or dates as it is, anything else as a list."""
    return values if values.dtype.kind in "fiubM" else values.tolist()
