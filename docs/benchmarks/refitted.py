"""The default ensembles beside boosting, forests and support vectors that are refitted whenever rows have grown by a
third.

    python docs/benchmarks/refitted.py                       # all streams of classes and numbers; about an hour
    python docs/benchmarks/refitted.py airfoil elec2         # some of them
    python docs/benchmarks/refitted.py --who ours            # or peers; --effort low, medium or high (the default)

A line for each stream and model: the error on all rows from the 100th on, and on the second half, where cold starts do
not count.  Classes: mistakes in percent; numbers: squared error over the variance.  Peers are scikit-learn's with their
own settings, support vectors behind scalers, and see all rows so far; they predict test then train, between refits
with what they have.  The data is that of ``real_data.py``.
"""
import argparse
import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # before numpy is imported

import numpy as np  # noqa: E402
from real_data import load  # noqa: E402

from onlinekernels import OnlineKernelClassifier, OnlineKernelRegressor  # noqa: E402

CHUNK, FIRST = 500, 100
STREAMS = {
    "classes": ["elec2", "sea", "outdoor", "banana", "2cht", "moving_squares", "phishing", "usps", "chessboard",
                "nsl_kdd"],
    "numbers": ["airfoil", "bike_hour", "california", "concrete", "kin8nm", "power_plant", "wine_red", "laser", "lorenz",
                "mackey_glass", "co2", "sunspots"],
}


def peers(task):
    """{name: a fresh model of scikit-learn}."""
    from sklearn import ensemble, svm
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    if task == "classes":
        return {"boosting": ensemble.HistGradientBoostingClassifier(), "forest": ensemble.RandomForestClassifier(),
                "support vectors": make_pipeline(StandardScaler(), svm.SVC(cache_size=500))}
    return {"boosting": ensemble.HistGradientBoostingRegressor(), "forest": ensemble.RandomForestRegressor(),
            "support vectors": TransformedTargetRegressor(make_pipeline(StandardScaler(), svm.SVR(cache_size=500)),
                                                           transformer=StandardScaler())}


def refitted(model, X, y):
    """Predictions from row `FIRST` on."""
    said, end = [], FIRST
    while end < len(y):
        begin, end = end, min(len(y), end + -(-end // 3))
        several = len(np.unique(y[:begin])) > 1
        said.append(model.fit(X[:begin], y[:begin]).predict(X[begin:end]) if several else np.repeat(y[:1], end - begin))
    return np.concatenate(said)


def learned(task, effort, X, y):
    """Predictions of ours from row `FIRST` on."""
    said = []
    if task == "classes":
        model = OnlineKernelClassifier(effort)
        for i in range(0, len(y), CHUNK):
            said += list(model.progressive(X[i : i + CHUNK], y[i : i + CHUNK], return_labels=True)[1])
        return np.array(said)[FIRST:]
    model = OnlineKernelRegressor(effort)
    for i in range(0, len(y), CHUNK):
        said.append(model.progressive(X[i : i + CHUNK], y[i : i + CHUNK]))
    return np.concatenate(said)[FIRST:]


def print_line(task, stream, name, said, y):
    loss = 100.0 * (said != y[FIRST:]) if task == "classes" else (said - y[FIRST:]) ** 2 / y.var()
    print(f"{stream:16} {name:16} all {loss.mean():8.4f}   second half {loss[len(y) // 2 - FIRST:].mean():8.4f}",
          flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--effort", default="high", choices=["low", "medium", "high"])
    parser.add_argument("--who", default="all", choices=["all", "ours", "peers"])
    parser.add_argument("streams", nargs="*")
    options = parser.parse_args()
    for task, streams in STREAMS.items():
        for stream in streams:
            if options.streams and stream not in options.streams:
                continue
            X, y = load(task, stream)
            if options.who != "peers":
                print_line(task, stream, f"ours, {options.effort}", learned(task, options.effort, X, y), y)
            for name, model in peers(task).items() if options.who != "ours" else ():
                print_line(task, stream, name, refitted(model, X, y), y)


if __name__ == "__main__":
    main()
