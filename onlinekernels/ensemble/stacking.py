"""Ensembles of any models: stacked, or weighed by Hedge."""
from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING

import numpy as np

from onlinekernels.base import validation
from onlinekernels._core.combiners import (
    AveragedRanks, ExponentialWeights, IntervalTracker, OnlineNewton, RecursiveLeastSquares,
)
from onlinekernels._core.ensemble import Ensemble
from onlinekernels.base.composite import CombinedEstimator, CompositeState
from onlinekernels.base.estimator import Estimator, learned
from onlinekernels.base.members import built, fitted_member, fresh, Prefit, shown, task_of
from onlinekernels.losses import MulticlassSquared, NuNovelty, Squared
from onlinekernels.base.validation import check_fraction

if TYPE_CHECKING:
    from onlinekernels.annotations import Any, ClassWeight, Members, RunningEncoder, Self

SHORT, SHARE = 0.998, 1e-3
LOSSES = {"classes": MulticlassSquared, "numbers": Squared}


def class_settings(memory):
    """(memory, prior) of fits that run side by side: with this memory, and with others 4 and 20 times as long.

    The priors were chosen on the streams that docs/tutorials/default-ensembles.md names.
    """
    longer, longest = (1.0 - (1.0 - memory) / times for times in (4.0, 20.0))
    return [(memory, 0.3), (longest, 3.0), (longer, 3.0), (longest, 30.0)]


def number_settings(memory):
    """The same for numbers: with this memory and one four times as long, each with a weak and a strong prior."""
    return [(kept, prior) for kept in (memory, 1.0 - 0.25 * (1.0 - memory)) for prior in (3.0, 30.0)]


def class_stack(n, memory):
    """The combiner of n members for classes. All fits but one see log odds, which is what rare classes need."""
    return OnlineNewton(n, class_settings(memory), SHARE, odds=[True, True, False, True])


class EnsembleEstimator(CombinedEstimator):
    """Base of estimators that combine members: who they are, what they said, how they did.

    Parameters
    ----------
    n_jobs : int
        How many threads members learn in; at least 1. It may be set at any time. Chunks of fewer than 16 rows are
        learned in one, and so are members with a loss or kernel of yours. Answers are the same.
    """

    loss = None  # that of the members' task
    class_weight: ClassWeight | None = None

    @learned
    def named_members_(self, state: Any) -> Any:
        """The members as they are now, {name: model}; to look at."""
        found = {member.name: shown(member) for member in state.backend.members}
        return {name: model for name, model in found.items() if model is not None}

    @learned
    def disabled_(self, state: Any) -> Any:
        """Members that failed and take part no more, {name: why}."""
        return {member.name: member.status for member in state.backend.members if member.disabled}

    @learned
    def errors_(self, state: Any) -> Any:
        """The mean error of each member, {name: error}: mistakes, or squared errors."""
        return self._errors(state)[0]

    @learned
    def error_(self, state: Any) -> Any:
        """The mean error of all together."""
        return self._errors(state)[1]

    @staticmethod
    def _errors(state):
        backend = state.backend
        if backend.task == "novelty":
            raise AttributeError("A detector is told nothing to be wrong about, and has no errors.")
        means = (backend.losses / max(1, backend.t) / max(1, backend.targets)).tolist()
        return dict(zip(_names(backend), means[:-1], strict=True)), means[-1]

    @learned
    def history_(self, state: Any) -> Any:
        """How weights and errors went: {"t", "weights" (times, members), "errors" (times, members), "error"}.

        Weights are as of t, of several targets their mean; errors are means since the entry before.
        """
        history, n = state.backend.history, len(state.backend.members)
        times = np.array([t for t, _, _ in history], dtype=np.int64)
        losses = np.array([losses for _, _, losses in history]).reshape(len(times), n + 1)
        rows = np.diff(times, prepend=0)[:, None]
        errors = np.diff(losses, axis=0, prepend=0.0) / rows / max(1, state.backend.targets)
        weights = np.array([weights.mean(axis=0) for _, weights, _ in history]).reshape(len(times), n)
        return {"t": times, "weights": weights, "errors": errors[:, :-1], "error": errors[:, -1]}

    def plot(self, axes: Any = None) -> Any:
        """Draw who counted when, and how each did; return the two axes. Needs matplotlib.

        Parameters
        ----------
        axes : two matplotlib axes or None
        """
        from matplotlib import pyplot

        history, names = self.history_, list(self.named_members_)
        if axes is None:
            _, axes = pyplot.subplots(2, 1, sharex=True, figsize=(8, 6), layout="constrained")
        styles = ["-", "--", "-.", ":"]
        for i, name in enumerate(names):
            look = {"color": f"C{i % 10}", "linestyle": styles[i // 10 % 4], "linewidth": 1.0}
            axes[0].plot(history["t"], history["weights"][:, i], label=name, **look)
            axes[1].plot(history["t"], history["errors"][:, i], **look)
        axes[1].plot(history["t"], history["error"], color="black", linewidth=2.0, label="all together")
        axes[0].set_ylabel("weight")
        axes[1].set(ylabel="error", xlabel="examples")
        axes[0].legend(fontsize=7, ncols=2)
        axes[1].legend(fontsize=7)
        return axes

    def contributions(self, x: Any, label: Any = None) -> Any:
        """What each member adds to the answer for one example, {name: share}; for a detector, its rank.

        Shares sum to the prediction of a number, to what `Hedge` says of a label, and otherwise to the log odds of the
        label. What is not linear, as the mixture of several weights, is divided in proportion to their sizes.

        Parameters
        ----------
        x : 1-d array
        label : for classes, the label that they speak for; None means the one that is predicted
        """
        with self._lock.shared:
            state = self._fitted()
            backend = state.backend
            row = self._member_row(state, x)
            scores = backend.members_scores(row)[0]
            weights = backend.combiner.weights()
            if backend.task == "novelty":
                member_answers = backend.combiner.each.ranks(scores[None, :, 0])[0] * weights[0]
            elif backend.task == "classes":
                combined = self._known_rows(state, row)[0]
                place = state.output(combined, label)
                if isinstance(backend.combiner, ExponentialWeights):
                    member_answers = weights[0] * scores[:, place]
                    total = combined[0, place]
                else:
                    others = np.delete(np.arange(scores.shape[1]), place)
                    likely = 0.5 * (1.0 + combined[0]) + 1e-12
                    against = likely[others].sum() + 1e-12
                    rest = scores[:, others] @ (likely[others] / against)
                    member_answers = weights[0] * (scores[:, place] - rest)
                    total = np.log(likely[place] / against)
                member_answers = adding_up(member_answers, total)
            else:
                member_answers = adding_up(weights.T * scores, self._known_rows(state, row)[0][0])
                member_answers = member_answers[:, 0] if state.targets == 1 else member_answers
        shares = [value if np.ndim(value) else float(value) for value in member_answers]
        return dict(zip(_names(backend), shares, strict=True))

    def _set_up(self, state):
        state.backend.n_jobs = self.n_jobs


def adding_up(shares, total):
    """Shares (members, ...) with what is missing to their total divided in proportion to their sizes."""
    sizes = np.abs(shares) + 1e-300
    return shares + (total - shares.sum(axis=0)) * sizes / sizes.sum(axis=0)


def _names(backend):
    return [member.name for member in backend.members]


def named(members, owner):
    """{name: model} from a list or dictionary of models, which have one task; copies that have learned nothing."""
    return {name: fresh(model) for name, model in as_given(members, owner).items()}


def as_given(members, owner):
    """The same, the models themselves."""
    expected = "a list of models of this library, or a dictionary {name: model}, of one task"
    if not isinstance(members, (list, tuple, dict)) or not members:
        raise validation.bad_parameter(owner, "members", expected, members)
    models = list(members.values() if isinstance(members, dict) else members)
    for model in models:
        if not isinstance(model, Estimator):
            raise validation.bad_parameter(owner, "members", expected, model)
    if isinstance(members, dict):
        names = list(members)
    else:
        kinds = [type(model).__name__.lower() for model in models]
        names = [kind if kinds.count(kind) == 1 else f"{kind}-{kinds[:i].count(kind) + 1}"
                 for i, kind in enumerate(kinds)]
    if not all(isinstance(name, str) and name and "/" not in name for name in names):
        raise validation.bad_parameter(owner, "members", "a dictionary whose keys are names without '/'", names)
    tasks = {task_of(model) for model in models}
    if len(tasks) > 1:
        raise ValueError(f"The 'members' parameter of {type(owner).__name__} must have one task. "
                         f"Got {' and '.join(sorted(tasks))}.")
    return dict(zip(names, models, strict=True))


class _OfMembers(EnsembleEstimator):
    """What `Stacking` and `Hedge` share.

    Parameters
    ----------
    members : list of models, or dict of str to model
        They must have one task: classes (losses of two or many), numbers, or novelty. The ensemble has copies of its
        own, which begin with nothing; `from_fitted` is for models that have learned already. Their parameters say how
        they learn, `scale=True` for example.
    """

    @classmethod
    def from_fitted(cls, members: Members, *, frozen: bool = False, **parameters: Any) -> Self:
        """An ensemble of models that have learned already, each on its own part of the data, say.

        It can predict at once, and `partial_fit` or `progressive` go on from there: the combiner begins with equal
        weights and learns whom to trust, while members learn on. `t_`, `errors_` and `history_` count from there, too.
        The ensemble has copies; the models themselves stay as they are. What holds for all models holds here: `fit`
        forgets everything, what members had learned included, and so does a clone.

        Parameters
        ----------
        members : list of fitted models, or dict of str to fitted model
            Of one task, with the same number of features and of targets. Labels may be in another order. A member that
            has not met some of them yet will, unless its labels are fixed: two of a loss of two classes, or all that
            were named in ``classes=``. Those must agree.
        frozen : bool
            Members do not learn any more, the combiner alone does. If they learn on, it is from the same rows, and they
            come to err alike; where nothing drifts that costs more than it gains.
        **parameters
            Of the ensemble.

        Examples
        --------
        >>> import numpy as np
        >>> from onlinekernels import KRLS, Stacking
        >>> X = np.random.default_rng(0).normal(size=(1200, 2))
        >>> y = np.sin(2 * X[:, 0]) + X[:, 1]
        >>> parts = {"left": X[:, 0] < 0, "right": X[:, 0] > 0}
        >>> members = {name: KRLS(budget=30).fit(X[rows][:400], y[rows][:400]) for name, rows in parts.items()}
        >>> model = Stacking.from_fitted(members)
        >>> scores = model.progressive(X[1000:], y[1000:])
        >>> bool(np.mean((scores - y[1000:]) ** 2) < 0.1 * y.var()), members["left"].t_, model.named_members_["left"].t_
        (True, 400, 600)
        """
        ensemble = cls(members, **parameters)
        known = Prefit(as_given(members, ensemble), frozen)
        ensemble.members = named(members, ensemble)
        if ensemble.encode is not False:
            raise ValueError("encode= is for ensembles that begin with nothing: these members know what numbers to "
                             "expect.")
        plan = ensemble._plan()
        members = [fitted_member(name, model, frozen) for name, model in known.models.items()]
        targets, n_labels = (known.targets, 0) if known.labels is None else (0, len(known.labels.order))
        backend = ensemble._combined(plan, members, known.n_features, targets, n_labels)
        ensemble._state = CompositeState(plan, known.n_features, known.labels, known.targets, backend)
        ensemble._state.feature_names = known.feature_names
        return ensemble

    def _own_loss(self):
        models = named(self.members, self)
        task = task_of(next(iter(models.values())))
        if task == "novelty":
            nus = [getattr(model._current_loss(), "nu", 0.01) for model in models.values()]
            return NuNovelty(float(np.mean(nus)))
        return LOSSES[task]()

    def _begin(self, plan, X, targets, learned=None):
        models = {name: (model, None) for name, model in plan.members.items()}
        return self._combined(plan, built(models, {}, X, targets, learned), X.shape[1], targets)

    def _combined(self, plan, members, n_features, targets, n_labels=0):
        """The ensemble of some members, which know `n_labels` labels already."""
        if plan.nu:
            return Ensemble(members, AveragedRanks(len(members), nu=plan.nu), "novelty", 1, n_features)
        task, intervals = ("numbers", IntervalTracker(targets)) if targets else ("classes", None)
        combiner = self._combiner(plan, len(members), targets)
        return Ensemble(members, combiner, task, targets, n_features, intervals=intervals, n_seen=n_labels)

    def _settings(self):
        validation.check_count(self, "n_jobs")
        loss = self._own_loss()
        nu = float(loss.nu) if loss.task == "novelty" else 0.0
        return {"members": named(self.members, self), "nu": nu}

    def _combiner(self, plan, n, targets):
        raise NotImplementedError

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name; with `deep` also those of members that have names, as ``members__name__kernel``."""
        params = super().get_params(deep=False)
        if deep and isinstance(self.members, dict):
            for name, model in self.members.items():
                if hasattr(model, "get_params"):
                    params.update({f"members__{name}__{key}": value for key, value in model.get_params().items()})
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name; those of members that have names as ``members__name__kernel``; return self."""
        inner: dict[str, Any] = {}
        for key in [key for key in params if key.startswith("members__")]:
            name, _, rest = key.removeprefix("members__").partition("__")
            members = params.get("members", self.members)
            if not (isinstance(members, dict) and name in members and rest):
                raise ValueError(f"{type(self).__name__} has no parameter {key!r}.")
            inner.setdefault(name, {})[rest] = params.pop(key)
        super().set_params(**params)
        for name, values in inner.items():
            self.members[name].set_params(**values)
        return self


@dataclass(eq=False, repr=False)
class Stacking(_OfMembers):
    """An ensemble whose combiner learns how much to trust each member, and forgets.

    Members learn for themselves. Classes: their scores F, cut to [-1, 1], give p = softmax(sum_i w_i F_i), and w
    follows the log loss by online Newton steps that leak back to equal weights. Numbers: least squares on how members
    differ from their mean, which leak in the same way. Four settings, with this memory and longer ones (4 times; for
    classes also 20 times) and weak and strong priors, run side by side and are mixed by Bayes' rule. Novelty:
    logarithms of the ranks of the members' scores, averaged.

    Members that fail, because they diverge, or a loss or kernel of yours refuses a row, are disabled with a warning,
    and the ensemble goes on; without any it answers the running mean or the most frequent class. Results do not depend
    on how a stream is cut into calls.

    Parameters
    ----------
    {members}
    memory : float
        What is left of a row's weight in the combiner after one more; in (0, 1).
    {class_weight} {encode} {n_jobs} {epochs}

    {Attributes}

    See Also
    --------
    Hedge : weights with a guarantee, and more errors.
    OnlineKernelClassifier, OnlineKernelRegressor, OnlineKernelDetector : with members that were chosen for you.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinekernels import KRLS, Laplacian, PassiveAggressive, Stacking
    >>> X = np.random.default_rng(0).normal(size=(600, 2))
    >>> y = np.where(X[:, 0] * X[:, 1] > 0, "same", "other")
    >>> curved = KRLS("multiclass_squared", Laplacian(1.0) + 1)
    >>> members = {"curved": curved, "straight": PassiveAggressive("hinge", "linear")}
    >>> model = Stacking(members).partial_fit(X, y)
    >>> bool(model.weights_["curved"] > 2 * abs(model.weights_["straight"])), bool(model.error_ < 0.2)
    (True, True)
    """

    members: Members
    _: KW_ONLY
    memory: float = SHORT
    class_weight: ClassWeight | None = None
    encode: bool | RunningEncoder = False
    n_jobs: int = 1
    epochs: int = 1

    def _settings(self):
        return {**super()._settings(), "memory": check_fraction(self, "memory")}

    def _combiner(self, plan, n, targets):
        if targets:
            return RecursiveLeastSquares(n, targets, number_settings(plan.memory), SHARE)
        return class_stack(n, plan.memory)


@dataclass(eq=False, repr=False)
class Hedge(_OfMembers):
    """An ensemble with exponential weights: it loses little more than its best member, whatever happens.

    w_i <- w_i exp(-rate loss_i), then each gives up `share` of its weight to all, so that another member may take the
    lead (Herbster and Warmuth 1998, "Tracking the best expert"). Answers are weighted means of what members say. Losses
    are convex: for classes 1/8 [(1 - F_label)^2 + (1 + the largest other F)^2] of scores cut to [-1, 1], for numbers
    half the squared error in units of the usual one. Then

        loss <= loss of any member + (log m + T log 1 / (1 - share)) / rate + rate / 8 sum_t range_t^2

    holds for every stream of T rows, where range_t is by how much the members' losses differ at t; see
    `onlinekernels.bounds.hedge_regret`. `Stacking` has no such bound, and usually fewer errors.

    Parameters
    ----------
    {members}
    rate : float or None
        How fast weights follow losses; positive. None is 2 for classes, 0.5 for numbers.
    share : float
        In (0, 1).
    votes : bool
        For classes: what counts is which label a member says, not how loudly. Losses are then mistakes, and the
        ensemble makes few more than twice as many as its best member (Littlestone and Warmuth 1994, "The weighted
        majority algorithm"); see `onlinekernels.bounds.majority_mistakes`.
    {class_weight} {encode} {n_jobs} {epochs}

    {Attributes}

    See Also
    --------
    Stacking : no guarantee, and fewer errors.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinekernels import Hedge, PassiveAggressive, bounds
    >>> X = np.random.default_rng(0).normal(size=(600, 2))
    >>> y = np.where(X[:, 0] > 0, "right", "left")
    >>> members = {"a": PassiveAggressive("hinge", "linear"), "b": PassiveAggressive("hinge", "linear", penalty=1e-4)}
    >>> model = Hedge(members).partial_fit(X, y)
    >>> regret = bounds.hedge_regret(members=2, examples=600, rate=model.rate_, share=1e-3,
    ...                              squared_ranges=model.squared_ranges_)
    >>> bool(model.loss_ <= min(model.member_losses_.values()) + regret)
    True
    """

    members: Members
    _: KW_ONLY
    rate: float | None = None
    share: float = SHARE
    votes: bool = False
    class_weight: ClassWeight | None = None
    encode: bool | RunningEncoder = False
    n_jobs: int = 1
    epochs: int = 1

    def _settings(self):
        settings, task = super()._settings(), self._own_loss().task
        if task == "novelty":
            raise ValueError("Hedge weighs members by their losses, and detectors are told nothing to lose by. "
                             "Stacking averages their ranks.")
        if validation.check_flag(self, "votes") and task == "regression":
            raise ValueError("votes=True is for members that say a class, and these say numbers.")
        rate, share = validation.check_positive.or_none(self, "rate"), check_fraction(self, "share")
        return {**settings, "rate": rate, "share": share, "votes": bool(self.votes)}

    def _combiner(self, plan, n, targets):
        rate = plan.rate
        if rate is None:
            rate = 0.5 if targets else 2.0
        return ExponentialWeights(n, targets, rate, plan.share, plan.votes)

    @learned
    def loss_(self, state: Any) -> Any:
        """The sum of its losses; of several targets, of all of them."""
        return float(state.backend.combiner.own.sum())

    @learned
    def member_losses_(self, state: Any) -> Any:
        """The sums of the members' losses, {name: loss}; a member that is disabled loses what the ensemble does."""
        return dict(zip(_names(state.backend), state.backend.combiner.losses.sum(axis=0).tolist(), strict=True))

    @learned
    def squared_ranges_(self, state: Any) -> Any:
        """The sum of squared differences between the largest and the smallest loss at each row."""
        return float(state.backend.combiner.ranges.sum())

    @learned
    def rate_(self, state: Any) -> Any:
        """The current rate."""
        return state.backend.combiner.rate
