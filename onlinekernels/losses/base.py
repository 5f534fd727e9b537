"""What a loss is: value, derivative, curvature, and the scalar that some of them adapt."""
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from onlinekernels._core.formulas import vectorized as _core
from onlinekernels._core.formulas.vectorized import probabilities
from onlinekernels.base import docstrings
from onlinekernels.base.params import Parameterized
from onlinekernels.base.validation import (
    bad_parameter, check_finite, check_fraction, check_not_negative, check_positive,
)

if TYPE_CHECKING:
    from onlinekernels.annotations import Any, ArrayLike

LOG = "log"  # a `margin_step`: that of f, taken by the scalar's logarithm


class Loss(Parameterized):
    """Base of all losses; subclass it for a loss of your own.

    A subclass sets `task` ("binary": y is -1 or +1, "regression", "novelty" or "multiclass") and defines
    ``derivative(score, y)`` for two numbers ("multiclass": an array of scores and the index of the
    label); ``value(score, y)`` where you want values. The engine calls it back for each example. Implicit steps (`ILK`,
    `SILK`, `PassiveAggressive`) solve for the coefficient, and ask several times; the loss must be convex, and at a
    kink its derivative may be any slope between the two sides.

    >>> import numpy as np
    >>> class LogCosh(Loss):
    ...     task = "regression"
    ...     def value(self, score, y):
    ...         return np.log(np.cosh(score - y))
    ...     def derivative(self, score, y):
    ...         return np.tanh(score - y)
    >>> from onlinekernels import NORMA
    >>> model = NORMA(LogCosh(), step=0.5).partial_fit([[0.0], [0.0]], [1.0, 1.0])
    >>> model.predict([[0.0]]).round(3)
    array([0.656])
    """

    task = "regression"
    probabilistic = False  # whether the scores give probabilities
    structured = False  # whether the labels' distances matter
    over_all_labels = False  # whether each example moves the scores of all labels
    starts_as_wrong = False  # whether a label that joins has been a wrong label before
    scalar_name: str | None = None  # the margin or width, if the loss has one
    nu = 0.0
    margin_step = None  # the scalar's own step; None shares f's, and so does LOG, for its logarithm

    adapts = False  # whether the scalar moves while learning

    _built_in: Any = None  # the class itself or its nearest ancestor whose formula the compiled core has

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        ours = (c for c in cls.__mro__ if c.__module__.startswith(f"{__package__}."))
        cls._built_in = next((c for c in ours if c.__name__ in _core.CODES), None)

    @classmethod
    def _code(cls):
        """Number of that formula; 0 if there is none."""
        return 0 if cls._built_in is None else _core.CODES[cls._built_in.__name__]

    @classmethod
    def is_compiled(cls) -> Any:
        """Whether the engine knows the formula; otherwise it calls `derivative` back."""
        return cls._built_in is not None and cls.derivative is cls._built_in.derivative

    @property
    def has_curvature(self) -> Any:
        """Whether `curvature` is that of the derivative: a built-in loss's does not go with another derivative."""
        return self.is_compiled() or type(self).curvature is not Loss.curvature

    def core(self) -> Any:
        """(code, scalar, nu, the scalar's own step, 0 for that of f, -1 if its logarithm takes that) for the engine."""
        scalar = 0.0 if self.scalar_name is None else float(getattr(self, self.scalar_name))
        step = -1.0 if self.margin_step == LOG else float(self.margin_step or 0.0)
        return self._code(), scalar, float(self.nu), step

    def validate(self) -> None:
        """Raise ValueError for a parameter out of range."""
        if self.task not in ("binary", "multiclass", "regression", "novelty"):
            raise bad_parameter(self, "task", "'binary', 'multiclass', 'regression' or 'novelty'", self.task)
        if not self.is_compiled() and type(self).derivative is Loss.derivative:
            raise ValueError(f"{type(self).__name__} is a loss of your own and must define derivative(score, y).")
        if self.adapts and not self.is_compiled():
            raise ValueError(f"{type(self).__name__} has a derivative of its own and cannot adapt its "
                             f"{self.scalar_name}; derive it from a loss without nu.")
        self._check_values()

    def value(self, score: ArrayLike, y: Any = None, *, scalar: Any = None) -> Any:
        """l(score, y), over arrays; `scalar`, a number or array, in place of the loss's own margin or width."""
        return self._evaluate(_core.value, score, y, scalar)

    def derivative(self, score: ArrayLike, y: Any = None, *, scalar: Any = None) -> Any:
        """dl/dscore, over arrays."""
        return self._evaluate(_core.derivative, score, y, scalar)

    def curvature(self, score: ArrayLike, y: Any = None) -> Any:
        """Second derivative, over arrays; 0 for piecewise linear losses."""
        return self._evaluate(_core.curvature, score, y)

    def probabilities(self, scores: Any) -> Any:
        """Probabilities of the classes, shape (n, classes): expit of scores (n,), softmax of scores (n, classes)."""
        scores = np.asarray(scores, dtype=float)
        if self.task == "multiclass":
            return probabilities(scores)
        tail = np.exp(-np.abs(scores))
        likely, rare = 1.0 / (1.0 + tail), tail / (1.0 + tail)
        return np.column_stack([np.where(scores > 0, rare, likely), np.where(scores > 0, likely, rare)])

    def scalar_gradient(self, score: ArrayLike, y: Any = None) -> Any:
        """dl/dscalar of a nu-loss, over arrays: the scalar moves by -eta times this."""
        return self._evaluate(_core.scalar_gradient, score, y)

    def _evaluate(self, function, score, y, scalar=None):
        if self._code() == 0:
            raise NotImplementedError(f"{type(self).__name__} does not define {function.__name__}(score, y).")
        if type(self).derivative is Loss.derivative:
            self.validate()
        if y is None and self.task != "novelty":
            raise TypeError(f"{type(self).__name__} needs y: {function.__name__}(score, y).")
        code, own, nu, _ = self.core()
        return function(code, own if scalar is None else scalar, nu, score, 0.0 if y is None else y)


@dataclass(eq=False, repr=False)
class WithMargin(Loss):
    """A loss with a margin.

    Parameters
    ----------
    margin : float
        rho, what a score should exceed; at least 0.
    """

    margin: float = 1.0

    scalar_name = "margin"
    _values = {"margin": check_not_negative}


@dataclass(eq=False, repr=False)
class WithWidth(Loss):
    """A loss with a width.

    Parameters
    ----------
    width : float
        epsilon, the error that costs nothing; at least 0.
    """

    width: float = 0.1

    scalar_name = "width"
    _values = {"width": check_not_negative}


def check_margin_step(loss, name):
    """A positive number, "log" or None; the logarithm needs a scalar above 0."""
    value = getattr(loss, name)
    if isinstance(value, str) and value == LOG:
        return check_positive(loss, loss.scalar_name)
    if value is not None and not check_positive.accepts(value):
        raise bad_parameter(loss, name, "a positive number, 'log' or None", value)
    return value


NU_VALUES = {"nu": check_fraction, "margin_step": check_margin_step}


@dataclass(eq=False, repr=False)
class NuMargin(Loss):
    """A loss whose margin adapts.

    Parameters
    ----------
    nu : float
        The fraction of the examples that the adapted scalar leaves outside, in (0, 1).
    margin : float
        Where rho starts.
    margin_step : float, "log" or None
        The step of the adapted scalar, relative to a running mean of the distance between it and what is held against
        it; positive, and then the scalar stays above 0. No paper has such a step. None is K's: the scalar shares the
        step of f. That can be as large as f itself, and then the errors come like a clock. "log" is V's, (55)-(56):
        the logarithm shares the step of f, so the scalar stays above 0, where it has to start.
    """

    nu: float = 0.3
    margin: float = 1.0
    margin_step: Any = 0.1

    scalar_name = "margin"
    adapts = True
    _values = {**NU_VALUES, "margin": check_finite}


@docstrings.like(NuMargin)
@dataclass(eq=False, repr=False)
class NuWidth(Loss):
    """A loss whose width adapts.

    Parameters
    ----------
    {nu} {margin_step}
    """

    nu: float = 0.1
    width: float = 1.0
    margin_step: Any = 0.1

    scalar_name = "width"
    adapts = True
    _values = {**NU_VALUES, "width": check_not_negative}
