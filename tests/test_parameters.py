"""Parameters, and what happens when they change on a fitted model."""
import copy
import functools
import inspect
import pickle
from fractions import Fraction

import numpy as np
import pytest
from cases import each
from small_models import LABELS, NEW, TARGETS, X, dot, each_model, overlap

import onlinekernels as ok
from onlinekernels import *  # noqa: F401, F403  (names for eval)


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

    @each_model
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
                        parameter.default, (type(None), bool, int, float, str, tuple))


class BareLoss(ok.Loss):
    def derivative(self, score, y):
        return score - y


class BareKernel(ok.Kernel):
    def pair(self, x, z):
        return dot(x, z)


@each("params", [{"loss": BareLoss()}, {"loss": "squared", "kernel": BareKernel()}], ids=["loss", "kernel"])
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
    @each("value", [
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

    @each("change", [{"kernel__width": 3.0}, {"kernel": ok.Linear()}, {"loss": "logistic"}, {"budget": 3},
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

    @each("again", [copy.deepcopy, copy.copy, lambda model: pickle.loads(pickle.dumps(model))],
          ids=["deepcopy", "copy", "pickle"])
    @each("change", [{"kernel__width": 3.0}, {"kernel__width": -1}, {"budget": 3}, {"loss": "squared"},
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


class TestNumbers:
    @each("value, same", [(10**20, 1e20), (Fraction(1, 4), 0.25), (np.float32(0.25), 0.25), (3, 3.0)],
          ids=repr)
    def test_parameters_may_be_any_real_numbers(self, value, same):
        for make in (lambda v: ok.NORMA("hinge", ok.Gaussian(v)), lambda v: ok.NORMA(ok.Hinge(v)),
                     lambda v: ok.NORMA("hinge", ok.Laplacian(v)), lambda v: ok.ILK(step=v, penalty=v),
                     lambda v: ok.NORMA(ok.Huber(v)), lambda v: ok.PassiveAggressive(penalty=v),
                     lambda v: ok.NORMA(step=v, regularization=0), lambda v: ok.Projection(radius=v),
                     lambda v: ok.NORMA("squared", ok.Gaussian() + v * ok.Linear(), step=1e-30),
                     lambda v: ok.NORMA(class_weight={1: v})):
            a, b = make(value).fit(X, LABELS), make(same).fit(X, LABELS)
            scores = [m.decision_function(X) if hasattr(m, "decision_function") else m.predict(X) for m in (a, b)]
            np.testing.assert_array_equal(*scores)
        assert ok.Gaussian(value)(X).tolist() == ok.Gaussian(same)(X).tolist()


class TestSetParamsIsAtomic:
    @each("params", [
        {"step": 0.7, "foo": 3}, {"kernel__width": 3.0, "foo": 3}, {"step": 0.7, "kernel__foo": 3},
        {"kernel__width": 3.0, "loss__foo": 3}, {"kernel__width": 3.0, "kernel__foo": 1}, {"step": 0.7, "budget__size": 3},
        {"kernel": ok.Linear(), "kernel__width": 3.0}, {"kernel__width": 3.0, "kernel__width__deep": 1},
    ], ids=str)
    @each("fitted", [False, True])
    def test_a_name_that_does_not_exist_changes_nothing(self, params, fitted):
        model = ok.NORMA(ok.Hinge(), ok.Gaussian(1.0), budget=None)
        if fitted:
            model.partial_fit(X, LABELS)
        before = pickle.dumps(model)
        with pytest.raises(ValueError, match="no parameter"):
            model.set_params(**params)
        assert pickle.dumps(model) == before

    def test_names_inside_a_new_object(self):
        model = ok.NORMA(kernel="linear").set_params(kernel__width=3.0, kernel=ok.Gaussian())
        assert model.kernel.width == 3.0
