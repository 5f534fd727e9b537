"""AUC, F1 and confusion matrices of evaluate, against their definitions; the ordered scores under stress."""
import copy

import numpy as np
import pytest
from cases import each

import onlinekernels as ok
from onlinekernels import evaluate
from onlinekernels.evaluate.measures import RunningAUC

KERNEL = ok.Gaussian(1.0)


def area(scores, positive):
    """Fraction of pairs in order, equal scores one half; by looking at all pairs."""
    above, below = scores[positive][:, None], scores[~positive][None, :]
    return np.mean((above > below) + 0.5 * (above == below)) if above.size and below.size else np.nan


def stream(n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2)).round(1)  # coarse, so that scores tie
    return X, np.where(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=n) > 0, "yes", "no")


# ---- Ordered scores ----


@each("window", [None, 1, 2, 7, 50])
@each("kind", ["ties", "all equal", "continuous", "infinite", "one class at a time"])
def test_the_area_is_that_of_all_pairs_at_any_time(kind, window):
    rng = np.random.default_rng(1)
    scores = {"all equal": np.zeros(150), "continuous": rng.normal(size=150)}.get(kind, rng.integers(5, size=150) / 4)
    if kind == "infinite":
        scores[rng.random(150) < 0.2] = np.inf
        scores[rng.random(150) < 0.2] = -np.inf
    positive = np.arange(150) // 40 % 2 == 0 if kind == "one class at a time" else rng.random(150) < 0.3
    auc, begin = RunningAUC(window), 0
    while begin < 150:
        end = begin + int(rng.integers(1, 6))
        auc.add(scores[begin:end], positive[begin:end])
        first = 0 if window is None else max(0, min(end, 150) - window)
        np.testing.assert_array_equal(auc.value(), area(scores[first:end], positive[first:end]))
        begin = end


# ---- In reports ----


def test_areas_and_f1_are_scikit_learns():
    metrics = pytest.importorskip("sklearn.metrics")
    X, y = stream()
    scores, said = ok.SILK("hinge", KERNEL).progressive(X, y, return_labels=True)
    report = evaluate.progressive(ok.SILK("hinge", KERNEL), (X, y), window=100)
    np.testing.assert_allclose(report.auc, metrics.roc_auc_score(y, scores), rtol=1e-12)
    np.testing.assert_allclose(report.window_auc, metrics.roc_auc_score(y[-100:], scores[-100:]), rtol=1e-12)
    np.testing.assert_allclose(report.f1, metrics.f1_score(y, said, pos_label="yes"))
    np.testing.assert_allclose(report.window_f1, metrics.f1_score(y[-100:], said[-100:], pos_label="yes"))
    np.testing.assert_array_equal(report.window_confusion.counts, metrics.confusion_matrix(y[-100:], said[-100:]))


def test_a_score_of_zero_is_undecided():
    report = evaluate.progressive(ok.Perceptron(), (np.zeros((3, 1)), ["no", "no", "yes"]), classes=["no", "yes"])
    assert report.confusion.undecided.tolist() == [1, 0]
    assert report.confusion.counts.tolist() == [[1, 0], [1, 0]]
    assert report.confusion.mistakes == report.mistakes == 2
    assert report.f1 == 0.0
    late = evaluate.progressive(ok.Perceptron("linear", offset=False), (np.zeros((4, 1)), ["no", "no", "yes", "no"]),
                                delay=1)
    assert late.confusion.undecided.tolist() == [3, 1] and late.mistakes == 4


def test_detectors_by_labels():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2))
    y = np.where(rng.random(600) < 0.1, "fault", "fine")
    X[y == "fault"] += 4.0
    detector = ok.NORMA(ok.Novelty(margin=0.3), KERNEL, step=0.1)
    scores, said = copy.deepcopy(detector).progressive(X, return_labels=True)
    report = evaluate.progressive(detector, (X, y), novel="fault", window=200)
    assert report.alerts == (said == -1).sum()
    np.testing.assert_allclose(report.auc, area(-scores, y == "fault"))
    np.testing.assert_allclose(report.window_auc, area(-scores[-200:], y[-200:] == "fault"))
    assert report.confusion.labels == [1, -1]
    assert report.confusion.counts[1, 1] == ((said == -1) & (y == "fault")).sum()
    assert report.confusion.counts[0, 1] == ((said == -1) & (y == "fine")).sum()
    assert np.isnan(evaluate.progressive(ok.NORMA("novelty"), (X, y)).auc)
