"""What can be seen of a fitted model: terms, weights, knots, offsets, labels."""
from __future__ import annotations

import copy
import functools
from typing import TYPE_CHECKING

import numpy as np

from onlinekernels.base import validation

if TYPE_CHECKING:
    from typing import TypeVar

    from onlinekernels.annotations import Any, Callable

    F = TypeVar("F")
    T = TypeVar("T")

__all__ = ["Fitted", "learned", "only_if"]


class only_if:
    """A method or property that exists only where `check(model)` holds, for hasattr as well; `hint` says what to do."""

    def __init__(self, check: Callable[[Any], bool], hint: str = "") -> None:
        self.check = check
        self.hint = hint

    def __call__(self, function: F) -> F:
        self.function: Any = function
        self.__doc__ = function.__doc__
        return self  # type: ignore[return-value]  # it has what the function has, for type checkers as well

    def __set_name__(self, owner, name):
        self.name = name

    def __get__(self, model, owner=None):
        if model is None:
            return self.function
        try:
            exists = self.check(model)
        except ValueError as error:  # parameters that the first fit will refuse
            raise AttributeError(str(error)) from error
        if not exists:
            if "loss" not in model.get_params(deep=False):  # nobody can choose another one
                raise AttributeError(f"{type(model).__name__} has no {self.name!r}.")
            raise AttributeError(f"{type(model).__name__} with the loss {model.loss!r} has no {self.name!r}.{self.hint}")
        return self.function.__get__(model, owner)


def learned(function: Callable[[Any, Any], T]) -> T:
    """A property of what is learned: `function(model, state)`, read when it is this thread's turn, so of one state."""

    @functools.wraps(function)
    def read(model):
        with model._turn:
            return function(model, model._attribute())

    return property(read)  # type: ignore[return-value]  # its value, for type checkers


class Fitted:
    """The attributes of a fitted model, which end in an underscore; before the first fit they do not exist."""

    _state: Any = None  # what is learned: None until the first fit
    _turn: Any
    _encoder: Any
    _fitted: Any
    _row: Any
    _to_predict: Any

    def _attribute(self):
        if self._state is None:
            raise validation.not_fitted(self)  # an AttributeError as well
        return self._state

    @learned
    def support_vectors_(self, state: Any) -> Any:
        """Points of the terms, oldest first: an array, or a list of objects.

        f(x) is sum_i dual_coef_[0, i] k(support_vectors_[i], x) + intercept_[0].
        """
        return state.representation.terms(state)[0]

    @learned
    def dual_coef_(self, state: Any) -> Any:
        """Coefficients of the terms, oldest first, shape (n_outputs, n_terms_); before the label kernel."""
        return state.shown(state.representation.terms(state)[1])

    @learned
    def n_terms_(self, state: Any) -> int:
        """Number of terms in the expansion; 0 where weights replace them."""
        return state.representation.n_terms(state)

    def contributions(self, x: Any, top: int | None = 5, label: Any = None) -> Any:
        """Which stored examples speak for or against a prediction, and how much.

        The score of one example x is the sum of what the terms contribute, alpha_i k(x_i, x), and the offset.

        Parameters
        ----------
        x : 1-d array, or an object
        top : int or None
            How many to give, those that contribute most in size first; None gives all.
        label : for many classes, the label whose score it is; None means the one that is predicted

        Returns
        -------
        list of Contribution
            ``value`` is the share of the score, ``place`` the place in `support_vectors_`, ``point`` the stored
            example (in scaled units where the model scales), ``coefficient`` alpha_i and ``kernel`` k(x_i, x).

        Examples
        --------
        >>> from onlinekernels import NORMA
        >>> model = NORMA("squared", "gaussian", step=1.0).fit([[0.0], [1.0]], [1.0, 3.0])
        >>> for part in model.contributions([1.0], top=1):
        ...     print(part.place, part.point, round(part.value, 3))
        1 [1.] 2.393
        """
        with self._turn.shared:
            state = self._fitted()
            points, alpha = state.representation.terms(state)
            return state.contributions(self._to_predict(self._row(state, x)), points, alpha, top, label)

    @learned
    def knots_(self, state: Any) -> Any:
        """Distinct values of each coordinate among the terms of an additive model, ascending."""
        return self._additive().representation.knots(state)

    @only_if(lambda model: model._additive() is not None)
    def component(self, j: int, grid: Any) -> Any:
        """f_j of an additive model: its part that depends on coordinate j, at the values in grid.

        The components and the intercept add up to f.

        Returns
        -------
        array of shape (len(grid),), or (len(grid), n_classes) for many classes
        """
        grid = np.asarray(grid, dtype=float)
        if grid.ndim != 1 or not np.isfinite(grid).all():
            raise ValueError(f"grid must be a 1-d array of finite numbers. Got {grid!r} instead.")
        with self._turn:
            state = self._additive()
            values = state.component(j, grid)
            return values[:, 0] if state.form == "one" else state.shown(values.T).T

    def _additive(self):
        state = self._attribute()
        if state.kernel.coordinate(0) is None:
            raise AttributeError(f"Only a model with an additive kernel has components. This one has {state.kernel!r}.")
        return state

    @learned
    def intercept_(self, state: Any) -> Any:
        """Offsets b, shape (n_outputs,); of the averaged hypothesis with average=True."""
        return state.shown(state.hypothesis.intercept())

    @learned
    def has_offset_(self, state: Any) -> Any:
        """Whether an offset is learned beside f; the call chooses if that was left to it."""
        return state.plan.offset or state.plan.rule.has_own_offset

    @learned
    def coef_(self, state: Any) -> Any:
        """Weights of a linear kernel, shape (n_outputs, n_features), or of a map's features, (n_outputs, size)."""
        return state.shown(state.representation.coef(state))

    @learned
    def norm_(self, state: Any) -> Any:
        """|f| in the kernel's Hilbert space; O(n_terms^2) kernel values unless there are weights or trees."""
        return state.norm()

    @learned
    def t_(self, state: Any) -> int:
        """Number of examples learned."""
        return state.hypothesis.t

    @learned
    def step_(self, state: Any) -> Any:
        """Step size of the latest example; ``progressive(..., return_steps=True)`` gives the history."""
        return state.hypothesis.step_size()

    @learned
    def kernel_(self, state: Any) -> Any:
        """The kernel in force; a default one has a width that follows the features: their number, and their size."""
        return copy.deepcopy(state.kernel)

    @learned
    def regularization_(self, state: Any) -> Any:
        """The regularization in force; the call chooses one that is None."""
        return state.plan.rule.regularization

    @learned
    def budget_(self, state: Any) -> Any:
        """The budget in force; the call chooses one that is "auto"."""
        return copy.deepcopy(state.plan.budget)

    @learned
    def n_features_in_(self, state: Any) -> int:
        """Number of features, of encoded rows that of their columns; does not exist for a kernel on objects."""
        if self._encoder is not None:
            return self._encoder.n_features_in_
        if state.n_features is None:
            raise AttributeError("A kernel on objects has no number of features.")
        return state.n_features

    @learned
    def feature_names_in_(self, state: Any) -> Any:
        """Names of the columns, if the model saw a data frame first."""
        if self._encoder is not None:
            return self._encoder.feature_names_in_
        if state.feature_names is None:
            raise AttributeError("feature_names_in_ exists only for models that have seen a data frame first.")
        return np.array(state.feature_names, dtype=object)

    @learned
    def classes_(self, state: Any) -> Any:
        """The labels of a classifier; of two, the second is the positive one."""
        if state.labels is None:
            raise AttributeError("classes_ exists for classifiers only.")
        return (state.labels.classes if state.form == "one" else state.labels.classes[: state.joined()]).copy()

    @learned
    def margin_(self, state: Any) -> Any:
        """Current margin rho of a loss that has one; an adapted one of the averaged hypothesis with average=True."""
        return self._scalar(state, "margin")

    @learned
    def width_(self, state: Any) -> Any:
        """Current width (epsilon, sigma) of a loss that has one; an adapted one is averaged with average=True."""
        return self._scalar(state, "width")

    @learned
    def offset_(self, state: Any) -> Any:
        """rho of a novelty loss: decision_function = score_samples - offset_."""
        if state.loss.task != "novelty":
            raise AttributeError("offset_ exists for novelty losses only; see intercept_.")
        return state.scalar()

    @staticmethod
    def _scalar(state, name):
        if state.loss.scalar_name != name:
            raise AttributeError(f"The loss {state.loss!r} has no {name}.")
        return state.scalar()
