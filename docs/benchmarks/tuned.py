"""Four real streams, test then train: what tuning on the first rows does for single algorithms, beside scikit-learn.

    python docs/benchmarks/tuned.py                 # up to 20,000 rows per stream; some minutes
    python docs/benchmarks/tuned.py --quick         # 2,000 rows
    python docs/benchmarks/tuned.py --scaling       # ways to scale instead: by the first rows, or by all so far

The data is that of ``real_data.py``.  A stream whose file is missing is left out, and so are the rows of scikit-learn
where it is not installed.  ``streams.py`` has other libraries, and the models that need no tuning.

Everyone gets the same rows in the same order: scaled by the mean and deviation of the rows so far (`RunningScaler`,
not timed).  Each row is predicted, then learned.  scikit-learn gets Nystroem features of the first 500 rows, and learns
in chunks of ten rows and then once more row by row: where a label comes several times in a row, as in elec2 and
outdoor, a chunk comes too late.  Ours run in one call of `progressive`, which gives what row by row gives, but faster.
"us" is microseconds of processor time per example.

"Tuned" means: the setting with the fewest mistakes on the first 2,000 rows (500 with --quick) in a small grid, run
again from the start.  "Rest" is the error without those rows, which the tuned ones have seen before.  "One setting" was
chosen by hand in larger grids on these same four streams, to be not far from the best on each.
"""
import argparse
import itertools
import os
import sys
import time
import warnings
from functools import partial

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before numpy is imported

import numpy as np  # noqa: E402
import real_data  # noqa: E402

from onlinekernels import (  # noqa: E402
    NORMA,
    SILK,
    SVMD,
    Constant,
    Gaussian,
    Linear,
    PassiveAggressive,
    RunningScaler,
)

STREAMS = ["elec2", "sea", "outdoor", "banana"]

ALGORITHMS = {"NORMA": NORMA, "SILK": SILK, "SVMD": SVMD}
KERNELS = {"width": [0.5, 1.0, 2.0], "constant": [0.0, 1.0], "linear": [0.0, 0.1]}
GRIDS = {
    "NORMA": {"step": [0.1, 0.3, 1.0], "regularization": [1e-4, 1e-3, 1e-2]},
    "SILK": {"penalty": [0.1, 0.3, 1.0], "regularization": [1e-4, 1e-3, 1e-2]},
    "SVMD": {"step": [0.1, 1.0], "meta_step": [0.01, 0.03], "regularization": [1e-4, 1e-3, 1e-2]},
}
# One setting for all streams: the defaults.
FIXED = {
    "SILK": {"width": 0.7, "penalty": 1.0, "regularization": 3e-3},
    "SVMD": {"width": 0.7, "step": 0.1, "meta_step": 0.1, "regularization": 1e-3},
}
CHUNK = 10  # rows that scikit-learn predicts, then learns, when in chunks
LANDMARKS = 300


def load(name, n):
    """The first n rows of a stream and labels 0, 1, ...; None without the file."""
    try:
        X, y = real_data.classes(name)
    except FileNotFoundError as error:
        print(f"\n{name}: left out, {error}. Set ONLINEKERNELS_SHARED to the folder that holds data/.")
        return None
    return X[:n], y[:n].astype(int)


# ---- Ours -------------------------------------------------------------------------------------


def kernel(width, constant=0.0, linear=0.0):
    k = Gaussian(width)
    if constant:
        k = k + Constant(constant)
    return k + linear * Linear() if linear else k


def ours(name, X, y, *, width, constant=0.0, linear=0.0, **parameters):
    """Predictions of an algorithm of the library with at most 512 terms."""
    return guesses(ALGORITHMS[name](loss_for(y), kernel(width, constant, linear), budget=512, **parameters), X, y)


def linear_aggressive(X, y):
    """The linear algorithm that river has as well."""
    return guesses(PassiveAggressive(loss_for(y), Linear(), offset=True), X, y)


def loss_for(y):
    return "multiclass_hinge" if y.max() > 1 else "hinge"


def guesses(model, X, y):
    """Labels that a model predicts, each before it learns the row."""
    scores = model.progressive(X, y)
    return model.classes_[scores.argmax(axis=1)] if scores.ndim == 2 else (scores > 0).astype(int)


def combinations(grid):
    for values in itertools.product(*grid.values()):
        yield dict(zip(grid, values))


def mistakes(run, X, y, setting):
    try:
        return np.sum(run(X, y, **setting) != y)
    except FloatingPointError:  # diverged
        return len(y)


def tuned(run, grid, X, y):
    """The fewest mistakes in the grid, and the first setting that has them."""
    settings = list(combinations(grid))
    counts = [mistakes(run, X, y, setting) for setting in settings]
    return min(counts), settings[int(np.argmin(counts))]


# ---- scikit-learn -----------------------------------------------------------------------------


def of_sklearn(X, y, *, width, alpha, chunk=CHUNK):
    """Nystroem features of the first 500 rows, then SGD; the first chunk is predicted to be the first class."""
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import SGDClassifier

    features = Nystroem(gamma=0.5 / width**2, n_components=LANDMARKS, random_state=0).fit(X[:500])
    model, classes = SGDClassifier(alpha=alpha, random_state=0), np.unique(y)
    answers = np.full(len(y), classes[0])
    for begin in range(0, len(y), chunk):
        part = slice(begin, begin + chunk)
        mapped = features.transform(X[part])
        if begin:
            answers[part] = model.predict(mapped)
        model.partial_fit(mapped, y[part], classes=classes)
    return answers


def has_sklearn():
    try:
        import sklearn  # noqa: F401
    except ImportError:
        return False
    warnings.filterwarnings("ignore", module="sklearn")
    return True


# ---- The tables -------------------------------------------------------------------------------


def timed(function, *arguments, **keywords):
    """What a function returns, and the seconds of processor time that it took."""
    start = time.process_time()
    result = function(*arguments, **keywords)
    return result, time.process_time() - start


def shown(setting):
    return ", ".join(f"{key}={value:g}" for key, value in setting.items())


def contestants(X, y, first):
    """(name, (answers, seconds), remark) for each row of a table."""
    yield "repeat the last label", (np.r_[-1, y[:-1]], None), ""
    for name, setting in FIXED.items():
        yield f"{name}, one setting for all", timed(ours, name, X, y, **setting), shown(setting)
    best = []
    for name, grid in GRIDS.items():
        count, setting = tuned(partial(ours, name), {**KERNELS, **grid}, X[:first], y[:first])
        best.append((count, name, setting))
    _, chosen, _ = min(best, key=lambda entry: entry[0])
    for _, name, setting in best:
        mark = "   <- fewest mistakes while tuning" if name == chosen else ""
        yield f"{name}, tuned", timed(ours, name, X, y, **setting), shown(setting) + mark
    yield "PassiveAggressive, linear", timed(linear_aggressive, X, y), "two classes or many at once, with an offset"
    if has_sklearn():
        grid = {"width": KERNELS["width"], "alpha": [1e-5, 1e-4, 1e-3]}
        _, setting = tuned(of_sklearn, grid, X[:first], y[:first])
        yield "Nystroem + SGD, tuned", timed(of_sklearn, X, y, **setting), shown(setting) + f", chunks of {CHUNK}"
        yield "  the same setting, row by row", timed(of_sklearn, X, y, chunk=1, **setting), ""


def table(name, X, y, first):
    print(f"\n{name}: {len(y)} rows, {X.shape[1]} features, {len(np.unique(y))} classes")
    print(f"  {'':32} {'error':>6} {'rest':>6} {'us':>8}")
    for row, (answers, seconds), remark in contestants(X, y, first):
        wrong = answers != y
        speed = "" if seconds is None else f"{1e6 * seconds / len(y):.1f}"
        print(f"  {row:32} {wrong.mean():6.1%} {wrong[first:].mean():6.1%} {speed:>8}   {remark}".rstrip(), flush=True)


def by_the_first(X, count):
    """X scaled by the mean and deviation of its first rows."""
    deviation = X[:count].std(axis=0)
    return (X - X[:count].mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)


def scaling_table(name, X, y):
    """Errors of algorithms with their defaults behind several ways to scale."""
    ways = {f"first {count}": by_the_first(X, count) for count in (20, 100, 500)}
    ways |= {f"memory {memory:g}": RunningScaler(memory).progressive(X) for memory in (1.0, 0.999, 0.99)}
    print(f"\n{name}: {len(y)} rows, errors in percent\n  {'':6}" + "".join(f"{way:>14}" for way in ways))
    for algorithm, make in ALGORITHMS.items():
        kernel = Gaussian(0.3 * np.sqrt(X.shape[1]))  # the default of features of the size of 1
        errors = [np.mean(guesses(make(loss_for(y), kernel), Z, y) != y) for Z in ways.values()]
        print(f"  {algorithm:6}" + "".join(f"{100 * error:14.1f}" for error in errors), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="2,000 rows per stream")
    parser.add_argument("--scaling", action="store_true", help="compare ways to scale")
    parser.add_argument("streams", nargs="*", default=STREAMS, metavar="stream", help=f"of {', '.join(STREAMS)}")
    options = parser.parse_args()
    n, first = (2_000, 500) if options.quick else (20_000, 2_000)
    for name in options.streams:
        if name not in STREAMS:
            sys.exit(f"There is no stream {name!r}; there are {', '.join(STREAMS)}.")
        stream = load(name, n)
        if stream is None:
            continue
        X, y = stream
        if options.scaling:
            scaling_table(name, X, y)
        else:
            table(name, RunningScaler().progressive(X), y, first)


if __name__ == "__main__":
    main()
