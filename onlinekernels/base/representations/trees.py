"""f as trees over coordinates: additive kernels."""
import numpy as np

from onlinekernels._core import trees as core
from onlinekernels._core.points import DensePoints
from onlinekernels.base.representations.contract import Representation
from onlinekernels.base.representations.terms import Terms, coefficients_on

__all__ = ["BudgetedTrees", "Trees"]


class _OnTrees(Representation):
    """A tree for each coordinate, with sums from which f and its norm follow."""

    double = True

    def forest(self, n_features, outputs):
        """Trees without knots."""
        return core.Forest(n_features=n_features, channels=self.channels, width=max(1, outputs.n), **self.kernel.additive())

    def check_sizes(self, learned, n_features, sparse):
        if np.ndim(learned["tree_levels"]) != 1 or len(learned["tree_levels"]) < n_features:
            raise ValueError("there are fewer trees than features")

    def square(self, state, ahead=False):
        return state.hypothesis.additive_square(ahead)

    def component(self, state, j, grid):
        """f_j at the values in grid, shape (len(grid), labels)."""
        return state.hypothesis.component(j, grid)


class Trees(_OnTrees):
    """Nothing but the trees: terms with equal coordinates share a knot."""

    keeps = "knots"

    def function(self, n_features, dtype, origin, outputs, sparse, form):
        return core.Trees(forest=self.forest(n_features, outputs), outputs=outputs)

    def terms(self, state, ahead=False):
        raise AttributeError("This kernel with an unlimited budget keeps knots, not terms: see knots_.")

    def n_terms(self, state):
        return int(state.function.forest.tree.counts(0).sum())

    def knots(self, state):
        """The knots of each coordinate, ascending, as they came."""
        low, stretch = state.function.forest.low, state.function.forest.stretch
        keys = [state.hypothesis.knots(j)[0] for j in range(state.n_features)]
        return keys if low is None else [keys[j] / stretch[j] + low[j] for j in range(state.n_features)]

    def start(self, state, start, label_map):
        knots = [start.hypothesis.knots(j, label_map.ahead) for j in range(state.n_features)]
        return None, [(keys, counts, label_map.rows(true), sizes) for keys, counts, true, sizes in knots]


class BudgetedTrees(_OnTrees, Terms):
    """Trees, and beside them the terms, to know what to take out again."""

    def __init__(self, plan):
        super().__init__(plan)
        self.takes_objects = False

    def program(self, n_features):
        return None

    def function(self, n_features, dtype, origin, outputs, sparse, form):
        points = DensePoints(n_features, np.float64)
        terms = coefficients_on(points, self.budget, self.channels, outputs, form)
        return core.BudgetedTrees(forest=self.forest(n_features, outputs), terms=terms, outputs=outputs)
