"""What a composite has learned, and the parameters that were in force."""
from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, ClassVar

from onlinekernels.model.learned import Learned
from onlinekernels.model.members import member_state, shown
from onlinekernels.nouns.params import same_parameters

if TYPE_CHECKING:
    from onlinekernels.annotations import Any

__all__ = ["CompositePlan", "CompositeState", "grown"]


@dataclass(frozen=True, eq=False)
class CompositePlan:
    """Validated parameters in force of a composite, which only `fit` may change. A subclass has a field for each of its own."""

    loss: Any
    least_features: ClassVar[int] = 1

    def parts(self):
        """What it was made from, {name: value}. A single model also has a rule."""
        return {"rule": None, **{field.name: getattr(self, field.name) for field in fields(self)}}

    @classmethod
    def restored(cls, parts):
        """The plan that `parts` described; ValueError if it is one of another learner."""
        parts = {name: value for name, value in parts.items() if name != "rule"}
        if set(parts) != {field.name for field in fields(cls)}:
            raise ValueError("the parameters in force are not those of this learner")
        return cls(**parts)

    def check_change(self, after):
        """ValueError unless a model of this plan can go on with another one: they must be the same."""
        now = after.parts()
        for name, before in self.parts().items():
            if not same_parameters(before, now[name]):
                raise ValueError(f"The {name!r} parameter changed after fitting, from {before!r} to {now[name]!r}; "
                                 "call fit to start anew.")


class CompositeState(Learned):
    """What a composite has learned: labels, and a `Composition`. What answers mean is what it means for single models."""

    def __init__(self, plan, n_features, labels, targets, composition):
        super().__init__(n_features, labels, targets, "one" if labels is None and targets == 1 else "all")
        self.plan = plan
        self.composition = composition

    largest_target = 1e150

    def answer_of_one(self, scores):
        """The answer for the scores of one row, 1-d."""
        if self.labels is not None:
            return self.labels.order[self.labels.best_of_one(scores)]
        if self.loss.task == "novelty":
            return 1 if scores[0] >= self.scalar() else -1
        return float(scores[0]) if self.targets == 1 else scores

    @property
    def loss(self):
        return self.plan.loss

    def joined(self):
        """Number of labels that have been learned; all of a fixed set."""
        if self.labels is None:
            return self.targets
        return len(self.labels.order) if self.labels.fixed else self.composition.joined

    def take_labels(self, labels):
        """Go on with labels that may be shown in another order, which decides among equals."""
        self.labels = labels

    def scalar(self):
        """The threshold of a detector; 0 for other tasks."""
        return self.composition.threshold() if self.loss.task == "novelty" else 0.0

    def refreshed(self, learner):
        """The state under the parameters that a learner has now."""
        self.plan.check_change(learner._plan())
        self.stale = False
        return self

    def widened(self, width, fill):
        """Refuse more features: members have begun with those there were."""
        raise ValueError(f"a model with {self.n_features} features cannot take new ones after its first example: name all of "
                         "them in features=.")

    def check_learned(self):
        """ValueError unless what the members have learned can be read again."""
        for member in self.composition.members:
            model = shown(member)
            if model is not None:
                model._state.check_learned()
            elif member.model is not None:
                member.model.check_learned()

    def to_dict(self):
        """Everything that is learned, as plain values, nouns and arrays."""
        learned = self.composition.state()
        if self.composition.members:
            members = [member for member in self.composition.members if shown(member) is not None]
            learned.update({"members": {member.name: member_state(member) for member in members}} if members else {})
        return {
            "plan": self.plan.parts(),
            "stale": self.stale,
            "n_features": self.n_features,
            "feature_names": self.feature_names,
            "targets": self.targets,
            "labels": None if self.labels is None else self.labels.state(),
            "learned": flat(learned),
        }


def flat(tree, path=""):
    """A dictionary of dictionaries as one, with names like paths; an empty one is itself.

    >>> flat({"a": {"b": 1, "c": {"d": 2}}})
    {'a/b': 1, 'a/c/d': 2}
    """
    found = {}
    for name, value in tree.items():
        is_branch = isinstance(value, dict) and value
        found.update(flat(value, f"{path}{name}/") if is_branch else {f"{path}{name}": value})
    return found


def grown(values):
    """The dictionary of dictionaries that `flat` was given.

    >>> grown({"a/b": 1, "a/c/d": 2})
    {'a': {'b': 1, 'c': {'d': 2}}}
    """
    tree = {}
    for path, value in values.items():
        *branches, name = path.split("/")
        place = tree
        for branch in branches:
            place = place.setdefault(branch, {})
        place[name] = value
    return tree
