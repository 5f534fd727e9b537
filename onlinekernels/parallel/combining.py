"""Functions that were learned on parts of the data become one."""
from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import numpy as np

from onlinekernels.algorithms import KRLS, LASVM, Adatron, Forgetron, Projectron, VotedPerceptron
from onlinekernels.base.plan import Plan
from onlinekernels.base.state import State
from onlinekernels.budgets import as_budget
from onlinekernels.base.params import same_parameters

if TYPE_CHECKING:
    from onlinekernels.annotations import Any, ArrayLike, Budget, Estimator, Sequence

NOT_A_FUNCTION = {  # what cannot be averaged, and why
    VotedPerceptron: "it is all the hypotheses it ever had",
    (Adatron, LASVM): "it is a solution for the examples that it has seen, and an average of two is none",
    KRLS: "its posterior is more than a function",
    Forgetron: "its budget is part of it. Perceptron(budget=Shrinking(size)) learns the same, and can be",
    Projectron: "its budget is part of it. Perceptron(budget=Projecting(size)) projects as well, and can be",
}


def combine(models: Sequence[Estimator], weights: ArrayLike | None = None,
            budget: Budget | int | None = None) -> Any:
    """The average of functions that models of one kind have learned, each on its own part of the data.

    Coefficients of all terms are multiplied by their model's weight and put together, oldest first, as the latest
    examples; then the budget applies. Offsets and the margin or width of the loss are averaged, examples are counted
    together. Weights of linear models are averaged as they are.

    Parameters
    ----------
    models : list of fitted models
        With the same kernel, loss, offset and labels. (Models of many classes need the same ``classes=`` from the
        start.)
    weights : array of shape (len(models),) or None
        Positive numbers, brought to the sum 1. None: the number of examples that each has learned.
    budget : Budget, int or None
        Of the result. None: the models' own, with room for the terms of all. A smaller one drops terms that were
        learned together with those that stay, and costs accuracy.

    Returns
    -------
    model
        Of the first model's class, ready to predict and to learn on. (``average=True`` has done its work: the result
        starts from the averaged functions and averages no more.)

    Examples
    --------
    >>> import numpy as np
    >>> from onlinekernels import SILK, combine
    >>> X = np.random.default_rng(0).normal(size=(600, 2))
    >>> y = np.where(X[:, 0] > 0, "right", "left")
    >>> parts = [SILK("hinge", budget=40).fit(X[i::3], y[i::3]) for i in range(3)]
    >>> whole = combine(parts)
    >>> whole.n_terms_, whole.t_, bool(whole.score(X, y) > 0.9)
    (120, 600, True)
    """
    models = list(models)
    states = [_checked_state(model) for model in models]
    if not models:
        raise ValueError("models must hold at least one fitted model. Got none.")
    for other in states[1:]:
        _check_alike(states[0], other)
    weights = np.asarray([state.hypothesis.t for state in states] if weights is None else weights, dtype=float)
    if weights.shape != (len(states),) or not np.isfinite(weights).all() or (weights < 0).any() or not weights.any():
        expected = f"a number of at least 0 for each of the {len(states)} models"
        raise ValueError(f"weights must hold {expected}. Got {weights!r}.")
    result = type(models[0])(**copy.deepcopy(models[0].get_params(deep=False)))
    result.budget = budget
    if budget is None:  # like the first model's, with room for the terms of all
        result.budget = copy.deepcopy(states[0].plan.budget)
        if result.budget._size is not None:
            capacity = sum(state.plan.budget.capacity(state.hypothesis.t) for state in states)
            setattr(result.budget, result.budget._size, min(capacity, 2**62))
    if getattr(result, "average", False):
        result.average = False
    # The first model's plan, as it would go on: what it was fitted to, its labels for one, is not among its parameters.
    parts = {**states[0].refreshed(models[0]).plan.parts(), "average": False}
    parts["budget"] = as_budget(result.budget, result, result._budget_of_int)
    plan = Plan(**parts)
    plan.unit = states[0].plan.unit
    result._state = _combined(plan, states, weights / weights.sum())
    return result


def _checked_state(model):
    """The state of a model that is one function."""
    for kind, reason in NOT_A_FUNCTION.items():
        if isinstance(model, kind):
            raise ValueError(f"{type(model).__name__} cannot be combined: {reason}.")
    state = getattr(model, "_state", None)
    if state is None:
        raise ValueError(f"models must be fitted models of this library. Got {model!r}.")
    keeps = state.representation.keeps
    for is_so, problem in (
        (state.plan.scale or state.plan.scale_target, "Models with scale= or scale_target= have units of their own. "
         "Scale the data before, by one scaler for all parts."),
        (model._encoder is not None, "Models with encode= have words of their own. Encode the data before, by one "
         "encoder for all parts."),
        (keeps == "knots", "Models that keep knots cannot be combined; give them a budget."),
        (state.sparse and keeps == "terms",
         "Models on sparse rows can be combined if they keep weights: a linear kernel, no budget."),
    ):
        if is_so:
            raise ValueError(problem)
    return state


def _check_alike(first, other):
    """Refuse what is no function of the same kind."""
    for name, value_of in {
        "number of features": lambda state: state.n_features,
        "kernel": lambda state: state.kernel,
        "kind of budget": lambda state: type(state.plan.budget).__name__,
        "loss": lambda state: type(state.loss).__name__,
        "number of targets": lambda state: state.targets,
        "offset": lambda state: state.plan.offset,
        "form": lambda state: state.form,
        "precision": lambda state: state.function.dtype.name,
        "way to keep f": lambda state: state.representation.keeps,
        "classes": _classes,
        "kernel between labels": lambda state: state.plan.label_kernel,
    }.items():
        mine, others = value_of(first), value_of(other)
        if not same_parameters(mine, others):
            raise ValueError(f"Models to be combined must have the same {name}. Got {mine!r} and {others!r}.")
    if not first.representation.has_same_features(first, other):
        what = "Let one model see enough rows, and start the others with initial=."
        raise ValueError(f"Models to be combined must have the same landmarks, and these have not. {what}")


def _classes(state):
    """Labels in the order of the engine."""
    if state.labels is None:
        return None
    return state.labels.classes.tolist() if state.form == "one" else list(state.labels.order)


def _combined(plan, states, weights):
    """The state whose function is the weighted mean."""
    first = states[0]
    if first.sparse:
        state = State(plan, first.n_features, np.float64, labels=first.labels, sparse=True, targets=first.targets)
    else:  # from a row like those of the terms, if there are any
        point = None if first.n_features is None else np.zeros((1, first.n_features), dtype=first.function.dtype)
        having = (other for other in states if other.representation.keeps == "terms" and other.function.slots().size)
        point = next((other.function.points()[:1] for other in having), point)
        state = State.first(plan, point, first.labels, first.targets)
    if state.labels is not None and state.form != "one":
        state.make_ready()
        outputs = state.function.outputs
        outputs.set_kept(max(other.n_classes_seen() for other in states) + outputs.future)
    state.check_representation(first, "models", "the result")
    plan.representation.take_features(state, first)
    state.rows = first.rows
    parts = [state.start_of(other) for other in states]
    offset = sum(weight * part[0] for weight, part in zip(weights, parts))
    parts = [part[1:] for part in parts]
    if parts[0][0] is None:
        function = None, sum(weight * part[1] for weight, part in zip(weights, parts))
    else:
        function = _put_together(parts, weights)
    state.hypothesis.begin_from(offset, *function, t=sum(other.hypothesis.t for other in states))
    scalar = sum(weight * other.hypothesis.scalar() for weight, other in zip(weights, states))
    state.hypothesis.set_scalar(float(scalar))
    state.begin_with_norms()
    state.make_ready()
    return state


def _put_together(parts, weights):
    """(points, coefficients, pairs of labels) of all terms, weighted; the latest of each part at the end."""
    age = np.concatenate([np.arange(part[1].shape[1], 0, -1) for part in parts])
    order = np.argsort(-age, kind="stable")
    alpha = np.hstack([weight * part[1] for weight, part in zip(weights, parts)])[:, order]
    pairs = None if parts[0][2] is None else np.hstack([part[2] for part in parts])[:, order]
    if isinstance(parts[0][0], list):
        objects = [x for part in parts for x in part[0]]
        return [objects[i] for i in order], alpha, pairs
    return np.concatenate([part[0] for part in parts])[order], alpha, pairs
