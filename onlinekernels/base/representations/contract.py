"""What a representation of f must be able to do."""
import numpy as np

from onlinekernels.budgets import Unlimited

__all__ = ["LabelMap", "Representation"]


class Representation:
    """How f is kept; belongs to a plan. What is learned is in a state, which methods are given.

    A subclass makes the function of the core (`function`), and says what a file must hold for it (`check_sizes`), what is
    shown (`terms`, `n_terms`, `coef`, `square`, and for additive kernels `component`, `knots`), and how it starts from another
    one of its class (`start`).

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
        """Raise ValueError for what makes no sense with the other parts of a plan."""
        if self.rule.per_feature:
            raise ValueError(
                f"per_feature=True is a step for each weight, and {self.kernel!r} with budget={self.budget!r} keeps no "
                "weights. Use a feature map, or Linear() with budget=None."
            )

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
        if fill and "origin" not in learned:
            # Points, and what is kept with them, are about the origin: about `fill`, new columns are 0.
            learned["origin"] = np.zeros(state.n_features, dtype=state.function.dtype)
        for name, value in (("points", 0.0), ("weights", 0.0), ("steps", self.rule.step.rate), ("origin", fill)):
            if name in learned:
                sides = [(0, 0)] * (learned[name].ndim - 1) + [(0, extra)]
                learned[name] = np.pad(learned[name], sides, constant_values=value)
        return learned

    # ---- What is shown ----

    def terms(self, state, ahead=False):
        """(points or objects, coefficients of shape (outputs, terms)), oldest first; AttributeError if there are none.

        With `ahead`, the last row is what labels to join have learned.
        """
        raise NotImplementedError

    def n_terms(self, state):
        """How many terms there are; 0 where weights replace them."""
        return 0

    def coef(self, state):
        """Weights of a linear kernel or of features; AttributeError if there are none."""
        raise AttributeError("coef_ exists for the linear kernel and feature maps only.")

    def square(self, state, ahead=False):
        """|f|^2."""
        raise NotImplementedError

    def norm_source(self, state):
        """How the engine knows |f| before each row: the hypothesis keeps it, or follows it, or it is computed anew.

        It can be followed where f changes by its shrinking and the new term alone, and all its labels have joined.
        """
        if self.rule.exact_norms:
            return {}
        others_change = self.rule.moves_terms or self.rule.per_feature or self.features_change
        follow = type(self.budget) is Unlimited and not others_change and not state.function.outputs.ahead
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
        """(points or None, coefficients, pairs of labels or nothing) for `begin_from`: a function that is kept in the same way."""
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

    def __init__(self, width, indices, ahead):
        self.width, self.indices, self.ahead = width, indices, ahead

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
