"""The default ensembles: a classifier and a regressor that need no tuning."""
from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import partial
from numbers import Integral
from typing import TYPE_CHECKING

import numpy as np

from onlinekernels.base import validation
from onlinekernels._core.combiners import (
    Calibration, IntervalTracker, PriorCorrection, RecursiveLeastSquares, TargetFences,
)
from onlinekernels._core.ensemble import Ensemble, LastTarget, Member
from onlinekernels._core.smoother import Smoothing
from onlinekernels._core.transforms import NormalScores, Relevance, SeriesDifferences
from onlinekernels.ensemble.stacking import SHARE, SHORT, EnsembleEstimator, class_stack, named, number_settings
from onlinekernels.ensemble.members import check_effort, class_members, line_members, MOST, number_members
from onlinekernels.base.composite import uncorrected
from onlinekernels.base.estimator import only_if, validate_coverage
from onlinekernels.base.members import built, task_of
from onlinekernels.base.labelvalues import plain
from onlinekernels.losses import MulticlassSquared, Squared

if TYPE_CHECKING:
    from onlinekernels.annotations import Any, Array, ClassWeight, Examples, Members, Path, RunningEncoder, Self

NEIGHBOURS, ERRORS = 10, 500  # how near errors count for the local deviation, and how many are kept
PATHS = 400  # of a series that are simulated
THRESHOLDS = (None, "balanced", "f1")


class DefaultEnsemble(EnsembleEstimator):
    """Base of the models that need no tuning.

    Parameters
    ----------
    effort : "low", "medium" or "high"
        How many members there are, and so how long an example takes: about 16, 42 or 100 times as long as with one
        `SILK`.
    members : dict of str to model, list of models or None
        Members of your own instead. None is for those that were chosen for this effort.
    """

    _task: str | None = None
    _takes_sparse = True

    def _settings(self):
        check_effort(self)
        members = None if self.members is None else named(self.members, self)
        if members is not None and task_of(next(iter(members.values()))) != self._task:
            raise validation.bad_parameter(self, "members", f"models for {self._task}", self.members)
        return {"effort": self.effort, "members": members}

    def _first_plan(self, X, y, classes):
        plan = self._plan()
        plan.sparse = validation.is_sparse(X)
        return plan

    def _built(self, plan, X, targets, default, learned):
        """(members, {name: Transform}, which member knows how relevant features are and what the last target says)."""
        if plan.members is not None:
            models = {name: (model, None) for name, model in plan.members.items()}
        else:
            is_local = self._is_local(plan, X.shape[1])
            models = default(plan.effort, X.shape[1]) if is_local else line_members(self._task, scale=not plan.sparse)
        d, wanted = X.shape[1], {through for _, through in models.values()}
        kinds = {"ranks": NormalScores, "relevance": Relevance,
                 "differences": lambda d: SeriesDifferences(d, d - plan.lags * targets, targets)}
        transforms = {name: kind(d) for name, kind in kinds.items() if name in wanted}
        relevance, last = "self-tuned" if "relevance" in transforms else None, None
        members, place = built(models, transforms, X, targets, learned), 0
        for member in members if plan.members is None else ():
            place = member.backend.stagger(place)
        if plan.members is None and not plan.sparse:
            last = LastTarget(self._task, targets, d, in_rows=plan.lags is not None)
            members.append(Member("last target", last, "numbers" if targets else "labels"))
            if learned is not None:
                members[-1].go_on_from(learned["t"], range(learned["n_seen"]))
        return members, transforms, {"relevance": relevance, "last": last}

    @staticmethod
    def _is_local(plan, d):
        """Whether there are distances between rows with d features."""
        return not plan.sparse and d <= MOST

    def _own_loss(self):
        return MulticlassSquared() if self._task == "classes" else Squared()

    def report(self, path: Path | None = None) -> Any:
        """One screen about what happened: who speaks, how good each is, what drifted when, which features matter.

        Parameters
        ----------
        path : str, path or None
            Where to write a picture of it, such as "report.png"; needs matplotlib.

        Returns
        -------
        str
        """
        with self._lock:
            state = self._fitted()
            backend = state.backend
            weights, errors = backend.combiner.weights().mean(axis=0), self._errors(state)
            word = "mistakes" if backend.task == "classes" else "mean squared error"
            lines = [f"{type(self).__name__}, effort {self.effort!r}: {backend.t} examples, {state.n_features} "
                     f"features, {word} {errors[1]:.4g}"]
            if backend.task == "classes":
                lines.append(f"classes: {', '.join(map(str, state.labels.classes[: state.n_classes_seen()][:12]))}")
            if not self._is_local(state.plan, backend.n_features):
                lines.append("rows are sparse or long: lines alone")
            lines.append(f"{'member':<22}{'weight':>9}{'error':>11}")
            for i in np.argsort(-np.abs(weights)):
                member = backend.members[i]
                status = f"  disabled: {member.status}" if member.disabled else ""
                lines.append(f"{member.name:<22}{weights[i]:>9.2f}{errors[0][member.name]:>11.4g}{status}")
        lines.append("changes: " + (", ".join(f"at {row}" for row in self.changes_[-8:]) or "none was noticed"))
        relevance = self.relevance_
        if relevance:
            best = sorted(relevance.items(), key=lambda item: -item[1])[:8]
            lines.append("features that matter: " + ", ".join(f"{name} {share:.0%}" for name, share in best))
        if path is not None:
            self.plot()[0].figure.savefig(path)
        return "\n".join(lines)

    @property
    def relevance_(self) -> Any:
        """How much each feature counts for distances, {name: share}, as the self-tuned member has learned it, of a
        column with words or dates all that it became; empty without one."""
        tuned = self.named_members_.get("self-tuned")
        if tuned is None or tuned._state is None:
            return {}
        with self._lock:
            lags, shares = self._names_of_lags(), list(tuned.relevance_.values())
            own = len(shares) - len(lags)
            return {**self._by_column(self._state, shares[:own]), **dict(zip(lags, shares[own:], strict=True))}

    def _names_of_lags(self):
        """Names of the features of a time series that are its own past."""
        return []


@dataclass(eq=False, repr=False)
class OnlineKernelClassifier(DefaultEnsemble):
    """A classifier for streams that needs no tuning: a dozen kernel models, stacked and calibrated.

    Two or many classes, which may join at any time. Gaussian and Laplacian posteriors with and without memory, behind
    plain and fading scalers and running ranks, a kernel that learns itself, local averages, and lines; a combiner that
    forgets learns whom to trust (`Stacking`). `predict_proba` is held to what happened on the stream.

    For sparse rows, and for more than 1000 features, the members are lines alone.

    Parameters
    ----------
    {effort}
    threshold : None, "balanced" or "f1"
        What predictions are best for: few mistakes; few mistakes in each class, however rare; or the F1 of the rarer of
        two classes. Probabilities are the same.
    {members} {class_weight} {encode} {n_jobs} {epochs}

    {Attributes}

    See Also
    --------
    Stacking : members of your own choice.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinekernels import OnlineKernelClassifier
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> y = np.where(np.hypot(X[:, 0], X[:, 1]) < 1.2, "inside", "outside")
    >>> model = OnlineKernelClassifier(effort="low").partial_fit(X, y)
    >>> model.predict([[0.0, 0.0], [2.0, 2.0]]).tolist()
    ['inside', 'outside']
    >>> bool(model.error_ < 0.15)
    True
    """

    _task = "classes"
    effort: str = "medium"
    _: KW_ONLY
    threshold: str | None = None
    members: Members | None = None
    class_weight: ClassWeight | None = None
    encode: bool | RunningEncoder = True
    n_jobs: int = 1
    epochs: int = 1

    def _settings(self):
        if self.threshold is not None and (not isinstance(self.threshold, str) or self.threshold not in THRESHOLDS):
            raise validation.bad_parameter(self, "threshold", 'None, "balanced" or "f1"', self.threshold)
        return {**super()._settings(), "threshold": self.threshold}

    def _begin(self, plan, X, targets, learned=None):
        members, transforms, known = self._built(plan, X, targets, class_members, learned)
        correction = None if plan.threshold is None else PriorCorrection(plan.threshold)
        n_features = 0 if plan.sparse else X.shape[1]
        return Ensemble(members, class_stack(len(members), SHORT), "classes", 0, n_features, transforms=transforms,
                        calibration=Calibration(), correction=correction, **known)

    def predict_proba(self, X: Examples) -> Array:
        """Probabilities of the classes, shape (n, n_classes), held to how often such ones were right on the stream."""
        if self._fitted().plan.threshold is None:
            return super().predict_proba(X)
        with self._lock.shared:
            state = self._fitted()
            scores = self._scores(state, X)
            scores = uncorrected(scores, state.backend.correction.factors(scores.shape[1]))
            return state.shown(state.loss.probabilities(scores).T).T


@dataclass(eq=False, repr=False)
class OnlineKernelRegressor(DefaultEnsemble):
    """A regressor for streams that needs no tuning: half a dozen kernel models and a line, stacked.

    One or several targets. These are scaled as they come; members learn targets clipped to a fence about the
    prediction, 3 times the 95 % quantile of recent residuals, and nothing of those far beyond, unless three in a row
    are beyond it, or errors nearby were large, too. Where targets are very skewed, predictions lie between their median
    and their mean. `predict_interval` covers what it says on the stream: its width is the error that is usual, times
    what errors nearby were, times what would have covered the last 500. As long as no target was negative, no
    prediction is, and no interval begins below 0.

    For sparse rows, and for more than 1000 features, the members are lines alone.

    With `lags`, the targets are a time series and its last values are the features: ``partial_fit(y)`` and
    ``progressive(y)`` take the series alone, ``partial_fit(X, y)`` rows beside it that are known before each value.
    Some members predict by how much the next value differs from the last. A value that is missing (NaN) is predicted
    through. ``predict()`` is the next value; ``forecast(5)``, or ``predict(X)`` with a row for each, the next ones,
    each from those predicted before it.

    Parameters
    ----------
    {effort}
    lags : int or None
        How many of its last values a time series is predicted from; at least 1. None for rows that have no order.
    {members} {encode} {n_jobs} {epochs}

    {Attributes}

    See Also
    --------
    Stacking : members of your own choice.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinekernels import OnlineKernelRegressor
    >>> X = np.random.default_rng(0).uniform(-2, 2, size=(400, 2))
    >>> y = 100 * np.sin(2 * X[:, 0]) + X[:, 1]
    >>> model = OnlineKernelRegressor(effort="low").partial_fit(X, y)
    >>> bool(model.error_ < 0.2 * y.var())
    True
    >>> low, high = model.predict_interval([[0.5, 0.0]])
    >>> bool(low < 100 * np.sin(1.0) < high)
    True

    A time series:

    >>> series = np.sin(0.3 * np.arange(300))
    >>> model = OnlineKernelRegressor("low", lags=8).partial_fit(series)
    >>> bool(np.abs(model.forecast(5) - np.sin(0.3 * np.arange(300, 305))).max() < 0.1)
    True
    """

    _task = "numbers"
    class_weight = None

    effort: str = "medium"
    _: KW_ONLY
    lags: int | None = None
    members: Members | None = None
    encode: bool | RunningEncoder = True
    n_jobs: int = 1
    epochs: int = 1

    def _settings(self):
        lags = None if self.lags is None else validation.check_count(self, "lags")
        if lags is not None and self.epochs != 1:
            raise ValueError(f"The 'epochs' parameter of {type(self).__name__} must be 1 with lags: a series has one "
                             f"beginning. Got {self.epochs!r} instead.")
        return {**super()._settings(), "lags": lags}

    def _begin(self, plan, X, targets, learned=None):
        if plan.lags:
            X = np.zeros((min(1, len(X)), plan.row_length(X.shape[1], targets)))
        default = partial(number_members, series=plan.lags is not None)
        members, transforms, known = self._built(plan, X, targets, default, learned)
        d, nearby = X.shape[1], None
        if self._is_local(plan, d):
            rows = {"n_features": d, "targets": targets, "rate": 0.5, "city_block": False, "size": ERRORS,
                    "neighbour": NEIGHBOURS}
            nearby = Smoothing("numbers", rows, 1.0)
        combiner = RecursiveLeastSquares(len(members), targets, number_settings(SHORT), SHARE)
        return Ensemble(members, combiner, "numbers", targets, 0 if plan.sparse else d, transforms=transforms,
                        nearby=nearby, lags=plan.lags or 0, intervals=IntervalTracker(targets, of_positive=True),
                        fences=TargetFences(targets), **known)

    # ---- Time series --------------------------------------------------------------------------

    def _validate_examples(self, state, X, y, *others, **keywords):
        if self.lags is not None:
            if validation.is_sparse(X):
                raise ValueError("X must be a dense array beside the lags of a series. Got a sparse matrix instead.")
            X, y = (None, X) if y is None else (X, y)
            y = validation.as_array_once(y)
            if np.ndim(y) not in (1, 2):
                raise ValueError("y must be a series of numbers, 1-d or with a column for each target. Got "
                                 f"{y!r} instead.")
            X = _nothing(len(y)) if X is None else X
            holes = np.isnan(y) if y.dtype.kind == "f" else np.zeros(np.shape(y), dtype=bool)
            state, X, y, weights = super()._validate_examples(state, X, np.where(holes, 0.0, y) if holes.any() else y,
                                                              *others, **keywords)
            return state, X, np.where(holes.reshape(y.shape), np.nan, y) if holes.any() else y, weights
        return super()._validate_examples(state, X, y, *others, **keywords)

    def _to_learn(self, state, X, *others, **keywords):
        if not self._stands_alone(X):
            return super()._to_learn(state, X, *others, **keywords)
        self.__dict__["_uncommitted"] = None
        return X

    def _stands_alone(self, X):
        """Whether there is a series, and no features beside it."""
        return self.lags is not None and isinstance(X, np.ndarray) and X.shape[1:] == (0,)

    def _member_row(self, state, x):
        row = _nothing(1) if x is None and self.lags is not None else super()._member_row(state, x)
        return state.backend.next_rows(row) if state.plan.lags else row

    def _known(self, state, X):
        if X is None and state.plan.lags is not None:
            if state.n_features:
                raise ValueError("X must have a row for each value to predict, as beside the series when it was "
                                 "learned. Got None instead.")
            X = _nothing(1)
        return super()._known(state, X)

    def learn_one(self, x: Any, y: Any = None) -> Self:
        """Learn one example, 1-d; return self. With `lags`, ``learn_one(y)`` is the next value of a series, or
        None where it is missing."""
        if self.lags is None or x is not None and y is not None:
            return super().learn_one(x, y)
        y = x if y is None else y
        if y is None:
            targets = 1 if self._state is None else self._state.targets
            y = np.nan if targets == 1 else [np.nan] * targets
        return self.partial_fit(None, [y])

    def predict(self, X: Examples | None = None, return_std: bool = False) -> Any:
        """Targets for the rows of X; with return_std=True also standard deviations of y, noise included.

        With `lags`, the values that follow what was learned, one for each row of X, and without X the next one.
        Deviations are for the next one alone: those of later ones would have to count the errors before them.
        """
        self._check_next(X, return_std)
        return super().predict(X, return_std)

    def predict_one(self, x: Any = None) -> Any:
        """Prediction for one example, 1-d; with `lags` and without x the next value."""
        return plain(self.predict()[0]) if x is None else super().predict_one(x)

    def predict_interval(self, X: Examples | None = None, coverage: float = 0.9) -> Array:
        self._check_next(X, True)
        return super().predict_interval(X, coverage)

    predict_interval.__doc__ = EnsembleEstimator.predict_interval.__doc__

    def _check_next(self, X, with_deviations):
        if with_deviations and self.lags is not None and X is not None and len(X) > 1:
            raise ValueError("deviations and intervals of a series are for its next value: X must have one row. "
                             f"Got {len(X)} instead.")

    @only_if(lambda model: model.lags is not None, " It needs lags.")
    def forecast(self, steps: int = 1, return_interval: float | None = None) -> Any:
        """The next values of a series, each from those predicted before it: shape (steps,) or (steps, n_targets).

        Where the series was learned with rows beside it, use `predict` with the rows that come next.

        Parameters
        ----------
        steps : int
            How many; at least 1.
        return_interval : float or None
            Also return an interval for each, (2, steps) or (2, steps, n_targets), that covers this part of ways on
            which the series may go on: 400 simulated ones, with innovations of the past. One way leaves some of them
            more often than that.
        """
        if isinstance(steps, bool) or not isinstance(steps, Integral) or steps < 1:
            raise ValueError(f"steps must be an integer of at least 1. Got {steps!r} instead.")
        if self._fitted().n_features:
            raise ValueError("this series was learned with rows beside it: call predict(X) with a row for each step.")
        if return_interval is None:
            return self.predict(_nothing(steps))
        coverage = validate_coverage(return_interval)
        with self._lock.shared:
            state = self._fitted()
            scores = self._scores(state, _nothing(steps))
            paths = state.backend.simulated(int(steps), PATHS, state.t)
            low, high = np.quantile(paths, [0.5 - 0.5 * coverage, 0.5 + 0.5 * coverage], axis=0)
            ends = np.minimum(low, scores), np.maximum(high, scores)
            return state.answers(scores), np.stack([state.numbers(end) for end in ends])

    def _names_of_lags(self):
        lags, targets = self._state.plan.lags or 0, self._state.targets
        names = ["y"] if targets == 1 else [f"y{target}" for target in range(targets)]
        return [f"{name}-{lag}" for lag in range(lags, 0, -1) for name in names]


def _nothing(n):
    """So many rows without features, beside which a series stands alone."""
    return np.zeros((n, 0))
