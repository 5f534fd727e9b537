"""Readers: examples from files and from standard input, chunk by chunk, in constant memory.

`read` is the one entry point. It returns a `Reader`, whose chunks ``(X, y)`` a model learns one after
the other. ``lines`` says where lines come from, ``parsers`` what they mean, and ``arrays`` takes rows
of arrays, which have no lines.
"""

import os
from itertools import chain

import numpy as np

from onlinekernels.streams.arrays import as_points, open_npy, open_npz
from onlinekernels.streams.lines import can_reopen, name_of, numbered, open_lines
from onlinekernels.streams.parsers import DELIMITERS, BadRow, Delimited, Labels, Svmlight, bad_option, whole_number

__all__ = ["read", "Reader", "format_of"]

FORMATS = ("csv", "tsv", "libsvm", "npy", "npz")
_EXTENSIONS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".libsvm": "libsvm",
    ".svmlight": "libsvm",
    ".svm": "libsvm",
    ".npy": "npy",
    ".npz": "npz",
}
_LABEL_TYPES = ("auto", "number", "string")


def read(
    source,
    *,
    target=None,
    chunk=1024,
    format=None,
    header="auto",
    features=None,
    label_type="auto",
    on_error="raise",
    limit=None,
    n_features=None,
    sparse=False,
    names=None,
    delimiter=None,
    pause=0.1,
    start=None,
):
    """Return a reader of the examples in a file or on standard input.

    Parameters
    ----------
    source : str, path or file object
        A file: .csv, .tsv or .tab, .libsvm, .svmlight or .svm, each also with .gz, .npy or .npz.
        "-" is standard input. An open text file, or any iterable of lines, needs `format`.
    target : str or int, default=None
        Column of the labels: its name in the header, or its index, which may be negative. Digits in a
        string are an index if no column has that name. In .npz files the name of an array; there,
        None means "y" if the file has it. Without a target y is None. LIBSVM lines begin with it.
    chunk : int, default=1024
        Most rows per chunk. With 1, every line of a live input is a chunk at once.
    format : {"csv", "tsv", "libsvm", "npy", "npz"}, default=None
        None goes by the name of the file; for standard input it means "csv".
    header : "auto" or bool, default="auto"
        Whether the first line names the columns. "auto" says yes if none of its fields is a number.
    features : list of str and int, default=None
        Columns of X, in this order. None means all but the target. In .npz files a list with the name
        of one array; there, None means "X".
    label_type : {"auto", "number", "string"}, default="auto"
        "auto" looks at the first chunk: numbers if all labels are numbers (whole ones as integers),
        else strings.
    on_error : {"raise", "skip"}, default="raise"
        What to do with a bad row: raise `BadRow`, or skip and count it.
    limit : int, default=None
        Stop after so many rows.
    n_features : int, default=None
        Number of features of LIBSVM data, which do not say it themselves.
    sparse : bool, default=False
        Give LIBSVM data as `scipy.sparse.csr_matrix`.
    names : list of str, default=None
        Where `features` is None and there is a header: names of the columns of X, in this order, which
        the header must have among others. Data without a header are taken as they come.
    delimiter : str, default=None
        One character between the fields of a line. None is a comma for CSV, a tab for TSV.
    pause : float, default=0.1
        On standard input and named pipes, a chunk that is not full is given after so many seconds
        without a line.
    start : dict, default=None
        A `Reader.position` from which to go on.

    Returns
    -------
    Reader

    Raises
    ------
    ValueError
        If an argument makes no sense. What is wrong with the data shows while reading.

    Examples
    --------
    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "fruit.csv")
    >>> with open(path, "w") as file:
    ...     _ = file.write("weight,length,kind\\n150,8,apple\\n120,19,banana\\n160,7.5,apple\\n")
    >>> for X, y in read(path, target="kind", chunk=2):
    ...     print(X.tolist(), y.tolist())
    [[150.0, 8.0], [120.0, 19.0]] ['apple', 'banana']
    [[160.0, 7.5]] ['apple']
    >>> os.remove(path); os.rmdir(os.path.dirname(path))
    """
    options = dict(locals())
    options["format"] = format_of(source, format)
    _check_options(**options)
    return Reader(**options)


class Reader:
    """Chunks ``(X, y)`` of a stream, in constant memory; made by `read`.

    A file may be iterated again, from its beginning; standard input only once.

    Attributes
    ----------
    name : str
        What errors call the source.
    n_rows : int
        Rows given so far, in this pass.
    n_skipped : int
        Bad rows skipped so far, in this pass.
    feature_names : list of str or None
        Names of the columns of X, where the source has names. Standard input tells them only once
        it has been read from.
    position : dict
        How far the chunks given so far reach, for `read(..., start=position)`.
    """

    def __init__(self, source, start=None, **options):
        self._source = source
        self._start = start or {"line": 0, "rows": 0, "skipped": 0, "labels": None}
        self._options = options
        self._columns = None
        self._is_used = False
        self.name = name_of(source)
        self._go_to_start()

    def __repr__(self):
        return f"Reader({self.name!r}, format={self._options['format']!r}, target={self._options['target']!r})"

    @property
    def feature_names(self):
        if self._columns is None and self._options["format"] in DELIMITERS and can_reopen(self._source):
            with open_lines(self._source, None) as lines:
                self._split_off_header(numbered(lines))
        return None if self._columns is None else self._columns.feature_names

    @property
    def position(self):
        return {
            "line": self._line,
            "rows": self.n_rows,
            "skipped": self.n_skipped,
            "labels": None if self._options["format"] in ("npy", "npz") else self._labels.kind,
        }

    def __iter__(self):
        self._go_to_start()
        return self._array_chunks() if self._options["format"] in ("npy", "npz") else self._text_chunks()

    def _go_to_start(self):
        self._line, self.n_rows = self._start["line"], self._start["rows"]
        self.n_skipped = self._start["skipped"]
        self._labels = Labels(self._options["label_type"], self._start["labels"])

    def _wanted(self):
        """How many rows the next chunk may have."""
        chunk, limit = self._options["chunk"], self._options["limit"]
        return chunk if limit is None else max(0, min(chunk, limit - self.n_rows))

    def _handle(self, error):
        """Raise a BadRow, or count it."""
        if self._options["on_error"] == "raise":
            raise error
        self.n_skipped += 1

    # ---- Text ---------------------------------------------------------------------------------

    def _text_chunks(self):
        if self._is_used and not can_reopen(self._source):
            raise ValueError(f"{self.name} can be read only once; expected a file for a second pass.")
        self._is_used = True
        with open_lines(self._source, self._options["pause"]) as lines:
            lines = self._reaching_start(self._split_off_header(numbered(lines)))
            for numbers, texts in self._batches(lines):
                X, y = self._parsed(numbers, texts)
                self._line = numbers[-1]
                self.n_rows += X.shape[0]
                if X.shape[0]:
                    yield X, y

    def _split_off_header(self, lines):
        """The numbered lines without a header; the first line decides what the columns are."""
        for number, text in lines:
            if text is not None and text.strip():
                kind = Svmlight if self._options["format"] == "libsvm" else Delimited
                self._columns = kind(text.rstrip("\r\n"), self.name, self._options)
                return lines if self._columns.has_header else chain([(number, text)], lines)
        return iter(())

    def _reaching_start(self, lines):
        """The lines; ValueError if they end before the place from which to go on."""
        last = 0
        for last, text in lines:
            yield last, text
        if last < self._start["line"]:
            self._refuse_start(last)

    def _refuse_start(self, end):
        unit = "row" if self._options["format"] in ("npy", "npz") else "line"
        raise ValueError(f"{self.name} ends at {unit} {end}; expected to go on after {unit} {self._start['line']}.")

    def _batches(self, lines):
        """Yield (line numbers, lines), as many as a chunk may have or as came before a pause."""
        numbers, texts, wanted = [], [], self._wanted()
        if wanted == 0:
            return
        for number, text in lines:
            if text is not None and number > self._line and text.strip():
                numbers.append(number)
                texts.append(text.rstrip("\r\n"))
            if texts and (text is None or len(texts) >= wanted):
                yield numbers, texts
                numbers, texts, wanted = [], [], self._wanted()
                if wanted == 0:
                    return
        if texts:
            yield numbers, texts

    def _parsed(self, numbers, texts):
        """(X, y) of some lines: all at once or, if anything is wrong, line by line."""
        try:
            X, labels = self._columns.parse_all(texts)
            return X, None if labels is None else self._labels.convert(labels)
        except ValueError:
            return self._parsed_one_by_one(numbers, texts)

    def _parsed_one_by_one(self, numbers, texts):
        rows = []
        for number, text in zip(numbers, texts, strict=True):
            try:
                rows.append((number, *self._columns.parse_one(number, text)))
            except BadRow as error:
                self._handle(error)
        if self._columns.has_target:
            self._labels.decide([label for _, _, label in rows])
            rows = [row for row in rows if self._has_good_label(*row)]
        X = self._columns.stack([x for _, x, _ in rows])
        return X, self._labels.convert([label for _, _, label in rows]) if self._columns.has_target else None

    def _has_good_label(self, number, _, label):
        problem = self._labels.problem_with(label)
        if problem is not None:
            self._handle(BadRow(self.name, number, self._columns.target_name, problem))
        return problem is None

    # ---- Arrays -------------------------------------------------------------------------------

    def _array_chunks(self):
        kind = self._options["format"]
        with (open_npy if kind == "npy" else open_npz)(self._source, self.name, self._options) as take:
            self._skip(take)
            while wanted := self._wanted():
                X, y = take(wanted)
                if len(X) == 0:
                    return
                first, self._line = self._line, self._line + len(X)
                X, y = self._good_rows(first, as_points(X, self.name), y)
                self.n_rows += len(X)
                if len(X):
                    yield X, y

    def _skip(self, take):
        """Pass over the rows before the place from which to go on, a chunk at a time."""
        skipped = 0
        while skipped < self._line:
            count = len(take(min(self._options["chunk"], self._line - skipped))[0])
            if count == 0:
                self._refuse_start(skipped)
            skipped += count

    def _good_rows(self, first, X, y):
        if y is not None:
            y = self._labels.convert_array(y, self.name)
        good = np.isfinite(X).all(axis=1)
        if y is not None and y.dtype.kind == "f":
            good &= np.isfinite(y)
        for row in np.flatnonzero(~good):
            bad = np.flatnonzero(~np.isfinite(X[row]))
            column, value = (int(bad[0]), X[row, bad[0]]) if len(bad) else ("y", y[row])
            problem = f"expected a finite number. Got {value} instead."
            self._handle(BadRow(self.name, first + int(row), column, problem, unit="row"))
        return (X, y) if good.all() else (X[good], None if y is None else y[good])


# ---- Options ------------------------------------------------------------------------------------


def format_of(source, format):
    """The format that is given, or that the name of the file says."""
    if format is not None or not isinstance(source, (str, os.PathLike)):
        return format
    if source == "-":
        return "csv"
    path = os.fspath(source)
    stem, extension = os.path.splitext(path.removesuffix(".gz"))
    if extension.lower() not in _EXTENSIONS:
        known = ", ".join(_EXTENSIONS)
        raise bad_option("source", f"a file that ends in one of {known} (or give format=)", path)
    return _EXTENSIONS[extension.lower()]


def _check_options(
    source, target, chunk, format, header, features, label_type, on_error, limit, n_features, sparse, names, delimiter,
    pause, start,
):
    choices = {
        "format": (format, FORMATS),
        "label_type": (label_type, _LABEL_TYPES),
        "on_error": (on_error, ("raise", "skip")),
        "header": (header, ("auto", True, False)),
    }
    for name, (value, allowed) in choices.items():
        if value not in allowed:
            raise bad_option(name, f"one of {', '.join(map(repr, allowed))}", value)
    for name, value, least in (("chunk", chunk, 1), ("limit", limit, 0), ("n_features", n_features, 1)):
        if not (value is None and name != "chunk") and (whole_number(value) is None or value < least):
            raise bad_option(name, f"an integer of at least {least}", value)
    if format in ("npy", "npz") and (not isinstance(source, (str, os.PathLike)) or source == "-"):
        raise bad_option("source", f"the path of a file for the format {format!r}", source)
    if isinstance(source, (str, os.PathLike)) and format in ("npy", "npz") and os.fspath(source).endswith(".gz"):
        raise bad_option("source", f"a file that is not compressed for the format {format!r}", source)
    if features is not None and (isinstance(features, (str, bytes)) or len(features) == 0):
        raise bad_option("features", "a list of columns, not empty", features)
    if delimiter is not None and (not isinstance(delimiter, str) or len(delimiter) != 1 or delimiter in '"\r\n'):
        raise bad_option("delimiter", "one character that is not a quote or the end of a line", delimiter)
    if delimiter is not None and format not in DELIMITERS:
        raise bad_option("delimiter", f"left out for the format {format!r}", delimiter)
    _check_svmlight_options(format, target, features, n_features, sparse)


def _check_svmlight_options(format, target, features, n_features, sparse):
    if format != "libsvm":
        if n_features is not None or sparse:
            raise bad_option("n_features" if n_features is not None else "sparse", "left out unless data are LIBSVM",
                       sparse if n_features is None else n_features)
        return
    if n_features is None:
        raise bad_option("n_features", "the number of features, as LIBSVM data do not say it", None)
    for name, value in (("target", target), ("features", features)):
        if value is not None:
            raise bad_option(name, "left out for LIBSVM data, whose lines say what is what", value)
    if sparse:
        try:
            import scipy.sparse  # noqa: F401
        except ImportError as error:
            raise ImportError("sparse=True needs scipy: pip install scipy") from error
