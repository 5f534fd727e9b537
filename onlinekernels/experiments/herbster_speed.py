"""H, part 1: what a trial costs, against the number of trials before it."""

import time

import numpy as np

from onlinekernels.algorithms import Projection
from onlinekernels.experiments.experiment import Check, Experiment, Results
from onlinekernels.experiments.learners import UNTUNED, untuned, watch
from onlinekernels.experiments.panels import Lines
from onlinekernels.nouns.additive import AdditiveSpline
from onlinekernels.nouns.losses import SquaredInsensitive

COORDINATES = 8
TREE, LIST = "trees", "term by term"


def run(data, quick, seeds):
    """Learn one long stream, in pieces; each example enters, as the tube has no width and there is noise."""
    sizes = [250, 1000, 4000] if quick else [1000, 3000, 10_000, 30_000, 100_000, 300_000]
    longest = {TREE: sizes[-1], LIST: 4000 if quick else 30_000, UNTUNED: sizes[-1]}
    rng = np.random.default_rng(0)
    X = rng.uniform(1e-3, 1.0, size=(sizes[-1], COORDINATES))
    y = np.sin(6 * X).sum(axis=1) + rng.normal(size=len(X))
    models = {
        TREE: Projection(SquaredInsensitive(0.0), AdditiveSpline(order=1), radius=10.0),
        LIST: Projection(SquaredInsensitive(0.0), AdditiveSpline(order=1, tree=False), radius=10.0),
        UNTUNED: untuned("regression"),
    }
    costs = {}
    for name in watch(models):
        costs[name] = _costs(models[name], X, y, [size for size in sizes if size <= longest[name]])
    growth = {name: cost[-1] / cost[0] for name, cost in costs.items()}
    factor = {name: min(sizes[-1], longest[name]) / sizes[0] for name in costs}
    table = [
        {
            "trials": size,
            **{f"{name}, us": cost[i] if i < len(cost) else None for name, cost in costs.items()},
            "paper": "O(d log t) with trees, O(d t) without",
        }
        for i, size in enumerate(sizes)
    ]
    curves = {name: (sizes[: len(cost)], cost) for name, cost in costs.items()}
    return Results(
        table=table,
        panels=[Lines("microseconds per trial", "trials before", "microseconds", curves, ("x", "y"), markers=True)],
        checks=[
            Check(
                "with trees a trial costs O(log t): at most five times as much at the end",
                f"{growth[TREE]:.1f} times after {factor[TREE]:.0f} times as many trials",
                growth[TREE] < 5,
            ),
            Check(
                "term by term it grows like t: by at least a third of the factor",
                f"{growth[LIST]:.0f} times after {factor[LIST]:.0f} times as many",
                growth[LIST] > factor[LIST] / 3,
            ),
        ],
        notes=[
            "Processor time, the least of three pieces of trials. Compare ratios.",
            "log t itself grows by less than 2; what is above that is memory that no longer fits the cache.",
            f"{UNTUNED} has at most 512 terms, so its cost does not grow. It does not see the additive structure.",
        ],
    )


def _costs(model, X, y, sizes, pieces=3):
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


EXPERIMENT = Experiment(
    name="herbster-speed",
    paper="H 1, Fig. 1",
    title="cost per trial against the number of trials",
    claim="With additive spline kernels on balanced trees a trial costs O(d log t) instead of O(d t).",
    run=run,
)
