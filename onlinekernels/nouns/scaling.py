"""Scaling online: features to mean 0 and deviation 1, by what the stream has shown so far."""
import numpy as np

from onlinekernels import validation
from onlinekernels._core.errors import row_error
from onlinekernels._core.run import scaling as core
from onlinekernels._core.points.sparse import Rows
from onlinekernels._core.formulas.vecmath import all_finite
from onlinekernels.nouns.transforming import RunningTransformer

__all__ = ["RunningScaler"]


class RunningScaler(RunningTransformer):
    """Scale each row by the mean and deviation of all rows up to and including it.

    Nothing from the future is used, so a model behind it can be judged by test-then-train. `partial_fit` of n
    rows gives what n calls of one row give, bit for bit; up to rounding for sparse rows.

    A feature that has shown two values only, such as a column of a one-hot encoding, is centred and a change of it counts
    as the square root of 2, however rare it is: as far as two values of a scaled number are apart, in the root mean square.
    From its third value on it is scaled like others.

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

    def __init__(self, memory=1.0):
        self.memory = memory

    # mean (None for sparse rows), sum of squares about it, count, values shown, names of features; never changed, only
    # replaced. The values are two rows: NaN in both for a feature that has shown more than two; see the core.
    _state = None

    def fit(self, X, y=None):
        """Forget everything, then take in X; return self."""
        fresh = RunningScaler(self.memory)
        fresh._advance(X)
        self._state = fresh._state
        return self

    def partial_fit(self, X, y=None):
        """Take in some more rows; return self."""
        self._advance(X)
        return self

    def transform(self, X):
        """X scaled by what is known now."""
        with self._turn:
            self._fitted()
            rows = self._checked(X)
            out = self.scaled(rows)
        return self._shown(X, self._like(X, rows, out.data) if isinstance(rows, Rows) else out)

    def scaled(self, rows):
        """Rows, which are checked already, scaled by what is known now."""
        mean, square, count, shown, _ = self._fitted()
        if mean is None:
            values = np.empty(len(rows.data))
            core.scale_sparse(rows, square, shown, count, float(self.memory), values)
            return self._like(rows, rows, values)
        rows = rows.astype(float, copy=False)
        out = np.empty_like(rows)
        core.scale(rows, mean, square, shown, count, float(self.memory), out)
        return out

    def progressive(self, X):
        """Take in the rows one after another, and return each scaled by what was known with it."""
        return self._shown(X, self._advance(X, wanted=True))

    def learn_one(self, x):
        """Take in one row; return self."""
        validation.refuse_masked(x, "x")
        self._advance(x if validation.is_sparse(x) else np.asarray(x, dtype=float)[None])
        return self

    def _advance(self, X, wanted=False):
        """Take in rows; return them scaled, if that is wanted."""
        with self._turn.alone:
            self._check_memory()
            rows = self._checked(X)
            names = validation.feature_names(X) if self._state is None else self._state[4]
            self._state, out = self._after(rows, names, wanted)
        return self._like(X, rows, out) if wanted and isinstance(rows, Rows) else out

    def advanced(self, rows):
        """(a scaler that has seen these rows as well, the rows as it scales them); rows are checked already."""
        fresh = RunningScaler(self.memory)
        fresh._state, out = self._after(rows, None, True)
        return fresh, self._like(rows, rows, out) if isinstance(rows, Rows) else out

    def _after(self, rows, names, wanted):
        """(state after these rows, what they become)."""
        mean, square, count, shown, out = self._moved(rows, wanted)
        if not self._is_finite(mean, square):
            what = "is too large to scale: the variance of a feature overflows. Expected values below 1e150."
            raise row_error(ValueError, self._first_too_large(rows), what)
        return (mean, square, count, shown, names), out

    def _moved(self, rows, wanted):
        """(mean, sum of squares, count, values shown, scaled rows) after these rows, finite or not."""
        sparse, size = isinstance(rows, Rows), rows.shape[1]
        if self._state is None:
            mean, square, count, shown = None if sparse else np.zeros(size), np.zeros(size), 0.0, np.zeros((2, size))
        else:
            mean, square, count, shown, _ = self._state
            mean, square, shown = None if sparse else mean.copy(), square.copy(), shown.copy()
        out = np.empty(rows.data.shape if sparse else rows.shape) if wanted else None
        if sparse:
            count = core.advance_sparse(rows, square, shown, count, float(self.memory), out)
        else:
            count = core.advance(rows, mean, square, shown, count, float(self.memory), out)
        return mean, square, count, shown, out

    @staticmethod
    def _is_finite(mean, square):
        return all_finite(square) and (mean is None or all_finite(mean))

    def _first_too_large(self, rows):
        """Index of the row to blame for a variance that overflows.

        Bisection finds where it does: from then on it stays so. The largest row up to there is the one, since
        the first row has no variance yet, however large it is.
        """
        fine, too_many = 0, rows.shape[0]
        while too_many - fine > 1:
            middle = (fine + too_many) // 2
            mean, square, *_ = self._moved(rows[:middle], False)
            fine, too_many = (middle, too_many) if self._is_finite(mean, square) else (fine, middle)
        return fine if isinstance(rows, Rows) else int(np.abs(rows[: fine + 1]).max(axis=1).argmax())

    @staticmethod
    def _like(X, rows, values):
        """Sparse rows with other values, as what X is."""
        if isinstance(X, Rows):
            return Rows(rows.indptr, rows.indices, values, rows.n_features)
        return type(X.tocsr())((values, rows.indices.copy(), rows.indptr.copy()), shape=rows.shape)

    def _checked(self, X):
        owner, state = type(self).__name__, self._state
        sparse = validation.is_sparse(X) or isinstance(X, Rows) if state is None else state[0] is None
        n_features = None if state is None else len(state[1])
        if sparse:
            if not (validation.is_sparse(X) or isinstance(X, Rows)):
                raise TypeError("This RunningScaler has begun with sparse rows; expected a sparse matrix for X.")
            return validation.check_sparse(X, n_features=n_features, owner=owner)
        if state is not None:
            validation.check_feature_names(X, state[4], owner)
        return validation.check_points(X, n_features=n_features, dtype=np.dtype(float), owner=owner)

    def _check_memory(self):
        validation.check_share(self, "memory")

    @property
    def mean_(self):
        """Mean of each feature; 0 for sparse rows, which are not centred."""
        mean, square, *_ = self._attribute()
        return np.zeros(len(square)) if mean is None else mean.copy()

    @property
    def var_(self):
        """Variance of each feature; its mean square for sparse rows."""
        _, square, count, *_ = self._attribute()
        return square / count

    @property
    def scale_(self):
        """What each feature is divided by: its deviation (1 if it has been constant), or its share of a change of two values."""
        mean, square, count, shown, _ = self._attribute()
        return core.divisors(mean, square, shown, count, float(self.memory))

    @property
    def count_(self):
        """Sum of the weights of all rows."""
        return self._attribute()[2]

    @property
    def n_features_in_(self):
        """Number of features."""
        return len(self._attribute()[1])

    @property
    def feature_names_in_(self):
        """Names of the columns, if a data frame came first."""
        if self._attribute()[4] is None:
            raise AttributeError("feature_names_in_ exists only after a data frame.")
        return np.array(self._attribute()[4], dtype=object)

    def transform_column(self, j, values):
        """Values of feature j, scaled."""
        mean, square, count, shown, _ = self._fitted()
        values, column = np.ascontiguousarray(values, dtype=float)[:, None], slice(j, j + 1)
        out = np.empty_like(values)
        core.scale(values, mean[column], square[column], shown[:, column].copy(), count, float(self.memory), out)
        return out[:, 0]

    def widened(self, extra, fill):
        """A scaler with more features, which had the value `fill` in all rows so far; rows must not be sparse."""
        mean, square, count, shown, _ = self._fitted()
        wider = RunningScaler(self.memory)
        shown = np.hstack([shown, np.full((2, extra), float(fill))])
        wider._state = np.append(mean, [fill] * extra), np.append(square, [0.0] * extra), count, shown, None
        return wider

    def to_dict(self):
        """What is learned, as plain numbers and lists; None before the first row."""
        if self._state is None:
            return {"count": 0.0, "mean": None, "square": [], "few": [], "first": [], "second": []}
        mean, square, count, shown, _ = self._state
        return {
            "count": count,
            "mean": None if mean is None else mean.tolist(),
            "square": square.tolist(),
            # whether a feature has shown at most two values, and these; 0 for others
            "few": (shown[0] == shown[0]).tolist(),
            **{name: np.where(row == row, row, 0.0).tolist() for name, row in zip(("first", "second"), shown)},
        }

    def restore(self, learned, n_features):
        """Continue from what `to_dict` gave; ValueError if it makes no sense."""
        square, count = np.asarray(learned["square"], dtype=float), np.asarray(learned["count"], dtype=float)
        mean = None if learned["mean"] is None else np.asarray(learned["mean"], dtype=float)
        if count == 0 and len(square) == 0:
            return
        shapes = square.shape == (n_features,) and count.shape == () and (mean is None or mean.shape == square.shape)
        if not shapes or not (np.isfinite(square).all() and (square >= 0).all()):
            raise ValueError("the means and variances do not fit the features")
        if not (np.isfinite(count) and count >= 1 and (mean is None or np.isfinite(mean).all())):
            raise ValueError("the scaler's count and means are not numbers")
        self._state = (mean, square, float(count), self._restored_values(learned, n_features, mean is None), None)

    @staticmethod
    def _restored_values(learned, n_features, sparse):
        """The values that features have shown."""
        few, shown = np.asarray(learned["few"]), np.array([learned["first"], learned["second"]], dtype=float)
        if few.dtype != bool or few.shape != (n_features,) or shown.shape != (2, n_features) or not np.isfinite(shown).all():
            raise ValueError("the values that the scaler has seen do not fit the features")
        if sparse and shown[0].any():
            raise ValueError("the values that the scaler has seen do not fit sparse rows")
        return np.where(few, shown, np.nan)

    def get_feature_names_out(self, input_features=None):
        """The names that came in: scaling keeps the columns."""
        state = self._fitted()
        if input_features is not None:
            return np.asarray(input_features, dtype=object)
        return np.array(state[4] or [f"x{j}" for j in range(len(state[1]))], dtype=object)

    def __sklearn_tags__(self):
        """What scikit-learn wants to know; it is imported only when it asks."""
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=False),
            transformer_tags=TransformerTags(),
            input_tags=InputTags(sparse=True),
        )


def as_memory(value, owner, name="scale"):
    """The memory of the scaler that a user asks for: False, True or a RunningScaler; 0 for none."""
    if isinstance(value, (bool, np.bool_)):
        return 1.0 if value else 0.0
    if not isinstance(value, RunningScaler):
        raise validation.bad_parameter(owner, name, "True, False or a RunningScaler", value)
    value._check_memory()
    return float(value.memory)


def as_target_scaling(value, owner):
    """The same for targets, which "log" may be said of."""
    if isinstance(value, str) and value == "log":
        return value
    if not isinstance(value, (bool, np.bool_, RunningScaler)):
        raise validation.bad_parameter(owner, "scale_target", 'True, False, a RunningScaler or "log"', value)
    return as_memory(value, owner, "scale_target")


def in_words(memory):
    """What a user has asked for who gets a scaler with this memory, 0 for none."""
    return "False" if not memory else "True" if memory == 1 else f"RunningScaler(memory={memory!r})"
