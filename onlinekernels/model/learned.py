"""What a model has learned, as far as it does not matter how: labels and targets, and what scores mean."""
import copy
import sys
from typing import Any

import numpy as np

from onlinekernels import validation
from onlinekernels.model.labels import label_column

__all__ = ["Learned", "targets"]


class Learned:
    """What a model has learned: the narrow protocol by which the rest of the library meets single models and composites.

    It has a `loss`, which says what the task is, labels or targets, and says what scores mean. A subclass also has `joined`,
    `scalar` and `take_labels`, `refreshed` and `widened` (the same under other parameters, or for more features), and by name
    `to_dict` and `check_learned`.

    Parameters
    ----------
    n_features : int or None
        None for objects.
    labels : labels in use, or None
    targets : int
        Numbers that y has for each example.
    form : str
        That of coefficients; "one" for one output.
    """

    target_scaler: Any = None  # that of a regression, if its targets are scaled
    trouble = 0  # what the engine of a single model has noticed; see `trouble`
    largest_target = sys.float_info.max  # that needs no longer look
    takes_one = takes_rows = False  # whether an engine can have one example without the ado that many need, or even unseen

    def __init__(self, n_features, labels, targets, form):
        self.n_features = n_features
        self.labels = labels
        self.targets = targets
        self.form = form
        self.sparse = False  # whether rows are
        self.feature_names = None  # of the data frame that came first
        self.stale = False  # a parameter was set since the plan was made
        self.warned = False  # that learning goes wrong

    # ---- Features ----

    def names(self):
        """Names of the features: of the data frame that came first, or x0, x1, ..."""
        return [f"x{j}" for j in range(self.n_features)] if self.feature_names is None else self.feature_names

    def restore_names(self, names):
        """Go on with names that `to_dict` gave, or none; ValueError if they do not fit."""
        if names is not None and (len(names) != self.n_features or not all(isinstance(name, str) for name in names)):
            raise ValueError("the feature names do not fit the number of features")
        self.feature_names = names

    # ---- Targets and weights, as they are learned ----

    def with_targets(self, n, y, classes):
        """(state, y as float64): a state with the labels that y shows, self if nothing is new."""
        labels = self.labels
        if classes is not None and labels is not None:
            try:
                labels = labels.agreeing_with(classes)
            except (TypeError, ValueError):
                labels = None
            if labels is None:
                raise ValueError(
                    f"classes={classes!r} is not the same as on the first call: {self.labels.classes.tolist()!r}."
                )
        y, labels = targets(self.loss, labels, n, y, self.targets)
        if labels is self.labels:
            return self, y
        state = copy.copy(self)
        state.labels = labels
        return state, y

    def target_of(self, y):
        """The number that an engine takes for one label or target; None if that takes a longer look."""
        if self.labels is not None:
            return self.labels.encode_one(y)
        if self.loss.task == "novelty":
            return 0.0 if y is None else None
        if type(y) is not float:  # any number, or an array of no dimensions
            if isinstance(y, np.ndarray) and y.ndim == 0:
                y = y.item()
            if not isinstance(y, (int, float, np.floating, np.integer)) or isinstance(y, bool):
                return None
        return float(y) if abs(y) <= self.largest_target else None  # neither infinite nor NaN

    def class_weights(self, weights, y, sample_weight, balanced, owner):
        """Weights of examples with encoded labels y: those of their classes, times their own.

        "balanced" needs all examples, which only `fit` has (`balanced`).
        """
        if self.labels is None:
            raise ValueError(f"class_weight={weights!r} needs a loss of classes. Got {self.loss!r}.")
        binary = self.loss.task == "binary"
        places = (y > 0).astype(np.intp) if binary else y.astype(np.intp)
        labels = self.labels.order
        if isinstance(weights, str) and weights == "balanced" and balanced:
            counts = np.bincount(places, minlength=len(labels))
            table = len(y) / (np.count_nonzero(counts) * np.maximum(counts, 1))
        elif isinstance(weights, dict):
            # Others may join yet, unless the set is fixed or `fit` has seen all.
            validation.check_class_weight(owner, weights)
            settled = balanced or (not self.labels.negative_is_open if binary else self.labels.fixed)
            if settled and self.labels.is_odd(weights):
                expected = f"a dictionary whose keys are among {', '.join(map(repr, labels))}"
                raise validation.bad_parameter(owner, "class_weight", expected, weights)
            table = self.labels.weights(weights)
        else:
            raise validation.bad_parameter(
                owner, "class_weight", 'a dictionary {label: weight}, None or, for fit alone, "balanced"', weights
            )
        chosen = np.array(table, dtype=float)[places]
        return chosen if sample_weight is None else chosen * sample_weight

    def keep_learned(self, before, y):
        """After an error: only the labels that were there before, or in the targets y that were learned."""
        if self.labels is not None:
            self.labels = self.labels.as_learned(None if before is None else before.labels, y, self.joined())

    # ---- What scores mean ----

    def answers(self, scores, rho=None):
        """Labels, targets, or +1 and -1 of a detector, by the threshold rho if it is not that in force."""
        if self.labels is not None:
            return self.labels.decode(scores)
        if self.loss.task == "novelty":
            return np.where(np.greater_equal(*self.detected(scores, rho)), 1, -1)
        scaler = self.target_scaler
        return self.numbers(scores if scaler is None else scaler.restored(scores))

    def answers_of_their_time(self, scores, y, joined, rho):
        """`answers` just before each of the examples with targets y.

        `joined` labels were there before the first of them, and rho is the threshold at each; scores of a regression are
        in the units of y.
        """
        if self.loss.task == "multiclass":
            return self.labels.decode_before(scores, self.labels.joined_before(y, joined))
        return self.numbers(scores) if self.loss.task == "regression" else self.answers(scores, rho)

    def probabilities_of_their_time(self, scores, y, joined):
        """Probabilities of the classes just before each example, in the order of `classes_`; 0 for those that join later."""
        there = np.arange(scores.shape[1]) < self.labels.joined_before(y, joined)[:, None]
        likely = np.where(there, self.loss.probabilities(scores), 0.0)
        return self.shown((likely / np.maximum(likely.sum(axis=1, keepdims=True), 1e-300)).T).T

    def detected(self, scores, rho=None):
        """(f, rho) of a detector."""
        return scores[:, 0], self.scalar() if rho is None else rho

    def interval(self, scores, half_widths, known=None):
        """(lower, upper) ends in the units of the targets; `known` of these before each row, as of now if it is None."""
        scaler = self.target_scaler
        if scaler is None:
            return scores - half_widths, scores + half_widths
        return scaler.interval(scores, half_widths, *known or scaler.known())

    def in_units(self, deviations, units):
        """Deviations of f, which all outputs share, in units (n, targets) of each; one column where that is all there is."""
        if np.ndim(units) == 0:
            return deviations
        return self.numbers(deviations[:, None] * units)

    def numbers(self, scores):
        """Numbers for each target, one column where that is all there is."""
        return scores[:, 0] if self.targets == 1 else scores

    def output(self, scores, label):
        """The output that a label has, or for None the one with the best score."""
        if self.form == "one" or self.labels is None:
            if label is not None:
                raise ValueError(f"label is for losses of many classes. Got {label!r}.")
            if scores.shape[1] > 1:
                raise ValueError("contributions are of one score, and this model has several targets.")
            return 0
        if label is None:
            return int(scores[0, : self.joined()].argmax())
        index = self.labels.indices_of([label])[0]
        if index is None or index >= self.joined():
            raise ValueError(f"{label!r} is not a label of this model.")
        return int(index)

    def shown(self, rows):
        """Rows over labels, in the order of `classes_`."""
        display = None if self.labels is None else self.labels.display
        return rows if display is None else rows[display[: len(rows)]]


def targets(loss, labels, n, y, n_targets=1):
    """(y as the engine takes it, labels to go on with)."""
    if loss.task == "novelty":
        return np.zeros(n), labels
    if loss.task == "regression":
        return validation.check_targets(y, n, n_targets).reshape(-1), labels
    return labels.encode(label_column(y, n))
