"""The wrappers for river: its own checks, features that come and go, labels, scores, several targets."""
import pickle
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("river")

from river import checks, compose, datasets, preprocessing
from cases import each

from onlinekernels import (KRLS, NORMA, SILK, SVMD, AdditiveExponential, Gaussian, Laplacian, Linear,
                           OnlineKernelClassifier, PassiveAggressive, Polynomial,)
from onlinekernels.river import RiverClassifier, RiverDetector, RiverMultiTargetRegressor, as_river

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


class Anomalies:
    """Instead of river's credit card data, which it would have to download."""

    def take(self, n):
        rng = np.random.default_rng(0)
        for i in range(n):
            novel = i % 10 == 9
            point = rng.normal(size=6) * 0.5 + 2.0 * novel
            yield {f"V{j}": value for j, value in enumerate(point.tolist())}, int(novel)


@pytest.mark.parametrize("model", [pytest.param(algorithm(loss, budget=20), marks=pytest.mark.slow
                                                if loss != losses[0] or algorithm is PassiveAggressive else (),
                                                ) for algorithm, losses in CHECKED.items() for loss in losses],
                         ids=repr)
# Features and targets are taken as they are.
@pytest.mark.filterwarnings("ignore::onlinekernels.LearningWarning")
def test_rivers_checks(model, monkeypatch):
    pytest.importorskip("sklearn")
    monkeypatch.setattr(datasets, "CreditCard", Anomalies)
    checks.check_estimator(as_river(model))


def dense_answers(model, X, y, task):
    """What the bare model says of each row before it learns it."""
    answers = []
    for i, x in enumerate(X):
        if i:
            answers.append(-model.decision_function(x[None])[0] if task == "novelty" else model.predict_one(x))
        model.learn_one(x, None if task == "novelty" else y[i]) if i else model.partial_fit(x[None], None if task
                                                                                            == "novelty" else y[:1])
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
    columns = [int(name[1:]) for name in wrapper._columns]
    assert sorted(columns) == list(range(8)) and wrapper.learner.n_features_in_ >= 8
    if budget is not None:
        np.testing.assert_allclose(
            wrapper.learner.support_vectors_[:, : len(columns)], model.support_vectors_[:, columns], atol=1e-12
        )
        np.testing.assert_allclose(wrapper.learner.dual_coef_, model.dual_coef_, rtol=0, atol=1e-12)
    else:
        learned = wrapper.learner.coef_[:, : len(columns)]
        np.testing.assert_allclose(learned, model.coef_[:, columns], rtol=0, atol=1e-12)


def test_predicting_learns_no_names():
    wrapper = as_river(NORMA("squared", Gaussian()))
    wrapper.learn_one({"a": 1.0}, 2.0)
    before = wrapper.predict_one({"a": 1.0})
    # An unknown feature is as far from the terms, which lack it, as it is from 0.
    far = wrapper.predict_one({"a": 1.0, "b": 3.0, "c": 1.0})
    assert far == pytest.approx(before * np.exp(-5.0), rel=1e-14)
    assert wrapper.predict_one({"a": 1.0, "z": 3.0, "y": 1.0}) == pytest.approx(far, rel=1e-14)
    assert tuple(wrapper._columns) == ("a",) and wrapper.predict_one({"a": 1.0}) == before
    assert wrapper.learner.n_features_in_ < 6
    assert wrapper.predict_one({}) == pytest.approx(before * np.exp(-0.5), rel=1e-14)


def test_where_new_names_would_change_the_past_they_are_refused():
    wrapper = as_river(NORMA("squared", AdditiveExponential(), step=0.01), features=["a", "b"])
    wrapper.learn_one({"b": 1.0}, 2.0)
    wrapper.learn_one({"a": 1.0, "b": 0.5}, 1.0)
    with pytest.raises(ValueError, match="'c', and a model with the kernel .* name all of them in features="):
        wrapper.learn_one({"c": 1.0, "a": 1.0}, 2.0)
    assert wrapper.learner.t_ == 2 and wrapper.learner.n_features_in_ == 2
    dense = NORMA("squared", AdditiveExponential(), step=0.01).partial_fit([[0.0, 1.0], [1.0, 0.5]], [2.0, 1.0])
    assert wrapper.predict_one({"a": 0.3, "b": 0.2}) == pytest.approx(dense.predict_one([0.3, 0.2]), rel=1e-13)


def test_a_kernel_on_objects_sees_the_dictionaries():
    def shared_names(x, z):
        return float(len(x.keys() & z.keys()))

    wrapper = as_river(NORMA("hinge", shared_names, step=1.0))
    example = {"free": "yes", "money": None}
    wrapper.learn_one(example, "spam")
    example.clear()
    wrapper.learn_one({"hello": 1}, "ham")
    assert wrapper.predict_one({"money": 3, "no": 0}) == "spam" and wrapper.predict_one({"hello": []}) == "ham"


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


@each(
    "make, message",
    [
        (lambda: RiverClassifier(NORMA("squared")), "'model' parameter of RiverClassifier must have a loss for binary"),
        (lambda: RiverDetector(NORMA("hinge")), "'model' parameter of RiverDetector must have a loss for novelty"),
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


@each("labels", [(False, True), (0, 1), (-1, 1), ("ham", "spam"), ("spam", "ham"), ((1, 2), "x"), (np.False_,
                                                                                                   np.True_)])
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


def test_before_anything_is_learned():
    x = {"a": 1.0}
    assert as_river(NORMA()).predict_one(x) is None
    assert as_river(NORMA("multiclasslogistic")).predict_one(x) is None
    assert as_river(NORMA("multiclasslogistic")).predict_proba_one(x) == {}
    assert as_river(NORMA("logistic")).predict_proba_one(x) == {False: 0.5, True: 0.5}  # as river's checks ask
    assert as_river(NORMA("logistic"), classes=["b", "a"]).predict_proba_one(x) == {"b": 0.5, "a": 0.5}
    assert as_river(NORMA("squared")).predict_one(x) == 0.0
    assert as_river(NORMA("novelty")).score_one(x) == 0.0


def test_a_model_that_encodes_behind_one_hot_encoding_needs_all_names():
    words = ["red", "blue", "green"]

    def through(river_model):
        pipeline = compose.SelectType(str) | preprocessing.OneHotEncoder() | river_model
        for i in range(60):
            pipeline.learn_one({"colour": words[i % 3]}, i % 3 == 0)
        return [pipeline.predict_one({"colour": word}) for word in words]

    unnamed = as_river(OnlineKernelClassifier("low"))
    with pytest.warns(UserWarning, match="are new after the first row and ignored") as said:
        through(unnamed)
    assert unnamed.learner.t_ == 60 and len(said) == 2
    assert through(as_river(NORMA("hinge", "linear", encode=True, scale=True))) == [True, False, False]
    named = as_river(OnlineKernelClassifier("low"), features=[f"colour_{word}" for word in words])
    assert through(named) == [True, False, False]


def test_a_clone_knows_nothing_and_the_model_stays_as_it_is():
    model = NORMA("squared", Gaussian(2.0))
    wrapper = as_river(model, features=["a"])
    wrapper.learn_one({"a": 1.0, "b": 2.0}, 1.0)
    assert not model.__sklearn_is_fitted__() and wrapper.learner.t_ == 1
    clone = wrapper.clone()
    assert tuple(clone._columns) == ("a",) and clone.predict_one({"a": 1.0}) == 0.0 and clone.model is not model
    assert repr(clone) == repr(wrapper)
    assert isinstance(wrapper.clone({"model": NORMA("squared", Linear())}).model.kernel, Linear)
    with pytest.raises(ValueError, match="not a mutable attribute"):
        wrapper.mutate({"features": ["b"]})


def test_rivers_checks_of_several_targets():
    pytest.importorskip("sklearn")
    checks.check_estimator(as_river(NORMA("squared", step=0.1, budget=50), targets=None))


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
