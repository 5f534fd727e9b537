"""Members of ensembles: a user's model says what backend to build, and shows it again.

Inside of an ensemble there are backends of the core only; see `onlinekernels._core.ensemble`. Labels are codes 0, 1, 2,
... there, and each member numbers them as they appear to it. Models that have learned already become members as copies
(`Prefit`), which know labels by their codes.
"""
import copy

import numpy as np

from onlinekernels._core.ensemble import Member
from onlinekernels.base.state import State
from onlinekernels.base.labelsets import BinaryLabels, ManyLabels
from onlinekernels.base.labelvalues import distinct_labels, shown_list


ANEW = ("begun", "unheard", "due", "failures")  # what a member knows of its beginning anew


def task_of(model):
    """"classes", "numbers" or "novelty"."""
    task = model._current_loss().task
    return {"binary": "classes", "multiclass": "classes", "regression": "numbers"}.get(task, "novelty")


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
    """Members for {name: (model, name of a transform or None)}: new ones for rows like X, or from what was learned."""
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
    if model.class_weight is not None or model.labels is not None:
        raise ValueError(f"members know labels by their codes: {type(model).__name__} must have no class_weight and no "
                         "labels of its own. Give class_weight to the ensemble.")
    two = [0, 1] if model._current_loss().task == "binary" else None  # a loss of two classes must know both
    plan = model._first_plan(X, two, two)
    labels = {"binary": BinaryLabels(np.arange(2)), "multiclass": ManyLabels([], False)}.get(plan.loss.task)
    model._state = model._first_state(plan, X, labels, max(1, targets))
    return _member(name, model, transform)


def _member(name, model, transform, **others):
    state = model._state
    loss = model._current_loss()
    if not isinstance(state, State):
        return Member(name, state.backend, scale_of(loss), transform, model, **others)
    has_python = state.plan.takes_objects or not loss.is_compiled()
    return Member(name, state.engine, scale_of(loss), transform, model, has_python=has_python, state=state, **others)


def fitted_member(name, model, frozen):
    """A member that goes on from a fitted model, which knows labels by their codes; see `Prefit`."""
    labels = model._state.labels
    return _member(name, model, None, before=model.t_, frozen=frozen, labels=() if labels is None else labels.order,
                   fixed=labels is not None and is_closed(labels))


def shown(member):
    """The model that shows a member as it is now; None for one that is no model."""
    model = member.model
    if not hasattr(model, "_state"):
        return None
    member.catch_up()
    state = model._state
    if member.is_labelled and (state.labels is None or state.labels.order != member.label_codes):
        state.labels = ManyLabels(member.label_codes, False)
    return model


def member_state(member):
    """What is learned, by name."""
    model = shown(member)
    return {"model": model._state.to_dict(), "t": int(member.t), "before": int(member.before),
            "frozen": member.frozen, "disabled": member.status, "codes": [int(code) for code in member.label_codes],
            **{name: int(getattr(member, name)) for name in ANEW}}


def restored_member(name, model, state, transform=None):
    """The member that `member_state` described; ValueError if its parts do not fit each other."""
    t, before, frozen, codes, disabled = (state[part] for part in ("t", "before", "frozen", "codes", "disabled"))
    counts = [t, before, *(state[part] for part in ANEW)]
    for is_sound, what in (
        (all(type(count) is int and 0 <= count < 1 << 62 for count in counts) and type(frozen) is bool,
         "it does not say how many rows a member has learned, and since when"),
        (disabled is None or isinstance(disabled, str), "it does not say why a member is disabled"),
        (isinstance(codes, list) and all(type(code) is int and 0 <= code < 2**31 for code in codes)
         and len(set(codes)) == len(codes), "the labels of a member are no codes"),
        (model is not None, "there is no model to show a member"),
    ):
        if not is_sound:
            raise ValueError(what)
    model._state = model._restored(state["model"])
    labels = model._state.labels
    is_two = isinstance(labels, BinaryLabels)
    member = _member(name, model, transform, before=before, frozen=frozen, disabled=disabled,
                     fixed=before > 0 and labels is not None and is_closed(labels))
    if is_two and list(labels.order) != [0, 1] or member.is_labelled and labels.order != codes:
        raise ValueError("the labels of a member are not those of its model, or not those that a loss of two knows")
    if not frozen and disabled is None and model.t_ != before + t:
        raise ValueError("a member has not learned the rows that it has seen")
    member.go_on_from(t, codes)
    for part in ANEW:
        setattr(member, part, state[part])
    return member


class Prefit:
    """Copies of fitted models, and what they agree on; ValueError if they do not.

    `models` {name: model} are of one task; `frozen` ones will learn no more. The copies know codes 0, 1, 2, ... instead
    of labels, and columns without names. `labels` are by their codes, shown in sorted order; others may join unless no
    member takes more.
    """

    def __init__(self, models, frozen):
        for name, model in models.items():
            check(name, model, frozen)
        self.models = {name: copy.deepcopy(model) for name, model in models.items()}
        states = {name: model._state for name, model in self.models.items()}
        self.n_features = agreed(states, "number of features", lambda state: state.n_features)
        self.targets = agreed(states, "number of targets", lambda state: state.targets)
        named = {name: model for name, model in models.items() if hasattr(model, "feature_names_in_")}
        names = {name: model.feature_names_in_.tolist() for name, model in named.items()}
        self.feature_names = agreed(names, "feature names", lambda found: found) if names else None
        label_sets = {name: state.labels for name, state in states.items() if state.labels is not None}
        self.labels = self._common_labels(label_sets)
        for model, state in zip(self.models.values(), states.values(), strict=True):
            if state.stale:  # a parameter was set since: it counts, or is refused now
                state = model._state = state.refreshed(model)
            state.feature_names = model._encoder = None
            if self.labels is not None:
                state.labels = self._as_codes(state.labels)

    @staticmethod
    def _common_labels(sets):
        """The labels that all have together; those that take no others must have them all."""
        if not sets:
            return None
        of_two = [one for one in sets.values() if isinstance(one, BinaryLabels)]
        of_two.sort(key=lambda one: one.negative_is_open)
        first = of_two[0].order if of_two else []  # -1 and +1 are the codes 0 and 1
        others = [label for one in sets.values() if one not in of_two for label in one.order]
        order = distinct_labels(others, first)
        for name, one in sets.items():
            if is_closed(one) and one.agreeing_with(order) is None:
                raise ValueError(f"Members must have the same labels. {name!r} has {shown_list(one.order)} and takes "
                                 f"no others; others have {shown_list(order)}. Name all of them in classes= when "
                                 "members begin.")
        return ManyLabels(order, all(map(is_closed, sets.values())))

    def _as_codes(self, labels):
        if isinstance(labels, BinaryLabels):
            return BinaryLabels(np.arange(2))
        codes = {label: code for code, label in enumerate(self.labels.order)}
        return ManyLabels([codes[label] for label in labels.order], labels.fixed)


def is_closed(labels):
    """Whether no other label can join."""
    return isinstance(labels, BinaryLabels) or labels.fixed


def check(name, model, frozen):
    """Refuse a model that cannot be a member as it is."""
    state = model._state
    if state is None:
        raise ValueError(f"Members must have learned already, and {name!r} has not: {model!r}.")
    if model._encoder is not None and not passes_numbers(model._encoder):
        raise ValueError(f"The member {name!r} has categories of its own (encode=). Encode the data before, by one "
                         "encoder for all.")
    if state.n_features is None or state.sparse:
        raise ValueError(f"Members take rows of numbers, and {name!r} has learned "
                         f"{'objects' if state.n_features is None else 'sparse rows'}.")
    if model.labels is not None:
        raise ValueError(f"The member {name!r} has labels={model.labels!r}, and an ensemble's members know labels by "
                         "their codes.")
    if model.class_weight is not None and not frozen:
        raise ValueError(f"The member {name!r} has class_weight={model.class_weight!r}, and an ensemble's members know "
                         "labels by their codes. Set it to None and give it to the ensemble, or freeze the members.")


def passes_numbers(encoder):
    """Whether it has met numbers only, which it leaves as they are."""
    return set(encoder.kinds_.values()) == {"number"} and encoder.n_features_in_ == encoder.n_features_out_


def agreed(states, what, value):
    """What all have in common, from {name of a member: anything}; ValueError if they have not."""
    (first, mine), *others = ((name, value(state)) for name, state in states.items())
    for name, other in others:
        if other != mine:
            raise ValueError(f"Members must have the same {what}. {first!r} has {mine!r}, {name!r} has {other!r}.")
    return mine
