"""What a text means that is a number or a date, in the forms in which people write them.

Most texts mean one thing. Some mean one of two, and only other texts of their column can tell: 1,234 is a whole number where the point
is decimal, and hardly more than 1 where the comma is; 03/04/2024 is in March where months come first, and in April where days do.
So a text has two readings, one by each convention, alike if it makes no difference, and None where it cannot be meant so.
"""
import functools
import re
from collections import namedtuple
from datetime import datetime, timedelta, timezone

__all__ = ["CONVENTIONS", "MANY", "NEW", "READINGS", "Custom", "Readings", "date_readings", "number_readings", "plain_number"]

MANY = 30  # texts that are read by a guess before that is said
CONVENTIONS = {"number": ("decimal point", "decimal comma"), "date": ("month first", "day first")}


class Readings(namedtuple("Readings", "values guess usual")):
    """What a text may mean.

    values   by the first and by the second convention of its kind; None where it cannot be meant so
    guess    the convention, 0 or 1, that it is read by as long as nothing tells
    usual    whether nearly everybody who writes so means it so
    """

    @property
    def decides(self):
        """The convention that must hold in the column of this text; None if both may."""
        return None if None not in self.values else int(self.values[0] is None)

    @property
    def is_ambiguous(self):
        """Whether it means one thing by one convention, and another by the other."""
        return None not in self.values and self.values[0] != self.values[1]


class Custom(namedtuple("Custom", "convention doubts")):
    """How the texts of a column are to be read, by what it has shown; never changed, only replaced.

    convention   0 or 1, by the first text that can be meant by one alone; None before it
    doubts       how many texts that mean another thing by each convention were read by it before that; at most `MANY`
    """

    def after(self, readings):
        """(how texts are to be read after this one as well, what is to be said of that: "turned", "doubtful" or None)."""
        if self.convention is not None:
            return self, None
        decided = readings.decides
        if decided is not None:
            return Custom(decided, self.doubts), "turned" if self.doubts[1 - decided] else None
        count = self.doubts[readings.guess]
        if count == MANY or not readings.is_ambiguous:
            return self, None
        doubts = (count + 1, self.doubts[1]) if readings.guess == 0 else (self.doubts[0], count + 1)
        return Custom(None, doubts), "doubtful" if count + 1 == MANY and not readings.usual else None


NEW = Custom(None, (0, 0))

# ---- Numbers ------------------------------------------------------------------------------------

_CURRENCY = r"(?:[$€£¥₹]|(?:USD|EUR|GBP|CHF|JPY|CNY|INR|CAD|AUD)(?![A-Za-z]))"
_AMOUNT = re.compile(rf"([+−-]?)\s?(?:{_CURRENCY}\s?)?([+−-]?)([\d.,'’ \u00a0\u202f]+)([eE][+-]?\d+)?\s?(?:%|{_CURRENCY})?")
_SPACES = " '’\u00a0\u202f"  # between thousands, wherever one is


def _digits(point, comma):
    """What digits look like where `point` is decimal, and thousands have a `comma` or a space between them."""
    return re.compile(rf"(?:\d+|[1-9]\d{{0,2}}(?:{comma}\d{{3}})+|[1-9]\d{{0,2}}(?:[{_SPACES}]\d{{3}})+)(?:{point}\d*)?|{point}\d+")


_DIGITS = _digits(r"\.", ","), _digits(",", r"\.")
_AS_POINT = str.maketrans("", "", "," + _SPACES), str.maketrans(",", ".", "." + _SPACES)


def number_readings(text):
    """What a text may mean as a number; None if nothing. A percentage is so many percent, an amount of money the amount.

    >>> number_readings("1.234,5 €").values, number_readings("1,234").values, number_readings("5%").values
    ((None, 1234.5), (1234.0, 1.234), (5.0, 5.0))
    """
    plain = plain_number(text)
    found = _AMOUNT.fullmatch(text.strip())
    if found is None or (found[1] and found[2]):
        return None if plain is None else Readings((plain, plain), 0, True)
    digits = found[3].strip()
    values = tuple(
        float(digits.translate(table) + (found[4] or "")) * (-1.0 if found[1] + found[2] in ("-", "−") else 1.0)
        if form.fullmatch(digits) else None
        for form, table in zip(_DIGITS, _AS_POINT, strict=True)
    )
    usual = plain is not None or any(sign in text for sign in "$£¥₹")  # where these are, a comma is between thousands
    return None if values == (None, None) else Readings(values, 0, usual)


def plain_number(text):
    """The number that Python reads in a text, or None."""
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None


# ---- Dates --------------------------------------------------------------------------------------

_MONTHS = {name: i + 1 for i, name in enumerate("jan feb mar apr may jun jul aug sep oct nov dec".split())}
_NAME = (r"(?P<name>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|"
         r"nov(?:ember)?|dec(?:ember)?)\.?")
_CLOCK = r"(?P<hour>\d{1,2}):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:[.,](?P<fraction>\d{1,9}))?)?\s?(?P<half>[ap]\.?m\.?)?"
_ZONE = r"(?:\s?(?P<zone>z|utc|gmt|[+-]\d\d:?\d\d))?"
_YEAR = r"(?P<year>\d{4}|\d\d)"
_DAYS = [
    r"(?P<year>\d{4})(?P<mark>[/.-])(?P<month>\d{1,2})(?P=mark)(?P<day>\d{1,2})",
    r"(?P<one>\d{1,2})(?P<mark>[/.-])(?P<other>\d{1,2})(?P=mark)(?P<year>\d{4})",
    r"(?P<one>\d{1,2})(?P<mark>/)(?P<other>\d{1,2})/(?P<year>\d\d)",
    r"(?P<one>\d\d)(?P<mark>\.)(?P<other>\d\d)\.(?P<year>\d\d)",
    rf"(?:[a-z]{{3,9}},?\s)?(?P<day>\d{{1,2}})(?:st|nd|rd|th|\.)?[\s/-]?{_NAME}[\s/,-]{{0,2}}{_YEAR}",
    rf"(?:[a-z]{{3,9}},?\s)?{_NAME}\s(?P<day>\d{{1,2}})(?:st|nd|rd|th)?,?\s(?P<year>\d{{4}})",
]
_DATES = [re.compile(rf"{day}(?:[\sT,:]{{1,2}}{_CLOCK}{_ZONE})?", re.IGNORECASE) for day in _DAYS]
_TIME_OF_DAY = re.compile(_CLOCK, re.IGNORECASE)
_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)


@functools.lru_cache(maxsize=4096)
def date_readings(text):
    """What a text may mean as a date, in microseconds since 1970; None if nothing. A time of day alone is one of the first day.

    >>> march, april = date_readings("03/04/2024").values
    >>> (april - march) // 86_400_000_000, date_readings("14.03.2024").values[0] is None
    (30, True)
    """
    text = text.strip()
    found = _TIME_OF_DAY.fullmatch(text)
    if found is not None:
        instant = _instant(1970, 1, 1, found.groupdict())
        return None if instant is None else Readings((instant, instant), 0, True)
    parts = next((found.groupdict() for found in (form.fullmatch(text) for form in _DATES) if found), None)
    if parts is None:
        return None
    year = int(parts["year"])
    if len(parts["year"]) == 2:
        year += 2000 if year < 69 else 1900  # as POSIX has it
    if "one" in parts:
        one, other = int(parts["one"]), int(parts["other"])
        values = _instant(year, one, other, parts), _instant(year, other, one, parts)
        guess = 0 if parts["mark"] == "/" else 1
        return None if values == (None, None) else Readings(values, guess, parts["mark"] == ".")
    month = int(parts["month"]) if "month" in parts else _MONTHS[parts["name"][:3].lower()]
    instant = _instant(year, month, int(parts["day"]), parts)
    return None if instant is None else Readings((instant, instant), 0, True)


def _instant(year, month, day, clock):
    """Microseconds since 1970, or None if there is no such day or time."""
    hour, half = int(clock["hour"] or 0), (clock["half"] or "").lower()
    if half:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + 12 * half.startswith("p")
    fraction = int(((clock["fraction"] or "") + "000000")[:6])
    try:
        at = datetime(year, month, day, hour, int(clock["minute"] or 0), int(clock["second"] or 0), fraction)
        zone = (clock.get("zone") or "z").lower()
        if zone[0] in "+-":
            away = timedelta(hours=int(zone[1:3]), minutes=int(zone[-2:]))
            at = (at.replace(tzinfo=timezone(-away if zone[0] == "-" else away))).astimezone(timezone.utc).replace(tzinfo=None)
    except (ValueError, OverflowError):
        return None
    return (at - _EPOCH) // _MICROSECOND


READINGS = {"number": number_readings, "date": date_readings}
