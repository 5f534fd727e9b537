"""One estimator: parameters, checks, learning, predicting, and what a fitted model shows; see `OnlineLearner`.

A call is checked and labels become numbers; at the first call the parameters become a `Plan` and a `State` with the
engine that holds all that is learned. Then the engine runs.
"""
from __future__ import annotations

import copy
import copyreg
import functools
from typing import TYPE_CHECKING

import numpy as np

from onlinekernels._core.lock import TakesTurns
from onlinekernels._core.points import Rows
from onlinekernels._core.posterior import level_of
from onlinekernels.base import defaults, validation
from onlinekernels.base.labelsets import first_among_equals, label_column
from onlinekernels.base.labelvalues import plain
from onlinekernels.base.params import Parameterized, same_parameters
from onlinekernels.base.state import WarmUpRows, State
from onlinekernels.base.status import warn_once
from onlinekernels.budgets import as_budget, Recent
from onlinekernels.kernels import as_kernel
from onlinekernels.losses import as_loss
from onlinekernels.losses.base import LOG
from onlinekernels.preprocessing.encoding import as_encoder, RunningEncoder
from onlinekernels.steps import as_step

if TYPE_CHECKING:
    from onlinekernels.annotations import (
        Any, Array, ArrayLike, Budget, Callable, ClassWeight, Examples, LabelStructure, Path, RunningScaler, Self,
    )
    from typing import TypeVar

    F = TypeVar('F')
    T = TypeVar('T')

__all__ = ["learned", "only_if", "validate_coverage", "OnlineLearner"]


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
            raise AttributeError(
                f"{type(model).__name__} with the loss {model.loss!r} has no "
                f"{self.name!r}.{self.hint}"
            )
        return self.function.__get__(model, owner)


def learned(function: Callable[[Any, Any], T]) -> T:
    """A property of what is learned: `function(model, state)`, read when it is this thread's turn, so of one state."""

    @functools.wraps(function)
    def read(model):
        with model._turn:
            return function(model, model._fitted())

    return property(read)  # type: ignore[return-value]  # its value, for type checkers


def _only(y):
    """The one label or target of a list or array; an empty list, which is neither, if there is not exactly one."""
    if type(y) is np.ndarray and y.shape == (1,) and y.dtype.kind in "biufU":
        return y.item()
    if type(y) is list and len(y) == 1:
        return y[0]
    return [] if y is not None else None


def _from(row, state, X, y, weights):
    """Examples from a row on."""
    if row == 0:
        return X, y, weights
    return X[row:], y[row * state.targets :], None if weights is None else weights[row:]


def _trace_from(row, state, trace):
    """Where the engine writes about examples from a row on."""
    sizes = {"scores": state.function.width, "half_widths": state.targets}
    parts = {name: part[row * sizes.get(name, 1) :] if name != "coverage" else part for name, part in trace.items()}
    return {**parts, "earlier": row}


def _start(initial):
    """The state whose function `initial` is, apart from what that model goes on to learn; None for None.

    It is taken before a model's own turn: two models that start from each other must not wait for each other.
    """
    if initial is None:
        return None
    if type(getattr(initial, "_state", None)) is not State or not isinstance(initial, OnlineLearner):
        raise ValueError(f"initial must be a fitted model of one function. Got {initial!r} instead.")
    kept = initial.__getstate__()
    state = State.from_dict(kept["_state"])
    state.encoder = kept.get("_encoder")
    return state


def validate_coverage(coverage):
    """A share of targets to cover, in (0, 1)."""
    if not (isinstance(coverage, (int, float, np.floating)) and 0 < coverage < 1):
        raise ValueError(f"coverage must be a number in (0, 1). Got {coverage!r} instead.")
    return float(coverage)


def _task_is(*tasks):
    return lambda model: model._current_loss().task in tasks


class OnlineLearner(Parameterized, TakesTurns):
    """Base of all algorithms: everything but the rule.

    A subclass has an ``__init__`` that stores its parameters and a ``_plan`` that validates them. `_turn.alone` is to
    learn, `_turn.shared` to predict, `_turn` to look. What several algorithms have in common is described here, and in
    the docstrings of those that have it; see `onlinekernels.base.docstrings`.

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

    _budget_of_int: type[Budget] = Recent
    _default_kernel = staticmethod(defaults.kernel)
    _takes_many = False  # whether many classes are fine although the loss is of two
    _rule: Any = None  # the class of its rule
    average = False
    offset: bool | None = False
    labels: LabelStructure | None = None
    class_weight: ClassWeight | None = None
    scale: bool | str | RunningScaler = False
    scale_target: bool | str | RunningScaler = False
    encode: Any = False
    epochs = 1
    _turn: Any
    _state: Any = None  # what is learned: None until the first fit
    _encoder: Any = None  # that has seen what the state has learned; None if that was not encoded
    _pending: Any = None  # (rows to be learned, the encoder before them, and after them)

    # ---- Parameters -------------------------------------------------------------------------------------------------

    def __setattr__(self, name, value):
        """Remember that a parameter changed after fitting: the next call looks at it."""
        super().__setattr__(name, value)
        if self._state is not None and name != "_state":
            self._state.stale = True

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name, nested ones as ``kernel__width``; return self.

        On a fitted model, `step`, `regularization`, `penalty` and the `noise` of `KRLS` take effect with the next call;
        other parameters need `fit` to start anew.
        """
        with self._turn:
            super().set_params(**params)
            if self._state is not None:
                self._state.stale = True
        return self

    def _component(self, name, value):
        """The object that None, a name or a number stands for: `kernel__width` works on a default kernel too."""
        makers = {"kernel": as_kernel, "loss": as_loss, "step": as_step}
        if name == "budget" and not isinstance(value, str):
            return as_budget(value, self, self._budget_of_int)
        if name not in makers:
            return None
        return makers[name](1.0 if name == "step" and value is None else value, self)

    # ---- Learning ---------------------------------------------------------------------------------------------------

    def fit(self, X: Examples, y: Any = None, *, classes: Any = None, initial: Any = None) -> Self:
        """Forget everything, then learn X, y in the given order, `epochs` times; return self.

        Parameters
        ----------
        X : array of shape (n, n_features), or list of objects for a kernel on objects
        y : labels or targets, for a regression also a matrix of several targets; none for novelty losses
        classes : both labels, if y does not show them
        initial : a fitted model whose function is the start f_1
        """
        start = _start(initial)
        with self._turn.alone:
            before = self._state
            state, X, y, weights = self._validate_examples(None, X, y, classes, None, start, balanced=True)
            self._make_passes(before, state, X, y, weights)
            if classes is None and state.loss.task == "multiclass" and not state.labels.fixed:
                state.take_labels(state.labels.in_sorted_order())
            if state.loss.task == "novelty" and state.loss.margin_step not in (None, LOG):
                self._place_margin(state, X)
        return self

    def _make_passes(self, before, state, X, y, weights):
        """The passes of `fit`."""
        for epoch in range(self.epochs):
            self._learn(before, state, X, y, weights, earlier=epoch * len(X))

    def _place_margin(self, state, X):
        """Put the margin of a detector where a fraction nu of all rows is below it."""
        X = X if state.plan.takes_objects else state.scaled(X)
        scores = self._decision(state, X, trusted=True)[:, 0]
        state.hypothesis.set_scalar(float(np.quantile(scores, state.loss.nu)))

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None, sample_weight: ArrayLike | None = None, *,
                    initial: Any = None) -> Self:
        """Learn some more examples, as many as you like at a time; return self.

        One call with n rows gives what n calls with one row give, up to rounding, but faster.

        Parameters
        ----------
        X, y : as for `fit`
        classes : both labels, needed at most on the first call
        sample_weight : array of shape (n,), multiplies the loss of each example
        initial : on the first call, a fitted model whose function is the start f_1
        """
        start = _start(initial)
        with self._turn.alone:
            is_plain = start is classes is sample_weight is None and type(X) is np.ndarray and X.ndim == 2
            if not (is_plain and len(X) == 1 and self._learn_row(X[0], _only(y))):
                self._partial_fit(X, y, classes, sample_weight, start)
        return self

    def _partial_fit(self, X, y, classes=None, sample_weight=None, start=None):
        before = self._state
        state, X, y, weights = self._validate_examples(before, X, y, classes, sample_weight, start)
        self._learn(before, state, X, y, weights)

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
            Only classes that had joined before an example are among them; None if there were none. (An averaged
            or voting model predicts with its average, and has the labels of its latest f here.)

        Examples
        --------
        >>> from onlinekernels import SILK
        >>> scores, labels = SILK("multiclasshinge").progressive([[0], [0], [5], [5]], list("aabb"), return_labels=True)
        >>> labels.tolist()
        [None, 'a', 'a', 'b']
        """
        wanted = {"steps": return_steps, "margins": return_margins, "norms": return_norms, "labels": return_labels}
        return self._progressive((X, y, classes, sample_weight, initial), {name for name in wanted if wanted[name]})

    def _requested_outputs(self, requested):
        """(outputs wanted beside the scores, the coverage of intervals or None), from {name: value of return_name}."""
        task = self._current_loss().task
        if requested["interval"] is not None and task != "regression":
            raise ValueError("return_interval is for numbers; classes have return_proba=True.")
        if requested["proba"] and task != "multiclass":
            raise ValueError("return_proba is for classes; numbers have return_std and return_interval.")
        if requested["std"] and task == "novelty":
            raise ValueError("return_std is for numbers and classes; a detector has thresholds.")
        coverage = None if requested["interval"] is None else validate_coverage(requested["interval"])
        return {name for name, value in requested.items() if value}, coverage

    def _progressive(self, call, wanted, coverage=None):
        """`progressive`, with what is `wanted` beside the scores: in the order of the list below."""
        X, y, classes, sample_weight, initial = call
        start = _start(initial)
        with self._turn.alone:
            before = self._state
            state, X, y, weights = self._validate_examples(before, X, y, classes, sample_weight, start)
            state.make_ready()
            n_seen = state.n_classes_seen()
            scores = np.zeros((len(X), state.function.width))
            trace = {"steps": "steps" in wanted, "scalars": wanted & {"margins", "labels"}, "norms": "norms" in wanted,
                     "deviations": "std" in wanted}
            trace = {name: np.zeros(len(X)) for name, is_wanted in trace.items() if is_wanted}
            if coverage is not None:
                trace["half_widths"] = np.zeros(len(X) * state.targets)
                trace["coverage"] = level_of(coverage)
            known = self._learn(before, state, X, y, weights, scores=scores.reshape(-1), **trace)
            state = self._state
            scores, margins = scores[:, : state.n_classes_seen()], trace.get("scalars")
            units = 1.0
            if coverage is not None:
                half_widths = trace["half_widths"].reshape(len(X), -1)
                ends = state.interval(scores, half_widths, known)
            if known is not None:  # what was known of the targets before each row
                scores, units = state.target_scaler.brought_back(scores, *known)
                margins = None if margins is None else margins * units[:, 0]
            found = {"steps": trace.get("steps"), "margins": margins, "norms": trace.get("norms")}
            if "std" in wanted:
                found["std"] = state.in_units(trace["deviations"], units)
            if coverage is not None:
                found["interval"] = np.stack([state.numbers(end) for end in ends])
            if wanted & {"proba", "labels"}:
                found["labels"] = state.answers_of_their_time(scores, y, n_seen, margins)
                if "proba" in wanted:
                    found["proba"] = state.probabilities_of_their_time(scores, y, n_seen)
            scores = scores[:, 0] if state.form == "one" else state.shown(scores.T).T
        order = "steps", "margins", "norms", "std", "interval", "proba", "labels"
        others = [found[name] for name in order if name in wanted]
        return (scores, *others) if others else scores

    def learn_one(self, x: Any, y: Any = None) -> Self:
        """Learn one example, 1-d or an object, with the least overhead; return self."""
        with self._turn.alone:
            if not self._learn_row(x, y):
                self._learn_with_care(x, y)
        return self

    def _takes_one(self, state):
        """Whether one example can be learned without the ado that many need."""
        is_plain = state is not None and state.takes_one and not state.stale and state.beginning is None
        return is_plain and self.class_weight is None

    def _learn_row(self, x, y):
        """Learn a row and its label or target as they are, unless they need a longer look: whether it did."""
        state, encoder = self._state, self._encoder
        if not self._takes_one(state) or not state.takes_rows:
            return False
        x = x if encoder is None else encoder.numbers_of_one(x)
        target, engine = state.target_of(y), state.engine
        if target is None or not engine.takes(x):
            return False
        after = None if encoder is None else encoder.after_one(x)
        try:
            self._learn_one(state, engine, x, target, state)
        finally:  # a warning that is an error comes after the row is learned
            if after is not None and engine.done:
                self.__dict__["_encoder"] = after
        return True

    def _learn_with_care(self, x, y):
        """Learn one example that needs a longer look."""
        state = self._state
        if isinstance(y, (list, np.ndarray)) and np.ndim(y) > 0:
            several = self._current_loss().task == "regression" and np.size(y) > 1
            if not several or state is not None and state.targets == 1:
                raise ValueError(f"y must be one label or number for learn_one. Got {y!r} instead.")
        if self._encoder is not None or not self._takes_one(state):
            self._partial_fit(self._row(state, x), None if y is None else [y])
            return
        x = self._validate_point(state, x)
        if state.plan.scale and not state.takes_without_check(x):
            self._partial_fit(x[None], None if y is None else [y])
            return
        after, target = self._validate_target(state, y)
        self._learn_one(after, after.engine, x, target, state)

    def _learn_one(self, state, engine, x, target, before):
        """Learn one example that has been checked, in a state that may have a label more than the one before."""
        engine.done = 0
        try:
            if state is not before:
                self._state = state
                state.make_ready()
            status = engine.learn_one(x, target)
        except BaseException as error:
            state.keep_learned(before, np.array([target][: engine.done]))
            validation.tell(error, engine.done)
            raise
        if status and not state.warned:
            warn_once(state, self)

    def _row(self, state, x):
        """One example as rows of one."""
        if validation.is_sparse(x):
            return validation.check_one_row(x)
        is_row = state is not None and not state.plan.takes_objects and type(x) is np.ndarray and x.ndim == 1
        return x[None] if is_row else [x]

    # ---- Checks -----------------------------------------------------------------------------------------------------

    def _validate_examples(self, state, X, y, classes, sample_weight, start, balanced=False):
        """(state to learn in, X, y, weights), all validated; changes nothing in self.

        `start` is the state whose function the first call starts from, or None.
        """
        if self._encodes() or start is not None:
            X = self._to_learn(state, X, start, balanced)
        if state is None:
            plan = self._first_plan(y, classes)
            names = validation.feature_names(X)
            X = plan.validate_points(X)
            rows = len(X) if balanced else None  # `fit` has all there is
            unit = 1.0 if start is None else start.plan.unit
            follows = plan.follows_distances and start is None
            if follows and balanced:
                unit = defaults.unit(X)
            n_features = None if plan.takes_objects else X.shape[1]
            plan = plan.resolved(defaults.Data(n_features, rows, isinstance(X, Rows), unit))
            if start is not None:
                plan.check_start(start)
            labels = None
            if plan.loss.task in ("binary", "multiclass"):
                many = plan.loss.task == "multiclass"
                is_own = start is None or plan.labels is not None or many and classes is not None
                labels = plan.first_labels(label_column(y, len(X)), classes) if is_own else start.labels
            n_targets = 1
            if plan.loss.task == "regression":
                y = validation.as_array_once(y)
                n_targets = validation.count_targets(y)
            state = State.first(plan, X, labels, n_targets)
            state.feature_names = None if plan.takes_objects else names
            state.rows = rows
            if follows and not balanced and defaults.width(plan.kernel) is not None:
                state.beginning = WarmUpRows()
            if start is not None:
                state.begin_from(start)
        else:
            if start is not None:
                raise ValueError("initial= starts a model and this one has learned already; call fit to start anew.")
            if state.stale:
                state = state.refreshed(self)
            X = self._validate_points(state, X)
        weights = validation.check_weights(sample_weight, len(X))
        state, y = state.with_targets(len(X), y, classes)
        if self.class_weight is not None:
            weights = state.class_weights(self.class_weight, y, weights, balanced, self)
        return state, X, y, weights

    def _first_plan(self, y, classes):
        """The plan for a first call, which may depend on the labels that it shows or names."""
        return self._plan()

    def _validate_points(self, state, X, finite=True):
        """X as a fitted model takes it."""
        if state.feature_names is not None:
            validation.check_feature_names(X, state.feature_names, type(self).__name__)
        dtype = state.function.dtype
        return state.plan.validate_points(X, state.n_features, dtype, finite, type(self).__name__, state.sparse)

    def _validate_point(self, state, x):
        """x as a fitted model takes it."""
        function = state.function
        if function.takes_objects:
            return validation.check_objects([x])[0]
        if not function.is_row(x):
            x = validation.check_point(x, n_features=state.n_features, dtype=function.dtype, owner=type(self).__name__)
        if state.plan.copies_one:
            x = x.copy()
        if state.plan.restricts and not state.plan.scale:
            state.kernel.check_domain(x[None])
        return x

    def _validate_target(self, state, y):
        """(state to learn in, y as its engine takes it); changes nothing."""
        target = state.target_of(y)
        if target is not None:
            return state, target
        state, y = state.with_targets(1, None if y is None else [y], None)
        return state, y[0]

    def _learn(self, before, state, X, y, weights=None, *, earlier=0, **trace):
        """Make a state current and let its engine run, which may end in another state. An error says how many rows were
        learned, `earlier` ones of the same call included; if none were, a state from `before` the call is current
        again. Returns the means and deviations of the targets that were known before each row, if these are scaled.
        """
        done, knowns, engine = 0, [], state.engine
        is_new = before is None or before.engine is not engine
        if not state.loss.is_compiled() and isinstance(X, np.ndarray):
            X = X.copy()  # out of reach of the user's loss
        state.catch_up()  # if that was itself interrupted
        engine.done = 0
        try:
            self._state = state
            if state.beginning is not None:
                state.check_scaling(X, y, weights)  # all or nothing
            while True:
                if state.beginning is not None and state.beginning.left == 0:
                    state = self._state = state.after_first()
                    engine = state.engine
                if knowns and done == len(X):
                    break
                rows, known = state.learn(*_from(done, state, X, y, weights), **_trace_from(done, state, trace))
                done += rows  # and with nothing in between: an error says `done` and what the engine has done since
                engine.done = 0
                knowns.append(known)
            if self._pending is not None:
                self._took_in(len(X))
        except BaseException as error:
            state, learned = self._state, done + engine.done
            self._took_in(learned)
            if is_new and earlier + learned == 0:
                self._state = before
            elif earlier == 0:
                state.keep_learned(None if is_new else before, y[: learned * state.targets])
            validation.tell(error, earlier + learned)
            raise
        if state.status:
            warn_once(state, self)
        return None if knowns[0] is None else [np.concatenate(parts) for parts in zip(*knowns)]

    # ---- Encoding ---------------------------------------------------------------------------------------------------

    def _encodes(self):
        """Whether there is anything to do with rows that shall be learned."""
        return self.encode is not False or self._encoder is not None or self._pending is not None

    def _to_learn(self, state, X, start=None, whole=False):
        """Rows as numbers, each by what was known before it.

        `start` is the state that the model starts from; `whole` rows, those of `fit`, are known all or not at all.
        """
        encoder = self._encoder if state is not None else as_encoder(self.encode, self)
        if state is not None and state.stale:
            self._check_encode()
        if getattr(start, "encoder", None) is not None:
            if encoder is None:
                raise ValueError("initial= has learned from encoded rows: encode=True is needed here, too.")
            encoder = start.encoder
        if encoder is None or validation.is_sparse(X):
            self.__dict__["_pending"] = None, encoder, encoder
            return X
        table = encoder.table(X)
        ahead, rows = encoder.advanced(table)
        self.__dict__["_pending"] = None if whole else table, encoder, ahead
        return rows

    def _numbers_of_one(self, state, x):
        """x as one row of numbers that is learned or evaluated as it is; None if that takes a longer look."""
        if self._encoder is not None:
            x = self._encoder.numbers_of_one(x)
        return x if x is not None and state.feature_names is None and state.composition.takes(x) else None

    def _check_encode(self):
        """ValueError if `encode` is not what it was when the model began."""
        wanted = as_encoder(self.encode, self)
        is_other = (wanted is None) != (self._encoder is None)
        if is_other or wanted is not None and not same_parameters(wanted, self._encoder):
            raise ValueError(
                f"The 'encode' parameter changed after fitting, to {self.encode!r}; call fit to start anew."
            )

    def _took_in(self, rows):
        """So many of the rows that were encoded last are learned; may be called again."""
        if self._pending is not None and rows > 0:
            table, before, after = self._pending
            part = table is not None and rows < len(table)
            self.__dict__.update(_encoder=before.advanced(table[:rows])[0] if part else after, _pending=None)

    def _to_predict(self, X):
        """Rows as numbers, by what is known now. Of a model of sparse rows the encoder has seen nothing."""
        passes = self._encoder is None or self._encoder._state is None or validation.is_sparse(X)
        return X if passes else self._encoder.encoded(X)

    def take_encoder(self, encoder: Any) -> Any:
        """Go on with an encoder from a file; ValueError if it does not make the rows that the state has learned."""
        if encoder.n_features_out_ != self._state.n_features:
            raise ValueError("the encoder does not fit the number of features")
        self.__dict__["_encoder"] = encoder

    @property
    def encoder_(self) -> Any:
        """A copy of the encoder, with ``encode=True``; its `feature_names_out` tells what the model sees."""
        if self._encoder is None:
            raise AttributeError("encoder_ exists only for a model that has learned from encoded rows.")
        fresh = RunningEncoder(**self._encoder.get_params(deep=False))
        fresh._state = self._encoder._state
        return fresh

    # ---- Predicting -------------------------------------------------------------------------------------------------

    def predict(self, X: Examples) -> Any:
        """Labels, targets, or +1 (ordinary) and -1 (novel) for the rows of X."""
        with self._turn.shared:
            state = self._fitted()
            return state.answers(self._scores(state, X))

    def predict_one(self, x: Any) -> Any:
        """Prediction for one example, 1-d or an object."""
        with self._turn.shared:
            state = self._fitted()
            row = None if self._encoder is None else self._encoder.numbers_of_one(x)
            if row is not None and state.takes_rows and state.function.is_row(row):
                scores = self._decision(state, state.scaled(row.reshape(1, -1)), trusted=True)
            elif state.sparse or self._encoder is not None:
                scores = self._scores(state, self._row(state, x))
            elif state.plan.takes_objects:
                scores = self._decision(state, [self._validate_point(state, x)])
            else:
                row = self._validate_point(state, x).reshape(1, -1)
                scores = self._decision(state, state.scaled(row), trusted=True)
            return plain(state.answers(scores)[0])

    @only_if(_task_is("binary", "multiclass", "novelty"), " A regressor has predict.")
    def decision_function(self, X: Examples) -> Array:
        """Scores: positive for the second of two classes, or for ordinary examples (f - rho).

        A loss of many classes gives one column per class; scikit-learn's one number for two classes if
        `fit` or `classes=` says that there are two.
        """
        with self._turn.shared:
            state = self._fitted()
            scores = self._scores(state, X)
            if state.loss.task == "multiclass":
                labels, scores = state.labels, state.shown(scores.T).T
                is_fixed = labels.fixed or labels.class_order is not None
                return scores[:, 1] - scores[:, 0] if is_fixed and scores.shape[1] == 2 else scores
            return np.subtract(*state.detected(scores)) if state.loss.task == "novelty" else scores[:, 0]

    @only_if(_task_is("novelty"))
    def fit_predict(self, X: Examples, y: Any = None) -> Array:
        """`fit`, then `predict`: +1 for the ordinary and -1 for the novel rows of X."""
        return self.fit(X).predict(X)

    @only_if(_task_is("novelty"))
    def score_samples(self, X: Examples) -> Array:
        """f(x): the lower, the more novel."""
        with self._turn.shared:
            state = self._fitted()
            return state.detected(self._scores(state, X))[0]

    @only_if(
        lambda model: model._current_loss().probabilistic,
        ' Probabilities come with the loss "logistic" for two classes, "multiclass_logistic" or '
        '"multiclass_squared" for many.',
    )
    def predict_proba(self, X: Examples) -> Array:
        """Probabilities of the classes, shape (n, n_classes)."""
        with self._turn.shared:
            state = self._fitted()
            scores = self._scores(state, X)
            if state.loss.task == "multiclass":
                shown = state.shown(state.loss.probabilities(scores).T).T
                return first_among_equals(shown, state.labels.first_of_best(scores))
        scores = scores[:, 0]
        return first_among_equals(state.loss.probabilities(scores), (scores > 0).astype(np.intp))

    @only_if(_task_is("binary", "multiclass", "regression"))
    def score(self, X: Examples, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Accuracy of a classifier, coefficient of determination R^2 of a regressor (its mean over targets)."""
        with self._turn.shared:
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

    def _scores(self, state, X):
        """Scores of all rows, shape (n, outputs)."""
        if self._encoder is not None:
            X = self._to_predict(X)
        if state.plan.takes_objects:
            return self._decision(state, validation.check_objects(X))
        if state.plan.scale:
            return self._decision(state, state.scaled(self._validate_points(state, X)), trusted=True)
        points = self._validate_points(state, X, finite=not state.function.notices_bad_points)
        try:
            return self._decision(state, points)
        except FloatingPointError:
            points = self._validate_points(state, X)  # NaN or infinity: say so
            return self._decision(state, points, trusted=True)

    def _decision(self, state, examples, **how):
        """Scores of examples that have been checked and scaled; columns of labels that are yet to join are left out."""
        scores = state.engine.decision(examples, **how)
        return scores if state.form == "one" or state.labels is None else scores[:, : len(state.labels.order)]

    def _current_loss(self):
        """The current loss: of the fitted model, else as the parameters say."""
        if self._state is not None:
            return self._state.loss
        return as_loss(getattr(self, "loss", None), self)

    def _fitted(self):
        if self._state is None:
            raise validation.not_fitted(self)
        return self._state

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

    @learned
    def n_terms_(self, state: Any) -> int:
        """Number of terms in the expansion; 0 where weights replace them."""
        return state.representation.n_terms(state)

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
        with self._turn.shared:
            state = self._fitted()
            points, alpha = state.representation.terms(state)
            return state.contributions(self._to_predict(self._row(state, x)), points, alpha, top, label)

    @learned
    def knots_(self, state: Any) -> Any:
        """Distinct values of each coordinate among the terms of an additive model, ascending."""
        return self._additive().representation.knots(state)

    @only_if(lambda model: model._additive() is not None)
    def component(self, j: int, grid: Any) -> Any:
        """f_j of an additive model: its part that depends on coordinate j, at the values in grid.

        The components and the intercept add up to f.

        Returns
        -------
        array of shape (len(grid),), or (len(grid), n_classes) for many classes
        """
        grid = np.asarray(grid, dtype=float)
        if grid.ndim != 1 or not np.isfinite(grid).all():
            raise ValueError(f"grid must be a 1-d array of finite numbers. Got {grid!r} instead.")
        with self._turn:
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
    def t_(self, state: Any) -> int:
        """Number of examples learned."""
        return state.hypothesis.t

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
    def n_features_in_(self, state: Any) -> int:
        """Number of features, of encoded rows that of their columns; does not exist for a kernel on objects."""
        if self._encoder is not None:
            return self._encoder.n_features_in_
        if state.n_features is None:
            raise AttributeError("A kernel on objects has no number of features.")
        return state.n_features

    @learned
    def feature_names_in_(self, state: Any) -> Any:
        """Names of the columns, if the model saw a data frame first."""
        if self._encoder is not None:
            return self._encoder.feature_names_in_
        if state.feature_names is None:
            raise AttributeError("feature_names_in_ exists only for models that have seen a data frame first.")
        return np.array(state.feature_names, dtype=object)

    @learned
    def classes_(self, state: Any) -> Any:
        """The labels of a classifier; of two, the second is the positive one."""
        if state.labels is None:
            raise AttributeError("classes_ exists for classifiers only.")
        return (state.labels.classes if state.form == "one" else state.labels.classes[: state.n_classes_seen()]).copy()

    @learned
    def margin_(self, state: Any) -> Any:
        """Current margin rho of a loss that has one; an adapted one of the averaged hypothesis with average=True."""
        return self._scalar(state, "margin")

    @learned
    def width_(self, state: Any) -> Any:
        """Current width (epsilon, sigma) of a loss that has one; an adapted one is averaged with average=True."""
        return self._scalar(state, "width")

    @learned
    def offset_(self, state: Any) -> Any:
        """rho of a novelty loss: decision_function = score_samples - offset_."""
        if state.loss.task != "novelty":
            raise AttributeError("offset_ exists for novelty losses only; see intercept_.")
        return state.scalar()

    @staticmethod
    def _scalar(state, name):
        if state.loss.scalar_name != name:
            raise AttributeError(f"The loss {state.loss!r} has no {name}.")
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
            input_tags=InputTags(
                sparse=as_kernel(self.kernel, self).on_inner_products(),
                **dict.fromkeys(("allow_nan", "string", "categorical", "dict"), bool(self.encode)),
            ),
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

        with self._turn:
            save(self, path)

    def __reduce_ex__(self, protocol):
        return copyreg.__newobj__, (type(self),), self.__getstate__()

    def __getstate__(self):
        with self._turn:
            state = self.get_params(deep=False)
            if self._state is not None:
                state["_state"] = self._state.to_dict()
                if self._encoder is not None:
                    state["_encoder"] = self._encoder
        return state

    def __setstate__(self, state):
        state = dict(state)
        learned = state.pop("_state", None)
        self.__dict__.update(state)
        if learned is not None:
            self.__dict__["_state"] = self._restored(learned)

    def _restored(self, learned):
        """The state that a dictionary describes; ValueError if its parts do not fit each other."""
        return State.from_dict(learned)
