"""Models as estimators of river: features are dictionaries, and names come and go.

`as_river` wraps any model by the task of its loss: `RiverClassifier`, `RiverRegressor` or `RiverDetector`.

A name gets a column when it is first learned, and a missing feature is 0. For kernels whose values do not change when
points get columns of zeros, which is all but additive and precomputed ones, this is exact: the model is the one of a
dense array that had all columns from the start.
"""
from __future__ import annotations

import copy
import math
import numbers
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

try:
    from river import base
except ImportError as error:
    raise ImportError("onlinekernels.river needs river: pip install river pandas") from error

from onlinekernels.algorithms import NORMA
from onlinekernels.base.estimator import can_grow, Estimator
from onlinekernels.base import docstrings
from onlinekernels.kernels import as_kernel
from onlinekernels.base.labelvalues import as_list, plain
from onlinekernels.base.validation import bad_parameter, check_class_weight

if TYPE_CHECKING:
    from onlinekernels.annotations import Any

try:
    AnomalyDetector = base.AnomalyDetector
except AttributeError:  # in older versions of river
    from river.anomaly.base import AnomalyDetector  # type: ignore[no-redef]

__all__ = ["RiverClassifier", "RiverDetector", "RiverMultiTargetRegressor", "RiverRegressor", "as_river"]


def as_river(model: Any, **options: Any) -> Any:
    """The wrapper for a model, by the task of its loss.

    Parameters
    ----------
    model : a model of this library
    **options
        Other parameters of the wrapper, such as `features`. With `targets`, a regressor takes and gives dictionaries of
        several targets; ``targets=None`` takes their names from the first example.

    Examples
    --------
    >>> from onlinekernels import NORMA
    >>> as_river(NORMA("squared", "linear"))
    RiverRegressor (
      model=NORMA(loss='squared', kernel='linear')
      features=None
    )
    """
    regressor = RiverMultiTargetRegressor if "targets" in options else RiverRegressor
    return {"regression": regressor, "novelty": RiverDetector}.get(_task_of(model), RiverClassifier)(model, **options)


class Wrapper:
    """What all wrappers share: the copy of the model that learns, and the columns of the named features.

    Parameters
    ----------
    model
        A model of this library. A copy learns, `learner`, and the model itself stays as it is; if it is fitted,
        wrapper and clones go on from there.
    features
        Names of the first columns, in order. Needed for models that were fitted to arrays without names, and for
        additive kernels and models that encode if the first example does not show all names; otherwise they get columns
        as they come. A missing feature is 0, and a hole for models that encode.
    """

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        docstrings.fill(cls)

    _tasks: tuple[str, ...] = ()
    _losses: tuple[str, ...] = ("squared",)  # of the models that river's checks make

    @classmethod
    def _unit_test_params(cls):
        yield from ({"model": NORMA(loss, step=0.1, budget=100)} for loss in cls._losses)

    def __init__(self, model: Any, features: Any = None) -> None:
        self.model, self.features = model, features
        names = tuple(getattr(model, "feature_names_in_", ()) if features is None else features)
        self._check(names)
        self.learner, self._learned = copy.deepcopy(model), model.__sklearn_is_fitted__()
        self._kernel = as_kernel(getattr(model, "kernel", None), model)
        self._encodes = bool(model.encode)  # features of all kinds, by their names
        self._takes_objects = self._encodes or self._kernel.takes_objects()
        self._columns = {name: column for column, name in enumerate(names)}
        self._blank = np.zeros(max(len(names), 1))  # no features; there may be spare columns at the end

    def _check(self, names):
        model, name = self.model, type(self).__name__
        if _task_of(model) not in self._tasks:
            tasks = " or ".join(self._tasks)
            raise ValueError(f"The 'model' parameter of {name} must have a loss for {tasks}. Got {model!r} instead; "
                             "as_river(model) chooses the wrapper.")
        if isinstance(self.features, str) or len(set(names)) != len(names):
            raise bad_parameter(self, "features", "a list of different names", self.features)
        if model.__sklearn_is_fitted__() and model._state.sparse:
            raise ValueError(f"The model of {name} was fitted to sparse rows; expected dense ones.")
        width = getattr(model, "n_features_in_", None)  # does not exist before fitting, nor for objects
        if width is not None and len(names) != width:
            expected = f"the names of the {width} columns that the model was fitted with"
            raise bad_parameter(self, "features", expected, self.features)

    # ---- Features -----------------------------------------------------------------------------

    def _example(self, x):
        """(x as the learner takes it, its new names)."""
        if self._encodes and isinstance(x, Mapping):  # the encoder knows what to do with new names
            return dict(x) if self._learned else {**dict.fromkeys(self._columns), **x}, ()
        if self._takes_objects:
            return copy.copy(x), ()
        if not isinstance(x, Mapping):
            raise TypeError(f"x must be a dictionary of features. Got {x!r} instead.")
        for name, value in x.items():
            if type(value) is not float or not math.isfinite(value):
                _check_number(value, f"x[{name!r}]")
        columns, new_names = self._columns_of(tuple(x))
        row = self._blank.copy()
        row[columns] = np.array([*x.values()], dtype=float)
        return row, new_names

    def _columns_of(self, names):
        """(columns of the names, those of them that are new); new ones get columns behind the others."""
        columns = self._columns
        new_names = tuple(name for name in names if name not in columns)
        if new_names:
            self._grow(len(columns) + len(new_names), new_names)
            columns = {name: column for column, name in enumerate((*columns, *new_names))}
        return [columns[name] for name in names], new_names

    def _grow(self, width, new):
        """Spare columns, so that there are at least `width`; the learner's function stays as it is."""
        if not self._learned:
            self._blank = np.zeros(width)
        elif width > len(self._blank):
            if not can_grow(self._kernel, 0.0):
                raise ValueError(f"x has the new feature {new[0]!r}, and a model with the kernel {self._kernel!r} "
                                 "cannot take new ones after its first example: name all of them in features=.")
            width += width // 2
            self.learner._state = self.learner._state.widened(width, 0.0)
            self._blank = np.zeros(width)

    # ---- Learning -----------------------------------------------------------------------------

    _first_time: dict[str, Any] = {}  # keywords for the first call of partial_fit

    def _learn_one(self, x, y=None, w=1.0):
        example, new_names = self._example(x)
        changes = new_names or not self._learned
        before = getattr(self.learner, "t_", 0) if changes else None
        try:
            if self._learned and w == 1.0:
                self.learner.learn_one(example, y)
            else:
                options = {} if self._learned else self._first_time
                self.learner.partial_fit(_alone(example), None if y is None else [y], sample_weight=[w], **options)
        finally:
            if changes and getattr(self.learner, "t_", 0) > before:  # a warning that is an error comes after the row
                self._learned = True
                self._columns = {name: column for column, name in enumerate((*self._columns, *new_names))}


class RiverClassifier(Wrapper, base.Classifier):
    """A model with a loss for two or many classes, as a classifier of river.

    Before the first example `predict_one` gives None. Probabilities exist where the model has `predict_proba`, as with
    logistic losses; before the first example they are 1/2 each for two classes, and none for many.

    Parameters
    ----------
    {model} {features}
    classes
        The negative and the positive label of a two-class loss, or all labels of a multiclass loss. None takes
        them as they come: of two, 1 and True are positive, 0, -1 and False negative, and any others are
        negative first and positive second.

    Examples
    --------
    >>> from onlinekernels import NORMA
    >>> from onlinekernels.river import RiverClassifier
    >>> model = RiverClassifier(NORMA("hinge", "gaussian"))
    >>> model.learn_one({"length": 1.0}, "ham")
    >>> model.learn_one({"length": -1.0, "capitals": 3}, "spam")
    >>> model.predict_one({"length": 0.9}), model.predict_one({"capitals": 2})
    ('ham', 'spam')
    """

    _tasks = ("binary", "multiclass")
    _losses = ("hinge", "logistic", "multiclass_logistic")

    def __init__(self, model: Any, features: Any = None, classes: Any = None) -> None:
        self.classes = classes
        super().__init__(model, features)
        self._two = _task_of(model) == "binary"
        self._first_time = {"classes": classes} if self._multiclass else {}
        self._pair = [False, True]  # the negative and the positive of what a two-class learner is given
        self._given: dict[Any, Any] = {}  # and for which label
        if self._learned and classes is not None:
            raise bad_parameter(self, "classes", "None for a fitted model, which knows its labels", classes)
        if self._two and self._learned:
            self._pair = as_list(self.learner.classes_)
            self._given = dict(zip(self._pair, self._pair))
        elif self._two and classes is not None:
            self._given = dict(zip(classes, self._pair))
            if not len(self._given) == len(tuple(classes)) == 2:
                raise bad_parameter(self, "classes", "two different labels for a two-class loss", classes)
        self._weights: dict[Any, float] = {}  # of classes, if the learner does not know them by their names
        if self._two and not self._learned and isinstance(model.class_weight, dict):
            check_class_weight(model, model.class_weight)
            self._weights, self.learner.class_weight = model.class_weight, None

    @property
    def _multiclass(self):  # river asks, too
        return not self._two

    def learn_one(self, x: Any, y: Any, w: float = 1.0) -> None:
        """Learn one example; `w` multiplies its loss."""
        if not self._two:
            return self._learn_one(x, y, w)
        given = self._given if y in self._given else self._with_label(self._given, y)
        self._learn_one(x, given[y], w * self._weights.get(y, 1.0))
        self._given = given

    def _with_label(self, given, label):
        """What the learner is given for each label, with one more."""
        if label is None or label != label:
            raise ValueError(f"y must be a label. Got {label!r} instead.")
        if len(given) == 2:
            raise ValueError(
                f"y must be one of {', '.join(map(repr, given))} for a loss of two classes. Got {label!r} instead; "
                "for more use a loss such as MulticlassHinge(), or multiclass.OneVsRestClassifier of river.")
        if isinstance(label, (bool, np.bool_)) and not given:
            return {False: False, True: True}
        free = [side for side in self._pair if side not in given.values()]
        likely = label not in (0, -1) if label in (0, -1, 1) else free[0]
        return {**given, plain(label): likely if likely in free else free[0]}

    def _labels(self):
        """The two labels as far as they are known, the negative one first; booleans before any is, as river has it."""
        return sorted(self._given, key=lambda label: self._pair.index(self._given[label])) or [False, True]

    def predict_one(self, x: Any) -> Any:
        """The label of x; None before the first example, and the only one as long as there is one."""
        if not self._learned:
            return None
        answer = self.learner.predict_one(self._example(x)[0])
        if not self._two:
            return answer
        return next((label for label, side in self._given.items() if side == answer), next(iter(self._given)))

    def predict_proba_one(self, x: Any) -> dict[Any, float]:
        """{label: probability} of the labels seen so far; for models with `predict_proba` only."""
        if not hasattr(self.model, "predict_proba"):
            raise NotImplementedError(f"{self.learner!r} gives no probabilities; the logistic losses do.")
        labels = self._labels() if self._two else []
        if not self._learned or len(labels) == 1:
            return dict.fromkeys(labels, 1.0 / max(len(labels), 1))
        row = self.learner.predict_proba(_alone(self._example(x)[0]))[0]
        return dict(zip(labels or as_list(self.learner.classes_), row.tolist()))


class RiverRegressor(Wrapper, base.Regressor):
    """A model with a regression loss, as a regressor of river.

    Before the first example `predict_one` gives 0.0.

    Parameters
    ----------
    {model} {features}

    Examples
    --------
    >>> from onlinekernels import NORMA
    >>> from onlinekernels.river import RiverRegressor
    >>> model = RiverRegressor(NORMA("squared", "linear", step=0.5, offset=False))
    >>> for _ in range(20):
    ...     model.learn_one({"rooms": 1.0}, 3.0)
    >>> round(model.predict_one({"rooms": 2.0}), 1)
    6.0
    """

    _tasks = ("regression",)

    def learn_one(self, x: Any, y: Any, w: float = 1.0) -> None:
        """Learn one example; `w` multiplies its loss."""
        self._learn_one(x, float(y) if isinstance(y, numbers.Real) else y, w)

    def predict_one(self, x: Any) -> Any:
        """The target of x; 0.0 before the first example."""
        return self.learner.predict_one(self._example(x)[0]) if self._learned else 0.0


class RiverMultiTargetRegressor(Wrapper, base.MultiTargetRegressor):
    """A model with a regression loss, as a regressor of river whose targets are dictionaries, too.

    Before the first example `predict_one` gives 0.0 for each target that `targets` names.

    Parameters
    ----------
    {model} {features}
    targets
        Names of the targets, in order. None takes those of the first example. Needed for models that are fitted.

    Examples
    --------
    >>> from onlinekernels import NORMA
    >>> from onlinekernels.river import RiverMultiTargetRegressor
    >>> model = RiverMultiTargetRegressor(NORMA("squared", "linear", step=0.5, offset=False))
    >>> for _ in range(20):
    ...     model.learn_one({"rooms": 1.0}, {"price": 3.0, "rent": 1.0})
    >>> {name: round(value, 1) for name, value in model.predict_one({"rooms": 2.0}).items()}
    {'price': 6.0, 'rent': 2.0}
    """

    _tasks = ("regression",)

    def __init__(self, model: Any, features: Any = None, targets: Any = None) -> None:
        self.targets = targets
        super().__init__(model, features)
        self._targets = () if targets is None else tuple(targets)  # in the order of the model's outputs
        n, fitted = len(self._targets), model._state.targets if self._learned else None
        is_list = targets is None or not isinstance(targets, str) and len(set(self._targets)) == n > 0
        if not is_list or fitted not in (None, n):
            each = "" if fitted is None else f", one for each of the {fitted} targets that the model was fitted to"
            raise bad_parameter(self, "targets", f"a list of different names{each}", targets)

    def learn_one(self, x: Any, y: Any) -> None:
        """Learn one example; y is {name: number}, always with the same names."""
        if not isinstance(y, Mapping) or not y:
            raise TypeError(f"y must be a dictionary of targets. Got {y!r} instead.")
        targets = self._targets or tuple(y)
        if set(y) != set(targets):
            raise ValueError(f"y must have the targets {', '.join(map(repr, targets))}. Got {tuple(y)!r} instead.")
        self._learn_one(x, [y[name] for name in targets] if len(targets) > 1 else y[targets[0]])
        self._targets = targets

    def predict_one(self, x: Any) -> Any:
        """{name: number}; each is 0.0 before the first example."""
        values = self.learner.predict_one(self._example(x)[0]) if self._learned else np.zeros(len(self._targets))
        return dict(zip(self._targets, np.atleast_1d(values).tolist(), strict=True))


class RiverDetector(Wrapper, AnomalyDetector):
    """A model with a novelty loss, as an anomaly detector of river.

    The score is ``offset_ - f(x)``: the higher, the more novel, and above 0 where `predict` of the model says -1. It is
    0.0 before the first example.

    Parameters
    ----------
    {model} {features}

    Examples
    --------
    >>> from onlinekernels import NORMA
    >>> from onlinekernels.river import RiverDetector
    >>> model = RiverDetector(NORMA("nunovelty", "gaussian"))
    >>> for i in range(1000):
    ...     model.learn_one({"heat": 0.01 * (i % 10)})
    >>> model.score_one({"heat": 0.0}) < 0.0 < model.score_one({"heat": 5.0})
    True
    """

    _tasks = ("novelty",)
    _losses = ("novelty", "nu_novelty")

    def learn_one(self, x: Any) -> None:
        """Learn one example."""
        self._learn_one(x)

    def score_one(self, x: Any) -> float:
        """How novel x is; 0.0 before the first example."""
        return -float(self.learner.decision_function(_alone(self._example(x)[0]))[0]) if self._learned else 0.0


# ---- Checks ------------------------------------------------------------------------------------


def _task_of(model):
    if not isinstance(model, Estimator) or not hasattr(model, "learn_one"):
        raise TypeError(f"model must be a model of this library that has learn_one. Got {model!r} instead.")
    return model._current_loss().task


def _alone(example):
    """A single example as the learner takes many."""
    return example[None] if isinstance(example, np.ndarray) else [example]


def _check_number(value, what):
    """One feature: TypeError if it is no number, ValueError if it is not finite."""
    if not isinstance(value, (numbers.Real, np.bool_)):
        hint = "put preprocessing.OneHotEncoder() of river before the model."
        raise TypeError(f"{what} must be a number. Got {value!r} instead; {hint}")
    if not math.isfinite(value):
        hint = "leave missing features out, or put preprocessing.StatImputer() of river before the model."
        raise ValueError(f"{what} must be a finite number. Got {value!r} instead; {hint}")
