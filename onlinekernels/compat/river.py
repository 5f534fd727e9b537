"""Models as estimators of river: features are dictionaries, and names come and go.

`as_river` wraps any model by the task of its loss: `RiverClassifier`, `RiverRegressor` or `RiverDetector`.

A name gets a column when it is first learned, and a missing feature has the value `fill`.  For kernels whose
values do not change when points get columns of equal entries, which is all but additive and precomputed ones
as long as `fill` is 0, this is exact: the model is the one of a dense array that had all columns from the start.
"""
import copy
import math
import numbers

import numpy as np

from onlinekernels.algorithms import NORMA, SILK
from onlinekernels.kernels import as_kernel
from onlinekernels.learner import OnlineLearner
from onlinekernels.losses import Insensitive, Logistic, MulticlassLogistic, NuNovelty
from onlinekernels.validation import bad_parameter, check_class_weight

try:
    from river import base
except ImportError as error:
    raise ImportError("onlinekernels.compat.river needs river: pip install river pandas") from error

try:
    AnomalyDetector = base.AnomalyDetector
except AttributeError:  # in older versions of river
    from river.anomaly.base import AnomalyDetector

__all__ = ["RiverClassifier", "RiverDetector", "RiverRegressor", "as_river"]


def as_river(model, **options):
    """The wrapper for a model, by the task of its loss.

    Parameters
    ----------
    model : a model of this library
    **options
        Other parameters of the wrapper, such as `features`.

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
    wrappers = {"regression": RiverRegressor, "novelty": RiverDetector}
    return wrappers.get(_task(model), RiverClassifier)(model, **options)


def _task(model):
    if not isinstance(model, OnlineLearner) or not hasattr(model, "learn_one"):
        raise TypeError(f"model must be a model of this library that has learn_one. Got {model!r} instead.")
    return model._current_loss().task


class _Wrapper:
    """What all wrappers share: the copy of the model that learns, and the columns of the named features."""

    _tasks = ()
    _labels = None  # of a two-class loss

    def __init__(self, model, features, fill):
        self.model = model
        self.features = features
        self.fill = fill
        self._check()
        self.learner = copy.deepcopy(model)
        self._learned = model.__sklearn_is_fitted__()
        self._takes_objects = as_kernel(model.kernel, model).ops() is None
        self._names = self._given_names()  # in the order of their columns
        self._columns = {name: column for column, name in enumerate(self._names)}
        self._blank = self._missing(len(self._names))  # no features; there may be spare columns at the end

    def _check(self):
        if _task(self.model) not in self._tasks:
            raise ValueError(
                f"The 'model' parameter of {type(self).__name__} must have a loss for {' or '.join(self._tasks)}. "
                f"Got {self.model!r} instead; as_river(model) chooses the wrapper."
            )
        if not isinstance(self.fill, numbers.Real) or not math.isfinite(self.fill):
            raise bad_parameter(self, "fill", "a finite number", self.fill)
        names = self._given_names()
        if isinstance(self.features, str) or len(set(names)) != len(names):
            raise bad_parameter(self, "features", "a list of different names", self.features)
        if self.model.__sklearn_is_fitted__() and self.model._state.sparse:
            raise ValueError(f"The model of {type(self).__name__} was fitted to sparse rows; expected dense ones.")
        width = getattr(self.model, "n_features_in_", None)  # does not exist before fitting, nor for objects
        if width is not None and len(names) != width:
            expected = f"the names of the {width} columns that the model was fitted with"
            raise bad_parameter(self, "features", expected, self.features)

    def _given_names(self):
        """Names that are known before the first example."""
        return tuple(getattr(self.model, "feature_names_in_", ()) if self.features is None else self.features)

    # ---- Examples -----------------------------------------------------------------------------

    def _example(self, x):
        """(x as the learner takes it, its new names)."""
        if self._takes_objects:
            return copy.copy(x), ()
        values = _numbers(x)
        columns, newcomers = self._places(tuple(x))
        row = self._blank.copy()
        row[columns] = values
        return row, newcomers

    def _examples(self, X):
        """(the rows of a data frame as the learner takes them, its new names)."""
        if not hasattr(X, "iloc") or not hasattr(X, "columns"):
            raise TypeError(f"X must be a pandas DataFrame. Got {type(X).__name__} instead.")
        if self._takes_objects:
            return X.to_dict("records"), ()
        names = tuple(X.columns)
        if len(set(names)) != len(names):
            raise ValueError(f"X must have columns of different names. Got {names!r} instead.")
        values = [_column_numbers(X[name], name) for name in names]
        columns, newcomers = self._places(names)
        rows = np.tile(self._blank, (len(X), 1))
        if names:
            rows[:, columns] = np.column_stack(values)
        return rows, newcomers

    def _places(self, names):
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

    # ---- Learning -----------------------------------------------------------------------------

    def _learn_one(self, x, y=None, w=1.0, labels=None):
        example, newcomers = self._example(x)
        if self._learned and w == 1.0:
            self.learner.learn_one(example, y)
            self._keep(newcomers, labels)
        else:
            self._learn(_alone(example), None if y is None else [y], newcomers, labels, sample_weight=[w])

    def _learn_many(self, X, y=None, labels=None, weights=None):
        if len(X):
            examples, newcomers = self._examples(X)
            self._learn(examples, y, newcomers, labels, sample_weight=weights)

    def _learn(self, examples, y, newcomers, labels, **options):
        """partial_fit; new names and labels stay if anything was learned, also before an error."""
        before = getattr(self.learner, "t_", 0)
        if not self._learned:
            options.update(self._first_time())
        try:
            self.learner.partial_fit(examples, y, **options)
        finally:
            if getattr(self.learner, "t_", 0) > before:
                self._learned = True
                self._keep(newcomers, labels)

    def _first_time(self):
        """Keywords for the first call of partial_fit."""
        return {}

    def _keep(self, newcomers, labels):
        self._labels = labels
        if newcomers:
            self._names = (*self._names, *newcomers)
            self._columns = {name: column for column, name in enumerate(self._names)}


class RiverClassifier(_Wrapper, base.MiniBatchClassifier):
    """A model with a loss for two or many classes, as a classifier of river.

    Before the first example `predict_one` gives None. Probabilities exist for logistic losses only; before
    the first example they are 1/2 each for two classes, and none for many.

    Parameters
    ----------
    model
        A model of this library. A copy learns, `learner`, and the model itself stays as it is; if it is fitted,
        wrapper and clones go on from there.
    features
        Names of the first columns, in order. Needed for models that were fitted to arrays without names, and for
        additive kernels if the first example does not show all names; otherwise they get columns as they come.
    fill
        Value of a missing feature.
    classes
        The negative and the positive label of a two-class loss, or all labels of a multiclass loss. None takes
        them as they come: of two, 1 and True are positive, 0, -1 and False negative, and any others are
        negative first and positive second.

    Examples
    --------
    >>> from onlinekernels import NORMA
    >>> from onlinekernels.compat.river import RiverClassifier
    >>> model = RiverClassifier(NORMA("hinge", "gaussian"))
    >>> model.learn_one({"length": 1.0}, "ham")
    >>> model.learn_one({"length": -1.0, "capitals": 3}, "spam")
    >>> model.predict_one({"length": 0.9}), model.predict_one({"capitals": 2})
    ('ham', 'spam')
    """

    _tasks = ("binary", "multiclass")

    def __init__(self, model, features=None, fill=0.0, classes=None):
        self.classes = classes
        super().__init__(model, features, fill)
        self._probabilistic = hasattr(model, "predict_proba")
        self._labels = self._first_labels()
        self._weights = {}  # of classes, if the learner does not know them by their names
        if self._labels is not None and not self._learned and isinstance(model.class_weight, dict):
            check_class_weight(model, model.class_weight)
            self._weights, self.learner.class_weight = model.class_weight, None

    @classmethod
    def _unit_test_params(cls):
        yield {"model": NORMA(budget=100)}
        yield {"model": NORMA(Logistic(), budget=100)}
        yield {"model": SILK(MulticlassLogistic(), budget=100)}

    @property
    def _multiclass(self):
        return self._labels is None

    def _first_labels(self):
        if self._learned and self.classes is not None:
            raise bad_parameter(self, "classes", "None for a fitted model, which knows its labels", self.classes)
        if _task(self.model) == "multiclass":
            return None
        if self._learned:
            classes = self.learner.classes_.tolist()
            return _TwoLabels(dict(zip(classes, classes)), classes)
        classes = () if self.classes is None else tuple(self.classes)
        if self.classes is not None and len(set(classes)) != 2:
            raise bad_parameter(self, "classes", "two different labels for a two-class loss", self.classes)
        return _TwoLabels(dict(zip(classes, (False, True))))

    def _first_time(self):
        return {"classes": self.classes} if self._multiclass else {}

    def learn_one(self, x, y, w=1.0):
        """Learn one example; `w` multiplies its loss."""
        labels = self._labels
        if labels is not None:
            w *= self._weights.get(y, 1.0)
            side = labels.sides.get(y)
            if side is None:
                labels = labels.including([y])
                side = labels.sides[y]
            y = side
        self._learn_one(x, y, w, labels)

    def learn_many(self, X, y):
        """Learn the rows of a data frame in their order: what one at a time would give, but faster."""
        y, labels, weights = list(y), self._labels, None
        if labels is not None:
            weights = [self._weights.get(label, 1.0) for label in y] if self._weights else None
            labels = labels.including(y)
            y = [labels.sides[label] for label in y]
        self._learn_many(X, y, labels, weights)

    def predict_one(self, x):
        """The label of x; None before the first example."""
        if not self._learned:
            return None
        answer = self.learner.predict_one(self._example(x)[0])
        return answer if self._labels is None else self._labels.name(answer)

    def predict_many(self, X):
        """The labels of the rows of a data frame."""
        import pandas

        if not self._learned or not len(X):
            return pandas.Series([None] * len(X), index=X.index, dtype=object)
        answers = self.learner.predict(self._examples(X)[0]).tolist()
        if self._labels is not None:
            answers = [self._labels.name(answer) for answer in answers]
        return pandas.Series(answers, index=X.index)

    def predict_proba_one(self, x):
        """{label: probability} of the labels seen so far; for logistic losses only."""
        self._check_probabilistic()
        labels, rows = self._probabilities(_alone(self._example(x)[0]) if self._learned else [x])
        return dict(zip(labels, rows[0].tolist()))

    def predict_proba_many(self, X):
        """A data frame with one column for each label seen so far; for logistic losses only."""
        import pandas

        self._check_probabilistic()
        labels, rows = self._probabilities(self._examples(X)[0] if self._learned and len(X) else X)
        return pandas.DataFrame(dict(zip(labels, rows.T)), index=X.index)

    def _check_probabilistic(self):
        if not self._probabilistic:
            raise NotImplementedError(f"{self.learner!r} gives no probabilities; the logistic losses do.")

    def _probabilities(self, examples):
        """(labels, their probabilities with a row for each example)."""
        labels = None if self._multiclass else self._labels.names()
        if labels is not None and len(labels) == 1:
            return labels, np.ones((len(examples), 1))
        if not self._learned or not len(examples):
            labels = labels or []
            return labels, np.full((len(examples), len(labels)), 0.5)
        return labels or self.learner.classes_.tolist(), self.learner.predict_proba(examples)


class RiverRegressor(_Wrapper, base.MiniBatchRegressor):
    """A model with a regression loss, as a regressor of river.

    Before the first example `predict_one` gives 0.0.

    Parameters
    ----------
    model, features, fill
        As for `RiverClassifier`.

    Examples
    --------
    >>> from onlinekernels import NORMA
    >>> from onlinekernels.compat.river import RiverRegressor
    >>> model = RiverRegressor(NORMA("squared", "linear", step=0.5))
    >>> for _ in range(20):
    ...     model.learn_one({"rooms": 1.0}, 3.0)
    >>> round(model.predict_one({"rooms": 2.0}), 1)
    6.0
    """

    _tasks = ("regression",)

    def __init__(self, model, features=None, fill=0.0):
        super().__init__(model, features, fill)

    @classmethod
    def _unit_test_params(cls):
        yield {"model": NORMA(Insensitive(), budget=100)}
        yield {"model": SILK(Insensitive(), budget=100)}

    def learn_one(self, x, y, w=1.0):
        """Learn one example; `w` multiplies its loss."""
        self._learn_one(x, float(y) if isinstance(y, numbers.Real) else y, w)

    def learn_many(self, X, y):
        """Learn the rows of a data frame in their order: what one at a time would give, but faster."""
        self._learn_many(X, np.asarray(y))

    def predict_one(self, x):
        """The target of x; 0.0 before the first example."""
        return self.learner.predict_one(self._example(x)[0]) if self._learned else 0.0

    def predict_many(self, X):
        """The targets of the rows of a data frame."""
        import pandas

        ready = self._learned and len(X)
        answers = self.learner.predict(self._examples(X)[0]) if ready else np.zeros(len(X))
        return pandas.Series(answers, index=X.index)


class RiverDetector(_Wrapper, AnomalyDetector):
    """A model with a novelty loss, as an anomaly detector of river.

    The score is 0.0 before the first example. Then it is -f(x), which can be compared over time, or relative
    to the threshold, which may move.

    Parameters
    ----------
    model, features, fill
        As for `RiverClassifier`.
    relative
        Whether scores are ``offset_ - f(x)``: above 0 where `predict` of the model says -1, novel.

    Examples
    --------
    >>> from onlinekernels import NORMA
    >>> from onlinekernels.compat.river import RiverDetector
    >>> model = RiverDetector(NORMA("nunovelty", "gaussian"))
    >>> for i in range(1000):
    ...     model.learn_one({"heat": 0.01 * (i % 10)})
    >>> model.score_one({"heat": 0.0}) < model.score_one({"heat": 5.0})
    True
    """

    _tasks = ("novelty",)

    def __init__(self, model, features=None, fill=0.0, relative=False):
        self.relative = relative
        super().__init__(model, features, fill)

    @classmethod
    def _unit_test_params(cls):
        yield {"model": NORMA(NuNovelty(), budget=100)}
        yield {"model": SILK("novelty", budget=100)}

    def learn_one(self, x):
        """Learn one example."""
        self._learn_one(x)

    def learn_many(self, X):
        """Learn the rows of a data frame in their order: what one at a time would give, but faster."""
        self._learn_many(X)

    def score_one(self, x):
        """-f(x), or offset_ - f(x): the higher, the more novel; 0.0 before the first example."""
        if not self._learned:
            return 0.0
        score = -float(self.learner.score_samples(_alone(self._example(x)[0]))[0])
        return self.learner.offset_ + score if self.relative else score


class _TwoLabels:
    """What the two labels of a stream are called, as far as they are known; immutable.

    Parameters
    ----------
    sides : dict
        What the learner is told for each label.
    pair : list
        The negative and the positive of what it may be told.
    """

    def __init__(self, sides, pair=(False, True)):
        self.sides = sides
        self.pair = pair
        self._names = {side: label for label, side in sides.items()}

    def including(self, y):
        """These labels with those in a list; ValueError if there are more than two."""
        sides = dict(self.sides)
        for label in y:
            if label not in sides:
                sides.update(self._sides_of(label, sides))
        return self if len(sides) == len(self.sides) else _TwoLabels(sides, self.pair)

    def _sides_of(self, label, sides):
        if label is None or label != label:
            raise ValueError(f"y must be a label. Got {label!r} instead.")
        if len(sides) == 2:
            raise ValueError(
                f"y must be one of {', '.join(map(repr, sides))} for a loss of two classes. Got {label!r} instead; "
                "for more use a loss such as MulticlassHinge(), or multiclass.OneVsRestClassifier of river."
            )
        if isinstance(label, (bool, np.bool_)) and not sides:
            return {False: False, True: True}
        free = [side for side in self.pair if side not in sides.values()]
        likely = label not in (0, -1) if label in (0, -1, 1) else free[0]
        return {_plain(label): likely if likely in free else free[0]}

    def name(self, side):
        """The label on a side; the other one if there is none yet."""
        names = self._names
        return names[side] if side in names else next(iter(names.values()))

    def names(self):
        """The labels, the negative one first; booleans before any is known, as river has it."""
        return [self._names[side] for side in self.pair if side in self._names] or [False, True]


# ---- Numbers -----------------------------------------------------------------------------------

_FLOAT = np.dtype(np.float64)
_NOTHING = np.array(None)


def _alone(example):
    """A single example as the learner takes many."""
    return example[None] if isinstance(example, np.ndarray) else [example]


def _plain(label):
    return label.item() if isinstance(label, np.generic) else label


def _numbers(x):
    """The values of a dictionary as an array of finite floats."""
    try:
        values = list(x.values())
    except AttributeError as error:
        raise TypeError(f"x must be a dictionary of features. Got {x!r} instead.") from error
    try:
        array = np.array(values)
    except ValueError:  # entries of unequal shape
        array = _NOTHING
    if array.dtype is _FLOAT and array.ndim == 1 and math.isfinite(sum(values)):
        return array
    for name, value in x.items():
        _check_number(value, f"x[{name!r}]")
    return np.array(values, dtype=float)


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


# ---- More features -----------------------------------------------------------------------------


def _can_grow(kernel, fill):
    """Whether columns that hold `fill` in all points change no kernel value."""
    if kernel.coordinate(0) is not None:
        return False
    points = np.array([[0.25], [0.75]])
    try:
        return np.allclose(kernel(points), kernel(np.insert(points, 1, fill, axis=1)), rtol=1e-12, atol=0.0)
    except ValueError:  # a kernel of one column
        return False
