"""What an encoder knows of the columns so far, and where in a row it writes each part of each."""
import functools
from collections import namedtuple

import numpy as np

from onlinekernels.nouns.columns import CYCLES, KINDS, VARIETY
from onlinekernels.nouns.formats import MANY, Custom

__all__ = ["Known", "Layout"]


class Known(namedtuple("Known", "names kinds layouts slots cycles indicators memory words variety customs origins mean count "
                                "shown odd rows")):
    """All that an encoder knows, one entry for each column where it is a tuple or an array; never changed, only replaced.

    names       of the columns, or None
    kinds       "number", "word", "date", or None as long as nothing has come
    layouts     kinds when the first row came, which decided what there is room for; None has room for all
    slots, cycles, indicators, memory
                parameters in force
    words       {word: its slot}
    variety     how many words have come, up to `VARIETY`, and before that hashes of those, see `variety_with`
    customs     how texts are to be read, see `Custom`
    origins     the first date, in microseconds since 1970, or None
    mean, count, shown
                of the numbers so far, see the core
    odd         how many values were not of the kind of their column
    rows        taken in so far
    """

    @property
    def layout(self):
        """Where in a row each part of each column is."""
        return Layout.of(self.layouts, self.slots, len(self.cycles), self.indicators)

    def name(self, j):
        """What column j is called."""
        return f"x{j}" if self.names is None else self.names[j]

    def names_out(self):
        """What each column that comes out is, as of now."""
        names = [""] * self.layout.width
        for j, place in zip(self.layout.numbers, self.layout.places, strict=True):
            names[place] = f"{self.name(j)}"
        for j, begin in self.layout.words.items():
            names[begin : begin + self.slots] = [f"{self.name(j)}#{slot}" for slot in range(self.slots)]
            for word, slot in self.words[j].items():
                names[begin + slot] = f"{self.name(j)}={word}"
        for j, begin in self.layout.cycles.items():
            parts = [f"{self.name(j)} {cycle} {part}" for cycle in self.cycles for part in ("sin", "cos")]
            names[begin : begin + len(parts)] = parts
        for j, place in enumerate(self.layout.missing):
            names[place] = f"{self.name(j)} is missing"
        return names

    def plain(self):
        """All of it as plain numbers, words and lists."""
        plain = self._asdict()
        plain.update(names=None if self.names is None else list(self.names), words=[list(words) for words in self.words])
        for name in ("kinds", "layouts", "cycles", "origins", "odd"):
            plain[name] = list(plain[name])
        plain["variety"] = [list(variety) for variety in self.variety]
        plain["customs"] = [[custom.convention, *custom.doubts] for custom in self.customs]
        for name in ("mean", "count"):
            plain[name] = plain[name].tolist()
        # whether at most two values were shown, and these; infinite before the first is None
        plain["shown"] = [[None if np.isinf(v) else "many" if np.isnan(v) else v for v in row] for row in self.shown.tolist()]
        return plain

    @classmethod
    def restored(cls, learned):
        """What `plain` described; ValueError if its parts do not fit each other."""
        if not isinstance(learned, dict) or set(learned) != set(cls._fields):
            raise ValueError("the encoder lacks a part")
        n, slots, rows = len(learned["kinds"]), learned["slots"], learned["rows"]
        lists = ("layouts", "words", "variety", "customs", "origins", "mean", "count", "odd")
        if not n or any(len(learned[name]) != n for name in lists) or [len(row) for row in learned["shown"]] != [n, n]:
            raise ValueError("the parts of the encoder do not fit its columns")
        for number in (slots, rows, *learned["odd"], *(origin or 0 for origin in learned["origins"])):
            if type(number) is not int or abs(number) >= 2**63:
                raise ValueError("the encoder's counts are not whole numbers")
        for before, kind in zip(learned["layouts"], learned["kinds"], strict=True):
            if kind not in (None, *KINDS) or before not in (None, kind):
                raise ValueError("the encoder's columns are of no kind that there is")
        is_sound = 1 <= slots <= 2**20 and rows >= 1 and min(learned["odd"]) >= 0
        is_sound = is_sound and isinstance(learned["indicators"], bool) and set(learned["cycles"]) <= set(CYCLES)
        for words in learned["words"]:
            is_sound = is_sound and len(words) == len(set(words)) <= slots and all(isinstance(word, str) for word in words)
        for count, *hashes in learned["variety"]:
            numbers = (count, *hashes)
            is_sound = is_sound and all(type(number) is int and 0 <= number < 2**32 for number in numbers)
            is_sound = is_sound and len(set(hashes)) == len(hashes) <= count <= VARIETY and (count < VARIETY or not hashes)
        for convention, *doubts in learned["customs"]:
            is_sound = is_sound and (convention is None or type(convention) is int and convention in (0, 1)) and len(doubts) == 2
            is_sound = is_sound and all(type(doubt) is int and 0 <= doubt <= MANY for doubt in doubts)
        names = learned["names"]
        is_sound = is_sound and (names is None or len(set(names)) == len(names) == n)
        mean, count = np.array(learned["mean"], dtype=float), np.array(learned["count"], dtype=float)
        shown = np.array([[np.inf if v is None else np.nan if v == "many" else v for v in row] for row in learned["shown"]])
        memory = learned["memory"]
        is_sound = is_sound and np.isfinite(mean).all() and (0.0 <= count).all() and (count <= rows).all()
        if not is_sound or not isinstance(memory, float) or not 0.0 < memory <= 1.0 or shown.dtype != float:
            raise ValueError("what the encoder has seen makes no sense")
        parts = {name: tuple(learned[name]) for name in ("kinds", "layouts", "cycles", "origins", "odd")}
        words = tuple({word: slot for slot, word in enumerate(words)} for words in learned["words"])
        parts["variety"] = tuple(map(tuple, learned["variety"]))
        parts["customs"] = tuple(Custom(convention, tuple(doubts)) for convention, *doubts in learned["customs"])
        return cls(**{**learned, **parts, "names": None if names is None else tuple(names), "words": words, "mean": mean,
                      "count": count, "shown": shown})


class Layout:
    """Where in an encoded row each part of each column is, for kinds that columns had when the first row came.

    Attributes
    ----------
    numbers, places : arrays of int
        Columns that have a number, and where it is.
    words, cycles : dict of int to int
        Where the slots, and the points on circles, of a column begin.
    missing : list of int
        Where it is told that a column was missing, if it is.
    owners : array of int
        The column that each place belongs to.
    width : int
    """

    def __init__(self, kinds, slots, cycles, indicators):
        numbers, places, self.words, self.cycles, self.missing, at = [], [], {}, {}, [], 0
        owners = []
        for j, kind in enumerate(kinds):
            if kind != "word":
                numbers.append(j)
                places.append(at)
                at += 1
            if kind in ("date", None):
                self.cycles[j] = at
                at += 2 * cycles
            if kind in ("word", None):
                self.words[j] = at
                at += slots
            if indicators:
                self.missing.append(at)
                at += 1
            owners += [j] * (at - len(owners))
        self.owners = np.array(owners, dtype=np.intp)
        self.numbers, self.places, self.width = np.array(numbers, dtype=np.intp), np.array(places, dtype=np.intp), at

    of = staticmethod(functools.lru_cache(maxsize=64)(lambda *how: Layout(*how)))
