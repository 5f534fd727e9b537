"""One estimator: parameters, checks, learning and predicting; see `Estimator`.

A call is checked and labels become numbers; at the first call the parameters become a plan and a state with the backend
of the core that learns. Then the backend runs.
"""
from __future__ import annotations

import copy
import copyreg
import functools
from typing import TYPE_CHECKING

import numpy as np

from onlinekernels._core.lock import Locked
from onlinekernels._core.points import Rows
from onlinekernels.base import defaults, validation
from onlinekernels.base.docstrings import like
from onlinekernels.base.labelsets import first_among_equals
from onlinekernels.base.labelvalues import label_column, plain
from onlinekernels.base.params import Parameterized, same_parameters
from onlinekernels.base.plan import Plan
from onlinekernels.base.state import State
from onlinekernels.base.status import warn_of_size, warn_once
from onlinekernels.budgets import as_budget, Recent
from onlinekernels.kernels import as_kernel
from onlinekernels.losses import as_loss
from onlinekernels.losses.base import LOG
from onlinekernels.preprocessing.encoding import as_encoder, MEANS
from onlinekernels.steps import as_step

if TYPE_CHECKING:
    from onlinekernels.annotations import (
        Any, Array, ArrayLike, Budget, Callable, ClassWeight, Examples, LabelStructure, Path, RunningScaler, Self,
    )
    from typing import TypeVar

    F = TypeVar('F')
    T = TypeVar('T')


class only_if:
    """A method or property that exists only where `check(model)` holds, for hasattr as well; `hint` says what to do."""

    def __init__(self, check: Callable[[Any], bool], hint: str = "") -> None:
        self.check = check
        self.hint = hint

    def __call__(self, function: F) -> F:
        self.function: Any = function
        self.__doc__ = function.__doc__
        return self  # type: ignore[return-value]  # it has what the function has, for type checkers as well

    def __set_name__(self, owner, name):
        self.name = name

    def __get__(self, model, owner=None):
        if model is None:
            return self.function
        try:
            exists = self.check(model)
        except ValueError as error:  # parameters that the first fit will refuse
            raise AttributeError(str(error)) from error
        if not exists:
            if "loss" not in model.get_params(deep=False):  # nobody can choose another one
                raise AttributeError(f"{type(model).__name__} has no {self.name!r}.")
            raise AttributeError(f"{type(model).__name__} with the loss {model.loss!r} has no {self.name!r}."
                                 f"{self.hint}")
        return self.function.__get__(model, owner)


def learned(function: Callable[[Any, Any], T]) -> T:
    """A property of what is learned: `function(model, state)`, read under the model's lock, so of one state."""

    @functools.wraps(function)
    def read(model):
        with model._lock:
            return function(model, model._fitted())

    return property(read)  # type: ignore[return-value]  # its value, for type checkers


def _only(y):
    """The one label or target of a list or array; an empty list, which is neither, if there is not exactly one."""
    if type(y) is np.ndarray and y.shape == (1,) and y.dtype.kind in "biufU":
        return y.item()
    return None if y is None else y[0] if type(y) is list and len(y) == 1 else []


def validate_coverage(coverage):
    """A share of targets to cover, in (0, 1)."""
    if not (isinstance(coverage, (int, float, np.floating)) and 0 < coverage < 1):
        raise ValueError(f"coverage must be a number in (0, 1). Got {coverage!r} instead.")
    return float(coverage)


def task_is(*tasks):
    """A check for `only_if`: whether the loss is for one of these tasks."""
    return lambda model: model._current_loss().task in tasks


LOOK_AT_SIZE = 1000  # single rows between two looks at the number of terms

# What `progressive` may give beside the scores, in this order
OUTPUTS = "steps", "margins", "norms", "std", "interval", "proba", "labels"


class Estimator(Parameterized, Locked):
    """Base of all models: they differ by the backend of the core that learns, and by what they show of it.

    A subclass is a dataclass of its parameters, and has

    `_plan`
        validates them: a plan, which also checks rows (`validate_points`) and finds labels (`first_labels`);
    `_first_state(plan, X, labels, targets, start, whole)`
        makes the state (see `Learned`) before the first of the rows X, which are all there is if they are the `whole`;
    `_restored(learned)`
        makes it from what a file or pickle holds; ValueError if the parts of that do not fit each other;
    `_scores(state, X)`, `_scores_of_one(state, row)`
        evaluate rows, shape (n, outputs), or one that needs no check.

    `_lock.alone` is to learn, `_lock.shared` to predict, `_lock` to look. What several algorithms have in common is
    described here; see `onlinekernels.base.docstrings`.

    Parameters
    ----------
    loss : Loss, str or None
        What to minimize, or its name; it decides the task. None is `Hinge()`.
    kernel : Kernel, str, callable or None
        How examples resemble each other: a kernel, its name, or any callable k(x, z). None is a `Gaussian` whose width
        follows the number of features d: 0.3 sqrt(d) for classes, 0.5 sqrt(d) for numbers, sqrt(d) for novelty, times
        the size of the features. That is 1 behind ``scale=True``; otherwise a power of two by which the median distance
        of rows is larger than that of normal deviates, sqrt(2 d) or a little less. `fit` looks at up to 100 of all
        rows. On a stream the first 10 rows decide, and again the first 100, which are learned anew if the width
        changes. For sparse rows None is `Linear`, but for novelty. `kernel_` is the current kernel.
    average : bool
        Predict with the average of all hypotheses (K Cor. 5), offsets and adapted margins or widths included, at no
        cost per step. Needs an unlimited budget.
    budget : Budget, int or None
        Which terms stay; an integer means `Recent`, None all of them.
    offset : bool or None
        Learn an offset b beside f; it is not regularized. None decides by the kernel: True for a linear one on dense
        rows, which otherwise goes through 0. `has_offset_` is what was decided.
    labels : Taxonomy, LabelGraph, Labels or None
        Structure of the labels, for losses of many classes.
    class_weight : dict, "balanced" or None
        {label: weight}; multiplies the loss of its examples, 1 for labels that are not named. "balanced" gives
        every class the same total, and needs `fit`, which sees them all.
    scale : bool or RunningScaler
        Scale the features by running means and deviations first; they are learned and saved with the model.
        Points and weights of the model are then in scaled units.
    scale_target : bool, RunningScaler or "log"
        Numbers to predict: scale them by their running mean and deviation, learned and saved with the model.
        Predictions and progressive scores are in your units; coefficients, the intercept and the width of the loss in
        scaled ones. "log" is for skewed numbers: arcsinh(y) is scaled, which is the logarithm of 2 \\|y\\| with the
        sign of y, and y itself well below 1. Predictions are then medians.
    encode : bool or RunningEncoder
        Make numbers of rows first: of data frames, dictionaries or lists with words, dates and missing values. The
        encoder is learned and saved with the model; `encoder_` shows it. Numbers stay as they are, so ``scale=True`` is
        a good idea, too.
    epochs : int
        Passes that `fit` makes; at least 1.

    {Attributes}

    Notes
    -----
    Formulas have the letters of the papers. f_t is the function before example t = 1, 2, ... with its label or target
    y_t, and |f| its norm in the space of the kernel. eta_t is the step, lambda the regularization (c in V), C the
    penalty, b the offset, omega the size of the budget. rho is the margin of a loss, epsilon or sigma its width, nu the
    fraction of examples that a nu-loss leaves outside. kappa and Delta are the kernel and the distance of labels.
    Implicit steps have tau_t = eta_t lambda / (1 + eta_t lambda), adapted steps the meta step mu and the trace v, norm
    balls the radius gamma. K, I, V and H are papers, and a number in parentheses is an equation there.

    {References}
    """

    _rule: Any = None  # the class of its rule
    _takes_many = False  # whether many classes are fine although the loss is of two
    _takes_sparse = False  # whether rows may be sparse
    labels: LabelStructure | None = None
    class_weight: ClassWeight | None = None
    scale: bool | str | RunningScaler = False
    scale_target: bool | str | RunningScaler = False
    encode: Any = False
    epochs = 1
    _lock: Any
    _state: Any = None  # what is learned: None until the first fit
    _encoder: Any = None  # that has seen what the state has learned; None if that was not encoded
    _uncommitted: Any = None  # (encoder, its block of rows that are being learned, whether `fit` learns them)

    # ---- What subclasses say ----------------------------------------------------------------------------------------

    def _first_plan(self, X, y, classes):
        """The plan for a first call, which may depend on the rows, and on the labels that it shows or names."""
        return self._plan()

    def _set_up(self, state):
        """Tell the backend parameters that may be set at any time."""

    def _warn(self, state):
        """Warn of learning that goes wrong, unless the user was warned before."""

    def _own_loss(self):
        """The loss that the parameters name, whatever has been learned."""
        return as_loss(getattr(self, "loss", None), self)

    def _current_loss(self):
        """The loss of the fitted model, else the one that the parameters name."""
        return self._own_loss() if self._state is None else self._state.loss

    # ---- Parameters -------------------------------------------------------------------------------------------------

    def __setattr__(self, name, value):
        """Remember that a parameter changed after fitting: the next call looks at it."""
        super().__setattr__(name, value)
        if self._state is not None and not name.startswith("_"):
            self._state.stale = True

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name, nested ones as ``kernel__width``; return self.

        On a fitted model, `step`, `regularization`, `penalty` and the `noise` of `KRLS` take effect with the next call;
        other parameters need `fit` to start anew.
        """
        with self._lock:
            super().set_params(**params)
            if self._state is not None:
                self._state.stale = True
        return self

    # ---- Learning ---------------------------------------------------------------------------------------------------

    def fit(self, X: Examples, y: Any = None, *, classes: Any = None) -> Self:
        """Forget everything, then learn X, y in the given order, `epochs` times; return self.

        Parameters
        ----------
        X : array of shape (n, n_features), or list of rows, or of objects for a kernel on objects
        y : labels or targets, for a regression also a matrix of several targets; none for novelty losses
        classes : the labels, if y does not show them all
        """
        return self._fit(X, y, classes)

    def _fit(self, X, y, classes, start=None):
        with self._lock.alone:
            before = self._state
            state, X, y, weights = self._validate_examples(None, X, y, classes, None, start, whole=True)
            self._make_passes(before, state, X, y, weights)
        return self

    def _make_passes(self, before, state, X, y, weights):
        for epoch in range(self.epochs):
            self._learn(before, state, X, y, weights, earlier=epoch * len(X))

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn some more examples, as many as you like at a time; return self.

        One call with n rows gives what n calls with one row give, up to rounding, but faster.

        Parameters
        ----------
        X, y : as for `fit`
        classes : the labels, needed at most on the first call
        sample_weight : array of shape (n,), multiplies the loss of each example
        """
        return self._partial_fit(X, y, classes, sample_weight)

    def _partial_fit(self, X, y, classes=None, sample_weight=None, start=None):
        with self._lock.alone:
            is_plain = start is classes is sample_weight is None and type(X) is np.ndarray and X.ndim == 2
            if not (is_plain and len(X) == 1 and self._learn_row(X[0], _only(y))):
                self._validate_and_learn(X, y, classes, sample_weight, start)
        return self

    def _validate_and_learn(self, X, y, *others, **outputs):
        """(state, what is wanted of each row) after more examples."""
        before = self._state
        state, X, y, weights = self._validate_examples(before, X, y, *others)
        return state, self._learn(before, state, X, y, weights, **outputs)

    def learn_one(self, x: Any, y: Any = None) -> Self:
        """Learn one example, 1-d or an object, with the least overhead; return self."""
        with self._lock.alone:
            if not self._learn_row(x, y):
                state = self._state
                if isinstance(y, (list, np.ndarray)) and np.ndim(y) > 0:
                    several = self._current_loss().task == "regression" and np.size(y) > 1
                    if not several or state is not None and state.targets == 1:
                        raise ValueError(f"y must be one label or number for learn_one. Got {y!r} instead.")
                try:
                    self._validate_and_learn(self._row(state, x), None if y is None else [y], None, None)
                except ValueError as error:
                    if state is not None or "classes=" not in str(error):
                        raise
                    hint = "learn_one has no classes=: begin with partial_fit([x], [y], classes=[...])."
                    raise ValueError(f"{error} {hint}") from error
        return self

    def _learn_row(self, x, y):
        """Learn a row and its label or target as they are, unless they need a longer look: whether it did."""
        state, encoder = self._state, self._encoder
        if state is None or state.stale or not state.takes_rows or self.class_weight is not None:
            return False
        target, block = state.target_of(y), None
        if encoder is not None:
            block = encoder.open_one(x)
            x = None if block is None else block.rows[0]
        if target is None or not state.takes(x):
            return False
        if block is not None:
            self._tell(state, block, block.rows, np.array([target]))
        self._set_up(state)
        state.done = 0
        try:
            status = state.learn_one(x, target)
        except BaseException as error:
            validation.add_rows_learned(error, state.done)
            raise
        finally:
            if block is not None and state.done:
                block.commit()
        if status and not state.warned or state.t % LOOK_AT_SIZE == 0:
            self._warn_after(state, 1)
        return True

    def _row(self, state, x):
        """One example as rows of one."""
        if validation.is_sparse(x):
            if x.ndim == 2 and x.shape[0] != 1:
                raise ValueError(f"x must be one example. Got a sparse matrix of {x.shape[0]} rows instead.")
            return x
        if state is None or not state.takes_rows or self._encoder is not None:
            return x[None] if type(x) is np.ndarray and x.ndim == 1 else [x]
        return validation.check_point(x, n_features=state.n_features, owner=type(self).__name__)

    def _progressive(self, call, coverage=None, **wanted):
        """`progressive`, with what is `wanted` beside the scores, in the order of `OUTPUTS`."""
        wanted = {name for name in wanted if wanted[name]}
        with self._lock.alone:
            state, found = self._validate_and_learn(*call, wanted=frozenset(wanted), coverage=coverage)
            scores = found["scores"]
            scores = scores[:, 0] if state.form == "one" else state.shown(scores.T).T
        others = [found[name] for name in OUTPUTS if name in wanted]
        return (scores, *others) if others else scores

    def _learn(self, before, state, X, y, weights=None, *, earlier=0, wanted=None, coverage=None):
        """Make a state current and let it learn; what is `wanted` of each row before it. An error says how many rows
        were learned, `earlier` ones of the same call included; if none were, a state from `before` the call is current
        again.
        """
        is_new = before is None or before.backend is not state.backend
        self._set_up(state)
        state.done = 0
        try:
            self._state = state
            found = state.learn(X, y, weights, wanted, coverage)
            self._commit(len(X))
        except BaseException as error:
            rows = state.done
            self._commit(rows)
            if is_new and earlier + rows == 0:
                self._state = before
            elif earlier == 0:
                state.keep_learned(None if is_new else before, y[: rows * state.targets])
            validation.add_rows_learned(error, earlier + rows)
            raise
        self._warn_after(state, earlier + len(X))
        return found

    def _warn_after(self, state, rows):
        """Warn of learning that goes wrong; if that is an error, it says how many rows were learned."""
        try:
            self._warn(state)
        except Warning as error:
            validation.add_rows_learned(error, rows)
            raise

    def _validate_examples(self, state, X, y, classes, sample_weight, start=None, whole=False):
        """(state to learn in, X, y, weights), all validated; changes nothing in self.

        `start` is the state whose function the first call starts from, or None; `whole` rows are all there is.
        """
        if state is None and self._own_loss().task == "regression":
            y = validation.as_array_once(y)
        X = self._to_learn(state, X, start, whole, means=self._target_means(y, classes))
        block = None if self._uncommitted is None else self._uncommitted[1]
        if state is None:
            names = validation.feature_names(X)
            plan = self._first_plan(X, y, classes)
            X = plan.validate_points(X, owner=type(self).__name__)
            labels, targets = None, 1
            if plan.loss.task in ("binary", "multiclass"):
                labels = plan.first_labels(label_column(y, len(X)), classes, start)
            elif plan.loss.task == "regression":
                targets = validation.count_targets(y)
            state = self._first_state(plan, X, labels, targets, start, whole)
            state.feature_names = None if state.n_features is None else names
        else:
            if start is not None:
                raise ValueError("initial= starts a model and this one has learned already; call fit to start anew.")
            if state.stale:
                state = state.refreshed(self)
            if block is not None and X.shape[1] > state.n_features:
                state = state.widened(X.shape[1], 0.0)
            X = state.rows_of(X, type(self).__name__)
        weights = validation.check_weights(sample_weight, len(X))
        state, y = state.with_targets(len(X), y, classes)
        if block is not None:
            self._tell(state, block, X, y)
        if self.class_weight is not None:
            weights = state.class_weights(self.class_weight, y, weights, whole, self)
        return state, X, y, weights

    # ---- Encoding ---------------------------------------------------------------------------------------------------

    def _target_means(self, y, classes):
        """Columns for the means of targets of each category."""
        task = self._own_loss().task if self.encode is not False else "novelty"
        if task == "multiclass":
            return min(MEANS, max(1, len(classes) - 1)) if hasattr(classes, "__len__") else MEANS
        if task == "regression":
            return min(MEANS, validation.count_targets(y))
        return int(task == "binary")

    @staticmethod
    def _tell(state, block, X, y):
        """Add the means of the targets y of each category to the encoded rows X."""
        columns, task = block.before.layout.means, state.loss.task
        if not columns:
            return
        targets = np.zeros((len(X), columns))
        if task == "multiclass":
            targets[:] = (y[:, None] >= 1) & ((y[:, None] - 1) % columns == np.arange(columns))
        else:
            y = y.reshape(len(X), -1)[:, :columns]
            targets[:, : y.shape[1]] = y if task == "regression" else y > 0
        block.tell(X, targets, task != "regression")

    def _to_learn(self, state, X, start=None, whole=False, means=0):
        """Rows as numbers, each by what was known before it.

        `start` is the state that the model starts from; `whole` rows, those of `fit`, are known all or not at all. A
        new encoder has this many columns for the `means` of targets.
        """
        encoder = self._encoder if state is not None else as_encoder(self.encode, self, means)
        if state is not None and state.stale and not same_parameters(as_encoder(self.encode, self), encoder):
            raise ValueError(f"The 'encode' parameter changed after fitting, to {self.encode!r}; call fit to start "
                             "anew.")
        if getattr(start, "encoder", None) is not None:
            if encoder is None:
                raise ValueError("initial= has learned from encoded rows: encode=True is needed here, too.")
            encoder = start.encoder.copy()
        block = None if encoder is None or validation.is_sparse(X) else encoder.open(X, grows=self._grows())
        self._uncommitted = encoder, block, whole
        return X if block is None else block.rows

    def _grows(self):
        """Whether columns may join that have been 0 until now, which leaves the function as it is."""
        return False

    def _commit(self, rows):
        """Let the encoder learn from the first of the rows that were encoded last; may be called again."""
        if self._uncommitted is not None and rows > 0:
            encoder, block, is_whole = self._uncommitted
            if block is not None:
                block.commit(None if is_whole else rows)
            self._encoder, self._uncommitted = encoder, None

    def _is_encoded(self):
        """Whether rows came through an encoder; that of a model of sparse rows has seen nothing."""
        return self._encoder is not None and self._encoder._state is not None

    def _to_predict(self, X):
        """Rows as numbers, by what is known now."""
        passes = not self._is_encoded() or validation.is_sparse(X)
        return X if passes else self._encoder.encoded(X)

    def _by_column(self, state, values):
        """{name: value} of the features, where encoded columns are added up for each column that was given."""
        return self._encoder.summed(values) if self._is_encoded() else dict(zip(state.names(), values, strict=True))

    @property
    def encoder_(self) -> Any:
        """A copy of the encoder, with ``encode=True``; its `feature_names_out` tells what the model sees."""
        if self._encoder is None:
            raise AttributeError("encoder_ exists only for a model that has learned from encoded rows.")
        return self._encoder.copy()

    # ---- Predicting -------------------------------------------------------------------------------------------------

    def predict(self, X: Examples) -> Any:
        """Labels, targets, or +1 (ordinary) and -1 (novel) for the rows of X."""
        with self._lock.shared:
            state = self._fitted()
            return state.answers(self._scores(state, X))

    def predict_one(self, x: Any) -> Any:
        """Prediction for one example, 1-d or an object."""
        with self._lock.shared:
            state = self._fitted()
            row = x
            if self._encoder is not None:
                block = self._encoder.open_one(x, learns=False)
                row = None if block is None else block.rows[0]
            if state.takes_rows and state.takes(row):
                return plain(state.answers(self._scores_of_one(state, row))[0])
            return plain(state.answers(self._scores(state, self._row(state, x)))[0])

    @only_if(task_is("binary", "multiclass", "novelty"), " A regressor has predict.")
    def decision_function(self, X: Examples) -> Array:
        """Scores: positive for the second of two classes, or for ordinary examples (f - rho).

        A loss of many classes gives one column per class, in the order of `classes_`; while there are two, one number,
        as scikit-learn has it.
        """
        with self._lock.shared:
            state = self._fitted()
            scores = self._scores(state, X)
            if state.loss.task == "multiclass":
                scores = state.shown(scores.T).T
                return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores
            return np.subtract(*state.detected(scores)) if state.loss.task == "novelty" else scores[:, 0]

    @only_if(task_is("novelty"))
    def fit_predict(self, X: Examples, y: Any = None) -> Array:
        """`fit`, then `predict`: +1 for the ordinary and -1 for the novel rows of X."""
        return self.fit(X).predict(X)

    @only_if(task_is("novelty"))
    def score_samples(self, X: Examples) -> Array:
        """f(x): the lower, the more novel."""
        with self._lock.shared:
            state = self._fitted()
            return state.detected(self._scores(state, X))[0]

    @only_if(lambda model: model._current_loss().probabilistic,
             ' Probabilities come with the loss "logistic" for two classes, "multiclass_logistic" or '
             '"multiclass_squared" for many.')
    def predict_proba(self, X: Examples) -> Array:
        """Probabilities of the classes, shape (n, n_classes)."""
        with self._lock.shared:
            state = self._fitted()
            scores = self._scores(state, X)
            if state.loss.task == "multiclass":
                shown = state.shown(state.loss.probabilities(scores).T).T
                return first_among_equals(shown, state.labels.first_of_best(scores))
        scores = scores[:, 0]
        return first_among_equals(state.loss.probabilities(scores), (scores > 0).astype(np.intp))

    @only_if(task_is("binary", "multiclass", "regression"))
    def score(self, X: Examples, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Accuracy of a classifier, coefficient of determination R^2 of a regressor (its mean over targets)."""
        with self._lock.shared:
            state = self._fitted()
            scores = self._scores(state, X)
            predictions = state.answers(scores)
        if state.loss.task != "regression":
            y = label_column(y, len(scores))
            weights = validation.check_weights(sample_weight, len(y))
            return float(np.average(state.labels.agree(scores, y), weights=weights))
        y = validation.check_targets(y, len(predictions), state.targets)
        weights = validation.check_weights(sample_weight, len(y))
        residual = np.average((y - predictions) ** 2, axis=0, weights=weights)
        spread = np.average((y - np.average(y, axis=0, weights=weights)) ** 2, axis=0, weights=weights)
        with np.errstate(divide="ignore", invalid="ignore"):
            determined = np.where(spread > 0, 1.0 - residual / spread, np.where(residual == 0, 1.0, 0.0))
        return float(np.mean(determined))

    def _fitted(self):
        if self._state is None:
            raise validation.not_fitted(self)
        return self._state

    # ---- Fitted attributes ------------------------------------------------------------------------------------------

    @learned
    def t_(self, state: Any) -> int:
        """Number of examples learned."""
        return state.t

    @learned
    def n_terms_(self, state: Any) -> int:
        """Number of examples that are kept as terms or points; 0 where weights replace them."""
        return state.n_terms()

    @learned
    def n_features_in_(self, state: Any) -> int:
        """Number of features, of encoded rows that of their columns; does not exist for a kernel on objects."""
        if self._is_encoded():
            return self._encoder.n_features_in_
        if state.n_features is None:
            raise AttributeError("A kernel on objects has no number of features.")
        return state.n_features

    @learned
    def feature_names_in_(self, state: Any) -> Any:
        """Names of the columns, if the model saw a data frame first."""
        if self._is_encoded():
            return self._encoder.feature_names_in_
        if state.feature_names is None:
            raise AttributeError("feature_names_in_ exists only for models that have seen a data frame first.")
        return np.array(state.feature_names, dtype=object)

    @learned
    def classes_(self, state: Any) -> Any:
        """The labels of a classifier in sorted order, or in that of appearance if they cannot be compared, such as
        texts and numbers; of two, the second is the positive one."""
        if state.labels is None:
            raise AttributeError("classes_ exists for classifiers only.")
        n_seen = len(state.labels.order) if state.form == "one" else state.n_classes_seen()
        return state.labels.as_learned(None, (), n_seen).classes.copy()

    @learned
    def offset_(self, state: Any) -> Any:
        """The threshold of a detector: decision_function = score_samples - offset_."""
        if state.loss.task != "novelty":
            raise AttributeError("offset_ exists for novelty losses only.")
        return state.scalar()

    # ---- Protocols and files ----------------------------------------------------------------------------------------

    @property
    def _estimator_type(self):
        try:
            task = self._current_loss().task
        except ValueError as error:  # a loss that the first fit will refuse
            raise AttributeError(str(error)) from error
        return {"regression": "regressor", "novelty": "outlier_detector"}.get(task, "classifier")

    def __sklearn_tags__(self):
        """What scikit-learn wants to know; it is imported only when it asks."""
        from sklearn.utils import ClassifierTags, InputTags, RegressorTags, Tags, TargetTags

        kind, loss = self._estimator_type, self._current_loss()
        return Tags(
            estimator_type=kind,
            target_tags=TargetTags(
                required=kind != "outlier_detector",
                multi_output=kind == "regressor" and not loss.adapts and not getattr(self, "radius", None),
            ),
            # Local kernels need features in their own units; one pass over few rows promises a regression little.
            classifier_tags=ClassifierTags(
                poor_score=not self.scale, multi_class=self._takes_many or loss.task == "multiclass"
            )
            if kind == "classifier"
            else None,
            regressor_tags=RegressorTags(poor_score=True) if kind == "regressor" else None,
            input_tags=InputTags(sparse=self._takes_sparse,
                                 **dict.fromkeys(("allow_nan", "string", "categorical", "dict"), bool(self.encode))),
        )

    def __sklearn_is_fitted__(self):
        return self._state is not None

    def save(self, path: Path) -> None:
        """Write the model to one .npz file that `load` continues from, bit for bit.

        A kernel or loss that is Python code is not in the file: give it to `load`, as ``load(path, kernel=...)``.

        Parameters
        ----------
        path : str or path
        """
        from onlinekernels.base.files import save

        with self._lock:
            save(self, path)

    def __reduce_ex__(self, protocol):
        return copyreg.__newobj__, (type(self),), self.__getstate__()

    def __getstate__(self):
        with self._lock:
            state = self.get_params(deep=False)
            if self._state is not None:
                state["_state"] = self._state.to_dict()
                if self._encoder is not None:
                    state["_encoder"] = self._encoder.copy()
        return state

    def __setstate__(self, state):
        state = dict(state)
        learned = state.pop("_state", None)
        self.__dict__.update(state)
        if learned is not None:
            self.__dict__["_state"] = self._restored(learned)


class UncertainEstimator(Estimator):
    """Base of models that know how sure they are.

    A subclass has `_evaluated(state, X)`, which gives scores, and standard deviations as users see them, and
    `_interval(state, X, coverage)`, which gives lower and upper ends for targets.
    """

    def progressive(self, X: Examples, y: Any = None, classes: Any = None, sample_weight: ArrayLike | None = None, *,
                    return_std: bool = False, return_interval: float | None = None, return_proba: bool = False,
                    return_labels: bool = False) -> Any:
        """Test, then train: learn like `partial_fit` and return the scores just before each update, and what else is
        asked for.

        Returns
        -------
        scores : array of shape (n,), or (n, n_classes) for classes, (n, n_targets) for many targets
            A class that is first seen later has 0.
        std : array of shape (n,), with return_std=True
            Standard deviations, (n, n_targets) for many targets: of y, noise included, but of f for `KRLS`.
        interval : array of shape (2, n), with return_interval=0.9, say
            Lower and upper ends of intervals that have covered so large a part of late. See `predict_interval`.
        proba : array of shape (n, n_classes), with return_proba=True
            Probabilities of the classes; 0 for those that are first seen later.
        labels : array of length n, with return_labels=True
            The predictions.

        Examples
        --------
        >>> from onlinekernels import KRLS
        >>> scores, std = KRLS(kernel="gaussian").progressive([[0.0], [0.0]], [1.0, 1.0], return_std=True)
        >>> scores.round(2), std.round(2)
        (array([0.  , 0.91]), array([1. , 0.3]))
        """
        task = self._current_loss().task
        if return_interval is not None and task != "regression":
            raise ValueError("return_interval is for numbers; classes have return_proba=True.")
        if return_proba and task != "multiclass":
            raise ValueError("return_proba is for classes; numbers have return_std and return_interval.")
        self._check_std(return_std)
        coverage = None if return_interval is None else validate_coverage(return_interval)
        return self._progressive((X, y, classes, sample_weight, None), coverage, std=return_std,
                                 interval=return_interval, proba=return_proba, labels=return_labels)

    def predict(self, X: Examples, return_std: bool = False) -> Any:
        """Targets or labels for the rows of X; with return_std=True also standard deviations of y, noise included.

        (Those of `KRLS` are of f, without the noise, as in scikit-learn's GaussianProcessRegressor.) A detector has +1
        for the ordinary and -1 for the novel rows.
        """
        self._check_std(return_std)
        if not return_std:
            return super().predict(X)
        with self._lock.shared:
            state = self._fitted()
            scores, deviations = self._evaluated(state, X)
            return state.answers(scores), deviations

    def _check_std(self, return_std):
        if return_std and self._current_loss().task == "novelty":
            raise ValueError("return_std is for numbers and classes; a detector has thresholds.")

    @only_if(task_is("regression"), " Classes have predict_proba.")
    def predict_interval(self, X: Examples, coverage: float = 0.9) -> Array:
        """Intervals for the targets of the rows of X: array (2, n), lower and upper ends; (2, n, n_targets) for several
        targets.

        Half their width is the standard deviation of y, noise included, times a factor. A Gaussian would have one
        factor for each coverage. Data is seldom Gaussian, so the factor is tracked while learning: as many targets have
        been inside of late as `coverage` says.

        Parameters
        ----------
        X : array of shape (n, n_features)
        coverage : float
            The part of targets that shall lie inside, in (0, 1).
        """
        coverage = validate_coverage(coverage)
        with self._lock.shared:
            state = self._fitted()
            return np.stack([state.numbers(end) for end in self._interval(state, X, coverage)])


def start_of(initial):
    """The state whose function `initial` is, apart from what that model goes on to learn; None for None.

    It is taken before a model's own lock: two models that start from each other must not wait for each other.
    """
    if initial is None:
        return None
    if not isinstance(initial, FunctionEstimator) or initial._state is None:
        raise ValueError(f"initial must be a fitted model of one function. Got {initial!r} instead.")
    kept = initial.__getstate__()
    state = State.from_dict(kept["_state"])
    state.encoder = kept.get("_encoder")
    return state


def can_grow(kernel, fill):
    """Whether columns that hold `fill` in all points change no value of a kernel."""
    if kernel.additive() is not None:
        return False
    points = np.array([[0.25], [0.75]])
    try:
        return np.allclose(kernel(points), kernel(np.insert(points, 1, fill, axis=1)), rtol=1e-12, atol=0.0)
    except ValueError:  # a kernel of one column
        return False


class FunctionEstimator(Estimator):
    """Base of the algorithms that learn one function by a rule, which the plan of a subclass names.

    The backend is an `Engine` of the core. What is shown is f: its terms or weights, its norm, its kernel.
    """

    _budget_of_int: type[Budget] = Recent
    _default_kernel = staticmethod(defaults.kernel)
    average = False
    offset: bool | None = False

    def _plan(self):
        return Plan.of(self, self._rule.of(self))

    def _component(self, name, value):
        """The object that None, a name or a number stands for: `kernel__width` works on a default kernel too."""
        makers = {"kernel": as_kernel, "loss": as_loss, "step": as_step}
        if name == "budget" and not isinstance(value, str):
            return as_budget(value, self, self._budget_of_int)
        if name not in makers:
            return None
        return makers[name](1.0 if name == "step" and value is None else value, self)

    # ---- Learning ---------------------------------------------------------------------------------------------------

    @like(Estimator.fit)
    def fit(self, X: Examples, y: Any = None, *, classes: Any = None, initial: Any = None) -> Self:
        """Forget everything, then learn X, y in the given order, `epochs` times; return self.

        Parameters
        ----------
        {X} {y} {classes}
        initial : a fitted model whose function is the start f_1
        """
        return self._fit(X, y, classes, start_of(initial))

    def _make_passes(self, before, state, X, y, weights):
        super()._make_passes(before, state, X, y, weights)
        if state.loss.task == "novelty" and state.loss.margin_step not in (None, LOG):
            # A fraction nu of all rows shall be below the margin of a detector.
            scores = self._decision(state, state.scaled(X), trusted=True)[:, 0]
            state.hypothesis.set_scalar(float(np.quantile(scores, state.loss.nu)))

    @like(Estimator.partial_fit)
    def partial_fit(self, X: Any, y: Any = None, classes: Any = None, sample_weight: ArrayLike | None = None, *,
                    initial: Any = None) -> Self:
        """Learn some more examples, as many as you like at a time; return self.

        One call with n rows gives what n calls with one row give, up to rounding, but faster.

        Parameters
        ----------
        {X} {classes} {sample_weight}
        initial : on the first call, a fitted model whose function is the start f_1
        """
        return self._partial_fit(X, y, classes, sample_weight, start_of(initial))

    def progressive(self, X: Examples, y: Any = None, classes: Any = None, sample_weight: ArrayLike | None = None, *,
                    initial: Any = None, return_steps: bool = False, return_margins: bool = False,
                    return_norms: bool = False, return_labels: bool = False) -> Any:
        """Test, then train: learn like `partial_fit` and return the scores just before each update.

        Returns
        -------
        scores : array of shape (n,), or (n, n_classes) for many classes, (n, n_targets) for many targets
            f_t(x_t) + offset, for every task; no margin is subtracted. A class that joins later has 0.
        steps : array of shape (n,), with return_steps=True
            The step size of each example.
        margins : array of shape (n,), with return_margins=True
            The loss's margin or width when each score was taken, which a nu-loss adapts.
        norms : array of shape (n,), with return_norms=True
            |f_t| in the kernel's Hilbert space, before each update; of several outputs, the root of the sum of squares.
            From one row to the next it takes O(1) where no budget drops terms, and O(terms^2) kernel values otherwise.
        labels : array of length n, with return_labels=True
            What these scores mean: the labels, targets, or +1 and -1 of a detector that `predict` would have given.
            Only classes that were seen before an example are among them; None if there were none. (An averaged
            or voting model predicts with its average, and has the labels of its latest f here.)

        Examples
        --------
        >>> from onlinekernels import SILK
        >>> scores, labels = SILK("multiclasshinge").progressive([[0], [0], [5], [5]], list("aabb"), return_labels=True)
        >>> labels.tolist()
        [None, 'a', 'a', 'b']
        """
        return self._progressive((X, y, classes, sample_weight, start_of(initial)), steps=return_steps,
                                 margins=return_margins, norms=return_norms, labels=return_labels)

    def _grows(self):
        return self.kernel is not None and can_grow(as_kernel(self.kernel, self), 0.0)

    def _first_state(self, plan, X, labels, targets, start=None, whole=False):
        rows = len(X) if whole else None
        follows = plan.follows_distances and start is None
        unit = 1.0 if start is None else start.plan.unit
        if follows and whole:
            unit = defaults.unit(X)
        plan = plan.resolved(defaults.Data(None if plan.takes_objects else X.shape[1], rows, isinstance(X, Rows), unit))
        if start is not None:
            plan.check_start(start)
        state = State.first(plan, X, labels, targets)
        state.rows = rows
        if follows and not whole and defaults.width(plan.kernel) is not None:
            state.warm_up = defaults.WarmUpRows()
        if start is not None:
            state.begin_from(start)
        return state

    def _restored(self, learned):
        return State.from_dict(learned)

    def _warn(self, state):
        if state.status:
            warn_once(state, self)
        warn_of_size(state, self)

    @property
    def _takes_sparse(self):
        return as_kernel(self.kernel, self).on_inner_products()

    # ---- Predicting -------------------------------------------------------------------------------------------------

    def _scores(self, state, X):
        """Scores of all rows, shape (n, outputs)."""
        X, owner = self._to_predict(X), type(self).__name__
        if state.plan.takes_objects:
            return self._decision(state, validation.check_objects(X))
        if not state.plan.scale and state.function.notices_bad_points:
            try:
                return self._decision(state, state.rows_of(X, owner, finite=False))
            except FloatingPointError:  # NaN or infinity: say so below
                pass
        return self._decision(state, state.scaled(state.rows_of(X, owner)), trusted=True)

    def _decision(self, state, examples, **how):
        """Scores of examples that have been checked and scaled; columns of labels that are yet to join are left out."""
        scores = state.engine.decision(examples, **how)
        return scores if state.form == "one" or state.labels is None else scores[:, : len(state.labels.order)]

    def _scores_of_one(self, state, row):
        return self._decision(state, state.scaled(row.reshape(1, -1)), trusted=True)

    # ---- Fitted attributes ------------------------------------------------------------------------------------------

    @learned
    def support_vectors_(self, state: Any) -> Any:
        """Points of the terms, oldest first: an array, or a list of objects.

        f(x) is sum_i dual_coef_[0, i] k(support_vectors_[i], x) + intercept_[0].
        """
        return state.representation.terms(state)[0]

    @learned
    def dual_coef_(self, state: Any) -> Any:
        """Coefficients of the terms, oldest first, shape (n_outputs, n_terms_); before the label kernel."""
        return state.shown(state.representation.terms(state)[1])

    def contributions(self, x: Any, top: int | None = 5, label: Any = None) -> Any:
        """Which stored examples speak for or against a prediction, and how much.

        The score of one example x is the sum of what the terms contribute, alpha_i k(x_i, x), and the offset.

        Parameters
        ----------
        x : 1-d array, or an object
        top : int or None
            How many to give, those that contribute most in size first; None gives all.
        label : for many classes, the label whose score it is; None means the one that is predicted

        Returns
        -------
        list of Contribution
            ``value`` is the share of the score, ``place`` the place in `support_vectors_`, ``point`` the stored
            example (in scaled units where the model scales), ``coefficient`` alpha_i and ``kernel`` k(x_i, x).

        Examples
        --------
        >>> from onlinekernels import NORMA
        >>> model = NORMA("squared", "gaussian", step=1.0).fit([[0.0], [1.0]], [1.0, 3.0])
        >>> for part in model.contributions([1.0], top=1):
        ...     print(part.place, part.point, round(part.value, 3))
        1 [1.] 2.393
        """
        with self._lock.shared:
            state = self._fitted()
            points, alpha = state.representation.terms(state)
            rows = self._to_predict(self._row(state, x))
            return state.contributions(rows, points, alpha, top, label)

    @learned
    def knots_(self, state: Any) -> Any:
        """Distinct values of each coordinate among the terms of an additive model, ascending."""
        return self._additive().representation.knots(state)

    @only_if(lambda model: model._additive() is not None)
    def component(self, j: int, grid: Any) -> Any:
        """f_j of an additive model: its part that depends on coordinate j, at the values in grid.

        The components and the intercept add up to f; a constant that is part of the kernel is shared out among them.

        Returns
        -------
        array of shape (len(grid),), or (len(grid), n_classes) for many classes
        """
        grid = np.asarray(grid, dtype=float)
        if grid.ndim != 1 or not np.isfinite(grid).all():
            raise ValueError(f"grid must be a 1-d array of finite numbers. Got {grid!r} instead.")
        with self._lock:
            state = self._additive()
            values = state.component(j, grid)
            return values[:, 0] if state.form == "one" else state.shown(values.T).T

    def _additive(self):
        state = self._fitted()
        if state.kernel.coordinate(0) is None:
            raise AttributeError(f"Only a model with an additive kernel has components. This one has {state.kernel!r}.")
        return state

    @learned
    def intercept_(self, state: Any) -> Any:
        """Offsets b, shape (n_outputs,); of the averaged hypothesis with average=True."""
        return state.shown(state.hypothesis.intercept())

    @learned
    def has_offset_(self, state: Any) -> Any:
        """Whether an offset is learned beside f; the call chooses if that was left to it."""
        return state.plan.offset or state.plan.rule.has_own_offset

    @learned
    def coef_(self, state: Any) -> Any:
        """Weights of a linear kernel, shape (n_outputs, n_features), or of a map's features, (n_outputs, size)."""
        return state.shown(state.representation.coef(state))

    @learned
    def norm_(self, state: Any) -> Any:
        """|f| in the kernel's Hilbert space; O(n_terms^2) kernel values unless there are weights or trees."""
        return state.norm()

    @learned
    def step_(self, state: Any) -> Any:
        """Step size of the latest example; ``progressive(..., return_steps=True)`` gives the history."""
        return state.hypothesis.step_size()

    @learned
    def kernel_(self, state: Any) -> Any:
        """The current kernel; a default one has a width that follows the features: their number, and their size."""
        return copy.deepcopy(state.kernel)

    @learned
    def regularization_(self, state: Any) -> Any:
        """The current regularization; the call chooses one that is None."""
        return state.plan.rule.regularization

    @learned
    def budget_(self, state: Any) -> Any:
        """The current budget; the call chooses one that is "auto"."""
        return copy.deepcopy(state.plan.budget)

    @learned
    def margin_(self, state: Any) -> Any:
        """Current margin rho of a loss that has one; an adapted one of the averaged hypothesis with average=True."""
        return self._scalar(state, "margin")

    @learned
    def width_(self, state: Any) -> Any:
        """Current width (epsilon, sigma) of a loss that has one; an adapted one is averaged with average=True."""
        return self._scalar(state, "width")

    @staticmethod
    def _scalar(state, name):
        if state.loss.scalar_name != name:
            raise AttributeError(f"The loss {state.loss!r} has no {name}.")
        return state.scalar()
