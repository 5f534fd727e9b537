"""What is learned as plain values, nouns and arrays, for files and pickles; and back, where all is checked."""
import numpy as np

from onlinekernels._core.arrays import check_array, check_number
from onlinekernels.model import defaults
from onlinekernels.model.beginning import Beginning
from onlinekernels.model.labels import BinaryLabels, ManyLabels
from onlinekernels.model.plan import Plan

__all__ = ["Stored"]


class Stored:
    """`to_dict` and `from_dict` of a `State`."""

    def to_dict(self):
        """Everything that is learned, and the plan's parts, as plain values, nouns and arrays."""
        return {
            "plan": self.plan.parts(),
            "stale": self.stale,
            "rows": self.rows,
            "unit": self.plan.unit,
            "beginning": None if self.beginning is None else self.current_beginning().to_dict(),
            "n_features": self.n_features,
            "feature_names": self.feature_names,
            "scaler": self.scaler.state() if self.plan.scale else None,
            "target_scaler": None if self.target_scaler is None else self.target_scaler.state(),
            "dtype": self.function.dtype.str,
            "sparse": self.sparse,
            "targets": self.targets,
            "labels": None if self.labels is None else self.labels.state(),
            "learned": self.hypothesis.state(),
        }

    def check_learned(self):
        """ValueError unless `from_dict` would take what is learned."""
        self.hypothesis.check_state(self.hypothesis.state())

    @classmethod
    def from_dict(cls, learned):
        """The state that `to_dict` described; ValueError if its parts do not fit each other."""
        plan = Plan(**learned["plan"])
        if plan.rule.is_open:
            raise ValueError("the step or the regularization is missing")
        labels = _checked_labels(plan, learned)
        n_features, dtype, sparse, n_targets = _checked_rows(plan, learned)
        state = cls(plan, n_features, dtype, learned["learned"].get("origin"), labels, sparse, n_targets)
        state._make_room(learned["learned"])
        if plan.restricts:  # before the kernel looks at them
            _check_domain(plan.kernel, learned["learned"], n_features, dtype)
        state.hypothesis.restore(learned["learned"])
        state.take_labels(labels)
        state.make_ready()
        if plan.loss.task == "multiclass":
            excess = state.joined() - len(labels.order)
            if excess > 0 or labels.fixed and excess:
                raise ValueError(f"there are {'more' if excess > 0 else 'fewer'} outputs than labels")
        state.stale = bool(learned["stale"])
        state._restore_beginning(learned)
        state._restore_scalers(learned)
        state.restore_names(learned["feature_names"])
        return state

    def _restore_beginning(self, learned):
        """How many rows `fit` had, and the width of a default kernel with the first rows, which may still choose it."""
        plan, task = self.plan, self.loss.task
        self.rows = learned["rows"]
        if not (self.rows is None or type(self.rows) is int and self.rows > 0):
            raise ValueError("the number of rows makes no sense")
        plan.unit = check_number(learned["unit"], "unit", least=0.0)
        if learned["beginning"] is not None:
            if defaults.width(plan.kernel) is None or plan.scale or plan.unit == 0:
                raise ValueError("the kernel's width is not to be chosen any more")
            self.beginning = Beginning.restored(learned["beginning"], self.n_features, self.function.dtype, self.sparse)
            self.beginning.check_targets(self.targets, task, len(self.labels.order) if task == "multiclass" else 2)

    def _restore_scalers(self, learned):
        """What is known of features and of targets."""
        if (learned["scaler"] is None) != (not self.plan.scale):
            raise ValueError("the scaler does not fit the parameters")
        if self.plan.scale:
            self.engine.scaler.restore(learned["scaler"])
        if (learned["target_scaler"] is None) != (self.target_scaler is None):
            raise ValueError("the scaler of targets does not fit the parameters")
        if self.target_scaler is not None:
            self.target_scaler.restore(learned["target_scaler"])

    def _make_room(self, learned):
        """There may be more labels that have joined than are known by name, but not more than there are offsets."""
        if self.form != "one" and self.labels is not None and not self.labels.fixed:
            self.hypothesis.grow(np.size(learned["offset"]))


def _checked_labels(plan, learned):
    """The labels, or None."""
    kind = {"binary": BinaryLabels, "multiclass": ManyLabels}.get(plan.loss.task)
    if (kind is None) != (learned["labels"] is None):
        raise ValueError("the labels do not fit the loss")
    labels = None if kind is None else kind.restore(learned["labels"])
    if plan.labels is not None and not labels.fixed:
        raise ValueError("the labels of a structure are fixed, and these may grow")
    return labels


def _checked_rows(plan, learned):
    """(number of features, type of points, whether rows are sparse, number of targets)."""
    n_features, dtype, origin = learned["n_features"], learned["dtype"], learned["learned"].get("origin")
    if (n_features is None) != plan.takes_objects:
        raise ValueError("the number of features does not fit the kernel")
    if n_features is not None and (type(n_features) is not int or not 1 <= n_features < 2**31):
        raise ValueError("n_features is not a number of features")
    if dtype not in ("<f8", "<f4", np.dtype(float).str, np.dtype(np.float32).str):
        raise ValueError(f"points cannot be of type {dtype!r}")
    if plan.representation.double and dtype[1:] == "f4":
        raise ValueError("these points cannot be of single precision")
    dtype = np.dtype(np.float32 if dtype[1:] == "f4" else np.float64)  # the object that numpy shares
    if origin is not None:
        check_array(origin, "origin", dtype, (n_features,))
    sparse = learned["sparse"]
    if type(sparse) is not bool or sparse and not plan.kernel.on_inner_products():
        raise ValueError("the kernel does not fit sparse rows")
    n_targets = learned["targets"]
    if type(n_targets) is not int or not 1 <= n_targets < 2**31 or n_targets > 1 and plan.loss.task != "regression":
        raise ValueError("the number of targets makes no sense")
    plan.representation.check_sizes(learned["learned"], n_features, sparse)
    if n_targets > 1 and np.shape(learned["learned"]["offset"]) != (n_targets,):
        raise ValueError("the offsets do not have the number of targets")
    return n_features, dtype, sparse, n_targets


def _check_domain(kernel, learned, n_features, dtype):
    """Points, and landmarks of maps, must be where the kernel is defined; ValueError if they are not."""
    for name in learned:
        map_name, dot, last = name.rpartition(".")
        if last == "points":
            points = check_array(learned[name], "points", dtype, (-1, n_features))
            origin = learned.get(f"{map_name}{dot}origin")
            if len(points):
                origin = 0 if origin is None else check_array(origin, "origin", dtype, (n_features,))
                kernel.check_input(points + origin)
