"""Models as estimators of river: features are dictionaries, and names come and go.

`as_river` wraps any model by the task of its loss: `RiverClassifier`, `RiverRegressor` or `RiverDetector`.

A name gets a column when it is first learned, and a missing feature has the value `fill`.  For kernels whose
values do not change when points get columns of equal entries, which is all but additive and precomputed ones
as long as `fill` is 0, this is exact: the model is the one of a dense array that had all columns from the start.
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
from onlinekernels.base.estimator import OnlineLearner
from onlinekernels.base import docstrings
from onlinekernels.kernels import as_kernel
from onlinekernels.base.labelvalues import as_list, label_array, plain
from onlinekernels.base.validation import bad_parameter, check_class_weight

if TYPE_CHECKING:
    from onlinekernels.annotations import Any, Examples

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
      fill=0.
    )
    """
    task = _task_of(model)
    if "targets" in options:
        return RiverMultiTargetRegressor(model, **options)
    return {"regression": RiverRegressor, "novelty": RiverDetector}.get(task, RiverClassifier)(model, **options)


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
        as they come.
    fill
        Value of a missing feature. For models that encode it is a hole instead.
    """

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        docstrings.fill(cls)

    _tasks: tuple[str, ...] = ()
    _losses: tuple[str, ...] = ("squared",)  # of the models that river's checks make

    @classmethod
    def _unit_test_params(cls):
        yield from ({"model": NORMA(loss, step=0.1, budget=100)} for loss in cls._losses)

    def __init__(self, model: Any, features: Any = None, fill: Any = 0.0) -> None:
        self.model = model
        self.features = features
        self.fill = fill
        self._names = tuple(getattr(model, "feature_names_in_", ()) if features is None else features)  # by column
        self._check()
        self.learner = copy.deepcopy(model)
        self._learned = model.__sklearn_is_fitted__()
        self._encodes = bool(model.encode)  # features of all kinds, by their names
        self._takes_objects = self._encodes or as_kernel(model.kernel, model).takes_objects()
        self._columns = {name: column for column, name in enumerate(self._names)}
        self._blank = self._missing(len(self._names))  # no features; there may be spare columns at the end

    def _check(self):
        model, names = self.model, self._names
        if _task_of(model) not in self._tasks:
            raise ValueError(
                f"The 'model' parameter of {type(self).__name__} must have a loss for {' or '.join(self._tasks)}. "
                f"Got {model!r} instead; as_river(model) chooses the wrapper."
            )
        if not isinstance(self.fill, numbers.Real) or not math.isfinite(self.fill):
            raise bad_parameter(self, "fill", "a finite number", self.fill)
        if isinstance(self.features, str) or len(set(names)) != len(names):
            raise bad_parameter(self, "features", "a list of different names", self.features)
        if model.__sklearn_is_fitted__() and model._state.sparse:
            raise ValueError(f"The model of {type(self).__name__} was fitted to sparse rows; expected dense ones.")
        width = getattr(model, "n_features_in_", None)  # does not exist before fitting, nor for objects
        if width is not None and len(names) != width:
            expected = f"the names of the {width} columns that the model was fitted with"
            raise bad_parameter(self, "features", expected, self.features)

    # ---- Features -----------------------------------------------------------------------------

    def _example(self, x):
        """(x as the learner takes it, its new names)."""
        if self._encodes and isinstance(x, Mapping):
            return self._with_holes(x)
        if self._takes_objects:
            return copy.copy(x), ()
        values = _numbers_of(x)
        columns, newcomers = self._columns_of(tuple(x))
        row = self._blank.copy()
        row[columns] = values
        return row, newcomers

    def _examples(self, X):
        """(the rows of a data frame as the learner takes them, its new names)."""
        if not hasattr(X, "iloc") or not hasattr(X, "columns"):
            raise TypeError(f"X must be a pandas DataFrame. Got {type(X).__name__} instead.")
        if self._takes_objects:
            newcomers = tuple(X.columns) if self._encodes and not self._learned and not self._names else ()
            return X if self._encodes else X.to_dict("records"), newcomers
        names = tuple(X.columns)
        if len(set(names)) != len(names):
            raise ValueError(f"X must have columns of different names. Got {names!r} instead.")
        values = [_column_numbers(X[name], name) for name in names]
        columns, newcomers = self._columns_of(names)
        rows = np.tile(self._blank, (len(X), 1))
        if names:
            rows[:, columns] = np.column_stack(values)
        return rows, newcomers

    def _with_holes(self, x):
        """(a dictionary for a learner that encodes, with holes for what it lacks, its new names)."""
        newcomers = tuple([name for name in x if name not in self._columns])
        if newcomers and self._learned:
            if not self._names:  # fitted to rows without names: the encoder knows what to say
                return copy.copy(x), ()
            raise ValueError(
                f"x has the new feature {newcomers[0]!r}, and a model that encodes cannot take new ones after its "
                "first example: name all of them in features=, or leave OneHotEncoder out, since it takes words as they are."
            )
        return {**dict.fromkeys(self._names), **x}, newcomers

    def _columns_of(self, names):
        """(columns of the names, those of them that are new); new ones get columns behind the others."""
        if names == self._names:
            return slice(len(names)), ()
        columns = self._columns
        newcomers = tuple([name for name in names if name not in columns])
        if newcomers:
            self._make_room(len(columns) + len(newcomers), newcomers)
            columns = {**columns, **{name: len(columns) + i for i, name in enumerate(newcomers)}}
        return [columns[name] for name in names], newcomers

    def _make_room(self, width, new):
        """Spare columns, so that there are at least `width`; the learner's function stays as it is."""
        if not self._learned:
            self._blank = self._missing(width)
        elif width > len(self._blank):
            kernel = as_kernel(self.model.kernel, self.model)
            if not _can_grow(kernel, 0.0 if self.model.scale else float(self.fill)):
                raise ValueError(
                    f"x has the new feature {new[0]!r}, and a model with the kernel {kernel!r} and fill={self.fill!r} "
                    "cannot take new ones after its first example: name all of them in features=."
                )
            width += width // 2
            self.learner._state = self.learner._state.widened(width, float(self.fill))
            self._blank = self._missing(width)

    def _missing(self, width):
        return np.full(max(width, 1), float(self.fill))

    # ---- Learning and predicting --------------------------------------------------------------

    _first_time: dict[str, Any] = {}  # keywords for the first call of partial_fit

    def _learn_one(self, x, y=None, w=1.0):
        example, newcomers = self._example(x)
        if self._learned and w == 1.0:
            self.learner.learn_one(example, y)
            self._keep(newcomers)
        else:
            self._learn(_alone(example), None if y is None else [y], newcomers, [w])

    def _learn_many(self, X, y, weights=None):
        if len(X):
            examples, newcomers = self._examples(X)
            self._learn(examples, y, newcomers, weights)

    def _learn(self, examples, y, newcomers, weights):
        """partial_fit; new names stay if anything was learned, also before an error."""
        before, options = self._t(), {} if self._learned else self._first_time
        try:
            self.learner.partial_fit(examples, y, sample_weight=weights, **options)
        finally:
            if self._t() > before:
                self._learned = True
                self._keep(newcomers)

    def _t(self):
        """Examples learned."""
        return getattr(self.learner, "t_", 0)

    def _keep(self, newcomers):
        if newcomers:
            self._names = (*self._names, *newcomers)
            self._columns = {name: column for column, name in enumerate(self._names)}

    def _predict_many(self, X):
        """`predict` of the learner for the rows of a data frame; zeros before the first example."""
        return self.learner.predict(self._examples(X)[0]) if self._learned and len(X) else np.zeros(len(X))


class RiverClassifier(Wrapper, base.MiniBatchClassifier):
    """A model with a loss for two or many classes, as a classifier of river.

    Before the first example `predict_one` gives None. Probabilities exist where the model has `predict_proba`, as with
    logistic losses; before the first example they are 1/2 each for two classes, and none for many.

    Parameters
    ----------
    {model}
    {features}
    {fill}
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

    def __init__(self, model: Any, features: Any = None, fill: Any = 0.0, classes: Any = None) -> None:
        self.classes = classes
        super().__init__(model, features, fill)
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

    def learn_many(self, X: Examples, y: Any) -> None:
        """Learn the rows of a data frame in their order: what one at a time would give, but faster."""
        if not self._two:
            return self._learn_many(X, list(y))
        given, before = self._given, self._t()
        for label in y:
            given = given if label in given else self._with_label(given, label)
        weights = [self._weights.get(label, 1.0) for label in y] if self._weights else None
        try:
            self._learn_many(X, [given[label] for label in y], weights)
        finally:
            if self._t() > before:
                self._given = given

    def _with_label(self, given, label):
        """What the learner is given for each label, with one more."""
        if label is None or label != label:
            raise ValueError(f"y must be a label. Got {label!r} instead.")
        if len(given) == 2:
            raise ValueError(
                f"y must be one of {', '.join(map(repr, given))} for a loss of two classes. Got {label!r} instead; "
                "for more use a loss such as MulticlassHinge(), or multiclass.OneVsRestClassifier of river."
            )
        if isinstance(label, (bool, np.bool_)) and not given:
            return {False: False, True: True}
        free = [side for side in self._pair if side not in given.values()]
        likely = label not in (0, -1) if label in (0, -1, 1) else free[0]
        return {**given, plain(label): likely if likely in free else free[0]}

    def _labels(self):
        """The two labels as far as they are known, the negative one first; booleans before any is, as river has it."""
        return sorted(self._given, key=lambda label: self._pair.index(self._given[label])) or [False, True]

    def _named(self, answers):
        """The labels of what a two-class learner predicts; the only one, as long as there is one."""
        names = {side: label for label, side in self._given.items()}
        return [names.get(answer, next(iter(self._given))) for answer in answers]

    def predict_one(self, x: Any) -> Any:
        """The label of x; None before the first example."""
        if not self._learned:
            return None
        answer = self.learner.predict_one(self._example(x)[0])
        return self._named([answer])[0] if self._two else answer

    def predict_many(self, X: Examples) -> Any:
        """The labels of the rows of a data frame."""
        import pandas

        if not self._learned or not len(X):
            return pandas.Series([None] * len(X), index=X.index, dtype=object)
        answers = as_list(self._predict_many(X))
        return pandas.Series(label_array(self._named(answers) if self._two else answers), index=X.index)

    def predict_proba_one(self, x: Any) -> dict[Any, float]:
        """{label: probability} of the labels seen so far; for models with `predict_proba` only."""
        self._check_probabilistic()
        labels, rows = self._probabilities(_alone(self._example(x)[0]) if self._learned else [x])
        return dict(zip(labels, rows[0].tolist()))

    def predict_proba_many(self, X: Examples) -> Any:
        """A data frame with one column for each label seen so far; for models with `predict_proba` only."""
        import pandas

        self._check_probabilistic()
        labels, rows = self._probabilities(self._examples(X)[0] if self._learned and len(X) else X)
        return pandas.DataFrame(dict(zip(labels, rows.T)), index=X.index)

    def _check_probabilistic(self):
        if not hasattr(self.model, "predict_proba"):
            raise NotImplementedError(f"{self.learner!r} gives no probabilities; the logistic losses do.")

    def _probabilities(self, examples):
        """(labels, their probabilities with a row for each example)."""
        labels = self._labels() if self._two else []
        if len(labels) == 1:
            return labels, np.ones((len(examples), 1))
        if not self._learned or not len(examples):
            return labels, np.full((len(examples), len(labels)), 0.5)
        return labels or as_list(self.learner.classes_), self.learner.predict_proba(examples)


class RiverRegressor(Wrapper, base.MiniBatchRegressor):
    """A model with a regression loss, as a regressor of river.

    Before the first example `predict_one` gives 0.0.

    Parameters
    ----------
    {model}
    {features}
    {fill}

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

    def learn_many(self, X: Examples, y: Any) -> None:
        """Learn the rows of a data frame in their order: what one at a time would give, but faster."""
        self._learn_many(X, np.asarray(y))

    def predict_one(self, x: Any) -> Any:
        """The target of x; 0.0 before the first example."""
        return self.learner.predict_one(self._example(x)[0]) if self._learned else 0.0

    def predict_many(self, X: Examples) -> Any:
        """The targets of the rows of a data frame."""
        import pandas

        return pandas.Series(self._predict_many(X), index=X.index)


class RiverMultiTargetRegressor(Wrapper, base.MultiTargetRegressor):
    """A model with a regression loss, as a regressor of river whose targets are dictionaries, too.

    Before the first example `predict_one` gives 0.0 for each target that `targets` names.

    Parameters
    ----------
    {model}
    {features}
    {fill}
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

    def __init__(self, model: Any, features: Any = None, fill: Any = 0.0, targets: Any = None) -> None:
        self.targets = targets
        super().__init__(model, features, fill)
        self._targets = () if targets is None else tuple(targets)  # in the order of the model's outputs
        fitted = model._state.targets if self._learned else None
        expected = "a list of different names"
        if fitted is not None:
            expected += f", one for each of the {fitted} targets that the model was fitted to"
        is_list = not isinstance(targets, str) and len(set(self._targets)) == len(self._targets)
        if not is_list or targets is not None and not self._targets or fitted not in (None, len(self._targets)):
            raise bad_parameter(self, "targets", expected, targets)

    def learn_one(self, x: Any, y: Any) -> None:
        """Learn one example; y is {name: number}, always with the same names."""
        targets = self._checked_targets(y)
        self._learn_one(x, [y[name] for name in targets] if len(targets) > 1 else y[targets[0]])
        self._targets = targets

    def predict_one(self, x: Any) -> Any:
        """{name: number}; each is 0.0 before the first example."""
        values = self.learner.predict_one(self._example(x)[0]) if self._learned else np.zeros(len(self._targets))
        return dict(zip(self._targets, np.atleast_1d(values).tolist(), strict=True))

    def _checked_targets(self, y):
        """The names of the targets, in the order of the outputs; those of y must be the same."""
        if not isinstance(y, Mapping) or not y:
            raise TypeError(f"y must be a dictionary of targets. Got {y!r} instead.")
        names = tuple(y)
        targets = self._targets or names
        if set(names) != set(targets) or len(names) != len(targets):
            raise ValueError(f"y must have the targets {', '.join(map(repr, targets))}. Got {names!r} instead.")
        return targets


class RiverDetector(Wrapper, AnomalyDetector):
    """A model with a novelty loss, as an anomaly detector of river.

    The score is ``offset_ - f(x)``: the higher, the more novel, and above 0 where `predict` of the model says -1. It is
    0.0 before the first example.

    Parameters
    ----------
    {model}
    {features}
    {fill}

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
    if not isinstance(model, OnlineLearner) or not hasattr(model, "learn_one"):
        raise TypeError(f"model must be a model of this library that has learn_one. Got {model!r} instead.")
    return model._current_loss().task


def _alone(example):
    """A single example as the learner takes many."""
    return example[None] if isinstance(example, np.ndarray) else [example]


def _can_grow(kernel, fill):
    """Whether columns that hold `fill` in all points change no kernel value."""
    if kernel.coordinate(0) is not None:
        return False
    points = np.array([[0.25], [0.75]])
    try:
        return np.allclose(kernel(points), kernel(np.insert(points, 1, fill, axis=1)), rtol=1e-12, atol=0.0)
    except ValueError:  # a kernel of one column
        return False


def _numbers_of(x):
    """The values of a dictionary as an array of finite floats."""
    if not isinstance(x, Mapping):
        raise TypeError(f"x must be a dictionary of features. Got {x!r} instead.")
    for name, value in x.items():
        if type(value) is not float or not math.isfinite(value):
            _check_number(value, f"x[{name!r}]")
    return np.array([*x.values()], dtype=float)


def _column_numbers(column, name):
    """A column of a data frame as an array of finite floats."""
    values = column.to_numpy()
    if values.dtype.kind not in "fiub" or not np.isfinite(values).all():
        for value in values:
            _check_number(value, f"X[{name!r}]")
    return values.astype(float)


def _check_number(value, what):
    """One feature: TypeError if it is no number, ValueError if it is not finite."""
    if not isinstance(value, (numbers.Real, np.bool_)):
        raise TypeError(
            f"{what} must be a number. Got {value!r} instead; put preprocessing.OneHotEncoder() of river before the "
            "model."
        )
    if not math.isfinite(value):
        raise ValueError(
            f"{what} must be a finite number. Got {value!r} instead; leave missing features out, or put "
            "preprocessing.StatImputer() of river before the model."
        )
