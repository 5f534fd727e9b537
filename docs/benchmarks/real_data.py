"""Real data for the benchmarks: streams of classes, of numbers and of oddities.

The files are in the folder ``data`` of the folder that the environment variable ONLINEKERNELS_SHARED names, or of
``shared`` beside the checkout; a stream whose file is missing raises FileNotFoundError.
"""

import os
from pathlib import Path

import numpy as np

DATA = Path(os.environ.get("ONLINEKERNELS_SHARED", Path(__file__).resolve().parents[3] / "shared")) / "data"
ROWS = 20_000  # of a stream of classes, in order
MNIST_ROWS = 5_000
LAGS = 8  # values that predict the next one of a series

CLASSES = [
    "elec2",
    "sea",
    "outdoor",
    "banana",
    "2cht",
    "moving_squares",
    "phishing",
    "usps",
    "chessboard",
    "nsl_kdd",
    "a9a",
    "mnist",
    "imclef07d",
    "wipo_d",
]
NUMBERS = [
    "airfoil",
    "bike_hour",
    "california",
    "concrete",
    "kin8nm",
    "power_plant",
    "wine_red",
    "laser",
    "lorenz",
    "mackey_glass",
    "co2",
    "sunspots",
]
NOVELTY = ["shuttle", "http", "skab", "nsl_attacks"]
SERIES = {
    "laser": "santafe_laser",
    "lorenz": "lorenz",
    "mackey_glass": "mackey_glass_30",
    "co2": "co2",
    "sunspots": "sunspots",
}
# Streams that no member and no constant of the default ensembles was chosen on
HELD_OUT = {"mnist", "imclef07d", "wipo_d", "co2", "sunspots"}


def load(task, name):
    """(X, y) of a stream: labels, numbers, or 1 where a row is odd."""
    return {"classes": classes, "numbers": numbers, "novelty": novelty}[task](name)


# ---- Classes ----------------------------------------------------------------------------------


def classes(name):
    if name == "chessboard":
        return chessboard()
    if name == "nsl_kdd":
        return nsl()
    if name == "a9a":
        return a9a()
    file = np.load(DATA / f"{FILES.get(name, name)}.npz")
    if name in ("usps", "imclef07d", "wipo_d"):
        X = np.concatenate([file["X_train"], file["X_test"]]).reshape(-1, file["X_train"][0].size).astype(float)
        y = np.concatenate([file["y_train"], file["y_test"]])
        return (
            (X / 1000.0, y) if name == "usps" else shuffled(X, np.unique(y, return_inverse=True)[1])
        )  # those are sorted by class
    if name == "mnist":
        return file["X_train"][:MNIST_ROWS].reshape(MNIST_ROWS, -1) / 255.0, file["y_train"][:MNIST_ROWS].astype(int)
    return file["X"][:ROWS].astype(float), file["y"][:ROWS]


FILES = {"imclef07d": "hmc_imclef07d", "wipo_d": "wipo_alpha_D_lsa100"}


def shuffled(X, y):
    order = np.random.default_rng(0).permutation(len(y))
    return X[order], y[order]


def chessboard(n=ROWS, seed=0):
    """8 x 8 fields of 8 classes, neighbours differ; 500 rows in one field at a time, every fifth 500 all over."""
    rng = np.random.default_rng(seed)
    board, parts = np.zeros((8, 8), dtype=int), []
    for i, j in np.ndindex(8, 8):
        beside = {board[i - 1, j] if i else -1, board[i, j - 1] if j else -1}
        board[i, j] = rng.choice([c for c in range(8) if c not in beside])
    for block in range(n // 500):
        parts.append(
            rng.uniform(0, 8, (500, 2)) if block % 5 == 4 else rng.uniform(0, 1, (500, 2)) + rng.integers(0, 8, 2)
        )
    X = np.concatenate(parts)
    return X, board[tuple(np.minimum(X.astype(int), 7).T)]


def nsl(n=ROWS):
    """Numbers and categories, one column of 0 and 1 for each category, and whether a row is an attack."""
    file = np.load(DATA / "nsl_kdd_full_36f.npz")
    rows = np.random.default_rng(0).permutation(len(file["num_train"]))[:n]
    words = file["cat_train"]
    columns = [words[rows, j][:, None] == np.unique(words[:, j]) for j in range(words.shape[1])]
    return np.hstack([file["num_train"][rows].astype(float), *columns]).astype(float), (
        file["label_train"][rows] != "normal"
    ).astype(int)


def a9a(n=ROWS):
    file = np.load(DATA / "a9a.npz")
    X, begins = np.zeros((n, int(file["n_features"]))), file["indptr_train"]
    X[np.repeat(np.arange(n), np.diff(begins[: n + 1])), file["indices_train"][: begins[n]]] = 1.0
    return X, (file["y_train"][:n] > 0).astype(int)


# ---- Numbers ----------------------------------------------------------------------------------


def numbers(name):
    if name in SERIES:
        values = np.load(DATA / "series.npz")[SERIES[name]].astype(float)[: 6000 + LAGS]
        values = values[~np.isnan(values)]
        return np.column_stack([values[i : len(values) - LAGS + i] for i in range(LAGS)]), values[LAGS:]
    file = np.load(DATA / "regression.npz")
    X, y = file[f"{name}::X"][:6000].astype(float), file[f"{name}::y"][:6000].astype(float)
    X = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
    return (X, y) if name == "bike_hour" else shuffled(X, y)


# ---- Novelty ----------------------------------------------------------------------------------


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


def area(scores, odd):
    """Area under the ROC curve of scores that are low for odd rows; ties count half."""
    _, places, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - 0.5 * (counts - 1))[places]
    n = odd.sum()
    return 1.0 - (ranks[odd == 1].sum() - n * (n + 1) / 2) / (n * (len(odd) - n))
