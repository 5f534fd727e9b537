"""f as weights: of a linear kernel, or over the features of a map."""
import numpy as np

from onlinekernels._core import weights as core
from onlinekernels._core.arrays import check_array
from onlinekernels._core.maps import NystroemMap
from onlinekernels._core.points import Rows
from onlinekernels.base.representations.contract import Representation
from onlinekernels.base.representations.terms import as_users_see
from onlinekernels.budgets import Shrinking
from onlinekernels.kernels.maps import check_sizes, feature_map
from onlinekernels.base.params import same_parameters
from onlinekernels.labels import Taxonomy
from onlinekernels.base.validation import as_csr

__all__ = ["MappedWeights", "Weights"]


class Weights(Representation):
    """f = c <w, x>, for k(x, z) = c <x, z>."""

    keeps = "weights"
    double = True
    advice = "a kernel that is not linear, such as Gaussian"
    array = "weights"  # in a file

    def __init__(self, plan):
        super().__init__(plan)
        self.scale = self.kernel.linear_scale()

    def check(self, plan):
        if self.rule.per_feature and isinstance(plan.labels, Taxonomy):
            raise ValueError("per_feature=True needs the delta kernel between labels; a Taxonomy has another.")

    def function(self, n_features, dtype, origin, outputs, sparse, form):
        kind = core.SparseWeights if sparse else core.Weights
        return kind(scale=self.scale, n_features=n_features, channels=self.channels, outputs=outputs)

    def check_sizes(self, learned, n_features, sparse):
        check_array(learned[self.array], self.array, np.float64, (-1, n_features))

    def terms(self, state, ahead=False):
        raise AttributeError("This kernel with an unlimited budget keeps weights, not terms: see coef_.")

    def coef(self, state):
        return self.scale * state.with_label_kernel(state.hypothesis.coefficients())

    def square(self, state, ahead=False):
        weights = state.hypothesis.coefficients(ahead)
        return np.sum(weights * state.with_label_kernel(weights)) * self.scale

    def start(self, state, start, label_map):
        return None, label_map.rows(start.hypothesis.coefficients(label_map.ahead))

    def of_examples(self, points, alpha):
        return None, alpha @ (as_csr(points) if isinstance(points, Rows) else points)


class MappedWeights(Weights):
    """f = <w, phi(x)>, where <phi(x), phi(z)> is the kernel; whatever the budget."""

    double = False
    features_change = True

    def __init__(self, plan):
        super().__init__(plan)
        self.scale = 1.0
        if self.rule.keeps_examples or isinstance(self.budget, Shrinking):
            raise ValueError(f"This algorithm keeps its examples, and {self.kernel!r} is a feature map, which keeps weights.")
        self.features = self.kernel.features()  # the parts of the map
        if self.features is None:
            raise ValueError(
                f"{self.kernel!r} is no feature map as a whole: add only Linear, Constant or other maps to one, and "
                "multiply it by positive numbers only."
            )

    def function(self, n_features, dtype, origin, outputs, sparse, form):
        features = feature_map(self.features, n_features, sparse, dtype)
        return core.MappedWeights(map=features, channels=self.channels, outputs=outputs)

    def check_sizes(self, learned, n_features, sparse):
        check_sizes(self.features, n_features, learned, self.array)

    def widened(self, state, learned, extra, fill):
        return {**learned, **state.function.widened(extra, fill)}

    def terms(self, state, ahead=False):
        exact = _exact_map(state)
        if exact is None:
            raise AttributeError(f"{self.kernel!r} keeps weights over features, not terms: see coef_.")
        return as_users_see(state, exact.points()), exact.dual(state.hypothesis.coefficients(ahead))

    def n_terms(self, state):
        exact = _exact_map(state)
        return 0 if exact is None else len(exact.points())

    def has_points(self, state):
        return True

    def has_same_features(self, state, other):
        mine, others = state.function.map.state(), other.function.map.state()
        return mine.keys() == others.keys() and all(same_parameters(mine[name], others[name]) for name in mine)

    def take_features(self, state, start):
        state.function.take_map(start.function)


def _exact_map(state):
    """The map of a Nystroem kernel whose landmarks are not complete, so that they are all there is; otherwise None."""
    whole = state.function.map
    return whole if isinstance(whole, NystroemMap) and whole.inverse is None else None
