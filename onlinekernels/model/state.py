"""What a learner has learned: the engine, the labels, the scaler, and the plan they belong to."""
import copy
import numbers
from collections import namedtuple

import numpy as np

from onlinekernels import validation
from onlinekernels._core.arrays import check_array, check_number
from onlinekernels._core.functions.nystroem import NystroemMap
from onlinekernels._core.points.sparse import Rows
from onlinekernels.model.beginning import Beginning
from onlinekernels.model.defaults import Data
from onlinekernels.model.labels import BinaryLabels, ManyLabels, label_column
from onlinekernels.nouns.kernels import Gaussian
from onlinekernels.nouns.maps import check_sizes
from onlinekernels.nouns.params import same_parameters
from onlinekernels.model.plan import Plan
from onlinekernels.nouns.scaling import RunningScaler
from onlinekernels.model.target_scaling import TargetScaler

__all__ = ["Contribution", "State", "targets"]

Contribution = namedtuple("Contribution", "value place point coefficient kernel")
Contribution.__doc__ = """What one stored example contributes to a score: value = coefficient * kernel."""


class State:
    """All that a learner has learned: the engine, the labels, and the plan they belong to."""

    def __init__(self, plan, n_features, dtype, origin=None, labels=None, sparse=False, targets=1):
        self.plan = self.configured = plan
        self.n_features = n_features
        self.labels = labels
        self.sparse = sparse
        self.targets = targets  # numbers that y has for each example
        self.form = plan.form_for(targets)
        self.feature_names = None  # of the data frame that came first
        self.target_scaler = None
        if plan.scale_target:
            rule = plan.rule
            self.target_scaler = TargetScaler(targets, plan.scale_target, rule.is_posterior, rule.takes_outliers)
        self.under_way = None  # (targets, weights) that are being learned, and their scaler after all of them
        self.rows = None  # that `fit` was given, for defaults
        self.beginning = None  # the first rows of a stream, until the width of a default kernel is settled,
        self.beginning_ahead = None  # and what it will be when all rows that are under way are learned
        self.warned = False  # that learning goes wrong
        self.stale = False  # a parameter was set since the plan was made
        self.engine = plan.engine(n_features, dtype, origin, labels, sparse, targets)
        self.hypothesis = self.engine.hypothesis  # f with its offsets, the loss's scalar and the rule, as they are now
        self.function = self.hypothesis.function  # f as it is kept

    @classmethod
    def first(cls, plan, X, labels, targets=1):
        """The state before the first example."""
        if plan.takes_objects:
            return cls(plan, None, np.float64, labels=labels, targets=targets)
        if isinstance(X, Rows):
            return cls(plan, X.n_features, X.dtype, labels=labels, sparse=True, targets=targets)
        program = None if plan.scale else plan.program(X.shape[1])  # what is scaled is not far from 0
        return cls(plan, X.shape[1], X.dtype, program and program.choose_origin(X[0]), labels, False, targets)

    @property
    def loss(self):
        return self.plan.loss

    @property
    def kernel(self):
        return self.plan.kernel

    @property
    def scaler(self):
        """The scaler of features as it belongs to the hypothesis, between any two examples; a copy, None without one."""
        if not self.plan.scale:
            return None
        scaler = RunningScaler(self.plan.scale)
        mean, square, count, shown = self.engine.scaler_state()
        if count:
            scaler._state = mean, square, count, shown, None
        return scaler

    def load_scaler(self, scaler):
        """Go on from what a scaler has learned."""
        if scaler._state is not None:
            self.engine.scaler.load(*scaler._state[:4])

    def scales(self):
        """Whether features or targets are scaled."""
        return bool(self.plan.scale) or self.target_scaler is not None

    def begin_scaling(self, X, y, weights):
        """(targets, what `TargetScaler.brought_back` wants for each row or None), scaled one after another.

        X is scaled while it is learned, and here is seen whether that will do. The scaler of targets moves on when the rows
        are learned.
        """
        if self.plan.scale and not self.takes_without_check(X.data if self.sparse else X):
            self._in_domain(self.scaler.advanced(X if self.sparse else X.astype(float, copy=False))[1], X.dtype)
        if self.target_scaler is None:
            return y, None
        ahead, scaled, *known = self.target_scaler.advanced(y, weights)
        self.under_way = (y, weights), ahead
        return scaled, (*known, self.target_scaler.shares(len(known[0]), weights))

    def takes_without_check(self, values):
        """Whether rows with these values can be scaled, and the kernel is defined for what they become."""
        return not self.plan.restricts and self.engine.scaler.is_tame(values)

    def catch_up(self):
        """The scaler of targets, and the first rows, have seen as many rows as the engine. All or nothing, as often as you like."""
        if self.under_way is not None:
            rows, ahead = self.under_way
            is_whole = self.engine.done * self.targets == len(rows[0])
            ahead = ahead if is_whole else self.current_target_scaler()
            self.target_scaler, self.under_way = ahead, None
        if self.beginning_ahead is not None:
            beginning = self.current_beginning()
            self.beginning, self.beginning_ahead = beginning, None

    def current_beginning(self):
        """The first rows as they belong to the hypothesis, between any two examples."""
        if self.beginning_ahead is None:
            return self.beginning
        return self.beginning_ahead.first(len(self.beginning) + self.engine.done)

    def current_target_scaler(self):
        """The scaler of targets as it belongs to the hypothesis, between any two examples."""
        if self.target_scaler is None or self.under_way is None or not self.engine.done:
            return self.target_scaler
        y, weights = self.under_way[0]
        part = None if weights is None else weights[: self.engine.done]
        return self.target_scaler.advanced(y[: self.engine.done * self.targets], part)[0]

    def learn(self, X, y, weights, **trace):
        """Let the engine run. Returns the means and deviations of the targets that were known before each row, if these are
        scaled."""
        known, self.engine.done = None, 0
        try:
            if self.scales():
                y, known = self.begin_scaling(X, y, weights)
            self.make_ready()
            self.engine.learn(X, y, weights=weights, **trace)
        finally:
            if self.under_way is not None or self.beginning_ahead is not None:
                self.catch_up()
        return known

    def learn_first(self, X, y, weights, **trace):
        """The same up to the next row after which the width of a default kernel is looked at: (rows learned, what was known)."""
        rows = min(len(X), self.beginning.left)
        X, y, weights = X[:rows], y[: rows * self.targets], None if weights is None else weights[:rows]
        self.beginning_ahead = self.beginning.followed_by(X, y, weights)
        return rows, self.learn(X, y, weights, **trace)

    def after_first(self):
        """The state to go on with: if the width of the default kernel was far off, one that has learned the first rows anew."""
        unit, state = self.beginning.unit(), self
        if unit != self.plan.unit:
            X, y, weights = self.beginning.rows()
            may_join = self.loss.task == "multiclass" and not self.labels.fixed  # each at its own row
            state = State.first(self.plan.in_unit(unit), X, ManyLabels([], False) if may_join else self.labels, self.targets)
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
        state.beginning = self.beginning.settled()
        return state

    def _in_domain(self, X, dtype):
        """Scaled rows in the points' precision, if the kernel is defined for them."""
        if not self.sparse:
            X = X.astype(dtype, copy=False)
            self.kernel.check_domain(X, "The scaled X")
        return X

    def scaled(self, X):
        """X by what the scaler knows; X itself without one."""
        return self._in_domain(self.scaler.scaled(X), X.dtype) if self.plan.scale else X

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

    def settled(self, plan):
        """A plan with what it leaves open chosen as it was for this state."""
        return plan.settled(Data(self.n_features, self.rows, self.sparse, self.plan.unit))

    def refreshed(self, learner):
        """The state under changed parameters: step and regularization may change, all else must not."""
        plan = self.settled(learner._plan())
        self.plan.check_change(plan)
        state = copy.copy(self)
        state.plan, state.stale = plan, False
        return state

    def is_special(self):
        """Whether an example must go the long way, through `partial_fit`."""
        is_plain = self.targets == 1 and self.target_scaler is None and self.beginning is None
        return self.stale or self.sparse or not is_plain

    def keep_learned(self, before, y):
        """After an error: only the labels that were there before, or in the targets y that were learned."""
        if self.labels is not None:
            self.labels = self.labels.as_learned(None if before is None else before.labels, y, self.joined())

    def joined(self):
        """Number of outputs, labels that have not been learned left out."""
        return self.function.outputs.joined

    def answers(self, scores, rho=None):
        """Labels, targets, or +1 and -1 of a detector, by the threshold rho if it is not that in force."""
        if self.labels is not None:
            return self.labels.decode(scores)
        if self.loss.task == "novelty":
            return np.where(np.greater_equal(*self.detected(scores, rho)), 1, -1)
        return self._numbers(scores if self.target_scaler is None else self.target_scaler.restored(scores))

    def _numbers(self, scores):
        return scores[:, 0] if self.targets == 1 else scores

    def answers_of_their_time(self, scores, y, joined, rho):
        """`answers` just before each of the examples with targets y.

        `joined` labels were there before the first of them, and rho is the threshold at each; scores of a regression are
        in the units of y.
        """
        if self.loss.task == "multiclass":
            return self.labels.decode_before(scores, self.labels.joined_before(y, joined))
        return self._numbers(scores) if self.loss.task == "regression" else self.answers(scores, rho)

    def probabilities_of_their_time(self, scores, y, joined):
        """Probabilities of the classes just before each example, in the order of `classes_`; 0 for those that join later."""
        there = np.arange(scores.shape[1]) < self.labels.joined_before(y, joined)[:, None]
        likely = np.where(there, self.loss.probabilities(scores), 0.0)
        return self.shown((likely / np.maximum(likely.sum(axis=1, keepdims=True), 1e-300)).T).T

    def interval(self, scores, reaches, known=None):
        """(lower, upper) ends in the units of the targets; `known` of these before each row, as of now if it is None."""
        if self.target_scaler is None:
            return scores - reaches, scores + reaches
        return self.target_scaler.interval(scores, reaches, *known or self.target_scaler.known())

    def in_units(self, deviations, units):
        """Deviations of f, which all outputs share, in units (n, targets) of each; one column where that is all there is."""
        if np.ndim(units) == 0:
            return deviations
        return self._numbers(deviations[:, None] * units)

    def detected(self, scores, rho=None):
        """(f, rho) of a detector; f is rho where it is that up to rounding, as implicit steps leave it."""
        scores, rho = scores[:, 0], self.hypothesis.scalar() if rho is None else rho
        rounding = 64 * np.finfo(self.function.dtype).eps * np.maximum(np.abs(scores), np.abs(rho))
        return np.where(np.abs(scores - rho) <= rounding, rho, scores), rho

    def take_labels(self, labels):
        """Go on with labels that may be shown in another order, which decides among equals."""
        self.labels = labels
        if labels is not None and self.form != "one":
            self.hypothesis.form.set_order(labels.display)

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

    def begin_from(self, start):
        """Start from the function of another state, which the plan has checked (`Plan.check_start`)."""
        others = start.function
        rows = ("sparse" if self.sparse else "dense"), ("sparse" if start.sparse else "dense")
        has_terms = others.keeps == "terms" and len(others.slots()) > 0 or self.plan.features is not None
        for name, mine, other in (
            ("the number of features", self.n_features, start.n_features),
            ("the form of coefficients", self.form, start.form),
            ("the number of targets", self.targets, start.targets),
            ("the kind of rows", *(rows if has_terms else (None, None))),
        ):
            if not same_parameters(mine, other):
                raise ValueError(f"initial must have {name} of this model, {mine!r}. Got {other!r} instead.")
        if self.plan.scale:
            if (start.scaler._state is not None) and (start.scaler._state[0] is None) != self.sparse:
                raise ValueError("initial scales another kind of rows, sparse or dense, than this model.")
            self.load_scaler(start.scaler)
        if self.target_scaler is not None:
            self.target_scaler = copy.copy(start.target_scaler)
            self.target_scaler.kind = self.plan.scale_target
        if self.plan.features is not None:
            self.function.take_map(others)
        places = self._places_of(start)
        intercept = start.hypothesis.intercept(self._ahead_of(start))
        if places is not None:
            self.make_ready()
            intercept = self._moved(intercept, places)
            if not self.labels.fixed:
                self.function.outputs.set_joined(start.joined())
        self.hypothesis.begin_from(intercept, *self._start(start, places))
        self.begin_with_norms()

    def begin_with_norms(self):
        """Norms of the function that this one starts from, where they are kept."""
        if self.plan.rule.exact_norms:
            square = self.norm() ** 2
            ahead = self.norm(ahead=True) ** 2 - square if self.function.outputs.ahead else 0.0
            self.hypothesis.begin_with_square(square, max(0.0, ahead))

    def _ahead_of(self, start):
        """Whether labels to join are ahead in another state, and in this one."""
        return self.function.outputs.ahead and start.function.outputs.ahead

    def _places_of(self, start):
        """Places of another state's labels among those of this one; None where there is one output, or targets."""
        if self.labels is None or self.form == "one":
            self.labels = start.labels if self.labels is None else self.labels
            return None
        known = start.labels.order[: start.joined()]
        places = self.labels.places_of(known)
        if None in places:
            raise ValueError(f"initial has the label {known[places.index(None)]!r}, which this model cannot have.")
        self.take_labels(self.labels)
        return np.array(places, dtype=np.intp)

    def _moved(self, rows, places):
        """Rows over another state's labels to the places of this one's; one more row is for all labels to join."""
        moved = np.zeros((self.function.width, *np.shape(rows)[1:]))
        if len(rows) > len(places):
            moved[:] = rows[-1]
        moved[places] = rows[: len(places)]
        return moved

    def _start(self, start, places=None):
        """(points, coefficients, pairs of labels) of another state's function, in this one's form.

        `places` are those of its labels here, None if they are the same.
        """
        mine, others, ahead = self.function, start.function, self._ahead_of(start)
        moved = (lambda rows: rows) if places is None else (lambda rows: self._moved(rows, places))
        if others.keeps == "terms":
            points, alpha = start.terms(ahead)
            if mine.keeps == "weights":
                return None, moved(alpha @ points.astype(float))
            pairs = others.pairs()
            if pairs is not None:
                alpha = alpha[pairs[0], np.arange(pairs.shape[1])][None]
                return self._start_points(points), alpha, pairs if places is None else places[pairs]
            if mine.keeps == "terms" and mine.pairs() is not None:
                terms, alpha, pairs = in_pairs(moved(alpha))
                points = [points[i] for i in terms] if isinstance(points, list) else points[terms]
                return self._start_points(points), alpha, pairs
            return self._start_points(points), moved(alpha), None
        if others.keeps == "knots":
            if mine.keeps == "terms":
                raise ValueError("initial keeps knots of additive functions, which cannot become terms of a budget.")
            knots = [start.hypothesis.knots(j, ahead) for j in range(self.n_features)]
            return None, [(keys, counts, moved(true), sizes) for keys, counts, true, sizes in knots]
        weights = start.hypothesis.coefficients(ahead)
        if mine.keeps == "weights":
            return None, moved(weights)
        if self.form != "one":
            raise ValueError("initial keeps weights for many outputs, which cannot become terms of a budget.")
        # A weight vector is one term at the point w.
        return self._start_points(weights), np.array([[1.0 if weights.any() else 0.0]]), None

    def terms(self, ahead=False):
        """(points or objects, coefficients of shape (outputs, terms)), oldest first; f must be kept as terms, or be exact.

        With `ahead`, the last row is what labels to join have learned.
        """
        exact = self.exact_map()
        points = self.function.points() if exact is None else exact.points()
        if self.sparse:
            points = validation.as_csr(points)
        elif self.plan.takes_objects:
            points = validation.check_objects(points, empty=True)
        coefficients = self.hypothesis.coefficients(ahead)
        return points, coefficients if exact is None else exact.dual(coefficients)

    def exact_map(self):
        """The map of a Nystroem kernel whose landmarks are not complete, so that they are all there is; otherwise None."""
        whole = self.function.map if self.plan.features is not None else None
        return whole if isinstance(whole, NystroemMap) and whole.inverse is None else None

    def contributions(self, row, points, alpha, top, label):
        """What each term contributes to a score of one example, the largest first; see `Fitted.contributions`."""
        if top is not None and (not isinstance(top, numbers.Integral) or isinstance(top, bool) or top < 0):
            raise ValueError(f"top must be a number of terms, or None for all. Got {top!r} instead.")
        x = self.plan.checked_points(row, self.n_features, self.function.dtype, sparse=self.sparse)
        x = x if self.plan.takes_objects else self.scaled(x)
        output = self._output(self.engine.decision(x), label)
        if alpha.shape[1] == 0:
            return []
        x = validation.as_csr(x) if self.sparse else x
        values = np.asarray(self.kernel(x, points))[0]
        coefficients = self.with_label_kernel(alpha)[output]
        shares = coefficients * values
        order = np.argsort(-np.abs(shares), kind="stable")[:top]
        return [
            Contribution(float(shares[i]), int(i), points[i], float(coefficients[i]), float(values[i])) for i in order
        ]

    def _output(self, scores, label):
        """The output that a label has, or for None the one with the best score."""
        if self.form == "one" or self.labels is None:
            if label is not None:
                raise ValueError(f"label is for losses of many classes. Got {label!r}.")
            if scores.shape[1] > 1:
                raise ValueError("contributions are of one score, and this model has several targets.")
            return 0
        if label is None:
            return int(scores[0, : self.joined()].argmax())
        place = self.labels.places_of([label])[0]
        if place is None or place >= self.joined():
            raise ValueError(f"{label!r} is not a label of this model.")
        return int(place)

    def norm(self, ahead=False):
        """|f| in the kernel's Hilbert space; O(terms^2) kernel values unless there are weights or trees."""
        if self.plan.trees is not None:
            square = self.hypothesis.square_on_trees(ahead)
        elif self.function.keeps == "weights":
            weights = self.hypothesis.coefficients(ahead)
            square = np.sum(weights * self.with_label_kernel(weights)) * self.plan.weight_scale
        else:
            points, alpha = self.terms(ahead)
            gram = self.kernel(points) if alpha.shape[1] else np.zeros((0, 0))
            square = np.sum((alpha @ gram) * self.with_label_kernel(alpha))
        if not np.isfinite(square):
            raise FloatingPointError("|f| is too large for float64: learning has diverged.")
        return float(np.sqrt(max(0.0, square)))

    def component(self, j, grid):
        """f_j at the values in grid, shape (len(grid), labels); the kernel is additive."""
        if not isinstance(j, numbers.Integral) or isinstance(j, bool) or not 0 <= j < self.n_features:
            raise IndexError(f"There is no coordinate {j!r}: the model has {self.n_features} features.")
        kernel = self.kernel.coordinate(j)
        if self.plan.scale:
            grid = self.scaler.transform_column(j, grid)
        kernel.check_domain(grid[:, None], "grid")
        if self.plan.trees is not None:
            return self.hypothesis.component(j, grid)
        points, alpha = self.terms()
        values = kernel(grid[:, None], points[:, j : j + 1].astype(float)) if len(grid) and len(points) else None
        rows = np.zeros((len(alpha), len(grid))) if values is None else alpha @ values.T
        return self.with_label_kernel(rows).T

    def knots(self):
        """Distinct values of each coordinate among the terms."""
        if self.function.keeps == "terms":
            return [np.unique(column) for column in self.terms()[0].T]
        low, stretch = self.function.forest.low, self.function.forest.stretch
        keys = [self.hypothesis.knots(j)[0] for j in range(self.n_features)]
        return keys if low is None else [keys[j] / stretch[j] + low[j] for j in range(self.n_features)]

    def shown(self, rows):
        """Rows over labels, in the order of `classes_`."""
        display = None if self.labels is None else self.labels.display
        return rows if display is None else rows[display[: len(rows)]]

    def with_label_kernel(self, rows):
        """kappa @ rows."""
        outputs = self.function.outputs
        if rows.shape[1] == 0:
            return rows
        return np.column_stack([outputs.kappa_times(column) for column in rows.T]).reshape(rows.shape)

    def _start_points(self, points):
        """Points of another model in this one's precision."""
        if self.plan.takes_objects:
            return points
        if points.shape[0] == 0:
            points = np.zeros((0, self.n_features))
            return Rows([0], [], [], self.n_features) if self.sparse else points
        try:
            return self.plan.checked_points(points, self.n_features, self.function.dtype, sparse=self.sparse)
        except ValueError as error:
            raise ValueError(f"initial does not fit this model: {error}") from error

    def widened(self, width, fill):
        """The same with more features, which have the value `fill` in all examples so far."""
        learned = self.to_dict()
        extra = width - self.n_features
        function = dict(learned["learned"])
        if self.beginning is not None:
            learned["beginning"] = self.current_beginning().widened(extra, fill).to_dict()
        if self.plan.scale:
            learned["scaler"] = self.scaler.widened(extra, fill).to_dict()
            fill = 0.0  # what a scaler has always seen is scaled to 0
        if self.plan.features is not None or self.plan.rule.is_posterior and self.function.keeps == "weights":
            return State.from_dict({**learned, "n_features": width, "feature_names": None,
                                    "learned": {**function, **self.function.widened(extra, fill)}})
        if fill and "origin" not in function:
            # Points, and what is kept with them, are about the origin: about `fill`, new columns are 0.
            function["origin"] = np.zeros(self.n_features, dtype=self.function.dtype)
        rate = self.plan.rule.step.rate
        for name, value in (("points", 0.0), ("weights", 0.0), ("steps", rate), ("origin", fill)):
            if name in function:
                sides = [(0, 0)] * (function[name].ndim - 1) + [(0, extra)]
                function[name] = np.pad(function[name], sides, constant_values=value)
        return State.from_dict({**learned, "n_features": width, "feature_names": None, "learned": function})

    def to_dict(self):
        """Everything that is learned, and the plan's parts, as plain values, nouns and arrays."""
        return {
            "plan": self.plan.parts(),
            "stale": self.stale,
            "rows": self.rows,
            "unit": self.plan.unit,
            "beginning": None if self.beginning is None else self.current_beginning().to_dict(),
            "n_features": self.n_features,
            "feature_names": self.feature_names,
            "scaler": self.scaler.to_dict() if self.plan.scale else None,
            "target_scaler": None if self.target_scaler is None else self.current_target_scaler().to_dict(),
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
        kind = {"binary": BinaryLabels, "multiclass": ManyLabels}.get(plan.loss.task)
        if (kind is None) != (learned["labels"] is None):
            raise ValueError("the labels do not fit the loss")
        labels = None if kind is None else kind.restore(learned["labels"])
        if plan.labels is not None and not labels.fixed:
            raise ValueError("the labels of a structure are fixed, and these may grow")
        n_features, dtype, origin = learned["n_features"], learned["dtype"], learned["learned"].get("origin")
        if (n_features is None) != plan.takes_objects:
            raise ValueError("the number of features does not fit the kernel")
        if n_features is not None and (type(n_features) is not int or not 1 <= n_features < 2**31):
            raise ValueError("n_features is not a number of features")
        if dtype not in ("<f8", "<f4", np.dtype(float).str, np.dtype(np.float32).str):
            raise ValueError(f"points cannot be of type {dtype!r}")
        if plan.rule.is_posterior and dtype[1:] == "f4":
            raise ValueError("points of a posterior cannot be of single precision")
        dtype = np.dtype(np.float32 if dtype[1:] == "f4" else np.float64)  # the object that numpy shares
        if origin is not None:
            check_array(origin, "origin", dtype, (n_features,))
        sparse = learned["sparse"]
        if type(sparse) is not bool or sparse and not plan.kernel.on_inner_products():
            raise ValueError("the kernel does not fit sparse rows")
        n_targets = learned["targets"]
        if type(n_targets) is not int or not 1 <= n_targets < 2**31 or n_targets > 1 and plan.loss.task != "regression":
            raise ValueError("the number of targets makes no sense")
        _check_sizes(plan, learned["learned"], n_features, sparse, n_targets)
        state = cls(plan, n_features, dtype, origin, labels, sparse, n_targets)
        state._make_room(learned["learned"])
        if plan.restricts:  # before the kernel looks at them
            _check_domain(plan.kernel, learned["learned"], n_features, dtype)
        state.hypothesis.restore(learned["learned"])
        state.take_labels(labels)
        state.make_ready()
        if kind is ManyLabels:
            excess = state.joined() - len(labels.order)
            if excess > 0 or labels.fixed and excess:
                raise ValueError(f"there are {'more' if excess > 0 else 'fewer'} outputs than labels")
        state.stale = bool(learned["stale"])
        state.rows = learned["rows"]
        if not (state.rows is None or type(state.rows) is int and state.rows > 0):
            raise ValueError("the number of rows makes no sense")
        plan.unit = check_number(learned["unit"], "unit", least=0.0)
        if learned["beginning"] is not None:
            if type(plan.kernel) is not Gaussian or plan.scale or plan.unit == 0:
                raise ValueError("the kernel's width is not to be chosen any more")
            state.beginning = Beginning.restored(learned["beginning"], n_features, dtype, sparse)
            state.beginning.check_targets(n_targets, plan.loss.task, len(labels.order) if plan.loss.task == "multiclass" else 2)
        if (learned["scaler"] is None) != (not plan.scale):
            raise ValueError("the scaler does not fit the parameters")
        if plan.scale:
            scaler = RunningScaler(plan.scale)
            scaler.restore(learned["scaler"], n_features)
            if scaler._state is not None and (scaler._state[0] is None) != sparse:
                raise ValueError("the scaler is for another kind of rows")
            state.load_scaler(scaler)
        if (learned["target_scaler"] is None) != (state.target_scaler is None):
            raise ValueError("the scaler of targets does not fit the parameters")
        if state.target_scaler is not None:
            state.target_scaler.restore(learned["target_scaler"])
        state.feature_names = learned["feature_names"]
        if state.feature_names is not None:
            names = state.feature_names
            if len(names) != n_features or not all(isinstance(name, str) for name in names):
                raise ValueError("the feature names do not fit the number of features")
        return state

    def _make_room(self, learned):
        """There may be more labels that have joined than are known by name, but not more than there are offsets."""
        if self.form != "one" and self.labels is not None and not self.labels.fixed:
            self.hypothesis.grow(np.size(learned["offset"]))


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


def _check_sizes(plan, learned, n_features, sparse, n_targets):
    """What is about to be allocated must be as large as arrays that are there; ValueError if it is not."""
    weights = "mean" if plan.rule.is_posterior else "weights"
    if plan.features is not None:
        check_sizes(plan.features, n_features, learned, weights)
    elif plan.weight_scale is not None:
        check_array(learned[weights], weights, np.float64, (-1, n_features))
    elif plan.trees is not None:  # each feature has a tree
        if np.ndim(learned["tree_levels"]) != 1 or len(learned["tree_levels"]) < n_features:
            raise ValueError("there are fewer trees than features")
    elif n_features is not None and not sparse and np.shape(learned["points"])[1:] != (n_features,):
        raise ValueError("the points do not have the number of features")
    if n_targets > 1 and np.shape(learned["offset"]) != (n_targets,):
        raise ValueError("the offsets do not have the number of targets")


def in_pairs(alpha):
    """Terms with a coefficient for each label as terms for pairs of labels; (which term, coefficients, pairs).

    Coefficients of a term sum up to 0, as all have come from pairs: what the largest has more, the smallest has less.
    """
    rest, parts = alpha.copy(), []
    terms = np.arange(alpha.shape[1])
    for _ in range(1, max(2, len(alpha))):
        pair = np.stack([rest.argmax(axis=0), rest.argmin(axis=0)])
        share = np.minimum(rest[pair[0], terms], -rest[pair[1], terms])
        rest[pair[0], terms] -= share
        rest[pair[1], terms] += share
        parts.append((share, pair))
    # The parts of a term stay together, so that it keeps its age; less than the least digits is no part.
    share = np.stack([share for share, _ in parts], axis=1)
    pairs = np.stack([pair for _, pair in parts], axis=2)
    kept = share > 1e-12 * np.abs(alpha).max(axis=0)[:, None]
    return np.nonzero(kept)[0], share[kept][None], pairs[:, kept]


def targets(loss, labels, n, y, n_targets=1):
    """(y as the engine takes it, labels to go on with)."""
    if loss.task == "novelty":
        return np.zeros(n), labels
    if loss.task == "regression":
        return validation.check_targets(y, n, n_targets).reshape(-1), labels
    return labels.encode(label_column(y, n))
