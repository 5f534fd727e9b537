"""A stream that is learned by a posterior whose kernel is learned as well: when, from which rows, and when to begin anew."""
import math

import numpy as np

from onlinekernels.algorithms.recursive import KRLS
from onlinekernels.algorithms.renewal import Renewal
from onlinekernels.model.composition import checked_rows
from onlinekernels.model.posteriors import Posterior, Posteriors
from onlinekernels.nouns.kernels import Constant, Gaussian, Laplacian, Linear
from onlinekernels.nouns.scaling import RunningScaler
from onlinekernels.selftuning.evidence import Evidence, Settings
from onlinekernels.selftuning.features import Features
from onlinekernels.selftuning.kept import Kept

__all__ = ["KINDS", "SelfTuning", "together"]

KINDS = {"own": ("own",), "gradient": ("gradient",), "auto": ("own", "gradient")}
PLAIN = "plain"  # the member whose kernel is not learned
FEWEST = 24  # points of it

FIRST, LONGEST = 100, 4000  # rows before the first refresh, and between two of them at most; in between they double
LEAST_NOISE = {"numbers": 0.1, "classes": 0.03}  # evidence does not know the budget: few points must not trust rows too much
MIXTURE = ((0.2, 0.5), (0.5, 1.0), (0.5, 2.5))  # shares and widths of the kernel: the metric is never exactly right

SAMPLED = 200, 300  # rows that the evidence is taken of, at least and at most: in between a fifth of the window
STAGE = 16  # rows between two stages of a refresh of more rows than that

CHECKED = 128  # rows between two looks for an alarm
LATELY, USUALLY = 64, 500  # rows whose loss is compared with that of those before them
WORSE, AHEAD, OFTEN = 2.0, 1.25, 42  # times the usual loss, times that of the plain member, and on how many of the latest rows


def mixture(amplitude=1.0, distance=1.0):
    """The kernel of a self-tuned posterior, for points that are about so far apart."""
    parts = [(amplitude * share) * Gaussian(width * distance) for share, width in MIXTURE]
    return parts[0] + parts[1] + parts[2] + Constant(1.0)


def plain(many, budget, n_features):
    """The posterior whose kernel is not learned: city-block distances and a line, behind a scaler that forgets as it does."""
    each = 1.0 / n_features
    loss, noise = ("multiclass_squared", 0.3) if many else ("squared", 0.1)
    return KRLS(loss, Laplacian(each) + each * Linear() + 1.0, noise=noise, memory=0.99, budget=budget, tolerance=2e-2,
                scale=RunningScaler(0.99), scale_target=not many)


class Tuned(Posterior):
    """A posterior in a metric that was learned: `KRLS` behind fixed features, a linear map, and units of the targets.

    Before the first refresh there is none of these: features and targets are scaled as they come.
    """

    def __init__(self, budget, n_features, targets):
        many = targets == 0
        self.budget, self.n_features, self.targets = budget, n_features, targets
        self.features = self.axes = self.chosen = None
        self.map = np.eye(n_features) * self.values()[0]  # B such that distances are |u B - v B|, for features u and v
        self.centre, self.unit = np.zeros(targets), np.ones(targets)
        loss = "multiclass_squared" if many else "squared"
        kernel = mixture(distance=math.sqrt(n_features))
        super().__init__(KRLS(loss, kernel, budget=budget, scale=True, scale_target=not many), many)

    def renewed(self, features, axes, chosen, centre, unit):
        """Another one that has learned nothing yet, in the metric that settings `chosen` along `axes` make."""
        new = Tuned(self.budget, self.n_features, self.targets)
        new.features, new.axes, new.chosen, new.centre, new.unit = features, axes, chosen, centre, unit
        scales, amplitude, noise, forgetting = new.values()
        new.map = axes * scales
        least = LEAST_NOISE["classes" if self.many else "numbers"]
        new.model = KRLS(new.model.loss, mixture(amplitude), noise=max(noise, least), memory=math.exp(-forgetting), budget=self.budget)
        return new

    def values(self):
        """(scales along the axes, amplitude, noise, forgetting) that were learned; before that what they begin with."""
        return Settings(self.n_features).values(np.zeros(self.n_features + 4) if self.chosen is None else self.chosen)

    def evidence(self, X, y, times, weights, coded):
        """Minus the log evidence of rows of the past under the kernel in force, in units of y; infinite before there is one."""
        if self.features is None:
            return math.inf
        Y = coded if self.many else (y - self.centre) / self.unit
        evidence = Evidence(self.features(X) @ self.axes, Y, times, weights)
        return evidence.with_prior(self.chosen)[0] + len(X) * float(np.log(self.unit).sum())

    def mapped(self, X):
        return X if self.features is None else self.features(X) @ self.map

    def _targets(self, y):
        return super()._targets(y if self.many else (y - self.centre) / self.unit)

    def learn(self, X, y, weights, outputs):
        return self._in_y(*super().learn(X, y, weights, outputs))

    def scores(self, X, outputs):
        return self._in_y(*super().scores(X, outputs))

    def _in_y(self, scores, deviations):
        """Scores and deviations in the units of y."""
        return (scores, deviations) if self.many else (scores * self.unit + self.centre, deviations * self.unit)

    def state(self):
        state = super().state()
        if self.features is not None:
            state["metric"] = {"axes": self.axes, "chosen": self.chosen, "centre": self.centre, "unit": self.unit}
            state["features"] = self.features.state()
        return state

    def restore(self, state):
        if "metric" in state:
            metric, d = state["metric"], self.n_features
            features = Features.restored(state["features"], d)
            values = {"axes": (d, d), "chosen": (d + 4,), "centre": (self.targets,), "unit": (self.targets,)}
            for name, shape in values.items():
                values[name] = np.array(metric[name], dtype=float)
                if values[name].shape != shape or not np.isfinite(values[name]).all():
                    raise ValueError(f"the {name} of a metric are not numbers of shape {shape}")
            if not (values["unit"] > 0.0).all():
                raise ValueError("the units of the targets are not positive")
            if not are_axes(values["axes"]):
                raise ValueError("the axes of a metric are not orthonormal")
            self.__dict__.update(self.renewed(features, **values).__dict__)
        super().restore(state)


def are_axes(axes):
    """Whether columns are orthonormal."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.allclose(axes.T @ axes, np.eye(len(axes)), atol=1e-8)


class SelfTuning(Posteriors):
    """Posteriors whose kernels are learned, and a plain one beside them with a short memory.

    The plain one is for what changes faster than a kernel can be learned. It also tells a change from a hard stretch: after a
    change, it is better than what was learned before.

    Parameters
    ----------
    kinds : tuple of str
        Axes of the learned ones: "own", "gradient".
    budget, window : int
    n_features, targets : int
        targets is 0 for labels.
    """

    def __init__(self, kinds, budget, window, n_features, targets):
        self.kinds, self.budget, self.window, self.n_features = kinds, budget, window, n_features
        many = targets == 0
        members = {kind: Tuned(budget, n_features, targets) for kind in kinds}
        members[PLAIN] = Posterior(plain(many, max(FEWEST, budget // 4), n_features), many)
        super().__init__(members, targets)
        self.sampled = min(max(window // 5, SAMPLED[0]), SAMPLED[1])
        self.frozen = False
        self.began = 0  # where the clock of refreshes started
        self.due = FIRST  # when the next one is
        self.kept = Kept(window, n_features, max(1, targets))
        self.losses = np.zeros((0, 2))  # of the learned members, and of the plain one, at the latest rows
        self.pending = None  # a refresh under way: its `Renewal`
        self.later = 0  # rows that were kept since it began
        self.background = False
        self.history = []  # (t, whether by an alarm, for each kind (roots of the metric's diagonal, noise, memory, share))

    # ---- On the way ---------------------------------------------------------------------------

    def rows_ahead(self):
        to_check = CHECKED - self.t % CHECKED
        if self.frozen:
            return to_check
        if self.pending is not None:
            return min(to_check, STAGE - (self.t - self.pending.t) % STAGE)
        return max(1, min(to_check, self.due - self.t))

    def remembered(self, X, y, weights, Y, scores):
        squares = ((scores - Y[:, None]) / self._units()) ** 2
        losses = squares.sum(axis=2)
        pairs = np.column_stack([losses[:, :-1].mean(axis=1), losses[:, -1]])
        self.kept.write(X, y if self.targets else y[:, None], weights)
        return {
            "losses": np.concatenate([self.losses, pairs])[-LATELY - USUALLY :],
            "kept": self.kept.moved(len(X)),
            "later": 0 if self.pending is None else self.later + len(X),
        }

    def _units(self):
        """What losses of several targets are measured in, so that they can be added."""
        return self.members[self.kinds[0]].unit if self.targets > 1 else 1.0

    def at_stop(self):
        if self.frozen:
            self.pending = None
        elif self.t % CHECKED == 0 and (self.pending is not None or self.t < self.due) and self._has_changed():
            self.begin_anew()
        elif self.pending is not None:
            self._go_on()
        elif self.t >= self.due:
            if len(self.kept) <= SAMPLED[1]:
                self.refresh()
            else:
                self.__dict__.update(pending=self._renewal(self.kept), later=0)
                self._go_on()

    def _has_changed(self):
        """Whether the learned members have got much worse, and the plain one, which forgets, has not as much."""
        if len(self.losses) < LATELY + 2 * LATELY:
            return False
        before, lately = self.losses[:-LATELY], self.losses[-LATELY:]
        usual, (tuned, plain) = before[:, 0].mean(), lately.mean(axis=0)
        return tuned > WORSE * usual and tuned > AHEAD * plain and (lately[:, 1] < lately[:, 0]).sum() >= OFTEN

    # ---- The kernel ---------------------------------------------------------------------------

    def shares(self):
        """How much each of the learned members counts among them: their weights in the combination; they sum to 1."""
        weights = np.maximum(self.stack.weights().mean(axis=0)[: len(self.kinds)], 1e-9)
        return (weights / weights.sum()).tolist()

    def learned_now(self):
        """(metric, noise, memory) of the learned members together."""
        members = [self.members[kind] for kind in self.kinds]
        metric = sum(share * member.map @ member.map.T for share, member in zip(self.shares(), members, strict=True))
        return metric, *together([_summary(member, share) for member, share in zip(members, self.shares(), strict=True)])[1:]

    def begin_anew(self):
        """After a change: keep the latest rows alone, learn the kernel from them, and start the clock anew."""
        kept = self.kept.latest(LATELY)
        self._take_over(self._renewal(kept, alarm=True), kept, self.t - len(kept))

    def refresh(self):
        """Learn the kernel anew from the rows that are kept, and replay them. All or nothing."""
        self._take_over(self._renewal(self.kept), self.kept, self.began)

    def _renewal(self, kept, alarm=False):
        olds = {kind: self.members[kind] for kind in self.kinds}
        return Renewal(self.t, olds, kept, self.sampled, self.targets, len(kept) == self.window and not alarm, alarm)

    def _go_on(self):
        """The next stage of a renewal, or its end, at a row that is fixed: it does not matter who has done the work, and when."""
        renewal = self.pending
        if self.t < renewal.t + STAGE * renewal.n_stages:
            if self.background:
                renewal.start()
            else:
                renewal.advance((self.t - renewal.t) // STAGE + 1)
        else:
            renewal.wait()
            self._take_over(renewal, self.kept, self.began, self.later)

    def _take_over(self, renewal, kept, began, later=0):
        try:
            members = renewal.finished(tuple(part[len(kept) - later :] for part in kept.rows()))
            seen = tuple(_summary(member, share) for member, share in zip(members.values(), self.shares(), strict=True))
        except BaseException:
            renewal.begin()
            raise
        self.__dict__.update(
            members={**members, PLAIN: self.members[PLAIN]},
            kept=kept,
            began=began,
            due=renewal.t + min(max(renewal.t - began, FIRST // 2), LONGEST),
            history=[*self.history, (renewal.t, renewal.alarm, seen)],
            losses=self.losses[:0] if renewal.alarm else self.losses,
            pending=None,
        )

    # ---- State --------------------------------------------------------------------------------

    def state(self):
        X, y, weights = self._rows_to_save()
        times = [t for t, _, _ in self.history]
        seen = [[np.concatenate([root, others]) for root, *others in kinds] for _, _, kinds in self.history]
        return {
            **super().state(),
            "began": self.began,
            "due": self.due,
            "losses": self.losses,
            "kept": {"X": X, "y": y, "weights": weights},
            "pending": {"t": -1 if self.pending is None else self.pending.t, "later": self.later},
            "history": {
                "times": np.array(times, dtype=np.int64),
                "alarms": np.array([alarm for _, alarm, _ in self.history], dtype=bool),
                "seen": np.array(seen).reshape(len(times), len(self.kinds), self.n_features + 3),
            },
        }

    def _rows_to_save(self):
        """(X, y, weights) that are kept, and before them those that a renewal began with."""
        if self.pending is None:
            return self.kept.rows()
        first, now = self.pending.kept.rows(), self.kept.rows()
        return tuple(np.concatenate([early, late[len(late) - self.later :]]) for early, late in zip(first, now, strict=True))

    def restore(self, state):
        super().restore(state)
        self.began, self.due = (checked_rows(state, name) for name in ("began", "due"))
        if self.began > self.t:
            raise ValueError("began is later than the last row")
        self.losses = np.array(state["losses"], dtype=float).reshape(len(state["losses"]), 2)
        if len(self.losses) > LATELY + USUALLY or not (self.losses >= 0.0).all():
            raise ValueError("the losses make no sense")
        X, y, weights = (np.array(state["kept"][name], dtype=float) for name in ("X", "y", "weights"))
        if X.shape != (len(X), self.n_features) or y.shape != (len(X), max(1, self.targets)) or weights.shape != (len(X),):
            raise ValueError("the rows that are kept do not fit the features and targets")
        begin, later = state["pending"]["t"], state["pending"]["later"]
        is_sound = type(begin) is int and type(later) is int and (begin == -1 or 0 <= later <= self.t - begin and later < len(X))
        if not is_sound:
            raise ValueError("the refresh under way makes no sense")
        most = self.window + (later if begin >= 0 else 0)
        if len(X) > most or not all(np.isfinite(part).all() for part in (X, y, weights)) or (weights < 0.0).any():
            raise ValueError("the rows that are kept are not numbers, or too many")
        if not self.targets and not ((y >= 0) & (y < self.joined) & (y == np.floor(y))).all():
            raise ValueError("the rows that are kept have labels that are none")
        whole = Kept(self.window + len(X), self.n_features, y.shape[1])
        whole.write(X, y, weights)
        whole = whole.moved(len(X))
        self.kept = whole.latest(self.window)
        self.kept.window = self.window
        if begin >= 0:
            self.later = later
            self.pending = self._renewal(whole.without(later))
            self.pending.t, self.pending.is_full = begin, len(X) - later == self.window
        history = state["history"]
        times, alarms, seen = (np.asarray(history[name]) for name in ("times", "alarms", "seen"))
        if not len(times) == len(alarms) == len(seen) or seen.shape[1:] != (len(self.kinds), self.n_features + 3):
            raise ValueError("the history does not fit the features")
        self.history = [
            (int(t), bool(alarm), tuple((row[:-3].copy(), *map(float, row[-3:])) for row in kinds))
            for t, alarm, kinds in zip(times, alarms, seen, strict=True)
        ]

    def _check(self):
        super()._check()
        assert self.began <= self.t
        assert len(self.kept) <= self.window and len(self.losses) <= LATELY + USUALLY
        for member in self.members.values():
            assert member.rows >= 0
        for kind in self.kinds:
            axes = self.members[kind].axes
            assert axes is None or are_axes(axes)


def _summary(member, share):
    """(roots of the metric's diagonal, noise, memory, share) of a member that counts for so much among those that learn a kernel."""
    _, _, noise, forgetting = member.values()
    return np.sqrt((member.map**2).sum(axis=1)), noise, math.exp(-forgetting), share


def together(seen):
    """The same of several as of one: squares of the roots, and logarithms of the others, on average."""
    shares = np.array([share for *_, share in seen])
    roots = np.array([root for root, *_ in seen])
    noise, forgetting = np.array([[n, -math.log(m)] for _, n, m, _ in seen]).T
    noise, forgetting = (math.exp(shares @ np.log(np.maximum(part, 1e-300))) for part in (noise, forgetting))
    return np.sqrt(shares @ roots**2), noise, math.exp(-forgetting)
