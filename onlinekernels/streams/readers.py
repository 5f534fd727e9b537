"""Readers: examples from files and from standard input, chunk by chunk, in constant memory.

`read` is the one entry point. It returns a `Reader`, whose chunks ``(X, y)`` a model learns one after
the other. ``options`` says what it takes, ``lines`` where lines come from, ``parsers`` what they mean,
``labels`` what labels are, ``digests`` how a file is known again; ``arrays`` takes rows of arrays, which have
no lines.
"""
from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from onlinekernels.streams.arrays import as_points, open_npy, open_npz
from onlinekernels.streams.digests import Digest
from onlinekernels.streams.labels import LabelParser, SeveralTargets
from onlinekernels.streams.lines import Waiting, can_reopen, name_of, numbered, open_lines
from onlinekernels.streams.options import ARRAYS, check_options, format_of
from onlinekernels.streams.parsers import DELIMITERS, BadRow, Delimited, Svmlight, is_blank

if TYPE_CHECKING:
    from onlinekernels.annotations import Any, Sequence

__all__ = ["read", "Reader", "ChangedFile"]

_NOTHING_READ = {"line": 0, "rows": 0, "skipped": 0, "labels": None, "digest": None}


def read(source: Any, *, target: Any = None, chunk: int = 1024, format: str | None = None, header: bool | str = "auto",
         features: Sequence[str | int] | None = None, label_type: str = "auto", on_error: str = "raise",
         limit: int | None = None, n_features: int | None = None, sparse: bool = False,
         names: Sequence[str] | None = None, delimiter: str | None = None, kinds: Any = None, pause: float = 0.1,
         start: dict[Any, Any] | None = None) -> Any:
    """Return a reader of the examples in a file or on standard input.

    Parameters
    ----------
    source : str, path or file object
        A file: .csv, .tsv or .tab, .libsvm, .svmlight or .svm, each also with .gz, .npy or .npz.
        "-" is standard input. An open text file, or any iterable of lines, needs `format`.
    target : str, int or list of these, default=None
        Column of the labels: its name in the header, or its index, which may be negative. Digits in a
        string are an index if no column has that name. A list names several columns of numbers, for a y
        with as many columns. In .npz files the name of an array; there, None means "y" if the file has it.
        Without a target y is None. LIBSVM lines begin with it.
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
        "auto" looks at the first chunk: numbers if all labels are numbers (whole ones as exact integers,
        however large), else strings.
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
        One character between the fields of a line. None is a tab for TSV; for CSV a comma, or if the first line has none a
        semicolon, tab or bar that it has. Between semicolons 0,5 is a number.
    kinds : "auto", dict or list, default=None
        Not None takes words, dates and empty fields in CSV and TSV files as well: X is then an array of texts, for models with
        ``encode=True``, unless all of them are numbers. What a column holds ("number", "word" or "date") the first
        row says in which it is not empty; a dict {column: kind} says it of some, a list of all columns of X.
    pause : float, default=0.1
        On standard input and named pipes, a chunk that is not full is given when its oldest line is so
        many seconds old.
    start : dict, default=None
        A `Reader.position` from which to go on; what comes before it must be as it was.

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
    check_options(**options)
    return Reader(**options)


class ChangedFile(ValueError):
    """A file is not what it was when it was read up to the place from which to go on."""


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

    def __init__(self, source: Any, start: Any = None, **options: Any) -> None:
        self._source = source
        self._start = {**_NOTHING_READ, **(start or {})}
        self._options = options
        self._columns = None
        self._is_used = False
        self._waiting = Waiting(options["pause"])
        self.name = name_of(source)
        self.unit = "row" if options["format"] in ARRAYS else "line"
        self._go_to_start()

    def __repr__(self):
        return f"Reader({self.name!r}, format={self._options['format']!r}, target={self._options['target']!r})"

    @property
    def feature_names(self) -> Any:
        if self._columns is None and self._options["format"] in DELIMITERS and can_reopen(self._source):
            with open_lines(self._source, self._waiting) as lines:
                self._without_header(self._rows(lines))
        return None if self._columns is None else self._columns.feature_names

    @property
    def position(self) -> Any:
        digest = self._start["digest"] if self._line == self._start["line"] else self._digest.value
        return {
            "line": self._line,
            "rows": self.n_rows,
            "skipped": self.n_skipped,
            "labels": None if self._options["format"] in ARRAYS else self._labels.kind,
            "digest": None if self._waiting.is_live else digest,
        }

    def __iter__(self):
        return ((X, y) for X, y, _, _ in self.with_lines() if X.shape[0])

    def with_lines(self) -> Any:
        """Yield (X, y, lines, skipped): with each chunk also the numbers of its lines.

        `lines` are those of the rows of X, `skipped` those of the bad rows among them, which were skipped. X may have
        no rows. Arrays have rows in place of lines, counted from 0.
        """
        self._go_to_start()
        return self._array_chunks() if self._options["format"] in ARRAYS else self._text_chunks()

    def stop(self) -> Any:
        """Let the stream end early; a signal handler or another thread may call this.

        Live input ends with the lines that were read, a file with the chunk that was given last, so that
        `position` can be used to go on with the same chunks.
        """
        self._waiting.stop()

    @property
    def is_opening(self) -> Any:
        """Whether it waits for the other end of a named pipe, so that `stop` is not heard."""
        return self._waiting.is_opening

    @property
    def beginning(self) -> Any:
        """(number, digest) of the first rows among those that were read, by which a file is known again."""
        return self._digest.beginning

    def begins(self, count: Any, digest: Any) -> Any:
        """Whether the first rows, so many, have this digest; reads them."""
        first = Reader(self._source, **{**self._options, "limit": None, "chunk": count, "on_error": "skip"})
        for _ in first.with_lines():
            break
        return first.beginning == (count, digest)

    def _go_to_start(self):
        self._line, self.n_rows = self._start["line"], self._start["rows"]
        self.n_skipped = self._start["skipped"]
        self._digest = Digest()
        if isinstance(self._options["target"], (list, tuple)):
            self._labels = SeveralTargets()
        else:
            self._labels = LabelParser(self._options["label_type"], self._start["labels"])

    def _wanted(self):
        """How many rows the next chunk may have."""
        chunk, limit = self._options["chunk"], self._options["limit"]
        return chunk if limit is None else max(0, min(chunk, limit - self.n_rows))

    def _handle(self, error):
        """Raise a BadRow, or count it."""
        if self._options["on_error"] == "raise":
            raise error
        self.n_skipped += 1

    def _check_start(self, end):
        """ChangedFile if what comes before the place from which to go on, here up to `end`, is not as it was."""
        place = self._start["line"]
        if end < place:
            raise ChangedFile(f"{self.name} ends at {self.unit} {end}; expected to go on after {self.unit} {place}.")
        if self._start["digest"] not in (None, self._digest.value):
            raise ChangedFile(
                f"{self.name} has changed where it was already read, before {self.unit} {place}; "
                "expected it to be as it was."
            )

    # ---- Text ---------------------------------------------------------------------------------

    def _text_chunks(self):
        if self._is_used and not can_reopen(self._source):
            raise ValueError(f"{self.name} can be read only once; expected a file for a second pass.")
        self._is_used = True
        with open_lines(self._source, self._waiting) as lines:
            rows = self._without_header(self._rows(lines))
            self._digest = Digest(self._columns.header if self._columns is not None else [])
            for numbers, texts in self._batches(self._after_start(rows) if self._wanted() else ()):
                X, y, good = self._parsed(numbers, texts)
                if not self._waiting.is_live:
                    self._digest.add_lines(texts)
                self._line = numbers[-1]
                self.n_rows += X.shape[0]
                skipped = [] if len(good) == len(numbers) else sorted(set(numbers) - set(good))
                yield X, y, good, skipped

    def _rows(self, lines):
        """Yield (number, text) of the lines that are rows, and (number, None) when a chunk is due."""
        waiting, options = self._waiting, self._options
        for number, text in numbered(lines, self.name):
            if waiting.is_stopped and can_reopen(self._source):
                return
            if text is None:
                yield number, None
            elif not is_blank(text, options):
                yield number, text.rstrip("\r\n")

    def _without_header(self, rows):
        """The rows without a header; the first line decides what the columns are."""
        for number, text in rows:
            if text is not None:
                kind = Svmlight if self._options["format"] == "libsvm" else Delimited
                self._columns = kind(text, self.name, self._options)
                return rows if self._columns.has_header else chain([(number, text)], rows)
        return iter(())

    def _after_start(self, rows):
        """The rows after the place from which to go on, if those before it are what they were."""
        place, passed, last = self._start["line"], [], 0
        if place == 0:
            return rows
        for number, text in rows:
            last = number
            if number > place:
                rows = chain([(number, text)], rows)
                break
            passed.append(text)
            if len(passed) >= self._options["chunk"]:
                self._digest.add_lines(passed)
                passed.clear()
        if self._waiting.is_stopped:
            return iter(())
        self._digest.add_lines(passed)
        self._check_start(last)
        return rows

    def _batches(self, rows):
        """Yield (line numbers, lines): as many as a chunk may have, or those that are there when it is due."""
        numbers, texts, wanted = [], [], self._wanted()
        is_live = self._waiting.is_live
        for number, text in rows:
            if text is not None:
                numbers.append(number)
                texts.append(text)
                if is_live and len(texts) == 1:
                    self._waiting.begin()
            if len(texts) >= wanted or is_live and self._waiting.is_over:
                self._waiting.end()
                yield numbers, texts
                numbers, texts, wanted = [], [], self._wanted()
                if wanted == 0:
                    return
        if texts and not (self._waiting.is_stopped and can_reopen(self._source)):
            yield numbers, texts

    def _parsed(self, numbers, texts):
        """(X, y, numbers of the good lines) of some lines: all at once or, if anything is wrong, line by line."""
        try:
            X, labels = self._columns.parse_all(texts)
            return X, None if labels is None else self._labels.convert(labels), numbers
        except ValueError:
            pass
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
        y = self._labels.convert([label for _, _, label in rows]) if self._columns.has_target else None
        return X, y, [number for number, _, _ in rows]

    def _has_good_label(self, number, _, label):
        problem = self._labels.problem_with(label)
        if problem is not None:
            names = self._columns.target_names
            column = names[0] if len(names) == 1 else ", ".join(map(str, names))
            self._handle(BadRow(self.name, number, column, problem))
        return problem is None

    # ---- Arrays -------------------------------------------------------------------------------

    def _array_chunks(self):
        kind = self._options["format"]
        with (open_npy if kind == "npy" else open_npz)(self._source, self.name, self._options) as take:
            self._skip(take)
            while not self._waiting.is_stopped and (wanted := self._wanted()):
                X, y = take(wanted)
                if len(X) == 0:
                    return
                self._digest.add_rows(X, y)
                first, self._line = self._line, self._line + len(X)
                X, y, good = self._good_rows(first, as_points(X, self.name), y)
                self.n_rows += len(X)
                lines = first + np.arange(len(good))
                yield X, y, lines[good].tolist(), lines[~good].tolist()

    def _skip(self, take):
        """Pass over the rows before the place from which to go on, a chunk at a time."""
        skipped = 0
        while skipped < self._line:
            X, y = take(min(self._options["chunk"], self._line - skipped))
            if len(X) == 0:
                break
            self._digest.add_rows(X, y)
            skipped += len(X)
        if self._line:
            self._check_start(skipped)

    def _good_rows(self, first, X, y):
        """(X, y, which rows are good): the rows and labels that are finite."""
        if y is not None:
            y = self._labels.convert_array(y, self.name)
        good = np.isfinite(X).all(axis=1)
        if y is not None and y.dtype.kind == "f":
            good &= np.isfinite(y.reshape(len(y), -1)).all(axis=1)
        for row in np.flatnonzero(~good):
            bad = np.flatnonzero(~np.isfinite(X[row]))
            column, value = (int(bad[0]), X[row, bad[0]]) if len(bad) else ("y", y[row])
            problem = f"expected a finite number. Got {value} instead."
            self._handle(BadRow(self.name, first + int(row), column, problem, unit="row"))
        return (X, y, good) if good.all() else (X[good], None if y is None else y[good], good)
