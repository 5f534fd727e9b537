"""NORMA, explicit stochastic gradient descent in a Hilbert space (K), and the Perceptron."""
from __future__ import annotations

import math
import numbers
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING

from onlinekernels._core import metadescent, rules
from onlinekernels.base.labelvalues import count_labels
from onlinekernels.base.estimator import FunctionEstimator
from onlinekernels.base.plan import Plan
from onlinekernels.base.plan import Rule, check_step
from onlinekernels.base.validation import bad_parameter, check_flag, check_not_negative, check_positive
from onlinekernels.losses import Hinge, Mistake, MulticlassHinge
from onlinekernels.steps import Fixed

if TYPE_CHECKING:
    from onlinekernels.annotations import (
        Any, Budget, ClassWeight, KernelLike, LabelStructure, Loss, RunningEncoder, RunningScaler, Step,
    )

__all__ = ["NORMA", "Gradient", "Perceptron", "drift_rates", "self_tuned"]

RATE = 0.5  # of the votes of learners for all drift rates
TIE = 1e-300  # a margin so small that only ties and mistakes fall short of it


@dataclass(eq=False, repr=False)
class Gradient(Rule):
    """f <- (1 - eta lambda) f - eta l'(f(x), y) k(x, .), with a step eta that may adapt itself (`MetaDescent`)."""

    _values = {"step": check_step, "regularization": check_not_negative, "exact_norms": check_flag}
    forms = frozenset({"one", "pair", "dense", "targets"})
    may_change = frozenset({"step", "regularization"})
    takes_gradient_steps = True
    advice = "a smaller step, or SILK, whose steps cannot overshoot"

    step: Step = field()  # eta
    regularization: float = 0.0  # lambda
    exact_norms: bool = False  # for steps that adapt: |f|^2 and <f, v> corrected whenever a term is dropped

    def check(self, plan):
        loss, largest = plan.loss, self.step.checked_size(math.inf, 1)
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
    def largest_step(self):
        return 1.0 / self.regularization if self.regularization else math.inf

    @property
    def core_class(self):
        """Another rule if the step adapts."""
        return metadescent.AdaptiveGradient if self.adapts_step else rules.Gradient

    def settings(self):
        return {**super().settings(), "regularization": self.regularization}


@dataclass(eq=False, repr=False)
class NORMA(FunctionEstimator):
    """Naive Online Regularized-risk Minimization Algorithm, K (9).

    Each example moves the hypothesis down the gradient of its regularized loss::

        f <- (1 - eta_t lambda) f - eta_t l'(f(x_t), y_t) k(x_t, .)

    Parameters
    ----------
    {loss} {kernel}
    step : float or Step
        eta_t: how far an example moves f; a number means `Fixed`. step * regularization must not exceed 1.
    regularization : float
        lambda: how fast old coefficients decay; at least 0.
    {average} {budget} {offset} {labels} {class_weight} {scale} {scale_target} {encode} {epochs}

    {Attributes} {Notes} {References}

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

    loss: Loss | str | None = None
    kernel: KernelLike | None = None
    _: KW_ONLY
    step: float | Step = 0.1
    regularization: float = 1e-3
    average: bool = False
    budget: Budget | int | None = None
    offset: bool | None = None
    labels: LabelStructure | None = None
    class_weight: ClassWeight | None = None
    scale: bool | RunningScaler = False
    scale_target: bool | str | RunningScaler = False
    encode: bool | RunningEncoder = False
    epochs: int = 1

    @classmethod
    def self_tuning(cls, kernel: KernelLike | None = None, *, radius: float = 1.0, examples: int = 100_000,
                    rate: float = RATE, budget: Budget | int | None = None) -> Any:
        """NORMA that need not be told how much the world moves: `Hedge` of a few, one for each power of two.

        What K's theorem 3 prescribes for few mistakes needs to know the best sequence of functions: its loss K, norm B
        and movement D1, D2 (see `bounds.tune_norma_mistakes`), and K leaves open how to do without. With eta' = eta /
        (1 - eta lambda) and the margin rho = eta' X^2 / 2, all but the scale of f depends on z = eta' lambda alone, by
        which f decays: 1 - eta lambda = 1 / (1 + z). The best z is sqrt(D2 / m) / B, and one of 0, 2, 1, 1/2, 1/4, ...,
        1 / examples is within a factor of sqrt(2) of it. A learner for each is run, from the start and for good, and
        they vote, weighed by exp(-rate mistakes).

        What is proven, for any sequence g_t at the margin mu on any stream of m <= `examples`, without a budget: let

            E(z) = B^2 + (D2 / z + 2 B D1 + m z B^2) / (2 + z),    C(z) = X^2 E(z) / 4
            M(z) = K/mu + 2 C(z)/mu^2 + 2 sqrt(C(z)/mu^2 (K/mu + C(z)/mu^2))

        The learner of z makes at most M(z) mistakes, K (43)-(45) (it is `bounds.norma_mistakes_untuned`, where this
        margin costs nothing), and the vote of N of them at most

            (rate M + log N + m log 1 / (1 - 1/examples)) / log(2 / (1 + exp(-rate))),    M = min M(z) over all z

        since whenever the vote is wrong, half of the weights at least are, and lose all but exp(-rate) of theirs. With
        rate 0.5 that is 2.3 M + 4.6 (log N + 1), and M is near K's bound for the tuned algorithm: E exceeds B^2 + B
        (sqrt(m D2) + D1) by 7 % of B sqrt(m D2) or, where sqrt(D2 / m) / B < 1 / m, by 1.5 B^2 at most.
        `bounds.self_tuned_mistakes` computes it.

        Parameters
        ----------
        kernel : Kernel, str, callable or None
            As for `NORMA`; the theorem is about one that does not change.
        radius : float
            X: k(x, x) <= radius^2 for all examples.
        examples : int
            How long the stream may become; at least 2. There are about log2(examples) + 3 learners.
        rate : float
            How fast votes follow mistakes; positive.
        budget : Budget, int or None
            Of each learner. The theorem knows none.

        Returns
        -------
        Hedge

        Examples
        --------
        >>> import numpy as np
        >>> from onlinekernels import NORMA, Gaussian
        >>> X = np.random.default_rng(0).normal(size=(400, 2))
        >>> y = np.where(X[:, 0] * np.cos(np.arange(400) / 50) + X[:, 1] * np.sin(np.arange(400) / 50) > 0, 1, -1)
        >>> model = NORMA.self_tuning(Gaussian(2.0), examples=400)
        >>> labels = model.progressive(X, y, classes=[-1, 1], return_labels=True)[1]
        >>> int((labels != y).sum()), {name: round(400 * error) for name, error in model.errors_.items()}["z=0"]
        (69, 76)
        """
        return self_tuned(
            "NORMA.self_tuning",
            lambda z, square: cls(Hinge((1.0 + z) * square / 2.0), kernel, step=1.0, regularization=z / (1.0 + z),
                                  budget=budget, offset=False),
            radius, examples, rate)


@dataclass(eq=False, repr=False)
class Perceptron(FunctionEstimator):
    """The kernel Perceptron: on a mistake, y f(x) <= 0, add y k(x, .).

    It is `NORMA` with a zero margin, no regularization and step 1.

    With many classes a mistake is a label that does as well as the right one. The update is ultraconservative (Crammer
    and Singer 2003): it adds k(x, .) to the right label and takes as much away in all from those that did as well.

    Parameters
    ----------
    {kernel}
    update : "runner-up", "uniform" or None
        For many classes, what is taken from whom: all from the best of the wrong labels, or the same from each.
        None is two classes or, if the first call shows or names more, "runner-up".
    {average} {budget} {offset} {class_weight} {scale} {encode} {epochs}

    {Attributes} {Notes} {References}

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

    kernel: KernelLike | None = None
    _: KW_ONLY
    update: str | None = None
    average: bool = False
    budget: Budget | int | None = None
    offset: bool | None = None
    class_weight: ClassWeight | None = None
    scale: bool | RunningScaler = False
    encode: bool | RunningEncoder = False
    epochs: int = 1

    @property
    def loss(self) -> Any:
        """The hinge with a margin that only a mistake falls short of; for shared updates, the mistake itself."""
        return Hinge(margin=0.0) if self.update is None else self._loss_of_many()

    def _loss_of_many(self):
        if self.update == "uniform":
            return Mistake()
        # The hinge of many classes moves only for a positive loss, and a tie must count.
        return MulticlassHinge(margin=TIE)

    def _plan(self):
        fitted = self._state is not None and self._state.loss.task == "multiclass"
        return self._plan_for(self._loss_of_many() if fitted else self.loss)

    def _first_plan(self, X, y, classes):
        if self.update is None and count_labels(y if classes is None else classes) > 2:
            return self._plan_for(self._loss_of_many())
        return self._plan_for(self.loss)

    def _plan_for(self, loss):
        if self.update not in (None, "runner-up", "uniform"):
            raise bad_parameter(self, "update", '"runner-up", "uniform" or None', self.update)
        return Plan.of(self, Gradient(Fixed(1.0)), loss=loss)


def drift_rates(examples):
    """z = 0, and 2, 1, 1/2, 1/4, ... down to 1 / examples or less: sqrt(D2 / m) / B of K (32) is near one of them.

    A sequence of functions of norm B that moves by at most 2 B at a time has sqrt(D2 / m) / B <= 2; one below 1 / m has
    moved so little that it need not be followed.

    >>> drift_rates(8)
    [0.0, 2.0, 1.0, 0.5, 0.25, 0.125]
    """
    return [0.0, *(2.0**-power for power in range(-1, math.ceil(math.log2(examples)) + 1))]


def self_tuned(owner, make, radius, examples, rate):
    """Learners for all drift rates z that vote; ``make(z, radius^2)`` gives one."""
    from onlinekernels.ensemble.stacking import Hedge  # few programs need it

    if not check_positive.accepts(radius):
        raise bad_parameter(owner, "radius", check_positive.expected, radius)
    if not isinstance(examples, numbers.Integral) or isinstance(examples, bool) or examples < 2:
        raise bad_parameter(owner, "examples", "an integer of at least 2", examples)

    members = {f"z={z:g}": make(z, float(radius) ** 2) for z in drift_rates(int(examples))}
    return Hedge(members, rate=rate, share=1.0 / int(examples), votes=True)
