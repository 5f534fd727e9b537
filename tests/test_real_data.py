"""Figures on real data; skipped where the data is not there.

The folder with the data sets is the environment variable ONLINEKERNELS_SHARED, or ``shared`` beside the
checkout.
"""
import os
import pathlib

import numpy as np
import pytest
from cases import each

import onlinekernels as ok

SHARED = pathlib.Path(os.environ.get("ONLINEKERNELS_SHARED", pathlib.Path(__file__).parents[2] / "shared"))


def load(name):
    path = SHARED / "data" / f"{name}.npz"
    if not path.exists():
        pytest.skip(f"{name} is not there")
    with np.load(path, allow_pickle=False) as file:
        return {key: file[key] for key in file.files}


def errors(model, X, y):
    """Whether each example of one pass is predicted wrongly before it is learned."""
    return model.progressive(X, y, classes=range(10)).argmax(axis=1) != y


def test_usps_step_size_adaptation_halves_the_error():
    """V Figure 4: ten classes, Gaussian width 8, 512 terms."""
    data = load("usps")
    X, y = data["X_train"] / 1000.0, data["y_train"]
    shared = dict(regularization=1 / (500 * len(X)), budget=512)
    loss, kernel = ok.MulticlassHinge(), ok.Gaussian(8.0)
    adapted = errors(ok.SVMD(loss, kernel, step=0.1, meta_step=0.1, memory=0.99, **shared), X, y).mean()
    one_step = errors(ok.SVMD(loss, kernel, step=0.1, meta_step=0.1, memory=0.0, **shared), X, y).mean()
    scheduled = errors(ok.NORMA(loss, kernel, step=ok.Decaying(0.1, 100), **shared), X, y).mean()
    assert adapted <= 0.105
    assert adapted <= 0.55 * scheduled
    assert adapted < one_step < scheduled


@pytest.mark.slow
@each("budget, average, last", [(256, 0.125, None), (4096, 0.0295, 0.023)])
def test_mnist_in_one_pass(budget, average, last):
    """V Figure 7: ten classes, a polynomial of degree 9 on images of unit length."""
    data = load("mnist")
    X = data["X_train"].reshape(60000, 784).astype(np.float32)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    kernel = ok.Polynomial(9, scale=1.0, bias=0.0)
    model = ok.SILK(ok.MulticlassHinge(), kernel, regularization=1 / (16 * budget), exact=True, budget=budget)
    wrong = errors(model, X, data["y_train"])
    assert wrong.mean() <= average
    assert last is None or wrong[-4500:].mean() <= last


def by_the_first(X, count):
    deviation = X[:count].std(axis=0)
    return (X - X[:count].mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)


@pytest.mark.slow
@each("name, model, count, scale", [
    ("outdoor", ok.SILK("multiclass_hinge", ok.Gaussian(0.7)), 20, True),
    ("elec2", ok.NORMA(kernel=ok.Gaussian(0.3 * 8**0.5)), 500, ok.RunningScaler(memory=0.99)),
], ids=["outdoor", "elec2"])
def test_the_running_scaler_halves_the_error_where_units_move(name, model, count, scale):
    data = load(name)
    X, y = data["X"][:20_000].astype(float), data["y"][:20_000].astype(int)
    initial = ok.evaluate.progressive(ok.evaluate.fresh_copy(model), (by_the_first(X, count), y))
    running = ok.evaluate.progressive(model.set_params(scale=scale), (X, y))
    assert running.error < initial.error / 2


def test_newsgroups_as_sparse_rows_with_a_taxonomy():
    """V 6.4: bags of words, labels in a tree; the rows stay sparse."""
    sparse = pytest.importorskip("scipy.sparse")
    data = load("20news_counts")
    X = sparse.csr_matrix((np.log1p(data["data"]), data["indices"], data["indptr"]), shape=tuple(data["shape"]))
    order = np.random.default_rng(0).permutation(int(data["n_train"]))[:4000]
    X, y = X[order], data["classes"][data["y"][order]]
    labels = ok.Taxonomy.from_paths(np.unique(y).tolist(), split=lambda name: name.split("."))
    kernel = ok.Normalized(ok.Linear())
    model = ok.SILK("graph_hinge", kernel, labels=labels, budget=None, regularization=1e-5)
    scores = model.progressive(X, y)
    wrong = model.classes_[scores.argmax(axis=1)] != y
    assert wrong[-1000:].mean() < 0.35 < wrong[:1000].mean()


def a9a():
    """(rows of zeros and ones as float32, labels), in the given order."""
    data = load("a9a")
    n = len(data["y_train"])
    X = np.zeros((n, int(data["n_features"])), dtype=np.float32)
    X[np.repeat(np.arange(n), np.diff(data["indptr_train"])), data["indices_train"]] = 1.0
    return X, data["y_train"]


@each("kernel, least", [(ok.Nystroem(ok.Gaussian(np.sqrt(50)), 300), 0.825),
                        *((ok.RandomFourier(ok.Gaussian(np.sqrt(50)), 400, seed), 0.82) for seed in range(3))])
def test_a9a_with_feature_maps(kernel, least):
    """One pass with 300 or 400 features; 300 terms that can only be dropped reach 76 %."""
    X, y = a9a()
    scores = ok.NORMA(ok.Hinge(), kernel, step=0.1, regularization=0.0).progressive(X, y)
    assert ((scores > 0) == (y > 0)).mean() >= least


def census(rows):
    data = load("a9a")

    def points(part):
        X = np.zeros((len(data[f"indptr_{part}"]) - 1, int(data["n_features"])))
        X[np.repeat(np.arange(len(X)), np.diff(data[f"indptr_{part}"])), data[f"indices_{part}"]] = 1.0
        return X

    return points("train")[:rows], data["y_train"][:rows], points("test"), data["y_test"]


def digits():
    data = load("usps")
    return *(part for name in ("train", "test") for part in (data[f"X_{name}"] / 1000.0, np.where(data[f"y_{name}"] < 5, 1, -1))),


@pytest.mark.slow
@each("load_parts, width", [(digits, 8.0), (lambda: census(10_000), np.sqrt(50))], ids=["usps", "a9a"])
def test_lasvm_is_as_good_as_a_batch_solver(load_parts, width):
    """One pass and `finish` come within 0.2 points of the test accuracy of all examples at once, `fit` nearer; C = 1."""
    svm = pytest.importorskip("sklearn.svm")
    X, y, fresh, truth = load_parts()
    model = ok.LASVM(ok.Gaussian(width), penalty=1.0).partial_fit(X, y).finish()
    batch = svm.SVC(C=1.0, gamma=1 / (2 * width**2)).fit(X, y)
    assert abs(model.score(fresh, truth) - batch.score(fresh, truth)) <= 0.002
    assert model.n_terms_ <= len(batch.support_)
    order = np.argsort(y, kind="stable")
    whole = ok.LASVM(ok.Gaussian(width), penalty=1.0).fit(X[order], y[order])
    assert whole.gap_ <= whole.tolerance
    assert abs(whole.score(fresh, truth) - batch.score(fresh, truth)) <= 0.0005


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:This model is no better:onlinekernels.LearningWarning")  # the Forgetron, while learning
@each("name, make, accuracy", [
    ("Projectron", lambda k: ok.Projectron(k, budget=300), 0.787),
    ("Projectron++", lambda k: ok.Projectron(k, aggressive=True, budget=300), 0.810),
    ("Forgetron", lambda k: ok.Forgetron(k, budget=300), 0.750),
    ("projecting", lambda k: ok.PassiveAggressive("hinge", k, penalty=0.1, budget=ok.Projecting(300)), 0.825),
    ("merging", lambda k: ok.NORMA("hinge", k, step=0.1, regularization=1e-4, budget=ok.Merging(300)), 0.823),
], ids=lambda value: value if isinstance(value, str) else "")
def test_budgets_that_keep_what_they_can(name, make, accuracy):
    """a9a, one pass in the given order; terms that are dropped leave 0.76."""
    data = load("a9a")
    X = np.zeros((len(data["y_train"]), int(data["n_features"])), dtype=np.float32)
    X[np.repeat(np.arange(len(X)), np.diff(data["indptr_train"])), data["indices_train"]] = 1.0
    model = make(ok.Gaussian(np.sqrt(50)))
    scores = model.progressive(X, data["y_train"].astype(int))
    assert np.mean(scores * data["y_train"] > 0) >= accuracy
    assert model.n_terms_ == 300


# ---- Second order: 150 points -------------------------------------------------------------------------------------


def wide(width, d):
    """A prior for features of the size of 1, and a constant."""
    return ok.Gaussian(width * np.sqrt(d)) + 1


@pytest.mark.slow
@each("name, width, memory, scale, most", [
    ("banana", 0.5, 1.0, True, 10.4),
    ("elec2", 1.0, 0.999, True, 8.0),
    ("sea", 0.5, 1.0, True, 12.2),
    ("moving_squares", 0.25, 0.98, ok.RunningScaler(memory=0.99), 0.45),
], ids=["banana", "elec2", "sea", "moving_squares"])
def test_second_order_on_streams_of_classes(name, width, memory, scale, most):
    data = load(name)
    X, y = data["X"][:20_000], data["y"][:20_000]
    model = ok.KRLS("multiclass_squared", wide(width, X.shape[1]), noise=0.3, memory=memory, budget=150, scale=scale)
    _, labels = model.progressive(X, y, return_labels=True)
    assert 100 * np.mean(labels != y) <= most
    assert model.n_terms_ <= 150 + 63


def regression(name):
    data = load("regression")
    X, y = data[f"{name}::X"].astype(float), data[f"{name}::y"].astype(float)
    whole = ~np.isnan(X).any(axis=1)
    return X[whole], y[whole]


@each("name, width, noise, most", [
    ("kin8nm", 0.5, 0.3, 0.225), ("power_plant", 1.0, 0.03, 0.066), ("california", 1.0, 0.3, 0.24),
    ("concrete", 1.0, 0.03, 0.205), ("airfoil", 0.5, 0.3, 0.255),
])
def test_second_order_on_numbers(name, width, noise, most):
    X, y = regression(name)
    order = np.random.default_rng(0).permutation(min(6000, len(y)))
    X, y = X[order], y[order]
    y = (y - y[:50].mean()) / y[:50].std()
    scores = ok.KRLS("squared", wide(width, X.shape[1]), noise=noise, budget=150, scale=True).progressive(X, y)
    assert np.mean((scores - y) ** 2) / np.var(y) <= most


@pytest.mark.slow
@each("name, width, noise", [("kin8nm", 0.5, 0.3), ("power_plant", 1.0, 0.03), ("bike_hour", 1.0, 0.1)])
@each("coverage", [0.5, 0.9])
def test_intervals_hold_their_coverage_on_real_streams(name, width, noise, coverage):
    X, y = regression(name)
    model = ok.KRLS("squared", wide(width, X.shape[1]), noise=noise, budget=150, scale=True, scale_target=True)
    _, (low, high) = model.progressive(X, y, return_interval=coverage)
    inside = (low <= y) & (y <= high)
    assert abs(inside[500:].mean() - coverage) <= 0.02
