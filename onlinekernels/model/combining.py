"""How members are combined: their scores, weighted by least squares that forget.

The combiner listens and members do not: each learns for itself.  So a piece of rows is combined at once, with weights at
each row as of the rows before it, by sums that fade: no row waits for another.
"""
import numpy as np

__all__ = ["LeastSquares"]

PIECE = 256  # rows whose fading sums are taken together: memory ** -256 must be a number of the size of 1


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

    def combined(self, scores):
        """Scores of members, shape (n, members, outputs), combined as of now, shape (n, outputs)."""
        middle, apart = self._apart(scores)
        return middle + self._sum(self._now(), apart)

    def _apart(self, scores):
        """(mean f of the members, d)."""
        middle = scores.mean(axis=1)
        return middle, scores - (middle[:, None] if self.origin is None else self.origin)

    def weights(self):
        """Weights of the members in each group, shape (groups, members)."""
        return self._now()[0] + 1.0 / self.answers.shape[1]

    def _now(self):
        return self._solved(self.products[None], self.answers[None], self.squares[None], np.array([self.count]))

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
            if not (np.isfinite(now["products"]).all() and np.isfinite(now["answers"]).all()):
                raise FloatingPointError("What the members say is too large to be combined.")
            self.__dict__.update(now)  # all at once
        return out

    def _piece(self, scores, Y, counts):
        middle, apart = self._apart(scores)
        counts, missed = np.ones(len(Y)) if counts is None else counts, Y - middle
        weighted = apart * counts[:, None, None]
        if len(self.answers) == 1:
            products = (weighted @ apart.transpose(0, 2, 1))[:, None]
            answers = (weighted @ missed[:, :, None])[:, None, :, 0]
            squares = counts[:, None] * np.sum(missed**2, axis=1, keepdims=True)
        else:
            products = np.einsum("tig,tjg->tgij", weighted, apart)
            answers = np.einsum("tig,tg->tgi", weighted, missed)
            squares = counts[:, None] * missed**2
        fades = self.memory ** np.arange(len(Y) + 1.0)
        products, last_products = _faded(fades, self.products, products)
        answers, last_answers = _faded(fades, self.answers, answers)
        squares, last_squares = _faded(fades, self.squares, squares)
        before, last_count = _faded(fades, np.array(self.count), counts)
        combined = middle + self._sum(self._solved(products, answers, squares, before), apart)
        return combined, {"products": last_products, "answers": last_answers, "squares": last_squares, "count": float(last_count)}

    def _solved(self, products, answers, squares, counts):
        """v for sums at several rows, shape (rows, groups, members)."""
        m = products.shape[-1]
        missed = squares / np.maximum(counts, 1e-12)[:, None]
        size = np.maximum(missed, 1e-12 * np.trace(products, axis1=-2, axis2=-1))  # also where f has been right
        size = np.where(size > 0.0, size, 1.0)  # or nothing has been learned
        ridged = products / size[..., None, None] + self.prior * np.eye(m)
        return np.linalg.solve(ridged, (answers / size[..., None])[..., None])[..., 0]

    @staticmethod
    def _sum(v, apart):
        """sum_i v_i d_i; v is of each row or of all, and of each group or of all outputs."""
        return np.einsum("tmc,tmc->tc", np.broadcast_to(v.transpose(0, 2, 1), apart.shape), apart)

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


def _faded(fades, start, parts):
    """(fading sums before each row, the sum after the last); fades are powers of the memory, from 1 on."""
    fades = fades.reshape(-1, *[1] * start.ndim)
    sums = np.empty((len(fades), *start.shape))
    sums[0] = 0.0
    np.cumsum(parts / fades[1:], axis=0, out=sums[1:])
    sums += start
    sums *= fades
    return sums[:-1], sums[-1]
