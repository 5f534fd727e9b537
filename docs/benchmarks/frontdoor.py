"""The front door on real streams, with nothing set: errors, calibration, coverage, AUC and cost, beside river's best.

    python docs/benchmarks/frontdoor.py                        # all streams, "medium"; many minutes
    python docs/benchmarks/frontdoor.py elec2 airfoil shuttle  # some of them
    python docs/benchmarks/frontdoor.py --effort low --no-river
    python docs/benchmarks/frontdoor.py --cost                 # microseconds per example against one SILK with 512 terms

Classes: the first 20,000 rows in order, mistakes in percent, test then train; ECE is the expected calibration error (15 bins).
Numbers: squared error over the variance, from the second row on, of the first 6000 rows, shuffled but for bike_hour; the series are
predicted one step ahead from their last 8 values; then the coverage of 90 % intervals.  Novelty: area under the ROC curve
of the decision values, and the rate of alerts for nu = 0.02.  A * marks a figure that misses its bar.  The data is that of
``streams.py``, and streams without a file are left out.  river's peers: an adaptive forest of 10 trees, logistic regression and
PA for classes (behind river's scaler), a forest and KNN for numbers, half-space trees for novelty.
"""
import argparse
import os
import time
from pathlib import Path

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before numpy is imported

import numpy as np  # noqa: E402

from onlinekernels import SILK, OnlineKernelClassifier, OnlineKernelDetector, OnlineKernelRegressor  # noqa: E402

DATA = Path(os.environ.get("ONLINEKERNELS_SHARED", Path(__file__).resolve().parents[3] / "shared")) / "data"
CHUNK = 500
CLASSES = {"elec2": 4.0, "sea": 11.0, "outdoor": 5.8, "banana": 10.7, "2cht": 10.1, "moving_squares": 0.25, "phishing": 9.5, "usps": 5.0,
           "chessboard": 5.4, "nsl_kdd": 0.95}
NUMBERS = {"airfoil": 0.125, "bike_hour": 0.085, "california": 0.2, "concrete": 0.145, "kin8nm": 0.145, "power_plant": 0.06,
           "wine_red": 0.65, "laser": 0.011, "lorenz": 0.0005, "mackey_glass": 0.006}
NOVELTY = {"shuttle": 0.98, "http": 0.99, "skab": None, "nsl_attacks": None}
SERIES = {"laser": "santafe_laser", "lorenz": "lorenz", "mackey_glass": "mackey_glass_30"}


# ---- Data -------------------------------------------------------------------------------------


def chessboard(n=20000, seed=0):
    """8 x 8 fields of 8 classes, neighbours differ; 500 rows in one field at a time, every fifth 500 all over the board."""
    rng = np.random.default_rng(seed)
    board, parts = np.zeros((8, 8), dtype=int), []
    for i, j in np.ndindex(8, 8):
        beside = {board[i - 1, j] if i else -1, board[i, j - 1] if j else -1}
        board[i, j] = rng.choice([c for c in range(8) if c not in beside])
    for block in range(n // 500):
        parts.append(rng.uniform(0, 8, (500, 2)) if block % 5 == 4 else rng.uniform(0, 1, (500, 2)) + rng.integers(0, 8, 2))
    X = np.concatenate(parts)
    return X, board[tuple(np.minimum(X.astype(int), 7).T)]


def nsl(n=20000):
    """Numbers and categories, one column of 0 and 1 for each category, and whether a row is an attack."""
    file = np.load(DATA / "nsl_kdd_full_36f.npz")
    rows = np.random.default_rng(0).permutation(len(file["num_train"]))[:n]
    words = file["cat_train"]
    columns = [words[rows, j][:, None] == np.unique(words[:, j]) for j in range(words.shape[1])]
    return np.hstack([file["num_train"][rows].astype(float), *columns]).astype(float), (file["label_train"][rows] != "normal").astype(int)


def classes(name):
    if name == "chessboard":
        return chessboard()
    if name == "nsl_kdd":
        return nsl()
    file = np.load(DATA / f"{name}.npz")
    if name == "usps":
        X = np.concatenate([file["X_train"], file["X_test"]]).reshape(-1, 256) / 1000.0
        return X, np.concatenate([file["y_train"], file["y_test"]])
    return file["X"][:20000].astype(float), file["y"][:20000]


def numbers(name):
    if name in SERIES:
        values = np.load(DATA / "series.npz")[SERIES[name]].astype(float)
        values = (values if values.ndim == 1 else values[:, 0])[:6008]
        return np.column_stack([values[i : len(values) - 8 + i] for i in range(8)]), values[8:]
    file = np.load(DATA / "regression.npz")
    X, y = file[f"{name}::X"][:6000].astype(float), file[f"{name}::y"][:6000].astype(float)
    X = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
    order = np.arange(len(y)) if name == "bike_hour" else np.random.default_rng(0).permutation(len(y))
    return X[order], y[order]


def novelty(name):
    if name == "skab":
        file = np.load(DATA / "skab.npz")
        runs = sorted({key.split("::")[0] for key in file.files if key.endswith("::X")})
        rows = {run: file[f"{run}::X"].astype(float) for run in runs}
        odd = [file[f"{run}::anomaly"] if f"{run}::anomaly" in file.files else np.zeros(len(rows[run])) for run in runs]
        return np.concatenate(list(rows.values())), np.concatenate(odd).astype(int)
    if name == "nsl_attacks":
        return nsl()
    file = np.load(DATA / f"ad_{name}.npz")
    return file["X"].astype(float), file["y"].astype(int)


# ---- Measures ---------------------------------------------------------------------------------


def calibration_error(said, hit, bins=15):
    place = np.minimum((said * bins).astype(int), bins - 1)
    return sum(abs(hit[place == k].mean() - said[place == k].mean()) * np.mean(place == k) for k in set(place))


def area(scores, odd):
    """Area under the ROC curve of scores that are low for odd rows; ties count half."""
    values, places, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - 0.5 * (counts - 1))[places]
    n = odd.sum()
    return 1.0 - (ranks[odd == 1].sum() - n * (n + 1) / 2) / (n * (len(odd) - n))


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
    X, y = classes(name)
    model = OnlineKernelClassifier(effort)
    parts, cost = in_chunks(X, y, lambda a, b: model.progressive(a, b, return_proba=True, return_labels=True))
    said = np.concatenate([np.array(labels, dtype=object) for _, _, labels in parts])
    sure = np.concatenate([proba.max(axis=1) for _, proba, _ in parts])
    error, best = 100 * np.mean(said != y), 100 * min(model.errors_.values())
    print(f"{name:16} {error:7.2f}{mark(error, CLASSES[name])} (bar {CLASSES[name]})   best member {best:.2f}   "
          f"ECE {calibration_error(sure, said == y):.4f}   {cost:.0f} us", flush=True)


def on_numbers(name, effort):
    X, y = numbers(name)
    model = OnlineKernelRegressor(effort)
    parts, cost = in_chunks(X, y, lambda a, b: model.progressive(a, b, return_interval=0.9))
    scores, (low, high) = np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts], axis=1)
    error, best = np.mean((scores - y)[1:] ** 2) / y.var(), min(model.errors_.values()) / y.var()
    print(f"{name:16} {error:7.4f}{mark(error, NUMBERS[name])} (bar {NUMBERS[name]})   best member {best:.4f}   "
          f"coverage {np.mean((low <= y) & (y <= high)):.3f}   {cost:.0f} us", flush=True)


def on_novelty(name, effort):
    X, odd = novelty(name)
    model = OnlineKernelDetector(effort=effort)
    parts, cost = in_chunks(X, None, lambda a, _: model.progressive(a, return_labels=True))
    scores, labels = (np.concatenate([part[i] for part in parts]) for i in range(2))
    found = area(scores, odd)
    print(f"{name:16} {found:7.3f}{mark(found, NOVELTY[name], False)} (bar {NOVELTY[name]})   alerts {np.mean(labels == -1):.4f}   "
          f"{cost:.0f} us", flush=True)


# ---- river ------------------------------------------------------------------------------------


def of_river(name):
    """Errors of river's peers, a line each."""
    from river import anomaly, forest, linear_model, multiclass, neighbors, preprocessing

    scaled = preprocessing.StandardScaler
    if name in CLASSES:
        X, y = classes(name)
        models = {"ARF 10": forest.ARFClassifier(n_models=10, seed=1),
                  "logistic": scaled() | multiclass.OneVsRestClassifier(linear_model.LogisticRegression()),
                  "PA": scaled() | multiclass.OneVsRestClassifier(linear_model.PAClassifier())}
    elif name in NUMBERS:
        X, y = numbers(name)
        models = {"ARF 10": forest.ARFRegressor(n_models=10, seed=1), "KNN": scaled() | neighbors.KNNRegressor()}
    else:
        X, y = novelty(name)
        X, y = X[:50000], y[:50000]
        models = {"half-space trees": preprocessing.MinMaxScaler() | anomaly.HalfSpaceTrees(seed=1)}
    labels = y.tolist()
    for title, model in models.items():
        said = []
        for row, label in zip(X.tolist(), labels):
            x = dict(enumerate(row))
            if name in NOVELTY:
                said.append(-model.score_one(x))
                model.learn_one(x)
            else:
                said.append(model.predict_one(x))
                model.learn_one(x, label)
        if name in CLASSES:
            figure = 100 * np.mean(np.array(said, dtype=object) != y)
        elif name in NUMBERS:
            figure = np.mean((np.array(said, dtype=float) - y)[1:] ** 2) / y.var()
        else:
            figure = area(np.array(said), y)
        print(f"    river {title:20} {figure:.4g}", flush=True)


# ---- Cost -------------------------------------------------------------------------------------


def cost(rounds=3):
    """Microseconds per example, 8 features, chunks of 500, against one SILK with 512 terms in the same run."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12000, 8))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    target = X[:, 0] * X[:, 1] + 0.1 * rng.normal(size=len(y))
    bars = {("classes", "low"): 20, ("classes", "medium"): 110, ("numbers", "low"): 30, ("numbers", "medium"): 150}
    models = {"SILK": (SILK("hinge", budget=512), y)}
    models |= {(task, effort): (kind(effort), answers) for task, kind, answers in
               (("classes", OnlineKernelClassifier, y), ("numbers", OnlineKernelRegressor, target)) for effort in ("low", "medium")}
    spent = {name: [] for name in models}
    for name, (model, answers) in models.items():
        model.partial_fit(X[:6000], answers[:6000])
    for i in range(rounds):
        rows = slice(6000 + 2000 * i, 8000 + 2000 * i)
        for name, (model, answers) in models.items():
            spent[name].append(in_chunks(X[rows], answers[rows], lambda a, b: model.progressive(a, b))[1])
    one = np.median(spent["SILK"])
    for name, times in spent.items():
        ratio = np.median(times) / one
        print(f"{' '.join(name) if isinstance(name, tuple) else name:16} {np.median(times):8.1f} us {ratio:7.1f}{mark(ratio, bars.get(name))}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--effort", default="medium", choices=["low", "medium", "high"])
    parser.add_argument("--no-river", action="store_true", help="without river's models, which are slow")
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
                if not options.no_river:
                    of_river(name)
            except (FileNotFoundError, ImportError) as error:
                print(f"{name:16} left out: {error}")
    return None


if __name__ == "__main__":
    main()
