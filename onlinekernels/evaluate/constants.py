"""What a constant would have done on the same stream: the least that a model should beat."""
import numpy as np

from onlinekernels.evaluate.measures import MEASURES


class Constant:
    """Predicts each example by those before it alone: their most frequent class, or the mean of their targets.

    Parameters
    ----------
    counts : list of int
        How often each class came, by its place.
    totals : list of float
        Sums of the targets.
    rows : int
        Examples so far.

    Examples
    --------
    >>> constant = Constant()
    >>> constant.judge_classes([0, 0, 1, 0])[:, 0].tolist()       # nothing is known of the first
    [1.0, 0.0, 1.0, 0.0]
    >>> constant = Constant()
    >>> constant.judge_numbers([2.0, 4.0, 3.0])[:, 0].tolist()
    [2.0, 2.0, 0.0]
    """

    def __init__(self, counts=(), totals=(), rows=0):
        self.counts = list(counts)
        self.totals = list(totals)
        self.rows = rows

    def judge_classes(self, places):
        """Measures of some more examples, whose classes have these places."""
        out = np.full((len(places), len(MEASURES)), np.nan)
        counts = self.counts
        leader = max(range(len(counts)), key=counts.__getitem__, default=-1)
        for i, place in enumerate(map(int, places)):
            counts.extend([0] * (place + 1 - len(counts)))
            out[i, 0] = place != leader
            counts[place] += 1
            if leader < 0 or counts[place] > counts[leader]:
                leader = place
        self.rows += len(out)
        return out

    def judge_numbers(self, y):
        """Measures of some more examples with these targets, one or several each; the first is predicted as 0."""
        y = np.asarray(y, dtype=float).reshape(len(y), -1)
        sums = np.cumsum(np.vstack([self.totals or np.zeros(y.shape[1]), y]), axis=0)
        means = sums[:-1] / np.maximum(self.rows + np.arange(len(y)), 1)[:, None]
        out = np.full((len(y), len(MEASURES)), np.nan)
        with np.errstate(over="ignore"):
            out[:, 0], out[:, 1] = np.abs(y - means).mean(axis=1), ((y - means) ** 2).mean(axis=1)
        self.totals, self.rows = sums[-1].tolist(), self.rows + len(y)
        return out

    def to_dict(self):
        """Plain numbers, from which ``Constant(**constant.to_dict())`` goes on."""
        return {"counts": self.counts, "totals": self.totals, "rows": self.rows}
