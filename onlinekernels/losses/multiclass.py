"""Losses of many classes: a score for each, and y is the index of the label."""
from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlinekernels._core.formulas import vectorized as _core
from onlinekernels._core.formulas.vectorized import mistake_gradients, probabilities
from onlinekernels.losses.base import Loss, NuMargin, WithMargin

if TYPE_CHECKING:
    from onlinekernels.annotations import Any

__all__ = [
    "MulticlassHinge", "NuMulticlassHinge", "MulticlassLogistic", "MulticlassSquared", "GraphHinge", "NuGraphHinge",
]


class _Runner(Loss):
    """A hinge over the runner-up: max(0, max_l [rho Delta(y, l) + f(x, l)] - f(x, y)), V (16), (25)."""

    task = "multiclass"

    def value(self, scores: Any, y: Any, labels: Any = None, *, scalar: Any = None) -> Any:
        """Loss of score vectors, shape (..., classes), for class indices y.

        `labels` gives Delta; the classes are then in its order. `scalar`, a number or one for each vector, is in
        place of the margin.
        """
        return self._at_runner_up(_core.value, scores, y, labels, scalar)[0]

    def derivative(self, scores: Any, y: Any, labels: Any = None, *, scalar: Any = None) -> Any:
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


class MulticlassHinge(_Runner, WithMargin):
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


class NuMulticlassHinge(_Runner, NuMargin):
    """The multiclass hinge with rho adapted: max(0, rho + max_l f(x, l) - f(x, y)) - nu rho, V 6.2.1.

    Parameters
    ----------
    {nu} {margin} {margin_step}

    References
    ----------
    {V}
    """


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

    structured = True

    def core(self) -> Any:
        return self._code(), 1.0, 0.0, 0.0


class NuGraphHinge(_Runner, NuMargin):
    """The graph hinge with a scale: max(0, max_l [rho Delta(y, l) + f(x, l)] - f(x, y)) - nu rho.

    Delta, the distance between labels, comes from the model's `labels`; without them it is 1. It is the loss of V 6.2.1
    where Delta is 1.

    Parameters
    ----------
    {nu} {margin} {margin_step}

    References
    ----------
    {V}
    """

    structured = True


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

    def value(self, scores: Any, y: Any) -> Any:
        """Loss of score vectors, shape (..., classes), for class indices y."""
        scores = np.asarray(scores, dtype=float)
        largest = scores.max(axis=-1)
        return largest + np.log(np.exp(scores - largest[..., None]).sum(axis=-1)) - _at(scores, y)

    def derivative(self, scores: Any, y: Any) -> Any:
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

    @staticmethod
    def targets(y: Any, classes: Any) -> Any:
        """+1 at the class index y and -1 elsewhere, shape (..., classes).

        >>> MulticlassSquared.targets([1, 0], 3)
        array([[-1.,  1., -1.],
               [ 1., -1., -1.]])
        """
        return 2.0 * np.eye(classes)[np.asarray(y, dtype=np.intp)] - 1.0

    def value(self, scores: Any, y: Any) -> Any:
        """Loss of score vectors, shape (..., classes), for class indices y; a score of -inf is no class."""
        scores = np.asarray(scores, dtype=float)
        there = scores > -np.inf
        parts = self._evaluate(_core.value, np.where(there, scores, 0.0), self.targets(y, scores.shape[-1]))
        return np.where(there, parts, 0.0).sum(axis=-1)

    def derivative(self, scores: Any, y: Any) -> Any:
        """f(x, l) - target_l."""
        scores = np.asarray(scores, dtype=float)
        return self._evaluate(_core.derivative, scores, self.targets(y, scores.shape[-1]))

    def curvature(self, scores: Any, y: Any) -> Any:
        """The diagonal of the second derivative, the identity."""
        scores = np.asarray(scores, dtype=float)
        return self._evaluate(_core.curvature, scores, self.targets(y, scores.shape[-1]))

    def probabilities(self, scores: Any) -> Any:
        """(1 + f) / 2 within [1e-6, 1], brought to the sum 1, for scores of shape (n, classes)."""
        likely = np.clip(0.5 * (1.0 + np.asarray(scores, dtype=float)), 1e-6, 1.0)
        return likely / likely.sum(axis=-1, keepdims=True)


class Mistake(Loss):
    """Mistakes of many classes, as the Perceptron counts them: another label does as well as the right one.

    Its derivative is the uniform ultraconservative update of Crammer and Singer (2003): -1 at the label, and 1 shared
    by all labels that do as well. Not a choice of its own: see `Perceptron`.

    Examples
    --------
    >>> Mistake().derivative([[0.0, 2.0, 1.0]], [0])
    array([[-1. ,  0.5,  0.5]])
    """

    task = "multiclass"
    over_all_labels = True

    def value(self, scores, y):
        """max(0, max_{l != y} f(x, l) - f(x, y)) of score vectors, shape (..., classes), for class indices y."""
        scores = np.asarray(scores, dtype=float)
        return scores.max(axis=-1) - _at(scores, y)

    def derivative(self, scores, y):
        """The update, for each score vector."""
        scores = np.asarray(scores, dtype=float)
        y = np.broadcast_to(y, scores.shape[:-1])
        return mistake_gradients(scores.reshape(-1, scores.shape[-1]), y.ravel()).reshape(scores.shape)


def _at(scores, index):
    """The entry of each score vector at its index."""
    index = np.broadcast_to(index, scores.shape[:-1])
    return np.take_along_axis(scores, index[..., None], axis=-1)[..., 0]
