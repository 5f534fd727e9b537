"""Defaults that are chosen by the call, where the user gave none.

They depend on the task, on the rows, and on whether a stream is learned or, by `fit`, a set that is all there is. `fit`
means a world that stands still: nothing is forgotten, and steps get smaller. What a user gives is used as it is.
"""
import math
from collections import namedtuple

import numpy as np

from onlinekernels._core.arrays import check_array
from onlinekernels._core.points import Rows
from onlinekernels.budgets import Unlimited
from onlinekernels.kernels import Constant, Gaussian, Linear, Normalized, Sum
from onlinekernels.steps import Fixed, InverseSqrt
from onlinekernels.base.validation import as_csr

AUTO = "auto"  # a budget that is chosen by the call
WIDTHS = {"binary": 0.3, "multiclass": 0.3, "regression": 0.5, "novelty": 1.0}  # of scaled features, per sqrt(d)
MOST = 100  # rows whose distances are looked at

Data = namedtuple("Data", "n_features rows sparse unit", defaults=(None, False, 1.0))
Data.__doc__ = """What defaults follow: the number of features, that of rows in `fit` (None on a stream), whether they
are sparse, and the size of features, 1 behind a scaler; see `unit`."""


def gaussian(loss, data):
    """Scaled rows of d independent features are about sqrt(2 d) apart; so widths grow like sqrt(d).

    >>> from onlinekernels import Hinge, Squared
    >>> gaussian(Hinge(), Data(4)), gaussian(Squared(), Data(4)), gaussian(Squared(), Data(4, unit=0.25))
    (Gaussian(width=0.6), Gaussian(), Gaussian(width=0.25))
    """
    return Gaussian(WIDTHS[loss.task] * math.sqrt(data.n_features) * data.unit)


def kernel(loss, data):
    """Rows of many zeros have thousands of features, which a linear function tells apart; but not what is novel."""
    return Linear() if data.sparse and loss.task != "novelty" else gaussian(loss, data)


def process(loss, data):
    """The prior of a posterior. Numbers have a level, which a Gaussian alone would have to learn at every place anew;
    +1 and -1 of classes have none to learn, and -1 for all is a good guess far from all rows."""
    return gaussian(loss, data) + Constant(1.0) if loss.task == "regression" else gaussian(loss, data)


def width(kernel):
    """The width of a Gaussian, or of one plus a constant; None of other kernels.

    >>> width(Gaussian(2.0)), width(Gaussian(3.0) + 1), width(Linear())
    (2.0, 3.0, None)
    """
    if type(kernel) is Sum and type(kernel.right) is Constant:
        kernel = kernel.left
    return kernel.width if type(kernel) is Gaussian else None


def resized(kernel, factor):
    """The same with a width `factor` times as large.

    >>> resized(Gaussian(3.0) + 1, 2.0)
    Gaussian(width=6.0) + Constant()
    """
    wider = Gaussian(width(kernel) * factor)
    return wider + kernel.right if type(kernel) is Sum else wider


def normalized(loss, data):
    """`kernel`, with k(x, x) = 1."""
    chosen = kernel(loss, data)
    return Normalized(chosen) if isinstance(chosen, Linear) else chosen


def unit(rows):
    """The size of features: 1 if these rows are as far apart as those of normal deviates would be; a power of two.

    Compared are medians: of the distances, and of a chi-squared variable of d degrees of freedom (Wilson and Hilferty).
    Rounding keeps the rule by columns for features of the size of 1, and parts of the same data agree.

    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(50, 3))
    >>> unit(X), unit(0.01 * X), unit(1e5 + 10 * X), unit(X[:1])
    (1.0, 0.0078125, 8.0, 1.0)
    """
    sparse = not isinstance(rows, np.ndarray)
    rows = as_csr(rows) if sparse else rows
    rows = rows[:: -(-rows.shape[0] // MOST)]  # evenly among all
    if sparse:
        largest = np.abs(rows.data).max(initial=0.0)
        rows = rows / largest if largest > 0 else rows
        gram = (rows @ rows.T).toarray()
    else:
        with np.errstate(over="ignore"):
            rows = rows.astype(float) - rows[0]
        largest = np.abs(rows).max()
        rows = rows / largest if 0 < largest < np.inf else np.zeros((1, 1))
        gram = rows @ rows.T
    squares = np.diag(gram)
    apart = (squares[:, None] + squares - 2.0 * gram)[~np.tri(len(gram), dtype=bool)]
    apart = apart[apart > 1e-12 * squares.max()]  # others are the same row
    if len(apart) == 0:
        return 1.0
    d = rows.shape[1]
    size = math.log2(largest) + math.log2(np.median(apart) / (2.0 * d * (1.0 - 2.0 / (9.0 * d)) ** 3)) / 2.0
    return 2.0 ** min(max(round(size), -300), 300)


# ---- What may also follow the current kernel ----


def offset(loss, data, kernel):
    """A linear function goes through 0, wherever the rows are. Other functions find a level by themselves.

    Not for sparse rows: most have the length 1, so that an offset would weigh as much as all their features together.
    """
    return kernel.linear_scale() is not None and loss.task != "novelty" and not data.sparse


def regularization(loss, data, kernel):
    """lambda of implicit steps. A detector must remember many times 1 / nu rows."""
    if loss.task == "novelty" and loss.adapts:
        return loss.nu / 200.0
    if data.rows is not None and loss.task != "novelty":
        return 1.0 / data.rows
    return 1e-3 if loss.task == "regression" else 3e-3


def step(loss, data, kernel):
    """eta_t of implicit steps."""
    return Fixed(1.0) if data.rows is None or loss.task == "novelty" else InverseSqrt(5.0)


def budget(kind):
    """A chooser for budgets of one kind: 512 terms, and 4096 where all data is there at once; none for weights."""
    return lambda loss, data, kernel: (
        Unlimited() if kernel.linear_scale() is not None else kind(512 if data.rows is None else 4096)
    )


# ---- The first rows of a stream, by which the width of a default kernel is chosen ----

LOOKS = (10, 100)  # rows after which that is


class WarmUpRows:
    """The first rows of a stream with their targets and weights. `open`, which may fail, then `commit`.

    >>> warm_up = WarmUpRows()
    >>> for x in np.arange(0.0, 400.0, 40.0):
    ...     warm_up.open(np.array([[x]]), np.array([1.0]), None)
    ...     warm_up.commit(1)
    >>> warm_up.left, warm_up.unit(), warm_up.after_look().left
    (0, 128.0, 90)
    """

    def __init__(self, parts=None, looks=LOOKS):
        self.parts = parts  # (rows, targets, weights), those of the open block included; None without any
        self.n = 0 if parts is None else len(parts[0])  # how many of them are learned
        self.is_open = False
        self.looks = looks  # that are still to come

    @property
    def left(self):
        """Rows that are missing to the next look."""
        return self.looks[0] - self.n

    def rows(self, done=0):
        """(rows, targets, weights) that are learned, with `done` ones of the open block; None without any."""
        n = self.n + done * self.is_open
        if n == 0:
            return None
        X, y, weights = self.parts
        return (X, y, weights) if n == len(X) else (X[:n], y[: n * (len(y) // len(X))], weights[:n])

    def open(self, X, y, weights):
        """Get ready to learn some more rows; X and y may be views of what others change."""
        weights = np.ones(len(X)) if weights is None else weights
        known = self.rows() or (X[:0], y[:0], weights[:0])
        parts = tuple(_joined(before, more) for before, more in zip(known, (X, y, weights), strict=True))
        self.__dict__.update(parts=parts, is_open=True)

    def commit(self, done):
        """The first `done` rows of the open block, if there is one, are learned."""
        if self.is_open:
            self.__dict__.update(n=self.n + done, is_open=False)

    def unit(self):
        """The size of features in these rows."""
        return unit(self.rows()[0])

    def after_look(self):
        """What to go on with after a look; None after the last."""
        return WarmUpRows(self.rows(), self.looks[1:]) if len(self.looks) > 1 else None

    def widened(self, extra, fill):
        """The same with more features, which have the value `fill` in all rows."""
        if self.n == 0:
            return self
        X, *rest = self.rows()
        return WarmUpRows((np.pad(X, ((0, 0), (0, extra)), constant_values=fill), *rest), self.looks)

    def to_dict(self, done=0):
        """All of it as arrays by name, with `done` rows of an open block."""
        looks, rows = {"looks": len(self.looks)}, self.rows(done)
        if rows is None:
            return looks
        X, y, weights = rows
        names = ("indptr", "indices", "data") if isinstance(X, Rows) else ()
        points = {name: getattr(X, name) for name in names} or {"X": X}
        return {**looks, **points, "y": y, "weights": weights}

    @classmethod
    def restored(cls, learned, n_features, dtype, sparse, n_targets, labels):
        """What `to_dict` described; ValueError if its parts do not fit each other, or targets are none of `labels`."""
        looks = learned["looks"]
        if type(looks) is not int or not 1 <= looks <= len(LOOKS):
            raise ValueError("the first rows were looked at too often")
        if "y" not in learned:
            return cls(looks=LOOKS[-looks:])
        kinds = (("indptr", np.int64), ("indices", np.int32), ("data", np.float64))
        X = (Rows(*(check_array(learned[name], name, kind, (-1,)) for name, kind in kinds), n_features) if sparse
             else _owned_array(learned["X"], dtype, (-1, n_features)))
        y = _owned_array(learned["y"], np.float64, (len(X) * n_targets,))
        weights = _owned_array(learned["weights"], np.float64, (len(X),))
        fits = labels is None or np.isin(y, labels).all()
        if not fits or not 0 < len(X) <= LOOKS[-looks] or (weights < 0).any():
            raise ValueError("the first rows are too many, or their targets or weights are out of range")
        return cls((X, y, weights), LOOKS[-looks:])


def _owned_array(array, dtype, shape):
    """A copy with the dtype object that numpy shares, as one from a pickle has not: pickles have the same bytes."""
    array = check_array(array, "the first rows", dtype, shape)
    copy = np.empty(array.shape, dtype=dtype)
    copy[:] = array
    return copy


def _joined(before, more):
    """Rows or numbers, one after the other; copies."""
    if not isinstance(more, Rows):
        return np.concatenate([before, more])
    indptr = np.append(before.indptr, before.indptr[-1] + more.indptr[1:])
    indices, data = (np.append(getattr(before, name), getattr(more, name)) for name in ("indices", "data"))
    return Rows(indptr, indices, data, more.n_features)
