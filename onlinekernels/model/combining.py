"""How members are combined: least squares for a few strong members, ranks for detectors; others are in `_core/combining`.

The combiner listens and members do not: each learns for itself.  So a piece of rows is combined at once, with weights at
each row as of the rows before it.
"""
import math

import numpy as np

from onlinekernels._core.combining.fading import solved
from onlinekernels._core.run.ranks import Ranks

__all__ = ["AveragedRanks", "LeastSquares"]

SCORES = 2000  # that ranks are taken among
LATEST = 100  # scores that remain when others are forgotten
GAIN, HIGHEST = 0.02, 4.0  # by which an alert lowers the level of alerts, and where it is at most, in units of nu


class LeastSquares:
    """Weights w of m members that minimise the fading sum of (y - sum_i w_i f_i)^2.

    With f the mean of the members, y - f = sum_i v_i d_i and w_i = 1/m + v_i. Beforehand, v_i ~ N(0, 1 / prior): all members
    count alike until the rows say otherwise. So a ridge of `prior` times the usual (y - f)^2 holds v at 0.

    Numbers have d_i = f_i - f: only differences count, so weights sum to 1, units and offsets do not matter, and nothing happens
    where members agree for ever. Scores of classes have d_i = f_i + 1, as -1 means "no": a member that is right but timid may
    then count for more than its share.

    Parameters
    ----------
    n_members : int
    groups : int
        Each group of outputs has weights of its own: 1 for the scores of classes, which share them, and otherwise one for each target.
    memory : float
        What is left of a row's weight after one more.
    prior : float
    origin : float or None
        What d is counted from; None is the mean of the members.

    Examples
    --------
    >>> f = np.array([[0.0, 1.0]] * 400)[:, :, None]               # two members, of which the second is right
    >>> stack = LeastSquares(2, 1, memory=0.9995, prior=10.0)
    >>> combined = stack.advance(f, np.ones((400, 1)))
    >>> combined[[0, 50, 399], 0].round(2), stack.weights().round(2)
    (array([0.5 , 0.95, 0.99]), array([[0.01, 0.99]]))
    """

    def __init__(self, n_members, groups, memory, prior, origin=None):
        self.memory, self.prior, self.origin = memory, prior, origin
        self.products = np.zeros((groups, n_members, n_members))
        self.answers = np.zeros((groups, n_members))
        self.squares = np.zeros(groups)  # of y - f
        self.count = 0.0
        self.v = np.zeros((groups, n_members))  # as of these sums

    def combined(self, scores):
        """Scores of members, shape (n, members, outputs), combined as of now, shape (n, outputs)."""
        middle, apart = self._apart(scores)
        return middle + np.einsum("tmc,mc->tc", apart, np.broadcast_to(self.v.T, apart.shape[1:]))

    def _apart(self, scores):
        """(mean f of the members, d)."""
        middle = scores.mean(axis=1)
        return middle, scores - (middle[:, None] if self.origin is None else self.origin)

    def weights(self):
        """Weights of the members in each group, shape (groups, members)."""
        return self.v + 1.0 / self.v.shape[1]

    def advance(self, scores, Y, counts=None):
        """Take in rows: combined scores just before each, shape (n, outputs).

        Parameters
        ----------
        scores : array of shape (n, members, outputs)
        Y : array of shape (n, outputs)
        counts : array of shape (n,) or None
            Weights of the rows.
        """
        middle, apart = self._apart(scores)
        return middle + self._solved(apart, Y - middle, counts)

    def _solved(self, apart, missed, counts=None):
        """sum_i v_i d_i just before each row; all rows are taken in."""
        sums = self.products, self.answers, self.squares, self.count
        said, v, (products, answers, squares, count) = solved(np.ascontiguousarray(apart), missed, counts, self.memory, self.prior, sums)
        if not (np.isfinite(products).all() and np.isfinite(answers).all()):
            raise FloatingPointError("What the members say is too large to be combined.")
        self.__dict__.update(products=products, answers=answers, squares=squares, count=count, v=v)  # all at once
        return said

    def state(self):
        """What is learned, by name."""
        return {"products": self.products, "answers": self.answers, "squares": self.squares, "count": self.count}

    def restore(self, state):
        """Go on from what `state` gave; ValueError if it makes no sense."""
        found = {name: np.array(state[name], dtype=float) for name in ("products", "answers", "squares", "count")}
        for name, array in found.items():
            if array.shape != np.shape(getattr(self, name)) or not (np.abs(array) < 1e299).all():
                raise ValueError("the sums of the combination do not fit the members")
        products, count = found["products"], float(found["count"])
        least = -1e-6 * np.trace(products, axis1=1, axis2=2)
        if not np.allclose(products, products.transpose(0, 2, 1)) or (np.linalg.eigvalsh(products) < least[:, None]).any():
            raise ValueError("the products of the combination are not positive")
        if count < 0.0 or (found["squares"] < 0.0).any():
            raise ValueError("the sums of the combination are negative")
        self.__dict__.update(found, count=count)
        self._solved(np.zeros((0, *self.v.T.shape)), np.zeros((0, len(self.v))))

    def _check(self):
        """Assert what must always hold."""
        assert np.isfinite(self.products).all() and np.isfinite(self.answers).all()
        assert np.allclose(self.products, self.products.transpose(0, 2, 1))


class AveragedRanks:
    """Novelty: the mean over members of the log rank of a score among its like, and the rank of that mean among its like.

    Logarithms, as Fisher combined tests: whoever is very sure that a row is odd is heard. Ranks are among uniform samples of the
    past: ranks among the latest scores would get used to a burst of odd ones. The higher,
    the more ordinary.

    A rank below `level` is an alert. Where rows are like those before them a share nu has ranks below nu. Where rows become
    more and more ordinary there are fewer, so the level slowly rises until there are as many as asked for. It is never below
    nu: a burst of odd rows silences none that come after it.

    Parameters
    ----------
    n : int
        Members.
    memory : int
        After how many rows the past fades; 0 for never.
    nu : float
        The share of rows to alert about, in (0, 1).
    """

    def __init__(self, n, memory=0, nu=0.02):
        self.each, self.mean = Ranks(n, SCORES, memory, 1), Ranks(1, SCORES, memory, 2)
        self.nu = self.level = nu

    def advance(self, scores, y, joined, counts, awake):
        """(ranks of the mean, levels of alerts) just before each row, shapes (n, 1); all rows count alike."""
        ranks = self._ranks(self.mean.advance, self._means(self.each.advance, scores, awake))
        levels, level, highest = np.empty(ranks.shape), self.level, self._highest()
        fall, rise = math.exp(-GAIN), math.exp(GAIN * self.nu / (1.0 - self.nu))  # in balance where a share nu alerts
        for i, rank in enumerate(ranks[:, 0].tolist()):
            levels[i] = level
            level = max(self.nu, level * fall) if rank < level else min(highest, level * rise)
        self.level = level
        return ranks, levels

    def _highest(self):
        return min(HIGHEST * self.nu, 0.5 + 0.5 * self.nu)

    def combined(self, scores, joined, awake):
        """(ranks of the mean, ones) as of now."""
        return self._ranks(self.mean.ranks, self._means(self.each.ranks, scores, awake)), np.ones((len(scores), 1))

    @staticmethod
    def _means(ranks, scores, awake):
        return np.log(ranks(scores[:, :, 0])[:, awake]).mean(axis=1, keepdims=True)

    @staticmethod
    def _ranks(ranks, means):
        """Ranks, told apart a little by the means themselves, also where these are beyond all that were."""
        return ranks(means) + 1e-6 * means

    def begin_anew(self):
        """Forget the scores of a time when members knew too little, but for the latest."""
        self.each.keep_latest(LATEST)
        self.mean.keep_latest(LATEST)
        self.level = self.nu

    def weights(self):
        """All count alike."""
        return np.full((1, self.each.columns), 1.0 / self.each.columns)

    def state(self):
        """What is learned, by name."""
        return {"each": self.each.state(), "mean": self.mean.state(), "level": self.level}

    def restore(self, state):
        """Go on from what `state` gave; ValueError if it makes no sense."""
        level = float(state["level"])
        if not self.nu <= level <= self._highest():
            raise ValueError("the level of alerts makes no sense")
        self.each.restore(state["each"])
        self.mean.restore(state["mean"])
        self.level = level

    def _check(self):
        """Assert what must always hold."""
        self.each._check()
        self.mean._check()
