"""Kernel recursive least squares: second order."""
from __future__ import annotations

import numbers
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING

import numpy as np

from onlinekernels._core import posterior as core
from onlinekernels.base import defaults
from onlinekernels.base.estimator import FunctionEstimator, learned, UncertainEstimator
from onlinekernels.base.plan import Rule
from onlinekernels.base.labelvalues import as_list, label_column
from onlinekernels.losses import MulticlassSquared, Squared
from onlinekernels.base.validation import (
    as_csr, bad_parameter, check_integer, check_part, check_positive, check_share, check_targets,
)

if TYPE_CHECKING:
    from onlinekernels.annotations import (
        Any, Array, ClassWeight, Examples, Generator, KernelLike, RunningEncoder, RunningScaler,
    )

FIRST_NOISE = 0.1  # of a noise that is estimated


def check_noise(owner, name):
    """A variance, or "auto"."""
    noise = getattr(owner, name)
    if isinstance(noise, str):
        if noise != "auto":
            raise bad_parameter(owner, name, 'a positive number or "auto"', noise)
        return noise
    return check_positive(owner, name)


def check_points(owner, name):
    """A number of points, or None for all."""
    return None if getattr(owner, name) is None else check_integer(owner, name, 1, 2**31 - 1)


@dataclass(eq=False, repr=False)
class Recursive(Rule):
    """Condition the posterior of f on each example."""

    _values = {"noise": check_noise, "memory": check_share, "tolerance": check_part, "budget": check_points}
    losses = (Squared, MulticlassSquared)
    forms = frozenset({"one", "dense", "targets"})
    may_change = frozenset({"noise"})
    is_posterior = True
    refuses_start = ("KRLS knows no initial=: it would not know how sure the function of another model is. "
                     "Copy or load the model to go on from it.")

    noise: float | str  # the variance of y about f; "auto" follows the innovations
    memory: float  # what is left of f's variance after one example
    tolerance: float  # the least part of its variance that a point must bring
    budget: int | None  # how many points may stay; None for all

    def check_loss(self, loss):
        if type(loss) not in self.losses:
            raise ValueError("The 'loss' parameter of KRLS must be one whose posterior is Gaussian: 'squared' for "
                             f"numbers, 'multiclass_squared' for classes. Got {loss!r} instead.")

    @property
    def advice(self):
        """What may help if learning diverges."""
        parts = ["a larger noise, or another width of the kernel"]
        if self.memory == 1.0:
            parts.insert(0, "a memory below 1, such as 0.999, if the world changes")
        if self.noise != "auto":
            parts.insert(0, 'noise="auto", which lets outliers count for little and doubts after a change')
        return "; ".join(parts)

    @property
    def takes_outliers(self):
        """Whether the noise is estimated, which makes little of outliers."""
        return self.noise == "auto"

    def settings(self):
        estimates = self.noise == "auto"
        return {**super().settings(), "noise": FIRST_NOISE if estimates else self.noise, "estimates": estimates}

    def core(self, function):
        return core.Recursive(posterior=function, **self.settings())

    def form(self, kind, function, loss, targets):
        return core.Innovations(self.core(function), function.outputs, targets)


@dataclass(eq=False, repr=False)
class KRLS(UncertainEstimator, FunctionEstimator):  # type: ignore[misc]  # `progressive` gives other outputs
    """Kernel recursive least squares: it keeps what it knows of f, and how well it knows it.

    Each prediction is that of a Gaussian process, f ~ GP(0, k) and y = f(x) + noise, given all examples so far, as far
    as `budget` points can hold it. So an example is used for all that it says, and every prediction has a standard
    deviation.

    With ``memory < 1`` f fades, f <- sqrt(memory) f, and what is lost is filled up from the prior. That is the Gaussian
    process with the kernel k(x, x') memory^(\\|t - t'\\| / 2) over examples t.

    After every 64 examples those that f cannot express yet join the points, and those that f would miss least leave.
    Between two such checkpoints rows are pending, and are used in full, so results do not depend on how a stream is cut
    into calls.

    Parameters
    ----------
    loss : Squared, MulticlassSquared, "squared" or "multiclass_squared"
        The first is for numbers, one or several, the second for two or many classes.
    {kernel}
        For numbers, None is that plus 1. Prior knowledge: k(x, x) is the variance of f before anything is known. Add
        `Constant` if f is not about 0. `Linear()` keeps weights and no points: Bayesian linear regression.
    noise : float or "auto"
        The variance of y about f; positive. "auto" starts at 0.1 and follows the innovations. Of numbers it also
        doubts: an innovation beyond four times the usual counts for no more than that, and when those of 64 examples
        are much larger than they used to be, f is taken to have changed; its mean stays, and is as uncertain as before
        the first example. `changes_` counts that. k(x, x) does not follow: targets far from the size of 1 need
        ``scale_target=True``, or intervals are too wide.
    memory : float
        What is left of f's variance after one example, in (0, 1]; 1 forgets nothing.
    budget : int or None
        How many points may stay; None all of them. Up to 63 examples wait beside them.
    tolerance : float
        A point joins if its variance, given f at all other points, exceeds this times k(x, x); in [0, 1). Without a
        budget 1e-11 is the exact process up to rounding; nothing smaller makes a difference.
    {class_weight} {scale} {scale_target} {encode}
    epochs : int
        Passes that `fit` makes; at least 1. Each counts as new evidence.

    {Attributes} {Notes}

    References
    ----------
    Engel, Mannor and Meir, "The kernel recursive least-squares algorithm", 2004. Csato and Opper, "Sparse on-line
    Gaussian processes", 2002. Van Vaerenbergh, Lazaro-Gredilla and Santamaria, "Kernel recursive least-squares tracker
    for time-varying regression", 2012.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinekernels import KRLS, Gaussian
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, size=(300, 1))
    >>> y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=300)
    >>> model = KRLS(kernel=Gaussian(0.7), noise=0.01).fit(X, y)
    >>> mean, std = model.predict([[0.5], [9.0]], return_std=True)
    >>> mean.round(1), std.round(1)                     # it knows what it does not know
    (array([0.8, 0. ]), array([0., 1.]))
    """

    _rule = Recursive
    _default_kernel = staticmethod(defaults.process)

    loss: Any = "squared"
    kernel: KernelLike | None = None
    _: KW_ONLY
    noise: float | str = 0.1
    memory: float = 1.0
    budget: int | None = 150
    tolerance: float = 1e-3
    class_weight: ClassWeight | None = None
    scale: bool | RunningScaler = False
    scale_target: bool | str | RunningScaler = False
    encode: bool | RunningEncoder = False
    epochs: int = 1

    # ---- What it knows ------------------------------------------------------------------------

    def log_density(self, X: Examples, y: Any) -> Any:
        """Logarithms of the predictive density of targets y, or of the probability of labels y, shape (n,).

        The density is that of N(f, variance + noise), summed over several targets.
        """
        with self._lock.shared:
            state = self._fitted()
            rule, (scores, deviations) = state.hypothesis.rule, self._known(state, X)
            if state.loss.task != "regression":
                labels = label_column(y, len(scores))
                places = state.labels.indices_of(labels)
                likely = state.loss.probabilities(scores)
                known = [place is not None and place < likely.shape[1] for place in places]
                if not all(known):
                    raise ValueError(f"{as_list(labels)[known.index(False)]!r} is not a label of this model.")
                return np.log(likely[np.arange(len(scores)), np.array(places, dtype=np.intp)])
            y = check_targets(y, len(scores), state.targets).reshape(len(scores), -1)
            scaler, slope = state.target_scaler, 0.0
            if scaler is not None:
                mean, units = scaler.values(scores, *scaler.known())
                slope, y = scaler.log_slope(y), scaler.taken_of(y)
            else:
                mean, units = scores, 1.0
            variance = (deviations**2 + rule.noise)[:, None] * units**2
            return np.sum(slope - 0.5 * ((y - mean) ** 2 / variance + np.log(2.0 * np.pi * variance)), axis=1)

    def sample_y(self, X: Examples, n_samples: int = 1, random_state: int | Generator | None = 0) -> Array:
        """Draw functions: values of f at the rows of X, shape (n, n_samples), or (n, n_outputs, n_samples).

        Parameters
        ----------
        X : array of shape (n, n_features), or objects
        n_samples : int
        random_state : int, numpy Generator or None
        """
        if not isinstance(n_samples, numbers.Integral) or isinstance(n_samples, bool) or n_samples < 1:
            raise ValueError(f"n_samples must be a whole number of at least 1. Got {n_samples!r} instead.")
        rng = np.random.default_rng(random_state)
        with self._lock.shared:
            state = self._fitted()
            examples = self._examples(state, X)
            scores = self._decision(state, examples, trusted=True)
            left, right = state.function.uncertainty(examples, True)
            covariance = state.kernel(as_csr(examples) if state.sparse else examples) + left @ right.T
            scaler = state.target_scaler
            mean, units = (state.shown(scores.T).T, 1.0) if scaler is None else scaler.values(scores, *scaler.known())
        values, vectors = np.linalg.eigh(0.5 * (covariance + covariance.T))
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        draws = root @ rng.standard_normal((mean.shape[1], len(mean), n_samples))
        draws = np.moveaxis(draws, 0, 1) * np.reshape(units, (*np.shape(units), 1)) + mean[:, :, None]
        draws = draws if scaler is None else scaler.targets_of(draws)
        return draws[:, 0] if mean.shape[1] == 1 else draws

    @learned
    def noise_(self, state: Any) -> Any:
        """The variance of y about f as it is estimated now, in scaled units where targets are scaled."""
        return state.hypothesis.rule.noise

    @learned
    def changes_(self, state: Any) -> Any:
        """How many abrupt changes ``noise="auto"`` has noticed."""
        return state.hypothesis.rule.changes

    @learned
    def budget_(self, state: Any) -> Any:
        """How many points may stay; None for all."""
        return state.plan.rule.budget

    def _examples(self, state, X):
        """Rows of X as the engine takes them, scaled."""
        return state.scaled(state.rows_of(self._to_predict(X), type(self).__name__))

    def _known(self, state, X):
        """(scores, deviations of f) of the rows of X."""
        examples = self._examples(state, X)
        scores = self._decision(state, examples, trusted=True)
        return scores, np.sqrt(state.function.uncertainty(examples))

    def _evaluated(self, state, X):
        scores, deviations = self._known(state, X)
        scaler = state.target_scaler
        units = 1.0 if scaler is None else scaler.brought_back(scores, *scaler.known())[1]
        return scores, state.in_units(deviations, units)

    def _interval(self, state, X, coverage):
        rule, (scores, deviations) = state.hypothesis.rule, self._known(state, X)
        half = np.sqrt(deviations**2 + rule.noise)[:, None] * rule.half_widths(coverage)[: state.targets]
        return state.interval(scores, half)
