"""What a trial costs on the trees: predict and add, 8 coordinates, spline of order 1.

    python docs/benchmarks/additive.py                # m = 10^3 .. 10^6
    python docs/benchmarks/additive.py --quick        # up to 10^5

Times are microseconds per trial; contestants take turns and medians are compared, because machines are
noisy.  A * marks a ratio that misses its bar.

    tree          partial_fit on m terms, every example enters
    window        the same with budget=Window(m): every example enters and the oldest leaves
    numpy         f(x) by vectorised NumPy over all m terms, one trial (nothing is added)
    engine        partial_fit in chunks with AdditiveSpline(tree=False), budget m
    bytes         memory of the blocks, per term and coordinate
"""
import argparse
import os
import statistics
import time

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before numpy is imported

import numpy as np  # noqa: E402

from onlinekernels import NORMA, AdditiveSpline, Window  # noqa: E402

COORDINATES, TRIALS = 8, 1000
GROWTH_BAR, NUMPY_BAR, ENGINE_BAR, BYTES_BAR = 10.0, 500.0, 1.0, 150.0


def filled(m, rng, **parameters):
    """A model with m terms: every example enters, whatever f says."""
    kernel = AdditiveSpline(order=1, tree=parameters.pop("tree", True))
    model = NORMA("absolute", kernel, step=1e-3, regularization=1e-9, **parameters)
    for first in range(0, m, 10_000):
        X = rng.uniform(1e-3, 1.0, size=(min(10_000, m - first), COORDINATES))
        model.partial_fit(X, rng.normal(size=len(X)) * 1e6)
    return model


def learning(model, rng, trials):
    """Microseconds per trial of the next examples."""
    X, y = rng.uniform(1e-3, 1.0, size=(trials, COORDINATES)), rng.normal(size=trials) * 1e6
    start = time.perf_counter()
    model.partial_fit(X, y)
    return 1e6 * (time.perf_counter() - start) / trials


def brute_force(m, rng):
    """f at one point, over all terms at once."""
    S, alpha = rng.uniform(1e-3, 1.0, size=(COORDINATES, m)), rng.normal(size=m)
    x = rng.uniform(1e-3, 1.0, size=COORDINATES)

    def evaluate():
        total = 0.0
        for knots, value in zip(S, x):
            low, gap = np.minimum(knots, value), np.abs(knots - value)
            total += alpha @ (1.0 + knots * value + low * low * (gap / 2.0 + low / 3.0))
        return total

    def run():
        start = time.perf_counter()
        evaluate()
        return 1e6 * (time.perf_counter() - start)

    return run


def measure(m, turns):
    rng = np.random.default_rng(m)
    tree, window = filled(m, rng), filled(m, rng, budget=Window(m))
    nbytes = tree._state.function.forest.tree.nbytes / (m * COORDINATES)
    runs = {
        "tree": lambda: learning(tree, rng, TRIALS),
        "window": lambda: learning(window, rng, TRIALS),
        "numpy": brute_force(m, rng),
    }
    if m <= 100_000:
        engine = filled(m, rng, tree=False, budget=m)
        runs["engine"] = lambda: learning(engine, rng, max(8, min(TRIALS, 2_000_000 // m)))
    times = {name: [] for name in runs}
    for _ in range(turns):
        for name, run in runs.items():
            times[name].append(run())
    return {**{name: statistics.median(taken) for name, taken in times.items()}, "bytes": nbytes}


def marked(value, fine):
    return f"{value:.2f}{' ' if fine else '*'}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="stop at 10^5 terms, few turns")
    quick = parser.parse_args().quick
    sizes = [1_000, 2_000, 10_000, 100_000] + ([] if quick else [1_000_000])
    print("    terms |   tree  window |      numpy     engine | tree/tree(1000) numpy/tree engine/tree | bytes")
    first = None
    for m in sizes:
        t = measure(m, 5 if quick else 15)
        first = t["tree"] if first is None else first
        growth, against_numpy = t["tree"] / first, t["numpy"] / t["tree"]
        against_engine = t["engine"] / t["tree"] if "engine" in t else None
        engine = f"{t['engine']:10.2f}" if "engine" in t else " " * 10
        ratio = "" if against_engine is None else marked(against_engine, m < 2000 or against_engine >= ENGINE_BAR)
        print(
            f"{m:9d} | {t['tree']:6.2f} {t['window']:7.2f} | {t['numpy']:10.1f} {engine} |"
            f" {marked(growth, growth <= GROWTH_BAR):>15}"
            f" {marked(against_numpy, m != 100_000 or against_numpy >= NUMPY_BAR):>10} {ratio:>11} |"
            f" {marked(t['bytes'], t['bytes'] <= BYTES_BAR)}",
            flush=True,
        )


if __name__ == "__main__":
    main()
