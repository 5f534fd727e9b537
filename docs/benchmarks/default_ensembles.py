"""The default ensembles on real streams, with nothing set: errors, calibration, coverage, AUC and cost.

    python docs/benchmarks/default_ensembles.py                        # all streams, "medium"; many minutes
    python docs/benchmarks/default_ensembles.py elec2 airfoil shuttle  # some of them
    python docs/benchmarks/default_ensembles.py --effort low
    python docs/benchmarks/default_ensembles.py --cost                 # microseconds, and how many times one SILK

Classes: the first 20,000 rows in order, mistakes in percent, test then train; ECE is the expected calibration error
(15 bins). Numbers: squared error over the variance, from the second row on, of the first 6000 rows, shuffled but for
bike_hour; the series are predicted one step ahead from their last 8 values; then the coverage of 90 % intervals.
Novelty: area under the ROC curve of the decision values, and the rate of alerts for nu = 0.02.  A * marks a figure
that misses its bar.  The data is that of ``real_data.py``, and streams without a file are left out.  ``streams.py``
runs other libraries on the same rows.
"""
import argparse
import os
import time

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before numpy is imported

import numpy as np  # noqa: E402
from real_data import area, load  # noqa: E402

from onlinekernels import SILK, OnlineKernelClassifier, OnlineKernelDetector, OnlineKernelRegressor  # noqa: E402

CHUNK = 500
CLASSES = {
    "elec2": 4.0,
    "sea": 11.0,
    "outdoor": 5.8,
    "banana": 10.7,
    "2cht": 10.1,
    "moving_squares": 0.25,
    "phishing": 9.5,
    "usps": 5.0,
    "chessboard": 5.4,
    "nsl_kdd": 0.95,
}
NUMBERS = {
    "airfoil": 0.125,
    "bike_hour": 0.085,
    "california": 0.2,
    "concrete": 0.145,
    "kin8nm": 0.145,
    "power_plant": 0.06,
    "wine_red": 0.65,
    "laser": 0.011,
    "lorenz": 0.0005,
    "mackey_glass": 0.006,
}
NOVELTY = {"shuttle": 0.98, "http": 0.99, "skab": None, "nsl_attacks": None}


# ---- Measures ---------------------------------------------------------------------------------


def calibration_error(said, hit, bins=15):
    place = np.minimum((said * bins).astype(int), bins - 1)
    return sum(abs(hit[place == k].mean() - said[place == k].mean()) * np.mean(place == k) for k in set(place))


def in_chunks(X, y, learn):
    """(what `learn` gives for each chunk, microseconds of processor time per row)."""
    start, found = time.process_time(), []
    for i in range(0, len(X), CHUNK):
        found.append(learn(X[i : i + CHUNK], None if y is None else y[i : i + CHUNK]))
    return found, 1e6 * (time.process_time() - start) / len(X)


def mark(figure, bar, below=True):
    return " " if bar is None or (figure <= bar if below else figure >= bar) else "*"


# ---- Ours -------------------------------------------------------------------------------------


def on_classes(name, effort):
    X, y = load("classes", name)
    model = OnlineKernelClassifier(effort)
    parts, cost = in_chunks(X, y, lambda a, b: model.progressive(a, b, return_proba=True, return_labels=True))
    said = np.concatenate([np.array(labels, dtype=object) for _, _, labels in parts])
    sure = np.concatenate([proba.max(axis=1) for _, proba, _ in parts])
    error, best = 100 * np.mean(said != y), 100 * min(model.errors_.values())
    print(f"{name:16} {error:7.2f}{mark(error, CLASSES[name])} (bar {CLASSES[name]})   best member {best:.2f}   "
          f"ECE {calibration_error(sure, said == y):.4f}   {cost:.0f} us", flush=True)


def on_numbers(name, effort):
    X, y = load("numbers", name)
    model = OnlineKernelRegressor(effort)
    parts, cost = in_chunks(X, y, lambda a, b: model.progressive(a, b, return_interval=0.9))
    scores, (low, high) = (
        np.concatenate([part[0] for part in parts]),
        np.concatenate([part[1] for part in parts], axis=1),
    )
    error, best = np.mean((scores - y)[1:] ** 2) / y.var(), min(model.errors_.values()) / y.var()
    print(f"{name:16} {error:7.4f}{mark(error, NUMBERS[name])} (bar {NUMBERS[name]})   best member {best:.4f}   "
          f"coverage {np.mean((low <= y) & (y <= high)):.3f}   {cost:.0f} us", flush=True)


def on_novelty(name, effort):
    X, odd = load("novelty", name)
    model = OnlineKernelDetector(effort=effort)
    parts, cost = in_chunks(X, None, lambda a, _: model.progressive(a, return_labels=True))
    scores, labels = (np.concatenate([part[i] for part in parts]) for i in range(2))
    found = area(scores, odd)
    print(
        f"{name:16} {found:7.3f}{mark(found, NOVELTY[name], False)} (bar {NOVELTY[name]})   "
        f"alerts {np.mean(labels == -1):.4f}   "
        f"{cost:.0f} us",
        flush=True,
    )


# ---- Cost -------------------------------------------------------------------------------------


def cost(rounds=3):
    """Microseconds per example, 8 features, chunks of 500, against one SILK with 512 terms in the same run.

    A round has 4000 rows, so that each has one refresh of the kernels that are learned.
    """
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000 + 4000 * rounds, 8))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    target = X[:, 0] * X[:, 1] + 0.1 * rng.normal(size=len(y))
    bars = {("classes", "low"): 20, ("classes", "medium"): 110, ("numbers", "low"): 30, ("numbers", "medium"): 150}
    models = {"SILK": (SILK("hinge", budget=512), y)}
    models |= {
        (task, effort): (kind(effort), answers)
        for task, kind, answers in (("classes", OnlineKernelClassifier, y), ("numbers", OnlineKernelRegressor, target))
        for effort in ("low", "medium")
    }
    spent = {name: [] for name in models}
    for name, (model, answers) in models.items():
        model.partial_fit(X[:6000], answers[:6000])
    for i in range(rounds):
        rows = slice(6000 + 4000 * i, 10000 + 4000 * i)
        for name, (model, answers) in models.items():
            spent[name].append(in_chunks(X[rows], answers[rows], lambda a, b: model.progressive(a, b))[1])
    one = np.median(spent["SILK"])
    for name, times in spent.items():
        ratio = np.median(times) / one
        print(
            f"{' '.join(name) if isinstance(name, tuple) else name:16} {np.median(times):8.1f} us "
            f"{ratio:7.1f}{mark(ratio, bars.get(name))}"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--effort", default="medium", choices=["low", "medium", "high"])
    parser.add_argument("--cost", action="store_true", help="time alone")
    parser.add_argument("streams", nargs="*", help="of " + ", ".join([*CLASSES, *NUMBERS, *NOVELTY]))
    options = parser.parse_args()
    if options.cost:
        return cost()
    for tables, run in ((CLASSES, on_classes), (NUMBERS, on_numbers), (NOVELTY, on_novelty)):
        for name in tables:
            if options.streams and name not in options.streams:
                continue
            try:
                run(name, options.effort)
            except FileNotFoundError as error:
                print(f"{name:16} left out: {error}")
    return None


if __name__ == "__main__":
    main()
