"""Defaults that are chosen by the call, where the user gave none.

They depend on the task, on the rows, and on whether a stream is learned or, by `fit`, a set that is all there is. `fit`
means a world that stands still: nothing is forgotten, and steps get smaller. What a user gives is used as it is.
"""
import math
from collections import namedtuple

import numpy as np

from onlinekernels.budgets import Unlimited
from onlinekernels.kernels import Constant, Gaussian, Linear, Normalized, Sum
from onlinekernels.steps import Fixed, InverseSqrt
from onlinekernels.base.validation import as_csr

__all__ = [
    "Data", "budget", "gaussian", "kernel", "normalized", "offset", "process", "regularization", "resized", "step",
    "unit", "width",
]

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
    """The same with a width so many times as large.

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
