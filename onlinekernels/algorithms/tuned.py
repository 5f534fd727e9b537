"""A stream that is learned by a posterior whose kernel is learned as well: when, from which rows, and when to begin anew."""
import math

import numpy as np

from onlinekernels.algorithms.recursive import KRLS
from onlinekernels.model.composite import Composition, Member, coded
from onlinekernels.nouns.kernels import Constant, Gaussian
from onlinekernels.nouns.scaling import RunningScaler
from onlinekernels.selftuning.descent import minimize
from onlinekernels.selftuning.evidence import Evidence, Settings, gradient_axes
from onlinekernels.selftuning.features import Features

__all__ = ["KINDS", "SelfTuning"]

KINDS = {"own": ("own",), "gradient": ("gradient",), "auto": ("own", "gradient")}
PLAIN = "plain"  # the member whose kernel is not learned

FIRST, LONGEST = 100, 4000  # rows before the first refresh, and between two of them at most; in between they double
ROWS = 300  # that the evidence is taken of
FIRST_STEPS, STEPS = 8, 5  # of descent: while rows are few, and once there are as many as are kept
WORTH = 5.0  # nats of evidence by which another kernel must be better, once replaying it forgets what is kept no more
LEAST_NOISE = 0.1  # evidence does not know the budget, and a posterior of few points that trusts its rows too much is worse
MIXTURE = ((0.2, 0.5), (0.5, 1.0), (0.5, 2.5))  # shares and widths of the kernel: the metric is never exactly right

CHECKED = 64  # rows between two looks for an alarm
LATELY, USUALLY = 64, 500  # rows whose loss is compared with that of those before them
WORSE, AHEAD, OFTEN = 2.0, 1.25, 42  # times the usual loss, times that of the plain member, and on how many of the latest rows


def mixture(amplitude=1.0, unit=1.0):
    """The kernel of a self-tuned posterior, of distances in so large units."""
    parts = [(amplitude * share) * Gaussian(width * unit) for share, width in MIXTURE]
    return parts[0] + parts[1] + parts[2] + Constant(1.0)


class Tuned(Member):
    """A posterior in a metric that was learned: `KRLS` behind fixed features, a linear map, and units of the targets.

    Before the first refresh there is none of these: features and targets are scaled as they come.
    """

    def __init__(self, many, budget, n_features, targets):
        self.many, self.budget = many, budget
        self.n_features, self.targets = n_features, targets
        self.features = self.axes = self.chosen = None
        self.map = np.eye(n_features) * self.values()[0]  # B such that distances are |u B - v B|, for features u and v
        self.centre, self.unit = np.zeros(targets), np.ones(targets)
        self.replayed = 0  # rows of the past with which the posterior began
        loss = "multiclass_squared" if many else "squared"
        self.model = KRLS(loss, mixture(unit=math.sqrt(n_features)), budget=budget, scale=True, scale_target=not many)

    def renewed(self, features, axes, chosen, centre, unit):
        """Another one that has learned nothing yet, in the metric that settings `chosen` along `axes` make."""
        new = Tuned(self.many, self.budget, self.n_features, self.targets)
        new.features, new.axes, new.chosen, new.centre, new.unit = features, axes, chosen, centre, unit
        scales, amplitude, noise, forgetting = new.values()
        new.map = axes * scales
        new.model = KRLS(new.model.loss, mixture(amplitude), noise=max(noise, LEAST_NOISE), memory=math.exp(-forgetting),
                         budget=self.budget)
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

    @property
    def rows(self):
        return super().rows - self.replayed

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

    def replay(self, X, y, weights):
        """Begin with rows of the past."""
        self.take(X, y, weights)
        self.replayed = len(X)

    def state(self):
        state = {"replayed": self.replayed, **super().state()}
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
            self.__dict__.update(self.renewed(features, **values).__dict__)
        self.replayed = state["replayed"]
        super().restore(state)
        if type(self.replayed) is not int or not 0 <= self.replayed <= self.rows + self.replayed:
            raise ValueError("the number of rows that were replayed makes no sense")


class SelfTuning(Composition):
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
        members = {kind: Tuned(many, budget, n_features, targets) for kind in kinds}
        unit = math.sqrt(n_features)
        members[PLAIN] = Member(
            KRLS("multiclass_squared" if many else "squared", 0.5 * Gaussian(0.25 * unit) + 0.5 * Gaussian(unit) + 1.0,
                 memory=0.99, budget=max(1, budget // 3), tolerance=1e-2, scale=RunningScaler(0.99), scale_target=not many),
            many,
        )
        super().__init__(members, targets)
        self.frozen = False
        self.began = 0  # where the clock of refreshes started
        self.due = FIRST  # when the next one is
        self.kept = Kept(window, n_features, max(1, targets))
        self.losses = np.zeros((0, 2))  # of the learned members, and of the plain one, at the latest rows
        self.history = []  # (t, whether by an alarm, for each kind (roots of the metric's diagonal, noise, memory))

    # ---- On the way ---------------------------------------------------------------------------

    def rows_ahead(self):
        to_check = CHECKED - self.t % CHECKED
        return to_check if self.frozen else max(1, min(to_check, self.due - self.t))

    def remembered(self, X, y, weights, Y, members):
        squares = ((members - Y[:, None]) / self._units()) ** 2
        losses = squares.sum(axis=2)
        pairs = np.column_stack([losses[:, :-1].mean(axis=1), losses[:, -1]])
        self.kept.write(X, y if self.targets else y[:, None], weights)
        return {"losses": np.concatenate([self.losses, pairs])[-LATELY - USUALLY :], "kept": self.kept.moved(len(X))}

    def _units(self):
        """What losses of several targets are measured in, so that they can be added."""
        return self.members[self.kinds[0]].unit if self.targets > 1 else 1.0

    def at_stop(self):
        if self.frozen:
            return
        if self.t >= self.due:
            self.refresh()
        elif self.t % CHECKED == 0 and self._has_changed():
            self.begin_anew()

    def _has_changed(self):
        """Whether the learned members have got much worse, and the plain one, which forgets, has not as much."""
        if len(self.losses) < LATELY + 2 * LATELY:
            return False
        before, lately = self.losses[:-LATELY], self.losses[-LATELY:]
        usual, (tuned, plain) = before[:, 0].mean(), lately.mean(axis=0)
        return tuned > WORSE * usual and tuned > AHEAD * plain and (lately[:, 1] < lately[:, 0]).sum() >= OFTEN

    # ---- The kernel ---------------------------------------------------------------------------

    def begin_anew(self):
        """After a change: keep the latest rows alone, learn the kernel from them, and start the clock anew."""
        self._renew(self.kept.latest(LATELY), alarm=True)

    def refresh(self):
        """Learn the kernel anew from the rows that are kept, and replay them. All or nothing."""
        self._renew(self.kept, alarm=False)

    def _renew(self, kept, alarm):
        X, y, weights = kept.rows()
        began, is_full = self.t - len(kept) if alarm else self.began, len(kept) == self.window
        features = Features(X)
        U = features(X)
        Y, centre, unit = self._standard(y)
        chosen = _spread_out(weights, ROWS)
        times, weighted = chosen.astype(float), weights[chosen]
        sample = U[chosen], Y[chosen], times, weighted
        members = {}
        for kind in self.kinds:
            old = self.members[kind]
            start = (None, None) if alarm else (old.axes, old.chosen)
            axes, settings, value = _tuned(sample, kind == "gradient", *start, STEPS if is_full else FIRST_STEPS)
            value += len(chosen) * float(np.log(unit).sum())
            if is_full and not alarm and old.evidence(X[chosen], y[chosen], times, weighted, Y[chosen]) < value + WORTH:
                members[kind] = old  # it remembers more than what is kept
                continue
            members[kind] = old.renewed(features, axes, settings, centre, unit)
            members[kind].replay(X, y if self.targets else y[:, 0], weights)
        seen = tuple(_summary(member) for member in members.values())
        self.__dict__.update(
            members={**members, PLAIN: self.members[PLAIN]},
            kept=kept,
            began=began,
            due=self.t + min(max(self.t - began, FIRST // 2), LONGEST),
            history=[*self.history, (self.t, alarm, seen)],
            losses=self.losses[:0] if alarm else self.losses,
        )

    def _standard(self, y):
        """(targets of the size of 1, their means, their deviations)."""
        if not self.targets:
            places, y = np.unique(y[:, 0], return_inverse=True)
            return coded(y, len(places)), np.zeros(0), np.ones(0)
        centre, unit = y.mean(axis=0), y.std(axis=0)
        unit = np.where(unit > 1e-12 * np.abs(centre), unit, 1.0)
        return (y - centre) / unit, centre, np.where(unit > 0.0, unit, 1.0)

    # ---- State --------------------------------------------------------------------------------

    def state(self):
        X, y, weights = self.kept.rows()
        times = [t for t, _, _ in self.history]
        seen = [[np.concatenate([root, [noise, memory]]) for root, noise, memory in kinds] for _, _, kinds in self.history]
        return {
            **super().state(),
            "began": self.began,
            "due": self.due,
            "losses": self.losses,
            "kept": {"X": X, "y": y, "weights": weights},
            "history": {
                "times": np.array(times, dtype=np.int64),
                "alarms": np.array([alarm for _, alarm, _ in self.history], dtype=bool),
                "seen": np.array(seen).reshape(len(times), len(self.kinds), self.n_features + 2),
            },
        }

    def restore(self, state):
        super().restore(state)
        for name in ("began", "due"):
            if type(state[name]) is not int or state[name] < 0:
                raise ValueError(f"{name} is not a number of rows")
        self.began, self.due = state["began"], state["due"]
        self.losses = np.array(state["losses"], dtype=float).reshape(len(state["losses"]), 2)
        if len(self.losses) > LATELY + USUALLY or not (self.losses >= 0.0).all():
            raise ValueError("the losses make no sense")
        X, y, weights = (np.array(state["kept"][name], dtype=float) for name in ("X", "y", "weights"))
        if X.shape != (len(X), self.n_features) or y.shape != (len(X), max(1, self.targets)) or weights.shape != (len(X),):
            raise ValueError("the rows that are kept do not fit the features and targets")
        if len(X) > self.window or not all(np.isfinite(part).all() for part in (X, y, weights)) or (weights < 0.0).any():
            raise ValueError("the rows that are kept are not numbers, or too many")
        if not self.targets and not ((y >= 0) & (y < self.joined) & (y == np.floor(y))).all():
            raise ValueError("the rows that are kept have labels that are none")
        self.kept = Kept(self.window, self.n_features, y.shape[1])
        self.kept.write(X, y, weights)
        self.kept = self.kept.moved(len(X))
        history = state["history"]
        times, alarms, seen = (np.asarray(history[name]) for name in ("times", "alarms", "seen"))
        if not len(times) == len(alarms) == len(seen) or seen.shape[1:] != (len(self.kinds), self.n_features + 2):
            raise ValueError("the history does not fit the features")
        self.history = [
            (int(t), bool(alarm), tuple((row[:-2].copy(), float(row[-2]), float(row[-1])) for row in kinds))
            for t, alarm, kinds in zip(times, alarms, seen, strict=True)
        ]

    def _check(self):
        super()._check()
        assert self.frozen or self.due > self.t - 1 and self.began <= self.t
        assert len(self.kept) <= self.window and len(self.losses) <= LATELY + USUALLY
        for member in self.members.values():
            assert member.rows >= 0
        for kind in self.kinds:
            axes = self.members[kind].axes
            assert axes is None or np.allclose(axes.T @ axes, np.eye(self.n_features), atol=1e-8)


def _tuned(sample, turned, axes, settings, steps=FIRST_STEPS):
    """(axes, settings, minus their log evidence and prior) within a few steps uphill of those given; None for the first."""
    U, Y, times, weights = sample
    d = U.shape[1]
    is_new = settings is None
    axes, settings = (np.eye(d), np.zeros(d + 4)) if is_new else (axes, settings)
    evidence = Evidence(U @ axes if turned else U, Y, times, weights)
    if is_new or not turned:
        settings, value = minimize(evidence.with_prior, settings, steps)
    if turned:
        scales = evidence.settings.values(settings)[0]
        metric = (axes * scales**2) @ axes.T
        axes = gradient_axes(axes @ evidence.outer_products(settings) @ axes.T)
        along = np.sqrt(np.einsum("ij,ij->j", axes, metric @ axes))  # the old metric along the new axes
        evidence = Evidence(U @ axes, Y, times, weights)
        settings, value = minimize(evidence.with_prior, evidence.settings.with_scales(settings, along), steps)
    return axes, settings, value


def _spread_out(weights, most):
    """Places of at most so many rows that have a weight, evenly over all."""
    places = np.flatnonzero(weights > 0.0)
    if len(places) <= most:
        return places
    return places[np.round(np.linspace(0, len(places) - 1, most)).astype(np.intp)]


def _summary(member):
    """(roots of the metric's diagonal, noise, memory) of a member."""
    _, _, noise, forgetting = member.values()
    return np.sqrt((member.map**2).sum(axis=1)), noise, math.exp(-forgetting)


class Kept:
    """The latest rows, at most `window` of them, oldest first.

    Rows are written behind the end, where nobody looks, and `moved` is the same with a later end: so a change is one
    assignment, and a row costs what it is long.
    """

    def __init__(self, window, n_features, targets):
        self.window = window
        self.begin = self.end = 0
        self.X, self.y, self.weights = np.zeros((2, n_features)), np.zeros((2, targets)), np.zeros(2)

    def __len__(self):
        return self.end - self.begin

    def rows(self):
        """(X, y, weights) that are kept."""
        return tuple(part[self.begin : self.end] for part in (self.X, self.y, self.weights))

    def write(self, X, y, weights):
        """Put rows behind the end; all of it has room for them."""
        need = self.end + len(X)
        if need > len(self.X):
            begin = max(self.begin, self.end - self.window)
            size = max(16, 2 * (self.end - begin + len(X)))
            larger = {"begin": 0, "end": self.end - begin}
            for name in ("X", "y", "weights"):
                old = getattr(self, name)
                larger[name] = np.zeros((size, *old.shape[1:]))
                larger[name][: self.end - begin] = old[begin : self.end]
            self.__dict__.update(larger)  # all at once
        there = slice(self.end, self.end + len(X))
        self.X[there], self.y[there], self.weights[there] = X, y, 1.0 if weights is None else weights

    def moved(self, n):
        """With the n rows that were written."""
        return self._with(max(self.begin, self.end + n - self.window), self.end + n)

    def latest(self, n):
        """With the latest n rows alone."""
        return self._with(max(self.begin, self.end - n), self.end)

    def _with(self, begin, end):
        other = Kept.__new__(Kept)
        other.__dict__.update(self.__dict__, begin=begin, end=end)
        return other
