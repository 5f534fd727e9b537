"""Between parameters and engine: the plan (validated parameters in force) and the learned state."""
import copy

import numpy as np

from onlinekernels import validation
from onlinekernels._core.engine import Engine
from onlinekernels._core.kernels import Program
from onlinekernels.budgets import Unlimited, as_budget
from onlinekernels.kernels import as_kernel
from onlinekernels.labels import BinaryLabels
from onlinekernels.losses import as_loss
from onlinekernels.params import same_parameters
from onlinekernels.steps import as_step

__all__ = ["Plan", "State"]


class Plan:
    """Validated parameters in force, ready for an engine: copies, so that later changes do not reach them."""

    PARTS = ("loss", "kernel", "budget", "step", "regularization", "offset", "average")

    def __init__(self, **parts):
        self.__dict__.update(copy.deepcopy({name: parts[name] for name in self.PARTS}))
        self.takes_objects = self.kernel.ops() is None
        self.has_tables = bool(self.kernel.tables())
        # c if the expansion is kept as weights, k(x, z) = c <x, z>; otherwise None
        self.weight_scale = self.kernel.linear_scale() if type(self.budget) is Unlimited else None
        self._check()

    @classmethod
    def of(cls, learner, *, loss, kernel, step, regularization, average=False):
        """The plan of a learner, from parameters as users give them."""
        validation.check_integer(learner, "epochs", 1)
        return cls(
            loss=as_loss(loss, learner),
            kernel=as_kernel(kernel, learner),
            budget=as_budget(learner.budget, learner, learner._budget_of_int),
            step=as_step(step, learner),
            regularization=regularization,
            offset=validation.check_flag(learner, "offset"),
            average=average,
        )

    def parts(self):
        """What the plan was made from."""
        return {name: getattr(self, name) for name in self.PARTS}

    def _check(self):
        """Refuse combinations that make no sense."""
        largest = self.step.size(1)
        if largest * self.regularization > 1:
            raise ValueError(
                f"step * regularization must be at most 1, so that old coefficients shrink and do not change "
                f"sign. Got {largest:g} * {self.regularization:g} = {largest * self.regularization:g} instead."
            )
        if self.offset and self.loss.task == "novelty":
            raise ValueError("offset=True makes no sense with a novelty loss: the offset alone would fit everything.")
        if self.average and type(self.budget) is not Unlimited:
            raise ValueError(
                f"average=True cannot be combined with budget={self.budget!r}: the average of terms that were "
                "dropped cannot be kept. Use budget=None."
            )

    def checked_points(self, X, n_features=None, dtype=None, finite=True):
        """X as the engine takes it: an array of finite numbers, or a list of objects."""
        if self.takes_objects:
            return validation.check_objects(X)
        dtype = np.float64 if self.has_tables or self.weight_scale is not None else dtype
        return self.kernel.check_input(X, n_features, dtype, finite=finite)

    def program(self, n_features):
        """The compiled kernel; None for objects and for weights."""
        ops = None if n_features is None or self.weight_scale is not None else self.kernel.ops()
        return None if ops is None else Program(ops)

    def engine(self, n_features, dtype, origin=None):
        return Engine(
            program=self.program(n_features),
            kernel=self.kernel if n_features is None else None,
            weight_scale=self.weight_scale or 1.0,
            n_features=n_features,
            dtype=dtype,
            loss=self.loss.core() if self.loss.is_compiled() else (0, self.loss.core()[1], 0.0),
            custom_loss=None if self.loss.is_compiled() else self.loss,
            step=self.step.core(),
            regularization=self.regularization,
            budget=self.budget.core(),
            offset=self.offset,
            average=self.average,
            origin=origin,
        )


class State:
    """All that a learner has learned: the engine, the labels, and the plan they belong to."""

    def __init__(self, plan, n_features, dtype, origin=None, labels=None):
        self.plan = self.configured = plan
        self.n_features = n_features
        self.labels = labels
        self.stale = False  # a parameter was set since the plan was made
        self.engine = plan.engine(n_features, dtype, origin)

    @classmethod
    def first(cls, plan, X, initial):
        """The state before the first example."""
        if plan.takes_objects:
            state = cls(plan, None, np.float64)
        else:
            program = plan.program(X.shape[1])
            state = cls(plan, X.shape[1], X.dtype, program and program.choose_origin(X[0]))
        if initial is not None:
            state.begin_from(initial)
        return state

    @property
    def loss(self):
        return self.plan.loss

    @property
    def kernel(self):
        return self.plan.kernel

    def with_targets(self, X, y, classes):
        """(state, X, y as float64): a state with the labels that y shows, self if nothing is new."""
        n = len(X)
        if self.loss.task == "novelty":
            return self, X, np.zeros(n)
        if self.loss.task == "regression":
            return self, X, validation.check_targets(y, n)
        y = validation.check_column(y, n)
        labels = self.labels
        if labels is None:
            labels = BinaryLabels.first_seen(y, classes)
        elif classes is not None and labels.classes.tolist() != np.unique(classes).tolist():
            raise ValueError(
                f"classes={list(classes)!r} is not the same as on the first call: {labels.classes.tolist()!r}."
            )
        y, labels = labels.encode(y)
        if labels is self.labels:
            return self, X, y
        state = copy.copy(self)
        state.labels = labels
        return state, X, y

    def refreshed(self, learner):
        """The state under changed parameters: a new step and regularization, all else as it was."""
        plan = learner._plan()
        for name in set(Plan.PARTS) - {"step", "regularization"}:
            if not same_parameters(getattr(plan, name), getattr(self.plan, name)):
                raise ValueError(
                    f"The {name!r} parameter changed after fitting, from {getattr(self.plan, name)!r} to "
                    f"{getattr(plan, name)!r}; call fit to start anew."
                )
        state = copy.copy(self)
        state.plan, state.stale = plan, False
        return state

    def begin_from(self, other):
        """Start from another model's function."""
        if getattr(other, "_state", None) is None:
            raise ValueError(f"initial must be a fitted model. Got {other!r} instead.")
        start = other._state
        for name, mine, others in (
            ("the kernel", self.kernel, start.kernel),
            ("the number of features", self.n_features, start.n_features),
        ):
            if not same_parameters(mine, others):
                raise ValueError(f"initial must have {name} of this model, {mine!r}. Got {others!r} instead.")
        if self.loss.task != start.loss.task:
            raise ValueError(f"initial is for {start.loss.task}, and this model for {self.loss.task}.")
        if other.intercept_[0] != 0 and not self.plan.offset:
            raise ValueError("initial has an offset; this model needs offset=True to start from it.")
        self.labels = start.labels
        offset = float(other.intercept_[0])
        if self.engine.pool is None:
            self.engine.begin_from(None, other.coef_[0] / self.plan.weight_scale, offset)
        elif start.engine.pool is None:  # a weight vector is one term at the point w
            self.engine.begin_from(other.coef_ / self.kernel.linear_scale(), np.ones(1), offset)
        else:
            self.engine.begin_from(other.support_vectors_, other.dual_coef_[0], offset)

    def to_dict(self):
        """Everything that is learned, and the plan's parts, as plain values, nouns and arrays."""
        return {
            "plan": self.plan.parts(),
            "stale": self.stale,
            "n_features": self.n_features,
            "dtype": self.engine.dtype.str,
            "labels": None if self.labels is None else self.labels.state(),
            "engine": self.engine.state(),
        }

    @classmethod
    def from_dict(cls, learned):
        """The state that `to_dict` described; ValueError if its parts do not fit each other."""
        labels = None if learned["labels"] is None else BinaryLabels.restore(learned["labels"])
        plan = Plan(**learned["plan"])
        if (labels is None) != (plan.loss.task != "binary"):
            raise ValueError("the labels do not fit the loss")
        if (learned["n_features"] is None) != (plan.takes_objects):
            raise ValueError("the number of features does not fit the kernel")
        state = cls(plan, learned["n_features"], np.dtype(learned["dtype"]), learned["engine"].get("origin"), labels)
        state.engine.restore(learned["engine"])
        state.stale = bool(learned["stale"])
        if plan.has_tables and state.engine.pool.count:
            plan.kernel.check_input(state.engine.pool.points)
        return state
