"""A column of a table: which kind it is, and what becomes of its values."""
import numpy as np

from onlinekernels._core.errors import row_error
from onlinekernels._core.transforms import circle
from onlinekernels.nouns.formats import CONVENTIONS, NEW, Custom
from onlinekernels.nouns.values import DAY, NO_TIME, hash_of, is_missing, kind_of, word_of

__all__ = ["ALL_KINDS", "CYCLES", "DIFFERENT", "KINDS", "VARIETY", "first_kind", "kind_at", "kind_with_custom", "kind_of_array", "located", "points_of_dates", "slots_of",
           "variety_with"]

KINDS = ("number", "word", "date")
_CUSTOMS = {name: (kind, Custom(place, (0, 0))) for kind, names in CONVENTIONS.items() for place, name in enumerate(names)}
ALL_KINDS = (*KINDS, *_CUSTOMS)  # that a user may name
CYCLES = ("day", "week", "year")
YEAR = 365.2425 * DAY
VARIETY, DIFFERENT = 100, 95  # words after which it is said if nearly all were different, and how many that are


# ---- Which kind it is ---------------------------------------------------------------------------


def kind_with_custom(name):
    """(kind, how its texts are to be read) of what a user calls one.

    >>> kind_with_custom("day first")
    ('date', Custom(convention=1, doubts=(0, 0)))
    """
    return _CUSTOMS.get(name, (name, NEW))


def kind_of_array(column):
    """What an array holds, whatever its values are; None for lists."""
    return ("date" if column.dtype.kind == "M" else "number") if isinstance(column, np.ndarray) else None


def kind_at(column, row):
    """What a value of a column is; None if it is missing."""
    value = column[row]
    return None if is_missing(value) else kind_of_array(column) or kind_of(value)


def first_kind(column):
    """What the first value of a column is that is not missing; None without one."""
    return next((kind for kind in (kind_at(column, row) for row in range(len(column))) if kind is not None), None)


# ---- What becomes of its values -----------------------------------------------------------------


def slots_of(column, words, slots, learns):
    """(slot of each word, -1 for what is missing; {word: slot} with those that are new)."""
    values = column.tolist() if isinstance(column, np.ndarray) else column
    if not set(map(type, values)) <= _APART:
        values = [None if is_missing(value) else word_of(value) for value in values]
    places = [words.get(value, -2) for value in values]
    if -2 in places:
        taken, shared = dict(words), {}
        for value in dict.fromkeys(value for value, place in zip(values, places) if place == -2):
            shared[value] = -1 if is_missing(value) else _slot(word_of(value), taken, slots, learns)
        places = [shared[value] if place == -2 else place for value, place in zip(values, places)]
        words = words if len(taken) == len(words) else taken
    return np.array(places, dtype=np.intp), words


_APART = {str, type(None), float}  # values of these are only equal if they are the same word


def _slot(word, taken, slots, learns):
    """The slot of a word, which takes it if it is new and there is one."""
    slot = taken.get(word)
    if slot is None:
        slot = len(taken) if len(taken) < slots else hash_of(word) % slots
        if learns and len(taken) < slots:
            taken[word] = slot
    return slot


def variety_with(variety, column, places):
    """(variety after the words of a column, index of the word and how many were different if that is to be said, or None).

    A variety is how many words have come, and as long as they are fewer than `VARIETY` the hashes of the different ones among them.
    """
    count, *hashes = variety
    if count == VARIETY:
        return variety, None
    rows = np.flatnonzero(places >= 0)[: VARIETY - count].tolist()
    hashes = sorted({*hashes, *(hash_of(word_of(column[row])) for row in rows)})
    count += len(rows)
    if count < VARIETY:
        return (count, *hashes), None
    return (VARIETY,), (rows[-1], len(hashes)) if len(hashes) >= DIFFERENT else None


def points_of_dates(instants, origin, cycles, days, circles):
    """Write days since the first date, and points on circles; return the first date, if there is one by now."""
    there = instants != NO_TIME
    if not there.any():
        return origin
    if origin is None:
        first = int(instants[np.argmax(there)])
    days[there] = (instants[there] - (first if origin is None else origin)) / DAY
    for k, cycle in enumerate(cycles):
        elapsed, period = _ELAPSED[cycle](instants)
        circle(np.where(there, elapsed, -1), period, circles[:, 2 * k : 2 * k + 2])
    return first if origin is None else origin


def _since_new_year(instants):
    """(microseconds since the year began, how long a year is)."""
    years = instants.astype("M8[us]").astype("M8[Y]").astype("M8[us]").astype(np.int64)
    return instants - years, YEAR


_ELAPSED = {
    "day": lambda instants: (instants % DAY, DAY),
    "week": lambda instants: ((instants - 4 * DAY) % (7 * DAY), 7 * DAY),  # since Monday; 1970 began on a Thursday
    "year": _since_new_year,
}


# ---- Where it is --------------------------------------------------------------------------------


def located(read, table, j):
    """What `read` makes of column j; its TypeErrors say where in the table the value is."""
    column = table.columns[j]
    try:
        return read(column)
    except TypeError as error:
        name = j if table.names is None else table.names[j]
        for row in range(len(column)):
            try:
                kind_of(column[row])
            except TypeError as found:
                raise row_error(TypeError, row, f", column {name!r}: {found}.") from error
        raise
