"""What a line means: CSV, TSV and LIBSVM lines as numbers and labels.

A parser turns many lines into arrays at once (`parse_all`) and, where that fails, one line
(`parse_one`), so that an error can name the line and the column.
"""
from __future__ import annotations

import csv
import re
from typing import TYPE_CHECKING

import numpy as np

from onlinekernels.nouns.values import instants_of, kind_of, numbers_of
from onlinekernels.streams.labels import as_number, problem_with_number, shown, whole_number
from onlinekernels.validation import Argument, Sentence

if TYPE_CHECKING:
    from onlinekernels.annotations import Any

__all__ = ["BadRow", "Delimited", "Svmlight", "DELIMITERS", "is_blank", "bad_option"]

DELIMITERS = {"csv": ",", "tsv": "\t"}
# A field between semicolons that is a number with a decimal comma, as spreadsheets write it where the comma is decimal.
_DECIMAL_COMMA = re.compile(r"(?<![^;])([ \t]*\"?[ \t]*[+-]?(?:[0-9]*|[1-9][0-9]{0,2}(?:\.[0-9]{3})+)),"
                            r"([0-9]+(?:[eE][+-]?[0-9]+)?[ \t]*\"?\s*)(?![^;])")
_SKIPS = (Argument("on_error", "'skip'"), " such rows.)")
_WAY_OUT = Sentence(" (", Argument("features"), " leaves columns out, ", *_SKIPS)


class BadRow(ValueError):
    """A row that cannot be learned from.

    Attributes
    ----------
    source : str
        Name of the file.
    line : int
        Number of the line, counted from 1; for arrays, number of the row, counted from 0.
    column : str, int or None
        Name of the column or, without a header, its index counted from 0.
    """

    def __init__(self, source: Any, line: Any, column: Any, problem: Any, unit: Any = "line") -> None:
        where = f"{source}, {unit} {line}"
        if column is not None:
            where += f", column {column!r}" if isinstance(column, str) else f", column {column} (counted from 0)"
        super().__init__(Sentence(f"{where}: ", problem))
        self.source, self.line, self.column = source, line, column


class Delimited:
    """The columns of CSV or TSV lines, as the first line and the options tell."""

    def __init__(self, first_line, name, options):
        self.name = name
        self.delimiter = options["delimiter"] or _sniffed(first_line, options["format"])
        fields = self._fields(self._pointed(first_line), 1)
        self.width = len(fields)
        self.has_header = _is_header(fields, options)
        self.header = [first_line] if self.has_header else []
        self.names = fields if self.has_header else None
        target = options["target"]
        self.has_several = isinstance(target, (list, tuple))
        self.targets = [] if target is None else [
            self._index(column, "target") for column in (target if self.has_several else [target])
        ]
        features = options["features"]
        if features is None and self.has_header and options["names"] is not None:
            features = self._expected(options["names"])
        if features is None:
            self.columns = [i for i in range(self.width) if i not in self.targets]
        else:
            self.columns = [self._index(feature, "features") for feature in features]
        self._check(options)
        self.has_target = bool(self.targets)
        self.takes_all = self.columns == list(range(self.width))
        self.kinds = None if options["kinds"] is None else self._kinds(options["kinds"])

    def _kinds(self, given):
        """What each column of X holds, None as long as that is not known."""
        if isinstance(given, str):
            return [None] * len(self.columns)
        if isinstance(given, dict):
            known = {self._index(column, "kinds"): kind for column, kind in given.items()}
            return [known.get(i) for i in self.columns]
        return list(given) if len(given) == len(self.columns) else [None] * len(self.columns)  # those of other columns

    def _check(self, options):
        if not self.columns:
            raise ValueError(f"{self.name} has no column besides the target; expected at least one feature.")
        if len(set(self.targets)) < len(self.targets):
            raise bad_option("target", "different columns", options["target"])
        if set(self.targets) & set(self.columns):
            columns = [self._called(i) for i in self.columns]
            raise bad_option("target", f"one of the columns of X, {_listed(columns)}", options["target"], "must not be")

    @property
    def feature_names(self):
        return None if self.names is None else [self.names[i] for i in self.columns]

    @property
    def target_names(self):
        return [self._called(i) for i in self.targets]

    def _called(self, index):
        return index if self.names is None else self.names[index]

    def _index(self, column, parameter):
        """Index of a column that is given by its name or index."""
        if isinstance(column, str) and self.names is not None and self.names.count(column) == 1:
            return self.names.index(column)
        index = whole_number(column)
        if index is not None and -self.width <= index < self.width and not self._is_name(column):
            return index % self.width
        raise bad_option(parameter, Sentence(self._choices(column), f" of {self.name}"), column)

    def _expected(self, names):
        """The names that the header must have; None if it has just these, some of them perhaps twice."""
        if [name for i, name in enumerate(self.names) if i not in self.targets] == list(names):
            return None
        missing = [name for name in names if name not in self.names]
        if missing:
            what = f"{self.name} has no column {missing[0]!r}; expected columns {_listed(names)}. Got {_listed(self.names)} instead."
            raise ValueError(Sentence(f"{what} (", Argument("features"), " says which columns to use in their place.)"))
        return names

    def _is_name(self, column):
        return self.names is not None and column in self.names

    def _choices(self, column):
        indices = f"an index from {-self.width} to {self.width - 1}"
        if self.names is None:
            return f"{indices} of a column, as there is no header,"
        if self._is_name(column):
            return f"{indices}, as several columns have that name,"
        choices = f"a column, one of {_listed(self.names)}, or {indices},"
        other = next((mark for mark in ";\t|," if mark != self.delimiter and self.width == 1 and mark in self.names[0]), "")
        return Sentence(choices, " (is ", Argument("delimiter", repr(other)), " meant?)") if other else choices

    def _pointed(self, text):
        """A line in which numbers have decimal points, where fields are between semicolons."""
        return _pointed(text) if self.delimiter == ";" else text

    def _fields(self, text, number):
        if '"' not in text:
            return [field.strip() for field in text.split(self.delimiter)]
        try:
            fields = next(csv.reader([text], delimiter=self.delimiter, strict=True, skipinitialspace=True))
        except csv.Error as error:
            expected = f"a shorter field ({error})" if "limit" in str(error) else "quotes that match"
            problem = f"expected {expected}. Got {shown(text)} instead."
            raise BadRow(self.name, number, None, problem) from error
        return [field.strip() for field in fields]

    def parse_all(self, texts):
        """(X, labels as text) of lines in which nothing is wrong; otherwise ValueError."""
        if self.delimiter == ";":
            texts = [*map(self._pointed, texts)]
        if self.kinds is not None:
            return self._parse_mixed(texts)
        return self._parse_numbers(texts)

    def _parse_mixed(self, texts):
        """`parse_all` where there are words and dates and holes; X holds the texts unless all of them are numbers."""
        if set(self.kinds) <= {"number", None}:
            try:
                parsed = self._parse_numbers(texts)
                self.kinds = ["number"] * len(self.columns)
                return parsed
            except ValueError:
                pass
        rows = [self._fields(text, 0) for text in texts]
        if {len(row) for row in rows} != {self.width}:
            raise ValueError
        columns = [[row[i] for row in rows] for i in self.columns]
        kinds = [next(filter(None, map(kind_of, column)), None) if kind is None else kind
                 for kind, column in zip(self.kinds, columns, strict=True)]
        if any(_first_odd(kind, column) is not None for kind, column in zip(kinds, columns, strict=True)):
            raise ValueError
        self.kinds = kinds
        return self.stack(list(zip(*columns, strict=True))), [self._label(row) for row in rows] if self.has_target else None

    def _parse_numbers(self, texts):
        separators = self.width - 1
        for text in texts:
            if '"' in text:
                return self._parse_quoted(texts)
            if text.count(self.delimiter) != separators:
                raise ValueError
        columns = None if self.takes_all else self.columns
        X = np.loadtxt(texts, delimiter=self.delimiter, comments=None, usecols=columns, ndmin=2)
        if not np.isfinite(X).all():
            raise ValueError
        if not self.has_target:
            return X, None
        delimiter, target = self.delimiter, self.targets[0]
        if self.has_several:
            return X, [self._label(text.split(delimiter)) for text in texts]
        return X, [text.split(delimiter, target + 1)[target].strip() for text in texts]

    def _parse_quoted(self, texts):
        """`parse_all` where quotes may hide delimiters."""
        try:
            rows = list(csv.reader(texts, delimiter=self.delimiter, strict=True, skipinitialspace=True))
        except csv.Error as error:
            raise ValueError from error
        if len(rows) != len(texts) or {len(row) for row in rows} != {self.width}:
            raise ValueError
        X = np.array([[as_number(row[i]) for i in self.columns] for row in rows], dtype=float)
        if not np.isfinite(X).all():  # what is no number became NaN
            raise ValueError
        return X, [self._label(row) for row in rows] if self.has_target else None

    def parse_one(self, number, text):
        """(x, label as text) of one line; BadRow says what is wrong with it."""
        fields = self._fields(self._pointed(text), number)
        if len(fields) != self.width:
            problem = f"expected {self.width} fields. Got {len(fields)} instead."
            raise BadRow(self.name, number, None, problem)
        if self.kinds is not None:
            return self._mixed_one(number, fields)
        x = [_finite(fields[i], self.name, number, self._called(i), _WAY_OUT) for i in self.columns]
        return x, self._label(fields) if self.has_target else None

    def _mixed_one(self, number, fields):
        x = [fields[i] for i in self.columns]
        kinds = [kind_of(text) if kind is None else kind for kind, text in zip(self.kinds, x, strict=True)]
        for i, kind, text in zip(self.columns, kinds, x, strict=True):
            if _first_odd(kind, [text]) is not None:
                finite = "finite " if kind == "number" and as_number(text) is not None else ""
                problem = f"expected a {finite}{kind}, as in rows before. Got {shown(text)} instead."
                raise BadRow(self.name, number, self._called(i), Sentence(problem, _WAY_OUT))
        self.kinds = kinds
        return x, self._label(fields) if self.has_target else None

    def _label(self, fields):
        """The text of the label, or a list of the texts of several targets."""
        if self.has_several:
            return [fields[i].strip() for i in self.targets]
        return fields[self.targets[0]].strip()

    def stack(self, rows):
        kind = float if self.kinds is None else object
        return np.array(rows, dtype=kind).reshape(len(rows), len(self.columns))


class Svmlight:
    """LIBSVM lines: ``label index:value index:value ... # comment``, indices ascending from 1."""

    has_header = False
    header: list[str] = []
    feature_names = None
    target_names = ["label"]

    def __init__(self, first_line, name, options):
        self.name = name
        self.n_features = options["n_features"]
        self.is_sparse = options["sparse"]
        self.has_target = ":" not in (_words(first_line) or [""])[0]

    def parse_all(self, texts):
        """(X, labels as text) of lines in which nothing is wrong; otherwise ValueError."""
        tokens, labels, lengths = [], [], []
        for text in texts:
            words = _words(text)
            if self.has_target:
                labels.append(words.pop(0) if words else "")
            lengths.append(len(words))
            tokens += words
        pairs = [token.partition(":") for token in tokens]
        if any("_" in token for token in tokens) or any(":" in label for label in labels):
            raise ValueError
        indices = np.array([int(pair[0]) for pair in pairs], dtype=np.int64) - 1
        values = np.array([float(pair[2]) for pair in pairs])
        starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        self._check_all(indices, values, starts)
        return self._matrix(indices, values, starts), labels if self.has_target else None

    def _check_all(self, indices, values, starts):
        if len(values) == 0:
            return
        is_first = np.zeros(len(values) + 1, dtype=bool)
        is_first[starts] = True
        ascending = (np.diff(indices) > 0) | is_first[1:-1]
        inside = indices.min() >= 0 and indices.max() < self.n_features
        if not (inside and ascending.all() and np.isfinite(values).all()):
            raise ValueError

    def parse_one(self, number, text):
        """((indices, values), label as text) of one line; BadRow says what is wrong with it."""
        words = _words(text)
        label = None
        if self.has_target:
            label = words.pop(0) if words else ""
            if ":" in label:
                raise BadRow(self.name, number, self.target_names[0], f"expected a label. Got {shown(label)} instead.")
        indices, values, last = [], [], 0
        for word in words:
            index, colon, value = word.partition(":")
            place = whole_number(index)
            if not colon or place is None:
                raise BadRow(self.name, number, None, f"expected index:value. Got {shown(word)} instead.")
            if not last < place <= self.n_features:
                expected = f"ascending indices from 1 to n_features={self.n_features}"
                raise BadRow(self.name, number, None, f"expected {expected}. Got {place} after {last} instead.")
            indices.append(place - 1)
            values.append(_finite(value, self.name, number, index))
            last = place
        return (indices, values), label

    def stack(self, rows):
        starts = np.concatenate([[0], np.cumsum([len(values) for _, values in rows])]).astype(np.int64)
        indices = np.array([index for indices, _ in rows for index in indices], dtype=np.int64)
        return self._matrix(indices, np.array([value for _, values in rows for value in values], dtype=float), starts)

    def _matrix(self, indices, values, starts):
        shape = (len(starts) - 1, self.n_features)
        if self.is_sparse:
            from scipy.sparse import csr_matrix

            return csr_matrix((values, indices, starts), shape=shape)
        X = np.zeros(shape)
        X[np.repeat(np.arange(shape[0]), np.diff(starts)), indices] = values
        return X


def is_blank(text, options):
    """Whether a line is no row: nothing is on it or, in LIBSVM data, only a comment. Empty fields are a row."""
    is_libsvm = options["format"] == "libsvm"
    if text and not text.isspace():
        return is_libsvm and text.lstrip().startswith("#")
    return is_libsvm or (options["delimiter"] or DELIMITERS[options["format"]]) not in text


def _first_odd(kind, column):
    """Index of the first text of a column that is not of its kind, and not missing; None without one."""
    if kind not in ("number", "date"):
        return None
    values, odd = (numbers_of if kind == "number" else instants_of)(column)
    if kind == "number" and np.isinf(values).any():
        odd = [int(np.argmax(np.isinf(values))), *odd]
    return min(odd, default=None)


def _sniffed(first_line, format):
    """What is between fields if nobody says it: a comma in CSV, unless the first line has none, but for decimal commas
    between semicolons, and has another mark."""
    usual = DELIMITERS[format]
    others = [mark for mark in ";\t|" if mark in first_line]
    return others[0] if format == "csv" and others and usual not in _pointed(first_line) else usual


def _pointed(text):
    """A line of fields between semicolons, with a point in each number that has a decimal comma."""
    if "," not in text or ";" not in text:
        return text
    return _DECIMAL_COMMA.sub(lambda found: f"{found[1].replace('.', '')}.{found[2]}", text)


def _words(text):
    """Words of a LIBSVM line, without its comment and its query id."""
    words = text.partition("#")[0].split()
    return [word for word in words if not word.startswith("qid:")] if "qid:" in text else words


def _finite(text, name, line, column, way_out=""):
    problem = problem_with_number(text)
    if problem is not None:
        raise BadRow(name, line, column, Sentence(problem, way_out))
    return float(text)


def _is_header(fields, options):
    if options["header"] != "auto":
        return bool(options["header"])
    return any(fields) and all(as_number(field) is None for field in fields)


def _listed(names, most=20):
    """Names in a sentence."""
    return ", ".join(map(repr, names[:most])) + ", ..." * (len(names) > most)


def bad_option(parameter, expected, value, verb="must be"):
    return ValueError(Sentence(Argument(parameter, owner="read"), f" {verb} ", expected, f". Got {value!r} instead."))
