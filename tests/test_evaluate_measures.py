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
        auc._check()
        first = 0 if window is None else max(0, min(end, 150) - window)
        np.testing.assert_array_equal(auc.value(), area(scores[first:end], positive[first:end]))
        begin = end


def test_large_windows_split_their_lists():
    """Past sortedcontainers' load of 1000, where its lists split and join."""
    rng = np.random.default_rng(2)
    scores, positive = rng.integers(400, size=9000) / 7, rng.random(9000) < 0.5
    auc = RunningAUC(4500)
    auc.add(scores, positive)
    auc._check()
    assert auc.value() == area(scores[-4500:], positive[-4500:])


def test_nan_is_in_no_order():
    auc = RunningAUC(window=3)
    auc.add([1.0, np.nan], [True, False])
    assert np.isnan(auc.value())
    auc.add([0.0, 2.0, 1.5], [False, True, False])
    assert auc.value() == 1.0 and auc.unordered == 0


# ---- In reports ----


@each("loss", ["hinge", "logistic", "nuhinge"])
def test_the_areas_of_a_report(loss):
    X, y = stream()
    scores = ok.NORMA(loss, KERNEL).progressive(X, y)
    report = evaluate.progressive(ok.NORMA(loss, KERNEL), (X, y), window=70, chunk=45)
    for count, auc, latest in zip(*(report.history[name] for name in ("examples", "auc", "window_auc")), strict=True):
        first = max(0, count - 70)
        np.testing.assert_allclose(auc, area(scores[:count], y[:count] == "yes"), rtol=1e-14)
        np.testing.assert_allclose(latest, area(scores[first:count], y[first:count] == "yes"), rtol=1e-14)
    assert report.auc == report.history["auc"][-1] and report.window_auc == report.history["window_auc"][-1]


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


@each("fitted", [False, True])
def test_many_classes_that_join_late(fitted):
    metrics = pytest.importorskip("sklearn.metrics")
    X, _ = stream()
    y = np.array(["d", "a", "c", "b"])[(X[:, 0] > 0) + 2 * (X[:, 1] > 0) * (np.arange(300) > 100)]
    model = ok.NORMA("multiclasshinge", KERNEL)
    if fitted:
        model.fit(X[:50], y[:50])  # shows labels in sorted order; others join behind them
    twin = copy.deepcopy(model)
    said = twin.progressive(X, y, return_labels=True)[1]
    report = evaluate.progressive(model, (X, y), window=80)
    decided = np.array([label is not None for label in said])
    assert decided.sum() == (300 if fitted else 299)
    confusion = report.confusion
    assert confusion.labels == ["a", "b", "c", "d"]
    expected = metrics.confusion_matrix(y[decided], said[decided].astype(str), labels=confusion.labels)
    np.testing.assert_array_equal(confusion.counts, expected)
    assert confusion.undecided.sum() == 300 - decided.sum()
    assert confusion.mistakes == report.mistakes
    np.testing.assert_allclose(report.window_macro_f1, metrics.f1_score(y[-80:], said[-80:].astype(str), average="macro"))
    assert np.isnan([report.auc, report.f1]).all()


def test_a_score_of_zero_is_undecided():
    report = evaluate.progressive(ok.Perceptron(), (np.zeros((3, 1)), ["no", "no", "yes"]), classes=["no", "yes"])
    assert report.confusion.undecided.tolist() == [1, 0]
    assert report.confusion.counts.tolist() == [[1, 0], [1, 0]]
    assert report.confusion.mistakes == report.mistakes == 2
    assert report.f1 == 0.0
    late = evaluate.progressive(ok.Perceptron("linear", offset=False), (np.zeros((4, 1)), ["no", "no", "yes", "no"]), delay=1)
    assert late.confusion.undecided.tolist() == [3, 1] and late.mistakes == 4


def test_what_has_no_ratings():
    X, _ = stream()
    report = evaluate.progressive(ok.NORMA("squared"), (X, X[:, 0]))
    assert np.isnan([report.auc, report.f1, report.window_auc, report.window_f1]).all()
    assert report.confusion is report.window_confusion is None
    assert "AUC" not in str(report) and "F1" not in str(report)
    one_sided = evaluate.progressive(ok.NORMA(), (X, np.full(300, -1)))
    assert np.isnan([one_sided.auc, one_sided.f1]).all()


def test_the_area_can_be_left_out():
    report = evaluate.progressive(ok.NORMA(), stream(), auc=False)
    assert np.isnan(report.auc) and report.f1 > 0


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
    with pytest.raises(ValueError, match="novel='fault' says which label is novel to judge detectors by"):
        evaluate.progressive(ok.NORMA(), (X, y), novel="fault")


def test_a_confusion_in_words():
    confusion = evaluate.Confusion(["a", "b"], np.array([[3, 0], [1, 2]]), np.zeros(2, dtype=int))
    lines = ["is  taken for a  b", "------------------", "a             3  0", "b             1  2"]
    assert str(confusion).splitlines() == lines


def test_importing_evaluate_needs_no_sorted_lists():
    """They are imported by the first area that is kept."""
    import subprocess
    import sys

    code = "import sys, onlinekernels.evaluate, onlinekernels.cli.learn; print('sortedcontainers' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
