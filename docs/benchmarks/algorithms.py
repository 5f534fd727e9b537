"""What the algorithms cost beside NORMA, with equal numbers of terms and the same kernel rows.

    python docs/benchmarks/algorithms.py

One BLAS thread.  Times are microseconds per example in chunks of 1024; each ratio is taken in one run
with the contestants interleaved.  Every example enters (random labels, large margin or penalty).
A * marks a ratio that misses its bar: 1.3 for SVMD and 1.15 for SILK at 512 terms of 256 features.
"""
import os

for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np  # noqa: E402
from learning import marked, medians  # noqa: E402

from onlinekernels import (  # noqa: E402
    ILK,
    NORMA,
    SILK,
    SVMD,
    Gaussian,
    GraphHinge,
    Hinge,
    MulticlassHinge,
    Recent,
    Taxonomy,
)

ROWS = 1024


def learners(loss, size, **shared):
    """One learner of each kind, all with `size` terms."""
    kernel = Gaussian(1.0)
    return {
        "NORMA": NORMA(loss, kernel, step=0.1, regularization=1e-3, budget=size, **shared),
        "SVMD": SVMD(loss, kernel, step=0.1, regularization=1e-3, budget=size, **shared),
        "SILK": SILK(loss, kernel, regularization=1e-3, penalty=0.1, budget=size, **shared),
        "ILK, recent": ILK(loss, kernel, regularization=1e-3, penalty=0.1, budget=Recent(size), **shared),
    }


def measure(title, loss, size, features, classes, dtype=np.float64, bars=(None, None), **shared):
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(max(ROWS, size), features)) / np.sqrt(features)).astype(dtype)
    y = np.asarray(classes)[rng.integers(0, len(classes), len(X))]
    models = learners(loss, size, **shared)
    for model in models.values():
        model.partial_fit(X, y, **({} if shared else {"classes": classes}))
    runs = {name: (lambda m: lambda: m.partial_fit(X[:ROWS], y[:ROWS]))(m) for name, m in models.items()}
    times = {name: time / ROWS for name, time in medians(runs, 3.0).items()}
    bars = {"SVMD": bars[0], "SILK": bars[1]}
    line = "  ".join(
        f"{name} {time:7.2f} ({marked(time / times['NORMA'], bars.get(name))}x)" if name != "NORMA"
        else f"NORMA {time:7.2f}"
        for name, time in times.items()
    )
    print(f"{title:<42} {line}", flush=True)


def main():
    large = 1e6
    for size, features in ((512, 256), (4096, 784)):
        bars = (1.3, 1.15) if size == 512 else (None, None)
        measure(f"two classes, {size} terms, {features} features", Hinge(large), size, features, [-1, 1], bars=bars)
        ten = list(range(10))
        measure(f"ten classes, {size} terms, {features} features", MulticlassHinge(large), size, features, ten)
    measure("the same in float32", MulticlassHinge(large), 4096, 784, list(range(10)), np.float32)
    paths = [f"{a}/{b}/{c}" for a in range(8) for b in range(20) for c in range(30)][:4656]
    tree = Taxonomy.from_paths(paths)
    measure("4656 labels of a taxonomy, 4096 terms, 100", GraphHinge(), 4096, 100, paths, labels=tree)


if __name__ == "__main__":
    main()
