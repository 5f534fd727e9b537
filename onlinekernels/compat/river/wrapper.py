"""What all wrappers share: the copy of the model that learns, and the columns of the named features."""
from __future__ import annotations

import copy
import math
import numbers
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from onlinekernels.compat.river.features import column_numbers, numbers_of
from onlinekernels.model.learner import OnlineLearner
from onlinekernels.nouns import docstrings
from onlinekernels.nouns.kernels import as_kernel
from onlinekernels.validation import bad_parameter

if TYPE_CHECKING:
    from onlinekernels.annotations import Any
    from onlinekernels.compat.river.unitscores import Usual


def task_of(model):
    if not isinstance(model, OnlineLearner) or not hasattr(model, "learn_one"):
        raise TypeError(f"model must be a model of this library that has learn_one. Got {model!r} instead.")
    return model._current_loss().task


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
    _labels: Any = None  # of a two-class loss
    _usual: Usual | None = None  # what scores have been like, if they are put on [0, 1]

    def __init__(self, model: Any, features: Any, fill: Any) -> None:
        self.model = model
        self.features = features
        self.fill = fill
        self._check()
        self.learner = copy.deepcopy(model)
        self._learned = model.__sklearn_is_fitted__()
        self._encodes = bool(model.encode)  # features of all kinds, by their names
        self._takes_objects = self._encodes or as_kernel(model.kernel, model).takes_objects()
        self._names = self._given_names()  # in the order of their columns
        self._columns = {name: column for column, name in enumerate(self._names)}
        self._blank = self._missing(len(self._names))  # no features; there may be spare columns at the end

    def _check(self):
        if task_of(self.model) not in self._tasks:
            raise ValueError(
                f"The 'model' parameter of {type(self).__name__} must have a loss for {' or '.join(self._tasks)}. "
                f"Got {self.model!r} instead; as_river(model) chooses the wrapper."
            )
        if getattr(self, "scores", None) not in (None, "unit", "raw"):
            raise bad_parameter(self, "scores", 'None, "unit" or "raw"', self.scores)
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
        if self._encodes and isinstance(x, Mapping):
            return self._named(x)
        if self._takes_objects:
            return copy.copy(x), ()
        values = numbers_of(x)
        columns, newcomers = self._places(tuple(x))
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
        values = [column_numbers(X[name], name) for name in names]
        columns, newcomers = self._places(names)
        rows = np.tile(self._blank, (len(X), 1))
        if names:
            rows[:, columns] = np.column_stack(values)
        return rows, newcomers

    def _named(self, x):
        """(a dictionary for a learner that encodes, with holes for what it lacks, its new names)."""
        newcomers = tuple([name for name in x if name not in self._columns])
        if newcomers and self._learned:
            if not self._names:  # fitted to rows without names: the encoder knows what to say
                return copy.copy(x), ()
            raise ValueError(
                f"x has the new feature {newcomers[0]!r}, and a model that encodes cannot take new ones after its first "
                "example: name all of them in features=, or leave OneHotEncoder out, since it takes words as they are."
            )
        return {**dict.fromkeys(self._names), **x}, newcomers

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
        if self._learned and w == 1.0 and self._usual is None:
            self.learner.learn_one(example, y)
            self._keep(newcomers, labels)
        else:
            self._learn(alone(example), None if y is None else [y], newcomers, labels, sample_weight=[w])

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
            if self._usual is None:
                self.learner.partial_fit(examples, y, **options)
            else:
                self._usual.add(self.learner.progressive(examples, y, **options))
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


def alone(example):
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
