"""Local averages over a budget of rows."""
from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING

import numpy as np

from onlinekernels.base import validation
from onlinekernels.base.members import task_of
from onlinekernels.base.composite import CompositeEstimator
from onlinekernels.base.state import validate_top, largest
from onlinekernels.base.estimator import learned
from onlinekernels._core.smoother import Smoothing
from onlinekernels.budgets import Recent, Reservoir
from onlinekernels.kernels import Gaussian, Laplacian, as_kernel
from onlinekernels.losses import MulticlassSquared, NuNovelty, Squared
from onlinekernels.preprocessing.scaling import as_memory

if TYPE_CHECKING:
    from onlinekernels.annotations import Any, Budget, ClassWeight, Kernel, RunningEncoder, RunningScaler

NEIGHBOUR, WIDTH = 3, 0.5  # whose distance is the unit where nothing is said, and the kernel's width in it
FARTHEST = 64  # neighbour whose distance may be the unit


@dataclass(eq=False, repr=False)
class Smoother(CompositeEstimator):
    """Local averages: what the rows near an example say, weighted by a kernel, over a budget of rows.

    f(x) = sum_i k(x_i, x) y_i / sum_i k(x_i, x). The loss decides what is averaged: numbers (the regression of Nadaraya
    and Watson), votes for classes (Parzen's), or nothing but the weights themselves, the log density of a detector.
    There are no coefficients, so nothing has to converge: what is kept counts at once, and what has left counts no
    more.

    Weights are taken in logarithms: however far an example is from all rows, it has nearest neighbours.

    Parameters
    ----------
    loss : Squared, MulticlassSquared, NuNovelty, their names or None
        "squared" is for numbers, one or several, "multiclass_squared" for two or many classes, "nunovelty" for a
        detector, whose threshold is the quantile nu of all scores so far. None is for numbers.
    kernel : Gaussian, Laplacian, their names or None
        How weights fall with the distance. None is a Gaussian whose width is half the distance to the third nearest
        row.
    budget : int, Recent or Reservoir
        Which rows are kept: the latest ones, or a uniform sample of all.
    neighbours : int or None
        The unit of distances is that to so near a row, wherever an example is; at least 1 and at most 64. None is for
        distances as they are.
    {class_weight} {scale} {encode} {epochs}

    {Attributes}

    See Also
    --------
    KRLS : a posterior, which also knows what lies between and beyond its points.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinekernels import Smoother
    >>> X = np.random.default_rng(0).uniform(-3, 3, size=(700, 1))
    >>> model = Smoother("squared").partial_fit(X, np.sin(X[:, 0]))
    >>> model.predict([[1.0], [2.0]]).round(2)
    array([0.84, 0.91])
    >>> detector = Smoother("nunovelty", "gaussian").partial_fit(X)
    >>> detector.predict([[0.5], [9.0]])
    array([ 1, -1])
    """

    loss: Any = None
    kernel: Kernel | str | None = None
    _: KW_ONLY
    budget: Budget | int = 1000
    neighbours: int | None = None
    class_weight: ClassWeight | None = None
    scale: bool | RunningScaler = False
    encode: bool | RunningEncoder = False
    epochs: int = 1

    def _settings(self):
        loss = self._own_loss()
        if type(loss) not in (Squared, MulticlassSquared, NuNovelty):
            expected = "'squared' for numbers, 'multiclass_squared' for classes or 'nunovelty' for a detector"
            raise validation.bad_parameter(self, "loss", expected, loss)
        loss.validate()
        kernel, neighbour = self.kernel, 0
        if kernel is None:
            kernel, neighbour = Gaussian(WIDTH), NEIGHBOUR
        kernel = as_kernel(kernel, self)
        if type(kernel) not in (Gaussian, Laplacian):
            expected = "a Gaussian, a Laplacian or None: weights that fall with the distance"
            raise validation.bad_parameter(self, "kernel", expected, self.kernel)
        kernel.validate()
        if self.neighbours is not None:
            neighbour = validation.check_integer(self, "neighbours", 1, FARTHEST)
        return {"kernel": kernel, "budget": self._rows_kept(), "neighbour": neighbour,
                "memory": as_memory(self.scale, self)}

    def _rows_kept(self):
        budget = self.budget
        if isinstance(budget, (Recent, Reservoir)):
            budget.validate()
            return budget
        if budget is None or isinstance(budget, (float, str)) or not np.isscalar(budget):
            raise validation.bad_parameter(self, "budget", "an integer of at least 1, a Recent or a Reservoir", budget)
        return Recent(validation.check_count(self, "budget"))

    def _begin(self, plan, X, targets, learned=None):
        kernel, budget = plan.kernel, plan.budget
        city_block = isinstance(kernel, Laplacian)
        rate = float(kernel.rate) if city_block else 0.5 / float(kernel.width) ** 2
        sample = {}
        if isinstance(budget, Reservoir):
            sample = {"uniform": True, "memory": budget.memory or 0, "seed": int(budget.seed)}
        rows = {"n_features": X.shape[1], "targets": max(1, targets), "rate": rate, "city_block": city_block,
                "size": int(budget.size), "neighbour": plan.neighbour, **sample}
        nu = float(plan.loss.nu) if plan.loss.task == "novelty" else 0.0
        return Smoothing(task_of(self), rows, plan.memory, nu)

    @learned
    def n_terms_(self, state: Any) -> int:
        """Number of rows that are kept."""
        return int(state.backend.rows.n)

    @learned
    def support_vectors_(self, state: Any) -> Any:
        """The rows that are kept, scaled as they came where rows are scaled."""
        return state.backend.kept()[0]

    def contributions(self, x: Any, top: int | None = 5, label: Any = None) -> Any:
        """Which rows that are kept speak for a prediction, and how much; see `KRLS.contributions`.

        ``kernel`` is the row's share of all weights, and ``coefficient`` what it says: its target, or +1 and -1 for and
        against the label; for a detector 1.
        """
        top = validate_top(top)
        with self._lock.shared:
            state = self._fitted()
            backend = state.backend
            row = self._member_row(state, x)
            points, targets = backend.kept()
            scores, _ = self._known_rows(state, row)
            if state.labels is not None:
                place = state.output(scores, label)
                targets = np.where(targets[:, 0] == place, 1.0, -1.0)
            else:
                state.output(scores, label)
                targets = targets[:, 0] if state.loss.task == "regression" else np.ones(len(points))
            return largest(points, targets, backend.shares(row), top)
