"""Banks: many small models of one kind, one per pixel, sensor or user, that learn in one call."""
from __future__ import annotations

import copy
import os
from collections import Counter
from itertools import islice
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING

import numpy as np

from onlinekernels._core.bank import LANES_CODES, Models
from onlinekernels._core.formulas.vectorized import all_finite
from onlinekernels._core.lock import ReadWriteLock
from onlinekernels._core.engine import REASONS
from onlinekernels.algorithms import NORMA, SILK
from onlinekernels.algorithms.implicit import Implicit
from onlinekernels.base import defaults, files, validation
from onlinekernels.base.labelsets import BinaryLabels
from onlinekernels.base.labelvalues import label_column
from onlinekernels.base.params import Parameterized, same_parameters
from onlinekernels.base.state import State
from onlinekernels.base.validation import bad_parameter
from onlinekernels.budgets import Recent, Smallest
from onlinekernels.kernels import Gaussian, Linear
from onlinekernels.losses.base import LOG

if TYPE_CHECKING:
    from onlinekernels.annotations import Any, Array, ArrayLike, Budget, Examples, Kernel, Loss, Path, Self, Step

__all__ = ["Bank"]

MOST_THREADS = 1024
RULES = {"silk": SILK, "norma": NORMA}
LANES, MOST_TERMS = LANES_CODES["lanes"], LANES_CODES["most slots"]
PIECE = 2**28  # features of terms that rows are compared with between two looks at Ctrl-C: less than a second
ATTRIBUTES = {"t_": "t", "intercept_": "offset", "margin_": "scalar", "width_": "scalar"}  # numbers of all models


@dataclass(eq=False, repr=False)
class Bank(Parameterized):
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
        None is a `Gaussian` of width 0.3 sqrt(d) for classes, 0.5 sqrt(d) for numbers and sqrt(d) for novelty, where d
        is the number of features: for features of the size of 1, as all models share it.
    n_models : int or None
        Number of models, which are numbered from 0. None: models have keys.
    rule : "silk" or "norma"
        Implicit steps, as `SILK` makes them, or gradient steps, as `NORMA` does.
    budget : int, Recent or Smallest
        At most 64 terms for each model. An integer means `Smallest` for "silk" and `Recent` for "norma".
    step : float, Step or None
        How far an example moves its model; not `MetaDescent`. None is 1 for "silk" and 0.1 for "norma".
    regularization : float or None
        How fast old coefficients decay; at least 0. None is, for "silk", 3e-3 for classes, 1e-3 for numbers and nu /
        200 for `NuNovelty`, and 1e-3 for "norma".
    penalty : float or None
        For "silk", how much a loss counts against staying where the function is; positive. None is 1. "norma" has none.
    offset : bool or None
        Learn an offset beside each function, which is not regularized. None is True for a `Linear` kernel.
    threads : int
        Threads that share the models of a call; from 1 to 1024.

    Attributes
    ----------
    keys_ : list
        Keys of the models, in the order of their appearance; their numbers for ``n_models=``.
    t_, n_terms_, intercept_, margin_ or width_ : array of shape (n_models,)
        Of each model, in the order of `keys_`. All models share `classes_`, two labels.

    Notes
    -----
    Parameters are read when the bank first learns, `threads` by every call. The first X decides about the precision:
    with float32, points, coefficients and kernel values are float32, and twice as many models fit through the
    processor.

    An error or Ctrl-C stops a call before its first row or, if it is a long one, between two pieces of it: the
    exception's ``rows_learned`` says how many rows were learned, and the bank goes on from there.

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

    n_features: int
    loss: Loss | str | None = None
    kernel: Kernel | str | None = None
    _: KW_ONLY
    n_models: int | None = None
    rule: str = "silk"
    budget: Budget | int = 20
    step: float | Step | None = None
    regularization: float | None = None
    penalty: float | None = None
    offset: bool | None = None
    threads: int = 1

    def __post_init__(self) -> None:
        self._begin()

    def _begin(self):
        self._lock = ReadWriteLock()
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
        with self._lock.alone:
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
        with self._lock.alone:
            return self._visit(X, y, keys, active, classes, learning=True)

    def _visit(self, X, y, keys, active, classes, learning):
        """Scores of rows, which are learned if `learning`; what can be refused is refused before the first row.

        An error or Ctrl-C stops before the first piece or between two; the exception says how many rows were learned.
        """
        plan, models = self._plan, self._models
        if models is None:
            plan = self._checked_plan()
            if not learning:
                raise validation.not_fitted(self)
        threads, dtype = self._checked_threads(), None if models is None else models.dtype
        X = validation.check_points(X, n_features=plan.n_features, dtype=dtype, finite=active is None, owner="Bank")
        if active is not None:
            active = checked_mask(active, len(X))
            if not all_finite(X):
                validation.check_points(np.where(active[:, None], X, 0))
        numbers, new_keys = self._numbers(plan, keys, len(X), active)
        labels = None
        if learning:
            y, labels = targets(plan, self._labels, y, len(X), active, classes)
            models = models or Models(dtype=X.dtype, **plan.core())
        known, visited = models.n, models.visited
        n = plan.n_models or known + (len(new_keys) if learning else 0)
        scores = np.empty(len(X)) if numbers is None and active is None else np.full(len(X), np.nan)
        if numbers is not None:
            if active is not None:
                numbers, active = np.where(active, numbers, -1), None
            scores[numbers >= n] = 0.0  # a key that has not appeared scores like a new model
        several = len(X) > plan.rows_at_a_time
        how = {"threads": threads, "learning": learning, "labels": labels, "keys": new_keys if learning else None}
        how["active"] = None if active is None else active.view(np.uint8)
        if several and learning and numbers is not None:
            how["failed"] = np.zeros(-(-n // LANES) * LANES, dtype=np.uint8)
        outcomes = []
        try:
            if learning:
                models.reserve(n)
            for rows, groups, (first, last) in pieces(len(X), numbers, n, plan.rows_at_a_time):
                if several and how["keys"]:  # a key appears with its first row
                    n = max(models.n, 1 + int(numbers[rows].max()))
                    how["keys"] = dict(islice(new_keys.items(), models.n - known, n - known))
                outcomes.append(models.visit(X, y, scores, groups=groups, first=first, last=last,
                                             rows=rows.stop - rows.start, n=n, **how))
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
        """f(x) + offset of the rows' models, as in `progressive`, without learning; 0 for a key without a model."""
        with self._lock.shared:
            return self._visit(X, None, keys, active, None, learning=False)

    def predict(self, X: Examples, keys: Any = None, active: ArrayLike | None = None) -> Array:
        """Labels, targets, or +1 (ordinary) and -1 (novel) for the rows of X.

        Rows that are not active get None, NaN or 0.
        """
        with self._lock.shared:
            scores = self._visit(X, None, keys, active, None, learning=False)
            task = self._plan.loss.task
            if task == "regression":
                return scores
            if task == "novelty":
                return np.where(np.isnan(scores), 0, np.where(self._ordinary(scores, keys), 1, -1))
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

    # ---- The models one by one -----------------------------------------------------------------

    def __len__(self):
        with self._lock:
            return 0 if self._models is None else self._models.n

    def __contains__(self, key):
        with self._lock:
            return self._number(key) is not None

    def _number(self, key):
        """The number of a key's model, None if it has none."""
        if self._models is None:
            return None
        number = self._index.get(key) if self._plan.n_models is None else key
        return number if number is not None and 0 <= number < self._models.n else None

    def _gathered(self, keys):
        """What the models of some keys have learned."""
        numbers = [self._number(key) for key in keys]
        if None in numbers:
            raise KeyError(f"The bank has no model for {keys[numbers.index(None)]!r}.")
        return self._models.gather(numbers)

    def model(self, key: Any) -> Any:
        """The model of a key (a number with ``n_models=``) as an ordinary fitted model, which continues identically.

        It is a copy: what it learns from then on does not come back to the bank.
        """
        with self._lock:
            learned = {name: array[0] for name, array in self._gathered([key]).items()}
            model = self._plan.blank()
            if learned["t"] == 0:
                return model
            points, alpha = self._models.terms(self._number(key))
            start = points if len(points) else np.zeros((1, self._plan.n_features), dtype=self._models.dtype)
            state = State.first(self._plan.plan, start, self._labels)
            state.hypothesis.begin_from(np.array([learned["offset"]]), points, alpha[None])
            numbers = {name: float(learned[name]) for name in ("scalar", "gap", "gap_weight") if name in learned}
            state.hypothesis.restore({**state.hypothesis.state(), "t": int(learned["t"]), **numbers})
            model._state = state
            return model

    @property
    def keys_(self) -> Any:
        with self._lock:
            return list(self._index) if self._attribute().n_models is None else list(range(self._models.n))

    @property
    def n_terms_(self) -> int:
        with self._lock:
            self._attribute()
            return self._models.term_counts()

    @property
    def classes_(self) -> Any:
        with self._lock:
            self._attribute()
            if self._labels is None:
                raise AttributeError("classes_ exists for losses of two classes only.")
            return self._labels.classes.copy()

    def __getattr__(self, name):
        """Fitted numbers of all models."""
        if name not in ATTRIBUTES:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        with self._lock:
            loss = self._attribute().loss
            if ATTRIBUTES[name] == "scalar" and loss.scalar_name != name[:-1]:
                raise AttributeError(f"The loss {loss!r} has no {name[:-1]}.")
            return self._models.values(ATTRIBUTES[name])

    def _attribute(self):
        if self.__dict__.get("_models") is None:
            raise AttributeError("This Bank instance is not fitted yet.")
        return self._plan

    def take(self, keys: Any) -> Any:
        """A bank with copies of the models of some keys, which differ; for banks with keys."""
        keys = list(keys)
        with self._lock:
            if self._attribute().n_models is not None:
                raise ValueError("take is for banks with keys; this one has n_models=.")
            part, labels = (keys, self._gathered(keys)), self._labels
        for key in repeated(keys):
            raise ValueError(f"keys must differ. Got {key!r} twice.")
        return self._with_models([part], labels)

    @staticmethod
    def joined(banks: Any) -> Bank:
        """One bank with the models of several, whose parameters are the same and whose keys differ."""
        banks = list(banks)
        if not banks:
            raise ValueError("banks must hold at least one bank. Got none.")
        fitted = [bank for bank in banks if bank._models is not None]
        if not fitted:
            return copy.deepcopy(banks[0])
        first, parts, labels = fitted[0], [], fitted[0]._labels
        for bank in fitted:
            if bank._plan.n_models is not None:
                raise ValueError("Only banks with keys can be joined; this one has n_models=.")
            if not bank._plan.is_like(first._plan) or bank._models.dtype != first._models.dtype:
                raise ValueError(f"Banks to be joined must have the same parameters. Got {first!r} and {bank!r}.")
            with bank._lock:
                if bank._labels is not None and bank.classes_.tolist() != labels.classes.tolist():
                    what = f"Got {labels.classes} and {bank.classes_}."
                    raise ValueError(f"Banks to be joined must have the same classes. {what}")
                parts.append((bank.keys_, bank._models.gather(np.arange(bank._models.n))))
        for key in repeated(key for keys, _ in parts for key in keys):
            raise ValueError(f"Banks to be joined must not share keys. {key!r} is in two of them.")
        return first._with_models(parts, labels)

    def _with_models(self, parts, labels):
        """A bank like this one with other models: [(keys, their state)]."""
        bank = type(self)(**copy.deepcopy(self.get_params(deep=False)))
        models = Models(dtype=self._models.dtype, **self._plan.core())
        models.reserve(sum(len(keys) for keys, _ in parts))
        for keys, state in parts:
            models.admit(state, len(keys), dict(zip(keys, range(models.n, models.n + len(keys)))))
        models.labels = labels
        bank._plan, bank._models = self._plan, models
        return bank

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
                raise ValueError("This bank has a model for each key: pass keys=..., or give n_models= to the bank.")
            if n != plan.n_models:
                raise ValueError(f"X must have a row for each of the {plan.n_models} models. Got {n}; pass keys=...")
            return None, {}
        if plan.n_models is not None:
            return checked_numbers(keys, n, plan.n_models), {}
        keys, index = as_keys(keys, n), self._index
        try:
            known = list(map(index.get, keys))
            new_keys = {}
            for i, number in enumerate(known):
                if number is None:
                    is_left_out = active is not None and not active[i]
                    known[i] = 0 if is_left_out else new_keys.setdefault(keys[i], len(index) + len(new_keys))
        except TypeError as error:
            raise TypeError(f"keys must be hashable, such as numbers, strings or tuples: {error}.") from error
        if any(key != key for key in new_keys):
            raise ValueError("keys contains NaN, which is not equal to itself and cannot name a model.")
        return np.array(known, dtype=np.int64), new_keys

    # ---- Files and pickles --------------------------------------------------------------------

    def save(self, path: Path) -> None:
        """Write the bank to one .npz file, for `Bank.load` to continue bit for bit; keys are numbers or strings."""
        state = self.__getstate__()
        learned = state["learned"]
        arrays: dict[str, Array] = {}
        if learned is not None:
            if any(type(key) not in (bool, int, float, str) for key in learned["keys"] or ()):
                raise TypeError("Keys must be numbers or strings to be saved. Pickle the bank instead.")
            learned |= {part: files.encoded(learned[part], arrays) for part in ("params", "models")}
        header = {"algorithm": "Bank", "params": files.encoded(state["params"], arrays), "state": learned}
        files.write(os.fspath(path), header, arrays, Bank._of_file)

    @staticmethod
    def load(path: Path) -> Bank:
        """Read a bank that `save` wrote."""
        return files.read(path, Bank._of_file)

    @staticmethod
    def _of_file(header, arrays):
        """The bank of a file."""
        if header.get("algorithm") != "Bank":
            raise ValueError(f"it holds a {header.get('algorithm')}, not a bank; use onlinekernels.load")
        bank, learned = Bank(**files.decoded(header["params"], arrays)), header["state"]
        bank._checked_threads()
        if learned is not None:
            bank._restore({**learned, **{part: files.decoded(learned[part], arrays) for part in ("params", "models")}})
        return bank

    def __getstate__(self):
        """Parameters and what is learned, as plain values and arrays; None if nothing is."""
        with self._lock:
            return {"params": self.get_params(deep=False), "learned": None if self._models is None else {
                "params": self._plan.params,
                "dtype": self._models.dtype.str[1:],
                "keys": list(self._index) if self._plan.n_models is None else None,
                "labels": None if self._labels is None else self._labels.state(),
                "models": self._models.gather(np.arange(self._models.n)),
            }}

    def __setstate__(self, state):
        self.__init__(**state["params"])
        if state["learned"] is not None:
            self._restore(state["learned"])

    def _restore(self, learned):
        plan = Bank(**learned["params"])._checked_plan()
        if learned["dtype"] not in ("f4", "f8"):
            raise ValueError(f"points cannot be of type {learned['dtype']!r}")
        keys = learned["keys"]
        if (keys is None) != (plan.n_models is not None) or (learned["labels"] is None) != (plan.loss.task != "binary"):
            raise ValueError("the keys or labels do not fit the parameters")
        n = plan.n_models if keys is None else len(keys)
        index = dict(zip(keys or (), range(n)))
        if keys is not None and len(index) != n:
            raise ValueError("two models have the same key")
        models = Models(dtype=learned["dtype"], **plan.core())
        models.check_state(learned["models"], n)
        models.admit(learned["models"], n, index)
        models.labels = None if learned["labels"] is None else BinaryLabels.restore(learned["labels"])
        self._plan, self._models = plan, models

    def _check(self):
        """Assert every invariant."""
        with self._lock:
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
    learned, what = 0, f"has no finite score: {REASONS[reason]}."
    if learning:
        learned = sum(count for count, _, _ in outcomes)
        rest = f"Its model stopped there; the other rows, {learned} in all, were learned."
        what = f"cannot be learned: {REASONS[reason]}. {rest}"
    error = FloatingPointError(f"Row {row} of X {what}")
    error.rows_learned = learned
    raise error


def repeated(keys):
    """Keys that are there more than once."""
    return [key for key, count in Counter(keys).items() if count > 1]


class BankPlan:
    """The validated parameters of a bank: those of one of its models, and what a bank can do."""

    def __init__(self, bank):
        self.params = copy.deepcopy(bank.get_params(deep=False))
        self.n_features, self.n_models = bank.n_features, bank.n_models
        plan = self.plan = self.blank()._plan().resolved(defaults.Data(bank.n_features))
        self.loss = plan.loss
        if plan.loss.task == "multiclass" or not plan.loss.is_compiled():
            raise ValueError(f"A Bank takes a built-in loss of two classes, regression or novelty. Got {plan.loss!r}.")
        if plan.loss.margin_step == LOG:
            raise ValueError("A Bank has no margin_step='log'. Use a number or None.")
        if type(plan.kernel) not in (Gaussian, Linear):
            raise ValueError(f"A Bank takes a Gaussian or a Linear kernel. Got {plan.kernel!r}.")
        if type(plan.budget) not in (Recent, Smallest) or plan.budget.size > MOST_TERMS:
            expected = f"an integer, Recent or Smallest of at most {MOST_TERMS} terms"
            raise ValueError(f"The 'budget' of a Bank must be {expected}. Got {self.params['budget']!r}.")
        if plan.rule.adapts_step or plan.rule.step.is_own():
            raise ValueError(f"A Bank has no step={plan.rule.step!r}. Use Fixed, InverseSqrt or Decaying.")
        blocks = PIECE // (plan.budget.size * (self.n_features + 4) * LANES)
        self.rows_at_a_time = max(int(blocks), 64) * LANES

    def blank(self):
        """An ordinary model with these parameters that has learned nothing."""
        params = copy.deepcopy(self.params)
        if params["rule"] not in tuple(RULES):
            raise bad_parameter("Bank", "rule", "'silk' or 'norma'", params["rule"])
        if params["rule"] == "norma" and params["penalty"] is not None:
            raise ValueError("penalty is for rule='silk'; rule='norma' has none.")
        given = {name: params[name] for name in ("step", "regularization", "penalty") if params[name] is not None}
        algorithm = RULES[params["rule"]]
        return algorithm(params["loss"], params["kernel"], budget=params["budget"], offset=params["offset"], **given)

    def core(self):
        """Arguments for `Models`."""
        gaussian, rule = isinstance(self.plan.kernel, Gaussian), self.plan.rule
        implicit = isinstance(rule, Implicit)
        return {
            "loss": self.loss.core(), "step": rule.step.core(), "implicit": implicit,
            "regularization": rule.regularization, "penalty": rule.penalty if implicit else 1.0,
            "recent": isinstance(self.plan.budget, Recent), "slots": int(self.plan.budget.size),
            "offset": self.plan.offset, "gamma": self.plan.kernel.ops()[0]["a"] if gaussian else None,
            "n_features": self.n_features,
        }

    def is_like(self, other):
        """Whether models of both are of one kind."""
        mine, others = self.plan.parts(), other.plan.parts()
        return self.n_features == other.n_features and all(same_parameters(mine[name], others[name]) for name in mine)


def as_keys(keys, n):
    """n keys as a list; numpy's numbers become Python's, which are equal and hash faster."""
    if isinstance(keys, str) or not hasattr(keys, "__len__"):
        what = type(keys).__name__
        raise TypeError(f"keys must be a list or array with a key for each row of X. Got {what} instead.")
    if isinstance(keys, (list, tuple)):
        keys = [key.item() if isinstance(key, np.generic) else key for key in keys]
    elif (keys := np.asarray(keys)).ndim != 1:
        raise ValueError(f"keys must be one-dimensional. Got an array of shape {keys.shape} instead.")
    else:
        keys = keys.tolist()
    validation.check_length(keys, n, "keys")
    return keys


def pieces(n, numbers, n_models, rows):
    """The n rows of a call, so many at a time: (slice, groups or None, (first block, end of blocks)).

    Groups are (blocks that have rows, where the rows of each lane begin, rows in that order), without rows that have no
    model.
    """
    for begin in range(0, n, rows):
        end = min(begin + rows, n)
        if numbers is None:
            yield slice(begin, end), None, (begin // LANES, -(-end // LANES))
            continue
        order = np.argsort(numbers[begin:end], kind="stable")
        ordered = numbers[begin:end][order]
        known = slice(np.searchsorted(ordered, 0), np.searchsorted(ordered, n_models))
        order, ordered = order[known].astype(np.int64) + begin, ordered[known]
        blocks = np.unique(ordered // LANES)
        starts = np.searchsorted(ordered, blocks[:, None] * LANES + np.arange(LANES + 1))
        yield slice(begin, end), (blocks, np.ascontiguousarray(starts, dtype=np.int64), order), (0, len(blocks))


def checked_numbers(keys, n, n_models):
    """Numbers of models for n rows."""
    numbers = np.asarray(keys)
    validation.check_length(numbers, n, "keys")
    if numbers.dtype.kind not in "iu" or numbers.ndim != 1:
        raise TypeError(f"keys must be whole numbers of models with n_models=. Got dtype {numbers.dtype} instead.")
    if n and not (0 <= numbers.min() and numbers.max() < n_models):
        raise ValueError(f"keys must be between 0 and {n_models - 1}. Got {numbers.min()} to {numbers.max()} instead.")
    return numbers.astype(np.int64)


def checked_mask(active, n):
    """Which of n rows count, as booleans."""
    active = np.asarray(active)
    if active.dtype != bool or active.shape != (n,):
        got = f"Got dtype {active.dtype} and shape {active.shape} instead."
        raise ValueError(f"active must hold a boolean for each of the {n} rows of X. {got}")
    return np.ascontiguousarray(active)


def targets(plan, labels, y, n, active=None, classes=None):
    """(y as numbers, labels to go on with)."""
    task = plan.loss.task
    if task == "novelty":
        return None, None
    rows = slice(None) if active is None else active
    if task == "regression":
        y = y if active is None else validation.check_column(y, n)[rows]
        some = validation.check_targets(y, n if active is None else len(y))
    else:
        column = label_column(y, n)[rows]
        if classes is not None and labels is not None and labels.agreeing_with(classes) is None:
            raise ValueError(f"classes={classes!r} is not the same as on the first call: {labels.classes.tolist()!r}.")
        if not len(column) and labels is None and classes is None:
            raise ValueError("No row is active, so that y shows no label. Pass classes=[...] with both.")
        labels = labels or BinaryLabels.first_seen(column, classes)
        some, labels = labels.encode(column)
    y = np.zeros(n)
    y[rows] = some
    return y, labels
