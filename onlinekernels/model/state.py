"""What a learner has learned, while it learns and predicts: the engine, the labels, the scaler, and the plan they belong to."""
import copy
import numbers

import numpy as np

from onlinekernels import validation
from onlinekernels._core.points import Rows
from onlinekernels.model.contributions import checked_top, largest
from onlinekernels.model.defaults import Data
from onlinekernels.model.labels import ManyLabels
from onlinekernels.model.learned import Learned
from onlinekernels.model.starting import Starting
from onlinekernels.model.storing import Stored
from onlinekernels.nouns.scaling import advanced

__all__ = ["State"]

LARGEST = 1e150  # number whose square is a number


class State(Starting, Stored, Learned):
    """All that a learner has learned: the engine, the labels, and the plan they belong to."""

    def __init__(self, plan, n_features, dtype, origin=None, labels=None, sparse=False, targets=1):
        super().__init__(n_features, labels, targets, plan.form_for(targets))
        self.plan = self.configured = plan
        self.sparse = sparse
        self.rows = None  # that `fit` was given, for defaults
        self.beginning = None  # the first rows of a stream, until the width of a default kernel is settled,
        self.beginning_after = None  # and what it will be when all rows that are under way are learned
        self.engine = plan.engine(n_features, dtype, origin, labels, sparse, targets)
        self.hypothesis = self.engine.hypothesis  # f with its offsets, the loss's scalar and the rule, as they are now
        self.function = self.hypothesis.function  # f as it is kept
        self.takes_one = targets == 1 and not sparse
        if plan.scale_target and plan.scale_target != "log":
            self.largest_target = LARGEST
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
        return not self.plan.restricts and self.engine.scaler.is_tame(values)

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
        """Let the engine run. Returns what the scaler of targets knew before each row, where scores are traced."""
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
            if self.beginning_after is not None:
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

    def contributions(self, row, points, alpha, top, label):
        """What each term contributes to a score of one example, the largest first; see `Fitted.contributions`."""
        top = checked_top(top)
        x = self.plan.checked_points(row, self.n_features, self.function.dtype, sparse=self.sparse)
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
