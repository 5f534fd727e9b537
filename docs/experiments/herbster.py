"""H: what a trial costs, against the number before it; a target that shifts, with the loss bound of Theorem 5."""
import time

import numpy as np

from experiments.experiment import Check, Results, experiment
from experiments.learners import UNTUNED, untuned, watch
from experiments.panels import Lines
from onlinekernels import AdditiveExponential, AdditiveSpline, Projection, SelfTuned, SquaredInsensitive
from onlinekernels.bounds import projection_loss

TREE, LIST = "trees", "term by term"


@experiment(name="herbster-speed", paper="H 1, Fig. 1", title="cost per trial against the number of trials",
            claim="With additive spline kernels on balanced trees a trial costs O(d log t) instead of O(d t).")
def speed(data, quick, seeds):
    """Learn one long stream, in pieces; each example enters, as the tube has no width and there is noise."""
    sizes = [250, 1000, 4000] if quick else [1000, 3000, 10_000, 30_000, 100_000, 300_000]
    longest = {TREE: sizes[-1], LIST: 4000 if quick else 30_000, UNTUNED: sizes[-1]}
    rng = np.random.default_rng(0)
    X = rng.uniform(1e-3, 1.0, size=(sizes[-1], 8))
    y = np.sin(6 * X).sum(axis=1) + rng.normal(size=len(X))
    models = {TREE: Projection(SquaredInsensitive(0.0), AdditiveSpline(order=1), radius=10.0),
              LIST: Projection(SquaredInsensitive(0.0), AdditiveSpline(order=1, tree=False), radius=10.0),
              UNTUNED: untuned("regression")}
    costs = {}
    for name in watch(models):
        costs[name] = costs_of(models[name], X, y, [size for size in sizes if size <= longest[name]])
    growth = {name: cost[-1] / cost[0] for name, cost in costs.items()}
    factor = {name: min(sizes[-1], longest[name]) / sizes[0] for name in costs}
    table = [
        {"trials": size, **{f"{name}, us": cost[i] if i < len(cost) else None for name, cost in costs.items()},
         "paper": "O(d log t) with trees, O(d t) without"}
        for i, size in enumerate(sizes)
    ]
    curves = {name: (sizes[: len(cost)], cost) for name, cost in costs.items()}
    panel = Lines("microseconds per trial", "trials before", "microseconds", curves, ("x", "y"), markers=True)
    return Results(table, [panel], [
        Check("with trees a trial costs O(log t): at most five times as much at the end",
              f"{growth[TREE]:.1f} times after {factor[TREE]:.0f} times as many trials", growth[TREE] < 5),
        Check("term by term it grows like t: by at least a third of the factor",
              f"{growth[LIST]:.0f} times after {factor[LIST]:.0f} times as many", growth[LIST] > factor[LIST] / 3),
    ], [
        "Processor time, the least of three pieces of trials. Compare ratios.",
        "log t itself grows by less than 2; what is above that is memory that no longer fits the cache.",
        f"{UNTUNED} has at most 512 terms, so its cost does not grow. It does not see the additive structure.",
    ])


def costs_of(model, X, y, sizes, pieces=3):
    """Microseconds per trial just before each size is reached."""
    costs, done = [], 0
    for size in sizes:
        length = max(20, size // 20)
        model.partial_fit(X[done : size - pieces * length], y[done : size - pieces * length])
        taken = []
        for first in range(size - pieces * length, size, length):
            start = time.process_time()
            model.partial_fit(X[first : first + length], y[first : first + length])
            taken.append(1e6 * (time.process_time() - start) / length)
        costs.append(min(taken))
        done = size
    return costs


# ---- A target that shifts -------------------------------------------------------------------------


COORDINATES, TUBE, KNOTS = 4, 0.1, 10
KERNEL = AdditiveExponential(rate=1.0)
BALL, FREE, SELFTUNED = "Projection, ball", "Projection, no ball", "SelfTuned, untuned"


class Target:
    """An additive function: a sum of kernels, whose norm can be computed."""

    def __init__(self, rng):
        self.points = rng.uniform(-2.0, 2.0, size=(KNOTS, COORDINATES))
        self.weights = rng.normal(size=KNOTS)
        self.norm = float(np.sqrt(self.weights @ KERNEL(self.points) @ self.weights))

    def __call__(self, X):
        return KERNEL(X, self.points) @ self.weights


def shifting_stream(seed, length):
    """Four stretches: a target, a stuck sensor, another target, the first one again. With noise that fits the tube."""
    rng = np.random.default_rng(seed)
    first, second = Target(rng), Target(rng)
    X = rng.uniform(-2.0, 2.0, size=(4 * length, COORDINATES))
    noise = rng.uniform(-TUBE, TUBE, size=4 * length)
    y = np.concatenate(
        [first(X[:length]), np.full(length, 30.0), second(X[2 * length : 3 * length]), first(X[3 * length :])]
    )
    y[:length] += noise[:length]
    y[2 * length :] += noise[2 * length :]
    return X, y, [(0, first), (2, second), (3, first)]


@experiment(name="herbster-additive", paper="H 2.4, Thm 5", title="additive regression of a target that shifts",
            claim="Kept in a ball of radius gamma, projection loses at most R^2 (gamma + |u|)^2 in any stretch that "
            "some u fits, whatever came before.", seeds=10)
def additive(data, quick, seeds):
    length = 200 if quick else 1000
    loss, squared_radius = SquaredInsensitive(TUBE), float(COORDINATES)  # K(x, x) is the number of coordinates
    rows, curves = [], {}
    for seed in watch(seeds):
        X, y, stretches = shifting_stream(seed, length)
        gamma = max(target.norm for _, target in stretches)
        models = {BALL: Projection(loss, KERNEL, radius=gamma), FREE: Projection(loss, KERNEL),
                  UNTUNED: untuned("regression"), SELFTUNED: SelfTuned()}
        for name, model in models.items():
            values = loss.value(model.progressive(X, y), y)
            so_far = np.concatenate([np.cumsum(part) for part in np.split(values, 4)])
            curves[name] = curves.get(name, 0.0) + so_far / len(seeds)
            for place, target in stretches:
                total = float(values[place * length : (place + 1) * length].sum())
                bound = projection_loss(radius=np.sqrt(squared_radius), norm=target.norm, ball=gamma)
                rows.append((seed, name, place, total, bound))
    curves["bound with the ball"] = bounds_of(rows, length)
    table = [row_of(rows, name, place) for name in models for place in (0, 2, 3)]
    panel = Lines(f"loss since the last change, mean of {len(seeds)} streams", "examples", "sum of losses", curves,
                  ("y",), marks=(3 * length,), shaded=((length, 2 * length, "a stuck sensor: no bound"),))
    return Results(table, [panel], checks_of(rows), [
        f"Table and picture are means over {len(seeds)} streams of {COORDINATES} features. The second stretch is a "
        "sensor stuck at 30, which no function within the ball fits: there is no bound for it.",
        "The ball's radius is the larger norm of both targets. The tube is 0.1, and so is the noise.",
        f"{SELFTUNED} has no bound and no setting. It does not know that the target is additive, nor of the tube.",
    ])


def bounds_of(rows, length):
    """The bound of each stretch, in the mean over all streams, drawn where it holds."""
    bounds = {place: [bound for _, name, at, _, bound in rows if (name, at) == (BALL, place)] for place in (0, 2, 3)}
    return np.concatenate(
        [np.full(length, np.mean(bounds[place]) if place in bounds else np.nan) for place in range(4)]
    )


def row_of(rows, name, place):
    mine = [(total, bound) for _, other, at, total, bound in rows if (other, at) == (name, place)]
    losses, bounds = np.array(mine).T
    names = {0: "first target", 2: "second target, after a fault", 3: "first target again"}
    return {"stretch": names[place], "learner": name, "loss": float(losses.mean()),
            "H's bound": float(bounds.mean()) if name == BALL else None,
            "largest loss / bound": float((losses / bounds).max()) if name == BALL else None}


def checks_of(rows):
    ratios = [total / bound for _, name, _, total, bound in rows if name == BALL]
    after = {
        name: np.mean([t for _, other, place, t, _ in rows if (other, place) == (name, 2)]) for name in (BALL, FREE)
    }
    bound = np.mean([bound for _, name, place, _, bound in rows if (name, place) == (BALL, 2)])
    return [
        Check("within every stretch the loss stays below R^2 (gamma + |u|)^2", f"at most {max(ratios):.2f} of it",
              max(ratios) <= 1),
        Check("after a fault a run without the ball exceeds that bound, as f has to unlearn",
              f"a loss of {after[FREE]:.0f} against {after[BALL]:.0f} with it, and {bound:.0f} allowed",
              after[BALL] < bound < after[FREE]),
    ]
