"""The plan: validated parameters in force, ready for an engine."""
import copy

import numpy as np

from onlinekernels import validation
from onlinekernels.model import defaults
from onlinekernels._core.functions.coefficients import Full, Paired
from onlinekernels._core.run.engine import Engine
from onlinekernels._core.functions.forest import BudgetedTrees, Forest, Trees
from onlinekernels._core.run.hypothesis import Hypothesis
from onlinekernels._core.points.kernelrows import CompiledRows, ObjectRows
from onlinekernels._core.points.kernels import Program
from onlinekernels._core.functions.knownpoints import PointsPosterior
from onlinekernels._core.functions.outputs import Outputs
from onlinekernels._core.points.points import DensePoints, Objects
from onlinekernels._core.functions.posterior import WeightsPosterior
from onlinekernels._core.run.scaling import Scaler
from onlinekernels._core.points.sparse import SparsePoints
from onlinekernels._core.functions.terms import KernelTerms
from onlinekernels._core.functions.weights import MappedWeights, SparseWeights, Weights
from onlinekernels.nouns.budgets import Budget, Shrinking, Unlimited, as_budget
from onlinekernels.nouns.kernels import Gaussian, Kernel, as_kernel
from onlinekernels.model.labels import BinaryLabels, ManyLabels
from onlinekernels.model.rules import Rule
from onlinekernels.nouns.losses import Hinge, Loss, as_loss
from onlinekernels.nouns.maps import feature_map
from onlinekernels.nouns.params import same_parameters
from onlinekernels.nouns.scaling import as_memory, as_target_scaling, in_words
from onlinekernels.nouns.structures import LabelStructure, Taxonomy

__all__ = ["Plan"]

MOST_WEIGHTS = 8192  # of second order: their covariance has the square of that


class Plan:
    """Validated parameters in force, ready for an engine: copies, so that later changes do not reach them.

    Parameters
    ----------
    loss, kernel, budget, labels
        The nouns.
    rule : Rule
        What an example does to f, with parameters of its own.
    offset, average : bool
    scale, scale_target : float
        Memory of the running scalers of features and of targets; 0 for none.
    """

    PARTS = ("loss", "kernel", "budget", "labels", "rule", "offset", "average", "scale", "scale_target")
    pending = {}  # {part: how to choose it}, for the parts that the user left to the call; see `settled`
    unit = 1.0  # the size of features that a chosen width is for

    def __init__(self, *, loss, kernel, budget, labels, rule, offset, average, scale, scale_target):
        self.loss, self.kernel, self.budget, self.labels, self.rule = copy.deepcopy((loss, kernel, budget, labels, rule))
        self.offset, self.average, self.scale, self.scale_target = offset, average, scale, scale_target
        self._check_parts()
        # What the trees of an additive kernel are; otherwise None
        self.trees = None
        if not (self.rule.keeps_examples or self.rule.is_posterior or self.budget.looks_at_kernel):
            self.trees = self.kernel.additive()
        if self.kernel.ops() is None and type(self.budget) is not Unlimited:
            self.trees = None  # beside trees, terms are for compiled kernels only
        self.takes_objects = self.kernel.takes_objects() and self.trees is None
        self.restricts = self.kernel.restricts()
        # Whether a single row must be out of reach of the user's code and threads before it is checked
        self.copies_one = not self.takes_objects and (self.kernel.takes_indices() or not self.loss.is_compiled())
        # Parts of a feature map, over whose features f is weights, whatever the budget; otherwise None
        self.features = self._checked_features() if self.kernel.has_map() else None
        # c if the expansion is kept as weights, k(x, z) = c <x, z>, or of features; otherwise None
        self.weight_scale = None if self.features is None else 1.0
        if self.features is None and type(self.budget) is Unlimited and not self.rule.keeps_examples:
            self.weight_scale = self.kernel.linear_scale()
        self._check()

    @classmethod
    def of(cls, learner, rule, *, loss=None, kernel=None):
        """The plan of a learner: its parameters, as users give them, and a rule; a loss or kernel that is not its own."""
        validation.check_integer(learner, "epochs", 1)
        labels = learner.labels
        if labels is not None and not isinstance(labels, LabelStructure):
            raise validation.bad_parameter(learner, "labels", "None, a Taxonomy, a LabelGraph or Labels", labels)
        pending, budget = {}, None if rule.is_posterior else learner.budget
        kernel = learner.kernel if kernel is None else kernel
        if kernel is None:
            pending["kernel"], kernel = learner._default_kernel, Gaussian()
        if rule.is_open:
            pending["rule"] = rule.settled
        if isinstance(budget, str) and budget == defaults.AUTO:
            pending["budget"], budget = defaults.budget(learner._budget_of_int), None
        if learner.offset is None:
            pending["offset"] = defaults.offset
        plan = cls(
            loss=as_loss(learner.loss if loss is None else loss, learner),
            kernel=as_kernel(kernel, learner),
            budget=as_budget(budget, learner, learner._budget_of_int),
            labels=None if labels is None else labels.settled(),
            rule=rule,
            offset=validation.check_flag(learner, "offset", or_none=True),
            average=validation.check_flag(learner, "average"),
            scale=as_memory(learner.scale, learner),
            scale_target=as_target_scaling(learner.scale_target, learner),
        )
        plan.pending = pending
        return plan

    @property
    def follows_distances(self):
        """Whether the width of the kernel is to be chosen by distances of rows; those behind a scaler are known."""
        return "kernel" in self.pending and not self.scale

    def settled(self, data):
        """The plan with all parts chosen, for a `defaults.Data`."""
        if not self.pending:
            return self
        parts, choosers = self.parts(), dict(self.pending)
        if "kernel" in choosers:
            parts["kernel"] = choosers.pop("kernel")(self.loss, data)
        parts.update({name: choose(self.loss, data, parts["kernel"]) for name, choose in choosers.items()})
        plan = Plan(**parts)
        plan.unit = data.unit
        return plan

    def in_unit(self, unit):
        """The plan with the chosen width for features of another size."""
        plan = Plan(**{**self.parts(), "kernel": Gaussian(self.kernel.width / self.unit * unit)})
        plan.unit = unit
        return plan

    def parts(self):
        """What the plan was made from."""
        return {name: getattr(self, name) for name in self.PARTS}

    def check_change(self, after):
        """Raise ValueError unless a model of this plan can go on with another one: some parameters of its rule may change."""
        for name, before, other in self._differences(after):
            before, other = (in_words(part) if name == "scale" else repr(part) for part in (before, other))
            raise ValueError(f"The {name!r} parameter changed after fitting, from {before} to {other}; call fit to start anew.")
        for what, before, other in (("MetaDescent", self.rule.adapts_step, after.rule.adapts_step),
                                    ("per_feature=True", self.rule.per_feature, after.rule.per_feature)):
            if before != other:
                raise ValueError(f"The 'step' parameter changed to or from {what}; call fit to start anew.")

    def _differences(self, other):
        """(parameter, value here, value there) of what may not change between calls, and does."""
        for name in self.PARTS:
            mine, others = getattr(self, name), getattr(other, name)
            if name == "rule" and type(mine) is type(others):
                yield from mine.differences(others)
            elif not same_parameters(mine, others):
                yield name, mine, others

    def _check_parts(self):
        """Parts may come from a file: each must be what `of` would have made."""
        kinds = (("loss", Loss), ("kernel", Kernel), ("budget", Budget), ("rule", Rule))
        for name, kind in kinds:
            if not isinstance(getattr(self, name), kind):
                raise ValueError(f"{name} is not a {kind.__name__.lower()}")
            getattr(self, name).validate()
        if self.labels is not None:
            if not isinstance(self.labels, LabelStructure):
                raise ValueError("labels is not a label structure")
            self.labels.validate()
        validation.check_not_negative(self, "scale")
        if self.scale_target != "log":
            validation.check_not_negative(self, "scale_target")
        for name in ("offset", "average"):
            validation.check_flag(self, name)

    # ---- Combinations that make no sense are refused here, each in one sentence ----

    def _check(self):
        self.rule.check(self)
        if self.rule.per_feature and self.weight_scale is None:
            raise ValueError(
                f"per_feature=True is a step for each weight, and {self.kernel!r} with budget={self.budget!r} keeps no "
                "weights. Use a feature map, or Linear() with budget=None."
            )
        if self.rule.per_feature and isinstance(self.labels, Taxonomy):
            raise ValueError("per_feature=True needs the delta kernel between labels; a Taxonomy has another.")
        if self.offset and self.loss.task == "novelty":
            raise ValueError("offset=True makes no sense with a novelty loss: the offset alone would fit everything.")
        if self.average and type(self.budget) is not Unlimited and self.features is None:
            raise ValueError(
                f"average=True cannot be combined with budget={self.budget!r}: the average of terms that were "
                "dropped cannot be kept. Use budget=None."
            )
        self.budget.check_use(self)
        if self.rule.exact_norms and self.takes_objects and type(self.budget) is not Unlimited:
            raise ValueError(
                "A budget needs a built-in kernel here: to keep |f| exact, kernel rows of dropped terms are evaluated."
            )
        if self.scale and (self.takes_objects or self.kernel.takes_indices()):
            raise ValueError(f"scale={in_words(self.scale)} needs a kernel on rows of numbers. Got {self.kernel!r}.")
        if self.scale_target and self.loss.task != "regression":
            raise ValueError(f"scale_target={self.scale_target!r} needs a loss of numbers. Got {self.loss!r}.")
        if self.labels is not None and self.loss.task != "multiclass":
            raise ValueError(f"labels={type(self.labels).__name__} needs a loss of many classes. Got {self.loss!r}.")

    def _checked_features(self):
        if self.rule.keeps_examples or isinstance(self.budget, Shrinking):
            raise ValueError(f"This algorithm keeps its examples, and {self.kernel!r} is a feature map, which keeps weights.")
        features = self.kernel.features()
        if features is None:
            raise ValueError(
                f"{self.kernel!r} is no feature map as a whole: add only Linear, Constant or other maps to one, and "
                "multiply it by positive numbers only."
            )
        return features

    def check_start(self, start):
        """Raise ValueError unless a model of this plan can start from another state's function."""
        if self.rule.refuses_start is not None:
            raise ValueError(self.rule.refuses_start)
        if self.loss.task != start.loss.task:
            raise ValueError(f"initial is for {start.loss.task}, and this model for {self.loss.task}.")
        if not same_parameters(self.kernel, start.kernel):
            raise ValueError(f"initial must have the kernel of this model, {self.kernel!r}. Got {start.kernel!r} instead.")
        if not same_parameters(self.label_kernel, start.plan.label_kernel):
            raise ValueError(
                "initial must have the label kernel of this model: the same Taxonomy or the same kernel of Labels, or none in both."
            )
        if start.hypothesis.intercept().any() and not self.offset:
            raise ValueError("initial has an offset; this model needs offset=True to start from it.")
        if bool(self.scale) != bool(start.plan.scale):
            raise ValueError("initial and this model must both scale their features, or neither.")
        mine, its = self.scale_target, start.plan.scale_target
        if bool(mine) != bool(its) or (mine == "log") != (its == "log"):
            raise ValueError("initial and this model must both scale their targets, in the same way, or neither.")

    def is_perceptron(self):
        """Whether f gets y k(x, .) on a mistake, y f(x) <= 0, and nothing else happens; for two classes."""
        return type(self.loss) is Hinge and self.loss.margin == 0 and self.rule.is_plain

    @property
    def relates_labels(self):
        """Whether labels have a kernel of their own, not delta."""
        return isinstance(self.labels, Taxonomy)

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

    def checked_points(self, X, n_features=None, dtype=None, finite=True, owner="model", sparse=None):
        """X as the engine takes it: an array of finite numbers, sparse rows, or a list of objects.

        `sparse` says which kind of rows a model has learned; None before the first.
        """
        if self.takes_objects:
            return validation.check_objects(X)
        if sparse or sparse is None and validation.is_sparse(X):
            if self.budget.moves_points:
                raise TypeError(f"X is sparse, and budget={self.budget!r} needs dense rows. Convert it with X.toarray().")
            if not self.kernel.on_inner_products():
                raise TypeError(
                    f"X is sparse, and {self.kernel!r} needs dense rows: it is not a function of inner products. "
                    "Convert it with X.toarray()."
                )
            return validation.check_sparse(X, n_features=n_features, owner=owner)
        linear = self.weight_scale is not None and self.features is None
        if linear or self.trees is not None or self.kernel.takes_indices() or self.rule.is_posterior:
            dtype = np.float64  # a posterior is as good as the digits of its kernel
        if self.scale:  # the kernel sees other numbers
            return validation.check_points(X, n_features=n_features, dtype=dtype, finite=finite, owner=owner)
        return self.kernel.check_input(X, n_features, dtype, finite=finite, owner=owner)

    def first_labels(self, y, classes):
        """Labels that the first call shows or names."""
        if self.loss.task == "binary":
            return BinaryLabels.first_seen(y, classes)
        return ManyLabels.first_seen(y, classes, self.labels)

    def program(self, n_features):
        """The compiled kernel; None for objects and for weights."""
        ops = None
        if n_features is not None and self.weight_scale is None and self.trees is None:
            ops = self.kernel.ops()
        return None if ops is None else Program(ops)

    def outputs(self, labels, targets=1):
        """The labels, or targets, for the engine."""
        if targets > 1 or self.form == "one":
            return Outputs(targets)
        if self.labels is not None:
            return self.labels.outputs(labels.order)
        return Outputs(len(labels.order), self.loss.starts_as_wrong and self.loss.is_compiled() and not labels.fixed)

    def form_for(self, targets):
        """`form`, if y has so many numbers for each example."""
        if targets == 1:
            return self.form
        bounded = self.rule.norm_bound > 0
        if self.loss.adapts or bounded or "targets" not in self.rule.forms:
            raise ValueError(
                f"y has {targets} targets, and {self.loss!r}{' with a radius' if bounded else ''} is for one. "
                "Use a model for each."
            )
        return "dense"

    def _function(self, *examples):
        """f, before it has learned anything."""
        function = self._representation(*examples)
        if self.rule.per_feature:
            function.begin_steps(float(self.rule.step.rate))
        return function

    def _representation(self, n_features, dtype, origin, outputs, sparse, targets):
        channels = 1 + self.rule.adapts_step + self.average
        if self.rule.is_posterior:
            return self._posterior(n_features, dtype, origin, outputs, sparse)
        if self.features is not None:
            features = feature_map(self.features, n_features, sparse, dtype)
            return MappedWeights(map=features, channels=channels, outputs=outputs)
        if self.weight_scale is not None:
            kind = SparseWeights if sparse else Weights
            return kind(scale=self.weight_scale, n_features=n_features, channels=channels, outputs=outputs)
        if self.trees is not None:
            forest = Forest(n_features=n_features, channels=channels, width=max(1, outputs.n), **self.trees)
            if type(self.budget) is Unlimited:
                return Trees(forest=forest, outputs=outputs)
            return BudgetedTrees(
                forest=forest, terms=self._terms(DensePoints(n_features, np.float64), channels, outputs, targets), outputs=outputs
            )
        rows = self._rows(n_features, dtype, origin, sparse)
        return KernelTerms(
            rows=rows,
            terms=self._terms(rows.dictionary, channels, outputs, targets),
            outputs=outputs,
            evaluates_slots=self.rule.evaluates_slots,
        )

    def _posterior(self, n_features, dtype, origin, outputs, sparse):
        """What is known of f before the first example."""
        common = {"outputs": outputs, "memory": self.rule.memory, "classes": self.loss.task == "multiclass"}
        if self.weight_scale is None:
            return PointsPosterior(
                rows=self._rows(n_features, dtype, origin, sparse),
                budget=self.rule.budget,
                tolerance=self.rule.tolerance,
                **common,
            )
        parts = self.features or [{"map": "linear", "scale": self.weight_scale}]
        features = feature_map(parts, n_features, sparse, dtype if self.features else np.float64)
        if features.size > MOST_WEIGHTS:
            raise ValueError(
                f"KRLS with {self.kernel!r} keeps the covariance of all weights, and there are {features.size} features; at "
                f"most {MOST_WEIGHTS} will do. A sum such as Linear() + Gaussian(1.0) keeps points instead, as many as the budget says."
            )
        return WeightsPosterior(map=features, scale=self.weight_scale, **common)

    def _rows(self, n_features, dtype, origin, sparse):
        """The kernel over a dictionary without points."""
        if n_features is None:
            return ObjectRows(Objects(), self.kernel)
        points = SparsePoints(n_features) if sparse else DensePoints(n_features, dtype, origin)
        program = self.program(n_features)
        program.start(n_features, points.dtype, origin)
        return CompiledRows(points, program)

    def _terms(self, dictionary, channels, outputs, targets):
        """Coefficients on a dictionary, under the budget."""
        if self.form_for(targets) == "pair" and not self.budget.shares_out:
            return Paired(dictionary, self.budget.core(), channels)
        return Full(dictionary, self.budget.core(), channels, max(1, outputs.n))

    def engine(self, n_features, dtype, origin=None, labels=None, sparse=False, targets=1):
        """The engine of a model that has learned nothing."""
        self.form_for(targets)
        outputs = self.outputs(labels, targets)
        function = self._function(n_features, dtype, origin, outputs, sparse, targets)
        hypothesis = Hypothesis(
            function=function,
            form=self.rule.form(self.form, function, self.loss, targets),
            loss=self.loss.core() if self.loss.is_compiled() else (0, self.loss.core()[1], 0.0, 0.0),
            offset=self.offset,
            average=self.average,
            radius=self.rule.norm_bound,
            exact_norms=self.rule.exact_norms,
            regression=self.loss.task == "regression",
            against_constant=self.has_trial,
        )
        return Engine(
            hypothesis,
            targets=targets,
            growing=labels is not None and self.form != "one" and not labels.fixed,
            leaves_out=not self.rule.knows_weights,
            scaler=Scaler(n_features, self.scale, sparse, hypothesis.function.dtype) if self.scale else None,
        )

