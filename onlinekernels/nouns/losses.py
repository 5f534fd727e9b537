"""Losses: value, derivative, curvature, and the scalar that some of them adapt.

Conventions at kinks: the two-class hinges count a tie y f = margin as a margin error (K (14)); novelty
only f < margin; the regression losses only |y - f| > width, or f other than y; the hinges of many classes
only a positive loss (V (17)), and the runner-up is the first label in class order among equals.
"""
import numpy as np

from onlinekernels._core.formulas import losses as _core
from onlinekernels._core.formulas.dense import mistake_gradients, probabilities
from onlinekernels.nouns.params import Parameterized
from onlinekernels.validation import bad_parameter, check_finite, check_fraction, check_not_negative, check_positive

__all__ = [
    "Loss",
    "Hinge",
    "NuHinge",
    "Logistic",
    "Novelty",
    "NuNovelty",
    "Squared",
    "Absolute",
    "Quantile",
    "Insensitive",
    "NuInsensitive",
    "SquaredInsensitive",
    "Huber",
    "NuHuber",
    "MulticlassHinge",
    "NuMulticlassHinge",
    "MulticlassLogistic",
    "MulticlassSquared",
    "GraphHinge",
    "NuGraphHinge",
]


class Loss(Parameterized):
    """Base of all losses; subclass it for a loss of your own.

    A subclass sets `task` ("binary": y is -1 or +1, "regression", "novelty" or "multiclass") and defines
    ``derivative(score, y)`` for two numbers ("multiclass": an array of scores and the index of the
    label); ``value(score, y)`` where you want values. The engine calls it back for each example.

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
    scalar_name = None  # the margin or width, if the loss has one
    nu = 0.0
    margin_step = None  # the scalar's own step; None shares f's

    adapts = False  # whether the scalar moves while learning

    @classmethod
    def _code(cls):
        """Number in the compiled core of the nearest built-in loss; 0 if there is none."""
        return next((_core.CODES[c.__name__] for c in cls.__mro__ if LOSSES.get(c.__name__.lower()) is c), 0)

    @classmethod
    def is_compiled(cls):
        """Whether the engine knows the formula; otherwise it calls `derivative` back."""
        built_in = next((c for c in cls.__mro__ if LOSSES.get(c.__name__.lower()) is c), None)
        return built_in is not None and cls.derivative is built_in.derivative

    def core(self):
        """(code, scalar, nu, the scalar's own step or 0) for the engine."""
        scalar = 0.0 if self.scalar_name is None else float(getattr(self, self.scalar_name))
        return self._code(), scalar, float(self.nu), float(self.margin_step or 0.0)

    def validate(self):
        """Raise ValueError for a parameter out of range."""
        if self.task not in ("binary", "multiclass", "regression", "novelty"):
            raise bad_parameter(self, "task", "'binary', 'multiclass', 'regression' or 'novelty'", self.task)
        if not self.is_compiled() and type(self).derivative is Loss.derivative:
            raise ValueError(f"{type(self).__name__} is a loss of your own and must define derivative(score, y).")
        if self.adapts and not self.is_compiled():
            raise ValueError(
                f"{type(self).__name__} has a derivative of its own and cannot adapt its {self.scalar_name}; "
                f"derive it from a loss without nu."
            )
        self._check_values()

    def value(self, score, y=None, *, scalar=None):
        """l(score, y), over arrays; `scalar`, a number or array, in place of the loss's own margin or width."""
        return self._evaluate(_core.value, score, y, scalar)

    def derivative(self, score, y=None, *, scalar=None):
        """dl/dscore, over arrays."""
        return self._evaluate(_core.derivative, score, y, scalar)

    def curvature(self, score, y=None):
        """Second derivative, over arrays; 0 for piecewise linear losses."""
        return self._evaluate(_core.curvature, score, y)

    def probabilities(self, scores):
        """Probabilities of the classes, shape (n, classes): expit of scores (n,), softmax of scores (n, classes)."""
        scores = np.asarray(scores, dtype=float)
        if self.task == "multiclass":
            return probabilities(scores)
        tail = np.exp(-np.abs(scores))
        likely, rare = 1.0 / (1.0 + tail), tail / (1.0 + tail)
        return np.column_stack([np.where(scores > 0, rare, likely), np.where(scores > 0, likely, rare)])

    def scalar_gradient(self, score, y=None):
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


class _WithScalar(Loss):
    """A loss with a scalar, its margin rho or its width, which the nu-losses adapt.

    Parameters
    ----------
    nu : float
        The fraction of the examples that the adapted scalar leaves outside, in (0, 1).
    margin_step : float or None
        The step of the adapted scalar, relative to a running mean of the distance between it and what is held against
        it; positive, and then the scalar stays above 0. None is the papers': it shares the step of f. That can be as
        large as f itself, and then the errors come like a clock.
    """


class _Margin(_WithScalar):
    """A loss with a margin.

    Parameters
    ----------
    margin : float
        rho, what a score should exceed; at least 0.
    """

    scalar_name = "margin"
    _values = {"margin": check_not_negative}


class _Width(_WithScalar):
    """A loss with a width."""

    scalar_name = "width"
    _values = {"width": check_not_negative}


NU_VALUES = {"nu": check_fraction, "margin_step": check_positive.or_none}


class Hinge(_Margin):
    """Soft margin loss max(0, margin - y f), K (13).

    Parameters
    ----------
    {margin}

    References
    ----------
    {K}

    Examples
    --------
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

    The default `margin_step` is not the papers' rule: rho then has a step of its own, relative to its distance from what is
    held against it, and stays positive. ``margin_step=None`` is the papers': rho shares the step of f, and may outrun it.

    A fraction nu of the examples comes to lie within the margin.
    K prints rho + eta (sigma - nu), which runs away; rho moves by -eta (sigma - nu) here, where eta is the step and
    sigma is 1 for a margin error and 0 otherwise.

    Parameters
    ----------
    {nu}
        It should be above the fraction of examples that cannot be told apart: below that, no margin is left.
    margin : float
        Where rho starts.
    {margin_step}

    References
    ----------
    {K}
    """

    task = "binary"
    adapts = True
    _values = {**NU_VALUES, "margin": check_finite}

    def __init__(self, nu=0.3, margin=1.0, margin_step=0.1):
        self.nu = nu
        self.margin = margin
        self.margin_step = margin_step


class Logistic(Loss):
    """log(1 + exp(-y f)); expit(f) is the probability of the second class.

    Examples
    --------
    >>> round(Logistic().value(0.0, 1), 4)
    0.6931
    """

    task = "binary"
    probabilistic = True

    def __init__(self):
        pass


class Novelty(_Margin):
    """max(0, margin - f): an example with f < margin is novel (K III-B).

    Parameters
    ----------
    {margin}

    References
    ----------
    {K}

    Examples
    --------
    >>> Novelty(margin=1.0).value([0.25, 1.5]).tolist()
    [0.75, 0.0]
    """

    task = "novelty"

    def __init__(self, margin=1.0):
        self.margin = margin


class NuNovelty(_Margin):
    """max(0, rho - f) - nu rho: rho adapts so that a fraction nu of the examples alerts, K (20).

    The default `margin_step` is not the papers' rule: rho then has a step of its own, relative to its distance from what is
    held against it, and stays positive. ``margin_step=None`` is the papers': rho shares the step of f, and may outrun it.

    K prints the update of rho with the wrong sign; see the page on errata.

    Parameters
    ----------
    {nu}
    margin : float
        Where rho starts.
    {margin_step}
        With a number, `fit`, which knows all rows, in the end puts rho where a fraction nu of them is below it.

    References
    ----------
    {K}
    """

    task = "novelty"
    adapts = True
    _values = {**NU_VALUES, "margin": check_finite}

    def __init__(self, nu=0.01, margin=1.0, margin_step=0.1):
        self.nu = nu
        self.margin = margin
        self.margin_step = margin_step


class Squared(Loss):
    """1/2 (y - f)^2, K (21).

    References
    ----------
    {K}

    Examples
    --------
    >>> Squared().value([0.0, 2.0], 1.0).tolist()
    [0.5, 0.5]
    """

    def __init__(self):
        pass


class Absolute(Loss):
    """|y - f|.

    Examples
    --------
    >>> Absolute().value([0.0, 3.0], 1.0).tolist()
    [1.0, 2.0]
    """

    def __init__(self):
        pass


class Quantile(Loss):
    """The pinball loss, level (y - f) below y and (1 - level) (f - y) above: f becomes that quantile of y.

    The derivative is 0 where f = y. The level 0.5, the median, is half of `Absolute`.

    Parameters
    ----------
    level : float
        The fraction of the y that should lie below f, in (0, 1).

    Examples
    --------
    >>> Quantile(level=0.75).value([0.0, 3.0], 1.0).tolist()
    [0.75, 0.5]
    >>> Quantile(level=0.75).derivative([0.0, 1.0, 3.0], 1.0).tolist()
    [-0.75, 0.0, 0.25]
    """

    _values = {"level": check_fraction}

    def __init__(self, level=0.5):
        self.level = level

    def core(self):
        return self._code(), float(self.level), 0.0, 0.0


class Insensitive(_Width):
    """max(0, |y - f| - width).

    Parameters
    ----------
    width : float
        epsilon, the error that costs nothing; at least 0.

    Examples
    --------
    >>> Insensitive(width=0.5).value([0.75, 3.0], 1.0).tolist()
    [0.0, 1.5]
    """

    def __init__(self, width=0.1):
        self.width = width


class NuInsensitive(_Width):
    """max(0, |y - f| - epsilon) + nu epsilon with epsilon adapted, K (22).

    The default `margin_step` is not the papers' rule: epsilon then has a step of its own, relative to its distance from what is
    held against it, and stays positive. ``margin_step=None`` is the papers': epsilon shares the step of f, and may outrun it.

    A fraction nu of the examples comes to lie outside the tube.

    Parameters
    ----------
    {nu}
    width : float
        Where epsilon starts; at least 0.
    {margin_step}

    References
    ----------
    {K}
    """

    adapts = True
    _values = {**NU_VALUES, "width": check_not_negative}

    def __init__(self, nu=0.1, width=1.0, margin_step=0.1):
        self.nu = nu
        self.width = width
        self.margin_step = margin_step


class SquaredInsensitive(_Width):
    """max(0, |y - f| - width)^2, H (6), without a factor 1/2.

    Parameters
    ----------
    width : float
        epsilon, the error that costs nothing; at least 0.

    References
    ----------
    {H}

    Examples
    --------
    >>> SquaredInsensitive(width=0.5).value([0.75, 3.0], 1.0).tolist()
    [0.0, 2.25]
    """

    def __init__(self, width=0.1):
        self.width = width


class Huber(_Width):
    """|y - f| - width/2 outside, (y - f)^2 / (2 width) inside, K (23).

    Parameters
    ----------
    width : float
        sigma, the error up to which the loss is quadratic; positive.

    References
    ----------
    {K}

    Examples
    --------
    >>> Huber(width=1.0).value([0.5, 3.0], 1.0).tolist()
    [0.125, 1.5]
    """

    _values = {"width": check_positive}

    def __init__(self, width=1.0):
        self.width = width


class NuHuber(_Width):
    """Huber's loss with sigma adapted so that a fraction nu lies outside (K III-C).

    The default `margin_step` is not the papers' rule: sigma then has a step of its own, relative to its distance from what is
    held against it, and stays positive. ``margin_step=None`` is the papers': sigma shares the step of f, and may outrun it.

    sigma moves by +eta (1 - nu) outside and -eta nu inside, where eta is the step, and stays positive. That is a
    quantile rule, not the gradient of a loss; `value` is Huber's loss at the current width.

    Parameters
    ----------
    {nu}
    width : float
        Where sigma starts; positive.
    {margin_step}

    References
    ----------
    {K}
    """

    adapts = True
    _values = {**NU_VALUES, "width": check_positive}

    def __init__(self, nu=0.1, width=1.0, margin_step=0.1):
        self.nu = nu
        self.width = width
        self.margin_step = margin_step


class _Runner(_Margin):
    """A hinge over the runner-up: max(0, max_l [rho Delta(y, l) + f(x, l)] - f(x, y)), V (16), (25)."""

    task = "multiclass"

    def value(self, scores, y, labels=None, *, scalar=None):
        """Loss of score vectors, shape (..., classes), for class indices y.

        `labels` gives Delta; the classes are then in its order. `scalar`, a number or one for each vector, is in
        place of the margin.
        """
        return self._at_runner_up(_core.value, scores, y, labels, scalar)[0]

    def derivative(self, scores, y, labels=None, *, scalar=None):
        """dl/dscores: -1 at y and +1 at the runner-up where the loss is positive."""
        slope, runner_up = self._at_runner_up(_core.derivative, scores, y, labels, scalar)
        indicators = np.eye(np.shape(scores)[-1])
        return np.asarray(slope)[..., None] * (indicators[y] - indicators[runner_up]) + 0.0  # no -0

    def _at_runner_up(self, function, scores, y, labels, scalar):
        """(function of the margin over the runner-up, runner-up) for each score vector."""
        self.validate()
        code, own, nu, _ = self.core()
        scores, scalar = np.asarray(scores, dtype=float), own if scalar is None else np.asarray(scalar, dtype=float)
        y = np.broadcast_to(y, scores.shape[:-1])
        if self.structured and labels is not None:
            outputs = labels.outputs()
            distance = np.reshape([outputs.distances_from(i) for i in y.ravel().tolist()], scores.shape)
        else:
            distance = 1.0 - np.eye(scores.shape[-1])[y]
        is_own = np.arange(scores.shape[-1]) == y[..., None]
        best = np.where(is_own, -np.inf, np.asarray(scalar)[..., None] * distance + scores).argmax(axis=-1)
        values = function(code, scalar, nu, _at(scores, y) - _at(scores, best), _at(distance, best))
        return values, best


def _at(scores, index):
    """The entry of each score vector at its index."""
    index = np.broadcast_to(index, scores.shape[:-1])
    return np.take_along_axis(scores, index[..., None], axis=-1)[..., 0]


class MulticlassHinge(_Runner):
    """max(0, margin + max_{l != y} f(x, l) - f(x, y)), V (16).

    Parameters
    ----------
    margin : float
        rho, what the label's score should be above that of any other; at least 0.

    References
    ----------
    {V}

    Examples
    --------
    >>> MulticlassHinge().value([[2.0, 0.5, 0.0]], [0])
    array([0.])
    >>> MulticlassHinge().derivative([[1.2, 0.5, 0.0]], [0])
    array([[-1.,  1.,  0.]])
    """

    def __init__(self, margin=1.0):
        self.margin = margin


class NuMulticlassHinge(_Runner):
    """The multiclass hinge with rho adapted: max(0, rho + max_l f(x, l) - f(x, y)) - nu rho, V 6.2.1.

    The default `margin_step` is not the papers' rule: rho then has a step of its own, relative to its distance from what is
    held against it, and stays positive. ``margin_step=None`` is the papers': rho shares the step of f, and may outrun it.

    Parameters
    ----------
    {nu}
    margin : float
        Where rho starts.
    {margin_step}

    References
    ----------
    {V}
    """

    adapts = True
    _values = {**NU_VALUES, "margin": check_finite}

    def __init__(self, nu=0.3, margin=1.0, margin_step=0.1):
        self.nu = nu
        self.margin = margin
        self.margin_step = margin_step


class GraphHinge(_Runner):
    """max(0, max_l [Delta(y, l) + f(x, l)] - f(x, y)), V (25).

    Delta, the distance between labels, comes from the model's `labels`; without them it is 1.

    References
    ----------
    {V}

    Examples
    --------
    >>> from onlinekernels import LabelGraph
    >>> line = LabelGraph([("low", "middle", 1.0), ("middle", "high", 1.0)])
    >>> GraphHinge().value([[0.0, 0.0, 0.0]], [0], labels=line)
    array([2.])
    """

    scalar_name = None
    structured = True
    _values = {}

    def __init__(self):
        pass

    def core(self):
        return self._code(), 1.0, 0.0, 0.0


class NuGraphHinge(_Runner):
    """The graph hinge with a scale: max(0, max_l [rho Delta(y, l) + f(x, l)] - f(x, y)) - nu rho.

    The default `margin_step` is not the papers' rule: rho then has a step of its own, relative to its distance from what is
    held against it, and stays positive. ``margin_step=None`` is the papers': rho shares the step of f, and may outrun it.

    Delta, the distance between labels, comes from the model's `labels`; without them it is 1. It is the loss of V 6.2.1
    where Delta is 1.

    Parameters
    ----------
    {nu}
    margin : float
        Where rho starts.
    {margin_step}

    References
    ----------
    {V}
    """

    adapts = True
    structured = True
    _values = {**NU_VALUES, "margin": check_finite}

    def __init__(self, nu=0.3, margin=1.0, margin_step=0.1):
        self.nu = nu
        self.margin = margin
        self.margin_step = margin_step


class MulticlassLogistic(Loss):
    """log sum_l exp f(x, l) - f(x, y), V (20); the softmax of the scores are probabilities.

    References
    ----------
    {V}

    Examples
    --------
    >>> MulticlassLogistic().value([[0.0, 0.0]], [0]).round(4)
    array([0.6931])
    """

    task = "multiclass"
    probabilistic = True
    over_all_labels = True

    def __init__(self):
        pass

    def value(self, scores, y):
        """Loss of score vectors, shape (..., classes), for class indices y."""
        scores = np.asarray(scores, dtype=float)
        largest = scores.max(axis=-1)
        return largest + np.log(np.exp(scores - largest[..., None]).sum(axis=-1)) - _at(scores, y)

    def derivative(self, scores, y):
        """Probabilities minus the label's indicator, V (21)."""
        scores = np.asarray(scores, dtype=float)
        flat = probabilities(scores.reshape(-1, scores.shape[-1]))
        return flat.reshape(scores.shape) - np.eye(scores.shape[-1])[y]


class MulticlassSquared(Loss):
    """1/2 sum_l (target_l - f(x, l))^2, where the target is +1 for the label and -1 for all others.

    For two or many classes. f(x, l) estimates 2 p - 1, where p is the probability of the label l at x. So (1 + f) / 2,
    kept within [1e-6, 1] and brought to the sum 1, are probabilities.

    A class that joins later has been one of the others before: it starts from what 'always -1' has learned.

    Examples
    --------
    >>> loss = MulticlassSquared()
    >>> loss.value([[0.5, -1.0, 0.0]], [0])
    array([0.625])
    >>> loss.derivative([[0.5, -1.0, 0.0]], [0])
    array([[-0.5,  0. ,  1. ]])
    >>> loss.probabilities([[0.5, -0.5, -1.0]]).round(4)
    array([[0.75, 0.25, 0.  ]])
    """

    task = "multiclass"
    probabilistic = True
    over_all_labels = True
    starts_as_wrong = True

    def __init__(self):
        pass

    @staticmethod
    def targets(y, classes):
        """+1 at the class index y and -1 elsewhere, shape (..., classes).

        >>> MulticlassSquared.targets([1, 0], 3)
        array([[-1.,  1., -1.],
               [ 1., -1., -1.]])
        """
        return 2.0 * np.eye(classes)[np.asarray(y, dtype=np.intp)] - 1.0

    def value(self, scores, y):
        """Loss of score vectors, shape (..., classes), for class indices y; a class whose score is -inf is not there."""
        scores = np.asarray(scores, dtype=float)
        there = scores > -np.inf
        parts = self._evaluate(_core.value, np.where(there, scores, 0.0), self.targets(y, scores.shape[-1]))
        return np.where(there, parts, 0.0).sum(axis=-1)

    def derivative(self, scores, y):
        """f(x, l) - target_l."""
        scores = np.asarray(scores, dtype=float)
        return self._evaluate(_core.derivative, scores, self.targets(y, scores.shape[-1]))

    def curvature(self, scores, y):
        """The diagonal of the second derivative, the identity."""
        scores = np.asarray(scores, dtype=float)
        return self._evaluate(_core.curvature, scores, self.targets(y, scores.shape[-1]))

    def probabilities(self, scores):
        """(1 + f) / 2 within [1e-6, 1], brought to the sum 1, for scores of shape (n, classes)."""
        likely = np.clip(0.5 * (1.0 + np.asarray(scores, dtype=float)), 1e-6, 1.0)
        return likely / likely.sum(axis=-1, keepdims=True)


class Mistake(Loss):
    """Mistakes of many classes, as the Perceptron counts them: another label does as well as the right one.

    Its derivative is the ultraconservative update of Crammer and Singer (2003): -1 at the label, and 1 shared by all
    labels that do as well, "uniform" or "proportional" to their lead. Not a choice of its own: see `Perceptron`.

    Parameters
    ----------
    update : "uniform" or "proportional"

    Examples
    --------
    >>> Mistake("uniform").derivative([[0.0, 2.0, 1.0]], [0])
    array([[-1. ,  0.5,  0.5]])
    >>> Mistake("proportional").derivative([[0.0, 3.0, 1.0]], [0])
    array([[-1.  ,  0.75,  0.25]])
    """

    task = "multiclass"
    over_all_labels = True

    def __init__(self, update="uniform"):
        self.update = update

    @classmethod
    def is_compiled(cls):
        return True

    def core(self):
        return _core.CODES[self.update], 0.0, 0.0, 0.0

    def validate(self):
        if self.update not in ("uniform", "proportional"):
            raise bad_parameter(self, "update", "'uniform' or 'proportional'", self.update)

    def value(self, scores, y):
        """max(0, max_{l != y} f(x, l) - f(x, y)) of score vectors, shape (..., classes), for class indices y."""
        scores = np.asarray(scores, dtype=float)
        return scores.max(axis=-1) - _at(scores, y)

    def derivative(self, scores, y):
        """The update, for each score vector."""
        scores = np.asarray(scores, dtype=float)
        y = np.broadcast_to(y, scores.shape[:-1])
        flat = mistake_gradients(scores.reshape(-1, scores.shape[-1]), y.ravel(), self.update == "proportional")
        return flat.reshape(scores.shape)


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
