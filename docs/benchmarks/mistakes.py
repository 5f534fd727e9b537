"""Mistakes on the drifting and switching streams of Kivinen et al., section VI-A.

    python docs/benchmarks/mistakes.py                # 10,000 examples, 5 seeds; some minutes
    python docs/benchmarks/mistakes.py --quick        # 2,000 examples, 2 seeds

Two classes of five Gaussians each, in the plane.  Every algorithm is tuned on two streams (seeds 100 and 101), by
the fewest mistakes in its grid, and then reported on others: the mean and the range over the seeds 0, 1, ....
"""
import argparse
import itertools
import os
import sys

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before numpy is imported

import numpy as np  # noqa: E402

from onlinekernels import (  # noqa: E402
    ALMA,
    ILK,
    NORMA,
    ROMMA,
    SILK,
    SVMD,
    Gaussian,
    Hinge,
    PassiveAggressive,
    Perceptron,
    Projection,
    Window,
)
from onlinekernels.streams import drifting_gaussians, switching_gaussians  # noqa: E402

WIDTHS = [0.25, 0.35, 0.5]
STREAMS = {"drifting": drifting_gaussians, "switching": switching_gaussians}
NORMA_GRID = {"step": [0.1, 0.3, 1.0], "regularization": [0.003, 0.01, 0.03, 0.1]}
ILK_GRID = {"step": [1.0], "penalty": [0.3, 1.0, 3.0], "regularization": [0.003, 0.01, 0.03, 0.1]}

# name: (how to make it from a kernel and parameters, grid)
ALGORITHMS = {
    "Perceptron": (lambda k: Perceptron(k), {}),
    "ALMA0": (lambda k, **p: ALMA(k, alpha=1.0, **p), {"C": [1.4, 5.0, 20.0, 80.0]}),
    "NORMA0": (lambda k, **p: NORMA(Hinge(0.0), k, **p), NORMA_GRID),
    "ALMA": (
        lambda k, **p: ALMA(k, **p),
        {"alpha": [0.5, 0.8, 0.9, 0.95], "B": [None, 10.0, 30.0], "C": [1.4, 5.0, 20.0, 80.0]},
    ),
    "NORMA": (lambda k, **p: NORMA(Hinge(1.0), k, **p), NORMA_GRID),
    "ILK, no forgetting": (lambda k, **p: ILK(Hinge(1.0), k, **p), {**ILK_GRID, "regularization": [0.0]}),
    "ILK": (lambda k, **p: ILK(Hinge(1.0), k, **p), ILK_GRID),
    "SILK 100": (lambda k, **p: SILK(Hinge(1.0), k, budget=100, **p), ILK_GRID),
    "NORMA window 100": (lambda k, **p: NORMA(Hinge(1.0), k, budget=Window(100), **p), NORMA_GRID),
    "SVMD": (
        lambda k, **p: SVMD(Hinge(1.0), k, budget=None, **p),
        {"step": [0.1, 0.5], "meta_step": [0.05, 0.1], "regularization": [0.003, 0.01, 0.03, 0.1]},
    ),
    "PA-I": (lambda k, **p: PassiveAggressive(Hinge(1.0), k, **p), {"penalty": [0.3, 1.0, 3.0]}),
    "Projection, ball": (lambda k, **p: Projection(Hinge(1.0), k, **p), {"radius": [3.0, 5.0, 8.0, 12.0]}),
    "ROMMA": (lambda k, **p: ROMMA(k, **p), {"aggressive": [False, True]}),
}


def settings(grid):
    """All combinations of a grid, with the kernel's widths."""
    for width, *values in itertools.product(WIDTHS, *grid.values()):
        yield width, dict(zip(grid, values))


def mistakes(make, width, parameters, stream):
    X, y = stream
    scores = make(Gaussian(width), **parameters).progressive(X, y, classes=[-1, 1])
    return int(np.sum(np.where(scores > 0, 1, -1) != y))


def tuned(make, grid, streams):
    """The setting with the fewest mistakes."""
    return min(settings(grid), key=lambda setting: sum(mistakes(make, *setting, stream) for stream in streams))


def progress(steps):
    """A progress bar, if tqdm is there and someone is looking."""
    try:
        from tqdm import tqdm
    except ImportError:
        return steps
    return tqdm(steps, disable=not sys.stderr.isatty())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="shorter streams, fewer seeds")
    quick = parser.parse_args().quick
    n, seeds = (2_000, range(2)) if quick else (10_000, range(5))
    results = {}
    for kind, name in progress(list(itertools.product(STREAMS, ALGORITHMS))):
        make, grid = ALGORITHMS[name]
        width, parameters = tuned(make, grid, [STREAMS[kind](n, seed=seed) for seed in (100, 101)])
        counts = [mistakes(make, width, parameters, STREAMS[kind](n, seed=seed)) for seed in seeds]
        results[kind, name] = counts, {"width": width, **parameters}
    for kind in STREAMS:
        print(f"\n{kind}: mistakes of {n} examples, {len(seeds)} seeds")
        for name in ALGORITHMS:
            counts, setting = results[kind, name]
            shown = ", ".join(f"{key}={value}" for key, value in setting.items())
            print(f"  {name:18s} {np.mean(counts):7.0f}  ({min(counts)}-{max(counts)})   {shown}")


if __name__ == "__main__":
    main()
