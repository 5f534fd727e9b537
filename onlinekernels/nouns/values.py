"""What a value of a table is: a number, a word, a date, or missing; and columns of them as arrays."""
import math
import numbers
import re
import zlib
from datetime import date, datetime, timedelta, timezone

import numpy as np

__all__ = ["DAY", "NO_TIME", "instants_of", "is_missing", "kind_of", "numbers_of", "word_of"]

DAY = 86_400_000_000  # microseconds
NO_TIME = np.iinfo(np.int64).min  # as NumPy has it
LONGEST = 64  # characters of a word that is remembered as it is
# Words for nothing where a number or a date is expected. Among words they are words.
HOLES = {"na", "n/a", "#n/a", "nan", "-nan", "nat", "null", "none", "<na>", "?", "-", "."}
_ISO = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?\d*\s?(?:Z|[+-]\d\d:?\d\d)?)?")
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

    >>> kind_of(3), kind_of("3.5"), kind_of("2024-02-29"), kind_of("three"), kind_of("n/a")
    ('number', 'number', 'date', 'word', None)
    """
    if is_missing(value):
        return None
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    if isinstance(value, str):
        if value.strip().lower() in HOLES:
            return None
        return "number" if _read(value) is not None else "date" if _instant(value) is not None else "word"
    if isinstance(value, (date, np.datetime64)):
        return "date"
    if isinstance(value, (list, dict, set, bytearray, np.ndarray, numbers.Complex)) and not isinstance(value, numbers.Real):
        raise TypeError(f"expected a number, a word or a date: an argument must be a string or a number. Got {value!r} instead")
    return "number" if isinstance(value, (numbers.Real, timedelta, np.timedelta64)) or _is_decimal(value) else "word"


def _is_decimal(value):
    return type(value).__module__ in ("decimal", "_pydecimal")


# ---- Numbers ------------------------------------------------------------------------------------


def numbers_of(column):
    """(numbers, with NaN for what is missing; indices of what is something else, and NaN too).

    >>> numbers_of([1, "2.5", None, "", "many", True])
    (array([1. , 2.5, nan, nan, nan, 1. ]), [4])
    """
    if isinstance(column, np.ndarray):
        if column.dtype.kind == "m":
            return _in_days(column), []
        if column.dtype.kind == "M":
            return np.full(len(column), np.nan), np.flatnonzero(~np.isnat(column)).tolist()
        return column.astype(float), []
    if set(map(type, column)) <= _EASY:
        try:
            return np.array(column, dtype=float), []
        except (ValueError, OverflowError):
            pass
    values = [_number(value) for value in column]
    odd = [i for i, value in enumerate(values) if value is None]
    return np.array(values, dtype=float), odd


# What NumPy makes numbers of; of dates it would, too.
_EASY = {int, float, bool, str, type(None), np.bool_, np.float64, np.float32, np.int64, np.int32}


def _number(value):
    """A value as a number, NaN if it is missing, None if it is something else; numbers beyond all floats are infinite."""
    if is_missing(value):
        return math.nan
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    if isinstance(value, str):
        return math.nan if value.strip().lower() in HOLES else _read(value)
    if kind_of(value) != "number":
        return None
    if isinstance(value, (timedelta, np.timedelta64)):
        return float(_in_days(np.array([value], dtype="m8[us]"))[0])
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _read(text):
    """The number that a text means, or None."""
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None


def _in_days(durations):
    return np.where(np.isnat(durations), np.nan, durations.astype("m8[us]").astype(np.int64) / DAY)


# ---- Dates --------------------------------------------------------------------------------------


def instants_of(column):
    """(microseconds since 1970 as int64, `NO_TIME` for what is missing; indices of what is something else, and `NO_TIME` too).

    >>> instants_of(["1970-01-02", None, "1970-01-01T00:00:01+00:00", "soon"])[0] // 10**6
    array([          86400, -9223372036855,               1, -9223372036855])
    """
    if isinstance(column, np.ndarray):
        if column.dtype.kind == "M":
            return column.astype("M8[us]").astype(np.int64), []
        odd = np.flatnonzero(~(np.isnat(column) if column.dtype.kind == "m" else np.isnan(column)))
        return np.full(len(column), NO_TIME), odd.tolist()
    plain = [_plain_time(value) for value in column]
    if None not in plain:
        try:
            return np.array(plain, dtype="M8[us]").astype(np.int64), []
        except ValueError:
            pass
    values = [NO_TIME if is_missing(value) else _instant(value) for value in column]
    odd = [i for i, value in enumerate(values) if value is None and not _is_hole(column[i])]
    return np.array([NO_TIME if value is None else value for value in values], dtype=np.int64), odd


def _plain_time(value):
    """A date as NumPy reads it, perhaps; None for what needs a closer look, such as a time zone."""
    if type(value) is str:
        if len(value) in _LENGTHS_OF_ISO and value[4] == "-":
            return value
    elif isinstance(value, datetime) and value.tzinfo is None and value == value:
        return value
    return "NaT" if is_missing(value) else None


def _is_hole(value):
    return isinstance(value, str) and value.strip().lower() in HOLES


def _instant(value):
    """Microseconds since 1970, or None for what is no date."""
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    if isinstance(value, str):
        text = value.strip()
        if not _ISO.fullmatch(text):
            return None
        try:
            value = datetime.fromisoformat(text.replace("Z", "+00:00"))
        except ValueError:
            return None
    if isinstance(value, datetime) and value.tzinfo is not None:
        value = value.astimezone(timezone.utc).replace(tzinfo=None)
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
