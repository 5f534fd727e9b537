"""The plan: validated parameters, and the rule that they choose, ready for an engine."""
import copy
import math
from typing import Any

import numpy as np

from onlinekernels._core.engine import Engine, Hypothesis
from onlinekernels._core.functions import Outputs
from onlinekernels._core.rules import AllLabels, LabelPair, OneOutput, Targets
from onlinekernels._core.targets import TargetScaler
from onlinekernels._core.transforms import Scaler
from onlinekernels.base import defaults, validation
from onlinekernels.base.labelsets import BinaryLabels, ManyLabels
from onlinekernels.base.labelvalues import distinct_labels
from onlinekernels.base.params import Parameterized, same_parameters
from onlinekernels.base.representations import representation_of
from onlinekernels.budgets import as_budget, Budget
from onlinekernels.kernels import as_kernel, Gaussian, Kernel
from onlinekernels.labels import LabelStructure
from onlinekernels.losses import as_loss, Hinge, Loss, Novelty
from onlinekernels.preprocessing.scaling import as_memory, as_target_scaling, in_words
from onlinekernels.steps import as_step, Fixed, MetaDescent, Step


class Rule(Parameterized):
    """What an example does to f. Each family of `onlinekernels.algorithms` has one, which its estimators fill in.

    A subclass is a dataclass, whose parameters `_values` checks, and has

    `core_class`
        the rule of the core, made from `settings`;
    `settings`
        its parameters, as that takes them;
    `check`
        what it cannot do, a sentence each.

    The other attributes say what is different about it.
    """

    core_class = None
    forms = frozenset({"one"})  # of coefficients: "one" output, a "pair" of labels, "dense" over all, "targets"
    losses: tuple[type, ...] | None = None  # classes of losses that it is for; None for all that are compiled
    solves_losses = False  # whether it finds the steps of a loss of one's own
    step_name: str | None = None  # what its steps are called
    may_change: frozenset[str] = frozenset()  # parameters that may change between calls

    step: Any = Fixed(1.0)  # of rules that have none to choose
    regularization: Any = 0.0
    norm_bound = 0.0  # |f| stays within it; 0 for no bound
    exact_norms = False  # whether |f|^2, and <f, v>, are corrected whenever a term is dropped
    over_all_labels = False  # whether hinges of many classes move them all, not the runner-up alone
    knows_weights = True  # otherwise an example of weight 0 is left out altogether
    keeps_examples = False  # whether f must be terms, even where weights or trees would do
    is_posterior = False  # whether it needs to know how sure f is; it then has a budget of its own
    moves_terms = False  # whether it moves the coefficients of other terms than the new one
    takes_gradient_steps = False  # whether the new term is all that it adds, down the gradient of the loss
    takes_outliers = False  # whether targets far from all others may reach it as they are
    has_own_offset = False  # whether it finds an offset by itself
    votes = False  # whether all hypotheses since the first predict
    refuses_start: str | None = None  # why f cannot start from another model's
    advice: str | None = None  # what may help if learning diverges
    largest_step = math.inf  # what a step may be

    @property
    def adapts_step(self):
        """Whether the step follows the gradients."""
        return isinstance(self.step, MetaDescent)

    @property
    def evaluates_slots(self):
        """Whether it wants scores of terms."""
        return self.exact_norms

    @property
    def is_open(self):
        """Whether some parameters are left to the call; see `resolved`."""
        return False

    def resolved(self, loss, data, kernel):
        """The rule with all parameters chosen, for a `defaults.Data`."""
        return self

    # ---- Checks ----

    @classmethod
    def of(cls, estimator):
        """The rule with the parameters of the same names that an estimator has, checked."""
        return cls(**{name: check(estimator, name) for name, check in cls._values.items() if hasattr(estimator, name)})

    def validate(self):
        """Raise ValueError for a parameter out of range: it may come from a file."""
        self._check_values()

    def check(self, plan):
        """Raise ValueError for what cannot be combined with the other parts of a plan."""
        loss = plan.loss
        self.check_loss(loss)
        if plan.form not in self.forms:
            raise ValueError(f"{loss!r} moves all labels at once, and {type(self).__name__} steps do not.")
        if not self.adapts_step:
            return
        if self.step.offset_step is not None and plan.offset is False:  # None is not yet decided
            raise ValueError("offset_step of MetaDescent is for a model with offset=True, and this one has no offset.")
        if self.step.margin_step is not None and not (loss.adapts and loss.margin_step is None):
            has = f"margin_step={loss.margin_step!r} of its own" if loss.adapts else "nothing that adapts"
            raise ValueError(f"margin_step of MetaDescent is for a nu-loss with margin_step=None. Got {loss!r}, which "
                             f"has {has}.")
        if loss.adapts and loss.core()[1] <= 0:
            raise ValueError(f"MetaDescent adapts the logarithm of the {loss.scalar_name}, which must start above 0. "
                             f"Got {loss.core()[1]:g} instead.")

    def check_loss(self, loss):
        """Raise ValueError for a loss that it has no step for."""
        if not loss.is_compiled() and not self.solves_losses:
            raise ValueError(f"{type(loss).__name__} has no {self.step_name or 'such'} step: a loss of your own works "
                             "with NORMA, SVMD, ILK, SILK, and PassiveAggressive's PA-I and PA-II.")
        if not loss.is_compiled() and loss.task == "multiclass":
            raise ValueError(f"{type(loss).__name__} has no {self.step_name} step over all labels; it works with "
                             "NORMA.")
        if loss.is_compiled() and self.losses is not None and type(loss) not in self.losses:
            names = ", ".join(sorted(kind.__name__ for kind in self.losses))
            raise ValueError(f"{loss!r} has no {self.step_name} step. Use one of {names}.")

    # ---- For the core ----

    def settings(self):
        """What may change between calls, and what else the rule of the core takes."""
        return {"step": self.step.core(self.largest_step)}

    def core(self, function):
        """The rule of the core, for a function that it will move."""
        return self.core_class(**self.settings())

    def form(self, kind, function, loss, targets):
        """What the rule looks at: a form of the core, which has the rule."""
        rule, outputs, custom_loss = self.core(function), function.outputs, None if loss.is_compiled() else loss
        if targets > 1:
            return Targets(rule, outputs, custom_loss, targets)
        if kind == "one":
            return OneOutput(rule, outputs, custom_loss)
        return (LabelPair if kind == "pair" else AllLabels)(rule, outputs, custom_loss, loss.structured)


def check_step(owner, name):
    """A step with parameters in range; of an estimator also a number, which means `Fixed`."""
    step = getattr(owner, name)
    if not isinstance(owner, Rule):
        return as_step(step, owner)
    if not isinstance(step, Step):
        raise ValueError(f"{name} is not a step")
    step.validate()
    return step


class Plan:
    """Validated current parameters, ready for an engine: copies, so that later changes do not reach them.

    `scale` and `scale_target` are memories of the running scalers of features and of targets, 0 for none; `undecided`
    is {part: how to choose it} for what the user left to the call, see `resolved`.
    """

    PARTS = ("loss", "kernel", "budget", "labels", "rule", "offset", "average", "scale", "scale_target")
    unit = 1.0  # the size of features that a chosen width is for

    def __init__(self, *, loss, kernel, budget, labels, rule, offset, average, scale, scale_target, undecided=()):
        copies = copy.deepcopy((loss, kernel, budget, labels, rule))
        self.loss, self.kernel, self.budget, self.labels, self.rule = copies
        self.offset, self.average, self.scale, self.scale_target = offset, average, scale, scale_target
        self.undecided = dict(undecided)
        self._check_parts()
        self._combine()

    def _combine(self):
        """What follows from the parts; if all of them are chosen, ValueError for parts that cannot be combined."""
        self.representation = representation_of(self)  # how f is kept
        self.takes_objects = self.representation.takes_objects
        self.restricts = self.kernel.restricts()
        self.takes_indices = self.kernel.takes_indices()
        # Whether a single row must be out of reach of the user's code and threads before it is checked
        self.copies_one = not self.takes_objects and (self.takes_indices or not self.loss.is_compiled())
        if not self.undecided:
            self._check()

    @classmethod
    def of(cls, estimator, rule, *, loss=None, kernel=None):
        """The plan of an estimator: its parameters, and a rule; perhaps a loss or kernel that is not its own."""
        validation.check_integer(estimator, "epochs", 1)
        labels = estimator.labels
        if labels is not None and not isinstance(labels, LabelStructure):
            raise validation.bad_parameter(estimator, "labels", "None, a Taxonomy, a LabelGraph or Labels", labels)
        undecided, budget = {}, None if rule.is_posterior else estimator.budget
        kernel = estimator.kernel if kernel is None else kernel
        if kernel is None:
            undecided["kernel"], kernel = estimator._default_kernel, Gaussian()
        if rule.is_open:
            undecided["rule"] = rule.resolved
        if isinstance(budget, str) and budget == defaults.AUTO:
            undecided["budget"], budget = defaults.budget(estimator._budget_of_int), None
        if estimator.offset is None:
            undecided["offset"] = defaults.offset
        return cls(loss=as_loss(estimator.loss if loss is None else loss, estimator),
                   kernel=as_kernel(kernel, estimator),
                   budget=as_budget(budget, estimator, estimator._budget_of_int),
                   labels=None if labels is None else labels.resolved(),
                   rule=rule,
                   offset=validation.check_flag(estimator, "offset", or_none=True),
                   average=validation.check_flag(estimator, "average"),
                   scale=as_memory(estimator.scale, estimator),
                   scale_target=as_target_scaling(estimator.scale_target, estimator),
                   undecided=undecided)

    @property
    def follows_distances(self):
        """Whether the width of the kernel is to be chosen by distances of rows; those behind a scaler are known."""
        return "kernel" in self.undecided and not self.scale

    def resolved(self, data):
        """The plan with all parts chosen, for a `defaults.Data`."""
        if not self.undecided:
            return self
        choosers = dict(self.undecided)
        kernel = choosers.pop("kernel")(self.loss, data) if "kernel" in choosers else self.kernel
        chosen = {name: choose(self.loss, data, kernel) for name, choose in choosers.items()}
        return self._with(data.unit, kernel=kernel, **chosen)

    def in_unit(self, unit):
        """The plan with the chosen width for features of another size."""
        return self._with(unit, kernel=defaults.resized(self.kernel, unit / self.unit))

    def _with(self, unit, **chosen):
        """The same plan with parts that have been chosen, for features of this size."""
        plan = copy.copy(self)
        plan.__dict__.update(chosen, unit=unit, undecided={})
        plan._combine()
        return plan

    def parts(self):
        """What the plan was made from."""
        return {name: getattr(self, name) for name in self.PARTS}

    def check_change(self, after):
        """Raise ValueError unless a model of this plan can go on with another: parameters of its rule may change."""
        mine, its = ({**plan.parts(), **plan.rule.get_params(deep=False), "rule": type(plan.rule)}
                     for plan in (self, after))
        for name, before in mine.items():
            now = its.get(name)
            if name not in self.rule.may_change and not same_parameters(before, now):
                before, now = (in_words(part) if name == "scale" else repr(part) for part in (before, now))
                raise ValueError(f"The {name!r} parameter changed after fitting, from {before} to {now}; call fit to "
                                 "start anew.")
        if self.rule.adapts_step != after.rule.adapts_step:
            raise ValueError("The 'step' parameter changed to or from MetaDescent; call fit to start anew.")

    def _check_parts(self):
        """Parts may come from a file: each must be what `of` would have made."""
        kinds = (("loss", Loss), ("kernel", Kernel), ("budget", Budget), ("rule", Rule), ("labels", LabelStructure))
        for name, kind in kinds if self.labels is not None else kinds[:-1]:
            if not isinstance(getattr(self, name), kind):
                raise ValueError(f"{name} is not a {kind.__name__}")
            getattr(self, name).validate()
        validation.check_not_negative(self, "scale")
        if self.scale_target != "log":
            validation.check_not_negative(self, "scale_target")
        for name in ("offset", "average"):
            validation.check_flag(self, name)

    # ---- Combinations that do not work are refused here, each in one sentence ----

    def _check(self):
        self.rule.check(self)
        self.representation.check(self)
        if self.offset and self.loss.task == "novelty":
            raise ValueError("offset=True cannot be used with a novelty loss: the offset alone would fit everything.")
        self.budget.check_use(self)
        if self.scale and (self.takes_objects or self.takes_indices):
            raise ValueError(f"scale={in_words(self.scale)} needs a kernel on rows of numbers. Got {self.kernel!r}.")
        if self.scale_target and self.loss.task != "regression":
            raise ValueError(f"scale_target={self.scale_target!r} needs a loss of numbers. Got {self.loss!r}.")
        if self.labels is not None and self.loss.task != "multiclass":
            raise ValueError(f"labels={type(self.labels).__name__} needs a loss of many classes. Got {self.loss!r}.")

    def check_start(self, start):
        """Raise ValueError unless a model of this plan can start from another state's function."""
        if self.rule.refuses_start is not None:
            raise ValueError(self.rule.refuses_start)
        if self.loss.task != start.loss.task:
            raise ValueError(f"initial is for {start.loss.task}, and this model for {self.loss.task}.")
        if not same_parameters(self.kernel, start.kernel):
            raise ValueError(f"initial must have the kernel of this model, {self.kernel!r}. Got {start.kernel!r} "
                             "instead.")
        if not same_parameters(self.label_kernel, start.plan.label_kernel):
            raise ValueError("initial must have the label kernel of this model: the same Taxonomy or the same kernel "
                             "of Labels, or none in both.")
        if start.hypothesis.intercept().any() and not self.offset:
            raise ValueError("initial has an offset; this model needs offset=True to start from it.")
        if bool(self.scale) != bool(start.plan.scale):
            raise ValueError("initial and this model must both scale their features, or neither.")
        mine, its = self.scale_target, start.plan.scale_target
        if bool(mine) != bool(its) or (mine == "log") != (its == "log"):
            raise ValueError("initial and this model must both scale their targets, in the same way, or neither.")

    # ---- For the engine ----

    @property
    def form(self):
        """How the coefficients of a term look."""
        if self.loss.task != "multiclass":
            return "one"
        dense = self.loss.over_all_labels or not self.loss.is_compiled()
        return "dense" if dense or self.rule.over_all_labels else "pair"

    @property
    def label_kernel(self):
        """The structure of labels as far as it is their kernel; None for the identity."""
        return None if self.labels is None else self.labels.kernel_part()

    @property
    def has_trial(self):
        """Whether scores tell, while learning, if the model is better than a constant.

        Those of a detector do not, nor where another function predicts than the one that learns: an average, or votes.
        """
        if self.average or self.rule.votes or self.loss.task == "novelty":
            return False
        return self.loss.task != "regression" or self.loss.is_compiled()

    def validate_points(self, X, n_features=None, dtype=None, finite=True, owner="model", sparse=None):
        """X as the engine takes it: an array of finite numbers, sparse rows, or a list of objects.

        `sparse` says which kind of rows a model has learned; None before the first.
        """
        if self.takes_objects:
            return validation.check_objects(X)
        if sparse or sparse is None and validation.is_sparse(X):
            if self.budget.moves_points or not self.kernel.on_inner_products():
                what = (f"budget={self.budget!r} needs dense rows" if self.budget.moves_points else
                        f"{self.kernel!r} needs dense rows: it is not a function of inner products")
                raise TypeError(f"X is sparse, and {what}. Convert it with X.toarray().")
            return validation.check_sparse(X, n_features=n_features, owner=owner)
        if self.representation.double or self.takes_indices:
            dtype = np.float64
        if self.restricts and not self.scale:  # behind a scaler the kernel sees other numbers
            return self.kernel.check_input(X, n_features, dtype, finite=finite, owner=owner)
        return validation.check_points(X, n_features=n_features, dtype=dtype, finite=finite, owner=owner)

    def first_labels(self, y, classes, start=None):
        """Labels that the first call shows or names; first those of a state that the model starts from."""
        if start is not None and self.labels is None and (self.loss.task == "binary" or classes is None):
            return start.labels
        if self.loss.task == "binary":
            return BinaryLabels.first_seen(y, classes)
        labels = ManyLabels.first_seen(y, classes, self.labels)
        if start is None or not isinstance(start.labels, ManyLabels):
            return labels
        known = start.labels.order[: start.n_classes_seen()]
        strange = [label for label in known if label not in labels.order]
        if strange:
            raise ValueError(f"initial has the label {strange[0]!r}, which this model cannot have.")
        return ManyLabels(distinct_labels(labels.order, known), True)

    def outputs(self, labels, targets=1):
        """The labels, or targets, for the engine."""
        if targets > 1 or self.form == "one":
            return Outputs(targets)
        if self.labels is not None:
            return self.labels.outputs(labels.order)
        return Outputs(len(labels.order), self.loss.starts_as_wrong and self.loss.is_compiled() and not labels.fixed)

    def form_for(self, targets):
        """`form`, if y has this many numbers for each example."""
        if targets == 1:
            return self.form
        bounded = self.rule.norm_bound > 0
        if self.loss.adapts or bounded or "targets" not in self.rule.forms:
            raise ValueError(f"y has {targets} targets, and {self.loss!r}{' with a radius' if bounded else ''} is for "
                             "one. Use a model for each.")
        return "dense"

    def engine(self, n_features, dtype, origin=None, labels=None, sparse=False, targets=1):
        """The engine of a model that has learned nothing."""
        outputs, rule = self.outputs(labels, targets), self.rule
        function = self.representation.function(n_features, dtype, origin, outputs, sparse, self.form_for(targets))
        hypothesis = Hypothesis(
            function=function,
            form=rule.form(self.form, function, self.loss, targets),
            loss=self.loss.core() if self.loss.is_compiled() else (0, self.loss.core()[1], 0.0, 0.0),
            offset=self.offset,
            average=self.average,
            radius=rule.norm_bound,
            exact_norms=rule.exact_norms,
            regression=self.loss.task == "regression",
            against_constant=self.has_trial,
            holds_margin=type(self.loss) in (Hinge, Novelty),
        )
        return Engine(hypothesis,
                      targets=targets,
                      growing=labels is not None and self.form != "one" and not labels.fixed,
                      leaves_out=not rule.knows_weights,
                      scaler=Scaler(n_features, self.scale, sparse, hypothesis.function.dtype) if self.scale else None,
                      target_scaler=TargetScaler(targets, self.scale_target, rule.is_posterior, rule.takes_outliers)
                      if self.scale_target else None)
