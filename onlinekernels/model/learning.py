"""How a model learns: a call is checked, labels become numbers, and the engine runs.

At the first call the parameters become a `Plan`, and a `State` with the engine that holds all that is learned.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlinekernels import validation
from onlinekernels._core.points import Rows
from onlinekernels._core.posterior import level_of
from onlinekernels.model import defaults
from onlinekernels.model.beginning import Beginning
from onlinekernels.model.labels import label_column
from onlinekernels.model.state import State
from onlinekernels.model.trouble import warn_once
from onlinekernels.nouns.losses.contract import LOG

if TYPE_CHECKING:
    from onlinekernels.annotations import Any, ArrayLike, Examples, Self

__all__ = ["Learning", "checked_coverage"]


class Learning:
    """`fit`, `partial_fit`, `progressive` and `learn_one`, for a class that has a `_plan`, a `_turn` and a `_state`."""

    _turn: Any

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
            state, X, y, weights = self._checked(None, X, y, classes, None, start, balanced=True)
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
        state, X, y, weights = self._checked(before, X, y, classes, sample_weight, start)
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
            |f_t| in the kernel's Hilbert space, before each update; of several outputs, the root of the sum of squares. From
            one row to the next it takes O(1) where no budget drops terms, and O(terms^2) kernel values otherwise.
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

    def _checked_wishes(self, wishes):
        """(names of what is wanted beside the scores, the coverage of intervals or None), from {name: wish}."""
        task = self._current_loss().task
        if wishes["interval"] is not None and task != "regression":
            raise ValueError("return_interval is for numbers; classes have return_proba=True.")
        if wishes["proba"] and task != "multiclass":
            raise ValueError("return_proba is for classes; numbers have return_std and return_interval.")
        if wishes["std"] and task == "novelty":
            raise ValueError("return_std is for numbers and classes; a detector has thresholds.")
        coverage = None if wishes["interval"] is None else checked_coverage(wishes["interval"])
        return {name for name, wish in wishes.items() if wish}, coverage

    def _progressive(self, call, wanted, coverage=None):
        """`progressive`, with what is `wanted` beside the scores: in the order of the list below."""
        X, y, classes, sample_weight, initial = call
        start = _start(initial)
        with self._turn.alone:
            before = self._state
            state, X, y, weights = self._checked(before, X, y, classes, sample_weight, start)
            state.make_ready()
            joined = state.joined()
            scores = np.zeros((len(X), state.function.width))
            trace = {"steps": "steps" in wanted, "scalars": wanted & {"margins", "labels"}, "norms": "norms" in wanted,
                     "deviations": "std" in wanted}
            trace = {name: np.zeros(len(X)) for name, is_wanted in trace.items() if is_wanted}
            if coverage is not None:
                trace["half_widths"] = np.zeros(len(X) * state.targets)
                trace["coverage"] = level_of(coverage)
            known = self._learn(before, state, X, y, weights, scores=scores.reshape(-1), **trace)
            state = self._state
            scores, margins = scores[:, : state.joined()], trace.get("scalars")
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
                found["labels"] = state.answers_of_their_time(scores, y, joined, margins)
                if "proba" in wanted:
                    found["proba"] = state.probabilities_of_their_time(scores, y, joined)
            scores = scores[:, 0] if state.form == "one" else state.shown(scores.T).T
        others = [found[name] for name in ("steps", "margins", "norms", "std", "interval", "proba", "labels") if name in wanted]
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
        self._learn_one(state, engine, x, target, state)
        if after is not None:
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
        x = self._checked_one(state, x)
        if state.plan.scale and not state.takes_without_check(x):
            self._partial_fit(x[None], None if y is None else [y])
            return
        after, target = self._checked_target(state, y)
        self._learn_one(after, after.engine, x, target, state)

    def _learn_one(self, state, engine, x, target, before):
        """Learn one example that has been checked, in a state that may have a label more than the one before."""
        engine.done = 0
        try:
            if state is not before:
                self._state = state
                state.make_ready()
            trouble = engine.learn_one(x, target)
        except BaseException as error:
            state.keep_learned(before, np.array([target][: engine.done]))
            validation.tell(error, engine.done)
            raise
        if trouble and not state.warned:
            warn_once(state, self)

    def _row(self, state, x):
        """One example as rows of one."""
        if validation.is_sparse(x):
            return validation.check_one_row(x)
        is_row = state is not None and not state.plan.takes_objects and type(x) is np.ndarray and x.ndim == 1
        return x[None] if is_row else [x]

    # ---- Checks -------------------------------------------------------------------------------

    def _checked(self, state, X, y, classes, sample_weight, start, balanced=False):
        """(state to learn in, X, y, weights), all validated; changes nothing in self.

        `start` is the state whose function the first call starts from, or None.
        """
        if self._encodes() or start is not None:
            X = self._to_learn(state, X, start, balanced)
        if state is None:
            plan = self._first_plan(y, classes)
            names = validation.feature_names(X)
            X = plan.checked_points(X)
            rows = len(X) if balanced else None  # `fit` has all there is
            unit = 1.0 if start is None else start.plan.unit
            follows = plan.follows_distances and start is None
            if follows and balanced:
                unit = defaults.unit(X)
            plan = plan.settled(defaults.Data(None if plan.takes_objects else X.shape[1], rows, isinstance(X, Rows), unit))
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
                state.beginning = Beginning()
            if start is not None:
                state.begin_from(start)
        else:
            if start is not None:
                raise ValueError("initial= starts a model and this one has learned already; call fit to start anew.")
            if state.stale:
                state = state.refreshed(self)
            X = self._checked_points(state, X)
        weights = validation.check_weights(sample_weight, len(X))
        state, y = state.with_targets(len(X), y, classes)
        if self.class_weight is not None:
            weights = state.class_weights(self.class_weight, y, weights, balanced, self)
        return state, X, y, weights

    def _first_plan(self, y, classes):
        """The plan for a first call, which may depend on the labels that it shows or names."""
        return self._plan()

    def _checked_points(self, state, X, finite=True):
        """X as a fitted model takes it."""
        if state.feature_names is not None:
            validation.check_feature_names(X, state.feature_names, type(self).__name__)
        dtype = state.function.dtype
        return state.plan.checked_points(X, state.n_features, dtype, finite, type(self).__name__, state.sparse)

    def _checked_one(self, state, x):
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

    def _checked_target(self, state, y):
        """(state to learn in, y as its engine takes it); changes nothing."""
        target = state.target_of(y)
        if target is not None:
            return state, target
        state, y = state.with_targets(1, None if y is None else [y], None)
        return state, y[0]

    def _learn(self, before, state, X, y, weights=None, *, earlier=0, **trace):
        """Put a state in force and let its engine run, which may end in another state. An error says how many rows were
        learned, `earlier` ones of the same call included; if none were, a state from `before` the call is in force again.
        Returns the means and deviations of the targets that were known before each row, if these are scaled.
        """
        done, known, knowns, engine = 0, None, [], state.engine
        is_new = before is None or before.engine is not engine
        if not state.loss.is_compiled() and isinstance(X, np.ndarray):
            X = X.copy()  # out of reach of the user's loss
        if state.beginning_after is not None:  # catching up was itself interrupted
            state.catch_up()
        engine.done = 0
        try:
            self._state = state
            if state.beginning is not None:
                state.check_scaling(X, y, weights)  # all or nothing
            while state.beginning is not None and done < len(X):
                if state.beginning.left > 0:
                    rows, known = state.learn_first(*_from(done, state, X, y, weights), **_trace_from(done, state, trace))
                    done += rows  # and with nothing in between: an error says `done` and what the engine has done since
                    engine.done = 0
                    knowns.append(known)
                if state.beginning.left == 0:
                    state = self._state = state.after_first()
                    engine = state.engine
            if done == 0:
                known = state.learn(X, y, weights, **trace)
            elif done < len(X):
                knowns.append(state.learn(*_from(done, state, X, y, weights), **_trace_from(done, state, trace)))
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
        if state.hypothesis.trouble:
            warn_once(state, self)
        return known if not knowns or knowns[0] is None else [np.concatenate(parts) for parts in zip(*knowns)]


def _only(y):
    """The one label or target of a list or array; an empty list, which nobody takes for one, if there is no such thing."""
    if type(y) is np.ndarray and y.shape == (1,) and y.dtype.kind in "biufU":
        return y.item()
    if type(y) is list and len(y) == 1:
        return y[0]
    return [] if y is not None else None


def _from(row, state, X, y, weights):
    """Examples from a row on."""
    return (X, y, weights) if row == 0 else (X[row:], y[row * state.targets :], None if weights is None else weights[row:])


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
    if type(getattr(initial, "_state", None)) is not State or not isinstance(initial, Learning):
        raise ValueError(f"initial must be a fitted model of one function. Got {initial!r} instead.")
    kept = initial.__getstate__()
    state = State.from_dict(kept["_state"])
    state.encoder = kept.get("_encoder")
    return state


def checked_coverage(coverage):
    """A share of targets to cover, in (0, 1)."""
    if not (isinstance(coverage, (int, float, np.floating)) and 0 < coverage < 1):
        raise ValueError(f"coverage must be a number in (0, 1). Got {coverage!r} instead.")
    return float(coverage)
