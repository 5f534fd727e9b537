"""The latest rows of a stream."""
import numpy as np

__all__ = ["Kept"]


class Kept:
    """The latest rows, at most `window` of them, oldest first.

    Rows are written behind the end, where nobody looks, and `moved` is the same with a later end: so a change is one
    assignment, and a row costs what it is long.
    """

    def __init__(self, window, n_features, targets):
        self.window = window
        self.begin = self.end = 0
        self.X, self.y, self.weights = np.zeros((2, n_features)), np.zeros((2, targets)), np.zeros(2)

    def __len__(self):
        return self.end - self.begin

    def rows(self):
        """(X, y, weights) that are kept."""
        return tuple(part[self.begin : self.end] for part in (self.X, self.y, self.weights))

    def write(self, X, y, weights):
        """Put rows behind the end; all of it has room for them."""
        need = self.end + len(X)
        if need > len(self.X):
            begin = max(self.begin, self.end - self.window)
            size = max(16, 2 * (self.end - begin + len(X)))
            larger = {"begin": 0, "end": self.end - begin}
            for name in ("X", "y", "weights"):
                old = getattr(self, name)
                larger[name] = np.zeros((size, *old.shape[1:]))
                larger[name][: self.end - begin] = old[begin : self.end]
            self.__dict__.update(larger)  # all at once
        there = slice(self.end, self.end + len(X))
        self.X[there], self.y[there], self.weights[there] = X, y, 1.0 if weights is None else weights

    def moved(self, n):
        """With the n rows that were written."""
        return self._with(max(self.begin, self.end + n - self.window), self.end + n)

    def latest(self, n):
        """With the latest n rows alone."""
        return self._with(max(self.begin, self.end - n), self.end)

    def without(self, n):
        """Without the latest n rows."""
        return self._with(self.begin, self.end - n)

    def _with(self, begin, end):
        other = Kept.__new__(Kept)
        other.__dict__.update(self.__dict__, begin=begin, end=end)
        return other
