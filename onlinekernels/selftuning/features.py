"""Features on one footing, whatever their units and tails: by rows that are kept, then fixed until more are known."""
import functools

import numpy as np

from onlinekernels._core.formulas.vectorized import scored

__all__ = ["Features"]

LEVELS = 33  # quantiles of a column
FARTHEST = 10.0  # deviations at which a number stops to move
LEAST = 1e-6  # by which a constant column must change, in units of its size, to count as changed


@functools.cache
def _normal_scores():
    """Quantiles of the normal distribution at the levels."""
    from statistics import NormalDist  # takes milliseconds to import

    return np.array([NormalDist().inv_cdf((level + 0.5) / LEVELS) for level in range(LEVELS)])


def _quantiles(ascending):
    """Quantiles at the levels of rows that ascend, between the two numbers next to each."""
    places = (np.arange(LEVELS) + 0.5) / LEVELS * (ascending.shape[1] - 1)
    below = places.astype(np.intp)
    low, high = ascending[:, below], ascending[:, np.minimum(below + 1, ascending.shape[1] - 1)]
    return low + (high - low) * (places - below)


class Features:
    """A fixed map of each column: the mean of its z-score and its normal score.

    A z-score keeps distances, and an outlier spoils it; a normal score (the quantile of a Gaussian that has the rank of the number)
    is proof against outliers and crowds. Half of each is better than either. A column with two values becomes 0 and 1, so that
    a change counts as one unit, however rare it is. A column that is constant becomes 0, and -1 or 1 where it is below or above
    what it used to be.

    Parameters
    ----------
    X : array of shape (n, n_features)
        The rows to go by.

    Examples
    --------
    >>> X = np.array([[1.0, 0.0, 7.0], [2.0, 1.0, 7.0], [3.0, 0.0, 7.0], [1e6, 1.0, 7.0]])
    >>> Features(X)(X).round(2)
    array([[-1.37,  0.  ,  0.  ],
           [-0.5 ,  1.  ,  0.  ],
           [-0.09,  0.  ,  0.  ],
           [ 1.95,  1.  ,  0.  ]])
    >>> Features(X)([[1.0, 0.0, 7.5]])[:, 2]                      # never seen to change before
    array([1.])
    """

    def __init__(self, X):
        self.mean = X.mean(axis=0)
        deviation = X.std(axis=0)
        self.slope = np.zeros(X.shape[1])  # of the part that is linear
        self.knots = np.full((X.shape[1], LEVELS), np.inf)
        self.scores = np.zeros((X.shape[1], LEVELS))  # at the knots
        quantiles = _quantiles(np.sort(X.T, axis=1))
        for j, column in enumerate(X.T):
            low, high = column.min(), column.max()
            if high - low <= LEAST * 1e-6 * max(abs(low), abs(high)):
                knots, scores = low + LEAST * max(abs(low), 1.0) * np.array([-1.0, 0.0, 1.0]), [-1.0, 0.0, 1.0]
            elif ((column == low) | (column == high)).all():
                knots, scores = [low, high], [0.0, 1.0]
            else:
                knots, places = np.unique(quantiles[j], return_inverse=True)  # equal numbers share their mean score
                scores = 0.5 * np.bincount(places, _normal_scores()) / np.bincount(places)
                self.slope[j] = 0.5 / deviation[j]
            self.knots[j, : len(knots)], self.scores[j, : len(knots)] = knots, scores
        self._prepare()

    def _prepare(self):
        last = np.isfinite(self.knots).sum(axis=1) - 1
        self._last = self.knots[np.arange(len(last)), last]
        rises = np.zeros_like(self.knots)
        inside = np.isfinite(self.knots[:, 1:])
        rises[:, :-1][inside] = (np.diff(self.scores, axis=1)[inside]
                                 / (self.knots[:, 1:][inside] - self.knots[:, :-1][inside]))
        self._rises = rises

    def __call__(self, X):
        """Rows of X as they are compared."""
        X = np.ascontiguousarray(X, dtype=float)
        return scored(X, self.mean, self.slope, 0.5 * FARTHEST, self.knots, self._last, self.scores, self._rises)

    def state(self):
        """Arrays by name, from which `restored` makes the same."""
        return {"mean": self.mean, "slope": self.slope, "knots": self.knots, "scores": self.scores}

    @classmethod
    def restored(cls, state, n_features):
        """The map that `state` described; ValueError if it makes no sense."""
        self = cls.__new__(cls)
        for name, shape in (("mean", (n_features,)), ("slope", (n_features,)), ("knots", (n_features, LEVELS)),
                            ("scores", (n_features, LEVELS))):
            array = np.array(state[name], dtype=float)
            if array.shape != shape or np.isnan(array).any() or name != "knots" and not np.isfinite(array).all():
                raise ValueError(f"the {name} of features are not numbers of shape {shape}")
            setattr(self, name, array)
        finite = np.isfinite(self.knots)
        ascending = (self.knots[:, 1:] > self.knots[:, :-1]) | ~finite[:, 1:]
        if not (finite[:, 0].all() and ascending.all() and (finite[:, :-1] >= finite[:, 1:]).all()):
            raise ValueError("the knots of features are not in order")
        self._prepare()
        return self
