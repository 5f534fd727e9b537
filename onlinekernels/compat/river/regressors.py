"""Regressors of river, of one target and of several."""
from __future__ import annotations

import numbers
from typing import TYPE_CHECKING

import numpy as np
from river import base

from onlinekernels.algorithms import NORMA, SILK
from onlinekernels.compat.river.wrapper import Wrapper
from onlinekernels.nouns.losses import Insensitive
from onlinekernels.validation import bad_parameter

if TYPE_CHECKING:
    from onlinekernels.annotations import Any, Examples


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
    >>> from onlinekernels.compat.river import RiverRegressor
    >>> model = RiverRegressor(NORMA("squared", "linear", step=0.5, offset=False))
    >>> for _ in range(20):
    ...     model.learn_one({"rooms": 1.0}, 3.0)
    >>> round(model.predict_one({"rooms": 2.0}), 1)
    6.0
    """

    _tasks = ("regression",)

    def __init__(self, model: Any, features: Any = None, fill: Any = 0.0) -> None:
        super().__init__(model, features, fill)

    @classmethod
    def _unit_test_params(cls):
        yield {"model": NORMA(Insensitive(), budget=100)}
        yield {"model": SILK(Insensitive(), budget=100)}

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

        ready = self._learned and len(X)
        answers = self.learner.predict(self._examples(X)[0]) if ready else np.zeros(len(X))
        return pandas.Series(answers, index=X.index)


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
    >>> from onlinekernels.compat.river import RiverMultiTargetRegressor
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

    @classmethod
    def _unit_test_params(cls):
        yield {"model": NORMA("squared", step=0.1, budget=100)}
        yield {"model": SILK(Insensitive(), budget=100)}

    def learn_one(self, x: Any, y: Any) -> None:
        """Learn one example; y is {name: number}, always with the same names."""
        targets = self._named(y)
        self._learn_one(x, [y[name] for name in targets] if len(targets) > 1 else y[targets[0]])
        self._targets = targets

    def learn_many(self, X: Examples, y: Any) -> None:
        """Learn the rows of two data frames in their order: what one at a time would give, but faster."""
        if not hasattr(y, "columns"):
            raise TypeError(f"y must be a pandas DataFrame. Got {type(y).__name__} instead.")
        if len(X):
            targets = self._named(y)
            self._learn_many(X, y[list(targets)].to_numpy())
            self._targets = targets

    def predict_one(self, x: Any) -> Any:
        """{name: number}; each is 0.0 before the first example."""
        values = self.learner.predict_one(self._example(x)[0]) if self._learned else np.zeros(len(self._targets))
        return dict(zip(self._targets, np.atleast_1d(values).tolist(), strict=True))

    def predict_many(self, X: Examples) -> Any:
        """A data frame with a column for each target."""
        import pandas

        shape = len(X), len(self._targets)
        ready = self._learned and len(X)
        values = self.learner.predict(self._examples(X)[0]).reshape(shape) if ready else np.zeros(shape)
        return pandas.DataFrame(values, index=X.index, columns=list(self._targets))

    def _named(self, y):
        """The names of the targets, which are those of y."""
        try:
            names = tuple(y)
        except TypeError as error:
            raise TypeError(f"y must be a dictionary of targets. Got {y!r} instead.") from error
        if isinstance(y, (str, list, tuple)) or not names:
            raise TypeError(f"y must be a dictionary of targets. Got {y!r} instead.")
        targets = self._targets or names
        if set(names) != set(targets) or len(names) != len(targets):
            raise ValueError(f"y must have the targets {', '.join(map(repr, targets))}. Got {names!r} instead.")
        return targets
