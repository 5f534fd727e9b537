"""The options of `read`: what they may be, and what a file's name says."""

import os

from onlinekernels.streams.labels import whole_number
from onlinekernels.streams.parsers import DELIMITERS, bad_option
from onlinekernels.validation import Argument, Sentence

__all__ = ["ARRAYS", "FORMATS", "check_options", "format_of"]

ARRAYS = ("npy", "npz")
FORMATS = ("csv", "tsv", "libsvm", *ARRAYS)
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
        raise bad_option("source", Sentence(f"a file that ends in one of {known} (or give ", Argument("format"), ")"), path)
    return _EXTENSIONS[extension.lower()]


def check_options(
    source, target, chunk, format, header, features, label_type, on_error, limit, n_features, sparse, names, delimiter,
    kinds, pause, start,
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
    if format in ARRAYS and (not isinstance(source, (str, os.PathLike)) or source == "-"):
        raise bad_option("source", f"the path of a file for the format {format!r}", source)
    if isinstance(source, (str, os.PathLike)) and format in ARRAYS and os.fspath(source).endswith(".gz"):
        raise bad_option("source", f"a file that is not compressed for the format {format!r}", source)
    if isinstance(target, (list, tuple)) and (len(target) == 0 or format not in ("csv", "tsv", "npy")):
        raise bad_option("target", "one array" if format == "npz" else "a column, or several in a list", target)
    if features is not None and (isinstance(features, (str, bytes)) or len(features) == 0):
        raise bad_option("features", "a list of columns, not empty", features)
    if delimiter is not None and (not isinstance(delimiter, str) or len(delimiter) != 1 or delimiter in '"\r\n'):
        raise bad_option("delimiter", "one character that is not a quote or the end of a line", delimiter)
    if delimiter is not None and format not in DELIMITERS:
        raise bad_option("delimiter", f"left out for the format {format!r}", delimiter)
    if kinds is not None:
        values = kinds.values() if isinstance(kinds, dict) else kinds if isinstance(kinds, (list, tuple)) else [kinds]
        is_text = kinds == "auto" if isinstance(kinds, str) else isinstance(kinds, (dict, list, tuple))
        if format not in DELIMITERS or not is_text or not {*values} <= {"number", "word", "date", None, "auto"}:
            raise bad_option("kinds", "'auto', or 'number', 'word' and 'date' by columns, for CSV and TSV", kinds)
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
