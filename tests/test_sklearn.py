"""Inside scikit-learn: its own estimator checks, pipelines, searches, calibration, data frames."""
import subprocess
import sys

import numpy as np
import pytest
from cases import each

sklearn = pytest.importorskip("sklearn", minversion="1.6")

from sklearn.base import clone, is_classifier, is_outlier_detector, is_regressor  # noqa: E402
from sklearn.calibration import CalibratedClassifierCV  # noqa: E402
from sklearn.exceptions import DataConversionWarning, NotFittedError  # noqa: E402
from sklearn.model_selection import GridSearchCV, cross_val_score  # noqa: E402
from sklearn.multioutput import MultiOutputRegressor  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402
from sklearn.utils.estimator_checks import estimator_checks_generator  # noqa: E402

import onlinekernels as ok  # noqa: E402

FREE = (ok.NORMA, ok.ILK, ok.SILK, ok.SVMD)
CONSTRAINED = (ok.PassiveAggressive, ok.Projection)
MODELS = [
    *[algorithm(loss) for algorithm in FREE for loss in ("hinge", "logistic", "multiclass_hinge", "squared")],
    *[algorithm("novelty", ok.Gaussian()) for algorithm in FREE],  # a fixed margin promises alerts of narrow kernels only
    *[algorithm("nunovelty", scale=scale) for algorithm in FREE for scale in (False, True)],
    *[algorithm(ok.NuNovelty(nu=0.2, margin_step=None), step=0.02) for algorithm in FREE],
    *[algorithm("squared", scale=True, scale_target=True) for algorithm in FREE],
    *[algorithm("novelty", ok.Gaussian(), budget=20) for algorithm in CONSTRAINED],
    ok.NORMA("multiclass_logistic", offset=True),
    *[algorithm("multiclass_squared") for algorithm in FREE],
    *[algorithm("multiclass_squared", scale=True) for algorithm in (ok.SILK, ok.SVMD)],
    ok.SILK("quantile"),
    ok.SVMD("huber", exact_norms=True),
    ok.ILK("squared", "linear"),
    *[ok.KRLS("squared", kernel) for kernel in (None, "linear")],
    ok.KRLS("squared", noise="auto", memory=0.999, scale=True, scale_target=True),
    *[ok.KRLS("multiclass_squared", scale=scale) for scale in (False, True)],
    ok.NORMA("hinge", ok.AdditiveMatern()),
    *[algorithm(loss) for algorithm in CONSTRAINED for loss in ("hinge", "multiclass_hinge", "insensitive")],
    ok.Projection(radius=3.0),
    # Scaling classifiers are not tagged as poor scorers: scikit-learn asks them for good ones.
    *[algorithm(loss, scale=True) for algorithm in FREE for loss in ("hinge", "logistic", "multiclass_hinge")],
    *[algorithm(loss, scale=True) for algorithm in CONSTRAINED for loss in ("hinge", "multiclass_hinge")],
    *[algorithm(scale=True) for algorithm in (ok.Perceptron, ok.ALMA, ok.ROMMA, ok.VotedPerceptron, ok.LASVM, ok.Ballseptron)],
    ok.RunningScaler(),
    ok.RunningEncoder(),
    ok.KernelHebbian(),
    ok.SILK("hinge", scale=True, encode=True),
    ok.Perceptron(),
    ok.ALMA(),
    ok.ROMMA(),
    ok.VotedPerceptron(),
    ok.LASVM(),
    ok.Ballseptron(),
    ok.ROMMA(aggressive=True),
    ok.SVMD("squared", offset=True),
    ok.Adatron(),
    *[ok.Smoother(loss) for loss in (None, "squared", ok.NuNovelty(0.1))],
    ok.Smoother("multiclass_squared", scale=True),
    *[ok.SelfTuned(loss, window=100, budget=20) for loss in (None, "multiclass_squared")],
    ok.Stacking([ok.KRLS(budget=20, scale=True), ok.Smoother()]),
    ok.Hedge([ok.KRLS("multiclass_squared", budget=20, scale=True), ok.Smoother("multiclass_squared", scale=True)]),
    ok.OnlineKernelClassifier("low"),
    ok.OnlineKernelRegressor("low"),
    ok.OnlineKernelDetector(0.1, "low"),
]


def with_marks(models):
    """The first model of each kind (class, task, scaled or not) is checked every day, the others when there is time."""
    seen = set()
    for model in models:
        kind = type(model), getattr(model, "_estimator_type", None), bool(getattr(model, "scale", False))
        yield pytest.param(model, marks=[pytest.mark.slow] if kind in seen else [], id=repr(model))
        seen.add(kind)


@pytest.mark.filterwarnings("ignore")  # the models are no subclasses of scikit-learn's base class
@pytest.mark.parametrize("model", list(with_marks(MODELS)))
def test_estimator_checks(model):
    @each("check", [check for _, check in estimator_checks_generator(model)], ids=lambda check: getattr(check, "func", check).__name__)
    def passes(check):
        check(clone(model))

    passes()


@pytest.fixture(scope="module")
def moons():
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, np.pi, 300)
    upper = rng.random(300) < 0.5
    X = np.column_stack([np.where(upper, np.cos(angle), 1 - np.cos(angle)),
                         np.where(upper, np.sin(angle), 0.5 - np.sin(angle))])
    return X + 0.15 * rng.normal(size=X.shape), np.where(upper, "up", "down")


def test_pipeline_and_search_over_the_kernels_width(moons):
    pipeline = make_pipeline(StandardScaler(), ok.SILK("hinge", ok.Gaussian(), budget=200))
    search = GridSearchCV(pipeline, {"silk__kernel__width": [0.01, 0.5, 100.0]}, cv=3).fit(*moons)
    assert search.best_params_ == {"silk__kernel__width": 0.5}
    assert search.best_score_ > 0.9
    assert cross_val_score(search.best_estimator_, *moons, cv=3).mean() > 0.9


def test_search_in_other_processes(moons):
    search = GridSearchCV(ok.NORMA(step=0.5), {"kernel": [ok.Gaussian(0.5), ok.Linear()]}, cv=2, n_jobs=2).fit(*moons)
    assert search.best_params_["kernel"].get_params() == {"width": 0.5}


def test_calibration_turns_margins_into_probabilities(moons):
    X, y = moons
    model = CalibratedClassifierCV(ok.SILK("hinge", ok.Gaussian(0.5)), cv=3).fit(X, y)
    probabilities = model.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    assert np.mean(model.predict(X) == y) > 0.9


def test_several_targets_through_sklearn():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 2))
    Y = np.column_stack([X[:, 0], X[:, 0] * X[:, 1]])
    model = MultiOutputRegressor(ok.ILK("squared", ok.Gaussian(1.0), regularization=1e-4)).fit(X, Y)
    assert model.predict(X).shape == Y.shape
    assert model.score(X, Y) > 0.5


def test_weights_of_classes_through_sample_weight(moons):
    X, y = moons
    weights = np.where(y == "up", 10.0, 0.1)
    plain = ok.NORMA("hinge", ok.Gaussian(2.0), step=0.1).partial_fit(X, y)
    tilted = ok.NORMA("hinge", ok.Gaussian(2.0), step=0.1).partial_fit(X, y, sample_weight=weights)
    assert np.mean(tilted.predict(X) == "up") > np.mean(plain.predict(X) == "up") + 0.1


@each("algorithm", [ok.NORMA, ok.ILK, ok.SILK, ok.SVMD, ok.PassiveAggressive])
def test_class_weights_are_sample_weights(algorithm, moons):
    X, y = moons
    given = {"step": 1.0, "regularization": 0.01} if algorithm in (ok.ILK, ok.SILK) else {}  # `fit` has others
    weights = {"up": 3.0, "down": 0.5}
    model = algorithm("hinge", ok.Gaussian(1.0), class_weight=weights, **given).partial_fit(X[:100], y[:100])
    for x, label in zip(X[100:], y[100:]):
        model.learn_one(x, label)
    sample_weight = np.array([weights[label] for label in y])
    expected = algorithm("hinge", ok.Gaussian(1.0), **given).partial_fit(X, y, sample_weight=sample_weight)
    np.testing.assert_allclose(model.decision_function(X), expected.decision_function(X), atol=1e-12)
    whole = algorithm("hinge", ok.Gaussian(1.0), class_weight=weights, **given).fit(X, y)
    np.testing.assert_allclose(whole.decision_function(X), expected.decision_function(X), atol=1e-12)


def test_balanced_classes_have_equal_totals():
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(90, 2)), np.array(["a"] * 60 + ["b"] * 20 + ["c"] * 10)
    sample_weight = np.array([0.5] * 60 + [1.5] * 20 + [3.0] * 10)
    balanced = ok.NORMA("multiclass_hinge", class_weight="balanced").fit(X, y)
    expected = ok.NORMA("multiclass_hinge").partial_fit(X, y, sample_weight=sample_weight)
    np.testing.assert_allclose(balanced.decision_function(X), expected.decision_function(X), atol=1e-12)


def test_class_weights_that_make_no_sense_are_refused(moons):
    X, y = moons
    with pytest.raises(ValueError, match="balanced"):
        ok.NORMA(class_weight="balanced").partial_fit(X, y)
    with pytest.raises(ValueError, match="needs a loss of classes"):
        ok.NORMA("squared", class_weight={1: 2.0}).fit(X, X[:, 0])


def test_weights_of_unknown_classes_are_refused_once_all_are_known(moons):
    X, y = moons
    for model in (ok.NORMA(class_weight={"typo": 2.0}), ok.NORMA("multiclass_hinge", class_weight={"typo": 2.0})):
        with pytest.raises(ValueError, match="whose keys are among .*'up'"):
            model.fit(X, y)
    with pytest.raises(ValueError, match="whose keys are among"):
        ok.NORMA("multiclass_hinge", class_weight={"typo": 2.0}).partial_fit(X, y, classes=["up", "down"])
    ok.NORMA("multiclass_hinge", class_weight={"later": 2.0}).partial_fit(X, y)
    ok.NORMA(class_weight={0: 2.0}).partial_fit([[1.0]], [1]).partial_fit([[2.0]], [0])


def test_fit_predict_of_detectors(moons):
    X, _ = moons
    detector = ok.NORMA(ok.NuNovelty(0.1), step=0.1)
    assert (clone(detector).fit_predict(X) == clone(detector).fit(X).predict(X)).all()
    assert not hasattr(ok.NORMA(), "fit_predict")


def test_untuned_classifiers_do_well_on_easy_data_nevertheless():
    """Those that do not scale are tagged as poor scorers, so scikit-learn's checks do not ask: this one does."""
    rng = np.random.default_rng(5)
    y = rng.integers(0, 3, 300)
    X = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 3.0]])[y] + 0.5 * rng.normal(size=(300, 2))
    for model in filter(is_classifier, MODELS):
        seen = y < (3 if model._current_loss().task == "multiclass" else 2)
        assert clone(model).fit(X[seen], y[seen]).score(X[seen], y[seen]) > 0.9, model


def test_tasks_are_known():
    assert is_classifier(ok.NORMA("hinge")) and is_classifier(ok.ALMA())
    assert is_regressor(ok.SILK("huber"))
    assert is_outlier_detector(ok.SVMD("nu_novelty"))


def test_errors_and_warnings_are_sklearns(moons):
    X, y = moons
    with pytest.raises(NotFittedError):
        ok.NORMA().predict(X)
    with pytest.warns(DataConversionWarning):
        ok.NORMA("squared").fit(X, X[:, :1])


@each("column", [["a", "b", "c"], [1.0, None, 2.0], ["2026-01-01"] * 3], ids=["words", "missing", "dates"])
def test_a_frame_with_a_column_that_is_no_number(column):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0], "odd one": pd.Series(column, dtype=object)})
    with pytest.raises(TypeError, match="column 'odd one', instead; (encode|fill in)"):
        ok.NORMA("squared").fit(frame, [1.0, 2.0, 3.0])


def test_classes_are_sorted_after_fit_and_columns_follow():
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(60, 2)), np.array(["c", "a", "b"])[np.arange(60) % 3]
    fitted = ok.NORMA("multiclass_hinge", "linear", offset=True).fit(X, y)
    grown = ok.NORMA("multiclass_hinge", "linear", offset=True).partial_fit(X, y)
    assert fitted.classes_.tolist() == ["a", "b", "c"] and grown.classes_.tolist() == ["c", "a", "b"]
    order = [1, 2, 0]
    np.testing.assert_array_equal(fitted.decision_function(X), grown.decision_function(X)[:, order])
    np.testing.assert_array_equal(fitted.coef_, grown.coef_[order])
    np.testing.assert_array_equal(fitted.intercept_, grown.intercept_[order])
    np.testing.assert_array_equal(fitted.predict(X), grown.predict(X))
    fitted.partial_fit(X[:1], ["aa"])
    assert fitted.classes_.tolist() == ["a", "b", "c", "aa"]


def test_importing_does_not_import_sklearn():
    code = "import sys, onlinekernels; print('sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
