"""Inside scikit-learn: its own estimator checks, pipelines, searches, calibration, data frames."""

import numpy as np
import pytest
from cases import each

sklearn = pytest.importorskip("sklearn", minversion="1.6")

from sklearn.base import clone  # noqa: E402
from sklearn.exceptions import DataConversionWarning, NotFittedError  # noqa: E402
from sklearn.utils.estimator_checks import estimator_checks_generator  # noqa: E402

import onlinekernels as ok  # noqa: E402

FREE, CONSTRAINED = (ok.NORMA, ok.ILK, ok.SILK, ok.SVMD), (ok.PassiveAggressive, ok.Projection)
CLASSICS = (ok.Perceptron, ok.ALMA, ok.ROMMA, ok.VotedPerceptron, ok.LASVM, ok.Ballseptron)
MODELS = [
    *[algorithm(loss) for algorithm in FREE for loss in ("hinge", "logistic", "multiclass_hinge", "squared",
                                                         "multiclass_squared")],
    # a fixed margin promises alerts of narrow kernels only
    *[algorithm("novelty", ok.Gaussian()) for algorithm in FREE],
    *[algorithm("nunovelty", scale=scale) for algorithm in FREE for scale in (False, True)],
    *[algorithm(ok.NuNovelty(nu=0.2, margin_step=None), step=0.02) for algorithm in FREE],
    *[algorithm("squared", scale=True, scale_target=True) for algorithm in FREE],
    *[algorithm("novelty", ok.Gaussian(), budget=20) for algorithm in CONSTRAINED],
    *[algorithm(loss) for algorithm in CONSTRAINED for loss in ("hinge", "multiclass_hinge", "insensitive")],
    # Scaling classifiers are not tagged as poor scorers: scikit-learn asks them for good ones.
    *[algorithm(loss, scale=True) for algorithm in FREE for loss in ("hinge", "logistic", "multiclass_hinge")],
    *[algorithm("multiclass_squared", scale=True) for algorithm in (ok.SILK, ok.SVMD)],
    *[algorithm(loss, scale=True) for algorithm in CONSTRAINED for loss in ("hinge", "multiclass_hinge")],
    *[algorithm(scale=scale) for algorithm in CLASSICS for scale in (False, True)],
    ok.NORMA("multiclass_logistic", offset=True), ok.SILK("quantile"), ok.SVMD("huber", exact_norms=True),
    ok.ILK("squared", "linear"), ok.NORMA("hinge", ok.AdditiveMatern()), ok.Projection(radius=3.0),
    ok.ROMMA(aggressive=True), ok.SVMD("squared", offset=True), ok.SILK("hinge", scale=True, encode=True),
    *[ok.KRLS("squared", kernel) for kernel in (None, "linear")],
    ok.KRLS("squared", noise="auto", memory=0.999, scale=True, scale_target=True),
    *[ok.KRLS("multiclass_squared", scale=scale) for scale in (False, True)],
    ok.RunningScaler(), ok.RunningEncoder(), ok.KernelHebbian(), ok.Adatron(),
    *[ok.Smoother(loss) for loss in (None, "squared", ok.NuNovelty(0.1))],
    ok.Smoother("multiclass_squared", scale=True),
    *[ok.SelfTuned(loss, window=100, budget=20) for loss in (None, "multiclass_squared")],
    ok.Stacking([ok.KRLS(budget=20, scale=True), ok.Smoother()]),
    ok.Hedge([ok.KRLS("multiclass_squared", budget=20, scale=True), ok.Smoother("multiclass_squared", scale=True)]),
    ok.OnlineKernelClassifier("low"), ok.OnlineKernelRegressor("low"), ok.OnlineKernelDetector(0.1, "low"),
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
    @each("check", [check for _, check in estimator_checks_generator(model)],
          ids=lambda check: getattr(check, "func", check).__name__)
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


def test_errors_and_warnings_are_sklearns(moons):
    X, y = moons
    with pytest.raises(NotFittedError):
        ok.NORMA().predict(X)
    with pytest.warns(DataConversionWarning):
        ok.NORMA("squared").fit(X, X[:, :1])
