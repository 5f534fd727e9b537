"""Small models and data that the tests of the interface share."""
import numpy as np
from cases import each

import onlinekernels as ok

RNG = np.random.default_rng(3)
X = RNG.normal(size=(40, 3))
LABELS = np.where(X[:, 0] * X[:, 1] > 0, 1, -1)
TARGETS = np.sin(X[:, 0]) + X[:, 1]
NEW = RNG.normal(size=(15, 3))
BINARY = ["hinge", "nuhinge", "logistic"]
REGRESSION = ["squared", "absolute", "quantile", "insensitive", "nuinsensitive", "squaredinsensitive", "huber",
              "nuhuber"]
NOVELTY = ["novelty", "nunovelty"]


def overlap(a, b):
    """A kernel on strings."""
    return float(len(set(a) & set(b)))


def dot(x, z):
    return float(np.dot(x, z))


def targets(loss):
    return LABELS if loss in BINARY else None if loss in NOVELTY else TARGETS


def same_state(a, b):
    """Two models have learned the same, bit for bit."""
    first, second = a._state.hypothesis.state(), b._state.hypothesis.state()
    assert first.keys() == second.keys()
    for name in first:
        assert np.asarray(first[name]).dtype == np.asarray(second[name]).dtype
        assert np.array_equal(first[name], second[name]), name


def part(y, rows):
    return None if y is None else y[rows]


def in_chunks(X, model, y, size, weights=None):
    """Scores before each row, learned in chunks; as many columns as there are classes at the end."""
    found = []
    for begin in range(0, len(X), size):
        rows = slice(begin, begin + size)
        scores = model.progressive(X[rows], part(y, rows), sample_weight=part(weights, rows))
        scores = scores.reshape(len(X[rows]), -1)
        found.append((scores, model.classes_.tolist() if model._estimator_type == "classifier" else None))
    classes = found[-1][1]
    if classes is None or found[-1][0].shape[1] < len(classes):  # one score for two classes
        return np.concatenate([scores for scores, _ in found])
    whole = [np.zeros((len(scores), len(classes))) for scores, _ in found]
    for into, (scores, known) in zip(whole, found, strict=True):
        into[:, [classes.index(label) for label in known]] = scores
    return np.concatenate(whole)


def scores(model, points):
    """f(x) + b, whatever the task."""
    for method in ("score_samples", "decision_function", "predict"):
        if hasattr(model, method):
            return getattr(model, method)(points)


# One list of models drives the checks that all of them must pass.
MODELS = {
    "hinge": lambda: ok.NORMA("hinge", ok.Gaussian(1.2), step=0.3),
    "nuhinge_recent": lambda: ok.NORMA("nuhinge", ok.Gaussian(1.2), step=0.3, budget=7, offset=True),
    "logistic_weights": lambda: ok.NORMA("logistic", "linear", average=True, step=ok.InverseSqrt(0.5), offset=True),
    "squared_window": lambda: ok.NORMA("squared", ok.Laplacian(0.5), budget=ok.Window(11), step=ok.Decaying(0.4)),
    "huber_smallest": lambda: ok.NORMA("huber", "polynomial", step=0.01, budget=ok.Smallest(6), offset=True),
    "insensitive_sublinear": lambda: ok.NORMA("nuinsensitive", ok.Gaussian(2) + ok.Linear(), budget=ok.Sublinear()),
    "squared_average": lambda: ok.NORMA("squared", ok.Gaussian(1.2), average=True, regularization=0.3, step=0.5),
    "novelty": lambda: ok.NORMA("nunovelty", ok.Gaussian(1.2), step=0.3),
    "linear_terms": lambda: ok.NORMA("absolute", 0.5 * ok.Linear(), budget=9, step=0.2),
    "callable": lambda: ok.NORMA("squared", dot, budget=8, step=0.05),
    "normalized": lambda: ok.NORMA("hinge", ok.Normalized(ok.Polynomial(2)) + ok.Noise(0.1), step=0.3),
    "projecting": lambda: ok.NORMA("squared", ok.Gaussian(1.2), budget=ok.Projecting(6), step=0.2),
    "merging": lambda: ok.NORMA("hinge", ok.Gaussian(1.2), budget=ok.Merging(6), step=0.2),
    "projectron": lambda: ok.Projectron(ok.Gaussian(1.2), aggressive=True, budget=6),
    "perceptron": lambda: ok.Perceptron(ok.Gaussian(1.2), offset=True),
    "krls": lambda: ok.KRLS("squared", ok.Gaussian(1.2), budget=9, memory=0.98),
    "krls_weights": lambda: ok.KRLS("squared", ok.Linear(), noise="auto"),
    "fourier": lambda: ok.NORMA("hinge", ok.RandomFourier(ok.Gaussian(1.2), 20) + ok.Linear(), step=0.3, average=True),
    "nystroem": lambda: ok.NORMA("squared", ok.Nystroem(ok.Gaussian(1.2), 10), step=0.2),
}


def y_of(model):
    return targets(model.loss if isinstance(model.loss, str) else "hinge")


#: Run a test with each of the small models, not fitted or fitted
each_model = each("model", MODELS, ids=str, make=lambda name: MODELS[name]())
each_fitted = each("fitted", MODELS, ids=str, make=lambda name: (made := MODELS[name]()).partial_fit(X, y_of(made)))


def shown(params):
    """A readable, stable id of a test's parameters."""
    if not isinstance(params, dict):
        return repr(params)
    return ",".join(f"{name}={getattr(value, '__name__', None) or repr(value)}" for name, value in params.items())
