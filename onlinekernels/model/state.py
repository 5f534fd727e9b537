"""What a learner has learned: the engine, the labels, the scaler, and the plan they belong to."""
import copy
import numbers
from collections import namedtuple

import numpy as np

from onlinekernels import validation
from onlinekernels._core.arrays import check_array, check_number
from onlinekernels._core.points.sparse import Rows
from onlinekernels.model import defaults
from onlinekernels.model.beginning import Beginning
from onlinekernels.model.defaults import Data
from onlinekernels.model.labels import BinaryLabels, ManyLabels
from onlinekernels.model.learned import Learned
from onlinekernels.model.plan import Plan
from onlinekernels.model.representations import LabelMap
from onlinekernels.model.target_scaling import TargetScaler
from onlinekernels.nouns.params import same_parameters
from onlinekernels.nouns.scaling import advanced

__all__ = ["Contribution", "State"]

Contribution = namedtuple("Contribution", "value place point coefficient kernel")
Contribution.__doc__ = """What one stored example contributes to a score: value = coefficient * kernel."""


class State(Learned):
    """All that a learner has learned: the engine, the labels, and the plan they belong to."""

    def __init__(self, plan, n_features, dtype, origin=None, labels=None, sparse=False, targets=1):
        super().__init__(n_features, labels, targets, plan.form_for(targets))
        self.plan = self.configured = plan
        self.sparse = sparse
        if plan.scale_target:
            rule = plan.rule
            self.target_scaler = TargetScaler(targets, plan.scale_target, rule.is_posterior, rule.takes_outliers)
        self.under_way = None  # (targets, weights) that are being learned, and their scaler after all of them
        self.rows = None  # that `fit` was given, for defaults
        self.beginning = None  # the first rows of a stream, until the width of a default kernel is settled,
        self.beginning_after = None  # and what it will be when all rows that are under way are learned
        self.engine = plan.engine(n_features, dtype, origin, labels, sparse, targets)
        self.hypothesis = self.engine.hypothesis  # f with its offsets, the loss's scalar and the rule, as they are now
        self.function = self.hypothesis.function  # f as it is kept
        self.takes_one = targets == 1 and not sparse and self.target_scaler is None
        self.takes_rows = self.takes_one and not (plan.takes_objects or plan.copies_one or plan.restricts)  # as they are

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
    def trouble(self):
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
        return bool(self.plan.scale) or self.target_scaler is not None

    def begin_scaling(self, X, y, weights):
        """(targets, what `TargetScaler.brought_back` wants for each row or None), scaled one after another.

        X is scaled while it is learned, and here is seen whether that will do. The scaler of targets moves on when the rows
        are learned.
        """
        if self.plan.scale and not self.takes_without_check(X.data if self.sparse else X):
            self._in_domain(advanced(self.scaler, X)[1])
        if self.target_scaler is None:
            return y, None
        after, scaled, *known = self.target_scaler.advanced(y, weights)
        self.under_way = (y, weights), after
        return scaled, (*known, self.target_scaler.shares(len(known[0]), weights))

    def takes_without_check(self, values):
        """Whether rows with these values can be scaled, and the kernel is defined for what they become."""
        return not self.plan.restricts and self.engine.scaler.is_tame(values)

    def catch_up(self):
        """The scaler of targets, and the first rows, have seen as many rows as the engine. All or nothing, as often as you like."""
        if self.under_way is not None:
            rows, after = self.under_way
            is_whole = self.engine.done * self.targets == len(rows[0])
            after = after if is_whole else self.current_target_scaler()
            self.target_scaler, self.under_way = after, None
        if self.beginning_after is not None:
            beginning = self.current_beginning()
            self.beginning, self.beginning_after = beginning, None

    def current_beginning(self):
        """The first rows as they belong to the hypothesis, between any two examples."""
        if self.beginning_after is None:
            return self.beginning
        return self.beginning_after.first(len(self.beginning) + self.engine.done)

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
            if "norms" in trace:
                trace.update(self.representation.norm_source(self))
            self.engine.learn(X, y, weights=weights, **trace)
        finally:
            if self.under_way is not None or self.beginning_after is not None:
                self.catch_up()
        return known

    def learn_first(self, X, y, weights, **trace):
        """The same up to the next row after which the width of a default kernel is looked at: (rows learned, what was known)."""
        rows = min(len(X), self.beginning.left)
        X, y, weights = X[:rows], y[: rows * self.targets], None if weights is None else weights[:rows]
        self.beginning_after = self.beginning.followed_by(X, y, weights)
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

    def scalar(self):
        """The margin or width of the loss."""
        return self.hypothesis.scalar()

    def joined(self):
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
        if self.plan.scale:
            if start.sparse != self.sparse:
                raise ValueError("initial scales another kind of rows, sparse or dense, than this model.")
            self.engine.scaler.load(start.scaler)
        if self.target_scaler is not None:
            self.target_scaler = copy.copy(start.target_scaler)
            self.target_scaler.kind = self.plan.scale_target
        self.representation.take_features(self, start)
        indices = self._indices_of(start)
        intercept = start.hypothesis.intercept(self.ahead_of(start))
        if indices is not None:
            self.make_ready()
            intercept = LabelMap(self.function.width, indices, False).rows(intercept)
            if not self.labels.fixed:
                self.function.outputs.set_joined(start.joined())
        self.hypothesis.begin_from(intercept, *self.start_of(start, indices))
        self.begin_with_norms()

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
        known = start.labels.order[: start.joined()]
        indices = self.labels.indices_of(known)
        if None in indices:
            raise ValueError(f"initial has the label {known[indices.index(None)]!r}, which this model cannot have.")
        self.take_labels(self.labels)
        return np.array(indices, dtype=np.intp)

    def contributions(self, row, points, alpha, top, label):
        """What each term contributes to a score of one example, the largest first; see `Fitted.contributions`."""
        if top is not None and (not isinstance(top, numbers.Integral) or isinstance(top, bool) or top < 0):
            raise ValueError(f"top must be a number of terms, or None for all. Got {top!r} instead.")
        x = self.plan.checked_points(row, self.n_features, self.function.dtype, sparse=self.sparse)
        x = x if self.plan.takes_objects else self.scaled(x)
        output = self.output(self.engine.decision(x), label)
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
            "scaler": self.scaler.state() if self.plan.scale else None,
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
            raise ValueError("the number of targets makes no sense")
        plan.representation.check_sizes(learned["learned"], n_features, sparse)
        if n_targets > 1 and np.shape(learned["learned"]["offset"]) != (n_targets,):
            raise ValueError("the offsets do not have the number of targets")
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
            if defaults.width(plan.kernel) is None or plan.scale or plan.unit == 0:
                raise ValueError("the kernel's width is not to be chosen any more")
            state.beginning = Beginning.restored(learned["beginning"], n_features, dtype, sparse)
            state.beginning.check_targets(n_targets, plan.loss.task, len(labels.order) if plan.loss.task == "multiclass" else 2)
        if (learned["scaler"] is None) != (not plan.scale):
            raise ValueError("the scaler does not fit the parameters")
        if plan.scale:
            state.engine.scaler.restore(learned["scaler"])
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
