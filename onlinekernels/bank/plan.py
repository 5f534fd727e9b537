"""The validated parameters of a bank."""
import copy

from onlinekernels._core.bank import LANES_CODES
from onlinekernels.algorithms import NORMA, SILK
from onlinekernels.algorithms.implicit import Implicit
from onlinekernels.base import defaults
from onlinekernels.budgets import Recent, Smallest
from onlinekernels.kernels import Gaussian, Linear
from onlinekernels.losses.base import LOG
from onlinekernels.base.params import same_parameters
from onlinekernels.base.validation import bad_parameter

__all__ = ["BankPlan"]

RULES = {"silk": SILK, "norma": NORMA}
MOST_TERMS = LANES_CODES["most slots"]
PIECE = 2**28  # features of terms that rows are compared with between two looks at Ctrl-C: less than a second


class BankPlan:
    """The validated parameters of a bank: those of one of its models, and what a bank can do."""

    def __init__(self, bank):
        self.params = copy.deepcopy(bank.get_params(deep=False))
        self.n_features, self.n_models = bank.n_features, bank.n_models
        plan = self.plan = self.blank()._plan().resolved(defaults.Data(bank.n_features))
        self.loss = plan.loss
        if plan.loss.task == "multiclass" or not plan.loss.is_compiled():
            raise ValueError(f"A Bank takes a built-in loss of two classes, of regression or of novelty. Got {plan.loss!r}.")
        if plan.loss.margin_step == LOG:
            raise ValueError("A Bank has no margin_step='log'. Use a number or None.")
        if type(plan.kernel) not in (Gaussian, Linear):
            raise ValueError(f"A Bank takes a Gaussian or a Linear kernel. Got {plan.kernel!r}.")
        if type(plan.budget) not in (Recent, Smallest) or plan.budget.size > MOST_TERMS:
            raise ValueError(
                f"The 'budget' of a Bank must be an integer, Recent or Smallest of at most {MOST_TERMS} terms. "
                f"Got {self.params['budget']!r}."
            )
        if plan.rule.adapts_step:
            raise ValueError("A Bank has no step=MetaDescent. Use Fixed, InverseSqrt or Decaying.")
        blocks = PIECE // (plan.budget.size * (self.n_features + 4) * LANES_CODES["lanes"])
        self.rows_at_a_time = max(int(blocks), 64) * LANES_CODES["lanes"]

    def blank(self):
        """An ordinary model with these parameters that has learned nothing."""
        params = copy.deepcopy(self.params)
        if params["rule"] not in tuple(RULES):
            raise bad_parameter("Bank", "rule", "'silk' or 'norma'", params["rule"])
        if params["rule"] == "norma" and params["penalty"] is not None:
            raise ValueError("penalty is for rule='silk'; rule='norma' has none.")
        given = {name: params[name] for name in ("step", "regularization", "penalty") if params[name] is not None}
        algorithm = RULES[params["rule"]]
        return algorithm(params["loss"], params["kernel"], budget=params["budget"], offset=params["offset"], **given)

    def core(self):
        """Arguments for `Models`."""
        gaussian, rule = isinstance(self.plan.kernel, Gaussian), self.plan.rule
        implicit = isinstance(rule, Implicit)
        return {
            "loss": self.loss.core(),
            "step": rule.step.core(),
            "implicit": implicit,
            "regularization": rule.regularization,
            "penalty": rule.penalty if implicit else 1.0,
            "recent": isinstance(self.plan.budget, Recent),
            "slots": int(self.plan.budget.size),
            "offset": self.plan.offset,
            "gamma": self.plan.kernel.ops()[0]["a"] if gaussian else None,
            "n_features": self.n_features,
        }

    def is_like(self, other):
        """Whether models of both are of one kind."""
        mine, others = self.plan.parts(), other.plan.parts()
        return self.n_features == other.n_features and all(same_parameters(mine[name], others[name]) for name in mine)
