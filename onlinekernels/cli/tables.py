"""Tables as commands read and write them: CSV, TSV and JSON lines, also compressed or from live pipes, and .npz.

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
import zlib
from collections import deque
from contextlib import ExitStack
from itertools import chain, islice
from time import monotonic
from typing import NamedTuple
from zipfile import BadZipFile

import numpy as np

NO_TARGET = "none"
PAUSE = 0.1  # seconds that a row on a pipe waits for others at most
LONGEST = 1 << 24  # characters of a line
AT_A_TIME = 1 << 16  # bytes that are read at once
HOLES = {"", "na", "n/a", "#n/a", "<na>", "nan", "null", "none"}  # where a number is expected, as pandas has it
DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+(e[+-]?\d+)?", re.IGNORECASE)
DELIMITERS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
JSON_LINES = (".jsonl", ".ndjson")
IN_UTF8 = "(iconv -f LATIN1 -t UTF-8 old.csv > new.csv may mend it.)"
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
        self.expected = list(model.feature_names_in_) if hasattr(model, "feature_names_in_") else None
        self.kinds = None  # what the columns hold, "number" or "text"
        if hasattr(model, "encoder_"):
            kinds = model.encoder_.kinds_.values()
            self.kinds = [kind and ("number" if kind == "number" else "text") for kind in kinds]
        elif getattr(model, "t_", 0):  # it learned arrays of numbers
            self.kinds = ["number"] * model.n_features_in_
        self.name = "standard input" if source == "-" else source
        extension = os.path.splitext(source.removesuffix(".gz"))[1].lower()
        self.is_archive = source.lower().endswith(".npz")
        self.is_json = extension in JSON_LINES or source == "-" and arguments.json
        self.delimiter = arguments.delimiter or DELIMITERS.get(extension, "," if source == "-" else None)
        if not (self.is_archive or self.is_json or self.delimiter):
            known = ".csv, .tsv, .tab, .jsonl, .ndjson (each also .gz) or .npz, or - for standard input"
            raise Refused(f"data must be a file that ends in {known} (or give --delimiter). Got {source!r} instead.")
        self.unit = "row" if self.is_archive else "line"
        found = file_behind(source)
        is_file = found is None or stat.S_ISREG(found.st_mode)
        self.can_reopen = source != "-" and is_file
        self.is_live = source == "-" or not is_file and not source.endswith(".gz")
        self.size, self.position = getattr(found, "st_size", 0), lambda: 0  # in bytes
        self.until, self.is_between = None, True  # when the rows so far are due; whether no row has begun
        self.keys = self.names = None  # of JSON objects; of all columns
        self.header = ""  # its digest

    def chunks(self, start=None):
        """Yield the chunks, those after a place `start` if it is given and nothing has changed before it."""
        with ExitStack() as files:
            records = self._records(files)
            for first in records:
                if not self._begin(*first):
                    records = chain([first], records)
                break
            rows = 0 if start is None else self._skip(records, start)
            limit = math.inf if self.arguments.limit is None else self.arguments.limit
            while wanted := min(self.arguments.chunk, max(0, limit - rows)):
                taken = self._take(records, wanted)
                rows += len(taken)
                if not taken or self.interruption.signal is not None and not self.is_live:
                    return  # after a signal, a file goes on with whole chunks
                yield self._chunk(taken, rows)

    def _take(self, records, wanted):
        """The next records, as many as wanted; fewer if they are due, or no more come."""
        taken = []
        for record in records:
            if record is None:
                break
            taken.append(record)
            if len(taken) == 1 and self.is_live:
                self.until = monotonic() + PAUSE
            if len(taken) == wanted or self.until is not None and monotonic() >= self.until:
                break
        self.until = None
        return taken

    def _skip(self, records, start):
        """Leave out the rows that were learned before, if they are still what they were; return their number."""
        rows, last = 0, None
        for rows, last in enumerate(islice(records, start["rows"]), 1):
            pass
        if self.interruption.signal is None:
            if rows < start["rows"]:
                raise ChangedFile(f"{self.name} ends after {rows} rows; expected to go on after {start['rows']}.")
            if (self.header, _digest(last[1])) != (start["header"], start["last"]):
                what = "header" if self.header != start["header"] else f"row {rows}"
                raise ChangedFile(f"{self.name} has changed where it was already read: its {what} is not as it was.")
        return rows

    def bad_row(self, line, column, problem):
        """The error for a row, and the index of a column or None."""
        where = f"{self.name}, {self.unit} {line}"
        if column is not None:
            where += f", column {column} (counted from 0)" if self.names is None else f", column {self.names[column]!r}"
        return ValueError(f"{where}: {problem}")

    # ---- Records ------------------------------------------------------------------------------

    def _records(self, files):
        """Iterate over (line, fields) of each row, with an error where they cannot be; None if a chunk is due."""
        if self.is_archive:
            return self._records_of_arrays()
        self.interruption.is_opening = self.is_live  # a named pipe waits for its writer
        try:
            raw = sys.stdin.buffer if self.source == "-" else files.enter_context(open(self.source, "rb"))
        finally:
            self.interruption.is_opening = False
        if self.can_reopen:
            self.position = raw.tell
        return self._records_of_text(_Lines(gzip.GzipFile(fileobj=raw) if self.source.endswith(".gz") else raw, self))

    def _records_of_text(self, lines):
        reader = map(self._fields_of_object, lines)
        if not self.is_json:
            reader = csv.reader(lines, delimiter=self.delimiter, strict=True, skipinitialspace=True)
        while True:
            number, self.is_between = lines.count + 1, True
            try:
                fields = next(reader)
            except _Due:
                yield None
                continue
            except StopIteration:
                return
            except csv.Error as error:
                if self.interruption.signal is not None:
                    return  # it is the row that was being read
                expected = "a shorter field" if "limit" in str(error) else "quotes that match"
                fields = ValueError(f"expected {expected} ({error}).")
            if isinstance(fields, ValueError):
                yield number, fields
            elif not (lines.is_utf8 or _is_utf8("".join(map(str, fields)))):
                yield number, ValueError(f"expected text in UTF-8. Got {fields!a} instead. {IN_UTF8}")
            elif len(fields) > 1 or fields and str(fields[0]).strip():
                if self.is_json and self.names is None:
                    yield number, self.keys
                yield number, fields

    def _fields_of_object(self, line):
        """The values of an object of JSON, under the names of the first one; an error if it is none."""
        try:
            row = json.loads(line) if line.strip() else {}
            if not isinstance(row, dict) or any(isinstance(value, (dict, list)) for value in row.values()):
                raise ValueError(f"Got {shown(line.strip())}")
        except ValueError as error:
            return ValueError(f"expected an object of JSON whose values are numbers, strings or null. {error}.")
        if not self.keys and row:
            self.keys = [*row, *self._missing_keys(row)]
        values = [row.get(key) for key in self.keys] if row else []
        return ["" if v is None else str(v).lower() if isinstance(v, bool) else v for v in values]

    def _missing_keys(self, row):
        """Columns of the model that the first object lacks, if it has others; they are missing, as in later objects."""
        missing = [name for name in self.expected or () if name not in row]
        if self.arguments.features is not None or not missing or len(missing) == len(self.expected):
            return []
        print(f"{self.name}: the first object has no {_listed(missing)}, which counts as missing there, as in later "
              "objects.", file=sys.stderr)
        return missing

    def _records_of_arrays(self):
        try:
            with np.load(self.source, allow_pickle=False) as archive:
                if "X" not in archive.files:
                    raise ValueError(f"expected arrays X and y, and found {_listed(archive.files)}")
                has_y = "y" in archive.files and self.arguments.target != NO_TARGET
                X, y = archive["X"], archive["y"] if has_y else None
        except (ValueError, TypeError, AttributeError, EOFError, BadZipFile, zlib.error) as error:
            raise ValueError(f"{self.name} is not an .npz file of numbers and strings: {error}.") from error
        y = np.char.decode(y, "utf-8") if y is not None and y.dtype.kind == "S" else y
        for array, wanted, is_right in (
            (X, "numbers X in 2 dimensions", X.ndim == 2 and X.dtype.kind in "fiub"),
            (y, "as many labels y as rows", y is None or y.shape == X.shape[:1] and y.dtype.kind in "fiubU"),
        ):
            if not is_right:
                got = f"Got shape {array.shape} and dtype {array.dtype} instead."
                raise ValueError(f"{self.name} must have {wanted}. {got}")
        if self.arguments.target is None:
            self.target = None if y is None else "-1"
        for i, row in enumerate(X):
            if self.interruption.signal is not None:
                return
            self.position = lambda i=i: self.size * (i + 1) // len(X)
            yield i, row.astype(float).tolist() + ([] if y is None else [y[i].item()])

    # ---- Columns ------------------------------------------------------------------------------

    def _begin(self, line, fields):
        """Let the first row say what the columns are; whether it is a header."""
        if isinstance(fields, ValueError):
            raise self.bad_row(line, None, fields)
        fields = [str(field).strip() for field in fields]
        is_header, self.width = self.arguments.header, len(fields)
        if self.is_json or self.is_archive:
            is_header = self.is_json
        elif is_header is None:
            is_header = any(fields) and not any(map(self._is_number, fields))
        if is_header:
            self.names, self.header = fields, _digest(fields)
        self.at = None if self.target is None else self._index(self.target, "--target")  # the target
        self.columns = self._features()
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
        """Indices of the columns of X."""
        if self.arguments.features is not None:
            return [self._index(column, "--features") for column in self.arguments.features]
        others = [i for i in range(self.width) if i != self.at]
        if self.names is None or self.expected is None or [self.names[i] for i in others] == self.expected:
            return others
        for name in self.expected:
            if name not in self.names:
                what = f"expected columns {_listed(self.expected)}. Got {_listed(self.names)} instead."
                hint = "(--features A,B,... says which columns to use in their place.)"
                raise ValueError(f"{self.name} has no column {name!r}; {what} {hint}{self._hint()}")
        return [self._index(name, "--features") for name in self.expected]

    def _index(self, column, option):
        """Index of a column that is given by its name or index."""
        count = 0 if self.names is None else self.names.count(column)
        if count == 1:
            return self.names.index(column)
        if count == 0 and column.removeprefix("-").isdecimal() and -self.width <= int(column) < self.width:
            return int(column) % self.width
        choices = f"an index from {-self.width} to {self.width - 1}"
        if self.names is None:
            choices += " of a column, as there is no header,"
        elif count:
            choices += ", as several columns have that name,"
        else:
            choices = f"a column, one of {_listed(self.names)}, or {choices},"
        raise ValueError(f"{option} must be {choices} of {self.name}. Got {column!r} instead.{self._hint()}")

    def _hint(self):
        """What may have gone wrong if all is in one column."""
        text = self.names[0] if self.width == 1 and self.names else ""
        other = next((mark for mark in ";\t|," if mark in text), None)
        return f" (Is --delimiter {'tab' if other == chr(9) else repr(other)} meant?)" if other else ""

    # ---- Values -------------------------------------------------------------------------------

    def _chunk(self, records, rows):
        """The chunk of some records, of which the last is row number `rows` of the file."""
        problems, fields = {}, []
        for i, (line, record) in enumerate(records):
            problem = record if isinstance(record, ValueError) else None
            if problem is None and len(record) != self.width:
                problem = f"expected {self.width} fields. Got {len(record)} instead."
            if problem is not None:
                problems[i], record = self.bad_row(line, None, problem), [""] * self.width
            fields.append(record)
        lines, columns = [line for line, _ in records], list(zip(*fields, strict=True))
        values = [self._values(j, columns[i], lines, problems) for j, i in enumerate(self.columns)]
        X = np.empty((len(records), len(values)), dtype=float if set(self.kinds) == {"number"} else object)
        for j, column in enumerate(values):
            X[:, j] = column
        y = None if self.at is None else [*map(str, columns[self.at])]
        return self._good_rows(Chunk(X, y, lines, [], rows, _digest(records[-1][1])), problems)

    def _good_rows(self, chunk, problems):
        """The chunk without the rows that have a problem, {index: error}; raises the first if none are skipped."""
        if not problems:
            return chunk
        if self.arguments.on_error == "raise":
            raise problems[min(problems)]
        good = [i for i in range(len(chunk.lines)) if i not in problems]
        y, lines = (None if part is None else [part[i] for i in good] for part in (chunk.y, chunk.lines))
        return chunk._replace(X=chunk.X[good], y=y, lines=lines,
                              skipped=sorted([*chunk.skipped, *(chunk.lines[i] for i in problems)]))

    def with_targets(self, chunk, kind):
        """(the chunk without rows whose target is bad, the targets as an array of "number", "integer" or "word")."""
        values, problems = [], {}
        for i, text in enumerate(chunk.y):
            try:
                values.append(as_target(text, kind, self.arguments.decimal))
            except ValueError as error:
                what = f"{error} (--on-error skip leaves such rows out.)"
                problems[i] = self.bad_row(chunk.lines[i], self.at, what)
        return self._good_rows(chunk, problems), np.array(values)

    def _values(self, j, fields, lines, problems):
        """A column of X; what is wrong with it goes into `problems`, by the indices of the rows."""
        if self.kinds[j] is None:
            first = next((field for field in fields if str(field).strip().lower() not in HOLES), None)
            self.kinds[j] = None if first is None else "number" if self._is_number(first) else "text"
        if self.kinds[j] != "number":
            return [str(field).strip() or None for field in fields]
        if self.arguments.decimal == "." or not isinstance(fields[0], str):
            try:  # the fast way to the same numbers
                values = np.array([*map(float, fields)])
                if np.isfinite(values).all() and "_" not in "".join(map(str, fields)):
                    return values
            except (ValueError, OverflowError):
                pass
        values = np.full(len(fields), math.nan)
        for i, field in enumerate(fields):
            try:
                values[i] = self._number_of(field)
            except ValueError as error:
                problems.setdefault(i, self.bad_row(lines[i], self.columns[j], f"{error} {LEAVES}"))
        return values

    def _number_of(self, field):
        return as_number(str(field), self.arguments.decimal if isinstance(field, str) else ".")

    def _is_number(self, field):
        try:
            return not math.isnan(self._number_of(field))
        except ValueError:
            return False


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


def as_target(text, kind, decimal="."):
    """A target as what its kind is: a "number", or a label that is an "integer" or a "word".

    >>> as_target("1.0", "integer"), as_target("1.0", "number"), as_target("1.0", "word")
    (1, 1.0, '1.0')
    """
    if not text.strip():
        raise ValueError(f"expected {'a label' if kind == 'word' else 'a number'}. Got an empty field instead.")
    if kind == "word":
        return text.strip()
    if kind == "number":
        number = as_number(text, decimal)
        if math.isnan(number):
            raise ValueError(f"expected a number. Got {shown(text)} instead.")
        return number
    whole = _whole(text)
    if whole is None:
        hint = "(--classes A,B,... says that there are words)"
        raise ValueError(f"expected a whole number, like other labels {hint}. Got {shown(text)} instead.")
    return whole


def kind_of_labels(texts):
    """"integer" if all labels are whole numbers, else "word".

    >>> kind_of_labels(["1", "-1"]), kind_of_labels(["1", "up"])
    ('integer', 'word')
    """
    return "integer" if all(_whole(text) is not None for text in texts if text.strip()) else "word"


def _whole(text):
    """The whole number that a text means, exactly; None if it is none."""
    for convert in (int, float):
        try:
            number = convert("?" if "_" in text else text)
            return int(number) if number == int(number) else None
        except (ValueError, OverflowError):
            pass
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


def _listed(names, most=20):
    return ", ".join(map(repr, names[:most])) + ", ..." * (len(names) > most)


def _digest(fields):
    """A row, or a header, as a file of a model remembers it."""
    text = json.dumps(str(fields) if isinstance(fields, ValueError) else fields)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


# ---- Lines --------------------------------------------------------------------------------------


class _Due(Exception):
    """The rows that have come so far should not wait for the next one."""


class _Lines:
    """Lines of a table's text, each with its end, as soon as they come; after a signal, those that were read.

    What is no text is refused, and so is a line that does not end.
    """

    def __init__(self, file, table):
        self.file, self.table, self.interruption = file, table, table.interruption
        decoder = codecs.getincrementaldecoder("utf-8-sig")(errors="surrogateescape")
        self.decode = io.IncrementalNewlineDecoder(decoder, translate=True).decode
        self.ready, self.rest = deque(), ""  # whole lines; the beginning of the next one
        self.count, self.is_over, self.is_utf8 = 0, False, True

    def __iter__(self):
        return self

    def __next__(self):
        while not self.ready:
            if self.is_over or self.interruption.signal is not None:
                raise StopIteration
            if len(self.rest) >= LONGEST:
                what = f"expected a line of less than {LONGEST} characters. It does not end."
                raise self.table.bad_row(self.count + 1, None, what)
            if not self.table.is_live or os.name == "nt" or self._has_come():  # Windows cannot wait for a pipe
                self._receive()
        self.table.is_between = False
        self.count += 1
        line = self.ready.popleft()
        if self.count == 1:
            self._check_encoding(line)
        return line

    def _has_come(self):
        """Wait until there is something to read, or a signal has come."""
        until, wake = self.table.until, self.interruption.wake
        left = None if until is None or not self.table.is_between else max(0.0, until - monotonic())
        found = select.select([self.file, *([] if wake is None else [wake])], [], [], left)[0]
        if not found:
            raise _Due
        if wake in found:
            os.read(wake, AT_A_TIME)  # the handler has been called when the loop begins again
        return self.file in found and wake not in found

    def _receive(self):
        try:
            received = self.file.read1(AT_A_TIME)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise ValueError(f"{self.table.name} is not a complete gzip file: {error}.") from error
        self.is_over = not received
        text = self.decode(received, final=self.is_over)
        self.is_utf8 = self.is_utf8 and _is_utf8(text)
        *lines, self.rest = (self.rest + text).split("\n")
        self.ready.extend(line + "\n" for line in lines)
        if self.is_over and self.rest:
            self.ready.append(self.rest)

    def _check_encoding(self, line):
        problem = None
        if line.startswith("\x1f\udc8b"):
            problem = "is compressed, without a name that ends in .gz. Unpack it: gzip -dc old.gz > new.csv"
        elif line.startswith(("\udcff\udcfe", "\udcfe\udcff")) or line.count("\0") > len(line) / 4:
            problem = ("is not UTF-8 text: it looks like UTF-16, as spreadsheets write it. Save it as \"CSV UTF-8\", "
                       "or convert it: iconv -f UTF-16 -t UTF-8 old.csv > new.csv")
        if problem is not None:
            raise ValueError(f"{self.table.name} {problem}")


# ---- Writing ------------------------------------------------------------------------------------


class Writer:
    """Writes rows at once, as CSV or as JSON lines. A file is not touched before the first row, or the end."""

    def __init__(self, path, is_json, has_headings):
        self.path, self.has_headings, self.waiting = path, has_headings, []
        self.is_json = is_json or path is not None and path.lower().removesuffix(".gz").endswith(JSON_LINES)
        self.file = sys.stdout if path is None else None

    def write(self, headings, rows):
        """Write rows; an empty one keeps the place of a row that was skipped. Without headings they wait for them."""
        self.waiting += rows
        if headings is not None:
            self._write(headings)

    def _write(self, headings):
        if self.file is None:
            try:
                opened = gzip.open if self.path.lower().endswith(".gz") else open
                self.file = opened(self.path, "wt", encoding="utf-8", newline="")
            except OSError as error:
                what = f"--output must be a file that can be written. Got {self.path!r}: {error.strerror}."
                raise Refused(what) from error
        if self.is_json:
            objects = (dict(zip(headings, row, strict=True)) if row else None for row in self.waiting)
            self.file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in objects)
        else:
            csv.writer(self.file, lineterminator="\n").writerows([headings] * self.has_headings + self.waiting)
            self.has_headings = self.has_headings and not headings
        self.waiting = []
        self.file.flush()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            self._write([])
        if self.path is not None and self.file is not None:
            self.file.close()
