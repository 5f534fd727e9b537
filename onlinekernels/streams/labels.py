"""What labels are: numbers or strings, decided once for a whole stream; and numbers as texts."""

from decimal import Decimal, InvalidOperation
from numbers import Integral

import numpy as np

from onlinekernels.nouns.values import numbers_of
from onlinekernels.validation import Argument, Sentence

__all__ = ["LabelParser", "SeveralTargets", "as_number", "problem_with_number", "shown", "whole_number"]


class LabelParser:
    """What the labels of a stream are: decided by the first chunk, then the same for all.

    Whole numbers are read exactly, however large, so that distinct labels stay distinct. The `kind` is "integer", "float" or "string".

    >>> labels = LabelParser("auto")
    >>> labels.convert(["1", "-1"]), labels.kind
    (array([ 1, -1]), 'integer')
    >>> labels.problem_with("up")
    "expected a number, like the labels before it; label_type='string' takes any label. Got 'up' instead."
    >>> LabelParser("auto").convert(["9007199254740993", "18446744073709551617"])
    array([9007199254740993, 18446744073709551617], dtype=object)
    """

    def __init__(self, label_type, kind=None):
        self.label_type = label_type
        self.kind = kind or {"number": "float", "string": "string"}.get(label_type)

    def decide(self, texts):
        """Let the texts decide, if nothing has yet."""
        texts = [text for text in texts if text] if self.kind is None else []  # no label says nothing about the others
        if texts:
            self.kind = "integer" if all(as_number(text) is not None for text in texts) else "string"

    def convert(self, texts):
        """Labels as an array; ValueError if one of them is bad."""
        self.decide(texts)
        if self.kind == "string":
            "".join(texts).encode()  # UnicodeEncodeError, a ValueError, for what was not UTF-8
            if "" in texts:
                raise ValueError
            return np.array(texts, dtype=str)
        if self.kind == "integer" and all(map(_is_short_integer, texts)):
            return np.array([*map(int, texts)], dtype=np.int64)
        values, invalid = numbers_of(texts)
        if invalid or not np.isfinite(values).all():
            raise ValueError
        if self.kind == "integer":
            whole = [_exactly(text) for text in texts]
            if None not in whole:
                return _whole_array(whole)
        self.kind = "float"
        return values

    def problem_with(self, text):
        """What is wrong with a label, or None."""
        if text == "":
            way_out = Argument("on_error", "'skip'")
            expected = "a number" if self.kind in ("integer", "float") else "a label"
            return Sentence(f"expected {expected}. Got an empty field instead. (", way_out, " leaves such rows out.)")
        if self.kind == "string":
            try:
                text.encode()
            except UnicodeEncodeError:
                return f"expected a label in UTF-8. Got {shown(text)} instead."
            return None
        if as_number(text) is None and self.label_type == "auto":
            way_out = Argument("label_type", "'string'")
            return Sentence("expected a number, like the labels before it; ", way_out, f" takes any label. Got {shown(text)} instead.")
        return problem_with_number(text)

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


class SeveralTargets:
    """Several numbers for each row, in place of a label."""

    kind = "float"

    def decide(self, rows):
        """They are numbers, whatever comes."""

    def convert(self, rows):
        """An array of shape (n, targets); ValueError if one of them is no finite number."""
        values = np.array([[as_number(text) for text in row] for row in rows], dtype=float)
        if not np.isfinite(values).all():
            raise ValueError
        return values

    def problem_with(self, row):
        """What is wrong with the first bad number of a row, or None."""
        return next(filter(None, map(problem_with_number, row)), None)

    def convert_array(self, y, name):
        """Targets that are an array already."""
        return LabelParser("number").convert_array(y, name)


def _is_short_integer(text):
    """Whether a text is a few digits, as most labels are; the others go the long way."""
    return len(text) < 18 and (text.isdecimal() or text[1:].isdecimal() and text[0] in "+-")


def _exactly(text):
    """The whole number that a text means, exactly; None if it is not whole."""
    try:
        return int(text)
    except ValueError:  # 1.0, 1e3
        try:
            value = Decimal(text.strip())
        except InvalidOperation:  # 5%
            return None
        return int(value) if value == value.to_integral_value() else None


def _whole_array(values):
    """Whole numbers as an array that keeps each as it is."""
    low, high = min(values, default=0), max(values, default=0)
    return np.array(values, dtype=np.int64 if -(2**63) <= low and high < 2**63 else object)


# ---- Numbers as texts ---------------------------------------------------------------------------


def as_number(text):
    """The number that a text means, or None."""
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None


def problem_with_number(text):
    """What is wrong with a text that should be a finite number, or None."""
    value = as_number(text)
    if value is None:
        return f"expected a number. Got {shown(text) if text else 'an empty field'} instead."
    return None if np.isfinite(value) else f"expected a finite number. Got {shown(text)} instead."


def whole_number(value):
    """An integer that a value is or spells, or None."""
    if isinstance(value, Integral) and not isinstance(value, bool):
        return int(value)
    if isinstance(value, str) and value.removeprefix("-").isdecimal():
        return int(value)
    return None


def shown(text, most=60):
    """A text in a sentence."""
    return repr(text if len(text) <= most else text[: most - 3] + "...")
