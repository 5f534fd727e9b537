"""What a model has learned: the backend of the core, the labels, and the plan they belong to."""
import copy
import numbers
import sys
from collections import namedtuple
from typing import Any

import numpy as np

from onlinekernels._core.arrays import check_array, check_number
from onlinekernels._core.points import Rows
from onlinekernels._core.posterior import level_of
from onlinekernels._core.schema import restore, state_of
from onlinekernels.base import defaults, validation
from onlinekernels.base.defaults import Data, WarmUpRows
from onlinekernels.base.labelsets import BinaryLabels, ManyLabels
from onlinekernels.base.labelvalues import label_column
from onlinekernels.base.params import same_parameters
from onlinekernels.base.plan import Plan
from onlinekernels.budgets import Unlimited

Contribution = namedtuple("Contribution", "value place point coefficient kernel")

Contribution.__doc__ = """What one stored example contributes to a score: value = coefficient * kernel."""


def validate_top(top):
    """How many contributions to give; ValueError for what is no such number."""
    if top is not None and (not isinstance(top, numbers.Integral) or isinstance(top, bool) or top < 0):
        raise ValueError(f"top must be a number of terms, or None for all. Got {top!r} instead.")
    return top


def largest(points, coefficients, kernel, top):
    """The `top` contributions of these points, all for None, the largest in size first."""
    values = coefficients * kernel
    order = np.argsort(-np.abs(values), kind="stable")[:top]
    return [Contribution(float(values[i]), int(i), points[i], float(coefficients[i]), float(kernel[i])) for i in order]


LARGEST = 1e150  # number whose square is a number


class Learned:
    """What a model has learned, by which the rest of the library meets all kinds of models; it says what scores mean.

    A subclass has a `backend` of the core, `rows_of(X, owner)`, which validates rows for it, and

    `learn(X, y, weights, wanted, coverage)`, `learn_one(row, target)`, `done`
        learn validated rows; after an error `done` of them were learned. What is `wanted` (names of
        `base.estimator.OUTPUTS`, None for nothing) is given beside the scores, {name: array}, as it was just before
        each row;
    `takes(row)`
        whether `learn_one` may have a row as it is, if `takes_rows`;
    `t`, `n_terms()`, `n_classes_seen()`, `scalar()`
        how many rows were learned, points are kept, and classes were seen; the margin or width of the loss;
    `refreshed(estimator)`, `widened(width, fill)`
        go on as the same state under other parameters, or for more features;
    `to_dict()`
        all that is learned, by name.

    `n_features` is None for objects, `targets` how many numbers y has for each example, and `form` that of
    coefficients, "one" for one output.
    """

    backend: Any
    target_scaler: Any = None  # that of a regression, if its targets are scaled
    status = 0  # what the engine of a single model has noticed; see `base.status`
    largest_target = sys.float_info.max  # that can be learned
    takes_rows = False

    def __init__(self, plan, n_features, labels, targets, form):
        self.plan = plan
        self.n_features = n_features
        self.labels = labels
        self.targets = targets
        self.form = form
        self.sparse = False  # whether rows are
        self.feature_names = None  # of the data frame that came first
        self.stale = False  # a parameter was set since the plan was made
        self.warned = False  # that learning goes wrong

    @property
    def loss(self):
        return self.plan.loss

    def names(self):
        """Names of the features: of the data frame that came first, or x0, x1, ..."""
        return [f"x{j}" for j in range(self.n_features)] if self.feature_names is None else self.feature_names

    # ---- Targets and weights, as they are learned ----

    def with_targets(self, n, y, classes):
        """(state, y as float64): a state with the labels that y shows, self if nothing is new."""
        labels, task = self.labels, self.loss.task
        if classes is not None and labels is not None:
            try:
                labels = labels.agreeing_with(classes)
            except (TypeError, ValueError):
                labels = None
            if labels is None:
                raise ValueError(f"classes={classes!r} is not the same as on the first call: "
                                 f"{self.labels.classes.tolist()!r}.")
        if task == "novelty":
            return self, np.zeros(n)
        if task == "regression":
            y = validation.check_targets(y, n, self.targets).reshape(-1)
            if self.largest_target == LARGEST and n and np.abs(y).max() > LARGEST:
                raise ValueError(f"y is too large: its variance overflows. Expected values below {LARGEST:g}.")
            return self, y
        y, labels = labels.encode(label_column(y, n))
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
        binary, labels = self.loss.task == "binary", self.labels.order
        codes = (y > 0).astype(np.intp) if binary else y.astype(np.intp)
        if isinstance(weights, str) and weights == "balanced" and balanced:
            counts = np.bincount(codes, minlength=len(labels))
            table = len(y) / (np.count_nonzero(counts) * np.maximum(counts, 1))
        elif isinstance(weights, dict):
            # Others may join yet, unless the set is fixed or `fit` has seen all.
            validation.check_class_weight(owner, weights)
            is_complete = balanced or (not self.labels.negative_is_open if binary else self.labels.fixed)
            named, known = set(weights), set(labels)
            if is_complete and not named <= known and not known <= named:  # scikit-learn's rule
                expected = f"a dictionary whose keys are among {', '.join(map(repr, labels))}"
                raise validation.bad_parameter(owner, "class_weight", expected, weights)
            table = [weights.get(label, 1.0) for label in labels]
        else:
            raise validation.bad_parameter(
                owner, "class_weight", 'a dictionary {label: weight}, None or, for fit alone, "balanced"', weights)
        chosen = np.array(table, dtype=float)[codes]
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
        return deviations if np.ndim(units) == 0 else self.numbers(deviations[:, None] * units)

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
        n_seen = self.n_classes_seen()
        index = int(scores[0, :n_seen].argmax()) if label is None else self.labels.indices_of([label])[0]
        if index is None or index >= n_seen:
            raise ValueError(f"{label!r} is not a label of this model.")
        return int(index)

    def shown(self, rows):
        """Rows over labels, in the order of `classes_`."""
        if not isinstance(self.labels, ManyLabels):
            return rows
        class_order = self.labels.class_order
        return rows[class_order[class_order < len(rows)]]

    # ---- In files and pickles ----

    def header(self):
        """What `to_dict` says of all kinds of models."""
        return {"plan": self.plan.parts(), "stale": self.stale, "n_features": self.n_features,
                "feature_names": self.feature_names, "targets": self.targets,
                "labels": None if self.labels is None else self.labels.state()}

    def restore_header(self, learned):
        """Go on with what is left of it when the state was made; ValueError if it does not fit."""
        names = learned["feature_names"]
        if names is not None and (len(names) != self.n_features or not all(isinstance(name, str) for name in names)):
            raise ValueError("the feature names do not fit the number of features")
        self.feature_names, self.stale = names, bool(learned["stale"])


class State(Learned):
    """All that a model of one function has learned: the engine, the labels, and the plan they belong to."""

    def __init__(self, plan, n_features, dtype, origin=None, labels=None, sparse=False, targets=1):
        super().__init__(plan, n_features, labels, targets, plan.form_for(targets))
        self.configured = plan
        self.sparse = sparse
        self.rows = None  # that `fit` was given, for defaults
        self.warm_up = None  # the first rows of a stream, until the width of a default kernel is chosen
        self.engine = plan.engine(n_features, dtype, origin, labels, sparse, targets)
        self.hypothesis = self.engine.hypothesis  # f with its offsets, the loss's scalar and the rule, as they are now
        self.function = self.hypothesis.function  # f as it is kept
        self.is_unlimited = plan.representation.keeps == "terms" and type(plan.budget) is Unlimited and (
            not plan.rule.is_posterior)
        self.learned_before = 0  # rows of the call that earlier runs of the engine have learned
        if plan.scale_target and plan.scale_target != "log":
            self.largest_target = LARGEST
        looks_at_rows = plan.takes_objects or plan.copies_one or plan.restricts
        self.takes_rows = targets == 1 and not sparse and not looks_at_rows

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
    def backend(self):
        return self.engine

    @property
    def kernel(self):
        return self.plan.kernel

    @property
    def representation(self):
        """How f is kept."""
        return self.plan.representation

    @property
    def status(self):
        return self.hypothesis.status

    @property
    def t(self):
        """How many examples were learned."""
        return self.hypothesis.t

    @property
    def scaler(self):
        """The scaler of features as it belongs to the hypothesis, for others to look at; None without one."""
        return self.engine.current_scaler()

    @property
    def target_scaler(self):
        """The scaler of targets as it belongs to the hypothesis; None without one."""
        return self.engine.current_target_scaler()

    def n_terms(self):
        """How many terms f has."""
        return self.representation.n_terms(self)

    def n_classes_seen(self):
        """Number of outputs, labels that have not been learned left out."""
        return self.function.outputs.n_seen

    def scalar(self):
        """The margin or width of the loss."""
        return self.hypothesis.scalar()

    # ---- Parameters that change ----

    def resolved(self, plan):
        """A plan with what it leaves open chosen as it was for this state."""
        return plan.resolved(Data(self.n_features, self.rows, self.sparse, self.plan.unit))

    def refreshed(self, estimator):
        """The state under changed parameters: step and regularization may change, all else must not."""
        plan = self.resolved(estimator._plan())
        self.plan.check_change(plan)
        state = copy.copy(self)
        state.plan, state.stale = plan, False
        return state

    def make_ready(self):
        """Bring the engine up to date with a new plan and new labels, just before learning."""
        if self.configured is not self.plan:
            self.hypothesis.rule.configure(**self.plan.rule.settings())
            self.configured = self.plan
        if self.labels is not None and self.form != "one":
            outputs = self.function.outputs
            needed = len(self.labels.order) + outputs.future
            if needed > (outputs.n if outputs.future else self.function.width):
                self.hypothesis.grow(needed)

    # ---- Learning ----

    def rows_of(self, X, owner, finite=True):
        """X as the engine takes it."""
        if self.feature_names is not None:
            validation.check_feature_names(X, self.feature_names, owner)
        return self.plan.validate_points(X, self.n_features, self.function.dtype, finite, owner, self.sparse)

    def takes(self, x):
        """Whether `learn_one` may have x as it is."""
        return self.warm_up is None and self.engine.takes(x)

    @property
    def done(self):
        """Rows of the latest call that are learned."""
        return self.learned_before + self.engine.done

    @done.setter
    def done(self, rows):
        self._commit_warm_up()  # if that was interrupted
        self.learned_before, self.engine.done = rows, 0

    def learn_one(self, row, target):
        """Learn one row; what the engine has noticed, see `base.status`."""
        return self.engine.learn_one(row, target)

    def learn(self, X, y, weights, wanted=None, coverage=None):
        """Let the engine run; among the first rows of a stream, from one look at their distances to the next."""
        self.check_scaling(X, y, weights)
        if not self.loss.is_compiled() and isinstance(X, np.ndarray):
            X = X.copy()  # out of reach of the user's loss
        self.make_ready()
        trace = {} if wanted is None else self._arrays_for(len(X), wanted, coverage)
        n_seen, first, n = self.n_classes_seen(), 0, len(X)
        if self.warm_up is not None and self.warm_up.left == 0:  # interrupted before the look
            self.look()
        while first < n:
            rows = n - first if self.warm_up is None else min(n - first, self.warm_up.left)
            part = slice(first, first + rows)
            views = {name: values[part].reshape(-1) for name, values in trace.items() if name != "known"}
            if "known" in trace:
                views["known"] = [values[part] for values in trace["known"]]
            if coverage is not None:
                views["coverage"] = level_of(coverage)
            if "norms" in trace:
                views.update(self.representation.norm_source(self))
            targets = y[first * self.targets : (first + rows) * self.targets]
            weighted = None if weights is None else weights[part]
            chosen = X[part] if rows < n else X
            if self.warm_up is not None:
                self.warm_up.open(chosen, targets, weighted)
            try:
                self.engine.learn_all(chosen, targets, weights=weighted, earlier=first, **views)
            finally:
                self._commit_warm_up()
            first += rows
            self.done = first
            if self.warm_up is not None and self.warm_up.left == 0:
                self.look()
        return None if wanted is None else self._found(trace, y, n_seen, wanted, coverage)

    def _arrays_for(self, n, wanted, coverage):
        """Arrays for what the engine writes about n rows."""
        flags = {"steps": "steps" in wanted, "scalars": bool(wanted & {"margins", "labels"}),
                 "norms": "norms" in wanted, "deviations": "std" in wanted}
        arrays = {name: np.zeros(n) for name, is_wanted in flags.items() if is_wanted}
        arrays["scores"] = np.zeros((n, self.function.width))
        if coverage is not None:
            arrays["half_widths"] = np.zeros((n, self.targets))
        if self.plan.scale_target:  # means, deviations, and the share of all weight that a row has
            arrays["known"] = np.zeros((n, self.targets)), np.zeros((n, self.targets)), np.zeros((n, 1))
        return arrays

    def _found(self, trace, y, n_seen, wanted, coverage):
        """What is wanted of each row, {name: array}, in the units of the targets."""
        scores, margins = trace["scores"][:, : self.n_classes_seen()], trace.get("scalars")
        known, units, found = trace.get("known"), 1.0, {}
        if coverage is not None:
            ends = self.interval(scores, trace["half_widths"], known)
            found["interval"] = np.stack([self.numbers(end) for end in ends])
        if known is not None:
            scores, units = self.target_scaler.brought_back(scores, *known)
            margins = None if margins is None else margins * units[:, 0]
        found.update(scores=scores, margins=margins, steps=trace.get("steps"), norms=trace.get("norms"))
        if "std" in wanted:
            found["std"] = self.in_units(trace["deviations"], units)
        if "labels" in wanted:
            found["labels"] = self.answers_of_their_time(scores, y, n_seen, margins)
        if "proba" in wanted:
            found["proba"] = self.probabilities_of_their_time(scores, y, n_seen)
        return found

    def _commit_warm_up(self):
        """The first rows are those that the engine has learned. All or nothing, as often as you like."""
        if self.warm_up is not None:
            self.warm_up.commit(self.engine.done)

    def look(self):
        """Choose the width of the default kernel by the first rows, which are learned anew if it was far off."""
        unit, warm_up = self.warm_up.unit(), self.warm_up.after_look()
        anew = {} if unit == self.plan.unit else self._learned_anew(unit)
        self.__dict__.update(anew, warm_up=warm_up)

    def _learned_anew(self, unit):
        """Attributes of a state that has learned the first rows with the width for features of another size."""
        X, y, weights = self.warm_up.rows()
        may_grow = self.loss.task == "multiclass" and not self.labels.fixed  # each label at its own row
        state = State.first(self.plan.in_unit(unit), X, ManyLabels([], False) if may_grow else self.labels,
                            self.targets)
        state.labels = self.labels
        state.make_ready()
        if state.function.width < self.function.width:
            state.hypothesis.grow(self.function.width)
        try:
            state.learn(X, y, weights)
        except FloatingPointError:  # where kernel values would overflow, rows stay as they were learned
            return {}
        state.engine.done = 0
        return {name: getattr(state, name) for name in ("plan", "configured", "engine", "hypothesis", "function")}

    # ---- Scaling ----

    def check_scaling(self, X, y, weights):
        """See whether X and y can be scaled, which happens while they are learned."""
        if self.plan.scale and not self.takes_without_check(X.data if self.sparse else X):
            self._in_domain(self.scaler.advanced(X)[1])
        if self.plan.scale_target and len(y):
            with np.errstate(over="ignore"):
                total = self.target_scaler.count + (0.0 if weights is None else weights.sum())
            if not np.isfinite(total):
                raise ValueError("sample_weight is too large to scale targets: the sum of the weights overflows.")

    def takes_without_check(self, values):
        """Whether rows with these values can be scaled, and the kernel is defined for what they become."""
        return not self.plan.restricts and self.engine.scaler.is_bounded(values)

    def _in_domain(self, X):
        """Scaled rows, if the kernel is defined for them."""
        if not self.sparse:
            self.kernel.check_domain(X, "The scaled X")
        return X

    def scaled(self, X):
        """X by what the scaler knows; X itself without one, and objects as they are."""
        if not self.plan.scale:
            return X
        scaler = self.scaler
        if not scaler.count:
            raise validation.not_fitted(scaler)
        return self._in_domain(scaler.scaled(X))

    # ---- What is shown ----

    def detected(self, scores, rho=None):
        """(f, rho) of a detector; f is rho where it is that up to rounding, as implicit steps leave it."""
        scores, rho = super().detected(scores, rho)
        rounding = 64 * np.finfo(self.function.dtype).eps * np.maximum(np.abs(scores), np.abs(rho))
        return np.where(np.abs(scores - rho) <= rounding, rho, scores), rho

    def contributions(self, row, points, alpha, top, label):
        """What each term contributes to a score of one example, the largest first; see the estimator's."""
        top = validate_top(top)
        x = self.scaled(self.plan.validate_points(row, self.n_features, self.function.dtype, sparse=self.sparse))
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

    def norm(self, future=False):
        """|f| in the kernel's Hilbert space; O(terms^2) kernel values unless there are weights or trees."""
        square = self.representation.square(self, future)
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
        if rows.shape[1] == 0:
            return rows
        return np.column_stack([self.function.outputs.kappa_times(column) for column in rows.T]).reshape(rows.shape)

    # ---- Starting from another function -----------------------------------------------------------------------------

    def begin_from(self, start):
        """Start from the function of another state, which the plan has checked (`Plan.check_start`)."""
        for name, mine, other in (
            ("the number of features", self.n_features, start.n_features),
            ("the form of coefficients", self.form, start.form),
            ("the number of targets", self.targets, start.targets),
            ("the kind of rows", *("sparse" if state.sparse else "dense" for state in (self, start))),
        ):
            if not same_parameters(mine, other):
                raise ValueError(f"initial must have {name} of this model, {mine!r}. Got {other!r} instead.")
        self.check_representation(start, "initial")
        if self.plan.scale:
            self.engine.scaler.load(start.scaler)
        if self.target_scaler is not None:
            restore(self.engine.target_scaler, state_of(start.target_scaler))
        self.representation.take_features(self, start)
        self.make_ready()
        if self.labels is not None and self.form != "one" and not self.labels.fixed:
            self.function.outputs.set_n_seen(start.n_classes_seen())
        self.hypothesis.begin_from(*self.start_of(start))
        self.begin_with_norms()

    def check_representation(self, start, name, whose="this model"):
        """Raise ValueError unless another state keeps f as this one does; pairs of labels may become all labels."""
        mine, its = (type(state.representation).__name__ for state in (self, start))
        if mine == its and self.representation.keeps == "terms" and self.function.pairs() is not None:
            mine += " for pairs of labels" if start.function.pairs() is None else ""
        if mine != its:
            raise ValueError(f"{name} must have the kernel and the representation of {whose}, {mine}. Got {its} "
                             "instead. Use a budget of the same kind.")

    def start_of(self, start):
        """(offsets, points, coefficients, pairs of labels) of another state's function, whose labels are the first ones
        of this state."""
        future = self.function.outputs.future and start.function.outputs.future  # whether both know labels to join
        known = start.n_classes_seen()

        def widened(rows):
            """Rows over labels; those of labels to join, or nothing, for others than that state has."""
            if self.labels is None or self.form == "one":
                return rows
            wide = np.zeros((self.function.width, *np.shape(rows)[1:]))
            if len(rows) > known:
                wide[:] = rows[-1]
            wide[:known] = rows[:known]
            return wide

        offsets = widened(start.hypothesis.intercept(future))
        return offsets, *self.representation.start(self, start, future, widened)

    def begin_with_norms(self):
        """Norms of the function that this one starts from, where they are kept."""
        if self.plan.rule.exact_norms or self.plan.rule.adapts_step:
            square = self.norm() ** 2
            future = self.norm(future=True) ** 2 - square if self.function.outputs.future else 0.0
            self.hypothesis.begin_with_square(square, max(0.0, future))

    # ---- In files and pickles ---------------------------------------------------------------------------------------

    def to_dict(self):
        """Everything that is learned, and the plan's parts, as plain values, components and arrays."""
        return {**self.header(),
                "rows": self.rows,
                "unit": self.plan.unit,
                "warm_up": None if self.warm_up is None else self.warm_up.to_dict(self.engine.done),
                "scaler": state_of(self.scaler) if self.plan.scale else None,
                "target_scaler": None if self.target_scaler is None else state_of(self.target_scaler),
                "dtype": self.function.dtype.str,
                "sparse": self.sparse,
                "learned": self.hypothesis.state()}

    def widened(self, width, fill):
        """The same with more features, which have the value `fill` in all examples so far."""
        learned, extra = self.to_dict(), width - self.n_features
        if self.warm_up is not None:
            learned["warm_up"] = self.warm_up.widened(extra, fill).to_dict()
        if self.plan.scale:
            learned["scaler"] = state_of(self.scaler.widened(extra, fill))
            fill = 0.0  # what a scaler has always seen is scaled to 0
        function = self.representation.widened(self, learned["learned"], extra, fill)
        return self.from_dict({**learned, "n_features": width, "feature_names": None, "learned": function})

    @classmethod
    def from_dict(cls, learned):
        """The state that `to_dict` described; ValueError if its parts do not fit each other."""
        plan, hypothesis = Plan(**learned["plan"]), learned["learned"]
        if plan.rule.is_open:
            raise ValueError("the step or the regularization is missing")
        labels = _restored_labels(plan, learned)
        n_features, dtype, sparse, n_targets = _restored_shape(plan, learned)
        state = cls(plan, n_features, dtype, hypothesis.get("origin"), labels, sparse, n_targets)
        if state.form != "one" and labels is not None and not labels.fixed:
            state.hypothesis.grow(np.size(hypothesis["offset"]))  # labels may have been seen that have no name yet
        if plan.restricts:  # before the kernel looks at them
            _check_domain(plan.kernel, hypothesis, n_features, dtype)
        state.hypothesis.restore(hypothesis)
        state.make_ready()
        if plan.loss.task == "multiclass":
            excess = state.n_classes_seen() - len(labels.order)
            if excess > 0 or labels.fixed and excess:
                raise ValueError(f"there are {'more' if excess > 0 else 'fewer'} outputs than labels")
        state.restore_header(learned)
        state._restore_warm_up(learned)
        for name, scaler in (("scaler", state.engine.scaler), ("target_scaler", state.target_scaler)):
            if (learned[name] is None) != (scaler is None):
                raise ValueError(f"the {name} does not fit the parameters")
            if scaler is not None:
                restore(scaler, learned[name])
        return state

    def _restore_warm_up(self, learned):
        """How many rows `fit` had, and the width of a default kernel with the first rows, which may still choose it."""
        plan = self.plan
        self.rows = learned["rows"]
        if not (self.rows is None or type(self.rows) is int and self.rows > 0):
            raise ValueError("the number of rows is not a positive integer")
        plan.unit = check_number(learned["unit"], "unit", least=0.0)
        if learned["warm_up"] is not None:
            if defaults.width(plan.kernel) is None or plan.scale or plan.unit == 0:
                raise ValueError("the kernel's width is not to be chosen any more")
            labels = {"binary": [-1.0, 1.0], "multiclass": self.labels and np.arange(len(self.labels.order))}
            self.warm_up = WarmUpRows.restored(learned["warm_up"], self.n_features, self.function.dtype, self.sparse,
                                               self.targets, labels.get(self.loss.task))


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
    n_features, dtype, function = learned["n_features"], learned["dtype"], learned["learned"]
    if (n_features is None) != plan.takes_objects:
        raise ValueError("the number of features does not fit the kernel")
    if n_features is not None and (type(n_features) is not int or not 1 <= n_features < 2**31):
        raise ValueError("n_features is not a number of features")
    if dtype not in ("<f8", "<f4", np.dtype(float).str, np.dtype(np.float32).str):
        raise ValueError(f"points cannot be of type {dtype!r}")
    dtype = np.dtype(np.float32 if dtype[1:] == "f4" else np.float64)  # the object that numpy shares
    if plan.representation.double and dtype == np.float32:
        raise ValueError("these points cannot be of single precision")
    if function.get("origin") is not None:
        check_array(function["origin"], "origin", dtype, (n_features,))
    sparse, n_targets = learned["sparse"], learned["targets"]
    if type(sparse) is not bool or sparse and not plan.kernel.on_inner_products():
        raise ValueError("the kernel does not fit sparse rows")
    if type(n_targets) is not int or not 1 <= n_targets < 2**31 or n_targets > 1 and plan.loss.task != "regression":
        raise ValueError("the number of targets is not a positive integer, or does not fit the loss")
    plan.representation.check_sizes(function, n_features, sparse)
    if n_targets > 1 and np.shape(function["offset"]) != (n_targets,):
        raise ValueError("the offsets do not have the number of targets")
    if learned["scaler"] is not None:
        check_sizes(learned["scaler"], features=n_features)
    return n_features, dtype, sparse, n_targets


def check_sizes(learned, **sizes):
    """ValueError unless numbers of features, or targets, are those of arrays that are there: memory depends on them."""
    lengths = set(_lengths(learned))
    for name, size in sizes.items():
        if size not in lengths:
            raise ValueError(f"there are no arrays of {size} {name}")


def _lengths(learned):
    """Lengths of all arrays in a dictionary of dictionaries."""
    for part in learned.values():
        yield from _lengths(part) if isinstance(part, dict) else getattr(part, "shape", ())


def _check_domain(kernel, learned, n_features, dtype):
    """Points, and landmarks of maps, must be where the kernel is defined; ValueError if they are not."""
    for name in learned:
        prefix, dot, last = name.rpartition(".")
        if last == "points":
            points = check_array(learned[name], "points", dtype, (-1, n_features))
            origin = learned.get(f"{prefix}{dot}origin")
            if len(points):
                origin = 0 if origin is None else check_array(origin, "origin", dtype, (n_features,))
                kernel.check_input(points + origin)
