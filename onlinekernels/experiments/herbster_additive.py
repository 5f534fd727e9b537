"""H, part 2: additive regression of a target that shifts, and the local loss bound of Theorem 5."""

import numpy as np

from onlinekernels.algorithms import Projection, SelfTuned
from onlinekernels.bounds import projection_loss
from onlinekernels.experiments.experiment import Check, Experiment, Results
from onlinekernels.experiments.learners import UNTUNED, untuned, watch
from onlinekernels.experiments.panels import Lines
from onlinekernels.nouns.additive import AdditiveExponential
from onlinekernels.nouns.losses import SquaredInsensitive

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


def stream(seed, length):
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


def run(data, quick, seeds):
    length = 200 if quick else 1000
    loss, squared_radius = SquaredInsensitive(TUBE), float(COORDINATES)  # K(x, x) is the number of coordinates
    rows, curves = [], {}
    for seed in watch(seeds):
        X, y, stretches = stream(seed, length)
        gamma = max(target.norm for _, target in stretches)
        models = {
            BALL: Projection(loss, KERNEL, radius=gamma),
            FREE: Projection(loss, KERNEL),
            UNTUNED: untuned("regression"),
            SELFTUNED: SelfTuned(),
        }
        for name, model in models.items():
            values = loss.value(model.progressive(X, y), y)
            so_far = np.concatenate([np.cumsum(part) for part in np.split(values, 4)])
            curves[name] = curves.get(name, 0.0) + so_far / len(seeds)
            for place, target in stretches:
                total = float(values[place * length : (place + 1) * length].sum())
                bound = projection_loss(radius=np.sqrt(squared_radius), norm=target.norm, ball=gamma)
                rows.append((seed, name, place, total, bound))
    curves["bound with the ball"] = _steps(rows, length)
    table = [_row(rows, name, place) for name in models for place in (0, 2, 3)]
    return Results(
        table=table,
        panels=[
            Lines(
                f"loss since the last change, mean of {len(seeds)} streams",
                "examples",
                "sum of losses",
                curves,
                ("y",),
                marks=(3 * length,),
                shaded=((length, 2 * length, "a stuck sensor: no bound"),),
            )
        ],
        checks=_checks(rows),
        notes=[
            f"Table and picture are means over {len(seeds)} streams of {COORDINATES} features. The second stretch is a sensor "
            "stuck at 30, which no function within the ball fits: there is no bound for it.",
            "The ball's radius is the larger norm of both targets. The tube is 0.1, and so is the noise.",
            f"{SELFTUNED} has no bound and no setting. It does not know that the target is additive, nor of the tube.",
        ],
    )


def _steps(rows, length):
    """The bound of each stretch, in the mean over all streams, drawn where it holds."""
    bounds = {place: [bound for _, name, at, _, bound in rows if (name, at) == (BALL, place)] for place in (0, 2, 3)}
    return np.concatenate([np.full(length, np.mean(bounds[place]) if place in bounds else np.nan) for place in range(4)])


def _row(rows, name, place):
    mine = [(total, bound) for _, other, at, total, bound in rows if (other, at) == (name, place)]
    losses, bounds = np.array(mine).T
    names = {0: "first target", 2: "second target, after a fault", 3: "first target again"}
    return {
        "stretch": names[place],
        "learner": name,
        "loss": float(losses.mean()),
        "H's bound": float(bounds.mean()) if name == BALL else None,
        "largest loss / bound": float((losses / bounds).max()) if name == BALL else None,
    }


def _checks(rows):
    ratios = [total / bound for _, name, _, total, bound in rows if name == BALL]
    after = {
        name: np.mean([t for _, other, place, t, _ in rows if (other, place) == (name, 2)]) for name in (BALL, FREE)
    }
    bound = np.mean([bound for _, name, place, _, bound in rows if (name, place) == (BALL, 2)])
    return [
        Check(
            "within every stretch the loss stays below R^2 (gamma + |u|)^2",
            f"at most {max(ratios):.2f} of it",
            max(ratios) <= 1,
        ),
        Check(
            "after a fault a run without the ball exceeds that bound, as f has to unlearn",
            f"a loss of {after[FREE]:.0f} against {after[BALL]:.0f} with it, and {bound:.0f} allowed",
            after[BALL] < bound < after[FREE],
        ),
    ]


EXPERIMENT = Experiment(
    name="herbster-additive",
    paper="H 2.4, Thm 5",
    title="additive regression of a target that shifts",
    claim="Kept in a ball of radius gamma, projection loses at most R^2 (gamma + |u|)^2 in any stretch that some u "
    "fits, whatever came before.",
    run=run,
    seeds=10,
)
