"""The plan: validated parameters in force, ready for an engine."""
import copy

import numpy as np

from onlinekernels import validation
from onlinekernels.model import defaults
from onlinekernels._core.functions.coefficients import Full, Paired
from onlinekernels._core.rules.dual import Pairwise
from onlinekernels._core.run.engine import Engine
from onlinekernels._core.functions.forest import BudgetedTrees, Forest, Trees
from onlinekernels._core.rules.forms import AllLabels, LabelPair, OneOutput, Targets
from onlinekernels._core.run.hypothesis import Hypothesis
from onlinekernels._core.points.kernelrows import CompiledRows, ObjectRows
from onlinekernels._core.points.kernels import Program
from onlinekernels._core.functions.knownpoints import PointsPosterior
from onlinekernels._core.functions.outputs import Outputs
from onlinekernels._core.points.points import DensePoints, Objects
from onlinekernels._core.functions.posterior import WeightsPosterior
from onlinekernels._core.rules.recursive import Innovations, Recursive
from onlinekernels._core.run.scaling import Scaler
from onlinekernels._core.rules import rules
from onlinekernels._core.points.sparse import SparsePoints
from onlinekernels._core.functions.terms import KernelTerms
from onlinekernels._core.functions.weights import MappedWeights, SparseWeights, Weights
from onlinekernels.nouns.budgets import Budget, Projecting, Shrinking, Unlimited, as_budget
from onlinekernels.nouns.kernels import Gaussian, Kernel, as_kernel
from onlinekernels.model.labels import BinaryLabels, ManyLabels
from onlinekernels.nouns.losses import Hinge, Loss, MulticlassSquared, as_loss
from onlinekernels.nouns.maps import feature_map
from onlinekernels.nouns.params import same_parameters
from onlinekernels.nouns.scaling import as_memory, as_target_scaling, in_words
from onlinekernels.nouns.steps import Fixed, MetaDescent, Step, as_step
from onlinekernels.nouns.structures import LabelStructure, Taxonomy

__all__ = ["Plan"]

# Losses with a passive-aggressive step: a constraint to meet exactly.
AGGRESSIVE_LOSSES = {"Hinge", "Novelty", "Absolute", "Insensitive", "MulticlassHinge", "GraphHinge"}


# By name: a rule of the core, and what makes it that one
RULES = {
    "gradient": (rules.Gradient, {}),
    "implicit": (rules.Implicit, {}),
    "aggressive": (rules.Aggressive, {}),
    "aggressive squared": (rules.Aggressive, {"squared": True}),
    "relaxed": (rules.Relaxed, {}),
    "relaxed aggressive": (rules.Relaxed, {"aggressive": True}),
    "ball": (rules.Ball, {}),
    "approximate": (rules.Approximate, {}),
    "recursive": (Recursive, {}),
    "pairwise": (Pairwise, {}),
    "projected": (rules.Projected, {}),
}

SECOND_ORDER_LOSSES = {"Squared", "MulticlassSquared"}
MOST_WEIGHTS = 8192  # of second order: their covariance has the square of that
ADAPTIVE_RULES = {"gradient": rules.MetaDescent, "implicit": rules.ImplicitMetaDescent}  # with step=MetaDescent
WEIGHTLESS = {"relaxed", "relaxed aggressive", "ball", "approximate"}  # rules that know no weights of examples


class Plan:
    """Validated parameters in force, ready for an engine: copies, so that later changes do not reach them.

    Parameters
    ----------
    loss, kernel, budget, step, labels
        The nouns.
    rule : str
        A name in `RULES`.
    regularization, penalty : float
        lambda (c of V) and C of the rule.
    exact : bool
        Implicit steps over all labels, not the runner-up alone.
    radius : float
        |f| stays within it; 0 for no bound.
    threshold : float
        (1 - alpha) B of ALMA, the radius of the Ballseptron, tau of LASVM, eta of margin errors of Projectron++.
    exact_norms : bool
        |f|^2, and <f, v> of SVMD, corrected whenever a term is dropped.
    keeps_terms : bool
        Never weights or trees in place of terms.
    offset, average : bool
    scale, scale_target : float
        Memory of the running scalers of features and of targets; 0 for none.
    second_order : dict or None
        What a posterior is: its noise, whether that is estimated, memory, tolerance, and size, which is 0 for all points.
    """

    PARTS = ("loss", "kernel", "budget", "step", "labels", "rule", "regularization", "penalty", "radius",
             "threshold", "exact", "exact_norms", "keeps_terms", "offset", "average", "scale", "scale_target", "second_order")
    MAY_CHANGE = {"step", "regularization", "penalty"}  # between calls, on a fitted model; of second order, the noise
    pending = {}  # {part: how to choose it}, for the parts that the user left to the call; see `settled`
    unit = 1.0  # the size of features that a chosen width is for

    def __init__(self, **parts):
        self.__dict__.update(copy.deepcopy({name: parts[name] for name in self.PARTS}))
        self._check_parts()
        # What the trees of an additive kernel are; otherwise None
        self.trees = None
        if not (self.keeps_terms or self.second_order or self.budget.looks_at_kernel):
            self.trees = self.kernel.additive()
        if self.kernel.ops() is None and type(self.budget) is not Unlimited:
            self.trees = None  # beside trees, terms are for compiled kernels only
        self.takes_objects = self.kernel.takes_objects() and self.trees is None
        self.restricts = self.kernel.restricts()
        # Whether a single row must be out of reach of the user's code and threads before it is checked
        self.copies_one = not self.takes_objects and (self.kernel.takes_indices() or not self.loss.is_compiled())
        self.adapts_step = isinstance(self.step, MetaDescent)
        # Parts of a feature map, over whose features f is weights, whatever the budget; otherwise None
        self.features = self._checked_features() if self.kernel.has_map() else None
        # c if the expansion is kept as weights, k(x, z) = c <x, z>, or of features; otherwise None
        self.weight_scale = None if self.features is None else 1.0
        if self.features is None and type(self.budget) is Unlimited and not self.keeps_terms:
            self.weight_scale = self.kernel.linear_scale()
        self.per_feature = self.adapts_step and bool(self.step.per_feature)
        self._check()

    @classmethod
    def of(cls, learner, *, loss, kernel, step, rule="gradient", regularization=0.0, penalty=1.0,
           radius=0.0, threshold=0.0, exact=False, exact_norms=False, keeps_terms=False, average=False, second_order=None):
        """The plan of a learner, from parameters as users give them."""
        validation.check_integer(learner, "epochs", 1)
        labels = learner.labels
        if labels is not None and not isinstance(labels, LabelStructure):
            raise validation.bad_parameter(learner, "labels", "None, a Taxonomy, a LabelGraph or Labels", labels)
        pending, budget = {}, None if second_order else learner.budget
        if kernel is None:
            pending["kernel"], kernel = defaults.process if second_order else learner._default_kernel, Gaussian()
        if regularization is None:
            pending["regularization"], regularization = defaults.regularization, 0.0
        if step is None and rule == "implicit":
            pending["step"], step = defaults.step, 1.0
        if isinstance(budget, str) and budget == defaults.AUTO:
            pending["budget"], budget = defaults.budget(learner._budget_of_int), None
        if learner.offset is None and not second_order:
            pending["offset"] = defaults.offset
        plan = cls(
            loss=as_loss(loss, learner),
            kernel=as_kernel(kernel, learner),
            budget=as_budget(budget, learner, learner._budget_of_int),
            step=as_step(step, learner),
            labels=None if labels is None else labels.settled(),
            rule=rule,
            regularization=regularization,
            penalty=penalty,
            radius=radius,
            threshold=threshold,
            exact=exact,
            exact_norms=exact_norms,
            keeps_terms=keeps_terms,
            offset=not second_order and validation.check_flag(learner, "offset", or_none=True),
            average=average,
            scale=as_memory(learner.scale, learner),
            scale_target=as_target_scaling(learner.scale_target, learner),
            second_order=second_order,
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
        plan = Plan(**{**self.parts(), "kernel": defaults.resized(self.kernel, unit / self.unit)})
        plan.unit = unit
        return plan

    def parts(self):
        """What the plan was made from."""
        return {name: getattr(self, name) for name in self.PARTS}

    def differences(self, other):
        """(parameter, value here, value there) of what may not change between calls, and does."""
        for name in self.PARTS:
            mine, others = getattr(self, name), getattr(other, name)
            if name in self.MAY_CHANGE or same_parameters(mine, others):
                continue
            if name != "second_order" or mine is None or others is None:
                yield name, mine, others
                continue
            for part, parameter in (("memory", "memory"), ("tolerance", "tolerance"), ("size", "budget")):
                if mine[part] != others[part]:
                    yield parameter, mine[part] or None, others[part] or None

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
        for name in ("regularization", "penalty", "radius", "threshold", "scale", "scale_target"):
            if getattr(self, name) != "log" or name != "scale_target":
                validation.check_not_negative(self, name)
        for name in ("exact", "exact_norms", "keeps_terms", "offset", "average"):
            validation.check_flag(self, name)
        if self.rule not in RULES:
            raise ValueError(f"there is no rule {self.rule!r}")
        if (self.second_order is not None) != (self.rule == "recursive"):
            raise ValueError("the rule does not fit the order")
        if self.second_order is not None:
            _check_second_order(self.second_order)
        if self.rule == "projected" and type(self.budget) is not Projecting:
            raise ValueError("the rule needs a budget that projects")

    # ---- Combinations that make no sense are refused here, each in one sentence ----

    def _check(self):
        self._check_rule()
        if self.per_feature and self.weight_scale is None:
            raise ValueError(
                f"per_feature=True is a step for each weight, and {self.kernel!r} with budget={self.budget!r} keeps no "
                "weights. Use a feature map, or Linear() with budget=None."
            )
        if self.per_feature and isinstance(self.labels, Taxonomy):
            raise ValueError("per_feature=True needs the delta kernel between labels; a Taxonomy has another.")
        if self.offset and self.loss.task == "novelty":
            raise ValueError("offset=True makes no sense with a novelty loss: the offset alone would fit everything.")
        if self.average and type(self.budget) is not Unlimited and self.features is None:
            raise ValueError(
                f"average=True cannot be combined with budget={self.budget!r}: the average of terms that were "
                "dropped cannot be kept. Use budget=None."
            )
        self.budget.check_use(self)
        if self.exact_norms and self.takes_objects and type(self.budget) is not Unlimited:
            raise ValueError(
                "A budget needs a built-in kernel here: to keep |f| exact, kernel rows of dropped terms are evaluated."
            )
        if self.scale and (self.takes_objects or self.kernel.takes_indices()):
            raise ValueError(f"scale={in_words(self.scale)} needs a kernel on rows of numbers. Got {self.kernel!r}.")
        if self.scale_target and self.loss.task != "regression":
            raise ValueError(f"scale_target={self.scale_target!r} needs a loss of numbers. Got {self.loss!r}.")
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
        if self.adapts_step and self.rule not in ADAPTIVE_RULES:
            raise ValueError("step=MetaDescent adapts gradient steps and implicit ones: use it with NORMA, ILK or SILK.")
        if self.adapts_step and self.rule == "implicit":
            if self.per_feature:
                raise ValueError("per_feature=True of MetaDescent is for explicit steps: use it with NORMA or SVMD.")
            if self.exact and loss.task == "multiclass" and not loss.over_all_labels:
                raise ValueError("step=MetaDescent needs exact=False here: the exact step over all labels has no trace.")
            if isinstance(loss, MulticlassSquared):
                raise ValueError(f"step=MetaDescent does not adapt implicit steps of {loss!r}; it does with NORMA.")
            if self.step.offset_meta_rate is not None or self.step.offset_memory is not None:
                raise ValueError(
                    "offset_meta_rate and offset_memory of MetaDescent are for explicit steps: in an implicit step, offsets "
                    "share the step of f. Leave both at None."
                )
        if self.rule == "recursive":
            if type(loss).__name__ not in SECOND_ORDER_LOSSES or not loss.is_compiled():
                raise ValueError(
                    "The 'loss' parameter of KRLS must be one whose posterior is Gaussian: 'squared' for numbers, "
                    f"'multiclass_squared' for classes. Got {loss!r} instead."
                )
            if self.labels is not None:
                raise ValueError("KRLS knows no structure of labels.")
        elif self.rule != "gradient":
            if not loss.is_compiled():
                raise ValueError(f"{type(loss).__name__} has no implicit step: a loss of your own works with NORMA only.")
        if self.rule.startswith("aggressive"):
            # Without a cap only the tube matters, and the squared loss has the same one.
            fine = AGGRESSIVE_LOSSES | ({"SquaredInsensitive"} if self.penalty >= 1e308 else set())
            if type(loss).__name__ not in fine:
                raise ValueError(f"{loss!r} has no passive-aggressive step. Use one of {', '.join(sorted(fine))}.")
        if self.adapts_step and not loss.is_compiled():
            if loss.task == "multiclass" or type(loss).curvature is Loss.curvature:
                raise ValueError(
                    f"{type(loss).__name__} cannot be used with MetaDescent: it needs one output and a method "
                    "curvature(score, y)."
                )
        if self.rule == "implicit" and (self.exact or loss.over_all_labels) and self.label_kernel is not None:
            raise ValueError(
                f"The exact implicit step of {loss!r} needs the delta kernel between labels; "
                f"{'a Taxonomy has' if isinstance(self.labels, Taxonomy) else 'these labels have'} another."
            )
        if self.adapts_step and loss.adapts and loss.core()[1] <= 0:
            raise ValueError(
                f"MetaDescent adapts the logarithm of the {loss.scalar_name}, which must start above 0. "
                f"Got {loss.core()[1]:g} instead."
            )

    def _checked_features(self):
        if self.keeps_terms or self.rule == "projected" or isinstance(self.budget, Shrinking):
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
        if self.second_order:
            raise ValueError("KRLS knows no initial=: it would not know how sure the function of another model is. "
                             "Copy or load the model to go on from it.")
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
        kinds = [scale if scale == "log" else bool(scale) for scale in (self.scale_target, start.plan.scale_target)]
        if kinds[0] != kinds[1]:
            raise ValueError("initial and this model must both scale their targets, or neither, and both by logarithms or neither.")

    def is_perceptron(self):
        """Whether f gets y k(x, .) on a mistake, y f(x) <= 0, and nothing else happens; for two classes."""
        loss, step = self.loss, self.step
        return (type(loss) is Hinge and loss.margin == 0 and type(step) is Fixed and step.rate == 1
                and self.rule == "gradient" and self.regularization == 0 and not self.radius)

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
        return "dense" if dense or self.rule == "implicit" and self.exact else "pair"

    @property
    def label_kernel(self):
        """The structure of labels as far as it is their kernel; None for the identity."""
        return None if self.labels is None else self.labels.kernel_part()

    @property
    def leaves_out(self):
        """Whether an example of weight 0 is left out altogether: by rules that know no weights, and by votes."""
        return self.rule in WEIGHTLESS or self.votes

    @property
    def votes(self):
        """Whether all hypotheses since the first predict."""
        return self.rule == "gradient" and self.keeps_terms

    @property
    def has_trial(self):
        """Whether scores tell, while learning, if the model is better than a constant.

        Those of a detector do not, nor where another function predicts than the one that learns: an average, or votes.
        """
        if self.average or self.votes or self.loss.task == "novelty":
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
        if linear or self.trees is not None or self.kernel.takes_indices() or self.second_order:
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

    def settings(self):
        """What may change between calls, as rules of the core take it."""
        settings = {"step": self.step.core(), "regularization": self.regularization, "penalty": self.penalty,
                    "threshold": self.threshold, "normalized": getattr(self.step, "normalized", False)}
        if self.second_order is not None:
            settings |= {name: self.second_order[name] for name in ("noise", "estimates")}
        return settings

    def form_for(self, targets):
        """`form`, if y has so many numbers for each example."""
        if targets == 1:
            return self.form
        if self.loss.adapts or self.radius:
            raise ValueError(
                f"y has {targets} targets, and {self.loss!r}{' with a radius' if self.radius else ''} is for one. "
                "Use a model for each."
            )
        return "dense"

    def _function(self, *examples):
        """f, before it has learned anything."""
        function = self._representation(*examples)
        if self.per_feature:
            function.begin_steps(float(self.step.rate))
        return function

    def _representation(self, n_features, dtype, origin, outputs, sparse, targets):
        channels = 1 + self.adapts_step + self.average
        if self.second_order is not None:
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
            evaluates_slots=self.exact_norms or self.rule == "pairwise",
        )

    def _posterior(self, n_features, dtype, origin, outputs, sparse):
        """What is known of f before the first example."""
        common = {"outputs": outputs, "memory": self.second_order["memory"], "classes": self.loss.task == "multiclass"}
        if self.weight_scale is None:
            return PointsPosterior(
                rows=self._rows(n_features, dtype, origin, sparse),
                budget=self.second_order["size"] or None,
                tolerance=self.second_order["tolerance"],
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

    def _form(self, function, targets):
        """What the rule looks at; it has a rule of its own."""
        outputs = function.outputs
        if self.second_order is not None:
            return Innovations(Recursive(posterior=function, **self.settings()), outputs, targets)
        kind, settings = RULES[self.rule]
        if self.adapts_step:
            kind, settings = ADAPTIVE_RULES[self.rule], {"per_feature": True} if self.per_feature else {}
        rule = kind(**self.settings(), **settings)
        custom_loss = None if self.loss.is_compiled() else self.loss
        if targets > 1:
            return Targets(rule, outputs, custom_loss, targets)
        if self.form == "one":
            return OneOutput(rule, outputs, custom_loss)
        kind = LabelPair if self.form == "pair" else AllLabels
        return kind(rule, outputs, custom_loss, self.loss.structured)

    def engine(self, n_features, dtype, origin=None, labels=None, sparse=False, targets=1):
        """The engine of a model that has learned nothing."""
        self.form_for(targets)
        outputs = self.outputs(labels, targets)
        function = self._function(n_features, dtype, origin, outputs, sparse, targets)
        hypothesis = Hypothesis(
            function=function,
            form=self._form(function, targets),
            loss=self.loss.core() if self.loss.is_compiled() else (0, self.loss.core()[1], 0.0, 0.0),
            offset=self.offset,
            average=self.average,
            radius=self.radius,
            exact_norms=self.exact_norms,
            regression=self.loss.task == "regression",
            against_constant=self.has_trial,
        )
        return Engine(
            hypothesis,
            targets=targets,
            growing=labels is not None and self.form != "one" and not labels.fixed,
            leaves_out=self.leaves_out,
            scaler=Scaler(n_features, self.scale, sparse, hypothesis.function.dtype) if self.scale else None,
        )


def _check_second_order(parts):
    """ValueError unless this is what describes a posterior."""
    kinds = {"noise": float, "estimates": bool, "memory": float, "tolerance": float, "size": int}
    if not isinstance(parts, dict) or {name: type(part) for name, part in parts.items()} != kinds:
        raise ValueError("second_order does not name the parts of a posterior")
    fits = parts["noise"] > 0 and 0 < parts["memory"] <= 1 and 0 <= parts["tolerance"] < 1 and 0 <= parts["size"] < 2**31
    if not fits or not np.isfinite(parts["noise"]):
        raise ValueError("second_order has numbers that make no sense")
