"""Late labels against a plain loop; pipelines and estimators of scikit-learn against test-then-train by hand."""
import copy

import numpy as np
import pytest
import test_evaluate
from cases import covering, each

import onlinekernels as ok
from onlinekernels import evaluate
from onlinekernels.losses import LOSSES

KERNEL, TREE = test_evaluate.KERNEL, test_evaluate.TREE


def data(task):
    return test_evaluate.data(task, 120)


def errors_of(report):
    return np.diff(report.history["error"] * report.history["examples"], prepend=0.0)


# ---- Late labels ----


def late_errors(model, X, y, delay):
    """Errors of a model that learns example t - delay after it has predicted example t."""
    errors, task = [], model._current_loss().task
    for t in range(len(X)):
        fresh = not hasattr(model, "t_")
        if task == "regression":
            errors.append(abs(y[t] - (0.0 if fresh else model.predict_one(X[t]))))
        elif task == "binary":
            errors.append(fresh or y[t] * model.decision_function(X[t : t + 1])[0] <= 0)
        else:
            errors.append(fresh or model.predict_one(X[t]) != y[t])
        if t >= delay:
            model.partial_fit(X[t - delay : t - delay + 1], y[t - delay : t - delay + 1])
    for t in range(max(0, len(X) - delay), len(X)):
        model.learn_one(X[t], y[t])
    return np.array(errors, dtype=float)


@covering(1)
@each("delay", [1, 7, 119, 120, 500])
@each("name", sorted(name for name, loss in LOSSES.items() if loss().task != "novelty"))
def test_late_labels_against_a_loop(name, delay):
    loss = LOSSES[name]()
    model = ok.NORMA(loss, KERNEL, step=0.3, labels=TREE if loss.structured else None)
    X, y = data(loss.task)
    twin = copy.deepcopy(model)
    expected = late_errors(twin, X, y, delay)
    report = evaluate.progressive(model, (X, y), chunk=1, delay=delay, window=30)
    assert report.examples == model.t_ == 120
    come = max(0, 120 - delay)  # before the stream ended
    assert report.history["examples"].tolist() == [*range(1, come + 1), 120]
    np.testing.assert_allclose(errors_of(report)[:come], expected[:come], atol=1e-9)
    np.testing.assert_allclose(report.error, expected.mean(), rtol=1e-9)
    np.testing.assert_allclose(report.window_error, expected[-30:].mean(), rtol=1e-9)
    score = "predict" if loss.task == "regression" else "decision_function"
    np.testing.assert_allclose(getattr(model, score)(X), getattr(twin, score)(X), rtol=1e-9, atol=1e-12)


def test_late_labels_of_scaled_targets_are_judged_in_their_units():
    X, y = data("regression")
    y = 1000 + 300 * y
    for loss in ("squared", "insensitive", "nuhuber"):
        model = ok.NORMA(loss, KERNEL, step=0.3, scale_target=True)
        for delay in (1, 7):
            expected = late_errors(copy.deepcopy(model), X, y, delay)
            report = evaluate.progressive(copy.deepcopy(model), (X, y), delay=delay)
            np.testing.assert_allclose([report.error, report.squared_error], [expected.mean(), (expected**2).mean()], rtol=1e-9)


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


def test_late_labels_of_sparse_rows_frames_objects_and_several_targets():
    sparse, pandas = pytest.importorskip("scipy.sparse"), pytest.importorskip("pandas")
    X, y = data("binary")
    expected = evaluate.progressive(ok.NORMA("hinge", KERNEL), (X, y), delay=5)
    for rows in (sparse.csr_matrix(X), pandas.DataFrame(X, columns=["a", "b"]), X.tolist()):
        assert evaluate.progressive(ok.NORMA("hinge", KERNEL), (rows, y), delay=5).mistakes == expected.mistakes
    words, labels = ["walking", "gehen", "talking", "reden"] * 5, ["en", "de"] * 10
    model = ok.NORMA("hinge", lambda a, b: float(a[-2:] == b[-2:]))
    assert evaluate.progressive(model, (words, labels), delay=3).mistakes == 4  # before anything is learned
    X, y = data("regression")
    report = evaluate.progressive(ok.NORMA("squared", KERNEL), (X, np.column_stack([y, 2 * y])), delay=2)
    alone = [evaluate.progressive(ok.NORMA("squared", KERNEL), (X, k * y), delay=2).error for k in (1, 2)]
    np.testing.assert_allclose(report.error, np.mean(alone))


def test_delays_that_make_no_sense():
    X, y = data("binary")
    for delay in (-1, 1.5, True, "long"):
        with pytest.raises(ValueError, match="'delay' parameter of progressive must be an integer of at least 0"):
            evaluate.progressive(ok.NORMA(), (X, y), delay=delay)
    with pytest.raises(ValueError, match="a detector learns without labels"):
        evaluate.progressive(ok.NORMA("novelty"), X, delay=1)


def test_late_labels_in_comparisons_and_tuning():
    X, y = data("binary")
    alone = evaluate.progressive(ok.NORMA(step=1.0), (X, y), delay=9)
    assert evaluate.compare({"a": ok.NORMA(step=1.0)}, (X, y), delay=9)["a"].mistakes == alone.mistakes
    tuning = evaluate.tune(ok.NORMA(), [{"step": 1.0}], (X, y), delay=9)
    assert tuning.best_value == alone.error != evaluate.progressive(ok.NORMA(step=1.0), (X, y)).error


# ---- Pipelines ----


def pipeline_loop(pipeline, X, y):
    """Errors of a pipeline, one row at a time, by the steps' own methods."""
    *steps, (_, last) = pipeline.steps
    errors = []
    for t in range(len(X)):
        row = X[t : t + 1]
        for _, step in steps:
            row = step.partial_fit(row).transform(row)
        fresh = not hasattr(last, "classes_")
        errors.append(fresh or last.decision_function(row)[0] * y[t] <= 0)
        last.partial_fit(row, y[t : t + 1], classes=[-1, 1])
    return np.array(errors, dtype=float)


def test_pipelines_against_a_loop():
    pytest.importorskip("sklearn")
    from sklearn.linear_model import SGDClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MaxAbsScaler, StandardScaler

    X, y = data("binary")
    X = 10 * X + 100
    for last in (ok.NORMA("hinge", KERNEL), SGDClassifier(random_state=0)):
        pipeline = make_pipeline(StandardScaler(), MaxAbsScaler(), last)
        expected = pipeline_loop(copy.deepcopy(pipeline), X, y)
        for chunk in (1, 50):
            learned = copy.deepcopy(pipeline)
            report = evaluate.progressive(learned, (X, y), chunk=chunk)
            assert report.mistakes == expected.sum()
            assert learned[0].n_samples_seen_ == 120
            assert learned.predict(X[:3]).shape == (3,)
    assert report.task == "binary" and 0 < report.auc < 1 and report.confusion.labels == [-1, 1]
    assert "terms" not in str(report)


def test_a_running_scaler_in_a_pipeline_is_scale():
    pytest.importorskip("sklearn")
    from sklearn.pipeline import make_pipeline

    X, y = data("binary")
    X = 10 * X + 100
    expected = evaluate.progressive(ok.NORMA(scale=True), (X, y), delay=3)
    piped = evaluate.progressive(make_pipeline(ok.RunningScaler(), "passthrough", ok.NORMA()), (X, y))
    assert piped.mistakes == evaluate.progressive(ok.NORMA(scale=True), (X, y)).mistakes
    # Rows need no labels, so a scaler does not wait for them; `scale` of a model does.
    late = evaluate.progressive(make_pipeline(ok.RunningScaler(), ok.NORMA()), (X, y), delay=3)
    assert late.examples == expected.examples == 120


def test_estimators_of_scikit_learn():
    pytest.importorskip("sklearn")
    from sklearn.cluster import MiniBatchKMeans
    from sklearn.linear_model import SGDClassifier, SGDRegressor
    from sklearn.naive_bayes import BernoulliNB

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


def test_steps_that_cannot_learn_in_parts():
    pytest.importorskip("sklearn")
    from sklearn.decomposition import PCA
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import Normalizer, PolynomialFeatures
    from sklearn.svm import SVC

    X, y = data("binary")
    with pytest.raises(TypeError, match="whose steps can learn in parts. PCA has no partial_fit and is not fitted: fit it before"):
        evaluate.progressive(make_pipeline(PCA(1), ok.NORMA()), (X, y))
    with pytest.raises(TypeError, match="SVC learns by fit only"):
        evaluate.progressive(make_pipeline(PCA(1), SVC()), (X, y))
    with pytest.raises(TypeError, match="Adatron learns by fit only"):
        evaluate.progressive(make_pipeline(Normalizer(), ok.Adatron()), (X, y))
    with pytest.raises(TypeError, match="a fresh copy of model must be a pipeline .* PCA has no partial_fit and is not"):
        evaluate.tune(make_pipeline(PCA(1).fit(X), ok.NORMA()), [{"norma__step": 1.0}], (X, y))
    features = PolynomialFeatures(2).fit(X)
    expected = evaluate.progressive(ok.NORMA(), (features.transform(X), y))
    assert evaluate.progressive(make_pipeline(features, ok.NORMA()), (X, y)).mistakes == expected.mistakes
    assert evaluate.progressive(make_pipeline(Normalizer(), ok.NORMA()), (X, y)).examples == 120
    shared = ok.RunningScaler()
    with pytest.raises(ValueError, match="'a' and 'b' are one, or share a step"):
        evaluate.compare({"a": make_pipeline(shared, ok.NORMA()), "b": make_pipeline(shared, ok.NORMA())}, (X, y))


def test_tuning_a_pipeline():
    pytest.importorskip("sklearn")
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X, y = data("binary")
    pipeline = make_pipeline(StandardScaler(), ok.NORMA("hinge", ok.Gaussian()))
    tuning = evaluate.tune(pipeline, [{"norma__kernel__width": width, "standardscaler__with_mean": True} for width in (0.5, 5.0)], (X, y))
    assert not hasattr(pipeline[0], "mean_") and not hasattr(tuning.best[-1], "t_")
    assert tuning.best[-1].kernel.width == tuning.best_params["norma__kernel__width"]
    assert tuning.best_value == evaluate.progressive(tuning.best, (X, y)).error
    assert tuning.best[-1].t_ == 120
