"""Tables as a command reads them: CSV and TSV files, compressed ones, pipes that are live, and .npz archives.

A table gives chunks of rows.  Python's `csv` splits text into fields; here a column whose first value is a number
becomes numbers, any other stays text, of which the model's encoder makes dates and categories.  An error about a row
names its line and its column.
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
import zlib
from collections import deque
from contextlib import contextmanager
from itertools import chain
from time import monotonic
from typing import NamedTuple
from zipfile import BadZipFile

import numpy as np

__all__ = [
    *("ChangedFile", "Refused", "as_number", "file_behind", "kind_of_labels", "labels_of", "open_table"),
]

PAUSE = 0.1  # seconds that a row on a pipe waits for others at most
LONGEST = 1 << 24  # characters of a line
AT_A_TIME = 1 << 16  # bytes that are taken out of a pipe
HOLES = {"", "na", "n/a", "#n/a", "<na>", "nan", "null", "none"}  # where a number is expected, as pandas has it
DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+(e[+-]?\d+)?", re.IGNORECASE)
DELIMITERS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
LEAVES = "(--features A,B,... leaves columns out, --on-error skip such rows.)"


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


def open_table(source, arguments, interruption, *, target, names=None, kinds=None):
    """The table in a source, as the arguments describe it.

    `target` is a column, or None. `names` are those of the columns that a header must have among others, and
    `kinds` what these hold ("number" or "text"), where a model knows both.
    """
    stem, extension = os.path.splitext(source.removesuffix(".gz"))
    if extension.lower() == ".npz" and stem + extension == source:
        return _Arrays(source, arguments, interruption, target)
    if source != "-" and arguments.delimiter is None and extension.lower() not in DELIMITERS:
        known = ".csv, .tsv, .tab (each also .gz) or .npz, or - for standard input (or give --delimiter)"
        raise Refused(f"data must be a file that ends in {known}. Got {source!r} instead.")
    delimiter = arguments.delimiter or DELIMITERS.get(extension.lower(), ",")
    return _Text(source, arguments, interruption, target, delimiter, names, kinds)


def file_behind(source):
    """What `os.stat` says of a source's file, None where there is none."""
    try:
        return os.fstat(sys.stdin.fileno()) if source == "-" else os.stat(source)
    except (OSError, ValueError, AttributeError):
        return None


class _Table:
    """What tables of text and of arrays share."""

    unit = "line"
    names = None  # of the columns of X
    header = ""  # its digest

    def __init__(self, source, arguments, interruption):
        self.source, self.arguments, self.interruption = source, arguments, interruption
        self.name = "standard input" if source == "-" else source
        found = file_behind(source)
        self.can_reopen = source != "-" and (found is None or stat.S_ISREG(found.st_mode))

    def _wanted(self, rows):
        """How many rows the next chunk may have after so many."""
        chunk, limit = self.arguments.chunk, self.arguments.limit
        return chunk if limit is None else max(0, min(chunk, limit - rows))

    def bad_row(self, line, column, problem):
        """The error for a row."""
        where = f"{self.name}, {self.unit} {line}"
        if column is not None:
            where += f", column {column!r}" if isinstance(column, str) else f", column {column} (counted from 0)"
        return ValueError(f"{where}: {problem}")

    def good_rows(self, chunk, problems):
        """The chunk without the rows that have a problem, {index: error}; raises the first if none are skipped."""
        if not problems:
            return chunk
        if self.arguments.on_error == "raise":
            raise problems[min(problems)]
        good = [i for i in range(len(chunk.lines)) if i not in problems]
        return chunk._replace(
            X=chunk.X[good],
            y=None if chunk.y is None else [chunk.y[i] for i in good],
            lines=[chunk.lines[i] for i in good],
            skipped=sorted([*chunk.skipped, *(chunk.lines[i] for i in problems)]),
        )

    def with_targets(self, chunk, kind):
        """(the chunk without rows whose target is bad, the targets as an array of "number", "integer" or "word")."""
        if chunk.y is None:
            return chunk, None
        values, problems = [], {}
        for i, text in enumerate(chunk.y):
            try:
                values.append(_target(text, kind, self.arguments.decimal))
            except ValueError as error:
                what = f"{error} (--on-error skip leaves such rows out.)"
                problems[i] = self.bad_row(chunk.lines[i], self._target_name(), what)
        chunk = self.good_rows(chunk, problems)
        try:
            return chunk, np.array(values, dtype={"number": float, "integer": np.int64, "word": str}[kind])
        except OverflowError:
            return chunk, np.array(values, dtype=object)

    def _check_start(self, start, header, rows, last):
        """ValueError if the first rows are not those that were learned before."""
        if rows < start["rows"]:
            raise ChangedFile(f"{self.name} ends after {rows} rows; expected to go on after {start['rows']}.")
        if (header, last) != (start["header"], start["last"]):
            what = "header" if header != start["header"] else f"row {rows}"
            raise ChangedFile(f"{self.name} has changed where it was already read: its {what} is not as it was.")


class _Text(_Table):
    """Rows of text between delimiters."""

    def __init__(self, source, arguments, interruption, target, delimiter, names, kinds):
        super().__init__(source, arguments, interruption)
        self.delimiter, self.target, self.expected, self.kinds = delimiter, target, names, kinds
        self.width = None

    def chunks(self, start=None):
        """Yield the chunks, those after a place `start` if it is given and nothing has changed before it."""
        with _open_lines(self.source, self.interruption) as lines:
            records = self._records(lines)
            for first in records:
                if first is not None:
                    is_header = self._begin(*first)
                    yield from self._cut(records if is_header else chain([first], records), lines, start)
                    return

    def _records(self, lines):
        """Yield (line, fields) of each row, an error in place of fields that cannot be; None when a chunk is due."""
        reader = csv.reader(lines, delimiter=self.delimiter, strict=True, skipinitialspace=True)
        while True:
            number, lines.is_between = reader.line_num + 1, True
            try:
                fields = next(reader)
            except _Due:
                yield None
            except StopIteration:
                return
            except csv.Error as error:
                if self.interruption.signal is None:  # else it is the row that was being read
                    yield number, error
            else:
                if len(fields) > 1 or fields and fields[0].strip():
                    yield number, fields

    def _cut(self, records, lines, start):
        """Yield chunks of records."""
        rows, taken = 0, []
        if start is not None:
            last = None
            while rows < start["rows"] and (record := next(records, None)) is not None:
                rows, last = rows + 1, record
            if self.interruption.signal is not None:
                return
            self._check_start(start, self.header, rows, last and _digest(last[1]))
        wanted = self._wanted(rows)
        while wanted:
            record = next(records, records)
            if record is records:
                break
            if record is not None:
                taken.append(record)
                if len(taken) == 1:
                    lines.until = monotonic() + PAUSE
            if len(taken) == wanted or record is None or lines.is_live and monotonic() >= lines.until:
                lines.until = None
                rows += len(taken)
                yield self._chunk(taken, rows)
                taken, wanted = [], self._wanted(rows)
        if taken and (lines.is_live or self.interruption.signal is None):  # a file goes on with whole chunks
            yield self._chunk(taken, rows + len(taken))

    # ---- Columns ------------------------------------------------------------------------------

    def _begin(self, line, fields):
        """Let the first row say what the columns are; whether it is a header."""
        if isinstance(fields, csv.Error):
            raise self.bad_row(line, None, _quotes(fields))
        fields = [field.strip() for field in fields]
        header, self.width = self.arguments.header, len(fields)
        is_header = header if header != "auto" else any(fields) and not any(map(self._is_number, fields))
        self._all = fields if is_header else None
        if is_header:
            self.header = _digest(fields)
        self.at = None if self.target is None else self._index(self.target, "--target")  # the target
        self.columns = self._features()
        self.names = None if self._all is None else [self._all[i] for i in self.columns]
        counts = f"{len(self.columns)} columns to predict from, and the model learned {len(self.kinds or ())}"
        for is_wrong, problem in (
            (self.at in self.columns, f"--target must not be one of --features. Got {self.target!r}."),
            (not self.columns, f"{self.name} has no column besides the target; expected at least one feature."),
            (self.kinds is not None and len(self.kinds) != len(self.columns),
             f"{self.name} has {counts}. (--target names a column to leave out, --features those to use.)"),
        ):
            if is_wrong:
                raise ValueError(problem + self._hint())
        self.kinds = self.kinds or [None] * len(self.columns)
        return is_header

    def _features(self):
        """Places of the columns of X."""
        if self.arguments.features is not None:
            return [self._index(column, "--features") for column in self.arguments.features]
        others = [i for i in range(self.width) if i != self.at]
        if self._all is None or self.expected is None or [self._all[i] for i in others] == self.expected:
            return others
        for name in self.expected:
            if name not in self._all:
                what = f"expected columns {_listed(self.expected)}. Got {_listed(self._all)} instead."
                hint = "(--features A,B,... says which columns to use in their place.)"
                raise ValueError(f"{self.name} has no column {name!r}; {what} {hint}{self._hint()}")
        return [self._index(name, "--features") for name in self.expected]

    def _index(self, column, option):
        """Place of a column that is given by its name or index."""
        count = 0 if self._all is None else self._all.count(column)
        if count == 1:
            return self._all.index(column)
        text = str(column)
        if count == 0 and text.removeprefix("-").isdecimal() and -self.width <= int(text) < self.width:
            return int(text) % self.width
        choices = f"an index from {-self.width} to {self.width - 1}"
        if self._all is None:
            choices += " of a column, as there is no header,"
        else:
            one = f"a column, one of {_listed(self._all)}, or {choices},"
            choices = f"{choices}, as several columns have that name," if count else one
        raise ValueError(f"{option} must be {choices} of {self.name}. Got {column!r} instead.{self._hint()}")

    def _hint(self):
        """What may have gone wrong if all is in one column."""
        text = "" if self.width > 1 or self._all is None else self._all[0]
        other = next((mark for mark in ";\t|," if mark in text), None)
        return f" (Is --delimiter {repr(other) if other != chr(9) else 'tab'} meant?)" if other else ""

    def _target_name(self):
        return self.at if self._all is None else self._all[self.at]

    # ---- Values -------------------------------------------------------------------------------

    def _chunk(self, records, rows):
        """The chunk of some records, of which the last is row number `rows` of the file."""
        problems, fields = {}, []
        for i, (line, record) in enumerate(records):
            problem = None
            if isinstance(record, csv.Error):
                problem = _quotes(record)
            elif len(record) != self.width:
                problem = f"expected {self.width} fields. Got {len(record)} instead."
            if problem is not None:
                problems[i], record = self.bad_row(line, None, problem), [""] * self.width
            fields.append(record)
        lines, columns = [line for line, _ in records], list(zip(*fields, strict=True))
        values = [self._values(j, columns[i], lines, problems) for j, i in enumerate(self.columns)]
        if all(kind == "number" for kind in self.kinds):
            X = np.column_stack(values)
        else:
            X = np.empty((len(records), len(values)), dtype=object)
            for j, column in enumerate(values):
                X[:, j] = column
        y = None if self.at is None else [*columns[self.at]]
        return self.good_rows(Chunk(X, y, lines, [], rows, _digest(records[-1][1])), problems)

    def _values(self, j, texts, lines, problems):
        """A column of X; what is wrong with it goes into `problems`, by the places of the rows."""
        if self.kinds[j] is None:
            first = next((text for text in texts if text.strip().lower() not in HOLES), None)
            self.kinds[j] = None if first is None else "number" if self._is_number(first) else "text"
        column = self.columns[j] if self._all is None else self._all[self.columns[j]]
        if self.kinds[j] != "number":
            return self._texts(texts, column, lines, problems)
        try:
            values = np.array([*map(float, texts)])
            if self.arguments.decimal == "." and np.isfinite(values).all() and "_" not in "".join(texts):
                return values
        except ValueError:
            pass
        values = np.full(len(texts), np.nan)
        for i, text in enumerate(texts):
            try:
                values[i] = as_number(text, self.arguments.decimal)
            except ValueError as error:
                problems.setdefault(i, self.bad_row(lines[i], column, f"{error} {LEAVES}"))
        return values

    def _texts(self, texts, column, lines, problems):
        if not _is_utf8("".join(texts)):
            for i, text in enumerate(texts):
                if not _is_utf8(text):
                    what = f"expected text in UTF-8. Got {text!a} instead."
                    problems.setdefault(i, self.bad_row(lines[i], column, what))
        return [text.strip() or None for text in texts]

    def _is_number(self, text):
        try:
            return not math.isnan(as_number(text, self.arguments.decimal))
        except ValueError:
            return False


class _Arrays(_Table):
    """Rows of the arrays X and y of an .npz archive."""

    unit = "row"

    def __init__(self, source, arguments, interruption, target):
        super().__init__(source, arguments, interruption)
        self.key_of_X, self.key_of_y = (arguments.features or ["X"])[0], target

    def chunks(self, start=None):
        """Yield the chunks, those after a place `start` if it is given and nothing has changed before it."""
        X, y = self._arrays()
        rows = 0
        if start is not None:
            rows = min(start["rows"], len(X))
            self._check_start(start, "", rows, rows and _digest_of_row(X, y, rows - 1))
        while (wanted := self._wanted(rows)) and rows < len(X) and self.interruption.signal is None:
            part = slice(rows, rows + wanted)
            piece, labels = X[part], None if y is None else [*map(str, y[part].tolist())]
            lines = [*range(rows, rows + len(piece))]
            problems = {}
            for i in np.flatnonzero(~np.isfinite(piece).all(axis=1)).tolist():
                column = int(np.flatnonzero(~np.isfinite(piece[i]))[0])
                what = f"expected a finite number. Got {piece[i, column]} instead. {LEAVES}"
                problems[i] = self.bad_row(lines[i], column, what)
            rows += len(piece)
            yield self.good_rows(Chunk(piece, labels, lines, [], rows, _digest_of_row(X, y, rows - 1)), problems)

    def _target_name(self):
        return self.key_of_y or "y"

    def _arrays(self):
        """(X, y), y None without labels."""
        try:
            with np.load(self.source, allow_pickle=False) as archive:
                for option, key in (("--features", self.key_of_X), ("--target", self.key_of_y)):
                    if key is not None and key not in archive.files:
                        choices = f"an array in {self.name}, one of {_listed(archive.files)}"
                        raise KeyError(f"{option} must be {choices}. Got {key!r} instead.")
                has_y = self.key_of_y is not None or "y" in archive.files and self.arguments.target is None
                X, y = archive[self.key_of_X], archive[self.key_of_y or "y"] if has_y else None
        except KeyError as error:
            raise ValueError(error.args[0]) from error
        except (ValueError, TypeError, AttributeError, EOFError, BadZipFile, zlib.error) as error:
            raise ValueError(f"{self.name} is not an .npz file of numbers and strings: {error}.") from error
        if X.ndim != 2 or X.dtype.kind not in "fiub":
            raise ValueError(f"The array {self.key_of_X!r} in {self.name} must hold numbers and have 2 dimensions. "
                             f"Got shape {X.shape} and dtype {X.dtype} instead.")
        if y is not None and y.dtype.kind == "S":
            y = np.char.decode(y, "utf-8")
        if y is not None and (y.ndim != 1 or len(y) != len(X) or y.dtype.kind not in "fiubU"):
            raise ValueError(f"{self.name} must have as many labels as rows, {len(X)}, numbers or strings. "
                             f"Got shape {y.shape} and dtype {y.dtype} instead.")
        return X if X.dtype == np.float32 else X.astype(float), y


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
        raise ValueError(f"expected a number. Got {shown(text)} instead.{hint}") from None
    if not math.isfinite(value):
        raise ValueError(f"expected a finite number. Got {shown(text)} instead.")
    return value


def kind_of_labels(texts):
    """"integer" if all labels are whole numbers, else "word".

    >>> kind_of_labels(["1", "-1"]), kind_of_labels(["1", "up"])
    ('integer', 'word')
    """
    return "integer" if all(_whole(text) is not None for text in texts if text.strip()) else "word"


def labels_of(texts):
    """Labels that are named on the command line, as they would be read from data."""
    kind = kind_of_labels(texts)
    return np.array([_target(text, kind) for text in texts])


def _target(text, kind, decimal="."):
    """A target as what its kind is."""
    if not text.strip():
        raise ValueError(f"expected {'a label' if kind == 'word' else 'a number'}. Got an empty field instead.")
    if kind == "number":
        number = as_number(text, decimal)
        if math.isnan(number):
            raise ValueError(f"expected a number. Got {shown(text)} instead.")
        return number
    if kind == "word":
        if not _is_utf8(text):
            raise ValueError(f"expected a label in UTF-8. Got {text!a} instead.")
        return text.strip()
    whole = _whole(text)
    if whole is None:
        hint = "(--classes A,B,... says that there are words)"
        raise ValueError(f"expected a whole number, like other labels {hint}. Got {shown(text)} instead.")
    return whole


def _whole(text):
    """The whole number that a text means, exactly; None if it is none."""
    try:
        return None if "_" in text else int(text)
    except ValueError:
        pass
    try:
        number = float(text)
        return int(number) if number == math.floor(number) and abs(number) < 2**53 else None
    except (ValueError, OverflowError):
        return None


def _is_utf8(text):
    """Whether it has none of what stands for bytes that are not UTF-8."""
    try:
        return text.isascii() or bool(text.encode())
    except UnicodeEncodeError:
        return False


def shown(text, most=60):
    """A text in a sentence."""
    return repr(text if len(text) <= most else text[: most - 3] + "...")


def _quotes(error):
    """What a csv.Error means."""
    expected = "a shorter field" if "limit" in str(error) else "quotes that match"
    return f"expected {expected} ({error})."


def _listed(names, most=20):
    return ", ".join(map(repr, names[:most])) + ", ..." * (len(names) > most)


def _digest(fields):
    """A row, or a header, as a file of a model remembers it."""
    text = json.dumps(str(fields) if isinstance(fields, csv.Error) else fields)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _digest_of_row(X, y, row):
    return _digest([X[row].tobytes().hex(), "" if y is None else str(y[row].tolist())])


# ---- Lines --------------------------------------------------------------------------------------


class _Due(Exception):
    """The rows that have come so far should not wait for the next one."""


@contextmanager
def _open_lines(source, interruption):
    """Give an iterator over the lines of a source, for `csv.reader`."""
    if source == "-":
        try:
            descriptor = sys.stdin.fileno()
        except (AttributeError, OSError, ValueError):
            descriptor = None
        is_live = descriptor is not None and os.name != "nt"  # Windows cannot wait for a pipe
        kind, file = (_LiveLines, descriptor) if is_live else (_FileLines, sys.stdin)
        yield kind(file, "standard input", interruption)
        return
    is_pipe = stat.S_ISFIFO(os.stat(source).st_mode) and os.name != "nt" and not source.endswith(".gz")
    interruption.is_opening = is_pipe  # which waits for its writer
    try:
        opened = gzip.open(source, "rb") if source.endswith(".gz") else open(source, "rb")
    finally:
        interruption.is_opening = False
    with opened as file:
        if is_pipe:
            yield _LiveLines(file.fileno(), source, interruption)
        else:
            text = io.TextIOWrapper(file, encoding="utf-8-sig", errors="surrogateescape", newline="")
            yield _FileLines(text, source, interruption)


class _Lines:
    """Lines, each with its end: what is no text is refused, and so is what does not end."""

    is_live = False
    is_between = True  # rows, not within one that goes over several lines
    until = None  # when the rows so far are due

    def __init__(self, name, interruption):
        self.name, self.interruption = name, interruption
        self.count = 0

    def __iter__(self):
        return self

    def __next__(self):
        line = self._next()
        self.count += 1
        self.is_between = False
        if self.count == 1:
            self._check_encoding(line)
        return line

    def _check_length(self, length):
        if length >= LONGEST:
            what = f"expected a line of less than {LONGEST} characters. It does not end."
            raise ValueError(f"{self.name}, line {self.count + 1}: {what}")

    def _check_encoding(self, line):
        if line.startswith("\x1f\udc8b"):
            hint = "Unpack it: gzip -dc old.gz > new.csv"
            raise ValueError(f"{self.name} is compressed, without a name that ends in .gz. {hint}")
        if line.startswith(("\udcff\udcfe", "\udcfe\udcff")) or line.count("\0") > len(line) / 4:
            raise ValueError(
                f"{self.name} is not UTF-8 text: it looks like UTF-16, as spreadsheets write it. Save it as \"CSV UTF-8\","
                " or convert it: iconv -f UTF-16 -t UTF-8 old.csv > new.csv"
            )


class _FileLines(_Lines):
    def __init__(self, file, name, interruption):
        super().__init__(name, interruption)
        self.file = file

    def _next(self):
        try:
            line = "" if self.interruption.signal is not None else self.file.readline(LONGEST)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise ValueError(f"{self.name} is not a complete gzip file: {error}.") from error
        if not line:
            raise StopIteration
        self._check_length(len(line))
        return line


class _LiveLines(_Lines):
    """Lines of a pipe, as soon as they come; after a signal, those that were read."""

    is_live = True

    def __init__(self, descriptor, name, interruption):
        super().__init__(name, interruption)
        self.descriptor = descriptor
        decoder = codecs.getincrementaldecoder("utf-8-sig")(errors="surrogateescape")
        self.decode = io.IncrementalNewlineDecoder(decoder, translate=True).decode
        self.ready, self.rest, self.length = deque(), [], 0  # whole lines; pieces of the last one
        self.is_over = False

    def _next(self):
        while not self.ready:
            if self.is_over or self.interruption.signal is not None:
                raise StopIteration
            left = None if self.until is None or not self.is_between else max(0.0, self.until - monotonic())
            wake = self.interruption.wake
            found = select.select([self.descriptor] if wake is None else [self.descriptor, wake], [], [], left)[0]
            if wake in found:
                os.read(wake, AT_A_TIME)  # a signal: the handler has been called when the loop begins again
            elif found:
                self._receive(os.read(self.descriptor, AT_A_TIME))
            else:
                raise _Due
        return self.ready.popleft()

    def _receive(self, received):
        self.is_over = not received
        *lines, rest = self.decode(received, final=self.is_over).split("\n")
        if lines:
            lines[0] = "".join([*self.rest, lines[0]])
            self.rest, self.length = [], 0
            self.ready.extend(line + "\n" for line in lines)
        if rest:
            self.rest.append(rest)
            self.length += len(rest)
            self._check_length(self.length)
        if self.is_over and self.rest:
            self.ready.append("".join(self.rest))
