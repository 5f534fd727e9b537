"""Between parameters and engine: the plan (validated parameters in force) and the learned state."""
import copy

import numpy as np

from onlinekernels import validation
from onlinekernels._core.engine import RULE_CODES, Engine
from onlinekernels._core.expansion import FORMS, Expansion
from onlinekernels._core.kernels import Program
from onlinekernels._core.outputs import Outputs
from onlinekernels._core.ring import check_array
from onlinekernels.budgets import Budget, Unlimited, as_budget
from onlinekernels.kernels import Kernel, as_kernel
from onlinekernels.labels import BinaryLabels, LabelStructure, ManyLabels, Taxonomy, label_column
from onlinekernels.losses import Loss, MulticlassLogistic, as_loss
from onlinekernels.params import same_parameters
from onlinekernels.steps import MetaDescent, Step, as_step

__all__ = ["Plan", "State"]

# Losses with a passive-aggressive step: a constraint to meet exactly.
AGGRESSIVE_LOSSES = {"Hinge", "Novelty", "Absolute", "Insensitive", "MulticlassHinge", "GraphHinge"}


class Plan:
    """Validated parameters in force, ready for an engine: copies, so that later changes do not reach them.

    Parameters
    ----------
    loss, kernel, budget, step, labels
        The nouns.
    rule : str
        "gradient", "implicit", "aggressive" or "aggressive squared".
    regularization, penalty : float
        lambda (c of V) and C of the rule.
    exact : bool
        Implicit steps over all labels, not the runner-up alone.
    exact_norms : bool
        SVMD's norms corrected whenever a term is dropped.
    offset, average : bool
    """

    PARTS = ("loss", "kernel", "budget", "step", "labels", "rule", "regularization", "penalty", "exact",
             "exact_norms", "offset", "average")
    MAY_CHANGE = {"step", "regularization", "penalty"}  # between calls, on a fitted model

    def __init__(self, **parts):
        self.__dict__.update(copy.deepcopy({name: parts[name] for name in self.PARTS}))
        self._check_parts()
        self.takes_objects = self.kernel.ops() is None
        self.has_tables = bool(self.kernel.tables())
        self.adapts_step = isinstance(self.step, MetaDescent)
        # c if the expansion is kept as weights, k(x, z) = c <x, z>; otherwise None
        self.weight_scale = self.kernel.linear_scale() if type(self.budget) is Unlimited else None
        self._check()

    @classmethod
    def of(cls, learner, *, loss, kernel, step, rule="gradient", regularization=0.0, penalty=1.0,
           exact=False, exact_norms=False, average=False):
        """The plan of a learner, from parameters as users give them."""
        validation.check_integer(learner, "epochs", 1)
        labels = learner.labels
        if labels is not None and not isinstance(labels, LabelStructure):
            raise validation.bad_parameter(learner, "labels", "None, a Taxonomy or a LabelGraph", labels)
        return cls(
            loss=as_loss(loss, learner),
            kernel=as_kernel(kernel, learner),
            budget=as_budget(learner.budget, learner, learner._budget_of_int),
            step=as_step(step, learner),
            labels=labels,
            rule=rule,
            regularization=regularization,
            penalty=penalty,
            exact=exact,
            exact_norms=exact_norms,
            offset=validation.check_flag(learner, "offset"),
            average=average,
        )

    def parts(self):
        """What the plan was made from."""
        return {name: getattr(self, name) for name in self.PARTS}

    def _check_parts(self):
        """Parts may come from a file: each must be what `of` would have made."""
        kinds = (("loss", Loss), ("kernel", Kernel), ("budget", Budget), ("step", Step))
        for name, kind in kinds:
            if not isinstance(getattr(self, name), kind):
                raise ValueError(f"{name} is not a {kind.__name__.lower()}")
            getattr(self, name).validate()
        if self.labels is not None:
            if not isinstance(self.labels, LabelStructure):
                raise ValueError("labels is not a label structure")
            self.labels.validate()
        for name in ("regularization", "penalty"):
            validation.check_not_negative(self, name)
        for name in ("exact", "exact_norms", "offset", "average"):
            validation.check_flag(self, name)
        if self.rule not in RULE_CODES:
            raise ValueError(f"there is no rule {self.rule!r}")

    # ---- Combinations that make no sense are refused here, each in one sentence ----

    def _check(self):
        self._check_rule()
        if self.offset and self.loss.task == "novelty":
            raise ValueError("offset=True makes no sense with a novelty loss: the offset alone would fit everything.")
        if self.average and type(self.budget) is not Unlimited:
            raise ValueError(
                f"average=True cannot be combined with budget={self.budget!r}: the average of terms that were "
                "dropped cannot be kept. Use budget=None."
            )
        if self.exact_norms and self.takes_objects:
            raise ValueError("exact_norms=True needs a built-in kernel: it evaluates kernel rows of dropped terms.")
        if self.labels is not None and self.loss.task != "multiclass":
            raise ValueError(f"labels={type(self.labels).__name__} needs a loss of many classes. Got {self.loss!r}.")

    def _check_rule(self):
        loss = self.loss
        largest = self.step.size(1)
        if self.rule == "gradient" and largest * self.regularization > 1:
            raise ValueError(
                f"step * regularization must be at most 1, so that old coefficients shrink and do not change "
                f"sign. Got {largest:g} * {self.regularization:g} = {largest * self.regularization:g} instead."
            )
        if self.rule != "gradient":
            if self.adapts_step:
                raise ValueError("step=MetaDescent adapts explicit gradient steps: use it with NORMA.")
            if not loss.is_compiled():
                raise ValueError(f"{type(loss).__name__} has no implicit step: a loss of your own works with NORMA only.")
        if self.rule.startswith("aggressive") and type(loss).__name__ not in AGGRESSIVE_LOSSES:
            raise ValueError(
                f"{loss!r} has no passive-aggressive step. Use one of {', '.join(sorted(AGGRESSIVE_LOSSES))}."
            )
        if self.adapts_step and not loss.is_compiled():
            if loss.task == "multiclass" or type(loss).curvature is Loss.curvature:
                raise ValueError(
                    f"{type(loss).__name__} cannot be used with MetaDescent: it needs one output and a method "
                    "curvature(score, y)."
                )
        over_all_labels = self.exact or isinstance(loss, MulticlassLogistic)
        if self.rule == "implicit" and over_all_labels and isinstance(self.labels, Taxonomy):
            raise ValueError(
                f"The exact implicit step of {loss!r} needs the delta kernel between labels; a Taxonomy has another."
            )
        if self.adapts_step and loss.adapts and loss.core()[1] <= 0:
            raise ValueError(
                f"MetaDescent adapts the logarithm of the {loss.scalar_name}, which must start above 0. "
                f"Got {loss.core()[1]:g} instead."
            )

    # ---- For the engine ----

    @property
    def form(self):
        """How the coefficients of a term look."""
        if self.loss.task != "multiclass":
            return "one"
        dense = isinstance(self.loss, MulticlassLogistic) or not self.loss.is_compiled()
        return "dense" if dense or self.rule == "implicit" and self.exact else "pair"

    def checked_points(self, X, n_features=None, dtype=None, finite=True):
        """X as the engine takes it: an array of finite numbers, or a list of objects."""
        if self.takes_objects:
            return validation.check_objects(X)
        dtype = np.float64 if self.has_tables or self.weight_scale is not None else dtype
        return self.kernel.check_input(X, n_features, dtype, finite=finite)

    def first_labels(self, y, classes):
        """Labels that the first call shows or names."""
        if self.loss.task == "binary":
            return BinaryLabels.first_seen(y, classes)
        return ManyLabels.first_seen(y, classes, self.labels)

    def program(self, n_features):
        """The compiled kernel; None for objects and for weights."""
        ops = None if n_features is None or self.weight_scale is not None else self.kernel.ops()
        return None if ops is None else Program(ops)

    def outputs(self, labels):
        """The label structure for the engine; None for one output."""
        if self.form == "one":
            return None
        return Outputs(len(labels.order)) if self.labels is None else self.labels.outputs(labels.order)

    def settings(self):
        """(step, rule) as the engine takes them: what may change between calls."""
        rule = RULE_CODES[self.rule], self.regularization, self.penalty, self.exact
        return self.step.core(), rule

    def engine(self, n_features, dtype, origin=None, labels=None):
        expansion = Expansion(
            program=self.program(n_features),
            kernel=self.kernel if n_features is None else None,
            weight_scale=self.weight_scale or 1.0,
            n_features=n_features,
            dtype=dtype,
            origin=origin,
            budget=self.budget.core(),
            channels=1 + self.adapts_step + self.average,
            outputs=self.outputs(labels),
            form=FORMS[self.form],
            evaluates_slots=self.exact_norms,
        )
        step, rule = self.settings()
        compiled = self.loss.is_compiled()
        return Engine(
            expansion=expansion,
            loss=self.loss.core() if compiled else (0, self.loss.core()[1], 0.0),
            custom_loss=None if compiled else self.loss,
            step=step,
            rule=rule,
            offset=self.offset,
            average=self.average,
            structured=self.loss.structured,
            exact_norms=self.exact_norms,
            growing=labels is not None and self.form != "one" and not labels.fixed,
        )


class State:
    """All that a learner has learned: the engine, the labels, and the plan they belong to."""

    def __init__(self, plan, n_features, dtype, origin=None, labels=None):
        self.plan = self.configured = plan
        self.n_features = n_features
        self.labels = labels
        self.stale = False  # a parameter was set since the plan was made
        self.engine = plan.engine(n_features, dtype, origin, labels)

    @classmethod
    def first(cls, plan, X, labels):
        """The state before the first example."""
        if plan.takes_objects:
            return cls(plan, None, np.float64, labels=labels)
        program = plan.program(X.shape[1])
        return cls(plan, X.shape[1], X.dtype, program and program.choose_origin(X[0]), labels)

    @property
    def loss(self):
        return self.plan.loss

    @property
    def kernel(self):
        return self.plan.kernel

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
        y, labels = targets(self.loss, labels, n, y)
        if labels is self.labels:
            return self, y
        state = copy.copy(self)
        state.labels = labels
        return state, y

    def refreshed(self, learner):
        """The state under changed parameters: step and regularization may change, all else must not."""
        plan = learner._plan()
        for name in Plan.PARTS:
            if name not in Plan.MAY_CHANGE and not same_parameters(getattr(plan, name), getattr(self.plan, name)):
                raise ValueError(
                    f"The {name!r} parameter changed after fitting, from {getattr(self.plan, name)!r} to "
                    f"{getattr(plan, name)!r}; call fit to start anew."
                )
        if plan.adapts_step != self.plan.adapts_step:
            raise ValueError("The 'step' parameter changed to or from MetaDescent; call fit to start anew.")
        state = copy.copy(self)
        state.plan, state.stale = plan, False
        return state

    def make_ready(self):
        """Bring the engine up to date with a new plan and new labels, just before learning."""
        if self.configured is not self.plan:
            self.engine.configure(*self.plan.settings())
            self.configured = self.plan
        if self.plan.form != "one" and len(self.labels.order) > self.engine.expansion.width:
            self.engine.grow(len(self.labels.order))

    def begin_from(self, other):
        """Start from another model's function."""
        if getattr(other, "_state", None) is None:
            raise ValueError(f"initial must be a fitted model. Got {other!r} instead.")
        start = other._state
        for name, mine, others in (
            ("the kernel", self.kernel, start.kernel),
            ("the number of features", self.n_features, start.n_features),
            ("the form of coefficients", self.plan.form, start.plan.form),
        ):
            if not same_parameters(mine, others):
                raise ValueError(f"initial must have {name} of this model, {mine!r}. Got {others!r} instead.")
        if self.loss.task != start.loss.task:
            raise ValueError(f"initial is for {start.loss.task}, and this model for {self.loss.task}.")
        intercept = other.intercept_
        if intercept.any() and not self.plan.offset:
            raise ValueError("initial has an offset; this model needs offset=True to start from it.")
        self.labels = start.labels
        if self.plan.form != "one":
            self.make_ready()
            self.engine.expansion.outputs.n = start.engine.expansion.outputs.n
        mine, others = self.engine.expansion, start.engine.expansion
        if mine.pool is None and others.pool is None:
            self.engine.begin_from(intercept, None, start.engine.coefficients())
        elif mine.pool is None:
            self.engine.begin_from(intercept, None, other.dual_coef_ @ other.support_vectors_.astype(float))
        elif others.pool is None and self.plan.form == "one":  # a weight vector is one term at the point w
            weights = start.engine.coefficients()
            self.engine.begin_from(intercept, weights, np.array([[1.0 if weights.any() else 0.0]]))
        elif others.pool is None:
            raise ValueError("initial keeps weights for many outputs, which cannot become terms of a budget.")
        else:
            slots = others.pool.live_slots()
            pairs = None if others.pool.pairs is None else others.pool.pairs[:, slots]
            alpha = other.dual_coef_ if pairs is None else other.dual_coef_[pairs[0], np.arange(len(slots))][None]
            points = other.support_vectors_
            if mine.kernel is None:
                points = self._start_points(points)
            self.engine.begin_from(intercept, points, alpha, pairs)

    def _start_points(self, points):
        """Points of another model in this one's precision."""
        if len(points) == 0:
            return points
        try:
            return self.plan.checked_points(points, self.n_features, self.engine.expansion.dtype)
        except ValueError as error:
            raise ValueError(f"initial does not fit this model: {error}") from error

    def to_dict(self):
        """Everything that is learned, and the plan's parts, as plain values, nouns and arrays."""
        return {
            "plan": self.plan.parts(),
            "stale": self.stale,
            "n_features": self.n_features,
            "dtype": self.engine.expansion.dtype.str,
            "labels": None if self.labels is None else self.labels.state(),
            "engine": self.engine.state(),
        }

    @classmethod
    def from_dict(cls, learned):
        """The state that `to_dict` described; ValueError if its parts do not fit each other."""
        plan = Plan(**learned["plan"])
        kind = {"binary": BinaryLabels, "multiclass": ManyLabels}.get(plan.loss.task)
        if (kind is None) != (learned["labels"] is None):
            raise ValueError("the labels do not fit the loss")
        labels = None if kind is None else kind.restore(learned["labels"])
        n_features, dtype, origin = learned["n_features"], learned["dtype"], learned["engine"].get("origin")
        if (n_features is None) != plan.takes_objects:
            raise ValueError("the number of features does not fit the kernel")
        if n_features is not None and (type(n_features) is not int or not 1 <= n_features < 2**31):
            raise ValueError("n_features is not a number of features")
        if dtype not in ("<f8", "<f4", np.dtype(float).str, np.dtype(np.float32).str):
            raise ValueError(f"points cannot be of type {dtype!r}")
        dtype = np.dtype(np.float32 if dtype[1:] == "f4" else np.float64)  # the object that numpy shares
        if origin is not None:
            check_array(origin, "origin", dtype, (n_features,))
        if plan.weight_scale is not None:
            check_array(learned["engine"]["weights"], "weights", np.float64, (-1, n_features))
        state = cls(plan, n_features, dtype, origin, labels)
        state.engine.restore(learned["engine"])
        state.stale = bool(learned["stale"])
        if plan.has_tables and state.engine.expansion.pool.count:
            plan.kernel.check_input(state.engine.expansion.pool.points)
        return state


def targets(loss, labels, n, y):
    """(y as the engine takes it, labels to go on with)."""
    if loss.task == "novelty":
        return np.zeros(n), labels
    if loss.task == "regression":
        return validation.check_targets(y, n), labels
    return labels.encode(label_column(y, n))
