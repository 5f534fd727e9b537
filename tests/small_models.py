"""Small models and data that the tests of the interface share."""
import numpy as np


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


def shown(params):
    """A readable, stable id of a test's parameters."""
    if not isinstance(params, dict):
        return repr(params)
    return ",".join(f"{name}={getattr(value, '__name__', None) or repr(value)}" for name, value in params.items())
