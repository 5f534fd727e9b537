"""Values of a table: what each of them is, and columns of them as arrays of numbers, instants and slots.

What a value is, and what is made of it, depends on the value and on the kind of its column alone, never on the
values beside it: where a whole column is converted at once, that is a fast way to the same result.
"""
import math
import numbers
import re
import zlib
from datetime import date, datetime, time, timedelta

import numpy as np

__all__ = ["DAY", "NO_TIME", "hash_of", "instants_of", "is_missing", "kind_of", "kind_of_array", "numbers_of",
           "slots_of", "word_of"]

DAY = 86_400_000_000  # microseconds
NO_TIME = np.iinfo(np.int64).min  # as NumPy has it
LONGEST = 64  # characters of a word that is remembered as it is
# Texts for nothing where a number or a date is expected. Among words they are words.
HOLES = {"na", "n/a", "#n/a", "nan", "-nan", "nat", "null", "none", "<na>", "?", "-", "."}


# ---- One value ----------------------------------------------------------------------------------


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

    >>> [kind_of(value) for value in (3, "3.5", "1_000", "2024-02-29", "2024-02-30", "12:30", "three", "n/a")]
    ['number', 'number', 'word', 'date', 'word', 'date', 'word', None]
    """
    if is_missing(value):
        return None
    if isinstance(value, (str, bytes)):
        text = _text(value)
        if text.lower() in HOLES:
            return None
        return "number" if _number_in(text) is not None else "date" if _instant_in(text) is not None else "word"
    if isinstance(value, (date, time, np.datetime64)):
        return "date"
    if isinstance(value, (numbers.Real, timedelta, np.timedelta64)) or _is_decimal(value):
        return "number"
    if isinstance(value, (list, dict, set, bytearray, np.ndarray, numbers.Complex)):
        raise TypeError(
            f"expected a number, a word or a date: an argument must be a string or a number. Got {value!r} instead"
        )
    return "word"


def _is_decimal(value):
    return type(value).__module__ in ("decimal", "_pydecimal")


def _text(value):
    return (value.decode(errors="replace") if isinstance(value, bytes) else value).strip()


def _number(value):
    """A value as a number: NaN if it is missing, infinite beyond all floats; None if it is something else."""
    if is_missing(value):
        return math.nan
    if isinstance(value, (str, bytes)):
        text = _text(value)
        return math.nan if text.lower() in HOLES else _number_in(text)
    if kind_of(value) != "number":
        return None
    if isinstance(value, (timedelta, np.timedelta64)):
        return float(_in_days(np.array([value], dtype="m8[us]"))[0])
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _number_in(text):
    """The number that a text is, as Python's `float` reads it, or None. Python's 1_000 is a word to everybody else."""
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None


def _instant(value):
    """Microseconds since 1970, in UTC; `NO_TIME` for a value that is missing, None for one that is no date."""
    if is_missing(value):
        return NO_TIME
    if isinstance(value, (str, bytes)):
        text = _text(value)
        return NO_TIME if text.lower() in HOLES else _instant_in(text)
    if isinstance(value, time):
        value = datetime.combine(date(1970, 1, 1), value.replace(tzinfo=None))
    if not isinstance(value, (date, np.datetime64)):
        return None
    away = timedelta(0)
    if isinstance(value, datetime) and value.tzinfo is not None:
        value, away = value.replace(tzinfo=None), value.utcoffset() or away
    return int(np.datetime64(value).astype("M8[us]").astype(np.int64)) - away // _MICROSECOND


_EPOCH, _MICROSECOND = datetime(1970, 1, 1), timedelta(microseconds=1)
_DATE = r"(\d{4})-(\d\d)-(\d\d)"
_CLOCK = r"(\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?"
_ZONE = r"(?: ?(?:Z|([+-])([01]\d|2[0-3])(?::?([0-5]\d))?))?"
_ISO = re.compile(f"{_DATE}(?:[T ]{_CLOCK}{_ZONE})?", re.ASCII | re.IGNORECASE)
_TIME_OF_DAY = re.compile(_CLOCK, re.ASCII)


def _instant_in(text):
    """Microseconds since 1970 of a date of ISO 8601, perhaps with a time and a zone, or of a time in 1970; or None.

    >>> [_instant_in(text) for text in ("1970-01-02", "1970-01-01 01:00:02,5+01", "00:01", "2.1.1970")]
    [86400000000, 2500000, 60000000, None]
    """
    found = _ISO.fullmatch(text)
    if found is not None:
        *parts, fraction, sign, hours, minutes = found.groups()
    else:
        found = _TIME_OF_DAY.fullmatch(text)
        if found is None:
            return None
        *clock, fraction = found.groups()
        parts, sign = (1970, 1, 1, *clock), None
    try:
        at = datetime(*(int(part or 0) for part in parts), int((fraction or "").ljust(6, "0")[:6]))
    except ValueError:  # there is no such day or time
        return None
    instant = (at - _EPOCH) // _MICROSECOND
    if sign is None:
        return instant
    away = (60 * int(hours) + int(minutes or 0)) * 60_000_000
    return instant - away if sign == "+" else instant + away


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


# ---- A column -----------------------------------------------------------------------------------


def kind_of_array(column):
    """What an array holds, whatever its values are; None for lists."""
    return ("date" if column.dtype.kind == "M" else "number") if isinstance(column, np.ndarray) else None


def numbers_of(column):
    """(numbers of a column, with NaN for what is missing or no number; indices of what is no number).

    >>> numbers_of([1, "2.5", None, "", "many", True, "1_000"])
    (array([1. , 2.5, nan, nan, nan, 1. , nan]), [4, 6])
    """
    if isinstance(column, np.ndarray):
        if column.dtype.kind == "m":
            return _in_days(column), []
        if column.dtype.kind == "M":
            return np.full(len(column), np.nan), np.flatnonzero(~np.isnat(column)).tolist()
        return column.astype(float), []
    types = set(map(type, column))
    try:
        if types <= _NUMBERS:
            return np.array(column, dtype=float), []
        if types <= _TEXTS and "_" not in "".join(column if types == {str} else [v for v in column if type(v) is str]):
            return np.array([_AS_NAN.get(value, value) for value in column], dtype=float), []
    except (ValueError, OverflowError):
        pass
    values = [_number(value) for value in column]
    return np.array(values, dtype=float), [i for i, value in enumerate(values) if value is None]


# What NumPy makes numbers of, or NaN; of dates it would, too.
_NUMBERS = {int, float, bool, type(None), np.bool_, np.float64, np.float32, np.int64, np.int32}
_TEXTS = {str, float, type(None)}
_AS_NAN = dict.fromkeys((None, "", *HOLES, *map(str.upper, HOLES), "NaN", "NaT", "None"), math.nan)


def _in_days(durations):
    return np.where(np.isnat(durations), np.nan, durations.astype("m8[us]").astype(np.int64) / DAY)


def instants_of(column):
    """(microseconds since 1970 as int64, with `NO_TIME` for what is missing or no date; indices of what is no date).

    >>> instants, invalid = instants_of(["1970-01-02", None, "1970-01-01T00:00:01+00:00", "soon"])
    >>> (instants // 10**6).tolist(), invalid
    ([86400, -9223372036855, 1, -9223372036855], [3])
    """
    if isinstance(column, np.ndarray):
        if column.dtype.kind == "M":
            return column.astype("M8[us]").astype(np.int64), []
        is_invalid = ~(np.isnat(column) if column.dtype.kind == "m" else np.isnan(column))
        return np.full(len(column), NO_TIME), np.flatnonzero(is_invalid).tolist()
    plain = _plain_instants(column)
    if plain is not None:
        return plain, []
    values = [_instant(value) for value in column]
    invalid = [i for i, value in enumerate(values) if value is None]
    return np.array([NO_TIME if value is None else value for value in values], dtype=np.int64), invalid


# Lines of texts that NumPy reads as `_instant_in` does; it has a year 0, too, and no zones but Z.
_PLAIN_LINES = re.compile(r"(?:(?:(?!0000)\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?Z?)?)?\n)*", re.ASCII)


def _plain_instants(column):
    """Instants of a column of texts, or of `datetime` without a zone, by NumPy; None where it needs a closer look."""
    types = set(map(type, column))
    if types <= _TEXTS:
        if types != {str}:
            column = [value if type(value) is str else "" if is_missing(value) else "?" for value in column]
        lines = "\n".join(column) + "\n"
        if _PLAIN_LINES.fullmatch(lines) is None:
            return None
        length, column = len(column), lines.replace("Z", "").split("\n")[:-1]
        if len(column) != length:  # a text of several lines
            return None
    elif types != {datetime} or any(value.tzinfo is not None for value in column):
        return None
    try:
        return np.array(column, dtype="M8[us]").astype(np.int64)
    except ValueError:  # there is no such day or time
        return None


def slots_of(column, words, slots, learns):
    """(slot of each word, -1 for what is missing; {word: slot}, with those that are new if it learns).

    >>> slots_of(["red", None, "blue", "red"], {"blue": 0}, 2, True)
    (array([ 1, -1,  0,  1]), {'blue': 0, 'red': 1})
    """
    values = column.tolist() if isinstance(column, np.ndarray) else column
    if not set(map(type, values)) <= _TEXTS:  # values of these types are only equal if they are the same word
        values = [None if is_missing(value) else word_of(value) for value in values]
    found, after = dict.fromkeys(values), words
    for value in found:
        slot = words.get(value)
        if slot is None:
            slot = -1
            if not is_missing(value):
                word = word_of(value)
                slot = after.get(word)
                if slot is None:
                    slot = len(after) if len(after) < slots else hash_of(word) % slots
                    if learns and len(after) < slots:
                        after = dict(words) if after is words else after
                        after[word] = slot
        found[value] = slot
    return np.fromiter(map(found.__getitem__, values), np.intp, len(values)), after
