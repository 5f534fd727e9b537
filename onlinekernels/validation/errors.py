"""Errors that say what scikit-learn's say, and what was learned before them."""
import sys

__all__ = ["NotFittedError", "not_fitted", "sklearn_class", "tell"]


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
    note = f"Learned before this error: {rows} rows of this call. The model is consistent."
    if hasattr(error, "add_note"):  # Python 3.11
        error.add_note(note)
    else:
        error.args = (f"{error} ({note})", *error.args[1:])
