"""Rules, as a plan holds them: parameters, what a rule can serve, and which rule of the core it becomes."""
from onlinekernels._core.rules import AllLabels, LabelPair, OneOutput, Targets
from onlinekernels.base.params import Parameterized, same_parameters
from onlinekernels.steps import Fixed, MetaDescent, Step

__all__ = ["Rule", "check_step"]


class Rule(Parameterized):
    """What an example does to f. Each family of `onlinekernels.algorithms` has one, which its learners fill in.

    A subclass has parameters, stored by its ``__init__`` and checked by `_values`, and

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
    words: str | None = None  # what its steps are called
    may_change: frozenset[str] = frozenset()  # parameters that may change between calls

    step = Fixed(1.0)  # of rules that have none to choose
    regularization = 0.0
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

    @property
    def adapts_step(self):
        """Whether the step follows the gradients."""
        return isinstance(self.step, MetaDescent)

    @property
    def per_feature(self):
        """Whether each weight has a step of its own."""
        return self.adapts_step and bool(self.step.per_feature)

    @property
    def evaluates_slots(self):
        """Whether it wants scores of terms."""
        return self.exact_norms

    @property
    def is_open(self):
        """Whether some parameters are left to the call; see `settled`."""
        return False

    def settled(self, loss, data, kernel):
        """The rule with all parameters chosen, for a `defaults.Data`."""
        return self

    # ---- Checks ----

    def validate(self):
        """Raise ValueError for a parameter out of range: it may come from a file."""
        self._check_values()

    def check(self, plan):
        """Raise ValueError for what makes no sense with the other parts of a plan."""
        self.check_loss(plan.loss)
        if plan.form not in self.forms:
            raise ValueError(f"{plan.loss!r} moves all labels at once, and {type(self).__name__} steps do not.")
        if not self.adapts_step:
            return
        if self.step.offset_step is not None and plan.offset is False:  # None is not yet decided
            raise ValueError("offset_step of MetaDescent is for a model with offset=True, and this one has no offset.")
        if self.step.margin_step is not None and not (plan.loss.adapts and plan.loss.margin_step is None):
            has = f"margin_step={plan.loss.margin_step!r} of its own" if plan.loss.adapts else "nothing that adapts"
            raise ValueError(f"margin_step of MetaDescent is for a nu-loss with margin_step=None. Got {plan.loss!r}, which has {has}.")
        if plan.loss.adapts and plan.loss.core()[1] <= 0:
            raise ValueError(
                f"MetaDescent adapts the logarithm of the {plan.loss.scalar_name}, which must start above 0. "
                f"Got {plan.loss.core()[1]:g} instead."
            )

    def check_loss(self, loss):
        """Raise ValueError for a loss that it has no step for."""
        if not loss.is_compiled():
            if not self.solves_losses:
                raise ValueError(
                    f"{type(loss).__name__} has no {self.words or 'such'} step: a loss of your own works with NORMA, SVMD, ILK, "
                    "SILK, and PassiveAggressive's PA-I and PA-II."
                )
            if loss.task == "multiclass":
                raise ValueError(f"{type(loss).__name__} has no {self.words} step over all labels; it works with NORMA.")
        elif self.losses is not None and type(loss) not in self.losses:
            names = ", ".join(sorted(kind.__name__ for kind in self.losses))
            raise ValueError(f"{loss!r} has no {self.words} step. Use one of {names}.")

    def differences(self, other):
        """(parameter, value here, value there) of what may not change between calls, and does."""
        mine, others = self.get_params(deep=False), other.get_params(deep=False)
        for name in mine:
            if name not in self.may_change and not same_parameters(mine[name], others[name]):
                yield name, mine[name], others[name]

    # ---- For the core ----

    def settings(self):
        """What may change between calls, and what else the rule of the core takes."""
        return {"step": self.step.core()}

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


def check_step(rule, name):
    """A step that a rule takes, with parameters in range."""
    step = getattr(rule, name)
    if not isinstance(step, Step):
        raise ValueError(f"{name} is not a step")
    step.validate()
