"""Tables as commands read them: CSV, TSV and JSON lines, also compressed or from live pipes, and .npz.

Python's `csv` splits text into fields. A column whose first value is a number holds numbers; any other holds text, of
which the model's encoder makes dates and categories. An error about a row names its line and its column.
"""
import codecs
import csv
import gzip
import hashlib
import io
import json
import math
import os
import re
import select
import stat
import sys
import zipfile
import zlib
from contextlib import ExitStack
from itertools import chain, islice
from time import monotonic
from typing import NamedTuple

import numpy as np

from onlinekernels.base.labelvalues import label_array

NO_TARGET = "none"
PAUSE = 0.1  # seconds that a row on a pipe waits for others at most
LONGEST = 1 << 24  # characters of a line
AT_A_TIME = 1 << 16  # bytes that are read at once
HOLES = {"", "na", "n/a", "#n/a", "<na>", "nan", "null", "none"}  # where a number is expected, as pandas has it
DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+(e[+-]?\d+)?", re.IGNORECASE)
DELIMITERS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
JSON_LINES = (".jsonl", ".ndjson")


class Refused(ValueError):
    """The options do not fit the table; ends with status 2."""


class ChangedFile(ValueError):
    """A file is not what it was when it was read up to the place from which to go on."""


class Chunk(NamedTuple):
    """Some rows of a table."""

    X: np.ndarray  # of numbers, or of objects if there is text among them
    y: list | None  # the target's texts
    lines: list  # where the rows are
    skipped: list  # where bad rows are that were left out
    rows: int  # rows of the file up to here, bad ones included
    last: str  # digest of the last of them


def file_behind(source):
    """What `os.stat` says of a source's file, None where there is none."""
    try:
        return os.fstat(sys.stdin.fileno()) if source == "-" else os.stat(source)
    except (OSError, ValueError, AttributeError):
        return None


class Table:
    """The table in a source, as the arguments describe it, with the columns that a model has learned, if there is one.

    `target` is a column, or None.
    """

    def __init__(self, source, arguments, interruption, target=None, model=None):
        self.source, self.arguments, self.interruption, self.target = source, arguments, interruption, target
        self.name = "standard input" if source == "-" else source
        self.expected = list(model.feature_names_in_) if hasattr(model, "feature_names_in_") else None
        self.kinds = None  # what the columns hold: whether numbers, None where no value has come
        if hasattr(model, "encoder_"):
            self.kinds = [kind and kind == "number" for kind in model.encoder_.kinds_.values()]
        elif getattr(model, "t_", 0):  # it learned arrays of numbers
            self.kinds = [True] * model.n_features_in_
        extension = os.path.splitext(source.removesuffix(".gz"))[1].lower()
        self.is_archive = extension == ".npz"
        self.is_json = extension in JSON_LINES or source == "-" and arguments.json
        self.delimiter = arguments.delimiter or DELIMITERS.get(extension, "," if source == "-" else None)
        if not (self.is_archive or self.is_json or self.delimiter):
            known = ".csv, .tsv, .tab, .jsonl, .ndjson (each also .gz) or .npz, or - for standard input"
            raise Refused(f"data must be a file that ends in {known} (or give --delimiter). Got {source!r} instead.")
        found = file_behind(source)
        self.can_reopen = source != "-" and (found is None or stat.S_ISREG(found.st_mode))
        self.is_live = not self.can_reopen and not source.endswith(".gz")
        self.position, self.count, self.is_between = 0, 0, True  # bytes and lines so far; whether no row has begun
        self.keys = self.names = None  # of JSON objects; of all columns
        self.header = ""  # its digest

    def chunks(self, start=None):
        """Yield the chunks, those after a place `start` if it is given and nothing has changed before it."""
        with ExitStack() as files:
            records = self._records_of_arrays() if self.is_archive else self._records(files)
            first = next((record for record in records if record is not None), None)
            if first is not None and not self._begin(*first):
                records = chain([first], records)
            rows = 0 if start is None else self._skip(records, start)
            limit = math.inf if self.arguments.limit is None else self.arguments.limit
            while wanted := min(self.arguments.chunk, max(0, limit - rows)):
                taken = self._take(records, wanted)
                rows += len(taken)
                if not taken or self.interruption.signal is not None and not self.is_live:
                    return  # after a signal, a file goes on with whole chunks
                found = self._good(taken, self._row)
                X = np.array([x for x, _ in found.values()], dtype=float if all(self.kinds) else object)
                y = None if self.at is None else [target for _, target in found.values()]
                skipped = [line for i, (line, _) in enumerate(taken) if i not in found]
                yield Chunk(X, y, [taken[i][0] for i in found], skipped, rows, _digest(taken[-1][1]))

    def _take(self, records, wanted):
        """The next records, as many as wanted; fewer from a pipe that keeps them waiting, or if no more come."""
        taken, until = [], math.inf
        for record in records:
            if record is not None:
                taken.append(record)
                until = min(until, monotonic() + PAUSE) if self.is_live else until
            if len(taken) == wanted or taken and (record is None or monotonic() >= until):
                break
        return taken

    def _skip(self, records, start):
        """Leave out the rows that were learned before, if they are still what they were; return their number."""
        rows, last = 0, None
        for rows, (_, last) in enumerate(islice(records, start["rows"]), 1):
            pass
        if self.interruption.signal is None:
            if rows < start["rows"]:
                raise ChangedFile(f"{self.name} ends after {rows} rows; expected to go on after {start['rows']}.")
            if (self.header, _digest(last)) != (start["header"], start["last"]):
                what = "header" if self.header != start["header"] else f"row {rows}"
                raise ChangedFile(f"{self.name} has changed where it was already read: its {what} is not as it was.")
        return rows

    def bad_row(self, line, column, problem):
        """The error for a row, and the index of a column or None."""
        where = f"{self.name}, {'row' if self.is_archive else 'line'} {line}"
        if column is not None:
            where += f", column {column} (counted from 0)" if self.names is None else f", column {self.names[column]!r}"
        return ValueError(f"{where}: {problem}")

    # ---- Lines and records --------------------------------------------------------------------

    def _lines(self, raw, file):
        """Lines of text, each with its end, as soon as they come; an empty one where none has come for a while."""
        decoder = codecs.getincrementaldecoder("utf-8-sig")(errors="replace")
        decode = io.IncrementalNewlineDecoder(decoder, translate=True).decode
        rest, is_over, waits = "", False, self.is_live and os.name != "nt"  # Windows cannot wait for a pipe
        while not is_over and self.interruption.signal is None:
            if waits and not select.select([file], [], [], PAUSE)[0]:
                if self.is_between:
                    yield ""
                continue
            try:
                received = file.read1(AT_A_TIME)
            except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                raise ValueError(f"{self.name} is not a complete gzip file: {error}.") from error
            is_over, self.position = not received, raw.tell() if self.can_reopen else 0
            *lines, rest = (rest + decode(received, final=is_over)).split("\n")
            if len(rest) >= LONGEST:
                what = f"expected a line of less than {LONGEST} characters. It does not end."
                raise self.bad_row(self.count + len(lines) + 1, None, what)
            for line in [*lines, rest] if is_over and rest else lines:
                self.count, self.is_between = self.count + 1, False
                if self.count == 1:
                    self._check_encoding(line)
                yield line + "\n"

    def _check_encoding(self, line):
        problem = None
        if line.startswith("\x1f\ufffd"):
            problem = "is compressed, without a name that ends in .gz. Unpack it: gzip -dc old.gz > new.csv"
        elif line.startswith("\ufffd\ufffd") or line.count("\0") > len(line) / 4:
            problem = ("is not UTF-8 text: it looks like UTF-16, as spreadsheets write it. Save it as \"CSV UTF-8\", "
                       "or convert it: iconv -f UTF-16 -t UTF-8 old.csv > new.csv")
        if problem is not None:
            raise ValueError(f"{self.name} {problem}")

    def _records(self, files):
        """Yield (line, fields) of each row, or an error where they cannot be; None where none has come for a while."""
        self.interruption.is_opening = self.is_live  # a named pipe waits for its writer
        try:
            raw = sys.stdin.buffer if self.source == "-" else files.enter_context(open(self.source, "rb"))
        finally:
            self.interruption.is_opening = False
        lines = self._lines(raw, gzip.GzipFile(fileobj=raw) if self.source.endswith(".gz") else raw)
        reader = map(self._fields_of_object, lines) if self.is_json else csv.reader(
            lines, delimiter=self.delimiter, strict=True, skipinitialspace=True)
        while True:
            before, self.is_between = self.count, True
            try:
                fields = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                if self.interruption.signal is not None:
                    return  # it is the row that was being read
                expected = "a shorter field" if "limit" in str(error) else "quotes that match"
                fields = ValueError(f"expected {expected} ({error}).")
            if self.count == before:
                yield None
            elif "\ufffd" in str(fields):
                hint = "(iconv -f LATIN1 -t UTF-8 old.csv > new.csv may mend it.)"
                yield before + 1, ValueError(f"expected text in UTF-8. Got {fields!a} instead. {hint}")
            elif isinstance(fields, ValueError) or len(fields) > 1 or fields and str(fields[0]).strip():
                if self.is_json and self.names is None and self.keys:
                    yield before + 1, self.keys
                yield before + 1, fields

    def _fields_of_object(self, line):
        """The values of an object of JSON, under the names of the first one; an error if it is none."""
        try:
            row = json.loads(line) if line.strip() else {}
            if not isinstance(row, dict) or any(isinstance(value, (dict, list)) for value in row.values()):
                raise ValueError(f"Got {_shown(line.strip())}")
        except ValueError as error:
            return ValueError(f"expected an object of JSON whose values are numbers, strings or null. {error}.")
        if row and not self.keys:
            missing = [name for name in self.expected or () if name not in row]
            self.keys = [*row, *(missing if 0 < len(missing) < len(self.expected) else ())]
        values = [row.get(key) for key in self.keys] if row else []
        return ["" if v is None else str(v).lower() if isinstance(v, bool) else v for v in values]

    def _records_of_arrays(self):
        """Yield (row, values) of the arrays X and y, if there is one, of an .npz file."""
        try:
            with open(self.source, "rb") as file, np.load(file, allow_pickle=False) as archive:
                X, y = archive["X"], archive["y"] if "y" in archive.files else None
        except (KeyError, ValueError, TypeError, AttributeError, EOFError, zipfile.BadZipFile, zlib.error) as error:
            raise ValueError(f"{self.name} is not an .npz file with an array X of numbers: {error}.") from error
        for name, array, is_right in (
            ("numbers X in 2 dimensions", X, X.ndim == 2 and X.dtype.kind in "fiub"),
            ("as many labels y as rows", y, y is None or y.shape == X.shape[:1] and y.dtype.kind in "fiubU"),
        ):
            if not is_right:
                what = f"shape {array.shape} and dtype {array.dtype}"
                raise ValueError(f"{self.name} must have {name}. Got {what} instead.")
        if y is None and self.arguments.target is None:
            self.target = None
        labels = [] if y is None or self.target is None else y.tolist()
        size = file_behind(self.source).st_size
        for i, row in enumerate(X.astype(float).tolist()):
            if self.interruption.signal is not None:
                return
            self.position = size * (i + 1) // len(X)
            yield i, row + labels[i : i + 1]

    # ---- Columns ------------------------------------------------------------------------------

    def _begin(self, line, fields):
        """Let the first row say what the columns are; whether it is a header."""
        if isinstance(fields, ValueError):
            raise self.bad_row(line, None, fields)
        fields, is_header = [str(field).strip() for field in fields], self.arguments.header
        self.width = len(fields)
        if self.is_json or self.is_archive or is_header is None:
            is_header = self.is_json or not self.is_archive and any(fields) and not any(map(self._is_number, fields))
        if is_header:
            self.names, self.header = fields, _digest(fields)
        self.at = None if self.target is None else self._index(self.target, "--target")  # the target
        self.columns = self._features()
        problem = None
        if self.at in self.columns:
            problem = f"--target must not be one of --features. Got {self.target!r}."
        elif not self.columns:
            problem = f"{self.name} has no column besides the target; expected at least one feature."
        elif self.kinds is not None and len(self.kinds) != len(self.columns):
            problem = (f"{self.name} has {len(self.columns)} columns to predict from, and the model learned "
                       f"{len(self.kinds)}. (--target names a column to leave out, --features those to use.)")
        if problem is not None:
            raise ValueError(problem + self._hint())
        self.kinds = self.kinds or [None] * len(self.columns)
        return is_header

    def _features(self):
        """Indices of the columns of X."""
        wanted = self.arguments.features
        if wanted is None:
            others = [i for i in range(self.width) if i != self.at]
            if self.names is None or self.expected is None or [self.names[i] for i in others] == self.expected:
                return others
            wanted = self.expected
            for name in wanted:
                if name not in self.names:
                    what = f"expected columns {_listed(wanted)}. Got {_listed(self.names)} instead."
                    hint = "(--features A,B,... says which columns to use in their place.)"
                    raise ValueError(f"{self.name} has no column {name!r}; {what} {hint}{self._hint()}")
        return [self._index(column, "--features") for column in wanted]

    def _index(self, column, option):
        """Index of a column that is given by its name or index."""
        same = 0 if self.names is None else self.names.count(column)
        if same == 1:
            return self.names.index(column)
        if same == 0 and column.removeprefix("-").isdecimal() and -self.width <= int(column) < self.width:
            return int(column) % self.width
        expected = f"an index from {-self.width} to {self.width - 1}"
        if self.names is not None and not same:
            expected = f"one of {_listed(self.names)}, or {expected}"
        reason = "there is no header" if self.names is None else "several columns have that name" if same else ""
        expected += f" of {self.name}" + (f", as {reason}" if reason else "")
        raise ValueError(f"{option} must be {expected}. Got {column!r} instead.{self._hint()}")

    def _hint(self):
        """What may have gone wrong if all is in one column."""
        text = self.names[0] if self.width == 1 and self.names else ""
        other = next((mark for mark in ";\t|," if mark in text), None)
        return f" (Is --delimiter {'tab' if other == chr(9) else repr(other)} meant?)" if other else ""

    # ---- Values -------------------------------------------------------------------------------

    def _good(self, items, convert):
        """{index: what `convert` makes of an item (line, what is there)}; bad ones raise, or are left out."""
        found = {}
        for i, item in enumerate(items):
            try:
                found[i] = convert(*item)
            except ValueError:
                if self.arguments.on_error == "raise":
                    raise
        return found

    def _row(self, line, fields):
        """(values of a row, the target's text or None)."""
        if isinstance(fields, ValueError):
            raise self.bad_row(line, None, fields)
        if len(fields) != self.width:
            raise self.bad_row(line, None, f"expected {self.width} fields. Got {len(fields)} instead.")
        values = []
        for j, i in enumerate(self.columns):
            field = str(fields[i])
            if self.kinds[j] is None and field.strip().lower() not in HOLES:
                self.kinds[j] = self._is_number(fields[i])
            try:
                is_text = self.kinds[j] is False and field.strip()
                values.append(self._number(fields[i]) if self.kinds[j] else field.strip() if is_text else None)
            except ValueError as error:
                leaves = "(--features A,B,... leaves columns out, --on-error skip such rows.)"
                raise self.bad_row(line, i, f"{error} {leaves}") from None
        return values, None if self.at is None else str(fields[self.at])

    def _number(self, field):
        return as_number(str(field), self.arguments.decimal if isinstance(field, str) else ".")

    def _is_number(self, field):
        try:
            return not math.isnan(self._number(field))
        except ValueError:
            return False

    def with_targets(self, chunk, labels=None):
        """(the chunk without rows whose target is missing or bad, the targets: numbers, or labels {text: label})."""
        def target(line, text):
            try:
                if labels is None:
                    value = as_number(text, self.arguments.decimal)
                else:
                    value = labels.get(text.strip(), as_label(text))
                if value == "" or value != value:
                    what = "number" if labels is None else "label"
                    raise ValueError(f"expected a {what}. Got a missing value instead.")
                return value
            except ValueError as error:
                raise self.bad_row(line, self.at, f"{error} (--on-error skip leaves such rows out.)") from None

        found = self._good(zip(chunk.lines, chunk.y, strict=True), target)
        skipped = [line for i, line in enumerate(chunk.lines) if i not in found]
        chunk = chunk._replace(X=chunk.X[[*found]], lines=[chunk.lines[i] for i in found],
                               skipped=chunk.skipped + skipped)
        return chunk, np.array([*found.values()]) if labels is None else label_array([*found.values()])


def as_number(text, decimal="."):
    """The number that a text means, NaN for a hole; ValueError if it is none.

    >>> as_number("1e3"), as_number("0,5", decimal=","), as_number("n/a")
    (1000.0, 0.5, nan)
    """
    plain = text.strip()
    if plain.lower() in HOLES:
        return math.nan
    if decimal == ",":
        plain = "?" if "." in plain else plain.replace(",", ".")
    try:
        value = float("?" if "_" in plain else plain)
    except ValueError:
        hint = " (Is --decimal , meant?)" if decimal == "." and DECIMAL_COMMA.fullmatch(plain) else ""
        raise ValueError(f"expected a number. Got {_shown(text)} instead.{hint}") from None
    if not math.isfinite(value):
        raise ValueError(f"expected a finite number. Got {_shown(text)} instead.")
    return value


def as_label(text):
    """A label: the whole number that a text means, exactly, or else the text.

    >>> as_label("1.0"), as_label(" up")
    (1, 'up')
    """
    for convert in (int, float):
        try:
            number = convert("?" if "_" in text else text)
            return int(number) if number == int(number) else text.strip()
        except (ValueError, OverflowError):
            pass
    return text.strip()


def _shown(text, most=60):
    """A text in a sentence."""
    return repr(text if len(text) <= most else text[: most - 3] + "...")


def _listed(names, most=20):
    return ", ".join(map(repr, names[:most])) + ", ..." * (len(names) > most)


def _digest(fields):
    """A row, or a header, as a file of a model remembers it."""
    text = json.dumps(str(fields) if isinstance(fields, ValueError) else fields)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
