"""The Kernel-Adatron: the maximum margin by passes over a fixed training set (V 3)."""
from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING

import numpy as np

from onlinekernels._core.functions import Outputs
from onlinekernels._core.trees import Forest, pass_over_block, pass_over_tree
from onlinekernels.algorithms.classics import TwoClasses
from onlinekernels.algorithms.norma import Gradient
from onlinekernels.base.estimator import only_if
from onlinekernels.base.plan import Plan
from onlinekernels.steps import Fixed
from onlinekernels.base.validation import as_csr, check_positive

if TYPE_CHECKING:
    from onlinekernels.annotations import Any, Examples, KernelLike, RunningEncoder, Self

BLOCK = 256  # examples whose kernel values are computed together


def never(model):
    raise AttributeError("Adatron knows its training set: it has fit, but nothing that learns more examples.")


@dataclass(eq=False, repr=False)
class Adatron(TwoClasses):
    """Kernel-Adatron (Friess, Cristianini and Campbell 1998), as V section 3 has it.

    f = sum_i alpha_i y_i k(x_i, .), all alpha_i start at 1, and each pass visits the examples in their order::

        alpha_i <- max(0, alpha_i + step (1 - y_i f(x_i)))

    On separable data f converges geometrically to the maximum margin, if step * k(x, x) < 2.

    It knows its training set: there is `fit`, but no `partial_fit`, `learn_one` or `progressive`.

    Parameters
    ----------
    {kernel}
        Additive kernels run on trees.
    step : float
        eta: how far an example moves its coefficient; positive.
    {encode} {epochs}

    {Attributes}

    References
    ----------
    {V}

    Examples
    --------
    >>> from onlinekernels import Adatron
    >>> Adatron("linear").fit([[1.0, 0.0], [0.0, 1.0]], [1, -1]).coef_
    array([[ 1., -1.]])
    """

    _rule = Gradient

    kernel: KernelLike | None = None
    _: KW_ONLY
    step: float = 1.0
    encode: bool | RunningEncoder = False
    epochs: int = 10

    def _plan(self):
        plan = Plan.of(self, Gradient(Fixed(check_positive(self, "step"))))
        if plan.kernel.has_map():
            raise ValueError(f"The Adatron keeps its examples, and {plan.kernel!r} is a feature map. Use the kernel "
                             "itself.")
        return plan

    def fit(self, X: Examples, y: Any, *, classes: Any = None) -> Self:
        """Forget everything, then make `epochs` passes over X, y; return self."""
        with self._lock.alone:
            state, X, y, _ = self._validate_examples(None, X, y, classes, None, whole=True)
            points, alpha = X if not state.sparse else as_csr(X), np.ones(len(y))
            passes = _passes if state.kernel.additive() is None else _passes_on_tree
            with np.errstate(over="ignore", invalid="ignore"):
                passes(state, points, y, alpha, self.epochs)
            if not (alpha < 1e100).all():
                raise FloatingPointError("The coefficients diverge: step * k(x, x) should be below 2 for all rows of "
                                         f"X. Got step={self.step!r}.")
            state.hypothesis.begin_from(np.zeros(1), *state.representation.of_examples(X, (alpha * y)[None]))
            state.hypothesis.t = self.epochs * len(y)
            self._commit(len(y))
            self._state = state
        return self

    @only_if(never)
    def partial_fit(self) -> Any:
        """Does not exist: the Adatron knows its training set."""

    learn_one = progressive = partial_fit  # type: ignore[assignment]


def _passes(state, X, y, alpha, epochs):
    kernel = state.kernel
    own = kernel.diagonal(X)
    for _ in range(epochs):
        for first in range(0, len(y), BLOCK):
            rows = X[first : first + BLOCK]
            gram = np.ascontiguousarray(kernel(rows, X))
            inside = np.arange(len(gram))
            gram[inside, first + inside] = own[first : first + BLOCK]  # an example with itself: noise counts
            pass_over_block(gram, first, y, alpha, gram @ (alpha * y), state.plan.rule.step.rate)


def _passes_on_tree(state, X, y, alpha, epochs):
    forest = Forest(summands=state.kernel.additive(), n_features=X.shape[1], channels=1, outputs=Outputs(1))
    pass_over_tree(forest, X, y, alpha, state.plan.rule.step.rate, epochs)
