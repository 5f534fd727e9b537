"""The first rows of a stream, from whose distances the width of a default kernel is chosen.

A stream shows how far apart its rows are only while it is learned. So a model that chooses the width by itself keeps its
first rows, looks at their distances after `LOOKS`, and if the width was far off learns these rows anew with the right one.
That does not depend on how the stream is cut into calls.
"""
import numpy as np

from onlinekernels._core.arrays import check_array
from onlinekernels._core.points import Rows
from onlinekernels.base import defaults

__all__ = ["Beginning"]

LOOKS = (10, 100)  # rows after which the width is chosen


class Beginning:
    """The first rows of a stream with their targets and weights.

    >>> beginning = Beginning()
    >>> for x in np.arange(0.0, 400.0, 40.0):
    ...     beginning = beginning.followed_by(np.array([[x]]), np.array([1.0]), None)
    >>> beginning.left, beginning.unit(), beginning.settled().left
    (0, 128.0, 90)
    """

    def __init__(self, parts=(None, None, None), looks=LOOKS):
        self._parts = parts  # rows, targets, weights (None if none were given)
        self.looks = looks  # that are still to come

    def __len__(self):
        return 0 if self._parts[0] is None else len(self._parts[0])

    @property
    def left(self):
        """Rows that are missing to the next look."""
        return self.looks[0] - len(self)

    def rows(self):
        """(rows, targets, weights or None)."""
        return self._parts

    def followed_by(self, X, y, weights):
        """The same with more rows; X and y may be views of what others change."""
        before, targets, known = self._parts
        if (weights is None) != (known is None) and before is not None:
            weights = np.ones(len(X)) if weights is None else weights
            known = np.ones(len(before)) if known is None else known
        parts = _joined(before, X), _joined(targets, y), None if weights is None else _joined(known, weights)
        return Beginning(parts, self.looks)

    def first(self, n):
        """The same with the first n rows only."""
        X, y, weights = self._parts
        if n == 0:
            return Beginning(looks=self.looks)
        return Beginning((X[:n], y[: n * (len(y) // len(X))], None if weights is None else weights[:n]), self.looks)

    def unit(self):
        """The size of features in these rows."""
        return defaults.unit(self._parts[0])

    def settled(self):
        """What to go on with after a look; None after the last."""
        return Beginning(self._parts, self.looks[1:]) if len(self.looks) > 1 else None

    def widened(self, extra, fill):
        """The same with more features, which have the value `fill` in all rows."""
        X, *rest = self._parts
        return Beginning((X if X is None else np.pad(X, ((0, 0), (0, extra)), constant_values=fill), *rest), self.looks)

    def to_dict(self):
        """All of it as arrays by name."""
        X, y, weights = self._parts
        points = {"X": X} if not isinstance(X, Rows) else {"indptr": X.indptr, "indices": X.indices, "data": X.data}
        return {"looks": len(self.looks), **{
            name: part for name, part in {**points, "y": y, "weights": weights}.items() if part is not None
        }}

    @classmethod
    def restored(cls, learned, n_features, dtype, sparse):
        """What `to_dict` described; ValueError if its parts make no sense."""
        looks, X = learned["looks"], None
        if type(looks) is not int or not 1 <= looks <= len(LOOKS):
            raise ValueError("the first rows were looked at too often")
        if sparse and "data" in learned:
            kinds = (("indptr", np.int64), ("indices", np.int32), ("data", np.float64))
            X = Rows(*(check_array(learned[name], name, kind, (-1,)) for name, kind in kinds), n_features)
        elif not sparse and "X" in learned:
            X = _checked(learned["X"], dtype, (-1, n_features))
        if X is None:
            return cls(looks=LOOKS[-looks:])
        if not 0 < len(X) <= LOOKS[-looks] or not sparse and not np.isfinite(X).all():
            raise ValueError("the first rows make no sense")
        y = _checked(learned["y"], np.float64, (-1,))
        weights = learned.get("weights")
        if weights is not None:
            weights = _checked(weights, np.float64, (len(X),))
            if not (np.isfinite(weights).all() and (weights >= 0).all()):
                raise ValueError("the weights of the first rows make no sense")
        return cls((X, y, weights), LOOKS[-looks:])

    def check_targets(self, n_targets, task, n_labels):
        """ValueError unless the targets are such as the engine takes."""
        X, y, _ = self._parts
        if X is None:
            return
        fits = y.shape == (len(X) * n_targets,) and np.isfinite(y).all()
        if task == "binary":
            fits = fits and np.isin(y, (-1.0, 1.0)).all()
        elif task == "multiclass":
            fits = fits and (y == np.floor(y)).all() and (y >= 0).all() and (y < n_labels).all()
        if not fits:
            raise ValueError("the targets of the first rows make no sense")


def _checked(array, dtype, shape):
    """A copy with the dtype that numpy shares, which one from a pickle has not: a pickle of it has the same bytes again."""
    array = check_array(array, "the beginning", dtype, shape)
    copy = np.empty(array.shape, dtype=dtype)
    copy[:] = array
    return copy


def _joined(before, more):
    """Rows or numbers, one after the other; copies."""
    if isinstance(more, Rows):
        if before is None:
            return more
        indptr = np.append(before.indptr, before.indptr[-1] + more.indptr[1:])
        indices, data = (np.append(getattr(before, name), getattr(more, name)) for name in ("indices", "data"))
        return Rows(indptr, indices, data, more.n_features)
    return more.copy() if before is None else np.concatenate([before, more])
