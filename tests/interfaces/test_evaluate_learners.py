"""Late labels, and estimators of scikit-learn, against test-then-train by hand."""
import copy

import numpy as np
import pytest
import test_evaluate
from cases import each

import onlinekernels as ok
from onlinekernels import evaluate

KERNEL = test_evaluate.KERNEL


def data(task):
    return test_evaluate.data(task, 120)


# ---- Late labels ----


def test_late_labels_of_scaled_targets_are_judged_in_their_units():
    X, y = data("regression")
    y = 1000 + 300 * y
    for loss in ("squared", "insensitive", "nuhuber"):
        model = ok.NORMA(loss, KERNEL, step=0.3, scale_target=True)
        for delay in (1, 7):
            expected = test_evaluate.loop(copy.deepcopy(model), X, y, delay)[0]
            report = evaluate.progressive(copy.deepcopy(model), (X, y), delay=delay)
            np.testing.assert_allclose([report.error, report.squared_error], [expected.mean(), (expected**2).mean()],
                                       rtol=1e-9)


@each("loss", ["hinge", "multiclasshinge"])
def test_readers_that_use_their_arrays_again(loss):
    X, y = data("binary")

    def reader():
        rows, labels = np.empty((10, 2)), np.empty(10)
        for begin in range(0, 120, 10):
            rows[:], labels[:] = X[begin : begin + 10], y[begin : begin + 10]
            yield rows, labels

    expected = evaluate.progressive(ok.NORMA(loss, KERNEL), (X, y), delay=25)
    report = evaluate.progressive(ok.NORMA(loss, KERNEL), reader(), delay=25, chunk=33)
    assert (report.mistakes, report.terms) == (expected.mistakes, expected.terms)


# ---- Estimators of scikit-learn ----


def test_estimators_of_scikit_learn():
    pytest.importorskip("sklearn")
    from sklearn.cluster import MiniBatchKMeans
    from sklearn.linear_model import SGDClassifier, SGDRegressor
    from sklearn.naive_bayes import BernoulliNB
    from sklearn.svm import SVC

    X, y = data("regression")
    model, expected = SGDRegressor(random_state=0), [abs(y[0])]
    twin = SGDRegressor(random_state=0).partial_fit(X[:1], y[:1])
    for t in range(1, 120):
        expected.append(abs(twin.predict(X[t : t + 1])[0] - y[t]))
        twin.partial_fit(X[t : t + 1], y[t : t + 1])
    report = evaluate.progressive(model, (X, y))
    np.testing.assert_allclose(report.error, np.mean(expected))
    np.testing.assert_allclose(report.squared_error, np.mean(np.square(expected)))
    X, y = data("multiclass")
    report = evaluate.progressive(BernoulliNB(), (X, y))
    assert report.task == "multiclass" and report.error < 0.6 and report.confusion.labels == list("abcd")
    X, y = data("binary")
    assert evaluate.progressive(BernoulliNB(), (X, y)).auc > 0
    chunks = [(X[:60], y[:60]), (X[60:], y[60:])]
    with pytest.raises(ValueError, match="SGDClassifier must know all labels before its first chunk: name them in cl"):
        evaluate.progressive(SGDClassifier(), chunks)
    assert evaluate.progressive(SGDClassifier(), chunks, classes=[-1, 1]).examples == 120
    comparison = evaluate.compare({"ours": ok.SILK(None, KERNEL), "theirs": SGDClassifier(random_state=0)}, (X, y))
    assert comparison.best == "ours" and "theirs" in str(comparison)
    with pytest.raises(ValueError, match="same task"):
        evaluate.compare({"a": ok.NORMA(), "b": SGDRegressor()}, (X, y))
    with pytest.raises(TypeError, match="model must be a classifier, regressor or detector"):
        evaluate.progressive(MiniBatchKMeans(), (X, y))
    with pytest.raises(TypeError, match="model must be an online learner"):
        evaluate.progressive(SVC(), (X, y))
