"""Losses of one output: value, derivative, curvature, and the scalar that some of them adapt.

Conventions at kinks: the hinges count a tie y f = margin as a margin error (K (14)); novelty only
f < margin; the regression losses only |y - f| > width.
"""
from onlinekernels._core import losses as _core
from onlinekernels.params import Parameterized
from onlinekernels.validation import bad_parameter, check_real

__all__ = [
    "Loss",
    "Hinge",
    "NuHinge",
    "Logistic",
    "Novelty",
    "NuNovelty",
    "Squared",
    "Absolute",
    "Insensitive",
    "NuInsensitive",
    "SquaredInsensitive",
    "Huber",
    "NuHuber",
]


class Loss(Parameterized):
    """Base of all losses; subclass it for a loss of your own.

    A subclass sets `task` ("binary": y is -1 or +1, "regression" or "novelty") and defines
    ``derivative(score, y)`` for two numbers; ``value(score, y)`` where you want values. The engine
    calls it back for each example.

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
    probabilistic = False  # whether expit(score) is a probability
    scalar_name = None  # the margin or width, if the loss has one
    nu = 0.0

    adapts = False  # whether the scalar moves while learning

    @classmethod
    def _code(cls):
        """Number in the compiled core of the nearest built-in loss; 0 if there is none."""
        return next((_core.CODES[c.__name__] for c in cls.__mro__ if LOSSES.get(c.__name__.lower()) is c), 0)

    @classmethod
    def is_compiled(cls):
        """Whether the engine knows the formula; otherwise it calls `derivative` back."""
        return cls.derivative is Loss.derivative and cls._code() > 0

    def core(self):
        """(code, scalar, nu) for the engine."""
        scalar = 0.0 if self.scalar_name is None else float(getattr(self, self.scalar_name))
        return self._code(), scalar, float(self.nu)

    def validate(self):
        """Raise ValueError for a parameter out of range."""
        if self.task not in ("binary", "regression", "novelty"):
            raise bad_parameter(self, "task", "'binary', 'regression' or 'novelty'", self.task)
        if self.adapts and not self.is_compiled():
            raise ValueError(
                f"{type(self).__name__} has a derivative of its own and cannot adapt its {self.scalar_name}; "
                f"derive it from a loss without nu."
            )

    def value(self, score, y=None):
        """l(score, y), over arrays."""
        return self._evaluate(_core.value, score, y)

    def derivative(self, score, y=None):
        """dl/dscore, over arrays."""
        return self._evaluate(_core.derivative, score, y)

    def curvature(self, score, y=None):
        """Second derivative, over arrays; 0 for piecewise linear losses."""
        return self._evaluate(_core.curvature, score, y)

    def scalar_gradient(self, score, y=None):
        """dl/dscalar of a nu-loss, over arrays: the scalar moves by -eta times this."""
        return self._evaluate(_core.scalar_gradient, score, y)

    def _evaluate(self, function, score, y):
        if self._code() == 0:
            raise NotImplementedError(f"{type(self).__name__} does not define {function.__name__}(score, y).")
        self.validate()
        if y is None and self.task != "novelty":
            raise TypeError(f"{type(self).__name__} needs y: {function.__name__}(score, y).")
        return function(*self.core(), score, 0.0 if y is None else y)


class _Margin(Loss):
    scalar_name = "margin"

    def validate(self):
        super().validate()
        if self.adapts:
            check_nu(self)
            check_real(self, "margin", "a finite number", lambda value: True)
        else:
            check_real(self, "margin", "a number of at least 0", lambda value: value >= 0)


class _Width(Loss):
    scalar_name = "width"
    divides = False  # whether the width divides and so must be positive

    def validate(self):
        super().validate()
        if self.adapts:
            check_nu(self)
        if self.divides:
            check_real(self, "width", "a positive number", lambda value: value > 0)
        else:
            check_real(self, "width", "a number of at least 0", lambda value: value >= 0)


def check_nu(loss):
    check_real(loss, "nu", "a number in (0, 1)", lambda value: 0 < value < 1)


class Hinge(_Margin):
    """Soft margin loss max(0, margin - y f), K (13); margin is rho.

    >>> Hinge().value([2.0, 0.5, -1.0], 1).tolist()
    [0.0, 0.5, 2.0]
    >>> Hinge().derivative([2.0, 1.0, 0.0], 1).tolist()
    [0.0, -1.0, -1.0]
    """

    task = "binary"

    def __init__(self, margin=1.0):
        self.margin = margin


class NuHinge(_Margin):
    """max(0, rho - y f) - nu rho with the margin rho adapted, K (19).

    A fraction nu of the examples comes to lie within the margin. `margin` is where rho starts.
    K prints rho + eta (sigma - nu), which runs away; rho moves by -eta (sigma - nu) here.
    """

    task = "binary"
    adapts = True

    def __init__(self, nu=0.1, margin=1.0):
        self.nu = nu
        self.margin = margin


class Logistic(Loss):
    """log(1 + exp(-y f)); expit(f) is the probability of the second class.

    >>> round(Logistic().value(0.0, 1), 4)
    0.6931
    """

    task = "binary"
    probabilistic = True

    def __init__(self):
        pass


class Novelty(_Margin):
    """max(0, margin - f): an example with f < margin is novel (K III-B)."""

    task = "novelty"

    def __init__(self, margin=1.0):
        self.margin = margin


class NuNovelty(_Margin):
    """max(0, rho - f) - nu rho: rho adapts so that a fraction nu of the examples alerts, K (20).

    K prints the update of rho with the wrong sign; see the page on errata.
    """

    task = "novelty"
    adapts = True

    def __init__(self, nu=0.01, margin=1.0):
        self.nu = nu
        self.margin = margin


class Squared(Loss):
    """1/2 (y - f)^2, K (21)."""

    def __init__(self):
        pass


class Absolute(Loss):
    """|y - f|."""

    def __init__(self):
        pass


class Insensitive(_Width):
    """max(0, |y - f| - width); width is epsilon."""

    def __init__(self, width=0.1):
        self.width = width


class NuInsensitive(_Width):
    """max(0, |y - f| - epsilon) + nu epsilon with epsilon adapted, K (22).

    A fraction nu of the examples comes to lie outside the tube. `width` is where epsilon starts.
    """

    adapts = True

    def __init__(self, nu=0.1, width=1.0):
        self.nu = nu
        self.width = width


class SquaredInsensitive(_Width):
    """max(0, |y - f| - width)^2, H (6), without a factor 1/2."""

    def __init__(self, width=0.1):
        self.width = width


class Huber(_Width):
    """|y - f| - width/2 outside, (y - f)^2 / (2 width) inside, K (23); width is sigma."""

    divides = True

    def __init__(self, width=1.0):
        self.width = width


class NuHuber(_Width):
    """Huber's loss with sigma adapted so that a fraction nu lies outside (K III-C).

    sigma moves by +eta (1 - nu) outside and -eta nu inside, and stays positive. That is a quantile
    rule, not the gradient of a loss; `value` is Huber's loss at the current width.
    """

    adapts = True
    divides = True

    def __init__(self, nu=0.1, width=1.0):
        self.nu = nu
        self.width = width


LOSSES = {name.lower(): globals()[name] for name in __all__ if name != "Loss"}


def as_loss(value, owner, default=Hinge):
    """A loss from what a user may give: a loss, its name, or None for the default."""
    if value is None:
        return default()
    if isinstance(value, str):
        name = value.lower().replace("_", "").replace("-", "")
        if name not in LOSSES:
            raise bad_parameter(owner, "loss", f"a loss or one of {', '.join(sorted(LOSSES))}", value)
        return LOSSES[name]()
    if not isinstance(value, Loss):
        raise bad_parameter(owner, "loss", "a loss such as Hinge(), its name, or None", value)
    value.validate()
    return value
