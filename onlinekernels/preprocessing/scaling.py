"""Scaling online: features to mean 0 and deviation 1, by what the stream has shown so far."""
from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlinekernels.base import validation
from onlinekernels._core.points import Rows
from onlinekernels._core.transforms import Scaler
from onlinekernels.preprocessing.transforming import RunningTransformer

if TYPE_CHECKING:
    from onlinekernels.annotations import Any, Array, Self, Sequence


class RunningScaler(RunningTransformer):
    """Scale each row by the mean and deviation of all rows up to and including it.

    Nothing from the future is used, so a model behind it can be judged by test-then-train. `partial_fit` of n
    rows gives what n calls of one row give, bit for bit; up to rounding for sparse rows.

    A feature that has shown two values only, such as a column of a one-hot encoding, is centred and a change of it
    counts as the square root of 2, however rare it is: as far as two values of a scaled number are apart, in the root
    mean square. From its third value on it is scaled like others.

    Sparse rows are divided by the root mean square of each feature and not centred, so that zeros stay
    zeros; a scaler goes on with the kind of rows that it began with. A feature that has shown one value beside zero is
    the square root of 2 there.

    Parameters
    ----------
    memory : float
        Weight of a row that is one example old, in (0, 1]. 1 remembers all rows alike; 0.999 remembers about
        the last thousand and follows a stream that changes.

    Attributes
    ----------
    mean_, var_, scale_ : arrays of shape (n_features,)
        Mean and variance, and what is divided by.
    count_ : float
        Sum of the weights.

    Examples
    --------
    >>> scaler = RunningScaler()
    >>> scaler.progressive([[1.0], [3.0], [5.0]]).round(3).ravel()
    array([0.   , 1.   , 1.225])
    >>> scaler.mean_, scaler.var_.round(3)
    (array([3.]), array([2.667]))
    >>> scaler.transform([[3.0]])
    array([[0.]])

    A rare event counts as much as a frequent one:

    >>> scaler = RunningScaler().fit([[0, 0], [0, 1], [0, 0], [1, 1]])
    >>> (scaler.transform([[1, 1]]) - scaler.transform([[0, 0]])).round(3)
    array([[1.414, 1.414]])
    """

    def __init__(self, memory: float = 1.0) -> None:
        self.memory = memory

    _state = None  # (a scaler of the core, names of features); never changed, only replaced

    def _transformed(self, X):
        with self._lock:
            return _like(X, self._fitted()[0].scaled(self._checked(X)))

    def learn_one(self, x: Any) -> Self:
        """Learn from one row; return self."""
        validation.refuse_masked(x, "x")
        self._advance(x if validation.is_sparse(x) else np.asarray(x, dtype=float)[None], False)
        return self

    def _advance(self, X, wanted):
        with self._lock.alone:
            validation.check_share(self, "memory")
            rows = self._checked(X)
            if self._state is None:
                scaler, names = Scaler(rows.shape[1], self.memory, isinstance(rows, Rows)), validation.feature_names(X)
            else:
                scaler, names = self._state[0].copy(self.memory), self._state[1]
            scaler, out = scaler.advanced(rows, wanted)
            self._state = scaler, names
        return _like(X, out)

    def _checked(self, X):
        owner, (scaler, names) = type(self).__name__, self._state or (None, None)
        n_features = None if scaler is None else scaler.n_features
        if validation.is_sparse(X) if scaler is None else scaler.sparse:
            if not validation.is_sparse(X):
                raise TypeError("This RunningScaler has begun with sparse rows; expected a sparse matrix for X.")
            return validation.check_sparse(X, n_features=n_features, owner=owner)
        validation.check_feature_names(X, names, owner)
        return validation.check_points(X, n_features=n_features, dtype=np.dtype(float), owner=owner)

    @property
    def mean_(self) -> Any:
        """Mean of each feature; 0 for sparse rows, which are not centred."""
        return self._attribute()[0].means

    @property
    def var_(self) -> Any:
        """Variance of each feature; its mean square for sparse rows."""
        return self._attribute()[0].variances

    @property
    def scale_(self) -> Any:
        """What each feature is divided by: its deviation (1 if constant), or its share of a change of two values."""
        return self._attribute()[0].divisors

    @property
    def count_(self) -> Any:
        """Sum of the weights of all rows."""
        return self._attribute()[0].count

    @property
    def n_features_in_(self) -> int:
        """Number of features."""
        return self._attribute()[0].n_features

    @property
    def feature_names_in_(self) -> Any:
        """Names of the columns, if a data frame came first."""
        if self._attribute()[1] is None:
            raise AttributeError("feature_names_in_ exists only after a data frame.")
        return np.array(self._attribute()[1], dtype=object)

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> Array:
        """The names that came in: scaling keeps the columns."""
        scaler, names = self._fitted()
        if input_features is not None:
            return np.asarray(input_features, dtype=object)
        return np.array(names or [f"x{j}" for j in range(scaler.n_features)], dtype=object)

    def __sklearn_tags__(self):
        return self._tags(sparse=True)


def _like(X, rows):
    """Scaled rows as what X is: sparse ones as a matrix of its class."""
    if not isinstance(rows, Rows):
        return rows
    return type(X.tocsr())((rows.data, rows.indices.copy(), rows.indptr.copy()), shape=rows.shape)


def as_memory(value, owner, name="scale", expected="True, False or a RunningScaler"):
    """The memory of the scaler that a user asks for: False, True or a RunningScaler; 0 for none."""
    if isinstance(value, (bool, np.bool_)):
        return 1.0 if value else 0.0
    if not isinstance(value, RunningScaler):
        raise validation.bad_parameter(owner, name, expected, value)
    return validation.check_share(value, "memory")


def as_target_scaling(value, owner):
    """The same for targets, which "log" may be said of."""
    if isinstance(value, str) and value == "log":
        return value
    return as_memory(value, owner, "scale_target", 'True, False, a RunningScaler or "log"')


def in_words(memory):
    """What a user has asked for who gets a scaler with this memory, 0 for none."""
    return "False" if not memory else "True" if memory == 1 else f"RunningScaler(memory={memory!r})"
