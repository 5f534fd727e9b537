"""Members of ensembles: a user's model says what backend to build, and shows it again.

Inside of an ensemble there are backends of the core only; see `onlinekernels._core.ensemble`. Labels are codes 0, 1, 2, ...
there, and each member numbers them as they appear to it.
"""
import copy

import numpy as np

from onlinekernels._core.ensemble import Member, WarmUp
from onlinekernels._core.points import Rows
from onlinekernels.model import defaults
from onlinekernels.model.beginning import Beginning
from onlinekernels.model.labels import BinaryLabels, ManyLabels
from onlinekernels.model.state import State

__all__ = ["built", "fitted_member", "fresh", "member_state", "shown", "task_of"]


def task_of(model):
    """"classes", "numbers" or "novelty"."""
    return {"binary": "classes", "multiclass": "classes", "regression": "numbers"}.get(model._current_loss().task, "novelty")


def fresh(model):
    """A model with the same parameters that has learned nothing."""
    return type(model)(**copy.deepcopy(model.get_params(deep=False)))


def scale_of(loss):
    """What scores mean that a loss is about: see `Scale` in the core."""
    if loss.task == "multiclass":
        return "logits" if loss.probabilistic and not loss.over_all_labels else "labels"
    if loss.task == "binary":
        return "log odds" if loss.probabilistic else "margin"
    return "numbers" if loss.task == "regression" else "density"


def built(models, transforms, X, targets, learned=None):
    """Members for {name: (model, name of a transform or None)}, that begin with rows like X or go on from what was learned."""
    members = []
    if learned is not None and set(learned["members"]) != set(models):
        raise ValueError("the members are not those of the parameters")
    for name, (model, through) in models.items():
        transform = transforms.get(through)
        if learned is not None:
            members.append(restored_member(name, fresh(model), learned["members"][name], transform))
        else:
            rows = X if transform is None else np.zeros((1, X.shape[1]))  # in the middle, as first rows are
            members.append(new_member(name, fresh(model), rows, targets, transform))
    return members


def new_member(name, model, X, targets, transform=None):
    """A member that has learned nothing, for a model that has not either and rows like X, shape (n, n_features)."""
    if hasattr(model, "_begin"):
        state = model._first_state(X, targets)
    else:
        state = _first_state(model, X, targets)
    model.__dict__["_state"] = state
    return _member(name, model, transform)


def _first_state(model, X, targets):
    """The `State` of a model before its first row; changes nothing in the model."""
    if model.class_weight is not None or model.labels is not None:
        raise ValueError(f"members know labels by their codes: {type(model).__name__} must have no class_weight and no labels of its "
                         "own. Give class_weight to the ensemble.")
    two = [0, 1] if model._current_loss().task == "binary" else None  # a loss of two classes must know both
    plan = model._first_plan(two, two)
    follows = plan.follows_distances
    sparse = isinstance(X, Rows)
    plan = plan.settled(defaults.Data(None if plan.takes_objects else X.shape[1], None, sparse))
    labels = {"binary": BinaryLabels(np.arange(2)), "multiclass": ManyLabels([], False)}.get(plan.loss.task)
    state = State.first(plan, X, labels, max(1, targets))
    if follows and defaults.width(plan.kernel) is not None:
        state.beginning = Beginning()
    return state


def _member(name, model, transform, **others):
    state = model._state
    loss = model._current_loss()
    if not isinstance(state, State):
        return Member(name, state.composition, scale_of(loss), transform, model, **others)
    backend = state.engine if state.beginning is None else WarmUp(state)
    has_python = state.plan.takes_objects or not loss.is_compiled()
    return Member(name, backend, scale_of(loss), transform, model, has_python=has_python, **others)


def fitted_member(name, model, frozen):
    """A member that goes on from a fitted model, which knows labels by their codes; see `Prefit`."""
    labels = model._state.labels
    return _member(name, model, None, before=model.t_, frozen=frozen, labels=() if labels is None else labels.order,
                   fixed=labels is not None and (isinstance(labels, BinaryLabels) or labels.fixed))


def shown(member):
    """The model that shows a member as it is now; None for one that is no model."""
    model = member.model
    if not hasattr(model, "_state"):
        return None
    if isinstance(member.backend, WarmUp):
        member.backend.catch_up()
        model.__dict__["_state"] = member.backend.state
    state = model._state
    if member.is_labelled and (state.labels is None or state.labels.order != member.label_codes):
        state.take_labels(ManyLabels(member.label_codes, False))
    return model


def member_state(member):
    """What is learned, by name."""
    model = shown(member)
    return {"model": model._state.to_dict(), "t": int(member.t), "before": int(member.before),
            "frozen": member.frozen, "disabled": member.status, "codes": [int(code) for code in member.label_codes]}


def restored_member(name, model, state, transform=None):
    """The member that `member_state` described; ValueError if its parts do not fit each other."""
    t, before, codes, disabled = state["t"], state["before"], state["codes"], state["disabled"]
    if type(t) is not int or type(before) is not int or t < 0 or before < 0 or type(state["frozen"]) is not bool:
        raise ValueError("it does not say how many rows a member has learned")
    if not (disabled is None or isinstance(disabled, str)):
        raise ValueError("it does not say why a member is disabled")
    if not isinstance(codes, list) or len(set(codes)) != len(codes) or not all(type(code) is int and 0 <= code < 2**31 for code in codes):
        raise ValueError("the labels of a member are no codes")
    if model is None:
        raise ValueError("there is no model to show a member")
    model.__dict__["_state"] = model._restored(state["model"])
    labels = model._state.labels
    if isinstance(labels, BinaryLabels) and list(labels.order) != [0, 1]:
        raise ValueError("the labels of a member are not those that a loss of two classes knows")
    fixed = before > 0 and labels is not None and (isinstance(labels, BinaryLabels) or labels.fixed)
    member = _member(name, model, transform, before=before, frozen=state["frozen"], fixed=fixed, disabled=disabled)
    if member.is_labelled and labels.order != codes:
        raise ValueError("the labels of a member are not those of its model")
    learned = model.t_
    if not state["frozen"] and disabled is None and learned != before + t:
        raise ValueError("a member has not learned the rows that it has seen")
    member.go_on_from(t, codes)
    return member
