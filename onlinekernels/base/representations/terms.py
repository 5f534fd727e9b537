"""f as terms: points with coefficients, under a budget."""
import numpy as np

from onlinekernels.base import validation
from onlinekernels._core.kernels import Program
from onlinekernels._core.points import DensePoints, Objects, Rows, SparsePoints
from onlinekernels._core.terms import Full, KernelTerms, Paired
from onlinekernels.base.representations.contract import Representation
from onlinekernels.budgets import Unlimited

__all__ = ["Terms", "coefficients_on"]


class Terms(Representation):
    """f = sum_i alpha_i k(x_i, .): any kernel, any budget, examples of any kind."""

    keeps = "terms"

    def __init__(self, plan):
        super().__init__(plan)
        self.takes_objects = self.kernel.takes_objects()

    def check(self, plan):
        super().check(plan)
        if plan.average and type(self.budget) is not Unlimited:
            raise ValueError(
                f"average=True cannot be combined with budget={self.budget!r}: the average of terms that were "
                "dropped cannot be kept. Use budget=None."
            )
        if self.rule.exact_norms and self.takes_objects and type(self.budget) is not Unlimited:
            raise ValueError(
                "A budget needs a built-in kernel here: to keep |f| exact, kernel rows of dropped terms are evaluated."
            )

    def program(self, n_features):
        ops = None if n_features is None else self.kernel.ops()
        return None if ops is None else Program(ops)

    def function(self, n_features, dtype, origin, outputs, sparse, form):
        dictionary = self.dictionary(n_features, dtype, origin, sparse)
        terms = coefficients_on(dictionary, self.budget, self.channels, outputs, form)
        return KernelTerms(terms=terms, outputs=outputs, evaluates_slots=self.rule.evaluates_slots)

    def dictionary(self, n_features, dtype, origin, sparse):
        """A dictionary without points, and the kernel over it."""
        if n_features is None:
            return Objects(self.kernel)
        program = self.program(n_features)
        program.start(n_features, np.float64 if sparse else dtype, origin)
        return SparsePoints(n_features, program) if sparse else DensePoints(n_features, dtype, origin, program)

    def check_sizes(self, learned, n_features, sparse):
        if n_features is not None and not sparse and np.shape(learned["points"])[1:] != (n_features,):
            raise ValueError("the points do not have the number of features")

    # ---- What is shown ----

    def terms(self, state, ahead=False):
        return as_users_see(state, state.function.points()), state.hypothesis.coefficients(ahead)

    def n_terms(self, state):
        return len(state.function.slots())

    def coef(self, state):
        scale = self.kernel.linear_scale()
        if scale is None:
            return super().coef(state)
        points, alpha = self.terms(state)
        return scale * state.with_label_kernel(alpha @ points.astype(float))

    def square(self, state, ahead=False):
        points, alpha = self.terms(state, ahead)
        gram = self.kernel(points) if alpha.shape[1] else np.zeros((0, 0))
        return np.sum((alpha @ gram) * state.with_label_kernel(alpha))

    def component(self, state, j, grid):
        """f_j at the values in grid, shape (len(grid), labels); the kernel is additive."""
        points, alpha = self.terms(state)
        values = None
        if len(grid) and len(points):
            values = self.kernel.coordinate(j)(grid[:, None], points[:, j : j + 1].astype(float))
        rows = np.zeros((len(alpha), len(grid))) if values is None else alpha @ values.T
        return state.with_label_kernel(rows).T

    def knots(self, state):
        """Distinct values of each coordinate among the terms."""
        return [np.unique(column) for column in self.terms(state)[0].T]

    # ---- How it starts from another ----

    def has_points(self, state):
        return self.n_terms(state) > 0

    def start(self, state, start, label_map):
        points, alpha = start.representation.terms(start, label_map.ahead)
        points, pairs = start_points(state, points), start.function.pairs()
        if pairs is not None:
            return points, alpha[pairs[0], np.arange(pairs.shape[1])][None], label_map.pairs(pairs)
        return points, label_map.rows(alpha), None


def coefficients_on(dictionary, budget, channels, outputs, form):
    """Coefficients on a dictionary, under a budget."""
    if form == "pair" and not budget.shares_out:
        return Paired(dictionary, budget.core(), channels)
    return Full(dictionary, budget.core(), channels, outputs)


def as_users_see(state, points):
    """Points of the core as users give them."""
    if state.sparse:
        return validation.as_csr(points)
    return validation.check_objects(points, empty=True) if state.plan.takes_objects else points


def start_points(state, points):
    """Points of another model in this one's precision."""
    if state.plan.takes_objects:
        return points
    if points.shape[0] == 0:
        points = np.zeros((0, state.n_features))
        return Rows([0], [], [], state.n_features) if state.sparse else points
    try:
        return state.plan.checked_points(points, state.n_features, state.function.dtype, sparse=state.sparse)
    except ValueError as error:
        raise ValueError(f"initial does not fit this model: {error}") from error
