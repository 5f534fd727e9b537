"""The interface: what a user of scikit-learn or river expects to hold of every model."""
import copy
import functools
import gc
import inspect
import pickle
import subprocess
import sys
import textwrap
import threading
import weakref

import numpy as np
import pytest

import onlinekernels as ok
from onlinekernels import *  # noqa: F401, F403  (names for eval)

RNG = np.random.default_rng(3)
X = RNG.normal(size=(40, 3))
LABELS = np.where(X[:, 0] * X[:, 1] > 0, 1, -1)
TARGETS = np.sin(X[:, 0]) + X[:, 1]
NEW = RNG.normal(size=(15, 3))
GRAM = X @ X.T
BINARY = ["hinge", "nuhinge", "logistic"]
REGRESSION = ["squared", "absolute", "insensitive", "nuinsensitive", "squaredinsensitive", "huber", "nuhuber"]
NOVELTY = ["novelty", "nunovelty"]


def overlap(a, b):
    return float(len(set(a) & set(b)))


def dot(x, z):
    return float(np.dot(x, z))


def targets(loss):
    return LABELS if loss in BINARY else None if loss in NOVELTY else TARGETS


def same_state(a, b):
    """Two models have learned the same, bit for bit."""
    first, second = a._state.engine.state(), b._state.engine.state()
    assert first.keys() == second.keys()
    for name in first:
        assert np.asarray(first[name]).dtype == np.asarray(second[name]).dtype
        assert np.array_equal(first[name], second[name]), name


def part(y, rows):
    return None if y is None else y[rows]


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
    "perceptron": lambda: ok.Perceptron(ok.Gaussian(1.2), offset=True),
}


def y_of(model):
    return targets(getattr(model, "loss") if isinstance(model.loss, str) else "hinge")


@pytest.fixture(params=MODELS)
def model(request):
    return MODELS[request.param]()


@pytest.fixture
def fitted(model):
    return model.partial_fit(X, y_of(model))


# ---- Parameters -------------------------------------------------------------------------------------


class TestParameters:
    def test_get_params_names_nested_parameters(self):
        kernel = ok.Gaussian(2.0) + 0.5 * ok.Linear()
        params = ok.NORMA(ok.Hinge(0.7), kernel, step=ok.Decaying(0.1, 50), budget=ok.Recent(9)).get_params()
        assert params["loss__margin"] == 0.7
        assert params["kernel"] is kernel
        assert params["kernel__left__width"] == 2.0
        assert params["kernel__right__left__value"] == 0.5
        assert (params["step__rate"], params["step__delay"], params["budget__size"]) == (0.1, 50, 9)

    def test_get_params_without_deep_names_the_constructors_arguments(self, model):
        names = [p for p in inspect.signature(type(model).__init__).parameters if p != "self"]
        assert list(model.get_params(deep=False)) == names

    def test_set_params_reaches_nested_parameters_and_returns_the_model(self):
        model = ok.NORMA(ok.NuHinge(), ok.Gaussian() * ok.Laplacian())
        assert model.set_params(loss__nu=0.3, kernel__left__width=4.0, kernel__right__rate=2.0, step=0.5) is model
        assert (model.loss.nu, model.kernel.left.width, model.kernel.right.rate, model.step) == (0.3, 4.0, 2.0, 0.5)

    def test_set_params_takes_a_new_kernel_and_its_parameter_together(self):
        model = ok.NORMA(kernel=ok.Gaussian()).set_params(kernel__rate=3.0, kernel=ok.Laplacian())
        assert repr(model.kernel) == "Laplacian(rate=3.0)"

    def test_set_params_of_get_params_changes_nothing(self, model):
        before = repr(model)
        assert repr(model.set_params(**model.get_params())) == before

    def test_a_model_made_from_get_params_learns_the_same(self, model):
        twin = type(model)(**model.get_params(deep=False))
        assert repr(twin) == repr(model)
        for name, value in model.get_params(deep=False).items():
            assert getattr(twin, name) is value
        first, second = (m.partial_fit(X, y_of(model)) for m in (model, twin))
        assert (scores(first, NEW) == scores(second, NEW)).all()
        assert pickle.dumps(first) == pickle.dumps(second)

    def test_a_twin_of_a_fitted_model_is_not_fitted(self, fitted):
        twin = type(fitted)(**fitted.get_params(deep=False))
        assert not twin.__sklearn_is_fitted__() and fitted.__sklearn_is_fitted__()
        with pytest.raises(AttributeError):
            twin.t_

    def test_constructors_store_their_arguments_untouched(self):
        for cls in (ok.NORMA, ok.Perceptron, ok.Gaussian, ok.Precomputed, ok.Hinge, ok.NuHuber, ok.Decaying, ok.Sublinear):
            names = [p for p in inspect.signature(cls.__init__).parameters if p != "self"]
            values = {name: object() for name in names}
            made = cls(**values)
            assert all(getattr(made, name) is values[name] for name in names)

    def test_defaults_are_never_mutable(self):
        for name in ok.__all__:
            thing = getattr(ok, name)
            if isinstance(thing, type):
                for parameter in inspect.signature(thing.__init__).parameters.values():
                    assert parameter.default is parameter.empty or isinstance(
                        parameter.default, (type(None), bool, int, float, str))

    def test_learning_does_not_touch_the_parameters(self, model):
        params = model.get_params(deep=False)
        before = pickle.dumps(type(model)(**params)) if "callable" not in repr(params) else None
        model.partial_fit(X, y_of(model))
        assert all(model.get_params(deep=False)[name] is value for name, value in params.items())
        assert pickle.dumps(type(model)(**params)) == before


class BareLoss(ok.Loss):
    def derivative(self, score, y):
        return score - y


class BareKernel(ok.Kernel):
    def pair(self, x, z):
        return dot(x, z)


@pytest.mark.parametrize("params", [{"loss": BareLoss()}, {"loss": "squared", "kernel": BareKernel()}], ids=["loss", "kernel"])
class TestNounsWithoutAnInit:
    def test_repr_and_get_params_work(self, params):
        model = ok.NORMA(**params)
        assert "Bare" in repr(model)
        assert set(model.get_params()) >= set(params)

    def test_the_step_can_be_changed(self, params):
        model = ok.NORMA(**params).partial_fit(X, TARGETS)
        model.set_params(step=0.01).partial_fit(X, TARGETS)
        assert model.t_ == 80

    def test_it_can_be_a_start(self, params):
        start = ok.NORMA(**params).partial_fit(X, TARGETS)
        model = ok.NORMA(**params).partial_fit(X, TARGETS, initial=start)
        assert model.t_ == 40

    def test_missing_attributes_are_attribute_errors(self, params):
        model = ok.NORMA(**params).partial_fit(X, TARGETS)
        with pytest.raises(AttributeError, match="margin"):
            model.margin_


class TestRepr:
    @pytest.mark.parametrize("value", [
        ok.NORMA(), ok.Perceptron(), ok.NORMA("squared", "linear", step=0.5, offset=True, epochs=3),
        ok.NORMA(ok.NuHinge(0.2), ok.Gaussian(2.0) + 0.1 * ok.Linear() + ok.Constant(), budget=ok.Window(5)),
        ok.NORMA(step=ok.Decaying(0.2, 9), regularization=0, budget=5, average=True),
        ok.Perceptron(ok.Normalized(ok.Polynomial(2, bias=0.0)), budget=ok.Smallest(3)),
        ok.Linear(), ok.Gaussian(), ok.Gaussian(0.1 + 0.2), ok.Laplacian(2.0), ok.Noise(0.5), ok.Constant(3.0),
        ok.Gaussian(2.0) * (ok.Linear() + ok.Constant(0.5)), (ok.Gaussian() + ok.Linear()) * (ok.Gaussian() + 1),
        0.5 * (ok.Gaussian() + ok.Linear()), ok.Gaussian() * 2.0, 2.0 * ok.Constant(3.0), ok.Normalized("linear"),
      
        ok.Gaussian() + (ok.Linear() + ok.Constant()), ok.Gaussian() * (ok.Laplacian() * ok.Linear()),
        2.0 * (3.0 * ok.Gaussian()), 2.0 + (3.0 * ok.Gaussian()), ok.Constant(2.0) + ok.Constant(3.0),
        ok.Fixed(0.5), ok.InverseSqrt(), ok.Decaying(delay=3), ok.Recent(5), ok.Window(steps=7), ok.Sublinear(0.7, 4),
        ok.Unlimited(), ok.Hinge(0.0), ok.NuHuber(0.3, 0.2), ok.SquaredInsensitive(), ok.Logistic(),
        ok.NORMA("bogus", step=-1),
    ], ids=repr)
    def test_it_evaluates_to_an_equal_object(self, value):
        again = eval(repr(value))
        assert type(again) is type(value)
        assert repr(again) == repr(value)
        flat = lambda thing: {k: v for k, v in thing.get_params().items() if not hasattr(v, "get_params")}
        assert flat(again) == flat(value)

    def test_it_shows_what_differs_from_the_defaults_only(self):
        assert repr(ok.NORMA(step=0.1)) == "NORMA()"
        assert repr(ok.NORMA("hinge", budget=5)) == "NORMA(loss='hinge', budget=5)"

    def test_it_works_with_any_kernel(self):
        gram = np.eye(100)
        for kernel in (overlap, lambda a, b: 1.0, ok.Precomputed(gram), ok.Gaussian() + overlap, ok.Gaussian, 5):
            assert "kernel=" in repr(ok.NORMA(kernel=kernel))

    def test_numbers_of_numpy_work_like_numbers(self):
        points = X[:5]
        for number in (np.float64(0.5), np.float32(0.5), 0.5):
            for kernel in (number * ok.Gaussian(), ok.Gaussian() * number):
                assert np.allclose(kernel(points), 0.5 * ok.Gaussian()(points))
            for kernel in (number + ok.Gaussian(), ok.Gaussian() + number):
                assert np.allclose(kernel(points), 0.5 + ok.Gaussian()(points))


# ---- What exists ------------------------------------------------------------------------------------


class TestWhatExists:
    ALWAYS = {"fit", "partial_fit", "progressive", "learn_one", "predict", "predict_one", "get_params", "set_params", "save"}
    SOMETIMES = {"decision_function", "predict_proba", "score", "score_samples"}
    EXPECTED = {
        **dict.fromkeys(["hinge", "nuhinge"], {"decision_function", "score"}),
        "logistic": {"decision_function", "score", "predict_proba"},
        **dict.fromkeys(REGRESSION, {"score"}),
        **dict.fromkeys(NOVELTY, {"decision_function", "score_samples"}),
    }

    @pytest.mark.parametrize("loss", EXPECTED)
    def test_methods_that_do_not_apply_do_not_exist(self, loss):
        model = ok.NORMA(loss)
        for _ in range(2):
            assert {name for name in self.ALWAYS | self.SOMETIMES if hasattr(model, name)} == self.ALWAYS | self.EXPECTED[loss]
            for name in self.SOMETIMES - self.EXPECTED[loss]:
                with pytest.raises(AttributeError, match=f"NORMA.*{name}"):
                    getattr(model, name)
            model.partial_fit(X, targets(loss))

    def test_they_follow_the_loss_until_the_first_fit_and_the_fitted_loss_after(self):
        model = ok.NORMA("hinge")
        assert hasattr(model, "decision_function")
        assert not hasattr(model.set_params(loss="squared"), "decision_function")
        model.partial_fit(X, TARGETS).set_params(loss="hinge")
        assert not hasattr(model, "decision_function")

    @pytest.mark.parametrize("loss", ["bogus", 5, ok.Hinge(-1)], ids=repr)
    def test_asking_never_raises(self, loss):
        model = ok.NORMA(loss)
        for name in self.SOMETIMES | {"_estimator_type", "classes_"}:
            assert not hasattr(model, name)

    @pytest.mark.parametrize("loss, kind", [("hinge", "classifier"), ("huber", "regressor"), ("novelty", "outlier_detector")])
    def test_the_task_follows_from_the_loss(self, loss, kind):
        assert ok.NORMA(loss)._estimator_type == kind
        assert ok.NORMA(loss).partial_fit(X, targets(loss))._estimator_type == kind

    def test_scikit_learn_can_ask_for_tags(self):
        assert callable(ok.NORMA().__sklearn_tags__)

    @pytest.mark.parametrize("name", ["support_vectors_", "dual_coef_", "intercept_", "n_terms_", "t_", "norm_", "step_",
                                      "classes_", "n_features_in_", "coef_", "margin_", "width_", "offset_"])
    def test_fitted_attributes_do_not_exist_before_fitting(self, model, name):
        assert not hasattr(model, name)
        with pytest.raises(AttributeError, match="not fitted"):
            getattr(model, name)

    @pytest.mark.parametrize("loss", EXPECTED)
    def test_fitted_attributes_that_do_not_apply_do_not_exist(self, loss):
        model = ok.NORMA(loss).partial_fit(X, targets(loss))
        existing = {name for name in ("classes_", "margin_", "width_", "offset_", "coef_") if hasattr(model, name)}
        expected = {"classes_"} if loss in BINARY else {"offset_"} if loss in NOVELTY else set()
        expected |= {"margin_"} if "hinge" in loss or loss in NOVELTY else set()
        expected |= {"width_"} if "insensitive" in loss or "huber" in loss else set()
        assert existing == expected

    def test_weights_have_no_terms_and_objects_no_features(self):
        weights = ok.NORMA("squared", "linear").partial_fit(X, TARGETS)
        for name in ("support_vectors_", "dual_coef_"):
            with pytest.raises(AttributeError, match="coef_"):
                getattr(weights, name)
        assert weights.n_terms_ == 0
        objects = ok.NORMA("squared", overlap).partial_fit(["ab", "b"], [1.0, 2.0])
        assert not hasattr(objects, "n_features_in_") and not hasattr(objects, "coef_")


class TestFittedAttributes:
    def test_shapes_and_types(self, fitted):
        n = fitted.n_terms_
        assert type(n) is int and type(fitted.t_) is int and fitted.t_ == 40
        assert fitted.intercept_.shape == (1,) and fitted.intercept_.dtype == np.float64
        assert type(fitted.step_) is float and fitted.step_ > 0
        assert type(fitted.norm_) is float and fitted.norm_ > 0
        if not hasattr(fitted, "dual_coef_"):
            assert fitted.coef_.shape == (1, 3) and fitted.coef_.dtype == np.float64
            return
        assert fitted.dual_coef_.shape == (1, n) and fitted.dual_coef_.dtype == np.float64
        assert len(fitted.support_vectors_) == n
        if isinstance(fitted.support_vectors_, np.ndarray):
            assert fitted.support_vectors_.shape == (n, 3) and fitted.support_vectors_.dtype == np.float64
            assert type(fitted.n_features_in_) is int and fitted.n_features_in_ == 3

    def test_they_are_the_function(self, fitted):
        if hasattr(fitted, "coef_"):
            values = NEW @ fitted.coef_[0]
        else:
            values = fitted._state.kernel(NEW, fitted.support_vectors_) @ fitted.dual_coef_[0]
        assert np.allclose(values + fitted.intercept_, scores(fitted, NEW), rtol=1e-10, atol=1e-12)

    def test_terms_are_oldest_first(self):
        for budget in (None, 7, ok.Window(9), ok.Smallest(5)):
            model = ok.NORMA("squared", ok.Linear() + ok.Constant(), budget=budget, step=1e-3)
            points = np.arange(30.0)[:, None]
            model.partial_fit(points, np.ones(30))
            assert (np.diff(model.support_vectors_[:, 0]) > 0).all()

    def test_norm_is_that_of_the_hilbert_space(self):
        model = ok.NORMA("squared", ok.Gaussian(), budget=9).partial_fit(X, TARGETS)
        alpha = model.dual_coef_[0]
        assert np.isclose(model.norm_ ** 2, alpha @ ok.Gaussian()(model.support_vectors_) @ alpha, rtol=1e-10)
        weights = ok.NORMA("squared", 4.0 * ok.Linear()).partial_fit(X, TARGETS)
        terms = ok.NORMA("squared", 4.0 * ok.Linear(), budget=1000).partial_fit(X, TARGETS)
        assert np.isclose(weights.norm_, terms.norm_, rtol=1e-10)
        assert np.allclose(weights.coef_, terms.coef_, rtol=1e-10)

    def test_step_is_that_of_the_latest_example(self):
        model = ok.NORMA(step=ok.InverseSqrt(0.5)).partial_fit(X[:4], LABELS[:4])
        assert model.step_ == 0.25
        assert ok.Perceptron().partial_fit(X, LABELS).step_ == 1.0

    def test_the_adapted_scalar_moves_and_the_others_stay(self):
        assert ok.NORMA(ok.Hinge(0.7)).partial_fit(X, LABELS).margin_ == 0.7
        assert ok.NORMA(ok.NuHinge(0.3, 0.7)).partial_fit(X, LABELS).margin_ != 0.7
        assert ok.NORMA(ok.Huber(0.7)).partial_fit(X, TARGETS).width_ == 0.7
        assert ok.NORMA(ok.NuHuber(0.3, 0.7)).partial_fit(X, TARGETS).width_ != 0.7
        novelty = ok.NORMA(ok.NuNovelty(0.3, 0.7)).partial_fit(X)
        assert novelty.margin_ == novelty.offset_ != 0.7

    @pytest.mark.parametrize("name", ["dual_coef_", "support_vectors_", "intercept_", "coef_", "classes_"])
    def test_changing_them_does_not_change_the_model(self, fitted, name):
        if not hasattr(fitted, name):
            return
        before, value = pickle.dumps(fitted), getattr(fitted, name)
        try:
            if isinstance(value, list):
                value[0] = None
                getattr(fitted, name)[0][...] = 99
            else:
                value[...] = value.ravel()[0] + 7 if value.dtype.kind == "f" else value.ravel()[0]
        except ValueError:  # read-only is fine
            pass
        assert pickle.dumps(fitted) == before


# ---- Labels -----------------------------------------------------------------------------------------


class TestLabels:
    PAIRS = {
        "minus_plus": (-1, 1), "zero_one": (0, 1), "booleans": (False, True), "strings": ("ham", "spam"),
        "floats": (0.25, 0.5), "large": (-(2**40), 2**40), "float_signs": (-1.0, 1.0), "float_zero_one": (0.0, 1.0),
        "uint8": (np.uint8(0), np.uint8(1)), "one_two": (1, 2), "minus_zero": (-1, 0), "empty_string": ("", "a"),
        "bytes": (b"a", b"b"), "dates": (np.datetime64("2020-01-01"), np.datetime64("2021-01-01")),
    }

    @pytest.mark.parametrize("pair", [*PAIRS.values()], ids=PAIRS)
    def test_any_two_values_will_do(self, pair):
        y = np.where(LABELS > 0, *pair[::-1])
        model = ok.NORMA(step=0.5).partial_fit(X, y)
        plain = ok.NORMA(step=0.5).partial_fit(X, LABELS)
        assert model.classes_.tolist() == np.array(pair).tolist() and model.classes_.dtype == y.dtype
        assert (model.decision_function(NEW) == plain.decision_function(NEW)).all()
        predictions = model.predict(NEW)
        assert predictions.dtype == y.dtype and predictions.shape == (15,)
        assert (predictions == np.where(plain.predict(NEW) > 0, *pair[::-1])).all()
        assert model.score(X, y) == plain.score(X, LABELS)

    @pytest.mark.parametrize("pair", [*PAIRS.values()], ids=PAIRS)
    def test_learn_one_takes_the_labels_that_partial_fit_takes(self, pair):
        y = np.where(LABELS > 0, *pair[::-1])
        chunk = ok.NORMA(step=0.5).partial_fit(X, y)
        rows = ok.NORMA(step=0.5).partial_fit(X[:8], y[:8])
        for x, label in zip(X[8:], y[8:]):
            rows.learn_one(x, label)
        assert np.allclose(rows.decision_function(NEW), chunk.decision_function(NEW), rtol=1e-12, atol=1e-13)
        assert rows.predict_one(NEW[0]) == rows.predict(NEW[:1])[0]

    def test_labels_in_an_object_array(self):
        y = np.where(LABELS > 0, "spam", "ham").astype(object)
        model = ok.NORMA(step=0.5).partial_fit(X, y)
        assert model.classes_.tolist() == ["ham", "spam"]
        assert model.score(X, y) == ok.NORMA(step=0.5).partial_fit(X, LABELS).score(X, LABELS)
        assert model.predict_one(X[0]) == model.predict(X[:1])[0]
        assert model.learn_one(X[0], "ham").t_ == 41

    @pytest.mark.parametrize("y, kind", [([-1, 1], int), ([True, False], bool), (["a", "b"], str), ([0.5, 1.5], float)])
    def test_predict_one_gives_a_plain_python_value(self, y, kind):
        model = ok.NORMA().partial_fit(X[:2], y)
        assert type(model.predict_one(X[0])) is kind

    def test_lists_tuples_and_arrays_are_the_same(self):
        y = ["b", "a"] * 20
        results = [pickle.dumps(ok.NORMA().partial_fit(X, made)) for made in (y, tuple(y), np.array(y))]
        assert results[0] == results[1] == results[2]

    def test_a_score_of_zero_is_the_first_class(self):
        model = ok.NORMA().partial_fit(X[:2], ["b", "a"], sample_weight=[0, 0])
        assert model.decision_function(NEW).tolist() == [0.0] * 15
        assert set(model.predict(NEW)) == {"a"}

    @pytest.mark.parametrize("classes", [["spam", "ham"], ("ham", "spam"), np.array(["ham", "spam"])], ids=type)
    def test_classes_names_labels_that_the_first_call_does_not_show(self, classes):
        for method in ("fit", "partial_fit", "progressive"):
            model = ok.NORMA()
            getattr(model, method)(X[:2], ["spam", "spam"], classes=classes)
            assert model.classes_.tolist() == ["ham", "spam"]
            model.partial_fit(X[2:4], ["ham", "spam"])
            model.partial_fit(X[2:4], ["ham", "spam"], classes=classes)  # repeating it is fine
            assert model.t_ == 6

    def test_classes_hold_even_for_familiar_labels(self):
        model = ok.NORMA().partial_fit(X[:2], [1, 1], classes=[1, 2])
        assert model.classes_.tolist() == [1, 2]
        with pytest.raises(ValueError, match="unknown label"):
            model.partial_fit(X[:2], [-1, -1])

    FIRST = {"minus": ([-1, -1], [-1, 1]), "zero": ([0, 0], [0, 1]), "true": ([True], [False, True]),
             "false": ([False], [False, True]), "minus_float": ([-1.0], [-1.0, 1.0]), "zero_float": ([0.0], [0.0, 1.0]),
             "one_unsigned": (np.array([1], dtype=np.uint8), [0, 1])}

    @pytest.mark.parametrize("first, classes", [*FIRST.values()], ids=FIRST)
    def test_familiar_labels_need_no_classes(self, first, classes):
        model = ok.NORMA().partial_fit(X[:len(first)], first)
        assert model.classes_.tolist() == classes
        model.partial_fit(X[:2], np.array(classes, dtype=np.asarray(first).dtype))
        assert model.t_ == len(first) + 2

    @pytest.mark.parametrize("one", [1, 1.0], ids=repr)
    @pytest.mark.parametrize("other, foreign", [(-1, 0), (0, -1)])
    @pytest.mark.parametrize("how", ["chunk", "one_row", "learn_one", "progressive", "after_ones", "mixed"])
    def test_a_lone_one_waits_for_its_counterpart_and_then_it_is_fixed(self, how, other, foreign, one):
      
        model = ok.NORMA().partial_fit(X[:2], [one, one])
        assert model.classes_[1] == 1
        other, foreign = type(one)(other), type(one)(foreign)
        if how == "learn_one":
            model.learn_one(X[2], other)
        elif how == "progressive":
            model.progressive(X[2:4], [other, other])
        elif how == "after_ones":
            model.partial_fit(X[2:3], [one]).learn_one(X[3], one).partial_fit(X[4:6], [one, one])
            model.partial_fit(X[6:8], [other, one])
        elif how == "mixed":
            model.partial_fit(X[2:5], [one, other, one])
        else:
            model.partial_fit(X[2:3] if how == "one_row" else X[2:4], [other] if how == "one_row" else [other, other])
        assert model.classes_.tolist() == [other, 1]
        before = pickle.dumps(model)
        for call in (lambda: model.partial_fit(X[:1], [foreign]), lambda: model.partial_fit(X[:2], [foreign, foreign]),
                     lambda: model.learn_one(X[0], foreign)):
            with pytest.raises(ValueError, match="unknown label"):
                call()
        assert pickle.dumps(model) == before
        assert model.classes_.tolist() == [other, 1]

    def test_a_lone_one_does_not_take_both_counterparts_at_once(self):
        model = ok.NORMA().partial_fit(X[:1], [1])
        with pytest.raises(ValueError, match="unknown label"):
            model.partial_fit(X[:2], [0, -1])
        assert model.partial_fit(X[:1], [0]).classes_.tolist() == [0, 1]

    def test_a_lone_one_is_settled_by_classes_on_a_later_call(self):
        model = ok.NORMA().partial_fit(X[:1], [1])
        assert model.partial_fit(X[:1], [1], classes=[0, 1]).classes_.tolist() == [0, 1]

    def test_the_targets_of_ones_do_not_depend_on_the_counterpart(self):
        a = ok.NORMA().partial_fit(X[:3], [1, 1, 1]).partial_fit(X[3:5], [0, 1])
        b = ok.NORMA().partial_fit(X[:3], [1, 1, 1]).partial_fit(X[3:5], [-1, 1])
        assert (a.decision_function(NEW) == b.decision_function(NEW)).all()


def test_novelty_detectors_ignore_y_and_predict_signs():
    plain, with_y = (ok.NORMA(ok.NuNovelty(0.5, 0.1)).partial_fit(X, y) for y in (None, LABELS))
    assert pickle.dumps(plain) == pickle.dumps(with_y)
    assert set(plain.predict(np.r_[X, 100 + X])) == {-1, 1}
    assert (plain.predict(NEW) == np.where(plain.decision_function(NEW) >= 0, 1, -1)).all()
    assert np.allclose(plain.decision_function(NEW), plain.score_samples(NEW) - plain.offset_, rtol=0, atol=0)
    assert plain.predict_one(X[0]) in (-1, 1) and type(plain.predict_one(X[0])) is int
    assert plain.learn_one(X[0]).t_ == 41 and plain.learn_one(X[0], "anything").t_ == 42


def test_a_users_novelty_loss_without_a_margin_has_a_decision_function():
    class Count(ok.Loss):
        task = "novelty"

        def __init__(self):
            pass

        def derivative(self, score, y):
            return -1.0

    model = ok.NORMA(Count()).partial_fit(X)
    assert (model.decision_function(X) == model.score_samples(X)).all()
    assert (model.predict(X) == 1).all()


def test_probabilities_are_of_the_two_classes_and_never_overflow():
    model = ok.NORMA("logistic", "linear", step=1.0).partial_fit(X, LABELS)
    points = np.r_[NEW, 1e6 * NEW]
    p = model.predict_proba(points)
    assert p.shape == (30, 2) and (p >= 0).all() and np.allclose(p.sum(axis=1), 1, rtol=1e-15)
    assert np.allclose(p[:15, 1], 1 / (1 + np.exp(-model.decision_function(NEW))), rtol=1e-14)
    assert (model.classes_[p.argmax(axis=1)] == model.predict(points)).all()


def test_score_is_accuracy_or_r_squared():
    classifier = ok.NORMA(step=0.5).partial_fit(X, LABELS)
    weights = RNG.uniform(size=40)
    hits = classifier.predict(X) == LABELS
    assert np.isclose(classifier.score(X, LABELS), hits.mean())
    assert np.isclose(classifier.score(X, LABELS, sample_weight=weights), (hits * weights).sum() / weights.sum())
    regressor = ok.NORMA("squared", step=0.5).partial_fit(X, TARGETS)
    residual = ((TARGETS - regressor.predict(X)) ** 2).sum()
    assert np.isclose(regressor.score(X, TARGETS), 1 - residual / ((TARGETS - TARGETS.mean()) ** 2).sum())
    assert type(classifier.score(X, LABELS)) is float and type(regressor.score(X, TARGETS)) is float


# ---- Learning ---------------------------------------------------------------------------------------


class TestLearning:
    def test_progressive_gives_the_scores_before_each_update(self, model):
        y = y_of(model)
        twin = copy.deepcopy(model)
        expected = [0.0]
        twin.partial_fit(X[:1], part(y, slice(0, 1)), classes=None if y is not LABELS else [-1, 1])
        averages = getattr(model, "average", False)
        for i in range(1, 40):
            if averages:  # what learns is the current hypothesis, what predicts is the average
                break
            expected.append(scores(twin, X[i:i + 1])[0])
            twin.partial_fit(X[i:i + 1], part(y, slice(i, i + 1)))
        got = model.progressive(X, y)
        assert got.shape == (40,) and got.dtype == np.float64
        assert np.allclose(got[:len(expected)], expected, rtol=1e-10, atol=1e-12)
        if not averages:
            assert np.allclose(scores(model, NEW), scores(twin, NEW), rtol=1e-10, atol=1e-12)

    def test_progressive_learns_what_partial_fit_learns(self, model):
        twin = copy.deepcopy(model).partial_fit(X, y_of(model))
        model.progressive(X, y_of(model))
        assert pickle.dumps(twin) == pickle.dumps(model)

    def test_learn_one_is_partial_fit_of_one_row(self, model):
        y = y_of(model)
        twin = copy.deepcopy(model)
        for i in range(25):
            label = None if y is None else y[i]
            assert model.learn_one(X[i], label) is model
            twin.partial_fit(X[i:i + 1], part(y, slice(i, i + 1)))
            assert model.predict_one(NEW[0]) == twin.predict(NEW[:1])[0]
        assert pickle.dumps(model) == pickle.dumps(twin)

    def test_learn_one_and_predict_one_take_lists_integers_and_views(self, fitted):
        y, odd = y_of(fitted), np.arange(12)[::2][:3]
        label = None if y is None else y[0]
        if "function" not in repr(fitted):
            a, b, c = (copy.deepcopy(fitted) for _ in range(3))
            a.learn_one([0, 2, 4], label), b.learn_one(odd, label), c.learn_one(odd.astype(float), label)
            assert pickle.dumps(a) == pickle.dumps(b) == pickle.dumps(c)
        assert fitted.predict_one(odd.astype(float)) == fitted.predict(odd[None].astype(float))[0]

    def test_fit_forgets(self, model):
        y = y_of(model)
        fresh = copy.deepcopy(model).fit(X, y)
        model.partial_fit(NEW, part(y, slice(0, 15)))
        assert model.fit(X, y) is model
        assert pickle.dumps(model) == pickle.dumps(fresh)

    def test_fit_may_change_features_labels_and_precision(self):
        model = ok.NORMA().fit(X, LABELS)
        model.fit(X[:, :2].astype(np.float32), np.where(LABELS > 0, "a", "b"))
        assert model.n_features_in_ == 2 and model.classes_.tolist() == ["a", "b"]
        assert model.support_vectors_.dtype == np.float32

    def test_fit_makes_as_many_passes_as_epochs_says(self, model):
        y = y_of(model)
        twin = copy.deepcopy(model)
        model.set_params(epochs=3).fit(X, y)
        for _ in range(3):
            twin.partial_fit(X, y)
        assert model.t_ == 120
        assert (scores(model, NEW) == scores(twin, NEW)).all()

    def test_epochs_concern_fit_only(self, model):
        y = y_of(model)
        assert model.set_params(epochs=3).partial_fit(X, y).t_ == 40
        assert len(model.progressive(X, y)) == 40 and model.t_ == 80

    def test_a_weight_of_zero_is_a_step_that_only_decays(self):
        for kernel, budget in (("gaussian", None), ("linear", None), ("gaussian", 50), (dot, ok.Smallest(50))):
            model = ok.NORMA("nuhuber", kernel, step=0.5, regularization=0.2, budget=budget, offset=True).partial_fit(X, TARGETS)
            values, b, width = model.predict(NEW) - model.intercept_, model.intercept_, model.width_
            model.partial_fit(X[:3], TARGETS[:3], sample_weight=[0, 0, 0])
            assert model.t_ == 43
            assert (model.intercept_, model.width_) == (b, width)
            assert np.allclose(model.predict(NEW) - b, 0.9**3 * values, rtol=1e-12)

    def test_a_weight_multiplies_the_coefficient(self):
        for weight in (0.25, 1.0, 2.0, 1e6):
            model = ok.NORMA("hinge", step=0.5, regularization=0.0, offset=True)
            model.partial_fit(X[:1], [1], sample_weight=[weight])
            assert model.dual_coef_.tolist() == [[0.5 * weight]]
            assert model.intercept_.tolist() == [0.5 * weight]

    def test_a_weight_multiplies_the_move_of_the_adapted_scalar(self):
        moves = [ok.NORMA(ok.NuNovelty(0.25, 1.0), step=0.5).partial_fit(X[:1], sample_weight=[w]).margin_ - 1.0
                 for w in (1.0, 2.0)]
        assert moves == [-0.375, -0.75]

    def test_weights_of_one_change_nothing(self, model):
        y = y_of(model)
        twins = [copy.deepcopy(model) for _ in range(3)]
        for twin, weights in zip(twins, (None, np.ones(40), 1)):
            twin.partial_fit(X, y, sample_weight=weights)
        assert pickle.dumps(twins[0]) == pickle.dumps(twins[1]) == pickle.dumps(twins[2])

    def test_weights_belong_to_their_rows_whatever_the_chunks(self, model):
        y, weights = y_of(model), RNG.integers(0, 3, 40) * 0.5
        chunk = copy.deepcopy(model)
        a = chunk.progressive(X, y, sample_weight=weights)
        b = np.concatenate([model.progressive(X[i:i + 7], part(y, slice(i, i + 7)), sample_weight=weights[i:i + 7])
                            for i in range(0, 40, 7)])
        assert np.allclose(a, b, rtol=1e-10, atol=1e-12)
        assert np.allclose(scores(chunk, NEW), scores(model, NEW), rtol=1e-10, atol=1e-12)

    def test_fit_takes_no_weights(self, model):
        with pytest.raises(TypeError, match="sample_weight"):
            model.fit(X, y_of(model), sample_weight=np.ones(40))


class TestAverage:
    @pytest.mark.parametrize("kernel", ["gaussian", "linear", "laplacian", dot], ids=str)
    @pytest.mark.parametrize("params", [{}, {"offset": True}, {"step": 0.5, "regularization": 1.0},
                                        {"step": 1.0, "regularization": 1.0}, {"step": ok.InverseSqrt(2.0)}], ids=str)
    def test_predictions_are_the_mean_of_the_hypotheses_that_predicted(self, kernel, params):
        plain = ok.NORMA("squared", kernel, **{"step": 0.05, **params})
        average = ok.NORMA("squared", kernel, average=True, **{"step": 0.05, **params})
        hypotheses, intercepts = [np.zeros(15)], [0.0]
        for i in range(40):
            plain.learn_one(X[i], TARGETS[i])
            hypotheses.append(plain.predict(NEW))
            intercepts.append(plain.intercept_[0])
        average.partial_fit(X[:13], TARGETS[:13]).partial_fit(X[13:], TARGETS[13:])
        assert np.allclose(average.predict(NEW), np.mean(hypotheses[:-1], axis=0), rtol=1e-9, atol=1e-12)
        assert np.isclose(average.intercept_[0], np.mean(intercepts[:-1]), rtol=1e-12)

    def test_learning_itself_is_that_of_the_current_hypothesis(self):
        a, b = (ok.NORMA("squared", average=average).progressive(X, TARGETS) for average in (False, True))
        assert np.allclose(a, b, rtol=1e-12, atol=1e-14)

    def test_an_explicit_unlimited_budget_is_no_budget(self):
        model = ok.NORMA("squared", average=True, budget=ok.Unlimited()).partial_fit(X, TARGETS)
        assert np.allclose(model.predict(NEW), ok.NORMA("squared", average=True).partial_fit(X, TARGETS).predict(NEW))


# ---- initial= ---------------------------------------------------------------------------------------

BUDGETS = [None, 100, 4, ok.Window(100), ok.Window(4), ok.Smallest(100), ok.Smallest(4), ok.Sublinear(1.0, 100)]


class TestInitial:
    """f_1 is the other model's function, cut to the budget; t starts at 0."""

    STARTS = {
        "terms": lambda kernel: ok.NORMA("squared", kernel, step=0.1),
        "recent": lambda kernel: ok.NORMA("absolute", kernel, step=0.1, budget=9),
        "window": lambda kernel: ok.NORMA("squared", kernel, step=0.1, budget=ok.Window(13)),
        "smallest": lambda kernel: ok.NORMA("huber", kernel, step=0.1, budget=ok.Smallest(8)),
        "offset": lambda kernel: ok.NORMA("squared", kernel, step=0.1, offset=True),
        "average": lambda kernel: ok.NORMA("squared", kernel, step=0.1, average=True),
    }

    def kept(self, start, budget):
        """f of `start` at X and NEW when only the terms that the budget keeps are counted."""
        points, alpha = start.support_vectors_, start.dual_coef_[0]
        live = np.flatnonzero(alpha)
        if isinstance(budget, ok.Smallest):
            live = live[np.sort(np.argsort(np.abs(alpha[live]), kind="stable")[-budget.size:])]
        elif isinstance(budget, ok.Window):
            live = live[live >= len(alpha) - budget.steps]
        elif isinstance(budget, int):
            live = live[-budget:]
        points = [points[i] for i in live]
        return (start._state.kernel(np.r_[X, NEW], points) @ alpha[live] if len(live) else 0.0) + start.intercept_

    @pytest.mark.parametrize("budget", BUDGETS, ids=repr)
    @pytest.mark.parametrize("kernel", [ok.Gaussian(1.5), ok.Laplacian(), ok.Polynomial(2, 0.1), dot], ids=str)
    @pytest.mark.parametrize("start", STARTS)
    def test_terms_go_on(self, start, kernel, budget):
        start = self.STARTS[start](kernel).partial_fit(X, TARGETS)
        before = pickle.dumps(start)
        model = ok.NORMA("squared", kernel, budget=budget, offset=True, regularization=0.0)
        first = model.progressive(NEW[:1], [1.0], sample_weight=[0.0], initial=start)  # learns nothing
        expected = self.kept(start, budget)
        assert np.isclose(first[0], expected[40], rtol=1e-10, atol=1e-12)
        if not isinstance(budget, ok.Window) or budget.steps >= 100:
            assert np.allclose(model.predict(np.r_[X, NEW]), expected, rtol=1e-10, atol=1e-12)
        assert model.t_ == 1
        model._state.engine._check()
        model.partial_fit(X, TARGETS)
        assert pickle.dumps(start) == before

    def test_a_term_of_the_average_that_is_zero_takes_no_room(self):
        start = ok.NORMA("squared", average=True).partial_fit(X[:6], TARGETS[:6])
        size = np.count_nonzero(start.dual_coef_)
        model = ok.NORMA("squared", budget=size, regularization=0.0)
        model.partial_fit(X[:1], [1.0], sample_weight=[0.0], initial=start)
        assert np.allclose(model.predict(NEW), start.predict(NEW), rtol=1e-12)
        assert model.n_terms_ == size

    @pytest.mark.parametrize("kernel", [ok.Linear(), 0.25 * ok.Linear()], ids=repr)
    @pytest.mark.parametrize("budget", BUDGETS, ids=repr)
    @pytest.mark.parametrize("average", [False, True])
    def test_weights_go_on_as_weights_or_as_one_term(self, kernel, budget, average):
        start = ok.NORMA("squared", kernel, average=average, offset=True).partial_fit(X, TARGETS)
        model = ok.NORMA("squared", kernel, budget=budget, offset=True, regularization=0.0)
        model.partial_fit(X[:1], [1.0], sample_weight=[0.0], initial=start)
        assert np.allclose(model.predict(NEW), start.predict(NEW), rtol=1e-12)
        assert np.allclose(model.coef_, start.coef_, rtol=1e-12)
        assert model.n_terms_ == (0 if budget is None else 1)

    @pytest.mark.parametrize("budget", [5, 100, ok.Window(7), ok.Smallest(5)], ids=repr)
    def test_linear_terms_become_weights(self, budget):
        start = ok.NORMA("squared", "linear", budget=budget).partial_fit(X, TARGETS)
        model = ok.NORMA("squared", "linear", regularization=0.0, average=True)
        model.partial_fit(X[:1], [1.0], sample_weight=[0.0], initial=start)
        assert np.allclose(model.predict(NEW), start.predict(NEW), rtol=1e-12)

    def test_weights_that_are_zero_make_no_term(self):
        start = ok.NORMA("squared", "linear").partial_fit(X[:1], [0.0], sample_weight=[0.0])
        model = ok.NORMA("squared", "linear", budget=5).partial_fit(X[:1], [0.0], sample_weight=[0.0], initial=start)
        assert model.n_terms_ == 0

    def test_a_start_without_terms_is_zero(self):
        for kernel, points in (("gaussian", X), ("laplacian", X), (overlap, list("abcd"))):
            start = ok.NORMA("squared", kernel).partial_fit(points[:1], [1.0], sample_weight=[0.0])
            assert start.n_terms_ == 0
            model = ok.NORMA("squared", kernel).partial_fit(points[:3], [1.0, 2.0, 3.0], initial=start)
            plain = ok.NORMA("squared", kernel).partial_fit(points[:3], [1.0, 2.0, 3.0])
            assert (model.predict(points) == plain.predict(points)).all()

    @pytest.mark.parametrize("method", ["fit", "partial_fit", "progressive"])
    def test_it_continues_like_a_model_that_never_stopped(self, method):
        whole = ok.NORMA("squared", step=0.2).partial_fit(X, TARGETS)
        start = ok.NORMA("squared", step=0.2).partial_fit(X[:20], TARGETS[:20])
        model = ok.NORMA("squared", step=0.2)
        getattr(model, method)(X[20:], TARGETS[20:], initial=start)
        assert np.allclose(model.predict(NEW), whole.predict(NEW), rtol=1e-10)
        assert model.t_ == 20

    def test_a_model_may_start_from_itself(self):
        model = ok.NORMA("squared", step=0.2).partial_fit(X[:20], TARGETS[:20])
        whole = ok.NORMA("squared", step=0.2).partial_fit(X, TARGETS)
        model.fit(X[20:], TARGETS[20:], initial=model)
        assert np.allclose(model.predict(NEW), whole.predict(NEW), rtol=1e-10)

    def test_labels_come_along(self):
        start = ok.Perceptron().partial_fit(X, np.where(LABELS > 0, "yes", "no"))
        model = ok.NORMA("logistic").partial_fit(X[:2], ["yes", "yes"], initial=start)
        assert model.classes_.tolist() == ["no", "yes"]

    def test_precision_may_differ(self):
        for before, after in ((np.float32, np.float64), (np.float64, np.float32)):
            start = ok.NORMA("squared").partial_fit((50 + X).astype(before), TARGETS)
            model = ok.NORMA("squared", regularization=0.0)
            model.partial_fit((50 + X[:1]).astype(after), [1.0], sample_weight=[0.0], initial=start)
            assert np.allclose(model.predict(50 + NEW), start.predict(50 + NEW), rtol=1e-3, atol=1e-4)

    def test_callable_objects_are_the_same_kernel(self):
        kernel = functools.partial(lambda scale, a, b: scale * overlap(a, b), 2.0)
        start = ok.NORMA("squared", kernel, step=0.01).partial_fit(["ab", "bc"], [1.0, 2.0])
        model = ok.NORMA("squared", kernel, step=0.01).partial_fit(["abc"], [1.0], initial=start)
        assert model.n_terms_ == 3


# ---- What may be passed -----------------------------------------------------------------------------


def every_second(a):
    wide = np.empty((2 * len(a), 2 * a.shape[1]))
    wide[::2, ::2] = a
    return wide[::2, ::2]


def read_only(a):
    a = a.copy()
    a.flags.writeable = False
    return a


def unaligned(a):
    raw = np.zeros(a.nbytes + 1, dtype=np.uint8)
    view = raw[1:].view(np.float64).reshape(a.shape)
    view[...] = a
    return view


FORMS = {
    "list": lambda a: a.tolist(), "tuple": lambda a: tuple(map(tuple, a)), "rows": list, "fortran": np.asfortranarray,
    "read_only": read_only, "every_second": every_second, "reversed": lambda a: np.ascontiguousarray(a[::-1])[::-1],
    "big_endian": lambda a: a.astype(">f8"), "unaligned": unaligned, "objects": lambda a: a.astype(object),
    "subclass": lambda a: a.view(type("Sub", (np.ndarray,), {})), "longdouble": lambda a: a.astype(np.longdouble),
}


class TestInputForms:
    @pytest.mark.parametrize("form", FORMS)
    def test_any_array_of_the_same_numbers_gives_the_same_bits(self, form, model):
        if "dot" in repr(model):
            pytest.skip("a callable sees what it is given")
        y = y_of(model)
        plain = copy.deepcopy(model).partial_fit(X, y)
        weights = np.ones(40)
        model.partial_fit(FORMS[form](X), y, sample_weight=weights)
        assert pickle.dumps(model) == pickle.dumps(plain)
        assert (scores(model, FORMS[form](NEW)) == scores(plain, NEW)).all()
        assert (model.learn_one(FORMS[form](X)[0], None if y is None else y[0]).predict_one(FORMS[form](NEW)[0])
                == plain.learn_one(X[0], None if y is None else y[0]).predict_one(NEW[0]))

    @pytest.mark.parametrize("form", [form for form in FORMS if form not in ("rows", "tuple", "objects")])
    def test_so_for_targets_and_weights(self, form):
        column = lambda a: FORMS[form](a[:, None])[:, 0] if form not in ("list",) else a.tolist()
        plain = ok.NORMA("squared").partial_fit(X, TARGETS, sample_weight=np.abs(TARGETS))
        model = ok.NORMA("squared").partial_fit(X, column(TARGETS), sample_weight=column(np.abs(TARGETS)))
        assert pickle.dumps(model) == pickle.dumps(plain)

    @pytest.mark.parametrize("dtype", ["i1", "u1", "i4", "i8", "u8", "?", "f2"])
    def test_other_kinds_of_numbers_become_float64(self, dtype, model):
        if "dot" in repr(model):
            pytest.skip("a callable sees what it is given")
        points = np.arange(36).reshape(12, 3) % 5 % (2 if dtype == "?" else 5)
        y = part(y_of(model), slice(0, 12))
        plain = copy.deepcopy(model).partial_fit(points.astype(float), y)
        model.partial_fit(points.astype(dtype), y)
        assert pickle.dumps(model) == pickle.dumps(plain)
        assert (scores(model, points.astype(dtype)) == scores(plain, points.astype(float))).all()

    @pytest.mark.parametrize("chunk", [1, 40])
    def test_float32_points_stay_float32_and_scores_are_double(self, model, chunk):
        if "dot" in repr(model):
            pytest.skip("a callable keeps what it is given")
        y = y_of(model)
        narrow, wide = X.astype(np.float32), X.astype(np.float32).astype(float)
        plain = copy.deepcopy(model)
        a = np.concatenate([model.progressive(narrow[i:i + chunk], part(y, slice(i, i + chunk)),
                                              classes=[-1, 1] if y is LABELS else None) for i in range(0, 40, chunk)])
        b = plain.progressive(wide, y)
        assert a.dtype == np.float64 and np.allclose(a, b, rtol=1e-4, atol=1e-5)
        assert scores(model, NEW).dtype == np.float64
        if model.n_terms_:
            assert model.support_vectors_.dtype == np.float32
            assert np.isin(model.support_vectors_, narrow).all()

    def test_far_from_the_origin_support_vectors_are_the_points(self):
        for dtype in (np.float32, np.float64):
            points = (1000 + X).astype(dtype)
            model = ok.NORMA("squared").partial_fit(points, TARGETS)
            assert np.allclose(model.support_vectors_, points, rtol=4 * np.finfo(dtype).eps)

    def test_inputs_are_not_changed(self, model):
        y, weights, classes = y_of(model), np.linspace(0, 1, 40), [1, -1]
        arguments = [X.copy(), None if y is None else y.copy(), weights, classes, NEW.copy()]
        before = pickle.dumps(arguments)
        points, y, _, _, new = arguments
        model.partial_fit(points, y, classes=classes if y_of(model) is LABELS else None, sample_weight=weights)
        model.progressive(points, y, sample_weight=weights)
        model.learn_one(points[0], None if y is None else y[0])
        scores(model, new), model.predict(new), model.predict_one(new[0])
        model.fit(points, y)
        assert pickle.dumps(arguments) == before

    def test_inputs_are_not_aliased(self, model):
        y = y_of(model)
        points, targets = X.copy(), None if y is None else y.copy()
        model.partial_fit(points, targets)
        model.learn_one(points[0], None if y is None else targets[0])
        before, values = pickle.dumps(model), scores(model, NEW)
        points[:] = 77
        if y is not None:
            targets[:] = 77
        values_before = values.copy()
        assert pickle.dumps(model) == before
        assert (scores(model, NEW) == values_before).all()
        assert values is not scores(model, NEW)

    def test_a_gram_matrix_is_not_aliased_once_learning_has_begun(self):
        gram = GRAM.copy()
        model = ok.NORMA("squared", ok.Precomputed(gram)).partial_fit(np.arange(40)[:, None], TARGETS)
        values = model.predict(np.arange(40)[:, None])
        gram[:] = np.eye(40)
        assert (model.predict(np.arange(40)[:, None]) == values).all()

    def test_parameters_are_not_aliased_once_learning_has_begun(self):
        kernel, loss, budget = ok.Gaussian(1.0), ok.Hinge(1.0), ok.Recent(10)
        model = ok.NORMA(loss, kernel, budget=budget).partial_fit(X, LABELS)
        twin = copy.deepcopy(model)
        values = model.decision_function(NEW)
        kernel.width, loss.margin, budget.size = 9.0, 5.0, 2
        assert (model.decision_function(NEW) == values).all()
        try:  # either of the two: refuse the change, or go on as before
            model.partial_fit(X, LABELS)
        except ValueError:
            return
        assert (model.decision_function(NEW) == twin.partial_fit(X, LABELS).decision_function(NEW)).all()


class Thing:
    """An object of which the library knows nothing."""

    def __init__(self, text):
        self.text = text

    def __iter__(self):
        return iter(self.text)


class TestObjects:
    STRINGS = ["abc", "bcd", "cde", "xyz", "aaa", "", "abcdefg"]

    @pytest.mark.parametrize("kind", [str, set, tuple, dict.fromkeys, list, Thing])
    @pytest.mark.parametrize("budget", [None, 3, ok.Window(3), ok.Smallest(3)], ids=repr)
    @pytest.mark.parametrize("kernel", [overlap, ok.Normalized(overlap) + ok.Constant(0.5), 0.5 * ok.Noise() + overlap],
                             ids=["plain", "normalized", "noise"])
    def test_a_callable_on_any_objects_learns_what_its_gram_matrix_learns(self, kind, budget, kernel):
        objects, y = [kind(text) for text in self.STRINGS], np.linspace(-1, 1, 7)
        gram = kernel(objects) if isinstance(kernel, ok.Kernel) else (ok.Constant(0.0) + overlap)(objects)
        model = ok.NORMA("squared", kernel, budget=budget, offset=True)
        plain = ok.NORMA("squared", ok.Precomputed(gram), budget=budget, offset=True)
        a, b = model.progressive(objects, y), plain.progressive(np.arange(7)[:, None], y)
        assert np.allclose(a, b, rtol=1e-10, atol=1e-12)
        assert np.allclose(model.dual_coef_, plain.dual_coef_, rtol=1e-10, atol=1e-12)
        assert all(x is objects[int(i)] for x, i in zip(model.support_vectors_, plain.support_vectors_[:, 0]))
        assert model.learn_one(objects[3], 1.0).predict_one(objects[0]) == model.predict(objects[:1])[0]

    def test_numpy_strings_and_object_arrays_are_lists_of_examples(self):
        expected = ok.NORMA("squared", overlap).partial_fit(self.STRINGS, np.ones(7)).predict(self.STRINGS)
        for form in (np.array(self.STRINGS), np.array(self.STRINGS, dtype=object), tuple(self.STRINGS)):
            assert (ok.NORMA("squared", overlap).partial_fit(form, np.ones(7)).predict(form) == expected).all()

    @pytest.mark.parametrize("budget", [2, ok.Window(2), ok.Smallest(2)], ids=repr)
    def test_dropped_objects_are_let_go(self, budget):
        things = [Thing(text) for text in self.STRINGS]
        alive = [weakref.ref(thing) for thing in things]
        model = ok.NORMA("squared", lambda a, b: float(a is b), budget=budget).partial_fit(things, np.ones(7))
        del things
        gc.collect()
        assert sum(ref() is not None for ref in alive) == len(model.support_vectors_) == 2


# ---- Changing parameters of a fitted model ----------------------------------------------------------


class TestChangingParameters:
    def test_a_new_step_takes_effect_with_the_next_example(self):
        for learn in (lambda m: m.learn_one(X[1], 1), lambda m: m.partial_fit(X[1:2], [1]), lambda m: m.progressive(X[1:2], [1])):
            model = ok.NORMA(ok.Hinge(9.0), step=0.5, regularization=0.0).partial_fit(X[:1], [1])
            model.set_params(step=0.25)
            learn(model)
            assert model.dual_coef_.tolist() == [[0.5, 0.25]]
            assert model.step_ == 0.25
            model.step = ok.Fixed(0.125)
            learn(model)
            assert model.dual_coef_.tolist() == [[0.5, 0.25, 0.125]]
            model.step.rate = 0.0625  # a change inside counts when set_params makes it
            model.set_params(step__rate=0.0625)
            learn(model)
            assert model.dual_coef_[0, -1] == 0.0625

    def test_a_new_regularization_takes_effect_with_the_next_example(self):
        model = ok.NORMA(ok.Hinge(9.0), step=0.5, regularization=0.0).partial_fit(X[:1], [1])
        model.set_params(regularization=1.0).partial_fit(X[1:2], [1])
        assert model.dual_coef_.tolist() == [[0.25, 0.5]]

    @pytest.mark.parametrize("change", [{"kernel__width": 3.0}, {"kernel": ok.Linear()}, {"loss": "logistic"}, {"budget": 3},
                                        {"offset": True}, {"average": True}, {"kernel": overlap}], ids=str)
    def test_other_changes_are_refused_at_the_next_learning_call_only(self, change):
        model = ok.NORMA(kernel=ok.Gaussian(1.0)).partial_fit(X, LABELS)
        values, old = model.decision_function(NEW), model.get_params()
        model.set_params(**change)
        assert (model.decision_function(NEW) == values).all()
        before = pickle.dumps(model)
        name = next(iter(change)).split("__")[0]
        for call in (lambda: model.partial_fit(X, LABELS), lambda: model.progressive(X, LABELS), lambda: model.learn_one(X[0], 1)):
            with pytest.raises(ValueError, match=f"'{name}'.*fit"):
                call()
        assert pickle.dumps(model) == before
        assert (model.decision_function(NEW) == values).all() and model.t_ == 40
        model.set_params(**{key: old[key] for key in change})
        assert model.partial_fit(X, LABELS).t_ == 80

    @pytest.mark.parametrize("again", [copy.deepcopy, copy.copy, lambda model: pickle.loads(pickle.dumps(model))],
                             ids=["deepcopy", "copy", "pickle"])
    @pytest.mark.parametrize("change", [{"kernel__width": 3.0}, {"kernel__width": -1}, {"budget": 3}, {"loss": "squared"},
                                        {"average": True}], ids=str)
    def test_a_copy_made_after_a_change_is_the_same_model(self, change, again):
        model = ok.NORMA(kernel=ok.Gaussian(1.0)).partial_fit(X, LABELS)
        values = model.decision_function(NEW)
        twin = again(model.set_params(**change))
        assert (twin.decision_function(NEW) == values).all()
        with pytest.raises(ValueError):
            twin.partial_fit(X, LABELS)

    def test_fit_takes_any_change(self):
        model = ok.NORMA().partial_fit(X, LABELS)
        model.set_params(loss="squared", kernel="linear", budget=3, offset=True).fit(X, TARGETS)
        assert model.n_terms_ == 3 and not hasattr(model, "classes_")

    def test_a_model_of_a_callable_object_may_change_its_step(self):
        class Kernel:
            def __call__(self, a, b):
                return overlap(a, b)

            def method(self, a, b):
                return overlap(a, b)

        for kernel in (Kernel(), functools.partial(overlap), Kernel().method):
            model = ok.NORMA("squared", kernel).partial_fit(["ab", "bc"], [1.0, 2.0])
            model.set_params(step=0.05).partial_fit(["abc"], [1.0])
            assert model.t_ == 3


# ---- Independence -----------------------------------------------------------------------------------


class TestIndependence:
    @pytest.mark.parametrize("again", [copy.deepcopy, copy.copy, lambda model: pickle.loads(pickle.dumps(model))],
                             ids=["deepcopy", "copy", "pickle"])
    def test_a_copy_continues_identically_and_on_its_own(self, fitted, again):
        y = y_of(fitted)
        twin = again(fitted)
        same_state(twin, fitted)
        before = pickle.dumps(fitted)
        new = part(y, slice(0, 15))
        values = twin.progressive(NEW, new)
        assert pickle.dumps(fitted) == before, "learning in the copy changed the original"
        assert (fitted.progressive(NEW, new) == values).all()
        same_state(twin, fitted)

    @pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
    def test_every_pickle_protocol_works(self, fitted, protocol):
        twin = pickle.loads(pickle.dumps(fitted, protocol=protocol))
        assert (scores(twin, NEW) == scores(fitted, NEW)).all()

    @pytest.mark.parametrize("offset", [0.0, 100.0])
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_a_pickle_of_a_pickle_has_the_same_bytes(self, dtype, offset):
        model = ok.NORMA("squared").partial_fit((offset + X).astype(dtype), TARGETS)
        first = pickle.dumps(model)
        assert pickle.dumps(pickle.loads(first)) == first

    @pytest.mark.parametrize("params", [{}, {"average": True}, {"budget": 5}, {"budget": ok.Smallest(5)}, {"kernel": dot}], ids=str)
    def test_a_model_without_terms_pickles_and_goes_on(self, params):
      
        model = ok.NORMA("squared", **params).partial_fit(X[:1], [1.0], sample_weight=[0.0])
        twin = pickle.loads(pickle.dumps(model))
        assert twin.predict(NEW).tolist() == [0.0] * 15 and twin.dual_coef_.shape == (1, 0) and twin.norm_ == 0.0
        assert (twin.progressive(X, TARGETS) == model.progressive(X, TARGETS)).all()

    def test_unfitted_models_pickle_and_copy(self, model):
        for again in (copy.deepcopy, copy.copy, lambda m: pickle.loads(pickle.dumps(m))):
            twin = again(model)
            assert repr(twin) == repr(model) and not twin.__sklearn_is_fitted__()

    def test_two_models_with_the_same_nouns_do_not_share_what_they_learn(self):
        kernel, loss, step, budget = ok.Gaussian(), ok.NuHinge(), ok.InverseSqrt(), ok.Recent(9)
        a, b, alone = (ok.NORMA(loss, kernel, step=step, budget=budget) for _ in range(3))
        alone.partial_fit(X, LABELS)
        for i in range(0, 40, 5):
            a.partial_fit(X[i:i + 5], LABELS[i:i + 5], classes=[-1, 1])
            b.partial_fit(-X[i:i + 5], -LABELS[i:i + 5], classes=[-1, 1])
        assert np.allclose(a.decision_function(NEW), alone.decision_function(NEW), rtol=1e-12, atol=1e-14)
        assert a.margin_ == alone.margin_ and loss.margin == 1.0

    def test_models_with_defaults_share_nothing(self):
        a, b = ok.NORMA(), ok.NORMA()
        a.partial_fit(X, LABELS)
        assert not b.__sklearn_is_fitted__()
        a, b = ok.Perceptron().partial_fit(X, LABELS), ok.Perceptron().partial_fit(X, LABELS)
        a._state.loss.margin = 7.0
        assert b._state.loss.margin == 0.0

    def test_predicting_changes_nothing(self, fitted):
        before = pickle.dumps(fitted)
        for points in (NEW, X, NEW[:1], np.repeat(NEW, 40, axis=0)):
            fitted.predict(points), scores(fitted, points), fitted.predict_one(points[0])
        for name in ("dual_coef_", "support_vectors_", "coef_", "norm_", "n_terms_", "intercept_", "margin_", "width_"):
            getattr(fitted, name, None)
        repr(fitted), fitted.get_params()
        assert pickle.dumps(fitted) == before

    @pytest.mark.parametrize("params", [{}, {"regularization": 1.0, "step": 1.0}, {"regularization": 1.0, "step": 1.0, "budget": 5},
                                        {"step": 0.9, "regularization": 1.0, "budget": ok.Smallest(7)},
                                        {"budget": ok.Window(9)}], ids=str)
    def test_looking_and_pickling_between_examples_does_not_change_what_is_learned(self, params):
      
        quiet, watched = (ok.NORMA("squared", **params) for _ in range(2))
        points, y = np.tile(X, (20, 1)), np.tile(TARGETS, 20)
        for i in range(0, 800, 20):
            quiet.partial_fit(points[i:i + 20], y[i:i + 20])
            watched.partial_fit(points[i:i + 20], y[i:i + 20])
            a = watched.predict(NEW)
            pickle.dumps(watched), watched.norm_, watched.predict_one(NEW[0]), copy.copy(watched)
            assert (watched.predict(NEW) == a).all(), "pickling changed a prediction"
        assert pickle.dumps(quiet) == pickle.dumps(watched)

    def test_the_same_stream_gives_the_same_bits(self, model):
      
        y = y_of(model)
        twin = copy.deepcopy(model)
        for chunk in (1, 3, 36):
            rows = slice(chunk, 2 * chunk) if chunk < 20 else slice(4, 40)
            if not model.__sklearn_is_fitted__():
                rows = slice(0, 12)
            a, b = model.progressive(X[rows], part(y, rows)), twin.progressive(X[rows], part(y, rows))
            assert (a == b).all()
        assert (scores(model, NEW) == scores(twin, NEW)).all()
        assert pickle.dumps(model) == pickle.dumps(twin)

    def test_predictions_do_not_depend_on_the_company(self, fitted):
        together = scores(fitted, np.repeat(NEW, 20, axis=0))[::20]
        assert np.allclose(together, [scores(fitted, x[None])[0] for x in NEW], rtol=1e-10, atol=1e-13)


# ---- Threads ----------------------------------------------------------------------------------------


def run_apart(code):
    """Run code in an interpreter of its own, so that a crash there is only a failure here."""
    code = "import numpy as np, threading, pickle, sys\nimport onlinekernels as ok\nsys.setswitchinterval(1e-5)\n" + textwrap.dedent(code)
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr[-2000:]


class TestThreads:
  
    @pytest.mark.parametrize("kernel", ["gaussian", "laplacian"])
    def test_threads_may_predict_with_one_model_at_once(self, kernel):
        run_apart(f"""
            rng = np.random.default_rng(0)
            model = ok.NORMA("squared", {kernel!r}).fit(rng.normal(size=(400, 5)), rng.normal(size=400))
            sets = [rng.normal(size=(n, 5)) for n in (2000, 1500, 3)]
            expected = [model.predict(points) for points in sets]
            wrong = []
            def work(i):
                for _ in range(40):
                    if not (model.predict(sets[i]) == expected[i]).all():
                        wrong.append(i)
            threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
            [thread.start() for thread in threads], [thread.join() for thread in threads]
            assert not wrong, f"{{len(wrong)}} of 120 predictions were wrong"
        """)

    def test_learning_in_two_threads_at_once_raises_or_is_safe(self):
        run_apart("""
            rng = np.random.default_rng(0)
            X, y = rng.normal(size=(300, 8)), rng.normal(size=300)
            model = ok.NORMA("squared", budget=150, step=0.01).partial_fit(X[:1], y[:1])
            learned, errors = [1], []
            def work():
                for i in range(40):
                    try:
                        model.partial_fit(X, y)
                        learned.append(300)
                    except RuntimeError as error:
                        errors.append(str(error))
            threads = [threading.Thread(target=work) for _ in range(2)]
            [thread.start() for thread in threads], [thread.join() for thread in threads]
            assert model.t_ == sum(learned), (model.t_, sum(learned))
            assert all("learning" in error and "thread" in error for error in errors)
            model._state.engine._check()
            assert np.isfinite(model.predict(X)).all()
        """)

  
    def test_predicting_while_another_thread_learns_raises_or_is_right(self):
        run_apart("""
            rng = np.random.default_rng(0)
            X, y = rng.normal(size=(3000, 5)), rng.normal(size=3000)
            model = ok.NORMA("squared", "gaussian").partial_fit(X[:5], y[:5])
            done, odd = threading.Event(), []
            def work():
                while not done.is_set():
                    try:
                        if not np.isfinite(model.predict(X[:300])).all():
                            odd.append("not finite")
                    except RuntimeError:
                        pass
                    except Exception as error:
                        odd.append(repr(error))
            thread = threading.Thread(target=work)
            thread.start()
            learned = 5
            for i in range(5, 2500, 7):
                try:
                    model.partial_fit(X[i:i + 7], y[i:i + 7])
                    learned += 7
                except RuntimeError:
                    pass
            done.set(); thread.join()
            assert not odd, odd[:3]
            assert model.t_ == learned
            model._state.engine._check()
        """)

  
    def test_pickling_while_another_thread_learns_raises_or_gives_the_model_of_some_time(self):
        run_apart("""
            rng = np.random.default_rng(0)
            X, y = rng.normal(size=(12000, 1)), rng.normal(size=12000)
            model = ok.NORMA("squared", budget=1000, regularization=0.1).partial_fit(X[:5], y[:5])
            done, pickles = threading.Event(), []
            def work():
                while not done.is_set():
                    try:
                        pickles.append(pickle.dumps(model))
                    except RuntimeError:
                        pass
            thread = threading.Thread(target=work)
            thread.start()
            model.partial_fit(X[5:], y[5:])
            done.set(); thread.join()
            follower, wrong = ok.NORMA("squared", budget=1000, regularization=0.1), []
            for twin in {copy.t_: copy for copy in map(pickle.loads, pickles)}.values():
                done = getattr(follower, "t_", 0)
                if twin.t_ > done:
                    follower.partial_fit(X[done:twin.t_], y[done:twin.t_])
                twin._state.engine._check()
                if not np.allclose(follower.predict(X[:20]), twin.predict(X[:20]), rtol=1e-9, atol=1e-9):
                    wrong.append(twin.t_)
            assert not wrong, f"the copies at t = {wrong[:5]} are not the models of their time"
        """)

    def test_a_first_call_does_not_overwrite_one_that_ended_meanwhile(self):
        class Late:
            """Targets that another thread is faster than."""

            def __array__(self, dtype=None, copy=None):
                thread = threading.Thread(target=model.partial_fit, args=(X[:10], TARGETS[:10]))
                thread.start()
                thread.join()
                return TARGETS[10:]

        model = ok.NORMA("squared")
        try:
            model.partial_fit(X[10:], Late())
        except RuntimeError:
            assert model.t_ == 10
        else:
            assert model.t_ == 40


def test_importing_the_library_does_not_import_scikit_learn():
    run_apart("assert 'sklearn' not in sys.modules and 'pandas' not in sys.modules and 'scipy' not in sys.modules")
