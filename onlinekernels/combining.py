"""How members are combined: their scores, weighted by least squares that forget.

The combiner listens and members do not: each learns for itself.  So a piece of rows is combined at once, with weights at
each row as of the rows before it, by sums that fade: no row waits for another.
"""
import numpy as np

__all__ = ["LeastSquares"]

PIECE = 256  # rows whose fading sums are taken together: memory ** -256 must be a number of the size of 1


class LeastSquares:
    """Weights w of m members that minimise the fading sum of (y - sum_i w_i f_i)^2, where they sum to 1.

    With f the mean of the members and d_i = f_i - f, it is y - f = sum_i v_i d_i and w_i = 1/m + v_i. A ridge, as large as
    `prior` rows of the usual d, holds v at 0: all members count alike until the rows say otherwise. Where members agree for
    ever nothing happens, as only their differences count.

    Parameters
    ----------
    n_members : int
    groups : int
        Each group of outputs has weights of its own: 1 for the scores of classes, which share them, and otherwise one for each target.
    memory : float
        What is left of a row's weight after one more.
    prior : float

    Examples
    --------
    >>> f = np.array([[0.0, 1.0]] * 400)[:, :, None]               # two members, of which the second is right
    >>> stack = LeastSquares(2, 1)
    >>> combined = stack.advance(f, np.ones((400, 1)))
    >>> combined[[0, 50, 399], 0].round(2), stack.weights().round(2)
    (array([0.5 , 0.75, 0.94]), array([[0.06, 0.94]]))
    """

    def __init__(self, n_members, groups, memory=0.9995, prior=100.0):
        self.memory, self.prior = memory, prior
        self.products = np.zeros((groups, n_members, n_members))
        self.answers = np.zeros((groups, n_members))
        self.count = 0.0

    def combined(self, scores):
        """Scores of members, shape (n, members, outputs), combined as of now, shape (n, outputs)."""
        middle = scores.mean(axis=1)
        return middle + self._sum(self._solved(self.products[None], self.answers[None], np.array([self.count])), scores, middle)

    def weights(self):
        """Weights of the members in each group, shape (groups, members)."""
        solved = self._solved(self.products[None], self.answers[None], np.array([self.count]))[0]
        return solved + 1.0 / solved.shape[1]

    def advance(self, scores, Y, counts=None):
        """Take in rows: combined scores just before each, shape (n, outputs).

        Parameters
        ----------
        scores : array of shape (n, members, outputs)
        Y : array of shape (n, outputs)
        counts : array of shape (n,) or None
            Weights of the rows.
        """
        out = np.empty(Y.shape)
        for begin in range(0, len(Y), PIECE):
            piece = slice(begin, begin + PIECE)
            out[piece], now = self._piece(scores[piece], Y[piece], None if counts is None else counts[piece])
            self.__dict__.update(now)  # all at once
        return out

    def _piece(self, scores, Y, counts):
        n, middle = len(Y), scores.mean(axis=1)
        counts = np.ones(n) if counts is None else counts
        apart, missed = scores - middle[:, None], Y - middle
        weighted = apart * counts[:, None, None]
        if len(self.answers) == 1:
            products = (weighted @ apart.transpose(0, 2, 1))[:, None]
            answers = (weighted @ missed[:, :, None])[:, None, :, 0]
        else:
            products = np.einsum("tig,tjg->tgij", weighted, apart)
            answers = np.einsum("tig,tg->tgi", weighted, missed)
        products, last_products = self._faded(self.products, products)
        answers, last_answers = self._faded(self.answers, answers)
        before, last_count = self._faded(np.array(self.count), counts)
        combined = middle + self._sum(self._solved(products, answers, before), scores, middle)
        return combined, {"products": last_products, "answers": last_answers, "count": float(last_count)}

    def _faded(self, start, parts):
        """(fading sums before each row, the sum after the last)."""
        ages = np.arange(len(parts) + 1).reshape(-1, *[1] * start.ndim)
        sums = np.concatenate([start[None], start[None] + np.cumsum(parts * self.memory ** -(ages[1:].astype(float)), axis=0)])
        sums *= self.memory ** ages.astype(float)
        return sums[:-1], sums[-1]

    def _solved(self, products, answers, counts):
        """v for sums at several rows, shape (rows, groups, members)."""
        m = products.shape[-1]
        usual = np.trace(products, axis1=-2, axis2=-1) / m / np.maximum(counts, 1e-12)[:, None]
        size = np.where(usual > 0.0, usual, 1.0)  # where members have agreed
        ridged = products / size[..., None, None] + self.prior * np.eye(m)
        return np.linalg.solve(ridged, (answers / size[..., None])[..., None])[..., 0]

    @staticmethod
    def _sum(v, scores, middle):
        """sum_i v_i d_i; v is of each row or of all, and of each group or of all outputs."""
        return np.einsum("tmc,tmc->tc", np.broadcast_to(v.transpose(0, 2, 1), scores.shape), scores - middle[:, None])

    def state(self):
        """What is learned, by name."""
        return {"products": self.products, "answers": self.answers, "count": self.count}

    def restore(self, state):
        """Go on from what `state` gave; ValueError if it makes no sense."""
        products, answers = (np.array(state[name], dtype=float) for name in ("products", "answers"))
        count = float(state["count"])
        fits = products.shape == self.products.shape and answers.shape == self.answers.shape
        if not fits or not all(np.isfinite(part).all() for part in (products, answers, count)) or count < 0.0:
            raise ValueError("the sums of the combination do not fit the members")
        least = -1e-6 * np.trace(products, axis1=1, axis2=2)
        if not np.allclose(products, products.transpose(0, 2, 1)) or (np.linalg.eigvalsh(products) < least[:, None]).any():
            raise ValueError("the products of the combination are not positive")
        self.products, self.answers, self.count = products, answers, count
