"""How f is kept, one class each: terms, weights, weights over features, trees, posteriors.

`representation_of` chooses by the kernel, the budget and the rule of a plan. Nobody else asks which one it is.
"""
from onlinekernels.base.representations.contract import LabelMap, Representation
from onlinekernels.base.representations.posterior import PointsPosterior, WeightsPosterior
from onlinekernels.base.representations.terms import Terms
from onlinekernels.base.representations.trees import BudgetedTrees, Trees
from onlinekernels.base.representations.weights import MappedWeights, Weights
from onlinekernels.budgets import Unlimited

__all__ = ["BudgetedTrees", "MappedWeights", "LabelMap", "PointsPosterior", "Representation", "Terms", "Trees", "Weights",
           "WeightsPosterior", "representation_of"]


def representation_of(plan):
    """The representation of f that a plan makes: the fastest that its kernel, budget and rule allow."""
    kernel, budget, rule = plan.kernel, plan.budget, plan.rule
    unlimited = type(budget) is Unlimited
    if kernel.has_map() or unlimited and not rule.keeps_examples and kernel.linear_scale() is not None:
        kind = WeightsPosterior if rule.is_posterior else MappedWeights if kernel.has_map() else Weights
    elif rule.is_posterior:
        kind = PointsPosterior
    elif rule.keeps_examples or budget.looks_at_kernel or kernel.additive() is None:
        kind = Terms
    elif unlimited:
        kind = Trees
    else:
        kind = BudgetedTrees if kernel.ops() is not None else Terms  # beside trees, terms are for compiled kernels only
    return kind(plan)
