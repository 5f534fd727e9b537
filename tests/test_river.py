"""The wrappers for river: its own checks, features that come and go, labels, scores, several targets, mini-batches."""
import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("river")

from river import anomaly, checks, compose, datasets, evaluate, metrics, preprocessing
from cases import each

from onlinekernels import (
    KRLS,
    NORMA,
    SILK,
    SVMD,
    Adatron,
    AdditiveExponential,
    Gaussian,
    Hedge,
    Laplacian,
    Linear,
    NuNovelty,
    OnlineKernelClassifier,
    OnlineKernelRegressor,
    PassiveAggressive,
    Polynomial,
    Precomputed,
    RunningScaler,
    SelfTuned,
    Smoother,
    Stacking,
    VotedPerceptron,
)
from onlinekernels.river import RiverClassifier, RiverDetector, RiverMultiTargetRegressor, RiverRegressor, as_river

LOSSES = ["hinge", "logistic", "multiclasshinge", "multiclasslogistic", "insensitive", "squared", "novelty"]
LOSSES += ["nunovelty", "multiclasssquared", "quantile"]
CHECKED = {  # the first of each every day
    NORMA: ["hinge", "logistic", "insensitive", "nunovelty"],
    SILK: ["multiclasslogistic", "squared", "novelty"],
    SVMD: ["novelty", "logistic", "squared"],
    PassiveAggressive: ["insensitive", "hinge", "novelty"],
    KRLS: ["squared", "multiclasssquared"],
}


def stream(n, seed=0, n_names=8, offset=0.0):
    """(dictionaries in which names come and go, dense array with all columns, which entries are there)."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_names)) + offset
    there = rng.random((n, n_names)) < 0.6
    # The later a name, the later it may come; it need not be in the order of columns.
    there &= np.arange(n)[:, None] >= (n // 2) * np.arange(n_names) / n_names
    there[:, 1] = there[:, 0] = True
    rows = []
    for i in range(n):
        names = rng.permutation(np.flatnonzero(there[i]))
        rows.append({f"f{j}": float(X[i, j]) for j in names})
    return rows, X, there


def targets(loss, X):
    if "multiclass" in loss:
        return np.array(["a", "b", "c"])[(X[:, 0] > 0).astype(int) + (X[:, 1] > 0)].tolist()
    if loss in ("hinge", "logistic"):
        return (X[:, 0] * X[:, 1] > 0).tolist()
    return (X[:, 0] + X[:, 1] ** 2).tolist()


def teach(wrapper, x, y):
    wrapper.learn_one(x) if isinstance(wrapper, RiverDetector) else wrapper.learn_one(x, y)


def answer(wrapper, x):
    return wrapper.score_one(x) if isinstance(wrapper, RiverDetector) else wrapper.predict_one(x)


def same_answers(a, b):
    if isinstance(a[-1], float):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-12)
    else:
        assert a == b


# ---- River's own checks --------------------------------------------------------------------------


class Anomalies:
    """Instead of river's credit card data, which it would have to download."""

    def take(self, n):
        rng = np.random.default_rng(0)
        for i in range(n):
            novel = i % 10 == 9
            point = rng.normal(size=6) * 0.5 + 2.0 * novel
            yield {f"V{j}": value for j, value in enumerate(point.tolist())}, int(novel)


@pytest.mark.parametrize("model", [
    pytest.param(algorithm(loss, budget=20), marks=pytest.mark.slow if loss != losses[0] or algorithm is PassiveAggressive else ())
    for algorithm, losses in CHECKED.items() for loss in losses], ids=repr)
# Features and targets are taken as they are.
@pytest.mark.filterwarnings("ignore:(Learning has stalled|This model is no better):onlinekernels.LearningWarning")
def test_rivers_checks(model, monkeypatch):
    pytest.importorskip("sklearn")
    monkeypatch.setattr(datasets, "CreditCard", Anomalies)
    checks.check_estimator(as_river(model))


# ---- Features come and go ------------------------------------------------------------------------


def dense_answers(model, X, y, task):
    """What the bare model says of each row before it learns it."""
    answers = []
    for i, x in enumerate(X):
        if i:
            answers.append(-model.decision_function(x[None])[0] if task == "novelty" else model.predict_one(x))
        model.learn_one(x, None if task == "novelty" else y[i]) if i else model.partial_fit(
            x[None], None if task == "novelty" else y[:1]
        )
    return answers


@each("kernel", [Linear(), Gaussian(2.0), Polynomial(2, scale=0.2), Laplacian(0.3)], ids=repr)
@each("loss", LOSSES)
@each("algorithm", [NORMA, SILK, SVMD])
def test_names_that_come_and_go_equal_a_dense_array(algorithm, loss, kernel):
    rows, X, there = stream(60)
    dense, y = np.where(there, X, 0.0), targets(loss, X)
    budget = None if isinstance(kernel, Linear) else 20
    model = algorithm(loss, kernel, step=0.02, budget=budget)
    wrapper = as_river(model)
    answers = []
    for i, (x, label) in enumerate(zip(rows, y)):
        if i:
            answers.append(answer(wrapper, x))
        teach(wrapper, x, label)
    task = model._current_loss().task
    same_answers(answers, dense_answers(model, dense, y, task))
    columns = [int(name[1:]) for name in wrapper._names]
    assert sorted(columns) == list(range(8)) and wrapper.learner.n_features_in_ >= 8
    if budget is not None:
        np.testing.assert_allclose(
            wrapper.learner.support_vectors_[:, : len(columns)], model.support_vectors_[:, columns], atol=1e-12
        )
        np.testing.assert_allclose(wrapper.learner.dual_coef_, model.dual_coef_, rtol=0, atol=1e-12)
    else:
        learned = wrapper.learner.coef_[:, : len(columns)]
        np.testing.assert_allclose(learned, model.coef_[:, columns], rtol=0, atol=1e-12)


@each("fill, offset", [(0.0, 1e4), (-1.5, 0.0), (1e4, 1e4), (3.0, 5.0)])
@each("model", [NORMA("insensitive", Gaussian(2.0), budget=20), NORMA("insensitive", Laplacian(0.3) + 0.5, budget=20),
                NORMA("squared", Gaussian(2.0), budget=20, scale=True), NORMA("squared", Linear(), step=0.02, scale=True),
                NORMA("squared", Gaussian(2.0), budget=20, scale=RunningScaler(memory=0.9))], ids=repr)
def test_other_fill_values_data_far_from_zero_and_models_that_scale(model, fill, offset):
    rows, X, there = stream(60, offset=offset)
    dense = np.where(there, X, fill)
    model, wrapper = copy.deepcopy(model), as_river(model, fill=fill)
    y = targets("insensitive", X - offset)
    same = []
    for x, target in zip(rows, y):
        same.append(wrapper.predict_one(x))
        wrapper.learn_one(x, target)
    np.testing.assert_allclose(same[1:], dense_answers(model, dense, y, "regression"), rtol=0, atol=1e-12)


def test_predicting_learns_no_names():
    wrapper = as_river(NORMA("squared", Gaussian()))
    wrapper.learn_one({"a": 1.0}, 2.0)
    before = wrapper.predict_one({"a": 1.0})
    # An unknown feature is as far from the terms, which lack it, as it is from 0.
    far = wrapper.predict_one({"a": 1.0, "b": 3.0, "c": 1.0})
    assert far == pytest.approx(before * np.exp(-5.0), rel=1e-14)
    assert wrapper.predict_one({"a": 1.0, "z": 3.0, "y": 1.0}) == pytest.approx(far, rel=1e-14)
    assert wrapper._names == ("a",) and wrapper.predict_one({"a": 1.0}) == before
    assert wrapper.learner.n_features_in_ < 6
    assert wrapper.predict_one({}) == pytest.approx(before * np.exp(-0.5), rel=1e-14)


def test_the_width_grows_seldom():
    wrapper = as_river(NORMA("squared", Linear()))
    widths = set()
    for i in range(200):
        wrapper.learn_one({f"word{i}": 1.0}, 1.0)
        widths.add(wrapper.learner.n_features_in_)
    assert len(widths) < 16 and max(widths) <= 300


@each(
    "kernel, options", [(AdditiveExponential(), {}), (Polynomial(2), {"fill": 1.0}), (Linear(), {"fill": -1.0})]
)
def test_where_new_names_would_change_the_past_they_are_refused(kernel, options):
    wrapper = as_river(NORMA("squared", kernel, step=0.01), features=["a", "b"], **options)
    wrapper.learn_one({"b": 1.0}, 2.0)
    wrapper.learn_one({"a": 1.0, "b": 0.5}, 1.0)
    with pytest.raises(ValueError, match="'c', and a model with the kernel .* name all of them in features="):
        wrapper.learn_one({"c": 1.0, "a": 1.0}, 2.0)
    assert wrapper.learner.t_ == 2 and wrapper.learner.n_features_in_ == 2
    dense = NORMA("squared", kernel, step=0.01)
    dense.partial_fit([[options.get("fill", 0.0), 1.0], [1.0, 0.5]], [2.0, 1.0])
    assert wrapper.predict_one({"a": 0.3, "b": 0.2}) == pytest.approx(dense.predict_one([0.3, 0.2]), rel=1e-13)


def test_a_precomputed_kernel_has_one_column():
    wrapper = as_river(NORMA("squared", Precomputed(np.eye(3))))
    wrapper.learn_one({"i": 2}, 1.0)
    assert wrapper.predict_one({"i": 2}) > 0 == wrapper.predict_one({"i": 1})
    with pytest.raises(ValueError, match="new feature 'j'"):
        wrapper.predict_one({"i": 1, "j": 0})


def test_a_kernel_on_objects_sees_the_dictionaries():
    def shared_names(x, z):
        return float(len(x.keys() & z.keys()))

    wrapper = as_river(NORMA("hinge", shared_names, step=1.0))
    example = {"free": "yes", "money": None}
    wrapper.learn_one(example, "spam")
    example.clear()
    wrapper.learn_one({"hello": 1}, "ham")
    assert wrapper.predict_one({"money": 3, "no": 0}) == "spam" and wrapper.predict_one({"hello": []}) == "ham"


# ---- Bad input -----------------------------------------------------------------------------------


@each(
    "x, kind, message",
    [
        ({"a": 1.0, "b": "red"}, TypeError, r"x\['b'\] must be a number. Got 'red' instead; put .*OneHotEncoder"),
        ({"a": "3"}, TypeError, r"x\['a'\] must be a number. Got '3'"),
        ({"a": None}, TypeError, r"x\['a'\] must be a number. Got None"),
        ({"a": [1.0]}, TypeError, r"x\['a'\] must be a number. Got \[1.0\]"),
        ({"a": [1.0], "b": 2.0}, TypeError, r"x\['a'\] must be a number. Got \[1.0\]"),
        ({"a": 1j}, TypeError, r"x\['a'\] must be a number. Got 1j"),
        ({"a": 1.0, "new": float("nan")}, ValueError, r"x\['new'\] must be a finite number. Got nan instead"),
        ({"a": float("inf"), "b": float("-inf")}, ValueError, r"x\['a'\] must be a finite number. Got inf"),
        ([1.0, 2.0], TypeError, r"x must be a dictionary of features. Got \[1.0, 2.0\]"),
        (None, TypeError, "x must be a dictionary of features. Got None"),
    ],
)
@each("first", [True, False])
def test_bad_features_are_refused_and_nothing_is_learned(x, kind, message, first):
    wrapper = as_river(NORMA())
    if not first:
        wrapper.learn_one({"a": 1.0}, True)
    before = pickle.dumps(wrapper)
    with pytest.raises(kind, match=message):
        wrapper.learn_one(x, False)
    assert pickle.dumps(wrapper) == before


def test_a_first_example_that_cannot_be_learned_leaves_nothing_behind():
    wrapper = as_river(NORMA("squared", Linear()))
    with pytest.raises(FloatingPointError, match="too large for the kernel"):
        wrapper.learn_one({"a": 1e200}, 1.0)
    assert wrapper.predict_one({"a": 1.0}) == 0.0
    wrapper.learn_one({"b": 1.0, "a": 2.0}, 1.0)
    assert wrapper._names == ("b", "a") and wrapper.learner.t_ == 1


def test_names_and_labels_of_rows_before_an_error_are_kept():
    pandas = pytest.importorskip("pandas")
    wrapper = as_river(NORMA("hinge", Linear()))
    with pytest.raises(FloatingPointError):
        wrapper.learn_many(pandas.DataFrame({"a": [1.0, -1.0, 1e200], "b": 1.0}), pandas.Series(["x", "y", "x"]))
    assert wrapper.learner.t_ == 2 and wrapper._names == ("a", "b")
    assert wrapper.predict_one({"a": 3.0}) == "x" and wrapper.predict_one({"a": -3.0}) == "y"


def test_all_kinds_of_numbers_are_features():
    from fractions import Fraction

    wrapper = as_river(NORMA("squared", Linear(), step=0.1))
    wrapper.learn_one({"a": True, "b": np.float32(0.5), "c": np.bool_(True), "d": 2, "e": Fraction(1, 4)}, 0.0)
    wrapper.learn_one({"a": True, "b": np.int8(2)}, 1.0)
    assert wrapper.learner.coef_[0, :2].tolist() == [0.1, 0.2]
    wrapper = as_river(NORMA("squared", Gaussian(1e300)))
    wrapper.learn_one({"a": 1e100, "b": 1e100, "c": 10**30, "d": 2**63}, 1.0)
    assert wrapper.learner.support_vectors_.tolist() == [[1e100, 1e100, 1e30, 2.0**63]]


@each(
    "make, message",
    [
        (lambda: RiverClassifier(NORMA("squared")), "'model' parameter of RiverClassifier must have a loss for binary"),
        (lambda: RiverDetector(NORMA("hinge")), "'model' parameter of RiverDetector must have a loss for novelty"),
        (lambda: as_river(NORMA(), fill=float("nan")), "'fill' parameter of RiverClassifier must be a finite number"),
        (lambda: as_river(NORMA(), features="ab"), "'features' parameter of RiverClassifier must be a list"),
        (lambda: as_river(NORMA(), features=["a", "a"]), "'features' parameter of RiverClassifier must be a list"),
        (lambda: as_river(NORMA(), classes=["a"]), "'classes' .* must be two different labels for a two-class loss"),
        (lambda: as_river(NORMA().fit([[1]], [1]), features=["a"], classes=[0, 1]), "'classes' .* must be None for a"),
        (lambda: as_river(NORMA().fit([[1, 2]], [1])), "'features' .* the names of the 2 columns .* Got None"),
        (lambda: as_river(NORMA("hinged")), "'loss' parameter of NORMA"),
    ],
)
def test_bad_parameters(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@each("model", [Adatron(), NORMA, "norma", None])
def test_only_models_that_learn_one_by_one_are_wrapped(model):
    with pytest.raises(TypeError, match="model must be a model of this library that has learn_one. Got"):
        as_river(model)


# ---- Labels --------------------------------------------------------------------------------------


@each(
    "labels", [(False, True), (0, 1), (-1, 1), ("ham", "spam"), ("spam", "ham"), ((1, 2), "x"), (np.False_, np.True_)]
)
@each("first", [0, 1])
def test_any_two_labels(labels, first):
    wrapper, plain = as_river(NORMA("logistic", step=1.0)), NORMA("logistic", step=1.0)
    rng = np.random.default_rng(0)
    for i in range(40):
        side = first if i == 0 else int(rng.integers(2))
        x = [2.0 * side + rng.normal(), 1.0]
        wrapper.learn_one({"a": x[0], "b": x[1]}, labels[side])
        plain.learn_one(x, bool(side))
    low, high = {"a": -1.0, "b": 1.0}, {"a": 3.0, "b": 1.0}
    assert (wrapper.predict_one(low), wrapper.predict_one(high)) == labels
    probabilities = wrapper.predict_proba_one(high)
    assert set(probabilities) == set(labels)
    assert probabilities[labels[1]] == pytest.approx(plain.predict_proba([[3.0, 1.0]])[0, 1], abs=1e-12)
    assert all(type(label) in (bool, int, str, tuple) for label in probabilities)
    with pytest.raises(ValueError, match="y must be one of .* for a loss of two classes. Got 'third' instead"):
        wrapper.learn_one(low, "third")
    assert wrapper.learner.t_ == 40


@each("label", [None, float("nan")])
def test_what_is_no_label(label):
    wrapper = as_river(NORMA())
    with pytest.raises(ValueError, match="y must be a label. Got"):
        wrapper.learn_one({"a": 1.0}, label)
    assert wrapper.predict_one({"a": 1.0}) is None


def test_a_refused_example_leaves_no_label_behind():
    wrapper = as_river(NORMA())
    wrapper.learn_one({"a": 1.0}, "x")
    with pytest.raises(TypeError):
        wrapper.learn_one({"a": "?"}, "y")
    pandas = pytest.importorskip("pandas")
    with pytest.raises(TypeError):
        wrapper.learn_many(pandas.DataFrame({"a": ["?"]}), pandas.Series(["y"]))
    wrapper.learn_one({"a": 1.0}, "z")
    assert wrapper._labels() == ["x", "z"]


def test_what_is_predicted_when_one_label_is_known():
    wrapper = as_river(NORMA("logistic"))
    wrapper.learn_one({"a": 1.0}, "only")
    assert wrapper.predict_one({"a": -5.0}) == "only" and wrapper.predict_proba_one({"a": 1.0}) == {"only": 1.0}
    wrapper.learn_one({"a": -5.0}, "other")
    assert list(wrapper.predict_proba_one({"a": 1.0})) == ["only", "other"]


def test_before_anything_is_learned():
    x = {"a": 1.0}
    assert as_river(NORMA()).predict_one(x) is None
    assert as_river(NORMA("multiclasslogistic")).predict_one(x) is None
    assert as_river(NORMA("multiclasslogistic")).predict_proba_one(x) == {}
    assert as_river(NORMA("logistic")).predict_proba_one(x) == {False: 0.5, True: 0.5}  # as river's checks ask
    assert as_river(NORMA("logistic"), classes=["b", "a"]).predict_proba_one(x) == {"b": 0.5, "a": 0.5}
    assert as_river(NORMA("squared")).predict_one(x) == 0.0
    assert as_river(NORMA("novelty")).score_one(x) == 0.0


def test_named_classes():
    wrapper = as_river(NORMA("logistic"), classes=["yes", "no"])
    wrapper.learn_one({"a": 1.0}, "no")
    assert wrapper.predict_proba_one({"a": 1.0})["no"] > 0.5
    many = as_river(NORMA("multiclasslogistic"), classes=["p", "q", "r"])
    many.learn_one({"a": 1.0}, "q")
    assert sorted(many.predict_proba_one({"a": 1.0})) == ["p", "q", "r"]
    with pytest.raises(ValueError, match="unknown label, 's'"):
        many.learn_one({"a": 1.0}, "s")


def test_many_labels_grow():
    wrapper = as_river(SILK("multiclasslogistic"))
    for i, label in enumerate(["red", "green", "blue", "red"]):
        wrapper.learn_one({"a": float(i)}, label)
        probabilities = wrapper.predict_proba_one({"a": float(i)})
        assert len(probabilities) == min(i + 1, 3) and sum(probabilities.values()) == pytest.approx(1.0)
        assert wrapper.predict_one({"a": float(i)}) == max(probabilities, key=probabilities.get)
    assert wrapper._multiclass and not as_river(NORMA())._multiclass


def test_only_logistic_losses_give_probabilities():
    with pytest.raises(NotImplementedError, match="gives no probabilities"):
        as_river(NORMA("hinge")).predict_proba_one({"a": 1.0})


def test_weights_multiply_the_loss():
    wrapper, plain = as_river(NORMA("squared")), NORMA("squared")
    for i, weight in enumerate([2.0, 0.0, 1.0, 0.5]):
        wrapper.learn_one({"a": float(i)}, 1.0, w=weight)
    plain.partial_fit([[0.0], [1.0], [2.0], [3.0]], np.ones(4), sample_weight=[2.0, 0.0, 1.0, 0.5])
    assert wrapper.predict_one({"a": 1.5}) == pytest.approx(plain.predict_one([1.5]), rel=1e-13)


# ---- Novelty -------------------------------------------------------------------------------------


@each("model", [NORMA("novelty"), NORMA("nunovelty"), SILK("nunovelty"), SVMD("novelty")], ids=repr)
def test_anomalies_score_high(model):
    """Above 0 where the model says so."""
    wrapper = as_river(model)
    rng = np.random.default_rng(0)
    for x in rng.normal(size=(300, 2)) * 0.5:
        wrapper.learn_one({"a": x[0], "b": x[1]})
    ordinary, novel = wrapper.score_one({"a": 0.0, "b": 0.0}), wrapper.score_one({"a": 3.0, "b": 3.0})
    assert ordinary < novel and isinstance(novel, float)
    points = rng.normal(size=(50, 2))
    scores = np.array([wrapper.score_one({"a": a, "b": b}) for a, b in points])
    assert ((scores > 0) == (wrapper.learner.predict(points) == -1)).all()
    assert as_river(model).score_one({"a": 1.0}) == 0.0


def test_a_threshold_of_river_keeps_the_alert_rate():
    detector = as_river(NORMA(NuNovelty(nu=0.05), step=0.1, regularization=0.01, budget=200))
    guard = anomaly.ThresholdFilter(detector, threshold=0.0)
    alerts = 0
    for x in np.random.default_rng(1).normal(size=(2000, 2)).tolist():
        x = dict(zip("ab", x))
        alerts += guard.classify(guard.score_one(x))
        detector.learn_one(x)
    assert 0.03 < alerts / 2000 < 0.07


# ---- Among river's other pieces ------------------------------------------------------------------


@each("model", [NORMA("logistic", Gaussian(3.0), step=1.0, budget=200), SILK(None, Gaussian(3.0))])
def test_progressive_validation_of_a_pipeline(model):
    pipeline = preprocessing.StandardScaler() | as_river(model)
    metric = evaluate.progressive_val_score(datasets.Phishing().take(600), pipeline, metrics.Accuracy())
    assert metric.get() > 0.8
    assert isinstance(repr(pipeline), str) and pipeline["RiverClassifier"].learner.t_ == 600
    assert not pipeline.clone()["RiverClassifier"].learner.__sklearn_is_fitted__()


def test_a_model_that_encodes_behind_one_hot_encoding_needs_all_names():
    words = ["red", "blue", "green"]

    def through(river_model):
        pipeline = compose.SelectType(str) | preprocessing.OneHotEncoder() | river_model
        for i in range(60):
            pipeline.learn_one({"colour": words[i % 3]}, i % 3 == 0)
        return [pipeline.predict_one({"colour": word}) for word in words]

    front_door = as_river(OnlineKernelClassifier("low"))
    with pytest.raises(ValueError, match="new feature 'colour_blue'.*features=, or leave OneHotEncoder out"):
        through(front_door)
    assert front_door.learner.t_ == 1
    assert through(as_river(OnlineKernelClassifier("low"), features=[f"colour_{word}" for word in words])) == [True, False, False]


def test_what_a_model_that_encodes_lacks_is_a_hole():
    rows = [{"a": float(i % 3), "b": "xy"[i % 2]} for i in range(40)]
    mine, plain = as_river(OnlineKernelClassifier("low"), features=["a", "b"]), OnlineKernelClassifier("low")
    for i, row in enumerate(rows):
        mine.learn_one({"b": row["b"]} if i % 5 == 4 else row, row["b"] == "x")
        plain.learn_one({**row, "a": None} if i % 5 == 4 else row, row["b"] == "x")
    assert mine.predict_proba_one({"b": "x"})[True] == plain.predict_proba([{"a": None, "b": "x"}])[0, 0]


def test_a_detector_in_a_pipeline():
    pipeline = preprocessing.MinMaxScaler() | as_river(NORMA("novelty", Gaussian(0.3)))
    metric = metrics.RollingROCAUC(window_size=400)  # takes scores of any size
    for x, y in Anomalies().take(500):
        metric.update(y, pipeline.score_one(x))
        pipeline.learn_one(x)
    assert pipeline["RiverDetector"].learner.t_ == 500 and metric.get() > 0.9


# ---- Copies --------------------------------------------------------------------------------------


@each("loss", LOSSES)
@each("copied", [copy.deepcopy, lambda w: pickle.loads(pickle.dumps(w))])
def test_copies_go_on_alike(loss, copied):
    rows, X, _ = stream(60)
    wrapper, y = as_river(NORMA(loss, budget=20)), targets(loss, X)
    for x, label in zip(rows[:30], y):
        teach(wrapper, x, label)
    other = copied(wrapper)
    for x, label in zip(rows[30:], y[30:]):
        assert answer(wrapper, x) == answer(other, x)
        teach(wrapper, x, label)
        teach(other, x, label)


def test_a_clone_knows_nothing_and_the_model_stays_as_it_is():
    model = NORMA("squared", Gaussian(2.0))
    wrapper = as_river(model, features=["a"])
    wrapper.learn_one({"a": 1.0, "b": 2.0}, 1.0)
    assert not model.__sklearn_is_fitted__() and wrapper.learner.t_ == 1
    clone = wrapper.clone()
    assert clone._names == ("a",) and clone.predict_one({"a": 1.0}) == 0.0 and clone.model is not model
    assert repr(clone) == repr(wrapper)
    other = wrapper.clone({"model": NORMA("squared", Linear()), "fill": 1.0})
    assert isinstance(other.model.kernel, Linear) and other.fill == 1.0
    with pytest.raises(ValueError, match="not a mutable attribute"):
        wrapper.mutate({"fill": 2.0})


@each("labels", [(0, 1), ("ham", "spam")])
def test_a_fitted_model_goes_on(labels):
    X = np.random.default_rng(0).normal(size=(50, 2))
    y = np.array(labels)[(X[:, 0] > 0).astype(int)]
    model = NORMA("logistic").fit(X[:25], y[:25])
    wrapper = as_river(model, features=["a", "b"])
    assert wrapper.predict_one({"a": 2.0}) == labels[1]
    for x, label in zip(X[25:].tolist(), y[25:].tolist()):
        wrapper.learn_one(dict(zip("ba", x[::-1])), label)
    assert model.t_ == 25 and wrapper.learner.t_ == 50 and wrapper.clone().learner.t_ == 25
    model.partial_fit(X[25:], y[25:])
    expected = dict(zip(labels, model.predict_proba([[0.3, 0.4]])[0]))
    assert wrapper.predict_proba_one({"a": 0.3, "b": 0.4, "c": 0.0}) == pytest.approx(expected, abs=1e-13)


def test_a_model_that_was_fitted_to_a_data_frame_knows_its_names():
    pandas = pytest.importorskip("pandas")
    model = NORMA("squared").fit(pandas.DataFrame({"b": [1.0, 2.0], "a": [0.0, 1.0]}), [1.0, 2.0])
    wrapper = as_river(model)
    assert wrapper._names == ("b", "a")
    assert wrapper.predict_one({"a": 0.0, "b": 1.0}) == model.predict_one([1.0, 0.0])
    wrapper.learn_one({"c": 1.0}, 1.0)
    assert wrapper._names == ("b", "a", "c") and wrapper.learner.t_ == 3


def test_float32_models_and_voting_grow_too():
    rows, X, there = stream(40)
    y = targets("hinge", X)
    single = NORMA("squared", Gaussian(2.0)).fit(np.where(there, X, 0.0)[:1, :2].astype(np.float32), [1.0])
    wrapper = as_river(single, features=["f0", "f1"])
    voting = as_river(VotedPerceptron(Gaussian(2.0)))
    for x, label in zip(rows, y):
        wrapper.learn_one(x, float(label))
        voting.learn_one(x, label)
    assert wrapper.learner.support_vectors_.dtype == np.float32 and len(wrapper._names) == 8
    dense = VotedPerceptron(Gaussian(2.0)).partial_fit(np.where(there, X, 0.0), y)
    assert [voting.predict_one(x) for x in rows] == dense.predict(np.where(there, X, 0.0)).tolist()


# ---- Several targets --------------------------------------------------------------------------


def test_rivers_checks_of_several_targets():
    pytest.importorskip("sklearn")
    checks.check_estimator(as_river(NORMA("squared", step=0.1, budget=50), targets=None))


def test_several_targets_are_those_of_the_model():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    Y = np.column_stack([X[:, 0], np.sin(X[:, 1])])
    model = SILK("squared", Gaussian(1.0))
    one, many = as_river(model, targets=None), as_river(model, targets=["u", "v"])
    assert one.predict_one({"a": 1.0}) == {} and many.predict_one({"a": 1.0}) == {"u": 0.0, "v": 0.0}
    for (a, b), (u, v) in zip(X.tolist(), Y.tolist()):
        turned = one._learned and a > 0  # names may come in any order
        one.learn_one({"a": a, "b": b}, {"v": v, "u": u} if turned else {"u": u, "v": v})
        many.learn_one({"a": a, "b": b}, {"v": v, "u": u})
    frame = pandas.DataFrame(X, columns=["a", "b"])
    expected = model.partial_fit(X, Y).predict(X)
    assert many.predict_one({"b": X[3, 1], "a": X[3, 0]}) == one.predict_one({"a": X[3, 0], "b": X[3, 1]})
    np.testing.assert_allclose(list(one.predict_one({"a": X[3, 0], "b": X[3, 1]}).values()), expected[3], rtol=1e-9)
    pipeline = preprocessing.StandardScaler() | as_river(SILK("squared", Gaussian(1.0)), targets=None)
    metric = metrics.multioutput.MacroAverage(metrics.MAE())
    rows = zip(frame.to_dict("records"), pandas.DataFrame(Y, columns=["u", "v"]).to_dict("records"))
    assert evaluate.progressive_val_score(rows, pipeline, metric).get() < 0.8


@each("model", [
    SILK("squared", encode=True), SILK("squared", encode=True, scale_target=True), OnlineKernelRegressor("low"), KRLS(),
    SelfTuned("squared"), Smoother("squared"), Stacking([KRLS(), SILK("squared")]), Hedge([KRLS(), SILK("squared")]),
    PassiveAggressive("insensitive"), SILK("huber", Linear()), SILK("squared", AdditiveExponential()),
], ids=lambda model: repr(model)[:40])
def test_several_targets_work_for_all_models(model):
    """What the model makes of the same rows by itself; those that encode take words and holes."""
    rows = [{"a": float(i % 5), "b": "xy"[i % 2] if model.encode else float(i % 2)} for i in range(60)]
    for row in rows[19::20]:
        del row["b"]
    wrapper, Y = as_river(model, targets=None), np.array([[i % 5, 3.0 - i % 2] for i in range(60)])
    for x, (u, v) in zip(rows, Y.tolist()):
        wrapper.learn_one(x, {"u": u, "v": v})
    missing = None if model.encode else 0.0
    whole = [{"b": missing, **x} for x in rows] if model.encode else [[x["a"], x.get("b", missing)] for x in rows]
    expected = copy.deepcopy(model)
    for x, y in zip(whole, Y):
        expected.partial_fit([x], y[None])
    expected = expected.predict(whole[:10])
    np.testing.assert_allclose([list(wrapper.predict_one(x).values()) for x in rows[:10]], expected, rtol=1e-9)


def test_targets_that_make_no_sense():
    wrapper = as_river(NORMA("squared"), targets=None)
    for y in (1.0, "word", [1.0, 2.0], {}):
        with pytest.raises(TypeError, match="y must be a dictionary of targets"):
            wrapper.learn_one({"a": 1.0}, y)
    with pytest.raises(ValueError):
        wrapper.learn_one({"a": 1.0}, {"u": 1.0, "v": np.nan})
    assert wrapper._targets == () and not wrapper._learned
    wrapper.learn_one({"a": 1.0}, {"u": 1.0, "v": 2.0})
    with pytest.raises(ValueError, match="y must have the targets 'u', 'v'. Got \\('u',\\) instead"):
        wrapper.learn_one({"a": 1.0}, {"u": 1.0})
    assert wrapper.learner.t_ == 1
    fitted = NORMA("squared").fit([[1.0]], [[1.0, 2.0]])
    with pytest.raises(ValueError, match="one for each of the 2 targets"):
        RiverMultiTargetRegressor(fitted, features=["a"])
    named = RiverMultiTargetRegressor(fitted, features=["a"], targets=["u", "v"])
    assert list(named.predict_one({"a": 1.0}).values()) == fitted.predict([[1.0]])[0].tolist()


# ---- Mini-batches --------------------------------------------------------------------------------


@each("loss", [loss for loss in LOSSES if "novelty" not in loss])
@each("kernel", [Gaussian(2.0), Linear()], ids=repr)
def test_data_frames_equal_one_by_one(loss, kernel):
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 6))
    y = targets(loss, X)
    model = NORMA(loss, kernel, step=0.05, budget=None if isinstance(kernel, Linear) else 25)
    one, many = as_river(model), as_river(model)
    for begin, names in zip(range(0, 60, 12), ["ab", "abcd", "dc", "fabecd", "ba"]):
        frame = pandas.DataFrame({name: X[begin : begin + 12, ord(name) - 97] for name in names})
        part = y[begin : begin + 12]
        for x, label in zip(frame.to_dict("records"), part):
            teach(one, x, label)
        many.learn_many(frame, pandas.Series(part))
    assert one._names == many._names
    frame = pandas.DataFrame(X, columns=list("abcdef"), index=range(100, 160))
    rows = frame.to_dict("records")
    answers = [answer(one, x) for x in rows]
    same_answers([answer(many, x) for x in rows], answers)
    predicted = many.predict_many(frame)
    same_answers(predicted.tolist(), answers)
    assert (predicted.index == frame.index).all()
    if "logistic" in loss:
        table = many.predict_proba_many(frame)
        for x, row in zip(rows, table.to_dict("records")):
            assert row == pytest.approx(one.predict_proba_one(x), abs=1e-12)


def test_data_frames_before_learning_and_without_rows():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1.0, 2.0]})
    logistic = as_river(NORMA("logistic"))
    assert logistic.predict_many(frame).tolist() == [None, None]
    assert logistic.predict_proba_many(frame).to_dict("list") == {False: [0.5, 0.5], True: [0.5, 0.5]}
    assert as_river(NORMA("multiclasslogistic")).predict_proba_many(frame).shape == (2, 0)
    assert as_river(NORMA("squared")).predict_many(frame).tolist() == [0.0, 0.0]
    logistic.learn_many(frame[:0], pandas.Series([], dtype=bool))
    assert logistic.predict_one({"a": 1.0}) is None
    logistic.learn_many(frame, pandas.Series([True, False]))
    assert len(logistic.predict_many(frame[:0])) == 0 and logistic.predict_proba_many(frame[:0]).shape == (0, 2)


def test_bad_data_frames():
    pandas = pytest.importorskip("pandas")
    wrapper = as_river(NORMA("squared"))
    y = pandas.Series([1.0, 2.0])
    with pytest.raises(TypeError, match=r"X\['b'\] must be a number. Got 'red' instead"):
        wrapper.learn_many(pandas.DataFrame({"a": [1, 2], "b": ["red", "blue"]}), y)
    with pytest.raises(ValueError, match=r"X\['a'\] must be a finite number. Got .*nan"):
        wrapper.learn_many(pandas.DataFrame({"a": [1, None]}), y)
    with pytest.raises(ValueError, match="X must have columns of different names. Got .'a', 'a'. instead"):
        wrapper.learn_many(pandas.DataFrame([[1.0, 2.0], [3.0, 4.0]], columns=["a", "a"]), y)
    with pytest.raises(TypeError, match="X must be a pandas DataFrame. Got ndarray instead"):
        wrapper.learn_many(np.ones((2, 2)), y)
    assert wrapper.predict_one({"a": 1}) == 0.0 and wrapper._names == ()
    wrapper.learn_many(pandas.DataFrame({"a": [True, False], "b": np.array([3, 4], dtype=object)}), y)
    assert wrapper.learner.t_ == 2


# ---- Imports -------------------------------------------------------------------------------------


def test_importing_without_river_says_what_to_install():
    code = (
        "import sys, onlinekernels; assert 'river' not in sys.modules; sys.modules['river'] = None\n"
        "try:\n    import onlinekernels.river\n"
        "except ImportError as error:\n    print(error)\n"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "pip install river pandas" in said


@each("loss", ["hinge", "multiclasshinge"])
def test_class_weights_go_by_the_names_of_labels(loss):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = np.where(X[:, 0] > 0, "spam", "ham").tolist()
    weights = {"spam": 5.0, "ham": 0.25}
    expected = NORMA(loss, class_weight=weights).partial_fit(X, y, classes=["ham", "spam"])
    one_by_one = RiverClassifier(NORMA(loss, class_weight=weights), classes=["ham", "spam"])
    for x, label in zip(X, y):
        one_by_one.learn_one({"a": x[0], "b": x[1]}, label)
    np.testing.assert_allclose(one_by_one.learner.dual_coef_, expected.dual_coef_, atol=1e-12)
    pandas = pytest.importorskip("pandas")
    whole = RiverClassifier(NORMA(loss, class_weight=weights), classes=["ham", "spam"])
    whole.learn_many(pandas.DataFrame(X, columns=["a", "b"]), pandas.Series(y))
    np.testing.assert_allclose(whole.learner.dual_coef_, expected.dual_coef_, atol=1e-12)


def test_models_of_sparse_rows_are_refused():
    sparse = pytest.importorskip("scipy.sparse")
    model = NORMA("squared", "linear").partial_fit(sparse.csr_matrix(np.eye(3)), [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="fitted to sparse rows"):
        RiverRegressor(model, features=["a", "b", "c"])
