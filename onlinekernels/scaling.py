"""Scaling online: features to mean 0 and deviation 1, by what the stream has shown so far."""
import numpy as np

from onlinekernels import validation
from onlinekernels._core import scaling as core
from onlinekernels.params import Parameterized

__all__ = ["RunningScaler"]


class RunningScaler(Parameterized):
    """Scale each row by the mean and deviation of all rows up to and including it.

    Nothing from the future is used, so a model behind it can be judged by test-then-train. `partial_fit` of n
    rows gives what n calls of one row give, bit for bit.

    Parameters
    ----------
    memory : float
        Weight of a row that is one example old, in (0, 1]. 1 remembers all rows alike; 0.999 remembers about
        the last thousand and follows a stream that changes.

    Attributes
    ----------
    mean_, var_ : arrays of shape (n_features,)
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
    """

    def __init__(self, memory=1.0):
        self.memory = memory

    _state = None  # mean, sum of squared deviations, count, names of features

    def fit(self, X, y=None):
        """Forget everything, then take in X; return self."""
        names = validation.feature_names(X)
        X = self._checked(X)
        self._check_memory()
        self._state = (np.zeros(X.shape[1]), np.zeros(X.shape[1]), 0.0, names)
        return self._advance(X)

    def partial_fit(self, X, y=None):
        """Take in some more rows; return self."""
        if self._state is None:
            return self.fit(X)
        self._check_memory()
        return self._advance(self._checked(X))

    def transform(self, X):
        """X scaled by what is known now."""
        mean, square, count, _ = self._fitted()
        X = self._checked(X)
        out = np.empty_like(X)
        core.scale(X, mean, square, count, out)
        return out

    def fit_transform(self, X, y=None):
        """`fit`, then `transform`."""
        return self.fit(X).transform(X)

    def progressive(self, X):
        """Take in the rows one after another, and return each scaled by what was known with it."""
        checked = self._checked(X)
        self._check_memory()
        if self._state is None:
            names = validation.feature_names(X)
            self._state = (np.zeros(checked.shape[1]), np.zeros(checked.shape[1]), 0.0, names)
        out = np.empty_like(checked)
        self._advance(checked, out)
        return out

    def learn_one(self, x):
        """Take in one row; return self."""
        self.progressive(np.asarray(x, dtype=float)[None])
        return self

    def transform_column(self, j, values):
        """Values of feature j, scaled."""
        mean, square, count, _ = self._fitted()
        out = np.empty((len(values), 1))
        core.scale(np.ascontiguousarray(values, dtype=float)[:, None], mean[j : j + 1], square[j : j + 1], count, out)
        return out[:, 0]

    def to_dict(self):
        """What is learned, as plain numbers and lists; None before the first row."""
        if self._state is None:
            return {"count": 0.0, "mean": [], "square": []}
        mean, square, count, _ = self._state
        return {"count": count, "mean": mean.tolist(), "square": square.tolist()}

    def restore(self, learned, n_features):
        """Continue from what `to_dict` gave; ValueError if it makes no sense."""
        mean, square, count = (np.asarray(learned[name], dtype=float) for name in ("mean", "square", "count"))
        if count == 0 and len(mean) == 0:
            return
        shapes = mean.shape == square.shape == (n_features,) and count.shape == ()
        if not shapes or not (np.isfinite(mean).all() and np.isfinite(square).all() and (square >= 0).all()):
            raise ValueError("the means and variances do not fit the features")
        if not (np.isfinite(count) and count >= 1):
            raise ValueError("the scaler's count is not a number of rows")
        self._state = (mean, square, float(count), None)

    def _advance(self, X, out=None):
        mean, square, count, names = self._state
        mean, square = mean.copy(), square.copy()
        with np.errstate(over="ignore", invalid="ignore"):
            count = core.advance(X, mean, square, count, float(self.memory), out)
        if not (np.isfinite(mean).all() and np.isfinite(square).all()):
            raise ValueError("X is too large to scale: the variance of a feature overflows. Expected values below 1e150.")
        self._state = (mean, square, count, names)
        return self

    def _checked(self, X):
        n_features = None if self._state is None else len(self._state[0])
        if self._state is not None:
            validation.check_feature_names(X, self._state[3], type(self).__name__)
        return validation.check_points(X, n_features=n_features, dtype=np.dtype(float), owner=type(self).__name__)

    def _check_memory(self):
        validation.check_real(self, "memory", "a number in (0, 1]", lambda value: 0 < value <= 1)

    def _fitted(self):
        if self._state is None:
            raise validation.not_fitted(self)
        return self._state

    @property
    def mean_(self):
        """Mean of each feature."""
        return self._attribute()[0].copy()

    @property
    def var_(self):
        """Variance of each feature."""
        _, square, count, _ = self._attribute()
        return square / count

    @property
    def count_(self):
        """Sum of the weights of all rows."""
        return self._attribute()[2]

    @property
    def n_features_in_(self):
        """Number of features."""
        return len(self._attribute()[0])

    @property
    def feature_names_in_(self):
        """Names of the columns, if a data frame came first."""
        if self._attribute()[3] is None:
            raise AttributeError("feature_names_in_ exists only after a data frame.")
        return np.array(self._attribute()[3], dtype=object)

    def _attribute(self):
        if self._state is None:
            raise AttributeError("This RunningScaler instance is not fitted yet.")
        return self._state

    def get_feature_names_out(self, input_features=None):
        """The names that came in: scaling keeps the columns."""
        state = self._fitted()
        if input_features is not None:
            return np.asarray(input_features, dtype=object)
        return np.array(state[3] or [f"x{j}" for j in range(len(state[0]))], dtype=object)

    def __sklearn_tags__(self):
        """What scikit-learn wants to know; it is imported only when it asks."""
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=False),
            transformer_tags=TransformerTags(),
            input_tags=InputTags(),
        )

    def __sklearn_is_fitted__(self):
        return self._state is not None

    def __getstate__(self):
        return {**self.get_params(deep=False), "_state": self._state}

    def __setstate__(self, state):
        self.__dict__.update(state)


def as_memory(value, owner):
    """The memory of the scaler that a user asks for: False, True or a RunningScaler; 0 for none."""
    if isinstance(value, (bool, np.bool_)):
        return 1.0 if value else 0.0
    if not isinstance(value, RunningScaler):
        raise validation.bad_parameter(owner, "scale", "True, False or a RunningScaler", value)
    value._check_memory()
    return float(value.memory)
