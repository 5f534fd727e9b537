"""The kernel that learns itself."""
from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING

import numpy as np

from onlinekernels.base import validation
from onlinekernels._core.ensemble import SelfTuning, tuned_member
from onlinekernels._core.transforms import Metric
from onlinekernels.algorithms.evidence import Evidence, Features, Settings, learned_metric, spread_out, standard_targets
from onlinekernels.algorithms.krls import KRLS
from onlinekernels.base.composite import CombinedEstimator
from onlinekernels.base.defaults import Data
from onlinekernels.base.estimator import learned
from onlinekernels.base.labelsets import ManyLabels
from onlinekernels.base.state import State
from onlinekernels.base.status import shared_status, warn_of_members
from onlinekernels.kernels import Constant, Gaussian, Laplacian, Linear
from onlinekernels.losses import MulticlassSquared, Squared
from onlinekernels.preprocessing.scaling import RunningScaler

if TYPE_CHECKING:
    from onlinekernels.annotations import Any, ClassWeight, RunningEncoder, Self

KINDS = {"own": ("own",), "gradient": ("gradient",), "auto": ("own", "gradient")}
PLAIN = "plain"  # the member whose kernel is not learned
FEWEST = 24  # points of it

# Evidence does not know the budget: few points must not trust rows too much.
LEAST_NOISE = {"numbers": 0.1, "classes": 0.03}
MIXTURE = ((0.2, 0.5), (0.5, 1.0), (0.5, 2.5))  # shares and widths of the kernel: the metric is never exactly right
WORTH = 10.0  # nats of evidence by which another kernel must be better, once replaying it forgets what is kept no more


# ---- Members ---------------------------------------------------------------------------------------------------------


def mixture(amplitude=1.0, distance=1.0):
    """The kernel of a self-tuned posterior, for points that are about so far apart."""
    parts = [(amplitude * share) * Gaussian(width * distance) for share, width in MIXTURE]
    return parts[0] + parts[1] + parts[2] + Constant(1.0)


class Posterior:
    """A `KRLS` as a member of an ensemble; `targets` is 0 for labels."""

    def __init__(self, krls, n_features, targets):
        self.n_features, self.targets = n_features, targets
        plan = krls._plan().resolved(Data(n_features, None, False, 1.0))
        labels = None if targets else ManyLabels([], False)
        self.state = State(plan, n_features, np.dtype(float), None, labels, False, max(1, targets))

    def member(self, name, labels=(), disabled=None):
        """The member; `labels` are codes of those that it knows."""
        return tuned_member(name, self.state.engine, self, labels, disabled)

    @property
    def n_terms(self):
        """Number of its points."""
        return self.state.representation.n_terms(self.state)

    def to_dict(self):
        """What is learned, as plain values, components and arrays."""
        return {"model": self.state.to_dict()}

    def restore(self, saved):
        """Go on from what `to_dict` gave; ValueError if its parts do not fit each other."""
        state, own = State.from_dict(saved["model"]), self.state
        if (state.n_features, state.targets, state.loss.task) != (own.n_features, own.targets, own.loss.task):
            raise ValueError("a member is for other rows or targets")
        self.state = state

    def _check(self):
        self.state.engine._check()


class Tuned(Posterior):
    """A posterior in a metric that was learned: `KRLS` behind fixed features, a linear map, and units of the targets.

    Before the first refresh there is none of these: features and targets are scaled as they come, and the metric is
    None. Later it is (features, axes, settings along them, centre and unit of the targets).
    """

    def __init__(self, budget, n_features, targets, metric=None):
        self.metric, self.transform = metric, None
        self.unit = np.ones(targets)
        self.map = np.eye(n_features) / math.sqrt(n_features)  # distances are |u map - v map|
        self.axes, self.settings = None, np.zeros(n_features + 4)
        loss = "squared" if targets else "multiclass_squared"
        if metric is None:
            kernel = mixture(distance=math.sqrt(n_features))
            krls = KRLS(loss, kernel, budget=budget, scale=True, scale_target=targets > 0)
        else:
            self.features, self.axes, self.settings, self.centre, self.unit = metric
            scales, amplitude, noise, forgetting = Settings(n_features).values(self.settings)
            self.map = self.axes * scales
            self.transform = Metric(self.features, self.map)
            least = LEAST_NOISE["numbers" if targets else "classes"]
            krls = KRLS(loss, mixture(amplitude), noise=max(noise, least), memory=math.exp(-forgetting), budget=budget)
        super().__init__(krls, n_features, targets)

    def member(self, name, labels=(), disabled=None):
        fixed = None if self.metric is None or not self.targets else (self.centre, self.unit)
        return tuned_member(name, self.state.engine, self, labels, disabled, self.transform, fixed)

    def values(self):
        """(scales along the axes, amplitude, noise, forgetting) that were learned; before that what they begin with."""
        return Settings(self.n_features).values(self.settings)

    def evidence(self, X, y, times, weights, coded):
        """Minus the log evidence of rows under the current kernel, in units of y; infinite before there is one."""
        if self.metric is None:
            return math.inf
        Y = (y - self.centre) / self.unit if self.targets else coded
        evidence = Evidence(self.features(X) @ self.axes, Y, times, weights)
        return evidence.with_prior(self.settings)[0] + len(X) * float(np.log(self.unit).sum())

    def summary(self, share):
        """(roots of the metric's diagonal, noise, memory, share), for its share among those that learn a kernel."""
        _, _, noise, forgetting = self.values()
        return np.sqrt((self.map**2).sum(axis=1)), noise, math.exp(-forgetting), share

    def to_dict(self):
        found = super().to_dict()
        if self.metric is not None:
            found["metric"] = {"axes": self.axes, "settings": self.settings, "centre": self.centre, "unit": self.unit}
            found["features"] = self.features.state()
            found["model"]["target_scaler"] = None  # it stands still
        return found

    @staticmethod
    def metric_of(saved, n_features, targets):
        """The metric that `to_dict` described, or None; ValueError if its parts do not fit each other."""
        if "metric" not in saved:
            return None
        d, values = n_features, []
        for name, shape in {"axes": (d, d), "settings": (d + 4,), "centre": (targets,), "unit": (targets,)}.items():
            values.append(np.array(saved["metric"][name], dtype=float))
            if values[-1].shape != shape or not np.isfinite(values[-1]).all():
                raise ValueError(f"the {name} of a metric are not numbers of shape {shape}")
        if not (values[-1] > 0.0).all():
            raise ValueError("the units of the targets are not positive")
        if not are_axes(values[0]):
            raise ValueError("the axes of a metric are not orthonormal")
        return Features.restored(saved["features"], d), *values

    def _check(self):
        super()._check()
        assert self.axes is None or are_axes(self.axes)


def are_axes(axes):
    """Whether columns are orthonormal."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.allclose(axes.T @ axes, np.eye(len(axes)), atol=1e-8)


class Maker:
    """How the members of a `SelfTuned` are made, saved and restored; `targets` is 0 for labels."""

    def __init__(self, kinds, budget, n_features, targets):
        self.kinds, self.budget, self.n_features, self.targets = kinds, budget, n_features, targets

    def first_members(self):
        """Members that have learned nothing, the plain one last."""
        return [*(self._tuned(None).member(kind) for kind in self.kinds), self._plain().member(PLAIN)]

    def _tuned(self, metric):
        return Tuned(self.budget, self.n_features, self.targets, metric)

    def _plain(self):
        """Its kernel is not learned: city-block distances and a line, behind a scaler that forgets as it does."""
        each, few = 1.0 / self.n_features, max(FEWEST, self.budget // 4)
        loss, noise = ("squared", 0.1) if self.targets else ("multiclass_squared", 0.3)
        krls = KRLS(loss, Laplacian(each) + each * Linear() + 1.0, noise=noise, memory=0.99, budget=few, tolerance=2e-2,
                    scale=RunningScaler(0.99), scale_target=self.targets > 0)
        return Posterior(krls, self.n_features, self.targets)

    def renewed(self, olds, rows, sampled, is_full, alarm):
        """Members for rows (X, y, weights), step by step: None after each step, and (kind, member) when there is one.

        The member is None if its kernel is no better than that of the old one, and that remembers more than these rows
        (`is_full`). After an alarm nothing is gone on from. Disabled members are made anew, the plain one too.
        """
        X, y, weights = rows
        features = Features(X)
        Y, centre, unit = standard_targets(y, weights, self.targets)
        there = spread_out(weights, sampled)
        sample = features(X[there]), Y[there], there.astype(float), weights[there]
        yield None
        if olds[PLAIN].disabled:
            yield PLAIN, self._plain().member(PLAIN)
        for kind in self.kinds:
            member, old = olds[kind], olds[kind].model
            start = (None, None) if alarm or old.metric is None else (old.axes, old.settings)
            axes, settings, value = yield from learned_metric(sample, kind == "gradient", *start)
            value += len(there) * float(np.log(unit).sum())
            stays = is_full and not member.disabled
            if stays and old.evidence(X[there], y[there], *sample[2:], sample[1]) < value + WORTH:
                yield kind, None
            else:
                yield kind, self._tuned((features, axes, settings, centre, unit)).member(kind)

    def work_of_row(self):
        """Multiplications that a row takes which a member replays, about."""
        return 8.0 * (self.budget + 64) ** 2

    def units(self, members):
        """In what losses of several targets are measured, so that they can be added."""
        return members[0].model.unit if self.targets > 1 else np.ones(max(1, self.targets))

    # ---- State ----

    def state_of(self, member):
        """What a member has learned, by name."""
        if not self.targets:
            member.model.state.labels = ManyLabels(member.label_codes, False)
        return {**member.model.to_dict(), "status": member.status}

    def restored(self, name, saved, n_labels):
        """The member that `state_of` described, where `n_labels` were seen; ValueError if its parts do not fit."""
        model = self._plain() if name == PLAIN else self._tuned(Tuned.metric_of(saved, self.n_features, self.targets))
        model.restore(saved)
        codes = () if self.targets else model.state.labels.order
        if not all(type(code) is int and 0 <= code < n_labels for code in codes):
            raise ValueError("the labels of a member are none")
        if not (saved["status"] is None or isinstance(saved["status"], str)):
            raise ValueError("it does not say why a member is disabled")
        return model.member(name, codes, saved["status"])

    def state_of_history(self, refreshes):
        """What was learned when, as arrays."""
        seen = [[np.concatenate([root, others]) for root, *others in kinds] for _, _, kinds in refreshes]
        return {"times": np.array([t for t, _, _ in refreshes], dtype=np.int64),
                "alarms": np.array([alarm for _, alarm, _ in refreshes], dtype=bool),
                "seen": np.array(seen).reshape(len(refreshes), len(self.kinds), self.n_features + 3)}

    def history_of(self, state):
        """The same as it was; ValueError if its parts do not fit each other."""
        times, alarms, seen = (np.asarray(state[name]) for name in ("times", "alarms", "seen"))
        if not len(times) == len(alarms) == len(seen) or seen.shape[1:] != (len(self.kinds), self.n_features + 3):
            raise ValueError("the history does not fit the features")
        if (np.diff(times, prepend=1) < 0).any():
            raise ValueError("the history has times that are not in order")
        if not np.isfinite(seen).all() or (seen < 0.0).any() or (seen[..., -3:-1] == 0.0).any():
            raise ValueError("the history has numbers out of range")
        return [(int(t), bool(alarm), tuple((row[:-3].copy(), *map(float, row[-3:])) for row in kinds))
                for t, alarm, kinds in zip(times, alarms, seen, strict=True)]


def together(seen):
    """The same of several as of one: squares of the roots, and logarithms of the others, on average."""
    shares = np.array([share for *_, share in seen])
    roots = np.array([root for root, *_ in seen])
    noise, forgetting = np.array([[n, -math.log(m)] for _, n, m, _ in seen]).T
    noise, forgetting = (math.exp(shares @ np.log(np.maximum(part, 1e-300))) for part in (noise, forgetting))
    return np.sqrt(shares @ roots**2), noise, math.exp(-forgetting)


def learned_now(tuning):
    """(metric, noise, memory) of the learned members of a `SelfTuning` together."""
    models, shares = [member.model for member in tuning.members[: len(tuning.kinds)]], tuning.learned_shares()
    metric = sum(share * model.map @ model.map.T for share, model in zip(shares, models, strict=True))
    return metric, *together([model.summary(share) for model, share in zip(models, shares, strict=True)])[1:]


# ---- The estimator ---------------------------------------------------------------------------------------------------


@dataclass(eq=False, repr=False)
class SelfTuned(CombinedEstimator):
    """A posterior that learns its kernel on the stream: which features matter, how noisy y is, how fast to forget.

    Nothing has to be set. After 100, 200, 400, ... examples, at most 4000 apart, the latest are looked at as a whole:
    their evidence, the probability of all of them under a kernel, is followed uphill as a function of one scale for
    each axis, of the amplitude, the noise and the forgetting. Then a new posterior replays them in the new metric and
    goes on. In between it is an ordinary `KRLS`.

    Beside it is a plain posterior with a short memory, for what changes faster than a kernel can be learned; answers
    are a combination of all by least squares. After an abrupt change (the loss of the last 64 examples is twice the
    usual, and the plain posterior is better) only the latest examples are kept, and the kernel is learned anew.

    Results do not depend on how a stream is cut into calls.

    Parameters
    ----------
    loss : Squared, MulticlassSquared, "squared", "multiclass_squared" or None
        The first is for numbers, one or several, the second for two or many classes. None is for numbers.
    axes : "auto", "own" or "gradient"
        What has a scale each: the features themselves ("own"), or the directions in which f changes most and least
        ("gradient": eigenvectors of the average outer product of its gradient), for relevance that is not along
        features. "auto" learns both.
    budget : int
        How many points each learned posterior may have.
    window : int
        How many examples are kept to learn the kernel from; at least 100.
    frozen : bool
        Keep the kernel as it is: no examples are looked at again until this is False. It may be set at any time.
    {class_weight} {encode} {epochs}

    {Attributes}

    See Also
    --------
    KRLS : the posterior with a kernel of your own.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinekernels import SelfTuned
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(800, 5))
    >>> y = np.sin(3 * X[:, 1]) + 0.1 * rng.normal(size=800)        # one feature of five
    >>> model = SelfTuned()
    >>> scores = model.progressive(X, y)
    >>> bool(np.mean((scores[400:] - y[400:]) ** 2) < 0.05)
    True
    >>> max(model.relevance_, key=model.relevance_.get)
    'x1'
    """

    loss: Any = None
    _: KW_ONLY
    axes: str = "auto"
    budget: int = 150
    window: int = 2000
    frozen: bool = False
    class_weight: ClassWeight | None = None
    encode: bool | RunningEncoder = False
    epochs: int = 1

    def _settings(self):
        loss = self._own_loss()
        if type(loss) not in (Squared, MulticlassSquared):
            expected = "one whose posterior is Gaussian: 'squared' for numbers, 'multiclass_squared' for classes"
            raise validation.bad_parameter(self, "loss", expected, loss)
        if not isinstance(self.axes, str) or self.axes not in KINDS:
            raise validation.bad_parameter(self, "axes", '"auto", "own" or "gradient"', self.axes)
        validation.check_flag(self, "frozen")
        return {"axes": self.axes,
                "budget": validation.check_count(self, "budget"),
                "window": validation.check_integer(self, "window", 100)}

    def _begin(self, plan, X, targets, learned=None):
        kinds, n_features = KINDS[plan.axes], X.shape[1]
        return SelfTuning(Maker(kinds, plan.budget, n_features, targets), kinds, plan.window, n_features, targets)

    def _set_up(self, state):
        state.backend.frozen = bool(self.frozen)

    def _warn(self, state):
        warn_of_members(state, shared_status([member.model.state for member in state.backend.members]), self)

    def refresh(self) -> Self:
        """Learn the kernel from the examples that are kept, now; return self.

        The next time is counted from here as if this had been one of the fixed times.
        """
        with self._lock.alone:
            self._fitted().backend.refresh()
        return self

    # ---- What was learned ---------------------------------------------------------------------

    @learned
    def n_terms_(self, state: Any) -> int:
        """Number of points of all members."""
        return sum(member.model.n_terms for member in state.backend.members)

    @learned
    def relevance_(self, state: Any) -> Any:
        """How much each feature counts for distances, {name: share}: they sum to 1. Learned members count as in
        `weights_`. A column that was encoded counts as all that it became, one that never changed not at all."""
        shares = state.backend.relevance()
        *_, first, second = state.backend.members[-1].model.state.scaler.numbers[:4]
        shares[first == second] = 0.0
        return self._by_column(state, (shares / max(shares.sum(), 1e-300)).tolist())

    @learned
    def metric_(self, state: Any) -> Any:
        """M such that the squared distance of rows is (u - v)^T M (u - v), u and v their features on one footing."""
        return learned_now(state.backend)[0]

    @learned
    def noise_(self, state: Any) -> Any:
        """The variance of y about f that was learned, where the variance of y is 1."""
        return learned_now(state.backend)[1]

    @learned
    def memory_(self, state: Any) -> Any:
        """What is left of f's variance after one example, as it was learned."""
        return learned_now(state.backend)[2]

    @learned
    def history_(self, state: Any) -> Any:
        """What was learned when: {"t", "alarm", "relevance", "noise", "memory"}, arrays with one entry a refresh."""
        history = state.backend.refreshes
        found = [together(kinds) for _, _, kinds in history]
        roots = np.array([root for root, _, _ in found]).reshape(len(history), state.n_features)
        return {"t": np.array([t for t, _, _ in history], dtype=np.int64),
                "alarm": np.array([alarm for _, alarm, _ in history], dtype=bool),
                "relevance": roots / roots.sum(axis=1, keepdims=True),
                "noise": np.array([noise for _, noise, _ in found]),
                "memory": np.array([memory for _, _, memory in found])}
