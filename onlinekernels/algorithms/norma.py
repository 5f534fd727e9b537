"""NORMA, explicit stochastic gradient descent in a Hilbert space (K), and the Perceptron."""
from onlinekernels._core.rules import gradient, metadescent
from onlinekernels.model.learner import OnlineLearner
from onlinekernels.model.plan import Plan
from onlinekernels.model.rules import Rule, check_step
from onlinekernels.nouns.labelvalues import count_labels
from onlinekernels.nouns.losses import Hinge, Mistake, MulticlassHinge
from onlinekernels.nouns.steps import Fixed, as_step
from onlinekernels.validation import bad_parameter, check_flag, check_not_negative

__all__ = ["NORMA", "Gradient", "Perceptron"]

TIE = 1e-300  # a margin so small that only ties and mistakes fall short of it


class Gradient(Rule):
    """f <- (1 - eta lambda) f - eta l'(f(x), y) k(x, .), with a step eta that may adapt itself (`MetaDescent`).

    Parameters
    ----------
    step : Step
        eta.
    regularization : float
        lambda.
    exact_norms : bool
        For steps that adapt: |f|^2 and <f, v> corrected whenever a term is dropped.
    """

    _values = {"step": check_step, "regularization": check_not_negative, "exact_norms": check_flag}
    forms = frozenset({"one", "pair", "dense", "targets"})
    may_change = frozenset({"step", "regularization"})
    takes_gradient_steps = True
    advice = "a smaller step, or SILK, whose steps cannot overshoot"

    def __init__(self, step, regularization=0.0, exact_norms=False):
        self.step = step
        self.regularization = regularization
        self.exact_norms = exact_norms

    def check(self, plan):
        loss, largest = plan.loss, self.step.size(1)
        if largest * self.regularization > 1:
            raise ValueError(
                f"step * regularization must be at most 1, so that old coefficients shrink and do not change "
                f"sign. Got {largest:g} * {self.regularization:g} = {largest * self.regularization:g} instead."
            )
        if self.adapts_step and not loss.is_compiled():
            if loss.task == "multiclass" or not loss.has_curvature:
                raise ValueError(
                    f"{type(loss).__name__} cannot be used with MetaDescent: it needs one output and a method "
                    "curvature(score, y)."
                )
        super().check(plan)

    def check_loss(self, loss):
        """All losses have a gradient."""

    @property
    def core_class(self):
        """Another rule if the step adapts."""
        return metadescent.AdaptiveGradient if self.adapts_step else gradient.Gradient

    def settings(self):
        settings = {**super().settings(), "regularization": self.regularization}
        return {**settings, "normalized": self.step.normalized} if self.adapts_step else settings

    def core(self, function):
        return self.core_class(**self.settings(), **({"per_feature": True} if self.per_feature else {}))


class NORMA(OnlineLearner):
    """Naive Online Regularized-risk Minimization Algorithm, K (9).

    Each example moves the hypothesis down the gradient of its regularized loss::

        f <- (1 - eta_t lambda) f - eta_t l'(f(x_t), y_t) k(x_t, .)

    Parameters
    ----------
    {loss}
    {kernel}
    step : float or Step
        eta_t: how far an example moves f; a number means `Fixed`. step * regularization must not exceed 1.
    regularization : float
        lambda: how fast old coefficients decay; at least 0.
    {average}
    {budget}
    {offset}
    {labels}
    {class_weight}
    {scale}
    {scale_target}
    {encode}
    {epochs}

    {Attributes}

    {Notes}

    {References}

    Examples
    --------
    >>> import numpy as np
    >>> from onlinekernels import NORMA, Gaussian
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 2))
    >>> y = np.where(X[:, 0] * X[:, 1] > 0, "same", "different")
    >>> model = NORMA("hinge", Gaussian(0.7), step=0.5, regularization=0.01, budget=200)
    >>> scores = model.progressive(X, y)
    >>> mistakes = model.classes_[(scores > 0).astype(int)] != y
    >>> int(mistakes[:100].sum()), int(mistakes[-100:].sum())
    (19, 12)
    >>> model.predict([[1.0, 1.0], [-1.0, 1.0]])
    array(['same', 'different'], dtype='<U9')
    """

    _rule = Gradient

    def __init__(self, loss=None, kernel=None, *, step=0.1, regularization=1e-3, average=False,
                 budget=None, offset=None, labels=None, class_weight=None, scale=False, scale_target=False,
                 encode=False, epochs=1):
        self.loss = loss
        self.kernel = kernel
        self.step = step
        self.regularization = regularization
        self.average = average
        self.budget = budget
        self.offset = offset
        self.labels = labels
        self.class_weight = class_weight
        self.scale = scale
        self.scale_target = scale_target
        self.encode = encode
        self.epochs = epochs

    def _plan(self):
        regularization = check_not_negative(self, "regularization")
        return Plan.of(self, Gradient(as_step(self.step, self), regularization))


class Perceptron(OnlineLearner):
    """The kernel Perceptron: on a mistake, y f(x) <= 0, add y k(x, .).

    It is `NORMA` with a zero margin, no regularization and step 1.

    With many classes a mistake is a label that does as well as the right one. The update is ultraconservative (Crammer
    and Singer 2003): it adds k(x, .) to the right label and takes as much away in all from those that did as well.

    Parameters
    ----------
    {kernel}
    update : "runner-up", "uniform", "proportional" or None
        For many classes, what is taken from whom: all from the best of the wrong labels, the same from each, or in
        proportion to their lead. None is two classes or, if the first call shows or names more, "runner-up".
    {average}
    {budget}
    {offset}
    {class_weight}
    {scale}
    {encode}
    {epochs}

    {Attributes}

    {Notes}

    {References}

    Examples
    --------
    >>> from onlinekernels import Perceptron
    >>> Perceptron("linear").fit([[1.0], [-2.0]], [1, -1]).coef_
    array([[1.]])
    >>> model = Perceptron("linear", update="uniform").fit([[1.0], [2.0], [-2.0]], ["a", "b", "c"])
    >>> model.coef_
    array([[ 0.],
           [ 2.],
           [-2.]])
    """

    _rule = Gradient
    _takes_many = True

    def __init__(self, kernel=None, *, update=None, average=False, budget=None, offset=None, class_weight=None,
                 scale=False, encode=False, epochs=1):
        self.kernel = kernel
        self.update = update
        self.average = average
        self.budget = budget
        self.offset = offset
        self.class_weight = class_weight
        self.scale = scale
        self.encode = encode
        self.epochs = epochs

    @property
    def loss(self):
        """The hinge with a margin that only a mistake falls short of; for shared updates, the mistake itself."""
        return Hinge(margin=0.0) if self.update is None else self._loss_of_many()

    def _loss_of_many(self):
        if self.update in ("uniform", "proportional"):
            return Mistake(self.update)
        # The hinge of many classes moves only for a positive loss, and a tie must count.
        return MulticlassHinge(margin=TIE)

    def _plan(self):
        fitted = self._state is not None and self._state.loss.task == "multiclass"
        return self._plan_for(self._loss_of_many() if fitted else self.loss)

    def _first_plan(self, y, classes):
        if self.update is None and count_labels(y if classes is None else classes) > 2:
            return self._plan_for(self._loss_of_many())
        return self._plan_for(self.loss)

    def _plan_for(self, loss):
        if self.update not in (None, "runner-up", "uniform", "proportional"):
            raise bad_parameter(self, "update", '"runner-up", "uniform", "proportional" or None', self.update)
        return Plan.of(self, Gradient(Fixed(1.0)), loss=loss)
