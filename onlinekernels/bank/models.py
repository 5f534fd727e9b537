"""The bank itself: calls are checked, shared out over threads, and answered."""
from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from onlinekernels.base import validation
from onlinekernels._core.bank import Models
from onlinekernels._core.formulas.vectorized import all_finite
from onlinekernels._core.engine import REASONS
from onlinekernels._core.lock import Turn
from onlinekernels.bank import files
from onlinekernels.bank.collection import Collection
from onlinekernels.bank.plan import BankPlan
from onlinekernels.bank.rows import LANES, as_keys, checked_mask, checked_numbers, pieces, targets
from onlinekernels.base.labelsets import BinaryLabels
from onlinekernels.base.params import Parameterized

if TYPE_CHECKING:
    from onlinekernels.annotations import Any, Array, ArrayLike, Budget, Examples, Kernel, Loss, Path, Self, Step

__all__ = ["Bank"]

MOST_THREADS = 1024


class Bank(Collection, Parameterized):
    """Many independent small models of one kind, which learn side by side.

    Each model is what `SILK` or `NORMA` with the same parameters would be, to rounding; a bank of a hundred thousand
    is more than a hundred times as fast as as many objects. Models have numbers (``n_models=``), or keys that appear
    as they come: the model of a new key starts at f = 0.

    Parameters
    ----------
    n_features : int
        Length of a row; at least 1.
    loss : Loss, str or None
        A loss of one output: two classes, regression or novelty. None is `Hinge()`.
    kernel : Gaussian, Linear, their names, or None
        None is a `Gaussian` whose width follows the number of features d: 0.3 sqrt(d) for classes, 0.5 sqrt(d) for
        numbers, sqrt(d) for novelty. That is for features of the size of 1: all models share it, whatever their rows are.
    n_models : int or None
        So many models, numbered from 0. None: models have keys.
    rule : "silk" or "norma"
        Implicit steps, as `SILK` makes them, or gradient steps, as `NORMA` does.
    budget : int, Recent or Smallest
        At most 64 terms for each model. An integer means `Smallest` for "silk" and `Recent` for "norma".
    step : float, Step or None
        How far an example moves its model; not `MetaDescent`. None is 1 for "silk" and 0.1 for "norma".
    regularization : float or None
        How fast old coefficients decay; at least 0. None is, for "silk", 3e-3 for classes, 1e-3 for numbers and nu / 200
        for `NuNovelty`, and 1e-3 for "norma".
    penalty : float or None
        For "silk", how much a loss counts against staying where the function is; positive. None is 1. "norma" has none.
    offset : bool or None
        Learn an offset beside each function; it is not regularized. None is True for a `Linear` kernel, which otherwise goes
        through 0.
    threads : int
        Threads that share the models of a call; from 1 to 1024.

    Attributes
    ----------
    keys_ : list
        Keys of the models, in the order of their appearance; their numbers for ``n_models=``.
    t_, n_terms_, intercept_, margin_ or width_ : array of shape (n_models,)
        Of each model, in the order of `keys_`.
    classes_
        The two labels, which all models share.

    Notes
    -----
    Parameters are read when the bank first learns, `threads` by every call. The first X decides about the precision: with
    float32, points, coefficients and kernel values are float32, and twice as many models fit through the processor.

    An error or Ctrl-C stops a call before its first row or, if it is a long one, between two pieces of it: the exception's
    ``rows_learned`` says how many rows were learned, and the bank goes on from there.

    Examples
    --------
    One detector per sensor. The second sensor moves on the third day:

    >>> from onlinekernels import Bank, Gaussian
    >>> bank = Bank(1, "novelty", Gaussian(1.0))
    >>> for day in ([20.0], [5.0]), ([20.1], [5.2]), ([20.2], [9.0]):
    ...     bank.progressive(day, keys=["hall", "cellar"]).round(1)
    array([0., 0.])
    array([1., 1.])
    array([1., 0.])
    >>> bank.model("cellar").support_vectors_.ravel()
    array([5. , 5.2, 9. ])
    """

    def __init__(self, n_features: int, loss: Loss | str | None = None, kernel: Kernel | str | None = None, *,
                 n_models: int | None = None, rule: str = "silk", budget: Budget | int = 20,
                 step: float | Step | None = None, regularization: float | None = None, penalty: float | None = None,
                 offset: bool | None = None, threads: int = 1) -> None:
        self.n_features = n_features
        self.loss = loss
        self.kernel = kernel
        self.n_models = n_models
        self.rule = rule
        self.budget = budget
        self.step = step
        self.regularization = regularization
        self.penalty = penalty
        self.offset = offset
        self.threads = threads
        self._begin()

    def _begin(self):
        self._turn = Turn()
        self._plan = self._models = None  # the plan counts once there are models

    @property
    def _index(self):
        """Number of each key's model."""
        return {} if self._models is None else self._models.index

    @property
    def _labels(self):
        return None if self._models is None else self._models.labels

    # ---- Learning -----------------------------------------------------------------------------

    def partial_fit(self, X: Examples, y: Any = None, keys: Any = None, active: Any = None, *,
                    classes: Any = None) -> Self:
        """Learn one row of X for each model, or rows with keys; return self.

        Parameters
        ----------
        X : array of shape (n, n_features)
            Without keys, row m is for model m and n is `n_models`.
        y : labels or targets of the rows; none for novelty losses
        keys : n hashables, or with ``n_models=`` numbers of models
            Whose example each row is. Rows of one key are learned in their order.
        active : n booleans
            Rows that count; the others are not even looked at.
        classes : both labels, needed at most on the first call
        """
        with self._turn.alone:
            self._visit(X, y, keys, active, classes, learning=True)
        return self

    def progressive(self, X: Examples, y: Any = None, keys: Any = None, active: ArrayLike | None = None, *,
                    classes: Any = None) -> Array:
        """Test, then train: learn like `partial_fit` and return the scores just before each update.

        Returns
        -------
        scores : array of shape (n,)
            f(x) + offset of the row's model, for every task; NaN for rows that are not active.
        """
        with self._turn.alone:
            return self._visit(X, y, keys, active, classes, learning=True)

    def _visit(self, X, y, keys, active, classes, learning):
        """Scores of rows, which are learned if `learning`; all that can be refused is refused here."""
        models = self._models
        if models is None:
            plan, dtype = self._checked_plan(), None
        else:
            plan, dtype = self._plan, models.dtype
        threads = self._checked_threads()
        X = validation.check_points(X, n_features=plan.n_features, dtype=dtype, finite=active is None, owner="Bank")
        n = len(X)
        if active is not None:
            active = checked_mask(active, n)
            if not all_finite(X):
                validation.check_points(np.where(active[:, None], X, 0))
        numbers, newcomers = self._numbers(plan, keys, n, active)
        if learning:
            y, labels = targets(plan, self._labels, y, n, active, classes)
            models = models or Models(dtype=X.dtype, **plan.core())
            return self._run(plan, models, X, y, labels, numbers, newcomers, active, threads)
        if models is None:
            raise validation.not_fitted(self)
        return self._run(plan, models, X, None, None, numbers, None, active, threads)

    def _run(self, plan, models, X, y, labels, numbers, newcomers, active, threads):
        """Scores of checked rows, which are learned unless newcomers is None.

        An error or Ctrl-C stops before the first piece or between two; the exception says how many rows were learned.
        """
        learning, known, visited = newcomers is not None, models.n, models.visited
        n = plan.n_models or known + len(newcomers or ())
        scores = np.empty(len(X)) if numbers is None and active is None else np.full(len(X), np.nan)
        if numbers is not None:
            if active is not None:
                numbers, active = np.where(active, numbers, -1), None
            scores[numbers >= n] = 0.0  # a key that has not appeared scores like a new model
        several = len(X) > plan.rows_at_a_time
        how = {"threads": threads, "learning": learning, "labels": labels, "keys": newcomers}
        how["active"] = None if active is None else active.view(np.uint8)
        if several and learning and numbers is not None:
            how["failed"] = np.zeros(-(-n // LANES) * LANES, dtype=np.uint8)
        outcomes = []
        try:
            if learning:
                models.reserve(n)
            for rows, groups, (first, last) in pieces(len(X), numbers, n, plan.rows_at_a_time):
                if several and newcomers:  # a key appears with its first row
                    n = max(models.n, 1 + int(numbers[rows].max()))
                    how["keys"] = dict(islice(newcomers.items(), models.n - known, n - known))
                length = rows.stop - rows.start
                outcomes.append(models.visit(X, y, scores, groups=groups, first=first, last=last, rows=length, n=n, **how))
        except BaseException as error:
            if learning:
                error.rows_learned = models.visited - visited
            raise
        finally:
            if learning and models.visited:  # a first call that has learned nothing was none
                self._plan, self._models = plan, models
        raise_failure(outcomes, learning)
        return scores

    # ---- Predicting ---------------------------------------------------------------------------

    def scores(self, X: Examples, keys: Any = None, active: ArrayLike | None = None) -> Array:
        """f(x) + offset of the rows' models, as `progressive` gives it, without learning; 0 for a key without a model."""
        with self._turn.shared:
            return self._visit(X, None, keys, active, None, learning=False)

    def predict(self, X: Examples, keys: Any = None, active: ArrayLike | None = None) -> Array:
        """Labels, targets, or +1 (ordinary) and -1 (novel) for the rows of X.

        Rows that are not active get None, NaN or 0.
        """
        with self._turn.shared:
            scores = self._visit(X, None, keys, active, None, learning=False)
            task = self._plan.loss.task
            if task == "regression":
                return scores
            if task == "novelty":
                answers = self._ordinary(scores, keys)
                return np.where(np.isnan(scores), 0, np.where(answers, 1, -1))
            labels = self._labels.decode(scores[:, None])
            if active is not None:
                labels = labels.astype(object)
                labels[np.isnan(scores)] = None
            return labels

    def _ordinary(self, scores, keys):
        """Whether scores reach their model's margin; implicit steps leave f there up to rounding."""
        rho = self._models.values("scalar")
        if keys is not None:
            numbers = self._numbers(self._plan, keys, len(scores), None)[0]
            rho = np.append(rho, self._plan.loss.core()[1])[np.minimum(numbers, len(rho))]
        rounding = 64 * np.finfo(self._models.dtype).eps * np.maximum(np.abs(scores), np.abs(rho))
        return scores >= rho - rounding

    # ---- Checks -------------------------------------------------------------------------------

    def _checked_plan(self):
        validation.check_integer(self, "n_features", 1)
        if self.n_models is not None:
            validation.check_integer(self, "n_models", 1)
        self._checked_threads()
        return BankPlan(self)

    def _checked_threads(self):
        return validation.check_integer(self, "threads", 1, MOST_THREADS)

    def _numbers(self, plan, keys, n, active):
        """(number of each row's model, keys that are new with their numbers); None without keys: row m is model m's."""
        if keys is None:
            if plan.n_models is None:
                raise ValueError("This bank has a model for each key: pass keys=..., or give n_models= when you make it.")
            if n != plan.n_models:
                raise ValueError(f"X must have a row for each of the {plan.n_models} models. Got {n} rows instead; pass keys=...")
            return None, {}
        if plan.n_models is not None:
            return checked_numbers(keys, n, plan.n_models), {}
        keys, index = as_keys(keys, n), self._index
        try:
            known = list(map(index.get, keys))
            newcomers = {}
            for i, number in enumerate(known):
                if number is None:
                    if active is not None and not active[i]:
                        known[i] = 0
                        continue
                    known[i] = newcomers.setdefault(keys[i], len(index) + len(newcomers))
        except TypeError as error:
            raise TypeError(f"keys must be hashable, such as numbers, strings or tuples: {error}.") from error
        if any(key != key for key in newcomers):
            raise ValueError("keys contains NaN, which is not equal to itself and cannot name a model.")
        return np.array(known, dtype=np.int64), newcomers

    # ---- Files and pickles --------------------------------------------------------------------

    def save(self, path: Path) -> None:
        """Write the bank to one .npz file that `Bank.load` continues from, bit for bit. Keys must be numbers or strings."""
        self._checked_threads()  # what `load` refuses is not written
        with self._turn:
            files.save(self, path)

    @staticmethod
    def load(path: Path) -> Bank:
        """Read a bank that `save` wrote."""
        header, learned = files.read(path)
        try:
            bank = Bank(**header)
            bank._checked_threads()
            if learned is not None:
                bank._restore(learned)
        except (KeyError, TypeError, AttributeError, ValueError, OverflowError, MemoryError) as error:
            raise ValueError(f"{path} cannot be loaded: {error}.") from error
        return bank

    def _to_dict(self):
        """What is learned, as plain values and arrays; None if nothing is."""
        if self._models is None:
            return None
        return {
            "params": self._plan.params,
            "dtype": self._models.dtype.str[1:],
            "keys": list(self._index) if self._plan.n_models is None else None,
            "labels": None if self._labels is None else self._labels.state(),
            "models": self._models.gather(np.arange(self._models.n)),
        }

    def _restore(self, learned):
        plan = Bank(**learned["params"])._checked_plan()
        if learned["dtype"] not in ("f4", "f8"):
            raise ValueError(f"points cannot be of type {learned['dtype']!r}")
        keys = learned["keys"]
        if (keys is None) != (plan.n_models is not None) or (learned["labels"] is None) != (plan.loss.task != "binary"):
            raise ValueError("the keys or labels do not fit the parameters")
        n = plan.n_models if keys is None else len(keys)
        index = {} if keys is None else dict(zip(keys, range(n)))
        if keys is not None and len(index) != n:
            raise ValueError("two models have the same key")
        models = Models(dtype=learned["dtype"], **plan.core())
        models.check_state(learned["models"], n)
        models.admit(learned["models"], n, index)
        models.labels = None if learned["labels"] is None else BinaryLabels.restore(learned["labels"])
        self._plan, self._models = plan, models

    def __getstate__(self):
        with self._turn:
            return {"params": self.get_params(deep=False), "learned": self._to_dict()}

    def __setstate__(self, state):
        self.__init__(**state["params"])
        if state["learned"] is not None:
            self._restore(state["learned"])

    def _check(self):
        """Assert every invariant."""
        with self._turn:
            if self._models is None:
                return
            self._models._check()
            assert self._models.n == (self._plan.n_models or len(self._index)), "models and their names do not fit"
            assert (self._labels is None) == (self._plan.loss.task != "binary"), "labels and loss do not fit"


def raise_failure(outcomes, learning):
    """FloatingPointError if there is a row that cannot be learned, or has no score."""
    row, reason = min(((row, reason) for _, row, reason in outcomes if row >= 0), default=(-1, 0))
    if row < 0:
        return
    learned = sum(count for count, _, _ in outcomes)
    error = FloatingPointError(
        f"Row {row} of X cannot be learned: {REASONS[reason]}. Its model stopped there; the other rows, {learned} "
        "in all, were learned." if learning else f"Row {row} of X has no finite score: {REASONS[reason]}."
    )
    error.rows_learned = learned if learning else 0
    raise error
