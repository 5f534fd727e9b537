"""Models that have learned already become members of an ensemble: copies, which know labels by their places."""
import copy

import numpy as np

from onlinekernels.base.labelsets import BinaryLabels, ManyLabels
from onlinekernels.base.labelvalues import distinct_labels, label_key, shown_list

__all__ = ["Prefit"]


class Prefit:
    """Copies of fitted models, and what they agree on; ValueError if they do not.

    Parameters
    ----------
    models : dict of str to OnlineLearner
        Of one task.
    frozen : bool
        Whether they will learn no more.

    Attributes
    ----------
    models : dict of str to OnlineLearner
        They know places 0, 1, 2, ... instead of labels, and columns without names.
    labels : ManyLabels or None
        Labels by their places, shown in sorted order. Others may join unless no member takes more.
    n_features, targets : int
    feature_names : list of str or None
    """

    def __init__(self, models, frozen):
        for name, model in models.items():
            check(name, model, frozen)
        self.models = {name: copy.deepcopy(model) for name, model in models.items()}
        states = {name: model._state for name, model in self.models.items()}
        self.n_features = agreed(states, "number of features", lambda state: state.n_features)
        self.targets = agreed(states, "number of targets", lambda state: state.targets)
        names = {name: model.feature_names_in_.tolist() for name, model in models.items() if hasattr(model, "feature_names_in_")}
        self.feature_names = agreed(names, "feature names", lambda found: found) if names else None
        self.labels = self._common_labels({name: state.labels for name, state in states.items() if state.labels is not None})
        for model, state in zip(self.models.values(), states.values(), strict=True):
            if state.stale:  # a parameter was set since: it counts, or is refused now
                state = model.__dict__["_state"] = state.refreshed(model)
            state.feature_names = model.__dict__["_encoder"] = None
            if self.labels is not None:
                state.take_labels(self._as_places(state.labels))

    @staticmethod
    def _common_labels(sets):
        """The labels that all have together; those that take no others must have them all."""
        if not sets:
            return None
        of_two = sorted((one for one in sets.values() if isinstance(one, BinaryLabels)), key=lambda one: one.negative_is_open)
        first = of_two[0].order if of_two else []  # -1 and +1 are the places 0 and 1
        order = list(distinct_labels([label for one in sets.values() if one not in of_two for label in one.order], first).values())
        for name, one in sets.items():
            if is_closed(one) and one.agreeing_with(order) is None:
                raise ValueError(f"Members must have the same labels. {name!r} has {shown_list(one.order)} and takes no others; "
                                 f"others have {shown_list(order)}. Name all of them in classes= when members begin.")
        return ManyLabels(order, all(map(is_closed, sets.values()))).in_sorted_order()

    def _as_places(self, labels):
        if isinstance(labels, BinaryLabels):
            return BinaryLabels(np.arange(2))
        places = {label_key(label): place for place, label in enumerate(self.labels.order)}
        return ManyLabels([places[label_key(label)] for label in labels.order], labels.fixed, labels.display)


def is_closed(labels):
    """Whether no other label can join."""
    return isinstance(labels, BinaryLabels) or labels.fixed


def check(name, model, frozen):
    """Refuse a model that cannot be a member as it is."""
    state = model._state
    if state is None:
        raise ValueError(f"Members must have learned already, and {name!r} has not: {model!r}.")
    if model._encoder is not None and not passes_numbers(model._encoder):
        raise ValueError(f"The member {name!r} has words of its own (encode=). Encode the data before, by one encoder for all.")
    if state.n_features is None or state.sparse:
        raise ValueError(f"Members take rows of numbers, and {name!r} has learned {'objects' if state.n_features is None else 'sparse rows'}.")
    if model.labels is not None:
        raise ValueError(f"The member {name!r} has labels={model.labels!r}, and an ensemble's members know labels by their places.")
    if model.class_weight is not None and not frozen:
        raise ValueError(f"The member {name!r} has class_weight={model.class_weight!r}, and an ensemble's members know labels by "
                         "their places. Set it to None and give it to the ensemble, or freeze the members.")


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
