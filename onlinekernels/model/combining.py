"""How members are combined: their scores, weighted by least squares that forget.

For a composition of a few strong members; an `Ensemble` of many has `SquaresStack` or another of `_core/combining`.

The combiner listens and members do not: each learns for itself.  So a piece of rows is combined at once, with weights at
each row as of the rows before it.
"""
import numpy as np

from onlinekernels._core.combining.fading import solved

__all__ = ["LeastSquares"]


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
