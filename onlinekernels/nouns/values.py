"""What a value of a table is: a number, a word, a date, or missing; and columns of them as arrays."""
import math
import numbers
import zlib
from collections import namedtuple
from datetime import date, datetime, time, timedelta, timezone

import numpy as np

from onlinekernels.nouns.formats import NEW, Readings, date_readings, number_readings, plain_number

__all__ = ["DAY", "NO_TIME", "Read", "instants_of", "is_missing", "kind_of", "numbers_of", "word_of"]

DAY = 86_400_000_000  # microseconds
NO_TIME = np.iinfo(np.int64).min  # as NumPy has it
LONGEST = 64  # characters of a word that is remembered as it is
# Words for nothing where a number or a date is expected. Among words they are words.
HOLES = {"na", "n/a", "#n/a", "nan", "-nan", "nat", "null", "none", "<na>", "?", "-", "."}
_LENGTHS_OF_ISO = {10, 16, 19, 23, 26}  # of those without a time zone


def is_missing(value):
    """Whether a value is None, NaN, NaT, pandas' NA or an empty text.

    >>> [is_missing(value) for value in (None, float("nan"), np.datetime64("NaT", "s"), " ", "NA", 0)]
    [True, True, True, True, False, False]
    """
    if value is None or type(value).__name__ == "NAType":
        return True
    if isinstance(value, (str, bytes)):
        return not value or value.isspace()
    return isinstance(value, _CAN_BE_NAN) and bool(value != value)


_CAN_BE_NAN = (numbers.Number, np.generic, date, timedelta)


def kind_of(value):
    """"number", "word" or "date"; None for what is missing. TypeError for what is none of these.

    >>> [kind_of(value) for value in (3, "3.5", "5%", "2024-02-29", "29 Feb 2024", "12:30", "three", "n/a")]
    ['number', 'number', 'number', 'date', 'date', 'date', 'word', None]
    """
    if is_missing(value):
        return None
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    if isinstance(value, str):
        if value.strip().lower() in HOLES:
            return None
        return "number" if number_readings(value) is not None else "date" if date_readings(value) is not None else "word"
    if isinstance(value, (date, time, np.datetime64)):
        return "date"
    if isinstance(value, (list, dict, set, bytearray, np.ndarray, numbers.Complex)) and not isinstance(value, numbers.Real):
        raise TypeError(f"expected a number, a word or a date: an argument must be a string or a number. Got {value!r} instead")
    return "number" if isinstance(value, (numbers.Real, timedelta, np.timedelta64)) or _is_decimal(value) else "word"


def _is_decimal(value):
    return type(value).__module__ in ("decimal", "_pydecimal")


class Read(namedtuple("Read", "values odd custom news")):
    """A column as an array.

    values   with NaN or `NO_TIME` for what is missing
    odd      indices of what is something else, and NaN or `NO_TIME` too
    custom   how texts are to be read after these
    news     what is to be said of that: an index, "turned" or "doubtful", and the `Readings` there
    """


def _read(column, reading, missing, custom, learns):
    """A column, value by value. `reading` makes of a value a number or an instant, `Readings` of a text, or None."""
    values, odd, news = [], [], []
    for i, value in enumerate(column):
        found = reading(value, custom.convention)
        if type(found) is Readings:
            after, said = custom.after(found)
            convention = found.guess if after.convention is None else after.convention
            if learns:
                custom = after
                if said is not None:
                    news.append((i, said, found))
            found = found.values[convention]
        if found is None:
            odd.append(i)
        values.append(missing if found is None else found)
    return values, odd, custom, news


# ---- Numbers ------------------------------------------------------------------------------------


def numbers_of(column, custom=NEW, learns=False):
    """`Read` of a column of numbers, with NaN for what is missing; if it `learns`, each text says how those after it are read.

    >>> numbers_of([1, "2.5", None, "", "many", True, "$1,200"])[:2]
    (array([1.0e+00, 2.5e+00,     nan,     nan,     nan, 1.0e+00, 1.2e+03]), [4])
    >>> numbers_of(["0,5", "1.200"], learns=True).values
    array([5.0e-01, 1.2e+03])
    """
    if isinstance(column, np.ndarray):
        if column.dtype.kind == "m":
            return Read(_in_days(column), [], custom, [])
        if column.dtype.kind == "M":
            return Read(np.full(len(column), np.nan), np.flatnonzero(~np.isnat(column)).tolist(), custom, [])
        return Read(column.astype(float), [], custom, [])
    if custom.convention != 1 and set(map(type, column)) <= _EASY:
        try:
            values = np.array(column, dtype=float)
        except (ValueError, OverflowError):
            pass
        else:
            return Read(values, [], _after_points(column, custom) if learns and custom.convention is None else custom, [])
    values, odd, custom, news = _read(column, _number, math.nan, custom, learns)
    return Read(np.array(values, dtype=float), odd, custom, news)


def _after_points(column, custom):
    """How texts are to be read after a column of plain numbers, of which those with a point may tell."""
    for value in column:
        if type(value) is str and "." in value:
            custom, _ = custom.after(number_readings(value))
            if custom.convention is not None:
                break
    return custom


# What NumPy makes numbers of; of dates it would, too.
_EASY = {int, float, bool, str, type(None), np.bool_, np.float64, np.float32, np.int64, np.int32}


def _number(value, convention):
    """A value as a number, NaN if it is missing, None if it is something else; numbers beyond all floats are infinite.

    `Readings` of a text that might mean two things, or might tell what others mean.
    """
    if is_missing(value):
        return math.nan
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    if isinstance(value, str):
        if value.strip().lower() in HOLES:
            return math.nan
        plain = plain_number(value) if convention == 0 or "." not in value else None
        return number_readings(value) if plain is None else plain
    if kind_of(value) != "number":
        return None
    if isinstance(value, (timedelta, np.timedelta64)):
        return float(_in_days(np.array([value], dtype="m8[us]"))[0])
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _in_days(durations):
    return np.where(np.isnat(durations), np.nan, durations.astype("m8[us]").astype(np.int64) / DAY)


# ---- Dates --------------------------------------------------------------------------------------


def instants_of(column, custom=NEW, learns=False):
    """`Read` of a column of dates, microseconds since 1970 as int64, with `NO_TIME` for what is missing; see `numbers_of`.

    >>> instants_of(["1970-01-02", None, "1970-01-01T00:00:01+00:00", "soon"]).values // 10**6
    array([          86400, -9223372036855,               1, -9223372036855])
    """
    if isinstance(column, np.ndarray):
        if column.dtype.kind == "M":
            return Read(column.astype("M8[us]").astype(np.int64), [], custom, [])
        odd = np.flatnonzero(~(np.isnat(column) if column.dtype.kind == "m" else np.isnan(column)))
        return Read(np.full(len(column), NO_TIME), odd.tolist(), custom, [])
    plain = [_plain_time(value) for value in column]
    if None not in plain:
        try:
            return Read(np.array(plain, dtype="M8[us]").astype(np.int64), [], custom, [])
        except ValueError:
            pass
    values, odd, custom, news = _read(column, _instant, NO_TIME, custom, learns)
    return Read(np.array(values, dtype=np.int64), odd, custom, news)


def _plain_time(value):
    """A date as NumPy reads it, perhaps; None for what needs a closer look, such as a time zone."""
    if type(value) is str:
        if len(value) in _LENGTHS_OF_ISO and value[4] == "-":
            return value
    elif isinstance(value, datetime) and value.tzinfo is None and value == value:
        return value
    return "NaT" if is_missing(value) else None


def _instant(value, convention):
    """Microseconds since 1970, `NO_TIME` if it is missing, None for what is no date; `Readings` of a text."""
    if is_missing(value):
        return NO_TIME
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    if isinstance(value, str):
        return NO_TIME if value.strip().lower() in HOLES else date_readings(value)
    if isinstance(value, datetime) and value.tzinfo is not None:
        value = value.astimezone(timezone.utc).replace(tzinfo=None)
    if isinstance(value, time):
        value = datetime.combine(date(1970, 1, 1), value.replace(tzinfo=None))
    if not isinstance(value, (date, np.datetime64)):
        return None
    return int(np.datetime64(value).astype("M8[us]").astype(np.int64))


# ---- Words --------------------------------------------------------------------------------------


def word_of(value):
    """A value as a word of bounded length: whole numbers look the same as integers and as floats.

    >>> word_of("red"), word_of(3.0), word_of(True), len(word_of("ab" * 1000)) <= LONGEST
    ('red', '3', 'True', True)
    """
    if not isinstance(value, str):
        if isinstance(value, bytes):
            value = value.decode(errors="replace")
        kind_of(value)  # refuses what is no word
        if isinstance(value, (float, np.floating)) and math.isfinite(value) and value == np.floor(value):
            value = int(value)
    word = str(value).strip()
    return word if len(word) <= LONGEST else f"{word[: LONGEST - 9]}~{hash_of(word):08x}"


def hash_of(word):
    """A number below 2**32 that is the same in all processes."""
    return zlib.crc32(word.encode("utf-8", "surrogatepass"))
