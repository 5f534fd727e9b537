"""How f is kept: as terms, weights, trees or a posterior; who shows it, saves it, and starts it from another."""
import numpy as np

from onlinekernels._core import posterior, trees, weights
from onlinekernels._core.arrays import check_array
from onlinekernels._core.budgets import OwnBudget
from onlinekernels._core.kernels import Program
from onlinekernels._core.maps import NystroemMap
from onlinekernels._core.points import DensePoints, Objects, Rows, SparsePoints
from onlinekernels._core.schema import state_of
from onlinekernels._core.terms import Full, KernelTerms, Paired
from onlinekernels.base import validation
from onlinekernels.base.params import same_parameters
from onlinekernels.base.validation import as_csr
from onlinekernels.budgets import Shrinking, Unlimited
from onlinekernels.kernels.maps import check_sizes, feature_map

__all__ = [
    "LabelMap", "Representation", "Terms", "MappedWeights", "Weights", "BudgetedTrees", "Trees", "PointsPosterior",
    "WeightsPosterior", "representation_of",
]


class Representation:
    """How f is kept; belongs to a plan. What is learned is in a state, which methods are given.

    A subclass makes the function of the core (`function`), and says what a file must hold for it (`check_sizes`), what
    is shown (`terms`, `n_terms`, `coef`, `square`, and for additive kernels `component`, `knots`), and how it starts
    from another one of its class (`start`).

    Parameters
    ----------
    plan : Plan
    """

    keeps: str | None = None  # what f is, in a word
    double = False  # whether examples must be of double precision
    takes_objects = False  # whether the kernel's callable sees examples as they came
    features_change = False  # whether a feature map may learn its features on the way
    advice: str | None = None  # what may help if learning is no better than a constant

    def __init__(self, plan):
        self.kernel, self.budget, self.rule = plan.kernel, plan.budget, plan.rule
        self.channels = 1 + plan.rule.adapts_step + plan.average

    def check(self, plan):
        """Raise ValueError for what cannot be combined with the other parts of a plan."""

    # ---- For the engine ----

    def program(self, n_features):
        """The compiled kernel; None where there are no rows of kernel values, or Python computes them."""
        return None

    def function(self, n_features, dtype, origin, outputs, sparse, form):
        """f as the core keeps it, before it has learned anything; `form` is that of its coefficients."""
        raise NotImplementedError

    # ---- In files ----

    def check_sizes(self, learned, n_features, sparse):
        """ValueError unless what is about to be allocated is as large as arrays that are there."""
        raise NotImplementedError

    def widened(self, state, learned, extra, fill):
        """What a state has learned, with more features that have the value `fill` in all examples so far."""
        learned = dict(learned)
        if fill and "points" in learned and "origin" not in learned:
            # Points, and what is kept with them, are about the origin: about `fill`, new columns are 0.
            learned["origin"] = np.zeros(state.n_features, dtype=state.function.dtype)
        for name, value in (("points", 0.0), ("weights", 0.0), ("origin", fill)):
            if name in learned:
                sides = [(0, 0)] * (learned[name].ndim - 1) + [(0, extra)]
                learned[name] = np.pad(learned[name], sides, constant_values=value)
        return learned

    # ---- What is shown ----

    def terms(self, state, future=False):
        """(points or objects, coefficients of shape (outputs, terms)), oldest first; AttributeError if there are none.

        With `future`, the last row is what labels to join have learned.
        """
        raise NotImplementedError

    def n_terms(self, state):
        """How many terms there are; 0 where weights replace them."""
        return 0

    def coef(self, state):
        """Weights of a linear kernel or of features; AttributeError if there are none."""
        raise AttributeError("coef_ exists for the linear kernel and feature maps only.")

    def square(self, state, future=False):
        """|f|^2."""
        raise NotImplementedError

    def norm_source(self, state):
        """How the engine knows |f| before each row: the hypothesis keeps it, or follows it, or it is computed anew.

        It can be followed where f changes by its shrinking and the new term alone, and all its labels were seen.
        """
        if self.rule.exact_norms:
            return {}
        others_change = self.rule.moves_terms or self.features_change
        follow = type(self.budget) is Unlimited and not others_change and not state.function.outputs.future
        return {"norm": state.latest_norm, "follow": follow}

    # ---- How it starts from another ----

    def has_points(self, state):
        """Whether it holds rows, so that only a model for the same kind of rows, sparse or dense, can start from it."""
        return False

    def has_same_features(self, state, other):
        """Whether the functions of two states are about the same features."""
        return True

    def take_features(self, state, start):
        """Use the features of the state that this one starts from, where they are learned."""

    def start(self, state, start, label_map):
        """(points or None, coefficients, pairs of labels or nothing) for `begin_from`, of a function kept likewise."""
        raise NotImplementedError

    def of_examples(self, points, alpha):
        """The same from examples of this model's with coefficients."""
        return points, alpha


class LabelMap:
    """Where labels of one state are among those of another.

    Parameters
    ----------
    width : int
        Rows that the other one has.
    indices : array or None
        The index of each label there; None if they are the same.
    ahead : bool
        Whether both have one more row, for all labels to join.

    >>> LabelMap(3, np.array([2, 0]), False).rows(np.array([[1.0], [2.0]])).ravel()
    array([2., 0., 1.])
    """

    def __init__(self, width, indices, future):
        self.width, self.indices, self.future = width, indices, future

    def rows(self, rows):
        """Rows over labels."""
        if self.indices is None:
            return rows
        moved = np.zeros((self.width, *np.shape(rows)[1:]))
        if len(rows) > len(self.indices):
            moved[:] = rows[-1]
        moved[self.indices] = rows[: len(self.indices)]
        return moved

    def pairs(self, pairs):
        """Pairs of labels."""
        return pairs if self.indices is None else self.indices[pairs]


class Terms(Representation):
    """f = sum_i alpha_i k(x_i, .): any kernel, any budget, examples of any kind."""

    keeps = "terms"

    def __init__(self, plan):
        super().__init__(plan)
        self.takes_objects = self.kernel.takes_objects()

    def check(self, plan):
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

    def terms(self, state, future=False):
        return as_users_see(state, state.function.points()), state.hypothesis.coefficients(future)

    def n_terms(self, state):
        return len(state.function.slots())

    def coef(self, state):
        scale = self.kernel.linear_scale()
        if scale is None:
            return super().coef(state)
        points, alpha = self.terms(state)
        return scale * state.with_label_kernel(alpha @ points.astype(float))

    def square(self, state, future=False):
        points, alpha = self.terms(state, future)
        gram = self.kernel(points) if alpha.shape[1] else np.zeros((0, 0))
        return np.sum((alpha @ gram) * state.with_label_kernel(alpha))

    def component(self, state, j, grid):
        """f_j at the values in grid, shape (len(grid), labels); the kernel is additive."""
        points, alpha = self.terms(state)
        values = None
        if len(grid) and len(points):
            kernel = self.kernel.coordinate(j, state.n_features)
            values = kernel(grid[:, None], points[:, j : j + 1].astype(float))
        rows = np.zeros((len(alpha), len(grid))) if values is None else alpha @ values.T
        return state.with_label_kernel(rows).T

    def knots(self, state):
        """Distinct values of each coordinate among the terms."""
        return [np.unique(column) for column in self.terms(state)[0].T]

    # ---- How it starts from another ----

    def has_points(self, state):
        return self.n_terms(state) > 0

    def start(self, state, start, label_map):
        points, alpha = start.representation.terms(start, label_map.future)
        points, pairs = start_points(state, points), start.function.pairs()
        if pairs is not None:
            return points, alpha[pairs[0], np.arange(pairs.shape[1])][None], label_map.pairs(pairs)
        return points, label_map.rows(alpha), None


def coefficients_on(dictionary, budget, channels, outputs, form):
    """Coefficients on a dictionary, under a budget."""
    core = OwnBudget(budget.evict) if hasattr(budget, "evict") else budget.core()
    if form == "pair" and not budget.shares_out:
        return Paired(dictionary, core, channels)
    return Full(dictionary, core, channels, outputs)


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
        return state.plan.validate_points(points, state.n_features, state.function.dtype, sparse=state.sparse)
    except ValueError as error:
        raise ValueError(f"initial does not fit this model: {error}") from error


class Weights(Representation):
    """f = c <w, x>, for k(x, z) = c <x, z>."""

    keeps = "weights"
    double = True
    advice = "a kernel that is not linear, such as Gaussian"
    array = "weights"  # in a file

    def __init__(self, plan):
        super().__init__(plan)
        self.scale = self.kernel.linear_scale()

    def function(self, n_features, dtype, origin, outputs, sparse, form):
        kind = weights.SparseWeights if sparse else weights.Weights
        return kind(scale=self.scale, n_features=n_features, channels=self.channels, outputs=outputs)

    def check_sizes(self, learned, n_features, sparse):
        check_array(learned[self.array], self.array, np.float64, (-1, n_features))

    def terms(self, state, future=False):
        raise AttributeError("This kernel with an unlimited budget keeps weights, not terms: see coef_.")

    def coef(self, state):
        return self.scale * state.with_label_kernel(state.hypothesis.coefficients())

    def square(self, state, future=False):
        weights = state.hypothesis.coefficients(future)
        return np.sum(weights * state.with_label_kernel(weights)) * self.scale

    def start(self, state, start, label_map):
        return None, label_map.rows(start.hypothesis.coefficients(label_map.future))

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
            raise ValueError(
                f"This algorithm keeps its examples, and {self.kernel!r} is a feature map, which keeps weights."
            )
        self.features = self.kernel.features()  # the parts of the map
        if self.features is None:
            raise ValueError(
                f"{self.kernel!r} is no feature map as a whole: add only Linear, Constant or other maps to one, and "
                "multiply it by positive numbers only."
            )

    def function(self, n_features, dtype, origin, outputs, sparse, form):
        features = feature_map(self.features, n_features, sparse, dtype)
        return weights.MappedWeights(map=features, channels=self.channels, outputs=outputs)

    def check_sizes(self, learned, n_features, sparse):
        check_sizes(self.features, n_features, learned, self.array)

    def widened(self, state, learned, extra, fill):
        return {**learned, **state.function.widened(extra, fill)}

    def terms(self, state, future=False):
        exact = _exact_map(state)
        if exact is None:
            raise AttributeError(f"{self.kernel!r} keeps weights over features, not terms: see coef_.")
        return as_users_see(state, exact.points()), exact.dual(state.hypothesis.coefficients(future))

    def n_terms(self, state):
        exact = _exact_map(state)
        return 0 if exact is None else len(exact.points())

    def has_points(self, state):
        return True

    def has_same_features(self, state, other):
        mine, others = state_of(state.function.map), state_of(other.function.map)
        return mine.keys() == others.keys() and all(same_parameters(mine[name], others[name]) for name in mine)

    def take_features(self, state, start):
        state.function.take_map(start.function)


def _exact_map(state):
    """The map of a Nystroem kernel whose landmarks are not complete, so that they are all there is; otherwise None."""
    whole = state.function.map
    return whole if isinstance(whole, NystroemMap) and whole.inverse is None else None


class _OnTrees(Representation):
    """A tree for each coordinate, with sums from which f and its norm follow."""

    double = True

    def forest(self, n_features, outputs):
        """Trees without knots."""
        return trees.Forest(
            n_features=n_features, channels=self.channels, outputs=outputs, summands=self.kernel.additive()
        )

    def check_sizes(self, learned, n_features, sparse):
        if np.ndim(learned["tree_levels"]) != 1 or len(learned["tree_levels"]) < n_features:
            raise ValueError("there are fewer trees than features")

    def square(self, state, future=False):
        return state.hypothesis.additive_square(future)

    def component(self, state, j, grid):
        """f_j at the values in grid, shape (len(grid), labels)."""
        return state.hypothesis.component(j, grid)


class Trees(_OnTrees):
    """Nothing but the trees: terms with equal coordinates share a knot."""

    keeps = "knots"

    def function(self, n_features, dtype, origin, outputs, sparse, form):
        return trees.Trees(forest=self.forest(n_features, outputs), outputs=outputs)

    def terms(self, state, future=False):
        raise AttributeError("This kernel with an unlimited budget keeps knots, not terms: see knots_.")

    def n_terms(self, state):
        return int(state.function.forest.tree.counts(0).sum())

    def knots(self, state):
        """The knots of each coordinate, ascending, as they came."""
        forest = state.function.forest
        return [forest.unmapped(j, state.hypothesis.knots(j)[0]) for j in range(state.n_features)]

    def start(self, state, start, label_map):
        knots = [start.hypothesis.knots(j, label_map.future) for j in range(state.function.forest.n_trees)]
        return None, [(keys, counts, label_map.rows(true), sizes) for keys, counts, true, sizes in knots]


class BudgetedTrees(_OnTrees, Terms):
    """Trees, and beside them the terms: to know what to take out again, and who has noise of his own."""

    def __init__(self, plan):
        super().__init__(plan)
        self.takes_objects = False

    def program(self, n_features):
        return None

    def function(self, n_features, dtype, origin, outputs, sparse, form):
        points = DensePoints(n_features, np.float64)
        terms = coefficients_on(points, self.budget, self.channels, outputs, form)
        return trees.BudgetedTrees(forest=self.forest(n_features, outputs), terms=terms, outputs=outputs)

MOST_WEIGHTS = 8192  # their covariance has the square of that


class PointsPosterior(Terms):
    """The posterior of f at points, which are the terms of its mean."""

    double = True  # a posterior is as good as the digits of its kernel

    def __init__(self, plan):
        super().__init__(plan)
        self.classes = plan.loss.task == "multiclass"

    def function(self, n_features, dtype, origin, outputs, sparse, form):
        return posterior.PointsPosterior(
            dictionary=self.dictionary(n_features, dtype, origin, sparse),
            outputs=outputs,
            memory=self.rule.memory,
            classes=self.classes,
            budget=self.rule.budget,
            tolerance=self.rule.tolerance,
        )


class WeightsPosterior(MappedWeights):
    """The posterior of weights, over the features of a map; for a linear kernel they are those of the examples."""

    double = True
    array = "mean"

    def __init__(self, plan):
        super().__init__(plan)
        self.scale = 1.0 if self.kernel.has_map() else self.kernel.linear_scale()
        self.classes = plan.loss.task == "multiclass"

    def function(self, n_features, dtype, origin, outputs, sparse, form):
        features = feature_map(self.features, n_features, sparse)
        if features.size > MOST_WEIGHTS:
            raise ValueError(
                f"KRLS with {self.kernel!r} keeps the covariance of all weights, and there are {features.size} "
                "features; at "
                f"most {MOST_WEIGHTS} will do. A sum such as Linear() + Gaussian(1.0) keeps points instead, as many "
                "as the budget says."
            )
        return posterior.WeightsPosterior(
            map=features, scale=self.scale, outputs=outputs, memory=self.rule.memory, classes=self.classes
        )

    def terms(self, state, future=False):
        return super().terms(state, future) if self.kernel.has_map() else Weights.terms(self, state)


def representation_of(plan):
    """The representation of f that a plan makes: the fastest that its kernel, budget and rule allow."""
    kernel, budget, rule = plan.kernel, plan.budget, plan.rule
    unlimited = type(budget) is Unlimited
    if kernel.has_map() or unlimited and not rule.keeps_examples and kernel.linear_scale() is not None:
        kind = WeightsPosterior if rule.is_posterior else MappedWeights if kernel.has_map() else Weights
    elif rule.is_posterior:
        kind = PointsPosterior
    elif rule.keeps_examples or budget.looks_at_kernel or kernel.additive() is None:
        kind = Terms
    elif unlimited and not any("noise" in summand for summand in kernel.additive()):
        kind = Trees
    else:
        kind = BudgetedTrees if kernel.ops() is not None else Terms  # beside trees, terms are for compiled kernels only
    return kind(plan)
