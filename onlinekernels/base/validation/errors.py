"""Errors that say what scikit-learn's say, and what was learned before them; sentences that name arguments."""
import sys

__all__ = ["Argument", "NotFittedError", "Sentence", "WrongFeatures", "add_note", "not_fitted", "sklearn_class", "tell",
           "wrong_number"]


class Argument:
    """An argument in a sentence: `name=` and what stands behind it, or, as its subject, the parameter of a function.

    `option` is what the command line has in its place, where that does not follow from the name.
    """

    def __init__(self, name, value="", owner=None, option=None):
        self.name, self.value, self.owner, self.option = name, value, owner, option

    def __str__(self):
        return f"{self.name}={self.value}" if self.owner is None else f"The {self.name!r} parameter of {self.owner}"


class Sentence(str):
    """A text that names arguments as Python has them; it keeps its parts, for those who call their arguments otherwise.

    >>> sentence = Sentence(Sentence("Too long. (", Argument("limit"), " cuts it.)"), " See the manual.")
    >>> sentence
    'Too long. (limit= cuts it.) See the manual.'
    >>> sentence.told(lambda argument: f"--{argument.name} N")
    'Too long. (--limit N cuts it.) See the manual.'
    """

    def __new__(cls, *parts):
        sentence = super().__new__(cls, "".join(map(str, parts)))
        sentence.parts = [piece for part in parts for piece in getattr(part, "parts", [part])]
        return sentence

    def told(self, name):
        """The same with arguments as `name` calls them."""
        return "".join(name(part) if isinstance(part, Argument) else part for part in self.parts)


class WrongFeatures(ValueError):
    """Rows have other columns than those that were learned."""


def wrong_number(name, count, owner, expected):
    """The error for rows of so many columns where others are expected."""
    return WrongFeatures(f"{name} has {count} features, but {owner} is expecting {expected} features as input.")


class NotFittedError(ValueError, AttributeError):
    """Predicting before learning."""


def sklearn_class(name, otherwise):
    """A class of scikit-learn's for those who use it; this library never imports it."""
    exceptions = sys.modules.get("sklearn.exceptions")
    return otherwise if exceptions is None else getattr(exceptions, name)


def not_fitted(learner):
    """The error for predicting before learning."""
    return sklearn_class("NotFittedError", NotFittedError)(
        f"This {type(learner).__name__} instance is not fitted yet. Call 'fit' or 'partial_fit' first."
    )


def tell(error, rows):
    """Say on an exception how many rows of the call were learned before it."""
    error.rows_learned = rows
    add_note(error, f"Learned before this error: {rows} rows of this call. The model is consistent.")


def add_note(error, note):
    """Add a sentence to an exception."""
    if hasattr(error, "add_note"):  # Python 3.11
        error.add_note(note)
    else:
        error.args = (f"{error} ({note})", *error.args[1:])
