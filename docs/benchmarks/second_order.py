"""What second order costs and what it brings: KRLS against M, beside SILK, NORMA and a Gaussian process on a window.

    python docs/benchmarks/second_order.py                          # some minutes
    python docs/benchmarks/second_order.py --quick                  # seconds
    python docs/benchmarks/second_order.py --data ../shared/data    # the sets of regression.npz in that folder, too

One BLAS thread.  First the cost with 150 points, against bare products of NumPy in the same run; contestants take turns
and medians are compared.  A * marks a ratio that misses its bar.

    standing      partial_fit of 500 rows, none of which joins, against three (500 x 150)(150 x 150) products; bar 4
    joining       the same, where every row joins and as many leave; bar 5
    one by one    learn_one of a row that does not join, against S @ q with S of 150 x 150; bar 6

Then normalised squared errors (1 is predicting the mean), test then train, and in brackets microseconds per example,
against the number of points, of terms, or of rows in the window.  Everybody is tuned in a small grid, by the error on
the first fifth of the stream with 150 points or 512 terms, and run again from the start.  The Gaussian process has the
kernel, noise and no more of the tuned KRLS, and is fitted again every 25 rows: on a stream it would be every row.
"""
import argparse
import itertools
import time
from pathlib import Path

from rows import CHUNK, KNOWN, WORKLOADS  # noqa: I001  (sets the threads)

import numpy as np
from learning import marked, medians

from onlinekernels import KRLS, NORMA, SILK, Gaussian

BARS = {"standing": 4.0, "joining": 5.0, "one by one": 6.0}
SIZES = {
    "KRLS": (25, 50, 100, 150, 300),
    "SILK": (150, 300, 1000, 4000),
    "NORMA": (150, 300, 1000, 4000),
    "window": (150, 300),
}
WIDTHS = [0.25, 0.5, 1.0]  # times the root of the number of features
GRIDS = {
    "KRLS": {"width": WIDTHS, "noise": [0.03, 0.3], "memory": [1.0, 0.999, 0.99]},
    "SILK": {"width": WIDTHS, "penalty": [0.3, 1.0, 3.0], "regularization": [1e-4, 1e-3, 1e-2]},
    "NORMA": {"width": WIDTHS, "step": [0.1, 0.3, 0.6], "regularization": [1e-4, 1e-3, 1e-2]},
}
SETS = ["kin8nm", "power_plant", "california", "concrete", "airfoil"]
REFIT = 25


# ---- Cost -------------------------------------------------------------------------------------


def bare():
    """{name: (run, examples)} of the products that the three are held against."""
    rng = np.random.default_rng(0)
    S, B, q = rng.normal(size=(KNOWN, KNOWN)), rng.normal(size=(CHUNK, KNOWN)), rng.normal(size=KNOWN)
    out, row = np.empty((CHUNK, KNOWN)), np.empty(KNOWN)

    def three():
        for _ in range(3):
            np.matmul(B, S, out=out)

    def one():
        for _ in range(CHUNK):
            np.matmul(S, q, out=row)

    return {"standing": (three, CHUNK), "joining": (three, CHUNK), "one by one": (one, CHUNK)}


def costs(seconds):
    print(f"{KNOWN} points, 8 features; microseconds per example")
    print(f"{'':12} |   bare    ours   ratio  bar")
    for name, (run, examples) in bare().items():
        ours, as_many = WORKLOADS[f"second order {name}"]()
        times = medians({"bare": run, "ours": ours}, seconds)
        bare_time, own_time = times["bare"] / examples, times["ours"] / as_many
        ratio = marked(own_time / bare_time, BARS[name])
        print(f"{name:12} | {bare_time:6.2f} {own_time:7.2f}  {ratio:>6} {BARS[name]:4.0f}", flush=True)


# ---- Error ------------------------------------------------------------------------------------


def drifting(n, features=4):
    """A smooth function of directions that turn, with noise of a tenth of its variance."""
    rng = np.random.default_rng(0)
    X, angle = rng.normal(size=(n, features)), np.linspace(0.0, 2.0 * np.pi * n / 6000, n)
    turned = np.cos(angle) * X[:, 0] + np.sin(angle) * X[:, 1]
    f = np.sin(1.5 * turned) + 0.5 * X[:, 2] * np.cos(turned)
    return X, f + np.sqrt(0.1 * f.var()) * rng.normal(size=n)


def real(folder, name, n):
    """The first rows of a set without NaN, shuffled; targets scaled by the first 50. None without the file."""
    path = Path(folder) / "regression.npz"
    if not path.exists():
        print(f"\n{name}: left out, there is no {path}.")
        return None
    with np.load(path, allow_pickle=False) as file:
        X, y = file[f"{name}::X"].astype(float), file[f"{name}::y"].astype(float)
    whole = np.isfinite(X).all(axis=1)
    X, y = X[whole][:6000], y[whole][:6000]
    order = np.random.default_rng(0).permutation(len(X))
    X, y = X[order][:n], y[order][:n]
    return X, (y - y[:50].mean()) / y[:50].std()


def kernel(width, features):
    return Gaussian(width * np.sqrt(features)) + 1


def model(name, size, features, width, **parameters):
    cls = {"KRLS": KRLS, "SILK": SILK, "NORMA": NORMA}[name]
    return cls("squared", kernel(width, features), budget=size, scale=True, **parameters)


def error_and_time(name, size, stream, setting):
    """(normalised squared error, microseconds per example) of one pass."""
    X, y = stream
    learner, start = model(name, size, X.shape[1], **setting), time.perf_counter()
    scores = learner.progressive(X, y)
    return normalised(scores, y), 1e6 * (time.perf_counter() - start) / len(y)


def normalised(scores, y):
    return np.mean((scores - y) ** 2) / y.var()


def tuned(name, stream):
    """The setting with the least error on the first fifth."""
    X, y = stream
    first = X[: len(X) // 5], y[: len(X) // 5]
    settings = [dict(zip(GRIDS[name], values)) for values in itertools.product(*GRIDS[name].values())]
    return min(settings, key=lambda setting: error_and_time(name, 150 if name == "KRLS" else 512, first, setting)[0])


def on_a_window(size, stream, setting):
    """The same of a Gaussian process that is fitted to the last rows, again and again; scaled by all rows so far."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel

    from onlinekernels import RunningScaler

    X, y = RunningScaler().progressive(stream[0]), stream[1]
    prior = RBF(setting["width"] * np.sqrt(X.shape[1])) + ConstantKernel(1.0)
    scores, start = np.zeros(len(y)), time.perf_counter()
    for t in range(REFIT, len(y), REFIT):
        window = slice(max(0, t - size), t)
        process = GaussianProcessRegressor(prior, alpha=setting["noise"], optimizer=None).fit(X[window], y[window])
        scores[t : t + REFIT] = process.predict(X[t : t + REFIT])
    return normalised(scores, y), 1e6 * (time.perf_counter() - start) / len(y)


def compare(title, stream, quick):
    print(f"\n{title}: {len(stream[1])} rows, {stream[0].shape[1]} features")
    settings = {name: tuned(name, stream) for name in GRIDS}
    for name, sizes in SIZES.items():
        shown = ", ".join(f"{key}={value:g}" for key, value in settings.get(name, {"refitted every": REFIT}).items())
        cells = []
        for size in sizes[:3] if quick else sizes:
            try:
                found = (error_and_time(name, size, stream, settings[name]) if name in settings
                         else on_a_window(size, stream, settings["KRLS"]))
            except ImportError as missing:
                cells = [f"left out: {missing}"]
                break
            cells.append(f"{size:5d}: {found[0]:.3f} ({found[1]:.1f})")
        print(f"  {name:7} {'  '.join(cells)}   {shown}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="short streams and few turns")
    parser.add_argument("--data", metavar="FOLDER", help="where regression.npz is")
    arguments = parser.parse_args()
    n = 1500 if arguments.quick else 6000
    costs(0.3 if arguments.quick else 5.0)
    compare("a function that turns", drifting(n), arguments.quick)
    for name in SETS if arguments.data else ():
        stream = real(arguments.data, name, n)
        if stream is not None:
            compare(name, stream, arguments.quick)


if __name__ == "__main__":
    main()
