"""What a learner has learned: the engine, the labels, the scalers, and the plan they belong to."""
import copy
import numbers
import sys
from collections import namedtuple
from typing import Any

import numpy as np

from onlinekernels._core.arrays import check_array, check_number
from onlinekernels._core.points import Rows
from onlinekernels.base import defaults, validation
from onlinekernels.base.defaults import Data
from onlinekernels.base.labelsets import BinaryLabels, label_column, ManyLabels
from onlinekernels.base.params import same_parameters
from onlinekernels.base.plan import Plan
from onlinekernels.base.representations import LabelMap
from onlinekernels.preprocessing.scaling import advanced

__all__ = ["Contribution", "validate_top", "largest", "Learned", "targets", "WarmUpRows", "State"]

Contribution = namedtuple("Contribution", "value place point coefficient kernel")

Contribution.__doc__ = """What one stored example contributes to a score: value = coefficient * kernel."""


def validate_top(top):
    """How many contributions to give; ValueError for what is no such number."""
    if top is not None and (not isinstance(top, numbers.Integral) or isinstance(top, bool) or top < 0):
        raise ValueError(f"top must be a number of terms, or None for all. Got {top!r} instead.")
    return top


def largest(points, coefficients, kernel, top):
    """The `top` contributions of so many points, all for None, the largest in size first."""
    values = coefficients * kernel
    order = np.argsort(-np.abs(values), kind="stable")[:top]
    return [Contribution(float(values[i]), int(i), points[i], float(coefficients[i]), float(kernel[i])) for i in order]


class Learned:
    """What a model has learned: the narrow protocol by which the rest of the library meets single models and
    composites.

    It has a `loss`, which says what the task is, labels or targets, and says what scores mean. A subclass also has
    `n_classes_seen`, `scalar` and `take_labels`, `refreshed` and `widened` (the same under other parameters, or for
    more features), and by name `to_dict` and `check_learned`.

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
    status = 0  # what the engine of a single model has noticed; see `base.status`
    largest_target = sys.float_info.max  # that needs no longer look
    # Whether an engine can have one example without the ado that many need, or even unseen
    takes_one = takes_rows = False

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
            is_complete = balanced or (not self.labels.negative_is_open if binary else self.labels.fixed)
            if is_complete and self.labels.is_invalid(weights):
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
            self.labels = self.labels.as_learned(None if before is None else before.labels, y, self.n_classes_seen())

    # ---- What scores mean ----

    def answers(self, scores, rho=None):
        """Labels, targets, or +1 and -1 of a detector, by the threshold rho if it is not the current one."""
        if self.labels is not None:
            return self.labels.decode(scores)
        if self.loss.task == "novelty":
            return np.where(np.greater_equal(*self.detected(scores, rho)), 1, -1)
        scaler = self.target_scaler
        return self.numbers(scores if scaler is None else scaler.restored(scores))

    def answers_of_their_time(self, scores, y, n_seen, rho):
        """`answers` just before each of the examples with targets y.

        `n_seen` labels were there before the first of them, and rho is the threshold at each; scores of a regression
        are in the units of y.
        """
        if self.loss.task == "multiclass":
            return self.labels.decode_before(scores, self.labels.n_seen_before(y, n_seen))
        return self.numbers(scores) if self.loss.task == "regression" else self.answers(scores, rho)

    def probabilities_of_their_time(self, scores, y, n_seen):
        """Probabilities just before each example, in the order of `classes_`; 0 for classes that are seen later."""
        there = np.arange(scores.shape[1]) < self.labels.n_seen_before(y, n_seen)[:, None]
        likely = np.where(there, self.loss.probabilities(scores), 0.0)
        return self.shown((likely / np.maximum(likely.sum(axis=1, keepdims=True), 1e-300)).T).T

    def detected(self, scores, rho=None):
        """(f, rho) of a detector."""
        return scores[:, 0], self.scalar() if rho is None else rho

    def interval(self, scores, half_widths, known=None):
        """(lower, upper) ends in the units of the targets, by what was `known` of these before each row, or is now."""
        scaler = self.target_scaler
        if scaler is None:
            return scores - half_widths, scores + half_widths
        return scaler.interval(scores, half_widths, *known or scaler.known())

    def in_units(self, deviations, units):
        """Deviations of f, which all outputs share, in the units (n, targets) of each; 1-d for one target."""
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
            return int(scores[0, : self.n_classes_seen()].argmax())
        index = self.labels.indices_of([label])[0]
        if index is None or index >= self.n_classes_seen():
            raise ValueError(f"{label!r} is not a label of this model.")
        return int(index)

    def shown(self, rows):
        """Rows over labels, in the order of `classes_`."""
        class_order = None if self.labels is None else self.labels.class_order
        return rows if class_order is None else rows[class_order[: len(rows)]]


def targets(loss, labels, n, y, n_targets=1):
    """(y as the engine takes it, labels to go on with)."""
    if loss.task == "novelty":
        return np.zeros(n), labels
    if loss.task == "regression":
        return validation.check_targets(y, n, n_targets).reshape(-1), labels
    return labels.encode(label_column(y, n))


LOOKS = (10, 100)  # rows after which the width is chosen


class WarmUpRows:
    """The first rows of a stream with their targets and weights.

    >>> beginning = WarmUpRows()
    >>> for x in np.arange(0.0, 400.0, 40.0):
    ...     beginning = beginning.followed_by(np.array([[x]]), np.array([1.0]), None)
    >>> beginning.left, beginning.unit(), beginning.resolved().left
    (0, 128.0, 90)
    """

    def __init__(self, parts=(None, None, None), looks=LOOKS):
        self._parts = parts  # rows, targets, weights (None if none were given)
        self.looks = looks  # that are still to come

    def __len__(self):
        return 0 if self._parts[0] is None else len(self._parts[0])

    @property
    def left(self):
        """Rows that are missing to the next look."""
        return self.looks[0] - len(self)

    def rows(self):
        """(rows, targets, weights or None)."""
        return self._parts

    def followed_by(self, X, y, weights):
        """The same with more rows; X and y may be views of what others change."""
        before, targets, known = self._parts
        if (weights is None) != (known is None) and before is not None:
            weights = np.ones(len(X)) if weights is None else weights
            known = np.ones(len(before)) if known is None else known
        parts = _joined(before, X), _joined(targets, y), None if weights is None else _joined(known, weights)
        return WarmUpRows(parts, self.looks)

    def first(self, n):
        """The same with the first n rows only."""
        X, y, weights = self._parts
        if n == 0:
            return WarmUpRows(looks=self.looks)
        return WarmUpRows((X[:n], y[: n * (len(y) // len(X))], None if weights is None else weights[:n]), self.looks)

    def unit(self):
        """The size of features in these rows."""
        return defaults.unit(self._parts[0])

    def resolved(self):
        """What to go on with after a look; None after the last."""
        return WarmUpRows(self._parts, self.looks[1:]) if len(self.looks) > 1 else None

    def widened(self, extra, fill):
        """The same with more features, which have the value `fill` in all rows."""
        X, *rest = self._parts
        return WarmUpRows((X if X is None else np.pad(X, ((0, 0), (0, extra)), constant_values=fill), *rest), self.looks)

    def to_dict(self):
        """All of it as arrays by name."""
        X, y, weights = self._parts
        points = {"X": X} if not isinstance(X, Rows) else {"indptr": X.indptr, "indices": X.indices, "data": X.data}
        return {"looks": len(self.looks), **{
            name: part for name, part in {**points, "y": y, "weights": weights}.items() if part is not None
        }}

    @classmethod
    def restored(cls, learned, n_features, dtype, sparse):
        """What `to_dict` described; ValueError if its parts do not fit each other."""
        looks, X = learned["looks"], None
        if type(looks) is not int or not 1 <= looks <= len(LOOKS):
            raise ValueError("the first rows were looked at too often")
        if sparse and "data" in learned:
            kinds = (("indptr", np.int64), ("indices", np.int32), ("data", np.float64))
            X = Rows(*(check_array(learned[name], name, kind, (-1,)) for name, kind in kinds), n_features)
        elif not sparse and "X" in learned:
            X = _owned_array(learned["X"], dtype, (-1, n_features))
        if X is None:
            return cls(looks=LOOKS[-looks:])
        if not 0 < len(X) <= LOOKS[-looks] or not sparse and not np.isfinite(X).all():
            raise ValueError("the first rows are too many, or not finite")
        y = _owned_array(learned["y"], np.float64, (-1,))
        weights = learned.get("weights")
        if weights is not None:
            weights = _owned_array(weights, np.float64, (len(X),))
            if not (np.isfinite(weights).all() and (weights >= 0).all()):
                raise ValueError("the weights of the first rows are negative or not finite")
        return cls((X, y, weights), LOOKS[-looks:])

    def check_targets(self, n_targets, task, n_labels):
        """ValueError unless the targets are such as the engine takes."""
        X, y, _ = self._parts
        if X is None:
            return
        fits = y.shape == (len(X) * n_targets,) and np.isfinite(y).all()
        if task == "binary":
            fits = fits and np.isin(y, (-1.0, 1.0)).all()
        elif task == "multiclass":
            fits = fits and (y == np.floor(y)).all() and (y >= 0).all() and (y < n_labels).all()
        if not fits:
            raise ValueError("the targets of the first rows do not fit the loss")


def _owned_array(array, dtype, shape):
    """A copy with the dtype object that numpy shares, as one from a pickle has not: pickles have the same bytes."""
    array = check_array(array, "the beginning", dtype, shape)
    copy = np.empty(array.shape, dtype=dtype)
    copy[:] = array
    return copy


def _joined(before, more):
    """Rows or numbers, one after the other; copies."""
    if isinstance(more, Rows):
        if before is None:
            return more
        indptr = np.append(before.indptr, before.indptr[-1] + more.indptr[1:])
        indices, data = (np.append(getattr(before, name), getattr(more, name)) for name in ("indices", "data"))
        return Rows(indptr, indices, data, more.n_features)
    return more.copy() if before is None else np.concatenate([before, more])


LARGEST = 1e150  # number whose square is a number


class State(Learned):
    """All that a learner has learned: the engine, the labels, and the plan they belong to."""

    def __init__(self, plan, n_features, dtype, origin=None, labels=None, sparse=False, targets=1):
        super().__init__(n_features, labels, targets, plan.form_for(targets))
        self.plan = self.configured = plan
        self.sparse = sparse
        self.rows = None  # that `fit` was given, for defaults
        self.beginning = None  # the first rows of a stream, until the width of a default kernel is chosen,
        self.beginning_after = None  # and what it will be when all rows that are under way are learned
        self.engine = plan.engine(n_features, dtype, origin, labels, sparse, targets)
        self.hypothesis = self.engine.hypothesis  # f with its offsets, the loss's scalar and the rule, as they are now
        self.function = self.hypothesis.function  # f as it is kept
        self.takes_one = targets == 1 and not sparse
        if plan.scale_target and plan.scale_target != "log":
            self.largest_target = LARGEST
        looks_at_rows = plan.takes_objects or plan.copies_one or plan.restricts
        self.takes_rows = self.takes_one and not looks_at_rows

    @classmethod
    def first(cls, plan, X, labels, targets=1):
        """The state before the first example."""
        if plan.takes_objects:
            return cls(plan, None, np.float64, labels=labels, targets=targets)
        if isinstance(X, Rows):
            return cls(plan, X.n_features, X.dtype, labels=labels, sparse=True, targets=targets)
        program = None if plan.scale else plan.representation.program(X.shape[1])  # what is scaled is not far from 0
        return cls(plan, X.shape[1], X.dtype, program and program.choose_origin(X[0]), labels, False, targets)

    @property
    def loss(self):
        return self.plan.loss

    @property
    def kernel(self):
        return self.plan.kernel

    @property
    def status(self):
        return self.hypothesis.trouble

    @property
    def representation(self):
        """How f is kept."""
        return self.plan.representation

    @property
    def scaler(self):
        """The scaler of features as it belongs to the hypothesis, for others to look at; None without one."""
        return self.engine.current_scaler()

    def scales(self):
        """Whether features or targets are scaled."""
        return bool(self.plan.scale) or bool(self.plan.scale_target)

    @property
    def target_scaler(self):
        """The scaler of targets as it belongs to the hypothesis; None without one."""
        return self.engine.current_target_scaler()

    def check_scaling(self, X, y, weights):
        """See whether X and y can be scaled, which happens while they are learned."""
        if self.plan.scale and not self.takes_without_check(X.data if self.sparse else X):
            self._in_domain(advanced(self.scaler, X)[1])
        if self.plan.scale_target and len(y):
            if np.abs(y).max() > self.largest_target:
                raise ValueError(f"y is too large to scale: its variance overflows. Expected values below {LARGEST:g}.")
            with np.errstate(over="ignore"):
                total = self.target_scaler.count + (0.0 if weights is None else weights.sum())
            if not np.isfinite(total):
                raise ValueError("sample_weight is too large to scale targets: the sum of the weights overflows.")

    def takes_without_check(self, values):
        """Whether rows with these values can be scaled, and the kernel is defined for what they become."""
        return not self.plan.restricts and self.engine.scaler.is_bounded(values)

    def catch_up(self):
        """The first rows have seen as many rows as the engine. All or nothing, as often as you like."""
        if self.beginning_after is not None:
            beginning = self.current_beginning()
            self.beginning, self.beginning_after = beginning, None

    def current_beginning(self):
        """The first rows as they belong to the hypothesis, between any two examples."""
        if self.beginning_after is None:
            return self.beginning
        return self.beginning_after.first(len(self.beginning) + self.engine.done)

    def learn(self, X, y, weights, **trace):
        """Let the engine run; among the first rows, up to the next look at their distances.

        Returns the number of rows learned, and what the scaler of targets knew before each, where scores are traced.
        """
        if self.beginning is not None:
            rows = min(len(X), self.beginning.left)
            X, y, weights = X[:rows], y[: rows * self.targets], None if weights is None else weights[:rows]
            self.beginning_after = self.beginning.followed_by(X, y, weights)
        known, self.engine.done = None, 0
        try:
            if self.scales():
                self.check_scaling(X, y, weights)
            if self.plan.scale_target and "scores" in trace:
                n = len(y) // self.targets
                known = trace["known"] = np.zeros((n, self.targets)), np.zeros((n, self.targets)), np.zeros((n, 1))
            self.make_ready()
            if "norms" in trace:
                trace.update(self.representation.norm_source(self))
            self.engine.learn_all(X, y, weights=weights, **trace)
        finally:
            self.catch_up()
        return len(X), known

    def after_first(self):
        """The state to go on with: one that has learned the first rows anew if the default width was far off."""
        unit, state = self.beginning.unit(), self
        if unit != self.plan.unit:
            X, y, weights = self.beginning.rows()
            may_join = self.loss.task == "multiclass" and not self.labels.fixed  # each at its own row
            labels = ManyLabels([], False) if may_join else self.labels
            state = State.first(self.plan.in_unit(unit), X, labels, self.targets)
            state.take_labels(self.labels)
            state.feature_names, state.warned, state.stale = self.feature_names, self.warned, self.stale
            try:
                state.make_ready()
                if state.function.width < self.function.width:
                    state.hypothesis.grow(self.function.width)
                state.learn(X, y, weights)
                state.engine.done = 0  # of those that are new
            except FloatingPointError:  # where kernel values would overflow, rows stay as they were learned
                state = self
        state.beginning = self.beginning.resolved()
        return state

    def _in_domain(self, X):
        """Scaled rows, if the kernel is defined for them."""
        if not self.sparse:
            self.kernel.check_domain(X, "The scaled X")
        return X

    def scaled(self, X):
        """X by what the scaler knows; X itself without one."""
        if not self.plan.scale:
            return X
        scaler = self.scaler
        if not scaler.count:
            raise validation.not_fitted(scaler)
        return self._in_domain(scaler.scaled(X))

    def resolved(self, plan):
        """A plan with what it leaves open chosen as it was for this state."""
        return plan.resolved(Data(self.n_features, self.rows, self.sparse, self.plan.unit))

    def refreshed(self, learner):
        """The state under changed parameters: step and regularization may change, all else must not."""
        plan = self.resolved(learner._plan())
        self.plan.check_change(plan)
        state = copy.copy(self)
        state.plan, state.stale = plan, False
        return state

    def scalar(self):
        """The margin or width of the loss."""
        return self.hypothesis.scalar()

    def n_classes_seen(self):
        """Number of outputs, labels that have not been learned left out."""
        return self.function.outputs.joined

    def detected(self, scores, rho=None):
        """(f, rho) of a detector; f is rho where it is that up to rounding, as implicit steps leave it."""
        scores, rho = super().detected(scores, rho)
        rounding = 64 * np.finfo(self.function.dtype).eps * np.maximum(np.abs(scores), np.abs(rho))
        return np.where(np.abs(scores - rho) <= rounding, rho, scores), rho

    def take_labels(self, labels):
        """Go on with labels that may be shown in another order, which decides among equals."""
        self.labels = labels
        if labels is not None and self.form != "one":
            self.hypothesis.form.set_order(labels.class_order)

    def make_ready(self):
        """Bring the engine up to date with a new plan and new labels, just before learning."""
        if self.configured is not self.plan:
            rule = self.plan.rule
            self.hypothesis.rule.configure(**rule.settings())
            if rule.per_feature and rule.step.rate != self.configured.rule.step.rate:
                self.function.begin_steps(float(rule.step.rate))
            self.configured = self.plan
        if self.labels is not None and self.form != "one":
            outputs = self.function.outputs
            needed = len(self.labels.order) + outputs.ahead
            if needed > (outputs.n if outputs.ahead else self.function.width):
                self.hypothesis.grow(needed)

    def contributions(self, row, points, alpha, top, label):
        """What each term contributes to a score of one example, the largest first; see `Fitted.contributions`."""
        top = validate_top(top)
        x = self.plan.validate_points(row, self.n_features, self.function.dtype, sparse=self.sparse)
        x = x if self.plan.takes_objects else self.scaled(x)
        output = self.output(self.engine.decision(x), label)
        if alpha.shape[1] == 0:
            return []
        x = validation.as_csr(x) if self.sparse else x
        return largest(points, self.with_label_kernel(alpha)[output], np.asarray(self.kernel(x, points))[0], top)

    def latest_norm(self):
        """|f| of the latest hypothesis, even if the model averages."""
        self.hypothesis.show_latest(True)
        try:
            return self.norm()
        finally:
            self.hypothesis.show_latest(False)

    def norm(self, ahead=False):
        """|f| in the kernel's Hilbert space; O(terms^2) kernel values unless there are weights or trees."""
        square = self.representation.square(self, ahead)
        if not np.isfinite(square):
            raise FloatingPointError("|f| is too large for float64: learning has diverged.")
        return float(np.sqrt(max(0.0, square)))

    def component(self, j, grid):
        """f_j at the values in grid, shape (len(grid), labels); the kernel is additive."""
        if not isinstance(j, numbers.Integral) or isinstance(j, bool) or not 0 <= j < self.n_features:
            raise IndexError(f"There is no coordinate {j!r}: the model has {self.n_features} features.")
        if self.plan.scale:
            grid = self.scaler.scaled_column(j, grid)
        self.kernel.coordinate(j).check_domain(grid[:, None], "grid")
        return self.representation.component(self, j, grid)

    def with_label_kernel(self, rows):
        """kappa @ rows."""
        outputs = self.function.outputs
        if rows.shape[1] == 0:
            return rows
        return np.column_stack([outputs.kappa_times(column) for column in rows.T]).reshape(rows.shape)

    def widened(self, width, fill):
        """The same with more features, which have the value `fill` in all examples so far."""
        learned = self.to_dict()
        extra = width - self.n_features
        if self.beginning is not None:
            learned["beginning"] = self.current_beginning().widened(extra, fill).to_dict()
        if self.plan.scale:
            learned["scaler"] = self.scaler.widened(extra, fill).state()
            fill = 0.0  # what a scaler has always seen is scaled to 0
        function = self.representation.widened(self, learned["learned"], extra, fill)
        return type(self).from_dict({**learned, "n_features": width, "feature_names": None, "learned": function})

    # ---- Starting from another function -----------------------------------------------------------------------------

    def begin_from(self, start):
        """Start from the function of another state, which the plan has checked (`Plan.check_start`)."""
        rows = ("sparse" if self.sparse else "dense"), ("sparse" if start.sparse else "dense")
        has_points = start.representation.has_points(start)
        for name, mine, other in (
            ("the number of features", self.n_features, start.n_features),
            ("the form of coefficients", self.form, start.form),
            ("the number of targets", self.targets, start.targets),
            ("the kind of rows", *(rows if has_points else (None, None))),
        ):
            if not same_parameters(mine, other):
                raise ValueError(f"initial must have {name} of this model, {mine!r}. Got {other!r} instead.")
        self.check_representation(start, "initial")
        if self.plan.scale:
            if start.sparse != self.sparse:
                raise ValueError("initial scales another kind of rows, sparse or dense, than this model.")
            self.engine.scaler.load(start.scaler)
        if self.target_scaler is not None:
            self.engine.target_scaler.restore(start.target_scaler.state())
        self.representation.take_features(self, start)
        indices = self._indices_of(start)
        intercept = start.hypothesis.intercept(self.ahead_of(start))
        if indices is not None:
            self.make_ready()
            intercept = LabelMap(self.function.width, indices, False).rows(intercept)
            if not self.labels.fixed:
                self.function.outputs.set_joined(start.n_classes_seen())
        self.hypothesis.begin_from(intercept, *self.start_of(start, indices))
        self.begin_with_norms()

    def check_representation(self, start, name, whose="this model"):
        """Raise ValueError unless another state keeps f as this one does; pairs of labels may become all labels."""
        mine, its = (type(state.representation).__name__ for state in (self, start))
        if mine == its and self.representation.keeps == "terms" and self.function.pairs() is not None:
            mine += " for pairs of labels" if start.function.pairs() is None else ""
        if mine != its:
            raise ValueError(
                f"{name} must have the kernel and the representation of {whose}, {mine}. Got {its} instead. "
                "Use a budget of the same kind."
            )

    def start_of(self, start, indices=None):
        """(points, coefficients, pairs of labels) of another state's function, in this one's form.

        `indices` are those of its labels here, None if they are the same.
        """
        return self.representation.start(self, start, LabelMap(self.function.width, indices, self.ahead_of(start)))

    def begin_with_norms(self):
        """Norms of the function that this one starts from, where they are kept."""
        if self.plan.rule.exact_norms:
            square = self.norm() ** 2
            ahead = self.norm(ahead=True) ** 2 - square if self.function.outputs.ahead else 0.0
            self.hypothesis.begin_with_square(square, max(0.0, ahead))

    def ahead_of(self, start):
        """Whether labels to join are ahead in another state, and in this one."""
        return self.function.outputs.ahead and start.function.outputs.ahead

    def _indices_of(self, start):
        """Indices of another state's labels among those of this one; None where there is one output, or targets."""
        if self.labels is None or self.form == "one":
            self.labels = start.labels if self.labels is None else self.labels
            return None
        known = start.labels.order[: start.n_classes_seen()]
        indices = self.labels.indices_of(known)
        if None in indices:
            raise ValueError(f"initial has the label {known[indices.index(None)]!r}, which this model cannot have.")
        self.take_labels(self.labels)
        return np.array(indices, dtype=np.intp)

    # ---- In files and pickles ---------------------------------------------------------------------------------------

    def to_dict(self):
        """Everything that is learned, and the plan's parts, as plain values, components and arrays."""
        return {
            "plan": self.plan.parts(),
            "stale": self.stale,
            "rows": self.rows,
            "unit": self.plan.unit,
            "beginning": None if self.beginning is None else self.current_beginning().to_dict(),
            "n_features": self.n_features,
            "feature_names": self.feature_names,
            "scaler": self.scaler.state() if self.plan.scale else None,
            "target_scaler": None if self.target_scaler is None else self.target_scaler.state(),
            "dtype": self.function.dtype.str,
            "sparse": self.sparse,
            "targets": self.targets,
            "labels": None if self.labels is None else self.labels.state(),
            "learned": self.hypothesis.state(),
        }

    def check_learned(self):
        """ValueError unless `from_dict` would take what is learned."""
        self.hypothesis.check_state(self.hypothesis.state())

    @classmethod
    def from_dict(cls, learned):
        """The state that `to_dict` described; ValueError if its parts do not fit each other."""
        plan = Plan(**learned["plan"])
        if plan.rule.is_open:
            raise ValueError("the step or the regularization is missing")
        labels = _restored_labels(plan, learned)
        n_features, dtype, sparse, n_targets = _restored_shape(plan, learned)
        state = cls(plan, n_features, dtype, learned["learned"].get("origin"), labels, sparse, n_targets)
        state._make_room(learned["learned"])
        if plan.restricts:  # before the kernel looks at them
            _check_domain(plan.kernel, learned["learned"], n_features, dtype)
        state.hypothesis.restore(learned["learned"])
        state.take_labels(labels)
        state.make_ready()
        if plan.loss.task == "multiclass":
            excess = state.n_classes_seen() - len(labels.order)
            if excess > 0 or labels.fixed and excess:
                raise ValueError(f"there are {'more' if excess > 0 else 'fewer'} outputs than labels")
        state.stale = bool(learned["stale"])
        state._restore_beginning(learned)
        state._restore_scalers(learned)
        state.restore_names(learned["feature_names"])
        return state

    def _restore_beginning(self, learned):
        """How many rows `fit` had, and the width of a default kernel with the first rows, which may still choose it."""
        plan, task = self.plan, self.loss.task
        self.rows = learned["rows"]
        if not (self.rows is None or type(self.rows) is int and self.rows > 0):
            raise ValueError("the number of rows is not a positive integer")
        plan.unit = check_number(learned["unit"], "unit", least=0.0)
        if learned["beginning"] is not None:
            if defaults.width(plan.kernel) is None or plan.scale or plan.unit == 0:
                raise ValueError("the kernel's width is not to be chosen any more")
            self.beginning = WarmUpRows.restored(learned["beginning"], self.n_features, self.function.dtype, self.sparse)
            self.beginning.check_targets(self.targets, task, len(self.labels.order) if task == "multiclass" else 2)

    def _restore_scalers(self, learned):
        """What is known of features and of targets."""
        if (learned["scaler"] is None) != (not self.plan.scale):
            raise ValueError("the scaler does not fit the parameters")
        if self.plan.scale:
            self.engine.scaler.restore(learned["scaler"])
        if (learned["target_scaler"] is None) != (self.target_scaler is None):
            raise ValueError("the scaler of targets does not fit the parameters")
        if self.target_scaler is not None:
            self.target_scaler.restore(learned["target_scaler"])

    def _make_room(self, learned):
        """More labels may have been seen than are known by name, but not more than there are offsets."""
        if self.form != "one" and self.labels is not None and not self.labels.fixed:
            self.hypothesis.grow(np.size(learned["offset"]))


def _restored_labels(plan, learned):
    """The labels, or None."""
    kind = {"binary": BinaryLabels, "multiclass": ManyLabels}.get(plan.loss.task)
    if (kind is None) != (learned["labels"] is None):
        raise ValueError("the labels do not fit the loss")
    labels = None if kind is None else kind.restore(learned["labels"])
    if plan.labels is not None and not labels.fixed:
        raise ValueError("the labels of a structure are fixed, and these may grow")
    return labels


def _restored_shape(plan, learned):
    """(number of features, type of points, whether rows are sparse, number of targets)."""
    n_features, dtype, origin = learned["n_features"], learned["dtype"], learned["learned"].get("origin")
    if (n_features is None) != plan.takes_objects:
        raise ValueError("the number of features does not fit the kernel")
    if n_features is not None and (type(n_features) is not int or not 1 <= n_features < 2**31):
        raise ValueError("n_features is not a number of features")
    if dtype not in ("<f8", "<f4", np.dtype(float).str, np.dtype(np.float32).str):
        raise ValueError(f"points cannot be of type {dtype!r}")
    if plan.representation.double and dtype[1:] == "f4":
        raise ValueError("these points cannot be of single precision")
    dtype = np.dtype(np.float32 if dtype[1:] == "f4" else np.float64)  # the object that numpy shares
    if origin is not None:
        check_array(origin, "origin", dtype, (n_features,))
    sparse = learned["sparse"]
    if type(sparse) is not bool or sparse and not plan.kernel.on_inner_products():
        raise ValueError("the kernel does not fit sparse rows")
    n_targets = learned["targets"]
    if type(n_targets) is not int or not 1 <= n_targets < 2**31 or n_targets > 1 and plan.loss.task != "regression":
        raise ValueError("the number of targets is not a positive integer, or does not fit the loss")
    plan.representation.check_sizes(learned["learned"], n_features, sparse)
    if n_targets > 1 and np.shape(learned["learned"]["offset"]) != (n_targets,):
        raise ValueError("the offsets do not have the number of targets")
    return n_features, dtype, sparse, n_targets


def _check_domain(kernel, learned, n_features, dtype):
    """Points, and landmarks of maps, must be where the kernel is defined; ValueError if they are not."""
    for name in learned:
        map_name, dot, last = name.rpartition(".")
        if last == "points":
            points = check_array(learned[name], "points", dtype, (-1, n_features))
            origin = learned.get(f"{map_name}{dot}origin")
            if len(points):
                origin = 0 if origin is None else check_array(origin, "origin", dtype, (n_features,))
                kernel.check_input(points + origin)
