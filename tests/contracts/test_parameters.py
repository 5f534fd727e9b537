"""Parameters, and what happens when they change on a fitted model."""
import inspect
import pickle

import pytest
from cases import each
from small_models import LABELS, NEW, X, overlap

import onlinekernels as ok
from onlinekernels import *  # noqa: F401, F403  (names for eval)


class TestParameters:
    def test_get_params_names_nested_parameters(self):
        kernel = ok.Gaussian(2.0) + 0.5 * ok.Linear()
        params = ok.NORMA(ok.Hinge(0.7), kernel, step=ok.Decaying(0.1, 50), budget=ok.Recent(9)).get_params()
        assert params["loss__margin"] == 0.7
        assert params["kernel"] is kernel
        assert params["kernel__left__width"] == 2.0
        assert params["kernel__right__left__value"] == 0.5
        assert (params["step__rate"], params["step__delay"], params["budget__size"]) == (0.1, 50, 9)

    def test_set_params_reaches_nested_parameters_and_returns_the_model(self):
        model = ok.NORMA(ok.NuHinge(), ok.Gaussian() * ok.Laplacian())
        assert model.set_params(loss__nu=0.3, kernel__left__width=4.0, kernel__right__rate=2.0, step=0.5) is model
        assert (model.loss.nu, model.kernel.left.width, model.kernel.right.rate, model.step) == (0.3, 4.0, 2.0, 0.5)

    def test_defaults_are_never_mutable(self):
        for name in ok.__all__:
            thing = getattr(ok, name)
            if isinstance(thing, type):
                for parameter in inspect.signature(thing.__init__).parameters.values():
                    assert parameter.default is parameter.empty or isinstance(
                        parameter.default, (type(None), bool, int, float, str, tuple))


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


class TestChangingParameters:
    def test_a_new_step_takes_effect_with_the_next_example(self):
        for learn in (lambda m: m.learn_one(X[1], 1), lambda m: m.partial_fit(X[1:2], [1]),
                      lambda m: m.progressive(X[1:2], [1])):
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

    @each("change", [{"kernel__width": 3.0}, {"kernel": ok.Linear()}, {"loss": "logistic"}, {"budget": 3},
                     {"offset": True}, {"average": True}, {"kernel": overlap}], ids=str)
    def test_other_changes_are_refused_at_the_next_learning_call_only(self, change):
        model = ok.NORMA(kernel=ok.Gaussian(1.0)).partial_fit(X, LABELS)
        values, old = model.decision_function(NEW), model.get_params()
        model.set_params(**change)
        assert (model.decision_function(NEW) == values).all()
        before = pickle.dumps(model)
        name = next(iter(change)).split("__")[0]
        for call in (lambda: model.partial_fit(X, LABELS), lambda: model.progressive(X, LABELS),
                     lambda: model.learn_one(X[0], 1)):
            with pytest.raises(ValueError, match=f"'{name}'.*fit"):
                call()
        assert pickle.dumps(model) == before
        assert (model.decision_function(NEW) == values).all() and model.t_ == 40
        model.set_params(**{key: old[key] for key in change})
        assert model.partial_fit(X, LABELS).t_ == 80


class TestSetParamsIsAtomic:
    @each("params", [
        {"step": 0.7, "foo": 3}, {"kernel__width": 3.0, "foo": 3}, {"step": 0.7, "kernel__foo": 3},
        {"kernel__width": 3.0, "loss__foo": 3}, {"kernel__width": 3.0, "kernel__foo": 1},
        {"step": 0.7, "budget__size": 3},
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
