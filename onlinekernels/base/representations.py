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
from onlinekernels.budgets import Shrinking, Unlimited
from onlinekernels.kernels.maps import check_sizes, feature_map


class Representation:
    """How f is kept; belongs to a plan. What is learned is in a state, which methods are given.

    A subclass makes the function of the core, and says what a file must hold for it, what is shown (for additive
    kernels also ``component`` and ``knots``), and how it starts from another one of its class.
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

    def has_same_features(self, state, other):
        """Whether the functions of two states are about the same features."""
        return True

    def take_features(self, state, start):
        """Use the features of the state that this one starts from, where they are learned."""

    def start(self, state, start, future, widened):
        """(points or None, coefficients, pairs of labels or nothing) for the core's `begin_from`, of a function kept
        likewise; `widened` makes rows over the labels there ones over those of this state, see `State.start_of`."""
        raise NotImplementedError

    def of_examples(self, points, alpha):
        """The same from examples of this model's with coefficients."""
        return points, alpha


class Terms(Representation):
    """f = sum_i alpha_i k(x_i, .): any kernel, any budget, examples of any kind."""

    keeps = "terms"

    def __init__(self, plan):
        super().__init__(plan)
        self.takes_objects = self.kernel.takes_objects()

    def check(self, plan):
        if type(self.budget) is Unlimited:
            return
        if plan.average:
            raise ValueError(f"average=True cannot be combined with budget={self.budget!r}: the average of terms that "
                             "were dropped cannot be kept. Use budget=None.")
        if self.rule.exact_norms and self.takes_objects:
            raise ValueError("A budget needs a built-in kernel here: to keep |f| exact, kernel rows of dropped terms "
                             "are evaluated.")

    def program(self, n_features):
        ops = None if n_features is None else self.kernel.ops()
        return None if ops is None else Program(ops)

    def function(self, n_features, dtype, origin, outputs, sparse, form):
        terms = self.coefficients_on(self.dictionary(n_features, dtype, origin, sparse), outputs, form)
        return KernelTerms(terms=terms, outputs=outputs, evaluates_slots=self.rule.evaluates_slots)

    def dictionary(self, n_features, dtype, origin, sparse):
        """A dictionary without points, and the kernel over it."""
        if n_features is None:
            return Objects(self.kernel)
        program = self.program(n_features)
        program.start(n_features, np.float64 if sparse else dtype, origin)
        return SparsePoints(n_features, program) if sparse else DensePoints(n_features, dtype, origin, program)

    def coefficients_on(self, dictionary, outputs, form):
        """Coefficients on a dictionary, under the budget."""
        core = OwnBudget(self.budget.evict) if hasattr(self.budget, "evict") else self.budget.core()
        if form == "pair" and not self.budget.shares_out:
            return Paired(dictionary, core, self.channels)
        return Full(dictionary, core, self.channels, outputs)

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
        rows = np.zeros((len(alpha), len(grid)))
        if len(grid) and len(points):
            kernel = self.kernel.coordinate(j, state.n_features)
            rows = alpha @ kernel(grid[:, None], points[:, j : j + 1].astype(float)).T
        return state.with_label_kernel(rows).T

    def knots(self, state):
        """Distinct values of each coordinate among the terms."""
        return [np.unique(column) for column in self.terms(state)[0].T]

    # ---- How it starts from another ----

    def start(self, state, start, future, widened):
        points, alpha, pairs = start.function.points(), start.hypothesis.coefficients(future), start.function.pairs()
        if isinstance(points, np.ndarray):
            points = validation.numbers_of(points, state.function.dtype, "initial")
        if pairs is not None:
            return points, alpha[pairs[0], np.arange(pairs.shape[1])][None], pairs
        return points, widened(alpha), None


def as_users_see(state, points):
    """Points of the core as users give them."""
    if state.sparse:
        return validation.as_csr(points)
    return validation.check_objects(points, empty=True) if state.plan.takes_objects else points


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

    def start(self, state, start, future, widened):
        return None, widened(start.hypothesis.coefficients(future))

    def of_examples(self, points, alpha):
        return None, alpha @ (validation.as_csr(points) if isinstance(points, Rows) else points)


class MappedWeights(Weights):
    """f = <w, phi(x)>, where <phi(x), phi(z)> is the kernel; whatever the budget."""

    double = False
    features_change = True

    def __init__(self, plan):
        super().__init__(plan)
        self.scale = 1.0
        if self.rule.keeps_examples or isinstance(self.budget, Shrinking):
            raise ValueError(f"This algorithm keeps its examples, and {self.kernel!r} is a feature map, which keeps "
                             "weights.")
        self.features = self.kernel.features()  # the parts of the map
        if self.features is None:
            raise ValueError(f"{self.kernel!r} is no feature map as a whole: add only Linear, Constant or other maps "
                             "to one, and multiply it by positive numbers only.")

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

    def has_same_features(self, state, other):
        return same_parameters(state_of(state.function.map), state_of(other.function.map))

    def take_features(self, state, start):
        state.function.take_map(start.function)


def _exact_map(state):
    """The map of a Nystroem kernel whose landmarks are not complete, so that they are all there is; otherwise None."""
    whole = state.function.map
    return whole if isinstance(whole, NystroemMap) and whole.inverse is None else None


class Trees(Representation):
    """A tree for each coordinate, and nothing else: terms with equal coordinates share a knot."""

    keeps = "knots"
    double = True

    def function(self, n_features, dtype, origin, outputs, sparse, form):
        return trees.Trees(forest=self.forest(n_features, outputs), outputs=outputs)

    def forest(self, n_features, outputs):
        """Trees without knots."""
        return trees.Forest(n_features=n_features, channels=self.channels, outputs=outputs,
                            summands=self.kernel.additive())

    def check_sizes(self, learned, n_features, sparse):
        if np.ndim(learned["tree_levels"]) != 1 or len(learned["tree_levels"]) < n_features:
            raise ValueError("there are fewer trees than features")

    def terms(self, state, future=False):
        raise AttributeError("This kernel with an unlimited budget keeps knots, not terms: see knots_.")

    def n_terms(self, state):
        return int(state.function.forest.tree.contents(0)[1].sum())

    def square(self, state, future=False):
        return state.hypothesis.additive_square(future)

    def component(self, state, j, grid):
        """f_j at the values in grid, shape (len(grid), labels)."""
        return state.hypothesis.component(j, grid)

    def knots(self, state):
        """The knots of each coordinate, ascending, as they came."""
        forest = state.function.forest
        return [forest.unmapped(j, state.hypothesis.knots(j)[0]) for j in range(state.n_features)]

    def start(self, state, start, future, widened):
        knots = [start.hypothesis.knots(j, future) for j in range(state.function.forest.n_trees)]
        return None, [(keys, counts, widened(true), sizes) for keys, counts, true, sizes in knots]


class BudgetedTrees(Terms):
    """Trees, and beside them the terms: to know what to take out again, and who has noise of his own."""

    double = True
    forest, check_sizes, square, component = Trees.forest, Trees.check_sizes, Trees.square, Trees.component

    def program(self, n_features):
        return None

    def function(self, n_features, dtype, origin, outputs, sparse, form):
        terms = self.coefficients_on(DensePoints(n_features, np.float64), outputs, form)
        return trees.BudgetedTrees(forest=self.forest(n_features, outputs), terms=terms, outputs=outputs)


class PointsPosterior(Terms):
    """The posterior of f at points, which are the terms of its mean."""

    double = True  # a posterior is as good as the digits of its kernel

    def __init__(self, plan):
        super().__init__(plan)
        self.classes = plan.loss.task == "multiclass"

    def function(self, n_features, dtype, origin, outputs, sparse, form):
        return posterior.PointsPosterior(dictionary=self.dictionary(n_features, dtype, origin, sparse), outputs=outputs,
                                         memory=self.rule.memory, classes=self.classes, budget=self.rule.budget,
                                         tolerance=self.rule.tolerance)


MOST_WEIGHTS = 8192  # of a posterior: their covariance has the square of that


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
            raise ValueError(f"KRLS with {self.kernel!r} keeps the covariance of all weights, and there are "
                             f"{features.size} features; at most {MOST_WEIGHTS} will do. A sum such as Linear() + "
                             "Gaussian(1.0) keeps points instead, as many as the budget says.")
        return posterior.WeightsPosterior(
            map=features, scale=self.scale, outputs=outputs, memory=self.rule.memory, classes=self.classes)

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
