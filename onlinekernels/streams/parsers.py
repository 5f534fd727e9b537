"""What a line means: CSV, TSV and LIBSVM lines as numbers and labels.

A parser turns many lines into arrays at once (`parse_all`) and, where that fails, one line
(`parse_one`), so that an error can name the line and the column. `Labels` decides, once for a whole
stream, between numbers and strings.
"""

import csv
from numbers import Integral

import numpy as np

__all__ = ["BadRow", "Delimited", "Svmlight", "Labels", "DELIMITERS", "whole_number", "bad_option"]

DELIMITERS = {"csv": ",", "tsv": "\t"}


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

    def __init__(self, source, line, column, problem, unit="line"):
        where = f"{source}, {unit} {line}"
        if column is not None:
            where += f", column {column!r}" if isinstance(column, str) else f", column {column} (counted from 0)"
        super().__init__(f"{where}: {problem}")
        self.source, self.line, self.column = source, line, column


class Delimited:
    """The columns of CSV or TSV lines, as the first line and the options tell."""

    def __init__(self, first_line, name, options):
        self.name = name
        self.delimiter = options["delimiter"] or DELIMITERS[options["format"]]
        fields = self._fields(first_line, 1)
        self.width = len(fields)
        self.has_header = _is_header(fields, options)
        self.names = fields if self.has_header else None
        target = options["target"]
        self.target = None if target is None else self._index(target, "target")
        features = options["features"]
        if features is None and self.has_header and options["names"] is not None:
            features = self._expected(options["names"])
        if features is None:
            self.columns = [i for i in range(self.width) if i != self.target]
        else:
            self.columns = [self._index(feature, "features") for feature in features]
        self._check(options)
        self.has_target = self.target is not None
        self.takes_all = self.columns == list(range(self.width))

    def _check(self, options):
        if not self.columns:
            raise ValueError(f"{self.name} has no column besides the target; expected at least one feature.")
        if self.target in self.columns:
            columns = [self._called(i) for i in self.columns]
            raise ValueError(
                f"The 'target' parameter of read must not be one of the columns of X, {_listed(columns)}. "
                f"Got {options['target']!r} instead."
            )

    @property
    def feature_names(self):
        return None if self.names is None else [self.names[i] for i in self.columns]

    @property
    def target_name(self):
        return self._called(self.target)

    def _called(self, index):
        return index if self.names is None else self.names[index]

    def _index(self, column, parameter):
        """Index of a column that is given by its name or index."""
        if isinstance(column, str) and self.names is not None and self.names.count(column) == 1:
            return self.names.index(column)
        index = whole_number(column)
        if index is not None and -self.width <= index < self.width and not self._is_name(column):
            return index % self.width
        raise bad_option(parameter, f"{self._choices(column)} of {self.name}", column)

    def _expected(self, names):
        """The names that the header must have; None if it has just these, some of them perhaps twice."""
        if [name for i, name in enumerate(self.names) if i != self.target] == list(names):
            return None
        missing = [name for name in names if name not in self.names]
        if missing:
            raise ValueError(
                f"{self.name} has no column {missing[0]!r}; expected columns {_listed(names)}. Got {_listed(self.names)} "
                "instead. (features= says which columns to use in their place.)"
            )
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
        return f"{choices} (is delimiter={other!r} meant?)" if other else choices

    def _fields(self, text, number):
        if '"' not in text:
            return [field.strip() for field in text.split(self.delimiter)]
        try:
            fields = next(csv.reader([text], delimiter=self.delimiter, strict=True, skipinitialspace=True))
        except csv.Error as error:
            expected = f"a shorter field ({error})" if "limit" in str(error) else "quotes that match"
            problem = f"expected {expected}. Got {_shown(text)} instead."
            raise BadRow(self.name, number, None, problem) from error
        return [field.strip() for field in fields]

    def parse_all(self, texts):
        """(X, labels as text) of lines in which nothing is wrong; otherwise ValueError."""
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
        delimiter, target = self.delimiter, self.target
        return X, [text.split(delimiter, target + 1)[target].strip() for text in texts]

    def _parse_quoted(self, texts):
        """`parse_all` where quotes may hide delimiters."""
        try:
            rows = list(csv.reader(texts, delimiter=self.delimiter, strict=True, skipinitialspace=True))
        except csv.Error as error:
            raise ValueError from error
        if len(rows) != len(texts) or {len(row) for row in rows} != {self.width}:
            raise ValueError
        X = self.stack([[_number(row[i]) for i in self.columns] for row in rows])
        if not np.isfinite(X).all():  # what is no number became NaN
            raise ValueError
        return X, [row[self.target].strip() for row in rows] if self.has_target else None

    def parse_one(self, number, text):
        """(x, label as text) of one line; BadRow says what is wrong with it."""
        fields = self._fields(text, number)
        if len(fields) != self.width:
            problem = f"expected {self.width} fields. Got {len(fields)} instead."
            raise BadRow(self.name, number, None, problem)
        x = [_finite(fields[i], self.name, number, self._called(i)) for i in self.columns]
        return x, fields[self.target] if self.has_target else None

    def stack(self, rows):
        return np.array(rows, dtype=float).reshape(len(rows), len(self.columns))


class Svmlight:
    """LIBSVM lines: ``label index:value index:value ... # comment``, indices ascending from 1."""

    has_header = False
    feature_names = None
    target_name = "label"

    def __init__(self, first_line, name, options):
        self.name = name
        self.n_features = options["n_features"]
        self.is_sparse = options["sparse"]
        self.has_target = ":" not in (first_line.split() or [""])[0]

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
                raise BadRow(self.name, number, self.target_name, f"expected a label. Got {_shown(label)} instead.")
        indices, values, last = [], [], 0
        for word in words:
            index, colon, value = word.partition(":")
            place = whole_number(index)
            if not colon or place is None:
                raise BadRow(self.name, number, None, f"expected index:value. Got {_shown(word)} instead.")
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


def _words(text):
    """Words of a LIBSVM line, without its comment and its query id."""
    words = text.partition("#")[0].split()
    return [word for word in words if not word.startswith("qid:")] if "qid:" in text else words


class Labels:
    """What the labels of a stream are: decided by the first chunk, then the same for all.

    >>> labels = Labels("auto")
    >>> labels.convert(["1", "-1"]), labels.kind
    (array([ 1, -1]), 'integer')
    >>> labels.problem_with("up")
    "expected a number, like the labels before it; label_type='string' takes any label. Got 'up' instead."
    """

    def __init__(self, label_type, kind=None):
        self.label_type = label_type
        self.kind = kind or {"number": "float", "string": "string"}.get(label_type)

    def decide(self, texts):
        """Let the texts decide, if nothing has yet."""
        texts = [text for text in texts if text]  # a row without a label says nothing about the others
        if self.kind is None and texts:
            self.kind = "integer" if all(_number(text) is not None for text in texts) else "string"

    def convert(self, texts):
        """Labels as an array; ValueError if one of them is bad."""
        self.decide(texts)
        if self.kind == "string":
            "".join(texts).encode()  # UnicodeEncodeError, a ValueError, for what was not UTF-8
            if "" in texts:
                raise ValueError
            return np.array(texts, dtype=str)
        values = np.array([_number(text) for text in texts], dtype=float)
        if not np.isfinite(values).all():
            raise ValueError
        if self.kind == "integer":
            if (values == np.rint(values)).all() and (np.abs(values) < 2**53).all():
                return values.astype(np.int64)
            self.kind = "float"
        return values

    def problem_with(self, text):
        """What is wrong with a label, or None."""
        if text == "":
            return "expected a label. Got an empty field instead."
        if self.kind == "string":
            try:
                text.encode()
            except UnicodeEncodeError:
                return f"expected a label in UTF-8. Got {_shown(text)} instead."
            return None
        value = _number(text)
        if value is None and self.label_type == "auto":
            return (
                "expected a number, like the labels before it; label_type='string' takes any label. "
                f"Got {_shown(text)} instead."
            )
        return _problem_with_number(text)

    def convert_array(self, y, name):
        """Labels that are an array already."""
        if y.dtype.kind == "S":
            y = np.char.decode(y, "utf-8")
        if y.dtype.kind not in "fiubU":
            raise ValueError(f"The labels in {name} must be numbers or strings. Got dtype {y.dtype} instead.")
        if self.label_type == "string":
            return y.astype(str)
        if self.label_type == "number":
            if y.dtype.kind == "U":
                raise ValueError(f"The labels in {name} must be numbers for label_type='number'. Got strings instead.")
            return y.astype(float)
        return np.array(y)


def _number(text):
    """The number that a text means, or None."""
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None


def _problem_with_number(text):
    value = _number(text)
    if value is None:
        return f"expected a number. Got {_shown(text) if text else 'an empty field'} instead."
    return None if np.isfinite(value) else f"expected a finite number. Got {_shown(text)} instead."


def _finite(text, name, line, column):
    problem = _problem_with_number(text)
    if problem is not None:
        raise BadRow(name, line, column, problem)
    return float(text)


def whole_number(value):
    """An integer that a value is or spells, or None."""
    if isinstance(value, Integral) and not isinstance(value, bool):
        return int(value)
    if isinstance(value, str) and value.removeprefix("-").isdecimal():
        return int(value)
    return None


def _is_header(fields, options):
    if options["header"] != "auto":
        return bool(options["header"])
    return any(fields) and all(_number(field) is None for field in fields)


def _listed(names, most=20):
    """Names in a sentence."""
    return ", ".join(map(repr, names[:most])) + ", ..." * (len(names) > most)


def _shown(text, most=60):
    return repr(text if len(text) <= most else text[: most - 3] + "...")


def bad_option(parameter, expected, value):
    return ValueError(f"The {parameter!r} parameter of read must be {expected}. Got {value!r} instead.")
