"""Workloads that `forms.py`, `second_order.py` and `versions.py` share, by name; each needs the public interface alone.

A workload is a function without arguments, which prepares everything and returns (run, examples): `run()` handles so
many examples, and may be called again and again.  In those that learn, the model is full before the first run and every
example enters, so that all runs do the same work.
"""
import itertools
import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # before numpy is imported

import numpy as np  # noqa: E402

import onlinekernels as ok  # noqa: E402

ROWS, LARGE = 1024, 1e6
LABELS = [f"{a}/{b}/{c}" for a in range(8) for b in range(20) for c in range(30)][:4656]
WORKLOADS = {}


def workload(function):
    """Enter a workload under its name, with spaces."""
    WORKLOADS[function.__name__.replace("_", " ")] = function
    return function


def points(features, dtype=np.float64, rows=ROWS):
    return (np.random.default_rng(0).normal(size=(rows, features)) / np.sqrt(features)).astype(dtype)


def signs(rows=ROWS):
    return np.random.default_rng(1).choice([-1, 1], rows)


def classes(n, rows=ROWS):
    return np.random.default_rng(2).integers(0, n, rows)


def numbers(targets=None, rows=ROWS):
    """Targets that no model meets, so that every example enters."""
    y = LARGE * np.random.default_rng(3).normal(size=(rows, targets or 1))
    return y if targets else y[:, 0]


def full(model, X, y, terms, **first):
    """The model after as many examples as it has room for, and a run of one pass over X."""
    for _ in range(max(1, -(-terms // len(y)))):
        model.partial_fit(X, y, **first)
        first = {}
    return lambda: model.partial_fit(X, y), len(y)


def norma(loss="hinge", kernel=None, **parameters):
    loss = ok.Hinge(LARGE) if loss == "hinge" else loss
    return ok.NORMA(loss, kernel or ok.Gaussian(1.0), step=0.1, regularization=1e-3, **parameters)


# ---- What learning.py, algorithms.py, additive.py and bank.py look at --------------------------------------------


@workload
def chunks():
    return full(norma(budget=512), points(256), signs(), 512)


@workload
def chunks_in_single_precision():
    return full(norma(budget=512), points(256, np.float32), signs(), 512)


@workload
def chunks_of_few_features():
    return full(norma(budget=1024), points(16), signs(), 1024)


@workload
def predicting():
    model, X = norma(budget=512), points(256)
    full(model, X, signs(), 512)
    return lambda: model.decision_function(X), ROWS


@workload
def one_by_one():
    return _one_by_one(norma(budget=512), points(256))


@workload
def one_by_one_small():
    return _one_by_one(norma(budget=50), points(8))


@workload
def one_by_one_scaled():
    return _one_by_one(norma(budget=50, scale=True), points(8))


@workload
def rows_of_one():
    model, X, y = norma(budget=50), points(8), signs()
    model.partial_fit(X, y)
    rows = [(X[i : i + 1], y[i : i + 1]) for i in range(200)]

    def run():
        for x, label in rows:
            model.partial_fit(x, label)

    return run, len(rows)


def _one_by_one(model, X):
    y = signs().tolist()
    model.partial_fit(X, y)
    pairs = list(zip(X, y))[:200]

    def run():
        for x, label in pairs:
            model.learn_one(x, label)

    return run, len(pairs)


@workload
def chunks_scaled():
    return full(norma(budget=512, scale=True), points(16), signs(), 512)


@workload
def implicit():
    model = ok.SILK(ok.Hinge(LARGE), ok.Gaussian(1.0), regularization=1e-3, penalty=0.1, budget=512)
    return full(model, points(256), signs(), 512)


@workload
def meta_descent():
    model = ok.SVMD(ok.Hinge(LARGE), ok.Gaussian(1.0), step=0.1, regularization=1e-3, budget=512)
    return full(model, points(256), signs(), 512)


@workload
def ten_classes():
    return full(norma(ok.MulticlassHinge(LARGE), budget=512), points(256), classes(10), 512)


@workload
def trees():
    rng = np.random.default_rng(4)
    model = norma("absolute", ok.AdditiveSpline(1), budget=ok.Window(10_000))
    X = rng.uniform(1e-3, 1.0, size=(ROWS, 8))
    return full(model, X, numbers(), 10_000)


@workload
def a_bank():
    models = 20_000
    bank, y = ok.Bank(3, "absolute", ok.Gaussian(0.5), n_models=models, budget=20), numbers(rows=models)
    frames = np.random.default_rng(5).uniform(size=(25, models, 3)).astype(np.float32)
    for frame in frames:
        bank.partial_fit(frame, y)
    return lambda: bank.partial_fit(frames[0], y), models


# ---- What second_order.py looks at -------------------------------------------------------------------------------

KNOWN, PLACE, CHUNK = 150, 64, 500  # points; examples from place to place; rows of a call


def standing_points():
    """(model, X, y): 150 points that stand, and rows that never join, as they are among them."""
    X = np.random.default_rng(7).normal(size=(3 * PLACE, 8))
    X[KNOWN:] = X[: len(X) - KNOWN]
    model = ok.KRLS("squared", ok.Gaussian(0.7 * np.sqrt(8)), noise=0.1, budget=KNOWN, tolerance=1e-6)
    model.partial_fit(X, np.sin(X[:, 0]))
    chosen = X[np.random.default_rng(8).integers(0, KNOWN, CHUNK)]
    return model, chosen, np.sin(chosen[:, 0])


@workload
def second_order_standing():
    model, X, y = standing_points()
    return lambda: model.partial_fit(X, y), CHUNK


@workload
def second_order_joining():
    """Every row joins, and as many leave."""
    X = np.random.default_rng(9).normal(size=(64 * CHUNK, 8))
    model = ok.KRLS("squared", ok.Gaussian(0.3 * np.sqrt(8)), noise=0.1, budget=KNOWN)
    model.partial_fit(X[-512:], np.sin(X[-512:, 0]))
    chunks = itertools.cycle(np.split(X, 64))

    def run():
        chunk = next(chunks)
        model.partial_fit(chunk, np.sin(chunk[:, 0]))

    return run, CHUNK


@workload
def second_order_one_by_one():
    model, X, y = standing_points()
    pairs = list(zip(X, y.tolist()))

    def run():
        for x, target in pairs:
            model.learn_one(x, target)

    return run, CHUNK


# ---- What only forms.py looks at --------------------------------------------------------------------------------


@workload
def linear_dense():
    return full(norma(kernel="linear", offset=False), points(256), signs(), 0)


@workload
def linear_sparse():
    return full(norma(kernel="linear", offset=False), sparse_points(), signs(), 0)


def sparse_points():
    """1024 rows of 10,000 features, 100 of them not 0."""
    from scipy.sparse import csr_matrix

    rng = np.random.default_rng(6)
    indices = np.sort(np.concatenate([rng.choice(10_000, 100, replace=False) for _ in range(ROWS)]).reshape(ROWS, 100))
    return csr_matrix((rng.normal(size=indices.size), indices.ravel(), np.arange(ROWS + 1) * 100), shape=(ROWS, 10_000))


@workload
def hundred_classes_logistic():
    return full(norma("multiclass_logistic", budget=512), points(64), classes(100), 512, classes=range(100))


@workload
def ten_targets():
    return full(norma("squared", budget=512), points(64), numbers(10) / LARGE, 512)


def in_python(x, z):
    """A kernel on objects: here tuples of numbers."""
    return x[0] * z[0] + x[1] * z[1] + 1.0


@workload
def objects():
    model = norma(kernel=in_python, budget=64)
    X = [tuple(x) for x in points(2, rows=128).tolist()]
    return full(model, X, signs(128), 64)


@workload
def a_window():
    return full(norma(budget=ok.Window(512)), points(256), signs(), 512)


@workload
def a_taxonomy():
    y = np.array(LABELS)[classes(len(LABELS))]
    return full(norma("graph_hinge", budget=512, labels=ok.Taxonomy.from_paths(LABELS)), points(100), y, 512)


@workload
def as_many_labels():
    y = np.array(LABELS)[classes(len(LABELS))]
    return full(norma(ok.MulticlassHinge(LARGE), budget=512), points(100), y, 512, classes=LABELS)
